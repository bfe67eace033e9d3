"""Label costs of the rows of a fit: what growth lowers, with means or without."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._engine import LabelCosts
from .._util.arrays import FloatArray

# Costs whose difference is below this share of the larger one count as equal.
_EQUAL_COST = 1e-13


def mismatch_costs(labels: npt.NDArray[np.int64], k: int, weight: FloatArray | None) -> LabelCosts:
    """Return costs of 0 for the row's own label and of 1 for every other."""
    regrets = np.ones((len(labels), k))
    regrets[np.arange(len(labels)), labels] = 0.0
    if weight is not None:
        regrets *= weight[:, None]
    return LabelCosts(regrets, labels.astype(np.uint32), 0.0)


def distance_costs(distances: FloatArray, weight: FloatArray | None) -> LabelCosts:
    """Return the costs of squared distances to k means, of shape (n_samples, k)."""
    least = distances.min(axis=1)
    nearest = distances.argmin(axis=1).astype(np.uint32)
    regrets = distances - least[:, None]
    regrets[regrets <= _EQUAL_COST * distances] = 0.0
    if weight is None:
        return LabelCosts(regrets, nearest, float(least.sum()))
    return LabelCosts(regrets * weight[:, None], nearest, float(weight @ least))
