"""The columns that Douglas cuts: which, their units and ranges, and cuts that people can read."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ... import _engine
from ..._data.table import Table, column_of
from ..._util.arrays import FloatArray, IntArray, check_size
from ..._util.words import format_count, quoted_column
from .cell_table import CellTable, cells_of
from .soft_bins import SoftBins, numbers_of_row

__all__ = ["BinnedColumns"]


# Copies of the weights in a fit: themselves and those of the best start, their gradient, Adam's two
# means, and what a step needs; and of what a batch's forward pass holds.
_COPIES = 7
_BATCH_COPIES = 2
# More cells than these make a fit take minutes, whatever the rows.
_MANY_CELLS = 1 << 18
# Cuts are rounded to as few digits as move them by at most this share of the temperature.
_ROUNDING = 0.01
# What lies farther from the mean, in standard deviations, counts as here: it can be multiplied.
_FARTHEST = 1e100


@dataclass(frozen=True, eq=False)
class BinnedColumns:
    """Columns of a fit.

    Parameters
    ----------
    n_features : int
        Number of columns.
    feature_names : list of str or None
        Their names.
    features : ndarray of shape (m,)
        The columns that are cut, ascending.
    shift, scale : ndarray of shape (n_features,)
        Mean and standard deviation of every column (1 if that is 0).
    lower, upper : ndarray of shape (n_features,)
        Least and greatest value of every column.
    """

    n_features: int
    feature_names: list[str] | None
    features: IntArray
    shift: FloatArray
    scale: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(
        cls,
        table: Table,
        feature_mask: Any,
        n_cuts: int,
        n_clusters: int,
        batch_size: int,
        n_jobs: int,
    ) -> Self:
        """Choose the columns: those of the mask that are not constant.

        Raises
        ------
        ValueError
            If the mask is none, or there would be too many cells.

        Warns
        -----
        UserWarning
            If there are so many cells that training takes long.
        """
        mask = _read_mask(feature_mask, table)
        shift, scale = _engine.column_units(table.data, None, True, n_jobs)
        lower, upper = _ranges(table)
        features = np.flatnonzero(mask & (lower < upper))
        _check_n_cells(n_cuts, len(features), n_clusters, batch_size)
        return cls(table.n_features, table.feature_names, features, shift, scale, lower, upper)

    def only(self, kept: list[int]) -> BinnedColumns:
        """Give the columns with fewer that are cut: those at these places."""
        return replace(self, features=self.features[kept])

    def widened(self, table: Table) -> BinnedColumns:
        """Give the columns with ranges that hold more rows."""
        lower, upper = _ranges(table)
        return replace(
            self, lower=np.minimum(self.lower, lower), upper=np.maximum(self.upper, upper)
        )

    def model_rows(self, table: Table) -> FloatArray:
        """Give the columns that are cut in their units, of shape (m, n_samples)."""
        rows = np.empty((len(self.features), table.n_samples))
        for row, feature in zip(rows, self.features.tolist(), strict=True):
            column = column_of(table, feature)
            with np.errstate(over="ignore"):
                np.subtract(column, self.shift[feature], out=row, dtype=np.float64)
                row /= self.scale[feature]
            np.clip(row, -_FARTHEST, _FARTHEST, out=row)
        return rows

    # ---- cuts -----------------------------------------------------------------------------

    def readable_cuts(self, model: SoftBins) -> FloatArray:
        """Give a model's cuts in the columns' own units, ascending, with few digits.

        They are as the model has them but for 1/100 of the temperature.
        """
        slack = _ROUNDING * min(model.temperature, 1.0)
        own = np.empty_like(model.cuts)
        for feature, cuts, out in zip(self.features.tolist(), model.cuts, own, strict=True):
            scale = float(self.scale[feature])
            for place, cut in enumerate(np.sort(cuts * scale + self.shift[feature]).tolist()):
                out[place] = _short(cut, slack * scale)
        return own

    def given_cuts(self, init: Any, n_cuts: int) -> FloatArray:
        """Read cuts to start from, in own units, and give those of the columns that are cut.

        Raises
        ------
        TypeError
            If they are not numbers.
        ValueError
            If their shape is not (n_features, n_cuts), or one is NaN or infinite.
        """
        given = np.asarray(init)
        if given.dtype.kind not in "iuf":
            raise TypeError(f"The cuts given as init must be numbers. Got dtype {given.dtype}.")
        if given.shape != (self.n_features, n_cuts):
            raise ValueError(
                f"The cuts given as init have the shape {given.shape}; with {self.n_features} "
                f"columns and n_cuts={n_cuts} it must be ({self.n_features}, {n_cuts})."
            )
        own = given[self.features].astype(np.float64)
        for feature, cuts in zip(self.features.tolist(), own, strict=True):
            if not np.isfinite(cuts).all():
                raise ValueError(
                    f"The cuts given as init are {cuts.tolist()} in column "
                    f"{quoted_column(self.feature_names, feature)}, which is cut: they must be "
                    "finite there (feature_mask leaves columns out)."
                )
        return np.sort(self.in_units(own), axis=1)

    def in_units(self, own_cuts: FloatArray) -> FloatArray:
        """Give cuts in own units as the model has them."""
        shift, scale = self.shift[self.features], self.scale[self.features]
        with np.errstate(over="ignore"):
            cuts = (own_cuts - shift[:, np.newaxis]) / scale[:, np.newaxis]
        return np.clip(cuts, -_FARTHEST, _FARTHEST)

    def cell_table(
        self,
        weights: FloatArray,
        own_cuts: FloatArray,
        counted: tuple[IntArray, IntArray, IntArray] | None = None,
    ) -> CellTable:
        """Make the hard rules: a cell is of the cluster for which it has the greatest weight.

        A cut that no row of the fit lies beyond takes no part, nor one at the least or greatest
        value: rows are then taken to be on the side where all rows are.

        Parameters
        ----------
        weights : ndarray of shape (L, k)
            Of the model.
        own_cuts : ndarray of shape (m, T)
            In own units, ascending.
        counted : tuple of three ndarrays, default=None
            Cells with rows, their rows, and those that the model puts in the cell's cluster.
        """
        lower, upper = self.lower[self.features, np.newaxis], self.upper[self.features, np.newaxis]
        is_active = (own_cuts > lower) & (own_cuts < upper)
        below = (own_cuts <= lower).sum(axis=1)
        n_active = is_active.sum(axis=1)
        n_bins = own_cuts.shape[1] + 1
        tensor = weights.reshape((n_bins,) * len(own_cuts) + (-1,))
        held = tuple(
            slice(start, start + n + 1)
            for start, n in zip(below.tolist(), n_active.tolist(), strict=True)
        )
        used = np.flatnonzero(n_active)
        empty = np.empty(0, dtype=np.int64)
        occupied, n_rows, n_agreeing = counted or (empty, empty, empty)
        return CellTable(
            features=self.features[used],
            cuts=tuple(own_cuts[number][is_active[number]] for number in used.tolist()),
            clusters=tensor[held].argmax(axis=-1).ravel(),
            occupied=occupied,
            n_rows=n_rows,
            n_agreeing=n_agreeing,
            n_clusters=weights.shape[1],
            feature_names=None if self.feature_names is None else tuple(self.feature_names),
        )

    def counted_table(
        self, weights: FloatArray, own_cuts: FloatArray, table: Table, labels: IntArray
    ) -> CellTable:
        """Make the hard rules, and count the rows of each cell."""
        empty = self.cell_table(weights, own_cuts)
        cells = cells_of(table, empty.features, empty.cuts)
        occupied, place, n_rows = np.unique(cells, return_inverse=True, return_counts=True)
        agrees = empty.clusters[cells] == labels
        n_agreeing = np.bincount(place, weights=agrees, minlength=len(occupied)).astype(np.int64)
        return replace(empty, occupied=occupied, n_rows=n_rows, n_agreeing=n_agreeing)


def _ranges(table: Table) -> tuple[FloatArray, FloatArray]:
    columns = [column_of(table, feature) for feature in range(table.n_features)]
    lower = np.array([float(column.min()) for column in columns])
    return lower, np.array([float(column.max()) for column in columns])


def _read_mask(feature_mask: Any, table: Table) -> npt.NDArray[np.bool_]:
    """Read `feature_mask`: True for the columns to cut."""
    if feature_mask is None:
        return np.ones(table.n_features, dtype=bool)
    mask = np.asarray(feature_mask)
    if mask.dtype != np.bool_:
        raise TypeError(
            f"feature_mask must hold True and False, one a column. Got dtype {mask.dtype} instead."
        )
    if mask.shape != (table.n_features,):
        raise ValueError(
            f"feature_mask has the shape {mask.shape}; X has {table.n_features} columns: it must "
            f"have the shape ({table.n_features},)."
        )
    if not mask.any():
        raise ValueError("feature_mask is False for every column: no column is left to cut.")
    return mask


def _check_n_cells(n_cuts: int, n_features: int, n_clusters: int, batch_size: int) -> None:
    """Raise ValueError if the cells of so many features are too many."""
    cells = (n_cuts + 1) ** n_features
    shown = f"{cells:,}" if cells < 10**15 else f"about 1e{int(math.log10(cells))}"
    columns = format_count(n_features, "column")
    made = f"{columns} in {n_cuts + 1} bins each make {shown} cells"
    fewer = f"Cut fewer columns (feature_mask), or less often (n_cuts={n_cuts})."
    of_batch = batch_size * numbers_of_row(n_features, n_cuts + 1, n_clusters)
    check_size(
        _COPIES * cells * n_clusters + _BATCH_COPIES * of_batch,
        f"{made}; their weights for {n_clusters} clusters, with all that training needs,",
        fewer,
    )
    if cells > _MANY_CELLS:
        warnings.warn(
            f"{made}, and every step of the training goes through all of them: it may take long. "
            f"{fewer}",
            UserWarning,
            stacklevel=5,
        )


def _short(number: float, slack: float) -> float:
    """Give the number with the fewest digits at most `slack` from it."""
    first = -math.floor(math.log10(slack)) - 1 if slack > 0 else 400
    for digits in range(first, first + 3):
        rounded = round(number, min(digits, 400))
        if abs(rounded - number) <= slack:
            return rounded + 0.0
    return number
