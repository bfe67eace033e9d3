"""Fits in parts with IMM's base: the tree of memory, however the rows are shared out."""

import pickle
import warnings
from functools import reduce
from operator import add

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from parts_cases import KINDS, answers, converse, damaged, parts_of, rows, same
from treeclust_rs.parts import Answer, Fit, Question, fit_batches

pytestmark = [
    pytest.mark.filterwarnings("ignore:Only .* clusters:UserWarning"),
    pytest.mark.filterwarnings("ignore:Only .* distinct cluster:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*nearer to the center of another:UserWarning"),
]


def random_problem(seed):
    """Return rows of a kind with weights and labels, and what a model of them is made with."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    n, k, d = (int(rng.choice(sizes)) for sizes in ([5, 20, 60, 300], range(1, 8), range(2, 5)))
    X, centers = rows(rng, n, d=d, k=k, kind=kind)
    weight = rng.choice([0.0, 0.1, 1.0, 3.7, 1e-9], size=n) if rng.random() < 0.4 else None
    options, labels, reference = {}, None, None
    if rng.random() < 0.4 and kind not in ("huge row", "tiny"):
        options["scale"] = "robust" if seed % 3 == 0 else "standard"
    how = rng.integers(0, 4)
    if how == 0:
        reference = centers
    elif how == 1:  # some centers without rows
        reference = centers + 0.3 * rng.normal(size=centers.shape) * np.abs(centers)
    elif how == 2:
        labels = rng.integers(-1, k, size=n)
        if rng.random() < 0.7:
            with np.errstate(all="ignore"):
                labels = np.square(X[:, None] - centers).sum(axis=2).argmin(axis=1)
            labels[rng.random(n) < 0.1] = -1
        labels[0] = 0
        if weight is not None:
            weight[0] = 1.0
    else:
        options |= {"n_clusters": min(k, n), "random_state": 0}
    if rng.random() < 0.4:
        model = tc.IMM
        options["cut_score"] = ["mistakes", "emn"][int(rng.integers(0, 2))]
    else:
        model = tc.ExKMC
        options["max_leaves"] = [None, k + 3, 3 * k + 2, float("inf")][int(rng.integers(0, 4))]
        options["min_samples_leaf"] = int(rng.integers(1, 6))
        options["max_depth"] = [None, 3][int(rng.integers(0, 2))]
    return X, weight, labels, reference, lambda given: model(reference=given, **options)


def outcome(fit):
    """Return a fitted model, or the error of a fit."""
    try:
        return fit()
    except (ValueError, TypeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("seed", range(96))
def test_the_tree_is_that_of_memory(seed, monkeypatch):
    rng = np.random.default_rng([seed, 1])
    monkeypatch.setattr(Fit, "_bins", [None, (2, 1), (5, 20), (16, 3)][seed // len(KINDS) % 4])
    X, weight, labels, reference, make = random_problem(seed)
    given = reference if labels is None else labels
    expected = outcome(lambda: make(given).fit(X, sample_weight=weight))

    def in_parts():
        fit = Fit(make(reference), n_features=X.shape[1], labels=labels is not None)
        ends = parts_of(rng, len(X), int(rng.integers(1, 7)))
        return converse(fit, X, ends, weight, rng, labels)

    found = outcome(in_parts)
    if isinstance(expected, tuple):
        assert found == expected
    else:
        same(found, expected)


def centers_of(X, rng, k):
    return np.unique(X[rng.choice(len(X), k, replace=False)], axis=0)


def test_rows_that_a_cut_has_separated_narrow_the_gaps_below():
    """Of separated rows the widest part of a gap is found by smaller and smaller ranges."""
    rng = np.random.default_rng(1)
    n = 6000
    X = np.column_stack([rng.choice([0.0, 10.0], size=n), rng.normal(size=n)])
    X[:, 1] += np.where(X[:, 0] > 5, 40.0, 0.0)
    # Rows of the left cluster far to the right, in all places between the two centers there.
    far = rng.random(n) < 0.4
    X[far] = np.column_stack([np.full(far.sum(), 10.0), rng.uniform(0, 40, size=far.sum())])
    centers = np.array([[0.0, 0.0], [10.0, 60.0], [10.0, 40.0], [4.0, 0.0]])
    for bins in (None, (2, 1), (16, 5)):
        Fit._bins, before = bins, Fit._bins
        try:
            for weight in (None, rng.uniform(0.5, 2.0, size=n)):
                expected = tc.IMM(reference=centers).fit(X, sample_weight=weight)
                fit = Fit(tc.IMM(reference=centers))
                same(converse(fit, X, [0, 2500, n], weight, rng), expected)
        finally:
            Fit._bins = before


@pytest.mark.parametrize("cut_score", ["mistakes", "emn"])
def test_many_rows_take_few_rounds(cut_score):
    rng = np.random.default_rng(2)
    for n in (4_000, 40_000):
        X = rng.normal(size=(n, 5)) + 3.0 * rng.normal(size=(9, 5))[rng.integers(0, 9, size=n)]
        centers = centers_of(X, rng, 9)
        for model in (
            lambda centers=centers: tc.IMM(reference=centers, cut_score=cut_score),
            lambda centers=centers: tc.ExKMC(reference=centers, max_leaves=20),
        ):
            fit = Fit(model())
            while (question := fit.question()) is not None:
                fit.tell(
                    question.answer(X[: n // 2], part_id=0)
                    + question.answer(X[n // 2 :], part_id=1)
                )
            found = fit.result()
            same(found, model().fit(X))
            assert fit.n_rounds <= 2 * found.tree_.max_depth + 10


def test_checkpoints_and_bytes_in_every_round():
    rng = np.random.default_rng(3)
    X, _ = rows(rng, 500, k=6)
    centers = centers_of(X, rng, 6)
    for make in (
        lambda: tc.IMM(reference=centers, cut_score="emn"),
        lambda: tc.ExKMC(reference=centers, max_leaves=14),
        lambda: tc.ExKMC(5, random_state=0, max_leaves=9),
    ):
        Fit._bins = (5, 20)
        try:
            fit, n_rounds = Fit(make(), n_features=4), 0
            while (question := fit.question()) is not None:
                data = fit.to_bytes()
                fit = Fit.from_bytes(data, make())
                assert fit.to_bytes() == data
                assert fit.question().to_bytes() == question.to_bytes()
                assert pickle.loads(pickle.dumps(question)).to_bytes() == question.to_bytes()
                a, b, c = answers(fit.question(), X, [0, 90, 91, 500])
                whole = ((a + b) + c).to_bytes()
                assert (c + (b + a)).to_bytes() == whole
                assert Answer.from_bytes(whole).to_bytes() == whole
                n_rounds += 1
                for read, of in (
                    (Question.from_bytes, question.to_bytes()),
                    (Answer.from_bytes, whole),
                    (lambda data, make=make: Fit.from_bytes(data, make()), data),
                ):
                    list(damaged(rng, of, read, 6, 20))
                fit.tell(Answer.from_bytes(whole))
            same(fit.result(), make().fit(X))
            assert n_rounds == fit.n_rounds
        finally:
            Fit._bins = None


def test_centers_that_are_not_distinct_are_refused_as_in_memory():
    X = np.repeat([[0.0, 1.0], [1.0, 1.0], [5.0, 2.0]], 21, axis=0)
    labels = np.arange(63) % 3  # the clusters have the same means
    with pytest.raises(ValueError, match="equal") as of_memory:
        tc.ExKMC(reference=labels).fit(X)
    fit = Fit(tc.ExKMC(), n_features=2, labels=True)
    with pytest.raises(ValueError, match="equal") as of_parts:
        converse(fit, X, [0, 20, 63], None, None, labels)
    assert str(of_parts.value) == str(of_memory.value)
    # Distinct by their last digits alone.
    X[:, 1] = 1.0
    centers = np.array([[0.0, 1.0], [np.nextafter(5.0, 6.0), 1.0], [5.0, 1.0]])
    expected = tc.ExKMC(reference=centers).fit(X)
    same(converse(Fit(tc.ExKMC(reference=centers)), X, [0, 7, 63]), expected)


def test_lost_clusters_are_told_as_in_memory():
    rng = np.random.default_rng(4)
    X = np.repeat(rng.normal(size=(4, 3)), 30, axis=0)
    for make in (
        lambda: tc.IMM(reference=np.vstack([X[::30], X[:1] + 50.0, X[:1] - 70.0])),
        lambda: tc.ExKMC(7, random_state=0),
    ):
        told = []
        for fit in (lambda m=make: m().fit(X), lambda m=make: fit_batches(m(), [X[:50], X[50:]])):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                told.append((fit().to_json(), [str(warning.message) for warning in caught]))
        assert told[0] == told[1]


def test_batches_and_columns_of_labels():
    rng = np.random.default_rng(5)
    X, _ = rows(rng, 2000, d=3)
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    model = tc.ExKMC(5, random_state=0, max_leaves=9)
    same(fit_batches(model, frame.lazy()), tc.ExKMC(5, random_state=0, max_leaves=9).fit(frame))
    labels = tc.IMM(6, random_state=1).fit(frame).labels_
    labelled = frame.with_columns(pl.Series("group", [f"g{label}" for label in labels]))
    found = fit_batches(tc.IMM(), labelled.lazy(), reference="group")
    same(found, tc.IMM(reference=labelled["group"]).fit(frame))
    assert found.n_leaves_ == 6


def test_more_rows_than_are_drawn_have_a_base():
    rng = np.random.default_rng(6)
    centers = 6.0 * rng.normal(size=(4, 3))
    X = centers[rng.integers(0, 4, size=110_000)] + rng.normal(size=(110_000, 3))
    fit = Fit(tc.IMM(4, random_state=0), n_features=3)
    while (question := fit.question()) is not None:
        fit.tell(reduce(add, answers(question, X, [0, 60_000, 110_000])))
    found = fit.result()
    again = tc.IMM(reference=found._training.reference_centers).fit(X)
    assert found.rules().frame.equals(again.rules().frame)
