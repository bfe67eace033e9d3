"""What the rows of each cluster are like, and what sets them apart from all others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from .. import _engine
from .._data import (
    Scale,
    SparseTable,
    Table,
    Units,
    WeightedRows,
    check_sample_weight,
    column_of,
    observed_means,
)
from .._reference.kmedians import cluster_medians
from .._util import (
    FloatArray,
    IntArray,
    column_name,
    effective_n_jobs,
    format_count,
    format_short,
)
from .._util.words import printable
from ..export.pictures.profile import plot_profile
from ..export.polars import label_type
from ..tree import format_share, html_table
from ..tree.columns import Column
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
_MINUTE, _DAY = 60_000_000, 86_400_000_000


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
            Most lines, those of the largest contrasts; None returns all.

        Returns
        -------
        polars.DataFrame
            `column`, then by cluster what is typical and its contrast: ``41.2 (+1.3)``.
        """
        lines = widest(self.table, max_lines)
        by_cluster = lines.partition_by("cluster", maintain_order=True)
        texts = {
            printable(rows["cluster"][0]): list(map(_cell, rows["typical"], rows["contrast"]))
            for rows in by_cluster
        }
        # A cluster may have any name.
        head = "column" if "column" not in texts else "column or level"
        return pl.DataFrame({head: by_cluster[0]["line"], **texts})

    def __repr__(self) -> str:
        shown, n_lines = self.wide(_MAX_LINES), n_lines_of(self.table)
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

        shown = self.wide(_MAX_LINES)
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
            Most lines, those of the largest contrasts.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        return plot_profile(widest(self.table, max_lines), n_lines_of(self.table), ax)


def n_lines_of(table: pl.DataFrame) -> int:
    """Return the number of columns and levels of a profile."""
    return table.select("column", "level").unique().height


def widest(table: pl.DataFrame, max_lines: int | None) -> pl.DataFrame:
    """Return the lines of a profile with the largest contrasts, named in ``line``.

    ``number`` is the place of the column, ``code`` that of the level, which the name has where
    ``is_named``.
    """
    # Of text columns the level is named, of booleans, which have one line, it is not.
    is_flag = (pl.col("level") == "true") & (pl.col("level").n_unique().over("column") == 1)
    is_named = pl.col("level").is_not_null() & ~is_flag
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
) -> WeightedRows[Table]:
    """Return rows in the units of their contrasts: those of `scale` or, for None, the model's."""
    if isinstance(table, SparseTable):
        raise TypeError("profile takes dense rows: give X.toarray(), or some of its columns.")
    threads = _engine.Threads(effective_n_jobs(getattr(model, "n_jobs", None)))
    weight = check_sample_weight(sample_weight, table.n_samples)
    units = Units.of(table, weight, scale, threads)
    own = getattr(model, "scale_", None)
    if scale is None and own is not None:
        units = Units(units.shift, own)
    return WeightedRows(table, weight, units, threads)


def profile_clusters(rows: WeightedRows[Table], codes: IntArray, classes: Classes) -> Profile:
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
        for f in range(table.n_features)
        for level, figures in _figures(rows, f, codes, k, weight)
    ]
    lines = []
    for place, label in enumerate(classes):
        for f, level, figures in by_column:
            missing = 1.0 - figures.observed[place] / totals[place] if totals[place] > 0 else None
            line = {"cluster": label, "column": column_name(table.feature_names, f)}
            line |= {"level": level, "rows": counts[place], "missing": missing}
            lines.append(line | figures.of(place))
    return Profile(pl.DataFrame(lines, schema={"cluster": label_type(classes), **_SCHEMA}))


@dataclass(frozen=True)
class _Figures:
    """Of one column, or of one level: means or shares by cluster, and of the other clusters."""

    column: Column
    observed: FloatArray
    typical: FloatArray
    rest: FloatArray
    unit: float
    median: FloatArray | None

    def of(self, place: int) -> dict[str, Any]:
        """Return the figures of one cluster."""
        value, rest = _known(self.typical[place]), _known(self.rest[place])
        contrast = None if value is None or rest is None else (value - rest) / self.unit
        figures: dict[str, Any] = {"rest": rest, "contrast": contrast}
        if self.median is None:
            text = None if value is None else format_share(value)
            return figures | {"share": value, "typical": text}
        median = _known(self.median[place])
        text = None if value is None else format_short(value)
        if self.column.is_time and median is not None:
            text = time_text(self.column, median, self.unit)
        return figures | {"mean": value, "median": median, "typical": text}


def time_text(column: Column, time: float, unit: float) -> str:
    """Return a time as text: without time of day where the unit is of days."""
    if not column.kind.startswith("datetime"):
        return column.value_text(time)
    text = column.value_text(time - time % _MINUTE)
    return text[: -len(text.partition(" ")[2]) - 1] if unit > _DAY else text


def _known(number: float) -> float | None:
    return None if math.isnan(number) else float(number)


def _figures(
    rows: WeightedRows[Table], f: int, codes: IntArray, k: int, weight: npt.NDArray[np.float64]
) -> Iterator[tuple[str | None, _Figures]]:
    """Yield the figures of a column, or of each of its levels."""
    table, unit = rows.rows, float(rows.units.scale[f])
    kind = "number" if table.kinds is None else table.kinds[f]
    known: Sequence[str] | None = None if table.levels is None else table.levels[f]
    column = Column(kind, tuple(known or ()))
    if known is not None:
        weights = rows.level_weights(f, codes, k)
        observed = weights.sum(axis=1)
        for code, level in enumerate(known):
            if kind == "flag" and level != "true":
                continue
            mean, rest = _with_rest(weights[:, code], observed)
            yield level, _Figures(column, observed, mean, rest, unit * math.sqrt(2.0), None)
        return
    cells = np.asarray(column_of(table, f), dtype=np.float64)
    seen = np.isfinite(cells)
    # About the column's origin, so that digits are not lost far from 0.
    shift = float(rows.units.shift[f])
    groups = codes[seen]
    observed = np.bincount(groups, weight[seen], k).astype(np.float64)
    sums = np.bincount(groups, weight[seen] * (cells[seen] - shift), k).astype(np.float64)
    mean, rest = _with_rest(sums, observed)
    weights_seen = None if rows.weight is None else weight[seen]
    median = cluster_medians(cells[seen, np.newaxis], groups, k, weights_seen)[:, 0]
    yield None, _Figures(column, observed, mean + shift, rest + shift, unit, median)


def _with_rest(sums: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean of each cluster and that of all others; NaN where nothing is observed."""
    others = np.maximum(weights.sum() - weights, 0.0)
    # What is left of the weight of a column without others is rounding.
    others[others <= 1e-12 * weights.sum()] = 0.0
    return (
        observed_means(sums, weights, np.nan),
        observed_means(sums.sum() - sums, others, np.nan),
    )
