"""What parameters of several estimators may be, for scikit-learn's validation."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from .._util.validation import Interval, StrOptions

Constraints = dict[str, list[Any]]

AT_LEAST_1 = Interval(Integral, 1, None, closed="left")

COMMON: Constraints = {
    "scale": [StrOptions({"standard"}), None],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
}
"""Of all estimators."""

EXPLAINING: Constraints = {
    "n_clusters": [AT_LEAST_1, None],
    "reference": "no_validation",  # type: ignore[dict-item]
    **COMMON,
}
"""Of the estimators that explain a reference."""

LIMITS: Constraints = {
    "max_leaves": [AT_LEAST_1, None],
    "max_depth": [AT_LEAST_1, None],
    "min_samples_leaf": [AT_LEAST_1],
}
"""Of the estimators whose growth has limits; see `Limits`."""
