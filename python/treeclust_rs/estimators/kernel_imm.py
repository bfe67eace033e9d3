"""Kernel IMM: trees with one leaf per cluster of a kernel clustering."""

from __future__ import annotations

from .._kernels import choose_features
from .._util import estimator
from .kernel_tree import KernelGrowth, KernelTree


@estimator
class KernelIMM(KernelTree):
    """Explain a kernel clustering by a tree with one leaf per cluster (Kernel IMM).

    Iterative mistake minimisation on *surrogate features*: functions of one column each, which
    together stand for the kernel's feature space. They rise to one peak and fall, so a threshold on
    a feature is an interval of its column, and the tree's tests are ``a <= x <= b`` or ``x <= a``
    in the input's own columns.

    Parameters
    ----------
    %(n_clusters)s
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
    %(kernel_tree)s

    Attributes
    ----------
    %(kernel_tree_attributes)s
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters' rows in the columns' own units, whatever the kernel is.
    %(encoded_names)s
    cost_path_ : polars.DataFrame
        `cost`, the weight of the rows in leaves of another label, and `inertia`: one line, there is
        one tree.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the mismatches.
    %(kernel_columns_and_errors)s

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
    column. With a reference given no kernel value is computed unless `kernel_cost_` or the price is
    asked for. Features are never held for all rows: beside the table a fit takes O(n d k) bytes,
    some 2 kB a row with 4 columns and 10 clusters, 8 k bytes for each feature, and the rows as the
    kernel sees them (8 bytes a cell), which are kept for `kernel_cost_`. Sparse rows are taken with
    ``kernel="linear"``, which is IMM.

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
    >>> model.rules()["rule"].to_list()
    ['1 <= x0 <= 3', 'x0 < 1 or x0 > 3']
    """

    # A base tree alone: label costs serve the cost path only, and need no distances.
    _by_mismatch = True
    _lost_advice = "KernelExpand with more leaves may give them rows."

    @property
    def _takes_sparse(self) -> bool:  # type: ignore[override]
        # The linear kernel's features are the columns; those of others are of dense ones.
        return self.kernel == "linear" and self.approximation is None

    def _growth(self) -> KernelGrowth:
        choose_features(self.kernel, self.features)
        return KernelGrowth("kernel_imm")
