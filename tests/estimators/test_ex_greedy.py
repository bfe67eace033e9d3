"""ExGreedy against enumeration of every cut."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine

import treeclust_rs as tc


def costs_of(X, centers, criterion="kmeans"):
    """What each center costs each row, n x k."""
    apart = X[:, None] - centers
    return (apart**2).sum(axis=2) if criterion == "kmeans" else np.abs(apart).sum(axis=2)


def every_cut(X, costs, centers, alive, rows):
    """Yield feature, gap and cost of every cut that has an alive center on either side."""
    for f in range(X.shape[1]):
        values = np.unique(np.concatenate([X[rows, f], centers[alive, f]]))
        for below, above in itertools.pairwise(values):
            left = centers[alive, f] <= below
            if left.any() and not left.all():
                goes_left = X[rows, f] <= below
                cost = costs[np.ix_(rows[goes_left], alive[left])].min(axis=1).sum()
                cost += costs[np.ix_(rows[~goes_left], alive[~left])].min(axis=1).sum()
                yield f, below, above, cost


def check_every_cut(model, X, centers, weight=None, criterion="kmeans"):
    """Walk down the tree: each cut is the first, by column and value, of those that cost least."""
    tree, n_checked = model.tree_, 0
    costs = costs_of(X, centers, criterion)
    if weight is not None:
        costs = costs * weight[:, None]
    stack = [(0, np.arange(len(centers)), np.arange(len(X)))]
    while stack:
        node, alive, rows = stack.pop()
        if tree.children_left[node] < 0:
            assert alive.tolist() == [tree.base_cluster[node]]
            continue
        cuts = list(every_cut(X, costs, centers, alive, rows))
        least = min(cost for *_, cost in cuts)
        own = costs[np.ix_(rows, alive)].min(axis=1).sum()
        f, below, above, _ = next(cut for cut in cuts if cut[3] <= least + 1e-9 * (own + 1e-30))
        threshold = tree.threshold[node]
        assert tree.feature[node] == f
        assert below <= threshold < above
        n_checked += 1
        left, goes_left = centers[alive, f] <= threshold, X[rows, f] <= threshold
        stack.append((tree.children_left[node], alive[left], rows[goes_left]))
        stack.append((tree.children_right[node], alive[~left], rows[~goes_left]))
    assert n_checked == len(centers) - 1


@pytest.mark.parametrize("criterion", ["kmeans", "kmedians"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_every_cut_costs_least(criterion, weighted):
    for seed in range(25):
        rng = np.random.default_rng(seed)
        k, n = int(rng.integers(2, 8)), int(rng.integers(10, 50))
        centers = rng.normal(scale=2.0, size=(k, 3))
        X = rng.normal(size=(n, 3)) + centers[rng.integers(0, k, n)]
        weight = rng.uniform(0.5, 2.0, n) if weighted else None
        model = tc.ExGreedy(reference=centers, criterion=criterion).fit(X, sample_weight=weight)
        check_every_cut(model, X, centers, weight, criterion)


def test_cells_and_centers_that_repeat():
    """Integers: many rows and centers at one value, and rows where centers are."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        centers = np.unique(rng.integers(0, 4, size=(5, 2)), axis=0).astype(float)
        X = rng.integers(0, 4, size=(30, 2)).astype(float)
        model = tc.ExGreedy(reference=centers).fit(X)
        check_every_cut(model, X, centers)


def test_the_tree_of_shifted_rows_is_the_same():
    X = np.round(load_wine().data, 2)
    plain = tc.ExGreedy(5, scale="standard", random_state=0).fit(X)
    shifted = tc.ExGreedy(scale="standard", reference=plain.reference_labels_, random_state=0).fit(
        np.round(X * 64) / 64 + 1e8
    )
    exact = tc.ExGreedy(scale="standard", reference=plain.reference_labels_).fit(
        np.round(X * 64) / 64
    )
    np.testing.assert_array_equal(shifted.tree_.feature, exact.tree_.feature)
    np.testing.assert_array_equal(shifted.labels_, exact.labels_)


def test_threads_change_no_bit():
    X = load_digits().data
    one, two = (tc.ExGreedy(10, random_state=0, n_jobs=n).fit(X) for n in (1, 2))
    reference = one.reference_labels_
    one, two = (tc.ExGreedy(reference=reference, n_jobs=n).fit(X) for n in (1, 2))
    assert one.tree_ == two.tree_
    assert one.n_leaves_ == 10


def test_an_error_free_tree_is_found():
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])
    labels = rng.integers(0, 4, 200)
    X = centers[labels] + rng.uniform(-1, 1, size=(200, 2))
    model = tc.ExGreedy(reference=labels).fit(X)
    assert model.cost_ratio_ == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_array_equal(model.labels_, labels)
