"""Model files against the JSON Schema in the documentation."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from every_estimator import ESTIMATORS
from mixed_trees import random_builder, random_tree
from small_models import blobs
from treeclust_rs.export import tree_to_dict

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "model.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
NEW_KEYS = ("missing_go_to_left", "below", "above", "column_kinds", "levels", "has_missing")


def file_of(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a model file around a tree."""
    header = {"format": "treeclust_rs", "schema_version": 2, "model": "ExKMC"}
    return header | {"params": {}, "fitted": {}, "tree": tree}


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_files_of_all_estimators_are_valid(name, tmp_path):
    case = ESTIMATORS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = case.make().fit(blobs(), feature_names=["a", "b", "c"])
    model.save(tmp_path / "model.json", **case.saving)
    content = json.loads((tmp_path / "model.json").read_text())
    VALIDATOR.validate(content)
    if case.has_tree:
        assert set(NEW_KEYS) <= content["tree"].keys()


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests" / "data" / "models").glob("*.json")), ids=lambda path: path.stem
)
def test_files_of_version_1_are_valid(path):
    VALIDATOR.validate(json.loads(path.read_text()))


@pytest.mark.parametrize("seed", range(30))
def test_trees_of_all_kinds_of_test_are_valid(seed):
    VALIDATOR.validate(file_of(tree_to_dict(random_tree(seed))))
    builder = random_builder(seed, kinds="ti")
    plain = {"missing_go_to_left": None, "levels": None, "column_kinds": None, "has_missing": None}
    VALIDATOR.validate(file_of(tree_to_dict(builder.tree(**plain))))


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": [6]},
        {"kind": [0.5]},
        {"children_left": [-2]},
        {"levels_codes": [255]},
        {"levels_codes": [-1]},
        {"levels": [["a", "a"]]},
        {"levels": [[1]]},
        {"column_kinds": ["text"]},
        {"missing_go_to_left": [0]},
        {"has_missing": [None]},
        {"below": ["0"]},
        {"classes": [0, "a"]},
        {"classes": []},
        {"value": [[1.5]]},
        {"colour": "red"},
    ],
)
def test_what_is_no_tree_is_not_valid(changes):
    content = tree_to_dict(random_tree(2))
    VALIDATOR.validate(file_of(content))
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(file_of(content | changes))


def test_every_key_of_a_tree_is_in_the_schema_and_in_the_documentation():
    page = (ROOT / "docs" / "model-format.md").read_text()
    known = SCHEMA["$defs"]["tree"]["properties"]
    written = {key for seed in range(10) for key in tree_to_dict(random_tree(seed))}
    assert written <= known.keys()
    assert all(key in page for key in known)
