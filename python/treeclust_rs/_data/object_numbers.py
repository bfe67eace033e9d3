"""Numbers of Python in frames of pandas: what drivers of databases deliver, money as decimals."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

_NUMBERS = ("decimal", "integer", "floating", "mixed-integer-float")


def objects_as_floats(frame: Any) -> Any:
    """Return a frame of pandas with its objects that are numbers alone as floats, NaN if missing.

    Numbers of one type: decimals, or integers and floats of Python.
    """
    inferred = sys.modules["pandas"].api.types.infer_dtype
    places = [
        place
        for place, dtype in enumerate(frame.dtypes)
        if dtype == np.dtype(object) and inferred(frame.iloc[:, place], skipna=True) in _NUMBERS
    ]
    if not places:
        return frame
    frame = frame.copy(deep=False)
    for place in places:
        column = frame.iloc[:, place]
        cells = zip(column, column.isna(), strict=True)
        floats = np.array([np.nan if missing else _float(cell) for cell, missing in cells])
        frame.isetitem(place, floats)
    return frame


def _float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer of more than 308 digits
        return math.inf if number > 0 else -math.inf
