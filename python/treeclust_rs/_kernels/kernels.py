"""Kernels and their matrices, in blocks of bounded memory.

This is the only place that knows what a kernel is. Where scikit-learn has the kernel it is used;
distances of few columns are taken row against row, not from squared norms, so that equal rows have
distance 0 and the origin of the columns does not matter.

Every block is computed by one thread in the same way, whatever the number of threads: the bits of
a matrix do not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import (
    additive_chi2_kernel,
    chi2_kernel,
    euclidean_distances,
    laplacian_kernel,
    polynomial_kernel,
)

from .._util.arrays import FloatArray, as_rows, check_size, mean_row
from .._util.threads import one_blas_thread
from .._util.validation import is_number
from .._util.words import format_count

__all__ = [
    "ALIASES",
    "KERNELS",
    "ORIGIN_FREE",
    "Kernel",
    "check_gram",
    "make_kernel",
]


ALIASES = {"gaussian": "rbf", "poly": "polynomial"}
"""Other names of kernels."""

_PLAIN = (
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
KERNELS = tuple(sorted((*_PLAIN, *ALIASES)))
"""Names `make_kernel` knows; it also takes a callable."""

ORIGIN_FREE = frozenset({"epsilon", "gaussian", "laplacian", "linear", "rbf"})
"""Names of kernels whose best partitions do not change when all rows are moved alike."""

_WITH_GAMMA = frozenset({"chi2", "laplacian", "polynomial", "rbf"})
_NOT_NEGATIVE = frozenset({"additive_chi2", "chi2", "hellinger", "histogram_intersection"})
_UNIT_DIAGONAL = frozenset({"chi2", "epsilon", "laplacian", "rbf"})
# What kernel_params may hold, and the default (None: must be given).
_PARAMS: dict[str, dict[str, float | None]] = {
    "epsilon": {"epsilon": None},
    "histogram_intersection": {"beta": 1.0},
}

# Entries of a temporary block: 8 MiB of float64.
_BLOCK = 1 << 20
# Columns of a tile that are transposed at a time, so that both sides stay in cache.
_STRIP = 128
# The smallest tile whose rows a thread pool is started for.
_PARALLEL = 1 << 16
# From norms, squared distances have an error of some 8 roundings of the largest squared norm. With
# gamma times that norm up to this, an entry of the rbf kernel is right to 1e-12.
_MAX_NORM = 500.0
# Up to so many columns the distances themselves cost no more than the exponential.
_FEW_COLUMNS = 32
# Within the epsilon-neighbourhood are distances up to epsilon times this.
_EPSILON_EDGE = 1.0 + 1e-12
# A Gram matrix is symmetric if it is so to this share of its largest entry.
_ASYMMETRY = 1e-10


# ---- the kernel ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters settled; made by `make_kernel`.

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
        The kernel of two rows, where the name is "callable".

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
      twice this less sum x_f + y_f: not positive semidefinite, but it gives the same partitions,
      since its distances are those of this kernel times a constant.
    - histogram_intersection: sum min(x_f^beta, y_f^beta), beta = 1 by default
    - hellinger: sum sqrt(x_f y_f)
    - epsilon: 1 if ||x - y|| <= epsilon (1 + 1e-12), else 0; not positive semidefinite in general
    - callable: ``function(x, y, **params)``, a number for two rows of shape (n_features,), as
      scikit-learn's `pairwise_kernels` calls it. It must be symmetric: of each pair of rows of a
      Gram matrix it is asked once.
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

    def check(self, X: npt.ArrayLike, feature_names: Sequence[str] | None = None) -> None:
        """Raise ValueError if the kernel is not defined on the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        feature_names : sequence of str, default=None
            Names of the columns, for the message.

        Raises
        ------
        ValueError
            If a cell is negative and the kernel is one of additive_chi2, chi2,
            histogram_intersection and hellinger. Names the column, the row and the value.
        """
        if self.name not in _NOT_NEGATIVE:
            return
        rows = np.asarray(X, dtype=np.float64)
        negative = np.flatnonzero(rows.min(axis=0, initial=0.0) < 0)
        if not len(negative):
            return
        column = int(negative[0])
        row = int(np.flatnonzero(rows[:, column] < 0)[0])
        label = f"x{column}" if feature_names is None else repr(feature_names[column])
        others = len(negative) - 1
        more = f" ({format_count(others, 'more column')} with such cells)" if others else ""
        raise ValueError(
            f"The kernel {self.name!r} needs values >= 0, but column {label} holds "
            f"{float(rows[row, column])!r} in row {row} (counting from 0){more}. Shift or drop "
            "such columns, or use another kernel."
        )

    def matrix(
        self, X: npt.ArrayLike, Y: npt.ArrayLike | None = None, *, n_jobs: int = 1
    ) -> FloatArray:
        """Give the kernel of every row of X with every row of Y.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Finite numbers.
        Y : array-like of shape (n_samples_Y, n_features), default=None
            None: X. The matrix is then exactly symmetric, and its diagonal is `diagonal(X)`.
        n_jobs : int, default=1
            Threads, at least 1. A callable is always called by one.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples_Y), float64, C order

        Raises
        ------
        ValueError
            If the matrix would be larger than `MAX_ARRAY_BYTES` (before it is allocated), if the
            kernel is not defined on the rows, or if it is NaN or inf for a pair of them.
        TypeError
            If a callable gives no number.
        """
        rows = as_rows(X)
        columns = rows if Y is None else as_rows(Y)
        check_size(
            len(rows) * len(columns),
            f"The kernel matrix of {len(rows):,} x {len(columns):,} rows",
            'approximation="nystroem" or "rpcholesky" keeps n_components numbers a row instead.',
        )
        self.check(rows)
        self.check(columns)
        out = np.empty((len(rows), len(columns)))
        if Y is not None:
            self._fill(out, rows, columns, n_jobs)
            return out

        def fill(start: int, stop: int) -> None:
            # The rows from the diagonal on; what lies below it is their mirror image.
            tile = self.block(rows[start:stop], rows[start:], start, start)
            size = stop - start
            _mirror(tile[:, :size])
            out[start:stop, start:] = tile
            for c in range(size, tile.shape[1], _STRIP):
                out[start + c : start + c + _STRIP, start:stop] = tile[:, c : c + _STRIP].T

        self.in_blocks(fill, len(rows), len(rows), n_jobs)
        np.fill_diagonal(out, self.diagonal(rows))
        return out

    def diagonal(self, X: npt.ArrayLike) -> FloatArray:
        """Give the kernel of every row with itself.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Exactly 1 for the kernels that are 1 there.

        Raises
        ------
        TypeError, ValueError
            As for `matrix`.
        """
        rows = as_rows(X)
        self.check(rows)
        if self.name in _UNIT_DIAGONAL:
            return np.ones(len(rows))
        if self.name == "cosine":
            return np.asarray(rows.any(axis=1), dtype=np.float64)
        values: npt.NDArray[Any]
        with np.errstate(all="ignore"):
            match self.name:
                case "linear":
                    values = np.einsum("ij,ij->i", rows, rows)
                case "polynomial":
                    inner = np.einsum("ij,ij->i", rows, rows)
                    values = (self.gamma * inner + self.coef0) ** self.degree
                case "histogram_intersection":
                    values = self._powers(rows).sum(axis=1)
                case "callable":
                    values = np.array([self._call(row, row) for row in rows])
                case _:  # hellinger, additive_chi2
                    values = rows.sum(axis=1)
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise ValueError(self._not_finite(float(values[bad[0]]), int(bad[0]), int(bad[0])))
        return np.asarray(values, dtype=np.float64)

    def explicit_features(self, X: npt.ArrayLike) -> FloatArray | None:
        """Give features of the rows whose inner products are the kernel, if it has some at once.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64, C order, or None
            Not None for the kernels linear (X itself), cosine and hellinger. May share memory with
            X.

        Raises
        ------
        ValueError
            If the kernel is not defined on the rows.
        """
        rows = as_rows(X)
        self.check(rows)
        match self.name:
            case "linear":
                return rows
            case "cosine":
                return _directions(rows)
            case "hellinger":
                roots: FloatArray = np.sqrt(rows)
                return roots
            case _:
                return None

    # ---- blocks ---------------------------------------------------------------------------

    def _fill(self, out: FloatArray, rows: FloatArray, columns: FloatArray, n_jobs: int) -> None:
        def fill(start: int, stop: int) -> None:
            out[start:stop] = self.block(rows[start:stop], columns, start, 0)

        self.in_blocks(fill, len(rows), len(columns), n_jobs)

    def in_blocks(
        self, work: Callable[[int, int], None], n_rows: int, width: int, n_jobs: int
    ) -> None:
        """Call ``work(start, stop)`` for all rows, block by block, BLAS being held to one thread.

        A block is of some 2^20 numbers, `width` for each row; only these sizes decide the blocks.
        """
        size = max(_BLOCK // max(width, 1), 1)
        starts = range(0, n_rows, size)
        if self.function is not None or n_rows * width < _PARALLEL:
            n_jobs = 1
        with one_blas_thread():
            if min(n_jobs, len(starts)) <= 1:
                for start in starts:
                    work(start, min(start + size, n_rows))
                return
            with ThreadPoolExecutor(min(n_jobs, len(starts))) as pool:
                for _ in pool.map(lambda start: work(start, min(start + size, n_rows)), starts):
                    pass

    def block(
        self, rows: FloatArray, columns: FloatArray, first_row: int = 0, first_column: int = 0
    ) -> FloatArray:
        """Give the kernel of two blocks of rows; ValueError where it is NaN or inf.

        `first_row` and `first_column` are where the blocks begin, for the message.
        """
        with np.errstate(all="ignore"):
            tile = self._values(rows, columns)
        finite = np.isfinite(tile)
        if not finite.all():
            i, j = (int(places[0]) for places in np.nonzero(~finite))
            raise ValueError(self._not_finite(float(tile[i, j]), first_row + i, first_column + j))
        return tile

    def _values(self, rows: FloatArray, columns: FloatArray) -> FloatArray:
        tile: FloatArray
        match self.name:
            case "linear":
                return rows @ columns.T
            case "polynomial":
                tile = polynomial_kernel(
                    rows, columns, degree=self.degree, gamma=self.gamma, coef0=self.coef0
                )
            case "cosine":
                tile = _directions(rows) @ _directions(columns).T
                np.clip(tile, -1.0, 1.0, out=tile)
            case "rbf":
                assert self.gamma is not None, "make_kernel settles it"
                tile = _squared_distances(rows, columns, self.gamma)
                tile *= -self.gamma
                np.exp(tile, out=tile)
            case "laplacian":
                tile = laplacian_kernel(rows, columns, gamma=self.gamma)
            case "epsilon":
                near = cdist(rows, columns) <= self.params["epsilon"] * _EPSILON_EDGE
                tile = near.astype(np.float64)
            case "chi2":
                tile = chi2_kernel(*_writeable(rows, columns), gamma=self.gamma)
            case "additive_chi2":
                tile = additive_chi2_kernel(*_writeable(rows, columns))
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
            "from 0). Rescale the columns or change the kernel's parameters."
        )


def make_kernel(
    kernel: str | Callable[..., float],
    *,
    gamma: float | str | None = None,
    degree: float = 3,
    coef0: float = 1.0,
    kernel_params: Mapping[str, Any] | None = None,
    X: npt.ArrayLike,
    sample_weight: FloatArray | None = None,
    feature_names: Sequence[str] | None = None,
) -> Kernel:
    """Settle a kernel's parameters on the rows it is to be used on.

    Parameters
    ----------
    kernel : str or callable
        One of `KERNELS`, see `Kernel` for what they are; or a function of two rows and
        `kernel_params`. "precomputed" is the caller's.
    gamma : float, "scale" or None, default=None
        Of the kernels rbf, laplacian, polynomial and chi2. A number must be > 0. "scale":
        1 / (d v), d the number of columns and v the mean of their variances, 1 if v = 0; on
        columns with the same mean v is scikit-learn's ``X.var()``, but it does not depend on the
        columns' origins. None: 1 / d, chi2: 1, as in scikit-learn. Ignored by other kernels, but
        checked.
    degree : float, default=3
        Of the polynomial kernel, at least 1.
    coef0 : float, default=1.0
        Of the polynomial kernel. Below 0 it may not be positive semidefinite.
    kernel_params : mapping, default=None
        epsilon: ``{"epsilon": e}``, e > 0, must be given. histogram_intersection: ``{"beta": b}``,
        b > 0, 1 by default. Keyword arguments of a callable. Other kernels take none.
    X : array-like of shape (n_samples, n_features)
        The rows; finite numbers.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of the rows, for "scale".
    feature_names : sequence of str, default=None
        Names of the columns, for messages.

    Returns
    -------
    Kernel

    Raises
    ------
    ValueError
        If a parameter is unknown, missing or out of range, or the kernel is not defined on X.
    TypeError
        If `kernel` or a parameter has the wrong type.
    """
    rows = as_rows(X)
    given = dict(kernel_params or {})
    gamma = _check_gamma(gamma)
    if callable(kernel):
        return Kernel("callable", params=given, function=kernel)
    if not isinstance(kernel, str):
        raise TypeError(
            f"kernel must be a string or a callable. Got {type(kernel).__name__} instead."
        )
    name = ALIASES.get(kernel, kernel)
    if name not in _PLAIN:
        raise ValueError(
            f'Unknown kernel {kernel!r}. Known are {", ".join(KERNELS)}, "precomputed" and '
            "callables."
        )
    params = _check_params(kernel, name, given)
    if name == "polynomial":
        degree = _number(degree, "degree", "polynomial", at_least=1.0)
        coef0 = _number(coef0, "coef0", "polynomial")
    settled = None
    if name in _WITH_GAMMA:
        if isinstance(gamma, str):
            settled = _scale(rows, sample_weight)
        elif gamma is None:
            settled = 1.0 if name == "chi2" else 1.0 / rows.shape[1]
        else:
            settled = gamma
    found = Kernel(name, settled, float(degree), float(coef0), params)
    found.check(rows, feature_names)
    return found


def _check_gamma(gamma: Any) -> float | str | None:
    if gamma is None or (isinstance(gamma, str) and gamma == "scale"):
        return gamma
    if not is_number(gamma):
        raise TypeError(f'gamma must be a number > 0, "scale" or None. Got {gamma!r} instead.')
    if not 0 < gamma < np.inf:
        raise ValueError(
            f'gamma must be > 0 and finite, "scale" or None. Got {float(gamma)!r} instead.'
        )
    return float(gamma)


def _check_params(kernel: str, name: str, given: dict[str, Any]) -> dict[str, float]:
    known = _PARAMS.get(name, {})
    unknown = [str(key) for key in given if key not in known]
    if unknown:
        takes = f"takes only {', '.join(map(repr, known))}" if known else "takes none"
        raise ValueError(
            f"Unknown kernel_params {', '.join(map(repr, unknown))}: the kernel {kernel!r} "
            f"{takes}. gamma, degree and coef0 are parameters of their own."
        )
    missing = [key for key, default in known.items() if default is None and key not in given]
    if missing:
        raise ValueError(
            f"The kernel {kernel!r} needs kernel_params={{{missing[0]!r}: ...}}, a number > 0."
        )
    params = {}
    for key, default in known.items():
        value = _number(given.get(key, default), key, kernel)
        if value <= 0:
            raise ValueError(
                f"{key!r} of the kernel {kernel!r} must be > 0. Got {value!r} instead."
            )
        params[key] = value
    return params


def _number(value: Any, what: str, kernel: str, at_least: float = -np.inf) -> float:
    if not is_number(value):
        raise TypeError(
            f"{what!r} of the kernel {kernel!r} must be a number. Got {value!r} instead."
        )
    number = float(value)
    if not (np.isfinite(number) and number >= at_least):
        bound = "finite" if at_least == -np.inf else f"finite and at least {at_least:g}"
        raise ValueError(
            f"{what!r} of the kernel {kernel!r} must be {bound}. Got {number!r} instead."
        )
    return number


def _scale(rows: FloatArray, sample_weight: FloatArray | None) -> float:
    """1 / (d times the mean variance of the columns), 1 where that is no number."""
    total = 0.0
    with np.errstate(all="ignore"):
        for column in rows.T:
            # Twice centered: far from the origin the first mean is rounded.
            centered = column - np.average(column, weights=sample_weight)
            centered -= np.average(centered, weights=sample_weight)
            total += float(np.average(centered * centered, weights=sample_weight))
        gamma = 1.0 / total if total > 0 else 1.0
    if not 0 < gamma < np.inf:
        raise ValueError(
            f'gamma="scale" is 1 / (n_features x variance), but the variance is {total:g}: rescale '
            "the columns or give gamma as a number."
        )
    return gamma


# ---- Gram matrices ------------------------------------------------------------------------


def check_gram(gram: Any, n_samples: int, *, name: str = "gram") -> FloatArray:
    """Check a Gram matrix that the user computed.

    Parameters
    ----------
    gram : array-like of shape (n_samples, n_samples)
        ``gram[i, j]`` is the kernel of the rows i and j. It need not be positive semidefinite.
    n_samples : int
        Rows of X.
    name : str, default="gram"
        What messages call it.

    Returns
    -------
    ndarray of shape (n_samples, n_samples), float64, C order
        The matrix itself if it is float64 in C order, its transpose if in Fortran order, which is
        the same; a copy of anything else.

    Raises
    ------
    TypeError
        If it is sparse or does not hold numbers.
    ValueError
        If it has another shape, holds NaN or inf (names the first cell), is not symmetric to 1e-10
        of its largest entry (names a pair), or the copy would be larger than `MAX_ARRAY_BYTES`.
    """
    if gram is None:
        raise ValueError('kernel="precomputed" needs the Gram matrix of the rows: fit(X, gram=K).')
    if issparse(gram):
        raise TypeError(f"{name} is sparse; it must be a dense array: {name}.toarray().")
    array = np.asarray(gram)
    if array.shape != (n_samples, n_samples):
        raise ValueError(
            f"{name} has the shape {array.shape}, but X has {n_samples} rows: it must have the "
            f"shape ({n_samples}, {n_samples})."
        )
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {array.dtype}.")
    if array.dtype != np.float64 or not (array.flags.c_contiguous or array.flags.f_contiguous):
        check_size(
            array.size,
            f"A float64 copy of {name}, which is {array.dtype} of shape {array.shape},",
            "A contiguous float64 array is used without a copy.",
        )
        if array.dtype.kind not in "biufO":
            raise TypeError(f"{name} must hold numbers. Got dtype {array.dtype} instead.")
        try:
            array = np.ascontiguousarray(array, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name} must hold numbers: {error}") from None
    found: FloatArray = array if array.flags.c_contiguous else array.T
    _check_gram_values(found, name)
    return found


def _check_gram_values(gram: FloatArray, name: str) -> None:
    n = len(gram)
    size = max(_BLOCK // max(n, 1), 1)
    largest = 0.0
    for start in range(0, n, size):
        block = gram[start : start + size]
        # NaN and inf both show in the largest absolute value.
        top = float(max(block.max(), -block.min()))
        if not np.isfinite(top):
            i, j = (int(places[0]) for places in np.nonzero(~np.isfinite(block)))
            value = "NaN" if np.isnan(block[i, j]) else "inf"
            raise ValueError(
                f"{name} contains {value}: the first such cell is {name}[{start + i}, {j}] "
                "(counting from 0)."
            )
        largest = max(largest, top)
    limit = _ASYMMETRY * largest
    side = 512
    for start in range(0, n, side):
        for other in range(start, n, side):
            upper = gram[start : start + side, other : other + side]
            lower = gram[other : other + side, start : start + side].T
            with np.errstate(over="ignore"):
                apart = np.abs(upper - lower)
            if apart.max() <= limit:
                continue
            i, j = (int(place) for place in np.unravel_index(apart.argmax(), apart.shape))
            i, j = sorted((start + i, other + j))
            raise ValueError(
                f"{name} is not symmetric: {name}[{i}, {j}] is {float(gram[i, j])!r}, but "
                f"{name}[{j}, {i}] is {float(gram[j, i])!r}. ({name} + {name}.T) / 2 is, if that "
                "is what you mean."
            )


def _directions(rows: FloatArray) -> FloatArray:
    """Give the rows at length 1, or 0; first by their largest value, whose square may overflow."""
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    scaled = rows / np.where(largest > 0, largest, 1.0)
    length = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    directions: FloatArray = scaled / np.where(length > 0, length, 1.0)
    return directions


def _mirror(square: FloatArray) -> None:
    """Replace what lies below the diagonal by what lies above it."""
    square[...] = np.triu(square) + np.triu(square, 1).T


def _writeable(*arrays: FloatArray) -> list[FloatArray]:
    """Copy what is read-only: scikit-learn's chi2 kernels do not take it."""
    return [array if array.flags.writeable else array.copy() for array in arrays]


def _squared_distances(rows: FloatArray, columns: FloatArray, gamma: float) -> FloatArray:
    """Squared Euclidean distances, right to some 1e-12 / gamma."""
    if rows.shape[1] > _FEW_COLUMNS:
        shift = mean_row(columns)
        left, right = rows - shift, columns - shift
        largest = max(
            float(np.einsum("ij,ij->i", part, part).max(initial=0.0)) for part in (left, right)
        )
        if gamma * largest <= _MAX_NORM:
            return np.asarray(euclidean_distances(left, right, squared=True))
    return np.asarray(cdist(rows, columns, "sqeuclidean"))
