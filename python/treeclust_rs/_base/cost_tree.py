"""Base of the trees grown by label costs: ExKMC and its kernel relatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from .._util.arrays import FloatArray
from ..tree.cluster_tree import ClusterTree
from ..tree.nodes import LEAF, OBLIQUE
from .saved_fields import Check, SavedField
from .truncation import GrownClusterer

COST_PATH = SavedField(
    "path",
    required=True,
    check=Check(
        lambda path: bool((np.diff(path) <= 0).all() and path[-1] >= 0),
        "a {name} that rises or is negative",
    ),
    n_entries=lambda tree: tree.n_leaves - max(tree.n_base_leaves, 1) + 1,
)


class CostTree(GrownClusterer, abstract=True):
    """A tree whose growth lowers the sum of label costs over its leaves."""

    scale_: FloatArray
    _cost_path: FloatArray

    @property
    def cost_path_(self) -> pl.DataFrame:
        """Surrogate cost by number of leaves: a frame with the columns n_leaves and cost."""
        last = self.tree_.n_leaves
        first = last - len(self._cost_path) + 1
        return pl.DataFrame({"n_leaves": np.arange(first, last + 1), "cost": self._cost_path})

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each column in the decrease of the surrogate cost, of shape (n_features,)."""
        return feature_importances(self.tree_, self.scale_)

    def _last_gain(self) -> float:
        path = self._cost_path
        return path[-2] - path[-1] if len(path) > 1 else 0.0


def feature_importances(tree: ClusterTree, scale: FloatArray) -> FloatArray:
    """Return the share of each column in the decrease of the impurity.

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
        sizes = np.abs(weights * scale[columns])
        squares = (sizes / sizes.max()) ** 2
        shares[columns] += gained * squares / squares.sum()
    return normalised(shares)


def normalised(shares: npt.NDArray[Any]) -> FloatArray:
    """Return the shares divided by their sum; zeros stay."""
    total = shares.sum()
    return np.asarray(shares / total if total > 0 else shares, dtype=np.float64)
