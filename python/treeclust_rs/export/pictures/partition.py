"""A picture of the partition of a plane with matplotlib: the tree's cells, points over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._util import FloatArray, documented
from ...tree import OBLIQUE, ClusterTree, HasTree, as_tree
from .cells import (
    Rectangle,
    borders_of,
    cells_of,
    read_columns,
)
from .drawing import FONTSIZE, INK, check_colors, import_pyplot
from .partition_drawing import (
    draw_axes,
    draw_bands,
    draw_borders,
    draw_cells,
    draw_legend,
    draw_names,
    draw_numbers,
    draw_points,
    legend_entries,
    numbers_height,
)
from .plane import Plane
from .points import Points
from .polygons import Polygon, polygon_borders, polygons_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_LEAVES = 1000
_MAX_LEGEND = 10
_SIZE = (6.4, 5.0)  # inches


@documented
def plot_partition(
    tree: ClusterTree | HasTree,
    X: Any = None,
    ax: Axes | None = None,
    *,
    labels: Any = None,
    columns: Sequence[int | str] | None = None,
    limits: Sequence[Sequence[Any]] | None = None,
    annotate: bool = False,
    legend: bool | None = None,
    names: bool | None = None,
    point_size: float | None = None,
    fontsize: float = 9.0,
    colors: Sequence[str] | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the cells of the tree in the plane of two columns, and points over them.

    The cells are exact: every place in the picture has the colour of its predicted cluster, the
    same as in `plot_tree`. Thick lines separate clusters, thin ones leaves of the same cluster. The
    outside of an interval may be several rectangles of one leaf; oblique tests make convex cells.

    A column of text or booleans has a band for each of its levels, in their order, over which the
    points are spread; times have an axis of dates. Where cells are missing (without X: where they
    were in the fit), the rows are in a band beyond the values, in the colour of the cluster that
    the tree sends them to.

    Parameters
    ----------
    tree : ClusterTree, fitted estimator or tree of scikit-learn
        A tree of two columns, or one that tests only the columns in `columns`; of at most 1,000
        leaves.
    X : array-like or frame of shape (n_samples, n_features), default=None
        Points, read as `predict` reads them: of a frame the two columns; None draws the cells
        alone.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a figure.
    labels : array-like of shape (n_samples,), default=None
        Labels that colour the points, integers or strings, instead of the clusters of the tree: the
        reference, or the truth. Labels and clusters are matched one to one by their common points,
        and a label has the colour of its cluster; other labels have colours of their own. -1 is
        noise, a grey cross.
    columns : sequence of two int or str, default=None
        Columns on the horizontal and the vertical axis, by number or name; None: the two there are.
    limits : ((object, object), (object, object)), default=None
        Ends of the horizontal and the vertical axis, in units of the columns: numbers, dates or
        datetimes, lengths of time; the bands of levels are 1 wide, the first one around 0. None:
        all points and all thresholds, and a margin.
    annotate : bool, default=False
        Write the numbers of the tests at the upper and the right edge of the picture; without room
        for all, those of the longest borders. Trees with oblique tests have none.
    legend : bool, default=None
        Name the clusters (and the labels); None: if there are at most ten. In a new figure the
        legend is beside the axes.
    names : bool, default=None
        Write the names of the clusters into their cells; None: if `legend` is None and there are
        more than ten, whose colours are hard to tell apart.
    point_size : float, default=None
        Area of a point, in points squared, as in ``ax.scatter``; None: smaller if there are more.
    fontsize : float, default=9.0
        Size of the text in points.
    colors : sequence of str, default=None
        One colour of matplotlib per cluster: names or ``#rrggbb``.
    title : str, default=None
        Title of the picture.

    Returns
    -------
    matplotlib Axes

    %(needs_matplotlib)s
        If the tree has other than two columns and `columns` is None, if it tests others than
        `columns`, if it has more than 1,000 leaves, if X holds what `predict` refuses, or a
        parameter is invalid.

    Examples
    --------
    >>> plot_partition(model, X).figure.savefig("partition.png")  # doctest: +SKIP
    """
    plt = import_pyplot("partition")
    tree = as_tree(tree)
    pair = read_columns(tree, columns)
    if tree.n_leaves > _MAX_LEAVES:
        raise ValueError(
            f"The partition by a tree of {tree.n_leaves:,} leaves is too fine for a picture (at "
            f"most {_MAX_LEAVES:,}). Draw that of a smaller tree: truncate(m)."
        )
    shades = check_colors(colors, tree.classes)
    if labels is not None and X is None:
        raise ValueError("labels colour points: give X too.")
    points = None if X is None else Points.of(tree, X, pair, labels, shades)

    is_oblique = bool((tree.kind == OBLIQUE).any())
    if is_oblique and X is None and limits is None:
        raise ValueError("Oblique tests have no thresholds to see the limits by: give X or limits.")
    xy = None if points is None else points.xy
    cells = [] if is_oblique else cells_of(tree, pair, _with_missing(tree, pair, xy))
    plane = Plane.of([tree.column(column) for column in pair], cells, xy, limits)
    window = plane.window
    own_figure = ax is None
    if ax is None:
        _, ax = plt.subplots(figsize=_SIZE, layout="constrained")
    scale = fontsize / FONTSIZE
    drawn: list[Rectangle] | list[Polygon]
    borders = None
    if is_oblique:
        drawn = polygons_of(tree, pair, window)
        lines, strong = polygon_borders(tree, drawn, pair, window)
    else:
        drawn = plane.rectangles(cells)
        borders = borders_of(tree, drawn, window)
        lines, strong = borders.segments, borders.strong
    draw_cells(ax, tree, drawn, shades, scale)
    draw_borders(ax, lines, strong, scale)
    draw_bands(ax, plane, scale)
    if points is not None:
        placed = replace(points, xy=plane.scattered(points.xy))
        draw_points(ax, placed, point_size, scale)
    draw_axes(ax, tree, pair, plane, fontsize)
    numbers = []
    if annotate and borders is not None:
        numbers = draw_numbers(ax, borders, plane, fontsize)
    if title is not None:
        pad = 6.0 + numbers_height(numbers, fontsize)
        ax.set_title(title, fontsize=1.2 * fontsize, color=INK, pad=pad, parse_math=False)
    entries = legend_entries(tree, drawn, points, shades)
    if names if names is not None else legend is None and len(entries) > _MAX_LEGEND:
        draw_names(ax, tree, drawn, window, fontsize)
    if legend if legend is not None else 1 < len(entries) <= _MAX_LEGEND:
        draw_legend(ax, entries, fontsize, outside=own_figure)
    if numbers and borders is not None:
        # Title and legend changed the size of the axes; this lays the figure out.
        ax.figure.figure.draw_without_rendering()
        for number in numbers:
            number.remove()
        draw_numbers(ax, borders, plane, fontsize)
    return ax


def _with_missing(
    tree: ClusterTree, columns: tuple[int, int], points: FloatArray | None
) -> tuple[bool, bool]:
    """Return whether cells are missing in either column: of the points, without them of the fit."""
    if points is None:
        return tree.column(columns[0]).has_missing, tree.column(columns[1]).has_missing
    return bool(np.isnan(points[:, 0]).any()), bool(np.isnan(points[:, 1]).any())
