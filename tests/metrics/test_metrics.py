"""Costs, agreement, and the size of an explanation."""

import math
import pickle

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import treeclust_rs as tc
from treeclust_rs.metrics import (
    adjusted_rand_index,
    agreement,
    cost_ratio,
    kernel_cost,
    kmeans_cost,
    kmeans_scorer,
    n_conditions,
    n_parameters,
    surrogate_cost,
    weighted_average_depth,
    weighted_average_explanation_size,
)
from trees import Builder, balanced, chain, random_tree


def data(seed, n=60, d=3, k=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, k, n), rng.integers(0, 4, n).astype(float)


# ---- costs --------------------------------------------------------------------------------


def test_costs_by_hand():
    X = [[0.0, 0], [2, 0], [10, 4]]
    assert kmeans_cost(X, [0, 0, 1]) == 2.0
    assert kmeans_cost(X, ["a", "a", "a"]) == pytest.approx(56 + 32 / 3)
    assert kmeans_cost(X, [0, 0, 1], [1, 3, 7]) == 3.0
    assert surrogate_cost(X, [0, 0, 1], [[1.0, 1], [10, 0]]) == 20.0
    assert surrogate_cost(X, [0, 0, 1], [[1.0, 1], [10, 0]], criterion="kmedians") == 8.0
    assert cost_ratio(X, [0, 0, 1], [0, 1, 1]) == pytest.approx(2 / 40)


@pytest.mark.parametrize("seed", range(5))
def test_kmeans_cost_is_the_definition(seed):
    X, labels, weights = data(seed)
    expected = 0.0
    for label in set(labels.tolist()):
        rows, w = X[labels == label], weights[labels == label]
        if w.sum():
            mean = np.average(rows, axis=0, weights=w)
            expected += float((w[:, None] * (rows - mean) ** 2).sum())
    assert kmeans_cost(X, labels, weights) == pytest.approx(expected, rel=1e-12)
    repeated = np.repeat(np.arange(len(X)), weights.astype(int))
    assert kmeans_cost(X[repeated], labels[repeated]) == pytest.approx(expected, rel=1e-12)
    centers = np.random.default_rng(seed).normal(size=(4, 3))
    for criterion, norm in (("kmeans", np.square), ("kmedians", np.abs)):
        expected = float((weights[:, None] * norm(X - centers[labels])).sum())
        found = surrogate_cost(X, labels, centers, weights, criterion)
        assert found == pytest.approx(expected, rel=1e-12)


def test_surrogate_cost_at_the_means_is_the_kmeans_cost():
    X, labels, _ = data(1)
    means = [X[labels == label].mean(axis=0) for label in range(4)]
    assert surrogate_cost(X, labels, means) == pytest.approx(kmeans_cost(X, labels), rel=1e-12)


@pytest.mark.parametrize("offset", [1e8, -1e8, 2.0**40])
def test_costs_do_not_depend_on_the_origin(offset):
    X, labels, weights = data(2)
    X = np.round(X * 2**12) / 2**12
    assert np.array_equal((X + offset) - offset, X)
    assert kmeans_cost(X + offset, labels, weights) == pytest.approx(
        kmeans_cost(X, labels, weights), rel=1e-12
    )
    centers = X[:4]
    assert surrogate_cost(X + offset, labels, centers + offset) == pytest.approx(
        surrogate_cost(X, labels, centers), rel=1e-12
    )


def test_costs_read_frames_integers_and_float32():
    X, labels, _ = data(3)
    whole = np.round(X * 10).astype(np.int8)
    cost = kmeans_cost(whole.astype(float), labels)
    assert kmeans_cost(whole, labels) == cost
    assert kmeans_cost(whole.astype(np.float32), pl.Series(labels)) == cost
    assert kmeans_cost(pl.DataFrame(whole), labels.tolist()) == cost
    assert kmeans_cost(np.asfortranarray(whole), labels.astype(object)) == cost
    assert kmeans_cost(whole, labels.astype(float)) == cost


def test_noise_is_left_out():
    X, labels, weights = data(4)
    labels[::3] = -1
    kept = labels != -1
    assert kmeans_cost(X, labels, weights) == pytest.approx(
        kmeans_cost(X[kept], labels[kept], weights[kept]), rel=1e-12
    )
    assert surrogate_cost(X, labels, X[:4]) == surrogate_cost(X[kept], labels[kept], X[:4])
    tree_labels = np.zeros(len(X), dtype=int)
    assert cost_ratio(X, tree_labels, labels) == pytest.approx(
        cost_ratio(X[kept], tree_labels[kept], labels[kept]), rel=1e-12
    )
    assert agreement(tree_labels, labels) == agreement(tree_labels[kept], labels[kept])
    for noise in ([-1, -1], ["-1", "-1"], np.array(["-1", -1], dtype=object)):
        assert kmeans_cost([[0.0], [2.0]], noise) == 0.0
    assert kmeans_cost([[0.0], [2.0], [8.0]], np.array(["a", "a", -1])) == 2.0


def test_costs_in_units():
    X, labels, weights = data(5)
    X = X * [1.0, 100.0, 0.01] + [0.0, 1e6, 0.0]
    kept = labels > 0
    labels[~kept] = -1
    standard = np.sqrt(np.cov(X[kept].T, aweights=weights[kept], ddof=0).diagonal())
    model = tc.IMM(3, scale="standard", random_state=0).fit(X)
    scaler = StandardScaler().fit(X)
    other, gamma = np.where(labels == 2, 1, labels), 0.3
    for scale, units in (
        ("standard", standard),
        ([2.0, 50.0, 0.25], np.array([2.0, 50.0, 0.25])),
        (model, X.std(axis=0)),
        (scaler, X.std(axis=0)),
        (StandardScaler(with_std=False).fit(X), np.ones(3)),
    ):
        Z = X / units
        assert kmeans_cost(X, labels, weights, scale=scale) == pytest.approx(
            kmeans_cost(Z, labels, weights), rel=1e-9
        )
        assert cost_ratio(X, other, labels, weights, scale=scale) == pytest.approx(
            cost_ratio(Z, other, labels, weights), rel=1e-9
        )
        for criterion in ("kmeans", "kmedians"):
            codes, centers = np.maximum(labels, 0), X[:4]
            if scale == "standard":  # of the rows that count
                codes = labels
            found = surrogate_cost(X, codes, centers, weights, criterion, scale=scale)
            expected = surrogate_cost(Z, codes, centers / units, weights, criterion)
            assert found == pytest.approx(expected, rel=1e-9)
        for kernel in ("rbf", "linear", "cosine"):
            found = kernel_cost(X, labels, weights, kernel=kernel, gamma=gamma, scale=scale)
            expected = kernel_cost(Z, labels, weights, kernel=kernel, gamma=gamma)
            assert found == pytest.approx(expected, rel=1e-7)
    # The model adds up by leaf and the metric by cluster: the last bits may differ.
    of_model = pytest.approx(model.inertia_, rel=1e-14)
    assert kmeans_cost(X, model.labels_, scale=model) == of_model
    assert kmeans_cost(X, model.labels_, scale="standard") == of_model
    robust = tc.IMM(3, scale="robust", random_state=0).fit(X, sample_weight=weights)
    found = kmeans_cost(X, robust.labels_, weights, scale="robust")
    assert found == pytest.approx(robust.inertia_, rel=1e-12)


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ("robust!", "scale must be None, 'standard', 'robust', units or a model. Got 'robust!'"),
        ([1.0], r"scale has the shape \(1,\); it must have one unit for each of the 2 columns"),
        ([1.0, 0.0], "positive numbers. Got 0.0 for column 1"),
        ([np.nan, 1.0], "positive numbers. Got nan for column 0"),
        (tc.IMM(2), "has no scale_: give a fitted estimator"),
        (KMeans(2), "has no scale_: give a fitted estimator"),
        ({"x": 2.0}, "is a dict: measures read no names of columns. Give one unit per column"),
    ],
)
def test_scales_that_are_no_units(scale, message):
    X = [[0.0, 1.0], [2.0, 1.0], [3.0, 4.0]]
    for call in (kmeans_cost, kernel_cost):
        with pytest.raises(ValueError, match=message):
            call(X, [0, 0, 1], scale=scale)
    with pytest.raises(ValueError, match=message):
        surrogate_cost(X, [0, 0, 1], X[:2], scale=scale)
    with pytest.raises(ValueError, match="together with gram"):
        kernel_cost(X, [0, 0, 1], kernel="precomputed", gram=np.eye(3), scale=[1.0, 1.0])


METHODS = [
    tc.IMM(3, random_state=0),
    tc.Kauri(3, max_leaves=3),
    tc.Kauri(3, max_leaves=3, kernel="rbf"),
    tc.Douglas(3, gemini="mmd2_ova", n_init=1, max_iter=5, random_state=0),
    tc.KernelExpand(3, random_state=0),
    tc.KernelKMeans(3, random_state=0),
    tc.ObliqueTree(3, random_state=0),
    KMeans(3, random_state=0),
]


def test_every_method_is_scored_by_a_cost():
    X = load_iris().data
    for method in METHODS:
        model = clone(method).fit(X)
        assert model.score(X) < 0
        if "rbf" not in (getattr(model, "kernel", ""), getattr(model, "criterion", "")):
            assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-9)


@pytest.mark.parametrize("scale", [None, "standard", [1.0, 2.0, 3.0, 4.0]])
def test_a_grid_over_all_methods_picks_the_least_cost(scale):
    X = np.random.default_rng(0).permutation(load_iris().data)
    scorer = pickle.loads(pickle.dumps(kmeans_scorer(scale)))
    grid = {"clusters": METHODS}
    search = GridSearchCV(Pipeline([("clusters", tc.IMM())]), grid, scoring=scorer, cv=3).fit(X)
    for place, method in enumerate(METHODS):
        for number in range(3):
            test = np.arange(50 * number, 50 * number + 50)
            model = clone(method).fit(np.delete(X, test, axis=0))
            expected = -kmeans_cost(X[test], model.predict(X[test]), scale=scale)
            found = search.cv_results_[f"split{number}_test_score"][place]
            assert found == pytest.approx(expected, rel=1e-12)
    if scale is None:
        assert type(search.best_params_["clusters"]) is not tc.Kauri
        # Each by its own score, methods without a kernel: the winner is no Kauri, as it always was.
        own = GridSearchCV(
            Pipeline([("clusters", tc.IMM())]),
            {"clusters": [m for m in METHODS if getattr(m, "kernel", "") != "rbf"]},
            cv=3,
        ).fit(X)
        assert type(own.best_params_["clusters"]) is not tc.Kauri


def test_scorer_takes_weights_and_frames():
    X, _, weights = data(6)
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    model = tc.IMM(3, random_state=0).fit(frame)
    expected = -kmeans_cost(X, model.labels_, weights)
    assert kmeans_scorer()(model, frame, None, sample_weight=weights) == expected


def test_cost_ratio_of_perfect_references():
    X = [[0.0], [0.0], [1.0]]
    assert cost_ratio(X, [0, 0, 1], [5, 5, 3]) == 1.0
    assert cost_ratio(X, [0, 0, 0], [5, 5, 3]) == math.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kmeans_cost([[1.0], [2.0]], [0]), "1 labels for 2 rows"),
        (lambda: kmeans_cost([[1.0], [np.inf]], [0, 0]), "contains inf"),
        (lambda: kmeans_cost([[1.0]], [0.5]), "labels must be integers or strings"),
        (lambda: kmeans_cost([[1.0]], [np.nan]), "labels must be integers or strings"),
        (lambda: kmeans_cost([[1.0]], [0], [-1.0]), "sample_weight must be finite and not"),
        (
            lambda: kmeans_cost([[1.0]], [0], [1.0, 2.0]),
            r"each of the 1 rows. Got the shape \(2,\)",
        ),
        (lambda: surrogate_cost([[1.0]], [1], [[1.0]]), r"in 0\.\.0, one per center. Got 1 to 1"),
        (lambda: surrogate_cost([[1.0]], ["a"], [[1.0]]), "needs integer labels"),
        (lambda: surrogate_cost([[1.0]], [0], [[1.0, 2.0]]), "centers have 2 columns; the data"),
        (
            lambda: surrogate_cost([[1.0]], [0], [[1.0]], criterion="median"),
            "criterion must be 'kmeans' or 'kmedians'. Got 'median'",
        ),
        (lambda: cost_ratio([[1.0]], [0], [0, 1]), "2 reference_labels for 1 rows"),
        (lambda: agreement([0, 1], [0]), "2 labels for 1 rows"),
        (lambda: agreement([-1], [0]), "no row of positive weight"),
        (lambda: agreement(range(8000), range(8000)), "8,000 with 8,000 clusters .* 64,000,000"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---- agreement ----------------------------------------------------------------------------


def test_agreement():
    assert agreement([0, 0, 1, 1], [1, 1, 0, 0]) == 1.0
    assert agreement(["x", "x", "y", "z"], [2, 2, 2, 3]) == 0.75
    assert agreement([0, 1, 2, 3], [0, 0, 0, 0]) == 0.25
    assert agreement([0, 0, 1, 1], [0, 1, 1, 1], [1, 4, 1, 1]) == 4 / 7
    # Taking the largest overlap first, 3, would leave nothing for the other cluster.
    assert agreement([0] * 5 + [1] * 2, [0] * 3 + [1] * 2 + [0] * 2) == 4 / 7


def test_adjusted_rand_index_is_scikit_learns():
    assert adjusted_rand_index([0, 0, 1, 1], [1, 1, 0, 0]) == 1.0
    assert adjusted_rand_index([0, 0, 1, 1], [0, 0, 1, 2]) == pytest.approx(0.5714285714285714)
    mixed = np.array(["x", -1, "y", "y"], dtype=object)  # noise among texts
    assert adjusted_rand_index(mixed, [0, 1, 2, 2]) == 1.0
    with pytest.raises(ValueError, match="The labels must be integers or strings"):
        adjusted_rand_index(["x", None], ["x", "y"])
    with pytest.raises(ValueError, match="There are 2 labels for 3 rows"):
        adjusted_rand_index([0, 1], [0, 1, 1])


# ---- size of the explanation --------------------------------------------------------------


def test_depth_and_explanation_size_by_hand():
    X = np.array([[1.0, 0], [2, 0], [3, 0], [4, 9]])
    builder = Builder(X, [0, 1, 2, 3])
    assert weighted_average_depth(builder.tree()) == 0.0
    assert weighted_average_explanation_size(builder.tree()) == 0.0
    assert n_conditions(builder.tree()) == 0
    left = builder.split(0, 0, 3.5)
    left = builder.split(left, 0, 2.5)
    builder.split(left, 0, 1.5)
    tree = builder.tree()
    assert weighted_average_depth(tree) == (3 + 3 + 2 + 1) / 4
    # x <= 1.5; 1.5 < x <= 2.5; 2.5 < x <= 3.5; x > 3.5
    assert weighted_average_explanation_size(tree) == (1 + 2 + 2 + 1) / 4
    assert n_conditions(tree) == 1 + 2 + 2 + 1
    assert n_parameters(tree) == 10


def test_intervals_count_their_ends():
    X = np.array([[1.0], [5], [5], [9]])
    builder = Builder(X, [0, 1, 1, 0])
    builder.split(0, 0, interval=(4, 6))
    assert weighted_average_explanation_size(builder.tree()) == 2.0
    assert n_parameters(builder.tree()) == 5
    # On either side of a cut at 5 one condition is left: x < 4, and x > 6.
    builder.split(2, 0, 5)
    assert weighted_average_explanation_size(builder.tree()) == (2 * 2 + 1 + 1) / 4


def test_weights_count_as_repetitions():
    X = np.array([[1.0], [2], [3]])
    weighted = Builder(X, [0, 1, 2], weights=np.array([1.0, 5.0, 2.0]))
    repeated = Builder(np.repeat(X, [1, 5, 2], axis=0), np.repeat([0, 1, 2], [1, 5, 2]))
    for builder in (weighted, repeated):
        left = builder.split(0, 0, 2.5)
        builder.split(left, 0, 1.5)
    for measure in (weighted_average_depth, weighted_average_explanation_size):
        assert measure(weighted.tree()) == pytest.approx(measure(repeated.tree()), rel=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_explanation_size_counts_the_tightest_bounds(seed):
    tree, _ = random_tree(seed, 25, grid=12)
    total = n_all = 0
    for leaf in tree.leaves.tolist():
        bounds = set()
        node = leaf
        while node:
            parent = int(tree.parent[node])
            bounds.add((int(tree.feature[parent]), node == tree.children_left[parent]))
            node = parent
        total += int(tree.n_node_samples[leaf]) * len(bounds)
        n_all += len(bounds)
    expected = total / int(tree.n_node_samples[0])
    assert weighted_average_explanation_size(tree) == pytest.approx(expected, rel=1e-12)
    assert weighted_average_explanation_size(tree) <= weighted_average_depth(tree)
    assert n_conditions(tree) == n_all


@pytest.mark.parametrize(("n_leaves", "count"), [(1, 1), (10, 28), (26, 76), (1024, 3070)])
def test_number_of_parameters_as_in_the_papers(n_leaves, count):
    assert n_parameters(balanced(n_leaves)) == count


def test_measures_of_deep_trees():
    tree = chain(20_000)
    assert weighted_average_depth(tree) == pytest.approx(20_000 / 2, rel=1e-3)
    assert weighted_average_explanation_size(tree) < 10


def test_no_rows_to_average():
    arrays = balanced(2)
    with pytest.raises(ValueError, match="no rows to average over"):
        weighted_average_depth(Builder(np.zeros((0, 1)), [], 1).tree())
    assert weighted_average_depth(arrays) == 1.0


def test_minus_one_among_strings_is_noise():
    labels = np.array(["a", "a", "b", "b"])
    reference = np.array(["x", -1, "y", "y"], dtype=object)
    assert agreement(labels, reference) == 1
    assert kmeans_cost([[0.0], [100.0], [5.0], [5.0]], reference) == 0


def test_kernel_cost_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(30, 3)), rng.integers(-1, 3, 30)
    weight = rng.integers(0, 3, 30).astype(float)
    gram = np.exp(-0.7 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    expected = 0.0
    for label in range(3):
        rows = np.flatnonzero((labels == label) & (weight > 0))
        w = weight[rows]
        stock = w @ gram[np.ix_(rows, rows)] @ w
        expected += w @ gram.diagonal()[rows] - stock / w.sum()
    assert kernel_cost(X, labels, weight, gamma=0.7) == pytest.approx(expected, rel=1e-12)
    given = kernel_cost(X, labels, weight, kernel="precomputed", gram=gram)
    assert given == pytest.approx(expected, rel=1e-12)
    far = kernel_cost(X + 1e6, labels, weight, kernel="linear")
    assert far == pytest.approx(kmeans_cost(X, labels, weight), rel=1e-6)
    with pytest.raises(ValueError, match="needs the kernel matrix"):
        kernel_cost(X, labels, kernel="precomputed")
    with pytest.raises(ValueError, match="but column x0 holds -"):
        kernel_cost(X, labels, kernel="hellinger")


def test_models_in_place_of_labels_are_named():
    X, labels = [[0.0], [1.0], [5.0]], [0, 0, 1]
    model = tc.IMM(2, random_state=0).fit(X)
    with pytest.raises(TypeError, match=r"^labels is the model IMM: give its labels_"):
        cost_ratio(X, model, labels)
    with pytest.raises(TypeError, match=r"^reference_labels is the model IMM: give its labels_"):
        agreement(labels, model)
