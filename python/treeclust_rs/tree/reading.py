"""Rows for a fitted tree: read into its columns, and compared with those of the fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._data import FittedColumns, Table, align_table, check_finite, count_gaps
from .._util import IntArray
from .cluster_tree import ClusterTree


def read_rows(
    tree: ClusterTree,
    X: Any,
    *,
    estimator_name: str,
    needed: IntArray | None = None,
    names_given: bool = False,
    missing: bool = True,
    check: bool = True,
    n_jobs: int = 1,
) -> Table:
    """Return rows as a table with the columns of the fit.

    The parameters are those of `align_table`. `missing`: whether cells may be missing, where the
    tree has directions for them. `check`: whether to look at all cells: missing ones are counted,
    and it is a ValueError where a cell must not be NaN or inf and is.
    """
    takes_missing = missing and tree.missing_go_to_left is not None
    table = align_table(
        X,
        tree.feature_names,
        tree.n_features,
        estimator_name=estimator_name,
        needed=needed,
        names_given=names_given,
        fitted=FittedColumns(tree.column_kinds, tree.levels) if takes_missing else None,
    )
    if not check:
        return table
    if takes_missing:
        return count_gaps(table, n_jobs, needed)
    check_finite(table, n_jobs, needed)
    return table


def are_of_fit(tree: ClusterTree, leaves: IntArray, labels: Any = None) -> bool:
    """Return whether rows are those of the fit, as far as the tree tells.

    `leaves`: the leaf of each row. `labels`: the labels of the rows of the fit, where the model has
    them: of rows that do not count the tree knows nothing.
    """
    if labels is not None and np.array_equal(np.asarray(labels), tree.leaf_labels[leaves]):
        return True
    counts = np.bincount(leaves, minlength=tree.n_nodes)[tree.leaves]
    return np.array_equal(counts, tree.n_node_samples[tree.leaves])
