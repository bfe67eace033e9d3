"""Costs of clusterings.

Costs are computed on centered columns, so that they do not lose digits on data far from the origin
(timestamps, offsets of 1e8). Rows labelled -1 are noise, as everywhere in this package, and are
left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .._data import Units
from .._kernels import ORIGIN_FREE, KernelData, KernelRows, check_gram
from .._kernels.parameters import check_gram_argument, make_kernel
from .._util import BoolArray, FloatArray, format_count, is_noise
from .matching import check_clustering, check_data, check_labels, check_weights


def kmeans_cost(
    X: npt.ArrayLike, labels: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
) -> float:
    """Sum of squared distances of the rows to the mean of their cluster.

    Parameters
    ----------
    %(clustered_rows)s

    Returns
    -------
    float

    Examples
    --------
    >>> kmeans_cost([[1.0], [3.0], [10.0]], ["a", "a", "b"])
    2.0
    """
    data, marks, weights = check_clustering(X, labels, sample_weight)
    return _kmeans_cost(data, marks, weights, ~is_noise(marks))


def _kmeans_cost(
    data: npt.NDArray[Any], marks: npt.NDArray[Any], weights: FloatArray, kept: BoolArray
) -> float:
    weights = weights[kept]
    names, codes = np.unique(marks[kept], return_inverse=True)
    totals = np.bincount(codes, weights=weights, minlength=len(names))
    # A cluster of weight 0 has no mean and no cost.
    totals[totals == 0] = 1.0
    cost = 0.0
    for feature in range(data.shape[1]):
        column = data[kept, feature].astype(np.float64)
        # Twice centered: far from the origin the first mean is rounded, the clusters' are not.
        column -= column.mean() if len(column) else 0.0
        means = np.bincount(codes, weights=weights * column, minlength=len(names)) / totals
        column -= means[codes]
        cost += float(np.dot(weights * column, column))
    return cost


def surrogate_cost(
    X: npt.ArrayLike,
    labels: npt.ArrayLike,
    centers: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    criterion: Literal["kmeans", "kmedians"] = "kmeans",
) -> float:
    """Sum of the distances of the rows to the center of their cluster.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The data.
    labels : array-like of int, shape (n_samples,)
        Row of `centers` that each row belongs to; rows labelled -1 are left out.
    centers : array-like of shape (n_clusters, n_features)
        The centers.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, not negative; None is 1 for each.
    criterion : {"kmeans", "kmedians"}, default="kmeans"
        Squared Euclidean distances, or sums of absolute differences.

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
    data = check_data(X)
    points = np.asarray(check_data(centers), dtype=np.float64)
    if points.shape[1] != data.shape[1]:
        raise ValueError(
            f"The centers have {format_count(points.shape[1], 'column')}; the data have "
            f"{data.shape[1]}."
        )
    marks = check_labels(labels, len(data), "labels")
    if marks.dtype.kind not in "iu":
        raise ValueError("surrogate_cost needs integer labels: row numbers of the centers.")
    kept = ~is_noise(marks)
    codes = marks[kept].astype(np.int64)
    if len(codes) and not (codes.min() >= 0 and codes.max() < len(points)):
        raise ValueError(
            f"The labels must be in 0..{len(points) - 1}, one per center. "
            f"Got {codes.min()} to {codes.max()}."
        )
    weights = check_weights(sample_weight, len(data))[kept]
    cost = 0.0
    for feature in range(data.shape[1]):
        # Close to its center a row's difference from it is exact, wherever the origin lies.
        column = data[kept, feature].astype(np.float64)
        column -= points[codes, feature]
        if criterion == "kmeans":
            cost += float(np.dot(weights * column, column))
        else:
            cost += float(np.dot(weights, np.abs(column)))
    return cost


def cost_ratio(
    X: npt.ArrayLike,
    labels: npt.ArrayLike,
    reference_labels: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """k-means cost of a clustering, divided by that of a reference: the price of explanation.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The data.
    labels : array-like of shape (n_samples,)
        Cluster of each row.
    reference_labels : array-like of shape (n_samples,)
        Reference cluster of each row. Rows labelled -1 here, or in `labels`, are left out of both
        costs.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, not negative; None is 1 for each.

    Returns
    -------
    float
        1 if both costs are 0, inf if only the reference's is.
    """
    data, marks, weights = check_clustering(X, labels, sample_weight)
    reference = check_labels(reference_labels, len(data), "reference_labels")
    kept = ~(is_noise(marks) | is_noise(reference))
    cost = _kmeans_cost(data, marks, weights, kept)
    return ratio_of_costs(cost, _kmeans_cost(data, reference, weights, kept))


def ratio_of_costs(cost: float, reference: float) -> float:
    """Divide two costs; 1 where both are 0, inf for x / 0."""
    if reference > 0:
        return float(cost / reference)
    return 1.0 if cost <= 0 else float("inf")


def kernel_cost(
    X: npt.ArrayLike,
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

    Returns
    -------
    float
        Sum over the rows of w_i k(x_i, x_i), less the sum over the clusters of S(C, C) / |C|, S
        adding up w_i w_j k(x_i, x_j) (Fleissner, Vankadara, Ghoshdastidar 2024, Lemma 1). 0 where
        it is below 1e-12 of the former.

    Notes
    -----
    O(n_samples^2) kernel values in blocks of bounded memory; kernels with features at hand (linear,
    cosine, hellinger) take O(n_samples n_features).

    Examples
    --------
    >>> kernel_cost([[1.0], [3.0], [11.0]], ["a", "a", "b"], kernel="linear")
    2.0
    """
    data, marks, weights = check_clustering(X, labels, sample_weight)
    check_gram_argument(kernel, None, gram is not None)
    matrix = None if gram is None else check_gram(gram, len(data))
    kept = ~is_noise(marks) & (weights > 0)
    if not kept.any():
        return 0.0
    codes = np.unique(marks[kept], return_inverse=True)[1]
    weights = weights[kept]
    if matrix is not None:
        return KernelData.of_gram(matrix[np.ix_(kept, kept)], weights, n_jobs=n_jobs).inertia(codes)
    rows = data[kept].astype(np.float64)
    units = Units(rows.mean(axis=0), np.ones(rows.shape[1]))
    if isinstance(kernel, str) and kernel in ORIGIN_FREE:
        rows -= units.shift
    found = make_kernel(
        kernel,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        X=rows,
        sample_weight=weights,
    )
    return KernelData.of_rows(KernelRows(found, rows, units, weights, n_jobs)).inertia(codes)
