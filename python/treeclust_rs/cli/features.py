"""The columns to fit: which they are, how they are read, and what is said of them."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import polars as pl

from .._base import ReadAs
from .._engine import MISSING_LEVEL
from .._util import format_count, listed
from .cells import DECIMAL_COMMA, odd_numbers, odd_times, plain
from .messages import DataError, UserError, write_remark
from .methods import MIXED_METHODS
from .number_text import FEET, read_numbers
from .reading import Source, is_text_column, leave_out

# Cells of a column that are looked at before all are.
_N_SAMPLED = 1_000
# The share of its cells that makes a column of text one of numbers, or of times, with slips in it.
_MOST = 0.9
# Dates with or without a time, in any order of day, month and year.
_DATE = r"^(\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./]\d{1,2}[./]\d{1,2})([ T,].*)?$"
_COMMA = f"^{DECIMAL_COMMA.pattern}$"
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
    chosen_by = "--columns" if arguments.columns else "--drop"
    found = _Remarks()
    if mixed:
        frame = source.typed(columns, read_as, chosen_by)
        found = _check_text(source, frame, read_as, arguments)
    else:
        frame = source.numbers(columns, read_as, chosen_by=chosen_by, instead=f" {instead}")
    size = f"{format_count(frame.height, 'row')}, {format_count(frame.width, 'column')}"
    write_remark(f"{source.name}: {size}{_what_they_hold(frame)}.", arguments)
    if any(read_as.numbers.values()):
        write_remark(f"numbers in text: {_units(read_as)}.", arguments)
    if found.number_like:
        option = _option("--numbers", found.number_like)
        write_remark(f"text that looks like numbers is text; for numbers add {option}", arguments)
    if found.date_like:
        names = ", ".join(found.date_like)
        write_remark(f"dates that are not written as 2024-12-31 are text: {names}.", arguments)
    return frame


def is_mixed(frame: pl.DataFrame) -> bool:
    """Whether a table has text, times or missing cells."""
    return any(
        column.has_nulls()
        or not (column.dtype.is_numeric() or column.dtype == pl.Boolean)
        or (column.dtype.is_float() and column.is_nan().any())
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
    for other in others:
        taken = {*numbers, *levels}
        numbers += [name for name in other.numbers if name in columns and name not in taken]
        levels += [name for name in other.levels if name in columns and name not in taken]
    return ReadAs({column: source.read_numbers(column)[1] for column in numbers}, tuple(levels))


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


# ---- text ---------------------------------------------------------------------------------------


@dataclass
class _Remarks:
    """What is wrong with columns of text, by what can be done about it: column to words."""

    wide: dict[str, str] = field(default_factory=dict)
    """More levels than are taken."""
    numbers: dict[str, str] = field(default_factory=dict)
    """More levels than are taken, or mostly numbers: all can be read by ``--numbers``."""
    slips: dict[str, str] = field(default_factory=dict)
    """Numbers or times but for a few cells."""
    dates: dict[str, str] = field(default_factory=dict)
    """More levels than are taken: dates in another form than is read."""
    commas: dict[str, str] = field(default_factory=dict)
    """Numbers with decimal commas."""
    number_like: list[str] = field(default_factory=list)
    """Nothing is wrong, but ``--numbers`` could read them."""
    date_like: list[str] = field(default_factory=list)
    """Nothing is wrong, but in another form they would be read as dates."""
    has_commas: bool = False
    """Whether some of `numbers` may have decimal commas."""
    may_be_levels: list[str] = field(default_factory=list)
    """Of `slips` and `numbers`, those of few levels."""


def _check_text(
    source: Source, frame: pl.DataFrame, read_as: ReadAs, arguments: argparse.Namespace
) -> _Remarks:
    """Return what is to say of columns of text.

    Raises DataError for text that cannot be levels, or is hardly meant to be.
    """
    found = _Remarks()
    for column in frame:
        if is_text_column(column):
            _look_at(source, column, column.name in read_as.levels, found)
    if problems := _problems(found):
        raise DataError(f"{source.name}: {problems}. {_ways_out(found, read_as, arguments)}")
    return found


def _look_at(source: Source, column: pl.Series, chosen: bool, found: _Remarks) -> None:
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
    elif is_wide:
        found.wide[name] = f"{name!r} ({n_levels:,} levels, such as {cells.drop_nulls()[0]!r:.40})"
    elif is_number and n_levels > 1 and read.is_uniform:
        found.number_like.append(name)


def _slips(cells: pl.Series, decimal_comma: bool) -> pl.Series | None:
    """Return the cells that are no numbers, or no times, in a column where most others are."""
    some = cells.drop_nulls()
    some = some.gather_every(1 + len(some) // _N_SAMPLED)
    for odd_cells in (partial(odd_numbers, decimal_comma=decimal_comma), odd_times):
        # A sample first: most columns of text hold neither.
        for part, share in ((some, _MOST / 2), (cells, _MOST)):
            odd = odd_cells(part)
            slips = odd
            if odd_cells is not odd_times and not decimal_comma:
                slips = odd & ~part.str.contains(_COMMA).fill_null(False)
            if int(slips.sum()) > (1 - share) * part.count():
                break
        else:
            return odd
    return None


def _problems(found: _Remarks) -> str:
    parts = [
        (f"text of more than {MISSING_LEVEL} levels", found.wide),
        ("numbers that are written as text", found.numbers),
        ("dates in another form than 2024-12-31", found.dates),
        ("numbers with decimal commas", found.commas),
        ("numbers or times but for some cells", found.slips),
    ]
    told = [f"{what}: {listed(list(cells.values()), 'column')}" for what, cells in parts if cells]
    counted = found.numbers or found.dates or found.commas or found.slips
    return "; ".join(told) + (" (rows count from 0)" if counted else "")


def _ways_out(found: _Remarks, read_as: ReadAs, arguments: argparse.Namespace) -> str:
    """Return the options to go on with."""
    ways = []
    if found.commas:
        ways.append("Add --decimal-comma.")
    options = [_option("--numbers", list(found.numbers))] if found.numbers else []
    chosen = [column for column in found.wide if column in read_as.levels]
    wide = [column for column in found.wide if column not in chosen]
    if wide and not arguments.columns:
        options.append(_option("--drop", wide))
    if options:
        but = ", or --decimal-comma if that is what their commas are" if found.has_commas else ""
        ways.append(f"To go on, add {' '.join(options)}{but}.")
    if wide and arguments.columns:
        ways.append(f"Take {','.join(wide)} out of --columns.")
    if chosen:
        ways.append(f"Take {','.join(chosen)} out of --levels.")
    for columns, what in (
        (found.dates, "Write dates as 2024-12-31"),
        (found.slips, "Mend or empty these cells"),
    ):
        if columns:
            way = leave_out(list(columns), "--columns" if arguments.columns else "--drop")
            ways.append(f"{what}, or {way}.")
    levels = [column for column in (*found.numbers, *found.slips) if column in found.may_be_levels]
    if levels:
        ways.append(f"To take them as text, add {_option('--levels', levels)}.")
    return " ".join(ways)


def _option(option: str, columns: list[str]) -> str:
    """Return an option with columns, each with a comma in its name in an option of its own."""
    plain_names = [name for name in columns if "," not in name]
    values = [",".join(plain_names)] if plain_names else []
    values += [name for name in columns if "," in name]
    return " ".join(f"{option} {shlex.quote(value)}" for value in values)


# ---- remarks ------------------------------------------------------------------------------------


def _what_they_hold(frame: pl.DataFrame) -> str:
    """Return what the columns of a table hold; nothing if it is complete numbers."""
    if not is_mixed(frame) and pl.Boolean not in frame.dtypes:
        return ""
    kinds = []
    for what, selector in _KINDS:
        names = pl.selectors.expand_selector(frame, selector)
        if names and what == "numbers":
            kinds.append(f"{len(names):,} of numbers")
        elif names:
            kinds.append(f"{len(names):,} of {what} ({listed(list(names))})")
    missing = [column for column in frame if column.has_nulls()]
    gaps = f"; missing cells in {format_count(len(missing), 'column')}" if missing else ""
    return f": {', '.join(kinds)}{gaps}"


def _units(read_as: ReadAs) -> str:
    """Return the columns by the units that their cells had."""
    columns: dict[str, list[str]] = {}
    for column, unit in read_as.numbers.items():
        if unit:
            columns.setdefault(unit, []).append(column)
    return "; ".join(
        f"{listed(names)} {'in inches' if unit == FEET else f'without {unit}'}"
        for unit, names in columns.items()
    )
