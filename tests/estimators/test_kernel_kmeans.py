"""Kernel k-means: rounds against brute force, costs against enumeration."""

from __future__ import annotations

import itertools
import math
import pickle
import threading
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score

import kernel_names
import treeclust_rs as tc
from treeclust_rs._kernels import gram_lloyd as _gram_lloyd
from treeclust_rs._kernels import lloyd as _kernel_lloyd
from treeclust_rs._kernels.gram import is_indefinite
from treeclust_rs._kernels.gram_lloyd import (
    GramRows,
    _reseed_empty,
    _single_moves,
    draw,
    draw_seeds,
    run_lloyd,
)
from treeclust_rs._kernels.kernel_data import KernelData
from treeclust_rs._kernels.lloyd import cluster
from treeclust_rs._kernels.means import Means, compact, first_least
from treeclust_rs._kernels.parameters import make_kernel
from treeclust_rs.estimators import kernel_kmeans as kernel_kmeans

DEFINITE = kernel_names.DEFINITE | {"polynomial": {"degree": 2}, "rbf": {"gamma": 2.0}}
KERNELS = {**DEFINITE, "epsilon": {"kernel_params": {"epsilon": 0.5}}}
# Indefinite kernels warn; where that is not what is tested, it does not matter.
QUIET = pytest.mark.filterwarnings("ignore:The kernel:UserWarning")
FEWER = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def product(x, y, power=1):
    return float(x @ y) ** power


# ---- brute force --------------------------------------------------------------------------


def squared_distance(gram, i, members, weight):
    """Distance of the row i to the mean of the members, from its definition."""
    size = math.fsum(weight[j] for j in members)
    cross = math.fsum(weight[j] * gram[i, j] for j in members)
    own = math.fsum(weight[j] * weight[m] * gram[j, m] for j in members for m in members)
    return math.fsum((gram[i, i], -2.0 * cross / size, own / size**2))


def cost_of(gram, labels, weight=None):
    """The cost about the clusters' own means, from its definition."""
    weight = np.ones(len(gram)) if weight is None else weight
    return math.fsum(
        weight[i] * squared_distance(gram, i, members, weight)
        for label in set(labels)
        for members in [[j for j, other in enumerate(labels) if other == label]]
        for i in members
    )


def nearest_by_definition(distances):
    """The first label within rounding of the least distance."""
    least = min(distances)
    return next(label for label, apart in enumerate(distances) if apart <= least + 1e-11)


def brute_rounds(gram, groups, k, weight, n_rounds):
    """Lloyd's rounds from the means of some groups (-1: in none); labels after each round."""
    n, found = len(gram), []
    for _ in range(n_rounds):
        members = [[j for j in range(n) if groups[j] == label] for label in range(k)]
        table = [
            [squared_distance(gram, i, rows, weight) for rows in members if rows] for i in range(n)
        ]
        kept = [label for label in range(k) if members[label]]
        labels = [kept[nearest_by_definition(row)] for row in table]
        served = [weight[i] * table[i][kept.index(labels[i])] for i in range(n)]
        for label in range(k):
            if label in labels:
                continue
            order = sorted(range(n), key=lambda i: (-served[i], i))
            worst = next(i for i in order if labels.count(labels[i]) > 1)
            labels[worst], served[worst] = label, -1.0
        found.append(labels)
        groups = labels
    return found


def best_cost(gram, k, weight):
    return min(
        cost_of(gram, labels, weight) for labels in itertools.product(range(k), repeat=len(gram))
    )


def start_of(stocks, groups, k):
    rows = GramRows(stocks, stocks.gram, stocks.weights, True, 1)
    return rows, groups, rows.sums(groups, k)


def lloyd(stocks, groups, k, max_iter, refine=False, tol=0.0):
    rows, groups, sums = start_of(stocks, groups, k)
    return run_lloyd(rows, groups, sums, max_iter, tol, threading.Event(), refine=refine)


def same_partition(one, two):
    return adjusted_rand_score(one, two) == 1.0


# ---- rounds -------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", DEFINITE)
def test_rounds_equal_brute_force(name, weighted):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, k = rng.random((26, 2)), 4
        gram = make_kernel(name, X=X, **DEFINITE[name]).matrix(X)
        weight = rng.uniform(0.3, 2.0, 26) if weighted else np.ones(26)
        groups = np.full(26, -1)
        groups[rng.choice(26, k, replace=False)] = np.arange(k)
        stocks = KernelData.of_gram(gram, weight if weighted else None)
        expected = brute_rounds(gram, groups, k, weight, 6)
        for n_rounds in range(1, 7):
            found = lloyd(stocks, groups, k, n_rounds)
            still = [n for n in range(1, n_rounds) if expected[n] == expected[n - 1]]
            last = still[0] if still else n_rounds - 1
            assert found.labels.tolist() == expected[last]
            assert found.n_iter == last + 1
            assert found.cost == pytest.approx(cost_of(gram, expected[last], weight), rel=1e-10)


def test_empty_clusters_get_the_rows_that_are_served_worst():
    # The mean of the outer rows (group 1) lies on top of that of the inner ones.
    X = np.array([[-10.0], [-1.0], [0.0], [1.0], [12.0], [30.0]])
    gram = (X - 0.5) @ (X - 0.5).T
    groups = np.array([1, 0, 0, 0, 1, -1])
    weight = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.01])
    stocks = KernelData.of_gram(gram, weight)
    # Group 2 has no rows, so nothing is nearest to it.
    expected = brute_rounds(gram, groups, 3, weight, 1)[0]
    assert expected.count(2) == 1
    assert expected.index(2) in (0, 4)  # far and of weight, unlike the last row
    rows, _, sums = start_of(stocks, groups, 3)
    means = rows.means(groups, 3, sums)
    labels, reseeded = _reseed_empty(rows, means, sums, means.nearest(sums))
    assert reseeded
    assert labels.tolist() == expected
    found = lloyd(stocks, groups, 3, 8)
    assert sorted(set(found.labels.tolist())) == [0, 1, 2]
    assert found.cost == pytest.approx(cost_of(gram, found.labels, weight))


@pytest.mark.parametrize("name", ["rbf", "laplacian", "polynomial"])
def test_cost_never_rises(name):
    X = np.random.default_rng(0).random((300, 2))
    gram = make_kernel(name, X=X).matrix(X)
    costs = []
    for max_iter in range(1, 40):
        model = tc.KernelKMeans(7, kernel=name, n_init=1, max_iter=max_iter, tol=0, random_state=3)
        model.fit(X)
        assert model.n_iter_ <= max_iter
        expected = KernelData.of_gram(gram, None).inertia(model.labels_)
        assert model.kernel_cost_ == pytest.approx(expected, rel=1e-11)
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        costs.append(model.kernel_cost_)
    assert costs[0] > costs[-1]
    assert all(after <= before * (1 + 1e-12) for before, after in itertools.pairwise(costs))


def test_moved_rows_give_the_sums_that_all_rows_give():
    rng = np.random.default_rng(1)
    X = rng.random((1200, 2))
    gram = make_kernel("rbf", X=X).matrix(X)
    weight = rng.uniform(0.5, 2.0, 1200)
    before = rng.integers(-1, 5, 1200)
    for n_moved in (0, 3, 200, 400, 1200):
        after = np.maximum(before, 0)
        moved = rng.choice(1200, n_moved, replace=False)
        after[moved] = rng.integers(0, 5, n_moved)
        start = np.where(np.isin(np.arange(1200), moved), before, after)
        rows, _, sums = start_of(KernelData.of_gram(gram, weight), start, 5)
        expected = rows.sums(after, 5)
        np.testing.assert_allclose(rows.moved_sums(sums, start, after), expected, atol=1e-10)


def test_only_moved_rows_are_looked_at(monkeypatch):
    # After the first rounds, in which most rows move, the matrix is read again only at the end.
    X = np.random.default_rng(2).random((1000, 2))
    full = []
    whole = GramRows.sums
    monkeypatch.setattr(GramRows, "sums", lambda *given: full.append(1) or whole(*given))
    model = tc.KernelKMeans(6, n_init=1, tol=0, random_state=0).fit(X)
    assert model.n_iter_ > 8
    assert len(full) <= 4


@pytest.mark.parametrize("weighted", [False, True])
def test_no_single_move_lowers_the_cost(weighted):
    rng = np.random.default_rng(4)
    X = rng.random((30, 2))
    weight = rng.uniform(0.2, 3.0, 30) if weighted else None
    gram = make_kernel("rbf", X=X, gamma=3.0).matrix(X)
    stocks, improved = KernelData.of_gram(gram, weight), 0
    for seed in range(5):
        groups = np.random.default_rng(seed).integers(0, 5, 30)
        plain = lloyd(stocks, groups, 5, 100)
        found = lloyd(stocks, groups, 5, 100, refine=True)
        assert found.cost <= plain.cost
        improved += found.cost < plain.cost * (1 - 1e-9)
        least = cost_of(gram, found.labels, weight)
        assert found.cost == pytest.approx(least, rel=1e-10)
        for row, label in itertools.product(range(30), range(5)):
            moved = found.labels.copy()
            moved[row] = label
            assert cost_of(gram, moved, weight) >= least * (1 - 1e-10)
        # Each row is nearest to its own mean too.
        distances = stocks.distances(found.labels, 5)
        np.testing.assert_array_equal(distances.argmin(axis=1), found.labels)
    assert improved > 1


def test_single_moves_can_be_broken_off():
    X = np.random.default_rng(4).random((30, 2))
    stocks = KernelData.of_gram(make_kernel("rbf", X=X).matrix(X), None)
    rows, groups, sums = start_of(stocks, np.arange(30) % 5, 5)
    broken_off = threading.Event()
    broken_off.set()
    labels, cost = _single_moves(rows, groups, sums, rows.means(groups, 5, sums), broken_off)
    np.testing.assert_array_equal(labels, groups)
    assert cost == pytest.approx(stocks.inertia(groups))


# ---- optima -------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", DEFINITE)
def test_the_best_of_many_starts_is_the_best_partition(name, weighted):
    for seed in range(2):
        rng = np.random.default_rng(10 + seed)
        X = rng.random((7, 2))
        weight = rng.uniform(0.2, 2.0, 7) if weighted else None
        model = tc.KernelKMeans(3, kernel=name, n_init=40, random_state=seed, **DEFINITE[name])
        model.fit(X, sample_weight=weight)
        gram = make_kernel(name, X=X, **DEFINITE[name]).matrix(X)
        assert model.kernel_cost_ == pytest.approx(cost_of(gram, model.labels_, weight), rel=1e-10)
        assert model.kernel_cost_ == pytest.approx(best_cost(gram, 3, weight), rel=1e-10)


def test_kernels_find_what_means_cannot_part():
    X, truth = make_circles(400, noise=0.05, factor=0.3, random_state=0)
    model = tc.KernelKMeans(2, gamma=5.0, random_state=0).fit(X)
    assert same_partition(model.labels_, truth)
    assert adjusted_rand_score(KMeans(2, random_state=0).fit(X).labels_, truth) < 0.1


def test_samples_lead_to_starts_as_good_as_seeds(monkeypatch):
    X = make_moons(1600, noise=0.1, random_state=0)[0]
    stocks = KernelData.of_gram(make_kernel("rbf", gamma=5.0, X=X).matrix(X), None)
    used = []
    first = _gram_lloyd.draw_seeds
    monkeypatch.setattr(
        _gram_lloyd,
        "draw_seeds",
        lambda rows, *given: used.append(len(rows.weight)) or first(rows, *given),
    )
    sampled = [cluster(stocks, 4, n_init=1, random_state=seed).inertia for seed in range(4)]
    assert max(used) <= _kernel_lloyd._MIN_TRIAL_ROWS
    monkeypatch.setattr(_kernel_lloyd, "_MIN_TRIAL_ROWS", 1600)
    used.clear()
    seeded = [cluster(stocks, 4, n_init=1, random_state=seed).inertia for seed in range(4)]
    assert set(used) == {1600}
    assert np.mean(sampled) <= np.mean(seeded) * 1.01


def test_of_means_equally_near_up_to_rounding_the_first_counts():
    values = np.array([[1.0 + 1e-15, 1.0 + 1e-9, 3.0], [1.0, 1.0, 1.0 + 1e-15], [1.0, 2.0, 1.0]])
    np.testing.assert_array_equal(first_least(values, np.full(3, 1e-12)), [0, 1, 1])


def test_ties_are_the_same_for_rows_of_the_fit_and_others():
    # Rows on the line between the clusters are equally near to both, but for rounding.
    side = np.array([[-3.0, 0.1], [-3.1, 0.7], [-2.7, 0.3], [-2.9, -0.4]])
    X = np.vstack([side, side * [-1, 1], [[0.0, y] for y in np.linspace(-0.3, 0.3, 7)]])
    weight = np.r_[np.ones(8), np.full(7, 1e-9)]
    gram = make_kernel("rbf", gamma=0.07, X=X).matrix(X)
    groups = np.r_[np.repeat([0, 1], 4), np.full(7, -1)]
    found = lloyd(KernelData.of_gram(gram, weight), groups, 2, 1)
    np.testing.assert_array_equal(found.labels, np.r_[np.repeat([0, 1], 4), np.zeros(7)])


def test_clusters_without_rows_are_dropped():
    means = Means(np.array([2, 0, 1, -1]), np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]))
    labels, kept = compact(np.array([2, 0, 0, 2]), means)
    assert labels.tolist() == [1, 0, 0, 1]
    assert kept.groups.tolist() == [1, 0, -1, -1]
    assert kept.weight.tolist() == [1.0, 3.0]
    assert kept.stocks.tolist() == [4.0, 6.0]
    labels, kept = compact(np.array([1, 1]), Means(None, np.ones(2), np.ones(2), np.eye(2)))
    assert labels.tolist() == [0, 0]
    assert kept.centers.tolist() == [[0.0, 1.0]]


def test_a_start_ends_when_the_cost_falls_by_no_more_than_tol():
    X = np.random.default_rng(5).random((600, 2))
    fits = [
        tc.KernelKMeans(6, n_init=1, tol=tol, random_state=1).fit(X) for tol in (0.5, 1e-3, 0.0)
    ]
    n_iter = [model.n_iter_ for model in fits]
    assert n_iter[0] == 2 < n_iter[1] < n_iter[2]


def test_with_features_a_start_ends_when_the_means_move_by_no_more_than_tol():
    X = 1e3 + np.random.default_rng(5).random((600, 3))
    seed = np.random.RandomState(1).randint(np.iinfo(np.int32).max)
    n_iter = []
    for tol in (0.1, 1e-2, 1e-3, 0.0):
        model = tc.KernelKMeans(6, kernel="linear", n_init=1, tol=tol, random_state=1).fit(X)
        # scikit-learn's share is of the mean variance of a column.
        expected = KMeans(6, n_init=1, tol=tol * X.shape[1], random_state=seed).fit(X)
        assert model.n_iter_ == expected.n_iter_
        n_iter.append(model.n_iter_)
    assert n_iter == sorted(set(n_iter))


# ---- seeds --------------------------------------------------------------------------------


def test_seeds_are_distinct_until_none_is_left():
    X = np.repeat(np.random.default_rng(6).random((6, 2)), 5, axis=0)
    stocks = KernelData.of_gram(make_kernel("rbf", X=X).matrix(X), np.linspace(0.1, 2, 30))
    rows = GramRows(stocks, stocks.gram, stocks.weights, True, 1)
    for seed in range(20):
        chosen = draw_seeds(rows, 9, np.random.RandomState(seed))
        assert sorted(chosen // 5) == [0, 1, 2, 3, 4, 5]


def test_seeds_are_drawn_by_weighted_squared_distances():
    # One trial a seed with k = 1; with k = 2, two trials, of which the better one is taken.
    X = np.array([[0.0], [1.0], [3.0]])
    weight = np.array([1.0, 2.0, 5.0])
    stocks = KernelData.of_gram(X @ X.T, weight)
    rows = GramRows(stocks, stocks.gram, weight, True, 1)
    rng = np.random.RandomState(0)
    first = np.bincount([draw_seeds(rows, 1, rng)[0] for _ in range(4000)], minlength=3) / 4000
    np.testing.assert_allclose(first, weight / 8, atol=0.03)
    pairs = [tuple(draw_seeds(rows, 2, rng)) for _ in range(4000)]
    # From row 0: masses 0, 2, 45; row 2 leaves less and is taken unless both trials draw row 1.
    from_zero = [second for start, second in pairs if start == 0]
    assert np.mean(np.array(from_zero) == 1) == pytest.approx((2 / 47) ** 2, abs=0.01)


def test_of_the_drawn_seeds_the_one_that_leaves_least_weight_is_taken():
    # From row 0 row 1 leaves 0.5 x 4, row 2 leaves 100 x 1.
    X = np.array([[0.0], [1.0], [3.0]])
    weight = np.array([1.0, 100.0, 0.5])
    rows = GramRows(KernelData.of_gram(X @ X.T, weight), X @ X.T, weight, True, 1)
    rng = np.random.RandomState(0)
    pairs = [tuple(draw_seeds(rows, 2, rng)) for _ in range(3000)]
    from_zero = [second for start, second in pairs if start == 0]
    assert len(from_zero) > 15
    assert 2 not in from_zero


def test_drawn_rows_have_mass():
    mass = np.array([0.0, 1e-300, 0.0, 1.0, 0.0])
    drawn = draw(mass, np.array([0.0, 0.5, 1.0 - 2.0**-53, 1.0]))
    np.testing.assert_array_equal(drawn, [1, 3, 3, 3])


# ---- kernels ------------------------------------------------------------------------------


@QUIET
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [*KERNELS, "callable", "precomputed"])
def test_predict_is_the_nearest_mean_by_definition(name, weighted):
    rng = np.random.default_rng(7)
    X, new = rng.random((40, 3)), rng.random((15, 3))
    weight = rng.uniform(0.1, 2.0, 40) if weighted else np.ones(40)
    if weighted:
        weight[[3, 8]] = 0.0
    both = np.vstack([X, new])
    kernel = (
        make_kernel(product if name == "callable" else name, X=X, **KERNELS.get(name, {}))
        if name != "precomputed"
        else make_kernel("rbf", X=X)
    )
    gram = kernel.matrix(both)
    given = {"gram": gram[:40, :40]} if name == "precomputed" else {}
    model = tc.KernelKMeans(
        3, kernel=product if name == "callable" else name, random_state=0, **KERNELS.get(name, {})
    ).fit(X, sample_weight=weight if weighted else None, **given)
    fitted = weight > 0
    labels = model.labels_[fitted]
    expected_cost = cost_of(gram[:40, :40][np.ix_(fitted, fitted)], labels, weight[fitted])
    assert model.kernel_cost_ == pytest.approx(expected_cost, rel=1e-10)
    if name != "epsilon":  # its rounds may end with the means of the round before
        members = [[j for j in range(40) if fitted[j] and model.labels_[j] == c] for c in range(3)]
        everything = np.concatenate([weight, np.ones(15)])
        expected = [
            nearest_by_definition([squared_distance(gram, i, rows, everything) for rows in members])
            for i in range(55)
        ]
        found = model.predict(new, **({"gram": gram[40:, :40]} if given else {}))
        np.testing.assert_array_equal(found, expected[40:])
        np.testing.assert_array_equal(model.labels_, expected[:40])
    np.testing.assert_array_equal(model.predict(X, **given), model.labels_)
    diagonal = {"gram_diagonal": gram.diagonal()[:40]} if given else {}
    score = model.score(X, sample_weight=weight, **given, **diagonal)
    if name != "epsilon":
        assert score == pytest.approx(-model.kernel_cost_, rel=1e-10)


@QUIET
@pytest.mark.parametrize("name", KERNELS)
def test_a_given_matrix_equals_the_named_kernel(name):
    X = np.random.default_rng(8).random((90, 3))
    gram = make_kernel(name, X=X, **KERNELS[name]).matrix(X)
    named = tc.KernelKMeans(4, kernel=name, n_init=20, random_state=0, **KERNELS[name]).fit(X)
    given = tc.KernelKMeans(4, kernel="precomputed", n_init=20, random_state=0).fit(X, gram=gram)
    if name in ("linear", "cosine", "hellinger"):  # features: k-means of scikit-learn
        assert given.kernel_cost_ <= named.kernel_cost_ * (1 + 1e-3)
    else:
        np.testing.assert_array_equal(given.labels_, named.labels_)
        assert given.kernel_cost_ == pytest.approx(named.kernel_cost_, rel=1e-12)
    assert given.gamma_ is None


def test_a_callable_equals_the_named_kernel():
    X = np.random.default_rng(9).random((50, 2))
    named = tc.KernelKMeans(3, kernel="polynomial", gamma=1.0, coef0=0, degree=3, random_state=0)
    called = tc.KernelKMeans(3, kernel=product, kernel_params={"power": 3}, random_state=0)
    np.testing.assert_array_equal(called.fit(X).labels_, named.fit(X).labels_)
    assert called.kernel_cost_ == pytest.approx(named.kernel_cost_, rel=1e-12)


@pytest.mark.parametrize("scale", [None, "standard"])
def test_the_linear_kernel_is_kmeans(scale):
    X = np.random.default_rng(10).normal(size=(200, 3)) * [1.0, 5.0, 20.0] + 1e6
    model = tc.KernelKMeans(5, kernel="linear", scale=scale, random_state=0).fit(X)
    seen = (X - X.mean(axis=0)) / (X.std(axis=0) if scale else 1.0)
    np.testing.assert_allclose(model.scale_, X.std(axis=0) if scale else np.ones(3), rtol=1e-9)
    cost = sum(
        np.square(seen[model.labels_ == c] - seen[model.labels_ == c].mean(axis=0)).sum()
        for c in range(5)
    )
    assert model.kernel_cost_ == pytest.approx(cost, rel=1e-8)
    peer = KMeans(5, n_init=20, random_state=0).fit(seen)
    assert model.kernel_cost_ == pytest.approx(peer.inertia_, rel=0.02)
    assert model.kernel_cost_ == model.inertia_
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("name", ["linear", "cosine", "hellinger"])
def test_kernels_of_features_take_no_matrix(name, monkeypatch):
    monkeypatch.setattr("treeclust_rs._util.arrays.MAX_ARRAY_BYTES", 0)
    X = np.random.default_rng(11).random((60, 3))
    model = tc.KernelKMeans(3, kernel=name, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("method", ["nystroem", "rpcholesky"])
@pytest.mark.parametrize("name", ["rbf", "laplacian", "additive_chi2"])
def test_approximations_of_full_rank_are_the_kernel(name, method):
    X = np.random.default_rng(12).random((70, 2))
    settings = {"kernel": name, "n_init": 20, "random_state": 0}
    exact = tc.KernelKMeans(3, **settings).fit(X)
    near = tc.KernelKMeans(3, approximation=method, n_components=70, **settings).fit(X)
    gram = make_kernel(name, X=X).matrix(X)
    assert near.kernel_cost_ == pytest.approx(cost_of(gram, near.labels_), rel=1e-4)
    assert near.kernel_cost_ == pytest.approx(exact.kernel_cost_, rel=5e-3)


@pytest.mark.parametrize("method", ["nystroem", "rpcholesky", "rff"])
def test_approximations(method, monkeypatch):
    X, truth = make_circles(500, noise=0.05, factor=0.3, random_state=0)
    monkeypatch.setattr("treeclust_rs._util.arrays.MAX_ARRAY_BYTES", 8 * 500 * 100)
    model = tc.KernelKMeans(
        2, gamma=3.0, approximation=method, n_components=100, random_state=1
    ).fit(X)
    assert adjusted_rand_score(model.labels_, truth) > 0.98
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.score(X) == pytest.approx(-model.kernel_cost_, rel=1e-6)
    assert model.gamma_ == 3.0


def test_gamma_is_settled_as_stated():
    X = np.random.default_rng(13).random((30, 4)) * [1, 2, 3, 4]
    assert tc.KernelKMeans(2, random_state=0).fit(X).gamma_ == 0.25
    scaled = tc.KernelKMeans(2, gamma="scale", random_state=0).fit(X)
    assert scaled.gamma_ == pytest.approx(1 / X.var(axis=0).sum())
    assert tc.KernelKMeans(2, kernel="chi2", random_state=0).fit(X).gamma_ == 1.0
    assert tc.KernelKMeans(2, kernel="cosine", random_state=0).fit(X).gamma_ is None


# ---- kernels that are not positive semidefinite -------------------------------------------


def signed_gram(seed, n=40):
    half = np.random.default_rng(seed).normal(size=(n, n))
    return half + half.T


@pytest.mark.parametrize("seed", range(6))
def test_indefinite_matrices_warn_and_work(seed):
    gram = signed_gram(seed)
    X = np.zeros((40, 1))
    model = tc.KernelKMeans(4, kernel="precomputed", n_init=3, random_state=0)
    with pytest.warns(UserWarning, match="kernel matrix is not positive semidef") as record:
        model.fit(X, gram=gram)
    assert len(record) == 1
    assert record[0].filename == __file__
    assert model.kernel_cost_ == pytest.approx(cost_of(gram, model.labels_), rel=1e-9)
    assert model.kernel_cost_ < cost_of(gram, [0] * 40)
    np.testing.assert_array_equal(model.predict(X, gram=gram), model.labels_)


def test_the_best_partition_seen_is_kept():
    falls = rises = 0
    for seed in range(10):
        gram = signed_gram(seed, 20)
        stocks = KernelData.of_gram(gram, None)
        rows = GramRows(stocks, gram, stocks.weights, False, 1)
        groups = np.arange(20) % 3
        costs = []
        for max_iter in range(1, 20):
            found = run_lloyd(
                rows, groups, rows.sums(groups, 3), max_iter, 0.0, threading.Event(), refine=False
            )
            costs.append(found.cost)
            assert found.cost == pytest.approx(cost_of(gram, found.labels), rel=1e-9)
        assert all(after <= before for before, after in itertools.pairwise(costs))
        falls += costs[-1] < costs[0]
        brute = brute_rounds(gram, groups, 3, stocks.weights, 10)
        path = [cost_of(gram, labels) for labels in brute]
        rises += any(after > before + 1e-9 for before, after in itertools.pairwise(path))
    assert falls > 2
    assert rises > 2


def test_epsilon_warns_always():
    X = np.arange(12.0)[:, None]
    model = tc.KernelKMeans(3, kernel="epsilon", kernel_params={"epsilon": 1.0}, random_state=0)
    with pytest.warns(UserWarning, match="'epsilon' is not positive semidefinite") as record:
        model.fit(X)
    assert len(record) == 1
    near = (np.abs(X - X.T) <= 1).astype(float)
    assert model.kernel_cost_ == pytest.approx(cost_of(near, model.labels_))


@QUIET
def test_epsilon_of_neighbours_that_are_not_alike():
    # All three are neighbours of the middle row, at distance 0; two clusters still do better.
    X = np.array([[0.0], [1.0], [2.0]])
    model = tc.KernelKMeans(2, kernel="epsilon", kernel_params={"epsilon": 1.0}, random_state=0)
    model.fit(X)
    assert model.kernel_cost_ == 0.0
    assert len(set(model.labels_)) == 2


def test_the_epsilon_example_of_the_paper_costs_nothing():
    # Theorem 7: rows alike within a cluster, and in no cell of few cuts.
    choices = list(itertools.combinations(range(4), 2))
    pattern = np.array([[float(i in pair) for pair in choices] for i in range(4)])
    columns = list(itertools.product(range(6), range(6)))
    ones = np.array([[pattern[i, a] for a, _ in columns] for i in range(4)])
    less = -np.array([[pattern[i, b] for _, b in columns] for i in range(4)])
    X = np.vstack([ones, less])
    model = tc.KernelKMeans(
        2, kernel="epsilon", kernel_params={"epsilon": math.sqrt(24)}, random_state=0
    )
    with pytest.warns(UserWarning, match="epsilon"):
        model.fit(X)
    assert model.kernel_cost_ == 0.0
    assert same_partition(model.labels_, [0] * 4 + [1] * 4)


def test_callables_and_polynomials_are_looked_at():
    X = np.random.default_rng(14).normal(size=(60, 2))

    def settled(kernel, **parameters):
        made = make_kernel(kernel, X=X, **parameters)
        return is_indefinite(KernelData.of_gram(made.matrix(X), None, made), 0)

    assert not settled(product)
    assert settled(lambda x, y: math.tanh(2 * float(x @ y) - 1))
    assert not settled("polynomial", degree=3, coef0=1.0)
    assert settled("polynomial", degree=2, gamma=0.1, coef0=-1.0)
    with pytest.warns(UserWarning, match="'polynomial' is not positive"):
        tc.KernelKMeans(3, kernel="polynomial", coef0=-3.0, random_state=0).fit(X)


def test_only_distances_make_a_kernel_indefinite():
    # Minus half the squared distances: no kernel, but of the linear kernel's distances.
    X = np.random.default_rng(15).random((50, 2))
    gram = -0.5 * np.square(X[:, None] - X).sum(axis=2)
    assert not is_indefinite(KernelData.of_gram(gram, None), 0)
    given = tc.KernelKMeans(3, kernel="precomputed", random_state=0).fit(X, gram=gram)
    linear = KernelData.of_gram(X @ X.T, None).inertia(given.labels_)
    assert given.kernel_cost_ == pytest.approx(linear, rel=1e-10)
    assert given.kernel_cost_ == pytest.approx(
        KMeans(3, n_init=10, random_state=0).fit(X).inertia_, rel=0.02
    )


def test_a_large_matrix_is_sampled():
    X = np.random.default_rng(16).random((700, 2))
    gram = make_kernel("rbf", X=X).matrix(X)
    assert not is_indefinite(KernelData.of_gram(gram, None), 0)
    assert is_indefinite(KernelData.of_gram(gram + signed_gram(0, 700), None), 0)


def test_indefinite_kernels_are_approximated_with_one_warning():
    X = np.random.default_rng(17).normal(size=(60, 2))
    model = tc.KernelKMeans(
        3,
        kernel="epsilon",
        kernel_params={"epsilon": 1.0},
        approximation="nystroem",
        random_state=0,
    )
    with pytest.warns(UserWarning, match="not positive semidefinite") as record:
        model.fit(X)
    assert len(record) == 1
    np.testing.assert_array_equal(model.predict(X), model.labels_)


# ---- weights ------------------------------------------------------------------------------


def test_weights_are_repetition():
    rng = np.random.default_rng(18)
    X, times = rng.random((30, 2)), rng.integers(1, 4, 30)
    repeated = np.repeat(np.arange(30), times)
    kernel = make_kernel("rbf", gamma=4.0, X=X)
    weighted = KernelData.of_gram(kernel.matrix(X), times.astype(float))
    long = KernelData.of_gram(kernel.matrix(X[repeated]), None)
    for seed in range(5):
        groups = np.random.default_rng(seed).integers(0, 4, 30)
        for max_iter in range(1, 8):
            one = lloyd(weighted, groups, 4, max_iter)
            other = lloyd(long, groups[repeated], 4, max_iter)
            np.testing.assert_array_equal(one.labels[repeated], other.labels)
            assert one.cost == pytest.approx(other.cost, rel=1e-10)
    models = [
        tc.KernelKMeans(4, gamma=4.0, n_init=60, random_state=0).fit(X, sample_weight=times),
        tc.KernelKMeans(4, gamma=4.0, n_init=60, random_state=0).fit(X[repeated]),
    ]
    assert models[0].kernel_cost_ == pytest.approx(models[1].kernel_cost_, rel=1e-9)
    assert same_partition(models[0].labels_[repeated], models[1].labels_)


@pytest.mark.parametrize("parameters", [{}, {"kernel": "linear"}, {"approximation": "nystroem"}])
def test_rows_of_weight_zero_count_for_nothing(parameters):
    rng = np.random.default_rng(19)
    X, weight = rng.random((50, 2)), rng.uniform(0.5, 2.0, 50)
    weight[::7] = 0.0
    kept = weight > 0
    model = tc.KernelKMeans(3, random_state=0, **parameters)
    part = clone(model).fit(X[kept], sample_weight=weight[kept])
    X[~kept] += 100.0 * (parameters == {})
    whole = clone(model).fit(X, sample_weight=weight)
    np.testing.assert_array_equal(whole.labels_[kept], part.labels_)
    assert whole.kernel_cost_ == part.kernel_cost_
    np.testing.assert_array_equal(whole.labels_[~kept], part.predict(X[~kept]))
    np.testing.assert_array_equal(whole.predict(X), whole.labels_)


def test_equal_weights_are_none():
    X = np.random.default_rng(20).random((80, 2))
    model = tc.KernelKMeans(3, random_state=0)
    plain = clone(model).fit(X)
    twos = clone(model).fit(X, sample_weight=np.full(80, 2.0))
    np.testing.assert_array_equal(twos.labels_, plain.labels_)
    assert twos.kernel_cost_ == pytest.approx(2 * plain.kernel_cost_, rel=1e-12)


# ---- few rows -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", DEFINITE)
def test_one_row(name):
    model = tc.KernelKMeans(1, kernel=name, **DEFINITE[name]).fit([[0.5, 2.0]])
    assert model.labels_.tolist() == [0]
    assert model.kernel_cost_ == 0.0
    assert model.predict([[9.0, 9.0], [0.0, 0.0]]).tolist() == [0, 0]


@pytest.mark.parametrize(
    "parameters",
    [
        *({"kernel": name} for name in DEFINITE),
        {"approximation": "nystroem"},
        {"approximation": "rff"},
    ],
)
def test_rows_that_are_all_equal_make_one_cluster(parameters):
    X = np.full((9, 2), 0.3)
    with pytest.warns(
        ConvergenceWarning, match="Only 1 distinct cluster was found, fewer than n_clusters=3"
    ):
        model = tc.KernelKMeans(3, random_state=0, **parameters).fit(X)
    assert model.labels_.tolist() == [0] * 9
    assert model.kernel_cost_ == 0.0
    assert model.score(X) == 0.0
    assert model.predict([[0.3, 0.3], [5.0, 1.0]]).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"gamma": 0.5},
            r"^The kernel 'rbf' is 0 for any two rows: .* clusters are arbitrary\. Try a smaller "
            r'gamma \(it is 0\.5\) or scale="standard"\.$',
        ),
        ({"kernel": "laplacian", "gamma": 2.0}, r"'laplacian' is 0 for .* \(it is 2\)"),
        ({"kernel": "histogram_intersection"}, r"is 0 for .* clusters are arbitrary\.$"),
        ({"kernel": "precomputed"}, r"^The kernel matrix is 0 for .* clusters are arbitrary\.$"),
    ],
)
def test_rows_that_are_nothing_to_each_other_make_arbitrary_clusters(parameters, message):
    X = 1e5 * np.eye(6)
    gram = {"gram": np.eye(6)} if parameters.get("kernel") == "precomputed" else {}
    model = tc.KernelKMeans(2, random_state=0, **parameters)
    with pytest.warns(UserWarning, match=message) as record:
        model.fit(X, **gram)
    assert len(record) == 1 and record[0].filename == __file__
    model.set_params(n_clusters=6).fit(X, **gram)  # every row a cluster is not arbitrary
    if gram:
        gram["gram"][2, 4] = gram["gram"][4, 2] = 0.5
        model.set_params(n_clusters=2).fit(X, **gram)
        assert model.labels_[2] == model.labels_[4]


@pytest.mark.parametrize("name", ["rbf", "linear", "laplacian"])
def test_as_many_clusters_as_there_are_distinct_rows(name):
    X = np.repeat([[0.0, 0.0], [1.0, 5.0], [7.0, 1.0]], [5, 3, 4], axis=0)
    with pytest.warns(ConvergenceWarning, match="Only 3 distinct") as record:
        model = tc.KernelKMeans(5, kernel=name, random_state=0).fit(X)
    assert record[0].filename == __file__
    assert same_partition(model.labels_, [0] * 5 + [1] * 3 + [2] * 4)
    assert sorted(set(model.labels_)) == [0, 1, 2]
    assert model.kernel_cost_ == 0.0


def test_every_row_a_cluster():
    X = np.random.default_rng(21).random((8, 2))
    model = tc.KernelKMeans(gamma=5.0, random_state=0).fit(X)
    assert sorted(model.labels_) == list(range(8))
    assert model.kernel_cost_ == 0.0


@FEWER
@QUIET
def test_every_number_of_clusters_of_small_tables():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 9))
        X = rng.integers(0, 3, (n, 2)).astype(float)
        k = int(rng.integers(1, n + 1))
        name = rng.choice(list(KERNELS))
        weight = rng.integers(1, 4, n).astype(float)
        given = {"kernel_params": {"epsilon": 1.0}} if name == "epsilon" else KERNELS[name]
        model = tc.KernelKMeans(k, kernel=name, n_init=2, random_state=seed, **given)
        model.fit(X, sample_weight=weight)
        found = sorted(set(model.labels_))
        assert found == list(range(len(found)))
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        gram = make_kernel(name, X=X, **given).matrix(X)
        expected = cost_of(gram, model.labels_, weight)
        assert model.kernel_cost_ == pytest.approx(expected, rel=1e-9, abs=1e-11)
        if name in DEFINITE:
            distinct = len(np.unique(gram, axis=0))
            assert len(found) <= min(k, distinct)
            if name not in ("cosine", "linear", "hellinger"):
                assert len(found) == min(k, distinct)


# ---- the same for everybody ---------------------------------------------------------------


@QUIET
@pytest.mark.parametrize("n_init", [1, 4])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"kernel": "linear"},
        {"kernel": "epsilon", "kernel_params": {"epsilon": 0.2}},
        {"approximation": "nystroem", "n_components": 30},
        {"approximation": "rff", "n_components": 30},
    ],
)
def test_bits_do_not_depend_on_the_threads(parameters, n_init):
    X = np.random.default_rng(22).random((1700, 2))
    one, three = (
        tc.KernelKMeans(6, n_init=n_init, random_state=0, n_jobs=n_jobs, **parameters).fit(X)
        for n_jobs in (1, 3)
    )
    np.testing.assert_array_equal(one.labels_, three.labels_)
    assert one.kernel_cost_ == three.kernel_cost_
    assert one.n_iter_ == three.n_iter_
    assert one.score(X) == three.score(X)


def test_the_seed_decides():
    X = np.random.default_rng(23).random((200, 2))
    fits = [tc.KernelKMeans(9, n_init=1, random_state=seed).fit(X) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(fits[0].labels_, fits[1].labels_)
    assert (fits[0].labels_ != fits[2].labels_).any()


def test_more_starts_cost_no_more():
    X = np.random.default_rng(24).random((150, 2))
    costs = [tc.KernelKMeans(8, n_init=n, random_state=5).fit(X).kernel_cost_ for n in (1, 3, 10)]
    assert costs[0] >= costs[1] >= costs[2]
    assert costs[0] > costs[2]


# ---- use ----------------------------------------------------------------------------------


def test_models_can_be_pickled():
    X = np.random.default_rng(26).random((60, 2))
    for parameters in ({}, {"approximation": "nystroem"}, {"kernel": "linear"}):
        model = tc.KernelKMeans(3, random_state=0, **parameters).fit(X)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(X), model.labels_)


def test_fit_predict_takes_weights_and_matrices():
    X = np.random.default_rng(27).random((40, 2))
    weight = np.linspace(0, 1, 40)
    gram = make_kernel("rbf", X=X).matrix(X)
    model = tc.KernelKMeans(3, kernel="precomputed", random_state=0)
    labels = model.fit_predict(X, sample_weight=weight, gram=gram)
    np.testing.assert_array_equal(labels, model.labels_)


def test_it_is_a_reference_for_trees():
    X, _ = make_circles(300, noise=0.03, factor=0.3, random_state=0)
    model = tc.KernelKMeans(2, gamma=5.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the labels are not those of nearest means
        tree = tc.ExKMC(reference=model, max_leaves=4, base_tree=None).fit(X)
    assert tree.tree_.n_leaves <= 4


def test_verbose_prints_a_line_for_each_start(capsys):
    X = np.random.default_rng(28).random((50, 2))
    for parameters in ({}, {"kernel": "linear"}):
        tc.KernelKMeans(3, n_init=4, random_state=0, verbose=1, **parameters).fit(X)
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 4
        assert all(line.startswith("[KernelKMeans] 50 rows, start ") for line in lines)
        assert " start 4 of 4, " in lines[3]
    tc.KernelKMeans(3, random_state=0).fit(X)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    "where",
    ["_kernel_lloyd.run_lloyd", "kernel_kmeans.make_kernel_data", "_kernel_lloyd._recomputed"],
)
def test_ctrl_c_leaves_the_estimator_as_it_was(where, n_jobs, monkeypatch):
    X = np.random.default_rng(29).random((50, 2))
    model = tc.KernelKMeans(3, random_state=0, n_jobs=n_jobs).fit(X)
    before = dict(model.__dict__)

    def interrupt(*given, **named):
        raise KeyboardInterrupt

    module, name = where.split(".")
    monkeypatch.setattr(
        {"_kernel_lloyd": _kernel_lloyd, "kernel_kmeans": kernel_kmeans}[module], name, interrupt
    )
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:30])
    assert model.__dict__.keys() == before.keys()
    assert all(model.__dict__[name] is value for name, value in before.items())
    with pytest.raises(KeyboardInterrupt):
        fresh = tc.KernelKMeans(3).fit(X)
    with pytest.raises(NotFittedError):
        tc.KernelKMeans(3).predict(X)
    assert "fresh" not in locals()


# ---- errors -------------------------------------------------------------------------------

X = np.random.default_rng(30).random((20, 2))
SQUARE = np.eye(20)


@pytest.mark.parametrize(
    ("parameters", "given", "error", "message"),
    [
        ({"n_clusters": 21}, {}, ValueError, "n_samples=20 must be at least n_clusters=21: Kernel"),
        (
            {"n_clusters": 3},
            {"sample_weight": [1, 1] + [0] * 18},
            ValueError,
            "n_samples=2 must be at least n_clusters=3",
        ),
        ({"n_clusters": 0}, {}, ValueError, "The 'n_clusters' parameter of KernelKMeans"),
        ({"gamma": 0.0}, {}, ValueError, "The 'gamma' parameter of KernelKMeans.*Got 0.0"),
        ({"gamma": -1.5}, {}, ValueError, "The 'gamma' parameter of KernelKMeans.*Got -1.5"),
        ({"gamma": np.inf}, {}, ValueError, "The 'gamma' parameter of KernelKMeans.*Got inf"),
        ({"kernel": "sigmoid"}, {}, ValueError, "The 'kernel' parameter of KernelKMeans"),
        ({"kernel": "epsilon"}, {}, ValueError, "'epsilon' needs kernel_params="),
        ({"kernel_params": {"a": 1}}, {}, ValueError, "Unknown kernel_params 'a'"),
        ({"n_init": 0}, {}, ValueError, "The 'n_init' parameter"),
        ({"max_iter": 0}, {}, ValueError, "The 'max_iter' parameter"),
        ({"tol": -1.0}, {}, ValueError, "The 'tol' parameter"),
        ({"approximation": "svd"}, {}, ValueError, "The 'approximation' parameter"),
        ({"approximation": "rff", "kernel": "laplacian"}, {}, ValueError, "only for the kernel"),
        ({"kernel": "precomputed"}, {}, ValueError, "needs the kernel matrix"),
        ({}, {"gram": SQUARE}, ValueError, "gram was given, but kernel='rbf'"),
        (
            {"kernel": "precomputed", "approximation": "nystroem"},
            {"gram": SQUARE},
            ValueError,
            "approximation='nystroem' needs the kernel itself",
        ),
        (
            {"kernel": "precomputed"},
            {"gram": np.eye(3)},
            ValueError,
            r"must have the shape \(20, 20",
        ),
        (
            {"kernel": "precomputed"},
            {"gram": np.triu(np.ones((20, 20)))},
            ValueError,
            "gram is not symmetric",
        ),
        (
            {"kernel": "precomputed"},
            {"gram": np.full((20, 20), np.nan)},
            ValueError,
            "gram contains NaN",
        ),
        ({"kernel": "precomputed"}, {"gram": SQUARE * 1e307}, ValueError, "overflow float64"),
        ({"kernel": lambda x, y: "no"}, {}, TypeError, "must give a number"),
        ({}, {"sample_weight": [-1] * 20}, ValueError, "sample_weight"),
    ],
)
def test_what_is_wrong_is_said(parameters, given, error, message):
    with pytest.raises(error, match=message):
        tc.KernelKMeans(**{"n_clusters": 3, **parameters}).fit(X, **given)


def test_the_default_number_of_clusters_is_named():
    with pytest.raises(
        ValueError, match=r"n_samples=5 must be at least n_clusters=8 \(the default\)"
    ):
        tc.KernelKMeans().fit(X[:5])


@pytest.mark.parametrize("name", ["chi2", "additive_chi2", "histogram_intersection", "hellinger"])
def test_negative_cells_are_named(name):
    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, -0.5, 2.0]})
    with pytest.raises(ValueError, match=r"needs values >= 0, but column 'b' holds -0.5 in row 1"):
        tc.KernelKMeans(2, kernel=name).fit(frame)
    model = tc.KernelKMeans(2, kernel=name, random_state=0).fit(frame.with_columns(b=pl.col("a")))
    with pytest.raises(ValueError, match=r"column 'b' holds -0.5 in row 1"):
        model.predict(frame)


def test_a_matrix_beyond_memory_names_its_size_and_a_way_out(monkeypatch):
    monkeypatch.setattr("treeclust_rs._util.arrays.MAX_ARRAY_BYTES", 8 * 300**2 - 1)
    many = np.random.default_rng(31).random((300, 2))
    with pytest.raises(ValueError, match=r'300 x 300 rows would take .* GiB.*approximation="nystr'):
        tc.KernelKMeans(3).fit(many)
    model = tc.KernelKMeans(3, approximation="nystroem", n_components=20, random_state=0).fit(many)
    assert len(model.labels_) == 300


def test_predict_checks_what_it_is_given():
    gram = X @ X.T
    model = tc.KernelKMeans(2, kernel="precomputed", random_state=0).fit(X, gram=gram)
    with pytest.raises(ValueError, match=r"20 rows of the fit: predict\(X, gram=K\)"):
        model.predict(X)
    with pytest.raises(
        ValueError, match=r"gram has the shape \(2, 3\).*must have the shape \(2, 20"
    ):
        model.predict(X[:2], gram=np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"first such cell is gram\[1, 4\]"):
        model.predict(X[:2], gram=np.where(np.arange(40).reshape(2, 20) == 24, np.inf, 1.0))
    with pytest.raises(TypeError, match="gram must hold numbers"):
        model.predict(X[:1], gram=[["a"] * 20])
    with pytest.raises(ValueError, match="gram and gram_diagonal together"):
        model.score(X, gram=gram)
    with pytest.raises(ValueError, match=r"gram_diagonal has the shape \(3,\)"):
        model.score(X, gram=gram, gram_diagonal=[1.0, 2.0, 3.0])
    rbf = tc.KernelKMeans(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="gram was given, but the fit was with kernel='rbf'"):
        rbf.predict(X, gram=gram)
    with pytest.raises(ValueError, match="NaN"):
        rbf.predict([[np.nan, 1.0]])


def test_rows_alone_cannot_be_clustered():
    kernel = make_kernel("rbf", X=X)
    stocks = KernelData(kernel, None, None, None, None, kernel.diagonal(X), 20.0, 0.0, rows=X)
    with pytest.raises(ValueError, match="needs features of the rows or their kernel matrix"):
        cluster(stocks, 2)
