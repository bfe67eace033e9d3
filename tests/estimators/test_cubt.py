"""CUBT: growth against enumeration of every cut, distances and joins by their definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine, make_blobs

import treeclust_rs as tc
from treeclust_rs.estimators.cubt import is_near
from treeclust_rs.estimators.joined_tree import join_nearest


def spread(rows, weight):
    """The weight times the trace of the covariance."""
    mean = np.average(rows, axis=0, weights=weight)
    return float(weight @ ((rows - mean) ** 2).sum(axis=1))


def best_cut(X, weight, rows, min_samples_leaf):
    """Gain, left and right rows of the best cut of a node."""
    best, own = (0.0, None, None), spread(X[rows], weight[rows])
    for f in range(X.shape[1]):
        for value in np.unique(X[rows, f])[:-1]:
            left, right = rows[X[rows, f] <= value], rows[X[rows, f] > value]
            if min(len(left), len(right)) >= min_samples_leaf:
                gain = own - spread(X[left], weight[left]) - spread(X[right], weight[right])
                best = max(best, (gain, left, right), key=lambda cut: cut[0])
    return best


def maximal_tree(X, weight, min_deviance, min_samples_leaf, max_leaves):
    """The rows of the leaves, by the definition."""
    least = min_deviance * spread(X, weight)
    leaves = [np.arange(len(X))]
    while len(leaves) < max_leaves:
        cuts = [best_cut(X, weight, rows, min_samples_leaf) for rows in leaves]
        place = max(range(len(leaves)), key=lambda i: cuts[i][0])
        gain, *parts = cuts[place]
        if parts[0] is None or gain <= least:
            break
        leaves[place : place + 1] = parts
    return {tuple(rows.tolist()) for rows in leaves}


def leaves_of(model, X):
    leaves = model.apply(X)
    return {tuple(np.flatnonzero(leaves == leaf).tolist()) for leaf in np.unique(leaves)}


def check_growth(X, weight, min_deviance, min_samples_leaf, max_leaves):
    """Assert that the leaves before pruning and joining are those of enumeration."""
    model = tc.CUBT(
        3, min_deviance=min_deviance, min_samples_leaf=min_samples_leaf, min_dist=0,
        max_leaves=max_leaves,
    ).fit(X, sample_weight=weight)  # fmt: skip
    found = maximal_tree(X, weight, min_deviance, min_samples_leaf, max_leaves)
    assert leaves_of(model, X) == found


@pytest.mark.parametrize("seed", range(6))
def test_growth_takes_the_cut_that_gains_most(seed):
    rng = np.random.default_rng(seed)
    X, _ = make_blobs(90, 3, centers=5, random_state=seed)
    weight = rng.uniform(0.5, 2.0, 90) if seed % 2 else np.ones(90)
    for min_deviance, min_samples_leaf, max_leaves in ((0.01, 1, 99), (0.0, 6, 8), (0.001, 4, 12)):
        check_growth(X, weight, min_deviance, min_samples_leaf, max_leaves)


@pytest.mark.parametrize("seed", range(6))
def test_growth_takes_the_cut_that_gains_most_of_columns_with_a_common_value(seed):
    """Zeros, or another value, with cells on both sides of it, and a column without one."""
    rng = np.random.default_rng(seed)
    n, d = 80, 6
    X = rng.integers(-3, 9, (n, d)) * (rng.random((n, d)) < rng.uniform(0.05, 0.4, d))
    X = X + rng.normal(size=(n, d)) * (X != 0) + rng.normal(size=d) * 10
    X[:, 0] = rng.normal(size=n)
    weight = rng.uniform(0.1, 5.0, n) if seed % 2 else np.ones(n)
    for min_deviance, min_samples_leaf, max_leaves in ((0.01, 1, 20), (0.0, 3, 15)):
        check_growth(X, weight, min_deviance, min_samples_leaf, max_leaves)


@pytest.mark.parametrize("estimator", [tc.CUBT, tc.CLTree])
def test_threads_change_no_bit_of_a_tree_of_counts(estimator):
    rng = np.random.default_rng(0)
    X, weight = rng.poisson(0.2, (1500, 60)), rng.uniform(0.5, 2.0, 1500)
    trees = [estimator(5, n_jobs=n_jobs).fit(X, sample_weight=weight).tree_ for n_jobs in (1, 2)]
    assert trees[0] == trees[1]


def test_cells_far_smaller_than_others_are_cut():
    X = np.column_stack([np.repeat([0.0, 1e9, 2e9], 20), np.tile([0.0, 1.0, 2.0, 3.0], 15)])
    model = tc.CUBT(12, min_deviance=0.0, min_dist=0).fit(X)
    assert model.tree_.n_node_samples[model.tree_.leaves].tolist() == [5] * 12


def test_far_blobs_are_found():
    X, y = make_blobs(3000, 10, centers=10, cluster_std=0.5, random_state=0)
    model = tc.CUBT(10).fit(X)
    assert model.n_leaves_ >= 10
    assert tc.metrics.adjusted_rand_index(y, model.labels_) > 0.99


def test_the_tree_is_that_of_a_regression_on_the_columns():
    X = load_iris().data
    cubt = tc.CUBT(3, min_samples_leaf=1, min_deviance=0.0, min_dist=0, max_leaves=9).fit(X)
    reference = tc.IMM(3, random_state=0).fit(X).reference_labels_
    tree = tc.XRegressionTree(max_leaves=9, reference=reference).fit(X).tree_
    np.testing.assert_array_equal(cubt.tree_.feature, tree.feature)
    np.testing.assert_array_equal(cubt.tree_.threshold, tree.threshold)


def distance(A, B, quantile, weight_a, weight_b):
    """The paper's dissimilarity of two leaves, rows repeated by their weights."""

    def of(one, other, weight):
        nearest = np.sqrt(((one[:, None] - other) ** 2).sum(axis=2)).min(axis=1)
        nearest = np.sort(np.repeat(nearest, weight))
        return nearest[: round(quantile * len(nearest))].mean()

    return max(of(A, B, weight_a), of(B, A, weight_b))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("quantile", [0.2, 0.5, 1.0])
def test_siblings_are_near_by_the_definition(seed, quantile):
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(20, 2)), rng.normal(size=(30, 2))
    B[:, 0] += rng.uniform(0, 4)
    weights = [np.array(rng.permutation(np.repeat([1, 2, 3, 4], n))) for n in (5, 10)]
    weights[1] = weights[1][:30]
    weights[1][-1] += -weights[1].sum() % 10
    weights[0][-1] += -weights[0].sum() % 10
    expected = distance(A, B, quantile, *weights)
    sides = [(rows, weight.astype(float)) for rows, weight in zip((A, B), weights, strict=True)]
    for share, near in ((0.999, False), (1.001, True), (0.5, False), (3.0, True)):
        assert is_near(*sides, quantile, share * expected) == near


def test_the_distance_by_hand():
    A, B = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([[5.0], [9.0]])
    one = np.ones(4), np.ones(2)
    # Half of A: 2 and 3 away; half of B: 2 away. All: 3.5 and 4.
    for quantile, limit in ((0.5, 2.5), (1.0, 4.0), (0.25, 2.0)):
        sides = (A, one[0]), (B, one[1])
        assert not is_near(*sides, quantile, limit)
        assert is_near(*sides, quantile, limit + 1e-9)


def test_near_siblings_become_one_leaf():
    """Three groups on a line at 0, 1 and 10, of rows 0.1 apart: the gap of 0.6 closes first."""
    X = np.concatenate([np.arange(5) / 10 + at for at in (0.0, 1.0, 10.0)])[:, None]
    deviation = X.std()
    options = {"min_samples_leaf": 5, "min_deviance": 0.0, "quantile": 0.2}
    for limit, n_leaves in ((0.5, 3), (0.59, 3), (0.61, 2), (8.0, 2), (8.7, 1)):
        model = tc.CUBT(3, min_dist=limit / deviation, **options).fit(X)
        assert model.n_leaves_ == model.n_clusters_ == n_leaves


def greedy_joins(weight, means, n_clusters):
    """Join the pair whose spread rises least, over and over, by rows that stand for the groups."""
    groups = [[i] for i in range(len(weight))]

    def of(group):
        return spread(means[group], weight[group])

    while len(groups) > n_clusters:
        a, b = min(
            itertools.combinations(range(len(groups)), 2),
            key=lambda pair: (
                of(groups[pair[0]] + groups[pair[1]]) - of(groups[pair[0]]) - of(groups[pair[1]])
            ),
        )
        groups[a] += groups.pop(b)
    return {tuple(sorted(group)) for group in groups}


def test_joins_are_those_of_least_rise():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 25))
        weight, means = rng.uniform(0.1, 5.0, n), rng.normal(size=(n, 2))
        for n_clusters in (1, 2, 5, 30):
            cluster = join_nearest(weight, means, n_clusters)
            found = {tuple(np.flatnonzero(cluster == c).tolist()) for c in np.unique(cluster)}
            assert found == greedy_joins(weight, means, n_clusters)
            firsts = [int(np.flatnonzero(cluster == c)[0]) for c in range(cluster.max() + 1)]
            assert firsts == sorted(firsts)


def test_joins_by_hand():
    weight, means = np.array([1.0, 1.0, 8.0, 1.0]), np.array([[0.0], [3.0], [5.0], [10.0]])
    # 0 and 3 rise by 9/2, 3 and 5 by 4 * 8/9, 5 and 10 by 25 * 8/9.
    assert join_nearest(weight, means, 3).tolist() == [0, 1, 1, 2]
    assert join_nearest(weight, means, 4).tolist() == [0, 1, 2, 3]


def test_leaves_far_apart_in_the_tree_share_a_cluster():
    """The corners of a square, two of them one cluster by a third column: parted first by size."""
    X = np.array([[0, 0], [20, 0], [10, 0.0]]).repeat(10, axis=0)
    X += np.random.default_rng(0).normal(scale=0.3, size=X.shape)
    model = tc.CUBT(2, min_dist=0).fit(X)
    assert model.n_clusters_ == 2 < model.n_leaves_


def test_on_data_that_are_known():
    for load, k, most in ((load_iris, 3, 1.1), (load_wine, 3, 1.05)):
        X = load().data
        free = tc.IMM(k, scale="standard", random_state=0).fit(X).reference_inertia_
        model = tc.CUBT(k, scale="standard").fit(X)
        assert model.inertia_ < most * free
        assert model.n_leaves_ > k == model.n_clusters_


def test_a_fit_does_not_depend_on_units():
    X = load_iris().data
    plain = tc.CUBT(3).fit(X)
    for unit in (2.0**-60, 2.0**60):
        np.testing.assert_array_equal(tc.CUBT(3).fit(X * unit).labels_, plain.labels_)


@pytest.mark.parametrize(
    ("parameter", "wrong"),
    [
        ("min_dist", -0.1),
        ("min_dist", math.nan),
        ("min_deviance", -1.0),
        ("quantile", 0.0),
        ("quantile", 1.5),
        ("min_samples_leaf", 0),
        ("n_clusters", 0),
    ],
)
def test_values_that_are_none_are_refused(parameter, wrong):
    with pytest.raises(ValueError, match=f"'{parameter}' parameter of CUBT"):
        tc.CUBT(**{parameter: wrong}).fit(load_iris().data)


def test_distances_that_overflow_are_refused():
    X = np.array([[1e200, 0.0], [-1e200, 1.0], [0.0, 2.0]])
    with pytest.raises(ValueError, match="overflow float64"):
        tc.CUBT(2).fit(X)
