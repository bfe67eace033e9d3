"""scikit-learn's trees as trees of clusters."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

import treeclust_rs as tc

IRIS = load_iris()
X, Y = IRIS.data, IRIS.target
SPECIES = IRIS.target_names[Y]


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, ExtraTreeClassifier])
@pytest.mark.parametrize("target", [Y, SPECIES], ids=["numbers", "names"])
def test_a_classifier_predicts_as_before(kind, target):
    for seed in range(5):
        fitted = kind(max_leaf_nodes=7, random_state=seed).fit(X, target)
        tree = tc.tree.from_sklearn(fitted)
        np.testing.assert_array_equal(
            np.array(tree.classes)[tree.leaf_clusters[tree.apply(X)]], fitted.predict(X)
        )
        assert tree.n_leaves == fitted.get_n_leaves()
        assert tree.max_depth == fitted.get_depth()
        counts = np.bincount(tree.apply(X), minlength=tree.n_nodes)
        np.testing.assert_array_equal(tree.n_node_samples[tree.leaves], counts[tree.leaves])


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, ExtraTreeClassifier])
def test_missing_values_go_where_they_go_in_scikit_learn(kind):
    rng = np.random.default_rng(0)
    whole = np.round(X * 8) / 8  # which float32 holds
    n_missing_tests = 0
    for seed in range(20):
        gaps = rng.random(X.shape) < 0.3
        # In some columns what is missing says more than the values.
        if seed % 2:
            gaps[:, 2:] = (seed % 3 == Y)[:, None]
        rows = np.where(gaps, np.nan, whole)
        fitted = kind(max_leaf_nodes=7, random_state=seed).fit(rows, Y)
        tree = tc.tree.from_sklearn(fitted)
        n_missing_tests += int((tree.kind == 5).sum())
        everything_missing = np.full((1, 4), np.nan)
        others = np.where(rng.random(X.shape) < 0.5, np.nan, whole)
        for data in (rows, whole, others, everything_missing):
            assert tree.predict(data).tolist() == fitted.predict(data).tolist()
    assert n_missing_tests > 5 or kind is ExtraTreeClassifier  # whose random cuts are thresholds


@pytest.mark.parametrize("kind", [DecisionTreeRegressor, ExtraTreeRegressor])
def test_the_leaves_of_a_regressor_are_clusters(kind):
    fitted = kind(max_leaf_nodes=6, random_state=0).fit(X, X)
    tree = tc.tree.from_sklearn(fitted)
    assert tree.classes == tuple(range(6))
    np.testing.assert_array_equal(tree.leaf_clusters[tree.leaves], np.arange(6))
    pairs = set(zip(fitted.apply(X).tolist(), tree.apply(X).tolist(), strict=True))
    assert len(pairs) == 6


def test_labels_and_centers_name_the_leaves():
    fitted = DecisionTreeRegressor(max_leaf_nodes=9, random_state=0).fit(X, X)
    by_labels = tc.tree.from_sklearn(fitted, X, labels=SPECIES)
    leaves = by_labels.apply(X)
    for leaf in by_labels.leaves:
        names, counts = np.unique(SPECIES[leaves == leaf], return_counts=True)
        assert by_labels.classes[by_labels.cluster[leaf]] == names[counts.argmax()]
    centers = np.array([X[c == Y].mean(axis=0) for c in range(3)])
    by_centers = tc.tree.from_sklearn(fitted, X, centers=centers)
    costs = ((X[:, None] - centers) ** 2).sum(axis=2)
    for leaf in by_centers.leaves:
        assert by_centers.cluster[leaf] == costs[leaves == leaf].sum(axis=0).argmin()


def test_weights_count():
    fitted = DecisionTreeRegressor(max_leaf_nodes=2, random_state=0).fit(X, X)
    weight = np.where(Y == 2, 5.0, 1.0)
    tree = tc.tree.from_sklearn(fitted, X, labels=Y, sample_weight=weight)
    assert tree.weighted_n_node_samples[0] == weight.sum()
    assert tree.cluster[tree.apply(X[Y == 2][:1])[0]] == 2


def test_noise_and_rows_without_weight_are_left_out():
    fitted = DecisionTreeRegressor(max_leaf_nodes=5, random_state=0).fit(X, X)
    labels = np.where(np.arange(150) % 7 == 0, -1, Y)
    kept = labels != -1
    tree = tc.tree.from_sklearn(fitted, X, labels=labels)
    assert tree == tc.tree.from_sklearn(fitted, X[kept], labels=Y[kept])
    tree = tc.tree.from_sklearn(fitted, X, labels=Y, sample_weight=kept)
    assert tree.n_node_samples[0] == kept.sum()
    centers = X[[0, 70, 140]]
    tree = tc.tree.from_sklearn(fitted, X, centers=centers, sample_weight=kept)
    assert tree.n_node_samples[0] == kept.sum()


def test_as_many_labels_as_rows_take_little_memory():
    """A table of rows by labels would take 320 GB."""
    many = np.repeat(X, 1400, axis=0)[:200_000]
    fitted = DecisionTreeRegressor(max_leaf_nodes=2, random_state=0).fit(many, many)
    tree = tc.tree.from_sklearn(fitted, many, labels=np.arange(200_000))
    assert tree.n_leaves == 2


def test_whole_numbers_stay_numbers():
    fitted = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, Y.astype(float))
    assert tc.tree.from_sklearn(fitted).classes == (0, 1, 2)


def test_measures_texts_and_pictures_take_it():
    fitted = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, SPECIES)
    tree = tc.tree.from_sklearn(fitted)
    assert tc.metrics.weighted_average_depth(fitted) == tc.metrics.weighted_average_depth(tree)
    assert "setosa" in tc.export.export_text(fitted)
    frame = pl.DataFrame(X, schema=["x0", "x1", "x2", "x3"])
    found = frame.select(tc.export.to_polars_expr(fitted)).to_series().to_list()
    assert found == fitted.predict(X).tolist()
    pytest.importorskip("matplotlib")
    tc.export.plot_tree(fitted)


def test_names_come_from_the_tree_or_the_frame_or_the_user():
    frame = pl.DataFrame(load_wine().data, schema=load_wine().feature_names)
    labels = load_wine().target
    by_frame = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(frame, labels)
    assert list(tc.tree.from_sklearn(by_frame).feature_names) == frame.columns
    shuffled = frame.select(reversed(frame.columns))
    tree = tc.tree.from_sklearn(by_frame, shuffled, labels=labels)
    np.testing.assert_array_equal(tree.value, tc.tree.from_sklearn(by_frame).value)
    by_array = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(
        frame.to_numpy(), labels
    )
    assert tc.tree.from_sklearn(by_array).feature_names is None
    names = [f"column {i}" for i in range(13)]
    assert tc.tree.from_sklearn(by_array, feature_names=names).feature_names == tuple(names)


def test_a_classification_tree_can_be_refined():
    reference = tc.IMM(3, random_state=0).fit(X).reference_labels_
    start = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, reference)
    model = tc.ObliqueTree(
        init=start, splits="axis", alpha=0, reference=reference, random_state=0
    ).fit(X)
    before = tc.tree.from_sklearn(start)
    labels = np.array(before.classes)[before.leaf_clusters[before.apply(X)]]
    assert model.inertia_ <= tc.metrics.kmeans_cost(X, labels) * (1 + 1e-12)


def test_what_is_refused():
    fitted = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, Y)
    with pytest.raises(TypeError, match="Got RandomForestClassifier"):
        tc.tree.from_sklearn(RandomForestClassifier())
    with pytest.raises(NotFittedError):
        tc.tree.from_sklearn(DecisionTreeClassifier())
    with pytest.raises(ValueError, match="give X"):
        tc.tree.from_sklearn(fitted, labels=Y)
    with pytest.raises(ValueError, match="without labels or centers"):
        tc.tree.from_sklearn(fitted, X)
    with pytest.raises(ValueError, match="both given"):
        tc.tree.from_sklearn(fitted, X, labels=Y, centers=X[:3])
    with pytest.raises(ValueError, match="3 features, but the tree was fitted to 4"):
        tc.tree.from_sklearn(fitted, X[:, :3], labels=Y)
    with pytest.raises(ValueError, match="labels has 10 labels, but X has 150 rows"):
        tc.tree.from_sklearn(fitted, X, labels=Y[:10])
    with pytest.raises(ValueError, match=r"labels must have the shape \(n_samples,\)"):
        tc.tree.from_sklearn(fitted, X, labels=Y[:, None])
    with pytest.raises(ValueError, match=r"Row 3 holds .*nan"):
        tc.tree.from_sklearn(fitted, X, labels=np.where(np.arange(150) == 3, np.nan, Y))
    with pytest.raises(ValueError, match="centers has 2 columns, but X has 4"):
        tc.tree.from_sklearn(fitted, X, centers=X[:3, :2])
    with pytest.raises(ValueError, match="centers contains NaN or inf"):
        tc.tree.from_sklearn(fitted, X, centers=[[np.nan] * 4])
    with pytest.raises(ValueError, match="centers has 0 rows"):
        tc.tree.from_sklearn(fitted, X, centers=np.empty((0, 4)))
    two = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="2 outputs"):
        tc.tree.from_sklearn(two)
    regressor = DecisionTreeRegressor(max_leaf_nodes=3, random_state=0).fit(X, X)
    with pytest.raises(ValueError, match="have no clusters"):
        tc.ObliqueTree(init=regressor, splits="axis").fit(X)
