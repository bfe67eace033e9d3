"""Features of low rank against the kernel matrices they stand for."""

from __future__ import annotations

import math
import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_approximation import RBFSampler

import kernel_names
from treeclust_rs._kernels import kernels as _kernels
from treeclust_rs._kernels import low_rank as _low_rank
from treeclust_rs._kernels.low_rank import APPROXIMATIONS, approximate
from treeclust_rs._kernels.parameters import make_kernel

ADAPTIVE = ("nystroem", "rpcholesky")
DEFINITE = kernel_names.DEFINITE | {"polynomial": {"degree": 3}}


def rows(seed=0, n=80, d=4):
    """Rows in [0, 1), with zeros and equal rows."""
    X = np.random.default_rng(seed).random((n, d))
    X[X < 0.2] = 0.0
    X[5] = X[1]
    return X


def error(found, gram):
    return float(np.abs(found.features @ found.features.T - gram).max())


def trace_error(found, gram):
    """Share of the trace that is not covered."""
    return 1.0 - float(np.square(found.features).sum()) / float(gram.trace())


# ---- full rank ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.parametrize("name", DEFINITE)
def test_full_rank_gives_the_kernel_matrix(name, method):
    X = rows()
    kernel = make_kernel(name, X=X, **DEFINITE[name])
    gram = kernel.matrix(X)
    for n_components in (len(X), 10 * len(X)):
        found = approximate(kernel, X, method=method, n_components=n_components, tol=0)
        assert error(found, gram) <= 1e-9 * gram.max()
        assert found.features.shape[1] <= len(X) and found.features.flags.c_contiguous
        assert abs(found.residual) < 1e-10


@pytest.mark.parametrize("method", ADAPTIVE)
def test_full_rank_of_a_callable(method):
    X = rows(1, n=30)
    kernel = make_kernel(lambda x, y, c: (x @ y + c) ** 2, kernel_params={"c": 2.0}, X=X)
    found = approximate(kernel, X, method=method, n_components=30, random_state=0)
    assert error(found, (X @ X.T + 2.0) ** 2) < 1e-5 * 36
    assert found.features.shape[1] <= 15  # monomials of degree up to 2 in 4 columns


@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.parametrize("rank", [1, 2, 5])
def test_rank_deficient_data_are_exact_with_few_components(method, rank):
    X = np.random.default_rng(rank).normal(size=(200, rank)) @ np.random.default_rng(9).normal(
        size=(rank, 7)
    )
    kernel = make_kernel("linear", X=X)
    found = approximate(kernel, X, method=method, n_components=60, tol=0, random_state=1)
    assert error(found, X @ X.T) < 1e-11 * np.abs(X @ X.T).max()
    if method == "rpcholesky":
        assert found.features.shape[1] == rank == len(found.landmarks)


@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.parametrize("name", ["rbf", "linear", "laplacian"])
def test_equal_rows_have_equal_features(method, name):
    X = np.repeat(np.random.default_rng(0).normal(size=(7, 3)), 20, axis=0)
    kernel = make_kernel(name, X=X)
    found = approximate(kernel, X, method=method, n_components=140, tol=0, random_state=0)
    assert error(found, kernel.matrix(X)) < 1e-9
    assert np.ptp(found.features.reshape(7, 20, -1), axis=1).max() < 1e-9
    if method == "rpcholesky":
        assert len(found.landmarks) == (3 if name == "linear" else 7)


@pytest.mark.parametrize("method", APPROXIMATIONS)
@pytest.mark.parametrize("value", [0.0, 3.5])
@pytest.mark.parametrize("n", [1, 6])
def test_equal_rows_only(method, value, n):
    X = np.full((n, 2), value)
    for name in ("rbf", "linear") if method != "rff" else ("rbf",):
        kernel = make_kernel(name, X=X)
        found = approximate(kernel, X, method=method, n_components=4, random_state=0)
        assert np.isfinite(found.features).all() and found.features.shape[0] == n
        assert found.features.shape[1] == (4 if method == "rff" else 1)
        assert np.array_equal(found.features, np.repeat(found.features[:1], n, axis=0))
        assert np.array_equal(found.transform(X), found.features)
        if method != "rff":
            assert error(found, kernel.matrix(X)) < 1e-14 * max(1.0, 2 * value**2)


# ---- fewer components ---------------------------------------------------------------------


@pytest.mark.parametrize("method", APPROXIMATIONS)
def test_the_error_falls_with_the_rank(method):
    X = np.random.default_rng(0).normal(size=(300, 3))
    kernel = make_kernel("rbf", X=X)
    gram = kernel.matrix(X)
    ranks = (4, 16, 64, 256) if method != "rff" else (8, 128, 2048)
    errors = []
    for rank in ranks:
        made = [
            approximate(kernel, X, method=method, n_components=rank, tol=0, random_state=seed)
            for seed in range(3)
        ]
        errors.append(
            np.mean([np.linalg.norm(m.features @ m.features.T - gram) for m in made])
            / np.linalg.norm(gram)
        )
        assert all(m.features.shape[1] <= rank for m in made)
    assert all(after < before / 2 for before, after in pairwise(errors))
    assert errors[-1] < {"rff": 0.1, "nystroem": 1e-2, "rpcholesky": 1e-8}[method]


@pytest.mark.parametrize("method", ADAPTIVE)
def test_what_is_left_out_is_positive_semidefinite(method):
    X = rows(3)
    gram = make_kernel("laplacian", X=X).matrix(X)
    kernel = make_kernel("laplacian", X=X)
    found = approximate(kernel, X, method=method, n_components=20, random_state=0)
    left = np.linalg.eigvalsh(gram - found.features @ found.features.T)
    assert left[0] > -1e-12
    assert found.residual == pytest.approx(left.sum() / len(X), abs=1e-12)
    # Exact between the landmarks.
    own = found.features[found.landmarks]
    assert own @ own.T == pytest.approx(gram[np.ix_(found.landmarks, found.landmarks)], abs=1e-10)


def test_pivots_beat_uniform_landmarks():
    """A few far rows that uniform landmarks miss: why rpcholesky exists."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(960, 2)) * 0.1, rng.normal(size=(40, 2)) * 10])
    kernel = make_kernel("rbf", gamma=1.0, X=X)
    residual = {
        method: np.mean(
            [
                approximate(kernel, X, method=method, n_components=40, random_state=s).residual
                for s in range(5)
            ]
        )
        for method in ADAPTIVE
    }
    assert residual["rpcholesky"] < residual["nystroem"] / 5


@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("name", ["rbf", "histogram_intersection"])
def test_tol_stops_at_the_first_pivot_that_meets_it(name, tol):
    X = rows(4, n=120)
    kernel = make_kernel(name, X=X)
    gram = kernel.matrix(X)
    found = approximate(kernel, X, method="rpcholesky", n_components=120, tol=tol, random_state=0)
    width = found.features.shape[1]
    assert width < 120
    assert trace_error(found, gram) <= tol * (1 + 1e-9)
    shorter = 1.0 - float(np.square(found.features[:, :-1]).sum()) / float(gram.trace())
    assert shorter > tol
    assert found.residual == pytest.approx(trace_error(found, gram), abs=1e-12)


def test_the_default_tol_is_a_millionth():
    X = rows(5, n=200, d=2)
    kernel = make_kernel("rbf", X=X)
    found = approximate(kernel, X, method="rpcholesky", n_components=200, random_state=0)
    assert 1e-8 < found.residual <= 1e-6 and found.features.shape[1] < 50


# ---- how landmarks are drawn --------------------------------------------------------------


def test_nystroem_landmarks_are_distinct_rows():
    X = rows()
    kernel = make_kernel("rbf", X=X)
    found = approximate(kernel, X, method="nystroem", n_components=30, random_state=0)
    assert len(set(found.landmarks.tolist())) == 30
    other = approximate(kernel, X, method="nystroem", n_components=30, random_state=1)
    assert set(other.landmarks.tolist()) != set(found.landmarks.tolist())
    whole = approximate(kernel, X, method="nystroem", n_components=80, random_state=0)
    assert whole.landmarks.tolist() == list(range(80))


@pytest.mark.parametrize("method", ADAPTIVE)
def test_heavy_rows_are_landmarks(method):
    X = np.random.default_rng(0).normal(size=(400, 2))
    weight = np.full(400, 1e-9)
    weight[[7, 70, 300]] = 1.0
    kernel = make_kernel("rbf", X=X)
    found = approximate(
        kernel, X, method=method, n_components=3, sample_weight=weight, random_state=0
    )
    assert sorted(found.landmarks.tolist()) == [7, 70, 300]
    assert abs(found.residual) < 1e-6


def test_pivots_are_distributed_as_if_drawn_one_by_one():
    X = np.array([[0.0], [0.3], [1.0], [2.5]])
    weight = np.array([1.0, 2.0, 1.0, 0.5])
    kernel = make_kernel("rbf", gamma=1.0, X=X)
    gram = kernel.matrix(X)
    expected = np.zeros((4, 4))
    for first in range(4):
        left = gram.diagonal() - gram[first] ** 2 / gram[first, first]
        share = weight * left / (weight @ left)
        expected[first] = weight[first] / weight.sum() * share
    n_draws = 4000
    rng = np.random.RandomState(0)
    seen = np.zeros((4, 4))
    for _ in range(n_draws):
        _, pivots = _low_rank._rpcholesky(kernel, X, 2, 0.0, weight, rng, 1)
        seen[tuple(pivots)] += 1
    spread = np.sqrt(expected * (1 - expected) / n_draws)
    assert (np.abs(seen / n_draws - expected) <= 4 * spread + 1e-12).all()


# ---- new rows, determinism ----------------------------------------------------------------


@pytest.mark.parametrize("method", APPROXIMATIONS)
@pytest.mark.parametrize("n_components", [5, 60])
def test_transform_gives_the_features_of_the_fit(method, n_components):
    X, Y = rows(), rows(1, n=9)
    kernel = make_kernel("rbf", X=X)
    found = approximate(
        kernel, X, method=method, n_components=n_components, tol=1e-9, random_state=0
    )
    again = found.transform(X)
    assert again.shape == found.features.shape and again.flags.c_contiguous
    assert np.abs(again - found.features).max() < 1e-7
    new = found.transform(Y)
    assert new.shape == (9, found.features.shape[1])
    if method != "rff":
        # The kernel with a landmark is exact.
        own = found.features[found.landmarks]
        expected = kernel.matrix(Y, X[found.landmarks])
        assert np.abs(new @ own.T - expected).max() < 1e-7
    assert np.array_equal(pickle.loads(pickle.dumps(found)).transform(Y), new)


@pytest.mark.parametrize("method", APPROXIMATIONS)
def test_the_same_bits_for_a_seed_and_any_threads(method, monkeypatch):
    X = np.random.default_rng(0).normal(size=(3000, 5))
    kernel = make_kernel("rbf", X=X)
    monkeypatch.setattr(_kernels, "_MAX_BLOCK", 40 * 100)
    monkeypatch.setattr(_kernels, "_MIN_PARALLEL", 0)
    found = [
        approximate(kernel, X, method=method, n_components=40, random_state=3, n_jobs=n_jobs)
        for n_jobs in (1, 1, 3)
    ]
    for other in found[1:]:
        assert np.array_equal(other.features, found[0].features)
        assert np.array_equal(other.landmarks, found[0].landmarks)
        assert np.array_equal(other.transform(X[:500], n_jobs=2), found[0].transform(X[:500]))
    drawn = approximate(
        kernel, X, method=method, n_components=40, random_state=np.random.RandomState(3)
    )
    assert np.array_equal(drawn.landmarks, found[0].landmarks)


@pytest.mark.parametrize("method", APPROXIMATIONS)
def test_the_origin_does_not_matter(method):
    X = np.round(np.random.default_rng(1).normal(size=(100, 3)) * 2**10) / 2**10
    here, there = (
        approximate(make_kernel("rbf", X=at), at, method=method, n_components=30, random_state=0)
        for at in (X, X + 1e8)
    )
    assert here.features == pytest.approx(there.features, abs=1e-7)
    if method != "rff":
        assert np.array_equal(here.features, there.features)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(*[st.sampled_from([0.0, 1.0, 1e-3, 2.5, 1e4, 7.0])] * 2), min_size=1, max_size=25
    ),
    st.sampled_from(sorted(DEFINITE)),
    st.sampled_from(ADAPTIVE),
    st.integers(1, 30),
)
def test_features_are_finite_and_never_too_long(cells, name, method, rank):
    X = np.array(cells)
    kernel = make_kernel(name, X=X, **DEFINITE[name])
    found = approximate(kernel, X, method=method, n_components=rank, random_state=0)
    assert np.isfinite(found.features).all()
    diagonal = kernel.diagonal(X)
    norms = np.square(found.features).sum(axis=1)
    assert (norms <= diagonal + 1e-9 * max(diagonal.max(), 1e-300)).all()
    if rank >= len(X):
        top = max(float(np.abs(kernel.matrix(X)).max()), 1e-300)
        assert error(found, kernel.matrix(X)) <= 1e-3 * top


# ---- what does not work -------------------------------------------------------------------


def test_kernels_that_are_not_positive_semidefinite_warn():
    X = np.random.default_rng(0).random((60, 2))
    kernel = make_kernel("epsilon", kernel_params={"epsilon": 0.4}, X=X)
    gram = kernel.matrix(X)
    values, vectors = np.linalg.eigh(gram)
    assert values[0] < -0.1
    positive = (vectors * np.maximum(values, 0)) @ vectors.T
    for method in ADAPTIVE:
        with pytest.warns(UserWarning, match="'epsilon' is not positive semidefinite on these"):
            found = approximate(kernel, X, method=method, n_components=60, tol=0, random_state=0)
        assert np.isfinite(found.features).all()
        if method == "nystroem":
            assert error(found, positive) < 1e-9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quiet = make_kernel("epsilon", kernel_params={"epsilon": 2.0}, X=X)
        found = approximate(quiet, X, method="rpcholesky", random_state=0)
    assert error(found, np.ones((60, 60))) < 1e-14


def test_a_negative_kernel_has_no_features():
    X = rows()
    kernel = make_kernel(lambda x, y: -float(x @ y), X=X)
    for method in ADAPTIVE:
        with pytest.warns(UserWarning, match="'<lambda>' is not positive semidefinite"):
            found = approximate(kernel, X, method=method, n_components=9, random_state=0)
        assert np.abs(found.features).max() < 1e-7
        assert found.features.shape == (80, 1) == found.transform(X).shape


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        (
            {"method": "nystrom"},
            ValueError,
            "Unknown approximation 'nystrom'. Known are 'nystroem', 'rpcholesky', 'rff'.",
        ),
        ({"n_components": 0}, ValueError, "n_components must be at least 1. Got 0"),
        ({"n_components": 2.5}, TypeError, "n_components must be an int. Got 2.5"),
        ({"n_components": True}, TypeError, "n_components must be an int. Got True"),
        ({"tol": -1e-3}, ValueError, r"tol must be a number in \[0, 1\). Got -0.001"),
        ({"tol": 1}, ValueError, r"tol must be a number in \[0, 1\). Got 1 "),
        ({"tol": math.nan}, ValueError, "Got nan"),
        (
            {"method": "rff", "kernel": "laplacian"},
            ValueError,
            'only for the kernel "rbf". Got the kernel \'laplacian\'; "nystroem" and',
        ),
    ],
)
def test_parameters_that_are_refused(changes, error, words):
    X = rows()
    arguments = {"method": "nystroem", "kernel": "rbf", **changes}
    kernel = make_kernel(arguments.pop("kernel"), X=X)
    with pytest.raises(error, match=words):
        approximate(kernel, X, **arguments)


@pytest.mark.parametrize("method", APPROXIMATIONS)
def test_features_beyond_the_limit_are_refused(method, monkeypatch):
    X = np.zeros((1000, 1))
    kernel = make_kernel("rbf", X=X)
    monkeypatch.setattr("treeclust_rs._util.arrays.MAX_ARRAY_BYTES", 8 * 1000 * 50)
    approximate(kernel, X, method=method, n_components=50, random_state=0)
    words = "The features of 1,000 rows and n_components=51 would take .* Use fewer n_components"
    with pytest.raises(ValueError, match=words):
        approximate(kernel, X, method=method, n_components=51)


def test_negative_cells_are_refused_in_new_rows():
    X = rows()
    found = approximate(make_kernel("chi2", X=X), X, method="nystroem", n_components=5)
    X[3, 2] = -1.0
    with pytest.raises(ValueError, match=r"'chi2' needs values >= 0, but column x2 holds -1.0"):
        found.transform(X)


def test_fourier_features_are_those_of_scikit_learn():
    X = rows()
    kernel = make_kernel("rbf", gamma=0.7, X=X)
    found = approximate(kernel, X, method="rff", n_components=30, random_state=3)
    sampler = RBFSampler(gamma=0.7, n_components=30, random_state=3)
    expected = sampler.fit(X[:1]).transform(X - X.mean(axis=0))
    np.testing.assert_array_equal(found.features, expected)
