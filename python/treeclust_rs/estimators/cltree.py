"""CLTree: dense regions told from empty ones."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import ClassVar

import numpy as np

from .. import _engine
from .._base import Constraints, Fields, FitRows, SavedField
from .._data import Table
from .._engine import GroupMeans
from .._util import BoolArray, FloatArray, Interval, estimator
from ..tree import tests_of
from .joined_tree import JoinedTree, Leaves, cut_back


@estimator
class CLTree(JoinedTree):
    """Make clusters of the dense regions of a tree that tells rows from empty space (CLTree).

    A baseline with no other clustering before it: a decision tree tells the rows from as many
    points that would be spread evenly over their box, which are counted and never drawn. Regions
    that hold more rows than points are dense: they are the clusters, joined to at most
    `n_clusters`. Sparse regions are leaves of their own; rows there get the cluster with the
    nearest center, and `relative_density_` tells who they are.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Most clusters; None: as many as there are dense regions. More are joined two at a time,
        those whose spread rises least.
    min_y : float, default=0.01
        Smallest region of interest, as a share of the weight of all rows, from 0 to 1: smaller
        ones are neither cut nor clusters.
    min_rd : float, default=0.1
        A sparse region joins its dense sibling if its relative density is above this, 0 or more.
    %(scale)s
    random_state : int, RandomState or None, default=None
        Not used: nothing is drawn.
    %(threads)s

    Attributes
    ----------
    %(tree_and_labels)s
    relative_density_ : ndarray of shape (n_nodes,)
        By node of `tree_`, its rows over those that it would have if the rows of its parent's
        region were spread evenly, at least as many as when the region was made; below 1 a leaf is
        sparse. ``np.where(model.relative_density_[model.apply(X)] < 1, -1, model.predict(X))``
        marks noise.
    classes_ : ndarray of shape (n_clusters,)
        0, ..., n_clusters - 1, in the order of the leaves.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters, rows of sparse regions included, in the columns' own units.
    %(encoded_names)s
    inertia_ : float
        Cost of the clusters about their means, on standardised columns if ``scale="standard"``.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the spread.
    %(columns_in_and_value_error)s

    See Also
    --------
    CUBT : Follows distances in place of densities.
    Kauri : Chooses the clusters of its leaves as it grows.

    Notes
    -----
    Volumes do not depend on the columns' units, so `scale` only matters where clusters are joined
    and measured. Columns of few values are empty space between these: CLTree suits continuous
    columns. A region without rows counts as one with a single row, of the least weight. If no
    region is dense, the one with the most rows is the only cluster.

    Both ends of the space beside a value are cuts. The node of a region of m rows takes O(m d).

    References
    ----------
    Liu, Xia, Yu (2000). Clustering Through Decision Tree Construction.

    Examples
    --------
    >>> import numpy as np, treeclust_rs as tc
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.random((50, 2)), rng.random((50, 2)) + [4, 0]])
    >>> model = tc.CLTree(min_y=0.05).fit(X)
    >>> model.n_clusters_, model.n_leaves_
    (2, 3)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **JoinedTree._parameter_constraints,
        "min_y": [Interval(Real, 0.0, 1.0, closed="both")],
        "min_rd": [Interval(Real, 0.0, None, closed="left")],
    }
    _saved: ClassVar[Fields] = {
        **JoinedTree._saved,
        "_points": SavedField("path", required=True, n_entries=lambda tree: tree.n_nodes),
    }

    n_clusters: int | None = None
    _: KW_ONLY
    min_y: float = 0.01
    min_rd: float = 0.1

    @property
    def relative_density_(self) -> FloatArray:
        """Rows over evenly spread points, by node, of shape (n_nodes,)."""
        return _density(self.tree_.weighted_n_node_samples, self._points)

    def _grow(self, fit_rows: FitRows[Table], whole: GroupMeans) -> Leaves:
        grown = _engine.density_tree(
            fit_rows.rows.data,
            sample_weight=fit_rows.weight,
            min_weight_share=self.min_y,
            n_jobs=fit_rows.threads,
            progress=fit_rows.progress(self.verbose),
        )
        tests, weight = tests_of(grown), grown.weight
        one = 1.0 if fit_rows.weight is None else float(fit_rows.weight.min())
        density = _density(np.maximum(weight, one), grown.points)
        tests, kept = cut_back(tests, pruned(tests.children_left, density, self.min_rd))
        weight, density = weight[kept], density[kept]
        is_leaf = tests.children_left < 0
        core = is_leaf & (density >= 1.0) & (weight >= self.min_y * whole.weight[0]) & (weight > 0)
        if not core.any():
            core[np.where(is_leaf, weight, -1.0).argmax()] = True
        points = grown.points[kept]
        n_clusters = int(core.sum()) if self.n_clusters is None else self.n_clusters
        return Leaves(tests, core, n_clusters, {"_points": points})


def _density(weight: FloatArray, points: FloatArray) -> FloatArray:
    """Return weight over points, infinity without points and 0 with neither."""
    nothing = np.where(weight > 0, np.inf, 0.0)
    return np.divide(weight, points, out=nothing, where=points > 0)


def pruned(left: np.ndarray, density: FloatArray, min_rd: float) -> BoolArray:
    """Return the nodes that are leaves after pruning.

    From the bottom: a node becomes a leaf if both children are and the relative density of the
    sparser one is above `min_rd`.
    """
    is_leaf = left < 0
    for node in np.flatnonzero(left >= 0)[::-1]:  # children come after their parents
        children = slice(left[node], left[node] + 2)
        is_leaf[node] = is_leaf[children].all() and density[children].min() > min_rd
    return is_leaf
