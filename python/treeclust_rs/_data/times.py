"""Times: whole microseconds since 1970, time zones, and thresholds that people read easily."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache, partial
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from .._util import BoolArray, FloatArray, IntArray, format_count

MICROSECONDS = {"d": 86_400_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
"""In a unit of time."""

MAX_TIME = 2**53
"""Microseconds beyond are not exact in float64, and beyond the years of calendars soon after."""
_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIXED_OFFSET = re.compile(r"(?:UTC)?([+-])(\d\d):?(\d\d)")
_DAY = MICROSECONDS["d"]
# Boundaries of thresholds: every so many months, every so many microseconds.
_MONTHS = (12, 3, 1)
_CLOCK = (_DAY, 3_600_000_000, 60_000_000, 1_000_000)


def microseconds(
    values: npt.NDArray[Any], unit: str, missing: BoolArray, name: object
) -> IntArray | FloatArray:
    """Return times as whole microseconds since 1970.

    Parameters
    ----------
    values : ndarray of shape (n_samples,), int
        Counted in `unit` since 1970, or lengths of time.
    unit : {"d", "s", "ms", "us", "ns"}
        Nanoseconds are floored.
    missing : ndarray of shape (n_samples,), bool
        Cells whose value does not count.
    name : object
        The column, for messages.

    Returns
    -------
    ndarray of shape (n_samples,)
        int64, or float64 with NaN where cells are missing.

    Raises
    ------
    ValueError
        If a time is beyond 2**53 microseconds: float64 does not hold it exactly.
    """
    counts = np.where(missing, 0, values.astype(np.int64))
    if unit == "ns":
        counts //= 1_000
    factor = MICROSECONDS.get(unit, 1)
    most = MAX_TIME // factor
    beyond = (counts > most) | (counts < -most)  # not abs: that of the least int64 is negative
    if beyond.any():
        raise ValueError(
            f"Column {name!r} has {format_count(int(np.count_nonzero(beyond)), 'cell')} beyond 285 "
            f"years (times: from 1970; durations: in length), the first in row "
            f"{int(beyond.argmax())} (counting from 0). Microseconds beyond 2**53 are not exact: "
            "make null of such cells, or give the column as numbers, for example years."
        )
    counts *= factor
    return np.where(missing, np.nan, counts) if missing.any() else counts


@cache
def time_zone(name: str) -> tzinfo:
    """Return a time zone by its name, or by its offset such as ``+01:00`` or ``UTC+01:00``.

    Raises ValueError for an unknown name.
    """
    fixed = _FIXED_OFFSET.fullmatch(name)
    if fixed:
        sign, hours, minutes = fixed.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"There is no time zone {name!r}.") from error


def zone_name(zone: object) -> str | None:
    """Return the name or the offset of a time zone as `time_zone` reads it; None if it has none."""
    for name in (str(zone), _offset(zone)):
        try:
            time_zone(name)
        except ValueError:
            continue
        return name
    return None


def _offset(zone: object) -> str:
    """Return the offset of a fixed time zone as text, empty for others."""
    offset = zone.utcoffset(None) if isinstance(zone, tzinfo) else None
    if offset is None:
        return ""
    minutes = round(offset.total_seconds() / 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def zone_of(kind: str) -> tzinfo | None:
    """Return the time zone of a kind of column such as ``datetime[Europe/Berlin]``."""
    name = kind.partition("[")[2].removesuffix("]")
    return time_zone(name) if name else None


def next_time(time: float, kind: str) -> int:
    """Return the first value of a column of times at or after a time in microseconds.

    A whole microsecond, of dates a whole day.
    """
    step = _DAY if kind == "date" else 1
    return -(-math.ceil(time) // step) * step


def threshold_in_gap(lower: float, upper: float, kind: str) -> int:
    """Return the threshold between two neighbouring times that people read most easily.

    The coarsest boundary of calendar or clock (year, quarter, month, day, hour, minute, second,
    microsecond) in the middle half of the gap, by the column's time zone; of several the nearest to
    the middle, then the earlier. Local times that do not exist or occur twice are no boundaries.

    Parameters
    ----------
    lower, upper : float
        Whole microseconds since 1970, ``lower < upper``; of a duration its length.
    kind : str
        "date", "datetime[zone or '']" or "duration", whose coarsest unit is the day.

    Returns
    -------
    int
        Whole microseconds, at least `lower` and below `upper`; `lower` where there is no boundary.
        For dates the day before the boundary, so that ``<= threshold`` says which day is the last.
    """
    low, high, zone = int(lower), int(upper), zone_of(kind)
    middle = (low + high) // 2
    local = middle + _offset_at(middle, zone)
    months = () if kind == "duration" else _MONTHS
    clock = _CLOCK[:1] if kind == "date" else _CLOCK
    for boundaries in (
        *(partial(_month_starts, local, width) for width in months),
        *(partial(_multiples, local, width) for width in clock),
    ):
        time = _nearest(boundaries, low, high, zone)
        if time is not None:
            return time - _DAY if kind == "date" else time
    return low if kind == "date" else _some_microsecond(low, high, zone)


def start_in_gap(lower: float, upper: float, kind: str) -> int:
    """Return the first time after a gap that people read most easily: the lower end of an interval.

    As `threshold_in_gap`, but above `lower` and at most `upper`; of dates the day of the boundary.
    """
    threshold = threshold_in_gap(lower, upper, kind)
    if kind == "date":
        return threshold + _DAY
    return threshold if threshold > lower else int(upper)


def _nearest(
    boundaries: Callable[[int], Iterator[int]], low: int, high: int, zone: tzinfo | None
) -> int | None:
    """Return the boundary in the middle half of a gap that is nearest to the middle.

    `boundaries`: returns those below (-1) or above (1) the middle, by local time, nearest first.
    """
    middle, found = (low + high) // 2, []
    offset = _offset_at(middle, zone)
    for side in (-1, 1):
        for boundary in boundaries(side):
            time = _instant(boundary, zone)
            # Where local time jumps, none of many neighbours may exist.
            if time is None and (boundary - offset - middle) * side <= high - low + _DAY:
                continue
            if time is not None and _is_in_middle_half(time, low, high):
                found.append(time)
            if time is None or (time - middle) * side >= 0:
                break
    return _best(found, low, high)


def _some_microsecond(low: int, high: int, zone: tzinfo | None) -> int:
    """Return the time nearest to the middle whose local time occurs once, else `low`."""

    def is_boundary(time: int) -> bool:
        return _instant(time + _offset_at(time, zone), zone) == time

    middle = (low + high) // 2
    quarter = -((low - high) // 4)
    found = []
    for inside, outside in ((middle, low + quarter), (middle, high - quarter)):
        if not _is_in_middle_half(outside, low, high) or not is_boundary(outside):
            continue
        if is_boundary(inside):
            found.append(inside)
            continue
        # The middle occurs twice: where that begins or ends.
        while abs(inside - outside) > 1:
            between = (inside + outside) // 2
            inside, outside = (inside, between) if is_boundary(between) else (between, outside)
        found.append(outside)
    best = _best(found, low, high)
    return low if best is None else best


def _best(times: list[int], low: int, high: int) -> int | None:
    """Return the time nearest to the middle of a gap, then the earlier; None for no times."""
    return min(times, key=lambda time: (abs(2 * time - low - high), time), default=None)


def _is_in_middle_half(time: int, low: int, high: int) -> bool:
    return min(time - low, high - time) * 4 >= high - low


def _month_starts(local: int, width: int, side: int) -> Iterator[int]:
    """Yield the first days of every `width`-th month, at or below a local time or above it."""
    day = _EPOCH + timedelta(microseconds=local)
    month = (12 * day.year + day.month - 1) // width
    for step in count(month + (side > 0), side):
        year, after = divmod(step * width, 12)
        yield (datetime(year, after + 1, 1) - _EPOCH) // _MICROSECOND


def _multiples(local: int, width: int, side: int) -> Iterator[int]:
    """Yield multiples of a width, at or below a local time or above it."""
    return (step * width for step in count(local // width + (side > 0), side))


def _offset_at(time: int, zone: tzinfo | None) -> int:
    """Return what the clocks of a zone are ahead by at some time."""
    if zone is None:
        return 0
    offset = (_EPOCH_UTC + timedelta(microseconds=time)).astimezone(zone).utcoffset()
    assert offset is not None, "the time has a zone"
    return offset // _MICROSECOND


def _instant(local: int, zone: tzinfo | None) -> int | None:
    """Return when the clocks of a zone show a time; None where they never or twice do."""
    if zone is None:
        return local
    shown = (_EPOCH + timedelta(microseconds=local)).replace(tzinfo=zone)
    first, second = shown.utcoffset(), shown.replace(fold=1).utcoffset()
    assert first is not None, "the time has a zone"
    return local - first // _MICROSECOND if first == second else None
