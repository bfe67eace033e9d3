"""A picture of the tree with matplotlib: branches, boxes and images."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..._util import documented
from ...tree import LEAF, MAX_TERMS, ClusterTree, HasTree, TreeNodes, as_tree, lighten
from ...tree.words import branch_answer
from .drawing import FONTSIZE, INK, QUIET, check_colors, import_pyplot, size_in_points, text_width
from .layout import (
    BAR_HEIGHT,
    LINE_HEIGHT,
    MARGIN,
    Layout,
    NodeImage,
    Orientation,
    Wording,
    box_of,
    choose_layout,
    images_of,
    scale_to_fit,
)

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
            branch_answer(tree, parent, is_left),
            fontsize=0.8 * fontsize * scale,
            color=color,
            ha="center",
            va="center",
            zorder=2,
            bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none"},
        )


def draw_boxes(
    ax: Axes, tree: TreeNodes, layout: Layout, scale: float, colors: list[str], *, with_bars: bool
) -> None:
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
        if not with_bars:
            continue
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


class BarLegend:
    """The legend of the bars below a tree: a square and a name for each cluster."""

    def __init__(self, tree: TreeNodes, wording: Wording, fontsize: float, width: float) -> None:
        in_bars = np.flatnonzero((tree.value[:, 0] > 0).any(axis=0))
        self.codes = np.union1d(in_bars, tree.leaf_clusters[tree.leaves]).tolist()
        self.texts = [f"cluster {wording.clusters[code]}" for code in self.codes]
        what = "reference" if tree.move is None else "final"
        self.title = f"bars: rows by {what} cluster"
        self.fontsize = fontsize
        entry = max(text_width(text, fontsize, bold=False) for text in self.texts)
        # A column has the square, two gaps and the text.
        entry += (_SQUARE + _SQUARE_GAP + _COLUMN_GAP) * fontsize
        self.width = max(entry, text_width(self.title, fontsize, bold=False)) + 2 * fontsize
        most = int(max((max(width, self.width) - fontsize) / entry, 1))
        self.n_rows = -(-len(self.texts) // most)
        self.n_columns = -(-len(self.texts) // self.n_rows)
        self.height = (self.n_rows + 1.8) * _LEGEND_LINE * fontsize

    def draw(self, ax: Axes, layout: Layout, scale: float, colors: list[str]) -> None:
        """Draw the legend into the room below the tree."""
        from matplotlib.patches import Patch

        size = self.fontsize * scale
        legend = ax.legend(
            handles=[Patch(facecolor=colors[code]) for code in self.codes],
            labels=self.texts,
            title=self.title,
            ncols=self.n_columns,
            loc="upper center",
            bbox_to_anchor=(layout.width / 2, layout.height - self.height),
            bbox_transform=ax.transData,
            fontsize=size,
            title_fontsize=size,
            labelcolor=INK,
            frameon=False,
            borderaxespad=0.0,
            borderpad=0.0,
            handlelength=_SQUARE,
            handleheight=_SQUARE,
            handletextpad=_SQUARE_GAP,
            columnspacing=_COLUMN_GAP,
            labelspacing=_LEGEND_LINE - 1.15,
        )
        legend.get_title().set_color(QUIET)
        for text in legend.get_texts():
            text.set_parse_math(False)


# Lengths of the legend in units of the font size.
_SQUARE = 0.8
_SQUARE_GAP = 0.5
_COLUMN_GAP = 1.6
_LEGEND_LINE = 1.5
_MAX_LEGEND = 30
# Smaller text, in points, is not legible.
_MIN_FONTSIZE = 4.0

_MAX_LEAVES = 300


@documented
def plot_tree(
    tree: ClusterTree | HasTree,
    ax: Axes | None = None,
    *,
    details: bool = True,
    legend: bool | None = None,
    orientation: Orientation = "auto",
    fontsize: float = 9.0,
    max_name_length: int = 24,
    colors: Sequence[str] | None = None,
    title: str | None = None,
    max_terms: int = MAX_TERMS,
    shares: bool = False,
    image_shape: tuple[int, int] | None = None,
    centers: npt.ArrayLike | None = None,
) -> Axes:
    """Draw the tree: tests in white boxes, leaves in the colour of their cluster.

    Rows that pass a test go left (up, if the tree is drawn to the right), along the branch marked
    "yes"; missing cells go there too where the test says so, else along "no or missing". Line width
    shows the share of rows. The bar in a box shows the reference clusters of its rows. In a tree
    with moves the frame of a test has the colour of the node's cluster before its split, which is
    written below with the move and its gain; the bar shows the final clusters.

    Of an oblique test the terms of the largest shares are written, with three digits. If the
    features are the pixels of images, `image_shape` draws the weights instead: blue pixels have a
    negative weight and send an image that is bright there to the left ("yes"), red ones have a
    positive weight and send it to the right ("no"). The darkest pixel has the node's largest
    weight, white ones have none. A threshold node shows its pixel in red, an interval node in
    black.

    Parameters
    ----------
    tree : ClusterTree, fitted estimator or tree of scikit-learn
        The tree, of at most 300 leaves.
    ax : matplotlib Axes, default=None
        Where to draw; the text is made smaller if the tree does not fit. None makes a figure of
        the size that the tree needs.
    details : bool, default=True
        False, for a slide: tests, clusters and their shares of the rows alone, without numbers of
        rows, purities, moves, bars and legend.
    legend : bool, default=None
        Name the colours of the bars below the tree; None: if there are 2 to 30 clusters.
    orientation : {"auto", "down", "right"}, default="auto"
        Direction of growth. "auto" draws to the right if that makes a wide picture smaller, or
        the text in the given axes larger.
    fontsize : float, default=9.0
        Size of the text in points; the largest size where `ax` is given.
    max_name_length : int, default=24
        Feature names, levels and cluster labels longer than this are shortened in the middle;
        those that then look alike end with their number.
    colors : sequence of str, default=None
        One colour of matplotlib per cluster: names or ``#rrggbb``.
    title : str, default=None
        Title of the picture.
    max_terms : int, default=3
        Most terms of an oblique test to write, if it has at least two more.
    shares : bool, default=False
        Whether to write the share of each term of an oblique test behind it: |weight| x standard
        deviation of the column among the rows of the fit, of the sum over the test's terms.
    image_shape : (int, int), default=None
        Height and width of the images whose pixels, row by row, are the features.
    centers : array-like of shape (n_clusters, n_features), default=None
        With `image_shape`: an image for each cluster, shown in its leaves, dark where it is large.

    Returns
    -------
    matplotlib Axes

    %(needs_matplotlib)s
        If the tree has more than 300 leaves, or a parameter is invalid; if `shares` is True and the
        tree has oblique tests, but not the standard deviations.

    Warns
    -----
    UserWarning
        If `ax` is so small that the text has less than 4 points.

    Examples
    --------
    >>> plot_tree(model).figure.savefig("tree.png", dpi=150)  # doctest: +SKIP
    """
    plt = import_pyplot("tree")
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
    shades = check_colors(colors, tree.classes)
    if max_terms < 1:
        raise ValueError(f"max_terms must be at least 1. Got {max_terms} instead.")
    images = images_of(tree, image_shape, centers, fontsize)
    wording = Wording(
        tree.tested_names(max_name_length),
        tree.cluster_names(max_name_length),
        max_name_length,
        max_terms,
        details,
        shares,
    )
    boxes = [
        box_of(tree, node, fontsize, wording, images.get(node)) for node in range(tree.n_nodes)
    ]
    layout = choose_layout(tree, boxes, orientation, fontsize, ax)
    key = BarLegend(tree, wording, fontsize, layout.width)
    if legend is None:
        legend = 1 < len(key.codes) <= _MAX_LEGEND
    if details and legend:
        layout = layout.with_room_below(key.width, key.height)
    if ax is None:
        title_height = 0.0 if title is None else 2.5 * fontsize
        size = (layout.width / 72, (layout.height + title_height) / 72)
        figure = plt.figure(figsize=size)
        top = layout.height / (layout.height + title_height)
        ax = figure.add_axes((0.0, 0.0, 1.0, top))
    scale = fit_axes(ax, layout)
    draw_branches(ax, tree, layout, scale)
    if scale < 1 and scale * fontsize < _MIN_FONTSIZE:
        width, height = layout.width / 72, layout.height / 72
        warnings.warn(
            f"The axes are too small for a tree of {tree.n_leaves:,} leaves: its text would have "
            f"{scale * fontsize:.1f} points. Without ax it has a figure of its own, of "
            f"{width:.1f} x {height:.1f} inches; truncate(m) and details=False make it smaller.",
            UserWarning,
            stacklevel=2,
        )
    draw_boxes(ax, tree, layout, scale, shades, with_bars=details)
    if details and legend:
        key.draw(ax, layout, scale, shades)
    if title is not None:
        ax.set_title(title, fontsize=1.2 * fontsize, color=INK, parse_math=False)
    return ax
