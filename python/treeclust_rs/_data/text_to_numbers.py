"""Columns of text as numbers, in frames of all libraries."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from .._util import FloatArray, warn_user
from .frames import FrameSource, frame_source
from .levels import Texts
from .number_text import lacks_unit_words, plain, read_numbers


def text_to_numbers(
    X: Any, columns: str | Iterable[str] | Mapping[str, str], *, decimal_comma: bool = False
) -> Any:
    """Return a frame with columns of text as numbers: €110.5M, 1,234, 88+2 or 5'7.

    The option ``--numbers`` of the command reads them by the same rule. Spaces around a cell do
    not count. It is a number in one of these forms:

    - digits, with a sign, a decimal point and an exponent: ``-1.5e3``;
    - with separators of thousands: a comma, an apostrophe or a space: ``1,234,567.5``;
    - with K (or k), M or B after the digits, for a thousand, a million and a billion: ``110.5M``;
    - with a unit: a sign of currency in front, or letters, a sign of currency or ``%`` behind:
      ``€110.5M``, ``159lbs``, ``12 %`` (which is 12). The unit is dropped, but all cells of a
      column that have one must have the same;
    - a sum of two numbers without sign, which is added up: ``88+2`` is 90;
    - feet and inches, which become inches: ``5'7`` is 67, with or without ``"`` at the end.

    Empty cells and those with NA, N/A, NaN, null, none, ``-`` or ``?`` are missing. Nothing else is
    guessed: ``31,85``, ``1.2.3`` and dates are refused.

    Parameters
    ----------
    X : frame
        Of polars, pandas, pyarrow or narwhals. Of a LazyFrame these columns are collected.
    columns : str, list of str or dict
        The columns to read. A dict gives the unit of each, as ``{"Value": "€"}`` ("" for none,
        "feet and inches" for 5'7): other units are refused. Give them for rows after a fit, for
        without them the unit of most cells is taken, whichever it is. Columns of numbers stay as
        they are.
    decimal_comma : bool, default=False
        Whether decimals follow a comma, and points separate thousands: ``1.234,5``.

    Returns
    -------
    frame
        Of the same kind, with 64-bit floats in place of the text. `X` is not changed.

    Raises
    ------
    TypeError
        If `X` is not a frame, or a column is neither text nor numbers.
    ValueError
        If `X` lacks a column, or cells cannot be read: names the column, the first cells and rows.

    Warns
    -----
    UserWarning
        If no cell of a column has the unit that was given: the numbers may be in another.

    Examples
    --------
    >>> import polars as pl
    >>> import treeclust_rs as tc
    >>> players = pl.DataFrame({"value": ["€1.5M", "€565K", "-"], "age": [31, 20, 25]})
    >>> tc.text_to_numbers(players, ["value"])["value"].to_list()
    [1500000.0, 565000.0, None]
    """
    narwhals = sys.modules.get("narwhals")
    if narwhals is not None and type(X).__module__.partition(".")[0] == "narwhals":
        native = text_to_numbers(X.to_native(), columns, decimal_comma=decimal_comma)
        return narwhals.from_native(native)
    source = frame_source(X)
    if source is None:
        raise TypeError(f"text_to_numbers takes a frame. Got {type(X).__name__} instead.")
    units: Mapping[Any, str | None]
    if isinstance(columns, Mapping):
        units = columns
    else:
        units = dict.fromkeys([columns] if isinstance(columns, str) else columns)
    read = {}
    for name, unit in units.items():
        cells = _text_of(source, name)
        if cells is not None:
            read[name] = _numbers_of(cells, unit, decimal_comma)
    return _replaced(X, source, read)


def _text_of(source: FrameSource, name: object) -> pl.Series | None:
    """Return the cells of a column of text; None for numbers."""
    if name not in source.names:
        raise ValueError(f"X has no column {name!r}.")
    position = source.names.index(name)
    kind = source.kinds([position])[0]
    if kind == "number":
        return None
    if kind != "levels":
        raise TypeError(
            f"Column {name!r} is not text but {source.type_of(position)}: leave it out of columns."
        )
    (cells,) = source.cells([position], ["levels"])
    assert isinstance(cells, Texts), "levels are texts"
    return pl.Series(str(name), cells.of_rows().tolist(), dtype=pl.String)


def _numbers_of(cells: pl.Series, unit: str | None, decimal_comma: bool) -> pl.Series:
    read = read_numbers(plain(cells, decimal_comma), unit)
    if complaint := read.complaint(cells, lambda row: f"row {row}"):
        comma = ", or give decimal_comma=True if that is what their commas are"
        alternative = "" if decimal_comma or not cells.str.contains(",").any() else comma
        raise ValueError(f"{complaint}{alternative}.")
    if read.lacks_unit:
        warn_user(f"text_to_numbers: {lacks_unit_words(cells.name, read.unit)}")
    return read.numbers


def _replaced(X: Any, source: FrameSource, read: Mapping[Any, pl.Series]) -> Any:
    """Return a frame with other cells in some columns."""
    pandas, pyarrow = sys.modules.get("pandas"), sys.modules.get("pyarrow")
    if pandas is not None and isinstance(X, pandas.DataFrame):
        X = X.copy(deep=False)
        for name, numbers in read.items():
            floats: FloatArray = numbers.fill_null(np.nan).to_numpy()
            X[name] = floats
        return X
    if pyarrow is not None and isinstance(X, pyarrow.Table | pyarrow.RecordBatch):
        for name, numbers in read.items():
            place = source.names.index(name)
            X = X.set_column(place, name, numbers.to_arrow())
        return X
    if not isinstance(X, pl.DataFrame | pl.LazyFrame):
        X = pl.DataFrame(X)
    return X.with_columns(numbers.alias(name) for name, numbers in read.items())
