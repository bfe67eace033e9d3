"""Labels of clusters: -1 marks noise."""

from typing import Any

import numpy as np
import numpy.typing as npt

from .arrays import BoolArray

NOISE = -1
"""The label of rows that belong to no cluster."""


def is_noise(labels: npt.NDArray[Any]) -> BoolArray:
    """Mark the rows labelled -1; among strings, held as objects, too."""
    if labels.dtype.kind == "O":
        return np.array([label == NOISE for label in labels.tolist()], dtype=bool)
    if labels.dtype.kind not in "if":
        return np.zeros(labels.shape, dtype=bool)
    return np.asarray(labels == NOISE)
