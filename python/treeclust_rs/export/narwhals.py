"""The tree as an expression of narwhals: polars, pandas, pyarrow, DuckDB, Dask, Ibis and Spark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from .._data.times import zone_of
from ..tree import ClusterTree, HasTree, as_tree
from ..tree.columns import Column, whole_microsecond
from .expressions import CellLabels, Language, cells_expression, tree_expression, written

if TYPE_CHECKING:
    import narwhals as nw

# Narwhals walks an expression by recursion: with Python's limit of 1,000 calls a chain of 160 tests
# passes and one of 300 does not; a sum of 100 terms passes and one of 300 does not. 4,096 leaves
# take 4 s on 1,000 rows of pandas, and 30 s on Dask.
_MAX_NESTING = 120
_MAX_LEAVES = 4_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_narwhals_expr(tree: ClusterTree | HasTree) -> nw.Expr:
    """Return the tree as an expression of narwhals, which must be installed.

    Its value is the cluster label of each row, for frames of polars, pandas, pyarrow, DuckDB, Dask,
    Ibis and Spark: ``nw.from_native(frame).with_columns(expression).to_native()``. Columns of
    numbers are cast to Float64, and weighted sums are added in order, as in `predict`; levels are
    compared as text, and flags too (0 and 1 are flags as well). A null or NaN takes the way of
    `missing_go_to_left`, and a level that the fit did not have too; in a tree without it a null or
    NaN in any column that it tests makes the label null. Infinite cells are taken as numbers.

    Times with a zone must have the zone of the fit. Not all libraries compare all times: Ibis has
    no durations, and takes a time that clocks show twice for the first of both; DuckDB has no
    nanoseconds in a zone; Spark compares dates and times without a zone rightly only in a session
    whose time zone is that of Python, and takes no columns with dots in their names. pyarrow, also
    below pandas, ends with an error on integers beyond 2**53, which are no floats, and of decimals
    it does not always make the nearest float, so that cells exactly on a threshold may go right:
    there cast such columns to text and then to Float64 first. Where objects of pandas mix booleans
    and text, the booleans are texts that the fit did not have.

    Parameters
    ----------
    tree : ClusterTree, fitted estimator or tree of scikit-learn
        The tree. Without feature names the columns of the frame must be named x0, x1, ...

    Returns
    -------
    narwhals.Expr
        Named ``cluster``; of type Int64 or String, as the cluster labels are.

    Raises
    ------
    ImportError
        If narwhals is not installed.
    ValueError
        If the tree has more than 4,000 leaves, or a node whose depth and number of features come to
        more than 120 together: narwhals is slow on such expressions, or ends in a RecursionError;
        if the name of a tested column is a pattern to polars, ``*`` or ``^...$``.
    """
    tree = as_tree(tree, method="to_narwhals")
    _check_size(int((tree.node_depth + tree.n_node_features).max()), tree.n_leaves)
    language = _Narwhals(tree.feature_names, tree.classes)
    return tree_expression(tree, language).alias("cluster")


def cells_to_narwhals_expr(table: CellLabels) -> nw.Expr:
    """Return a table of cells as `to_narwhals_expr` a tree."""
    _check_size(sum(map(len, table.cuts)), len(table.labels))
    language = _Narwhals(table.names, table.labels)
    return cells_expression(table, language).alias("cluster")


def _check_size(nesting: int, n_leaves: int) -> None:
    """Raise ValueError if there are too many leaves, or tests and terms on a path."""
    if nesting > _MAX_NESTING or n_leaves > _MAX_LEAVES:
        raise ValueError(
            f"{n_leaves:,} leaves or cells, nested {nesting:,} deep (tests and terms of sums), are "
            f"too many for an expression of narwhals (at most {_MAX_LEAVES:,}, nested "
            f"{_MAX_NESTING} deep). Use model.predict(frame) instead, or a smaller model."
        )


class _Narwhals(Language["nw.Expr"]):
    """Expressions of narwhals."""

    def __init__(self, names: Sequence[str] | None, labels: Sequence[int | str]) -> None:
        try:
            import narwhals
        except ImportError as error:
            raise ImportError(
                "Expressions of narwhals need narwhals: pip install narwhals."
            ) from error
        self.names, self._nw = names, narwhals
        self._label_type = narwhals.String if isinstance(labels[0], str) else narwhals.Int64

    def cells(self, feature: int, column: Column) -> nw.Expr:
        name = self.name(feature)
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise ValueError(
                f"In frames of polars narwhals takes the name {name!r} for a pattern. Rename the "
                "column and fit again, or use the expression of polars."
            )
        cells = self._nw.col(name)
        if column.kind == "date":
            return cells.cast(self._nw.Datetime("us"))
        return cells if column.is_time or column.has_levels else cells.cast(self._nw.Float64)

    def label(self, label: int | str) -> nw.Expr:
        return self._nw.lit(label, dtype=self._label_type)

    def is_missing(self, cells: nw.Expr, column: Column) -> nw.Expr:
        if column.is_time or column.has_levels:
            return cells.is_null()
        return cells.is_null() | cells.is_nan().fill_null(True)

    def is_in(self, cells: nw.Expr, column: Column, levels: list[str]) -> nw.Expr:
        if not levels:
            return cells.is_null() & ~cells.is_null()
        texts = cells.cast(self._nw.String)
        # Objects and categories of pandas, and texts that Dask makes of them, are True and False.
        texts = texts.str.to_lowercase() if column.kind == "flag" else texts
        return texts.is_in(written(column, levels)).fill_null(False) & ~cells.is_null()

    def at_most(self, cells: nw.Expr, column: Column, time: float) -> nw.Expr:
        # Nanoseconds belong to the microsecond before them.
        end = whole_microsecond(time, up=False) + 1
        below, millisecond = cells < self._time(column, end), (end - 1) // 1000 * 1000
        if end % 1000 == 0:
            return below
        # Polars cuts bounds off to the milliseconds of a column, which whole ones survive.
        below &= cells < self._time(column, millisecond + 1000)
        return below | (cells <= self._time(column, millisecond))

    def at_least(self, cells: nw.Expr, column: Column, time: float) -> nw.Expr:
        start = whole_microsecond(time, up=True)
        above, millisecond = cells >= self._time(column, start), -(-start // 1000) * 1000
        if start == millisecond:
            return above
        above &= cells > self._time(column, millisecond - 1000)
        return above | (cells >= self._time(column, millisecond))

    def _time(self, column: Column, time: int) -> nw.Expr:
        value = timedelta(microseconds=time)
        if column.kind == "duration":
            return self._nw.lit(value)
        zone = zone_of(column.kind)
        moment = (
            (_EPOCH + value).astimezone(zone) if zone else (_EPOCH + value).replace(tzinfo=None)
        )
        return self._nw.lit(moment)

    def choose(self, test: nw.Expr, left: nw.Expr, right: nw.Expr) -> nw.Expr:
        return self._nw.when(test.fill_null(False)).then(left).otherwise(right)

    def unless(self, tests: list[nw.Expr], value: nw.Expr) -> nw.Expr:
        missing = self._nw.any_horizontal(*tests, ignore_nulls=True)
        return self._nw.when(~missing).then(value)
