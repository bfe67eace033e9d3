"""Turn what a user has (array, list, polars, pandas, pyarrow) into one feature table.

Everything behind this module sees a `Table`: a two-dimensional numpy array or a list of columns, in
the dtypes the Rust core reads, with the user's column names. Data are viewed, not copied, wherever
memory allows; a copy is made only of what has no such view (bit-packed booleans, several chunks,
foreign byte order, half precision, decimals, nullable pandas columns).

pandas and pyarrow are understood but never imported: an object can only be one of theirs if its
module is loaded already.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import issparse

from .. import _engine
from .._util.words import format_count

__all__ = [
    "Table",
    "align_table",
    "check_finite",
    "check_sample_weight",
    "column_of",
    "read_table",
    "take_rows",
]

# An error message names this many columns before it says how many more there are.
_MAX_NAMED = 5

# The dtype each foreign float is read as; all other numbers keep theirs.
_FLOATS: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.float16): np.dtype(np.float32),
    np.dtype(np.longdouble): np.dtype(np.float64),
    np.dtype(np.float32): np.dtype(np.float32),
    np.dtype(np.float64): np.dtype(np.float64),
}


@dataclass(frozen=True, slots=True)
class Table:
    """The features of a data set, column by column or as one array.

    Attributes
    ----------
    data : ndarray of shape (n_samples, n_features) or list of ndarray of shape (n_samples,)
        Aligned, native byte order, of dtype bool, int8..int64, uint8..uint64, float32 or float64;
        any strides. Integers are compared as float64, so those beyond 2**53 are rounded.
    n_samples, n_features : int
        Both at least 1.
    feature_names : list of str or None
        None where the input has no names, or none that are strings.
    """

    data: npt.NDArray[Any] | list[npt.NDArray[Any]]
    n_samples: int
    n_features: int
    feature_names: list[str] | None


def read_table(X: Any, *, estimator_name: str) -> Table:
    """Read the input of a fit.

    Parameters
    ----------
    X : array-like, polars DataFrame or LazyFrame, pandas DataFrame, pyarrow Table or RecordBatch
        The samples as rows. A LazyFrame is collected once its column types have been checked. Other
        frames that export an Arrow stream (`__arrow_c_stream__`) are read through polars.
    estimator_name : str
        Who asks, for the messages.

    Returns
    -------
    Table

    Raises
    ------
    TypeError
        For sparse input, columns that are not numbers, and names of which only some are strings.
    ValueError
        For nulls, an empty table, duplicate column names, complex numbers, and anything that is
        not two-dimensional. NaN and inf are left to `check_finite`.
    """
    source = _frame_source(X)
    if source is None:
        return _array_table(_as_array(X, estimator_name), None)
    _check_unique(source.names)
    return _frame_table(
        source, range(len(source.names)), _string_names(source.names), estimator_name
    )


def align_table(
    X: Any, feature_names: Sequence[str] | None, n_features: int, *, estimator_name: str
) -> Table:
    """Read the input of a predict into the columns of the fit.

    A frame is matched by name: its columns may come in any order, and those the fit did not see are
    not looked at, whatever they hold. Everything else is matched by position.

    Parameters
    ----------
    X : array-like or frame
        As for `read_table`. Of a LazyFrame only the columns needed are collected.
    feature_names : sequence of str or None
        The names seen in fit; None after a fit without names.
    n_features : int
        The number of columns seen in fit.
    estimator_name : str
        Who asks, for the messages.

    Returns
    -------
    Table
        With the columns, and the names, of the fit.

    Raises
    ------
    TypeError, ValueError
        As for `read_table`; ValueError also for missing columns, which it names, and for a wrong
        number of columns.

    Warns
    -----
    UserWarning
        When only one of fit and predict has column names: columns are then matched by position.
    """
    names = None if feature_names is None else list(feature_names)
    source = _frame_source(X)
    if source is None:
        array = _as_array(X, estimator_name)
        if names is not None:
            _warn_names_lost(estimator_name)
        _check_width(array.shape[1], n_features, estimator_name)
        return _array_table(array, names)
    if names is not None and any(isinstance(name, str) for name in source.names):
        return _frame_table(source, _positions(source.names, names), names, estimator_name)

    _check_unique(source.names)
    if names is not None:
        _warn_names_lost(estimator_name)
    elif _string_names(source.names) is not None:
        warnings.warn(
            f"X has feature names, but {estimator_name} was fitted without feature names",
            UserWarning,
            stacklevel=3,
        )
    _check_width(len(source.names), n_features, estimator_name)
    return _frame_table(source, range(n_features), names, estimator_name)


def check_finite(table: Table, n_jobs: int | _engine.Threads) -> None:
    """Raise ValueError if a column holds NaN or inf.

    Parameters
    ----------
    table : Table
        What `read_table` or `align_table` gave.
    n_jobs : int or Threads
        Passed to the core.

    Raises
    ------
    ValueError
        Names the columns, how many NaN and inf each holds, and the first row with one.
    """
    columns = table.data if isinstance(table.data, list) else [table.data]
    if all(column.dtype.kind != "f" for column in columns):
        return
    found = _engine.find_non_finite(table.data, n_jobs)
    if not found:
        return
    problems = [
        (
            column_label(table.feature_names, column),
            _counts((n_nan, "NaN"), (n_inf, "inf")),
            first_row,
        )
        for column, n_nan, n_inf, first_row in found
    ]
    kinds = [
        word
        for word, count in (
            ("NaN", sum(n_nan for _, n_nan, _, _ in found)),
            ("inf", sum(n_inf for _, _, n_inf, _ in found)),
        )
        if count
    ]
    raise ValueError(_missing_message(" and ".join(kinds), problems))


def check_sample_weight(sample_weight: Any, n_samples: int) -> npt.NDArray[np.float64] | None:
    """Check the weights of the rows.

    Parameters
    ----------
    sample_weight : None, number, or array-like of shape (n_samples,)
        One number is the weight of every row.
    n_samples : int
        The number of rows.

    Returns
    -------
    ndarray of shape (n_samples,), float64, or None
        Contiguous; None stays None. May share memory with the input.

    Raises
    ------
    TypeError
        If the weights are not numbers.
    ValueError
        If a weight is negative, NaN, inf or null (the first such row is named), if all are zero, or
        if their number is not `n_samples`.
    """
    if sample_weight is None:
        return None
    pandas = sys.modules.get("pandas")
    try:
        if pandas is not None and isinstance(sample_weight, pandas.Series):
            sample_weight = sample_weight.to_numpy(dtype=np.float64, na_value=np.nan)
        given = _filled(sample_weight, "sample_weight")
        if given.dtype.kind not in "biufO":
            raise TypeError(f"got dtype {given.dtype}.")
        if given.ndim == 0:
            given = np.full(n_samples, given)
        weight = np.ascontiguousarray(given, dtype=np.float64)
    except TypeError as error:
        raise TypeError(f"sample_weight must hold numbers: {error}") from error
    if given.ndim > 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got {given.ndim}D array of shape "
            f"{given.shape}. Expected {n_samples} weights, one a row of X."
        )
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has {weight.shape[0]} entries, but X has {n_samples} rows: give one "
            f"weight a row."
        )
    for what, wrong in (
        ("NaN (or null)", np.isnan),
        ("inf", np.isinf),
        ("negative values", lambda values: values < 0),
    ):
        rows = np.flatnonzero(wrong(weight))
        if len(rows):
            raise ValueError(
                f"sample_weight contains {what}: {len(rows)} of {n_samples}, the first in row "
                f"{rows[0]} (counting from 0). Weights must be finite and not negative."
            )
    if not weight.any():
        raise ValueError(
            f"sample_weight is zero in all {n_samples} rows: at least one weight must be positive."
        )
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not np.isfinite(total):
        raise ValueError("The sum of sample_weight is inf in float64: scale the weights down.")
    return weight


def column_of(table: Table, feature: int) -> npt.NDArray[Any]:
    """Give one column of a table."""
    data = table.data
    return data[feature] if isinstance(data, list) else data[:, feature]


def take_rows(table: Table, mask: npt.NDArray[np.bool_]) -> Table:
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
    data: npt.NDArray[Any] | list[npt.NDArray[Any]]
    if isinstance(table.data, list):
        data = [column[rows] for column in table.data]
    elif abs(table.data.strides[0]) < abs(table.data.strides[1]):
        data = np.empty((len(rows), table.n_features), dtype=table.data.dtype, order="F")
        for column in range(table.n_features):
            data[:, column] = table.data[rows, column]
    else:
        data = np.ascontiguousarray(table.data[rows])
    return Table(data, len(rows), table.n_features, table.feature_names)


# --- frames -------------------------------------------------------------------------------------


class _Source(Protocol):
    """A frame of some library: its names now, its columns when asked for."""

    names: list[Any]
    n_rows: int | None  # None: not known before the columns are collected

    def not_numeric(self, positions: Sequence[int]) -> list[tuple[Any, str]]:
        """Return name and type of the columns among `positions` that are not numbers."""
        ...

    def columns(
        self, positions: Sequence[int]
    ) -> tuple[npt.NDArray[Any] | list[npt.NDArray[Any]], list[tuple[Any, int, int]]]:
        """Return the columns, and (name, nulls, first row) of those with nulls (data then void)."""
        ...


class _PolarsSource:
    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        self.frame = frame
        self.schema = frame.collect_schema()
        self.names: list[Any] = self.schema.names()
        self.n_rows = frame.height if isinstance(frame, pl.DataFrame) else None

    def not_numeric(self, positions: Sequence[int]) -> list[tuple[Any, str]]:
        dtypes = self.schema.dtypes()
        return [
            (self.names[position], str(dtypes[position]))
            for position in positions
            if not (dtypes[position].is_numeric() or dtypes[position] in (pl.Boolean, pl.Null))
        ]

    def columns(
        self, positions: Sequence[int]
    ) -> tuple[list[npt.NDArray[Any]], list[tuple[Any, int, int]]]:
        if isinstance(self.frame, pl.DataFrame):
            series = [self.frame.to_series(position) for position in positions]
        else:
            # By position: as an expression, a name such as "*" or "^a.*$" would be a pattern.
            chosen = self.frame.select([pl.nth(position) for position in positions])
            series = chosen.collect().get_columns()
        nulls = [
            (column.name, column.null_count(), column.is_null().arg_max() or 0)
            for column in series
            if column.null_count()
        ]
        return ([] if nulls else [_polars_column(column) for column in series]), nulls


def _polars_column(column: pl.Series) -> npt.NDArray[Any]:
    """View a column without nulls as an array; copy it where it has no such view."""
    if column.dtype.is_decimal() or str(column.dtype).endswith("Int128"):
        column = column.cast(pl.Float64)
    if column.n_chunks() > 1:
        column = column.rechunk()
    return _native(column.to_numpy())


class _ArrowSource:
    """A pyarrow Table or RecordBatch; its numbers are read through polars, which shares them."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.names: list[Any] = list(table.schema.names)
        self.n_rows: int | None = table.num_rows

    def not_numeric(self, positions: Sequence[int]) -> list[tuple[Any, str]]:
        types = sys.modules["pyarrow"].types
        tests: list[Callable[[Any], bool]] = [
            types.is_integer,
            types.is_floating,
            types.is_boolean,
            types.is_decimal,
            types.is_null,
        ]
        fields = [self.table.schema.field(position) for position in positions]
        return [
            (field.name, str(field.type))
            for field in fields
            if not any(test(field.type) for test in tests)
        ]

    def columns(
        self, positions: Sequence[int]
    ) -> tuple[list[npt.NDArray[Any]], list[tuple[Any, int, int]]]:
        pyarrow = sys.modules["pyarrow"]
        chosen = self.table.select(list(positions))
        if isinstance(chosen, pyarrow.RecordBatch):
            chosen = pyarrow.Table.from_batches([chosen])
        for place, field in enumerate(chosen.schema):
            if pyarrow.types.is_decimal(field.type):  # polars panics on 256 bits
                numbers = chosen.column(place).cast(pyarrow.float64())
                chosen = chosen.set_column(place, field.name, numbers)
        frame = pl.from_arrow(chosen, rechunk=False)
        assert isinstance(frame, pl.DataFrame), "a table gives a frame"
        return _PolarsSource(frame).columns(range(len(positions)))


class _PandasSource:
    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.names: list[Any] = list(frame.columns)
        self.n_rows: int | None = frame.shape[0]

    def not_numeric(self, positions: Sequence[int]) -> list[tuple[Any, str]]:
        is_numeric = sys.modules["pandas"].api.types.is_numeric_dtype
        dtypes = list(self.frame.dtypes)
        return [
            (self.names[position], str(dtypes[position]))
            for position in positions
            # pandas does not count arrow booleans as numeric
            if not (is_numeric(dtypes[position]) or dtypes[position].kind == "b")
        ]

    def columns(
        self, positions: Sequence[int]
    ) -> tuple[npt.NDArray[Any] | list[npt.NDArray[Any]], list[tuple[Any, int, int]]]:
        block = self._block(positions)
        if block is not None:
            return block, []
        series = [self.frame.iloc[:, position] for position in positions]
        nulls = []
        for position, column in zip(positions, series, strict=True):
            if not isinstance(column.dtype, np.dtype):
                missing = column.isna().to_numpy()
                if missing.any():
                    nulls.append((self.names[position], int(missing.sum()), int(missing.argmax())))
        return ([] if nulls else [_pandas_column(column) for column in series]), nulls

    def _block(self, positions: Sequence[int]) -> npt.NDArray[Any] | None:
        """Return the whole frame as one array if that is how pandas holds it, else None.

        A frame made from a C-ordered array then keeps its rows together in memory.
        """
        n_columns = len(self.names)
        dtype = self.frame.dtypes.iloc[0]
        if (
            n_columns < 2
            or list(positions) != list(range(n_columns))
            or not isinstance(dtype, np.dtype)
            or not (self.frame.dtypes == dtype).all()
        ):
            return None
        views = [self.frame.iloc[:, position].to_numpy() for position in range(n_columns)]
        base = views[0].base
        if base is None or any(view.base is not base for view in views):
            return None
        block = self.frame.to_numpy()
        return _native(block) if all(np.may_share_memory(block, view) for view in views) else None


def _pandas_column(column: Any) -> npt.NDArray[Any]:
    """View a column without missing values as an array; copy it where it has no such view."""
    if isinstance(column.dtype, np.dtype):
        return _native(column.to_numpy())
    # Sparse columns have a subtype, the others a numpy dtype (object for arrow decimals).
    stored = getattr(column.dtype, "numpy_dtype", getattr(column.dtype, "subtype", None))
    numbers = isinstance(stored, np.dtype) and stored.kind in "biufc"
    return _native(column.to_numpy(dtype=stored if numbers else np.float64))


def _frame_source(X: Any) -> _Source | None:
    """Return the reader for a frame, None for anything else; a single column is refused."""
    pandas, pyarrow = sys.modules.get("pandas"), sys.modules.get("pyarrow")
    if type(X).__module__.partition(".")[0] == "narwhals":
        X = X.to_native()
    series: tuple[type, ...] = (pl.Series,)
    if pandas is not None:
        series += (pandas.Series, pandas.Index)
    if pyarrow is not None:
        series += (pyarrow.Array, pyarrow.ChunkedArray)
    if isinstance(X, series):
        raise ValueError(
            f"Expected a 2-dimensional container but got {type(X)} instead. Pass a DataFrame "
            f"containing a single column (i.e. single feature) or a single row (i.e. single "
            f"sample) instead."
        )
    if isinstance(X, pl.DataFrame | pl.LazyFrame):
        return _PolarsSource(X)
    if pandas is not None and isinstance(X, pandas.DataFrame):
        return _PandasSource(X)
    if pyarrow is not None and isinstance(X, pyarrow.Table | pyarrow.RecordBatch):
        return _ArrowSource(X)
    if hasattr(X, "__arrow_c_stream__"):
        return _PolarsSource(pl.DataFrame(X))
    return None


def _frame_table(
    source: _Source, positions: Sequence[int], names: list[str] | None, estimator_name: str
) -> Table:
    """Read some columns of a frame, in that order, under these names."""
    n_features = len(positions)
    if n_features == 0:
        _check_shape((source.n_rows or 0, 0), estimator_name)
    bad = source.not_numeric(positions)
    if bad:
        listed = _listed([f"{name!r} ({dtype})" for name, dtype in bad], "column")
        which, them = ("a column that is", "it") if len(bad) == 1 else ("columns that are", "them")
        hint = "one-hot, or a date as days since some day"
        if any(dtype == "object" for _, dtype in bad):
            hint += ", or Python numbers by astype(float)"
        raise TypeError(
            f"X has {which} not numbers: {listed}. {estimator_name} needs numbers: encode {them} "
            f"(for instance {hint}) or drop {them}."
        )
    data, nulls = source.columns(positions)
    if nulls:
        problems = [
            (f"column {name!r}", _counts((count, "null")), first) for name, count, first in nulls
        ]
        raise ValueError(_missing_message("null (missing values, that is NaN)", problems))
    n_samples = len(data) if isinstance(data, np.ndarray) else len(data[0])
    _check_shape((n_samples, n_features), estimator_name)
    return Table(data, n_samples, n_features, names)


def _string_names(names: list[Any]) -> list[str] | None:
    """Return the names if all are strings, None if none is, as scikit-learn does."""
    strings = [isinstance(name, str) for name in names]
    if not any(strings):
        return None
    if not all(strings):
        types = sorted({type(name).__name__ for name in names})
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your "
            f"input has {types} as column name types. Convert them all to strings, by "
            "X.columns = X.columns.astype(str) for example, or none of them."
        )
    return [str(name) for name in names]


def _check_unique(names: list[Any]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"X has duplicate column names: {_listed([repr(name) for name in repeated], 'name')}. "
            f"Rename or drop the repeated columns."
        )


def _positions(names: list[Any], wanted: list[str]) -> list[int]:
    """Find each wanted column among the names; its name must be there, and only once."""
    places = {name: position for position, name in enumerate(names)}
    missing = [name for name in wanted if name not in places]
    if missing:
        raise ValueError(
            "The feature names should match those that were passed during fit. "
            f"X lacks {len(missing)} of the {len(wanted)} columns seen in fit: "
            f"{_listed([repr(name) for name in missing], 'column')}."
        )
    needed = set(wanted)
    _check_unique([name for name in names if name in needed])
    return [places[name] for name in wanted]


def _warn_names_lost(estimator_name: str) -> None:
    warnings.warn(
        f"X does not have valid feature names, but {estimator_name} was fitted with feature names",
        UserWarning,
        stacklevel=4,
    )


# --- arrays -------------------------------------------------------------------------------------


def _as_array(X: Any, estimator_name: str) -> npt.NDArray[Any]:
    """Make a two-dimensional array of numbers out of an array-like, a view where possible."""
    if issparse(X):
        raise TypeError(
            f"sparse input is not supported yet, but {estimator_name} got a {type(X).__name__}. "
            "Use '.toarray()' to convert it to a dense numpy array."
        )
    if isinstance(X, np.matrix):
        raise TypeError(
            "np.matrix is not supported. Convert it to a numpy array with np.asarray(X)."
        )
    if isinstance(X, (str, os.PathLike)):
        raise TypeError(
            f"X is {X!r:.60}, a {type(X).__name__}: read the file first, for example with "
            "polars.read_csv or polars.read_parquet."
        )
    if isinstance(X, Mapping):
        raise TypeError(
            f"X is a {type(X).__name__}: give a table, for example polars.DataFrame(X)."
        )
    if X is None:
        raise TypeError("X is None: give a table, for example polars.DataFrame(...).")
    array = _filled(X, "Input X")
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X has dtype {array.dtype}.")
    if array.ndim < 2:
        got = "1D array" if array.ndim else "scalar array"
        raise ValueError(
            f"Expected 2D array, got {got} instead (a {type(X).__name__} of shape {array.shape}). "
            "Reshape your data either using array.reshape(-1, 1) if your data has a single feature "
            "or array.reshape(1, -1) if it contains a single sample."
        )
    if array.ndim > 2:
        raise ValueError(
            f"Found array with dim {array.ndim} (shape={array.shape}), while dim <= 2 is required "
            f"by {estimator_name}."
        )
    if array.dtype.kind in "USTV":
        raise ValueError(
            f"{estimator_name} needs numbers and takes no arrays of bytes/strings, but X has dtype "
            f"{array.dtype}. Encode the strings as numbers, or drop those columns."
        )
    if array.dtype.kind in "mM":
        raise TypeError(
            f"{estimator_name} needs numbers, but X has dtype {array.dtype}. Convert dates and "
            "durations to numbers first, such as days since some day, or drop them."
        )
    _check_shape(array.shape, estimator_name)
    if array.dtype.kind == "O":
        array = _numbers_from_objects(array)
    return _native(array)


def _filled(values: Any, what: str) -> npt.NDArray[Any]:
    """Make an array; masked entries are nulls."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        places = np.argwhere(np.ma.getmaskarray(values))
        raise ValueError(
            f"{what} contains null (masked entries, that is NaN): {len(places)} in all, the first "
            f"in row {places[0][0]} (counting from 0). Fill or drop them first."
        )
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{what} cannot be read as an array of numbers: {error}") from error


def _numbers_from_objects(array: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Convert Python numbers; None becomes NaN, which `check_finite` reports."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        # Look for the cell: the conversion says what it met, not where.
        for (row, column), value in np.ndenumerate(array):
            try:
                np.asarray(value, dtype=object).astype(np.float64)
            except (TypeError, ValueError, OverflowError) as cell_error:
                # A ValueError is a string that is no number; scikit-learn has the same types.
                kind = TypeError if isinstance(cell_error, TypeError) else ValueError
                raise kind(
                    f"X must hold numbers, but row {row} of column x{column} holds {value!r}: "
                    f"{cell_error}"
                ) from error
        raise


def _array_table(array: npt.NDArray[Any], names: list[str] | None) -> Table:
    return Table(array, array.shape[0], array.shape[1], names)


def _native(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array itself if the core can read it, else a copy in the nearest such dtype."""
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X has dtype {array.dtype}.")
    native = array.dtype.newbyteorder("=")
    dtype: np.dtype[Any] = _FLOATS[native] if native.kind == "f" else native
    if array.dtype == dtype and array.flags.aligned:
        return array
    with np.errstate(over="ignore"):  # beyond the range of float64: inf, reported by check_finite
        return array.astype(dtype, order="K")


# --- shapes and messages ------------------------------------------------------------------------


def _check_shape(shape: tuple[int, ...], estimator_name: str) -> None:
    for count, what in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {what} (shape={shape}) while a minimum of 1 is required by "
                f"{estimator_name}."
            )


def _check_width(n_given: int, n_features: int, estimator_name: str) -> None:
    if n_given != n_features:
        raise ValueError(
            f"X has {n_given} features, but {estimator_name} is expecting {n_features} features as "
            f"input."
        )


def column_label(names: list[str] | None, column: int) -> str:
    return f"column x{column}" if names is None else f"column {names[column]!r}"


def _counts(*counts: tuple[int, str]) -> str:
    return " and ".join(f"{count} {word}" for count, word in counts if count)


def _missing_message(kinds: str, problems: list[tuple[str, str, int]]) -> str:
    """Say which columns hold what, from (column, counts, first row)."""
    parts = [f"{column} has {counts}, the first in row {row}" for column, counts, row in problems]
    return (
        f"Input X contains {kinds}: {_listed(parts, 'column', '; ')} (rows count from 0). "
        f"Fill these cells, or drop their rows or columns."
    )


def _listed(parts: list[str], what: str, separator: str = ", ") -> str:
    """Join the first few parts and say how many more there are."""
    shown = separator.join(parts[:_MAX_NAMED])
    more = len(parts) - _MAX_NAMED
    return shown if more <= 0 else f"{shown} and {format_count(more, f'more {what}')}"
