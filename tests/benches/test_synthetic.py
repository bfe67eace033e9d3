"""Synthetic I and II of the papers: how they are drawn, and what the papers say of them."""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np
import pytest

import treeclust_rs as tc
from bench_modules import bench

pytestmark = pytest.mark.filterwarnings(
    "ignore:Only .* of the .* clusters ha:sklearn.exceptions.ConvergenceWarning"
)

NEAR_1 = 1.1
"""A cost ratio that counts as near-optimal on Synthetic I, where the best tree flips columns."""


@pytest.fixture
def synthetic(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return bench("synthetic", monkeypatch)


def test_synthetic_1_is_two_far_rows_and_two_halves_with_flipped_columns(
    synthetic: ModuleType,
) -> None:
    X, labels = synthetic.synthetic_1(n=50, d=30, flips=4, far=9)
    assert X.shape == (50, 30)
    assert np.bincount(labels).tolist() == [2, 24, 24]
    np.testing.assert_array_equal(X[:2], [[9] + [1] * 29, [9] + [0] * 29])
    assert (X[2:, 0] == 0).all()
    assert (X[labels == 1, 1:].sum(axis=1) == 29 - 4).all()
    assert (X[labels == 2, 1:].sum(axis=1) == 4).all()


def test_synthetic_2_sets_one_column_after_the_other_to_0(synthetic: ModuleType) -> None:
    X, labels = synthetic.synthetic_2(k=3, d=20)
    assert X.shape == (60, 20)
    for word in range(3):
        rows = X[labels == word]
        np.testing.assert_array_equal(rows == 0, np.eye(20, dtype=bool))
        # The other 19 rows of a column agree.
        assert set(np.abs(rows.sum(axis=0))) == {19}


def test_cart_is_misled_by_synthetic_1_and_the_others_are_not(synthetic: ModuleType) -> None:
    X, labels = synthetic.synthetic_1()
    leaves = 4 * 3
    assert tc.KMeansTree(max_leaves=leaves, reference=labels).fit(X).cost_ratio_ > 5
    exkmc = tc.ExKMC(max_leaves=leaves, reference=labels).fit(X)
    assert exkmc.cost_ratio_ < NEAR_1
    best = tc.BestTree(max_leaves=leaves, effort="quick", reference=labels, random_state=0).fit(X)
    assert best.cost_ratio_ <= exkmc.cost_ratio_


@pytest.mark.parametrize(("k", "d"), [(5, 250), (10, 500)])
def test_k_log_k_leaves_are_optimal_on_synthetic_2(synthetic: ModuleType, k: int, d: int) -> None:
    """Theorem 4 of the ExKMC paper, O(k log k) leaves, with a constant of 1 and log2."""
    X, labels = synthetic.synthetic_2(k, d)
    leaves = math.floor(k * math.log2(k))
    exkmc = tc.ExKMC(max_leaves=math.inf, reference=labels).fit(X)
    # With k leaves no tree is optimal.
    assert exkmc.cost_path_["inertia"][0] > 2 * exkmc.reference_inertia_
    assert exkmc.cost_ratio_ == pytest.approx(1.0, abs=1e-9)
    assert exkmc.n_leaves_ <= leaves
    best = tc.BestTree(max_leaves=leaves, effort="quick", reference=labels, random_state=0).fit(X)
    assert best.cost_ratio_ == pytest.approx(1.0, abs=1e-9)
