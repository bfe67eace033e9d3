"""Columns of text: which cannot be levels, or are hardly meant to be, and the options to go on."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from functools import partial

import polars as pl

from .._base import ReadAs
from .._data.levels import form_of_many
from .._data.number_text import plain, read_numbers
from .._engine import MISSING_LEVEL
from .._util import listed
from .cells import DECIMAL_COMMA, odd_numbers, odd_times
from .messages import DataError
from .reading import Source, is_text_column, leave_out, option_text

# Cells of a column that are looked at before all are.
_N_SAMPLED = 1_000
# The share of odd cells up to which a column of text is one of numbers, or of times, with slips.
_FEW = 0.1
# Dates with or without a time, in any order of day, month and year.
_DATE = r"^(\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./]\d{1,2}[./]\d{1,2})([ T,].*)?$"
_COMMA = f"^{DECIMAL_COMMA.pattern}$"


@dataclass
class TextRemarks:
    """What is wrong with columns of text, by what can be done about it: column to words."""

    wide: dict[str, str] = field(default_factory=dict)
    """More levels than are taken."""
    numbers: dict[str, str] = field(default_factory=dict)
    """More levels than are taken, or mostly numbers: all can be read by ``--numbers``."""
    slips: dict[str, str] = field(default_factory=dict)
    """Numbers or times but for a few cells."""
    dates: dict[str, str] = field(default_factory=dict)
    """More levels than are taken: dates in another form than is read."""
    times: dict[str, str] = field(default_factory=dict)
    """More levels than are taken: dates or times that a file with types holds as text."""
    commas: dict[str, str] = field(default_factory=dict)
    """Numbers with decimal commas."""
    number_like: list[str] = field(default_factory=list)
    """Nothing is wrong, but ``--numbers`` could read them."""
    comma_like: list[str] = field(default_factory=list)
    """Nothing is wrong, but they would be numbers if decimal commas were points."""
    date_like: list[str] = field(default_factory=list)
    """Nothing is wrong, but in another form they would be read as dates."""
    has_commas: bool = False
    """Whether some of `numbers` may have decimal commas."""
    may_be_levels: list[str] = field(default_factory=list)
    """Of `slips` and `numbers`, those of few levels."""


def check_text(
    source: Source, frame: pl.DataFrame, read_as: ReadAs, arguments: argparse.Namespace
) -> TextRemarks:
    """Return what is to say of columns of text.

    Raises DataError for text that cannot be levels, or is hardly meant to be.
    """
    found = TextRemarks()
    for column in frame:
        if is_text_column(column):
            _look_at(source, column, column.name in read_as.levels, found)
    if problems := _problems(found):
        raise DataError(f"{source.name}: {problems}. {_ways_out(found, read_as, arguments)}")
    return found


def _look_at(source: Source, column: pl.Series, chosen: bool, found: TextRemarks) -> None:
    """Add what is to say of a column; `chosen`: whether ``--levels`` names it."""
    name, cells = column.name, source.frame[column.name].cast(pl.String)
    n_levels = column.drop_nulls().n_unique()
    is_wide, comma = n_levels > MISSING_LEVEL, source.has_decimal_comma
    example = source.cell(cells, column.is_not_null()) if n_levels else ""
    if chosen:
        if is_wide:
            found.wide[name] = f"{name!r} ({n_levels:,} levels)"
        return
    read = read_numbers(plain(cells, comma))
    is_number = bool(n_levels) and not read.is_odd.any()
    odd = None if source.text is None else _slips(cells, comma)
    if not is_wide:
        found.may_be_levels.append(name)
    if is_number and (is_wide or odd is not None):
        found.numbers[name] = example if odd is None else source.cell(cells, odd)
        found.has_commas |= not comma and bool(cells.str.contains(_COMMA).any())
    elif odd is not None and not comma and cells.filter(odd).str.contains(_COMMA).all():
        found.commas[name] = source.cell(cells, odd)
    elif odd is not None:
        found.slips[name] = source.cell(cells, odd)
    elif n_levels > 1 and cells.str.strip_chars().drop_nulls().str.contains(_DATE).all():
        if is_wide:
            found.dates[name] = example
        else:
            found.date_like.append(name)
    elif is_wide and source.text is None and not odd_times(cells).any():
        found.times[name] = example
    elif is_wide:
        found.wide[name] = f"{name!r} ({n_levels:,} levels, such as {cells.drop_nulls()[0]!r:.40})"
    elif is_number and n_levels > 1 and read.is_uniform:
        found.number_like.append(name)
    elif form := form_of_many(tuple(column.drop_nulls().unique().cast(pl.String))):
        (found.comma_like if form == "comma" else found.number_like).append(name)


def _slips(cells: pl.Series, decimal_comma: bool) -> pl.Series | None:
    """Return the cells that are no numbers, or no times, in a column where most others are.

    A number with a decimal comma is returned among them, and counts as one of the others.
    """
    # A sample first: most columns of text hold neither.
    sample = cells.drop_nulls()
    sample = sample.gather_every(1 + len(sample) // _N_SAMPLED)
    for odd_cells in (partial(odd_numbers, decimal_comma=decimal_comma), odd_times):
        if _share_of_slips(odd_cells(sample), sample) < 0.5:
            odd = odd_cells(cells)
            if _share_of_slips(odd, cells) <= _FEW:
                return odd
    return None


def _share_of_slips(odd: pl.Series, cells: pl.Series) -> float:
    slips = odd & ~cells.str.contains(_COMMA).fill_null(False)
    return int(slips.sum()) / max(cells.count(), 1)


def _problems(found: TextRemarks) -> str:
    parts = [
        (f"text of more than {MISSING_LEVEL} levels", found.wide),
        ("numbers that are written as text", found.numbers),
        ("dates in another form than 2024-12-31", found.dates),
        ("dates or times that the file holds as text", found.times),
        ("numbers with decimal commas", found.commas),
        ("numbers or times but for some cells", found.slips),
    ]
    told = [f"{what}: {listed(list(cells.values()), 'column')}" for what, cells in parts if cells]
    counted = found.numbers or found.dates or found.times or found.commas or found.slips
    return "; ".join(told) + (" (rows count from 0)" if counted else "")


def _ways_out(found: TextRemarks, read_as: ReadAs, arguments: argparse.Namespace) -> str:
    """Return the options to go on with."""
    ways = []
    if found.commas:
        ways.append("Add --decimal-comma.")
    options = [option_text("--numbers", list(found.numbers))] if found.numbers else []
    chosen = [column for column in found.wide if column in read_as.levels]
    wide = [column for column in found.wide if column not in chosen]
    if wide and not arguments.columns:
        options.append(option_text("--drop", wide))
    if options:
        but = ", or --decimal-comma if that is what their commas are" if found.has_commas else ""
        ways.append(f"To go on, add {' '.join(options)}{but}.")
    if wide and arguments.columns:
        ways.append(f"Take {','.join(wide)} out of --columns.")
    if chosen:
        ways.append(f"Take {','.join(chosen)} out of --levels.")
    for columns, what in (
        (found.dates, "Write dates as 2024-12-31"),
        (found.times, "Write them with a type of dates or times"),
        (found.slips, "Mend or empty these cells"),
    ):
        if columns:
            way = leave_out(list(columns), "--columns" if arguments.columns else "--drop")
            ways.append(f"{what}, or {way}.")
    levels = [column for column in (*found.numbers, *found.slips) if column in found.may_be_levels]
    if levels:
        ways.append(f"To take them as text, add {option_text('--levels', levels)}.")
    return " ".join(ways)
