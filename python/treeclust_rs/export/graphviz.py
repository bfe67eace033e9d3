"""The tree in the DOT language of Graphviz: text, for which no package is needed."""

from __future__ import annotations

from .._util import documented, format_count
from ..tree import (
    LEAF,
    ClusterTree,
    HasTree,
    as_tree,
    branch_lines,
    cluster_colors,
    format_share,
    lighten,
    split_text,
)
from ..tree.words import branch_answer, format_weight, shares_text

# Oblique tests are broken into lines of so many characters.
_LINE_WIDTH = 40


@documented
def to_graphviz(tree: ClusterTree | HasTree, *, shares: bool = False) -> str:
    """Return the tree as a DOT graph, for ``dot -Tsvg`` or the graphviz package.

    %(tree_in)s
    shares : bool, default=False
        Whether to write the share of each term of an oblique test behind it: |weight| x standard
        deviation of the column among the rows of the fit, of the sum over the test's terms.

    Returns
    -------
    str
        Inner nodes show their test, leaves their cluster, in its colour, and all their rows; the
        left branch is that of rows that pass the test. Of oblique tests the terms of the
        largest shares are written, with three digits. In a tree with moves inner nodes also
        show the cluster they had before their split, in the colour of its frame, the move and its
        gain.

    Raises
    ------
    ValueError
        If `shares` is True and the tree has oblique tests, but not the standard deviations.
    """
    tree = as_tree(tree)
    colors = cluster_colors(len(tree.classes))
    total = max(int(tree.n_node_samples[0]), 1)
    lines = [
        "digraph ClusterTree {",
        "  graph [ordering=out];",
        '  node [shape=box, style="rounded,filled", fillcolor="#ffffff", color="#555555"];',
        '  node [fontname="Helvetica"];',
        '  edge [color="#555555", fontname="Helvetica", fontsize=10];',
    ]
    for node in range(tree.n_nodes):
        n_rows = int(tree.n_node_samples[node])
        rows = f"{format_count(n_rows, 'row')} ({format_share(n_rows / total)})"
        if tree.kind[node] == LEAF:
            code = int(tree.leaf_clusters[node])
            text = [f"cluster {tree.cluster_name(code)}", rows]
            reference = shares_text(tree, node)
            if reference:
                text.append(reference)
            color = colors[code]
            style = f', fillcolor="{lighten(color, 0.75)}", color="{color}"'
        else:
            text = [*branch_lines(tree, node, True, _LINE_WIDTH, shares=shares), rows]
            mistakes = format_weight(float(tree.mistakes[node]))
            if mistakes:
                text.append(f"mistakes of the cut: {mistakes}")
            style = ""
            if tree.move is not None:
                code = int(tree.cluster[node])
                text += [f"cluster {tree.cluster_name(code)}", f"split: {split_text(tree, node)}"]
                style = f', color="{colors[code]}"'
        label = "\\n".join(_escape(line) for line in text)
        lines.append(f'  {node} [label="{label}"{style}];')
    for node in range(tree.n_nodes):
        if tree.kind[node] != LEAF:
            left, right = int(tree.children_left[node]), int(tree.children_right[node])
            for child in (left, right):
                answer = branch_answer(tree, node, child == left)
                lines.append(f'  {node} -> {child} [label="{answer}"];')
    lines.append("}")
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    """Escape text for a quoted DOT string, where a backslash starts an escape sequence."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
