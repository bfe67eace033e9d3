"""Sums of kernel values over clusters: from a matrix, from features, from the rows."""

from __future__ import annotations

import math
import threading
import time

import numpy as np
import pytest

import kernel_names
from treeclust_rs._data.units import Units
from treeclust_rs._kernels.kernel_data import KernelData, KernelRows
from treeclust_rs._kernels.kernels import Kernel
from treeclust_rs._kernels.low_rank import approximate
from treeclust_rs._kernels.means import gram_sums, squared_distances
from treeclust_rs._kernels.parameters import make_kernel
from treeclust_rs._util.threads import map_in_order

KERNELS = kernel_names.DEFINITE | {
    "polynomial": {"degree": 2},
    "epsilon": {"kernel_params": {"epsilon": 0.6}},
}
FEATURES = ("linear", "cosine", "hellinger")


def problem(seed=0, n=60, d=3, k=4):
    """Rows, weights, and labels of k clusters of which one is empty; some rows are in none."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    X[7] = X[3]
    labels = rng.integers(-1, k - 1, n)
    return X, rng.uniform(0.2, 3.0, n), labels, k


def units(X):
    return Units(np.zeros(X.shape[1]), np.ones(X.shape[1]))


def sums_by_definition(gram, labels, weight, k):
    sums = np.empty((len(gram), k))
    for i in range(len(gram)):
        for label in range(k):
            members = np.flatnonzero(labels == label)
            sums[i, label] = math.fsum(weight[j] * gram[i, j] for j in members)
    return sums


def distances_by_definition(gram, labels, weight, k):
    """Eq. (5) of the paper, with weights."""
    distances = np.full((len(gram), k), np.inf)
    for label in range(k):
        members = np.flatnonzero(labels == label)
        if not len(members):
            continue
        size = math.fsum(weight[members])
        own = math.fsum(weight[i] * weight[j] * gram[i, j] for i in members for j in members)
        for i in range(len(gram)):
            cross = math.fsum(weight[j] * gram[i, j] for j in members)
            distances[i, label] = gram[i, i] + own / size**2 - 2.0 * cross / size
    return distances


def cost_by_definition(gram, labels, weight):
    distances = distances_by_definition(gram, labels, weight, labels.max() + 1)
    return math.fsum(weight[i] * distances[i, label] for i, label in enumerate(labels))


def centered(gram, weight):
    """The kernel of the features less their weighted mean."""
    share = weight / weight.sum()
    mean = gram @ share
    return gram - mean[:, None] - mean + share @ mean


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_sums_distances_and_costs_equal_their_definitions(name, weighted):
    X, weight, labels, k = problem()
    kernel = make_kernel(name, X=X, **KERNELS[name])
    gram = kernel.matrix(X)
    w = weight if weighted else np.ones(len(X))
    given = weight if weighted else None
    distances = distances_by_definition(gram, labels, w, k)
    cost = cost_by_definition(gram, np.maximum(labels, 0), w)
    for stocks in (
        KernelData.of_gram(gram, given),
        KernelData.of_kernel(KernelRows(kernel, X.copy(), units(X), given)),
        KernelData.of_rows(KernelRows(kernel, X.copy(), units(X), given)),
    ):
        seen = gram if stocks.features is None else centered(gram, w)
        assert stocks.n_rows == len(X)
        np.testing.assert_allclose(stocks.diagonal, seen.diagonal(), rtol=0, atol=1e-13)
        assert stocks.trace == pytest.approx(w @ seen.diagonal(), rel=1e-12)
        sums = stocks.label_sums(labels, k)
        expected = sums_by_definition(seen, labels, w, k)
        np.testing.assert_allclose(sums, expected, rtol=0, atol=1e-12)
        found = stocks.distances(labels, k)
        np.testing.assert_allclose(found, distances, rtol=0, atol=1e-12)
        assert found.flags.c_contiguous
        assert stocks.inertia(np.maximum(labels, 0)) == pytest.approx(cost, rel=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_where_the_values_come_from(name):
    X, weight, _, _ = problem()
    kernel = make_kernel(name, X=X, **KERNELS[name])
    held = KernelData.of_kernel(KernelRows(kernel, X.copy(), units(X), weight))
    tiled = KernelData.of_rows(KernelRows(kernel, X.copy(), units(X), weight))
    assert (held.features is None) == (tiled.features is None) == (name not in FEATURES)
    assert (held.gram is None) == (name in FEATURES)
    assert tiled.gram is None
    if name not in FEATURES:
        np.testing.assert_array_equal(held.rows, X)
        np.testing.assert_array_equal(tiled.rows, X)
    else:
        np.testing.assert_allclose(held.features + held.mean, kernel.explicit_features(X))


@pytest.mark.parametrize("name", ["rbf", "laplacian", "linear", "additive_chi2", "callable"])
def test_rows_need_no_kernel_matrix(name, monkeypatch):
    rng = np.random.default_rng(1)
    n = 60 if name == "callable" else 2500
    X = rng.random((n, 3))
    labels = rng.integers(0, 4, n)
    kernel = make_kernel((lambda x, y: float(x @ y)) if name == "callable" else name, X=X)
    expected = KernelData.of_gram(kernel.matrix(X), None).distances(labels, 4)
    monkeypatch.setattr("treeclust_rs._util.arrays.MAX_ARRAY_BYTES", 1 << 20)
    if name == "rbf":
        with pytest.raises(ValueError, match=r'2,500 x 2,500 rows would.*approximation="nystroem"'):
            KernelData.of_kernel(KernelRows(kernel, X.copy(), units(X), None))
    monkeypatch.setattr(Kernel, "matrix", None)
    stocks = KernelData.of_rows(KernelRows(kernel, X.copy(), units(X), None))
    np.testing.assert_allclose(stocks.distances(labels, 4), expected, rtol=0, atol=1e-11)


def test_a_callable_is_asked_once_for_a_pair():
    X, weight, labels, k = problem(n=20)
    asked = []

    def product(x, y):
        asked.append((x.tobytes(), y.tobytes()))
        return float(x @ y)

    kernel = make_kernel(product, X=X)
    stocks = KernelData.of_rows(KernelRows(kernel, X, units(X), weight, n_jobs=2))
    asked.clear()
    stocks.label_sums(labels, k)
    assert len(asked) == 20 * 21 // 2


@pytest.mark.parametrize("name", ["rbf", "additive_chi2", "linear"])
def test_bits_do_not_depend_on_the_threads(name):
    rng = np.random.default_rng(2)
    X, labels = rng.random((2600, 3)), rng.integers(-1, 5, 2600)
    kernel = make_kernel(name, X=X)
    for make in (KernelData.of_kernel, KernelData.of_rows):
        one, three = (make(KernelRows(kernel, X.copy(), units(X), None, n)) for n in (1, 3))
        np.testing.assert_array_equal(one.label_sums(labels, 5), three.label_sums(labels, 5))
        np.testing.assert_array_equal(one.distances(labels, 5), three.distances(labels, 5))
        labels = np.abs(labels)
        assert one.inertia(labels) == three.inertia(labels)


def test_features_of_an_approximation():
    X, weight, labels, k = problem()
    kernel = make_kernel("rbf", X=X)
    how = {"method": "nystroem", "n_components": 10}
    found = approximate(kernel, X, sample_weight=weight, random_state=0, **how)
    gram = found.features @ found.features.T
    given = KernelRows(kernel, X, units(X), weight)
    made = KernelData.of_approximation(given, random_state=0, **how)
    mapped = KernelData.of_rows(given, feature_map=found)
    assert made.feature_map is not None
    assert len(made.feature_map.features) == 0
    for stocks in (made, mapped):
        expected = distances_by_definition(gram, labels, weight, k)
        np.testing.assert_allclose(stocks.distances(labels, k), expected, rtol=0, atol=1e-10)


def test_distances_of_a_semidefinite_kernel_are_not_negative():
    X = np.repeat(np.random.default_rng(3).random((5, 2)), 40, axis=0)
    labels = np.repeat(np.arange(5), 40)
    kernel = make_kernel("rbf", gamma=0.3, X=X)
    for stocks in (
        KernelData.of_kernel(KernelRows(kernel, X, units(X), None)),
        KernelData.of_rows(KernelRows(kernel, X, units(X), None)),
    ):
        assert (stocks.distances(labels, 5) >= 0).all()
        assert stocks.inertia(labels) == 0.0


def test_distances_of_other_kernels_may_be_negative():
    gram = np.array([[1.0, 2.0], [2.0, 1.0]])
    stocks = KernelData.of_gram(gram, None)
    np.testing.assert_array_equal(stocks.distances(np.array([0, 0]), 1), [[-0.5], [-0.5]])
    assert stocks.inertia(np.array([0, 0])) == -1.0


def test_costs_far_from_the_origin_keep_their_digits():
    X = np.random.default_rng(4).random((50, 2))
    labels = np.arange(50) % 3
    stocks = [
        KernelData.of_kernel(KernelRows(make_kernel("linear", X=rows), rows, units(rows), None))
        for rows in (X.copy(), X + 2.0**20)
    ]
    assert stocks[1].inertia(labels) == pytest.approx(stocks[0].inertia(labels), rel=1e-9)


def test_overflow_is_an_error():
    X = np.array([[1e200], [-1e200]])
    with pytest.raises(ValueError, match="overflow float64"):
        KernelData.of_kernel(KernelRows(make_kernel("linear", X=[[1.0]]), X, units(X), None))


def test_sums_of_a_wide_matrix():
    rng = np.random.default_rng(5)
    gram, labels = rng.normal(size=(2100, 7)), rng.integers(-1, 3, 2100)
    weight = rng.normal(size=2100)
    expected = [(weight * (labels == label)) @ gram for label in range(4)]
    found = gram_sums(gram, labels, weight, 4, 2)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(found, gram_sums(gram, labels, weight, 4, 1))


def test_squared_distances_clip_only_rounding():
    diagonal = np.array([1.0, 1.0, 1.0])
    sums = np.array([[1.0 + 1e-13], [1.0 + 1e-6], [0.5]])
    found = squared_distances(diagonal, sums, np.array([1.0]), np.array([1.0]))
    np.testing.assert_array_equal(found[:, 0] == 0, [True, False, False])
    assert found[1, 0] < 0 < found[2, 0]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_work_in_order_can_be_broken_off(n_jobs):
    cancelled, done, found = threading.Event(), [], []

    def work(item):
        if item == 2:
            raise KeyboardInterrupt
        if item > 2:
            is_main = threading.current_thread() is threading.main_thread()
            assert cancelled.wait(0.2 if is_main else 30) != is_main
        done.append(item)
        return item

    with pytest.raises(KeyboardInterrupt):
        found.extend(map_in_order(work, range(50), n_jobs, cancelled.set))
    assert found in ([], [0], [0, 1])  # as far as the calling thread came
    assert len(done) <= 5
    assert cancelled.is_set() == (n_jobs > 1)


def test_the_calling_thread_works_too_and_results_keep_their_order():
    workers = set()

    def work(item):
        workers.add(threading.current_thread())
        time.sleep(0.002)
        return item

    assert list(map_in_order(work, range(200), 3)) == list(range(200))
    assert threading.main_thread() in workers
    assert 2 <= len(workers) <= 3


def test_the_first_error_in_order_is_raised():
    def work(item):
        time.sleep(0.05 if item == 0 else 0.0)
        raise ValueError(str(item))

    with pytest.raises(ValueError, match=r"^0$"):
        list(map_in_order(work, range(9), 3))


def test_threads_that_work_on_are_stopped():
    busy = threading.Event()

    def work(_):
        if threading.current_thread() is threading.main_thread():
            assert busy.wait(30)
            raise KeyboardInterrupt
        busy.set()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            time.sleep(0.001)

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(map_in_order(work, range(2), 2))
    assert time.monotonic() - started < 10
