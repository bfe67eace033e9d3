"""Trees that explain kernel clusterings: Kernel IMM, Kernel ExKMC and Kernel Expand."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import _engine
from .._base.clusterer import leaves_of_all
from .._base.cost_tree import CostTree, check_max_leaves, check_n_clusters
from .._base.kernel_model import KernelModel
from .._base.leaf_sums import LeafSums
from .._data.checks import check_finite, check_sample_weight
from .._data.table import Table, read_table
from .._data.units import Units
from .._kernels.gram import check_gram
from .._kernels.kernel_data import KernelData, make_kernel_data
from .._kernels.lloyd import cluster
from .._kernels.parameters import KERNEL_CONSTRAINTS, check_gram_argument
from .._kernels.surrogate import FEATURES, SurrogateFeatures, choose_features, has_features
from .._reference.reference import (
    DEFAULT_N_CLUSTERS,
    Centers,
    Given,
    centers_of,
    check_distinct,
    check_enough_rows,
    fitted_rows,
    read_reference,
    warn_misfit,
)
from .._util.arrays import FloatArray
from .._util.progress import progress_line
from .._util.threads import effective_n_jobs
from .._util.validation import Interval, StrOptions
from .._util.words import listed, quoted_column
from ..metrics import ratio_of_costs
from ..tree.build import GrownTree
from ..tree.cluster_tree import ClusterTree, kept_ancestor

__all__ = ["KernelExKMC", "KernelExpand", "KernelIMM"]

Codes = npt.NDArray[np.int64]

# Label costs this close to a row's least, as a share of themselves, are equal to it.
_EQUAL_COST = 1e-13
_MAX_ITER = 300


@dataclass(frozen=True)
class _Costs:
    """Label costs of the rows of a fit: what growth lowers."""

    regrets: FloatArray
    """n x k: weight times (cost of the label - cost of the row's cheapest)."""
    minimum: float
    """Weighted sum of the rows' cheapest costs."""

    @classmethod
    def of_mismatch(cls, labels: Codes, k: int, weight: FloatArray | None) -> _Costs:
        regrets = np.ones((len(labels), k))
        regrets[np.arange(len(labels)), labels] = 0.0
        if weight is not None:
            regrets *= weight[:, None]
        return cls(regrets, 0.0)

    @classmethod
    def of_distances(cls, distances: FloatArray, weight: FloatArray | None) -> _Costs:
        least = distances.min(axis=1)
        regrets = distances - least[:, None]
        regrets[regrets <= _EQUAL_COST * distances] = 0.0
        if weight is None:
            return cls(regrets, float(least.sum()))
        return cls(regrets * weight[:, None], float(weight @ least))


@dataclass(frozen=True)
class _Base:
    """The tree that growth starts from: none, IMM's, or Kernel IMM's."""

    centers: Centers | None = None
    surrogate: SurrogateFeatures | None = None


class _KernelTree(CostTree, KernelModel):
    """A tree fitted to a clustering in a kernel's feature space."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        **KERNEL_CONSTRAINTS,
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "features": [StrOptions(set(FEATURES))],
        "order": [Interval(Integral, 1, None, closed="left")],
        "n_anchors": [Interval(Integral, 1, None, closed="left"), StrOptions({"all"}), None],
        "shift": [Interval(Real, None, None, closed="neither"), "array-like", None],
        "reference": "no_validation",  # type: ignore[dict-item]
        "scale": [StrOptions({"standard"}), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    _saved: ClassVar[dict[str, str]] = {
        "cluster_centers_": "k d",
        "scale_": "d",
        "gamma_": "",
        "_inertia": "",
        "_reference_inertia": "",
        "_cost_path": "path",
    }
    _from_rows: ClassVar[tuple[str, ...]] = (
        "labels_",
        "reference_labels_",
        "cluster_centers_",
        "inertia_",
        "reference_inertia_",
        "cost_ratio_",
        "price_of_explainability_",
    )

    n_clusters: int | None
    n_components: int
    n_init: int
    features: str
    order: int
    n_anchors: int | str | None
    shift: Any
    reference: Any
    scale: str | None
    random_state: Any
    verbose: int

    # What growth lowers: distances to the implicit means, or mismatches with the reference.
    _by_mismatch: ClassVar[bool] = False
    # Whether rows far from their own cluster's mean make this the wrong tree.
    _warns_misfit: ClassVar[bool] = False

    @property
    def _limits(self) -> dict[str, Any]:
        """Give limits of growth after the base tree; a base tree alone has none."""
        return {"max_leaves": None, "max_depth": None, "min_samples_leaf": 1}

    def _has_base(self) -> bool:
        """Whether growth starts from Kernel IMM; raises ValueError if it must and cannot."""
        raise NotImplementedError

    def _interval(self, base: _Base) -> bool:
        """Whether growth may take intervals."""
        raise NotImplementedError

    # ---- fit ------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, gram: Any = None) -> Self:  # noqa: ARG002
        """Fit the tree.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            numpy array, polars DataFrame or LazyFrame, pandas DataFrame or pyarrow Table of
            numbers: the columns the tree may cut, and the rows the kernel compares.
        y : ignored
            For the API.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, not negative. Rows of weight 0 are left out.
        gram : array-like of shape (n_samples, n_samples), default=None
            The kernel matrix, symmetric; with ``kernel="precomputed"``, and only then.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If X or `gram` hold NaN or inf; sizes do not fit (n_clusters and the rows or the
            reference, max_leaves); the kernel is not defined on X (negative cells), has no such
            surrogate features, or they cannot tell two clusters apart; the kernel matrix would be
            too large.
        TypeError
            If a column is not numbers, or a callable kernel gives no number.

        Warns
        -----
        UserWarning
            If the kernel is not positive semidefinite, or 0 for any two rows (the clusters found
            are then arbitrary), surrogate features underflow, or, by KernelExKMC, many rows are
            nearer to the mean of another cluster than their label's.
        """
        started = time.perf_counter()
        self._validate_params()
        check_gram_argument(self.kernel, self.approximation, gram is not None)
        has_base = self._has_base()
        threads = _engine.Threads(effective_n_jobs(self.n_jobs))
        name = type(self).__name__
        table = read_table(X, estimator_name=name)
        weight = check_sample_weight(sample_weight, table.n_samples)
        check_finite(table, threads)
        if gram is not None:
            gram = check_gram(gram, table.n_samples)
        given = read_reference(self.reference, X, table, weight)
        check_n_clusters(self.n_clusters, given)
        kept, given, rows, weight = fitted_rows(given, table, weight)
        if gram is not None and kept is not None:
            gram = np.ascontiguousarray(gram[np.ix_(kept, kept)])
        asked = self.n_clusters or given.n_clusters or DEFAULT_N_CLUSTERS
        is_default = self.n_clusters is None and self.reference is None
        limits = self._limits
        check_max_leaves(limits["max_leaves"], asked, is_default)
        units = Units(*_engine.column_units(rows.data, weight, self.scale == "standard", threads))
        rng = check_random_state(self.random_state)
        clustered = given.n_clusters is None
        if clustered:
            check_enough_rows(asked, self.n_clusters, rows.n_samples, name)
        # A clustering given from outside needs no kernel matrix.
        n_jobs = threads.n_jobs
        stocks = make_kernel_data(self, rows, units, weight, gram, rng, n_jobs, hold_gram=clustered)
        if clustered:
            found = cluster(
                stocks,
                asked,
                n_init=self.n_init,
                max_iter=_MAX_ITER,
                tol=0.0,
                random_state=rng,
                n_jobs=n_jobs,
            )
            classes: Any
            labels = found.labels
            classes = list(range(int(labels.max()) + 1))
        else:
            classes, labels = _given_labels(given, rows, units, weight, threads)
        k = len(classes)
        centers = centers_of(rows, units, labels, k, weight, "kmeans", threads)
        is_linear = stocks.kernel is not None and stocks.kernel.name == "linear"
        base = self._make_base(stocks, rows, units, centers, classes) if has_base else _Base()
        if self._by_mismatch:
            costs = _Costs.of_mismatch(labels, k, weight)
        elif is_linear and self.approximation is None:
            # As ExKMC has them, to the last bit.
            regrets, _, minimum = _engine.label_costs(
                rows.data, units, centers.in_units, False, weight, threads
            )
            costs = _Costs(regrets, minimum)
        else:
            costs = _Costs.of_distances(stocks.distances(labels, k), weight)
        if self._warns_misfit and not clustered:
            warn_misfit(costs.regrets[np.arange(len(labels)), labels] > 0, weight, stacklevel=2)
        tell = progress_line(self.verbose, name, rows.n_samples, started)
        fitted = _engine.fit_tree(
            rows.data,
            costs.regrets,
            labels.astype(np.uint32),
            base_centers=None if base.centers is None else (base.centers.high, base.centers.low),
            surrogate=None if base.surrogate is None else base.surrogate.argument(),
            sample_weight=weight,
            interval=self._interval(base),
            max_leaves=limits["max_leaves"] or k,
            max_depth=limits["max_depth"],
            min_samples_leaf=limits["min_samples_leaf"],
            n_jobs=threads,
            progress=tell,
        )
        _warn_underflow(fitted.skipped_features, base, rows)
        grown = GrownTree.of(fitted)
        tree = grown.build(classes, rows.n_features, rows.feature_names)
        path = grown.cost_path(costs.minimum)
        leaf_sums = LeafSums.of(fitted.leaf_of_row, tree, rows, units, weight, threads)
        leaves = leaves_of_all(fitted.leaf_of_row, kept, tree, table, threads)
        inertias: dict[str, float] = {}
        if clustered:
            # The kernel matrix is at hand.
            clusters = tree.leaf_clusters[fitted.leaf_of_row]
            inertias = {
                "_inertia": stocks.inertia(clusters),
                "_reference_inertia": stocks.inertia(labels),
            }
            if stocks.gram is not None and gram is None:
                stocks = make_kernel_data(
                    self, rows, units, weight, None, rng, n_jobs, hold_gram=False
                )
        # Nothing is set before everything is known: a fit that fails leaves the estimator as it
        # was.
        for attribute in ("_inertia", "_reference_inertia"):
            self.__dict__.pop(attribute, None)
        self.__dict__.update(inertias)
        self._keep_kernel(stocks, units)
        self._fit = _Fit(stocks, labels, kept, leaves, leaf_sums, centers.high)
        self._cost_path = path
        self._set_tree(tree)
        self._finish()
        if len(leaf_sums.ids) != tree.n_leaves:
            self._fit = replace(self._fit, leaf_sums=None)  # sums of clusters serve no other tree
        if tell is not None:
            last = path[-2] - path[-1] if len(path) > 1 else 0.0
            tell(tree.n_leaves, last)
        return self

    def _make_base(
        self,
        stocks: KernelData,
        rows: Table,
        units: Units,
        centers: Centers,
        classes: list[int] | list[str],
    ) -> _Base:
        kernel = stocks.kernel
        assert kernel is not None
        if kernel.name == "linear":
            # Its features are the columns: IMM itself.
            check_distinct(centers.high + centers.low, classes)
            return _Base(centers=centers)
        surrogate = SurrogateFeatures.of(
            kernel,
            rows,
            units,
            features=self.features,
            order=self.order,
            n_anchors=self.n_anchors,
            shift=self.shift,
        )
        return _Base(surrogate=surrogate)

    def _finish(self) -> None:
        """Set what follows from the tree and the rows of the fit."""
        fit, tree = self._fit, self.tree_
        self.labels_ = self.classes_[tree.leaf_clusters][fit.leaf_of_row]
        if fit.kept is None:
            self.reference_labels_ = self.classes_[fit.labels]
        else:
            self.reference_labels_ = _with_noise(self.classes_, fit.labels, fit.kept)
        if fit.leaf_sums is not None:
            self.cluster_centers_ = fit.leaf_sums.centers(tree, self._units, fit.reference_centers)

    # ---- results --------------------------------------------------------------------------

    @property
    def inertia_(self) -> float:
        """Kernel cost of the tree's clusters about their own implicit means.

        Computed when it is first asked for, in O(n_samples^2) kernel values unless the kernel has
        features.
        """
        if "_inertia" not in self.__dict__:
            fit = self._rows_of_fit("inertia_")
            of_fit = fit.leaf_of_row if fit.kept is None else fit.leaf_of_row[fit.kept]
            self._inertia = fit.stocks.inertia(self.tree_.leaf_clusters[of_fit])
        return self._inertia

    @property
    def reference_inertia_(self) -> float:
        """Kernel cost of the reference's clusters; computed when it is first asked for."""
        if "_reference_inertia" not in self.__dict__:
            fit = self._rows_of_fit("reference_inertia_")
            self._reference_inertia = fit.stocks.inertia(fit.labels)
        return self._reference_inertia

    @property
    def price_of_explainability_(self) -> float:
        """`inertia_` / `reference_inertia_` (definition 4); 1 where both are 0, inf for x / 0.

        It tends to 1 for any partition as gamma grows: look at the agreement with the reference
        and at the costs themselves too. Below 1 where the tree's clusters cost less than the
        reference's, which labels not made by kernel k-means allow.
        """
        return ratio_of_costs(self.inertia_, self.reference_inertia_)

    @property
    def cost_ratio_(self) -> float:
        """The same as `price_of_explainability_`."""
        return self.price_of_explainability_

    def _rows_of_fit(self, name: str) -> _Fit:
        fit: _Fit | None = self.__dict__.get("_fit")
        if fit is None:
            raise AttributeError(name)  # what the reader sees comes from __getattr__
        return fit

    def truncate(self, max_leaves: int) -> Self:
        """Give the model with fewer leaves, as a fit with this `max_leaves` would.

        Parameters
        ----------
        max_leaves : int
            Number of leaves, at least those of the base tree; the whole model if it has no more.

        Returns
        -------
        Self
            A new fitted estimator. Models read from a file have no rows to compute `labels_`,
            `cluster_centers_` and `inertia_` from.

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
        n_fewer = self.n_leaves_ - tree.n_leaves
        model._cost_path = self._cost_path[: len(self._cost_path) - n_fewer]
        model._set_tree(tree)
        for name in ("labels_", "cluster_centers_", "_inertia"):
            model.__dict__.pop(name, None)
        if "_fit" in self.__dict__:
            model._fit = self._fit.truncate(kept_ancestor(self.tree_, tree.n_nodes))
            model._finish()
        return model

    def score(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        sample_weight: Any = None,
        gram: Any = None,
    ) -> float:
        """Give minus the kernel cost of the tree's clusters of other rows, about their own means.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Rows.
        y : ignored
            For the API.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        gram : array-like of shape (n_samples, n_samples), default=None
            Their kernel matrix; with ``kernel="precomputed"``, and only then.

        Returns
        -------
        float
            Minus the cost under the kernel of the fit (the approximation, if there is one).

        Raises
        ------
        ValueError
            As for `fit`; and if the model was read from a file that does not hold its kernel (a
            callable, `kernel_params`, an approximation).
        """
        stocks, labels = self._stocks_and_labels(X, sample_weight, gram)
        return -stocks.inertia(labels)

    def _check_saved(self, tree: ClusterTree) -> None:
        for name in ("scale_", "_cost_path"):
            if name not in self.__dict__:
                raise ValueError(f"fitted of the model file lacks {name}.")
        if (self.scale_ <= 0).any():
            raise ValueError("The model file has a scale_ that is not positive.")
        self._check_cost_path(tree)
        self.gamma_ = self.__dict__.get("gamma_")
        if self.gamma_ is not None and self.gamma_ <= 0:
            raise ValueError("The model file has a gamma_ that is not positive.")


@dataclass(frozen=True, eq=False)
class _Fit:
    """The rows of a fit, for what is computed from them later."""

    stocks: KernelData
    labels: Codes
    """The reference's, of the rows that were fitted."""
    kept: npt.NDArray[np.bool_] | None
    """Which rows were; None: all."""
    leaf_of_row: npt.NDArray[np.int32]
    """Of all rows."""
    leaf_sums: LeafSums | None
    """None: too many to keep."""
    reference_centers: FloatArray
    """Means of the reference's clusters in the columns' own units."""

    def truncate(self, kept: npt.NDArray[np.int64]) -> _Fit:
        """`kept`: the node of the smaller tree that each node has become a part of."""
        sums = self.leaf_sums
        if sums is not None:
            sums = replace(sums, ids=kept[sums.ids])
        leaves = kept[self.leaf_of_row].astype(np.int32)
        return replace(self, leaf_of_row=leaves, leaf_sums=sums)


def _given_labels(
    given: Given, rows: Table, units: Units, weight: FloatArray | None, threads: _engine.Threads
) -> tuple[list[int] | list[str], Codes]:
    """Give the clusters of a reference that have rows, and each row's."""
    if given.labels is not None:
        assert given.classes is not None
        found, labels = np.unique(given.labels, return_inverse=True)
        return [given.classes[code] for code in found], labels
    assert given.centers is not None
    in_units = Centers.from_own(given.centers, units).in_units
    _, nearest, _ = _engine.label_costs(rows.data, units, in_units, False, weight, threads)
    found, labels = np.unique(nearest.astype(np.int64), return_inverse=True)
    return found.tolist(), labels


def _with_noise(
    classes: npt.NDArray[Any], labels: Codes, kept: npt.NDArray[np.bool_]
) -> npt.NDArray[Any]:
    """Give the labels of all rows, -1 (or "-1") for those that were left out."""
    noise = np.asarray([-1]).astype(classes.dtype if classes.dtype.kind in "iu" else object)
    named = np.full(len(kept), noise[0], dtype=noise.dtype)
    named[kept] = classes[labels]
    return named


def _warn_underflow(skipped: list[int], base: _Base, rows: Table) -> None:
    if base.surrogate is None or base.surrogate.family not in ("taylor", "laplace", "gauss"):
        return
    columns = [f for f, n in enumerate(skipped) if n]
    if not columns:
        return
    shown = listed([quoted_column(rows.feature_names, f) for f in columns])
    warnings.warn(
        f"{sum(skipped)} surrogate features are the same for all rows, because they underflow, and "
        f'were skipped (columns {shown}). A smaller gamma or scale="standard" avoids it.',
        UserWarning,
        stacklevel=3,
    )


class KernelIMM(_KernelTree):
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

    # Mistakes are counted, and nothing grows: distances would serve nobody.
    _by_mismatch = True

    def _has_base(self) -> bool:
        choose_features(self.kernel, self.features)
        return True

    def _interval(self, base: _Base) -> bool:  # noqa: ARG002
        return False  # nothing grows


class _GrownKernelTree(_KernelTree):
    """A kernel tree with more leaves than clusters."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_KernelTree._parameter_constraints,
        "max_leaves": [Interval(Integral, 1, None, closed="left"), None],
        "base_tree": [StrOptions({"kernel_imm"}), None],
        "cuts": [StrOptions({"auto", "threshold", "interval"})],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        max_leaves: int | None = None,
        base_tree: str | None = "kernel_imm",
        cuts: str = "auto",
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
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
        self.max_leaves = max_leaves
        self.base_tree = base_tree
        self.cuts = cuts
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
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

    @property
    def _limits(self) -> dict[str, Any]:
        return {
            "max_leaves": self.max_leaves,
            "max_depth": self.max_depth,
            "min_samples_leaf": self.min_samples_leaf,
        }

    def _has_base(self) -> bool:
        if self.base_tree is None:
            return False
        if self.features != "auto":
            choose_features(self.kernel, self.features)
        return has_features(self.kernel)

    def _interval(self, base: _Base) -> bool:
        if self.cuts == "auto":
            return base.surrogate is not None and not base.surrogate.is_monotone
        return self.cuts == "interval"


class KernelExKMC(_GrownKernelTree):
    """Explain a kernel clustering by a tree that lowers the kernel's surrogate cost (Kernel ExKMC).

    Always the leaf is split whose best cut lowers the *surrogate cost* most: the cost of giving all
    rows of a leaf to the one reference cluster whose implicit mean in the kernel's feature space
    suits them best. Explains any kernel. One fit yields the trees of all smaller sizes: see
    `cost_path_` and `truncate`.

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
        Surrogate cost (about the reference's implicit means) by number of leaves.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the surrogate cost.
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


class KernelExpand(_GrownKernelTree):
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
