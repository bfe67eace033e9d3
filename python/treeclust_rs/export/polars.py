"""The tree as a native polars expression."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import polars as pl
import polars.selectors as cs

from ..tree import INTERVAL, LEAF, LEVELS, MISSING, OBLIQUE, ClusterTree, HasTree, as_tree
from ..tree.columns import NUMBERS, Column, day_of, whole_microsecond

# Polars walks an expression by recursion and plans it in time quadratic in its depth. Measured with
# polars 2.1: a chain of 350 tests passes in a thread with 128 KiB of stack and one of 500 crashes
# there (with 256 KiB: 500 and 1,000); one of 500 takes 0.3 s, of 2,000 8 s, of 4,000 34 s, mostly
# planning. A balanced tree of 16,384 leaves takes 1.7 s for 100,000 rows.
_MAX_DEPTH = 200
_MAX_LEAVES = 10_000
# A sum is a chain too: one of 800 terms passes with 128 KiB, one of 600 below 199 tests. Planning
# takes some 2 microseconds times the square of a test's terms: 2.4 s for 15 tests of 300 features.
_MAX_TERMS = 500
_MAX_SQUARES = 10_000_000


def to_polars_expr(tree: ClusterTree | HasTree) -> pl.Expr:
    """Return the tree as a native polars expression.

    Its value is the cluster label of each row, in eager and lazy frames and in the streaming
    engine, without calls of Python. Columns of numbers are cast to Float64, and weighted sums are
    added in order, as in `predict`; levels and flags are compared as text, times in the
    microseconds of their own type, and dates by day. A null or NaN takes the way of
    `missing_go_to_left`, and a level that the fit did not have too; in a tree without it a null or
    NaN in any column that it tests makes the label null. Other columns are not read. An expression
    cannot refuse what `predict` does: infinite cells, and where the tree compares numbers dates and
    texts of numbers, are taken for the numbers they are cast to.

    Parameters
    ----------
    tree : ClusterTree, fitted estimator or tree of scikit-learn
        The tree. Without feature names the columns of the frame must be named x0, x1, ...

    Returns
    -------
    polars.Expr
        Named ``cluster``; of type Int64 or String, as the cluster labels are.

    Raises
    ------
    ValueError
        If the tree is deeper than 200 or has more than 10,000 leaves; if an oblique test has more
        than 500 features, or the squares of the tests' numbers of features add up to more than 10
        million: polars is slow on such expressions, or overflows its stack. Use `predict` of the
        model there.
    """
    tree = as_tree(tree)
    if tree.max_depth > _MAX_DEPTH or tree.n_leaves > _MAX_LEAVES:
        raise ValueError(
            f"A tree of depth {tree.max_depth:,} with {tree.n_leaves:,} leaves is too large for a "
            f"polars expression (at most depth {_MAX_DEPTH} and {_MAX_LEAVES:,} leaves). Use "
            "model.predict(frame) instead, or a smaller tree by truncate(m)."
        )
    sizes = tree.n_node_features
    if sizes.max() > _MAX_TERMS or (sizes**2).sum() > _MAX_SQUARES:
        raise ValueError(
            f"A tree whose tests use up to {sizes.max():,} features, {sizes.sum():,} in all, is "
            f"too large for a polars expression (at most {_MAX_TERMS} in one test, and "
            f"{_MAX_SQUARES:,} as the sum of the squares). Use model.predict(frame) instead, or a "
            "sparser tree."
        )
    label_type = pl.String if isinstance(tree.classes[0], str) else pl.Int64
    # Children come after their parents: backwards, both children are done before their parent.
    done: dict[int, pl.Expr] = {}
    columns: dict[int, pl.Expr] = {}

    def column(feature: int) -> pl.Expr:
        if feature not in columns:
            columns[feature] = column_expr(tree.feature_names, feature, tree.column(feature))
        return columns[feature]

    for node in range(tree.n_nodes - 1, -1, -1):
        if tree.kind[node] == LEAF:
            label = tree.classes[tree.leaf_clusters[node]]
            done[node] = pl.lit(label, dtype=label_type)
            continue
        if tree.kind[node] == OBLIQUE:
            # Term by term, as in the core: another order of additions has other last bits.
            features, weights, bias = tree.oblique_test(node)
            score: pl.Expr | float = bias
            for feature, weight in zip(features.tolist(), weights.tolist(), strict=True):
                score = score + weight * column(feature)
            test = score < 0.0
        else:
            test = _test_expr(tree, node, column(int(tree.feature[node])))
        left = int(tree.children_left[node])
        done[node] = pl.when(test).then(done.pop(left)).otherwise(done.pop(left + 1))
    if not columns:
        label = tree.classes[tree.leaf_clusters[0]]
        return pl.repeat(label, pl.len(), dtype=label_type).alias("cluster")
    if tree.missing_go_to_left is not None:
        return done[0].alias("cluster")
    missing = pl.any_horizontal(
        [_missing_expr(tree.column(feature), columns[feature]) for feature in sorted(columns)]
    )
    nothing = pl.lit(None, dtype=label_type)
    return pl.when(missing).then(nothing).otherwise(done[0]).alias("cluster")


def _test_expr(tree: ClusterTree, node: int, cells: pl.Expr) -> pl.Expr:
    """Return whether rows go left at a node; null, for right, only where the cell is missing."""
    kind, column = int(tree.kind[node]), tree.column(int(tree.feature[node]))
    missing_left = tree.missing_go_to_left is not None and bool(tree.missing_go_to_left[node])
    if column.has_levels:
        left = set(tree.level_test(node).tolist()) if kind == LEVELS else set()
        # A level that the fit did not have is in neither list.
        listed = [
            level for code, level in enumerate(column.levels) if (code in left) != missing_left
        ]
        found = cells.is_in(listed) if listed else cells.is_null() & False
        return (~found).fill_null(True) if missing_left else found
    missing = _missing_expr(column, cells)
    if kind == MISSING:
        return missing
    if kind == INTERVAL:
        lower, upper = float(tree.lower[node]), float(tree.upper[node])
        test = _at_least(column, cells, lower) & _at_most(column, cells, upper)
    else:
        test = _at_most(column, cells, float(tree.threshold[node]))
    return missing | test if missing_left else test


def _missing_expr(column: Column, cells: pl.Expr) -> pl.Expr:
    """Return whether cells are missing; never null."""
    is_number = not (column.has_levels or column.is_time)
    return cells.is_nan().fill_null(True) if is_number else cells.is_null()


def _at_most(column: Column, cells: pl.Expr, value: float) -> pl.Expr:
    """Return whether cells are at most a value of the column."""
    if not column.is_time:
        return cells <= value
    if column.kind == "date":
        return cells <= day_of(value, up=False)
    time = whole_microsecond(value, up=False)
    if column.kind == "duration":  # whose nanoseconds belong to the microsecond before them
        return cells < pl.lit(timedelta(microseconds=time + 1), dtype=pl.Duration("us"))
    return cells <= time


def _at_least(column: Column, cells: pl.Expr, value: float) -> pl.Expr:
    """Return whether cells are at least a value of the column."""
    if not column.is_time:
        return cells >= value
    if column.kind == "date":
        return cells >= day_of(value, up=True)
    time = whole_microsecond(value, up=True)
    if column.kind == "duration":
        return cells >= pl.lit(timedelta(microseconds=time), dtype=pl.Duration("us"))
    return cells >= time


def column_expr(names: Sequence[str] | None, feature: int, described: Column = NUMBERS) -> pl.Expr:
    """Return a column as tests compare it, whatever characters its name has.

    Numbers as Float64, levels and flags as String, dates as Date, times with a time of day as whole
    microseconds since 1970, durations as they are. Without names the columns are x0, x1, ...
    """
    name = f"x{feature}" if names is None else names[feature]
    # pl.col reads "*" and "^...$" as patterns; a selector takes names literally.
    is_pattern = name == "*" or (name.startswith("^") and name.endswith("$"))
    column = cs.by_name(name).as_expr() if is_pattern else pl.col(name)
    if described.kind.startswith("datetime"):
        return column.dt.timestamp("us")
    if described.kind == "duration":
        return column
    if described.has_levels:
        return column.cast(pl.String)
    return column.cast(pl.Date if described.kind == "date" else pl.Float64)
