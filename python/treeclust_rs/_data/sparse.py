"""Sparse rows: read as they are, by rows, and never made dense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse

from .._util import BoolArray, FloatArray, IntArray, column_name
from .arrays import check_shape
from .kinds import MIXED_TABLES


@dataclass(frozen=True, slots=True)
class SparseTable:
    """The features of a data set as a matrix in compressed sparse rows.

    Attributes
    ----------
    indptr : ndarray of shape (n_samples + 1,), int64
        Where the cells of each row start.
    indices : ndarray of shape (n_cells,), int64
        Columns, ascending within a row, each only once.
    values : ndarray of shape (n_cells,), float64
        Cells; those that are not stored are 0.
    n_samples, n_features : int
        Both at least 1.
    feature_names : list of str or None
        None, because sparse matrices have no names, until a fit is given some.
    """

    indptr: IntArray
    indices: IntArray
    values: FloatArray
    n_samples: int
    n_features: int
    feature_names: list[str] | None = None

    # What a `Table` may have besides numbers, and sparse rows never do.
    kinds: ClassVar[None] = None
    levels: ClassVar[None] = None
    gaps: ClassVar[None] = None
    unknown: ClassVar[None] = None
    is_plain: ClassVar[bool] = True

    @property
    def data(self) -> tuple[Any, Any, Any, int]:
        """The matrix as the core takes it."""
        return self.indptr, self.indices, self.values, self.n_features

    def matrix(self) -> csr_array:
        """Return the rows as a scipy.sparse array."""
        shape = (self.n_samples, self.n_features)
        return csr_array((self.values, self.indices, self.indptr), shape=shape)

    def take(self, mask: BoolArray) -> SparseTable:
        """Copy the rows for which the mask is true."""
        sizes = np.diff(self.indptr)
        cells = np.repeat(mask, sizes)
        indptr = np.concatenate([[0], np.cumsum(sizes[mask])]).astype(np.int64)
        n_kept = int(mask.sum())
        indices, values = self.indices[cells], self.values[cells]
        return SparseTable(indptr, indices, values, n_kept, self.n_features, self.feature_names)

    def cell(self, row: int, column: int) -> float:
        """Return one cell."""
        start, stop = self.indptr[row], self.indptr[row + 1]
        at = start + np.searchsorted(self.indices[start:stop], column)
        return float(self.values[at]) if at < stop and self.indices[at] == column else 0.0


def align_sparse(
    X: Any, n_features: int, *, estimator_name: str, needed: IntArray | None = None
) -> SparseTable:
    """Read the sparse input of a predict, see `read_sparse`; columns are matched by position.

    Raises as `read_sparse`; ValueError also for another number of columns than the fit's.
    """
    table = read_sparse(X, estimator_name=estimator_name, needed=needed)
    if table.n_features != n_features:
        raise ValueError(
            f"X has {table.n_features} features, but {estimator_name} is expecting "
            f"{n_features} features as input."
        )
    return table


def read_sparse(X: Any, *, estimator_name: str, needed: IntArray | None = None) -> SparseTable:
    """Read a scipy.sparse matrix or array of numbers.

    Parameters
    ----------
    X : sparse matrix or array of shape (n_samples, n_features)
        In any format; it is brought to compressed sparse rows, a copy if it is in another.
    estimator_name : str
        Named in messages.
    needed : ndarray of int or None, default=None
        Indices of the columns whose cells must be finite; None: all.

    Returns
    -------
    SparseTable

    Raises
    ------
    ValueError
        If X has no rows or columns, or holds NaN, inf or complex numbers.
    """
    assert issparse(X), "callers check this"
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a sparse {X.ndim}D array instead.")
    check_shape(X.shape, estimator_name)
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X has dtype {X.dtype}.")
    by_rows = X.tocsr()
    if not by_rows.has_canonical_format:
        if by_rows is X:
            by_rows = by_rows.copy()
        by_rows.sum_duplicates()
    values = by_rows.data.astype(np.float64, copy=False)
    bad = np.flatnonzero(~np.isfinite(values))
    if needed is not None:
        bad = bad[np.isin(by_rows.indices[bad], needed)]
    if len(bad):
        row = int(np.searchsorted(by_rows.indptr, bad[0], side="right")) - 1
        word = "NaN" if np.isnan(values[bad]).any() else "inf"
        column = column_name(None, by_rows.indices[bad[0]])
        raise ValueError(
            f"Input X contains {word}: {len(bad)} stored cells, the first in row {row}, column "
            f"{column} (rows count from 0). Fill these cells, or drop their rows or columns."
            + (f" In dense tables {MIXED_TABLES}" if word == "NaN" else "")
        )
    return SparseTable(
        by_rows.indptr.astype(np.int64, copy=False),
        by_rows.indices.astype(np.int64, copy=False),
        values,
        int(X.shape[0]),
        int(X.shape[1]),
    )
