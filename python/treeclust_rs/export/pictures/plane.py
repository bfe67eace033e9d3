"""The axes of a partition: where numbers, levels, times and missing cells lie on them.

Numbers lie where they are, times in days since 1970 (as in matplotlib), lengths of time in a unit
that suits them. A level has a band around its code, and a date around its day. Missing cells have a
band of their own beyond the upper end of the values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..._data.cells import polars_cells
from ..._data.kinds import is_time, polars_kind
from ..._data.times import MICROSECONDS
from ..._util import FloatArray, format_number
from ...tree import Span
from ...tree.columns import NUMBERS, Column
from .cells import Cell, Limits, Rectangle, clip

_DAY = MICROSECONDS["d"]
_LENGTHS = (
    (_DAY, "days"),
    (3_600_000_000, "hours"),
    (60_000_000, "minutes"),
    (1_000_000, "seconds"),
    (1, "microseconds"),
)
_BAND = 0.08
"""Width of the band of missing cells, in units of that of the values."""
_MARGIN = 0.05
"""Share of the range of the values that is left free on each side."""
_SPREAD = 0.34
"""Points of a band lie at most so far from its middle, in units of its width."""
_STEPS = (0.7548776662466927, 0.5698402909980532)
"""Of a sequence that fills the square evenly (Roberts' R2: powers of 1 / the plastic number)."""


@dataclass(frozen=True)
class PlaneAxis:
    """An axis of the plane."""

    column: Column = NUMBERS
    unit: float = 1.0
    """Of the axis, in that of the column: microseconds for times."""
    unit_name: str = ""
    """Of lengths of time."""
    low: float = 0.0
    high: float = 1.0
    """Ends of the values."""
    has_missing: bool = False
    """Whether missing cells have a band."""

    @classmethod
    def of(cls, column: Column, spans: Iterable[Span], values: FloatArray | None) -> PlaneAxis:
        """Return the axis of a column, for the cells and the values of points to be drawn."""
        if column.kind != "duration":
            return cls(column, _DAY if column.is_time else 1.0)
        widest = float(np.abs(_finite(spans, values)).max(initial=0.0))
        unit, name = next((u for u in _LENGTHS if 2 * u[0] <= widest), _LENGTHS[-1])
        return cls(column, unit, name)

    @property
    def is_calendar(self) -> bool:
        """Whether the axis has dates."""
        return self.column.is_time and self.column.kind != "duration"

    @property
    def end(self) -> float:
        """The end of the band of missing cells, or that of the values if there is none."""
        width = 1.0 if self.column.has_levels else _BAND * (self.high - self.low)
        return self.high + width if self.has_missing else self.high

    def placed(self, span: Span) -> Span:
        """Return where values lie; missing cells stay what they are."""
        if span.is_missing:
            return span
        lower, upper = span.lower, span.upper
        if self.column.has_levels:
            return span._replace(lower=lower - 0.5, upper=upper + 0.5)
        if self.column.kind == "date":  # the days from the first to the last, as a whole
            if math.isfinite(lower):
                day = lower / _DAY
                lower = (math.floor(day) + 1 if span.lower_strict else math.ceil(day)) - 0.5
            if math.isfinite(upper):
                day = upper / _DAY
                upper = (math.ceil(day) - 1 if span.upper_strict else math.floor(day)) + 0.5
            return Span(lower, True, upper, True)
        return span._replace(lower=lower / self.unit, upper=upper / self.unit)

    def ends_of(self, spans: Iterable[Span], values: FloatArray | None) -> tuple[float, float]:
        """Return ends that show all ends of spans and all values, with a margin."""
        if self.column.has_levels:
            return -0.5, max(len(self.column.levels), 1) - 0.5
        ends = _finite(map(self.placed, spans), None if values is None else values / self.unit)
        low, high = (float(ends.min()), float(ends.max())) if len(ends) else (0.0, 1.0)
        margin = _MARGIN * high - _MARGIN * low
        if values is None:
            margin *= 5  # the width of the outermost cells
        if not margin > 0:
            margin = 0.5 if self.column.is_time else 0.5 * abs(low) or 0.5
        return low - margin, high + margin

    def scattered(self, values: FloatArray, jitter: FloatArray) -> FloatArray:
        """Return the places of values, NaN for those that another band would hide.

        `jitter`: of each value its distance from the middle of a band, in units of its width.
        """
        places = values + jitter if self.column.has_levels else values / self.unit
        if not self.has_missing:
            return places
        places[places > self.high] = np.nan
        in_band = self.high + (0.5 + jitter) * (self.end - self.high)
        return np.where(np.isnan(values), in_band, places)

    def read_end(self, end: Any) -> float:
        """Return the place of an end of the axis as users give it: a number or a time."""
        if not self.column.is_time or isinstance(end, Real):
            return float(end)
        times = pl.Series([end])
        kind = polars_kind(times.dtype)
        if kind is None or not is_time(kind) or (kind == "duration") == self.is_calendar:
            raise TypeError("no such time")
        cells = polars_cells(times, kind)
        assert isinstance(cells, np.ndarray), "times are numbers"
        return float(cells[0]) / self.unit

    def border_text(self, place: float) -> str | None:
        """Return what a test has at a border between cells; None where ticks say it."""
        if self.column.has_levels or (self.has_missing and place == self.high):
            return None
        if not self.column.is_time:
            return format_number(place)
        return self.column.value_text(round(place * self.unit))


class Plane(NamedTuple):
    """The two axes of a picture."""

    across: PlaneAxis
    along: PlaneAxis

    @classmethod
    def of(
        cls,
        columns: Sequence[Column],
        cells: Sequence[Cell],
        points: FloatArray | None,
        limits: Sequence[Sequence[Any]] | None,
    ) -> Plane:
        """Return the plane of some cells and points.

        Parameters
        ----------
        columns : sequence of two Column
            On the horizontal and the vertical axis.
        cells : sequence of Cell
            Those that cover the plane.
        points : ndarray of shape (n, 2) or None
            Their values, NaN where a cell is missing.
        limits : ((object, object), (object, object)) or None
            The ends of the values on the axes, which cannot be read: ValueError. None: all ends of
            cells and all points, and a margin.
        """
        spans = [cell.x for cell in cells], [cell.y for cell in cells]
        values = (None, None) if points is None else points.T
        axes = [PlaneAxis.of(*of) for of in zip(columns, spans, values, strict=True)]
        if limits is not None:
            ends = _read_limits(limits, axes)
        else:
            ends = [axis.ends_of(*of) for axis, *of in zip(axes, spans, values, strict=True)]
        return cls(
            *(
                replace(axis, low=low, high=high, has_missing=any(s.is_missing for s in own))
                for axis, (low, high), own in zip(axes, ends, spans, strict=True)
            )
        )

    @property
    def window(self) -> Limits:
        """The ends of the axes, bands of missing cells included."""
        return (self.across.low, self.across.end), (self.along.low, self.along.end)

    def rectangles(self, cells: Iterable[Cell]) -> list[Rectangle]:
        """Return the visible parts of cells."""
        shown = (self._rectangle(cell) for cell in cells)
        return [rectangle for rectangle in shown if rectangle is not None]

    def _rectangle(self, cell: Cell) -> Rectangle | None:
        spans, windows = [], []
        for axis, span in zip(self, cell[1:], strict=True):
            ends = (axis.high, axis.end) if span.is_missing else (axis.low, axis.high)
            placed = Span(ends[0], False, ends[1], False) if span.is_missing else axis.placed(span)
            if placed.is_empty:  # between two days
                return None
            spans.append(placed)
            windows.append(ends)
        return clip(Cell(cell.leaf, *spans), (windows[0], windows[1]))

    def scattered(self, points: FloatArray) -> FloatArray:
        """Return where points lie; in a band they are spread evenly, always in the same way."""
        steps = np.outer(np.arange(1, len(points) + 1), _STEPS)
        jitter = _SPREAD * (2.0 * (steps % 1.0) - 1.0)
        places = [axis.scattered(points[:, i], jitter[:, i]) for i, axis in enumerate(self)]
        return np.column_stack(places)


def _finite(spans: Iterable[Span], values: FloatArray | None) -> FloatArray:
    """Return the finite ends of spans and the finite values."""
    ends = np.array([end for span in spans for end in (span.lower, span.upper)])
    found = np.append(ends, [] if values is None else values)
    return np.asarray(found[np.isfinite(found)])


def _read_limits(
    limits: Sequence[Sequence[Any]], axes: Sequence[PlaneAxis]
) -> list[tuple[float, float]]:
    """Return the ends of the axes as places on them."""
    try:
        ends = [[axis.read_end(end) for end in own] for axis, own in zip(axes, limits, strict=True)]
        found = np.asarray(ends, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape != (2, 2) or not np.isfinite(found).all() or (found[:, 0] >= found[:, 1]).any():
        raise ValueError(
            "limits must be ((left, right), (low, high)), finite and ascending; of times they may "
            f"be dates or lengths of time. Got {limits!r} instead."
        )
    return [(low, high) for low, high in found.tolist()]
