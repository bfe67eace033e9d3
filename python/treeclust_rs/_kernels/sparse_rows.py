"""Sparse rows as kernels compare them: products, norms and directions; nothing is made dense.

A product adds up the columns in ascending order, as a squared norm does: equal rows have the
distance 0.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse

from .._data import SparseTable
from .._util import FloatArray, as_rows

Matrix: TypeAlias = Any
"""Rows as a kernel compares them: a `FloatArray` in C order, or a csr_array."""


def as_matrix(X: npt.ArrayLike | csr_array) -> Matrix:
    """Return sparse rows as they are, and anything else as `as_rows` does."""
    return X if issparse(X) else as_rows(X)


def squared_norms(rows: csr_array) -> FloatArray:
    """Return the squared length of every row."""
    return np.asarray(rows.multiply(rows) @ np.ones(rows.shape[1]))


def inner_products(rows: csr_array, columns: csr_array) -> FloatArray:
    """Return the inner product of every row with every one of `columns`; the latter may be many."""
    return np.ascontiguousarray((columns @ rows.T).toarray().T)


def squared_distances_of(rows: csr_array, columns: csr_array) -> FloatArray:
    """Return squared Euclidean distances, right to some 1e-15 of the squared norms."""
    norms = squared_norms(rows)[:, np.newaxis] + squared_norms(columns)
    distances = norms - 2.0 * inner_products(rows, columns)
    # Differences of sums of products: what rounding may have made of 0 is 0.
    distances[distances <= 4.0 * np.finfo(np.float64).eps * norms] = 0.0
    return distances


def largest_cells(rows: csr_array) -> FloatArray:
    """Return the largest absolute value of every row."""
    return np.asarray(abs(rows).max(axis=1).toarray(), dtype=np.float64).ravel()


def sparse_directions(rows: csr_array) -> csr_array:
    """Return the rows at length 1, or 0; scaled first by their largest value, against overflow."""
    scaled = _divided(rows, largest_cells(rows))
    return _divided(scaled, np.sqrt(squared_norms(scaled)))


def centered_where_full(rows: csr_array, weight: FloatArray | None) -> tuple[csr_array, FloatArray]:
    """Return rows whose columns without zeros are about their means, and these means, or 0.

    Other columns stay where they are, so that nothing is stored that was not. `weight`: of the
    rows; None: ones.
    """
    n, d = rows.shape
    mean = np.zeros(d)
    full = np.flatnonzero(np.bincount(rows.indices[rows.data != 0.0], minlength=d) == n)
    if len(full) == 0:
        return rows, mean
    with np.errstate(over="ignore", invalid="ignore"):  # the core checks for overflow
        columns = rows[:, full].toarray()
        mean[full] = np.average(columns, axis=0, weights=weight)
        return with_cells(rows, rows.data - mean[rows.indices]), mean


def with_cells(rows: csr_array, cells: FloatArray) -> csr_array:
    """Return rows that have other numbers in their stored cells."""
    return csr_array((cells, rows.indices, rows.indptr), shape=rows.shape)


def table_of(rows: csr_array) -> SparseTable:
    """Return the rows as the core reads them; their columns ascend."""
    indptr, indices = (places.astype(np.int64) for places in (rows.indptr, rows.indices))
    return SparseTable(indptr, indices, rows.data, *rows.shape)


def _divided(rows: csr_array, by: FloatArray) -> csr_array:
    """Return each row divided by its number; those of 0 stay."""
    divisors = np.where(by > 0, by, 1.0)
    return with_cells(rows, rows.data / np.repeat(divisors, np.diff(rows.indptr)))
