"""The tree as text, and the conditions that single rows met on their way through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from .._engine import ColumnData, LevelColumn
from .._util import FloatArray, format_count
from ..tree import (
    MAX_INDENT,
    MAX_TERMS,
    ClusterTree,
    Condition,
    HasTree,
    ObliqueCondition,
    as_tree,
    row_text,
    tree_text,
    walk_leaves,
)

RowValues = Callable[[int, int], object]
Values = npt.NDArray[np.generic] | Sequence[ColumnData] | RowValues
Conditions = list[Condition | ObliqueCondition]


def explain_rows(tree: ClusterTree | HasTree, leaf_ids: npt.ArrayLike, values: Values) -> list[str]:
    """Return for each row the conditions that lead to its cluster.

    Parameters
    ----------
    tree : ClusterTree, fitted estimator or tree of scikit-learn
        The tree.
    leaf_ids : array-like of int, shape (n_samples,)
        The leaf of each row, from `ClusterTree.apply`.
    values : ndarray of shape (n_samples, n_features), sequence of arrays, or callable
        The values of the rows: one array, one array per feature, or a function of the row number
        and the feature index. A missing cell is None or NaN; a level is its code or its text, a
        time its microseconds since 1970.

    Returns
    -------
    list of str
        One line per row, for instance ``cluster 3: income = 38.2 <= 41.5 and tenure = 7 > 5``.
        Redundant conditions are merged; of several allowed ranges only the row's own is written.
        Of a cell without a value: ``age is missing``, or ``region = "atlantis" (unknown level)``.
        Oblique tests are written with the row's score, for instance
        ``1.2·age − 0.8·income … and 12 more + 0.3 = 2.41 >= 0``: the terms of the largest
        shares (|weight| x standard deviation of the column) and the score, with three digits.

    Raises
    ------
    ValueError
        If a row's values do not lead to its leaf, or a weighted sum of them overflows.
    """
    tree = as_tree(tree)
    leaves = np.asarray(leaf_ids, dtype=np.int64)
    if leaves.ndim != 1:
        raise ValueError(f"leaf_ids must have one dimension. Got {leaves.ndim} instead.")
    conditions, values_of = met_conditions(tree, leaves, values)
    written: dict[int, str] = {}
    lines = []
    for row, leaf in enumerate(leaves.tolist()):
        try:
            text = row_text(tree, conditions[leaf], values_of(row), written)
        except ValueError as error:
            raise ValueError(f"Row {row} does not belong to leaf {leaf}: {error}.") from None
        lines.append(f"cluster {tree.cluster_name(int(tree.leaf_clusters[leaf]))}: {text}")
    return lines


def met_conditions(
    tree: ClusterTree, leaves: npt.NDArray[np.int64], values: Values
) -> tuple[dict[int, Conditions], Callable[[int], list[object]]]:
    """Return the conditions of some leaves, and what a row has where its leaf has conditions.

    A function of the row's number: by condition the value of the row, of a weighted sum its score.

    Raises
    ------
    ValueError
        If there is no such leaf, or a weighted sum overflows.
    """
    value_of = _value_getter(values)
    wanted = set(leaves.tolist())
    conditions = {leaf: path.conditions() for leaf, _, path in walk_leaves(tree) if leaf in wanted}
    if len(conditions) < len(wanted):
        unknown = min(wanted - conditions.keys())
        raise ValueError(f"leaf_ids holds {unknown}, which is not a leaf of the tree.")
    # Per oblique node the scores of the rows that pass it.
    scores: dict[int, FloatArray] = {}
    for leaf, met in conditions.items():
        for part in met:
            if isinstance(part, ObliqueCondition):
                rows = np.flatnonzero(leaves == leaf)
                found = np.asarray(part.score(partial(_cells, values, rows)))
                _check_scores(found, rows)
                scores.setdefault(part.node, np.empty(len(leaves)))[rows] = found

    def values_of(row: int) -> list[object]:
        return [
            scores[part.node][row]
            if isinstance(part, ObliqueCondition)
            else value_of(row, part.feature)
            for part in conditions[int(leaves[row])]
        ]

    return conditions, values_of


def export_text(
    tree: ClusterTree | HasTree,
    *,
    max_indent: int = MAX_INDENT,
    max_terms: int = MAX_TERMS,
    shares: bool = False,
) -> str:
    """Return the tree as text, one line per node.

    A line holds the test on the branch to the node, its rows, their share of all rows and its
    mistakes; at a leaf also its cluster, and the shares of the reference clusters if there are
    others. In a tree with moves, which has no mistakes, every node shows its cluster, in
    parentheses if it was split, and then the move and its gain. Of an oblique test the terms
    of the largest shares (|weight| x standard deviation of the column) are written, with three
    digits: `ClusterTree.rules` has them all.

    Parameters
    ----------
    tree : ClusterTree, fitted estimator or tree of scikit-learn
        The tree.
    max_indent : int, default=30
        Nodes deeper than this keep the indentation of this depth and show their depth in brackets
        instead, so that the text grows with the number of nodes and not with its square.
    max_terms : int, default=3
        Most terms of an oblique test to write, if it has at least two more; the number of the
        others follows them.
    shares : bool, default=False
        Whether to write the share of each term of an oblique test behind it: |weight| x standard
        deviation of the column among the rows of the fit, of the sum over the test's terms.

    Returns
    -------
    str
        Without a line break at the end.

    Raises
    ------
    ValueError
        If `shares` is True and the tree has oblique tests, but not the standard deviations.

    Examples
    --------
    >>> from treeclust_rs.tree import ClusterTree
    >>> tree = ClusterTree(
    ...     children_left=[1, -1, -1], children_right=[2, -1, -1], feature=[0, -2, -2],
    ...     threshold=[2.5, -2.0, -2.0], lower=[float("nan")] * 3, upper=[float("nan")] * 3,
    ...     kind=[1, 0, 0], impurity=[2.0, 0.0, 1.0], n_node_samples=[10, 4, 6],
    ...     weighted_n_node_samples=[10.0, 4.0, 6.0],
    ...     value=[[[0.5, 0.5]], [[1.0, 0.0]], [[1 / 6, 5 / 6]]], cluster=[0, 0, 1],
    ...     base_cluster=[-1, -1, -1], mistakes=[float("nan"), 0.0, 1.0], n_features=1,
    ...     feature_names=["age"], classes=[0, 1],
    ... )
    >>> print(export_text(tree))
    ClusterTree: 2 leaves, 2 clusters, depth 1, 10 rows
    <BLANKLINE>
                   rows    share  mistakes  cluster  rows by reference cluster
    all rows         10    100 %
    ├─ age <= 2.5     4   40.0 %         0  0
    └─ age > 2.5      6   60.0 %         1  1        1: 83.3 %, 0: 16.7 %
    """
    return tree_text(as_tree(tree), max_indent=max_indent, max_terms=max_terms, shares=shares)


def _check_scores(scores: FloatArray, rows: npt.NDArray[np.int64]) -> None:
    """Raise ValueError if the weighted sum of a test is too large for a row."""
    overflows = ~np.isfinite(scores)
    if overflows.any():
        n_rows = format_count(int(overflows.sum()), "row")
        raise ValueError(
            f"The weighted sum of a test overflows float64 in {n_rows}, the first in row "
            f"{rows[overflows.argmax()]} (counting from 0). Leave such rows out, or fit and "
            "explain in larger units."
        )


def _value_getter(values: Values) -> RowValues:
    if callable(values):
        return values
    if isinstance(values, np.ndarray):
        array = values
        return lambda row, feature: array[row, feature]
    columns = [column.codes if isinstance(column, LevelColumn) else column for column in values]
    return lambda row, feature: columns[feature][row]


def _cells(values: Values, rows: npt.NDArray[np.int64], feature: int) -> FloatArray:
    """Return the values of some rows in one feature."""
    if callable(values):
        numbers = [float(values(row, feature)) for row in rows.tolist()]  # type: ignore[arg-type]
        return np.array(numbers)
    column = values[:, feature] if isinstance(values, np.ndarray) else values[feature]
    assert not isinstance(column, LevelColumn), "oblique tests are on numbers"
    return np.asarray(column[rows], dtype=np.float64)
