"""Pictures of what methods cost by their number of leaves."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...tree import cluster_colors
from .drawing import FONTSIZE, QUIET, line_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_WIDE = 3.0
"""So many times the median, the largest value makes an axis logarithmic."""


def plot_comparison(table: pl.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw ``cost_ratio`` against ``leaves``, a line a ``method``; across where there are none.

    An axis is logarithmic where one method would push the others into a corner.
    """
    ax = line_axes("comparison", ax, "leaves", "cost / cost of the reference")
    groups = table.group_by("method", maintain_order=True)
    methods = [(str(name), rows.sort("leaves")) for (name,), rows in groups]
    colors = cluster_colors(len(methods))
    # Points of several methods often coincide: forms and hollow marks show them all.
    for (name, rows), color, marker in zip(methods, colors, cycle("os^DvPX"), strict=False):
        leaves, ratio = rows["leaves"].to_list(), rows["cost_ratio"].to_list()
        if None in leaves:
            ax.axhline(ratio[0], color=color, linewidth=1.2, linestyle="--", label=name)
        else:
            ax.plot(
                leaves, ratio, color=color, linewidth=1.4, marker=marker, markersize=6,
                markerfacecolor="none", label=name,
            )  # fmt: skip
    ax.axhline(1.0, color=QUIET, linewidth=0.8, zorder=0)
    for axis, values in ((ax.xaxis, table["leaves"]), (ax.yaxis, table["cost_ratio"])):
        sizes = values.drop_nulls().to_numpy().astype(float)
        if sizes.min(initial=np.inf) > 0 and sizes.max(initial=0.0) > _WIDE * np.median(sizes):
            (ax.set_xscale if axis is ax.xaxis else ax.set_yscale)("log", base=2)
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("")
    ax.legend(fontsize=FONTSIZE, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax
