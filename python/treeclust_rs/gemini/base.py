"""Generalised mutual informations (GEMINI): how far soft clusters are apart.

Ohl et al., "End-to-end training of unsupervised trees: Kauri and Douglas", section 2.3. With
probabilities y (rows x clusters), cluster k has the mass pi_k = mean_i y_ik and the distribution
w_k(i) = y_ik / (n pi_k) over the n rows. For a distance D of two distributions over the rows,

- one-vs-all (eq. 1): I = sum_k pi_k D(w_k, u), u = 1/n in every row;
- one-vs-one (eq. 2): I = sum_kl pi_k pi_l D(w_k, w_l).

The objectives are greater where clusters are further apart. Each class of the modules here is one
distance D, in both forms; `names` lists them.

Probabilities need not sum to 1 in each row: gradients are those of the formulas above with respect
to every entry on its own. For hard clusters mmd2_ova is Kauri's objective L / n minus the mean of
K, and mmd2_ovo twice that (appendix B).

Where a formula is not defined, the value is its limit and the gradient is finite: a cluster without
mass counts as one spread over all rows, so it adds nothing and its gradient is 0; the gradient of a
root at 0 is 0; the logarithm and the power -1/2 of a probability of 0 are those of the smallest
normal number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from .._util import FloatArray

TINY = float(np.finfo(np.float64).tiny)
"""Smallest normal number, for logarithms and roots of probabilities of 0."""

SAME = 4 * float(np.finfo(np.float64).eps)
"""Two shares of mass that differ by less than this share of the larger are equal."""


@dataclass(frozen=True, eq=False)
class ClusterShares:
    """Shares and masses of clusters, computed from probabilities."""

    probabilities: FloatArray
    shares: FloatArray
    """w of the module's text, rows x clusters; every column sums to 1."""
    masses: FloatArray
    """pi."""
    affinity: FloatArray | None

    @property
    def uniform(self) -> float:
        """u, the share of every row in the distribution of all rows."""
        return 1.0 / len(self.shares)

    @property
    def matrix(self) -> FloatArray:
        """The affinity, of objectives that depend on the rows."""
        assert self.affinity is not None, "value_and_gradient checks it"
        return self.affinity


def differences(left: FloatArray, right: FloatArray | float) -> FloatArray:
    """Return left - right of numbers >= 0, with 0 where they are equal up to rounding."""
    apart = left - right
    apart[np.abs(apart) <= SAME * np.maximum(left, right)] = 0.0
    return apart


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
    """Whether the objective depends on the rows, by `affinity`, and not on probabilities alone."""

    _stem: ClassVar[str]

    @property
    def name(self) -> str:
        """One of `GEMINIS`."""
        return self._stem + ("_ovo" if self.one_vs_one else "_ova")

    def settled(self, X: npt.ArrayLike) -> Self:  # noqa: ARG002
        """Return the objective with its parameters that depend on data computed from these rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            All rows, of which `affinity` may get parts.

        Returns
        -------
        Gemini
            Itself if nothing depends on the data.
        """
        return self

    def affinity(self, X: npt.ArrayLike) -> FloatArray | None:  # noqa: ARG002
        """Compute the kernel values or distances that the objective needs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers; the square matrix itself for precomputed kernels and distances.

        Returns
        -------
        ndarray of shape (n_samples, n_samples), float64, C order, or None
            Kernels or distances of every two rows, symmetric; ``[np.ix_(rows, rows)]`` of it is the
            affinity of these rows. None for objectives of the probabilities alone.

        Raises
        ------
        ValueError
            If the kernel or distance is not defined on the rows, or the matrix would be larger than
            4 GiB.
        TypeError
            If a callable returns no number.
        """
        return None

    def value(self, probabilities: npt.ArrayLike, affinity: FloatArray | None = None) -> float:
        """Return the objective.

        Parameters
        ----------
        probabilities : array-like of shape (n_samples, n_clusters)
            Probabilities of the clusters for each row, not negative.
        affinity : ndarray of shape (n_samples, n_samples) or None
            Result of `affinity` for the rows.

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
        """Return the derivative of the objective with respect to each probability.

        %(of_value)s

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            A subgradient of D where it is not differentiable.

        %(value_errors)s
        """
        return self.value_and_gradient(probabilities, affinity)[1]

    def value_and_gradient(
        self, probabilities: npt.ArrayLike, affinity: FloatArray | None = None
    ) -> tuple[float, FloatArray]:
        """Return the objective and its gradient, at the cost of one of them.

        %(of_value)s

        Returns
        -------
        value : float
        gradient : ndarray of shape (n_samples, n_clusters)

        %(value_errors)s
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
        clusters = ClusterShares(p, shares, masses, affinity)
        if self.one_vs_one:
            between, gradients = self._between(clusters)
            apart = between @ masses
            value = float(masses @ apart)
            factor = 2.0 / n
        else:
            apart, gradients = self._to_all(clusters)
            value = float(masses @ apart)
            factor = 1.0 / n
        # The derivative of a share of a cluster's mass: d w_j / d y_i = (1[i = j] - w_j) / (n pi).
        gradient = gradients + (apart - np.einsum("ik,ik->k", shares, gradients))
        gradient *= factor
        if empty.any():
            gradient[:, empty] = 0.0
        return value, gradient

    @abstractmethod
    def _to_all(self, clusters: ClusterShares) -> tuple[FloatArray, FloatArray]:
        """Return D(w_k, u) of shape (k,), and its derivatives by w_k, of shape (n, k)."""

    @abstractmethod
    def _between(self, clusters: ClusterShares) -> tuple[FloatArray, FloatArray]:
        """Return D of every two clusters, and derivatives.

        The former has the shape (k, k) and is symmetric, the mean of both directions if D is not.
        The latter has the shape (n, k): sum_l pi_l d D(w_k, w_l) / d w_k.
        """
