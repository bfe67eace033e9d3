"""Columns of a LazyFrame, collected batch by batch: never all batches beside the columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from .._util import FloatArray, IntArray
from .cells import polars_cells, polars_numbers, polars_times
from .kinds import Kind, has_levels
from .levels import Texts
from .times import microseconds


class Growing:
    """An array that grows at its end. One piece alone is kept as it is, a view or not."""

    def __init__(self, dtype: npt.DTypeLike = np.float64) -> None:
        self._array: npt.NDArray[Any] = np.empty(0, dtype=dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, values: npt.NDArray[Any]) -> None:
        """Append values; the dtype becomes one that holds all."""
        start, end = self._length, self._length + len(values)
        if not start:
            self._array, self._length = values, end
        if not start or start == end:
            return
        dtype = np.result_type(self._array, values)
        if end > len(self._array) or dtype != self._array.dtype:
            # What lies beyond the values is not touched, and takes no memory before it is.
            grown = np.empty(max(end, start + start // 2), dtype=dtype)
            grown[:start] = self._array[:start]
            self._array = grown
        self._array[start:end] = values
        self._length = end

    def array(self) -> npt.NDArray[Any]:
        """Return the array, cut to its length."""
        if len(self._array) > self._length:
            self._array.resize(self._length, refcheck=False)
        return self._array


class NumberBatches:
    """The pieces of a column of numbers."""

    def __init__(self) -> None:
        self._values = Growing()
        self.n_nulls = 0
        self.first_null = 0

    def add(self, column: pl.Series) -> None:
        """Append a piece."""
        n_nulls = column.null_count()
        if n_nulls and not self.n_nulls:
            self.first_null = len(self._values) + (column.is_null().arg_max() or 0)
        self.n_nulls += n_nulls
        self._values.add(polars_numbers(column))

    def cells(self) -> npt.NDArray[Any]:
        """Return the whole column."""
        return self._values.array()


class TimeBatches:
    """The pieces of a column of times."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._unit = "us"
        self._counts, self._missing = Growing(np.int64), Growing(np.bool_)

    def add(self, column: pl.Series) -> None:
        """Append a piece."""
        counts, self._unit, missing = polars_times(column)
        self._counts.add(counts)
        self._missing.add(missing)

    def cells(self) -> IntArray | FloatArray:
        """Return the whole column."""
        # At the end alone: a message about cells that are too far counts those of all pieces.
        return microseconds(self._counts.array(), self._unit, self._missing.array(), self._name)


class TextBatches:
    """The pieces of a column of levels: their codes, in as few bytes as there are levels."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._places: dict[str, int] = {}
        self._codes = Growing(np.int8)
        self._is_ordered = False

    def add(self, column: pl.Series) -> None:
        """Append a piece."""
        piece = polars_cells(column, self._kind)
        assert isinstance(piece, Texts), "a column of levels"
        self._is_ordered = piece.is_ordered
        known = self._places
        places = [known.setdefault(text, len(known)) for text in piece.texts]
        # One more than the last place is to fit too, for those who count from 1.
        dtype = np.min_scalar_type(-len(known) - 1)
        self._codes.add(np.array([*places, -1], dtype=dtype)[piece.codes])

    def cells(self) -> Texts:
        """Return the whole column."""
        return Texts(self._codes.array(), list(self._places), self._is_ordered)


ColumnBatches = NumberBatches | TimeBatches | TextBatches


def column_batches(kind: Kind, name: str) -> ColumnBatches:
    """Return what the pieces of a column of this kind are added to."""
    if kind == "number":
        return NumberBatches()
    return TextBatches(kind) if has_levels(kind) else TimeBatches(name)


def collect_into(
    columns: Sequence[ColumnBatches], frame: pl.LazyFrame, positions: Sequence[int]
) -> None:
    """Collect some columns of a LazyFrame once, in the order of rows that `collect` gives.

    By batches from polars 2 on, whose `collect` runs in the streaming engine as batches do: that of
    polars 1 does not, and keeps the order of joins where batches may not. polars calls
    `collect_batches` unstable: where it is gone, all rows are one batch again.
    """
    # By position: as an expression, a name such as "*" or "^a.*$" would be a pattern.
    chosen = frame.select([pl.nth(place) for place in positions])
    in_batches = not pl.__version__.startswith("1.") and hasattr(chosen, "collect_batches")
    for batch in chosen.collect_batches() if in_batches else [chosen.collect()]:
        for column, piece in zip(columns, batch.iter_columns(), strict=True):
            column.add(piece)
