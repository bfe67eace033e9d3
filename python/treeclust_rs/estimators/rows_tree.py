"""Base of the trees that look at the rows alone, and label their leaves in the end."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._base import EXPLAINING, LIMITS, Constraints, FitRows, Growth, Limits, most_leaves
from .._data import Table, column_of
from .._reference.centers import Criterion
from .._reference.kmeans import Reference
from .._util import BoolArray, IntArray
from ..tree import GrownTree, TreeSketch
from .centers_tree import CentersTree, labelled_tree


@dataclass
class RowsCut:
    """The cut of a leaf."""

    feature: int
    goes_left: BoolArray
    """Of the leaf's rows."""
    worth: float
    """The leaf whose cut has the most is split first."""
    hints: tuple[Any, Any] = (None, None)
    """What the search of either child is told."""


CutOf = Callable[[IntArray, Any], RowsCut | None]
"""The cut of a leaf by its rows and the hint from its parent's cut; None: there is none."""


class RowsTree(CentersTree, abstract=True):
    """A tree whose cuts know nothing of the reference; each leaf gets its cheapest label."""

    _parameter_constraints: ClassVar[Constraints] = {**EXPLAINING, **LIMITS}

    max_leaves: int | float | None
    max_depth: int | None
    min_samples_leaf: int

    @property
    def criterion(self) -> Criterion:  # type: ignore[override]
        """Squared Euclidean distances label the leaves and measure the tree's clusters."""
        return "kmeans"

    def _growth(self, n_clusters: int) -> Growth:
        limits = Limits.of(self)
        limits.check(n_clusters, self.n_clusters is None and self.reference is None)
        return Growth(None, limits=limits)

    def _cutter(self, fit_rows: FitRows[Table], max_leaves: int) -> CutOf:
        """Return what searches leaves."""
        raise NotImplementedError

    def _grow(self, fit_rows: FitRows[Any], reference: Reference, growth: Growth) -> GrownTree:
        table, limits = fit_rows.rows, growth.limits
        most = most_leaves(limits.max_leaves, reference.n_clusters, table.n_samples)
        cut_of = self._cutter(fit_rows, most)
        sketch = TreeSketch()
        open_leaves: list[tuple[float, int, RowsCut, IntArray, int]] = []

        def add(node: int, rows: IntArray, depth: int, hint: Any) -> None:
            deepest = limits.max_depth is not None and depth >= limits.max_depth
            if deepest or len(rows) < 2 * limits.min_samples_leaf:
                return
            cut = cut_of(rows, hint)
            if cut is not None:
                heapq.heappush(open_leaves, (-cut.worth, node, cut, rows, depth))

        add(0, np.arange(table.n_samples), 0, None)
        while open_leaves and sketch.n_leaves < most:
            _, node, cut, rows, depth = heapq.heappop(open_leaves)
            values = column_of(table, cut.feature)[rows].astype(np.float64)
            left, right = values[cut.goes_left], values[~cut.goes_left]
            child = sketch.split(node, cut.feature, float(left.max()), float(right.min()))
            for side, goes in enumerate((cut.goes_left, ~cut.goes_left)):
                add(child + side, rows[goes], depth + 1, cut.hints[side])
        return labelled_tree(fit_rows, reference, sketch.tests())
