"""The least change that moves a row to another cluster: the row read, moved and given back."""

from __future__ import annotations

import decimal
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import issparse

from .._data import Table, column_of, n_coordinates
from .._data.frames import frame_source
from .._data.times import MICROSECONDS
from .._util import FloatArray, column_name, format_number, listed
from .._util.words import format_short, printable, real_name
from ..export.explanations import cell_text
from ..tree import MAX_TERMS, ClusterTree, ObliqueCondition
from ..tree.columns import Column
from ..tree.nearest import Grid, MovableRow, Move, nearest_leaf

_DAY = MICROSECONDS["d"]
_CHANGES: Mapping[str, Any] = {
    "column": pl.String,
    "before": pl.String,
    "after": pl.String,
    "cost": pl.Float64,
    "condition": pl.String,
}


class RoutesRows(Protocol):
    """A fitted model with a tree."""

    tree_: ClusterTree

    def _route(self, X: Any) -> tuple[Table, npt.NDArray[np.int64]]:
        """Return rows as a table, and the leaf of each."""


@dataclass(frozen=True, eq=False, repr=False)
class Counterfactual:
    """The least change that moves a row to a cluster.

    Attributes
    ----------
    row : polars.DataFrame or ndarray of shape (1, n_features)
        The row after the change, which `predict` puts in `cluster`: a frame for frames, with the
        types that its columns had.
    changes : polars.DataFrame
        One row for each column that changes: its name `column`, its cell `before` and `after` as
        texts, the `cost` of the change, and the `condition` of the leaf that asks for it.
    cost : float
        Of all changes, in units of the model's `scale`.
    before, cluster : int or str
        The clusters of the row as it was, and after the change.
    leaf : int
        The leaf of `tree_` that the row falls into after the change.
    """

    row: Any
    changes: pl.DataFrame
    cost: float
    before: int | str
    cluster: int | str
    leaf: int

    def __repr__(self) -> str:
        if not self.changes.height:
            return f"cluster {self.cluster}: no change"
        steps = [
            f"{printable(column)} {before} → {_near(after)}"
            for column, before, after in self.changes.select("column", "before", "after").rows()
        ]
        head = f"cluster {self.before} → {self.cluster}"
        return f"{head}: {', '.join(steps)} (cost {self.cost:.3g})"


def _near(text: str) -> str:
    """Return a cell's text, of the number beside a shorter one that one: ``just above 1.9``."""
    try:
        number = float(text)
    except ValueError:
        return text
    for towards, side in ((-math.inf, "above"), (math.inf, "below")):
        shorter = format_number(math.nextafter(number, towards))
        if len(shorter) < len(text) - 8:
            return f"just {side} {shorter}"
    return text


def least_change(
    model: RoutesRows, row: Any, cluster: Any, fixed: Any, costs: Any
) -> Counterfactual:
    """Return the least change that moves a row to a cluster; see `TreeClusterer.counterfactual`."""
    tree = model.tree_
    is_label = isinstance(cluster, (int, np.integer, str)) and not isinstance(cluster, bool)
    if not is_label or cluster not in tree.classes:
        known = listed([repr(label) for label in tree.classes])
        raise ValueError(f"There is no cluster {cluster!r}: the clusters are {known}.")
    code = tree.classes.index(cluster)
    cluster = tree.classes[code]
    given = _one_row(row)
    table, leaves = model._route(given)
    movable = _movable(model, given, table, code, fixed, costs)
    move = nearest_leaf(tree, movable, code)
    if move is None:
        change = "change of the columns that may change" if movable.fixed else "change"
        raise ValueError(
            f"No {change} takes the row to cluster {cluster}: values never become missing, and "
            "columns keep their types. See rules() for what the leaves of the cluster ask for."
        )
    changed = _changed(given, tree, move)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of what the row given has
        reached = int(model._route(changed)[1][0])
    if tree.leaf_clusters[reached] != tree.leaf_clusters[move.leaf]:
        raise ValueError(
            "The numbers of the row are too large for its types: rounded, the changed row does not "
            f"reach cluster {cluster}. Give columns of 64 bits."
        )
    before = tree.classes[tree.leaf_clusters[int(leaves[0])]]
    changes = _changes(tree, table, movable, move)
    if issparse(row):
        changed = type(row)(changed)
    return Counterfactual(changed, changes, move.cost, before, cluster, reached)


def _one_row(row: Any) -> Any:
    """Return one row: a polars frame for a frame, else an array of shape (1, n_features)."""
    if issparse(row):
        row = row.toarray()  # one row of as many numbers as its model's centers have
    if hasattr(row, "iloc") and getattr(row, "ndim", 0) == 1:
        raise TypeError(
            "counterfactual takes a row with the types of its columns, which a pandas Series does "
            "not have: give a frame of one row, as in X.iloc[[0]]."
        )
    if frame_source(row) is None:
        array = np.asarray(row)
        if array.ndim == 0:
            raise TypeError(
                "counterfactual takes a frame of one row, as in X[:1], or an array. Got "
                f"{type(row).__name__}."
            )
        array = array[np.newaxis] if array.ndim == 1 else array
        n_rows = len(array)
    else:
        import narwhals as nw

        native = nw.from_native(row).lazy().collect("polars").to_native()
        array, n_rows = native, native.height
    if n_rows != 1:
        raise ValueError(f"counterfactual takes one row. Got {n_rows:,}: give one, as in X[:1].")
    return array


def _movable(
    model: RoutesRows, given: Any, table: Table, cluster: int, fixed: Any, costs: Any
) -> MovableRow:
    """Return the row with the units, types and costs of its columns."""
    tree, n_features = model.tree_, model.tree_.n_features
    factors = _factors(costs, tree)
    scale = getattr(model, "scale_", None)
    units = np.ones(n_features) if scale is None else np.asarray(scale, dtype=np.float64)
    still = {_place(name, tree, "fixed") for name in _names_of(fixed)}
    still |= set(np.flatnonzero(np.isinf(factors)).tolist())
    cells, middle = np.full(n_features, np.nan), np.zeros(n_features)
    levels: dict[int, Sequence[int]] = {}
    grids: dict[int, Grid] = {}
    centers = _center_parts(model, cluster)
    for feature in tree.tested_features.tolist():
        column, cell_type = tree.column(feature), _type_of(given, feature, tree)
        cells[feature] = float(column_of(table, feature)[0])
        if column.has_levels:
            shares = centers[feature] if centers else np.zeros(len(column.levels))
            order = np.argsort(-shares, kind="stable").tolist()
            levels[feature] = [code for code in order if _can_hold(cell_type, column.levels[code])]
        else:
            grids[feature] = _grid(cell_type, column)
            value = float(centers[feature][0]) if centers else 0.0
            # Any value will do where the cell is missing: people read three digits of a mean.
            middle[feature] = value if column.is_time else float(format_short(value))
    of_gaps = [1.0 if not tree.column(f).has_levels else 1.0 / units[f] for f in range(n_features)]
    finite = np.where(np.isinf(factors), 1.0, factors)
    return MovableRow(
        cells, grids, finite / units, finite * np.array(of_gaps), frozenset(still), middle, levels
    )


def _center_parts(model: RoutesRows, cluster: int) -> list[FloatArray]:
    """Return by column the coordinates of a cluster's center; none where the model has none."""
    tree, centers = model.tree_, getattr(model, "cluster_centers_", None)
    known = tree.levels or (None,) * tree.n_features
    if centers is None or centers.shape[1] != n_coordinates(known, tree.n_features):
        return []
    widths = [1 if levels is None else len(levels) for levels in known]
    center = np.nan_to_num(np.asarray(centers[cluster], dtype=np.float64))
    return np.split(center, np.cumsum(widths)[:-1])


def _names_of(fixed: Any) -> list[Any]:
    """Return the columns that do not change, as they were named: one, several or, of None, none."""
    if fixed is None:
        return []
    if isinstance(fixed, (str, int, np.integer)):
        return [fixed]
    if not isinstance(fixed, Iterable):
        raise TypeError(
            "fixed must be names or places of columns, such as ['age', 0]. Got "
            f"{type(fixed).__name__}."
        )
    return list(fixed)


def _factors(costs: Any, tree: ClusterTree) -> FloatArray:
    """Return the factor of each column's cost."""
    factors = np.ones(tree.n_features)
    if costs is None:
        return factors
    if not isinstance(costs, Mapping):
        raise TypeError(
            "costs must be a mapping of columns to factors, such as {'age': 2.0}. Got "
            f"{type(costs).__name__}."
        )
    for name, factor in costs.items():
        place = _place(name, tree, "costs")
        if not isinstance(factor, (int, float, np.number)) or not factor >= 0:
            raise ValueError(f"costs must be numbers from 0 on. Got {factor!r} for {name!r}.")
        factors[place] = float(factor)
    return factors


def _place(name: Any, tree: ClusterTree, argument: str) -> int:
    """Return the place of a column that is given by its name or by its place."""
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
        if 0 <= name < tree.n_features:
            return int(name)
    else:
        names = [f"x{f}" for f in range(tree.n_features)]
        if name in (tree.feature_names or names):
            return (tree.feature_names or names).index(name)
    known = listed([column_name(tree.feature_names, f) for f in range(tree.n_features)], "column")
    raise ValueError(f"{argument} names the column {name!r}; those of the fit are {known}.")


# ---- types of columns ---------------------------------------------------------------------------


def _type_of(given: Any, feature: int, tree: ClusterTree) -> Any:
    """Return the type of a column of the row: of polars or numpy."""
    if not isinstance(given, pl.DataFrame):
        return given.dtype
    return given.schema.dtypes()[_position(given, feature, tree)]


def _position(given: pl.DataFrame, feature: int, tree: ClusterTree) -> int:
    """Return where a frame has a column of the fit: by name, as `predict` finds it."""
    names = tree.feature_names
    is_named = names is not None and names[feature] in given.columns
    return given.columns.index(names[feature]) if names is not None and is_named else feature


def _can_hold(cell_type: Any, level: str) -> bool:
    if isinstance(cell_type, pl.Enum):
        return level in cell_type.categories
    return cell_type != pl.Boolean or level in ("false", "true")


def _grid(cell_type: Any, column: Column) -> Grid:
    """Return the numbers that a column of a type can hold."""
    if column.is_time:
        if column.kind == "date" or cell_type == pl.Date:
            return Grid(step=Fraction(_DAY))
        return Grid(step=Fraction(1000 if getattr(cell_type, "time_unit", "us") == "ms" else 1))
    if isinstance(cell_type, pl.DataType):
        if cell_type == pl.Boolean:
            return Grid(step=Fraction(1), lowest=0.0, highest=1.0)
        if isinstance(cell_type, pl.Decimal):
            highest = float(_largest_decimal(cell_type))
            step = Fraction(1, 10 ** (cell_type.scale or 0))
            return Grid(step=step, lowest=-highest, highest=highest)
        if cell_type.is_integer():
            lowest, most = _integer_limits(cell_type)
            return Grid(step=Fraction(1), lowest=float(lowest), highest=float(most))
        if not cell_type.is_float():
            return Grid()
        cell_type = np.dtype(str(cell_type).lower())
    if cell_type.kind == "b":
        return Grid(step=Fraction(1), lowest=0.0, highest=1.0)
    if cell_type.kind in "iu":
        limits = np.iinfo(cell_type)
        return Grid(step=Fraction(1), lowest=float(limits.min), highest=float(limits.max))
    return Grid(cell_type.type) if cell_type in (np.float16, np.float32) else Grid()


def _integer_limits(cell_type: pl.DataType) -> tuple[int, int]:
    """Return the ends of an integer type of polars."""
    name = str(cell_type)
    n_bits = int(name.removeprefix("U").removeprefix("Int"))
    if name.startswith("U"):
        return 0, 2**n_bits - 1
    return -(2 ** (n_bits - 1)), 2 ** (n_bits - 1) - 1


def _largest_decimal(cell_type: pl.Decimal) -> decimal.Decimal:
    digits = (9,) * (cell_type.precision or 38)
    return decimal.Decimal((0, digits, -(cell_type.scale or 0)))


# ---- the row given back -------------------------------------------------------------------------


def _changed(given: Any, tree: ClusterTree, move: Move) -> Any:
    """Return the row with its new values."""
    if isinstance(given, pl.DataFrame):
        columns = given.get_columns()
        for feature, value in move.values.items():
            place, column = _position(given, feature, tree), tree.column(feature)
            columns[place] = _series(value, column, columns[place].dtype).alias(columns[place].name)
        return pl.DataFrame(columns)
    changed = given.copy()
    for feature, value in move.values.items():
        if changed.dtype.kind in "iu":
            # The end of 64 bits is read as the float above it.
            value = min(int(value), int(np.iinfo(changed.dtype).max))
        changed[0, feature] = value
    return changed


def _series(value: float, column: Column, cell_type: pl.DataType) -> pl.Series:
    """Return a new value as a column of a type; of one without any value in the fit's."""
    if column.has_levels:
        level = column.levels[int(value)]
        if cell_type == pl.Boolean or (cell_type == pl.Null and column.kind == "flag"):
            return pl.Series([level == "true"])
        return pl.Series([level]).cast(pl.String if cell_type == pl.Null else cell_type)
    if column.is_time:
        if cell_type == pl.Null:
            cell_type = _time_type(column.kind)
        if cell_type == pl.Date:
            return pl.Series([int(value) // _DAY], dtype=pl.Int32).cast(pl.Date)
        unit = getattr(cell_type, "time_unit", "us")
        count = int(value) // 1000 if unit == "ms" else int(value) * (1000 if unit == "ns" else 1)
        return pl.Series([count], dtype=pl.Int64).cast(cell_type)
    if isinstance(cell_type, pl.Decimal):
        places = decimal.Decimal(1).scaleb(-(cell_type.scale or 0))
        with decimal.localcontext() as context:
            context.prec = 80
            number, end = decimal.Decimal(value).quantize(places), _largest_decimal(cell_type)
            return pl.Series([min(max(number, -end), end)], dtype=cell_type)
    if cell_type.is_integer():
        return pl.Series([min(int(value), _integer_limits(cell_type)[1])], dtype=cell_type)
    if cell_type == pl.Boolean:
        return pl.Series([bool(value)])
    return pl.Series([value], dtype=pl.Float64 if cell_type == pl.Null else cell_type)


def _time_type(kind: str) -> pl.DataType:
    if kind == "date":
        return pl.Date()
    if kind == "duration":
        return pl.Duration("us")
    return pl.Datetime("us", kind[len("datetime[") : -1] or None)


def _changes(tree: ClusterTree, table: Table, row: MovableRow, move: Move) -> pl.DataFrame:
    """Return what changes as a frame, in the order in which the path tests it."""
    texts: dict[int, list[str]] = {}
    for part in tree.path_conditions(move.leaf):
        if isinstance(part, ObliqueCondition):
            text = part.text(tree.feature_name, MAX_TERMS, short=True)
            for feature in part.features.tolist():
                texts.setdefault(feature, []).append(text)
        else:
            texts.setdefault(part.feature, []).append(part.text(tree.feature_name(part.feature)))
    rows = []
    for feature in texts:
        if feature not in move.values:
            continue
        column, before, after = tree.column(feature), row.cells[feature], move.values[feature]
        if math.isnan(before):
            cost = row.gap_costs[feature]
        else:
            cost = row.costs[feature] * (1.0 if column.has_levels else abs(after - before))
        rows.append(
            {
                "column": real_name(tree.feature_names, feature),
                "before": cell_text(column, _shown(table, feature)),
                "after": cell_text(column, _as_type(after, column_of(table, feature))),
                "cost": float(cost),
                "condition": " and ".join(texts[feature]),
            }
        )
    return pl.DataFrame(rows, schema=_CHANGES)


def _shown(table: Table, feature: int) -> object:
    """Return the cell of a row with one row: an unknown level as its text."""
    if table.unknown and feature in table.unknown:
        return table.unknown[feature].of_rows()[0]
    return column_of(table, feature)[0]


def _as_type(value: float, column: npt.NDArray[Any]) -> object:
    return column.dtype.type(value) if column.dtype.kind == "f" else value
