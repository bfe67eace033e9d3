"""Words of the tree: texts of branches, rules and rows, of shares, moves and numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from .._engine import MISSING_LEVEL
from .._util import format_count, format_number, format_short
from .._util.words import format_share, tested_level
from .columns import MAX_LEVELS_SHOWN
from .nodes import LEAF, MOVES, TreeNodes
from .paths import NEVER, Condition, ObliqueCondition, Span, branch_condition

# Terms of an oblique test in printed trees and pictures: those of the largest shares.
MAX_TERMS = 3
_MAX_SHARES = 3
_ALWAYS = "always"


class NamesFeatures(Protocol):
    """A tree or a table of cells, whose features have names."""

    def feature_name(self, feature: int) -> str:
        """Return the name of a feature for texts."""


def branch_text(
    tree: TreeNodes, parent: int, left: bool, max_terms: int = MAX_TERMS, *, shares: bool = False
) -> str:
    """Return the test on the branch from a node to one of its children.

    Of an oblique test the terms of the largest shares, with three digits and with `shares` these;
    of a set of levels the first five.
    """
    condition = branch_condition(tree, parent, left)
    if isinstance(condition, ObliqueCondition):
        return condition.text(tree.feature_name, max_terms, short=True, shares=shares)
    return condition.text(tree.feature_name(condition.feature), MAX_LEVELS_SHOWN)


def branch_lines(
    tree: TreeNodes,
    parent: int,
    left: bool,
    width: int,
    max_terms: int = MAX_TERMS,
    *,
    shares: bool = False,
) -> list[str]:
    """Return `branch_text`, an oblique test or a set of levels broken into lines of `width`."""
    condition = branch_condition(tree, parent, left)
    if not isinstance(condition, ObliqueCondition):
        return condition.lines(tree.feature_name(condition.feature), width)
    return condition.lines(tree.feature_name, width, max_terms, shares=shares)


def branch_answer(tree: TreeNodes, parent: int, left: bool) -> str:
    """Return what a picture writes beside a branch; the test at its node says what "yes" is."""
    if left:
        return "yes"
    condition = branch_condition(tree, parent, False)
    is_missing = isinstance(condition, Condition) and condition.or_missing
    return "no or missing" if is_missing else "no"


def is_written_in_full(tree: TreeNodes, max_terms: int = MAX_TERMS) -> bool:
    """Return whether `branch_text` writes every weight and bias of the tree exactly."""
    if tree.oblique_weights is None or tree.oblique_bias is None:
        return True
    if tree.n_node_features.max() > max_terms + 1:
        return False
    numbers = np.concatenate([tree.oblique_weights, tree.oblique_bias])
    return all(float(format_short(number)) == number for number in numbers[~np.isnan(numbers)])


def rule_text(
    name: Callable[[int], str],
    conditions: list[Condition | ObliqueCondition],
    max_terms: int | None = None,
    scores: dict[int, str] | None = None,
    *,
    short: bool = False,
) -> str:
    """Return the conditions of a leaf as one sentence; ``always`` if there are none.

    ``never`` where they contradict each other: a center that no row stands for has such a leaf.

    `name` returns the name of a feature. `scores` caches the texts of scores by node, for the next
    leaves. `short`: the weights of sums have three digits.
    """
    scores = {} if scores is None else scores
    parts = []
    for condition in conditions:
        if isinstance(condition, ObliqueCondition):
            if condition.node not in scores:
                scores[condition.node] = " ".join(condition.parts(name, max_terms, short=short))
            parts.append(f"{scores[condition.node]} {condition.relation}")
            continue
        text = condition.text(name(condition.feature))
        parts.append(f"({text})" if condition.is_union and len(conditions) > 1 else text)
    if NEVER in parts:
        return NEVER
    return " and ".join(parts) if parts else _ALWAYS


def row_text(
    tree: NamesFeatures,
    conditions: list[Condition | ObliqueCondition],
    values: list[object],
    scores: dict[int, str],
) -> str:
    """Return the conditions with the values of one row, which must meet them.

    Of several allowed ranges only the one that contains the row's value is written. A missing cell
    is None or NaN, a level its code or its text. The value of an oblique condition is the score of
    the row. `scores` caches the texts of scores by node.

    Raises
    ------
    ValueError
        If a value does not meet its condition.
    """
    parts = []
    for condition, value in zip(conditions, values, strict=True):
        if isinstance(condition, ObliqueCondition):
            number = float(value)  # type: ignore[arg-type]
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
        if condition.codes is not None or is_missing(value):
            parts.append(_level_part(condition, name, value))
            continue
        number = float(value)  # type: ignore[arg-type]
        met = [span for span in condition.spans if span.contains(number)]
        if not met:
            raise ValueError(
                f"the value {condition.column.value_text(number)} of {name} does not meet the "
                f"condition {condition.text(name)}"
            )
        span = met[0]
        if condition.column.kind == "number":
            subject = f"{name} = {_format_value(value, span)}"
        else:
            subject = f"{name} = {condition.column.value_text(number)}"
        single = span.lower == span.upper or condition.is_everything
        parts.append(subject if single else span.text(subject, condition.column))
    return " and ".join(parts) if parts else _ALWAYS


def is_missing(value: object) -> bool:
    """Return whether a row's value is a missing cell: None or NaN."""
    return value is None or value != value


def _level_part(condition: Condition, name: str, value: object) -> str:
    """Return the level of a row with the condition it meets, or that its cell is missing."""
    column = condition.column
    code = column.code(value)
    if code is None:
        if is_missing(value):
            subject = f"{name} is missing"
        elif value == MISSING_LEVEL:
            subject = f"{name} is missing or an unknown level"
        else:
            subject = f"{name} = {tested_level(str(value))} (unknown level)"
        if not condition.missing:
            raise ValueError(f"{subject}, which does not meet the condition {condition.text(name)}")
        return subject
    text = column.level_text(code)
    if condition.codes is None or code not in condition.codes:
        raise ValueError(
            f"the value {text} of {name} does not meet the condition {condition.text(name)}"
        )
    if column.kind == "flag" or len(condition.codes) == 1 or condition.is_everything:
        return f"{name} = {text}"
    return column.set_text(f"{name} = {text}", condition.codes, MAX_LEVELS_SHOWN)


def _signed(number: float) -> str:
    """Return a score with three digits and the minus sign of the weights."""
    return format_short(number).replace("-", "−", 1) if number < 0 else format_short(number)


def _format_value(value: object, span: Span) -> str:
    """Return a row's value as text: float32 in its own short form if that lies in the span too."""
    number = float(value)  # type: ignore[arg-type]
    if getattr(getattr(value, "dtype", None), "kind", None) in set("biu") or isinstance(value, int):
        return str(int(value))  # type: ignore[call-overload]
    if getattr(getattr(value, "dtype", None), "itemsize", 8) < 8:
        short = str(value)
        if span.contains(float(short)):
            return format_number(float(short))
    return format_number(number)


def format_weight(weight: float) -> str:
    """Return a count or a sum of weights: whole numbers in full, others with three digits."""
    if np.isnan(weight):
        return ""
    if weight == round(weight) or weight >= 1000:
        return f"{weight:,.0f}"
    return f"{weight:.3g}"


def format_gain(gain: float) -> str:
    """Return a gain with three digits, or as a whole number with separators."""
    if 1000 <= round(gain) < 1_000_000_000:
        return f"{gain:,.0f}"
    return f"{gain:.3g}"


def move_name(tree: TreeNodes, node: int) -> str:
    """Return the move of a split in words; "" at leaves and in trees without moves."""
    if tree.move is None or tree.move[node] < 0:
        return ""
    return MOVES[tree.move[node]].replace("_", " ")


def split_text(tree: TreeNodes, node: int) -> str:
    """Return the move of a split and its gain; "" at leaves and in trees without moves."""
    if tree.gain is None or tree.kind[node] == LEAF:
        return ""
    return f"{move_name(tree, node)}, gain {format_gain(float(tree.gain[node]))}"


def shares_text(tree: TreeNodes, node: int, max_shares: int = _MAX_SHARES) -> str:
    """Return the reference clusters of a leaf's rows, the largest first; "" if all are its own."""
    shares = tree.value[node, 0]
    order = np.argsort(-shares, kind="stable")
    order = order[shares[order] > 0]
    if len(order) == 0 or (len(order) == 1 and order[0] == tree.leaf_clusters[node]):
        return ""
    # A single further cluster is written in place of "1 others".
    n_shown = len(order) if len(order) <= max_shares + 1 else max_shares
    parts = [
        f"{tree.cluster_name(int(code))}: {format_share(float(shares[code]))}"
        for code in order[:n_shown]
    ]
    if n_shown < len(order):
        parts.append(f"{len(order) - n_shown} others")
    return ", ".join(parts)


def summary_text(tree: TreeNodes) -> str:
    """Return the sizes of the tree in one line."""
    return (
        f"ClusterTree: {format_count(tree.n_leaves, 'leaf', 'leaves')}, "
        f"{format_count(len(tree.classes), 'cluster')}, depth {tree.max_depth:,}, "
        f"{format_count(int(tree.n_node_samples[0]), 'row')}"
    )
