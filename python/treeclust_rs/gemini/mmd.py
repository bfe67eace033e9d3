"""Maximum mean discrepancy: distances of clusters' means in the space of a kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from .._kernels import ORIGIN_FREE, Kernel, kernel_of
from .._util import FloatArray, as_rows, mean_row
from .base import SAME, TINY, ClusterShares, Gemini, differences
from .distances import check_square


@dataclass(frozen=True)
class MMD(Gemini):
    """Maximum mean discrepancy: distance of the clusters' means in the space of a kernel.

    Parameters
    ----------
    one_vs_one : bool, default=False
        Compare clusters with one another, not with all rows.
    squared : bool, default=False
        The squared distance, Kauri's objective: mmd2_ova and mmd2_ovo. mmd2_ovo is twice mmd2_ova
        where every row's probabilities sum to 1.
    kernel : str or callable, default="linear"
        A kernel of this package, as of `Kauri`; a function of two rows; or "precomputed".
    gamma : float, "scale" or None, default=None
        Of the kernels rbf, laplacian, polynomial and chi2. "scale": 1 / (n_features x variance).
        None: 1 / n_features; chi2: 1.
    degree : float, default=3
        Of the polynomial kernel.
    coef0 : float, default=1.0
        Of the polynomial kernel.
    kernel_params : mapping, default=None
        epsilon: ``{"epsilon": e}``. histogram_intersection: ``{"beta": b}``. Keyword arguments of a
        callable.

    Notes
    -----
    Rows are centered for kernels that do not depend on the origin: far from it digits would be
    lost. The root of a negative squared distance, which kernels that are not positive semidefinite
    produce, is 0.
    """

    squared: bool = False
    kernel: str | Callable[..., float] = "linear"
    gamma: float | str | None = None
    degree: float = 3
    coef0: float = 1.0
    kernel_params: Mapping[str, Any] | None = None

    uses_rows: ClassVar[bool] = True

    @property
    def _stem(self) -> str:  # type: ignore[override]
        return "mmd2" if self.squared else "mmd"

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def settled(self, X: npt.ArrayLike) -> Self:
        """Return the objective with ``gamma="scale"`` computed from these rows; see `Gemini`."""
        if self._precomputed or self.gamma != "scale":
            return self
        return dataclasses.replace(self, gamma=self._kernel(as_rows(X)).gamma)

    def affinity(self, X: npt.ArrayLike) -> FloatArray:
        """Compute the kernel of every two rows; see `Gemini.affinity`."""
        if self._precomputed:
            return check_square(X, "matrix")
        rows = as_rows(X)
        if isinstance(self.kernel, str) and self.kernel in ORIGIN_FREE:
            rows = rows - mean_row(rows)
        return self._kernel(rows).matrix(rows)

    def _kernel(self, rows: FloatArray) -> Kernel:
        return kernel_of(self, rows, gamma=self.gamma)

    def _to_all(self, clusters: ClusterShares) -> tuple[FloatArray, FloatArray]:
        return means_to_all(clusters, clusters.matrix, self.squared)

    def _between(self, clusters: ClusterShares) -> tuple[FloatArray, FloatArray]:
        return means_between(clusters, clusters.matrix, self.squared)


def means_to_all(
    clusters: ClusterShares, kernel: FloatArray, squared: bool
) -> tuple[FloatArray, FloatArray]:
    """Return `Gemini._to_all` for distances of means in the space of a kernel."""
    apart = differences(clusters.shares, clusters.uniform)
    sides = kernel @ apart
    squares = np.einsum("ik,ik->k", apart, sides)
    if squared:
        return squares, 2.0 * sides
    roots = _roots(squares, apart, sides)
    return roots, sides * _inverse(roots)


def means_between(
    clusters: ClusterShares, kernel: FloatArray, squared: bool
) -> tuple[FloatArray, FloatArray]:
    """Return `Gemini._between` for distances of means in the space of a kernel."""
    w, pi = clusters.shares, clusters.masses
    # Subtracting the mean changes no difference, and saves digits.
    middle = (w @ pi / max(float(pi.sum()), TINY))[:, None]
    sides = kernel @ (w - middle)
    between = np.empty((len(pi), len(pi)))
    gradients = np.empty_like(w)
    for k in range(len(pi)):
        apart = differences(w[:, [k]], w)
        across = sides[:, [k]] - sides
        between[k] = np.einsum("ik,ik->k", apart, across)
        if squared:
            gradients[:, k] = 2.0 * (across @ pi)
        else:
            between[k] = _roots(between[k], apart, across)
            gradients[:, k] = across @ (pi * _inverse(between[k]))
    return between, gradients


def _roots(squares: FloatArray, apart: FloatArray, sides: FloatArray) -> FloatArray:
    """Return the square roots of v'Kv, 0 where it is 0 up to rounding, or negative."""
    size = np.abs(apart).sum(axis=0) * np.abs(sides).max(axis=0)
    return np.sqrt(np.where(squares > SAME * size, squares, 0.0))


def _inverse(numbers: FloatArray) -> FloatArray:
    """Return the inverse of each number, 0 for 0."""
    return np.where(numbers > 0, 1.0, 0.0) / np.where(numbers > 0, numbers, 1.0)
