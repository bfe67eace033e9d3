"""Searches of Douglas: the best of several starts, needless columns, `partial_fit`."""

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .soft_bins import SoftBins
from .soft_training import (
    Optimiser,
    Plan,
    Tell,
    evaluate,
    gradient_unit,
    train,
    train_epoch,
    warm_up,
)
from .training_rows import TrainingRows

# Most rows that starts, warm-up and pruning use.
_MAX_START_ROWS = 10_000
# With rows in parts, the starts use at most the larger of so many rows and so many batches.
_FIRST_ROWS = 1_024
_FIRST_BATCHES = 16


def search(
    rows: TrainingRows,
    plan: Plan,
    n_init: int,
    rng: np.random.RandomState,
    tell: Tell | None = None,
) -> tuple[SoftBins, list[float], float]:
    """Train from several starts; return the best model, its curve and its objective.

    The starts use at most 10,000 rows; the best of them continues with all rows.

    Parameters
    ----------
    rows : TrainingRows
        Rows of the training.
    plan : Plan
        Parameters of the training.
    n_init : int
        Number of starts.
    rng : RandomState
        Source of a seed for every start.
    tell : callable, default=None
        Progress callback.
    """
    seeds = rng.randint(np.iinfo(np.int32).max, size=n_init + 1).tolist()
    few = _some(rows, seeds[0], _MAX_START_ROWS) if n_init > 1 or plan.warm_up else rows
    tried = few if n_init > 1 else rows
    best: tuple[float, SoftBins, list[float]] | None = None
    for number, seed in enumerate(seeds[1:]):
        of_start = np.random.RandomState(seed)
        stage = f"start {number + 1} of {n_init}"
        model = plan.start(tried, of_start, number)
        warm_up(model, few, plan, of_start, _of_stage(tell, f"{stage}, warm-up"))
        curve = train(model, tried, plan, of_start, _of_stage(tell, stage))
        value = evaluate(model, tried, plan.batch_size, seeds[0])
        if best is None or value > best[0]:
            best = value, model, curve
    assert best is not None, "there is a start"
    value, model, curve = best
    if tried is not rows:
        of_rest = np.random.RandomState(seeds[0])
        curve = train(model, rows, plan, of_rest, _of_stage(tell, "the best start"))
        value = evaluate(model, rows, plan.batch_size, seeds[0])
    return model, curve, value


def _of_stage(tell: Tell | None, stage: str) -> Tell | None:
    return None if tell is None else lambda progress: tell(f"{stage}, {progress}")


def first_model(
    rows: TrainingRows, plan: Plan, n_init: int, rng: np.random.RandomState
) -> SoftBins:
    """Return a model for `partial_fit`, of which these are the first rows.

    A pass over rows in parts leaves most models near their start, so the start is searched for, on
    few rows.
    """
    most = max(_FIRST_ROWS, _FIRST_BATCHES * plan.batch_size)
    few = _some(rows, rng.randint(np.iinfo(np.int32).max), most)
    return search(few, plan, n_init, rng)[0]


def prune(
    model: SoftBins,
    rows: TrainingRows,
    plan: Plan,
    share: float,
    seed: int,
    tell: Tell | None = None,
) -> tuple[list[int], TrainingRows, SoftBins, list[float] | None, float]:
    """Drop features that hardly change the objective, and continue training with the others.

    Each step drops the feature without which the objective is greatest, until one is left; the
    fewest features that keep the objective stay. These steps use at most 10,000 rows.

    Parameters
    ----------
    model : SoftBins
        A trained model.
    rows : TrainingRows
        Rows of its training.
    plan : Plan
        Parameters of the training.
    share : float
        The objective may fall by this share of its value.
    seed : int
        Seed of the batches that evaluate, and of those that train.
    tell : callable, default=None
        Progress callback.

    Returns
    -------
    kept : list of int
        Indices of the features that stay, ascending.
    rows : TrainingRows
        With these features only.
    model : SoftBins
        Of these features.
    curve : list of float or None
        Of the training; None if it did not raise the objective, and the model is that before it.
    value : float
        The objective.
    """
    some = _some(rows, seed, _MAX_START_ROWS)
    value = evaluate(model, some, plan.batch_size, seed)
    least = value - share * abs(value)
    left = list(range(len(some.model)))
    kept, smallest = left, model
    while len(left) > 1:
        value, place, model, some = _without_one(model, some, plan.batch_size, seed)
        left = left[:place] + left[place + 1 :]
        if tell is not None:
            tell(f"pruning, {len(left):,} columns left, GEMINI {value:.6g}")
        if value >= least:
            kept, smallest = left, model
    rows, model = rows.only(kept), smallest
    value = evaluate(model, rows, plan.batch_size, seed)
    trained = copy.deepcopy(model)
    told = _of_stage(tell, f"pruned to {len(kept):,} columns")
    curve = train(trained, rows, plan, np.random.RandomState(seed), told)
    after = evaluate(trained, rows, plan.batch_size, seed)
    if after < value:
        return kept, rows, model, None, value
    return kept, rows, trained, curve, after


def _without_one(
    model: SoftBins, rows: TrainingRows, batch_size: int, seed: int
) -> tuple[float, int, SoftBins, TrainingRows]:
    """Drop the feature that lowers the objective least; return the objective, it and the rest."""
    counts = model.cell_counts(rows.model)
    features = range(len(rows.model))
    best: tuple[float, int, SoftBins, TrainingRows] | None = None
    for place in features:
        smaller = model.without(place, counts)
        fewer = rows.only([feature for feature in features if feature != place])
        value = evaluate(smaller, fewer, batch_size, seed)
        if best is None or value > best[0]:
            best = value, place, smaller, fewer
    assert best is not None, "there is a feature"
    return best


def _some(rows: TrainingRows, seed: int, most: int) -> TrainingRows:
    """Return at most `most` of the rows, at random."""
    if len(rows) <= most:
        return rows
    return rows.part(np.random.RandomState(seed).permutation(len(rows))[:most])


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
