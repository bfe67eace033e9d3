"""KMeansTree: a classification tree on the labels of k-means."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from .._base.parameters import Constraints
from .._util.validation import StrOptions
from .labels_tree import LabelsTree

__all__ = ["KMeansTree"]


class KMeansTree(LabelsTree):
    """Explain a clustering by a classification tree (CART) on its labels.

    The baseline that explanations of clusterings are compared with: the leaf is split whose best
    cut lowers the weighted impurity of the reference's labels most. Distances to centers play no
    part in growth.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters; None means the reference's, or 8 without a reference.
    max_leaves : int or None, default=None
        Most leaves, at least `n_clusters`; None means `n_clusters`.
    impurity : {"gini", "entropy"}, default="gini"
        Impurity of the labels of a node.
    max_depth : int or None, default=None
        Deepest level of leaves.
    min_samples_leaf : int, default=1
        Fewest rows in a leaf.
    reference : None, estimator or array, default=None
        What the tree explains. None: scikit-learn's KMeans (best of 10 starts). A fitted estimator:
        its `labels_` (or `predict`) and `cluster_centers_`; an unfitted one is cloned and fitted to
        X. A 2-D array: centers in the columns of X. A 1-D array: a label per row, integers or
        strings; -1 marks noise, which is left out of the fit.
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
        Means of the tree's clusters, in the columns' own units; an empty cluster keeps the
        reference's.
    inertia_ : float
        Cost of the tree's clusters about their own centers, on standardised columns if
        ``scale="standard"``.
    reference_inertia_ : float
        Cost of the reference's clusters about the reference's centers.
    cost_ratio_ : float
        `inertia_` / `reference_inertia_`.
    cost_path_ : polars.DataFrame
        Surrogate cost (about the reference's centers) by number of leaves. It may rise: growth
        follows the labels.
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
    ExKMC : Follows the cost of the clusters in place of their labels.
    SpExTree : Keeps each label together, in few leaves.

    Notes
    -----
    The tree of scikit-learn's `DecisionTreeClassifier` with `max_leaf_nodes`, up to ties, compared
    in float64 and with thresholds of few digits. A node of one label is not split; others are, even
    without gain. O(n d k) for the sums of the first level and less for each split after it.

    References
    ----------
    Breiman, Friedman, Olshen, Stone (1984). Classification and Regression Trees. As a baseline in
    Ohl et al., End-to-end training of unsupervised trees: Kauri and Douglas (KMeans+Tree).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import treeclust_rs as tc
    >>> X = load_iris().data
    >>> model = tc.KMeansTree(n_clusters=3, max_leaves=5, random_state=0).fit(X)
    >>> model.n_leaves_, round(model.cost_ratio_, 3)
    (5, 1.0)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **LabelsTree._parameter_constraints,
        "impurity": [StrOptions({"gini", "entropy"})],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        max_leaves: int | None = None,
        impurity: Literal["gini", "entropy"] = "gini",
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
        self.impurity = impurity
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.reference = reference
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _counts(self) -> str:
        return self.impurity
