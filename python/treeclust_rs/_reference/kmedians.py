"""The k-medians reference: Lloyd's algorithm in the l1 norm.

The center of a cluster is its coordinate-wise weighted *lower* median, which minimises the sum of
l1 distances and is always a value of the data. Starts are drawn as in k-means++, each next center
with probability proportional to weight times l1 distance to the nearest center chosen so far.

Cost: O(n k d) a round for the distances and O(n d) for the medians (O(n d log n) with unequal
weights); memory O(n) beside the data. Of sparse rows O(cells k + k d) and O(cells): columns whose
stored cells are the lesser part of a cluster have the median 0. One thread, fixed order: the same
bits from run to run.

References
----------
D. Arthur, S. Vassilvitskii, "k-means++: the advantages of careful seeding", 2007 (section 5 has the
seeding for other powers of the distance).
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from .._util import FloatArray, IntArray

Matrix = Any
"""Rows: a `FloatArray`, or a csr_array whose missing cells are 0."""

# Entries of a temporary block: 8 MiB of float64, which bounds the memory of each step.
_MAX_BLOCK = 1 << 20

# Half the weight is reached at W/2 up to this share of W, so that rounding in a cumulative sum
# cannot turn a lower median into an upper one.
_MARGIN = 1e-12


def kmedians(
    X: Matrix,
    n_clusters: int,
    sample_weight: npt.ArrayLike | None = None,
    n_init: int = 10,
    max_iter: int = 300,
    random_state: Any = None,
) -> tuple[FloatArray, IntArray, float, int]:
    """Cluster by k-medians: lower the weighted sum of l1 distances to the centers.

    Parameters
    ----------
    X : array-like or csr_array of shape (n_samples, n_features)
        Finite numbers.
    n_clusters : int, in [1, n_samples]
        The number of clusters.
    sample_weight : array-like of shape (n_samples,) or None
        Finite, not negative, not all zero. Rows of weight 0 get a label, but move no center.
    n_init : int
        The number of starts; the one of least cost wins, the first among equals.
    max_iter : int
        The largest number of rounds of a start.
    random_state : int, RandomState instance or None
        Seed of the starts.

    Returns
    -------
    centers : ndarray of shape (n_centers, n_features)
        As many as `n_clusters`, or as there are distinct rows (of positive weight) if these are
        fewer.
    labels : ndarray of shape (n_samples,), int64
        The nearest center of each row, the lowest index among equally near ones.
    inertia : float
        The weighted sum of the l1 distances to the nearest centers.
    n_iter : int
        The rounds of the winning start.

    Raises
    ------
    ValueError
        If `n_clusters` is not in [1, n_samples].

    Notes
    -----
    A start has converged when a round changes no label: the centers are then the lower medians of
    their clusters, and no cluster is empty. The cost never rises from round to round; a cluster
    that falls empty restarts at the worst-served row (largest weight times distance).
    """
    data = X if issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
    n_samples = data.shape[0]
    if not 1 <= n_clusters <= n_samples:
        raise ValueError(
            f"k-medians needs 1 <= n_clusters <= n_samples, got n_clusters={n_clusters} and "
            f"n_samples={n_samples}."
        )
    data_fit, weight_fit = data, np.ones(n_samples)
    if sample_weight is not None:
        weight = np.ascontiguousarray(sample_weight, dtype=np.float64)
        kept = np.flatnonzero(weight > 0)
        if len(kept) == 0:
            raise ValueError("k-medians needs a positive sample_weight in at least one row.")
        if len(kept) < n_samples:
            data_fit, weight_fit = data[kept], weight[kept]
        else:
            weight_fit = weight

    rng = check_random_state(random_state)
    seeds = rng.randint(np.iinfo(np.int32).max, size=n_init)
    best: tuple[FloatArray, IntArray, float, int] | None = None
    for seed in seeds:
        centers = _seed_centers(data_fit, weight_fit, n_clusters, np.random.RandomState(seed))
        start = _lloyd(data_fit, weight_fit, centers, max_iter)
        if best is None or start[2] < best[2]:
            best = start
    if best is None:
        raise ValueError(f"k-medians needs n_init >= 1, got n_init={n_init}.")
    centers, labels, inertia, n_iter = best
    if data_fit is not data:
        labels, _ = _nearest(data, centers)
    return centers, labels, inertia, n_iter


def cluster_medians(
    X: Matrix,
    labels: npt.ArrayLike,
    n_clusters: int,
    sample_weight: npt.ArrayLike | None = None,
) -> FloatArray:
    """Compute the weighted lower median of every column in every cluster.

    Parameters
    ----------
    X : array-like or csr_array of shape (n_samples, n_features)
        Finite numbers.
    labels : array-like of shape (n_samples,), int
        The cluster of each row; rows with a label outside [0, n_clusters) are left out.
    n_clusters : int
        The number of clusters.
    sample_weight : array-like of shape (n_samples,) or None
        Not negative; rows of weight 0 are left out.

    Returns
    -------
    ndarray of shape (n_clusters, n_features), float64
        NaN for a cluster without rows.
    """
    data = X if issparse(X) else np.asarray(X)
    codes = np.asarray(labels)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight is not None:
        codes = np.where(weight > 0, codes, -1)
    # Radix sort for codes of 16 bits.
    if n_clusters < np.iinfo(np.int16).max:
        codes = np.where((codes >= 0) & (codes < n_clusters), codes, -1).astype(np.int16)
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(n_clusters + 1))

    medians = np.full((n_clusters, data.shape[1]), np.nan)
    for cluster in range(n_clusters):
        rows = order[starts[cluster] : starts[cluster + 1]]
        if len(rows) == 0:
            continue
        weight_rows = None if weight is None else weight[rows]
        if weight_rows is not None and np.all(weight_rows == weight_rows[0]):
            weight_rows = None  # selection instead of sorting
        width = max(1, _MAX_BLOCK // len(rows))
        if issparse(data):
            medians[cluster] = _sparse_medians(data[rows], weight_rows, width)
            continue
        for first in range(0, data.shape[1], width):
            block = np.ascontiguousarray(data[:, first : first + width][rows].T, dtype=np.float64)
            medians[cluster, first : first + width] = _median_of_lines(block, weight_rows)
    return medians


def _sparse_medians(rows: csr_array, weight: FloatArray | None, width: int) -> FloatArray:
    """Compute the lower median of every column of sparse rows, `width` dense columns at a time.

    It is 0 where cells that are not 0 have less than half of the weight: only columns where they
    have more are made dense, which are at most some twice as many as a row has cells.
    """
    medians = np.zeros(rows.shape[1])
    weights = np.ones(rows.shape[0]) if weight is None else weight
    of_cells = np.repeat(weights, np.diff(rows.indptr)) * (rows.data != 0.0)
    stored = np.bincount(rows.indices, of_cells, minlength=rows.shape[1])
    often = np.flatnonzero(stored >= (0.5 - 2.0 * _MARGIN) * weights.sum())
    columns = rows[:, often].tocsc()
    for first in range(0, len(often), width):
        some = slice(first, first + width)
        block = np.ascontiguousarray(columns[:, some].toarray().T)
        medians[often[some]] = _median_of_lines(block, weight)
    return medians


def _median_of_lines(block: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Compute the lower median of every line of a scratch block, which is reordered."""
    n_values = block.shape[1]
    middle = (n_values - 1) // 2
    if weight is None:
        block.partition(middle, axis=1)
        return block[:, middle]
    # Not stable, which is twice as fast: the order of equal values moves the sums by rounding only.
    order = np.argsort(block, axis=1)
    reached = np.cumsum(weight[order], axis=1)
    half = reached[:, -1:] * (0.5 - _MARGIN)
    places = np.argmax(reached >= half, axis=1)
    lines = np.arange(block.shape[0])
    medians: FloatArray = block[lines, order[lines, places]]
    return medians


def _nearest(X: Matrix, centers: FloatArray) -> tuple[IntArray, FloatArray]:
    """Find the nearest center of every row, the lowest index on ties, and the distance to it."""
    labels = np.empty(X.shape[0], dtype=np.int64)
    distances = np.empty(X.shape[0])
    is_sparse = issparse(X)
    n_cells = X.nnz // X.shape[0] + 1 if is_sparse else 1
    step = max(1, _MAX_BLOCK // (centers.shape[0] * n_cells))
    sizes, by_column = np.abs(centers).sum(axis=1), np.ascontiguousarray(centers.T)
    for first in range(0, X.shape[0], step):
        rows = slice(first, first + step)
        if is_sparse:
            block = _sparse_distances(X[rows], by_column, sizes)
        else:
            block = cdist(X[rows], centers, "cityblock")
        labels[rows] = block.argmin(axis=1)
        distances[rows] = block.min(axis=1)
    return labels, distances


def _sparse_distances(rows: csr_array, by_column: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return the l1 distances of sparse rows to centers: |c|, and what stored cells change of it.

    `by_column`: d x k; `sizes`: the l1 norms of the centers.
    """
    centers = by_column[rows.indices]
    changes = np.abs(rows.data[:, np.newaxis] - centers) - np.abs(centers)
    places = np.arange(len(changes))
    of_row = csr_array(
        (np.ones(len(changes)), places, rows.indptr), shape=(rows.shape[0], len(changes))
    )
    distances = sizes + of_row @ changes
    # Differences of sums: what rounding may have made of 0 is 0.
    terms = sizes + np.asarray(abs(rows).sum(axis=1)).reshape(-1, 1)
    distances[distances <= 4.0 * np.finfo(np.float64).eps * terms] = 0.0
    return np.asarray(distances)


def _distances_to(X: Matrix, row: int) -> FloatArray:
    """Return the distances of all rows to one of them."""
    return _nearest(X, _dense_rows(X, [row]))[1]


def _dense_rows(X: Matrix, rows: list[int]) -> FloatArray:
    """Return copies of some rows with all their cells."""
    return np.asarray(X[rows].toarray() if issparse(X) else X[rows])


def _seed_centers(
    X: Matrix, weight: FloatArray, n_clusters: int, rng: np.random.RandomState
) -> FloatArray:
    """Draw the first centers among the rows; fewer when there are fewer distinct rows."""
    chosen = [_draw(weight, rng)]
    nearest = _distances_to(X, chosen[0])
    while len(chosen) < n_clusters:
        mass = weight * nearest
        if not mass.any():
            mass = nearest  # tiny weights times tiny distances underflow
            if not mass.any():
                break
        chosen.append(_draw(mass, rng))
        np.minimum(nearest, _distances_to(X, chosen[-1]), out=nearest)
    return _dense_rows(X, chosen)


def _draw(mass: FloatArray, rng: np.random.RandomState) -> int:
    """Draw a row with probability proportional to its mass; a row without mass is never drawn."""
    reached = np.cumsum(mass)
    row = int(np.searchsorted(reached, rng.random_sample() * reached[-1], side="right"))
    if row < len(mass) and mass[row] > 0:
        return row
    # The product rounded up to the total: the last row with mass.
    return int(np.flatnonzero(mass)[-1])


def _lloyd(
    X: Matrix, weight: FloatArray, centers: FloatArray, max_iter: int
) -> tuple[FloatArray, IntArray, float, int]:
    """Alternate nearest centers and medians until no label changes."""
    labels, distances = _nearest(X, centers)
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        centers = _update_centers(X, weight, labels, centers.shape[0])
        previous = labels
        labels, distances = _nearest(X, centers)
        if np.array_equal(labels, previous):
            break
    # Not np.dot: the threads of a BLAS would decide the last bits.
    return centers, labels, float(np.sum(weight * distances)), n_iter


def _update_centers(X: Matrix, weight: FloatArray, labels: IntArray, n_centers: int) -> FloatArray:
    """Compute the medians; an empty cluster restarts at the worst-served row."""
    centers = cluster_medians(X, labels, n_centers, weight)
    empty = np.isnan(centers[:, 0])
    if empty.any():
        _, distances = _nearest(X, centers[~empty])
        for cluster in np.flatnonzero(empty):
            worst = int(np.argmax(weight * distances))
            centers[cluster] = _dense_rows(X, [worst])[0]
            np.minimum(distances, _distances_to(X, worst), out=distances)
    return centers
