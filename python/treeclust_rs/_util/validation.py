"""Checks of parameters, and the one door to scikit-learn's private validation."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval as _Interval
from sklearn.utils._param_validation import Options, StrOptions

__all__ = ["INTEGER", "Interval", "Options", "StrOptions", "at_least", "is_number"]

_INT64 = np.iinfo(np.int64)


class Interval(_Interval):
    """An interval of numbers; True and False are not in it."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether a parameter is a number of the interval."""
        return is_number(val) and bool(super().is_satisfied_by(val))


INTEGER = Interval(Integral, int(_INT64.min), int(_INT64.max), closed="both")
"""All integers of 64 bits."""


def at_least(minimum: int) -> Interval:
    """Return the integers from a minimum on that fit into 64 bits, as the core has them."""
    return Interval(Integral, minimum, int(_INT64.max), closed="both")


def is_number(value: Any, kind: type = Real) -> bool:
    """Whether a parameter is a number of that kind; True and False are not."""
    return isinstance(value, kind) and not isinstance(value, bool)
