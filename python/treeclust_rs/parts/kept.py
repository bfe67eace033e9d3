"""What `fit_batches` keeps of the rows between its readings: in memory, or in a folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .._data.frames import frame_source

# Rows of a row group of the file in a folder: some of them are in memory at a time.
_ROW_GROUP = 1 << 16

# Bytes of rows that are held without being asked for: far less than the fit itself takes.
SMALL = 1 << 26


class KeptRows:
    """Rows that are read again and again, of which the first are held in memory.

    `batches` gives all batches; `after` those after so many batches and rows, None: by passing over
    batches. `memory_limit`: bytes of rows to hold; None: all, if they take no more than `SMALL` and
    come in frames that nobody changes, else none.
    """

    def __init__(
        self,
        batches: Callable[[], Iterable[Any]],
        after: Callable[[int, int], Iterable[Any]] | None,
        memory_limit: int | None,
    ) -> None:
        self._batches = batches
        self._is_all_or_none = memory_limit is None
        self._memory_limit = SMALL if memory_limit is None else memory_limit
        self._after = after or (lambda n_batches, _: islice(batches(), n_batches, None))
        self._held: list[Any] = []
        self._was_read = self._are_all_held = False

    def batches(self) -> Iterator[Any]:
        """Yield all batches; those of the first reading are held as long as there is room."""
        if not self._was_read:
            yield from self._first_reading()
            return
        yield from self._held
        if not self._are_all_held:
            yield from self._after(len(self._held), sum(map(len, self._held)))

    def _first_reading(self) -> Iterator[Any]:
        left, is_full = self._memory_limit, False
        self._held = []
        for batch in self._batches():
            size = None if is_full else self._size_of(batch)
            if size is None or size > left:
                is_full = True
                if self._is_all_or_none:
                    self._held = []
            else:
                left -= size
                self._held.append(batch)
            yield batch
        self._was_read, self._are_all_held = True, not is_full

    def _size_of(self, batch: Any) -> int | None:
        """Return the bytes of a batch; None if it cannot be held."""
        can_change = isinstance(batch, np.ndarray) or hasattr(batch, "memory_usage")
        return None if self._is_all_or_none and can_change else size_of(batch)


def size_of(batch: Any) -> int | None:
    """Return the bytes of a batch in memory; None if its library does not say."""
    if isinstance(batch, pl.DataFrame):
        return int(batch.estimated_size())
    if isinstance(batch, np.ndarray):
        return batch.nbytes
    if hasattr(batch, "memory_usage"):  # pandas
        return int(batch.memory_usage(deep=True).sum())
    return int(batch.nbytes) if frame_source(batch) is not None else None  # pyarrow


@contextmanager
def written(
    write: Callable[[Path], object], folder: str | os.PathLike[str]
) -> Iterator[pl.LazyFrame]:
    """Yield rows that are written once, to a Parquet file of a folder that is removed at the end.

    Raises OSError if the folder is not there or full.
    """
    with tempfile.TemporaryDirectory(prefix="treeclust-", dir=folder) as inside:
        path = Path(inside) / "rows.parquet"
        write(path)
        yield pl.scan_parquet(path, glob=False, low_memory=True)


def write_query(query: pl.LazyFrame, path: Path) -> None:
    """Run a query, and write its rows."""
    query.sink_parquet(path, compression="uncompressed", row_group_size=_ROW_GROUP)
