"""Cells of text as what they stand for: numbers, truth values, times and levels."""

from __future__ import annotations

import re
from functools import partial

import polars as pl

from .._data.number_text import plain

DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
"""A number with a decimal comma."""

# Texts of missing cells of other columns than text, in small letters.
_MISSING = ["", "na", "n/a", "nan", "null"]
# Cells at the front of a column that are looked at before all are.
_N_FIRST = 1_000
_DATE = r"^\d{4}-\d{2}-\d{2}$"
_TIME = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?"
_OFFSET = r"[+-]\d{2}:?\d{2}$"


def as_typed(cells: pl.Series, decimal_comma: bool) -> pl.Series:
    """Return text as what all of its cells are: numbers, truth values or times; else as levels."""
    some = cells.drop_nulls().head(_N_FIRST)
    for read in (partial(as_numbers, decimal_comma=decimal_comma), as_times):
        if read(some).dtype == pl.String:  # one odd cell is enough
            continue
        typed = read(cells)
        if typed.dtype != pl.String:
            return typed
    return as_levels(cells)


def as_numbers(cells: pl.Series, decimal_comma: bool) -> pl.Series:
    """Return text as numbers or truth values, missing cells as null; else the text itself."""
    text = plain(cells, decimal_comma)
    for dtype in (pl.Int64, pl.Float64):
        numbers = text.cast(dtype, strict=False)
        if not _odd(text, numbers).any():
            return numbers.fill_nan(None) if dtype == pl.Float64 else numbers
    words = text.str.to_lowercase()
    if words.is_in(["true", "false", *_MISSING]).all():
        return (words == "true").set(words.is_in(_MISSING), None)
    return cells


def odd_numbers(cells: pl.Series, decimal_comma: bool) -> pl.Series:
    """Mark the cells of text that are no numbers, and not missing."""
    text = plain(cells, decimal_comma)
    return _odd(text, text.cast(pl.Float64, strict=False))


def as_times(cells: pl.Series) -> pl.Series:
    """Return text as dates or times of ISO 8601, missing cells as null; else the text itself.

    Dates are written 2024-12-31, times 2024-12-31T23:59 with seconds or without, a space in place
    of the T or not, and all with an offset from UTC or none with one.
    """
    return next((times for times, odd in _times(cells) if not odd.any()), cells)


def odd_times(cells: pl.Series, dtype: pl.DataType | None = None) -> pl.Series:
    """Mark the cells of text that are no times of the form that most have, and not missing.

    `dtype`: of the times of the form, if it is known.
    """
    odd = [odd for times, odd in _times(cells) if dtype in (None, times.dtype)]
    return min(odd, key=lambda odd: int(odd.sum()))


def _times(cells: pl.Series) -> list[tuple[pl.Series, pl.Series]]:
    """Return text as dates, as times and as times with an offset, each with the odd cells."""
    text = cells.str.strip_chars().str.replace(r"^(\d{4}-\d{2}-\d{2}) (\d)", "${1}T${2}")
    text = text.str.replace(r"[zZ]$", "+00:00").str.replace(r"T(\d\d:\d\d)($|[+-])", "T${1}:00${2}")
    return [
        (times, _odd(text, times))
        for pattern, form, dtype in (
            (_DATE, "%Y-%m-%d", pl.Date()),
            (f"{_TIME}$", "%Y-%m-%dT%H:%M:%S%.f", pl.Datetime("us")),
            (_TIME + _OFFSET, "%Y-%m-%dT%H:%M:%S%.f%z", pl.Datetime("us", "UTC")),
        )
        for times in [
            text.set(~text.str.contains(pattern), None).str.strptime(dtype, form, strict=False)
        ]
    ]


def as_levels(cells: pl.Series) -> pl.Series:
    """Return text as levels: without spaces around it, null where nothing else is there."""
    text = cells.str.strip_chars()
    return text.set(text == "", None)


def as_flags(cells: pl.Series) -> pl.Series:
    """Return text as the levels of a flag, true and false in small letters."""
    words = as_levels(cells).str.to_lowercase()
    return words.set(words.is_in(_MISSING), None)


def as_codes(
    column: pl.Series, decimal_comma: bool, *, are_numbers: bool | None = None
) -> pl.Series:
    """Return any column as levels, those of whole numbers without the point: 7.0 is 7, 007 is 007.

    Cells that are missing as numbers, such as NA, are missing in a column of numbers. Of some rows
    of a column `are_numbers` tells whether `codes_are_numbers` holds for all.
    """
    if column.dtype.is_float():
        column = column.fill_nan(None)
    codes = as_levels(column.cast(pl.String))
    numbers = as_numbers(codes, decimal_comma)
    if numbers.dtype.is_numeric() if are_numbers is None else are_numbers:
        codes = codes.set(numbers.is_null(), None)
    return codes.str.replace(r"^([+-]?\d+)\.0+$", "${1}")


def codes_are_numbers(column: pl.Series, decimal_comma: bool) -> bool:
    """Whether the levels of a column are all numbers, or missing: of a column if of its parts."""
    codes = as_levels(column.cast(pl.String))
    return as_numbers(codes, decimal_comma).dtype.is_numeric()


def _odd(text: pl.Series, values: pl.Series) -> pl.Series:
    """Mark the cells that are not empty, have no value and do not stand for a missing one."""
    odd = values.is_null() & text.is_not_null()
    return odd & ~text.str.to_lowercase().is_in(_MISSING).fill_null(True) if odd.any() else odd
