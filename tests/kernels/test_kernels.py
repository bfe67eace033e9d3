"""Kernels against their definitions: symmetry, diagonals, the origin, and what is refused."""

from __future__ import annotations

import math
import pickle
import re

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import additive_chi2_kernel, pairwise_kernels
from sklearn.svm import SVC

from treeclust_rs._kernels import kernels as _kernels
from treeclust_rs._kernels.gram import check_gram
from treeclust_rs._kernels.kernels import KERNELS
from treeclust_rs._kernels.parameters import make_kernel


def total(terms):
    return math.fsum(terms)


def tanh_kernel(x, y, *, scale=1.0):
    return math.tanh(scale * total(x * y))


# The kernel of two rows, from its definition; parameters as in GIVEN.
DEFINITIONS = {
    "linear": lambda x, y: total(x * y),
    "polynomial": lambda x, y: (0.7 * total(x * y) + 0.5) ** 2,
    "rbf": lambda x, y: math.exp(-0.7 * total((x - y) ** 2)),
    "laplacian": lambda x, y: math.exp(-0.7 * total(abs(x - y))),
    "chi2": lambda x, y: math.exp(
        -0.7 * total((a - b) ** 2 / (a + b) for a, b in zip(x, y, strict=True) if a + b > 0)
    ),
    "additive_chi2": lambda x, y: total(
        2 * a * b / (a + b) for a, b in zip(x, y, strict=True) if a + b > 0
    ),
    "cosine": lambda x, y: (
        total(x * y) / math.sqrt(total(x * x) * total(y * y)) if x.any() and y.any() else 0.0
    ),
    "histogram_intersection": lambda x, y: total(np.minimum(x, y)),
    "hellinger": lambda x, y: total(np.sqrt(x * y)),
    "epsilon": lambda x, y: float(math.dist(x, y) <= 0.6),
    "callable": lambda x, y: tanh_kernel(x, y, scale=0.3),
}
GIVEN = {
    "polynomial": {"degree": 2, "coef0": 0.5},
    "epsilon": {"kernel_params": {"epsilon": 0.6}},
    "callable": {"kernel_params": {"scale": 0.3}},
}
ALIASES = {"gaussian": "rbf", "poly": "polynomial"}


def rows(seed=0, n=23, d=4):
    """Rows in [0, 1), with zeros, a row of zeros and equal rows."""
    X = np.random.default_rng(seed).random((n, d))
    X[X < 0.2] = 0.0
    X[3] = 0.0
    X[5] = X[1]
    return X


def near(found, expected, rtol=1e-13, atol=1e-15):
    """Like pytest.approx, but quick for matrices."""
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
    return True


def kernel(name, X, **changes):
    given = {"gamma": 0.7, **GIVEN.get(name, {}), **changes}
    return make_kernel(tanh_kernel if name == "callable" else name, X=X, **given)


def by_definition(name, X, Y):
    return np.array([[DEFINITIONS[name](x, y) for y in Y] for x in X])


# ---- values -------------------------------------------------------------------------------


def test_every_kernel_is_tested():
    assert set(DEFINITIONS) == (set(KERNELS) - set(ALIASES)) | {"callable"}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_matrix_and_diagonal_are_the_definition(name):
    X, Y = rows(0), rows(1, n=7)
    found = kernel(name, X)
    assert near(found.matrix(X, Y), by_definition(name, X, Y))
    gram = found.matrix(X)
    assert near(gram, by_definition(name, X, X))
    assert gram.dtype == np.float64 and gram.flags.c_contiguous
    assert np.array_equal(gram, gram.T)
    assert np.array_equal(gram.diagonal(), found.diagonal(X))


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_blocks_are_one_matrix(name, n_jobs, monkeypatch):
    X = rows(2, n=150 if name == "callable" else 400)
    whole = kernel(name, X).matrix(X)
    monkeypatch.setattr(_kernels, "_MAX_BLOCK", 13 * len(X))
    monkeypatch.setattr(_kernels, "_MIN_PARALLEL", 0)
    blocks = kernel(name, X).matrix(X, n_jobs=n_jobs)
    assert np.array_equal(blocks, blocks.T)
    assert near(blocks, whole, rtol=1e-14)
    assert np.array_equal(blocks, kernel(name, X).matrix(X, n_jobs=1))
    across = kernel(name, X).matrix(X[:50], X[7:], n_jobs=n_jobs)
    assert near(across, whole[:50, 7:], rtol=1e-14)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "chi2", "epsilon", "cosine"])
def test_unit_diagonals_are_exact(name):
    X = np.random.default_rng(0).random((40, 50)) * 1e5
    found = kernel(name, X)
    assert (found.diagonal(X) == 1.0).all()
    assert (found.matrix(X).diagonal() == 1.0).all()
    twins = found.matrix(X[:3], X[:3])
    assert np.abs(twins.diagonal() - 1.0).max() < 1e-14
    assert found.matrix(X).max() <= 1.0


def test_a_row_of_zeros_has_no_direction():
    X = np.array([[0.0, 0.0], [3.0, 4.0], [1e200, 0.0], [1e-200, 1e-200]])
    gram = kernel("cosine", X).matrix(X)
    assert gram[0].tolist() == [0.0, 0.0, 0.0, 0.0]
    half = math.sqrt(0.5)
    assert gram[2].tolist() == pytest.approx([0.0, 0.6, 1.0, half], rel=1e-15)


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases(alias):
    X = rows()
    assert make_kernel(alias, X=X) == make_kernel(ALIASES[alias], X=X)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "polynomial", "chi2", "cosine", "linear"])
def test_the_same_as_scikit_learn(name):
    X, Y = rows(3), rows(4)
    expected = pairwise_kernels(X, Y, metric=name)
    found = make_kernel(name, X=X).matrix(X, Y)
    assert found == pytest.approx(expected, rel=1e-13, abs=1e-15)


def test_additive_chi2_gives_the_distances_of_scikit_learn():
    X = rows(5)
    ours = make_kernel("additive_chi2", X=X).matrix(X)
    theirs = additive_chi2_kernel(X)
    ours = ours.diagonal()[:, None] + ours.diagonal() - 2 * ours
    theirs = theirs.diagonal()[:, None] + theirs.diagonal() - 2 * theirs
    assert 2 * ours == pytest.approx(theirs, rel=1e-12, abs=1e-14)
    assert np.linalg.eigvalsh(make_kernel("additive_chi2", X=X).matrix(X))[0] > -1e-12


def test_generalised_histogram_intersection():
    X = rows(6)
    found = make_kernel("histogram_intersection", kernel_params={"beta": 0.5}, X=X)
    plain = make_kernel("histogram_intersection", X=np.sqrt(X))
    assert found.matrix(X) == pytest.approx(plain.matrix(np.sqrt(X)), rel=1e-15)
    assert found.diagonal(X) == pytest.approx(np.sqrt(X).sum(axis=1), rel=1e-15)


def test_epsilon_counts_its_edge():
    X = np.array([[0.0], [0.1 + 0.2], [0.3], [0.30001]])
    found = make_kernel("epsilon", kernel_params={"epsilon": 0.3}, X=X)
    assert found.matrix(X)[0].tolist() == [1.0, 1.0, 1.0, 0.0]


def test_features_that_are_the_kernel():
    X = rows(7)
    for name in DEFINITIONS:
        found = kernel(name, X)
        features = found.explicit_features(X)
        assert (features is not None) == (name in ("linear", "cosine", "hellinger"))
        if features is not None:
            assert features @ features.T == pytest.approx(found.matrix(X), rel=1e-13, abs=1e-15)


def test_a_callable_is_asked_once_for_each_pair():
    X = rows(8, n=9)
    asked = []

    def count(x, y):
        asked.append((x.tobytes(), y.tobytes()))
        return float(x @ y)

    gram = make_kernel(count, X=X).matrix(X)
    assert gram == pytest.approx(X @ X.T, rel=1e-14)
    assert len(asked) == 9 * 10 / 2 + 9


def test_kernels_are_pickled_and_compared():
    X = rows()
    found = kernel("callable", X)
    assert pickle.loads(pickle.dumps(found)) == found
    assert found.label == "tanh_kernel"


@pytest.mark.parametrize("name", DEFINITIONS)
def test_other_layouts_and_types(name):
    X = np.round(rows(9) * 8)
    found = kernel(name, X)
    expected = found.matrix(X)
    locked = X.copy()
    locked.flags.writeable = False
    for same in (np.asfortranarray(X), X.astype(np.float32), X.astype(int), locked, X.tolist()):
        assert np.array_equal(found.matrix(same), expected)
        assert np.array_equal(found.diagonal(same), found.diagonal(X))


@pytest.mark.parametrize("d", [1, 5, 33, 70])
@pytest.mark.parametrize("name", ["rbf", "laplacian", "epsilon"])
def test_the_origin_does_not_matter(name, d):
    X = np.round(np.random.default_rng(d).normal(size=(60, d)) * 2**10) / 2**10
    moved = X + 1e8
    assert np.array_equal(moved - 1e8, X)
    for gamma in (None, "scale", 1.5):
        params = {"epsilon": math.sqrt(2 * d)} if name == "epsilon" else None
        here = make_kernel(name, gamma=gamma, kernel_params=params, X=X)
        there = make_kernel(name, gamma=gamma, kernel_params=params, X=moved)
        if gamma is not None and name != "epsilon":
            assert there.gamma == pytest.approx(here.gamma, rel=1e-12)
        far = there.matrix(moved)
        assert near(far, here.matrix(X), rtol=1e-9, atol=1e-11)
        if d <= 32 and gamma != "scale":
            assert np.array_equal(far, here.matrix(X))


@pytest.mark.parametrize("d", [40, 200])
@pytest.mark.parametrize("gamma", [None, 1e-6, 10.0])
def test_rbf_of_many_columns(d, gamma):
    X = np.random.default_rng(0).normal(size=(30, d)) * [[1e4]] ** (np.arange(30)[:, None] == 0)
    found = make_kernel("rbf", gamma=gamma, X=X)
    expected = [[math.exp(-found.gamma * min(total((x - y) ** 2), 1e300)) for y in X] for x in X]
    assert near(found.matrix(X), expected, rtol=1e-9, atol=1e-12)


def test_huge_distances_are_far():
    X = np.array([[1e300, 0.0], [-1e300, 0.0], [1e308, -1e308], [0.0, 0.0]])
    for name in ("rbf", "laplacian", "epsilon"):
        assert np.array_equal(kernel(name, X).matrix(X), np.eye(4))


# ---- parameters ---------------------------------------------------------------------------


def test_gamma():
    X = rows(0, n=50) * [1, 2, 3, 4]
    X -= X.mean(axis=0)
    assert make_kernel("rbf", X=X).gamma == 0.25
    assert make_kernel("laplacian", X=X).gamma == 0.25
    assert make_kernel("chi2", X=X - X.min()).gamma == 1.0
    assert make_kernel("rbf", gamma=np.float32(0.5), X=X).gamma == 0.5
    assert make_kernel("rbf", gamma=3, X=X).gamma == 3.0
    theirs = SVC(gamma="scale").fit(X, X[:, 0] > 0)._gamma
    assert make_kernel("rbf", gamma="scale", X=X).gamma == pytest.approx(theirs, rel=1e-14)
    assert make_kernel("rbf", gamma="scale", X=np.ones((3, 2))).gamma == 1.0
    assert make_kernel("linear", gamma=3, X=X).gamma is None


def test_scale_counts_weights():
    X = rows(1)
    weight = np.arange(len(X)) % 3 + 1
    twice = np.repeat(X, weight, axis=0)
    found = make_kernel("rbf", gamma="scale", X=X, sample_weight=weight.astype(float))
    assert found.gamma == pytest.approx(make_kernel("rbf", gamma="scale", X=twice).gamma, rel=1e-13)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        (
            {"kernel": "sigmoidal"},
            ValueError,
            "Unknown kernel 'sigmoidal'. Known are additive",
        ),
        ({"kernel": "precomputed"}, ValueError, '"precomputed" and callables'),
        ({"kernel": 3}, TypeError, "kernel must be a string or a callable. Got int"),
        ({"gamma": 0}, ValueError, "gamma must be > 0 and finite, .* Got 0.0"),
        ({"gamma": -1.5, "kernel": "linear"}, ValueError, "gamma must be > 0 .* Got -1.5"),
        ({"gamma": math.nan}, ValueError, "gamma must be > 0 .* Got nan"),
        ({"gamma": math.inf}, ValueError, "gamma must be > 0 .* Got inf"),
        ({"gamma": "auto"}, TypeError, "gamma must be a number > 0, \"scale\" or None. Got 'auto'"),
        ({"gamma": True}, TypeError, "Got True"),
        ({"kernel": "poly", "degree": 0.5}, ValueError, "'degree' .* at least 1. Got 0.5"),
        ({"kernel": "poly", "degree": "2"}, TypeError, "'degree' .* must be a number. Got '2'"),
        ({"kernel": "poly", "coef0": math.inf}, ValueError, "'coef0' .* must be finite. Got inf"),
        (
            {"kernel_params": {"gama": 1}},
            ValueError,
            "Unknown kernel_params 'gama': the kernel 'rbf' takes none. gamma, degree and coef0",
        ),
        (
            {"kernel": "epsilon", "kernel_params": {"epsilon": 1, "eps": 1}},
            ValueError,
            "Unknown kernel_params 'eps': the kernel 'epsilon' takes only 'epsilon'",
        ),
        ({"kernel": "epsilon"}, ValueError, r"needs kernel_params=\{'epsilon': ...\}"),
        (
            {"kernel": "epsilon", "kernel_params": {"epsilon": 0}},
            ValueError,
            "'epsilon' of the kernel 'epsilon' must be > 0. Got 0.0",
        ),
        (
            {"kernel": "histogram_intersection", "kernel_params": {"beta": None}},
            TypeError,
            "'beta' of the kernel 'histogram_intersection' must be a number. Got None",
        ),
        (
            {"gamma": "scale", "X": np.array([[1e200], [-1e200]])},
            ValueError,
            'gamma="scale" is .* but the variance is inf',
        ),
    ],
)
def test_parameters_that_are_refused(changes, error, words):
    with pytest.raises(error, match=words):
        make_kernel(**{"kernel": "rbf", "X": rows(), **changes})


@pytest.mark.parametrize("name", ["additive_chi2", "chi2", "histogram_intersection", "hellinger"])
def test_negative_cells_are_refused(name):
    X = rows()
    found = kernel(name, X)
    X[4, 1], X[9, 1], X[2, 3] = -0.5, -7.0, -1.0
    words = (
        f"The kernel '{name}' needs values >= 0, but column {{}} holds -0.5 in row 4 (counting "
        "from 0) (1 more column with such cells)."
    )
    with pytest.raises(ValueError, match=re.escape(words.format("x1"))):
        found.matrix(X)
    with pytest.raises(ValueError, match=re.escape(words.format("x1"))):
        found.diagonal(X)
    with pytest.raises(ValueError, match=re.escape(words.format("'age'"))):
        make_kernel(name, X=X, feature_names=["a", "age", "b", "c"])


# ---- sizes and values that do not work ----------------------------------------------------


def test_matrices_beyond_the_limit_are_refused_before_they_are_made():
    X = np.zeros((60_000, 1))
    words = (
        "The kernel matrix of 60,000 x 60,000 rows would take 26.8 GiB; the limit is 4 GiB. "
        'approximation="nystroem" or "rpcholesky"'
    )
    with pytest.raises(ValueError, match=words):
        make_kernel("rbf", X=X).matrix(X)


@pytest.mark.parametrize("name", ["linear", "polynomial", "additive_chi2"])
def test_values_beyond_float64_are_refused(name):
    X = np.ones((6, 2)) * [[1.0], [1.0], [2.0], [1.0], [1e200], [1.0]]
    found = kernel(name, X, degree=3)
    if name == "additive_chi2":
        X[4] = 1.7e308
    with pytest.raises(ValueError, match=f"The kernel '{name}' of the rows . and 4 is (inf|nan)"):
        found.matrix(X)


def test_what_callables_may_not_give():
    X = rows()
    pair = (X[2, 0], X[7, 0])
    with pytest.raises(ValueError, match="The kernel '<lambda>' of the rows 2 and 7 is nan"):
        make_kernel(lambda x, y: math.nan if (x[0], y[0]) == pair else 1.0, X=X).matrix(X)
    with pytest.raises(TypeError, match="'outer' must give a number for two rows of shape"):
        make_kernel(np.outer, X=X).matrix(X)
    with pytest.raises(TypeError, match="unexpected keyword"):
        make_kernel(tanh_kernel, kernel_params={"scal": 1}, X=X).matrix(X)


# ---- Gram matrices ------------------------------------------------------------------------


def gram_of(n=700, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X @ X.T


def test_a_gram_matrix_is_used_as_it_is():
    gram = gram_of()
    assert check_gram(gram, len(gram)) is gram
    turned = check_gram(np.asfortranarray(gram), len(gram))
    assert turned.flags.c_contiguous and np.array_equal(turned, gram.T)
    gram.flags.writeable = False
    assert check_gram(gram, len(gram)) is gram
    for other in (gram.astype(np.float32), np.round(gram).astype(int), gram.tolist()):
        found = check_gram(other, len(gram))
        assert found.dtype == np.float64 and found.flags.c_contiguous
        assert np.array_equal(found, np.asarray(other))
    every_other = gram[::2, ::2]
    found = check_gram(every_other, len(gram) // 2)
    assert found.flags.c_contiguous and np.array_equal(found, every_other)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda gram: None, ValueError, r"needs the Gram matrix of the rows: fit\(X, gram=K\)"),
        (lambda gram: gram[:5], ValueError, r"gram has the shape \(5, 700\), but X has 700 rows"),
        (lambda gram: gram[0], ValueError, r"gram has the shape \(700,\)"),
        (scipy.sparse.csr_array, TypeError, "gram is sparse"),
        (lambda gram: gram * 1j, ValueError, "Complex data not supported"),
        (lambda gram: gram.astype(str), TypeError, "gram must hold numbers. Got dtype <U"),
        (lambda gram: gram.astype(object) + [None] * 700, TypeError, "None"),
    ],
)
def test_what_is_no_gram_matrix(change, error, words):
    with pytest.raises(error, match=words):
        check_gram(change(gram_of()), 700)


@pytest.mark.parametrize(
    ("value", "word"), [(math.nan, "NaN"), (math.inf, "inf"), (-math.inf, "inf")]
)
def test_cells_that_are_not_finite(value, word):
    gram = gram_of()
    gram[650, 31] = gram[31, 650] = gram[690, 2] = value
    with pytest.raises(ValueError, match=rf"gram contains {word}: .* gram\[31, 650\]"):
        check_gram(gram, 700)


@pytest.mark.parametrize("pair", [(2, 7), (7, 2), (699, 10), (600, 512)])
def test_a_pair_that_is_not_symmetric(pair):
    gram = gram_of()
    scale = np.abs(gram).max()
    gram[pair] += 0.9e-10 * scale
    check_gram(gram, 700)
    gram[pair] += 0.2e-10 * scale
    i, j = sorted(pair)
    words = f"gram[{i}, {j}] is {float(gram[i, j])!r}, but gram[{j}, {i}] is {float(gram[j, i])!r}"
    with pytest.raises(ValueError, match=re.escape(words)):
        check_gram(gram, 700)


def test_copies_beyond_the_limit_are_refused(monkeypatch):
    gram = gram_of()
    monkeypatch.setattr("treeclust_rs._util.arrays.MAX_ARRAY_BYTES", gram.nbytes - 1)
    assert check_gram(gram, 700) is gram
    with pytest.raises(ValueError, match=r"float64 copy of gram, which is float32 .* GiB"):
        check_gram(gram.astype(np.float32), 700)
