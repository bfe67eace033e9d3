"""ExKMC: threshold trees with more leaves than clusters."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from .._base.growth import Growth, Limits
from .._base.parameters import LIMITS, Constraints
from .._reference.centers import Criterion
from .._util.validation import StrOptions
from .centers_tree import CentersTree

__all__ = ["ExKMC"]


class ExKMC(CentersTree):
    """Explain a clustering by a tree with more leaves than clusters where that pays.

    Grown from IMM's tree (or from a single leaf): always the leaf is split whose best cut lowers
    the *surrogate cost* most, the cost of giving all rows of a leaf to the one reference center
    that suits them best. One fit yields the trees of all smaller sizes: see `cost_path_` and
    `truncate`.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters; None means the reference's, or 8 without a reference.
    max_leaves : int or None, default=None
        Most leaves, at least `n_clusters` (the paper's k'); None means `n_clusters`.
    base_tree : {"imm", None}, default="imm"
        The tree to grow from: IMM's, or a single leaf.
    cuts : {"threshold", "interval"}, default="threshold"
        Form of the cuts after the base: ``x <= a``, or ``a <= x <= b`` as well.
    criterion : {"kmeans", "kmedians"}, default="kmeans"
        Squared Euclidean distance to means, or l1 distance to medians.
    max_depth : int or None, default=None
        Deepest level of leaves that growth may make; does not limit the base tree.
    min_samples_leaf : int, default=1
        Fewest rows in a leaf that growth may make; does not limit the base tree.
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
        Surrogate cost by number of leaves, never rising, from the base tree's size on.
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
    IMM : Exactly one leaf per cluster.

    Notes
    -----
    O(n d k) for the sums of the first level and less for each split after it. Memory beside the
    table: n d bytes, 3 n k floats, and at most 40 MB of sums kept for open leaves. The tree is
    exactly the one that sorting every column at every node would give. Growth ends early where no
    single cut lowers the surrogate cost.

    References
    ----------
    Frost, Moshkovitz, Rashtchian (2020). ExKMC: Expanding Explainable k-Means Clustering.
    Section 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import treeclust_rs as tc
    >>> X = load_iris().data
    >>> model = tc.ExKMC(n_clusters=3, max_leaves=5, random_state=0).fit(X)
    >>> model.n_leaves_
    5
    >>> model.truncate(3).n_leaves_
    3
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **CentersTree._parameter_constraints,
        **LIMITS,
        "base_tree": [StrOptions({"imm"}), None],
        "cuts": [StrOptions({"threshold", "interval"})],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        max_leaves: int | None = None,
        base_tree: str | None = "imm",
        cuts: str = "threshold",
        criterion: Criterion = "kmeans",
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        reference: Any = None,
        scale: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_leaves = max_leaves
        self.base_tree = base_tree
        self.cuts = cuts
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.reference = reference
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _growth(self, n_clusters: int) -> Growth:
        limits = Limits.of(self)
        limits.check(n_clusters, self.n_clusters is None and self.reference is None)
        base: Literal["imm"] | None = "imm" if self.base_tree == "imm" else None
        return Growth(base, interval=self.cuts == "interval", limits=limits)
