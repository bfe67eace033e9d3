"""Tables in several files and in compressed ones."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest

import treeclust_rs as tc
from cli_tables import FIT, fitted, points
from treeclust_rs.cli import main

COLUMNS = ["--columns", "x,y", "-k", "3", "--leaves", "4", "-q"]


def test_compressed_tables_are_read_and_written(model: Path) -> None:
    text = Path("points.csv").read_bytes()
    for name, content in (
        ("t.csv.gz", text),
        ("T.CSV.GZ", b"\n\n" + text),
        ("t.tsv.gz", text.replace(b",", b"\t")),
        ("t.txt.gz", text.replace(b",", b"\t").replace(b"\n", b"\r\n")),
        ("bom.csv.gz", b"\xef\xbb\xbf" + text),
    ):
        Path(name).write_bytes(gzip.compress(content))
        assert main(["fit", name, *COLUMNS, "-o", "gz.json"]) == 0
        assert Path("gz.json").read_text() == Path("model.json").read_text()
        assert main(["predict", "model.json", name, "-o", "out.tsv.gz"]) == 0
        out = pl.read_csv("out.tsv.gz", separator="\t")
        assert out.columns == ["id", "x", "y", "segment", "cluster"]
        assert out["cluster"].to_list() == fitted().labels_.tolist()


def test_compressed_tables_in_other_encodings(folder: Path) -> None:
    text = points().rename({"x": "größe"}).write_csv()
    Path("t.csv.gz").write_bytes(gzip.compress(text.encode("latin-1")))
    fit = ["fit", "t.csv.gz", "--columns", "größe,y", "-k", "3", "-q", "-o", "t.json"]
    assert main(fit) == 4
    assert main([*fit, "--encoding", "latin-1"]) == 0
    assert tc.load("t.json").feature_names_in_.tolist() == ["größe", "y"]


def test_the_same_table_makes_the_same_compressed_file(model: Path) -> None:
    made = []
    for name in ("one.csv.gz", "two.csv.gz"):
        assert main(["predict", "model.json", "points.csv", "-o", name]) == 0
        made.append(Path(name).read_bytes())
    assert made[0] == made[1]


@pytest.mark.parametrize(
    "content", [b"x,y\n1,2\n", gzip.compress(b"x,y\n1,2\n")[:-4], b""], ids=["text", "cut", "empty"]
)
def test_files_that_are_no_whole_gzip(
    folder: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.csv.gz").write_bytes(content)
    status = main(["fit", "t.csv.gz", "-k", "1"])
    (message,) = capsys.readouterr().err.splitlines()
    if content.startswith(b"x"):
        assert (status, message) == (
            4,
            "treeclust: t.csv.gz is not compressed by gzip: name it t.csv.",
        )
    elif content:
        assert status == 4
        assert message.startswith("treeclust: t.csv.gz is not a whole gzip file: ")
    else:  # gzip reads nothing from nothing
        assert (status, message) == (3, "treeclust: t.csv.gz is empty.")


# ---- several files ------------------------------------------------------------------------------


@pytest.fixture
def parts(model: Path) -> list[str]:
    """Three files of 20 rows: text, compressed text, text with its columns in another order."""
    frame = pl.read_csv("points.csv", infer_schema=False)
    frame[:20].write_csv("part-1.csv")
    Path("part-2.csv.gz").write_bytes(gzip.compress(frame[20:40].write_csv().encode()))
    frame[40:].select("segment", "y", "id", "x").write_csv("part-3.csv")
    return ["part-1.csv", "part-2.csv.gz", "part-3.csv"]


def test_several_files_are_one_table(parts: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", *parts, *COLUMNS[:-1], "-o", "parts.json"]) == 0
    assert "part-1.csv and 2 more files: 60 rows, 2 columns." in capsys.readouterr().err
    assert Path("parts.json").read_text() == Path("model.json").read_text()
    for name in ("whole.csv", "parts.csv"):
        tables = ["points.csv"] if name == "whole.csv" else parts
        assert main(["predict", "model.json", *tables, "-o", name]) == 0
    assert Path("parts.csv").read_text() == Path("whole.csv").read_text()
    assert main(["explain", "model.json", *parts, "--rows", "19-20,59"]) == 0
    columns = points().select("x", "y")
    lines = [f"{row}  {fitted().explain(columns[[row]])[0]}" for row in (19, 20, 59)]
    assert capsys.readouterr().out.splitlines() == lines


def test_patterns_name_files_in_the_order_of_their_names(parts: list[str]) -> None:
    assert main(["predict", "model.json", "part-*", "-o", "out.csv"]) == 0
    assert pl.read_csv("out.csv")["cluster"].to_list() == fitted().labels_.tolist()
    Path("part-[1].csv").write_text("x,y\n1,2\n")  # a file of that very name comes first
    assert main(["predict", "model.json", "part-[1].csv", "-o", "out.csv"]) == 0
    assert pl.read_csv("out.csv").height == 1


def test_a_folder_is_the_tables_in_it(parts: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path("tables")
    (folder / "old.csv").mkdir(parents=True)
    for name in ("readme.md", ".part-0.csv"):
        (folder / name).write_text("neither read nor an error\n")
    assert main(["predict", "model.json", "tables"]) == 4
    message = "tables: no file in the folder is named .csv, .tsv, .txt, .csv.gz"
    assert message in capsys.readouterr().err
    for name in parts:
        Path(name).rename(folder / name)
    assert main(["predict", "model.json", "tables", "-o", "out.csv"]) == 0
    assert pl.read_csv("out.csv")["cluster"].to_list() == fitted().labels_.tolist()
    assert main(["predict", "model.json", "tab*", "-o", "again.csv"]) == 0
    assert Path("again.csv").read_bytes() == Path("out.csv").read_bytes()
    assert main(["fit", "tables", *COLUMNS[:-1], "-o", "parts.json"]) == 0
    assert f"{folder / 'part-1.csv'} and 2 more files: 60 rows" in capsys.readouterr().err
    assert Path("parts.json").read_text() == Path("model.json").read_text()

    assert main(["predict", "model.json", "tables", "-o", "tables/part-3.csv"]) == 2
    assert "part-3.csv is read too" in capsys.readouterr().err
    points().write_parquet(folder / "all.parquet")
    assert main(["predict", "model.json", "tables"]) == 2
    message = "tables has text files and Parquet: name those that are meant, as in tables"
    assert message in capsys.readouterr().err


def test_several_parquet_files(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = points()
    frame[:30].write_parquet("a.parquet")
    frame[30:].with_columns(pl.col("x").cast(pl.Float32)).write_parquet("b.parquet")
    frame[30:].with_columns(pl.lit(None).alias("segment")).write_parquet("null.parquet")
    assert main(["predict", "model.json", "a.parquet", "b.parquet", "-o", "ab.parquet"]) == 0
    assert pl.read_parquet("ab.parquet").schema["x"] == pl.Float64
    assert main(["predict", "model.json", "a.parquet", "null.parquet", "-o", "ab.parquet"]) == 0
    frame[30:].with_columns(pl.col("y").cast(pl.String)).write_parquet("text.parquet")
    assert main(["predict", "model.json", "a.parquet", "text.parquet", "-o", "no.parquet"]) == 3
    message = "column 'y' is Float64 in a.parquet, and String in text.parquet."
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        ("id,x,segment\n1,2,a\n", 3, "c.csv lacks the column 'y', which points.csv has."),
        ("id,x,y,segment,z\n1,2,3,a,4\n", 3, "c.csv has the column 'z', which points.csv lacks."),
        ("id,x,y,segment\n", 3, "c.csv: the file has no rows."),
        ("id,x,y,segment\n1,2,3,a\n2,b,3,a\n", 3, "'x' (row 1 of c.csv: 'b') (rows count"),
        ("id,x,y,segment\n1,2,inf,a\n", 3, "infinite cells: 'y' 1, the first in row 0 of c.csv"),
        ("id;x;y;segment\n1;2;3;a\n", 3, "c.csv seems to be separated by ';'"),
        (None, 4, "c.csv: no such file."),
    ],
)
def test_errors_name_the_file(
    content: str | None,
    status: int,
    message: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if content is not None:
        Path("c.csv").write_text(content)
    assert main(["fit", "points.csv", "c.csv", "--drop", "id,segment", "-k", "2"]) == status
    assert message in capsys.readouterr().err


def test_text_and_parquet_do_not_mix(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    points().write_parquet("points.parquet")
    assert main(["fit", "points.csv", "points.parquet", *FIT[2:]]) == 2
    assert "points.csv and points.parquet are of two kinds" in capsys.readouterr().err


def test_a_file_that_cannot_be_read(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    points().write_parquet("points.parquet")

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", denied)
    monkeypatch.setattr(pl, "read_parquet", denied)
    for name in ("points.csv", "points.parquet"):
        assert main(["fit", name]) == 4
        assert capsys.readouterr().err == f"treeclust: {name} cannot be read: Permission denied\n"
