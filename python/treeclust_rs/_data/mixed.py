"""Frames as people have them: numbers with gaps, levels, flags and times, read in fit and predict.

The type of a column decides what it holds, never its values. Missing are nulls of polars and
pyarrow, None, NaN, NaT and NA of pandas, and NaN everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._engine import ColumnData, Columns
from .._util import listed, warn_user
from .arrays import check_shape
from .cells import Cells
from .frames import FrameSource, count_rows
from .kinds import TO_A_KIND, Kind, has_levels, is_time, kind_words
from .levels import (
    FLAG_LEVELS,
    LevelNames,
    NumberForm,
    Texts,
    TimeForm,
    check_numbers_of_levels,
    column_call,
    fitted_levels,
    flags_meant,
    form_of_numbers,
    form_of_times,
    numbers_meant,
    times_meant,
    unknown_levels,
)
from .times import MICROSECONDS


class MixedColumns(NamedTuple):
    """Columns of a frame."""

    data: Columns
    kinds: tuple[Kind, ...] | None
    """None: all are numbers."""
    levels: tuple[LevelNames | None, ...] | None
    """By column, None where it has none; as a whole None if no column has."""


class FittedColumns(NamedTuple):
    """What the columns of a fit hold: as a tree keeps it."""

    kinds: Sequence[Kind] | None
    levels: Sequence[LevelNames | None] | None

    def kind(self, column: int) -> Kind:
        return "number" if self.kinds is None else self.kinds[column]

    def known_levels(self, column: int) -> LevelNames | None:
        return None if self.levels is None else self.levels[column]


def check_kinds(
    source: FrameSource, positions: Sequence[int], estimator_name: str
) -> tuple[Kind, ...]:
    """Return what some columns of a frame hold.

    Raises
    ------
    TypeError
        If a column is neither numbers, levels nor times.
    ValueError
        If there is no column.
    """
    if not positions:
        check_shape((source.n_rows or 0, 0), estimator_name)
    kinds = source.kinds(positions)
    bad = [
        source.name_and_type(position)
        for position, kind in zip(positions, kinds, strict=True)
        if kind is None
    ]
    if bad:
        them = "it" if len(bad) == 1 else "them"
        raise TypeError(
            f"X has columns that are neither numbers nor text, booleans, dates or times: "
            f"{listed(bad, 'column')}. Make numbers, text or dates of {them} ({TO_A_KIND}), or "
            f"drop {them}."
        )
    return tuple(kind for kind in kinds if kind is not None)


def read_cells(
    source: FrameSource, positions: Sequence[int], estimator_name: str
) -> tuple[list[Cells] | npt.NDArray[Any], tuple[Kind, ...]]:
    """Return some columns of a frame, text as it holds it, and their kinds.

    Numbers alone are one array if that is how the frame holds them. Raises as `read_mixed`, but not
    for levels.
    """
    kinds = check_kinds(source, positions, estimator_name)
    block = _block(source, positions, kinds)
    if block is not None:
        check_shape(block.shape, estimator_name)
        return block, kinds
    return source.cells(positions, kinds), kinds


def read_mixed(source: FrameSource, positions: Sequence[int], estimator_name: str) -> MixedColumns:
    """Read some columns of a frame in a fit.

    Raises
    ------
    TypeError
        As `check_kinds`, and for objects of pandas that are no text.
    ValueError
        For no rows, more than 255 levels, times too far from 1970.
    """
    cells_of, kinds = read_cells(source, positions, estimator_name)
    if not isinstance(cells_of, list):
        return MixedColumns(cells_of, None, None)
    names = [source.names[position] for position in positions]
    data, levels = coded_columns(cells_of, kinds, names, estimator_name)
    any_levels = any(known is not None for known in levels)
    return MixedColumns(
        data, kinds if set(kinds) - {"number"} else None, levels if any_levels else None
    )


def coded_columns(
    cells_of: Sequence[ColumnData | Texts],
    kinds: Sequence[Kind],
    names: Sequence[Any],
    estimator_name: str,
) -> tuple[list[ColumnData], tuple[LevelNames | None, ...]]:
    """Return columns with texts as codes, and by column the levels that occur; None: numbers.

    Flags have both of theirs. Raises ValueError for no rows and more than 255 levels.
    """
    levels: list[LevelNames | None] = []
    for name, kind, cells in zip(names, kinds, cells_of, strict=True):
        known = None
        if isinstance(cells, Texts):
            known = tuple(cells.texts) if kind == "flag" else fitted_levels(cells, name)
        levels.append(known)
    by_name = zip(names, levels, strict=True)
    check_numbers_of_levels({name: known for name, known in by_name if known is not None})
    data: list[ColumnData] = [
        cells.coded(known or ()) if isinstance(cells, Texts) else cells
        for cells, known in zip(cells_of, levels, strict=True)
    ]
    check_shape((count_rows(data), len(data)), estimator_name)
    return data, tuple(levels)


def _block(
    source: FrameSource, positions: Sequence[int], kinds: Sequence[Kind]
) -> npt.NDArray[Any] | None:
    """Return columns of numbers as one array if that is how the frame holds them, else None."""
    return source.block(positions) if set(kinds) == {"number"} else None


def read_as_fitted(
    source: FrameSource,
    positions: Sequence[int],
    fitted: FittedColumns,
    columns: Sequence[int],
    estimator_name: str,
) -> tuple[Columns, dict[int, Texts]]:
    """Read some columns of a frame as the columns of a fit.

    Parameters
    ----------
    source : FrameSource
        The frame.
    positions : sequence of int
        The columns to read.
    fitted : FittedColumns
        What the columns of the fit hold.
    columns : sequence of int
        The columns of the fit that they stand for.
    estimator_name : str
        Named in messages.

    Returns
    -------
    data : Columns
        The columns; levels that the fit did not have are missing.
    unknown : dict
        By column of the fit the cells of those that have such levels.

    Raises
    ------
    TypeError
        If a column holds something else than in the fit; one without any value never does.
    ValueError
        For no rows, and times too far from 1970.

    Warns
    -----
    UserWarning
        Once, of levels that the fit did not have: they count as missing.
    """
    kinds = check_kinds(source, positions, estimator_name)
    wanted_kinds = [fitted.kind(column) for column in columns]
    block = _block(source, positions, (*kinds, *wanted_kinds))
    if block is not None:
        check_shape(block.shape, estimator_name)
        return block, {}
    data: list[ColumnData] = []
    unknown: dict[int, Texts] = {}
    remarks, changed = [], []
    for position, read, kind, wanted, column in zip(
        positions, source.cells(positions, kinds), kinds, wanted_kinds, columns, strict=True
    ):
        cells = _converted(read, kind, wanted)
        if cells is None:
            now = f"{kind_words(kind)} ({source.type_of(position)})"
            texts: LevelNames = ()
            if isinstance(read, Texts):
                texts = tuple(read.texts[place] for place in read.present())
            is_number = wanted == "number" and texts
            form = form_of_numbers(texts, were_numbers=True) if is_number else None
            time = form_of_times(texts) if is_time(wanted) else None
            if time is not None and "time_zone" in time:
                steps = _steps("datetime[UTC]", wanted)
                time = time if steps is None else f"{time}.{steps}"
            steps = None if isinstance(read, Texts) else _steps(kind, wanted)
            name = source.names[position]
            changed.append(_Changed(name, kind_words(wanted), now, form, time, steps))
        elif isinstance(cells, Texts):
            known = fitted.known_levels(column)
            assert known is not None, "text was text in the fit"
            new = unknown_levels(cells, known)
            if new:
                unknown[column] = cells
                remark = unknown_words(source.names[position], new, wanted)
                if wanted == "flag":
                    present = {cells.texts[place] for place in cells.present()}
                    if present.isdisjoint(FLAG_LEVELS):
                        remark += f" ({flags_meant(source.names[position], new)})"
                remarks.append(remark)
            data.append(cells.coded(known))
        else:
            data.append(cells)
    if changed:
        raise TypeError(_changed_message(changed, estimator_name))
    check_shape((count_rows(data), len(data)), estimator_name)
    if remarks:
        warn_user(unknown_message(remarks, estimator_name))
    return data, unknown


class _Changed(NamedTuple):
    """A column that holds something else than in the fit."""

    name: str
    was: str
    now: str
    form: NumberForm | None
    """How its texts are written as numbers, where numbers were."""
    time: TimeForm | None
    """How its texts are read as times, where times were."""
    steps: str | None
    """What of polars converts it, where it is no text."""


def _changed_message(changed: list[_Changed], estimator_name: str) -> str:
    """Say which columns hold something else than in the fit, and how they are converted."""
    first = changed[0]
    words = (
        f"Column {first.name!r} held {first.was} when {estimator_name} was fitted, and now holds "
        f"{first.now}"
    )
    others = [f"{other.name!r} {other.was}, now {other.now}" for other in changed[1:]]
    if others:
        words += f"; so do others: {listed(others, 'column')}"
    them, they = ("it", "it") if not others else ("them", "they")
    forms = {other.name: other.form for other in changed if other.form is not None}
    meant = f" {numbers_meant(forms, were_numbers=True)}" if forms else ""
    times = {other.name: other.time for other in changed if other.time is not None}
    meant += f" {times_meant(times)}" if times else ""
    calls = [f"{column_call(it.name)}.{it.steps}" for it in changed if it.steps is not None]
    meant += f" In polars: X = X.with_columns({', '.join(calls)})." if calls else ""
    return f"{words}. Convert {them} to the type that {they} had.{meant}"


def _steps(kind: Kind, wanted: Kind) -> str | None:
    """Return the methods of polars that make a column one of another kind; None: it has none."""
    if kind == "number":
        return {"levels": "cast(pl.String)", "flag": "cast(pl.Boolean)"}.get(wanted)
    if "duration" in (kind, wanted) or not (is_time(kind) and is_time(wanted)):
        return None
    if wanted == "date":
        return "dt.date()"
    if wanted == "datetime[]":
        return "dt.replace_time_zone(None)"
    zone = wanted.removeprefix("datetime[").removesuffix("]")
    if zone.startswith(("UTC+", "UTC-")):
        return None  # polars has no zones of offsets
    times = 'cast(pl.Datetime("us")).' if kind == "date" else ""
    return f'{times}dt.replace_time_zone("{zone}")'


def unknown_words(name: str, new: list[str], kind: Kind) -> str:
    """Return the words for the levels of a column that the fit did not have; `kind`: its own."""
    which = f"column {name!r}"
    if kind == "flag":
        which += ", true and false in the fit,"
    return f"{which} has {listed([repr(level) for level in new], 'level')}"


def unknown_message(remarks: list[str], estimator_name: str) -> str:
    """Return the warning of levels that the fit did not have; `remarks`: words for each column."""
    return (
        f"X has levels that {estimator_name} did not see in the fit: "
        f"{listed(remarks, 'column', '; ')}. They count as missing."
    )


_DAY = MICROSECONDS["d"]


def _converted(cells: Cells, kind: Kind, wanted: Kind) -> Cells | None:
    """Return cells as those of another kind of column, None if they are none."""
    wants_text = has_levels(wanted)
    if isinstance(cells, Texts):
        if wanted == "flag" and kind != "flag":
            # Python and pandas write True and False.
            small = ((text, text.lower()) for text in cells.texts)
            return cells._replace(
                texts=[low if low in FLAG_LEVELS else text for text, low in small]
            )
        if wants_text:
            return cells
        if (kind, wanted) != ("flag", "number") and (cells.codes >= 0).any():
            return None
        # As in tables of numbers alone, booleans are 0 and 1.
        return np.where(cells.codes < 0, np.nan, cells.codes)
    if kind == wanted or (_is_zoned(kind) and _is_zoned(wanted)):
        return cells
    if cells.dtype.kind == "f" and np.isnan(cells).all():
        return Texts(np.full(len(cells), -1), (), is_ordered=False) if wants_text else cells
    if {kind, wanted} == {"date", "datetime[]"}:
        return np.floor_divide(cells, _DAY) * _DAY if wanted == "date" else cells
    return None


def _is_zoned(kind: Kind) -> bool:
    return kind.startswith("datetime") and kind != "datetime[]"
