"""Sums of the rows of a tree's leaves, of which the means of its clusters are made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .. import _engine
from .._data.table import Table
from .._util.arrays import Codes, FloatArray, IntArray
from ..tree.cluster_tree import ClusterTree
from ..tree.nodes import LEAF
from .fit_rows import FitRows


@dataclass(frozen=True, eq=False)
class LeafSums:
    """Weight and column sums (in units) of the rows of each leaf, or of each cluster."""

    ids: IntArray
    """The leaf of each entry; of a cluster's, one of its leaves."""
    weight: FloatArray
    sums: FloatArray

    # Most numbers (leaves x columns) that are kept for `truncate`.
    MAX_NUMBERS: ClassVar[int] = 1_000_000

    @classmethod
    def of(cls, fit_rows: FitRows[Table], leaf_of_row: Codes, tree: ClusterTree) -> LeafSums:
        """Add up the rows of a fit: by leaf, or by cluster where that would be too many numbers."""
        rows = fit_rows.rows
        ids = np.flatnonzero(tree.kind == LEAF).astype(np.int64)
        group = np.zeros(tree.n_nodes, dtype=np.uint32)
        if len(ids) * rows.n_features > cls.MAX_NUMBERS:
            _, first, group[ids] = np.unique(
                tree.leaf_clusters[ids], return_index=True, return_inverse=True
            )
            ids = ids[first]
        else:
            group[ids] = np.arange(len(ids))
        weight, sums = _engine.group_sums(
            rows.data,
            fit_rows.units,
            group[leaf_of_row],
            len(ids),
            fit_rows.weight,
            fit_rows.threads,
        )
        return cls(ids, weight, sums)

    def means(
        self, tree: ClusterTree, of_empty: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the weights of the clusters and their means in units.

        `of_empty`: k x d, the rows for clusters without rows; None: NaN.
        """
        clusters, k = tree.leaf_clusters[self.ids], len(tree.classes)
        weight = np.bincount(clusters, weights=self.weight, minlength=k).astype(np.float64)
        sums = np.zeros((k, self.sums.shape[1]))
        np.add.at(sums, clusters, self.sums)
        filled = weight > 0
        means = np.full_like(sums, np.nan) if of_empty is None else of_empty.copy()
        means[filled] = sums[filled] / weight[filled, None]
        return weight, means

    def is_by_leaf(self, tree: ClusterTree) -> bool:
        """Whether every leaf has sums of its own, so that smaller trees have theirs too."""
        return len(np.unique(self.ids)) == tree.n_leaves

    def truncate(self, kept: IntArray) -> LeafSums:
        """Return the sums for a smaller tree; `kept`: the node that each node is part of there."""
        return replace(self, ids=kept[self.ids])

    def merged(self) -> LeafSums:
        """Return the sums with one entry for each leaf."""
        ids, entry = np.unique(self.ids, return_inverse=True)
        sums = np.zeros((len(ids), self.sums.shape[1]))
        np.add.at(sums, entry, self.sums)
        weight = np.bincount(entry, weights=self.weight, minlength=len(ids)).astype(np.float64)
        return LeafSums(ids.astype(np.int64), weight, sums)
