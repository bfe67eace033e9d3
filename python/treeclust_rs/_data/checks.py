"""Checks of the values of tables and of the weights of rows."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _engine
from .._engine import MISSING_LEVEL
from .._util import FloatArray, IntArray, format_count, listed, quoted_column, warn_user
from .arrays import count_words, filled, missing_message
from .table import Table, column_of, level_codes, level_columns


def check_finite(
    table: Table, n_jobs: int | _engine.Threads, needed: IntArray | None = None
) -> None:
    """Raise ValueError if a column holds NaN or inf.

    Parameters
    ----------
    table : Table
        The table.
    n_jobs : int or Threads
        Passed to the core.
    needed : ndarray of int or None, default=None
        Indices of the columns to check; None checks all.

    Raises
    ------
    ValueError
        Names the columns, how many NaN and inf each holds, and the first row with one.
    """
    found = _non_finite(table, n_jobs, needed)
    if found:
        raise ValueError(_non_finite_message(table, found))


def count_gaps(
    table: Table, n_jobs: int | _engine.Threads, needed: IntArray | None = None
) -> Table:
    """Return a table that knows where cells are missing.

    Parameters
    ----------
    table : Table
        Read with ``mixed=True``.
    n_jobs : int or Threads
        Passed to the core.
    needed : ndarray of int or None, default=None
        Indices of the columns to look at; None: all.

    Returns
    -------
    Table
        The same cells, with `gaps`.

    Raises
    ------
    ValueError
        If a column holds inf: names the columns, how many each holds and the first row with one.
    """
    found = _non_finite(table, n_jobs, needed)
    if any(cells.n_inf for cells in found):
        infinite = [cells._replace(n_nan=0) for cells in found if cells.n_inf]
        for place, cells in enumerate(infinite):
            rows = np.flatnonzero(np.isinf(column_of(table, cells.column)))
            infinite[place] = cells._replace(first_row=int(rows[0]))
        raise ValueError(_non_finite_message(table, infinite))
    counts = [0] * table.n_features
    for cells in found:
        counts[cells.column] = cells.n_nan
    for column in level_columns(table):
        if needed is None or column in needed:
            counts[column] = int(np.count_nonzero(level_codes(table, column) == MISSING_LEVEL))
    return replace(table, gaps=tuple(counts)) if any(counts) else table


def warn_of_gaps(table: Table, fitted_gaps: Sequence[int] | None) -> None:
    """Warn once if cells are missing in columns that had none missing in the fit.

    `fitted_gaps`: the `gaps` of the fitted table.
    """
    counts = list(table.gaps or ())
    if counts:  # of unknown levels there is another warning
        for f, cells in (table.unknown or {}).items():
            counts[f] = int(np.count_nonzero(cells.codes < 0))
    found = [
        gap_words(table.feature_names, f, count)
        for f, count in enumerate(counts)
        if count and not (fitted_gaps and fitted_gaps[f])
    ]
    if found:
        warn_user(gaps_message(found))


def gap_words(names: Sequence[str] | None, column: int, count: int) -> str:
    """Return the words for the number of missing cells in a column."""
    return f"column {quoted_column(names, column)} has {format_count(count, 'missing cell')}"


def gaps_message(found: list[str]) -> str:
    """Return the warning of gaps in columns that had none in the fit; `found`: words for each."""
    return (
        f"X has gaps where the fit had none: {listed(found, 'column', '; ')}. Such rows go the way "
        "that each test of the tree has for missing cells."
    )


def _non_finite(
    table: Table, n_jobs: int | _engine.Threads, needed: IntArray | None
) -> list[_engine.NonFinite]:
    """Return the columns of numbers with NaN or infinite cells, of all or those needed."""
    columns: list[int] | range = range(table.n_features)
    data: _engine.Columns = table.data
    if isinstance(data, list):
        columns = [f for f, column in enumerate(data) if _is_float(column)]
        data = [data[f] for f in columns]
    if not columns or (not isinstance(data, list) and not _is_float(data)):
        return []
    found = _engine.find_non_finite(data, n_jobs)
    found = [cells._replace(column=columns[cells.column]) for cells in found]
    return found if needed is None else [cells for cells in found if cells.column in needed]


def _is_float(column: _engine.ColumnData) -> bool:
    return not isinstance(column, _engine.LevelColumn) and column.dtype.kind == "f"


def _non_finite_message(table: Table, found: list[_engine.NonFinite]) -> str:
    problems = [
        (
            f"column {quoted_column(table.feature_names, column)}",
            count_words((n_nan, "NaN"), (n_inf, "inf")),
            first_row,
        )
        for column, n_nan, n_inf, first_row in found
    ]
    kinds = [
        word
        for word, count in (
            ("NaN", sum(n_nan for _, n_nan, _, _ in found)),
            ("inf", sum(n_inf for _, _, n_inf, _ in found)),
        )
        if count
    ]
    return missing_message(" and ".join(kinds), problems)


LEAST_WEIGHT, MOST_WEIGHT = 1e-150, 1e150
"""The weights whose squares float64 holds: kernel sums multiply the weights of two rows."""


def check_sample_weight(sample_weight: Any, n_samples: int) -> FloatArray | None:
    """Check the weights of the rows.

    Parameters
    ----------
    sample_weight : None, number, or array-like of shape (n_samples,)
        One number is the weight of every row.
    n_samples : int
        The number of rows.

    Returns
    -------
    ndarray of shape (n_samples,), float64, or None
        Contiguous; None stays None. May share memory with the input.

    Raises
    ------
    TypeError
        If the weights are not numbers.
    ValueError
        If a weight is negative, NaN, inf or null (the first such row is named), if all are zero, if
        one is neither 0 nor from 1e-150 to 1e150, or if their number is not `n_samples`.
    """
    if sample_weight is None:
        return None
    pandas = sys.modules.get("pandas")
    try:
        if pandas is not None and isinstance(sample_weight, pandas.Series):
            sample_weight = sample_weight.to_numpy(dtype=np.float64, na_value=np.nan)
        values = filled(sample_weight, "sample_weight")
        if values.dtype.kind not in "biufO":
            raise TypeError(f"got dtype {values.dtype}.")
        if values.ndim == 0:
            values = np.full(n_samples, values)
        weight = np.ascontiguousarray(values, dtype=np.float64)
    except TypeError as error:
        raise TypeError(f"sample_weight must hold numbers: {error}") from error
    if values.ndim > 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got {values.ndim}D array of shape "
            f"{values.shape}. Expected {n_samples} weights, one a row of X."
        )
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has {weight.shape[0]} entries, but X has {n_samples} rows: give one "
            f"weight a row."
        )
    for what, wrong in (
        ("NaN (or null)", np.isnan),
        ("inf", np.isinf),
        ("negative values", lambda values: values < 0),
    ):
        rows = np.flatnonzero(wrong(weight))
        if len(rows):
            raise ValueError(
                f"sample_weight contains {what}: {len(rows)} of {n_samples}, the first in row "
                f"{rows[0]} (counting from 0). Weights must be finite and not negative."
            )
    if not weight.any():
        raise ValueError(
            f"sample_weight is zero in all {n_samples} rows: at least one weight must be positive."
        )
    rows = np.flatnonzero((weight > 0) & ((weight < LEAST_WEIGHT) | (weight > MOST_WEIGHT)))
    if len(rows):
        raise ValueError(
            f"sample_weight has {format_count(len(rows), 'entry', 'entries')} outside of "
            f"{LEAST_WEIGHT:g} to {MOST_WEIGHT:g}, the first, {float(weight[rows[0]])!r}, in row "
            f"{rows[0]} (counting from 0): products of such weights vanish or overflow in float64. "
            "Divide all weights by their mean, and give rows that are not to count the weight 0."
        )
    return weight
