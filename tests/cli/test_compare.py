"""The command `treeclust compare`."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import treeclust_rs as tc
from cli_tables import points
from treeclust_rs.cli import main

COMPARE = ["compare", "points.csv", "--drop", "id", "--labels", "segment", "-k", "3"]
QUICK = ["--methods", "imm,exkmc", "--leaves", "3,4"]


def table_of(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop("seconds")


def test_it_is_compare_in_python(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMPARE, "-o", "found.parquet", "--plot", "costs.png"]) == 0
    found = tc.compare(
        points().select("x", "y"), n_clusters=3, labels=points()["segment"], random_state=0
    )
    table = pl.read_parquet("found.parquet")
    assert_frame_equal(table_of(table).drop("method"), table_of(found.table).drop("method"))
    names = table["method"].unique(maintain_order=True).to_list()
    assert names[:4] == ["best", "imm", "ex-greedy", "ex-shallow"]
    assert "exkmc --base-tree none" in names
    assert Path("costs.png").read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr()
    head, *_ = (line for line in printed.out.splitlines() if "method" in line)
    assert [name.strip(" │") for name in head.split("┆")] == table.columns
    assert all(f"│ {name} " in printed.out for name in names)
    assert "points.csv: 60 rows, 2 columns." in printed.err
    assert "table written to found.parquet" in printed.err


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "json", "csv.gz"])
def test_kinds_of_tables(folder: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"found.{suffix}"
    assert main([*COMPARE, *QUICK, "-q", "-o", name]) == 0
    assert capsys.readouterr() == ("", "")
    if suffix == "json":
        rows = json.loads(Path(name).read_text())
        found = [(row["method"], row["max_leaves"]) for row in rows]
    else:
        separator = "\t" if suffix == "tsv" else ","
        is_parquet = suffix == "parquet"
        table = pl.read_parquet(name) if is_parquet else pl.read_csv(name, separator=separator)
        found = table.select("method", "max_leaves").rows()
    assert found == [("imm", None), ("exkmc", 3), ("exkmc", 4)]


def test_reference_scale_seed_and_processes(folder: Path) -> None:
    options = ["--scale", "standard", "--seed", "7", "--jobs", "2"]
    arguments = ["compare", "points.csv", "--columns", "x,y", "--reference", "segment", *QUICK]
    assert main([*arguments, *options, "-q", "-o", "found.parquet"]) == 0
    found = tc.compare(
        points().select("x", "y"),
        {"imm": tc.IMM(), "exkmc": tc.ExKMC()},
        max_leaves=[3, 4],
        reference=points()["segment"].to_numpy(),
        scale="standard",
        random_state=7,
    )
    assert_frame_equal(table_of(pl.read_parquet("found.parquet")), table_of(found.table))


def test_models_are_rows(model: Path) -> None:
    models = ["--model", "model.json", "--methods", "imm"]
    assert main([*COMPARE, *models, "-q", "-o", "found.csv"]) == 0
    table = pl.read_csv("found.csv")
    assert table["method"].to_list() == ["imm", "model.json"]
    fitted = tc.load("model.json")
    assert table["leaves"][1] == fitted.n_leaves_
    assert table["seconds"][1] is None


def test_include_greedy(folder: Path) -> None:
    random = ["--methods", "random-cuts,ex-greedy"]
    for options in ([], ["--include-greedy"]):
        assert main([*COMPARE, *random, *options, "-q", "-o", "found.csv"]) == 0
        cost, greedy = pl.read_csv("found.csv")["cost_ratio"]
    assert cost <= greedy
    fit = ["fit", "points.csv", "--columns", "x,y", "-k", "3", "-q", "-o", "m.json"]
    assert main([*fit, "--method", "random-cuts", "--include-greedy"]) == 0
    assert tc.load("m.json").include_greedy is True


def test_all_kinds_of_methods(folder: Path) -> None:
    names = ["voronoi", "oblique", "kernel-imm", "kernel-exkmc", "kernel-expand", "douglas"]
    arguments = ["--methods", ", ".join(names), "--leaves", "4", "-q", "-o", "found.csv"]
    assert main([*COMPARE, *arguments]) == 0
    assert pl.read_csv("found.csv")["method"].to_list() == names


def test_progress(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMPARE, *QUICK, "-v"]) == 0
    assert "[compare] #" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([*COMPARE, "--leaves", "2,4"], 2, "--leaves 2 is less than -k 3"),
        ([*COMPARE[:-2], "--leaves", "4"], 2, "--leaves 4 is less than the 8 clusters that are"),
        ([*COMPARE, "--leaves", "3,x"], 2, "argument --leaves: must be a whole number"),
        ([*COMPARE, "--leaves", "3,"], 2, "argument --leaves: must be a whole number"),
        ([*COMPARE, "--methods", "imm,bst"], 2, "--methods: there is no 'bst'; best, exkmc"),
        ([*COMPARE, "--methods", ""], 2, "--methods: there is no ''"),
        (
            [*COMPARE, "--methods", "imm", "--include-greedy"],
            2,
            "--include-greedy goes with random",
        ),
        ([*COMPARE, "-o", "found.xlsx"], 2, "the name must end in .csv, .tsv"),
        ([*COMPARE, "-o", "points.csv"], 2, "points.csv is read too"),
        ([*COMPARE, "--plot", "costs.dot"], 2, "the name must end in .png, .svg or .pdf."),
        ([*COMPARE, "--criterion", "kmedians"], 2, "unrecognized arguments: --criterion"),
        ([*COMPARE, "--jobs", "0"], 2, "argument --jobs"),
        ([*COMPARE[:-1], "99"], 3, "-k 99 is more than the 60 rows of points.csv"),
        (["compare", "points.csv", "--labels", "truth"], 3, "points.csv has no column 'truth'"),
        (["compare", "points.csv", "--labels", "x"], 3, "the column 'x' names no clusters"),
        (
            ["compare", "points.csv", "-k", "3", "--methods", "imm,cubt"],
            3,
            "points.csv: not numbers: 'segment' (row 0: 'low'); rows count from 0. Leave columns "
            "out: add --drop segment. Or take cubt out of --methods.",
        ),
        (
            [*COMPARE, "--reference", "segment", "-k", "4"],
            3,
            "-k 4, but the column 'segment' has 3",
        ),
        (
            ["compare", "points.csv", "--columns", "segment", "--labels", "segment"],
            3,
            "no column of points.csv, besides the labels, is left",
        ),
        ([*COMPARE, "--model", "none.json"], 4, "none.json: no such file."),
        (["compare", "none.csv"], 4, "none.csv"),
        ([*COMPARE, "-o", "nowhere/found.csv"], 4, "there is no folder nowhere."),
    ],
)
def test_what_is_refused(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    message: str,
) -> None:
    assert main(arguments) == status
    printed = capsys.readouterr()
    *_, last = printed.err.splitlines()
    assert message in last
    assert last.startswith("treeclust: ")
    assert printed.out == ""
    assert sorted(path.name for path in folder.iterdir()) == ["points.csv"]


def test_models_of_other_columns(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", "points.csv", "--columns", "x", "-k", "2", "--model", "model.json"]
    assert main(arguments) == 3
    assert "model.json looks at 'y', which is not among the columns" in capsys.readouterr().err


def test_labels_are_no_feature(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--columns", "x,y,segment", "--labels", "segment", "-k", "3", *QUICK]
    assert main(["compare", "points.csv", *arguments]) == 0
    told = capsys.readouterr().err
    assert "the column 'segment' holds the labels, and so no feature." in told


def test_pictures_need_matplotlib_before_the_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("treeclust_rs.cli.output.find_spec", lambda _: None)
    assert main([*COMPARE, "--plot", "costs.png"]) == 2
    told = capsys.readouterr().err
    assert told == "treeclust: costs.png needs matplotlib: pip install treeclust_rs[plot].\n"
