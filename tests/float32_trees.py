"""Random trees of every kind, and rows of float32 on, beside and far from their thresholds."""

from __future__ import annotations

import numpy as np
import polars as pl

import mixed_trees
import trees
from export_cases import renamed
from treeclust_rs.tree import ClusterTree

_MAX = np.finfo(np.float32).max
_EXTREMES = np.array([-_MAX, _MAX, 0.0, -0.0, 1e-45, -1e-45, 1e30], dtype=np.float32)


def float32_rows(
    tree: ClusterTree, cells: np.ndarray, rng: np.random.Generator, *, gaps: bool
) -> np.ndarray:
    """Return rows of float32: the cells, ends of tests, their neighbours, extremes, perhaps NaN."""
    rows = cells.astype(np.float32)
    ends = np.concatenate([tree.threshold, tree.lower, tree.upper])
    ends = ends[np.isfinite(ends)].astype(np.float32)
    up, down = (np.nextafter(ends, np.float32(side)) for side in (np.inf, -np.inf))
    values = np.concatenate([ends, up, down, _EXTREMES, *([np.float32([np.nan])] * gaps)])
    drawn = rng.random(rows.shape) < 0.5
    rows[drawn] = rng.choice(values, int(drawn.sum()))
    return rows


def numeric_case(seed: int) -> tuple[ClusterTree, np.ndarray]:
    """Return a tree of thresholds, intervals and perhaps tests for missing cells, and its rows."""
    rng = np.random.default_rng(seed)
    if seed % 3 == 2:
        builder = mixed_trees.random_builder(seed, kinds="tim")
        names = [" a", 'b "quoted"', "<script>", "select", "größe", "*", "", "a\x00b"]
        tree = builder.tree(column_kinds=None, levels=None, feature_names=names)
        return tree, float32_rows(tree, builder.X, rng, gaps=True)
    tree, X = trees.random_tree(
        seed, int(rng.integers(1, 16)), intervals=seed % 2 == 0, grid=4 * (seed % 3)
    )
    return tree, float32_rows(tree, X, rng, gaps=False)


def oblique_case(seed: int) -> tuple[ClusterTree, np.ndarray]:
    """Return a tree of sums, thresholds and intervals, and its rows."""
    tree, X = trees.random_mixed(seed, seed % 9 + 2, grid=5 * (seed % 2))
    rows = X.astype(np.float32)
    return tree, rows


def mixed_case(seed: int) -> tuple[ClusterTree, np.ndarray, pl.DataFrame]:
    """Return a tree of levels, flags, times and numbers, its rows, and these as a frame.

    A third of them has odd names and labels.
    """
    rng = np.random.default_rng(3000 + seed)
    tree = mixed_trees.random_tree(seed)
    cells = mixed_trees.random_cells(rng, 200)
    frame = mixed_trees.frame_of(cells, rng, unit="ns" if seed % 2 else "us")
    if seed % 3 == 1:
        tree = renamed(tree, rng)
        frame.columns = list(tree.feature_names or ())
    return tree, cells, frame
