"""Columns of text: which cannot be levels, or are hardly meant to be, and the options to go on."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, field

import polars as pl

from .._base import ReadAs
from .._data.levels import form_of_many
from .._engine import MISSING_LEVEL
from .._util import listed
from .messages import DataError
from .reading import Source, is_text_column, leave_out, option_text
from .text_facts import LevelFacts, OddCells, TextFacts

# The share of odd cells up to which a column of text is one of numbers, or of times, with slips.
_FEW = 0.1


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
    other_mark: dict[str, str] = field(default_factory=dict)
    """Numbers with decimal commas; where commas are decimal ones, those with points."""
    decimal_comma: bool = False
    """Whether commas are decimal ones."""
    in_text_file: bool = True
    """Whether ``--decimal-comma`` can say so."""
    sums: list[str] = field(default_factory=list)
    """Nothing is wrong, but ``--numbers`` adds numbers up: 88+2."""
    number_like: list[str] = field(default_factory=list)
    """Nothing is wrong, but ``--numbers`` could read them."""
    other_mark_like: list[str] = field(default_factory=list)
    """Nothing is wrong, but they would be numbers if decimals followed the other mark."""
    date_like: list[str] = field(default_factory=list)
    """Nothing is wrong, but in another form they would be read as dates."""
    has_other_mark: bool = False
    """Whether some of `numbers` may have the other mark of decimals."""
    may_be_levels: list[str] = field(default_factory=list)
    """Of `slips` and `numbers`, those of few levels."""


def facts_of_text(
    source: Source, frame: pl.DataFrame, read_as: ReadAs
) -> list[TextFacts | LevelFacts]:
    """Return what there is to know of the columns of text in a whole table that was read."""
    all_facts: list[TextFacts | LevelFacts] = []
    for name in (column.name for column in frame if is_text_column(column)):
        cells, comma = source.frame[name], source.has_decimal_comma
        if name in read_as.levels:
            levels = LevelFacts(name, decimal_comma=comma)
            levels.add(cells)
            all_facts.append(levels)
        else:
            text = TextFacts(name, in_text_file=source.text is not None, decimal_comma=comma)
            text.add(source, cells.cast(pl.String))
            all_facts.append(text)
    return all_facts


def check_text(
    source: Source,
    facts: Iterable[TextFacts | LevelFacts],
    read_as: ReadAs,
    arguments: argparse.Namespace,
) -> TextRemarks:
    """Return what is to say of columns of text.

    Raises DataError for text that cannot be levels, or is hardly meant to be.
    """
    found = TextRemarks(
        decimal_comma=source.has_decimal_comma, in_text_file=source.text is not None
    )
    for column in facts:
        if isinstance(column, TextFacts):
            _look_at(column, found)
        elif column.levels.is_wide:
            found.wide[column.name] = f"{column.name!r} ({column.levels.words()})"
    if problems := _problems(found):
        raise DataError(f"{source.name}: {problems}. {_ways_out(found, read_as, arguments)}")
    return found


def _look_at(column: TextFacts, found: TextRemarks) -> None:
    """Add what is to say of a column."""
    name, is_wide = column.name, column.levels.is_wide
    is_number = bool(len(column.levels)) and column.numbers.are_numbers
    odd = _slips(column) if column.in_text_file else None
    if not is_wide:
        found.may_be_levels.append(name)
    if is_number and (is_wide or odd is not None):
        found.numbers[name] = column.example if odd is None else odd.first
        found.has_other_mark |= column.has_other_mark
    elif odd is not None and odd.have_other_mark:
        found.other_mark[name] = odd.first
    elif is_wide and column.are_swapped_numbers and column.in_text_file:
        found.other_mark[name] = column.example
    elif odd is not None:
        found.slips[name] = odd.first
    elif len(column.levels) > 1 and column.are_dates:
        if is_wide:
            found.dates[name] = column.example
        else:
            found.date_like.append(name)
    elif is_wide and not column.in_text_file and not column.odd_times.n:
        found.times[name] = column.example
    elif is_wide:
        such = f"such as {column.first_level!r:.40}"
        found.wide[name] = f"{name!r} ({column.levels.words()}, {such})"
    elif is_number and len(column.levels) > 1 and column.numbers.are_uniform:
        found.number_like.append(name)
    elif form := form_of_many(tuple(column.levels.texts or ())):
        own = "comma" if column.decimal_comma else "point"
        (found.number_like if form == own else found.other_mark_like).append(name)


def _slips(column: TextFacts) -> OddCells | None:
    """Return the cells that are no numbers, or no times, in a column where most others are.

    A number with a decimal comma is among them, and counts as one of the others.
    """
    for odd in (column.odd_numbers, column.odd_times):
        if odd.n_slips / max(column.n_cells, 1) <= _FEW:
            return odd
    return None


def _problems(found: TextRemarks) -> str:
    mark = "points" if found.decimal_comma else "commas"
    parts = [
        (f"text of more than {MISSING_LEVEL} levels", found.wide),
        ("numbers that are written as text", found.numbers),
        ("dates in another form than 2024-12-31", found.dates),
        ("dates or times that the file holds as text", found.times),
        (f"numbers with decimal {mark}", found.other_mark),
        ("numbers or times but for some cells", found.slips),
    ]
    told = [f"{what}: {listed(list(cells.values()), 'column')}" for what, cells in parts if cells]
    counted = found.numbers or found.dates or found.times or found.other_mark or found.slips
    return "; ".join(told) + (" (rows count from 0)" if counted else "")


def _ways_out(found: TextRemarks, read_as: ReadAs, arguments: argparse.Namespace) -> str:
    """Return the options to go on with."""
    ways = []
    if found.other_mark:
        way = "Leave --decimal-comma out" if found.decimal_comma else "Add --decimal-comma"
        ways.append(f"{way} if all numbers are written so; else write them alike first.")
    options = [option_text("--numbers", list(found.numbers))] if found.numbers else []
    chosen = [column for column in found.wide if column in read_as.levels]
    wide = [column for column in found.wide if column not in chosen]
    if wide and not arguments.columns:
        options.append(option_text("--drop", wide))
    if options:
        but = ", or --decimal-comma if that is what their commas are"
        but = but if found.has_other_mark and not found.decimal_comma else ""
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
