"""Costs of clusterings.

A cell is compared with the mean of its own cluster, so that costs do not lose digits on data far
from the origin (timestamps, offsets of 1e8) or beside a far row. Rows labelled -1 are noise, as
everywhere in this package, and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from .. import _engine
from .._data import Encoding, Table, Units, WeightedRows, some_rows
from .._kernels import (
    KernelData,
    KernelRows,
    check_gram,
    check_gram_argument,
    filled_rows,
    make_kernel,
)
from .._reference.centers import column_means, cost_about
from .._util import BoolArray, FloatArray, format_count, is_noise
from .matching import check_clustering, check_data, check_labels, check_weights


def kmeans_cost(
    X: Any,
    labels: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    *,
    scale: Any = None,
) -> float:
    """Sum of squared distances of the rows to the mean of their cluster.

    Parameters
    ----------
    %(clustered_rows)s
    %(scale_of_costs)s

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If sizes do not fit, a cell or weight is infinite, a weight is NaN, or `scale` holds what is
        no unit.
    TypeError
        If a column holds anything but numbers, text, booleans or times.

    Examples
    --------
    >>> kmeans_cost([[1.0], [3.0], [10.0]], ["a", "a", "b"])
    2.0
    """
    data, marks, weights = check_clustering(X, labels, sample_weight, sparse=True)
    return _kmeans_cost(data, marks, weights, ~is_noise(marks), scale)


def _kmeans_cost(
    data: Any,
    marks: npt.NDArray[Any],
    weights: FloatArray,
    kept: BoolArray,
    scale: Any,
) -> float:
    kept = kept & (weights > 0)
    if not kept.any():
        return 0.0
    names, codes = np.unique(marks[kept], return_inverse=True)
    rows = _weighted_rows(data, weights, kept, scale)
    near = column_means(rows, len(names))
    return float(rows.encoded_means(codes.astype(np.uint32), near).spread.sum())


def _weighted_rows(
    table: Any, weights: FloatArray, kept: BoolArray, scale: Any, n_jobs: int = 1
) -> WeightedRows[Any]:
    """Return some of the rows with their weights and the units that `scale` says."""
    if not kept.all():
        table, weights = some_rows(table, kept), weights[kept]
    weight = None if (weights == 1).all() else weights
    threads = _engine.Threads(n_jobs)
    if scale is None or isinstance(scale, str):
        if scale not in (None, "standard", "robust"):
            raise ValueError(
                f"scale must be None, 'standard', 'robust', units or a model. Got {scale!r}."
            )
        return WeightedRows(table, weight, Units.of(table, weight, scale, threads), threads)
    units = Units.of(table, None, None, threads)
    return WeightedRows(table, weight, Units(units.shift, _units_of(scale, table)), threads)


def _units_of(scale: Any, table: Table) -> FloatArray:
    """Return the units of the columns that an array or a fitted estimator has."""
    if hasattr(scale, "get_params"):
        if not hasattr(scale, "scale_"):
            raise ValueError(
                f"scale={scale!r} has no scale_: give a fitted estimator of this package."
            )
        scale = np.ones(table.n_features) if scale.scale_ is None else scale.scale_
    if isinstance(scale, Mapping):
        raise ValueError(
            f"scale={scale!r:.60} is a {type(scale).__name__}: measures read no names of columns. "
            "Give one unit per column, in the order of the columns, or a fitted estimator."
        )
    units = np.asarray(scale, dtype=np.float64)
    if units.shape != (table.n_features,):
        raise ValueError(
            f"scale has the shape {units.shape}; it must have one unit for each of the "
            f"{format_count(table.n_features, 'column')}."
        )
    bad = np.flatnonzero(~(np.isfinite(units) & (units > 0)))
    if len(bad):
        raise ValueError(
            f"scale must hold positive numbers. Got {units[bad[0]]} for column {bad[0]} (counting "
            "from 0)."
        )
    return np.ascontiguousarray(units)


def kmeans_scorer(scale: Any = None) -> Callable[..., float]:
    """Return a scorer by which clusterings of all kinds compare: minus the k-means cost.

    For `GridSearchCV`, `cross_val_score` and the like: over any estimators that predict clusters,
    those of scikit-learn and pipelines too, whatever they themselves make small. More clusters
    cost less: compare at equal `n_clusters`.

    Parameters
    ----------
    %(scale_of_costs)s
        "standard" takes the rows that are scored; units that all folds share are given as an array.

    Returns
    -------
    callable
        ``scorer(estimator, X, y=None, sample_weight=None)``: minus `kmeans_cost` of the rows under
        ``estimator.predict(X)``, about the means of the predicted clusters in X itself: the rows
        that the search is given. A `StandardScaler` in the pipeline does not reach them; where the
        columns have different units, `scale` must say so here too.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> X = [[1.0], [3.0], [10.0]]
    >>> kmeans_scorer()(KMeans(2, random_state=0).fit(X), X)
    -2.0
    """
    return partial(_kmeans_score, scale=scale)


def _kmeans_score(
    estimator: Any,
    X: Any,
    y: Any = None,  # noqa: ARG001
    sample_weight: npt.ArrayLike | None = None,
    *,
    scale: Any,
) -> float:
    return -kmeans_cost(X, estimator.predict(X), sample_weight, scale=scale)


def surrogate_cost(
    X: Any,
    labels: npt.ArrayLike,
    centers: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    criterion: Literal["kmeans", "kmedians"] = "kmeans",
    *,
    scale: Any = None,
) -> float:
    """Sum of the distances of the rows to the center of their cluster.

    Parameters
    ----------
    X : array-like, frame or sparse matrix of shape (n_samples, n_features)
        The data, as for `kmeans_cost`.
    labels : array-like of int, shape (n_samples,)
        Row of `centers` that each row belongs to; rows labelled -1 are left out.
    centers : array-like of shape (n_clusters, n_features)
        The centers; for a column of text with the share of each of its levels, in their order.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, not negative; None is 1 for each.
    criterion : {"kmeans", "kmedians"}, default="kmeans"
        Squared Euclidean distances, or sums of absolute differences.
    %(scale_of_costs)s

    Returns
    -------
    float

    Examples
    --------
    >>> surrogate_cost([[1.0], [3.0]], [0, 1], [[0.0], [5.0]])
    5.0
    >>> surrogate_cost([[1.0], [3.0]], [0, 1], [[0.0], [5.0]], criterion="kmedians")
    3.0
    """
    if criterion not in ("kmeans", "kmedians"):
        raise ValueError(f"criterion must be 'kmeans' or 'kmedians'. Got {criterion!r} instead.")
    data = check_data(X, sparse=True)
    points = np.asarray(check_array(centers, dtype="numeric"), dtype=np.float64)
    width = Encoding.of(data, *np.ones((2, data.n_features))).n_coordinates
    if points.shape[1] != width:
        raise ValueError(
            f"The centers have {format_count(points.shape[1], 'column')}; the data have {width}."
        )
    marks = check_labels(labels, data.n_samples, "labels")
    if marks.dtype.kind not in "iu":
        raise ValueError("surrogate_cost needs integer labels: row numbers of the centers.")
    kept = ~is_noise(marks)
    codes = marks[kept].astype(np.int64)
    if len(codes) and not (codes.min() >= 0 and codes.max() < len(points)):
        raise ValueError(
            f"The labels must be in 0..{len(points) - 1}, one per center. "
            f"Got {codes.min()} to {codes.max()}."
        )
    if not kept.any():
        return 0.0
    rows = _weighted_rows(data, check_weights(sample_weight, data.n_samples), kept, scale)
    return cost_about(rows, points, codes, criterion)


def cost_ratio(
    X: Any,
    labels: npt.ArrayLike,
    reference_labels: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    *,
    scale: Any = None,
) -> float:
    """k-means cost of a clustering, divided by that of a reference: the price of explanation.

    Parameters
    ----------
    X : array-like, frame or sparse matrix of shape (n_samples, n_features)
        The data, as for `kmeans_cost`.
    labels : array-like of shape (n_samples,)
        Cluster of each row.
    reference_labels : array-like of shape (n_samples,)
        Reference cluster of each row. Rows labelled -1 here, or in `labels`, are left out of both
        costs.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, not negative; None is 1 for each.
    %(scale_of_costs)s

    Returns
    -------
    float
        1 if both costs are 0, inf if only the reference's is.
    """
    data, marks, weights = check_clustering(X, labels, sample_weight, sparse=True)
    reference = check_labels(reference_labels, data.n_samples, "reference_labels")
    kept = ~(is_noise(marks) | is_noise(reference))
    cost = _kmeans_cost(data, marks, weights, kept, scale)
    return ratio_of_costs(cost, _kmeans_cost(data, reference, weights, kept, scale))


def ratio_of_costs(cost: float, reference: float) -> float:
    """Divide two costs; 1 where both are 0, inf for x / 0."""
    if reference > 0:
        return float(cost / reference)
    return 1.0 if cost <= 0 else float("inf")


def kernel_cost(
    X: Any,
    labels: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    *,
    kernel: str | Callable[..., float] = "rbf",
    gamma: float | str | None = None,
    degree: float = 3,
    coef0: float = 1.0,
    kernel_params: Mapping[str, Any] | None = None,
    gram: npt.ArrayLike | None = None,
    n_jobs: int = 1,
    scale: Any = None,
) -> float:
    """Kernel k-means cost: squared distances of the rows to the implicit mean of their cluster.

    Parameters
    ----------
    %(clustered_rows)s
    kernel, gamma, degree, coef0, kernel_params
        The kernel, as for `KernelKMeans`; "scale" looks at the rows that are not left out.
    gram : array-like of shape (n_samples, n_samples), default=None
        The kernel matrix; with ``kernel="precomputed"``, and only then.
    n_jobs : int, default=1
        Threads.
    %(scale_of_costs)s
        Not with `gram`.

    Returns
    -------
    float
        Sum over the rows of w_i k(x_i, x_i), less the sum over the clusters of S(C, C) / |C|, S
        adding up w_i w_j k(x_i, x_j) (Fleissner, Vankadara, Ghoshdastidar 2024, Lemma 1). Without
        features it is not known below 1e-12 of the former, and 0. The linear kernel's is
        `kmeans_cost`.

    Notes
    -----
    O(n_samples^2) kernel values in blocks of bounded memory; kernels with features at hand (linear,
    cosine, hellinger) take O(n_samples n_features).

    Examples
    --------
    >>> kernel_cost([[1.0], [3.0], [11.0]], ["a", "a", "b"], kernel="linear")
    2.0
    """
    is_linear = isinstance(kernel, str) and kernel == "linear"
    data, marks, weights = check_clustering(X, labels, sample_weight, sparse=is_linear)
    check_gram_argument(kernel, None, gram is not None)
    matrix = None if gram is None else check_gram(gram, data.n_samples)
    if matrix is not None and scale is not None:
        raise ValueError("scale was given together with gram, which has its units already.")
    kept = ~is_noise(marks) & (weights > 0)
    if not kept.any():
        return 0.0
    if is_linear:
        return _kmeans_cost(data, marks, weights, kept, scale)
    codes = np.unique(marks[kept], return_inverse=True)[1]
    if matrix is not None:
        part = matrix[np.ix_(kept, kept)]
        return KernelData.of_gram(part, weights[kept], n_jobs=n_jobs).inertia(codes)
    rows = _weighted_rows(data, weights, kept, scale, n_jobs)
    cells, units, _ = filled_rows(kernel, rows)
    found = make_kernel(
        kernel,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        X=cells,
        sample_weight=weights[kept],
    )
    given = KernelRows(found, cells, units, weights[kept], n_jobs)
    return KernelData.of_rows(given).inertia(codes)
