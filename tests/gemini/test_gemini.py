"""GEMINIs against their definitions: values, gradients, degenerate clusters, refusals."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.metrics import pairwise_distances

from oracles import gemini as oracle
from treeclust_rs.estimators.kauri import Kauri
from treeclust_rs.gemini import (
    GEMINIS,
    KL,
    METRICS,
    MMD,
    EnergyDistance,
    SquaredHellinger,
    TotalVariation,
    Wasserstein,
    make_gemini,
)
from treeclust_rs.gemini import transport as module

ONE_VS_ALL = [name for name in GEMINIS if name.endswith("_ova")]
WITH_ROWS = [name for name in GEMINIS if name.startswith(("mmd", "wasserstein"))]
# What roundings do to a sum of shares of 1.
ROUNDING = 1e-13


def soft(n, k, seed=0, sharpness=1.0, simplex=True):
    rng = np.random.default_rng(seed)
    logits = sharpness * rng.normal(size=(n, k))
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) if simplex else weights


def hard(labels, k):
    return np.eye(k)[labels]


def rows(n, d=3, seed=0):
    return np.random.default_rng(100 + seed).normal(size=(n, d))


# ---- values and gradients -------------------------------------------------------------------


def variants():
    """Every objective, and kernels and distances of every kind."""
    yield from ((name, {}) for name in GEMINIS)
    for form in ("ova", "ovo"):
        yield f"mmd_{form}", {"kernel": "rbf", "gamma": 0.5}
        yield f"mmd2_{form}", {"kernel": "polynomial", "degree": 2}
        for metric in ("sqeuclidean", "cosine", "cityblock"):
            yield f"wasserstein_{form}", {"metric": metric}


@pytest.mark.parametrize(("name", "parameters"), list(variants()), ids=str)
@pytest.mark.parametrize(("k", "simplex"), [(2, True), (2, False), (4, True), (4, False)])
def test_values_follow_the_definitions_and_gradients_their_differences(
    name, parameters, k, simplex
):
    gemini = make_gemini(name, **parameters)
    assert gemini.name == name
    y, X = soft(11, k, seed=k, simplex=simplex), rows(11, seed=k)
    affinity = gemini.affinity(X)
    value, gradient = gemini.value_and_gradient(y, affinity)
    assert isinstance(value, float)
    assert gradient.shape == y.shape
    assert value == pytest.approx(oracle.gemini(name, y, affinity), rel=1e-9)
    assert gemini.value(y, affinity) == value
    np.testing.assert_array_equal(gemini.gradient(y, affinity), gradient)
    slopes = oracle.central_differences(lambda at: gemini.value(at, affinity), y)
    np.testing.assert_allclose(gradient, slopes, rtol=0, atol=1e-5 * np.abs(slopes).max())


@pytest.mark.parametrize("name", ONE_VS_ALL)
def test_one_cluster_of_unequal_shares(name):
    gemini = make_gemini(name)
    y, X = soft(9, 2)[:, :1], rows(9)
    affinity = gemini.affinity(X)
    assert gemini.value(y, affinity) == pytest.approx(oracle.gemini(name, y, affinity), rel=1e-9)
    slopes = oracle.central_differences(lambda at: gemini.value(at, affinity), y)
    np.testing.assert_allclose(
        gemini.gradient(y, affinity), slopes, rtol=0, atol=1e-5 * np.abs(slopes).max()
    )


@st.composite
def problems(draw):
    """Probabilities of few distinct values, zeros among them, and rows of few distinct places."""
    n, k = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    weights = draw(st.lists(st.sampled_from([0, 0, 1, 2, 5, 1e-9]), min_size=n * k, max_size=n * k))
    y = np.array(weights, dtype=np.float64).reshape(n, k)
    y[y.sum(axis=1) == 0] = 1.0
    if draw(st.booleans()):
        y /= y.sum(axis=1, keepdims=True)
    places = draw(st.lists(st.integers(-2, 2), min_size=2 * n, max_size=2 * n))
    return y, np.array(places, dtype=np.float64).reshape(n, 2)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(problems())
def test_values_on_few_distinct_numbers(problem):
    y, X = problem
    for name in GEMINIS:
        if name == "kl_ovo" and not y.all():
            continue  # infinite
        gemini = make_gemini(name)
        affinity = gemini.affinity(X)
        value, gradient = gemini.value_and_gradient(y, affinity)
        expected = oracle.gemini(name, y, affinity)
        # A root loses half of the digits where it is small.
        size = 1e-7 if name.startswith("mmd_") else 1e-9
        assert value == pytest.approx(expected, rel=1e-9, abs=size * y.sum(axis=0).max()), name
        assert np.isfinite(gradient).all(), name


@settings(max_examples=60, deadline=None, derandomize=True)
@given(problems(), st.integers(0, 2**32 - 1))
def test_one_vs_all_gradients_support_a_convex_function(problem, seed):
    """Every D(., u) is convex, and so is pi D(y / (n pi), u) in y: no point lies below a tangent.

    That holds where there is no derivative too: for hard clusters, ties, clusters without mass.
    """
    y, X = problem
    rng = np.random.default_rng(seed)
    others = [
        hard(rng.integers(y.shape[1], size=len(y)), y.shape[1]),
        rng.dirichlet(np.ones(y.shape[1]), size=len(y)),
        y * rng.uniform(0.5, 2.0, size=y.shape),
    ]
    for name in ONE_VS_ALL:
        gemini = make_gemini(name)
        affinity = gemini.affinity(X)
        value, gradient = gemini.value_and_gradient(y, affinity)
        for other in others:
            tangent = value + float(np.sum(gradient * (other - y)))
            reached = gemini.value(other, affinity)
            assert reached >= tangent - 1e-7 * (1 + abs(value) + abs(reached)), name


# ---- Wasserstein ----------------------------------------------------------------------------


def emd_gemini(y, costs, form):
    """The definition, by POT as anybody would call it."""
    pi = y.mean(axis=0)
    kept = pi > 0
    w, pi = y[:, kept] / y[:, kept].sum(axis=0), pi[kept]
    if form == "ova":
        uniform = np.full(len(y), 1 / len(y))
        return sum(m * ot.emd2(c, uniform, costs) for m, c in zip(pi, w.T, strict=True))
    return sum(
        m * o * ot.emd2(c.copy(), v.copy(), costs)
        for m, c in zip(pi, w.T, strict=True)
        for o, v in zip(pi, w.T, strict=True)
    )


@pytest.mark.parametrize("form", ["ova", "ovo"])
@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "sqeuclidean"])
@pytest.mark.parametrize("k", [2, 3])
def test_moving_the_excess_costs_what_moving_all_costs(form, metric, k):
    for seed, sharpness in enumerate((1e-9, 0.1, 3.0, 40.0, 1000.0)):
        n = (5, 20, 60)[seed % 3]
        X = rows(n, seed=seed) * 10.0 ** (seed - 2)
        if seed == 3:
            X = np.round(X)  # many rows alike
        y = soft(n, k, seed=seed, sharpness=sharpness)
        named = Wasserstein(form == "ovo", metric=metric)
        costs = named.affinity(X)
        given_matrix = Wasserstein(form == "ovo", metric="precomputed")
        size = costs.max()
        expected = emd_gemini(y, costs, form)
        for gemini in (named, given_matrix):
            value = gemini.value(y, gemini.affinity(costs if gemini is given_matrix else X))
            assert value == pytest.approx(expected, rel=1e-11, abs=1e-14 * size)


@pytest.mark.parametrize("form", ["ova", "ovo"])
@pytest.mark.parametrize("p", [0.5, 1.0, 3.0])
def test_minkowski_distances_may_break_the_triangle_inequality(form, p):
    grid = np.array([[i, j] for i in range(4) for j in range(4)], dtype=np.float64)
    gemini = Wasserstein(form == "ovo", metric="minkowski", metric_params={"p": p})
    costs = gemini.affinity(grid)
    for y in (soft(16, 3), hard(np.arange(16) // 6, 3)):
        assert gemini.value(y, costs) == pytest.approx(emd_gemini(y, costs, form), rel=1e-9)


def test_two_clusters_are_one_problem_and_give_the_gradient_of_two():
    X, y = rows(20), soft(20, 2, sharpness=2.0)
    y[:, 1] *= 1e-6  # almost no mass
    y[:, 0] = 1 - y[:, 1]
    affinity = Wasserstein().affinity(X)
    value, gradient = Wasserstein().value_and_gradient(y, affinity)
    # A third cluster without mass makes it solve both.
    three = np.column_stack([y, np.zeros(20)])
    value_of_both, gradient_of_both = Wasserstein().value_and_gradient(three, affinity)
    assert value == pytest.approx(value_of_both, rel=1e-9)
    np.testing.assert_allclose(gradient, gradient_of_both[:, :2], rtol=0, atol=1e-9)


def test_wasserstein_of_separate_groups_is_the_way_between_them():
    X = np.array([[0.0], [0.0], [0.0], [10.0]])
    y = hard([0, 0, 0, 1], 2)
    # Cluster 0 has a quarter of the mass of all rows to move by 10, cluster 1 three quarters.
    affinity = Wasserstein().affinity(X)
    assert Wasserstein().value(y, affinity) == pytest.approx(0.75 * 2.5 + 0.25 * 7.5)
    assert Wasserstein(one_vs_one=True).value(y, affinity) == pytest.approx(2 * 0.75 * 0.25 * 10)


def test_wasserstein_on_a_line_is_the_area_between_distribution_functions():
    rng = np.random.default_rng(3)
    X = np.sort(rng.normal(size=80))[:, None]
    y = soft(80, 3, seed=3, sharpness=2.0)
    w = y / y.sum(axis=0)
    gaps = np.diff(X[:, 0])
    apart = np.abs(np.cumsum(w - 1 / 80, axis=0))[:-1]
    expected = float(y.mean(axis=0) @ (gaps @ apart))
    affinity = Wasserstein().affinity(X)
    assert Wasserstein().value(y, affinity) == pytest.approx(expected, rel=1e-12)


def test_an_unsolved_transport_is_an_error(monkeypatch):
    monkeypatch.setattr(module, "_MAX_PIVOTS", 1)
    y, X = soft(30, 3), rows(30)
    with pytest.raises(RuntimeError, match="was not solved"):
        Wasserstein().value(y, Wasserstein().affinity(X))


@pytest.mark.parametrize("one_vs_one", [False, True])
def test_the_energy_distance_is_by_mean_distances_within_and_between(one_vs_one):
    y, X = soft(12, 3), rows(12)
    gemini = Wasserstein(one_vs_one, metric="l1").energy
    assert isinstance(gemini, EnergyDistance)
    assert gemini.name == ("energy_ovo" if one_vs_one else "energy_ova")
    affinity = gemini.affinity(X)
    np.testing.assert_array_equal(affinity, Wasserstein(metric="l1").affinity(X))
    pi, w = y.mean(axis=0), y / y.sum(axis=0)
    others = w if one_vs_one else np.full((12, 1), 1 / 12)
    masses = pi if one_vs_one else np.ones(1)
    expected = sum(
        a * b * (2 * p @ affinity @ q - p @ affinity @ p - q @ affinity @ q)
        for a, p in zip(pi, w.T, strict=True)
        for b, q in zip(masses, others.T, strict=True)
    )
    value, gradient = gemini.value_and_gradient(y, affinity)
    assert value == pytest.approx(expected, rel=1e-12)
    assert value > 0
    slopes = oracle.central_differences(lambda at: gemini.value(at, affinity), y)
    np.testing.assert_allclose(gradient, slopes, rtol=0, atol=1e-5 * np.abs(slopes).max())


# ---- MMD and Kauri --------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian"])
def test_squared_mmd_of_hard_clusters_is_kauris_objective(kernel):
    """Appendix B: L / n - mean(K) one-vs-all, twice that one-vs-one."""
    X = load_iris().data[::3]
    n = len(X)
    model = Kauri(3, max_leaves=5, kernel=kernel).fit(X)
    y = hard(model.labels_, model.n_clusters_)
    gram = MMD(kernel=kernel).affinity(X)
    if kernel == "linear":  # affinity is of centered rows
        gram = X @ X.T
    expected = model.objective_ / n - gram.mean()
    for one_vs_one, factor in ((False, 1), (True, 2)):
        gemini = MMD(one_vs_one, squared=True, kernel=kernel)
        assert gemini.value(y, gemini.affinity(X)) == pytest.approx(factor * expected, rel=1e-10)
        given_gram = MMD(one_vs_one, squared=True, kernel="precomputed")
        value = given_gram.value(y, given_gram.affinity(gram))
        assert value == pytest.approx(factor * expected, rel=1e-10)


def test_one_vs_one_squared_mmd_is_twice_one_vs_all_for_soft_clusters_too():
    y, X = soft(15, 4), rows(15)
    affinity = MMD().affinity(X)
    one, other = (MMD(form, squared=True).value_and_gradient(y, affinity) for form in (False, True))
    assert other[0] == pytest.approx(2 * one[0], rel=1e-12)
    # Along the simplex the gradients are alike; across it the formulas differ.
    along = [part - part.mean(axis=1, keepdims=True) for part in (2 * one[1], other[1])]
    np.testing.assert_allclose(*along, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in GEMINIS if name.startswith("mmd")])
def test_far_from_the_origin(name):
    gemini, y = make_gemini(name), soft(20, 3)
    X = np.round(rows(20) * 256) / 4
    near, far = (gemini.value_and_gradient(y, gemini.affinity(at)) for at in (X, X + 2.0**40))
    assert far[0] == pytest.approx(near[0], rel=1e-9)
    np.testing.assert_allclose(far[1], near[1], rtol=0, atol=1e-9 * np.abs(near[1]).max())


def test_a_kernel_that_is_not_positive_semidefinite_has_the_root_0():
    gram = -np.eye(6)
    gemini = make_gemini("mmd_ova", kernel="precomputed")
    value, gradient = gemini.value_and_gradient(soft(6, 2), gemini.affinity(gram))
    assert value == 0
    assert not gradient.any()


# ---- symmetries -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", GEMINIS)
def test_the_order_of_clusters_and_rows_does_not_matter(name):
    gemini, y, X = make_gemini(name), soft(12, 3), rows(12)
    rng = np.random.default_rng(5)
    clusters, order = rng.permutation(3), rng.permutation(12)
    value, gradient = gemini.value_and_gradient(y, gemini.affinity(X))
    moved, slopes = gemini.value_and_gradient(y[order][:, clusters], gemini.affinity(X[order]))
    assert moved == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(slopes, gradient[order][:, clusters], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", GEMINIS)
def test_a_cluster_cut_in_two_alike_parts_changes_nothing_one_vs_all(name):
    gemini, y, X = make_gemini(name), soft(12, 3), rows(12)
    parts = np.column_stack([y[:, :2], 0.3 * y[:, 2], 0.7 * y[:, 2]])
    value, cut = (gemini.value(at, gemini.affinity(X)) for at in (y, parts))
    # One-vs-one neither: pairs of the parts add up to those of the whole.
    assert cut == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("name", [name for name in GEMINIS if name != "kl_ovo"])
def test_separate_clusters_have_a_greater_value_than_blurred_ones(name):
    X = np.concatenate([rows(10), rows(10, seed=1) + 20])
    labels = np.repeat([0, 1], 10)
    gemini = make_gemini(name)
    affinity = gemini.affinity(X)
    right = gemini.value(hard(labels, 2), affinity)
    blurred = gemini.value(0.6 * hard(labels, 2) + 0.2, affinity)
    assert right > blurred + 1e-3
    if gemini.uses_rows:
        wrong = gemini.value(hard(np.arange(20) % 2, 2), affinity)
        assert right > wrong


# ---- degenerate -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", GEMINIS)
@pytest.mark.parametrize(
    "y",
    [
        pytest.param(np.ones((6, 1)), id="one cluster"),
        pytest.param(np.ones((1, 1)), id="one row and cluster"),
        pytest.param(np.full((1, 3), 1 / 3), id="one row"),
        pytest.param(np.tile([0.1, 0.2, 0.7], (7, 1)), id="all rows alike"),
        pytest.param(np.tile([0.0, 0.0, 1.0], (7, 1)), id="all in one of three"),
        pytest.param(np.zeros((4, 2)), id="no mass at all"),
    ],
)
def test_clusters_that_are_not_apart_have_the_value_0(name, y):
    gemini = make_gemini(name)
    value, gradient = gemini.value_and_gradient(y, gemini.affinity(rows(len(y))))
    assert abs(value) <= 1e-15
    assert not np.signbit(value) or value < 0
    assert np.isfinite(gradient).all()
    empty = y.sum(axis=0) == 0
    assert not gradient[:, empty].any()
    if not name.startswith(("kl", "hellinger")):
        assert np.abs(gradient).max() <= 1e-12  # the subgradient that was chosen


@pytest.mark.parametrize("name", GEMINIS)
@pytest.mark.parametrize(
    "y",
    [
        pytest.param(hard([0, 1], 2), id="two rows"),
        pytest.param(hard([0, 0, 2, 2, 2], 4), id="clusters without mass"),
        pytest.param(np.array([[1.0, 0.0], [1.0, 5e-324], [1.0, 1e-300]]), id="hardly any mass"),
        pytest.param(np.array([[0.0, 1.0], [1e-17, 1.0], [1.0, 0.0]]), id="below roundings"),
        pytest.param(1e-320 * np.ones((3, 2)) * [[1, 2], [2, 1], [1, 1]], id="subnormal"),
    ],
)
@pytest.mark.parametrize("equal_rows", [False, True])
def test_extreme_probabilities_give_finite_numbers(name, y, equal_rows):
    gemini = make_gemini(name)
    X = np.ones((len(y), 2)) if equal_rows else rows(len(y))
    value, gradient = gemini.value_and_gradient(y, gemini.affinity(X))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    # What a softmax passes on.
    passed = y * (gradient - (y * gradient).sum(axis=1, keepdims=True))
    assert np.isfinite(passed).all()
    if equal_rows and gemini.uses_rows:
        assert value == 0
        assert not gradient.any()


# ---- affinities -----------------------------------------------------------------------------


def distances(metric):
    """Rows a metric is defined on, and its parameters."""
    X = np.abs(rows(9, d=2 if metric == "haversine" else 4))
    if metric in ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"):
        X = (X > 0.7).astype(np.float64)
    return X, {"p": 3} if metric == "minkowski" else {}


@pytest.mark.parametrize("metric", METRICS)
def test_distances_are_scikit_learns(metric):
    X, parameters = distances(metric)
    expected = pairwise_distances(
        X.astype(bool) if set(np.unique(X)) == {0, 1} else X, metric=metric, **parameters
    )
    gemini = Wasserstein(metric=metric, metric_params=parameters)
    np.testing.assert_allclose(gemini.affinity(X), expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    "metric", ["dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"]
)
def test_distances_of_booleans_ask_what_is_not_0(metric):
    X = np.random.default_rng(0).choice([0.0, 0.3, 2.0], size=(9, 6))
    gemini = Wasserstein(metric=metric)
    np.testing.assert_array_equal(gemini.affinity(X), gemini.affinity((X != 0) * 1.0))


def test_roundings_of_no_distance_are_0():
    directions = rows(9) / np.linalg.norm(rows(9), axis=1, keepdims=True)
    directions[4] = directions[2]
    by_function = Wasserstein(metric=lambda a, b: 1 - a @ b).affinity(directions)
    by_matrix = Wasserstein(metric="precomputed").affinity(1 - directions @ directions.T)
    for found in (by_function, by_matrix):
        assert not found.diagonal().any()
        assert found[2, 4] == found.min() == 0
        np.testing.assert_allclose(found, 1 - directions @ directions.T, atol=1e-15)


def test_affinities_are_any_arrays():
    y, whole = soft(6, 2), np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    for name in ("wasserstein_ova", "mmd2_ova"):
        gemini = make_gemini(name)
        expected = gemini.value(y, whole.astype(np.float64))
        for array in (whole, whole.tolist(), np.asfortranarray(whole, dtype=np.float32)):
            assert gemini.value(y, array) == expected


def test_equal_rows_are_at_distance_0():
    X = np.repeat(rows(4) + 1e6, 2, axis=0)
    found = Wasserstein().affinity(X)
    assert not found[::2, 1::2].diagonal().any()


def test_affinities_of_callables_and_precomputed_ones():
    X, y = rows(8), soft(8, 3)
    as_named = Wasserstein(metric="cityblock")
    called = Wasserstein(metric=lambda a, b, scale: scale * np.abs(a - b).sum(),
                         metric_params={"scale": 2.0})  # fmt: skip
    matrix = as_named.affinity(X)
    np.testing.assert_allclose(called.affinity(X), 2 * matrix, rtol=1e-15)
    found = [
        as_named.value(y, matrix),
        called.value(y, called.affinity(X)) / 2,
        Wasserstein(metric="precomputed").value(y, matrix),
    ]
    assert found == pytest.approx([found[0]] * 3, rel=1e-12)
    kernel = MMD(kernel=lambda a, b: float(a @ b))
    assert kernel.value(y, kernel.affinity(X)) == pytest.approx(MMD().value(y, MMD().affinity(X)))
    for gemini in (KL(), TotalVariation(), SquaredHellinger()):
        assert gemini.affinity(X) is None
        assert not gemini.uses_rows


@pytest.mark.parametrize(
    "gemini",
    [
        MMD(kernel="rbf", gamma="scale"),
        Wasserstein(metric="seuclidean"),
        Wasserstein(metric="mahalanobis"),
    ],
    ids=lambda gemini: gemini.name,
)
def test_settled_objectives_see_parts_as_the_whole(gemini):
    X = rows(30) * [1.0, 20.0, 0.1]
    part = np.arange(0, 30, 4)
    settled = gemini.settled(X)
    assert np.abs(gemini.affinity(X[part]) - gemini.affinity(X)[np.ix_(part, part)]).max() > 1e-3
    np.testing.assert_allclose(
        settled.affinity(X[part]), gemini.affinity(X)[np.ix_(part, part)], rtol=1e-12, atol=1e-14
    )
    assert settled.settled(X[part]) is settled


def test_distances_by_variance_of_constant_columns_and_single_rows():
    for metric in ("seuclidean", "mahalanobis"):
        X = rows(6)
        X[:, 1] = 3.0
        gemini = Wasserstein(metric=metric)
        kept = Wasserstein(metric=metric).affinity(X[:, [0, 2]])
        np.testing.assert_allclose(gemini.affinity(X), kept, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(gemini.affinity(X[:1]), [[0.0]])


# ---- names and errors -----------------------------------------------------------------------


def test_names():
    assert len(set(GEMINIS)) == 12
    made = {name: make_gemini(name) for name in GEMINIS}
    assert [gemini.name for gemini in made.values()] == list(GEMINIS)
    assert made["mmd2_ovo"] == MMD(one_vs_one=True, squared=True)
    assert make_gemini("wasserstein_ova", metric="l1") == Wasserstein(metric="l1")
    assert make_gemini(made["kl_ova"]) is made["kl_ova"]
    for gemini in made.values():
        assert pickle.loads(pickle.dumps(gemini)) == gemini
        assert copy.deepcopy(gemini) == gemini


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: make_gemini("mmd"), ValueError, "Unknown gemini 'mmd'. Known are hellinger_ova"),
        (lambda: make_gemini(3), TypeError, "gemini must be a name or a Gemini. Got int"),
        (
            lambda: make_gemini("mmd_ova", metric="l1", squared=True),
            ValueError,
            "Unknown parameters metric, squared of mmd_ova: it takes coef0, degree, gamma",
        ),
        (lambda: make_gemini("kl_ova", gamma=1), ValueError, "kl_ova: it takes none"),
        (lambda: make_gemini(KL(), gamma=1), ValueError, "gamma cannot be set on an objective"),
        (lambda: Wasserstein(metric="l3").affinity(rows(3)), ValueError, "Unknown metric 'l3'"),
        (lambda: Wasserstein(metric=3).affinity(rows(3)), TypeError, "a function of two rows. Got"),
        (
            lambda: Wasserstein(metric=lambda a, b: -float((a != b).any())).affinity(rows(3)),
            ValueError,
            "but distances are not negative",
        ),
        (
            lambda: Wasserstein(metric=np.dot).affinity(rows(3)),
            ValueError,
            "but the distance of a row from itself is 0",
        ),
        (
            lambda: Wasserstein(metric=lambda a, b: max(b[0] - a[0], 0)).affinity(rows(3)),
            ValueError,
            "distance is not symmetric",
        ),
        (
            lambda: Wasserstein(metric="minkowski", metric_params={"q": 3}).affinity(rows(3)),
            TypeError,
            "The distance 'minkowski' does not take metric_params={'q': 3}",
        ),
        (
            lambda: Wasserstein().affinity([[1.0, 2.0], [3.0, np.nan]]),
            ValueError,
            "Row 1, column 1 (counting from 0) is nan; distances need finite numbers",
        ),
        (
            lambda: Wasserstein(metric="precomputed").affinity(rows(3, d=2)),
            ValueError,
            "is square. Got the shape (3, 2) instead: Douglas takes the matrix as fit(X, affinity=",
        ),
        (lambda: MMD(kernel="l3").affinity(rows(3)), ValueError, "Unknown kernel 'l3'"),
        (
            lambda: Wasserstein(metric="correlation").affinity(np.ones((3, 4))),
            ValueError,
            "The distance 'correlation' of the rows 0 and 1 (counting from 0) is nan",
        ),
        (
            lambda: Wasserstein(metric=lambda a, b: "far").affinity(rows(3)),
            TypeError,
            "The metric must give a number. Got 'far' for the rows 0 and 0",
        ),
        (
            lambda: Wasserstein(metric=lambda a, b: np.nan).affinity(rows(3)),
            ValueError,
            "distance contains NaN",
        ),
        (
            lambda: Wasserstein(metric="precomputed").affinity(np.ones((3, 2))),
            ValueError,
            "A precomputed matrix of all rows is square. Got the shape (3, 2)",
        ),
        (
            lambda: Wasserstein(metric="precomputed").affinity(np.eye(3)),
            ValueError,
            "matrix[0, 0] is 1.0, but the distance of a row from itself is 0",
        ),
        (
            lambda: MMD(kernel="precomputed").affinity(np.arange(9.0).reshape(3, 3)),
            ValueError,
            "matrix is not symmetric: matrix[0, 2]",
        ),
        (
            lambda: Wasserstein().affinity(np.ones((100_000, 1))),
            ValueError,
            "The distances of 100,000 rows would take 74.5 GiB",
        ),
    ],
)
def test_what_is_refused(make, error, message):
    with pytest.raises(error, match=re.escape(message)):
        make()


@pytest.mark.parametrize("name", GEMINIS)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0.5, 0.5], [1.5, -0.5]], "that of cluster 1 in row 1 (counting from 0) is -0.5"),
        ([[0.5, np.nan], [1.0, 0.0]], "that of cluster 1 in row 0 (counting from 0) is nan"),
        ([[0.5, 0.5], [np.inf, 0.0]], "that of cluster 0 in row 1 (counting from 0) is inf"),
        ([0.5, 0.5], "must have the shape (n_samples, n_clusters), both at least 1. Got (2,)"),
        (np.ones((2, 0)), "both at least 1. Got (2, 0)"),
    ],
)
def test_probabilities_that_are_none(name, y, message):
    gemini = make_gemini(name)
    with pytest.raises(ValueError, match=re.escape(message)):
        gemini.value_and_gradient(y, gemini.affinity(rows(2)))


@pytest.mark.parametrize("name", WITH_ROWS)
def test_affinities_of_other_rows(name):
    gemini = make_gemini(name)
    with pytest.raises(ValueError, match=re.escape(f"{name} needs the affinity of the 4 rows")):
        gemini.value(soft(4, 2))
    with pytest.raises(ValueError, match=re.escape("of shape (4, 4). Got the shape (3, 3)")):
        gemini.value(soft(4, 2), gemini.affinity(rows(3)))


@pytest.mark.parametrize("form", ["ova", "ovo"])
def test_wasserstein_in_the_smallest_and_largest_units(form):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 2)), rng.dirichlet(np.ones(3), 40)
    gemini = make_gemini(f"wasserstein_{form}")
    value, gradient = gemini.value_and_gradient(y, gemini.affinity(X))
    for unit in (1e-30, 1e-15, 1e15):
        found, slope = gemini.value_and_gradient(y, gemini.affinity(X) * unit)
        assert found == pytest.approx(unit * value, rel=1e-9)
        np.testing.assert_allclose(slope / unit, gradient, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("gemini", ["wasserstein_ova", "mmd_ova", "mmd2_ovo"])
def test_too_many_rows_at_once_are_refused_with_how_many_fit(gemini, monkeypatch):
    monkeypatch.setattr("treeclust_rs._util.arrays.MAX_ARRAY_BYTES", 8 * 100 * 100)
    X = np.random.default_rng(0).normal(size=(101, 2))
    message = r"of 101 rows would take .* Take at most 100 at once \(batch_size of Douglas\)"
    with pytest.raises(ValueError, match=message):
        make_gemini(gemini).affinity(X)
    assert make_gemini(gemini).affinity(X[1:]).shape == (100, 100)
