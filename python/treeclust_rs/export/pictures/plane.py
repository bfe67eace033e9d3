"""The plane of a picture: its two columns and the ends of its axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from ..._util.arrays import FloatArray
from ...tree.nodes import TreeNodes
from .cells import Cell, Limits

# Share of the range of the points that is left free on each side.
_MARGIN = 0.05


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
        raise ValueError(f"columns names {column!r}, which is no column of this tree.")
    return place


def _listed(tree: TreeNodes, columns: list[int], most: int = 5) -> str:
    names = [tree.feature_name(column) for column in columns[:most]]
    more = len(columns) - len(names)
    if more:
        names.append(f"{more} more")
    return ", ".join(names) if names else "none"


def read_limits(limits: Limits) -> Limits:
    """Return the ends of the axes as floats."""
    try:
        ends = np.asarray(limits, dtype=np.float64)
    except (TypeError, ValueError):
        ends = np.empty(0)
    if ends.shape != (2, 2) or not np.isfinite(ends).all() or (ends[:, 0] >= ends[:, 1]).any():
        raise ValueError(
            "limits must be ((left, right), (low, high)), finite and ascending. "
            f"Got {limits!r} instead."
        )
    (left, right), (low, high) = ends.tolist()
    return (left, right), (low, high)


def window_of(cells: list[Cell], points: FloatArray | None) -> Limits:
    """Return the ends of the axes: all ends of cells and all points, with a margin."""
    found = []
    for axis in range(2):
        spans = [cell.x if axis == 0 else cell.y for cell in cells]
        values = [end for span in spans for end in (span.lower, span.upper) if math.isfinite(end)]
        if points is not None:
            values += [float(points[:, axis].min()), float(points[:, axis].max())]
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        margin = _MARGIN * high - _MARGIN * low
        if points is None:
            margin *= 5  # the width of the outermost cells
        if not margin > 0:
            margin = 0.5 * abs(low) or 0.5
        found.append((low - margin, high + margin))
    return found[0], found[1]
