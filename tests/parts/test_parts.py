"""Fits in parts: the same tree as in memory, however the rows are shared out."""

import datetime as dt
import math
import pickle
import warnings
from functools import reduce
from operator import add

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.cluster import KMeans

import treeclust_rs as tc
from parts_cases import BINS, KINDS, answers, converse, damaged, model_of, parts_of, rows, same
from treeclust_rs.parts import Answer, Fit, Question, fit_batches

pytestmark = pytest.mark.filterwarnings("ignore:Only .* clusters:UserWarning")


@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_tree_is_that_of_memory(kind, bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(KINDS.index(kind))
    for n in (7, 60, 900):
        X, centers = rows(rng, n, kind=kind)
        weight = rng.choice([0.0, 0.1, 1.0, 3.7], size=n) if n % 2 else None
        options = {"max_leaves": 3 * len(centers), "min_samples_leaf": int(rng.integers(1, 5))}
        expected = model_of(centers, **options).fit(X, sample_weight=weight)
        for n_parts in (1, 2, 6):
            fit = Fit(model_of(centers, **options))
            same(converse(fit, X, parts_of(rng, n, n_parts), weight, rng), expected)


def test_a_leaf_whose_opened_bins_hold_no_cut_is_closed(monkeypatch):
    monkeypatch.setattr(Fit, "_bins", (2, 1))
    rng = np.random.default_rng(41)
    for criterion in ("kmeans", "kmedians"):
        for _ in range(30):
            X, centers = rows(rng, 7, kind="ties")
            options = {"criterion": criterion, "min_samples_leaf": 3, "max_leaves": 12}
            expected = model_of(centers, **options).fit(X)
            same(converse(Fit(model_of(centers, **options)), X, [0, 2, 7]), expected)


@pytest.mark.parametrize(
    "options",
    [
        {"max_leaves": float("inf")},
        {"max_leaves": None},
        {"max_depth": 3, "max_leaves": 30},
        {"min_samples_leaf": 40, "max_leaves": 30},
        {"scale": "standard"},
        {"scale": [1.0, 2.5, 0.1, 1e3]},
        {"scale": {"x1": 3.0}},
        {"n_clusters": 4},
    ],
)
def test_all_parameters_count(options):
    rng = np.random.default_rng(5)
    X, centers = rows(rng, 500)
    X[:, 2] = 7.5  # constant
    for weight in (None, rng.choice([0.0, 0.3, 2.0], size=500)):
        expected = model_of(centers, **options).fit(X, sample_weight=weight)
        fit = Fit(model_of(centers, **options))
        same(converse(fit, X, [0, 123, 124, 500], weight, rng), expected)


@pytest.mark.parametrize(
    ("least", "d", "k", "max_leaves"), [(4_000, 5, 6, 20), (40_000, 10, 8, 40)]
)
def test_many_rows_take_few_rounds_and_bytes(least, d, k, max_leaves):
    rng = np.random.default_rng(6)
    sizes = []
    for n in (least, 10 * least):
        X, centers = rows(rng, n, d=d, k=k)
        fit, n_bytes = Fit(model_of(centers, max_leaves=max_leaves)), 0
        while (question := fit.question()) is not None:
            answer = question.answer(X, part_id=0)
            n_bytes += len(answer.to_bytes())
            fit.tell(answer)
        model = fit.result()
        same(model, model_of(centers, max_leaves=max_leaves).fit(X))
        assert fit.n_rounds <= 2 * model.tree_.max_depth + 10
        assert fit.n_rows == n
        sizes.append(n_bytes)
    assert sizes[1] <= 2 * sizes[0]


def test_answers_add_up_in_any_order_to_the_same_bytes():
    rng = np.random.default_rng(7)
    X, centers = rows(rng, 300, kind="ties")
    X[:100] = rng.normal(size=(100, 4))
    fit = Fit(model_of(centers))
    kinds = set()
    while (question := fit.question()) is not None:
        kinds.add(len(question.to_bytes()))
        a, b, c = answers(question, X, [0, 90, 90, 300])
        whole = ((a + b) + c).to_bytes()
        assert (a + (b + c)).to_bytes() == whole
        assert ((c + a) + b).to_bytes() == whole
        assert Answer.from_bytes(whole).to_bytes() == whole
        copy = pickle.loads(pickle.dumps(question))
        assert copy.to_bytes() == question.to_bytes()
        again = copy.answer(X[90:], part_id=2, n_jobs=2)
        assert pickle.loads(pickle.dumps(again)).to_bytes() == c.to_bytes()
        fit.tell(Answer.from_bytes(whole))
    assert len(kinds) > 3


def test_a_checkpoint_goes_on_in_every_round():
    rng = np.random.default_rng(8)
    X, centers = rows(rng, 600)
    expected = model_of(centers, scale="standard").fit(X)
    fit = Fit(model_of(centers, scale="standard"))
    while (question := fit.question()) is not None:
        data = fit.to_bytes()
        fit = Fit.from_bytes(data, model_of(centers, scale="standard"))
        assert fit.to_bytes() == data
        assert fit.question().to_bytes() == question.to_bytes()
        fit.tell(reduce(add, answers(fit.question(), X, [0, 200, 600])))
    same(fit.result(), expected)
    with pytest.raises(ValueError, match="The fit is over: there is nothing to go on with"):
        fit.to_bytes()
    with pytest.raises(ValueError, match="fit with other parameters, centers or columns"):
        Fit.from_bytes(data, model_of(centers, scale="standard", max_leaves=13))


def test_bytes_that_are_cut_or_changed_are_refused_or_harmless():
    rng = np.random.default_rng(9)
    X, centers = rows(rng, 80)
    fit = Fit(model_of(centers))
    for _ in range(4):
        question = fit.question()
        answer = question.answer(X, part_id=0)
        for read, data in (
            (Question.from_bytes, question.to_bytes()),
            (Answer.from_bytes, answer.to_bytes()),
            (lambda data: Fit.from_bytes(data, model_of(centers)), fit.to_bytes()),
        ):
            list(damaged(rng, data, read, 10, 30))
            with pytest.raises(ValueError, match=r"^These bytes are not a"):
                read(data + b"x")
        fit.tell(answer)


def test_parts_that_lack_or_change_are_named():
    rng = np.random.default_rng(10)
    X, centers = rows(rng, 90)
    fit = Fit(model_of(centers))
    first = fit.question()
    a, b, _ = answers(first, X, [0, 30, 60, 90])
    with pytest.raises(TypeError, match=r"tell takes an Answer, .* Got list instead"):
        fit.tell([a, b])
    with pytest.raises(ValueError, match=r"^Part 0 has answered twice"):
        a + a
    fit.tell(a + b)
    with pytest.raises(ValueError, match="not the answer to the question that the fit asked last"):
        fit.tell(a + b)
    with pytest.raises(ValueError, match="Only answers to the same question"):
        a + fit.question().answer(X[:30], part_id=1)
    with pytest.raises(ValueError, match=r"^Part 7 was not there before"):
        fit.question().answer(X[:30], part_id=7)
    fit.tell(reduce(add, answers(fit.question(), X, [0, 30, 60])))
    question = fit.question()
    a, b, c = answers(question, X, [0, 30, 60, 90])
    with pytest.raises(ValueError, match=r"^Part 1 has not answered"):
        fit.tell(a)
    with pytest.raises(ValueError, match=r"^Part 2 was not there before"):
        fit.tell(a + b + c)
    fewer = question.answer(X[30:59], part_id=1)
    with pytest.raises(ValueError, match=r"^Part 1 has 29 rows now and had 30: .*sink_parquet"):
        fit.tell(a + fewer)
    other = X[30:60].copy()
    other[4, 2] += 1e-9
    with pytest.raises(ValueError, match=r"^Part 1 has other rows than the first time"):
        fit.tell(a + question.answer(other, part_id=1))
    with pytest.raises(ValueError, match="The fit is not over"):
        fit.result()
    fit.tell(a + b)  # nothing is lost
    while (question := fit.question()) is not None:
        fit.tell(reduce(add, answers(question, X, [0, 30, 60])))
    same(fit.result(), model_of(centers).fit(X[:60]))
    with pytest.raises(ValueError, match="The fit is over: it has no question"):
        fit.tell(a + b)


def test_bad_rows_are_refused_by_name():
    rng = np.random.default_rng(11)
    X, centers = rows(rng, 40, d=2)
    question = Fit(model_of(centers), feature_names=["age", "fee"]).question()
    frame = pl.DataFrame(X, schema=["age", "fee"])
    answer = question.answer(frame, part_id=0).to_bytes()
    assert (
        question.answer(
            frame.select("fee", pl.lit("x").alias("other"), "age").drop("other"), part_id=0
        ).to_bytes()
        == answer
    )
    for bad, error, message in (
        (frame.with_columns(pl.concat_list("age", "fee").alias("fee")), TypeError, "'fee' (List"),
        (frame.with_columns(pl.lit(dt.time(3)).alias("age")), TypeError, "'age' (Time)"),
        (frame.drop("fee"), ValueError, "fee"),
        (frame.with_columns(fee=pl.lit(float("inf"))), ValueError, "column 'fee' has 40 inf"),
        (X[:, :1], ValueError, "X has 1 features, but ExKMC is expecting 2"),
        (csr_array(X), TypeError, "Fits in parts take no sparse rows, but got a csr_array"),
    ):
        with pytest.raises(error) as caught:
            question.answer(bad, part_id=0)
        assert message in str(caught.value)
    for part_id in (-1, True, "a", 1.5):
        with pytest.raises(ValueError, match="part_id must be an int from 0 on"):
            question.answer(X, part_id=part_id)
    for weight, message in ((-np.ones(40), "negative"), (np.ones(3), "3")):
        with pytest.raises(ValueError, match=message):
            question.answer(X, part_id=0, sample_weight=weight)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (tc.Kauri(3), TypeError, "Got Kauri instead: its gains are products of sums"),
        (tc.BestTree(3), TypeError, "Got BestTree"),
        (tc.ExKMC(3), ValueError, "The number of columns"),
        (tc.ExKMC(3, base_tree=None), ValueError, "give n_features, feature_names, or centers"),
        (tc.ExKMC(3, base_tree=None, max_leaves=2), ValueError, "The number of columns"),
        (tc.ExKMC(base_tree=None, reference=KMeans(3)), ValueError, "reference= centers"),
        (tc.ExKMC(base_tree=None, reference=np.zeros(5, int)), ValueError, "reference= centers"),
        (model_of(np.ones((3, 2))), ValueError, "are equal"),
        (model_of(np.full((3, 2), np.nan)), ValueError, "NaN"),
        (model_of(np.eye(3), n_clusters=4), ValueError, "4"),
        (model_of(np.eye(3), max_leaves=2), ValueError, "max_leaves=2"),
        (model_of(np.eye(3), scale=[1.0]), ValueError, "scale has 1 units"),
    ],
)
def test_what_is_not_fitted_in_parts_is_refused_with_a_way_out(model, error, message):
    with pytest.raises(error) as caught:
        Fit(model)
    assert message in str(caught.value)


def test_columns_are_counted_once():
    centers = np.eye(3)
    for options, error, message in (
        ({"n_features": 2}, ValueError, "n_features=2, but the reference has centers of 3 columns"),
        ({"n_features": 2.0}, TypeError, "n_features must be an int"),
        ({"feature_names": "age"}, TypeError, "feature_names must be a list of strings"),
    ):
        with pytest.raises(error, match=message):
            Fit(model_of(centers), **options)
    # Text may make three coordinates of two columns, or of four: known after the first round.
    for names in ("ab", "abcd"):
        fit = Fit(model_of(centers), feature_names=list(names))
        rows_of = pl.DataFrame({name: [1.0] for name in names})
        with pytest.raises(ValueError, match=f"reference has 3 columns, but X has {len(names)}"):
            fit.tell(fit.question().answer(rows_of, part_id=0))
    own = tc.ExKMC(3, base_tree=None)
    for options, message in (
        ({"n_features": 2, "feature_names": ["a"]}, "n_features=2, but feature_names has 1 column"),
        ({"n_features": 0}, "at least one column"),
    ):
        with pytest.raises(ValueError, match=message):
            Fit(own, **options)
    with pytest.raises(ValueError, match=r"max_leaves=2 must be at least n_clusters=3"):
        Fit(tc.ExKMC(3, base_tree=None, max_leaves=2), n_features=2)
    assert Fit(own, n_features=2).question().n_features == 2


# ---- clusters that are found --------------------------------------------------------------------


def own_model(k=4, **options):
    return tc.ExKMC(k, base_tree=None, random_state=3, n_jobs=1, **{"max_leaves": 10, **options})


@pytest.mark.parametrize("kind", ["plain", "ties", "far"])
@pytest.mark.parametrize("scale", [None, "standard", [1.0, 2.0, 0.5, 3.0]])
def test_without_a_reference_the_tree_is_that_of_memory(kind, scale):
    rng = np.random.default_rng(20)
    X, _ = rows(rng, 600, kind=kind)
    for weight in (None, rng.choice([0.0, 0.3, 2.0], size=600)):
        expected = own_model(scale=scale).fit(X, sample_weight=weight)
        for ends in ([0, 600], [0, 1, 1, 250, 600]):
            fit = Fit(own_model(scale=scale), n_features=4)
            same(converse(fit, X, ends, weight, rng), expected)
    frame = pl.DataFrame(X, schema=list("abcd"))
    same(fit_batches(own_model(scale=scale), frame.lazy()), own_model(scale=scale).fit(frame))
    same(fit_batches(own_model(scale=scale), [X[:99], X[99:]]), own_model(scale=scale).fit(X))


def test_max_leaves_none_goes_by_the_clusters_that_were_found():
    X = np.repeat([[0.0], [1.0], [5.0]], 30, axis=0)
    with pytest.warns(UserWarning, match="3"):
        expected = own_model(5, max_leaves=None).fit(X)
    with pytest.warns(UserWarning, match="3") as told:
        found = fit_batches(own_model(5, max_leaves=None), X)
    same(found, expected)
    assert found.n_leaves_ == 3
    assert len(told) == 1
    assert found.n_clusters == 5
    with pytest.raises(ValueError, match="n_samples=2 must be at least n_clusters=8"):
        fit_batches(tc.ExKMC(base_tree=None), X[:2])


def test_more_rows_than_are_drawn_move_the_centers():
    rng = np.random.default_rng(21)
    centers = rng.normal(size=(5, 3)) * 4
    X = centers[rng.integers(0, 5, size=130_000)] + rng.normal(size=(130_000, 3))
    model = own_model(5, max_leaves=12, scale="standard")
    fit, checkpoints = Fit(model, n_features=3), 0
    while (question := fit.question()) is not None:
        copy = Fit.from_bytes(fit.to_bytes(), own_model(5, max_leaves=12, scale="standard"))
        assert copy.question().to_bytes() == question.to_bytes()
        checkpoints += 1
        fit.tell(question.answer(X[:50_000], part_id=0) + question.answer(X[50_000:], part_id=1))
    found = fit.result()
    assert checkpoints == fit.n_rounds
    expected = own_model(5, max_leaves=12, scale="standard").fit(X)
    # The k-means of all rows; the clusters are clear, so both find the same ones.
    assert found.reference_inertia_ == pytest.approx(expected.reference_inertia_, rel=1e-3)
    assert found.reference_inertia_ >= expected.reference_inertia_ * (1 - 1e-9)
    # About the centers of the last pass, by definition; and the tree about its own means.
    given = found._training.reference_centers
    apart = np.square((X[:, None] - given) / found.scale_).sum(axis=2)
    assert found.reference_inertia_ == pytest.approx(apart.min(axis=1).sum(), rel=1e-12)
    passed = np.array([X[apart.argmin(axis=1) == label].mean(axis=0) for label in range(5)])
    np.testing.assert_allclose(given, passed, rtol=0, atol=1e-3)  # centers have come to rest
    labels = found.predict(X)
    means = np.array([X[labels == label].mean(axis=0) for label in range(5)])
    np.testing.assert_allclose(found.cluster_centers_, means, rtol=1e-12)
    cost = np.square((X - means[labels]) / found.scale_).sum()
    assert found.inertia_ == pytest.approx(cost, rel=1e-10)
    # The same clusters given: the same tree.
    again = fit_batches(model_of(given, max_leaves=12, scale="standard"), X)
    assert again.rules().frame.equals(found.rules().frame)


def test_a_sample_that_says_little_is_told():
    n = 200_000
    places = np.arange(float(n))[:, None]
    fit = Fit(own_model(3), n_features=1)
    for _ in range(2):
        fit.tell(fit.question().answer(places, part_id=0))
    shift, scale, _, drawn, are_all = fit._core.wanted_rows()
    drawn = drawn[:, 0].astype(int)
    assert (shift.tolist(), scale.tolist(), are_all) == ([99900.0], [1.0], False)
    np.testing.assert_array_equal(drawn // 2, np.arange(n // 2))  # a row of each two
    assert 0.49 < (drawn % 2).mean() < 0.51
    # The others lie elsewhere.
    X = np.random.default_rng(22).normal(size=(n, 1)) + 8.0
    X[drawn] -= 8.0
    with pytest.warns(UserWarning, match=r"^The clusters of a sample cost \d+\.\d% more than what"):
        found = fit_batches(own_model(3), X)
    assert found.reference_inertia_ < 3 * n


def test_an_estimator_stays_as_it_was_until_the_result():
    rng = np.random.default_rng(12)
    X, centers = rows(rng, 200)
    model = model_of(centers).fit(X[:100])
    before = model.to_json()
    fit = Fit(model)
    fit.tell(fit.question().answer(X, part_id=0))
    assert model.to_json() == before
    model = converse(fit, X, [0, 200]) if fit.n_rounds == 0 else model
    while (question := fit.question()) is not None:
        fit.tell(question.answer(X, part_id=0))
    assert fit.result() is model
    with pytest.raises(AttributeError, match=r"fitted in parts(.|\n)*sink_parquet"):
        _ = model.labels_
    with pytest.raises(AttributeError, match="fitted in parts"):
        _ = model.reference_labels_
    np.testing.assert_array_equal(model.predict(X), model_of(centers).fit(X).labels_)
    assert model.fit(X).labels_.shape == (200,)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_fit_that_ends_early_leaves_the_estimator_as_it_was(error):
    X, centers = rows(np.random.default_rng(23), 300)
    for model in (model_of(centers), own_model()):
        model.fit(X[:100])
        before, state = model.to_json(), dict(model.__dict__)
        calls = []

        def batches(calls=calls):
            yield X[:150]
            calls.append(1)
            if len(calls) == 6:
                raise error("in the sixth round")
            yield X[150:]

        with pytest.raises(error, match="in the sixth round"):
            fit_batches(model, batches)
        assert model.to_json() == before
        assert all(model.__dict__[name] is value for name, value in state.items())
        assert len(model.__dict__) == len(state)


def test_rows_without_weight_and_without_rows_are_refused():
    X, centers = rows(np.random.default_rng(13), 30)
    for options in ({"sample_weight": np.zeros(30)}, {}):
        fit = Fit(model_of(centers))
        part = X if options else X[:0]
        with pytest.raises(ValueError, match="no rows with a positive weight"):
            fit.tell(fit.question().answer(part, part_id=0, **options))


def test_distances_that_overflow_are_an_error():
    X = np.array([[0.0], [1e200], [3.0]])
    with pytest.raises(ValueError, match="overflow float64"):
        fit_batches(model_of(np.array([[0.0], [1.0]])), [X])


# ---- batches ------------------------------------------------------------------------------------


@pytest.fixture
def table():
    rng = np.random.default_rng(14)
    X, centers = rows(rng, 3000, d=3)
    frame = pl.DataFrame(X, schema=["a", 'b "quoted"', "c"]).with_columns(
        pl.Series("w", rng.choice([0.0, 1.0, 2.5], size=3000))
    )
    return frame, centers


def test_batches_of_all_kinds_give_the_tree_of_memory(table, tmp_path):
    frame, centers = table
    plain = frame.drop("w")
    expected = model_of(centers).fit(plain)
    frame.drop("w").write_parquet(tmp_path / "all.parquet", row_group_size=700)
    (tmp_path / "parts").mkdir()
    for i in range(3):
        plain[1000 * i : 1000 * (i + 1)].write_parquet(tmp_path / "parts" / f"{i}.parquet")
    for batches in (
        plain,
        plain.lazy(),
        pl.scan_parquet(tmp_path / "all.parquet"),
        tmp_path / "all.parquet",
        str(tmp_path / "parts" / "*.parquet"),
        tmp_path / "parts",
        [tmp_path / "parts" / f"{i}.parquet" for i in range(3)],
        [plain[:10], plain[10:10], plain[10:]],
        lambda: (plain[start : start + 512] for start in range(0, 3000, 512)),
        lambda: plain.iter_slices(7),
    ):
        model = fit_batches(model_of(centers), batches)
        same(model, expected)
        assert list(model.feature_names_in_) == plain.columns
    arrays = fit_batches(model_of(centers), [plain.to_numpy()[:1], plain.to_numpy()[1:]])
    same(arrays, model_of(centers).fit(plain.to_numpy()))
    weighted = fit_batches(model_of(centers), frame.lazy(), sample_weight="w")
    same(weighted, model_of(centers).fit(plain, sample_weight=frame["w"]))


def test_csv_files_are_read(table, tmp_path):
    frame, centers = table
    frame = frame.rename({'b "quoted"': "b"})
    frame.drop("w").write_csv(tmp_path / "rows.csv")
    same(
        fit_batches(model_of(centers), tmp_path / "rows.csv"),
        model_of(centers).fit(frame.drop("w")),
    )


def test_files_of_a_folder_are_found_by_their_ending_in_any_case(table, tmp_path):
    frame, centers = table
    frame.drop("w").write_parquet(tmp_path / "ROWS.PARQUET")
    same(fit_batches(model_of(centers), tmp_path), fit_batches(model_of(centers), frame.drop("w")))


def test_errors_in_rows_of_later_batches_tell_where_these_begin(table):
    frame, centers = table
    plain = frame.drop("w")
    far = plain.with_columns(a=pl.when(pl.int_range(pl.len()) == 2).then(math.inf).otherwise("a"))
    for batches, message in (
        ([plain[:7], far], r"in row 2 \(.* This batch begins with row 7 of all rows\.$"),
        ([far, plain[:7]], r"in row 2 \(rows count from 0\)\. Fill .* columns\.$"),
        ([plain[:7], plain.drop("a")], r"lacks 1 of the 3 columns that are needed: 'a'\.$"),
    ):
        with pytest.raises(ValueError, match=message):
            fit_batches(model_of(centers), batches)


def test_labels_are_written_by_a_query(table, tmp_path):
    frame, centers = table
    plain = frame.drop("w")
    model = fit_batches(model_of(centers), plain.lazy())
    plain.lazy().with_columns(model.to_polars()).sink_parquet(tmp_path / "labels.parquet")
    written = pl.read_parquet(tmp_path / "labels.parquet").to_series(-1)
    np.testing.assert_array_equal(written.to_numpy(), model.predict(plain))


def test_sources_that_give_no_rows_are_refused(table, tmp_path):
    frame, centers = table
    model = model_of(centers)
    frame.write_parquet(tmp_path / "a.parquet")
    frame.write_csv(tmp_path / "a.csv")
    (tmp_path / "none.csv").touch()
    for batches, error, message in (
        ((part for part in [frame]), TypeError, "gives its rows once"),
        (7, TypeError, "Got int instead"),
        ([], TypeError, "Got list instead"),
        (tmp_path / "none.parquet", FileNotFoundError, "there is no such file"),
        (str(tmp_path / "*.none"), FileNotFoundError, "no file has such a name"),
        (tmp_path, ValueError, "all Parquet (.parquet) or all CSV"),
        (list, ValueError, "gives no rows"),
        (lambda: frame.lazy(), TypeError, "give the LazyFrame itself"),
        (lambda: frame, TypeError, "no list or generator of frames or arrays, but DataFrame"),
        (lambda: None, TypeError, "but NoneType"),
        ([frame.lazy()], TypeError, "give polars.concat(frames), which is one, as batches"),
        (lambda: [frame, frame.lazy()], TypeError, "or collect each"),
        (tmp_path / "none.csv", ValueError, "none.csv is empty: it has no columns"),
        (tmp_path / "a.parquet", ValueError, "column"),
    ):
        with pytest.raises(error) as caught:
            fit_batches(model, batches)
        assert message in str(caught.value), batches
    with pytest.raises(ValueError, match="sample_weight='v' is not a column"):
        fit_batches(model, frame.lazy(), sample_weight="v")
    calls = []

    def changing():
        calls.append(1)
        return [frame.drop("w").with_columns(pl.col("a") + len(calls))]

    with pytest.raises(ValueError, match=r"^batches has other rows than the first time"):
        fit_batches(model, changing, cache=None)


def test_progress_is_told_by_round(table, capsys):
    frame, centers = table
    fit_batches(model_of(centers, verbose=1), frame.drop("w"))
    told = capsys.readouterr()
    lines = (told.out + told.err).splitlines()
    assert any("round 1 of questions" in line for line in lines)
    assert "12 leaves, surrogate cost" in lines[-1]


def test_lost_clusters_are_told():
    X = np.repeat(np.arange(4.0), 50)[:, None]
    centers = np.array([[0.0], [1.0], [2.0], [3.0]])
    with warnings.catch_warnings(record=True) as of_memory:
        warnings.simplefilter("always")
        model_of(centers, max_leaves=4, max_depth=1).fit(X)
    with warnings.catch_warnings(record=True) as of_parts:
        warnings.simplefilter("always")
        fit_batches(model_of(centers, max_leaves=4, max_depth=1), X)
    assert [str(w.message) for w in of_parts] == [str(w.message) for w in of_memory]
    assert len(of_parts) == 1
