"""Bases of the estimators whose clusters have centers in the columns: score and cost ratio."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from .. import _engine
from .._data import Units, WeightedRows, check_sample_weight
from .._reference.centers import cost_about
from .._util import FloatArray, effective_n_jobs
from ..metrics import ratio_of_costs
from .clusterer import TreeClusterer


class CenterModel(TreeClusterer, abstract=True):
    """A tree whose clusters have centers, about which costs are measured."""

    cluster_centers_: FloatArray
    inertia_: float
    scale_: FloatArray

    @property
    def _cost(self) -> Literal["kmeans", "kmedians", "cosine"]:
        """The cost of a row about a center."""
        return "kmeans"

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:  # noqa: ARG002
        """Return minus the cost of rows about the centers of the clusters the tree puts them in.

        Parameters
        ----------
        %(scored_rows)s

        Returns
        -------
        float
            Minus the cost, on standardised columns if ``scale="standard"``.
        """
        table, leaves = self._route(X, all_columns=True, missing=self._cost != "cosine")
        threads = _engine.Threads(effective_n_jobs(self.n_jobs))
        weight = check_sample_weight(sample_weight, table.n_samples)
        labels = self.tree_.leaf_clusters[leaves].astype(np.uint32)
        centers, units = self.cluster_centers_, Units(np.zeros_like(self.scale_), self.scale_)
        if self._cost == "cosine":
            measure = _engine.Measure(units, True, weight, threads)
            return -_engine.assign_rows(table.data, measure, centers=centers, labels=labels)[1]
        return -cost_about(WeightedRows(table, weight, units, threads), centers, labels, self._cost)


class ReferenceModel(CenterModel, abstract=True):
    """A tree that explains clusters with centers."""

    _from_rows: ClassVar[tuple[str, ...]] = (
        *CenterModel._from_rows,
        "reference_labels_",
        "cost_ratio_",
    )

    reference_inertia_: float

    @property
    def cost_ratio_(self) -> float:
        """`inertia_` / `reference_inertia_`: what explainability cost; 1 where both are 0."""
        return ratio_of_costs(self.inertia_, self.reference_inertia_)
