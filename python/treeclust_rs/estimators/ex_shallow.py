"""ExShallow: threshold trees with one leaf per cluster, by cuts of little cost and depth."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import Any, ClassVar

from .._base import Constraints, FitRows, Growth, grow_tree
from .._data import Table
from .._reference.centers import Criterion, row_costs
from .._reference.kmeans import Reference
from .._util import Interval, estimator
from ..tree import GrownTree
from .centers_tree import CentersTree


@estimator
class ExShallow(CentersTree):
    """Explain a clustering by a tree with one leaf per cluster, of cuts of little cost and depth.

    As `ExGreedy`, with a price of depth: at every node the threshold between its centers is taken
    for which the relative cost of its rows plus `depth_factor` times the depth that they can expect
    is least. The trees are shallower, and so the explanations of rows shorter, at little cost.

    Parameters
    ----------
    %(n_clusters)s
    criterion : {"kmeans", "kmedians"}, default="kmeans"
        Squared Euclidean distance to means, or l1 distance to medians.
    depth_factor : float, default=0.03
        The price of one level of depth (the paper's lambda), as a share of the cost of a node's
        rows, 0 or more. 0 is `ExGreedy`.
    %(explaining_attributes)s
    cost_path_ : polars.DataFrame
        By number of leaves `cost`, the surrogate about the reference's centers, and `inertia`, that
        about the tree's own: one line, there is one tree.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the surrogate cost.
    %(columns_in_and_value_error)s

    See Also
    --------
    ExGreedy : Cuts by cost alone.
    IMM : Cuts by the number of rows they separate from their centers.

    Notes
    -----
    A cut of a node of N rows and K centers is worth cost(after) / cost(before) + `depth_factor` *
    H / N, where H is the sum of the depths of the rows below the node if the cut's shares of rows
    and centers repeat below it. A side whose direction on the column was cut above counts one level
    less: its condition replaces the one above. With weights N is the weight over the least weight.
    Of cuts that are worth the same the one of the first column is taken, then the lowest threshold.
    A node takes the time of `ExGreedy`, and O(K) for each cut that its cost does not rule out.

    References
    ----------
    Laber, Murtinho, Oliveira (2023). Shallow Decision Trees for Explainable k-Means Clustering.

    Examples
    --------
    >>> import numpy as np, treeclust_rs as tc
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [9.0, 1.0], [9.0, 8.0], [8.0, 9.0]])
    >>> model = tc.ExShallow(n_clusters=3, random_state=0).fit(X)
    >>> model.n_leaves_, round(model.cost_ratio_, 6)
    (3, 1.0)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **CentersTree._parameter_constraints,
        "depth_factor": [Interval(Real, 0.0, None, closed="left")],
    }

    n_clusters: int | None = None
    _: KW_ONLY
    criterion: Criterion = "kmeans"
    depth_factor: float = 0.03
    reference: Any = None

    _lost_advice = "ExKMC with more leaves may give them rows."

    def _growth(self, n_clusters: int) -> Growth:  # noqa: ARG002
        return Growth(base="imm", depth_factor=self.depth_factor)

    def _grow(self, fit_rows: FitRows[Table], reference: Reference, growth: Growth) -> GrownTree:
        nearest = reference.regrets.argmin(axis=1)
        fitted = grow_tree(
            fit_rows,
            reference.regrets,
            reference.labels,
            reference.n_clusters,
            growth,
            base_centers=reference.centers,
            least_costs=row_costs(fit_rows, reference.centers.high, nearest, self.criterion),
            progress=fit_rows.progress(self.verbose),
        )
        return GrownTree.of(fitted)
