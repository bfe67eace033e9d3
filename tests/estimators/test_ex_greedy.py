"""ExGreedy and ExShallow against enumeration of every cut."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

import treeclust_rs as tc
from treeclust_rs.metrics import weighted_average_depth

BOTH = pytest.mark.parametrize("estimator", [tc.ExGreedy, tc.ExShallow])


def costs_of(X, centers, criterion="kmeans"):
    """What each center costs each row, n x k."""
    apart = X[:, None] - centers
    return (apart**2).sum(axis=2) if criterion == "kmeans" else np.abs(apart).sum(axis=2)


def every_cut(X, costs, centers, alive, rows):
    """Yield every cut that has an alive center on either side, and what its rows cost after it.

    A cut is its feature, its gap, and whether the alive centers and the rows lie on the left.
    """
    for f in range(X.shape[1]):
        values = np.unique(np.concatenate([X[rows, f], centers[alive, f]]))
        for below, above in itertools.pairwise(values):
            left = centers[alive, f] <= below
            if left.any() and not left.all():
                goes_left = X[rows, f] <= below
                cost = costs[np.ix_(rows[goes_left], alive[left])].min(axis=1).sum()
                cost += costs[np.ix_(rows[~goes_left], alive[~left])].min(axis=1).sum()
                yield (f, below, above, left, goes_left), cost


def depths(h, n, k, alpha, beta):
    """H of ExShallow, by its definition: the sum of the depths of n rows."""
    if k == 1:
        return n * h
    n_left = min(max(math.ceil(round(alpha * n, 9)), 0), n)
    k_left = min(max(math.ceil(round(beta * k, 9)), 1), k - 1)
    return depths(h + 1, n_left, k_left, alpha, beta) + depths(
        h + 1, n - n_left, k - k_left, alpha, beta
    )


def expected_depth(cut, path, counts):
    """H / N of a cut of a node with so many copies of its rows; `path`: the sides cut above."""
    f, _, _, left, goes_left = cut
    (n_left, n), (k_left, k) = (counts[goes_left].sum(), counts.sum()), (left.sum(), len(left))
    if n == 0:
        return 0
    alpha, beta = n_left / n, k_left / k
    sides = [(n_left, k_left, (f, True)), (n - n_left, k - k_left, (f, False))]
    return sum(depths(side not in path, m, j, alpha, beta) for m, j, side in sides) / n


def check_every_cut(model, X, centers, weight=None, criterion="kmeans"):
    """Walk down the tree: each cut is the first, by column and value, of those worth most."""
    tree, n_checked = model.tree_, 0
    factor = getattr(model, "depth_factor", 0.0)
    costs = costs_of(X, centers, criterion)
    if weight is not None:
        costs = costs * weight[:, None]
    counts = np.ones(len(X), dtype=int) if weight is None else weight.astype(int)
    stack = [(0, np.arange(len(centers)), np.arange(len(X)), ())]
    while stack:
        node, alive, rows, path = stack.pop()
        if tree.children_left[node] < 0:
            assert alive.tolist() == [tree.base_cluster[node]]
            continue
        own = costs[np.ix_(rows, alive)].min(axis=1).sum() + 1e-30
        prices = [
            (cost + (factor * own * expected_depth(cut, path, counts[rows]) if factor else 0), cut)
            for cut, cost in every_cut(X, costs, centers, alive, rows)
        ]
        least = min(price for price, _ in prices)
        f, below, above, left, goes_left = next(
            cut for price, cut in prices if price <= least + 1e-9 * own
        )
        threshold = tree.threshold[node]
        assert tree.feature[node] == f
        assert below <= threshold < above
        n_checked += 1
        children = (tree.children_left[node], tree.children_right[node])
        stack.append((children[0], alive[left], rows[goes_left], (*path, (f, True))))
        stack.append((children[1], alive[~left], rows[~goes_left], (*path, (f, False))))
    assert n_checked == len(centers) - 1


def problem(seed):
    """Return rows and centers among them."""
    rng = np.random.default_rng(seed)
    k, n = int(rng.integers(2, 8)), int(rng.integers(10, 50))
    centers = rng.normal(scale=2.0, size=(k, 3))
    return rng.normal(size=(n, 3)) + centers[rng.integers(0, k, n)], centers, rng


@BOTH
@pytest.mark.parametrize("criterion", ["kmeans", "kmedians"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_every_cut_costs_least(estimator, criterion, weighted):
    for seed in range(25):
        X, centers, rng = problem(seed)
        weight = rng.integers(1, 4, len(X)).astype(float) if weighted else None
        if weighted and estimator is tc.ExGreedy:
            weight = rng.uniform(0.5, 2.0, len(X))
        elif weighted:
            weight[0] = 1.0
        model = estimator(reference=centers, criterion=criterion).fit(X, sample_weight=weight)
        check_every_cut(model, X, centers, weight, criterion)


@pytest.mark.filterwarnings("ignore:Only .* clusters have rows in the tree")
@pytest.mark.parametrize("depth_factor", [0.003, 0.3, 3.0, 1000.0])
def test_any_price_of_depth(depth_factor):
    for seed in range(100, 125):
        X, centers, _ = problem(seed)
        model = tc.ExShallow(reference=centers, depth_factor=depth_factor).fit(X)
        check_every_cut(model, X, centers)


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


@BOTH
def test_threads_change_no_bit(estimator):
    X = load_digits().data
    one, two = (estimator(10, random_state=0, n_jobs=n).fit(X) for n in (1, 2))
    reference = one.reference_labels_
    one, two = (estimator(reference=reference, n_jobs=n).fit(X) for n in (1, 2))
    assert one.tree_ == two.tree_
    assert one.n_leaves_ == 10


@BOTH
def test_an_error_free_tree_is_found(estimator):
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])
    labels = rng.integers(0, 4, 200)
    X = centers[labels] + rng.uniform(-1, 1, size=(200, 2))
    model = estimator(reference=labels).fit(X)
    assert model.cost_ratio_ == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_array_equal(model.labels_, labels)


# ---- the price of depth -------------------------------------------------------------------------

SETS = [
    pl.read_parquet(Path(__file__).parents[1] / "data" / "congressional_votes_1984.parquet")
    .drop("label")
    .to_numpy(),
    *(load().data for load in (load_iris, load_wine, load_breast_cancer, load_digits)),
]


def test_without_a_price_of_depth_the_tree_is_ex_greedys():
    for X in SETS[:4]:
        for criterion in ("kmeans", "kmedians"):
            options = {"criterion": criterion, "scale": "standard"}
            greedy = tc.ExGreedy(6, random_state=0, **options).fit(X)
            options["reference"] = greedy.reference_labels_
            free = tc.ExShallow(depth_factor=0, **options).fit(X)
            assert free.tree_ == tc.ExGreedy(**options).fit(X).tree_


def test_trees_are_shallower_on_average():
    wad, ratio = [], []
    for X in SETS:
        for k in (4, 10):
            greedy = tc.ExGreedy(k, scale="standard", random_state=0).fit(X)
            options = {"reference": greedy.reference_labels_, "scale": "standard"}
            models = (tc.ExGreedy(**options).fit(X), tc.ExShallow(**options).fit(X))
            wad.append([weighted_average_depth(model) for model in models])
            ratio.append([model.cost_ratio_ for model in models])
    greedy_wad, shallow_wad = np.mean(wad, axis=0)
    greedy_ratio, shallow_ratio = np.mean(ratio, axis=0)
    assert shallow_wad < 0.85 * greedy_wad
    assert shallow_ratio < 1.01 * greedy_ratio


def test_a_chain_and_a_balanced_tree_by_hand():
    """Four clusters of two rows on a line, and three cuts that cost nothing."""
    centers = np.array([[0.0], [10.0], [20.0], [30.0]])
    X = np.array([[0.0], [1.0], [9.0], [10.0], [20.0], [21.0], [29.0], [30.0]])
    greedy = tc.ExGreedy(reference=centers).fit(X)
    assert 1 < greedy.tree_.threshold[0] < 9  # all three cuts cost nothing: the lowest
    assert weighted_average_depth(greedy) == (1 + 2 + 3 + 3) / 4
    shallow = tc.ExShallow(reference=centers).fit(X)
    assert 10 < shallow.tree_.threshold[0] < 20  # H = 8 * 2 rows, of the others 8 + 6 + 4
    assert weighted_average_depth(shallow) == 2.0


def test_a_condition_that_replaces_another_is_free():
    """Either column parts the first two centers at no cost; the second column was cut above."""
    centers = np.array([[0.0, 0.0], [10.0, 10.0], [5.0, 100.0]])
    X = np.concatenate([centers[:2], [[-20.0, 100.0], [30.0, 100.0]]]).repeat(4, axis=0) + 0.25
    tree = tc.ExShallow(reference=centers).fit(X).tree_
    assert tree.feature.tolist() == [1, 1, -2, -2, -2]
    assert 0 < tree.threshold[1] < 10.25 < tree.threshold[0]


def test_weights_are_repeated_rows_in_any_unit():
    rng = np.random.default_rng(3)
    X, centers, _ = problem(7)
    weight = np.append(1, rng.integers(1, 5, len(X) - 1))
    repeated = tc.ExShallow(reference=centers, depth_factor=0.2).fit(np.repeat(X, weight, axis=0))
    for unit in (1.0, 2.0**-20, 2.0**70):
        model = tc.ExShallow(reference=centers, depth_factor=0.2)
        model.fit(X, sample_weight=unit * weight)
        assert model.tree_.threshold.tolist() == repeated.tree_.threshold.tolist()


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf, "0.03", None, True])
def test_prices_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError, match="'depth_factor' parameter of ExShallow"):
        tc.ExShallow(2, depth_factor=wrong).fit(load_iris().data)
