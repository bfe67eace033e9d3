"""Rows, centers and models for the fits on Dask, Ray and Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import treeclust_rs as tc

NAMES = ["a", "b", "c", "d"]


def example(n: int = 4000, d: int = 4, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and centers."""
    rng = np.random.default_rng(1)
    centers = 2.0 * rng.normal(size=(k, d))
    X = centers[rng.integers(k, size=n)] + rng.normal(size=(n, d))
    return X, centers


def model_of(centers: np.ndarray) -> Any:
    return tc.ExKMC(reference=centers, base_tree=None, max_leaves=15)


def mixed_frame() -> pd.DataFrame:
    """Return rows with a column of text, and missing cells in this and in a column of numbers."""
    X, _ = example(600)
    rng = np.random.default_rng(2)
    plan = np.array(["basic", "free", "plus"], dtype=object)[rng.integers(3, size=len(X))]
    plan[rng.random(len(X)) < 0.1] = None
    X[rng.random(len(X)) < 0.1, 0] = np.nan
    return pd.DataFrame(X, columns=NAMES).assign(plan=plan)


def mixed_model() -> Any:
    return tc.ExKMC(4, max_leaves=8, scale="standard", random_state=0)


def labels_of(X: np.ndarray) -> np.ndarray:
    """Return labels near to clusters, some of them noise."""
    labels = (X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 1)
    labels[::50] = -1
    return labels


def same(found: Any, expected: Any) -> None:
    """Assert that two models are the same, to the bit."""
    assert found.to_json() == expected.to_json()
    assert found.cost_path_.equals(expected.cost_path_)
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
