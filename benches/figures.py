"""Figures of a table: raw runs as they go into a record, and what a page shows of them.

A cell of a table is a text, a number that needs no spread (leaves, a cost that any run repeats),
or a figure: a mapping of `kind`, raw numbers, and, if wanted, a `target` ("<= 1.15"), a `format` of
the numbers and `every` (print all runs). Kinds:

runs
    One number a run: their median. A run given as a list, of several fits, is the median of them.
ratio
    `over` through `under`, run by run, times `factor`: the median of these ratios. Runs beyond the
    shorter of both lists have no partner and do not count.
growth
    Slope of log `times` over log `sizes`, run by run: the median of these slopes. `times` has a
    list of runs for every size.
mean
    Mean and standard deviation of the `values`.
value
    One `number`, the same in every run, where it has a target.
"""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Figure = dict[str, Any]
Cell = str | int | float | Figure | None

_FIELDS = {
    "runs": {"runs"},
    "ratio": {"over", "under", "factor"},
    "growth": {"sizes", "times"},
    "mean": {"values"},
    "value": {"number"},
}
_OPTIONS = {"kind", "target", "format", "every"}
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


def runs(values: Sequence[Any], target: str | None = None, **options: Any) -> Figure:
    return _figure("runs", target, {"format": ".3g", **options}, runs=list(values))


def ratio(
    over: Sequence[Any], under: Sequence[Any], target: str | None = None, **options: Any
) -> Figure:
    return _figure(
        "ratio", target, {"format": ".2f", **options}, over=list(over), under=list(under)
    )


def growth(
    sizes: Sequence[float], times: Iterable[Sequence[float]], target: str | None = None
) -> Figure:
    lists = [list(one) for one in times]
    return _figure("growth", target, {"format": ".2f"}, sizes=list(sizes), times=lists)


def mean(values: Sequence[float], target: str | None = None, **options: Any) -> Figure:
    return _figure("mean", target, {"format": ".2f", **options}, values=list(map(float, values)))


def value(number: float, target: str | None = None, **options: Any) -> Figure:
    return _figure("value", target, {"format": ",.6g", **options}, number=number)


def steps(sizes: Sequence[float], times: Sequence[Sequence[float]]) -> list[Cell]:
    """Return for every size the exponent of the step from the size before."""
    return ["", *(growth(sizes[i - 1 : i + 1], times[i - 1 : i + 1]) for i in range(1, len(sizes)))]


def growth_rows(
    names: Sequence[str],
    sizes: Sequence[float],
    times: Sequence[Sequence[float]],
    target: str | None = None,
) -> list[list[Cell]]:
    """Return a row for every size: its name, seconds, exponent of the step; that of all at last."""
    rows = [
        [name, runs(done), step]
        for name, done, step in zip(names, times, steps(sizes, times), strict=True)
    ]
    return [*rows, ["all", "", growth(sizes, times, target)]]


def _figure(kind: str, target: str | None, options: dict[str, Any], **raw: Any) -> Figure:
    made = {"kind": kind, **raw, **options}
    if target is not None:
        made["target"] = target
    read(made)  # raises here, not when the page is printed
    return made


@dataclass(frozen=True)
class Reading:
    """What a figure says: its center, and the same of every run alone."""

    center: float
    each: list[float]
    deviation: float | None = None


def read(figure: Figure) -> Reading:
    """Compute a figure from its raw numbers.

    Raises
    ------
    ValueError
        If the kind is unknown, or a field is unknown or missing, or there are no runs.
    """
    kind = figure.get("kind")
    if kind not in _FIELDS:
        raise ValueError(f"A figure's kind must be one of {', '.join(_FIELDS)}. Got {kind!r}.")
    unknown = set(figure) - _OPTIONS - _FIELDS[kind]
    if unknown:
        raise ValueError(f"A figure of kind {kind!r} has no field {min(unknown)!r}.")
    lacking = _FIELDS[kind] - {"factor"} - set(figure)
    if lacking:
        raise ValueError(f"A figure of kind {kind!r} needs the field {min(lacking)!r}.")
    raw = [figure[name] for name in _FIELDS[kind] if isinstance(figure.get(name), list)]
    if not all(raw):
        raise ValueError(f"A figure of kind {kind!r} has no runs.")
    if "target" in figure:
        _target(figure)
    if kind == "value":
        return Reading(figure["number"], [figure["number"]])
    if kind == "mean":
        values = figure["values"]
        return Reading(statistics.fmean(values), values, statistics.pstdev(values))
    if kind == "growth":
        sizes, times = figure["sizes"], figure["times"]
        each = [_slope(sizes, one) for one in zip(*times, strict=False)]
    elif kind == "ratio":
        pairs = zip(_flat(figure["over"]), _flat(figure["under"]), strict=False)
        each = [figure.get("factor", 1) * over / under for over, under in pairs]
    else:
        each = _flat(figure["runs"])
    return Reading(statistics.median(each), each)


def _flat(values: Sequence[Any]) -> list[float]:
    return [statistics.median(one) if isinstance(one, list) else one for one in values]


def _slope(sizes: Sequence[float], times: Sequence[float]) -> float:
    x, y = list(map(math.log, sizes)), list(map(math.log, times))
    return statistics.linear_regression(x, y).slope


def _target(figure: Figure) -> tuple[str, float]:
    compare, _, bound = figure["target"].partition(" ")
    if compare not in _COMPARE:
        raise ValueError(f"A target is like '<= 1.15'. Got {figure['target']!r}.")
    return compare, float(bound.replace(",", ""))


def met(figure: Figure) -> bool:
    """Compare the center with the target."""
    compare, bound = _target(figure)
    return _COMPARE[compare](read(figure).center, bound)


def shown(cell: Cell) -> str:
    """Return what a page prints of a cell: medians with least and largest, means with deviation."""
    if cell is None or isinstance(cell, str):
        return cell or ""
    if not isinstance(cell, dict):
        return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.6g}"
    reading, form = read(cell), cell.get("format", ".4g")
    center = f"{reading.center:{form}}"
    if cell["kind"] == "value":
        return center
    if reading.deviation is not None:
        return f"{center} ({reading.deviation:{form}})"
    if len(reading.each) == 1:
        return f"{center} (one run)"
    if cell.get("every"):
        return f"{center} ({', '.join(f'{one:{form}}' for one in reading.each)})"
    return f"{center} ({min(reading.each):{form}} to {max(reading.each):{form}})"
