"""Training the model of Douglas: cuts to start from, minibatches, and when to stop."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..._util.arrays import FloatArray, IntArray
from ...gemini import MMD, Gemini, Wasserstein
from .optimisers import SGD, Adam, Optimiser
from .soft_bins import SoftBins

__all__ = [
    "Plan",
    "Rows",
    "begin",
    "gradient_unit",
    "prune",
    "search",
    "train_epoch",
]

Tell = Callable[[str], None]
"""Is told how far the training is."""

# The affinity of all rows is computed once if it has at most so many numbers, 32 MiB.
_KEPT = 1 << 22
# Rows whose quantiles a start takes.
_QUANTILE_ROWS = 100_000
# Of more rows than these the starts and the warm-up see a part.
_START_ROWS = 10_000
# Of rows that come in parts the starts see so many of the first part, or so many batches.
_FIRST_ROWS = 1_024
_FIRST_BATCHES = 16
# Weights start as random numbers of this standard deviation: all clusters are about as probable.
# That finds the best clusters where cells are many (wine), but often too few where they are few.
_SOFT_START = 0.1
# So every other start gives each cell a cluster at random; of some draws the best is taken.
_HARD_START = 10.0
_DRAWS = 10
# Those of `learning_rate=None`.
_LEARNING_RATES = {"adam": 0.05, "sgd": 1.0}

# Batches that starts are compared by.
_COMPARED = 8


@dataclass(eq=False)
class Rows:
    """Rows as the model and as the objective see them.

    Parameters
    ----------
    model : ndarray of shape (m, n)
        The features with bins, in standard deviations.
    gemini : Gemini
        The objective, settled.
    seen : ndarray of shape (n, d) or None
        All columns, as the objective sees them, where it looks at rows.
    affinity : ndarray of shape (n, n) or None
        The affinity of all rows, where it is given.
    """

    model: FloatArray
    gemini: Gemini
    seen: FloatArray | None = None
    affinity: FloatArray | None = None

    def __post_init__(self) -> None:
        if len(self) ** 2 <= _KEPT:
            self.affinity = self.whole_affinity()

    def whole_affinity(self) -> FloatArray | None:
        """Give the affinity of all rows, for objectives that look at rows."""
        if self.affinity is None and self.seen is not None:
            return self.gemini.affinity(self.seen)
        return self.affinity

    def __len__(self) -> int:
        return int(self.model.shape[1])

    def part(self, index: IntArray) -> Rows:
        """Give some of the rows."""
        seen = None if self.seen is None else self.seen[index]
        affinity = None if self.affinity is None else self.affinity[np.ix_(index, index)]
        return Rows(self.model[:, index], self.gemini, seen, affinity)

    def only(self, features: list[int]) -> Rows:
        """Give the rows to a model of these features."""
        return dataclasses.replace(self, model=self.model[features])

    def batch(self, index: IntArray) -> tuple[FloatArray, FloatArray | None]:
        """Give the rows of a batch for the model, and their affinity."""
        rows = self.model[:, index]
        if self.affinity is not None:
            return rows, self.affinity[index[:, np.newaxis], index]
        return rows, None if self.seen is None else self.gemini.affinity(self.seen[index])


def batches(n: int, batch_size: int, rng: np.random.RandomState) -> Iterator[IntArray]:
    """Split shuffled rows into the fewest batches of at most `batch_size`, all but equal in size.

    A rest of a single row, from which no objective learns, only occurs among pairs.
    """
    n_batches = -(-n // batch_size)
    order = rng.permutation(n) if n_batches > 1 else np.arange(n)
    yield from np.array_split(order, n_batches)


@dataclass(frozen=True)
class Plan:
    """How to train; see the parameters of `Douglas`."""

    n_clusters: int
    n_cuts: int
    temperature: float
    init: str | FloatArray
    """Where cuts start; an array of them has the shape (m, T), in the model's units."""
    solver: str
    learning_rate: float | None
    batch_size: int
    warm_up: int
    max_iter: int
    tol: float | None
    n_iter_no_change: int

    def start(self, rows: Rows, rng: np.random.RandomState, number: int = 0) -> SoftBins:
        """Give a model to start from; `number` counts the starts."""
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
        for _ in range(_DRAWS):
            weights = rng.standard_normal((n_cells, self.n_clusters))
            model = SoftBins(cuts, _HARD_START * weights, self.temperature)
            value = rows.gemini.value(model.forward(part).probabilities.T, affinity)
            if best is None or value > best[0]:
                best = value, model
        assert best is not None, "there are draws"
        return best[1]

    def optimiser(self) -> Optimiser:
        """Give a new optimiser."""
        rate = self.learning_rate
        if self.solver == "adam":
            return Adam(_LEARNING_RATES["adam"] if rate is None else rate)
        return SGD(_LEARNING_RATES["sgd"] if rate is None else rate)


def train_epoch(
    model: SoftBins,
    rows: Rows,
    optimiser: Optimiser,
    unit: float,
    batch_size: int,
    rng: np.random.RandomState,
) -> float:
    """Change the model by a step per batch; give the mean objective of the batches."""
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
    rows: Rows,
    plan: Plan,
    rng: np.random.RandomState,
    tell: Tell | None = None,
) -> list[float]:
    """Change the model until the objective rises no more.

    Gives the mean objective of the batches of each epoch.
    """
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
    rows: Rows,
    plan: Plan,
    rng: np.random.RandomState,
    tell: Tell | None = None,
) -> None:
    """Bring a model to where the Wasserstein objective shows a way.

    Random weights make clusters that are all alike but for noise, and the potentials of such
    clusters are that noise: training stays where the start happens to be. The energy distance of
    the same distances is smooth there, and leads to clusters that are apart. Other objectives are
    left as they are.
    """
    if plan.warm_up and isinstance(rows.gemini, Wasserstein):
        gentle = Rows(rows.model, rows.gemini.energy, rows.seen, rows.affinity)
        train(model, gentle, dataclasses.replace(plan, max_iter=plan.warm_up), rng, tell)


def search(
    rows: Rows,
    plan: Plan,
    n_init: int,
    rng: np.random.RandomState,
    tell: Tell | None = None,
) -> tuple[SoftBins, list[float], float]:
    """Train from several starts, and give the best model, its curve, and its objective.

    Of many rows the starts see 10,000 only; what was best there goes on with all of them.

    Parameters
    ----------
    rows : Rows
        What to learn from.
    plan : Plan
        How.
    n_init : int
        Number of starts.
    rng : RandomState
        Gives every start a seed.
    tell : callable, default=None
        Is told how far the search is.
    """
    seeds = rng.randint(np.iinfo(np.int32).max, size=n_init + 1).tolist()
    few = _some(rows, seeds[0], _START_ROWS) if n_init > 1 or plan.warm_up else rows
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


def begin(rows: Rows, plan: Plan, n_init: int, rng: np.random.RandomState) -> SoftBins:
    """Give a model for training that goes on from here, on rows of which these are the first.

    A pass over rows in parts leaves most models near their start, so the start is searched for, on
    few rows.
    """
    most = max(_FIRST_ROWS, _FIRST_BATCHES * plan.batch_size)
    few = _some(rows, rng.randint(np.iinfo(np.int32).max), most)
    return search(few, plan, n_init, rng)[0]


def prune(
    model: SoftBins, rows: Rows, plan: Plan, share: float, seed: int, tell: Tell | None = None
) -> tuple[list[int], Rows, SoftBins, list[float] | None, float]:
    """Leave features out while the objective stays, and train on with the others.

    Step by step the feature goes without which the objective is greatest, to the last one; then the
    fewest are taken that keep it. Of more than 10,000 rows these steps see 10,000.

    Parameters
    ----------
    model : SoftBins
        A trained model.
    rows : Rows
        What it learned from.
    plan : Plan
        How to train.
    share : float
        The objective may fall by this share of its value.
    seed : int
        Of the batches that are looked at, and of those that train.
    tell : callable, default=None
        Is told how far it is.

    Returns
    -------
    kept : list of int
        Places of the features that stay, ascending.
    rows : Rows
        With these features only.
    model : SoftBins
        Of these features.
    curve : list of float or None
        Of the training; None if it brought nothing, and the model is as before it.
    value : float
        The objective.
    """
    some = _some(rows, seed, _START_ROWS)
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
    model: SoftBins, rows: Rows, batch_size: int, seed: int
) -> tuple[float, int, SoftBins, Rows]:
    """Leave out the feature that takes least of the objective; give that, and which it is."""
    counts = model.cell_counts(rows.model)
    features = range(len(rows.model))
    best: tuple[float, int, SoftBins, Rows] | None = None
    for place in features:
        smaller = model.without(place, counts)
        fewer = rows.only([feature for feature in features if feature != place])
        value = evaluate(smaller, fewer, batch_size, seed)
        if best is None or value > best[0]:
            best = value, place, smaller, fewer
    assert best is not None, "there is a feature"
    return best


def _some(rows: Rows, seed: int, most: int) -> Rows:
    """Give at most so many of the rows."""
    if len(rows) <= most:
        return rows
    return rows.part(np.random.RandomState(seed).permutation(len(rows))[:most])


def evaluate(model: SoftBins, rows: Rows, batch_size: int, seed: int) -> float:
    """Give the mean objective of some batches, the same for every model with this seed."""
    rng = np.random.RandomState(seed)
    total, n_seen = 0.0, 0
    for number, index in enumerate(batches(len(rows), batch_size, rng)):
        if number == _COMPARED:
            break
        part, affinity = rows.batch(index)
        value = rows.gemini.value(model.forward(part).probabilities.T, affinity)
        total, n_seen = total + value * len(index), n_seen + len(index)
    return total / n_seen


def gradient_unit(rows: Rows, batch_size: int) -> float:
    """Give what makes gradients the same in all units of the columns: the size of the affinity.

    That of a batch of rows from all over; 1 for objectives without; 0 if all rows are alike.
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
    """Cut every feature into bins of all but equal numbers of rows, between two values."""
    some = rows[:, :: max(rows.shape[1] // _QUANTILE_ROWS, 1)]
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
