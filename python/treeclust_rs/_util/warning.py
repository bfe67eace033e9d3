"""Warnings that name the line of the user's code, from however deep a call they come."""

import sys
import warnings

_PASSED_OVER = ("treeclust_rs", "sklearn", "joblib")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, with the first line outside of this package and scikit-learn (joblib) as the place."""
    warnings.warn(message, category, stacklevel=level_of_user(2) + 1)


def level_of_user(depth: int = 1) -> int:
    """Return the `stacklevel` by which the caller's warnings name the user's line, see `warn_user`.

    `depth`: 2 for the caller's caller, and so on.
    """
    frame, stacklevel = sys._getframe(depth), 1
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _PASSED_OVER:
        frame, stacklevel = frame.f_back, stacklevel + 1
    return stacklevel
