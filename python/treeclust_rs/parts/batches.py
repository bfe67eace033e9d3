"""Fits of files and queries that are larger than memory, on one machine."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .._data import IdentifiersSoFar
from .._data.frames import frame_source, string_names
from .._util import level_of_user, listed
from .engines import BesideColumns
from .kept import KeptRows, write_query, written
from .protocol import Fit, Gathering, Model


@dataclass(frozen=True)
class Source:
    """Rows that can be read again and again."""

    batches: Callable[[], Iterable[Any]]
    """Gives all batches, each time it is called."""
    names: list[str] | None
    """Of the columns; None: they have none."""
    n_features: int | None = None
    """Number of columns; None: that of their names."""
    query: pl.LazyFrame | None = None
    """What gives the rows, if it is a query of polars."""

    def kept(self, memory_limit: int | None) -> KeptRows:
        """Return the rows, of which the first are held in so many bytes; None: see `KeptRows`."""
        query = self.query
        if query is None:
            return KeptRows(self.batches, None, memory_limit)
        return KeptRows(self.batches, lambda _, rows: collected(query.slice(rows)), memory_limit)


# What `cache` is by default.
_AUTO = "auto"

# Rows of a query that are held at a time, beside those that polars reads ahead.
_BATCH = 1 << 15

_NAMES_A_ROW = re.compile(r"\b[Rr]ow \d")

# How many row groups polars reads ahead: by default so many that they take most of the memory of a
# fit, and no less time.
_READ_AHEAD = "POLARS_ROW_GROUP_PREFETCH_SIZE"

_SCANS: dict[str, Callable[..., pl.LazyFrame]] = {
    ".parquet": partial(pl.scan_parquet, low_memory=True),
    ".csv": pl.scan_csv,
}


def fit_batches(
    model: Model,
    batches: Any,
    *,
    sample_weight: str | None = None,
    reference: str | None = None,
    cache: str | os.PathLike[str] | None = "auto",
    memory_limit: int | None = None,
) -> Model:
    """Fit a model to rows that are read batch by batch, several times, and never held at once.

    The tree is that of ``model.fit`` with all rows in memory, to the bit. Memory: some batches and
    the sums of the tree, whatever the number of rows, and `memory_limit`. The rows are read some
    2 depth + 10 times: what reading costs, `cache` and `memory_limit` save.

    Parameters
    ----------
    model : ExKMC or IMM
        `reference`: centers, or None: see `Fit`.
    batches : LazyFrame, path-like, list, or callable
        A polars LazyFrame; a Parquet or CSV file, a pattern such as ``"rows/*.parquet"``, a folder
        of such files, or a list of these; a list of frames or arrays; or a function without
        arguments that returns an iterable of frames or arrays, the same rows in the same order each
        time. Columns hold what ``model.fit`` takes: numbers, text, booleans, times; cells may be
        missing.
    sample_weight : str, default=None
        The column of the frames that holds the weights of the rows; it is not fitted to.
    reference : str, default=None
        The column that holds the clusters to be explained, integers or strings, at most 4,096
        different ones; -1 marks noise. It is not fitted to. The model's own `reference` is then
        None. The tree is that of ``model.fit`` with these labels as `reference`.
    cache : "auto", path-like or None, default="auto"
        What is kept of the rows between the readings. ``"auto"``: rows of a LazyFrame, of files,
        and of polars and pyarrow frames in memory, if all of them take at most 64 MB; else nothing.
        None: nothing. A folder: there a query (of CSV files, of a join, over a network) writes its
        rows once, as an uncompressed Parquet file; all other readings read this. It is removed at
        the end. Only for a LazyFrame and files; ``"./auto"`` is a folder of this name.
    memory_limit : int, default=None
        Bytes, with any `cache`: of the first rows that come, so many as fit are held in memory
        after the first reading, and only the others are read again. None: as `cache` says.

    Returns
    -------
    ExKMC or IMM
        The model, fitted. It has no `labels_`: write them by
        ``frame.with_columns(model.to_polars())`` and ``.sink_parquet(path)``.

    Raises
    ------
    ValueError
        If a file is empty; if a later reading gives other rows than the first; if `memory_limit`
        is below 0; as `Fit` and `Question.answer`.
    TypeError
        If `batches` gives its rows only once (a generator), or is nothing that gives rows; if
        `cache` is given with frames, arrays or a function.
    OSError
        If a file cannot be read; if `cache` is no folder, or is full.

    See Also
    --------
    Fit : The same for any engine that maps and reduces.

    Examples
    --------
    >>> import numpy as np, polars as pl, treeclust_rs as tc
    >>> rng = np.random.default_rng(0)
    >>> frame = pl.DataFrame(rng.normal(size=(1000, 2)).round(3), schema=["a", "b"])
    >>> centers = [[-1.0, 0.0], [1.0, 1.0], [1.0, -1.0]]
    >>> model = tc.ExKMC(reference=np.array(centers), base_tree=None, max_leaves=5)
    >>> tc.parts.fit_batches(model, frame.lazy()).n_leaves_
    5
    """
    limit = _checked_limit(memory_limit, 0 if cache != _AUTO else None)
    folder = None if cache == _AUTO else cache
    source = source_of(batches)
    beside = BesideColumns(sample_weight, reference)
    names = beside.others(source.names)
    n_features = source.n_features if names is None else None
    fit = Fit(model, feature_names=names, n_features=n_features, labels=reference is not None)
    has_reference = reference is not None or model.reference is not None
    identifiers = IdentifiersSoFar()
    with _written(source, folder) as source:
        rows = source.kept(limit)
        while (question := fit.question()) is not None:
            looks = has_reference and not fit.n_rounds  # else the rows of k-means tell
            gathering = Gathering(question, fit.threads, identifiers.add if looks else None)
            _gather(rows.batches(), gathering, beside)
            try:
                fit.tell_gathered(gathering)
            except ValueError as error:
                # What a conversation calls a part is here all that the user gave.
                raise ValueError(str(error).replace("Part 0 has", "batches has", 1)) from None
            if looks:
                identifiers.warn(stacklevel=level_of_user() + 1)
    return fit.result()


def _gather(batches: Iterable[Any], gathering: Gathering, beside: BesideColumns) -> None:
    """Add all batches to an answer; errors that name a row of a later one tell where it begins."""
    for batch in batches:
        frame = batch
        if beside.names and not hasattr(batch, "drop"):
            frame = pl.DataFrame(batch)
        n_before = gathering.n_rows
        try:
            gathering.add(*beside.split(frame, 0))
        except (TypeError, ValueError) as error:
            if not n_before or not _NAMES_A_ROW.search(str(error)):
                raise
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{error} This batch begins with row {n_before} of all rows.") from error


def _checked_limit(memory_limit: int | None, default: int | None) -> int | None:
    """Return how many bytes of rows are held, `default` for None."""
    if memory_limit is None:
        return default
    whole = isinstance(memory_limit, (int, np.integer)) and not isinstance(memory_limit, bool)
    if not whole or memory_limit < 0:
        raise ValueError(
            f"memory_limit must be a number of bytes, an int from 0 on, or None. Got "
            f"{memory_limit!r} instead."
        )
    return int(memory_limit)


@contextmanager
def _written(source: Source, cache: str | os.PathLike[str] | None) -> Iterator[Source]:
    """Yield the rows as a folder keeps them, or as they are if `cache` is None."""
    if cache is None:
        yield source
        return
    if source.query is None:
        raise TypeError(
            "cache is for a LazyFrame or files. Of frames, arrays and functions memory_limit holds "
            "rows in memory; or write them to Parquet files, and give these."
        )
    if not Path(cache).is_dir():
        raise FileNotFoundError(f"cache: {os.fspath(cache)} is no folder. Make it first.")
    with written(partial(write_query, source.query), cache) as query:
        yield _rows_of(query)


def source_of(batches: Any) -> Source:
    """Return the rows of what `fit_batches` takes."""
    paths = [batches] if isinstance(batches, (str, os.PathLike)) else batches
    are_paths = isinstance(paths, (list, tuple)) and bool(paths)
    if are_paths and all(isinstance(path, (str, os.PathLike)) for path in paths):
        batches = _scan(paths)
    if isinstance(batches, pl.LazyFrame):
        return _rows_of(batches)
    if isinstance(batches, Iterator):
        raise TypeError(
            "batches gives its rows once, and a fit reads them several times. Give a function that "
            "begins anew each time: lambda: ... ."
        )
    if _are_rows(batches):
        return _with_names(lambda: [batches])
    if isinstance(batches, (list, tuple)) and any(map(_are_rows, batches)):
        return _with_names(lambda: batches)
    if callable(batches):
        return _with_names(batches)
    raise TypeError(
        "batches must be a polars LazyFrame, files, frames or arrays in a list, or a function that "
        f"returns them. Got {type(batches).__name__} instead."
    )


def _rows_of(query: pl.LazyFrame) -> Source:
    names = query.collect_schema().names()
    return Source(lambda: collected(query), names, query=query)


def _are_rows(batch: Any) -> bool:
    return frame_source(batch) is not None or hasattr(batch, "shape")


def _with_names(batches: Callable[[], Iterable[Any]]) -> Source:
    """Return batches with the names that the columns of the first have."""
    checked = partial(_checked, batches)
    for batch in checked():
        first = frame_source(batch)
        if first is not None:
            return Source(checked, string_names(first.names), len(first.names))
        shape = np.shape(batch)
        return Source(checked, None, shape[1] if len(shape) == 2 else None)
    raise ValueError("batches gives no rows.")


def _checked(batches: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    """Yield all batches; raises TypeError if they are not frames and arrays in an iterable."""
    given = batches()
    if isinstance(given, pl.LazyFrame):
        raise TypeError(
            "batches returns a LazyFrame, and not frames or arrays: give the LazyFrame itself."
        )
    if not isinstance(given, Iterable) or _are_rows(given):
        what = type(given).__name__
        raise TypeError(
            f"batches returns no list or generator of frames or arrays, but {what}. One frame or "
            "array alone is returned in a list."
        )
    for batch in given:
        if isinstance(batch, pl.LazyFrame):
            raise TypeError(
                "A batch is a LazyFrame: give polars.concat(frames), which is one, as batches, or "
                "collect each."
            )
        yield batch


def collected(frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yield the batches of a query, in the order of its rows.

    polars calls `collect_batches` unstable: where it is not, all rows are one batch.
    """
    if not hasattr(frame, "collect_batches"):
        yield frame.collect()
        return
    before = os.environ.get(_READ_AHEAD)
    os.environ.setdefault(_READ_AHEAD, "1")  # polars has no other way to be told
    try:
        yield from frame.collect_batches(maintain_order=True, chunk_size=_BATCH)
    finally:
        if before is None:
            os.environ.pop(_READ_AHEAD, None)


def _scan(paths: Sequence[str | os.PathLike[str]]) -> pl.LazyFrame:
    """Return the rows of files, patterns and folders, in the order of the names."""
    files: list[str] = []
    for path in paths:
        text = os.fspath(path)
        if Path(text).is_dir():
            inside = sorted(
                str(file) for file in Path(text).iterdir() if file.suffix.lower() in _SCANS
            )
            if not inside:
                raise FileNotFoundError(f"{text}: no file there ends in .parquet or .csv.")
            files += inside
        elif not Path(text).exists() and glob.has_magic(text):
            found = sorted(glob.glob(text))
            if not found:
                raise FileNotFoundError(f"{text}: no file has such a name.")
            files += found
        else:
            if not Path(text).exists():
                raise FileNotFoundError(f"{text}: there is no such file.")
            files.append(text)
    endings = {Path(file).suffix.lower() for file in files}
    if len(endings) > 1 or not endings <= set(_SCANS):
        raise ValueError(
            "Files must be all Parquet (.parquet) or all CSV (.csv). Got "
            f"{listed(sorted(endings), 'ending')}."
        )
    for file in files:
        if not Path(file).stat().st_size:
            raise ValueError(f"{file} is empty: it has no columns.")
    return _SCANS[endings.pop()](files)
