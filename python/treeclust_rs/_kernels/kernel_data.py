"""The rows of a fit in a kernel's geometry: label sums, distances to clusters' means, costs.

The sums (see `cluster_sums`) come from features of the rows, from their kernel matrix, or, without
either, from the rows themselves, whose kernel values are computed again, tile by tile.

Each tile is computed by one thread, and tiles are added in one order: the bits do not depend on the
number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse

from .. import _engine
from .._data import (
    Encoding,
    SparseTable,
    Table,
    Units,
    WeightedRows,
    column_of,
    level_columns,
    take_rows,
)
from .._engine import GroupMeans, LabelCosts
from .._reference.centers import distance_costs
from .._reference.observed import filled_matrix
from .._util import FloatArray, IntArray, column_name, map_in_order, one_blas_thread, weighted_sum
from .kernels import ORIGIN_FREE, Kernel
from .low_rank import FeatureMap, approximate
from .means import (
    ROUNDING,
    TILE,
    bin_sums,
    center_distances,
    gram_sums,
    squared_distances,
)
from .parameters import KernelParameters, gamma_of_variance, has_gamma, kernel_of
from .sparse_rows import Matrix, squared_norms, table_of

Labels = npt.NDArray[Any]

OVERFLOW = 'The kernel values overflow float64. Use scale="standard" or rescale the columns.'


def make_kernel_data(
    estimator: KernelParameters,
    data: WeightedRows[Any],
    gram: FloatArray | None,
    rng: Any,
    *,
    rank_tol: float = 1e-6,
    hold_gram: bool = True,
    levels_apart: bool = False,
) -> KernelData:
    """Return the rows of an estimator's fit in its kernel's geometry.

    Parameters
    ----------
    estimator : KernelParameters
        Estimator with the kernel's parameters.
    data : WeightedRows
        Rows of the fit, their weights positive; sparse ones where `takes_sparse` says so.
    gram : ndarray of shape (n_samples, n_samples) or None
        Their kernel matrix, with ``kernel="precomputed"``.
    rng : RandomState
        Source of the approximation.
    rank_tol : float, default=1e-6
        `tol` of "rpcholesky", see `approximate`.
    hold_gram : bool, default=True
        Whether to compute the n x n matrix of kernels without features; else the rows are kept.
    levels_apart : bool, default=False
        Whether columns of levels are left out of the features and described by `LevelFeatures`. The
        kernel is linear. Of the sums only `inertia` is then known.

    Returns
    -------
    KernelData

    Raises
    ------
    ValueError, TypeError
        As `make_kernel`, `Kernel.matrix` and `approximate` do.
    """
    weight, n_jobs = data.weight, data.threads.n_jobs
    if gram is not None:
        return KernelData.of_gram(gram, weight, n_jobs=n_jobs)
    if levels_apart and data.rows.levels is not None:
        numbers = make_kernel_data(estimator, numbers_of(data), None, rng)
        return numbers.with_levels(LevelFeatures.of_all(data))
    matrix, units, names = filled_rows(estimator.kernel, data)
    kernel = kernel_of(
        estimator, matrix, gamma=estimator.gamma, sample_weight=weight, feature_names=names
    )
    given = KernelRows(kernel, matrix, units, weight, n_jobs)
    if estimator.approximation is not None:
        return KernelData.of_approximation(
            given,
            method=estimator.approximation,
            n_components=estimator.n_components,
            tol=rank_tol,
            random_state=rng,
        )
    return KernelData.of_kernel(given) if hold_gram else KernelData.of_rows(given)


@dataclass(frozen=True, eq=False)
class DeferredKernelData:
    """Rows with levels or gaps and their kernel; their coordinates are built for each cost.

    A column of levels has up to 255 coordinates of 8 bytes, and its codes have 1 byte. To fill gaps
    takes a fifth of the time of a fit.
    """

    kernel: Kernel
    rows: Table
    weight: FloatArray | None
    units: Units
    n_jobs: int
    feature_map: None = None
    gram: None = None

    @classmethod
    def of(cls, estimator: KernelParameters, data: WeightedRows[Table]) -> DeferredKernelData:
        """Build the kernel that `make_kernel_data` builds, and copy the rows.

        Raises ValueError and TypeError as `make_kernel` does.
        """
        rows, units, encoding = data.rows, data.units, data.encoding
        given, gamma = estimator.kernel, estimator.gamma
        if gamma == "scale" and isinstance(given, str) and has_gamma(given):
            near = encoding.shift[np.newaxis]
            whole = data.encoded_means(np.zeros(rows.n_samples, dtype=np.uint32), near)
            gamma = gamma_of_variance(float(whole.spread[0] / whole.weight[0]))
        kernel = kernel_of(estimator, np.zeros((1, encoding.n_coordinates)), gamma=gamma)
        for f, known in enumerate(encoding.levels):
            if known is None and not kernel.takes_negative:
                cells = np.nan_to_num(column_of(rows, f)) / units.scale[f]
                kernel.check(cells[:, np.newaxis], [column_name(rows.feature_names, f)])
        copy = take_rows(rows, np.ones(rows.n_samples, dtype=bool))
        return cls(kernel, copy, data.weight, units, data.threads.n_jobs)

    def inertia(self, labels: Labels) -> float:
        """Return the cost of a clustering as `KernelData.inertia` does."""
        threads = _engine.Threads(self.n_jobs)
        data = WeightedRows(self.rows, self.weight, self.units, threads)
        matrix, units, _ = filled_rows(self.kernel.name, data)
        given = KernelRows(self.kernel, matrix, units, self.weight, self.n_jobs)
        return KernelData.of_rows(given).inertia(labels)


def numbers_of(data: WeightedRows[Table]) -> WeightedRows[Table]:
    """Return the rows with their columns of numbers alone; of zeros where there are none."""
    table, units = data.rows, data.units
    kept = [f for f in range(table.n_features) if f not in level_columns(table)]
    if not kept:
        rows = Table(np.zeros((table.n_samples, 1)), table.n_samples, 1, feature_names=None)
        return replace(data, rows=rows, units=Units.own(1))
    gaps = None if table.gaps is None else tuple(table.gaps[f] for f in kept)
    names = table.feature_names
    rows = Table(
        [table.data[f] for f in kept],
        table.n_samples,
        len(kept),
        None if names is None else [names[f] for f in kept],
        gaps=gaps if gaps is not None and any(gaps) else None,
    )
    return replace(data, rows=rows, units=Units(units.shift[kept], units.scale[kept]))


@dataclass(frozen=True, eq=False)
class LevelFeatures:
    """What the linear kernel compares in a column of levels: `unit` in a row's own level.

    A missing cell has the means, as all rows have on average.
    """

    data: WeightedRows[Table]
    column: int
    unit: float
    shares: FloatArray
    """Of the observed cells, by level."""

    @classmethod
    def of_all(cls, data: WeightedRows[Table]) -> tuple[LevelFeatures, ...]:
        """Return those of all columns of levels."""
        nobody, encoding = np.zeros(data.rows.n_samples, dtype=np.uint32), data.encoding
        return tuple(
            cls(data, f, 1.0 / encoding.unit_of_levels(f), data.level_shares(f, nobody, 1)[0])
            for f in level_columns(data.rows)
        )

    @property
    def means(self) -> FloatArray:
        """The means of the features."""
        return self.unit * self.shares

    def spread(self, labels: Labels, k: int, weight: FloatArray) -> FloatArray:
        """Return the squared distances of each cluster's rows to their mean, of shape (k,).

        `weight`: of the clusters.
        """
        counts = self.data.level_weights(self.column, labels, k)
        missing = np.maximum(weight - counts.sum(axis=1), 0.0)[:, np.newaxis]
        means = (counts + missing * self.shares) / weight[:, np.newaxis]
        apart = counts * (1.0 - means) + missing * self.shares * (self.shares - means)
        return np.asarray(self.unit * self.unit * apart.sum(axis=1))


def filled_rows(
    kernel: Any, data: WeightedRows[Any]
) -> tuple[Matrix, Units | Encoding, list[str] | None]:
    """Return the rows as a kernel compares them, see `kernel_rows`, their units and columns' names.

    Of a table with gaps or levels these are the coordinates of its `Encoding`, with gaps filled by
    the columns' means.
    """
    names = data.rows.feature_names
    if data.rows.is_plain:
        return kernel_rows(kernel, data.rows, data.units), data.units, names
    matrix, encoding = filled_matrix(data), data.encoding
    if not (isinstance(kernel, str) and kernel in ORIGIN_FREE):
        matrix += encoding.shift / encoding.scale
    return matrix, encoding, encoding.names(names)


def kernel_rows(kernel: Any, table: Table | SparseTable, units: Units) -> Matrix:
    """Return the rows in units; dense ones shifted for kernels that do not depend on the origin."""
    if isinstance(table, SparseTable):
        matrix = units.sparse_matrix(table)
        # A model may keep them; the user may write to X after the fit.
        return matrix.copy() if np.may_share_memory(matrix.data, table.values) else matrix
    if isinstance(kernel, str) and kernel in ORIGIN_FREE:
        return units.matrix(table)
    return Units(np.zeros_like(units.shift), units.scale).matrix(table)


def _mean(rows: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Return the weighted mean of the rows."""
    if weight is None:
        return np.asarray(rows.mean(axis=0))
    return np.asarray(np.einsum("i,ij->j", weight, rows) / weight.sum())


@dataclass(frozen=True, eq=False)
class KernelRows:
    """Rows in the units of a kernel (see `kernel_rows`), with weights (None: ones)."""

    kernel: Kernel
    matrix: Matrix
    units: Units | Encoding
    weight: FloatArray | None
    n_jobs: int = 1

    def origin(self) -> FloatArray | None:
        """Return the mean of the rows before the shift with the linear kernel, else None."""
        if self.kernel.name != "linear":
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            return _mean(self.matrix, self.weight) + self.units.shift / self.units.scale


@dataclass(frozen=True, eq=False)
class KernelData:
    """Rows of a fit with their kernel: as features, as a kernel matrix, or as rows.

    Features are centered, which changes neither distances nor gains and keeps digits; Kauri's
    objective of the centered features is lower by `offset`. With features, `trace`, `diagonal` and
    `label_sums` are those of the centered features. Sparse features stay where they are: `mean` and
    `offset` are 0.
    """

    kernel: Kernel | None
    """None for a precomputed kernel matrix."""
    feature_map: FeatureMap | None
    """Map of an approximation, without the features of the rows."""
    features: Matrix | None
    gram: FloatArray | None
    weight: FloatArray | None
    """Positive; None: ones."""
    diagonal: FloatArray
    """k(i, i)."""
    trace: float
    """Weighted sum of k(i, i)."""
    offset: float
    mean: FloatArray | None = None
    """Mean of the features before they were centered."""
    rows: Matrix | None = None
    """Rows in the kernel's units; None with features or a precomputed matrix."""
    n_jobs: int = 1
    levels: tuple[LevelFeatures, ...] = ()
    """Beside the features; `trace`, `offset` and `inertia` count them, other sums do not."""

    def with_levels(self, levels: tuple[LevelFeatures, ...]) -> KernelData:
        """Return the same rows with features of levels beside their own."""
        all_rows = np.zeros(self.n_rows, dtype=np.uint32)
        total = float(self.weights.sum())
        trace, offset = self.trace, self.offset
        for level in levels:
            trace += float(level.spread(all_rows, 1, np.array([total]))[0])
            offset += total * float(np.square(level.means).sum())
        return replace(self, levels=levels, trace=trace, offset=offset)

    @classmethod
    def of_kernel(cls, given: KernelRows) -> KernelData:
        """Build from a kernel's features (may overwrite the rows), or its matrix if it has none.

        Raises
        ------
        ValueError
            If the matrix would be larger than `MAX_ARRAY_BYTES`, or the kernel is not defined.
        """
        features = given.kernel.explicit_features(given.matrix)
        if features is not None:
            return cls.of_features(features, given)
        gram = given.kernel.matrix(given.matrix, n_jobs=given.n_jobs)
        data = cls.of_gram(gram, given.weight, given.kernel, given.n_jobs)
        return replace(data, rows=given.matrix)

    @classmethod
    def of_rows(cls, given: KernelRows, feature_map: FeatureMap | None = None) -> KernelData:
        """Build from features, of the kernel (may overwrite the rows) or the map, or from the rows.

        No n x n array is allocated: sums take O(n^2) kernel values in tiles of 8 MiB.
        """
        kernel, matrix, weight, n_jobs = given.kernel, given.matrix, given.weight, given.n_jobs
        if feature_map is None:
            features = kernel.explicit_features(matrix)
        else:
            features = feature_map.transform(matrix, n_jobs=n_jobs)
        if features is not None:
            return cls.of_features(features, given, feature_map)
        diagonal = kernel.diagonal(matrix)
        trace = weighted_sum(diagonal, weight)
        return cls(
            kernel, None, None, None, weight, diagonal, trace, 0.0, rows=matrix, n_jobs=n_jobs
        )

    @classmethod
    def of_approximation(cls, given: KernelRows, **how: Any) -> KernelData:
        """Build from the features of `approximate` with the options `how`, and their map."""
        found = approximate(
            given.kernel, given.matrix, sample_weight=given.weight, n_jobs=given.n_jobs, **how
        )
        # The features of the training rows are centered in place; the map does not need them.
        feature_map = replace(found, features=np.empty((0, found.features.shape[1])))
        return cls.of_features(found.features, given, feature_map)

    @classmethod
    def of_gram(
        cls,
        gram: FloatArray,
        weight: FloatArray | None,
        kernel: Kernel | None = None,
        n_jobs: int = 1,
    ) -> KernelData:
        """Build from a kernel matrix, exactly or nearly symmetric."""
        diagonal = gram.diagonal()
        trace = weighted_sum(diagonal, weight)
        return cls(kernel, None, None, gram, weight, diagonal, trace, 0.0, n_jobs=n_jobs)

    @classmethod
    def of_features(
        cls, features: Matrix, given: KernelRows, feature_map: FeatureMap | None = None
    ) -> KernelData:
        """Build from features, centered in place; `offset` is about the rows' origin, if any."""
        if issparse(features):
            return cls._of_sparse_features(features, given)
        kernel, weight, origin = given.kernel, given.weight, given.origin()
        with np.errstate(over="ignore", invalid="ignore"):
            mean = _mean(features, weight)
            features -= mean
            squares = np.einsum("ij,ij->i", features, features)
            trace = weighted_sum(squares, weight)
            center = mean if origin is None else origin
            total = float(len(features) if weight is None else weight.sum())
            offset = total * float((center * center).sum())
        if not np.isfinite(trace + offset):
            raise ValueError(OVERFLOW)
        n_jobs = given.n_jobs
        return cls(
            kernel, feature_map, features, None, weight, squares, trace, offset, mean, None, n_jobs
        )

    @classmethod
    def _of_sparse_features(cls, features: csr_array, given: KernelRows) -> KernelData:
        """Build from sparse features, which are not centered."""
        with np.errstate(over="ignore", invalid="ignore"):
            squares = squared_norms(features)
            trace = weighted_sum(squares, given.weight)
        if not np.isfinite(trace):
            raise ValueError(OVERFLOW)
        mean = np.zeros(features.shape[1])
        weight, n_jobs = given.weight, given.n_jobs
        return cls(
            given.kernel, None, features, None, weight, squares, trace, 0.0, mean, n_jobs=n_jobs
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.diagonal)

    @property
    def weights(self) -> FloatArray:
        """The weights, ones if there are none."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    def objective(self, labels: Labels) -> float:
        """Return Kauri's objective L of a clustering of the rows, from its definition."""
        weight = self.weights
        parts = []
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label)
            if self.features is not None:
                total = self._sum_of_features(rows)
                stock = (total * total).sum()
            else:
                assert self.gram is not None
                stock = weight[rows] @ self.gram[np.ix_(rows, rows)] @ weight[rows]
            parts.append(float(stock / weight[rows].sum()))
        return math.fsum(parts) + self.offset

    def _sum_of_features(self, rows: IntArray) -> FloatArray:
        """Return the weighted sum of the features of some rows."""
        assert self.features is not None
        features, weight = self.features[rows], self.weights[rows]
        if issparse(features):
            return np.asarray(features.T @ weight)
        return np.asarray(np.einsum("i,ij->j", weight, features))

    # ---- clusters -------------------------------------------------------------------------

    def cluster_weights(self, labels: Labels, k: int) -> FloatArray:
        """Return the weight of each cluster, of shape (k,). Labels below 0 are of no cluster."""
        inside = labels >= 0
        weight = None if self.weight is None else self.weight[inside]
        return bin_sums(labels[inside], weight, k)

    def label_sums(self, labels: Labels, k: int) -> FloatArray:
        """Return S[i, l], the sum of w_j k(i, j) over the rows j labelled l.

        Parameters
        ----------
        labels : ndarray of shape (n_rows,), int
            Labels 0, ..., k - 1; rows with labels below 0 are left out of all sums.
        k : int
            Number of clusters.

        Returns
        -------
        ndarray of shape (n_rows, k), float64
            With features, those of the centered features.
        """
        if self.features is not None:
            with one_blas_thread():
                return np.asarray(self.features @ (self.features.T @ self.members(labels, k)))
        if self.gram is None:
            return self._tiled_sums(self.members(labels, k))
        return np.ascontiguousarray(gram_sums(self.gram, labels, self.weights, k, self.n_jobs).T)

    def members(self, labels: Labels, k: int) -> FloatArray:
        """Return the (n_rows, k) matrix with each row's weight in the column of its label."""
        members = np.zeros((self.n_rows, k))
        inside = np.flatnonzero(labels >= 0)
        members[inside, labels[inside]] = 1.0 if self.weight is None else self.weight[inside]
        return members

    def _tiled_sums(self, members: FloatArray) -> FloatArray:
        """Return the label sums; each kernel value is computed once, for both its rows."""
        assert self.kernel is not None and self.rows is not None
        kernel, rows, n = self.kernel, self.rows, self.n_rows

        def tile_sums(corner: tuple[int, int]) -> tuple[FloatArray, FloatArray | None]:
            first, second = (slice(start, start + TILE) for start in corner)
            tile = kernel.block(rows[first], rows[second], *corner)
            if first == second:
                np.fill_diagonal(tile, self.diagonal[first])
                return tile @ members[first], None
            return tile @ members[second], tile.T @ members[first]

        sums = np.zeros_like(members)
        corners = [(a, b) for a in range(0, n, TILE) for b in range(a, n, TILE)]
        n_jobs = 1 if kernel.function is not None else self.n_jobs
        with one_blas_thread():
            found = map_in_order(tile_sums, corners, n_jobs)
            for (a, b), (of_rows, of_columns) in zip(corners, found, strict=True):
                sums[a : a + TILE] += of_rows
                if of_columns is not None:
                    sums[b : b + TILE] += of_columns
        return sums

    def label_costs(self, labels: Labels, k: int) -> LabelCosts:
        """Return the costs of giving rows to clusters: their squared `distances`, weighted."""
        if self.features is not None and issparse(self.features):
            means = np.ascontiguousarray(self._group_means(labels, k).means[:k])
            return self._feature_rows().label_costs(means)
        return distance_costs(self.distances(labels, k), self.weight)

    def distances(self, labels: Labels, k: int) -> FloatArray:
        """Return the squared distances of the rows to the clusters' means, eq. (5) of the paper.

        Parameters
        ----------
        labels, k
            As for `label_sums`.

        Returns
        -------
        ndarray of shape (n_rows, k), float64
            inf for clusters without rows. Negative only for kernels that are not positive
            semidefinite.
        """
        weight = self.cluster_weights(labels, k)
        if self.features is not None:
            means = self._group_means(labels, k).means[:k]
            distances = np.ascontiguousarray(center_distances(means, self.features).T)
        else:
            sums = self.label_sums(labels, k)
            stocks = self.self_stocks(labels, sums)
            distances = squared_distances(self.diagonal, sums, weight, stocks)
        distances[:, weight == 0] = np.inf
        return distances

    def self_stocks(self, labels: Labels, sums: FloatArray) -> FloatArray:
        """Return S(C_l, C_l) of each cluster from the label sums, of shape (k,)."""
        inside = np.flatnonzero(labels >= 0)
        own = labels[inside]
        return bin_sums(own, self.weights[inside] * sums[inside, own], sums.shape[1])

    def _group_means(self, labels: Labels, k: int) -> GroupMeans:
        """Return the means of the clusters' features, and one more entry: rows without a label."""
        assert self.features is not None
        groups = np.where(labels < 0, k, labels).astype(np.uint32)
        return self._feature_rows().group_means(groups, k + 1)

    def _feature_rows(self) -> WeightedRows[Any]:
        """Return the features as rows of a table."""
        assert self.features is not None
        n, d = self.features.shape
        table: Table | SparseTable
        if issparse(self.features):
            table = table_of(self.features)
        else:
            table = Table(self.features, n, d, feature_names=None)
        return WeightedRows(table, self.weight, Units.own(d), _engine.Threads(self.n_jobs))

    def inertia(self, labels: Labels) -> float:
        """Return the kernel k-means cost of a clustering about the clusters' own means.

        Parameters
        ----------
        labels : ndarray of shape (n_rows,), int
            Cluster of every row, from 0 on.

        Returns
        -------
        float
            With features the sum of squared distances; else the weighted sum of k(i, i) minus that
            of S(C_l, C_l) / |C_l|, and 0 if it is below 1e-12 of the former.
        """
        k = int(labels.max()) + 1
        if self.features is not None:
            found = self._group_means(labels, k)
            cost = float(found.spread.sum())
            for level in self.levels:
                cost += float(level.spread(labels, k, found.weight[:k]).sum())
            # The mean of equal rows is rounded, too.
            rounding = 16 * np.finfo(float).eps ** 2 * (self.trace + abs(self.offset))
            return 0.0 if cost <= rounding else cost
        stocks = self.self_stocks(labels, self.label_sums(labels, k))
        return self.cost(self.cluster_weights(labels, k), stocks)

    def cost(self, weight: FloatArray, stocks: FloatArray) -> float:
        """Return the cost from the clusters' weights and self-stocks."""
        filled = weight > 0
        return self._rounded(self.trace - math.fsum(stocks[filled] / weight[filled]))

    def _rounded(self, cost: float) -> float:
        """Return the cost, or 0 if it is rounding."""
        return 0.0 if abs(cost) <= ROUNDING * abs(self.trace) else cost
