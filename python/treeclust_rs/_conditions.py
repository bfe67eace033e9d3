"""What a path through the tree asks of a row: tests merged per feature, and their wording.

A path that asks ``x <= 9``, then ``x > 2``, then ``x <= 5`` asks ``2 < x <= 5``: per feature and
direction only the tightest bound counts. The outside of an interval leaves a hole in the values
allowed, unless a bound swallows it: ``x > 3`` outside of ``2 <= x <= 4`` is ``x > 4``.

`Path` is changed in place while a walk goes down the tree and restored as it comes back up, so
that one walk over a tree of any depth costs a few operations per node and no copies.
"""

from __future__ import annotations

import math
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .tree import ClusterTree

LEAF, THRESHOLD, INTERVAL = 0, 1, 2
# How a split of a Kauri tree places its two children, by code; -1 marks nodes that are not split.
MOVES = ("star", "double_star", "switch", "reallocation", "mixed")

_ALWAYS = "always"
_hole_lower = itemgetter(0)
_hole_upper = itemgetter(1)


def format_number(number: float) -> str:
    """Write a float so that reading it back gives the same float; 5.0 is written 5."""
    if math.isfinite(number) and number == int(number) and abs(number) < 1e16:
        return str(int(number))
    return repr(float(number))


def printable(text: object) -> str:
    """Give a name or a label as it is, with control characters and line breaks escaped."""
    characters = str(text)
    if characters.isprintable():
        return characters
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
        else character
        for character in characters
    )


class Span(NamedTuple):
    """One unbroken range of values; an end at infinity is open."""

    lower: float
    lower_strict: bool
    upper: float
    upper_strict: bool

    def contains(self, value: float) -> bool:
        """Tell whether the value lies in the range."""
        above = value > self.lower if self.lower_strict else value >= self.lower
        below = value < self.upper if self.upper_strict else value <= self.upper
        return above and below

    def text(self, subject: str) -> str:
        """Write the range as a comparison of `subject`, for instance ``2 < age <= 7``."""
        if self.lower == self.upper and not (self.lower_strict or self.upper_strict):
            return f"{subject} = {format_number(self.lower)}"
        less = "<" if self.upper_strict else "<="
        if self.lower == -math.inf:
            return f"{subject} {less} {format_number(self.upper)}"
        if self.upper == math.inf:
            greater = ">" if self.lower_strict else ">="
            return f"{subject} {greater} {format_number(self.lower)}"
        first = "<" if self.lower_strict else "<="
        return f"{format_number(self.lower)} {first} {subject} {less} {format_number(self.upper)}"


_EVERYTHING = Span(-math.inf, False, math.inf, False)


@dataclass(frozen=True, slots=True)
class Condition:
    """All that a path asks of one feature.

    Parameters
    ----------
    feature : int
        Index of the feature.
    span : Span
        The bounds; an end at infinity is open.
    holes : tuple of (float, float)
        Closed ranges of values that are left out: ascending, disjoint, strictly inside the bounds.
    """

    feature: int
    span: Span
    holes: tuple[tuple[float, float], ...] = ()

    @property
    def size(self) -> int:
        """Number of elementary conditions: one per finite bound, two per hole."""
        return _n_finite(self.span) + 2 * len(self.holes)

    @property
    def spans(self) -> list[Span]:
        """The unbroken ranges of allowed values, in ascending order."""
        spans: list[Span] = []
        lower, lower_strict = self.span.lower, self.span.lower_strict
        for hole_lower, hole_upper in self.holes:
            spans.append(Span(lower, lower_strict, hole_lower, True))
            lower, lower_strict = hole_upper, True
        spans.append(Span(lower, lower_strict, self.span.upper, self.span.upper_strict))
        return spans

    def text(self, name: str) -> str:
        """Write the condition; several ranges are joined by ``or``."""
        return " or ".join(span.text(name) for span in self.spans)


class _Region:
    """The values one feature may still take: the mutable form of `Condition`."""

    __slots__ = ("holes", "span")

    def __init__(self) -> None:
        self.span = _EVERYTHING
        self.holes: list[tuple[float, float]] = []

    @property
    def size(self) -> int:
        return _n_finite(self.span) + 2 * len(self.holes)


class _Undo(NamedTuple):
    """How to take back one change of one region."""

    feature: int
    created: bool
    span: Span
    position: int
    removed: list[tuple[float, float]]
    n_added: int


class Path:
    """The merged conditions between the root and one node.

    `size` is the number of elementary conditions, as WAES counts them: per feature the finite
    bounds, and two for every hole.
    """

    def __init__(self) -> None:
        self.size = 0
        self._regions: dict[int, _Region] = {}

    def conditions(self) -> list[Condition]:
        """Give the conditions, in the order in which the path first asks about the features."""
        return [
            Condition(feature, region.span, tuple(region.holes))
            for feature, region in self._regions.items()
        ]

    def span(self, feature: int) -> Span:
        """Give the bounds on one feature, without the holes."""
        region = self._regions.get(feature)
        return _EVERYTHING if region is None else region.span

    def enter(self, tree: ClusterTree, parent: int, left: bool) -> list[_Undo]:
        """Go from a node to one of its children; give what `leave` needs to come back."""
        feature = int(tree.feature[parent])
        if tree.kind[parent] == THRESHOLD:
            threshold = float(tree.threshold[parent])
            if left:
                return [self._bound_above(feature, threshold, False)]
            return [self._bound_below(feature, threshold, True)]
        lower, upper = float(tree.lower[parent]), float(tree.upper[parent])
        if left:
            return [
                self._bound_below(feature, lower, False),
                self._bound_above(feature, upper, False),
            ]
        return [self._cut_out(feature, lower, upper)]

    def leave(self, undos: list[_Undo]) -> None:
        """Take back what one `enter` did; the last one first."""
        for undo in reversed(undos):
            region = self._regions[undo.feature]
            self.size -= region.size
            region.span = undo.span
            region.holes[undo.position : undo.position + undo.n_added] = undo.removed
            self.size += region.size
            if undo.created:
                del self._regions[undo.feature]

    def _open(self, feature: int) -> tuple[_Region, bool]:
        region = self._regions.get(feature)
        if region is not None:
            return region, False
        region = self._regions[feature] = _Region()
        return region, True

    def _bound_above(self, feature: int, bound: float, strict: bool) -> _Undo:
        region, created = self._open(feature)
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
        return _Undo(feature, created, old, len(region.holes), removed[::-1], 0)

    def _bound_below(self, feature: int, bound: float, strict: bool) -> _Undo:
        region, created = self._open(feature)
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
        return _Undo(feature, created, old, 0, removed, 0)

    def _cut_out(self, feature: int, lower: float, upper: float) -> _Undo:
        region, created = self._open(feature)
        span = region.span
        beside = not (_reaches_above(span, lower) and _reaches_below(span, upper))
        if not beside and lower <= span.lower:
            undo = self._bound_below(feature, upper, True)
        elif not beside and upper >= span.upper:
            undo = self._bound_above(feature, lower, True)
        else:
            start = bisect_left(region.holes, lower, key=_hole_upper)
            stop = start if beside else bisect_right(region.holes, upper, key=_hole_lower)
            removed = region.holes[start:stop]
            if removed:
                lower, upper = min(lower, removed[0][0]), max(upper, removed[-1][1])
            added = [] if beside else [(lower, upper)]
            region.holes[start:stop] = added
            self.size += 2 * (len(added) - len(removed))
            return _Undo(feature, created, span, start, removed, len(added))
        return undo._replace(created=created)


def _n_finite(span: Span) -> int:
    return int(span.lower > -math.inf) + int(span.upper < math.inf)


def _reaches_above(span: Span, value: float) -> bool:
    return span.upper > value or (span.upper == value and not span.upper_strict)


def _reaches_below(span: Span, value: float) -> bool:
    return span.lower < value or (span.lower == value and not span.lower_strict)


def walk_leaves(tree: ClusterTree) -> Iterator[tuple[int, int, Path]]:
    """Go through the leaves from left to right.

    Yields the node id, the depth and the path of each leaf. The path is the walk's own and changes
    with the next step: take from it what is needed at once.
    """
    is_leaf = (tree.kind == LEAF).tolist()
    return (visit for visit in walk_nodes(tree) if is_leaf[visit[0]])


def walk_nodes(tree: ClusterTree) -> Iterator[tuple[int, int, Path]]:
    """Go through all nodes, every node before its children, left before right.

    Yields as `walk_leaves` does.
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


def branch_condition(tree: ClusterTree, parent: int, left: bool) -> Condition:
    """Give what the branch from a node to one of its children asks."""
    path = Path()
    path.enter(tree, parent, left)
    return path.conditions()[0]


def branch_text(tree: ClusterTree, parent: int, left: bool) -> str:
    """Write the test on the branch from a node to one of its children."""
    condition = branch_condition(tree, parent, left)
    return condition.text(tree.feature_name(condition.feature))


def rule_text(tree: ClusterTree, conditions: list[Condition]) -> str:
    """Write the conditions of a leaf as one sentence; ``always`` where there are none."""
    parts = []
    for condition in conditions:
        text = condition.text(tree.feature_name(condition.feature))
        parts.append(f"({text})" if condition.holes and len(conditions) > 1 else text)
    return " and ".join(parts) if parts else _ALWAYS


def row_text(tree: ClusterTree, conditions: list[Condition], values: list[object]) -> str:
    """Write the conditions with the values of one row, which has to meet them.

    Of several allowed ranges only the one that holds the row's value is written.

    Raises
    ------
    ValueError
        If a value does not meet its condition.
    """
    parts = []
    for condition, value in zip(conditions, values, strict=True):
        name = tree.feature_name(condition.feature)
        number = float(value)  # type: ignore[arg-type]
        met = [span for span in condition.spans if span.contains(number)]
        if not met:
            raise ValueError(
                f"the value {format_number(number)} of {name} does not meet the condition "
                f"{condition.text(name)}"
            )
        subject = f"{name} = {_format_value(value, met[0])}"
        span = met[0]
        single = span.lower == span.upper
        parts.append(subject if single else span.text(subject))
    return " and ".join(parts) if parts else _ALWAYS


def _format_value(value: object, span: Span) -> str:
    """Write a row's value: whole numbers as such, float32 short where that says the truth."""
    number = float(value)  # type: ignore[arg-type]
    if getattr(getattr(value, "dtype", None), "kind", "") in "biu" or isinstance(value, int):
        return str(int(value))  # type: ignore[call-overload]
    if getattr(getattr(value, "dtype", None), "itemsize", 8) < 8:
        short = str(value)
        if span.contains(float(short)):
            return format_number(float(short))
    return format_number(number)
