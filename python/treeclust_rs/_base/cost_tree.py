"""Trees grown by label costs: what ExKMC and its kernel relatives share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from sklearn.utils.validation import check_is_fitted

from .._data.sparse import SparseTable
from .._data.table import Table
from .._reference.reference import Given
from ..tree.cluster_tree import ClusterTree, leaf_mistakes
from ..tree.conditions import LEAF, OBLIQUE
from .clusterer import TreeClusterer

FloatArray = npt.NDArray[np.float64]


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


def make_tree(
    fitted: dict[str, Any], classes: list[int] | list[str], table: Table | SparseTable
) -> ClusterTree:
    """Make the tree of what the core's `fit_tree` gives."""
    weight = fitted["weighted_n_node_samples"]
    filled = weight > 0
    divisor = np.where(filled, weight, 1.0)
    value = fitted["label_weight"] / divisor[:, None]
    value = np.minimum(value, 1.0)
    is_base = len(fitted["kind"]) == 2 * fitted["n_base_leaves"] - 1
    labels = fitted["base_cluster"] if is_base else fitted["cluster"]
    leaves = np.flatnonzero(fitted["kind"] == 0)
    mistakes = np.maximum(fitted["mistakes"], 0.0)  # weights may sum to a hair below
    mistakes[leaves] = leaf_mistakes(
        weight[leaves], fitted["n_node_samples"][leaves], value[leaves, labels[leaves]]
    )
    names = (
        "children_left", "children_right", "feature", "threshold", "lower", "upper", "kind",
        "n_node_samples", "weighted_n_node_samples", "cluster", "base_cluster", "n_base_leaves",
    )  # fmt: skip
    return ClusterTree(
        **{name: fitted[name] for name in names},
        impurity=fitted["cost"] / divisor,
        **{name: fitted[name] for name in fitted if name.startswith("oblique_")},
        value=value[:, None, :],
        mistakes=mistakes,
        n_features=table.n_features,
        classes=classes,
        feature_names=table.feature_names,
    )


def node_counts(
    left: npt.NDArray[np.int64],
    leaf_of_row: npt.NDArray[Any],
    labels: npt.NDArray[Any],
    n_clusters: int,
    sample_weight: FloatArray | None,
) -> dict[str, Any]:
    """Give the rows of every node and their weight by label, as the core's `fit_tree` does.

    `left`: left children, each followed by its sibling.
    """
    n_nodes = len(left)
    rows = np.bincount(leaf_of_row, minlength=n_nodes)
    cells = leaf_of_row.astype(np.int64) * n_clusters + labels
    weight = np.bincount(cells, weights=sample_weight, minlength=n_nodes * n_clusters)
    label_weight = weight.astype(np.float64).reshape(n_nodes, n_clusters)
    add_up(left, rows, label_weight)
    return {
        "n_node_samples": rows,
        "weighted_n_node_samples": label_weight.sum(axis=1),
        "label_weight": label_weight,
    }


def add_up(left: npt.NDArray[np.int64], *of_nodes: npt.NDArray[Any]) -> None:
    """Fill in the inner nodes of arrays that know the leaves: sums of their children."""
    for node in range(len(left) - 1, -1, -1):  # children come after their parents
        if left[node] >= 0:
            for array in of_nodes:
                array[node] = array[left[node] : left[node] + 2].sum(axis=0)


def cost_path(fitted: dict[str, Any], minimum: float) -> FloatArray:
    """Give the surrogate cost from the base's number of leaves (or 1) to the last.

    `minimum`: what the regrets leave out, the sum of the rows' cheapest costs.
    """
    cost, left = fitted["cost"], fitted["children_left"]
    n_nodes, n_base = len(cost), fitted["n_base_leaves"]
    n_first = max(2 * n_base - 1, 1)
    inner = np.flatnonzero(left >= 0)
    parent = np.empty(n_nodes, dtype=np.int64)
    parent[left[inner]] = inner
    first = np.arange(n_first, n_nodes, 2)  # left children of the splits after the base, in order
    gains = cost[parent[first]] - cost[first] - cost[first + 1]
    is_first_leaf = (left[:n_first] < 0) | (left[:n_first] >= n_first)
    start = cost[:n_first][is_first_leaf].sum()
    path = minimum + start - np.concatenate([[0.0], np.cumsum(np.maximum(gains, 0.0))])
    if n_base:
        path[0] = minimum + fitted["base_cost"].sum()
    return np.minimum.accumulate(np.maximum(path, 0.0))
