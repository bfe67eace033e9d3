"""Trees in model files: lists and numbers; everything that is read is checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._util import FloatArray, check_keys, check_list, documented, float_array, int_array
from .._util.model_json import json_name
from ..tree import FLOAT_ARRAYS, INT_ARRAYS, ClusterTree, HasTree, as_tree
from ..tree.nodes import (
    BESIDE_ARRAYS,
    COLUMN_ARGUMENTS,
    DIRECTIONS,
    FEATURE_SCALE,
    LEVEL_ARRAYS,
    MOVE_ARRAYS,
    OBLIQUE_ARRAYS,
)

_SIZES = ("n_features", "feature_names", "classes", "n_base_leaves")
_TREE_KEYS = (*_SIZES, *INT_ARRAYS, *FLOAT_ARRAYS, "value")
# Null where the tree does not know; files from before they were added lack them.
_NULL_IF_UNKNOWN = (DIRECTIONS, *BESIDE_ARRAYS, *COLUMN_ARGUMENTS)
_OPTIONAL_KEYS = (*MOVE_ARRAYS, *OBLIQUE_ARRAYS, FEATURE_SCALE, *LEVEL_ARRAYS, *_NULL_IF_UNKNOWN)


@documented
def tree_to_dict(tree: ClusterTree | HasTree) -> dict[str, Any]:
    """Return a tree as lists and numbers, with None for NaN.

    %(tree_in)s

    Returns
    -------
    dict
        The arguments of `ClusterTree`; `value` without its middle axis. `move` and `gain`, the
        oblique arrays and those of levels only if the tree has them.
    """
    tree = as_tree(tree)
    content: dict[str, Any] = {
        "n_features": tree.n_features,
        "feature_names": None if tree.feature_names is None else list(tree.feature_names),
        "classes": list(tree.classes),
        "n_base_leaves": tree.n_base_leaves,
    }
    for name in INT_ARRAYS:
        content[name] = getattr(tree, name).tolist()
    for name in FLOAT_ARRAYS:
        content[name] = _with_null(getattr(tree, name))
    content["value"] = tree.value[:, 0].tolist()
    for name in (*MOVE_ARRAYS, *OBLIQUE_ARRAYS, FEATURE_SCALE, *LEVEL_ARRAYS):
        array = getattr(tree, name)
        if array is not None:
            content[name] = _with_null(array) if array.dtype.kind == "f" else array.tolist()
    goes_left = tree.missing_go_to_left
    content[DIRECTIONS] = None if goes_left is None else goes_left.tolist()
    for name in BESIDE_ARRAYS:
        values = getattr(tree, name)
        content[name] = None if values is None else _with_null(values)
    for name in COLUMN_ARGUMENTS:
        entries = getattr(tree, name)
        content[name] = None if entries is None else list(entries)
    if tree.levels is not None:
        content["levels"] = [None if own is None else list(own) for own in tree.levels]
    return content


def _with_null(array: FloatArray) -> list[float | None]:
    return [None if math.isnan(number) else number for number in array.tolist()]


def tree_from_dict(content: object) -> ClusterTree:
    """Build the tree that `tree_to_dict` wrote.

    Parameters
    ----------
    content : dict
        As read from a model file; every part is checked.

    Returns
    -------
    ClusterTree

    Raises
    ------
    ValueError
        If a key is missing or unknown, a value has the wrong type or length, a number is out of
        range, or the arrays are not a tree.
    """
    where = "The tree of the model file"
    tree = check_keys(content, _TREE_KEYS, where, _OPTIONAL_KEYS)
    for name in ("n_features", "n_base_leaves"):
        if type(tree[name]) is not int:
            raise ValueError(
                f"{name} in the model file must be an integer, not {json_name(tree[name])}."
            )
    if tree["feature_names"] is not None:
        check_list(tree["feature_names"], "feature_names", {str})
    check_list(tree["classes"], "classes", {int, str})
    n_nodes = len(check_list(tree["children_left"], "children_left", {int}))
    arguments: dict[str, Any] = {name: tree[name] for name in _SIZES}
    for name in INT_ARRAYS:
        arguments[name] = int_array(tree[name], name, n_nodes)
    for name in FLOAT_ARRAYS:
        arguments[name] = float_array(tree[name], name, (n_nodes,), null=True)
    if "move" in tree:
        arguments["move"] = int_array(tree["move"], "move", n_nodes)
    if "gain" in tree:
        arguments["gain"] = float_array(tree["gain"], "gain", (n_nodes,), null=True)
    if any(name in tree for name in OBLIQUE_ARRAYS):
        missing = [name for name in OBLIQUE_ARRAYS if name not in tree]
        if missing:
            raise ValueError(f"{where} lacks {missing[0]!r}, but has other oblique arrays.")
        arguments["oblique_indptr"] = int_array(
            tree["oblique_indptr"], "oblique_indptr", n_nodes + 1
        )
        arguments["oblique_indices"] = int_array(tree["oblique_indices"], "oblique_indices", None)
        n_terms = len(arguments["oblique_indices"])
        for name, size in (("oblique_weights", n_terms), ("oblique_bias", n_nodes)):
            arguments[name] = float_array(tree[name], name, (size,), null=name == "oblique_bias")
    if FEATURE_SCALE in tree:
        arguments[FEATURE_SCALE] = float_array(
            tree[FEATURE_SCALE], FEATURE_SCALE, (tree["n_features"],)
        )
    arguments |= _levels_from(tree, n_nodes)
    value = float_array(tree["value"], "value", (n_nodes, len(tree["classes"])))
    return ClusterTree(**arguments, value=value[:, np.newaxis, :])


def _levels_from(tree: dict[str, Any], n_nodes: int) -> dict[str, Any]:
    """Return the arguments of levels, directions and kinds of columns."""
    arguments: dict[str, Any] = {}
    if any(name in tree for name in LEVEL_ARRAYS):
        missing = [name for name in LEVEL_ARRAYS if name not in tree]
        if missing:
            raise ValueError(f"The tree of the model file lacks {missing[0]!r}.")
        for name, length in zip(LEVEL_ARRAYS, (n_nodes + 1, None), strict=True):
            arguments[name] = int_array(tree[name], name, length)
    known = {name: tree[name] for name in _NULL_IF_UNKNOWN if tree.get(name) is not None}
    types: dict[str, set[type]] = {
        DIRECTIONS: {bool},
        "has_missing": {bool},
        "column_kinds": {str},
        "levels": {list, type(None)},
    }
    for name, entries in known.items():
        if name in BESIDE_ARRAYS:
            arguments[name] = float_array(entries, name, (n_nodes,), null=True)
            continue
        n_entries = n_nodes if name == DIRECTIONS else tree["n_features"]
        arguments[name] = check_list(entries, name, types[name], n_entries)
    for own in known.get("levels", ()):
        if own is not None:
            check_list(own, "levels", {str})
    return arguments
