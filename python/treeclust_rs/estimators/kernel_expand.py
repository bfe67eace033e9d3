"""Kernel Expand: trees that count mismatches with any labels."""

from __future__ import annotations

from .kernel_tree import GrownKernelTree

__all__ = ["KernelExpand"]


class KernelExpand(GrownKernelTree):
    """Explain any labels by a tree whose leaves are as pure as can be (Kernel Expand).

    Always the leaf is split whose best cut takes most rows out of leaves that are not their
    cluster's: the cost of a leaf is the weight of the rows whose reference label is not the leaf's.
    With enough leaves the reference is reproduced wherever single cuts make progress, whatever made
    it: kernel k-means, spectral clustering, HDBSCAN and its noise. One fit yields the trees of all
    smaller sizes: see `cost_path_` and `truncate`.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters; None means the reference's, or 8 without a reference.
    max_leaves : int or None, default=None
        Most leaves, at least `n_clusters`; None means `n_clusters`.
    base_tree : {"kernel_imm", None}, default="kernel_imm"
        The tree to grow from: Kernel IMM's, or a single leaf. Kernels without surrogate features
        always grow from a single leaf.
    cuts : {"auto", "threshold", "interval"}, default="auto"
        Form of the cuts after the base: ``x <= a``, or ``a <= x <= b`` as well. "auto": intervals
        after Kernel IMM on features that rise and fall (taylor, distance, additive_chi2), whose
        tree may have some; else thresholds.
    max_depth : int or None, default=None
        Deepest level of leaves that growth may make; does not limit the base tree.
    min_samples_leaf : int, default=1
        Fewest rows in a leaf that growth may make; does not limit the base tree.
    kernel : str or callable, default="rbf"
        A kernel's name, "precomputed", or a function of two rows.
    gamma : float, "scale" or None, default=None
        Of the kernels rbf, laplacian, polynomial and chi2. None: 1 / n_features (chi2: 1).
        "scale": 1 / (n_features * mean variance of the columns).
    degree : float, default=3
        Of the polynomial kernel.
    coef0 : float, default=1.0
        Of the polynomial kernel.
    kernel_params : mapping, default=None
        ``{"epsilon": e}`` of the kernel epsilon, ``{"beta": b}`` of histogram_intersection, or
        keyword arguments of a callable.
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
        Weight of the rows in leaves of another label, by number of leaves.
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
    KernelExKMC : Follows distances in the kernel's feature space instead.
    KernelIMM : Exactly one leaf per cluster.

    Notes
    -----
    With a reference given no kernel value is computed unless `inertia_` or the price is asked for.
    Growth takes O(n k) per column and level with thresholds, O(n k^2) with intervals.

    References
    ----------
    Fleissner, Vankadara, Ghoshdastidar (2024). Explaining Kernel Clustering via Decision Trees.
    Algorithm 3, equation (7).

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> import treeclust_rs as tc
    >>> X, truth = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    >>> model = tc.KernelExpand(reference=truth, max_leaves=3, base_tree=None, cuts="interval")
    >>> model = model.fit(X)
    >>> model.tree_.rules().select("cluster", "rule").rows()
    [(1, '-0.36 <= x0 <= 0.304 and -0.6 <= x1 <= 0.6'),
     (0, '-0.36 <= x0 <= 0.304 and (x1 < -0.6 or x1 > 0.6)'),
     (0, 'x0 < -0.36 or x0 > 0.304')]
    """

    _by_mismatch = True
