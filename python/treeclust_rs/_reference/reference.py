"""What a tree explains: k-means or k-medians, a fitted estimator, centers or labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from .. import _engine
from .._data.sparse import SparseTable
from .._data.table import Table, take_rows
from .._data.units import Units
from .._util.arrays import FloatArray
from .._util.words import format_count
from .kmedians import cluster_medians, kmedians

Criterion = Literal["kmeans", "kmedians"]

Rows = TypeVar("Rows", Table, SparseTable)

DEFAULT_N_CLUSTERS = 8
N_INIT = 10
MAX_ITER = 300
# Share of rows that may be nearer to another cluster's mean before a tree of distances is the
# wrong tree.
_MISFIT = 0.05


@dataclass(frozen=True)
class Centers:
    """Centers in units, and in the columns' own units as unevaluated sums ``high + low``.

    The mean of values near 1e8 is known better than doubles near 1e8 can say.
    """

    in_units: FloatArray
    high: FloatArray
    low: FloatArray

    @classmethod
    def from_units(cls, in_units: FloatArray, units: Units) -> Centers:
        own = in_units * units.scale
        high = own + units.shift
        # Knuth's two-sum: high + low is own + shift exactly.
        back = high - own
        low = (own - (high - back)) + (units.shift - back)
        return cls(np.ascontiguousarray(in_units), np.ascontiguousarray(high), low)

    @classmethod
    def from_own(cls, own: FloatArray, units: Units) -> Centers:
        own = np.ascontiguousarray(own, dtype=np.float64)
        in_units = np.ascontiguousarray((own - units.shift) / units.scale)
        return cls(in_units, own, np.zeros_like(own))


@dataclass(frozen=True)
class Reference:
    """A clustering of the fitted rows: the clusters' names, a code per row, and their centers."""

    classes: list[int] | list[str]
    labels: npt.NDArray[np.uint32]
    centers: Centers
    regrets: FloatArray
    """n x k: weight times (cost of the label - cost of the row's cheapest)."""
    minimum: float
    """Weighted sum of the rows' cheapest costs: what the regrets leave out."""
    inertia: float
    """Weighted cost of the rows about the centers of their own clusters."""

    @property
    def n_clusters(self) -> int:
        return len(self.classes)


@dataclass(frozen=True)
class Given:
    """What `reference=` said, before anything was computed.

    `labels` has an entry per row of the table, -1 for noise; with `centers` alone the nearest
    counts.
    """

    classes: list[int] | list[str] | None = None
    labels: npt.NDArray[np.int64] | None = None
    centers: FloatArray | None = None

    @property
    def n_clusters(self) -> int | None:
        if self.classes is not None:
            return len(self.classes)
        return None if self.centers is None else len(self.centers)


def read_reference(
    reference: Any, X: Any, table: Table | SparseTable, sample_weight: FloatArray | None
) -> Given:
    """Read `reference=`: None, an estimator, an array of centers (2-D) or of labels (1-D)."""
    if reference is None:
        return Given()
    if hasattr(reference, "fit") and not isinstance(reference, type):
        if isinstance(X, pl.LazyFrame):
            X = X.collect()
        return _read_estimator(reference, X, table, sample_weight)
    if isinstance(reference, (str, type)):
        shown = reference.__name__ if isinstance(reference, type) else repr(reference)
        raise TypeError(
            f"reference must be None, an estimator, or an array of centers or labels. Got {shown}; "
            "an estimator is given as an instance, for example KMeans(5)."
        )
    if isinstance(reference, (list, tuple)):
        is_text = [isinstance(label, str) for label in reference]
        if any(is_text) and not all(is_text):
            row = is_text.index(not is_text[0])
            raise TypeError(
                "reference must hold integers or strings, and not both. "
                f"Row {row} holds {reference[row]!r}, row 0 {reference[0]!r}."
            )
    array = np.asarray(reference)
    is_column = array.ndim == 2 and array.shape == (table.n_samples, 1)
    if is_column and table.n_features > 1:
        raise ValueError(
            f"reference has the shape {array.shape}. Labels are given in an array of one "
            "dimension: reference.ravel()."
        )
    if array.ndim == 2:
        return Given(centers=_read_centers(array, table, "reference"))
    if array.ndim == 1:
        return _read_labels(array, table, sample_weight, "reference")
    raise ValueError(
        "reference must be None, an estimator, an array of centers of shape (n_clusters, "
        f"n_features) or an array of labels of shape (n_samples,). Got an array of "
        f"{array.ndim} dimensions."
    )


def _read_estimator(
    estimator: Any, X: Any, table: Table | SparseTable, sample_weight: FloatArray | None
) -> Given:
    name = type(estimator).__name__
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        if not isinstance(estimator, BaseEstimator):
            raise
        estimator = clone(estimator).fit(X)
    labels = getattr(estimator, "labels_", None)
    if labels is None or len(labels) != table.n_samples:
        if not hasattr(estimator, "predict"):
            n_labels = "no" if labels is None else str(len(labels))
            raise ValueError(
                f"The reference {name} has {n_labels} labels_ for the {table.n_samples} rows of "
                "X, and no predict. Fit it on the same rows, or give its labels as an array."
            )
        labels = estimator.predict(X)
    given = _read_labels(
        np.asarray(labels), table, sample_weight, f"labels_ of the reference {name}"
    )
    centers = getattr(estimator, "cluster_centers_", None)
    if centers is None or np.ndim(centers) != 2 or np.shape(centers)[1] != table.n_features:
        return given
    centers = np.asarray(centers)
    k = len(centers)
    codes = np.asarray(labels)
    if codes.dtype.kind not in "iu" or codes.max() >= k:
        return given
    # The labels are rows of the centers.
    centers = _read_centers(centers, table, f"cluster_centers_ of the reference {name}")
    return Given(classes=list(range(k)), labels=codes.astype(np.int64), centers=centers)


def _read_centers(array: npt.NDArray[Any], table: Table | SparseTable, what: str) -> FloatArray:
    try:
        centers = array.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must hold numbers. Got an array of type {array.dtype}.") from None
    k, d = centers.shape
    if d != table.n_features:
        raise ValueError(f"{what} has {format_count(d, 'column')}, but X has {table.n_features}.")
    if k < 1:
        raise ValueError(f"{what} has {k} rows; at least 1 center is needed.")
    bad = np.flatnonzero(~np.isfinite(centers).all(axis=1))
    if len(bad):
        raise ValueError(f"{what} contains NaN or inf: center {bad[0]} and {len(bad) - 1} more.")
    return centers


def _read_labels(
    array: npt.NDArray[Any],
    table: Table | SparseTable,
    sample_weight: FloatArray | None,
    what: str,
) -> Given:
    n = table.n_samples
    if len(array) != n:
        raise ValueError(f"{what} has {len(array)} labels, but X has {n} rows.")
    if array.dtype.kind == "f":
        if not np.isfinite(array).all() or (array != np.rint(array)).any():
            row = int(np.flatnonzero(~np.isfinite(array) | (array != np.rint(array)))[0])
            raise ValueError(
                f"{what} must hold integers or strings. Row {row} holds {array[row]!r}; mark "
                "noise by -1."
            )
        array = array.astype(np.int64)
    if array.dtype.kind == "b":
        array = array.astype(np.int64)
    if array.dtype.kind in "iu":
        noise = array == -1
    else:
        values = array.tolist()
        if not all(isinstance(value, str) for value in values):
            row = next(i for i, value in enumerate(values) if not isinstance(value, str))
            raise TypeError(
                f"{what} must hold integers or strings. Row {row} holds {values[row]!r}."
            )
        array = np.asarray(values, dtype=np.str_)
        noise = np.zeros(n, dtype=bool)
    kept = ~noise if sample_weight is None else ~noise & (sample_weight > 0)
    if not kept.any():
        raise ValueError(f"{what} marks all {n} rows as noise (-1) or they have weight 0.")
    classes, codes = np.unique(array[kept], return_inverse=True)
    labels = np.full(n, -1, dtype=np.int64)
    labels[kept] = codes
    return Given(classes=classes.tolist(), labels=labels)


def make_reference(
    given: Given,
    table: Table,
    units: Units,
    sample_weight: FloatArray | None,
    *,
    criterion: Criterion,
    n_clusters: int | None,
    random_state: Any,
    threads: _engine.Threads,
    estimator_name: str,
    needs_distinct: bool,
    n_init: int = N_INIT,
    max_iter: int = MAX_ITER,
) -> Reference:
    """Settle labels, centers and costs on the fitted rows (no noise in `given.labels`)."""
    labels, classes, centers = given.labels, given.classes, None
    if given.centers is not None:
        centers = Centers.from_own(given.centers, units)
    elif labels is None:
        k = n_clusters or DEFAULT_N_CLUSTERS
        check_enough_rows(k, n_clusters, table.n_samples, estimator_name)
        labels = _cluster(
            table,
            units,
            sample_weight,
            criterion,
            k,
            random_state,
            threads.n_jobs,
            n_init,
            max_iter,
        )
        found, labels = np.unique(labels, return_inverse=True)
        if len(found) < k:
            warn_too_few(len(found), k, stacklevel=4)
        classes = list(range(len(found)))
    from_labels = labels is not None and given.labels is not None and centers is None
    if centers is None:
        assert labels is not None and classes is not None
        centers = centers_of(table, units, labels, len(classes), sample_weight, criterion, threads)
    if classes is None:
        classes = list(range(len(centers.high)))
    if needs_distinct or given.centers is not None:
        check_distinct(centers.high + centers.low, classes)
    regrets, nearest, minimum = _engine.label_costs(
        table.data,
        units,
        centers.in_units,
        criterion == "kmedians",
        sample_weight,
        threads,
    )
    if given.labels is None:
        return Reference(classes, nearest, centers, regrets, minimum, minimum)
    codes = given.labels.astype(np.uint32)
    if from_labels:
        warn_misfit(codes != nearest, sample_weight, stacklevel=3)
    inertia = minimum + own_regret(regrets, codes)
    return Reference(classes, codes, centers, regrets, minimum, inertia)


def warn_misfit(
    nearer_elsewhere: npt.NDArray[np.bool_], sample_weight: FloatArray | None, stacklevel: int
) -> None:
    """Warn if many rows are nearer to another cluster's center than to their own's."""
    misfit = float(np.average(nearer_elsewhere, weights=sample_weight))
    if misfit > _MISFIT:
        warnings.warn(
            f"{misfit:.0%} of the rows are nearer to the center of another cluster than their "
            "own, so the tree follows distances to centers more than these labels. KernelExpand "
            "(cost = mismatch with the labels) is the method that reproduces any labels.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def check_enough_rows(k: int, n_clusters: int | None, n_samples: int, estimator_name: str) -> None:
    """Raise ValueError if there are more clusters than rows; `n_clusters`: as the user said."""
    if k > n_samples:
        default = " (the default)" if n_clusters is None else ""
        raise ValueError(
            f"n_samples={n_samples} must be at least n_clusters={k}{default}: "
            f"{estimator_name} cannot make more clusters than there are rows."
        )


def warn_of_empty(
    n_found: int, n_clusters: int, advice: str, *, where: str = "", stacklevel: int
) -> None:
    """Warn that clusters have no rows."""
    have = "has" if n_found == 1 else "have"
    warnings.warn(
        f"Only {n_found} of the {n_clusters} clusters {have} rows{where}. {advice}",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )


def warn_too_few(
    n_found: int, n_clusters: int, reason: str = "X has too few distinct rows", *, stacklevel: int
) -> None:
    """Warn that there are fewer clusters than asked for."""
    found = f"{format_count(n_found, 'distinct cluster')} {'was' if n_found == 1 else 'were'} found"
    warnings.warn(
        f"Only {found}, fewer than n_clusters={n_clusters}: {reason}.",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )


def own_regret(regrets: FloatArray, labels: npt.NDArray[Any]) -> float:
    """Sum over the rows of the regret of the row's own label."""
    return float(regrets[np.arange(len(regrets)), labels].sum())


def _cluster(
    table: Table,
    units: Units,
    sample_weight: FloatArray | None,
    criterion: Criterion,
    k: int,
    random_state: Any,
    n_jobs: int,
    n_init: int,
    max_iter: int,
) -> npt.NDArray[Any]:
    matrix = units.matrix(table)
    if not np.isfinite(np.vdot(matrix, matrix)):
        raise ValueError(
            'The distances between rows overflow float64. Use scale="standard" or rescale the '
            "columns."
        )
    if criterion == "kmedians":
        _, labels, _, _ = kmedians(
            matrix, k, sample_weight=sample_weight, n_init=n_init, random_state=random_state
        )
        return labels
    solver = KMeans(k, n_init=n_init, max_iter=max_iter, random_state=random_state, copy_x=False)
    with warnings.catch_warnings(), threadpool_limits(n_jobs):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the caller says it in our words
        solver.fit(matrix, sample_weight=sample_weight)
    return np.asarray(solver.labels_)


def centers_of(
    table: Table,
    units: Units,
    labels: npt.NDArray[Any],
    k: int,
    sample_weight: FloatArray | None,
    criterion: Criterion,
    threads: _engine.Threads,
) -> Centers:
    if criterion == "kmedians":
        return Centers.from_own(own_medians(table, labels, k, sample_weight), units)
    weight, sums = _engine.group_sums(
        table.data, units, labels.astype(np.uint32), k, sample_weight, threads
    )
    return Centers.from_units(sums / weight[:, None], units)


def own_medians(
    table: Table, labels: npt.NDArray[Any], k: int, sample_weight: FloatArray | None
) -> FloatArray:
    """Lower medians of every cluster in the columns' own units; NaN for empty clusters."""
    own = Units(np.zeros(table.n_features), np.ones(table.n_features))
    return cluster_medians(own.matrix(table), labels, k, sample_weight)


def check_distinct(centers: FloatArray, classes: list[int] | list[str]) -> None:
    seen: dict[bytes, int] = {}
    for b, center in enumerate(centers + 0.0):  # -0.0 becomes 0.0
        a = seen.setdefault(center.tobytes(), b)
        if a != b:
            raise ValueError(
                f"The centers of the clusters {classes[a]!r} and {classes[b]!r} are equal; no cut "
                "can tell them apart. Give distinct centers."
            )


def fitted_rows(
    given: Given, table: Rows, sample_weight: FloatArray | None
) -> tuple[npt.NDArray[np.bool_] | None, Given, Rows, FloatArray | None]:
    """Leave out noise and rows of weight 0; the mask is None where all rows are kept."""
    kept = np.ones(table.n_samples, dtype=bool)
    if given.labels is not None:
        kept &= given.labels >= 0
    if sample_weight is not None:
        kept &= sample_weight > 0
    if kept.all():
        return None, given, table, sample_weight
    labels = None if given.labels is None else given.labels[kept]
    weight = None if sample_weight is None else np.ascontiguousarray(sample_weight[kept])
    rows = table.take(kept) if isinstance(table, SparseTable) else take_rows(table, kept)
    return kept, Given(given.classes, labels, given.centers), rows, weight
