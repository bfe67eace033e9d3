"""Kernel Expand: trees that reproduce the labels of a kernel clustering, or any others."""

from __future__ import annotations

from .._kernels import has_features
from .._util import estimator
from .kernel_tree import GrownKernelTree


@estimator
class KernelExpand(GrownKernelTree):
    """Explain any labels by a tree whose leaves are as pure as can be (Kernel Expand).

    Always the leaf is split whose best cut takes most rows out of leaves that are not their
    cluster's: the cost of a leaf is the weight of the rows whose reference label is not the leaf's.
    With enough leaves the reference is reproduced wherever single cuts make progress, whatever made
    it: kernel k-means, spectral clustering, HDBSCAN and its noise. One fit yields the trees of all
    smaller sizes: see `cost_path_` and `truncate`.

    %(grown_kernel_tree_parameters)s
    cluster_centers_ : ndarray of shape (n_clusters, n_coordinates)
        Means of the clusters' rows in the columns' own units, whatever the kernel is; a column of
        text has the share of each of its levels.
    %(encoded_names)s
    cost_path_ : polars.DataFrame
        By number of leaves `cost`, the weight of the rows in leaves of another label, and
        `inertia`.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the mismatches.
    %(kernel_columns_and_errors)s

    See Also
    --------
    KernelExKMC : Follows distances in the kernel's feature space instead.
    KernelIMM : Exactly one leaf per cluster.

    Notes
    -----
    With a reference given no kernel value is computed unless `kernel_cost_` or the price is asked
    for. With a reference and ``base_tree=None`` cells may be missing, and columns of frames text,
    booleans, dates and times; kernel values are then those of the filled table, in which a gap has
    the column's mean and a level is a coordinate of its own, 8 bytes for each row and level while a
    cost is computed (and during the fit with `approximation`). Sparse rows take O(cells) per level,
    and give the tree of the same rows as a dense table. Growth takes O(n) per column and
    level, O(n k) with `sample_weight`, and for each value or range of values at which a column is
    cut O(k) with thresholds, O(k^2) with intervals.

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
    >>> model.rules().select("cluster", "rule").rows()
    [(1, '-0.36 <= x0 <= 0.304 and -0.6 <= x1 <= 0.6'),
     (0, '-0.36 <= x0 <= 0.304 and (x1 < -0.6 or x1 > 0.6)'),
     (0, 'x0 < -0.36 or x0 > 0.304')]
    """

    _by_mismatch = True

    @property
    def _takes_missing(self) -> bool:  # type: ignore[override]
        # Labels are all that growth sees, and surrogate features are those of complete numbers.
        surrogate = self.kernel != "linear" and has_features(self.kernel)
        return self.reference is not None and (self.base_tree is None or not surrogate)
