"""Tables from disk for the command: text files of any separator and encoding, and Parquet.

A text file is read as text, cell by cell, and a column becomes numbers when it is needed. So a
message can show the cell that is no number, columns that are not used may hold anything, and
`predict` writes the cells back as they were.
"""

import argparse
import csv
import re
import shlex
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy.typing as npt
import polars as pl

from .._util.words import MAX_LISTED, column_name, listed
from .messages import UserError, one_line

# The separator of each kind of text file; none for Parquet.
TABLE_SUFFIXES = {".csv": ",", ".tsv": "\t", ".txt": "\t", ".parquet": "", ".pq": ""}

# Texts of missing cells, in small letters.
_MISSING = ["", "na", "n/a", "nan", "null"]
_SEPARATORS = ";\t,|"
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
_MAX_SHOWN = 40


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How a text file is written; None: as its name or content implies."""

    separator: str | None = None
    decimal_comma: bool = False
    encoding: str | None = None
    header: bool = True


@dataclass(frozen=True, slots=True)
class Source:
    """A table that was read: of a text file every cell as text, None where it is empty."""

    name: str
    frame: pl.DataFrame
    text: TextFormat | None
    """None for Parquet, whose columns have types."""

    def require(self, columns: Iterable[str]) -> None:
        """Raise UserError if the table lacks one of the columns."""
        missing = [column for column in columns if column not in self.frame.columns]
        if missing:
            raise UserError(
                f"{self.name} has no column {_quoted(missing)}; its columns are "
                f"{_quoted(self.frame.columns)}."
            )

    def numbers(self, columns: Sequence[str], *, advice: bool = False) -> pl.DataFrame:
        """Return columns as numbers, with null for missing cells.

        Raises UserError for columns that are not numbers; with `advice` the message says how to
        choose others.
        """
        frame = self.frame.select(columns)
        if self.text is not None:
            decimal_comma = self.text.decimal_comma
            frame = frame.with_columns(_as_numbers(cells, decimal_comma) for cells in frame)
        wrong = [column for column in frame if not _is_numeric(column.dtype)]
        if wrong:
            raise UserError(f"{self.name}: {self._not_numbers(wrong, advice)}")
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
        if labels.null_count():
            raise UserError(f"the column {column!r} has empty cells.")
        if labels.dtype.is_float() and (labels != labels.round()).any():
            raise UserError(
                f"the column {column!r} names no clusters: they are whole numbers or words, and "
                "it holds other numbers."
            )
        return labels.to_numpy()

    def _not_numbers(self, wrong: list[pl.Series], advice: bool) -> str:
        kinds, commas = [], False
        for column in wrong[:MAX_LISTED]:
            if self.text is None:
                kinds.append(f"{column.name!r} ({column.dtype})")
                continue
            row, cell = _first_text(column, self.text.decimal_comma)
            shown = repr(cell if len(cell) <= _MAX_SHOWN else cell[: _MAX_SHOWN - 3] + "...")
            kinds.append(f"{column.name!r} (row {row}: {shown})")
            commas |= not self.text.decimal_comma and _DECIMAL_COMMA.fullmatch(cell) is not None
        more = len(wrong) - MAX_LISTED
        which = ", ".join(kinds) + (f" and {more} more" if more > 0 else "")
        message = f"not numbers: {which}"
        if self.text is not None:
            message += "; rows count from 0"
        if commas:
            return f"{message}. If these are numbers with decimal commas, add --decimal-comma."
        if advice:
            names = shlex.quote(",".join(column.name for column in wrong))
            return f"{message}. Leave them out with --drop {names}, or choose with --columns."
        return f"{message}."


def read_table(name: str, text: TextFormat) -> Source:
    """Read a table from a file.

    Parameters
    ----------
    name : str
        The path as the user wrote it; its ending sets the format.
    text : TextFormat
        How a text file is written.

    Returns
    -------
    Source
        With at least one row, and with names of columns that differ from each other.

    Raises
    ------
    UserError
        If there is no such table.
    """
    path = Path(name)
    separator = TABLE_SUFFIXES.get(path.suffix.lower())
    if separator is None:
        known = ", ".join(TABLE_SUFFIXES)
        raise UserError(f"{name}: a table is read from a file named {known}.")
    if not path.is_file():
        raise UserError(f"{name}: no such file.")
    if separator:
        frame = _read_text(path, name, text, text.separator or separator)
    else:
        if text != TextFormat():
            raise UserError(f"{name}: the options on how a text is read are not for Parquet.")
        try:
            frame = pl.read_parquet(path, glob=False)
        except pl.exceptions.PolarsError as error:
            raise UserError(f"{name} cannot be read: {one_line(error)}") from error
    if not frame.height:
        raise UserError(f"{name}: the file has no rows.")
    return Source(name, frame, text if separator else None)


def read_source(arguments: argparse.Namespace) -> Source:
    """Read the table of a command in the format that its options describe."""
    return read_table(
        arguments.data,
        TextFormat(
            separator=arguments.separator,
            decimal_comma=arguments.decimal_comma,
            encoding=arguments.encoding,
            header=not arguments.no_header,
        ),
    )


# ---- text files ---------------------------------------------------------------------------


def _read_text(path: Path, name: str, text: TextFormat, separator: str) -> pl.DataFrame:
    _check_encoding(path, name, text.encoding)
    n_blank, first_lines = _first_lines(path, text.encoding)
    if not first_lines:
        raise UserError(f"{name} is empty.")
    if (found := _other_separator(first_lines, separator)) is not None:
        raise UserError(f"{name} seems to be separated by {_separator_advice(found, first_lines)}.")
    data = path if text.encoding is None else path.read_bytes().decode(text.encoding).encode()
    try:
        # Without a header for polars, which renames columns of one name in silence.
        frame = pl.read_csv(
            data,
            separator=separator,
            has_header=False,
            infer_schema=False,
            skip_lines=n_blank,
            glob=False,
        )
    except pl.exceptions.PolarsError as error:
        with _opened(path, text.encoding) as lines:
            raise UserError(f"{name} cannot be read: {_complaint(lines, separator)}") from error
    while frame.height and frame.row(-1).count(None) == frame.width:  # empty lines at the end
        frame = frame[:-1]
    if not text.header:
        frame.columns = [column_name(None, number) for number in range(frame.width)]
        return frame
    names = [(cell or "").strip() for cell in frame.row(0)]
    frame = frame[1:]
    # A separator at the end of every line makes a column of nothing.
    kept = [
        number
        for number, column in enumerate(frame)
        if names[number] or column.null_count() < frame.height
    ]
    names = [names[number] for number in kept]
    frame = frame[:, kept]
    _check_header(name, names)
    frame.columns = names
    return frame


def _opened(path: Path, encoding: str | None) -> TextIO:
    return path.open(encoding=encoding or "utf-8-sig", newline="")


def _check_encoding(path: Path, name: str, encoding: str | None) -> None:
    """Raise UserError for text that polars would read with replacement characters."""
    try:
        with _opened(path, encoding) as file:
            while file.read(1 << 20):
                pass
    except UnicodeError as error:
        if encoding is not None:
            raise UserError(f"{name} is no text in the encoding {encoding}.") from error
        with path.open("rb") as binary:
            utf16 = binary.read(2) in (b"\xff\xfe", b"\xfe\xff")
        guess = "utf-16" if utf16 else "latin-1"
        converted = shlex.quote(f"{path.stem}-utf8{path.suffix}")
        raise UserError(
            f"{name} is not UTF-8 text. Name its encoding, for instance --encoding {guess}, or "
            f"convert it: iconv -f {guess} -t utf-8 {shlex.quote(name)} > {converted}"
        ) from error


def _first_lines(path: Path, encoding: str | None) -> tuple[int, list[str]]:
    """Return the number of empty lines in front, and the first two lines that are not empty."""
    n_blank, lines = 0, []
    with _opened(path, encoding) as file:
        for line in file:
            if line.strip():
                lines.append(line.rstrip("\r\n"))
                if len(lines) == 2:
                    break
            elif not lines:
                n_blank += 1
    return n_blank, lines


def _other_separator(lines: list[str], separator: str) -> str | None:
    """Return the separator that fits the first lines better than the assumed one, if any."""

    def counts(mark: str) -> set[int]:
        return {re.sub('"[^"]*"', "", line).count(mark) for line in lines}

    here = counts(separator)
    if len(here) == 1 and here != {0}:
        return None
    for other in _SEPARATORS:
        if other != separator and len(there := counts(other)) == 1 and there != {0}:
            return other
    return None


def _separator_advice(separator: str, lines: list[str]) -> str:
    cells = lines[-1].split(separator)
    commas = separator != "," and any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    if separator == "\t":
        advice = "tabs: add --separator tab"
    else:
        advice = f"{separator!r}: add --separator {shlex.quote(separator)}"
    return f"{advice} --decimal-comma" if commas else advice


def _complaint(lines: Iterable[str], separator: str) -> str:
    """Return why a file is no table, in words for its reader."""
    reader = csv.reader(lines, delimiter=separator, strict=True)
    width, done = 0, 0
    try:
        for cells in reader:
            width = width or len(cells)
            if len(cells) > width:
                return f"line {reader.line_num} has {len(cells)} cells, the first line {width}."
            done = reader.line_num
    except csv.Error:
        return f"the quotes in line {done + 1} do not match."
    return "its lines are no rows of a table."


def _check_header(name: str, names: list[str]) -> None:
    """Raise UserError for names of several columns; warn of names that look like a row."""
    # pandas names columns 0, 1, 2, ... that have no names.
    counted = names == [str(number) for number in range(len(names))]
    is_row = all(_is_number(column) for column in names) and not counted
    advice = "if the file has no header, add --no-header" if is_row else ""
    repeated = [column for column, count in Counter(names).items() if count > 1]
    if repeated == [""]:
        raise UserError(f"{name}: {names.count('')} columns have no name.")
    if repeated:
        alternative = f"; {advice}" if advice else ""
        raise UserError(
            f"{name} has several columns named {_quoted(repeated)}: give each its own name"
            f"{alternative}."
        )
    if advice:
        warnings.warn(
            f"the first line of {name}, {_quoted(names)}, was taken for the names of the columns; "
            f"{advice}.",
            stacklevel=2,
        )


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


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


def _quoted(names: Sequence[str]) -> str:
    return listed([repr(name) for name in names])
