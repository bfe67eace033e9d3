"""The columns that Douglas cuts: indices, units, ranges, and cuts of few digits."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ... import _engine
from ..._data import Scale, Table, Units, column_of
from ..._util import FloatArray, IntArray, check_size, format_count, quoted_column
from ..._util.arrays import MAX_ARRAY_BYTES
from .cell_table import CellTable, cells_of
from .soft_bins import SoftBins, floats_per_row

# Arrays of the size of the weights in a fit: the weights, those of the best start, their gradient,
# Adam's two means, and temporaries; and arrays of the size of a batch's forward pass.
_WEIGHT_COPIES = 7
_BATCH_COPIES = 2
# More cells make a fit of any rows take minutes: it warns.
_MAX_QUICK_CELLS = 1 << 18
# Rounding to fewer digits moves a cut by at most this share of the temperature.
_MAX_ROUNDING = 0.01
# Values are clipped to so many standard deviations, so that their products are finite.
_MAX_DEVIATIONS = 1e100


@dataclass(frozen=True, eq=False)
class ColumnBins:
    """Columns of a fit, and which of them have bins.

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
    units : ndarray of shape (n_features,)
        Units that the objective takes the columns in.
    """

    n_features: int
    feature_names: list[str] | None
    features: IntArray
    shift: FloatArray
    scale: FloatArray
    lower: FloatArray
    upper: FloatArray
    units: FloatArray

    @classmethod
    def of(
        cls,
        table: Table,
        feature_mask: Any,
        n_cuts: int,
        n_clusters: int,
        batch_size: int,
        scale: Scale,
        n_jobs: int,
    ) -> Self:
        """Return the columns of a table, with bins for those of the mask that are not constant.

        Raises
        ------
        ValueError
            If the mask or the scale is not one, or there would be too many cells.

        Warns
        -----
        UserWarning
            If there are so many cells that training takes long.
        """
        mask = _read_mask(feature_mask, table)
        shift, deviation = _engine.column_units(table.data, None, True, n_jobs)
        units = Units.of(table, None, scale, n_jobs).scale
        lower, upper = _ranges(table)
        features = np.flatnonzero(mask & (lower < upper))
        _check_n_cells(n_cuts, len(features), n_clusters, batch_size)
        names = table.feature_names
        return cls(table.n_features, names, features, shift, deviation, lower, upper, units)

    def only(self, kept: list[int]) -> ColumnBins:
        """Return the columns with bins only for those at the indices `kept` of `features`."""
        return replace(self, features=self.features[kept])

    def widen(self, table: Table) -> ColumnBins:
        """Return the columns with ranges that include the rows of a table."""
        lower, upper = _ranges(table)
        return replace(
            self, lower=np.minimum(self.lower, lower), upper=np.maximum(self.upper, upper)
        )

    def model_rows(self, table: Table) -> FloatArray:
        """Return the columns that are cut in their units, of shape (m, n_samples)."""
        rows = np.empty((len(self.features), table.n_samples))
        for row, feature in zip(rows, self.features.tolist(), strict=True):
            column = column_of(table, feature)
            with np.errstate(over="ignore"):
                np.subtract(column, self.shift[feature], out=row, dtype=np.float64)
                row /= self.scale[feature]
            np.clip(row, -_MAX_DEVIATIONS, _MAX_DEVIATIONS, out=row)
        return rows

    # ---- cuts -----------------------------------------------------------------------------

    def readable_cuts(self, model: SoftBins) -> FloatArray:
        """Return a model's cuts in the columns' own units, ascending, with few digits.

        They differ from the model's by at most 1/100 of the temperature.
        """
        slack = _MAX_ROUNDING * min(model.temperature, 1.0)
        own = np.empty_like(model.cuts)
        for feature, cuts, out in zip(self.features.tolist(), model.cuts, own, strict=True):
            scale = float(self.scale[feature])
            for place, cut in enumerate(np.sort(cuts * scale + self.shift[feature]).tolist()):
                out[place] = _short(cut, slack * scale)
        return own

    def round_cuts(self, model: SoftBins) -> FloatArray:
        """Round a model's cuts in place; return them as `readable_cuts`."""
        cuts = self.readable_cuts(model)
        model.cuts[:] = self.in_units(cuts)
        return cuts

    def first_cuts(self, init: Any, n_cuts: int) -> FloatArray:
        """Return the cuts given as `init`, of the columns that are cut, in the model's units.

        Raises
        ------
        TypeError
            If they are not numbers.
        ValueError
            If their shape is not (n_features, n_cuts), or one is NaN or infinite.
        """
        cuts = np.asarray(init)
        if cuts.dtype.kind not in "iuf":
            raise TypeError(f"The cuts given as init must be numbers. Got dtype {cuts.dtype}.")
        if cuts.shape != (self.n_features, n_cuts):
            raise ValueError(
                f"The cuts given as init have the shape {cuts.shape}; with {self.n_features} "
                f"columns and n_cuts={n_cuts} it must be ({self.n_features}, {n_cuts})."
            )
        own = cuts[self.features].astype(np.float64)
        for feature, row in zip(self.features.tolist(), own, strict=True):
            if not np.isfinite(row).all():
                raise ValueError(
                    f"The cuts given as init are {row.tolist()} in column "
                    f"{quoted_column(self.feature_names, feature)}, which is cut: they must be "
                    "finite there (feature_mask leaves columns out)."
                )
        return np.sort(self.in_units(own), axis=1)

    def in_units(self, own_cuts: FloatArray) -> FloatArray:
        """Return cuts given in own units in the model's units."""
        shift, scale = self.shift[self.features], self.scale[self.features]
        with np.errstate(over="ignore"):
            cuts = (own_cuts - shift[:, np.newaxis]) / scale[:, np.newaxis]
        return np.clip(cuts, -_MAX_DEVIATIONS, _MAX_DEVIATIONS)

    def cell_table(
        self,
        weights: FloatArray,
        own_cuts: FloatArray,
        counted: tuple[IntArray, IntArray, IntArray] | None = None,
    ) -> CellTable:
        """Build the hard rules: a cell has the cluster of its greatest weight.

        Cuts beyond which no row of the fit lies, or at the least or greatest value, are left out:
        rows count as on the side where all rows of the fit are.

        Parameters
        ----------
        weights : ndarray of shape (L, k)
            Of the model.
        own_cuts : ndarray of shape (m, T)
            In own units, ascending.
        counted : tuple of three ndarrays, default=None
            Cells with rows, numbers of their rows, and of those predicted in the cell's cluster.
        """
        lower, upper = self.lower[self.features, np.newaxis], self.upper[self.features, np.newaxis]
        is_active = (own_cuts > lower) & (own_cuts < upper)
        below = (own_cuts <= lower).sum(axis=1)
        n_active = is_active.sum(axis=1)
        n_bins = own_cuts.shape[1] + 1
        tensor = weights.reshape((n_bins,) * len(own_cuts) + (-1,))
        active = tuple(
            slice(start, start + n + 1)
            for start, n in zip(below.tolist(), n_active.tolist(), strict=True)
        )
        used = np.flatnonzero(n_active)
        empty = np.empty(0, dtype=np.int64)
        occupied, n_rows, n_agreeing = counted or (empty, empty, empty)
        return CellTable(
            features=self.features[used],
            cuts=tuple(own_cuts[number][is_active[number]] for number in used.tolist()),
            clusters=tensor[active].argmax(axis=-1).ravel(),
            occupied=occupied,
            n_rows=n_rows,
            n_agreeing=n_agreeing,
            n_clusters=weights.shape[1],
            feature_names=None if self.feature_names is None else tuple(self.feature_names),
        )

    def counted_table(
        self, weights: FloatArray, own_cuts: FloatArray, table: Table, labels: IntArray
    ) -> CellTable:
        """Build the hard rules, and count the rows of each cell."""
        empty = self.cell_table(weights, own_cuts)
        cells = cells_of(table, empty.features, empty.cuts)
        occupied, place, n_rows = np.unique(cells, return_inverse=True, return_counts=True)
        agrees = empty.clusters[cells] == labels
        n_agreeing = np.bincount(place, weights=agrees, minlength=len(occupied)).astype(np.int64)
        return replace(empty, occupied=occupied, n_rows=n_rows, n_agreeing=n_agreeing)


def _ranges(table: Table) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest value of every column."""
    columns = [column_of(table, feature) for feature in range(table.n_features)]
    lower = np.array([float(column.min()) for column in columns])
    return lower, np.array([float(column.max()) for column in columns])


def _read_mask(feature_mask: Any, table: Table) -> npt.NDArray[np.bool_]:
    """Return `feature_mask` as an array: True for the columns to cut."""
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
    """Raise ValueError if there are too many cells for memory; warn of a long training."""

    def n_floats(n_features: int, n_cuts: int) -> int:
        of_batch = batch_size * floats_per_row(n_features, n_cuts + 1, n_clusters)
        cells: int = (n_cuts + 1) ** n_features
        return _WEIGHT_COPIES * cells * n_clusters + _BATCH_COPIES * of_batch

    def fewer(fits: Callable[[int, int], bool]) -> str:
        """Return what to do so that the sizes `fits`."""
        columns = _largest(lambda m: fits(m, n_cuts), n_features)
        cuts = _largest(lambda t: fits(n_features, t), n_cuts)
        ways = [f"at most {format_count(columns, 'column')} (feature_mask)"] if columns else []
        ways += [f"each at most {format_count(cuts, 'time')} (n_cuts)"] if cuts else []
        return f"Cut {', or '.join(ways)}." if ways else "Take fewer clusters."

    cells = (n_cuts + 1) ** n_features
    shown = f"{cells:,}" if cells < 10**15 else f"about 1e{int(math.log10(cells))}"
    columns = format_count(n_features, "column")
    made = f"{columns} in {n_cuts + 1} bins each make {shown} cells"
    check_size(
        n_floats(n_features, n_cuts),
        f"{made}; their weights for {n_clusters} clusters, with all that training needs,",
        fewer(lambda m, t: 8 * n_floats(m, t) <= MAX_ARRAY_BYTES),
    )
    if cells > _MAX_QUICK_CELLS:
        warnings.warn(
            f"{made}, and every step of the training goes through all of them: it may take long. "
            f"{fewer(lambda m, t: (t + 1) ** m <= _MAX_QUICK_CELLS)}",
            UserWarning,
            stacklevel=5,
        )


def _largest(fits: Callable[[int], bool], end: int) -> int:
    """Return the largest number below `end` that fits, where all smaller ones do; 0: none."""
    return bisect_left(range(1, end), True, key=lambda number: not fits(number))


def _short(number: float, slack: float) -> float:
    """Return the number with the fewest digits at most `slack` from `number`."""
    first = -math.floor(math.log10(slack)) - 1 if slack > 0 else 400
    for digits in range(first, first + 3):
        rounded = round(number, min(digits, 400))
        if abs(rounded - number) <= slack:
            return rounded + 0.0
    return number
