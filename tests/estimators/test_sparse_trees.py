"""Trees of sparse rows: IMM and ExKMC on scipy.sparse matrices, against the same rows dense."""

from __future__ import annotations

import copy
import re
import warnings

import numpy as np
import polars as pl
import polars.testing
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import treeclust_rs as tc
from sparse_tables import FORMATS, same_trees, words
from treeclust_rs._data import Units, read_sparse, read_table
from treeclust_rs._reference.kmedians import cluster_medians


@pytest.fixture(scope="module")
def fitted():
    X, centers = words(np.random.default_rng(5))
    model = tc.ExKMC(reference=centers, max_leaves=9)
    return model.fit(sparse.csr_array(X)), X


@pytest.mark.parametrize(
    "model",
    [
        tc.IMM(),
        tc.IMM(cut_score="emn"),
        tc.ExKMC(max_leaves=11),
        tc.ExKMC(max_leaves=11, base_tree=None),
        tc.ExKMC(max_leaves=12, max_depth=3, min_samples_leaf=3),
        tc.ExKMC(max_leaves=11, cuts="interval"),
        tc.ExKMC(max_leaves=11, cuts="interval", base_tree=None, min_samples_leaf=2),
        tc.IMM(criterion="kmedians"),
        tc.ExKMC(max_leaves=11, criterion="kmedians"),
        tc.ExKMC(max_leaves=11, criterion="kmedians", base_tree=None, cuts="interval"),
    ],
)
def test_a_fit_to_sparse_rows_is_that_to_dense_ones(model):
    rng = np.random.default_rng(3)
    n_splits = 0
    for trial in range(60):
        X, centers = words(rng, n=int(rng.integers(5, 90)), d=int(rng.integers(6, 12)))
        weight = rng.integers(0, 4, len(X)) / 2 if trial % 2 else None
        if weight is not None:
            weight[:3] = 1.0
        reference = centers if trial % 3 else rng.integers(0, 3, len(X))
        dense, thin = (clone(model).set_params(reference=reference) for _ in range(2))
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
        same_trees(dense.tree_, thin.tree_, rounded=trial % 3 == 0)
        n_splits += dense.n_leaves_ - 1
        for name in ("labels_", "reference_labels_", "classes_"):
            np.testing.assert_array_equal(getattr(dense, name), getattr(thin, name))
        for name in ("cluster_centers_", "inertia_", "reference_inertia_"):
            np.testing.assert_allclose(
                getattr(thin, name), getattr(dense, name), rtol=1e-12, atol=1e-12
            )
        np.testing.assert_allclose(
            thin.cost_path_.to_numpy(), dense.cost_path_.to_numpy(), rtol=1e-12, atol=1e-12
        )
        np.testing.assert_array_equal(thin.predict(matrix), dense.predict(X))
        np.testing.assert_array_equal(thin.apply(X), dense.apply(X))
        np.testing.assert_allclose(thin.score(matrix), dense.score(X), rtol=1e-12, atol=1e-12)
    assert n_splits > 100


@pytest.mark.parametrize(
    "scale", ["standard", "robust", {"x1": 2.0}, np.array([1, 2, 1, 1, 4, 0.5, 1, 1])]
)
def test_units_divide(scale):
    X, centers = words(np.random.default_rng(8))
    dense = tc.ExKMC(reference=centers, max_leaves=8, scale=scale).fit(X)
    thin = tc.ExKMC(reference=centers, max_leaves=8, scale=scale).fit(sparse.csc_array(X))
    same_trees(dense.tree_, thin.tree_)
    np.testing.assert_allclose(thin.scale_, dense.scale_, rtol=1e-14)
    np.testing.assert_allclose(thin.inertia_, dense.inertia_, rtol=1e-12)


def test_the_reference_is_k_means_of_the_sparse_rows():
    X, _ = words(np.random.default_rng(1), n=200)
    matrix = sparse.csr_array(X)
    model = tc.IMM(4, random_state=0).fit(matrix)
    kmeans = KMeans(4, n_init=10, random_state=0).fit(sparse.csr_matrix(X))
    np.testing.assert_allclose(model.reference_inertia_, kmeans.inertia_, rtol=1e-9)
    assert 1.0 <= model.cost_ratio_ < 2.0
    given = tc.IMM(reference=KMeans(4, n_init=10, random_state=0)).fit(matrix)
    np.testing.assert_allclose(given.reference_inertia_, kmeans.inertia_, rtol=1e-9)
    scaled = tc.IMM(4, random_state=0, scale="standard").fit(matrix)
    assert scaled.cost_ratio_ >= 1.0


def test_types_and_threads_change_nothing(fitted):
    model, X = fitted
    for matrix in (
        sparse.csr_array(X.astype(np.float32)),
        sparse.csr_matrix(X.astype(np.int64)),
        sparse.csr_array(X).astype(np.int8),
    ):
        same_trees(clone(model).fit(matrix).tree_, model.tree_)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    same_trees(clone(model).fit(wide).tree_, model.tree_)
    for n_jobs in (1, 2):
        again = clone(model).set_params(n_jobs=n_jobs).fit(wide)
        assert again.inertia_ == model.inertia_
        same_trees(again.tree_, model.tree_)


def test_stored_zeros_and_duplicates_are_what_they_add_up_to(fitted):
    model, X = fitted
    twice = sparse.coo_array(X)
    rows, columns = (np.concatenate([places, places]) for places in twice.coords)
    halves = np.concatenate([twice.data / 2, twice.data / 2])
    matrix = sparse.coo_array((halves, (rows, columns)), shape=X.shape)
    same_trees(clone(model).fit(matrix).tree_, model.tree_)
    all_stored = sparse.csr_array(np.ones_like(X))
    all_stored.data = X.ravel().copy()
    same_trees(clone(model).fit(all_stored).tree_, model.tree_)


def test_a_model_of_sparse_rows_does_what_models_do(fitted, tmp_path):
    model, X = fitted
    matrix = sparse.csr_array(X)
    names = [f"word{i}" for i in range(X.shape[1])]
    named = clone(model).fit(matrix, feature_names=names)
    assert "word" in str(named.rules())
    assert named.explain(matrix[:3]) == named.explain(X[:3])
    named.save(tmp_path / "model.json")
    again = tc.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(matrix), model.labels_)
    small, least = model.truncate(6), clone(model).set_params(max_leaves=6).fit(matrix)
    same_trees(small.tree_, least.tree_)
    np.testing.assert_allclose(small.inertia_, least.inertia_, rtol=1e-12)
    np.testing.assert_array_equal(model.to_sklearn().predict(X.astype(np.float32)), model.labels_)
    assert model.drift(matrix).get_column("missing").sum() == 0
    with pytest.raises(TypeError, match=r"report takes dense rows.*profile\(X\) takes sparse"):
        tc.report(model, matrix, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("scale", [None, "standard"])
def test_profiles_of_sparse_rows_are_those_of_dense_ones(fitted, scale):
    model, X = fitted
    weight = np.arange(len(X)) % 3 / 2.0
    for form in FORMATS:
        dense, thin = (model.profile(rows, weight, scale=scale).table for rows in (X, form(X)))
        pl.testing.assert_frame_equal(dense, thin, rel_tol=1e-12)
    with pytest.raises(ValueError, match="X has 7 features"):
        model.profile(sparse.csr_array(X[:, :7]))


def test_the_least_change_of_a_sparse_row_is_that_of_a_dense_one(fitted):
    model, X = fitted
    for row, form in zip(range(0, 40, 8), FORMATS, strict=True):
        thin = form(X[[row]])
        for cluster in model.classes_:
            dense_change = model.counterfactual(X[[row]], cluster)
            change = model.counterfactual(thin, cluster)
            assert type(change.row) is type(thin)
            np.testing.assert_array_equal(change.row.toarray(), dense_change.row)
            assert repr(change) == repr(dense_change)
            assert model.predict(change.row) == [cluster]
    with pytest.raises(ValueError, match="takes one row"):
        model.counterfactual(sparse.csr_array(X[:2]), 0)


def test_pipelines_of_texts_are_chosen_from():
    subjects = ["bank loan rate", "team match goal", "rain wind snow"]
    texts = [" ".join(words.split()[: 2 + i % 2]) for i in range(6) for words in subjects]
    tree = tc.BestTree(3, effort="quick", random_state=0)
    steps = make_pipeline(TfidfVectorizer(), tree).fit(texts)
    assert len(set(steps.predict(subjects))) == 3
    grid = GridSearchCV(steps, {"besttree__n_clusters": [2, 3]}, cv=2).fit(texts)
    assert grid.best_params_ == {"besttree__n_clusters": 3}
    for choose in (tc.selection.stability, tc.selection.silhouette):
        assert choose(steps, texts, [2, 3], random_state=0).best_k == 3


def test_noise_and_weights_of_zero_are_left_out(fitted):
    model, X = fitted
    labels = model.reference_labels_.copy()
    labels[::7] = -1
    weight = np.ones(len(X))
    weight[1::7] = 0.0
    dense = tc.ExKMC(reference=labels, max_leaves=8).fit(X, sample_weight=weight)
    thin = tc.ExKMC(reference=labels, max_leaves=8).fit(sparse.csr_array(X), sample_weight=weight)
    same_trees(dense.tree_, thin.tree_)
    np.testing.assert_array_equal(dense.labels_, thin.labels_)
    np.testing.assert_array_equal(dense.reference_labels_, thin.reference_labels_)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (tc.ExGreedy(3), TypeError, "IMM, ExKMC, .* take sparse rows"),
        (tc.IMM(3, scale=[1.0]), ValueError, "scale has 1 units, but X has 8 columns"),
        (tc.IMM(3, reference=np.zeros((2, 5))), ValueError, "reference has 5 columns"),
    ],
)
def test_what_sparse_rows_are_not_taken_for_is_refused(model, error, message):
    X, _ = words(np.random.default_rng(2))
    before = copy.copy(vars(model))
    with pytest.raises(error, match=message):
        model.fit(sparse.csr_array(X))
    assert vars(model) == before


def test_bad_cells_and_widths_are_refused(fitted):
    model, X = fitted
    for bad in (np.nan, np.inf):
        matrix = sparse.csr_array(X)
        matrix.data[3] = bad
        with pytest.raises(ValueError, match=r"Input X contains (NaN|inf): 1 stored cells") as info:
            tc.IMM(3).fit(matrix)
        dense = "In dense tables BestTree, IMM, ExKMC, .* take missing cells"
        assert bool(re.search(dense, str(info.value))) == np.isnan(bad)
    with pytest.raises(ValueError, match="X has 7 features, but ExKMC is expecting 8"):
        model.predict(sparse.csr_array(X[:, :7]))
    with pytest.raises(NotFittedError):
        tc.IMM().predict(sparse.csr_array(X))
    frame = pl.DataFrame({"a": ["u", "v", "u"], "b": [1.0, 2.0, 9.0]})
    mixed = tc.IMM(2, random_state=0).fit(frame)
    with pytest.raises(TypeError, match="columns that are not numbers"):
        mixed.predict(sparse.csr_array(np.eye(3, 2)))


def test_measures_take_sparse_rows(fitted):
    model, X = fitted
    matrix, labels = sparse.csc_array(X), model.labels_
    weight = np.arange(len(X)) % 3 / 2.0
    centers = model.cluster_centers_
    for scale in (None, "standard", "robust", np.arange(1.0, 9.0)):
        for measure in (
            lambda rows: tc.metrics.kmeans_cost(rows, labels, weight, scale=scale),  # noqa: B023
            lambda rows: tc.metrics.surrogate_cost(rows, labels, centers, weight, scale=scale),  # noqa: B023
            lambda rows: tc.metrics.surrogate_cost(
                rows,
                labels,
                centers,
                weight,
                criterion="kmedians",
                scale=scale,  # noqa: B023
            ),
            lambda rows: tc.metrics.cost_ratio(rows, labels, labels, scale=scale),  # noqa: B023
            lambda rows: tc.metrics.kernel_cost(rows, labels, kernel="linear", scale=scale),  # noqa: B023
        ):
            np.testing.assert_allclose(measure(matrix), measure(X), rtol=1e-12)
    np.testing.assert_allclose(tc.metrics.kmeans_cost(matrix, labels), model.inertia_, rtol=1e-12)


def test_selection_takes_sparse_rows(fitted):
    model, X = fitted
    matrix = sparse.csr_array(X)
    units = np.arange(1.0, 9.0)
    scaled = clone(model).set_params(scale=units)
    by_medians = clone(model).set_params(criterion="kmedians")
    for dense, thin in (
        [
            tc.selection.silhouette(by_medians, rows, [5, 8], param="max_leaves", random_state=0)
            for rows in (X, matrix)
        ],
        [tc.selection.choose_leaves(model, rows, [5, 7, 9]) for rows in (X, matrix)],
        [
            tc.selection.silhouette(scaled, rows, [5, 8], param="max_leaves", random_state=0)
            for rows in (X, matrix)
        ],
    ):
        assert dense.best_value == thin.best_value
        np.testing.assert_allclose(
            thin.table.to_numpy().astype(float), dense.table.to_numpy().astype(float), rtol=1e-9
        )
    for refused in (
        lambda: tc.selection.gap_statistic(tc.IMM(), matrix, [2, 3]),
        lambda: tc.compare(matrix, [tc.ExGreedy()], 3),
    ):
        with pytest.raises(TypeError, match="takes no sparse input"):
            refused()


@pytest.mark.parametrize(
    "limits", [{}, {"max_leaves": 9}, {"max_leaves": 12, "max_depth": 3, "min_samples_leaf": 3}]
)
def test_a_quick_search_of_sparse_rows_is_that_of_dense_ones(limits):
    rng = np.random.default_rng(11)
    n_same, n_better = 0, 0
    for trial in range(25):
        X, _ = words(rng, n=int(rng.integers(40, 200)), d=int(rng.integers(6, 12)))
        labels = rng.integers(0, 3, len(X)) if trial % 2 else (X[:, 0] + 2 * (X[:, 1] > 0)) % 4
        weight = rng.integers(1, 4, len(X)) / 2 if trial % 3 else None
        model = tc.BestTree(reference=labels, effort="quick", random_state=trial, **limits)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dense = clone(model).fit(X, sample_weight=weight)
            thin = clone(model).fit(FORMATS[trial % len(FORMATS)](X), sample_weight=weight)
        objective = thin.search_path_.get_column("objective")[-1]
        np.testing.assert_allclose(thin.inertia_, objective, rtol=1e-12)
        np.testing.assert_allclose(
            tc.metrics.kmeans_cost(X, thin.labels_, weight), thin.inertia_, rtol=1e-12
        )
        np.testing.assert_array_equal(thin.predict(X), thin.labels_)
        assert thin.inertia_ <= thin.starts_.get_column("refined").min() * (1 + 1e-12)
        np.testing.assert_allclose(
            thin.starts_.get_column("objective"), dense.starts_.get_column("objective"), rtol=1e-9
        )
        n_same += np.isclose(thin.inertia_, dense.inertia_, rtol=1e-9)
        n_better += thin.inertia_ < dense.inertia_ * (1 - 1e-9)
    # Ties of rounded sums send the two ways apart now and then, neither to the better.
    assert n_same >= 20, (n_same, n_better)


def test_a_search_of_sparse_rows_is_as_good_as_that_of_dense_ones():
    X, _ = words(np.random.default_rng(6), n=300, d=10)
    model = tc.BestTree(4, max_leaves=8, random_state=0)
    dense, thin = clone(model).fit(X), clone(model).fit(sparse.csr_array(X))
    assert thin.inertia_ <= dense.inertia_ * 1.01
    assert thin.inertia_ <= tc.ExKMC(4, max_leaves=8, random_state=0).fit(X).inertia_
    names = set(thin.starts_.get_column("start"))
    assert {"ExKMC", "KMeansTree", "KernelExpand", "random rows", 'effort="quick"'} <= names
    again = clone(model).set_params(n_jobs=2).fit(sparse.csr_array(X))
    same_trees(thin.tree_, again.tree_)
    from_tree = clone(model).set_params(init=thin.tree_, effort="quick").fit(sparse.csr_array(X))
    assert from_tree.inertia_ <= thin.inertia_ * (1 + 1e-9)
    scaled = clone(model).set_params(scale="standard", effort="thorough")
    assert scaled.fit(sparse.csr_array(X)).cost_ratio_ <= scaled.fit(X).cost_ratio_ * 1.01


@pytest.mark.parametrize("effort", ["quick", "normal"])
def test_a_search_for_k_medians_of_sparse_rows_is_as_good_as_that_of_dense_ones(effort):
    rng = np.random.default_rng(13)
    n_same = 0
    for trial in range(8):
        X, _ = words(rng, n=int(rng.integers(40, 120)), d=int(rng.integers(6, 12)))
        X[:, 0] += 1.0
        X[:, 1] += rng.integers(0, 4, len(X))
        labels = (X[:, 1] > 2) + 2 * (X[:, 0] > 2)
        weight = rng.integers(1, 4, len(X)) / 2 if trial % 2 else None
        model = tc.BestTree(
            reference=labels, objective="kmedians", max_leaves=6, effort=effort, random_state=trial
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # labels that do not lie about their medians
            dense = clone(model).fit(X, sample_weight=weight)
            thin = clone(model).fit(FORMATS[trial % len(FORMATS)](X), sample_weight=weight)
        objective = thin.search_path_.get_column("objective")[-1]
        np.testing.assert_allclose(thin.inertia_, objective, rtol=1e-12)
        cost = tc.metrics.surrogate_cost(
            X, thin.labels_, thin.cluster_centers_, weight, criterion="kmedians"
        )
        np.testing.assert_allclose(thin.inertia_, cost, rtol=1e-12)
        np.testing.assert_array_equal(thin.predict(X), thin.labels_)
        assert thin.inertia_ <= dense.inertia_ * 1.05
        n_same += np.isclose(thin.inertia_, dense.inertia_, rtol=1e-9)
    assert n_same >= 5


@pytest.mark.parametrize("effort", ["quick", "normal"])
def test_labels_are_explained_as_of_dense_rows(effort):
    rng = np.random.default_rng(12)
    n_mistakes = 0
    for trial in range(12):
        X, _ = words(rng, n=int(rng.integers(30, 120)), d=int(rng.integers(6, 12)))
        labels = rng.integers(0, 3, len(X)) if trial % 2 else (X[:, 0] + 2 * (X[:, 1] > 0)) % 4
        weight = rng.integers(1, 4, len(X)) / 2 if trial % 3 else None
        model = tc.BestTree(
            reference=labels, objective="labels", max_leaves=7, effort=effort, random_state=trial
        )
        dense = clone(model).fit(X, sample_weight=weight)
        thin = clone(model).fit(FORMATS[trial % len(FORMATS)](X), sample_weight=weight)
        same_trees(dense.tree_, thin.tree_)
        np.testing.assert_array_equal(dense.labels_, thin.labels_)
        pl.testing.assert_frame_equal(dense.search_path_, thin.search_path_)
        np.testing.assert_allclose(thin.inertia_, dense.inertia_, rtol=1e-12)
        n_mistakes += (thin.labels_ != labels).sum()
    assert n_mistakes > 50


def test_k_medians_of_sparse_rows_are_those_of_dense_ones():
    rng = np.random.default_rng(14)
    for trial in range(30):
        X, _ = words(rng, n=int(rng.integers(20, 90)))
        X[:, 0] += 1.0
        X[:, 1] += rng.integers(0, 3, len(X))
        weight = rng.integers(1, 5, len(X)) / 4 if trial % 2 else None
        thin = FORMATS[trial % len(FORMATS)](X)
        labels = rng.integers(0, 3, len(X))
        np.testing.assert_array_equal(
            cluster_medians(X, labels, 4, weight),
            cluster_medians(sparse.csr_array(X), labels, 4, weight),
        )
        model = tc.ExKMC(3, criterion="kmedians", base_tree=None, random_state=trial, max_leaves=6)
        dense, found = (clone(model).fit(rows, sample_weight=weight) for rows in (X, thin))
        same_trees(dense.tree_, found.tree_)
        for name in ("cluster_centers_", "inertia_", "reference_inertia_", "cost_ratio_"):
            np.testing.assert_allclose(
                getattr(found, name), getattr(dense, name), rtol=1e-12, atol=1e-12
            )
        np.testing.assert_allclose(found.score(thin), dense.score(X), rtol=1e-12)


def test_costs_of_medians_keep_their_digits_far_from_zero():
    rng = np.random.default_rng(15)
    X = rng.integers(1, 16, (60, 3)) / 8.0 + np.array([1e8, 0.0, -1e6])
    labels = np.repeat([0, 1, 2], 20)
    centers = cluster_medians(X, labels, 3)
    for weight in (None, rng.random(60) + 0.5):
        dense, thin = (
            tc.metrics.surrogate_cost(rows, labels, centers, weight, criterion="kmedians")
            for rows in (X, sparse.csr_array(X))
        )
        np.testing.assert_allclose(thin, dense, rtol=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
def test_robust_units_are_those_of_dense_columns(weighted):
    rng = np.random.default_rng(16)
    n_used = 0
    for trial in range(40):
        n = int(rng.integers(1, 60))
        X = rng.normal(size=(n, 9)) * (rng.random((n, 9)) < np.arange(9) / 8.0)
        X[:, 8] = rng.integers(1, 3, n) if trial % 2 else 5.0
        X[rng.random((n, 9)) < 0.2] = 0.0 if trial % 3 else 1e150
        weight = rng.integers(1, 5, n) / 4 if weighted else None
        stored = FORMATS[trial % len(FORMATS)](X)
        dense = Units.of(read_table(X, estimator_name=""), weight, "robust", 1).scale
        thin = Units.of(read_sparse(stored, estimator_name=""), weight, "robust", 1).scale
        np.testing.assert_allclose(thin, dense, rtol=1e-12)
        standard = Units.of(read_sparse(stored, estimator_name=""), weight, "standard", 1).scale
        n_used += (thin != standard).sum()
    assert n_used > 60


def test_methods_are_compared_on_sparse_rows(fitted):
    _, X = fitted
    named = [tc.IMM(), tc.ExKMC(), tc.BestTree(effort="quick")]
    dense, thin = (
        tc.compare(rows, named, 3, random_state=0).table.drop("seconds")
        for rows in (X, sparse.csr_array(X))
    )
    pl.testing.assert_frame_equal(dense, thin, rel_tol=1e-9)
    with_defaults = tc.compare(sparse.csc_array(X), None, 3, max_leaves=[4], random_state=0)
    methods = with_defaults.table.get_column("method").to_list()
    assert methods == ["BestTree", "IMM", "ExKMC", "ExKMC(base_tree=None)", "Kauri"]


def test_costs_keep_their_digits_where_columns_lie_far_from_zero():
    # Every cell is stored, so that nothing is subtracted from a sum of zeros.
    rng = np.random.default_rng(4)
    X = rng.integers(0, 16, (80, 3)) / 8.0 + np.array([1e8, 0.0, -1e6])
    X[X == 0.0] = 0.125
    labels = np.repeat([0, 1, 2, 3], 20)
    cost = tc.metrics.kmeans_cost(X, labels)
    np.testing.assert_allclose(
        tc.metrics.kmeans_cost(sparse.csr_array(X), labels), cost, rtol=1e-12
    )
