"""IMM: threshold trees with one leaf per cluster."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from .._base.growth import Growth
from .._base.parameters import Constraints
from .._reference.centers import Criterion
from .._util.validation import StrOptions
from .centers_tree import CentersTree

__all__ = ["IMM"]


class IMM(CentersTree):
    """Explain a clustering by a tree with one leaf per cluster (iterative mistake minimisation).

    At every node the threshold is taken that separates the fewest rows from their cluster's center;
    those rows count as mistakes and no longer matter below. The tree has exactly one leaf per
    cluster.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters; None means the reference's, or 8 without a reference.
    criterion : {"kmeans", "kmedians"}, default="kmeans"
        Squared Euclidean distance to means, or l1 distance to medians.
    cut_score : {"mistakes", "emn"}, default="mistakes"
        What the cut of a node makes small: its mistakes, or its mistakes divided by the number of
        centers on the side that has fewer (Esfandiari, Mirrokni, Narayanan 2022). "emn" prefers
        balanced cuts; its cost is at most O(k log k) times that of k-means, O(log k log log k)
        times that of k-medians.
    reference : None, estimator or array, default=None
        What the tree explains. None: scikit-learn's KMeans (best of 10 starts), or k-medians. A
        fitted estimator: its `labels_` (or `predict`) and `cluster_centers_`; an unfitted one is
        cloned and fitted to X. A 2-D array: centers in the columns of X. A 1-D array: a label per
        row, integers or strings; -1 marks noise, which is left out of the fit.
    scale : {None, "standard"}, default=None
        "standard": costs on columns divided by their standard deviation; thresholds stay in the
        columns' own units.
    random_state : int, RandomState or None, default=None
        Seed of the reference clustering.
    n_jobs : int or None, default=None
        Threads. None: all cores, and 1 inside joblib workers. The result does not depend on it.
    verbose : int, default=0
        Whether to print a line of progress now and then.

    Attributes
    ----------
    tree_ : ClusterTree
        The tree; print it.
    labels_ : ndarray of shape (n_samples,)
        Cluster of every row, noise included, as the tree predicts it.
    n_leaves_ : int
        Number of leaves.
    classes_ : ndarray of shape (n_clusters,)
        The clusters' labels.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means (medians) of the tree's clusters, in the columns' own units; an empty cluster keeps
        the reference's.
    inertia_ : float
        Cost of the tree's clusters about their own centers, on standardised columns if
        ``scale="standard"``.
    reference_inertia_ : float
        Cost of the reference's clusters about the reference's centers.
    cost_ratio_ : float
        `inertia_` / `reference_inertia_`.
    cost_path_ : polars.DataFrame
        Surrogate cost (about the reference's centers) by number of leaves.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the surrogate cost.
    scale_ : ndarray of shape (n_features,)
        Units of the columns in costs: their standard deviations, or ones.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X had names.

    Raises
    ------
    ValueError
        By `fit`: see there.

    See Also
    --------
    ExKMC : Spends more leaves to come closer to the reference.

    Notes
    -----
    O(n d) per level of the tree, plus sorting of the few bins that may hold the best cut; n d bytes
    of memory beside the table. A cut never lies above or below all centers of its node. Among cuts
    with equally few mistakes the widest gap relative to the column's range is taken, then the first
    column, then the lowest threshold.

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

    _parameter_constraints: ClassVar[Constraints] = {
        **CentersTree._parameter_constraints,
        "cut_score": [StrOptions({"mistakes", "emn"})],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        criterion: Criterion = "kmeans",
        cut_score: Literal["mistakes", "emn"] = "mistakes",
        reference: Any = None,
        scale: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.criterion = criterion
        self.cut_score = cut_score
        self.reference = reference
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _growth(self, n_clusters: int) -> Growth:  # noqa: ARG002
        return Growth(base="imm", cut_score=self.cut_score)
