"""ClusterTree: a binary tree whose inner nodes hold a readable test and whose leaves a cluster.

The tree is a set of arrays with one entry per node, named as in scikit-learn: `children_left`,
`children_right`, `feature`, `threshold` and so on; -1 marks the missing children of a leaf, -2 its
undefined feature and threshold. Nodes are numbered in order of creation: the root is 0, and the two
children of a split follow each other, so that the first 2m - 1 nodes are the tree of m leaves.

Nothing here recurses: a tree as deep as it has leaves is printed, cut and pickled like any other.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from .. import _engine
from .._engine import ObliqueArrays, TestArrays
from .._util.arrays import FloatArray, IntArray
from .._util.words import column_name, format_count, printable
from .conditions import (
    INTERVAL,
    LEAF,
    MOVES,
    OBLIQUE,
    THRESHOLD,
    Condition,
    ObliqueCondition,
    Path,
    rule_text,
    walk_leaves,
    walk_nodes,
)
from .text import export_html, export_text

__all__ = ["ClusterTree", "HasTree", "as_tree"]

_NO_CHILD = -1
_UNDEFINED = -2
_INT64 = np.iinfo(np.int64)
# Expanding intervals copies subtrees and may grow exponentially with the number of intervals.
_MAX_EXPANDED_NODES = 200_000
# A rule repeats the weights of all oblique tests above its leaf.
_MAX_RULE_TERMS = 2_000_000

# name -> integer array? ; every one has one entry per node.
_NODE_ARRAYS = {
    "children_left": True,
    "children_right": True,
    "feature": True,
    "threshold": False,
    "lower": False,
    "upper": False,
    "kind": True,
    "impurity": False,
    "n_node_samples": True,
    "weighted_n_node_samples": False,
    "cluster": True,
    "base_cluster": True,
    "mistakes": False,
}
# The oblique tests, as in a sparse matrix by rows; a tree without any has None of them.
_OBLIQUE_ARRAYS = {
    "oblique_indptr": True,
    "oblique_indices": True,
    "oblique_weights": False,
    "oblique_bias": False,
}


class NonFiniteError(ValueError):
    """A cell is NaN or infinite."""

    def __init__(self) -> None:
        super().__init__("The data contain NaN or inf.")


class ClusterTree:
    """A binary tree that assigns rows to clusters.

    Estimators make it; it can also be built from arrays, which are copied and checked. The arrays
    of a tree are read-only.

    Parameters
    ----------
    children_left, children_right : array-like of int, shape (n_nodes,)
        Node ids of the children; -1 at leaves. A right child's id follows its left sibling's, and
        children come after their parent.
    feature : array-like of int, shape (n_nodes,)
        Index of the tested feature; -2 at leaves and oblique nodes.
    threshold : array-like of float, shape (n_nodes,)
        At threshold nodes, rows with ``x <= threshold`` go left; NaN at interval and oblique nodes,
        -2.0 at leaves.
    lower, upper : array-like of float, shape (n_nodes,)
        At interval nodes, rows with ``lower <= x <= upper`` go left; NaN at all others.
    kind : array-like of int, shape (n_nodes,)
        0 leaf, 1 threshold, 2 interval, 3 oblique.
    impurity : array-like of float, shape (n_nodes,)
        Cost of the node per unit of weight: the surrogate cost under its own best label; in a tree
        with moves the kernel cost as a cluster of its own, negative only for indefinite kernels.
    n_node_samples : array-like of int, shape (n_nodes,)
        Rows of the fit that reach the node.
    weighted_n_node_samples : array-like of float, shape (n_nodes,)
        Their weight.
    value : array-like of float, shape (n_nodes, 1, n_clusters), or None
        Share of each reference cluster in the weight of the node; all 0 in an empty node. In a tree
        with moves, which has no reference, the share of each of the tree's own clusters; None
        computes it from the leaves below.
    cluster : array-like of int, shape (n_nodes,)
        Code of the cluster the node has, or would have, as a leaf. In a tree with moves the one it
        was given when it was made, in order of creation: the root has 0.
    base_cluster : array-like of int, shape (n_nodes,)
        Code of the node as a leaf of the base tree; -1 where it is no leaf of the base.
    mistakes : array-like of float, shape (n_nodes,)
        At leaves the weight of the rows whose reference cluster is not the leaf's; at splits of an
        IMM base the weight of the rows the cut separates from their center; else NaN. NaN in a tree
        with moves.
    n_features : int
        Number of features of the data.
    classes : sequence of int or sequence of str
        The cluster labels as the user gave them, one per code.
    n_base_leaves : int, default=0
        Number of leaves of the base tree; 0 for a tree grown from nothing. The leaves of a tree of
        exactly this many leaves have the labels `base_cluster`.
    feature_names : sequence of str or None, default=None
        Names of the features; None is shown as x0, x1, ...
    move : array-like of int, shape (n_nodes,), or None, default=None
        In a tree grown by Kauri how each split placed its children, who had the cluster of their
        parent before: 0 star (one stays, one is a new cluster), 1 double star (both are new), 2
        switch (one stays, one joins an existing cluster), 3 reallocation (both join different
        existing ones), 4 mixed (one is new, one joins an existing one); -1 at leaves. Such a tree
        has threshold tests only, no base and no empty nodes, and all of its clusters have rows.
    gain : array-like of float, shape (n_nodes,), or None, default=None
        What each split added to Kauri's objective, above 0; NaN at leaves. Given with `move` only.
    oblique_indptr : array-like of int, shape (n_nodes + 1,), or None, default=None
        The terms of node i are ``oblique_indptr[i]`` to ``oblique_indptr[i + 1]``, as in a sparse
        matrix by rows; only oblique nodes have terms, and have at least one. At oblique nodes rows
        whose score is less than 0 go left; the score is the bias, to which the terms weight * x are
        added one after the other.
    oblique_indices : array-like of int, shape (n_terms,), or None, default=None
        Index of the feature of each term, ascending within a node.
    oblique_weights : array-like of float, shape (n_terms,), or None, default=None
        Weight of each term, in the unit of its feature; not 0.
    oblique_bias : array-like of float, shape (n_nodes,), or None, default=None
        Bias of oblique nodes; NaN at all others. A tree without oblique nodes has None of these
        four arrays.

    Attributes
    ----------
    n_nodes, n_leaves, n_features, max_depth : int
        Sizes; the depth of the root is 0.
    leaves : ndarray of shape (n_leaves,)
        Node ids of the leaves, from left to right.
    leaf_clusters : ndarray of shape (n_nodes,)
        Code of the cluster of each leaf; -1 at inner nodes.
    node_depth : ndarray of shape (n_nodes,)
        Depth of each node.
    parent : ndarray of shape (n_nodes,)
        Parent of each node; -1 at the root.
    n_node_features : ndarray of shape (n_nodes,)
        Number of features that each node's test uses; 0 at leaves.

    Raises
    ------
    ValueError
        If the arrays are no such tree; the message says what is wrong, and at which node.

    Examples
    --------
    >>> nan = float("nan")
    >>> tree = ClusterTree(
    ...     children_left=[1, -1, -1], children_right=[2, -1, -1], feature=[0, -2, -2],
    ...     threshold=[41.5, -2.0, -2.0], lower=[nan, nan, nan], upper=[nan, nan, nan],
    ...     kind=[1, 0, 0], impurity=[2.0, 0.0, 0.0], n_node_samples=[10, 4, 6],
    ...     weighted_n_node_samples=[10.0, 4.0, 6.0],
    ...     value=[[[0.4, 0.6]], [[1.0, 0.0]], [[0.0, 1.0]]], cluster=[1, 0, 1],
    ...     base_cluster=[-1, -1, -1], mistakes=[nan, 0.0, 0.0], n_features=1,
    ...     feature_names=["income"], classes=["low", "high"],
    ... )
    >>> tree
    ClusterTree(n_leaves=2, max_depth=1, n_features=1, n_clusters=2)
    >>> tree.rules()["rule"].to_list()
    ['income <= 41.5', 'income > 41.5']
    """

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

    def __init__(
        self,
        *,
        children_left: npt.ArrayLike,
        children_right: npt.ArrayLike,
        feature: npt.ArrayLike,
        threshold: npt.ArrayLike,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike,
        kind: npt.ArrayLike,
        impurity: npt.ArrayLike,
        n_node_samples: npt.ArrayLike,
        weighted_n_node_samples: npt.ArrayLike,
        value: npt.ArrayLike | None,
        cluster: npt.ArrayLike,
        base_cluster: npt.ArrayLike,
        mistakes: npt.ArrayLike,
        n_features: int,
        classes: Sequence[int] | Sequence[str],
        n_base_leaves: int = 0,
        feature_names: Sequence[str] | None = None,
        move: npt.ArrayLike | None = None,
        gain: npt.ArrayLike | None = None,
        oblique_indptr: npt.ArrayLike | None = None,
        oblique_indices: npt.ArrayLike | None = None,
        oblique_weights: npt.ArrayLike | None = None,
        oblique_bias: npt.ArrayLike | None = None,
    ) -> None:
        given = {
            "children_left": children_left,
            "children_right": children_right,
            "feature": feature,
            "threshold": threshold,
            "lower": lower,
            "upper": upper,
            "kind": kind,
            "impurity": impurity,
            "n_node_samples": n_node_samples,
            "weighted_n_node_samples": weighted_n_node_samples,
            "cluster": cluster,
            "base_cluster": base_cluster,
            "mistakes": mistakes,
        }
        if (move is None) != (gain is None):
            raise ValueError("A tree has both move and gain, or neither.")
        if value is None and move is None:
            raise ValueError(
                "A tree without moves needs its value; only with moves can it be None."
            )
        self.n_features = _positive_int(n_features, "n_features", minimum=1)
        self.n_base_leaves = _positive_int(n_base_leaves, "n_base_leaves", minimum=0)
        self.classes = _check_classes(classes)
        self.feature_names = _check_names(feature_names, self.n_features)
        n_nodes: int | None = None
        for name, is_int in _NODE_ARRAYS.items():
            array = _node_array(name, given[name], is_int, n_nodes)
            n_nodes = len(array)
            setattr(self, name, array)
        self.move = self.gain = None
        if move is not None and gain is not None:
            self.move = _node_array("move", move, True, n_nodes)
            self.gain = _node_array("gain", gain, False, n_nodes)
        if value is not None:
            self.value = _value_array(value, len(self.children_left), len(self.classes))
        self._set_oblique(
            {
                "oblique_indptr": oblique_indptr,
                "oblique_indices": oblique_indices,
                "oblique_weights": oblique_weights,
                "oblique_bias": oblique_bias,
            }
        )
        self._check_structure()
        self._check_tests()
        self._check_statistics()
        self._check_labels()
        if self.move is not None:
            self._check_moves()
            own_shares = self._own_shares()
            if value is None:
                self.value = own_shares
            _at_all(
                (np.abs(self.value - own_shares) <= 1e-6).all(axis=(1, 2)),
                "has a value that is not the shares of its leaves' clusters",
            )
            self.move = self.move.astype(np.int8)
        self._check_value()
        self.kind = self.kind.astype(np.int8)
        if not (self.kind == OBLIQUE).any():
            self.oblique_indptr = self.oblique_indices = None
            self.oblique_weights = self.oblique_bias = None
        for name in self._array_names():
            getattr(self, name).setflags(write=False)

    def _set_oblique(self, given: dict[str, npt.ArrayLike | None]) -> None:
        """Take the oblique arrays, if their lengths fit together."""
        missing = [name for name, array in given.items() if array is None]
        if missing and len(missing) < len(given):
            raise ValueError(
                f"A tree has all of {', '.join(_OBLIQUE_ARRAYS)}, or none; {missing[0]} is missing."
            )
        for name in _OBLIQUE_ARRAYS:
            setattr(self, name, None)
        if missing:
            return
        n_nodes = len(self.children_left)
        for name, is_int in _OBLIQUE_ARRAYS.items():
            array = given[name]
            assert array is not None, "checked before"
            setattr(self, name, _checked_array(name, array, is_int))
        assert self.oblique_indices is not None, "set before"
        for name, length, what in (
            ("oblique_indptr", n_nodes + 1, "one per node and one more"),
            ("oblique_weights", len(self.oblique_indices), "as many as oblique_indices"),
            ("oblique_bias", n_nodes, "one per node"),
        ):
            found = len(getattr(self, name))
            if found != length:
                raise ValueError(f"{name} has {found} entries; it needs {length}, {what}.")

    # ---- checks ---------------------------------------------------------------------------

    def _check_structure(self) -> None:
        left, right = self.children_left, self.children_right
        n_nodes = len(left)
        if n_nodes % 2 == 0:
            raise ValueError(f"A tree has an odd number of nodes, not {n_nodes}.")
        is_leaf = left == _NO_CHILD
        _at_all(
            (right == _NO_CHILD) == is_leaf,
            "has one child; a node has two children, or none and then -1 for both",
        )
        _at_all((self.kind == LEAF) == is_leaf, "is a leaf by its kind or its children, not both")
        _at_all(
            is_leaf | ((left > np.arange(n_nodes)) & (left < n_nodes)),
            f"has a left child that is not one of the nodes after it (of {n_nodes} nodes)",
        )
        _at_all(
            is_leaf | (right == left + 1), "has a right child whose id does not follow the left's"
        )
        # Left children, being below n_nodes and each with a sibling behind it, cover the nodes
        # 1..n_nodes-1 exactly if they are 1, 3, 5, ... in some order.
        inner_left = np.sort(left[~is_leaf])
        if not np.array_equal(inner_left, np.arange(1, n_nodes, 2)):
            raise ValueError(
                "Every node but the root must be the child of exactly one node, and siblings "
                "must have the ids 2i - 1 and 2i."
            )

    def _check_tests(self) -> None:
        kind, feature = self.kind, self.feature
        _at_all(
            (kind >= LEAF) & (kind <= OBLIQUE),
            "has an unknown kind; known are 0 (leaf), 1 (threshold), 2 (interval) and 3 (oblique)",
        )
        is_leaf, is_threshold, is_interval = kind == LEAF, kind == THRESHOLD, kind == INTERVAL
        is_oblique = kind == OBLIQUE
        _at_all(
            (is_leaf | is_oblique) == (feature == _UNDEFINED),
            "has feature -2 though it tests a single feature, or tests none and has another",
        )
        _at_all(
            is_leaf | is_oblique | ((feature >= 0) & (feature < self.n_features)),
            f"has a feature outside of 0..{self.n_features - 1}",
        )
        _at_all(~is_leaf | (self.threshold == _UNDEFINED), "is a leaf with a threshold not -2.0")
        _at_all(~is_threshold | np.isfinite(self.threshold), "has a threshold that is not finite")
        _at_all(
            ~(is_interval | is_oblique) | np.isnan(self.threshold),
            "is an interval or oblique node and must have the threshold NaN",
        )
        _at_all(
            ~is_interval | (np.isfinite(self.lower) & np.isfinite(self.upper)),
            "has an interval with an end that is not finite",
        )
        _at_all(~is_interval | (self.lower <= self.upper), "has an interval with lower above upper")
        _at_all(
            is_interval | (np.isnan(self.lower) & np.isnan(self.upper)),
            "is no interval node and must have NaN for lower and upper",
        )
        self._check_oblique(is_oblique)

    def _check_oblique(self, is_oblique: npt.NDArray[np.bool_]) -> None:
        if self.oblique_arrays is None:
            _at_all(~is_oblique, "is oblique, and the tree has no weights (oblique_weights)")
            return
        indptr, indices, weights, bias = self.oblique_arrays
        n_terms = len(indices)
        if indptr[0] != 0 or indptr[-1] != n_terms or (indptr[1:] < indptr[:-1]).any():
            raise ValueError(f"The oblique_indptr of the tree does not rise from 0 to {n_terms}.")
        sizes = np.diff(indptr)
        _at_all(is_oblique | (sizes == 0), "has weights though it is not oblique")
        _at_all(~is_oblique | (sizes > 0), "is oblique and has no weights")
        _at_all(is_oblique | np.isnan(bias), "is not oblique and must have the oblique_bias NaN")
        _at_all(~is_oblique | np.isfinite(bias), "has an oblique_bias that is not finite")
        node = np.repeat(np.arange(self.n_nodes), sizes)
        rises = np.ones(n_terms, dtype=bool)
        rises[1:] = (indices[1:] > indices[:-1]) | (node[1:] != node[:-1])
        for is_right, complaint in (
            (
                (indices >= 0) & (indices < self.n_features),
                f"has oblique_indices outside of 0..{self.n_features - 1}",
            ),
            (rises, "has oblique_indices that do not ascend"),
            (np.isfinite(weights) & (weights != 0), "has an oblique weight that is 0 or no number"),
        ):
            at_node = np.ones(self.n_nodes, dtype=bool)
            at_node[node[~is_right]] = False
            _at_all(at_node, complaint)

    def _check_statistics(self) -> None:
        _at_all(self.n_node_samples >= 0, "has a negative n_node_samples")
        for name in ("weighted_n_node_samples", "impurity"):
            array = getattr(self, name)
            # Kernel costs are below 0 where the kernel is indefinite, or by rounding.
            may_be_negative = name == "impurity" and self.move is not None
            _at_all(
                np.isfinite(array) & ((array >= 0) | may_be_negative),
                f"has a {name} that is {'' if may_be_negative else 'negative or '}not finite",
            )
        _at_all(
            np.isnan(self.mistakes) | (np.isfinite(self.mistakes) & (self.mistakes >= 0)),
            "has mistakes that are negative or not finite",
        )

    def _check_value(self) -> None:
        shares = self.value[:, 0]
        _at_all(((shares >= 0) & (shares <= 1)).all(axis=1), "has a value outside of [0, 1]")
        _at_all(
            (np.abs(shares.sum(axis=1) - 1) <= 1e-6) | (shares == 0).all(axis=1),
            "has a value whose shares do not sum to 1",
        )

    def _check_labels(self) -> None:
        k = len(self.classes)
        _at_all(
            (self.cluster >= 0) & (self.cluster < k), f"has a cluster code outside of 0..{k - 1}"
        )
        if self.n_base_leaves > self.n_leaves:
            raise ValueError(
                f"The base tree cannot have n_base_leaves={self.n_base_leaves} leaves in a tree "
                f"of {self.n_leaves}."
            )
        # The base holds the first nodes; its leaves are leaves still, or were split later.
        n_base_nodes = max(2 * self.n_base_leaves - 1, 0)
        is_base_leaf = np.arange(self.n_nodes) < n_base_nodes
        is_base_leaf &= (self.children_left == _NO_CHILD) | (self.children_left >= n_base_nodes)
        _at_all(
            np.where(
                is_base_leaf,
                (self.base_cluster >= 0) & (self.base_cluster < k),
                self.base_cluster == -1,
            ),
            f"needs a base_cluster in 0..{k - 1} if it is a leaf of the base tree, and -1 if not",
        )

    def _check_moves(self) -> None:
        """Check what is special to a tree grown by Kauri, and replay its moves."""
        assert self.move is not None and self.gain is not None, "checked before"
        is_leaf = self.kind == LEAF
        n_moves = len(MOVES)
        _at_all(
            np.where(is_leaf, self.move == -1, (self.move >= 0) & (self.move < n_moves)),
            f"needs a move in 0..{n_moves - 1} if it is split, and -1 if it is a leaf",
        )
        _at_all(
            np.where(is_leaf, np.isnan(self.gain), np.isfinite(self.gain) & (self.gain > 0)),
            "needs a finite gain above 0 if it is split, and NaN if it is a leaf",
        )
        _at_all(self.kind != INTERVAL, "has a move and an interval test; moves take thresholds")
        _at_all(self.kind != OBLIQUE, "has a move and an oblique test; moves take thresholds")
        _at_all(np.isnan(self.mistakes), "has mistakes; a tree with moves has no reference")
        if self.n_base_leaves:
            raise ValueError("A tree with moves has no base tree: n_base_leaves must be 0.")
        self._check_rows()
        for node, _, path in walk_nodes(self):
            if is_leaf[node]:
                continue
            span = path.span(int(self.feature[node]))
            if not span.lower < self.threshold[node] < span.upper:
                raise ValueError(
                    f"Node {node} of the tree has a threshold that all rows reaching it are on one "
                    "side of; a split with a move has rows on both."
                )
        self._check_clusters()

    def _check_rows(self) -> None:
        """Check that no node is empty and that the children of a node share its rows."""
        n_rows, weight = self.n_node_samples, self.weighted_n_node_samples
        _at_all((n_rows > 0) & (weight > 0), "is empty, which no node of a tree with moves is")
        inner = np.flatnonzero(self.kind != LEAF)
        left, right = self.children_left[inner], self.children_right[inner]
        is_right = np.ones(self.n_nodes, dtype=bool)
        # A sum too large for its type is negative or infinite, and refused.
        with np.errstate(over="ignore"):
            is_right[inner] = n_rows[left] + n_rows[right] == n_rows[inner]
            off = np.abs(weight[left] + weight[right] - weight[inner])
        _at_all(is_right, "has other n_node_samples than its children together")
        is_right[inner] = off <= 1e-6 * weight[inner]
        _at_all(is_right, "has another weighted_n_node_samples than its children together")

    def _check_clusters(self) -> None:
        """Replay the splits: each move is the one its clusters say, and empties no cluster."""
        assert self.move is not None, "checked before"
        clusters, moves, parents = self.cluster.tolist(), self.move.tolist(), self.parent.tolist()
        if clusters[0] != 0:
            raise ValueError("The root of a tree with moves must have the cluster code 0.")
        n_leaves = [1]  # per cluster so far
        for left in range(1, self.n_nodes, 2):
            node = parents[left]
            codes = clusters[node], clusters[left], clusters[left + 1]
            move = _move_code(*codes, n_clusters=len(n_leaves))
            if move is None:
                raise ValueError(
                    f"Node {node} of the tree, of cluster {codes[0]}, is split into the clusters "
                    f"{codes[1]} and {codes[2]} when there are {len(n_leaves)}; the two must "
                    "differ, and new ones follow in order."
                )
            if move != moves[node]:
                raise ValueError(
                    f"Node {node} of the tree has the move {MOVES[moves[node]]!r}; its clusters "
                    f"make it {MOVES[move]!r}."
                )
            n_leaves += [0] * (max(codes) + 1 - len(n_leaves))
            for code, change in zip(codes, (-1, 1, 1), strict=True):
                n_leaves[code] += change
            if not n_leaves[codes[0]]:
                raise ValueError(
                    f"Node {node} of the tree is all of cluster {codes[0]}, and both of its "
                    "children leave it."
                )
        if len(n_leaves) != len(self.classes):
            raise ValueError(
                f"The moves of the tree make {len(n_leaves)} clusters; there are "
                f"{len(self.classes)} classes."
            )

    def _own_shares(self) -> FloatArray:
        """Give the share of each of the tree's own clusters in the weight of each node."""
        sums = np.zeros((self.n_nodes, 1, len(self.classes)))
        leaves = np.flatnonzero(self.kind == LEAF)
        sums[leaves, 0, self.cluster[leaves]] = self.weighted_n_node_samples[leaves]
        parents = self.parent.tolist()
        # In a file, children may outweigh their parents by a little at every level.
        with np.errstate(over="ignore", invalid="ignore"):
            for node in range(self.n_nodes - 1, 0, -1):
                sums[parents[node]] += sums[node]
            return np.asarray(sums / sums.sum(axis=2, keepdims=True))

    # ---- sizes and structure --------------------------------------------------------------

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
        left, right = self.children_left.tolist(), self.children_right.tolist()
        leaves, stack = [], [0]
        while stack:
            node = stack.pop()
            if left[node] < 0:
                leaves.append(node)
            else:
                stack += (right[node], left[node])
        return _frozen(np.array(leaves, dtype=np.int64))

    @cached_property
    def leaf_clusters(self) -> IntArray:
        """Code of the cluster of each leaf, by node id; -1 at inner nodes."""
        is_base = self.n_leaves == self.n_base_leaves
        labels = self.base_cluster if is_base else self.cluster
        return _frozen(np.where(self.kind == LEAF, labels, -1))

    @cached_property
    def n_node_features(self) -> IntArray:
        """Number of features that each node's test uses; 0 at leaves."""
        sizes = (self.kind != LEAF).astype(np.int64)
        if self.oblique_indptr is not None:
            sizes += np.maximum(np.diff(self.oblique_indptr) - 1, 0)
        return _frozen(sizes)

    def oblique_test(self, node: int) -> tuple[IntArray, FloatArray, float]:
        """Give the features of an oblique node, their weights and its bias.

        Parameters
        ----------
        node : int
            Node id.

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
        self._check_node(node)
        if self.oblique_arrays is None or self.kind[node] != OBLIQUE:
            raise ValueError(f"Node {node} of the tree is not oblique.")
        indptr, indices, weights, bias = self.oblique_arrays
        terms = slice(int(indptr[node]), int(indptr[node + 1]))
        return indices[terms], weights[terms], float(bias[node])

    @property
    def test_arrays(self) -> TestArrays:
        """The tests, as the engine takes them."""
        return TestArrays(*(getattr(self, name) for name in TestArrays._fields))

    @property
    def oblique_arrays(self) -> ObliqueArrays | None:
        """The four oblique arrays; None where the tree has none."""
        indptr, indices = self.oblique_indptr, self.oblique_indices
        weights, bias = self.oblique_weights, self.oblique_bias
        if indptr is None or indices is None or weights is None or bias is None:
            return None
        return ObliqueArrays(indptr, indices, weights, bias)

    def _check_node(self, node: int) -> None:
        if not 0 <= operator.index(node) < self.n_nodes:
            raise ValueError(f"The tree has the nodes 0..{self.n_nodes - 1}, and no node {node}.")

    def feature_name(self, feature: int) -> str:
        """Give the name a feature is shown by: the column's, or x0, x1, ... without names."""
        return column_name(self.feature_names, feature)

    def cluster_name(self, code: int) -> str:
        """Give the text a cluster is shown by: the user's label."""
        return printable(self.classes[code])

    # ---- prediction -----------------------------------------------------------------------

    def apply(self, data: Any, n_jobs: int | _engine.Threads = 1) -> IntArray:
        """Give the leaf that each row reaches.

        Parameters
        ----------
        data : ndarray or sparse matrix of shape (n_samples, n_features), or list of ndarray
            The features, of a dtype the core reads; in a list one array of shape (n_samples,) for
            each. Cells that a sparse matrix does not store are 0; it is read by rows, as it is.
        n_jobs : int, default=1
            Number of threads.

        Returns
        -------
        ndarray of shape (n_samples,)
            Node ids of leaves.

        Raises
        ------
        NonFiniteError
            If a cell is NaN or infinite.
        """
        n_columns = len(data) if isinstance(data, list) else int(data.shape[1])
        if n_columns != self.n_features:
            features = format_count(self.n_features, "feature")
            raise ValueError(f"The tree has {features}; the data have {n_columns}.")
        if issparse(data):
            by_rows = data.tocsr()
            stored = (
                by_rows.indptr.astype(np.int64, copy=False),
                by_rows.indices.astype(np.int64, copy=False),
                by_rows.data.astype(np.float64, copy=False),
                n_columns,
            )
            leaves = _engine.apply_sparse(self.test_arrays, stored, n_jobs, self.oblique_arrays)
        else:
            leaves = _engine.apply(self.test_arrays, data, n_jobs, self.oblique_arrays)
        if leaves is None:
            raise NonFiniteError
        return leaves

    def predict(self, data: Any, n_jobs: int = 1) -> npt.NDArray[Any]:
        """Give each row the label of its cluster, as the user named it; data as for `apply`."""
        return np.asarray(self.classes)[self.leaf_clusters[self.apply(data, n_jobs)]]

    # ---- reading --------------------------------------------------------------------------

    def path_conditions(self, node: int) -> list[Condition | ObliqueCondition]:
        """Give what the path from the root to a node asks, merged per feature.

        Of the bounds on one feature in one direction only the tightest is kept, and outsides of
        intervals only where no bound implies them. Oblique tests stand for themselves.

        Parameters
        ----------
        node : int
            Node id.

        Returns
        -------
        list of Condition and ObliqueCondition
            In the order in which the path first asks about the features.
        """
        self._check_node(node)
        chain = [int(node)]
        while chain[-1] != 0:
            chain.append(int(self.parent[chain[-1]]))
        path = Path()
        for child in reversed(chain[:-1]):
            parent = int(self.parent[child])
            path.enter(self, parent, child == self.children_left[parent])
        return path.conditions()

    def rules(self, max_terms: int | None = None) -> pl.DataFrame:
        """Write the tree as one rule per leaf.

        Redundant conditions are merged: ``x <= 9`` then ``x <= 5`` is ``x <= 5``. The numbers are
        exactly those of the model. The output has as many conditions as the paths have without
        redundancy. Oblique tests are not merged, and written with the largest weights first.

        Parameters
        ----------
        max_terms : int, default=None
            Of oblique tests with at least two weights more than this, the largest weights to write,
            followed by the number of the others; None writes all.

        Returns
        -------
        polars.DataFrame
            One row per leaf, from left to right: `cluster` (the user's label), `rule`, `n` (rows of
            the fit), `share` (of all rows), `purity` (share of the leaf's weight that the reference
            puts in the leaf's cluster; null in an empty leaf) and `depth`. A tree with moves has no
            reference and no `purity`; it has, after `depth`, `move` (of the split that made the
            leaf) and `from_cluster` (the label that the leaf's rows had before that split); both
            are null where there was no split.

        Raises
        ------
        ValueError
            If the rules would repeat the weights of oblique tests more than 2 million times.
        """
        if max_terms is not None:
            max_terms = _positive_int(max_terms, "max_terms", minimum=1)
        if self.oblique_indptr is not None:
            self._check_rule_terms(max_terms)
        leaves: list[int] = []
        rules: list[str] = []
        scores: dict[int, str] = {}
        for leaf, _, path in walk_leaves(self):
            leaves.append(leaf)
            rules.append(rule_text(self, path.conditions(), max_terms, scores))
        codes = self.leaf_clusters[leaves]
        purity = self.value[leaves, 0, codes]
        is_empty = (self.value[leaves, 0] == 0).all(axis=1)
        n_rows = self.n_node_samples[leaves]
        label_type = pl.String if isinstance(self.classes[0], str) else pl.Int64
        frame = pl.DataFrame(
            {
                "cluster": pl.Series([self.classes[code] for code in codes], dtype=label_type),
                "rule": rules,
                "n": n_rows,
                "share": n_rows / max(int(self.n_node_samples[0]), 1),
                "purity": pl.Series(
                    [
                        None if empty else share
                        for share, empty in zip(purity.tolist(), is_empty.tolist(), strict=True)
                    ],
                    dtype=pl.Float64,
                ),
                "depth": self.node_depth[leaves],
            }
        )
        if self.move is None:
            return frame
        parents = [node for node in self.parent[leaves].tolist() if node >= 0]
        names = [MOVES[self.move[node]] for node in parents]
        origins = [self.classes[self.cluster[node]] for node in parents]
        # Only a tree of one leaf has a leaf without a parent.
        return frame.drop("purity").with_columns(
            pl.Series("move", names or [None], dtype=pl.String),
            pl.Series("from_cluster", origins or [None], dtype=label_type),
        )

    def _check_rule_terms(self, max_terms: int | None) -> None:
        """Raise ValueError if the rules of all leaves together were too long to write."""
        most = _INT64.max if max_terms is None else max_terms + 1
        own = np.where(self.kind == OBLIQUE, np.minimum(self.n_node_features, most), 0).tolist()
        parents = self.parent.tolist()
        above = [0] * self.n_nodes
        for node in range(1, self.n_nodes):
            above[node] = above[parents[node]] + own[parents[node]]
        n_terms = sum(above[leaf] for leaf in self.leaves.tolist())
        if n_terms > _MAX_RULE_TERMS:
            raise ValueError(
                f"The rules of this tree would have {n_terms:,} weights, those of the oblique "
                f"tests above every leaf (at most {_MAX_RULE_TERMS:,}). Use print(tree), "
                "rules(max_terms=...) or a smaller tree by truncate(m)."
            )

    def __str__(self) -> str:
        return export_text(self)

    def __repr__(self) -> str:
        return (
            f"ClusterTree(n_leaves={self.n_leaves}, max_depth={self.max_depth}, "
            f"n_features={self.n_features}, n_clusters={len(self.classes)})"
        )

    def _repr_html_(self) -> str:
        return export_html(self)

    # ---- new trees from this one ----------------------------------------------------------

    def truncate(self, max_leaves: int) -> ClusterTree:
        """Undo the last splits.

        Parameters
        ----------
        max_leaves : int
            Number of leaves to keep; the whole tree is given if it has no more.

        Returns
        -------
        ClusterTree
            The tree as it was when it had this many leaves. A tree with moves loses the clusters
            that later splits made; its `value` is that of the leaves it has.

        Raises
        ------
        ValueError
            If `max_leaves` is less than 1 or than the leaves of the base tree.
        """
        max_leaves = _positive_int(max_leaves, "max_leaves", minimum=1)
        if max_leaves < self.n_base_leaves:
            raise ValueError(
                f"The tree cannot be cut to max_leaves={max_leaves}: m={max_leaves} is less than "
                f"the {self.n_base_leaves} leaves of the base tree."
            )
        if max_leaves >= self.n_leaves:
            return self
        n_nodes = 2 * max_leaves - 1
        state = self.__getstate__()
        for name in self._array_names():
            if name not in _OBLIQUE_ARRAYS:
                state[name] = state[name][:n_nodes].copy()
        was_cut = state["children_left"] >= n_nodes
        state |= self._oblique_without(was_cut)
        for name, blank in (
            ("children_left", _NO_CHILD),
            ("children_right", _NO_CHILD),
            ("feature", _UNDEFINED),
            ("threshold", float(_UNDEFINED)),
            ("lower", math.nan),
            ("upper", math.nan),
            ("kind", LEAF),
        ):
            state[name][was_cut] = blank
        if self.move is not None:
            state["move"][was_cut], state["gain"][was_cut] = -1, math.nan
            state["classes"] = self.classes[: int(state["cluster"].max()) + 1]
            state["value"] = None
            return ClusterTree(**state)
        labels = state["base_cluster" if max_leaves == self.n_base_leaves else "cluster"]
        is_leaf = state["kind"] == LEAF
        changed = was_cut | (is_leaf & (labels != self.leaf_clusters[:n_nodes]))
        nodes = np.flatnonzero(changed)
        state["mistakes"][nodes] = leaf_mistakes(
            self.weighted_n_node_samples[nodes],
            self.n_node_samples[nodes],
            self.value[nodes, 0, labels[nodes]],
        )
        return ClusterTree(**state)

    def _oblique_without(self, is_cut: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """Give the oblique arrays of the first nodes, without those that are cut."""
        if self.oblique_arrays is None:
            return {}
        indptr, indices, weights, bias = self.oblique_arrays
        n_nodes = len(is_cut)
        sizes = np.diff(indptr[: n_nodes + 1])
        # The terms of the first nodes come first.
        kept = np.repeat(~is_cut, sizes)
        return {
            "oblique_indptr": np.concatenate([[0], np.cumsum(np.where(is_cut, 0, sizes))]),
            "oblique_indices": indices[: len(kept)][kept],
            "oblique_weights": weights[: len(kept)][kept],
            "oblique_bias": np.where(is_cut, math.nan, bias[:n_nodes]),
        }

    def to_threshold(self) -> ClusterTree:
        """Give a tree of threshold tests only that sends every row to the same cluster.

        An interval node becomes two threshold nodes: ``x <= v`` with v the largest float below
        `lower` sends the rows below the interval to a copy of the outside subtree, and
        ``x <= upper`` separates the inside from the outside above it. The outside subtree is
        therefore *duplicated*, except for tests whose answer is known by then: the tree can grow
        exponentially with the number of intervals on one path. The rows, shares and costs of a copy
        are those of the node it was copied from, so that sums over the leaves count them twice.
        The result has no base tree, its nodes are numbered level by level, and `truncate` therefore
        means nothing for it: truncate first.

        Returns
        -------
        ClusterTree
            This tree itself if it has no interval nodes.

        Raises
        ------
        ValueError
            If the result would have more than 200,000 nodes, or the tree has oblique nodes, for
            which no thresholds can stand.
        """
        if self.oblique_indptr is not None:
            node = int(np.argmax(self.kind == OBLIQUE))
            raise ValueError(
                f"Node {node} of the tree is oblique: thresholds cannot send every row to the same "
                "side."
            )
        if not (self.kind == INTERVAL).any():
            return self
        return _expand_intervals(self)

    # ---- equality and pickling ------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClusterTree):
            return NotImplemented
        return (
            self.n_nodes == other.n_nodes
            and self.n_features == other.n_features
            and self.n_base_leaves == other.n_base_leaves
            and self.feature_names == other.feature_names
            and self.classes == other.classes
            and self._array_names() == other._array_names()
            and all(
                np.array_equal(
                    getattr(self, name),
                    getattr(other, name),
                    equal_nan=getattr(self, name).dtype.kind == "f",
                )
                for name in self._array_names()
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {name: getattr(self, name) for name in self._array_names()}
        state["n_features"] = self.n_features
        state["n_base_leaves"] = self.n_base_leaves
        state["feature_names"] = self.feature_names
        state["classes"] = self.classes
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def _array_names(self) -> tuple[str, ...]:
        return (
            *_NODE_ARRAYS,
            "value",
            *(() if self.move is None else ("move", "gain")),
            *(() if self.oblique_indptr is None else _OBLIQUE_ARRAYS),
        )


# ---- checks of single arguments -----------------------------------------------------------


class HasTree(Protocol):
    """A fitted estimator whose result is a tree."""

    tree_: ClusterTree


def as_tree(given: ClusterTree | HasTree) -> ClusterTree:
    """Give a tree itself, and the one of a fitted estimator.

    Raises
    ------
    NotFittedError
        If it is an estimator of this package that is not fitted yet.
    TypeError
        If it is anything else without a tree.
    """
    if isinstance(given, ClusterTree):
        return given
    fitted_by = getattr(type(given), "_fitted_by", None)
    if fitted_by == "tree_":
        check_is_fitted(given, "tree_")
    tree = getattr(given, "tree_", None)
    if isinstance(tree, ClusterTree):
        return tree
    name = type(given).__name__
    if fitted_by == "table_":
        raise TypeError(
            f"{name} has no tree: its rules are in `table_`, and given by `rules()` and "
            "`to_polars()`."
        )
    raise TypeError(
        f"tree must be a ClusterTree, or a fitted estimator that has one as `tree_`. Got {name} "
        "instead."
    )


def leaf_mistakes(weight: FloatArray, n_samples: IntArray, share: FloatArray) -> FloatArray:
    """Give the weight of the rows in nodes that are not of the cluster whose `share` is given."""
    mistakes = weight * (1.0 - share)
    # Unweighted mistakes are counts; the shares they are taken from are rounded.
    return np.asarray(np.where(weight == n_samples, np.rint(mistakes), mistakes))


def _move_code(parent: int, left: int, right: int, n_clusters: int) -> int | None:
    """Give the move that takes a leaf of cluster `parent` into two; None if none does.

    New clusters have the next codes, the left child's first.
    """
    left_is_new = left == n_clusters
    right_is_new = right == n_clusters + left_is_new
    if left == right or not (left_is_new or left < n_clusters):
        return None
    if not (right_is_new or right < n_clusters):
        return None
    n_new = left_is_new + right_is_new
    if parent in (left, right):
        name = ("switch", "star")[n_new]
    else:
        name = ("reallocation", "mixed", "double_star")[n_new]
    return MOVES.index(name)


def _frozen(array: IntArray) -> IntArray:
    array.setflags(write=False)
    return array


def _at_all(is_right: Any, complaint: str) -> None:
    """Raise ValueError naming the first node where `is_right` does not hold."""
    if not is_right.all():
        raise ValueError(f"Node {int(np.argmin(is_right))} of the tree {complaint}.")


def _positive_int(number: object, name: str, *, minimum: int) -> int:
    if isinstance(number, (bool, np.bool_)):
        raise ValueError(f"{name} must be an int, not a bool.")
    try:
        result = operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"{name} must be an int, not {type(number).__name__}.") from None
    if not minimum <= result <= _INT64.max:
        raise ValueError(f"{name} must be at least {minimum}. Got {result} instead.")
    return result


def _check_classes(classes: Iterable[object]) -> list[int] | list[str]:
    labels: list[Any] = [
        label.item() if isinstance(label, np.generic) else label for label in classes
    ]
    if not labels:
        raise ValueError("A tree needs at least one class.")
    if all(type(label) is int for label in labels):
        if min(labels) < _INT64.min or max(labels) > _INT64.max:
            raise ValueError("The classes must fit into 64-bit integers.")
    elif all(type(label) is str for label in labels):
        _check_unicode(labels, "classes")
    else:
        raise ValueError("The classes must be all int or all str.")
    if len(set(labels)) != len(labels):
        raise ValueError("The classes must differ from each other.")
    return labels


def _check_names(names: Iterable[object] | None, n_features: int) -> list[str] | None:
    if names is None:
        return None
    checked = [str(name) if isinstance(name, str) else name for name in names]
    if not all(type(name) is str for name in checked):
        raise ValueError("The feature_names must be strings.")
    if len(checked) != n_features:
        raise ValueError(f"There are {len(checked)} feature_names for {n_features} features.")
    if len(set(checked)) != len(checked):
        raise ValueError("The feature_names must differ from each other.")
    _check_unicode(checked, "feature_names")  # type: ignore[arg-type]
    return checked  # type: ignore[return-value]


def _check_unicode(texts: list[str], name: str) -> None:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"The {name} hold {text!r}, which is no valid Unicode.") from None


def _node_array(
    name: str, values: npt.ArrayLike, is_int: bool, n_nodes: int | None
) -> npt.NDArray[Any]:
    array = _checked_array(name, values, is_int)
    if n_nodes is not None and len(array) != n_nodes:
        raise ValueError(
            f"{name} has {len(array)} entries; children_left has {n_nodes}, one per node."
        )
    if len(array) == 0:
        raise ValueError(f"{name} is empty; a tree has at least one node.")
    return array


def _checked_array(name: str, values: npt.ArrayLike, is_int: bool) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension. Got {array.ndim} instead.")
    if len(array) == 0:
        return np.array(array, dtype=np.int64 if is_int else np.float64)
    if array.dtype.kind not in ("iu" if is_int else "iuf"):
        wanted = "integers" if is_int else "numbers"
        raise ValueError(f"{name} must hold {wanted}. Got dtype {array.dtype} instead.")
    if is_int and array.dtype.kind == "u" and array.max() > _INT64.max:
        raise ValueError(f"{name} holds {array.max()}, which is beyond 64-bit integers.")
    return np.array(array, dtype=np.int64 if is_int else np.float64)


def _value_array(values: npt.ArrayLike, n_nodes: int, n_classes: int) -> FloatArray:
    array = np.asarray(values)
    if array.shape != (n_nodes, 1, n_classes):
        raise ValueError(
            f"value must have the shape (n_nodes, 1, n_clusters) = {(n_nodes, 1, n_classes)}. "
            f"Got {array.shape} instead."
        )
    if array.dtype.kind not in "iuf":
        raise ValueError(f"value must hold numbers. Got dtype {array.dtype} instead.")
    return np.array(array, dtype=np.float64)


# ---- intervals as thresholds --------------------------------------------------------------


def _expand_intervals(tree: ClusterTree) -> ClusterTree:
    """Build the tree of `ClusterTree.to_threshold`.

    One walk down the tree keeps, per feature, the range (above, up_to] of values that can still
    occur; tests whose answer it settles are skipped.
    """
    left, right = tree.children_left.tolist(), tree.children_right.tolist()
    features, kinds = tree.feature.tolist(), tree.kind.tolist()
    # Interval tests are taken in the half-open form: inside is lower_open < x <= upper.
    upper = np.where(tree.kind == INTERVAL, tree.upper, tree.threshold).tolist()
    with np.errstate(over="ignore"):
        lower_open = np.nextafter(tree.lower, -math.inf).tolist()

    sources: list[int] = []  # the node a new node is taken from
    cuts: list[float] = []  # its threshold; NaN at leaves
    children: list[list[int]] = []
    ranges: dict[int, tuple[float, float]] = {}
    unlimited = (-math.inf, math.inf)
    # (node, new parent, is right child, feature, range): go to a node. A negative node: restore.
    stack: list[tuple[int, int, int, int, tuple[float, float]]] = [(0, -1, 0, -1, unlimited)]
    while stack:
        node, new_parent, side, feature, limits = stack.pop()
        if feature >= 0:
            before = ranges.get(feature, unlimited)
            ranges[feature] = limits
            if node >= 0:
                stack.append((-1, -1, 0, feature, before))
        if node < 0:
            continue
        cut = math.nan
        targets = (node, node)
        while kinds[node] != LEAF:
            above, up_to = ranges.get(features[node], unlimited)
            below_cut = lower_open[node] if kinds[node] == INTERVAL else -math.inf
            if up_to <= below_cut or above >= upper[node]:
                node = right[node]
            elif above >= below_cut and up_to <= upper[node]:
                node = left[node]
            elif above >= below_cut:
                cut, targets = upper[node], (left[node], right[node])
                break
            else:
                # Below the interval is outside; above `below_cut` the same node asks the rest.
                cut, targets = below_cut, (right[node], node)
                break
        new = len(sources)
        if new == _MAX_EXPANDED_NODES:
            raise ValueError(
                "Written with thresholds only, the intervals of this tree take more than "
                f"{_MAX_EXPANDED_NODES:,} nodes. Use the tree as it is, or truncate it first."
            )
        sources.append(node)
        cuts.append(cut)
        children.append([-1, -1])
        if new_parent >= 0:
            children[new_parent][side] = new
        if not math.isnan(cut):
            feature = features[node]
            above, up_to = ranges.get(feature, unlimited)
            stack.append((targets[1], new, 1, feature, (cut, up_to)))
            stack.append((targets[0], new, 0, feature, (above, cut)))

    # Number the nodes level by level: siblings follow each other, children follow their parent.
    order = [0]
    for new in order:
        if children[new][0] >= 0:
            order += children[new]
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.arange(len(order))
    source = np.array(sources, dtype=np.int64)[order]
    threshold = np.array(cuts)[order]
    is_leaf = np.isnan(threshold)
    child = np.array(children, dtype=np.int64)[order]
    child[~is_leaf] = numbers[child[~is_leaf]]
    labels = np.where(tree.kind == LEAF, tree.leaf_clusters, tree.cluster)[source]
    blank = np.full(len(order), math.nan)
    return ClusterTree(
        children_left=child[:, 0],
        children_right=child[:, 1],
        feature=np.where(is_leaf, _UNDEFINED, tree.feature[source]),
        threshold=np.where(is_leaf, float(_UNDEFINED), threshold),
        lower=blank,
        upper=blank,
        kind=np.where(is_leaf, LEAF, THRESHOLD),
        impurity=tree.impurity[source],
        n_node_samples=tree.n_node_samples[source],
        weighted_n_node_samples=tree.weighted_n_node_samples[source],
        value=tree.value[source],
        cluster=labels,
        base_cluster=np.full(len(order), -1),
        mistakes=np.where(is_leaf, tree.mistakes[source], math.nan),
        n_features=tree.n_features,
        classes=tree.classes,
        feature_names=tree.feature_names,
    )


def kept_ancestor(tree: ClusterTree, n_nodes: int) -> npt.NDArray[np.int64]:
    """For every node the node itself or its ancestor among the first `n_nodes`."""
    kept = list(range(tree.n_nodes))
    parents = tree.parent.tolist()
    for node in range(n_nodes, tree.n_nodes):
        kept[node] = kept[parents[node]]
    return np.array(kept, dtype=np.int64)
