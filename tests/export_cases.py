"""Random models with rows as databases and libraries hold them, and what `predict` says of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

import mixed_trees
from treeclust_rs.tree import ClusterTree
from trees import random_mixed, random_tree

# What a name can do to a language that writes it carelessly.
ODD_NAMES = (
    'a "b" --',
    "it's",
    "select",
    "<script>alert(1)</script>",
    "größe; DROP TABLE x",
    "x`y\\",
    "a.b[0]",
    "%s {0} ?1 :name",
)
ODD_LABELS = ("it's \\' OR 1", 'größe\n"x" /*', "<b> -- '")
# The ends of floats and of what is exact in them, and values that no short decimal is.
EXTREMES = (0.0, -0.0, 5e-324, -5e-324, 1e300, -1.7976931348623157e308, 2.0**53 + 2, 0.1, 1 / 3)


class Case(NamedTuple):
    tree: ClusterTree
    frame: pl.DataFrame
    labels: list[int] | list[str] | list[int | None]
    """None where the tree refuses a missing cell."""


def random_case(seed: int, n_rows: int = 200) -> Case:
    """Return a random model of one of four kinds with rows, many of them exactly on its tests."""
    rng = np.random.default_rng(seed)
    if seed % 4 == 3:
        return _mixed_case(seed, n_rows, rng)
    if seed % 4 == 2:
        tree, cells = random_mixed(seed, 8, n_features=4, grid=5 * (seed % 3))
    else:
        tree, cells = random_tree(seed, 12, n_features=4, intervals=True, grid=6 * (seed % 3))
    changes: dict[str, object] = {}
    if seed % 4 == 1:
        directions = rng.integers(0, 2, tree.n_nodes).astype(bool) & (tree.kind != 0)
        changes = {"missing_go_to_left": directions}
    tree = renamed(tree, rng, **changes)
    cells = cells[rng.integers(0, len(cells), n_rows)]
    if tree.oblique_indptr is None:
        at = rng.random(cells.shape) < 0.1
        cells[at] = rng.choice(EXTREMES, at.sum())
        thresholds = tree.threshold[tree.kind == 1]
        if len(thresholds):
            cells[::7, :] = rng.choice(thresholds, cells[::7, :].shape)
    cells[rng.random(cells.shape) < 0.1] = np.nan
    columns = {}
    for name, column in zip(tree.feature_names or (), cells.T, strict=True):
        series = pl.Series(column, nan_to_null=bool(rng.integers(2)))
        if rng.random() < 0.3 and np.abs(column[~np.isnan(column)]).max(initial=0) < 1e30:
            series = series.cast(pl.Float32)
        elif (column == np.rint(column)).all() and np.abs(column).max() < 2**62:
            series = series.cast(pl.Int64)
        columns[name] = series
        column[:] = series.cast(pl.Float64).fill_null(np.nan).to_numpy()
    return Case(tree, pl.DataFrame(columns), _labels(tree, cells))


def _mixed_case(seed: int, n_rows: int, rng: np.random.Generator) -> Case:
    cells = mixed_trees.random_cells(np.random.default_rng(2000 + seed), n_rows)
    tree = renamed(mixed_trees.random_tree(seed), rng)
    frame = mixed_trees.frame_of(cells, rng)
    frame.columns = list(tree.feature_names or ())
    return Case(tree, frame, _labels(tree, cells))


def renamed(tree: ClusterTree, rng: np.random.Generator, **changes: object) -> ClusterTree:
    """Return the tree with odd names of columns and, half of the times, odd labels."""
    names = ODD_NAMES[: tree.n_features]
    classes = ODD_LABELS if rng.integers(2) else (7, -3, 2**40)
    changes = {"feature_names": names, "classes": classes[: len(tree.classes)]} | changes
    return ClusterTree(**tree.arguments() | changes)


def _labels(tree: ClusterTree, cells: np.ndarray) -> list:
    refused = np.zeros(len(cells), dtype=bool)
    if tree.missing_go_to_left is None:
        refused = np.isnan(cells[:, tree.tested_features]).any(axis=1)
    labels = np.full(len(cells), None, dtype=object)
    if not refused.all():
        labels[~refused] = tree.predict(cells[~refused]).tolist()
    return labels.tolist()
