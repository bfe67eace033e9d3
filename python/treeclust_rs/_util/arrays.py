"""Types, sizes and shapes of numpy arrays; labels, of which -1 marks noise."""

import math
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint32]

MAX_ARRAY_BYTES = 4 * 2**30
"""Largest array allocated for kernels, distances and cells: a kernel matrix of 23,170 rows."""


def check_size(n_numbers: int, what: str, instead: str) -> None:
    """Raise ValueError if so many float64 take more than `MAX_ARRAY_BYTES`.

    `what` begins the message and names the array; `instead` ends it and names the alternative.
    """
    n_bytes = 8 * n_numbers
    if n_bytes > MAX_ARRAY_BYTES:
        size = n_bytes / 2**30 if n_bytes < 2**1000 else float("inf")
        raise ValueError(
            f"{what} would take {size:,.3g} GiB; the limit is "
            f"{MAX_ARRAY_BYTES / 2**30:,.3g} GiB. {instead}"
        )


def check_pairs(n_rows: int, what: str, parameter: str) -> None:
    """Raise ValueError if a float64 for every two rows takes more than `MAX_ARRAY_BYTES`.

    `what` is computed of them; `parameter` limits the rows.
    """
    most = math.isqrt(MAX_ARRAY_BYTES // 8)
    advice = f"Take at most {most:,} at once ({parameter})."
    check_size(n_rows * n_rows, f"{what} of {n_rows:,} rows", advice)


def as_rows(X: npt.ArrayLike) -> FloatArray:
    """Return X as float64 of two dimensions in C order, without a copy if it is that already."""
    rows = np.ascontiguousarray(X, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"Expected rows of a table, got an array of {rows.ndim} dimensions.")
    return rows


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Yield neighbouring blocks of rows of some 2^20 numbers, `width` for each row.

    Work on one of them takes milliseconds: Ctrl-C is noticed between two, and temporary arrays stay
    small. In one call, a pass over a gigabyte takes seconds on a busy machine.
    """
    size = max((1 << 20) // max(width, 1), 1)
    for start in range(0, n_rows, size):
        yield slice(start, start + size)


def copied(rows: FloatArray) -> FloatArray:
    """Return a copy in C order, made block by block."""
    copy = np.empty_like(rows, order="C")
    for block in row_blocks(*rows.shape):
        copy[block] = rows[block]
    return copy


def weighted_sum(values: FloatArray, weight: FloatArray | None) -> float:
    """Return the sum of the values, weighted if there are weights; it may overflow.

    The bits do not depend on BLAS, whose sums have another order on every kind of processor.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return float(values.sum() if weight is None else (weight * values).sum())


def mean_row(rows: FloatArray) -> FloatArray:
    """Return the mean of the rows, with 0 in columns where it overflows."""
    with np.errstate(all="ignore"):
        mean = rows.mean(axis=0)
    return np.where(np.isfinite(mean), mean, 0.0)


def distinct(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the distinct values, ascending, and the place among them of every value.

    As ``np.unique(values, return_inverse=True)``, but integers that span less than their number, as
    labels do, are counted and not sorted: a fifth of the time.
    """
    if values.dtype.kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < len(values) and high <= np.iinfo(np.int64).max:
            offsets = values.astype(np.int64) - low
            occurs = np.zeros(high - low + 1, dtype=bool)
            occurs[offsets] = True
            found = np.flatnonzero(occurs) + low
            return found.astype(values.dtype), (np.cumsum(occurs) - 1)[offsets]
    return np.unique(values, return_inverse=True)


NOISE = -1
"""The label of rows that belong to no cluster, as a number or as a text."""


def is_noise(labels: npt.NDArray[Any]) -> BoolArray:
    """Mark the rows labelled -1: the number, or the text that arrays and files make of it."""
    kind = labels.dtype.kind
    if kind in "if":
        return np.asarray(labels == NOISE)
    if kind == "O":
        return np.array([_marks_noise(label) for label in labels.tolist()], dtype=bool)
    return np.asarray(labels == str(NOISE)) if kind in "UT" else np.zeros(labels.shape, dtype=bool)


def _marks_noise(label: object) -> bool:
    # pandas' NA is neither equal to a number nor unequal.
    return (
        label == str(NOISE)
        if isinstance(label, str)
        else isinstance(label, Real) and label == NOISE
    )
