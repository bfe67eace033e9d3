"""SpExTree: threshold trees that keep each label together."""

from __future__ import annotations

from typing import Any

from .labels_tree import LabelsTree

__all__ = ["SpExTree"]


class SpExTree(LabelsTree):
    """Explain any labels by a threshold tree that separates as few of their pairs as it can (SpEx).

    A part S of the rows costs phi(S): of the pairs of rows that share a label and have a row in S,
    the share whose other row lies outside S. The leaf is split whose best cut adds least,
    phi(left) + phi(right) - phi(leaf).

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters; None means the reference's, or 8 without a reference.
    max_leaves : int or None, default=None
        Most leaves, at least `n_clusters`; None means `n_clusters`.
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
    KMeansTree : A classification tree on the labels.
    KernelExpand : Reproduces any labels with the fewest mistakes.

    Notes
    -----
    The clique form of SpEx, which needs no centers and no distances. With l_c the rows of label c
    in S and G_c all rows of label c, phi(S) is the sum of l_c (G_c - l_c) over the labels, divided
    by that of l_c (G_c - 1); 0 / 0 is 0. A node of one label is not split; growth ends at
    `max_leaves`. A row of weight w counts as w rows. O(n d k) for the sums of the first level and
    less for each split after it.

    References
    ----------
    SpEx: A Spectral Approach to Explainable Clustering. NeurIPS 2025. SpEx-Clique.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import treeclust_rs as tc
    >>> X = load_iris().data
    >>> model = tc.SpExTree(n_clusters=3, random_state=0).fit(X)
    >>> model.n_leaves_, round(model.cost_ratio_, 3)
    (3, 1.037)
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        max_leaves: int | None = None,
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
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.reference = reference
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _counts(self) -> str:
        return "clique"
