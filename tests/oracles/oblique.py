"""Brute-force oracle of trees fitted with the clustering: the definitions, written down slowly.

Everything is enumeration from the definitions of algorithms section 7 (the paper's equations 4, 9
and 10), row by row, for trees of any tests.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trees import node_score

FloatArray = np.ndarray


def goes_right(tree: Any, node: int, row: Any) -> bool:
    """Whether a row takes the right side of a test."""
    if tree.kind[node] == 3:
        return node_score(tree, node, row) >= 0.0
    return bool(row[tree.feature[node]] > tree.threshold[node])


def leaf_under(tree: Any, node: int, row: Any) -> int:
    """The leaf a row reaches from a node."""
    while tree.children_left[node] >= 0:
        side = tree.children_right if goes_right(tree, node, row) else tree.children_left
        node = int(side[node])
    return node


def rows_of(tree: Any, node: int, X: FloatArray) -> list[int]:
    """The rows that reach a node."""
    rows = []
    for i, row in enumerate(X):
        at = 0
        while at != node and tree.children_left[at] >= 0:
            side = tree.children_right if goes_right(tree, at, row) else tree.children_left
            at = int(side[at])
        if at == node:
            rows.append(i)
    return rows


def distances(X: FloatArray, centers: FloatArray, metric: str = "euclidean") -> FloatArray:
    """n x k: squared distances, or 1 - cosine to centers of length 1; a row of zeros costs 1."""
    if metric == "euclidean":
        return np.array([[math.fsum((x - c) ** 2) for c in centers] for x in X])
    lengths = [math.sqrt(math.fsum(x * x)) for x in X]
    return np.array(
        [
            [1.0 - (math.fsum(x * c) / length if length > 0 else 0.0) for c in centers]
            for x, length in zip(X, lengths, strict=True)
        ]
    )


def means(
    X: FloatArray, labels: FloatArray, k: int, weight: FloatArray | None = None
) -> FloatArray:
    """Means of the clusters; NaN for empty ones."""
    weight = np.ones(len(X)) if weight is None else weight
    centers = np.full((k, X.shape[1]), np.nan)
    for label in range(k):
        own = labels == label
        if own.any():
            for j in range(X.shape[1]):
                centers[label, j] = math.fsum(weight[own] * X[own, j]) / math.fsum(weight[own])
    return centers


def phi(tree: Any, scale: FloatArray | None = None) -> float:
    """Sum of |w|_1 over the tests, in units of the columns; a threshold test counts 1."""
    total = 0.0
    for node in np.flatnonzero(tree.kind != 0):
        if tree.kind[node] == 3:
            columns, weights, _ = tree.oblique_test(int(node))
            total += math.fsum(np.abs(weights) * (1.0 if scale is None else scale[columns]))
        else:
            total += 1.0
    return total


def loss(tree: Any, X: FloatArray, D: FloatArray, weight: FloatArray | None = None) -> float:
    """Sum over the rows of the cost of their leaf's label."""
    labels = [tree.leaf_clusters[leaf_under(tree, 0, x)] for x in X]
    costs = D[np.arange(len(X)), labels]
    return math.fsum(costs if weight is None else costs * weight)


def sides(tree: Any, node: int, X: FloatArray, D: FloatArray) -> tuple[list[int], FloatArray]:
    """The reduced problem of a test: its rows, and what each costs on the left and on the right."""
    rows = rows_of(tree, node, X)
    children = (int(tree.children_left[node]), int(tree.children_right[node]))
    costs = [
        [D[i, tree.leaf_clusters[leaf_under(tree, child, X[i])]] for child in children]
        for i in rows
    ]
    return rows, np.array(costs).reshape(len(rows), 2)


def least_by_threshold(X: FloatArray, rows: list[int], costs: FloatArray) -> float:
    """The least loss of a threshold test at a node, by all columns, cuts and both ways round."""
    best = math.inf
    for j in range(X.shape[1]):
        for value in set(X[rows, j]):
            low = X[rows, j] <= value
            if not low.all():
                best = min(
                    best,
                    math.fsum(np.where(low, costs[:, 0], costs[:, 1])),
                    math.fsum(np.where(low, costs[:, 1], costs[:, 0])),
                )
    return best
