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
from collections.abc import Callable
from dataclasses import dataclass, field
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
# Units of a column that are counted.
_MAX_UNITS = 1_000


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
    is_odd: pl.Series
    """Where a cell is not a number, or has another unit."""
    lacks_unit: bool
    """Whether there are numbers, but none with the unit."""

    def first_odd(self, cells: pl.Series) -> str | None:
        """Return the text of the first odd cell."""
        row = self.is_odd.arg_max()
        return None if row is None or not self.is_odd[row] else cells[row]

    def complaint(self, cells: pl.Series, row_words: Callable[[int], str]) -> str:
        """Return the words for odd cells, "" where there are none; `row_words`: for a row."""
        rows = self.is_odd.arg_true().head(_MAX_ODD).to_list()
        first = [(cells[row], row_words(row)) for row in rows]
        return _complaint(cells.name, int(self.is_odd.sum()), first, self.unit)


def _complaint(name: str, n_odd: int, first: list[tuple[str, str]], unit: str) -> str:
    """Return the words for odd cells, "" for none; `first`: texts and words for rows."""
    if not n_odd:
        return ""
    which = ", ".join(f"{shown_cell(text)} in {row}" for text, row in first)
    more = f" and {n_odd - len(first):,} more" if n_odd > len(first) else ""
    others = f"; other cells are in {unit}" if unit else ""
    return (
        f"{format_count(n_odd, 'cell')} of {name!r} cannot be read as numbers: {which}"
        f"{more} (rows count from 0){others}. Mend or empty these cells"
    )


@dataclass
class _Some:
    """Cells of a column that are alike in something."""

    n: int = 0
    first: list[tuple[int, str, str]] = field(default_factory=list)
    """Of the first cells the number of the row, the text and the words for the row."""


class NumbersSoFar:
    """What the cells of a column of text are as numbers, in the rows that were looked at so far.

    Of all cells only counts by unit are held, and the first cells of each.

    Parameters
    ----------
    name : str
        The column, for messages.
    decimal_comma : bool, default=False
        Whether decimals follow a comma.
    """

    def __init__(self, name: str, decimal_comma: bool = False) -> None:
        self._name, self._decimal_comma = name, decimal_comma
        self._by_unit: dict[str | None, _Some] = {}
        self._n_rows = 0

    def add_cells(self, cells: pl.Series, row_words: Callable[[int], str]) -> None:
        """Look at the cells of more rows; `row_words`: for a row."""
        different = different_texts(cells)
        units = self._units_of(different)
        for unit in {unit for unit in units if unit != ""}:
            some = self._by_unit[unit]
            if (n_wanted := _MAX_ODD - len(some.first)) > 0:
                texts = different["text"].filter([of == unit for of in units])
                rows = cells.is_in(texts.implode()).arg_true().head(n_wanted).to_list()
                some.first += [(self._n_rows + row, cells[row], row_words(row)) for row in rows]
        self._n_rows += len(cells)

    def add(self, different: pl.DataFrame) -> dict[str, tuple[float, str] | None]:
        """Look at the `different_texts` of more rows, without a word for odd ones.

        Returns the number and unit of each text that is not missing, None where it is no number.
        """
        read: dict[str, tuple[float, str] | None] = {}
        self._units_of(different, read)
        return read

    def _units_of(
        self, different: pl.DataFrame, read: dict[str, tuple[float, str] | None] | None = None
    ) -> list[str | None]:
        """Return the unit of each text, None if it is no number, "" if it is missing; count them.

        `read`: becomes what `add` returns.
        """
        units: list[str | None] = []
        texts = plain(different["text"], self._decimal_comma)
        for text, count in zip(texts, different["count"], strict=True):
            if text.strip().lower() in MISSING:
                units.append("")
                continue
            number = read_number(text)
            unit = None if number is None else number[1]
            if unit not in self._by_unit and len(self._by_unit) > _MAX_UNITS:
                unit = None
            self._by_unit.setdefault(unit, _Some()).n += count
            units.append(unit)
            if read is not None:
                read[text] = number
        return units

    @property
    def are_numbers(self) -> bool:
        """Whether all cells are numbers or missing, and those with a unit have the same."""
        return None not in self._by_unit and len(self._by_unit.keys() - {""}) < 2

    @property
    def are_uniform(self) -> bool:
        """Whether all cells that are numbers have the same unit, or all have none."""
        return len(self._by_unit.keys() - {None}) < 2

    def unit(self) -> str:
        """Return the unit of most of the cells that have one, the first of equals; "" of none."""
        units = {unit: some.n for unit, some in self._by_unit.items() if unit}
        return max(units, key=units.__getitem__, default="")

    def complaint(self) -> str:
        """Return the words for cells that are no numbers or have another unit, "" for none."""
        odd, unit = self._odd(), self.unit()
        told = [(text, row) for _, text, row in self._first_of(odd)[:_MAX_ODD]]
        return _complaint(self._name, sum(some.n for some in odd), told, unit)

    def first_odd(self) -> str | None:
        """Return the text of the first such cell."""
        first = self._first_of(self._odd())
        return first[0][1] if first else None

    def _odd(self) -> list[_Some]:
        wanted = ("", self.unit())
        return [some for unit, some in self._by_unit.items() if unit not in wanted]

    @staticmethod
    def _first_of(odd: list[_Some]) -> list[tuple[int, str, str]]:
        return sorted(cell for some in odd for cell in some.first)


def lacks_unit_words(name: object, unit: str) -> str:
    """Return the warning of numbers without the unit that those of the fit had."""
    if unit == FEET:
        return (
            f"no cell of {name!r} is written in {FEET}, as in the fit: its numbers were taken for "
            "inches."
        )
    return f"no cell of {name!r} has the unit {unit} of the fit: its numbers were taken for {unit}."


def has_sums(cells: pl.Series) -> bool:
    """Whether some of the texts that are numbers are sums, as 88+2 is."""
    return bool(cells.str.contains(r"\d\s*\+\s*\d").any())


def different_texts(cells: pl.Series) -> pl.DataFrame:
    """Return the different texts of a column, how many rows have each and the first of them.

    In the order of their first rows, without null: the columns text, count and row.
    """
    rows = cells.alias("text").to_frame().with_row_index("row").lazy()
    groups = rows.drop_nulls("text").group_by("text").agg(pl.len().alias("count"), pl.min("row"))
    return groups.sort("row").collect()


def shown_cell(cell: str) -> str:
    """Return a text in quotes, shortened."""
    return repr(cell if len(cell) <= _MAX_SHOWN else cell[: _MAX_SHOWN - 3] + "...")


def plain(cells: pl.Series, decimal_comma: bool) -> pl.Series:
    """Return text without spaces around it, with a decimal point in place of a comma."""
    text = cells.str.strip_chars()
    # The point changes as well: with decimal commas it is for thousands, and not read.
    return text.str.replace_many([",", "."], [".", ","]) if decimal_comma else text


def has_other_mark(text: str, decimal_comma: bool) -> bool:
    """Whether a text is a number if its decimals follow the other mark, and none as it is."""
    as_it_is, swapped = (
        read_number(plain(pl.Series([text]), comma)[0])
        for comma in (decimal_comma, not decimal_comma)
    )
    return as_it_is is None and swapped is not None


def read_numbers(cells: pl.Series, unit: str | None = None) -> TextNumbers:
    """Read a column of text as numbers.

    Parameters
    ----------
    cells : polars.Series of String
        The cells.
    unit : str or None, default=None
        The unit that cells may have; None: that of most of those that have one.
    """
    found = NumbersSoFar(cells.name)
    read = found.add(different_texts(cells))
    unit = found.unit() if unit is None else unit
    numbers = {text: of[0] for text, of in read.items() if of is not None and of[1] in ("", unit)}
    stripped = cells.str.strip_chars()
    values = stripped.replace_strict(
        list(numbers), list(numbers.values()), default=None, return_dtype=pl.Float64
    )
    odd = [text for text in read if text not in numbers]
    units = {of[1] for of in read.values() if of is not None}
    lacks_unit = bool(numbers) and unit not in units
    return TextNumbers(values, unit, stripped.is_in(odd).fill_null(False), lacks_unit)
