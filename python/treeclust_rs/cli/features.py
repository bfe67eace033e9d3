"""The columns to fit: which they are, how they are read, and what is said of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_

import polars as pl

from .._base import ReadAs
from .._data.number_text import FEET, has_sums
from .._util import format_count, listed
from .messages import DataError, UserError, write_remark
from .methods import MIXED_METHODS
from .reading import Source, is_text_column, option_text
from .text_columns import TextRemarks, check_text, facts_of_text

_KINDS = (
    ("numbers", pl.selectors.numeric() | pl.selectors.by_dtype(pl.Null)),
    ("true and false", pl.selectors.boolean()),
    ("dates", pl.selectors.date()),
    ("times", pl.selectors.datetime() | pl.selectors.duration()),
    ("text", pl.selectors.string() | pl.selectors.categorical() | pl.selectors.enum()),
)


def features(
    source: Source,
    columns: list[str],
    arguments: argparse.Namespace,
    read_as: ReadAs,
    *,
    mixed: bool,
    instead: str = MIXED_METHODS,
) -> pl.DataFrame:
    """Return the columns to fit, and tell what they hold.

    Parameters
    ----------
    source : Source
        The table.
    columns : list of str
        Its columns to fit.
    arguments : Namespace
        The options.
    read_as : ReadAs
        What `chosen_reading` returned.
    mixed : bool
        Whether text, times and missing cells are taken; if not, the columns are numbers.
    instead : str
        What to say of them where they are not taken.

    Raises
    ------
    DataError
        For columns that cannot be fitted: the message names the options to go on with.
    """
    chosen_by = chosen_by_option(arguments)
    found = TextRemarks()
    if mixed:
        frame = source.typed(columns, read_as, chosen_by)
        facts = facts_of_text(source, frame, read_as)
        found = check_text(source, facts, read_as, arguments)
    else:
        frame = source.numbers(columns, read_as, chosen_by=chosen_by, instead=f" {instead}")
    texts = [source.frame[name] for name in read_as.numbers if is_text_column(source.frame[name])]
    found.sums = [cells.name for cells in texts if has_sums(cells.cast(pl.String))]
    gaps = Gaps()
    gaps.add(frame, source.row)
    tell_features(source.name, frame.clear(), gaps, read_as, found, arguments)
    return frame


def chosen_by_option(arguments: argparse.Namespace) -> str:
    """Return the option that chooses other columns to fit."""
    return "--columns" if arguments.columns else "--drop"


@dataclass
class Gaps:
    """Where cells are missing in the rows that were looked at so far."""

    n_rows: int = 0
    n_missing: list[int] = field(default_factory=list)
    """By column the number of missing cells."""
    n_empty: int = 0
    """Rows without any cell."""
    infinite: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By column the number of infinite cells, and the words for the row of the first."""

    def add(self, frame: pl.DataFrame, row_words: Callable[[int], str]) -> None:
        """Look at the columns of more rows; `row_words`: for a row."""
        missing = [_missing(column) for column in frame]
        found = [int(column.sum()) for column in missing]
        before = self.n_missing or [0] * len(found)
        self.n_missing = [n + more for n, more in zip(before, found, strict=True)]
        self.n_rows += frame.height
        if all(found):
            self.n_empty += int(reduce(and_, missing).sum())
        for column in frame:
            if not column.dtype.is_float():
                continue
            infinite = column.is_infinite().fill_null(False)
            if infinite.any():
                n, first = self.infinite.get(column.name, (0, ""))
                first = first or row_words(infinite.arg_max() or 0)
                self.infinite[column.name] = n + int(infinite.sum()), first


def tell_features(
    name: str,
    head: pl.DataFrame,
    gaps: Gaps,
    read_as: ReadAs,
    found: TextRemarks,
    arguments: argparse.Namespace,
) -> None:
    """Write remarks on what the columns to fit hold.

    `name`: of the table; `head`: the columns without rows.
    """
    size = f"{format_count(gaps.n_rows, 'row')}, {format_count(head.width, 'column')}"
    write_remark(f"{name}: {size}{_what_they_hold(head, gaps)}.", arguments)
    if read_as.numbers:
        write_remark(f"numbers in text: {numbers_words(read_as)}.", arguments)
    if found.sums:
        write_remark(f"sums were added up, such as 88+2 to 90: {listed(found.sums)}.", arguments)
    if found.number_like:
        option = option_text("--numbers", found.number_like)
        write_remark(f"text that looks like numbers is text; for numbers add {option}", arguments)
    if found.other_mark_like:
        names = ", ".join(found.other_mark_like)
        way = "leave --decimal-comma out" if found.decimal_comma else "add --decimal-comma"
        way = f"{way}, or write all columns alike" if found.in_text_file else "write points"
        mark = "points" if found.decimal_comma else "commas"
        write_remark(
            f"text that looks like numbers with decimal {mark} is text: {names}; for numbers {way}",
            arguments,
        )
    if found.date_like:
        names = ", ".join(found.date_like)
        write_remark(f"dates that are not written as 2024-12-31 are text: {names}.", arguments)


def is_mixed(frame: pl.DataFrame) -> bool:
    """Whether a table has text, times or missing cells."""
    return any(
        not (column.dtype.is_numeric() or column.dtype == pl.Boolean) or _missing(column).any()
        for column in frame
    )


def chosen_reading(
    source: Source,
    columns: list[str],
    arguments: argparse.Namespace,
    others: Sequence[ReadAs] = (),
) -> ReadAs:
    """Return how ``--numbers`` and ``--levels`` read columns, else `others`, of models.

    Raises DataError for columns that are not fitted or cannot be read so.
    """
    numbers, levels = read_by_options(source, columns, arguments)
    for other in others:
        taken = {*numbers, *levels}
        numbers += [name for name in other.numbers if name in columns and name not in taken]
        levels += [name for name in other.levels if name in columns and name not in taken]
    return ReadAs({column: source.read_numbers(column).unit for column in numbers}, tuple(levels))


def read_by_options(
    source: Source, columns: list[str], arguments: argparse.Namespace
) -> tuple[list[str], list[str]]:
    """Return the columns that ``--numbers`` and ``--levels`` name.

    Raises DataError for columns that are not fitted, UserError for one in both.
    """
    named = {}
    for option, given in (("--numbers", arguments.numbers), ("--levels", arguments.levels)):
        named[option] = named_columns(given, source)
        missing = [column for column in named[option] if column not in columns]
        if missing:
            raise DataError(f"{option}: {missing[0]!r} is not among the columns that are fitted.")
    numbers, levels = named["--numbers"], named["--levels"]
    both = [column for column in numbers if column in levels]
    if both:
        raise UserError(f"{both[0]!r} is given by --numbers and by --levels: give one of them.")
    return numbers, levels


def chosen_columns(source: Source, arguments: argparse.Namespace) -> list[str]:
    """Return the columns to fit: those of `--columns`, or all but `--drop` and labels."""
    everything = source.frame.columns
    named = named_columns(arguments.columns or arguments.drop, source)
    chosen = named if arguments.columns else [name for name in everything if name not in named]
    # `compare` has true classes beside the reference.
    kinds = {"reference": arguments.reference, "labels": getattr(arguments, "labels", None)}
    apart = {column: kind for kind, column in kinds.items() if column is not None}
    source.require(apart)
    columns = [name for name in chosen if name not in apart]
    if not columns:
        besides = f", besides the {' and the '.join(apart.values())}," if apart else ""
        raise DataError(f"no column of {source.name}{besides} is left to fit.")
    for column, kind in apart.items():
        if column in named and arguments.columns:
            are = "is the reference" if kind == "reference" else "holds the labels"
            write_remark(f"the column {column!r} {are}, and so no feature.", arguments)
    return columns


def named_columns(options: list[str], source: Source) -> list[str]:
    """Return the columns that options such as `--drop` name, commas in names included."""
    known = source.frame.columns
    names: list[str] = []
    for option in options:
        parts = [option] if option in known else option.split(",")
        names.extend(part if part in known else part.strip() for part in parts)
    source.require(names)
    return list(dict.fromkeys(names))


def _what_they_hold(head: pl.DataFrame, gaps: Gaps) -> str:
    """Return what the columns of a table hold; nothing if it is complete numbers."""
    if not is_mixed(head) and not any(gaps.n_missing) and pl.Boolean not in head.dtypes:
        return ""
    kinds = []
    for what, selector in _KINDS:
        names = pl.selectors.expand_selector(head, selector)
        if names and what == "numbers":
            kinds.append(f"{len(names):,} of numbers")
        elif names:
            kinds.append(f"{len(names):,} of {what} ({listed(list(names))})")
    n_columns = sum(map(bool, gaps.n_missing))
    if not n_columns:
        return f": {', '.join(kinds)}"
    text = f": {', '.join(kinds)}; missing cells in {format_count(n_columns, 'column')}"
    if not gaps.n_empty:
        return text
    are = "row of gaps alone is" if gaps.n_empty == 1 else "rows of gaps alone are"
    return f"{text}; {gaps.n_empty:,} {are} left out of the fit"


def _missing(column: pl.Series) -> pl.Series:
    """Return where cells are missing: null or NaN."""
    return column.is_null() | column.is_nan() if column.dtype.is_float() else column.is_null()


def numbers_words(read_as: ReadAs, written: Callable[[str], str] = str) -> str:
    """Return the columns that ``--numbers`` reads, by the units that their cells had.

    `written`: how a name is written.
    """
    columns: dict[str, list[str]] = {}
    for column, unit in read_as.numbers.items():
        columns.setdefault(unit, []).append(written(column))
    words = {"": "", FEET: " in inches"}
    return "; ".join(
        f"{listed(names)}{words.get(unit, f' without {unit}')}" for unit, names in columns.items()
    )
