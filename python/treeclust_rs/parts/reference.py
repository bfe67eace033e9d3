"""What a fit in parts leaves to its caller between questions: centers, and what levels cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .. import _engine
from .._data import Encoding, Table, Units, WeightedRows, shares_of, warn_of_columns
from .._data.scale import deviation_of_levels
from .._data.units import cost_of_levels
from .._reference.centers import Centers
from .._reference.kmeans import make_reference
from .._reference.read import ReferenceInput
from .._util import FloatArray
from ..estimators.exkmc import ExKMC
from ..estimators.imm import IMM
from .columns import table_of_sample
from .models import cut_score_of


@dataclass(frozen=True)
class ReferenceFinder:
    """Finds the clusters that a tree explains, where a fit has come to where it needs them."""

    core: _engine.PartsFit
    model: ExKMC | IMM
    columns: Table
    """What is known of the columns."""
    given: FloatArray | None
    """The centers of the model's reference."""
    threads: _engine.Threads
    tell: Callable[[str], None] | None

    def find(self) -> None:
        """Say what the units of levels and the centers of the clusters are, if this is wanted.

        Raises ValueError as k-means of the estimator: if there are more clusters than rows.
        """
        wanted = self.core.wanted_rows()
        if wanted is None:
            return
        shift, scale, weights, rows, are_all = wanted
        for f, of_levels in enumerate(weights):
            if of_levels is not None:
                scale[f] = deviation_of_levels(of_levels) or 1.0
        units, inertia = Units(shift, scale), None
        encoding = Encoding.of(self.columns, units.shift, units.scale)
        of_labels = self._of_labels(encoding)
        if of_labels is not None:
            centers, inertia = of_labels
        elif self.given is not None:
            centers = Centers.from_own(self.given, encoding)
        else:
            centers, of_sample = self._of_sample(rows, units)
            inertia = of_sample if are_all else None
        in_units, costs = self._costs(centers.in_units, units)
        self.core.set_reference(units.scale, in_units, costs, centers.high, centers.low, inertia)

    def place(self) -> None:
        """Say what levels cost about centers that have moved, if there are any."""
        moved = self.core.moved_centers()
        if moved is None:
            return
        own, *shift_and_scale = moved
        units = Units(*shift_and_scale)
        encoding = Encoding.of(self.columns, units.shift, units.scale)
        self.core.set_costs(*self._costs(encoding.of_points(own), units))

    def _of_labels(self, encoding: Encoding) -> tuple[Centers, float] | None:
        """Return the means of the labels that rows bring, and their cost; None: there are none."""
        found = self.core.label_centers()
        if found is None:
            return None
        in_units, high, low, spread, weights = found
        shares: dict[int, FloatArray] = {}
        for f, of_levels in enumerate(weights):
            if of_levels is None:
                continue
            width = int(encoding.first[f + 1] - encoding.first[f])
            of_levels = of_levels.reshape(len(spread), width)
            shares[f] = shares_of(of_levels)
            spread = spread + cost_of_levels(of_levels, shares[f], encoding.unit_of_levels(f))
        centers = Centers(
            encoding.points(in_units, lambda f: shares[f] / encoding.unit_of_levels(f)),
            encoding.points(high, lambda f: shares[f]),
            encoding.points(low, lambda f: np.zeros_like(shares[f])),
        )
        return centers, float(spread.sum())

    def _of_sample(self, rows: FloatArray, units: Units) -> tuple[Centers, float]:
        """Return the centers of the clusters of some rows, and their cost.

        `rows`: cells and weight, as the core has them.
        """
        model, weights = self.model, np.ascontiguousarray(rows[:, -1])
        table = table_of_sample(rows[:, :-1], self.columns)
        weight = None if (weights == 1.0).all() else weights
        warn_of_columns(table, weight, units.scale, model.scale, stacklevel=6)
        data = WeightedRows(table, weight, units, self.threads)
        reference = make_reference(
            data,
            ReferenceInput(),
            criterion=model.criterion,
            n_clusters=model.n_clusters,
            random_state=model.random_state,
            estimator_name=type(model).__name__,
            needs_distinct=cut_score_of(model) is not None,
            tell=self.tell,
        )
        return reference.centers, reference.inertia

    def _costs(
        self, in_units: FloatArray, units: Units
    ) -> tuple[FloatArray, list[FloatArray | None]]:
        """Return what centers have in columns of numbers, and what the levels of others cost."""
        if self.columns.levels is None:
            return in_units, []
        encoding = Encoding.of(self.columns, units.shift, units.scale)
        costs = [
            None if cost is None else np.ascontiguousarray(cost)
            for cost in encoding.level_costs(in_units, manhattan=self.model.criterion == "kmedians")
        ]
        return encoding.numbers(in_units), costs
