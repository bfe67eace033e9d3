"""The model of Douglas: soft bins of every feature, their products, and weights of cells.

Each feature is cut into T + 1 bins, and a row belongs to every bin a little (Ohl et al.,
*End-to-end training of unsupervised trees: Kauri and Douglas*, equation 9; after Yang et al., *Deep
neural decision trees*):

    P(bin t | x) = softmax_t((t x - b_1 - ... - b_t) / temperature),    b_1 <= ... <= b_T.

A cell is one bin of every feature; a row belongs to it by the product of its bins. There are
L = (T + 1)^m cells of m features, each with a weight per cluster, and

    p(y = c | x) = softmax_c(sum over the cells l of W[l, c] prod_f P(bin l_f | x_f))

(equation 10, which leaves the softmax out).

The n x L table of the products is never computed. The features are split into two halves with L_1
and L_2 = L / L_1 combinations of bins; the weights are contracted with the products of one half,
to n x L_2 x k numbers, and those with the products of the other. With L_1 about the root of L that
is the root of L in place of L. The work is one matrix product of 2 n L k operations, and two
more for the gradient.

Arrays have the rows last, so that every operation runs along them.

==========  ==========================================
paper       here
==========  ==========================================
T           `n_cuts`
b           `cuts`, of shape (m, T)
tau         `temperature`
W           `weights`, of shape (L, k), the last feature's bin running fastest
==========  ==========================================
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ..._util import FloatArray, IntArray

# Floats of a forward pass while the probabilities of many rows are computed.
_MAX_BLOCK = 1 << 21
# Weight of a cell without rows, in rows, in means over cells.
_EMPTY_ROWS = 1e-3


def floats_per_row(n_features: int, n_bins: int, n_clusters: int) -> int:
    """Return the floats of a row in a forward pass: bins, products of both halves, contractions.

    The result may be a number too large for any memory.
    """
    right: int = n_bins ** (n_features // 2)
    left: int = n_bins ** (n_features - n_features // 2)
    return n_features * n_bins + left + right * (1 + n_clusters)


@dataclass(frozen=True)
class Tape:
    """Values of a forward pass that the backward pass needs."""

    order: npt.NDArray[np.intp] | None
    """How the cuts were sorted, of shape (m, T); None if they were in order."""
    bins: FloatArray
    """(m, T + 1, n)."""
    left: list[FloatArray]
    """Products of the first 1, 2, ... features of the first half: (T + 1, n), ..."""
    right: list[FloatArray]
    """Of the second half."""
    contracted: FloatArray
    """The weights contracted with the products of the first half, of shape (L_2, k, n)."""
    probabilities: FloatArray
    """(k, n)."""


class SoftBins:
    """Cuts and weights, in one vector that an optimiser changes in place.

    Parameters
    ----------
    cuts : ndarray of shape (m, T)
        Cuts of every feature, in its units. Their order does not matter.
    weights : ndarray of shape (L, k)
        Weight of each cell in the logit of each cluster.
    temperature : float
        Softness of the bins, in the units of the features: a row this far beyond a single cut
        belongs to the near bin by 0.73.

    Attributes
    ----------
    vector : ndarray of shape (m T + L k,)
        All parameters.
    cuts, weights : ndarray
        Views of it.
    """

    def __init__(self, cuts: FloatArray, weights: FloatArray, temperature: float) -> None:
        self.vector = np.concatenate((cuts.ravel(), weights.ravel()))
        self.temperature = temperature
        self._shape = cuts.shape
        self._n_clusters = weights.shape[1]
        self.n_bins = int(cuts.shape[1]) + 1
        # Features of the first half.
        self._n_left = (len(cuts) + 1) // 2
        self._number = np.arange(self.n_bins, dtype=np.float64)[:, np.newaxis]

    @property
    def cuts(self) -> FloatArray:
        """Cuts of every feature, of shape (m, T)."""
        return self._parts(self.vector)[0]

    @property
    def weights(self) -> FloatArray:
        """Weights of every cell, of shape (L, k)."""
        return self._parts(self.vector)[1]

    def _parts(self, vector: FloatArray) -> tuple[FloatArray, FloatArray]:
        n_cuts = self._shape[0] * self._shape[1]
        cuts, weights = vector[:n_cuts], vector[n_cuts:]
        return cuts.reshape(self._shape), weights.reshape(-1, self._n_clusters)

    def cell_counts(self, rows: FloatArray) -> FloatArray:
        """Return the number of the rows, of shape (m, n), in every hard cell, of shape (L,)."""
        cells = hard_cells(rows, np.sort(self.cuts, axis=1), rows.shape[1])
        return np.bincount(cells, minlength=len(self.weights)).astype(np.float64)

    def without(self, feature: int, counts: FloatArray) -> SoftBins:
        """Return the model without a feature: cells that differ in it alone become one.

        Its weights are their means, weighted by `counts`, of shape (L,), of rows per cell.
        """
        n_features, k = len(self.cuts), self._n_clusters
        rows = counts.reshape((self.n_bins,) * n_features)[..., np.newaxis] + _EMPTY_ROWS
        weights = self.weights.reshape(*rows.shape[:-1], k)
        means = (weights * rows).sum(axis=feature) / rows.sum(axis=feature)
        cuts = np.delete(self.cuts, feature, axis=0)
        return SoftBins(cuts, means.reshape(-1, k), self.temperature)

    def forward(self, rows: FloatArray) -> Tape:
        """Compute the probabilities of rows, keeping what `backward` needs.

        Parameters
        ----------
        rows : ndarray of shape (m, n)
            The rows, a column each.
        """
        cuts, weights = self._parts(self.vector)
        bins, order = self._bins(cuts, rows)
        n = rows.shape[1]
        left = _products(bins[: self._n_left])
        right = _products(bins[self._n_left :])
        first, second = left[-1], right[-1]
        flat = weights.reshape(len(first), -1)
        contracted = (flat.T @ first).reshape(len(second), -1, n)
        logits = np.add.reduce(second[:, np.newaxis, :] * contracted, axis=0)
        return Tape(order, bins, left, right, contracted, _softmax(logits, axis=0))

    def backward(self, tape: Tape, gradient: FloatArray) -> FloatArray:
        """Return the gradient by the parameters, from that by the probabilities.

        Parameters
        ----------
        tape : Tape
            Of the forward pass.
        gradient : ndarray of shape (k, n)
            Derivative of a function by the probabilities.

        Returns
        -------
        ndarray of shape (m T + L k,)
            Its derivative by `vector`.
        """
        out = np.empty_like(self.vector)
        by_cuts, by_weights = self._parts(out)
        _, weights = self._parts(self.vector)
        p = tape.probabilities
        by_logit = p * gradient
        by_logit -= p * np.add.reduce(by_logit, axis=0)
        first, second = tape.left[-1], tape.right[-1]
        by_contracted = (second[:, np.newaxis, :] * by_logit).reshape(-1, p.shape[1])
        np.matmul(first, by_contracted.T, out=by_weights.reshape(len(first), -1))
        if len(by_cuts):
            by_first = weights.reshape(len(first), -1) @ by_contracted
            by_second = np.add.reduce(tape.contracted * by_logit, axis=1)
            by_bins = np.empty_like(tape.bins)
            n_left = self._n_left
            _products_back(by_first, tape.left, tape.bins[:n_left], by_bins[:n_left])
            _products_back(by_second, tape.right, tape.bins[n_left:], by_bins[n_left:])
            self._cuts_back(tape, by_bins, by_cuts)
        return out

    def _bins(
        self, cuts: FloatArray, rows: FloatArray
    ) -> tuple[FloatArray, npt.NDArray[np.intp] | None]:
        """Return the shares of rows in the bins of each feature, and how the cuts were sorted."""
        bins = np.empty((len(rows), self.n_bins, rows.shape[1]))
        if self.n_bins == 2:  # the softmax of two logits
            apart = rows - cuts
            apart /= self.temperature
            upper = bins[:, 1]
            expit(apart, out=upper)
            np.subtract(1.0, upper, out=bins[:, 0])
            return bins, None
        order = None
        if (cuts[:, 1:] < cuts[:, :-1]).any():
            order = np.argsort(cuts, axis=1, kind="stable")
            cuts = np.take_along_axis(cuts, order, axis=1)
        starts = np.zeros((len(cuts), self.n_bins, 1))
        np.cumsum(cuts, axis=1, out=starts[:, 1:, 0])
        np.multiply(self._number, rows[:, np.newaxis, :], out=bins)
        bins -= starts
        bins /= self.temperature
        return _softmax(bins, axis=1), order

    def _cuts_back(self, tape: Tape, by_bins: FloatArray, out: FloatArray) -> None:
        bins = tape.bins
        if self.n_bins == 2:
            by_apart = by_bins[:, 0] - by_bins[:, 1]
            by_apart *= bins[:, 0]
            by_apart *= bins[:, 1]
            np.add.reduce(by_apart, axis=1, out=out[:, 0])
            out /= self.temperature
            return
        inner = np.add.reduce(bins * by_bins, axis=1, keepdims=True)
        by_logit = np.add.reduce(bins * (by_bins - inner), axis=2)
        # The cut b_s is taken from the logits of all bins t >= s.
        by_sorted = -np.cumsum(by_logit[:, :0:-1], axis=1)[:, ::-1] / self.temperature
        if tape.order is None:
            out[:] = by_sorted
        else:
            np.put_along_axis(out, tape.order, by_sorted, axis=1)

    def labels(self, rows: FloatArray) -> IntArray:
        """Return the most probable cluster of rows of shape (m, n), the lowest of equal ones."""
        labels: IntArray = self.probabilities(rows).argmax(axis=1)
        return labels

    def probabilities(self, rows: FloatArray) -> FloatArray:
        """Compute the probabilities of any number of rows, in blocks.

        Parameters
        ----------
        rows : ndarray of shape (m, n)
            The rows, a column each.

        Returns
        -------
        ndarray of shape (n, k)
            Every row sums to 1.
        """
        n, k = rows.shape[1], self._n_clusters
        step = max(_MAX_BLOCK // floats_per_row(len(rows), self.n_bins, k), 64)
        out = np.empty((n, k))
        for start in range(0, n, step):
            part = self.forward(rows[:, start : start + step])
            out[start : start + step] = part.probabilities.T
        return out


def hard_cells(
    columns: Iterable[npt.NDArray[Any]], cuts: Iterable[FloatArray], n: int
) -> npt.NDArray[np.int64]:
    """Return the cell of each of n rows, the last feature's bin running fastest.

    A bin is the number of cuts, ascending, below a value.
    """
    cells = np.zeros(n, dtype=np.int64)
    for column, of_feature in zip(columns, cuts, strict=True):
        cells *= len(of_feature) + 1
        cells += np.searchsorted(of_feature, column, side="left")
    return cells


def _softmax(logits: FloatArray, axis: int) -> FloatArray:
    """Compute the softmax in place."""
    logits -= np.maximum.reduce(logits, axis=axis, keepdims=True)
    np.exp(logits, out=logits)
    logits /= np.add.reduce(logits, axis=axis, keepdims=True)
    return logits


def _products(bins: FloatArray) -> list[FloatArray]:
    """Return the products of the first 1, 2, ... features; ones without features."""
    n_features, _, n = bins.shape
    if not n_features:
        return [np.ones((1, n))]
    products = [bins[0]]
    for of_feature in bins[1:]:
        before = products[-1]
        products.append((before[:, np.newaxis, :] * of_feature).reshape(-1, n))
    return products


def _products_back(
    gradient: FloatArray, products: list[FloatArray], bins: FloatArray, out: FloatArray
) -> None:
    """Write the gradient by the bins of each feature, from that by the last product, to `out`."""
    _, n_bins, n = bins.shape
    for feature in range(len(bins) - 1, 0, -1):
        split = gradient.reshape(-1, n_bins, n)
        before = products[feature - 1][:, np.newaxis, :]
        np.add.reduce(before * split, axis=0, out=out[feature])
        gradient = np.add.reduce(split * bins[feature], axis=1)
    if len(bins):
        out[0] = gradient
