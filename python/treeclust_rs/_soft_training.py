"""Training the model of Douglas: cuts to start from, minibatches, and when to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ._optimisers import Optimiser
from ._soft_bins import SoftBins
from .gemini import MMD, Gemini

__all__ = ["Rows", "Tell", "evaluate", "gradient_unit", "start_bins", "train"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Tell = Callable[[int, float], None]
"""Is told the epoch and its GEMINI."""

# The affinity of all rows is computed once if it has at most so many numbers, 32 MiB.
_KEPT = 1 << 22
# Rows whose quantiles a start takes.
_QUANTILE_ROWS = 100_000
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
        if self.affinity is None and self.seen is not None and len(self.seen) ** 2 <= _KEPT:
            self.affinity = self.gemini.affinity(self.seen)

    def __len__(self) -> int:
        return int(self.model.shape[1])

    def batch(self, index: IntArray) -> tuple[FloatArray, FloatArray | None]:
        """Give the rows of a batch for the model, and their affinity."""
        rows = self.model[:, index]
        if self.affinity is not None:
            return rows, self.affinity[index[:, np.newaxis], index]
        return rows, None if self.seen is None else self.gemini.affinity(self.seen[index])


def batches(n: int, batch_size: int, rng: np.random.RandomState) -> Iterator[IntArray]:
    """Split shuffled rows into the fewest batches of at most `batch_size`, all but equal in size.

    A rest of a single row, from which no objective learns, does not occur.
    """
    n_batches = -(-n // batch_size)
    order = rng.permutation(n) if n_batches > 1 else np.arange(n)
    yield from np.array_split(order, n_batches)


def train(
    model: SoftBins,
    rows: Rows,
    optimiser: Optimiser,
    unit: float,
    *,
    batch_size: int,
    max_iter: int,
    tol: float | None,
    n_iter_no_change: int,
    rng: np.random.RandomState,
    tell: Tell | None = None,
) -> list[float]:
    """Change the model by gradient steps until the objective rises no more.

    Parameters
    ----------
    model : SoftBins
        Is changed in place.
    rows : Rows
        What to learn from.
    optimiser : Optimiser
        What makes the steps.
    unit : float
        What gradients are divided by.
    batch_size : int
        Most rows of a batch.
    max_iter : int
        Most epochs.
    tol : float or None
        Least rise of an epoch's objective over the best so far, as a share of it; None: all epochs.
    n_iter_no_change : int
        Epochs without such a rise that end the training.
    rng : RandomState
        Shuffles the rows.
    tell : callable, default=None
        Is told each epoch.

    Returns
    -------
    list of float
        Mean objective of the batches of each epoch.
    """
    curve: list[float] = []
    best, since = -np.inf, 0
    for epoch in range(1, max_iter + 1):
        total = 0.0
        for index in batches(len(rows), batch_size, rng):
            part, affinity = rows.batch(index)
            tape = model.forward(part)
            value, gradient = rows.gemini.value_and_gradient(tape.probabilities.T, affinity)
            gradient /= unit
            optimiser.step(model.vector, model.backward(tape, gradient.T))
            total += value * len(index)
        curve.append(total / len(rows))
        if tell is not None:
            tell(epoch, curve[-1])
        if tol is None:
            continue
        since = 0 if curve[-1] > best + tol * abs(best) or epoch == 1 else since + 1
        best = max(best, curve[-1])
        if since >= n_iter_no_change:
            break
    return curve


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
    """Give what makes gradients the same in all units of the columns: the size of the affinity."""
    index = np.arange(min(len(rows), batch_size))
    _, affinity = rows.batch(index)
    size = 0.0 if affinity is None else float(np.abs(affinity).mean())
    if size == 0.0:
        return 1.0
    is_root = isinstance(rows.gemini, MMD) and not rows.gemini.squared
    return float(np.sqrt(size)) if is_root else size


def start_bins(
    rows: FloatArray,
    n_clusters: int,
    *,
    n_cuts: int,
    temperature: float,
    init: str,
    rng: np.random.RandomState,
) -> SoftBins:
    """Give a model to start from.

    Parameters
    ----------
    rows : ndarray of shape (m, n)
        The features, in standard deviations.
    n_clusters, n_cuts, temperature
        As for `Douglas`.
    init : {"quantile", "random"}
        Where the cuts are.
    rng : RandomState
        Draws what is random.
    """
    n_features = len(rows)
    if init == "random":
        cuts = np.sort(rng.standard_normal((n_features, n_cuts)), axis=1)
    else:
        cuts = _quantile_cuts(rows, n_cuts)
    weights = rng.standard_normal(((n_cuts + 1) ** n_features, n_clusters))
    return SoftBins(cuts, weights, temperature)


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
        nearest = (
            np.abs(below[:, np.newaxis] - wanted).argmin(axis=0)
            if len(values) < 1000
            else (np.searchsorted(below, wanted).clip(max=len(below) - 1))
        )
        of_feature[:] = (values[nearest] + values[nearest + 1]) / 2
    return cuts


def make_seeds(random_state: Any, n: int) -> list[int]:
    """Draw seeds, one per start."""
    return [int(seed) for seed in random_state.randint(np.iinfo(np.int32).max, size=n)]
