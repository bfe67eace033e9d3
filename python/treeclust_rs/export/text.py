"""The tree as text, and the conditions that single rows met on their way through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from .._util.arrays import FloatArray
from ..tree.cluster_tree import ClusterTree, HasTree, as_tree
from ..tree.conditions import ObliqueCondition, row_text, walk_leaves
from ..tree.text import export_text

__all__ = ["explain_rows", "export_text"]

RowValues = Callable[[int, int], object]
Values = npt.NDArray[np.generic] | Sequence[npt.NDArray[np.generic]] | RowValues


def explain_rows(
    tree: ClusterTree | HasTree,
    leaf_ids: npt.ArrayLike,
    values: Values,
) -> list[str]:
    """Say for each row which conditions took it to its cluster.

    Parameters
    ----------
    tree : ClusterTree or fitted estimator
        The tree.
    leaf_ids : array-like of int, shape (n_samples,)
        The leaf each row reaches, as `ClusterTree.apply` gives it.
    values : ndarray of shape (n_samples, n_features), sequence of arrays, or callable
        The rows' own values: one array, one array per feature, or a function of the row number and
        the feature index.

    Returns
    -------
    list of str
        One line per row, for instance ``cluster 3: income = 38.2 <= 41.5 and tenure = 7 > 5``.
        Redundant conditions are merged; of several allowed ranges only the row's own is written.
        Oblique tests stand with the row's score, for instance
        ``1.2·age − 0.8·income … and 12 more + 0.3 = 2.41 >= 0``: of the weights the largest, with
        three digits like the score.

    Raises
    ------
    ValueError
        If a row's values do not lead to the leaf given for it.
    """
    tree = as_tree(tree)
    leaves = np.asarray(leaf_ids, dtype=np.int64)
    if leaves.ndim != 1:
        raise ValueError(f"leaf_ids must have one dimension. Got {leaves.ndim} instead.")
    value_of = _value_getter(values)
    wanted = set(leaves.tolist())
    conditions = {leaf: path.conditions() for leaf, _, path in walk_leaves(tree) if leaf in wanted}
    if len(conditions) < len(wanted):
        unknown = min(wanted - conditions.keys())
        raise ValueError(f"leaf_ids holds {unknown}, which is no leaf of the tree.")
    # Per oblique node the scores of the rows that pass it.
    scores: dict[int, FloatArray] = {}
    for leaf, met in conditions.items():
        for part in met:
            if isinstance(part, ObliqueCondition):
                rows = np.flatnonzero(leaves == leaf)
                column = partial(_cells, values, rows)
                scores.setdefault(part.node, np.empty(len(leaves)))[rows] = part.score(column)
    written: dict[int, str] = {}
    lines = []
    for row, leaf in enumerate(leaves.tolist()):
        found: list[object] = [
            scores[part.node][row]
            if isinstance(part, ObliqueCondition)
            else value_of(row, part.feature)
            for part in conditions[leaf]
        ]
        try:
            text = row_text(tree, conditions[leaf], found, written)
        except ValueError as error:
            raise ValueError(f"Row {row} does not belong to leaf {leaf}: {error}.") from None
        lines.append(f"cluster {tree.cluster_name(int(tree.leaf_clusters[leaf]))}: {text}")
    return lines


def _value_getter(values: Values) -> RowValues:
    if callable(values):
        return values
    if isinstance(values, np.ndarray):
        array = values
        return lambda row, feature: array[row, feature]
    columns = values
    return lambda row, feature: columns[feature][row]


def _cells(values: Values, rows: npt.NDArray[np.int64], feature: int) -> FloatArray:
    """Give the cells of some rows in one feature."""
    if callable(values):
        numbers = [float(values(row, feature)) for row in rows.tolist()]  # type: ignore[arg-type]
        return np.array(numbers)
    cells = values[rows, feature] if isinstance(values, np.ndarray) else values[feature][rows]
    return cells.astype(np.float64)
