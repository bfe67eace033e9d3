"""Kernel k-means: clusters whose rows are near to their mean in a kernel's feature space."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import _engine
from .._base import (
    AT_LEAST_1,
    COMMON,
    NO_NEGATIVE_INERTIA,
    Constraints,
    FitRows,
    SavedEstimator,
)
from .._base.saving import set_columns
from .._data import (
    SparseTable,
    Table,
    WeightedRows,
    align_sparse,
    align_table,
    check_finite,
    check_sample_weight,
)
from .._kernels import (
    KERNEL_CONSTRAINTS,
    Predictor,
    check_file,
    check_gram_argument,
    cluster,
    first_least,
    make_kernel_data,
    predictor_from_dict,
    predictor_to_dict,
    takes_sparse,
    tell_starts,
)
from .._kernels.kernel_data import OVERFLOW
from .._reference.centers import cost_about
from .._reference.checks import DEFAULT_N_CLUSTERS, check_enough_rows
from .._util import (
    FloatArray,
    IntArray,
    Interval,
    check_keys,
    effective_n_jobs,
    estimator,
    float_array,
    int_array,
    weighted_sum,
)

# Fitted numbers in model files, beside the predictor.
_COSTS = ("inertia_", "kernel_cost_")


@estimator
class KernelKMeans(SavedEstimator):
    """Cluster by k-means in a kernel's feature space.

    Kernels separate clusters that means of the columns cannot: a ring and what lies in it.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters; None: 8.
    kernel : str or callable, default="rbf"
        linear, polynomial, rbf, laplacian, chi2, additive_chi2, cosine, histogram_intersection,
        hellinger, epsilon; "precomputed": the kernel matrix is given to `fit` as `gram`; or a
        function of two rows.
    %(kernel_parameters)s
    n_init : int, default=10
        Starts, each from other k-means++ seeds; the one of least cost is taken.
    max_iter : int, default=300
        Most rounds of a start.
    tol : float, default=1e-06
        A start ends when no row moves, or a round lowers the cost by at most this share of it (with
        features: when the means move, in squares and summed up, by at most this share of the rows'
        total variance).
    approximation : {None, "nystroem", "rpcholesky", "rff"}, default=None
        None: the exact kernel, by its n x n matrix unless it is linear, cosine or hellinger, which
        need none. Else k-means on features of low rank: Nystroem's, randomly pivoted Cholesky, or
        random Fourier features (rbf only), in memory O(n_samples * n_components).
    n_components : int, default=100
        Most features of an approximation.
    %(scale)s
    random_state : int, RandomState or None, default=None
        Seed of the starts and of approximations.
    %(n_jobs)s
    verbose : int, default=0
        Whether to print a line after every start.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every row, 0, 1, ...; those of weight 0 get the nearest one's.
    n_clusters_ : int
        Number of clusters.
    kernel_cost_ : float
        Cost of the rows of positive weight: the weighted sum of their squared distances to the
        means of their clusters, in the feature space of the kernel used (the approximation, if
        there is one). Negative only with indefinite kernels. Without features it is a difference
        of sums of kernel values: below 1e-12 of the sum of k(x, x) it is not known, and 0.
    inertia_ : float
        The k-means cost of the clusters: squared distances to their means in the columns, on
        standardised ones if ``scale="standard"``.
    n_iter_ : int
        Rounds of the best start.
    %(kernel_columns_and_errors)s

    See Also
    --------
    Kauri : A tree grown to make the same cost small.

    Notes
    -----
    The cost never rises from round to round if the kernel is positive semidefinite. For others
    (epsilon; callables, matrices and polynomials, if a sample of 256 rows shows it) a warning says
    so, and the best partition seen is taken. From 1,536 rows (128 n_clusters) on a start begins
    with the clusters of a sample; all end with moves of single rows, while these lower the cost.

    An exact kernel takes 8 n_samples^2 bytes for its matrix, at most 4 GiB, and a start O(n^2) time
    for the first round, then O(n (k + moved rows)) for each. `predict` takes O(n_samples) kernel
    values for each row.

    Sparse rows are taken by the kernels linear, cosine, hellinger, polynomial and rbf, without an
    approximation, and never made dense: a start of the kernels with features takes O(cells k) for
    each round. The clusters are those of the same rows as a dense table, but for rounding: rows
    that are nearly as near to another mean may get its label. `scale` divides sparse rows and
    moves no zero.

    References
    ----------
    Fleissner, Vankadara, Ghoshdastidar. Explaining kernel clustering via decision trees. Appendix B
    (Algorithm 4, Lemma 1).

    Examples
    --------
    >>> import numpy as np, treeclust_rs as tc
    >>> angle = np.linspace(0, 2 * np.pi, 20, endpoint=False)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X = np.vstack([0.3 * ring, ring])
    >>> model = tc.KernelKMeans(2, gamma=5.0, random_state=0).fit(X)
    >>> len(set(model.labels_[:20])), len(set(model.labels_[20:])), round(model.kernel_cost_, 3)
    (1, 1, 27.58)
    >>> (model.predict([[0.1, 0.1], [-1.1, 0.2]]) == model.labels_[[0, 20]]).all()
    np.True_
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_clusters": [AT_LEAST_1, None],
        **KERNEL_CONSTRAINTS,
        "n_init": [AT_LEAST_1],
        "max_iter": [AT_LEAST_1],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        **COMMON,
    }
    _defining: ClassVar[tuple[str, ...]] = ("kernel", "kernel_params")
    _instead: ClassVar[str] = (
        "it finds clusters and explains none. KernelIMM, KernelExKMC and KernelExpand with "
        "reference=model make a tree of them"
    )
    _fitted_by: ClassVar[str] = "_predictor"
    _from_rows: ClassVar[tuple[str, ...]] = ("labels_",)

    n_clusters: int | None = None
    _: KW_ONLY
    kernel: str | Callable[..., float] = "rbf"
    gamma: float | str | None = None
    degree: float = 3
    coef0: float = 1.0
    kernel_params: Mapping[str, Any] | None = None
    n_init: int = 10
    max_iter: int = 300
    tol: float = 1e-6
    approximation: str | None = None
    n_components: int = 100

    @property
    def _takes_sparse(self) -> bool:
        return takes_sparse(self.kernel, self.approximation)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        sample_weight: Any = None,
        gram: Any = None,
        *,
        feature_names: Any = None,
    ) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            numpy array, polars DataFrame or LazyFrame, pandas DataFrame or pyarrow Table of
            numbers. With ``kernel="precomputed"`` only its shape and names matter.
            %(who_takes_sparse)s
            %(who_takes_mixed)s
        %(weight_gram_fitted)s

        Raises
        ------
        ValueError
            If X or `gram` hold NaN or inf, `gram` is missing, unasked for, of another shape or not
            symmetric, there are fewer rows of positive weight than clusters, the kernel is not
            defined on X (negative cells), its matrix would be larger than 4 GiB, or sums of kernel
            values overflow.
        %(kernel_errors)s
            If the kernel is seen not to be positive semidefinite, or its matrix is 0 for any two
            rows: the clusters are then arbitrary.
        ConvergenceWarning
            If fewer clusters were found, because the kernel tells fewer rows apart.
        """
        self._validate_params()
        check_gram_argument(self.kernel, self.approximation, gram is not None)
        fit_rows = FitRows.read(
            self,
            X,
            sample_weight,
            gram=gram,
            feature_names=feature_names,
            sparse=self._takes_sparse,
        )
        rows, units, kept = fit_rows.rows, fit_rows.units, fit_rows.kept
        k, n_jobs = self.n_clusters or DEFAULT_N_CLUSTERS, fit_rows.threads.n_jobs
        check_enough_rows(k, self.n_clusters, rows.n_samples, fit_rows.estimator_name)
        rng = check_random_state(self.random_state)
        stocks = make_kernel_data(self, fit_rows, fit_rows.gram, rng)
        found = cluster(
            stocks,
            k,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=rng,
            n_jobs=n_jobs,
            tell=tell_starts(fit_rows.tell(self.verbose), self.n_init),
        )
        predictor = Predictor.of(stocks, found.means, units, kept, rows.feature_names)
        labels = found.labels
        if kept is not None:
            labels = np.empty(len(kept), dtype=np.int64)
            labels[kept] = found.labels
            part = None if fit_rows.all_gram is None else fit_rows.all_gram[~kept]
            labels[~kept] = first_least(*predictor.distances(fit_rows.excluded(), part, n_jobs))
        of_clusters = fit_rows.group_means(found.labels.astype(np.uint32), k)
        inertia = kernel_cost = float(of_clusters.spread.sum())
        if self.kernel == "linear" and self.approximation is None:
            n_found = len(found.means.weight)
            column_means = of_clusters.means[:n_found], of_clusters.rest[:n_found]
            predictor = replace(predictor, column_means=column_means)
        else:
            kernel_cost = found.inertia
        # Nothing is set before everything is known: a fit that fails leaves the estimator as it
        # was.
        self._set_predictor(predictor, fit_rows.names_given)
        self.labels_, self.n_iter_ = labels, found.n_iter
        self.inertia_, self.kernel_cost_ = inertia, kernel_cost
        return self

    def _set_predictor(self, predictor: Predictor, names_given: bool = False) -> None:
        self._predictor = predictor
        self.gamma_ = None if predictor.kernel is None else predictor.kernel.gamma
        self.scale_ = predictor.units.scale
        set_columns(self, len(self.scale_), predictor.feature_names, given=names_given)

    @property
    def n_clusters_(self) -> int:
        """Number of clusters."""
        return len(self._predictor.means.weight)

    def predict(self, X: Any, gram: Any = None) -> IntArray:
        """Return the label of the cluster whose mean is nearest to each row (Lemma 1 of the paper).

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
            Rows. Frames are matched by column name: order does not matter, other columns are
            ignored. Sparse matrices are taken where `fit` takes them.
        gram : array-like of shape (n_rows, n_samples), default=None
            The kernel of these rows with all rows of the fit, those of weight 0 too; with
            ``kernel="precomputed"``, and only then.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels; of the rows of the fit `labels_`.

        Raises
        ------
        ValueError
            If columns are missing, a cell is NaN, infinite or null, the kernel is not defined on
            the rows, distances overflow, or `gram` is missing, unasked for or of another shape.
        """
        table, values, n_jobs = self._read(X, gram, "predict")
        return first_least(*self._predictor.distances(table, values, n_jobs))

    def score(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        sample_weight: Any = None,
        gram: Any = None,
        gram_diagonal: Any = None,
    ) -> float:
        """Return minus the cost of rows about the means of the fit.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
            Rows, as for `predict`.
        y : ignored
            For the API.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows, not negative.
        gram : array-like of shape (n_rows, n_samples), default=None
            As for `predict`.
        gram_diagonal : array-like of shape (n_rows,), default=None
            The kernel of each row with itself; together with `gram`.

        Returns
        -------
        float
            Minus the weighted sum of squared distances to the nearest mean; with the linear kernel
            to the mean of the cluster that `predict` puts the row in. Of the rows of the fit
            ``-kernel_cost_``, if the fit ended because no row moved.

        Raises
        ------
        ValueError
            As for `predict`.
        """
        table, values, n_jobs = self._read(X, gram, "score")
        weight = check_sample_weight(sample_weight, table.n_samples)
        if (gram is None) != (gram_diagonal is None):
            raise ValueError("score takes gram and gram_diagonal together.")
        predictor = self._predictor
        partial, margin = predictor.distances(table, values, n_jobs)
        if predictor.column_means is not None:
            threads = _engine.Threads(n_jobs)
            rows: WeightedRows[Any] = WeightedRows(table, weight, predictor.units, threads)
            means, rest = predictor.column_means
            given_rest = None if isinstance(table, SparseTable) else rest
            return -cost_about(rows, means, first_least(partial, margin), rest=given_rest)
        diagonal = predictor.diagonal(table) if gram is None else _diagonal(gram_diagonal, table)
        squares = partial.min(axis=0) + diagonal
        if predictor.rows is not None or gram is not None:  # differences, not sums of squares
            squares[np.abs(squares) <= margin] = 0.0
        cost = weighted_sum(squares, weight)
        if not np.isfinite(cost):
            raise ValueError(OVERFLOW)
        return -cost

    def _read_table(self, X: Any, n_jobs: int) -> Table | SparseTable:
        """Return rows with the columns of the fit, all finite."""
        name, d = type(self).__name__, self.n_features_in_
        if issparse(X) and self._takes_sparse:
            return align_sparse(X, d, estimator_name=name)
        names, names_given = self._predictor.feature_names, self._names_given
        table = align_table(X, names, d, estimator_name=name, names_given=names_given)
        check_finite(table, n_jobs)
        return table

    def _read(
        self, X: Any, gram: Any, caller: str
    ) -> tuple[Table | SparseTable, FloatArray | None, int]:
        check_is_fitted(self, "_predictor")
        n_jobs = effective_n_jobs(self.n_jobs)
        table = self._read_table(X, n_jobs)
        if self._predictor.kernel is not None:
            if gram is not None:
                raise ValueError(f"gram was given, but the fit was with kernel={self.kernel!r}.")
            return table, None, n_jobs
        n_fitted = len(self.labels_)
        if gram is None:
            raise ValueError(
                f'kernel="precomputed" needs the kernel with the {n_fitted} rows of the fit: '
                f"{caller}(X, gram=K)."
            )
        values = _float_array(gram, "gram")
        if values.shape != (table.n_samples, n_fitted):
            raise ValueError(
                f"gram has the shape {values.shape}, but for {table.n_samples} rows, after a fit "
                f"of {n_fitted}, it must have the shape ({table.n_samples}, {n_fitted})."
            )
        return table, values, n_jobs

    # ---- model files ----------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, rows: bool = False) -> None:
        """Write the model to a JSON file, which `load` reads.

        The file replaces an old one at once, or not at all. It holds what `predict` and `score`
        need, and the costs, but not `labels_`.

        With the kernels linear, cosine and hellinger and no approximation these are the means, with
        ``approximation="rff"`` also its frequencies. Else rows of the fit are needed, all of them,
        or the landmarks ("nystroem", "rpcholesky"): the file then contains training data, in the
        units of the columns that `scale_` says.

        Parameters
        ----------
        path : path-like
            The file.
        rows : bool, default=False
            Whether the file may hold rows of the fit.

        Raises
        ------
        ValueError
            If rows of the fit are needed and not asked for, or too large: rows x (columns +
            clusters), of landmarks the numbers of their features' map, may be 2,000,000. If the
            kernel is precomputed or a function. pickle and joblib keep such models.
        """
        self._write(path, self.to_json(rows=rows))

    def to_json(self, *, rows: bool = False) -> str:
        """Return the text of the file that `save` writes.

        Parameters
        ----------
        rows : bool, default=False
            Whether it may hold rows of the fit.

        Returns
        -------
        str
            JSON, as ``docs/model-format.md`` describes it.

        Raises
        ------
        ValueError
            As `save`.
        """
        check_is_fitted(self, "_predictor")
        check_file(self._predictor, rows=rows)
        return super().to_json()

    def _payload(self) -> dict[str, Any]:
        fitted = {name: getattr(self, name) for name in ("n_iter_", *_COSTS)}
        return {"fitted": fitted, "means": predictor_to_dict(self._predictor)}

    @classmethod
    def _from_payload(cls, payload: dict[str, Any]) -> Self:
        check_keys(payload, ("model", "params", "fitted", "means"), "The model file")
        fitted = check_keys(payload["fitted"], ("n_iter_", *_COSTS), "fitted of the model file")
        inertia, kernel_cost = float_array([fitted[name] for name in _COSTS], "fitted", (2,))
        if inertia < 0:
            raise ValueError(f"The model file has {NO_NEGATIVE_INERTIA.problem}.")
        n_iter = int(int_array([fitted["n_iter_"]], "n_iter_", 1)[0])
        if n_iter < 1:
            raise ValueError(f"n_iter_ in the model file must be at least 1, not {n_iter}.")
        predictor = predictor_from_dict(payload["means"])
        model = cls._with_params(payload["params"])
        assert predictor.kernel is not None
        if "kernel_params" in model._not_saved:  # a mapping, which params cannot hold
            model.set_params(kernel_params=dict(predictor.kernel.params))
        model._set_predictor(predictor)
        model.inertia_, model.kernel_cost_ = float(inertia), float(kernel_cost)
        model.n_iter_ = n_iter
        return model


def _float_array(values: Any, what: str) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must hold numbers: {error}") from None
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        place = ", ".join(map(str, bad[0].tolist()))
        raise ValueError(
            f"{what} contains NaN or inf: the first such cell is {what}[{place}] (counting from 0)."
        )
    return array


def _diagonal(values: Any, table: Table | SparseTable) -> FloatArray:
    diagonal = _float_array(values, "gram_diagonal")
    if diagonal.shape != (table.n_samples,):
        raise ValueError(
            f"gram_diagonal has the shape {diagonal.shape}; it must have the shape "
            f"({table.n_samples},)."
        )
    return diagonal
