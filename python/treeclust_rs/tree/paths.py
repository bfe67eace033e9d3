"""Conditions on features, and paths: the tests between the root and a node, merged per feature.

A path with the tests ``x <= 9``, ``x > 2`` and ``x <= 5`` has the condition ``2 < x <= 5``: per
feature and direction only the tightest bound counts. The outside of an interval is a hole in the
allowed values, unless a bound covers it: ``x > 3`` outside of ``2 <= x <= 4`` is ``x > 4``. Oblique
tests are never merged.

`Path` is changed in place while a walk goes down the tree and restored as it comes back up: one
walk costs a few operations per node and no copies, however deep the tree is.

Level tests on one column leave a single set of levels. A missing cell passes a test if the branch
is the one that its node sends missing cells to; a path remembers per column whether they still get
through.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from .._util import FloatArray, IntArray, format_number, format_short
from .._util.words import MAX_NAME_LENGTH, format_share
from .columns import MAX_LEVELS_SHOWN, NUMBERS, Column
from .nodes import INTERVAL, LEAF, LEVELS, OBLIQUE, THRESHOLD, TreeNodes


class Span(NamedTuple):
    """One range of values without holes; an end at infinity is open, ends NaN are no values."""

    lower: float
    lower_strict: bool
    upper: float
    upper_strict: bool

    @property
    def n_bounds(self) -> int:
        """Number of finite ends."""
        return int(self.lower > -math.inf) + int(self.upper < math.inf)

    def contains(self, value: float) -> bool:
        """Return whether the value lies in the range."""
        above = value > self.lower if self.lower_strict else value >= self.lower
        below = value < self.upper if self.upper_strict else value <= self.upper
        return above and below

    @property
    def is_missing(self) -> bool:
        """Whether this stands for missing cells."""
        return math.isnan(self.lower)

    @property
    def is_empty(self) -> bool:
        """Whether no value lies in the range."""
        if self.lower == self.upper:
            return self.lower_strict or self.upper_strict
        return self.lower > self.upper

    def text(self, subject: str, column: Column = NUMBERS) -> str:
        """Return the range as a comparison of `subject`, for instance ``2 < age <= 7``."""
        less = "<" if self.upper_strict else "<="
        # Of a bound in the middle of a day: the days beyond it begin with the next one.
        upper = lower = ""
        if self.upper < math.inf:
            upper = column.value_text(self.upper, up=self.upper_strict)
        if self.lower > -math.inf:
            lower = column.value_text(self.lower, up=not self.lower_strict)
        if lower == upper and not (self.lower_strict or self.upper_strict):
            return f"{subject} = {lower}"
        if self.lower == -math.inf:
            return f"{subject} {less} {upper}"
        first, greater = ("<", ">") if self.lower_strict else ("<=", ">=")
        if self.upper == math.inf:
            return f"{subject} {greater} {lower}"
        return f"{lower} {first} {subject} {less} {upper}"


EVERYTHING = Span(-math.inf, False, math.inf, False)
NOTHING = Span(math.inf, True, -math.inf, True)
MISSING_CELLS = Span(math.nan, False, math.nan, False)

NEVER = "never"
"""The text of a condition that no row meets."""


@dataclass(frozen=True, slots=True)
class Condition:
    """The values of one feature that a path allows: a range, or a set of levels.

    Parameters
    ----------
    feature : int
        Index of the feature.
    span : Span
        The bounds; an end at infinity is open.
    holes : tuple of (float, float)
        Closed ranges of values that are excluded: ascending, disjoint, strictly inside the bounds.
    codes : tuple of int or None, default=None
        Of a column of levels the codes of those that are allowed, ascending.
    missing : bool, default=False
        Whether missing cells are allowed. Comparisons ignore it.
    column : Column
        How the column's values are written.
    """

    feature: int
    span: Span
    holes: tuple[tuple[float, float], ...] = ()
    codes: tuple[int, ...] | None = None
    missing: bool = field(default=False, compare=False)
    column: Column = field(default=NUMBERS, compare=False)

    @property
    def is_empty(self) -> bool:
        """Whether no value is allowed: missing cells at most."""
        return not self.codes if self.codes is not None else all(s.is_empty for s in self.spans)

    @property
    def is_everything(self) -> bool:
        """Whether all values are allowed."""
        if self.codes is not None:
            return len(self.codes) == len(self.column.levels)
        return not self.holes and self.span == EVERYTHING

    @property
    def or_missing(self) -> bool:
        """Whether the text says that missing cells are allowed besides some values."""
        return self.missing and self.column.has_missing and not self.is_empty

    @property
    def is_union(self) -> bool:
        """Whether the text has an ``or``."""
        return bool(self.holes) or self.or_missing

    @property
    def size(self) -> int:
        """Number of elementary conditions, as `Path` counts them."""
        is_set = self.codes is not None and not self.is_everything
        return _size(self.span, len(self.holes), is_set, self.missing)

    @property
    def spans(self) -> list[Span]:
        """The ranges of allowed values between the holes, ascending."""
        if not self.holes:
            return [self.span]
        spans: list[Span] = []
        lower, lower_strict = self.span.lower, self.span.lower_strict
        for hole_lower, hole_upper in self.holes:
            spans.append(Span(lower, lower_strict, hole_lower, True))
            lower, lower_strict = hole_upper, True
        spans.append(Span(lower, lower_strict, self.span.upper, self.span.upper_strict))
        return spans

    def text(
        self, name: str, max_levels: int | None = None, max_length: int = MAX_NAME_LENGTH
    ) -> str:
        """Return the condition as text; several ranges are joined by ``or``.

        ``or missing`` is written where missing cells are allowed and the column had some in the
        fit: rules of complete tables do not speak of them. ``never``: no level is left.

        Parameters
        ----------
        name : str
            Of the column.
        max_levels : int, default=None
            Most levels to write, long ones shortened; None writes all, in full.
        max_length : int, default=60
            Most characters of a level where long ones are shortened.
        """
        is_nothing = self.span == NOTHING or self.codes == ()
        if self.missing and self.is_empty and (self.column.has_missing or is_nothing):
            return f"{name} is missing"
        if is_nothing:
            return NEVER
        if not self.missing and self.is_everything:
            return f"{name} is not missing"
        parts = [span.text(name, self.column) for span in self.spans]
        if self.codes is not None:
            parts = [self.column.set_text(name, self.codes, max_levels, max_length)]
            if self.or_missing and self.column.kind == "flag" and self.codes == (0,):
                parts = [f"{name} is false"]  # "not newsletter or missing" reads as neither
        return " or ".join([*parts, "missing"] if self.or_missing else parts)

    def lines(self, name: str, width: int, max_length: int = MAX_NAME_LENGTH) -> list[str]:
        """Return the condition in lines of `width` or a little more, broken between levels."""
        text = self.text(name, MAX_LEVELS_SHOWN, max_length)
        return [text] if self.codes is None else joined(re.findall(r".+?(?:, |$)", text), width)


@dataclass(frozen=True, slots=True)
class ObliqueCondition:
    """The sign of the score of the rows that take one branch of an oblique node.

    The score, ``bias + weights[0] * x[features[0]] + ...``, is less than 0 on the left branch, and
    not on the right.

    Parameters
    ----------
    node : int
        Node id.
    negative : bool
        Whether this is the left branch: score < 0.
    features : ndarray of shape (n_terms,)
        Indices of the features with a weight, ascending.
    weights : ndarray of shape (n_terms,)
        Their weights.
    bias : float
        The score without terms.
    scale : ndarray of shape (n_terms,) or None, default=None
        Standard deviations of the features among the rows of the fit; None: not known.
    """

    node: int
    negative: bool
    features: IntArray = field(compare=False)
    weights: FloatArray = field(compare=False)
    bias: float = field(compare=False)
    scale: FloatArray | None = field(default=None, compare=False)

    @property
    def size(self) -> int:
        """Number of features used."""
        return len(self.features)

    def score(self, column: Callable[[int], FloatArray]) -> FloatArray | float:
        """Return the scores of rows; `column` returns their values of a feature.

        Terms are added in the order of the features, as in the core: the bits are the same.
        """
        score: FloatArray | float = self.bias
        with np.errstate(over="ignore", invalid="ignore"):
            for feature, weight in zip(self.features.tolist(), self.weights.tolist(), strict=True):
                score = score + weight * column(feature)
        return score

    def holds(self, score: float) -> bool:
        """Return whether a row of this score takes the branch."""
        return (score < 0) == self.negative

    @property
    def relation(self) -> str:
        """The comparison with 0, for instance ``< 0``."""
        return "< 0" if self.negative else ">= 0"

    def order(self) -> IntArray:
        """Return the places of the terms by |weight| x scale, the largest first.

        Without scales, and among equals, by |weight|.
        """
        weights = np.abs(self.weights)
        if self.scale is None:
            return np.argsort(-weights, kind="stable")
        with np.errstate(over="ignore"):
            return np.lexsort((-weights, -weights * self.scale))

    def shares(self) -> FloatArray:
        """Return the share of each term: of the sum over the terms of |weight| x scale.

        That is how much the term spreads the score of the fit's rows, beside the others; all are 0
        if no column varied.

        Raises
        ------
        ValueError
            If the scales are not known.
        """
        if self.scale is None:
            raise ValueError(
                f"The tree does not know the standard deviations of the columns of node {self.node}"
                ", so that its terms have no shares: fit it again, or leave out shares=True."
            )
        # By their largest first: products of the ends of floats overflow.
        spread: FloatArray = np.abs(self.weights) / np.abs(self.weights).max() * self.scale
        spread = spread / (spread.max() or 1.0)
        return np.asarray(spread / (spread.sum() or 1.0))

    def parts(
        self,
        name: Callable[[int], str],
        max_terms: int | None = None,
        *,
        short: bool = False,
        shares: bool = False,
    ) -> list[str]:
        """Return the score in parts that lines may break between, the largest shares first.

        Parameters
        ----------
        name : callable
            Returns the name of a feature.
        max_terms : int, default=None
            Most terms to write, if there are at least two more; None writes all.
        short : bool, default=False
            Whether to round the numbers to three digits.
        shares : bool, default=False
            Whether to write the share of each term behind it: ``1.2·age (61.2 %)``.

        Returns
        -------
        list of str
            For instance ``["1.2·age", "− 0.8·income", "… and 12 more", "+ 0.3"]``.
        """
        write = format_short if short else format_number
        order = self.order()
        # A single further weight is written in place of "… and 1 more".
        shown = order if max_terms is None or len(order) <= max_terms + 1 else order[:max_terms]
        own = self.shares() if shares else None
        parts: list[str] = []
        for term, feature, weight in zip(
            shown.tolist(), self.features[shown].tolist(), self.weights[shown].tolist(), strict=True
        ):
            factor = "" if abs(weight) == 1 else f"{write(abs(weight))}·"
            sign = ("− " if parts else "−") if weight < 0 else ("+ " if parts else "")
            share = "" if own is None else f" ({format_share(float(own[term]))})"
            parts.append(f"{sign}{factor}{name(feature)}{share}")
        if len(shown) < len(order):
            rest = (
                "" if own is None else f" ({format_share(float(own[order[len(shown) :]].sum()))})"
            )
            parts.append(f"… and {len(order) - len(shown)} more{rest}")
        if self.bias != 0:
            parts.append(f"{'−' if self.bias < 0 else '+'} {write(abs(self.bias))}")
        return parts

    def text(
        self,
        name: Callable[[int], str],
        max_terms: int | None = None,
        *,
        short: bool = False,
        shares: bool = False,
    ) -> str:
        """Return the condition in one line; the parameters are those of `parts`."""
        parts = self.parts(name, max_terms, short=short, shares=shares)
        return f"{' '.join(parts)} {self.relation}"

    def lines(
        self, name: Callable[[int], str], width: int, max_terms: int, *, shares: bool = False
    ) -> list[str]:
        """Return the condition with three digits in lines of `width`, broken between terms."""
        parts = self.parts(name, max_terms, short=True, shares=shares)
        return joined([f"{part} " for part in (*parts[:-1], f"{parts[-1]} {self.relation}")], width)


def joined(parts: Iterable[str], width: int) -> list[str]:
    """Join parts, which end with the space behind them, to lines of `width`."""
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > width:
            lines.append(part)
        else:
            lines[-1] += part
    return [line.rstrip() for line in lines]


_hole_lower = itemgetter(0)
_hole_upper = itemgetter(1)


def _size(span: Span, n_holes: int, is_set: bool, missing: bool) -> int:
    """Return the number of elementary conditions; see `Path`."""
    if span == NOTHING:  # "is missing"
        return 1
    return span.n_bounds + 2 * n_holes + is_set or int(not missing)  # "is not missing"


class _Region:
    """The allowed values of one feature: the mutable form of `Condition`."""

    __slots__ = ("all_codes", "codes", "column", "holes", "missing", "span")

    def __init__(self, column: Column) -> None:
        self.span = EVERYTHING
        self.holes: list[tuple[float, float]] = []
        self.column = column
        # The allowed levels, one bit each; of other columns 0.
        self.all_codes = (1 << len(column.levels)) - 1
        self.codes = self.all_codes
        self.missing = True

    @property
    def size(self) -> int:
        is_set = self.codes != self.all_codes
        return _size(self.span, len(self.holes), is_set, self.missing)

    def condition(self, feature: int) -> Condition:
        codes = None
        if self.column.has_levels:
            codes = tuple(code for code in range(len(self.column.levels)) if self.codes >> code & 1)
        holes = tuple(self.holes)
        return Condition(feature, self.span, holes, codes, self.missing, self.column)


class _Undo(NamedTuple):
    """How to undo one change of one region; feature -1 undoes an oblique condition."""

    feature: int
    created: bool
    span: Span
    position: int
    removed: list[tuple[float, float]]
    n_added: int
    codes: int
    missing: bool


_UNDO_OBLIQUE = _Undo(-1, False, EVERYTHING, 0, [], 0, 0, True)


class Path:
    """The merged conditions between the root and one node.

    `size` is the number of elementary conditions, as WAES counts them: per feature the finite
    bounds, and two for every hole; one for a set of levels, and one for "is missing" or "is not
    missing" alone ("or missing" is counted with what it is added to); for every oblique test the
    features it uses.
    """

    def __init__(self) -> None:
        self.size = 0
        self._regions: dict[int, _Region] = {}
        # Each with the number of regions before it.
        self._oblique: list[tuple[int, ObliqueCondition]] = []

    def conditions(self) -> list[Condition | ObliqueCondition]:
        """Return the conditions, in the order in which the path first tests their features."""
        conditions: list[Condition | ObliqueCondition] = [
            region.condition(feature) for feature, region in self._regions.items()
        ]
        for position, condition in reversed(self._oblique):
            conditions.insert(position, condition)
        return conditions

    def admits_rows(self, feature: int) -> bool:
        """Return whether some value of a feature, or a missing cell as in the fit, is allowed."""
        region = self._regions.get(feature)
        if region is None:
            return True
        condition = region.condition(feature)
        return not condition.is_empty or (region.missing and region.column.has_missing)

    def enter(self, tree: TreeNodes, parent: int, left: bool) -> list[_Undo]:
        """Move from a node to one of its children; return what `leave` needs to move back."""
        kind, feature = int(tree.kind[parent]), int(tree.feature[parent])
        if kind == OBLIQUE:
            features, weights, bias = tree.oblique_test(parent)
            scale = None if tree.feature_scale is None else tree.feature_scale[features]
            condition = ObliqueCondition(parent, left, features, weights, bias, scale)
            self._oblique.append((len(self._regions), condition))
            self.size += condition.size
            return [_UNDO_OBLIQUE]
        created = feature not in self._regions
        if created:
            self._regions[feature] = _Region(tree.column(feature))
        directions = tree.missing_go_to_left
        stays = directions is None or bool(directions[parent]) == left
        if kind == THRESHOLD:
            threshold = float(tree.threshold[parent])
            if left:
                undos = [self._bound_above(feature, threshold, False)]
            else:
                undos = [self._bound_below(feature, threshold, True)]
        elif kind == INTERVAL:
            lower, upper = float(tree.lower[parent]), float(tree.upper[parent])
            if left:
                undos = [
                    self._bound_below(feature, lower, False),
                    self._bound_above(feature, upper, False),
                ]
            else:
                undos = [self._cut_out(feature, lower, upper)]
        else:
            codes = 0
            if kind == LEVELS:
                codes = sum(1 << code for code in tree.level_test(parent).tolist())
            undos = [self._restrict(feature, codes, left, stays)]
        if not stays:  # which the undos restore
            self._regions[feature].missing = False
        undos[0] = undos[0]._replace(created=created)
        return undos

    def leave(self, undos: list[_Undo]) -> None:
        """Undo one `enter`; the last one first."""
        for undo in reversed(undos):
            if undo.feature < 0:
                self.size -= self._oblique.pop()[1].size
                continue
            region = self._regions[undo.feature]
            self.size -= region.size
            region.span, region.codes, region.missing = undo.span, undo.codes, undo.missing
            region.holes[undo.position : undo.position + undo.n_added] = undo.removed
            self.size += region.size
            if undo.created:
                del self._regions[undo.feature]

    def _restrict(self, feature: int, codes: int, left: bool, stays: bool) -> _Undo:
        """Keep what a branch leaves of the levels, or of a test for missing cells (no codes).

        `stays`: whether missing cells take the branch.
        """
        region, undo = self._regions[feature], self._undo(feature)
        old_size = region.size
        if codes:
            region.codes &= codes if left else ~codes
        elif left:
            undo = undo._replace(removed=region.holes[:])
            region.span, region.codes = NOTHING, 0
            region.holes.clear()
        region.missing &= stays
        self.size += region.size - old_size
        return undo

    def _undo(self, feature: int) -> _Undo:
        """Return how to undo a change that removes and adds no holes."""
        region = self._regions[feature]
        return _Undo(feature, False, region.span, 0, [], 0, region.codes, region.missing)

    def _bound_above(self, feature: int, bound: float, strict: bool) -> _Undo:
        region, undo = self._regions[feature], self._undo(feature)
        old, old_size = region.span, region.size
        if bound < old.upper or (bound == old.upper and strict):
            region.span = old._replace(upper=bound, upper_strict=strict)
        removed = []
        while region.holes and region.holes[-1][1] >= region.span.upper:
            hole = region.holes.pop()
            removed.append(hole)
            if hole[0] <= region.span.upper:
                region.span = region.span._replace(upper=hole[0], upper_strict=True)
        self.size += region.size - old_size
        return undo._replace(position=len(region.holes), removed=removed[::-1])

    def _bound_below(self, feature: int, bound: float, strict: bool) -> _Undo:
        region, undo = self._regions[feature], self._undo(feature)
        old, old_size = region.span, region.size
        if bound > old.lower or (bound == old.lower and strict):
            region.span = old._replace(lower=bound, lower_strict=strict)
        n_removed = 0
        for hole in region.holes:
            if hole[0] > region.span.lower:
                break
            n_removed += 1
            if hole[1] >= region.span.lower:
                region.span = region.span._replace(lower=hole[1], lower_strict=True)
        removed = region.holes[:n_removed]
        del region.holes[:n_removed]
        self.size += region.size - old_size
        return undo._replace(removed=removed)

    def _cut_out(self, feature: int, lower: float, upper: float) -> _Undo:
        region, undo = self._regions[feature], self._undo(feature)
        span, old_size = region.span, region.size
        beside = not (_reaches_above(span, lower) and _reaches_below(span, upper))
        if not beside and lower <= span.lower:
            return self._bound_below(feature, upper, True)
        if not beside and upper >= span.upper:
            return self._bound_above(feature, lower, True)
        start = bisect_left(region.holes, lower, key=_hole_upper)
        stop = start if beside else bisect_right(region.holes, upper, key=_hole_lower)
        removed = region.holes[start:stop]
        if removed:
            lower, upper = min(lower, removed[0][0]), max(upper, removed[-1][1])
        added = [] if beside else [(lower, upper)]
        region.holes[start:stop] = added
        self.size += region.size - old_size
        return undo._replace(position=start, removed=removed, n_added=len(added))


def _reaches_above(span: Span, value: float) -> bool:
    return span.upper > value or (span.upper == value and not span.upper_strict)


def _reaches_below(span: Span, value: float) -> bool:
    return span.lower < value or (span.lower == value and not span.lower_strict)


def path_to(tree: TreeNodes, node: int) -> Path:
    """Return the path from the root to a node."""
    chain = [node]
    while chain[-1] != 0:
        chain.append(int(tree.parent[chain[-1]]))
    path = Path()
    for child in reversed(chain[:-1]):
        parent = int(tree.parent[child])
        path.enter(tree, parent, child == tree.children_left[parent])
    return path


def branch_condition(tree: TreeNodes, parent: int, left: bool) -> Condition | ObliqueCondition:
    """Return the condition of the branch from a node to one of its children.

    It allows missing cells besides values only where they can get to the node, and names no levels
    that cannot, if others do.
    """
    path = Path()
    path.enter(tree, parent, left)
    condition = path.conditions()[0]
    if tree.kind[parent] == LEVELS and isinstance(condition, Condition):
        condition = replace(condition, codes=_arriving_codes(tree, parent, condition))
    if isinstance(condition, Condition) and condition.or_missing and not condition.is_everything:
        return replace(condition, missing=bool(tree.missing_arrives[parent]))
    return condition


def _arriving_codes(tree: TreeNodes, node: int, condition: Condition) -> tuple[int, ...]:
    """Return a set of levels as the condition at a node that the fewest names are needed for.

    It has the same of the levels that can get to the node: all others are on the side for which
    more names would be needed.
    """
    every, codes = range(len(condition.column.levels)), set(condition.codes or ())
    arriving = set(every)
    for above in path_to(tree, node).conditions():
        if isinstance(above, Condition) and above.feature == condition.feature:
            arriving = set(above.codes or ())
    inside, outside = arriving & codes, arriving - codes
    if not inside or not outside:
        return condition.codes or ()
    if len(inside) <= len(outside):
        return tuple(sorted(inside))
    return tuple(code for code in every if code not in outside)


def walk_leaves(tree: TreeNodes) -> Iterator[tuple[int, int, Path]]:
    """Yield node id, depth and path of the leaves, from left to right.

    The path is a single object that the next step changes.
    """
    is_leaf = (tree.kind == LEAF).tolist()
    return (visit for visit in walk_nodes(tree) if is_leaf[visit[0]])


def walk_nodes(tree: TreeNodes) -> Iterator[tuple[int, int, Path]]:
    """Yield node id, depth and path of all nodes, parents before children, left before right.

    The path is a single object that the next step changes.
    """
    path = Path()
    left_child, right_child = tree.children_left.tolist(), tree.children_right.tolist()
    # A visit is (node, depth, parent, is left child); a step back is (-1, 0, 0, False) with its
    # undos on top of a stack of their own.
    visits: list[tuple[int, int, int, bool]] = [(0, 0, -1, False)]
    undos: list[list[_Undo]] = []
    while visits:
        node, depth, parent, left = visits.pop()
        if node < 0:
            path.leave(undos.pop())
            continue
        if parent >= 0:
            undos.append(path.enter(tree, parent, left))
            visits.append((-1, 0, 0, False))
        yield node, depth, path
        if left_child[node] >= 0:
            visits.append((right_child[node], depth + 1, node, False))
            visits.append((left_child[node], depth + 1, node, True))
