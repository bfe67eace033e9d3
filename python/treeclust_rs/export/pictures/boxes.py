"""The boxes of a drawn tree: the lines and images of its nodes, and their sizes in points."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..._util.arrays import FloatArray
from ..._util.words import format_count, format_short
from ...tree.conditions import ObliqueCondition
from ...tree.nodes import LEAF, THRESHOLD, TreeNodes
from ...tree.paths import branch_condition
from ...tree.words import format_share, split_text
from .drawing import shorten

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


def box_of(
    tree: TreeNodes,
    node: int,
    fontsize: float,
    max_length: int,
    max_terms: int,
    image: NodeImage | None,
) -> Box:
    """Return the box of a node; bold lines come first."""
    n_rows = int(tree.n_node_samples[node])
    share = format_share(n_rows / max(int(tree.n_node_samples[0]), 1))
    rows = f"{format_count(n_rows, 'row')} · {share}"
    if tree.kind[node] == LEAF:
        code = int(tree.leaf_clusters[node])
        bold = [f"cluster {shorten(tree.cluster_name(code), max_length)}"]
        lines = [rows]
        purity = float(tree.value[node, 0, code])
        if n_rows > 0 and purity < 1:
            lines.append(f"{format_share(purity)} pure")
    else:
        bold = _test_lines(tree, node, max_length, max_terms, image)
        lines = [rows]
        if image is not None and tree.n_node_features[node] > 1:
            lines = [f"{int(tree.n_node_features[node]):,} weights", rows]
        if tree.move is not None:
            cluster = shorten(tree.cluster_name(int(tree.cluster[node])), max_length)
            lines += [f"cluster {cluster}", split_text(tree, node)]
    width = max(
        *(_text_width(line, fontsize, bold=True) for line in bold),
        *(_text_width(line, fontsize, bold=False) for line in lines),
        0.0 if image is None else image.width,
    )
    height = ((len(bold) + len(lines)) * LINE_HEIGHT + 1.4 * MARGIN + BAR_HEIGHT) * fontsize
    if image is not None:
        height += image.height + 0.5 * MARGIN * fontsize
    return Box((*bold, *lines), len(bold), width + 2 * MARGIN * fontsize, height, image)


def _test_lines(
    tree: TreeNodes, node: int, max_length: int, max_terms: int, image: NodeImage | None
) -> list[str]:
    """Return the lines of the test of a node."""
    condition = branch_condition(tree, node, True)
    if not isinstance(condition, ObliqueCondition):
        name = shorten(tree.feature_name(condition.feature), max_length)
        text = condition.text("\0").replace("<=", "≤").replace(">=", "≥")
        return [text.replace("\0", name)]
    if image is None:
        return condition.lines(
            lambda feature: shorten(tree.feature_name(feature), max_length), _LINE_WIDTH, max_terms
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


def _text_width(text: str, fontsize: float, bold: bool) -> float:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    properties = FontProperties(size=fontsize, weight="bold" if bold else "normal")
    width = text_to_path.get_text_width_height_descent(text, properties, False)[0]
    # Drawn at screen resolutions, hinted glyphs are up to 7 % wider than their outlines.
    return 1.07 * float(width)
