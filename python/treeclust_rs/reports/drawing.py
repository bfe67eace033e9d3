"""The drawn parts of a report: the curve of costs as SVG, the tree as nested lists."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from .._util import IntArray, format_count
from .._util.words import printable
from ..tree import LEAF, ClusterTree, format_share
from ..tree.words import branch_text
from .costs import Quality

_WIDTH, _HEIGHT = 640, 256
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 150, 28, 40
# Trees of so many levels and leaves are drawn to the right on wide screens; others, and all on
# paper, as an indented list.
_MAX_LEVELS, _MAX_ACROSS = 4, 16
_MAX_NODES = 63


def cost_svg(quality: Quality) -> str:
    """Return the curve of cost against leaves, beside the line of the reference; "" without one."""
    leaves, ratios = quality.leaves, quality.ratios
    if len(leaves) < 2:
        return ""
    low, high = min(1.0, float(ratios.min())), max(1.0, float(ratios.max()))
    ticks = _ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    across = (_WIDTH - _LEFT - _RIGHT) / float(leaves[-1] - leaves[0])
    down = (_HEIGHT - _TOP - _BOTTOM) / (high - low)

    def x(number: float) -> float:
        return _LEFT + (number - float(leaves[0])) * across

    def y(ratio: float) -> float:
        return _TOP + (high - ratio) * down

    end, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    first, last = format_count(int(leaves[0]), "leaf", "leaves"), f"{ratios[-1]:.4g}"
    beside = quality.beside
    what = f"{quality.word}, over that of {beside.name}"
    about = f"{what}, by number of leaves: {ratios[0]:.4g} with {first}, {last} with {leaves[-1]:,}"
    # The two words at the right stand apart.
    at_free, at_last = (14, -4) if y(ratios[-1]) < y(1) else (-4, 14)
    parts = [
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{html.escape(about)}"><text x="0" y="12">{html.escape(what)}</text>'
    ]
    for tick in ticks:
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{end}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>'
            f'<text class="right" x="{_LEFT - 8}" y="{y(tick) + 4:.1f}">{tick:.4g}</text>'
        )
    for number in _whole_ticks(int(leaves[0]), int(leaves[-1])):
        parts.append(f'<text class="middle" x="{x(number):.1f}" y="{bottom + 18}">{number}</text>')
    points = " ".join(f"{x(n):.1f},{y(r):.1f}" for n, r in zip(leaves, ratios, strict=True))
    parts.append(
        f'<text class="middle" x="{(_LEFT + end) / 2}" y="{bottom + 36}">number of leaves</text>'
        f'<line class="free" x1="{_LEFT}" x2="{end}" y1="{y(1):.1f}" y2="{y(1):.1f}"/>'
        f'<text x="{end + 8}" y="{y(1) + at_free:.1f}">{beside.label}</text>'
        f'<polyline class="curve" points="{points}"/>'
        f'<circle class="point" cx="{x(leaves[-1]):.1f}" cy="{y(ratios[-1]):.1f}" r="4.5"/>'
        f'<text class="strong" x="{end + 8}" y="{y(ratios[-1]) + at_last:.1f}">'
        f"this tree: {last}</text></svg>"
    )
    return "".join(parts)


def _ticks(low: float, high: float) -> list[float]:
    """Return about four round numbers between two."""
    step = (high - low) / 4 or 0.25
    power = 10.0 ** np.floor(np.log10(step))
    step = float(next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step * 0.999))
    first = int(np.floor(low / step + 1e-9))
    last = max(int(np.ceil(high / step - 1e-9)), first + 1)
    return [round(number * step, 12) for number in range(first, last + 1)]


def _whole_ticks(first: int, last: int) -> list[int]:
    step = max(-(-(last - first) // 8), 1)
    return list(range(first, last + 1, step))


def bar_svg(share: float, kind: str = "") -> str:
    """Return a bar of a share of its room; of a negative one to the left of the middle."""
    if kind == "contrast":
        width = min(abs(share), 1.0) * 50
        start = 50 - width if share < 0 else 50
        axis = '<line x1="50" x2="50" y1="0" y2="10"/>'
    else:
        width, start, axis = min(max(share, 0.0), 1.0) * 100, 0.0, ""
    return (
        f'<svg class="bar {kind}" viewBox="0 0 100 10" preserveAspectRatio="none" '
        'aria-hidden="true">'
        f'<rect x="{start:.2f}" y="1" width="{width:.2f}" height="8"/>{axis}</svg>'
    )


def tree_lists(tree: ClusterTree, names: Sequence[str], leaves: IntArray) -> tuple[str, str]:
    """Return the tree as nested lists, and a note if its lower part is left out.

    `leaves`: the leaf of each row, by which rows are counted.
    """
    counts = np.bincount(leaves, minlength=tree.n_nodes)
    depth = np.zeros(tree.n_nodes, dtype=np.int64)
    for node in range(1, tree.n_nodes):
        depth[node] = depth[tree.parent[node]] + 1
    below: list[dict[int, None]] = [{} for _ in range(tree.n_nodes)]
    n_leaves = (tree.kind == LEAF).astype(np.int64)
    n_own = np.bincount(tree.leaf_clusters[tree.kind == LEAF], minlength=len(names))
    for node in range(tree.n_nodes - 1, -1, -1):
        if tree.kind[node] == LEAF:
            below[node] = {int(tree.leaf_clusters[node]): None}
        if node:
            parent = int(tree.parent[node])
            counts[parent] += counts[node]
            n_leaves[parent] += n_leaves[node]
            below[parent] |= below[node]
    by_depth = np.cumsum(np.bincount(depth))
    deepest = max(int(np.searchsorted(by_depth, _MAX_NODES, side="right")) - 1, 1)
    total = max(int(counts[0]), 1)

    def item(node: int, answer: str) -> str:
        word = f'<span class="answer">{answer}</span>' if answer else ""
        size = f"{format_count(int(counts[node]), 'row')} ({format_share(counts[node] / total)})"
        small = f"<small>{html.escape(size)}</small>"
        if tree.kind[node] == LEAF:
            code = int(tree.leaf_clusters[node])
            # The name tells what most of a cluster has in common; of a cluster with several leaves
            # it may be untrue of one of them.
            also = names[code] if n_own[code] == 1 else f"one of {n_own[code]:,} leaves"
            label = html.escape(f"{title_of(tree.classes[code])}: {also}")
            box = f'<div class="box leaf c{code}"><a href="#c{code}">{label}</a>{small}</div>'
            return f"<li>{word}{box}</li>"
        if depth[node] == deepest:
            codes = ", ".join(tree.cluster_name(code) for code in sorted(below[node])[:6])
            more = f" and {len(below[node]) - 6} more" if len(below[node]) > 6 else ""
            text = f"… {n_leaves[node]:,} leaves below, of the clusters {codes}{more}"
            return f'<li>{word}<div class="box">{html.escape(text)}{small}</div></li>'
        left = int(tree.children_left[node])
        test = html.escape(branch_text(tree, node, True))
        inner = item(left, "yes") + item(left + 1, "no")
        return f'<li>{word}<div class="box">{test}?{small}</div><ul>{inner}</ul></li>'

    is_across = tree.max_depth <= _MAX_LEVELS and tree.n_leaves <= _MAX_ACROSS
    note = ""
    if deepest < tree.max_depth:
        note = f"The first {deepest} of {tree.max_depth} levels; the rules are on the cards."
    shape = f"across levels{tree.max_depth}" if is_across else "down"
    return f'<ul class="tree {shape}">{item(0, "")}</ul>', note


def title_of(label: object) -> str:
    """Return what a cluster is called: a number as ``Cluster 3``, a name as it is."""
    label = printable(label)
    return f"Cluster {label}" if label.lstrip("-").isdecimal() else label
