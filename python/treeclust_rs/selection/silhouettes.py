"""The silhouette: how much nearer rows are to their own cluster than to the next one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import csr_array
from sklearn.metrics import silhouette_score
from sklearn.utils import check_random_state

from .. import _engine
from .._data import Encoding, SparseTable, Table, Units, WeightedRows
from .._kernels import check_gram, filled_rows, make_kernel
from .._util import FloatArray, IntArray, ProgressBar, effective_n_jobs, is_number
from .._util.arrays import check_pairs
from . import fits
from .fits import Selection

# Attributes of fitted models with a kernel: its parameters and the units of the columns.
_OF_KERNEL_MODELS = ("kernel", "gamma_", "degree", "coef0", "kernel_params", "scale_")

# Rows whose silhouettes are taken by default.
_SAMPLE_SIZE = 10_000


def silhouette(
    estimator: Any,
    X: Any,
    k_values: Iterable[int],
    *,
    param: str | None = None,
    metric: Any = None,
    gram: Any = None,
    sample_size: float | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Selection:
    """Choose the number of clusters by the largest mean silhouette.

    Parameters
    ----------
    estimator : estimator
        Clusterer with a parameter `n_clusters`, and after its fit `labels_`; or a Pipeline that
        ends in one, whose silhouettes are those of the rows that its last step sees.
    X : array-like, frame or sparse matrix of shape (n_samples, n_features)
        The data, in a form the estimator takes: sparse rows by `IMM`, `ExKMC`, `Kauri`,
        ``ObliqueTree(metric="cosine")`` and scikit-learn's `KMeans`, for instance; text, booleans
        and times as the costs of the methods that take them compare rows. Without gaps: `stability`
        takes them.
    k_values : iterable of int
        Numbers of clusters to try, each at least 2.
    %(selection_param)s
    metric : str, callable or None, default=None
        Distance between rows, as for scikit-learn's `silhouette_score`. None: the distance the
        estimator clusters by. With a kernel k (`Kauri`, `KernelKMeans` and the kernel trees) that
        is sqrt(k(x, x) + k(y, y) - 2 k(x, y)), an approximation aside; else the parameter `metric`,
        Manhattan with ``criterion="kmedians"``, or Euclidean. The parameter `scale` always applies.
    gram : array-like of shape (n_samples, n_samples), default=None
        Kernel matrix, passed to the fit, for an estimator with ``kernel="precomputed"``.
    sample_size : int or math.inf, default=None
        Of more rows than this the mean silhouette is that of a sample of so many, drawn by
        `random_state`, the same for every number; None: 10,000 rows; math.inf: all rows. The fits
        see all rows.
    random_state : int, RandomState instance or None, default=None
        Where the sample comes from, and the `random_state` of the estimator where that is None.
    n_jobs : int, default=None
        Processes that share the numbers, as in joblib; None is 1. The estimator may use threads of
        its own.
    %(selection_verbose)s

    Returns
    -------
    Selection
        With a frame of the columns ``k`` (or the name of the parameter); ``n_clusters``, as many as
        were found; ``silhouette``, between -1 and 1, null where the rows were not in 2 to n - 1
        clusters. Among equal silhouettes the smallest number is taken.

    Raises
    ------
    TypeError
        If the estimator lacks the parameter or the `labels_`.
    ValueError
        If a number is out of range, X is not finite or has gaps, the estimator refuses to fit, no
        number has 2 to n - 1 clusters, or the kernel's distances do not fit in memory.

    Notes
    -----
    Time is that of one fit for each number, and O(m^2) distances for each, of the m rows sampled.

    References
    ----------
    P. J. Rousseeuw, "Silhouettes: a graphical aid to the interpretation and validation of cluster
    analysis", 1987.

    Examples
    --------
    >>> import numpy as np
    >>> from treeclust_rs import IMM
    >>> from treeclust_rs.selection import silhouette
    >>> X = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 30, axis=0)
    >>> X += np.random.default_rng(0).normal(size=X.shape)
    >>> silhouette(IMM(), X, range(2, 6), random_state=0).best_k
    3
    """
    param = fits.check_param(estimator, param)
    numbers = fits.check_numbers(k_values, at_least=2)
    X, n = fits.rows_of(estimator, X, "silhouette", _check_whole)
    extra = {} if gram is None else {"gram": check_gram(gram, n)}
    size = _SAMPLE_SIZE if sample_size is None else sample_size
    if size != math.inf and not (is_number(size, Integral) and size >= 2):
        raise ValueError(
            f"sample_size must be an int >= 2, math.inf or None. Got {sample_size!r} instead."
        )
    fits.check_verbose(verbose)
    rng = check_random_state(random_state)
    models = fits.clones(estimator, param, numbers, rng)
    rows = None
    if size < n:
        rows = np.sort(rng.choice(n, int(size), replace=False))
    of_rows = f" of {n if rows is None else len(rows):,} of {n:,} rows"
    with ProgressBar("silhouette", 2 * len(numbers), verbose) as bar:
        tasks: Iterable[tuple[Any, ...]] = ((model, X, extra) for model in models)
        models = fits.run_all(_fit, tasks, n_jobs, bar, lambda i, _: f"k {numbers[i]}: fitted")

        def geometry(model: Any) -> tuple[FloatArray | csr_array, Any]:
            seen, mixed = fits.seen_by_last(model, X), fits.takes_mixed(model)
            table = fits.read_any(seen, "silhouette", mixed=mixed)
            return _geometry(fits.last_of(model), table, rows, metric, extra.get("gram"))

        # A Pipeline may transform the rows differently in every fit.
        shared = None if fits.prefix_of(estimator) else geometry(models[0])
        chosen = slice(None) if rows is None else rows
        tasks = ((*(shared or geometry(model)), fits.labels_of(model)[chosen]) for model in models)

        def text(i: int, score: float | None) -> str:
            shown = "no silhouette" if score is None else f"silhouette {score:.4g}"
            return f"k {numbers[i]}: {shown}{of_rows}"

        scores = fits.run_all(_score, tasks, n_jobs, bar, text)
    known = [score for score in scores if score is not None]
    if not known:
        raise ValueError(
            f"None of k = {', '.join(map(str, numbers))} put the rows into 2 to n - 1 clusters, so "
            "there is no silhouette: X may have too few distinct rows."
        )
    best = scores.index(max(known))
    frame = pl.DataFrame(
        {
            fits.column_of(param): numbers,
            "n_clusters": list(map(fits.n_clusters_of, models, numbers)),
            "silhouette": pl.Series(scores, dtype=pl.Float64),
        }
    )
    return Selection(numbers[best], models[best], frame, "silhouette")


def _check_whole(table: Table | SparseTable) -> None:
    fits.check_no_gaps(table, "The silhouette compares whole rows")


def _fit(model: Any, X: Any, extra: dict[str, Any]) -> Any:
    return fits.fit(model, X, None, **extra)


def _score(points: FloatArray | csr_array, metric: Any, labels: npt.NDArray[Any]) -> float | None:
    """Return the mean silhouette; None where the rows are not in 2 to n - 1 clusters."""
    if not 2 <= len(np.unique(labels)) < len(labels):
        return None
    return float(silhouette_score(points, labels, metric=metric))


# ---- the distances a model clusters by ----------------------------------------------------


def _geometry(
    model: Any,
    table: Table | SparseTable,
    rows: IntArray | None,
    metric: Any,
    gram: FloatArray | None,
) -> tuple[FloatArray | csr_array, Any]:
    """Return points, or distances, and scikit-learn's name of the metric.

    Parameters
    ----------
    model : estimator
        Fitted to the rows of `table`.
    table : Table or SparseTable
        Those rows.
    rows : ndarray of int or None
        Row numbers of a sample; None: all rows.
    metric : str, callable or None
        The metric that is asked for; None: the model's.
    gram : ndarray of shape (n_samples, n_samples) or None
        The kernel matrix of the fit, if it had one.

    Returns
    -------
    points : ndarray or csr_array
        Of the sample: rows in the model's units, features of its kernel, or a matrix of distances.
    metric : str or callable
        "precomputed" for a matrix.

    Raises
    ------
    ValueError
        If the distances do not fit in memory.
    """
    if metric is None and gram is not None:
        return _kernel_distances(gram if rows is None else gram[np.ix_(rows, rows)]), "precomputed"
    of_kernel = metric is None and all(hasattr(model, name) for name in _OF_KERNEL_MODELS)
    if isinstance(table, SparseTable):
        scale = getattr(model, "scale_", np.ones(table.n_features))
        units = Units(np.zeros_like(scale), scale)
        if of_kernel:
            return _kernel_geometry(model, table, rows, units)
        points = units.sparse_matrix(table)
        points = points if rows is None else points[rows]
        return points, metric or _own_metric(model)
    _check_whole(table)
    shift = Units.of(table, None, None, effective_n_jobs(None)).shift
    scale = getattr(model, "scale_", np.ones_like(shift))
    if of_kernel:
        return _kernel_geometry(model, table, rows, Units(shift, scale))
    if metric is None:
        metric = _own_metric(model)
    if metric not in ("euclidean", "l2", "sqeuclidean", "manhattan", "l1", "cityblock"):
        shift = np.zeros_like(shift)  # others may see the origin
    if table.levels is None:
        points = Units(shift, scale).matrix(table)
    else:
        by_differences = metric in ("manhattan", "l1", "cityblock")
        points = Encoding.of(table, shift, scale).matrix(table, manhattan=by_differences)
    if rows is None:
        return points, metric
    return points[np.ix_(rows, rows)] if metric == "precomputed" else points[rows], metric


def _own_metric(model: Any) -> str:
    """Return the distance that a model without a kernel measures its clusters by."""
    given: str | None = fits.parameter(model, "metric")
    if given is not None:
        return given
    return "manhattan" if fits.parameter(model, "criterion") == "kmedians" else "euclidean"


def _kernel_geometry(
    model: Any, table: Table | SparseTable, rows: IntArray | None, units: Units
) -> tuple[Any, str]:
    """Return the kernel's features of the rows where it has some, else its distances."""
    threads = _engine.Threads(effective_n_jobs(model.n_jobs))
    points, _, names = filled_rows(model.kernel, WeightedRows(table, None, units, threads))
    others = {name: getattr(model, name) for name in ("degree", "coef0", "kernel_params")}
    kernel = make_kernel(model.kernel, gamma=model.gamma_, X=points, feature_names=names, **others)
    if rows is not None:
        points = points[rows]
    features = kernel.explicit_features(points)
    if features is not None:
        return features, "euclidean"
    _check_distances(points.shape[0])
    return _kernel_distances(kernel.matrix(points, n_jobs=threads.n_jobs)), "precomputed"


def _check_distances(n: int) -> None:
    check_pairs(n, "The distances", "sample_size")


def _kernel_distances(gram: FloatArray) -> FloatArray:
    """Return sqrt(k(x, x) + k(y, y) - 2 k(x, y)) for all pairs of rows."""
    _check_distances(len(gram))
    diagonal = gram.diagonal()
    squared = gram * -2.0
    squared += diagonal[:, None]
    squared += diagonal
    np.maximum(squared, 0.0, out=squared)
    np.fill_diagonal(squared, 0.0)
    return np.sqrt(squared, out=squared)
