"""Means of clusters in a kernel's feature space, and the nearest of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from .._util.arrays import FloatArray, IntArray
from .cluster_sums import ROUNDING


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

    def feature_distances(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return squared distances of features to the centers, and their rounding error."""
        assert self.centers is not None
        distances = np.asarray(cdist(self.centers, features, "sqeuclidean"))
        margin = np.einsum("ij,ij->i", features, features) + self.stocks.max()
        margin *= ROUNDING
        return distances, margin


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


def first_least(values: FloatArray, margin: FloatArray) -> IntArray:
    """Return, for each column, the first row within the margin of the least."""
    limit = values.min(axis=0) + margin
    return np.asarray((values <= limit).argmax(axis=0), dtype=np.int64)


def compact(labels: IntArray, means: Means) -> tuple[IntArray, Means]:
    """Drop the clusters without rows and their means, and number the others from 0 on."""
    used, codes = np.unique(labels, return_inverse=True)
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
