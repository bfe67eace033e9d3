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
from .._reference.checks import check_distinct
from .._reference.kmeans import make_reference
from .._reference.read import ReferenceInput
from .._util import FloatArray, level_of_user
from ..estimators.exkmc import ExKMC
from ..estimators.imm import IMM
from .columns import table_of_sample
from .models import cut_score_of


@dataclass(frozen=True)
class _Found:
    """Centers of the clusters that a tree explains."""

    centers: Centers
    shares: FloatArray | None = None
    """The centers with the shares that levels have among the rows of each, for a base tree."""
    inertia: float | None = None
    """What all rows cost about them, if it is known."""


def _one_of(places: list[int] | None, width: int) -> FloatArray:
    """Return rows of zeros, each with a 1 at its place; nothing where there are no places."""
    points = np.zeros((len(places or []), width))
    if width:
        points[np.arange(len(points)), places] = 1.0
    return points


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

        Raises ValueError as k-means of the estimator: if there are more clusters than rows; and if
        a base tree would have to tell equal centers apart.
        """
        wanted = self.core.wanted_rows()
        if wanted is None:
            return
        shift, scale, weights, rows, are_all = wanted
        for f, of_levels in enumerate(weights):
            if of_levels is not None:
                scale[f] = deviation_of_levels(of_levels) or 1.0
        units = Units(shift, scale)
        encoding = Encoding.of(self.columns, units.shift, units.scale)
        found = self._of_labels(encoding)
        if found is not None or self.given is not None:  # no rows, but the levels of text
            warn_of_columns(
                self.columns,
                None,
                units.scale,
                self.model.scale,
                compares_columns=False,
                stacklevel=level_of_user() + 1,
            )
        if found is None and self.given is not None:
            found = _Found(Centers.from_own(self.given, encoding))
        elif found is None:
            found = self._of_sample(rows, units, are_all)
        centers, classes = found.centers, self.core.classes
        if classes is not None and cut_score_of(self.model) is not None:
            check_distinct(centers.high + centers.low, classes)
        in_units, costs = self._costs(centers.in_units, units)
        self.core.set_reference(
            units.scale, in_units, costs, centers.high, centers.low, found.shares, found.inertia
        )

    def place(self) -> None:
        """Say what levels cost about centers that have moved, if there are any."""
        moved = self.core.moved_centers()
        if moved is None:
            return
        own, *shift_and_scale = moved
        units = Units(*shift_and_scale)
        encoding = Encoding.of(self.columns, units.shift, units.scale)
        self.core.set_costs(*self._costs(encoding.of_points(own), units))

    def _of_labels(self, encoding: Encoding) -> _Found | None:
        """Return the means or medians of the labels that rows bring; None: there are none."""
        found = self.core.label_centers()
        if found is None:
            return None
        in_units, high, low, spread, weights, modes = found
        shares: dict[int, FloatArray] = {}
        for f, of_levels in enumerate(weights):
            if of_levels is None:
                continue
            width = int(encoding.first[f + 1] - encoding.first[f])
            of_levels = of_levels.reshape(len(spread), width)
            shares[f] = shares_of(of_levels)
            spread = spread + cost_of_levels(of_levels, shares[f], encoding.unit_of_levels(f))
        if self.model.criterion == "kmedians":
            own = encoding.points(high, lambda f: _one_of(modes[f], shares[f].shape[1]))
            centers = Centers.from_own(own, encoding)
            return _Found(centers, encoding.points(high, lambda f: shares[f]))
        centers = Centers(
            encoding.points(in_units, lambda f: shares[f] / encoding.unit_of_levels(f)),
            encoding.points(high, lambda f: shares[f]),
            encoding.points(low, lambda f: np.zeros_like(shares[f])),
        )
        return _Found(centers, inertia=float(spread.sum()))

    def _of_sample(self, rows: FloatArray, units: Units, are_all: bool) -> _Found:
        """Return the centers of the clusters of some rows, and their cost if these are all.

        `rows`: cells and weight, as the core has them.
        """
        model, weights = self.model, np.ascontiguousarray(rows[:, -1])
        table = table_of_sample(rows[:, :-1], self.columns)
        weight = None if (weights == 1.0).all() else weights
        warn_of_columns(table, weight, units.scale, model.scale, stacklevel=level_of_user() + 1)
        data = WeightedRows(table, weight, units, self.threads)
        has_base = cut_score_of(model) is not None
        reference = make_reference(
            data,
            ReferenceInput(),
            criterion=model.criterion,
            n_clusters=model.n_clusters,
            random_state=model.random_state,
            estimator_name=type(model).__name__,
            needs_distinct=has_base,
            tell=self.tell,
        )
        shares = None
        if has_base and self.columns.levels is not None:
            shares = data.with_shares(reference.centers.high, reference.labels)
        return _Found(reference.centers, shares, reference.inertia if are_all else None)

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
