"""The layout of a drawn tree, computed in points before anything is drawn.

From the leaves up, the two subtrees of a node are placed at the smallest distance at which no two
boxes of the same level meet (the layout of Reingold and Tilford, 1981, for boxes of any width).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..._util.arrays import FloatArray
from ...tree.nodes import LEAF, TreeNodes
from .boxes import Box
from .drawing import FONTSIZE, size_in_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Orientation = Literal["auto", "down", "right"]

# "auto" draws to the right what would be wider than this (in points) when drawn downwards.
_MAX_DOWN_WIDTH = 900.0

# Lengths in units of the font size.
_GAP = {"down": 1.2, "right": 0.9}
_LEVEL_GAP = {"down": 2.8, "right": 4.4}
_BORDER = 1.0


@dataclass(frozen=True)
class Layout:
    """Centers of the boxes, in points from the upper left corner."""

    boxes: list[Box]
    fontsize: float
    x: FloatArray
    y: FloatArray
    width: float
    height: float
    orientation: Literal["down", "right"]


def choose_layout(
    tree: TreeNodes, boxes: list[Box], orientation: Orientation, fontsize: float, ax: Axes | None
) -> Layout:
    """Return the layout in the given orientation, or in the better one."""
    if orientation != "auto":
        return _place_boxes(tree, boxes, orientation, fontsize)
    down = _place_boxes(tree, boxes, "down", fontsize)
    if ax is None and down.width <= _MAX_DOWN_WIDTH * fontsize / FONTSIZE:
        return down
    right = _place_boxes(tree, boxes, "right", fontsize)
    if ax is None:
        is_better = max(right.width, right.height) < max(down.width, down.height)
    else:
        is_better = scale_to_fit(ax, right) > scale_to_fit(ax, down)
    return right if is_better else down


def _place_boxes(
    tree: TreeNodes, boxes: list[Box], orientation: Literal["down", "right"], fontsize: float
) -> Layout:
    """Place the boxes: within the levels by the tidy layout, and the levels one after the other."""
    widths = np.array([box.width for box in boxes])
    heights = np.array([box.height for box in boxes])
    across_size, along_size = (widths, heights) if orientation == "down" else (heights, widths)
    across = _tidy(tree, across_size, _GAP[orientation] * fontsize)
    across += _BORDER * fontsize - (across - across_size / 2).min()
    across_total = (across + across_size / 2).max() + _BORDER * fontsize

    level_size = np.zeros(tree.max_depth + 1)
    np.maximum.at(level_size, tree.node_depth, along_size)
    steps = level_size + _LEVEL_GAP[orientation] * fontsize
    starts = _BORDER * fontsize + np.concatenate(([0.0], np.cumsum(steps)[:-1]))
    # The boxes of a level start on one line, where the branches to them end.
    along = starts[tree.node_depth] + along_size / 2
    along_total = starts[-1] + level_size[-1] + _BORDER * fontsize
    if orientation == "down":
        return Layout(boxes, fontsize, across, along, across_total, along_total, orientation)
    return Layout(boxes, fontsize, along, across, along_total, across_total, orientation)


def _tidy(tree: TreeNodes, sizes: FloatArray, gap: float) -> FloatArray:
    """Return the places of the nodes within their levels: parents midway between their children.

    In reverse order children come before their parents. The outline of a subtree is, per level
    below its root, the extent of its boxes to both sides of the root.
    """
    offset = np.zeros(tree.n_nodes)
    outlines: dict[int, tuple[FloatArray, FloatArray]] = {}
    for node in range(tree.n_nodes - 1, -1, -1):
        half = np.array([sizes[node] / 2])
        if tree.kind[node] == LEAF:
            outlines[node] = (-half, half)
            continue
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        left_low, left_high = outlines.pop(left)
        right_low, right_high = outlines.pop(right)
        common = min(len(left_high), len(right_low))
        distance = (left_high[:common] - right_low[:common]).max() + gap
        offset[left], offset[right] = -distance / 2, distance / 2
        deeper = left_low if len(left_low) > common else right_low
        low, high = np.full(len(deeper), np.inf), np.full(len(deeper), -np.inf)
        for child_low, child_high, shift in (
            (left_low, left_high, -distance / 2),
            (right_low, right_high, distance / 2),
        ):
            n_levels = len(child_low)
            low[:n_levels] = np.minimum(low[:n_levels], child_low + shift)
            high[:n_levels] = np.maximum(high[:n_levels], child_high + shift)
        outlines[node] = (np.concatenate((-half, low)), np.concatenate((half, high)))
    for node in range(1, tree.n_nodes):
        offset[node] += offset[tree.parent[node]]
    return offset


def scale_to_fit(ax: Axes, layout: Layout) -> float:
    """Return the factor that makes the layout fit into the axes, at most 1."""
    width, height = size_in_points(ax)
    # A figure of the layout's own size may be smaller by rounding: half a point is ignored.
    return min(1.0, (width + 0.5) / layout.width, (height + 0.5) / layout.height)
