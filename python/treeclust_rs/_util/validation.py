"""Checks of parameters, and the one door to scikit-learn's private validation."""

from numbers import Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

__all__ = ["Interval", "StrOptions", "is_number"]


def is_number(value: Any, kind: type = Real) -> bool:
    """Whether a parameter is a number of that kind; True and False are not."""
    return isinstance(value, kind) and not isinstance(value, bool)
