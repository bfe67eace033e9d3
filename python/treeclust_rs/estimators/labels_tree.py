"""Base of the trees grown on the reference's labels alone: KMeansTree, SpExTree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from .._base import (
    COST_PATH,
    EXPLAINING,
    LIMITS,
    NO_NEGATIVE_INERTIA,
    Constraints,
    Fields,
    FitRows,
    Growth,
    Limits,
)
from .._data import Table, sums_by_group
from .._reference.centers import Criterion
from .._reference.kmeans import Reference
from ..tree import GrownTree, add_up
from .centers_tree import CentersTree


class LabelsTree(CentersTree, abstract=True):
    """A tree whose cuts are judged by counts of the reference's labels; centers measure it."""

    _takes_missing: ClassVar[bool] = True
    _parameter_constraints: ClassVar[Constraints] = {**EXPLAINING, **LIMITS}
    # Growth lowers another cost than the path's, which may rise.
    _saved: ClassVar[Fields] = {
        **CentersTree._saved,
        "_cost_path": replace(COST_PATH, check=NO_NEGATIVE_INERTIA),
    }

    max_leaves: int | float | None
    max_depth: int | None
    min_samples_leaf: int

    @property
    def criterion(self) -> Criterion:  # type: ignore[override]
        """Squared Euclidean distances measure the tree's clusters."""
        return "kmeans"

    @property
    def _by_labels(self) -> bool:
        return True

    def _counts(self) -> Any:
        """Return the growth criterion on the counts of the labels."""
        raise NotImplementedError

    def _growth(self, n_clusters: int) -> Growth:
        limits = Limits.of(self)
        limits.check(n_clusters, self.n_clusters is None and self.reference is None)
        return Growth(None, criterion=self._counts(), limits=limits)

    def _grow(self, fit_rows: FitRows[Table], reference: Reference, growth: Growth) -> GrownTree:
        grown = super()._grow(fit_rows, reference, growth)
        n_nodes, threads = len(grown.cluster), fit_rows.threads
        costs = sums_by_group(reference.regrets, grown.leaf_of_row, n_nodes, threads)
        add_up(grown.tests.children_left, costs)
        return replace(grown, cost=costs[np.arange(len(costs)), grown.cluster])
