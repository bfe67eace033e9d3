"""Drawing of a laid out tree: branches, boxes and images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...tree.colors import lighten
from ...tree.nodes import LEAF, TreeNodes
from .boxes import BAR_HEIGHT, LINE_HEIGHT, MARGIN, NodeImage
from .drawing import FONTSIZE, INK, QUIET, size_in_points
from .layout import Layout, scale_to_fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BRANCH = "#b6bcc6"
# Weights below and above 0, and the branches they lead to; dark is the largest of a node.
_NEGATIVE, _POSITIVE = "#2166ac", "#b2182b"
_WEIGHT_COLORS = ("#053061", _NEGATIVE, "#92c5de", "#ffffff", "#f4a582", _POSITIVE, "#67001f")


def fit_axes(ax: Axes, layout: Layout) -> float:
    """Set the limits so that the tree is in the middle, and return its scale, at most 1."""
    width, height = size_in_points(ax)
    scale = scale_to_fit(ax, layout)
    half_width, half_height = width / scale / 2, height / scale / 2
    ax.set_xlim(layout.width / 2 - half_width, layout.width / 2 + half_width)
    ax.set_ylim(layout.height / 2 + half_height, layout.height / 2 - half_height)
    ax.set_aspect("equal", adjustable="datalim")
    ax.axis("off")
    return scale


def draw_branches(ax: Axes, tree: TreeNodes, layout: Layout, scale: float) -> None:
    """Draw the branches, with their answers."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    boxes, fontsize = layout.boxes, layout.fontsize
    total = max(int(tree.n_node_samples[0]), 1)
    curve = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
    for child in range(1, tree.n_nodes):
        parent = int(tree.parent[child])
        x0, y0, x1, y1 = layout.x[parent], layout.y[parent], layout.x[child], layout.y[child]
        if layout.orientation == "down":
            y0, y1 = y0 + boxes[parent].height / 2, y1 - boxes[child].height / 2
            vertices = [(x0, y0), (x0, (y0 + y1) / 2), (x1, (y0 + y1) / 2), (x1, y1)]
        else:
            x0, x1 = x0 + boxes[parent].width / 2, x1 - boxes[child].width / 2
            vertices = [(x0, y0), ((x0 + x1) / 2, y0), ((x0 + x1) / 2, y1), (x1, y1)]
        share = int(tree.n_node_samples[child]) / total
        is_left = child == tree.children_left[parent]
        color = QUIET
        if boxes[parent].image is not None:
            color = _NEGATIVE if is_left else _POSITIVE
        branch = PathPatch(
            Path(vertices, curve),
            facecolor="none",
            edgecolor=_BRANCH,
            linewidth=(0.8 + 4.0 * min(share, 1.0)) * scale * fontsize / FONTSIZE,
            zorder=1,
        )
        ax.add_patch(branch)
        # The curve passes midway between its two ends.
        ax.text(
            (x0 + x1) / 2,
            (y0 + y1) / 2,
            "yes" if is_left else "no",
            fontsize=0.8 * fontsize * scale,
            color=color,
            ha="center",
            va="center",
            zorder=2,
            bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none"},
        )


def draw_boxes(ax: Axes, tree: TreeNodes, layout: Layout, scale: float, colors: list[str]) -> None:
    """Draw the boxes, with their lines, images and bars."""
    from matplotlib.patches import FancyBboxPatch, Rectangle

    fontsize = layout.fontsize
    for node, box in enumerate(layout.boxes):
        is_leaf = tree.kind[node] == LEAF
        if is_leaf:
            color = colors[tree.leaf_clusters[node]]
        else:
            color = QUIET if tree.move is None else colors[tree.cluster[node]]
        left, top = layout.x[node] - box.width / 2, layout.y[node] - box.height / 2
        frame = FancyBboxPatch(
            (left, top),
            box.width,
            box.height,
            boxstyle=f"round,pad=0,rounding_size={0.45 * fontsize}",
            facecolor=lighten(color, 0.78) if is_leaf else "white",
            edgecolor=color,
            linewidth=1.1 * scale * fontsize / FONTSIZE,
            zorder=3,
        )
        ax.add_patch(frame)
        baseline = top + (0.7 * MARGIN + 0.5 * LINE_HEIGHT) * fontsize
        if box.image is not None:
            _draw_image(ax, box.image, layout.x[node], top + 0.9 * MARGIN * fontsize, scale)
            baseline += box.image.height + 0.5 * MARGIN * fontsize
        for n, line in enumerate(box.lines):
            style: dict[str, Any] = {"color": QUIET}
            if n < box.n_bold:
                style = {"color": INK, "fontweight": "bold"}
            ax.text(
                layout.x[node],
                baseline + n * LINE_HEIGHT * fontsize,
                line,
                fontsize=fontsize * scale,
                ha="center",
                va="center",
                zorder=5,
                parse_math=False,
                **style,
            )
        # The bar of reference clusters, along the lower edge.
        margin = MARGIN * fontsize
        start, length = left + margin, box.width - 2 * margin
        for code in np.flatnonzero(tree.value[node, 0]):
            share = float(tree.value[node, 0, code]) * length
            bar = Rectangle(
                (start, top + box.height - (BAR_HEIGHT + 0.6 * MARGIN) * fontsize),
                share,
                BAR_HEIGHT * fontsize,
                facecolor=colors[code],
                edgecolor="none",
                zorder=4,
            )
            ax.add_patch(bar)
            start += share


def _draw_image(ax: Axes, image: NodeImage, center: float, top: float, scale: float) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
    from matplotlib.image import AxesImage

    low, high = image.limits
    left, right = center - image.width / 2, center + image.width / 2
    colors: Colormap = colormaps["gray_r"]
    if image.is_weights:
        colors = LinearSegmentedColormap.from_list("weights", _WEIGHT_COLORS)
        colors = colors.with_extremes(bad=INK)
    picture = AxesImage(
        ax,
        cmap=colors,
        norm=Normalize(low, high if high > low else low + 1.0),
        interpolation="nearest",
        origin="upper",
        extent=(left, right, top + image.height, top),
        zorder=4,
    )
    picture.set_data(image.cells)
    picture.set_clip_path(ax.patch)
    ax.add_image(picture)
    ax.plot(
        [left, right, right, left, left],
        [top, top, top + image.height, top + image.height, top],
        color=_BRANCH,
        linewidth=0.6 * scale,
        zorder=5,
        scalex=False,
        scaley=False,
    )
