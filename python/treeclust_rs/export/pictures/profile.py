"""Pictures of what sets clusters apart: contrasts as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ..._util.words import printable, short_names
from .drawing import FONTSIZE, INK, QUIET, import_pyplot, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours go no further than so many times the median of the columns' largest contrasts: one column
# would make all others white.
_WIDE = 4.0
_MAX_LABEL, _MAX_LEVEL, _MAX_TITLE = 32, 20, 12
_MAX_UPRIGHT_TITLE = 24
# Clusters beside which the texts of cells have room, and their names.
_MAX_WRITTEN, _MAX_TITLES = 15, 60
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
    names = [_plain(label) for label in _labels(lines.head(lines.height // len(clusters)))]
    shape = (len(clusters), len(names))
    contrasts = lines["contrast"].cast(pl.Float64).fill_null(np.nan).to_numpy().reshape(shape).T
    texts = np.array(lines["typical"].fill_null("").to_list(), dtype=object).reshape(shape).T
    upright = len(clusters) > _MAX_WRITTEN or max(len(printable(c)) for c in clusters) > _MAX_TITLE
    every = -(-len(clusters) // _MAX_TITLES)
    separator, titles = ", " if upright else "\n", []
    for place, title in short_names(clusters, range(len(clusters)), _MAX_UPRIGHT_TITLE).items():
        rows = f"{separator}{lines['rows'][place * len(names)]:,}"
        titles.append(_plain(title) + (rows if every == 1 else ""))
    if ax is None:
        beside = 1.4 + max(text_width(name, FONTSIZE, bold=False) for name in names) / 72
        width = min(beside + _CELL_WIDTH * max(len(clusters), 3), _MAX_WIDTH)
        height = 1.3 + _LINE_HEIGHT * max(len(names), 4)
        if upright:
            height += max(text_width(title, FONTSIZE, bold=False) for title in titles) / 72
        height = min(height, _MAX_HEIGHT)
        ax = plt.subplots(figsize=(width, height), layout="constrained")[1]
    sizes = np.abs(np.nan_to_num(contrasts))
    numbers = lines["number"].head(len(names)).to_numpy()
    largest = np.array([sizes[numbers == number].max() for number in np.unique(numbers)])
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
    ax.set_yticks(range(len(names)), names)
    ax.set_xticks(range(0, len(clusters), every), titles[::every], rotation=90 if upright else 0)
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


def _labels(lines: pl.DataFrame) -> list[str]:
    """Return the names of the lines of one cluster, long ones shortened: ``column = level``."""
    columns = dict(zip(lines["number"], lines["column"], strict=True))
    names = [columns.get(number, "") for number in range(max(columns) + 1)]
    short = short_names(names, columns, _MAX_LABEL)
    labels: list[str] = []
    for own in lines.partition_by("number", maintain_order=True):
        number, codes = own["number"][0], own["code"].to_list()
        if not own["is_named"][0]:
            labels.append(short[number])
            continue
        known = dict(zip(codes, own["level"], strict=True))
        levels = [known.get(code, "") for code in range(codes[-1] + 1)]
        texts = short_names(levels, codes, _MAX_LEVEL)
        labels += [f"{short[number]} = {texts[code]}" for code in codes]
    return labels


def _plain(text: object) -> str:
    """Return a text that matplotlib does not read as mathematics."""
    return printable(text).replace("$", r"\$")
