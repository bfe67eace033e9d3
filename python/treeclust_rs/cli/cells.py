"""Cells of text as what they stand for: numbers, truth values, times and levels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import polars as pl

from .._data.levels import FLAG_LEVELS
from .._data.number_text import plain

DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")
"""A number with a decimal comma."""

# Texts of missing cells of other columns than text, in small letters.
_MISSING = ["", "na", "n/a", "nan", "null"]
# Cells at the front of a column that are looked at before all are.
_N_FIRST = 1_000
_DATE = r"^\d{4}-\d{2}-\d{2}$"
_TIME = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?"
_OFFSET = r"[+-]\d{2}:?\d{2}$"

Form = Literal["integers", "numbers", "flags", "dates", "times", "times with an offset", "levels"]
"""What all cells of a column of text are."""

NUMBER_FORMS: tuple[Form, ...] = ("integers", "numbers", "flags")
TIME_FORMS: tuple[Form, ...] = ("dates", "times", "times with an offset")
FORMS: tuple[Form, ...] = (*NUMBER_FORMS, *TIME_FORMS, "levels")
"""All forms; a column has the first of those that suit every cell."""

# How texts of times are written, what of polars reads them, and as what.
_TIMES: dict[Form, tuple[str, str, pl.Date | pl.Datetime]] = {
    "dates": (_DATE, "%Y-%m-%d", pl.Date()),
    "times": (f"{_TIME}$", "%Y-%m-%dT%H:%M:%S%.f", pl.Datetime("us")),
    "times with an offset": (
        _TIME + _OFFSET,
        "%Y-%m-%dT%H:%M:%S%.f%z",
        pl.Datetime("us", "UTC"),
    ),
}


def in_form(cells: pl.Series, form: Form, decimal_comma: bool) -> tuple[pl.Series, pl.Series]:
    """Return text as what it stands for in a form, missing cells as null, and the odd cells.

    Odd are those that do not stand for it, and are not missing.
    """
    if form == "levels":
        return as_levels(cells), pl.zeros(len(cells), pl.Boolean, eager=True)
    if form in _TIMES:
        pattern, layout, dtype = _TIMES[form]
        text = cells.str.strip_chars().str.replace(r"^(\d{4}-\d{2}-\d{2}) (\d)", "${1}T${2}")
        text = text.str.replace(r"[zZ]$", "+00:00")
        text = text.str.replace(r"T(\d\d:\d\d)($|[+-])", "T${1}:00${2}")
        times = text.set(~text.str.contains(pattern), None).str.strptime(
            dtype, layout, strict=False
        )
        return times, _odd(text, times)
    text = plain(cells, decimal_comma)
    if form == "flags":
        words = text.str.to_lowercase()
        flags = (words == "true").set(words.is_in(_MISSING), None)
        return flags, ~words.is_in([*FLAG_LEVELS, *_MISSING]).fill_null(True)
    if form == "integers":
        integers = text.cast(pl.Int64, strict=False)
        return integers, _odd(text, integers)
    numbers = text.cast(pl.Float64, strict=False)
    return numbers.fill_nan(None), _odd(text, numbers)


def as_typed(cells: pl.Series, decimal_comma: bool) -> pl.Series:
    """Return text as what all of its cells are: numbers, truth values or times; else as levels."""
    return _in_first(FORMS, cells, decimal_comma)


def as_numbers(cells: pl.Series, decimal_comma: bool) -> pl.Series:
    """Return text as numbers or truth values, missing cells as null; else the text itself."""
    return _in_first(NUMBER_FORMS, cells, decimal_comma)


def as_times(cells: pl.Series) -> pl.Series:
    """Return text as dates or times of ISO 8601, missing cells as null; else the text itself.

    Dates are written 2024-12-31, times 2024-12-31T23:59 with seconds or without, a space in place
    of the T or not, and all with an offset from UTC or none with one.
    """
    return _in_first(TIME_FORMS, cells, False)


def _in_first(forms: Sequence[Form], cells: pl.Series, decimal_comma: bool) -> pl.Series:
    """Return text in the first of some forms that suits every cell, itself if none does."""
    some = cells.drop_nulls().head(_N_FIRST)
    for form in forms:
        if in_form(some, form, decimal_comma)[1].any():  # one odd cell is enough
            continue
        typed, odd = in_form(cells, form, decimal_comma)
        if not odd.any():
            return typed
    return cells


def forms_of_all(cells: pl.Series, forms: Sequence[Form], decimal_comma: bool) -> list[Form]:
    """Return those of some forms that suit every cell."""
    return [form for form in forms if not in_form(cells, form, decimal_comma)[1].any()]


def odd_numbers(cells: pl.Series, decimal_comma: bool) -> pl.Series:
    """Mark the cells of text that are no numbers, and not missing."""
    return in_form(cells, "numbers", decimal_comma)[1]


def odd_times(cells: pl.Series, dtype: pl.DataType | None = None) -> pl.Series:
    """Mark the cells of text that are no times of the form that most have, and not missing.

    `dtype`: of the times of the form, if it is known.
    """
    odd = [
        in_form(cells, form, False)[1]
        for form, (_, _, of_form) in _TIMES.items()
        if dtype in (None, of_form)
    ]
    return min(odd, key=lambda odd: int(odd.sum()))


def as_levels(cells: pl.Series) -> pl.Series:
    """Return text as levels: without spaces around it, null where nothing else is there."""
    text = cells.str.strip_chars()
    return text.set(text == "", None)


def as_flags(cells: pl.Series) -> pl.Series:
    """Return text as the levels of a flag, true and false in small letters."""
    words = as_levels(cells).str.to_lowercase()
    return words.set(words.is_in(_MISSING), None)


def has_flags(flags: pl.Series) -> bool:
    """Whether some of the levels of a flag are true or false."""
    return bool(flags.is_in(FLAG_LEVELS).any())


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
    return odd & ~are_missing(text) if odd.any() else odd


def are_missing(cells: pl.Series) -> pl.Series:
    """Mark the cells that are null or stand for a missing one, as NA does among numbers."""
    return cells.str.strip_chars().str.to_lowercase().is_in(_MISSING).fill_null(True)
