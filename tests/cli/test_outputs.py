"""Files that the command writes, and what it does not write over."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import treeclust_rs as tc
from cli_tables import FIT, fitted, points
from treeclust_rs.cli import main

PREDICT = ["predict", "model.json", "points.csv"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*PREDICT, "-o", "points.csv"], "points.csv is read too: write to another file, or"),
        ([*PREDICT, "-o", "./points.csv"], "./points.csv is the file points.csv, which is read"),
        ([*PREDICT, "-o", "symbolic.csv"], "symbolic.csv is the file points.csv, which is read"),
        ([*PREDICT, "-o", "hard.csv"], "hard.csv is the file points.csv, which is read"),
        (["predict", "model.json", "few.csv", "p*.csv", "-o", "hard.csv"], "the file points.csv"),
        (["predict", "symbolic.json", "points.csv", "-o", "model.csv"], "the file symbolic.json"),
        ([*FIT, "--labels-out", "hard.csv"], "hard.csv is the file points.csv, which is read"),
        (["plot", "model.json", "-o", "model.svg"], "model.svg is the file model.json, which"),
        (["plot", "model.json", "-o", "model.dot"], "model.dot is the file model.json, which"),
        (["rename", "model.json", "0=a", "-o", "symbolic.json"], "symbolic.json is the file model"),
        (["info", "model.json", "--rules-out", "model.csv"], "model.csv is the file model.json"),
    ],
)
def test_what_is_read_is_not_written_over(
    model: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("symbolic.csv").symlink_to("points.csv")
    Path("hard.csv").hardlink_to("points.csv")
    points()[:2].write_csv("few.csv")
    for suffix in ("csv", "svg", "dot"):
        Path(f"model.{suffix}").hardlink_to("model.json")
    Path("symbolic.json").symlink_to("model.json")
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before
    assert main([*arguments, "--force"]) == 0
    assert Path(arguments[-1]).read_bytes() != before[Path(arguments[-1]).name]


def test_stdout_gets_a_long_table_in_parts(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pl.concat([points()] * 2000).write_csv("long.csv")  # 120,000 rows
    long = ["predict", "model.json", "long.csv"]
    assert main([*long, "-o", "out.csv"]) == 0
    lengths: list[int] = []
    write = sys.stdout.write
    monkeypatch.setattr(sys.stdout, "write", lambda text: lengths.append(len(text)) or write(text))
    assert main(long) == 0
    out = Path("out.csv").read_text()
    assert capsys.readouterr().out == out
    assert max(lengths) < len(out) / 2


def test_prediction_does_not_copy_tables_into_one(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[int] = []
    predict = tc.BestTree.predict

    def watched(self: tc.BestTree, X: pl.DataFrame) -> object:
        pieces.append(X["segment"].n_chunks())
        return predict(self, X)

    monkeypatch.setattr(tc.BestTree, "predict", watched)
    points().write_csv("more.csv")
    assert main([*PREDICT, "more.csv", "-o", "out.csv"]) == 0
    assert pieces == [2]


def test_other_files_are_replaced_and_links_stay_links(model: Path) -> None:
    Path("old.csv").write_text("old")
    Path("old.csv").chmod(0o640)
    Path("link.csv").symlink_to("old.csv")
    assert main([*PREDICT, "-o", "link.csv"]) == 0
    assert Path("link.csv").is_symlink()
    assert pl.read_csv("old.csv").columns[-1] == "cluster"
    assert Path("old.csv").stat().st_mode & 0o777 == 0o640


def test_every_output_is_replaced_whole_or_not_at_all(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = ["m.json", "t.svg", "t.dot", "l.csv", "l.csv.gz", "l.parquet"]
    for name in outputs:
        Path(name).write_text("old")
    before = sorted(path.name for path in Path().iterdir())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    fit = FIT[:-2]
    for arguments in (
        [*fit, "-o", "m.json"],
        [*fit, "--plot", "t.svg"],
        [*fit, "--plot", "t.dot"],
        *([*fit, "--labels-out", name] for name in outputs[3:]),
    ):
        assert main(arguments) == 4
        said = f"treeclust: {arguments[-1]} cannot be written: No space left on device"
        assert said in capsys.readouterr().err.splitlines()
    assert sorted(path.name for path in Path().iterdir()) == before
    assert all(Path(name).read_text() == "old" for name in outputs)


def test_a_folder_that_is_read_only_is_seen_before_the_work(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(tc.BestTree, "fit", None)
    assert main([*FIT[:-1], "new.json"]) == 4
    message = "treeclust: new.json cannot be written: the folder . is read-only.\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("command", [["info", "model.json"], PREDICT])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a file that is full")
def test_a_full_disk_behind_stdout(model: Path, command: list[str]) -> None:
    arguments = [sys.executable, "-P", "-m", "treeclust_rs", *command]
    with open("/dev/full", "w") as full:
        done = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (4, "treeclust: No space left on device\n")


def test_stdout_that_is_not_unicode(model: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "treeclust_rs", "info", "model.json"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    message = "treeclust: the output is not ascii text: set PYTHONIOENCODING=utf-8.\n"
    assert (done.returncode, done.stderr) == (4, message)


def test_memory_that_runs_out(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(*_: object) -> None:
        raise MemoryError("8 GiB for the codes; try n_jobs=1")

    monkeypatch.setattr(tc.BestTree, "fit", fit)
    assert main(FIT) == 4
    said = "treeclust: not enough memory: 8 GiB for the codes; try --jobs 1"
    assert capsys.readouterr().err.splitlines()[-1] == said


# ---- cells that spreadsheets take for formulas --------------------------------------------------


def test_formulas_are_escaped_on_request(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = ["=cmd()", "+1 up", "-low", "@home", "fine = so", "-3"] * 2
    cells = ["=1+1", "-2.5", "-2,5", "@x", "\t5", "a"] * 2
    x = [number + 20 * (number % 6) for number in range(12)]
    table = pl.DataFrame({"x": x, "=note": cells, "kind": labels})
    table.write_csv("t.csv")
    fit = ["fit", "t.csv", "--columns", "x", "--reference", "kind", "-q", "-o", "t.json"]
    assert main([*fit, "--labels-out", "plain.csv"]) == 0
    assert main([*fit, "--labels-out", "safe.csv", "--escape-formulas"]) == 0
    assert pl.read_csv("plain.csv")["cluster"].to_list() == labels
    safe = ["'=cmd()", "'+1 up", "'-low", "'@home", "fine = so", "-3"] * 2
    assert pl.read_csv("safe.csv")["cluster"].to_list() == safe

    predict = ["predict", "t.json", "t.csv"]
    assert main([*predict, "-o", "plain.csv"]) == 0
    assert pl.read_csv("plain.csv").drop("cluster").equals(table)
    assert main([*predict, "--escape-formulas", "-o", "safe.csv"]) == 0
    expected = pl.DataFrame(
        {
            "x": x,
            "'=note": ["'=1+1", "-2.5", "-2,5", "'@x", "'\t5", "a"] * 2,
            "kind": safe,
            "cluster": safe,
        }
    )
    assert pl.read_csv("safe.csv").equals(expected)
    table.with_columns(pl.col("kind").cast(pl.Categorical)).write_parquet("t.parquet")
    again = ["predict", "t.json", "t.parquet", "--escape-formulas", "-o", "again.csv"]
    assert main(again) == 0
    assert Path("again.csv").read_text() == Path("safe.csv").read_text()
    assert main([*predict, "--escape-formulas"]) == 0
    assert capsys.readouterr().out == Path("safe.csv").read_text()


# ---- costs by number of leaves ------------------------------------------------------------------


def path_printed(capsys: pytest.CaptureFixture[str]) -> tuple[str, list[list[str]]]:
    title, *lines = capsys.readouterr().out.rpartition("\n\n")[2].splitlines()
    return title.strip(), [line.split() for line in lines]


def test_info_prints_costs_by_number_of_leaves(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", "model.json"]) == 0
    expected = fitted()
    rows = [
        [str(n_leaves), f"{cost:,.6g}", f"{cost / expected.reference_inertia_:.4f}"]
        for n_leaves, _, cost in expected.cost_path_.iter_rows()
    ]
    title = "cost by number of leaves"
    assert path_printed(capsys) == (title, [["leaves", "cost", "ratio"], *rows])

    assert main(["info", "model.json", "--leaves", "1"]) == 0
    assert "by number of leaves" not in capsys.readouterr().out


def test_info_prints_some_lines_of_a_long_path(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grown = tc.ExKMC(15, max_leaves=30, base_tree=None, random_state=0).fit(
        points().select("x", "y")
    )
    grown.save("grown.json")
    assert grown.cost_path_.height > 12
    assert main(["info", "grown.json"]) == 0
    _, (_, *lines) = path_printed(capsys)
    n_leaves = [int(line[0]) for line in lines]
    assert len(lines) == 12
    assert n_leaves == sorted(set(n_leaves))
    assert (n_leaves[0], n_leaves[-1]) == (1, grown.n_leaves_)


def test_n_init_and_max_iter_reach_the_estimator(folder: Path) -> None:
    for method, estimator in (("oblique", tc.ObliqueTree), ("douglas", tc.Douglas)):
        options = ["--method", method, "--n-init", "2", "--max-iter", "3", "-q", "-o", "m.json"]
        assert main(["fit", "points.csv", "--columns", "x,y", "-k", "3", *options]) == 0
        saved = tc.load("m.json")
        assert isinstance(saved, estimator)
        assert (saved.n_init, saved.max_iter) == (2, 3)


def test_export_writes_the_tree_in_other_forms(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = ["export", "model.json", "points.csv", "--to", "html", "--title", "<Points>"]
    assert main([*page, "-o", "tree.html"]) == 0
    text = Path("tree.html").read_text(encoding="utf-8")
    assert "<h1>&lt;Points&gt;</h1>" in text and '"bars"' in text
    assert main(["export", "model.json", "--to", "html", "--leaves", "3", "-o", "small.htm"]) == 0
    assert "3 leaves" in Path("small.htm").read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["export", "model.json", "--to", "sql", "--table", "t"]) == 0
    assert capsys.readouterr().out == fitted().to_sql(table="t") + "\n"
    assert main(["export", "model.json", "--to", "sql", "--table", "t", "--name", "own"]) == 0
    assert capsys.readouterr().out == fitted().to_sql(table="t", name="own") + "\n"
    assert main(["export", "model.json", "--to", "json", "-o", "again.json"]) == 0
    assert Path("again.json").read_text("utf-8") == Path("model.json").read_text("utf-8")
    assert main(["export", "model.json", "--to", "json", "--leaves", "3"]) == 0
    assert capsys.readouterr().out == tc.load("model.json").truncate(3).to_json()
    assert main(["export", "model.json", "--to", "polars", "-o", "cluster.py"]) == 0
    module = runpy.run_path("cluster.py")
    rows = pl.read_csv("points.csv")
    found = rows.select(module["cluster"]).to_series().to_list()
    assert found == tc.load("model.json").predict(rows).tolist()
    assert main(["export", "model.json", "--to", "dot", "-o", "tree.dot"]) == 0
    assert Path("tree.dot").read_text(encoding="utf-8") == fitted().to_graphviz()
    assert main(["export", "model.json", "--to", "rules", "-o", "rules.csv"]) == 0
    assert pl.read_csv("rules.csv")["rule"].to_list() == fitted().rules()["rule"].to_list()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "html"], "--to html needs a file: -o tree.html."),
        (["--to", "html", "-o", "tree.png"], "tree.png: the name must end in .html or .htm"),
        (["points.csv", "--to", "sql"], "DATA is for --to html."),
        (["--to", "html", "--table", "t", "-o", "tree.html"], "--table is for --to sql."),
        (["--to", "html", "--name", "t", "-o", "tree.html"], "--name is for --to sql."),
    ],
)
def test_export_says_what_it_cannot_write(
    model: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "model.json", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_export_of_a_model_without_a_tree(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X = points().select("x", "y")
    tc.Douglas(2, max_iter=1, n_init=1, random_state=0).fit(X).save("douglas.json")
    assert main(["export", "douglas.json", "--to", "png", "-o", "tree.png"]) == 2
    assert "--to png: a model of douglas has no tree" in capsys.readouterr().err
    assert main(["export", "douglas.json", "points.csv", "--to", "html", "-o", "tree.html"]) == 0
    for form in ("sql", "polars", "json"):
        assert main(["export", "douglas.json", "--to", form]) == 0
