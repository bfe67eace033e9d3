"""What the rows of each cluster are like, and what sets them apart from all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from .. import _engine
from .._data import (
    Scale,
    Table,
    Units,
    WeightedRows,
    check_sample_weight,
)
from .._util import (
    IntArray,
    effective_n_jobs,
    format_count,
)
from .._util.words import printable, real_name
from ..export.contrasts import figures_of
from ..export.polars import label_type
from ..tree import html_table
from ..tree.checks import check_int
from ..tree.labels import Classes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SCHEMA: Mapping[str, Any] = {
    "column": pl.String,
    "level": pl.String,
    "rows": pl.Int64,
    "missing": pl.Float64,
    "mean": pl.Float64,
    "median": pl.Float64,
    "share": pl.Float64,
    "rest": pl.Float64,
    "contrast": pl.Float64,
    "typical": pl.String,
}
_MAX_LINES = 30


@dataclass(frozen=True, eq=False, repr=False)
class Profile:
    """What the rows of each cluster are like.

    Attributes
    ----------
    table : polars.DataFrame
        One row for each cluster and column, of a column of text one for each level, of booleans one
        for ``true``:

        - ``cluster``, ``column``, ``level``: the level is null for numbers and times;
        - ``rows``: number of rows of the cluster;
        - ``missing``: share of its cells that are missing, by weight. All else is of the others;
        - ``mean``, ``median``: of numbers, and of times in microseconds since 1970; the median is
          the lower one;
        - ``share``: that the level has, by weight;
        - ``rest``: mean or share of the rows outside of the cluster;
        - ``contrast``: mean minus rest in units of the column; of levels the difference of the
          shares, over √2 units, as in distances;
        - ``typical``: mean, share or, of times, the median as text.

        Null where no cell is observed.
    """

    table: pl.DataFrame
    _flags: frozenset[str] = frozenset()

    @property
    def _head(self) -> str:
        n_clusters = self.table["cluster"].n_unique()
        n_columns = self.table["column"].n_unique()
        return (
            f"Profile of {format_count(n_clusters, 'cluster')}, "
            f"{format_count(n_columns, 'column')}; in parentheses the contrast with the rest"
        )

    def wide(self, max_lines: int | None = None) -> pl.DataFrame:
        """Return a line for each column or level, and a column of texts for each cluster.

        Parameters
        ----------
        max_lines : int, default=None
            Most lines, from 1, those of the largest contrasts; None returns all.

        Returns
        -------
        polars.DataFrame
            `column`, or a longer name if a cluster has this one, then by cluster what is typical
            and its contrast: ``41.2 (+1.3)``.
        """
        lines = self._lines(max_lines)
        by_cluster = lines.partition_by("cluster", maintain_order=True)
        texts = {
            str(rows["cluster"][0]): list(map(_cell, rows["typical"], rows["contrast"]))
            for rows in by_cluster
        }
        # A cluster may have any name.
        head = "column"
        while head in texts:
            head += " or level"
        return pl.DataFrame({head: by_cluster[0]["line"], **texts})

    def _lines(self, max_lines: int | None) -> pl.DataFrame:
        if max_lines is not None:
            check_int(max_lines, "max_lines", minimum=1)
        return _widest(self.table, self._flags, max_lines)

    def _shown(self) -> pl.DataFrame:
        """Return the lines to print; clusters whose names look alike end with their numbers."""
        wide = self.wide(_MAX_LINES)
        names = [printable(name) for name in wide.columns]
        if len(set(names)) < len(names):
            names[1:] = [f"{name} [{place}]" for place, name in enumerate(names[1:])]
        lines = pl.Series([printable(line) for line in wide[:, 0]], dtype=pl.String)
        return wide.with_columns(lines.alias(wide.columns[0])).rename(
            dict(zip(wide.columns, names, strict=True))
        )

    def __repr__(self) -> str:
        shown, n_lines = self._shown(), n_lines_of(self.table)
        with pl.Config(
            tbl_rows=-1,
            tbl_cols=-1,
            tbl_width_chars=10_000,
            fmt_str_lengths=200,
            tbl_hide_dataframe_shape=True,
            tbl_hide_column_data_types=True,
        ):
            text = f"{self._head}\n{shown}"
        if n_lines > shown.height:
            text += f"\nand {n_lines - shown.height:,} more lines of smaller contrasts: see table"
        return text

    def _repr_html_(self) -> str:
        import html

        shown = self._shown()
        rows = [[html.escape(cell or "") for cell in row] for row in shown.iter_rows()]
        titles = [(html.escape(name), False) for name in shown.columns]
        return html_table(self._head, titles, rows, ["table has all columns and levels."])

    def plot(self, ax: Axes | None = None, *, max_lines: int = _MAX_LINES) -> Axes:
        """Draw the contrasts as a heat map: a line for each column or level, clusters side by side.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        max_lines : int, default=30
            Most lines, from 1, those of the largest contrasts.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        from ..export.pictures.profile import plot_profile  # no fit needs it

        return plot_profile(self._lines(max_lines), n_lines_of(self.table), ax)


def n_lines_of(table: pl.DataFrame) -> int:
    """Return the number of columns and levels of a profile."""
    return table.select("column", "level").unique().height


def _widest(table: pl.DataFrame, flags: frozenset[str], max_lines: int | None) -> pl.DataFrame:
    """Return the lines of a profile with the largest contrasts, named in ``line``.

    `flags`: the columns of booleans. ``number`` is the place of the column, ``code`` that of the
    level, which the name has where ``is_named``.
    """
    # Of text columns the level is named, of booleans, which have one line, it is not.
    is_named = pl.col("level").is_not_null() & ~pl.col("column").is_in(list(flags))
    named = table.with_columns(
        line=pl.when(is_named).then(pl.format("{} = {}", "column", "level")).otherwise("column"),
        is_named=is_named,
        place=pl.int_range(pl.len()).over("cluster"),
        number=pl.col("column").rle_id().over("cluster"),
        code=pl.int_range(pl.len()).over("cluster", "column"),
    )
    if max_lines is None:
        return named
    order = named.group_by("place", maintain_order=True).agg(pl.col("contrast").abs().max())
    kept = order.sort("contrast", descending=True, nulls_last=True, maintain_order=True)
    return named.filter(pl.col("place").is_in(kept["place"].head(max_lines).implode()))


def _cell(typical: str | None, contrast: float | None) -> str:
    """Return what is typical of a cluster and its contrast, with two digits behind the point."""
    if contrast is None:
        return typical or ""
    number = f"{contrast:+.2f}" if abs(contrast) < 1000 else f"{contrast:+.3g}"
    return f"{typical} ({number})"


def profile_of(
    model: Any, table: Any, codes: IntArray, classes: Classes, sample_weight: Any, scale: Scale
) -> Profile:
    """Return what the rows of each cluster are like, in `scale` units or, for None, the model's.

    The other parameters are those of `profile_clusters`.
    """
    rows = profiled_rows(model, table, sample_weight, scale)
    return profile_clusters(rows, codes, classes)


def profiled_rows(
    model: Any, table: Any, sample_weight: Any, scale: Scale = None
) -> WeightedRows[Any]:
    """Return rows in the units of their contrasts: those of `scale` or, for None, the model's."""
    threads = _engine.Threads(effective_n_jobs(getattr(model, "n_jobs", None)))
    weight = check_sample_weight(sample_weight, table.n_samples)
    units = Units.of(table, weight, scale, threads)
    own = getattr(model, "scale_", None)
    if scale is None and own is not None:
        units = Units(units.shift, own)
    return WeightedRows(table, weight, units, threads)


def profile_clusters(rows: WeightedRows[Any], codes: IntArray, classes: Classes) -> Profile:
    """Return what the rows of each cluster are like.

    Parameters
    ----------
    rows : WeightedRows
        The rows, in the units of the contrasts.
    codes : ndarray of shape (n_samples,)
        The cluster of each row, its place in `classes`.
    classes : sequence
        The clusters' labels.

    Returns
    -------
    Profile
    """
    k, table = len(classes), rows.rows
    weight = np.ones(table.n_samples) if rows.weight is None else rows.weight
    counts = np.bincount(codes, minlength=k).tolist()
    totals = np.bincount(codes, weight, minlength=k)
    by_column = [
        (f, level, figures)
        for f, (dense, place) in enumerate(_by_column(rows))
        for level, figures in figures_of(dense, place, codes, k)
    ]
    names = [real_name(table.feature_names, f) for f in range(table.n_features)]
    flags = frozenset(
        name for name, kind in zip(names, table.kinds or (), strict=False) if kind == "flag"
    )
    lines = []
    for place, label in enumerate(classes):
        for f, level, figures in by_column:
            missing = 1.0 - figures.observed[place] / totals[place] if totals[place] > 0 else None
            line = {"cluster": label, "column": names[f]}
            line |= {"level": level, "rows": counts[place], "missing": missing}
            lines.append(line | figures.of(place))
    frame = pl.DataFrame(lines, schema={"cluster": label_type(classes), **_SCHEMA})
    return Profile(frame, flags)


def _by_column(rows: WeightedRows[Any]) -> Iterator[tuple[WeightedRows[Table], int]]:
    """Yield for each column a table with it and its place there.

    Of sparse rows that is a table of this column alone: one at a time is dense.
    """
    if isinstance(rows.rows, Table):
        yield from ((rows, f) for f in range(rows.rows.n_features))
        return
    by_columns, units = rows.rows.matrix().tocsc(), rows.units
    for f in range(rows.rows.n_features):
        cells = np.zeros((rows.rows.n_samples, 1))
        stored = slice(by_columns.indptr[f], by_columns.indptr[f + 1])
        cells[by_columns.indices[stored], 0] = by_columns.data[stored]
        one = Units(units.shift[f : f + 1], units.scale[f : f + 1])
        yield replace(rows, rows=Table(cells, len(cells), 1, None), units=one), 0
