"""Objectives of the probabilities alone: Kullback-Leibler, total variation, squared Hellinger."""

from __future__ import annotations

import numpy as np

from .._util import FloatArray
from .base import TINY, ClusterShares, Gemini, differences


class KL(Gemini):
    """Kullback-Leibler divergence: kl_ova is the mutual information of clusters and rows.

    Parameters
    ----------
    one_vs_one : bool, default=False
        Compare clusters with one another, not with all rows. Hard clusters are then infinitely far
        apart: the value is some 700, from the smallest number.
    """

    _stem = "kl"

    def _to_all(self, clusters: ClusterShares) -> tuple[FloatArray, FloatArray]:
        logs = _log_shares(clusters) - np.log(clusters.uniform)
        return np.einsum("ik,ik->k", clusters.shares, logs), logs + 1.0

    def _between(self, clusters: ClusterShares) -> tuple[FloatArray, FloatArray]:
        w, pi, total = clusters.shares, clusters.masses, float(clusters.masses.sum())
        logs = _log_shares(clusters)
        crossed = w.T @ logs
        own = np.diagonal(crossed)
        between = 0.5 * (own[:, None] + own - crossed - crossed.T)
        ratios = (w @ pi)[:, None] / np.maximum(w, TINY)
        gradients = 0.5 * (total * logs - (logs @ pi)[:, None] + total - ratios)
        return between, gradients


class TotalVariation(Gemini):
    """Total variation distance: half the sum of absolute differences.

    Parameters
    ----------
    one_vs_one : bool, default=False
        Compare clusters with one another, not with all rows.
    """

    _stem = "tv"

    def _to_all(self, clusters: ClusterShares) -> tuple[FloatArray, FloatArray]:
        apart = differences(clusters.shares, clusters.uniform)
        return 0.5 * np.abs(apart).sum(axis=0), 0.5 * np.sign(apart)

    def _between(self, clusters: ClusterShares) -> tuple[FloatArray, FloatArray]:
        w, pi = clusters.shares, clusters.masses
        between = np.empty((len(pi), len(pi)))
        gradients = np.empty_like(w)
        for k in range(len(pi)):
            apart = differences(w[:, [k]], w)
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

    _stem = "hellinger"

    def _to_all(self, clusters: ClusterShares) -> tuple[FloatArray, FloatArray]:
        roots, u = np.sqrt(clusters.shares), np.sqrt(clusters.uniform)
        apart = 0.5 * np.square(roots - u).sum(axis=0)
        return apart, 0.5 - 0.5 * u / _positive_roots(roots)

    def _between(self, clusters: ClusterShares) -> tuple[FloatArray, FloatArray]:
        roots, pi = np.sqrt(clusters.shares), clusters.masses
        between = np.array(
            [0.5 * np.square(roots[:, [k]] - roots).sum(axis=0) for k in range(len(pi))]
        )
        mean = (roots @ pi)[:, None]
        return between, 0.5 * float(pi.sum()) - 0.5 * mean / _positive_roots(roots)


def _log_shares(clusters: ClusterShares) -> FloatArray:
    return np.asarray(np.log(np.maximum(clusters.shares, TINY)))


def _positive_roots(roots: FloatArray) -> FloatArray:
    return np.maximum(roots, np.sqrt(TINY))
