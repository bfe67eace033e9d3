"""State of `Douglas.partial_fit` between calls."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .optimisers import Optimiser
from .search import first_model
from .soft_bins import SoftBins
from .soft_training import Plan, gradient_unit, train_epoch
from .training_rows import TrainingRows


@dataclass(frozen=True, eq=False)
class Trainer:
    """State from which `partial_fit` continues; its model has the cuts before rounding."""

    model: SoftBins
    optimiser: Optimiser
    gemini: Any
    """The parameter of the last call."""
    unit: float
    """Unit of the gradients of this objective; 0 while all rows were equal."""
    rng: np.random.RandomState

    def train_epoch(self, rows: TrainingRows, batch_size: int) -> float:
        """Update the model by a step per batch; return the mean objective of the batches."""
        return train_epoch(self.model, rows, self.optimiser, self.unit or 1.0, batch_size, self.rng)


def continued_trainer(
    start: Trainer | SoftBins | None,
    rows: TrainingRows,
    plan: Plan,
    *,
    n_init: int,
    gemini: Any,
    random_state: Any,
) -> Trainer:
    """Return a copy of a trainer, or a new trainer of a copy of a model.

    With ``start=None`` a first model is searched for on the rows, by `n_init` starts.
    """
    if isinstance(start, Trainer):
        trainer = copy.deepcopy(start)
    else:
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        rng = np.random.RandomState(seed)
        model = first_model(rows, plan, n_init, rng) if start is None else copy.deepcopy(start)
        trainer = Trainer(model, plan.optimiser(), gemini, 0.0, rng)
    if trainer.unit == 0.0 or not _is_same(trainer.gemini, gemini):
        unit = gradient_unit(rows, plan.batch_size)
        trainer = replace(trainer, gemini=gemini, unit=unit)
    return trainer


def _is_same(before: Any, now: Any) -> bool:
    """Whether the parameter gemini is unchanged; objects need not be comparable."""
    return before is now or (isinstance(now, str) and isinstance(before, str) and before == now)
