"""Where the clusters of a tree lie: sums of the rows of its leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from .. import _engine
from .._data.table import Table
from .._data.units import Units
from .._util.arrays import FloatArray
from ..tree.cluster_tree import ClusterTree


@dataclass(frozen=True)
class LeafSums:
    """Weight and column sums (in units) of the leaves, or of other groups of rows in a leaf."""

    ids: npt.NDArray[np.int64]
    """The leaf of each group."""
    weight: FloatArray
    sums: FloatArray

    # Most numbers kept for truncate().
    MOST: ClassVar[int] = 1_000_000

    @classmethod
    def of(
        cls,
        leaf_of_row: npt.NDArray[np.uint32],
        tree: ClusterTree,
        rows: Table,
        units: Units,
        sample_weight: FloatArray | None,
        threads: _engine.Threads,
    ) -> LeafSums:
        ids = np.flatnonzero(tree.kind == 0).astype(np.int64)
        group = np.zeros(tree.n_nodes, dtype=np.uint32)
        if len(ids) * rows.n_features > cls.MOST:
            # Too many to keep: one group for each cluster, under any leaf of it.
            group[ids] = tree.leaf_clusters[ids]
            _, first = np.unique(tree.leaf_clusters[ids], return_index=True)
            ids = ids[first]
        else:
            group[ids] = np.arange(len(ids))
        weight, sums = _engine.group_sums(
            rows.data,
            units,
            group[leaf_of_row],
            len(ids),
            sample_weight,
            threads,
        )
        return cls(ids, weight, sums)

    def centers(
        self, tree: ClusterTree, units: Units, of_empty: FloatArray | None = None
    ) -> FloatArray:
        """Give the means of the clusters in the columns' own units.

        `of_empty`: what stands for the means of clusters without rows.
        """
        clusters, k = tree.leaf_clusters[self.ids], len(tree.classes)
        weight = np.bincount(clusters, weights=self.weight, minlength=k)
        sums = np.zeros((k, self.sums.shape[1]))
        np.add.at(sums, clusters, self.sums)
        filled = weight > 0
        centers = np.full_like(sums, np.nan) if of_empty is None else of_empty.copy()
        centers[filled] = sums[filled] / weight[filled, None] * units.scale + units.shift
        return centers
