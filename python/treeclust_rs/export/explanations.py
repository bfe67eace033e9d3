"""Why rows are in their clusters, as a frame; and why two rows are together, or where they part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from .._engine import MISSING_LEVEL
from .._util import format_number, format_short
from .._util.words import real_name, tested_level
from ..tree import MAX_TERMS, ClusterTree, Condition, ObliqueCondition, branch_condition
from ..tree.columns import NUMBERS, Column
from ..tree.words import is_missing
from .polars import label_type
from .text import Values, met_conditions

_TEXTS: Mapping[str, Any] = {
    "column": pl.String,
    "value": pl.String,
    "condition": pl.String,
}


def cell_text(column: Column, value: object) -> str:
    """Return the cell of a row as text: a level by its code or text; None and NaN are missing."""
    if is_missing(value):
        return "missing"
    if column.has_levels:
        code = column.code(value)
        if code is not None:
            return column.level_text(code)
        if isinstance(value, str):
            return f"{tested_level(value)} (unknown level)"
        return "missing" if value == MISSING_LEVEL else str(value)
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if column.kind == "number" and kind == "f" and value.dtype.itemsize < 8:  # type: ignore[attr-defined]
        return format_number(float(str(value)))
    return column.value_text(float(value))  # type: ignore[arg-type]


def explanation_frame(
    tree: ClusterTree, leaves: npt.NDArray[np.int64], values: Values
) -> pl.DataFrame:
    """Return the conditions that lead rows to their leaves, a line for each.

    Parameters
    ----------
    tree : ClusterTree
        The tree.
    leaves : ndarray of shape (n_samples,)
        The leaf of each row.
    values : ndarray, sequence of arrays or callable
        The values of the rows, as `explain_rows` takes them.

    Returns
    -------
    polars.DataFrame
        `row`, its number from 0; its `cluster`; `column`, the column of a condition, of a weighted
        sum the sum; the row's `value` there and the `condition`, as texts. A row that no condition
        leads to its leaf has one line, without column, value and condition.
    """
    conditions, values_of = met_conditions(tree, leaves, values)
    lines = []
    for row, leaf in enumerate(leaves.tolist()):
        head = {"row": row, "cluster": tree.classes[tree.leaf_clusters[leaf]]}
        for part, value in zip(conditions[leaf], values_of(row), strict=True):
            subject, text = _texts(tree, part)
            shown = _value_text(part, value)
            lines.append(head | {"column": subject, "value": shown, "condition": text})
        if not conditions[leaf]:
            lines.append(head | dict.fromkeys(_TEXTS))
    schema = {"row": pl.Int64, "cluster": label_type(tree.classes), **_TEXTS}
    return pl.DataFrame(lines, schema=schema)


@dataclass(frozen=True)
class _Shared:
    """What a path asks of two rows: of both, or where they part."""

    column: str
    values: tuple[str, str]
    conditions: tuple[str, str]
    plain: tuple[str, str]
    """The conditions without the missing cells that the rows do not have there."""
    parts: bool

    @property
    def text(self) -> str:
        if self.parts:
            (first, second), (one, other) = self.plain, self.values
            return f"{first} ({one}) against {second} ({other})"
        same = self.values[0] == self.values[1]
        return f"{self.plain[0]} ({self.values[0] if same else ' and '.join(self.values)})"


def explain_pairs(
    tree: ClusterTree,
    leaves: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    values: tuple[Values, Values],
) -> list[str]:
    """Return for each pair of rows why they are together, or where they part.

    The parameters are those of `explanation_frame`, for the first rows and for the second.
    """
    lines = []
    for one, other, shared in _pairs(tree, leaves, values):
        names = [tree.cluster_name(int(tree.leaf_clusters[leaf])) for leaf in (one, other)]
        together = [part.text for part in shared if not part.parts]
        apart = [part.text for part in shared if part.parts]
        head = f"cluster {names[0]} and cluster {names[1]}"
        if names[0] == names[1]:
            head = f"both in cluster {names[0]}" + (", from two leaves" if apart else "")
        text = " and ".join(together) or ("" if apart else "always")
        if apart:
            text = apart[0] + (f"; both {text}" if text else "")
        lines.append(f"{head}: {text}")
    return lines


def pair_frame(
    tree: ClusterTree,
    leaves: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    values: tuple[Values, Values],
) -> pl.DataFrame:
    """Return what `explain_pairs` says as a frame, a line for each condition.

    Returns
    -------
    polars.DataFrame
        `row`, the number of the pair from 0; `cluster` and `other_cluster`; `column`, `value` and
        `other_value`, `condition` and `other_condition`, and whether the rows part there (`parts`):
        this is the last line of a pair, if there is one.
    """
    lines = []
    for row, (one, other, shared) in enumerate(_pairs(tree, leaves, values)):
        clusters = [tree.classes[tree.leaf_clusters[leaf]] for leaf in (one, other)]
        for part in shared:
            texts = (part.column, *part.values, *part.conditions)
            lines.append((row, *clusters, *texts, part.parts))
        if not shared:
            lines.append((row, *clusters, *(None,) * 5, False))
    schema = {
        "row": pl.Int64,
        **dict.fromkeys(("cluster", "other_cluster"), label_type(tree.classes)),
        **dict.fromkeys(
            ("column", "value", "other_value", "condition", "other_condition"), pl.String
        ),
        "parts": pl.Boolean,
    }
    return pl.DataFrame(lines, schema=schema, orient="row")


def _pairs(
    tree: ClusterTree,
    leaves: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    values: tuple[Values, Values],
) -> Iterator[tuple[int, int, list[_Shared]]]:
    """Yield the leaves of each pair of rows, and what the path asks of both, to where they part."""
    met = [met_conditions(tree, *of_rows) for of_rows in zip(leaves, values, strict=True)]
    for row, (one, other) in enumerate(zip(leaves[0].tolist(), leaves[1].tolist(), strict=True)):
        # Of both rows the value in each column, and the score of each sum.
        cells = [
            {
                _key(part): _value_text(part, value)
                for part, value in zip(conditions[leaf], values_of(row), strict=True)
            }
            for leaf, (conditions, values_of) in zip((one, other), met, strict=True)
        ]
        ways = (_way(tree, one), _way(tree, other))
        n_shared = sum(first == second for first, second in zip(*ways, strict=False))
        node = ways[0][n_shared - 1]
        shared = []
        for part in tree.path_conditions(node):
            shared.append(_shared(tree, (part, part), cells))
        if one != other:
            is_left = [way[n_shared] == tree.children_left[node] for way in ways]
            first, second = (branch_condition(tree, node, left) for left in is_left)
            shared.append(_shared(tree, (first, second), cells, parts=True))
        yield one, other, shared


def _shared(
    tree: ClusterTree,
    conditions: tuple[Condition | ObliqueCondition, Condition | ObliqueCondition],
    cells: Sequence[Mapping[tuple[bool, int], str]],
    *,
    parts: bool = False,
) -> _Shared:
    values = [of_row[_key(part)] for of_row, part in zip(cells, conditions, strict=True)]
    subjects, texts = zip(*(_texts(tree, part) for part in conditions), strict=True)
    # What both rows share is said as it holds for both.
    shown = values if parts else [max(values, key=_is_gap)] * 2
    plain = [
        _texts(tree, _observed(part, value))[1]
        for part, value in zip(conditions, shown, strict=True)
    ]
    return _Shared(
        subjects[0], (values[0], values[1]), (texts[0], texts[1]), (plain[0], plain[1]), parts
    )


def _observed(part: Condition | ObliqueCondition, value: str) -> Condition | ObliqueCondition:
    """Return a condition without missing cells, where the row has a value."""
    if isinstance(part, ObliqueCondition) or _is_gap(value):
        return part
    return replace(part, missing=False) if part.or_missing and not part.is_everything else part


def _is_gap(value: str) -> bool:
    return value == "missing" or value.endswith("(unknown level)")


def _way(tree: ClusterTree, leaf: int) -> list[int]:
    """Return the nodes from the root to a leaf."""
    way = [leaf]
    while way[-1] != 0:
        way.append(int(tree.parent[way[-1]]))
    return way[::-1]


def _key(part: Condition | ObliqueCondition) -> tuple[bool, int]:
    is_sum = isinstance(part, ObliqueCondition)
    return is_sum, part.node if isinstance(part, ObliqueCondition) else part.feature


def _texts(tree: ClusterTree, part: Condition | ObliqueCondition) -> tuple[str, str]:
    """Return what a condition is on, the name of a column or a sum, and the condition."""
    if isinstance(part, ObliqueCondition):
        subject = " ".join(part.parts(tree.feature_name, MAX_TERMS, short=True))
        return subject, f"{subject} {part.relation}"
    text = part.text(tree.feature_name(part.feature))
    return real_name(tree.feature_names, part.feature), text


def _value_text(part: Condition | ObliqueCondition, value: object) -> str:
    if isinstance(part, ObliqueCondition):
        return cell_text(NUMBERS, value) if is_missing(value) else format_short(float(value))  # type: ignore[arg-type]
    return cell_text(part.column, value)
