"""Base of the trees that explain kernel clusterings: Kernel IMM, Kernel ExKMC, Kernel Expand."""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state

from .._base import (
    AT_LEAST_1,
    COST_PATH,
    EXPLAINING,
    GAMMA,
    INERTIA_PATH,
    LIMITS,
    NO_NEGATIVE_INERTIA,
    POSITIVE,
    Constraints,
    CostTree,
    Fields,
    FitRows,
    Growth,
    KernelModel,
    LeafMeans,
    Limits,
    SavedField,
    TrainingState,
    grow_tree,
)
from .._data import SparseTable, Table, Units
from .._kernels import (
    FEATURES,
    KERNEL_CONSTRAINTS,
    DeferredKernelData,
    Kernel,
    KernelData,
    SurrogateFeatures,
    check_gram_argument,
    choose_features,
    cluster,
    has_features,
    kernel_of,
    make_kernel_data,
    takes_sparse,
    tell_starts,
)
from .._reference.centers import Centers
from .._reference.checks import (
    DEFAULT_N_CLUSTERS,
    check_distinct,
    check_enough_rows,
    warn_misfit,
    warn_of_lost,
)
from .._util import (
    BoolArray,
    IntArray,
    Interval,
    StrOptions,
    distinct,
    estimator,
    listed,
    quoted_column,
)
from ..metrics import ratio_of_costs
from ..tree import GrownTree
from .kernel_kmeans import KernelKMeans

_MAX_ITER = 300
# Units and gammas this near to each other, as a share, are the same but for rounding.
_ROUNDING = 1e-9


class KernelGrowth(NamedTuple):
    """How a kernel tree is grown."""

    base: Literal["kernel_imm"] | None
    cuts: str = "threshold"
    limits: Limits = Limits()


class _Base(NamedTuple):
    """What the base tree separates: centers (IMM's), surrogate features (Kernel IMM's), nothing."""

    centers: Centers | None = None
    surrogate: SurrogateFeatures | None = None


@estimator
class KernelTree(CostTree, KernelModel, abstract=True):
    """A tree fitted to a clustering in a kernel's feature space."""

    _parameter_constraints: ClassVar[Constraints] = {
        **EXPLAINING,
        **KERNEL_CONSTRAINTS,
        "n_init": [AT_LEAST_1],
        "features": [StrOptions(set(FEATURES))],
        "order": [AT_LEAST_1],
        "n_anchors": [AT_LEAST_1, StrOptions({"all"}), None],
        "shift": [Interval(Real, None, None, closed="neither"), "array-like", None],
    }
    _saved: ClassVar[Fields] = {
        "cluster_centers_": SavedField("k c"),
        "scale_": SavedField("d", required=True, check=POSITIVE),
        "gamma_": GAMMA,
        "inertia_": SavedField(check=NO_NEGATIVE_INERTIA),
        "reference_inertia_": SavedField(check=NO_NEGATIVE_INERTIA),
        "_kernel_cost": SavedField(),
        "_reference_kernel_cost": SavedField(),
        "_cost_path": COST_PATH,
        "_inertia_path": INERTIA_PATH,
    }
    _from_rows: ClassVar[tuple[str, ...]] = (
        *CostTree._from_rows,
        "reference_labels_",
        "reference_inertia_",
        "cost_ratio_",
        "kernel_cost_",
        "reference_kernel_cost_",
        "price_of_explainability_",
    )

    n_clusters: int | None = None
    _: KW_ONLY
    n_init: int = 10
    features: str = "auto"
    order: int = 5
    n_anchors: int | str | None = None
    shift: Any = None
    reference: Any = None

    # Whether label costs are mismatches with the reference; else distances to its implicit means.
    _by_mismatch: ClassVar[bool] = False
    # Whether to warn where many rows are far from their own cluster's mean.
    _warns_misfit: ClassVar[bool] = False

    def _growth(self) -> KernelGrowth:
        """Return how to grow; raises ValueError if Kernel IMM must be the base and cannot."""
        raise NotImplementedError

    # ---- fit ------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        sample_weight: Any = None,
        gram: Any = None,
        *,
        feature_names: Any = None,
    ) -> Self:
        """Fit the tree. Labels to be explained are the parameter `reference`; y is ignored.

        Parameters
        ----------
        %(kernel_fit)s

        Raises
        ------
        ValueError
            If X or `gram` hold inf or NaN (but see X for gaps); sizes do not fit (n_clusters and
            the rows or the reference, max_leaves); the kernel is not defined on X (negative cells),
            has no such surrogate features, or they cannot tell two clusters apart; the kernel
            matrix would be too large.
        %(kernel_errors)s
            If the kernel is not positive semidefinite, or 0 for any two rows (the clusters found
            are then arbitrary), surrogate features underflow, `reference` is a `KernelKMeans` with
            another kernel or scale, or, by KernelExKMC, many rows are nearer to the mean of another
            cluster than their label's.
        ConvergenceWarning
            If clusters of the reference have no rows in the tree.
        """
        self._validate_params()
        check_gram_argument(self.kernel, self.approximation, gram is not None)
        growth = self._growth()
        reference, n_clusters = self.reference, self.n_clusters
        fit_rows = FitRows.read(
            self,
            X,
            sample_weight,
            gram=gram,
            feature_names=feature_names,
            reference=reference,
            n_clusters=n_clusters,
            mixed=self._takes_missing,
            sparse=self._takes_sparse,
        )
        rows, weight, given = fit_rows.rows, fit_rows.weight, fit_rows.reference
        asked = self.n_clusters or given.n_clusters or DEFAULT_N_CLUSTERS
        growth.limits.check(asked, self.n_clusters is None and self.reference is None)
        rng = check_random_state(self.random_state)
        clustered = given.n_clusters is None
        if clustered:
            check_enough_rows(asked, self.n_clusters, rows.n_samples, fit_rows.estimator_name)
        gram = fit_rows.gram
        stocks: KernelData | DeferredKernelData
        if not rows.is_plain and gram is None and self.approximation is None:
            # Labels alone are explained, see `_takes_missing`: growth computes no kernel value.
            stocks = DeferredKernelData.of(self, fit_rows)
        else:
            # A reference needs no kernel matrix.
            stocks = make_kernel_data(self, fit_rows, gram, rng, hold_gram=clustered)
        if clustered:
            assert isinstance(stocks, KernelData)
            labels = cluster(
                stocks,
                asked,
                n_init=self.n_init,
                max_iter=_MAX_ITER,
                tol=0.0,
                random_state=rng,
                n_jobs=fit_rows.threads.n_jobs,
                tell=tell_starts(fit_rows.tell(self.verbose), self.n_init),
            ).labels
            classes: Any = list(range(int(labels.max()) + 1))
        else:
            classes, labels = _reference_labels(fit_rows)
            self._warn_other_kernel(stocks.kernel, fit_rows)
        k = len(classes)
        centers = Centers.of_labels(fit_rows, labels, k)
        base = _Base() if growth.base is None else self._make_base(stocks.kernel, fit_rows, centers)
        if base.centers is not None:
            check_distinct(centers.high + centers.low, classes)
        is_linear = stocks.kernel is not None and stocks.kernel.name == "linear"
        regrets, least_cost = None, 0.0
        if not self._by_mismatch:
            if is_linear and self.approximation is None:
                # The bits of ExKMC.
                costs = fit_rows.label_costs(centers.in_units)
            else:
                assert isinstance(stocks, KernelData)
                costs = stocks.label_costs(labels, k)
            regrets, least_cost = costs.regrets, costs.minimum
            if self._warns_misfit and not clustered:
                own = regrets[np.arange(len(labels)), labels]
                warn_misfit(own > 0, weight, stacklevel=2)
        rises_and_falls = base.surrogate is not None and not base.surrogate.is_monotone
        fitted = grow_tree(
            fit_rows,
            regrets,
            labels.astype(np.uint32),
            k,
            Growth(
                growth.base,
                interval=rises_and_falls if growth.cuts == "auto" else growth.cuts == "interval",
                limits=growth.limits,
            ),
            base_centers=base.centers,
            surrogate=base.surrogate,
            progress=fit_rows.progress(self.verbose),
        )
        _warn_underflow(fitted.skipped_features, base, rows)
        grown = GrownTree.of(fitted)
        tree = grown.build(classes, fit_rows.table, fit_rows)
        leaf_of_row = fitted.leaf_of_row
        warn_of_lost(k, tree.filled_clusters, labels, self._lost_advice, stacklevel=3)
        leaf_means = LeafMeans.of(fit_rows, leaf_of_row, tree, centers.high)
        spread = centers.spread
        if spread is None:
            spread = fit_rows.encoded_means(labels.astype(np.uint32), centers.high).spread
        leaves = fit_rows.leaves_of_all(leaf_of_row, tree)
        kernel_costs: dict[str, float] = {}
        if clustered:
            # While the kernel matrix is there.
            kernel_costs = {
                "_kernel_cost": stocks.inertia(tree.leaf_clusters[leaf_of_row]),
                "_reference_kernel_cost": stocks.inertia(labels),
            }
            if stocks.gram is not None and gram is None:
                stocks = make_kernel_data(self, fit_rows, None, rng, hold_gram=False)
        # Nothing is set before everything is known: a fit that fails leaves the estimator as it
        # was.
        for attribute in ("_kernel_cost", "_reference_kernel_cost"):
            self.__dict__.pop(attribute, None)
        self.__dict__.update(kernel_costs)
        self._keep_kernel(stocks, fit_rows.units)
        self._cost_path = grown.cost_path(least_cost)
        self._set_tree(tree, fit_rows.names_given)
        self.reference_labels_ = fit_rows.labels_of_all(self.classes_, labels)
        self.reference_inertia_ = float(spread.sum())
        self._set_training(
            _Training(leaves, leaf_means, centers.high, stocks, labels, fit_rows.kept)
        )
        fit_rows.tell_result(self.verbose, tree.n_leaves, "surrogate cost", self._cost_path[-1])
        return self

    def _warn_other_kernel(self, own: Kernel | None, fit_rows: FitRows[Any]) -> None:
        """Warn if kernel k-means, given as the reference, has another kernel or scale."""
        given = self.reference
        if not isinstance(given, KernelKMeans) or own is None or given.kernel == "precomputed":
            return
        gamma = own.gamma if given.gamma == self.gamma else getattr(given, "gamma_", given.gamma)
        other = kernel_of(given, np.ones((1, fit_rows.rows.n_features)), gamma=gamma)
        same_units = self._has_units_of(given, fit_rows)
        if other.gamma and own.gamma and math.isclose(other.gamma, own.gamma, rel_tol=_ROUNDING):
            other = replace(other, gamma=own.gamma)
        if other == own and same_units:
            return
        warnings.warn(
            f"The reference was clustered with {_kernel_words(other)}"
            f"{'' if same_units else ' and another scale'}, but this {type(self).__name__} has "
            f"{_kernel_words(own)}, in which kernel_cost_ and price_of_explainability_ are "
            "measured. Give both the same kernel=, gamma= and scale=; if this is meant, give the "
            "labels_ of the reference.",
            UserWarning,
            stacklevel=3,
        )

    def _has_units_of(self, given: KernelKMeans, fit_rows: FitRows[Any]) -> bool:
        """Whether kernel k-means would have this fit's units on its rows."""
        units = Units.of(fit_rows.rows, fit_rows.weight, given.scale, fit_rows.threads)
        return np.allclose(units.scale, fit_rows.units.scale, rtol=_ROUNDING, atol=0.0)

    def _make_base(self, kernel: Kernel | None, fit_rows: FitRows[Any], centers: Centers) -> _Base:
        assert kernel is not None
        if kernel.name == "linear":
            return _Base(centers=centers)  # its features are the columns: IMM itself
        surrogate = SurrogateFeatures.of(
            kernel,
            fit_rows.rows,
            fit_rows.units,
            features=self.features,
            order=self.order,
            n_anchors=self.n_anchors,
            shift=self.shift,
        )
        return _Base(surrogate=surrogate)

    # ---- results --------------------------------------------------------------------------

    @property
    def kernel_cost_(self) -> float:
        """Kernel k-means cost of the tree's clusters about their own implicit means.

        Computed on first access, in O(n_samples^2) kernel values unless the kernel has features.
        With the linear kernel it is `inertia_`. Without features it is a difference of sums of
        kernel values: below 1e-12 of the sum of k(x, x) it is not known, and 0.
        """
        if self._is_kmeans:
            return self.inertia_
        if "_kernel_cost" not in self.__dict__:
            fit = self._rows_of_fit("kernel_cost_")
            of_fit = fit.leaf_of_row
            assert of_fit is not None, "a kernel tree is not fitted in parts"
            of_fit = of_fit if fit.kept is None else of_fit[fit.kept]
            self._kernel_cost = fit.stocks.inertia(self.tree_.leaf_clusters[of_fit])
        return self._kernel_cost

    @property
    def reference_kernel_cost_(self) -> float:
        """Kernel k-means cost of the reference's clusters; computed on first access."""
        if self._is_kmeans:
            return self.reference_inertia_
        if "_reference_kernel_cost" not in self.__dict__:
            fit = self._rows_of_fit("reference_kernel_cost_")
            self._reference_kernel_cost = fit.stocks.inertia(fit.labels)
        return self._reference_kernel_cost

    @property
    def price_of_explainability_(self) -> float:
        """`kernel_cost_` / `reference_kernel_cost_` (definition 4); 1 where both are 0.

        inf for x / 0. It tends to 1 for any partition as gamma grows: look at the agreement with
        the reference and at the costs themselves too. Below 1 where the tree's clusters cost less
        than the reference's, which labels not made by kernel k-means allow.
        """
        return ratio_of_costs(self.kernel_cost_, self.reference_kernel_cost_)

    @property
    def cost_ratio_(self) -> float:
        """`inertia_` / `reference_inertia_`: what explainability cost in k-means cost."""
        return ratio_of_costs(self.inertia_, self.reference_inertia_)

    def _rows_of_fit(self, name: str) -> _Training:
        training: _Training | None = self.__dict__.get("_training")
        if training is None:
            raise AttributeError(name)  # __getattr__ answers, in words
        return training


@estimator
class GrownKernelTree(KernelTree, abstract=True):
    """A kernel tree with more leaves than clusters."""

    _parameter_constraints: ClassVar[Constraints] = {
        **KernelTree._parameter_constraints,
        **LIMITS,
        "base_tree": [StrOptions({"kernel_imm"}), None],
        "cuts": [StrOptions({"auto", "threshold", "interval"})],
    }

    _: KW_ONLY
    max_leaves: int | float | None = None
    base_tree: str | None = "kernel_imm"
    cuts: str = "auto"
    max_depth: int | None = None
    min_samples_leaf: int = 1

    @property
    def _takes_sparse(self) -> bool:  # type: ignore[override]
        # Surrogate features of sparse rows are not computed.
        has_surrogate = self.kernel != "linear" and has_features(self.kernel)
        by_columns = not (has_surrogate and self.base_tree)
        return by_columns and takes_sparse(self.kernel, self.approximation)

    def _growth(self) -> KernelGrowth:
        if self.base_tree is None:
            return KernelGrowth(None, self.cuts, Limits.of(self))
        if self.features != "auto":
            choose_features(self.kernel, self.features)
        base: Literal["kernel_imm"] | None = "kernel_imm" if has_features(self.kernel) else None
        return KernelGrowth(base, self.cuts, Limits.of(self))


@dataclass(frozen=True, eq=False)
class _Training(TrainingState):
    """Of a kernel tree: costs are computed from it on first access."""

    stocks: KernelData | DeferredKernelData
    labels: IntArray
    """The reference's, of the rows that were fitted."""
    kept: BoolArray | None
    """Which rows were; None: all."""


def _reference_labels(fit_rows: FitRows[Any]) -> tuple[list[int] | list[str], IntArray]:
    """Return the clusters of a reference that have rows, and each row's."""
    given = fit_rows.reference
    if given.labels is not None:
        assert given.classes is not None
        found, labels = distinct(given.labels)
        return [given.classes[code] for code in found], labels
    assert given.centers is not None
    space = fit_rows.units if fit_rows.rows.levels is None else fit_rows.encoding
    nearest = fit_rows.label_costs(space.of_points(given.centers)).nearest
    found, labels = distinct(nearest)
    return found.tolist(), labels


def _kernel_words(kernel: Kernel) -> str:
    gamma = "" if kernel.gamma is None else f", gamma {kernel.gamma:.6g}"
    return f"the kernel {kernel.label}{gamma}"


def _warn_underflow(skipped: list[int], base: _Base, rows: Table | SparseTable) -> None:
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
