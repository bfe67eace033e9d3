"""Fits in parts by k-medians of tables with gaps, levels and times."""

from functools import partial

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from parts_cases import BINS, same, told_or_refused
from parts_frames import (
    COLUMNS,
    answers,
    both,
    centers_for,
    converse,
    ends_of,
    mixed_frame,
    parts_of,
    with_gaps,
)
from treeclust_rs.parts import Answer, Fit, fit_batches

pytestmark = [
    pytest.mark.filterwarnings("ignore:Only .* clusters:UserWarning"),
    pytest.mark.filterwarnings("ignore:Only .* distinct cluster:UserWarning"),
]

WEIGHTS = ([0.0, 1.0, 2.0], [0.1, 0.2, 0.3], [0.5], [0.0, 0.1, 3.7, 1e6])


def medians(k=None, **options):
    return tc.ExKMC(k, **{"criterion": "kmedians", "base_tree": None, "n_jobs": 1, **options})


def options_of(rng, trial, k):
    """Return options of growth."""
    return {
        "scale": [None, "standard", "robust"][trial % 3],
        "max_leaves": k + int(rng.integers(0, 2 * k + 1)),
        "min_samples_leaf": int(rng.integers(1, 6)),
        "cuts": ["threshold", "interval"][trial // 2 % 2],
        "random_state": trial,
    }


@pytest.mark.parametrize("bins", BINS)
def test_gaps_give_the_tree_of_memory(bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(0)
    n_trees = 0
    for trial in range(12):
        n = int(rng.integers(8, 200))
        X = with_gaps(rng, n, 4, rng.choice([0.05, 0.3, 0.8]), ties=trial % 3 == 0)
        if trial % 4 == 1:
            X[:, 2] = np.nan
        if trial % 4 == 3:
            X += 1e8
        X[:2, 0] = [0.0, -0.0]
        weight = rng.choice(WEIGHTS[trial % len(WEIGHTS)], size=n) if trial % 2 else None
        k = int(rng.integers(2, 7))
        centers = np.nanmean(X) + 2.0 * rng.normal(size=(k, 4))
        for of_model in ({"reference": centers}, {"k": k}):
            make = partial(medians, **of_model, **options_of(rng, trial, k))
            n_trees += both(make, X, weight, ends_of(rng, n, 4), rng)
    assert n_trees > 18


@pytest.mark.parametrize("bins", [None, (3, 2)])
@pytest.mark.parametrize("columns", COLUMNS)
def test_mixed_tables_give_the_tree_of_memory(columns, bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(list(COLUMNS).index(columns))
    n_trees = 0
    for trial in range(6):
        n = int(rng.integers(12, 160))
        frame = mixed_frame(rng, n, gaps=[0, 0.15, 0.5][trial % 3], n_levels=1 + trial)
        frame = frame.select(COLUMNS[columns])
        if trial % 4 == 2:
            frame = frame[rng.integers(0, max(n // 6, 4), size=n).tolist()]
        weight = rng.choice(WEIGHTS[trial % 4], size=n) if trial % 2 else None
        k = int(rng.integers(2, 6))
        for of_model in ({"reference": centers_for(rng, frame, k)}, {"k": 2}):
            make = partial(medians, **of_model, **options_of(rng, trial, k))
            n_trees += both(make, frame, weight, ends_of(rng, n, 4), rng)
    assert n_trees > 8


@pytest.mark.parametrize("bins", BINS)
def test_clusters_without_a_cell_have_the_median_of_all_rows(bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(2)
    n = 200
    group = rng.integers(0, 3, size=n)
    amount = np.where(group == 2, None, rng.integers(0, 9, size=n).astype(float))
    frame = pl.DataFrame(
        {
            "place": group * 10.0,
            "amount": pl.Series(amount.tolist(), dtype=pl.Float64),
            "kind": np.where(group == 1, None, rng.choice(["b", "a"], size=n, p=[0.7, 0.3])),
            "none": pl.Series([None] * n, dtype=pl.Float64),
            "empty": pl.Series([None] * n, dtype=pl.String),
        },
        strict=False,
    )
    # The last cluster has no row, the third no amount, the second no kind.
    centers = np.zeros((4, 5))
    centers[:, 0] = [0.0, 10.0, 20.0, 1e6]
    centers[:, 2] = 1.0
    weight = rng.choice([1.0, 2.0], size=n)
    for of_rows in (None, weight):
        make = partial(medians, reference=centers, max_leaves=4)
        expected = make().fit(frame, sample_weight=of_rows)
        given = np.ones(n) if of_rows is None else of_rows
        seen = frame["amount"].is_not_null().to_numpy()
        of_all = np.sort(np.repeat(frame["amount"].to_numpy()[seen], given[seen].astype(int)))
        assert expected.cluster_centers_[2:, 1].tolist() == [of_all[(len(of_all) - 1) // 2]] * 2
        assert expected.cluster_centers_[[1, 3], 2:4].tolist() == [[0.0, 1.0]] * 2
        fit = Fit(make(), feature_names=frame.columns)
        ends = ends_of(rng, n, 5)
        weights = None if of_rows is None else parts_of(of_rows, ends)
        found = converse(fit, parts_of(frame, ends), weights, rng, make)
        same(found, expected)


def test_the_most_frequent_level_goes_by_exact_weights():
    # Ten tenths are 1, which doubles one after the other miss: the first of equal levels counts.
    kinds, weight = ["a"] * 10 + ["b", "c"], np.array([0.1] * 10 + [1.0, 1.0])
    for order in (range(12), range(11, -1, -1), [11, 3, 10, *range(3), *range(4, 10)]):
        rows = list(order)
        frame = pl.DataFrame({"kind": [kinds[row] for row in rows]})
        make = partial(medians, reference=np.array([[0.0, 0.0, 1.0]]), max_leaves=1)
        expected = make().fit(frame, sample_weight=weight[rows])
        assert expected.cluster_centers_.tolist() == [[1.0, 0.0, 0.0]]
        ends = [0, 5, 5, 12]
        fit = Fit(make(), feature_names=["kind"])
        same(converse(fit, parts_of(frame, ends), parts_of(weight[rows], ends)), expected)


def test_columns_of_levels_alone_ask_for_no_ranks():
    rng = np.random.default_rng(4)
    frame = mixed_frame(rng, 300, gaps=0.1, n_levels=6).select(COLUMNS["levels"])
    frame = frame.with_columns(many=pl.Series([f"{i:03d}" for i in rng.permutation(300) % 255]))
    make = partial(medians, reference=centers_for(rng, frame, 4), max_leaves=9)
    fit = Fit(make(), feature_names=frame.columns)
    while (question := fit.question()) is not None:
        assert not question._core.is_about_ranks
        fit.tell(question.answer(frame, part_id=0))
    same(fit.result(), make().fit(frame))


@pytest.mark.filterwarnings("ignore:X has levels that ExKMC did not see:UserWarning")  # damaged
def test_answers_checkpoints_and_bytes(monkeypatch):
    monkeypatch.setattr(Fit, "_bins", (4, 6))
    rng = np.random.default_rng(5)
    frame = mixed_frame(rng, 200)
    centers = centers_for(rng, frame, 4)
    centers[3] += 1e4  # without a row
    weight = rng.choice([0.1, 0.7], size=200)
    make = partial(medians, reference=centers, max_leaves=8, scale="robust")
    fit, ends = Fit(make(), feature_names=frame.columns), [0, 60, 60, 200]
    n_ranks = 0
    while (question := fit.question()) is not None:
        data = fit.to_bytes()
        fit = Fit.from_bytes(data, make())
        assert fit.to_bytes() == data
        assert fit.question().to_bytes() == question.to_bytes()
        a, b, c = answers(question, parts_of(frame, ends), parts_of(weight, ends))
        whole = ((a + b) + c).to_bytes()
        assert (c + (b + a)).to_bytes() == whole
        answer = told_or_refused(rng, fit, make, frame, Answer.from_bytes(whole))
        n_ranks += question._core.is_about_ranks
        fit.tell(answer)
    same(fit.result(), make().fit(frame, sample_weight=weight))
    assert n_ranks > 3


def test_distances_that_overflow_are_refused():
    frame = pl.DataFrame({"a": [0.0, 1.7e308, -1.7e308], "b": ["x", None, "y"]})
    centers = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    make = partial(medians, reference=centers)
    for fit in (lambda: make().fit(frame), lambda: fit_batches(make(), frame.lazy())):
        with pytest.raises(ValueError, match=r"^The distances between rows and centers overflow"):
            fit()


def test_a_model_is_an_ordinary_one(tmp_path):
    rng = np.random.default_rng(6)
    frame = mixed_frame(rng, 300)
    expected = medians(3, max_leaves=6, random_state=0).fit(frame)
    frame.write_parquet(tmp_path / "rows.parquet")
    model = fit_batches(
        medians(3, max_leaves=6, random_state=0),
        pl.scan_parquet(tmp_path / "rows.parquet"),
    )
    same(model, expected)
    assert model.score(frame) == expected.score(frame)
    np.testing.assert_array_equal(model.predict(frame), expected.predict(frame))
    model.save(tmp_path / "model.json")
    same(tc.load(tmp_path / "model.json"), expected)
