"""The kernel oracles: against cases worked out by hand, and against the paper's statements."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import additive_chi2_kernel, laplacian_kernel, rbf_kernel

from oracles import kernel as ok
from oracles import threshold as oracle
from oracles.kauri import Stocks, mask_of
from oracles.threshold import INTERVAL, LEAF, THRESHOLD
from sizes import repeats


def column(*values):
    return np.array(values, dtype=float)[:, None]


def partition(tree):
    """The sets of rows of the leaves."""
    return sorted(tree.rows[leaf].tolist() for leaf in tree.leaves)


# --------------------------------------------------------------------------------------------------
# Kernels and costs
# --------------------------------------------------------------------------------------------------


def test_kernels_by_hand():
    x, y = [1.0, 4.0], [3.0, 1.0]
    assert ok.kernel("linear", x, y) == 7
    assert ok.kernel("polynomial", x, y) == 49
    assert ok.kernel("polynomial", x, y, gamma=0.5, coef0=1.0, degree=3) == 4.5**3
    assert ok.kernel("rbf", x, y, gamma=0.25) == math.exp(-13 / 4)
    assert ok.kernel("laplacian", x, y, gamma=0.5) == math.exp(-5 / 2)
    assert ok.kernel("hellinger", x, y) == pytest.approx(math.sqrt(3) + 2, rel=1e-15)
    assert ok.kernel("histogram_intersection", x, y) == 2
    assert ok.kernel("histogram_intersection", x, [4.0, 9.0], beta=0.5) == 3
    assert ok.kernel("additive_chi2", x, y) == pytest.approx(6 / 4 + 8 / 5, rel=1e-15)
    assert ok.kernel("additive_chi2", [0.0], [0.0]) == 0
    assert ok.kernel("epsilon", [0.0, 0.0], [3.0, 4.0], epsilon=5.0) == 1
    assert ok.kernel("epsilon", [0.0, 0.0], [3.0, 4.0], epsilon=4.999) == 0
    assert ok.kernel("epsilon", [0.1], [0.4], epsilon=0.3) == 1  # 0.4 - 0.1 rounds above 0.3
    assert ok.kappa("rbf", 1e8, 1e8 + 1, gamma=2.0) == math.exp(-2)
    assert ok.kappa("rbf", 0.0, 1e10, gamma=1e10) == 0
    assert ok.kappa("hellinger", 0.0, 3.0) == 0


def test_kernels_equal_those_of_scikit_learn():
    X = np.random.default_rng(0).uniform(0, 2, (9, 3))
    assert_allclose(ok.gram(X, "rbf", gamma=0.7), rbf_kernel(X, gamma=0.7), rtol=1e-13)
    assert_allclose(ok.gram(X, "laplacian", gamma=0.7), laplacian_kernel(X, gamma=0.7), rtol=1e-13)
    # scikit-learn's is twice ours less the sums of both rows
    ours = 2 * ok.gram(X, "additive_chi2") - X.sum(axis=1)[:, None] - X.sum(axis=1)
    assert_allclose(ours, additive_chi2_kernel(X), rtol=1e-12, atol=1e-14)


def test_distances_by_hand():
    # the linear kernel: squared distances to means
    X, labels = column(0, 2, 6), np.array([0, 0, 1])
    K = ok.gram(X, "linear")
    assert_array_equal(ok.distances(K, labels), [[1, 36], [1, 16], [25, 0]])
    w = np.array([3.0, 1.0, 2.0])  # the mean of the first two is 1/2
    assert_array_equal(ok.distances(K, labels, w), [[0.25, 36], [2.25, 16], [30.25, 0]])
    assert ok.kernel_cost(K, labels, w) == 3.0
    # a row of noise has distances, but belongs to no mean and has no cost
    assert_array_equal(ok.distances(K, [0, -1, 1]), [[0, 36], [4, 16], [36, 0]])
    assert ok.kernel_cost(K, [0, -1, 1]) == 0
    assert ok.kernel_cost(K, [0, -1, 0]) == 18
    # so has a row of weight 0, and a cluster of such rows has no mean
    far = ok.distances(K, labels, [1.0, 1.0, 0.0])
    assert_array_equal(far, [[1, math.inf], [1, math.inf], [25, math.inf]])


def test_cost_by_hand():
    K = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 1.0]])
    # 1 - 1/2 for each pair of rows together: n - sum / |C|
    assert ok.kernel_cost(K, [0, 0, 1]) == 2 - 3 / 2
    assert ok.kernel_cost(K, [0, 0, 0]) == pytest.approx(3 - 4.5 / 3)
    assert ok.kernel_cost(K, [0, 1, 2]) == 0
    assert ok.price(K, [0, 1, 1], [0, 0, 1]) == 0.75 / 0.5
    assert ok.price(K, [0, 1, 2], [0, 1, 2]) == 1  # 0/0
    assert ok.price(K, [0, 0, 1], [0, 1, 2]) == math.inf
    # the third row is noise: its label in the tree does not count
    assert ok.price(K, [0, 1, 1], [0, 0, -1]) == 0
    # a cost of a rounding error is none: 1e-13 of the trace
    almost = np.array([[1.0, 1.0 - 1e-13], [1.0 - 1e-13, 1.0]])
    assert ok.kernel_cost(almost, [0, 0]) == 0
    assert ok.kernel_cost(np.array([[1.0, 1.0 - 1e-11], [1.0 - 1e-11, 1.0]]), [0, 0]) > 0


def test_costs_equal_stocks():
    """Equation (2) is ``sum_i k_ii - sum_l S(C_l, C_l) / |C_l|``, weights included."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        n = int(rng.integers(1, 9))
        X = rng.normal(size=(n, 2))
        labels, w = rng.integers(0, 3, n), rng.uniform(0.5, 2, n)
        K = ok.gram(X, "rbf", gamma=0.5)
        stocks = Stocks(gram=K, w=w)
        expected = sum(stocks.cost(mask_of(np.flatnonzero(labels == c))) for c in range(3))
        assert ok.exact_cost(K, labels, w) == expected or float(expected) < 1e-11
        D = ok.distances(K, labels, w)
        own = math.fsum(w * D[np.arange(n), labels])
        assert own == pytest.approx(float(expected), rel=1e-12, abs=1e-14)


def test_linear_kernel_cost_is_the_k_means_cost():
    rng = np.random.default_rng(2)
    X, labels, w = rng.normal(size=(12, 3)), rng.integers(0, 3, 12), rng.uniform(0.5, 2, 12)
    K = ok.gram(X, "linear")
    assert ok.kernel_cost(K, labels, w) == pytest.approx(oracle.kmeans_cost(X, labels, w))


# --------------------------------------------------------------------------------------------------
# Surrogate features
# --------------------------------------------------------------------------------------------------


def test_features_by_hand():
    root2 = math.sqrt(2)
    # gamma = 1/2: z^j e^(-z^2 / 2) / sqrt(j!)
    found = ok.taylor_features([0.0, 1.0, 2.0], 0.5, 2)
    e1, e2 = math.exp(-0.5), math.exp(-2.0)
    assert_allclose(found, [[1, 0, 0], [e1, e1, e1 / root2], [e2, 2 * e2, 4 * e2 / root2]], 1e-15)
    # gamma = 2: sqrt(4^j / j!) = 1, 2, sqrt(8)
    assert_allclose(ok.taylor_features([1.0], 2.0, 2), [[e2, 2 * e2, math.sqrt(8) * e2]], 1e-15)
    assert_allclose(ok.distance_features([0.0, 3.0], [1.0, 3.0], "laplacian", 0.5),
                    [[e1, math.exp(-1.5)], [math.exp(-1), 1]], 1e-15)  # fmt: skip
    assert_allclose(ok.distance_features([0.0, 3.0], [2.0], "rbf", 0.5), [[e2], [e1]], 1e-15)
    assert_array_equal(ok.hellinger_features([0.0, 2.25]), [[0], [1.5]])
    data = [5.0, 1.0, 1.0, 14.0]
    steps = ok.intersection_features([0.5, 1.0, 4.9, 5.0, 20.0], data)
    assert_array_equal(steps, [[1, 0, 0], [1, 0, 0], [1, 0, 0], [1, 2, 0], [1, 2, 3]])
    assert_array_equal(ok.intersection_features([9.0], [4.0, 9.0], 0.5), [[root2, 1]])
    assert_allclose(ok.chi2_features([0.0, 1.0, 2.0], 2),
                    [[0, 0], [root2 / 2, 1], [root2 / 2, 2]], 1e-15)  # fmt: skip


def test_features_of_awkward_numbers():
    # far beyond the peak: e^(-gamma z^2) alone would underflow, or z^j overflow
    assert ok.taylor_features([30.0], 0.8, 0)[0, 0] == pytest.approx(math.exp(-720), rel=1e-12)
    assert ok.taylor_features([1e3], 1.0, 5).tolist() == [[0.0] * 6]
    z = np.array([1e-200])
    assert ok.taylor_features(z, 1.0, 2)[0].tolist() == [1.0, math.sqrt(2) * 1e-200, 0.0]
    assert ok.distance_features([0.0], [1e300], "rbf", 1e300)[0, 0] == 0
    assert ok.chi2_features([1e6], 3)[0, :2].tolist() == [0.0, 0.0]
    assert ok.chi2_features([1e6], 3)[0, 2] == pytest.approx(math.sqrt(2 / 3) * 1e6)


def test_taylor_features_approach_the_gaussian():
    """Theorem 4's proof: the error is at most the remainder of e^u, and vanishes with the order."""
    rng = np.random.default_rng(3)
    for gamma in (0.05, 0.5, 3.0):
        x = rng.normal(size=12) + 40
        z = x - ok.taylor_shift(x)
        assert z.min() > 0
        exact = np.array([[ok.kappa("rbf", a, b, gamma=gamma) for b in x] for a in x])
        phi = ok.taylor_features(z, gamma, 120)
        before = np.full_like(exact, math.inf)
        for order in (0, 1, 2, 5, 10, 20, 40, 80, 120):
            error = np.abs(exact - phi[:, : order + 1] @ phi[:, : order + 1].T)
            u = 2 * gamma * np.outer(z, z)
            log_rest = (order + 1) * np.log(u) - math.lgamma(order + 2)
            decay = -gamma * (z[:, None] ** 2 + z**2)
            assert (error <= np.exp(log_rest + decay + u) + 1e-14).all()
            assert (error <= before + 1e-15).all()
            before = error
        assert before.max() < 1e-13


def test_the_paper_s_g_without_gamma_misses_the_kernel():
    """e^(2u), as printed, instead of e^(2 gamma u) gives another kernel."""
    z, gamma = np.array([0.3, 1.1, 1.6]), 0.4
    exact = ok.kappa("rbf", z[1], z[2], gamma=gamma)
    decay, u = math.exp(-gamma * (z[1] ** 2 + z[2] ** 2)), z[1] * z[2]
    phi = ok.taylor_features(z, gamma, 60)
    assert phi[1] @ phi[2] == pytest.approx(exact, rel=1e-13)
    assert decay * math.exp(2 * u) > 2 * exact


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0, 1.7])
def test_steps_reproduce_histogram_intersection(beta):
    rng = np.random.default_rng(4)
    x = np.concatenate([np.round(rng.uniform(0, 3, 12), 1), [0.0, 0.0, 3.0]])
    phi = ok.intersection_features(x, x, beta)
    exact = [[ok.kappa("histogram_intersection", a, b, beta=beta) for b in x] for a in x]
    assert_allclose(phi @ phi.T, exact, rtol=1e-14, atol=1e-300)
    for f in phi.T:  # steps: at most two values, rising
        assert len(np.unique(f)) <= 2
        assert (np.diff(f[np.argsort(x, kind="stable")]) >= 0).all()


def test_steps_are_exact_where_roots_are():
    x = np.array([1.0, 5.0, 14.0, 30.0, 55.0, 5.0])  # sums of squares
    phi = ok.intersection_features(x, x)
    assert_array_equal(phi @ phi.T, np.minimum.outer(x, x))


def chi2_error(x, y, order):
    phi = ok.chi2_features([x, y], order)
    return math.fsum(phi[0] * phi[1]) - ok.kappa("additive_chi2", x, y)


# Riemann's zeta function at 1 - s.
ZETA = {0.5: -1.4603545088095868, 1.5: -0.2078862249773546, 2.5: -0.025485201889833}


@pytest.mark.parametrize("total", ZETA)
def test_chi2_features_converge(total):
    """Euler and Maclaurin: error = 2 x y (1 / (2 M) + zeta(1 - s) / M^s + O(M^-2)), s = x + y.

    So the error falls like M^-s where s < 1, but like 1 / M, not M^-s, where s > 1.
    """
    x, y = 0.375 * total, 0.625 * total
    for order in (50, 200, 800):
        expected = 2 * x * y * (0.5 / order + ZETA[total] * order**-total)
        assert chi2_error(x, y, order) == pytest.approx(expected, abs=x * y / order**2)
    ratio = chi2_error(x, y, 200) / chi2_error(x, y, 800)
    assert ratio == pytest.approx(4 ** min(total, 1), rel=0.06)


def test_chi2_features_are_exact_where_the_arguments_add_to_1():
    for order in (1, 2, 5, 40):
        assert abs(chi2_error(0.25, 0.75, order)) < 1e-15
    assert chi2_error(0.0, 0.7, 7) == 0


# ---- one peak ----------------------------------------------------------------------------


def test_unimodal_by_hand():
    assert ok.unimodal([1, 3, 2, 5, 4, 4, 1, 2]).tolist() == [1, 3, 3, 5, 4, 4, 2, 2]
    assert ok.unimodal([5, 1, 5]).tolist() == [5, 5, 5]
    assert ok.unimodal([1]).tolist() == [1]
    assert ok.is_unimodal([0, 0, 1, 1, 0]) and ok.is_unimodal([3, 2, 1]) and ok.is_unimodal([7, 7])
    assert not ok.is_unimodal([1, 0, 1])
    values = np.array([2.0, 0.0, 1.0, 0.0])
    phi = np.array([[2.0, 1.0], [3.0, 0.0], [1.0, 4.0], [3.0, 0.0]])
    assert ok.unimodal_features(values, phi).tolist() == [[2, 1], [3, 0], [2, 4], [3, 0]]


def test_unimodal_is_the_smallest_unimodal_bound():
    rng = np.random.default_rng(5)
    for _ in range(200):
        phi = rng.integers(0, 5, int(rng.integers(1, 8))).astype(float)
        found = ok.unimodal(phi)
        assert ok.is_unimodal(found) and (found >= phi).all() and found.max() == phi.max()
        # every level set is a run, and contains that of phi
        for theta in np.unique(phi):
            places = np.flatnonzero(found > theta)
            assert len(places) == 0 or len(places) == places[-1] - places[0] + 1
            above = np.flatnonzero(phi > theta)
            if len(above):
                assert (places[0], places[-1]) == (above[0], above[-1])


GRID = np.linspace(0.001, 12.0, 1500)


def peaks(grid, phi):
    """Where each feature is largest; asserts that it rises strictly before and falls after."""
    found = []
    for f in phi.T:
        peak = int(np.argmax(f))
        large = f > 1e-300  # below, neighbours round to the same number
        assert (np.diff(f[: peak + 1]) > 0).all()
        assert (np.diff(f[peak:])[large[peak:][1:]] < 0).all()
        assert ok.is_unimodal(f)
        found.append(grid[peak])
    return np.array(found)


@pytest.mark.parametrize("gamma", [0.03, 0.5, 4.0])
def test_taylor_features_have_one_peak(gamma):
    """Theorem 3: j = 0 falls, j >= 1 peaks at sqrt(j / (2 gamma))."""
    found = peaks(GRID, ok.taylor_features(GRID, gamma, 5))
    expected = np.sqrt(np.arange(6) / (2 * gamma))
    step = GRID[1] - GRID[0]
    assert_allclose(found, np.clip(expected, GRID[0], GRID[-1]), atol=step)
    if gamma > 0.5:  # the right tail has underflowed, the level sets are runs all the same
        assert ok.taylor_features(GRID * 10, gamma, 5)[-1].max() == 0


@pytest.mark.parametrize("order", [1, 2, 5])
def test_chi2_features_have_one_peak(order):
    found = peaks(GRID, ok.chi2_features(GRID, order))
    assert found[-1] == GRID[-1]  # j = M rises without end
    expected = [1 / math.log(order / j) for j in range(1, order)]
    assert_allclose(found[:-1], np.clip(expected, None, GRID[-1]), atol=GRID[1] - GRID[0])


@pytest.mark.parametrize("name", ok.PRODUCT_KERNELS)
def test_distance_features_peak_at_their_anchor(name):
    grid = np.linspace(-4, 4, 801)
    anchors = grid[[0, 300, 555, 800]]
    assert_array_equal(peaks(grid, ok.distance_features(grid, anchors, name, 0.8)), anchors)


def test_roots_and_steps_rise():
    assert (np.diff(ok.hellinger_features(GRID)[:, 0]) > 0).all()
    steps = ok.intersection_features(GRID, GRID[::300], 0.5)
    assert (np.diff(steps, axis=0) >= 0).all()


# --------------------------------------------------------------------------------------------------
# Decoupled columns, prices
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ok.PRODUCT_KERNELS)
def test_lemma_3(name):
    """cost <= sum_i cost_i <= d cost, for any partition."""
    rng = np.random.default_rng(6)
    strict = 0
    for _ in range(40):
        n, d = int(rng.integers(2, 10)), int(rng.integers(1, 5))
        X = np.round(rng.normal(size=(n, d)), 1)
        labels, gamma = rng.integers(0, 3, n), float(2.0 ** rng.integers(-4, 4))
        cost = ok.exact_cost(ok.gram(X, name, gamma=gamma), labels)
        each = [ok.exact_cost(ok.gram(X[:, [f]], name, gamma=gamma), labels) for f in range(d)]
        slack = Fraction(1, 10**11) * n
        assert cost <= sum(each) + slack
        assert sum(each) <= d * cost + slack
        strict += cost + slack < sum(each) < d * cost - slack
    assert strict > 10


def test_best_partition():
    assert [labels.tolist() for labels in ok.partitions(3, 2)] == [
        [0, 0, 0],
        [0, 0, 1],
        [0, 1, 0],
        [0, 1, 1],
    ]
    assert sum(1 for _ in ok.partitions(6, 6)) == 203  # Bell's number
    X = column(0, 1, 10, 11, 30)
    labels, cost = ok.best_partition(ok.gram(X, "linear"), 3)
    assert labels.tolist() == [0, 0, 1, 1, 2] and cost == 1


def test_no_tree_beats_the_optimal_reference():
    rng = np.random.default_rng(7)
    above = 0
    for number in range(40):
        n, k = int(rng.integers(4, 7)), int(rng.integers(2, 4))
        X = np.round(rng.normal(size=(n, 2)), 1)
        name = ok.PRODUCT_KERNELS[number % 2]
        gamma = float(rng.choice([0.2, 1.0, 5.0]))
        K = ok.gram(X, name, gamma=gamma)
        labels, _ = ok.best_partition(K, k)
        case = ok.Case(X, labels, np.ones(n), name, "distance", gamma, 1.0, 3, 0.0)
        Phi, of = ok.surrogate_features(case)
        trees = [ok.grow(X, ok.distances(K, labels), labels, max_leaves=k, cuts="interval")]
        trees.append(ok.grow(X, ok.mismatches(labels), labels, max_leaves=k, cuts="threshold"))
        if ok.separable(Phi, labels):
            trees.append(ok.kernel_imm(X, Phi, of, labels))
        for tree in trees:
            # the clusters of a tree are its labels, and its leaves are clusters at least as good
            value = ok.price(K, tree.predict(X), labels)
            leaves = np.searchsorted(tree.leaves, tree.apply(X))
            assert value >= 1 - 1e-11 or value == 0
            assert ok.exact_cost(K, leaves) <= ok.exact_cost(K, tree.predict(X)) + Fraction(1e-11)
            above += value > 1 + 1e-9
    assert above > 3


# --------------------------------------------------------------------------------------------------
# Kernel IMM
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inside", "own", "lower", "upper"),
    [
        ([2], [0, 1, 2, 3, 4], (1, 2), (2, 3)),
        ([0, 1], [0, 1, 2, 3, 4], None, (1, 2)),
        ([3, 4], [0, 1, 2, 3, 4], (2, 3), None),
        ([1, 2, 3], [0, 2, 4], (0, 2), (2, 4)),
        ([1, 2], [0, 4], (0, 1), (2, 4)),  # none of the node's rows inside
        ([1, 2], [0], (0, 1), None),
        ([1, 2], [4], None, (2, 4)),
        ([1, 2], [0, 1], (0, 1), None),
        ([1, 2], [1], None, (1, 3)),  # all of them inside: up to the next value of the column
        ([1, 2], [], None, (2, 3)),
        ([3, 4], [3], (2, 3), None),  # there is none above
        ([3, 4], [4], (2, 4), None),
        ([3, 4], [], (2, 3), None),
        ([0], [], None, (0, 1)),
    ],
)
def test_interval_ends_by_hand(inside, own, lower, upper):
    values = np.arange(5.0)
    found = ok.interval_ends(values, np.isin(values, inside), np.array(own, dtype=float))
    assert found == (lower, upper)


def test_interval_ends_need_a_run():
    values = np.arange(4.0)
    for inside in ([True, False, True, False], [True] * 4, [False] * 4):
        with pytest.raises(AssertionError):
            ok.interval_ends(values, np.array(inside), values)


def imm_of_one_feature(values, phi, labels, w=None):
    X = column(*values)
    return X, ok.kernel_imm(X, column(*phi), [0], np.array(labels), w)


def test_a_hump_becomes_an_interval():
    # centers 1.5 and 3: no mistake above 2
    X, tree = imm_of_one_feature([0, 1, 2, 3, 4], [1, 2, 3, 2, 1], [0, 0, 1, 0, 0])
    assert tree.kind == [INTERVAL, LEAF, LEAF]
    assert (tree.lower[0], tree.upper[0]) == (1.5, 2.5)
    assert tree.gap[0] == (1, 2, 2, 3)
    assert tree.base_cluster == [-1, 1, 0] and tree.mistakes[0] == 0
    assert tree.predict(X).tolist() == [0, 0, 1, 0, 0]
    assert tree.n_base_leaves == 2


def test_a_falling_feature_becomes_a_threshold_with_the_inside_left():
    X, tree = imm_of_one_feature([0, 1, 2, 3], [9, 8, 1, 0], [1, 1, 0, 0])
    assert tree.kind == [THRESHOLD, LEAF, LEAF] and tree.threshold[0] == 1.5
    assert tree.base_cluster == [-1, 1, 0]
    assert tree.predict(X).tolist() == [1, 1, 0, 0]


def test_a_rising_feature_becomes_a_threshold_with_the_outside_left():
    X, tree = imm_of_one_feature([0, 1, 2, 3], [0, 1, 8, 9], [1, 1, 0, 0])
    assert tree.kind == [THRESHOLD, LEAF, LEAF] and tree.threshold[0] == 1.5
    assert tree.base_cluster == [-1, 1, 0]
    assert tree.predict(X).tolist() == [1, 1, 0, 0]


def test_underflow_is_outside():
    # 0 on both flanks, and two values of the column with equal features
    phi = [0, 0, 0.5, 0.5, 0, 0, 0]
    X, tree = imm_of_one_feature([-9, 1, 2, 4, 5, 70, 80], phi, [0, 0, 1, 1, 0, 0, 0])
    assert (tree.lower[0], tree.upper[0]) == (1.5, 4.5)
    assert tree.predict(X).tolist() == [0, 0, 1, 1, 0, 0, 0]


def test_adjacent_doubles_and_weights():
    after = math.nextafter(1.0, 2.0)
    last = math.nextafter(after, 2.0)
    X, tree = imm_of_one_feature([1.0, after, last], [0, 1, 0], [0, 1, 0])
    # no double lies between: the ends are the inner value itself
    assert (tree.lower[0], tree.upper[0]) == (after, after)
    assert tree.predict(X).tolist() == [0, 1, 0]
    # a row of weight 0 and one of noise, both between the others, are as if absent
    w = np.array([1.0, 0.0, 1.0, 1.0])
    X, tree = imm_of_one_feature([0, 1, 4, 2], [0, 5, 9, 7], [0, 0, 1, -1], w)
    assert tree.threshold[0] == 2.0 and tree.rows[0].tolist() == [0, 2]


def test_rows_dropped_above_narrow_an_end():
    """Worked out by hand; the second cut lies beside a row that the first has dropped."""
    rows = [
        # x0, x1, cluster, weight
        (0, 0, 0, 1),
        (0, 4, 0, 1),
        (0, 2, 0, 2),
        (0, 2, 1, 1),
        (0, 2, 1, 1),
        (10, 2, 2, 1),
        (10, 2, 2, 1),
        (10, 2, 2, 1),
        (0, 1, 2, 1),
    ]
    X = np.array([row[:2] for row in rows], dtype=float)
    labels, w = np.array([row[2] for row in rows]), np.array([row[3] for row in rows], dtype=float)
    hat = 3 - np.abs(X[:, 1] - 2)
    hat[1] = 1  # at x1 = 4, as at x1 = 0
    # features: x0 itself, and a hat on x1. Centers (0, 2), (0, 3), (7.5, 2.75).
    # Root: x0 between 0 and 7.5 costs the last row, the hat between 2 and 2.75 costs 3.
    # Then the hat between 2 and 3: the third row is the mistake. x1 = 2 is inside; the last row,
    # dropped, has the x1 below it.
    for search in (oracle.imm, oracle.sweep_imm):
        tree = ok.kernel_imm(X, np.column_stack([X[:, 0], hat]), [0, 1], labels, w, search=search)
        assert tree.kind == [THRESHOLD, INTERVAL, LEAF, LEAF, LEAF]
        assert tree.feature[:2] == [0, 1]
        assert tree.threshold[0] == 5  # between rows: IMM itself would take 4, beside the center
        assert (tree.lower[1], tree.upper[1]) == (1.5, 3)
        assert tree.gap[:2] == [(0, 10), (1, 2, 2, 4)]
        assert tree.mistakes[:2] == [1, 2]
        assert tree.base_cluster == [-1, -1, 2, 1, 0]
        assert tree.rows[1].tolist() == [0, 1, 2, 3, 4, 8]
        assert tree.rows[4].tolist() == [0, 1, 8]


def test_linear_features_give_the_partition_of_imm():
    rng = np.random.default_rng(8)
    different = 0
    for _ in range(repeats(60, 150)):
        X, _, labels, w = oracle.random_case(rng, n_max=25, d_max=3)
        labels = np.unique(labels, return_inverse=True)[1]
        if not ok.separable(X, labels, w):
            continue
        plain = oracle.imm(X, labels, ok.feature_means(X, labels, w), w)
        tree = ok.kernel_imm(X, X, np.arange(X.shape[1]), labels, w)
        assert not ok.has_intervals(tree)
        for name in ("children_left", "feature", "base_cluster", "mistakes"):
            assert_array_equal(getattr(tree, name), getattr(plain, name))
        for mine, theirs in zip(tree.rows, plain.rows, strict=True):
            assert_array_equal(mine, theirs)
        different += tree.threshold != plain.threshold
    assert different > repeats(1, 5)  # thresholds lie between rows, not between rows and centers


@pytest.mark.parametrize("family", ok.FAMILIES, ids="-".join)
def test_random_trees(family):
    """Every cluster has one leaf, tests reproduce the rows, and both searches agree."""
    rng = np.random.default_rng(sum("".join(family).encode()))
    seen, intervals, mistakes = 0, 0, 0.0
    while seen < 25:
        case = ok.random_kernel_case(rng, family=family, n_max=18)
        Phi, of = ok.surrogate_features(case)
        rows = ok.fitted_rows(case.labels, case.w)
        for j, f in enumerate(of):
            _, first = np.unique(case.X[rows, f], return_index=True)
            assert ok.is_unimodal(Phi[rows, j][first])
        if case.k < 2 or not ok.separable(Phi, case.labels, case.w):
            continue
        seen += 1
        tree = ok.kernel_imm(case.X, Phi, of, case.labels, case.w)
        quick = ok.kernel_imm(case.X, Phi, of, case.labels, case.w, search=oracle.sweep_imm)
        assert oracle.first_difference(tree, quick) is None
        assert sorted(tree.base_cluster[leaf] for leaf in tree.leaves) == list(range(case.k))
        reached = tree.apply(case.X[rows])
        for leaf in tree.leaves:
            assert_array_equal(rows[reached == leaf], tree.rows[leaf])
        wrong = rows[tree.predict(case.X[rows]) != case.labels[rows]]
        inner = math.fsum(value for value in tree.mistakes if not math.isnan(value))
        assert math.fsum(case.w[wrong]) == pytest.approx(inner, rel=1e-12)
        intervals += ok.has_intervals(tree)
        mistakes += inner
    assert mistakes > 0
    rising = family[1] == "additive" and family[0] != "additive_chi2"
    assert (intervals == 0) if rising else (intervals > 0)


def test_growth_from_the_base():
    rng = np.random.default_rng(9)
    grown = 0
    for number in range(40):
        case = ok.random_kernel_case(rng, family=ok.FAMILIES[number % 3], n_max=16, far=0.0)
        Phi, of = ok.surrogate_features(case)
        if case.k < 2 or not ok.separable(Phi, case.labels, case.w):
            continue
        base = ok.kernel_imm(case.X, Phi, of, case.labels, case.w)
        K = ok.gram(case.X, case.kernel, gamma=case.gamma)
        for D in (ok.distances(K, case.labels, case.w), ok.mismatches(case.labels)):
            for cuts in ("threshold", "interval"):
                options = {"max_leaves": case.k + 4, "cuts": cuts, "base": base}
                tree = ok.grow(case.X, D, case.labels, case.w, **options)
                assert tree.n_base_leaves == case.k and tree.kind[0] == base.kind[0]
                costs = [cost for _, cost in tree.cost_path]
                assert all(b <= a * (1 + 1e-12) for a, b in pairwise(costs))
                grown += tree.n_leaves > case.k
                quick = ok.grow(
                    case.X, D, case.labels, case.w, search=oracle.sweep_grow_label_cost, **options
                )
                assert oracle.first_difference(tree, quick) is None
    assert grown > 30


def test_mismatches_leave_noise_out():
    labels = np.array([1, -1, 0, 2])
    assert_array_equal(ok.mismatches(labels), [[1, 0, 1], [0, 0, 0], [0, 1, 1], [1, 1, 0]])
    # the noise at 10 would ask for a cut of its own
    tree = ok.grow(column(0, 10, 1, 2), ok.mismatches(labels), labels, max_leaves=9)
    assert tree.n_leaves == 3 and tree.rows[0].tolist() == [0, 2, 3]


# --------------------------------------------------------------------------------------------------
# The paper's examples
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cuts", ["threshold", "interval"])
@pytest.mark.parametrize("exponent", [2, 5, 9])
@pytest.mark.parametrize("n_each", [2, 6])
def test_theorem_6(exponent, n_each, cuts):
    """From an empty tree ExKMC cuts through the middle cluster; IMM is perfect.

    The price is (1/3) + (1 - 2 e + 4 e^2) / (9 e^2): the paper's bound has twice the second term.
    """
    epsilon = 2.0**-exponent
    X, labels = ok.theorem_6(epsilon, n_each)
    K = ok.gram(X, "linear")
    assert ok.kernel_cost(K, labels) == len(X) * epsilon**2
    bad = ok.grow(X, ok.distances(K, labels), labels, max_leaves=3, cuts=cuts)
    assert bad.n_leaves == 3
    assert bad.threshold[0] == 0  # through the middle cluster
    assert partition(bad) != sorted(np.flatnonzero(labels == c).tolist() for c in range(3))
    exact = 1 / 3 + (1 - 2 * epsilon + 4 * epsilon**2) / (9 * epsilon**2)
    assert ok.price(K, bad.predict(X), labels) == pytest.approx(exact, rel=1e-12)
    # Kernel IMM, and ExKMC grown from it, keep the price 1
    tree = ok.kernel_imm(X, X, [0], labels)
    grown = ok.grow(X, ok.distances(K, labels), labels, max_leaves=3, base=tree)
    for good in (tree, grown):
        assert good.predict(X).tolist() == labels.tolist()
        assert ok.price(K, good.predict(X), labels) == 1
    # so do Taylor features of the Gaussian kernel
    z = X[:, 0] - ok.taylor_shift(X[:, 0])
    tree = ok.kernel_imm(X, ok.taylor_features(z, 0.5, 5), [0] * 6, labels)
    assert tree.predict(X).tolist() == labels.tolist()


def test_theorem_6_has_no_bound():
    prices = []
    for exponent in (3, 6, 9, 12):
        X, labels = ok.theorem_6(2.0**-exponent)
        K = ok.gram(X, "linear")
        tree = ok.grow(X, ok.distances(K, labels), labels, max_leaves=3)
        prices.append(ok.price(K, tree.predict(X), labels))
    assert prices == sorted(prices) and prices[-1] > 1e6


def two_leaf_partitions(X, cuts):
    """Every partition of the rows by one cut of a column."""
    for f in range(X.shape[1]):
        values = np.unique(X[:, f])
        for i in range(len(values)):
            for j in range(i, len(values)):
                inside = (values[i] <= X[:, f]) & (X[:, f] <= values[j])
                if not inside.all() and (cuts == "interval" or i == 0):
                    yield inside.astype(int)


@pytest.mark.parametrize(
    ("example", "cuts", "expected"),
    [
        (ok.theorem_7_quadratic, "threshold", math.inf),
        (ok.theorem_7_quadratic, "interval", 1.0),  # the paper says inf: |x_0| <= 1/2 does it
        (ok.theorem_7_turned, "threshold", math.inf),
        (ok.theorem_7_turned, "interval", math.inf),
    ],
)
def test_theorem_7_quadratic_kernel(example, cuts, expected):
    X, labels = example()
    K = ok.gram(X, "polynomial")
    _, cost = ok.best_partition(K, 2)
    assert cost == 0 == ok.exact_cost(K, labels)
    assert min(ok.price(K, found, labels) for found in two_leaf_partitions(X, cuts)) == expected
    D = ok.distances(K, labels)
    # two leaves: greedy growth does no better than the best, and reaches it
    for costs in (D, ok.mismatches(labels)):
        tree = ok.grow(X, costs, labels, max_leaves=2, cuts=cuts)
        assert ok.price(K, tree.predict(X), labels) == expected


@pytest.mark.parametrize("cuts", ["threshold", "interval"])
def test_theorem_7_neighbourhood_kernel(cuts):
    X, labels, epsilon = ok.theorem_7_neighbourhood()
    assert X.shape == (8, 36) and len(np.unique(X, axis=1).T) == 36
    squared = oracle.squared_costs(X, X)
    same = labels[:, None] == labels
    assert set(squared[same].tolist()) == {0, 24} and set(squared[~same].tolist()) == {54}
    K = ok.gram(X, "epsilon", epsilon=epsilon)
    assert_array_equal(K, same)
    assert ok.exact_cost(K, labels) == 0
    assert {ok.price(K, found, labels) for found in two_leaf_partitions(X, cuts)} == {math.inf}
    D = ok.distances(K, labels)
    assert_array_equal(D, np.where(labels[:, None] == [0, 1], 0, 2))
    tree = ok.grow(X, D, labels, max_leaves=2, cuts=cuts)
    assert ok.price(K, tree.predict(X), labels) == math.inf
    # more leaves recover the clusters
    tree = ok.grow(X, D, labels, max_leaves=5, cuts=cuts)
    assert tree.predict(X).tolist() == labels.tolist()


@pytest.mark.parametrize("make", [ok.half_moons, ok.circles])
def test_shapes_that_k_means_cannot_see(make):
    """Interval growth recovers them with few leaves; two clusters of means do not."""
    X, labels = make(30)
    tree = ok.grow(X, ok.mismatches(labels), labels, max_leaves=6, cuts="interval",
                   search=oracle.sweep_grow_label_cost)  # fmt: skip
    assert adjusted_rand_score(labels, tree.predict(X)) > 0.9
    means = X[[0, 30]]
    for _ in range(20):
        nearest = oracle.nearest_labels(oracle.squared_costs(X, means))
        means = np.array([X[nearest == c].mean(axis=0) for c in range(2)])
    assert adjusted_rand_score(labels, nearest) < 0.6
    # with a kernel that sees them the reference costs less than those clusters
    K = ok.gram(X, "laplacian", gamma=4.0)
    assert ok.exact_cost(K, labels) < ok.exact_cost(K, nearest) or make is ok.circles
