"""Coordinates of tables with levels: one for a column of numbers, one for each level of the others.

A level is 1 in its own coordinate and 0 in those of the column's other levels, so the mean of rows
has the levels' shares. Two different levels are ``1 / unit`` apart, their column's unit: in units a
level is ``1 / (sqrt(2) unit)`` in its coordinate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .._engine import MISSING_LEVEL
from .._util import FloatArray, IntArray, column_name
from .levels import LevelNames
from .table import Table, column_of, level_codes

# Coordinates of a column, on average, above which what works on all of them takes too long.
_MANY = 8


# Rows that are written while they are in the cache.
_ROWS_AT_A_TIME = 2048


def tiles(n_rows: int) -> Iterator[slice]:
    """Return ranges of rows, in turn, that fit into the cache."""
    for start in range(0, n_rows, _ROWS_AT_A_TIME):
        yield slice(start, start + _ROWS_AT_A_TIME)


def write_in_units(
    table: Table, places: Mapping[int, int], shift: FloatArray, scale: FloatArray, out: FloatArray
) -> None:
    """Write columns of numbers, ``(x - shift) / scale``, each to its place in `out`.

    `places`: by column of the table, ascending; `shift`, `scale`: by column of `out`. Cells that
    overflow are left to the callers.
    """
    with np.errstate(over="ignore"):
        if not isinstance(table.data, list) and list(places) == list(range(out.shape[1])):
            for rows in tiles(table.n_samples):
                np.subtract(table.data[rows], shift, out=out[rows], dtype=np.float64)
                out[rows] /= scale
            return
        columns = [(column_of(table, f), place) for f, place in places.items()]
        for rows in tiles(table.n_samples):
            for column, place in columns:
                cells = out[rows, place]
                np.subtract(column[rows], shift[place], out=cells, dtype=np.float64)
                cells /= scale[place]


def n_coordinates(levels: Sequence[LevelNames | None] | None, n_features: int) -> int:
    """Return the number of coordinates of a table with these levels of its columns."""
    return sum(1 if known is None else len(known) for known in levels or (None,) * n_features)


def encoded_names(
    levels: Sequence[LevelNames | None], feature_names: Sequence[str] | None
) -> list[str]:
    """Return the names of the coordinates: ``age``, ``region=north``, ``region=south``."""
    names = []
    for column, known in enumerate(levels):
        name = column_name(feature_names, column)
        names += [name] if known is None else [f"{name}={level}" for level in known]
    return names


@dataclass(frozen=True, eq=False)
class Encoding:
    """The coordinates of a table, and what they are in units.

    Attributes
    ----------
    levels : tuple
        By column its levels, None for one of numbers.
    first : ndarray of shape (n_features + 1,), int
        Column f has the coordinates from ``first[f]`` to ``first[f + 1]``, that one excluded.
    shift, scale : ndarray of shape (n_coordinates,)
        Origin and unit: a coordinate counts as ``(x - shift) / scale``.
    """

    levels: tuple[LevelNames | None, ...]
    first: IntArray
    shift: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, table: Table, shift: FloatArray, scale: FloatArray) -> Encoding:
        """Return the coordinates of a table with these origins and units of its columns."""
        levels = table.levels or (None,) * table.n_features
        widths = [1 if known is None else len(known) for known in levels]
        factors = np.array([1.0 if known is None else math.sqrt(2.0) for known in levels])
        is_number = np.array([known is None for known in levels])
        return cls(
            levels,
            np.concatenate([[0], np.cumsum(widths, dtype=np.int64)]),
            np.repeat(np.where(is_number, shift, 0.0), widths),
            np.repeat(scale * factors, widths),
        )

    @property
    def n_coordinates(self) -> int:
        """The number of coordinates."""
        return int(self.first[-1])

    @property
    def is_wide(self) -> bool:
        """Whether columns have more than 8 coordinates each, on average."""
        return self.n_coordinates > _MANY * len(self.levels)

    def names(self, feature_names: Sequence[str] | None) -> list[str]:
        """Return the names of the coordinates; see `encoded_names`."""
        return encoded_names(self.levels, feature_names)

    def matrix(self, table: Table, *, manhattan: bool = False) -> FloatArray:
        """Return the rows in units, of shape (n_samples, n_coordinates), NaN where missing.

        `manhattan`: two levels are then as far apart by the sum of differences as they are by their
        squares.
        """
        matrix = np.zeros((table.n_samples, self.n_coordinates))
        first = self.first.tolist()
        places = {f: first[f] for f, known in enumerate(self.levels) if known is None}
        write_in_units(table, places, self.shift, self.scale, matrix)
        for f, known in enumerate(self.levels):
            if known is None:
                continue
            part = slice(first[f], first[f + 1])
            codes = level_codes(table, f)
            matrix[codes == MISSING_LEVEL, part] = np.nan
            rows = np.flatnonzero(codes != MISSING_LEVEL)
            matrix[rows, self.first[f] + codes[rows].astype(np.intp)] = 1.0 / self.unit_of_levels(f)
            if manhattan:
                matrix[:, part] *= math.sqrt(0.5)
        return matrix

    def unit_of_levels(self, column: int) -> float:
        """Return the unit of the coordinates of a column of levels; 1 for one without levels."""
        known = self.levels[column]
        return float(self.scale[self.first[column]]) if known else 1.0

    def of_points(self, points: FloatArray) -> FloatArray:
        """Return points given in the coordinates' own units, in units."""
        return np.ascontiguousarray((points - self.shift) / self.scale)

    def points(self, numbers: FloatArray, of_levels: Callable[[int], FloatArray]) -> FloatArray:
        """Return points made from their numbers and their levels.

        `numbers`: n_points x n_features, of which columns of levels are not read. `of_levels`:
        returns n_points x n_levels for a column.
        """
        points = np.empty((len(numbers), self.n_coordinates))
        for f, known in enumerate(self.levels):
            part = slice(self.first[f], self.first[f + 1])
            points[:, part] = numbers[:, f : f + 1] if known is None else of_levels(f)
        return points

    def numbers(self, points: FloatArray) -> FloatArray:
        """Return what points have in columns of numbers: n_points x n_features, 0 for levels."""
        numbers = np.zeros((len(points), len(self.levels)))
        of_numbers = [f for f, known in enumerate(self.levels) if known is None]
        numbers[:, of_numbers] = points[:, self.first[of_numbers]]
        return numbers

    def level_costs(
        self, centers: FloatArray, *, manhattan: bool = False
    ) -> list[FloatArray | None]:
        """Return what each level costs about each center.

        Parameters
        ----------
        centers : ndarray of shape (k, n_coordinates)
            In units.
        manhattan : bool, default=False
            False: squared distances. True: 0 for the center's most frequent level, the first of
            several, and ``1 / unit`` for all others.

        Returns
        -------
        list
            By column an array of shape (k, n_levels), None for one of numbers.
        """
        costs: list[FloatArray | None] = []
        for f, known in enumerate(self.levels):
            if known is None:
                costs.append(None)
                continue
            shares = centers[:, self.first[f] : self.first[f + 1]]
            if not known:
                costs.append(np.zeros_like(shares))
                continue
            level = 1.0 / self.unit_of_levels(f)
            if manhattan:
                others = np.arange(len(known)) != shares.argmax(axis=1)[:, np.newaxis]
                costs.append(np.where(others, math.sqrt(2.0) * level, 0.0))
                continue
            squares = np.square(shares)
            others = np.maximum(squares.sum(axis=1, keepdims=True) - squares, 0.0)
            costs.append(others + np.square(level - shares))
        return costs
