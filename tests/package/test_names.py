"""One meaning per word: parameters of the same name mean the same in every estimator."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

import treeclust_rs as tc

X = load_iris().data
LABELS = load_iris().target
ESTIMATORS = [
    tc.BestTree(effort="quick"),
    tc.IMM(),
    tc.ExGreedy(),
    tc.ExShallow(),
    tc.RandomCuts(),
    tc.ExKMC(),
    tc.KDTreeClusters(),
    tc.XRegressionTree(),
    tc.KMeansTree(),
    tc.SpExTree(),
    tc.VoronoiTree(),
    tc.ObliqueTree(),
    tc.CUBT(),
    tc.CLTree(),
    tc.Kauri(),
    tc.KernelIMM(),
    tc.KernelExKMC(),
    tc.KernelExpand(),
    tc.KernelKMeans(),
    tc.Douglas(),
]


def name_of(estimator: Any) -> str:
    return type(estimator).__name__


def with_parameter(name: str) -> list[Any]:
    return [estimator for estimator in ESTIMATORS if name in estimator.get_params()]


def quick(estimator: Any, **parameters: Any) -> Any:
    """Return a clone that is fitted fast."""
    fast = {"n_init": 1, "max_iter": 5, "random_state": 0}
    model = type(estimator)(**estimator.get_params())
    known = model.get_params()
    model.set_params(**{name: value for name, value in fast.items() if name in known})
    return model.set_params(**parameters)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
def test_the_number_of_clusters_is_the_first_parameter_and_8_by_default(estimator: Any) -> None:
    first = next(iter(inspect.signature(type(estimator)).parameters.values()))
    assert (first.name, first.default) == ("n_clusters", None)
    assert first.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD


@pytest.mark.parametrize("estimator", with_parameter("max_leaves"), ids=name_of)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_max_leaves_none_is_one_per_cluster_and_inf_no_limit(estimator: Any) -> None:
    per_cluster = quick(estimator, n_clusters=3, max_leaves=None).fit(X)
    assert per_cluster.n_leaves_ == 3
    unlimited = quick(estimator, n_clusters=3, max_leaves=math.inf).fit(X)
    most = quick(estimator, n_clusters=3, max_leaves=len(X)).fit(X)
    assert unlimited.tree_ == most.tree_
    assert unlimited.n_leaves_ >= 3


@pytest.mark.parametrize("estimator", with_parameter("max_leaves"), ids=name_of)
def test_no_limit_is_inf_in_a_file(estimator: Any, tmp_path: Any) -> None:
    model = quick(estimator, n_clusters=3, max_leaves=np.float32(math.inf)).fit(X)
    model.save(tmp_path / "m.json")
    assert '"max_leaves": "inf"' in (tmp_path / "m.json").read_text()
    assert tc.load(tmp_path / "m.json").max_leaves == math.inf


@pytest.mark.parametrize("estimator", with_parameter("max_leaves"), ids=name_of)
@pytest.mark.parametrize("wrong", [10**30, -math.inf, math.nan, 5.0, "inf", 0, True])
def test_max_leaves_is_named_where_it_is_wrong(estimator: Any, wrong: Any) -> None:
    with pytest.raises(ValueError, match=f"'max_leaves' parameter of {name_of(estimator)}"):
        quick(estimator, n_clusters=3, max_leaves=wrong).fit(X)


def test_kauri_without_a_limit_has_leaves_while_they_gain() -> None:
    assert tc.Kauri(3).fit(X).n_leaves_ == 3
    assert tc.Kauri().fit(X).n_clusters_ == 8
    many = tc.Kauri(3, max_leaves=math.inf).fit(X)
    assert many.n_leaves_ == 6 and many.n_clusters_ == 3


INTEGERS = [
    (estimator, parameter)
    for estimator in ESTIMATORS
    for parameter in estimator.get_params()
    # Words, booleans, data, and what scikit-learn takes True for.
    if parameter not in ("exact", "relax", "include_greedy", "verbose", "reference", "feature_mask")
]


@pytest.mark.parametrize(
    ("estimator", "parameter"),
    INTEGERS,
    ids=[f"{name_of(estimator)} {parameter}" for estimator, parameter in INTEGERS],
)
def test_true_is_no_number(estimator: Any, parameter: str) -> None:
    with pytest.raises(ValueError, match=f"'{parameter}' parameter of {name_of(estimator)}"):
        quick(estimator, **{parameter: True}).fit(X)


LIMITED = [
    (estimator, parameter)
    for estimator, parameter in INTEGERS
    if (isinstance(estimator.get_params()[parameter], int) and parameter != "degree")
    or parameter in ("n_clusters", "max_depth", "n_jobs", "random_state", "batch_size")
]


@pytest.mark.parametrize(
    ("estimator", "parameter"),
    LIMITED,
    ids=[f"{name_of(estimator)} {parameter}" for estimator, parameter in LIMITED],
)
def test_integers_beyond_64_bits_name_their_parameter(estimator: Any, parameter: str) -> None:
    with pytest.raises(ValueError, match=f"'{parameter}' parameter of {name_of(estimator)}"):
        quick(estimator, **{parameter: 10**30}).fit(X)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_model_has_the_same_numbers_and_rules(estimator: Any, tmp_path: Any) -> None:
    model = quick(estimator, n_clusters=3).fit(X)
    assert model.n_clusters_ == 3
    if isinstance(model, tc.KernelKMeans):
        model.save(tmp_path / "m.json", rows=True)
        assert tc.load(tmp_path / "m.json").n_clusters_ == 3
        return
    assert model.n_clusters_ == len(model.classes_)
    rules = model.rules()
    assert isinstance(rules, tc.tree.RuleTable)
    assert len(rules) == model.n_leaves_
    model.save(tmp_path / "m.json")
    loaded = tc.load(tmp_path / "m.json")
    for name in ("n_clusters_", "n_leaves_", "n_parameters_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert loaded.rules().equals(rules)
    if isinstance(model, tc.Douglas):
        assert model.n_parameters_ == 2 * sum(map(len, model.table_.cuts)) + model.n_leaves_
    else:
        assert model.n_parameters_ == tc.metrics.n_parameters(model)


@pytest.mark.parametrize("estimator", with_parameter("reference"), ids=name_of)
@pytest.mark.filterwarnings("ignore:.*of the rows are nearer:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("names", [[0, 1, 2], ["setosa", "versicolor", "virginica"]])
def test_models_say_what_they_explain(estimator: Any, names: list[Any], tmp_path: Any) -> None:
    labels: Any = np.array(names)[LABELS]
    weight = np.ones(len(X))
    weight[7] = 0.0
    if labels.dtype.kind == "i":
        labels[3] = -1
    model = quick(estimator, reference=labels).fit(X, sample_weight=weight)
    expected = labels.astype(object)
    expected[7] = -1
    assert model.reference_labels_.tolist() == expected.tolist()
    if hasattr(model, "truncate"):
        assert model.truncate(model.n_leaves_).reference_labels_.tolist() == expected.tolist()
    model.save(tmp_path / "m.json")
    with pytest.raises(AttributeError, match=r"no reference_labels_: .* Fit it anew"):
        _ = tc.load(tmp_path / "m.json").reference_labels_


@pytest.mark.parametrize("estimator", with_parameter("reference"), ids=name_of)
def test_without_a_reference_the_clustering_made_is_explained(estimator: Any) -> None:
    model = quick(estimator, n_clusters=3).fit(X)
    assert model.reference_labels_.shape == (len(X),)
    assert set(model.reference_labels_.tolist()) == {0, 1, 2}
    again = quick(estimator, reference=model.reference_labels_).fit(X)
    assert again.tree_.predict(X).tolist() == model.labels_.tolist()


def test_models_that_make_their_own_clusters_explain_nothing() -> None:
    for estimator in (tc.Kauri, tc.CUBT, tc.CLTree):
        assert not hasattr(estimator(3).fit(X), "reference_labels_")
    assert not hasattr(quick(tc.Douglas(3)).fit(X), "reference_labels_")
