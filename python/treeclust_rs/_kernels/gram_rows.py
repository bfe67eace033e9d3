"""Rows of kernel k-means with a kernel matrix: sums over groups, distances between rows, seeds.

References
----------
D. Arthur, S. Vassilvitskii, "k-means++: the advantages of careful seeding", 2007; the greedy form
with 2 + log k trials is scikit-learn's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from .._util.arrays import FloatArray, IntArray
from .cluster_sums import ROUNDING, gram_sums
from .kernel_data import KernelData
from .means import Means

# Up to so many kernel values, 2 MiB, a dense copy is faster than a sparse product.
_MAX_DENSE = 1 << 18


@dataclass(frozen=True, eq=False)
class GramRows:
    """Rows of a run of kernel k-means: their kernel matrix and weights."""

    data: KernelData
    values: FloatArray
    weight: FloatArray
    definite: bool
    """Whether the kernel is positive semidefinite on differences of rows."""
    n_jobs: int

    def means(self, groups: IntArray, k: int, sums: FloatArray) -> Means:
        """Return the means of the groups, from the sums of shape (k, n) over them."""
        weight = self.data.cluster_weights(groups, k)
        return Means(groups, weight, self.data.self_stocks(groups, sums.T))

    def sums(self, groups: IntArray, k: int) -> FloatArray:
        """Compute the sums over the groups, of shape (k, n)."""
        return gram_sums(self.values, groups, self.weight, k, self.n_jobs)

    def moved_sums(self, sums: FloatArray, before: IntArray, after: IntArray) -> FloatArray:
        """Update the sums over the groups after some rows moved; overwrites `sums`."""
        k, n = sums.shape
        moved = np.flatnonzero(before != after)
        left = moved[before[moved] >= 0]
        if len(moved) + len(left) >= n:
            return self.sums(after, k)
        if len(moved) * n <= _MAX_DENSE:
            dense = np.zeros((k, n))
            dense[after[moved], moved] = self.weight[moved]
            dense[before[left], left] = -self.weight[left]
            sums += dense[:, moved] @ self.values[moved]
            return sums
        changes = csr_matrix(
            (
                np.concatenate((self.weight[moved], -self.weight[left])),
                (np.concatenate((after[moved], before[left])), np.concatenate((moved, left))),
            ),
            shape=(k, n),
        )
        sums += changes @ self.values
        return sums

    def squared_from(self, row: Any) -> FloatArray:
        """Return the squared distances of all rows to some, of shape (..., n); rounding is 0."""
        diagonal = self.data.diagonal
        distances: FloatArray = self.values[row] * -2.0
        norms = np.asarray(diagonal[row])[..., None]
        distances += diagonal
        distances += norms
        distances[distances <= ROUNDING * (np.abs(diagonal) + np.abs(norms))] = 0.0
        return distances


def seed_groups(rows: GramRows, k: int, rng: np.random.RandomState) -> tuple[IntArray, FloatArray]:
    """Draw seeds; return a group for each of them alone, and the sums over these groups."""
    chosen = draw_seeds(rows, k, rng)
    groups = np.full(len(rows.weight), -1)
    groups[chosen] = np.arange(len(chosen))
    return groups, rows.weight[chosen, None] * rows.values[chosen]


def draw_seeds(rows: GramRows, k: int, rng: np.random.RandomState) -> IntArray:
    """Draw k rows by greedy k-means++ in the feature space.

    Returns fewer if the kernel does not tell k rows apart.
    """
    weight, n = rows.weight, len(rows.weight)
    n_trials = 2 + int(np.log(k))
    chosen = [int(draw(weight, rng.uniform(size=1))[0])]
    closest = rows.squared_from(chosen[0])
    while len(chosen) < k:
        mass = weight * closest
        if not mass.any():
            if rows.definite:
                break
            # Rows at distance 0 may still belong to different clusters.
            mass = weight.copy()
            mass[chosen] = 0.0
        trials = draw(mass, rng.uniform(size=n_trials))
        distances = np.minimum(closest, rows.squared_from(trials))
        best = int((distances @ weight).argmin())
        chosen.append(int(trials[best]))
        closest = distances[best]
        closest[chosen] = 0.0
    assert len(chosen) <= n
    return np.array(chosen)


def draw(mass: FloatArray, shares: FloatArray) -> IntArray:
    """Return the rows at some shares, in [0, 1), of the mass; none of them has mass 0."""
    cumulative = np.cumsum(mass)
    last = int(np.flatnonzero(mass)[-1])
    rows = np.searchsorted(cumulative, shares * cumulative[-1], side="right")
    return np.asarray(np.minimum(rows, last), dtype=np.int64)
