"""Energy distance: the squared MMD of minus the distances."""

from __future__ import annotations

from dataclasses import dataclass

from .._util.arrays import FloatArray
from .base import ClusterShares
from .distances import DistanceGemini
from .mmd import means_between, means_to_all


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

    @property
    def _stem(self) -> str:
        return "energy"

    def _to_all(self, clusters: ClusterShares) -> tuple[FloatArray, FloatArray]:
        return _negative(means_to_all(clusters, clusters.matrix, squared=True))

    def _between(self, clusters: ClusterShares) -> tuple[FloatArray, FloatArray]:
        return _negative(means_between(clusters, clusters.matrix, squared=True))


def _negative(pair: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray]:
    return 0.0 - pair[0], 0.0 - pair[1]
