"""The walk of a tree that its expressions share: those of polars and narwhals, and SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from ..tree import INTERVAL, LEAF, LEVELS, MISSING, OBLIQUE, ClusterTree
from ..tree.columns import Column

# Expressions of polars or narwhals, or `Sql`: what is compared, added, multiplied, joined by & | ~.
Cells = Any
Test = Any
Value = TypeVar("Value")


class Language(ABC, Generic[Value]):
    """How a language writes columns, tests and choices.

    Tests may be null where a cell is missing, and do not hold there; ``~`` takes them so.
    """

    names: Sequence[str] | None

    def name(self, feature: int) -> str:
        """Return the name of a column; without names they are x0, x1, ..."""
        return f"x{feature}" if self.names is None else self.names[feature]

    @abstractmethod
    def cells(self, feature: int, column: Column) -> Cells:
        """Return a column as the other methods take it; of numbers as 64-bit floats."""

    @abstractmethod
    def label(self, label: int | str) -> Value:
        """Return the label of a cluster."""

    @abstractmethod
    def is_missing(self, cells: Cells, column: Column) -> Test:
        """Return whether cells are null or NaN; never null."""

    @abstractmethod
    def is_in(self, cells: Cells, column: Column, levels: list[str]) -> Test:
        """Return whether cells are one of some levels, maybe of none."""

    @abstractmethod
    def at_most(self, cells: Cells, column: Column, time: float) -> Test:
        """Return whether times are at most one in microseconds."""

    @abstractmethod
    def at_least(self, cells: Cells, column: Column, time: float) -> Test:
        """Return whether times are at least one in microseconds."""

    @abstractmethod
    def choose(self, test: Test, left: Value, right: Value) -> Value:
        """Return `left` where a test holds, else `right`."""

    @abstractmethod
    def unless(self, tests: list[Test], value: Value) -> Value:
        """Return null where one of the tests, of which none is null, holds, else `value`."""


_WRITTEN_FLAGS = {"false": ("false", "0", "0.0"), "true": ("true", "1", "1.0")}


def written(column: Column, levels: Sequence[str]) -> list[str]:
    """Return the texts of some levels: flags, in small letters, may come as numbers."""
    if column.kind != "flag":
        return list(levels)
    return [text for level in levels for text in _WRITTEN_FLAGS[level]]


def tree_expression(tree: ClusterTree, language: Language[Value]) -> Value:
    """Return the label of a row's cluster in a language."""
    # Children come after their parents: backwards, both children are done before their parent.
    done: dict[int, Value] = {}
    columns: dict[int, Cells] = {}

    def cells(feature: int) -> Cells:
        if feature not in columns:
            columns[feature] = language.cells(feature, tree.column(feature))
        return columns[feature]

    for node in range(tree.n_nodes - 1, -1, -1):
        if tree.kind[node] == LEAF:
            done[node] = language.label(tree.classes[tree.leaf_clusters[node]])
            continue
        if tree.kind[node] == OBLIQUE:
            # Term by term, as in the core: another order of additions has other last bits.
            features, weights, score = tree.oblique_test(node)
            for feature, weight in zip(features.tolist(), weights.tolist(), strict=True):
                score = score + weight * cells(feature)
            test = score < 0.0
        else:
            test = _test(tree, node, language, cells(int(tree.feature[node])))
        left = int(tree.children_left[node])
        done[node] = language.choose(test, done.pop(left), done.pop(left + 1))
    if tree.missing_go_to_left is not None:
        return done[0]
    missing = [language.is_missing(columns[f], tree.column(f)) for f in sorted(columns)]
    return language.unless(missing, done[0]) if missing else done[0]


def _test(tree: ClusterTree, node: int, language: Language[Value], cells: Cells) -> Test:
    """Return whether rows go left at a node; null, for right, only where the cell is missing."""
    kind, column = int(tree.kind[node]), tree.column(int(tree.feature[node]))
    missing_left = tree.missing_go_to_left is not None and bool(tree.missing_go_to_left[node])
    if column.has_levels:
        left = set(tree.level_test(node).tolist()) if kind == LEVELS else set()
        # A level that the fit did not have is in neither list.
        listed = [
            level for code, level in enumerate(column.levels) if (code in left) != missing_left
        ]
        found = language.is_in(cells, column, listed)
        return ~found if missing_left else found
    if kind == MISSING:
        return language.is_missing(cells, column)
    if kind == INTERVAL:
        lower, upper = float(tree.lower[node]), float(tree.upper[node])
        if column.is_time:
            lowest = language.at_least(cells, column, lower)
            test = lowest & language.at_most(cells, column, upper)
        else:
            test = (cells >= lower) & (cells <= upper)
    else:
        threshold = float(tree.threshold[node])
        is_time = column.is_time
        test = language.at_most(cells, column, threshold) if is_time else cells <= threshold
    return language.is_missing(cells, column) | test if missing_left else test


class CellLabels(NamedTuple):
    """Cells, one bin of every feature each, and their labels."""

    names: Sequence[str] | None
    """Of all columns."""
    features: Sequence[int]
    cuts: Sequence[Sequence[float]]
    """Of each of these features, ascending: a bin is ``lower < x <= upper``."""
    labels: Sequence[int | str]
    """Of every cell, with the bin of the last feature running fastest."""


def cells_expression(table: CellLabels, language: Language[Value]) -> Value:
    """Return the label of a row's cell in a language; null where a cell of a feature is missing."""
    numbers = Column()
    columns = [language.cells(feature, numbers) for feature in table.features]

    def part(place: int, labels: Sequence[int | str]) -> Value:
        """Return the label of a row that is of these cells by the features before `place`."""
        if len(set(labels)) == 1:
            return language.label(labels[0])
        cuts = table.cuts[place]
        size = len(labels) // (len(cuts) + 1)
        value = part(place + 1, labels[len(cuts) * size :])
        for number in range(len(cuts) - 1, -1, -1):
            own = part(place + 1, labels[number * size : (number + 1) * size])
            value = language.choose(columns[place] <= cuts[number], own, value)
        return value

    missing = [language.is_missing(cells, numbers) for cells in columns]
    value = part(0, table.labels)
    return language.unless(missing, value) if missing else value
