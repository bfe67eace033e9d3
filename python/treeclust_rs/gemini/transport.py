"""Wasserstein distance, by the network simplex of POT, and energy distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util import FloatArray
from .base import ClusterShares, differences
from .distances import TRIANGLE, DistanceGemini
from .mmd import means_between, means_to_all

# Probabilities that sum to 1 up to this error do so but for rounding.
_MAX_SUM_ERROR = 1e-12
# Pivots of one transport problem; some thousands are usual.
_MAX_PIVOTS = 100_000_000
# Costs are rescaled for the solver unless the largest lies between these.
_MIN_SCALE, _MAX_SCALE = 1e-3, 1e6
# Status of the solver for a solved problem.
_OPTIMAL = 1


@dataclass(frozen=True)
class Wasserstein(DistanceGemini):
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
    has the triangle inequality, mass that two distributions share need not move: only the excess of
    one over the other is transported, from and to about half of the rows each. The potential of the
    other rows is the greatest that grows by no more than the distance. With two clusters, and rows
    whose probabilities sum to 1, both clusters have one problem. With other distances, and with a
    callable or a matrix, all mass is in the problem.

    References
    ----------
    Flamary et al. POT: Python Optimal Transport. JMLR 22(78), 2021.
    """

    _stem = "wasserstein"

    @property
    def energy(self) -> EnergyDistance:
        """The energy distance with the same distances and the same form."""
        return EnergyDistance(self.one_vs_one, self.metric, self.metric_params)

    @property
    def _has_triangle(self) -> bool:
        name = self._metric_name
        if name == "minkowski":
            return float(dict(self.metric_params or {}).get("p", 2.0)) >= 1.0
        return name in TRIANGLE

    def _to_all(self, clusters: ClusterShares) -> tuple[FloatArray, FloatArray]:
        w, masses = clusters.shares, clusters.masses
        n, k = w.shape
        apart, potentials = np.zeros(k), np.zeros((n, k))
        if self._has_triangle and k == 2 and masses.all() and _sum_to_one(clusters.probabilities):
            # The excess of one cluster is what the other lacks.
            small = int(masses.argmin())
            large = 1 - small
            cost, potential = _move_excess(differences(w[:, small], 1.0 / n), clusters.matrix)
            apart[small], apart[large] = cost, cost * masses[small] / masses[large]
            potentials[:, small], potentials[:, large] = potential, -potential
            return apart, potentials
        if self._has_triangle:
            # A cluster without mass is uniform: nothing moves.
            for c, excess in enumerate(differences(np.ascontiguousarray(w.T), 1.0 / n)):
                apart[c], potentials[:, c] = _move_excess(excess, clusters.matrix)
        else:
            uniform = np.full(n, 1.0 / n)
            for c in range(k):
                apart[c], potentials[:, c], _ = _move_all(w[:, c], uniform, clusters.matrix)
        return apart, potentials

    def _between(self, clusters: ClusterShares) -> tuple[FloatArray, FloatArray]:
        w, pi = clusters.shares, clusters.masses
        n, k = w.shape
        between, gradients = np.zeros((k, k)), np.zeros((n, k))
        for a in range(k):
            for b in range(a + 1, k):
                if pi[a] == 0 or pi[b] == 0:
                    continue
                if self._has_triangle:
                    cost, left = _move_excess(differences(w[:, a], w[:, b]), clusters.matrix)
                    right = -left
                else:
                    cost, left, right = _move_all(w[:, a], w[:, b], clusters.matrix)
                between[a, b] = between[b, a] = cost
                gradients[:, a] += pi[b] * left
                gradients[:, b] += pi[a] * right
        return between, gradients


def _sum_to_one(probabilities: FloatArray) -> bool:
    return bool(np.abs(probabilities.sum(axis=1) - 1.0).max() <= _MAX_SUM_ERROR)


def _move_excess(excess: FloatArray, distances: FloatArray) -> tuple[float, FloatArray]:
    """Transport the positive part of `excess` to the negative one, with the triangle inequality.

    Returns the least cost, and a potential of every row: sum excess x potential is that cost, and
    the potentials of two rows differ by at most their distance.
    """
    over, under = (excess > 0).nonzero()[0], (excess < 0).nonzero()[0]
    if not len(over) or not len(under):
        return 0.0, np.zeros(len(excess))
    # From the larger side to the smaller: the solver takes a quarter less time than the other way.
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
    """Transport all mass, for any costs; return the least cost and the potentials of both sides."""
    sources, targets = np.flatnonzero(have > 0), np.flatnonzero(want > 0)
    to_targets = costs[:, targets]
    prices = _prices(have[sources], want[targets], to_targets[sources])
    left = (to_targets - prices).min(axis=1)
    right = (costs - left[:, None]).min(axis=0)
    return float(have @ left + want @ right), left, right


def _prices(have: FloatArray, want: FloatArray, costs: FloatArray) -> FloatArray:
    """Solve a transport problem of positive masses; return the potentials of the targets.

    The masses are divided by their sum, in place: the solver's tolerance is absolute.
    """
    from ot.lp.emd_wrap import emd_c  # here, because POT takes long to import

    have /= np.add.reduce(have)
    want /= np.add.reduce(want)
    # The tolerance for costs is absolute too.
    unit = float(np.maximum.reduce(costs, axis=None))
    if unit == 0.0 or _MIN_SCALE < unit < _MAX_SCALE:
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


@dataclass(frozen=True)
class EnergyDistance(DistanceGemini):
    """Energy distance: the squared MMD of minus the distances, as a kernel.

    Twice the mean distance of rows of both distributions, minus the mean distances within each; not
    negative for Euclidean and many other distances (Szekely and Rizzo, *Energy statistics*, 2013).
    It is not a GEMINI of the paper, and has no name in `GEMINIS`: it starts the training with a
    `Wasserstein` objective, whose own gradient is noise as long as the clusters are alike.

    Parameters
    ----------
    one_vs_one : bool, default=False
        Compare clusters with one another, not with all rows.
    metric, metric_params
        As for `Wasserstein`.
    """

    _stem = "energy"

    def _to_all(self, clusters: ClusterShares) -> tuple[FloatArray, FloatArray]:
        return _negative(means_to_all(clusters, clusters.matrix, squared=True))

    def _between(self, clusters: ClusterShares) -> tuple[FloatArray, FloatArray]:
        return _negative(means_between(clusters, clusters.matrix, squared=True))


def _negative(pair: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray]:
    return 0.0 - pair[0], 0.0 - pair[1]
