"""What pictures of trees and of partitions share: colours, sizes, shortened names."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from ...tree import cluster_colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#2b2f36"
QUIET = "#6b7280"
# Widths of lines are in points at this font size, and scale with it.
FONTSIZE = 9.0


def import_pyplot(what: str) -> ModuleType:
    """Import matplotlib, only when something is drawn; `what` is for the message."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"Drawing a {what} needs matplotlib: pip install treeclust_rs[plot]."
        ) from error
    return plt


def check_colors(colors: list[str] | None, n_clusters: int) -> list[str]:
    """Return one colour per cluster: the given ones or, for None, the package's own."""
    if colors is None:
        return cluster_colors(n_clusters)
    if len(colors) != n_clusters:
        raise ValueError(f"There are {len(colors)} colors for {n_clusters} clusters.")
    return colors


def shorten(text: str, max_length: int) -> str:
    """Return the text, or its front and its end with … between them."""
    if len(text) <= max_length:
        return text
    n_kept = max(max_length - 1, 2)
    n_front = (2 * n_kept + 2) // 3
    return f"{text[:n_front]}…{text[len(text) - (n_kept - n_front) :]}"


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Return width and height of the axes in points."""
    figure = ax.get_figure()
    assert figure is not None, "axes always belong to a figure"
    pixels = ax.get_window_extent()
    return pixels.width * 72.0 / figure.dpi, pixels.height * 72.0 / figure.dpi
