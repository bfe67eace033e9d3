"""Distances of rows: names, parameters, matrices, and the base of objectives that take them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from .._kernels import check_gram
from .._util import FloatArray, as_rows, check_size
from .base import Gemini

# Distances smaller than this share of the largest are roundings of 0.
_MAX_ROUNDING = 1e-10
# Other names of distances.
_ALIASES = {"l1": "cityblock", "l2": "euclidean", "manhattan": "cityblock"}
# Distances with the triangle inequality: d(x, z) <= d(x, y) + d(y, z), d(x, x) = 0.
TRIANGLE = frozenset(
    {"canberra", "chebyshev", "cityblock", "euclidean", "hamming", "mahalanobis", "minkowski",
     "seuclidean"}
)  # fmt: skip
_BOOLEAN = frozenset(
    {"dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"}
)  # fmt: skip
_BY_SCIKIT_LEARN = frozenset({"cosine", "haversine"})
_PLAIN = TRIANGLE | _BOOLEAN | _BY_SCIKIT_LEARN | {"braycurtis", "correlation", "sqeuclidean"}
METRICS = tuple(sorted((*_PLAIN, *_ALIASES)))
"""Names of the distances of `Wasserstein`, which also takes a callable and "precomputed"."""


@dataclass(frozen=True)
class DistanceGemini(Gemini):
    """Objective that depends on distances of rows."""

    metric: str | Callable[..., float] = "euclidean"
    metric_params: Mapping[str, Any] | None = None

    uses_rows: ClassVar[bool] = True

    @property
    def _metric_name(self) -> str | None:
        return _ALIASES.get(self.metric, self.metric) if isinstance(self.metric, str) else None

    def settled(self, X: npt.ArrayLike) -> Self:
        """Return the objective with variances computed from these rows; see `Gemini`."""
        if self._metric_name not in ("seuclidean", "mahalanobis") or self.metric_params:
            return self
        return dataclasses.replace(self, metric_params=self._parameters(as_rows(X)))

    def _parameters(self, rows: FloatArray) -> dict[str, Any]:
        """Return the distance's parameters, with variances of the rows unless they are given."""
        params = dict(self.metric_params or {})
        match self._metric_name:
            case "seuclidean" if "V" not in params:
                variances = rows.var(axis=0, ddof=1) if len(rows) > 1 else np.ones(rows.shape[1])
                params["V"] = np.where(variances > 0, variances, 1.0)
            case "mahalanobis" if "VI" not in params:
                spread = np.atleast_2d(np.cov(rows.T)) if len(rows) > 1 else np.eye(rows.shape[1])
                params["VI"] = np.linalg.pinv(spread, hermitian=True)
        return params

    def affinity(self, X: npt.ArrayLike) -> FloatArray:
        """Compute the distance of every two rows; see `Gemini.affinity`."""
        name = self._metric_name
        if name == "precomputed":
            return check_square(X, "matrix", check_distances)
        rows = as_rows(X)
        n = len(rows)
        check_size(n * n, f"The distances of {n:,} rows", "Take minibatches of them.")
        params = self._parameters(rows)
        if not np.isfinite(rows).all():
            i, j = np.argwhere(~np.isfinite(rows))[0].tolist()
            raise ValueError(
                f"Row {i}, column {j} (counting from 0) is {float(rows[i, j])!r}; distances need "
                "finite numbers."
            )
        if name is None:
            return check_distances(_of_pairs(self.metric, rows, params), n, name="distance")
        if name not in _PLAIN:
            raise ValueError(
                f"Unknown metric {self.metric!r}. Known are {', '.join(METRICS)}, "
                '"precomputed" and callables.'
            )
        if name in _BY_SCIKIT_LEARN:
            values = pairwise_distances(rows, metric=name, **params)
        else:
            columns = rows != 0 if name in _BOOLEAN else rows
            try:
                with np.errstate(all="ignore"):
                    values = cdist(columns, columns, name, **params)
            except TypeError as error:
                raise TypeError(
                    f"The distance {self.metric!r} does not take metric_params={params!r}."
                ) from error
        distances = np.asarray(values, dtype=np.float64)
        np.fill_diagonal(distances, 0.0)
        bad = np.argwhere(~np.isfinite(distances))
        if len(bad):
            i, j = bad[0].tolist()
            raise ValueError(
                f"The distance {self.metric!r} of the rows {i} and {j} (counting from 0) is "
                f"{float(distances[i, j])!r}; it must be finite. It may not be defined for these "
                "rows, or the numbers may be too large for it: a larger unit helps then."
            )
        return distances


def _of_pairs(function: Any, rows: FloatArray, params: Mapping[str, Any]) -> FloatArray:
    """Compute distances by a function of two rows, called twice for pairs with row 0, else once."""
    if not callable(function):
        raise TypeError(
            f"metric must be a name or a function of two rows. Got {type(function).__name__}."
        )

    def distance(i: int, j: int) -> float:
        value = function(rows[i], rows[j], **params)
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"The metric must give a number. Got {value!r} for the rows {i} and {j}."
            ) from error

    n = len(rows)
    distances = np.zeros((n, n))
    for i in range(n):
        for j in range(i, n):
            distances[i, j] = distances[j, i] = distance(i, j)
    for j in range(1, n):
        distances[j, 0] = distance(j, 0)
    return distances


def check_square(
    matrix: Any, name: str, check: Callable[..., FloatArray] = check_gram
) -> FloatArray:
    """Check a precomputed matrix of all rows."""
    shape = np.shape(matrix)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            f"A precomputed matrix of all rows is square. Got the shape {shape} instead: Douglas "
            "takes the matrix as fit(X, affinity=matrix), beside the columns to cut."
        )
    return check(matrix, shape[0], name=name)


def check_distances(matrix: Any, n_samples: int, *, name: str) -> FloatArray:
    """Check a matrix of distances.

    Raises
    ------
    TypeError, ValueError
        As `check_gram`; also if a distance is negative, or that of a row from itself is not 0.
    """
    distances = check_gram(matrix, n_samples, name=name)
    if distances.min(initial=0.0) < 0 or distances.diagonal().any():
        # 1 - cosine of a row with itself, say, need not be 0 to the last digit.
        least = _MAX_ROUNDING * float(np.abs(distances).max())
        distances = np.where(np.abs(distances) <= least, 0.0, distances)
    own = np.flatnonzero(distances.diagonal())
    if len(own):
        i = int(own[0])
        raise ValueError(
            f"{name}[{i}, {i}] is {float(distances[i, i])!r}, but the distance of a row from "
            "itself is 0. Kernel values go with the objectives mmd_ and mmd2_."
        )
    if n_samples and distances.min() < 0:
        i, j = (int(place) for place in np.unravel_index(distances.argmin(), distances.shape))
        raise ValueError(
            f"{name}[{i}, {j}] is {float(distances[i, j])!r}, but distances are not negative."
        )
    return distances
