"""CUBT: a tree on the spread of the rows, pruned, its leaves joined to clusters."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from numbers import Real
from typing import ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from .._base import LIMITS, Constraints, FitRows, Limits
from .._data import Table
from .._engine import GroupMeans, TestArrays
from .._reference.checks import DEFAULT_N_CLUSTERS
from .._util import BoolArray, FloatArray, Interval, estimator
from .joined_tree import JoinedTree, Leaves, cut_back, route
from .regression import cells_by_power, regression_tree

# Distances that are computed in one go: tens of milliseconds.
_DISTANCES = 1_000_000
# Rows of the other leaf among which a near one is looked for first: every so many.
_STRIDES = (64, 8, 1)


@estimator
class CUBT(JoinedTree):
    """Make clusters by unsupervised binary trees: grow, prune, join (CUBT).

    A baseline with no other clustering before it. The tree of least spread is grown, as a
    regression tree of the columns on themselves; neighbouring leaves whose rows lie close are made
    one; and the leaves, wherever they lie in the tree, are joined to `n_clusters` clusters, two at
    a time, those whose spread rises least.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Most clusters (the paper's nclass); None means 8. Fewer come out where fewer leaves are
        left.
    max_leaves : int, inf or None, default=inf
        Most leaves; None means `n_clusters`, ``math.inf`` no limit.
    max_depth : int or None, default=None
        Deepest level of leaves.
    min_samples_leaf : int, default=5
        Fewest rows in a leaf (the paper's minsize).
    min_deviance : float, default=0.001
        Least gain of a cut (the paper's mindev), as a share of the spread of all rows, 0 or more.
    min_dist : float, default=0.05
        Sibling leaves that lie closer are made one (the paper's mindist). As a share of the rows'
        standard deviation, the root of the sum of the columns' variances. 0: no pruning.
    quantile : float, default=0.2
        The share of the nearest rows that the distance of two leaves is averaged over (the paper's
        delta), above 0 and at most 1.
    %(scale)s
    random_state : int, RandomState or None, default=None
        Not used: nothing is drawn.
    %(threads)s

    Attributes
    ----------
    %(tree_and_labels)s
    classes_ : ndarray of shape (n_clusters,)
        0, ..., n_clusters - 1, in the order of the leaves.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters, in the columns' own units.
    %(encoded_names)s
    inertia_ : float
        Cost of the clusters about their means, on standardised columns if ``scale="standard"``.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the spread.
    %(columns_in_and_value_error)s

    See Also
    --------
    Kauri : Chooses the clusters of its leaves as it grows.
    XRegressionTree : The same tree, labelled by another clustering.

    Notes
    -----
    The spread of a leaf is the weight of its rows times the trace of their covariance (n R(t) in
    the paper). The distance of a leaf from its sibling is the mean, over the `quantile` of its rows
    with the nearest ones there, of the distances to these; two siblings have the larger of both.
    The paper gives `min_dist` in units of the columns; here neither these nor their number matter.
    To grow takes what XRegressionTree takes, O(rows^2 d) at most to compare two siblings, and
    O(leaves^2 d) to join.

    References
    ----------
    Fraiman, Ghattas, Svarc (2013). Interpretable Clustering using Unsupervised Binary Trees.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import treeclust_rs as tc
    >>> X = load_iris().data
    >>> model = tc.CUBT(n_clusters=3).fit(X)
    >>> free = tc.IMM(3, random_state=0).fit(X).reference_inertia_
    >>> model.n_clusters_, round(model.inertia_ / free, 2)
    (3, 1.1)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **JoinedTree._parameter_constraints,
        **LIMITS,
        "min_deviance": [Interval(Real, 0.0, None, closed="left")],
        "min_dist": [Interval(Real, 0.0, None, closed="left")],
        "quantile": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    n_clusters: int | None = None
    _: KW_ONLY
    max_leaves: int | float | None = math.inf
    max_depth: int | None = None
    min_samples_leaf: int = 5
    min_deviance: float = 0.001
    min_dist: float = 0.05
    quantile: float = 0.2

    def _grow(self, fit_rows: FitRows[Table], whole: GroupMeans) -> Leaves:
        n_clusters = min(self.n_clusters or DEFAULT_N_CLUSTERS, fit_rows.rows.n_samples)
        cells, exponent = cells_by_power(fit_rows)
        tests = regression_tree(
            fit_rows,
            cells,
            Limits.of(self),
            n_clusters,
            min_gain=self.min_deviance,
            verbose=self.verbose,
        )
        deviation = float(np.sqrt(whole.spread[0] / whole.weight[0]))
        limit = math.ldexp(self.min_dist * deviation, -exponent)
        if limit > 0:
            near = self._near_siblings(fit_rows, tests, cells, limit)
            tests, _ = cut_back(tests, near)
        return Leaves(tests, tests.children_left < 0, n_clusters)

    def _near_siblings(
        self, fit_rows: FitRows[Table], tests: TestArrays, cells: FloatArray, limit: float
    ) -> BoolArray:
        """Return the nodes whose children are leaves, or become such, that lie closer than this."""
        leaf_of_row, left = route(fit_rows, tests), tests.children_left
        order = np.argsort(leaf_of_row, kind="stable")
        ends = np.searchsorted(leaf_of_row[order], np.arange(len(left) + 1))
        rows = [order[ends[node] : ends[node + 1]] for node in range(len(left))]
        weight = np.ones(len(cells)) if fit_rows.weight is None else fit_rows.weight
        is_leaf = left < 0
        for node in np.flatnonzero(left >= 0)[::-1]:  # children come after their parents
            pair = rows[left[node]], rows[left[node] + 1]
            if is_leaf[left[node]] and is_leaf[left[node] + 1]:
                one, other = ((cells[of], weight[of]) for of in pair)
                is_leaf[node] = is_near(one, other, self.quantile, limit)
                rows[node] = np.concatenate(pair) if is_leaf[node] else rows[node]
        return is_leaf


Side = tuple[FloatArray, FloatArray]
"""Rows and their weights."""


def is_near(one: Side, other: Side, quantile: float, limit: float) -> bool:
    """Whether two leaves lie closer than a limit.

    The distance of a leaf from the other is the weighted mean of the least distances of its rows to
    rows there, over the `quantile` of its weight where these are least; of both sides the larger
    counts. Distances to the box of the other side bound it from below, those to some of its rows
    from above, which mostly decides.
    """
    pairs = ((one, other), (other, one))

    def distance(of: list[FloatArray]) -> float:
        return max(
            _mean_of_least(least, side[1], quantile)
            for least, (side, _) in zip(of, pairs, strict=True)
        )

    if distance([_to_box(side[0], beside[0]) for side, beside in pairs]) >= limit:
        return False
    return any(
        distance([_to_nearest(side[0], beside[0][::stride]) for side, beside in pairs]) < limit
        for stride in _STRIDES
    )


def _mean_of_least(values: FloatArray, weight: FloatArray, quantile: float) -> float:
    """Return the weighted mean of the least values, over this share of the weight."""
    order = np.argsort(values, kind="stable")
    passed = np.cumsum(weight[order])
    share = quantile * passed[-1]
    counted = np.clip(share - (passed - weight[order]), 0.0, weight[order])
    return float((counted * values[order]).sum() / counted.sum())


def _to_box(rows: FloatArray, others: FloatArray) -> FloatArray:
    """Return the distance of each row to the box of other rows."""
    below, above = others.min(axis=0) - rows, rows - others.max(axis=0)
    beyond = np.maximum(np.maximum(below, above), 0.0)
    distances: FloatArray = np.sqrt(np.square(beyond).sum(axis=1))
    return distances


def _to_nearest(rows: FloatArray, others: FloatArray) -> FloatArray:
    """Return the distance of each row to the nearest of others."""
    least = np.full(len(rows), np.inf)
    n_others = min(len(others), 1000)
    n_rows = max(_DISTANCES // n_others, 1)
    for row in range(0, len(rows), n_rows):
        for start in range(0, len(others), n_others):
            apart = cdist(rows[row : row + n_rows], others[start : start + n_others])
            part = least[row : row + n_rows]
            np.minimum(part, apart.min(axis=1), out=part)
    return least
