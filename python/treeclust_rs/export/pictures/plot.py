"""A picture of the tree with matplotlib, which is imported only when a picture is drawn.

Sizes and positions are computed in points before anything is drawn: the boxes from the text they
hold, then, from the leaves up, the smallest distance between the two subtrees of a node at which no
two boxes of the same level meet (the layout of Reingold and Tilford, 1981, for boxes of any width).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ..._util.arrays import FloatArray
from ..._util.words import format_count, format_short
from ...tree.cluster_tree import ClusterTree, HasTree, as_tree
from ...tree.colors import cluster_colors, lighten
from ...tree.conditions import ObliqueCondition
from ...tree.nodes import LEAF, THRESHOLD
from ...tree.paths import branch_condition
from ...tree.words import MAX_TERMS, format_share, split_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_tree"]

Orientation = Literal["auto", "down", "right"]

_MAX_LEAVES = 300
# "auto" draws to the right what would be wider than this (in points) when drawn downwards.
_MAX_DOWN_WIDTH = 900.0

# Lengths in units of the font size.
_LINE_HEIGHT = 1.4
_MARGIN = 0.6
_BAR_HEIGHT = 0.45
_GAP = {"down": 1.2, "right": 0.9}
_LEVEL_GAP = {"down": 2.8, "right": 4.4}
_BORDER = 1.0
# The longer side of an image.
_IMAGE_SIZE = 7.0
# Oblique tests are broken into lines of so many characters.
_LINE_WIDTH = 28

INK = "#2b2f36"
QUIET = "#6b7280"
_BRANCH = "#b6bcc6"
# Weights below and above 0, and the branches they lead to; dark is the largest of a node.
_NEGATIVE, _POSITIVE = "#2166ac", "#b2182b"
_WEIGHT_COLORS = ("#053061", _NEGATIVE, "#92c5de", "#ffffff", "#f4a582", _POSITIVE, "#67001f")
# Share of the way from white to the darkest colour that the smallest weight goes.
_FAINTEST = 0.15


@dataclass(frozen=True)
class _Box:
    """What one node shows, and how much room it takes, in points."""

    lines: tuple[str, ...]
    n_bold: int
    width: float
    height: float
    image: _Image | None


@dataclass(frozen=True)
class _Image:
    """A picture in a box: tints from -1 to 1 for weights, or a center; its size is in points."""

    cells: FloatArray
    is_weights: bool
    limits: tuple[float, float]
    width: float
    height: float


@dataclass(frozen=True)
class _Layout:
    """Centers of the boxes, in points from the upper left corner."""

    x: np.ndarray
    y: np.ndarray
    width: float
    height: float
    orientation: Literal["down", "right"]


def plot_tree(
    tree: ClusterTree | HasTree,
    ax: Axes | None = None,
    *,
    orientation: Orientation = "auto",
    fontsize: float = 9.0,
    max_name_length: int = 24,
    colors: list[str] | None = None,
    title: str | None = None,
    max_terms: int = MAX_TERMS,
    image_shape: tuple[int, int] | None = None,
    centers: npt.ArrayLike | None = None,
) -> Axes:
    """Draw the tree: tests in white boxes, leaves in the colour of their cluster.

    Where its test holds a node goes on to the left (or, drawn to the right, upwards), on the branch
    marked "yes". Branches are the thicker the more rows take them. The bar in a box shows from
    which reference clusters its rows come. In a tree with moves tests are framed in the colour of
    the cluster the node had before its split, which is written below with the move and its gain;
    the bar shows in which clusters its rows end.

    Of an oblique test the largest weights are written, with three digits. Where the features are
    the pixels of images, `image_shape` draws the weights instead: blue pixels have a negative
    weight and take an image that is bright there to the left ("yes"), red ones have a positive
    weight and take it to the right ("no"). The darkest pixel has the node's largest weight, white
    ones have none. A threshold node shows its pixel in red, an interval node in black.

    Parameters
    ----------
    tree : ClusterTree or fitted estimator
        The tree, of at most 300 leaves.
    ax : matplotlib Axes, default=None
        Where to draw; the text is made smaller where the tree would not fit. None makes a figure of
        the size that the tree needs.
    orientation : {"auto", "down", "right"}, default="auto"
        Where the tree grows to. "auto" draws to the right where that makes a wide picture smaller,
        or where the text can be larger in the given axes.
    fontsize : float, default=9.0
        Size of the text in points; the largest size where `ax` is given.
    max_name_length : int, default=24
        Feature names and cluster labels longer than this are shortened in the middle.
    colors : list of str, default=None
        One colour ``#rrggbb`` per cluster.
    title : str, default=None
        Title of the picture.
    max_terms : int, default=3
        Number of weights of an oblique test that are written where it has at least two more.
    image_shape : (int, int), default=None
        Height and width of the images whose pixels, row by row, are the features.
    centers : array-like of shape (n_clusters, n_features), default=None
        With `image_shape`: an image for each cluster, shown in its leaves, dark where it is large.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If the tree has more than 300 leaves, or a parameter has no such value.

    Examples
    --------
    >>> plot_tree(model).figure.savefig("tree.png", dpi=150)  # doctest: +SKIP
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Drawing a tree needs matplotlib: pip install treeclust_rs[plot]."
        ) from error

    tree = as_tree(tree)
    if orientation not in ("auto", "down", "right"):
        raise ValueError(
            f"orientation must be 'auto', 'down' or 'right'. Got {orientation!r} instead."
        )
    if tree.n_leaves > _MAX_LEAVES:
        raise ValueError(
            f"A tree of {tree.n_leaves:,} leaves is too large for a picture (at most "
            f"{_MAX_LEAVES}). Draw tree.truncate(m), or print the tree."
        )
    n_clusters = len(tree.classes)
    if colors is None:
        colors = cluster_colors(n_clusters)
    elif len(colors) != n_clusters:
        raise ValueError(f"There are {len(colors)} colors for {n_clusters} clusters.")

    if max_terms < 1:
        raise ValueError(f"max_terms must be at least 1. Got {max_terms} instead.")
    images = _images(tree, image_shape, centers, fontsize)
    boxes = [
        _box(tree, node, fontsize, max_name_length, max_terms, images.get(node))
        for node in range(tree.n_nodes)
    ]
    layout = _choose_layout(tree, boxes, orientation, fontsize, ax)
    if ax is None:
        title_height = 0.0 if title is None else 2.5 * fontsize
        size = (layout.width / 72, (layout.height + title_height) / 72)
        figure = plt.figure(figsize=size)
        top = layout.height / (layout.height + title_height)
        ax = figure.add_axes((0.0, 0.0, 1.0, top))
    scale = _fit(ax, layout)
    _draw_branches(ax, tree, boxes, layout, fontsize, scale)
    _draw_boxes(ax, tree, boxes, layout, fontsize, scale, colors)
    if title is not None:
        ax.set_title(title, fontsize=1.2 * fontsize, color=INK, parse_math=False)
    return ax


# ---- boxes --------------------------------------------------------------------------------


def _box(
    tree: ClusterTree,
    node: int,
    fontsize: float,
    max_length: int,
    max_terms: int,
    image: _Image | None,
) -> _Box:
    """Write the lines of a node, the bold ones first."""
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
    height = ((len(bold) + len(lines)) * _LINE_HEIGHT + 1.4 * _MARGIN + _BAR_HEIGHT) * fontsize
    if image is not None:
        height += image.height + 0.5 * _MARGIN * fontsize
    return _Box((*bold, *lines), len(bold), width + 2 * _MARGIN * fontsize, height, image)


def _test_lines(
    tree: ClusterTree, node: int, max_length: int, max_terms: int, image: _Image | None
) -> list[str]:
    """Write the test of a node."""
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


def _images(
    tree: ClusterTree,
    image_shape: tuple[int, int] | None,
    centers: npt.ArrayLike | None,
    fontsize: float,
) -> dict[int, _Image]:
    """Give the image of each node that has one."""
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
    images: dict[int, _Image] = {}

    def add(node: int, cells: FloatArray, limits: tuple[float, float] | None) -> None:
        is_weights = limits is None
        shape = cells.reshape(height, width)
        images[node] = _Image(shape, is_weights, limits or (-1, 1), width * size, height * size)

    for node in np.flatnonzero(tree.kind != LEAF).tolist():
        cells = np.zeros(tree.n_features)
        condition = branch_condition(tree, node, True)
        if isinstance(condition, ObliqueCondition):
            weights = condition.weights / np.abs(condition.weights).max()
            tint = _FAINTEST + (1 - _FAINTEST) * np.abs(weights)
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


def shorten(text: str, max_length: int) -> str:
    if len(text) <= max_length:
        return text
    n_kept = max(max_length - 1, 2)
    n_front = (2 * n_kept + 2) // 3
    return f"{text[:n_front]}…{text[len(text) - (n_kept - n_front) :]}"


def _text_width(text: str, fontsize: float, bold: bool) -> float:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    properties = FontProperties(size=fontsize, weight="bold" if bold else "normal")
    width = text_to_path.get_text_width_height_descent(text, properties, False)[0]
    # Drawn at screen resolutions, hinted glyphs are up to 7 % wider than their outlines.
    return 1.07 * float(width)


# ---- layout -------------------------------------------------------------------------------


def _choose_layout(
    tree: ClusterTree,
    boxes: list[_Box],
    orientation: Orientation,
    fontsize: float,
    ax: Axes | None,
) -> _Layout:
    if orientation != "auto":
        return _lay_out(tree, boxes, orientation, fontsize)
    down = _lay_out(tree, boxes, "down", fontsize)
    if ax is None and down.width <= _MAX_DOWN_WIDTH * fontsize / 9.0:
        return down
    right = _lay_out(tree, boxes, "right", fontsize)
    if ax is None:
        is_better = max(right.width, right.height) < max(down.width, down.height)
    else:
        is_better = _scale(ax, right) > _scale(ax, down)
    return right if is_better else down


def _lay_out(
    tree: ClusterTree, boxes: list[_Box], orientation: Literal["down", "right"], fontsize: float
) -> _Layout:
    """Place the boxes: `across` the levels by the tidy layout, `along` them level by level."""
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
    # Boxes begin where their level does, so that branches leave and enter on common lines.
    along = starts[tree.node_depth] + along_size / 2
    along_total = starts[-1] + level_size[-1] + _BORDER * fontsize
    if orientation == "down":
        return _Layout(across, along, across_total, along_total, orientation)
    return _Layout(along, across, along_total, across_total, orientation)


def _tidy(tree: ClusterTree, sizes: np.ndarray, gap: float) -> np.ndarray:
    """Place the nodes across the levels: parents midway between their children.

    Going backwards through the nodes, children are done before their parents. The outline of a
    subtree holds, per level below its root, how far its boxes reach to both sides of the root.
    """
    offset = np.zeros(tree.n_nodes)
    outlines: dict[int, tuple[np.ndarray, np.ndarray]] = {}
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
    position = offset
    for node in range(1, tree.n_nodes):
        position[node] += position[tree.parent[node]]
    return position


# ---- drawing ------------------------------------------------------------------------------


def _size_in_points(ax: Axes) -> tuple[float, float]:
    figure = ax.get_figure()
    assert figure is not None, "axes always belong to a figure"
    pixels = ax.get_window_extent()
    return pixels.width * 72.0 / figure.dpi, pixels.height * 72.0 / figure.dpi


def _scale(ax: Axes, layout: _Layout) -> float:
    """Give the factor that makes the layout fit into the axes, at most 1."""
    width, height = _size_in_points(ax)
    # The figure made for the layout has its size up to rounding; do not shrink the text for that.
    return min(1.0, (width + 0.5) / layout.width, (height + 0.5) / layout.height)


def _fit(ax: Axes, layout: _Layout) -> float:
    """Set the limits so that the tree stands in the middle, at most at its own size."""
    width, height = _size_in_points(ax)
    scale = _scale(ax, layout)
    half_width, half_height = width / scale / 2, height / scale / 2
    ax.set_xlim(layout.width / 2 - half_width, layout.width / 2 + half_width)
    ax.set_ylim(layout.height / 2 + half_height, layout.height / 2 - half_height)
    ax.set_aspect("equal", adjustable="datalim")
    ax.axis("off")
    return scale


def _draw_branches(
    ax: Axes,
    tree: ClusterTree,
    boxes: list[_Box],
    layout: _Layout,
    fontsize: float,
    scale: float,
) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

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
            linewidth=(0.8 + 4.0 * min(share, 1.0)) * scale * fontsize / 9.0,
            zorder=1,
        )
        ax.add_patch(branch)
        # A cubic with these handles is at its middle halfway between the two ends.
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


def _draw_boxes(
    ax: Axes,
    tree: ClusterTree,
    boxes: list[_Box],
    layout: _Layout,
    fontsize: float,
    scale: float,
    colors: list[str],
) -> None:
    from matplotlib.patches import FancyBboxPatch, Rectangle

    for node, box in enumerate(boxes):
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
            linewidth=1.1 * scale * fontsize / 9.0,
            zorder=3,
        )
        ax.add_patch(frame)
        baseline = top + (0.7 * _MARGIN + 0.5 * _LINE_HEIGHT) * fontsize
        if box.image is not None:
            _draw_image(ax, box.image, layout.x[node], top + 0.9 * _MARGIN * fontsize, scale)
            baseline += box.image.height + 0.5 * _MARGIN * fontsize
        for n, line in enumerate(box.lines):
            style: dict[str, Any] = {"color": QUIET}
            if n < box.n_bold:
                style = {"color": INK, "fontweight": "bold"}
            ax.text(
                layout.x[node],
                baseline + n * _LINE_HEIGHT * fontsize,
                line,
                fontsize=fontsize * scale,
                ha="center",
                va="center",
                zorder=5,
                parse_math=False,
                **style,
            )
        # The bar of reference clusters, along the lower edge.
        margin = _MARGIN * fontsize
        start, length = left + margin, box.width - 2 * margin
        for code in np.flatnonzero(tree.value[node, 0]):
            share = float(tree.value[node, 0, code]) * length
            bar = Rectangle(
                (start, top + box.height - (_BAR_HEIGHT + 0.6 * _MARGIN) * fontsize),
                share,
                _BAR_HEIGHT * fontsize,
                facecolor=colors[code],
                edgecolor="none",
                zorder=4,
            )
            ax.add_patch(bar)
            start += share


def _draw_image(ax: Axes, image: _Image, center: float, top: float, scale: float) -> None:
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
