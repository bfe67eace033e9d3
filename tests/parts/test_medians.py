"""Fits in parts by order statistics: scale="robust" and k-medians are those of memory."""

import json

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from parts_cases import BINS, KINDS, answers, converse, damaged, model_of, parts_of, rows, same
from treeclust_rs.cli import main
from treeclust_rs.parts import Answer, Fit, Question, fit_batches

pytestmark = pytest.mark.filterwarnings("ignore:Only .* clusters:UserWarning")

# Whole weights have ties at quarters and halves, and tenths have sums that doubles round.
WEIGHTS = ([0.0, 1.0, 2.0], [0.1, 0.2, 0.3], [0.5], [1.0], [0.0, 0.1, 3.7, 1e6])


@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "huge row"])
def test_robust_units_are_those_of_memory(kind, bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(KINDS.index(kind))
    for i, n in enumerate((1, 2, 4, 8, 61, 500)):
        X, centers = rows(rng, n, kind=kind)
        for weight in (None, rng.choice(WEIGHTS[i % len(WEIGHTS)], size=n)):
            if weight is not None and not weight.any():
                continue
            options = {"scale": "robust", "max_leaves": 2 * len(centers)}
            expected = model_of(centers, **options).fit(X, sample_weight=weight)
            for n_parts in (1, 5):
                fit = Fit(model_of(centers, **options))
                same(converse(fit, X, parts_of(rng, n, n_parts), weight, rng), expected)


def test_quartiles_lie_where_they_do_in_memory():
    rng = np.random.default_rng(30)
    for trial in range(60):
        n = int(rng.integers(1, 60))
        X = rng.integers(-3, 4, size=(n, 3)) * rng.choice([1.0, 1e-300, 1e100, 1e8], size=3)
        weight = rng.choice(WEIGHTS[trial % len(WEIGHTS)], size=n) if trial % 2 else None
        if weight is not None and not weight.any():
            continue
        units = model_of(np.array([[0.0] * 3]), scale="robust", max_leaves=1)
        expected = units.fit(X, sample_weight=weight).scale_
        found = converse(
            Fit(model_of(np.array([[0.0] * 3]), scale="robust", max_leaves=1)),
            X,
            parts_of(rng, n, 4),
            weight,
            rng,
        )
        np.testing.assert_array_equal(found.scale_, expected)


def test_columns_without_quartiles_take_their_deviation():
    rng = np.random.default_rng(31)
    X = np.zeros((400, 3))
    X[:, 0] = rng.normal(size=400)
    X[:40, 1] = rng.normal(size=40)  # a spread, but the quartiles are equal; the last is constant
    expected = model_of(X[:3], scale="robust").fit(X)
    fit = Fit(model_of(X[:3], scale="robust"))
    same(converse(fit, X, [0, 10, 400]), expected)
    assert expected.scale_[1] == pytest.approx(X[:, 1].std(), rel=1e-12)
    plain = Fit(model_of(X[:3, :1], scale="robust"))
    converse(plain, X[:, :1], [0, 400])
    assert plain.n_rounds < fit.n_rounds  # no round for deviations that nothing needs
    with pytest.raises(ValueError, match=r"^The squares of column 1"):
        converse(Fit(model_of(X[:3], scale="robust")), X * [1.0, 1e200, 1.0], [0, 400])
    # Squares that nothing needs may leave the range.
    far, centers = X[:, :1] * 1e200, np.array([[0.0], [1e200]])
    found = converse(Fit(model_of(centers, scale="robust")), far, [0, 400])
    same(found, model_of(centers, scale="robust").fit(far))


@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_tree_of_medians_is_that_of_memory(kind, bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(40 + KINDS.index(kind))
    for i, n in enumerate((1, 7, 60, 700)):
        X, centers = rows(rng, n, kind=kind)
        weight = rng.choice(WEIGHTS[i % len(WEIGHTS)], size=n) if n % 2 else None
        options = {
            "criterion": "kmedians",
            "max_leaves": 3 * len(centers),
            "min_samples_leaf": int(rng.integers(1, 5)),
            "scale": ["standard", None, "robust", [1.0, 2.5, 0.1, 1e3]][i],
        }
        if kind == "huge row" and options["scale"] in ("standard", "robust"):
            options["scale"] = None
        if weight is not None and not weight.any():
            weight[0] = 1.0
        expected = model_of(centers, **options).fit(X, sample_weight=weight)
        for n_parts in (1, 2, 6):
            fit = Fit(model_of(centers, **options))
            same(converse(fit, X, parts_of(rng, n, n_parts), weight, rng), expected)


@pytest.mark.parametrize("options", [{"max_leaves": None}, {"max_depth": 2}, {"max_depth": 1}])
def test_clusters_without_leaves_keep_their_centers(options):
    rng = np.random.default_rng(50)
    X, centers = rows(rng, 300, k=6)
    options = {"criterion": "kmedians", "max_leaves": 20, **options}
    expected = model_of(centers, **options).fit(X)
    same(converse(Fit(model_of(centers, **options)), X, [0, 1, 300]), expected)


def test_medians_of_tenths_do_not_depend_on_the_order_of_rows():
    # Half of the weight is reached at a value, up to what the order of the sum rounds.
    n = 200_000
    X = np.repeat([[0.0], [1.0], [2.0], [3.0]], n // 4, axis=0)
    weight = np.full(n, 0.1)
    weight[:4] = [0.3, 0.3, 0.5, 0.5]
    weight[-4:] = [0.3, 0.3, 0.5, 0.5]
    centers = np.array([[0.0]])
    options = {"criterion": "kmedians", "max_leaves": 1}
    for order in (slice(None), slice(None, None, -1)):
        expected = model_of(centers, **options).fit(X[order], sample_weight=weight[order])
        found = converse(Fit(model_of(centers, **options)), X[order], [0, 77_777, n], weight[order])
        assert expected.cluster_centers_.tolist() == [[1.0]]
        same(found, expected)


def own_model(k=4, **options):
    options = {"max_leaves": 10, "criterion": "kmedians", **options}
    return tc.ExKMC(k, base_tree=None, random_state=3, n_jobs=1, **options)


@pytest.mark.parametrize("scale", [None, "standard", "robust"])
def test_without_a_reference_medians_of_all_rows_are_found(scale):
    rng = np.random.default_rng(51)
    X, _ = rows(rng, 500)
    for weight in (None, rng.choice([0.0, 0.3, 2.0], size=500)):
        expected = own_model(scale=scale).fit(X, sample_weight=weight)
        for ends in ([0, 500], [0, 1, 1, 250, 500]):
            fit = Fit(own_model(scale=scale), n_features=4)
            same(converse(fit, X, ends, weight, rng), expected)
    expected = own_model(scale=scale, criterion="kmeans").fit(X)
    same(fit_batches(own_model(scale=scale, criterion="kmeans"), X), expected)


def test_of_many_rows_the_medians_are_those_of_a_sample():
    n = 120_000
    X = np.random.default_rng(52).normal(size=(n, 1))
    X[: n // 2] += 10.0
    found = fit_batches(own_model(2, max_leaves=4), X)
    given = found._training.reference_centers
    np.testing.assert_allclose(np.sort(given[:, 0]), [0.0, 10.0], atol=0.05)
    assert np.isin(given, X).all()
    again = model_of(given, criterion="kmedians", max_leaves=4).fit(X)
    assert found.rules().frame.equals(again.rules().frame)
    assert found.cost_path_.equals(again.cost_path_)
    assert found.reference_inertia_ == again.reference_inertia_


def test_answers_checkpoints_and_bytes(monkeypatch):
    monkeypatch.setattr(Fit, "_bins", (5, 20))
    rng = np.random.default_rng(53)
    X, centers = rows(rng, 500)
    weight = rng.choice([0.1, 0.7], size=500)
    X[:, 3] = np.round(X[:, 3] / 9)  # quartiles are equal

    def new():
        return model_of(centers, criterion="kmedians", scale="robust")

    expected = new().fit(X, sample_weight=weight)
    fit, n_ranks = Fit(new()), 0
    while (question := fit.question()) is not None:
        data = fit.to_bytes()
        fit = Fit.from_bytes(data, new())
        assert fit.to_bytes() == data
        assert fit.question().to_bytes() == question.to_bytes()
        a, b, c = answers(question, X, [0, 90, 90, 500], weight)
        whole = ((a + b) + c).to_bytes()
        assert (c + (b + a)).to_bytes() == whole
        answer = Answer.from_bytes(whole)
        assert answer.to_bytes() == whole
        for read, sound in (
            (Question.from_bytes, question.to_bytes()),
            (Answer.from_bytes, whole),
            (lambda data: Fit.from_bytes(data, new()), data),
        ):
            for other in damaged(rng, sound, read, 5, 20):
                try:
                    if isinstance(other, Answer):
                        Fit.from_bytes(data, new()).tell(other)
                    elif isinstance(other, Fit):
                        other.question()
                except (ValueError, MemoryError):
                    continue
        n_ranks += _is_about_ranks(question)
        fit.tell(answer)
    same(fit.result(), expected)
    assert n_ranks > 4


def _is_about_ranks(question):
    return question._core.is_about_ranks


def test_rounds_and_bytes_of_ranks_stay_few():
    rng = np.random.default_rng(54)
    sizes = []
    options = {"criterion": "kmedians", "scale": "robust", "max_leaves": 20}
    for n in (4_000, 40_000):
        X, centers = rows(rng, n, d=5, k=6)
        fit, n_bytes, n_ranks = Fit(model_of(centers, **options)), 0, 0
        while (question := fit.question()) is not None:
            answer = question.answer(X, part_id=0)
            if _is_about_ranks(question):
                n_bytes += len(answer.to_bytes())
                n_ranks += 1
            fit.tell(answer)
        model = fit.result()
        same(model, model_of(centers, **options).fit(X))
        assert n_ranks <= 6
        assert fit.n_rounds <= 2 * model.tree_.max_depth + 10
        sizes.append(n_bytes)
    assert sizes[1] <= 2 * sizes[0]


def test_a_model_of_medians_is_an_ordinary_one(tmp_path):
    rng = np.random.default_rng(55)
    X, centers = rows(rng, 300)
    frame = pl.DataFrame(X, schema=list("abcd"))
    model = fit_batches(model_of(centers, criterion="kmedians"), frame.lazy())
    model.save(tmp_path / "model.json")
    again = tc.load(tmp_path / "model.json")
    assert json.loads(again.to_json()) == json.loads(model.to_json())
    assert model.score(frame) == pytest.approx(-model.inertia_, rel=1e-12)
    # The same estimator by k-means: nothing of the medians stays.
    model.set_params(criterion="kmeans")
    same(fit_batches(model, frame.lazy()), model_of(centers).fit(frame))


@pytest.mark.parametrize(
    "options",
    [
        ["-k", "3", "--method", "exkmc", "--base-tree", "none", "--scale", "robust"],
        ["-k", "3", "--method", "imm"],
        ["--reference", "kind", "--method", "exkmc"],
    ],
)
def test_the_command_line_streams_medians(options, tmp_path):
    rng = np.random.default_rng(56)
    X, _ = rows(rng, 300)
    frame = pl.DataFrame(X, schema=list("abcd"))
    frame = frame.with_columns(kind=np.where(frame["a"] > frame["a"].median(), "x", "y"))
    frame.write_parquet(tmp_path / "rows.parquet")
    command = ["fit", str(tmp_path / "rows.parquet"), "--quiet", "--criterion", "kmedians"]
    command += options
    for i, more in enumerate(([], ["--stream"])):
        assert main([*command, *more, "-o", str(tmp_path / f"{i}.json")]) == 0
    models = [json.loads((tmp_path / f"{i}.json").read_text()) for i in (0, 1)]
    assert models[0] == models[1]
