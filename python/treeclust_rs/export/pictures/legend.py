"""The legend of a partition: clusters, labels of points and noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...tree.colors import lighten
from ...tree.nodes import TreeNodes
from .cells import Rectangle
from .drawing import FONTSIZE, INK, shorten
from .partition_drawing import FILL_LIGHTNESS, MAX_NAME_LENGTH, NOISE_COLOR
from .points import Points
from .polygons import Polygon

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class LegendEntry(NamedTuple):
    """A line of the legend: a cell, a point, or a point in its cell."""

    text: str
    fill: str | None
    point: str | None
    marker: str = "o"


def legend_entries(
    tree: TreeNodes,
    drawn: list[Rectangle] | list[Polygon],
    points: Points | None,
    colors: list[str],
) -> list[LegendEntry]:
    """Return the clusters in the picture, the labels of the points, and noise."""
    shown = set(tree.leaf_clusters[[part.leaf for part in drawn]].tolist())
    in_cells = points is not None and not points.labels
    if points is not None and in_cells:
        shown |= set(points.codes.tolist()) - {-1}
    entries = [
        LegendEntry(
            f"cluster {shorten(tree.cluster_name(code), MAX_NAME_LENGTH)}",
            colors[code],
            colors[code] if in_cells else None,
        )
        for code in sorted(shown)
    ]
    if points is not None:
        entries += [
            LegendEntry(shorten(text, MAX_NAME_LENGTH), None, points.colors[at])
            for at, text in points.labels
        ]
        if (points.codes < 0).any():
            entries.append(LegendEntry("noise", None, NOISE_COLOR, "x"))
    return entries


def draw_legend(ax: Axes, entries: list[LegendEntry], fontsize: float, *, outside: bool) -> None:
    """Draw the legend in the axes, or beside them."""
    from matplotlib.legend_handler import HandlerTuple
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    for _, fill, point, symbol in entries:
        parts: list[Any] = []
        if fill is not None:
            light = lighten(fill, FILL_LIGHTNESS)
            parts.append(Patch(facecolor=light, edgecolor=INK, linewidth=0.6 * fontsize / FONTSIZE))
        if point is not None:
            marker = Line2D(
                [],
                [],
                linestyle="none",
                marker=symbol,
                color=point,
                markersize=0.55 * fontsize,
                markeredgecolor=point if symbol == "x" else "white",
                markeredgewidth=(1.0 if symbol == "x" else 0.4) * fontsize / FONTSIZE,
            )
            parts.append(marker)
        handles.append(tuple(parts))
    style: dict[str, Any] = {
        "handles": handles,
        "labels": [entry.text for entry in entries],
        "handler_map": {tuple: HandlerTuple(ndivide=1, pad=0.0)},
        "fontsize": fontsize,
        "labelcolor": INK,
        "frameon": not outside,
        "framealpha": 0.85,
    }
    figure = ax.get_figure()
    if outside and figure is not None:
        legend = figure.legend(loc="outside right upper", **style)
    else:
        legend = ax.legend(loc="best", **style)
    for text in legend.get_texts():
        text.set_parse_math(False)
