"""KMeansTree against scikit-learn's classification trees."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.tree import DecisionTreeClassifier

import treeclust_rs as tc


def partition(leaves):
    """Number leaves by their first row, so that equal partitions have equal arrays."""
    _, first, codes = np.unique(leaves, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes]


def random_problem(seed, n=120, d=4, k=4):
    """Rows that float32 holds, as scikit-learn's trees compare them, and labels that overlap."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32).astype(np.float64)
    labels = (X[:, 0] + rng.normal(scale=0.5, size=n) > 0) + 2 * (X[:, 1] > rng.normal(size=n))
    return X, labels % k, rng.uniform(0.5, 2.0, n)


def total_impurity(leaves, labels, weight, impurity):
    """Weight times impurity, over all leaves."""
    total = 0.0
    for leaf in set(leaves.tolist()):
        of_label = np.bincount(labels[leaves == leaf], weight[leaves == leaf])
        share = of_label[of_label > 0] / of_label.sum()
        of_leaf = 1 - (share**2).sum() if impurity == "gini" else -(share * np.log2(share)).sum()
        total += of_label.sum() * of_leaf
    return total


@pytest.mark.parametrize("impurity", ["gini", "entropy"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_it_is_scikit_learns_tree(impurity, weighted):
    """Leaf by leaf, up to the first cut that has others of equal gain beside it."""
    n_equal = 0
    for seed in range(20):
        X, labels, weight = random_problem(seed)
        weight = weight if weighted else np.ones(len(X))
        limits = {"max_depth": 4, "min_samples_leaf": 3} if seed % 2 else {}
        model = tc.KMeansTree(reference=labels, max_leaves=9, impurity=impurity, **limits)
        model.fit(X, sample_weight=weight)
        for n_leaves in range(2, model.n_leaves_ + 1):
            ours = model.truncate(n_leaves)
            theirs = DecisionTreeClassifier(
                criterion=impurity, max_leaf_nodes=n_leaves, random_state=0, **limits
            ).fit(X, labels, weight)
            leaves = [tree.apply(X) for tree in (ours, theirs)]
            if (partition(leaves[0]) != partition(leaves[1])).any():
                assert not weighted, "with weights no two cuts gain the same"
                total = [total_impurity(leaf, labels, weight, impurity) for leaf in leaves]
                assert total[0] == pytest.approx(total[1], rel=1e-12)
                break
            assert (ours.labels_ == theirs.predict(X)).all() or not weighted
        else:
            n_equal += 1
    assert n_equal == 20 if weighted else n_equal >= 10


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_on_real_data_it_explains_k_means(load):
    X = load().data
    reference = KMeans(3, n_init=10, random_state=0).fit(X)
    model = tc.KMeansTree(reference=reference, max_leaves=12).fit(X)
    theirs = DecisionTreeClassifier(max_leaf_nodes=12, random_state=0).fit(X, reference.labels_)
    ours, best = (model.labels_ == reference.labels_).sum(), theirs.score(X, reference.labels_)
    # Cuts of equal gain may differ, and what grows below them.
    assert ours >= best * len(X) - 1
    assert model.reference_inertia_ == pytest.approx(reference.inertia_, rel=1e-9)
    assert model.cost_ratio_ < 1.2
    path = model.cost_path_
    assert path["n_leaves"].to_list() == list(range(1, model.n_leaves_ + 1))
    for n_leaves in range(1, model.n_leaves_ + 1):
        small = model.truncate(n_leaves)
        D = ((X[:, None] - reference.cluster_centers_) ** 2).sum(axis=2)
        surrogate = D[np.arange(len(X)), small.labels_].sum()
        assert path["cost"][n_leaves - 1] == pytest.approx(surrogate, rel=1e-9)
        assert (small.labels_ == model.truncate(n_leaves).predict(X)).all()


def test_a_node_of_one_label_is_not_split(tmp_path):
    X = np.array([[0.0, 3.0], [1.0, 2.0], [2.0, 1.0], [3.0, 0.0]])
    model = tc.KMeansTree(reference=["a", "a", "b", "b"], max_leaves=4).fit(X)
    assert model.n_leaves_ == 2
    assert model.labels_.tolist() == ["a", "a", "b", "b"]
    model.save(tmp_path / "model.json")
    again = tc.load(tmp_path / "model.json")
    assert again.predict(X).tolist() == model.labels_.tolist()
    assert again.impurity == "gini"


def test_labels_that_lie_about_no_center_bring_no_warning():
    """Distances play no part in growth, so that rings are no misfit."""
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.concatenate([ring, 3 * ring])
    labels = np.repeat([0, 1], 40)
    model = tc.KMeansTree(reference=labels, max_leaves=20).fit(X)  # warnings are errors here
    assert (model.labels_ == labels).all()


def test_a_cost_path_may_rise_and_is_saved(tmp_path):
    for seed in range(40):
        X, labels, _ = random_problem(seed, n=30)
        model = tc.KMeansTree(reference=labels, max_leaves=12).fit(X)
        path = model.cost_path_["cost"].to_numpy()
        if (np.diff(path) > 1e-9).any():
            model.save(tmp_path / "model.json")
            assert (tc.load(tmp_path / "model.json").cost_path_["cost"].to_numpy() == path).all()
            return
    raise AssertionError("no path rises")
