"""The tree as SQL: a CASE expression, or a whole SELECT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from math import frexp
from typing import NamedTuple, cast

from ..tree import ClusterTree, HasTree, as_tree
from ..tree.columns import Column, day_of, whole_microsecond
from .expressions import CellLabels, Language, cells_expression, tree_expression, written

_MAX_LEAVES = 10_000
_MAX_TERMS = 500  # DuckDB and SQLite nest expressions at most 1,000 deep, and a sum is a chain
_EPOCH = datetime(1970, 1, 1)
_NOT_IN_BIGQUERY = frozenset('!"$()*,./;?@[\\]^`{}~\0')  # no column has them in its name


class _Dialect(NamedTuple):
    """How a database writes what they write differently."""

    number: str
    """Type of 64-bit floats."""
    text: str
    """A column as text that is told apart byte by byte."""
    quote: str = '"'
    """Around names."""
    is_nan: str | None = None
    """None where there is no NaN."""
    literal: str = "{}"
    """A number of 64 bits; empty: as integers and powers of two."""
    zoneless: str = "TIMESTAMP '{}'"
    zoned: str = "TIMESTAMP '{}+00:00'"
    has_intervals: bool = False
    """Whether lengths of time have a type; elsewhere they are numbers of microseconds."""
    has_escapes: bool = False
    """Whether a backslash begins an escape sequence in texts."""
    folded: Callable[[str], str] = str.lower
    """What is one for all names of the same column, which differ in case at most."""
    max_bytes: int | None = None
    """Longest query."""


def _ascii_lower(name: str) -> str:
    return name.encode().lower().decode()


DIALECTS = {
    "duckdb": _Dialect(
        "DOUBLE",
        "CAST({} AS VARCHAR) COLLATE POSIX",
        is_nan="isnan({})",
        zoned="TIMESTAMPTZ '{}+00:00'",
        has_intervals=True,
        folded=_ascii_lower,
    ),
    # A name in double quotes is a text where there is no such column.
    "sqlite": _Dialect(
        "REAL", "CAST({} AS TEXT) COLLATE BINARY", quote="`", literal="", folded=_ascii_lower
    ),
    "postgres": _Dialect(
        "DOUBLE PRECISION",
        'CAST({} AS TEXT) COLLATE "C"',
        is_nan="{} = 'NaN'",
        zoned="TIMESTAMPTZ '{}+00:00'",
        has_intervals=True,
        folded=str,
    ),
    "spark": _Dialect(
        "DOUBLE",
        "CAST({} AS STRING)",
        quote="`",
        is_nan="isnan({})",
        zoneless="TIMESTAMP_NTZ '{}'",
        has_escapes=True,
    ),
    "bigquery": _Dialect(
        "FLOAT64",
        "CAST({} AS STRING)",
        quote="`",
        is_nan="IS_NAN({})",
        zoneless="DATETIME '{}'",
        has_escapes=True,
        max_bytes=1_000_000,
    ),
    "snowflake": _Dialect(
        "DOUBLE",
        "CAST({} AS VARCHAR)",
        is_nan="{} = 'NaN'::DOUBLE",
        literal="'{}'::DOUBLE",
        zoneless="'{}'::TIMESTAMP_NTZ",
        zoned="'{}+00:00'::TIMESTAMP_TZ",
        has_escapes=True,
        folded=str,
        max_bytes=1_000_000,
    ),
}


def to_sql(
    tree: ClusterTree | HasTree,
    dialect: str = "duckdb",
    table: str | Sequence[str] | None = None,
    *,
    name: str = "cluster",
) -> str:
    """Return the tree as SQL.

    Its value is the cluster label of each row. Columns of numbers are cast to 64-bit floats, and
    weighted sums are added in order, as in `predict`; levels are compared as text, byte by byte. A
    NULL or NaN takes the way of `missing_go_to_left`, and a level that the fit did not have too; in
    a tree without it a NULL or NaN in any column that it tests makes the label NULL. Infinite cells
    are taken as numbers.

    Times need columns of the same kind: with a zone (TIMESTAMPTZ, in Spark and BigQuery TIMESTAMP)
    where the fit had one, without (TIMESTAMP, in Spark TIMESTAMP_NTZ, in BigQuery DATETIME) where
    it had none; in DuckDB those with a zone must count microseconds. In SQLite dates and times are
    ISO texts (``2024-03-18 12:00:00.5+01:00``; without an offset it is UTC), flags are 0 and 1 or
    ``true`` and ``false``, and empty texts are missing cells, as its import of a text file has
    them. Text that is no number is 0 there: that is how it casts. Lengths of time are INTERVALs in
    DuckDB and PostgreSQL, and whole microseconds elsewhere. PostgreSQL and BigQuery end a query
    whose weighted sum overflows, PostgreSQL also where a product underflows; the others go on as
    `predict` does.

    Parameters
    ----------
    tree : ClusterTree, fitted estimator or tree of scikit-learn
        The tree. Without feature names the columns of the table must be named x0, x1, ...
    dialect : {"duckdb", "sqlite", "postgres", "spark", "bigquery", "snowflake"}, default="duckdb"
        The database. The results of the first three are compared with `predict` in our tests,
        SQL of the others is only parsed there.
    table : str, sequence of str or None, default=None
        The name of a table: returns a SELECT of all its columns and of the label as `name`. A
        sequence is a path, such as ``("schema", "table")``. Names are quoted: case counts, where
        it does in quoted names. None: returns the expression alone.
    name : str, default="cluster"
        The name of the label's column in the SELECT. The table must have no such column: the result
        would have two. Only the columns of the fit are known here, and checked.

    Returns
    -------
    str
        SQL without a semicolon. Numbers are exactly those of the model; for SQLite, which rounds
        decimals, they are written as fractions with the decimal in a comment.

    Raises
    ------
    ValueError
        If the dialect is unknown, `table` or `name` no name, or `name` that of a column of the fit,
        where there is a table; if the tree has more than 10,000 leaves, or an
        oblique test more than 500 features; if the SQL for BigQuery or Snowflake is longer than
        1,000,000 bytes; if a name or level cannot be written, or two tested columns differ in case
        alone where the database does not tell such names apart.
    """
    tree = as_tree(tree, method="to_sql")
    if tree.n_leaves > _MAX_LEAVES or tree.n_node_features.max() > _MAX_TERMS:
        raise ValueError(
            f"A tree of {tree.n_leaves:,} leaves whose tests use up to "
            f"{tree.n_node_features.max():,} features is too large for SQL (at most "
            f"{_MAX_LEAVES:,} leaves and {_MAX_TERMS} features). Use model.predict(frame) instead, "
            "or a smaller tree by truncate(m)."
        )
    language = _Language(dialect, tree.feature_names)
    language.check_names(tree.tested_features.tolist())
    return language.query(tree_expression(tree, language), table, name)


def cells_to_sql(
    cells: CellLabels, dialect: str, table: str | Sequence[str] | None, name: str
) -> str:
    """Return a table of cells as `to_sql` a tree."""
    language = _Language(dialect, cells.names)
    language.check_names(cells.features)
    return language.query(cells_expression(cells, language), table, name)


class _Sql:
    """A part of an expression: a column, a sum or a test.

    `binding` says how tightly its operator binds: 1 OR, 2 AND, 3 all others. `negated` is the test
    that this one is not, where it is known; `is_never_null` says that the value is true or false
    for every row.
    """

    def __init__(
        self,
        text: str,
        language: _Language,
        binding: int = 3,
        *,
        negated: _Sql | None = None,
        is_never_null: bool = False,
    ) -> None:
        self.text, self._language, self._binding = text, language, binding
        self._negated, self._is_never_null = negated, is_never_null

    def _with(self, text: str, binding: int = 3) -> _Sql:
        return _Sql(text, self._language, binding)

    def _number(self, value: float) -> str:
        return self._language.number(value)

    def __rmul__(self, weight: float) -> _Sql:
        return self._with(f"{self._number(weight)} * {self.text}")

    def __radd__(self, bias: float) -> _Sql:
        return self._with(f"{self._number(bias)} + {self.text}")

    def __add__(self, other: _Sql) -> _Sql:
        return self._with(f"{self.text} + {other.text}")

    def __lt__(self, value: float) -> _Sql:
        return self._with(f"{self.text} < {self._number(value)}")

    def __le__(self, value: float) -> _Sql:
        return self._with(f"{self.text} <= {self._number(value)}")

    def __ge__(self, value: float) -> _Sql:
        return self._with(f"{self.text} >= {self._number(value)}")

    def __and__(self, other: _Sql) -> _Sql:
        sides = (f"({side.text})" if side._binding < 2 else side.text for side in (self, other))
        return self._with(" AND ".join(sides), 2)

    def __or__(self, other: _Sql) -> _Sql:
        # A test for missing cells that comes first is of the same cells: it is true where the
        # other is null.
        text = f"{self.text} OR {other.text}"
        return _Sql(text, self._language, 1, is_never_null=self._is_never_null)

    def __invert__(self) -> _Sql:
        # Null does not hold, so that twice not is the test itself.
        if self._negated is not None:
            return self._negated
        plain = f"NOT ({self.text})" if self._is_never_null else f"NOT COALESCE({self.text}, FALSE)"
        return _Sql(plain, self._language, negated=self, is_never_null=True)


@dataclass
class _Case:
    """A value, or the choice of one: by the first test that holds, else the last value."""

    otherwise: str
    whens: list[tuple[str, _Case]] = field(default_factory=list)
    """Tests and what they choose, the last test first."""
    n_values: int = 1

    def lines(self, margin: str) -> list[str]:
        """Return the text in lines."""
        if not self.whens:
            return [margin + self.otherwise]
        lines = [f"{margin}CASE"]
        for test, value in reversed(self.whens):
            inner = value.lines(f"{margin}    ")
            if len(inner) == 1:
                lines.append(f"{margin}  WHEN {test} THEN {value.otherwise}")
            else:
                lines += [f"{margin}  WHEN {test} THEN", *inner]
        return [*lines, f"{margin}  ELSE {self.otherwise}", f"{margin}END"]


class _Language(Language[_Case]):
    """The SQL of a database.

    Of two branches the smaller is nested, and the other goes on as further tests of the same CASE:
    a tree of 10,000 leaves nests at most 13 deep, however deep it is, which every parser takes
    (that of SQLite 3.40 takes 14).
    """

    def __init__(self, dialect: str, names: Sequence[str] | None) -> None:
        if not isinstance(dialect, str) or dialect not in DIALECTS:
            raise ValueError(f"dialect must be one of {', '.join(DIALECTS)}. Got {dialect!r}.")
        self.names, self._dialect, self._how = names, dialect, DIALECTS[dialect]

    # ---- names, texts and numbers ---------------------------------------------------------

    def check_names(self, features: Sequence[int]) -> None:
        """Raise ValueError if two columns have one name in the database."""
        found: dict[str, str] = {}
        for name in map(self.name, features):
            other = found.setdefault(self._how.folded(name), name)
            if other != name:
                raise ValueError(
                    f"Columns {other!r} and {name!r} are one column in {self._dialect}, which does "
                    "not tell upper from lower case in names. Rename one and fit again."
                )

    def identifier(self, name: str) -> str:
        """Return a name, quoted."""
        quote = self._how.quote
        if self._dialect == "bigquery":
            return quote + self._escaped(name, quote) + quote
        if "\0" in name or (self._dialect == "spark" and "${" in name):
            raise self._unwritten(name)
        return quote + name.replace(quote, quote * 2) + quote

    def _unwritten(self, name: str) -> ValueError:
        return ValueError(f"{self._dialect} cannot have the name {name!r} in SQL. Rename it.")

    def string(self, text: str) -> str:
        """Return a text as a literal."""
        if "\0" in text:
            raise ValueError(
                f"{self._dialect} cannot have the text {text!r} in SQL: it holds the character of "
                "code 0. Replace it in the table and fit again, or rename the cluster."
            )
        if self._how.has_escapes:
            return "'" + self._escaped(text, "'") + "'"
        doubled = text.replace("'", "''")
        if self._dialect == "postgres" and "\\" in text:
            # Whether a plain text has escape sequences is a setting there.
            return "E'" + doubled.replace("\\", "\\\\") + "'"
        return f"'{doubled}'"

    @staticmethod
    def _escaped(text: str, quote: str) -> str:
        """Return a text with escape sequences; Spark puts variables in place of ``${name}``."""
        for special, sequence in (
            ("\\", "\\\\"),
            (quote, f"\\{quote}"),
            ("\n", "\\n"),
            ("\r", "\\r"),
            ("\0", "\\0"),
            ("${", "\\u0024{"),
        ):
            text = text.replace(special, sequence)
        return text

    def number(self, value: float) -> str:
        """Return a number, so that the database reads exactly these 64 bits."""
        if not self._how.literal:
            return _fraction(value)
        text = repr(value)
        return self._how.literal.format(text if "e" in text else f"{text}e0")

    # ---- columns and tests ----------------------------------------------------------------

    def cells(self, feature: int, column: Column) -> _Sql:
        name = self.name(feature)
        self._check_written(name)
        return _Sql(self._cells_text(self.identifier(name), column), self)

    def _cells_text(self, name: str, column: Column) -> str:
        is_sqlite = self._dialect == "sqlite"
        if column.kind == "levels":
            return self._how.text.format(name)
        if is_sqlite and not column.kind.startswith("datetime"):
            # Its import of a text file leaves empty texts where cells are missing.
            name = f"nullif({name}, '')"
        if column.kind == "flag":
            return f"lower({name})" if is_sqlite else f"CAST({name} AS BOOLEAN)"
        if column.kind == "date":
            return f"substr({name}, 1, 10)" if is_sqlite else f"CAST({name} AS DATE)"
        if column.kind.startswith("datetime"):
            return _sqlite_time(name) if is_sqlite else name
        if column.kind == "duration" and self._how.has_intervals:
            return name
        return f"CAST({name} AS {self._how.number})"

    def label(self, label: int | str) -> _Case:
        return _Case(self.string(label) if isinstance(label, str) else str(label))

    def is_missing(self, cells: _Sql, column: Column) -> _Sql:
        is_null = _Sql(f"{cells.text} IS NULL", self, is_never_null=True)
        if self._how.is_nan is None or column.has_levels or column.is_time:
            return is_null
        return is_null | _Sql(self._how.is_nan.format(cells.text), self)

    def is_in(self, cells: _Sql, column: Column, levels: list[str]) -> _Sql:
        if column.kind == "flag" and self._dialect != "sqlite":
            listed = [level.upper() for level in levels]
        else:
            listed = [self.string(text) for text in written(column, levels)]
        return _Sql(f"{cells.text} IN ({', '.join(listed)})" if listed else "FALSE", self)

    def at_most(self, cells: _Sql, column: Column, time: float) -> _Sql:
        if column.kind == "date":
            return _Sql(f"{cells.text} <= {self._day(time, up=False)}", self)
        # Nanoseconds belong to the microsecond before them.
        return self._compared(cells, column, "<", whole_microsecond(time, up=False) + 1)

    def at_least(self, cells: _Sql, column: Column, time: float) -> _Sql:
        if column.kind == "date":
            return _Sql(f"{cells.text} >= {self._day(time, up=True)}", self)
        return self._compared(cells, column, ">=", whole_microsecond(time, up=True))

    def _day(self, time: float, *, up: bool) -> str:
        literal = f"'{day_of(time, up=up).isoformat()}'"
        return literal if self._dialect == "sqlite" else f"DATE {literal}"

    def _compared(self, cells: _Sql, column: Column, relation: str, time: int) -> _Sql:
        """Return the comparison of times with a whole microsecond."""
        if column.kind == "duration" and self._how.has_intervals:
            literal = f"INTERVAL '{time} microseconds'"
        elif column.kind == "duration" or self._dialect == "sqlite":
            literal = str(time)
        else:
            shown = (_EPOCH + timedelta(microseconds=time)).isoformat(" ", "microseconds")
            has_zone = column.kind != "datetime[]"
            literal = (self._how.zoned if has_zone else self._how.zoneless).format(shown)
        return _Sql(f"{cells.text} {relation} {literal}", self)

    # ---- choices --------------------------------------------------------------------------

    def choose(self, test: _Sql, left: _Case, right: _Case) -> _Case:
        if left.n_values > right.n_values:
            test, left, right = ~test, right, left
        right.whens.append((test.text, left))
        right.n_values += left.n_values
        return right

    def unless(self, tests: list[_Sql], value: _Case) -> _Case:
        value.whens.append((" OR ".join(test.text for test in tests), _Case("NULL")))
        return value

    def query(self, value: _Case, table: str | Sequence[str] | None, name: str) -> str:
        """Return the expression, or the SELECT from a table.

        Raises
        ------
        ValueError
            If it is too long for the database, `table` or `name` is no name, or `name` that of a
            column of the fit.
        """
        if table is None:
            text = "\n".join(value.lines(""))
        else:
            names = [table] if isinstance(table, str) else table
            if not isinstance(names, Sequence) or not names or not all(map(_is_name, names)):
                raise ValueError(
                    "table must be the name of a table, or a path such as ('schema', 'table'). Got "
                    f"{table!r}."
                )
            path = ".".join(map(self.identifier, names))
            self._check_output(name)
            expression = "\n".join(value.lines("  "))
            text = f"SELECT\n  *,\n{expression} AS {self.identifier(name)}\nFROM {path}"
        size, most = len(text.encode()), self._how.max_bytes
        if most is not None and size > most:
            raise ValueError(
                f"The SQL of {value.n_values:,} leaves has {size:,} bytes, too many for "
                f"{self._dialect} (at most {most:,}). Use a smaller tree by truncate(m)."
            )
        return text

    def _check_output(self, name: str) -> None:
        """Raise ValueError if the label's column cannot have a name."""
        if not _is_name(name):
            raise ValueError(f"name must be that of a column, for the labels. Got {name!r}.")
        self._check_written(name)
        folded = self._how.folded
        for other in self.names or ():
            if folded(other) == folded(name):
                raise ValueError(
                    f"The table has a column {other!r} itself, and the result would have two. Give "
                    "the column of the labels another name, such as name='segment'."
                )

    def _check_written(self, name: str) -> None:
        """Raise ValueError if a column cannot have a name."""
        if self._dialect == "bigquery" and not _NOT_IN_BIGQUERY.isdisjoint(name):
            raise self._unwritten(name)


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name != ""


def _fraction(value: float) -> str:
    """Return a number for SQLite, which rounds decimals: with powers of two, if it has many digits.

    Integers below 2**53, decimals that are the number itself in 15 digits, and products with powers
    of two are exact.
    """
    if value.is_integer() and abs(value) <= 2**53:
        return f"{int(value)}.0"
    exact = Decimal(value).normalize().as_tuple()
    if len(exact.digits) <= 15 and -15 <= cast(int, exact.exponent) <= 0:
        return repr(value)
    fraction, exponent = frexp(value)
    numerator, exponent = int(fraction * 2**53), exponent - 53
    while numerator % 2 == 0:
        numerator, exponent = numerator // 2, exponent + 1
    parts = [str(numerator)]
    sign = "*" if exponent > 0 else "/"
    for power in [52] * (abs(exponent) // 52) + [abs(exponent) % 52]:
        if power:
            parts.append(f"{sign} {2**power}.0")
    return f"({' '.join(parts)} /* {value!r} */)"


def _sqlite_time(name: str) -> str:
    """Return an ISO text in SQLite as whole microseconds since 1970.

    Its own functions round to milliseconds: seconds and their fraction are read apart. They read an
    offset with a colon alone, and text files of polars have none in it.
    """
    offset = f"ltrim(substr({name}, 20), '. 0123456789')"
    offset = f"rtrim(substr({offset}, 1, 3) || ':' || substr({offset}, -2), ':Zz')"
    seconds = f"strftime('%s', substr({name}, 1, 19) || {offset})"
    fraction = f"CAST(round(('0' || substr({name}, 20, 7)) * 1000000) AS INTEGER)"
    return f"{seconds} * 1000000 + {fraction}"  # bare, for the parser has room for so many symbols
