"""The plane of a picture, the cells a tree cuts it into, and their borders, exactly.

A path allows a union of ranges in each column, so a leaf's part of the plane is a product of two
such unions: one rectangle, or several outside of intervals. For the borders the plane is divided
into a grid at all ends of ranges; a border separates neighbouring grid cells of different leaves.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._util import BoolArray, FloatArray, IntArray
from ...tree import (
    EVERYTHING,
    MISSING_CELLS,
    OBLIQUE,
    Condition,
    Span,
    TreeNodes,
    walk_leaves,
)

Limits = tuple[tuple[float, float], tuple[float, float]]
"""Ends of the horizontal and of the vertical axis."""


class Cell(NamedTuple):
    """A part of the plane that belongs to one leaf: ranges of values, of codes or missing cells."""

    leaf: int
    x: Span
    y: Span


def cells_of(
    tree: TreeNodes,
    columns: tuple[int, int] = (0, 1),
    missing: tuple[bool, bool] = (False, False),
) -> list[Cell]:
    """Return cells that cover the plane without overlap, each of one leaf.

    Parameters
    ----------
    tree : TreeNodes
        A tree that tests no other columns.
    columns : (int, int), default=(0, 1)
        Columns on the horizontal and the vertical axis.
    missing : (bool, bool), default=(False, False)
        Whether the plane has a place for rows without a value on an axis.

    Returns
    -------
    list of Cell
        Leaves from left to right, each with its cells in ascending order, missing ones last. A leaf
        that no point can reach has none.

    Raises
    ------
    ValueError
        If the tree has oblique tests, whose cells are not rectangles.
    """
    if (tree.kind == OBLIQUE).any():
        raise ValueError("The tree has oblique tests, whose cells are no rectangles.")
    cells = []
    for leaf, _, path in walk_leaves(tree):
        conditions = {
            condition.feature: condition
            for condition in path.conditions()
            if isinstance(condition, Condition)
        }
        across, along = (
            _spans(tree, column, conditions.get(column), of_missing)
            for column, of_missing in zip(columns, missing, strict=True)
        )
        cells += [Cell(leaf, x, y) for x in across for y in along]
    return cells


def _spans(tree: TreeNodes, column: int, condition: Condition | None, missing: bool) -> list[Span]:
    """Return the ranges that a path allows in a column: neighbouring codes are one."""
    spans = [EVERYTHING] if condition is None else condition.spans
    if tree.column(column).has_levels:
        allowed = None if condition is None else condition.codes
        codes = range(len(tree.column(column).levels)) if allowed is None else allowed
        starts = [code for code in codes if code - 1 not in codes]
        stops = [code for code in codes if code + 1 not in codes]
        spans = [Span(start, False, stop, False) for start, stop in zip(starts, stops, strict=True)]
    spans = [span for span in spans if not span.is_empty]
    return (
        [*spans, MISSING_CELLS] if missing and (condition is None or condition.missing) else spans
    )


class Rectangle(NamedTuple):
    """The visible part of a cell; a cell of a single value has no width."""

    leaf: int
    left: float
    right: float
    low: float
    high: float

    @property
    def is_flat(self) -> bool:
        """Whether the rectangle has no width or no height."""
        return self.left == self.right or self.low == self.high

    @property
    def corners(self) -> FloatArray:
        """The corners in order, of shape (4, 2)."""
        (left, right), (low, high) = self[1:3], self[3:]
        return np.array([(left, low), (right, low), (right, high), (left, high)])


def clip(cell: Cell, window: Limits) -> Rectangle | None:
    """Return the part of a cell inside the picture, None if there is none."""
    (left, right), (low, high) = window
    clipped = Rectangle(
        cell.leaf,
        max(cell.x.lower, left),
        min(cell.x.upper, right),
        max(cell.y.lower, low),
        min(cell.y.upper, high),
    )
    inside = clipped.left <= clipped.right and clipped.low <= clipped.high
    # A cell that only touches the edge of the picture is outside; a line within it is inside.
    touches = (clipped.left == clipped.right and cell.x.lower < cell.x.upper) or (
        clipped.low == clipped.high and cell.y.lower < cell.y.upper
    )
    return clipped if inside and not touches else None


@dataclass(frozen=True)
class Borders:
    """Segments along the borders of leaves: axis (0: vertical), place, start and end."""

    axis: IntArray
    place: FloatArray
    start: FloatArray
    end: FloatArray
    strong: BoolArray
    """Whether the segment separates clusters."""

    @property
    def segments(self) -> FloatArray:
        """Both ends of each, of shape (n, 2, 2)."""
        is_vertical = (self.axis == 0)[:, None]
        across = np.column_stack([self.place, self.place])
        along = np.column_stack([self.start, self.end])
        return np.stack(
            [np.where(is_vertical, across, along), np.where(is_vertical, along, across)], axis=2
        )


def borders_of(tree: TreeNodes, drawn: list[Rectangle], window: Limits) -> Borders:
    """Return the borders between rectangles that fill the picture, in the longest segments."""
    (left, right), (low, high) = window
    xs = np.unique([left, right, *(end for r in drawn for end in (r.left, r.right))])
    ys = np.unique([low, high, *(end for r in drawn for end in (r.low, r.high))])
    leaves = np.full((len(xs) - 1, len(ys) - 1), -1, dtype=np.int64)
    for leaf, x0, x1, y0, y1 in drawn:
        i, j = np.searchsorted(xs, (x0, x1)), np.searchsorted(ys, (y0, y1))
        leaves[i[0] : i[1], j[0] : j[1]] = leaf
    found = [
        (axis, *run)
        for axis, (places, along, grid) in enumerate([(xs, ys, leaves), (ys, xs, leaves.T)])
        for run in _runs(tree, places, along, grid)
    ]
    axis, place, start, end, strong = zip(*found, strict=True) if found else ((),) * 5
    return Borders(
        np.array(axis, dtype=np.int64),
        np.array(place, dtype=np.float64),
        np.array(start, dtype=np.float64),
        np.array(end, dtype=np.float64),
        np.array(strong, dtype=bool),
    )


def _runs(
    tree: TreeNodes, places: FloatArray, along: FloatArray, grid: IntArray
) -> list[tuple[float, float, float, bool]]:
    """Return (place, start, end, strong) of the borders across the first axis of the grid."""
    clusters = tree.leaf_clusters[grid]
    # 0: no border, 1: of leaves, 2: of clusters. A segment has one kind.
    kind = (grid[1:] != grid[:-1]).astype(int) + (clusters[1:] != clusters[:-1])
    found = []
    for line, row in zip(places[1:-1], kind, strict=True):
        stops = np.flatnonzero(np.diff(row)) + 1
        for start, stop in zip([0, *stops], [*stops, len(row)], strict=True):
            if row[start]:
                found.append(
                    (float(line), float(along[start]), float(along[stop]), bool(row[start] == 2))
                )
    return found


def read_columns(tree: TreeNodes, columns: Sequence[int | str] | None) -> tuple[int, int]:
    """Return the numbers of the two columns, which must be all that the tree tests."""
    tested = np.unique(tree.feature[tree.feature >= 0]).tolist()
    if tree.oblique_indices is not None:
        tested = np.union1d(tested, tree.oblique_indices).astype(int).tolist()
    if columns is None:
        if tree.n_features == 2:
            return 0, 1
        advice = "There is no plane to draw."
        if tree.n_features > 2:
            advice = (
                f"Name two in columns=, if the tree tests no others (it tests "
                f"{_listed(tree, tested)}), or fit it on two columns."
            )
        raise ValueError(
            f"plot_partition draws trees of 2 columns, and this one has {tree.n_features}. {advice}"
        )
    if isinstance(columns, str) or len(columns) != 2:
        raise ValueError(f"columns must be two numbers or names of columns. Got {columns!r}.")
    first, second = (_column(tree, column) for column in columns)
    if first == second:
        raise ValueError(f"columns must be two different ones. Got {columns!r}.")
    others = [column for column in tested if column not in (first, second)]
    if others:
        raise ValueError(
            f"The tree tests {_listed(tree, others)} too, besides the columns to be drawn: its "
            "cells are not rectangles of this plane."
        )
    return first, second


def _column(tree: TreeNodes, column: int | str) -> int:
    if isinstance(column, str):
        names = tree.feature_names or [tree.feature_name(f) for f in range(tree.n_features)]
        place = names.index(column) if column in names else -1
    else:
        try:
            place = operator.index(column)
        except TypeError:
            place = -1
    if not 0 <= place < tree.n_features:
        raise ValueError(f"columns names {column!r}, which is not a column of this tree.")
    return place


def _listed(tree: TreeNodes, columns: list[int], most: int = 5) -> str:
    names = [tree.feature_name(column) for column in columns[:most]]
    more = len(columns) - len(names)
    if more:
        names.append(f"{more} more")
    return ", ".join(names) if names else "none"
