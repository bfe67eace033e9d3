"""The printed tree, one line per node with box-drawing branches, and the rules of its leaves."""

import sys
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from .._util.words import format_share, tested_name
from . import words
from .nodes import LEAF, MOVES, OBLIQUE, TreeNodes
from .paths import walk_leaves
from .words import MAX_TERMS, summary_text

# Deeper branches keep this indentation: the output stays linear in the number of nodes.
MAX_INDENT = 30
SHARES_TITLE = "rows by reference cluster"
# Longer branches stick out to the left of the columns of figures.
_MAX_LABEL_WIDTH = 88
_MAX_CLUSTER_WIDTH = 24


class TreeLine(NamedTuple):
    """The line of one node: its branch, indented."""

    node: int
    indent: str
    label: str


def tree_lines(
    tree: TreeNodes,
    max_indent: int = MAX_INDENT,
    max_terms: int = MAX_TERMS,
    *,
    shares: bool = False,
) -> Iterator[TreeLine]:
    """Yield one line per node, every node before its children, left before right."""
    left_child, right_child = tree.children_left.tolist(), tree.children_right.tolist()
    # node, depth, indentation of the node itself, indentation of its children, label
    stack = [(0, 0, "", "", "all rows")]
    while stack:
        node, depth, indent, below, label = stack.pop()
        yield TreeLine(node, indent, label)
        if left_child[node] < 0:
            continue
        depth += 1
        for child, is_left in ((right_child[node], False), (left_child[node], True)):
            text = words.branch_text(tree, node, is_left, max_terms, shares=shares)
            if depth > max_indent:
                stack.append((child, depth, f"{below}[{depth}] ", below, text))
            else:
                branch, bar = ("├─ ", "│  ") if is_left else ("└─ ", "   ")
                stack.append((child, depth, below + branch, below + bar, text))


def tree_text(
    tree: TreeNodes,
    *,
    max_indent: int = MAX_INDENT,
    max_terms: int = MAX_TERMS,
    shares: bool = False,
) -> str:
    """Return the tree as text; `treeclust_rs.export.export_text` documents the parameters."""
    lines = list(tree_lines(tree, max_indent, max_terms, shares=shares))
    texts = [line.indent + line.label for line in lines]
    n_rows = tree.n_node_samples.tolist()
    total = max(n_rows[0], 1)
    nodes = [line.node for line in lines]
    columns = [
        _column("", texts, "<", 0, _MAX_LABEL_WIDTH),
        _column("rows", [f"{n_rows[node]:,}" for node in nodes], ">", 6),
        _column("share", [format_share(n_rows[node] / total) for node in nodes], ">", 7),
        *(_label_columns(tree, nodes) if tree.move is None else _move_columns(tree, nodes)),
    ]
    output = [summary_text(tree), ""]
    output += ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    notes = notes_of(tree, max_terms)
    if shares and tree.oblique_indptr is not None:
        notes.append("(%): shares of a sum's terms, |weight| x standard deviation of the column.")
    if tree.max_depth > max_indent:
        notes.append(f"[d]: depth of the node, where the indentation stops at depth {max_indent}.")
    if notes:
        output += ["", *notes]
    return "\n".join(output)


def _column(
    title: str, cells: list[str], align: str, min_width: int, max_width: int = sys.maxsize
) -> list[str]:
    """Return the title and the cells, padded to the width of the longest cell in the limits."""
    width = min(max(min_width, *map(len, cells)), max_width)
    return [f"{cell:{align}{width}}" for cell in (title, *cells)]


def _label_columns(tree: TreeNodes, nodes: list[int]) -> list[list[str]]:
    """Return the columns of mistakes, clusters and shares."""
    codes = tree.leaf_clusters[nodes].tolist()
    clusters = [tree.cluster_name(code) if code >= 0 else "" for code in codes]
    shares = [
        words.shares_text(tree, node) if code >= 0 else ""
        for node, code in zip(nodes, codes, strict=True)
    ]
    mistakes = [words.format_weight(m) for m in tree.mistakes[nodes].tolist()]
    return [
        _column("mistakes", mistakes, ">", 8),
        _column("cluster", clusters, "<", 7, _MAX_CLUSTER_WIDTH),
        [SHARES_TITLE if any(shares) else "", *shares],
    ]


def _move_columns(tree: TreeNodes, nodes: list[int]) -> list[list[str]]:
    """Return the columns of clusters, moves and gains of a tree with moves."""
    assert tree.gain is not None, "a tree with moves has gains"
    names = [tree.cluster_name(code) for code in tree.cluster[nodes].tolist()]
    moves = [words.move_name(tree, node) for node in nodes]
    # Clusters are aligned: a space stands for the parenthesis where there is none.
    clusters = [f"({n})" if move else f" {n}" for n, move in zip(names, moves, strict=True)]
    gains = [
        words.format_gain(gain) if move else ""
        for gain, move in zip(tree.gain[nodes].tolist(), moves, strict=True)
    ]
    has_splits = any(moves)
    return [
        _column(" cluster", clusters, "<", 8, _MAX_CLUSTER_WIDTH),
        _column("split" if has_splits else "", moves, "<", 5),
        _column("gain" if has_splits else "", gains, ">", 4),
    ]


_MOVE_NOTES = (
    "one side becomes a new cluster",
    "both sides become new clusters",
    "one side joins another cluster",
    "both sides join other clusters",
    "one side becomes a new cluster, the other joins another one",
)


# By whether the tree knows the standard deviations of the columns.
_SUM_NOTES = (
    ("Sums: the largest weights first, to three digits; tree.rules() has them all, exactly.",),
    (
        "Sums: the largest shares (|weight| x standard deviation of the column) first, to three",
        "digits; tree.rules() has them all, exactly.",
    ),
)


def notes_of(tree: TreeNodes, max_terms: int = MAX_TERMS) -> list[str]:
    """Return the lines that explain the columns."""
    if tree.move is not None:
        if tree.n_leaves == 1:
            return []
        used = np.unique(tree.move[tree.move >= 0]).tolist()
        return [
            "(cluster): the one a node had before its split. gain: what the split adds to the "
            "objective.",
            *(f"{MOVES[code].replace('_', ' ')}: {_MOVE_NOTES[code]}." for code in used),
        ]
    notes = []
    if np.isfinite(tree.mistakes[tree.kind != LEAF]).any():
        rows = "the weight of rows" if tree.is_weighted else "rows"
        notes = [
            f"mistakes: at a leaf, {rows} whose reference cluster is another one; at a split of "
            "the base",
            f"tree, {rows} that the cut separates from their center.",
        ]
    notes += notes_of_clusters(tree)
    if not words.is_written_in_full(tree, max_terms):
        notes += [*_SUM_NOTES[tree.feature_scale is not None]]
    return notes


def notes_of_clusters(tree: TreeNodes) -> list[str]:
    """Return the line on leaves whose cluster is not that of most rows, if there are any."""
    leaves = tree.leaves
    shares = tree.value[leaves, 0]
    own = shares[np.arange(len(leaves)), tree.leaf_clusters[leaves]]
    if tree.move is not None or (own >= shares.max(axis=1)).all():
        return []
    return [
        "cluster: chosen by the centers, not by counting: in some leaves more rows are of another.",
    ]


# A rule repeats the weights of all oblique tests above its leaf.
_MAX_RULE_TERMS = 2_000_000


def leaf_rules(tree: TreeNodes, max_terms: int | None) -> pl.DataFrame:
    """Return the frame of `ClusterTree.rules`."""
    if tree.oblique_indptr is not None:
        _check_rule_terms(tree, max_terms)
    leaves: list[int] = []
    rules: list[str] = []
    scores: dict[int, str] = {}
    name = partial(tested_name, tree.feature_names)  # whole, where texts shorten it
    for leaf, _, path in walk_leaves(tree):
        leaves.append(leaf)
        rules.append(words.rule_text(name, path.conditions(), max_terms, scores))
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
