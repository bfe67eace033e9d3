"""One run of kernel k-means with a kernel matrix: Lloyd's rounds, then moves of single rows.

The sums S[l, i] of the kernel of row i over each cluster l are kept between rounds. They cost
O(n^2) once; afterwards a round costs O(n k), and O(n) for each row that changes its cluster.

References
----------
J. A. Hartigan, "Clustering algorithms", 1975: moves of single rows.

D. Arthur, S. Vassilvitskii, "k-means++: the advantages of careful seeding", 2007; the greedy form
with 2 + log k trials is scikit-learn's.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from .._util import FloatArray, IntArray
from .kernel_data import OVERFLOW, KernelData
from .means import ROUNDING, Means, gram_sums


@dataclass(frozen=True, eq=False)
class Run:
    """Result of one run: labels, and the groups whose means are nearest."""

    groups: IntArray
    labels: IntArray
    k: int
    cost: float
    n_iter: int


def run_lloyd(
    rows: GramRows,
    groups: IntArray,
    sums: FloatArray,
    max_iter: int,
    tol: float,
    cancelled: threading.Event,
    *,
    refine: bool,
) -> Run:
    """Assign rows to their nearest means and recompute the means, until no row moves.

    The first means are those of `groups`; `sums` (k x n) over the groups are overwritten. `refine`:
    continue with single moves if there are rounds left.
    """
    data, k = rows.data, len(sums)
    best: Run | None = None
    cost = np.inf
    seen: set[int] = set()
    means = rows.means(groups, k, sums)
    for n_iter in range(1, max_iter + 1):
        labels = means.nearest(sums)
        labels, reseeded = _reseed_empty(rows, means, sums, labels)
        still = not reseeded and np.array_equal(labels, groups)
        if not still:
            sums = rows.moved_sums(sums, groups, labels)
        means = rows.means(labels, k, sums)
        before, cost = cost, data.cost(means.weight, means.stocks)
        if not np.isfinite(cost):
            raise ValueError(OVERFLOW)
        current = Run(groups, labels, k, cost, n_iter)
        groups = labels
        if reseeded:
            continue
        if best is None or cost < best.cost or (still and cost <= best.cost):
            best = current
        if still or cancelled.is_set():
            break
        if rows.definite:
            if before - cost <= tol * abs(cost):
                break
        elif (mark := hash(labels.tobytes())) in seen:
            break
        else:
            seen.add(mark)
    if best is None:  # every round reseeded an empty cluster
        labels = means.nearest(sums)
        means = rows.means(labels, k, rows.moved_sums(sums, groups, labels))
        best = Run(groups, labels, k, data.cost(means.weight, means.stocks), n_iter)
    elif refine and n_iter < max_iter:
        labels, cost = _single_moves(rows, groups, sums, means, cancelled)
        if cost < best.cost:
            best = Run(labels, labels, k, cost, n_iter)
    return replace(best, n_iter=n_iter)


def _single_moves(
    rows: GramRows, labels: IntArray, sums: FloatArray, means: Means, cancelled: threading.Event
) -> tuple[IntArray, float]:
    """Move single rows, the best first, while that lowers the cost (Hartigan's rule).

    A row of weight w at squared distance D_a from the mean of its cluster a, of weight W_a, changes
    the cost by w D_b W_b / (W_b + w) - w D_a W_a / (W_a - w) when it moves to b. A row that is a
    little nearer to the mean of a than to that of b may therefore move; when no row moves, each is
    nearest to its own mean. A move costs O(n k); `sums` (k x n) are overwritten.
    """
    data, weight, (k, n) = rows.data, rows.weight, sums.shape
    labels, total, own_stocks = labels.copy(), means.weight.copy(), means.stocks.copy()
    into, adds = np.full((k, n), np.inf), np.empty(n)

    def measure(label: int) -> None:
        """Update what each row would add to the cost of the cluster, or adds as one of its rows."""
        size = total[label]
        apart = sums[label] * (-2.0 / size)
        apart += own_stocks[label] / (size * size)
        apart += data.diagonal
        into[label] = weight * apart * size / (size + weight)
        inside = np.flatnonzero(labels == label)
        rest = size - weight[inside]
        alone = rest <= ROUNDING * size
        saved = weight[inside] * apart[inside] * size / np.where(alone, 1.0, rest)
        adds[inside] = np.where(alone, -np.inf, saved)
        into[label, inside] = np.inf

    for label in np.flatnonzero(total > 0).tolist():
        measure(label)
    least = ROUNDING * max(abs(data.trace), abs(data.cost(total, own_stocks)))
    for _ in range(n):
        change = into.min(axis=0) - adds
        row = int(change.argmin())
        if not change[row] < -least or cancelled.is_set():
            break
        before, after = int(labels[row]), int(into[:, row].argmin())
        labels[row] = after
        for label, sign in ((before, -1.0), (after, 1.0)):
            w = sign * weight[row]
            own_stocks[label] += 2.0 * w * sums[label, row] + w * w * data.diagonal[row]
            sums[label] += w * rows.values[row]
            total[label] += w
        measure(before)
        measure(after)
    own = rows.means(labels, k, sums)
    return labels, data.cost(own.weight, own.stocks)


def _reseed_empty(
    rows: GramRows, means: Means, sums: FloatArray, labels: IntArray
) -> tuple[IntArray, bool]:
    """Assign to each cluster without rows the row of greatest weight times squared distance."""
    k, n = sums.shape
    counts = np.bincount(labels, minlength=k)
    empty = np.flatnonzero(counts == 0)
    if not len(empty):
        return labels, False
    weight = means.weight[labels]
    norms = means.stocks[labels] / (weight * weight)
    apart = sums[labels, np.arange(n)] * (-2.0 / weight)
    apart += norms
    apart += rows.data.diagonal
    costs = rows.weight * apart
    costs[apart <= ROUNDING * (np.abs(norms) + np.abs(rows.data.diagonal))] = 0.0
    reseeded = False
    order = np.argsort(-costs, kind="stable")
    place = 0
    for label in empty:
        while place < n and counts[labels[order[place]]] == 1:
            place += 1
        if place == n or costs[order[place]] <= 0:
            break
        row = order[place]
        counts[labels[row]] -= 1
        counts[label] = 1
        labels[row] = label
        reseeded = True
        place += 1
    return labels, reseeded


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
