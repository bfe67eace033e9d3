"""K-means and k-medians of tables with gaps or levels: missing cells are not filled.

The objective is that of k-POD: the sum over the *observed* cells of the squared distances (for
k-medians: of the distances) to the centers of the rows' clusters, by weight. A missing cell adds
nothing to any label's cost; a center has the mean (median, most frequent level) of the observed
cells of its cluster, and that of all rows where there are none.

Starts are those of scikit-learn's KMeans (of tables with more than 8 coordinates a column, of many
levels, the seeds of its k-means++ alone), or of k-medians, with gaps filled by the columns' means.
From each, two steps alternate until no label changes, and neither raises the objective: centers of
the clusters, and the nearest center of each row. A row whose cost is the least within 1e-12 of its
costs' range stays. An empty cluster restarts at the row of the largest cost. Starts that fill gaps
with centers and run KMeans to the end, k-POD's own way, stop while rows are nearer to others.

Cost: O(n k d) a round.

References
----------
J. T. Chi, E. C. Chi, R. G. Baraniuk, "k-POD: A method for k-means clustering of missing data",
2016.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from .._data import Table, WeightedRows, level_columns, observed_means, shares_of, tiles
from .._util import BoolArray, FloatArray, IntArray
from .centers import Centers, Criterion, cost_about, row_costs

Starter = Callable[[int], npt.NDArray[Any]]
"""Returns labels of the rows from a seed."""

# Rows whose cost exceeds the least by at most this share of their costs' range stay.
_TIED = 1e-12
# Differences of costs are computed with an error far below this share of squared lengths.
_ROUNDING = 1e-9


def filled_matrix(data: WeightedRows[Table]) -> FloatArray:
    """Return the rows in units, gaps filled with the columns' means (levels: with their shares)."""
    encoding = data.encoding
    matrix = encoding.matrix(data.rows)
    if data.rows.gaps is not None:
        means = ClusterSums.of(data, np.zeros(data.rows.n_samples, dtype=np.uint32), 1).centers()
        for rows in tiles(len(matrix)):
            np.copyto(matrix[rows], means, where=np.isnan(matrix[rows]))
    return matrix


def seeded_labels(
    data: WeightedRows[Table], matrix: FloatArray, k: int, seed: int
) -> npt.NDArray[Any]:
    """Return the nearest of k rows, drawn by k-means++ from the `filled_matrix`, of each row."""
    from sklearn.cluster import kmeans_plusplus  # a tenth of the package's import time

    centers, _ = kmeans_plusplus(matrix, k, sample_weight=data.weight, random_state=seed)
    return data.label_costs(centers).nearest


def best_descent(
    data: WeightedRows[Table],
    k: int,
    start: Starter,
    criterion: Criterion,
    random_state: Any,
    n_init: int,
    max_iter: int,
) -> tuple[IntArray, float]:
    """Cluster rows by their observed cells.

    Parameters
    ----------
    data : WeightedRows
        The rows, each with an observed cell.
    k : int
        The number of clusters.
    start : callable
        Returns labels of the rows from a seed.
    criterion : {"kmeans", "kmedians"}
        The distance.
    random_state : int, RandomState instance or None
        Seed of the starts.
    n_init, max_iter : int
        Numbers of starts, and of rounds of each at most.

    Returns
    -------
    labels : ndarray of shape (n_samples,), int
        Of fewer than `k` clusters if there are fewer distinct rows.
    cost : float
        The objective.
    """
    seeds = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n_init)
    best: tuple[IntArray, float] | None = None
    lengths = None if criterion == "kmedians" else row_lengths(data)
    for seed in seeds.tolist():
        found = descend(data, start(seed), k, criterion, max_iter, lengths)
        if best is None or found[1] < best[1]:
            best = found
    assert best is not None, "n_init is at least 1"
    return best


def descend(
    data: WeightedRows[Table],
    labels: npt.NDArray[Any],
    k: int,
    criterion: Criterion,
    max_iter: int,
    lengths: FloatArray | None = None,
) -> tuple[IntArray, float]:
    """Return labels that neither step improves, and the cost of their rows about their centers.

    Those of the last round if there are more than `max_iter`. With the `row_lengths` rows are
    passed over whose label cannot have changed; the result is the same.
    """
    labels = labels.astype(np.int64)
    manhattan = criterion == "kmedians"
    cost, sums = np.inf, None
    bounds = None if lengths is None else RegretBounds(lengths, data.weight)
    for _ in range(max_iter):
        if fill_empty(data, labels, k, criterion):
            sums = None
        exact = sums is None
        if manhattan:
            centers = Centers.of_labels(data, labels, k, criterion).in_units
        else:
            sums = ClusterSums.of(data, labels, k) if sums is None else sums
            centers = sums.centers()
        rows = np.ones(len(labels), dtype=bool)
        if not (exact or bounds is None):
            rows = bounds.uncertain(centers)
        is_whole = rows.all()
        some = data if is_whole else data.take(rows)
        regrets, nearest, minimum = some.label_costs(centers, manhattan=manhattan)
        if bounds is not None:
            bounds.renew(rows, centers, regrets)
        own = regrets[np.arange(len(regrets)), labels[rows]]
        if is_whole:
            cost = minimum + float(own.sum())
        leaving = np.flatnonzero(own > 0)
        leaving = leaving[own[leaving] > _TIED * regrets[leaving].max(axis=1)]
        if not len(leaving):
            if exact:
                break
            sums = None
            continue
        moves, after = np.zeros(len(labels), dtype=bool), labels.copy()
        moves[np.flatnonzero(rows)[leaving]] = True
        after[moves] = nearest[leaving]
        if sums is not None:
            sums = sums.moved(moves, labels, after)
        labels = after
    else:
        last = Centers.of_labels(data, labels, k, criterion)
        cost = cost_about(data, last.high, labels, criterion)
    return labels, cost


class RegretBounds:
    """Which rows may have another nearest center than when their costs were last computed.

    With the centers m of a row's cheapest label and m' of another one, the difference of their
    costs is the sum over the observed cells of m'^2 - m^2 - 2 x (m' - m). Where centers move by at
    most s and are at most l long, it falls by at most 4 s (|x| + l).
    """

    def __init__(self, lengths: FloatArray, weight: FloatArray | None) -> None:
        self.lengths = lengths
        """|x| of the observed cells, in units."""
        self.weight = weight
        self.gaps = np.zeros(len(lengths))
        """How far each row's second cheapest label was above the cheapest one; 0: not known."""
        self.centers: FloatArray | None = None
        self.moved = self.moved_by_length = 0.0
        self.moved_before = np.zeros((2, len(lengths)))
        """These two when the row's gap was computed."""

    def _follow(self, centers: FloatArray) -> None:
        """Add up how far the centers have moved."""
        if self.centers is not None:
            step = _longest(centers - self.centers)
            self.moved += step
            self.moved_by_length += step * max(_longest(centers), _longest(self.centers))
        self.centers = centers

    def uncertain(self, centers: FloatArray) -> BoolArray:
        """Return the mask of the rows whose nearest center may be another one now."""
        self._follow(centers)
        by_rows, by_centers = self.moved_before
        fall = (self.moved - by_rows) * self.lengths + (self.moved_by_length - by_centers)
        rounding = _ROUNDING * np.square(self.lengths + _longest(centers))
        rows = self.gaps <= 4.0 * fall + rounding
        # A copy of many rows takes longer than their costs.
        return rows if 0 < np.count_nonzero(rows) < len(rows) / 2 else np.ones_like(rows)

    def renew(self, rows: BoolArray, centers: FloatArray, regrets: FloatArray) -> None:
        """Take note of the regrets of some rows about the centers."""
        if centers is not self.centers:
            self._follow(centers)
        least = np.full(len(regrets), np.inf)
        second = least.copy()
        for column in regrets.T:
            np.minimum(second, np.maximum(least, column), out=second)
            np.minimum(least, column, out=least)
        self.gaps[rows] = second if self.weight is None else second / self.weight[rows]
        self.moved_before[:, rows] = [[self.moved], [self.moved_by_length]]


def row_lengths(data: WeightedRows[Table]) -> FloatArray:
    """Return the lengths of the rows in units: of the observed cells, from the columns' origins."""
    numbers, unweighted = data.units.shift[np.newaxis], replace(data, weight=None)
    origin = data.encoding.points(numbers, lambda f: np.zeros((1, data.rows.n_levels(f))))
    nowhere = np.zeros(data.rows.n_samples, dtype=np.int64)
    return np.sqrt(row_costs(unweighted, origin, nowhere))


def _longest(points: FloatArray) -> float:
    return float(np.sqrt(np.square(points).sum(axis=1).max()))


# Beyond this share of the rows, sums are taken anew.
_MAX_MOVED = 0.25


class ClusterSums(NamedTuple):
    """What the means of clusters follow from: sums of the observed cells, by column."""

    data: WeightedRows[Table]
    weights: FloatArray
    """k x d: of the observed cells."""
    sums: FloatArray
    """k x d, in units."""
    of_levels: dict[int, FloatArray]
    """By column of levels, k x n_levels: the weight of each level."""

    @classmethod
    def of(cls, data: WeightedRows[Table], labels: npt.NDArray[Any], k: int) -> ClusterSums:
        weight, sums, observed = data.group_sums(labels.astype(np.uint32), k)
        weights = np.repeat(weight[:, np.newaxis], sums.shape[1], axis=1)
        of_levels = {f: data.level_weights(f, labels, k) for f in level_columns(data.rows)}
        return cls(data, weights if observed is None else observed, sums, of_levels)

    def moved(
        self, moves: BoolArray, before: npt.NDArray[Any], after: npt.NDArray[Any]
    ) -> ClusterSums | None:
        """Return the sums after some rows change their labels; None where it is better done anew.

        Without weights alone: what is left where all rows leave is then exactly 0.
        """
        if self.data.weight is not None or np.count_nonzero(moves) > _MAX_MOVED * len(moves):
            return None
        rows, k = self.data.take(moves), len(self.sums)
        less, more = (ClusterSums.of(rows, labels[moves], k) for labels in (before, after))
        return ClusterSums(
            self.data,
            self.weights - less.weights + more.weights,
            self.sums - less.sums + more.sums,
            {
                f: known - less.of_levels[f] + more.of_levels[f]
                for f, known in self.of_levels.items()
            },
        )

    def centers(self) -> FloatArray:
        """Return the means in units, k x encoded columns; of all rows where none is seen."""
        overall = observed_means(self.sums.sum(axis=0), self.weights.sum(axis=0))
        means = observed_means(self.sums, self.weights, overall)
        if not self.of_levels:
            return means
        encoding = self.data.encoding
        return encoding.points(
            means, lambda f: shares_of(self.of_levels[f]) / encoding.unit_of_levels(f)
        )


def fill_empty(data: WeightedRows[Table], labels: IntArray, k: int, criterion: Criterion) -> bool:
    """Assign the row of the largest cost to each cluster without rows, where one costs anything.

    Returns whether a label has changed.
    """
    is_changed = False
    while True:
        empty = np.flatnonzero(np.bincount(labels, minlength=k) == 0)
        if not len(empty):
            return is_changed
        centers = Centers.of_labels(data, labels, k, criterion)
        costs = row_costs(data, centers.high, labels, criterion)
        worst = int(costs.argmax())
        if not costs[worst] > 0:
            return is_changed
        labels[worst], is_changed = empty[0], True
