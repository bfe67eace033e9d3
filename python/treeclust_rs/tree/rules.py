"""The tree as one rule per leaf."""

from __future__ import annotations

import sys

import numpy as np
import polars as pl

from .nodes import MOVES, OBLIQUE, TreeNodes
from .paths import walk_leaves
from .words import rule_text

# A rule repeats the weights of all oblique tests above its leaf.
_MAX_RULE_TERMS = 2_000_000


def leaf_rules(tree: TreeNodes, max_terms: int | None) -> pl.DataFrame:
    """Return the frame of `ClusterTree.rules`."""
    if tree.oblique_indptr is not None:
        _check_rule_terms(tree, max_terms)
    leaves: list[int] = []
    rules: list[str] = []
    scores: dict[int, str] = {}
    for leaf, _, path in walk_leaves(tree):
        leaves.append(leaf)
        rules.append(rule_text(tree, path.conditions(), max_terms, scores))
    codes = tree.leaf_clusters[leaves]
    is_empty = (tree.value[leaves, 0] == 0).all(axis=1)
    purity = np.where(is_empty, np.nan, tree.value[leaves, 0, codes])
    n_rows = tree.n_node_samples[leaves]
    label_type = pl.String if isinstance(tree.classes[0], str) else pl.Int64
    frame = pl.DataFrame(
        {
            "cluster": pl.Series([tree.classes[code] for code in codes], dtype=label_type),
            "rule": rules,
            "n": n_rows,
            "share": n_rows / max(int(tree.n_node_samples[0]), 1),
            "purity": pl.Series(purity).fill_nan(None),
            "depth": tree.node_depth[leaves],
        }
    )
    if tree.move is None:
        return frame
    parents = [node for node in tree.parent[leaves].tolist() if node >= 0]
    names = [MOVES[tree.move[node]] for node in parents]
    origins = [tree.classes[tree.cluster[node]] for node in parents]
    # Only a tree of one leaf has a leaf without a parent.
    return frame.drop("purity").with_columns(
        pl.Series("move", names or [None], dtype=pl.String),
        pl.Series("from_cluster", origins or [None], dtype=label_type),
    )


def _check_rule_terms(tree: TreeNodes, max_terms: int | None) -> None:
    """Raise ValueError if the rules of all leaves together are too long to write."""
    most = sys.maxsize if max_terms is None else max_terms + 1
    own = np.where(tree.kind == OBLIQUE, np.minimum(tree.n_node_features, most), 0).tolist()
    parents = tree.parent.tolist()
    above = [0] * tree.n_nodes
    for node in range(1, tree.n_nodes):
        above[node] = above[parents[node]] + own[parents[node]]
    n_terms = sum(above[leaf] for leaf in tree.leaves.tolist())
    if n_terms > _MAX_RULE_TERMS:
        raise ValueError(
            f"The rules of this tree would have {n_terms:,} weights, those of the oblique "
            f"tests above every leaf (at most {_MAX_RULE_TERMS:,}). Use print(tree), "
            "rules(max_terms=...) or a smaller tree by truncate(m)."
        )
