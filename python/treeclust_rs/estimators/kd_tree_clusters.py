"""KDTreeClusters: halves along the column that varies most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from .._base import FitRows
from .._data import Table
from .._util import FloatArray, IntArray, estimator, row_blocks
from .rows_tree import CutOf, RowsCut, RowsTree


@estimator
class KDTreeClusters(RowsTree):
    """Explain a clustering by a k-d tree: halves of the rows, along the column that varies most.

    A baseline: the tree does not look at the clusters, only the labels of its leaves do. The leaf
    with the most rows is halved, at the median of the column with the largest variance there, and
    each leaf gets the label whose center is cheapest for its rows.

    Parameters
    ----------
    %(n_clusters)s
    max_leaves : int, inf or None, default=None
        Most leaves, at least `n_clusters`; None means `n_clusters`,
        ``math.inf`` no limit.
    %(labels_tree)s

    See Also
    --------
    ExKMC : Cuts where the clusters part.
    XRegressionTree : Cuts where the columns change most.

    Notes
    -----
    Of equal rows all go to one side: the cut is the one nearest to halves of the weight. A column
    that cannot be cut, for `min_samples_leaf`, leaves its place to the one that varies most after
    it. O(n d) a level.

    References
    ----------
    Bentley (1975). Multidimensional Binary Search Trees Used for Associative Searching. As a
    baseline in Frost, Moshkovitz, Rashtchian (2020), ExKMC: Expanding Explainable k-Means
    Clustering, where the size of leaves is the limit, not their number.

    Examples
    --------
    >>> import numpy as np, treeclust_rs as tc
    >>> X = np.array([[0.0], [1.0], [2.0], [7.0], [8.0], [9.0]])
    >>> tc.KDTreeClusters(n_clusters=2, random_state=0).fit(X).rules()["rule"].to_list()
    ['x0 <= 4', 'x0 > 4']
    """

    n_clusters: int | None = None
    _: KW_ONLY
    max_leaves: int | float | None = None
    max_depth: int | None = None
    min_samples_leaf: int = 1
    reference: Any = None

    def _cutter(self, fit_rows: FitRows[Table], max_leaves: int) -> CutOf:  # noqa: ARG002
        matrix = fit_rows.units.matrix(fit_rows.rows)
        weight = np.ones(len(matrix)) if fit_rows.weight is None else fit_rows.weight

        def mean(
            rows: IntArray, w: FloatArray, of_cells: Callable[[FloatArray], FloatArray]
        ) -> FloatArray:
            sums = np.zeros(matrix.shape[1])
            for block in row_blocks(len(rows), len(sums)):
                terms = of_cells(matrix[rows[block]]) * w[block, None]
                terms[0] += sums  # so that sums are the same bits for blocks of any size
                sums = terms.sum(axis=0)
            return np.asarray(sums / w.sum())

        def cut_of(rows: IntArray, of_parent: Any) -> RowsCut | None:  # noqa: ARG001
            # From the first row, so that a constant column has a variance of 0.
            w, origin = weight[rows], matrix[rows[0]]
            center = mean(rows, w, lambda cells: cells - origin)
            variance = mean(rows, w, lambda cells: (cells - origin - center) ** 2)
            for feature in np.argsort(-variance, kind="stable"):
                if not variance[feature] > 0:
                    return None
                cells = matrix[rows, feature] - origin[feature]
                order = np.argsort(cells, kind="stable")
                values, passed = cells[order], np.cumsum(w[order])
                m = self.min_samples_leaf
                ends = np.flatnonzero(values[:-1] < values[1:])
                ends = ends[(ends >= m - 1) & (ends < len(rows) - m)]
                if len(ends):
                    end = ends[np.abs(passed[ends] - passed[-1] / 2.0).argmin()]
                    goes_left = cells <= values[end]
                    return RowsCut(int(feature), goes_left, float(len(rows)))
            return None

        return cut_of
