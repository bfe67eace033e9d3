"""Trees grown by label costs: what ExKMC and its kernel relatives share."""

from __future__ import annotations

import numpy as np
import polars as pl
from sklearn.utils.validation import check_is_fitted

from .._reference.reference import Given
from .._util.arrays import FloatArray
from ..tree.cluster_tree import ClusterTree
from ..tree.nodes import LEAF, OBLIQUE
from .clusterer import TreeClusterer


class CostTree(TreeClusterer):
    """A tree whose growth lowers the sum of label costs over its leaves."""

    _cost_path: FloatArray

    @property
    def cost_path_(self) -> pl.DataFrame:
        """Surrogate cost by number of leaves: a frame with the columns n_leaves and cost."""
        check_is_fitted(self, "tree_")
        last = self.tree_.n_leaves
        first = last - len(self._cost_path) + 1
        return pl.DataFrame({"n_leaves": np.arange(first, last + 1), "cost": self._cost_path})

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each column in the decrease of the surrogate cost, of shape (n_features,)."""
        check_is_fitted(self, "tree_")
        return feature_importances(self.tree_, getattr(self, "scale_", None))

    def _check_cost_path(self, tree: ClusterTree) -> None:
        """Raise ValueError if a path read from a file cannot be the tree's."""
        n_path = tree.n_leaves - max(tree.n_base_leaves, 1) + 1
        path = self._cost_path
        if len(path) != n_path:
            raise ValueError(
                f"The model file has a _cost_path of {len(path)} entries; {n_path} were expected."
            )
        if (np.diff(path) > 0).any() or path[-1] < 0:
            raise ValueError("The model file has a _cost_path that rises or is negative.")

    def _set_tree(self, tree: ClusterTree) -> None:
        super()._set_tree(tree)
        self.classes_ = np.asarray(tree.classes)


def feature_importances(tree: ClusterTree, scale: FloatArray | None = None) -> FloatArray:
    """Give the share of each column in the decrease of the impurity.

    That of an oblique test is shared among its columns by the squares of their weights in units of
    `scale`.
    """
    cost = tree.impurity * tree.weighted_n_node_samples
    inner = np.flatnonzero(tree.kind != LEAF)
    gain = cost[inner] - cost[tree.children_left[inner]] - cost[tree.children_right[inner]]
    gain = np.maximum(gain, 0.0)
    oblique = tree.kind[inner] == OBLIQUE
    shares = np.bincount(
        tree.feature[inner[~oblique]], weights=gain[~oblique], minlength=tree.n_features
    ).astype(np.float64)  # integers where there is nothing to count
    for node, gained in zip(inner[oblique].tolist(), gain[oblique].tolist(), strict=True):
        columns, weights, _ = tree.oblique_test(node)
        sizes = np.abs(weights if scale is None else weights * scale[columns])
        squares = (sizes / sizes.max()) ** 2
        shares[columns] += gained * squares / squares.sum()
    total = shares.sum()
    return np.asarray(shares / total if total > 0 else shares, dtype=np.float64)


def check_n_clusters(n_clusters: int | None, given: Given) -> None:
    """Raise ValueError if the number asked for is not the reference's."""
    if None not in (n_clusters, given.n_clusters) and n_clusters != given.n_clusters:
        raise ValueError(
            f"n_clusters={n_clusters}, but the reference has {given.n_clusters} clusters."
        )


def check_max_leaves(max_leaves: int | None, n_clusters: int, is_default: bool) -> None:
    """Raise ValueError if there are fewer leaves than clusters."""
    if max_leaves is not None and max_leaves < n_clusters:
        default = " (the default)" if is_default else ""
        raise ValueError(
            f"max_leaves={max_leaves} must be at least n_clusters={n_clusters}{default}."
        )
