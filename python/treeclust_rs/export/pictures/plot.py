"""A picture of the tree with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy.typing as npt

from ...tree.cluster_tree import ClusterTree, HasTree, as_tree
from ...tree.words import MAX_TERMS
from .boxes import box_of, images_of
from .drawing import INK, check_colors, import_pyplot
from .layout import Orientation, choose_layout
from .tree_drawing import draw_boxes, draw_branches, fit_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_LEAVES = 300


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

    Rows that pass a test go left (up, if the tree is drawn to the right), along the branch marked
    "yes". Line width shows the share of rows. The bar in a box shows the reference clusters of its
    rows. In a tree with moves the frame of a test has the colour of the node's cluster before its
    split, which is written below with the move and its gain; the bar shows the final clusters.

    Of an oblique test the largest weights are written, with three digits. If the features are
    the pixels of images, `image_shape` draws the weights instead: blue pixels have a negative
    weight and send an image that is bright there to the left ("yes"), red ones have a positive
    weight and send it to the right ("no"). The darkest pixel has the node's largest weight, white
    ones have none. A threshold node shows its pixel in red, an interval node in black.

    Parameters
    ----------
    tree : ClusterTree or fitted estimator
        The tree, of at most 300 leaves.
    ax : matplotlib Axes, default=None
        Where to draw; the text is made smaller if the tree does not fit. None makes a figure of
        the size that the tree needs.
    orientation : {"auto", "down", "right"}, default="auto"
        Direction of growth. "auto" draws to the right if that makes a wide picture smaller, or
        the text in the given axes larger.
    fontsize : float, default=9.0
        Size of the text in points; the largest size where `ax` is given.
    max_name_length : int, default=24
        Feature names and cluster labels longer than this are shortened in the middle.
    colors : list of str, default=None
        One colour ``#rrggbb`` per cluster.
    title : str, default=None
        Title of the picture.
    max_terms : int, default=3
        Largest number of weights of an oblique test to write, if it has at least two more.
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
        If the tree has more than 300 leaves, or a parameter is invalid.

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
    colors = check_colors(colors, len(tree.classes))
    if max_terms < 1:
        raise ValueError(f"max_terms must be at least 1. Got {max_terms} instead.")
    images = images_of(tree, image_shape, centers, fontsize)
    boxes = [
        box_of(tree, node, fontsize, max_name_length, max_terms, images.get(node))
        for node in range(tree.n_nodes)
    ]
    layout = choose_layout(tree, boxes, orientation, fontsize, ax)
    if ax is None:
        title_height = 0.0 if title is None else 2.5 * fontsize
        size = (layout.width / 72, (layout.height + title_height) / 72)
        figure = plt.figure(figsize=size)
        top = layout.height / (layout.height + title_height)
        ax = figure.add_axes((0.0, 0.0, 1.0, top))
    scale = fit_axes(ax, layout)
    draw_branches(ax, tree, layout, scale)
    draw_boxes(ax, tree, layout, scale, colors)
    if title is not None:
        ax.set_title(title, fontsize=1.2 * fontsize, color=INK, parse_math=False)
    return ax
