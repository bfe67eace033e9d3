"""What a path through the tree asks of a row: tests merged per feature, and their wording.

A path that asks ``x <= 9``, then ``x > 2``, then ``x <= 5`` asks ``2 < x <= 5``: per feature and
direction only the tightest bound counts. The outside of an interval leaves a hole in the values
allowed, unless a bound swallows it: ``x > 3`` outside of ``2 <= x <= 4`` is ``x > 4``. An oblique
test, of the sign of a weighted sum, stands for itself: it is merged with nothing.

`Path` is changed in place while a walk goes down the tree and restored as it comes back up, so
that one walk over a tree of any depth costs a few operations per node and no copies.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .._util.words import format_number, format_short

if TYPE_CHECKING:
    from .cluster_tree import ClusterTree

LEAF, THRESHOLD, INTERVAL, OBLIQUE = 0, 1, 2, 3
# How a split of a Kauri tree places its two children, by code; -1 marks nodes that are not split.
MOVES = ("star", "double_star", "switch", "reallocation", "mixed")

# Of the weights of an oblique test pictures and printed trees show so many, the largest.
MAX_TERMS = 3

_ALWAYS = "always"


class WithNames(Protocol):
    """What has named features: a tree, for instance."""

    def feature_name(self, feature: int) -> str:
        """Give the name to write for a feature."""


_hole_lower = itemgetter(0)
_hole_upper = itemgetter(1)


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


@dataclass(frozen=True, slots=True)
class ObliqueCondition:
    """What an oblique node asks of the rows that take one of its branches.

    Their score, ``bias + weights[0] * x[features[0]] + ...``, is less than 0 on the left and not on
    the right.

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
        What the score starts from.
    """

    node: int
    negative: bool
    features: npt.NDArray[np.int64] = field(compare=False)
    weights: npt.NDArray[np.float64] = field(compare=False)
    bias: float = field(compare=False)

    @property
    def size(self) -> int:
        """Number of features used."""
        return len(self.features)

    def score(
        self, column: Callable[[int], npt.NDArray[np.float64]]
    ) -> npt.NDArray[np.float64] | float:
        """Give the scores of rows whose features `column` gives.

        It is added up in the order of the features, as everywhere: the bits do not depend on who
        computes it.
        """
        score: npt.NDArray[np.float64] | float = self.bias
        with np.errstate(over="ignore", invalid="ignore"):
            for feature, weight in zip(self.features.tolist(), self.weights.tolist(), strict=True):
                score = score + weight * column(feature)
        return score

    def holds(self, score: float) -> bool:
        """Tell whether a row of this score takes the branch."""
        return (score < 0) == self.negative

    @property
    def relation(self) -> str:
        """The comparison with 0, for instance ``< 0``."""
        return "< 0" if self.negative else ">= 0"

    def parts(
        self, name: Callable[[int], str], max_terms: int | None = None, *, short: bool = False
    ) -> list[str]:
        """Write the score in parts that can stand on a line each, the largest weights first.

        Parameters
        ----------
        name : callable
            Gives the name of a feature.
        max_terms : int, default=None
            Number of weights to write where there are at least two more; None writes all.
        short : bool, default=False
            Whether to round the numbers to three digits.

        Returns
        -------
        list of str
            For instance ``["1.2·age", "− 0.8·income", "… and 12 more", "+ 0.3"]``.
        """
        write = format_short if short else format_number
        order = np.argsort(-np.abs(self.weights), kind="stable")
        # One more is written rather than replaced by "… and 1 more".
        shown = order if max_terms is None or len(order) <= max_terms + 1 else order[:max_terms]
        parts: list[str] = []
        for feature, weight in zip(
            self.features[shown].tolist(), self.weights[shown].tolist(), strict=True
        ):
            factor = "" if abs(weight) == 1 else f"{write(abs(weight))}·"
            sign = ("− " if parts else "−") if weight < 0 else ("+ " if parts else "")
            parts.append(f"{sign}{factor}{name(feature)}")
        if len(shown) < len(order):
            parts.append(f"… and {len(order) - len(shown)} more")
        if self.bias != 0:
            parts.append(f"{'−' if self.bias < 0 else '+'} {write(abs(self.bias))}")
        return parts

    def text(
        self, name: Callable[[int], str], max_terms: int | None = None, *, short: bool = False
    ) -> str:
        """Write the condition in one line; the parameters are those of `parts`."""
        return f"{' '.join(self.parts(name, max_terms, short=short))} {self.relation}"

    def lines(self, name: Callable[[int], str], width: int, max_terms: int) -> list[str]:
        """Write the condition with three digits in lines of `width`, terms being kept whole."""
        parts = self.parts(name, max_terms, short=True)
        lines = [""]
        for part in (*parts[:-1], f"{parts[-1]} {self.relation}"):
            if lines[-1] and len(lines[-1]) + 1 + len(part) > width:
                lines.append(part)
            else:
                lines[-1] = f"{lines[-1]} {part}".lstrip()
        return lines


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
    """How to take back one change of one region; feature -1 takes back an oblique condition."""

    feature: int
    created: bool
    span: Span
    position: int
    removed: list[tuple[float, float]]
    n_added: int


_UNDO_OBLIQUE = _Undo(-1, False, _EVERYTHING, 0, [], 0)


class Path:
    """The merged conditions between the root and one node.

    `size` is the number of elementary conditions, as WAES counts them: per feature the finite
    bounds, and two for every hole; for every oblique test the features it uses.
    """

    def __init__(self) -> None:
        self.size = 0
        self._regions: dict[int, _Region] = {}
        # With the number of regions there were before each.
        self._oblique: list[tuple[int, ObliqueCondition]] = []

    def conditions(self) -> list[Condition | ObliqueCondition]:
        """Give the conditions, in the order in which the path first asks about the features."""
        conditions: list[Condition | ObliqueCondition] = [
            Condition(feature, region.span, tuple(region.holes))
            for feature, region in self._regions.items()
        ]
        for position, condition in reversed(self._oblique):
            conditions.insert(position, condition)
        return conditions

    def span(self, feature: int) -> Span:
        """Give the bounds on one feature, without the holes."""
        region = self._regions.get(feature)
        return _EVERYTHING if region is None else region.span

    def enter(self, tree: ClusterTree, parent: int, left: bool) -> list[_Undo]:
        """Go from a node to one of its children; give what `leave` needs to come back."""
        kind, feature = int(tree.kind[parent]), int(tree.feature[parent])
        if kind == OBLIQUE:
            condition = oblique_condition(tree, parent, left)
            self._oblique.append((len(self._regions), condition))
            self.size += condition.size
            return [_UNDO_OBLIQUE]
        if kind == THRESHOLD:
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
            if undo.feature < 0:
                self.size -= self._oblique.pop()[1].size
                continue
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


def oblique_condition(tree: ClusterTree, node: int, left: bool) -> ObliqueCondition:
    """Give what the branch from an oblique node to one of its children asks."""
    features, weights, bias = tree.oblique_test(node)
    return ObliqueCondition(node, left, features, weights, bias)


def branch_condition(tree: ClusterTree, parent: int, left: bool) -> Condition | ObliqueCondition:
    """Give what the branch from a node to one of its children asks."""
    path = Path()
    path.enter(tree, parent, left)
    return path.conditions()[0]


def branch_text(tree: ClusterTree, parent: int, left: bool, max_terms: int = MAX_TERMS) -> str:
    """Write the test on the branch from a node to one of its children.

    Of an oblique test the largest weights, with three digits.
    """
    condition = branch_condition(tree, parent, left)
    if isinstance(condition, ObliqueCondition):
        return condition.text(tree.feature_name, max_terms, short=True)
    return condition.text(tree.feature_name(condition.feature))


def branch_lines(
    tree: ClusterTree, parent: int, left: bool, width: int, max_terms: int = MAX_TERMS
) -> list[str]:
    """Write `branch_text`, an oblique test broken into lines."""
    condition = branch_condition(tree, parent, left)
    if not isinstance(condition, ObliqueCondition):
        return [condition.text(tree.feature_name(condition.feature))]
    return condition.lines(tree.feature_name, width, max_terms)


def is_written_in_full(tree: ClusterTree, max_terms: int = MAX_TERMS) -> bool:
    """Tell whether `branch_text` writes every weight and bias of the tree, and exactly."""
    if tree.oblique_weights is None or tree.oblique_bias is None:
        return True
    if tree.n_node_features.max() > max_terms + 1:
        return False
    numbers = np.concatenate([tree.oblique_weights, tree.oblique_bias])
    return all(float(format_short(number)) == number for number in numbers[~np.isnan(numbers)])


def rule_text(
    tree: WithNames,
    conditions: list[Condition | ObliqueCondition],
    max_terms: int | None = None,
    scores: dict[int, str] | None = None,
) -> str:
    """Write the conditions of a leaf as one sentence; ``always`` where there are none.

    `scores` keeps the scores written so far, by node, for the next leaves.
    """
    scores = {} if scores is None else scores
    parts = []
    for condition in conditions:
        if isinstance(condition, ObliqueCondition):
            if condition.node not in scores:
                scores[condition.node] = " ".join(condition.parts(tree.feature_name, max_terms))
            parts.append(f"{scores[condition.node]} {condition.relation}")
            continue
        text = condition.text(tree.feature_name(condition.feature))
        parts.append(f"({text})" if condition.holes and len(conditions) > 1 else text)
    return " and ".join(parts) if parts else _ALWAYS


def row_text(
    tree: WithNames,
    conditions: list[Condition | ObliqueCondition],
    values: list[object],
    scores: dict[int, str],
) -> str:
    """Write the conditions with the values of one row, which has to meet them.

    Of several allowed ranges only the one that holds the row's value is written. The value of an
    oblique condition is the score of the row.

    Raises
    ------
    ValueError
        If a value does not meet its condition.
    """
    parts = []
    for condition, value in zip(conditions, values, strict=True):
        number = float(value)  # type: ignore[arg-type]
        if isinstance(condition, ObliqueCondition):
            if condition.node not in scores:
                short = condition.parts(tree.feature_name, MAX_TERMS, short=True)
                scores[condition.node] = " ".join(short)
            if not condition.holds(number):
                raise ValueError(
                    f"the score {format_number(number)} at node {condition.node} is not "
                    f"{condition.relation}"
                )
            parts.append(f"{scores[condition.node]} = {_signed(number)} {condition.relation}")
            continue
        name = tree.feature_name(condition.feature)
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


def _signed(number: float) -> str:
    """Write a score with three digits and the minus sign of the weights."""
    return format_short(number).replace("-", "−", 1) if number < 0 else format_short(number)


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
