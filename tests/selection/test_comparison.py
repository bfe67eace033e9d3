"""compare: every measure against what its own functions say."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.cluster import DBSCAN, KMeans
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import treeclust_rs as tc

X, Y = load_wine(return_X_y=True)
SCALED = (X - X.mean(axis=0)) / X.std(axis=0)
# A k-d tree of four leaves halves the large cluster until the small ones are lost.
LOST = np.concatenate([np.arange(90.0), [200.0, 201.0, 300.0, 301.0, 400.0, 401.0]])[:, None]
LOST_LABELS = np.repeat([0, 1, 2, 3], [90, 2, 2, 2])


def test_rows_are_measured_as_their_models():
    found = tc.compare(X, n_clusters=3, labels=Y, scale="standard", random_state=0)
    methods = found.table["method"].to_list()
    assert methods[:6] == ["BestTree"] * 3 + ["IMM", "ExGreedy", "ExShallow"]
    assert found.table.height == len(found.models) == 5 + 9 * 3
    free = tc.metrics.kmeans_cost(SCALED, found.reference_labels)
    for row, model in zip(found.table.iter_rows(named=True), found.models, strict=True):
        cost = tc.metrics.kmeans_cost(SCALED, model.labels_)
        assert row["cost_ratio"] == pytest.approx(cost / free, rel=1e-9)
        assert row["agreement"] == tc.metrics.agreement(model.labels_, found.reference_labels)
        assert row["ari"] == tc.metrics.adjusted_rand_index(Y, model.labels_)
        assert row["leaves"] == model.n_leaves_
        assert row["depth"] == model.tree_.max_depth
        assert row["wad"] == tc.metrics.weighted_average_depth(model)
        assert row["waes"] == tc.metrics.weighted_average_explanation_size(model)
        rules = model.rules().frame["rule"]
        assert row["conditions"] == rules.str.count_matches("<=|<|>").sum()
        assert row["seconds"] > 0


def test_all_explain_one_reference():
    labels = KMeans(4, n_init=1, random_state=3).fit_predict(SCALED)
    methods = [tc.IMM(), tc.ExKMC(), tc.KMeansTree()]
    found = tc.compare(X, methods, reference=labels, scale="standard")
    for model in found.models:
        np.testing.assert_array_equal(model.reference_labels_, labels)
    assert found.table["leaves"].to_list()[:6] == [4, 4, 8, 13, 4, 8]  # ExKMC needs no 16


def test_what_is_fitted_is_measured_as_it_is():
    mine = tc.ExKMC(3, max_leaves=5, scale="standard", random_state=0).fit(X)
    theirs = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, mine.labels_)
    labels = KMeans(3, n_init=1, random_state=0).fit_predict(SCALED)
    named = {"mine": mine, "scikit-learn's": theirs, "k-means": labels, "fitted now": KMeans()}
    found = tc.compare(X, named, 3, scale="standard", random_state=0)
    table = found.table
    assert table["method"].to_list() == list(named)
    assert table["leaves"].to_list() == [5, 4, None, None]
    assert table["seconds"].is_null().to_list() == [True, True, True, False]
    assert found.models[0] is mine
    assert table["cost_ratio"][2] == pytest.approx(1.0, rel=0.01)


def test_fitted_clusterers_are_not_fitted_again():
    other = KMeans(3, n_init=1, max_iter=1, random_state=5).fit(SCALED[:9])
    found = tc.compare(SCALED, [other, DBSCAN(eps=2.0).fit(SCALED)], 3, random_state=0)
    assert found.models[0] is other
    free = tc.metrics.kmeans_cost(SCALED, found.reference_labels)
    cost = tc.metrics.kmeans_cost(SCALED, other.predict(SCALED))
    assert found.table["cost_ratio"][0] == pytest.approx(cost / free, rel=1e-9)
    assert found.table["seconds"].is_null().all()


def test_trees_of_clusters_can_be_rows():
    frame = pl.DataFrame(X, schema=load_wine().feature_names)
    fitted = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(frame, Y)
    tree = tc.tree.from_sklearn(fitted)
    backwards = frame.select(reversed(frame.columns))
    found = tc.compare(backwards, tree, 3, labels=Y, scale="standard", random_state=0)
    assert found.table["method"].to_list() == ["ClusterTree"]
    assert found.table["ari"][0] == tc.metrics.adjusted_rand_index(Y, fitted.predict(frame))


def test_pipelines_are_fitted_as_they_are():
    pipeline = make_pipeline(StandardScaler(), KMeans(3, n_init=1, random_state=0))
    found = tc.compare(X, {"pipeline": pipeline}, 3, scale="standard", random_state=0)
    assert found.table["cost_ratio"][0] == pytest.approx(1.0, rel=0.01)
    assert tc.compare(SCALED, pipeline, 3).table["method"][0].startswith("Pipeline(steps=")


def test_pipelines_pass_weights_to_their_last_step():
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    pipeline = make_pipeline(StandardScaler(), KMeans(3, n_init=1, random_state=0))
    found = tc.compare(X, pipeline, 3, sample_weight=weight)
    expected = KMeans(3, n_init=1, random_state=0).fit(SCALED, sample_weight=weight).labels_
    np.testing.assert_array_equal(found.models[0][-1].labels_, expected)


def test_a_method_keeps_its_own_parameters():
    methods = [tc.ExKMC(max_leaves=7), tc.ExKMC(), tc.Kauri(5, scale="robust")]
    found = tc.compare(SCALED, methods, 3, [4, 9], random_state=0)
    assert found.table["method"].to_list() == (
        ["ExKMC(max_leaves=7)"] + ["ExKMC"] * 2 + ["Kauri(n_clusters=5, scale='robust')"] * 2
    )
    assert found.table["max_leaves"].to_list() == [7, 4, 9, 4, 9]
    assert found.models[-1].n_clusters == 5
    assert found.models[-1].scale == "robust"


def test_warnings_name_their_method():
    with pytest.warns(ConvergenceWarning, match="KDTreeClusters: Only 2 of the 4 clusters") as told:
        tc.compare(LOST, [tc.IMM(), tc.KDTreeClusters()], reference=LOST_LABELS, max_leaves=[4])
    assert told[0].filename == __file__


def test_noise_is_left_out():
    labels = np.where(np.arange(len(X)) % 5 == 0, -1, Y)
    found = tc.compare(SCALED, [tc.KMeansTree(max_leaves=40), labels], reference=labels)
    np.testing.assert_array_equal(found.reference_labels, labels)
    assert found.table["cost_ratio"].to_list() == pytest.approx([1.0, 1.0], rel=1e-9)
    names = np.array(["a", "b", "c"], dtype=object)[Y]
    names[labels == -1] = -1
    named = tc.compare(SCALED, [tc.KMeansTree(max_leaves=40), names], reference=names)
    columns = ["leaves", "cost_ratio", "agreement", "waes"]
    assert named.table.select(columns).equals(found.table.select(columns))


def test_frames_weights_and_processes():
    frame = pl.DataFrame(X, schema=load_wine().feature_names)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    options = {
        "max_leaves": [4],
        "scale": "standard",
        "sample_weight": weight,
        "random_state": 0,
        "labels": Y,
    }
    methods = [tc.ExKMC(3), tc.Kauri(3)]
    one = tc.compare(frame, methods, 3, **options).table.drop("seconds")
    two = tc.compare(frame, methods, 3, n_jobs=2, **options).table.drop("seconds")
    assert one.equals(two)
    assert (one["leaves"] == 4).all()


def test_names_tell_what_differs():
    methods = [tc.ExKMC(), tc.ExKMC(base_tree=None), tc.ExKMC(), Y]
    table = tc.compare(X, methods, 3, [6], random_state=0).table
    assert table["method"].to_list() == ["ExKMC", "ExKMC(base_tree=None)", "ExKMC #2", "labels"]


def test_it_reads_well_and_is_drawn():
    pytest.importorskip("matplotlib")
    found = tc.compare(load_iris().data, [tc.IMM(), tc.ExKMC(), load_iris().target], 3)
    assert "Comparison of 3 methods" in repr(found)
    assert "<b>" in found._repr_html_()
    ax = found.plot()
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["IMM", "ExKMC", "labels"]
    assert found.plot(ax) is ax


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"methods": [tc.IMM]}, TypeError, "methods must hold"),
        ({"methods": ["imm"]}, TypeError, "methods must hold"),
        ({"max_leaves": []}, ValueError, "max_leaves is empty"),
        ({"max_leaves": [3.5]}, TypeError, "max_leaves must hold ints"),
        ({"labels": Y[:9]}, ValueError, "9 labels for 178 rows"),
        ({"labels": X}, ValueError, "labels must have one dimension"),
        ({"methods": []}, ValueError, "methods is empty"),
        ({"methods": "imm"}, TypeError, "methods must hold .* Got 'imm'"),
        ({"methods": 3}, TypeError, "methods must hold .* Got 3"),
        ({"methods": [Y[:9]]}, ValueError, "There are 9 labels of 'labels' for 178 rows"),
        ({"methods": {"mine": Y + 0.5}}, ValueError, "labels of 'mine' must be integers"),
        ({"methods": [DecisionTreeClassifier()]}, TypeError, "needs classes to be fitted"),
        ({"methods": [DecisionTreeRegressor()]}, TypeError, "predicts numbers, not clusters"),
        ({"methods": [tc.ExKMC(5)]}, ValueError, "the reference that it would explain has 3"),
        ({"methods": [tc.ExKMC()], "max_leaves": [2]}, ValueError, "max_leaves=2"),
        ({"verbose": -1}, ValueError, "verbose"),
    ],
)
def test_what_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        tc.compare(X, **({"methods": [tc.IMM()], "n_clusters": 3} | options))


def test_nothing_given_is_changed():
    model = tc.ExKMC()
    before = model.get_params()
    tc.compare(X, [model], 3, [5], random_state=0)
    assert model.get_params() == before
    assert not hasattr(model, "tree_")


def test_one_method_does_not_push_the_others_into_a_corner(pyplot):
    few = tc.compare(X, [tc.IMM()], 3, random_state=0).plot()
    assert (few.get_xscale(), few.get_yscale()) == ("linear", "linear")
    many = tc.compare(X, [tc.IMM(), tc.ExGreedy(), tc.CLTree(min_y=0)], 3, random_state=0)
    assert many.table["leaves"].max() > 9
    assert many.plot().get_xscale() == "log"
