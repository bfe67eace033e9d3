"""Training of Douglas: first models, optimisers, epochs of minibatches, warm-up, the end."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from ..._util import FloatArray
from ...gemini import MMD, Wasserstein
from .soft_bins import SoftBins
from .training_rows import TrainingRows, batches

Tell = Callable[[str], None]
"""Progress callback: a text on how far the training is."""
# The first cuts are quantiles of some so many rows.
_N_QUANTILE_ROWS = 100_000
# Standard deviation of the weights of soft starts: all clusters are about as probable. With many
# cells these find the best clusters (wine), with few cells often too few.
_SOFT_START = 0.1
# That of hard starts, every other one: each cell has a random cluster. The best draw is taken.
_HARD_START = 10.0
_N_DRAWS = 10
# Defaults of `learning_rate`.
_LEARNING_RATES = {"adam": 0.05, "sgd": 1.0}

# Most batches that `evaluate` uses.
_MAX_EVALUATED = 8


@dataclass(frozen=True)
class Plan:
    """Parameters of the training; see `Douglas`."""

    n_clusters: int
    n_cuts: int
    temperature: float
    init: str | FloatArray
    """First cuts; an array of them has the shape (m, T), in the model's units."""
    solver: str
    learning_rate: float | None
    batch_size: int
    warm_up: int
    max_iter: int
    tol: float | None
    n_iter_no_change: int

    @classmethod
    def of(cls, estimator: Any, n_clusters: int, init: str | FloatArray, batch_size: int) -> Self:
        """Return the plan with the other parameters of an estimator."""
        own: dict[str, Any] = {"n_clusters": n_clusters, "init": init, "batch_size": batch_size}
        names = {field.name for field in dataclasses.fields(cls)} - own.keys()
        return cls(**own, **{name: getattr(estimator, name) for name in names})

    def start(self, rows: TrainingRows, rng: np.random.RandomState, number: int = 0) -> SoftBins:
        """Return a first model; starts with an even `number` are soft, the others hard."""
        shape = len(rows.model), self.n_cuts
        if not isinstance(self.init, str):
            cuts = self.init
        elif self.init == "random":
            cuts = np.sort(rng.standard_normal(shape), axis=1)
        else:
            cuts = _quantile_cuts(rows.model, self.n_cuts)
        n_cells = (self.n_cuts + 1) ** len(rows.model)
        if number % 2 == 0:
            weights = rng.standard_normal((n_cells, self.n_clusters))
            return SoftBins(cuts, _SOFT_START * weights, self.temperature)
        part, affinity = rows.batch(rng.permutation(len(rows))[: self.batch_size])
        best: tuple[float, SoftBins] | None = None
        for _ in range(_N_DRAWS):
            weights = rng.standard_normal((n_cells, self.n_clusters))
            model = SoftBins(cuts, _HARD_START * weights, self.temperature)
            value = rows.gemini.value(model.forward(part).probabilities.T, affinity)
            if best is None or value > best[0]:
                best = value, model
        assert best is not None, "there are draws"
        return best[1]

    def optimiser(self) -> Optimiser:
        """Return a new optimiser."""
        rate = self.learning_rate
        if self.solver == "adam":
            return Adam(_LEARNING_RATES["adam"] if rate is None else rate)
        return SGD(_LEARNING_RATES["sgd"] if rate is None else rate)


def train_epoch(
    model: SoftBins,
    rows: TrainingRows,
    optimiser: Optimiser,
    unit: float,
    batch_size: int,
    rng: np.random.RandomState,
) -> float:
    """Update the model by a step per batch; return the mean objective of the batches."""
    total = 0.0
    for index in batches(len(rows), batch_size, rng):
        part, affinity = rows.batch(index)
        tape = model.forward(part)
        value, gradient = rows.gemini.value_and_gradient(tape.probabilities.T, affinity)
        gradient /= unit
        optimiser.step(model.vector, model.backward(tape, gradient.T))
        total += value * len(index)
    return total / len(rows)


def train(
    model: SoftBins,
    rows: TrainingRows,
    plan: Plan,
    rng: np.random.RandomState,
    tell: Tell | None = None,
) -> list[float]:
    """Update the model until the objective rises no more; return its mean of each epoch."""
    optimiser, unit = plan.optimiser(), gradient_unit(rows, plan.batch_size) or 1.0
    curve: list[float] = []
    best, since = -np.inf, 0
    for epoch in range(1, plan.max_iter + 1):
        value = train_epoch(model, rows, optimiser, unit, plan.batch_size, rng)
        curve.append(value)
        if tell is not None:
            tell(f"epoch {epoch:,} of at most {plan.max_iter:,}, GEMINI {value:.6g}")
        if plan.tol is None:
            continue
        rises = epoch == 1 or value > best + plan.tol * abs(best)
        since = 0 if rises else since + 1
        best = max(best, value)
        if since >= plan.n_iter_no_change:
            break
    return curve


def warm_up(
    model: SoftBins,
    rows: TrainingRows,
    plan: Plan,
    rng: np.random.RandomState,
    tell: Tell | None = None,
) -> None:
    """Train by the energy distance before a Wasserstein objective; do nothing for others.

    Random weights make clusters that differ by noise alone, and so is the gradient of the
    Wasserstein objective: training would stay near its start. The energy distance of the same
    distances is smooth there, and leads to clusters that are apart.
    """
    if plan.warm_up and isinstance(rows.gemini, Wasserstein):
        gentle = TrainingRows(rows.model, rows.gemini.energy, rows.seen, rows.affinity)
        train(model, gentle, dataclasses.replace(plan, max_iter=plan.warm_up), rng, tell)


def evaluate(model: SoftBins, rows: TrainingRows, batch_size: int, seed: int) -> float:
    """Return the mean objective of some batches, the same ones for every model with this seed."""
    rng = np.random.RandomState(seed)
    total, n_seen = 0.0, 0
    for number, index in enumerate(batches(len(rows), batch_size, rng)):
        if number == _MAX_EVALUATED:
            break
        part, affinity = rows.batch(index)
        value = rows.gemini.value(model.forward(part).probabilities.T, affinity)
        total, n_seen = total + value * len(index), n_seen + len(index)
    return total / n_seen


def gradient_unit(rows: TrainingRows, batch_size: int) -> float:
    """Return the size of the affinity, by which gradients do not depend on the columns' units.

    It is computed on one batch of rows spread over all; 1 for objectives without affinity, 0 if all
    rows are equal.
    """
    n_batches = -(-len(rows) // batch_size)
    for first in range(n_batches):
        _, affinity = rows.batch(np.arange(first, len(rows), n_batches))
        if affinity is None:
            return 1.0
        size = float(np.abs(affinity).mean())
        if size > 0.0:
            is_root = isinstance(rows.gemini, MMD) and not rows.gemini.squared
            return float(np.sqrt(size)) if is_root else size
    return 0.0


def _quantile_cuts(rows: FloatArray, n_cuts: int) -> FloatArray:
    """Return cuts into bins of nearly equal numbers of rows, each midway between two values."""
    some = rows[:, :: max(rows.shape[1] // _N_QUANTILE_ROWS, 1)]
    cuts = np.empty((len(rows), n_cuts))
    wanted = np.arange(1, n_cuts + 1) / (n_cuts + 1)
    for column, of_feature in zip(some, cuts, strict=True):
        values, counts = np.unique(column, return_counts=True)
        if len(values) == 1:
            of_feature[:] = values
            continue
        below = np.cumsum(counts)[:-1] / len(column)
        after = np.searchsorted(below, wanted).clip(max=len(below) - 1)
        before = (after - 1).clip(min=0)
        is_before = np.abs(below[before] - wanted) < np.abs(below[after] - wanted)
        place = np.where(is_before, before, after)
        of_feature[:] = (values[place] + values[place + 1]) / 2
    return cuts


class Optimiser(Protocol):
    """Optimiser that moves parameters along a gradient, upwards."""

    def step(self, parameters: FloatArray, gradient: FloatArray) -> None:
        """Change the parameters in place; the gradient is overwritten."""


@dataclass(eq=False)
class SGD:
    """Plain steps: ``parameters += learning_rate * gradient``.

    Parameters
    ----------
    learning_rate : float
        The length of a step by a gradient of length 1.
    """

    learning_rate: float

    def step(self, parameters: FloatArray, gradient: FloatArray) -> None:
        """Change the parameters in place; the gradient is overwritten."""
        gradient *= self.learning_rate
        parameters += gradient


@dataclass(eq=False)
class Adam:
    """Adam (Kingma and Ba, *Adam: a method for stochastic optimization*, 2015, algorithm 1).

    Running means m of the gradient g and v of its square, corrected for their start at 0:
    ``m = b1 m + (1 - b1) g``, ``v = b2 v + (1 - b2) g^2``,
    ``parameters += learning_rate * m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon)``.

    Parameters
    ----------
    learning_rate : float
        About the largest change of a parameter in one step.
    beta1, beta2 : float
        Weights of the old means in a step.
    epsilon : float
        Gradients smaller than this move little.
    """

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        self.n_steps = 0
        self._mean = self._square = np.zeros(0)

    def step(self, parameters: FloatArray, gradient: FloatArray) -> None:
        """Change the parameters in place; the gradient is overwritten."""
        if not self.n_steps:
            self._mean, self._square = np.zeros_like(parameters), np.zeros_like(parameters)
        self.n_steps += 1
        # With both corrections taken out of the arrays a step is
        # rate * m / (sqrt(v) + root * epsilon).
        root = math.sqrt(1.0 - self.beta2**self.n_steps)
        rate = self.learning_rate * root / (1.0 - self.beta1**self.n_steps)
        mean, square = self._mean, self._square
        mean *= self.beta1
        mean += (1.0 - self.beta1) * gradient
        square *= self.beta2
        gradient *= gradient
        gradient *= 1.0 - self.beta2
        square += gradient
        np.sqrt(square, out=gradient)
        gradient += root * self.epsilon
        np.divide(mean, gradient, out=gradient)
        gradient *= rate
        parameters += gradient
