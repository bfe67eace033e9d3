"""Fits in parts of rows that bring the labels of their clusters."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import treeclust_rs as tc
from parts_cases import KINDS, answers, converse, damaged, parts_of, rows, same
from treeclust_rs.parts import Answer, Fit, Question, fit_batches

pytestmark = [
    pytest.mark.filterwarnings("ignore:Only .* clusters:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*nearer to the center of another:UserWarning"),
]


def model_of(**options):
    return tc.ExKMC(base_tree=None, **{"max_leaves": 12, **options})


def labels_of(rng, n, kind="integers"):
    """Return labels of many kinds, some of them noise."""
    codes = rng.choice([-1, 0, 1, 2], size=n, p=[0.1, 0.3, 0.4, 0.2])
    codes[:3] = [0, 1, 2]
    if kind == "integers":
        return codes
    if kind == "wide integers":
        return np.where(codes < 0, -1, codes * 10**17 - 7)
    if kind == "unsigned integers":
        return np.array([2**63 - 1, 3, 2**40], dtype=np.uint64)[np.abs(codes)]
    if kind == "floats":
        return codes.astype(float)
    if kind == "booleans":
        return codes > 0
    names = np.array(["b", "é", "a\x00b"], dtype=object)
    named = names[np.abs(codes)]
    if kind == "objects":
        named[codes < 0] = -1
        return named
    return named.astype(str)


LABELS = [
    "integers",
    "wide integers",
    "unsigned integers",
    "floats",
    "booleans",
    "objects",
    "strings",
]


@pytest.mark.parametrize("bins", [None, (2, 1)])
@pytest.mark.parametrize("kind", KINDS)
def test_the_tree_is_that_of_memory(kind, bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(KINDS.index(kind))
    for n, scale in ((7, None), (60, "standard"), (600, [2.0, 1.0, 0.3, 1e3])):
        if kind in ("huge row", "tiny"):
            scale = None  # squares of the cells are no doubles
        X, _ = rows(rng, n, kind=kind)
        labels = labels_of(rng, n)
        weight = rng.choice([0.0, 0.1, 1.0, 3.7], size=n) if n % 2 else None
        if weight is not None:
            weight[:3] = 1.0
        expected = model_of(reference=labels, scale=scale).fit(X, sample_weight=weight)
        for n_parts in (1, 2, 6):
            fit = Fit(model_of(scale=scale), n_features=4, labels=True)
            found = converse(fit, X, parts_of(rng, n, n_parts), weight, rng, labels)
            same(found, expected)
            assert found.classes_.tolist() == expected.classes_.tolist()
            assert not hasattr(found, "labels_")


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_all_types_are_those_of_memory(kind):
    rng = np.random.default_rng(LABELS.index(kind))
    X, _ = rows(rng, 200)
    labels = labels_of(rng, 200, kind)
    expected = model_of(reference=labels).fit(X)
    fit = Fit(model_of(), n_features=4, labels=True)
    found = converse(fit, X, [0, 50, 50, 51, 200], None, rng, labels)
    same(found, expected)
    assert found.classes_.dtype == expected.classes_.dtype
    assert found.predict(X).tolist() == expected.predict(X).tolist()


def test_clusters_far_from_the_origins_keep_their_digits():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2)) + np.repeat([0.0, 1e9, -3e12], 100)[:, None]
    labels = np.repeat([0, 1, 2], 100)
    for weight in (None, rng.uniform(size=300)):
        expected = model_of(reference=labels).fit(X, sample_weight=weight)
        fit = Fit(model_of(), n_features=2, labels=True)
        same(converse(fit, X, [0, 7, 150, 300], weight, rng, labels), expected)


def test_one_class_and_classes_without_weight():
    rng = np.random.default_rng(4)
    X, _ = rows(rng, 90)
    some = np.where(np.arange(90) % 3 == 1, 0.0, 1.0)
    for labels, weight in (
        (np.zeros(90, dtype=int), None),
        (np.arange(90) % 3, some),
        (np.where(np.arange(90) < 60, -1, 5), None),
    ):
        expected = model_of(reference=labels).fit(X, sample_weight=weight)
        fit = Fit(model_of(), n_features=4, labels=True)
        found = converse(fit, X, [0, 30, 60, 90], weight, rng, labels)
        same(found, expected)
        assert found.n_clusters_ == len(found.classes_)


def test_what_labels_do_not_follow_is_told_as_in_memory():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 3))
    labels = rng.integers(0, 5, size=400)
    weight = rng.uniform(size=400)
    told = []
    for fit in (
        lambda: model_of(reference=labels).fit(X, sample_weight=weight),
        lambda: converse(
            Fit(model_of(), n_features=3, labels=True), X, [0, 9, 400], weight, rng, labels
        ),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit()
        told.append([str(warning.message) for warning in caught])
    assert told[0] == told[1]
    assert "nearer to the center of another cluster" in told[0][0]


def test_checkpoints_and_bytes_in_every_round():
    rng = np.random.default_rng(6)
    X, _ = rows(rng, 300)
    X[:100] += 1e11  # so that means are taken about the means themselves, too
    labels = np.where(np.arange(300) < 100, "far", labels_of(rng, 300, "strings"))
    options = {"scale": [1.0, 2.0, 1.0, 1.0]}
    fit, n_rounds = Fit(model_of(**options), n_features=4, labels=True), 0
    while (question := fit.question()) is not None:
        data = fit.to_bytes()
        fit = Fit.from_bytes(data, model_of(**options))
        assert fit.to_bytes() == data
        assert fit.question().to_bytes() == question.to_bytes()
        assert pickle.loads(pickle.dumps(question)).wants_labels
        a, b, c = answers(fit.question(), X, [0, 90, 200, 300], None, labels)
        whole = ((a + b) + c).to_bytes()
        assert (c + (b + a)).to_bytes() == whole
        n_rounds += 1
        for read, of in (
            (Question.from_bytes, question.to_bytes()),
            (Answer.from_bytes, whole),
            (lambda data: Fit.from_bytes(data, model_of(**options)), data),
        ):
            list(damaged(rng, of, read, 10, 20))
        fit.tell(Answer.from_bytes(whole))
    assert n_rounds == fit.n_rounds > 8
    same(fit.result(), model_of(reference=labels, **options).fit(X))
    with pytest.raises(ValueError, match="fit with other parameters, centers or columns"):
        Fit.from_bytes(fit_bytes(X, labels), model_of(max_leaves=3))


def fit_bytes(X, labels):
    fit = Fit(model_of(), n_features=4, labels=True)
    fit.tell(fit.question().answer(X, part_id=0, labels=labels))
    return fit.to_bytes()


def test_labels_that_do_not_suit_are_refused():
    rng = np.random.default_rng(7)
    X, centers = rows(rng, 40)
    integers, words = np.arange(40) % 3, np.array(list("abcd") * 10)

    def begin(**options):
        return Fit(model_of(**options), n_features=4, labels=True)

    question = begin().question()
    for labels, error, message in (
        (None, ValueError, "The fit wants the labels of the rows"),
        (integers[:3], ValueError, r"labels must have the shape \(40,\)"),
        (np.full(40, 0.5), ValueError, "labels must hold integers or strings"),
        (integers.astype(np.uint64) + 2**63, ValueError, "must fit into 64-bit integers"),
        (np.where(integers > 0, words, None), TypeError, "labels has no label in row 0"),
    ):
        with pytest.raises(error, match=message):
            question.answer(X, part_id=0, labels=labels)
    with pytest.raises(ValueError, match="more than 4096 different values"):
        question.answer(np.zeros((5000, 4)), part_id=0, labels=np.arange(5000))
    one = question.answer(np.zeros((3000, 4)), part_id=0, labels=np.arange(3000))
    other = question.answer(np.zeros((3000, 4)), part_id=1, labels=np.arange(3000, 6000))
    with pytest.raises(ValueError, match="more than 4096 different values"):
        one + other
    one = question.answer(X, part_id=0, labels=integers)
    other = question.answer(X, part_id=1, labels=words)
    with pytest.raises(ValueError, match=r"integers in some rows \(0\) and text in others"):
        one + other
    noise = np.full(40, -1)
    with pytest.raises(ValueError, match="a positive weight and a label other than -1"):
        begin().tell(question.answer(X, part_id=0, labels=noise))
    for options, message in (
        ({"n_clusters": 4}, "n_clusters=4, but the reference has 3 clusters"),
        ({"max_leaves": 2}, "max_leaves=2 must be at least n_clusters=3"),
    ):
        fit = begin(**options)
        fit.tell(fit.question().answer(X, part_id=0, labels=integers))
        with pytest.raises(ValueError, match=message):
            fit.question()
    with pytest.raises(ValueError, match="The fit takes no labels"):
        Fit(model_of(reference=centers)).question().answer(X, part_id=0, labels=integers)
    with pytest.raises(ValueError, match="bring labels, and the model has a reference"):
        Fit(model_of(reference=centers), labels=True)


def test_labels_that_change_are_refused():
    rng = np.random.default_rng(8)
    X, _ = rows(rng, 40)
    labels = np.arange(40) % 3
    fit = Fit(model_of(), n_features=4, labels=True)
    fit.tell(fit.question().answer(X, part_id=0, labels=labels))
    question = fit.question()
    with pytest.raises(ValueError, match="The label 7 was not there the first time"):
        question.answer(X, part_id=0, labels=np.where(labels == 1, 7, labels))
    with pytest.raises(ValueError, match="had another type"):
        question.answer(X, part_id=0, labels=labels.astype(str))
    with pytest.raises(ValueError, match="Part 0 has other rows than the first time"):
        fit.tell(question.answer(X, part_id=0, labels=labels[::-1]))
    fit.tell(question.answer(X, part_id=0, labels=labels))


# ---- columns ------------------------------------------------------------------------------------


@pytest.fixture
def frame():
    rng = np.random.default_rng(9)
    X, _ = rows(rng, 700, d=3)
    return pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(
        pl.Series("segment", labels_of(rng, 700, "strings")),
        pl.Series("w", rng.choice([0.5, 1.0, 2.0], size=700)),
        pl.Series("code", labels_of(rng, 700)),
    )


def test_columns_are_named(frame, tmp_path):
    plain = frame.select("a", "b", "c")
    for reference in ("segment", "code"):
        rest = frame.drop({"segment", "code"} - {reference})
        path = tmp_path / f"{reference}.parquet"
        rest.write_parquet(path)
        expected = model_of(reference=frame[reference]).fit(plain)
        weighted = model_of(reference=frame[reference]).fit(plain, sample_weight=frame["w"])
        for batches in (rest.lazy(), path, [rest[:9], rest[9:]], rest.to_arrow(), rest.to_pandas()):
            found = fit_batches(model_of(), batches, sample_weight="w", reference=reference)
            same(found, weighted)
            assert list(found.feature_names_in_) == ["a", "b", "c"]
        found = fit_batches(model_of(), rest.drop("w").lazy(), reference=reference)
        same(found, expected)
    categories = frame.select("a", "b", "c", pl.col("segment").cast(pl.Categorical))
    found = fit_batches(model_of(), categories, reference="segment")
    same(found, model_of(reference=frame["segment"]).fit(plain))


def test_columns_that_lack_are_named(frame):
    for options, message in (
        ({"reference": "group"}, r"reference='group' is not a column of the rows, which have 'a'"),
        ({"reference": "w", "sample_weight": "w"}, "sample_weight and reference are one column"),
    ):
        with pytest.raises(ValueError, match=message):
            fit_batches(model_of(), frame.lazy(), **options)
    with pytest.raises(
        ValueError, match="reference='w' is not a column of the rows, which have no"
    ):
        fit_batches(model_of(), frame.select("a", "b").to_numpy(), reference="w")


def test_engines_take_a_column_of_labels(frame):
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    rest = frame.drop("code")
    expected = model_of(reference=frame["segment"]).fit(
        frame.select("a", "b", "c"), sample_weight=frame["w"]
    )
    collection = dd.from_pandas(pd.DataFrame(rest.to_pandas()), npartitions=5, sort=False)
    with dask.config.set(scheduler="threads"):
        found = tc.dask.fit(model_of(), collection, sample_weight="w", reference="segment")
    same(found, expected)
