"""What pictures of trees and of partitions share: colours and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from ..._util import format_count, listed
from ..._util.words import printable
from ...tree import cluster_colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#2b2f36"
QUIET = "#6b7280"
LINE = "#1f77b4"
CHOSEN = "#c2410c"
# Widths of lines are in points at this font size, and scale with it.
FONTSIZE = 9.0


def line_axes(what: str, ax: Axes | None, x_label: str, y_label: str) -> Axes:
    """Return axes for lines over whole numbers, those given or new ones; `what` is for messages."""
    plt = import_pyplot(what)
    from matplotlib.ticker import MaxNLocator

    if ax is None:
        ax = plt.subplots(figsize=(7.2, 4.4), layout="constrained")[1]
    ax.set_xlabel(x_label, fontsize=FONTSIZE, color=INK)
    ax.set_ylabel(y_label, fontsize=FONTSIZE, color=INK)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.tick_params(labelsize=FONTSIZE, colors=INK)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def mark_point(ax: Axes, x: float, y: float, label: str) -> None:
    """Draw a ring around a point of a line, a thin line across and a label for the legend."""
    ax.axvline(x, color=CHOSEN, linewidth=0.8, linestyle=":", zorder=0)
    ax.plot(
        [x], [y], color=CHOSEN, marker="o", markersize=10, markerfacecolor="none", linestyle="none",
        markeredgewidth=1.6, label=label,
    )  # fmt: skip


def import_pyplot(what: str) -> ModuleType:
    """Import matplotlib, only when something is drawn; `what` is for the message."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"Drawing a {what} needs matplotlib: pip install treeclust_rs[plot]."
        ) from error
    return plt


def check_colors(colors: Sequence[str] | None, classes: Sequence[object]) -> list[str]:
    """Return a colour ``#rrggbb`` per cluster: the given ones or, for None, the package's own."""
    if colors is None:
        return cluster_colors(len(classes))
    from matplotlib.colors import is_color_like, to_hex

    named = f"one colour for each of the {format_count(len(classes), 'cluster')}"
    if isinstance(colors, str) or len(colors) != len(classes):
        got = repr(colors) if isinstance(colors, str) else format_count(len(colors), "color")
        order = listed([printable(label) for label in classes])
        raise ValueError(f"colors must be a list of {named}, in the order {order}. Got {got}.")
    for color in colors:
        if not is_color_like(color):
            raise ValueError(
                f"colors holds {color!r}, which is not a colour of matplotlib: give names such as "
                "'red' or '#rrggbb'."
            )
    return [to_hex(color) for color in colors]


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Return width and height of the axes in points."""
    figure = ax.get_figure()
    assert figure is not None, "axes always belong to a figure"
    pixels = ax.get_window_extent()
    return pixels.width * 72.0 / figure.dpi, pixels.height * 72.0 / figure.dpi


def text_width(text: str, fontsize: float, bold: bool) -> float:
    """Return the width of a line of text in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    properties = FontProperties(size=fontsize, weight="bold" if bold else "normal")
    width = text_to_path.get_text_width_height_descent(text, properties, False)[0]
    # Drawn at screen resolutions, hinted glyphs are up to 7 % wider than their outlines.
    return 1.07 * float(width)
