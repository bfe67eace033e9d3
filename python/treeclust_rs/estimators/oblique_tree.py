"""Sparse oblique trees fitted together with the clustering."""

from __future__ import annotations

import copy
import dataclasses
import math
import warnings
from collections.abc import Iterable
from dataclasses import KW_ONLY, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import polars as pl
from scipy.sparse import csr_array, issparse
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import _engine
from .._base import (
    AT_LEAST_1,
    EXPLAINING,
    INERTIA_PATH,
    MAX_LEAVES,
    NO_NEGATIVE_INERTIA,
    POSITIVE,
    Check,
    Constraints,
    Fields,
    FitRows,
    GrownClusterer,
    LeafMeans,
    ReferenceModel,
    SavedField,
    TrainingState,
    check_max_leaves,
    most_leaves,
)
from .._base.truncation import feature_importances
from .._data import Table, Units, collected, read_sparse, read_table
from .._engine import GroupMeans, Measure, ObliqueArrays
from .._reference.checks import DEFAULT_N_CLUSTERS, warn_of_far_centers, warn_of_lost
from .._reference.kmeans import Clustering, make_reference, spherical_reference
from .._util import (
    Codes,
    FloatArray,
    IntArray,
    Interval,
    StrOptions,
    estimator,
    weighted_sum,
)
from ..tree import (
    LEAF,
    OBLIQUE,
    ClusterTree,
    GrownTree,
    is_sklearn_tree,
    kept_ancestor,
    splits_by_gain,
    tests_of,
)
from .given_tree import check_columns, given_tree, is_tree

# Most steps of the reference's k-means (appendix A.2 of the paper).
MAX_KMEANS_STEPS = 500
# The figures of every round.
_PATH_COLUMNS = ("mu", "cost", "penalty", "mismatch", "n_weights", "n_leaves")


class _Start(NamedTuple):
    """The part of a fit that is the same for every alpha."""

    fit_rows: FitRows[Any]
    clustering: Clustering
    """The free clustering, to which the tree is fitted."""
    tree: ClusterTree | None
    """The first tree, of threshold or oblique tests; None: the core makes one."""
    seed: int


@estimator
class ObliqueTree(GrownClusterer, ReferenceModel):
    """Fit a clustering and a small tree of sparse weighted sums together.

    A test weighs a few columns, ``0.8·income − 1.2·age + 0.3 < 0``, so that few leaves follow
    clusters that no boxes can. Tree and centers take turns in lowering

        cost of the rows in the tree's clusters + alpha * sum over the tests of |w|_1,

    cost being in units of the mean cost of the free clustering, that of `reference`.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters; None means the reference's, the one of a tree given as `init`, or 8.
    max_leaves : int, inf or None, default=inf
        Most leaves, at least `n_clusters`; None means `n_clusters`, ``math.inf`` no limit. A tree
        with more is pruned, always where that costs least, and fitted further from there.
    max_depth : int, default=4
        Depth of the first tree and of the deepest leaf made later: at most 2 ** max_depth leaves. A
        tree given as `init` keeps its own depth and number of leaves.
    alpha : float, default=1.0
        Price of the weights, at least 0 (the paper's lambda): the larger, the fewer weights and
        leaves. It is set against costs that add up to the number of rows (their weight). Texts, as
        tf-idf, need a smaller one, some 0.1, because their cells are small; columns of very small
        units need ``scale="standard"``. With
        ``splits="axis"`` the price of a test.
    splits : {"oblique", "axis"}, default="oblique"
        "axis": threshold tests, ``x <= a``, found by exact enumeration.
    metric : {"euclidean", "cosine"}, default="euclidean"
        k-means, or spherical k-means: 1 - cosine, for rows such as counts of words. Takes
        scipy.sparse matrices too, which are never made dense. Rows of zeros, such as texts without
        a known word, cost 1 in any cluster and go where the biases of the tests send them.
    leaves : {"label", "histogram"}, default="label"
        What leaves predict while the tree is fitted, with ``solver="path"``: a label and the 0/1
        loss, or shares of the labels and squared error. A fitted leaf always has one label.
    init : {"bisecting", "random"} or tree, default="bisecting"
        The first tree: recursive 2-means, each test the bisector of the two means; bisectors of
        random pairs of rows; or a tree fitted before (an estimator of this package, a
        `ClusterTree`, or scikit-learn's `DecisionTreeClassifier` of the reference's labels), which
        is then refined: with ``alpha=0`` the cost never ends above its own (before `relax`). An
        unfitted estimator of this package is cloned and fitted to X. Axis-aligned trees grow from
        one leaf instead if no tree is given.
    solver : {"direct", "path"}, default="direct"
        "direct" lowers the objective itself. "path" is the paper's: auxiliary labels between
        clustering and tree, drawn together by a growing weight mu; then rounds on the objective
        itself, which the paper does not have: one pass over the tree each, then the centers.
    mu_factor : float, default=1.1
        Of the path: mu grows by this factor, above 1.
    mu_steps : int, default=100
        Of the path: most values of mu.
    n_init : int, default=10
        Starts of the reference's k-means, of which the best counts.
    max_iter : int, default=100
        Most rounds of tree and centers of the direct solver, after a path, and of `relax`. A round
        that lowers the objective by less than 1e-4 of it ends them, once single weights are moved
        too.
    relax : bool, default=False
        Whether to end with rounds that lower the cost alone, while every test keeps to the columns
        it has by then. The price of the weights, which chose the columns, also holds back the
        weights; without it the same columns, or fewer, mostly make better clusters. The cost is
        never more than without `relax`, nor are `n_parameters_` and `n_leaves_`. Not with
        ``splits="axis"``.
    reference : None, estimator or array, default=None
        The free clustering that fit and costs start from. None: scikit-learn's KMeans, or spherical
        k-means. A fitted estimator: its `labels_` (or `predict`) and `cluster_centers_`; an
        unfitted one is cloned and fitted to X, without `scale`. A 2-D array: centers in the columns
        of X. A 1-D array: a label per row, integers or strings; -1 marks noise, which is left out
        of the fit.
    %(scale)s
        Costs and alpha see these units. Not with ``metric="cosine"``.
    random_state : int, RandomState or None, default=None
        Seed of the reference and of the first tree.
    %(threads)s

    Attributes
    ----------
    %(tree_and_labels)s
    classes_ : ndarray of shape (n_clusters,)
        The clusters' labels.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the tree's clusters, in the columns' own units (cosine: means of the rows divided
        by their lengths, of length 1). An empty cluster keeps the last center it had.
    %(encoded_names)s
    inertia_ : float
        Cost of the tree's clusters about these centers, on standardised columns if
        ``scale="standard"``.
    %(reference_inertia)s
    objective_path_ : polars.DataFrame
        Round by round: round, cost (over that of the reference), penalty (sum of |w|_1), objective
        (cost * weight of the rows + alpha * penalty), n_parameters, n_leaves. With the direct
        solver the objective never rises, but where `max_leaves` made the tree smaller; in the last
        rounds, those of `relax`, the cost does not. `truncate` leaves it as the fit had it.
    n_iter_ : int
        Number of rounds (of the path: values of mu, the direct fit before them, and the rounds
        after them), those of `relax` included.
    mu_path_ : polars.DataFrame or None
        Of the path, by mu: mu (in units of the reference's mean cost; 0: the direct fit), cost (of
        the tree's clusters over that of the reference), mismatch (weight of the rows whose
        auxiliary label is not the tree's), penalty, n_parameters, n_leaves. The rounds after the
        path and those of `relax` have the last mu. None with the direct solver.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the cost about the last centers: of an oblique test,
        by the squares of its weights in units of the columns' scale.
    %(columns_in_and_errors)s

    See Also
    --------
    ExKMC : Threshold trees grown greedily; ``ObliqueTree(init=model, splits="axis", alpha=0)``
        refines them.
    VoronoiTree : The tree that reproduces the nearest center exactly.

    Notes
    -----
    The tree is improved by tree alternating optimisation: from the deepest tests to the root, every
    test solves a two-class problem, which of its two subtrees is the cheaper one for each row that
    reaches it, by l1-penalised logistic regression with an unpenalised bias. A new test is taken
    only if it lowers the weighted errors plus penalty; tests not worth their penalty go, and leaves
    are split where that pays.

    One round costs O(n d) a level of the tree beside the logistic problems. Beside X a copy of it
    is held, in 4 bytes a cell where that is exact.

    The objective of the path is E + mu (P + alpha phi) for each mu: with alpha / mu, as eq. (8) of
    the paper reads, the tree collapses at the small mu of the start. P counts rows alike, however
    far they are from their centers: after the path E + c alpha phi is lowered from there, c being
    what a unit of P costs at its end on average.

    References
    ----------
    Gabidolla, Carreira-Perpiñán (2022). Optimal Interpretable Clustering Using Oblique Decision
    Trees. KDD. Sections 6 to 8.

    Carreira-Perpiñán, Tavallali (2018). Alternating optimization of decision trees, with
    application to learning sparse oblique trees. NeurIPS.

    Meinshausen (2007). Relaxed Lasso. Computational Statistics & Data Analysis 52. (`relax`)

    Examples
    --------
    >>> import numpy as np, treeclust_rs as tc
    >>> rng = np.random.default_rng(0)
    >>> along, side = rng.uniform(-3, 3, 300), np.repeat([-9.0, 9.0], 150)
    >>> X = np.column_stack([along + side, along - side])
    >>> model = tc.ObliqueTree(2, max_depth=1, random_state=0).fit(X)
    >>> model.n_leaves_, model.n_parameters_, round(model.cost_ratio_, 6)
    (2, 4, 1.0)
    """

    _takes_oblique = True
    _path_name = None

    _parameter_constraints: ClassVar[Constraints] = {
        **EXPLAINING,
        **MAX_LEAVES,
        "max_depth": [Interval(Integral, 1, 30, closed="both")],
        "alpha": [Interval(Real, 0.0, None, closed="left")],
        "splits": [StrOptions({"oblique", "axis"})],
        "metric": [StrOptions({"euclidean", "cosine"})],
        "leaves": [StrOptions({"label", "histogram"})],
        "init": "no_validation",  # type: ignore[dict-item]
        "solver": [StrOptions({"direct", "path"})],
        "mu_factor": [Interval(Real, 1.0, None, closed="neither")],
        "mu_steps": [AT_LEAST_1],
        "n_init": [AT_LEAST_1],
        "max_iter": [AT_LEAST_1],
        "relax": ["boolean"],
    }
    _saved: ClassVar[Fields] = {
        "cluster_centers_": SavedField("k d"),
        "scale_": SavedField("d", required=True, check=POSITIVE),
        "inertia_": SavedField(check=NO_NEGATIVE_INERTIA),
        "_inertia_path": INERTIA_PATH,
        "reference_inertia_": SavedField(required=True, check=NO_NEGATIVE_INERTIA),
        "_path": SavedField(
            f"path {len(_PATH_COLUMNS)}",
            required=True,
            check=Check(
                lambda path: len(path) > 0 and bool((path >= 0).all()),
                "a {name} that is empty or holds negative numbers",
            ),
        ),
        "_weight": SavedField(required=True, check=POSITIVE),
    }

    n_clusters: int | None = None
    _: KW_ONLY
    max_leaves: int | float | None = math.inf
    max_depth: int = 4
    alpha: float = 1.0
    splits: str = "oblique"
    metric: str = "euclidean"
    leaves: str = "label"
    init: Any = "bisecting"
    solver: str = "direct"
    mu_factor: float = 1.1
    mu_steps: int = 100
    n_init: int = 10
    max_iter: int = 100
    relax: bool = False
    reference: Any = None

    @property
    def _takes_sparse(self) -> bool:  # type: ignore[override]
        return self.metric == "cosine"

    # ---- fit ------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        sample_weight: Any = None,
        *,
        feature_names: Any = None,
    ) -> Self:
        """Fit the clustering and the tree.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            numpy array, polars DataFrame or LazyFrame, pandas DataFrame or pyarrow Table of
            numbers; with ``metric="cosine"`` also a scipy.sparse matrix.
            %(who_takes_mixed)s
        %(weight_fitted)s

        Raises
        ------
        ValueError
            If X holds NaN, inf or null, sizes do not fit (n_clusters and the rows, the reference,
            a tree given as `init`), or parameters do not go together: histograms with the direct
            solver, a scale with cosine, `relax` or an oblique tree as `init` with axis-aligned
            splits.
        TypeError
            If a column is not numbers, X is sparse without ``metric="cosine"`` and oblique splits,
            or `init` is not a tree.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` rounds, or the values of mu, were not enough; if fewer clusters than
            n_clusters were found, because X has too few distinct rows; or if the tree leaves
            clusters without rows, for the price of the weights or for want of leaves.
        """
        self._check_parameters()
        return self._fit_from(self._start(X, sample_weight, feature_names))

    def alpha_path(
        self,
        X: Any,
        alphas: Iterable[float],
        sample_weight: Any = None,
        *,
        feature_names: Any = None,
    ) -> list[Self]:
        """Fit trees from detailed to simple, each starting from the one before.

        A tree that comes from a more detailed one is mostly a little better than one fitted to its
        alpha at once: to get a good tree, start from a tenth of the alpha it is to have.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            As for `fit`.
        alphas : iterable of float
            Values of alpha; they are taken in ascending order.
        sample_weight : array-like of shape (n_samples,), default=None
            As for `fit`.
        feature_names : list of str, default=None
            As for `fit`.

        Returns
        -------
        list of Self
            Fitted estimators, in ascending order of their `alpha`. All have the same reference. The
            first is the one that `fit` gives; this estimator stays as it is.

        Raises
        ------
        ValueError, TypeError
            As by `fit`; and if `alphas` is empty or holds what alpha cannot be.

        Warns
        -----
        ConvergenceWarning
            As by `fit`.
        """
        given = list(alphas) if isinstance(alphas, Iterable) else alphas
        if not isinstance(given, list) or not all(isinstance(alpha, Real) for alpha in given):
            raise TypeError(f"alphas must be numbers, at least 0. Got {given!r} instead.")
        if not given:
            raise ValueError("alphas is empty: give at least one value of alpha.")
        values = sorted(given)
        models = []
        for alpha in values:
            model = copy.copy(self).set_params(alpha=alpha)
            model._check_parameters()
            models.append(model)
        start = models[0]._start(X, sample_weight, feature_names)
        for model in models:
            model._fit_from(start)
            start = start._replace(tree=model.tree_)
        return models

    def _check_parameters(self) -> None:
        self._validate_params()
        if self.leaves == "histogram" and self.solver == "direct":
            raise ValueError(
                'leaves="histogram" goes with solver="path"; the direct solver has labels in its '
                "leaves."
            )
        if self.relax and self.splits == "axis":
            raise ValueError(
                'relax=True goes with splits="oblique": a threshold has no weights to relax.'
            )
        if self.metric == "cosine" and self.scale is not None:
            raise ValueError(
                f'scale={self.scale!r} does not go with metric="cosine", which sees the data as '
                "given. Rescale the columns before, or use scale=None."
            )
        if not is_tree(self.init) and (
            not isinstance(self.init, str) or self.init not in ("bisecting", "random")
        ):
            raise ValueError(
                "The 'init' parameter of ObliqueTree must be 'bisecting', 'random', a fitted "
                "estimator of this package, a ClusterTree or a classification tree of "
                f"scikit-learn. Got {self.init!r} instead."
            )

    def _start(self, X: Any, sample_weight: Any, feature_names: Any) -> _Start:
        """Read the rows; determine the free clustering and the first tree."""
        if is_tree(self.init):  # one that is not fitted is given X as well
            X = collected(X, type(self).__name__)
        tree = self._init_tree(X, sample_weight)
        fit_rows = FitRows.read(
            self,
            X,
            sample_weight,
            feature_names=feature_names,
            reference=self.reference,
            n_clusters=self.n_clusters,
            reader=self._read_rows,
            compares_columns=self.metric != "cosine",
            stacklevel=5,
        )
        given, n_clusters = fit_rows.reference, self.n_clusters
        if tree is not None:
            _check_init(tree, fit_rows, n_clusters or given.n_clusters)
            if n_clusters is None and given.n_clusters is None:
                n_clusters = len(tree.classes)
        asked = n_clusters or given.n_clusters or DEFAULT_N_CLUSTERS
        check_max_leaves(self.max_leaves, asked, n_clusters is None and given.n_clusters is None)
        rng = check_random_state(self.random_state)
        options: dict[str, Any] = {
            "n_clusters": n_clusters,
            "random_state": rng,
            "estimator_name": fit_rows.estimator_name,
            "n_init": self.n_init,
            "max_iter": MAX_KMEANS_STEPS,
            "tell": fit_rows.tell(self.verbose),
        }
        if self.metric == "cosine":
            units = Units.own(fit_rows.rows.n_features)
            fit_rows = dataclasses.replace(fit_rows, units=units)
            clustering = spherical_reference(fit_rows, given, **options)
        else:
            reference = make_reference(fit_rows, given, needs_distinct=False, **options)
            warn_of_far_centers(fit_rows, given, reference.labels, stacklevel=3)
            centers = reference.centers.in_units
            clustering = Clustering(reference.classes, reference.labels, centers)
        n_found = len(clustering.classes)
        if tree is not None and len(tree.classes) > n_found:
            raise ValueError(
                f"The tree given as init has {len(tree.classes)} clusters, but the reference found "
                f"only {n_found} in X."
            )
        return _Start(fit_rows, clustering, tree, int(rng.randint(np.iinfo(np.int32).max)))

    def _init_tree(self, X: Any, sample_weight: Any) -> ClusterTree | None:
        """Return the tree given as `init`, with threshold tests in place of intervals."""
        if not is_tree(self.init):
            return None
        if is_sklearn_tree(self.init) and not is_classifier(self.init):
            raise ValueError(
                f"The leaves of a {type(self.init).__name__} have no clusters. Give them some: "
                "init=tc.tree.from_sklearn(tree, X, labels=...)."
            )
        tree = given_tree(self.init, lambda model: model.fit(X, sample_weight=sample_weight))
        if tree.oblique_indptr is not None and self.splits == "axis":
            raise ValueError(
                'splits="axis" cannot start from a tree with oblique tests. Use splits="oblique", '
                "or another init."
            )
        return tree

    def _read_rows(self, X: Any, *, estimator_name: str) -> Any:
        """Return a `Table`, or a `SparseTable` where the fit can use one."""
        if issparse(X) and self.metric == "cosine" and self.splits == "oblique":
            return read_sparse(X, estimator_name=estimator_name)
        return read_table(X, estimator_name=estimator_name)

    def _fit_tree(
        self, start: _Start, schedule: tuple[float, int, bool] | None
    ) -> _engine.FittedOblique:
        """Fit a tree of any number of leaves, or of as many as the first tree has."""
        fit_rows, clustering, first, seed = start
        rows, weight, units = fit_rows.rows, fit_rows.weight, fit_rows.units
        return _engine.fit_oblique(
            rows.data,
            Measure(units, self.metric == "cosine", weight, fit_rows.threads),
            centers=clustering.centers,
            labels=clustering.labels,
            init=self.init if isinstance(self.init, str) else "bisecting",
            tree=None if first is None else _init_tree_of(first, clustering.classes),
            axis=self.splits == "axis",
            alpha=float(self.alpha),
            max_depth=int(self.max_depth),
            max_iter=int(self.max_iter),
            schedule=schedule,
            relax=bool(self.relax),
            seed=seed,
            progress=fit_rows.progress(self.verbose),
        )

    def _fit_from(self, start: _Start) -> Self:
        fit_rows, clustering = start.fit_rows, start.clustering
        rows, weight, units = fit_rows.rows, fit_rows.weight, fit_rows.units
        schedule = None
        if self.solver == "path":
            schedule = (float(self.mu_factor), int(self.mu_steps), self.leaves == "histogram")
        fitted = self._fit_tree(start, schedule)
        tree = _grown_tree(fitted, start).build(clustering.classes, rows, fit_rows)
        path = _rounds_of(fitted)
        most = most_leaves(self.max_leaves, len(clustering.classes), rows.n_samples)
        if tree.n_leaves > most:
            pruned = _pruned(tree, most)[0]
            fitted = self._fit_tree(start._replace(tree=pruned), schedule=None)
            tree = _grown_tree(fitted, start).build(clustering.classes, rows, fit_rows)
            rounds = _rounds_of(fitted)
            rounds[:, 0] = path[-1, 0]
            path = np.vstack([path, rounds])
        if not fitted.converged:
            limit = "" if schedule is None else f"mu_steps={self.mu_steps} or "
            limit += f"max_iter={self.max_iter}"
            warnings.warn(
                f"{type(self).__name__} stopped after {limit} before the tree and the clusters "
                "settled. A larger value may lower the cost.",
                ConvergenceWarning,
                stacklevel=3,
            )
        warn_of_lost(
            len(clustering.classes),
            tree.filled_clusters,
            clustering.labels,
            "A smaller alpha or a larger max_depth may give more of them leaves.",
            stacklevel=4,
        )
        leaves = fit_rows.leaves_of_all(fitted.leaf_of_row, tree)
        leaf_means = None
        if self.metric != "cosine":
            centers = fitted.centers * units.scale + units.shift
            leaf_means = LeafMeans.of(fit_rows, fitted.leaf_of_row, tree, centers)
            leaf_means = leaf_means if leaf_means.is_by_leaf(tree) else None
        elif tree.n_leaves * rows.n_features <= LeafMeans.MAX_NUMBERS:
            leaf_means = _leaf_directions(fit_rows, fitted.leaf_of_row, tree)
        # Nothing is set before everything is known: a fit that fails leaves the estimator as it
        # was.
        self._set_tree(tree, fit_rows.names_given)
        self.scale_ = units.scale
        self.inertia_ = float(fitted.inertia)
        self.reference_labels_ = fit_rows.labels_of_all(self.classes_, clustering.labels)
        self.reference_inertia_ = float(fitted.free_inertia)
        self.cluster_centers_ = fitted.centers * units.scale + units.shift
        self.labels_ = self.classes_[tree.leaf_clusters[leaves]]
        self._path = path
        self._training = TrainingState(leaves, leaf_means, self.cluster_centers_)
        self._weight = float(rows.n_samples if weight is None else weight.sum())
        fit_rows.tell_result(self.verbose, tree.n_leaves, "cost", self.inertia_)
        return self

    def truncate(self, max_leaves: int) -> Self:
        """Return the model with fewer leaves: pruned, always where that costs least.

        A fit with this `max_leaves` fits the pruned tree further, and mostly costs less.

        Parameters
        ----------
        max_leaves : int
            Number of leaves, at least 1; the whole model if it has no more.

        Returns
        -------
        Self
            A new fitted estimator, whose labels, centers and costs are those of the smaller tree.
            Models read from a file lack them, for they take the rows of the fit (but have the costs
            with ``metric="euclidean"``); with more than a million numbers (leaves x columns)
            centers and costs are lacking.

        Raises
        ------
        ValueError
            If `max_leaves` is less than 1.
        """
        return super().truncate(max_leaves)

    def _centers_and_cost(self, clusters: GroupMeans) -> tuple[FloatArray, float]:
        if self.metric != "cosine":
            return super()._centers_and_cost(clusters)
        # Of directions: their mean of length 1, from which they are apart by what its length lacks.
        lengths = np.linalg.norm(clusters.means, axis=1)
        centers = clusters.means / np.where(lengths > 0, lengths, np.nan)[:, None]
        return centers, weighted_sum(np.maximum(1.0 - lengths, 0.0), clusters.weight)

    @cached_property
    def _inertia_path(self) -> FloatArray | None:
        leaf_means = self._training.leaf_means if "_training" in self.__dict__ else None
        if leaf_means is None or self.metric == "cosine":
            return None
        ordered, number = _ordered(self.tree_)
        return replace(leaf_means, ids=number[leaf_means.ids]).inertia_path(ordered)

    def _smaller_tree(self, max_leaves: int) -> tuple[ClusterTree, IntArray]:
        return _pruned(self.tree_, max_leaves)

    # ---- results --------------------------------------------------------------------------

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each column in the decrease of the cost, of shape (n_features,)."""
        return feature_importances(self.tree_, self.scale_)

    def _path_frame(self) -> pl.DataFrame:
        mu, cost, penalty, mismatch, n_weights, n_leaves = self._path.T
        return pl.DataFrame(
            {
                "round": np.arange(len(mu)),
                "mu": mu,
                "cost": cost / self._weight,
                "mismatch": mismatch,
                "penalty": penalty,
                "objective": cost + float(self.alpha) * penalty,
                "n_parameters": (n_weights + 2 * n_leaves - 1).astype(np.int64),
                "n_leaves": n_leaves.astype(np.int64),
            }
        )

    @property
    def objective_path_(self) -> pl.DataFrame:
        """The objective round by round."""
        return self._path_frame().drop("mu", "mismatch")

    @property
    def n_iter_(self) -> int:
        """Rounds of tree and centers, or values of mu and the direct fit before them."""
        return len(self._path)

    @property
    def mu_path_(self) -> pl.DataFrame | None:
        """Cost and size of the tree by mu; None with the direct solver."""
        check_is_fitted(self, "tree_")
        return self._path_frame().drop("round", "objective") if self.solver == "path" else None

    @property
    def _cost(self) -> Literal["kmeans", "cosine"]:
        return "cosine" if self.metric == "cosine" else "kmeans"


def _leaf_directions(fit_rows: FitRows[Any], leaf_of_row: Codes, tree: ClusterTree) -> LeafMeans:
    """Average the rows of each leaf, divided by their lengths; cosine needs no spreads: NaN."""
    rows = fit_rows.rows
    weight = np.ones(rows.n_samples) if fit_rows.weight is None else fit_rows.weight
    ids = np.flatnonzero(tree.kind == LEAF).astype(np.int64)
    cells = (weight, (np.searchsorted(ids, leaf_of_row), np.arange(rows.n_samples)))
    of_leaf = csr_array(cells, shape=(len(ids), rows.n_samples))
    matrix = fit_rows.units.matrix(rows) if isinstance(rows, Table) else rows.matrix()
    sums = of_leaf @ normalize(matrix)
    total = of_leaf.sum(axis=1)
    means = (sums.toarray() if issparse(sums) else sums) / np.where(total > 0, total, 1.0)[:, None]
    groups = GroupMeans(total, means, np.zeros_like(means), np.full(len(ids), np.nan))
    return LeafMeans(ids, groups, np.ones(rows.n_features))


def _rounds_of(fitted: _engine.FittedOblique) -> FloatArray:
    """Return the figures of every round, those of `_PATH_COLUMNS`."""
    return np.column_stack([getattr(fitted, column) for column in _PATH_COLUMNS])


def _ordered(tree: ClusterTree) -> tuple[ClusterTree, IntArray]:
    """Return the tree whose first nodes are the pruned trees, and the number of each node there."""
    arguments, number = splits_by_gain(tree)
    return ClusterTree(**arguments), number


def _pruned(tree: ClusterTree, max_leaves: int) -> tuple[ClusterTree, IntArray]:
    """Return the pruned tree, and the node there that each node is part of."""
    ordered, number = _ordered(tree)
    small = ordered.truncate(max_leaves)
    return small, kept_ancestor(ordered, small.n_nodes)[number]


def _check_init(tree: ClusterTree, fit_rows: FitRows[Any], n_clusters: int | None) -> None:
    """Raise ValueError if the tree does not suit the columns or the number of clusters."""
    check_columns(tree, fit_rows.table)
    if n_clusters is not None and n_clusters < len(tree.classes):
        raise ValueError(
            f"The tree given as init has {len(tree.classes)} clusters, more than "
            f"n_clusters={n_clusters}."
        )


def _init_tree_of(
    tree: ClusterTree, classes: list[int] | list[str]
) -> tuple[_engine.Router, IntArray]:
    """Return a tree as a fit starts from it: its tests, and the clusters of its leaves.

    Clusters are matched by label; those of another clustering keep their codes.
    """
    code = {label: i for i, label in enumerate(classes)}
    clusters = tree.leaf_clusters
    if all(label in code for label in tree.classes):
        codes = np.array([code[label] for label in tree.classes], dtype=np.int64)
        clusters = np.where(clusters >= 0, codes[clusters], -1)
    return tree.router, clusters


def _grown_tree(fitted: _engine.FittedOblique, start: _Start) -> GrownTree:
    """Count the rows of the fit in the nodes of the tree."""
    regrets = fitted.regrets
    n_nodes, k = regrets.shape
    # Inner nodes have the cluster that would cost their rows least.
    cluster = np.where(fitted.kind == LEAF, fitted.cluster, regrets.argmin(axis=1))
    oblique = ObliqueArrays(
        fitted.oblique_indptr, fitted.oblique_indices, fitted.oblique_weights, fitted.oblique_bias
    )
    is_oblique = bool((fitted.kind == OBLIQUE).any())
    return GrownTree.of_rows(
        tests_of(fitted),
        oblique if is_oblique else None,
        fitted.leaf_of_row,
        start.clustering.labels,
        k,
        start.fit_rows.weight,
        feature_scale=start.fit_rows.deviations() if is_oblique else None,
        cost=regrets[np.arange(n_nodes), cluster],
        cluster=cluster,
    )
