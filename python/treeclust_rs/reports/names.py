"""Short names of clusters, made from the conditions that tell most of their rows from the others.

A condition tells the more, the larger the share of the cluster's rows that meet it, less the share
of all other rows that do. The best condition comes first; a second one joins it if both tell
clearly more. Clusters that are bounded by weighted sums are named by what sets them apart instead.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np

from .._util import BoolArray, FloatArray, format_short
from ..tree import Condition, Span, walk_leaves
from ..tree.columns import Column
from .rows import Contrast, ReportRows

# A further condition, or a further bound, must tell so much more.
_MIN_GAIN = 0.05
_MAX_CONDITIONS = 2
# Where two names are the same.
_MOST_CONDITIONS = 4
_MAX_LEVELS = 2
_MAX_LENGTH = 8
# Names are found by so many rows, evenly spaced, and by the largest leaves of a cluster.
_MAX_ROWS = 20_000
_MAX_LEAVES = 20
EVERY_ROW, NO_ROW, UNNAMED = "all rows", "no rows", "no telling condition"


def cluster_names(rows: ReportRows) -> list[str]:
    """Return a short name for each cluster; they differ where conditions or contrasts do."""
    k = len(rows.classes)
    parts = [_parts(rows, code) for code in range(k)]
    counts = [min(_MAX_CONDITIONS, needed) for _, needed in parts]
    while True:
        names = [
            ", ".join(words[:n]) or _without_words(rows, code)
            for code, ((words, _), n) in enumerate(zip(parts, counts, strict=True))
        ]
        seen = Counter(names)
        longer = [
            code
            for code in range(k)
            if seen[names[code]] > 1 and counts[code] < len(parts[code][0])
        ]
        if not longer:
            return names
        for code in longer:
            counts[code] += 1


def _without_words(rows: ReportRows, code: int) -> str:
    """Return the name of a cluster that nothing tells from the others."""
    size = rows.sizes[code]
    return UNNAMED if 0 < size < rows.n_rows else EVERY_ROW if size else NO_ROW


def _parts(rows: ReportRows, code: int) -> tuple[list[str], int]:
    """Return the words of a cluster's name, and how many of them tell clearly more than fewer."""
    chosen, needed = _telling(rows, code)
    words = [condition_words(rows.names[c.feature], c) for c in chosen]
    used = {condition.feature for condition in chosen}
    by_contrast = [
        contrast_words(rows.names[c.feature], c, rows.column(c.feature))
        for c in rows.contrasts[code]
        if c.feature not in used
    ]
    return (words + by_contrast)[:_MOST_CONDITIONS], needed or _MAX_CONDITIONS


def _telling(rows: ReportRows, code: int) -> tuple[list[Condition], int]:
    """Return conditions, the most telling first, and how many tell clearly more than fewer."""
    sample = slice(None, None, -(-rows.n_rows // _MAX_ROWS))
    own = rows.codes[sample] == code
    n_own, n_others = max(int(own.sum()), 1), max(int((~own).sum()), 1)
    candidates = {c: _met(c, rows.values(c.feature)[sample]) for c in _candidates(rows, code)}
    chosen: list[Condition] = []
    inside, told, needed = np.ones(len(own), dtype=bool), 0.0, 0
    while candidates and len(chosen) < _MOST_CONDITIONS:
        worth = {
            condition: float((both & own).sum() / n_own - (both & ~own).sum() / n_others)
            - _MIN_GAIN * (_n_bounds(condition) - 1)
            for condition, both in ((c, met & inside) for c, met in candidates.items())
        }
        best = max(worth, key=lambda condition: worth[condition])
        if worth[best] <= told:
            break
        if worth[best] >= told + _MIN_GAIN and needed == len(chosen):
            needed += 1
        told = worth[best]
        inside &= candidates[best]
        chosen.append(best)
        candidates = {c: met for c, met in candidates.items() if c.feature != best.feature}
    return chosen, needed


def _n_bounds(condition: Condition) -> int:
    return len(condition.spans) * max(condition.span.n_bounds, 1)


def _candidates(rows: ReportRows, code: int) -> list[Condition]:
    """Return the conditions of the cluster's leaves, and the single bounds of ranges."""
    tree = rows.tree
    if tree is None:
        return []
    own = tree.leaves[tree.leaf_clusters[tree.leaves] == code]
    largest = own[np.argsort(-tree.n_node_samples[own], kind="stable")[:_MAX_LEAVES]].tolist()
    found: dict[Condition, None] = {}
    for leaf, _, path in walk_leaves(tree):
        if leaf not in largest:
            continue
        for condition in path.conditions():
            if not isinstance(condition, Condition) or condition.is_everything:
                continue
            found[condition] = None
            span = condition.span
            if span.n_bounds == 2 and not condition.is_empty:
                below = span._replace(upper=math.inf, upper_strict=False)
                above = span._replace(lower=-math.inf, lower_strict=False)
                for part in (below, above):
                    found[replace(condition, span=part, holes=())] = None
    return list(found)


def _met(condition: Condition, values: FloatArray) -> BoolArray:
    """Return which values of its column meet a condition."""
    if condition.codes is not None:
        met = np.isin(values, condition.codes)
    else:
        met = np.zeros(len(values), dtype=bool)
        for span in condition.spans:
            above = values > span.lower if span.lower_strict else values >= span.lower
            met |= above & (values < span.upper if span.upper_strict else values <= span.upper)
    return np.asarray(met | np.isnan(values)) if condition.missing else met


def condition_words(name: str, condition: Condition) -> str:
    """Return a condition as people say it, without the missing cells that it allows besides."""
    if condition.is_empty:
        return f"{name} missing"
    if condition.codes is None:
        return " or ".join(_range_words(name, span, condition.column) for span in condition.spans)
    column, codes = condition.column, condition.codes
    if column.kind == "flag":
        return name if codes == (1,) else f"not {name}"
    others = [code for code in range(len(column.levels)) if code not in codes]
    is_shorter = 0 < len(others) < len(codes)
    shown = others if is_shorter else list(codes)
    texts = [column.level_text(code) for code in shown]
    if len(texts) > _MAX_LEVELS + 1:
        texts = [*texts[:_MAX_LEVELS], f"{len(texts) - _MAX_LEVELS} more"]
    levels = " or ".join([", ".join(texts[:-1]), texts[-1]] if texts[1:] else texts)
    return f"{name} {'not ' if is_shorter else ''}{levels}"


def _range_words(name: str, span: Span, column: Column) -> str:
    is_date = column.is_time and column.kind != "duration"
    lower = _bound(span.lower, column, up=not span.lower_strict)
    upper = _bound(span.upper, column, up=span.upper_strict)
    if lower and upper:
        return f"{name} {lower}" if lower == upper else f"{name} {lower} to {upper}"
    if upper:
        words = ("before", "until") if is_date else ("below", "up to")
        return f"{name} {words[0] if span.upper_strict else words[1]} {upper}"
    words = ("after", "from") if is_date else ("above", "from")
    return f"{name} {words[0] if span.lower_strict else words[1]} {lower}"


def _bound(value: float, column: Column, *, up: bool) -> str:
    """Return an end of a range; "" if it is open. Long numbers have three digits."""
    if math.isinf(value):
        return ""
    text = column.value_text(value, up=up)
    if column.kind.startswith("datetime") and text.partition(" ")[2].startswith("00:00"):
        return text.partition(" ")[0]
    return format_short(value) if len(text) > _MAX_LENGTH and not column.is_time else text


def contrast_words(name: str, contrast: Contrast, column: Column) -> str:
    """Return a contrast as people say it."""
    if contrast.level is None:
        return f"{'high' if contrast.amount > 0 else 'low'} {name}"
    what = name if column.kind == "flag" else f"{name} {contrast.level}"
    return f"{'often' if contrast.amount > 0 else 'rarely'} {what}"
