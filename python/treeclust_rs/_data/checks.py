"""Checks of the values of tables and of the weights of rows."""

import sys
from typing import Any

import numpy as np

from .. import _engine
from .._util import FloatArray, IntArray, format_count, quoted_column
from .arrays import count_words, filled, missing_message
from .table import Table, columns_of


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
    numbers = columns_of(table) if isinstance(table.data, list) else [table.data]
    if all(column.dtype.kind != "f" for column in numbers):
        return
    found = _engine.find_non_finite(table.data, n_jobs)
    if needed is not None:
        found = [cells for cells in found if cells.column in needed]
    if not found:
        return
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
    raise ValueError(missing_message(" and ".join(kinds), problems))


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
