"""Moves of trees grown by Kauri: how each split placed its children, checked by replaying them."""

from __future__ import annotations

import numpy as np

from .._util.arrays import FloatArray
from .checks import at_all
from .nodes import INTERVAL, LEAF, MOVES, OBLIQUE, TreeNodes
from .paths import walk_nodes


def check_moves(nodes: TreeNodes) -> None:
    """Check moves and gains, that both sides of every split have rows, and the clusters."""
    assert nodes.move is not None and nodes.gain is not None, "checked before"
    is_leaf = nodes.kind == LEAF
    n_moves = len(MOVES)
    at_all(
        np.where(is_leaf, nodes.move == -1, (nodes.move >= 0) & (nodes.move < n_moves)),
        f"needs a move in 0..{n_moves - 1} if it is split, and -1 if it is a leaf",
    )
    at_all(
        np.where(is_leaf, np.isnan(nodes.gain), np.isfinite(nodes.gain) & (nodes.gain > 0)),
        "needs a finite gain above 0 if it is split, and NaN if it is a leaf",
    )
    at_all(nodes.kind != INTERVAL, "has a move and an interval test; moves take thresholds")
    at_all(nodes.kind != OBLIQUE, "has a move and an oblique test; moves take thresholds")
    at_all(np.isnan(nodes.mistakes), "has mistakes; a tree with moves has no reference")
    if nodes.n_base_leaves:
        raise ValueError("A tree with moves has no base tree: n_base_leaves must be 0.")
    _check_rows(nodes)
    for node, _, path in walk_nodes(nodes):
        if is_leaf[node]:
            continue
        span = path.span(int(nodes.feature[node]))
        if not span.lower < nodes.threshold[node] < span.upper:
            raise ValueError(
                f"Node {node} of the tree has a threshold that all rows reaching it are on one "
                "side of; a split with a move has rows on both."
            )
    _check_clusters(nodes)


def _check_rows(nodes: TreeNodes) -> None:
    """Check that no node is empty and that the children of a node share its rows."""
    n_rows, weight = nodes.n_node_samples, nodes.weighted_n_node_samples
    at_all((n_rows > 0) & (weight > 0), "is empty, which no node of a tree with moves is")
    inner = np.flatnonzero(nodes.kind != LEAF)
    left, right = nodes.children_left[inner], nodes.children_right[inner]
    is_right = np.ones(nodes.n_nodes, dtype=bool)
    # Sums that overflow are negative or infinite, and fail the checks.
    with np.errstate(over="ignore"):
        is_right[inner] = n_rows[left] + n_rows[right] == n_rows[inner]
        off = np.abs(weight[left] + weight[right] - weight[inner])
    at_all(is_right, "has other n_node_samples than its children together")
    is_right[inner] = off <= 1e-6 * weight[inner]
    at_all(is_right, "has another weighted_n_node_samples than its children together")


def _check_clusters(nodes: TreeNodes) -> None:
    """Replay the splits: each move must match its clusters, and no cluster may become empty."""
    assert nodes.move is not None, "checked before"
    clusters, moves, parents = nodes.cluster.tolist(), nodes.move.tolist(), nodes.parent.tolist()
    if clusters[0] != 0:
        raise ValueError("The root of a tree with moves must have the cluster code 0.")
    n_leaves = [1]  # per cluster so far
    for left in range(1, nodes.n_nodes, 2):
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
    if len(n_leaves) != len(nodes.classes):
        raise ValueError(
            f"The moves of the tree make {len(n_leaves)} clusters; there are "
            f"{len(nodes.classes)} classes."
        )


def _move_code(parent: int, left: int, right: int, n_clusters: int) -> int | None:
    """Return the move that splits a leaf of cluster `parent` so; None if no move does.

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


def own_shares(nodes: TreeNodes) -> FloatArray:
    """Return the share of each of the tree's own clusters in the weight of each node."""
    sums = np.zeros((nodes.n_nodes, 1, len(nodes.classes)))
    leaves = np.flatnonzero(nodes.kind == LEAF)
    sums[leaves, 0, nodes.cluster[leaves]] = nodes.weighted_n_node_samples[leaves]
    parents = nodes.parent.tolist()
    # In a model file the weights of children may exceed their parent's by rounding.
    with np.errstate(over="ignore", invalid="ignore"):
        for node in range(nodes.n_nodes - 1, 0, -1):
            sums[parents[node]] += sums[node]
        return np.asarray(sums / sums.sum(axis=2, keepdims=True))
