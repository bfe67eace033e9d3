"""Boxes of a drawn tree and their layout, computed in points before anything is drawn.

From the leaves up, the two subtrees of a node are placed at the smallest distance at which no two
boxes of the same level meet (the layout of Reingold and Tilford, 1981, for boxes of any width).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from ..._util import FloatArray, format_count, format_short
from ...tree import (
    LEAF,
    THRESHOLD,
    ObliqueCondition,
    TreeNodes,
    branch_condition,
    format_share,
    split_text,
)
from .drawing import FONTSIZE, size_in_points, text_width

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

    def with_room_below(self, width: float, height: float) -> Layout:
        """Return the layout with room for something as wide and high below the tree."""
        wider = max(width - self.width, 0.0)
        return replace(
            self, x=self.x + wider / 2, width=self.width + wider, height=self.height + height
        )


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


# Lengths in units of the font size.
LINE_HEIGHT = 1.4
MARGIN = 0.6
BAR_HEIGHT = 0.45
# The longer side of an image.
_IMAGE_SIZE = 7.0
# Oblique tests are broken into lines of so many characters.
_LINE_WIDTH = 28
# Tint of a weight near 0, between 0 (white) and 1 (the largest weight of the node).
_MIN_TINT = 0.15


@dataclass(frozen=True)
class NodeImage:
    """An image in a box: tints from -1 to 1 for weights, or a center; its size is in points."""

    cells: FloatArray
    is_weights: bool
    limits: tuple[float, float]
    width: float
    height: float


@dataclass(frozen=True)
class Box:
    """The lines and the image of one node, and their size in points."""

    lines: tuple[str, ...]
    n_bold: int
    width: float
    height: float
    image: NodeImage | None


@dataclass(frozen=True)
class Wording:
    """What the boxes of a picture say, and how."""

    features: dict[int, str]
    """Names of the tested features."""
    clusters: dict[int, str]
    max_name_length: int
    """Of levels too."""
    max_terms: int
    details: bool
    """Whether there are numbers of rows, purities, moves and bars."""
    shares: bool = False
    """Whether the terms of oblique tests have their shares."""


def box_of(
    tree: TreeNodes, node: int, fontsize: float, wording: Wording, image: NodeImage | None
) -> Box:
    """Return the box of a node; bold lines come first."""
    n_rows = int(tree.n_node_samples[node])
    share = format_share(n_rows / max(int(tree.n_node_samples[0]), 1))
    lines = [f"{format_count(n_rows, 'row')} · {share}"] if wording.details else []
    if tree.kind[node] == LEAF:
        code = int(tree.leaf_clusters[node])
        bold = [f"cluster {wording.clusters[code]}"]
        purity = float(tree.value[node, 0, code])
        if not wording.details:
            lines = [share]
        elif n_rows > 0 and purity < 1:
            lines.append(f"{format_share(purity)} pure")
    else:
        bold = _test_lines(tree, node, wording, image)
        if wording.details and image is not None and tree.n_node_features[node] > 1:
            lines.insert(0, f"{int(tree.n_node_features[node]):,} weights")
        if wording.details and tree.move is not None:
            cluster = wording.clusters[int(tree.cluster[node])]
            lines += [f"cluster {cluster}", split_text(tree, node)]
    width = max(
        *(text_width(line, fontsize, bold=True) for line in bold),
        *(text_width(line, fontsize, bold=False) for line in lines),
        0.0 if image is None else image.width,
    )
    bar = BAR_HEIGHT if wording.details else 0.0
    height = ((len(bold) + len(lines)) * LINE_HEIGHT + 1.4 * MARGIN + bar) * fontsize
    if image is not None:
        height += image.height + 0.5 * MARGIN * fontsize
    return Box((*bold, *lines), len(bold), width + 2 * MARGIN * fontsize, height, image)


def _test_lines(tree: TreeNodes, node: int, wording: Wording, image: NodeImage | None) -> list[str]:
    """Return the lines of the test of a node."""
    condition = branch_condition(tree, node, True)
    if not isinstance(condition, ObliqueCondition):
        name = wording.features[condition.feature]
        if condition.codes is not None:
            return condition.lines(name, _LINE_WIDTH, wording.max_name_length)
        text = condition.text("\0").replace("<=", "≤").replace(">=", "≥")
        return [text.replace("\0", name)]
    if image is None:
        return condition.lines(
            wording.features.__getitem__, _LINE_WIDTH, wording.max_terms, shares=wording.shares
        )
    # The weights are those in the image.
    bias = ""
    if condition.bias != 0:
        bias = f" {'−' if condition.bias < 0 else '+'} {format_short(abs(condition.bias))}"
    return [f"w·x{bias} < 0"]


def images_of(
    tree: TreeNodes,
    image_shape: tuple[int, int] | None,
    centers: npt.ArrayLike | None,
    fontsize: float,
) -> dict[int, NodeImage]:
    """Return the image of each node that has one."""
    if image_shape is None:
        if centers is not None:
            raise ValueError("centers are drawn as images: image_shape is needed with them.")
        return {}
    height, width = image_shape
    if height < 1 or width < 1 or height * width != tree.n_features:
        raise ValueError(
            f"image_shape={tuple(image_shape)} does not fit to {tree.n_features} features."
        )
    size = _IMAGE_SIZE * fontsize / max(height, width)
    images: dict[int, NodeImage] = {}

    def add(node: int, cells: FloatArray, limits: tuple[float, float] | None) -> None:
        is_weights = limits is None
        shape = cells.reshape(height, width)
        images[node] = NodeImage(shape, is_weights, limits or (-1, 1), width * size, height * size)

    for node in np.flatnonzero(tree.kind != LEAF).tolist():
        cells = np.zeros(tree.n_features)
        condition = branch_condition(tree, node, True)
        if isinstance(condition, ObliqueCondition):
            weights = condition.weights / np.abs(condition.weights).max()
            tint = _MIN_TINT + (1 - _MIN_TINT) * np.abs(weights)
            cells[condition.features] = np.copysign(tint, weights)
        else:
            cells[condition.feature] = 1.0 if tree.kind[node] == THRESHOLD else math.nan
        add(node, cells, None)
    if centers is None:
        return images
    means = np.asarray(centers, dtype=np.float64)
    if means.shape != (len(tree.classes), tree.n_features):
        raise ValueError(
            f"centers must have the shape (n_clusters, n_features) = "
            f"{(len(tree.classes), tree.n_features)}. Got {means.shape} instead."
        )
    limits = (float(np.nanmin(means)), float(np.nanmax(means)))
    for node in tree.leaves.tolist():
        add(node, means[tree.leaf_clusters[node]], limits)
    return images
