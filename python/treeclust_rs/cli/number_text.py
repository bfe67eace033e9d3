"""Numbers in text, as the option ``--numbers`` reads them.

Spaces around a cell do not count. It is a number in one of these forms:

- digits, with a sign, a decimal point and an exponent, as programs write them: ``-1.5e3``;
- with separators of thousands: a comma, an apostrophe or a space: ``1,234,567.5``;
- with K (or k), M or B after the digits, for a thousand, a million and a billion: ``110.5M``;
- with a unit: a sign of currency in front, or letters, a sign of currency or ``%`` behind:
  ``€110.5M``, ``159lbs``, ``12 %`` (which is 12). The unit is dropped, but all cells of a column
  that have one must have the same;
- a sum of two numbers without sign, which is added up: ``88+2`` is 90;
- feet and inches, which become inches: ``5'7`` is 67, with or without ``"`` at the end.

Empty cells and those with NA, N/A, NaN, null, none, ``-`` or ``?`` are missing.
"""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import NamedTuple

import polars as pl

MISSING = ("", "na", "n/a", "nan", "null", "none", "-", "?")
"""Texts of missing cells, in small letters."""

FEET = "feet and inches"
"""The unit of cells such as 5'7."""

_DIGITS = r"(?:\d{1,3}(?:[,'\u2019\s]\d{3})+|\d+)(?:\.\d*)?|\.\d+"
_NUMBER = re.compile(
    rf"(?P<sign>[-+−]?)\s*(?P<before>[$€£¥₹₽₩₺฿]?)\s*(?P<inner>[-−]?)(?P<digits>{_DIGITS})"
    r"(?P<exponent>[eE][-+]?\d{1,3})?\s*(?P<letters>[^\W\d_]*)\s*(?P<after>[$€£¥₹₽₩₺฿%]?)"
)
_SUM = re.compile(r"(\d+(?:\.\d+)?)\s*\+\s*(\d+(?:\.\d+)?)")
_FEET = re.compile(r"(\d+)['\u2019]\s*(?:(\d{1,2}(?:\.\d+)?)(?:\"|''|\u201d)?)?")
_SEPARATORS = re.compile(r"[,'\u2019\s]")
_FACTORS = {"K": 3, "k": 3, "M": 6, "B": 9}
"""Powers of ten."""


def read_number(text: str) -> tuple[float, str] | None:
    """Return the number that a text is, and its unit ("" without one); None if it is none."""
    text = text.strip()
    if parts := _SUM.fullmatch(text):
        return float(Decimal(parts[1]) + Decimal(parts[2])), ""
    if (parts := _FEET.fullmatch(text)) and Decimal(parts[2] or 0) < 12:
        return float(12 * Decimal(parts[1]) + Decimal(parts[2] or 0)), FEET
    parts = _NUMBER.fullmatch(text)
    if parts is None or (parts["sign"] and parts["inner"]):
        return None
    letters, power = parts["letters"], 0
    if letters in _FACTORS:
        letters, power = "", _FACTORS[letters]
    units = [unit for unit in (parts["before"], letters, parts["after"]) if unit]
    if len(units) > 1:
        return None
    # Exact: 1.1 times a million in floats is not 1100000.
    number = Decimal(_SEPARATORS.sub("", parts["digits"]) + (parts["exponent"] or ""))
    value = float(number.scaleb(power))
    negative = (parts["sign"] or parts["inner"]) in ("-", "−")
    return (-value if negative else value), (units[0] if units else "")


class TextNumbers(NamedTuple):
    """A column of text read as numbers."""

    numbers: pl.Series
    """Float64; null where a cell is missing or odd."""
    unit: str
    """The unit of the cells that have one."""
    is_uniform: bool
    """Whether all cells that are numbers have the unit."""
    is_odd: pl.Series
    """Where a cell is no number, or has another unit."""


def read_numbers(cells: pl.Series, unit: str | None = None) -> TextNumbers:
    """Read a column of text as numbers.

    Parameters
    ----------
    cells : polars.Series of String
        The cells.
    unit : str or None, default=None
        The unit that cells may have; None: that of most of those that have one.
    """
    texts = cells.unique(maintain_order=True).drop_nulls()
    read = {text: read_number(text) for text in texts if text.strip().lower() not in MISSING}
    found = {text: number for text, number in read.items() if number is not None}
    units = Counter(number[1] for number in found.values())
    if unit is None:
        unit = max(filter(None, units), key=units.__getitem__, default="")
    numbers = {text: number for text, (number, of) in found.items() if of in ("", unit)}
    values = cells.replace_strict(
        list(numbers), list(numbers.values()), default=None, return_dtype=pl.Float64
    )
    odd = [text for text in read if text not in numbers]
    return TextNumbers(values, unit, set(units) <= {unit}, cells.is_in(odd).fill_null(False))
