"""The tree as a native polars expression, and as Python code that builds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import polars.selectors as cs

from ..tree import ClusterTree, HasTree, as_tree
from ..tree.columns import NUMBERS, Column, day_of, whole_microsecond
from ..tree.labels import Classes
from .expressions import Language, tree_expression, written

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
    added in order, as in `predict`; levels and flags are compared as text (0 and 1 are flags, too),
    times in whole microseconds, and dates by day. A null or NaN takes the way of
    `missing_go_to_left`, and a level that the fit did not have too; in a tree without it a null or
    NaN in any column that it tests makes the label null. Other columns are not read. An expression
    cannot refuse what `predict` does: infinite cells, and where the tree compares numbers dates and
    texts of numbers, are taken for the numbers they are cast to; whole numbers in the place of
    dates, as years, for days since 1970.

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
    expression: pl.Expr = _expression(as_tree(tree, method="to_polars"), pl, cs)
    return expression


def to_polars_code(tree: ClusterTree | HasTree) -> str:
    """Return the expression of `to_polars_expr` as Python code, for jobs without this package.

    Parameters
    ----------
    tree : ClusterTree, fitted estimator or tree of scikit-learn
        The tree. Without feature names the columns of the frame must be named x0, x1, ...

    Returns
    -------
    str
        A module that needs polars alone and defines `cluster`, for instance for
        ``frame.with_columns(cluster)``: an assignment for each column and each test.

    Raises
    ------
    ValueError
        As `to_polars_expr`.
    """
    lines: list[str] = []
    tree = as_tree(tree, method="to_polars_code")
    expression = _expression(tree, _Code("pl"), _Code("cs"), lines)
    code = "\n".join([*lines, f"cluster = {expression!r}", ""])
    header = ["# The cluster of a row, written by treeclust_rs: frame.with_columns(cluster)"]
    if "datetime." in code:
        header += ["import datetime", ""]
    header.append("import polars as pl")
    if "cs." in code:
        header.append("import polars.selectors as cs")
    return "\n".join([*header, "", code])


def _expression(tree: ClusterTree, pl: Any, cs: Any, lines: list[str] | None = None) -> Any:
    """Return the tree as an expression of polars, or as code that is added to `lines`."""
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
    if tree.n_leaves == 1:
        label = tree.classes[tree.leaf_clusters[0]]
        return pl.repeat(label, pl.len(), dtype=label_type).alias("cluster")
    language = _Polars(tree.feature_names, label_type, pl, cs, lines)
    return tree_expression(tree, language).alias("cluster")


def label_type(labels: Classes) -> type[pl.String | pl.Int64]:
    """Return the type of labels in polars."""
    return pl.String if isinstance(labels[0], str) else pl.Int64


def _operator(form: str) -> Callable[[_Code, Any], _Code]:
    """Return an operator of code; its form names the two sides `own` and `other`."""
    return lambda code, other: _Code(form.format(own=code, other=repr(other)))


class _Code:
    """Python code of an expression: what is called, compared or added becomes text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    def __getattr__(self, name: str) -> _Code:
        return _Code(f"{self}.{name}")

    def __call__(self, *arguments: Any, **named: Any) -> _Code:
        texts = [*map(repr, arguments), *(f"{name}={value!r}" for name, value in named.items())]
        return _Code(f"{self}({', '.join(texts)})")

    def __invert__(self) -> _Code:
        return _Code(f"(~{self})")

    __le__ = _operator("({own} <= {other})")
    __lt__ = _operator("({own} < {other})")
    __ge__ = _operator("({own} >= {other})")
    __and__ = _operator("({own} & {other})")
    __or__ = _operator("({own} | {other})")
    __floordiv__ = _operator("({own} // {other})")
    __add__ = _operator("({own} + {other})")
    __radd__ = _operator("({other} + {own})")
    __rmul__ = _operator("({other} * {own})")


class _Polars(Language[Any]):
    """Expressions of polars, or code for them: `pl` and `cs` are the modules or their names."""

    def __init__(
        self,
        names: Sequence[str] | None,
        label_type: Any,
        pl: Any,
        cs: Any,
        lines: list[str] | None,
    ) -> None:
        self.names, self._label_type, self._pl, self._cs = names, label_type, pl, cs
        self._lines = lines

    def _named(self, expression: Any, name: str) -> Any:
        """Return an expression, or the name that a line of code assigns it to."""
        if self._lines is None:
            return expression
        name = f"{name}_{len(self._lines) + 1}"
        self._lines.append(f"{name} = {expression!r}")
        return _Code(name)

    def cells(self, feature: int, column: Column) -> Any:
        name = self.name(feature)
        return self._named(_column(self._pl, self._cs, name, column), "column")

    def label(self, label: int | str) -> Any:
        return self._pl.lit(label, dtype=self._label_type)

    def is_missing(self, cells: Any, column: Column) -> Any:
        is_number = not (column.has_levels or column.is_time)
        return cells.is_nan().fill_null(True) if is_number else cells.is_null()

    def is_in(self, cells: Any, column: Column, levels: list[str]) -> Any:
        if not levels:
            return cells.is_null() & False
        # Python and pandas write True and False.
        texts = cells.str.to_lowercase() if column.kind == "flag" else cells
        return texts.is_in(written(column, levels)).fill_null(False)

    def at_most(self, cells: Any, column: Column, time: float) -> Any:
        if column.kind == "date":
            return cells <= day_of(time, up=False)
        return cells <= whole_microsecond(time, up=False)

    def at_least(self, cells: Any, column: Column, time: float) -> Any:
        if column.kind == "date":
            return cells >= day_of(time, up=True)
        return cells >= whole_microsecond(time, up=True)

    def choose(self, test: Any, left: Any, right: Any) -> Any:
        chosen = self._pl.when(test).then(left).otherwise(right)
        return self._named(chosen, "part")

    def unless(self, tests: list[Any], value: Any) -> Any:
        nothing = self._pl.lit(None, dtype=self._label_type)
        return self._pl.when(self._pl.any_horizontal(tests)).then(nothing).otherwise(value)


def column_expr(names: Sequence[str] | None, feature: int, described: Column = NUMBERS) -> pl.Expr:
    """Return a column as tests compare it, whatever characters its name has.

    Numbers as Float64, levels and flags as String, dates as Date, other times as whole microseconds
    (since 1970, or of a duration). Without names the columns are x0, x1, ...
    """
    name = f"x{feature}" if names is None else names[feature]
    expression: pl.Expr = _column(pl, cs, name, described)
    return expression


def _column(pl: Any, cs: Any, name: str, described: Column) -> Any:
    # pl.col reads "*" and "^...$" as patterns; a selector takes names literally.
    is_pattern = name == "*" or (name.startswith("^") and name.endswith("$"))
    column = cs.by_name(name).as_expr() if is_pattern else pl.col(name)
    if described.kind.startswith("datetime"):
        return column.dt.timestamp("us")
    if described.kind == "duration":
        # Exact whatever the unit: a cast to microseconds would round toward zero.
        return column.dt.total_nanoseconds() // 1000
    if described.has_levels:
        return column.cast(pl.String)
    return column.cast(pl.Date if described.kind == "date" else pl.Float64)
