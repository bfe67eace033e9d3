"""Kernel IMM: trees with one leaf per cluster of a kernel clustering."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._kernels.surrogate import choose_features
from .kernel_tree import KernelGrowth, KernelTree

__all__ = ["KernelIMM"]


class KernelIMM(KernelTree):
    """Explain a kernel clustering by a tree with one leaf per cluster (Kernel IMM).

    Iterative mistake minimisation on *surrogate features*: functions of one column each, which
    together stand for the kernel's feature space. They rise to one peak and fall, so a threshold on
    a feature is an interval of its column, and the tree's tests are ``a <= x <= b`` or ``x <= a``
    in the input's own columns.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters; None means the reference's, or 8 without a reference.
    kernel : str or callable, default="rbf"
        rbf (gaussian), laplacian, linear, hellinger, histogram_intersection or additive_chi2; the
        other kernels have no surrogate features.
    gamma : float, "scale" or None, default=None
        Of the kernels rbf and laplacian. None: 1 / n_features. "scale": 1 / (n_features * mean
        variance of the columns).
    degree : float, default=3
        Of the polynomial kernel.
    coef0 : float, default=1.0
        Of the polynomial kernel.
    kernel_params : mapping, default=None
        ``{"beta": b}`` of histogram_intersection.
    approximation : {None, "nystroem", "rpcholesky", "rff"}, default=None
        None: the exact kernel, whose matrix kernel k-means needs (8 n^2 bytes) unless it is linear
        or hellinger. Else features of low rank, in memory O(n_samples * n_components); costs are
        then those of the approximated kernel.
    n_components : int, default=100
        Most features of an approximation.
    n_init : int, default=10
        Starts of kernel k-means.
    features : {"auto", "taylor", "distance", "additive"}, default="auto"
        "taylor" (rbf): terms of the Gaussian's Taylor series, definition 3. "distance" (rbf,
        laplacian): the kernel of the column with anchors, equation (4). "additive" (the others):
        appendix H. "auto": taylor for rbf, distance for laplacian, additive for the others.
    order : int, default=5
        M: the last term of "taylor" (the first is 0), the number of features of additive_chi2.
    n_anchors : int, "all" or None, default=None
        Anchors of "distance" per column: "all" distinct values, or that many values at even
        quantiles of the rows. None: all up to 256, else 256.
    shift : float or array-like of shape (n_features,), default=None
        Origin of "taylor", below all values of the column and in its units; the truncated series
        depends on it. None: 1 % of the column's range below its smallest value.
    reference : None, estimator or array, default=None
        What the tree explains. None: `KernelKMeans`. A fitted estimator: its `labels_` (or
        `predict`); an unfitted one is cloned and fitted to X. A 1-D array: a label per row,
        integers or strings; -1 marks noise, which is left out of the fit. A 2-D array: centers in
        the columns of X; the nearest counts.
    scale : {None, "standard"}, default=None
        "standard": kernels see the columns divided by their standard deviations; tests stay in the
        columns' own units.
    random_state : int, RandomState or None, default=None
        Seed of kernel k-means and of approximations.
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
    reference_labels_ : ndarray of shape (n_samples,)
        What the tree explains; -1 for rows that were left out.
    n_leaves_ : int
        Number of leaves.
    classes_ : ndarray of shape (n_clusters,)
        The clusters' labels.
    inertia_, reference_inertia_ : float
        Kernel k-means cost of the tree's and of the reference's clusters about their own implicit
        means; computed when first asked for.
    price_of_explainability_, cost_ratio_ : float
        `inertia_` / `reference_inertia_` (definition 4).
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters' rows in the columns' own units, whatever the kernel is.
    cost_path_ : polars.DataFrame
        Weight of the rows in leaves of another label: one line, there is one tree.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the mismatches.
    gamma_ : float or None
        The kernel's gamma; None for kernels without one.
    scale_ : ndarray of shape (n_features,)
        Units of the columns: their standard deviations, or ones.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X had names.

    Raises
    ------
    ValueError, TypeError
        By `fit`: see there.

    See Also
    --------
    KernelExKMC : Spends more leaves to come closer to the reference.
    KernelExpand : Reproduces any labels.
    KernelKMeans : The clustering it explains.

    Notes
    -----
    Among cuts with equally few mistakes the widest gap relative to the feature's range is taken,
    then the first column, then its first feature, then the lowest threshold. The ends of an
    interval lie between neighbouring values of the column at the node.

    A node takes O(n) per feature and O(n log n) per column; with all anchors that is O(n^2) per
    column. With a reference given no kernel value is computed unless `inertia_` or the price is
    asked for. Features are never held for all rows: beside the table a fit takes O(n d k) bytes,
    some 2 kB a row with 4 columns and 10 clusters, 8 k bytes for each feature, and the rows as the
    kernel sees them (8 bytes a cell), which are kept for `inertia_`.

    References
    ----------
    Fleissner, Vankadara, Ghoshdastidar (2024). Explaining Kernel Clustering via Decision Trees.
    Algorithm 1, definition 3, equation (4), appendix H.

    Examples
    --------
    >>> import numpy as np, treeclust_rs as tc
    >>> X = np.array([[0.0], [0.1], [2.0], [2.1], [4.0], [4.1]])
    >>> labels = [0, 0, 1, 1, 0, 0]
    >>> model = tc.KernelIMM(reference=labels, gamma=1.0).fit(X)
    >>> model.labels_
    array([0, 0, 1, 1, 0, 0])
    >>> model.tree_.rules()["rule"].to_list()
    ['1 <= x0 <= 3', 'x0 < 1 or x0 > 3']
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        kernel: Any = "rbf",
        gamma: float | str | None = None,
        degree: float = 3,
        coef0: float = 1.0,
        kernel_params: Mapping[str, Any] | None = None,
        approximation: str | None = None,
        n_components: int = 100,
        n_init: int = 10,
        features: str = "auto",
        order: int = 5,
        n_anchors: int | str | None = None,
        shift: Any = None,
        reference: Any = None,
        scale: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.approximation = approximation
        self.n_components = n_components
        self.n_init = n_init
        self.features = features
        self.order = order
        self.n_anchors = n_anchors
        self.shift = shift
        self.reference = reference
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # A base tree alone: label costs serve the cost path only, and need no distances.
    _by_mismatch = True

    def _growth(self) -> KernelGrowth:
        choose_features(self.kernel, self.features)
        return KernelGrowth("kernel_imm")
