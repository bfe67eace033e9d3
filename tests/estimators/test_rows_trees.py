"""Trees that look at the rows alone: KDTreeClusters, XRegressionTree."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.tree import DecisionTreeRegressor

import treeclust_rs as tc

pytestmark = pytest.mark.filterwarnings(
    "ignore:Only .* of the .* clusters ha:sklearn.exceptions.ConvergenceWarning"
)


def cheapest_labels(model, X):
    """The label of each row if its leaf has the one that costs least, by the definition."""
    leaves, centers = model.tree_.apply(X), means(X, model.reference_labels_)
    costs = ((X[:, None] - centers) ** 2).sum(axis=2)
    labels = np.empty(len(X), dtype=int)
    for leaf in np.unique(leaves):
        labels[leaves == leaf] = costs[leaves == leaf].sum(axis=0).argmin()
    return labels


def means(X, labels):
    return np.array([X[labels == c].mean(axis=0) for c in np.unique(labels)])


@pytest.mark.parametrize("estimator", [tc.KDTreeClusters, tc.XRegressionTree])
def test_leaves_have_the_cheapest_label(estimator):
    X = load_wine().data
    for max_leaves in (3, 7, 20):
        model = estimator(3, max_leaves=max_leaves, random_state=0).fit(X)
        np.testing.assert_array_equal(model.labels_, cheapest_labels(model, X))
        assert model.n_leaves_ == max_leaves


def test_a_kd_tree_halves_the_fullest_leaf_along_the_widest_column():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(64, 3)) * [1.0, 5.0, 2.0]
    model = tc.KDTreeClusters(4, max_leaves=8, random_state=0).fit(X)
    tree = model.tree_
    assert sorted(tree.n_node_samples[tree.leaves]) == [8] * 8
    stack = [(0, np.arange(64))]
    while stack:
        node, rows = stack.pop()
        if tree.children_left[node] < 0:
            continue
        assert tree.feature[node] == X[rows].var(axis=0).argmax()
        goes_left = X[rows, tree.feature[node]] <= tree.threshold[node]
        assert goes_left.sum() == len(rows) // 2
        stack += [(tree.children_left[node], rows[goes_left])]
        stack += [(tree.children_right[node], rows[~goes_left])]


def test_a_kd_tree_by_hand_with_weights_and_ties():
    X = np.array([[0.0], [1.0], [1.0], [1.0], [5.0], [9.0]])
    tree = tc.KDTreeClusters(2, random_state=0).fit(X).tree_
    assert 1.0 <= tree.threshold[0] < 5.0  # 4 and 2 rows are nearer to halves than 1 and 5
    weight = np.array([9.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    tree = tc.KDTreeClusters(2, random_state=0).fit(X, sample_weight=weight).tree_
    assert 0.0 <= tree.threshold[0] < 1.0


def test_equal_rows_are_not_cut():
    X = np.array([[1.0, 2.0]] * 5 + [[3.0, 2.0]] * 5)
    for estimator in (tc.KDTreeClusters, tc.XRegressionTree):
        model = estimator(2, max_leaves=8, random_state=0).fit(X)
        assert model.n_leaves_ == 2


@pytest.mark.parametrize("seed", range(30))
def test_the_regression_tree_is_scikit_learns(seed):
    """Of normal rows: no two cuts gain the same."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 600)), int(rng.integers(1, 7))
    X = rng.normal(size=(n, d)) * rng.uniform(0.1, 10.0, size=d)
    weight = rng.uniform(0.1, 5.0, size=n) if seed % 2 else None
    max_leaves = int(rng.integers(2, 2 + n // 3))
    limits = {
        "max_depth": int(rng.integers(2, 6)) if seed % 3 == 0 else None,
        "min_samples_leaf": int(rng.integers(1, 6)),
    }
    theirs = DecisionTreeRegressor(max_leaf_nodes=max_leaves, random_state=0, **limits)
    theirs.fit(X, X, weight)
    model = tc.XRegressionTree(2, max_leaves=max_leaves, random_state=0, **limits)
    model.fit(X, sample_weight=weight)
    ours, leaves = model.tree_.apply(X), theirs.apply(X)
    # The same rows are together.
    pairs = np.unique(np.column_stack([ours, leaves]), axis=0)
    assert len(pairs) == len(np.unique(ours)) == theirs.get_n_leaves()


def test_of_equal_gains_the_first_columns_lowest_cut_is_taken():
    x = np.array([0.0, 1.0, 2.0, 3.0])
    tree = tc.XRegressionTree(2, random_state=0).fit(np.column_stack([x, 3.0 - x])).tree_
    assert (tree.feature[0], 1.0 < tree.threshold[0] < 2.0) == (0, True)
    X = np.array([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0]])  # 2 and 4 rows, or 4 and 2
    tree = tc.XRegressionTree(2, random_state=0).fit(X).tree_
    assert 1.0 < tree.threshold[0] < 10.0


def test_small_cells_beside_large_ones_are_cut():
    """scikit-learn takes them for equal: its variances are differences of squares."""
    X = np.column_stack([np.repeat([0.0, 1e9, 2e9], 20), np.tile([0.0, 1.0, 2.0, 3.0], 15)])
    tree = tc.XRegressionTree(3, max_leaves=12, random_state=0).fit(X).tree_
    assert tree.n_node_samples[tree.leaves].tolist() == [5] * 12


def test_a_kd_tree_takes_little_memory_beside_the_rows():
    X = np.random.default_rng(0).normal(size=(200_000, 40))
    tracemalloc.start()
    try:
        tc.KDTreeClusters(reference=X[:3]).fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * X.nbytes  # one copy in units


@pytest.mark.parametrize("unit", [1e-12, 1e40, 1e150])
def test_units_of_any_size_give_the_same_regression_tree(unit):
    """scikit-learn's own tree has one leaf at 1e-12 and no float32 at 1e40."""
    X = load_iris().data
    plain = tc.XRegressionTree(3, max_leaves=8, random_state=0).fit(X)
    model = tc.XRegressionTree(max_leaves=8, reference=plain.reference_labels_).fit(X * unit)
    assert model.n_leaves_ == 8
    np.testing.assert_array_equal(model.labels_, plain.labels_)


def test_weights_of_any_size_suit_the_regression_tree():
    X = load_iris().data
    weight = np.where(np.arange(len(X)) % 2, 1e150, 1e-150)
    model = tc.XRegressionTree(3, max_leaves=8, random_state=0).fit(X, sample_weight=weight)
    assert model.n_leaves_ == 8


@pytest.mark.parametrize("estimator", [tc.KDTreeClusters, tc.XRegressionTree])
def test_threads_change_no_bit(estimator):
    X = load_wine().data
    labels = tc.IMM(3, random_state=0).fit(X).reference_labels_
    one, two = (
        estimator(max_leaves=9, reference=labels, n_jobs=n_jobs).fit(X) for n_jobs in (1, 2)
    )
    assert one.tree_ == two.tree_


def test_smaller_trees_are_those_of_fewer_leaves():
    X = load_wine().data
    for estimator in (tc.KDTreeClusters, tc.XRegressionTree):
        model = estimator(3, max_leaves=12, scale="standard", random_state=0).fit(X)
        reference = model.reference_labels_
        small = estimator(max_leaves=6, scale="standard", reference=reference).fit(X)
        np.testing.assert_array_equal(model.truncate(6).labels_, small.labels_)


def test_limits():
    X = load_wine().data
    for estimator in (tc.KDTreeClusters, tc.XRegressionTree):
        model = estimator(3, max_leaves=30, max_depth=3, min_samples_leaf=15, random_state=0).fit(X)
        assert model.tree_.max_depth <= 3
        assert model.tree_.n_node_samples[model.tree_.leaves].min() >= 15
