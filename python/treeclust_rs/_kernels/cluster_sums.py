"""Sums of kernel values over clusters, and squared distances to clusters' means from them.

For rows i, j of weights w, S[i, l] = sum of w_j k(i, j) over the rows j of cluster l. The
rows' squared distances to the clusters' means in the kernel's feature space (Fleissner, Vankadara,
Ghoshdastidar 2024, eq. (5) and Lemma 1) and the cost of a clustering follow from them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from .._util.arrays import FloatArray
from .._util.threads import map_in_order

Labels = npt.NDArray[Any]

ROUNDING = 1e-12
"""A cost below this share of the sum of k(x, x) is rounding, and counts as 0."""

TILE = 1024
"""Rows of a part of a sum; rows and columns of a tile of kernel values, 8 MiB."""


def gram_sums(
    gram: FloatArray, labels: Labels, weight: FloatArray, k: int, n_jobs: int = 1
) -> FloatArray:
    """Return the sums of the rows of a kernel matrix over each cluster, in O(n^2) for any k.

    Parameters
    ----------
    gram : ndarray of shape (n_rows, n_columns)
        Kernel values.
    labels : ndarray of shape (n_rows,), int
        Cluster of each row; rows with labels below 0 are left out.
    weight : ndarray of shape (n_rows,)
        Weight of each row, of any sign.
    k : int
        Number of clusters.
    n_jobs : int, default=1
        Threads.

    Returns
    -------
    ndarray of shape (k, n_columns), float64
    """

    def part(start: int) -> FloatArray:
        inside = start + np.flatnonzero(labels[start : start + TILE] >= 0)
        members = csr_matrix(
            (weight[inside], (labels[inside], inside - start)),
            shape=(k, min(TILE, len(labels) - start)),
        )
        return np.asarray(members @ gram[start : start + TILE])

    sums = np.zeros((k, gram.shape[1]))
    for of_part in map_in_order(part, range(0, len(labels), TILE), n_jobs):
        sums += of_part
    return sums


def squared_distances(
    diagonal: FloatArray, sums: FloatArray, weight: FloatArray, stocks: FloatArray
) -> FloatArray:
    """Return the squared distances of rows to clusters' means; rounding below 0 is 0.

    Parameters
    ----------
    diagonal : ndarray of shape (n_rows,)
        k(i, i).
    sums : ndarray of shape (n_rows, k)
        Label sums of the rows.
    weight, stocks : ndarray of shape (k,)
        Weights and self-stocks of the clusters. Those of weight 0 get any number.

    Returns
    -------
    ndarray of shape (n_rows, k), float64
    """
    safe = np.where(weight > 0, weight, 1.0)
    distances = sums * (-2.0 / safe)
    distances += diagonal[:, None]
    distances += stocks / (safe * safe)
    floor = -ROUNDING * float(np.abs(diagonal).max(initial=0.0))
    distances[(distances < 0) & (distances >= floor)] = 0.0
    return distances


def bin_sums(bins: Labels, values: FloatArray, k: int) -> FloatArray:
    """Return the sum of the values of each bin 0, ..., k - 1."""
    return np.asarray(np.bincount(bins, weights=values, minlength=k), dtype=np.float64)


def weighted_sum(values: FloatArray, weight: FloatArray | None) -> float:
    """Return the sum of the values, weighted if there are weights; it may overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(values.sum() if weight is None else (weight * values).sum())
