"""What a column holds, and how its values are written: numbers, levels, flags, times.

The core compares numbers: a level is its place in the order of the column's levels, a flag 0 or 1,
a time its microseconds since 1970. Here they become words again.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from .._data.kinds import Kind, has_levels, is_time
from .._data.times import MICROSECONDS, zone_of
from .._util import format_number
from .._util.words import MAX_NAME_LENGTH, short_names, tested_level

MAX_LEVELS_SHOWN = 5
"""Levels in printed trees and pictures, at most; the others are counted."""

_DAY = MICROSECONDS["d"]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = date(1970, 1, 1)
_UNITS = (("d", _DAY), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("us", 1))


class Column(NamedTuple):
    """A column as texts see it."""

    kind: Kind = "number"
    levels: tuple[str, ...] = ()
    """The levels, in the order of their codes; a flag's are false and true."""
    has_missing: bool = False
    """Whether the column had missing cells in the fit."""

    @property
    def is_time(self) -> bool:
        """Whether cells are microseconds."""
        return is_time(self.kind)

    @property
    def has_levels(self) -> bool:
        """Whether cells are codes of levels, of which flags are two."""
        return has_levels(self.kind)

    def value_text(self, value: float, *, up: bool = False) -> str:
        """Return a number of the column as people write it.

        Dates are whole days, so that a bound on them is that of a day: a date at or before
        `value`, or with `up` at or after it.
        """
        if self.kind == "number" or not self.is_time:
            return format_number(value)
        if self.kind == "date":
            return day_of(value, up=up).isoformat()
        time = whole_microsecond(value, up=up)
        return _duration_text(time) if self.kind == "duration" else _datetime_text(time, self.kind)

    def code(self, value: object) -> int | None:
        """Return the code of a level, given by itself or by its text; None if there is no such."""
        if isinstance(value, str):
            return self.levels.index(value) if value in self.levels else None
        number = math.nan if value is None else float(value)  # type: ignore[arg-type]
        return int(number) if 0 <= number < len(self.levels) else None

    def set_text(
        self,
        name: str,
        codes: Collection[int],
        max_levels: int | None = None,
        max_length: int = MAX_NAME_LENGTH,
    ) -> str:
        """Return the levels that a condition allows: the shorter of ``in`` and ``not in``.

        Parameters
        ----------
        name : str
            Of the column.
        codes : collection of int
            The allowed codes.
        max_levels : int, default=None
            Most levels to write: the others are counted, and long ones shortened. None writes all,
            in full.
        max_length : int, default=60
            Most characters of a level where long ones are shortened.
        """
        if self.kind == "flag" and len(codes) == 1:
            return name if 1 in codes else f"not {name}"
        others = [code for code in range(len(self.levels)) if code not in codes]
        is_shorter = 0 < len(others) < len(codes)
        listed = self._listed(others if is_shorter else sorted(codes), max_levels, max_length)
        return f"{name} {'not in' if is_shorter else 'in'} {{{listed}}}"

    def _listed(self, codes: Sequence[int], max_levels: int | None, max_length: int) -> str:
        limit = None if max_levels is None else max_length
        texts = [self.level_text(code, limit) for code in codes[:max_levels]]
        n_more = len(codes) - len(texts)
        return ", ".join(texts) + (f" and {n_more} more" if n_more else "")

    def level_text(self, code: int, max_length: int | None = MAX_NAME_LENGTH) -> str:
        """Return a level, in quotes if it reads as another thing.

        One longer than `max_length` is shortened; None: none is.
        """
        text = tested_level(self.levels[code])
        if max_length is None or len(text) <= max_length:
            return text
        texts = [tested_level(level) for level in self.levels]
        return short_names(texts, range(len(texts)), max_length)[code]


def whole_microsecond(value: float, *, up: bool) -> int:
    """Return the last whole microsecond at or before a time, or with `up` the first at or after."""
    return math.ceil(value) if up else math.floor(value)


def day_of(value: float, *, up: bool) -> date:
    """Return the last day that begins at or before a time, or with `up` the first at or after."""
    time = whole_microsecond(value, up=up)
    return _FIRST_DAY + timedelta(days=-(-time // _DAY) if up else time // _DAY)


NUMBERS = Column()
"""A column of numbers without gaps."""


def _datetime_text(time: int, kind: str) -> str:
    """Return a time with its time of day and, in a zone, its offset: as fine as it is."""
    zone = zone_of(kind)
    local = (_EPOCH + timedelta(microseconds=time)).astimezone(zone or UTC)
    shown = local if zone is not None else local.replace(tzinfo=None)
    fineness = "microseconds" if local.microsecond else "seconds" if local.second else "minutes"
    return shown.isoformat(sep=" ", timespec=fineness)


def _duration_text(length: int) -> str:
    """Return a length of time in days, hours, minutes, seconds and microseconds: ``3d 4h``."""
    rest, parts = abs(length), []
    for unit, size in _UNITS:
        whole, rest = divmod(rest, size)
        if whole:
            parts.append(f"{whole}{unit}")
    return ("-" if length < 0 else "") + (" ".join(parts) or "0s")
