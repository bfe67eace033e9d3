"""CLTree: growth, look-ahead and pruning against the definitions, clusters, noise."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs

import treeclust_rs as tc
from treeclust_rs.estimators.cltree import pruned

RNG = np.random.default_rng(0)
# Two squares of side 1 and a gap of 3.
SQUARES = RNG.random((100, 2))
SQUARES[50:, 0] += 4.0


# ---- by the definition ----------------------------------------------------------------------


def information(y, n):
    """Entropy of y among y + n points, times their number."""
    return sum(part * math.log((y + n) / part) for part in (y, n) if part > 0)


class Region:
    """Rows and N points of a node along one column; a cut is (place, whether its value is left)."""

    def __init__(self, values, weight, low, high, points, one):
        self.values, self.weight, self.one = values, weight, one
        self.low, self.high, self.points = low, high, points
        self.ends = (low, False), (high, True)
        self.cuts = [(v, is_left) for v in np.unique(values) for is_left in (False, True)]

    def rows(self, cut):
        at, is_left = cut
        return self.weight[self.values <= at if is_left else self.values < at].sum()

    def counts(self, a, b):
        share = (b[0] - a[0]) / (self.high - self.low)
        # All rows lie between the ends.
        y = [0 if cut is self.ends[0] else self.rows(cut) for cut in (a, b)]
        return y[1] - y[0], self.points * share

    def density(self, a, b):
        y, n = self.counts(a, b)
        return max(y, self.one) / n if n > 0 else math.inf

    def best(self, a, b):
        between = [cut for cut in self.cuts if (a == self.ends[0] or cut > a)]
        between = [cut for cut in between if (b == self.ends[1] or cut < b)]
        y, n = self.counts(a, b)
        gains = [
            information(y, n)
            - information(*self.counts(a, cut))
            - information(*self.counts(cut, b))
            for cut in between
        ]
        if not gains or max(gains) <= 1e-9 * (y + n):
            return None
        return between[next(i for i, g in enumerate(gains) if g >= max(gains) - 1e-9 * (y + n))]

    def look_ahead(self):
        """The cut and r_density, as in the paper's evaluateCuts."""
        start, end = self.ends
        first = self.best(start, end)
        if first is None:
            return None
        is_left = self.density(start, first) <= self.density(first, end)
        sparse = (start, first) if is_left else (first, end)
        second = self.best(*sparse)
        if second is None:
            return first, self.density(*sparse)
        inner, outer = ((second, first), (start, second)) if is_left else (
            (first, second), (second, end)
        )  # fmt: skip
        if self.density(*inner) > self.density(*outer):
            return second, self.density(*outer)
        third = self.best(*inner)
        if third is None:
            return second, self.density(*inner)
        return third, min(self.density(inner[0], third), self.density(third, inner[1]))


def check_growth(tree, X, weight, min_y):
    """Walk down a tree that was not pruned: every cut is the one of the definition."""
    total, one, n_cuts = weight.sum(), weight.min(), 0
    stack = [(0, np.arange(len(X)), X.min(axis=0), X.max(axis=0), total)]
    while stack:
        node, rows, low, high, points = stack.pop()
        points = max(points, weight[rows].sum())
        found = []
        if weight[rows].sum() >= min_y * total and len(rows):
            for f in np.flatnonzero(low < high):
                region = Region(X[rows, f], weight[rows], low[f], high[f], points, one)
                cut = region.look_ahead()
                found += [] if cut is None else [(cut[1], f, cut[0], region)]
        if tree.children_left[node] < 0:
            assert not found
            continue
        least = min(entry[0] for entry in found)
        _, f, (at, is_left), region = next(e for e in found if e[0] <= least * (1 + 1e-12))
        values, threshold = X[rows, f], tree.threshold[node]
        assert tree.feature[node] == f
        goes_left = values <= at if is_left else values < at
        np.testing.assert_array_equal(values <= threshold, goes_left)
        # The threshold lies near the value, in the empty space on the side of the cut.
        beyond = values[values > at] if is_left else values[values < at]
        other = (min(beyond, default=high[f]) if is_left else max(beyond, default=low[f])) - at
        assert abs(threshold - at) <= 0.125 * abs(other) * (1 + 1e-9)
        share = (at - low[f]) / (high[f] - low[f])
        left_high, right_low = high.copy(), low.copy()
        left_high[f] = right_low[f] = at
        left, right = tree.children_left[node], tree.children_right[node]
        stack.append((left, rows[goes_left], low, left_high, points * share))
        stack.append((right, rows[~goes_left], right_low, high, points * (1 - share)))
        n_cuts += 1
    return n_cuts


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_every_cut_is_that_of_the_definition(seed, weighted):
    rng = np.random.default_rng(seed)
    X, _ = make_blobs(60, 2, centers=3, random_state=seed)
    if seed % 2:
        X = np.round(X)  # many rows at one value
    weight = rng.uniform(0.5, 2.0, 60) if weighted else np.ones(60)
    model = tc.CLTree(min_y=0.1, min_rd=1e300).fit(X, sample_weight=weight)
    assert check_growth(model.tree_, X, weight, 0.1) > 5


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_columns_that_are_not_searched_hold_no_sparser_region(seed, weighted):
    """Many columns: continuous ones, and some with a common value, inside or at an end."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 30))
    X[:, 10:] *= rng.random((50, 20)) < 0.3
    X[:, 20:] = np.abs(X[rng.integers(0, 15, 50)][:, 20:])  # values of several rows
    weight = rng.uniform(0.5, 2.0, 50) if weighted else np.ones(50)
    model = tc.CLTree(min_y=0.2, min_rd=1e300).fit(X, sample_weight=weight)
    assert check_growth(model.tree_, X, weight, 0.2) > 5


def test_regions_without_rows_cost_no_memory():
    """Counts: most leaves are empty."""
    rng = np.random.default_rng(0)
    X = (rng.random((300, 400)) < 0.05) * rng.integers(1, 4, (300, 400))
    tracemalloc.start()
    try:
        model = tc.CLTree(2).fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.n_leaves_ > len(X)
    assert peak < 0.75 * 8 * model.tree_.n_nodes * X.shape[1]  # not a mean for every node


# ---- by hand --------------------------------------------------------------------------------


def test_a_gap_by_hand():
    """Ten rows in 0..1, ten in 9..10: cuts at both ends of the gap, which is a leaf of its own."""
    X = np.concatenate([np.linspace(0, 1, 10), np.linspace(9, 10, 10)])[:, None]
    model = tc.CLTree(min_y=0.1).fit(X)
    tree = model.tree_
    assert sorted(tree.n_node_samples[tree.leaves].tolist()) == [0, 10, 10]
    assert tc.metrics.adjusted_rand_index(np.repeat([0, 1], 10), model.labels_) == 1
    low, high = sorted(tree.threshold[tree.feature >= 0])
    assert 1 < low < 2 and 8 < high < 9
    density = dict(zip(tree.n_node_samples, model.relative_density_, strict=True))
    assert density[0] == 0.0
    leaves = [node for node in tree.leaves if tree.n_node_samples[node] == 10]
    # 20 N points over a width of 10: 2 in each cluster.
    np.testing.assert_allclose(model.relative_density_[leaves], 5.0)
    # What lies in the gap is noise, if one wants.
    new = np.array([[0.5], [5.0], [9.5]])
    labels = np.where(model.relative_density_[model.apply(new)] < 1, -1, model.predict(new))
    assert labels.tolist() == [model.labels_[0], -1, model.labels_[10]]


def test_pruning_by_hand():
    """Nodes 1 and 2 below 0, 3 and 4 below 1: the lower pair may join, then the upper."""
    left = np.array([1, 3, -1, -1, -1])
    density = np.array([1.0, 2.0, 0.3, 3.0, 0.5])
    assert pruned(left, density, 0.2).tolist() == [True, True, True, True, True]
    assert pruned(left, density, 0.4).tolist() == [False, True, True, True, True]
    assert pruned(left, density, 0.5).tolist() == [False, False, True, True, True]
    density[4] = 0.1  # one child that is no leaf keeps the node
    assert pruned(left, density, 0.2).tolist() == [False, False, True, True, True]


def test_one_dense_region_is_one_leaf():
    X = np.random.default_rng(1).random((400, 2))
    model = tc.CLTree(min_y=0.1).fit(X)
    assert model.n_clusters_ == model.n_leaves_ == 1


# ---- clusters and noise ---------------------------------------------------------------------


def test_noise_is_told_by_the_density():
    noise = np.random.default_rng(2).random((10, 2)) * [3.0, 1.0]
    noise[:, 0] += 1.0
    model = tc.CLTree(2, min_y=0.05).fit(np.concatenate([SQUARES, noise]))
    is_noise = model.relative_density_[model.apply(np.concatenate([SQUARES, noise]))] < 1
    assert is_noise[100:].mean() > 0.7 and is_noise[:100].mean() < 0.1
    assert tc.metrics.adjusted_rand_index(np.repeat([0, 1], 50), model.labels_[:100]) == 1
    # The rows of a sparse region are with the square whose center is nearer to their mean.
    rows, leaves = np.concatenate([SQUARES, noise]), model.apply(np.concatenate([SQUARES, noise]))
    for leaf in np.unique(leaves[is_noise]):
        is_far = rows[leaves == leaf, 0].mean() > 2.5
        assert (model.labels_[leaves == leaf] == model.labels_[99 if is_far else 0]).all()


def test_dense_regions_are_joined_to_so_many():
    X, _ = make_blobs(500, 2, centers=6, cluster_std=0.4, random_state=3)
    free = tc.CLTree(min_y=0.05).fit(X)
    assert free.n_clusters_ >= 5
    for n_clusters in (1, 2, 4):
        model = tc.CLTree(n_clusters, min_y=0.05).fit(X)
        assert model.n_clusters_ == n_clusters
        assert model.tree_.threshold.tolist() == free.tree_.threshold.tolist()
    assert tc.CLTree(500, min_y=0.05).fit(X).n_clusters_ == free.n_clusters_


def test_blobs_are_found():
    X, y = make_blobs(600, 3, centers=5, cluster_std=0.5, random_state=0)
    model = tc.CLTree(5, min_y=0.05).fit(X)
    assert tc.metrics.adjusted_rand_index(y, model.labels_) > 0.98


def test_a_file_keeps_the_densities(tmp_path):
    model = tc.CLTree(min_y=0.05).fit(SQUARES)
    model.save(tmp_path / "m.json")
    loaded = tc.load(tmp_path / "m.json")
    np.testing.assert_array_equal(loaded.relative_density_, model.relative_density_)
    text = (tmp_path / "m.json").read_text()
    start = text.index('"_points"')
    end = text.index("]", start)
    (tmp_path / "m.json").write_text(text[: text.index("[", start) + 1] + "1.0" + text[end:])
    with pytest.raises(ValueError, match=r"points of 1 entries; 5 were expected"):
        tc.load(tmp_path / "m.json")


def test_columns_of_any_unit_make_the_same_regions():
    X = load_iris().data
    plain = tc.CLTree(min_y=0.05).fit(X)
    for unit in (2.0**-600, 2.0**300):
        model = tc.CLTree(min_y=0.05, scale="standard").fit(X * unit)
        assert model.tree_.n_node_samples.tolist() == plain.tree_.n_node_samples.tolist()


def test_threads_change_no_bit():
    X, _ = make_blobs(3000, 4, centers=5, random_state=0)
    one, two = (tc.CLTree(n_jobs=n).fit(X) for n in (1, 2))
    assert one.tree_ == two.tree_


@pytest.mark.parametrize(
    ("parameter", "wrong"),
    [("min_y", -0.1), ("min_y", 1.5), ("min_rd", -1.0), ("min_rd", math.nan), ("n_clusters", 0)],
)
def test_values_that_are_none_are_refused(parameter, wrong):
    with pytest.raises(ValueError, match=f"'{parameter}' parameter of CLTree"):
        tc.CLTree(**{parameter: wrong}).fit(load_iris().data)


def test_distances_that_overflow_are_refused():
    X = np.array([[1e200, 0.0], [-1e200, 1.0], [0.0, 2.0]])
    with pytest.raises(ValueError, match="overflow float64"):
        tc.CLTree(2).fit(X)
