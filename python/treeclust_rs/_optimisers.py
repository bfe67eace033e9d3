"""Gradient ascent: Adam and plain steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["SGD", "Adam", "Optimiser", "make_optimiser"]

FloatArray = npt.NDArray[np.float64]


class Optimiser(Protocol):
    """Moves parameters along a gradient, upwards."""

    def step(self, parameters: Sequence[FloatArray], gradients: Sequence[FloatArray]) -> None:
        """Change the parameters in place; the gradients are overwritten."""


class SGD:
    """Plain steps: ``parameter += learning_rate * gradient``.

    Parameters
    ----------
    learning_rate : float
        The length of a step by a gradient of length 1.
    """

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def step(self, parameters: Sequence[FloatArray], gradients: Sequence[FloatArray]) -> None:
        """Change the parameters in place; the gradients are overwritten."""
        for parameter, gradient in zip(parameters, gradients, strict=True):
            gradient *= self.learning_rate
            parameter += gradient


class Adam:
    """Adam (Kingma and Ba, *Adam: a method for stochastic optimization*, 2015, algorithm 1).

    Running means m of the gradient g and v of its square, corrected for their start at 0:
    ``m = b1 m + (1 - b1) g``, ``v = b2 v + (1 - b2) g^2``,
    ``parameter += learning_rate * m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon)``.

    Parameters
    ----------
    learning_rate : float
        About the largest change of a parameter in one step.
    beta1, beta2 : float
        How much of the means is kept in a step.
    epsilon : float
        Gradients smaller than this move little.
    """

    def __init__(
        self,
        learning_rate: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
    ) -> None:
        self.learning_rate = learning_rate
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.n_steps = 0
        self._means: list[tuple[FloatArray, FloatArray]] = []

    def step(self, parameters: Sequence[FloatArray], gradients: Sequence[FloatArray]) -> None:
        """Change the parameters in place; the gradients are overwritten."""
        if not self._means:
            self._means = [(np.zeros_like(p), np.zeros_like(p)) for p in parameters]
        self.n_steps += 1
        rate = self.learning_rate / (1.0 - self.beta1**self.n_steps)
        root = np.sqrt(1.0 - self.beta2**self.n_steps)
        # With both corrections taken out of the arrays a step is
        # rate * m / (sqrt(v) / root + epsilon).
        for parameter, gradient, (mean, square) in zip(
            parameters, gradients, self._means, strict=True
        ):
            mean *= self.beta1
            mean += (1.0 - self.beta1) * gradient
            square *= self.beta2
            gradient *= gradient
            gradient *= 1.0 - self.beta2
            square += gradient
            np.sqrt(square, out=gradient)
            gradient /= root
            gradient += self.epsilon
            np.divide(mean, gradient, out=gradient)
            gradient *= rate
            parameter += gradient


def make_optimiser(solver: str, learning_rate: float) -> Optimiser:
    """Give a new optimiser: "adam" or "sgd"."""
    return Adam(learning_rate) if solver == "adam" else SGD(learning_rate)
