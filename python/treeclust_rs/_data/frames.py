"""Frames of polars, pandas and pyarrow: their names, their types, and their columns as arrays.

pandas and pyarrow are never imported: an object can only be one of theirs if its module is loaded
already.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from .._engine import ColumnData, Columns, LevelColumn
from .._util import listed
from .._util.words import MAX_LISTED
from .arrays import check_shape, count_words, missing_message, native
from .batches import NumberBatches, collect_into, column_batches
from .cells import (
    Cells,
    arrow_cells,
    arrow_floats,
    pandas_cells,
    pandas_numbers,
    polars_cells,
    polars_numbers,
)
from .kinds import MIXED_TABLES, TO_A_KIND, Kind, are_booleans, arrow_kind, pandas_kind, polars_kind
from .object_numbers import objects_as_floats


class FrameSource:
    """A frame of some library: its names now, its columns when asked for."""

    names: list[Any]
    n_rows: int | None  # None: not known before the columns are collected

    def _types(self) -> Sequence[Any]:
        """Return the types of all columns."""
        raise NotImplementedError

    def _kind(self, dtype: Any) -> Kind | None:
        """Return what a column of this type holds; None for a type that is not read."""
        raise NotImplementedError

    def kinds(self, positions: Sequence[int]) -> list[Kind | None]:
        """Return what some columns hold; None for types that are not read."""
        types = self._types()
        return [self._kind(types[position]) for position in positions]

    def not_numeric(self, positions: Sequence[int]) -> list[int]:
        """Return the columns that are neither numbers nor booleans, 0 and 1."""
        types = self._types()
        return [
            position
            for position in positions
            if self._kind(types[position]) not in ("number", "flag")
        ]

    def name_and_type(self, position: int) -> str:
        """Return how messages name a column."""
        return f"{self.names[position]!r} ({self.type_of(position)})"

    def type_of(self, position: int) -> str:
        """Return the type of a column as text."""
        return str(self._types()[position])

    def count_rows(self) -> int:
        """Return the number of rows."""
        assert self.n_rows is not None, "known except of a LazyFrame"
        return self.n_rows

    def columns(self, positions: Sequence[int]) -> tuple[Columns, list[tuple[Any, int, int]]]:
        """Return the columns, and (name, nulls, first row) of those with nulls (data then void)."""
        raise NotImplementedError

    def cells(self, positions: Sequence[int], kinds: Sequence[Kind]) -> list[Cells]:
        """Return columns of these kinds: as `kinds` returns them."""
        raise NotImplementedError

    def block(self, positions: Sequence[int]) -> npt.NDArray[Any] | None:  # noqa: ARG002
        """Return columns of numbers as one array if that is how the frame holds them, else None."""
        return None


class _PolarsSource(FrameSource):
    """A DataFrame of polars."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self.names = frame.columns
        self.n_rows = frame.height

    def _types(self) -> Sequence[Any]:
        return self.frame.dtypes

    def _kind(self, dtype: Any) -> Kind | None:
        return polars_kind(dtype)

    def columns(
        self, positions: Sequence[int]
    ) -> tuple[list[ColumnData], list[tuple[Any, int, int]]]:
        series = self._series(positions)
        nulls = [
            (column.name, column.null_count(), column.is_null().arg_max() or 0)
            for column in series
            if column.null_count()
        ]
        return ([] if nulls else [polars_numbers(column) for column in series]), nulls

    def cells(self, positions: Sequence[int], kinds: Sequence[Kind]) -> list[Cells]:
        return [
            polars_cells(column, kind)
            for column, kind in zip(self._series(positions), kinds, strict=True)
        ]

    def _series(self, positions: Sequence[int]) -> list[pl.Series]:
        return [self.frame.to_series(position) for position in positions]


class _LazySource(FrameSource):
    """A LazyFrame of polars; its columns are collected batch by batch, each time they are read."""

    def __init__(self, frame: pl.LazyFrame) -> None:
        self.frame = frame
        self.schema = frame.collect_schema()
        self.names = self.schema.names()
        self.n_rows = None

    def _types(self) -> Sequence[Any]:
        return self.schema.dtypes()

    def _kind(self, dtype: Any) -> Kind | None:
        return polars_kind(dtype)

    def count_rows(self) -> int:
        return int(self.frame.select(pl.len()).collect().item())

    def columns(
        self, positions: Sequence[int]
    ) -> tuple[list[ColumnData], list[tuple[Any, int, int]]]:
        columns = [NumberBatches() for _ in positions]
        collect_into(columns, self.frame, positions)
        nulls = [
            (self.names[position], column.n_nulls, column.first_null)
            for position, column in zip(positions, columns, strict=True)
            if column.n_nulls
        ]
        return ([] if nulls else [column.cells() for column in columns]), nulls

    def cells(self, positions: Sequence[int], kinds: Sequence[Kind]) -> list[Cells]:
        columns = [
            column_batches(kind, self.names[position])
            for position, kind in zip(positions, kinds, strict=True)
        ]
        collect_into(columns, self.frame, positions)
        # Each is let go in turn: what cells are made from does not outlive them.
        columns.reverse()
        return [columns.pop().cells() for _ in kinds]


class _ArrowSource(FrameSource):
    """A pyarrow Table or RecordBatch; its numbers are read through polars, which shares them."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.names = list(table.schema.names)
        self.n_rows = table.num_rows

    def _types(self) -> Sequence[Any]:
        return list(self.table.schema.types)

    def _kind(self, dtype: Any) -> Kind | None:
        return arrow_kind(dtype)

    def columns(
        self, positions: Sequence[int]
    ) -> tuple[list[ColumnData], list[tuple[Any, int, int]]]:
        pyarrow = sys.modules["pyarrow"]
        chosen = self.table.select(list(positions))
        if isinstance(chosen, pyarrow.RecordBatch):
            chosen = pyarrow.Table.from_batches([chosen])
        for place, field in enumerate(chosen.schema):
            if pyarrow.types.is_decimal(field.type):  # polars panics on 256 bits
                numbers = arrow_floats(chosen.column(place))
                chosen = chosen.set_column(place, field.name, numbers)
        frame = pl.from_arrow(chosen, rechunk=False)
        assert isinstance(frame, pl.DataFrame), "a table converts to a frame"
        return _PolarsSource(frame).columns(range(len(positions)))

    def cells(self, positions: Sequence[int], kinds: Sequence[Kind]) -> list[Cells]:
        return [
            arrow_cells(self.table.column(position), kind, self.names[position])
            for position, kind in zip(positions, kinds, strict=True)
        ]


class _PandasSource(FrameSource):
    def __init__(self, frame: Any) -> None:
        self.frame = frame = objects_as_floats(frame)
        self.names = list(frame.columns)
        self.n_rows = frame.shape[0]

    def _types(self) -> Sequence[Any]:
        return list(self.frame.dtypes)

    def _kind(self, dtype: Any) -> Kind | None:
        return pandas_kind(dtype)

    def kinds(self, positions: Sequence[int]) -> list[Kind | None]:
        # Booleans with gaps are objects.
        types = list(self.frame.dtypes)
        return [
            "flag"
            if types[position].kind == "O" and are_booleans(self.frame.iloc[:, position])
            else self._kind(types[position])
            for position in positions
        ]

    def columns(self, positions: Sequence[int]) -> tuple[Columns, list[tuple[Any, int, int]]]:
        block = self.block(positions)
        if block is not None:
            return block, []
        series = [self.frame.iloc[:, position] for position in positions]
        nulls = []
        for position, column in zip(positions, series, strict=True):
            if not isinstance(column.dtype, np.dtype):
                missing = column.isna().to_numpy()
                if missing.any():
                    nulls.append((self.names[position], int(missing.sum()), int(missing.argmax())))
        return ([] if nulls else [pandas_numbers(column) for column in series]), nulls

    def cells(self, positions: Sequence[int], kinds: Sequence[Kind]) -> list[Cells]:
        return [
            pandas_cells(self.frame.iloc[:, position], kind, self.names[position])
            for position, kind in zip(positions, kinds, strict=True)
        ]

    def block(self, positions: Sequence[int]) -> npt.NDArray[Any] | None:
        # A frame made from a C-ordered array then keeps its rows together in memory.
        n_columns = len(self.names)
        dtype = self.frame.dtypes.iloc[0]
        if (
            n_columns < 2
            or list(positions) != list(range(n_columns))
            or not isinstance(dtype, np.dtype)
            or not (self.frame.dtypes == dtype).all()
        ):
            return None
        views = [self.frame.iloc[:, position].to_numpy() for position in range(n_columns)]
        base = views[0].base
        if base is None or any(view.base is not base for view in views):
            return None
        block = self.frame.to_numpy()
        return native(block) if all(np.may_share_memory(block, view) for view in views) else None


def frame_source(X: Any) -> FrameSource | None:
    """Return the reader for a frame, None for anything else; a single column is refused."""
    if type(X) is np.ndarray:
        return None
    pandas, pyarrow = sys.modules.get("pandas"), sys.modules.get("pyarrow")
    if type(X).__module__.partition(".")[0] == "narwhals":
        X = X.to_native()
    series: tuple[type, ...] = (pl.Series,)
    if pandas is not None:
        series += (pandas.Series, pandas.Index)
    if pyarrow is not None:
        series += (pyarrow.Array, pyarrow.ChunkedArray)
    if isinstance(X, series):
        raise ValueError(
            f"Expected a 2-dimensional container but got {type(X)} instead. Pass a DataFrame "
            f"containing a single column (i.e. single feature) or a single row (i.e. single "
            f"sample) instead."
        )
    if isinstance(X, pl.DataFrame):
        return _PolarsSource(X)
    if isinstance(X, pl.LazyFrame):
        return _LazySource(X)
    if pandas is not None and isinstance(X, pandas.DataFrame):
        return _PandasSource(X)
    if pyarrow is not None and isinstance(X, pyarrow.Table | pyarrow.RecordBatch):
        return _ArrowSource(X)
    if hasattr(X, "__arrow_c_stream__"):
        return _PolarsSource(pl.DataFrame(X))
    return None


def check_numeric(source: FrameSource, positions: Sequence[int], estimator_name: str) -> None:
    """Raise TypeError if a column is not numbers, ValueError if there is no column."""
    if not positions:
        check_shape((source.n_rows or 0, 0), estimator_name)
    bad = source.not_numeric(positions)
    if bad:
        which = listed([source.name_and_type(position) for position in bad], "column")
        what, them = ("a column that is", "it") if len(bad) == 1 else ("columns that are", "them")
        hint = "one-hot, or a date as days since some day"
        if any(source.type_of(position) == "object" for position in bad):
            hint += ", or Python numbers by astype(float)"
        others = f" {MIXED_TABLES}"
        if None in source.kinds(bad):
            hint, others = f"{hint}, {TO_A_KIND}", ""
        raise TypeError(
            f"X has {what} not numbers: {which}. {estimator_name} needs numbers: encode {them} "
            f"(for instance {hint}) or drop {them}.{others}"
        )


def read_columns(source: FrameSource, positions: Sequence[int], estimator_name: str) -> Columns:
    """Return some columns of a frame, in that order."""
    check_numeric(source, positions, estimator_name)
    data, nulls = source.columns(positions)
    if nulls:
        problems = [
            (f"column {name!r}", count_words((count, "null")), first)
            for name, count, first in nulls
        ]
        raise ValueError(missing_message("null (missing values, that is NaN)", problems))
    n_samples = count_rows(data)
    check_shape((n_samples, len(positions)), estimator_name)
    return data


def count_rows(data: Columns) -> int:
    """Return the number of rows of a matrix or of columns, of which there is at least one."""
    first = data[0] if isinstance(data, list) else data
    return len(first.codes) if isinstance(first, LevelColumn) else len(first)


def string_names(names: list[Any]) -> list[str] | None:
    """Return the names if all are strings, None if none is, as scikit-learn does."""
    strings = [isinstance(name, str) for name in names]
    if not any(strings):
        return None
    if not all(strings):
        types = sorted({type(name).__name__ for name in names})
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your "
            f"input has {types} as column name types. Convert them all to strings, by "
            "X.columns = X.columns.astype(str) for example, or none of them."
        )
    return [str(name) for name in names]


def check_unique(names: list[Any]) -> None:
    """Raise ValueError if a name occurs twice."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"X has duplicate column names: {listed([repr(name) for name in repeated], 'name')}. "
            f"Rename or drop the repeated columns."
        )


def similar_words(missing: Sequence[str], names: Iterable[Any]) -> str:
    """Return a sentence on those of the names that are like missing ones; empty if none is."""
    others = {str(name).strip().casefold(): name for name in names}
    alike = [get_close_matches(name.casefold(), others, 1, 0.8) for name in missing[:MAX_LISTED]]
    found = dict.fromkeys(repr(others[name]) for match in alike for name in match)
    return f" It has similar names: {', '.join(found)}." if found else ""


def positions_of(names: list[Any], wanted: list[str]) -> list[int]:
    """Return the place of each wanted name; raise ValueError unless it is there once."""
    places = {name: position for position, name in enumerate(names)}
    missing = [name for name in wanted if name not in places]
    needed = set(wanted)
    if missing:
        raise ValueError(
            "The feature names should match those that were passed during fit. "
            f"X lacks {len(missing)} of the {len(wanted)} columns that are needed: "
            f"{listed([repr(name) for name in missing], 'column')}."
            + similar_words(missing, (name for name in names if name not in needed))
        )
    check_unique([name for name in names if name in needed])
    return [places[name] for name in wanted]
