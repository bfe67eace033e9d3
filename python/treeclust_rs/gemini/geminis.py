"""Generalised mutual informations (GEMINI): how well soft clusters are kept apart.

Ohl et al., "End-to-end training of unsupervised trees: Kauri and Douglas", section 2.3. With
probabilities y (rows x clusters), cluster k has the mass pi_k = mean_i y_ik and the distribution
w_k(i) = y_ik / (n pi_k) over the n rows. For a distance D of two distributions over the rows,

- one-vs-all (eq. 1): I = sum_k pi_k D(w_k, u), u = 1/n in every row;
- one-vs-one (eq. 2): I = sum_kl pi_k pi_l D(w_k, w_l).

The objectives are greater where clusters are further apart. Each class here is one distance, in
both forms:

===================  ==========================  ===================================================
class                names                       D(p, q)
===================  ==========================  ===================================================
`KL`                 kl_ova, kl_ovo              sum p log(p / q); kl_ova is the mutual information
`TotalVariation`     tv_ova, tv_ovo              sum abs(p - q) / 2
`SquaredHellinger`   hellinger_ova, hellinger_ovo  sum (sqrt p - sqrt q)^2 / 2 = 1 - sum sqrt(p q)
`MMD`                mmd_ova, mmd_ovo            sqrt((p - q)' K (p - q)), K a kernel matrix
`MMD`, squared       mmd2_ova, mmd2_ovo          (p - q)' K (p - q)
`Wasserstein`        wasserstein_ova, _ovo       least cost of moving p to q, by distances of rows
===================  ==========================  ===================================================

Probabilities need not sum to 1 in each row: gradients are those of the formulas above with respect
to every entry on its own. For hard clusters mmd2_ova is Kauri's objective L / n less the mean of K,
and mmd2_ovo twice that (appendix B).

Where a formula says nothing, the value is its limit and the gradient is finite: a cluster without
mass counts as one spread over all rows, so it adds nothing and its gradient is 0; a root at 0 has
the gradient 0; of a probability of 0 the logarithm and the power -1/2 are those of the smallest
normal number.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from .._kernels.gram import check_gram
from .._kernels.kernels import ORIGIN_FREE, Kernel
from .._kernels.parameters import make_kernel
from .._util.arrays import FloatArray, as_rows, check_size, mean_row

__all__ = [
    "GEMINIS",
    "KL",
    "METRICS",
    "MMD",
    "EnergyDistance",
    "Gemini",
    "SquaredHellinger",
    "TotalVariation",
    "Wasserstein",
    "make_gemini",
]


_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
# Two shares of mass that differ by less than this share of the larger are equal.
_SAME = 4 * _EPS
# Rows of probabilities that sum to 1 so closely do so but for roundings.
_SUM_ERROR = 1e-12
# Distances that are smaller than this share of the largest are roundings of 0.
_NO_DISTANCE = 1e-10
# Pivots of one transport problem; some thousands are usual.
_MAX_PIVOTS = 100_000_000
# Largest distances of a problem that are handed to the solver as they are.
_LEAST_COST, _MOST_COST = 1e-3, 1e6
# What the solver says of a problem it solved.
_OPTIMAL = 1


# ---- one-vs-all and one-vs-one --------------------------------------------------------------


@dataclass(frozen=True)
class Gemini(ABC):
    """A generalised mutual information of cluster probabilities and rows.

    Parameters
    ----------
    one_vs_one : bool, default=False
        Compare clusters with one another (eq. 2), not with all rows (eq. 1).
    """

    one_vs_one: bool = False

    uses_rows: ClassVar[bool] = False
    """Whether the objective looks at the rows, by `affinity`; others see probabilities only."""

    @property
    def name(self) -> str:
        """One of `GEMINIS`."""
        return self._stem + ("_ovo" if self.one_vs_one else "_ova")

    @property
    @abstractmethod
    def _stem(self) -> str: ...

    def settled(self, X: npt.ArrayLike) -> Self:  # noqa: ARG002
        """Give the objective with all that it takes from the data taken from these rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            All rows, where `affinity` will be asked for parts of them.

        Returns
        -------
        Gemini
            Itself if nothing depends on the data.
        """
        return self

    def affinity(self, X: npt.ArrayLike) -> FloatArray | None:  # noqa: ARG002
        """Give what the objective needs to know of the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers; the square matrix itself for precomputed kernels and distances.

        Returns
        -------
        ndarray of shape (n_samples, n_samples), float64, C order, or None
            Kernels or distances of every two rows, symmetric; a part ``[np.ix_(rows, rows)]`` of it
            serves these rows. None for objectives of the probabilities alone.

        Raises
        ------
        ValueError
            If the kernel or distance is not defined on the rows, or the matrix would be larger than
            4 GiB.
        TypeError
            If a callable gives no number.
        """
        return None

    def value(self, probabilities: npt.ArrayLike, affinity: FloatArray | None = None) -> float:
        """Give the objective.

        Parameters
        ----------
        probabilities : array-like of shape (n_samples, n_clusters)
            Of the clusters for each row, not negative.
        affinity : ndarray of shape (n_samples, n_samples) or None
            What `affinity` gave for the rows.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If a probability is negative, NaN or inf, or a shape is wrong.
        """
        return self.value_and_gradient(probabilities, affinity)[0]

    def gradient(
        self, probabilities: npt.ArrayLike, affinity: FloatArray | None = None
    ) -> FloatArray:
        """Give the derivative of the objective by each probability.

        Parameters
        ----------
        probabilities, affinity
            As for `value`.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            A subgradient of D where it is not differentiable.

        Raises
        ------
        ValueError
            As for `value`.
        """
        return self.value_and_gradient(probabilities, affinity)[1]

    def value_and_gradient(
        self, probabilities: npt.ArrayLike, affinity: FloatArray | None = None
    ) -> tuple[float, FloatArray]:
        """Give the objective and its gradient for the price of one.

        Parameters
        ----------
        probabilities, affinity
            As for `value`.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n_samples, n_clusters)

        Raises
        ------
        ValueError
            As for `value`.
        """
        p = np.asarray(probabilities, dtype=np.float64)
        if p.ndim != 2 or p.size == 0:
            raise ValueError(
                "probabilities must have the shape (n_samples, n_clusters), both at least 1. Got "
                f"{p.shape}."
            )
        n = len(p)
        # NaN fails both comparisons.
        if not (p.min() >= 0 and p.max() < np.inf):
            i, j = (int(place[0]) for place in np.nonzero(~((p >= 0) & (p < np.inf))))
            raise ValueError(
                f"probabilities must be finite and not negative: that of cluster {j} in row {i} "
                f"(counting from 0) is {float(p[i, j])!r}."
            )
        if affinity is not None:
            affinity = np.ascontiguousarray(affinity, dtype=np.float64)
        if self.uses_rows and (affinity is None or affinity.shape != (n, n)):
            got = "None" if affinity is None else f"the shape {affinity.shape}"
            raise ValueError(
                f"{self.name} needs the affinity of the {n} rows, an array of shape ({n}, {n}). "
                f"Got {got}."
            )
        sums = p.sum(axis=0)
        empty = sums == 0.0
        if empty.any():
            p = np.where(empty, 1.0, p)  # spread over all rows, with the mass 0
            shares = p / np.where(empty, n, sums)
        else:
            shares = p / sums
        masses = sums / n
        state = _State(p, shares, masses, affinity)
        if self.one_vs_one:
            between, gradients = self._between(state)
            apart = between @ masses
            value = float(masses @ apart)
            factor = 2.0 / n
        else:
            apart, gradients = self._to_all(state)
            value = float(masses @ apart)
            factor = 1.0 / n
        # A share of a cluster's mass: d w_j / d y_i = (1[i = j] - w_j) / (n pi).
        gradient = gradients + (apart - np.einsum("ik,ik->k", shares, gradients))
        gradient *= factor
        if empty.any():
            gradient[:, empty] = 0.0
        return value, gradient

    @abstractmethod
    def _to_all(self, state: _State) -> tuple[FloatArray, FloatArray]:
        """Give D(w_k, u) of shape (k,), and its derivatives by w_k, of shape (n, k)."""

    @abstractmethod
    def _between(self, state: _State) -> tuple[FloatArray, FloatArray]:
        """Give D of every two clusters, and derivatives.

        The first is of shape (k, k) and symmetric: where D is not, it is the mean of both
        directions. The second is of shape (n, k): sum_l pi_l d D(w_k, w_l) / d w_k.
        """


@dataclass(frozen=True, eq=False)
class _State:
    """Probabilities, and what every objective takes from them."""

    probabilities: FloatArray
    shares: FloatArray
    """w, rows x clusters; every column sums to 1."""
    masses: FloatArray
    """pi."""
    affinity: FloatArray | None

    @property
    def uniform(self) -> float:
        return 1.0 / len(self.shares)

    @property
    def matrix(self) -> FloatArray:
        assert self.affinity is not None, "value_and_gradient checks it"
        return self.affinity


def _differences(left: FloatArray, right: FloatArray | float) -> FloatArray:
    """Subtract; what are roundings of equal numbers, none of them negative, is 0."""
    apart = left - right
    apart[np.abs(apart) <= _SAME * np.maximum(left, right)] = 0.0
    return apart


# ---- distances of probabilities alone -------------------------------------------------------


class KL(Gemini):
    """Kullback-Leibler divergence: kl_ova is the mutual information of clusters and rows.

    Parameters
    ----------
    one_vs_one : bool, default=False
        Compare clusters with one another, not with all rows. Hard clusters are then infinitely far
        apart: the value is some 700, from the smallest number.
    """

    @property
    def _stem(self) -> str:
        return "kl"

    def _to_all(self, state: _State) -> tuple[FloatArray, FloatArray]:
        logs = _log_shares(state) - np.log(state.uniform)
        return np.einsum("ik,ik->k", state.shares, logs), logs + 1.0

    def _between(self, state: _State) -> tuple[FloatArray, FloatArray]:
        w, pi, total = state.shares, state.masses, float(state.masses.sum())
        logs = _log_shares(state)
        crossed = w.T @ logs
        own = np.diagonal(crossed)
        between = 0.5 * (own[:, None] + own - crossed - crossed.T)
        ratios = (w @ pi)[:, None] / np.maximum(w, _TINY)
        gradients = 0.5 * (total * logs - (logs @ pi)[:, None] + total - ratios)
        return between, gradients


class TotalVariation(Gemini):
    """Total variation distance: half the sum of absolute differences.

    Parameters
    ----------
    one_vs_one : bool, default=False
        Compare clusters with one another, not with all rows.
    """

    @property
    def _stem(self) -> str:
        return "tv"

    def _to_all(self, state: _State) -> tuple[FloatArray, FloatArray]:
        apart = _differences(state.shares, state.uniform)
        return 0.5 * np.abs(apart).sum(axis=0), 0.5 * np.sign(apart)

    def _between(self, state: _State) -> tuple[FloatArray, FloatArray]:
        w, pi = state.shares, state.masses
        between = np.empty((len(pi), len(pi)))
        gradients = np.empty_like(w)
        for k in range(len(pi)):
            apart = _differences(w[:, [k]], w)
            between[k] = 0.5 * np.abs(apart).sum(axis=0)
            gradients[:, k] = 0.5 * (np.sign(apart) @ pi)
        return between, gradients


class SquaredHellinger(Gemini):
    """Squared Hellinger distance, between 0 and 1.

    Parameters
    ----------
    one_vs_one : bool, default=False
        Compare clusters with one another, not with all rows.
    """

    @property
    def _stem(self) -> str:
        return "hellinger"

    def _to_all(self, state: _State) -> tuple[FloatArray, FloatArray]:
        roots, u = np.sqrt(state.shares), np.sqrt(state.uniform)
        apart = 0.5 * np.square(roots - u).sum(axis=0)
        return apart, 0.5 - 0.5 * u / _positive_roots(roots)

    def _between(self, state: _State) -> tuple[FloatArray, FloatArray]:
        roots, pi = np.sqrt(state.shares), state.masses
        between = np.array(
            [0.5 * np.square(roots[:, [k]] - roots).sum(axis=0) for k in range(len(pi))]
        )
        mean = (roots @ pi)[:, None]
        return between, 0.5 * float(pi.sum()) - 0.5 * mean / _positive_roots(roots)


def _log_shares(state: _State) -> FloatArray:
    return np.asarray(np.log(np.maximum(state.shares, _TINY)))


def _positive_roots(roots: FloatArray) -> FloatArray:
    return np.maximum(roots, np.sqrt(_TINY))


# ---- maximum mean discrepancy -----------------------------------------------------------------


@dataclass(frozen=True)
class MMD(Gemini):
    """Maximum mean discrepancy: distance of the clusters' means in the space of a kernel.

    Parameters
    ----------
    one_vs_one : bool, default=False
        Compare clusters with one another, not with all rows.
    squared : bool, default=False
        The squared distance, Kauri's objective: mmd2_ova and mmd2_ovo. mmd2_ovo is twice mmd2_ova
        where every row's probabilities sum to 1.
    kernel : str or callable, default="linear"
        A kernel of this package, as of `Kauri`; a function of two rows; or "precomputed".
    gamma : float, "scale" or None, default=None
        Of the kernels rbf, laplacian, polynomial and chi2. "scale": 1 / (n_features x variance).
        None: 1 / n_features; chi2: 1.
    degree : float, default=3
        Of the polynomial kernel.
    coef0 : float, default=1.0
        Of the polynomial kernel.
    kernel_params : mapping, default=None
        epsilon: ``{"epsilon": e}``. histogram_intersection: ``{"beta": b}``. Keyword arguments of a
        callable.

    Notes
    -----
    Rows are centered before the linear kernel is taken: D does not depend on the origin, and far
    from it digits would be lost. A squared distance that a kernel that is not positive semidefinite
    makes negative has the root 0.
    """

    squared: bool = False
    kernel: str | Callable[..., float] = "linear"
    gamma: float | str | None = None
    degree: float = 3
    coef0: float = 1.0
    kernel_params: Mapping[str, Any] | None = None

    uses_rows: ClassVar[bool] = True

    @property
    def _stem(self) -> str:
        return "mmd2" if self.squared else "mmd"

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def settled(self, X: npt.ArrayLike) -> Self:
        """Give the objective with ``gamma="scale"`` taken from these rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            All rows, where `affinity` will be asked for parts of them.

        Returns
        -------
        MMD
            Itself with any other `gamma`.
        """
        if self._precomputed or self.gamma != "scale":
            return self
        return dataclasses.replace(self, gamma=self._kernel(as_rows(X)).gamma)

    def affinity(self, X: npt.ArrayLike) -> FloatArray:
        """Give the kernel of every two rows; see `Gemini.affinity`."""
        if self._precomputed:
            return _square(X, "matrix")
        rows = as_rows(X)
        if isinstance(self.kernel, str) and self.kernel in ORIGIN_FREE:
            rows = rows - mean_row(rows)
        return self._kernel(rows).matrix(rows)

    def _kernel(self, rows: FloatArray) -> Kernel:
        return make_kernel(
            self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            kernel_params=self.kernel_params,
            X=rows,
        )

    def _to_all(self, state: _State) -> tuple[FloatArray, FloatArray]:
        return _means_to_all(state, state.matrix, self.squared)

    def _between(self, state: _State) -> tuple[FloatArray, FloatArray]:
        return _means_between(state, state.matrix, self.squared)


def _means_to_all(
    state: _State, kernel: FloatArray, squared: bool
) -> tuple[FloatArray, FloatArray]:
    """Do what `_to_all` does, for distances of means in the space of a kernel."""
    apart = _differences(state.shares, state.uniform)
    sides = kernel @ apart
    squares = np.einsum("ik,ik->k", apart, sides)
    if squared:
        return squares, 2.0 * sides
    roots = _roots(squares, apart, sides)
    return roots, sides * _inverse(roots)


def _means_between(
    state: _State, kernel: FloatArray, squared: bool
) -> tuple[FloatArray, FloatArray]:
    """Do what `_between` does, for distances of means in the space of a kernel."""
    w, pi = state.shares, state.masses
    # The mean does not matter; without it fewer digits are lost.
    middle = (w @ pi / max(float(pi.sum()), _TINY))[:, None]
    sides = kernel @ (w - middle)
    between = np.empty((len(pi), len(pi)))
    gradients = np.empty_like(w)
    for k in range(len(pi)):
        apart = _differences(w[:, [k]], w)
        across = sides[:, [k]] - sides
        between[k] = np.einsum("ik,ik->k", apart, across)
        if squared:
            gradients[:, k] = 2.0 * (across @ pi)
        else:
            between[k] = _roots(between[k], apart, across)
            gradients[:, k] = across @ (pi * _inverse(between[k]))
    return between, gradients


def _roots(squares: FloatArray, apart: FloatArray, sides: FloatArray) -> FloatArray:
    """Square roots of v'Kv, 0 where that is a rounding of 0 or negative."""
    size = np.abs(apart).sum(axis=0) * np.abs(sides).max(axis=0)
    return np.sqrt(np.where(squares > _SAME * size, squares, 0.0))


def _inverse(numbers: FloatArray) -> FloatArray:
    """Inverse of each, 0 of 0."""
    return np.where(numbers > 0, 1.0, 0.0) / np.where(numbers > 0, numbers, 1.0)


# ---- Wasserstein --------------------------------------------------------------------------------

# Names that mean the same to us as scikit-learn's and scipy's.
_DISTANCES = {"l1": "cityblock", "l2": "euclidean", "manhattan": "cityblock"}
# Distances that never grow by a detour: d(x, z) <= d(x, y) + d(y, z), d(x, x) = 0.
_TRIANGLE = frozenset(
    {"canberra", "chebyshev", "cityblock", "euclidean", "hamming", "mahalanobis", "minkowski",
     "seuclidean"}
)  # fmt: skip
_OF_BOOLEANS = frozenset(
    {"dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"}
)  # fmt: skip
_BY_SCIKIT_LEARN = frozenset({"cosine", "haversine"})
_PLAIN = _TRIANGLE | _OF_BOOLEANS | _BY_SCIKIT_LEARN | {"braycurtis", "correlation", "sqeuclidean"}

METRICS = tuple(sorted((*_PLAIN, *_DISTANCES)))
"""Names of distances `Wasserstein` knows; it also takes a callable and "precomputed"."""


@dataclass(frozen=True)
class _OfDistances(Gemini):
    """An objective that looks at distances of rows."""

    metric: str | Callable[..., float] = "euclidean"
    metric_params: Mapping[str, Any] | None = None

    uses_rows: ClassVar[bool] = True

    @property
    def _metric_name(self) -> str | None:
        return _DISTANCES.get(self.metric, self.metric) if isinstance(self.metric, str) else None

    def settled(self, X: npt.ArrayLike) -> Self:
        """Give the objective with variances taken from these rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            All rows, where `affinity` will be asked for parts of them.

        Returns
        -------
        Gemini
            Itself unless the metric is seuclidean or mahalanobis without `metric_params`.
        """
        if self._metric_name not in ("seuclidean", "mahalanobis") or self.metric_params:
            return self
        return dataclasses.replace(self, metric_params=self._parameters(as_rows(X)))

    def _parameters(self, rows: FloatArray) -> dict[str, Any]:
        """Give the distance's parameters; those that are variances from the rows, unless given."""
        given = dict(self.metric_params or {})
        match self._metric_name:
            case "seuclidean" if "V" not in given:
                variances = rows.var(axis=0, ddof=1) if len(rows) > 1 else np.ones(rows.shape[1])
                given["V"] = np.where(variances > 0, variances, 1.0)
            case "mahalanobis" if "VI" not in given:
                spread = np.atleast_2d(np.cov(rows.T)) if len(rows) > 1 else np.eye(rows.shape[1])
                given["VI"] = np.linalg.pinv(spread, hermitian=True)
        return given

    def affinity(self, X: npt.ArrayLike) -> FloatArray:
        """Give the distance of every two rows; see `Gemini.affinity`."""
        name = self._metric_name
        if name == "precomputed":
            return _square(X, "matrix", check_distances)
        rows = as_rows(X)
        n = len(rows)
        check_size(n * n, f"The distances of {n:,} rows", "Take minibatches of them.")
        given = self._parameters(rows)
        if not np.isfinite(rows).all():
            i, j = np.argwhere(~np.isfinite(rows))[0].tolist()
            raise ValueError(
                f"Row {i}, column {j} (counting from 0) is {float(rows[i, j])!r}; distances need "
                "finite numbers."
            )
        if name is None:
            return check_distances(_of_pairs(self.metric, rows, given), n, name="distance")
        if name not in _PLAIN:
            raise ValueError(
                f"Unknown metric {self.metric!r}. Known are {', '.join(METRICS)}, "
                '"precomputed" and callables.'
            )
        if name in _BY_SCIKIT_LEARN:
            found = pairwise_distances(rows, metric=name, **given)
        else:
            columns = rows != 0 if name in _OF_BOOLEANS else rows
            try:
                with np.errstate(all="ignore"):
                    found = cdist(columns, columns, name, **given)
            except TypeError as error:
                raise TypeError(
                    f"The distance {self.metric!r} does not take metric_params={given!r}."
                ) from error
        distances = np.asarray(found, dtype=np.float64)
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


@dataclass(frozen=True)
class Wasserstein(_OfDistances):
    """Wasserstein distance: the least cost of moving one distribution's mass to the other's.

    Parameters
    ----------
    one_vs_one : bool, default=False
        Compare clusters with one another, not with all rows.
    metric : str or callable, default="euclidean"
        Distance of two rows: one of `METRICS`, as scikit-learn's `pairwise_distances` knows them (a
        cell is true where it is not 0, for distances of booleans); a function of two rows, which
        must be symmetric; or "precomputed".
    metric_params : mapping, default=None
        Keyword arguments of the distance: ``{"p": 3}`` for minkowski, ``{"V": variances}`` for
        seuclidean, ``{"VI": matrix}`` for mahalanobis.

    Notes
    -----
    The transport problems are solved exactly, by the network simplex of POT. With a distance that
    keeps the triangle inequality, mass that two distributions share need not move: only the excess
    of one over the other is transported, from and to some half of the rows each. The potential of
    the other rows is the greatest that grows by no more than the distance. With two clusters, and
    rows whose probabilities sum to 1, both clusters' problems are one. With other distances, a
    callable or a matrix among them, all mass is in the problem.

    References
    ----------
    Flamary et al. POT: Python Optimal Transport. JMLR 22(78), 2021.
    """

    @property
    def _stem(self) -> str:
        return "wasserstein"

    @property
    def energy(self) -> EnergyDistance:
        """The energy distance of the same distances, of all rows or of one another alike."""
        return EnergyDistance(self.one_vs_one, self.metric, self.metric_params)

    @property
    def _has_triangle(self) -> bool:
        name = self._metric_name
        if name == "minkowski":
            return float(dict(self.metric_params or {}).get("p", 2.0)) >= 1.0
        return name in _TRIANGLE

    def _to_all(self, state: _State) -> tuple[FloatArray, FloatArray]:
        w, masses = state.shares, state.masses
        n, k = w.shape
        apart, potentials = np.zeros(k), np.zeros((n, k))
        if self._has_triangle and k == 2 and masses.all() and _sum_to_one(state.probabilities):
            # What one cluster has too much of, the other has too little of.
            small = int(masses.argmin())
            large = 1 - small
            cost, potential = _move_excess(_differences(w[:, small], 1.0 / n), state.matrix)
            apart[small], apart[large] = cost, cost * masses[small] / masses[large]
            potentials[:, small], potentials[:, large] = potential, -potential
            return apart, potentials
        if self._has_triangle:
            # A cluster without mass is uniform: nothing moves.
            for c, excess in enumerate(_differences(np.ascontiguousarray(w.T), 1.0 / n)):
                apart[c], potentials[:, c] = _move_excess(excess, state.matrix)
        else:
            uniform = np.full(n, 1.0 / n)
            for c in range(k):
                apart[c], potentials[:, c], _ = _move_all(w[:, c], uniform, state.matrix)
        return apart, potentials

    def _between(self, state: _State) -> tuple[FloatArray, FloatArray]:
        w, pi = state.shares, state.masses
        n, k = w.shape
        between, gradients = np.zeros((k, k)), np.zeros((n, k))
        for a in range(k):
            for b in range(a + 1, k):
                if pi[a] == 0 or pi[b] == 0:
                    continue
                if self._has_triangle:
                    cost, left = _move_excess(_differences(w[:, a], w[:, b]), state.matrix)
                    right = -left
                else:
                    cost, left, right = _move_all(w[:, a], w[:, b], state.matrix)
                between[a, b] = between[b, a] = cost
                gradients[:, a] += pi[b] * left
                gradients[:, b] += pi[a] * right
        return between, gradients


@dataclass(frozen=True)
class EnergyDistance(_OfDistances):
    """Energy distance: the squared MMD of minus the distances, as a kernel.

    Twice the mean distance of rows of both distributions, less the mean distances within each; that
    is never negative for Euclidean and many other distances (Szekely and Rizzo, *Energy
    statistics*, 2013). It is no GEMINI of the paper, and has no name in `GEMINIS`: far from any
    clusters it shows the way to those that the `Wasserstein` objective of the same distances finds
    good, whose own gradient there is noise.

    Parameters
    ----------
    one_vs_one : bool, default=False
        Compare clusters with one another, not with all rows.
    metric, metric_params
        As for `Wasserstein`.
    """

    @property
    def _stem(self) -> str:
        return "energy"

    def _to_all(self, state: _State) -> tuple[FloatArray, FloatArray]:
        return _negative(_means_to_all(state, state.matrix, squared=True))

    def _between(self, state: _State) -> tuple[FloatArray, FloatArray]:
        return _negative(_means_between(state, state.matrix, squared=True))


def _negative(found: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray]:
    return 0.0 - found[0], 0.0 - found[1]


def _sum_to_one(probabilities: FloatArray) -> bool:
    return bool(np.abs(probabilities.sum(axis=1) - 1.0).max() <= _SUM_ERROR)


def _move_excess(excess: FloatArray, distances: FloatArray) -> tuple[float, FloatArray]:
    """Move what is positive in `excess` to where it is negative, under a triangle inequality.

    Gives the least cost, and a potential of every row: sum excess x potential is that cost, and no
    two rows' potentials differ by more than their distance.
    """
    over, under = (excess > 0).nonzero()[0], (excess < 0).nonzero()[0]
    if not len(over) or not len(under):
        return 0.0, np.zeros(len(excess))
    # From the many to the few, which takes the solver a quarter less than the other way.
    from_over = len(over) >= len(under)
    many, few = (over, under) if from_over else (under, over)
    to_few = distances.take(few, axis=1)
    sizes = np.abs(excess)
    prices = _prices(sizes.take(many), sizes.take(few), to_few.take(many, axis=0))
    to_few -= prices
    potential: FloatArray = np.minimum.reduce(to_few, axis=1)
    if not from_over:
        potential = -potential
    return float(excess @ potential), potential


def _move_all(
    have: FloatArray, want: FloatArray, costs: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Move all mass, whatever the costs; give the least cost, and the potentials of both sides."""
    sources, targets = np.flatnonzero(have > 0), np.flatnonzero(want > 0)
    to_targets = costs[:, targets]
    prices = _prices(have[sources], want[targets], to_targets[sources])
    left = (to_targets - prices).min(axis=1)
    right = (costs - left[:, None]).min(axis=0)
    return float(have @ left + want @ right), left, right


def _prices(have: FloatArray, want: FloatArray, costs: FloatArray) -> FloatArray:
    """Solve a transport problem of positive masses; give the potentials of what is wanted.

    The masses are brought to the sum 1, in place: the solver's tolerance is not relative.
    """
    from ot.lp.emd_wrap import emd_c  # here, because POT takes long to import

    have /= np.add.reduce(have)
    want /= np.add.reduce(want)
    # Nor is that for costs.
    unit = float(np.maximum.reduce(costs, axis=None))
    if unit == 0.0 or _LEAST_COST < unit < _MOST_COST:
        unit = 1.0
    else:
        costs = costs / unit
    prices: FloatArray
    _, _, _, prices, status = emd_c(have, want, costs, _MAX_PIVOTS, 1)
    if status != _OPTIMAL:
        raise RuntimeError(
            f"The transport of {len(have)} to {len(want)} rows was not solved (status {status})."
        )
    return prices if unit == 1.0 else prices * unit


def _of_pairs(function: Any, rows: FloatArray, given: Mapping[str, Any]) -> FloatArray:
    """Distances by a function of two rows: it is asked once for a pair, twice for row 0's."""
    if not callable(function):
        raise TypeError(
            f"metric must be a name or a function of two rows. Got {type(function).__name__}."
        )

    def distance(i: int, j: int) -> float:
        value = function(rows[i], rows[j], **given)
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"The metric must give a number. Got {value!r} for the rows {i} and {j}."
            ) from error

    n = len(rows)
    found = np.zeros((n, n))
    for i in range(n):
        for j in range(i, n):
            found[i, j] = found[j, i] = distance(i, j)
    for j in range(1, n):
        found[j, 0] = distance(j, 0)
    return found


def _square(matrix: Any, name: str, check: Callable[..., FloatArray] = check_gram) -> FloatArray:
    """Check a precomputed matrix."""
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
        least = _NO_DISTANCE * float(np.abs(distances).max())
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


# ---- names --------------------------------------------------------------------------------------

_BY_NAME: dict[str, tuple[type[Gemini], dict[str, bool]]] = {
    "hellinger": (SquaredHellinger, {}),
    "kl": (KL, {}),
    "mmd": (MMD, {}),
    "mmd2": (MMD, {"squared": True}),
    "tv": (TotalVariation, {}),
    "wasserstein": (Wasserstein, {}),
}

GEMINIS = tuple(f"{stem}_{form}" for stem in _BY_NAME for form in ("ova", "ovo"))
"""Names `make_gemini` knows."""


def make_gemini(gemini: str | Gemini, **parameters: Any) -> Gemini:
    """Give an objective by its name.

    Parameters
    ----------
    gemini : str or Gemini
        One of `GEMINIS`, or an objective, which is given back.
    **parameters
        Of the objective: `kernel`, `gamma`, `degree`, `coef0` and `kernel_params` of mmd_ and
        mmd2_, `metric` and `metric_params` of wasserstein_. Only with a name.

    Returns
    -------
    Gemini

    Raises
    ------
    ValueError
        If the name or a parameter is unknown.
    TypeError
        If `gemini` is neither a string nor an objective.

    Examples
    --------
    >>> import numpy as np
    >>> gemini = make_gemini("wasserstein_ova", metric="manhattan")
    >>> X = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> y = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> gemini.value(y, gemini.affinity(X))
    4.0
    """
    if isinstance(gemini, Gemini):
        if parameters:
            raise ValueError(
                f"{', '.join(sorted(parameters))} cannot be set on an objective that is given; "
                "make it with them."
            )
        return gemini
    if not isinstance(gemini, str):
        raise TypeError(f"gemini must be a name or a Gemini. Got {type(gemini).__name__} instead.")
    if gemini not in GEMINIS:
        raise ValueError(f"Unknown gemini {gemini!r}. Known are {', '.join(GEMINIS)}.")
    stem, form = gemini.rsplit("_", 1)
    kind, fixed = _BY_NAME[stem]
    free = {f.name for f in dataclasses.fields(kind)} - {"one_vs_one", "squared"}
    unknown = sorted(set(parameters) - free)
    if unknown:
        takes = f"takes {', '.join(sorted(free))}" if free else "takes none"
        raise ValueError(f"Unknown parameters {', '.join(unknown)} of {gemini}: it {takes}.")
    return kind(one_vs_one=form == "ovo", **fixed, **parameters)
