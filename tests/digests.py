"""Digests of fitted models, part by part: structure, labels, costs, files, text.

Two models with the same digests have the same bits: floats are compared as they are stored, all NaN
being one. `test_digests.py` compares fits with digests kept in `data/digests.json`, and
`benches/snapshot.py` some 600 models of one version of the package with those of another.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import treeclust_rs as tc

PARTS = ("structure", "labels", "costs", "files", "text")

TREE_STRUCTURE = (
    "children_left",
    "children_right",
    "kind",
    "feature",
    "threshold",
    "lower",
    "upper",
    "oblique_indptr",
    "oblique_indices",
    "oblique_weights",
    "oblique_bias",
    "cluster",
    "base_cluster",
    "move",
    "n_node_samples",
    "n_features",
    "n_base_leaves",
    "feature_names",
)
MODEL_COSTS = (
    "inertia_",
    "reference_inertia_",
    "kernel_cost_",
    "reference_kernel_cost_",
    "cost_path_",
    "objective_",
    "objective_path_",
    "mu_path_",
    "gains_",
    "cluster_centers_",
    "feature_importances_",
    "scale_",
)
TREE_COSTS = ("impurity", "weighted_n_node_samples", "value", "mistakes", "gain")


def digest(value: Any) -> str:
    """Return a short text that is equal for equal values only.

    Parameters
    ----------
    value
        Numbers, texts, None, arrays, polars frames, dataclasses, and lists, tuples and mappings of
        these. Single floats are written in full, as hexadecimal numbers.

    Returns
    -------
    str
    """
    if isinstance(value, float):
        return float(value).hex()
    state = hashlib.sha256()
    _update(state, value)
    return state.hexdigest()[:16]


def _update(state: Any, value: Any) -> None:
    if isinstance(value, pl.Series):
        value = value.to_numpy()
    if isinstance(value, np.ndarray) and value.dtype != object:
        if value.dtype.kind == "f":
            value = np.where(np.isnan(value), value.dtype.type(np.nan), value)
        state.update(f"{value.dtype.str}{value.shape}".encode())
        state.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, pl.DataFrame):
        state.update(f"frame{value.schema}".encode())
        for name in value.columns:
            _update(state, value[name].to_list())
    elif isinstance(value, dict):
        _update(state, [[str(key), value[key]] for key in value])
    elif isinstance(value, list | tuple | np.ndarray):
        state.update(f"[{len(value)}".encode())
        for item in value:
            _update(state, item)
    elif isinstance(value, float | np.floating):
        state.update(f"float {float(value).hex()}".encode())
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            _update(state, [field.name, getattr(value, field.name)])
    elif value is None or isinstance(value, str | int | np.integer | np.bool_):
        state.update(f"{type(value).__name__} {value}".encode())
    else:
        raise TypeError(f"A {type(value).__name__} has no digest.")


def tree_digests(tree: tc.ClusterTree) -> dict[str, dict[str, str]]:
    """Return the digests of the arrays of a tree: its structure, classes and costs."""
    return {
        "structure": {
            f"tree.{name}": digest(getattr(tree, name))
            for name in TREE_STRUCTURE
            if getattr(tree, name) is not None
        },
        "labels": {"tree.classes": digest(list(tree.classes))},
        "costs": {
            f"tree.{name}": digest(getattr(tree, name))
            for name in TREE_COSTS
            if getattr(tree, name) is not None
        },
    }


def saved_text(model: Any) -> str:
    """Return what `save` writes."""
    handle, name = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    try:
        model.save(name)
        return Path(name).read_text(encoding="utf-8")
    finally:
        Path(name).unlink()


def given_reference_digests(model: Any, X: Any, new: Any) -> dict[str, dict[str, str]]:
    """Return the digests that `data/digests.json` keeps of one fitted tree.

    Parameters
    ----------
    model
        A fitted estimator with a tree.
    X, new
        The rows of the fit, and others.

    Returns
    -------
    dict
        Digests by part and item; the parts are the first four of `PARTS`.
    """
    parts = tree_digests(model.tree_)
    parts["labels"] |= {
        "labels_": digest(model.labels_),
        "classes_": digest(model.classes_),
        "predict": digest(model.predict(new)),
        "apply": digest(model.apply(X)),
    }
    for name in MODEL_COSTS:
        if hasattr(model, name) and getattr(model, name) is not None:
            parts["costs"][name] = digest(getattr(model, name))
    parts["files"] = {"save": digest(saved_text(model))}
    return parts
