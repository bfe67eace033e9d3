"""ObliqueTree where a mutation survived: weights on the path, warm starts, labels, importances."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

import treeclust_rs as tc
from oblique_models import bits, documents, fit, turned_blobs


def centers_of(X, k=4):
    return KMeans(k, n_init=3, random_state=0).fit(X).cluster_centers_


# ---- weights on the path ------------------------------------------------------------------


@pytest.mark.parametrize("leaves", ["label", "histogram"])
@pytest.mark.parametrize("splits", ["oblique", "axis"])
def test_equal_weights_are_none_on_the_path(splits, leaves):
    # Weights of 4 with four times the alpha: every number of the fit is four times as large.
    X, _ = turned_blobs(250, spread=2.0)
    options = {"reference": centers_of(X), "solver": "path", "mu_factor": 1.5, "mu_steps": 20}
    options |= {"splits": splits, "leaves": leaves, "random_state": 0}
    plain = fit(tc.ObliqueTree(4, alpha=10.0, **options), X)
    weighted = fit(tc.ObliqueTree(4, alpha=40.0, **options), X, sample_weight=np.full(len(X), 4.0))
    assert len(plain.mu_path_) >= 3
    columns = ["mu", "cost", "penalty", "n_parameters", "n_leaves"]
    np.testing.assert_allclose(
        weighted.mu_path_[columns].to_numpy(), plain.mu_path_[columns].to_numpy(), rtol=1e-9
    )
    np.testing.assert_allclose(weighted.mu_path_["mismatch"], 4 * plain.mu_path_["mismatch"])
    assert (weighted.labels_ == plain.labels_).all()
    assert weighted.inertia_ == pytest.approx(4 * plain.inertia_, rel=1e-9)


def test_weights_are_heard_on_the_path():
    X, _ = turned_blobs(250, spread=2.0)
    weight = np.where(X[:, 0] > 0, 8.0, 0.25)
    options = {"reference": centers_of(X), "solver": "path", "mu_factor": 1.5, "alpha": 3.0}
    plain = fit(tc.ObliqueTree(4, random_state=0, **options), X)
    weighted = fit(tc.ObliqueTree(4, random_state=0, **options), X, sample_weight=weight)
    about = weighted.cluster_centers_[np.searchsorted(weighted.classes_, weighted.labels_)]
    cost = float((weight * ((X - about) ** 2).sum(axis=1)).sum())
    assert weighted.inertia_ == pytest.approx(cost, rel=1e-9)
    assert (weighted.labels_ != plain.labels_).any()


# ---- warm starts --------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["direct", "path"])
def test_every_model_of_an_alpha_path_starts_from_the_one_before(solver):
    X, _ = turned_blobs(300, k=5, d=4, spread=2.5)
    options = {"reference": centers_of(X, 5), "max_depth": 3, "random_state": 0, "solver": solver}
    options |= {"mu_factor": 1.5}
    alphas = [0.1, 3.0, 12.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = tc.ObliqueTree(5, **options).alpha_path(X, alphas)
    cold = [fit(tc.ObliqueTree(5, alpha=alpha, **options), X) for alpha in alphas]
    assert bits(models[0]) == bits(cold[0])
    for before, model in itertools.pairwise(models):
        warm = tc.ObliqueTree(5, alpha=model.alpha, init=before.tree_, **options)
        assert bits(fit(warm, X)) == bits(model)
        assert before.n_leaves_ >= model.n_leaves_
    assert any(bits(a) != bits(b) for a, b in zip(models[1:], cold[1:], strict=True))


# ---- labels of rows without weight --------------------------------------------------------


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("names", [("b", "c", "a"), (5, 9, 2)])
def test_labels_that_occur_only_in_rows_of_weight_0_are_no_clusters(metric, names):
    if metric == "cosine":
        X = documents(150, zeros=0)
        distance = -X.toarray() @ X[:3].toarray().T
    else:
        X, _ = turned_blobs(150, spread=2.0)
        distance = ((X[:, None] - X[None, :3]) ** 2).sum(axis=2)
    labels = np.array(names)[distance.argmin(axis=1)]
    weight = np.where(labels == names[0], 0.0, 1.0)  # of the name in the middle
    options = {"metric": metric, "alpha": 0.1, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of labels that are not the nearest center
        model = tc.ObliqueTree(2, reference=labels, **options).fit(X, sample_weight=weight)
        rest = np.flatnonzero(weight)
        alone = tc.ObliqueTree(2, reference=labels[rest], **options).fit(
            X[rest], sample_weight=weight[rest]
        )
    assert sorted(model.classes_.tolist()) == sorted(names[1:])
    assert model.cluster_centers_.shape == (2, X.shape[1])
    assert set(model.labels_.tolist()) <= set(names[1:])
    assert (model.labels_ == model.predict(X)).all()
    assert (model.cluster_centers_ == alone.cluster_centers_).all()
    assert model.inertia_ == alone.inertia_
    with pytest.raises(ValueError, match="n_clusters=3, but the reference has 2 clusters"):
        tc.ObliqueTree(3, reference=labels, **options).fit(X, sample_weight=weight)


# ---- importances --------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [None, "standard"])
def test_importances_are_shares_of_each_tests_gain(scale):
    X, _ = turned_blobs(300, spread=2.0)
    X = X * np.array([1.0, 1.5, 0.8] if scale is None else [1.0, 30.0, 0.2])
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    model = tc.ObliqueTree(4, alpha=0.5, scale=scale, random_state=0, reference=centers_of(X))
    tree = model.fit(X, sample_weight=weight).tree_
    centers = model.cluster_centers_ / model.scale_
    leaf = model.apply(X)
    parents = tree.parent.tolist()
    rows = [np.zeros(len(X), dtype=bool) for _ in range(tree.n_nodes)]
    for node in range(tree.n_nodes - 1, -1, -1):
        rows[node] |= leaf == node
        if node:
            rows[parents[node]] |= rows[node]

    def cost(node):
        # The rows of a node about the one center that suits them best, beyond the nearest ones.
        Z = X[rows[node]] / model.scale_
        squares = ((Z[:, None] - centers[None]) ** 2).sum(axis=2)
        regrets = weight[rows[node]] @ (squares - squares.min(axis=1, keepdims=True))
        is_leaf = tree.children_left[node] < 0
        return regrets[tree.leaf_clusters[node]] if is_leaf else regrets.min()

    expected = np.zeros(3)
    inner = np.flatnonzero(tree.children_left >= 0).tolist()
    assert len(inner) >= 3
    for node in inner:
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        gain = max(cost(node) - cost(left) - cost(right), 0.0)
        columns, weights, _ = tree.oblique_test(node)
        squares = (weights * model.scale_[columns]) ** 2
        expected[columns] += gain * squares / squares.sum()
    expected /= expected.sum()
    np.testing.assert_allclose(model.feature_importances_, expected, rtol=1e-6)
    assert 0 < expected.min() < expected.max() < 1
