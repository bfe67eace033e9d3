"""ExKMC: threshold trees with more leaves than clusters."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal

from .._base import LIMITS, Constraints, Growth, Limits
from .._reference.centers import Criterion
from .._util import StrOptions, estimator
from .centers_tree import CentersTree


@estimator
class ExKMC(CentersTree):
    """Explain a clustering by a tree with more leaves than clusters where that pays.

    Grown from IMM's tree (or from a single leaf): always the leaf is split whose best cut lowers
    the *surrogate cost* most, the cost of giving all rows of a leaf to the one reference center
    that suits them best. One fit yields the trees of all smaller sizes: see `cost_path_` and
    `truncate`.

    Parameters
    ----------
    %(n_clusters)s
    max_leaves : int, inf or None, default=None
        Most leaves, at least `n_clusters` (the paper's k'); None means `n_clusters`,
        ``math.inf`` no limit.
    base_tree : {"imm", None}, default="imm"
        The tree to grow from: IMM's, or a single leaf.
    cuts : {"threshold", "interval"}, default="threshold"
        Form of the cuts after the base: ``x <= a``, or ``a <= x <= b`` as well.
    criterion : {"kmeans", "kmedians"}, default="kmeans"
        Squared Euclidean distance to means, or l1 distance to medians.
    %(growth)s
    %(explaining_attributes)s
    cost_path_ : polars.DataFrame
        By number of leaves, from the base tree's on: `cost`, the surrogate about the reference's
        centers, which never rises, and `inertia`, that about the tree's own.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the surrogate cost.
    %(columns_in_and_value_error)s

    See Also
    --------
    IMM : Exactly one leaf per cluster.

    Notes
    -----
    O(n d k) for the sums of the first level and less for each split after it. Memory beside the
    table: n d bytes, 3 n k floats, and at most 40 MB of sums kept for open leaves. The tree is
    exactly the one that sorting every column at every node would give. Growth ends early where no
    single cut lowers the surrogate cost.

    Sparse rows take O(cells k) instead, with intervals O(cells k^2); the tree is that of the same
    rows as a dense table. `scale` divides them and moves no zero. Medians of columns that are 0 in
    most rows are 0: k-medians tells clusters of such rows hardly apart.

    Of a column of text the cut is the best of all sets of levels (but for a `min_samples_leaf`
    above 64: nearly the best). Missing cells are not filled: costs and means are of the observed
    cells. Where rows lack the cell of a cut, it is tried with them on either side, and the missing
    cells against all others.

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

    _takes_missing: ClassVar[bool] = True
    _takes_sparse: ClassVar[bool] = True
    _parameter_constraints: ClassVar[Constraints] = {
        **CentersTree._parameter_constraints,
        **LIMITS,
        "base_tree": [StrOptions({"imm"}), None],
        "cuts": [StrOptions({"threshold", "interval"})],
    }

    n_clusters: int | None = None
    _: KW_ONLY
    max_leaves: int | float | None = None
    base_tree: str | None = "imm"
    cuts: str = "threshold"
    criterion: Criterion = "kmeans"
    max_depth: int | None = None
    min_samples_leaf: int = 1
    reference: Any = None

    def _growth(self, n_clusters: int) -> Growth:
        limits = Limits.of(self)
        limits.check(n_clusters, self.n_clusters is None and self.reference is None)
        base: Literal["imm"] | None = "imm" if self.base_tree == "imm" else None
        return Growth(base, interval=self.cuts == "interval", limits=limits)
