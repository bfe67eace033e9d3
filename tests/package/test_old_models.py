"""Model files written by the first version of the schema load for good and predict the same."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

import treeclust_rs as tc

# Made on iris before the files of the package had rooms; see tests/data/README.md.
FILES = sorted((Path(__file__).resolve().parents[1] / "data" / "models").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_of_version_1_load_and_predict(path, tmp_path):
    model = tc.load(path)
    labels = [int(label) for label in path.with_suffix(".labels").read_text().strip()]
    X = load_iris().data
    assert model.predict(X).tolist() == labels
    assert len(model.explain(X[:3])) == 3
    model.save(tmp_path / "again.json")
    assert tc.load(tmp_path / "again.json").predict(X).tolist() == labels


def test_every_estimator_with_files_has_one():
    assert len({type(tc.load(path)) for path in FILES}) == 9


def test_parameters_of_version_1_have_the_names_and_values_of_today():
    models = {path.stem: tc.load(path) for path in FILES}
    assert (models["kauri"].n_clusters, models["kauri"].max_leaves) == (3, 5)
    unlimited = models["kauri_unlimited"]
    assert (unlimited.n_clusters, unlimited.max_leaves, unlimited.n_leaves_) == (3, math.inf, 6)
    X = load_iris().data
    assert clone(unlimited).fit(X).tree_ == unlimited.tree_
    for name in ("exkmc", "kernel_exkmc", "kernel_expand"):
        assert models[name].max_leaves in (5, 6)
