"""The least change of a row that takes it to another cluster, exact over the boxes of the leaves.

A leaf without weighted sums is a box: of every column it allows ranges or levels, and maybe missing
cells, whatever the others hold. So the least change is column by column the nearest value that is
allowed, and the best leaf is that of the least sum. In a leaf below weighted sums their columns
depend on each other: a linear program finds them, with whole numbers where columns hold these.

A number costs its distance over the column's unit, another level what two different levels are
apart, and a missing cell that gets a value one unit. Values never become missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._util import FloatArray
from .cluster_tree import ClusterTree
from .paths import EVERYTHING, Condition, ObliqueCondition, Span, walk_leaves

# Margins of the sums, in the largest step of a term. Solvers keep bounds to about 1e-7, with whole
# numbers to 1e-6, and margins like these lead them astray.
_MARGINS = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
_MARGINS_OF_WHOLE = (0.0, 1e-5, 1e-4, 1e-3)
# A change of so many units or less is an error of rounding of the linear program.
_NOTHING = 1e-10
# The status of `scipy.optimize.milp` after an error of the solver.
_NOT_SOLVED = 4
# Programs for one leaf: products of the ranges that its columns have.
_MAX_PROGRAMS = 1_000


@dataclass(frozen=True)
class Grid:
    """The numbers that a column can hold, as the floats that they are read as.

    Parameters
    ----------
    dtype : type, default=float64
        Of a column of floats.
    step : Fraction or None, default=None
        Of other columns: they hold multiples of this.
    lowest, highest : float
        The ends of what they hold, as they are read.
    """

    dtype: type[np.floating] = np.float64
    step: Fraction | None = None
    lowest: float = -math.inf
    highest: float = math.inf

    def at_most(self, bound: float) -> float:
        """Return the greatest number that is not above `bound`; -inf if there is none."""
        bound = min(bound, self.highest)
        if math.isinf(bound):
            return bound
        if self.step is not None:
            # A multiple above the bound may be read as the bound: up to half of the way to the next
            # float, and there if the bound is even.
            above = math.nextafter(bound, math.inf)
            reach = (
                Fraction(bound) if math.isinf(above) else (Fraction(bound) + Fraction(above)) / 2
            )
            multiple = reach // self.step
            if float(multiple * self.step) > bound:
                multiple -= 1
            found = float(multiple * self.step)
        else:
            with np.errstate(over="ignore"):
                number = self.dtype(bound)
            if float(number) > bound:
                number = np.nextafter(number, self.dtype(-np.inf))
            found = float(number)
        return found if found >= self.lowest else -math.inf

    def at_least(self, bound: float) -> float:
        """Return the least number that is not below `bound`; inf if there is none."""
        return -Grid(self.dtype, self.step, -self.highest, -self.lowest).at_most(-bound)

    def ends(self, span: Span) -> tuple[float, float]:
        """Return the least and the greatest number in a range, open ends as infinities."""
        lower, upper = span.lower, span.upper
        if span.lower_strict:
            lower = math.nextafter(lower, math.inf)
        if span.upper_strict:
            upper = math.nextafter(upper, -math.inf)
        least = self.lowest if lower == -math.inf else self.at_least(lower)
        most = self.highest if upper == math.inf else self.at_most(upper)
        return least, most


@dataclass(frozen=True, eq=False)
class MovableRow:
    """A row, and what its changes cost.

    Attributes
    ----------
    cells : ndarray of shape (n_features,)
        As the tree compares them: numbers, codes of levels, microseconds; NaN is missing.
    grids : mapping of int to Grid
        What tested columns of numbers and times can hold.
    costs : ndarray of shape (n_features,)
        Of a step of 1 in a number or a time, and of another level.
    gap_costs : ndarray of shape (n_features,)
        Of a value where the cell is missing.
    fixed : set of int
        Columns that do not change.
    middle : ndarray of shape (n_features,)
        What a missing number gets, or the nearest that is allowed.
    levels : mapping of int to sequence of int
        Of columns of levels the codes that a cell can get, the one that a missing cell gets first.
    """

    cells: FloatArray
    grids: Mapping[int, Grid]
    costs: FloatArray
    gap_costs: FloatArray
    fixed: frozenset[int]
    middle: FloatArray
    levels: Mapping[int, Sequence[int]]


class Move(NamedTuple):
    """The least change of a row that takes it to a leaf."""

    cost: float
    n_changes: int
    leaf: int
    values: dict[int, float]
    """By column the new value of those that change."""


def nearest_leaf(tree: ClusterTree, row: MovableRow, cluster: int) -> Move | None:
    """Return the least change that takes a row to a leaf of a cluster; None if there is none.

    `cluster` is its code. Among equal costs the fewest columns change, then the first leaf from the
    left is taken.
    """
    best: Move | None = None
    for leaf, _, path in walk_leaves(tree):
        if tree.leaf_clusters[leaf] != cluster:
            continue
        move = _move_to(leaf, path.conditions(), row, math.inf if best is None else best.cost)
        if move is not None and (best is None or move[:2] < best[:2]):
            best = move
    return best


def _move_to(
    leaf: int, conditions: list[Condition | ObliqueCondition], row: MovableRow, limit: float
) -> Move | None:
    """Return the least change that takes a row to a leaf, if it costs no more than `limit`."""
    sums = [part for part in conditions if isinstance(part, ObliqueCondition)]
    summed = sorted({feature for part in sums for feature in part.features.tolist()})
    cost, values = 0.0, {}
    ranges = {feature: [EVERYTHING] for feature in summed}
    for part in conditions:
        if isinstance(part, ObliqueCondition):
            continue
        if part.feature in ranges:
            ranges[part.feature] = part.spans
            continue
        found = _nearest_value(part, row)
        if found is None:
            return None
        cost += found[0]
        if not _is_same(found[1], row.cells[part.feature]):
            values[part.feature] = found[1]
    if cost > limit:
        return None
    if sums:
        solved = _solve(sums, ranges, row, limit - cost)
        if solved is None:
            return None
        cost += solved[0]
        values |= solved[1]
    return Move(cost, len(values), leaf, values)


def _is_same(value: float, cell: float) -> bool:
    return value == cell or (math.isnan(value) and math.isnan(cell))


def _nearest_value(condition: Condition, row: MovableRow) -> tuple[float, float] | None:
    """Return what the nearest allowed value costs, and the value; None if there is none."""
    feature = condition.feature
    cell, is_fixed = float(row.cells[feature]), feature in row.fixed
    is_gap = math.isnan(cell)
    if is_gap and condition.missing:
        return 0.0, cell
    if condition.codes is not None:
        if not is_gap and int(cell) in condition.codes:
            return 0.0, cell
        others = [code for code in row.levels[feature] if code in condition.codes]
        if is_fixed or not others:
            return None
        return float((row.gap_costs if is_gap else row.costs)[feature]), float(others[0])
    if any(span.contains(cell) for span in condition.spans):
        return 0.0, cell
    if is_fixed:
        return None
    start = float(row.middle[feature]) if is_gap else cell
    found = []
    for span in condition.spans:
        lower, upper = row.grids[feature].ends(span)
        if not span.is_empty and lower <= upper:
            value = min(max(start, lower), upper)
            value = value if value in (lower, upper) else row.grids[feature].at_most(value)
            if math.isfinite(value):
                found.append((abs(value - start), value))
    if not found:
        return None
    distance, value = min(found)
    if is_gap:
        return float(row.gap_costs[feature]), value
    return _cost(row, feature, distance), value


def _cost(row: MovableRow, feature: int, distance: float) -> float:
    return float(row.costs[feature]) * abs(distance) if distance else 0.0


def _solve(
    sums: list[ObliqueCondition],
    ranges: Mapping[int, Sequence[Span]],
    row: MovableRow,
    limit: float,
) -> tuple[float, dict[int, float]] | None:
    """Return cost and new values of the columns of weighted sums; None if there are none.

    One program for each combination of ranges that the columns have.
    """
    features = list(ranges)
    parts = []
    for feature in features:
        cell = float(row.cells[feature])
        if feature in row.fixed:
            parts.append([(cell, cell)] if any(s.contains(cell) for s in ranges[feature]) else [])
        else:
            ends = [row.grids[feature].ends(span) for span in ranges[feature] if not span.is_empty]
            parts.append([(lower, upper) for lower, upper in ends if lower <= upper])
    n_programs = math.prod(len(part) for part in parts)
    if n_programs > _MAX_PROGRAMS:
        raise ValueError(
            f"A leaf below weighted sums takes {n_programs:,} linear programs, at most "
            f"{_MAX_PROGRAMS:,} are solved: name columns in `fixed`."
        )
    best: tuple[float, dict[int, float]] | None = None
    for box in product(*parts):
        found = _solve_in_box(sums, features, np.array(box), row, limit)
        if found is not None:
            best, limit = found, found[0]
    return best


def _solve_in_box(
    sums: list[ObliqueCondition],
    features: list[int],
    ends: FloatArray,
    row: MovableRow,
    limit: float,
) -> tuple[float, dict[int, float]] | None:
    """Return cost and new values in one box, if they cost less than `limit`.

    The variables are the change of each column, in units, and its absolute value.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    n = len(features)
    cells = row.cells[features]
    whole = np.array([row.grids[feature].step == 1 for feature in features])
    price = row.costs[features]
    # Columns that cost nothing keep a price, so that they move no further than they must.
    size = np.where(whole, 1.0, 1.0 / np.where(price > 0, price, 1.0))
    weights = np.zeros((len(sums), n))
    for place, part in enumerate(sums):
        weights[place, np.searchsorted(features, part.features)] = part.weights
    steps = weights * size
    largest = np.abs(steps).max(axis=1, initial=0.0)
    if not (largest > 0).all():
        largest = np.where(largest > 0, largest, 1.0)
    score = np.array([_score(part, row.cells) for part in sums])
    negative = np.array([part.negative for part in sums])
    absolute = np.block([[np.eye(n), -np.eye(n)], [-np.eye(n), -np.eye(n)]])
    of_sums = np.hstack([steps / largest[:, np.newaxis], np.zeros((len(sums), n))])
    price_of_step = np.maximum(price * size, _NOTHING)
    bounds = Bounds(
        np.concatenate([(ends[:, 0] - cells) / size, np.zeros(n)]),
        np.concatenate([(ends[:, 1] - cells) / size, np.full(n, np.inf)]),
    )
    # A sum gets a margin only after its side was missed: a score of exactly 0 may be the best.
    tries = np.zeros(len(sums), dtype=np.int64)
    margins = np.array(_MARGINS_OF_WHOLE if whole.any() else _MARGINS)
    while tries.max() < len(margins):
        edge, margin = -score / largest, margins[tries]
        result = milp(
            np.concatenate([np.zeros(n), price_of_step]),
            integrality=np.concatenate([whole, np.zeros(n)]),
            bounds=bounds,
            constraints=[
                LinearConstraint(absolute, -np.inf, 0.0),
                LinearConstraint(
                    of_sums,
                    np.where(negative, -np.inf, edge + margin),
                    np.where(negative, edge - margin, np.inf),
                ),
            ],
            options={"mip_rel_gap": 0.0},
        )
        if result.status == _NOT_SOLVED:  # happens where the margin is near the solver's own
            tries += tries > 0 if tries.any() else 1
            continue
        if result.x is None or result.fun >= limit + _NOTHING:
            return None
        values = _on_grid(cells, result.x[:n] * size, size, features, ends, row)
        missed = np.array([not part.holds(_score(part, values)) for part in sums])
        if not missed.any():
            changes = {f: x for f, x in values.items() if x != row.cells[f]}
            cost = sum(_cost(row, f, x - float(row.cells[f])) for f, x in changes.items())
            return (cost, changes) if cost < limit else None
        tries += missed
    return None


def _score(part: ObliqueCondition, values: Mapping[int, float] | FloatArray) -> float:
    return float(part.score(lambda feature: np.asarray(values[feature])))


def _on_grid(
    cells: FloatArray,
    changes: npt.NDArray[np.float64],
    size: FloatArray,
    features: list[int],
    ends: FloatArray,
    row: MovableRow,
) -> dict[int, float]:
    """Return what the columns hold after their changes: within their ends, and of their type."""
    values = {}
    for place, feature in enumerate(features):
        grid, cell = row.grids[feature], float(cells[place])
        value = cell
        if abs(changes[place]) > _NOTHING * size[place]:
            wanted = cell + float(changes[place])
            below, above = grid.at_most(wanted), grid.at_least(wanted)
            value = below if wanted - below <= above - wanted else above
        values[feature] = min(max(value, float(ends[place, 0])), float(ends[place, 1]))
    return values
