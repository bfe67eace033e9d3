"""IMM: threshold trees with one leaf per cluster."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal

from .._base import Constraints, Growth
from .._reference.centers import Criterion
from .._util import StrOptions, estimator
from .centers_tree import CentersTree


@estimator
class IMM(CentersTree):
    """Explain a clustering by a tree with one leaf per cluster (iterative mistake minimisation).

    At every node the threshold is taken that separates the fewest rows from their cluster's center;
    those rows count as mistakes and no longer matter below. The tree has exactly one leaf per
    cluster.

    Parameters
    ----------
    %(n_clusters)s
    criterion : {"kmeans", "kmedians"}, default="kmeans"
        Squared Euclidean distance to means, or l1 distance to medians.
    cut_score : {"mistakes", "emn"}, default="mistakes"
        What the cut of a node makes small: its mistakes, or its mistakes divided by the number of
        centers on the side that has fewer (Esfandiari, Mirrokni, Narayanan 2022). "emn" prefers
        balanced cuts; its cost is at most O(k log k) times that of k-means, O(log k log log k)
        times that of k-medians.
    %(explaining_attributes)s
    cost_path_ : polars.DataFrame
        By number of leaves `cost`, the surrogate about the reference's centers, and `inertia`, that
        about the tree's own: one line, there is one tree.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the surrogate cost.
    %(columns_in_and_value_error)s

    See Also
    --------
    ExKMC : Spends more leaves to come closer to the reference.

    Notes
    -----
    O(n d) per level of the tree, plus sorting of the few bins that may hold the best cut; n d bytes
    of memory beside the table. A cut never lies above or below all centers of its node. Among cuts
    with equally few mistakes the widest gap relative to the column's range is taken, then the first
    column, then the lowest threshold. A column whose observed cells are all equal is never cut,
    not even its missing cells from the others.

    Sparse rows take O(cells) per level instead; the tree is that of the same rows as a dense table.
    `scale` divides them and moves no zero.

    Of a column of text every level goes to the side where it makes fewer mistakes; all ways to part
    the centers of a node are tried up to 8 of them. Missing cells are not filled: costs and means
    are of the observed cells, and rows that lack the cell of a cut may go to either side of it.

    A center within 1e-9 of the range of its own rows of a data value counts as that value: rounding
    in a mean does not open gaps.

    References
    ----------
    Dasgupta, Frost, Moshkovitz, Rashtchian (2020). Explainable k-Means and k-Medians Clustering.
    Algorithm 1.

    Esfandiari, Mirrokni, Narayanan (2022). Almost Tight Approximation Algorithms for Explainable
    Clustering.

    Examples
    --------
    >>> import numpy as np, treeclust_rs as tc
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [9.0, 1.0], [9.0, 8.0], [8.0, 9.0]])
    >>> model = tc.IMM(n_clusters=3, random_state=0).fit(X)
    >>> model.n_leaves_, round(model.cost_ratio_, 6)
    (3, 1.0)
    >>> model.explain([[0.5, 1.0]])[0].split(": ")[1]
    'x1 = 1 <= 4 and x0 = 0.5 <= 5'
    """

    _takes_missing: ClassVar[bool] = True
    _takes_sparse: ClassVar[bool] = True
    _parameter_constraints: ClassVar[Constraints] = {
        **CentersTree._parameter_constraints,
        "cut_score": [StrOptions({"mistakes", "emn"})],
    }

    n_clusters: int | None = None
    _: KW_ONLY
    criterion: Criterion = "kmeans"
    cut_score: Literal["mistakes", "emn"] = "mistakes"
    reference: Any = None

    _lost_advice = "ExKMC with more leaves may give them rows."

    def _growth(self, n_clusters: int) -> Growth:  # noqa: ARG002
        return Growth(base="imm", cut_score=self.cut_score)
