"""XRegressionTree: a regression tree of the columns on themselves."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from .._base import FitRows
from .._data import Table
from .._util import IntArray, estimator
from .rows_tree import CutOf, RowsCut, RowsTree


@estimator
class XRegressionTree(RowsTree):
    """Explain a clustering by the regression tree of all columns on all columns.

    The baseline a sceptic asks for: the leaf is split whose best cut takes most from the squared
    distances of the rows to the means of their leaves, clusters or no clusters; each leaf gets the
    label whose center is cheapest for its rows.

    Parameters
    ----------
    %(n_clusters)s
    max_leaves : int, inf or None, default=None
        Most leaves, at least `n_clusters`; None means `n_clusters`,
        ``math.inf`` no limit.
    %(labels_tree)s

    See Also
    --------
    Kauri : Chooses the clusters of its leaves as it grows.
    ExKMC : Cuts where the clusters part.

    Notes
    -----
    The splits are those of scikit-learn's `DecisionTreeRegressor` with `max_leaf_nodes`, fitted to
    the columns in `scale` units. It is given their ranks to cut, which float32 holds, so that units
    may be of any size. Of cuts that gain the same it takes one by chance, here with a fixed seed.
    Its variances are differences of squares: cells beside others 1e8 times larger count as equal.
    O(n d^2) a level.

    References
    ----------
    Breiman, Friedman, Olshen, Stone (1984). Classification and Regression Trees.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import treeclust_rs as tc
    >>> X = load_iris().data
    >>> model = tc.XRegressionTree(n_clusters=3, max_leaves=6, random_state=0).fit(X)
    >>> model.n_leaves_, model.cost_ratio_ < 1.1
    (6, True)
    """

    n_clusters: int | None = None
    _: KW_ONLY
    max_leaves: int | float | None = None
    max_depth: int | None = None
    min_samples_leaf: int = 1
    reference: Any = None

    def _cutter(self, fit_rows: FitRows[Table], max_leaves: int) -> CutOf:
        from sklearn.tree import DecisionTreeRegressor

        matrix = fit_rows.units.matrix(fit_rows.rows)
        # scikit-learn cuts columns in float32, which has ranks up to 2^24, and calls a variance
        # below 2^-52 none: the columns are multiplied by one power of 2, far from overflow.
        ranks = np.column_stack([np.unique(x, return_inverse=True)[1] for x in matrix.T])
        ranks = ranks.astype(np.float32)
        matrix = np.ldexp(matrix, 300 - np.frexp(np.abs(matrix).max())[1])
        tree = DecisionTreeRegressor(
            max_leaf_nodes=max(max_leaves, 2),
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            random_state=0,
        )
        weight = None if fit_rows.weight is None else fit_rows.weight / fit_rows.weight.mean()
        nodes = tree.fit(ranks, matrix, weight).tree_
        cost = nodes.weighted_n_node_samples * nodes.impurity

        def cut_of(rows: IntArray, node: int | None) -> RowsCut | None:
            node = node or 0
            left, right = int(nodes.children_left[node]), int(nodes.children_right[node])
            if left < 0:
                return None
            feature = int(nodes.feature[node])
            goes_left = ranks[rows, feature] <= nodes.threshold[node]
            gain = float(cost[node] - cost[left] - cost[right])
            return RowsCut(feature, goes_left, gain, (left, right))

        return cut_of
