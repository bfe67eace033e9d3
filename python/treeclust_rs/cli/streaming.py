"""Tables that are read batch by batch, for ``--stream``: in the memory of some batches.

A batch is a `Source` of its own, and so it is read by the code that reads whole tables. What all
rows of a column decide together, whether its text is numbers, times or flags, is remembered from
batch to batch: cells that would not be read together in one table are errors here too.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import polars as pl

from ..parts.batches import collected
from .cells import as_codes, as_flags, as_times, codes_are_numbers, odd_times
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
    words: set[str] = field(default_factory=set)
    """Columns read as flags that had other cells than numbers."""
    no_words: dict[str, str] = field(default_factory=dict)
    """Columns read as flags that had numbers alone in a batch: the words for the first."""
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

    def row(self, number: int) -> str:
        """Return the words for a row of the batch: the number within its file."""
        row = f"row {self.first_row + number}"
        return row if len(self.whole.names) == 1 else f"{row} of {self.files[0][0]}"

    def _numbers(self, cells: pl.Series) -> pl.Series:
        numbers, so_far, name = Source._numbers(self, cells), self.so_far, cells.name
        if not numbers.count():
            return numbers
        if numbers.dtype == pl.Boolean:
            if name in so_far.numbers:
                return cells  # no numbers: the error names the first of them
            so_far.flags.setdefault(name, self.cell(cells, numbers.is_not_null()))
        elif numbers.dtype.is_numeric():
            if name in so_far.flags:
                raise DataError(
                    f"{self.name}: not numbers: {so_far.flags[name]}; rows count from 0."
                )
            so_far.numbers.add(name)
        return numbers

    def _codes(self, cells: pl.Series) -> pl.Series:
        are_numbers = self.whole.codes_are_numbers.get(cells.name)
        return as_codes(cells, self.has_decimal_comma, are_numbers=are_numbers)

    def _flags(self, cells: pl.Series) -> pl.Series:
        numbers = Source._numbers(self, cells)
        if not numbers.dtype.is_numeric():
            self.so_far.words.add(cells.name)
        elif numbers.count():
            cell = self.cell(cells, numbers.is_not_null())
            self.so_far.no_words.setdefault(cells.name, cell)
        return as_flags(cells)

    def _times(self, cells: pl.Series) -> pl.Series:
        times, known = as_times(cells), self.so_far.times.get(cells.name)
        if times.dtype == pl.String or (
            known is not None and times.count() and times.dtype != known
        ):
            raise self._no_times(cells, odd_times(cells, known))
        if times.count():
            self.so_far.times[cells.name] = times.dtype
        return times

    def check_flags(self) -> None:
        """Raise DataError for columns read as flags that have numbers alone, after all batches."""
        for name, cell in self.so_far.no_words.items():
            if name not in self.so_far.words:
                raise self._no_flags(cell)


@dataclass(frozen=True)
class _File:
    """One file of a table."""

    schema: pl.Schema
    batches: Callable[[], Iterable[pl.DataFrame]]


class Stream:
    """A table of one or more files that is read in batches, as often as wanted.

    Raises
    ------
    UserError, OSError
        As `read_tables`; for what is in the midst of a file when a batch comes to it.
    """

    def __init__(self, names: list[str], text: TextFormat) -> None:
        self.names = table_names(names)
        self._files = [_open(name, text) for name in self.names]
        heads = [pl.DataFrame(schema=file.schema) for file in self._files]
        for name, head in zip(self.names[1:], heads[1:], strict=True):
            check_alike(self.names[0], heads[0], name, head)
        columns = [head.select(heads[0].columns) for head in heads]
        self.schema = pl.concat(columns, how="vertical_relaxed").schema
        self.text = text if is_text(self.names[0]) else None
        self.codes_are_numbers: dict[str, bool] = {}

    @property
    def name(self) -> str:
        """What messages call the table."""
        return name_of(self.names)

    def head(self) -> Source:
        """Return the table without its rows."""
        rows = pl.DataFrame(schema=self.schema)
        return Source(tuple((name, 0) for name in self.names), rows, self.text)

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
        for batch in self.batches():
            for name in of_text:
                cells = batch.frame[name]
                found[name] = found[name] and codes_are_numbers(cells, batch.has_decimal_comma)
        self.codes_are_numbers = found

    def batches(self) -> Iterator[Batch]:
        """Yield all batches in order, none of them empty."""
        so_far = _ReadSoFar()
        for name, file in zip(self.names, self._files, strict=True):
            row = 0
            with reading(name):
                for frame in file.batches():
                    rows = self._aligned(frame)
                    if not rows.height:
                        continue
                    yield Batch(((name, rows.height),), rows, self.text, self, row, so_far)
                    row += rows.height
            if not row:
                raise no_rows(name)

    def map(self, work: Callable[[Batch], _T]) -> Iterator[_T]:
        """Yield what `work` returns for each batch; its errors tell how far the table was read."""
        batches, n_before, batch = self.batches(), 0, None
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
            batch.check_flags()

    def _aligned(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return rows of a file with the columns, and the types, of the whole table."""
        rows = frame.select(self.schema.names())
        return rows if rows.schema == self.schema else rows.cast(self.schema)


def _open(name: str, text: TextFormat) -> _File:
    separator = check_table(name, text)
    with reading(name):
        if separator:
            cells = TextBatches(Path(name), name, text, separator)
            file = _File(pl.Schema(dict.fromkeys(cells.names, pl.String())), lambda: cells)
            if next(iter(cells), None) is None:
                raise no_rows(name)
            return file
        rows = pl.scan_parquet(name, glob=False)
        if not rows.select(pl.len()).collect().item():
            raise no_rows(name)
        return _File(rows.collect_schema(), lambda: collected(rows))


def open_stream(arguments: argparse.Namespace) -> Stream:
    """Return the table of a command, in the format that its options describe."""
    return Stream(arguments.data, text_format(arguments))
