"""Tables from disk for the command: text files of any separator and encoding, and Parquet.

A text file is read as text, cell by cell, and a column becomes numbers, times or levels when it is
needed. So a message can show the cell that is not a number, columns that are not used may hold
anything, and `predict` writes the cells back as they were. Several files of the same columns are
one table.
"""

import argparse
import shlex
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from glob import glob
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy.typing as npt
import polars as pl

from .._base import ReadAs
from .._data.frames import similar_words
from .._data.number_text import (
    TextNumbers,
    has_other_mark,
    lacks_unit_words,
    plain,
    read_number,
    read_numbers,
    shown_cell,
)
from .._util import format_count, listed, warn_user
from .._util.words import MAX_LISTED
from .cells import (
    as_codes,
    as_flags,
    as_levels,
    as_numbers,
    as_times,
    as_typed,
    has_flags,
    odd_numbers,
    odd_times,
)
from .messages import DataError, FileError, UserError, either, one_line
from .text_files import TextFormat, quoted, read_text

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

AS_IT_IS = ReadAs()
"""No column is read in another way than its own."""


def suffix_of(name: str | Path) -> str | None:
    """Return the ending, of those in `TABLE_SUFFIXES`, of a file's name; None if it has none."""
    return next((end for end in TABLE_SUFFIXES if str(name).lower().endswith(end)), None)


def name_of(files: Sequence[str]) -> str:
    """Return what messages call the table in some files."""
    more = len(files) - 1
    return f"{files[0]} and {format_count(more, 'more file')}" if more else files[0]


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
        return name_of([name for name, _ in self.files])

    @property
    def n_files(self) -> int:
        """Number of files of the table."""
        return len(self.files)

    @property
    def has(self) -> str:
        """The name and its verb: "a.csv has", "a.csv and 2 more files have"."""
        return f"{self.name} {'has' if self.n_files == 1 else 'have'}"

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
                f"{self.has} no column {quoted(missing)}; its columns are "
                f"{quoted(self.frame.columns)}.{similar_words(missing, self.frame.columns)}"
            )

    def typed(self, columns: Sequence[str], read_as: ReadAs, chosen_by: str) -> pl.DataFrame:
        """Return columns as what they hold: numbers, truth values, times or text.

        Raises DataError for infinite cells, and as `read_numbers`; `chosen_by` as for `numbers`.
        """
        frame = self.read(columns, read_as)
        self._check_gaps(frame, chosen_by, gaps=True)
        return frame

    def read(self, columns: Sequence[str], read_as: ReadAs) -> pl.DataFrame:
        """Return columns as `typed` does, infinite cells too."""
        chosen = map(self.frame.get_column, columns)  # `select` takes "*" for a pattern
        return pl.DataFrame([self._read_as(cells, read_as, self._typed) for cells in chosen])

    def numbers(
        self,
        columns: Sequence[str],
        read_as: ReadAs = AS_IT_IS,
        *,
        chosen_by: str | None = None,
        gaps: bool = False,
        instead: str = "",
    ) -> pl.DataFrame:
        """Return columns as finite numbers.

        Raises DataError for columns with other cells. `chosen_by` is the option that can choose
        other columns, "--drop" or "--columns", which the message then advises; `gaps`: whether
        cells may be missing; `instead`: the end of messages.
        """
        frame = pl.DataFrame(
            [self._read_as(self.frame[name], read_as, self._numbers) for name in columns]
        )
        wrong = [column for column in frame if not _is_numeric(column.dtype)]
        if wrong:
            some = len(wrong) < frame.width
            advice = self._not_numbers(wrong, chosen_by if some else None)
            raise DataError(f"{self.name}: {advice}{instead}")
        self._check_gaps(frame, chosen_by, gaps=gaps, instead=instead)
        return frame

    def as_fitted(self, kinds: Mapping[str, str], read_as: ReadAs) -> pl.DataFrame:
        """Return columns as what they held in a fit, cells missing or not.

        Parameters
        ----------
        kinds : mapping
            The columns, and what each held (see `Kind`).
        read_as : ReadAs
            How they were read.

        Raises
        ------
        DataError
            For cells that are no numbers, or no times, where these were fitted; for columns without
            true and false where these were; for infinite cells.
        """
        numbers = [column for column, kind in kinds.items() if kind == "number"]
        read = {column.name: column for column in self.numbers(numbers, read_as, gaps=True)}
        for column, kind in kinds.items():
            if column not in read:
                of_text = {"levels": as_levels, "flag": self._flags}.get(kind)
                of_text = of_text or partial(self._times_as_fitted, kind)
                read[column] = self._read_as(self.frame[column], read_as, of_text)
        return pl.DataFrame([read[column] for column in kinds])

    def read_numbers(self, column: str, unit: str | None = None) -> TextNumbers:
        """Return a column as ``--numbers`` reads it.

        `unit`: that cells may have, None for that of most. Raises DataError for cells that are no
        numbers.
        """
        cells = self.frame[column]
        if _is_numeric(cells.dtype):
            nowhere = pl.zeros(len(cells), pl.Boolean, eager=True)
            return TextNumbers(cells, unit or "", nowhere, lacks_unit=False)
        if not is_text_column(cells):
            raise DataError(f"{self.name}: --numbers is for text, and {column!r} is {cells.dtype}.")
        read = read_numbers(plain(cells.cast(pl.String), self.has_decimal_comma), unit)
        if complaint := read.complaint(cells, self.row):
            advice = self.mark_advice(read.first_odd(cells))
            raise no_numbers(self.name, complaint, column if unit is None else None, advice)
        return read._replace(numbers=read.numbers.alias(column))

    def _as_chosen(self, column: str, unit: str) -> TextNumbers:
        """Return a column as `read_numbers`; warns of numbers without the unit of the fit."""
        read = self.read_numbers(column, unit)
        if read.lacks_unit:
            warn_user(f"{self.name}: {lacks_unit_words(column, unit)}")
        return read

    @property
    def has_decimal_comma(self) -> bool:
        """Whether numbers are written with decimal commas."""
        return self.text is not None and self.text.decimal_comma

    def mark_advice(self, text: str | None) -> str:
        """Return the advice for a number with the other mark of decimals, "" for another text."""
        if text is None or not has_other_mark(text, self.has_decimal_comma):
            return ""
        if self.text is None:
            return " If these are numbers with decimal commas, write points."
        if self.has_decimal_comma:
            return " If these are numbers with decimal points, leave --decimal-comma out."
        return " If these are numbers with decimal commas, add --decimal-comma."

    def _read_as(
        self, cells: pl.Series, read_as: ReadAs, of_text: Callable[[pl.Series], pl.Series]
    ) -> pl.Series:
        """Return a column as the user chose to read it, else as it is, of a text by `of_text`."""
        if cells.name in read_as.numbers:
            return self._as_chosen(cells.name, read_as.numbers[cells.name]).numbers
        if cells.name in read_as.levels:
            return self._codes(cells)
        return cells if self.text is None else of_text(cells)

    def _typed(self, cells: pl.Series) -> pl.Series:
        return as_typed(cells, self.has_decimal_comma)

    def _numbers(self, cells: pl.Series) -> pl.Series:
        return as_numbers(cells, self.has_decimal_comma)

    def _codes(self, cells: pl.Series) -> pl.Series:
        return as_codes(cells, self.has_decimal_comma)

    def _flags(self, cells: pl.Series) -> pl.Series:
        flags = as_flags(cells)
        if flags.count() and not has_flags(flags):
            raise self._no_flags(self.cell(cells, flags.is_not_null().arg_max()))
        return flags

    def _no_flags(self, cell: str) -> DataError:
        return DataError(
            f"{self.name}: the model was fitted to true and false, and no cell is either here: "
            f"{cell}; rows count from 0. Write true and false."
        )

    def _times(self, cells: pl.Series) -> pl.Series:
        times = as_times(cells)
        if times.dtype == pl.String:
            raise self._no_times(cells, odd_times(cells))
        return times

    def _times_as_fitted(self, kind: str, cells: pl.Series) -> pl.Series:
        times = self._times(cells)
        had_offset = kind.startswith("datetime") and kind != "datetime[]"
        has_offset = isinstance(times.dtype, pl.Datetime) and times.dtype.time_zone is not None
        if kind != "duration" and times.count() and has_offset != had_offset:
            cell = self.cell(cells, times.is_not_null().arg_max())
            had, way = (
                ("one", "with one, as 2024-12-31T23:59Z") if had_offset else ("none", "without")
            )
            raise DataError(
                f"{self.name}: {cell} has {'an' if has_offset else 'no'} offset from UTC, and the "
                f"times of the fit had {had}; rows count from 0. Write them {way}."
            )
        return times

    def _no_times(self, cells: pl.Series, odd: pl.Series) -> DataError:
        return DataError(
            f"{self.name}: no date or time as 2024-12-31 or 2024-12-31 23:59: "
            f"{self.cell(cells, odd.arg_max())}; rows count from 0."
        )

    def cell(self, cells: pl.Series, row: int | None) -> str:
        """Return the words for a cell: column, row and text."""
        assert row is not None, "the mask of the cells has one"
        return f"{cells.name!r} ({self.row(row)}: {shown_cell(cells[row])})"

    def labels(self, column: str) -> npt.NDArray[Any]:
        """Return a column as the labels of clusters: whole numbers or text, -1 for no cluster."""
        self.require([column])
        labels = self._labels(self.frame[column])
        empty = labels.is_null()
        first = self.row(empty.arg_max() or 0)
        check_labels(column, int(empty.sum()), first)
        if labels.dtype.is_float() and not are_whole(labels):
            raise no_labels(column)
        return labels.to_numpy()

    def _labels(self, cells: pl.Series) -> pl.Series:
        if self.text is None:
            return cells
        numbers = as_numbers(cells, self.has_decimal_comma)
        return numbers if numbers.dtype.is_numeric() else as_levels(cells)

    def _check_gaps(
        self, frame: pl.DataFrame, chosen_by: str | None, *, gaps: bool, instead: str = ""
    ) -> None:
        """Raise DataError for columns with infinite cells, without `gaps` for missing ones too."""
        found = {}
        for column in frame:
            bad = column.is_null()
            if column.dtype.is_float():
                cells = column.fill_null(0.0)
                bad = cells.is_infinite() if gaps else bad | ~cells.is_finite()
            elif gaps:
                continue
            if n_bad := int(bad.sum()):
                found[column.name] = n_bad, self.row(bad.arg_max() or 0)
        if found:
            raise self.has_cells(found, frame.width, chosen_by, gaps=gaps, instead=instead)

    def has_cells(
        self,
        found: Mapping[str, tuple[int, str]],
        n_columns: int,
        chosen_by: str | None,
        *,
        gaps: bool = True,
        instead: str = "",
    ) -> DataError:
        """Return the error of infinite cells, without `gaps` of missing ones too.

        `found`: by column how many there are, and the words for the row of the first.
        """
        which = [f"{name!r} {n_bad:,}, the first in {row}" for name, (n_bad, row) in found.items()]
        what = "infinite cells" if gaps else "empty, NaN or infinite cells"
        fill = "Empty these cells" if gaps else "Fill these cells or remove their rows first"
        if chosen_by is not None and len(found) < n_columns:
            fill += f"; or {leave_out(list(found), chosen_by)}"
        return DataError(
            f"{self.has} {what}: {listed(which, 'column', '; ')} (rows count from 0). {fill}."
            f"{instead}"
        )

    def _not_numbers(self, wrong: list[pl.Series], chosen_by: str | None) -> str:
        """Return the words for columns that are no numbers; `chosen_by` as for `numbers`."""
        kinds, advice, texts = [], "", []
        for column in wrong[:MAX_LISTED]:
            if self.text is None:
                kinds.append(f"{column.name!r} ({column.dtype})")
                continue
            row = odd_numbers(column, self.has_decimal_comma).arg_max() or 0
            kinds.append(self.cell(column, row))
            advice = advice or self.mark_advice(column[row])
            if read_number(plain(column[row : row + 1], self.has_decimal_comma)[0]) is not None:
                texts.append(column.name)
        more = len(wrong) - MAX_LISTED
        which = ", ".join(kinds) + (f" and {more} more" if more > 0 else "")
        message = f"not numbers: {which}"
        if self.text is not None:
            message += "; rows count from 0"
        if advice:
            return f"{message}.{advice}"
        if chosen_by is not None:
            way_out = leave_out([column.name for column in wrong], chosen_by)
            if texts and len(texts) == len(wrong):
                way_out = f"for numbers add {option_text('--numbers', texts)}; or {way_out}"
            return f"{message}. {way_out[0].upper()}{way_out[1:]}."
        if texts:
            return (
                f"{message}. Write {', '.join(texts)} as numbers alone; in Python "
                "treeclust_rs.text_to_numbers does."
            )
        return f"{message}."


def check_labels(column: str, n_empty: int, first: str) -> None:
    """Raise DataError if a column of labels has empty cells; `first`: the words for their row."""
    if not n_empty:
        return
    raise DataError(
        f"the column {column!r} has {format_count(n_empty, 'empty cell')}, the first in "
        f"{first} (rows count from 0): write -1 for rows of no cluster, or remove their rows "
        "first."
    )


def are_whole(labels: pl.Series) -> bool:
    """Whether all of some floats are whole numbers."""
    return bool((labels == labels.round()).all())


def no_labels(column: str) -> DataError:
    """Return the error of a column of labels that are numbers, and not whole ones."""
    return DataError(
        f"the column {column!r} names no clusters: they are whole numbers or words, and "
        "it holds other numbers."
    )


def is_text_column(cells: pl.Series) -> bool:
    """Whether a column holds text by its type."""
    return cells.dtype in (pl.String, pl.Categorical, pl.Enum)


def _is_numeric(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)


def leave_out(columns: list[str], chosen_by: str) -> str:
    """Return the advice to leave columns out."""
    if chosen_by == "--columns":
        return f"take {','.join(columns)} out of --columns"
    return f"leave columns out: add {option_text('--drop', columns)}"


def option_text(option: str, columns: list[str]) -> str:
    """Return an option with columns, each with a comma in its name in an option of its own."""
    plain_names = [name for name in columns if "," not in name]
    values = [",".join(plain_names)] if plain_names else []
    values += [name for name in columns if "," in name]
    return " ".join(f"{option} {shlex.quote(value)}" for value in values)


def table_names(names: Sequence[str]) -> list[str]:
    """Return the names of the files: those that patterns match, and the tables in folders."""
    found: list[str] = []
    for name in names:
        is_pattern = any(mark in name for mark in "*?[") and not Path(name).exists()
        matches = sorted(glob(name)) if is_pattern else [name]
        if not matches:
            raise FileError(f"{name}: no file has such a name.")
        for match in matches:
            found.extend(_tables_in(match) if Path(match).is_dir() else [match])
    return found


def warn_of_repeated(names: Sequence[str]) -> None:
    """Warn of files that a table has more than once, by whatever names."""
    seen: set[Path] = set()
    repeated: dict[Path, str] = {}
    for name in names:
        path = Path(name).resolve()
        if path in seen:
            repeated[path] = name
        seen.add(path)
    if repeated:
        is_one = len(repeated) == 1
        warnings.warn(
            f"{listed(list(repeated.values()), 'file')} {'is' if is_one else 'are'} named more "
            f"than once: {'its' if is_one else 'their'} rows count each time.",
            UserWarning,
            stacklevel=2,
        )


def _tables_in(folder: str) -> list[str]:
    """Return the tables in a folder in the order of their names, without hidden files."""
    names = sorted(
        str(path)
        for path in Path(folder).iterdir()
        if not path.name.startswith(".") and suffix_of(path) and path.is_file()
    )
    if not names:
        raise FileError(f"{folder}: no file in the folder is named {either(list(TABLE_SUFFIXES))}.")
    if len({is_text(name) for name in names}) > 1:
        raise UserError(
            f"{folder} has text files and Parquet: name those that are meant, as in "
            f"{Path(folder) / '*.csv'}"
        )
    return names


def read_tables(
    names: Sequence[str], text: TextFormat, *, rechunk: bool = False, may_be_empty: bool = False
) -> Source:
    """Read a table from one or more files, whose rows follow each other.

    Parameters
    ----------
    names : sequence of str
        Files, patterns and folders as the user wrote them; the files' endings set the format.
    text : TextFormat
        How text files are written.
    rechunk : bool
        Whether the rows of several files are copied into one piece, as a fit needs them.
    may_be_empty : bool, default=False
        Whether files may have no rows.

    Returns
    -------
    Source
        The table, with the columns in the order of the first file.

    Raises
    ------
    UserError
        If a file is of no known kind or is not such a table, if it has no rows and needs some, or
        if the files differ in their columns.
    OSError
        If a file cannot be read.
    """
    names = table_names(names)
    warn_of_repeated(names)
    tables = [_read_table(name, text) for name in names]
    for name, table in zip(names, tables, strict=True):
        if not table.height and not may_be_empty:
            raise no_rows(name)
    first = tables[0]
    for name, table in zip(names[1:], tables[1:], strict=True):
        check_alike(names[0], first, name, table)
    frame = first
    if len(tables) > 1:
        ordered = [table[first.columns] for table in tables]
        frame = pl.concat(ordered, how="vertical_relaxed", rechunk=rechunk)
    files = zip(names, (table.height for table in tables), strict=True)
    return Source(tuple(files), frame, text if is_text(names[0]) else None)


def read_source(
    arguments: argparse.Namespace, *, rechunk: bool = False, may_be_empty: bool = False
) -> Source:
    """Read the table of a command, in the format that its options describe, as `read_tables`."""
    return read_tables(
        arguments.data, text_format(arguments), rechunk=rechunk, may_be_empty=may_be_empty
    )


def text_format(arguments: argparse.Namespace) -> TextFormat:
    """Return how the options of a command say that text is written."""
    return TextFormat(
        separator=arguments.separator,
        decimal_comma=arguments.decimal_comma,
        encoding=arguments.encoding,
        header=not arguments.no_header,
    )


def is_text(name: str | Path) -> bool:
    """Whether a table is text, by the ending of its name."""
    return bool(TABLE_SUFFIXES[suffix_of(name) or ""])


def check_table(name: str, text: TextFormat) -> str:
    """Return the separator of a table, none for Parquet; raise UserError if it cannot be read."""
    suffix = suffix_of(name)
    if suffix is None and not Path(name).suffix and not Path(name).exists():
        raise FileError(f"{name}: no such file or folder.")
    if suffix is None:
        known = either(list(TABLE_SUFFIXES))
        raise UserError(f"{name}: a table is read from a file named {known}.")
    if not Path(name).is_file():
        raise FileError(f"{name}: no such file.")
    separator = TABLE_SUFFIXES[suffix]
    if not separator and text != TextFormat():
        raise UserError(f"{name}: the options on how a text is read are not for Parquet.")
    return separator and (text.separator or separator)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Raise FileError for a file that cannot be read."""
    try:
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        raise FileError(f"{name} cannot be read: {one_line(error)}") from error


def _read_table(name: str, text: TextFormat) -> pl.DataFrame:
    """Return the columns of one file: of text every cell as text."""
    separator = check_table(name, text)
    with reading(name):
        if separator:
            return read_text(Path(name), name, text, separator)
        return pl.read_parquet(name, glob=False)


def no_numbers(name: str, complaint: str, column: str | None, advice: str) -> DataError:
    """Return the error of cells that ``--numbers`` does not read.

    `column`: if it may be left out; `advice`: further words.
    """
    way_out = f", or take {column} out of --numbers" if column is not None else ""
    return DataError(f"{name}: {complaint}{way_out}.{advice}")


def no_rows(name: str) -> DataError:
    """Return the error of a file without rows."""
    return DataError(f"{name}: the file has no rows.")


def check_alike(first_name: str, first: pl.DataFrame, name: str, table: pl.DataFrame) -> None:
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
