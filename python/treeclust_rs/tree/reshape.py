"""New trees from old ones: the first nodes of a tree, and intervals written as thresholds.

The functions return the arguments of the new `ClusterTree`.
"""

import math
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from .._util import BoolArray, FloatArray, IntArray
from .nodes import (
    FEATURE_SCALE,
    INTERVAL,
    LEAF,
    NO_CHILD,
    OBLIQUE_ARRAYS,
    THRESHOLD,
    UNDEFINED,
    TreeNodes,
    leaf_mistakes,
)

# Expanding intervals copies subtrees and may grow exponentially with the number of intervals.
_MAX_EXPANDED_NODES = 200_000


def truncate_nodes(tree: TreeNodes, n_nodes: int) -> dict[str, Any]:
    """Return the arguments of the tree of the first nodes, those of `ClusterTree.truncate`."""
    arguments = tree.arguments()
    for name in tree.array_names:
        if name not in (*OBLIQUE_ARRAYS, FEATURE_SCALE):
            arguments[name] = arguments[name][:n_nodes].copy()
    is_cut = arguments["children_left"] >= n_nodes
    arguments |= _oblique_without(tree, is_cut)
    for name, blank in (
        ("children_left", NO_CHILD),
        ("children_right", NO_CHILD),
        ("feature", UNDEFINED),
        ("threshold", float(UNDEFINED)),
        ("lower", math.nan),
        ("upper", math.nan),
        ("kind", LEAF),
    ):
        arguments[name][is_cut] = blank
    if tree.move is not None:
        arguments["move"][is_cut], arguments["gain"][is_cut] = -1, math.nan
        arguments["classes"] = tree.classes[: int(arguments["cluster"].max()) + 1]
        arguments["value"] = None
        return arguments
    is_base = n_nodes == 2 * tree.n_base_leaves - 1
    labels = arguments["base_cluster" if is_base else "cluster"]
    is_leaf = arguments["kind"] == LEAF
    changed = is_cut | (is_leaf & (labels != tree.leaf_clusters[:n_nodes]))
    nodes = np.flatnonzero(changed)
    arguments["mistakes"][nodes] = leaf_mistakes(
        tree.weighted_n_node_samples[nodes],
        tree.n_node_samples[nodes],
        tree.value[nodes, 0, labels[nodes]],
    )
    return arguments


def _oblique_without(tree: TreeNodes, is_cut: BoolArray) -> dict[str, npt.NDArray[Any]]:
    """Return the oblique arrays of the first nodes, without the terms of those that are cut."""
    if tree.oblique_arrays is None:
        return {}
    indptr, indices, weights, bias = tree.oblique_arrays
    n_nodes = len(is_cut)
    sizes = np.diff(indptr[: n_nodes + 1])
    # The terms are in the order of the nodes.
    kept = np.repeat(~is_cut, sizes)
    return {
        "oblique_indptr": np.concatenate([[0], np.cumsum(np.where(is_cut, 0, sizes))]),
        "oblique_indices": indices[: len(kept)][kept],
        "oblique_weights": weights[: len(kept)][kept],
        "oblique_bias": np.where(is_cut, math.nan, bias[:n_nodes]),
    }


def kept_ancestor(tree: TreeNodes, n_nodes: int) -> IntArray:
    """Return, for every node, the node itself or its ancestor among the first `n_nodes`."""
    kept = list(range(tree.n_nodes))
    parents = tree.parent.tolist()
    for node in range(n_nodes, tree.n_nodes):
        kept[node] = kept[parents[node]]
    return np.array(kept, dtype=np.int64)


def splits_by_gain(tree: TreeNodes) -> tuple[dict[str, Any], IntArray]:
    """Return the arguments of a tree whose last split costs least to undo, and so on down to one.

    `truncate_nodes` then prunes. Also returned: the new number of each node.
    """
    old, number = order_by_gain(tree.children_left, tree.impurity * tree.weighted_n_node_samples)
    return _renumbered(tree, old, number), number


def order_by_gain(children_left: IntArray, node_cost: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the nodes in the order of their splits, the last of which costs least to undo.

    Of all splits into two leaves the one that lowers the cost least becomes the last, then that of
    the tree without it (weakest-link pruning, a split at a time). Also returned: the new number of
    each node.
    """
    left, cost = children_left.tolist(), node_cost.tolist()
    is_leaf = [child < 0 for child in left]
    parent = {
        child + side: node for node, child in enumerate(left) if child >= 0 for side in (0, 1)
    }

    def candidate(node: int) -> tuple[float, int]:
        return cost[node] - cost[left[node]] - cost[left[node] + 1], -node

    def splits_in_leaves(node: int) -> bool:
        return not is_leaf[node] and is_leaf[left[node]] and is_leaf[left[node] + 1]

    weakest = [candidate(node) for node in range(len(left)) if splits_in_leaves(node)]
    heapify(weakest)
    undone: list[int] = []
    while weakest:
        node = -heappop(weakest)[1]
        undone.append(node)
        is_leaf[node] = True
        if node in parent and splits_in_leaves(parent[node]):
            heappush(weakest, candidate(parent[node]))
    order = [0, *(left[node] + side for node in reversed(undone) for side in (0, 1))]
    old = np.array(order, dtype=np.int64)
    number = np.empty_like(old)
    number[old] = np.arange(len(old))
    return old, number


def _renumbered(tree: TreeNodes, old: IntArray, number: IntArray) -> dict[str, Any]:
    """Return the arguments of a tree with its nodes in another order."""
    arguments = tree.arguments()
    for name in tree.array_names:
        if name != FEATURE_SCALE and not name.startswith("oblique_"):
            arguments[name] = arguments[name][old]
    for name in ("children_left", "children_right"):
        child = arguments[name]
        arguments[name] = np.where(child >= 0, number[child], child)
    if tree.oblique_arrays is not None:
        indptr, indices, weights, bias = tree.oblique_arrays
        terms = [np.arange(indptr[node], indptr[node + 1]) for node in old.tolist()]
        places = np.concatenate(terms)
        arguments |= {
            "oblique_indptr": np.concatenate([[0], np.cumsum(np.diff(indptr)[old])]),
            "oblique_indices": indices[places],
            "oblique_weights": weights[places],
            "oblique_bias": bias[old],
        }
    return arguments


def expand_intervals(tree: TreeNodes) -> dict[str, Any]:
    """Return the arguments of the tree of `ClusterTree.to_threshold`.

    One walk down the tree keeps, per feature, the range (above, up_to] of values that can still
    occur; a test that all of these values answer alike is skipped.
    """
    left, right = tree.children_left.tolist(), tree.children_right.tolist()
    features, kinds = tree.feature.tolist(), tree.kind.tolist()
    # Interval tests in half-open form: inside is lower_open < x <= upper.
    upper = np.where(tree.kind == INTERVAL, tree.upper, tree.threshold).tolist()
    with np.errstate(over="ignore"):
        lower_open = np.nextafter(tree.lower, -math.inf).tolist()

    sources: list[int] = []  # the node that a new node copies
    cuts: list[float] = []  # its threshold; NaN at leaves
    children: list[list[int]] = []
    ranges: dict[int, tuple[float, float]] = {}
    unlimited = (-math.inf, math.inf)
    # (node, new parent, is right child, feature, range); with a negative node: restore the range.
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
                # Below the interval is outside; above `below_cut` the same node is tested again.
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
    return {
        "children_left": child[:, 0],
        "children_right": child[:, 1],
        "feature": np.where(is_leaf, UNDEFINED, tree.feature[source]),
        "threshold": np.where(is_leaf, float(UNDEFINED), threshold),
        "lower": blank,
        "upper": blank,
        "kind": np.where(is_leaf, LEAF, THRESHOLD),
        "impurity": tree.impurity[source],
        "n_node_samples": tree.n_node_samples[source],
        "weighted_n_node_samples": tree.weighted_n_node_samples[source],
        "value": tree.value[source],
        "cluster": labels,
        "base_cluster": np.full(len(order), -1),
        "mistakes": np.where(is_leaf, tree.mistakes[source], math.nan),
        "n_features": tree.n_features,
        "classes": tree.classes,
        "feature_names": tree.feature_names,
    }
