"""The nodes of a tree: the arrays that describe them, and what follows from the arrays alone."""

from __future__ import annotations

import operator
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .._engine import ObliqueArrays, TestArrays
from .._util import BoolArray, FloatArray, IntArray, column_name
from .._util.words import MAX_NAME_LENGTH, short_names, shorten, tested_name
from .columns import NUMBERS, Column

LEAF, THRESHOLD, INTERVAL, OBLIQUE, LEVELS, MISSING = 0, 1, 2, 3, 4, 5
# How a split of a Kauri tree places its two children, by code; -1 at leaves.
MOVES = ("star", "double_star", "switch", "reallocation", "mixed")

_Array = TypeVar("_Array", IntArray, BoolArray)

NO_CHILD = -1
UNDEFINED = -2

# The arrays with one entry per node that every tree has, in the order of model files.
INT_ARRAYS = (
    "children_left",
    "children_right",
    "feature",
    "kind",
    "n_node_samples",
    "cluster",
    "base_cluster",
)
FLOAT_ARRAYS = ("threshold", "lower", "upper", "impurity", "weighted_n_node_samples", "mistakes")
# Only trees grown by Kauri have these.
MOVE_ARRAYS = ("move", "gain")
# Only trees with oblique nodes have these: their terms, as in a sparse matrix by rows.
OBLIQUE_ARRAYS = ("oblique_indptr", "oblique_indices", "oblique_weights", "oblique_bias")

# An entry per feature; only trees with oblique nodes have it, and not those of older files.
FEATURE_SCALE = "feature_scale"

# Only trees with tests on levels have these: the codes that go left, as in a sparse matrix by rows.
LEVEL_ARRAYS = ("levels_indptr", "levels_codes")
# Trees with oblique nodes and those of files of version 1 have none.
DIRECTIONS = "missing_go_to_left"
# The values on both sides of a threshold or of an interval's upper end, and of its lower end; None
# where the tree has no such test, or its fit did not keep them.
BESIDE_ARRAYS = ("below", "above", "below_lower", "above_lower")

# The arrays that not every tree has.
OPTIONAL_ARRAYS = (
    *MOVE_ARRAYS,
    *OBLIQUE_ARRAYS,
    FEATURE_SCALE,
    *LEVEL_ARRAYS,
    DIRECTIONS,
    *BESIDE_ARRAYS,
)

# The other arguments of `ClusterTree`; the last three are of the columns, an entry each, or None.
COLUMN_ARGUMENTS = ("column_kinds", "levels", "has_missing")
OTHER_ARGUMENTS = ("n_features", "feature_names", "classes", "n_base_leaves", *COLUMN_ARGUMENTS)


class TreeNodes:
    """Base of `ClusterTree`, which documents and sets the arrays; all are read-only."""

    children_left: IntArray
    children_right: IntArray
    feature: IntArray
    threshold: FloatArray
    lower: FloatArray
    upper: FloatArray
    kind: npt.NDArray[np.int8]
    impurity: FloatArray
    n_node_samples: IntArray
    weighted_n_node_samples: FloatArray
    value: FloatArray
    cluster: IntArray
    base_cluster: IntArray
    mistakes: FloatArray
    move: npt.NDArray[np.int8] | None
    gain: FloatArray | None
    oblique_indptr: IntArray | None
    oblique_indices: IntArray | None
    oblique_weights: FloatArray | None
    oblique_bias: FloatArray | None
    feature_scale: FloatArray | None
    levels_indptr: IntArray | None
    levels_codes: IntArray | None
    missing_go_to_left: BoolArray | None
    below: FloatArray | None
    above: FloatArray | None
    below_lower: FloatArray | None
    above_lower: FloatArray | None
    column_kinds: tuple[str, ...] | None
    levels: tuple[tuple[str, ...] | None, ...] | None
    has_missing: tuple[bool, ...] | None
    n_features: int
    n_base_leaves: int
    classes: tuple[int, ...] | tuple[str, ...]
    feature_names: tuple[str, ...] | None

    @property
    def array_names(self) -> tuple[str, ...]:
        """Names of the arrays that this tree has."""
        return (
            *INT_ARRAYS,
            *FLOAT_ARRAYS,
            "value",
            *(name for name in OPTIONAL_ARRAYS if getattr(self, name) is not None),
        )

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `ClusterTree` that make this tree."""
        return {name: getattr(self, name) for name in (*self.array_names, *OTHER_ARGUMENTS)}

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.children_left)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return (self.n_nodes + 1) // 2

    @cached_property
    def parent(self) -> IntArray:
        """Parent of each node; -1 at the root."""
        parent = np.full(self.n_nodes, -1, dtype=np.int64)
        inner = np.flatnonzero(self.kind != LEAF)
        parent[self.children_left[inner]] = inner
        parent[self.children_right[inner]] = inner
        return _frozen(parent)

    @cached_property
    def node_depth(self) -> IntArray:
        """Depth of each node; the root has depth 0."""
        parents = self.parent.tolist()
        depth = [0] * self.n_nodes
        for node in range(1, self.n_nodes):
            depth[node] = depth[parents[node]] + 1
        return _frozen(np.array(depth, dtype=np.int64))

    @property
    def max_depth(self) -> int:
        """Depth of the deepest leaf."""
        return int(self.node_depth.max())

    @cached_property
    def leaves(self) -> IntArray:
        """Node ids of the leaves, from left to right."""
        return _frozen(leaves_from_left(self.children_left, self.children_right))

    @cached_property
    def leaf_clusters(self) -> IntArray:
        """Code of the cluster of each leaf, by node id; -1 at inner nodes."""
        is_base = self.n_leaves == self.n_base_leaves
        labels = self.base_cluster if is_base else self.cluster
        return _frozen(np.where(self.kind == LEAF, labels, -1))

    @property
    def is_weighted(self) -> bool:
        """Whether rows had weights other than 1: the sums that costs are of are not counts."""
        return not np.array_equal(self.weighted_n_node_samples, self.n_node_samples)

    @property
    def filled_clusters(self) -> IntArray:
        """Codes of the clusters of the leaves that have rows."""
        return self.leaf_clusters[self.leaves[self.n_node_samples[self.leaves] > 0]]

    @cached_property
    def n_node_features(self) -> IntArray:
        """Number of features that each node's test uses; 0 at leaves."""
        sizes = (self.kind != LEAF).astype(np.int64)
        if self.oblique_indptr is not None:
            sizes += np.maximum(np.diff(self.oblique_indptr) - 1, 0)
        return _frozen(sizes)

    @cached_property
    def tested_features(self) -> IntArray:
        """Indices of the features that some node tests, ascending."""
        tested = self.feature[self.feature >= 0]
        if self.oblique_indices is not None:
            tested = np.append(tested, self.oblique_indices)
        return _frozen(np.unique(tested))

    @cached_property
    def missing_arrives(self) -> BoolArray:
        """Whether a missing cell of its column can get to each node: not past a test that took it.

        True at leaves, oblique nodes and in trees without directions.
        """
        arrives = np.ones(self.n_nodes, dtype=bool)
        if self.missing_go_to_left is None:
            return _frozen(arrives)
        left, features = self.children_left.tolist(), self.feature.tolist()
        sides = self.missing_go_to_left.tolist()
        taken = [0] * self.n_features  # by how many tests on the path the cell went the other way
        # A node with the column whose missing cells its branch loses, or -1; or -1 with a column
        # to restore.
        visits = [(0, -1)]
        while visits:
            node, lost = visits.pop()
            if node < 0:
                taken[lost] -= 1
                continue
            if lost >= 0:
                taken[lost] += 1
                visits.append((-1, lost))
            if left[node] >= 0:
                feature = features[node]
                arrives[node] = not taken[feature]
                visits.append((left[node] + 1, feature if sides[node] else -1))
                visits.append((left[node], -1 if sides[node] else feature))
        return _frozen(arrives)

    @property
    def test_arrays(self) -> TestArrays:
        """The tests, as the engine takes them."""
        return TestArrays(*(getattr(self, name) for name in TestArrays._fields))

    @property
    def oblique_arrays(self) -> ObliqueArrays | None:
        """The four oblique arrays; None where the tree has none."""
        if self.oblique_indptr is None:
            return None
        return ObliqueArrays(*(getattr(self, name) for name in OBLIQUE_ARRAYS))

    def oblique_test(self, node: int) -> tuple[IntArray, FloatArray, float]:
        """Return the features of an oblique node, their weights and its bias.

        Parameters
        ----------
        node : int
            Id of an oblique node.

        Returns
        -------
        features : ndarray of shape (n_terms,)
            Indices of the features with a weight, ascending.
        weights : ndarray of shape (n_terms,)
            Their weights.
        bias : float
            Rows with ``bias + weights[0] * x[features[0]] + ... < 0`` go left.

        Raises
        ------
        ValueError
            If the node is not oblique.
        """
        self.check_node(node)
        if self.oblique_arrays is None or self.kind[node] != OBLIQUE:
            raise ValueError(f"Node {node} of the tree is not oblique.")
        indptr, indices, weights, bias = self.oblique_arrays
        terms = slice(int(indptr[node]), int(indptr[node + 1]))
        return indices[terms], weights[terms], float(bias[node])

    def level_test(self, node: int) -> IntArray:
        """Return the codes that go left at a node that tests levels, ascending.

        Raises
        ------
        ValueError
            If the node does not test levels.
        """
        self.check_node(node)
        if self.levels_indptr is None or self.levels_codes is None or self.kind[node] != LEVELS:
            raise ValueError(f"Node {node} of the tree does not test levels.")
        return self.levels_codes[int(self.levels_indptr[node]) : int(self.levels_indptr[node + 1])]

    def column(self, feature: int) -> Column:
        """Return what texts need to know of a column."""
        if self.column_kinds is None and self.has_missing is None:
            return NUMBERS
        if feature not in self._columns:
            kind = NUMBERS.kind if self.column_kinds is None else self.column_kinds[feature]
            levels = None if self.levels is None else self.levels[feature]
            has_missing = self.has_missing is not None and self.has_missing[feature]
            self._columns[feature] = Column(kind, levels or (), has_missing)
        return self._columns[feature]

    @cached_property
    def _columns(self) -> dict[int, Column]:
        """What `column` has returned."""
        return {}

    def check_node(self, node: int) -> None:
        """Raise ValueError if the tree has no such node."""
        if not 0 <= operator.index(node) < self.n_nodes:
            raise ValueError(f"The tree has the nodes 0..{self.n_nodes - 1}, and no node {node}.")

    def feature_name(self, feature: int) -> str:
        """Return the name of a feature for texts: the column's, or x0, x1, ... without names.

        Control characters are escaped, and names such as "10" or "and" quoted. Of names longer than
        60 the front and the end are returned, and the number of the column where two tested ones
        would look alike.
        """
        name = tested_name(self.feature_names, feature)
        if len(name) <= MAX_NAME_LENGTH:
            return name
        return self._tested_names.get(feature) or shorten(name, MAX_NAME_LENGTH)

    @cached_property
    def _tested_names(self) -> dict[int, str]:
        return self.tested_names(MAX_NAME_LENGTH)

    def tested_names(self, max_length: int) -> dict[int, str]:
        """Return the names of the tested features, shortened so that they still differ."""
        tested = self.feature[self.feature >= 0]
        if self.oblique_indices is not None:
            tested = np.concatenate([tested, self.oblique_indices])
        return short_names(self.feature_names, np.unique(tested).tolist(), max_length)

    def cluster_name(self, code: int) -> str:
        """Return the name of a cluster for texts: the user's label, shortened as a feature's."""
        name = column_name(self.classes, code)
        return name if len(name) <= MAX_NAME_LENGTH else self._cluster_names[code]

    @cached_property
    def _cluster_names(self) -> dict[int, str]:
        return self.cluster_names(MAX_NAME_LENGTH)

    def cluster_names(self, max_length: int) -> dict[int, str]:
        """Return the names of the clusters, by code, shortened so that they still differ."""
        return short_names(self.classes, range(len(self.classes)), max_length)


def _frozen(array: _Array) -> _Array:
    array.setflags(write=False)
    return array


def leaves_from_left(children_left: IntArray, children_right: IntArray) -> IntArray:
    """Return the node ids of the leaves, from left to right."""
    left, right = children_left.tolist(), children_right.tolist()
    leaves, stack = [], [0]
    while stack:
        node = stack.pop()
        if left[node] < 0:
            leaves.append(node)
        else:
            stack += (right[node], left[node])
    return np.array(leaves, dtype=np.int64)


def leaf_mistakes(weight: FloatArray, n_samples: IntArray, share: FloatArray) -> FloatArray:
    """Return the weight of the rows of nodes outside of the cluster whose `share` is given."""
    mistakes = weight * (1.0 - share)
    # Unweighted mistakes are counts; the shares they are taken from are rounded.
    return np.asarray(np.where(weight == n_samples, np.rint(mistakes), mistakes))
