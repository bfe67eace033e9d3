"""What rows add to the page: histograms of the nodes, and what sets the clusters apart."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple, NotRequired, TypedDict

import numpy as np
from scipy.sparse import issparse

from ... import _engine
from ..._data import Units, WeightedRows, column_of
from ..._util import FloatArray, IntArray, format_count
from ...tree import (
    INTERVAL,
    LEAF,
    LEVELS,
    MISSING,
    OBLIQUE,
    THRESHOLD,
    ClusterTree,
    ObliqueCondition,
    Span,
    are_of_fit,
    branch_condition,
    format_share,
    read_rows,
)
from ...tree.columns import NUMBERS, Column
from ..contrasts import (
    MAX_CONTRASTS,
    TIME_UNITS,
    Figures,
    figures_of,
    figures_of_missing,
    strongest,
)

_N_BARS = 20
# Up to so many distinct values have a bar each.
_MAX_DISTINCT = 24
# Levels on either side of a test; the others are one bar.
_MAX_LEVELS = 8


class _Edge(NamedTuple):
    """A bound between two bars."""

    value: float
    is_below: bool
    """Whether the value itself belongs to the bar below."""

    @property
    def key(self) -> float:
        """The largest number of the bar below."""
        return self.value if self.is_below else math.nextafter(self.value, -math.inf)


class Bar(TypedDict):
    """A bar of a histogram."""

    text: str
    side: int
    """0: its rows go left."""
    counts: list[list[int]]
    """Clusters, by code, each with its rows."""
    missing: NotRequired[bool]


class Histogram(TypedDict):
    """The tested column of a node."""

    bars: list[Bar]
    about: str
    ends: list[str]
    """Least and largest value; empty texts of levels."""


class PageRows:
    """The rows of the page: read, and routed through the tree."""

    def __init__(
        self,
        tree: ClusterTree,
        X: Any,
        scale: FloatArray | None = None,
        labels: Any = None,
        *,
        name: str = "to_html",
        names_given: bool = False,
    ) -> None:
        if issparse(X):
            raise TypeError("to_html takes dense rows: give X.toarray(), or leave X out.")
        table = read_rows(tree, X, estimator_name=name, names_given=names_given)
        self._tree, self._table = tree, table
        self._columns: dict[int, FloatArray] = {}
        # In the order of the leaves the rows of a node are neighbours.
        place = np.zeros(tree.n_nodes, dtype=np.int64)
        place[tree.leaves] = np.arange(tree.n_leaves)
        leaves = tree.apply(table.data)
        self._order = np.argsort(place[leaves], kind="stable")
        self._clusters = tree.leaf_clusters[leaves]
        self.are_of_fit = are_of_fit(tree, leaves, labels)
        self._codes = self._clusters[self._order]
        threads = _engine.Threads(1)
        units = Units.of(table, None, "standard" if scale is None else None, threads)
        units = units if scale is None else Units(units.shift, scale)
        self._weighted = WeightedRows(table, None, units, threads)
        self._slices = self._rows_of_nodes(place, place[leaves])

    def _rows_of_nodes(self, place: IntArray, places_of_rows: IntArray) -> list[slice]:
        """Return the rows of each node, given the place of each leaf from the left."""
        tree = self._tree
        own = np.bincount(places_of_rows, minlength=tree.n_leaves)
        starts = np.concatenate([[0], np.cumsum(own)])
        first, last = place.copy(), place.copy()
        for node in range(tree.n_nodes - 1, -1, -1):
            left = int(tree.children_left[node])
            if left >= 0:
                first[node], last[node] = first[left], last[left + 1]
        ends = zip(starts[first].tolist(), starts[last + 1].tolist(), strict=True)
        return [slice(start, stop) for start, stop in ends]

    def _column(self, feature: int) -> FloatArray:
        """Return a column in the order of the leaves: codes of levels, NaN where missing."""
        if feature not in self._columns:
            cells = column_of(self._table, feature).astype(np.float64)
            self._columns[feature] = cells[self._order]
        return self._columns[feature]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._table.n_samples

    def median_text(self, feature: int) -> str:
        """Return the median of a column of numbers; "" if all cells are missing."""
        values = self._column(feature)
        values = values[~np.isnan(values)]
        if not len(values):
            return ""
        return _median_text(values, _step(values), self._tree.column(feature))

    # ---- histograms -----------------------------------------------------------------------

    def histogram(self, node: int) -> Histogram | None:
        """Return the histogram of a node's tested column by cluster; None at a leaf."""
        tree, rows = self._tree, self._slices[node]
        kind = int(tree.kind[node])
        if kind == LEAF or rows.start == rows.stop:
            return None
        codes = self._codes[rows]
        if kind == OBLIQUE:
            condition = branch_condition(tree, node, True)
            assert isinstance(condition, ObliqueCondition), "an oblique node"
            values = np.asarray(condition.score(lambda feature: self._column(feature)[rows]))
            name, column = "sum", NUMBERS
        else:
            feature = int(tree.feature[node])
            values, column = self._column(feature)[rows], tree.column(feature)
            name = tree.feature_name(feature)
        is_missing = np.isnan(values)
        known, ends = values[~is_missing], ["", ""]
        if column.has_levels:
            bars = self._level_bars(node, known, codes[~is_missing], column)
        else:
            bars = self._number_bars(node, known, codes[~is_missing], name, column)
            if len(known):
                step = _step(known)
                ends = [_text(float(v), step, column) for v in (known.min(), known.max())]
        if is_missing.any() and tree.missing_go_to_left is not None:
            left = bool(tree.missing_go_to_left[node])
            gap = _bar("missing", not left, self._counts(codes[is_missing]))
            gap["missing"] = True
            bars = [gap, *bars] if left else [*bars, gap]
        about = f"{name} of {format_count(len(values), 'row')}"
        if len(known) and not column.has_levels:
            about += f", median {_median_text(known, _step(known), column)}"
        return {"bars": bars, "about": about, "ends": ends}

    def _counts(self, codes: IntArray) -> IntArray:
        return np.bincount(codes, minlength=len(self._tree.classes))

    def _level_bars(
        self, node: int, values: FloatArray, codes: IntArray, column: Column
    ) -> list[Bar]:
        """Return bars of levels: those that go left first, on either side by their rows."""
        tree, k = self._tree, len(self._tree.classes)
        left = set(tree.level_test(node).tolist()) if tree.kind[node] == LEVELS else set()
        at = values.astype(np.int64) * k + codes
        counts = np.bincount(at, minlength=len(column.levels) * k).reshape(-1, k)
        bars = []
        for side in (0, 1):
            own = [code for code in range(len(column.levels)) if (code in left) == (side == 0)]
            own = [code for code in own if counts[code].any()]
            own.sort(key=lambda code: (-counts[code].sum(), code))
            n_shown = len(own) if len(own) <= _MAX_LEVELS + 1 else _MAX_LEVELS
            bars += [_bar(column.level_text(code), side, counts[code]) for code in own[:n_shown]]
            if n_shown < len(own):
                rest = format_count(len(own) - n_shown, "more level")
                bars.append(_bar(rest, side, counts[own[n_shown:]].sum(axis=0)))
        return bars

    def _number_bars(
        self, node: int, values: FloatArray, codes: IntArray, name: str, column: Column
    ) -> list[Bar]:
        """Return bars of numbers or times: of single values if there are few, else of ranges."""
        if not len(values):
            return []
        tree, kind, k = self._tree, int(self._tree.kind[node]), len(self._tree.classes)
        cuts: list[_Edge] = []
        sides = [1]
        if kind == THRESHOLD:
            cuts, sides = [_Edge(float(tree.threshold[node]), True)], [0, 1]
        elif kind == INTERVAL:
            ends = float(tree.lower[node]), float(tree.upper[node])
            cuts, sides = [_Edge(ends[0], False), _Edge(ends[1], True)], [1, 0, 1]
        elif kind == OBLIQUE:
            cuts, sides = [_Edge(0.0, False)], [0, 1]
        else:
            assert kind == MISSING, "a test of numbers"
        distinct = np.unique(values)
        if len(distinct) <= _MAX_DISTINCT:
            spans = [Span(value, False, value, False) for value in distinct.tolist()]
            place = np.searchsorted(distinct, values)
        else:
            edges = _edges(values, cuts, column)
            place = np.searchsorted([edge.key for edge in edges], values, side="left")
            bounds = [_Edge(-math.inf, False), *edges, _Edge(math.inf, True)]
            spans = [
                Span(a.value, a.is_below, b.value, not b.is_below) for a, b in pairwise(bounds)
            ]
        counts = np.bincount(place * k + codes, minlength=len(spans) * k).reshape(-1, k)
        bars = []
        for span, own in zip(spans, counts, strict=True):
            # Of an open end the side is that of the other one.
            inside = span.upper if math.isfinite(span.upper) else math.inf
            key = _Edge(inside, not span.upper_strict).key
            side = sides[int(np.searchsorted([cut.key for cut in cuts], key, side="left"))]
            bars.append(_bar(span.text(name, column), side, own))
        return bars

    # ---- contrasts ------------------------------------------------------------------------

    def contrasts(self) -> list[list[list[str]]]:
        """Return by cluster the columns that set it apart, the strongest first.

        Each with its name and direction, its mean or share in the cluster, and that in the rest.
        """
        tree, k = self._tree, len(self._tree.classes)
        found: list[list[tuple[float, int, tuple[str, Figures]]]] = [[] for _ in range(k)]
        for feature in range(tree.n_features):
            column, name = tree.column(feature), tree.feature_name(feature)
            is_missing = np.isnan(column_of(self._table, feature).astype(np.float64))
            gaps = figures_of_missing(is_missing, self._clusters, k)
            parts = [(f"{name} is missing", gaps)]
            with np.errstate(over="ignore", invalid="ignore"):  # of numbers near the largest float
                for level, figures in figures_of(self._weighted, feature, self._clusters, k):
                    words = name
                    if level is not None and column.kind != "flag":
                        words += f" = {column.level_text(column.levels.index(level))}"
                    parts.append((words, figures))
            for part in parts:
                for code, contrast in enumerate(part[1].contrasts.tolist()):
                    found[code].append((contrast, feature, part))
        return [
            [self._contrast(code, *entry) for entry in strongest(own)[:MAX_CONTRASTS]]
            for code, own in enumerate(found)
        ]

    def _contrast(
        self, code: int, amount: float, feature: int, part: tuple[str, Figures]
    ) -> list[str]:
        words, figures = part
        pair = float(figures.typical[code]), float(figures.rest[code])
        if figures.median is None:
            return [words, *map(format_share, pair)]
        values = self._column(feature)
        step = _step(values[~np.isnan(values)])
        here, rest = (_text(mean, step, self._tree.column(feature)) for mean in pair)
        return [f"{words} {'↑' if amount > 0 else '↓'}", f"mean {here}", rest]


def _bar(text: str, side: int, counts: IntArray) -> Bar:
    """Return a bar: its text, its side (0 left) and its rows by cluster."""
    codes = np.flatnonzero(counts).tolist()
    return {"text": text, "side": int(side), "counts": [[c, int(counts[c])] for c in codes]}


def _bulk(values: FloatArray) -> tuple[float, float]:
    """Return the ends of the values without the outer hundredths, unless those are all there is."""
    low, high = np.quantile(values, [0.01, 0.99], method="nearest").tolist()
    return (low, high) if low < high else (float(values.min()), float(values.max()))


def _step(values: FloatArray) -> float:
    """Return the width of a bar, by which numbers are rounded; 0 if all values are equal."""
    low, high = _bulk(values)
    return high / _N_BARS - low / _N_BARS


def _rounded(value: float, step: float, column: Column) -> float:
    """Return a value with the digits that tell steps apart, times by whole units."""
    if step <= 0 or not math.isfinite(step):
        return value
    if not column.is_time:
        try:
            return float(round(value, 1 - math.floor(math.log10(step))))
        except OverflowError:  # beyond the largest float
            return value
    unit = next((unit for unit in TIME_UNITS if unit <= step), 1)
    return float(round(value / unit) * unit)


def _text(value: float, step: float, column: Column) -> str:
    return column.value_text(_rounded(value, step, column))


def _median_text(values: FloatArray, step: float, column: Column) -> str:
    return _text(float(np.median(values)), step, column) if len(values) else "none"


def _edges(values: FloatArray, cuts: list[_Edge], column: Column) -> list[_Edge]:
    """Return the bounds between bars, ascending: the cuts, and round numbers between them."""
    bounds = sorted((*_bulk(values), *(cut.value for cut in cuts)))
    low, high = bounds[0], bounds[-1]
    step = high / _N_BARS - low / _N_BARS
    edges: list[_Edge] = []
    bounds = [low, *(cut.value for cut in cuts), high]
    for place, (start, stop) in enumerate(pairwise(bounds)):
        n_bars = max(round(stop / step - start / step), 1) if step > 0 else 1
        for number in range(1, n_bars):
            value = _rounded(start + number * (stop / n_bars - start / n_bars), step, column)
            if start < value < stop and (not edges or edges[-1].value < value):
                edges.append(_Edge(value, True))
        if place < len(cuts):
            edges.append(cuts[place])
    return edges
