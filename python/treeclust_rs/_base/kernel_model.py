"""Base of the kernel estimators: rebuilds the fitted kernel for `score`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np

from .._data import Table, Units, check_sample_weight, take_rows
from .._kernels import (
    FeatureMap,
    Kernel,
    KernelData,
    KernelRows,
    check_gram,
    check_gram_argument,
    kernel_of,
    kernel_rows,
)
from .._util import FloatArray, IntArray, effective_n_jobs, estimator
from ..tree import ClusterTree
from .fit_rows import fitted_mask, square_part
from .saving import POSITIVE, SavedField
from .truncation import GrownClusterer

GAMMA = SavedField(check=POSITIVE)


@estimator
class KernelModel(GrownClusterer, abstract=True):
    """A tree whose fit used a kernel."""

    _defining: ClassVar[tuple[str, ...]] = ("kernel", "kernel_params")

    _: KW_ONLY
    kernel: Any = "rbf"
    gamma: float | str | None = None
    degree: float = 3
    coef0: float = 1.0
    kernel_params: Mapping[str, Any] | None = None
    approximation: str | None = None
    n_components: int = 100

    def _keep_kernel(self, stocks: KernelData, units: Units) -> None:
        """Keep what `score` needs of the fit."""
        self.gamma_ = None if stocks.kernel is None else stocks.kernel.gamma
        self.scale_ = units.scale
        self._kernel = stocks.kernel
        self._feature_map = stocks.feature_map
        self._units = units

    def _kernel_rows(self, table: Table, weight: FloatArray | None, n_jobs: int) -> KernelRows:
        """Return the rows of a table as the kernel of a fitted model sees them."""
        units: Units | None = self.__dict__.get("_units")
        if units is None:  # read from a file, which lacks the origin because any will do
            units = Units(Units.of(table, None, None, n_jobs).shift, self.scale_)
        rows = kernel_rows(self.kernel, table, units)
        kernel = self._fitted_kernel(table)
        kernel.check(rows, table.feature_names)
        return KernelRows(kernel, rows, units, weight, n_jobs)

    def _fitted_kernel(self, table: Table) -> Kernel:
        """Return the kernel with the parameters of the fit; the model may be read from a file."""
        kernel: Kernel | None = self.__dict__.get("_kernel")
        if kernel is not None:
            return kernel
        self._check_known()
        return kernel_of(self, np.zeros((1, table.n_features)), gamma=self.gamma_)

    def _stocks_and_labels(
        self, X: Any, sample_weight: Any, gram: Any
    ) -> tuple[KernelData, IntArray]:
        """Return rows as the kernel of the fit sees them, and the cluster the tree puts each in.

        Rows of weight 0 are left out. Raises as `score` of the estimators says.
        """
        table, leaves = self._route(X, all_columns=True)
        check_gram_argument(self.kernel, self.approximation, gram is not None)
        n_jobs = effective_n_jobs(self.n_jobs)
        weight = check_sample_weight(sample_weight, table.n_samples)
        kept = fitted_mask(weight, None)
        if gram is not None:
            gram = square_part(check_gram(gram, table.n_samples), kept)
        if kept is not None and weight is not None:
            table, weight, leaves = take_rows(table, kept), weight[kept], leaves[kept]
        labels = self.tree_.leaf_clusters[leaves]
        if gram is not None:
            return KernelData.of_gram(gram, weight, n_jobs=n_jobs), labels
        given = self._kernel_rows(table, weight, n_jobs)
        if self.approximation is None:
            return KernelData.of_kernel(given), labels
        feature_map: FeatureMap | None = self.__dict__.get("_feature_map")
        if feature_map is None:
            raise ValueError(
                "The model was read from a file, which does not hold the features of its "
                "approximation: score cannot be computed. Fit it anew."
            )
        return KernelData.of_rows(given, feature_map), labels

    def _complete(self, tree: ClusterTree) -> None:
        super()._complete(tree)
        self.__dict__.setdefault("gamma_", None)
