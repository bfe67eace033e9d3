"""What `scale` says: the unit of each column, and a remark on columns that decide alone."""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _engine
from .._util import FloatArray, column_name, is_number, listed, quoted_column
from .levels import (
    form_of_many,
    form_of_many_times,
    form_of_numbers,
    numbers_meant,
    times_meant,
)
from .sparse import SparseTable
from .sums import weights_of_levels
from .table import (
    Table,
    column_of,
    columns_of,
    level_codes,
    level_columns,
    missing_cells,
    take_rows,
)

Scale = str | Mapping[str, float] | npt.ArrayLike | None
"""As the estimators take it: "standard", "robust", units by column, or None."""

# Interquartile range of a normal distribution in its standard deviations.
_IQR_OF_NORMAL = 1.3489795003921634
# Cumulated weights this close to a quarter of their sum, relative to the sum, are equal to it.
_SAME_WEIGHT = 1e-10
# A column with more than this share of the variance decides the clusters almost alone.
_DOMINANT = 0.99
# Rows that tell the variances of the columns well enough for a warning.
_MAX_ROWS = 1_000
# Rows of batches that tell whether the cells of a column are all different.
_MAX_ROWS_OF_IDENTIFIERS = 100_000
_IDENTIFIER = re.compile(r"(?:^|[^A-Za-z])[Ii][Dd]$|[a-z](?:Id|ID)$")


class ColumnWarning(UserWarning):
    """A column has nearly all of the variance, or looks like an identifier or numbers as text."""


class TextNumbersWarning(ColumnWarning):
    """A column of text looks like numbers."""


def plain_scale(scale: Scale, names: Sequence[str] | None = None) -> Any:
    """Return `scale` as model files hold it: a word, None, a list or an object of numbers.

    `names`: those of the columns, for messages.

    Raises
    ------
    ValueError
        If a unit is not a number, not above 0 or not finite.
    """
    if scale is None or isinstance(scale, str):
        return scale
    if isinstance(scale, Mapping):
        return {name: _unit(unit, repr(name)) for name, unit in scale.items()}
    units = np.asarray(scale)
    if units.ndim != 1:
        raise ValueError(
            f"scale has shape {units.shape}: give one unit per column, or a mapping from names of "
            "columns to their units."
        )
    if names is not None and len(names) != len(units):
        names = None
    return [_unit(unit, quoted_column(names, i)) for i, unit in enumerate(units.tolist())]


def _unit(unit: Any, column: str) -> float:
    if not is_number(unit, Real) or not 0 < unit <= sys.float_info.max:
        raise ValueError(
            f"scale has the unit {unit!r} for column {column}; units are finite numbers above 0."
        )
    return float(unit)


def given_scale(scale: Scale, n_features: int, names: Sequence[str] | None) -> FloatArray:
    """Return the units that the user gives by column; columns that a mapping lacks have 1.

    Columns without names are x0, x1, ..., as in texts.

    Raises
    ------
    ValueError
        If a unit is not a finite number above 0, an array has not one unit per column, or a mapping
        names a column that there is not.
    """
    plain = plain_scale(scale, names)
    if isinstance(plain, list):
        if len(plain) != n_features:
            raise ValueError(
                f"scale has {len(plain)} units, but X has {n_features} columns: give one unit per "
                "column, or a mapping from names of columns to their units."
            )
        return np.array(plain)
    known = names or [column_name(None, i) for i in range(n_features)]
    unknown = [repr(name) for name in plain if name not in known]
    if unknown:
        raise ValueError(
            f"scale names what X does not have: {listed(unknown, 'column')}. The columns are "
            f"{listed([repr(name) for name in known], 'column')}."
        )
    return np.array([plain.get(name, 1.0) for name in known])


def robust_scale(table: Table, weight: FloatArray | None, deviation: FloatArray) -> FloatArray:
    """Return the interquartile range / 1.349 of every column, or its `deviation` where that is 0.

    The division makes it the standard deviation of normal columns. Quartiles are inverses of the
    distribution function, averaged where two values are (numpy's "averaged_inverted_cdf"): a weight
    of 2 counts as the row twice. Levels have none.
    """
    scale, of_levels = np.zeros(table.n_features), level_columns(table)
    for f in range(table.n_features):
        column, of_cells = _observed(table, f, weight)
        if f not in of_levels and len(column):
            first, third = _quartiles(column.astype(np.float64), of_cells)
            scale[f] = third / _IQR_OF_NORMAL - first / _IQR_OF_NORMAL
    return np.where((scale > 0) & np.isfinite(scale), scale, deviation)


def sparse_robust_scale(
    rows: SparseTable, weight: FloatArray | None, deviation: FloatArray
) -> FloatArray:
    """Return `robust_scale` of sparse columns, cells that are not stored being 0.

    Both quartiles are 0 where fewer than a quarter of the cells are not. Of the other columns, at
    most four times as many as a row has cells, one at a time is dense.
    """
    is_cell = rows.values != 0.0
    weights = np.ones(rows.n_samples) if weight is None else weight / weight.max()
    of_cells = np.repeat(weights, np.diff(rows.indptr)) * is_cell
    stored = np.bincount(rows.indices, of_cells, minlength=rows.n_features)
    scale = np.zeros(rows.n_features)
    often = np.flatnonzero(stored >= (0.25 - _SAME_WEIGHT) * weights.sum())
    columns = rows.matrix().tocsc()
    for f in often.tolist():
        first, third = _quartiles(columns[:, [f]].toarray().ravel(), weight)
        scale[f] = third / _IQR_OF_NORMAL - first / _IQR_OF_NORMAL
    return np.where((scale > 0) & np.isfinite(scale), scale, deviation)


def _observed(
    table: Table, feature: int, weight: FloatArray | None
) -> tuple[npt.NDArray[Any], FloatArray | None]:
    """Return the cells of a column that are not missing, and their weights."""
    column, missing = column_of(table, feature), missing_cells(table, feature)
    if missing is None:
        return column, weight
    return column[~missing], None if weight is None else weight[~missing]


def level_deviation(
    codes: npt.NDArray[np.uint8], n_levels: int, weight: FloatArray | None
) -> float:
    """Return the standard deviation of levels that are 1 apart: 0 if all rows have the same.

    It is the root of ``(1 - sum of squared shares) / 2``, the shares those of the observed cells.
    """
    return deviation_of_levels(weights_of_levels(codes, n_levels, weight, 1)[0])


def deviation_of_levels(counts: FloatArray) -> float:
    """Return the `level_deviation` of a column by the weight of each level."""
    if np.count_nonzero(counts) < 2:
        return 0.0
    shares = counts / counts.sum()
    return math.sqrt(float((shares * (1.0 - shares)).sum()) / 2.0)


def level_deviations(table: Table, weight: FloatArray | None) -> dict[int, float]:
    """Return by column the standard deviation of its levels."""
    return {
        f: level_deviation(level_codes(table, f), table.n_levels(f), weight)
        for f in level_columns(table)
    }


def _quartiles(column: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Return the first and the third quartile of a column, by weight."""
    quarters = np.array([0.25, 0.75])
    with np.errstate(over="ignore", invalid="ignore"):
        if weight is None:
            ranks = quarters * len(column)
            places = np.array([np.ceil(ranks) - 1.0, np.floor(ranks)]).astype(np.intp)
            below, above = np.partition(column, np.unique(places))[places]
            return np.asarray(above - (above - below) * 0.5)
        order = np.argsort(column, kind="stable")
        column, summed = column[order], np.cumsum(weight[order] / weight.max())
        slack = _SAME_WEIGHT * summed[-1]
        # Between the value that reaches the quarter and the one that exceeds it.
        below, above = (
            column[np.searchsorted(summed, quarters * summed[-1] + step)]
            for step in (-slack, slack)
        )
        return np.asarray(below / 2.0 + above / 2.0)


def deviations(
    rows: Table | SparseTable, weight: FloatArray | None, n_jobs: _engine.Jobs
) -> FloatArray:
    """Return the standard deviation of every column, by weight; 0 for a constant column."""
    if isinstance(rows, SparseTable):
        return sparse_deviations(rows, weight)
    scale = _engine.column_units(rows.data, weight, True, n_jobs)[1]
    for f in np.flatnonzero(scale == 1.0).tolist():  # the core's unit for a constant column
        column, _ = _observed(rows, f, None)
        if (column == column[:1]).all():
            scale[f] = 0.0
    for f, deviation in level_deviations(rows, weight).items():
        scale[f] = deviation
    return scale


def sparse_deviations(rows: SparseTable, weight: FloatArray | None) -> FloatArray:
    """Return the standard deviation of every sparse column, by weight; 0 for a constant one."""
    d, columns = rows.n_features, rows.indices
    weights = np.ones(rows.n_samples) if weight is None else weight / weight.max()
    of_cells, total = np.repeat(weights, np.diff(rows.indptr)), float(weights.sum())
    largest = np.zeros(d)
    np.maximum.at(largest, columns, np.abs(rows.values))
    # Cells are divided by the column's largest one: no square leaves the range of doubles.
    values = rows.values / np.where(largest > 0, largest, 1.0)[columns]
    mean = np.bincount(columns, of_cells * values, minlength=d) / total
    squares = np.bincount(columns, of_cells * (values - mean[columns]) ** 2, minlength=d)
    not_stored = np.maximum(total - np.bincount(columns, of_cells, minlength=d), 0.0)
    return np.asarray(np.sqrt((squares + not_stored * mean**2) / total) * largest)


def warn_of_columns(
    table: Table,
    weight: FloatArray | None,
    units: FloatArray,
    scale: Scale,
    *,
    compares_columns: bool = True,
    stacklevel: int = 4,
) -> None:
    """Warn, once, of a column with nearly all of the variance, identifiers and numbers as text.

    The variance is that of at most 1,000 rows at even distances.

    Parameters
    ----------
    table : Table
        The rows of a fit.
    weight : ndarray of shape (n_samples,) or None
        Their weights.
    units : ndarray of shape (n_features,)
        What `scale` makes of it.
    scale : str, mapping, array or None
        The parameter. A column whose unit the user gives is meant to count as it does.
    compares_columns : bool, default=True
        Whether the fit compares rows by these columns in these units, so that variance matters.
    stacklevel : int, default=4
        Of the warning.

    Warns
    -----
    ColumnWarning
        Names the columns, the share of the variance and the way out; TextNumbersWarning of text
        that looks like numbers.
    """
    for remark in _numbers_as_text(table):
        warnings.warn(remark, TextNumbersWarning, stacklevel=stacklevel)
    remarks = [*_identifiers(table), *_times_as_text(table)]
    if compares_columns and not (isinstance(scale, str) and scale == "standard"):
        remarks += _dominance(table, _sampled_deviations(table, weight) / units, scale)
    if remarks:
        warnings.warn(" ".join(remarks), ColumnWarning, stacklevel=stacklevel)


class IdentifiersSoFar:
    """Which columns of integers look like identifiers, of rows that come in batches.

    The first 100,000 rows or so tell.
    """

    def __init__(self) -> None:
        self._names: Sequence[str] = []
        self._cells: dict[int, list[npt.NDArray[Any]]] = {}
        self._n_rows = 0

    def add(self, table: Table) -> None:
        """Look at more rows of a fit."""
        if not self._n_rows:
            self._names = table.feature_names or []
            self._cells = {f: [] for f in _named_as_identifiers(self._names)}
        if self._n_rows >= _MAX_ROWS_OF_IDENTIFIERS:
            return
        self._n_rows += table.n_samples
        for f in level_columns(table):
            self._cells.pop(f, None)  # at most 255 levels: as good as never an identifier
        for f, cells in self._cells.items():
            cells.append(_observed(table, f, None)[0].copy())

    def warn(self, *, stacklevel: int) -> None:
        """Warn, as `warn_of_columns`, of the columns that do."""
        places = [f for f, cells in self._cells.items() if _are_enumeration(np.concatenate(cells))]
        if remarks := _identifier_remarks(self._names, places, set()):
            warnings.warn(remarks[0], ColumnWarning, stacklevel=stacklevel)


def _sampled_deviations(table: Table, weight: FloatArray | None) -> FloatArray:
    """Return the standard deviation of every column, of at most 1,000 rows at even distances."""
    some = slice(None, None, -(-table.n_samples // _MAX_ROWS))
    if not table.is_plain:
        sample = np.zeros(table.n_samples, dtype=bool)
        sample[some] = True
        return _deviations_of_few(
            take_rows(table, sample), None if weight is None else weight[some]
        )
    rows = (
        np.stack([column[some] for column in columns_of(table)], axis=1)
        if isinstance(table.data, list)
        else table.data[some]
    )
    weights = None if weight is None else weight[some] / weight.max()
    with np.errstate(over="ignore", invalid="ignore"):
        # Counted from the first row, so that a constant column has 0. In one array: new ones of
        # this size would take longer than their numbers.
        cells = rows.astype(np.float64)
        cells -= cells[0].copy()
        cells -= np.average(cells, axis=0, weights=weights)
        np.square(cells, out=cells)
        return np.asarray(np.sqrt(np.average(cells, axis=0, weights=weights)))


def _deviations_of_few(table: Table, weight: FloatArray | None) -> FloatArray:
    """Return the standard deviation of the observed cells of every column."""
    spread = np.zeros(table.n_features)
    for f in range(table.n_features):
        column, weights = _observed(table, f, weight)
        if len(column):
            with np.errstate(over="ignore", invalid="ignore"):
                cells = column.astype(np.float64) - float(column[0])
                weights = None if weights is None else weights / weights.max()
                cells -= np.average(cells, weights=weights)
                spread[f] = np.sqrt(np.average(np.square(cells), weights=weights))
    for f, deviation in level_deviations(table, weight).items():
        spread[f] = deviation
    return spread


def _dominance(table: Table, spread: FloatArray, scale: Scale) -> list[str]:
    """Return a remark if one of several columns has nearly all of the variance."""
    top = int(spread.argmax())
    if (spread > 0).sum() < 2 or not spread[top] < math.inf:
        return []
    share = 1.0 / float(((spread / spread[top]) ** 2).sum())
    name = table.feature_names[top] if table.feature_names else column_name(None, top)
    is_given = name in scale if isinstance(scale, Mapping) else not isinstance(scale, str | None)
    if share <= _DOMINANT or is_given:
        return []
    return [
        f"Column {quoted_column(table.feature_names, top)} has {_per_cent(share)} of the variance "
        "and decides almost alone what is similar. "
        f'Use scale="standard" to let all columns count alike, or scale={{{name!r}: 1}} if this is '
        "meant."
    ]


def _per_cent(share: float) -> str:
    """Return a share near 1 in per cent, rounded down: 100 % stands for exactly 1."""
    return f"{math.floor(1000 * share) / 10:g} %"


def _identifiers(table: Table) -> list[str]:
    """Return a remark if columns look like identifiers."""
    names = table.feature_names or []
    columns = {f: _observed(table, f, None)[0] for f in _named_as_identifiers(names)}
    places = [f for f, cells in columns.items() if _are_enumeration(cells)]
    return _identifier_remarks(names, places, set(places).intersection(level_columns(table)))


def _named_as_identifiers(names: Sequence[str]) -> list[int]:
    """Return the columns that have names of identifiers."""
    return [f for f, name in enumerate(names) if _IDENTIFIER.search(name)]


def _identifier_remarks(
    names: Sequence[str], places: Sequence[int], of_text: set[int]
) -> list[str]:
    """Return a remark on columns that look like identifiers, if there are any.

    `of_text`: those of them that hold text.
    """
    found = [quoted_column(names, f) for f in places]
    if not found:
        return []
    what = "text" if len(of_text) == len(found) else "integers or text" if of_text else "integers"
    if len(found) == 1:
        subject, out = f"Column {found[0]} looks like an identifier", "leave it out of X"
    else:
        subject = f"Columns {listed(found, 'column')} look like identifiers"
        out = "leave them out of X"
    return [f"{subject} ({what}, all different, and named so): {out}."]


def _numbers_as_text(table: Table) -> list[str]:
    """Return a remark if columns hold many texts that look like numbers."""
    columns = [(f, known) for f, known in enumerate(table.levels or ()) if known]
    if not any(map(form_of_many, (known for _, known in columns))):
        return []
    found, forms = {}, {}
    for f, known in columns:
        # Those of few texts, too: they are most likely meant as the others are.
        if form := form_of_numbers(known):
            found[column_name(table.feature_names, f)] = known
            forms[table.feature_names[f] if table.feature_names else f] = form
    quoted = listed([repr(name) for name in found], "column")
    example = max(next(iter(found.values())), key=len)
    subject = f"Column {quoted} holds" if len(found) == 1 else f"Columns {quoted} hold"
    return [
        f"{subject} text that looks like numbers, as {example!r:.60}; every text is a level of "
        f"its own. {numbers_meant(forms)}"
    ]


def _times_as_text(table: Table) -> list[str]:
    """Return a remark if columns hold many texts that are dates or times."""
    names, quoted, forms = table.feature_names, [], {}
    for f, known in enumerate(table.levels or ()):
        if known is not None and (form := form_of_many_times(known)):
            quoted.append(quoted_column(names, f))
            forms[names[f] if names else f] = form
    if not forms:
        return []
    which = listed(quoted, "column")
    subject = f"Column {which} holds" if len(forms) == 1 else f"Columns {which} hold"
    return [f"{subject} dates or times as text; every text is a level. {times_meant(forms)}"]


def _are_enumeration(cells: npt.NDArray[Any]) -> bool:
    """Whether cells are integers, or codes of text, no two of them equal."""
    if len(cells) < 2 or cells.dtype.kind not in "iuf":
        return False
    if cells.dtype.kind == "f" and not (cells == np.rint(cells)).all():
        return False
    return len(np.unique(cells)) == len(cells)
