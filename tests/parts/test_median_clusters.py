"""Fits in parts by k-medians of rows that bring their labels, and with IMM's base."""

from functools import partial

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from parts_cases import same, told_or_refused
from parts_frames import (
    COLUMNS,
    both,
    centers_for,
    converse,
    ends_of,
    in_memory,
    mixed_frame,
    parts_of,
    with_gaps,
)
from treeclust_rs.parts import Fit, fit_batches

pytestmark = [
    pytest.mark.filterwarnings("ignore:Only .* clusters:UserWarning"),
    pytest.mark.filterwarnings("ignore:Only .* distinct cluster:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*nearer to the center of another:UserWarning"),
]

SCALES = [None, "standard", "robust"]
WEIGHTS = ([0.0, 1.0, 2.0], [0.1, 0.2, 0.3], [0.5], [0.1, 3.7, 1e6])


def maker(rng, trial, k=None, *, with_base, **options):
    """Return a maker of ExKMC or, with a base now and then, of IMM."""
    options |= {"criterion": "kmedians", "scale": SCALES[trial % 3], "random_state": 1, "n_jobs": 1}
    if with_base and trial % 3 == 1:
        score = ["mistakes", "emn"][trial // 3 % 2]
        return partial(tc.IMM, k, cut_score=score, **options)
    options |= {
        "base_tree": "imm" if with_base else None,
        "cuts": ["threshold", "interval"][trial // 2 % 2],
        "min_samples_leaf": int(rng.integers(1, 6)),
        "max_leaves": 6 + trial % 4,
    }
    return partial(tc.ExKMC, k, **options)


def labels_of(rng, n):
    """Return labels, some of them noise, each with a row."""
    labels = rng.choice([-1, 0, 1, 5], size=n, p=[0.1, 0.3, 0.4, 0.2])
    labels[:3] = [0, 1, 5]
    return labels


def weight_of(rng, trial, n):
    """Return no weights, or some of which the first three are 1."""
    if trial % 2 == 0:
        return None
    weight = rng.choice(WEIGHTS[trial // 2 % 4], size=n)
    weight[:3] = 1.0
    return weight


@pytest.mark.parametrize("bins", [None, (2, 1), (5, 20)])
@pytest.mark.parametrize("with_base", [False, True])
def test_labels_of_numbers_give_the_tree_of_memory(with_base, bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(0)
    for trial in range(8):
        n = int(rng.integers(12, 200))
        X = with_gaps(rng, n, 4, [0.0, 0.2, 0.6][trial % 3], ties=trial % 4 == 0)
        labels = labels_of(rng, n)
        X[:, 0] = np.arange(n) % 17 + 20.0 * (labels == 1) + 40.0 * (labels == 5)
        if trial % 3 == 1:
            X[labels == 1, 2] = np.nan  # a label without a value: the median of all rows
        if trial % 4 == 3:
            X += 1e8
        make = maker(rng, trial, with_base=with_base)
        ends = ends_of(rng, n, 4)
        assert both(make, X, weight_of(rng, trial, n), ends, rng, labels=labels)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("with_base", [False, True])
def test_labels_of_mixed_tables_give_the_tree_of_memory(with_base, columns, monkeypatch):
    rng = np.random.default_rng(list(COLUMNS).index(columns))
    for trial in range(6):
        monkeypatch.setattr(Fit, "_bins", [None, (3, 2)][trial // 3])
        n = int(rng.integers(12, 120))
        frame = mixed_frame(rng, n, gaps=[0, 0.15, 0.4][trial % 3], n_levels=2 + trial)
        frame, labels = frame.select(COLUMNS[columns]), labels_of(rng, n)
        place = np.arange(n) % 5 + 20.0 * (labels == 1) + 40.0 * (labels == 5)
        if with_base:  # centers that are distinct
            frame = frame.with_columns(place=place)
        if trial % 4 == 1:  # a label without a level
            first = frame.columns[0]
            frame = frame.with_columns(
                pl.when(pl.Series(labels == 5)).then(None).otherwise(pl.col(first)).alias(first)
            )
        make = maker(rng, trial, with_base=with_base)
        ends = ends_of(rng, n, 4)
        assert both(make, frame, weight_of(rng, trial, n), ends, rng, labels=labels)


@pytest.mark.parametrize("bins", [None, (3, 2)])
@pytest.mark.parametrize("columns", [*COLUMNS, "numbers"])
def test_bases_give_the_tree_of_memory(columns, bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(list(COLUMNS).index(columns) if columns in COLUMNS else 9)
    n_trees = 0
    for trial in range(4):
        n, k = int(rng.integers(12, 120)), int(rng.integers(2, 5))
        frame = mixed_frame(rng, n, gaps=[0, 0.15, 0.4][trial % 3], n_levels=2 + trial)
        frame = frame.select(COLUMNS.get(columns, ["amount", "count", "stay"]))
        references = [maker(rng, trial, 2, with_base=True)]
        if columns != "one level column":
            centers = centers_for(rng, frame, k)
            references.append(maker(rng, trial, with_base=True, reference=centers))
        for make in references:
            n_trees += both(make, frame, weight_of(rng, trial, n), ends_of(rng, n, 4), rng)
    assert n_trees >= 4


def test_a_base_parts_own_clusters_by_the_shares_of_their_levels():
    # Both clusters have more rows of "a": the medians do not tell them apart in this column.
    rng = np.random.default_rng(3)
    n = 300
    far = np.arange(n) % 2 == 1
    kind = np.where(rng.random(n) < np.where(far, 0.45, 0.05), "b", "a")
    frame = pl.DataFrame({"place": 9.0 * far + rng.normal(size=n).round(1), "kind": kind})
    make = partial(tc.IMM, 2, criterion="kmedians", random_state=0, n_jobs=1)
    assert both(make, frame, None, [0, 7, 7, 190, n], rng)


@pytest.mark.parametrize("cuts", ["threshold", "interval"])
@pytest.mark.parametrize("scale", [None, "standard", "robust"])
@pytest.mark.parametrize("criterion", ["kmeans", "kmedians"])
def test_labels_take_few_rounds(criterion, scale, cuts):
    rng = np.random.default_rng(4)
    for n, leaves in ((400, 4), (400, 8), (3000, 20), (20_000, 4)):
        frame = mixed_frame(rng, n, gaps=0.2 * (leaves % 8 == 4))
        middle = frame["amount"].median()
        labels = (
            frame.select(
                (pl.col("amount") > middle).fill_null(False) * 1
                + (pl.col("count") == 3).fill_null(False) * 2
            )
            .to_series()
            .to_numpy()
        )
        model = tc.ExKMC(
            criterion=criterion, base_tree=None, max_leaves=leaves, scale=scale, cuts=cuts, n_jobs=1
        )
        fit, n_ranks = Fit(model, feature_names=frame.columns, labels=True), 0
        while (question := fit.question()) is not None:
            fit.tell(question.answer(frame, part_id=0, labels=labels))
            n_ranks += question._core.is_about_ranks
        # Of the labels' medians, with the quartiles, and of the clusters' medians.
        assert n_ranks <= (6 if criterion == "kmedians" else 3)
        assert fit.n_rounds <= 2 * fit.result().tree_.max_depth + 10


def test_questions_of_medians_are_few():
    rng = np.random.default_rng(4)
    frame, labels = mixed_frame(rng, 400), labels_of(rng, 400)
    model = tc.ExKMC(criterion="kmedians", base_tree=None, max_leaves=8, n_jobs=1)
    fit, kinds = Fit(model, feature_names=frame.columns, labels=True), []
    while (question := fit.question()) is not None:
        fit.tell(question.answer(frame, part_id=0, labels=labels))
        kinds.append(question._core.is_about_ranks)
    assert sum(kinds) <= 8
    assert fit.n_rounds <= 2 * fit.result().tree_.max_depth + 10


@pytest.mark.filterwarnings("ignore:X has levels that ExKMC did not see:UserWarning")  # damaged
@pytest.mark.filterwarnings("ignore:X has levels that IMM did not see:UserWarning")
@pytest.mark.parametrize("with_base", [False, True])
@pytest.mark.parametrize("columns", ["mixed", "levels"])
def test_checkpoints_and_damaged_bytes(columns, with_base, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", (4, 6))
    rng = np.random.default_rng(5)
    n = 120
    frame = mixed_frame(rng, n).select(COLUMNS[columns])
    labels = maker(rng, 0, 3, with_base=False)().fit(frame).reference_labels_
    make = maker(rng, 0, with_base=with_base)
    expected = in_memory(partial(make, reference=labels), frame, None)
    fit = Fit(make(), feature_names=frame.columns, labels=True)
    found = converse(
        fit, parts_of(frame, [0, 50, n]), None, rng, make, parts_of(labels, [0, 50, n])
    )
    same(found, expected)
    own = maker(rng, 0, 3, with_base=with_base)
    fit = Fit(own(), feature_names=frame.columns)
    while fit.question() is not None:
        fit.tell(told_or_refused(rng, fit, own, frame))
    assert fit.result().n_leaves_ >= 2


def test_equal_medians_of_labels_are_refused_as_in_memory():
    frame = pl.DataFrame({"a": ["x", "x", "y", "x"] * 5})
    labels = np.arange(20) % 3
    make = partial(tc.IMM, criterion="kmedians")
    message = r"^The centers of the clusters 0 and 1 are equal"
    with pytest.raises(ValueError, match=message):
        make(reference=labels).fit(frame)
    rows = frame.with_columns(label=labels)
    with pytest.raises(ValueError, match=message):
        fit_batches(make(), rows.lazy(), reference="label")


def test_labels_are_a_column_of_batches(tmp_path):
    rng = np.random.default_rng(7)
    frame, labels = mixed_frame(rng, 250), labels_of(rng, 250)
    frame.with_columns(label=labels).write_parquet(tmp_path / "rows.parquet")
    make = partial(tc.ExKMC, criterion="kmedians", max_leaves=6)
    found = fit_batches(make(), tmp_path / "rows.parquet", reference="label")
    expected = make(reference=labels).fit(frame)
    same(found, expected)
    assert found.classes_.tolist() == [0, 1, 5]
    np.testing.assert_array_equal(found.predict(frame), expected.predict(frame))
