"""Kauri: trees grown by a kernel k-means objective, with no reference clustering."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from .. import _engine
from .._base import (
    AT_LEAST_1,
    COMMON,
    GAMMA,
    INERTIA_PATH,
    LIMITS,
    NO_NEGATIVE_INERTIA,
    POSITIVE,
    Check,
    Constraints,
    Fields,
    FitRows,
    KernelModel,
    LeafMeans,
    SavedField,
    TrainingState,
    most_leaves,
    normalised,
)
from .._kernels import (
    KERNEL_CONSTRAINTS,
    ROUNDING,
    centered_where_full,
    check_gram_argument,
    make_kernel_data,
    table_of,
    takes_sparse,
)
from .._reference.centers import column_means
from .._reference.checks import DEFAULT_N_CLUSTERS
from .._util import FloatArray, Interval, StrOptions, at_least, estimator
from .._util.words import real_name
from ..tree import (
    MOVES,
    ClusterTree,
    column_arguments,
    node_arguments,
    tests_of,
    values_beside,
)


@estimator
class Kauri(KernelModel):
    """Grow a tree whose leaves are clusters, with no other clustering before it.

    The tree maximises the kernel k-means objective L = sum over the clusters C of S(C, C) / |C|,
    S adding up kernel values, greedily and end to end: a split is a cut of a leaf *and* a choice of
    clusters for its two sides, and of all leaves, columns, cuts and choices the one that gains most
    is made. A cluster may have several leaves.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Most clusters; None means 8. Fewer come out where fewer pay, or where rows do not differ.
    max_leaves : int, inf or None, default=None
        Most leaves; None means `n_clusters`, ``math.inf`` no limit: until no split gains.
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
    %(kernel_parameters)s
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
    %(scale)s
    random_state : int, RandomState or None, default=None
        Seed of `max_features` and of approximations.
    %(threads)s

    Attributes
    ----------
    tree_ : ClusterTree
        The tree; print it. Its nodes hold their cluster, the move they were split by, and its gain.
    labels_ : ndarray of shape (n_samples,)
        Cluster of every row. Clusters are numbered in the order they were made.
    %(numbers)s
    objective_ : float
        L of the training rows of positive weight, under the kernel used (the approximation, if
        there is one) on the data as given.
    gains_ : polars.DataFrame
        The splits in order: n_leaves after it, node, move, left_cluster, right_cluster, feature,
        threshold (NaN for tests on levels and on missing cells), gain, objective after it. The
        kernel cost after each is ``kernel_cost_ + objective_ - objective``: Kauri's curve of cost
        by number of leaves.
    inertia_ : float
        The k-means cost of the clusters: squared distances to `cluster_centers_`, on standardised
        columns if ``scale="standard"``.
    kernel_cost_ : float
        Kernel k-means cost: the weighted sum of k(x, x), less `objective_`. With the linear kernel
        it is `inertia_`, but where cells are missing. Negative only with indefinite kernels.
    cluster_centers_ : ndarray of shape (n_clusters, n_coordinates)
        Means of the clusters' rows, in the columns' own units, whatever the kernel is; a column of
        text has the share of each of its levels.
    %(encoded_names)s
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the gains.
    %(kernel_columns)s
    classes_ : ndarray of shape (n_clusters,)
        0, ..., n_clusters - 1.
    %(columns_and_errors)s

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

    Sparse rows (kernels linear, cosine and hellinger) are never made dense: a leaf costs the sum
    of the squared numbers of cells of its rows, a round O(cells) for each cluster that changed, and
    memory is some 80 bytes a stored cell and 8 * n_features a leaf. The tree is that of the same
    rows as a dense table, up to ties.

    With ``kernel="linear"`` cells may be missing, and columns of frames text, booleans, dates and
    times. Clusters are made of the filled table, in which a gap has the column's mean and a level
    is a coordinate of its own; `inertia_` and `score` count the observed cells alone. A test on
    levels has one level on a side. Where missing cells reach a leaf, they may go to either side of
    every cut, and be cut from the others.

    A positive semidefinite kernel makes a star of every split until there are `n_clusters`:
    double stars and mixed moves need an indefinite one.

    References
    ----------
    Ohl et al. End-to-end training of unsupervised trees: Kauri and Douglas. Section 3, appendices
    B to D.

    Examples
    --------
    >>> import numpy as np, treeclust_rs as tc
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [9.0, 1.0], [9.0, 8.0], [8.0, 9.0]])
    >>> model = tc.Kauri(n_clusters=2).fit(X)
    >>> model.labels_, round(model.inertia_, 3)
    (array([1, 1, 0, 0, 0]), 39.167)
    >>> model.gains_.select("node", "move", "feature", "threshold").rows()
    [(0, 'star', 'x0', 4.0)]
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_clusters": [AT_LEAST_1, None],
        **LIMITS,
        "min_samples_split": [at_least(2)],
        "max_features": [
            AT_LEAST_1,
            Interval(Real, 0.0, 1.0, closed="right"),
            StrOptions({"sqrt", "log2"}),
            None,
        ],
        **KERNEL_CONSTRAINTS,
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "moves": [StrOptions({"paper", "all"})],
        **COMMON,
    }
    _saved: ClassVar[Fields] = {
        "cluster_centers_": SavedField("k c"),
        "scale_": SavedField("d", required=True, check=POSITIVE),
        "inertia_": SavedField(check=NO_NEGATIVE_INERTIA),
        "_kernel_cost": SavedField(required=True),
        "gamma_": GAMMA,
        "_inertia_path": INERTIA_PATH,
        "_objective_path": SavedField(
            "path",
            required=True,
            check=Check(lambda path: bool((np.diff(path) >= 0).all()), "a {name} that falls"),
            n_entries=lambda tree: tree.n_leaves,
        ),
    }
    _path_name = "_objective_path"

    n_clusters: int | None = None
    _: KW_ONLY
    max_leaves: int | float | None = None
    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    max_features: int | float | str | None = None
    kernel: str | Callable[..., float] = "linear"
    tol: float = 1e-6
    moves: str = "paper"

    # ---- fit ------------------------------------------------------------------------------

    @property
    def _takes_missing(self) -> bool:  # type: ignore[override]
        return self._is_kmeans

    @property
    def _takes_sparse(self) -> bool:  # type: ignore[override]
        return takes_sparse(self.kernel, self.approximation, by_features=True)

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        sample_weight: Any = None,
        gram: Any = None,
        *,
        feature_names: Any = None,
    ) -> Self:
        """Fit the tree.

        Parameters
        ----------
        %(kernel_fit)s

        Raises
        ------
        ValueError
            If X or `gram` hold inf or NaN (but see X for gaps), `gram` is missing, unasked for, of
            another shape or not symmetric, the kernel is not defined on X (negative cells), its
            matrix would be too large, or sums of kernel values overflow.
        %(kernel_errors)s
            If a kernel to be approximated is seen not to be positive semidefinite.
        """
        self._validate_params()
        check_gram_argument(self.kernel, self.approximation, gram is not None)
        fit_rows = FitRows.read(
            self,
            X,
            sample_weight,
            gram=gram,
            feature_names=feature_names,
            mixed=self._takes_missing,
            sparse=self._takes_sparse,
        )
        rows, units = fit_rows.rows, fit_rows.units
        n_clusters = min(self.n_clusters or DEFAULT_N_CLUSTERS, rows.n_samples)
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        stocks = make_kernel_data(
            self,
            fit_rows,
            fit_rows.gram,
            rng,
            rank_tol=self.tol,
            levels_apart=self._is_kmeans,
        )
        kernel: Any = stocks.gram if stocks.features is None else stocks.features
        offset = stocks.offset
        if issparse(kernel):
            kernel, mean = centered_where_full(kernel, fit_rows.weight)
            offset += float(stocks.weights.sum()) * float((mean * mean).sum())
            kernel = table_of(kernel).data
        fitted = _engine.fit_kauri(
            rows.data,
            kernel=kernel,
            levels=[(level.column, level.unit, level.means) for level in stocks.levels],
            is_gram=stocks.features is None,
            sample_weight=fit_rows.weight,
            max_clusters=n_clusters,
            max_leaves=most_leaves(self.max_leaves, n_clusters, rows.n_samples),
            max_depth=self.max_depth,
            min_samples_split=self.min_samples_split,
            min_samples_leaf=self.min_samples_leaf,
            max_features=self._n_drawn(rows.n_features),
            seed=seed,
            all_moves=self.moves == "all",
            n_jobs=fit_rows.threads,
            progress=fit_rows.progress(self.verbose),
        )
        tree = _build_tree(fitted, fit_rows)
        path = fitted.objective
        if stocks.features is None:
            kernel_cost = stocks.trace - float(path[-1])
            if abs(kernel_cost) <= ROUNDING * abs(stocks.trace):
                kernel_cost = 0.0
        else:
            kernel_cost = stocks.inertia(tree.leaf_clusters[fitted.leaf_of_row])
        leaves = fit_rows.leaves_of_all(fitted.leaf_of_row, tree)
        middle = column_means(fit_rows, len(tree.classes))
        leaf_means = LeafMeans.of(fit_rows, fitted.leaf_of_row, tree, middle)
        # Nothing is set before everything is known: a fit that fails leaves the estimator as it
        # was.
        self._keep_kernel(stocks, units)
        self._set_tree(tree, fit_rows.names_given)
        self._objective_path = path + offset
        self._kernel_cost = kernel_cost
        nowhere = np.full(middle.shape[1], np.nan)  # all clusters have rows
        self._set_training(TrainingState(leaves, leaf_means, nowhere))
        fit_rows.tell_result(self.verbose, tree.n_leaves, "objective", self._objective_path[-1])
        return self

    def _n_drawn(self, d: int) -> int:
        """Return how many of d columns a leaf looks at."""
        given: Any = self.max_features
        if given is None:
            return d
        if isinstance(given, str):
            return max(int(np.sqrt(d) if given == "sqrt" else np.log2(d)), 1)
        return min(int(given), d) if isinstance(given, Integral) else max(int(given * d), 1)

    def objective(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        sample_weight: Any = None,
        gram: Any = None,
    ) -> float:
        """Return the objective L of the tree's clusters of other rows, which the fit makes large.

        Parameters
        ----------
        %(other_rows_and_gram)s

        Returns
        -------
        float
            Sum over the clusters of S(C, C) / |C|, under the kernel of the fit (the approximation,
            if there is one), on the rows as given.

        %(score_errors)s
        """
        rows, labels, given = self._rows_and_labels(X, sample_weight, gram)
        return self._stocks(rows, given).objective(labels)

    # ---- results --------------------------------------------------------------------------

    @property
    def kernel_cost_(self) -> float:
        """Kernel k-means cost of the clusters; with the linear kernel it is `inertia_`.

        Of tables with gaps it is that of the filled table, which `inertia_` is not. Without
        features it is a difference of sums of kernel values: below 1e-12 of the sum of k(x, x) it
        is not known, and 0.
        """
        has_gaps = self.tree_.has_missing is not None
        if self._is_kmeans and "inertia_" in self.__dict__ and not has_gaps:
            return self.inertia_
        return self._kernel_cost

    @property
    def objective_(self) -> float:
        """The objective L of the training rows."""
        return float(self._objective_path[-1])

    @property
    def gains_(self) -> pl.DataFrame:
        """The splits in order, with the kind and the gain of each."""
        tree = self.tree_
        inner = np.flatnonzero(tree.kind != 0)
        order = inner[np.argsort(tree.children_left[inner])]
        assert tree.move is not None and tree.gain is not None
        features = tree.feature[order].tolist()
        names = [real_name(tree.feature_names, feature) for feature in features]
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
        tree = self.tree_
        assert tree.gain is not None
        inner = np.flatnonzero(tree.kind != 0)
        shares = np.bincount(
            tree.feature[inner], weights=tree.gain[inner], minlength=tree.n_features
        )
        return normalised(shares)

    def _follow_path(self, whole: Self) -> None:
        lost = float(whole._objective_path[-1] - self._objective_path[-1])
        self._kernel_cost = whole._kernel_cost + lost

    def _complete(self, tree: ClusterTree) -> None:
        super()._complete(tree)
        if tree.move is None:
            raise ValueError("The model file holds a Kauri whose tree has no moves.")


def _build_tree(fitted: _engine.FittedKauri, fit_rows: FitRows[Any]) -> ClusterTree:
    weight, n_rows = fitted.weighted_n_node_samples, fitted.n_node_samples
    tests = tests_of(fitted)
    beside = values_beside(tests, None, fitted.leaf_of_row, fit_rows)
    return ClusterTree(
        **node_arguments(tests, n_rows, beside, fit_rows.table),
        n_node_samples=n_rows,
        weighted_n_node_samples=weight,
        cluster=fitted.cluster,
        move=fitted.move,
        gain=fitted.gain,
        impurity=fitted.cost / weight,
        value=None,
        base_cluster=np.full(len(weight), -1),
        mistakes=np.full(len(weight), np.nan),
        **column_arguments(fit_rows.table),
        classes=list(range(int(fitted.cluster.max()) + 1)),
    )
