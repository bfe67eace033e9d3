"""New trees from old ones: the first nodes of a tree, and intervals written as thresholds.

The functions return the arguments of the new `ClusterTree`.
"""

import math
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._engine import TestArrays
from .._util import BoolArray, FloatArray, IntArray
from .nodes import (
    BESIDE_ARRAYS,
    COLUMN_ARGUMENTS,
    FEATURE_SCALE,
    INTERVAL,
    LEAF,
    LEVEL_ARRAYS,
    LEVELS,
    MISSING,
    NO_CHILD,
    OBLIQUE,
    THRESHOLD,
    UNDEFINED,
    TreeNodes,
    leaf_mistakes,
)

# The arrays of runs of entries by node: where they start, and the entries.
_RUNS = (("oblique_indptr", "oblique_indices", "oblique_weights"), LEVEL_ARRAYS)
# Expanding intervals copies subtrees and may grow exponentially with the number of intervals.
_MAX_EXPANDED_NODES = 200_000


def truncate_nodes(tree: TreeNodes, n_nodes: int) -> dict[str, Any]:
    """Return the arguments of the tree of the first nodes, those of `ClusterTree.truncate`."""
    arguments = tree.arguments()
    for name in _node_arrays(tree):
        arguments[name] = arguments[name][:n_nodes].copy()
    is_cut = arguments["children_left"] >= n_nodes
    arguments |= _runs_of(tree, np.arange(n_nodes), ~is_cut)
    for name, blank in (
        ("children_left", NO_CHILD),
        ("children_right", NO_CHILD),
        ("feature", UNDEFINED),
        ("threshold", float(UNDEFINED)),
        ("lower", math.nan),
        ("upper", math.nan),
        ("kind", LEAF),
        ("oblique_bias", math.nan),
        ("missing_go_to_left", False),
        *((name, math.nan) for name in BESIDE_ARRAYS),
    ):
        if arguments.get(name) is not None:
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


def _node_arrays(tree: TreeNodes) -> list[str]:
    """Return the names of the tree's arrays that have one entry per node."""
    others = {FEATURE_SCALE, *(name for names in _RUNS for name in names)}
    return [name for name in tree.array_names if name not in others]


def _runs_of(
    tree: TreeNodes, nodes: IntArray, kept: BoolArray | bool = True
) -> dict[str, npt.NDArray[Any]]:
    """Return the oblique terms and the levels of nodes in that order, of those `kept` alone."""
    taken: dict[str, npt.NDArray[Any]] = {}
    for indptr_name, *names in _RUNS:
        indptr = getattr(tree, indptr_name)
        if indptr is not None:
            taken[indptr_name], places = take_runs(indptr, nodes, kept)
            taken |= {name: getattr(tree, name)[places] for name in names}
    return taken


def take_runs(
    indptr: IntArray, nodes: IntArray, kept: BoolArray | bool = True
) -> tuple[IntArray, IntArray]:
    """Return where the runs of nodes start when put in that order, and the places of their entries.

    Nodes that are not `kept` have empty runs.
    """
    sizes = np.where(kept, np.diff(indptr)[nodes], 0)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return starts, np.arange(starts[-1]) + np.repeat(indptr[nodes] - starts[:-1], sizes)


def reordered_tests(tests: TestArrays, old: IntArray, number: IntArray) -> TestArrays:
    """Return the tests of a tree with its nodes in another order; see `order_by_gain`."""
    children = (tests.children_left[old], tests.children_right[old])
    left, right = (np.where(child >= 0, number[child], -1) for child in children)
    indptr, codes, goes_left = tests.levels_indptr, tests.levels_codes, tests.missing_go_to_left
    if indptr is not None and codes is not None:
        indptr, places = take_runs(indptr, old)
        codes = codes[places]
    return TestArrays(
        kind=tests.kind[old],
        feature=tests.feature[old],
        threshold=tests.threshold[old],
        lower=tests.lower[old],
        upper=tests.upper[old],
        children_left=left,
        children_right=right,
        levels_indptr=indptr,
        levels_codes=codes,
        missing_go_to_left=None if goes_left is None else goes_left[old],
    )


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
    for name in _node_arrays(tree):
        arguments[name] = arguments[name][old]
    for name in ("children_left", "children_right"):
        child = arguments[name]
        arguments[name] = np.where(child >= 0, number[child], child)
    return arguments | _runs_of(tree, old)


class _Reach(NamedTuple):
    """What can still occur in a column: values in (above, up_to], and missing cells."""

    above: float
    up_to: float
    missing: bool

    @property
    def has_values(self) -> bool:
        return self.above < self.up_to


def expand_intervals(tree: TreeNodes) -> dict[str, Any]:
    """Return the arguments of the tree of `ClusterTree.to_threshold`; oblique tests stay.

    One walk down the tree keeps, per feature, what can still occur; a test that all of it answers
    alike is skipped.
    """
    left, right = tree.children_left.tolist(), tree.children_right.tolist()
    features, kinds = tree.feature.tolist(), tree.kind.tolist()
    directions = tree.missing_go_to_left
    goes_left = [False] * tree.n_nodes if directions is None else directions.tolist()
    # Interval tests in half-open form: inside is lower_open < x <= upper.
    upper = np.where(tree.kind == INTERVAL, tree.upper, tree.threshold).tolist()
    with np.errstate(over="ignore"):
        lower_open = np.nextafter(tree.lower, -math.inf).tolist()

    sources: list[int] = []  # the node that a new node copies
    cuts: list[float] = []  # its threshold; NaN where it has none
    ends: list[bool] = []  # whether that is beside the lower end of an interval
    sides: list[bool] = []  # whether its missing cells go left
    children: list[list[int]] = []
    reached: dict[int, _Reach] = {}
    anything = _Reach(-math.inf, math.inf, directions is not None)

    def answer(node: int) -> bool | None:
        """Return the side that all that can occur at a node takes; None: it differs."""
        above, up_to, missing = reach = reached.get(features[node], anything)
        answers = {goes_left[node]} if missing else set()
        if kinds[node] in (LEVELS, OBLIQUE):
            return None
        if kinds[node] == MISSING:
            answers |= {False} if reach.has_values else set()
        elif reach.has_values:
            below_cut = lower_open[node] if kinds[node] == INTERVAL else -math.inf
            if up_to <= below_cut or above >= upper[node]:
                answers.add(False)
            elif above >= below_cut and up_to <= upper[node]:
                answers.add(True)
            else:
                return None
        if len(answers) > 1:
            return None
        return True if not answers else answers.pop()

    # (node, new parent, is right child, feature, reach); with a negative node: restore the reach.
    stack: list[tuple[int, int, int, int, _Reach]] = [(0, -1, 0, -1, anything)]
    while stack:
        node, new_parent, side, feature, limits = stack.pop()
        if feature >= 0:
            before = reached.get(feature, anything)
            reached[feature] = limits
            if node >= 0:
                stack.append((-1, -1, 0, feature, before))
        if node < 0:
            continue
        while kinds[node] != LEAF and (taken := answer(node)) is not None:
            node = left[node] if taken else right[node]
        new = len(sources)
        if new == _MAX_EXPANDED_NODES:
            raise ValueError(
                "Written with thresholds only, the intervals of this tree take more than "
                f"{_MAX_EXPANDED_NODES:,} nodes. Use the tree as it is, or truncate it first."
            )
        cut, is_lower, missing_left = math.nan, False, goes_left[node]
        targets = left[node], right[node]
        feature = features[node]
        reach = reached.get(feature, anything)
        if kinds[node] in (THRESHOLD, INTERVAL):
            cut = upper[node]
            below_cut = lower_open[node] if kinds[node] == INTERVAL else -math.inf
            if reach.has_values and reach.above < below_cut:
                # Below the interval is outside; above `below_cut` the same node is tested again.
                cut, is_lower, missing_left = below_cut, True, not missing_left
                targets = right[node], node
        sources.append(node)
        cuts.append(cut)
        ends.append(is_lower)
        sides.append(missing_left)
        children.append([-1, -1])
        if new_parent >= 0:
            children[new_parent][side] = new
        if kinds[node] == LEAF:
            continue
        on_left = reach._replace(missing=reach.missing and missing_left)
        on_right = reach._replace(missing=reach.missing and not missing_left)
        if kinds[node] == MISSING:
            on_left = on_left._replace(above=math.inf)
        elif kinds[node] in (THRESHOLD, INTERVAL):
            on_left = on_left._replace(up_to=min(reach.up_to, cut))
            on_right = on_right._replace(above=max(reach.above, cut))
        stack.append((targets[1], new, 1, feature, on_right))
        stack.append((targets[0], new, 0, feature, on_left))

    # Number the nodes level by level: siblings follow each other, children follow their parent.
    order = [0]
    for new in order:
        if children[new][0] >= 0:
            order += children[new]
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.arange(len(order))
    source = np.array(sources, dtype=np.int64)[order]
    threshold = np.array(cuts)[order]
    child = np.array(children, dtype=np.int64)[order]
    kind = np.where(tree.kind == INTERVAL, THRESHOLD, tree.kind)[source]
    is_leaf = kind == LEAF
    child[~is_leaf] = numbers[child[~is_leaf]]
    labels = np.where(tree.kind == LEAF, tree.leaf_clusters, tree.cluster)[source]
    blank = np.full(len(order), math.nan)
    is_lower_end = np.array(ends)[order]

    def beside(upper: FloatArray | None, lower: FloatArray | None) -> FloatArray | None:
        if upper is None or lower is None:
            return None
        return np.where(is_lower_end, lower[source], upper[source])

    missing_go_to_left = None
    if directions is not None:
        missing_go_to_left = np.array(sides)[order] & ~is_leaf
    return {
        "children_left": child[:, 0],
        "children_right": child[:, 1],
        "feature": np.where(is_leaf, UNDEFINED, tree.feature[source]),
        "threshold": np.where(is_leaf, float(UNDEFINED), threshold),
        "lower": blank,
        "upper": blank,
        "kind": kind,
        "missing_go_to_left": missing_go_to_left,
        "below": beside(tree.below, tree.below_lower),
        "above": beside(tree.above, tree.above_lower),
        **_runs_of(tree, source),
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
        "feature_scale": tree.feature_scale,
        "oblique_bias": None if tree.oblique_bias is None else tree.oblique_bias[source],
        **{name: getattr(tree, name) for name in COLUMN_ARGUMENTS},
    }
