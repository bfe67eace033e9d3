"""Rows of a fit of Douglas: for the model, for the objective, and in batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._data import Table, Units
from ..._kernels import check_gram
from ..._util import FloatArray, IntArray
from ...gemini import Gemini, Wasserstein
from ...gemini.distances import check_distances
from .column_bins import ColumnBins

# The affinity of all rows is computed once if it has at most so many numbers, 32 MiB.
_MAX_KEPT = 1 << 22


@dataclass(eq=False)
class TrainingRows:
    """Rows for the model and for the objective.

    Parameters
    ----------
    model : ndarray of shape (m, n)
        The features with bins, in standard deviations.
    gemini : Gemini
        The objective, with parameters computed on all rows.
    seen : ndarray of shape (n, d) or None
        All columns in the units of the objective, if it depends on rows.
    affinity : ndarray of shape (n, n) or None
        The affinity of all rows, if it is known.
    """

    model: FloatArray
    gemini: Gemini
    seen: FloatArray | None = None
    affinity: FloatArray | None = None

    def __post_init__(self) -> None:
        if len(self) ** 2 <= _MAX_KEPT:
            self.affinity = self.whole_affinity()

    def whole_affinity(self) -> FloatArray | None:
        """Return the affinity of all rows; None for objectives of probabilities alone."""
        if self.affinity is None and self.seen is not None:
            return self.gemini.affinity(self.seen)
        return self.affinity

    def __len__(self) -> int:
        return int(self.model.shape[1])

    def part(self, index: IntArray) -> TrainingRows:
        """Return some of the rows."""
        seen = None if self.seen is None else self.seen[index]
        affinity = None if self.affinity is None else self.affinity[np.ix_(index, index)]
        return TrainingRows(self.model[:, index], self.gemini, seen, affinity)

    def only(self, features: list[int]) -> TrainingRows:
        """Return the rows for a model of these features."""
        return dataclasses.replace(self, model=self.model[features])

    def batch(self, index: IntArray) -> tuple[FloatArray, FloatArray | None]:
        """Return the rows of a batch for the model, and their affinity."""
        rows = self.model[:, index]
        if self.affinity is not None:
            return rows, self.affinity[index[:, np.newaxis], index]
        return rows, None if self.seen is None else self.gemini.affinity(self.seen[index])


def batches(n: int, batch_size: int, rng: np.random.RandomState) -> Iterator[IntArray]:
    """Split shuffled rows into the fewest batches of at most `batch_size`, all but equal in size.

    A batch of a single row, from which no objective learns, occurs only if `batch_size` is 2.
    """
    n_batches = -(-n // batch_size)
    order = rng.permutation(n) if n_batches > 1 else np.arange(n)
    yield from np.array_split(order, n_batches)


def make_training_rows(
    gemini: Gemini, columns: ColumnBins, table: Table, affinity: Any
) -> TrainingRows:
    """Return the rows of a table for the model and for the objective.

    Parameters
    ----------
    gemini : Gemini
        The objective.
    columns : ColumnBins
        The columns of the model.
    table : Table
        The rows.
    affinity : array-like of shape (n_samples, n_samples) or None
        Distances or kernel values of every two rows in place of those of the objective.

    Raises
    ------
    TypeError, ValueError
        If `affinity` is not such a matrix, or the objective does not depend on rows.
    """
    model = columns.model_rows(table)
    if affinity is not None:
        if not gemini.uses_rows:
            raise ValueError(
                f"affinity was given, but gemini={gemini.name!r} does not look at rows."
            )
        if isinstance(gemini, Wasserstein):
            square = check_distances(affinity, table.n_samples, name="affinity")
            # These distances need not have the triangle inequality.
            gemini = dataclasses.replace(gemini, metric="precomputed", metric_params=None)
        else:
            square = check_gram(affinity, table.n_samples, name="affinity")
        return TrainingRows(model, gemini, affinity=square)
    if not gemini.uses_rows:
        return TrainingRows(model, gemini)
    seen = Units(np.zeros(table.n_features), columns.units).matrix(table)
    return TrainingRows(model, gemini.settled(seen), seen)
