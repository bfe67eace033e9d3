"""Trees as fitted classifiers of scikit-learn, and the tools that read those."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier, export_text, plot_tree

import treeclust_rs as tc
from float32_trees import mixed_case, numeric_case, oblique_case
from mixed_trees import DAY, NAMES, MixedBuilder, random_cells
from sizes import repeats
from treeclust_rs import export
from treeclust_rs.datasets import make_customers
from treeclust_rs.export import TreeEncoder, to_sklearn
from treeclust_rs.tree import ClusterTree
from trees import NAN, Builder, chain

MANY = repeats(50, 1000)
IRIS = load_iris().data

# The sum by which scikit-learn looks for infinite cells overflows on the largest numbers.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in reduce:RuntimeWarning")


# ---- the same labels ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(MANY))
def test_numeric_trees_become_classifiers(seed: int) -> None:
    tree, rows = numeric_case(seed)
    classifier = to_sklearn(tree)
    assert type(classifier) is DecisionTreeClassifier
    assert classifier.predict(_as_fitted(tree, rows)).tolist() == tree.predict(rows).tolist()


def _as_fitted(tree: ClusterTree, rows: np.ndarray) -> Any:
    """Return the rows with the names that a classifier with names asks for."""
    if tree.feature_names is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=list(tree.feature_names))


@pytest.mark.parametrize("seed", range(MANY))
@pytest.mark.filterwarnings("ignore:X has levels:UserWarning")
def test_mixed_trees_become_pipelines(seed: int) -> None:
    tree, cells, frame = mixed_case(seed)
    pipeline = to_sklearn(tree)
    assert isinstance(pipeline, Pipeline) and type(pipeline[-1]) is DecisionTreeClassifier
    assert pipeline.predict(frame).tolist() == tree.predict(cells).tolist()
    encoded = pipeline[:-1].transform(frame)
    assert encoded.shape == (len(frame), len(pipeline[:-1].get_feature_names_out()))


@pytest.mark.parametrize("seed", range(MANY))
def test_sums_become_columns_of_pipelines(seed: int) -> None:
    tree, rows = oblique_case(seed)
    assert to_sklearn(tree).predict(rows).tolist() == tree.predict(rows).tolist()


@pytest.mark.parametrize(
    "model",
    [
        tc.BestTree(4, max_leaves=7, effort="quick", random_state=0),
        tc.IMM(4, random_state=0),
        tc.ExKMC(4, max_leaves=8, cuts="interval", random_state=0),
        tc.Kauri(4, max_leaves=7),
        tc.KernelIMM(3, random_state=0),
        tc.ObliqueTree(3, max_depth=2, random_state=0),
        tc.KDTreeClusters(4, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("names", [False, True])
def test_models_have_the_method(model: Any, names: bool) -> None:
    pd = pytest.importorskip("pandas")
    rows = IRIS.astype(np.float32)
    frame = pd.DataFrame(rows, columns=load_iris().feature_names) if names else rows
    model = clone(model).fit(frame).rename_clusters({0: "zero", 1: "b", 2: "a"})
    found = model.to_sklearn()
    assert found.predict(frame).tolist() == model.predict(frame).tolist()
    assert hasattr(found, "feature_names_in_") == (names and not isinstance(found, Pipeline))
    again = pickle.loads(pickle.dumps(found))
    assert again.predict(frame).tolist() == model.predict(frame).tolist()


def test_names_given_to_fit_ask_for_no_frame() -> None:
    for model in (tc.IMM(3, random_state=0), tc.ObliqueTree(3, max_depth=2, random_state=0)):
        model.fit(IRIS.astype(np.float32), feature_names=list("abcd"))
        found = model.to_sklearn()
        assert not hasattr(found, "feature_names_in_")
        assert found.predict(IRIS).tolist() == model.predict(IRIS.astype(np.float32)).tolist()


def test_a_table_as_people_have_it() -> None:
    table = make_customers(3_000).drop("customer_id")
    table = table.with_columns(pl.col(pl.Float64).cast(pl.Float32))
    for model in (
        tc.BestTree(6, max_leaves=12, effort="quick", scale="standard", random_state=0),
        tc.ExKMC(6, max_leaves=12, scale="standard", random_state=0),
    ):
        labels = model.fit(table).predict(table)
        pipeline = model.to_sklearn()
        assert pipeline.predict(table).tolist() == labels.tolist()
        assert pipeline.predict(table.to_pandas()).tolist() == labels.tolist()
        assert pipeline.predict(table.to_arrow()).tolist() == labels.tolist()
        assert pickle.loads(pickle.dumps(pipeline)).predict(table).tolist() == labels.tolist()


# ---- a genuine classifier -------------------------------------------------------------------


def test_the_arrays_are_those_of_a_fitted_tree() -> None:
    model = tc.BestTree(4, max_leaves=7, effort="quick", random_state=0).fit(IRIS)
    ours, theirs = model.tree_, model.to_sklearn()
    assert theirs.get_params() == DecisionTreeClassifier().get_params()
    fitted = DecisionTreeClassifier().fit(IRIS, model.labels_)
    own = {name for name in vars(theirs) if name.endswith("_")}
    assert own == {name for name in vars(fitted) if name.endswith("_")}
    for name in own - {"tree_"}:
        assert type(getattr(theirs, name)) is type(getattr(fitted, name)), name
    assert (theirs.get_depth(), theirs.get_n_leaves()) == (ours.max_depth, ours.n_leaves)
    assert theirs.apply(IRIS).tolist() == model.apply(IRIS).tolist()
    for name in ("children_left", "children_right", "feature", "threshold", "n_node_samples"):
        assert getattr(theirs.tree_, name).tolist() == getattr(ours, name).tolist()
    shares = theirs.tree_.value[:, 0]
    for node in range(ours.n_nodes):
        reached = theirs.decision_path(IRIS)[:, node].toarray()[:, 0] > 0
        expected = np.bincount(model.labels_[reached], minlength=4) / reached.sum()
        np.testing.assert_allclose(shares[node], expected, atol=1e-12)
        np.testing.assert_allclose(theirs.tree_.impurity[node], 1 - (expected**2).sum(), atol=1e-12)
    assert (theirs.predict_proba(IRIS).max(axis=1) == 1).all()
    np.testing.assert_allclose(theirs.feature_importances_.sum(), 1)
    assert clone(theirs).fit(IRIS, model.labels_).get_n_leaves() >= 4


def test_counts_add_up_where_intervals_are_expanded() -> None:
    for seed in (*range(0, 40, 2), 132):
        tree, _ = numeric_case(seed)
        nodes = to_sklearn(tree).tree_
        inner = np.flatnonzero(nodes.children_left >= 0)
        left, right = nodes.children_left[inner], nodes.children_right[inner]
        assert nodes.n_node_samples[0] == tree.n_node_samples[0]
        for counts in (nodes.n_node_samples, nodes.weighted_n_node_samples):
            np.testing.assert_allclose(counts[left] + counts[right], counts[inner])
            assert (counts >= 0).all()


def test_classes_are_in_the_order_of_scikit_learn() -> None:
    tree = Builder(np.arange(6.0)[:, None], [0, 0, 1, 1, 2, 2])
    tree.split(tree.split(0, 0, 3.0), 0, 1.0)
    named = tree.tree(classes=["zebra", "ant", "mouse"])
    classifier = to_sklearn(named)
    assert classifier.classes_.tolist() == ["ant", "mouse", "zebra"]
    assert classifier.predict([[0], [3], [5]]).tolist() == ["zebra", "ant", "mouse"]


def test_a_single_leaf() -> None:
    leaf = Builder(np.zeros((3, 2)), [0, 0, 0]).tree()
    assert to_sklearn(leaf).predict(np.zeros((4, 2))).tolist() == [0] * 4
    mixed = MixedBuilder(random_cells(np.random.default_rng(0), 5), np.zeros(5, dtype=int)).tree()
    frame = pl.DataFrame({name: [None, None] for name in NAMES})
    pipeline = to_sklearn(mixed)
    assert pipeline.predict(frame).tolist() == [0, 0]
    assert pipeline[:-1].get_feature_names_out().tolist() == ["nothing"]


def test_trees_of_scikit_learn_come_back() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = NAN
    fitted = DecisionTreeClassifier(max_leaf_nodes=12).fit(X, np.arange(200) % 3)
    again = to_sklearn(fitted)
    assert again.predict(X).tolist() == fitted.predict(X).tolist()
    assert sorted(again.tree_.threshold) == sorted(fitted.tree_.threshold)


# ---- the encoder ----------------------------------------------------------------------------


def encoded_tree() -> ClusterTree:
    builder = MixedBuilder(random_cells(np.random.default_rng(0), 60), np.arange(60) % 3)
    left = builder.test(0, 2, codes=[2, 3, 4], missing_left=True)
    deeper = builder.test(left, 2, codes=[0, 1, 2, 3, 5])
    builder.test(left + 1, 4, at_most=19_800 * DAY)
    after = builder.test(deeper, 3, codes=[0])
    builder.test(after, 6)
    return builder.tree()


def test_columns_are_named_by_what_they_say() -> None:
    names = to_sklearn(encoded_tree())[:-1].get_feature_names_out()
    assert names.tolist() == [
        'region in {10, "a, b", north} or missing',
        "region=north or missing",
        "signup > 2024-03-18 or missing",
        "newsletter or missing",
        "stay is missing",
    ]


@pytest.mark.filterwarnings("ignore:X has levels:UserWarning")
def test_columns_say_whether_conditions_hold() -> None:
    frame = pl.DataFrame(
        {
            "region": ["north", "West", None, "atlantis"],
            "signup": [None, 19_800, 19_801, 19_700],
            "newsletter": [True, False, None, True],
            "stay": [None, 5, 0, None],
        },
        schema_overrides={"signup": pl.Int32, "stay": pl.Int64},
    ).with_columns(pl.col("signup").cast(pl.Date), pl.col("stay").cast(pl.Duration("us")))
    encoder = to_sklearn(encoded_tree())[:-1]
    assert encoder.transform(frame).T.tolist() == [
        [1, 0, 1, 1],
        [1, 0, 1, 1],
        [1, 0, 1, 0],
        [1, 0, 1, 1],
        [1, 0, 0, 1],
    ]


def test_the_encoder_is_one_of_scikit_learn() -> None:
    tree = encoded_tree()
    encoder = TreeEncoder(tree)
    assert clone(encoder).tree == tree and encoder.fit(None) is encoder
    assert encoder.n_features_in_ == 8
    with pytest.raises(TypeError, match="Column 'region' held text"):
        encoder.transform(np.zeros((2, 8)))


@pytest.mark.filterwarnings("ignore:X has levels:UserWarning")
def test_a_pipeline_can_be_fitted_again() -> None:
    tree, cells, frame = mixed_case(3)
    pipeline = to_sklearn(tree)
    labels = tree.predict(cells)
    assert clone(pipeline).fit(frame, labels).predict(frame).tolist() == labels.tolist()


def test_the_encoder_refuses_what_predict_refuses() -> None:
    model = tc.ObliqueTree(3, max_depth=2, random_state=0).fit(IRIS)
    pipeline = model.to_sklearn()
    for bad in (np.nan, np.inf):
        rows = np.full((2, 4), bad)
        with pytest.raises(ValueError, match="NaN" if np.isnan(bad) else "inf"):
            pipeline.predict(rows)


# ---- what cannot be -------------------------------------------------------------------------


def numbers(threshold: float, **beside: float) -> ClusterTree:
    builder = Builder(np.array([[0.0], [1.0]]), [0, 1])
    builder.nodes[0] |= {"feature": 0, "kind": 1, "threshold": threshold}
    builder._divide(0, np.array([True, False]))
    return builder.tree(
        feature_names=["income"], **{name: [value, NAN, NAN] for name, value in beside.items()}
    )


def test_values_that_float32_moves_across_a_threshold_are_named() -> None:
    with pytest.raises(
        ValueError,
        match=r"Node 0 of the tree tests income <= 16777216\.0, and 16777217\.0 of the fit becomes "
        r"16777216\.0 in float32, beyond the threshold: scikit-learn compares in float32\. Fit on "
        "income less a constant, or in other units; or use `predict` of the model",
    ):
        to_sklearn(numbers(16_777_216.0, below=1.0, above=16_777_217.0))
    with pytest.raises(ValueError, match=r"and 0\.1 of the fit becomes 0\.1000000"):
        to_sklearn(numbers(0.1, below=0.1, above=0.2))
    assert to_sklearn(numbers(0.1, below=0.05, above=0.2)).tree_.threshold[0] == 0.1
    # Not known: nothing is checked but the threshold itself.
    assert to_sklearn(numbers(0.1)).tree_.threshold[0] == 0.1
    assert to_sklearn(numbers(0.1, below=NAN, above=NAN)).tree_.threshold[0] == 0.1


def test_thresholds_beyond_float32_are_named() -> None:
    for cut in (1e39, -1e39):
        with pytest.raises(
            ValueError, match=r"Node 0 .* income <= -?1e\+39, which is beyond float"
        ):
            to_sklearn(numbers(cut))
    interval = Builder(np.array([[0.0], [1.0]]), [0, 1])
    interval.split(0, 0, interval=(1.0, 1e39))
    with pytest.raises(
        ValueError, match=r"Node \d of the tree by to_threshold\(\) tests x0 <= 1e\+39"
    ):
        to_sklearn(interval.tree())
    with pytest.raises(ValueError, match=r"and 1e\+39 of the fit becomes inf"):
        to_sklearn(numbers(1e39, below=1e39, above=2e39))


def test_times_need_no_float32() -> None:
    builder = MixedBuilder(random_cells(np.random.default_rng(0), 60), np.arange(60) % 3)
    builder.test(0, 5, at_most=1.7e15 + 1)
    tree = builder.tree(below=[1.7e15 + 1, NAN, NAN], above=[1.7e15 + 2, NAN, NAN])
    times = pl.Series([1_700_000_000_000_001, 1_700_000_000_000_002])
    frame = pl.DataFrame({"seen": times.cast(pl.Datetime("us", "UTC"))})
    assert to_sklearn(tree)[:-1].transform(frame).ravel().tolist() == [0, 1]


def test_too_many_intervals_are_counted() -> None:
    builder = Builder(np.zeros((1, 40)), [0], 2)
    node = 0
    for feature in range(18):
        node = builder.split(node, feature, interval=(-1.0, 1.0)) + 1
    with pytest.raises(ValueError, match="take more than 200,000 nodes"):
        to_sklearn(builder.tree())


def test_models_without_a_tree_say_where_their_rules_are() -> None:
    model = tc.Douglas(2, max_iter=2, random_state=0).fit(IRIS)
    for function, method in (
        (export.to_sklearn, "to_sklearn"),
        (export.to_onnx, "to_onnx"),
        (export.to_sql, "to_sql"),
        (export.to_narwhals_expr, "to_narwhals"),
        (export.to_polars_expr, "to_polars"),
        (export.to_polars_code, "to_polars_code"),
        (lambda model: export.to_html(model, "page.html"), "to_html"),
    ):
        with pytest.raises(
            TypeError, match=rf"Douglas has no tree: .*Use the model's own method {method}\.$"
        ):
            function(model)
    with pytest.raises(TypeError, match=r"and `to_polars\(\)`\.$"):
        export.plot_tree(model)


def test_deep_trees() -> None:
    deep = chain(3_000)
    rows = np.random.default_rng(0).uniform(0, 600, (50, 5)).astype(np.float32)
    assert to_sklearn(deep).predict(rows).tolist() == deep.predict(rows).tolist()


# ---- tools that read trees of scikit-learn ---------------------------------------------------


def test_export_text_and_plot_tree(pyplot: Any) -> None:
    pipeline = to_sklearn(encoded_tree())
    names = pipeline[:-1].get_feature_names_out().tolist()
    text = export_text(pipeline[-1], feature_names=names)
    assert text.startswith('|--- region in {10, "a, b", north} or missing <= 0.50\n')
    assert "|   |--- signup > 2024-03-18 or missing >  0.50" in text
    drawn = plot_tree(pipeline[-1], feature_names=names)
    assert len(drawn) >= 11
    classifier = tc.IMM(3, random_state=0).fit(IRIS).to_sklearn()
    assert export_text(classifier).count("class:") == 3
    assert len(plot_tree(classifier)) >= 5


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(repeats(20, 200)))
def test_shap_explains_the_tree(seed: int) -> None:
    shap = pytest.importorskip("shap")
    tree, rows = numeric_case(seed)
    classifier = to_sklearn(tree)
    if tree.n_nodes == 1:
        return
    values = shap.TreeExplainer(classifier)(rows)
    predicted = np.zeros((len(rows), len(tree.classes)))
    predicted[np.arange(len(rows)), tree.leaf_clusters[tree.apply(rows)]] = 1.0
    found = values.values.sum(axis=1) + values.base_values
    np.testing.assert_allclose(found, predicted, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_shap_explains_a_pipeline() -> None:
    shap = pytest.importorskip("shap")
    table = make_customers(500).drop("customer_id")
    model = tc.ExKMC(4, max_leaves=8, scale="standard", random_state=0).fit(table)
    pipeline = model.to_sklearn()
    encoded = pipeline[:-1].transform(table)
    values = shap.TreeExplainer(pipeline[-1])(encoded)
    found = values.values.sum(axis=1) + values.base_values
    assert found.argmax(axis=1).tolist() == model.labels_.tolist()


@pytest.mark.filterwarnings("ignore")
def test_dtreeviz_draws_the_tree(pyplot: Any) -> None:
    dtreeviz = pytest.importorskip("dtreeviz")
    model = tc.ExKMC(3, max_leaves=5, cuts="interval", random_state=0).fit(IRIS)
    classifier = model.to_sklearn()
    drawing = dtreeviz.model(
        classifier,
        X_train=IRIS,
        y_train=model.labels_,
        feature_names=load_iris().feature_names,
        target_name="cluster",
        class_names=["0", "1", "2"],
    )
    assert drawing.shadow_tree.nnodes() == classifier.tree_.node_count
    rules = drawing.explain_prediction_path(IRIS[0])
    assert "<" in rules or "<=" in rules


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(repeats(20, 200)))
def test_skl2onnx_converts_the_tree(seed: int) -> None:
    skl2onnx, _ = pytest.importorskip("skl2onnx"), pytest.importorskip("onnxruntime")
    from onnxruntime import InferenceSession

    tree, rows = numeric_case(seed)
    rows = rows[~np.isnan(rows).any(axis=1)]  # which skl2onnx sends right at every test
    converted = skl2onnx.to_onnx(to_sklearn(tree), rows[:1])
    session = InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])
    assert session.run(None, {"X": rows})[0].tolist() == tree.predict(rows).tolist()
