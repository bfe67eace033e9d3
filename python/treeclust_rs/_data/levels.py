"""Levels: texts as codes, in the fit and afterwards.

The levels of a column are those that occur in the rows given to fit, sorted by code point; of a
polars Enum or an ordered category in the declared order. Levels that differ in case or in spaces
are different, and the empty string is a level.
"""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from .. import _engine
from .._engine import MISSING_LEVEL, LevelColumn
from .._util import IntArray
from .._util.words import check_unicode
from .number_text import plain, read_numbers

NumberForm = str
TimeForm = str
"""How numbers in text are written: "point" or "comma", by the mark of decimals."""

LevelNames = tuple[str, ...]
"""The names of the levels of a column, in the order of their codes."""

FLAG_LEVELS: LevelNames = ("false", "true")


# So many texts are looked up faster than the rows are searched for those that occur.
_FEW_TEXTS = 1000


def places_that_occur(codes: npt.NDArray[np.integer[Any]]) -> tuple[IntArray, IntArray]:
    """Return the codes that rows have, ascending, without -1, and the first row of each."""
    return _engine.first_rows(_places(codes))


def _places(codes: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.uint32] | IntArray:
    """Return codes as the core takes them."""
    kept: npt.DTypeLike = np.uint32 if codes.dtype == np.uint32 else np.int64
    return np.ascontiguousarray(codes, dtype=kept)


class Texts(NamedTuple):
    """A column of text or of booleans, as its frame holds it."""

    codes: npt.NDArray[np.integer[Any]]
    """By row the place in `texts`, -1 where the cell is missing."""
    texts: Sequence[str]
    """May hold texts that no row has, and the same text twice."""
    is_ordered: bool
    """Whether the order of `texts` was declared."""
    occurring: IntArray | None = None
    """The result of `present`, if it is known."""

    def present(self) -> IntArray:
        """Return the places that occur, ascending."""
        return places_that_occur(self.codes)[0] if self.occurring is None else self.occurring

    def of_rows(self) -> npt.NDArray[np.object_]:
        """Return the text of each row, None where it is missing."""
        texts: npt.NDArray[np.object_] = np.array([*self.texts, None], dtype=object)
        return np.asarray(texts[self.codes])

    def coded(self, levels: LevelNames) -> LevelColumn:
        """Return the codes of the rows among the levels of a column."""
        order = {level: code for code, level in enumerate(levels)}
        n_texts = len(self.texts)
        if n_texts <= _FEW_TEXTS:
            of_texts = [order.get(text, MISSING_LEVEL) for text in self.texts]
            codes = np.array(of_texts, dtype=np.uint8)
        else:
            codes = np.full(n_texts, MISSING_LEVEL, dtype=np.uint8)
            for place in self.present().tolist():
                codes[place] = order.get(self.texts[place], MISSING_LEVEL)
        return LevelColumn(_engine.place_codes(_places(self.codes), codes), len(levels))


def fitted_levels(cells: Texts, name: object) -> LevelNames:
    """Return the levels of a column of a fit, however many; see `check_numbers_of_levels`.

    Raises
    ------
    ValueError
        If one is not valid Unicode.
    """
    found = dict.fromkeys(map(cells.texts.__getitem__, cells.present().tolist()))
    check_unicode(found, f"Column {name!r} has a level")
    return tuple(found) if cells.is_ordered else tuple(sorted(found))


def check_numbers_of_levels(columns: Mapping[Any, LevelNames]) -> None:
    """Raise ValueError if columns have more than 255 levels: names all of them and the ways out.

    `columns`: the levels of columns by their names.
    """
    bad = {name: levels for name, levels in columns.items() if len(levels) > MISSING_LEVEL}
    if not bad:
        return
    if len(bad) == 1:
        (name, levels), them = *bad.items(), "it"
        which = f"Column {name!r} has {len(levels):,} levels; at most {MISSING_LEVEL} are taken."
        which += f" Is it an identifier or free text, as in {levels[0]!r:.60}?"
    else:
        counts = [f"{n!r} ({len(levels):,}, as {levels[0]!r:.60})" for n, levels in bad.items()]
        which = f"{len(bad)} columns have more than {MISSING_LEVEL} levels, which is the most: "
        which += f"{', '.join(counts)}. Are they identifiers or free text?"
        them = "them"
    forms = {name: form_of_numbers(levels) for name, levels in bad.items()}
    numbers = {name: form for name, form in forms.items() if form is not None}
    of_times = {name: form_of_times(levels) for name, levels in bad.items()}
    times = {name: form for name, form in of_times.items() if form is not None}
    meant = f" {numbers_meant(numbers)}" if numbers else ""
    meant += f" {times_meant(times)}" if times else ""
    raise ValueError(
        f"{which} Drop {them} (X.drop({_names_list(list(bad))}) in polars, "
        f"X.drop(columns={_names_list(list(bad))}) in pandas), or join rare levels into one.{meant}"
    )


# Levels of a column that are looked at, and the share of those that are to be numbers.
_N_SAMPLED = 1000
_MOST = 0.9

_DIGITS_ALONE = r"^\d+$"


def form_of_numbers(levels: LevelNames, *, were_numbers: bool = False) -> NumberForm | None:
    """Return how nearly all texts of a column are written as numbers (€110.5M, 88+2, 159lbs).

    None: they are not. Digits alone may be codes, and NaN a word: they count where other such texts
    are among them, or in a column that held numbers in the fit (`were_numbers`).
    """
    sample = pl.Series(levels[:: 1 + len(levels) // _N_SAMPLED], dtype=pl.String)
    if not were_numbers and all(map(str.isdecimal, sample.to_list())):
        return None  # as below, without reading them
    shares = {}
    for form in ("point", "comma"):
        text = plain(sample, form == "comma")
        read = read_numbers(text)
        if were_numbers:
            shares[form] = 1.0 - int(read.is_odd.sum()) / len(sample)
            continue
        found = text.filter(read.numbers.is_not_null())
        is_code = found.str.contains(_DIGITS_ALONE).all()
        shares[form] = 0.0 if is_code else len(found) / len(sample)
    best = max(shares, key=shares.__getitem__)  # the first of equals: the point
    return best if shares[best] >= _MOST else None


# Fewer texts of numbers are readable as levels.
_MANY_LEVELS = 20


def form_of_many(levels: LevelNames) -> NumberForm | None:
    """Return `form_of_numbers` of more levels than one reads, else None."""
    return form_of_numbers(levels) if len(levels) > _MANY_LEVELS else None


def numbers_meant(forms: Mapping[Any, NumberForm], *, were_numbers: bool = False) -> str:
    """Say how columns of such texts, by their names, become numbers; see `form_of_numbers`."""
    these = "this column" if len(forms) == 1 else "these columns"
    calls = []
    for form in ("point", "comma"):
        names = [name for name, of in forms.items() if of == form]
        comma = ", decimal_comma=True" if form == "comma" else ""
        if names:
            calls.append(f"treeclust_rs.text_to_numbers(X, {_names_list(names)}{comma})")
    meant = f"If {these} should be numbers: X = {'; X = '.join(calls)}"
    if were_numbers:
        return f"{meant}, in the units of the fit."
    command = " --decimal-comma" if "comma" in forms.values() else ""
    return f"{meant} (in the command --numbers{command})."


# Dates and times of ISO 8601, and what of polars reads them.
_DAY = r"^\s*\d{4}-\d{2}-\d{2}"
_TIMES = (
    (rf"{_DAY}\s*$", "to_date()"),
    (rf"{_DAY}[T ]\d{{2}}:\d{{2}}[\d:.]*\s*$", "to_datetime()"),
    (rf"{_DAY}[T ]\d{{2}}:\d{{2}}[\d:.]*(Z|[+-]\d\d:?\d\d)\s*$", 'to_datetime(time_zone="UTC")'),
)


# Dates in other forms: the first that fits counts, so days come before months where both may.
_OTHER_DAY = re.compile(
    r"\s*(\d{1,2}([-./ ])\d{1,2}\2\d{4}|\d{4}([./ ])\d{1,2}\3\d{1,2}"
    r"|\d{1,2}([-./ ])[A-Za-z]{3}\4\d{2}(\d{2})?)\s*"
)
_OTHER_DAYS = tuple(
    order.replace("-", mark)
    for order in ("%d-%m-%Y", "%m-%d-%Y", "%Y-%m-%d", "%d-%b-%y", "%d-%b-%Y")
    for mark in "/.- "
)


def form_of_times(levels: LevelNames) -> TimeForm | None:
    """Return how nearly all texts of a column are read as dates or times; None: they are none."""
    if not levels:
        return None
    texts = levels[:: 1 + len(levels) // _N_SAMPLED]
    least = _MOST * len(texts)
    if _are_most(texts, least, lambda text: text.count("-") > 1):  # all of _TIMES have two
        sample = pl.Series(texts, dtype=pl.String)
        for text, form in _TIMES:
            if sample.str.contains(text).sum() >= least:
                return form
    return _form_of_days(texts, least)


def _are_most(texts: Sequence[str], least: float, test: Callable[[str], object]) -> bool:
    """Return whether at least so many texts pass a test; ends where too many have not."""
    n_left = len(texts)
    for text in texts:
        if not test(text):
            n_left -= 1
            if n_left < least:
                return False
    return True


def _form_of_days(texts: Sequence[str], least: float) -> TimeForm | None:
    """Return how nearly all texts are read as dates of another form; None: they are none."""
    if not _are_most(texts, least, _OTHER_DAY.fullmatch):
        return None
    sample = pl.Series(texts, dtype=pl.String).str.strip_chars()
    for form in _OTHER_DAYS:
        if len(texts) - sample.str.to_date(form, strict=False).null_count() >= least:
            return f'to_date("{form}")'
    return None


def form_of_many_times(levels: LevelNames) -> TimeForm | None:
    """Return `form_of_times` of more levels than one reads, else None."""
    return form_of_times(levels) if len(levels) > _MANY_LEVELS else None


def times_meant(forms: Mapping[Any, TimeForm]) -> str:
    """Say how columns of dates or times in text, by their names, become such."""
    these = "this column" if len(forms) == 1 else "these columns"
    calls = ", ".join(f"{column_call(name)}.str.{form}" for name, form in forms.items())
    first, form = next(iter(forms.items()))
    others = [form for form in forms.values() if "%" in form or ".dt." in form]
    reads = "" if others else "polars.read_csv(..., try_parse_dates=True) reads them so; else "
    pattern = f", format={form[len('to_date(') : -1]}" if "%" in form else ""
    zone, local = (", utc=True", ".dt.tz_localize(None)") if ".dt." in form else ("", "")
    return (
        f"If {these} should be dates or times: {reads}X = X.with_columns({calls}), in pandas "
        f"pandas.to_datetime(X[{_quoted(first)}]{pattern}{zone}){local}."
    )


def flags_meant(name: object, levels: Sequence[str]) -> str:
    """Say how a column of two words, of which none is true or false, becomes booleans."""
    return f"if these should be booleans: {column_call(name)} == {_quoted(levels[-1])}"


def column_call(name: object) -> str:
    """Return what names a column in polars."""
    return f"pl.col({_quoted(name)})"


def _names_list(names: Sequence[object]) -> str:
    """Return a list of names as Python writes it."""
    return "[" + ", ".join(map(_quoted, names)) + "]"


def _quoted(name: object) -> str:
    return quoted_list([name]) if isinstance(name, str) else str(name)


def quoted_list(names: Iterable[object]) -> str:
    """Return the names as they are written in Python."""
    return ", ".join(json.dumps(str(name), ensure_ascii=False) for name in names)


def unknown_levels(cells: Texts, levels: LevelNames) -> list[str]:
    """Return the levels of some rows that the fit did not have, sorted."""
    return sorted({cells.texts[place] for place in cells.present()}.difference(levels))


def object_texts(cells: npt.NDArray[Any], missing: npt.NDArray[np.bool_], name: object) -> Texts:
    """Return Python objects as texts: text, numbers by `str`, and booleans as flags have them.

    Raises
    ------
    TypeError
        If a cell is something else, or if cells are of several of these kinds.
    """
    order: dict[str, int] = {}
    found: dict[str, str] = {}
    codes = np.full(len(cells), -1)
    for row in np.flatnonzero(~missing):
        value = cells[row]
        if not isinstance(value, str | bool | np.bool_ | numbers.Number):
            raise TypeError(
                f"Column {name!r} holds objects: {value!r:.60}, a {type(value).__name__}, in row "
                f"{row} (counting from 0). Give the column a type of its own, for example by "
                "pandas.to_datetime or astype(str), or drop it."
            )
        is_flag = isinstance(value, bool | np.bool_)
        text = FLAG_LEVELS[bool(value)] if is_flag else str(value)
        kind = "booleans" if is_flag else "text" if isinstance(value, str) else "numbers"
        found.setdefault(kind, f"{kind} ({value!r:.60} in row {row})")
        codes[row] = order.setdefault(text, len(order))
    if len(found) > 1:
        raise TypeError(
            f"Column {name!r} holds objects of several types: {', '.join(found.values())}; rows "
            f'count from 0. Give it one type: text by X[{name!r}].astype("string"), numbers by '
            f"pandas.to_numeric(X[{name!r}])."
        )
    return Texts(codes, list(order), is_ordered=False)
