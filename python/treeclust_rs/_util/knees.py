"""The knee of a falling curve, beyond which it falls little more."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .arrays import FloatArray

# Shares of the fall that are rounding.
_ROUNDING = 1e-9


def below_chord(x: npt.ArrayLike, y: npt.ArrayLike) -> FloatArray:
    """Return how far points of a curve lie below a line, as shares of the curve's fall.

    The line runs from the first point to the first of the lowest ones, since what costs more and
    gains nothing has no part in the knee. This is Kneedle's difference curve (Satopaa, Albrecht,
    Irwin, Raghavan, "Finding a 'kneedle' in a haystack", 2011) without smoothing: the units of x
    and y have no part in it either.

    Parameters
    ----------
    x : array-like of shape (n,)
        Rising.
    y : array-like of shape (n,)
        The curve.

    Returns
    -------
    ndarray of shape (n,)
        Negative above the line; zeros if the first point is the lowest.
    """
    places, values = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    last = _lowest(values)
    fall, width = values[0] - values[last], places[last] - places[0]
    if not fall > 0:
        return np.zeros(len(values))
    return np.asarray((values[0] - values) / fall - (places - places[0]) / width)


def knee(x: npt.ArrayLike, y: npt.ArrayLike) -> int | None:
    """Return the place of the point farthest below the line, the first of equal ones.

    If no point lies below the line, the first of the lowest points, where the fall ends; None if
    that is the last of several, so that no knee is seen.
    """
    below = below_chord(x, y)
    place = int(np.argmax(below >= below.max() - _ROUNDING))
    if below[place] > _ROUNDING:
        return place
    lowest = _lowest(np.asarray(y, dtype=np.float64))
    return lowest if lowest == 0 or lowest < len(below) - 1 else None


def _lowest(values: FloatArray) -> int:
    """Return the place of the first of the lowest values."""
    least = values.min()
    return int(np.argmax(values <= least + _ROUNDING * (values[0] - least)))
