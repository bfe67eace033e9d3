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
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from .._data import Table, WeightedRows
from .._util import FloatArray, IntArray
from .centers import Centers, Criterion, own_regret, row_costs

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
    """Return labels that neither step improves, and their objective."""
    labels, rows = labels.astype(np.int64), np.arange(data.rows.n_samples)
    cost = np.inf
    for _ in range(max_iter):
        fill_empty(data, labels, k, criterion)
        centers = Centers.of_labels(data, labels, k, criterion)
        regrets, nearest, minimum = data.label_costs(
            centers.in_units, manhattan=criterion == "kmedians"
        )
        cost = minimum + own_regret(regrets, labels)
        moves = regrets[rows, labels] > _TIED * regrets.max(axis=1)
        if not moves.any():
            break
        labels[moves] = nearest[moves]
    return labels, cost


def fill_empty(data: WeightedRows[Table], labels: IntArray, k: int, criterion: Criterion) -> None:
    """Give each cluster without rows the row of the largest cost, where one costs anything."""
    while True:
        empty = np.flatnonzero(np.bincount(labels, minlength=k) == 0)
        if not len(empty):
            return
        centers = Centers.of_labels(data, labels, k, criterion)
        costs = row_costs(data, centers.high, labels, criterion)
        worst = int(costs.argmax())
        if not costs[worst] > 0:
            return
        labels[worst] = empty[0]
