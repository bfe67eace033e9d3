"""Pictures of a search for the best value of a parameter."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from .drawing import FONTSIZE, LINE, QUIET, line_axes, mark_point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Values that span more than this factor are drawn on a logarithmic axis.
_DECADES = 50.0
_WORDS = {
    "k": "clusters",
    "n_leaves": "leaves",
    "max_leaves": "leaves at most",
    "silhouette": "mean silhouette",
    "stability": "agreement of halves (adjusted Rand index)",
}


def plot_selection(table: pl.DataFrame, chosen: int, by: str, ax: Axes | None = None) -> Axes:
    """Draw the column `by` against the first one, and mark the row `chosen`.

    A column ``error`` is drawn as bars, and where there is ``below_chord`` the line that it is
    measured from.
    """
    name = table.columns[0]
    ax = line_axes("selection", ax, _WORDS.get(name, name), _WORDS.get(by, by))
    numbers = table.select(pl.col(name, by).cast(pl.Float64).fill_null(math.nan))
    x, y = numbers.to_numpy().T
    style: dict[str, Any] = {"color": LINE, "linewidth": 1.4, "marker": "o", "markersize": 4}
    if "error" in table:
        bars: dict[str, Any] = {"ecolor": QUIET, "elinewidth": 1.0, "capsize": 2.5}
        ax.errorbar(x, y, yerr=table["error"].to_numpy(), **style, **bars)
    else:
        ax.plot(x, y, **style)
    if "below_chord" in table:
        ends = [0, y.argmin()]
        ax.plot(x[ends], y[ends], color=QUIET, linewidth=0.8, linestyle="--", zorder=0)
    if table[name].dtype.is_float():
        from matplotlib.ticker import AutoLocator

        ax.xaxis.set_major_locator(AutoLocator())
        finite = x[np.isfinite(x)]
        if len(finite) and finite[0] > 0 and finite[-1] > _DECADES * finite[0]:
            ax.set_xscale("log")
    value = f"{_WORDS.get(name, name)}: {table[name][chosen]:,}"
    mark_point(ax, x[chosen], y[chosen], value)
    # Above the axes: inside, its mark would look like one of the curve's.
    ax.legend(fontsize=FONTSIZE, frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    return ax
