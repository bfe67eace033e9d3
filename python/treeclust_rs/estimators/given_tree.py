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
    if is_sklearn_tree(init) and not hasattr(init, "tree_"):
        name = type(init).__name__
        raise ValueError(
            f"init is a {name} that is not fitted. scikit-learn's clone, which GridSearchCV, "
            "Pipelines and treeclust_rs.compare use, makes such ones of those that are: give its "
            "tree, init=treeclust_rs.tree.from_sklearn(...), which is kept."
        )
    tree = as_tree(init)
    return tree if tree.oblique_indptr is not None else tree.to_threshold()


def check_columns(tree: ClusterTree, table: Table | SparseTable) -> None:
    """Raise ValueError if a given tree is one of other columns."""
    if tree.n_features != table.n_features:
        raise ValueError(
            f"The tree given as init has {tree.n_features} features, but X has {table.n_features}."
        )
    if tree.feature_names is None or table.feature_names is None:
        return
    for place, (own, given) in enumerate(zip(tree.feature_names, table.feature_names, strict=True)):
        if own != given:
            raise ValueError(
                f"The tree given as init has {own!r} as column {place} (counting from 0), but X "
                f"has {given!r}: select the columns in the order of the tree's feature_names, or "
                "rename them."
            )
