"""Drawing of a partition: cells, borders, points, axes, numbers beside the axes, legend."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from ..._data.times import zone_of
from ..._util import BoolArray, FloatArray
from ..._util.words import short_names, shorten
from ...tree import TreeNodes, lighten
from .cells import Borders, Limits, Rectangle
from .drawing import FONTSIZE, INK, QUIET, size_in_points, text_width
from .plane import Plane, PlaneAxis
from .points import Points
from .polygons import Polygon

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.text import Annotation

FILL_LIGHTNESS = 0.72  # share of white in the colour of a cell
NOISE_COLOR = "#6b7280"
MAX_NAME_LENGTH = 24
# Beyond so many points, those in vector pictures are pixels, and have no rim.
_MANY_POINTS = 3000

# Widths in points.
_LEAF_BORDER = 0.7
_CLUSTER_BORDER = 1.5
_SEAM = 0.4
_SEPARATOR = 3.0


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


def draw_bands(ax: Axes, plane: Plane, scale: float) -> None:
    """Separate the bands of missing cells from the values."""
    style: dict[str, Any] = {"color": "white", "linewidth": _SEPARATOR * scale, "zorder": 0.95}
    if plane.across.has_missing:
        ax.axvline(plane.across.high, **style)
    if plane.along.has_missing:
        ax.axhline(plane.along.high, **style)


def draw_axes(
    ax: Axes, tree: TreeNodes, columns: tuple[int, int], plane: Plane, fontsize: float
) -> None:
    """Set the ends, ticks and names of the axes."""
    ax.set_xlim(plane.window[0])
    ax.set_ylim(plane.window[1])
    ax.grid(visible=False)
    ax.tick_params(labelsize=fontsize, color=QUIET, labelcolor=INK)
    names = short_names(tree.feature_names, columns, 2 * MAX_NAME_LENGTH)
    across, along = (
        f"{names[column]} ({axis.unit_name})" if axis.unit_name else names[column]
        for column, axis in zip(columns, plane, strict=True)
    )
    ax.set_xlabel(across, fontsize=fontsize, color=INK, parse_math=False)
    ax.set_ylabel(along, fontsize=fontsize, color=INK, parse_math=False)
    ticked = zip((ax.xaxis, ax.yaxis), plane, size_in_points(ax), strict=True)
    for drawn, axis, length in ticked:
        _set_ticks(drawn, axis, length, fontsize)
    for spine in ax.spines.values():
        spine.set_edgecolor(QUIET)


_TICK_ROOM = 6.0
"""Points between the word "missing" below an axis and the number before it."""


def _set_ticks(drawn: Axis, axis: PlaneAxis, length: float, fontsize: float) -> None:
    """Set the ticks of an axis of `length` points: levels, dates, and the band of missing cells."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    if axis.column.has_levels:
        _set_level_ticks(drawn, axis, length, fontsize)
    elif axis.is_calendar:
        zone = zone_of(axis.column.kind)
        drawn.axis_date(zone)
        locator = AutoDateLocator(tz=zone, maxticks=7)  # type: ignore[no-untyped-call]
        drawn.set_major_locator(locator)
        formatter = ConciseDateFormatter(locator, tz=zone)  # type: ignore[no-untyped-call]
        drawn.set_major_formatter(formatter)
        drawn.get_offset_text().set(fontsize=fontsize, color=INK)
    if axis.has_missing:
        middle = 0.5 * (axis.high + axis.end)
        if not axis.column.has_levels:
            places = drawn.get_majorticklocs()
            places = places[(places >= axis.low) & (places <= axis.high)]
            room = np.full(len(places), _LINE_HEIGHT * fontsize)
            if drawn is drawn.axes.xaxis:
                texts = drawn.get_major_formatter().format_ticks(places.tolist())
                widths = [text_width(text, fontsize, bold=False) for text in ["missing", *texts]]
                room = 0.5 * (widths[0] + np.array(widths[1:])) + _TICK_ROOM
            drawn.set_ticks(places[(middle - places) * length / (axis.end - axis.low) > room])
        drawn.set_ticks([middle], ["missing"], minor=True, fontsize=fontsize, color=INK)
        drawn.set_tick_params(which="minor", length=0.0)


def _set_level_ticks(drawn: Axis, axis: PlaneAxis, length: float, fontsize: float) -> None:
    """Name the levels on an axis, every second or third only where there is no room for all."""
    slot = length / (axis.end - axis.low)
    codes = [code for code in range(len(axis.column.levels)) if axis.low <= code <= axis.high]
    codes = codes[:: math.ceil(_LINE_HEIGHT * fontsize / slot)]
    # Without mathematics.
    texts = [axis.column.level_text(code).replace("$", r"\$") for code in codes]
    widest = max((text_width(text, fontsize, bold=False) for text in texts), default=0.0)
    style: dict[str, Any] = {}
    if drawn is drawn.axes.xaxis and widest > 0.9 * slot * (
        codes[1] - codes[0] if codes[1:] else 1
    ):
        style = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    drawn.set_ticks(codes, texts, **style)


_MAX_CELL_NAME = 12
# A name has so many times its own height and width around it in cells beyond the largest.
_ROOM = 1.2


def draw_names(
    ax: Axes,
    tree: TreeNodes,
    drawn: list[Rectangle] | list[Polygon],
    window: Limits,
    fontsize: float,
) -> None:
    """Write the name of each cluster into its largest cell, and into those with room for it."""
    from matplotlib.patheffects import withStroke

    low, high = np.array(window).T
    to_points = np.array(size_in_points(ax)) / (high - low)
    names = tree.cluster_names(_MAX_CELL_NAME)
    sizes = [np.ptp(cell.corners, axis=0) * to_points for cell in drawn]
    named: set[int] = set()
    for place in sorted(range(len(drawn)), key=lambda place: -float(sizes[place].prod())):
        cell = drawn[place]
        code = int(tree.leaf_clusters[cell.leaf])
        width = text_width(names[code], fontsize, bold=True)
        if code in named and (sizes[place] < _ROOM * np.array([width, fontsize])).any():
            continue
        named.add(code)
        x, y = cell.corners.mean(axis=0)
        ax.text(
            x,
            y,
            names[code],
            fontsize=fontsize,
            fontweight="bold",
            color=INK,
            ha="center",
            va="center",
            zorder=1.5,
            clip_on=True,
            parse_math=False,
            path_effects=[withStroke(linewidth=0.25 * fontsize, foreground="white")],
        )


_SIZE = 0.85  # in units of the size of other text
_LINE_HEIGHT = 1.25  # in units of the size of the numbers
_LEADER = 9.0  # points


def draw_numbers(ax: Axes, borders: Borders, plane: Plane, fontsize: float) -> list[Annotation]:
    """Write the tests at borders beside the axes; without room for all, those of the longest."""
    size = _SIZE * fontsize
    written = []
    for axis, length in enumerate(size_in_points(ax)):
        low, high = plane.window[axis]
        has_text = [plane[axis].border_text(place) is not None for place in borders.place.tolist()]
        own = (borders.axis == axis) & np.array(has_text, dtype=bool)
        places, which = np.unique(borders.place[own], return_inverse=True)
        lengths = np.bincount(which, weights=(borders.end - borders.start)[own])
        step = _LINE_HEIGHT * size
        fitting = np.sort(np.argsort(-lengths, kind="stable")[: max(int(length / step), 1)])
        places = places[fitting]
        texts = [plane[axis].border_text(place) for place in places.tolist()]
        wanted = (places - low) / (high - low) * length
        for shown, at, text_at in zip(texts, wanted, spread(wanted, step, length), strict=True):
            # Axes coordinates along the edge, points away from it.
            edge, text = at / length, text_at - at
            number = ax.annotate(
                shown or "",
                xy=(edge, 1.0) if axis == 0 else (1.0, edge),
                xycoords="axes fraction",
                xytext=(text, _LEADER) if axis == 0 else (_LEADER, text),
                textcoords="offset points",
                rotation=90 if axis == 0 else 0,
                ha="center" if axis == 0 else "left",
                va="bottom" if axis == 0 else "center",
                fontsize=size,
                color=INK,
                annotation_clip=False,
                arrowprops={
                    "arrowstyle": "-",
                    "color": QUIET,
                    "linewidth": 0.6 * fontsize / FONTSIZE,
                    "shrinkA": 1.0,
                    "shrinkB": 0.0,
                    "relpos": (0.5, 0.0) if axis == 0 else (0.0, 0.5),
                },
            )
            written.append(number)
    return written


def numbers_height(numbers: list[Annotation], fontsize: float) -> float:
    """Return the approximate height of the numbers above the axes, in points."""
    longest = max(
        (len(number.get_text()) for number in numbers if number.get_rotation()), default=0
    )
    return _LEADER + 0.62 * _SIZE * fontsize * longest if longest else 0.0


def spread(wanted: FloatArray, step: float, length: float) -> FloatArray:
    """Return the nearest places that are at least `step` apart and in [0, length].

    `wanted` ascends. Less the steps between them, the places must ascend: isotonic regression.
    """
    if not len(wanted):
        return wanted
    steps = step * np.arange(len(wanted))
    ascending = isotonic_regression(wanted - steps).x
    room = max(length - float(steps[-1]), 0.0)
    return np.asarray(np.clip(ascending, 0.0, room) + steps)


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
    names = tree.cluster_names(MAX_NAME_LENGTH)
    entries = [
        LegendEntry(
            f"cluster {names[code]}",
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
