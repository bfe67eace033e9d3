"""Drawing of a partition: cells, borders, points and axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..._util.arrays import BoolArray, FloatArray
from ...tree.colors import lighten
from ...tree.nodes import TreeNodes
from .cells import Limits, Rectangle
from .drawing import INK, QUIET, shorten
from .points import Points
from .polygons import Polygon

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FILL_LIGHTNESS = 0.72  # share of white in the colour of a cell
NOISE_COLOR = "#6b7280"
MAX_NAME_LENGTH = 24
# Beyond so many points, those in vector pictures are pixels, and have no rim.
_MANY_POINTS = 3000

# Widths in points.
_LEAF_BORDER = 0.7
_CLUSTER_BORDER = 1.5
_SEAM = 0.4


def draw_cells(
    ax: Axes,
    tree: TreeNodes,
    drawn: list[Rectangle] | list[Polygon],
    colors: list[str],
    scale: float,
) -> None:
    """Draw the cells, those of each cluster in its colour."""
    from matplotlib.collections import LineCollection, PolyCollection

    for code, color in enumerate(colors):
        own = [cell for cell in drawn if tree.leaf_clusters[cell.leaf] == code]
        # An interval of a single value has no width.
        flat = [cell for cell in own if isinstance(cell, Rectangle) and cell.is_flat]
        fill = lighten(color, FILL_LIGHTNESS)
        ax.add_collection(
            PolyCollection(
                [cell.corners for cell in own if cell not in flat],
                facecolors=fill,
                edgecolors=fill,  # covers the gap between neighbours
                linewidths=_SEAM * scale,
                zorder=0.6,
            ),
            autolim=False,
        )
        if flat:
            ax.add_collection(
                LineCollection(
                    [[(r.left, r.low), (r.right, r.high)] for r in flat],
                    colors=color,
                    linewidths=_CLUSTER_BORDER * scale,
                    zorder=0.9,
                ),
                autolim=False,
            )


def draw_borders(ax: Axes, segments: FloatArray, parts_clusters: BoolArray, scale: float) -> None:
    """Draw the borders of leaves, and stronger those of clusters."""
    from matplotlib.collections import LineCollection

    kinds = [(False, QUIET, _LEAF_BORDER, 0.7), (True, INK, _CLUSTER_BORDER, 0.8)]
    for strong, color, width, zorder in kinds:
        ax.add_collection(
            LineCollection(
                list(segments[parts_clusters == strong]),
                colors=color,
                linewidths=width * scale,
                capstyle="projecting",
                zorder=zorder,
            ),
            autolim=False,
        )


def draw_points(ax: Axes, points: Points, size: float | None, scale: float) -> None:
    """Draw the points over the cells."""
    n = len(points.xy)
    many = n > _MANY_POINTS
    if size is None:
        size = float(np.clip(16.0 * (300.0 / n) ** 0.6, 0.6, 22.0)) * scale**2
    where, codes = points.xy, points.codes
    kept = codes >= 0
    ax.scatter(
        where[kept, 0],
        where[kept, 1],
        s=size,
        c=np.array(points.colors)[codes[kept]],
        edgecolors="none" if many else "white",
        linewidths=0.0 if many else 0.06 * math.sqrt(size),
        zorder=1.3,
        rasterized=many,
    )
    if not kept.all():
        ax.scatter(
            where[~kept, 0],
            where[~kept, 1],
            s=size,
            c=NOISE_COLOR,
            marker="x",
            linewidths=0.2 * math.sqrt(size),
            zorder=1.2,
            rasterized=many,
        )


def draw_axes(
    ax: Axes, tree: TreeNodes, columns: tuple[int, int], window: Limits, fontsize: float
) -> None:
    """Set the ends, ticks and names of the axes."""
    ax.set_xlim(window[0])
    ax.set_ylim(window[1])
    ax.grid(visible=False)
    ax.tick_params(labelsize=fontsize, color=QUIET, labelcolor=INK)
    names = [shorten(tree.feature_name(column), 2 * MAX_NAME_LENGTH) for column in columns]
    ax.set_xlabel(names[0], fontsize=fontsize, color=INK, parse_math=False)
    ax.set_ylabel(names[1], fontsize=fontsize, color=INK, parse_math=False)
    for spine in ax.spines.values():
        spine.set_edgecolor(QUIET)
