"""Kernel ExKMC and Kernel Expand: trees grown by distances in feature space, or by labels."""

from __future__ import annotations

from .._util.docs import estimator
from .kernel_tree import GrownKernelTree


@estimator
class KernelExKMC(GrownKernelTree):
    """Explain a kernel clustering by a tree that lowers the kernel's surrogate cost (Kernel ExKMC).

    Always the leaf is split whose best cut lowers the *surrogate cost* most: the cost of giving all
    rows of a leaf to the one reference cluster whose implicit mean in the kernel's feature space
    suits them best. Explains any kernel. One fit yields the trees of all smaller sizes: see
    `cost_path_` and `truncate`.

    %(grown_kernel_tree_parameters)s
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters' rows in the columns' own units, whatever the kernel is.
    cost_path_ : polars.DataFrame
        Surrogate cost (about the reference's implicit means) by number of leaves.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the surrogate cost.
    %(kernel_columns_and_errors)s

    See Also
    --------
    KernelExpand : Counts mismatches with the reference instead of distances.
    KernelIMM : Exactly one leaf per cluster.

    Notes
    -----
    Distances to the implicit means take O(n^2) kernel values, once, and no n x n matrix where the
    reference is given; with an approximation O(n n_components k). Growth takes O(n k) per column
    and level with thresholds, O(n k^2) with intervals. With the linear kernel and labels given the
    tree is that of ExKMC.

    References
    ----------
    Fleissner, Vankadara, Ghoshdastidar (2024). Explaining Kernel Clustering via Decision Trees.
    Algorithm 2, equations (5) and (6).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> import treeclust_rs as tc
    >>> X, _ = make_moons(200, noise=0.05, random_state=0)
    >>> model = tc.KernelExKMC(2, max_leaves=4, gamma=5.0, random_state=0).fit(X)
    >>> model.n_leaves_, model.truncate(2).n_leaves_
    (4, 2)
    """

    _warns_misfit = True


@estimator
class KernelExpand(GrownKernelTree):
    """Explain any labels by a tree whose leaves are as pure as can be (Kernel Expand).

    Always the leaf is split whose best cut takes most rows out of leaves that are not their
    cluster's: the cost of a leaf is the weight of the rows whose reference label is not the leaf's.
    With enough leaves the reference is reproduced wherever single cuts make progress, whatever made
    it: kernel k-means, spectral clustering, HDBSCAN and its noise. One fit yields the trees of all
    smaller sizes: see `cost_path_` and `truncate`.

    %(grown_kernel_tree_parameters)s
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters' rows in the columns' own units, whatever the kernel is.
    cost_path_ : polars.DataFrame
        Weight of the rows in leaves of another label, by number of leaves.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the mismatches.
    %(kernel_columns_and_errors)s

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
