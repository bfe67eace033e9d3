"""Surrogate features of kernels: functions of one column whose thresholds are intervals of it.

The core computes the features, never for all rows at once; this module computes their parameters on
the rows of a fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from .._data import Table, Units, column_of
from .._util import FloatArray, is_number, quoted_column
from .kernels import ALIASES, Kernel

FEATURES = ("auto", "taylor", "distance", "additive")
"""Allowed values of `features`."""

DEFAULT_ANCHORS = 256
"""Most anchors of a column with ``n_anchors=None``."""

# Kinds of features of each kernel; "auto" is the first.
_KINDS = {
    "rbf": ("taylor", "distance"),
    "laplacian": ("distance",),
    "linear": ("additive",),
    "hellinger": ("additive",),
    "histogram_intersection": ("additive",),
    "additive_chi2": ("additive",),
}
# Distance of the origin of Taylor features from a column's smallest value, as a share of its range.
_ORIGIN_MARGIN = 0.01


def has_features(kernel: Any) -> bool:
    """Whether a kernel, by its name or alias, has surrogate features."""
    return isinstance(kernel, str) and ALIASES.get(kernel, kernel) in _KINDS


def choose_features(kernel: Any, features: str) -> str:
    """Return the kind of features for a kernel.

    Parameters
    ----------
    kernel : str or callable
        The estimator's parameter `kernel`.
    features : str
        One of `FEATURES`.

    Returns
    -------
    str
        "taylor", "distance" or "additive".

    Raises
    ------
    ValueError
        If the kernel has no such features.
    """
    label = kernel if isinstance(kernel, str) else getattr(kernel, "__name__", "callable")
    if not has_features(kernel):
        having = ", ".join(sorted(_KINDS))
        raise ValueError(
            f"The kernel {label!r} has no surrogate features; {having} have. KernelExKMC and "
            "KernelExpand with base_tree=None explain any kernel."
        )
    known = _KINDS[ALIASES.get(kernel, kernel)]
    if features == "auto":
        return known[0]
    if features not in known:
        raise ValueError(
            f"features={features!r} do not exist for the kernel {label!r}; it has "
            f"{' and '.join(map(repr, known))}."
        )
    return features


@dataclass(frozen=True, eq=False)
class SurrogateFeatures:
    """Surrogate features with parameters computed on the rows of a fit; see `of`.

    Attributes
    ----------
    kind : str
        "taylor", "distance" or "additive".
    family : str
        The core's name of the functions.
    parameter : float
        gamma or beta; 0 for functions without one.
    order : int
        M of taylor (features 0..M) and of the chi^2 kernel (1..M).
    shift, scale : ndarray of shape (n_features,)
        The functions are of ``(x - shift) / scale``.
    anchors : list of ndarray
        By column, ascending, in the kernel's units; empty for features without anchors.
    """

    kind: str
    family: str
    parameter: float
    order: int
    shift: FloatArray
    scale: FloatArray
    anchors: list[FloatArray]

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        table: Table,
        units: Units,
        *,
        features: str = "auto",
        order: int = 5,
        n_anchors: int | str | None = None,
        shift: Any = None,
    ) -> SurrogateFeatures:
        """Build the features of a kernel, with parameters computed on a table.

        Parameters
        ----------
        kernel : Kernel
            rbf, laplacian, hellinger, histogram_intersection or additive_chi2.
        table : Table
            The rows of the fit.
        units : Units
            The kernel takes ``(x - units.shift) / units.scale``, without the shift if it depends on
            the origin.
        features : {"auto", "taylor", "distance", "additive"}, default="auto"
            "auto": taylor for rbf, distance for laplacian, additive for the others.
        order : int, default=5
            M, at least 1.
        n_anchors : int, "all" or None, default=None
            Anchors of distance features per column: "all" distinct values, or that many values at
            even quantiles of the rows. None: all up to 256, else 256.
        shift : float or array-like of shape (n_features,), default=None
            Origin of the Taylor expansion in the columns' own units, below the smallest value of
            every column. None: 1 % of the column's range below it.

        Returns
        -------
        SurrogateFeatures

        Raises
        ------
        ValueError
            If the kernel has no such features, or a parameter is out of range.
        """
        kind = choose_features(
            kernel.name if kernel.function is None else kernel.function, features
        )
        zero = np.zeros(table.n_features)
        if kind == "taylor":
            assert kernel.gamma is not None
            origin = _origin(table, shift)
            return cls(
                kind, "taylor", kernel.gamma, order, np.ascontiguousarray(origin), units.scale, []
            )
        if kind == "distance":
            assert kernel.gamma is not None
            family = "laplace" if kernel.name == "laplacian" else "gauss"
            anchors = [
                (_anchors(_column(table, f), n_anchors) - units.shift[f]) / units.scale[f]
                for f in range(table.n_features)
            ]
            return cls(kind, family, kernel.gamma, order, units.shift, units.scale, anchors)
        family = {
            "hellinger": "root",
            "histogram_intersection": "intersection",
            "additive_chi2": "chi2",
        }[kernel.name]
        beta = float(kernel.params.get("beta", 0.0))
        return cls(kind, family, beta, order, zero, units.scale, [])

    @property
    def is_monotone(self) -> bool:
        """Whether thresholds on the features are thresholds on the columns."""
        return self.family in ("root", "intersection")


def _column(table: Table, f: int) -> FloatArray:
    """Return a column as float64."""
    return np.asarray(column_of(table, f), dtype=np.float64)


def _origin(table: Table, shift: Any) -> FloatArray:
    """Return the origin of Taylor features, checked to lie below all values."""
    d = table.n_features
    smallest = np.array([_column(table, f).min() for f in range(d)])
    if shift is None:
        largest = np.array([_column(table, f).max() for f in range(d)])
        return np.asarray(smallest - _ORIGIN_MARGIN * (largest - smallest))
    origin = np.asarray(shift, dtype=np.float64)
    if origin.shape not in ((), (d,)):
        raise ValueError(
            f"shift must be a number or an array of shape ({d},), one entry per column. Got the "
            f"shape {origin.shape}."
        )
    origin = np.broadcast_to(origin, d).copy()
    bad = np.flatnonzero(~(origin < smallest))
    if len(bad):
        f = int(bad[0])
        raise ValueError(
            f"shift must lie below all values: it is {float(origin[f])!r}, but column "
            f"{quoted_column(table.feature_names, f)} starts at {float(smallest[f])!r}."
        )
    return origin


def _anchors(column: FloatArray, n_anchors: int | str | None) -> FloatArray:
    """Return data values of the column, ascending and distinct."""
    values = np.sort(column)
    distinct: FloatArray = values[np.append(True, values[1:] > values[:-1])]
    if n_anchors == "all":
        return distinct
    if n_anchors is None:
        most = DEFAULT_ANCHORS
    elif is_number(n_anchors, Integral):
        most = int(n_anchors)
    else:
        raise TypeError(f'n_anchors must be an int, "all" or None. Got {n_anchors!r} instead.')
    if len(distinct) <= most:
        return distinct
    places = ((np.arange(most) + 0.5) * len(values) / most).astype(np.int64)
    chosen: FloatArray = np.unique(values[places])
    return chosen
