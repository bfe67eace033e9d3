"""Pictures of what sets clusters apart: contrasts as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ..._util.words import printable, short_names
from .drawing import FONTSIZE, INK, QUIET, import_pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours go no further than so many times the median of the lines' largest contrasts: one column
# would make all others white.
_WIDE = 4.0
_MAX_LABEL = 32
# Clusters beside which the texts of cells have room.
_MAX_WRITTEN = 15
# Cells of so much of the darkest colour have white texts.
_DARK = 0.55
_CELL_WIDTH, _LINE_HEIGHT = 0.95, 0.3
_MAX_WIDTH, _MAX_HEIGHT = 16.0, 18.0


def plot_profile(lines: pl.DataFrame, n_lines: int, ax: Axes | None = None) -> Axes:
    """Draw the contrasts of a profile, a row a ``line`` and a column a ``cluster``.

    Cells say what is ``typical``, where there are at most 15 clusters. `n_lines`: of the whole
    profile, which the title says if not all are drawn.
    """
    plt = import_pyplot("profile")
    clusters = lines["cluster"].unique(maintain_order=True).to_list()
    names = lines["line"].head(lines.height // len(clusters)).to_list()
    shape = (len(clusters), len(names))
    contrasts = lines["contrast"].cast(pl.Float64).fill_null(np.nan).to_numpy().reshape(shape).T
    texts = np.array(lines["typical"].fill_null("").to_list(), dtype=object).reshape(shape).T
    if ax is None:
        width = min(3.6 + _CELL_WIDTH * max(len(clusters), 3), _MAX_WIDTH)
        height = min(1.3 + _LINE_HEIGHT * max(len(names), 4), _MAX_HEIGHT)
        ax = plt.subplots(figsize=(width, height), layout="constrained")[1]
    sizes = np.abs(np.nan_to_num(contrasts))
    largest = sizes.max(axis=1, initial=0.0)
    limit = float(min(largest.max(initial=0.0), _WIDE * np.median(largest))) or 1.0
    image = ax.imshow(
        np.ma.masked_invalid(contrasts), cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto"
    )
    if len(clusters) <= _MAX_WRITTEN:
        for (line, place), text in np.ndenumerate(texts):
            color = "white" if sizes[line, place] > _DARK * limit else INK
            ax.text(
                place, line, text, ha="center", va="center", fontsize=FONTSIZE - 1.5, color=color
            )
    labels = short_names(names, range(len(names)), _MAX_LABEL)
    ax.set_yticks(range(len(names)), [_plain(labels[place]) for place in range(len(names))])
    rows = [int(lines["rows"][place * len(names)]) for place in range(len(clusters))]
    titles = short_names(clusters, range(len(clusters)), 12)
    every = -(-len(clusters) // _MAX_WRITTEN)
    ax.set_xticks(
        range(0, len(clusters), every),
        [
            _plain(titles[place]) + (f"\n{rows[place]:,}" if every == 1 else "")
            for place in range(0, len(clusters), every)
        ],
    )
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xlabel(
        "cluster, and its rows" if every == 1 else "cluster", fontsize=FONTSIZE, color=INK
    )
    ax.tick_params(labelsize=FONTSIZE, colors=INK, length=0)
    ax.spines[:].set_visible(False)
    if n_lines > len(names):
        note = f"{len(names)} of {n_lines:,} columns and levels: those that differ most"
        ax.text(0.0, -0.01, note, fontsize=FONTSIZE - 1, color=QUIET, va="top", ha="left",
                transform=ax.transAxes)  # fmt: skip
    figure = ax.get_figure()
    assert figure is not None, "axes always belong to a figure"
    extend = "both" if largest.max(initial=0.0) > limit else "neither"
    bar = figure.colorbar(image, ax=ax, extend=extend, fraction=0.046, pad=0.02)
    bar.set_label("contrast with the rest, in units", fontsize=FONTSIZE, color=INK)
    bar.ax.tick_params(labelsize=FONTSIZE - 1, colors=INK)
    bar.outline.set_visible(False)
    return ax


def _plain(text: object) -> str:
    """Return a text that matplotlib does not read as mathematics."""
    return printable(text).replace("$", r"\$")
