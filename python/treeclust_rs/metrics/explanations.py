"""How long the explanation of a tree is."""

from __future__ import annotations

import numpy as np

from .._util import IntArray
from ..tree import (
    INTERVAL,
    LEAF,
    LEVELS,
    MISSING,
    OBLIQUE,
    THRESHOLD,
    ClusterTree,
    HasTree,
    as_tree,
    walk_leaves,
)


def weighted_average_depth(tree: ClusterTree | HasTree) -> float:
    """WAD: depth of the leaf of a row, averaged over the weight of the rows of the fit.

    %(tree_in)s

    Returns
    -------
    float
    """
    tree = as_tree(tree)
    leaves = tree.leaves
    return _leaf_average(tree, leaves, tree.node_depth[leaves])


def weighted_average_explanation_size(tree: ClusterTree | HasTree) -> float:
    """WAES: number of non-redundant conditions of a row's leaf, averaged as in WAD.

    Of the bounds on one feature in one direction only the tightest counts. An interval counts its
    finite ends, where no tighter bound replaces them; the outside of an interval counts both ends,
    but one if a bound already decides the other side, and none if a bound implies it. The set of
    levels that a path leaves of a column counts one, and so does that it is missing, or is not,
    where nothing else is said of it. An oblique test counts the features it uses, every time one is
    met.

    %(tree_in)s

    Returns
    -------
    float

    References
    ----------
    Laber, Murtinho, Oliveira: Shallow decision trees for explainable k-means clustering, 2023.
    """
    tree = as_tree(tree)
    return _leaf_average(tree, *_explanation_sizes(tree))


def n_conditions(tree: ClusterTree | HasTree) -> int:
    """Count the conditions of all rules, one rule a leaf: how much there is to read.

    Only the non-redundant ones count, as in `weighted_average_explanation_size`, of which this is
    the sum over the leaves in place of the average over the rows.

    %(tree_in)s

    Returns
    -------
    int
        0 for a tree of one leaf.
    """
    return int(_explanation_sizes(as_tree(tree))[1].sum())


def _explanation_sizes(tree: ClusterTree) -> tuple[IntArray, IntArray]:
    """Return the leaves, and the number of conditions of each."""
    walked = [(leaf, path.size) for leaf, _, path in walk_leaves(tree)]
    leaves, sizes = np.array(walked, dtype=np.int64).T
    return leaves, sizes


def _leaf_average(tree: ClusterTree, leaves: IntArray, values: IntArray) -> float:
    weights = tree.weighted_n_node_samples[leaves]
    total = float(weights.sum())
    if total == 0:
        raise ValueError("The tree has no rows to average over.")
    return float(np.dot(weights, values)) / total


def n_parameters(tree: ClusterTree | HasTree) -> int:
    """Count the numbers that make up the tree.

    A threshold node has two (feature and threshold), an interval node three, a node that tests
    levels one more than it lists (the shorter of those that go left and the others), a node that
    tests for missing cells one, an oblique node its weights and its bias, a leaf one (its label):
    3m - 2 for m leaves and threshold tests only. Directions of missing cells do not count.

    %(tree_in)s

    Returns
    -------
    int

    References
    ----------
    Gabidolla, Carreira-Perpiñán: Optimal interpretable clustering using oblique decision trees,
    2022, tables 1 and 2.
    """
    tree = as_tree(tree)
    n_thresholds = int((tree.kind == THRESHOLD).sum())
    n_intervals = int((tree.kind == INTERVAL).sum())
    is_oblique = tree.kind == OBLIQUE
    n_oblique = int((tree.n_node_features[is_oblique] + 1).sum())
    n_listed = 0
    for node in np.flatnonzero(tree.kind == LEVELS).tolist():
        n_left, n_all = len(tree.level_test(node)), len(tree.column(tree.feature[node]).levels)
        n_listed += 1 + (min(n_left, n_all - n_left) or n_left)
    n_missing = int((tree.kind == MISSING).sum())
    n_others = n_oblique + n_listed + n_missing
    return 2 * n_thresholds + 3 * n_intervals + n_others + tree.n_leaves


def features_per_node(tree: ClusterTree | HasTree) -> float:
    """Average number of features that a test of an inner node uses.

    %(tree_in)s

    Returns
    -------
    float
        1 in a tree without oblique tests, 0 in a tree of one leaf.

    References
    ----------
    Gabidolla, Carreira-Perpiñán: Optimal interpretable clustering using oblique decision trees,
    2022, table 2.
    """
    tree = as_tree(tree)
    sizes = tree.n_node_features[tree.kind != LEAF]
    return float(sizes.mean()) if len(sizes) else 0.0
