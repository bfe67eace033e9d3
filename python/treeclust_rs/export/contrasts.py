"""What sets clusters apart: the one definition that profiles, pages and reports read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict, TypeVar

import numpy as np

from .._data import Table, WeightedRows, column_of, observed_means
from .._data.times import MICROSECONDS
from .._reference.kmedians import cluster_medians
from .._util import BoolArray, FloatArray, IntArray, format_short
from .._util.words import format_share
from ..tree.columns import Column

MAX_CONTRASTS = 5
"""Columns that the card of a cluster shows, at most."""
_MIN_CONTRAST = 0.1
_MINUTE = 60_000_000
TIME_UNITS = (MICROSECONDS["d"], 60 * _MINUTE, _MINUTE, 1_000_000)
"""Those in which times are rounded, in microseconds: the longest first."""

What = TypeVar("What")


def strongest(contrasts: Iterable[tuple[float, int, What]]) -> list[tuple[float, int, What]]:
    """Return what sets a cluster apart, the strongest first: the largest contrast of each column.

    Parameters
    ----------
    contrasts : iterable of (float, int, object)
        In units, with the column's number and what it is of. Those below 0.1 and NaN are left out.
    """
    best: dict[int, tuple[float, int, What]] = {}
    for entry in contrasts:
        amount, feature, _ = entry
        if _MIN_CONTRAST <= abs(amount) < math.inf and not (
            feature in best and abs(best[feature][0]) >= abs(amount)
        ):
            best[feature] = entry
    return sorted(best.values(), key=lambda entry: (-abs(entry[0]), entry[1]))


class FiguresOfCluster(TypedDict):
    """Of one column, or of one level, in one cluster; None is not known."""

    rest: float | None
    contrast: float | None
    typical: str | None
    share: NotRequired[float | None]
    """Of levels."""
    mean: NotRequired[float | None]
    """Of numbers and times, as the median."""
    median: NotRequired[float | None]


@dataclass(frozen=True)
class Figures:
    """Of one column, or of one level: means or shares by cluster, and of the other clusters."""

    column: Column
    observed: FloatArray
    typical: FloatArray
    rest: FloatArray
    unit: float
    median: FloatArray | None

    @property
    def contrasts(self) -> FloatArray:
        """What sets each cluster apart: its mean or share minus the rest's, in units; else NaN."""
        with np.errstate(invalid="ignore", over="ignore"):
            return (self.typical - self.rest) / self.unit

    def of(self, place: int) -> FiguresOfCluster:
        """Return the figures of one cluster."""
        value, rest = _known(self.typical[place]), _known(self.rest[place])
        contrast = _known(self.contrasts[place])
        if self.median is None:
            text = None if value is None else format_share(value)
            return {"rest": rest, "contrast": contrast, "share": value, "typical": text}
        median = _known(self.median[place])
        text = None if value is None else format_short(value)
        if self.column.is_time and median is not None:
            text = time_text(self.column, median, self.unit)
        return {
            "rest": rest, "contrast": contrast, "mean": value, "median": median, "typical": text,
        }  # fmt: skip


def time_text(column: Column, time: float, unit: float) -> str:
    """Return a time as text, without what is too small to tell; of unit 0 all of it.

    Points in time are without time of day where the unit is of days, durations in whole days, hours
    and so on of at most a hundredth.
    """
    if column.kind == "duration" and unit > 0:
        part = next((part for part in TIME_UNITS if part <= abs(time) / 100), 1)
        return column.value_text(round(time / part) * part)
    if not column.kind.startswith("datetime"):
        return column.value_text(time)
    text = column.value_text(time - time % _MINUTE)
    return text[: -len(text.partition(" ")[2]) - 1] if unit > TIME_UNITS[0] else text


def _known(number: float) -> float | None:
    return None if math.isnan(number) else float(number)


def figures_of(
    rows: WeightedRows[Table], f: int, codes: IntArray, k: int
) -> Iterator[tuple[str | None, Figures]]:
    """Yield the figures of a column, or of each of its levels, by cluster: the codes up to k."""
    weight = np.ones(rows.rows.n_samples) if rows.weight is None else rows.weight
    table, unit = rows.rows, float(rows.units.scale[f])
    kind = "number" if table.kinds is None else table.kinds[f]
    known: Sequence[str] | None = None if table.levels is None else table.levels[f]
    column = Column(kind, tuple(known or ()))
    if known is not None:
        weights = rows.level_weights(f, codes, k)
        observed = weights.sum(axis=1)
        for code, level in enumerate(known):
            if kind == "flag" and level != "true":
                continue
            mean, rest = _with_rest(weights[:, code], observed)
            yield level, Figures(column, observed, mean, rest, unit * math.sqrt(2.0), None)
        return
    cells = np.asarray(column_of(table, f), dtype=np.float64)
    seen = np.isfinite(cells)
    groups = codes[seen]
    observed = np.bincount(groups, weight[seen], k).astype(np.float64)
    weights_seen = None if rows.weight is None else weight[seen]
    median = cluster_medians(cells[seen, np.newaxis], groups, k, weights_seen)[:, 0]
    # About a value of each cluster's own, so that no digits are lost far from 0, nor to clusters
    # far away.
    parts = weight[seen] * (cells[seen] - median[groups])
    sums = np.bincount(groups, parts, k).astype(np.float64)
    mean = median + observed_means(sums, observed, np.nan)
    yield None, Figures(column, observed, mean, _means_of_others(mean, observed), unit, median)


def _means_of_others(means: FloatArray, weights: FloatArray) -> FloatArray:
    """Return for each cluster the mean of all others, of which nothing is taken away again."""
    before = _running_means(means, weights)
    after = _running_means(means[::-1], weights[::-1])[::-1]
    return np.array([_joined(*pair) for pair in zip(before, after, strict=True)])[:, 0]


def _running_means(means: FloatArray, weights: FloatArray) -> list[tuple[float, float]]:
    """Return for each cluster the mean and the weight of those before it."""
    found = [(math.nan, 0.0)]
    for cluster in zip(means.tolist(), weights.tolist(), strict=True):
        found.append(_joined(found[-1], cluster))
    return found[:-1]


def _joined(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Return the mean and the weight of two groups."""
    if not one[1] > 0 or not other[1] > 0:
        return one if one[1] > 0 else other
    weight = one[1] + other[1]
    return one[0] + (other[0] - one[0]) * (other[1] / weight), weight


def figures_of_missing(is_missing: BoolArray, codes: IntArray, k: int) -> Figures:
    """Return the shares of the missing cells of a column, by cluster; their unit is 1."""
    own = np.bincount(codes, minlength=k).astype(np.float64)
    gaps = np.bincount(codes[is_missing], minlength=k).astype(np.float64)
    return Figures(Column(), own, *_with_rest(gaps, own), 1.0, None)


def _with_rest(sums: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean of each cluster and that of all others; NaN where nothing is observed."""
    others = np.maximum(weights.sum() - weights, 0.0)
    # What is left of the weight of a column without others is rounding.
    others[others <= 1e-12 * weights.sum()] = 0.0
    return (
        observed_means(sums, weights, np.nan),
        observed_means(sums.sum() - sums, others, np.nan),
    )
