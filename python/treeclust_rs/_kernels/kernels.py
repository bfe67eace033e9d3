"""Kernels and their matrices, in blocks of bounded memory.

scikit-learn computes the kernels that it has. Distances of few columns are computed row against
row, not from squared norms, so that equal rows have distance 0 and the origin of the columns does
not matter.

Every block is computed by one thread: the bits of a matrix do not depend on the number of threads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise

from .._util import (
    FloatArray,
    check_size,
    format_count,
    map_in_order,
    mean_row,
    one_blas_thread,
    quoted_column,
)
from .sparse_rows import (
    Matrix,
    as_matrix,
    inner_products,
    largest_cells,
    sparse_directions,
    squared_distances_of,
    squared_norms,
    with_cells,
)

ALIASES = {"gaussian": "rbf", "poly": "polynomial"}
"""Other names of kernels."""

PLAIN_KERNELS = (
    "additive_chi2",
    "chi2",
    "cosine",
    "epsilon",
    "hellinger",
    "histogram_intersection",
    "laplacian",
    "linear",
    "polynomial",
    "rbf",
)
"""Names of kernels, without aliases."""
KERNELS = tuple(sorted((*PLAIN_KERNELS, *ALIASES)))
"""Names `make_kernel` knows; it also takes a callable."""

SPARSE_KERNELS = frozenset({"cosine", "hellinger", "linear", "polynomial", "rbf"})
"""Names of the kernels of sparse rows, without aliases."""

SPARSE_FEATURES = frozenset({"cosine", "hellinger", "linear"})
"""Names of those that have features of sparse rows, see `Kernel.explicit_features`."""

ORIGIN_FREE = frozenset({"epsilon", "gaussian", "laplacian", "linear", "rbf"})
"""Names of kernels whose best partitions do not change when all rows are moved alike."""
_NOT_NEGATIVE = frozenset({"additive_chi2", "chi2", "hellinger", "histogram_intersection"})
_UNIT_DIAGONAL = frozenset({"chi2", "epsilon", "laplacian", "rbf"})

# Numbers of a block of kernel values: 8 MiB.
_MAX_BLOCK = 1 << 20
# Columns of a tile that are transposed at a time, so that both sides stay in cache.
_MAX_STRIP = 128
# Fewer kernel values are computed without threads.
_MIN_PARALLEL = 1 << 16
# Squared distances from norms have an error of some 8 roundings of the largest squared norm. With
# gamma times that norm up to this, an entry of the rbf kernel is right to 1e-12.
_MAX_GAMMA_NORM = 500.0
# Up to so many columns, distances row against row cost no more than the exponential.
_MAX_DIRECT_COLUMNS = 32
# The epsilon-neighbourhood holds distances up to epsilon times this.
_EPSILON_EDGE = 1.0 + 1e-12


# ---- the kernel ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Kernel:
    """Kernel with all its parameters; built by `make_kernel`.

    Attributes
    ----------
    name : str
        One of `KERNELS` without the aliases, or "callable".
    gamma : float or None
        Positive; None for kernels without it.
    degree, coef0 : float
        Of the polynomial kernel.
    params : mapping
        `epsilon` or `beta`, or the keyword arguments of the callable.
    function : callable or None
        The kernel of two rows, if the name is "callable".

    Notes
    -----
    With rows x and y, the kernel k(x, y) is, by name,

    - linear: <x, y>
    - polynomial (poly): (gamma <x, y> + coef0)^degree
    - cosine: <x, y> / (||x|| ||y||); 0 where a row is all zeros
    - rbf (gaussian): exp(-gamma ||x - y||^2)
    - laplacian: exp(-gamma ||x - y||_1)
    - chi2: exp(-gamma sum (x_f - y_f)^2 / (x_f + y_f)), 0/0 = 0
    - additive_chi2: sum 2 x_f y_f / (x_f + y_f), 0/0 = 0. scikit-learn's `additive_chi2_kernel` is
      twice this minus sum x_f + y_f: not positive semidefinite, but its distances are those of this
      kernel times a constant, with the same best partitions.
    - histogram_intersection: sum min(x_f^beta, y_f^beta), beta = 1 by default
    - hellinger: sum sqrt(x_f y_f)
    - epsilon: 1 if ||x - y|| <= epsilon (1 + 1e-12), else 0; not positive semidefinite in general
    - callable: ``function(x, y, **params)``, a number for two rows of shape (n_features,), as
      scikit-learn's `pairwise_kernels` calls it. It must be symmetric: for a
      Gram matrix it is called once per pair of rows.
    """

    name: str
    gamma: float | None = None
    degree: float = 3.0
    coef0: float = 1.0
    params: Mapping[str, Any] = field(default_factory=dict)
    function: Callable[..., float] | None = None

    @property
    def label(self) -> str:
        """The kernel's name, or the callable's."""
        if self.function is None:
            return self.name
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def takes_negative(self) -> bool:
        """Whether it is defined on rows with negative cells."""
        return self.name not in _NOT_NEGATIVE

    def check(
        self, X: npt.ArrayLike | csr_array, feature_names: Sequence[str] | None = None
    ) -> None:
        """Raise ValueError if the kernel is not defined on the rows.

        Parameters
        ----------
        X : array-like or csr_array of shape (n_samples, n_features)
            Finite numbers; sparse rows for `SPARSE_KERNELS` alone.
        feature_names : sequence of str, default=None
            Names of the columns, for the message.

        Raises
        ------
        ValueError
            If a cell is negative and the kernel is one of additive_chi2, chi2,
            histogram_intersection and hellinger. Names the column, the row and the value.
        """
        if self.takes_negative:
            return
        rows = as_matrix(X)
        negative = _negative_columns(rows)
        if not len(negative):
            return
        column = int(negative[0])
        cells = rows[:, [column]].toarray()[:, 0] if issparse(rows) else rows[:, column]
        row = int(np.flatnonzero(cells < 0)[0])
        label = quoted_column(feature_names, column)
        others = len(negative) - 1
        more = f" ({format_count(others, 'more column')} with such cells)" if others else ""
        raise ValueError(
            f"The kernel {self.name!r} needs values >= 0, but column {label} holds "
            f"{float(cells[row])!r} in row {row} (counting from 0){more}. Shift or drop "
            "such columns, or use another kernel."
        )

    def matrix(
        self,
        X: npt.ArrayLike | csr_array,
        Y: npt.ArrayLike | csr_array | None = None,
        *,
        n_jobs: int = 1,
    ) -> FloatArray:
        """Compute the kernel of every row of X with every row of Y.

        Parameters
        ----------
        X : array-like or csr_array of shape (n_samples_X, n_features)
            Finite numbers; sparse rows for `SPARSE_KERNELS` alone.
        Y : array-like or csr_array of shape (n_samples_Y, n_features), default=None
            Sparse if X is. None: X. The matrix is then exactly symmetric, and its diagonal is
            `diagonal(X)`.
        n_jobs : int, default=1
            Threads, at least 1. A callable is called by one thread.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples_Y), float64, C order

        Raises
        ------
        ValueError
            If the matrix would be larger than `MAX_ARRAY_BYTES` (before it is allocated), if the
            kernel is not defined on the rows, or if it is NaN or inf for a pair of them.
        TypeError
            If a callable returns no number.
        """
        rows = as_matrix(X)
        columns = rows if Y is None else as_matrix(Y)
        n_rows, n_columns = rows.shape[0], columns.shape[0]
        check_size(
            n_rows * n_columns,
            f"The kernel matrix of {n_rows:,} x {n_columns:,} rows",
            'approximation="nystroem" or "rpcholesky" keeps n_components numbers a row instead.',
        )
        self.check(rows)
        self.check(columns)
        out = np.empty((n_rows, n_columns))
        if Y is not None:
            self._fill(out, rows, columns, n_jobs)
            return out

        def fill(start: int, stop: int) -> None:
            # The rows from the diagonal on; what lies below it is their mirror image.
            tile = self.block(rows[start:stop], rows[start:], start, start)
            size = stop - start
            _mirror(tile[:, :size])
            out[start:stop, start:] = tile
            for c in range(size, tile.shape[1], _MAX_STRIP):
                out[start + c : start + c + _MAX_STRIP, start:stop] = tile[:, c : c + _MAX_STRIP].T

        self.in_blocks(fill, n_rows, n_rows, n_jobs)
        np.fill_diagonal(out, self.diagonal(rows))
        return out

    def diagonal(self, X: npt.ArrayLike | csr_array) -> FloatArray:
        """Compute the kernel of every row with itself.

        Parameters
        ----------
        X : array-like or csr_array of shape (n_samples, n_features)
            Finite numbers; sparse rows for `SPARSE_KERNELS` alone.

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Exactly 1 for chi2, epsilon, laplacian and rbf.

        Raises
        ------
        TypeError, ValueError
            As for `matrix`.
        """
        rows = as_matrix(X)
        self.check(rows)
        if self.name in _UNIT_DIAGONAL:
            return np.ones(rows.shape[0])
        if self.name == "cosine":
            is_something = largest_cells(rows) > 0 if issparse(rows) else rows.any(axis=1)
            return np.asarray(is_something, dtype=np.float64)
        values: npt.NDArray[Any]
        with np.errstate(all="ignore"):
            match self.name:
                case "linear":
                    values = _own_products(rows)
                case "polynomial":
                    assert self.gamma is not None, "make_kernel computes it"
                    values = (self.gamma * _own_products(rows) + self.coef0) ** self.degree
                case "histogram_intersection":
                    values = self._powers(rows).sum(axis=1)
                case "callable":
                    values = np.array([self._call(row, row) for row in rows])
                case _:  # hellinger, additive_chi2
                    values = np.asarray(rows.sum(axis=1)).ravel()
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise ValueError(self._not_finite(float(values[bad[0]]), int(bad[0]), int(bad[0])))
        return np.asarray(values, dtype=np.float64)

    def explicit_features(self, X: npt.ArrayLike | csr_array) -> Matrix | None:
        """Return features of the rows whose inner products are the kernel, for kernels with such.

        Parameters
        ----------
        X : array-like or csr_array of shape (n_samples, n_features)
            Finite numbers; sparse rows for `SPARSE_KERNELS` alone.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64, C order, or None
            Not None for the kernels linear (X itself), cosine and hellinger; sparse if X is. May
            share memory with X.

        Raises
        ------
        ValueError
            If the kernel is not defined on the rows.
        """
        rows = as_matrix(X)
        self.check(rows)
        match self.name:
            case "linear":
                return rows
            case "cosine":
                return sparse_directions(rows) if issparse(rows) else _directions(rows)
            case "hellinger":
                if issparse(rows):
                    return with_cells(rows, np.sqrt(rows.data))
                roots: FloatArray = np.sqrt(rows)
                return roots
            case _:
                return None

    # ---- blocks ---------------------------------------------------------------------------

    def _fill(self, out: FloatArray, rows: Matrix, columns: Matrix, n_jobs: int) -> None:
        def fill(start: int, stop: int) -> None:
            out[start:stop] = self.block(rows[start:stop], columns, start, 0)

        self.in_blocks(fill, rows.shape[0], columns.shape[0], n_jobs)

    def in_blocks(
        self, work: Callable[[int, int], None], n_rows: int, width: int, n_jobs: int
    ) -> None:
        """Call ``work(start, stop)`` for all rows, block by block, with BLAS on one thread.

        A block has some 2^20 numbers, `width` for each row; the blocks depend on these alone.
        """
        size = max(_MAX_BLOCK // max(width, 1), 1)
        starts = range(0, n_rows, size)
        if self.function is not None or n_rows * width < _MIN_PARALLEL:
            n_jobs = 1

        def block(start: int) -> None:
            work(start, min(start + size, n_rows))

        with one_blas_thread():
            for _ in map_in_order(block, starts, n_jobs):
                pass

    def block(
        self, rows: Matrix, columns: Matrix, first_row: int = 0, first_column: int = 0
    ) -> FloatArray:
        """Compute the kernel of two blocks of rows; raise ValueError if it is NaN or inf.

        Both are sparse or none is. `first_row` and `first_column` are where the blocks begin, for
        the message.
        """
        with np.errstate(all="ignore"):
            values = self._sparse_values if issparse(rows) else self._values
            tile = values(rows, columns)
        finite = np.isfinite(tile)
        if not finite.all():
            i, j = (int(places[0]) for places in np.nonzero(~finite))
            raise ValueError(self._not_finite(float(tile[i, j]), first_row + i, first_column + j))
        return tile

    def _sparse_values(self, rows: csr_array, columns: csr_array) -> FloatArray:
        tile: FloatArray
        match self.name:
            case "rbf":
                assert self.gamma is not None, "make_kernel computes it"
                tile = squared_distances_of(rows, columns)
                tile *= -self.gamma
                np.exp(tile, out=tile)
            case "polynomial":
                assert self.gamma is not None, "make_kernel computes it"
                tile = inner_products(rows, columns)
                tile *= self.gamma
                tile += self.coef0
                tile **= self.degree
            case _:
                features = self.explicit_features(rows), self.explicit_features(columns)
                tile = inner_products(*features)
                if self.name == "cosine":
                    np.clip(tile, -1.0, 1.0, out=tile)
        return tile

    def _values(self, rows: FloatArray, columns: FloatArray) -> FloatArray:
        tile: FloatArray
        match self.name:
            case "linear":
                return rows @ columns.T
            case "polynomial":
                tile = pairwise.polynomial_kernel(
                    rows, columns, degree=self.degree, gamma=self.gamma, coef0=self.coef0
                )
            case "cosine":
                tile = _directions(rows) @ _directions(columns).T
                np.clip(tile, -1.0, 1.0, out=tile)
            case "rbf":
                assert self.gamma is not None, "make_kernel computes it"
                tile = _squared_distances(rows, columns, self.gamma)
                tile *= -self.gamma
                np.exp(tile, out=tile)
            case "laplacian":
                tile = pairwise.laplacian_kernel(rows, columns, gamma=self.gamma)
            case "epsilon":
                near = cdist(rows, columns) <= self.params["epsilon"] * _EPSILON_EDGE
                tile = near.astype(np.float64)
            case "chi2":
                tile = pairwise.chi2_kernel(*_writeable(rows, columns), gamma=self.gamma)
            case "additive_chi2":
                tile = pairwise.additive_chi2_kernel(*_writeable(rows, columns))
                tile += rows.sum(axis=1)[:, None] + columns.sum(axis=1)
                tile *= 0.5
                np.maximum(tile, 0.0, out=tile)  # 0 may be missed by a rounding
            case "hellinger":
                tile = np.sqrt(rows) @ np.sqrt(columns).T
            case "histogram_intersection":
                left, right = self._powers(rows), self._powers(columns)
                tile = np.zeros((len(rows), len(columns)))
                smaller = np.empty_like(tile)
                for f in range(rows.shape[1]):
                    tile += np.minimum.outer(left[:, f], right[:, f], out=smaller)
            case _:
                tile = np.zeros((len(rows), len(columns)))
                same_start = rows.ctypes.data == columns.ctypes.data
                mirrored = same_start and len(rows) <= len(columns)
                for i, row in enumerate(rows):
                    for j in range(i if mirrored else 0, len(columns)):
                        tile[i, j] = self._call(row, columns[j])
                if mirrored:
                    _mirror(tile[:, : len(rows)])
        return tile

    def _powers(self, rows: FloatArray) -> FloatArray:
        beta = self.params["beta"]
        return rows if beta == 1.0 else rows**beta

    def _call(self, row: FloatArray, column: FloatArray) -> float:
        assert self.function is not None, "only for callables"
        value = self.function(row, column, **self.params)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise TypeError(
                f"The kernel {self.label!r} must give a number for two rows of shape "
                f"({len(row)},). Got {type(value).__name__} instead; a function that gives whole "
                'matrices is used with kernel="precomputed" and gram=.'
            ) from None

    def _not_finite(self, value: float, row: int, column: int) -> str:
        return (
            f"The kernel {self.label!r} of the rows {row} and {column} is {value} (rows count "
            "from 0): numbers overflow float64, or it is not defined there. Rescale the columns or "
            "change the kernel's parameters."
        )


def _negative_columns(rows: Matrix) -> npt.NDArray[np.integer]:
    """Return the columns with negative cells."""
    if issparse(rows):
        return np.unique(rows.indices[rows.data < 0])
    return np.flatnonzero(rows.min(axis=0, initial=0.0) < 0)


def _own_products(rows: Matrix) -> FloatArray:
    """Return the inner product of every row with itself."""
    if issparse(rows):
        return squared_norms(rows)
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _directions(rows: FloatArray) -> FloatArray:
    """Return the rows at length 1, or 0; scaled first by their largest value, against overflow."""
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    scaled = rows / np.where(largest > 0, largest, 1.0)
    length = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    directions: FloatArray = scaled / np.where(length > 0, length, 1.0)
    return directions


def _mirror(square: FloatArray) -> None:
    """Copy the upper triangle to the lower one."""
    square[...] = np.triu(square) + np.triu(square, 1).T


def _writeable(*arrays: FloatArray) -> list[FloatArray]:
    """Copy read-only arrays, which scikit-learn's chi2 kernels refuse."""
    return [array if array.flags.writeable else array.copy() for array in arrays]


def _squared_distances(rows: FloatArray, columns: FloatArray, gamma: float) -> FloatArray:
    """Return squared Euclidean distances, exact to some 1e-12 / gamma."""
    if rows.shape[1] > _MAX_DIRECT_COLUMNS:
        shift = mean_row(columns)
        left, right = rows - shift, columns - shift
        largest = max(
            float(np.einsum("ij,ij->i", part, part).max(initial=0.0)) for part in (left, right)
        )
        if gamma * largest <= _MAX_GAMMA_NORM:
            return np.asarray(pairwise.euclidean_distances(left, right, squared=True))
    return np.asarray(cdist(rows, columns, "sqeuclidean"))
