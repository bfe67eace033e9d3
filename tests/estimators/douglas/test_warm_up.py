"""Douglas before its Wasserstein objective: the energy distance leads to where that is greater."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

import treeclust_rs as tc
from treeclust_rs.gemini import GEMINIS

SMALL = {"n_init": 1, "max_iter": 20, "random_state": 0}


def crowd(n=120, d=8, seed=0):
    """Two groups that differ a little in every column: most rows have a cell of their own."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    return rng.normal(size=(n, d)) + 1.2 * labels[:, None], labels


def test_it_raises_the_objective_and_finds_the_groups():
    X, labels = crowd()
    cold, warm = (
        [tc.Douglas(2, n_init=1, warm_up=w, random_state=s).fit(X) for s in range(4)]
        for w in (0, 50)
    )
    assert np.mean([m.objective_ for m in warm]) > 1.01 * np.mean([m.objective_ for m in cold])
    agreed = [[adjusted_rand_score(labels, m.labels_) for m in models] for models in (cold, warm)]
    # The groups overlap: knowing both centers gives 0.8.
    assert np.median(agreed[1]) > max(0.6, np.median(agreed[0]))


def test_wine():
    X = StandardScaler().fit_transform(load_wine().data)
    cold, warm = (tc.Douglas(3, n_init=2, warm_up=w, random_state=0).fit(X) for w in (0, 50))
    assert warm.objective_ > cold.objective_


@pytest.mark.parametrize("name", GEMINIS)
def test_only_wasserstein_objectives_warm_up(name):
    X, _ = crowd(40, 3)
    cold, warm = (
        tc.Douglas(2, gemini=name, warm_up=w, **SMALL).fit(X).predict_proba(X) for w in (0, 10)
    )
    assert np.array_equal(cold, warm) == (not name.startswith("wasserstein"))


def test_given_distances_warm_up_too():
    X, _ = crowd(60, 3)
    distances = np.abs(X[:, None] - X).sum(axis=2)
    cold, warm = (
        tc.Douglas(2, warm_up=w, **SMALL).fit(X, affinity=distances).predict_proba(X)
        for w in (0, 10)
    )
    assert not np.array_equal(cold, warm)


def test_it_is_no_part_of_the_curve_and_sees_a_part_of_many_rows():
    X, _ = crowd(12_000, 2)
    model = tc.Douglas(2, n_init=1, warm_up=3, max_iter=1, tol=None, random_state=0).fit(X)
    assert len(model.loss_curve_) == 1
    again = tc.Douglas(2, n_init=1, warm_up=3, max_iter=1, tol=None, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    cold = tc.Douglas(2, n_init=1, warm_up=0, max_iter=1, tol=None, random_state=0).fit(X)
    assert model.loss_curve_[0] > cold.loss_curve_[0]


@pytest.mark.parametrize("value", [-1, 1.5, None])
def test_what_it_may_be(value):
    with pytest.raises(ValueError, match="'warm_up' parameter of Douglas must be an int"):
        tc.Douglas(2, warm_up=value).fit(crowd(10)[0])
