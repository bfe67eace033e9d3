"""Columns of mixed frames as arrays of numbers and times, and as texts: one reader per library."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from .arrays import native
from .kinds import Kind
from .levels import FLAG_LEVELS, Texts, object_texts, places_that_occur
from .times import microseconds

Cells = npt.NDArray[Any] | Texts
"""A column: numbers and times (NaN: missing), or texts."""


# Types whose columns, where they have no nulls, are numbers for NumPy too.
_NUMPY_NUMBERS = frozenset(
    {pl.Float64, pl.Float32, pl.Int64, pl.Int32, pl.Int16, pl.Int8}
    | {pl.UInt64, pl.UInt32, pl.UInt16, pl.UInt8, pl.Boolean}
)


def polars_numbers(column: pl.Series) -> npt.NDArray[Any]:
    """View a column of numbers as an array, NaN for null; copy it where it has no such view."""
    has_nulls = column.null_count() > 0
    if has_nulls or column.dtype not in _NUMPY_NUMBERS:
        if column.dtype == pl.Null:
            return np.full(len(column), np.nan)
        if not column.dtype.is_float():
            column = column.cast(pl.Float64)
        if has_nulls:
            column = column.fill_null(float("nan"))
    if column.n_chunks() > 1:
        column = column.rechunk()
    return native(column.to_numpy())


def polars_cells(column: pl.Series, kind: Kind) -> Cells:
    """Return a column of polars."""
    if kind == "number":
        return polars_numbers(column)
    if kind == "flag":
        return Texts(column.cast(pl.Int8).fill_null(-1).to_numpy(), FLAG_LEVELS, is_ordered=True)
    if kind == "levels":
        if isinstance(column.dtype, pl.Categorical):
            return _polars_categories(column)
        is_enum = isinstance(column.dtype, pl.Enum)
        if not is_enum:
            column = column.cast(pl.Enum(column.unique().drop_nulls().sort()))
        assert isinstance(column.dtype, pl.Enum)
        categories = column.dtype.categories.to_list()
        return Texts(_physical_codes(column), categories, is_ordered=is_enum)
    return microseconds(*polars_times(column), column.name)


def polars_times(column: pl.Series) -> tuple[npt.NDArray[np.int64], str, npt.NDArray[np.bool_]]:
    """Return a column of times as `microseconds` takes it: counts, their unit, what is missing."""
    unit = "d" if column.dtype == pl.Date else getattr(column.dtype, "time_unit", "us")
    counts = column.to_physical().cast(pl.Int64).fill_null(0).to_numpy()
    return counts, unit, column.is_null().to_numpy()


# So many categories of all columns are held for each column, and not only its own.
_FEW_CATEGORIES = 1000


def _physical_codes(column: pl.Series) -> npt.NDArray[np.integer[Any]]:
    """Return what polars numbers categories by, -1 for null."""
    codes = column.to_physical()
    if column.null_count():
        return codes.cast(pl.Int64).fill_null(-1).to_numpy()
    return codes.to_numpy()


def _polars_categories(column: pl.Series) -> Texts:
    """Return a categorical column; its codes are places among the categories of all columns."""
    codes = _physical_codes(column)
    present, first_rows = places_that_occur(codes)
    texts = column[first_rows].cast(pl.String).to_list()
    n_places = int(present[-1]) + 1 if len(present) else 0
    if n_places <= _FEW_CATEGORIES:
        if len(present) < n_places:
            of_place = dict(zip(present.tolist(), texts, strict=True))
            texts = [of_place.get(place, "") for place in range(n_places)]
        return Texts(codes, texts, is_ordered=False, occurring=present)
    places = np.full(n_places + 1, -1)  # the last: missing
    places[present] = np.arange(len(present))
    return Texts(places[codes.astype(np.intp)], texts, is_ordered=False)


def arrow_cells(column: Any, kind: Kind, name: object) -> Cells:
    """Return a column of pyarrow, an Array or a ChunkedArray."""
    pyarrow = sys.modules["pyarrow"]
    if isinstance(column, pyarrow.Array):
        column = pyarrow.chunked_array([column])
    types = pyarrow.types
    if types.is_dictionary(column.type) and kind == "flag":
        column = column.cast(column.type.value_type)
    if types.is_dictionary(column.type):
        joined = column.unify_dictionaries().combine_chunks()
        codes = joined.indices.cast(pyarrow.int64()).fill_null(-1)
        return _categories(
            codes.to_numpy(zero_copy_only=False), joined.dictionary.to_pylist(), joined.type.ordered
        )
    if kind in ("number", "flag", "levels"):
        if types.is_decimal(column.type):  # polars panics on 256 bits
            column = arrow_floats(column)
        series = pl.from_arrow(column, rechunk=False)
        assert isinstance(series, pl.Series), "a column converts to a series"
        return polars_cells(series, kind)
    if kind == "date":
        column = column.cast(pyarrow.date32())
    unit = "d" if kind == "date" else column.type.unit
    counts = column.cast(pyarrow.int32()) if kind == "date" else column.cast(pyarrow.int64())
    values = counts.fill_null(0).to_numpy()
    return microseconds(values, unit, column.is_null().to_numpy(), name)


def arrow_floats(decimals: Any) -> Any:
    """Return decimals of pyarrow as the nearest floats, which those of its own cast are not."""
    pyarrow = sys.modules["pyarrow"]
    return decimals.cast(pyarrow.string()).cast(pyarrow.float64())


def pandas_numbers(column: Any) -> npt.NDArray[Any]:
    """View a column of numbers as an array, NaN for missing ones; copy it if it has no view."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        return native(column.to_numpy())
    # Sparse columns have a subtype, the others a numpy dtype (object for arrow decimals).
    stored = getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", None))
    if not isinstance(stored, np.dtype) or stored.kind not in "biufc":
        stored = np.dtype(np.float64)
    if hasattr(dtype, "subtype") or not column.isna().any():
        return native(column.to_numpy(dtype=stored))
    if stored.kind != "f":
        stored = np.dtype(np.float64)
    return native(column.to_numpy(dtype=stored, na_value=np.nan))


def pandas_cells(column: Any, kind: Kind, name: object) -> Cells:
    """Return a column of pandas."""
    pandas, dtype = sys.modules["pandas"], column.dtype
    if hasattr(dtype, "pyarrow_dtype") and kind != "number":
        return arrow_cells(column.array.__arrow_array__(), kind, name)
    if kind == "number":
        return pandas_numbers(column)
    missing = column.isna().to_numpy()
    if kind == "flag":
        if isinstance(dtype, pandas.CategoricalDtype) or dtype.kind == "O":
            column = column.astype(object).mask(missing, False)
        codes = np.where(missing, -1, column.fillna(False).to_numpy(dtype=bool))
        return Texts(codes, FLAG_LEVELS, is_ordered=True)
    if isinstance(dtype, pandas.CategoricalDtype):
        codes = column.cat.codes.to_numpy().astype(np.int64)
        _check_categories(column.cat.categories, name)
        return _categories(codes, column.cat.categories, column.cat.ordered)
    if kind == "levels":
        return _pandas_texts(column, missing, name)
    if kind.startswith("datetime") and kind != "datetime[]":
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    values = column.to_numpy()
    return microseconds(values.view(np.int64), np.datetime_data(values.dtype)[0], missing, name)


def _pandas_texts(column: Any, missing: npt.NDArray[np.bool_], name: object) -> Texts:
    try:
        codes, found = sys.modules["pandas"].factorize(column)
    except TypeError:  # a cell that cannot be hashed
        found = [None]
    if all(isinstance(text, str) for text in found):
        return Texts(codes, list(found), is_ordered=False)
    # Factors take 1, 1.0 and True for one.
    return object_texts(column.to_numpy(dtype=object), missing, name)


def _check_categories(categories: Any, name: object) -> None:
    """Raise TypeError if a text and something else are written alike, as "1" and 1.

    `categories`: an Index of pandas, which knows whether it holds several types.
    """
    if not categories.inferred_type.startswith("mixed"):
        return
    of_text: dict[str, object] = {}
    for value in categories:
        first = of_text.setdefault(str(value), value)
        if isinstance(first, str) != isinstance(value, str):
            other = first if isinstance(value, str) else value
            raise TypeError(
                f"Column {name!r} has categories of several types that are written alike: "
                f"{str(value)!r:.60}, as text and as {other!r:.60}. Give them one type, for "
                f'example by X[{name!r}].astype("string").'
            )


def _categories(codes: npt.NDArray[Any], categories: Sequence[object], is_ordered: bool) -> Texts:
    """Return categories as texts, by `str`; one that is null or NaN is missing."""
    is_missing = [value is None or value != value for value in categories]
    if any(is_missing):
        codes = np.where(np.array([*is_missing, True])[codes], -1, codes)
    return Texts(codes, [str(value) for value in categories], bool(is_ordered))
