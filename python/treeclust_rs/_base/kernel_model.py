"""Base of the kernel estimators: rebuilds the fitted kernel for `score`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import _engine
from .._data import (
    SparseTable,
    Table,
    Units,
    WeightedRows,
    check_sample_weight,
    observed_rows,
    some_rows,
)
from .._kernels import (
    DeferredKernelData,
    FeatureMap,
    Kernel,
    KernelData,
    KernelRows,
    check_gram,
    check_gram_argument,
    filled_rows,
    kernel_of,
)
from .._reference.centers import column_means
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

    def _keep_kernel(self, stocks: KernelData | DeferredKernelData, units: Units) -> None:
        """Keep what `score` needs of the fit."""
        self.gamma_ = None if stocks.kernel is None else stocks.kernel.gamma
        self.scale_ = units.scale
        self._kernel = stocks.kernel
        self._feature_map = stocks.feature_map
        self._units = units

    def _fitted_kernel(self, table: Table | SparseTable) -> Kernel:
        """Return the kernel with the parameters of the fit; the model may be read from a file."""
        kernel: Kernel | None = self.__dict__.get("_kernel")
        if kernel is not None:
            return kernel
        self._check_known()
        return kernel_of(self, np.zeros((1, table.n_features)), gamma=self.gamma_)

    @property
    def _is_kmeans(self) -> bool:
        """Whether the kernel's costs are those of k-means in the columns."""
        # Models read from files that do not hold their kernel have the default in its place.
        is_linear = self.kernel == "linear" and "kernel" not in self._not_saved
        return is_linear and self.approximation is None

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, gram: Any = None) -> float:  # noqa: ARG002
        """Return minus the kernel cost of the tree's clusters of other rows, about their own means.

        Parameters
        ----------
        %(other_rows_and_gram)s

        Returns
        -------
        float
            Minus the kernel k-means cost under the kernel of the fit (the approximation, if there
            is one); with the linear kernel the k-means cost, of the observed cells. Other kernels
            see gaps filled with the means of these rows, and levels as `cluster_centers_` has them.

        %(score_errors)s
        """
        rows, labels, given = self._rows_and_labels(X, sample_weight, gram)
        if self._is_kmeans:
            near = column_means(rows, len(self.tree_.classes))
            of_clusters = rows.encoded_means(labels.astype(np.uint32), near)
            return -float(of_clusters.spread.sum())
        return -self._stocks(rows, given).inertia(labels)

    def _rows_and_labels(
        self, X: Any, sample_weight: Any, gram: Any
    ) -> tuple[WeightedRows[Any], IntArray, FloatArray | None]:
        """Return rows, the cluster the tree puts each in, and their kernel matrix if it is given.

        Rows of weight 0 are left out. Raises as `score` says.
        """
        check_is_fitted(self, "tree_")
        tree = self.tree_
        of_mixed = not (tree.column_kinds is None and tree.has_missing is None)
        missing = self._is_kmeans or self._takes_missing or of_mixed
        table, leaves = self._route(X, all_columns=True, missing=missing)
        check_gram_argument(self.kernel, self.approximation, gram is not None)
        weight = check_sample_weight(sample_weight, table.n_samples)
        kept = fitted_mask(weight, None, observed_rows(table))
        if gram is not None:
            gram = square_part(check_gram(gram, table.n_samples), kept)
        if kept is not None:
            table, leaves = some_rows(table, kept), leaves[kept]
            weight = None if weight is None else weight[kept]
        threads = _engine.Threads(effective_n_jobs(self.n_jobs))
        units: Units | None = self.__dict__.get("_units")
        if isinstance(table, SparseTable):
            units = Units(np.zeros_like(self.scale_), self.scale_)
        elif units is None:  # read from a file, which lacks the origin because any will do
            units = Units(Units.of(table, None, None, threads).shift, self.scale_)
        rows = WeightedRows(table, weight, units, threads)
        return rows, self.tree_.leaf_clusters[leaves], gram

    def _stocks(self, rows: WeightedRows[Any], gram: FloatArray | None) -> KernelData:
        """Return the rows, or their kernel matrix, as the kernel of the fit sees them."""
        n_jobs = rows.threads.n_jobs
        if gram is not None:
            return KernelData.of_gram(gram, rows.weight, n_jobs=n_jobs)
        matrix, units, names = filled_rows(self.kernel, rows)
        kernel = self._fitted_kernel(rows.rows)
        kernel.check(matrix, names)
        given = KernelRows(kernel, matrix, units, rows.weight, n_jobs)
        if self.approximation is None:
            return KernelData.of_kernel(given)
        feature_map: FeatureMap | None = self.__dict__.get("_feature_map")
        if feature_map is None:
            raise ValueError(
                "The model was read from a file, which does not hold the features of its "
                "approximation: score cannot be computed. Fit it anew."
            )
        return KernelData.of_rows(given, feature_map)

    def _complete(self, tree: ClusterTree) -> None:
        super()._complete(tree)
        self.__dict__.setdefault("gamma_", None)
