"""The tree of whatever has one."""

from __future__ import annotations

from typing import Protocol

from sklearn.utils.validation import check_is_fitted

from .cluster_tree import ClusterTree
from .from_sklearn import from_sklearn, is_sklearn_tree


class HasTree(Protocol):
    """A fitted estimator whose result is a tree."""

    tree_: ClusterTree


def as_tree(tree: ClusterTree | HasTree, *, method: str | None = None) -> ClusterTree:
    """Return a tree itself, the one of a fitted estimator, or what `from_sklearn` makes of one.

    A class of estimators may declare the fitted attribute that holds its result, ``_fitted_by``,
    and, if that is not a tree, where its rules are, ``_rules_are``. `method` names what such
    estimators may have in the place of the function that asks for the tree.

    Raises
    ------
    NotFittedError
        If the estimator's class declares a tree, and the estimator is not fitted yet.
    TypeError
        If there is no tree.
    """
    if isinstance(tree, ClusterTree):
        return tree
    if getattr(type(tree), "_fitted_by", None) == "tree_":
        check_is_fitted(tree, "tree_")
    fitted = getattr(tree, "tree_", None)
    if isinstance(fitted, ClusterTree):
        return fitted
    if is_sklearn_tree(tree):
        return from_sklearn(tree)
    name = type(tree).__name__
    rules_are = getattr(type(tree), "_rules_are", None)
    if rules_are is not None:
        instead = f" Use the model's own method {method}." if hasattr(tree, method or "") else ""
        raise TypeError(f"{name} has no tree: its rules are {rules_are}.{instead}")
    raise TypeError(
        f"tree must be a ClusterTree, or a fitted estimator that has one as `tree_`. Got {name} "
        "instead."
    )
