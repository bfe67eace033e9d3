"""Kauri of sparse rows, against the same rows as a dense table."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import treeclust_rs as tc
from sparse_tables import FORMATS, same_trees, words

MODELS = [
    tc.Kauri(4, max_leaves=14),
    tc.Kauri(3, max_leaves=9, moves="all", scale="standard", min_samples_leaf=2),
    tc.Kauri(5, max_depth=4, max_leaves=12, max_features=0.6, random_state=3, scale="robust"),
    tc.Kauri(4, max_leaves=12, kernel="cosine"),
    tc.Kauri(4, max_leaves=12, kernel="hellinger"),
]


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-10)


def same_fits(dense, thin):
    same_trees(dense.tree_, thin.tree_)
    for name in ("move", "gain"):
        close(getattr(thin.tree_, name), getattr(dense.tree_, name))
    largest = dense.tree_.impurity.max()
    np.testing.assert_allclose(thin.tree_.impurity, dense.tree_.impurity, atol=1e-12 * largest)
    assert (thin.tree_.impurity >= 0.0).all()
    np.testing.assert_array_equal(thin.labels_, dense.labels_)
    for name in (
        "objective_",
        "inertia_",
        "kernel_cost_",
        "cluster_centers_",
        "scale_",
        "feature_importances_",
    ):
        close(getattr(thin, name), getattr(dense, name))
    assert thin.gains_.columns == dense.gains_.columns
    close(thin.gains_.get_column("objective"), dense.gains_.get_column("objective"))


@pytest.mark.parametrize("model", MODELS)
def test_a_tree_of_sparse_rows_is_that_of_dense_ones(model):
    rng = np.random.default_rng(3)
    n_splits = 0
    for trial in range(30):
        X, _ = words(rng, n=int(rng.integers(8, 120)), d=int(rng.integers(6, 14)))
        X = np.abs(X) if model.kernel == "hellinger" else X
        if trial % 2:
            X *= rng.random(X.shape)
        weight = rng.integers(0, 4, len(X)) / 2 if trial % 3 else None
        if weight is not None:
            weight[:5] = 1.0
        matrix = FORMATS[trial % len(FORMATS)](X)
        dense = clone(model).fit(X, sample_weight=weight)
        thin = clone(model).fit(matrix, sample_weight=weight)
        same_fits(dense, thin)
        n_splits += dense.n_leaves_ - 1
        for fitted in (dense, thin):
            for rows in (X, matrix):
                np.testing.assert_array_equal(fitted.predict(rows), dense.labels_)
                close(fitted.score(rows, sample_weight=weight), dense.score(X, None, weight))
                close(fitted.objective(rows, None, weight), dense.objective(X, None, weight))
    assert n_splits > 70


def test_full_columns_lie_anywhere():
    # They are centered, as all columns of a table are: 1e16 would swamp all gains.
    rng = np.random.default_rng(4)
    X, _ = words(rng, n=80)
    X[:, 4] = 1e8 + rng.integers(0, 9, 80) / 4.0
    X[:, 6] = -1e6 - rng.random(80)
    for weight in (None, rng.integers(1, 4, 80) / 2):
        model = tc.Kauri(4, max_leaves=10)
        dense = clone(model).fit(X, sample_weight=weight)
        thin = clone(model).fit(sparse.csr_array(X), sample_weight=weight)
        same_trees(dense.tree_, thin.tree_)
        np.testing.assert_allclose(thin.tree_.gain, dense.tree_.gain, rtol=1e-9)
        np.testing.assert_allclose(thin.inertia_, dense.inertia_, rtol=1e-12)
        np.testing.assert_allclose(thin.objective_, dense.objective_, rtol=1e-12)


def test_large_cells_are_taken_until_they_overflow():
    X, _ = words(np.random.default_rng(5))
    model = tc.Kauri(3, max_leaves=6)
    large = X * 2.0**480
    same_trees(model.fit(large).tree_, clone(model).fit(sparse.csr_array(large)).tree_)
    with pytest.raises(ValueError, match="kernel values overflow"):
        model.fit(sparse.csr_array(X * 1e200))


def test_stored_zeros_duplicates_and_threads_change_nothing():
    X, _ = words(np.random.default_rng(7), n=90)
    grown = tc.Kauri(4, max_leaves=12).fit(sparse.csr_array(X))
    twice = sparse.coo_array(X)
    rows, columns = (np.concatenate([places, places]) for places in twice.coords)
    halves = np.concatenate([twice.data / 2, twice.data / 2])
    all_stored = sparse.csr_array(np.ones_like(X))
    all_stored.data = X.ravel().copy()
    for matrix in (sparse.coo_array((halves, (rows, columns)), shape=X.shape), all_stored):
        for n_jobs in (1, 2):
            again = tc.Kauri(4, max_leaves=12, n_jobs=n_jobs).fit(matrix)
            same_trees(again.tree_, grown.tree_)
            np.testing.assert_array_equal(again.tree_.gain, grown.tree_.gain)
            assert again.objective_ == grown.objective_


def test_a_model_does_what_models_do(tmp_path):
    X, _ = words(np.random.default_rng(5))
    matrix = sparse.csr_array(X)
    names = [f"word{i}" for i in range(X.shape[1])]
    weight = np.ones(len(X))
    weight[::6] = 0.0
    model = tc.Kauri(4, max_leaves=9).fit(matrix, sample_weight=weight, feature_names=names)
    dense = tc.Kauri(4, max_leaves=9).fit(X, sample_weight=weight, feature_names=names)
    same_fits(dense, model)
    assert str(model.tree_) == str(dense.tree_) and "word" in str(model.rules())
    assert model.explain(matrix[:3]) == dense.explain(X[:3])
    model.save(tmp_path / "model.json")
    again = tc.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(matrix), model.labels_)
    close(again.score(matrix), model.score(X))
    small, least = model.truncate(6), dense.truncate(6)
    same_trees(small.tree_, least.tree_)
    np.testing.assert_array_equal(small.predict(matrix), least.predict(X))
    close(small.inertia_, least.inertia_)
    assert model.__sklearn_tags__().input_tags.sparse
    found = tc.compare(matrix, [tc.ExKMC(), tc.Kauri()], 3, random_state=0)
    close(
        found.table["cost_ratio"],
        tc.compare(X, [tc.ExKMC(), tc.Kauri()], 3, random_state=0).table["cost_ratio"],
    )


def test_nothing_is_made_dense():
    # As a table 4.8 GB.
    rng = np.random.default_rng(8)
    n, d = 2_000, 300_000
    columns = np.where(
        rng.random((n, 12)) < 0.5, rng.integers(0, 50, (n, 12)), rng.integers(0, d, (n, 12))
    )
    cells = (rng.random(columns.size) + 0.1, (np.repeat(np.arange(n), 12), columns.ravel()))
    matrix = sparse.coo_array(cells, shape=(n, d)).tocsr()
    model = tc.Kauri(3, max_leaves=5).fit(matrix)
    assert model.n_leaves_ == 5
    cost = tc.metrics.kmeans_cost(matrix, model.labels_)
    np.testing.assert_allclose(model.inertia_, cost, rtol=1e-12)


@pytest.mark.parametrize(
    "parameters",
    [{"kernel": "rbf"}, {"kernel": "polynomial"}, {"approximation": "nystroem"}],
)
def test_other_kernels_are_refused(parameters):
    X, _ = words(np.random.default_rng(2))
    model = tc.Kauri(3, **parameters)
    before = copy.copy(vars(model))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TypeError, match=r"Kauri takes no sparse .* Kauri .kernel=.linear."):
            model.fit(sparse.csr_array(X))
    assert vars(model) == before
    assert not model.__sklearn_tags__().input_tags.sparse
