"""Threshold trees that explain k-means and k-medians: IMM and ExKMC."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from .. import _engine
from .._base.clusterer import leaves_of_all
from .._base.cost_tree import CostTree, check_max_leaves, check_n_clusters
from .._data.checks import check_finite, check_sample_weight
from .._data.table import Table, read_table
from .._data.units import Units
from .._reference.reference import (
    DEFAULT_N_CLUSTERS,
    Criterion,
    Reference,
    fitted_rows,
    make_reference,
    own_medians,
    own_regret,
    read_reference,
)
from .._util.arrays import FloatArray
from .._util.progress import progress_line
from .._util.threads import effective_n_jobs
from .._util.validation import Interval, StrOptions
from ..metrics import ratio_of_costs, surrogate_cost
from ..tree.build import GrownTree
from ..tree.cluster_tree import ClusterTree, kept_ancestor

__all__ = ["IMM", "ExKMC"]


# A cost that two sums give as their difference is trusted to this share of the first of them.
_CANCELLED = 1e-6


@dataclass(frozen=True)
class Growth:
    """How the tree is grown from its base."""

    base: bool
    interval: bool = False
    max_leaves: int | None = None
    """None: as many as there are clusters."""
    max_depth: int | None = None
    min_samples_leaf: int = 1


class CentersTree(CostTree):
    """A tree fitted to the distances of rows to centers."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "criterion": [StrOptions({"kmeans", "kmedians"})],
        "reference": "no_validation",  # type: ignore[dict-item]
        "scale": [StrOptions({"standard"}), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    _saved: ClassVar[dict[str, str]] = {
        "cluster_centers_": "k d",
        "scale_": "d",
        "inertia_": "",
        "reference_inertia_": "",
        "_cost_path": "path",
    }

    n_clusters: int | None
    criterion: Criterion
    reference: Any
    scale: str | None
    random_state: Any
    n_jobs: int | None
    verbose: int

    def _growth(self, n_clusters: int) -> Growth:
        """Give the limits; raises ValueError if they do not suit the number of clusters."""
        raise NotImplementedError

    # ---- fit ------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: ARG002
        """Fit the tree.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            numpy array, polars DataFrame or LazyFrame, pandas DataFrame or pyarrow Table of
            numbers. Columns are read where they lie; they must not be written to meanwhile.
        y : ignored
            For the API.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, not negative. Rows of weight 0 are left out.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If X holds NaN, inf or null, or sizes do not fit: n_clusters and the rows, the
            reference, max_leaves.
        TypeError
            If a column is not numbers.
        """
        started = time.perf_counter()
        self._validate_params()
        threads = _engine.Threads(effective_n_jobs(self.n_jobs))
        name = type(self).__name__
        table = read_table(X, estimator_name=name)
        weight = check_sample_weight(sample_weight, table.n_samples)
        check_finite(table, threads)
        given = read_reference(self.reference, X, table, weight)
        check_n_clusters(self.n_clusters, given)
        kept, given, rows, weight = fitted_rows(given, table, weight)
        units = Units(*_engine.column_units(rows.data, weight, self.scale == "standard", threads))
        asked = self.n_clusters or given.n_clusters or DEFAULT_N_CLUSTERS
        growth = self._growth(asked)
        reference = make_reference(
            given,
            rows,
            units,
            weight,
            criterion=self.criterion,
            n_clusters=self.n_clusters,
            random_state=self.random_state,
            threads=threads,
            estimator_name=name,
            needs_distinct=growth.base,
        )
        tell = progress_line(self.verbose, name, rows.n_samples, started)
        grown = self._grow(rows, units, reference, growth, weight, threads, tell)
        tree = grown.build(reference.classes, table.n_features, table.feature_names)
        path = grown.cost_path(reference.minimum)
        summary = _Summary.of(
            grown.leaf_of_row,
            float(path[-1]),
            tree,
            reference,
            rows,
            units,
            weight,
            self.criterion,
            threads,
        )
        leaves = leaves_of_all(grown.leaf_of_row, kept, tree, table, threads)
        # Nothing is set before everything is known: a fit that fails leaves the estimator as it
        # was.
        self._set_tree(tree)
        self.scale_ = units.scale
        self._cost_path = path
        self._leaf_of_row = leaves
        self._summary = summary
        self._finish(reference.classes)
        if tell is not None:
            last = path[-2] - path[-1] if len(path) > 1 else 0.0
            tell(tree.n_leaves, last)
        return self

    def _grow(
        self,
        rows: Table,
        units: Units,  # noqa: ARG002
        reference: Reference,
        growth: Growth,
        weight: FloatArray | None,
        threads: _engine.Threads,
        tell: Callable[[int, float], None] | None,
    ) -> GrownTree:
        """Grow the tree."""
        fitted = _engine.fit_tree(
            rows.data,
            reference.regrets,
            reference.labels,
            base_centers=(reference.centers.high, reference.centers.low) if growth.base else None,
            sample_weight=weight,
            interval=growth.interval,
            max_leaves=growth.max_leaves or reference.n_clusters,
            max_depth=growth.max_depth,
            min_samples_leaf=growth.min_samples_leaf,
            n_jobs=threads,
            progress=tell,
        )
        return GrownTree.of(fitted)

    def _finish(self, classes: list[int] | list[str]) -> None:
        """Set what follows from the tree, the leaves of the rows and their sums."""
        tree, summary = self.tree_, self._summary
        self.classes_ = np.asarray(classes)
        self.labels_ = self.classes_[tree.leaf_clusters][self._leaf_of_row]
        self.reference_inertia_ = summary.reference_inertia
        self.cluster_centers_, self.inertia_ = summary.centers_and_inertia(
            tree, float(self._cost_path[-1])
        )

    # ---- results --------------------------------------------------------------------------

    @property
    def cost_ratio_(self) -> float:
        """`inertia_` / `reference_inertia_`: what explainability cost; 1 where both are 0."""
        check_is_fitted(self, "tree_")
        return ratio_of_costs(self.inertia_, self.reference_inertia_)

    def truncate(self, max_leaves: int) -> Self:
        """Give the model with fewer leaves, as a fit with this `max_leaves` would.

        Parameters
        ----------
        max_leaves : int
            Number of leaves, at least those of the base tree; the whole model if it has no more.

        Returns
        -------
        Self
            A new fitted estimator. `labels_`, `cluster_centers_`, `inertia_` and `cost_ratio_` are
            those of the smaller tree. Two cases lack the sums this takes: models read from a file
            have none of them, and with ``criterion="kmedians"`` or more than a million numbers
            (leaves x columns) only `labels_` is set.

        Raises
        ------
        ValueError
            If `max_leaves` is less than 1 or than the leaves of the base tree.
        """
        check_is_fitted(self, "tree_")
        tree = self.tree_.truncate(max_leaves)
        if tree is self.tree_:
            return copy.copy(self)
        model = copy.copy(self)
        if "max_leaves" in self.get_params(deep=False):
            model.set_params(max_leaves=tree.n_leaves)
        model._cost_path = self._cost_path[
            : len(self._cost_path) - (self.n_leaves_ - tree.n_leaves)
        ]
        model._set_tree(tree)
        for name in ("labels_", "cluster_centers_", "inertia_"):
            model.__dict__.pop(name, None)
        if hasattr(self, "_leaf_of_row"):
            kept = kept_ancestor(self.tree_, tree.n_nodes)
            model._leaf_of_row = kept[self._leaf_of_row].astype(np.int32)
            model._summary = self._summary.truncate(kept)
            model.labels_ = self.classes_[tree.leaf_clusters][model._leaf_of_row]
            if model._summary.sums is not None:
                model._finish(tree.classes)
        return model

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:  # noqa: ARG002
        """Give minus the cost of rows: of each to the center of the cluster the tree puts it in.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows.
        y : ignored
            For the API.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
            Minus the (k-means or k-medians) cost, on standardised columns if ``scale="standard"``.
        """
        table, leaves = self._route(X)
        weight = check_sample_weight(sample_weight, table.n_samples)
        codes = self.tree_.leaf_clusters[leaves]
        units = Units(self.cluster_centers_.mean(axis=0), self.scale_)
        centers = (self.cluster_centers_ - units.shift) / units.scale
        matrix = units.matrix(table)
        return -surrogate_cost(matrix, codes, centers, weight, criterion=self.criterion)

    def _check_saved(self, tree: ClusterTree) -> None:
        for name in ("scale_", "reference_inertia_", "_cost_path"):
            if name not in self.__dict__:
                raise ValueError(f"fitted of the model file lacks {name}.")
        if (self.scale_ <= 0).any():
            raise ValueError("The model file has a scale_ that is not positive.")
        self._check_cost_path(tree)
        if self.reference_inertia_ < 0 or self.__dict__.get("inertia_", 0.0) < 0:
            raise ValueError("The model file has a negative inertia.")


@dataclass(frozen=True)
class _Summary:
    """What the cost of the tree's clusters is made of: sums of the rows of every leaf."""

    reference_inertia: float
    reference_centers: FloatArray
    """k x d, in units."""
    units: Units
    leaf_ids: npt.NDArray[np.int64] | None = None
    weight: FloatArray | None = None
    sums: FloatArray | None = None
    """n_leaves x d, in units."""
    fixed: tuple[FloatArray, float] | None = None
    """Centers and inertia, where they were computed from the rows."""

    # Most numbers kept for truncate().
    MOST: ClassVar[int] = 1_000_000

    @classmethod
    def of(
        cls,
        leaf_of_row: npt.NDArray[np.uint32],
        surrogate: float,
        tree: ClusterTree,
        reference: Reference,
        rows: Table,
        units: Units,
        sample_weight: FloatArray | None,
        criterion: str,
        threads: _engine.Threads,
    ) -> _Summary:
        summary = cls(reference.inertia, reference.centers.in_units, units)
        if criterion == "kmedians":
            clusters = tree.leaf_clusters[leaf_of_row]
            medians = own_medians(rows, clusters, reference.n_clusters, sample_weight)
            empty = np.isnan(medians).any(axis=1)
            medians[empty] = reference.centers.high[empty]
            in_units = np.ascontiguousarray((medians - units.shift) / units.scale)
            inertia = _label_cost(rows, units, in_units, clusters, True, sample_weight, threads)
            return cls(*summary._head(), fixed=(medians, inertia))
        leaves = np.flatnonzero(tree.kind == 0).astype(np.int64)
        by_cluster = len(leaves) * rows.n_features > cls.MOST
        rank = np.zeros(tree.n_nodes, dtype=np.uint32)
        rank[leaves] = tree.leaf_clusters[leaves] if by_cluster else np.arange(len(leaves))
        n_groups = reference.n_clusters if by_cluster else len(leaves)
        weight, sums = _engine.group_sums(
            rows.data,
            units,
            rank[leaf_of_row],
            n_groups,
            sample_weight,
            threads,
        )
        summary = cls(*summary._head(), leaves, weight, sums)
        groups = np.arange(n_groups) if by_cluster else tree.leaf_clusters[leaves]
        centers, inertia = summary._means(groups, surrogate)
        if inertia < _CANCELLED * surrogate:
            # The two sums cancel: the reference's centers lie far from their rows.
            clusters = tree.leaf_clusters[leaf_of_row]
            in_units = np.ascontiguousarray((centers - units.shift) / units.scale)
            inertia = _label_cost(rows, units, in_units, clusters, False, sample_weight, threads)
            return cls(
                *summary._head(), leaves, weight, None if by_cluster else sums, (centers, inertia)
            )
        if by_cluster:
            return cls(*summary._head(), fixed=(centers, inertia))
        return summary

    def _head(self) -> tuple[float, FloatArray, Units]:
        return self.reference_inertia, self.reference_centers, self.units

    def _means(self, groups: npt.NDArray[Any], surrogate: float) -> tuple[FloatArray, float]:
        """Means of the clusters in the columns' own units, and the cost about them.

        The cost about the means is that about the reference's centers less what moving the centers
        saves.
        """
        assert self.sums is not None and self.weight is not None
        k = len(self.reference_centers)
        weight = np.bincount(groups, weights=self.weight, minlength=k)
        sums = np.zeros_like(self.reference_centers)
        np.add.at(sums, groups, self.sums)
        means = self.reference_centers.copy()
        filled = weight > 0
        means[filled] = sums[filled] / weight[filled, None]
        moved = ((means - self.reference_centers) ** 2).sum(axis=1)
        own = means * self.units.scale + self.units.shift
        return own, max(surrogate - float(weight @ moved), 0.0)

    def centers_and_inertia(self, tree: ClusterTree, surrogate: float) -> tuple[FloatArray, float]:
        if self.fixed is not None:
            return self.fixed
        return self._means(tree.leaf_clusters[self.leaf_ids], surrogate)

    def truncate(self, kept: npt.NDArray[np.int64]) -> _Summary:
        """Give the sums of a smaller tree; `kept`: the node each leaf has become a part of."""
        if self.sums is None or self.weight is None or self.leaf_ids is None:
            return _Summary(*self._head())
        leaves, rank = np.unique(kept[self.leaf_ids], return_inverse=True)
        leaves = leaves.astype(np.int64)
        sums = np.zeros((len(leaves), self.sums.shape[1]))
        np.add.at(sums, rank, self.sums)
        weight = np.bincount(rank, weights=self.weight, minlength=len(leaves)).astype(np.float64)
        return _Summary(*self._head(), leaves, weight, sums)


def _label_cost(
    table: Table,
    units: Units,
    centers: FloatArray,
    labels: npt.NDArray[Any],
    manhattan: bool,
    sample_weight: FloatArray | None,
    threads: _engine.Threads,
) -> float:
    regrets, _, minimum = _engine.label_costs(
        table.data, units, centers, manhattan, sample_weight, threads
    )
    return float(minimum + own_regret(regrets, labels))


class IMM(CentersTree):
    """Explain a clustering by a tree with one leaf per cluster (iterative mistake minimisation).

    At every node the threshold is taken that separates the fewest rows from their cluster's center;
    those rows count as mistakes and no longer matter below. The tree has exactly one leaf per
    cluster.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters; None means the reference's, or 8 without a reference.
    criterion : {"kmeans", "kmedians"}, default="kmeans"
        Squared Euclidean distance to means, or l1 distance to medians.
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
        Surrogate cost (about the reference's centers) by number of leaves.
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
    ExKMC : Spends more leaves to come closer to the reference.

    Notes
    -----
    O(n d) per level of the tree, plus sorting of the few bins that may hold the best cut; n d bytes
    of memory beside the table. A cut never lies above or below all centers of its node. Among cuts
    with equally few mistakes the widest gap relative to the column's range is taken, then the first
    column, then the lowest threshold.

    A center within 1e-9 of the range of its own rows of a data value counts as that value: rounding
    in a mean does not open gaps.

    References
    ----------
    Dasgupta, Frost, Moshkovitz, Rashtchian (2020). Explainable k-Means and k-Medians Clustering.
    Algorithm 1.

    Examples
    --------
    >>> import numpy as np, treeclust_rs as tc
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [9.0, 1.0], [9.0, 8.0], [8.0, 9.0]])
    >>> model = tc.IMM(n_clusters=3, random_state=0).fit(X)
    >>> model.n_leaves_, round(model.cost_ratio_, 6)
    (3, 1.0)
    >>> model.explain([[0.5, 1.0]])[0].split(": ")[1]
    'x1 = 1 <= 4 and x0 = 0.5 <= 5'
    """

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        criterion: Criterion = "kmeans",
        reference: Any = None,
        scale: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.criterion = criterion
        self.reference = reference
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _growth(self, n_clusters: int) -> Growth:  # noqa: ARG002
        return Growth(base=True)


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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CentersTree._parameter_constraints,
        "max_leaves": [Interval(Integral, 1, None, closed="left"), None],
        "base_tree": [StrOptions({"imm"}), None],
        "cuts": [StrOptions({"threshold", "interval"})],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
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
        is_default = self.n_clusters is None and self.reference is None
        check_max_leaves(self.max_leaves, n_clusters, is_default)
        return Growth(
            base=self.base_tree == "imm",
            interval=self.cuts == "interval",
            max_leaves=self.max_leaves,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
        )
