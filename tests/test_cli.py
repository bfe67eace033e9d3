"""The command `treeclust`: in this process through `main(argv)`, and as a real process."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.cluster import KMeans

import treeclust_rs as tc
from treeclust_rs import cli
from treeclust_rs.cli import main
from treeclust_rs.metrics import agreement

CLUSTERS = {"low": (0.0, 0.0), "right": (8.0, 4.0), "high": (3.0, 9.0)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, holding points.csv: columns id, x, y, segment."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [
        (f"{len(CLUSTERS) * number + order:03}", *(np.round(rng.normal(center, 2.5), 3)), name)
        for number in range(20)
        for order, (name, center) in enumerate(CLUSTERS.items())
    ]
    frame = pl.DataFrame(rows, schema=["id", "x", "y", "segment"], orient="row")
    frame.write_csv("points.csv")
    return tmp_path


@pytest.fixture
def model(folder: Path) -> Path:
    assert main([*FIT, "-q"]) == 0
    return folder / "model.json"


FIT = ["fit", "points.csv", "--columns", "x,y", "-k", "3", "--leaves", "4", "-o", "model.json"]


def points() -> pl.DataFrame:
    return pl.read_csv("points.csv", schema_overrides={"id": pl.String})


def fitted() -> tc.ExKMC:
    return tc.ExKMC(3, max_leaves=4, random_state=0).fit(points().select("x", "y"))


def reference() -> np.ndarray:
    X = points().select("x", "y").to_numpy()
    return KMeans(3, n_init=10, random_state=0).fit(X).labels_


# ---- fit --------------------------------------------------------------------------------------


def test_fit_prints_the_tree_and_writes_what_was_asked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*FIT, "--plot", "tree.png", "--labels-out", "labels.csv"]) == 0

    expected = fitted()
    printed = capsys.readouterr()
    assert str(expected.tree_) in printed.out
    assert f"ratio             {expected.cost_ratio_:.4f}" in printed.out
    kept = agreement(expected.labels_, reference())
    assert f"{kept:.1%} of the rows are in their reference cluster" in printed.out
    assert "points.csv: 60 rows, 2 columns." in printed.err
    assert tc.load("model.json").tree_ == expected.tree_
    assert Path("tree.png").read_bytes().startswith(b"\x89PNG")
    assert pl.read_csv("labels.csv")["cluster"].to_list() == expected.labels_.tolist()


def test_fit_drops_columns_and_takes_other_formats(folder: Path) -> None:
    points().write_parquet("points.parquet")
    points().write_csv("points.tsv", separator="\t")
    for name in ("points.csv", "points.parquet", "points.tsv"):
        out = f"{name}.json"
        arguments = ["-k", "3", "--drop", "id,segment", "--leaves", "4", "-q", "-o", out]
        assert main(["fit", name, *arguments]) == 0
        assert tc.load(out).tree_ == fitted().tree_


def test_column_names_may_hold_commas(folder: Path) -> None:
    points().rename({"x": "x, in m"}).write_csv("points.csv")
    assert main(["fit", "points.csv", "-k", "3", "--columns", "x, in m", "-q", "-o", "m.json"]) == 0
    assert tc.load("m.json").feature_names_in_.tolist() == ["x, in m"]


def test_fit_passes_the_options_on(folder: Path) -> None:
    def tree(*options: str) -> tc.ClusterTree:
        common = ["fit", "points.csv", "--columns", "x,y", "-k", "3", "-q", "-o", "m.json"]
        assert main([*common, *options]) == 0
        return tc.load("m.json").tree_

    X = points().select("x", "y")
    assert tree("--method", "imm") == tc.IMM(3, random_state=0).fit(X).tree_
    assert tree("--base-tree", "none", "--cuts", "interval", "--leaves", "5") == (
        tc.ExKMC(3, base_tree=None, cuts="interval", max_leaves=5, random_state=0).fit(X).tree_
    )
    assert tree("--criterion", "kmedians", "--scale", "standard", "--seed", "7", "--jobs", "1") == (
        tc.ExKMC(3, criterion="kmedians", scale="standard", random_state=7).fit(X).tree_
    )


def test_fit_explains_a_given_clustering(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--reference", "segment", "--drop", "id", "-o", "m.json"]
    assert main(["fit", "points.csv", *arguments]) == 0
    assert "asked for" not in capsys.readouterr().out
    model = tc.load("m.json")
    assert model.feature_names_in_.tolist() == ["x", "y"]
    expected = tc.ExKMC(reference=points()["segment"].to_numpy()).fit(points().select("x", "y"))
    assert model.tree_ == expected.tree_
    assert model.classes_.tolist() == sorted(CLUSTERS)


def test_fit_is_quiet_when_told_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FIT, "-q"]) == 0
    assert capsys.readouterr() == ("", "")


def test_fit_tells_progress_on_stderr(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FIT, "-v"]) == 0
    assert "[ExKMC] 60 rows, 4 leaves" in capsys.readouterr().err


def test_warnings_are_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"x": [1, 1, 1, 2, 2]}).write_csv("few.csv")
    assert main(["fit", "few.csv", "-k", "3"]) == 0
    printed = capsys.readouterr()
    (warning,) = [line for line in printed.err.splitlines() if "warning" in line]
    assert warning.startswith("treeclust: warning: ")
    assert "asked for         3 clusters" in printed.out


# ---- predict, explain, plot, info -------------------------------------------------------------


def test_predict_adds_a_column_and_keeps_the_rest_as_it_was(model: Path) -> None:
    text = Path("points.csv").read_text()
    assert main(["predict", "model.json", "points.csv", "-o", "out.csv"]) == 0
    labels = fitted().labels_.tolist()
    expected = [
        f"{line},{label}" for line, label in zip(text.splitlines()[1:], labels, strict=True)
    ]
    assert Path("out.csv").read_text().splitlines() == ["id,x,y,segment,cluster", *expected]


def test_predict_writes_to_stdout(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "model.json", "points.csv", "--column", "group"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0] == "id,x,y,segment,group"
    assert len(printed.out.splitlines()) == 61
    assert printed.err == ""


def test_predict_takes_columns_by_name(model: Path) -> None:
    points().select("segment", "y", "x").write_parquet("turned.parquet")
    assert main(["predict", "model.json", "turned.parquet", "-o", "out.parquet"]) == 0
    out = pl.read_parquet("out.parquet")
    assert out.columns == ["segment", "y", "x", "cluster"]
    assert out["cluster"].to_list() == fitted().labels_.tolist()


def test_predict_replaces_a_column_only_when_told_so(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    predict = ["predict", "model.json", "points.csv", "--column", "segment", "-o", "out.csv"]
    assert main(predict) == 2
    assert "has a column 'segment' already" in capsys.readouterr().err
    assert not Path("out.csv").exists()
    assert main([*predict, "--overwrite"]) == 0
    out = pl.read_csv("out.csv")
    assert out.columns == ["id", "x", "y", "segment"]
    assert out["segment"].to_list() == fitted().labels_.tolist()


def test_predict_with_a_model_that_knows_no_names(folder: Path) -> None:
    X = points().select("x", "y").to_numpy()
    tc.ExKMC(3, random_state=0).fit(X).save("unnamed.json")
    points().select(pl.col("x").alias("a"), pl.col("y").alias("b")).write_csv("xy.csv")
    assert main(["predict", "unnamed.json", "xy.csv", "-o", "out.csv"]) == 0
    assert pl.read_csv("out.csv").columns == ["a", "b", "cluster"]
    overwritten = ["predict", "unnamed.json", "out.csv", "--overwrite", "-o", "again.csv"]
    assert main(overwritten) == 0
    assert Path("again.csv").read_text() == Path("out.csv").read_text()


def test_explain_prints_a_line_per_row(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = fitted().explain(points())
    assert main(["explain", "model.json", "points.csv"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{number:>2}  {line}" for number, line in enumerate(lines)
    ]
    assert main(["explain", "model.json", "points.csv", "--rows", "59,0-1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"59  {lines[59]}",
        f" 0  {lines[0]}",
        f" 1  {lines[1]}",
    ]


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("tree.png", b"\x89PNG"),
        ("tree.svg", b"<?xml"),
        ("tree.pdf", b"%PDF"),
        ("tree.dot", b"digraph"),
        ("TREE.PNG", b"\x89PNG"),
    ],
)
def test_plot_writes_pictures(model: Path, name: str, start: bytes) -> None:
    assert main(["plot", "model.json", "-o", name]) == 0
    assert Path(name).read_bytes().startswith(start)


def test_plot_of_fewer_leaves(model: Path) -> None:
    assert main(["plot", "model.json", "--leaves", "3", "-o", "small.dot"]) == 0
    assert Path("small.dot").read_text() == fitted().truncate(3).to_graphviz()


def test_info(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = fitted()
    assert main(["info", "model.json"]) == 0
    out = capsys.readouterr().out
    assert str(expected.tree_) in out
    assert f"ratio             {expected.cost_ratio_:.4f}" in out
    assert main(["info", "model.json", "--leaves", "3"]) == 0
    assert str(expected.truncate(3).tree_) in capsys.readouterr().out
    assert main(["info", "model.json", "--rules"]) == 0
    out = capsys.readouterr().out
    assert all(rule in out for rule in expected.tree_.rules()["rule"])


def test_demo(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "-o", "some/where"]) == 0
    out = capsys.readouterr().out
    assert "flavanoids <= 1.845" in out
    assert "96.1% of the wines are with their own" in out
    made = {path.name for path in Path("some/where").iterdir()}
    assert made == {"wine.csv", "wine.json", "wine.png"}

    before = tc.load("some/where/wine.json").tree_
    fit, predict, explain = [line.split()[1:] for line in out.splitlines()[-3:]]
    assert main(fit) == main(predict) == main(explain) == 0
    assert tc.load("some/where/wine.json").tree_ == before
    assert pl.read_csv("some/where/out.csv").width == 14


def test_demo_without_matplotlib(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "find_spec", lambda _: None)
    assert main(["demo"]) == 0
    assert "pip install treeclust_rs[plot]" in capsys.readouterr().out
    assert not Path("demo/wine.png").exists()


# ---- what can go wrong --------------------------------------------------------------------------

WRONG = {
    "no command": ([], "required: COMMAND (see treeclust --help)"),
    "unknown command": (["grow"], "invalid choice: 'grow'"),
    "no data": (["fit"], "required: DATA (see treeclust fit --help)"),
    "no number": (
        ["fit", "points.csv", "-k", "three"],
        "-k/--clusters: invalid int value: 'three'",
    ),
    "no such file": (["fit", "none.csv"], "none.csv: no such file."),
    "unknown kind of file": (["fit", "points.xlsx"], "read from a file named .csv, .tsv"),
    "empty file": (["fit", "empty.csv"], "empty.csv is empty."),
    "ragged file": (["fit", "ragged.csv"], "ragged.csv cannot be read: "),
    "no parquet": (["fit", "text.parquet"], "text.parquet cannot be read: "),
    "columns of text": (
        ["fit", "points.csv", "-k", "3", "--drop", "id"],
        "points.csv: not numbers: 'segment' (String). Leave them out with --drop segment, or "
        "choose with --columns.",
    ),
    "unknown column": (
        ["fit", "points.csv", "--drop", "id,name"],
        "points.csv has no column 'name'; its columns are 'id', 'x', 'y', 'segment'.",
    ),
    "unknown reference": (["fit", "points.csv", "--reference", "z"], "has no column 'z'"),
    "both ways to choose": (
        ["fit", "points.csv", "--columns", "x", "--drop", "y"],
        "not allowed with argument --columns",
    ),
    "nothing left": (["fit", "points.csv", "--drop", "id,x,y,segment"], "no column of points.csv"),
    "missing cells": (["fit", "holes.csv", "-k", "1"], "column 'x' has 1 null"),
    "reference with holes": (["fit", "holes.csv", "--reference", "x"], "'x' has empty cells"),
    "more clusters than rows": (["fit", "points.csv", "--columns", "x", "-k", "61"], "61"),
    "fewer leaves than clusters": ([*FIT, "--leaves", "2"], "max_leaves=2"),
    "leaves of imm": ([*FIT, "--method", "imm"], "--leaves goes with --method exkmc"),
    "cuts of imm": (
        ["fit", "points.csv", "--columns", "x", "--method", "imm", "--cuts", "interval"],
        "--cuts goes with --method exkmc",
    ),
    "model of another name": ([*FIT[:-1], "model.txt"], "model.txt: the name must end in .json."),
    "no such folder": ([*FIT[:-1], "no/model.json"], "there is no folder no."),
    "picture of another kind": ([*FIT, "--plot", "tree.gif"], "must end in .png or .svg or"),
    "no model": (["predict", "none.json", "points.csv"], "none.json: no such file."),
    "no model in it": (["info", "points.csv"], "points.csv: The model file is no valid JSON"),
    "other columns": (["predict", "model.json", "few.csv"], "X lacks 1 of the 2 columns"),
    "row out of range": (["explain", "model.json", "points.csv", "--rows", "60"], "row 60"),
    "rows that are none": (["explain", "model.json", "points.csv", "--rows", "-1"], "--rows"),
    "rows backwards": (["explain", "model.json", "points.csv", "--rows", "9-3"], "backwards"),
    "too few leaves": (["plot", "model.json", "--leaves", "2", "-o", "t.png"], "the base tree"),
    "nowhere to plot": (["plot", "model.json"], "required: -o/--output"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG.keys())
def test_errors_are_one_line_and_leave_nothing(
    model: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("empty.csv").touch()
    Path("ragged.csv").write_text("a,b\n1,2\n3,4,5\n")
    Path("text.parquet").write_text("no parquet")
    Path("holes.csv").write_text("x,y\n1,2\n,4\n")
    Path("few.csv").write_text("x,z\n1,2\n")
    Path("points.xlsx").touch()
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    assert main(arguments) == 2
    printed = capsys.readouterr()
    errors = [
        line
        for line in printed.err.splitlines()
        if not line.endswith("columns.") or message in line
    ]
    assert len(errors) == 1, printed.err
    assert errors[0].startswith("treeclust: ")
    assert message in errors[0]
    assert printed.out == ""
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


def test_pictures_need_matplotlib_before_the_work(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(cli, "find_spec", lambda name: None if name == "matplotlib" else find(name))
    assert main([*FIT, "--plot", "tree.png"]) == 2
    assert "needs matplotlib: pip install treeclust_rs[plot]" in capsys.readouterr().err
    assert not Path("model.json").exists()
    assert main([*FIT, "--plot", "tree.dot"]) == 0


def test_a_file_is_replaced_whole_or_not_at_all(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("out.csv").write_text("old")

    def half(frame: pl.DataFrame, file: Path, **_: object) -> None:
        file.write_text("half of ")
        raise OSError("No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_csv", half)
    before = sorted(Path().iterdir())
    assert main(["predict", "model.json", "points.csv", "-o", "out.csv"]) == 2
    message = "treeclust: out.csv cannot be written: No space left on device\n"
    assert capsys.readouterr().err == message
    assert Path("out.csv").read_text() == "old"
    assert sorted(Path().iterdir()) == before


def test_interrupted(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tc.ExKMC, "fit", fit)
    assert main(FIT) == 130
    assert capsys.readouterr().err.endswith("treeclust: interrupted.\n")


# ---- as a process -------------------------------------------------------------------------------


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "treeclust_rs", *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8")


@pytest.mark.parametrize("command", ["", "demo", "fit", "predict", "explain", "plot", "info"])
def test_help_shows_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"] if command else ["--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: treeclust {command}".rstrip())
    assert f"For example:\n  treeclust {command}" in out


def test_version() -> None:
    done = process("--version")
    assert (done.returncode, done.stdout) == (0, f"treeclust {tc.__version__}\n")


def test_process_writes_and_reports(folder: Path) -> None:
    done = process(*FIT)
    assert done.returncode == 0
    assert str(fitted().tree_) in done.stdout
    done = process("predict", "model.json", "none.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "treeclust: none.csv: no such file.\n"


def test_a_reader_that_stops_early_is_no_error(model: Path) -> None:
    pl.concat([points()] * 200).write_csv("many.csv")
    command = [sys.executable, "-P", "-m", "treeclust_rs", "explain", "model.json", "many.csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline().startswith(b"    0  cluster ")
        running.stdout.close()
        assert running.stderr.read() == b""
