"""A tree as comparisons of columns with thresholds: what scikit-learn's trees and ONNX can hold.

Tests on numbers are such comparisons, those on intervals two of them. All other tests (levels,
times, missing cells of such columns, weighted sums) become columns of zeros and ones, which say
whether a condition holds; the tree compares them with one half. A test on a single level is the
column of its level in a one-hot encoding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._util import BoolArray, FloatArray, IntArray
from ..tree import (
    INTERVAL,
    LEAF,
    LEVELS,
    MAX_TERMS,
    MISSING,
    OBLIQUE,
    ClusterTree,
    Condition,
    ObliqueCondition,
    branch_condition,
)
from ..tree.reshape import expand_intervals

_MAX_FLOAT32 = float(np.finfo(np.float32).max)


@dataclass(frozen=True, eq=False)
class ThresholdForm:
    """A tree as arrays of scikit-learn's form; its nodes are those of `tree`.

    Rows with ``column <= threshold`` go to the left child, NaN as `missing_go_to_left` says.
    """

    tree: ClusterTree
    """Without intervals."""
    columns: tuple[int | Condition | ObliqueCondition, ...]
    """What is compared: columns of numbers by their index, then whether sums are at least 0, then
    whether other conditions hold."""
    column: IntArray
    """By node the place in `columns`; -2 at leaves."""
    threshold: FloatArray
    """-2 at leaves; inf where missing cells of a column of numbers go right, all others left."""
    children_left: IntArray
    children_right: IntArray
    missing_go_to_left: BoolArray
    has_copies: bool
    """Whether intervals made copies of nodes."""

    @classmethod
    def of(cls, tree: ClusterTree) -> ThresholdForm:
        """Return the form of a tree.

        If all tests compare single numbers, and the table has only numbers, the columns are all
        those of the table, else those that are tested.

        Raises ValueError if its intervals take more than 200,000 nodes.
        """
        has_copies = bool((tree.kind == INTERVAL).any())
        if has_copies:
            tree = ClusterTree(**expand_intervals(tree))
        is_number = np.array([_is_number(tree, node) for node in range(tree.n_nodes)])
        if tree.column_kinds is None and tree.oblique_indptr is None:
            numbers = list(range(tree.n_features))
        else:
            numbers = np.unique(tree.feature[is_number]).tolist()
        columns: dict[Any, Any] = {feature: feature for feature in numbers}
        places = {feature: place for place, feature in enumerate(columns)}
        column = np.full(tree.n_nodes, -2)
        threshold = np.where(tree.kind == LEAF, -2.0, 0.5)
        left, right = tree.children_left.copy(), tree.children_right.copy()
        goes_left = np.zeros(tree.n_nodes, dtype=bool)
        # Sums before the other conditions.
        inner = np.flatnonzero(tree.kind != LEAF)
        for node in inner[np.argsort(tree.kind[inner] != OBLIQUE, kind="stable")].tolist():
            key: Any = int(tree.feature[node])
            swapped = bool(tree.kind[node] == MISSING)
            if not is_number[node]:
                swapped = _is_left(tree, node)
                condition = branch_condition(tree, node, swapped)
                missing = isinstance(condition, Condition) and condition.missing
                key = condition, missing  # which equality of conditions ignores
                columns[key] = condition
            else:
                threshold[node] = math.inf if swapped else tree.threshold[node]
                if tree.missing_go_to_left is not None:
                    goes_left[node] = not swapped and tree.missing_go_to_left[node]
            if swapped:
                left[node], right[node] = right[node], left[node]
            column[node] = places.setdefault(key, len(places))
        return cls(
            tree, tuple(columns.values()), column, threshold, left, right, goes_left, has_copies
        )

    @property
    def has_table_columns(self) -> bool:
        """Whether the columns are all those of the table."""
        return self.columns == tuple(range(self.tree.n_features))

    def names(self) -> list[str]:
        """Return the names of the columns: ``age``, ``region=north``, ``signup > 2024-03-01``."""
        names = self.tree.feature_names
        return [
            (f"x{column}" if names is None else names[column])
            if isinstance(column, int)
            else _condition_name(self.tree, column)
            for column in self.columns
        ]

    def check_float32(self, reader: str, way_out: str) -> None:
        """Raise ValueError if float32 moves a fitted value across its threshold.

        Parameters
        ----------
        reader : str
            What compares in float32, for the message.
        way_out : str
            What else to do, for the message.

        Raises
        ------
        ValueError
            Names the first node where one of the values beside its threshold, as float32, lies on
            the other side; or whose threshold is beyond float32. Where the tree does not know the
            values beside a threshold, only the latter is checked.
        """
        tree = self.tree
        unknown = np.full(tree.n_nodes, math.nan)
        below, above = (unknown if side is None else side for side in (tree.below, tree.above))
        with np.errstate(over="ignore"):
            moved_up = below.astype(np.float32) > self.threshold
            moved_down = above.astype(np.float32) <= self.threshold
        is_number = np.isfinite(self.threshold) & [
            place >= 0 and isinstance(self.columns[place], int) for place in self.column.tolist()
        ]
        is_beyond = np.abs(self.threshold) > _MAX_FLOAT32
        wrong = np.flatnonzero(is_number & (moved_up | moved_down | is_beyond))
        if not len(wrong):
            return
        node = int(wrong[0])
        name, threshold = tree.feature_name(int(tree.feature[node])), float(self.threshold[node])
        value = float(below[node] if moved_up[node] else above[node])
        what = "which is beyond float32"
        if moved_up[node] or moved_down[node]:
            with np.errstate(over="ignore"):
                moved = float(np.float32(value))
            what = f"and {value!r} of the fit becomes {moved!r} in float32, beyond the threshold"
        where = "the tree by to_threshold()" if self.has_copies else "the tree"
        raise ValueError(
            f"Node {node} of {where} tests {name} <= {threshold!r}, {what}: {reader} compares in "
            f"float32. Fit on {name} less a constant, or in other units; or {way_out}."
        )


def _is_number(tree: ClusterTree, node: int) -> bool:
    """Whether a node compares a single number, or tests whether one is missing."""
    if tree.kind[node] in (LEAF, OBLIQUE, LEVELS):
        return False
    return tree.column(int(tree.feature[node])).kind == "number"


def _is_left(tree: ClusterTree, node: int) -> bool:
    """Whether the condition of the left branch is the plainer one.

    The shorter list of levels, a flag that is true, times after another, missing cells, and sums
    of at least 0.
    """
    if tree.kind[node] != LEVELS:
        return bool(tree.kind[node] == MISSING)
    column, codes = tree.column(int(tree.feature[node])), tree.level_test(node)
    if column.kind == "flag" and len(codes) == 1:
        return bool(codes[0] == 1)
    return 2 * len(codes) <= len(column.levels)


def _condition_name(tree: ClusterTree, condition: Condition | ObliqueCondition) -> str:
    if isinstance(condition, ObliqueCondition):
        return condition.text(tree.feature_name, MAX_TERMS, short=True)
    name, column = tree.feature_name(condition.feature), condition.column
    text = condition.text(name)
    if condition.codes is not None and len(condition.codes) == 1 and column.kind == "levels":
        text = f"{name}={column.levels[condition.codes[0]]}"
        text += " or missing" if condition.or_missing else ""
    # Of columns without gaps in the fit texts do not say where missing cells go.
    says_missing = condition.or_missing or condition.is_empty
    return f"{text} or missing" if condition.missing and not says_missing else text
