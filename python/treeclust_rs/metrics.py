"""How good a clustering is, how much its explanation cost, and how long the explanation is.

Costs are computed on centered columns, so that they do not lose digits on data far from the origin
(timestamps, offsets of 1e8). Rows labelled -1 are noise, as everywhere in this package, and are
left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score as adjusted_rand_index
from sklearn.utils import check_array, column_or_1d

from ._data.units import Units
from ._kernels.gram import check_gram
from ._kernels.kernel_data import KernelData
from ._kernels.kernels import ORIGIN_FREE
from ._kernels.parameters import check_gram_argument, make_kernel
from ._util.arrays import FloatArray
from ._util.words import format_count
from .tree.cluster_tree import ClusterTree, HasTree, as_tree
from .tree.conditions import (
    INTERVAL,
    LEAF,
    OBLIQUE,
    THRESHOLD,
    walk_leaves,
)

__all__ = [
    "adjusted_rand_index",
    "agreement",
    "cost_ratio",
    "features_per_node",
    "kernel_cost",
    "kmeans_cost",
    "n_parameters",
    "surrogate_cost",
    "weighted_average_depth",
    "weighted_average_explanation_size",
]

_NOISE = -1
# Matching the clusters of two clusterings takes a table of their sizes' product.
_MAX_CONTINGENCY = 50_000_000


# ---- costs --------------------------------------------------------------------------------


def kmeans_cost(
    X: npt.ArrayLike, labels: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
) -> float:
    """Sum of squared distances of the rows to the mean of their cluster.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The data.
    labels : array-like of shape (n_samples,)
        Cluster of each row, integers or strings; rows labelled -1 are left out.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, not negative; None is 1 for each.

    Returns
    -------
    float

    Examples
    --------
    >>> kmeans_cost([[1.0], [3.0], [10.0]], ["a", "a", "b"])
    2.0
    """
    data = _check_data(X)
    marks = _check_labels(labels, len(data), "labels")
    weights = _check_weights(sample_weight, len(data))
    return _kmeans_cost(data, marks, weights, ~_is_noise(marks))


def _kmeans_cost(
    data: npt.NDArray[Any],
    marks: npt.NDArray[Any],
    weights: FloatArray,
    kept: npt.NDArray[np.bool_],
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
    """Sum of the distances of the rows to the given center of their cluster.

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
    data = _check_data(X)
    points = np.asarray(_check_data(centers), dtype=np.float64)
    if points.shape[1] != data.shape[1]:
        raise ValueError(
            f"The centers have {format_count(points.shape[1], 'column')}; the data have "
            f"{data.shape[1]}."
        )
    marks = _check_labels(labels, len(data), "labels")
    if marks.dtype.kind not in "iu":
        raise ValueError("surrogate_cost needs integer labels: row numbers of the centers.")
    kept = ~_is_noise(marks)
    codes = marks[kept].astype(np.int64)
    if len(codes) and not (codes.min() >= 0 and codes.max() < len(points)):
        raise ValueError(
            f"The labels must be in 0..{len(points) - 1}, one per center. "
            f"Got {codes.min()} to {codes.max()}."
        )
    weights = _check_weights(sample_weight, len(data))[kept]
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
    data = _check_data(X)
    marks = _check_labels(labels, len(data), "labels")
    reference = _check_labels(reference_labels, len(data), "reference_labels")
    weights = _check_weights(sample_weight, len(data))
    kept = ~(_is_noise(marks) | _is_noise(reference))
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
    X : array-like of shape (n_samples, n_features)
        The data.
    labels : array-like of shape (n_samples,)
        Cluster of each row, integers or strings; rows labelled -1 are left out.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, not negative; None is 1 for each.
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
    data = _check_data(X)
    marks = _check_labels(labels, len(data), "labels")
    weights = _check_weights(sample_weight, len(data))
    check_gram_argument(kernel, None, gram is not None)
    matrix = None if gram is None else check_gram(gram, len(data))
    kept = ~_is_noise(marks) & (weights > 0)
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
    settled = make_kernel(
        kernel,
        gamma=gamma,
        degree=degree,
        coef0=coef0,
        kernel_params=kernel_params,
        X=rows,
        sample_weight=weights,
    )
    return KernelData.of_rows(settled, rows, units, weights, n_jobs).inertia(codes)


# ---- agreement ----------------------------------------------------------------------------


def agreement(
    labels: npt.ArrayLike,
    reference_labels: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Share of the rows on which two clusterings agree, the clusters being matched at best.

    Parameters
    ----------
    labels, reference_labels : array-like of shape (n_samples,)
        The two clusterings, integers or strings; rows labelled -1 in either are left out.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, not negative; None is 1 for each.

    Returns
    -------
    float
        Between 0 and 1: every cluster of one is matched with at most one of the other, so that the
        matched pairs share the most rows.

    Raises
    ------
    ValueError
        If no row of positive weight is left, or there are so many clusters that the table of
        their pairs would have more than 50 million entries.

    Examples
    --------
    >>> agreement([0, 0, 1, 1], ["b", "b", "a", "b"])
    0.75
    """
    reference = _check_labels(reference_labels, None, "reference_labels")
    marks = _check_labels(labels, len(reference), "labels")
    weights = _check_weights(sample_weight, len(reference))
    kept = ~(_is_noise(marks) | _is_noise(reference))
    weights = weights[kept]
    names, codes = np.unique(marks[kept], return_inverse=True)
    reference_names, reference_codes = np.unique(reference[kept], return_inverse=True)
    total = float(weights.sum())
    if total == 0:
        raise ValueError("There is no row of positive weight to compare.")
    size = len(names) * len(reference_names)
    if size > _MAX_CONTINGENCY:
        raise ValueError(
            f"Matching {len(names):,} with {len(reference_names):,} clusters takes a table of "
            f"{size:,} entries; adjusted_rand_index has no such limit."
        )
    pairs = codes * len(reference_names) + reference_codes
    table = np.bincount(pairs, weights=weights, minlength=size)
    table = table.reshape(len(names), len(reference_names))
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum()) / total


# ---- size of the explanation --------------------------------------------------------------


def weighted_average_depth(tree: ClusterTree | HasTree) -> float:
    """WAD: depth of the leaf of a row, averaged over the weight of the rows of the fit.

    Parameters
    ----------
    tree : ClusterTree or fitted estimator
        The tree.

    Returns
    -------
    float
    """
    tree = as_tree(tree)
    leaves = tree.leaves
    return _leaf_average(tree, leaves, tree.node_depth[leaves])


def weighted_average_explanation_size(tree: ClusterTree | HasTree) -> float:
    """WAES: number of non-redundant conditions of a row's leaf, averaged as in WAD.

    Of the bounds on one feature in one direction only the tightest counts. An interval counts its
    finite ends, where no tighter bound replaces them; the outside of an interval counts both ends,
    but one if a bound already settles the other side, and none if a bound implies it. An oblique
    test counts the features it uses, every time one is met.

    Parameters
    ----------
    tree : ClusterTree or fitted estimator
        The tree.

    Returns
    -------
    float

    References
    ----------
    Laber, Murtinho, Oliveira: Shallow decision trees for explainable k-means clustering, 2023.
    """
    tree = as_tree(tree)
    walked = [(leaf, path.size) for leaf, _, path in walk_leaves(tree)]
    leaves, sizes = np.array(walked, dtype=np.int64).T
    return _leaf_average(tree, leaves, sizes)


def _leaf_average(
    tree: ClusterTree, leaves: npt.NDArray[np.int64], values: npt.NDArray[np.int64]
) -> float:
    weights = tree.weighted_n_node_samples[leaves]
    total = float(weights.sum())
    if total == 0:
        raise ValueError("The tree has no rows to average over.")
    return float(np.dot(weights, values)) / total


def n_parameters(tree: ClusterTree | HasTree) -> int:
    """Count the numbers that make up the tree.

    A threshold node has two (feature and threshold), an interval node three, an oblique node its
    weights and its bias, a leaf one (its label): 3m - 2 for m leaves and threshold tests only.

    Parameters
    ----------
    tree : ClusterTree or fitted estimator
        The tree.

    Returns
    -------
    int

    References
    ----------
    Gabidolla, Carreira-Perpiñán: Optimal interpretable clustering using oblique decision trees,
    2022, tables 1 and 2.
    """
    tree = as_tree(tree)
    n_thresholds = int((tree.kind == THRESHOLD).sum())
    n_intervals = int((tree.kind == INTERVAL).sum())
    is_oblique = tree.kind == OBLIQUE
    n_oblique = int((tree.n_node_features[is_oblique] + 1).sum())
    return 2 * n_thresholds + 3 * n_intervals + n_oblique + tree.n_leaves


def features_per_node(tree: ClusterTree | HasTree) -> float:
    """Average number of features that a test of an inner node uses.

    Parameters
    ----------
    tree : ClusterTree or fitted estimator
        The tree.

    Returns
    -------
    float
        1 in a tree without oblique tests, 0 in a tree of one leaf.

    References
    ----------
    Gabidolla, Carreira-Perpiñán: Optimal interpretable clustering using oblique decision trees,
    2022, table 2.
    """
    tree = as_tree(tree)
    sizes = tree.n_node_features[tree.kind != LEAF]
    return float(sizes.mean()) if len(sizes) else 0.0


# ---- checks -------------------------------------------------------------------------------


def _check_data(X: npt.ArrayLike) -> npt.NDArray[Any]:
    data: npt.NDArray[Any] = check_array(X, dtype="numeric")
    return data


def _check_labels(labels: npt.ArrayLike, n_rows: int | None, name: str) -> npt.NDArray[Any]:
    marks: npt.NDArray[Any] = column_or_1d(labels)
    if n_rows is not None and len(marks) != n_rows:
        raise ValueError(f"There are {len(marks)} {name} for {n_rows} rows.")
    if marks.dtype.kind == "O":
        # Integers or strings held as Python objects; a mixture becomes strings, but for the -1 of
        # rows that `reference_labels_` leaves out.
        values = marks.tolist()
        noise = np.array([value == _NOISE for value in values], dtype=bool)
        if noise.any() and any(isinstance(value, str) for value in values):
            marks = np.unique([str(value) for value in values], return_inverse=True)[1]
            marks[noise] = _NOISE
        else:
            marks = np.array(values)
    if marks.dtype.kind == "f" and np.array_equal(marks, np.rint(marks)):
        marks = marks.astype(np.int64)
    if marks.dtype.kind not in "biuUT":
        raise ValueError(f"The {name} must be integers or strings.")
    return marks


def _is_noise(marks: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    if marks.dtype.kind != "i":
        return np.zeros(len(marks), dtype=bool)
    return np.asarray(marks == _NOISE)


def _check_weights(sample_weight: npt.ArrayLike | None, n_rows: int) -> FloatArray:
    if sample_weight is None:
        return np.ones(n_rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one entry for each of the {n_rows} rows. "
            f"Got the shape {weights.shape} instead."
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("sample_weight must be finite and not negative.")
    return weights
