"""Features of low rank for kernels: Nystroem, randomly pivoted Cholesky, random Fourier features.

References
----------
Y. Chen, E. N. Epperly, J. A. Tropp, R. J. Webber, "Randomly pivoted Cholesky: practical
approximation of a kernel matrix with few entry evaluations", 2025.
E. N. Epperly, J. A. Tropp, R. J. Webber, "Embrace rejection: kernel matrix approximation by
accelerated randomly pivoted Cholesky", 2024: blocks of pivots with the distribution of single ones.
C. K. I. Williams, M. Seeger, "Using the Nystroem method to speed up kernel machines", 2001.
A. Rahimi, B. Recht, "Random features for large-scale kernel machines", 2007.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, solve_triangular
from sklearn.kernel_approximation import RBFSampler
from sklearn.utils import check_random_state

from .._util import FloatArray, as_rows, check_size, is_number, mean_row, one_blas_thread
from .kernels import Kernel

APPROXIMATIONS = ("nystroem", "rpcholesky", "rff")

# Eigenvalues below this share of the largest are rounding.
_MIN_EIGENVALUE = 1e-12
# The residual of a diagonal entry is rounding below this share of the entry.
_MIN_RESIDUAL = 1e-13
# Negative eigenvalues and diagonal entries up to this share of the largest are rounding.
_MAX_NEGATIVE = 1e-8
# Pivots proposed at a time.
_N_PROPOSALS = 64


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Features whose inner products approximate a kernel; built by `approximate`.

    Attributes
    ----------
    features : ndarray of shape (n_samples, n_features_out), float64, C order
        Features of the rows of the approximation. At least one column.
    kernel : Kernel
        The kernel.
    method : str
        One of `APPROXIMATIONS`.
    residual : float
        Share of the (weighted) trace of the kernel matrix that the features lack: 0 is exact.
        Negative values occur with "rff" and with kernels that are not positive semidefinite.
    landmarks : ndarray of shape (n_landmarks,), int64
        Rows that the approximation is built on, in order: drawn at random ("nystroem") or the
        pivots ("rpcholesky"). Empty with "rff".
    """

    features: FloatArray
    kernel: Kernel
    method: str
    residual: float
    landmarks: npt.NDArray[np.int64]
    _map: _Map = field(repr=False)

    def transform(self, Y: npt.ArrayLike, *, n_jobs: int = 1) -> FloatArray:
        """Compute the features of other rows.

        Parameters
        ----------
        Y : array-like of shape (n_rows, n_features)
            Finite numbers.
        n_jobs : int, default=1
            Threads, at least 1.

        Returns
        -------
        ndarray of shape (n_rows, n_features_out), float64, C order
            For the rows of the approximation, `features` up to rounding.

        Raises
        ------
        ValueError
            As for `Kernel.matrix`.
        """
        rows = as_rows(Y)
        self.kernel.check(rows)
        return _map_rows(self.kernel, self._map, rows, n_jobs)

    @property
    def arrays(self) -> dict[str, FloatArray]:
        """What `transform` computes with; "rows", where there are some, are the landmarks."""
        return vars(self._map)

    @classmethod
    def of_arrays(cls, kernel: Kernel, method: str, arrays: dict[str, FloatArray]) -> FeatureMap:
        """Build a map that only transforms rows, from its `arrays`, of the shapes `MAP_ARRAYS`."""
        made = _MAPS[method](**arrays)
        no_rows = np.empty(0, dtype=np.int64)
        return cls(np.empty((0, made.width)), kernel, method, math.nan, no_rows, made)


def approximate(
    kernel: Kernel,
    X: npt.ArrayLike,
    *,
    method: str,
    n_components: int = 100,
    tol: float = 1e-6,
    sample_weight: FloatArray | None = None,
    random_state: Any = None,
    n_jobs: int = 1,
) -> FeatureMap:
    """Compute features z of low rank r with <z_i, z_j> near the kernel of the rows i and j.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : array-like of shape (n_samples, n_features)
        Finite numbers.
    method : {"nystroem", "rpcholesky", "rff"}
        - "nystroem": the kernel with `n_components` rows drawn at random (with weights: in
          proportion to them) without replacement. Eigenvalues of the drawn rows' matrix below 1e-12
          of the largest are dropped. With `n_components` >= n_samples all rows are taken: the
          features then reproduce the whole kernel matrix up to rounding.
        - "rpcholesky": Cholesky with random pivots, each drawn with probability proportional to
          weight times the residual of its diagonal entry, until `tol` is met. Far nearer to the
          kernel than Nystroem of the same rank if few rows lie apart from the others; similar on
          one round cloud.
        - "rff": random Fourier features, only for the kernel rbf. Does not adapt to the rows.
    n_components : int, default=100
        The largest rank r, at least 1; above n_samples ("rff": any) it is n_samples.
    tol : float, default=1e-6
        "rpcholesky" stops at the first pivot after which the features lack at most this share of
        the (weighted) trace of the kernel matrix; with 0, rounding stops it. Ignored by the other
        methods.
    sample_weight : ndarray of shape (n_samples,), default=None
        Positive weights of the rows.
    random_state : int, RandomState instance or None, default=None
        Source of the rows or frequencies.
    n_jobs : int, default=1
        Threads, at least 1. The bits of the features do not depend on it.

    Returns
    -------
    FeatureMap

    Raises
    ------
    ValueError
        If a parameter is out of range, the kernel is not defined on the rows or "rff" not for the
        kernel, or the features would be larger than `MAX_ARRAY_BYTES`.

    Warns
    -----
    UserWarning
        If the kernel is found not to be positive semidefinite: no features give such a kernel, and
        the result approximates another one; the nearest such, with "nystroem" and all rows.

    Notes
    -----
    Memory is O(n r), time O(n r d + n r^2); "nystroem" takes r^3 more. No n x n matrix is computed.
    """
    rows = as_rows(X)
    n = len(rows)
    if method not in APPROXIMATIONS:
        known = ", ".join(map(repr, APPROXIMATIONS))
        raise ValueError(f"Unknown approximation {method!r}. Known are {known}.")
    if method == "rff" and kernel.name != "rbf":
        raise ValueError(
            'approximation="rff" is only for the kernel "rbf". Got the kernel '
            f'{kernel.name!r}; "nystroem" and "rpcholesky" take every kernel.'
        )
    if not is_number(n_components, Integral):
        raise TypeError(f"n_components must be an int. Got {n_components!r} instead.")
    if n_components < 1:
        raise ValueError(f"n_components must be at least 1. Got {n_components} instead.")
    if not (is_number(tol) and 0 <= tol < 1):
        raise ValueError(f"tol must be a number in [0, 1). Got {tol!r} instead.")
    rank = int(n_components) if method == "rff" else min(int(n_components), n)
    check_size(
        n * rank,
        f"The features of {n:,} rows and n_components={rank:,}",
        "Use fewer n_components.",
    )
    kernel.check(rows)
    rng = check_random_state(random_state)
    mapping: _Map
    landmarks = np.empty(0, dtype=np.int64)
    if method == "rff":
        mapping = _Fourier.fit(kernel, rows, rank, rng)
        features = _map_rows(kernel, mapping, rows, n_jobs)
    elif method == "nystroem":
        landmarks = _draw(n, rank, sample_weight, rng)
        mapping = _Nystroem.fit(kernel, rows[landmarks])
        features = _map_rows(kernel, mapping, rows, n_jobs)
    else:
        features, landmarks = _rpcholesky(
            kernel, rows, rank, float(tol), sample_weight, rng, n_jobs
        )
        mapping = _Cholesky(rows[landmarks], np.tril(features[landmarks]))
    weight = np.ones(n) if sample_weight is None else sample_weight
    trace = float(weight @ kernel.diagonal(rows))
    covered = float(np.einsum("i,ij,ij->", weight, features, features))
    residual = (trace - covered) / trace if trace > 0 else 0.0
    return FeatureMap(features, kernel, method, residual, landmarks, mapping)


Shapes = dict[str, str]
"""Names and shapes of a map's arrays: d columns, r landmarks, w features."""


@dataclass(frozen=True)
class _Fourier:
    """Random Fourier features of rows about `shift`: those of scikit-learn's `RBFSampler`."""

    shapes: ClassVar[Shapes] = {"weights": "d w", "offset": "w", "shift": "d"}
    weights: FloatArray
    offset: FloatArray
    shift: FloatArray
    n_landmarks: ClassVar[int] = 0

    @classmethod
    def fit(cls, kernel: Kernel, rows: FloatArray, rank: int, rng: Any) -> _Fourier:
        # The kernel does not depend on the shift; cosines of large numbers lose digits.
        sampler = RBFSampler(gamma=kernel.gamma, n_components=rank, random_state=rng).fit(rows[:1])
        return cls(sampler.random_weights_, sampler.random_offset_, mean_row(rows))

    @property
    def width(self) -> int:
        return len(self.offset)

    def block(self, kernel: Kernel, rows: FloatArray, first_row: int) -> FloatArray:  # noqa: ARG002
        angles: FloatArray = (rows - self.shift) @ self.weights
        angles += self.offset
        np.cos(angles, out=angles)
        angles *= (2.0 / self.width) ** 0.5
        return angles


@dataclass(frozen=True)
class _Nystroem:
    """Kernel with the landmarks, times their matrix to the power -1/2."""

    shapes: ClassVar[Shapes] = {"rows": "r d", "mixing": "r w"}
    rows: FloatArray
    mixing: FloatArray

    @classmethod
    def fit(cls, kernel: Kernel, landmarks: FloatArray) -> _Nystroem:
        with one_blas_thread():
            values, vectors = eigh(kernel.matrix(landmarks))
        largest = float(np.abs(values).max())
        if values[0] < -_MAX_NEGATIVE * largest:
            _warn_indefinite(kernel)
        large = np.flatnonzero(values > _MIN_EIGENVALUE * largest)[::-1]  # largest first
        if not len(large):
            return cls(landmarks, np.zeros((len(landmarks), 1)))
        return cls(landmarks, np.ascontiguousarray(vectors[:, large] / np.sqrt(values[large])))

    @property
    def width(self) -> int:
        return int(self.mixing.shape[1])

    @property
    def n_landmarks(self) -> int:
        return len(self.rows)

    def block(self, kernel: Kernel, rows: FloatArray, first_row: int) -> FloatArray:
        return kernel.block(rows, self.rows, first_row) @ self.mixing


@dataclass(frozen=True)
class _Cholesky:
    """Kernel with the pivots, solved with their Cholesky factor."""

    shapes: ClassVar[Shapes] = {"rows": "r d", "factor": "r r"}
    rows: FloatArray
    factor: FloatArray
    """Lower triangular, in the order of the pivots."""

    @property
    def width(self) -> int:
        return max(len(self.rows), 1)

    @property
    def n_landmarks(self) -> int:
        return len(self.rows)

    def block(self, kernel: Kernel, rows: FloatArray, first_row: int) -> FloatArray:
        if not len(self.rows):
            return np.zeros((len(rows), 1))
        return _solve_lower(self.factor, kernel.block(rows, self.rows, first_row))


# A map makes `width` features of a row; `block` computes those of some rows, the first of which is
# named in messages by its number `first_row`.
_Map = _Fourier | _Nystroem | _Cholesky
_MAPS: dict[str, type[_Map]] = {"nystroem": _Nystroem, "rpcholesky": _Cholesky, "rff": _Fourier}

MAP_ARRAYS = {method: kind.shapes for method, kind in _MAPS.items()}
"""By method, names and shapes of its map's arrays."""


def _map_rows(kernel: Kernel, mapping: _Map, rows: FloatArray, n_jobs: int) -> FloatArray:
    out = np.empty((len(rows), mapping.width))

    def fill(start: int, stop: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # the callers check what follows
            out[start:stop] = mapping.block(kernel, rows[start:stop], start)

    kernel.in_blocks(fill, len(out), max(mapping.width, mapping.n_landmarks), n_jobs)
    return out


def _rpcholesky(
    kernel: Kernel,
    rows: FloatArray,
    rank: int,
    tol: float,
    sample_weight: FloatArray | None,
    rng: Any,
    n_jobs: int,
) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Return the features of randomly pivoted Cholesky, of shape (n, rank >= 1), and the pivots.

    A block of pivots is proposed from the current residual diagonal; each is accepted with
    probability (its residual after the earlier pivots of the block) / (its residual when drawn).
    The accepted ones are distributed as if drawn one after the other; only they cost O(n).
    """
    n = len(rows)
    weight = np.ones(n) if sample_weight is None else sample_weight
    diagonal = kernel.diagonal(rows)
    if diagonal.min() < -_MAX_NEGATIVE * np.abs(diagonal).max():
        _warn_indefinite(kernel)
    left = np.maximum(diagonal, 0.0)
    floor = _MIN_RESIDUAL * left
    lowest = -_MAX_NEGATIVE * float(left.max())
    total = float(weight @ left)
    features = np.empty((n, rank))
    pivots = np.empty(0, dtype=np.int64)
    while (k := len(pivots)) < rank:
        cumulative = np.cumsum(weight * left)
        remaining = float(cumulative[-1])
        if remaining <= tol * total:
            break
        drawn = np.searchsorted(
            cumulative, rng.uniform(size=_N_PROPOSALS) * remaining, side="right"
        ).clip(max=n - 1)
        with one_blas_thread():
            core = kernel.matrix(rows[drawn])
            core -= features[drawn, :k] @ features[drawn, :k].T
        accepted, factor = _accept(core, floor[drawn], rng.uniform(size=_N_PROPOSALS), rank - k)
        if not len(accepted):
            left[drawn] = 0.0  # their residual was rounding
            continue
        chosen = drawn[accepted]
        new = features[:, k : k + len(chosen)]
        _add_columns(kernel, rows, chosen, features[:, :k], factor, new, n_jobs)
        new[chosen] = factor
        # Stop within the block where the tolerance is met.
        lacking = remaining - np.cumsum(np.einsum("i,ij,ij->j", weight, new, new))
        met = np.flatnonzero(lacking <= tol * total)
        if len(met):
            chosen = chosen[: met[0] + 1]
            new = new[:, : len(chosen)]
        pivots = np.append(pivots, chosen)
        left -= np.einsum("ij,ij->i", new, new)
        if left.min() < lowest:
            _warn_indefinite(kernel)
            lowest = -np.inf
        left[left <= floor] = 0.0
        left[chosen] = 0.0
    if not len(pivots):
        return np.zeros((n, 1)), pivots
    return np.ascontiguousarray(features[:, : len(pivots)]), pivots


def _accept(
    core: FloatArray, floor: FloatArray, coins: FloatArray, most: int
) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Accept proposals; return their places and the Cholesky factor of their part of `core`.

    `core` is overwritten.
    """
    size = len(core)
    drawn_with = core.diagonal().copy()
    columns = np.zeros((size, size))
    accepted: list[int] = []
    for i in range(size):
        if len(accepted) == most:
            break
        entry = core[i, i]
        if entry <= floor[i] or coins[i] * drawn_with[i] >= entry:
            continue
        columns[i:, len(accepted)] = core[i:, i] / np.sqrt(entry)
        column = columns[i:, len(accepted)]
        core[i:, i:] -= column[:, None] * column
        accepted.append(i)
    places = np.array(accepted, dtype=np.int64)
    return places, columns[places, : len(places)]


def _add_columns(
    kernel: Kernel,
    rows: FloatArray,
    pivots: npt.NDArray[np.int64],
    old: FloatArray,
    factor: FloatArray,
    new: FloatArray,
    n_jobs: int,
) -> None:
    """Compute the features `new` that the pivots add to `old`."""
    pivot_rows, pivot_features = rows[pivots], old[pivots]

    def fill(start: int, stop: int) -> None:
        against = kernel.block(rows[start:stop], pivot_rows, start)
        against -= old[start:stop] @ pivot_features.T
        new[start:stop] = _solve_lower(factor, against)

    kernel.in_blocks(fill, len(new), len(pivots), n_jobs)


def _solve_lower(factor: FloatArray, against: FloatArray) -> FloatArray:
    """Return the rows z with factor z = against."""
    solved = solve_triangular(factor, against.T, lower=True, check_finite=False)
    return np.asarray(solved).T


def _draw(n: int, size: int, sample_weight: FloatArray | None, rng: Any) -> npt.NDArray[np.int64]:
    """Draw distinct rows in proportion to their weights; all of them, in order, if size >= n."""
    if size >= n:
        return np.arange(n)
    share = None if sample_weight is None else sample_weight / sample_weight.sum()
    return np.asarray(rng.choice(n, size, replace=False, p=share), dtype=np.int64)


def _warn_indefinite(kernel: Kernel) -> None:
    warnings.warn(
        f"The kernel {kernel.label!r} is not positive semidefinite on these rows, so no features "
        "give it: the approximation is another kernel. approximation=None takes it as it is.",
        UserWarning,
        stacklevel=4,
    )
