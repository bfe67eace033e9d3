"""XRegressionTree: a regression tree of the columns on themselves."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from .._base import FitRows, Growth
from .._data import Table
from .._reference.kmeans import Reference
from .._util import estimator
from ..tree import GrownTree
from .centers_tree import labelled_tree
from .regression import cells_by_power, regression_tree
from .rows_tree import RowsTree


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
    the columns in `scale` units, but that of cuts that gain the same (to 1e-12 of the gain) the
    first column's lowest is taken, and that units may be of any size. O(n d) a level, and for
    each cell that differs from its column's most common value as much as its row has such cells:
    O(n d^2) a level for rows of continuous columns, little for counts and pixels.

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

    def _grow(self, fit_rows: FitRows[Table], reference: Reference, growth: Growth) -> GrownTree:
        cells, _ = cells_by_power(fit_rows)
        tests = regression_tree(
            fit_rows, cells, growth.limits, reference.n_clusters, verbose=self.verbose
        )
        return labelled_tree(fit_rows, reference, tests)
