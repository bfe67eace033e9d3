"""The tree as a static HTML table for notebooks, with no scripts, and its colours."""

import colorsys
import html
from collections.abc import Iterable

from .._util.words import format_share
from .nodes import LEAF, TreeNodes
from .text import SHARES_TITLE, notes_of, tree_lines
from .words import format_gain, format_weight, move_name, shares_text, summary_text

_MAX_NODES = 200
_NUMBER_STYLE = "padding:1px 10px;text-align:right;white-space:nowrap"
_TEXT_STYLE = "padding:1px 10px;text-align:left;white-space:pre;font-family:monospace"


def tree_html(tree: TreeNodes, *, max_nodes: int = _MAX_NODES) -> str:
    """Return the tree as an HTML table.

    Parameters
    ----------
    tree : ClusterTree
        The tree.
    max_nodes : int, default=200
        Of larger trees only the first nodes are written, and a note says so.

    Returns
    -------
    str
    """
    colors = cluster_colors(len(tree.classes))
    total = max(int(tree.n_node_samples[0]), 1)
    titles = [("node", True), ("rows", False), ("share", False)]
    if tree.move is None:
        titles += [("mistakes", False), ("cluster", True), (SHARES_TITLE, True)]
    else:
        titles += [("cluster", True), ("split", True), ("gain", False)]
    body = []
    for n_written, line in enumerate(tree_lines(tree)):
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
    notes = notes_of(tree)
    if tree.n_nodes > max_nodes:
        notes.append(
            f"The first {max_nodes:,} of {tree.n_nodes:,} nodes: print(tree) writes them all, "
            "tree.truncate(m) gives the tree of m leaves."
        )
    return html_table(summary_text(tree), titles, body, notes)


def cluster_html(name: str, color: str, filled: bool = True) -> str:
    """Return a cluster beside a square of its colour; in parentheses if not `filled`."""
    square, text = ("&#9632;", name) if filled else ("&#9633;", f"({name})")
    return f'<span style="color:{color}">{square}</span> {html.escape(text)}'


def html_table(
    head: str, titles: list[tuple[str, bool]], rows: list[list[str]], notes: list[str]
) -> str:
    """Return a static HTML table.

    `titles`: of the columns, and whether their cells are text, not numbers. Cells and titles are
    HTML; head and notes are plain text.
    """
    styles = [_TEXT_STYLE if is_text else _NUMBER_STYLE for _, is_text in titles]

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


# Tableau 10: blue, orange, green, red, purple, brown, pink, grey, olive, cyan.
_PALETTE = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd",
    "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
)  # fmt: skip


def cluster_colors(n_clusters: int) -> list[str]:
    """Return a colour ``#rrggbb`` per cluster; beyond ten the hue advances by the golden angle."""
    colors = list(_PALETTE[:n_clusters])
    for extra in range(n_clusters - len(colors)):
        hue = (0.05 + 0.618034 * extra) % 1.0
        value = (0.80, 0.62, 0.93)[extra % 3]
        channels = colorsys.hsv_to_rgb(hue, 0.62, value)
        colors.append("#" + "".join(f"{round(255 * channel):02x}" for channel in channels))
    return colors


def lighten(color: str, amount: float) -> str:
    """Return a colour ``#rrggbb`` mixed with white; `amount` 1 is white."""
    channels = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{round(c + (255 - c) * amount):02x}" for c in channels)
