"""Checks of the arrays of a tree, moves included; messages name the first node that is wrong."""

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._data.kinds import check_kind, has_levels
from .._data.levels import FLAG_LEVELS
from .._data.times import MAX_TIME
from .._engine import MISSING_LEVEL, ObliqueArrays
from .._util import BoolArray, FloatArray, IntArray
from .._util.words import check_column_names, check_unicode
from .columns import Column
from .nodes import (
    INTERVAL,
    LEAF,
    LEVELS,
    MISSING,
    MOVES,
    NO_CHILD,
    OBLIQUE,
    THRESHOLD,
    UNDEFINED,
    TreeNodes,
)
from .paths import walk_nodes

_INT64 = np.iinfo(np.int64)


def check_int(number: object, name: str, *, minimum: int) -> int:
    """Return an int of at least `minimum` that fits into 64 bits."""
    if isinstance(number, (bool, np.bool_)):
        raise ValueError(f"{name} must be an int, not a bool.")
    try:
        result = operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"{name} must be an int, not {type(number).__name__}.") from None
    if not minimum <= result <= _INT64.max:
        raise ValueError(f"{name} must be at least {minimum}. Got {result} instead.")
    return result


def check_classes(classes: Iterable[object]) -> tuple[int, ...] | tuple[str, ...]:
    """Return the classes; all int or all str, and distinct."""
    labels: list[Any] = [
        label.item() if isinstance(label, np.generic) else label for label in classes
    ]
    if not labels:
        raise ValueError("A tree needs at least one class.")
    if all(type(label) is int for label in labels):
        if min(labels) < _INT64.min or max(labels) > _INT64.max:
            raise ValueError("The classes must fit into 64-bit integers.")
    elif all(type(label) is str for label in labels):
        check_unicode(labels, "The tree has a class")
    else:
        raise ValueError("The classes must be all int or all str.")
    if len(set(labels)) != len(labels):
        raise ValueError("The classes must differ from each other.")
    return tuple(labels)


def check_names(names: Iterable[object] | None, n_features: int) -> tuple[str, ...] | None:
    """Return the feature names; one per feature, and distinct."""
    if names is None:
        return None
    return tuple(check_column_names(names, n_features, "The tree has a feature"))


def check_array(name: str, values: npt.ArrayLike, *, is_int: bool) -> npt.NDArray[Any]:
    """Return a copy of a one-dimensional array as int64 or float64."""
    array = np.asarray(values)
    dtype = np.int64 if is_int else np.float64
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension. Got {array.ndim} instead.")
    if len(array) == 0:
        return np.array(array, dtype=dtype)
    if array.dtype.kind not in ("iu" if is_int else "iuf"):
        wanted = "integers" if is_int else "numbers"
        raise ValueError(f"{name} must hold {wanted}. Got dtype {array.dtype} instead.")
    if is_int and array.dtype.kind == "u" and array.max() > _INT64.max:
        raise ValueError(f"{name} holds {array.max()}, which is beyond 64-bit integers.")
    return np.array(array, dtype=dtype)


def check_node_array(
    name: str, values: npt.ArrayLike, n_nodes: int | None, *, is_int: bool
) -> npt.NDArray[Any]:
    """Return a copy of an array with one entry per node."""
    array = check_array(name, values, is_int=is_int)
    if n_nodes is not None and len(array) != n_nodes:
        raise ValueError(
            f"{name} has {len(array)} entries; children_left has {n_nodes}, one per node."
        )
    if len(array) == 0:
        raise ValueError(f"{name} is empty; a tree has at least one node.")
    return array


def check_feature_scale(values: npt.ArrayLike | None, n_features: int) -> FloatArray | None:
    """Return a copy of the columns' standard deviations; None stays None."""
    if values is None:
        return None
    scale: FloatArray = check_array("feature_scale", values, is_int=False)
    if len(scale) != n_features:
        raise ValueError(f"feature_scale has {len(scale)} entries for {n_features} features.")
    wrong = np.flatnonzero(~(np.isfinite(scale) & (scale >= 0)))
    if len(wrong):
        raise ValueError(
            f"The feature_scale of feature {wrong[0]} is {scale[wrong[0]]:g}; a standard deviation "
            "is finite and at least 0."
        )
    return scale


def check_oblique_arrays(
    arrays: dict[str, npt.ArrayLike | None], n_nodes: int
) -> ObliqueArrays | None:
    """Return copies of the oblique arrays by name, whose lengths must fit; None if all are None."""
    given = [(name, array) for name, array in arrays.items() if array is not None]
    if not given:
        return None
    if len(given) < len(arrays):
        missing = next(name for name, array in arrays.items() if array is None)
        raise ValueError(f"A tree has all of {', '.join(arrays)}, or none; {missing} is missing.")
    checked = ObliqueArrays(
        *(
            check_array(name, array, is_int=name in ("oblique_indptr", "oblique_indices"))
            for name, array in given
        )
    )
    for name, length, what in (
        ("indptr", n_nodes + 1, "one per node and one more"),
        ("weights", len(checked.indices), "as many as oblique_indices"),
        ("bias", n_nodes, "one per node"),
    ):
        n_entries = len(getattr(checked, name))
        if n_entries != length:
            raise ValueError(f"oblique_{name} has {n_entries} entries; it needs {length}, {what}.")
    return checked


def check_level_arrays(
    indptr: npt.ArrayLike | None, codes: npt.ArrayLike | None, n_nodes: int
) -> tuple[IntArray, IntArray] | None:
    """Return copies of the arrays of level tests, whose lengths must fit; None if both are None."""
    if indptr is None and codes is None:
        return None
    if indptr is None or codes is None:
        raise ValueError("A tree has both of levels_indptr and levels_codes, or neither.")
    starts = check_array("levels_indptr", indptr, is_int=True)
    if len(starts) != n_nodes + 1:
        raise ValueError(
            f"levels_indptr has {len(starts)} entries; it needs {n_nodes + 1}, one per node and "
            "one more."
        )
    return starts, check_array("levels_codes", codes, is_int=True)


def check_directions(values: npt.ArrayLike | None, n_nodes: int) -> BoolArray | None:
    """Return a copy of `missing_go_to_left`; None stays None."""
    if values is None:
        return None
    array = np.asarray(values)
    if array.shape != (n_nodes,) or array.dtype.kind != "b":
        raise ValueError(
            f"missing_go_to_left must hold {n_nodes} bools, one per node. Got shape {array.shape} "
            f"of dtype {array.dtype} instead."
        )
    return np.array(array)


def check_columns(
    kinds: Sequence[str] | None,
    levels: Sequence[Sequence[str] | None] | None,
    has_missing: Sequence[bool] | None,
    n_features: int,
) -> tuple[
    tuple[str, ...] | None, tuple[tuple[str, ...] | None, ...] | None, tuple[bool, ...] | None
]:
    """Return the kinds of the columns, their levels and whether they had missing cells.

    None of each where it says nothing: all columns hold numbers, or none had missing cells.
    """
    for name, entries in (
        ("column_kinds", kinds),
        ("levels", levels),
        ("has_missing", has_missing),
    ):
        if entries is not None and (isinstance(entries, str) or len(entries) != n_features):
            raise ValueError(f"{name} must have {n_features} entries, one per feature.")
    for feature, kind in enumerate(kinds or ()):
        try:
            check_kind(kind)
        except ValueError as error:
            raise ValueError(
                f"Feature {feature} of the tree is of the unknown kind {kind!r}. {error}"
            ) from None
    checked: tuple[tuple[str, ...] | None, ...] = tuple(
        None if own is None else _check_levels(feature, own)
        for feature, own in enumerate(levels or ())
    )
    for feature in range(n_features) if kinds or checked else ():
        kind = kinds[feature] if kinds else "number"
        own = checked[feature] if checked else None
        if (own is None) == has_levels(kind):
            raise ValueError(
                f"Feature {feature} of the tree is of kind {kind!r} and has "
                f"{'no ' if own is None else ''}levels; those of kind levels or flag have some."
            )
        if kind == "flag" and own != FLAG_LEVELS:
            raise ValueError(f"Feature {feature} of the tree is a flag with other levels.")
    gaps = tuple(map(bool, has_missing or ()))
    return (
        None if set(kinds or ()) <= {"number"} else tuple(kinds or ()),
        checked if any(own is not None for own in checked) else None,
        gaps if any(gaps) else None,
    )


def _check_levels(feature: int, levels: Sequence[str]) -> tuple[str, ...]:
    if isinstance(levels, str) or not set(map(type, levels)) <= {str}:
        raise ValueError(f"The levels of feature {feature} must be strings.")
    if len(set(levels)) != len(levels):
        raise ValueError(f"The levels of feature {feature} must differ from each other.")
    if len(levels) > MISSING_LEVEL:
        raise ValueError(
            f"Feature {feature} has {len(levels)} levels; at most {MISSING_LEVEL} are possible."
        )
    check_unicode(levels, f"Feature {feature} has a level")
    return tuple(levels)


def check_value_array(values: npt.ArrayLike, n_nodes: int, n_classes: int) -> FloatArray:
    """Return a copy of `value` as float64."""
    array = np.asarray(values)
    if array.shape != (n_nodes, 1, n_classes):
        raise ValueError(
            f"value must have the shape (n_nodes, 1, n_clusters) = {(n_nodes, 1, n_classes)}. "
            f"Got {array.shape} instead."
        )
    if array.dtype.kind not in "iuf":
        raise ValueError(f"value must hold numbers. Got dtype {array.dtype} instead.")
    return np.array(array, dtype=np.float64)


def at_all(is_right: BoolArray | np.bool_, complaint: str) -> None:
    """Raise ValueError naming the first node where `is_right` does not hold."""
    if not is_right.all():
        raise ValueError(f"Node {int(np.argmin(is_right))} of the tree {complaint}.")


def check_structure(nodes: TreeNodes) -> None:
    """Check the children: two or none per node, after it, siblings side by side."""
    left, right = nodes.children_left, nodes.children_right
    n_nodes = len(left)
    if n_nodes % 2 == 0:
        raise ValueError(f"A tree has an odd number of nodes, not {n_nodes}.")
    is_leaf = left == NO_CHILD
    at_all(
        (right == NO_CHILD) == is_leaf,
        "has one child; a node has two children, or none and then -1 for both",
    )
    at_all((nodes.kind == LEAF) == is_leaf, "is a leaf by its kind or its children, not both")
    at_all(
        is_leaf | ((left > np.arange(n_nodes)) & (left < n_nodes)),
        f"has a left child that is not one of the nodes after it (of {n_nodes} nodes)",
    )
    at_all(is_leaf | (right == left + 1), "has a right child whose id does not follow the left's")
    # Left children, being below n_nodes and each with a sibling behind it, cover the nodes
    # 1..n_nodes-1 exactly if they are 1, 3, 5, ... in some order.
    inner_left = np.sort(left[~is_leaf])
    if not np.array_equal(inner_left, np.arange(1, n_nodes, 2)):
        raise ValueError(
            "Every node but the root must be the child of exactly one node, and siblings "
            "must have the ids 2i - 1 and 2i."
        )


def check_tests(nodes: TreeNodes) -> None:
    """Check kinds, features, thresholds, intervals, levels, directions and oblique terms."""
    kind, feature = nodes.kind, nodes.feature
    at_all(
        (kind >= LEAF) & (kind <= MISSING),
        "has an unknown kind; known are 0 (leaf), 1 (threshold), 2 (interval), 3 (oblique), "
        "4 (levels) and 5 (missing)",
    )
    is_leaf, is_threshold, is_interval = kind == LEAF, kind == THRESHOLD, kind == INTERVAL
    is_oblique = kind == OBLIQUE
    at_all(
        (is_leaf | is_oblique) == (feature == UNDEFINED),
        "has feature -2 though it tests a single feature, or tests none and has another",
    )
    at_all(
        is_leaf | is_oblique | ((feature >= 0) & (feature < nodes.n_features)),
        f"has a feature outside of 0..{nodes.n_features - 1}",
    )
    at_all(~is_leaf | (nodes.threshold == UNDEFINED), "is a leaf with a threshold not -2.0")
    at_all(~is_threshold | np.isfinite(nodes.threshold), "has a threshold that is not finite")
    at_all(
        is_leaf | is_threshold | np.isnan(nodes.threshold),
        "is an interval, levels, missing or oblique node and must have the threshold NaN",
    )
    at_all(
        ~is_interval | (np.isfinite(nodes.lower) & np.isfinite(nodes.upper)),
        "has an interval with an end that is not finite",
    )
    at_all(~is_interval | (nodes.lower <= nodes.upper), "has an interval with lower above upper")
    at_all(
        is_interval | (np.isnan(nodes.lower) & np.isnan(nodes.upper)),
        "is not an interval node and must have NaN for lower and upper",
    )
    ends = np.stack([np.where(is_threshold, nodes.threshold, 0.0), nodes.lower, nodes.upper])
    is_time = _of_columns(nodes, lambda column: column.is_time) > 0
    at_all(
        ~(is_time & (np.abs(ends) > MAX_TIME).any(axis=0)),
        "compares times beyond 2**53 microseconds from 1970",
    )
    _check_oblique(nodes, is_oblique)
    _check_level_tests(nodes)
    _check_missing(nodes)
    _check_beside(nodes, is_threshold, is_interval)


def _of_columns(nodes: TreeNodes, read: Callable[[Column], int]) -> npt.NDArray[Any]:
    """Return what `read` says of the tested column of each node; 0 where there is none."""
    if nodes.column_kinds is None:
        return np.zeros(nodes.n_nodes, dtype=bool)
    of_nodes = [0 if f < 0 else read(nodes.column(f)) for f in nodes.feature.tolist()]
    return np.array(of_nodes)


def _check_level_tests(nodes: TreeNodes) -> None:
    """Check that nodes test levels of columns that have them, by ascending codes."""
    is_levels = nodes.kind == LEVELS
    of_levels = _of_columns(nodes, lambda column: column.has_levels) > 0
    at_all(~is_levels | of_levels, "tests levels of a feature that has none")
    may_test = is_levels | (nodes.kind == MISSING)
    at_all(may_test | ~of_levels, "compares a feature that has levels")
    if nodes.levels_indptr is None or nodes.levels_codes is None:
        at_all(~is_levels, "tests levels, and the tree has no levels_codes")
        return
    indptr, codes = nodes.levels_indptr, nodes.levels_codes
    check_indptr("levels_indptr", indptr, len(codes))
    sizes = np.diff(indptr)
    at_all(is_levels | (sizes == 0), "has levels_codes though it does not test levels")
    at_all(~is_levels | (sizes > 0), "tests levels and has no levels_codes")
    node = np.repeat(np.arange(nodes.n_nodes), sizes)
    n_levels = _of_columns(nodes, lambda column: len(column.levels))
    at_entries(
        nodes,
        node,
        (
            (
                (codes >= 0) & (codes < n_levels[node]),
                "has levels_codes that are none of its feature's levels",
            ),
            (_rises(codes, node), "has levels_codes that do not ascend"),
        ),
    )


def _check_missing(nodes: TreeNodes) -> None:
    """Check the directions of missing cells."""
    kind, goes_left = nodes.kind, nodes.missing_go_to_left
    if goes_left is None:
        at_all(
            (kind != LEVELS) & (kind != MISSING),
            "tests levels or missing cells, and the tree has no missing_go_to_left",
        )
        return
    at_all(kind != OBLIQUE, "is oblique; sums take no missing cells: missing_go_to_left is None")
    at_all((kind != LEAF) | ~goes_left, "is a leaf and must have missing_go_to_left False")
    at_all(
        (kind != MISSING) | goes_left,
        "tests for missing cells and must have missing_go_to_left True",
    )


def _check_beside(nodes: TreeNodes, is_threshold: BoolArray, is_interval: BoolArray) -> None:
    """Check the values beside thresholds and the ends of intervals."""
    cut = np.where(is_interval, nodes.upper, nodes.threshold)
    has_cut, lower = is_threshold | is_interval, nodes.lower
    for values, has_value, where, is_wrong, wrong in (
        (nodes.below, has_cut, "below {} threshold", np.greater, "above"),
        (nodes.above, has_cut, "above {} threshold", np.less_equal, "not"),
        (nodes.below_lower, is_interval, "below {} lower end", np.greater_equal, "not"),
        (nodes.above_lower, is_interval, "above {} lower end", np.less, "below"),
    ):
        if values is None:
            continue
        its, of_none = where.format("its"), where.format("a")
        at_all(~np.isinf(values), f"has a value {its} that is not finite")
        at_all(has_value | np.isnan(values), f"has a value {of_none}, and has none")
        end = lower if has_value is is_interval else cut
        at_all(~(has_value & is_wrong(values, end)), f"has a value {its} that is {wrong}")


def check_indptr(name: str, indptr: IntArray, n_entries: int) -> None:
    """Check that the runs of nodes follow each other from the first entry to the last."""
    if indptr[0] != 0 or indptr[-1] != n_entries or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"The {name} of the tree does not rise from 0 to {n_entries}.")


def _rises(entries: IntArray, node: IntArray) -> BoolArray:
    """Return whether each entry is above the one before it in the same node."""
    rises = np.ones(len(entries), dtype=bool)
    rises[1:] = (entries[1:] > entries[:-1]) | (node[1:] != node[:-1])
    return rises


def at_entries(
    nodes: TreeNodes, node: IntArray, of_entries: Iterable[tuple[BoolArray, str]]
) -> None:
    """Raise ValueError naming the first node with an entry that is wrong."""
    for is_right, complaint in of_entries:
        at_node = np.ones(nodes.n_nodes, dtype=bool)
        at_node[node[~is_right]] = False
        at_all(at_node, complaint)


def _check_oblique(nodes: TreeNodes, is_oblique: BoolArray) -> None:
    if nodes.oblique_arrays is None:
        at_all(~is_oblique, "is oblique, and the tree has no weights (oblique_weights)")
        return
    indptr, indices, weights, bias = nodes.oblique_arrays
    n_terms = len(indices)
    check_indptr("oblique_indptr", indptr, n_terms)
    sizes = np.diff(indptr)
    at_all(is_oblique | (sizes == 0), "has weights though it is not oblique")
    at_all(~is_oblique | (sizes > 0), "is oblique and has no weights")
    at_all(is_oblique | np.isnan(bias), "is not oblique and must have the oblique_bias NaN")
    at_all(~is_oblique | np.isfinite(bias), "has an oblique_bias that is not finite")
    node = np.repeat(np.arange(nodes.n_nodes), sizes)
    at_entries(
        nodes,
        node,
        (
            (
                (indices >= 0) & (indices < nodes.n_features),
                f"has oblique_indices outside of 0..{nodes.n_features - 1}",
            ),
            (_rises(indices, node), "has oblique_indices that do not ascend"),
            (np.isfinite(weights) & (weights != 0), "has an oblique weight that is 0 or no number"),
        ),
    )


def check_statistics(nodes: TreeNodes) -> None:
    """Check the numbers of rows, their weight, the impurities and the mistakes."""
    at_all(nodes.n_node_samples >= 0, "has a negative n_node_samples")
    for name in ("weighted_n_node_samples", "impurity"):
        array = getattr(nodes, name)
        # Kernel costs are below 0 where the kernel is indefinite, or by rounding.
        may_be_negative = name == "impurity" and nodes.move is not None
        at_all(
            np.isfinite(array) & ((array >= 0) | may_be_negative),
            f"has a {name} that is {'' if may_be_negative else 'negative or '}not finite",
        )
    with np.errstate(over="ignore"):
        cost = nodes.impurity * nodes.weighted_n_node_samples
    at_all(np.isfinite(cost), "has an impurity that overflows times its weight")
    at_all(
        np.isnan(nodes.mistakes) | (np.isfinite(nodes.mistakes) & (nodes.mistakes >= 0)),
        "has mistakes that are negative or not finite",
    )


def check_value(nodes: TreeNodes) -> None:
    """Check that the shares of each node are in [0, 1] and sum to 1, or are all 0."""
    shares = nodes.value[:, 0]
    at_all(((shares >= 0) & (shares <= 1)).all(axis=1), "has a value outside of [0, 1]")
    at_all(
        (np.abs(shares.sum(axis=1) - 1) <= 1e-6) | (shares == 0).all(axis=1),
        "has a value whose shares do not sum to 1",
    )


def check_labels(nodes: TreeNodes) -> None:
    """Check the cluster codes, and that exactly the leaves of the base have base codes."""
    k = len(nodes.classes)
    at_all((nodes.cluster >= 0) & (nodes.cluster < k), f"has a cluster code outside of 0..{k - 1}")
    if nodes.n_base_leaves > nodes.n_leaves:
        raise ValueError(
            f"The base tree cannot have n_base_leaves={nodes.n_base_leaves} leaves in a tree "
            f"of {nodes.n_leaves}."
        )
    # The base holds the first nodes; its leaves are leaves still, or were split later.
    n_base_nodes = max(2 * nodes.n_base_leaves - 1, 0)
    is_base_leaf = np.arange(nodes.n_nodes) < n_base_nodes
    is_base_leaf &= (nodes.children_left == NO_CHILD) | (nodes.children_left >= n_base_nodes)
    at_all(
        np.where(
            is_base_leaf,
            (nodes.base_cluster >= 0) & (nodes.base_cluster < k),
            nodes.base_cluster == -1,
        ),
        f"needs a base_cluster in 0..{k - 1} if it is a leaf of the base tree, and -1 if not",
    )


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
    at_all(nodes.kind != INTERVAL, "has a move and an interval test; moves take no intervals")
    at_all(nodes.kind != OBLIQUE, "has a move and an oblique test; moves take no sums")
    at_all(np.isnan(nodes.mistakes), "has mistakes; a tree with moves has no reference")
    if nodes.n_base_leaves:
        raise ValueError("A tree with moves has no base tree: n_base_leaves must be 0.")
    _check_rows(nodes)
    for node, _, path in walk_nodes(nodes):
        if is_leaf[node]:
            continue
        for left in (True, False):
            undos = path.enter(nodes, node, left)
            if not path.admits_rows(int(nodes.feature[node])):
                test = "threshold" if nodes.kind[node] == THRESHOLD else "test"
                raise ValueError(
                    f"Node {node} of the tree has a {test} that all rows reaching it are on one "
                    "side of; a split with a move has rows on both."
                )
            path.leave(undos)
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
