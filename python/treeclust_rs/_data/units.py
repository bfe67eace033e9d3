"""Units of the columns, and rows with all that the core reads them with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from .. import _engine
from .._engine import GroupMeans
from .._util import BoolArray, Codes, FloatArray
from .encoding import Encoding, write_in_units
from .scale import (
    Scale,
    deviations,
    given_scale,
    level_deviations,
    robust_scale,
    sparse_deviations,
    sparse_robust_scale,
)
from .sparse import SparseTable
from .sums import weights_of_levels
from .table import Table, level_codes, level_columns, take_rows

Rows = TypeVar("Rows", Table, SparseTable)


def some_rows(rows: Rows, mask: BoolArray) -> Rows:
    """Copy the rows for which the mask is true."""
    return rows.take(mask) if isinstance(rows, SparseTable) else take_rows(rows, mask)


@dataclass(frozen=True)
class Units:
    """Origin and unit of every column: a cell counts as ``(x - shift) / scale``.

    Levels have the origin 0; two different ones are ``1 / scale`` apart. Of missing cells nothing
    is counted.
    """

    shift: FloatArray
    scale: FloatArray

    @classmethod
    def of(
        cls,
        rows: Table | SparseTable,
        weight: FloatArray | None,
        scale: Scale,
        n_jobs: _engine.Jobs,
    ) -> Units:
        """Return the origins of the columns and their units; `scale` as in the estimators.

        With "standard" every column has the variance 1, columns of levels too, and so have these
        with "robust": levels have no quartiles. Where all observed cells are equal the unit is 1.
        Columns of sparse rows keep the origin 0, so that cells which are not stored stay 0.

        Raises ValueError if units that the user gives do not suit the columns.
        """
        if isinstance(rows, SparseTable):
            return cls(np.zeros(rows.n_features), _sparse_scale(rows, weight, scale))
        by_word = isinstance(scale, str)
        shift, units = _engine.column_units(rows.data, weight, by_word, n_jobs)
        if by_word:
            for f, deviation in level_deviations(rows, weight).items():
                units[f] = deviation or 1.0
        if by_word and scale == "robust":
            units = robust_scale(rows, weight, units)
        elif scale is not None and not by_word:
            units = given_scale(scale, rows.n_features, rows.feature_names)
        return cls(shift, units)

    @classmethod
    def own(cls, n_features: int) -> Units:
        """Return the columns' own units: origin 0, unit 1."""
        return cls(np.zeros(n_features), np.ones(n_features))

    def of_points(self, points: FloatArray) -> FloatArray:
        """Return points given in the columns' own units, in these units."""
        return np.ascontiguousarray((points - self.shift) / self.scale)

    def sparse_matrix(self, rows: SparseTable) -> csr_array:
        """Return sparse rows in these units, whose origins are 0; they may share their cells.

        Places are numbered in 32 bits where that suffices, as scikit-learn asks for.
        """
        cells = rows.values
        if (self.scale != 1.0).any():
            with np.errstate(over="ignore"):  # the callers check for overflow
                cells = cells / self.scale[rows.indices]
        fits = max(len(cells), rows.n_features) <= np.iinfo(np.int32).max
        places = np.int32 if fits else np.int64
        indices, indptr = (array.astype(places) for array in (rows.indices, rows.indptr))
        return csr_array((cells, indices, indptr), shape=(rows.n_samples, rows.n_features))

    def matrix(self, table: Table) -> FloatArray:
        """Return the table's columns of numbers in these units, as one C-ordered array."""
        levels = level_columns(table)
        numbers = [f for f in range(table.n_features) if f not in levels]
        matrix = np.empty((table.n_samples, len(numbers)))
        places = {f: place for place, f in enumerate(numbers)}
        write_in_units(table, places, self.shift[numbers], self.scale[numbers], matrix)
        return matrix


def _sparse_scale(rows: SparseTable, weight: FloatArray | None, scale: Scale) -> FloatArray:
    """Return the units of sparse columns; `scale` as in the estimators."""
    if scale is None:
        return np.ones(rows.n_features)
    if not isinstance(scale, str):
        return given_scale(scale, rows.n_features, rows.feature_names)
    units = sparse_deviations(rows, weight)
    units = np.where(units > 0, units, 1.0)
    return sparse_robust_scale(rows, weight, units) if scale == "robust" else units


def observed_means(
    sums: FloatArray, weights: FloatArray, others: FloatArray | float = 0.0
) -> FloatArray:
    """Return means from sums and weights of observed cells; `others` where none is observed."""
    seen = weights > 0
    return np.where(seen, sums / np.where(seen, weights, 1.0), others)


def shares_of(weights: FloatArray) -> FloatArray:
    """Return the share of each level in each group, where there is none that in all groups."""
    total = weights.sum(axis=0)
    others = observed_means(total, total.sum())
    return observed_means(weights, weights.sum(axis=1, keepdims=True), others)


def cost_of_levels(weights: FloatArray, shares: FloatArray, unit: float) -> FloatArray:
    """Return what rows cost, by group, about the shares that the levels of a column have there.

    `weights`: of the levels in each group. `unit`: of the column's coordinates.
    """
    apart = (weights * (1.0 - shares)).sum(axis=1)
    return np.asarray(apart / np.square(unit))


def means_with_levels(
    encoding: Encoding,
    found: GroupMeans,
    near: FloatArray,
    weights_of: Callable[[int], FloatArray],
) -> GroupMeans:
    """Return the means of groups of rows in the coordinates of an encoding.

    `found`: those of the columns of numbers. `near`: n_groups x coordinates, what stands where no
    level is observed. `weights_of`: returns for a column of levels their weights in each group.
    """
    spread, shares = found.spread, {}
    for f, known in enumerate(encoding.levels):
        if known is None:
            continue
        weights = weights_of(f)
        of_near = near[:, encoding.first[f] : encoding.first[f + 1]]
        shares[f] = observed_means(weights, weights.sum(axis=1, keepdims=True), of_near)
        spread = spread + cost_of_levels(weights, shares[f], encoding.unit_of_levels(f))
    observed = found.observed
    if observed is not None:
        observed = np.repeat(observed, np.diff(encoding.first), axis=1)
    return GroupMeans(
        found.weight,
        encoding.points(found.means, lambda f: shares[f]),
        encoding.points(found.rest, lambda f: np.zeros_like(shares[f])),
        spread,
        observed,
    )


@dataclass(frozen=True, eq=False)
class WeightedRows(Generic[Rows]):
    """Rows with their weights (None: ones) and units, and the threads that read them."""

    rows: Rows
    weight: FloatArray | None
    units: Units
    threads: _engine.Threads

    def deviations(self) -> FloatArray:
        """Return the standard deviation of every column, by weight, in the column's own unit."""
        return deviations(self.rows, self.weight, self.threads)

    def label_costs(self, centers: FloatArray, *, manhattan: bool = False) -> _engine.LabelCosts:
        """Return the costs of the rows about centers in units; `manhattan`: L1 distances.

        Centers are of shape (k, encoded columns), see `Encoding`. A missing cell costs nothing.
        """
        weight, threads = self.weight, self.threads
        levels = None
        if isinstance(self.rows, Table) and self.rows.levels is not None:
            encoding = Encoding.of(self.rows, self.units.shift, self.units.scale)
            levels = encoding.level_costs(centers, manhattan=manhattan)
            centers = encoding.numbers(centers)
        return _engine.LabelCosts(
            *_engine.label_costs(
                self.rows.data, self.units, centers, manhattan, weight, threads, levels
            )
        )

    @property
    def encoding(self: WeightedRows[Table]) -> Encoding:
        """The coordinates of the rows, in which centers lie."""
        return Encoding.of(self.rows, self.units.shift, self.units.scale)

    def take(self, mask: BoolArray) -> WeightedRows[Rows]:
        """Return some of the rows, in the same units."""
        weight = None if self.weight is None else self.weight[mask]
        return WeightedRows(some_rows(self.rows, mask), weight, self.units, self.threads)

    def level_weights(
        self: WeightedRows[Table], feature: int, groups: npt.NDArray[Any], n_groups: int
    ) -> FloatArray:
        """Return the weight of the rows of each group that have each level.

        n_groups x n_levels.
        """
        codes, n_levels = level_codes(self.rows, feature), self.rows.n_levels(feature)
        return weights_of_levels(codes, n_levels, self.weight, self.threads, groups, n_groups)

    def level_shares(
        self: WeightedRows[Table], feature: int, groups: npt.NDArray[Any], n_groups: int
    ) -> FloatArray:
        """Return the share, by weight, that each level has of the observed cells of each group.

        n_groups x n_levels; groups without an observed cell have the shares of all rows.
        """
        return shares_of(self.level_weights(feature, groups, n_groups))

    def with_shares(
        self: WeightedRows[Table], points: FloatArray, groups: npt.NDArray[Any]
    ) -> FloatArray:
        """Return points, one for each group of rows, with the groups' shares of the levels.

        `points`: n_groups x encoded columns, of which those of numbers stay.
        """
        encoding, n_groups = self.encoding, len(points)
        return encoding.points(
            encoding.numbers(points), lambda f: self.level_shares(f, groups, n_groups)
        )

    def group_means(self, groups: Codes, near: FloatArray | int) -> GroupMeans:
        """Return weight, mean and spread of groups of rows.

        `near`: the number of groups; or n_groups x d, a guess of the means in the columns' own
        units, which may save a pass.
        """
        if not isinstance(near, np.ndarray):
            near = np.tile(self.units.shift, (near, 1))
        near = np.ascontiguousarray(near)
        return GroupMeans(
            *_engine.group_means(
                self.rows.data, self.units, groups, near, self.weight, self.threads
            )
        )

    def encoded_means(
        self,
        groups: Codes,
        near: FloatArray,
        level_weights: Mapping[int, FloatArray] | None = None,
    ) -> GroupMeans:
        """Return weight, mean and spread of groups of rows in the coordinates of `encoding`.

        `near`: n_groups x encoded columns, a guess of the means in the columns' own units, which
        stands where a group has no observed cell. `level_weights`: what the method of this name
        returns for each column of levels and these groups, if it is known.
        """
        if isinstance(self.rows, SparseTable) or self.rows.levels is None:
            return self.group_means(groups, near)
        return self._with_levels(groups, near, level_weights)

    def _with_levels(
        self: WeightedRows[Table],
        groups: Codes,
        near: FloatArray,
        level_weights: Mapping[int, FloatArray] | None,
    ) -> GroupMeans:
        """Return `encoded_means` of a table with columns of levels."""
        encoding = self.encoding
        found = self.group_means(groups, encoding.numbers(near))

        def weights_of(f: int) -> FloatArray:
            if level_weights is None:
                return self.level_weights(f, groups, len(near))
            return level_weights[f]

        return means_with_levels(encoding, found, near, weights_of)

    def group_sums(self: WeightedRows[Table], groups: Codes, n_groups: int) -> _engine.GroupSums:
        """Return the weight and the sums in units of groups of rows."""
        weight, threads = self.weight, self.threads
        return _engine.GroupSums(
            *_engine.group_sums(self.rows.data, self.units, groups, n_groups, weight, threads)
        )
