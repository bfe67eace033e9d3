"""Model files written by the first version of the schema load for good and predict the same."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

import treeclust_rs as tc
from treeclust_rs.tree import ClusterTree

# Made on iris before the files of the package had rooms; see tests/data/README.md.
FILES = sorted((Path(__file__).resolve().parents[1] / "data" / "models").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_of_version_1_load_and_predict(path, tmp_path):
    model = tc.load(path)
    labels = [int(label) for label in path.with_suffix(".labels").read_text().strip()]
    X = load_iris().data
    assert model.predict(X).tolist() == labels
    assert len(model.explain(X[:3])) == 3
    if hasattr(model, "tree_"):  # which says nothing of missing cells: they are refused
        tree, row = model.tree_, X[:1].copy()
        assert (tree.missing_go_to_left, tree.levels, tree.below) == (None, None, None)
        row[0, tree.tested_features[0]] = math.nan
        with pytest.raises(ValueError, match="NaN"):
            tree.apply(row)
    model.save(tmp_path / "again.json")
    assert tc.load(tmp_path / "again.json").predict(X).tolist() == labels


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_costs_of_version_1_keep_their_meaning(path, tmp_path):
    model, old = tc.load(path), json.loads(path.read_text())["fitted"]
    kernel = {"_kernel_cost": "_inertia", "_reference_kernel_cost": "_reference_inertia"}
    if type(model) is tc.Kauri:
        kernel = {"_kernel_cost": "inertia_"}
    is_kernel = isinstance(model, tc.Kauri) or type(model).__name__.startswith("Kernel")
    names = kernel if is_kernel else {name: name for name in ("inertia_", "reference_inertia_")}
    for name, old_name in names.items():
        if old_name in old:
            assert getattr(model, name) == old[old_name]
    if is_kernel and old.keys() & set(kernel.values()):
        assert model.kernel_cost_ == old[kernel["_kernel_cost"]]
        if model.kernel != "linear":
            with pytest.raises(AttributeError, match=r"no inertia_.*Fit it anew"):
                _ = model.inertia_
    if hasattr(model, "cost_path_"):
        smaller = model.cost_path_["inertia"][:-1]
        assert smaller.null_count() == len(smaller)
    model.save(tmp_path / "again.json")
    again = json.loads((tmp_path / "again.json").read_text())
    assert again["schema_version"] == 2
    for name, old_name in names.items():
        assert again["fitted"].get(name) == old.get(old_name)


def test_every_estimator_with_files_has_one():
    assert len({type(tc.load(path)) for path in FILES}) == 9


def test_parameters_of_version_1_have_the_names_and_values_of_today():
    models = {path.stem: tc.load(path) for path in FILES}
    assert (models["kauri"].n_clusters, models["kauri"].max_leaves) == (3, 5)
    unlimited = models["kauri_unlimited"]
    assert (unlimited.n_clusters, unlimited.max_leaves, unlimited.n_leaves_) == (3, math.inf, 6)
    X = load_iris().data
    again = clone(unlimited).fit(X).tree_
    assert unlimited.tree_.missing_go_to_left is None and again.missing_go_to_left is not None
    unknown = dict.fromkeys(("missing_go_to_left", "below", "above"))
    assert ClusterTree(**again.arguments() | unknown) == unlimited.tree_
    for name in ("exkmc", "kernel_exkmc", "kernel_expand"):
        assert models[name].max_leaves in (5, 6)
