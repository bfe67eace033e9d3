"""The page: the template, the tree as JSON, and what the rows add to it."""

from __future__ import annotations

import html
import json
import math
import os
from datetime import timedelta
from typing import Any, NotRequired, TypedDict

import numpy as np

from ..._data.times import zone_of
from ..._util import documented, format_count
from ..._util.pages import asset, content_hash, write_page
from ..._util.words import printable
from ...tree import (
    INTERVAL,
    LEAF,
    LEVELS,
    OBLIQUE,
    THRESHOLD,
    ClusterTree,
    HasTree,
    as_tree,
    cluster_colors,
    format_share,
    format_weight,
    rule_text,
    split_text,
    tree_text,
    walk_leaves,
)
from ...tree.build import add_up
from ...tree.words import MAX_TERMS, branch_text, format_gain, shares_text, summary_text
from .rows import Histogram, PageRows

_MAX_LEAVES = 1000
# Clusters that a node lists with their shares.
_MAX_SHARES = 8


class PageColumn(TypedDict):
    """How a value of a column is typed or chosen."""

    name: str
    kind: str
    levels: NotRequired[list[str]]
    zone: NotRequired[str]
    offset: NotRequired[int]
    """Of a zone without a name that browsers know, in microseconds."""
    typical: NotRequired[str]
    """The median of numbers, where there are rows."""


class PageCluster(TypedDict):
    """What the card of a cluster shows."""

    name: str
    color: str
    size: str
    contrasts: list[list[str]]


class PageNode(TypedDict):
    """A node: its rows, and its test, as the script compares and as people read it."""

    rows: int
    share: str
    facts: list[tuple[str, str]]
    find: list[str]
    """What a search finds it by."""
    bars: NotRequired[Histogram]
    # Of leaves.
    cluster: NotRequired[int]
    rule: NotRequired[str]
    # Of inner nodes.
    left: NotRequired[int]
    yes: NotRequired[str]
    no: NotRequired[str]
    shares: NotRequired[list[str]]
    missingLeft: NotRequired[bool]
    # Of their tests: of one column, a place in the page's, or of a sum.
    column: NotRequired[int]
    threshold: NotRequired[float]
    between: NotRequired[list[float]]
    codes: NotRequired[list[int]]
    terms: NotRequired[list[tuple[int, float]]]
    bias: NotRequired[float]


class PageContent(TypedDict):
    """What the script reads."""

    takesMissing: bool
    columns: list[PageColumn]
    clusters: list[PageCluster]
    nodes: list[PageNode]


@documented
def to_html(
    tree: ClusterTree | HasTree,
    path: str | os.PathLike[str],
    X: Any = None,
    *,
    title: str | None = None,
    shares: bool = False,
) -> None:
    """Write the tree as one HTML file to look through in a browser.

    The file needs no network and no other file. The tree can be zoomed, moved, folded and
    searched, by mouse and by keys; nodes show their numbers; the values of a row, typed or chosen,
    light up its path; each cluster has a card with its rules and its size. It follows the
    browser's choice of light or dark. Names and values are text in it, whatever they hold.

    %(tree_in)s
    path : str or path-like
        The file; one that is there is replaced.
    X : array-like or frame of shape (n_samples, n_features), default=None
        Rows, read as `predict` reads them, but with all columns of the fit. Each node then has a
        histogram of its tested column by cluster, and each card the columns that set the cluster
        apart, by the contrasts of `profile` and by shares of missing cells: in the units of the
        model's `scale_`, or of a tree alone in standard deviations of X. Sizes stay those of the
        fit; where X has other rows the page says so. The file holds counts, means and medians, no
        rows.
    title : str, default=None
        Title of the page; None: the name of the method.
    shares : bool, default=False
        Whether to write the share of each term of an oblique test behind it: |weight| x standard
        deviation of the column among the rows of the fit, of the sum over the test's terms.

    Raises
    ------
    ValueError
        If the tree has more than 1,000 leaves, or X holds what `predict` refuses; if `shares` is
        True and the tree has oblique tests, but not the standard deviations.
    TypeError
        If X is sparse, or a column holds something else than in the fit.
    OSError
        If the file cannot be written.
    """
    model, method = tree, type(tree).__name__
    tree = as_tree(model, method="to_html")
    if tree.n_leaves > _MAX_LEAVES:
        raise ValueError(
            f"A tree of {tree.n_leaves:,} leaves is too large for a page (at most "
            f"{_MAX_LEAVES:,}). Use a smaller tree: truncate(m)."
        )
    rows = None
    if X is not None:
        rows = PageRows(
            tree,
            X,
            getattr(model, "scale_", None),
            getattr(model, "labels_", None),
            name=method if hasattr(model, "get_params") else "to_html",
            # A tree alone does not know whether its names are those of a frame.
            names_given=getattr(model, "_names_given", isinstance(model, ClusterTree)),
        )
    data = json.dumps(_content(tree, rows, shares), allow_nan=False, separators=(",", ":"))
    # No name can end the script or open another tag; the two are line ends in old JavaScript.
    for character in "<>&\u2028\u2029":
        data = data.replace(character, f"\\u{ord(character):04x}")
    style, script = (asset(__package__, f"tree.{suffix}") for suffix in ("css", "js"))
    parts = {
        "title": html.escape(printable(method if title is None else title)),
        "summary": html.escape(summary_text(tree).partition(": ")[2]),
        "rows": "" if rows is None else _rows_note(tree, rows),
        "style": style,
        "style hash": content_hash(style),
        "script": script,
        "script hash": content_hash(script),
        "text": html.escape(tree_text(tree, shares=shares)),
        "data": data,
    }
    write_page(path, asset(__package__, "tree.html"), parts)


def _rows_note(tree: ClusterTree, rows: PageRows) -> str:
    """Return which rows the numbers are of; "" if all are of those of the fit."""
    if rows.are_of_fit:
        return ""
    of_fit = format_count(int(tree.n_node_samples[0]), "row")
    given = format_count(rows.n_rows, "row")
    return (
        f'<p id="rows">Sizes, shares and figures of nodes are of the {of_fit} of the fit; '
        f"histograms and what sets clusters apart are of {given} given for this page.</p>"
    )


def _content(tree: ClusterTree, rows: PageRows | None, shares: bool) -> PageContent:
    """Return what the script reads."""
    columns = tree.tested_features.tolist()
    places = {feature: place for place, feature in enumerate(columns)}
    rules = {
        leaf: rule_text(tree.feature_name, path.conditions(), MAX_TERMS, short=True)
        for leaf, _, path in walk_leaves(tree)
    }
    colors = cluster_colors(len(tree.classes))
    contrasts = rows.contrasts() if rows is not None else [[] for _ in tree.classes]
    nodes = [_node(tree, node, places, rules, shares) for node in range(tree.n_nodes)]
    for node, of_clusters in _shares_of_clusters(tree).items():
        nodes[node]["shares"] = of_clusters
    if rows is not None:
        for node in range(tree.n_nodes):
            histogram = rows.histogram(node)
            if histogram is not None:
                nodes[node]["bars"] = histogram
    return {
        "takesMissing": tree.missing_go_to_left is not None,
        "columns": [_column(tree, feature, rows) for feature in columns],
        "clusters": [
            {
                "name": tree.cluster_name(code),
                "color": colors[code],
                "size": _cluster_size(tree, code),
                "contrasts": contrasts[code],
            }
            for code in range(len(tree.classes))
        ],
        "nodes": nodes,
    }


def _shares_of_clusters(tree: ClusterTree) -> dict[int, list[str]]:
    """Return by inner node the shares of the clusters of its leaves, the largest first."""
    leaves, n_rows = tree.leaves, tree.n_node_samples
    counts = np.zeros((tree.n_nodes, len(tree.classes)), dtype=np.int64)
    counts[leaves, tree.leaf_clusters[leaves]] = n_rows[leaves]
    add_up(tree.children_left, counts)
    found = {}
    for node in np.flatnonzero(tree.kind != LEAF).tolist():
        largest = np.sort(counts[node])[::-1][:_MAX_SHARES]
        found[node] = [format_share(n / max(int(n_rows[node]), 1)) for n in largest[largest > 0]]
    return found


def _cluster_size(tree: ClusterTree, code: int) -> str:
    leaves = tree.leaf_clusters == code
    n_rows = int(tree.n_node_samples[leaves].sum())
    share = format_share(n_rows / max(int(tree.n_node_samples[0]), 1))
    return (
        f"{format_count(n_rows, 'row')} ({share}), "
        f"{format_count(int(leaves.sum()), 'leaf', 'leaves')}"
    )


def _column(tree: ClusterTree, feature: int, rows: PageRows | None) -> PageColumn:
    """Return how a value of a column is typed or chosen."""
    column = tree.column(feature)
    content: PageColumn = {"name": tree.feature_name(feature), "kind": column.kind}
    if column.has_levels:
        content["levels"] = [column.level_text(code) for code in range(len(column.levels))]
    zone = zone_of(column.kind)
    if zone is not None:
        content["zone"] = column.kind.partition("[")[2].removesuffix("]")
        offset = zone.utcoffset(None)
        if offset is not None:  # browsers know zones by name alone
            content["offset"] = offset // timedelta(microseconds=1)
    if rows is not None and column.kind == "number":
        content["typical"] = rows.median_text(feature)
    return content


def _node(
    tree: ClusterTree, node: int, places: dict[int, int], rules: dict[int, str], shares: bool
) -> PageNode:
    """Return a node without its histogram and its shares of clusters."""
    n_rows, kind = int(tree.n_node_samples[node]), int(tree.kind[node])
    content: PageNode = {
        "rows": n_rows,
        "share": format_share(n_rows / max(int(tree.n_node_samples[0]), 1)),
        "facts": _facts(tree, node),
        "find": [],
    }
    if kind == LEAF:
        code = int(tree.leaf_clusters[node])
        cluster = tree.cluster_name(code)
        content |= {"cluster": code, "rule": rules[node], "find": [f"cluster {cluster}"]}
        return content
    yes, no = (branch_text(tree, node, left, shares=shares) for left in (True, False))
    content |= {"left": int(tree.children_left[node]), "yes": yes, "no": no, "find": [yes]}
    if kind == OBLIQUE:
        features, weights, bias = tree.oblique_test(node)
        pairs = zip(features.tolist(), weights.tolist(), strict=True)
        terms = [(places[feature], weight) for feature, weight in pairs]
        names = [tree.feature_name(feature) for feature in features.tolist()]
        content |= {"terms": terms, "bias": bias, "find": [yes, *names]}
        return content
    content["column"] = places[int(tree.feature[node])]
    if tree.missing_go_to_left is not None:
        content["missingLeft"] = bool(tree.missing_go_to_left[node])
    if kind == THRESHOLD:
        content["threshold"] = float(tree.threshold[node])
    elif kind == INTERVAL:
        content["between"] = [float(tree.lower[node]), float(tree.upper[node])]
    elif kind == LEVELS:
        codes, column = tree.level_test(node).tolist(), tree.column(int(tree.feature[node]))
        content["codes"] = codes
        content["find"] = [yes, *(column.level_text(code, None) for code in codes)]
    return content


def _facts(tree: ClusterTree, node: int) -> list[tuple[str, str]]:
    """Return the figures of a node, each with its name."""
    impurity, mistakes = float(tree.impurity[node]), float(tree.mistakes[node])
    weight, cost_name = "", "Cost per row"
    mistakes_name = "Mistakes" if tree.kind[node] == LEAF else "Mistakes of the cut"
    if tree.is_weighted:
        weight = format_weight(float(tree.weighted_n_node_samples[node]))
        cost_name, mistakes_name = "Cost per unit of weight", f"{mistakes_name}, by weight"
    known = {
        "Weight": weight,
        cost_name: format_gain(impurity) if math.isfinite(impurity) else "",
        mistakes_name: format_weight(mistakes),
        "By reference": shares_text(tree, node) if tree.move is None else "",
        "Split": split_text(tree, node),
    }
    return [(name, text) for name, text in known.items() if text]
