"""Trees grown split by split, and by label costs: a fit holds the trees of all smaller sizes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl
from sklearn.utils.validation import check_is_fitted

from .. import export
from .._engine import GroupMeans
from .._util import Codes, FloatArray, IntArray
from ..tree import LEAF, OBLIQUE, ClusterTree, kept_ancestor
from .clusterer import TreeClusterer
from .fit_rows import FitRows
from .saving import NO_NEGATIVE_INERTIA, Check, SavedField

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# What a model has of its tree and of the rows of its fit.
_OF_TREE_AND_ROWS = (
    "labels_",
    "cluster_centers_",
    "inertia_",
    "_inertia_path",
    "_kernel_cost",
)


@dataclass(frozen=True, eq=False)
class TrainingState:
    """What a model keeps of the rows of its fit, for itself and for smaller trees."""

    leaf_of_row: npt.NDArray[np.int32] | None
    """Leaf of every row, those that the fit left out included; None after a fit in parts."""
    leaf_means: LeafMeans | None
    """None: not known, or too many to keep."""
    reference_centers: FloatArray
    """k x d, in the columns' own units: what clusters without rows have."""

    def truncate(self, kept: IntArray) -> Self:
        """Return the state of a smaller tree; `kept`: the node that each node is part of there."""
        means = None if self.leaf_means is None else self.leaf_means.truncate(kept)
        rows = self.leaf_of_row
        leaves = None if rows is None else kept[rows].astype(np.int32)
        return replace(self, leaf_of_row=leaves, leaf_means=means)


class GrownClusterer(TreeClusterer, abstract=True):
    """Base of the estimators whose tree is grown split by split."""

    _training: TrainingState
    inertia_: float

    # The attribute with the objective by number of leaves, the last entry being the tree's.
    _path_name: ClassVar[str | None] = "_cost_path"

    def _set_training(self, training: TrainingState) -> None:
        """Set what follows from the tree and the rows of the fit."""
        tree = self.tree_
        self.__dict__.pop("labels_", None)
        if training.leaf_of_row is not None:
            self.labels_ = self.classes_[tree.leaf_clusters][training.leaf_of_row]
        self.__dict__.pop("_inertia_path", None)
        if training.leaf_means is not None:
            centers, self.inertia_ = self._centers_and_cost(training.leaf_means.clusters(tree))
            has_none = np.isnan(centers)
            self.cluster_centers_ = np.where(has_none, training.reference_centers, centers)
            if not training.leaf_means.is_by_leaf(tree):
                training = replace(training, leaf_means=None)
        self._training = training

    def _centers_and_cost(self, clusters: GroupMeans) -> tuple[FloatArray, float]:
        """Return the centers of the clusters, NaN for those without, and the cost about them."""
        has_rows = clusters.weight[:, None] > 0
        centers = np.where(has_rows, clusters.means, np.nan)
        return centers, float(clusters.spread.sum())

    @cached_property
    def _inertia_path(self) -> FloatArray | None:
        """The cost about the clusters' own means by number of leaves; None: not known."""
        training: TrainingState | None = self.__dict__.get("_training")
        if training is None or training.leaf_means is None:
            return None
        return training.leaf_means.inertia_path(self.tree_)

    def _follow_path(self, whole: Self) -> None:
        """Set what follows from the objective path of a model that is truncated to this one."""

    def _smaller_tree(self, max_leaves: int) -> tuple[ClusterTree, IntArray]:
        """Return the tree of fewer leaves, and the node there that each node is part of."""
        tree = self.tree_.truncate(max_leaves)
        return tree, kept_ancestor(self.tree_, tree.n_nodes)

    def truncate(self, max_leaves: int) -> Self:
        """Return the model with fewer leaves.

        Of trees that grow leaf by leaf it is what a fit with this `max_leaves` would find. A tree
        that was searched (`BestTree`, `ObliqueTree`) is pruned, from the split that costs least
        on: a fit with this `max_leaves` searches anew, and finds a better one.

        Parameters
        ----------
        max_leaves : int
            Number of leaves, at least 1 and those of the base tree; the whole model if it has no
            more.

        Returns
        -------
        Self
            A new fitted estimator, whose labels, centers and costs are those of the smaller tree.
            Models read from a file have the costs, not the labels and centers, which take the rows
            of the fit. With more than a million numbers (leaves x columns), or
            ``criterion="kmedians"``, centers are lacking and the costs about them.

        Raises
        ------
        ValueError
            If `max_leaves` is less than 1 or than the leaves of the base tree.
        """
        check_is_fitted(self, "tree_")
        tree, kept = self._smaller_tree(max_leaves)
        model = copy.copy(self)
        n_fewer = self.n_leaves_ - tree.n_leaves
        if not n_fewer:
            return model
        if "max_leaves" in self.get_params(deep=False):
            model.set_params(max_leaves=tree.n_leaves)
        if self._path_name is not None:
            path = getattr(self, self._path_name)
            setattr(model, self._path_name, path[: len(path) - n_fewer])
        model._set_tree(tree, self._names_given)
        for name in _OF_TREE_AND_ROWS:
            model.__dict__.pop(name, None)
        model._follow_path(self)
        if "_training" in self.__dict__:
            model._set_training(self._training.truncate(kept))
        elif self._inertia_path is not None:
            model._inertia_path = self._inertia_path[: len(self._inertia_path) - n_fewer]
            model.inertia_ = float(model._inertia_path[-1])
        return model


@dataclass(frozen=True, eq=False)
class LeafMeans:
    """Weights, means and spreads of the rows of each leaf, or of each cluster.

    Costs are sums of spreads and of squared distances between means. No two large numbers are
    subtracted, so they keep their digits beside far rows and far from the origin.
    """

    ids: IntArray
    """The leaf of each entry; of a cluster's, one of its leaves."""
    groups: GroupMeans
    scale: FloatArray

    # Most numbers (leaves x columns) that are kept for `truncate`.
    MAX_NUMBERS: ClassVar[int] = 1_000_000

    @classmethod
    def of(
        cls, fit_rows: FitRows[Any], leaf_of_row: Codes, tree: ClusterTree, centers: FloatArray
    ) -> LeafMeans:
        """Average the rows of a fit by leaf, or by cluster if that would be too many numbers.

        `centers`: k x d, in the columns' own units, near which the rows of the clusters may lie.
        """
        ids = np.flatnonzero(tree.kind == LEAF).astype(np.int64)
        group = np.zeros(tree.n_nodes, dtype=np.uint32)
        plain = fit_rows.rows.levels is None
        scale = fit_rows.units.scale if plain else fit_rows.encoding.scale
        if len(ids) * len(scale) > cls.MAX_NUMBERS:
            _, first, group[ids] = np.unique(
                tree.leaf_clusters[ids], return_index=True, return_inverse=True
            )
            ids = ids[first]
        else:
            group[ids] = np.arange(len(ids))
        near = centers[tree.leaf_clusters[ids]]
        return cls(ids, fit_rows.encoded_means(group[leaf_of_row], near), scale)

    def is_by_leaf(self, tree: ClusterTree) -> bool:
        """Whether every leaf has an entry of its own, so that smaller trees have theirs too."""
        return len(np.unique(self.ids)) == tree.n_leaves

    def truncate(self, kept: IntArray) -> LeafMeans:
        """Return those of a smaller tree; `kept`: the node that each node is part of there."""
        ids, entry = np.unique(kept[self.ids], return_inverse=True)
        return replace(self, ids=ids.astype(np.int64), groups=self._merged(entry, len(ids)))

    def clusters(self, tree: ClusterTree) -> GroupMeans:
        """Return weight, mean and spread of the rows of each cluster."""
        return self._merged(tree.leaf_clusters[self.ids], len(tree.classes))

    def inertia_path(self, tree: ClusterTree) -> FloatArray:
        """Return the cost about the clusters' own means, from the base's leaves (or 1) to all.

        Backwards: each step takes two leaves from their clusters and gives their parent to its.
        The cost is the sum of the squared distances to fixed points, one a cluster, less what
        moving these to the means saves; they are the means of the whole tree's clusters.
        """
        n_leaves, n_first = tree.n_leaves, max(tree.n_base_leaves, 1)
        path = np.empty(n_leaves - n_first + 1)
        path[-1] = self.clusters(tree).spread.sum()
        if n_leaves == n_first:
            return path
        first = tree.truncate(n_first)
        at_first = self.truncate(kept_ancestor(tree, first.n_nodes))
        path[0] = at_first.clusters(first).spread.sum()
        leaves = _PlacedLeaves(self, tree)
        for n in range(n_leaves - 1, n_first, -1):
            left = 2 * n - 1  # of the last split of the tree of n + 1 leaves
            leaves.merge(int(tree.parent[left]), left)
            path[n - n_first] = leaves.cost()
        return path

    def _merged(self, groups: IntArray, n_groups: int) -> GroupMeans:
        """Return the means of groups of entries, and the squared distances of all rows to them."""
        weight, means, rest, spread, _ = self.groups
        counts = _by_coordinate(self.groups)
        total = np.bincount(groups, weights=weight, minlength=n_groups).astype(np.float64)
        # Each mean is compared with that of the group's heaviest entry, which is near it.
        order = np.argsort(weight, kind="stable")
        base = np.zeros(n_groups, dtype=np.int64)
        base[groups[order]] = order
        of_base = base[groups]
        apart = (means - means[of_base]) / self.scale + (rest - rest[of_base])
        counted = _sums_by_group(counts, groups, n_groups)
        moved = _sums_by_group(counts * apart, groups, n_groups)
        moved /= np.where(counted > 0, counted, 1.0)
        merged = means[base] + moved * self.scale
        between = _weighted(counts, (apart - moved[groups]) ** 2)
        return GroupMeans(
            total,
            merged,
            (means[base] - merged) / self.scale + (moved + rest[base]),
            np.bincount(groups, weights=spread + between, minlength=n_groups).astype(np.float64),
            None if self.groups.observed is None else counted,
        )


def _sums_by_group(values: FloatArray, groups: IntArray, n_groups: int) -> FloatArray:
    """Return the sums of the entries' rows of `values` (entries x w) by group, n_groups x w."""
    width = values.shape[1]
    places = groups[:, None] * width + np.arange(width)
    sums = np.bincount(places.ravel(), values.ravel(), n_groups * width)
    return sums.astype(np.float64).reshape(n_groups, width)


def _by_coordinate(groups: GroupMeans) -> FloatArray:
    """Return the weight that each mean stands for: n x d, or n x 1 if no cell is missing."""
    return groups.weight[:, None] if groups.observed is None else groups.observed


def _weighted(counts: FloatArray, squares: FloatArray) -> FloatArray:
    """Return the sums of rows of squares, each times its weight; `counts` as `_by_coordinate`."""
    if counts.shape[-1] == 1:
        return np.asarray(counts[..., 0] * squares.sum(axis=-1))
    return np.asarray((counts * squares).sum(axis=-1))


class _PlacedLeaves:
    """The leaves of a tree that shrinks, and their sums about one fixed point a cluster.

    No sum is taken by BLAS, whose bits depend on the processor.
    """

    def __init__(self, means: LeafMeans, tree: ClusterTree) -> None:
        weight, centers, rest, spread, _ = means.groups
        counts = _by_coordinate(means.groups)
        d, k = centers.shape[1], len(tree.classes)
        self.scale = means.scale
        self.labels = tree.cluster
        self.weight, self.spread = np.zeros(tree.n_nodes), np.zeros(tree.n_nodes)
        self.counts = np.zeros((tree.n_nodes, counts.shape[1]))
        self.centers, self.rest = np.zeros((tree.n_nodes, d)), np.zeros((tree.n_nodes, d))
        for array, values in (
            (self.weight, weight),
            (self.counts, counts),
            (self.spread, spread),
            (self.centers, centers),
            (self.rest, rest),
        ):
            array[means.ids] = values
        clusters = means.clusters(tree)
        self.points, self.points_rest = clusters.means.copy(), clusters.rest.copy()
        self.n_leaves = np.zeros(k, dtype=np.int64)
        self.of_cluster, self.sums = np.zeros((k, counts.shape[1])), np.zeros((k, d))
        self.saved, self.total = np.zeros(k), 0.0
        for leaf in means.ids.tolist():
            self._add(leaf, 1)

    def merge(self, parent: int, left: int) -> None:
        """Make two sibling leaves one."""
        pair = slice(left, left + 2)
        for leaf in (left, left + 1):
            self._add(leaf, -1)
        counts = self.counts[pair].sum(axis=0)
        base = left if self.weight[left] >= self.weight[left + 1] else left + 1
        apart = (self.centers[pair] - self.centers[base]) / self.scale + self.rest[pair]
        moved = (self.counts[pair] * apart).sum(axis=0) / np.where(counts > 0, counts, 1.0)
        self.weight[parent], self.counts[parent] = self.weight[pair].sum(), counts
        self.centers[parent], self.rest[parent] = self.centers[base], moved
        between = _weighted(self.counts[pair], (apart - moved) ** 2).sum()
        self.spread[parent] = self.spread[pair].sum() + between
        self._add(parent, 1)

    def cost(self) -> float:
        """Return the sum of the squared distances of all rows to the means of their clusters."""
        return max(self.total - float(self.saved.sum()), 0.0)

    def _add(self, leaf: int, sign: int) -> None:
        label, counts = self.labels[leaf], self.counts[leaf]
        if sign > 0 and not self.of_cluster[label].any():
            self.points[label], self.points_rest[label] = self.centers[leaf], self.rest[leaf]
        apart = (self.centers[leaf] - self.points[label]) / self.scale
        apart += self.rest[leaf] - self.points_rest[label]
        self.n_leaves[label] += sign
        self.total += sign * (self.spread[leaf] + float(_weighted(counts, np.square(apart))))
        if self.n_leaves[label]:
            self.of_cluster[label] += sign * counts
            self.sums[label] += sign * counts * apart
        else:
            self.of_cluster[label], self.sums[label] = 0.0, 0.0
        counted, squares = self.of_cluster[label], np.square(self.sums[label])
        divisor = np.where(counted > 0, counted, 1.0)
        if len(divisor) == 1:
            squares = squares.sum()
        self.saved[label] = (squares / divisor).sum()


def _n_path(tree: ClusterTree) -> int:
    """Return the number of sizes from the base tree's to the tree's."""
    return tree.n_leaves - max(tree.n_base_leaves, 1) + 1


COST_PATH = SavedField(
    "path",
    required=True,
    check=Check(
        lambda path: bool((np.diff(path) <= 0).all() and path[-1] >= 0),
        "a {name} that rises or is negative",
    ),
    n_entries=_n_path,
)
INERTIA_PATH = SavedField("path", check=NO_NEGATIVE_INERTIA, n_entries=_n_path)


class CostTree(GrownClusterer, abstract=True):
    """A tree whose growth lowers the sum of label costs over its leaves."""

    scale_: FloatArray
    _cost_path: FloatArray

    # What the warning of clusters without rows advises.
    _lost_advice: ClassVar[str] = (
        "More leaves (a larger max_leaves or max_depth, a smaller min_samples_leaf) may give them "
        "rows."
    )

    @property
    def cost_path_(self) -> pl.DataFrame:
        """Costs by number of leaves: a frame with the columns n_leaves, cost and inertia.

        `cost` is the surrogate that growth makes small, about the reference's centers; `inertia`
        is `inertia_`, about the clusters' own. It is null for smaller trees where it is not known:
        with ``criterion="kmedians"``, with more than a million numbers (leaves x columns), and in
        model files of version 1.
        """
        last = self.tree_.n_leaves
        n_leaves = np.arange(last - len(self._cost_path) + 1, last + 1)
        known = self._inertia_path
        own = self.__dict__.get("inertia_")
        inertia = [None] * (len(n_leaves) - 1) + [own] if known is None else known
        return pl.DataFrame(
            {
                "n_leaves": n_leaves,
                "cost": self._cost_path,
                "inertia": pl.Series(inertia, dtype=pl.Float64),
            }
        )

    def plot_cost_path(self, ax: Axes | None = None) -> Axes:
        """Draw cost and surrogate by number of leaves, and the knee.

        With matplotlib (extra ``plot``); see `treeclust_rs.export.plot_cost_path`.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.
        """
        return export.plot_cost_path(self, ax)

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each column in the decrease of the surrogate cost, of shape (n_features,)."""
        return feature_importances(self.tree_, self.scale_)


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
