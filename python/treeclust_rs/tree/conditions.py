"""Conditions on a row: bounds and holes of one feature, or the sign of a weighted sum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .._util.arrays import FloatArray, IntArray
from .._util.words import format_number, format_short


class Span(NamedTuple):
    """One range of values without holes; an end at infinity is open."""

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

    def text(self, subject: str) -> str:
        """Return the range as a comparison of `subject`, for instance ``2 < age <= 7``."""
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


EVERYTHING = Span(-math.inf, False, math.inf, False)


@dataclass(frozen=True, slots=True)
class Condition:
    """The values of one feature that a path allows.

    Parameters
    ----------
    feature : int
        Index of the feature.
    span : Span
        The bounds; an end at infinity is open.
    holes : tuple of (float, float)
        Closed ranges of values that are excluded: ascending, disjoint, strictly inside the bounds.
    """

    feature: int
    span: Span
    holes: tuple[tuple[float, float], ...] = ()

    @property
    def size(self) -> int:
        """Number of elementary conditions: one per finite bound, two per hole."""
        return self.span.n_bounds + 2 * len(self.holes)

    @property
    def spans(self) -> list[Span]:
        """The ranges of allowed values between the holes, ascending."""
        spans: list[Span] = []
        lower, lower_strict = self.span.lower, self.span.lower_strict
        for hole_lower, hole_upper in self.holes:
            spans.append(Span(lower, lower_strict, hole_lower, True))
            lower, lower_strict = hole_upper, True
        spans.append(Span(lower, lower_strict, self.span.upper, self.span.upper_strict))
        return spans

    def text(self, name: str) -> str:
        """Return the condition as text; several ranges are joined by ``or``."""
        return " or ".join(span.text(name) for span in self.spans)


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
    """

    node: int
    negative: bool
    features: IntArray = field(compare=False)
    weights: FloatArray = field(compare=False)
    bias: float = field(compare=False)

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

    def parts(
        self, name: Callable[[int], str], max_terms: int | None = None, *, short: bool = False
    ) -> list[str]:
        """Return the score in parts that lines may break between, the largest weights first.

        Parameters
        ----------
        name : callable
            Returns the name of a feature.
        max_terms : int, default=None
            Largest number of weights to write, if there are at least two more; None writes all.
        short : bool, default=False
            Whether to round the numbers to three digits.

        Returns
        -------
        list of str
            For instance ``["1.2·age", "− 0.8·income", "… and 12 more", "+ 0.3"]``.
        """
        write = format_short if short else format_number
        order = np.argsort(-np.abs(self.weights), kind="stable")
        # A single further weight is written in place of "… and 1 more".
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
        """Return the condition in one line; the parameters are those of `parts`."""
        return f"{' '.join(self.parts(name, max_terms, short=short))} {self.relation}"

    def lines(self, name: Callable[[int], str], width: int, max_terms: int) -> list[str]:
        """Return the condition with three digits in lines of `width`, broken between terms."""
        parts = self.parts(name, max_terms, short=True)
        lines = [""]
        for part in (*parts[:-1], f"{parts[-1]} {self.relation}"):
            if lines[-1] and len(lines[-1]) + 1 + len(part) > width:
                lines.append(part)
            else:
                lines[-1] = f"{lines[-1]} {part}".lstrip()
        return lines
