"""What there is to know of a column of text, added up over the rows in any number of batches."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from .._data.number_text import NumbersSoFar, different_texts, plain
from .._engine import MISSING_LEVEL
from .._util import format_count
from .cells import (
    DECIMAL_COMMA,
    FORMS,
    TIME_FORMS,
    Form,
    are_missing,
    as_codes,
    as_levels,
    codes_are_numbers,
    forms_of_all,
    in_form,
)
from .reading import Source

# Texts that `NumbersSoFar` reads as numbers without a unit, and polars faster.
_PLAIN_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)$"
# Texts that are looked at before all are: of words the first are no numbers.
_N_FIRST = 100
# Without one no time is written.
_DAY = r"\d{4}-\d{2}-\d{2}"
# Dates with or without a time, in any order of day, month and year.
_DATE = r"^(\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./]\d{1,2}[./]\d{1,2})([ T,].*)?$"
# Numbers with decimal commas, and where commas are decimal ones, those with points.
_OTHER_MARK = {
    False: f"^{DECIMAL_COMMA.pattern}$",
    True: f"^{DECIMAL_COMMA.pattern.replace(',', '[.]')}$",
}
# Different texts that are counted in all columns of text together, for 8 bytes each.
_MOST_DIFFERENT = 8_000_000


def most_different(n_columns: int) -> int:
    """Return up to how many different texts of each of some columns are counted: a round number."""
    each = _MOST_DIFFERENT // max(n_columns, 1)
    return next((most for most in (1_000_000, 100_000, 10_000) if most <= each), 1_000)


class Different:
    """The number of different texts, by their hashes, and the texts while they are few.

    Parameters
    ----------
    most : int or None
        Up to how many are counted; None: all.
    n_kept : int, default=255
        Up to how many the texts themselves are kept.
    """

    def __init__(self, most: int | None, n_kept: int = MISSING_LEVEL) -> None:
        self._most, self._n_kept = most, n_kept
        self._hashes = pl.Series(dtype=pl.UInt64)
        self.texts: list[str] | None = []
        """In the order in which they came; None: they are too many."""

    def add(self, texts: pl.Series) -> None:
        """Look at more texts, all different from each other."""
        if self._is_more:
            return
        hashes = texts.hash()
        new = ~hashes.is_in(self._hashes) if len(self._hashes) else hashes.is_not_null()
        if not new.any():
            return
        self._hashes = pl.concat([self._hashes, hashes.filter(new)], rechunk=True)
        if self.texts is not None:
            is_few = len(self._hashes) <= self._n_kept
            self.texts = [*self.texts, *texts.filter(new)] if is_few else None

    @property
    def _is_more(self) -> bool:
        return self._most is not None and len(self._hashes) > self._most

    def __len__(self) -> int:
        """Return the number of different texts, or a larger one than the most that are counted."""
        return len(self._hashes)

    @property
    def is_wide(self) -> bool:
        """Whether they are more than a column can have as levels."""
        return len(self) > MISSING_LEVEL

    def words(self) -> str:
        """Return the words for the number of levels."""
        if self._is_more:
            return f"more than {self._most:,} levels"
        return format_count(len(self), "level")


class LevelFacts:
    """What the cells are of a column whose cells are taken as levels, whatever they hold.

    Parameters are those of `TextFacts`.
    """

    def __init__(self, name: str, *, decimal_comma: bool, most: int | None = None) -> None:
        self.name, self._decimal_comma = name, decimal_comma
        self.are_numbers = True
        """Whether all cells are numbers or missing: NA is no level then."""
        self._levels = Different(most)
        self._missing: set[str] = set()

    def add(self, cells: pl.Series) -> None:
        """Look at the cells of more rows."""
        cells = cells.unique()
        self.are_numbers &= codes_are_numbers(cells, self._decimal_comma)
        codes = as_codes(cells, self._decimal_comma, are_numbers=False).drop_nulls().unique()
        missing = are_missing(codes)
        self._missing.update(codes.filter(missing))
        self._levels.add(codes.filter(~missing))

    @property
    def levels(self) -> Different:
        """The levels."""
        if not self.are_numbers and self._missing:
            self._levels.add(pl.Series(sorted(self._missing)))
        return self._levels


@dataclass
class OddCells:
    """Cells that are not in a form that others are in."""

    n: int = 0
    n_slips: int = 0
    """Those that are no numbers with the other mark of decimals either."""
    first: str = ""
    """The words for the first: column, row and text."""

    @property
    def have_other_mark(self) -> bool:
        """Whether all are numbers with the other mark of decimals."""
        return not self.n_slips

    def add(self, source: Source, cells: pl.Series, different: pl.DataFrame) -> None:
        """Add cells of more rows: their `different_texts` with the columns odd and other_mark."""
        odd = different.filter("odd")
        if not odd.height:
            return
        self.first = self.first or source.cell(cells, odd["row"][0])
        self.n += int(odd["count"].sum())
        self.n_slips += int(odd.filter(~pl.col("other_mark"))["count"].sum())


class TextFacts:
    """What the cells of a column of text are, in the rows that were looked at so far.

    Held are counts, the words for first cells, the texts up to 255 different ones and the hashes
    of up to `most`.

    Parameters
    ----------
    name : str
        The column.
    in_text_file : bool
        Whether it is of a text file, where cells stand for what they look like.
    decimal_comma : bool
        Whether decimals follow a comma there.
    most : int or None, default=None
        Up to how many different texts are counted; None: all.
    """

    def __init__(
        self, name: str, *, in_text_file: bool, decimal_comma: bool, most: int | None = None
    ) -> None:
        self.name, self.in_text_file, self.decimal_comma = name, in_text_file, decimal_comma
        self.n_cells = 0
        """Cells that are not null."""
        self.levels = Different(most)
        self.example = ""
        """The words for the first level."""
        self.first_level = ""
        self.forms: list[Form] = list(FORMS) if in_text_file else ["levels"]
        """Those that suit all cells, the preferred ones first."""
        self.numbers = NumbersSoFar(name, decimal_comma)
        """Counts nothing more once `are_numbers` is false."""
        self._swapped = NumbersSoFar(name, not decimal_comma)
        self.odd_numbers = OddCells()
        self._odd_times: dict[Form, OddCells] = {form: OddCells() for form in TIME_FORMS}
        self.are_dates = True
        """Whether all cells are dates in some form."""
        self.has_other_mark = False
        """Whether some cells are numbers with the other mark of decimals."""

    @property
    def odd_times(self) -> OddCells:
        """The cells that are no times of the form that most have."""
        return min(self._odd_times.values(), key=lambda odd: odd.n)

    def add(self, source: Source, cells: pl.Series) -> None:
        """Look at the cells of more rows."""
        different = different_texts(cells)
        if not different.height:
            return
        texts = different["text"]
        self.n_cells += int(different["count"].sum())
        levels = as_levels(texts) if self.in_text_file else texts
        filled = levels.is_not_null()
        if not self.example and filled.any():
            first = filled.arg_max() or 0
            self.example = source.cell(cells, different["row"][first])
            self.first_level = texts[first]
        self.levels.add(levels.drop_nulls().unique())
        self._add_numbers(self.numbers, different, self.decimal_comma)
        self._add_numbers(self._swapped, different, not self.decimal_comma)
        other_mark = texts.str.contains(_OTHER_MARK[self.decimal_comma])
        self.has_other_mark |= bool(other_mark.any())
        if self.are_dates:
            self.are_dates = texts.str.strip_chars().str.contains(_DATE).all()
        if self.in_text_file:
            self.forms = forms_of_all(texts, self.forms, self.decimal_comma)
        self._add_odd(source, cells, different.with_columns(other_mark=other_mark))

    @property
    def are_swapped_numbers(self) -> bool:
        """Whether all cells are numbers with units if decimals follow the other mark."""
        return self._swapped.are_numbers

    @staticmethod
    def _add_numbers(numbers: NumbersSoFar, different: pl.DataFrame, decimal_comma: bool) -> None:
        if not numbers.are_numbers:
            return
        is_plain = plain(different["text"], decimal_comma).str.contains(_PLAIN_NUMBER)
        first = is_plain & (is_plain.cum_sum() == 1)  # one stands for all
        looked_at = different.filter(~is_plain | first)
        numbers.add(looked_at[:_N_FIRST])
        if numbers.are_numbers:
            numbers.add(looked_at[_N_FIRST:])

    def _add_odd(self, source: Source, cells: pl.Series, different: pl.DataFrame) -> None:
        texts = different["text"]
        has_days = bool(texts.str.contains(_DAY).any())
        for form, so_far in (("numbers", self.odd_numbers), *self._odd_times.items()):
            if form in self.forms:
                continue
            if form == "numbers" or has_days:
                odd = in_form(texts, form, self.decimal_comma)[1]
            else:
                odd = ~are_missing(texts)
            so_far.add(source, cells, different.with_columns(odd=odd))
