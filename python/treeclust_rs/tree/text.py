"""The printed tree: plain text with box-drawing branches, and a static table for notebooks."""

from __future__ import annotations

import colorsys
import html
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._util.words import format_count
from .conditions import (
    LEAF,
    MAX_TERMS,
    MOVES,
    branch_text,
    is_written_in_full,
)

if TYPE_CHECKING:
    from .cluster_tree import ClusterTree, HasTree

# Branches deeper than this are no longer indented: the output stays linear in the number of nodes.
_MAX_INDENT = 30
# The columns of figures stand right of the longest branch, but not further right than this.
_MAX_LABEL_WIDTH = 88
_MAX_CLUSTER_WIDTH = 24
_MAX_SHARES = 3
_SHARES_TITLE = "rows by reference cluster"
_MAX_HTML_NODES = 200

# Tableau 10: blue, orange, green, red, purple, brown, pink, grey, olive, cyan.
_PALETTE = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd",
    "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
)  # fmt: skip


def cluster_colors(n_clusters: int) -> list[str]:
    """Give each cluster a colour as ``#rrggbb``; beyond ten the hue goes on by the golden angle."""
    colors = list(_PALETTE[:n_clusters])
    for extra in range(n_clusters - len(colors)):
        hue = (0.05 + 0.618034 * extra) % 1.0
        value = (0.80, 0.62, 0.93)[extra % 3]
        channels = colorsys.hsv_to_rgb(hue, 0.62, value)
        colors.append("#" + "".join(f"{round(255 * channel):02x}" for channel in channels))
    return colors


def lighten(color: str, amount: float) -> str:
    """Mix a colour ``#rrggbb`` with white; 1 gives white."""
    channels = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(c + (255 - c) * amount):02x}" for c in channels)


def format_weight(weight: float) -> str:
    """Write a count or a sum of weights: whole numbers in full, others with few digits."""
    if np.isnan(weight):
        return ""
    if weight == round(weight) or weight >= 1000:
        return f"{weight:,.0f}"
    return f"{weight:.3g}"


def format_share(share: float) -> str:
    """Write a share in per cent; only 0 and 1 themselves are written 0 % and 100 %."""
    if share <= 0 or share >= 1:
        return f"{100 * share:.0f} %"
    percent = f"{100 * share:.1f}"
    if percent == "0.0":
        return "<0.1 %"
    return ">99.9 %" if percent == "100.0" else f"{percent} %"


def format_gain(gain: float) -> str:
    """Write a gain with three digits, or as a whole number with separators."""
    if 1000 <= round(gain) < 1_000_000_000:
        return f"{gain:,.0f}"
    return f"{gain:.3g}"


def move_name(tree: ClusterTree, node: int) -> str:
    """Write the move of a split in words; "" at leaves and in trees without moves."""
    if tree.move is None or tree.move[node] < 0:
        return ""
    return MOVES[tree.move[node]].replace("_", " ")


def split_text(tree: ClusterTree, node: int) -> str:
    """Write the move of a split and its gain; "" as `move_name`."""
    if tree.gain is None or tree.kind[node] == LEAF:
        return ""
    return f"{move_name(tree, node)}, gain {format_gain(float(tree.gain[node]))}"


def shares_text(tree: ClusterTree, node: int, max_shares: int = _MAX_SHARES) -> str:
    """Write the reference clusters of a leaf's rows, the largest first; "" if all are its own."""
    shares = tree.value[node, 0]
    order = np.argsort(-shares, kind="stable")
    order = order[shares[order] > 0]
    if len(order) == 0 or (len(order) == 1 and order[0] == tree.leaf_clusters[node]):
        return ""
    # One more is written rather than replaced by "1 more".
    n_shown = len(order) if len(order) <= max_shares + 1 else max_shares
    parts = [
        f"{tree.cluster_name(int(code))}: {format_share(float(shares[code]))}"
        for code in order[:n_shown]
    ]
    if n_shown < len(order):
        parts.append(f"{len(order) - n_shown} others")
    return ", ".join(parts)


def summary_text(tree: ClusterTree) -> str:
    """Write the tree's size in one line."""
    return (
        f"ClusterTree: {format_count(tree.n_leaves, 'leaf', 'leaves')}, "
        f"{format_count(len(tree.classes), 'cluster')}, depth {tree.max_depth:,}, "
        f"{format_count(int(tree.n_node_samples[0]), 'row')}"
    )


class _Line(NamedTuple):
    node: int
    indent: str
    label: str


def _lines(tree: ClusterTree, max_indent: int, max_terms: int = MAX_TERMS) -> Iterator[_Line]:
    """Give one line per node, every node before its children, left before right."""
    left_child, right_child = tree.children_left.tolist(), tree.children_right.tolist()
    # node, depth, indentation of the node itself, indentation of its children, label
    stack = [(0, 0, "", "", "all rows")]
    while stack:
        node, depth, indent, below, label = stack.pop()
        yield _Line(node, indent, label)
        if left_child[node] < 0:
            continue
        depth += 1
        for child, is_left in ((right_child[node], False), (left_child[node], True)):
            text = branch_text(tree, node, is_left, max_terms)
            if depth > max_indent:
                stack.append((child, depth, f"{below}[{depth}] ", below, text))
            else:
                branch, bar = ("├─ ", "│  ") if is_left else ("└─ ", "   ")
                stack.append((child, depth, below + branch, below + bar, text))


def export_text(
    tree: ClusterTree | HasTree, *, max_indent: int = _MAX_INDENT, max_terms: int = MAX_TERMS
) -> str:
    """Write the tree as text, one line per node.

    A line gives the test on the way to the node, its rows, their share of all rows and its
    mistakes; at a leaf also the cluster, and where not all rows are of it, those they are of. In a
    tree with moves every node shows its cluster, in parentheses where it was split, and there the
    move and its gain; there are no mistakes without a reference. Of an oblique test the largest
    weights are written, with three digits: `ClusterTree.rules` has them all.

    Parameters
    ----------
    tree : ClusterTree or fitted estimator
        The tree.
    max_indent : int, default=30
        Nodes deeper than this keep the indentation of this depth and show their depth in brackets
        instead, so that the text grows with the number of nodes and not with its square.
    max_terms : int, default=3
        Number of weights of an oblique test that are written where it has at least two more; the
        number of the others stands behind them.

    Returns
    -------
    str
        Without a line break at the end.

    Examples
    --------
    >>> from treeclust_rs.tree import ClusterTree
    >>> tree = ClusterTree(
    ...     children_left=[1, -1, -1], children_right=[2, -1, -1], feature=[0, -2, -2],
    ...     threshold=[2.5, -2.0, -2.0], lower=[float("nan")] * 3, upper=[float("nan")] * 3,
    ...     kind=[1, 0, 0], impurity=[2.0, 0.0, 1.0], n_node_samples=[10, 4, 6],
    ...     weighted_n_node_samples=[10.0, 4.0, 6.0],
    ...     value=[[[0.5, 0.5]], [[1.0, 0.0]], [[1 / 6, 5 / 6]]], cluster=[0, 0, 1],
    ...     base_cluster=[-1, -1, -1], mistakes=[float("nan"), 0.0, 1.0], n_features=1,
    ...     feature_names=["age"], classes=[0, 1],
    ... )
    >>> print(export_text(tree))
    ClusterTree: 2 leaves, 2 clusters, depth 1, 10 rows
    <BLANKLINE>
                   rows    share  mistakes  cluster  rows by reference cluster
    all rows         10    100 %
    ├─ age <= 2.5     4   40.0 %         0  0
    └─ age > 2.5      6   60.0 %         1  1        1: 83.3 %, 0: 16.7 %
    """
    from .cluster_tree import as_tree  # which imports this module

    tree = as_tree(tree)
    lines = list(_lines(tree, max_indent, max_terms))
    texts = [line.indent + line.label for line in lines]
    width = min(max(map(len, texts)), _MAX_LABEL_WIDTH)
    n_rows = tree.n_node_samples.tolist()
    total = max(n_rows[0], 1)
    nodes = [line.node for line in lines]
    rows = [f"{n_rows[node]:,}" for node in nodes]
    rows_width = max(6, *map(len, rows))
    output = [summary_text(tree), ""]
    output += [
        f"{text:{width}}  {n:>{rows_width}}  {share:>7}  {rest}".rstrip()
        for text, n, share, rest in zip(
            ["", *texts],
            ["rows", *rows],
            ["share", *(format_share(n_rows[node] / total) for node in nodes)],
            _moves_columns(tree, nodes) if tree.move is not None else _label_columns(tree, nodes),
            strict=True,
        )
    ]
    notes = _notes(tree, max_terms)
    if tree.max_depth > max_indent:
        notes.append(f"[d]: depth of the node, where the indentation stops at depth {max_indent}.")
    if notes:
        output += ["", *notes]
    return "\n".join(output)


def _label_columns(tree: ClusterTree, nodes: list[int]) -> list[str]:
    """Write the mistakes, the clusters and their shares; the title first."""
    mistakes = [format_weight(float(tree.mistakes[node])) for node in nodes]
    codes = tree.leaf_clusters[nodes].tolist()
    clusters = [tree.cluster_name(code) if code >= 0 else "" for code in codes]
    shares = [
        shares_text(tree, node) if code >= 0 else ""
        for node, code in zip(nodes, codes, strict=True)
    ]
    mistakes_width = max(8, *map(len, mistakes))
    cluster_width = min(max(7, *map(len, clusters)), _MAX_CLUSTER_WIDTH)
    return [
        f"{wrong:>{mistakes_width}}  {cluster:{cluster_width}}  {parts}"
        for wrong, cluster, parts in zip(
            ["mistakes", *mistakes],
            ["cluster", *clusters],
            [_SHARES_TITLE if any(shares) else "", *shares],
            strict=True,
        )
    ]


def _moves_columns(tree: ClusterTree, nodes: list[int]) -> list[str]:
    """Write the clusters of a tree with moves, the moves and their gains; the title first."""
    assert tree.gain is not None, "a tree with moves has gains"
    clusters = [tree.cluster_name(code) for code in tree.cluster[nodes].tolist()]
    # The clusters stand below each other: a space for the parenthesis where there is none.
    clusters = [
        f" {cluster}" if is_leaf else f"({cluster})"
        for cluster, is_leaf in zip(clusters, (tree.kind[nodes] == LEAF).tolist(), strict=True)
    ]
    moves = [move_name(tree, node) for node in nodes]
    gains = [
        format_gain(gain) if move else ""
        for gain, move in zip(tree.gain[nodes].tolist(), moves, strict=True)
    ]
    has_splits = any(moves)
    cluster_width = min(max(8, *map(len, clusters)), _MAX_CLUSTER_WIDTH)
    move_width, gain_width = max(5, *map(len, moves)), max(4, *map(len, gains))
    return [
        f"{cluster:{cluster_width}}  {move:{move_width}}  {gain:>{gain_width}}"
        for cluster, move, gain in zip(
            [" cluster", *clusters],
            ["split" if has_splits else "", *moves],
            ["gain" if has_splits else "", *gains],
            strict=True,
        )
    ]


_MOVE_NOTES = (
    "one side becomes a new cluster",
    "both sides become new clusters",
    "one side joins another cluster",
    "both sides join other clusters",
    "one side becomes a new cluster, the other joins another one",
)


def _notes(tree: ClusterTree, max_terms: int = MAX_TERMS) -> list[str]:
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
        notes = [
            "mistakes: at a leaf, rows whose reference cluster is another one; at a split of the "
            "base",
            "tree, rows that the cut separates from their center.",
        ]
    if not is_written_in_full(tree, max_terms):
        notes.append(
            "Sums: the largest weights first, to three digits; tree.rules() has them all, exactly."
        )
    return notes


_HTML_CELL = "padding:1px 10px;text-align:right;white-space:nowrap"
_HTML_TEXT = "padding:1px 10px;text-align:left;white-space:pre;font-family:monospace"


def export_html(tree: ClusterTree, *, max_nodes: int = _MAX_HTML_NODES) -> str:
    """Write the tree as a static HTML table, with no scripts and nothing to load.

    Parameters
    ----------
    tree : ClusterTree
        The tree.
    max_nodes : int, default=200
        Of larger trees only the first nodes are written, with a note that says so.

    Returns
    -------
    str
    """
    colors = cluster_colors(len(tree.classes))
    total = max(int(tree.n_node_samples[0]), 1)
    titles = [("node", True), ("rows", False), ("share", False)]
    if tree.move is None:
        titles += [("mistakes", False), ("cluster", True), (_SHARES_TITLE, True)]
    else:
        titles += [("cluster", True), ("split", True), ("gain", False)]
    body = []
    for n_written, line in enumerate(_lines(tree, _MAX_INDENT)):
        if n_written == max_nodes:
            break
        node = line.node
        n_rows = int(tree.n_node_samples[node])
        is_leaf = tree.kind[node] == LEAF
        cluster = ""
        if is_leaf or tree.move is not None:
            code = int(tree.leaf_clusters[node] if is_leaf else tree.cluster[node])
            cluster = cluster_html(tree.cluster_name(code), colors[code], is_leaf)
        row = [html.escape(line.indent + line.label), f"{n_rows:,}"]
        row.append(html.escape(format_share(n_rows / total)))
        if tree.move is None or tree.gain is None:
            shares = html.escape(shares_text(tree, node)) if is_leaf else ""
            row += [format_weight(float(tree.mistakes[node])), cluster, shares]
        else:
            gain = "" if is_leaf else format_gain(float(tree.gain[node]))
            row += [cluster, move_name(tree, node), gain]
        body.append(row)
    notes = _notes(tree)
    if tree.n_nodes > max_nodes:
        notes.append(
            f"The first {max_nodes:,} of {tree.n_nodes:,} nodes: print(tree) writes them all, "
            "tree.truncate(m) gives the tree of m leaves."
        )
    return html_table(summary_text(tree), titles, body, notes)


def cluster_html(name: str, color: str, filled: bool = True) -> str:
    """Write a cluster beside a square of its color; one that is not filled in parentheses."""
    square, text = ("&#9632;", name) if filled else ("&#9633;", f"({name})")
    return f'<span style="color:{color}">{square}</span> {html.escape(text)}'


def html_table(
    head: str, titles: list[tuple[str, bool]], rows: list[list[str]], notes: list[str]
) -> str:
    """Write a static HTML table.

    `titles`: of the columns, and whether they are text, not numbers. The cells and titles are HTML;
    head and notes are plain text.
    """
    styles = [_HTML_TEXT if is_text else _HTML_CELL for _, is_text in titles]

    def line(tag: str, cells: Iterable[str]) -> str:
        return "".join(
            f'<{tag} style="{style}">{cell}</{tag}>'
            for style, cell in zip(styles, cells, strict=True)
        )

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    foot = f'<p style="margin:4px 10px">{html.escape(" ".join(notes))}</p>' if notes else ""
    return (
        f'<div><p style="margin:4px 10px"><b>{html.escape(head)}</b></p>'
        '<table style="border-collapse:collapse">'
        f"<thead><tr>{line('th', (title for title, _ in titles))}</tr></thead>"
        f"<tbody>{body}</tbody></table>{foot}</div>"
    )
