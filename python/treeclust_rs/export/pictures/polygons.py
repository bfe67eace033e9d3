"""The convex cells that a tree with oblique tests cuts a plane into, and their borders."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..._util import BoolArray, FloatArray
from ...tree import LEAF, OBLIQUE, THRESHOLD, ClusterTree
from .cells import Limits

# Shorter lengths, as shares of the picture, count as 0.
_MIN_LENGTH = 1e-9


class Polygon(NamedTuple):
    """A convex part of the picture that belongs to one leaf; corners in order."""

    leaf: int
    corners: FloatArray


def polygons_of(tree: ClusterTree, columns: tuple[int, int], window: Limits) -> list[Polygon]:
    """Return polygons that cover the picture without overlap, each of one leaf.

    Parameters
    ----------
    tree : ClusterTree
        A tree that tests no other columns.
    columns : (int, int)
        Columns on the horizontal and the vertical axis.
    window : ((float, float), (float, float))
        Ends of the axes.

    Returns
    -------
    list of Polygon
        A leaf that no point of the picture reaches has none.
    """
    (left, right), (low, high) = window
    whole = np.array([[left, low], [right, low], [right, high], [left, high]])
    min_area = _MIN_LENGTH**2 * (right - left) * (high - low)
    found, open_nodes = [], [(0, whole)]
    while open_nodes:
        node, part = open_nodes.pop()
        if len(part) < 3 or _area(part) <= min_area:
            continue
        if tree.kind[node] == LEAF:
            found.append(Polygon(node, part))
            continue
        first = int(tree.children_left[node])
        inside, outside = _sides(tree, node, columns, part)
        open_nodes += [(first, piece) for piece in inside]
        open_nodes += [(first + 1, piece) for piece in outside]
    return found


def _sides(
    tree: ClusterTree, node: int, columns: tuple[int, int], part: FloatArray
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return the pieces of a polygon that go left, and those that go right."""
    normal, offset = np.zeros(2), 0.0
    if tree.kind[node] == OBLIQUE:
        features, weights, offset = tree.oblique_test(node)
        for feature, weight in zip(features.tolist(), weights.tolist(), strict=True):
            normal[columns.index(feature)] = weight
        return [_clip(part, normal, offset)], [_clip(part, -normal, -offset)]
    normal[columns.index(int(tree.feature[node]))] = 1.0
    if tree.kind[node] == THRESHOLD:
        end = float(tree.threshold[node])
        return [_clip(part, normal, -end)], [_clip(part, -normal, end)]
    lower, upper = float(tree.lower[node]), float(tree.upper[node])
    below, above = _clip(part, normal, -lower), _clip(part, -normal, upper)
    between = _clip(_clip(part, -normal, lower), normal, -upper)
    return [between], [below, above]


def _clip(part: FloatArray, normal: FloatArray, offset: float) -> FloatArray:
    """Return the part of a convex polygon where ``normal . x + offset <= 0``."""
    if not len(part):
        return part
    score = part @ normal + offset
    corners = []
    for i in range(len(part)):
        j = (i + 1) % len(part)
        if score[i] <= 0:
            corners.append(part[i])
        if (score[i] < 0 < score[j]) or (score[j] < 0 < score[i]):
            share = score[i] / (score[i] - score[j])
            corners.append(part[i] + share * (part[j] - part[i]))
    return np.array(corners).reshape(-1, 2)


def _area(part: FloatArray) -> float:
    moved = part - part[0]
    following = np.roll(moved, -1, axis=0)
    return abs(float((moved[:, 0] * following[:, 1] - moved[:, 1] * following[:, 0]).sum())) / 2.0


def polygon_borders(
    tree: ClusterTree, polygons: list[Polygon], columns: tuple[int, int], window: Limits
) -> tuple[FloatArray, BoolArray]:
    """Return the borders of leaves, of shape (n, 2, 2), and whether each separates clusters.

    The tree routes a point on either side of an edge.
    """
    ends = np.array(window)
    size = ends[:, 1] - ends[:, 0]
    corners = np.concatenate([(p.corners - ends[:, 0]) / size for p in polygons])
    pieces = []
    for polygon in polygons:
        part = (polygon.corners - ends[:, 0]) / size
        for start, stop in zip(part, np.roll(part, -1, axis=0), strict=True):
            along = stop - start
            length = float(np.sqrt(along @ along))
            if length <= _MIN_LENGTH:
                continue
            along = along / length
            # Corners of neighbours divide the edge.
            shifted = corners - start
            place = shifted @ along
            off = np.abs(shifted @ np.array([-along[1], along[0]]))
            on_edge = (off <= _MIN_LENGTH) & (place > _MIN_LENGTH) & (place < length - _MIN_LENGTH)
            stops = np.unique(np.concatenate([[0.0], place[on_edge], [length]]))
            for a, b in pairwise(stops.tolist()):
                if b - a > _MIN_LENGTH:
                    pieces.append((start + a * along, start + b * along))
    if not pieces:
        return np.empty((0, 2, 2)), np.empty(0, dtype=bool)
    segments = np.array(pieces)
    along = segments[:, 1] - segments[:, 0]
    across = np.column_stack([-along[:, 1], along[:, 0]])
    across *= 1e-6 / np.sqrt((along**2).sum(axis=1))[:, None]
    middle = segments.mean(axis=1)
    within = ((middle > 1e-6) & (middle < 1 - 1e-6)).all(axis=1)
    leaves = []
    for side in (middle - across, middle + across):
        rows = np.zeros((len(side), tree.n_features))
        rows[:, list(columns)] = side * size + ends[:, 0]
        leaves.append(tree.apply(rows))
    is_border = within & (leaves[0] != leaves[1])
    strong = tree.leaf_clusters[leaves[0]] != tree.leaf_clusters[leaves[1]]
    return segments[is_border] * size + ends[:, 0], strong[is_border]
