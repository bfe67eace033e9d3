"""ExGreedy: threshold trees with one leaf per cluster, by cuts that cost least."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from .._base import Growth
from .._reference.centers import Criterion
from .._util import estimator
from .centers_tree import CentersTree


@estimator
class ExGreedy(CentersTree):
    """Explain a clustering by a tree with one leaf per cluster, each cut the one that costs least.

    At every node the threshold between its centers is taken after which the rows of the node cost
    least, each about the cheapest of the centers on its own side. The tree has exactly one leaf per
    cluster.

    Parameters
    ----------
    %(n_clusters)s
    criterion : {"kmeans", "kmedians"}, default="kmeans"
        Squared Euclidean distance to means, or l1 distance to medians.
    %(explaining_attributes)s
    cost_path_ : polars.DataFrame
        By number of leaves `cost`, the surrogate about the reference's centers, and `inertia`, that
        about the tree's own: one line, there is one tree.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the surrogate cost.
    %(columns_in_and_value_error)s

    See Also
    --------
    ExShallow : Pays some cost for shallower trees.
    IMM : Cuts by the number of rows they separate from their centers.
    ExKMC : Spends more leaves to come closer to the reference.

    Notes
    -----
    A node of m rows and a centers takes O(m d (a + log m)); a balanced tree has O(log k) levels,
    one that parts from one center at a time k - 1. Of cuts that cost the same the one of the first
    column is taken, then the lowest threshold.

    References
    ----------
    Laber, Murtinho (2021). On the Price of Explainability for Some Clustering Problems.

    Examples
    --------
    >>> import numpy as np, treeclust_rs as tc
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [9.0, 1.0], [9.0, 8.0], [8.0, 9.0]])
    >>> model = tc.ExGreedy(n_clusters=3, random_state=0).fit(X)
    >>> model.n_leaves_, round(model.cost_ratio_, 6)
    (3, 1.0)
    """

    n_clusters: int | None = None
    _: KW_ONLY
    criterion: Criterion = "kmeans"
    reference: Any = None

    _lost_advice = "ExKMC with more leaves may give them rows."

    def _growth(self, n_clusters: int) -> Growth:  # noqa: ARG002
        return Growth(base="imm", cut_score="cost")
