"""choose_leaves: the costs of fits of each size, and the knee by its definition."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine, make_circles
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import treeclust_rs as tc
from treeclust_rs.metrics import kernel_cost, kmeans_cost
from treeclust_rs.selection import choose_leaves

X, Y = load_wine(return_X_y=True)
SCALED = (X - X.mean(axis=0)) / X.std(axis=0)


def knee_of(sizes, costs):
    """The point of the largest vertical distance below the line to the cheapest tree."""
    end = int(np.argmin(costs))
    line = [
        costs[0] + (costs[end] - costs[0]) * (size - sizes[0]) / (sizes[end] - sizes[0])
        for size in sizes
    ]
    below = np.subtract(line, costs)
    return sizes[int(np.argmax(below))] if below.max() > 1e-9 else sizes[end]


@pytest.mark.parametrize(
    "estimator",
    [
        tc.ExKMC(3, base_tree=None, n_jobs=1),
        tc.ExKMC(3, n_jobs=1),
        tc.KMeansTree(3, n_jobs=1),
        tc.SpExTree(3, n_jobs=1),
        tc.Kauri(3, n_jobs=1),
        tc.XRegressionTree(3, n_jobs=1),
        tc.ObliqueTree(3, max_depth=3, n_init=2, n_jobs=1),
        tc.ExKMC(3, criterion="kmedians", n_jobs=1),
    ],
    ids=lambda model: f"{type(model).__name__}-{getattr(model, 'criterion', '')}",
)
def test_costs_are_those_of_fits_of_each_size(estimator):
    found = choose_leaves(estimator, SCALED, range(3, 10), random_state=0)
    assert found.table.columns == ["n_leaves", "n_clusters", "cost", "below_chord"]
    seed = found.best_estimator.random_state
    costs = {}
    for n in range(3, 10):
        model = clone(estimator).set_params(max_leaves=n, random_state=seed).fit(SCALED)
        costs.setdefault(model.n_leaves_, model.inertia_)
        if found.best_value == model.n_leaves_ == n:
            np.testing.assert_array_equal(found.best_estimator.labels_, model.labels_)
    assert found.table["n_leaves"].to_list() == sorted(costs)
    sizes = sorted(costs)
    expected = [costs[n] for n in sizes]
    assert found.table["cost"].to_list() == pytest.approx(expected, rel=1e-9)
    assert found.best_value == knee_of(sizes, expected)
    assert found.best_estimator.n_leaves_ == found.best_value
    assert found.best_estimator.inertia_ == pytest.approx(costs[found.best_value], rel=1e-9)
    assert not hasattr(estimator, "tree_")


def test_one_fit_has_the_trees_of_all_sizes(monkeypatch):
    fits = []
    whole = tc.ExKMC.fit

    def fit(self, *args, **kwargs):
        fits.append(self.max_leaves)
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(tc.ExKMC, "fit", fit)
    found = choose_leaves(tc.ExKMC(3, base_tree=None), SCALED, random_state=0)
    assert fits == [12]
    assert found.best_value == 4
    assert found.best_estimator.max_leaves == 4


def test_the_default_numbers_go_by_the_clusters():
    by_reference = choose_leaves(tc.KMeansTree(reference=Y), SCALED, random_state=0)
    assert by_reference.table["n_leaves"][0] == 3
    assert by_reference.table["n_leaves"][-1] <= 12
    eight = choose_leaves(tc.ExKMC(), SCALED, random_state=0)
    assert eight.table["n_leaves"][0] == 8
    kauri = choose_leaves(tc.Kauri(), SCALED)
    assert kauri.table["n_leaves"][0] == 8


KERNEL = [
    tc.KernelExKMC(2, gamma=4.0, n_init=2, n_jobs=1),
    tc.KernelExpand(2, gamma=4.0, base_tree=None, n_init=2, n_jobs=1),
    tc.Kauri(2, kernel="rbf", gamma=4.0, n_jobs=1),
]


@pytest.mark.parametrize("estimator", KERNEL, ids=lambda model: type(model).__name__)
def test_kernel_models_are_measured_by_their_kernel(estimator):
    rings, _ = make_circles(90, factor=0.4, noise=0.05, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there may be no knee
        found = choose_leaves(estimator, rings, range(2, 8), random_state=0)
    seed = found.best_estimator.random_state
    for n, cost in found.table.select("n_leaves", "cost").iter_rows():
        model = clone(estimator).set_params(max_leaves=n, random_state=seed).fit(rings)
        assert model.n_leaves_ == n
        assert cost == pytest.approx(kernel_cost(rings, model.labels_, gamma=4.0), rel=1e-9)
        if n > 2:
            assert abs(cost - kmeans_cost(rings, model.labels_)) > 1e-3


def test_a_kernel_matrix():
    rings, _ = make_circles(60, factor=0.4, noise=0.05, random_state=0)
    gram = np.exp(-4.0 * np.square(rings[:, None] - rings).sum(axis=2))
    own = choose_leaves(tc.Kauri(2, kernel="rbf", gamma=4.0), rings, range(2, 12))
    given = choose_leaves(tc.Kauri(2, kernel="precomputed"), rings, range(2, 12), gram=gram)
    assert given.table["cost"].to_list() == pytest.approx(own.table["cost"].to_list(), rel=1e-9)
    assert given.best_value == own.best_value


@pytest.mark.parametrize("param", [None, "tree__max_leaves"])
def test_pipelines(param):
    pipeline = Pipeline([("scale", StandardScaler()), ("tree", tc.ExKMC(3, random_state=0))])
    found = choose_leaves(pipeline, X, param=param)
    plain = choose_leaves(tc.ExKMC(3, random_state=0), StandardScaler().fit_transform(X))
    assert found.table.equals(plain.table)
    assert found.best_value == plain.best_value
    best = found.best_estimator
    assert isinstance(best, Pipeline)
    assert best["tree"].n_leaves_ == best["tree"].max_leaves == found.best_value
    np.testing.assert_array_equal(best.predict(X), plain.best_estimator.labels_)
    assert pipeline["tree"].max_leaves is None
    assert not hasattr(pipeline["tree"], "tree_")


def test_weights_and_frames_and_processes():
    frame = pl.DataFrame(X, schema=load_wine().feature_names)
    weight = np.where(np.arange(len(X)) % 3 == 0, 0.0, 1.0)
    tree = tc.ObliqueTree(3, scale="standard", n_init=1, n_jobs=1)
    options = {"sample_weight": weight, "random_state": 0}
    one, two = (choose_leaves(tree, frame, [3, 4, 5], n_jobs=n, **options) for n in (None, 2))
    assert one.table.equals(two.table)
    assert one.best_estimator.feature_names_in_.tolist() == load_wine().feature_names
    kept = choose_leaves(tree, X[weight > 0], [3, 4, 5], random_state=0)
    assert one.table["cost"].to_list() == pytest.approx(kept.table["cost"].to_list(), rel=1e-9)


def test_no_knee():
    with pytest.warns(UserWarning, match="no knee up to 4 leaves, which are taken") as told:
        found = choose_leaves(tc.ExKMC(3, base_tree=None), SCALED, [3, 4], random_state=0)
    assert found.best_value == 4
    assert told[0].filename == __file__
    same = choose_leaves(tc.ExKMC(1), np.ones((9, 2)))
    assert (same.best_value, same.table.height) == (1, 1)


def test_progress(capsys):
    choose_leaves(tc.ExKMC(3), load_iris().data, [3, 4, 5], random_state=0, verbose=2)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[-1].split(":")[0] for line in lines] == [
        "3 leaves", "4 leaves", "5 leaves"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("estimator", "options", "error", "message"),
    [
        (tc.IMM(3), {}, TypeError, "IMM has no parameter max_leaves, so the number of its leaves"),
        (KMeans(3), {}, TypeError, "KMeans has no parameter max_leaves"),
        (tc.ExKMC, {}, TypeError, "An estimator is needed"),
        (tc.ExKMC(3), {"param": "leaves"}, TypeError, "ExKMC has no parameter leaves"),
        (tc.ExKMC(3), {"param": 3}, TypeError, "param must be the name of a parameter"),
        (
            tc.ExKMC(3),
            {"leaves": 5},
            TypeError,
            "leaves must be a list or a range of numbers. Got 5",
        ),
        (tc.ExKMC(3), {"leaves": []}, ValueError, "leaves is empty: give at least one number of l"),
        (tc.ExKMC(3), {"leaves": [3.5]}, TypeError, "leaves must hold ints. Got 3.5"),
        (tc.ExKMC(3), {"leaves": [0]}, ValueError, "leaves must be at least 1. Got 0"),
        (tc.ExKMC(3), {"leaves": [2, 5]}, ValueError, "leaves holds 2, but there are 3 clusters"),
        (tc.ExKMC(3), {"sample_weight": [1.0]}, ValueError, "sample_weight has 1 entr"),
        (tc.ExKMC(3), {"verbose": -1}, ValueError, "verbose must be an int >= 0"),
        (tc.ExKMC(300), {}, ValueError, "n_clusters=300"),
        (
            make_pipeline(StandardScaler(), tc.ExKMC(3)),
            {"param": "max_leaves"},
            TypeError,
            "Pipeline has no parameter max_leaves, .* last step begin with exkmc__",
        ),
    ],
)
def test_what_is_refused(estimator, options, error, message):
    with pytest.raises(error, match=message):
        choose_leaves(estimator, X, **options)


def test_cells_that_are_no_numbers():
    with pytest.raises(ValueError, match="column x1 has 1 NaN"):
        choose_leaves(tc.KDTreeClusters(2), [[1.0, np.nan], [2.0, 3.0], [4.0, 5.0]])
