"""The feature table: array, list, polars, pandas or pyarrow in one form.

All other modules read a `Table`: a two-dimensional numpy array or a list of columns, in
the dtypes the Rust core reads, with the user's column names. Data are viewed, not copied, wherever
memory allows; a copy is made only of what has no such view (bit-packed booleans, several chunks,
foreign byte order, half precision, decimals, nullable pandas columns).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from .._engine import MISSING_LEVEL, ColumnData, Columns, LevelColumn
from .._util import BoolArray, IntArray, quoted_column, warn_user
from .._util.words import check_column_names, check_unicode
from . import frames
from .arrays import check_shape, check_width, number_array
from .frames import FrameSource, frame_source
from .kinds import Kind, kind_words
from .levels import LevelNames, Texts
from .mixed import FittedColumns, check_kinds, read_as_fitted, read_mixed
from .sparse import SparseTable


@dataclass(frozen=True, slots=True)
class Table:
    """The features of a data set, column by column or as one array.

    Attributes
    ----------
    data : ndarray of shape (n_samples, n_features) or list of columns of shape (n_samples,)
        Aligned, native byte order, of dtype bool, int8..int64, uint8..uint64, float32 or float64
        (NaN: missing), or a `LevelColumn`; any strides. Integers are compared as float64, so those
        beyond 2**53 are rounded. Columns that `align_table` was not asked to read are False.
    n_samples, n_features : int
        Both at least 1.
    feature_names : list of str or None
        None where the input has no names, or none that are strings.
    kinds : tuple of str or None
        What the columns hold (see `Kind`); None: numbers alone.
    levels : tuple or None
        By column its levels in their order, None for one that has none; as a whole None where no
        column has levels.
    gaps : tuple of int or None
        By column the number of missing cells; None where there are none, or before `count_gaps`.
        LevelNames that the fit did not have count as missing.
    unknown : dict or None
        By column its cells, where `align_table` found levels that the fit did not have.
    """

    data: Columns
    n_samples: int
    n_features: int
    feature_names: list[str] | None
    kinds: tuple[Kind, ...] | None = None
    levels: tuple[LevelNames | None, ...] | None = None
    gaps: tuple[int, ...] | None = None
    unknown: dict[int, Texts] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether there are numbers alone, and no gaps."""
        return self.levels is None and self.gaps is None

    def n_levels(self, feature: int) -> int:
        """Return the number of levels of a column; 0 for one of numbers."""
        known = None if self.levels is None else self.levels[feature]
        return 0 if known is None else len(known)


Item = TypeVar("Item")
NamedRows = TypeVar("NamedRows", Table, SparseTable)


def collected(X: Any, estimator_name: str, *, mixed: bool = False) -> Any:
    """Return X itself, or a LazyFrame's rows: collected once, after a check of its column types.

    For those who read X more than once, or hand it on; `read_table` collects in less memory.

    Parameters
    ----------
    X : array-like or frame
        As for `read_table`.
    estimator_name : str
        Named in messages.
    mixed : bool, default=False
        As for `read_table`.

    Returns
    -------
    object
        A polars DataFrame for a LazyFrame, X for everything else.

    Raises
    ------
    TypeError, ValueError
        As `read_table`, for columns and names of a LazyFrame.
    """
    frame = X.to_native() if type(X).__module__.partition(".")[0] == "narwhals" else X
    if not isinstance(frame, pl.LazyFrame):
        return X
    source = frame_source(frame)
    assert source is not None
    check = check_kinds if mixed else frames.check_numeric
    check(source, range(len(source.names)), estimator_name)
    columns = frame.collect().get_columns()
    # Whole columns, made in turn: chunks and columns of all would take twice the memory.
    for place in range(len(columns)):
        columns[place] = columns[place].rechunk()
    return pl.DataFrame(columns)


def read_table(X: Any, *, estimator_name: str, mixed: bool = False) -> Table:
    """Read the input of a fit.

    Parameters
    ----------
    X : array-like, polars DataFrame or LazyFrame, pandas DataFrame, pyarrow Table or RecordBatch
        The samples as rows. A LazyFrame is collected, batch by batch, after a check of its column
        types. Other frames that export an Arrow stream (`__arrow_c_stream__`) are read through
        polars.
    estimator_name : str
        Named in messages.
    mixed : bool, default=False
        Whether cells may be missing and columns of frames hold text, booleans and times.

    Returns
    -------
    Table

    Raises
    ------
    TypeError
        For sparse input, columns that are not numbers (where `mixed`: of no kind that is read), and
        names of which only some are strings.
    ValueError
        For nulls (unless `mixed`), an empty table, duplicate or invalid column names, complex
        numbers, and anything that is not two-dimensional. Where `mixed`, for columns of more than
        255 levels and times too far from 1970. NaN and inf are left to `check_finite` and
        `count_gaps`.
    """
    source = frame_source(X)
    if source is None:
        return _array_table(number_array(X, estimator_name, mixed=mixed), None)
    frames.check_unique(source.names)
    names = frames.string_names(source.names)
    check_unicode(names or [], "X has a column")
    positions = range(len(source.names))
    if not mixed:
        return _frame_table(source, positions, names, estimator_name)
    data, kinds, levels = read_mixed(source, positions, estimator_name)
    return Table(data, frames.count_rows(data), len(positions), names, kinds, levels)


def check_feature_names(
    given: Iterable[object], n_features: int, own: Sequence[str] | None
) -> list[str]:
    """Check the `feature_names` of a fit.

    Parameters
    ----------
    given : iterable of str
        One name a column, in the order of the columns.
    n_features : int
        The number of columns.
    own : sequence of str or None
        The names that the columns have already, of which `given` may not differ.

    Returns
    -------
    list of str

    Raises
    ------
    TypeError
        If they are no list of names: a single string, a set, a mapping, something without entries.
    ValueError
        If there are more or fewer names than columns, one is not a string, not valid Unicode or
        repeated, or the names are not those that the columns have.
    """
    if isinstance(given, (str, bytes, Set, Mapping)) or not isinstance(given, Iterable):
        raise TypeError(
            f"feature_names must be a list of strings, one a column. Got {given!r:.60} instead."
        )
    names = check_column_names(given, n_features, "feature_names holds a column")
    for place, (name, column) in enumerate(zip(names, own or names, strict=True)):
        if name != column:
            raise ValueError(
                f"feature_names has {name!r} for column {place} (counting from 0), but X names it "
                f"{column!r}. A frame brings its names: leave feature_names out, or rename the "
                "frame's columns."
            )
    return names


def with_names(table: NamedRows, given: Iterable[object] | None) -> tuple[NamedRows, bool]:
    """Return the rows of a fit with the `feature_names` given, and whether X had none of its own.

    Raises as `check_feature_names`; None gives nothing.
    """
    if given is None:
        return table, False
    own = table.feature_names
    names = check_feature_names(given, table.n_features, own)
    return replace(table, feature_names=names), own is None


def align_table(
    X: Any,
    feature_names: Sequence[str] | None,
    n_features: int,
    *,
    estimator_name: str,
    needed: IntArray | None = None,
    names_given: bool = False,
    fitted: FittedColumns | None = None,
) -> Table:
    """Read the input of a predict into the columns of the fit.

    A frame is matched by name: its columns may come in any order, and columns that the fit did not
    have, or that are not needed, are ignored, whatever they hold. Everything else is matched by
    position.

    Parameters
    ----------
    X : array-like or frame
        As for `read_table`. Of a LazyFrame only the columns needed are collected.
    feature_names : sequence of str or None
        The names seen in fit; None after a fit without names.
    n_features : int
        The number of columns seen in fit.
    estimator_name : str
        Named in messages.
    needed : ndarray of int or None, default=None
        Indices of the columns to read, ascending; None reads all. Of the others neither presence in
        a frame nor type nor content is checked.
    names_given : bool, default=False
        Whether the names are not a frame's but were given with an array: then X may lack names.
    fitted : FittedColumns or None, default=None
        What the columns of the fit hold, for a fit that takes missing cells: text is coded by the
        levels of the fit. None: numbers without gaps.

    Returns
    -------
    Table
        With the columns, and the names, of the fit.

    Raises
    ------
    TypeError, ValueError
        As for `read_table`; ValueError also for missing columns, which it names, and for a wrong
        number of columns; TypeError also for a column that held something else in the fit.

    Warns
    -----
    UserWarning
        When only one of fit and predict has column names: columns are then matched by position.
        Once when columns have levels that the fit did not have, which count as missing.
    """
    names = None if feature_names is None else list(feature_names)
    wanted = range(n_features) if needed is None else needed.tolist()
    source = frame_source(X)
    if source is None:
        array = number_array(X, estimator_name, needed, mixed=fitted is not None)
        if fitted is not None:
            _check_numbers_suffice(fitted, wanted, names, estimator_name)
        if names is not None and not names_given:
            _warn_names_lost(estimator_name)
        check_width(array.shape[1], n_features, estimator_name)
        return _array_table(array, names)
    positions = positions_in(source, names, n_features, wanted, estimator_name, names_given)
    return _spread(source, positions, wanted, n_features, names, estimator_name, fitted)


def positions_in(
    source: FrameSource,
    names: Sequence[str] | None,
    n_features: int,
    wanted: Sequence[int],
    estimator_name: str,
    names_given: bool,
) -> Sequence[int]:
    """Return the places in a frame of some columns of a fit: by name, or else by position.

    Parameters, errors and warnings as of `align_table`; `wanted`: indices of the columns.
    """
    if names is not None and (
        not source.names or any(isinstance(name, str) for name in source.names)
    ):
        return frames.positions_of(source.names, [names[column] for column in wanted])
    frames.check_unique(source.names)
    if names is not None and not names_given:
        _warn_names_lost(estimator_name)
    elif names is None and frames.string_names(source.names) is not None:
        warn_user(f"X has feature names, but {estimator_name} was fitted without feature names")
    check_width(len(source.names), n_features, estimator_name)
    return wanted


def _spread(
    source: FrameSource,
    positions: Sequence[int],
    places: Sequence[int],
    n_features: int,
    names: list[str] | None,
    estimator_name: str,
    fitted: FittedColumns | None,
) -> Table:
    """Return columns of a frame at some places of a table, whose other columns are False."""
    if not positions:
        n_samples = source.count_rows()
        check_shape((n_samples, n_features), estimator_name)
        return Table(_unread(n_samples, n_features), n_samples, n_features, names)
    unknown = None
    if fitted is None:
        read = frames.read_columns(source, positions, estimator_name)
    else:
        read, unknown = read_as_fitted(source, positions, fitted, places, estimator_name)
    n_samples, data = frames.count_rows(read), read
    if len(places) < n_features:
        data = _unread(n_samples, n_features)
        for column, place in enumerate(places):
            data[place] = read[column] if isinstance(read, list) else read[:, column]
    kinds, levels = (None, None) if fitted is None else fitted
    known = _tuple(kinds), _tuple(levels)
    return Table(data, n_samples, n_features, names, *known, unknown=unknown)


def _tuple(items: Sequence[Item] | None) -> tuple[Item, ...] | None:
    return None if items is None else tuple(items)


def _check_numbers_suffice(
    fitted: FittedColumns, columns: Sequence[int], names: list[str] | None, estimator_name: str
) -> None:
    """Raise TypeError if a column of the fit holds other things than an array does."""
    if fitted.kinds is None:
        return
    for column in columns:
        kind = fitted.kind(column)
        if kind != "number":
            raise TypeError(
                f"Column {quoted_column(names, column)} held {kind_words(kind)} when "
                f"{estimator_name} was fitted, and arrays hold numbers alone. Give a frame."
            )


def _unread(n_samples: int, n_features: int) -> list[ColumnData]:
    """Return columns that nobody reads."""
    return [np.broadcast_to(np.False_, n_samples)] * n_features


def column_of(table: Table, feature: int) -> npt.NDArray[Any]:
    """Return one column of a table, of a level column its codes as floats (NaN: missing)."""
    data = table.data
    if not isinstance(data, list):
        return data[:, feature]
    column = data[feature]
    if not isinstance(column, LevelColumn):
        return column
    codes = column.codes.astype(np.float64)
    codes[column.codes == MISSING_LEVEL] = np.nan
    return codes


def level_columns(table: Table) -> list[int]:
    """Return the columns of levels."""
    data = table.data if isinstance(table.data, list) else []
    return [f for f, column in enumerate(data) if isinstance(column, LevelColumn)]


def level_codes(table: Table, feature: int) -> npt.NDArray[np.uint8]:
    """Return the codes of a level column."""
    column = table.data[feature]
    assert isinstance(column, LevelColumn), "a column of levels"
    return column.codes


def columns_of(table: Table) -> list[npt.NDArray[Any]]:
    """Return all columns of a table, each as `column_of`."""
    return [column_of(table, feature) for feature in range(table.n_features)]


def shown_columns(table: Table) -> list[npt.NDArray[Any]]:
    """Return all columns as `column_of`, those with unknown levels as texts (None: missing)."""
    unknown = table.unknown or {}
    return [
        unknown[feature].of_rows() if feature in unknown else column_of(table, feature)
        for feature in range(table.n_features)
    ]


def take_rows(table: Table, mask: BoolArray) -> Table:
    """Copy some of the rows.

    Parameters
    ----------
    table : Table
        The rows to choose from.
    mask : ndarray of shape (n_samples,), bool
        True for the rows to keep.

    Returns
    -------
    Table
        A compact copy of the rows, with the same dtypes, names and memory order.
    """
    if mask.dtype != np.bool_ or mask.shape != (table.n_samples,):
        raise ValueError(
            f"The mask must be a bool array of shape ({table.n_samples},), got {mask.dtype} of "
            f"shape {mask.shape}."
        )
    rows = np.flatnonzero(mask)
    data: Columns
    if isinstance(table.data, list):
        data = [
            LevelColumn(column.codes[rows], column.n_levels)
            if isinstance(column, LevelColumn)
            else column[rows]
            for column in table.data
        ]
    elif abs(table.data.strides[0]) < abs(table.data.strides[1]):
        data = np.empty((len(rows), table.n_features), dtype=table.data.dtype, order="F")
        for column in range(table.n_features):
            data[:, column] = table.data[rows, column]
    else:
        data = np.ascontiguousarray(table.data[rows])
    taken = replace(table, data=data, n_samples=len(rows), unknown=None)
    if table.gaps is None:
        return taken
    if not isinstance(data, list):
        counts = np.count_nonzero(np.isnan(data), axis=0)
        return replace(taken, gaps=tuple(counts.tolist()) if counts.any() else None)
    return replace(taken, gaps=gaps_of(missing_cells(taken, f) for f in range(table.n_features)))


def missing_cells(table: Table, feature: int) -> BoolArray | None:
    """Return the mask of the missing cells of a column; None where there are none."""
    if not isinstance(table.data, list):
        column: ColumnData = table.data[:, feature]
    else:
        column = table.data[feature]
    if isinstance(column, LevelColumn):
        missing: BoolArray = column.codes == MISSING_LEVEL
    elif column.dtype.kind == "f":
        missing = np.isnan(column)
    else:
        return None
    return missing if missing.any() else None


def observed_rows(table: Table | SparseTable) -> BoolArray | None:
    """Return the mask of the rows with at least one cell that is not missing; None: all rows."""
    if isinstance(table, SparseTable) or table.gaps is None or 0 in table.gaps:
        return None
    empty = np.ones(table.n_samples, dtype=bool)
    for feature in range(table.n_features):
        missing = missing_cells(table, feature)
        if missing is None:
            return None
        empty &= missing
        if not empty.any():
            return None
    return ~empty


def gaps_of(masks: Iterable[BoolArray | None]) -> tuple[int, ...] | None:
    """Return the number of missing cells by column; None where there are none."""
    counts = tuple(0 if mask is None else int(np.count_nonzero(mask)) for mask in masks)
    return counts if any(counts) else None


def _array_table(array: npt.NDArray[Any], names: list[str] | None) -> Table:
    return Table(array, array.shape[0], array.shape[1], names)


def _frame_table(
    source: FrameSource, positions: Sequence[int], names: list[str] | None, estimator_name: str
) -> Table:
    """Return some columns of a frame, in that order, under these names."""
    data = frames.read_columns(source, positions, estimator_name)
    return Table(data, frames.count_rows(data), len(positions), names)


def _warn_names_lost(estimator_name: str) -> None:
    warn_user(
        f"X does not have valid feature names, but {estimator_name} was fitted with feature names"
    )
