"""The rows of a fit as a kernel sees them: sums of kernel values over clusters, and what follows.

For rows i, j of weights w, S[i, l] = sum of w_j k(i, j) over the rows j of cluster l gives their
squared distances to the clusters' means in the kernel's feature space (Fleissner, Vankadara,
Ghoshdastidar 2024, eq. (5) and Lemma 1) and the cost of a clustering. The sums come from features
of the rows, from their kernel matrix, or, without either, from the rows themselves, whose kernel
values are then computed anew, tile by tile.

Whatever the number of threads, tiles are computed by one thread each and added in one order: the
bits do not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist

from .._data.table import Table
from .._data.units import Units
from .._util.arrays import FloatArray
from .._util.threads import map_in_order, one_blas_thread
from .._util.validation import Interval, StrOptions
from .kernels import KERNELS, ORIGIN_FREE, Kernel, make_kernel
from .low_rank import FeatureMap, approximate

__all__ = [
    "KERNEL_CONSTRAINTS",
    "ROUNDING",
    "Stocks",
    "check_gram_given",
    "gram_sums",
    "kernel_rows",
    "origin_of",
    "squared_distances",
    "stocks_of",
]

Labels = npt.NDArray[Any]

ROUNDING = 1e-12
"""A cost below this share of the sum of k(x, x) is rounding, and counts as 0."""

# Rows of a part of a sum; rows and columns of the tiles that are computed when there is no kernel
# matrix, 8 MiB each.
_TILE = 1024


KERNEL_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [StrOptions({*KERNELS, "precomputed"}), callable],
    "gamma": [Interval(Real, 0.0, None, closed="neither"), StrOptions({"scale"}), None],
    "degree": [Interval(Real, 1, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "kernel_params": [Mapping, None],
    "approximation": [StrOptions({"nystroem", "rpcholesky", "rff"}), None],
    "n_components": [Interval(Integral, 1, None, closed="left")],
}
"""What an estimator's parameters of the kernel may be; see `WithKernel`."""


class WithKernel(Protocol):
    """An estimator's parameters of the kernel."""

    kernel: Any
    gamma: float | str | None
    degree: float
    coef0: float
    kernel_params: Mapping[str, Any] | None
    approximation: str | None
    n_components: int


def check_gram_given(kernel: Any, approximation: str | None, has_gram: bool) -> None:
    """Raise ValueError if a kernel matrix is given and not asked for, or the other way round."""
    precomputed = isinstance(kernel, str) and kernel == "precomputed"
    if precomputed and not has_gram:
        raise ValueError(
            'kernel="precomputed" needs the kernel matrix: fit(X, gram=K), X being the columns.'
        )
    if has_gram and not precomputed:
        raise ValueError(f'gram was given, but kernel={kernel!r}. Use kernel="precomputed".')
    if precomputed and approximation is not None:
        raise ValueError(
            f"approximation={approximation!r} needs the kernel itself, not its matrix."
        )


def stocks_of(
    estimator: WithKernel,
    rows: Table,
    units: Units,
    weight: FloatArray | None,
    gram: FloatArray | None,
    rng: Any,
    n_jobs: int,
    *,
    rank_tol: float = 1e-6,
    hold_gram: bool = True,
) -> Stocks:
    """Settle an estimator's kernel on the rows of its fit, and its approximation.

    Parameters
    ----------
    estimator : WithKernel
        The parameters.
    rows : Table
        Rows of the fit, of positive `weight`.
    units : Units
        Units of the columns.
    weight : ndarray of shape (n_samples,) or None
        Positive.
    gram : ndarray of shape (n_samples, n_samples) or None
        Their kernel matrix, if it was given.
    rng : RandomState
        For the approximation.
    n_jobs : int
        Threads, at least 1.
    rank_tol : float, default=1e-6
        `tol` of "rpcholesky".
    hold_gram : bool, default=True
        False: keep the rows where True would make an n x n matrix.

    Returns
    -------
    Stocks

    Raises
    ------
    ValueError, TypeError
        As `make_kernel`, `Kernel.matrix` and `approximate` do.
    """
    if gram is not None:
        return Stocks.of_gram(gram, weight, n_jobs=n_jobs)
    matrix = kernel_rows(estimator.kernel, rows, units)
    kernel = make_kernel(
        estimator.kernel,
        gamma=estimator.gamma,
        degree=estimator.degree,
        coef0=estimator.coef0,
        kernel_params=estimator.kernel_params,
        X=matrix,
        sample_weight=weight,
        feature_names=rows.feature_names,
    )
    if estimator.approximation is not None:
        return Stocks.of_approximation(
            kernel,
            matrix,
            units,
            weight,
            n_jobs,
            method=estimator.approximation,
            n_components=estimator.n_components,
            tol=rank_tol,
            random_state=rng,
        )
    make = Stocks.of_kernel if hold_gram else Stocks.of_rows
    return make(kernel, matrix, units, weight, n_jobs)


def kernel_rows(kernel: Any, table: Table, units: Units) -> FloatArray:
    """Give the rows as the kernel sees them: in units, and moved where that changes nothing."""
    if isinstance(kernel, str) and kernel in ORIGIN_FREE:
        return units.matrix(table)
    return Units(np.zeros_like(units.shift), units.scale).matrix(table)


def _mean(rows: FloatArray, weight: FloatArray | None) -> FloatArray:
    if weight is None:
        return np.asarray(rows.mean(axis=0))
    return np.asarray(np.einsum("i,ij->j", weight, rows) / weight.sum())


def origin_of(
    kernel: Kernel, matrix: FloatArray, units: Units, weight: FloatArray | None
) -> FloatArray | None:
    """Give the mean of the rows as given with the linear kernel; else their features' will do."""
    if kernel.name != "linear":
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        return _mean(matrix, weight) + units.shift / units.scale


@dataclass(frozen=True, eq=False)
class Stocks:
    """Where kernel values come from: features of the rows, a kernel matrix, or the rows.

    Features are centered, which changes neither distances nor gains and keeps digits; `offset` is
    what that takes from Kauri's objective. With features, `trace`, `diagonal` and `label_sums` are
    of the kernel of the centered features.
    """

    kernel: Kernel | None
    """None: a kernel matrix that was given."""
    feature_map: FeatureMap | None
    """Of an approximation; without the features of the rows."""
    features: FloatArray | None
    gram: FloatArray | None
    weight: FloatArray | None
    """Positive; None: ones."""
    diagonal: FloatArray
    """k(i, i)."""
    trace: float
    """Weighted sum of k(i, i)."""
    offset: float
    mean: FloatArray | None = None
    """What was taken from the features to center them."""
    rows: FloatArray | None = None
    """As the kernel sees them; None with features, or a matrix that was given."""
    n_jobs: int = 1

    @classmethod
    def of_kernel(
        cls,
        kernel: Kernel,
        matrix: FloatArray,
        units: Units,
        weight: FloatArray | None,
        n_jobs: int = 1,
    ) -> Stocks:
        """Hold features if the kernel has some at once (may overwrite `matrix`), else its matrix.

        Raises
        ------
        ValueError
            If the matrix would be larger than `MAX_ARRAY_BYTES`, or the kernel is not defined.
        """
        features = kernel.explicit_features(matrix)
        if features is None:
            gram = kernel.matrix(matrix, n_jobs=n_jobs)
            return replace(cls.of_gram(gram, weight, kernel, n_jobs), rows=matrix)
        origin = origin_of(kernel, matrix, units, weight)
        return cls.of_features(features, origin, weight, kernel, n_jobs=n_jobs)

    @classmethod
    def of_rows(
        cls,
        kernel: Kernel,
        matrix: FloatArray,
        units: Units,
        weight: FloatArray | None,
        n_jobs: int = 1,
        feature_map: FeatureMap | None = None,
    ) -> Stocks:
        """Hold features, of the kernel (may overwrite `matrix`) or the map, or else the rows.

        No n x n array is ever made: sums take O(n^2) kernel values in tiles of 8 MiB.
        """
        features = (
            kernel.explicit_features(matrix)
            if feature_map is None
            else feature_map.transform(matrix, n_jobs=n_jobs)
        )
        if features is not None:
            origin = origin_of(kernel, matrix, units, weight)
            return cls.of_features(features, origin, weight, kernel, feature_map, n_jobs)
        diagonal = kernel.diagonal(matrix)
        trace = _weighted_sum(diagonal, weight)
        return cls(
            kernel, None, None, None, weight, diagonal, trace, 0.0, rows=matrix, n_jobs=n_jobs
        )

    @classmethod
    def of_approximation(
        cls,
        kernel: Kernel,
        matrix: FloatArray,
        units: Units,
        weight: FloatArray | None,
        n_jobs: int = 1,
        **how: Any,
    ) -> Stocks:
        """Hold the features that `approximate` finds, called with `how`, and their map."""
        found = approximate(kernel, matrix, sample_weight=weight, n_jobs=n_jobs, **how)
        origin = origin_of(kernel, matrix, units, weight)
        # The features of the training rows are centered in place; the map does without them.
        feature_map = replace(found, features=np.empty((0, found.features.shape[1])))
        return cls.of_features(found.features, origin, weight, kernel, feature_map, n_jobs)

    @classmethod
    def of_gram(
        cls,
        gram: FloatArray,
        weight: FloatArray | None,
        kernel: Kernel | None = None,
        n_jobs: int = 1,
    ) -> Stocks:
        """Hold a kernel matrix, exactly or nearly symmetric."""
        diagonal = gram.diagonal()
        trace = _weighted_sum(diagonal, weight)
        return cls(kernel, None, None, gram, weight, diagonal, trace, 0.0, n_jobs=n_jobs)

    @classmethod
    def of_features(
        cls,
        features: FloatArray,
        origin: FloatArray | None,
        weight: FloatArray | None,
        kernel: Kernel,
        feature_map: FeatureMap | None = None,
        n_jobs: int = 1,
    ) -> Stocks:
        """`origin`: of the features as given, if that is not their mean. Centers them in place."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = _mean(features, weight)
            features -= mean
            squares = np.einsum("ij,ij->i", features, features)
            trace = float(squares.sum() if weight is None else (weight * squares).sum())
            given = mean if origin is None else origin
            total = float(len(features) if weight is None else weight.sum())
            offset = total * float((given * given).sum())
        if not np.isfinite(trace + offset):
            raise ValueError(
                'The kernel values overflow float64. Use scale="standard" or rescale the columns.'
            )
        return cls(
            kernel, feature_map, features, None, weight, squares, trace, offset, mean, None, n_jobs
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.diagonal)

    @property
    def weights(self) -> FloatArray:
        """The weights, as ones where there are none."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    def objective(self, labels: Labels) -> float:
        """Give Kauri's L of a clustering of the rows, from its definition."""
        weight = np.ones(len(labels)) if self.weight is None else self.weight
        parts = []
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label)
            if self.features is not None:
                total = np.einsum("i,ij->j", weight[rows], self.features[rows])
                stock = (total * total).sum()
            else:
                assert self.gram is not None
                stock = weight[rows] @ self.gram[np.ix_(rows, rows)] @ weight[rows]
            parts.append(float(stock / weight[rows].sum()))
        return math.fsum(parts) + self.offset

    # ---- clusters -------------------------------------------------------------------------

    def cluster_weights(self, labels: Labels, k: int) -> FloatArray:
        """Give the weight of each cluster, of shape (k,). Labels below 0 are of no cluster."""
        inside = labels >= 0
        return _bin_sums(labels[inside], self.weights[inside], k)

    def label_sums(self, labels: Labels, k: int) -> FloatArray:
        """Give S[i, l], the sum of w_j k(i, j) over the rows j labelled l.

        Parameters
        ----------
        labels : ndarray of shape (n_rows,), int
            Labels 0, ..., k - 1; rows with labels below 0 are left out of all sums.
        k : int
            Number of clusters.

        Returns
        -------
        ndarray of shape (n_rows, k), float64
            With features, of the kernel of the centered features.
        """
        if self.features is not None:
            with one_blas_thread():
                return self.features @ (self.features.T @ self.members(labels, k))
        if self.gram is None:
            return self._tiled_sums(self.members(labels, k))
        return np.ascontiguousarray(gram_sums(self.gram, labels, self.weights, k, self.n_jobs).T)

    def members(self, labels: Labels, k: int) -> FloatArray:
        """Give the matrix of shape (n_rows, k) that holds each row's weight under its label."""
        members = np.zeros((self.n_rows, k))
        inside = np.flatnonzero(labels >= 0)
        members[inside, labels[inside]] = self.weights[inside]
        return members

    def _tiled_sums(self, members: FloatArray) -> FloatArray:
        """Compute every kernel value once, for the rows of both its sides."""
        assert self.kernel is not None and self.rows is not None
        kernel, rows, n = self.kernel, self.rows, self.n_rows

        def tile_sums(corner: tuple[int, int]) -> tuple[FloatArray, FloatArray | None]:
            first, second = (slice(start, start + _TILE) for start in corner)
            tile = kernel.block(rows[first], rows[second], *corner)
            if first == second:
                np.fill_diagonal(tile, self.diagonal[first])
                return tile @ members[first], None
            return tile @ members[second], tile.T @ members[first]

        sums = np.zeros_like(members)
        corners = [(a, b) for a in range(0, n, _TILE) for b in range(a, n, _TILE)]
        n_jobs = 1 if kernel.function is not None else self.n_jobs
        with one_blas_thread():
            found = map_in_order(tile_sums, corners, n_jobs)
            for (a, b), (of_rows, of_columns) in zip(corners, found, strict=True):
                sums[a : a + _TILE] += of_rows
                if of_columns is not None:
                    sums[b : b + _TILE] += of_columns
        return sums

    def distances(self, labels: Labels, k: int) -> FloatArray:
        """Give the squared distances of the rows to the clusters' means, eq. (5) of the paper.

        Parameters
        ----------
        labels, k
            As for `label_sums`.

        Returns
        -------
        ndarray of shape (n_rows, k), float64
            inf for clusters without rows. Not negative, but for kernels that are not positive
            semidefinite.
        """
        weight = self.cluster_weights(labels, k)
        if self.features is not None:
            means = self._means(labels, weight)
            found = cdist(self.features, means, "sqeuclidean")
        else:
            sums = self.label_sums(labels, k)
            found = squared_distances(self.diagonal, sums, weight, self.self_stocks(labels, sums))
        found[:, weight == 0] = np.inf
        return np.asarray(found)

    def self_stocks(self, labels: Labels, sums: FloatArray) -> FloatArray:
        """Give S(C_l, C_l) of each cluster from the label sums, of shape (k,)."""
        inside = np.flatnonzero(labels >= 0)
        own = labels[inside]
        return _bin_sums(own, self.weights[inside] * sums[inside, own], sums.shape[1])

    def _means(self, labels: Labels, weight: FloatArray) -> FloatArray:
        """Give the means of the clusters' features; 0 for clusters without rows."""
        assert self.features is not None
        with one_blas_thread():
            means = self.members(labels, len(weight)).T @ self.features
        means /= np.where(weight > 0, weight, 1.0)[:, None]
        return means

    def inertia(self, labels: Labels) -> float:
        """Give the kernel k-means cost of a clustering about the clusters' own means.

        Parameters
        ----------
        labels : ndarray of shape (n_rows,), int
            Cluster of every row, from 0 on.

        Returns
        -------
        float
            Weighted sum of k(i, i) less the sum of S(C_l, C_l) / |C_l|. What is below 1e-12 of the
            former is 0.
        """
        k = int(labels.max()) + 1
        if self.features is not None:
            means = self._means(labels, self.cluster_weights(labels, k))
            apart = self.features - means[labels]
            cost = _weighted_sum(np.einsum("ij,ij->i", apart, apart), self.weight)
            return self.settled(cost)
        stocks = self.self_stocks(labels, self.label_sums(labels, k))
        return self.cost(self.cluster_weights(labels, k), stocks)

    def cost(self, weight: FloatArray, stocks: FloatArray) -> float:
        """Give the cost from the clusters' weights and self-stocks."""
        filled = weight > 0
        return self.settled(self.trace - math.fsum(stocks[filled] / weight[filled]))

    def settled(self, cost: float) -> float:
        """Give the cost, or 0 where it is rounding."""
        return 0.0 if abs(cost) <= ROUNDING * abs(self.trace) else cost


def gram_sums(
    gram: FloatArray, labels: Labels, weight: FloatArray, k: int, n_jobs: int = 1
) -> FloatArray:
    """Give the sums of the rows of a kernel matrix over each cluster, in O(n^2) whatever k is.

    Parameters
    ----------
    gram : ndarray of shape (n_rows, n_columns)
        Kernel values.
    labels : ndarray of shape (n_rows,), int
        Cluster of each row; rows with labels below 0 are left out.
    weight : ndarray of shape (n_rows,)
        Weight of each row, of any sign.
    k : int
        Number of clusters.
    n_jobs : int, default=1
        Threads.

    Returns
    -------
    ndarray of shape (k, n_columns), float64
    """

    def part(start: int) -> FloatArray:
        inside = start + np.flatnonzero(labels[start : start + _TILE] >= 0)
        members = csr_matrix(
            (weight[inside], (labels[inside], inside - start)),
            shape=(k, min(_TILE, len(labels) - start)),
        )
        return np.asarray(members @ gram[start : start + _TILE])

    sums = np.zeros((k, gram.shape[1]))
    for found in map_in_order(part, range(0, len(labels), _TILE), n_jobs):
        sums += found
    return sums


def squared_distances(
    diagonal: FloatArray, sums: FloatArray, weight: FloatArray, stocks: FloatArray
) -> FloatArray:
    """Give the squared distances of rows to clusters' means; rounding below 0 is 0.

    Parameters
    ----------
    diagonal : ndarray of shape (n_rows,)
        k(i, i).
    sums : ndarray of shape (n_rows, k)
        Label sums of the rows.
    weight, stocks : ndarray of shape (k,)
        Weights and self-stocks of the clusters. Those of weight 0 get any number.

    Returns
    -------
    ndarray of shape (n_rows, k), float64
    """
    safe = np.where(weight > 0, weight, 1.0)
    found = sums * (-2.0 / safe)
    found += diagonal[:, None]
    found += stocks / (safe * safe)
    floor = -ROUNDING * float(np.abs(diagonal).max(initial=0.0))
    found[(found < 0) & (found >= floor)] = 0.0
    return found


def _bin_sums(bins: Labels, values: FloatArray, k: int) -> FloatArray:
    return np.asarray(np.bincount(bins, weights=values, minlength=k), dtype=np.float64)


def _weighted_sum(values: FloatArray, weight: FloatArray | None) -> float:
    with np.errstate(over="ignore", invalid="ignore"):  # who needs it finite, checks it
        return float(values.sum() if weight is None else (weight * values).sum())
