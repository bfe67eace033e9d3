"""Small hand-built and random trees, and a router in plain Python to compare with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from treeclust_rs.tree import ClusterTree
from treeclust_rs.tree.nodes import MOVES

NAN = math.nan


class Builder:
    """Grow a tree split by split, as a fit does; rows are counted by routing real data."""

    def __init__(
        self,
        X: np.ndarray,
        labels: Sequence[int],
        n_clusters: int | None = None,
        weights: np.ndarray | None = None,
    ) -> None:
        self.X = np.asarray(X, dtype=np.float64)
        self.labels = np.asarray(labels, dtype=np.int64)
        self.k = int(self.labels.max()) + 1 if n_clusters is None else n_clusters
        self.weights = np.ones(len(self.X)) if weights is None else weights
        self.nodes: list[dict[str, Any]] = []
        self.n_base_leaves = 0
        self._add(np.arange(len(self.X)))

    def _add(self, rows: np.ndarray) -> None:
        weight = self.weights[rows]
        sums = np.bincount(self.labels[rows], weights=weight, minlength=self.k)
        total = float(weight.sum())
        label = int(np.argmax(sums))
        self.nodes.append(
            {
                "rows": rows,
                "children_left": -1,
                "children_right": -1,
                "feature": -2,
                "threshold": -2.0,
                "lower": NAN,
                "upper": NAN,
                "kind": 0,
                "impurity": 1.0 - float(sums.max()) / total if total else 0.0,
                "n_node_samples": len(rows),
                "weighted_n_node_samples": total,
                "value": [(sums / total if total else 0 * sums).tolist()],
                "cluster": label,
                "base_cluster": -1,
                "mistakes": float(sums.sum() - sums[label]),
                "terms": {},
                "bias": NAN,
            }
        )

    def split(
        self,
        node: int,
        feature: int,
        threshold: float | None = None,
        interval: tuple[float, float] | None = None,
    ) -> int:
        """Split a leaf; gives the id of the left child."""
        parent = self.nodes[node]
        x = self.X[parent["rows"], feature]
        parent["feature"] = feature
        if interval is None:
            parent["kind"], parent["threshold"] = 1, float(threshold)
            goes_left = x <= threshold
        else:
            parent["kind"], parent["threshold"] = 2, NAN
            parent["lower"], parent["upper"] = map(float, interval)
            goes_left = (interval[0] <= x) & (x <= interval[1])
        return self._divide(node, goes_left)

    def oblique(self, node: int, weights: dict[int, float], bias: float = 0.0) -> int:
        """Split a leaf by a weighted sum; gives the id of the left child."""
        parent = self.nodes[node]
        terms = {feature: float(weights[feature]) for feature in sorted(weights)}
        parent |= {"kind": 3, "threshold": NAN, "terms": terms, "bias": float(bias)}
        goes_left = [score(terms, bias, row) < 0 for row in self.X[parent["rows"]]]
        return self._divide(node, np.array(goes_left, dtype=bool))

    def _divide(self, node: int, goes_left: np.ndarray) -> int:
        parent = self.nodes[node]
        assert parent["children_left"] == -1
        parent["mistakes"] = NAN
        left = len(self.nodes)
        parent["children_left"], parent["children_right"] = left, left + 1
        self._add(parent["rows"][goes_left])
        self._add(parent["rows"][~goes_left])
        return left

    def leaves(self) -> list[int]:
        """Return the ids of the leaves so far."""
        return [node for node, content in enumerate(self.nodes) if content["kind"] == 0]

    def end_base(self, labels: dict[int, int] | None = None) -> None:
        """Make the leaves so far those of the base tree."""
        leaves = self.leaves()
        self.n_base_leaves = len(leaves)
        for leaf in leaves:
            content = self.nodes[leaf]
            content["base_cluster"] = (labels or {}).get(leaf, content["cluster"])
        for content in self.nodes:
            if content["kind"] != 0:
                content["mistakes"] = 0.0

    def arrays(self, **changes: Any) -> dict[str, Any]:
        """Return the arguments of ClusterTree."""
        names = [name for name in self.nodes[0] if name not in ("rows", "terms", "bias")]
        arguments: dict[str, Any] = {name: [node[name] for node in self.nodes] for name in names}
        terms = [node["terms"] for node in self.nodes]
        if any(terms):
            arguments |= {
                "oblique_indptr": np.cumsum([0, *map(len, terms)]),
                "oblique_indices": [feature for part in terms for feature in part],
                "oblique_weights": [weight for part in terms for weight in part.values()],
                "oblique_bias": [node["bias"] for node in self.nodes],
            }
        arguments["n_features"] = self.X.shape[1]
        arguments["classes"] = list(range(self.k))
        arguments["n_base_leaves"] = self.n_base_leaves
        if self.n_base_leaves == len(self.leaves()):
            for node, base in enumerate(arguments["base_cluster"]):
                if base >= 0:
                    shares = self.nodes[node]["value"][0]
                    weight = self.nodes[node]["weighted_n_node_samples"]
                    arguments["mistakes"][node] = float(np.rint(weight * (1 - shares[base])))
        return arguments | changes

    def tree(self, **changes: Any) -> ClusterTree:
        """Return the tree as it is now."""
        return ClusterTree(**self.arrays(**changes))


def legal_moves(
    n_clusters: int, own: int, has_others: bool, max_clusters: int = 10**9
) -> list[tuple[str, int, int]]:
    """Return all moves that Kauri may make of a leaf, as (name, left cluster, right cluster).

    The leaf is of the cluster `own`, in a tree of `n_clusters` so far; `has_others` tells whether
    other leaves are of its cluster too.
    """
    new = n_clusters
    others = [code for code in range(n_clusters) if code != own]
    moves = []
    if new < max_clusters:
        moves += [("star", new, own), ("star", own, new)]
    if new + 2 <= max_clusters and has_others:
        moves.append(("double_star", new, new + 1))
    moves += [("switch", code, own) for code in others]
    moves += [("switch", own, code) for code in others]
    if has_others:
        moves += [("reallocation", one, two) for one in others for two in others if one != two]
        if new < max_clusters:
            moves += [("mixed", new, code) for code in others]
            moves += [("mixed", code, new) for code in others]
    return moves


class MovesBuilder(Builder):
    """Grow a tree split by split as Kauri does: every split has a move, and no reference."""

    def __init__(self, X: np.ndarray, weights: np.ndarray | None = None) -> None:
        super().__init__(X, np.zeros(len(X)), 1, weights)

    def _add(self, rows: np.ndarray) -> None:
        super()._add(rows)
        del self.nodes[-1]["value"]
        self.nodes[-1] |= {"mistakes": NAN, "move": -1, "gain": NAN}

    def move(
        self, node: int, feature: int, threshold: float, clusters: tuple[int, int], name: str
    ) -> int:
        """Split a leaf; gives the id of the left child. The gains are 100, 50, 33.3, ..."""
        left = self.split(node, feature, threshold)
        self.nodes[node] |= {"move": MOVES.index(name), "gain": 200 / (left + 1)}
        for child, cluster in zip((left, left + 1), clusters, strict=True):
            self.nodes[child]["cluster"] = cluster
        return left

    def clusters(self) -> list[int]:
        """Return the clusters of the leaves."""
        return [self.nodes[leaf]["cluster"] for leaf in self.leaves()]

    def arrays(self, **changes: Any) -> dict[str, Any]:
        """Return the arguments of ClusterTree."""
        classes = list(range(max(self.clusters()) + 1))
        return super().arrays(**({"classes": classes, "value": None} | changes))


def all_moves_builder(n_splits: int = 6) -> MovesBuilder:
    """Seven leaves on a grid of 8 x 8 rows, with every move there is."""
    builder = MovesBuilder(np.stack(np.divmod(np.arange(64.0), 8), axis=1))
    for split in (
        (0, 0, 3.5, (1, 0), "star"),
        (1, 1, 1.5, (0, 1), "switch"),
        (2, 1, 4.5, (2, 3), "double_star"),
        (4, 0, 0.5, (1, 0), "switch"),
        (8, 1, 5.5, (2, 3), "reallocation"),
        (5, 0, 5.5, (4, 0), "mixed"),
    )[:n_splits]:
        builder.move(*split)
    return builder


def all_moves(**changes: Any) -> ClusterTree:
    """Return the tree of `all_moves_builder`."""
    return all_moves_builder().tree(**({"feature_names": ["aid", "arms"]} | changes))


def random_rows(
    rng: np.random.Generator, shape: tuple[int, int], grid: int, scale: np.ndarray | float = 1.0
) -> np.ndarray:
    """Return whole numbers below `grid` as floats, or normal ones if it is 0."""
    return rng.integers(0, grid, shape).astype(float) if grid else rng.normal(size=shape) * scale


def random_moves(
    seed: int,
    n_leaves: int,
    *,
    n_features: int = 3,
    max_clusters: int = 5,
    n_rows: int = 200,
    grid: int = 0,
    weighted: bool = False,
    builder_only: bool = False,
    **changes: Any,
) -> tuple[Any, np.ndarray]:
    """Return a tree with random tests and moves, or its builder, and the data it was built on.

    It has fewer leaves where no more rows can be separated.
    """
    rng = np.random.default_rng(seed)
    X = random_rows(rng, (n_rows, n_features), grid)
    builder = MovesBuilder(X, rng.uniform(0.1, 3.0, n_rows) if weighted else None)
    for _ in range(20 * n_leaves):
        if len(builder.leaves()) == n_leaves:
            break
        node = int(rng.choice(builder.leaves()))
        feature = int(rng.integers(n_features))
        values = np.unique(X[builder.nodes[node]["rows"], feature])
        if len(values) < 2:
            continue
        own, clusters = builder.nodes[node]["cluster"], builder.clusters()
        moves = legal_moves(max(clusters) + 1, own, clusters.count(own) > 1, max_clusters)
        if not moves:
            continue
        # Every kind of move is as likely, however many of it there are.
        kind = rng.choice(sorted({name for name, _, _ in moves}))
        moves = [move for move in moves if move[0] == kind]
        name, left, right = moves[rng.integers(len(moves))]
        builder.move(node, feature, float(rng.choice(values[:-1])), (left, right), name)
    return (builder if builder_only else builder.tree(**changes)), X


def random_mixed(
    seed: int,
    n_leaves: int,
    *,
    n_features: int = 6,
    n_clusters: int = 3,
    n_rows: int = 200,
    grid: int = 0,
    builder_only: bool = False,
    **changes: Any,
) -> tuple[Any, np.ndarray]:
    """Return a tree of oblique, threshold and interval tests, or its builder, and its data.

    With a `grid` the data are small whole numbers and the weights -1 and 1, so that many scores are
    exactly 0.
    """
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-3, 4, n_features)
    X = random_rows(rng, (n_rows, n_features), grid, scale)
    builder = Builder(X, rng.integers(0, n_clusters, n_rows), n_clusters)
    while len(builder.leaves()) < n_leaves:
        node = int(rng.choice(builder.leaves()))
        rows = builder.nodes[node]["rows"]
        rows = X[rows] if len(rows) else X
        kind = rng.random()
        if kind < 0.6:
            n_terms = int(rng.integers(1, n_features + 1))
            used = rng.choice(n_features, n_terms, replace=False).tolist()
            signs = rng.choice([-1.0, 1.0], n_terms)
            weights = signs if grid else rng.normal(size=n_terms) / scale[used]
            terms = dict(zip(used, weights.tolist(), strict=True))
            # The score of a row of the node is 0, or next to it.
            builder.oblique(node, terms, -score(terms, 0.0, rows[rng.integers(len(rows))]))
            continue
        feature = int(rng.integers(n_features))
        first, second = np.sort(rng.choice(rows[:, feature], 2))
        if kind < 0.8:
            builder.split(node, feature, interval=(float(first), float(second)))
        else:
            builder.split(node, feature, float(first))
    return (builder if builder_only else builder.tree(**changes)), X


def random_tree(
    seed: int,
    n_leaves: int,
    *,
    n_features: int = 3,
    n_clusters: int = 3,
    n_rows: int = 200,
    intervals: bool = False,
    grid: int = 0,
    **changes: Any,
) -> tuple[ClusterTree, np.ndarray]:
    """Return a tree with random tests and the data it was built on.

    With a `grid` the data and the thresholds are small whole numbers, so that many rows lie exactly
    on a threshold and many tests are redundant or contradict each other.
    """
    rng = np.random.default_rng(seed)
    X = random_rows(rng, (n_rows, n_features), grid)
    builder = Builder(X, rng.integers(0, n_clusters, n_rows), n_clusters)
    while len(builder.leaves()) < n_leaves:
        node = int(rng.choice(builder.leaves()))
        feature = int(rng.integers(n_features))
        first, second = np.sort(rng.choice(X[:, feature], 2))
        if intervals and rng.random() < 0.6:
            builder.split(node, feature, interval=(float(first), float(second)))
        else:
            builder.split(node, feature, float(first))
    return builder.tree(**changes), X


def chain(n_leaves: int, n_features: int = 5, n_clusters: int = 4) -> ClusterTree:
    """Return a tree that splits off one leaf per level: depth n_leaves - 1."""
    n_inner = n_leaves - 1
    left = np.full(2 * n_leaves - 1, -1)
    feature = np.full(2 * n_leaves - 1, -2)
    threshold = np.full(2 * n_leaves - 1, -2.0)
    # Node 0, then every right child 2, 4, 6, ... is split.
    inner = 2 * np.arange(n_inner)
    left[inner] = inner + 1
    feature[inner] = np.arange(n_inner) % n_features
    threshold[inner] = np.arange(n_inner) // n_features + 0.5
    rows = np.empty(2 * n_leaves - 1, dtype=np.int64)
    rows[0::2] = n_leaves - np.arange(n_leaves)
    rows[1::2] = 1
    return from_structure(left, feature, threshold, rows, n_features, n_clusters)


def chain_of_moves(n_leaves: int) -> ClusterTree:
    """Return a tree on one feature that splits off one leaf of cluster 1 per level."""
    nodes = np.arange(2 * n_leaves - 1)
    is_inner = (nodes % 2 == 0) & (nodes < len(nodes) - 1)
    n_rows = np.where(nodes % 2 == 0, n_leaves - nodes // 2, 1)
    nan = np.full(len(nodes), NAN)
    return ClusterTree(
        children_left=np.where(is_inner, nodes + 1, -1),
        children_right=np.where(is_inner, nodes + 2, -1),
        feature=np.where(is_inner, 0, -2),
        threshold=np.where(is_inner, nodes / 2 + 0.5, -2.0),
        lower=nan,
        upper=nan,
        kind=is_inner.astype(int),
        impurity=np.zeros(len(nodes)),
        n_node_samples=n_rows,
        weighted_n_node_samples=n_rows,
        value=None,
        cluster=nodes % 2,
        base_cluster=np.full(len(nodes), -1),
        mistakes=nan,
        n_features=1,
        classes=[0, 1],
        move=np.where(is_inner, np.where(nodes == 0, 0, 2), -1),
        gain=np.where(is_inner, 1.0 / (nodes + 1), NAN),
    )


def balanced(n_leaves: int, n_features: int = 5, n_clusters: int = 4) -> ClusterTree:
    """Return a tree as shallow as can be, with nodes numbered level by level like a heap."""
    nodes = np.arange(2 * n_leaves - 1)
    is_inner = nodes < n_leaves - 1
    level = np.floor(np.log2(nodes + 1)).astype(int)
    place = nodes + 1 - 2**level
    left = np.where(is_inner, 2 * nodes + 1, -1)
    feature = np.where(is_inner, level % n_features, -2)
    threshold = np.where(is_inner, (2 * place + 1) / 2.0 ** (level + 1), -2.0)
    rows = np.ones(len(nodes), dtype=np.int64)
    for node in range(n_leaves - 2, -1, -1):
        rows[node] = rows[2 * node + 1] + rows[2 * node + 2]
    return from_structure(left, feature, threshold, rows, n_features, n_clusters)


def from_structure(
    left: np.ndarray,
    feature: np.ndarray,
    threshold: np.ndarray,
    rows: np.ndarray,
    n_features: int,
    n_clusters: int,
) -> ClusterTree:
    """Return a tree of threshold tests with made-up statistics."""
    n_nodes = len(left)
    nan = np.full(n_nodes, NAN)
    is_inner = left >= 0
    cluster = np.arange(n_nodes) % n_clusters
    value = np.zeros((n_nodes, 1, n_clusters))
    value[np.arange(n_nodes), 0, cluster] = 1.0
    return ClusterTree(
        children_left=left,
        children_right=np.where(is_inner, left + 1, -1),
        feature=feature,
        threshold=threshold,
        lower=nan,
        upper=nan,
        kind=is_inner.astype(int),
        impurity=np.zeros(n_nodes),
        n_node_samples=rows,
        weighted_n_node_samples=rows,
        value=value,
        cluster=cluster,
        base_cluster=np.full(n_nodes, -1),
        mistakes=np.where(is_inner, NAN, 0.0),
        n_features=n_features,
        classes=list(range(n_clusters)),
    )


def score(terms: dict[int, float], bias: float, row: Any) -> float:
    """Return the weighted sum of one row, added up feature by feature."""
    total = float(bias)
    for feature in sorted(terms):
        total = total + terms[feature] * float(row[feature])
    return total


def node_score(tree: ClusterTree, node: int, row: Any) -> float:
    """Return the score of one row at an oblique node, from the arrays."""
    terms = range(tree.oblique_indptr[node], tree.oblique_indptr[node + 1])
    weights = {int(tree.oblique_indices[i]): float(tree.oblique_weights[i]) for i in terms}
    return score(weights, float(tree.oblique_bias[node]), row)


def route(tree: ClusterTree, row: Sequence[float]) -> int:
    """Follow one row down to its leaf."""
    node = 0
    while tree.kind[node] != 0:
        x = float(row[tree.feature[node]])
        if tree.kind[node] == 3:
            left = node_score(tree, node, row) < 0
        elif tree.kind[node] == 1:
            left = x <= tree.threshold[node]
        else:
            left = tree.lower[node] <= x <= tree.upper[node]
        node = int(tree.children_left[node] if left else tree.children_right[node])
    return node


def route_all(tree: ClusterTree, X: Any) -> np.ndarray:
    """Return the leaf of every row."""
    return np.array([route(tree, row) for row in np.asarray(X)], dtype=np.int64)
