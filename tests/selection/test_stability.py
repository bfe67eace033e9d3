"""stability: the adjusted Rand indices of models of two halves, worked out again."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

import treeclust_rs as tc
from treeclust_rs.selection import stability

X, Y = load_wine(return_X_y=True)
SCALED = (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Many small fits: threads would only wait for each other."""
    with threadpool_limits(1):
        yield


def blobs(k, n=40, seed=0):
    """k round clusters of n rows each, at distances that no number but k suits."""
    rng = np.random.default_rng(seed)
    centers = 10.0 * np.array([[0, 0], [1, 0], [0.5, 0.87], [1.5, 0.87]])[:k]
    return np.repeat(centers, n, axis=0) + rng.normal(size=(k * n, 2))


def rand_index(first, second):
    """Hubert and Arabie's adjusted index by counting all pairs of rows."""
    n = len(first)
    both = of_first = of_second = 0
    for i, j in combinations(range(n), 2):
        together, also = first[i] == first[j], second[i] == second[j]
        both += together and also
        of_first += together
        of_second += also
    expected = of_first * of_second / math.comb(n, 2)
    return (both - expected) / ((of_first + of_second) / 2 - expected)


def test_it_is_the_definition():
    """No seeds but that of the halves: the fits are to given centers."""
    n_repeats, values = 4, [4, 5, 8]
    centers = KMeans(3, n_init=1, random_state=0).fit(SCALED).cluster_centers_
    tree = tc.ExKMC(reference=centers, base_tree=None, n_jobs=1, random_state=0)
    options = {"param": "max_leaves", "n_repeats": n_repeats}
    found = stability(tree, SCALED, values, random_state=3, **options)
    assert found.table.columns == ["max_leaves", "n_clusters", "stability", "sd", "error"]
    rng = np.random.RandomState(3)
    each = []
    for seed in rng.randint(np.iinfo(np.int32).max, size=n_repeats):
        halves = train_test_split(
            SCALED, np.arange(len(SCALED)), test_size=0.5, random_state=np.random.RandomState(seed)
        )[:2]
        assert sum(map(len, halves)) == len(SCALED)
        row = []
        for value in values:
            models = [clone(tree).set_params(max_leaves=value).fit(half) for half in halves]
            row.append(rand_index(*(model.predict(SCALED) for model in models)))
        each.append(row)
    frame = found.table
    assert frame["stability"].to_list() == pytest.approx(np.mean(each, axis=0), rel=1e-9)
    assert frame["sd"].to_list() == pytest.approx(np.std(each, axis=0), rel=1e-9)
    assert frame["error"].to_list() == pytest.approx(np.std(each, axis=0) / 2, rel=1e-9)
    assert found.best_value == values[int(np.argmax(np.mean(each, axis=0)))]
    assert found.best_estimator.max_leaves == found.best_value
    assert len(found.best_estimator.labels_) == len(X)
    assert found.by == "stability"
    assert not hasattr(tree, "tree_")


@pytest.mark.parametrize(
    "estimator",
    [
        KMeans(n_init=3),
        tc.ExKMC(n_jobs=1),
        tc.Kauri(n_jobs=1),
        tc.KernelExpand(gamma=0.05, base_tree=None, n_init=3, n_jobs=1),
        make_pipeline(StandardScaler(), tc.IMM(n_jobs=1)),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("k", [3, 4])
def test_clear_clusters(estimator, k):
    found = stability(estimator, blobs(k), range(2, 7), n_repeats=6, random_state=0)
    assert found.best_k == found.best_value == k
    assert found.table["k"].to_list() == [2, 3, 4, 5, 6]
    assert found.table["stability"][k - 2] > 0.9


def test_among_equal_ones_the_most_clusters():
    """Two pairs of points: two clusters and four are found in every half."""
    X = np.repeat([[0.0], [1.0], [20.0], [21.0]], 30, axis=0)
    found = stability(KMeans(n_init=5), X, [2, 4], n_repeats=3, random_state=0)
    assert found.table["stability"].to_list() == [1.0, 1.0]
    assert found.best_value == 4
    leaves = stability(tc.ExKMC(4), X, [4, 6, 9], param="max_leaves", n_repeats=2, random_state=0)
    assert leaves.best_value == 4


class Told(ClusterMixin, BaseEstimator):
    """A clusterer that puts rows below a cut into a cluster of their own."""

    def __init__(self, cut=0.0):
        self.cut = cut

    def fit(self, X, y=None):
        self.labels_ = self.predict(X)
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0] < self.cut).astype(int)


def test_one_cluster_is_nothing_found():
    found = stability(Told(), [[1.0], [2.0], [3.0], [4.0]], [0.5, 2.5, 9.0], param="cut")
    assert found.table["stability"].to_list() == [0.0, 1.0, 0.0]
    assert found.best_value == 2.5


def test_the_same_for_every_number_of_processes():
    tree = tc.ExKMC(scale="standard", n_jobs=1)
    frame = pl.DataFrame(X, schema=load_wine().feature_names)
    options = {"n_repeats": 3, "random_state": 0}
    one, two = (stability(tree, frame, [3, 2, 3], n_jobs=n, **options) for n in (None, 2))
    assert one.table.equals(two.table)
    assert one.table["k"].to_list() == [2, 3]
    other = stability(tree, frame, [2, 3], n_repeats=3, random_state=1)
    assert not other.table["stability"].equals(one.table["stability"])
    assert one.best_estimator.feature_names_in_.tolist() == load_wine().feature_names


def test_no_limit_is_a_value(pyplot):
    tree = tc.Kauri(3, n_jobs=1)
    options = {"param": "max_leaves", "n_repeats": 2, "random_state": 0}
    found = stability(tree, SCALED, [3, math.inf], **options)
    assert found.table["max_leaves"].to_list() == [3.0, math.inf]
    assert found.best_estimator.max_leaves == found.best_value
    assert repr(found).startswith("Selection: best max_leaves ")
    found.plot().figure.canvas.draw()


def test_labels_of_a_reference_are_halved_with_the_rows():
    tree = tc.KMeansTree(reference=Y, n_jobs=1)
    found = stability(tree, X, [3, 6], param="max_leaves", n_repeats=3, random_state=0)
    assert found.table["stability"].min() > 0.4
    named = clone(tree).set_params(reference=pl.Series(np.array(["a", "b", "c"])[Y]))
    again = stability(named, X, [3, 6], param="max_leaves", n_repeats=3, random_state=0)
    assert again.table["stability"].equals(found.table["stability"])


def test_a_kernel_matrix_is_halved_with_the_rows():
    rows = blobs(3, n=15)
    gram = np.exp(-0.05 * np.square(rows[:, None] - rows).sum(axis=2))
    own = stability(tc.Kauri(kernel="rbf", gamma=0.05), rows, [2, 3], n_repeats=3, random_state=0)
    given = stability(
        tc.Kauri(kernel="precomputed"), rows, [2, 3], gram=gram, n_repeats=3, random_state=0
    )
    assert given.table.equals(own.table)


def test_weights():
    weight = np.where(np.arange(len(X)) < 9, 0.0, 1.0)
    far = SCALED.copy()
    far[:9] += 1e3
    tree = tc.ExKMC(n_jobs=1)
    found = stability(tree, far, [2, 3], n_repeats=4, sample_weight=weight, random_state=0)
    plain = stability(tree, far, [2, 3], n_repeats=4, random_state=0)
    assert found.best_value == 3
    assert not found.table["stability"].equals(plain.table["stability"])
    pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), tree)
    same = stability(pipeline, far, [2, 3], n_repeats=4, sample_weight=weight, random_state=0)
    assert same.table.equals(found.table)


def test_pipelines_may_take_what_trees_do_not():
    frame = pl.DataFrame({"kind": ["a", "b", "c"] * 30}).to_pandas()
    encoder = OneHotEncoder(sparse_output=False)
    pipeline = Pipeline([("encode", encoder), ("tree", tc.ExKMC(n_jobs=1))])
    found = stability(pipeline, frame, [2, 3], param="tree__n_clusters", n_repeats=2)
    assert found.best_value == 3
    assert found.table["stability"][1] == 1.0


def test_progress(capsys):
    stability(KMeans(n_init=1), blobs(3), [2, 3], n_repeats=2, random_state=0, verbose=2)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" s  ")[1] for line in lines] == [
        "k 2: fitted", "k 3: fitted", "repeat 1", "repeat 2"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"estimator": DBSCAN()}, TypeError, "DBSCAN has no parameter n_clusters"),
        ({"estimator": KMeans}, TypeError, "An estimator is needed"),
        ({"estimator": AgglomerativeClustering()}, TypeError, "Agglomerative.* has no predict"),
        ({"values": []}, ValueError, "values is empty"),
        ({"values": 3}, TypeError, "values must be a list or a range of numbers. Got 3 instead"),
        ({"values": "23"}, TypeError, "values must be a list or a range"),
        ({"values": [1, 2]}, ValueError, "values must be at least 2. Got 1"),
        ({"values": [2.5]}, TypeError, "values must hold ints. Got 2.5"),
        ({"values": ["x"]}, TypeError, "values must hold numbers. Got 'x'"),
        ({"values": [math.nan]}, TypeError, "values must hold numbers. Got nan"),
        ({"values": [True]}, TypeError, "values must hold numbers. Got True"),
        ({"param": "leaves"}, TypeError, "KMeans has no parameter leaves, which was to be varied"),
        ({"n_repeats": 0}, ValueError, "n_repeats must be an int >= 1. Got 0"),
        ({"verbose": -1}, ValueError, "verbose must be an int >= 0"),
        ({"X": [[1.0, 2.0]]}, ValueError, "X has 1 row: stability needs at least 2"),
        ({"X": [[1.0, math.nan]] * 4}, ValueError, "column x1 has 4 NaN"),
        ({"values": [40]}, ValueError, "n_clusters=40"),
        ({"sample_weight": [1.0]}, ValueError, "sample_weight has 1 entr"),
        ({"gram": np.eye(3)}, ValueError, "gram has the shape"),
    ],
)
def test_what_is_refused(changes, error, message):
    arguments = {"estimator": KMeans(n_init=1), "X": load_iris().data[:60], "values": [2, 3]}
    with pytest.raises(error, match=message):
        stability(**arguments | changes)
