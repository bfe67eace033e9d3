"""Trees grown split by split, and by label costs: a fit holds the trees of all smaller sizes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl
from sklearn.utils.validation import check_is_fitted

from .._data import Table, Units
from .._util import Codes, FloatArray, IntArray
from ..tree import LEAF, OBLIQUE, ClusterTree, kept_ancestor
from .clusterer import TreeClusterer
from .fit_rows import FitRows
from .saving import Check, SavedField

# What a model has of its tree and of the rows of its fit.
_OF_TREE_AND_ROWS = ("labels_", "cluster_centers_", "inertia_", "_inertia")


@dataclass(frozen=True, eq=False)
class TrainingState:
    """What a model keeps of the rows of its fit, for itself and for smaller trees."""

    leaf_of_row: npt.NDArray[np.int32]
    """Leaf of every row, those that the fit left out included."""
    leaf_sums: LeafSums | None
    """None: not known, or too many to keep."""
    units: Units
    reference_centers: FloatArray | None
    """k x d, in units: what clusters without rows have; None: NaN."""

    def truncate(self, kept: IntArray) -> Self:
        """Return the state of a smaller tree; `kept`: the node that each node is part of there."""
        sums = None if self.leaf_sums is None else self.leaf_sums.truncate(kept)
        leaves = kept[self.leaf_of_row].astype(np.int32)
        return replace(self, leaf_of_row=leaves, leaf_sums=sums)

    def means(self, tree: ClusterTree) -> tuple[FloatArray, FloatArray]:
        """Return the weights of the clusters and their means in units; needs the sums."""
        assert self.leaf_sums is not None
        return self.leaf_sums.means(tree, self.reference_centers)

    def own(self, means: FloatArray) -> FloatArray:
        """Return means in the columns' own units."""
        return means * self.units.scale + self.units.shift


class GrownClusterer(TreeClusterer, abstract=True):
    """Base of the estimators whose tree is grown split by split."""

    _training: TrainingState

    # The attribute with the objective by number of leaves, the last entry being the tree's.
    _path_name: ClassVar[str] = "_cost_path"

    def _set_training(self, training: TrainingState) -> None:
        """Set what follows from the tree and the rows of the fit."""
        tree = self.tree_
        self.labels_ = self.classes_[tree.leaf_clusters][training.leaf_of_row]
        if training.leaf_sums is not None:
            self._set_centers(training)
            if not training.leaf_sums.is_by_leaf(tree):
                training = replace(training, leaf_sums=None)
        self._training = training

    def _set_centers(self, training: TrainingState) -> None:
        """Set what follows from the sums of the leaves."""
        _, means = training.means(self.tree_)
        self.cluster_centers_ = training.own(means)

    def _follow_path(self, whole: Self) -> None:
        """Set what follows from the objective path of a model that is truncated to this one."""

    def truncate(self, max_leaves: int) -> Self:
        """Return the model with fewer leaves, as a fit with this `max_leaves` would.

        Parameters
        ----------
        max_leaves : int
            Number of leaves, at least 1 and those of the base tree; the whole model if it has no
            more.

        Returns
        -------
        Self
            A new fitted estimator, whose labels, centers and costs are those of the smaller tree.
            Models read from a file lack what takes the rows of the fit; with more than a million
            numbers (leaves x columns), or ``criterion="kmedians"``, the centers are lacking and
            the costs about them.

        Raises
        ------
        ValueError
            If `max_leaves` is less than 1 or than the leaves of the base tree.
        """
        check_is_fitted(self, "tree_")
        tree = self.tree_.truncate(max_leaves)
        model = copy.copy(self)
        if tree is self.tree_:
            return model
        if "max_leaves" in self.get_params(deep=False):
            model.set_params(max_leaves=tree.n_leaves)
        path = getattr(self, self._path_name)
        setattr(model, self._path_name, path[: len(path) - (self.n_leaves_ - tree.n_leaves)])
        model._set_tree(tree)
        for name in _OF_TREE_AND_ROWS:
            model.__dict__.pop(name, None)
        model._follow_path(self)
        if "_training" in self.__dict__:
            kept = kept_ancestor(self.tree_, tree.n_nodes)
            model._set_training(self._training.truncate(kept))
        return model


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
        weight, sums = fit_rows.group_sums(group[leaf_of_row], len(ids))
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
