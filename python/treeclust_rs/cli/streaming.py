"""Tables that are read batch by batch, for ``--stream``: in the memory of some batches.

A batch is a `Source` of its own, and so it is read by the code that reads whole tables. What all
rows of a column decide together, whether its text is numbers, times or flags, is remembered from
batch to batch: cells that would not be read together in one table are errors here too.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import polars as pl

from .._data.number_text import TextNumbers, lacks_unit_words
from .._util import warn_user
from ..parts.batches import collected
from .cells import (
    Form,
    as_codes,
    as_flags,
    as_times,
    codes_are_numbers,
    has_flags,
    in_form,
    odd_times,
)
from .messages import DataError
from .reading import (
    Source,
    check_alike,
    check_table,
    is_text,
    is_text_column,
    name_of,
    no_rows,
    reading,
    table_names,
    text_format,
    warn_of_repeated,
)
from .text_files import TextBatches, TextFormat

_T = TypeVar("_T")


@dataclass
class _ReadSoFar:
    """What the cells of each column of text were in the batches so far."""

    numbers: set[str] = field(default_factory=set)
    """Columns read as numbers that had some."""
    flags: dict[str, str] = field(default_factory=dict)
    """Columns read as numbers that had true or false: the words for the first such cell."""
    are_flags: set[str] = field(default_factory=set)
    """Columns read as flags that had true or false."""
    no_flags: dict[str, str] = field(default_factory=dict)
    """Columns read as flags that had neither in a batch: the words for the first other cell."""
    has_unit: set[str] = field(default_factory=set)
    """Columns of text read as numbers that had the unit of the fit, or it had none."""
    lacks_unit: dict[str, str] = field(default_factory=dict)
    """Columns of text read as numbers without it in a batch: the unit."""
    times: dict[str, pl.DataType] = field(default_factory=dict)
    """Types of the columns read as times that had some."""


@dataclass(frozen=True, slots=True)
class Batch(Source):
    """Rows of one of the files of a table."""

    whole: Stream
    """The table."""
    first_row: int
    """The number in its file of the first row."""
    so_far: _ReadSoFar

    @property
    def name(self) -> str:
        """What messages call the table."""
        return self.whole.name

    @property
    def n_files(self) -> int:
        """Number of files of the table."""
        return len(self.whole.names)

    def row(self, number: int) -> str:
        """Return the words for a row of the batch: the number within its file."""
        row = f"row {self.first_row + number}"
        return row if self.n_files == 1 else f"{row} of {self.files[0][0]}"

    def _numbers(self, cells: pl.Series) -> pl.Series:
        numbers, so_far, name = Source._numbers(self, cells), self.so_far, cells.name
        if not numbers.count():
            return numbers
        if numbers.dtype == pl.Boolean:
            if name in so_far.numbers:
                return cells  # no numbers: the error names the first of them
            so_far.flags.setdefault(name, self.cell(cells, numbers.is_not_null().arg_max()))
        elif numbers.dtype.is_numeric():
            if name in so_far.flags:
                raise DataError(
                    f"{self.name}: not numbers: {so_far.flags[name]}; rows count from 0."
                )
            so_far.numbers.add(name)
        return numbers

    def _typed(self, cells: pl.Series) -> pl.Series:
        return self._in_known_form(cells)

    def _labels(self, cells: pl.Series) -> pl.Series:
        return cells if self.text is None else self._in_known_form(cells)

    def _in_known_form(self, cells: pl.Series) -> pl.Series:
        """Return text as what all cells of its column are, as a survey has found."""
        values, odd = in_form(cells, self.whole.forms[cells.name], self.has_decimal_comma)
        if odd.any():
            raise DataError(
                f"{self.has} changed while it was read: {self.cell(cells, odd.arg_max())} was "
                "not there before."
            )
        return values

    def _codes(self, cells: pl.Series) -> pl.Series:
        are_numbers = self.whole.codes_are_numbers.get(cells.name)
        return as_codes(cells, self.has_decimal_comma, are_numbers=are_numbers)

    def _flags(self, cells: pl.Series) -> pl.Series:
        flags = as_flags(cells)
        if has_flags(flags):
            self.so_far.are_flags.add(cells.name)
        elif flags.count():
            cell = self.cell(cells, flags.is_not_null().arg_max())
            self.so_far.no_flags.setdefault(cells.name, cell)
        return flags

    def _as_chosen(self, column: str, unit: str) -> TextNumbers:
        read = self.read_numbers(column, unit)
        if read.lacks_unit:
            self.so_far.lacks_unit[column] = unit
        elif read.numbers.count():
            self.so_far.has_unit.add(column)
        return read

    def _times(self, cells: pl.Series) -> pl.Series:
        times, known = as_times(cells), self.so_far.times.get(cells.name)
        if times.dtype == pl.String or (
            known is not None and times.count() and times.dtype != known
        ):
            raise self._no_times(cells, odd_times(cells, known))
        if times.count():
            self.so_far.times[cells.name] = times.dtype
        return times

    def check_all(self) -> None:
        """Check after all batches what only all rows tell.

        Raises DataError for columns read as flags without true and false; warns of numbers without
        the unit of the fit.
        """
        for name, cell in self.so_far.no_flags.items():
            if name not in self.so_far.are_flags:
                raise self._no_flags(cell)
        for name, unit in self.so_far.lacks_unit.items():
            if name not in self.so_far.has_unit:
                warn_user(f"{self.name}: {lacks_unit_words(name, unit)}")


@dataclass(frozen=True)
class _File:
    """One file of a table."""

    schema: pl.Schema
    batches: Callable[[Sequence[str]], Iterable[pl.DataFrame]]
    """Returns the rows, of files with types some columns alone."""
    n_rows: int | None = None
    """None: it takes a reading to know it."""


class Stream:
    """A table of one or more files that is read in batches, as often as wanted.

    `may_be_empty`: whether files may have no rows.

    Raises
    ------
    UserError, OSError
        As `read_tables`; for what is in the midst of a file when a batch comes to it.
    """

    def __init__(self, names: list[str], text: TextFormat, *, may_be_empty: bool = False) -> None:
        self.names, self._may_be_empty = table_names(names), may_be_empty
        warn_of_repeated(self.names)
        self._files = [_open(name, text, may_be_empty) for name in self.names]
        heads = [pl.DataFrame(schema=file.schema) for file in self._files]
        for name, head in zip(self.names[1:], heads[1:], strict=True):
            check_alike(self.names[0], heads[0], name, head)
        columns = [head[heads[0].columns] for head in heads]
        self.schema = pl.concat(columns, how="vertical_relaxed").schema
        self.text = text if is_text(self.names[0]) else None
        self.codes_are_numbers: dict[str, bool] = {}
        """Of columns that are taken as levels, where it is known."""
        self.forms: dict[str, Form] = {}
        """What the cells are of columns of text in text files, where it is known."""
        self._n_rows = [file.n_rows for file in self._files]

    @property
    def name(self) -> str:
        """What messages call the table."""
        return name_of(self.names)

    @property
    def n_rows(self) -> int:
        """Number of rows; of text files after the first reading."""
        return sum(n_rows or 0 for n_rows in self._n_rows)

    def head(self) -> Batch:
        """Return the table without its rows."""
        rows, files = pl.DataFrame(schema=self.schema), tuple((name, 0) for name in self.names)
        return Batch(files, rows, self.text, self, 0, _ReadSoFar())

    def look_at_codes(self, columns: Iterable[str]) -> None:
        """Read text that is taken as levels in advance: all cells tell whether NA is missing."""
        of_text = [
            name
            for name in columns
            if name in self.schema and is_text_column(pl.Series(dtype=self.schema[name]))
        ]
        if not of_text:
            return
        found = dict.fromkeys(of_text, True)
        for batch in self.batches(of_text):
            for name in of_text:
                cells = batch.frame[name]
                found[name] = found[name] and codes_are_numbers(cells, batch.has_decimal_comma)
        self.codes_are_numbers = found

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Batch]:
        """Yield all batches in order, none of them empty; `columns`: those wanted, None for all."""
        wanted = self.schema.names() if columns is None else list(dict.fromkeys(columns))
        schema = pl.Schema({name: self.schema[name] for name in wanted})
        so_far = _ReadSoFar()
        for place, (name, file) in enumerate(zip(self.names, self._files, strict=True)):
            row = 0
            with reading(name):
                for frame in file.batches(wanted):
                    rows = frame if frame.schema == schema else frame.cast(schema)
                    if not rows.height:
                        continue
                    yield Batch(((name, rows.height),), rows, self.text, self, row, so_far)
                    row += rows.height
            if not row and not self._may_be_empty:
                raise no_rows(name)
            self._n_rows[place] = row

    def map(
        self, work: Callable[[Batch], _T], columns: Sequence[str] | None = None
    ) -> Iterator[_T]:
        """Yield what `work` returns for each batch; its errors tell how far the table was read.

        `columns`: those that it needs, None for all.
        """
        batches, n_before, batch = self.batches(columns), 0, None
        for batch in batches:
            try:
                result = work(batch)
            except DataError as error:
                if next(batches, None) is None:
                    raise
                last = batch.row(batch.frame.height - 1)
                raise DataError(f"{error} The rows after {last} were not looked at.") from error
            except ValueError as error:  # of a model, which knows of no rows before
                if not n_before:
                    raise
                raise ValueError(f"{error} Here rows count from {batch.row(0)} on.") from error
            n_before += batch.frame.height
            yield result
        if batch is not None:
            batch.check_all()


def _open(name: str, text: TextFormat, may_be_empty: bool) -> _File:
    separator = check_table(name, text)
    with reading(name):
        if separator:
            cells = TextBatches(Path(name), name, text, separator)
            schema = pl.Schema(dict.fromkeys(cells.names, pl.String()))
            file = _File(schema, lambda columns: (rows[list(columns)] for rows in cells))
            if not may_be_empty and next(iter(cells), None) is None:
                raise no_rows(name)
            return file
        rows = pl.scan_parquet(name, glob=False)
        n_rows = rows.select(pl.len()).collect().item()
        if not n_rows and not may_be_empty:
            raise no_rows(name)
        return _File(
            rows.collect_schema(),
            # By place: as an expression, a name such as "*" would be a pattern.
            lambda columns: collected(rows.select(pl.nth(_places(rows, columns)))),
            n_rows,
        )


def _places(rows: pl.LazyFrame, columns: Sequence[str]) -> list[int]:
    names = rows.collect_schema().names()
    return [names.index(column) for column in columns]


def open_stream(arguments: argparse.Namespace, *, may_be_empty: bool = False) -> Stream:
    """Return the table of a command, in the format that its options describe."""
    return Stream(arguments.data, text_format(arguments), may_be_empty=may_be_empty)
