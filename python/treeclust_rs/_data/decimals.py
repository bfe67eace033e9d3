"""Decimals of Python in frames of pandas, as drivers of databases deliver money."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def decimals_as_floats(frame: Any) -> Any:
    """Return a frame of pandas with its columns of decimals alone as floats, NaN where missing."""
    inferred = sys.modules["pandas"].api.types.infer_dtype
    places = [
        place
        for place, dtype in enumerate(frame.dtypes)
        if dtype == np.dtype(object) and inferred(frame.iloc[:, place], skipna=True) == "decimal"
    ]
    if not places:
        return frame
    frame = frame.copy(deep=False)
    for place in places:
        column = frame.iloc[:, place]
        cells = zip(column, column.isna(), strict=True)
        floats = np.array([np.nan if missing else float(cell) for cell, missing in cells])
        frame.isetitem(place, floats)
    return frame
