"""Half-moons and circles: kernel k-means sees them, Kernel Expand says where they are."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_circles, make_moons
from threadpoolctl import threadpool_limits

import treeclust_rs as tc
from treeclust_rs.metrics import adjusted_rand_index, agreement

# There are many local optima: of 10 starts often none finds the half-moons.
N_INIT = 50


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with threadpool_limits(1):
        yield


def moons(seed):
    return make_moons(500, noise=0.05, random_state=seed)


def circles(seed):
    return make_circles(300, factor=0.4, noise=0.05, random_state=seed)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("make", "gamma"), [(moons, 6.0), (circles, 4.0)])
def test_kernel_k_means_finds_the_shapes_and_trees_of_k_means_do_not(make, gamma, seed):
    X, truth = make(seed)
    kernel_k_means = tc.KernelKMeans(2, gamma=gamma, n_init=N_INIT, random_state=0).fit(X)
    assert adjusted_rand_index(truth, kernel_k_means.labels_) >= 0.96
    imm = tc.IMM(2, random_state=0).fit(X)
    assert adjusted_rand_index(truth, imm.labels_) < 0.2
    assert agreement(imm.labels_, kernel_k_means.labels_) < 0.7
    # More leaves do not help what follows distances to two means.
    exkmc = tc.ExKMC(2, max_leaves=12, base_tree=None, cuts="interval", random_state=0).fit(X)
    assert adjusted_rand_index(truth, exkmc.labels_) < 0.4


@pytest.mark.parametrize("seed", range(3))
def test_kernel_expand_finds_the_half_moons_with_8_leaves(seed):
    X, truth = moons(seed)
    model = tc.KernelExpand(2, gamma=6.0, max_leaves=8, n_init=N_INIT, random_state=0).fit(X)
    assert model.n_leaves_ == 8
    found = tc.KernelKMeans(2, gamma=6.0, n_init=N_INIT, random_state=0).fit(X)
    assert agreement(model.reference_labels_, found.labels_) == 1.0
    assert agreement(model.labels_, model.reference_labels_) >= 0.97
    assert adjusted_rand_index(truth, model.labels_) >= 0.88
    # 5 leaves are not far from it; 16 are exact up to a few rows.
    assert agreement(model.truncate(5).labels_, model.reference_labels_) >= 0.94
    model.set_params(max_leaves=16).fit(X)
    assert agreement(model.labels_, model.reference_labels_) >= 0.99


@pytest.mark.parametrize("seed", range(3))
def test_kernel_expand_finds_the_circles_with_3_leaves(seed):
    X, truth = circles(seed)
    model = tc.KernelExpand(
        2,
        gamma=4.0,
        max_leaves=3,
        base_tree=None,
        cuts="interval",
        n_init=N_INIT,
        random_state=0,
    ).fit(X)
    # One interval of each column: a box around the inner circle.
    assert model.n_leaves_ == 3
    assert sorted(model.tree_.kind.tolist()) == [0, 0, 0, 2, 2]
    assert sorted(model.tree_.feature[model.tree_.kind == 2].tolist()) == [0, 1]
    assert agreement(model.labels_, model.reference_labels_) >= 0.99
    assert adjusted_rand_index(truth, model.labels_) >= 0.97
    # Thresholds, one side at a time, take two leaves more.
    model.set_params(cuts="threshold", max_leaves=5).fit(X)
    assert agreement(model.labels_, model.reference_labels_) >= 0.99
    assert agreement(model.truncate(4).labels_, model.reference_labels_) < 0.95


def test_kernel_expand_explains_labels_that_no_k_means_finds():
    X, truth = moons(0)
    noise = np.zeros(len(X), dtype=bool)
    noise[::25] = True
    labels = np.where(noise, -1, truth)
    model = tc.KernelExpand(reference=labels, max_leaves=16, base_tree=None, cuts="interval")
    model.fit(X)
    assert agreement(model.labels_[~noise], truth[~noise]) >= 0.98
    # Noise has no say, and lands with its neighbours.
    assert agreement(model.labels_[noise], truth[noise]) >= 0.9
