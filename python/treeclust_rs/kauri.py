"""Kauri: trees grown by a kernel k-means objective, with no reference clustering."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from . import _core
from ._base import TreeClusterer, effective_n_jobs, leaves_of_all, progress_line
from ._conditions import MOVES
from ._input import Table, check_finite, check_sample_weight, read_table
from ._kernels import KERNELS, ORIGIN_FREE, Kernel, check_gram, make_kernel
from ._low_rank import FeatureMap, approximate
from ._reference import Given, Units, fitted_rows
from .tree import ClusterTree, kept_ancestor

__all__ = ["Kauri"]

FloatArray = npt.NDArray[np.float64]

# A cost below this share of the sum of k(x, x) is rounding.
_ROUNDING = 1e-12


class Kauri(TreeClusterer):
    """Grow a tree whose leaves are clusters, with no other clustering before it.

    The tree maximises the kernel k-means objective L = sum over the clusters C of S(C, C) / |C|,
    S adding up kernel values, greedily and end to end: a split is a cut of a leaf *and* a choice of
    clusters for its two sides, and of all leaves, columns, cuts and choices the one that gains most
    is made. A cluster may have several leaves.

    Parameters
    ----------
    max_clusters : int, default=3
        Most clusters. A maximum: fewer come out where fewer pay, or where rows do not differ.
    max_leaves : int or None, default=None
        Most leaves; None: until no split gains.
    max_depth : int or None, default=None
        Most tests between the root and a leaf.
    min_samples_split : int, default=2
        Fewest rows of a leaf that is split.
    min_samples_leaf : int, default=1
        Fewest rows of a leaf.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Columns a leaf looks at, drawn when it is made: a number, a share of the columns, or a
        function of their number; None: all. Columns constant in the leaf do not count.
    kernel : str or callable, default="linear"
        linear, polynomial, rbf, laplacian, chi2, additive_chi2, cosine, histogram_intersection,
        hellinger, epsilon; "precomputed": the kernel matrix is given to `fit` as `gram`; or a
        function of two rows. The tree cuts the columns of X whatever the kernel is.
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
        None: the exact kernel, by its n x n matrix unless it is linear, cosine or hellinger, which
        need none. Else features of low rank: Nystroem's, randomly pivoted Cholesky, or random
        Fourier features (rbf only), in memory O(n_samples * n_components).
    n_components : int, default=100
        Most features of an approximation.
    tol : float, default=1e-06
        "rpcholesky" stops once the features lack at most this share of the kernel matrix's trace.
    moves : {"paper", "all"}, default="paper"
        "all" adds what the paper leaves out: one side becomes a new cluster while the other goes to
        an old one.
    scale : {None, "standard"}, default=None
        "standard": kernels see the columns divided by their standard deviations; thresholds stay in
        the columns' own units.
    random_state : int, RandomState or None, default=None
        Seed of `max_features` and of approximations.
    n_jobs : int or None, default=None
        Threads. None: all cores, and 1 inside joblib workers. The result does not depend on it.
    verbose : int, default=0
        Whether to print a line of progress now and then.

    Attributes
    ----------
    tree_ : ClusterTree
        The tree; print it. Its nodes hold their cluster, the move they were split by, and its gain.
    labels_ : ndarray of shape (n_samples,)
        Cluster of every row. Clusters are numbered in the order they were made.
    n_clusters_, n_leaves_ : int
        Numbers of clusters and leaves.
    objective_ : float
        L of the training rows of positive weight, under the kernel used (the approximation, if
        there is one) on the data as given.
    gains_ : polars.DataFrame
        The splits in order: n_leaves after it, node, move, left_cluster, right_cluster, feature,
        threshold, gain, objective after it.
    inertia_ : float
        Kernel k-means cost: the weighted sum of k(x, x), less `objective_`. With the linear kernel
        the cost of k-means. Negative only with indefinite kernels.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters' rows, in the columns' own units, whatever the kernel is.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the gains.
    gamma_ : float or None
        The kernel's gamma; None for kernels without one.
    scale_ : ndarray of shape (n_features,)
        Units of the columns: their standard deviations, or ones.
    classes_ : ndarray of shape (n_clusters,)
        0, ..., n_clusters - 1.
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
    ExKMC : A tree that explains a k-means clustering.

    Notes
    -----
    A split sends the two sides of a cut of a leaf of cluster k to

    - *star*: a new cluster, and k;
    - *double star*: two new clusters;
    - *switch*: another old cluster, and k;
    - *reallocation*: two different other old clusters;
    - *mixed* (``moves="all"``): a new one and another old one.

    Both sides may leave k only if it has other leaves. A move must gain more than 1e-12 of the sum
    of k(x, x) (of |k(x, y)| / n over all pairs, if that is more); among moves that close to the
    best the first leaf, column, threshold and move (in the order above, left before right) is
    taken.

    With kernels of features (linear, cosine, hellinger, approximations) of rank r a leaf costs
    O(n r) per column when it is made, and a round of the search O(n_features n) for each cluster
    that changed; memory is O(n (n_features + r)). With a kernel matrix a leaf costs
    O(n^2 n_features) when it is made, and memory is O(n^2).

    A positive semidefinite kernel makes a star of every split until there are `max_clusters`:
    double stars and mixed moves need an indefinite one.

    References
    ----------
    Ohl et al. End-to-end training of unsupervised trees: Kauri and Douglas. Section 3, appendices
    B to D.

    Examples
    --------
    >>> import numpy as np, treeclust_rs as tc
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [9.0, 1.0], [9.0, 8.0], [8.0, 9.0]])
    >>> model = tc.Kauri(max_clusters=2, max_leaves=2).fit(X)
    >>> model.labels_, round(model.inertia_, 3)
    (array([1, 1, 0, 0, 0]), 39.167)
    >>> model.gains_.select("node", "move", "feature", "threshold").rows()
    [(0, 'star', 'x0', 4.0)]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_clusters": [Interval(Integral, 1, None, closed="left")],
        "max_leaves": [Interval(Integral, 1, None, closed="left"), None],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_split": [Interval(Integral, 2, None, closed="left")],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0.0, 1.0, closed="right"),
            StrOptions({"sqrt", "log2"}),
            None,
        ],
        "kernel": [StrOptions({*KERNELS, "precomputed"}), callable],
        "gamma": [Interval(Real, 0.0, None, closed="neither"), StrOptions({"scale"}), None],
        "degree": [Interval(Real, 1, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [Mapping, None],
        "approximation": [StrOptions({"nystroem", "rpcholesky", "rff"}), None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "moves": [StrOptions({"paper", "all"})],
        "scale": [StrOptions({"standard"}), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    _saved: ClassVar[dict[str, str]] = {
        "cluster_centers_": "k d",
        "scale_": "d",
        "inertia_": "",
        "gamma_": "",
        "_objective_path": "path",
    }

    gamma_: float | None

    def __init__(
        self,
        max_clusters: int = 3,
        *,
        max_leaves: int | None = None,
        max_depth: int | None = None,
        min_samples_split: int = 2,
        min_samples_leaf: int = 1,
        max_features: int | float | str | None = None,
        kernel: str | Callable[..., float] = "linear",
        gamma: float | str | None = None,
        degree: float = 3,
        coef0: float = 1.0,
        kernel_params: Mapping[str, Any] | None = None,
        approximation: str | None = None,
        n_components: int = 100,
        tol: float = 1e-6,
        moves: str = "paper",
        scale: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_clusters = max_clusters
        self.max_leaves = max_leaves
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.approximation = approximation
        self.n_components = n_components
        self.tol = tol
        self.moves = moves
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

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
            If X or `gram` hold NaN or inf, `gram` is missing, unasked for, of another shape or not
            symmetric, the kernel is not defined on X (negative cells), its matrix would be too
            large, or sums of kernel values overflow.
        TypeError
            If a column is not numbers, or a callable kernel gives no number.

        Warns
        -----
        UserWarning
            If a kernel to be approximated is seen not to be positive semidefinite.
        """
        started = time.perf_counter()
        self._validate_params()
        self._check_kernel(gram is not None)
        n_jobs = effective_n_jobs(self.n_jobs)
        name = type(self).__name__
        table = read_table(X, estimator_name=name)
        weight = check_sample_weight(sample_weight, table.n_samples)
        check_finite(table, n_jobs)
        if gram is not None:
            gram = check_gram(gram, table.n_samples)
        kept, _, rows, weight = fitted_rows(Given(), table, weight)
        if gram is not None and kept is not None:
            gram = np.ascontiguousarray(gram[np.ix_(kept, kept)])
        units = Units(*_core.column_units(rows.data, weight, self.scale == "standard", n_jobs))
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        stocks = self._stocks(rows, units, weight, gram, rng, n_jobs)
        tell = progress_line(self.verbose, name, rows.n_samples, started)
        fitted = _core.fit_kauri(
            rows.data,
            features=stocks.features,
            gram=stocks.gram,
            sample_weight=weight,
            max_clusters=self.max_clusters,
            max_leaves=rows.n_samples if self.max_leaves is None else self.max_leaves,
            max_depth=self.max_depth,
            min_samples_split=self.min_samples_split,
            min_samples_leaf=self.min_samples_leaf,
            max_features=self._n_drawn(rows.n_features),
            seed=seed,
            all_moves=self.moves == "all",
            n_jobs=n_jobs,
            progress=tell,
        )
        tree = _make_tree(fitted, rows)
        leaf_sums = _LeafSums.of(fitted["leaf_of_row"], tree, rows, units, weight, n_jobs)
        centers = leaf_sums.centers(tree, units)
        path = fitted["objective"]
        inertia = stocks.trace - float(path[-1])
        if abs(inertia) <= _ROUNDING * abs(stocks.trace):
            inertia = 0.0
        leaves = leaves_of_all(fitted["leaf_of_row"], kept, tree, table, n_jobs)
        # Nothing is set before everything is known: a fit that fails leaves the estimator as it
        # was.
        self.gamma_ = None if stocks.kernel is None else stocks.kernel.gamma
        self._kernel = stocks.kernel
        self._feature_map = stocks.feature_map
        self._units = units
        self.scale_ = units.scale
        self._leaf_of_row = leaves
        self._leaf_sums = leaf_sums if len(leaf_sums.ids) == tree.n_leaves else None
        self._set_tree(tree)
        self._objective_path = path + stocks.offset
        self.cluster_centers_, self.inertia_ = centers, inertia
        self.labels_ = tree.leaf_clusters[leaves]
        if tell is not None:
            last = path[-1] - path[-2] if len(path) > 1 else 0.0
            tell(tree.n_leaves, last)
        return self

    def _check_kernel(self, has_gram: bool) -> None:
        precomputed = self.kernel == "precomputed"
        if precomputed and not has_gram:
            raise ValueError(
                'kernel="precomputed" needs the kernel matrix: fit(X, gram=K), X being the columns.'
            )
        if has_gram and not precomputed:
            raise ValueError(
                f'gram was given, but kernel={self.kernel!r}. Use kernel="precomputed".'
            )
        if precomputed and self.approximation is not None:
            raise ValueError(
                f"approximation={self.approximation!r} needs the kernel itself, not its matrix."
            )

    def _n_drawn(self, d: int) -> int:
        most: Any = self.max_features
        if most is None:
            return d
        if isinstance(most, str):
            return max(int(np.sqrt(d) if most == "sqrt" else np.log2(d)), 1)
        return min(int(most), d) if isinstance(most, Integral) else max(int(most * d), 1)

    # ---- the kernel -----------------------------------------------------------------------

    def _stocks(
        self,
        rows: Table,
        units: Units,
        weight: FloatArray | None,
        gram: FloatArray | None,
        rng: Any,
        n_jobs: int,
    ) -> _Stocks:
        """Settle the kernel on the rows of the fit, and its approximation."""
        if gram is not None:
            return _Stocks.of_gram(gram, weight)
        matrix = kernel_rows(self.kernel, rows, units)
        kernel = make_kernel(
            self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
            X=matrix,
            sample_weight=weight,
            feature_names=rows.feature_names,
        )
        if self.approximation is None:
            return _Stocks.of_kernel(kernel, matrix, units, weight, n_jobs)
        found = approximate(
            kernel,
            matrix,
            method=self.approximation,
            n_components=self.n_components,
            tol=self.tol,
            sample_weight=weight,
            random_state=rng,
            n_jobs=n_jobs,
        )
        origin = _origin(kernel, matrix, units, weight)
        # The features of the training rows are centered in place; the map does without them.
        feature_map = replace(found, features=np.empty((0, found.features.shape[1])))
        return _Stocks.of_features(found.features, origin, weight, kernel, feature_map)

    def _kernel_view(self, table: Table) -> tuple[Kernel, FloatArray, Units]:
        """Give the kernel of a fitted model, rows as it sees them, and the units they are in."""
        units: Units | None = self.__dict__.get("_units")
        if units is None:  # read from a file: the origin is not kept, because it does not matter
            shift, _ = _core.column_units(table.data, None, False, effective_n_jobs(self.n_jobs))
            units = Units(shift, self.scale_)
        rows = kernel_rows(self.kernel, table, units)
        kernel = self._settled_kernel(table)
        kernel.check(rows, table.feature_names)
        return kernel, rows, units

    def _settled_kernel(self, table: Table) -> Kernel:
        """Give the kernel, whose parameters the fit settled; the model may be read from a file."""
        kernel: Kernel | None = self.__dict__.get("_kernel")
        if kernel is not None:
            return kernel
        lost = sorted({"kernel", "kernel_params"} & self._not_saved)
        if lost:
            raise ValueError(
                f"The model was read from a file, which does not hold its {' and '.join(lost)}: "
                "score cannot be computed. Fit it anew."
            )
        return make_kernel(
            self.kernel,
            gamma=self.gamma_,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
            X=np.zeros((1, table.n_features)),
        )

    def score(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        sample_weight: Any = None,
        gram: Any = None,
    ) -> float:
        """Give the objective L of the tree's clusters of other rows.

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
            Sum over the clusters of S(C, C) / |C|, under the kernel of the fit (the approximation,
            if there is one), on the rows as given.

        Raises
        ------
        ValueError
            As for `fit`; and if the model was read from a file that does not hold its kernel (a
            callable, `kernel_params`, an approximation).
        """
        table, leaves = self._route(X)
        self._check_kernel(gram is not None)
        n_jobs = effective_n_jobs(self.n_jobs)
        weight = check_sample_weight(sample_weight, table.n_samples)
        gram = None if gram is None else check_gram(gram, table.n_samples)
        kept, _, table, weight = fitted_rows(Given(), table, weight)
        if kept is not None:
            leaves = leaves[kept]
            gram = None if gram is None else gram[np.ix_(kept, kept)]
        labels = self.tree_.leaf_clusters[leaves]
        if gram is not None:
            return _Stocks.of_gram(gram, weight).objective(labels)
        kernel, matrix, units = self._kernel_view(table)
        if self.approximation is None:
            return _Stocks.of_kernel(kernel, matrix, units, weight, n_jobs).objective(labels)
        feature_map: FeatureMap | None = self.__dict__.get("_feature_map")
        if feature_map is None:
            raise ValueError(
                "The model was read from a file, which does not hold the features of its "
                "approximation: score cannot be computed. Fit it anew."
            )
        features = feature_map.transform(matrix, n_jobs=n_jobs)
        origin = _origin(kernel, matrix, units, weight)
        return _Stocks.of_features(features, origin, weight, kernel).objective(labels)

    # ---- results --------------------------------------------------------------------------

    @property
    def n_clusters_(self) -> int:
        """Number of clusters."""
        check_is_fitted(self, "tree_")
        return len(self.tree_.classes)

    @property
    def objective_(self) -> float:
        """The objective L of the training rows."""
        check_is_fitted(self, "tree_")
        return float(self._objective_path[-1])

    @property
    def gains_(self) -> pl.DataFrame:
        """The splits in order, with the kind and the gain of each."""
        check_is_fitted(self, "tree_")
        tree = self.tree_
        inner = np.flatnonzero(tree.kind != 0)
        order = inner[np.argsort(tree.children_left[inner])]
        assert tree.move is not None and tree.gain is not None
        names = [tree.feature_name(feature) for feature in tree.feature[order].tolist()]
        return pl.DataFrame(
            {
                "n_leaves": np.arange(2, len(order) + 2),
                "node": order,
                "move": pl.Series([MOVES[code] for code in tree.move[order]], dtype=pl.String),
                "left_cluster": tree.cluster[tree.children_left[order]],
                "right_cluster": tree.cluster[tree.children_right[order]],
                "feature": pl.Series(names, dtype=pl.String),
                "threshold": tree.threshold[order],
                "gain": tree.gain[order],
                "objective": self._objective_path[1:],
            }
        )

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each column in the gains, of shape (n_features,)."""
        check_is_fitted(self, "tree_")
        tree = self.tree_
        assert tree.gain is not None
        inner = np.flatnonzero(tree.kind != 0)
        shares = np.bincount(
            tree.feature[inner], weights=tree.gain[inner], minlength=tree.n_features
        )
        total = shares.sum()
        return np.asarray(shares / total if total > 0 else shares, dtype=np.float64)

    def truncate(self, max_leaves: int) -> Self:
        """Give the model with fewer leaves, as a fit with this `max_leaves` would.

        Parameters
        ----------
        max_leaves : int
            Number of leaves, at least 1; the whole model if it has no more.

        Returns
        -------
        Self
            A new fitted estimator. One read from a file, or with more than a million numbers
            (leaves x columns), has no `cluster_centers_` then; one read from a file no `labels_`.

        Raises
        ------
        ValueError
            If `max_leaves` is less than 1.
        """
        check_is_fitted(self, "tree_")
        tree = self.tree_.truncate(max_leaves)
        if tree is self.tree_:
            return copy.copy(self)
        model = copy.copy(self)
        model.set_params(max_leaves=tree.n_leaves)
        model._objective_path = self._objective_path[: tree.n_leaves]
        model.inertia_ = self.inertia_ + float(self._objective_path[-1] - model._objective_path[-1])
        model._set_tree(tree)
        for name in ("labels_", "cluster_centers_"):
            model.__dict__.pop(name, None)
        if hasattr(self, "_leaf_of_row"):
            kept = kept_ancestor(self.tree_, tree.n_nodes)
            model._leaf_of_row = kept[self._leaf_of_row].astype(np.int32)
            model.labels_ = tree.leaf_clusters[model._leaf_of_row]
            if self._leaf_sums is not None:
                model._leaf_sums = replace(self._leaf_sums, ids=kept[self._leaf_sums.ids])
                model.cluster_centers_ = model._leaf_sums.centers(tree, self._units)
        return model

    def _check_saved(self, tree: ClusterTree) -> None:
        for name in ("scale_", "_objective_path", "inertia_"):
            if name not in self.__dict__:
                raise ValueError(f"fitted of the model file lacks {name}.")
        if tree.move is None:
            raise ValueError("The model file holds a Kauri whose tree has no moves.")
        if (self.scale_ <= 0).any():
            raise ValueError("The model file has a scale_ that is not positive.")
        path = self._objective_path
        if len(path) != tree.n_leaves:
            raise ValueError(
                f"The model file has an _objective_path of {len(path)} entries; "
                f"{tree.n_leaves} were expected."
            )
        if (np.diff(path) < 0).any():
            raise ValueError("The model file has an _objective_path that falls.")
        self.gamma_ = self.__dict__.get("gamma_")
        if self.gamma_ is not None and self.gamma_ <= 0:
            raise ValueError("The model file has a gamma_ that is not positive.")

    def _set_tree(self, tree: ClusterTree) -> None:
        super()._set_tree(tree)
        self.classes_ = np.arange(len(tree.classes))


def kernel_rows(kernel: Any, table: Table, units: Units) -> FloatArray:
    """Give the rows as the kernel sees them: in units, and moved where that changes nothing."""
    if isinstance(kernel, str) and kernel in ORIGIN_FREE:
        return units.matrix(table)
    return Units(np.zeros_like(units.shift), units.scale).matrix(table)


def _mean(rows: FloatArray, weight: FloatArray | None) -> FloatArray:
    if weight is None:
        return np.asarray(rows.mean(axis=0))
    return np.asarray(np.einsum("i,ij->j", weight, rows) / weight.sum())


def _origin(
    kernel: Kernel, matrix: FloatArray, units: Units, weight: FloatArray | None
) -> FloatArray | None:
    """Give the mean of the rows as given with the linear kernel; else their features' will do."""
    if kernel.name != "linear":
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        return _mean(matrix, weight) + units.shift / units.scale


@dataclass(frozen=True)
class _Stocks:
    """Where the core finds kernel values: features of the rows or a kernel matrix.

    Features are centered, which changes no gain and keeps digits; `offset` is what that takes from
    the objective.
    """

    kernel: Kernel | None
    feature_map: FeatureMap | None
    features: FloatArray | None
    gram: FloatArray | None
    weight: FloatArray | None
    trace: float
    """Weighted sum of k(i, i), of the centered features if there are features."""
    offset: float

    @classmethod
    def of_kernel(
        cls,
        kernel: Kernel,
        matrix: FloatArray,
        units: Units,
        weight: FloatArray | None,
        n_jobs: int,
    ) -> _Stocks:
        features = kernel.explicit_features(matrix)
        if features is None:
            return cls.of_gram(kernel.matrix(matrix, n_jobs=n_jobs), weight, kernel)
        return cls.of_features(features, _origin(kernel, matrix, units, weight), weight, kernel)

    @classmethod
    def of_gram(
        cls, gram: FloatArray, weight: FloatArray | None, kernel: Kernel | None = None
    ) -> _Stocks:
        diagonal = gram.diagonal()
        with np.errstate(over="ignore", invalid="ignore"):  # the core refuses what overflows
            trace = float(diagonal.sum() if weight is None else (weight * diagonal).sum())
        return cls(kernel, None, None, gram, weight, trace, 0.0)

    @classmethod
    def of_features(
        cls,
        features: FloatArray,
        origin: FloatArray | None,
        weight: FloatArray | None,
        kernel: Kernel,
        feature_map: FeatureMap | None = None,
    ) -> _Stocks:
        """`origin`: of the features as given, if that is not their mean. Centers them in place."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = _mean(features, weight)
            features -= mean
            squares = np.einsum("ij,ij->i", features, features)
            trace = float(squares.sum() if weight is None else (weight * squares).sum())
            given = mean if origin is None else origin
            total = float(len(features) if weight is None else weight.sum())
            offset = total * float((given * given).sum())
        if not np.isfinite(trace + offset):
            raise ValueError(
                'The kernel values overflow float64. Use scale="standard" or rescale the columns.'
            )
        return cls(kernel, feature_map, features, None, weight, trace, offset)

    def objective(self, labels: npt.NDArray[Any]) -> float:
        """Give L of a clustering of the rows, from its definition."""
        weight = np.ones(len(labels)) if self.weight is None else self.weight
        parts = []
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label)
            if self.features is not None:
                total = np.einsum("i,ij->j", weight[rows], self.features[rows])
                stock = (total * total).sum()
            else:
                assert self.gram is not None
                stock = weight[rows] @ self.gram[np.ix_(rows, rows)] @ weight[rows]
            parts.append(float(stock / weight[rows].sum()))
        return math.fsum(parts) + self.offset


def _make_tree(fitted: dict[str, Any], rows: Table) -> ClusterTree:
    names = (
        "children_left", "children_right", "feature", "threshold", "lower", "upper", "kind",
        "n_node_samples", "weighted_n_node_samples", "cluster", "move", "gain",
    )  # fmt: skip
    weight = fitted["weighted_n_node_samples"]
    return ClusterTree(
        **{name: fitted[name] for name in names},
        impurity=fitted["cost"] / weight,
        value=None,
        base_cluster=np.full(len(weight), -1),
        mistakes=np.full(len(weight), np.nan),
        n_features=rows.n_features,
        classes=list(range(int(fitted["cluster"].max()) + 1)),
        feature_names=rows.feature_names,
    )


@dataclass(frozen=True)
class _LeafSums:
    """Weight and column sums (in units) of the leaves, or of other groups of rows in a leaf."""

    ids: npt.NDArray[np.int64]
    """The leaf of each group."""
    weight: FloatArray
    sums: FloatArray

    # Most numbers kept for truncate().
    MOST: ClassVar[int] = 1_000_000

    @classmethod
    def of(
        cls,
        leaf_of_row: npt.NDArray[np.uint32],
        tree: ClusterTree,
        rows: Table,
        units: Units,
        sample_weight: FloatArray | None,
        n_jobs: int,
    ) -> _LeafSums:
        ids = np.flatnonzero(tree.kind == 0).astype(np.int64)
        group = np.zeros(tree.n_nodes, dtype=np.uint32)
        if len(ids) * rows.n_features > cls.MOST:
            # Too many to keep: one group for each cluster, under any leaf of it.
            group[ids] = tree.leaf_clusters[ids]
            _, first = np.unique(tree.leaf_clusters[ids], return_index=True)
            ids = ids[first]
        else:
            group[ids] = np.arange(len(ids))
        weight, sums = _core.group_sums(
            rows.data,
            units.shift,
            units.scale,
            group[leaf_of_row],
            len(ids),
            sample_weight,
            n_jobs,
        )
        return cls(ids, weight, sums)

    def centers(self, tree: ClusterTree, units: Units) -> FloatArray:
        """Means of the clusters in the columns' own units."""
        clusters, k = tree.leaf_clusters[self.ids], len(tree.classes)
        weight = np.bincount(clusters, weights=self.weight, minlength=k)
        sums = np.zeros((k, self.sums.shape[1]))
        np.add.at(sums, clusters, self.sums)
        return np.asarray(sums / weight[:, None] * units.scale + units.shift)
