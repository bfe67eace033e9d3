"""Tables in text files, of any separator and encoding, plain or compressed by gzip."""

from __future__ import annotations

import csv
import gzip
import io
import re
import shlex
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO, cast

import polars as pl

from .._util import column_name, listed
from .cells import DECIMAL_COMMA
from .messages import DataError, FileError, one_line, write_message

_SEPARATORS = ";\t,|"
# How files begin that are often named as tables of text.
_OTHER_FILES = {
    b"\x1f\x8b": "compressed by gzip: name it .csv.gz, or .tsv.gz with tabs.",
    b"PK\x03\x04": "a spreadsheet or zip file: save it as CSV first.",
    b"PAR1": "Parquet: name it .parquet.",
}


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How a text file is written; None: as its name or content implies."""

    separator: str | None = None
    decimal_comma: bool = False
    encoding: str | None = None
    header: bool = True


def quoted(names: Sequence[str]) -> str:
    """Return the first names in quotes, and how many more there are."""
    return listed([repr(name) for name in names])


def read_text(path: Path, name: str, text: TextFormat, separator: str) -> pl.DataFrame:
    """Return the cells of a text file as text, None where they are empty.

    Parameters
    ----------
    path : Path
        The file, compressed by gzip if its name ends in ".gz".
    name : str
        What messages call it.
    text : TextFormat
        How it is written.
    separator : str
        The character between the cells.

    Raises
    ------
    DataError
        If its lines are no rows of a table, or it has no header with a name for each column.
    FileError
        If it is not text in its encoding.
    OSError
        If it cannot be read.
    """
    _check_encoding(path, name, text.encoding)
    n_blank, first_lines = _first_lines(path, text.encoding)
    if not first_lines:
        raise DataError(f"{name} is empty.")
    if (found := _other_separator(first_lines, separator)) is not None:
        raise DataError(f"{name} seems to be separated by {_separator_advice(found, first_lines)}.")
    data: Path | bytes = path
    if text.encoding is not None:
        with _opened(path, text.encoding) as file:
            data = file.read().encode()
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
            raise DataError(f"{name} cannot be read: {_complaint(lines, separator)}") from error
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


def _opened_bytes(path: Path) -> BinaryIO:
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    return cast(BinaryIO, opener(path, "rb"))


def _opened(path: Path, encoding: str | None) -> TextIO:
    return io.TextIOWrapper(_opened_bytes(path), encoding=encoding or "utf-8-sig", newline="")


def _check_encoding(path: Path, name: str, encoding: str | None) -> None:
    """Raise FileError for text that polars would read with replacement characters."""
    try:
        with _opened(path, encoding) as file:
            while file.read(1 << 20):
                pass
    except UnicodeError as error:
        with _opened_bytes(path) as binary:
            start = binary.read(4)
        for magic, kind in _OTHER_FILES.items():
            if start.startswith(magic):
                raise FileError(f"{name} is no text but {kind}") from error
        if encoding is not None:
            raise FileError(f"{name} is no text in the encoding {encoding}.") from error
        utf16 = start[:2] in (b"\xff\xfe", b"\xfe\xff")
        guess = "utf-16" if utf16 else "latin-1"
        converted = shlex.quote(f"{path.stem}-utf8{path.suffix}")
        raise FileError(
            f"{name} is not UTF-8 text. Name its encoding, for instance --encoding {guess}, or "
            f"convert it: iconv -f {guess} -t utf-8 {shlex.quote(name)} > {converted}"
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileError(f"{name} is not a whole gzip file: {one_line(error)}") from error


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
    commas = separator != "," and any(DECIMAL_COMMA.fullmatch(cell) for cell in cells)
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
    """Raise DataError for names of several columns; warn of names that look like a row."""
    # pandas names columns 0, 1, 2, ... that have no names.
    counted = names == [str(number) for number in range(len(names))]
    is_row = all(_is_number(column) for column in names) and not counted
    advice = "if the file has no header, add --no-header" if is_row else ""
    repeated = [column for column, count in Counter(names).items() if count > 1]
    if repeated == [""]:
        raise DataError(f"{name}: {names.count('')} columns have no name.")
    if repeated:
        alternative = f"; {advice}" if advice else ""
        raise DataError(
            f"{name} has several columns named {quoted(repeated)}: give each its own name"
            f"{alternative}."
        )
    if advice:
        write_message(
            f"warning: the first line of {name}, {quoted(names)}, was taken for the names of the "
            f"columns; {advice}."
        )


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
