"""Centers of clusters, in units and in the columns' own, and costs of labels about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .._data import (
    Encoding,
    SparseTable,
    Table,
    Units,
    WeightedRows,
    column_of,
    level_codes,
    level_columns,
    missing_cells,
    observed_means,
    shares_of,
    sums_by_group,
)
from .._engine import MISSING_LEVEL, Jobs, LabelCosts
from .._util import Codes, FloatArray, map_in_order, weighted_sum
from .kmedians import cluster_medians

Criterion = Literal["kmeans", "kmedians"]


@dataclass(frozen=True)
class Centers:
    """Centers in units, and in the columns' own units as unevaluated sums ``high + low``.

    The mean of values near 1e8 has more digits than doubles near 1e8 can hold. All are k x encoded
    columns (see `Encoding`): a center has the shares of the levels.
    """

    in_units: FloatArray
    high: FloatArray
    low: FloatArray
    spread: FloatArray | None = None
    """By cluster, the sum of its rows' squared distances to the mean in units, if it is known."""
    level_weights: Mapping[int, FloatArray] | None = None
    """By column of levels the weight of the rows of each cluster that have each level, if known."""

    @classmethod
    def from_own(cls, own: FloatArray, units: Units | Encoding) -> Centers:
        own = np.ascontiguousarray(own, dtype=np.float64)
        return cls(units.of_points(own), own, np.zeros_like(own))

    @classmethod
    def of_labels(
        cls,
        data: WeightedRows[Any],
        labels: npt.NDArray[Any],
        k: int,
        criterion: Criterion = "kmeans",
    ) -> Centers:
        """Compute the means, or lower medians and most frequent levels, of clusters.

        Of the observed cells. Where a cluster has none, its center is that of all rows; a table
        without gaps must have rows in every cluster.
        """
        if criterion == "kmedians":
            if data.rows.is_plain:
                return cls.from_own(own_medians(data, labels, k), data.units)
            return cls.from_own(observed_medians(data, labels, k), data.encoding)
        groups = labels.astype(np.uint32)
        if isinstance(data.rows, SparseTable):
            found = data.group_means(groups, k)
            in_units = found.means / data.units.scale + found.rest
            high, low = _two_sum(found.means, found.rest * data.units.scale)
            return cls(in_units, high, low, found.spread)
        return cls._of_table(data, groups, k)

    @classmethod
    def _of_table(cls, data: WeightedRows[Table], labels: Codes, k: int) -> Centers:
        """Compute the means of the clusters of a table."""
        groups = labels
        weight, sums, observed = data.group_sums(groups, k)
        # About a point of the cluster itself: IMM goes by where centers lie among its rows.
        counts = weight[:, None] if observed is None else observed
        means = observed_means(sums, counts)
        near = means * data.units.scale + data.units.shift
        if not counts.all():
            overall = data.group_means(np.zeros_like(groups), 1).means
            near = np.where(counts > 0, near, overall)
            means = np.where(counts > 0, means, data.units.of_points(overall))
        found = data.group_means(groups, near)
        high, low = _two_sum(found.means, found.rest * data.units.scale)
        if data.rows.levels is None:
            return cls(means, high, low, found.spread)
        encoding = data.encoding
        weights = {f: data.level_weights(f, labels, k) for f in level_columns(data.rows)}
        shares = {f: shares_of(of_levels) for f, of_levels in weights.items()}
        return cls(
            encoding.points(means, lambda f: shares[f] / encoding.unit_of_levels(f)),
            encoding.points(high, lambda f: shares[f]),
            encoding.points(low, lambda f: np.zeros_like(shares[f])),
            level_weights=weights,
        )


def _two_sum(means: FloatArray, rest: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return two arrays whose unevaluated sum is ``means + rest`` exactly (Knuth)."""
    high = means + rest
    back = high - rest
    low = (rest - (high - back)) + (means - back)
    return np.ascontiguousarray(high), low


def column_means(data: WeightedRows[Any], n: int) -> FloatArray:
    """Return n points near the rows: the means of the columns, n x encoded columns.

    In the columns' own units. Of tables without gaps and levels they are the origins of the units.
    """
    middle = data.units.shift
    if not data.rows.is_plain:
        groups = np.zeros(data.rows.n_samples, dtype=np.uint32)
        middle = Centers.of_labels(data, groups, 1).high[0]
    return np.tile(middle, (n, 1))


def own_medians(data: WeightedRows[Any], labels: npt.NDArray[Any], k: int) -> FloatArray:
    """Return the lower medians of the clusters in the columns' own units; NaN for empty ones."""
    rows = data.rows
    is_sparse = isinstance(rows, SparseTable)
    matrix = rows.matrix() if is_sparse else Units.own(rows.n_features).matrix(rows)
    return cluster_medians(matrix, labels, k, data.weight) + 0.0  # no negative zeros


def observed_medians(data: WeightedRows[Table], labels: npt.NDArray[Any], k: int) -> FloatArray:
    """Return lower medians and most frequent levels of the observed cells, k x encoded columns.

    Levels are 1 or 0, the first of equally frequent ones is 1: by their weights, which do not
    depend on the order of the rows. A cluster without an observed cell in a column has what all
    rows have; where these have none, 0 or the first level.
    """
    rows, weight = data.rows, data.weight
    numbers = np.zeros((k, rows.n_features))
    for f in range(rows.n_features):
        if rows.n_levels(f):
            continue
        missing, column = missing_cells(rows, f), column_of(rows, f)
        seen = slice(None) if missing is None else ~missing
        cells, weights = column[seen, np.newaxis], None if weight is None else weight[seen]
        if len(cells):
            medians = cluster_medians(cells, labels[seen], k, weights)[:, 0]
            overall = cluster_medians(cells, np.zeros(len(cells), dtype=int), 1, weights)
            medians = np.where(np.isnan(medians), overall[0, 0], medians)
            numbers[:, f] = medians + 0.0  # no negative zeros

    def most_frequent(f: int) -> FloatArray:
        weights = data.level_weights(f, labels, k)
        if not weights.size:
            return weights  # all cells are missing
        unseen = ~weights.any(axis=1)
        if unseen.any():
            weights[unseen] = data.level_weights(f, np.zeros_like(labels), 1)
        places = np.arange(weights.shape[1])
        return np.where(places == weights.argmax(axis=1)[:, np.newaxis], 1.0, 0.0)

    return data.encoding.points(numbers, most_frequent)


def cost_about(
    data: WeightedRows[Any],
    centers: FloatArray,
    labels: npt.NDArray[Any],
    criterion: Criterion = "kmeans",
    rest: FloatArray | None = None,
) -> float:
    """Return the weighted cost, in units, of the rows about the centers of their labels.

    `centers` are in the columns' own units: near its center a cell's difference from it is exact,
    wherever the origin lies. `rest`: what rounding took from them, in units (see `GroupMeans`).

    Raises
    ------
    ValueError
        If the cost overflows.
    """
    if isinstance(data.rows, SparseTable):
        assert rest is None, "sparse rows have none"
        by_means = criterion == "kmeans"
        cost = (_sparse_cost_about if by_means else _sparse_l1_about)(data, centers, labels)
    else:
        cost = _table_cost_about(data, centers, labels, criterion, rest)
    if not np.isfinite(cost):
        raise ValueError(
            'The distances between rows and centers overflow float64. Use scale="standard" or '
            "rescale the columns."
        )
    return cost


def _sparse_cost_about(
    data: WeightedRows[SparseTable], centers: FloatArray, labels: npt.NDArray[Any]
) -> float:
    """Return `cost_about` of sparse rows: the spreads about the means, and what these are off."""
    weight, means, rest, spread, _ = data.group_means(labels.astype(np.uint32), len(centers))
    filled = weight > 0
    with np.errstate(over="ignore"):
        apart = (means[filled] - centers[filled]) / data.units.scale + rest[filled]
        moved = weighted_sum(np.square(apart).sum(axis=1), weight[filled])
    return float(spread.sum()) + moved


def _sparse_l1_about(
    data: WeightedRows[SparseTable], centers: FloatArray, labels: npt.NDArray[Any]
) -> float:
    """Return `cost_about` of sparse rows for k-medians, from terms that are not negative.

    Those of stored cells, and what the other cells of a cluster cost together, column by column.
    """
    rows, (k, d) = data.rows, centers.shape
    weight = np.ones(rows.n_samples) if data.weight is None else data.weight
    sizes = np.diff(rows.indptr)
    places = np.repeat(labels.astype(np.int64) * d, sizes) + rows.indices
    of_cells = np.repeat(weight, sizes)
    with np.errstate(over="ignore"):
        apart = np.abs(rows.values - centers.ravel()[places]) / data.units.scale[rows.indices]
        stored = weighted_sum(apart, of_cells)
    n_stored = np.bincount(places, minlength=k * d).reshape(k, d)
    weight_stored = np.bincount(places, of_cells, minlength=k * d).reshape(k, d)
    n_rows = np.bincount(labels, minlength=k)[:, np.newaxis]
    others = np.bincount(labels, weight, minlength=k)[:, np.newaxis] - weight_stored
    others = np.where(n_stored < n_rows, np.maximum(others, 0.0), 0.0)
    with np.errstate(over="ignore"):
        return stored + float((others * (np.abs(centers) / data.units.scale)).sum())


def _table_cost_about(
    data: WeightedRows[Table],
    centers: FloatArray,
    labels: npt.NDArray[Any],
    criterion: Criterion,
    rest: FloatArray | None,
) -> float:
    weight, points = data.weight, _Points.of(data, centers, criterion, rest)

    def of_column(feature: int) -> float:
        sizes = points.costs(data, labels, feature)
        with np.errstate(over="ignore"):
            if criterion == "kmedians":  # as a fit in parts, where rows have no order
                sizes = sizes if weight is None else weight * sizes
                return float(sums_by_group(sizes[:, None], np.zeros(len(sizes)), 1, 1)[0, 0])
            return weighted_sum(sizes, weight)

    return float(sum(map_in_order(of_column, range(data.rows.n_features), data.threads.n_jobs)))


def row_costs(
    data: WeightedRows[Table],
    centers: FloatArray,
    labels: npt.NDArray[Any],
    criterion: Criterion = "kmeans",
) -> FloatArray:
    """Return the weighted cost of each row, in units; `centers` as in `cost_about`."""
    costs, points = np.zeros(data.rows.n_samples), _Points.of(data, centers, criterion)
    for feature in range(data.rows.n_features):
        costs += points.costs(data, labels, feature)
    return costs if data.weight is None else data.weight * costs


@dataclass(frozen=True)
class _Points:
    """Centers as the columns' costs need them."""

    criterion: Criterion
    numbers: FloatArray
    """k x d, in the columns' own units."""
    rest: FloatArray | None
    """What rounding took from `numbers`, in units."""
    of_levels: Sequence[FloatArray | None] | None
    """By column of levels what they cost each label, k x n_levels."""

    @classmethod
    def of(
        cls,
        data: WeightedRows[Table],
        centers: FloatArray,
        criterion: Criterion,
        rest: FloatArray | None = None,
    ) -> _Points:
        """`centers`, `rest`: k x encoded columns."""
        if data.rows.levels is None:
            return cls(criterion, centers, rest, None)
        encoding = data.encoding
        of_levels = encoding.level_costs(
            encoding.of_points(centers), manhattan=criterion == "kmedians"
        )
        rest = None if rest is None else encoding.numbers(rest)
        return cls(criterion, encoding.numbers(centers), rest, of_levels)

    def costs(
        self, data: WeightedRows[Table], labels: npt.NDArray[Any], feature: int
    ) -> FloatArray:
        """Return what a column adds to each row's cost, without weights: 0 where it is missing."""
        by_level = None if self.of_levels is None else self.of_levels[feature]
        if by_level is not None:
            # The last code, of missing cells, costs nothing.
            costs = np.zeros((len(by_level), MISSING_LEVEL + 1))
            costs[:, : by_level.shape[1]] = by_level
            return np.asarray(costs[labels, level_codes(data.rows, feature)])
        with np.errstate(over="ignore"):
            apart: FloatArray = column_of(data.rows, feature) - self.numbers[labels, feature]
            apart /= data.units.scale[feature]
            if self.rest is not None:
                apart -= self.rest[labels, feature]
            if data.rows.gaps is not None:
                apart[np.isnan(apart)] = 0.0
            if self.criterion == "kmedians":
                return np.abs(apart)
            return np.square(apart, out=apart)


def own_regret(regrets: FloatArray, labels: npt.NDArray[Any], n_jobs: Jobs) -> float:
    """Return the sum over the rows of the regret of the row's own label."""
    own = regrets[np.arange(len(regrets)), labels, None]
    return float(sums_by_group(own, np.zeros(len(own)), 1, n_jobs)[0, 0])


# Costs whose difference is below this share of the larger one count as equal.
_EQUAL_COST = 1e-13


def mismatch_costs(labels: npt.NDArray[np.int64], k: int, weight: FloatArray | None) -> LabelCosts:
    """Return costs of 0 for the row's own label and of 1 for every other."""
    regrets = np.ones((len(labels), k))
    regrets[np.arange(len(labels)), labels] = 0.0
    if weight is not None:
        regrets *= weight[:, None]
    return LabelCosts(regrets, labels.astype(np.uint32), 0.0)


def distance_costs(distances: FloatArray, weight: FloatArray | None) -> LabelCosts:
    """Return the costs of squared distances to k means, of shape (n_samples, k)."""
    least = distances.min(axis=1)
    nearest = distances.argmin(axis=1).astype(np.uint32)
    regrets = distances - least[:, None]
    regrets[regrets <= _EQUAL_COST * distances] = 0.0
    if weight is not None:
        regrets *= weight[:, None]
    return LabelCosts(regrets, nearest, weighted_sum(least, weight))
