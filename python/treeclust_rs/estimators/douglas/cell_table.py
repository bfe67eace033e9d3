"""The hard rules of Douglas: bins with sharp edges, and the cluster of every cell."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ..._data import Table, column_of
from ..._util import FloatArray, IntArray, format_count
from ..._util.words import MAX_NAME_LENGTH, short_names, tested_name
from ...export.expressions import CellLabels
from ...export.polars import column_expr
from ...tree import (
    Condition,
    RuleTable,
    Span,
    cluster_colors,
    cluster_html,
    format_share,
    html_table,
    row_text,
    rule_text,
)
from ...tree.labels import Classes, renamed
from .soft_bins import hard_cells

if TYPE_CHECKING:
    import narwhals as nw

# Most cells of a polars expression: planning and running it then takes some milliseconds.
MAX_EXPRESSION_CELLS = 10_000
# Most cells that are printed.
_MAX_PRINTED = 200
# Tables wider than this are printed with letters for the bins.
_MAX_WIDTH = 100


@dataclass(frozen=True, eq=False, repr=False)
class CellTable:
    """Cells, one bin of every feature each, and the cluster of each cell.

    A bin is ``lower < x <= upper`` between two neighbouring cuts. Cells are numbered with the bin
    of the last feature running fastest.

    Parameters
    ----------
    features : ndarray of shape (m,)
        Features with cuts, ascending.
    cuts : tuple of m ndarrays
        Cuts of each of them, ascending, at least one each.
    clusters : ndarray of shape (n_cells,)
        Cluster of every cell, 0, 1, ..., whatever its label is.
    occupied : ndarray of shape (n_occupied,)
        Cells with rows, ascending.
    n_rows : ndarray of shape (n_occupied,)
        Rows in each of them.
    n_agreeing : ndarray of shape (n_occupied,)
        Rows of each that the model predicts to be of the cell's cluster.
    n_clusters : int
        Number of clusters.
    feature_names : tuple of str or None
        Names of all columns.
    classes : tuple of int or tuple of str, default=None
        The clusters' labels; None: 0, 1, ...
    """

    features: IntArray
    cuts: tuple[FloatArray, ...]
    clusters: IntArray
    occupied: IntArray
    n_rows: IntArray
    n_agreeing: IntArray
    n_clusters: int
    feature_names: tuple[str, ...] | None
    classes: Classes = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", self.classes or tuple(range(self.n_clusters)))

    @property
    def labels(self) -> npt.NDArray[Any]:
        """Label of the cluster of every cell."""
        return np.asarray(self.classes)[self.clusters]

    def rename_clusters(self, names: Mapping[Any, int | str]) -> CellTable:
        """Return the table with other labels; `names` as for `Douglas.rename_clusters`."""
        return replace(self, classes=renamed(self.classes, names))

    def cluster_name(self, code: int) -> str:
        """Return the name of a cluster in texts: its label, shortened if it is long."""
        return short_names(self.classes, range(self.n_clusters))[code]

    @property
    def n_bins(self) -> tuple[int, ...]:
        """Bins of each feature with cuts."""
        return tuple(len(cuts) + 1 for cuts in self.cuts)

    @property
    def n_cells(self) -> int:
        """Number of all cells, with rows or without."""
        return len(self.clusters)

    @property
    def agreement(self) -> float:
        """Share of the rows that the model predicts to be of their cell's cluster."""
        return float(self.n_agreeing.sum() / self.n_rows.sum())

    def __repr__(self) -> str:
        return (
            f"CellTable(n_cells={self.n_cells}, n_occupied={len(self.occupied)}, "
            f"n_features={len(self.features)}, n_clusters={self.n_clusters})"
        )

    def feature_name(self, feature: int) -> str:
        """Return the name of a feature in texts."""
        name = tested_name(self.feature_names, feature)
        return name if len(name) <= MAX_NAME_LENGTH else self._short_names[feature]

    @cached_property
    def _short_names(self) -> dict[int, str]:
        return short_names(self.feature_names, self.features.tolist())

    # ---- rows -----------------------------------------------------------------------------

    def apply(self, table: Table) -> IntArray:
        """Return the cell of every row.

        Parameters
        ----------
        table : Table
            Rows, with all columns of the fit.

        Returns
        -------
        ndarray of shape (n_samples,)
            Numbers of cells.
        """
        return cells_of(table, self.features, self.cuts)

    def explain(self, table: Table, predicted: IntArray, probability: FloatArray) -> list[str]:
        """Return a line per row with the bins of its values.

        Parameters
        ----------
        table : Table
            Rows.
        predicted : ndarray of shape (n_samples,)
            Clusters that the model predicts.
        probability : ndarray of shape (n_samples,)
            Their probabilities.

        Returns
        -------
        list of str
        """
        columns = [column_of(table, feature) for feature in self.features.tolist()]
        lines = []
        for row, cell in enumerate(self.apply(table).tolist()):
            values: list[object] = [column[row] for column in columns]
            text = row_text(self, list(self.conditions(cell)), values, {})
            cluster, own = int(predicted[row]), int(self.clusters[cell])
            note = ""
            if cluster != own:
                share, name = format_share(probability[row]), self.cluster_name(own)
                note = f" ({share}; its cell is of cluster {name})"
            lines.append(f"cluster {self.cluster_name(cluster)}{note}: {text}")
        return lines

    # ---- cells ----------------------------------------------------------------------------

    def bins_of(self, cell: int) -> tuple[int, ...]:
        """Return the bin of each feature in a cell."""
        return (
            tuple(int(place) for place in np.unravel_index(cell, self.n_bins)) if self.cuts else ()
        )

    def conditions(self, cell: int) -> list[Condition]:
        """Return the conditions of a cell on each feature."""
        return [
            Condition(int(feature), _span(cuts, place))
            for feature, cuts, place in zip(
                self.features, self.cuts, self.bins_of(cell), strict=True
            )
        ]

    @cached_property
    def _order(self) -> IntArray:
        """Occupied cells by cluster, then by rows, the most first."""
        clusters = self.clusters[self.occupied]
        return np.lexsort((self.occupied, -self.n_rows, clusters)).astype(np.int64)

    def rules(self) -> RuleTable:
        """Return one rule per occupied cell.

        Returns
        -------
        RuleTable
            A polars frame that is printed whole. By cluster, then by rows, the most first:
            `cluster`, `rule`, `n` (rows of the fit), `share` (of all rows) and `purity` (share of
            the cell's rows that the model predicts to be of the cell's cluster).
        """
        order = self._order
        cells, n_rows = self.occupied[order], self.n_rows[order]
        name = partial(tested_name, self.feature_names)  # whole, where texts shorten it
        rules = [rule_text(name, list(self.conditions(cell))) for cell in cells.tolist()]
        frame = pl.DataFrame(
            {
                "cluster": pl.Series(self.labels[cells].tolist(), dtype=self._label_type),
                "rule": pl.Series(rules, dtype=pl.String),
                "n": n_rows,
                "share": n_rows / n_rows.sum(),
                "purity": self.n_agreeing[order] / n_rows,
            }
        )
        return RuleTable(frame)

    def to_polars(self) -> pl.Expr:
        """Return the table as a polars expression named ``cluster``.

        Raises
        ------
        ValueError
            If there are more than 10,000 cells.
        """
        self._check_size("a polars expression")
        if not self.cuts:
            label = self.labels[0].item()
            return pl.repeat(label, pl.len(), dtype=self._label_type).alias("cluster")
        columns = [column_expr(self.feature_names, feature) for feature in self.features.tolist()]
        cell: pl.Expr = pl.lit(0, dtype=pl.Int64)
        for column, cuts in zip(columns, self.cuts, strict=True):
            above = [(column > cut).cast(pl.Int64) for cut in cuts.tolist()]
            cell = cell * (len(cuts) + 1) + sum(above[1:], above[0])
        missing = pl.any_horizontal([column.is_null() | column.is_nan() for column in columns])
        cell = pl.when(missing).then(None).otherwise(cell)
        numbers = pl.Series(range(self.n_cells), dtype=pl.Int64)
        labels = pl.Series(self.labels.tolist(), dtype=self._label_type)
        return cell.replace_strict(numbers, labels, default=None).alias("cluster")

    def to_narwhals(self) -> nw.Expr:
        """Return the table as an expression of narwhals named ``cluster``.

        Raises
        ------
        ValueError
            If there are more than 4,000 cells, or more than 120 cuts.
        """
        from ...export.narwhals import cells_to_narwhals_expr  # no fit needs it

        return cells_to_narwhals_expr(self._cell_labels)

    def to_sql(
        self, dialect: str, table: str | Sequence[str] | None, *, name: str = "cluster"
    ) -> str:
        """Return the table as SQL; see `treeclust_rs.export.to_sql`.

        Raises
        ------
        ValueError
            If there are more than 10,000 cells.
        """
        from ...export.sql import cells_to_sql  # no fit needs it

        self._check_size("SQL")
        return cells_to_sql(self._cell_labels, dialect, table, name)

    @property
    def _cell_labels(self) -> CellLabels:
        cuts = [own.tolist() for own in self.cuts]
        features, labels = self.features.tolist(), self.labels.tolist()
        return CellLabels(self.feature_names, features, cuts, labels)

    def _check_size(self, what: str) -> None:
        if self.n_cells > MAX_EXPRESSION_CELLS:
            raise ValueError(
                f"A table of {self.n_cells:,} cells is too large for {what} (at most "
                f"{MAX_EXPRESSION_CELLS:,}). Use model.predict(frame) instead, or fit with fewer "
                f"features (feature_mask){' or cuts (n_cuts)' if max(self.n_bins) > 2 else ''}."
            )

    @property
    def _label_type(self) -> Any:
        return pl.String if isinstance(self.classes[0], str) else pl.Int64

    # ---- text -----------------------------------------------------------------------------

    def _head(self) -> str:
        return (
            f"CellTable: {len(self.occupied):,} of {format_count(self.n_cells, 'cell')} with rows, "
            f"{format_count(self.n_clusters, 'cluster')}, "
            f"{format_count(int(self.n_rows.sum()), 'row')}"
        )

    def _notes(self) -> list[str]:
        """Return notes below the lines."""
        left = len(self.occupied) - _MAX_PRINTED
        notes = [f"... and {left:,} more cells: rules() has them all"] if left > 0 else []
        if self.agreement < 1:
            notes += [
                "",
                "purity: share of the cell's rows that the model, whose bins are soft, predicts to "
                "be of",
                "the cell's cluster.",
            ]
        return notes

    def __str__(self) -> str:
        order = self._order[:_MAX_PRINTED]
        cells = self.occupied[order].tolist()
        lines = self._bin_columns(cells)
        legend: list[str] = []
        figures = self._figure_lines(order)
        if len(lines[0]) + len(figures[0]) > _MAX_WIDTH:
            lines, legend = self._letter_columns(cells), ["", *self._legend()]
        gap = "  " if self.cuts else ""
        rows = [f"{line}{gap}{figure}" for line, figure in zip(lines, figures, strict=True)]
        return "\n".join([self._head(), *legend, "", *rows, *self._notes()])

    def _repr_html_(self) -> str:
        order = self._order[:_MAX_PRINTED]
        cells = self.occupied[order]
        colors = cluster_colors(self.n_clusters)
        titles = [(html.escape(self.feature_name(f)), True) for f in self.features.tolist()]
        titles += [("rows", False), ("share", False), ("purity", False), ("cluster", True)]
        rows = []
        codes = self.clusters[cells].tolist()
        for cell, code, (*figures, cluster) in zip(
            cells.tolist(), codes, self._figures(order), strict=True
        ):
            bins = zip(self.cuts, self.bins_of(cell), strict=True)
            texts = [*(_bin_text(cuts, place) for cuts, place in bins), *figures]
            named = cluster_html(cluster, colors[code])
            rows.append([*(html.escape(text) for text in texts), named])
        return html_table(self._head(), titles, rows, self._notes())

    def _figures(self, order: IntArray) -> list[tuple[str, str, str, str]]:
        """Write rows, share, purity and cluster of occupied cells."""
        total = int(self.n_rows.sum())
        n_rows, agreeing = self.n_rows[order].tolist(), self.n_agreeing[order].tolist()
        clusters = self.clusters[self.occupied[order]].tolist()
        names = short_names(self.classes, range(self.n_clusters))
        return [
            (f"{n:,}", format_share(n / total), format_share(good / n), names[cluster])
            for n, good, cluster in zip(n_rows, agreeing, clusters, strict=True)
        ]

    def _figure_lines(self, order: IntArray) -> list[str]:
        figures = self._figures(order)
        width = max([4, *(len(n) for n, _, _, _ in figures)])
        return [
            f"{'rows':>{width}}    share   purity  cluster",
            *(f"{n:>{width}}  {share:>7}  {good:>7}  {name}" for n, share, good, name in figures),
        ]

    def _bin_columns(self, cells: list[int]) -> list[str]:
        """Write the bins of the cells, a column per feature; the first line has their names."""
        places = [self.bins_of(cell) for cell in cells]
        parts = []
        for number, (feature, cuts) in enumerate(zip(self.features, self.cuts, strict=True)):
            texts = [_bin_text(cuts, place[number]) for place in places]
            texts = [self.feature_name(int(feature)), *texts]
            width = max(map(len, texts))
            parts.append([f"{text:{width}}" for text in texts])
        return ["  ".join(line) for line in zip(*parts, strict=True)] or [""] * (len(cells) + 1)

    def _letter_columns(self, cells: list[int]) -> list[str]:
        lines = [" ".join(_letter(place) for place in self.bins_of(cell)) for cell in cells]
        width = max(len("cell"), *map(len, lines)) if lines else 4
        return [f"{line:{width}}" for line in ["cell", *lines]]

    def _legend(self) -> list[str]:
        names = [self.feature_name(feature) for feature in self.features.tolist()]
        width = max(map(len, names))
        texts = [
            [f"{_letter(place)}: {_bin_text(cuts, place)}" for place in range(len(cuts) + 1)]
            for cuts in self.cuts
        ]
        of_bin = [max(map(len, bins)) for bins in zip_longest(*texts, fillvalue="")]
        return [
            "  ".join(
                [f"{name:{width}}", *(f"{text:{n}}" for text, n in zip(bins, of_bin, strict=False))]
            ).rstrip()
            for name, bins in zip(names, texts, strict=True)
        ]


def cells_of(table: Table, features: IntArray, cuts: tuple[FloatArray, ...]) -> IntArray:
    """Return the cell of every row of a table; see `hard_cells`."""
    columns = (column_of(table, feature) for feature in features.tolist())
    return hard_cells((c.astype(np.float64, copy=False) for c in columns), cuts, table.n_samples)


def _span(cuts: FloatArray, place: int) -> Span:
    lower = -math.inf if place == 0 else float(cuts[place - 1])
    upper = math.inf if place == len(cuts) else float(cuts[place])
    return Span(lower, place > 0, upper, False)


def _bin_text(cuts: FloatArray, place: int) -> str:
    """Write a bin without its feature: ``<= 2``, ``2 to 3``, ``> 3``."""
    if 0 < place < len(cuts):
        return _span(cuts, place).text("").replace(" <  <= ", " to ")
    return _span(cuts, place).text("").strip()


def _letter(place: int) -> str:
    """Write the number of a bin as a letter, after z as a number."""
    return chr(ord("a") + place) if place < 26 else str(place)
