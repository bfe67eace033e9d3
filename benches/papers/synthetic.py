"""Synthetic I and II of the papers of IMM and ExKMC, as `exkmc.py` and the tests draw them.

Frost, Moshkovitz, Rashtchian, "ExKMC: Expanding Explainable k-Means Clustering": appendix B.2
(Synthetic I, which misleads CART) and section 3.4 (Synthetic II, which no tree of k leaves explains
at less than log k times the cost, up to a constant).
"""

from __future__ import annotations

import numpy as np

Arrays = tuple[np.ndarray, np.ndarray]


def synthetic_1(
    n: int = 5_000, d: int = 1_000, flips: int = 100, far: int = 1_000, seed: int = 0
) -> Arrays:
    """Draw Synthetic I: two rows that are far away in one column, and two halves.

    The two have `far` in the first column and 1 or 0 in all others; the rest has 0 there. Half of
    it has 1 in the other columns but for `flips` of them, drawn row by row; the other half has 0
    but for as many.

    Returns
    -------
    X : ndarray of shape (n, d), int16
    labels : ndarray of shape (n,)
        0: the two rows; 1 and 2: the halves.
    """
    rng = np.random.default_rng(seed)
    labels = np.full(n, 2)
    labels[:2], labels[2 : 2 + (n - 2) // 2] = 0, 1
    X = np.zeros((n, d), dtype=np.int16)
    X[0, 1:] = 1
    X[labels == 1, 1:] = 1
    for row in range(2, n):
        columns = 1 + rng.choice(d - 1, flips, replace=False)
        X[row, columns] = 1 - X[row, columns]
    X[:2, 0] = far
    return X, labels


def synthetic_2(k: int = 30, d: int = 1_000, seed: int = 0) -> Arrays:
    """Draw Synthetic II: k random rows of -1 and 1, each with one column after the other set to 0.

    Returns
    -------
    X : ndarray of shape (k d, d), int8
    labels : ndarray of shape (k d,)
        The word that a row comes from.
    """
    words = np.random.default_rng(seed).choice(np.array([-1, 1], dtype=np.int8), size=(k, d))
    X = np.repeat(words, d, axis=0)
    X[np.arange(k * d), np.tile(np.arange(d), k)] = 0
    return X, np.repeat(np.arange(k), d)
