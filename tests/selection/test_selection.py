"""The number of clusters: the gap statistic and the silhouette against their definitions."""

from __future__ import annotations

import math
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans, MiniBatchKMeans
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import silhouette_score
from threadpoolctl import threadpool_limits

from treeclust_rs import (
    IMM,
    ExKMC,
    Kauri,
    KernelExKMC,
    KernelExpand,
    KernelIMM,
    KernelKMeans,
    ObliqueTree,
)
from treeclust_rs._kernels.parameters import make_kernel
from treeclust_rs.metrics import kmeans_cost
from treeclust_rs.selection import gap_statistic, silhouette, silhouettes


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Many small fits: threads would only wait for each other."""
    with threadpool_limits(1):
        yield


def blobs(k, n=40, d=2, distance=10.0, seed=0):
    """k round clusters of n rows each, the first two columns on a circle."""
    rng = np.random.default_rng(seed)
    centers = np.zeros((k, d))
    angle = 2 * np.pi * np.arange(k) / k + np.pi / 4
    centers[:, :2] = distance * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.repeat(centers, n, axis=0) + rng.normal(size=(k * n, d))


def by_rule(frame):
    """The smallest k whose gap is at least the next one's less its error."""
    gap, error = frame["gap"].to_list(), frame["error"].to_list()
    for i in range(len(gap) - 1):
        if gap[i] >= gap[i + 1] - error[i + 1] - 1e-12:
            return frame["k"][i]
    return frame["k"][-1]


def chosen(found):
    params = found.best_estimator.get_params()
    return params["n_clusters"]


class Told(ClusterMixin, BaseEstimator):
    """A clusterer whose inertia is told: on the data, and on anything else."""

    def __init__(self, n_clusters=1, data=(), drawn=(), rows=None):
        self.n_clusters = n_clusters
        self.data = data
        self.drawn = drawn
        self.rows = rows

    def fit(self, X, y=None):
        told = self.data if np.array_equal(X, self.rows) else self.drawn
        self.inertia_ = told[self.n_clusters - 1]
        return self


def told(data, drawn):
    X = np.arange(8.0).reshape(4, 2)
    estimator = Told(data=tuple(data), drawn=tuple(drawn), rows=X)
    return gap_statistic(estimator, X, range(1, len(data) + 1), n_references=3)


ESTIMATORS = [
    KMeans(n_init=2),
    MiniBatchKMeans(n_init=2, batch_size=256),
    ExKMC(n_jobs=1),
    IMM(criterion="kmedians", n_jobs=1),
    Kauri(n_jobs=1),
]


# ---- the gap statistic --------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_gap_finds_clear_clusters(estimator):
    X = blobs(4, n=20)
    found = gap_statistic(estimator, X, range(1, 7), n_references=3, random_state=0)
    assert found.best_k == 4 == by_rule(found.table)
    assert chosen(found) == 4 and len(found.best_estimator.labels_) == len(X)
    assert found.table.columns == [
        "k", "n_clusters", "w", "log_w", "reference_log_w", "gap", "sd", "error"
    ]  # fmt: skip
    assert found.table["k"].to_list() == found.table["n_clusters"].to_list() == list(range(1, 7))
    assert estimator.get_params() == clone(estimator).get_params()
    assert not hasattr(estimator, "labels_")


def test_gap_finds_no_clusters():
    X = np.random.default_rng(0).uniform(size=(100, 2))
    found = gap_statistic(KMeans(n_init=2), X, range(1, 4), n_references=10, random_state=0)
    assert found.best_k == 1


def test_gap_is_the_definition():
    X = blobs(3, d=3)
    numbers, n_references = [1, 2, 3, 5], 4
    found = gap_statistic(
        KMeans(n_init=1, random_state=7), X, numbers, n_references=n_references, random_state=3
    )
    frame = found.table
    for row in frame.iter_rows(named=True):
        labels = KMeans(row["k"], n_init=1, random_state=7).fit(X).labels_
        assert row["w"] == pytest.approx(kmeans_cost(X, labels), rel=1e-10)
        assert row["log_w"] == pytest.approx(math.log(row["w"]), rel=1e-12)
        assert row["gap"] == pytest.approx(row["reference_log_w"] - row["log_w"], abs=1e-12)
        assert row["error"] == pytest.approx(row["sd"] * math.sqrt(1 + 1 / n_references))
    # The same draws, made again.
    rng = np.random.RandomState(3)
    logs = []
    for seed in rng.randint(np.iinfo(np.int32).max, size=n_references):
        drawn = np.random.RandomState(seed).uniform(X.min(axis=0), X.max(axis=0), size=X.shape)
        logs.append(
            [math.log(KMeans(k, n_init=1, random_state=7).fit(drawn).inertia_) for k in numbers]
        )
    assert frame["reference_log_w"].to_list() == pytest.approx(np.mean(logs, axis=0), rel=1e-10)
    assert frame["sd"].to_list() == pytest.approx(np.std(logs, axis=0), rel=1e-8)
    assert found.best_k == by_rule(frame) == 3


@pytest.mark.parametrize(
    ("data", "drawn", "best"),
    [
        ([8, 4, 1], [16, 8, 4], 1),  # gaps log 2, log 2, log 4: k = 1 is as good as 2
        ([8, 2, 1], [16, 8, 4], 2),  # log 2, log 4, log 4
        ([8, 4, 2], [8, 6, 5], None),  # rises to the end
        ([8, 0, 0], [8, 6, 5], 2),  # the first number that fits exactly
        ([8, 4, 0], [8, 6, 5], 3),
        ([0, 0, 0], [8, 6, 5], 1),
        ([0, 0, 0], [0, 0, 0], 1),
        ([8, 4, 0], [8, 8, 0], 2),  # both 0: a gap of 0
        ([8, 2, 1e-13], [8, 8, 0], 2),  # rounding counts as 0
        ([8, 2, -1e-13], [8, 8, 1], 3),
        ([8, 4, 2], [8, 6, 0], 2),
    ],
)
def test_the_rule(data, drawn, best):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = told(data, drawn)
    rises = "The gap still rises at k=3, the largest of k_values, which is taken. Try larger ones."
    assert [str(warning.message) for warning in caught] == ([] if best else [rises])
    assert found.best_k == (best or 3) == by_rule(found.table)
    assert not found.table["gap"].is_nan().any()
    assert found.table["sd"].to_list() == pytest.approx([0.0] * 3)


def test_negative_sums_are_refused():
    with pytest.raises(ValueError, match=r"kernel_cost_ of a fit is -2\. .* semidefinite"):
        told([8, 4, -2], [8, 6, 5])


def test_gap_of_equal_rows_and_constant_columns():
    X = np.full((12, 2), 3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct rows than clusters
        found = gap_statistic(ExKMC(n_jobs=1), X, [1, 2, 3], n_references=2, random_state=0)
    assert found.best_k == 1 and found.table["gap"].to_list() == [0.0, 0.0, 0.0]
    X = np.column_stack([np.repeat([0.0, 1.0, 5.0], 4), np.ones(12)])
    found = gap_statistic(KMeans(n_init=2), X, [1, 2, 3], n_references=2, random_state=0)
    assert found.best_k == 3
    assert found.table["w"][2] == 0 and found.table["gap"][2] == math.inf


def test_gap_does_not_depend_on_the_origin():
    X = np.round(blobs(3, n=15) * 2**10) / 2**10
    here = gap_statistic(ExKMC(n_jobs=1), X, range(1, 5), n_references=2, random_state=0)
    there = gap_statistic(ExKMC(n_jobs=1), X + 1e8, range(1, 5), n_references=2, random_state=0)
    assert there.best_k == here.best_k == 3
    assert there.table["w"].to_list() == pytest.approx(here.table["w"].to_list(), rel=1e-9)
    assert there.table["gap"].to_list() == pytest.approx(here.table["gap"].to_list(), rel=1e-5)


def test_gap_is_reproducible_and_shared_among_processes():
    X = blobs(3, n=10)
    frames = [
        gap_statistic(
            ExKMC(n_jobs=1), X, [4, 1, 2, 2], n_references=2, random_state=0, n_jobs=n_jobs
        ).table
        for n_jobs in (None, 1, 2)
    ]
    assert frames[0].equals(frames[1]) and frames[0].equals(frames[2])
    assert frames[0]["k"].to_list() == [1, 2, 4]
    other = gap_statistic(ExKMC(n_jobs=1), X, [1, 2, 4], n_references=2, random_state=1).table
    assert not other["gap"].equals(frames[0]["gap"])


def test_gap_counts_weights():
    X = blobs(3, n=15)
    # Far rows of weight 0: neither the box nor the clusters see them.
    far = np.concatenate([X, [[1e4, 1e4], [-1e4, 0.0]]])
    weight = np.r_[np.ones(len(X)), 0.0, 0.0]
    found = gap_statistic(
        ExKMC(n_jobs=1), far, range(1, 5), n_references=2, sample_weight=weight, random_state=0
    )
    plain = gap_statistic(ExKMC(n_jobs=1), X, range(1, 5), n_references=2, random_state=0)
    assert found.table["w"].to_list() == pytest.approx(plain.table["w"].to_list(), rel=1e-9)
    assert found.best_k == 3 and found.table["gap"].is_finite().all()
    with pytest.raises(ValueError, match="sample_weight has 2 entries"):
        gap_statistic(ExKMC(n_jobs=1), X, [1, 2], sample_weight=[1.0, 2.0])


def frames(X):
    return {
        "polars": pl.DataFrame(X, schema=["a", "b"]),
        "lazy": pl.LazyFrame(X, schema=["a", "b"]),
        "pandas": pd.DataFrame(X, columns=["a", "b"]),
        "float32": X.astype(np.float32),
    }


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "float32"])
def test_frames(kind):
    X = frames(blobs(3, n=15))[kind]
    found = gap_statistic(ExKMC(n_jobs=1), X, range(2, 5), n_references=2, random_state=0)
    assert found.best_k == 3
    if kind != "float32":
        assert found.best_estimator.feature_names_in_.tolist() == ["a", "b"]
    assert silhouette(ExKMC(n_jobs=1), X, range(2, 5), random_state=0).best_k == 3


@pytest.mark.parametrize("search", [gap_statistic, silhouette])
def test_a_lazy_frame_is_collected_once(search):
    X, collections = blobs(3, n=15), []

    def count(batch):
        collections.append(len(batch))
        return batch

    lazy = pl.LazyFrame(X, schema=["a", "b"]).map_batches(count)
    options = {"n_references": 2} if search is gap_statistic else {}
    assert search(ExKMC(n_jobs=1), lazy, range(2, 5), random_state=0, **options).best_k == 3
    assert collections == [len(X)]
    with pytest.raises(TypeError, match=f"{search.__name__} needs numbers"):
        search(KMeans(), lazy.with_columns(s=pl.lit("x")), range(2, 5))
    assert collections == [len(X)]


# ---- the silhouette -----------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_silhouette_finds_clear_clusters(estimator):
    X = blobs(5)
    found = silhouette(estimator, X, range(2, 9), random_state=0)
    assert found.best_k == 5 == chosen(found)
    assert found.table.columns == ["k", "n_clusters", "silhouette"]
    best = found.table["silhouette"].arg_max()
    assert found.table["k"][best] == 5
    metric = "manhattan" if getattr(estimator, "criterion", "") == "kmedians" else "euclidean"
    expected = silhouette_score(X, found.best_estimator.labels_, metric=metric)
    assert found.table["silhouette"][best] == pytest.approx(expected, rel=1e-9)
    assert not hasattr(estimator, "labels_")


def test_silhouette_of_clusterers_without_inertia():
    X = blobs(3)
    assert silhouette(AgglomerativeClustering(), X, range(2, 6)).best_k == 3
    distances = np.sqrt(np.square(X[:, None] - X).sum(axis=2))
    linked = AgglomerativeClustering(metric="precomputed", linkage="average")
    for sample_size in (None, 60):
        found = silhouette(linked, distances, range(2, 6), sample_size=sample_size, random_state=0)
        assert found.best_k == 3
    with pytest.raises(TypeError, match="AgglomerativeClustering has no inertia_"):
        gap_statistic(AgglomerativeClustering(), X, range(2, 4))


@pytest.mark.parametrize("metric", ["cosine", "chebyshev", "l1", lambda x, y: abs(x - y).max()])
def test_silhouette_in_a_given_metric(metric):
    X = blobs(3, n=10) + 40.0
    found = silhouette(KMeans(n_init=2), X, [2, 3], metric=metric, random_state=0)
    expected = silhouette_score(X, found.best_estimator.labels_, metric=metric)
    assert found.table["silhouette"].max() == pytest.approx(expected, rel=1e-9)


def test_silhouette_on_the_scale_of_the_estimator():
    X = blobs(3) * [1.0, 1000.0]
    found = silhouette(ExKMC(scale="standard", n_jobs=1), X, range(2, 6), random_state=0)
    assert found.best_k == 3
    labels = found.best_estimator.labels_
    expected = silhouette_score(X / X.std(axis=0), labels)
    assert found.table["silhouette"][1] == pytest.approx(expected, rel=1e-9)


def test_silhouette_does_not_depend_on_the_origin():
    X = np.round(blobs(3) * 2**10) / 2**10
    here, there = (
        silhouette(ExKMC(n_jobs=1), at, range(2, 6), random_state=0) for at in (X, X + 1e8)
    )
    assert there.table["silhouette"].to_list() == pytest.approx(
        here.table["silhouette"].to_list(), rel=1e-9
    )


def test_silhouette_of_a_sample():
    X = blobs(3, n=200)
    whole = silhouette(KMeans(n_init=2), X, range(2, 6), random_state=0)
    part = silhouette(KMeans(n_init=2), X, range(2, 6), sample_size=100, random_state=0)
    assert part.best_k == whole.best_k == 3
    assert len(part.best_estimator.labels_) == 600
    assert part.table["silhouette"].to_list() == pytest.approx(
        whole.table["silhouette"].to_list(), abs=0.05
    )
    assert not part.table["silhouette"].equals(whole.table["silhouette"])
    again = silhouette(KMeans(n_init=2), X, range(2, 6), sample_size=100, random_state=0)
    assert again.table.equals(part.table)
    all_rows = silhouette(KMeans(n_init=2), X, range(2, 6), sample_size=10_000, random_state=0)
    assert all_rows.table.equals(whole.table)


def test_silhouette_takes_at_most_10_000_rows_by_default(monkeypatch):
    sizes, whole = [], silhouettes.silhouette_score

    def score(points, labels, **options):
        sizes.append(len(labels))
        return whole(points, labels, **options)

    monkeypatch.setattr(silhouettes, "silhouette_score", score)
    monkeypatch.setattr(silhouettes, "_SAMPLE_SIZE", 100)
    X = blobs(3, n=200)
    default = silhouette(KMeans(n_init=2), X, [3, 4], random_state=0)
    asked = silhouette(KMeans(n_init=2), X, [3, 4], sample_size=100, random_state=0)
    assert sizes == [100] * 4 and default.table.equals(asked.table)
    silhouette(KMeans(n_init=2), X, [3, 4], sample_size=math.inf, random_state=0)
    assert sizes[4:] == [600] * 2
    assert len(default.best_estimator.labels_) == 600
    monkeypatch.undo()
    assert silhouettes._SAMPLE_SIZE == 10_000


def test_silhouette_by_several_processes():
    X = blobs(3)
    alone, shared = (
        silhouette(IMM(), X, range(2, 5), random_state=0, n_jobs=n_jobs) for n_jobs in (None, 2)
    )
    assert shared.best_k == alone.best_k == 3
    assert shared.table["silhouette"].to_list() == pytest.approx(
        alone.table["silhouette"].to_list(), rel=1e-12
    )
    assert (shared.best_estimator.labels_ == alone.best_estimator.labels_).all()


def test_numbers_without_a_silhouette():
    X = np.repeat([[0.0], [1.0], [5.0]], [1, 2, 1], axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct rows than clusters
        found = silhouette(KMeans(n_init=2), X, [2, 3, 4], random_state=0)
        assert found.table["n_clusters"].to_list() == [2, 3, 3]
        scores = found.table["silhouette"].to_list()
        assert found.best_k == 2 + scores.index(max(scores))
        with pytest.raises(ValueError, match="None of k = 2, 3 put the rows into 2 to n - 1"):
            silhouette(KMeans(n_init=2), np.ones((5, 2)), [2, 3])
    found = silhouette(KMeans(n_init=2), X[[0, 1, 3]], [2, 3], random_state=0)
    assert found.table["silhouette"].is_null().to_list() == [False, True]


# ---- Kauri --------------------------------------------------------------------------------


def rings(n=60, seed=0):
    """Two rings, one in the other."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, size=2 * n)
    radius = np.repeat([1.0, 6.0], n) + 0.05 * rng.normal(size=2 * n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


@pytest.mark.parametrize("kernel", ["linear", "laplacian", "polynomial"])
def test_gap_of_kauri_is_made_of_its_objective(kernel):
    X = blobs(3, n=20) - (0 if kernel == "linear" else blobs(3, n=20).mean(axis=0))
    found = gap_statistic(
        Kauri(kernel=kernel, gamma=0.05, n_jobs=1), X, range(1, 6), n_references=4, random_state=0
    )
    frame = found.table
    diagonal = make_kernel(kernel, gamma=0.05, X=X).diagonal(X)
    for k, w in zip(frame["k"], frame["w"], strict=True):
        model = Kauri(k, kernel=kernel, gamma=0.05).fit(X)
        assert w == pytest.approx(diagonal.sum() - model.objective_, rel=1e-9)
        if kernel == "linear":
            assert w == pytest.approx(kmeans_cost(X, model.labels_), rel=1e-9)
    assert found.best_k == by_rule(frame)
    if kernel != "polynomial":
        assert found.best_k == 3 == found.best_estimator.n_clusters_
    assert found.best_estimator.n_clusters == found.best_k


def test_gap_of_kauri_that_finds_fewer_clusters():
    X = np.repeat([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]], 4, axis=0)
    found = gap_statistic(Kauri(n_jobs=1), X, range(2, 6), n_references=3, random_state=0)
    assert found.table["n_clusters"].to_list() == [2, 3, 3, 3]
    assert found.table["w"].to_list()[1:] == [0.0, 0.0, 0.0]
    assert found.best_k == 3 and found.table["gap"][1] == math.inf
    same = gap_statistic(Kauri(n_jobs=1), X * 0 + 1e8, [1, 2], n_references=3, random_state=0)
    assert same.best_k == 1 and same.table["gap"].to_list() == [0.0, 0.0]


def test_gap_of_kauri_with_weights_and_far_from_the_origin():
    X = np.round(blobs(4, n=15) * 2**10) / 2**10
    weight = np.r_[np.ones(len(X)), 0.0]
    far = np.concatenate([X, [[1e5, 1e5]]])
    found = [
        gap_statistic(
            Kauri(n_jobs=1), at, range(1, 6), n_references=3, sample_weight=w, random_state=0
        )
        for at, w in ((X, None), (X + 1e8, None), (far, weight))
    ]
    for other in found[1:]:
        assert other.best_k == 4 == found[0].best_k
        for column in ("w", "gap"):
            assert other.table[column].to_list() == pytest.approx(
                found[0].table[column].to_list(), rel=1e-5
            )


@pytest.mark.parametrize("estimator", [ExKMC(n_jobs=1, random_state=0), Kauri(n_jobs=1)])
def test_draws_are_measured_in_the_units_of_the_data(estimator):
    X = blobs(4, n=15) * [1.0, 1e3]
    weight = np.r_[np.full(30, 2.0), np.full(30, 1.0)]
    mean = np.average(X, axis=0, weights=weight)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    found, expected = (
        gap_statistic(model, at, range(1, 6), n_references=3, sample_weight=weight, random_state=0)
        for model, at in (
            (clone(estimator).set_params(scale="standard"), X),
            (estimator, X / deviation),
        )
    )
    assert found.best_k == expected.best_k
    assert found.best_estimator.scale == "standard"
    for column in ("w", "gap", "sd"):
        assert found.table[column].to_list() == pytest.approx(
            expected.table[column].to_list(), rel=1e-6, abs=1e-9
        )


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_gap_and_silhouette_of_real_data(load):
    """The gap rises steeply up to three clusters and hardly beyond."""
    X = load().data
    model = Kauri(max_leaves=math.inf, scale="standard", n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the gap may still rise a little
        found = gap_statistic(model, X, range(1, 5), n_references=10, random_state=0)
    first, second, third = np.diff(found.table["gap"].to_numpy())
    assert first > second > 5 * third > 0
    assert silhouette(model, X, range(2, 6)).best_k == (2 if load is load_iris else 3)


def test_draws_have_the_gamma_of_the_data():
    X = blobs(4, n=15)
    gamma = make_kernel("rbf", gamma="scale", X=X).gamma
    found, expected = (
        gap_statistic(
            Kauri(kernel="rbf", gamma=given, n_jobs=1), X, [3, 4, 5], n_references=3, random_state=0
        )
        for given in ("scale", gamma)
    )
    assert found.best_estimator.gamma == "scale"
    for column in ("w", "gap", "sd"):
        assert found.table[column].to_list() == pytest.approx(
            expected.table[column].to_list(), rel=1e-9
        )


def test_gap_has_no_precomputed_kernel():
    X = blobs(3)
    with pytest.raises(ValueError, match=r"no precomputed kernel: .* use silhouette\(\)"):
        gap_statistic(Kauri(kernel="precomputed"), X, [1, 2])
    with pytest.raises(ValueError, match="needs"):
        silhouette(Kauri(kernel="precomputed"), X, [2, 3])
    with pytest.raises(ValueError, match="gram has the shape"):
        silhouette(Kauri(kernel="precomputed"), X, [2, 3], gram=np.eye(3))


@pytest.mark.parametrize(
    "kernel", ["linear", "rbf", "cosine", "hellinger", "histogram_intersection"]
)
@pytest.mark.parametrize("sample_size", [None, 50])
def test_silhouette_of_kauri_is_by_the_distances_of_its_kernel(kernel, sample_size):
    X = np.abs(blobs(3, n=40, distance=4.0) + 5.0)
    found = silhouette(
        Kauri(kernel=kernel, n_jobs=1),
        X,
        range(2, 5),
        sample_size=sample_size,
        random_state=np.random.RandomState(0),
    )
    gram = make_kernel(kernel, X=X).matrix(X)
    diagonal = gram.diagonal()
    distances = np.sqrt(np.maximum(diagonal[:, None] + diagonal - 2 * gram, 0.0))
    np.fill_diagonal(distances, 0.0)
    labels = found.best_estimator.labels_
    expected = silhouette_score(distances, labels, metric="precomputed")
    score = found.table["silhouette"].max()
    assert score == pytest.approx(expected, abs=1e-7 if sample_size is None else 0.1)
    given = silhouette(Kauri(kernel="precomputed", n_jobs=1), X, range(2, 5), gram=gram)
    if sample_size is None:
        assert given.best_k == found.best_k
        assert given.table["silhouette"].to_list() == pytest.approx(
            found.table["silhouette"].to_list(), abs=1e-7
        )


def test_silhouette_of_kauri_on_the_scale_of_the_estimator():
    X = blobs(3, n=20) * [1.0, 1e4] + [0.0, 1e8]
    found = silhouette(Kauri(scale="standard", n_jobs=1), X, range(2, 6))
    assert found.best_k == 3
    expected = silhouette_score((X - X.mean(axis=0)) / X.std(axis=0), found.best_estimator.labels_)
    assert found.table["silhouette"].max() == pytest.approx(expected, rel=1e-6)
    near = silhouette(Kauri(kernel="rbf", gamma="scale", scale="standard", n_jobs=1), X, [2, 3, 4])
    assert near.best_k == 3


def silhouette_by_definition(distances, labels):
    """Rousseeuw's mean of (b - a) / max(a, b), row by row."""
    scores = []
    for row, own in enumerate(labels):
        mean = {
            other: distances[row, labels == other].sum()
            / (np.sum(labels == other) - (other == own))
            for other in np.unique(labels)
            if other != own or np.sum(labels == own) > 1
        }
        a = mean.pop(own, None)
        b = min(mean.values())
        scores.append(0.0 if a is None or max(a, b) == 0 else (b - a) / max(a, b))
    return np.mean(scores)


KERNEL_MODELS = [
    KernelKMeans(n_init=2, kernel="rbf", gamma=0.1, n_jobs=1),
    KernelKMeans(n_init=2, kernel="cosine", n_jobs=1),
    KernelKMeans(n_init=2, kernel="polynomial", degree=2, coef0=0.5, gamma=0.1, n_jobs=1),
    KernelKMeans(n_init=2, kernel=lambda x, y, c: (c + x @ y) ** 2, kernel_params={"c": 2.0}),
    KernelIMM(n_init=2, kernel="laplacian", gamma=0.2, n_jobs=1),
    KernelExKMC(n_init=2, kernel="rbf", gamma="scale", scale="standard", n_jobs=1),
    KernelExpand(n_init=2, kernel="hellinger", scale="standard", base_tree=None, n_jobs=1),
    Kauri(kernel="chi2", n_jobs=1),
]


@pytest.mark.parametrize("which", range(len(KERNEL_MODELS)))
def test_silhouette_of_kernel_models_is_by_the_distances_of_their_kernel(which):
    X = np.abs(blobs(3, n=15, d=3, distance=3.0) + 5.0) * [1.0, 2.0, 0.5]
    model = clone(KERNEL_MODELS[which])
    found = silhouette(model, X, [2, 3, 4], random_state=0)
    rows = X / X.std(axis=0) if model.scale == "standard" else X
    kernel = make_kernel(
        model.kernel,
        gamma=model.gamma,
        degree=model.degree,
        coef0=model.coef0,
        kernel_params=model.kernel_params,
        X=rows,
    )
    k = np.array([[kernel.matrix([x, y])[0, 1] for y in rows] for x in rows])
    np.fill_diagonal(k, [kernel.matrix([x])[0, 0] for x in rows])
    diagonal = k.diagonal()
    distances = np.sqrt(np.maximum(np.add.outer(diagonal, diagonal) - 2 * k, 0.0))
    labels = found.best_estimator.labels_
    score = found.table["silhouette"].max()
    assert score == pytest.approx(silhouette_by_definition(distances, labels), abs=1e-6)
    assert abs(score - silhouette_score(rows, labels)) > 1e-3


@pytest.mark.parametrize(
    ("model", "metric"),
    [(ObliqueTree(metric="cosine", alpha=0.01), "cosine"), (KMeans(n_init=2), "euclidean")],
)
@pytest.mark.parametrize("sample_size", [None, 40])
def test_silhouette_of_sparse_rows_is_that_of_dense_ones(model, metric, sample_size):
    X = np.maximum(blobs(3, n=30, d=5, distance=4.0), 0.0)
    options = {"sample_size": sample_size, "random_state": 0}
    found = silhouette(clone(model), csr_array(X), [2, 3, 4], **options)
    dense = silhouette(clone(model), X, [2, 3, 4], **options)
    assert found.table["silhouette"].to_list() == pytest.approx(dense.table["silhouette"].to_list())
    if sample_size is None:
        labels = found.best_estimator.labels_
        expected = silhouette_score(X, labels, metric=metric)
        assert found.table["silhouette"].max() == pytest.approx(expected)


def test_silhouette_has_the_units_of_the_rows_that_a_kernel_tree_was_fitted_to():
    X = blobs(3, n=15, distance=3.0)
    X[-5:] *= 40.0
    reference = np.repeat([0, 1, 2], 15)
    reference[-5:] = -1  # noise has no part in the units
    tree = KernelExpand(kernel="rbf", gamma=0.5, scale="standard", reference=reference, n_jobs=1)
    found = silhouette(tree, X, [3])
    gram = make_kernel("rbf", gamma=0.5, X=X).matrix(X / X[:-5].std(axis=0))
    expected = silhouette_by_definition(np.sqrt(2 - 2 * gram), found.best_estimator.labels_)
    assert found.table["silhouette"][0] == pytest.approx(expected, abs=1e-6)


def test_kernels_see_what_rows_do_not():
    X = rings()
    settings = {"kernel": "rbf", "gamma": 0.5, "n_jobs": 1}
    own = silhouette(Kauri(**settings), X, range(2, 5))
    plain = silhouette(Kauri(**settings), X, range(2, 5), metric="euclidean")
    assert own.best_estimator.n_clusters_ == own.best_k
    expected = silhouette_score(X, plain.best_estimator.labels_)
    assert plain.table["silhouette"].max() == pytest.approx(expected, rel=1e-9)
    assert not plain.table["silhouette"].equals(own.table["silhouette"])


@pytest.mark.parametrize("approximation", ["nystroem", "rpcholesky", "rff"])
def test_approximations(approximation):
    X = blobs(4, n=20)
    rbf = {"kernel": "rbf", "gamma": 0.02, "approximation": approximation, "n_components": 200}
    model = Kauri(max_leaves=math.inf, **rbf, n_jobs=1)
    found = gap_statistic(model, X, range(1, 6), n_references=3, random_state=0)
    assert found.best_k == 4 == silhouette(model, X, range(2, 6), random_state=0).best_k


def test_distances_beyond_the_limit_are_refused(monkeypatch):
    X = blobs(3, n=40)
    model = Kauri(kernel="rbf", approximation="nystroem", n_components=10, random_state=0)
    monkeypatch.setattr("treeclust_rs._util.arrays.MAX_ARRAY_BYTES", 8 * 100 * 100)
    with pytest.raises(ValueError, match=r"The distances of 120 rows would .* most 100 at once"):
        silhouette(model, X, [2, 3])
    with pytest.raises(ValueError, match=r"of 110 rows would .* at most 100 at once \(sample_size"):
        silhouette(model, X, [2, 3], sample_size=110)
    assert silhouette(model, X, [2, 3], sample_size=90, random_state=0).best_k == 3


# ---- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize("helper", [gap_statistic, silhouette])
@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"estimator": DBSCAN()}, TypeError, "DBSCAN has no parameter n_clusters"),
        ({"estimator": KMeans}, TypeError, r"An estimator is needed, for example KMeans\(\)"),
        ({"estimator": None}, TypeError, "Got None instead"),
        ({"k_values": 3}, TypeError, "k_values must be a list or a range of numbers. Got 3"),
        ({"k_values": []}, ValueError, "k_values is empty"),
        ({"k_values": [3, 0]}, ValueError, "k_values must be at least . Got 0 among them"),
        ({"k_values": [3, 2.5]}, TypeError, "k_values must hold ints. Got 2.5 among them"),
        ({"k_values": [True]}, TypeError, "Got True among them"),
        ({"X": [[1.0, math.nan]] * 9}, ValueError, "Input X contains NaN: column x1 has 9 NaN"),
        ({"X": [[1.0, 2.0]] * 2}, ValueError, "n_clusters"),
        ({"X": pl.DataFrame({"a": ["x", "y"]})}, TypeError, "'a'"),
    ],
)
def test_what_is_refused(helper, changes, error, words):
    arguments = {"estimator": KMeans(n_init=1), "X": blobs(3), "k_values": [3, 4], **changes}
    words = words.replace("at least . Got", f"at least {1 + (helper is silhouette)}. Got")
    with pytest.raises(error, match=words):
        helper(**arguments)


def test_sizes_that_are_refused():
    X = blobs(3)
    for n_references in (0, 2.5, True):
        with pytest.raises(ValueError, match=r"n_references must be an int >= 1. Got"):
            gap_statistic(KMeans(), X, [1, 2], n_references=n_references)
    for sample_size in (1, 2.5, True):
        words = r"sample_size must be an int >= 2, math.inf or None. Got"
        with pytest.raises(ValueError, match=words):
            silhouette(KMeans(), X, [2, 3], sample_size=sample_size)


def test_a_fit_that_fails_says_why_in_its_own_words():
    X = blobs(3)
    with pytest.raises(ValueError, match="max_leaves=3"):
        gap_statistic(ExKMC(max_leaves=3), X, [2, 3, 4], n_references=1)


def test_numbers_need_not_follow_each_other():
    X = blobs(4)
    found = gap_statistic(KMeans(n_init=2), X, [8, 2, 4], n_references=5, random_state=0)
    assert found.table["k"].to_list() == [2, 4, 8] and found.best_k == 4
    gap = found.table["gap"].to_list()
    assert [after > before for before, after in pairwise(gap)] == [True, False]


def test_print_and_notebook_show_the_numbers_tried():
    found = silhouette(IMM(reference=None), blobs(3), range(2, 20), random_state=0)
    text, html = repr(found), found._repr_html_()
    assert text.startswith("Selection: best k 3, of 18 tried with IMM\n")
    assert sum(line.startswith("│ ") for line in text.splitlines()) == 3 + 18
    assert html.count("<tr>") == 1 + 18
    assert [row.split("<b>")[1].split("<")[0] for row in html.split("<tr>") if "<b>" in row][
        1:
    ] == ["3"]
    assert "best_estimator is IMM(n_clusters=3" in html
