"""Pictures of what methods cost by their number of leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...tree import cluster_colors
from .drawing import FONTSIZE, INK, QUIET, import_pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_comparison(table: pl.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw ``cost_ratio`` against ``leaves``, a line a ``method``; across where there are none."""
    plt = import_pyplot("comparison")
    from matplotlib.ticker import MaxNLocator

    if ax is None:
        ax = plt.subplots(figsize=(7.2, 4.4), layout="constrained")[1]
    groups = table.group_by("method", maintain_order=True)
    methods = [(str(name), rows.sort("leaves")) for (name,), rows in groups]
    for (name, rows), color in zip(methods, cluster_colors(len(methods)), strict=True):
        leaves, ratio = rows["leaves"].to_list(), rows["cost_ratio"].to_list()
        if None in leaves:
            ax.axhline(ratio[0], color=color, linewidth=1.2, linestyle="--", label=name)
        else:
            ax.plot(leaves, ratio, color=color, linewidth=1.4, marker="o", markersize=4, label=name)
    ax.axhline(1.0, color=QUIET, linewidth=0.8, zorder=0)
    ax.set_xlabel("leaves", fontsize=FONTSIZE, color=INK)
    ax.set_ylabel("cost / cost of the reference", fontsize=FONTSIZE, color=INK)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.tick_params(labelsize=FONTSIZE, colors=INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=FONTSIZE, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax
