"""K-means and k-medians of tables with gaps or levels: missing cells are not filled.

The objective is that of k-POD: the sum over the *observed* cells of the squared distances (for
k-medians: of the distances) to the centers of the rows' clusters, by weight. A missing cell adds
nothing to any label's cost; a center has the mean (median, most frequent level) of the observed
cells of its cluster, and that of all rows where there are none.

Starts are those of scikit-learn's KMeans, or of k-medians, with gaps filled by the columns' means.
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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from .._data import Table, WeightedRows, level_columns, observed_means, shares_of
from .._util import BoolArray, FloatArray, IntArray
from .centers import Centers, Criterion, cost_about, own_regret, row_costs

Starter = Callable[[int], npt.NDArray[Any]]
"""Returns labels of the rows from a seed."""

# Rows whose cost exceeds the least by at most this share of their costs' range stay.
_TIED = 1e-12


def filled_matrix(data: WeightedRows[Table]) -> FloatArray:
    """Return the rows in units, gaps filled with the columns' means (levels: with their shares)."""
    encoding = data.encoding
    matrix = encoding.matrix(data.rows)
    if data.rows.gaps is not None:
        whole = Centers.of_labels(data, np.zeros(data.rows.n_samples, dtype=np.uint32), 1)
        np.copyto(matrix, whole.in_units, where=np.isnan(matrix))
    return matrix


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
    for seed in seeds.tolist():
        found = descend(data, start(seed), k, criterion, max_iter)
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
) -> tuple[IntArray, float]:
    """Return labels that neither step improves, and the cost of their rows about their centers.

    Those of the last round if there are more than `max_iter`.
    """
    labels, rows = labels.astype(np.int64), np.arange(data.rows.n_samples)
    manhattan = criterion == "kmedians"
    cost, sums = np.inf, None
    for _ in range(max_iter):
        if fill_empty(data, labels, k, criterion):
            sums = None
        exact = sums is None
        if manhattan:
            centers = Centers.of_labels(data, labels, k, criterion).in_units
        else:
            sums = ClusterSums.of(data, labels, k) if sums is None else sums
            centers = sums.centers()
        regrets, nearest, minimum = data.label_costs(centers, manhattan=manhattan)
        cost = minimum + own_regret(regrets, labels)
        moves = regrets[rows, labels] > _TIED * regrets.max(axis=1)
        if not moves.any():
            if exact:
                break
            sums = None
        elif sums is not None:
            sums = sums.moved(moves, labels, nearest)
        labels[moves] = nearest[moves]
    else:
        last = Centers.of_labels(data, labels, k, criterion)
        cost = cost_about(data, last.high, labels, criterion)
    return labels, cost


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
    """Give each cluster without rows the row of the largest cost, where one costs anything.

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
