"""How estimators are printed: parameters that hold data as a short word."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

# Longer lists are not written.
_MAX_LIST = 10


class _Word:
    """Stands for data in the text of an estimator."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def without_data(estimator: BaseEstimator) -> BaseEstimator:
    """Return an estimator of the same name, parameters and state, but words in place of data.

    scikit-learn prints it as it prints its own estimators; it cannot be fitted.
    """
    cls = type(estimator)
    names = ("__init__", "fit", "__doc__", "__module__")
    own = {name: getattr(cls, name) for name in names if hasattr(cls, name)}
    twin = BaseEstimator.__new__(type(cls.__name__, (BaseEstimator,), own))
    params = estimator.get_params(deep=False)
    vars(twin).update(vars(estimator))
    vars(twin).update({name: _short(value) for name, value in params.items()})
    return twin


def _short(value: Any) -> Any:
    """Return a word of shape and kind for an array, a frame or a long list, else the value."""
    kind = type(value).__name__
    shape = getattr(value, "shape", ())
    if isinstance(value, BaseEstimator):
        return without_data(value)
    if isinstance(value, np.ndarray) and shape:
        return _Word(f"<{value.dtype} array of shape {shape}>")
    if isinstance(shape, tuple) and shape:
        return _Word(f"<{kind} of shape {shape}>")
    if isinstance(value, (list, tuple)) and len(value) > _MAX_LIST:
        return _Word(f"<{kind} of {len(value):,}>")
    return value
