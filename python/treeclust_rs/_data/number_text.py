"""Numbers in text: the rule of `text_to_numbers` and of the command's option ``--numbers``.

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
from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

import polars as pl

from .._util import format_count

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
# Cells that a message names, and characters of each.
_MAX_ODD = 3
_MAX_SHOWN = 40


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
    """Where a cell is not a number, or has another unit."""

    def complaint(self, cells: pl.Series, row_words: Callable[[int], str]) -> str:
        """Return the words for odd cells, "" where there are none; `row_words`: for a row."""
        n_odd = int(self.is_odd.sum())
        if not n_odd:
            return ""
        rows = self.is_odd.arg_true().head(_MAX_ODD).to_list()
        which = ", ".join(f"{shown_cell(cells[row])} in {row_words(row)}" for row in rows)
        more = f" and {n_odd - len(rows):,} more" if n_odd > len(rows) else ""
        others = f"; other cells are in {self.unit}" if self.unit else ""
        return (
            f"{format_count(n_odd, 'cell')} of {cells.name!r} cannot be read as numbers: {which}"
            f"{more} (rows count from 0){others}. Mend or empty these cells"
        )


def shown_cell(cell: str) -> str:
    """Return a text in quotes, shortened."""
    return repr(cell if len(cell) <= _MAX_SHOWN else cell[: _MAX_SHOWN - 3] + "...")


def plain(cells: pl.Series, decimal_comma: bool) -> pl.Series:
    """Return text without spaces around it, with a decimal point in place of a comma."""
    text = cells.str.strip_chars()
    # The point changes as well: with decimal commas it is for thousands, and not read.
    return text.str.replace_many([",", "."], [".", ","]) if decimal_comma else text


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
