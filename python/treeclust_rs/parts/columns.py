"""What the columns of a fit in parts hold: found in each part, and decided for all of them.

The kind of a column is that of its type, as in a fit in memory. Parts whose cells are all missing
in a column say nothing of it: polars and pandas give such columns any type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _engine
from .._data import LevelNames, Table, count_gaps
from .._data.arrays import check_width, number_array
from .._data.frames import count_rows, frame_source
from .._data.kinds import Kind, check_kind, has_levels, kind_words
from .._data.levels import FLAG_LEVELS, Texts, check_numbers_of_levels
from .._data.mixed import coded_columns, read_cells
from .._data.table import positions_in
from .._engine import MISSING_LEVEL, LevelColumn
from .._util import FloatArray, listed, quoted_column


class FoundInRows(NamedTuple):
    """What some rows hold in a column."""

    kind: Kind
    n_missing: int
    is_empty: bool
    """Whether all cells are missing."""
    levels: LevelNames | None
    """None: numbers."""
    declared: LevelNames | None
    """All levels in the order that the type declares; None: it declares none."""


class FoundInAll(NamedTuple):
    """What the rows of all parts hold in a column."""

    kinds: list[tuple[Kind, int]]
    """Each with the least part that has such cells."""
    empty_kinds: list[Kind]
    """Of parts without a value."""
    levels: list[str]
    declared: list[list[str]]
    is_unordered: bool
    """Whether some part with a value declares no order."""
    n_missing: int


def read_first(
    rows: object,
    names: list[str] | None,
    n_features: int,
    estimator_name: str,
    threads: _engine.Threads,
) -> tuple[Table, list[FoundInRows]]:
    """Read rows in the first round, and say what they hold.

    Raises TypeError and ValueError as a fit in memory.
    """
    source = frame_source(rows)
    if source is None:
        array = number_array(rows, estimator_name, mixed=True)
        check_width(array.shape[1], n_features, estimator_name)
        table = Table(array, array.shape[0], n_features, names)
        return _with_facts(table, ("number",) * n_features, [None] * n_features, threads)
    places = positions_in(source, names, n_features, range(n_features), estimator_name, True)
    cells_of, kinds = read_cells(source, places, estimator_name)
    if not isinstance(cells_of, list):
        table = Table(cells_of, len(cells_of), n_features, names)
        return _with_facts(table, kinds, [None] * n_features, threads)
    data, levels = coded_columns(
        cells_of, kinds, [source.names[place] for place in places], estimator_name
    )
    declared = [
        tuple(cells.texts) if isinstance(cells, Texts) and cells.is_ordered else None
        for cells in cells_of
    ]
    table = Table(data, count_rows(data), n_features, names, kinds, levels)
    return _with_facts(table, kinds, declared, threads)


def _with_facts(
    table: Table,
    kinds: Sequence[Kind],
    declared: Sequence[LevelNames | None],
    threads: _engine.Threads,
) -> tuple[Table, list[FoundInRows]]:
    """Return a table that knows its gaps, and what its columns hold."""
    table = count_gaps(table, threads)
    gaps = table.gaps or (0,) * table.n_features
    levels = table.levels or (None,) * table.n_features
    found = [
        FoundInRows(kind, n_missing, n_missing == table.n_samples, known, order)
        for kind, n_missing, known, order in zip(kinds, gaps, levels, declared, strict=True)
    ]
    return table, found


def columns_of_all(
    found: Sequence[FoundInAll], names: Sequence[str] | None
) -> list[tuple[Kind, LevelNames | None]]:
    """Return kind and levels (None: numbers) of each column.

    Raises
    ------
    TypeError
        If a column is of several kinds, or declares its levels in several orders.
    ValueError
        If it has more than 255 levels.
    """
    columns = [_column(facts, quoted_column(names, place)) for place, facts in enumerate(found)]
    by_name = {
        (place if names is None else names[place]): levels
        for place, (_, levels) in enumerate(columns)
        if levels is not None
    }
    check_numbers_of_levels(by_name)
    return columns


def _column(found: FoundInAll, name: str) -> tuple[Kind, LevelNames | None]:
    for kind in (*dict(found.kinds), *found.empty_kinds):
        check_kind(kind)
    if len(found.kinds) > 1:
        parts = [part for _, part in found.kinds]
        if len(set(parts)) == len(parts):
            held = [f"{kind_words(kind)} in part {part}" for kind, part in found.kinds]
        else:
            held = [f"{kind_words(kind)} in some rows" for kind, _ in found.kinds]
        raise TypeError(
            f"Column {name} does not hold the same in all parts: {listed(held, 'kind')}. Give it "
            "one type, for example by a cast."
        )
    if not found.kinds and not found.empty_kinds:
        raise ValueError(f"No part says what column {name} holds.")
    # Of types that hold nothing, numbers are the least telling: what is not read is often so.
    empty = sorted(found.empty_kinds, key=lambda kind: (kind != "number", kind))
    kind = found.kinds[0][0] if found.kinds else empty[-1]
    if kind == "flag":
        return kind, FLAG_LEVELS
    if kind != "levels":
        return kind, None
    if not found.declared:
        return kind, tuple(sorted(found.levels))
    if found.is_unordered or len(found.declared) > 1:
        raise TypeError(
            f"Column {name} declares an order of its levels that is not the same in all parts. "
            "Cast it to one Enum or ordered category, or to text."
        )
    occurring = set(found.levels)
    return kind, tuple(level for level in found.declared[0] if level in occurring)


def check_columns(columns: Sequence[tuple[str, Any, bool]]) -> None:
    """Raise ValueError if columns as the core holds them are of no kind, or of another one."""
    for kind, levels, _ in columns:
        check_kind(kind)
        if has_levels(kind) != (levels is not None):
            raise ValueError(f"A column of kind {kind} with or without levels.")


def levels_of(columns: Sequence[tuple[str, Any, bool]]) -> tuple[LevelNames | None, ...] | None:
    """Return the levels of columns as the core holds them; None: no column has levels."""
    if all(levels is None for _, levels, _ in columns):
        return None
    return tuple(None if levels is None else tuple(levels) for _, levels, _ in columns)


def table_of(table: Table, columns: Sequence[tuple[str, Any, bool]]) -> Table:
    """Return what is known of the columns, by kind, levels (None: numbers) and missing cells."""
    kinds = tuple(kind for kind, _, _ in columns)
    gaps = tuple(int(has_missing) for _, _, has_missing in columns)
    return replace(
        table,
        kinds=kinds if set(kinds) - {"number"} else None,
        levels=levels_of(columns),
        gaps=gaps if any(gaps) else None,
    )


def table_of_sample(cells: FloatArray, columns: Table) -> Table:
    """Return rows of a fit as a table: codes of levels, NaN where cells are missing."""
    missing = np.isnan(cells)
    data: list[Any] | FloatArray = cells
    if columns.levels is not None:
        data = [
            column if known is None else LevelColumn(_codes(column), len(known))
            for column, known in zip(cells.T, columns.levels, strict=True)
        ]
    gaps = tuple(np.count_nonzero(missing, axis=0).tolist())
    return replace(columns, data=data, n_samples=len(cells), gaps=gaps if missing.any() else None)


def _codes(column: FloatArray) -> npt.NDArray[np.uint8]:
    return np.where(np.isnan(column), MISSING_LEVEL, column).astype(np.uint8)


def columns_alone(n_features: int, names: list[str] | None) -> Table:
    """Return what is known of the columns of rows that are elsewhere."""
    return Table(np.empty((0, n_features)), 0, n_features, names)
