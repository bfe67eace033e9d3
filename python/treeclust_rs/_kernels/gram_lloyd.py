"""One run of kernel k-means with a kernel matrix: Lloyd's rounds, then moves of single rows.

The sums S[l, i] of the kernel of row i over each cluster l are kept between rounds. They cost
O(n^2) once; afterwards a round costs O(n k), and O(n) for each row that changes its cluster.

References
----------
J. A. Hartigan, "Clustering algorithms", 1975: moves of single rows.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import numpy as np

from .._util.arrays import FloatArray, IntArray
from .cluster_sums import ROUNDING
from .gram_rows import GramRows
from .means import Means

OVERFLOW = 'The kernel values overflow float64. Use scale="standard" or rescale the columns.'


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
