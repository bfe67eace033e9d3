"""Means of clusters in a kernel's feature space, the nearest of them, and sums over clusters.

For rows i, j of weights w, S[i, l] = sum of w_j k(i, j) over the rows j of cluster l. The
rows' squared distances to the clusters' means in the kernel's feature space (Fleissner, Vankadara,
Ghoshdastidar 2024, eq. (5) and Lemma 1) and the cost of a clustering follow from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse
from scipy.spatial.distance import cdist

from .._util import FloatArray, IntArray, distinct, map_in_order, row_blocks
from .sparse_rows import Matrix, squared_norms


@dataclass(frozen=True, eq=False)
class Means:
    """Means of k clusters in the feature space.

    With features they are `centers`; else each is the mean of the rows of its group.
    """

    groups: IntArray | None
    """Group of each row of the fit, -1 for none; None with features."""
    weight: FloatArray
    """Weight of each group, of shape (k,)."""
    stocks: FloatArray
    """S(G, G) of each group G, of shape (k,); with features, squared norms of the centers."""
    centers: FloatArray | None = None

    @classmethod
    def of_centers(cls, centers: FloatArray) -> Means:
        """Build from the means of features, of shape (k, n_features_out)."""
        return cls(None, np.ones(len(centers)), np.einsum("ij,ij->i", centers, centers), centers)

    def nearest(self, sums: FloatArray) -> IntArray:
        """Return the nearest mean of each row, the first of equally near ones.

        Parameters
        ----------
        sums : ndarray of shape (k, n)
            Sums of each row's kernel over the groups.
        """
        return first_least(*self.partial_distances(sums))

    def partial_distances(self, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return squared distances to the means minus k(x, x) (Lemma 1), and their rounding error.

        Returns
        -------
        partial : ndarray of shape (k, n)
            inf for groups without rows.
        margin : ndarray of shape (n,)
            Differences up to this may be rounding.
        """
        empty = self.weight <= 0
        weight = np.where(empty, 1.0, self.weight)
        norms = self.stocks / (weight * weight)
        partial = sums * (-2.0 / weight)[:, None]
        margin = np.maximum(partial.max(axis=0), -partial.min(axis=0))
        margin += np.abs(norms).max()
        margin *= ROUNDING
        partial += norms[:, None]
        partial[empty] = np.inf
        return partial, margin

    def feature_distances(self, features: Matrix) -> tuple[FloatArray, FloatArray]:
        """Return squared distances of features to the centers, and their rounding error."""
        assert self.centers is not None
        if issparse(features):
            sums = np.asarray(features @ self.centers.T).T
            distances, margin = self.partial_distances(sums)
            squares = squared_norms(features)
            margin += ROUNDING * squares
            distances += squares
            distances[distances <= margin] = 0.0
            return distances, margin
        distances = center_distances(self.centers, features)
        return distances, ROUNDING * distances.min(axis=0)


@dataclass(frozen=True, eq=False)
class Clustering:
    """Result of kernel k-means.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,), int64
        0, ..., n_clusters - 1; all of them occur.
    inertia : float
        Cost about the clusters' own means.
    n_iter : int
        Rounds of the best start.
    means : Means
        Each row has the label of the nearest of them: the clusters' own means, or, if the rounds
        ended before no row moved, those of the round before.
    """

    labels: IntArray
    inertia: float
    n_iter: int
    means: Means


def center_distances(centers: FloatArray, features: FloatArray) -> FloatArray:
    """Return the squared distances of rows of features to centers, of shape (k, n)."""
    distances = np.empty((len(centers), len(features)))
    for block in row_blocks(len(features), features.shape[1] * len(centers)):
        distances[:, block] = cdist(centers, features[block], "sqeuclidean")
    return distances


def first_least(values: FloatArray, margin: FloatArray) -> IntArray:
    """Return, for each column, the first row within the margin of the least."""
    limit = values.min(axis=0) + margin
    return np.asarray((values <= limit).argmax(axis=0), dtype=np.int64)


def compact(labels: IntArray, means: Means) -> tuple[IntArray, Means]:
    """Drop the clusters without rows and their means, and number the others from 0 on."""
    used, codes = distinct(labels)
    if len(used) == len(means.weight):
        return labels, means
    code_of = np.full(len(means.weight) + 1, -1)  # the last entry is for no group
    code_of[used] = np.arange(len(used))
    return codes.astype(np.int64), Means(
        None if means.groups is None else code_of[means.groups],
        means.weight[used],
        means.stocks[used],
        None if means.centers is None else means.centers[used],
    )


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


def bin_sums(bins: Labels, values: FloatArray | None, k: int) -> FloatArray:
    """Return the sum of the values (None: ones) of each bin 0, ..., k - 1."""
    return np.asarray(np.bincount(bins, weights=values, minlength=k), dtype=np.float64)
