"""Distances of new rows to the means of a kernel k-means fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, issparse

from .._data import SparseTable, Table, Units
from .._util import BoolArray, FloatArray, one_blas_thread
from .kernel_data import OVERFLOW, KernelData, kernel_rows
from .kernels import ORIGIN_FREE, Kernel
from .low_rank import FeatureMap
from .means import Means
from .sparse_rows import Matrix


@dataclass(frozen=True, eq=False)
class Predictor:
    """The means of a fit, and what distances to them take."""

    kernel: Kernel | None
    """None for a precomputed kernel matrix."""
    feature_map: FeatureMap | None
    origin: FloatArray | None
    """What is subtracted from features, where there are some."""
    means: Means
    units: Units
    feature_names: list[str] | None
    """Names of the columns."""
    rows: Matrix | None = None
    """Rows of the fit, as the kernel sees them, where there are no features."""
    members: FloatArray | None = None
    """Their weights under their groups, of shape (n_samples, k); of a matrix that was given, for
    all rows of the fit."""
    column_means: tuple[FloatArray, FloatArray] | None = None
    """Of the linear kernel: means in the columns' own units, rounded, and what they lack in units.

    Each of shape (k, n_features).
    """

    @classmethod
    def of(
        cls,
        stocks: KernelData,
        means: Means,
        units: Units,
        kept: BoolArray | None,
        feature_names: list[str] | None,
    ) -> Predictor:
        """Build from the rows of a fit and the means that were found; `kept`: which rows these are.

        `kept` None: all rows that `fit` was given.
        """
        members = None
        if means.groups is not None:
            members = stocks.members(means.groups, len(means.weight))
            if kept is not None and stocks.kernel is None:
                of_kept = members
                members = np.zeros((len(kept), of_kept.shape[1]))
                members[kept] = of_kept
        return cls(
            stocks.kernel,
            stocks.feature_map,
            stocks.mean,
            replace(means, groups=None),
            units,
            feature_names,
            stocks.rows,
            members,
        )

    def distances(
        self, table: Table | SparseTable, gram: FloatArray | None, n_jobs: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return squared distances to the means, less k(x, x) without features, and their margin.

        Shapes are (k, n) and (n,). `gram` is the kernel with the rows of the fit, if it is given.

        Raises
        ------
        ValueError
            If the kernel is not defined on the rows, or sums of its values overflow.
        """
        if self.kernel is None:
            assert gram is not None and self.members is not None
            with one_blas_thread():
                sums = gram @ self.members
            return self.means.partial_distances(sums.T)
        matrix = self._matrix(table)
        kernel, rows, members = self.kernel, self.rows, self.members
        if rows is None or members is None:
            means, features = self.means, self._features(matrix, n_jobs)
            if issparse(features):
                means = Means.of_centers(self._own_centers())
            with np.errstate(over="ignore", invalid="ignore"):
                distances, margin = means.feature_distances(features)
            _check_overflow(margin)
            return distances, margin
        n = table.n_samples
        found, margin = np.empty((members.shape[1], n)), np.empty(n)

        def fill(start: int, stop: int) -> None:
            with np.errstate(over="ignore", invalid="ignore"):  # checked below
                block = self._like_fitted(matrix[start:stop])
                sums = kernel.block(block, rows, start) @ members
                found[:, start:stop], margin[start:stop] = self.means.partial_distances(sums.T)

        kernel.in_blocks(fill, n, max(rows.shape), n_jobs)
        _check_overflow(margin)
        return found, margin

    def diagonal(self, table: Table | SparseTable) -> FloatArray | float:
        """Return k(x, x) where `distances` leaves it out."""
        assert self.kernel is not None
        return 0.0 if self.rows is None else self.kernel.diagonal(self._matrix(table))

    def _like_fitted(self, matrix: Matrix) -> Matrix:
        """Return some rows sparse if those of the fit are, else dense and shifted as these are."""
        if issparse(self.rows) or not issparse(matrix):
            return csr_array(matrix) if issparse(self.rows) else matrix
        return np.asarray(matrix.toarray() - self._shift())

    def _shift(self) -> FloatArray:
        """Return what dense rows were shifted by in units, and sparse ones are not."""
        assert self.kernel is not None
        shift = self.units.shift / self.units.scale
        return shift if self.kernel.name in ORIGIN_FREE else np.zeros_like(shift)

    def _own_centers(self) -> FloatArray:
        """Return the means of the features without their origin and shift."""
        assert self.origin is not None and self.means.centers is not None
        return np.asarray(self.means.centers + (self.origin + self._shift()))

    def _matrix(self, table: Table | SparseTable) -> Matrix:
        assert self.kernel is not None
        matrix = kernel_rows(self.kernel.name, table, self.units)
        self.kernel.check(matrix, table.feature_names)
        return matrix

    def _features(self, matrix: Matrix, n_jobs: int) -> Matrix:
        assert self.kernel is not None
        if self.feature_map is not None:
            features = self.feature_map.transform(matrix, n_jobs=n_jobs)
        else:
            found = self.kernel.explicit_features(matrix)
            assert found is not None, "without features there are rows"
            features = found
        if issparse(features):
            return features
        assert self.origin is not None, "features are centered"
        with np.errstate(over="ignore", invalid="ignore"):  # the distances are checked
            return features - self.origin


def _check_overflow(values: FloatArray) -> None:
    if not np.isfinite(values).all():
        raise ValueError(OVERFLOW)
