"""Warnings that name the line of the user's code, from however deep a call they come."""

import sys
import warnings

_PASSED_OVER = ("treeclust_rs", "sklearn", "joblib")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, with the first line outside of this package and scikit-learn (joblib) as the place."""
    frame, stacklevel = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _PASSED_OVER:
        frame, stacklevel = frame.f_back, stacklevel + 1
    warnings.warn(message, category, stacklevel=stacklevel)
