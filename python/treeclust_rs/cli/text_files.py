"""Tables in text files, of any separator and encoding, plain or compressed by gzip."""

from __future__ import annotations

import csv
import gzip
import io
import re
import shlex
import zlib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TextIO, cast

import polars as pl

from .._data.number_text import shown_cell
from .._util import column_name, listed
from .cells import DECIMAL_COMMA
from .messages import DataError, FileError, one_line, write_message

_SEPARATORS = ";\t,|"
# Bytes, or characters of other encodings, that are read at a time.
_BATCH = 1 << 22
# Characters at the end of a file that are looked at, beside its empty lines.
_MAX_END = 1 << 16
_CUT_OFF = ": was the file cut off?"
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
    lines = _checked_lines(path, name, text, separator)
    data: Path | bytes = path
    if text.encoding is not None:
        with _opened(path, text.encoding) as file:
            data = file.read().encode()
    try:
        # Without a header for polars, which renames columns of one name in silence.
        frame = _read_cells(data, separator, skip_lines=lines.n_first_blank)
    except pl.exceptions.PolarsError as error:
        raise _no_table(path, name, text, separator) from error
    frame = frame[: frame.height - min(lines.n_last_blank, _n_empty(frame))]
    shape = frame.shape
    if not text.header:
        frame.columns = _counted_names(frame)
        lines.check_short(*shape, width=frame.width)
        return frame
    names = _header_of(frame)
    frame = frame[1:]
    # A separator at the end of every line makes a column of nothing.
    kept = [
        number
        for number, column in enumerate(frame)
        if names[number] or column.null_count() < frame.height
    ]
    names = [names[number] for number in kept]
    _check_header(name, names)
    lines.check_short(*shape, width=kept[-1] + 1 if kept else 0)
    frame = frame[:, kept]
    frame.columns = names
    return frame


def _n_empty(frame: pl.DataFrame) -> int:
    """Return the number of rows at the end without any cell."""
    filled = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series().arg_true()
    return frame.height - (int(filled[-1]) + 1 if len(filled) else 0)


class TextBatches:
    """The cells of a text file as `read_text` returns them, batch by batch, as often as wanted.

    Parameters and errors are those of `read_text`; errors in the midst of the file are raised when
    a batch comes to it.
    """

    def __init__(self, path: Path, name: str, text: TextFormat, separator: str) -> None:
        self._path, self._name, self._text, self._separator = path, name, text, separator
        self._checked = _checked_lines(path, name, text, separator)
        self._is_checked = False
        first = next(self._parsed(), None)
        if first is None:
            raise DataError(f"{name} is empty.")
        if not text.header:
            self._kept, self.names = list(range(first.width)), _counted_names(first)
            return
        names = _header_of(first)
        nothing = {number for number, column in enumerate(names) if not column}
        if nothing:  # all rows tell whether a separator at the end of every line makes the column
            for frame in self._rows():
                nothing = {number for number in nothing if not frame[:, number].count()}
                if not nothing:
                    break
        self._kept = [number for number in range(first.width) if number not in nothing]
        self.names = [names[number] for number in self._kept]
        _check_header(name, self.names)

    def __iter__(self) -> Iterator[pl.DataFrame]:
        n_rows, n_columns = int(self._text.header), 0
        for frame in self._rows():
            n_rows, n_columns = n_rows + frame.height, frame.width
            kept = frame[:, self._kept]
            kept.columns = self.names
            yield kept
        if n_columns and not self._is_checked:
            self._is_checked = True  # warned of once, however often the file is read
            width = self._kept[-1] + 1 if self._kept else 0
            self._checked.check_short(n_rows, n_columns, width)

    def _rows(self) -> Iterator[pl.DataFrame]:
        """Yield rows without the header and without empty lines at the end of the file."""
        is_first, n_empty = self._text.header, 0
        for parsed in self._parsed():
            frame, is_first = parsed[1:] if is_first else parsed, False
            if not frame.height:
                continue
            n_filled = frame.height - _n_empty(frame)
            if n_filled:
                empty = [frame.clear(n_empty)] if n_empty else []
                yield pl.concat([*empty, frame[:n_filled]], rechunk=False)
                n_empty = 0
            n_empty += frame.height - n_filled
        if n_empty > self._checked.n_last_blank:
            yield parsed.clear(n_empty - self._checked.n_last_blank)

    def _parsed(self) -> Iterator[pl.DataFrame]:
        """Yield all lines but the empty ones in front."""
        width = 0
        try:
            for lines in self._lines():
                if not width:
                    frame = _read_cells(lines, self._separator)
                    width = frame.width
                    yield frame
                else:
                    # A line in front gives the batch its width, and the empty line that it may
                    # begin with its place.
                    front = f"{self._separator * (width - 1)}x\n".encode()
                    yield _read_cells(front + lines, self._separator)[1:]
        except pl.exceptions.PolarsError as error:
            raise _no_table(self._path, self._name, self._text, self._separator) from error

    def _lines(self) -> Iterator[bytes]:
        """Yield whole lines of the file in UTF-8: no cut lies between the quotes of a cell."""
        rest, n_blank, least = bytearray(), self._checked.n_first_blank, 0
        with self._opened() as read:
            while data := read():
                rest += data
                while n_blank and b"\n" in rest:
                    rest, n_blank = rest.partition(b"\n")[2], n_blank - 1
                if n_blank or len(rest) < least:
                    continue
                stop = _last_line_end(rest)
                if stop:
                    yield bytes(rest[:stop])
                    rest = rest[stop:]
                least = 2 * len(rest)  # a long cell is not searched again for every read
        if rest and not n_blank:
            yield bytes(rest)

    @contextmanager
    def _opened(self) -> Iterator[Callable[[], bytes]]:
        """Yield a function that reads on, without the mark of UTF-8 at the front."""
        encoding, is_first = self._text.encoding, True
        with ExitStack() as files:
            if encoding is None:
                binary = files.enter_context(_opened_bytes(self._path))
            else:
                decoded = files.enter_context(_opened(self._path, encoding))

            def read() -> bytes:
                nonlocal is_first
                data = binary.read(_BATCH) if encoding is None else decoded.read(_BATCH).encode()
                if is_first:
                    is_first = False
                    while len(data) < len(BOM_UTF8):
                        more = binary.read(1) if encoding is None else decoded.read(1).encode()
                        if not more:
                            break
                        data += more
                    data = data.removeprefix(BOM_UTF8) or (read() if data else b"")
                return data

            yield read


def _last_line_end(data: bytes | bytearray) -> int:
    """Return where the last line ends whose end is not within quotes; 0 if there is none."""
    n_quotes, stop = data.count(b'"'), len(data)
    while (end := data.rfind(b"\n", 0, stop)) >= 0:
        n_quotes -= data.count(b'"', end, stop)
        if n_quotes % 2 == 0:
            return end + 1
        stop = end
    return 0


@dataclass(frozen=True)
class _Lines:
    """The lines of a file, looked at before they are read as cells."""

    path: Path
    name: str
    encoding: str | None
    separator: str
    n_first_blank: int
    """Number of empty lines in front of the others."""
    n_last_blank: int
    """Number of empty lines behind them."""
    last: str
    """The last line that is not empty; nothing if it is long."""
    n_separators: int | None
    """How many separators there are; None in a file with quotes, between which they are none."""

    def check_short(self, n_rows: int, n_columns: int, width: int) -> None:
        """Warn of lines with fewer cells than `width`.

        Parameters
        ----------
        n_rows : int
            Number of lines that are neither the empty ones in front nor those behind.
        n_columns : int
            Number of cells of each.
        width : int
            Number of the first of these that are taken.
        """
        if self.n_separators is None:  # the last line alone can be looked at without its cells
            n_cells = self.last.count(self.separator) + 1
            if self.last and '"' not in self.last and n_cells < width:
                self._tell("the last line", n_cells, width, _CUT_OFF)
            return
        if self.n_separators >= n_rows * (n_columns - 1):
            return
        n_short, first, end = 0, (0, 0), self.n_first_blank + n_rows
        with _opened(self.path, self.encoding) as file:
            for number, line in islice(enumerate(file, 1), self.n_first_blank, end):
                text = line.rstrip("\r\n")
                n_cells = text.count(self.separator) + 1 if text else 0
                if n_cells < width:
                    first = first if n_short else (number, n_cells)
                    n_short += 1
        number, n_cells = first
        if n_short > 1:
            write_message(
                f"warning: {n_short:,} lines of {self.name} have fewer than {width} cells, the "
                f"first line {number} ({n_cells}): the others are taken for missing."
            )
        elif n_short and number == end:
            self._tell("the last line", n_cells, width, _CUT_OFF)
        elif n_short:
            self._tell(f"line {number}", n_cells, width, ".")

    def _tell(self, line: str, n_cells: int, width: int, end: str) -> None:
        write_message(
            f"warning: {line} of {self.name} has {n_cells} of {width} cells, the others are taken "
            f"for missing{end}"
        )


def _checked_lines(path: Path, name: str, text: TextFormat, separator: str) -> _Lines:
    """Check encoding, content and separator of a file, and return its lines."""
    end, n_separators = _check_encoding(path, name, text.encoding, separator)
    n_first_blank, first_lines = _first_lines(path, text.encoding)
    if not first_lines:
        raise DataError(f"{name} is empty.")
    if (found := _other_separator(first_lines, separator)) is not None:
        raise DataError(f"{name} seems to be separated by {_separator_advice(found, first_lines)}.")
    lines = end.removesuffix("\n").split("\n")
    last = max((number for number, line in enumerate(lines) if line.strip("\r")), default=-1)
    return _Lines(
        path,
        name,
        text.encoding,
        separator,
        n_first_blank,
        n_last_blank=len(lines) - 1 - last,
        last=lines[last].strip("\r") if last > 0 else "",
        n_separators=n_separators,
    )


def _read_cells(data: Path | bytes, separator: str, skip_lines: int = 0) -> pl.DataFrame:
    """Return lines as cells of text; raises PolarsError."""
    return pl.read_csv(
        data,
        separator=separator,
        has_header=False,
        infer_schema=False,
        skip_lines=skip_lines,
        glob=False,
    )


def _no_table(path: Path, name: str, text: TextFormat, separator: str) -> DataError:
    with _opened(path, text.encoding) as lines:
        return DataError(f"{name} cannot be read: {_complaint(lines, separator)}")


def _header_of(frame: pl.DataFrame) -> list[str]:
    return [(cell or "").strip() for cell in frame.row(0)]


def _counted_names(frame: pl.DataFrame) -> list[str]:
    return [column_name(None, number) for number in range(frame.width)]


def _opened_bytes(path: Path) -> BinaryIO:
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    return cast(BinaryIO, opener(path, "rb"))


def _opened(path: Path, encoding: str | None) -> TextIO:
    return io.TextIOWrapper(_opened_bytes(path), encoding=encoding or "utf-8-sig", newline="")


def _check_encoding(
    path: Path, name: str, encoding: str | None, separator: str
) -> tuple[str, int | None]:
    """Raise FileError for text that polars would read with replacement characters.

    Returns its last characters, and how many separators there are; None if there are quotes.
    """
    end, n_separators = "", 0
    has_quotes = False
    try:
        with _opened(path, encoding) as file:
            while part := file.read(1 << 20):
                has_quotes = has_quotes or '"' in part
                n_separators += part.count(separator)
                end += part
                end = end[max(len(end.rstrip("\r\n")) - _MAX_END, 0) :]
        return end, None if has_quotes else n_separators
    except UnicodeError as error:
        with _opened_bytes(path) as binary:
            start = binary.read(4)
        for magic, kind in _OTHER_FILES.items():
            if start.startswith(magic):
                raise FileError(f"{name} is not text but {kind}") from error
        if encoding is not None:
            raise FileError(f"{name} is not text in the encoding {encoding}.") from error
        utf16 = start[:2] in (b"\xff\xfe", b"\xfe\xff")
        guess = "utf-16" if utf16 else "latin-1"
        converted = shlex.quote(f"{path.stem}-utf8{path.suffix}")
        raise FileError(
            f"{name} is not UTF-8 text. Name its encoding, for instance --encoding {guess}, or "
            f"convert it: iconv -f {guess} -t utf-8 {shlex.quote(name)} > {converted}"
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        with open(path, "rb") as binary:
            if binary.read(2) != b"\x1f\x8b":
                raise FileError(
                    f"{name} is not compressed by gzip: name it {name[: -len('.gz')]}."
                ) from error
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
    """Return why a file is not a table, in words for its reader."""
    raw: list[str] = []

    def followed() -> Iterator[str]:
        for line in lines:
            raw.append(line)
            yield line

    reader = csv.reader(followed(), delimiter=separator, strict=True)
    width, done = 0, 0
    try:
        for cells in reader:
            width = width or len(cells)
            if "".join(raw).count('"') % 2:
                odd = next((cell for cell in cells if '"' in cell), "")
                return (
                    f"line {reader.line_num} has a quote inside a cell without quotes around it: "
                    f"{shown_cell(odd)}. Write the cell in quotes, and quotes in it twice: "
                    '"5\'7""".'
                )
            raw.clear()
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
