"""Pipelines in silhouette and gap_statistic: the last step on the rows that it sees."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.metrics import silhouette_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import treeclust_rs as tc
from treeclust_rs.metrics import kernel_cost
from treeclust_rs.selection import gap_statistic, silhouette

pytestmark = pytest.mark.filterwarnings("ignore:The gap still rises")
X, Y = load_wine(return_X_y=True)
SCALED = StandardScaler().fit_transform(X)
TREES = [
    tc.ExKMC(random_state=0, n_jobs=1),
    tc.IMM(random_state=0, criterion="kmedians", n_jobs=1),
    tc.Kauri(kernel="rbf", gamma=0.05, n_jobs=1),
    tc.KernelKMeans(kernel="laplacian", gamma=0.1, n_init=2, random_state=0, n_jobs=1),
    KMeans(n_init=2, random_state=0),
]


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: type(tree).__name__)
@pytest.mark.parametrize("search", [silhouette, gap_statistic])
def test_a_pipeline_is_its_last_step_on_transformed_rows(search, tree):
    pipeline = Pipeline([("scale", StandardScaler()), ("tree", tree)])
    options = {"n_references": 2} if search is gap_statistic else {}
    found = search(pipeline, X, [2, 3], param="tree__n_clusters", random_state=0, **options)
    plain = search(tree, SCALED, [2, 3], random_state=0, **options)
    assert found.table.equals(plain.table)
    assert found.best_k == plain.best_k == found.best_estimator["tree"].n_clusters
    assert isinstance(found.best_estimator, Pipeline)
    by_default = search(pipeline, X, [2, 3], random_state=0, **options)
    assert by_default.table.equals(found.table)
    assert not hasattr(pipeline["scale"], "mean_")


def test_nested_pipelines_and_weights():
    tree = tc.Kauri(kernel="rbf", gamma=0.05, n_jobs=1)
    inner = Pipeline([("pca", PCA(4)), ("tree", tree)])
    outer = Pipeline([("scale", StandardScaler()), ("inner", inner)])
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    options = {"n_references": 2, "sample_weight": weight, "random_state": 0}
    found = gap_statistic(outer, X, [2, 3], param="inner__tree__n_clusters", **options)
    seen = found.best_estimator["inner"]["pca"].transform(SCALED)
    labels = found.best_estimator["inner"]["tree"].labels_
    expected = kernel_cost(seen, labels, weight, gamma=0.05)
    row = found.table.row(by_predicate=pl.col("k") == found.best_k, named=True)
    assert row["w"] == pytest.approx(expected, rel=1e-9)


def test_the_parameter_may_be_of_a_transform():
    pipeline = Pipeline([("pca", PCA()), ("tree", tc.ExKMC(3, random_state=0, n_jobs=1))])
    found = silhouette(pipeline, SCALED, [2, 4], param="pca__n_components", random_state=0)
    assert found.table.columns == ["n_components", "n_clusters", "silhouette"]
    for n, _, score in found.table.iter_rows():
        rows = PCA(n).fit_transform(SCALED)
        labels = tc.ExKMC(3, random_state=0).fit(rows).labels_
        assert score == pytest.approx(silhouette_score(rows, labels), rel=1e-9)
    with pytest.raises(ValueError, match="param='pca__n_components' is none of the last step"):
        gap_statistic(pipeline, SCALED, [2, 4], param="pca__n_components")


def test_transforms_have_the_same_seed_for_all_numbers():
    pipeline = make_pipeline(PCA(3, svd_solver="randomized"), KMeans(n_init=1))
    models = [
        silhouette(pipeline, SCALED, numbers, random_state=0).best_estimator
        for numbers in ([2], [3])
    ]
    seeds = [model["pca"].random_state for model in models]
    assert seeds[0] == seeds[1] is not None
    assert pipeline["pca"].random_state is None


def test_rows_that_only_the_first_steps_can_read():
    frame = pl.DataFrame({"kind": ["a", "b", "c"] * 20, "x": [1.0, None, 3.0, 4.0] * 15})
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["kind"]), (SimpleImputer(), ["x"])
    )
    pipeline = make_pipeline(encoder, tc.ExKMC(random_state=0, n_jobs=1))
    seen = encoder.fit_transform(frame)
    plain = silhouette(tc.ExKMC(random_state=0, n_jobs=1), seen, [2, 3, 4])
    for rows in (frame, frame.lazy()):
        assert silhouette(pipeline, rows, [2, 3, 4]).table.equals(plain.table)


def test_sparse_rows_of_a_step():
    frame = pl.DataFrame({"kind": ["a", "b", "c"] * 20}).to_pandas()
    pipeline = make_pipeline(OneHotEncoder(), KMeans(n_init=1))
    assert silhouette(pipeline, frame, [2, 3], random_state=0).best_k == 3


@pytest.mark.parametrize("search", [silhouette, gap_statistic])
def test_what_is_refused(search):
    pipeline = make_pipeline(StandardScaler(), tc.ExKMC())
    with pytest.raises(TypeError, match=r"Pipeline has no parameter tree__n_clusters, .* exkmc__"):
        search(pipeline, X, [2, 3], param="tree__n_clusters")
    with pytest.raises(TypeError, match="Pipeline has no parameter standardscaler__n_clusters"):
        search(make_pipeline(PCA(2), StandardScaler()), X, [2, 3])
    logarithms = FunctionTransformer(np.log)
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match="column x0 has 9 inf"):
        search(make_pipeline(logarithms, tc.ExKMC()), np.zeros((9, 1)), [2, 3])
