"""Trees that are grown split by split: a fit holds the trees of all smaller sizes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from .._data.units import Units
from .._util.arrays import FloatArray, IntArray
from ..tree.cluster_tree import ClusterTree
from ..tree.reshape import kept_ancestor
from .clusterer import TreeClusterer
from .leaf_sums import LeafSums

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
