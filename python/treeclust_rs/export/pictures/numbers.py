"""The numbers of the tests beside the axes of a partition, far enough apart to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import isotonic_regression

from ..._util.arrays import FloatArray
from ..._util.words import format_number
from .cells import Borders, Limits
from .drawing import FONTSIZE, INK, QUIET, size_in_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

_SIZE = 0.85  # in units of the size of other text
_LINE_HEIGHT = 1.25  # in units of the size of the numbers
_LEADER = 9.0  # points


def draw_numbers(ax: Axes, borders: Borders, window: Limits, fontsize: float) -> list[Annotation]:
    """Write the places of borders beside the axes; without room for all, of the longest."""
    size = _SIZE * fontsize
    written = []
    for axis, length in enumerate(size_in_points(ax)):
        low, high = window[axis]
        own = borders.axis == axis
        places, which = np.unique(borders.place[own], return_inverse=True)
        lengths = np.bincount(which, weights=(borders.end - borders.start)[own])
        step = _LINE_HEIGHT * size
        fitting = np.sort(np.argsort(-lengths, kind="stable")[: max(int(length / step), 1)])
        places = places[fitting]
        texts = [format_number(place) for place in places.tolist()]
        wanted = (places - low) / (high - low) * length
        for shown, at, text_at in zip(texts, wanted, spread(wanted, step, length), strict=True):
            # Axes coordinates along the edge, points away from it.
            edge, text = at / length, text_at - at
            number = ax.annotate(
                shown,
                xy=(edge, 1.0) if axis == 0 else (1.0, edge),
                xycoords="axes fraction",
                xytext=(text, _LEADER) if axis == 0 else (_LEADER, text),
                textcoords="offset points",
                rotation=90 if axis == 0 else 0,
                ha="center" if axis == 0 else "left",
                va="bottom" if axis == 0 else "center",
                fontsize=size,
                color=INK,
                annotation_clip=False,
                arrowprops={
                    "arrowstyle": "-",
                    "color": QUIET,
                    "linewidth": 0.6 * fontsize / FONTSIZE,
                    "shrinkA": 1.0,
                    "shrinkB": 0.0,
                    "relpos": (0.5, 0.0) if axis == 0 else (0.0, 0.5),
                },
            )
            written.append(number)
    return written


def numbers_height(numbers: list[Annotation], fontsize: float) -> float:
    """Return the approximate height of the numbers above the axes, in points."""
    longest = max(
        (len(number.get_text()) for number in numbers if number.get_rotation()), default=0
    )
    return _LEADER + 0.62 * _SIZE * fontsize * longest if longest else 0.0


def spread(wanted: FloatArray, step: float, length: float) -> FloatArray:
    """Return the nearest places that are at least `step` apart and in [0, length].

    `wanted` ascends. Less the steps between them, the places must ascend: isotonic regression.
    """
    if not len(wanted):
        return wanted
    steps = step * np.arange(len(wanted))
    ascending = isotonic_regression(wanted - steps).x
    room = max(length - float(steps[-1]), 0.0)
    return np.asarray(np.clip(ascending, 0.0, room) + steps)
