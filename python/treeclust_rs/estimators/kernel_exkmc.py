"""Kernel ExKMC: trees grown by distances in the feature space of a kernel."""

from __future__ import annotations

from .._util import estimator
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
    %(encoded_names)s
    cost_path_ : polars.DataFrame
        By number of leaves `cost`, the surrogate about the reference's implicit means, and
        `inertia`.
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
    tree is that of ExKMC. Sparse rows take O(cells) per level, and give the tree of the same rows
    as a dense table.

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
