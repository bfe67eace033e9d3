"""Kernel methods on scipy.sparse matrices: what they make of the same rows as a dense table."""

import copy
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import treeclust_rs as tc
from sparse_tables import FORMATS, same_trees, words
from treeclust_rs._kernels.parameters import make_kernel

KERNELS = ["linear", "cosine", "hellinger", "polynomial", "rbf"]
TREES = [
    *(
        tc.KernelExpand(kernel=kernel, max_leaves=8, base_tree=None)
        for kernel in (*KERNELS, "gaussian")
    ),
    tc.KernelExpand(kernel="linear", max_leaves=8),
    tc.KernelExpand(kernel="cosine", max_leaves=8),
    *(tc.KernelExKMC(kernel=kernel, max_leaves=8, base_tree=None) for kernel in KERNELS),
    tc.KernelExKMC(kernel="linear", max_leaves=8, min_samples_leaf=2),
    tc.KernelExKMC(kernel="linear", max_leaves=8, cuts="interval"),
    tc.KernelExKMC(kernel="rbf", max_leaves=8, base_tree=None, cuts="interval"),
    tc.KernelExpand(kernel="cosine", max_leaves=8, base_tree=None, cuts="interval"),
    tc.KernelIMM(kernel="linear"),
]


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-10)


def apart(rng, n, d):
    """Return rows with zeros, an empty row and column, and no two equal distances."""
    X = np.abs(rng.normal(size=(n, d))) * (rng.random((n, d)) < 0.5)
    X[:, 0] += 0.1 * rng.random(n)
    X[:, 1] = 0.0
    X[:, 2] += 0.1 * rng.random(n)
    X[n // 2] = 0.0
    return X


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_values_are_those_of_dense_rows(kernel):
    rng = np.random.default_rng(1)
    for trial in range(20):
        X, _ = words(rng, n=int(rng.integers(1, 60)) + 12)
        X = np.abs(X) if kernel == "hellinger" else X
        thin, weight = sparse.csr_array(X), rng.random(len(X)) + 0.1
        gamma = "scale" if trial % 2 else None
        dense_kernel = make_kernel(kernel, gamma=gamma, X=X, sample_weight=weight)
        found = make_kernel(kernel, gamma=gamma, X=thin, sample_weight=weight)
        assert (found.gamma is None) == (dense_kernel.gamma is None)
        if found.gamma is not None:
            close(found.gamma, dense_kernel.gamma)
        close(found.matrix(thin), found.matrix(X))
        close(found.matrix(thin, thin[:5]), found.matrix(X, X[:5]))
        close(found.diagonal(thin), found.diagonal(X))
        features = found.explicit_features(X)
        if features is not None:
            thin_features = found.explicit_features(thin)
            assert sparse.issparse(thin_features)
            close(thin_features.toarray(), features)


def test_equal_sparse_rows_have_the_distance_0():
    X = np.random.default_rng(2).normal(size=(20, 300)) * 1e3
    X[10:] = X[:10]
    kernel = make_kernel("rbf", gamma=1e6, X=sparse.csr_array(X))
    gram = kernel.matrix(sparse.csr_array(X))
    np.testing.assert_array_equal(gram, np.tile(np.eye(10), (2, 2)))


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_k_means_of_sparse_rows_is_that_of_dense_ones(kernel):
    rng = np.random.default_rng(4)
    for trial in range(25):
        X = apart(rng, int(rng.integers(8, 120)), int(rng.integers(4, 14)))
        if kernel != "hellinger":
            X[:, 2] *= -1.0
        if kernel == "cosine":  # an empty row is as far from every row: a tie
            X[len(X) // 2, 0] = 1.0
        weight = rng.integers(0, 4, len(X)) / 2 if trial % 2 else None
        if weight is not None:
            weight[:5] = 1.0
        model = tc.KernelKMeans(
            3,
            kernel=kernel,
            gamma="scale" if trial % 5 == 0 else None,
            scale="standard" if trial % 3 == 0 else None,
            n_init=1,
            random_state=trial,
        )
        matrix = FORMATS[trial % len(FORMATS)](X)
        dense = clone(model).fit(X, sample_weight=weight)
        thin = clone(model).fit(matrix, sample_weight=weight)
        np.testing.assert_array_equal(thin.labels_, dense.labels_)
        for name in ("inertia_", "kernel_cost_", "scale_"):
            close(getattr(thin, name), getattr(dense, name))
        for fitted in (dense, thin):
            for rows in (X, matrix):
                np.testing.assert_array_equal(fitted.predict(rows), dense.labels_)
                close(fitted.score(rows, sample_weight=weight), dense.score(X, None, weight))


@pytest.mark.parametrize("kernel", KERNELS)
def test_clusters_of_tied_rows_have_the_costs_that_dense_rows_give_them(kernel):
    rng = np.random.default_rng(6)
    for trial in range(10):
        X, _ = words(rng, n=80)
        X = np.abs(X) if kernel == "hellinger" else X
        model = tc.KernelKMeans(4, kernel=kernel, n_init=2, random_state=trial)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fewer clusters
            model.fit(sparse.csr_array(X))
        cost = tc.metrics.kernel_cost(X, model.labels_, kernel=kernel)
        close(model.kernel_cost_, cost)
        close(model.inertia_, tc.metrics.kmeans_cost(X, model.labels_))
        np.testing.assert_array_equal(model.predict(sparse.csr_array(X)), model.labels_)


@pytest.mark.parametrize("model", TREES)
def test_a_kernel_tree_of_sparse_rows_is_that_of_dense_ones(model):
    rng = np.random.default_rng(3)
    n_splits = 0
    for trial in range(20):
        X, _ = words(rng, n=int(rng.integers(8, 100)), d=int(rng.integers(6, 14)))
        if trial % 2:
            X *= rng.random(X.shape)
        X = np.abs(X) if model.kernel == "hellinger" else X
        weight = rng.integers(0, 4, len(X)) / 2 if trial % 2 else None
        if weight is not None:
            weight[:5] = 1.0
        labels = rng.integers(-1, 3, len(X))
        if trial % 4 == 1:
            labels = (X[:, 0] > 0) + 2 * (X[:, 1] > 0.5)
        dense, thin = (
            clone(model).set_params(reference=labels, scale=[None, "standard", "robust"][trial % 3])
            for _ in range(2)
        )
        matrix = FORMATS[trial % len(FORMATS)](X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                dense.fit(X, sample_weight=weight)
            except ValueError as error:  # equal centers
                with pytest.raises(ValueError, match=str(error)[:30]):
                    thin.fit(matrix, sample_weight=weight)
                continue
            thin.fit(matrix, sample_weight=weight)
        same_trees(dense.tree_, thin.tree_)
        n_splits += dense.n_leaves_ - 1
        np.testing.assert_array_equal(thin.labels_, dense.labels_)
        for name in (
            "inertia_",
            "reference_inertia_",
            "kernel_cost_",
            "reference_kernel_cost_",
            "cluster_centers_",
        ):
            close(getattr(thin, name), getattr(dense, name))
        close(thin.cost_path_.to_numpy(), dense.cost_path_.to_numpy())
        for fitted in (dense, thin):
            for rows in (X, matrix):
                np.testing.assert_array_equal(fitted.predict(rows), dense.labels_)
                close(fitted.score(rows, sample_weight=weight), dense.score(X, None, weight))
    assert n_splits > 25


def test_a_kernel_tree_clusters_sparse_rows_itself():
    X = apart(np.random.default_rng(9), 90, 8)
    for kernel in ("linear", "cosine", "rbf"):
        model = tc.KernelExpand(3, kernel=kernel, base_tree=None, max_leaves=9, random_state=0)
        dense, thin = clone(model).fit(X), clone(model).fit(sparse.csc_array(X))
        same_trees(dense.tree_, thin.tree_)
        close(thin.kernel_cost_, dense.kernel_cost_)
        clusters = tc.KernelKMeans(3, kernel=kernel, random_state=0)
        explained = model.set_params(reference=clusters, n_clusters=None)
        same_trees(explained.fit(sparse.csr_array(X)).tree_, explained.fit(X).tree_)


def test_a_kernel_matrix_goes_with_sparse_rows():
    X = apart(np.random.default_rng(5), 40, 6)
    gram = X @ X.T
    matrix = sparse.csr_array(X)
    clusters = tc.KernelKMeans(3, kernel="precomputed", random_state=0)
    dense = clone(clusters).fit(X, gram=gram)
    thin = clone(clusters).fit(matrix, gram=gram)
    np.testing.assert_array_equal(dense.labels_, thin.labels_)
    np.testing.assert_array_equal(thin.predict(matrix, gram=gram), thin.labels_)
    tree = tc.KernelExpand(reference=dense.labels_, kernel="precomputed", base_tree=None)
    same_trees(clone(tree).fit(X, gram=gram).tree_, clone(tree).fit(matrix, gram=gram).tree_)


def test_stored_zeros_and_duplicates_are_what_they_add_up_to():
    X = apart(np.random.default_rng(7), 60, 7)
    twice = sparse.coo_array(X)
    rows, columns = (np.concatenate([places, places]) for places in twice.coords)
    halves = np.concatenate([twice.data / 2, twice.data / 2])
    all_stored = sparse.csr_array(np.ones_like(X))
    all_stored.data = X.ravel().copy()
    for kernel in KERNELS:
        clusters = tc.KernelKMeans(3, kernel=kernel, random_state=0)
        tree = tc.KernelExpand(kernel=kernel, base_tree=None)
        labels = clone(clusters).fit(X).labels_
        tree.set_params(reference=labels)
        grown = clone(tree).fit(X).tree_
        for matrix in (
            sparse.coo_array((halves, (rows, columns)), shape=X.shape),
            all_stored,
        ):
            # Clusters of equal cost are numbered as rounding has it.
            assert adjusted_rand_score(clone(clusters).fit(matrix).labels_, labels) == 1.0
            same_trees(clone(tree).fit(matrix).tree_, grown)


def test_a_model_does_not_look_at_the_users_matrix_again():
    X = apart(np.random.default_rng(8), 50, 6)
    matrix = sparse.csr_array(X)
    models = [
        tc.KernelKMeans(3, kernel="rbf", random_state=0).fit(matrix),
        tc.KernelExpand(reference=np.arange(50) % 3, kernel="linear").fit(matrix),
    ]
    cost = clone(models[1]).fit(X).kernel_cost_
    labels = models[0].labels_
    matrix.data[:] = 0.0
    np.testing.assert_array_equal(models[0].predict(X), labels)
    close(models[1].kernel_cost_, cost)


def test_threads_change_no_bit():
    X = apart(np.random.default_rng(10), 400, 6)
    matrix = sparse.csr_array(X)
    for kernel in KERNELS:
        models = [
            tc.KernelKMeans(3, kernel=kernel, random_state=0, n_jobs=n_jobs).fit(matrix)
            for n_jobs in (1, 2)
        ]
        assert models[0].kernel_cost_ == models[1].kernel_cost_
        np.testing.assert_array_equal(models[0].labels_, models[1].labels_)


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_k_means_of_sparse_rows_goes_through_files(kernel, tmp_path):
    X = apart(np.random.default_rng(11), 60, 6)
    names = [f"word{i}" for i in range(6)]
    model = tc.KernelKMeans(3, kernel=kernel, random_state=0)
    model.fit(sparse.csr_array(X), feature_names=names)
    model.save(tmp_path / "model.json", rows=True)
    again = tc.load(tmp_path / "model.json")
    for rows in (X, sparse.coo_array(X)):
        np.testing.assert_array_equal(again.predict(rows), model.labels_)
        close(again.score(rows), model.score(X))


def test_rules_name_the_words():
    X = apart(np.random.default_rng(12), 60, 6)
    names = [f"word{i}" for i in range(6)]
    matrix = sparse.csr_array(X)
    model = tc.KernelExpand(3, kernel="cosine", base_tree=None, max_leaves=6, random_state=0)
    model.fit(matrix, feature_names=names)
    assert "word" in str(model.rules())
    assert "word" in str(model.tree_)
    assert model.explain(matrix[:3]) == model.explain(X[:3])
    small = model.truncate(4)
    np.testing.assert_array_equal(small.predict(matrix), small.predict(X))
    assert model.__sklearn_tags__().input_tags.sparse


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (tc.KernelKMeans(2, kernel="laplacian"), TypeError, "KernelKMeans .kernel=.linear."),
        (tc.KernelKMeans(2, approximation="nystroem"), TypeError, "without approximation"),
        (tc.KernelExpand(2), TypeError, "KernelExpand and KernelExKMC .base_tree=None"),
        (tc.KernelIMM(2), TypeError, "IMM, ExKMC, BestTree"),
        (tc.KernelKMeans(2, kernel="hellinger"), ValueError, "column x1 holds -1.5 in row 2"),
        (tc.KernelKMeans(9), ValueError, "rows"),
    ],
)
def test_what_sparse_rows_are_not_taken_for_is_refused(model, error, message):
    matrix = sparse.csc_array([[1.0, 0.0], [0.0, 2.0], [3.0, -1.5], [0.0, 4.0]])
    before = copy.copy(vars(model))
    with pytest.raises(error, match=message):
        model.fit(matrix)
    assert vars(model) == before


def test_bad_cells_and_widths_are_refused():
    X = apart(np.random.default_rng(13), 30, 5)
    model = tc.KernelKMeans(3, random_state=0).fit(sparse.csr_array(X))
    with pytest.raises(ValueError, match="X has 4 features, but KernelKMeans is expecting 5"):
        model.predict(sparse.csr_array(X[:, :4]))
    bad = sparse.csr_array(X)
    bad.data[2] = np.nan
    for refused in (model.fit, model.predict, tc.KernelExpand(kernel="linear").fit):
        with pytest.raises(ValueError, match="Input X contains NaN: 1 stored cells"):
            refused(bad)
