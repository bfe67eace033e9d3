"""The programs of docs/model-format.md score rows as `predict` does, by the model file alone."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from export_cases import random_case
from oblique_models import fit, turned_blobs
from sizes import repeats
from treeclust_rs.export import tree_to_dict

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "model-format.md").read_text("utf-8")
EXAMPLE = ROOT / "rust" / "examples" / "score.rs"


def block(language: str) -> str:
    (code,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return code


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    path = tmp_path_factory.mktemp("python") / "score.py"
    path.write_text(block("python"), "utf-8")
    return [sys.executable, "-I", str(path)]


@pytest.fixture(scope="module")
def rust():
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    build = ["cargo", "build", "--locked", "--quiet", "--example", "score"]
    done = subprocess.run(
        [*build, "--message-format=json"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    messages = map(json.loads, done.stdout.splitlines())
    (path,) = (m["executable"] for m in messages if m.get("target", {}).get("name") == "score")
    return [path]


@pytest.fixture(params=["python", "rust"])
def scorer(request):
    return request.getfixturevalue(request.param)


def scores(scorer: list[str], path: Path, frame: pl.DataFrame) -> list:
    """Return what the program prints of rows in JSON: times in microseconds, null where missing."""
    columns = []
    for column in frame:
        if column.dtype.is_temporal():
            if column.dtype == pl.Date:
                column = column.cast(pl.Datetime("us"))
            column = column.to_physical()
        elif column.dtype.is_float():
            column = column.cast(pl.Float64).fill_nan(None)
        columns.append(column.to_list())
    rows = "\n".join(map(json.dumps, zip(*columns, strict=True)))
    done = subprocess.run(
        [*scorer, path], input=rows, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def written(tree, folder: Path) -> Path:
    path = folder / "model.json"
    path.write_text(json.dumps({"tree": tree_to_dict(tree)}), "utf-8")
    return path


def test_the_programs_have_some_forty_lines_and_the_rust_one_is_what_cargo_builds():
    assert block("rust") == EXAMPLE.read_text("utf-8")
    for language in ("python", "rust"):
        lines = [line for line in block(language).splitlines() if line.strip()]
        assert len(lines) <= 42, language


def test_random_models_score_as_predict_does(scorer, tmp_path):
    for seed in range(repeats(50, 1000)):
        tree, frame, labels = random_case(seed)
        keep = [label is not None for label in labels]
        if any(keep):
            found = scores(scorer, written(tree, tmp_path), frame.filter(pl.Series(keep)))
            assert found == [label for label in labels if label is not None], f"seed {seed}"


@pytest.mark.parametrize("seed", [1, 3])
def test_100_000_rows_score_as_predict_does(scorer, seed, tmp_path):
    tree, frame, labels = random_case(seed, 100_000)
    assert scores(scorer, written(tree, tmp_path), frame) == labels


def test_saved_models_score_as_they_predict(scorer, tmp_path):
    X, _ = turned_blobs()
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    rows = pl.DataFrame(np.tile(X, (250, 1)), schema=frame.columns)
    for model in (
        tc.ExKMC(4, max_leaves=4, random_state=0),  # of a base tree
        tc.ExKMC(4, max_leaves=9, random_state=0),
        tc.ObliqueTree(4, random_state=0),
    ):
        model = fit(model, frame).rename_clusters({0: "p", 1: "q", 2: "r", 3: "s"})
        model.save(tmp_path / "saved.json")
        assert scores(scorer, tmp_path / "saved.json", rows) == model.predict(rows).tolist()


def test_missing_cells_are_refused_where_the_tree_refuses_them(scorer, tmp_path):
    tree, frame, labels = random_case(2)
    row = frame.filter(pl.Series([label is None for label in labels]))[:1]
    with pytest.raises(AssertionError, match=r"missing|NoneType"):
        scores(scorer, written(tree, tmp_path), row)


def test_levels_are_texts_and_flags_alone(scorer, tmp_path):
    frame = pl.DataFrame({"c": ["null", "1", "x", None] * 5, "f": [True, None, False, True] * 5})
    model = tc.BestTree(objective="labels", reference=[0, 1, 2, 3] * 5).fit(frame)
    model.save(tmp_path / "levels.json")
    rows = [["null", None], ["1", None], [None, True], [1, True], [None, None], ["x", "true"]]
    done = subprocess.run(
        [*scorer, tmp_path / "levels.json"], input="\n".join(map(json.dumps, rows)),
        capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    known = pl.DataFrame(
        {"c": ["null", "1", None, None, None, "x"], "f": [None, None, True, True, None, True]}
    )
    assert list(map(int, done.stdout.split())) == model.predict(known).tolist()
