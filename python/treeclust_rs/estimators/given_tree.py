"""A tree given as `init`: what it may be, and whether it suits the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import clone

from .._base import TreeClusterer
from .._data import SparseTable, Table
from ..tree import ClusterTree, as_tree, is_sklearn_tree


def is_tree(init: Any) -> bool:
    """Return whether this is a tree, or an estimator of ours or of scikit-learn's with one."""
    return isinstance(init, (TreeClusterer, ClusterTree)) or is_sklearn_tree(init)


def given_tree(init: Any, fit: Callable[[Any], Any]) -> ClusterTree:
    """Return the tree of what `is_tree`, with threshold tests in place of intervals.

    `fit`: fits an estimator that is not: scikit-learn's clone of ours holds such ones.
    """
    if isinstance(init, TreeClusterer) and not hasattr(init, "tree_"):
        init = fit(clone(init))
    tree = as_tree(init)
    return tree if tree.oblique_indptr is not None else tree.to_threshold()


def check_columns(tree: ClusterTree, table: Table | SparseTable) -> None:
    """Raise ValueError if a given tree is one of other columns."""
    if tree.n_features != table.n_features:
        raise ValueError(
            f"The tree given as init has {tree.n_features} features, but X has {table.n_features}."
        )
    if None not in (tree.feature_names, table.feature_names) and (
        list(tree.feature_names or ()) != list(table.feature_names or ())
    ):
        raise ValueError(
            "The tree given as init has other feature names than X, or in another order."
        )
