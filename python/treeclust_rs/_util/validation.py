"""The one door to scikit-learn's private validation of parameters."""

from sklearn.utils._param_validation import Interval, StrOptions

__all__ = ["Interval", "StrOptions"]
