"""Tables from disk for the command: text files of any separator and encoding, and Parquet.

A text file is read as text, cell by cell, and a column becomes numbers when it is needed. So a
message can show the cell that is no number, columns that are not used may hold anything, and
`predict` writes the cells back as they were. Several files of the same columns are one table.
"""

import argparse
import shlex
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from glob import glob
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy.typing as npt
import polars as pl

from .._util import format_count
from .._util.words import MAX_LISTED
from .messages import DataError, FileError, UserError, either, one_line
from .text_files import DECIMAL_COMMA, TextFormat, quoted, read_text

TABLE_SUFFIXES = {
    ".csv": ",",
    ".tsv": "\t",
    ".txt": "\t",
    ".csv.gz": ",",
    ".tsv.gz": "\t",
    ".txt.gz": "\t",
    ".parquet": "",
    ".pq": "",
}
"""The separator of each kind of table; none for Parquet."""

# Texts of missing cells, in small letters.
_MISSING = ["", "na", "n/a", "nan", "null"]
_MAX_SHOWN = 40


def suffix_of(name: str | Path) -> str | None:
    """Return the ending, of those in `TABLE_SUFFIXES`, of a file's name; None if it has none."""
    return next((end for end in TABLE_SUFFIXES if str(name).lower().endswith(end)), None)


@dataclass(frozen=True, slots=True)
class Source:
    """A table that was read: of text files every cell as text, None where it is empty."""

    files: tuple[tuple[str, int], ...]
    """Name and number of rows of each file, in order."""
    frame: pl.DataFrame
    text: TextFormat | None
    """None for Parquet, whose columns have types."""

    @property
    def name(self) -> str:
        """What messages call the table."""
        first, more = self.files[0][0], len(self.files) - 1
        return f"{first} and {format_count(more, 'more file')}" if more else first

    def row(self, number: int) -> str:
        """Return the words for a row of the table: the number within its file, counted from 0."""
        if len(self.files) == 1:
            return f"row {number}"
        stops = list(accumulate(n_rows for _, n_rows in self.files))
        file = bisect_right(stops, number)
        name, n_rows = self.files[file]
        return f"row {number - stops[file] + n_rows} of {name}"

    def require(self, columns: Iterable[str]) -> None:
        """Raise DataError if the table lacks one of the columns."""
        missing = [column for column in columns if column not in self.frame.columns]
        if missing:
            raise DataError(
                f"{self.name} has no column {quoted(missing)}; its columns are "
                f"{quoted(self.frame.columns)}."
            )

    def numbers(self, columns: Sequence[str], *, chosen_by: str | None = None) -> pl.DataFrame:
        """Return columns as finite numbers.

        Raises DataError for columns with other cells. `chosen_by` is the option that can choose
        other columns, "--drop" or "--columns", which the message then advises.
        """
        frame = self.frame.select(columns)
        if self.text is not None:
            decimal_comma = self.text.decimal_comma
            frame = frame.with_columns(_as_numbers(cells, decimal_comma) for cells in frame)
        wrong = [column for column in frame if not _is_numeric(column.dtype)]
        if wrong:
            some = len(wrong) < frame.width
            raise DataError(f"{self.name}: {self._not_numbers(wrong, chosen_by if some else None)}")
        self._check_gaps(frame, chosen_by)
        return frame

    def labels(self, column: str) -> npt.NDArray[Any]:
        """Return a column as the labels of clusters: whole numbers or text."""
        self.require([column])
        labels = self.frame[column]
        if self.text is not None:
            numbers = _as_numbers(labels, self.text.decimal_comma)
            labels = numbers if numbers.dtype.is_numeric() else labels.str.strip_chars()
            if labels.dtype == pl.String:
                labels = labels.set(labels == "", None)
        if n_empty := labels.null_count():
            first = self.row(labels.is_null().arg_max() or 0)
            fill = "write -1 for rows of no cluster" if labels.dtype.is_numeric() else "fill them"
            raise DataError(
                f"the column {column!r} has {format_count(n_empty, 'empty cell')}, the first in "
                f"{first} (rows count from 0): {fill}, or remove their rows first."
            )
        if labels.dtype.is_float() and (labels != labels.round()).any():
            raise DataError(
                f"the column {column!r} names no clusters: they are whole numbers or words, and "
                "it holds other numbers."
            )
        return labels.to_numpy()

    def _check_gaps(self, frame: pl.DataFrame, chosen_by: str | None) -> None:
        """Raise DataError for columns with missing or infinite cells."""
        gaps, which = [], []
        for column in frame:
            bad = column.is_null()
            if column.dtype.is_float():
                bad |= ~column.fill_null(0.0).is_finite()
            if n_bad := int(bad.sum()):
                gaps.append(column.name)
                first = self.row(bad.arg_max() or 0)
                which.append(f"{column.name!r} {n_bad:,}, the first in {first}")
        if not gaps:
            return
        more = len(gaps) - MAX_LISTED
        shown = "; ".join(which[:MAX_LISTED]) + (f"; and {more} more columns" if more > 0 else "")
        fill = "Fill these cells or remove their rows first"
        if chosen_by is not None and len(gaps) < frame.width:
            fill += f"; or {_leave_out(gaps, chosen_by)}"
        raise DataError(
            f"{self.name} has empty, NaN or infinite cells: {shown} (rows count from 0). {fill}."
        )

    def _not_numbers(self, wrong: list[pl.Series], chosen_by: str | None) -> str:
        kinds, commas = [], False
        for column in wrong[:MAX_LISTED]:
            if self.text is None:
                kinds.append(f"{column.name!r} ({column.dtype})")
                continue
            row, cell = _first_text(column, self.text.decimal_comma)
            shown = repr(cell if len(cell) <= _MAX_SHOWN else cell[: _MAX_SHOWN - 3] + "...")
            kinds.append(f"{column.name!r} ({self.row(row)}: {shown})")
            commas |= not self.text.decimal_comma and DECIMAL_COMMA.fullmatch(cell) is not None
        more = len(wrong) - MAX_LISTED
        which = ", ".join(kinds) + (f" and {more} more" if more > 0 else "")
        message = f"not numbers: {which}"
        if self.text is not None:
            message += "; rows count from 0"
        if commas:
            return f"{message}. If these are numbers with decimal commas, add --decimal-comma."
        if chosen_by is not None:
            advice = _leave_out([column.name for column in wrong], chosen_by)
            return f"{message}. {advice[0].upper()}{advice[1:]}."
        return f"{message}."


def _leave_out(columns: list[str], chosen_by: str) -> str:
    """Return the advice to leave columns out."""
    names = ",".join(columns)
    if chosen_by == "--columns":
        return f"take {names} out of --columns"
    return f"leave columns out: add --drop {shlex.quote(names)}"


def table_names(names: Sequence[str]) -> list[str]:
    """Return the names of the files, with the matches of patterns such as ``part-*.csv``."""
    found: list[str] = []
    for name in names:
        is_pattern = any(mark in name for mark in "*?[") and not Path(name).exists()
        matches = sorted(glob(name)) if is_pattern else [name]
        if not matches:
            raise FileError(f"{name}: no file has such a name.")
        found.extend(matches)
    return found


def read_tables(names: Sequence[str], text: TextFormat, *, rechunk: bool) -> Source:
    """Read a table from one or more files, whose rows follow each other.

    Parameters
    ----------
    names : sequence of str
        The paths as the user wrote them; their endings set the format.
    text : TextFormat
        How text files are written.
    rechunk : bool
        Whether the rows of several files are copied into one piece, as a fit needs them.

    Returns
    -------
    Source
        The table, with the columns in the order of the first file.

    Raises
    ------
    UserError
        If a file is of no known kind, is no such table or has no rows, or if the files differ in
        their columns.
    OSError
        If a file cannot be read.
    """
    names = table_names(names)
    tables = [_read_table(name, text) for name in names]
    first = tables[0]
    for name, table in zip(names[1:], tables[1:], strict=True):
        _check_alike(names[0], first, name, table)
    frame = first
    if len(tables) > 1:
        ordered = [table.select(first.columns) for table in tables]
        frame = pl.concat(ordered, how="vertical_relaxed", rechunk=rechunk)
    files = zip(names, (table.height for table in tables), strict=True)
    return Source(tuple(files), frame, text if is_text(names[0]) else None)


def read_source(arguments: argparse.Namespace, *, rechunk: bool = False) -> Source:
    """Read the table of a command in the format that its options describe."""
    return read_tables(
        arguments.data,
        TextFormat(
            separator=arguments.separator,
            decimal_comma=arguments.decimal_comma,
            encoding=arguments.encoding,
            header=not arguments.no_header,
        ),
        rechunk=rechunk,
    )


def is_text(name: str | Path) -> bool:
    """Whether a table is text, by the ending of its name."""
    return bool(TABLE_SUFFIXES[suffix_of(name) or ""])


def _read_table(name: str, text: TextFormat) -> pl.DataFrame:
    """Return the columns of one file: of text every cell as text."""
    path = Path(name)
    suffix = suffix_of(name)
    if path.is_dir():
        raise FileError(f"{name} is a folder: name the files in it, as in {path / '*.csv'}")
    if suffix is None:
        known = either(list(TABLE_SUFFIXES))
        raise UserError(f"{name}: a table is read from a file named {known}.")
    if not path.is_file():
        raise FileError(f"{name}: no such file.")
    separator = TABLE_SUFFIXES[suffix]
    if not separator and text != TextFormat():
        raise UserError(f"{name}: the options on how a text is read are not for Parquet.")
    try:
        if separator:
            frame = read_text(path, name, text, text.separator or separator)
        else:
            frame = pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise FileError(f"{name} cannot be read: {one_line(error)}") from error
    if not frame.height:
        raise DataError(f"{name}: the file has no rows.")
    return frame


def _check_alike(first_name: str, first: pl.DataFrame, name: str, table: pl.DataFrame) -> None:
    """Raise UserError if a file is of another kind than the first, or has other columns."""
    if is_text(first_name) != is_text(name):
        raise UserError(f"{first_name} and {name} are of two kinds: name text files or Parquet.")
    lacking = [column for column in first.columns if column not in table.columns]
    extra = [column for column in table.columns if column not in first.columns]
    if lacking:
        raise DataError(f"{name} lacks the column {quoted(lacking)}, which {first_name} has.")
    if extra:
        raise DataError(f"{name} has the column {quoted(extra)}, which {first_name} lacks.")
    for column, dtype in first.schema.items():
        other = table.schema[column]
        numbers = _is_numeric(dtype) and _is_numeric(other)
        if dtype != other and not numbers and pl.Null not in (dtype, other):
            raise DataError(f"column {column!r} is {dtype} in {first_name}, and {other} in {name}.")


# ---- cells --------------------------------------------------------------------------------


def _is_numeric(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)


def _as_numbers(cells: pl.Series, decimal_comma: bool) -> pl.Series:
    """Return text as numbers or truth values, missing cells as null; else the text itself."""
    text = _plain(cells, decimal_comma)
    for dtype in (pl.Int64, pl.Float64):
        numbers = text.cast(dtype, strict=False)
        if not _odd(text, numbers).any():
            return numbers.fill_nan(None) if dtype == pl.Float64 else numbers
    words = text.str.to_lowercase()
    if words.is_in(["true", "false", *_MISSING]).all():
        return (words == "true").set(words.is_in(_MISSING), None)
    return cells


def _first_text(cells: pl.Series, decimal_comma: bool) -> tuple[int, str]:
    """Return row and text of the first cell that is no number and not missing."""
    text = _plain(cells, decimal_comma)
    row = _odd(text, text.cast(pl.Float64, strict=False)).arg_max()
    assert row is not None
    return row, cells[row]


def _plain(cells: pl.Series, decimal_comma: bool) -> pl.Series:
    text = cells.str.strip_chars()
    # The point changes as well: with decimal commas it is for thousands, and not read.
    return text.str.replace_many([",", "."], [".", ","]) if decimal_comma else text


def _odd(text: pl.Series, numbers: pl.Series) -> pl.Series:
    """Mark the cells that are not empty, are no numbers and do not stand for a missing one."""
    odd = numbers.is_null() & text.is_not_null()
    return odd & ~text.str.to_lowercase().is_in(_MISSING).fill_null(True) if odd.any() else odd
