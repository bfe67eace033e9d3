"""A picture of the partition of a plane with matplotlib: the tree's cells, points over them."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression, linear_sum_assignment

from ..._data.checks import check_finite
from ..._data.table import align_table
from ..._util.arrays import FloatArray, IntArray
from ..._util.words import format_number, printable
from ...tree.cluster_tree import ClusterTree, HasTree, as_tree
from ...tree.conditions import OBLIQUE
from ...tree.text import cluster_colors, lighten
from .cells import Borders, Cell, Limits, Rectangle, borders_of, cells_of, clip
from .plot import INK, QUIET, shorten
from .polygons import Polygon, polygon_borders, polygons_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

__all__ = ["plot_partition"]


_MAX_LEAVES = 1000
_MAX_LEGEND = 10
# Share of the range of the points that is left free on each side.
_MARGIN = 0.05
# Beyond so many points, those in vector pictures are pixels, and have no rim.
_MANY_POINTS = 3000

_FILL = 0.72  # how much white is in the colour of a cell
_NOISE = "#6b7280"
_MAX_NAME = 24
_SIZE = (6.4, 5.0)  # inches

# Widths and sizes in points, at a font size of 9.
_LEAF_BORDER = 0.7
_CLUSTER_BORDER = 1.5
_SEAM = 0.4
_NUMBER_SIZE = 0.85  # of the numbers beside the axes, in units of the size of the text
_LINE_HEIGHT = 1.25  # and in units of theirs
_LEADER = 9.0


def plot_partition(
    tree: ClusterTree | HasTree,
    X: Any = None,
    ax: Axes | None = None,
    *,
    labels: Any = None,
    columns: Sequence[int | str] | None = None,
    limits: Limits | None = None,
    annotate: bool = False,
    legend: bool | None = None,
    point_size: float | None = None,
    fontsize: float = 9.0,
    colors: list[str] | None = None,
    title: str | None = None,
) -> Axes:
    """Draw which part of the plane the tree gives to which cluster, and points over it.

    The cells are exact: a point anywhere in the picture has the colour of the cluster that it is
    predicted to be in, the same colour as in `plot_tree`. Thick borders part clusters, thin ones
    the leaves of one cluster. The outside of an interval may be several rectangles of one leaf;
    oblique tests make convex cells.

    Parameters
    ----------
    tree : ClusterTree or fitted estimator
        A tree of two columns, or one that tests no columns but those in `columns`; of at most 1,000
        leaves.
    X : array-like or frame of shape (n_samples, n_features), default=None
        Points, read as `predict` reads them; None draws the cells alone.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a figure.
    labels : array-like of shape (n_samples,), default=None
        Colours the points by these, integers or strings, instead of by the cluster of the tree: the
        reference, or the truth. Each label takes the colour of the cluster it shares most points
        with (the two being matched one to one); labels without a cluster have colours of their own.
        -1 is noise, a grey cross.
    columns : sequence of two int or str, default=None
        Columns on the horizontal and the vertical axis, by number or name; None: the two there are.
    limits : ((float, float), (float, float)), default=None
        Ends of the horizontal and the vertical axis, in units of the columns. None: all points and
        all thresholds, and a margin.
    annotate : bool, default=False
        Write the numbers of the tests at the upper and the right edge of the picture; where there
        is no room for all, those of the longest borders. Not of trees with oblique tests.
    legend : bool, default=None
        Name the clusters (and the labels); None: if they are at most ten. In a figure made here it
        stands beside the axes.
    point_size : float, default=None
        Area of a point, in points squared, as in ``ax.scatter``; None: the smaller the more there
        are.
    fontsize : float, default=9.0
        Size of the text in points.
    colors : list of str, default=None
        One colour ``#rrggbb`` per cluster.
    title : str, default=None
        Title of the picture.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If the tree has not two columns and `columns` is None, if it tests others than `columns`, if
        it has more than 1,000 leaves, if X is not finite, or a parameter has no such value.

    Examples
    --------
    >>> plot_partition(model, X).figure.savefig("partition.png")  # doctest: +SKIP
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Drawing a partition needs matplotlib: pip install treeclust_rs[plot]."
        ) from error

    tree = as_tree(tree)
    pair = _read_columns(tree, columns)
    if tree.n_leaves > _MAX_LEAVES:
        raise ValueError(
            f"The partition by a tree of {tree.n_leaves:,} leaves is too fine for a picture (at "
            f"most {_MAX_LEAVES:,}). Draw that of a smaller tree: truncate(m)."
        )
    n_clusters = len(tree.classes)
    if colors is None:
        colors = cluster_colors(n_clusters)
    elif len(colors) != n_clusters:
        raise ValueError(f"There are {len(colors)} colors for {n_clusters} clusters.")
    if labels is not None and X is None:
        raise ValueError("labels colour points: give X too.")
    points = None if X is None else _Points.of(tree, X, pair, labels, colors)

    is_oblique = bool((tree.kind == OBLIQUE).any())
    if is_oblique and X is None and limits is None:
        raise ValueError("Oblique tests have no thresholds to see the limits by: give X or limits.")
    cells = [] if is_oblique else cells_of(tree, pair)
    if limits is None:
        window = _window(cells, None if points is None else points.xy)
    else:
        window = _read_limits(limits)
    own_figure = ax is None
    if ax is None:
        _, ax = plt.subplots(figsize=_SIZE, layout="constrained")
    scale = fontsize / 9.0
    drawn: list[Rectangle] | list[Polygon]
    borders = None
    if is_oblique:
        drawn = polygons_of(tree, pair, window)
        _draw_polygons(ax, tree, drawn, colors, scale)
        _draw_borders(ax, *polygon_borders(tree, drawn, pair, window), scale)
    else:
        drawn = [cell for cell in (clip(cell, window) for cell in cells) if cell is not None]
        _draw_cells(ax, tree, drawn, colors, scale)
        borders = borders_of(tree, drawn, window)
        _draw_borders(ax, borders.segments, borders.strong, scale)
    if points is not None:
        _draw_points(ax, points, point_size, scale)
    _dress(ax, tree, pair, window, fontsize)
    numbers = []
    if annotate and borders is not None:
        numbers = _annotate(ax, borders, window, fontsize)
    if title is not None:
        pad = 6.0 + _height(numbers, fontsize)
        ax.set_title(title, fontsize=1.2 * fontsize, color=INK, pad=pad, parse_math=False)
    entries = _legend_entries(tree, drawn, points, colors)
    if legend if legend is not None else 1 < len(entries) <= _MAX_LEGEND:
        _draw_legend(ax, entries, fontsize, outside=own_figure)
    if numbers and borders is not None:
        # What stands beside the axes changed their size.
        _lay_out(ax)
        for number in numbers:
            number.remove()
        _annotate(ax, borders, window, fontsize)
    return ax


# ---- the window ---------------------------------------------------------------------------


def _window(cells: list[Cell], points: FloatArray | None) -> Limits:
    """Give the axes' ends: all ends of cells, all points, and a margin."""
    found = []
    for axis in range(2):
        spans = [cell.x if axis == 0 else cell.y for cell in cells]
        values = [end for span in spans for end in (span.lower, span.upper) if math.isfinite(end)]
        if points is not None:
            values += [float(points[:, axis].min()), float(points[:, axis].max())]
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        margin = _MARGIN * high - _MARGIN * low
        if points is None:
            margin *= 5  # the outermost cells are as wide as it
        if not margin > 0:
            margin = 0.5 * abs(low) or 0.5
        found.append((low - margin, high + margin))
    return found[0], found[1]


def _read_limits(limits: Limits) -> Limits:
    try:
        ends = np.asarray(limits, dtype=np.float64)
    except (TypeError, ValueError):
        ends = np.empty(0)
    if ends.shape != (2, 2) or not np.isfinite(ends).all() or (ends[:, 0] >= ends[:, 1]).any():
        raise ValueError(
            "limits must be ((left, right), (low, high)), finite and ascending. "
            f"Got {limits!r} instead."
        )
    (left, right), (low, high) = ends.tolist()
    return (left, right), (low, high)


# ---- columns and points -------------------------------------------------------------------


def _read_columns(tree: ClusterTree, columns: Sequence[int | str] | None) -> tuple[int, int]:
    tested = np.unique(tree.feature[tree.feature >= 0]).tolist()
    if tree.oblique_indices is not None:
        tested = np.union1d(tested, tree.oblique_indices).astype(int).tolist()
    if columns is None:
        if tree.n_features == 2:
            return 0, 1
        advice = "There is no plane to draw."
        if tree.n_features > 2:
            advice = (
                f"Name two in columns=, if the tree tests no others (it tests "
                f"{_listed(tree, tested)}), or fit it on two columns."
            )
        raise ValueError(
            f"plot_partition draws trees of 2 columns, and this one has {tree.n_features}. {advice}"
        )
    if isinstance(columns, str) or len(columns) != 2:
        raise ValueError(f"columns must be two numbers or names of columns. Got {columns!r}.")
    first, second = (_column(tree, column) for column in columns)
    if first == second:
        raise ValueError(f"columns must be two different ones. Got {columns!r}.")
    others = [column for column in tested if column not in (first, second)]
    if others:
        raise ValueError(
            f"The tree tests {_listed(tree, others)} too, besides the columns to be drawn: its "
            "cells are not rectangles of this plane."
        )
    return first, second


def _column(tree: ClusterTree, column: int | str) -> int:
    if isinstance(column, str):
        names = tree.feature_names or [tree.feature_name(f) for f in range(tree.n_features)]
        place = names.index(column) if column in names else -1
    else:
        try:
            place = operator.index(column)
        except TypeError:
            place = -1
    if not 0 <= place < tree.n_features:
        raise ValueError(f"columns names {column!r}, which is no column of this tree.")
    return place


def _listed(tree: ClusterTree, columns: list[int], most: int = 5) -> str:
    names = [tree.feature_name(column) for column in columns[:most]]
    more = len(columns) - len(names)
    if more:
        names.append(f"{more} more")
    return ", ".join(names) if names else "none"


@dataclass(frozen=True)
class _Points:
    """The points, and how they are coloured."""

    xy: FloatArray
    codes: IntArray
    """Place of each point's colour; -1 is noise."""
    colors: list[str]
    labels: list[tuple[int, str]]
    """Colour and text of each label, if they are other names than those of the clusters."""

    @classmethod
    def of(
        cls,
        tree: ClusterTree,
        X: Any,
        columns: tuple[int, int],
        labels: Any,
        colors: list[str],
    ) -> _Points:
        table = align_table(X, tree.feature_names, tree.n_features, estimator_name="plot_partition")
        check_finite(table, 1)
        data = table.data
        xy = np.column_stack([data[f] if isinstance(data, list) else data[:, f] for f in columns])
        xy = xy.astype(np.float64)
        clusters = tree.leaf_clusters[tree.apply(data)]
        if labels is None:
            return cls(xy, clusters, colors, [])
        names, codes = _read_labels(labels, len(xy))
        place = _match(tree, clusters, names, codes)
        n_more = max(int(place.max(initial=-1)) + 1 - len(colors), 0)
        spare = [color for color in cluster_colors(len(colors) + n_more) if color not in colors]
        texts = [
            (at, f"label {name}" if isinstance(name, int) else printable(name))
            for at, name in zip(place.tolist(), names, strict=True)
        ]
        own_names = dict(enumerate(tree.classes))
        if all(own_names.get(at) == name for at, name in zip(place.tolist(), names, strict=True)):
            texts = []
        # The last place is that of noise, and is what -1 stands for.
        return cls(xy, np.append(place, -1)[codes], colors + spare[:n_more], texts)


def _read_labels(labels: Any, n_samples: int) -> tuple[list[int] | list[str], IntArray]:
    """Give the distinct labels but noise, and the place of each point's label among them."""
    array = np.asarray(labels)
    if array.shape != (n_samples,):
        raise ValueError(
            f"labels must have one entry for each of the {n_samples:,} points. Got an array of the "
            f"shape {array.shape}."
        )
    # Noise among strings makes an array of objects.
    is_noise = np.array([label == -1 for label in array.tolist()], dtype=bool)
    kept = array[~is_noise]
    if array.dtype.kind == "f" and np.isfinite(kept).all() and (kept == np.rint(kept)).all():
        kept = kept.astype(np.int64)
    elif array.dtype.kind == "O":
        for kind, dtype in ((str, np.str_), (Integral, np.int64)):
            if all(isinstance(label, kind) for label in kept.tolist()):
                kept = kept.astype(dtype)
    if kept.dtype.kind not in "biuU":
        raise ValueError("labels must hold integers or strings; -1 marks noise.")
    codes = np.full(n_samples, -1, dtype=np.int64)
    names, codes[~is_noise] = np.unique(kept, return_inverse=True)
    return names.tolist(), codes


def _match(
    tree: ClusterTree, clusters: IntArray, names: list[int] | list[str], codes: IntArray
) -> IntArray:
    """Give the place of the colour of each label: that of its cluster, or one of its own."""
    k, n_labels = len(tree.classes), len(names)
    kept = codes >= 0
    shared = np.zeros((n_labels, k))
    np.add.at(shared, (codes[kept], clusters[kept]), 1.0)
    # Where points do not decide, names do.
    for i, name in enumerate(names):
        shared[i] += [0.5 / (k + 1) * (name == known) for known in tree.classes]
    rows, columns = linear_sum_assignment(shared, maximize=True)
    place = np.full(n_labels, -1, dtype=np.int64)
    place[rows] = columns
    place[place < 0] = k + np.arange((place < 0).sum())
    return place


# ---- drawing ------------------------------------------------------------------------------


def _draw_cells(
    ax: Axes, tree: ClusterTree, drawn: list[Rectangle], colors: list[str], scale: float
) -> None:
    from matplotlib.collections import LineCollection, PolyCollection

    for code in range(len(tree.classes)):
        own = [r for r in drawn if tree.leaf_clusters[r.leaf] == code]
        flat = [r for r in own if r.left == r.right or r.low == r.high]
        fill = lighten(colors[code], _FILL)
        ax.add_collection(
            PolyCollection(
                [
                    [(r.left, r.low), (r.right, r.low), (r.right, r.high), (r.left, r.high)]
                    for r in own
                    if r not in flat
                ],
                facecolors=fill,
                edgecolors=fill,  # else the paper shines through between neighbours
                linewidths=_SEAM * scale,
                zorder=0.6,
            ),
            autolim=False,
        )
        if flat:
            # Without width: an interval that holds a single value.
            ax.add_collection(
                LineCollection(
                    [[(r.left, r.low), (r.right, r.high)] for r in flat],
                    colors=colors[code],
                    linewidths=_CLUSTER_BORDER * scale,
                    zorder=0.9,
                ),
                autolim=False,
            )


def _draw_polygons(
    ax: Axes, tree: ClusterTree, drawn: list[Polygon], colors: list[str], scale: float
) -> None:
    from matplotlib.collections import PolyCollection

    for code in range(len(tree.classes)):
        fill = lighten(colors[code], _FILL)
        ax.add_collection(
            PolyCollection(
                [p.corners for p in drawn if tree.leaf_clusters[p.leaf] == code],
                facecolors=fill,
                edgecolors=fill,
                linewidths=_SEAM * scale,
                zorder=0.6,
            ),
            autolim=False,
        )


def _draw_borders(
    ax: Axes, segments: FloatArray, parts_clusters: npt.NDArray[np.bool_], scale: float
) -> None:
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


def _draw_points(ax: Axes, points: _Points, size: float | None, scale: float) -> None:
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
            c=_NOISE,
            marker="x",
            linewidths=0.2 * math.sqrt(size),
            zorder=1.2,
            rasterized=many,
        )


def _dress(
    ax: Axes, tree: ClusterTree, columns: tuple[int, int], window: Limits, fontsize: float
) -> None:
    ax.set_xlim(window[0])
    ax.set_ylim(window[1])
    ax.grid(visible=False)
    ax.tick_params(labelsize=fontsize, color=QUIET, labelcolor=INK)
    names = [shorten(tree.feature_name(column), 2 * _MAX_NAME) for column in columns]
    ax.set_xlabel(names[0], fontsize=fontsize, color=INK, parse_math=False)
    ax.set_ylabel(names[1], fontsize=fontsize, color=INK, parse_math=False)
    for spine in ax.spines.values():
        spine.set_edgecolor(QUIET)


def _annotate(ax: Axes, borders: Borders, window: Limits, fontsize: float) -> list[Annotation]:
    """Write the place of every border beside the axes, far enough apart to be read."""
    size = _NUMBER_SIZE * fontsize
    written = []
    pixels = ax.get_window_extent()
    figure = ax.get_figure()
    assert figure is not None, "axes always belong to a figure"
    for axis in range(2):
        length = (pixels.width, pixels.height)[axis] * 72.0 / figure.dpi
        low, high = window[axis]
        own = borders.axis == axis
        places, which = np.unique(borders.place[own], return_inverse=True)
        lengths = np.bincount(which, weights=(borders.end - borders.start)[own])
        step = _LINE_HEIGHT * size
        fitting = np.sort(np.argsort(-lengths, kind="stable")[: max(int(length / step), 1)])
        places = places[fitting]
        texts = [format_number(place) for place in places.tolist()]
        wanted = (places - low) / (high - low) * length
        for shown, at, text_at in zip(texts, wanted, _apart(wanted, step, length), strict=True):
            # Axes coordinates along the edge, points away from it.
            edge, text = at / length, text_at - at
            number = ax.annotate(
                shown,
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
                    "linewidth": 0.6 * fontsize / 9.0,
                    "shrinkA": 1.0,
                    "shrinkB": 0.0,
                    "relpos": (0.5, 0.0) if axis == 0 else (0.0, 0.5),
                },
            )
            written.append(number)
    return written


def _height(numbers: list[Annotation], fontsize: float) -> float:
    """Give what the numbers above the axes take of height, in points, roughly."""
    longest = max(
        (len(number.get_text()) for number in numbers if number.get_rotation()), default=0
    )
    return _LEADER + 0.62 * _NUMBER_SIZE * fontsize * longest if longest else 0.0


def _lay_out(ax: Axes) -> None:
    """Give the axes the place they will have when the figure is drawn."""
    ax.figure.figure.draw_without_rendering()


def _apart(wanted: FloatArray, step: float, length: float) -> FloatArray:
    """Return the nearest places (least squares) that are `step` apart and in [0, length].

    `wanted` ascends. Minus the steps between them, the places are an isotonic regression.
    """
    steps = step * np.arange(len(wanted))
    free = isotonic_regression(wanted - steps).x
    room = max(length - float(steps[-1]), 0.0) if len(steps) else 0.0
    return np.asarray(np.clip(free, 0.0, room) + steps)


# ---- legend -------------------------------------------------------------------------------


class _Entry(NamedTuple):
    """A line of the legend: a cell, a point, or a point in its cell."""

    text: str
    fill: str | None
    point: str | None
    marker: str = "o"


def _legend_entries(
    tree: ClusterTree,
    drawn: list[Rectangle] | list[Polygon],
    points: _Points | None,
    colors: list[str],
) -> list[_Entry]:
    shown = set(tree.leaf_clusters[[part.leaf for part in drawn]].tolist())
    in_cells = points is not None and not points.labels
    if points is not None and in_cells:
        shown |= set(points.codes.tolist()) - {-1}
    entries = [
        _Entry(
            f"cluster {shorten(tree.cluster_name(code), _MAX_NAME)}",
            colors[code],
            colors[code] if in_cells else None,
        )
        for code in sorted(shown)
    ]
    if points is not None:
        entries += [
            _Entry(shorten(text, _MAX_NAME), None, points.colors[at]) for at, text in points.labels
        ]
        if (points.codes < 0).any():
            entries.append(_Entry("noise", None, _NOISE, "x"))
    return entries


def _draw_legend(ax: Axes, entries: list[_Entry], fontsize: float, *, outside: bool) -> None:
    from matplotlib.legend_handler import HandlerTuple
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    for _, fill, point, symbol in entries:
        parts: list[Any] = []
        if fill is not None:
            light = lighten(fill, _FILL)
            parts.append(Patch(facecolor=light, edgecolor=INK, linewidth=0.6 * fontsize / 9.0))
        if point is not None:
            marker = Line2D(
                [],
                [],
                linestyle="none",
                marker=symbol,
                color=point,
                markersize=0.55 * fontsize,
                markeredgecolor=point if symbol == "x" else "white",
                markeredgewidth=(1.0 if symbol == "x" else 0.4) * fontsize / 9.0,
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
