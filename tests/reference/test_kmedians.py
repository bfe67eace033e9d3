"""The k-medians reference: medians against sorting, clusterings against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treeclust_rs._reference.kmedians import _lloyd, _update_centers, cluster_medians, kmedians


def lower_median(values, weight=None):
    """The lower median of every column."""
    return cluster_medians(values, np.zeros(len(values), dtype=np.int64), 1, weight)[0]


def lower_median_by_definition(values, weight):
    """Return the smallest value up to which lies at least half of the weight."""
    half = sum(weight) / 2
    return min(
        v for v in values if sum(w for u, w in zip(values, weight, strict=True) if u <= v) >= half
    )


def l1_cost(X, labels, weight):
    """Return the weighted l1 cost of a partition around its medians, by definition."""
    total = 0.0
    for label in set(labels):
        rows = [i for i, other in enumerate(labels) if other == label]
        for column in range(X.shape[1]):
            values, weights = X[rows, column], weight[rows]
            total += min(float(np.sum(weights * np.abs(values - c))) for c in values)
    return total


def best_cost(X, k, weight):
    """Return the least cost over all partitions into at most k clusters."""
    partitions = itertools.product(range(k), repeat=len(X))
    return min(l1_cost(X, labels, weight) for labels in partitions)


@pytest.mark.parametrize(
    ("values", "weight", "median"),
    [
        ([3.0], None, 3.0),
        ([1.0, 2.0], None, 1.0),
        ([2.0, 1.0, 3.0], None, 2.0),
        ([4.0, 1.0, 3.0, 2.0], None, 2.0),
        ([1.0, 2.0], [1, 1], 1.0),
        ([1.0, 2.0], [1, 2], 2.0),
        ([1.0, 2.0, 3.0], [1, 0, 1], 1.0),
        ([1.0, 2.0, 3.0], [0, 0, 5], 3.0),
        ([1.0, 2.0, 3.0, 4.0], [3, 1, 1, 1], 1.0),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [0.1] * 6, 3.0),
        # In floats 0.1 + 0.4 + 0.1 is a rounding below half of the total.
        ([1.0, 2.0, 3.0, 4.0, 5.0], list(0.1 * np.array([1, 4, 1, 2, 4])), 3.0),
        ([1.0, 2.0, 3.0, 4.0], [0.1, 0.2, 0.3, 0.0], 2.0),
        ([4.0, 3.0, 2.0, 1.0], [0.3, 0.1, 0.1, 0.1], 3.0),
    ],
)
def test_lower_median_of_one_column(values, weight, median):
    np.testing.assert_array_equal(lower_median(np.array(values)[:, None], weight), [median])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 3)), min_size=1, max_size=12).filter(
        lambda rows: any(weight for _, weight in rows)
    )
)
def test_lower_median_equals_its_definition_and_repetition(rows):
    values, weight = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
    expected = lower_median_by_definition(values.tolist(), weight.tolist())
    assert lower_median(values[:, None], weight) == expected
    assert lower_median(values[:, None], weight * 0.1) == expected
    assert lower_median(np.repeat(values, weight.astype(int))[:, None]) == expected


def test_medians_of_many_columns_and_clusters():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (60, 4)).astype(np.float64)
    labels = rng.integers(-1, 4, 60)
    labels[labels == 2] = 7  # an empty cluster, and rows outside
    for weight in (np.ones(60), rng.integers(0, 4, 60).astype(float)):
        medians = cluster_medians(X, labels, 4, weight)
        for cluster in (0, 1, 3):
            rows = labels == cluster
            for column in range(4):
                assert medians[cluster, column] == lower_median_by_definition(
                    X[rows, column].tolist(), weight[rows].tolist()
                )
        assert np.isnan(medians[2]).all()
        np.testing.assert_array_equal(
            cluster_medians(np.asfortranarray(X), labels, 4, weight), medians
        )


def test_wide_data_are_read_in_blocks(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 9))
    weight = rng.random(50)
    whole = kmedians(X, 3, weight, n_init=2, random_state=0)
    monkeypatch.setattr("treeclust_rs._reference.kmedians._MAX_BLOCK", 40)
    parts = kmedians(X, 3, weight, n_init=2, random_state=0)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(a, b)


def test_median_of_nothing():
    assert np.isnan(lower_median(np.zeros((0, 2)))).all()
    assert np.isnan(lower_median(np.ones((2, 2)), [0.0, 0.0])).all()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("weighted", [False, True])
def test_finds_the_best_partition_of_a_line(seed, weighted):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 20, (8, 1)).astype(float)
    weight = rng.integers(1, 4, 8).astype(float) if weighted else np.ones(8)
    k = int(rng.integers(1, 4))
    centers, labels, inertia, _ = kmedians(
        X, k, weight if weighted else None, n_init=30, random_state=0
    )
    assert inertia == pytest.approx(best_cost(X, k, weight), abs=1e-9)
    assert inertia == pytest.approx(l1_cost(X, labels.tolist(), weight), abs=1e-9)
    assert len(centers) == min(k, len(np.unique(X)))


def check_fixed_point(X, weight, centers, labels, inertia):
    """Check that labels are nearest centers, and centers medians of clusters, none empty."""
    distances = np.abs(X[:, None] - centers[None]).sum(axis=2)
    np.testing.assert_array_equal(labels, distances.argmin(axis=1))
    assert inertia == pytest.approx(np.sum(weight * distances.min(axis=1)), rel=1e-12)
    np.testing.assert_array_equal(cluster_medians(X, labels, len(centers), weight), centers)
    assert len(np.unique(labels[weight > 0])) == len(centers)


@pytest.mark.parametrize("seed", range(30))
def test_result_is_a_fixed_point_and_the_cost_never_rises(seed):
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(20, 80)), int(rng.integers(1, 5)), int(rng.integers(1, 9))
    X = rng.integers(0, 5, (n, d)).astype(float) if seed % 2 else rng.normal(size=(n, d))
    weight = rng.integers(0, 3, n) + 0.25 * (rng.random(n) < 0.9) if seed % 3 else np.ones(n)
    costs = []
    for max_iter in range(12):
        centers, _, inertia, n_iter = kmedians(X, k, weight, 1, max_iter, random_state=seed)
        assert n_iter <= max_iter
        costs.append(inertia)
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in itertools.pairwise(costs))
    centers, labels, inertia, n_iter = kmedians(X, k, weight, 1, random_state=seed)
    assert n_iter < 300
    assert inertia <= costs[-1] * (1 + 1e-12)
    check_fixed_point(X, weight, centers, labels, inertia)
    assert kmedians(X, k, weight, 5, random_state=seed)[2] <= inertia * (1 + 1e-12)


def test_same_seed_same_bits():
    X = np.random.default_rng(0).normal(size=(200, 3))
    first = kmedians(X, 4, random_state=3)
    for X_again in (X.copy(), np.asfortranarray(X), X.tolist()):
        again = kmedians(X_again, 4, random_state=np.random.RandomState(3))
        for a, b in zip(first, again, strict=True):
            np.testing.assert_array_equal(a, b)
    assert first[1].dtype == np.int64
    assert isinstance(first[2], float)


def test_ties_go_to_the_lowest_index():
    # The middle row is equally far from both medians.
    X = np.array([[0.0], [0.0], [0.0], [2.0], [4.0], [4.0], [4.0]])
    centers, labels, inertia, _ = kmedians(X, 2, random_state=0)
    assert labels[3] == 0
    assert inertia == 2.0
    assert sorted(centers.ravel()) == [0.0, 4.0]


def test_fewer_distinct_rows_than_clusters():
    X = np.array([[1.0, 2.0], [3.0, 4.0]])[[0, 1, 0, 1, 1]]
    centers, labels, inertia, _ = kmedians(X, 4, random_state=0)
    assert centers.shape == (2, 2)
    np.testing.assert_array_equal(centers[labels], X)
    assert inertia == 0.0
    centers, labels, inertia, _ = kmedians(np.full((6, 3), 0.1), 3, random_state=0)
    np.testing.assert_array_equal(centers, np.full((1, 3), 0.1))
    assert labels.tolist() == [0] * 6


def test_rows_of_weight_zero_get_labels_and_nothing_else():
    X = np.array([[0.0], [1.0], [10.0], [11.0], [1e6]])
    weight = [1.0, 2.0, 1.0, 2.0, 0.0]
    centers, labels, inertia, _ = kmedians(X, 2, weight, random_state=0)
    assert sorted(centers.ravel()) == [1.0, 11.0]
    assert centers[labels[4]] == 11.0
    assert inertia == 2.0


def test_tiny_weights_and_distances_do_not_hide_distinct_rows():
    X = np.array([[0.0], [1e-200], [3e-200]])
    centers, _, _, _ = kmedians(X, 3, [1e-200, 2e-200, 3e-200], random_state=0)
    assert len(np.unique(centers)) == 3


def test_empty_clusters_restart_at_the_worst_served_rows():
    # Five rows around 0 and three apart; two of the starts are so far off that they get no row.
    X = np.array([[0.0], [0.0], [0.0], [1.0], [-1.0], [9.0], [9.0], [-7.0]])
    weight = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0])
    starts = np.array([[0.0], [1e6], [-1e6]])
    updated = _update_centers(X, weight, np.zeros(8, dtype=np.int64), 3)
    assert updated.ravel().tolist() == [0.0, -7.0, 9.0]  # 2 * 7 outweighs 9; 9 only once
    centers, labels, inertia, n_iter = _lloyd(X, weight, starts, 300)
    assert centers.ravel().tolist() == [0.0, -7.0, 9.0]
    assert labels.tolist() == [0, 0, 0, 0, 0, 2, 2, 1]
    assert (inertia, n_iter) == (2.0, 2)


@pytest.mark.parametrize("seed", range(20))
def test_no_cluster_is_empty_at_the_end(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (30, 4)).astype(float)
    weight = rng.integers(1, 3, 30).astype(float)
    starts = np.vstack([X[:3], np.full((5, 4), 1e3)])
    centers, labels, inertia, n_iter = _lloyd(X, weight, starts, 300)
    assert n_iter < 300
    check_fixed_point(X, weight, centers, labels, inertia)
    assert len(np.unique(centers, axis=0)) == 8


def test_refused_arguments():
    with pytest.raises(ValueError, match="got n_clusters=5 and n_samples=3"):
        kmedians(np.eye(3), 5)
    with pytest.raises(ValueError, match="got n_clusters=0 and n_samples=3"):
        kmedians(np.eye(3), 0)
    with pytest.raises(ValueError, match="n_init >= 1, got n_init=0"):
        kmedians(np.eye(3), 2, n_init=0)
    with pytest.raises(ValueError, match="positive sample_weight in at least one row"):
        kmedians(np.eye(3), 2, [0, 0, 0])
