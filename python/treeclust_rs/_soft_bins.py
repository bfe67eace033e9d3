"""The model of Douglas: soft bins of every feature, their products, and what cells vote for.

Each feature is cut into T + 1 bins, and a row belongs to every bin a little (Ohl et al.,
*End-to-end training of unsupervised trees: Kauri and Douglas*, equation 9; after Yang et al., *Deep
neural decision trees*):

    P(bin t | x) = softmax_t((t x - b_1 - ... - b_t) / temperature),    b_1 <= ... <= b_T.

A cell is one bin of every feature; a row belongs to it by the product of its bins. There are
L = (T + 1)^m cells of m features, each with a weight per cluster, and

    p(y = c | x) = softmax_c(sum over the cells l of W[l, c] prod_f P(bin l_f | x_f))

(equation 10, which leaves the softmax out).

The n x L table of the products is never made. The features are split into two halves with L_1 and
L_2 = L / L_1 combinations of bins; the weights are contracted with the products of one half, which
gives n x L_2 x k numbers, and those with the products of the other. With L_1 about the root of L
that is the root of L in place of L. The work is one matrix product of 2 n L k operations, and two
more for the gradient.

Arrays inside have the rows last, so that every operation runs along them.

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

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["SoftBins", "Tape"]

FloatArray = npt.NDArray[np.float64]

# Numbers held at once while the probabilities of many rows are computed.
_BLOCK = 1 << 21


@dataclass(frozen=True)
class Tape:
    """What a forward pass leaves for the backward pass."""

    order: npt.NDArray[np.intp]
    """How the cuts were sorted, of shape (m, T)."""
    bins: FloatArray
    """(m, T + 1, n)."""
    left: list[FloatArray]
    """Products of the first 0, 1, ... features of the first half: (1, n), (T + 1, n), ..."""
    right: list[FloatArray]
    """Of the second half."""
    contracted: FloatArray
    """The weights contracted with the products of the first half, of shape (L_2, k, n)."""
    probabilities: FloatArray
    """(k, n)."""


@dataclass(eq=False)
class SoftBins:
    """Cuts and weights; both are changed in place by an optimiser.

    Parameters
    ----------
    cuts : ndarray of shape (m, T)
        Cuts of every feature, in its units. Their order does not matter.
    weights : ndarray of shape (L, k), C-ordered
        What each cell adds to the logit of each cluster.
    temperature : float
        Softness of the bins, in the units of the features: a row this far beyond a single cut
        belongs to the near bin by 0.73.
    """

    cuts: FloatArray
    weights: FloatArray
    temperature: float

    @property
    def n_bins(self) -> int:
        """Bins of each feature."""
        return int(self.cuts.shape[1]) + 1

    @property
    def n_left(self) -> int:
        """Features of the first half."""
        return (len(self.cuts) + 1) // 2

    def bins(self, rows: FloatArray) -> tuple[FloatArray, npt.NDArray[np.intp]]:
        """Give how far rows belong to the bins of each feature, and how the cuts were sorted.

        Parameters
        ----------
        rows : ndarray of shape (m, n)
            The rows, a column each.

        Returns
        -------
        (ndarray of shape (m, T + 1, n), ndarray of shape (m, T))
            Of every feature and row the sum is 1.
        """
        order = np.argsort(self.cuts, axis=1, kind="stable")
        starts = np.zeros((len(self.cuts), self.n_bins, 1))
        np.cumsum(np.take_along_axis(self.cuts, order, axis=1), axis=1, out=starts[:, 1:, 0])
        number = np.arange(self.n_bins, dtype=np.float64)[:, np.newaxis]
        logits = number * rows[:, np.newaxis, :]
        logits -= starts
        logits /= self.temperature
        return _softmax(logits, axis=1), order

    def forward(self, rows: FloatArray) -> Tape:
        """Compute the probabilities of rows, keeping what `backward` needs.

        Parameters
        ----------
        rows : ndarray of shape (m, n)
            The rows, a column each.
        """
        bins, order = self.bins(rows)
        left = _products(bins[: self.n_left])
        right = _products(bins[self.n_left :])
        n_first, n = left[-1].shape
        flat = self.weights.reshape(n_first, -1)
        contracted = (flat.T @ left[-1]).reshape(len(right[-1]), -1, n)
        logits = (right[-1][:, np.newaxis, :] * contracted).sum(axis=0)
        return Tape(order, bins, left, right, contracted, _softmax(logits, axis=0))

    def backward(self, tape: Tape, gradient: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Carry a gradient by the probabilities back to the cuts and the weights.

        Parameters
        ----------
        tape : Tape
            Of the forward pass.
        gradient : ndarray of shape (k, n)
            Derivative of a function by the probabilities.

        Returns
        -------
        (ndarray of shape (m, T), ndarray of shape (L, k))
            Its derivatives by the cuts and by the weights.
        """
        p = tape.probabilities
        by_logit = p * (gradient - (p * gradient).sum(axis=0))
        right, left = tape.right[-1], tape.left[-1]
        by_contracted = (right[:, np.newaxis, :] * by_logit).reshape(-1, p.shape[1])
        by_right = (tape.contracted * by_logit).sum(axis=1)
        flat = self.weights.reshape(len(left), -1)
        by_weights = (left @ by_contracted.T).reshape(self.weights.shape)
        by_bins = np.empty_like(tape.bins)
        _products_back(
            flat @ by_contracted, tape.left, tape.bins[: self.n_left], by_bins[: self.n_left]
        )
        _products_back(by_right, tape.right, tape.bins[self.n_left :], by_bins[self.n_left :])
        return self._cuts_back(tape, by_bins), by_weights

    def _cuts_back(self, tape: Tape, by_bins: FloatArray) -> FloatArray:
        bins = tape.bins
        inner = (bins * by_bins).sum(axis=1, keepdims=True)
        by_logit = (bins * (by_bins - inner)).sum(axis=2)
        # The cut b_s is taken from the logits of all bins t >= s.
        by_sorted = -np.cumsum(by_logit[:, :0:-1], axis=1)[:, ::-1] / self.temperature
        by_cuts = np.empty_like(self.cuts)
        np.put_along_axis(by_cuts, tape.order, by_sorted, axis=1)
        return by_cuts

    def probabilities(self, rows: FloatArray) -> FloatArray:
        """Compute the probabilities of any number of rows, in blocks.

        Parameters
        ----------
        rows : ndarray of shape (m, n)
            The rows, a column each.

        Returns
        -------
        ndarray of shape (n, k)
            Of every row the sum is 1.
        """
        n, k = rows.shape[1], self.weights.shape[1]
        n_first = self.n_bins**self.n_left
        held = n_first + len(self.weights) // n_first * (k + 1) + self.n_bins * len(self.cuts)
        step = max(_BLOCK // held, 64)
        found = np.empty((n, k))
        for start in range(0, n, step):
            found[start : start + step] = self.forward(
                rows[:, start : start + step]
            ).probabilities.T
        return found


def _softmax(logits: FloatArray, axis: int) -> FloatArray:
    """Softmax in place."""
    logits -= logits.max(axis=axis, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=axis, keepdims=True)
    return logits


def _products(bins: FloatArray) -> list[FloatArray]:
    """Give the products of the first 0, 1, ... features: of shape (1, n), (T + 1, n), ..."""
    _, n_bins, n = bins.shape
    products = [np.ones((1, n))]
    for of_feature in bins:
        before = products[-1]
        products.append((before[:, np.newaxis, :] * of_feature).reshape(len(before) * n_bins, n))
    return products


def _products_back(
    gradient: FloatArray, products: list[FloatArray], bins: FloatArray, out: FloatArray
) -> None:
    """Carry the gradient by the last product back to the bins of each feature, into `out`."""
    _, n_bins, n = bins.shape
    for feature in range(len(bins) - 1, -1, -1):
        split = gradient.reshape(-1, n_bins, n)
        np.sum(products[feature][:, np.newaxis, :] * split, axis=0, out=out[feature])
        gradient = (split * bins[feature]).sum(axis=1)
