"""The best threshold tree of a few rows and leaves, by trying all of them."""

from functools import cache
from itertools import product

import numpy as np


def least_cost(X, n_clusters, n_leaves, cost):
    """Return the least cost of all threshold trees of at most `n_leaves` leaves in clusters.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        At most 12 rows.
    n_clusters : int
        Leaves are joined to at most so many clusters.
    n_leaves : int
        The largest number of leaves.
    cost : callable
        Of the indices of a cluster's rows.
    """
    n = len(X)
    bits = 1 << np.arange(n)
    members = [np.flatnonzero(bits & rows) for rows in range(1 << n)]
    of_set = np.array([cost(rows) if len(rows) else 0.0 for rows in members])

    def cuts(rows):
        inside = members[rows]
        sides = {
            int(bits[inside[X[inside, column] <= value]].sum())
            for column, value in product(range(X.shape[1]), np.unique(X[inside]))
        }
        return sides - {0, rows}

    @cache
    def trees(rows, size):
        """Return the leaves of all trees of so many leaves as sets of rows, a tree a line."""
        if size == 1:
            return np.array([[rows]])
        found = [np.empty((0, size), dtype=np.int64)]
        for left, share in product(cuts(rows), range(1, size)):
            a, b = trees(left, share), trees(rows - left, size - share)
            pairs = np.repeat(a, len(b), axis=0), np.tile(b, (len(a), 1))
            found.append(np.hstack(pairs))
        return np.unique(np.sort(np.concatenate(found), axis=1), axis=0)

    best = np.inf
    for size in range(1, n_leaves + 1):
        leaves = trees((1 << n) - 1, size)
        if not len(leaves):
            continue
        for labels in product(range(min(n_clusters, size)), repeat=size - 1):
            labels = np.array([0, *labels])
            clusters = [leaves[:, labels == label].sum(axis=1) for label in np.unique(labels)]
            best = min(best, of_set[np.array(clusters)].sum(axis=0).min())
    return best
