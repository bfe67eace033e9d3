"""Gradient ascent: Adam and plain steps."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from ..._util.arrays import FloatArray


class Optimiser(Protocol):
    """Optimiser that moves parameters along a gradient, upwards."""

    def step(self, parameters: FloatArray, gradient: FloatArray) -> None:
        """Change the parameters in place; the gradient is overwritten."""


class SGD:
    """Plain steps: ``parameters += learning_rate * gradient``.

    Parameters
    ----------
    learning_rate : float
        The length of a step by a gradient of length 1.
    """

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def step(self, parameters: FloatArray, gradient: FloatArray) -> None:
        """Change the parameters in place; the gradient is overwritten."""
        gradient *= self.learning_rate
        parameters += gradient


class Adam:
    """Adam (Kingma and Ba, *Adam: a method for stochastic optimization*, 2015, algorithm 1).

    Running means m of the gradient g and v of its square, corrected for their start at 0:
    ``m = b1 m + (1 - b1) g``, ``v = b2 v + (1 - b2) g^2``,
    ``parameters += learning_rate * m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon)``.

    Parameters
    ----------
    learning_rate : float
        About the largest change of a parameter in one step.
    beta1, beta2 : float
        Weights of the old means in a step.
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
        self._mean = self._square = np.zeros(0)

    def step(self, parameters: FloatArray, gradient: FloatArray) -> None:
        """Change the parameters in place; the gradient is overwritten."""
        if not self.n_steps:
            self._mean, self._square = np.zeros_like(parameters), np.zeros_like(parameters)
        self.n_steps += 1
        # With both corrections taken out of the arrays a step is
        # rate * m / (sqrt(v) + root * epsilon).
        root = math.sqrt(1.0 - self.beta2**self.n_steps)
        rate = self.learning_rate * root / (1.0 - self.beta1**self.n_steps)
        mean, square = self._mean, self._square
        mean *= self.beta1
        mean += (1.0 - self.beta1) * gradient
        square *= self.beta2
        gradient *= gradient
        gradient *= 1.0 - self.beta2
        square += gradient
        np.sqrt(square, out=gradient)
        gradient += root * self.epsilon
        np.divide(mean, gradient, out=gradient)
        gradient *= rate
        parameters += gradient
