"""`fit` and `predict --stream`: batches of a table give what the whole table gives."""

from __future__ import annotations

import gzip
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from cli_tables import points
from processes import start
from small_models import MODELS, blobs, make, save
from treeclust_rs._util import ReadingProgress
from treeclust_rs.cli import main, predicting, text_files
from treeclust_rs.parts import batches as parts_batches


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few rows."""
    monkeypatch.setattr(text_files, "_BATCH", 100)
    monkeypatch.setattr(parts_batches, "_BATCH", 7)


def outcome(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(arguments)
    return status, *capsys.readouterr()


def check_the_same(
    arguments: list[str], capsys: pytest.CaptureFixture[str], suffix: str = ".csv", status: int = 0
) -> str:
    """Compare outputs and messages with and without --stream; return the messages."""
    whole, stream = Path(f"whole{suffix}"), Path(f"stream{suffix}")
    for path in (whole, stream):
        path.unlink(missing_ok=True)
    found = [
        outcome(["predict", *arguments, *options, "-o", str(path)], capsys)
        for path, options in ((whole, []), (stream, ["--stream"]))
    ]
    assert found[0][0] == status, found[0]
    assert found[0] == found[1]
    if status:
        assert not whole.exists()
        assert not stream.exists()
    elif suffix == ".parquet":
        assert pl.read_parquet(stream).equals(pl.read_parquet(whole))
        assert pl.read_parquet_schema(stream) == pl.read_parquet_schema(whole)
    else:
        assert stream.read_bytes() == whole.read_bytes()
    assert outcome(["predict", *arguments], capsys)[1] == (
        outcome(["predict", *arguments, "--stream"], capsys)[1] if not status else ""
    )
    return found[0][2]


def n_batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that will hold the number of rows of every batch that is labelled."""
    heights: list[int] = []
    labelled = predicting._Labelling._labelled

    def counted(self, batch, count):
        heights.append(batch.frame.height)
        return labelled(self, batch, count)

    monkeypatch.setattr(predicting._Labelling, "_labelled", counted)
    return heights


# ---- text ---------------------------------------------------------------------------------------


def odd_text() -> str:
    """points.csv with what makes text hard to cut: quoted line breaks, empty lines, quotes."""
    lines = Path("points.csv").read_text().splitlines()
    for row, segment in ((1, '"two\nlines"'), (9, '"a ""q"", é"'), (10, '"\n\n\n"'), (59, '""')):
        cells = lines[row].split(",")
        lines[row] = ",".join([*cells[:3], segment])
    far = "far\n" * 90
    lines[20] = f'007,1e1, 2.50 ,"{far}"'  # longer than a batch
    return "\n" + "\n".join(lines) + "\n\n\n"


FORMS: dict[str, tuple[str, list[str], Callable[[str], bytes]]] = {
    "plain": ("t.csv", [], str.encode),
    "windows": ("t.csv", [], lambda text: text.replace("\n", "\r\n").encode()),
    "mark of UTF-8": ("t.csv", [], lambda text: b"\xef\xbb\xbf" + text.encode()),
    "compressed": ("t.csv.gz", [], lambda text: gzip.compress(text.encode())),
    "latin-1": ("t.csv", ["--encoding", "latin-1"], lambda text: text.encode("latin-1")),
    "utf-16": ("t.csv", ["--encoding", "utf-16"], lambda text: text.encode("utf-16")),
    "tabs": ("t.tsv", [], lambda text: text.replace(",", "\t").encode()),
    "decimal comma": (
        "t.csv",
        ["--decimal-comma", "--separator", ";"],
        lambda text: text.replace(",", ";").replace(".", ",").encode(),
    ),
    "separator at the end": (
        "t.csv",
        ["--escape-formulas"],
        lambda text: re.sub(r"(?<=[a-z\"])\n(?=id|\d)|(?<=segment)\n", ",\n", text).encode(),
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz", ".parquet"])
def test_text_is_labelled_as_a_whole_table_is(
    form: str,
    suffix: str,
    model: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, options, written = FORMS[form]
    options = [] if suffix == ".parquet" and form == "separator at the end" else options
    Path(name).write_bytes(written(odd_text()))
    heights = n_batches(monkeypatch)
    assert check_the_same(["model.json", name, *options], capsys, suffix) == ""
    assert sum(heights) == 2 * 60  # to a file and to stdout
    assert len(heights) > 6


def test_tables_without_a_header(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tc.IMM(reference=np.arange(60) % 3).fit(points().select("x", "y").to_numpy()).save("m.json")
    points().select("x", "y").write_csv("t.csv", include_header=False)
    heights = n_batches(monkeypatch)
    check_the_same(["m.json", "t.csv", "--no-header"], capsys)
    assert len(heights) > 6


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_several_files_and_folders(
    suffix: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = points()
    Path("parts").mkdir()
    pieces = [frame[:20], frame[20:40].select("segment", "y", "id", "x"), frame[40:]]
    if suffix == ".parquet":
        pieces[1] = pieces[1].with_columns(pl.col("x").cast(pl.Float32), segment=None)
    for number, piece in enumerate(pieces):
        path = f"parts/{number}{suffix}"
        piece.write_csv(path) if suffix == ".csv" else piece.write_parquet(path)
    for out in (".csv", ".parquet"):
        assert check_the_same(["model.json", "parts"], capsys, out) == ""
        check_the_same(["model.json", f"parts/2{suffix}", f"parts/[01]{suffix}"], capsys, out)
    message = check_the_same(["model.json", "parts", "--column", "x"], capsys, status=3)
    assert "and 2 more files have a column 'x' already" in message
    message = check_the_same(["model.json", "parts", f"./parts/1{suffix}"], capsys)
    assert message == (
        f"treeclust: warning: ./parts/1{suffix} is named more than once: its rows count each "
        "time.\n"
    )
    check_the_same(["model.json", "parts", "--column", "segment", "--overwrite"], capsys)
    (frame[:0].write_csv if suffix == ".csv" else frame[:0].write_parquet)(f"parts/3{suffix}")
    assert check_the_same(["model.json", "parts"], capsys) == ""  # nothing came that night
    other = frame.drop("y")
    (other.write_csv if suffix == ".csv" else other.write_parquet)(f"parts/3{suffix}")
    assert "lacks the column 'y'" in check_the_same(["model.json", "parts"], capsys, status=3)


def test_numbers_without_the_unit_of_the_fit_are_told_of_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    n = range(300)
    people = pl.DataFrame({"height": [f"{5 + row % 2}'{row % 12}" for row in n]})
    people = people.with_columns(wage=pl.Series([f"€{row % 7}K" for row in n]))
    people.write_csv("t.csv")
    options = ["-k", "3", "--leaves", "9", "--scale", "standard", "--numbers", "height,wage"]
    assert main(["fit", "t.csv", *options, "-o", "m.json"]) == 0
    capsys.readouterr()
    heights = n_batches(monkeypatch)
    assert check_the_same(["m.json", "t.csv"], capsys) == ""
    assert len(heights) > 6
    # The unit is in one cell of the last batch.
    in_one = pl.Series(["66"] * 299 + ["5'6"])
    people.with_columns(height=in_one).write_csv("t.csv")
    assert check_the_same(["m.json", "t.csv"], capsys) == ""
    people.with_columns(height=pl.lit("170"), wage=pl.lit("7")).write_csv("t.csv")
    assert check_the_same(["m.json", "t.csv"], capsys) == (
        "treeclust: warning: t.csv: no cell of 'height' is written in feet and inches, as in the "
        "fit: its numbers were taken for inches.\n"
        "treeclust: warning: t.csv: no cell of 'wage' has the unit € of the fit: its numbers were "
        "taken for €.\n"
    )
    people.with_columns(wage=pl.lit("$7")).write_csv("t.csv")
    for options in ([], ["--stream"]):
        assert main(["predict", "m.json", "t.csv", *options]) == 3
        said = capsys.readouterr().err
        assert "'$7' in row 0" in said and "other cells are in €" in said


@pytest.mark.parametrize("n_before", [1, 200])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_rows_of_gaps_at_the_end_are_rows_and_empty_lines_are_none(
    name: str, n_before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"x": [1.0, 2, 8, None], "y": [0.5] * 4})
    model = tc.IMM(reference=[0, 0, 1, 1])
    with pytest.warns(UserWarning, match="25% of the rows"):  # the gap is as near to both
        model.fit(frame)
    model.save("m.json")
    of_gaps = model.predict(frame[3:])
    lines = ["x,y", *["9,1"] * n_before]
    for ends, n_more in (
        (["", ""], 0),
        ([","], 1),
        (["", ",", ",", "", ""], 3),
        (["," for _ in range(50)], 50),
        ([*["," for _ in range(20)], *[""] * 70_000], 20),
    ):
        for line_end in ("\n", "\r\n"):
            content = (line_end.join([*lines, *ends]) + line_end).encode()
            Path(name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
            told = (
                ""
                if ends[:2] != ["", ","]
                else f"line {n_before + 2} of {name} has 0 of 2 cells, the "
            )
            message = check_the_same(["m.json", name], capsys)
            assert (told in message) if told else (message == "")
            found = pl.read_csv("whole.csv")["cluster"].to_list()
            assert found == [1] * n_before + of_gaps.tolist() * n_more


GAPS = (
    "The table has gaps where the fit had none: column 'x' has 1 missing cell; column 'y' has 1 "
    "missing cell. Such rows go the way that each test of the tree has for missing cells."
)


def test_lines_with_too_few_cells_are_told(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = Path("points.csv").read_text()
    lines = text.splitlines()
    short = ",".join(lines[-1].split(",")[:3])
    cut_off = "the last line of t.csv has 3 of 4 cells, the others are taken for missing: was the "
    cut_off += "file cut off?"
    within = "line {} of t.csv has 3 of 4 cells, the others are taken for missing."
    several = "2 lines of t.csv have fewer than 4 cells, the first line {} ({}): the others are "
    several += "taken for missing."
    number = len(lines)
    quoted = '"' + lines[1].replace(",", '","') + '"'
    for written, told in (
        ([*lines[:-1], short], cut_off),
        ([*lines[:-1], short, "", ""], cut_off),
        ([lines[0], quoted, *lines[2:-1], short], cut_off),
        ([*lines[:-1], f"{short},"], ""),
        ([*lines[:-1], short, lines[-1]], within.format(number)),
        (["", "", *lines[:-1], short, lines[-1], ""], within.format(number + 2)),
        ([*lines[:-1], short, lines[-1], short], several.format(number, 3)),
        ([*lines[:3], "", short, *lines[3:], ""], several.format(4, 0)),
        ([lines[0], quoted, short, *lines[2:]], ""),  # not looked for beside quotes
        ([f"{line}," for line in [*lines[:-1], short, lines[-1]]], ""),  # an empty cell
        ([*(f"{line}," for line in lines[:-1]), lines[-1]], ""),
        ([f"{lines[0]},", *lines[1:]], ""),  # a name for nothing
        (lines, ""),
    ):
        for line_end in ("\n", "\r\n"):
            Path("t.csv").write_bytes(line_end.join(written).encode())
            found = check_the_same(["model.json", "t.csv"], capsys).splitlines()
            assert found[:1] == ([f"treeclust: warning: {told}"] if told else [])
            if "(0)" in told:
                assert found[1:] == ["treeclust: warning: " + GAPS]
            else:
                assert not found[1:]


@pytest.mark.parametrize("out", [".csv", ".parquet"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_of_a_header_alone_is_labelled(
    suffix: str, out: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = points()[:0]
    (frame.write_csv if suffix == ".csv" else frame.write_parquet)(f"t{suffix}")
    message = check_the_same(["model.json", f"t{suffix}"], capsys, out)
    assert message == f"treeclust: warning: t{suffix}: no rows to label.\n"
    read = pl.read_csv if out == ".csv" else pl.read_parquet
    assert read(f"whole{out}").shape == (0, frame.width + 1)
    for options in ([], ["--stream"]):
        assert main(["predict", "model.json", f"t{suffix}", "--drift", *options]) == 0
        assert capsys.readouterr().out == ""
    other = frame.drop("y")
    (other.write_csv if suffix == ".csv" else other.write_parquet)(f"t{suffix}")
    assert "no column 'y'" in check_the_same(["model.json", f"t{suffix}"], capsys, status=3)


# ---- every kind of column -----------------------------------------------------------------------


def people() -> pl.DataFrame:
    """Numbers with gaps, text, flags, dates, times, codes and amounts, all of them as text."""
    rng = np.random.default_rng(3)
    rows = []
    for row in range(90):
        kind = row % 3
        rows.append(
            {
                "age": f"{20 + 15 * kind + rng.integers(5)}" + (".5" if row > 60 else ""),
                "city": ("Bern", " Rom", "Oslo")[kind],
                "member": ("true", "false", "False")[kind],
                "since": f"20{10 + kind:02}-03-{1 + row % 28:02}",
                "seen": f"20{10 + kind:02}-03-01 {row % 24:02}:30",
                "shirt": f"{kind + 1}" if row % 10 else "NA",
                "wage": f"€{kind + 1}.{row % 10}K",
            }
        )
    frame = pl.DataFrame(rows)
    gaps = pl.int_range(pl.len()) % 11 == 5
    return frame.with_columns(pl.when(~gaps).then(pl.col("age", "city", "member", "since", "seen")))


COLUMNS = people().columns


def fit_column(column: str, frame: pl.DataFrame) -> str:
    """Fit a model of one column, and return its file."""
    frame.write_csv("fitted.csv")
    option = {"shirt": ["--levels", "shirt"], "wage": ["--numbers", "wage"]}.get(column, [])
    fit = ["fit", "fitted.csv", "--columns", column, *option, "-k", "3", "-q", "-o", "m.json"]
    assert main(fit) == 0
    return "m.json"


def set_cell(column: str, row: int, cell: str | None, below: str = "") -> pl.DataFrame:
    """Return the people with another cell; `below`: what cells of rows before it become."""
    frame, number = people(), pl.int_range(pl.len())
    if below:
        frame = frame.with_columns(
            pl.when(number < row).then(pl.lit(below)).otherwise(column).alias(column)
        )
    return frame.with_columns(
        pl.when(number == row).then(pl.lit(cell)).otherwise(column).alias(column)
    )


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("column", COLUMNS)
def test_columns_of_every_kind(
    column: str, suffix: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, model = f"t{suffix}", fit_column(column, people())
    # The first batches have nothing but gaps, whole numbers, or levels that the fit did not have.
    tables = [people(), set_cell(column, 80, None), set_cell(column, 40, None, "NA")]
    if column in ("city", "shirt"):
        tables += [set_cell(column, 70, "Genf", "Ulm"), set_cell(column, 89, "x7")]
    for frame in tables:
        if suffix == ".csv":
            frame.write_csv(name)
        else:
            age = pl.col("age").cast(pl.Float64, strict=False)
            times = pl.col("since").str.to_date(strict=False)
            seen = pl.col("seen").str.to_datetime("%Y-%m-%d %H:%M", strict=False)
            flag = pl.col("member").str.to_lowercase() == "true"
            frame.with_columns(
                age, times, seen, flag, pl.col("city").str.strip_chars()
            ).write_parquet(name)
        for out in (".csv", ".parquet"):
            check_the_same([model, name], capsys, out)
        check_the_same([model, name, "--drift"], capsys)
    if column in ("city", "shirt"):
        assert "did not have: column" in check_the_same([model, name], capsys)


def test_gaps_and_levels_are_counted_over_all_batches(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    complete = people().drop_nulls()
    for column, words in (("age", "has 8 missing cells"), ("city", "has 'Genf', 'Ulm'")):
        model = fit_column(column, complete)
        frame = people() if column == "age" else set_cell(column, 70, "Genf", "Ulm")
        frame.write_csv("t.csv")
        message = check_the_same([model, "t.csv"], capsys)
        assert message.count(words) == 1
        check_the_same([model, "t.csv", "--drift"], capsys)
        table = outcome(["predict", model, "t.csv", "--drift", "--stream"], capsys)
        assert table == outcome(["predict", model, "t.csv", "--drift"], capsys)
        assert column in table[1]


@pytest.mark.parametrize(
    ("column", "row", "cell", "below", "message"),
    [
        ("age", 70, "old", "", "t.csv: not numbers: 'age' (row 70: 'old'); rows count from 0."),
        ("age", 70, "true", "", "t.csv: not numbers: 'age' (row 70: 'true'); rows count from 0."),
        ("age", 40, "true", "true", "t.csv: not numbers: 'age' (row 0: 'true'); rows count from"),
        ("age", 88, "inf", "", "infinite cells: 'age' 1, the first in row 88 (rows count from"),
        ("since", 70, "May", "", "2024-12-31 23:59: 'since' (row 70: 'May'); rows count"),
        ("seen", 70, "2024-01-01", "", "2024-12-31 23:59: 'seen' (row 70: '2024-01-01'); rows"),
        ("wage", 70, "$7", "", "1 cell of 'wage' cannot be read as numbers: '$7' in row 70"),
        ("wage", 70, "-", "lots", "t.csv: 7"),
    ],
)
def test_errors_name_the_row_within_the_file(
    column: str,
    row: int,
    cell: str,
    below: str,
    message: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = fit_column(column, people())
    set_cell(column, row, cell, below).write_csv("t.csv")
    for names in (["t.csv"], ["fitted.csv", "t.csv"]):
        status, out, err = outcome(
            ["predict", model, *names, "--stream", "-o", "stream.csv"], capsys
        )
        assert (status, out) == (3, "")
        assert not Path("stream.csv").exists()
        if len(names) == 1 and not below:
            assert message in err
            whole = outcome(["predict", model, *names], capsys)[2]
            rest = err.removeprefix(whole.rstrip("\n"))
            assert re.fullmatch(r"( The rows after row \d\d were not looked at\.)?\n", rest)
        elif len(names) == 2 and not below:
            assert f"row {row} of t.csv" in err
        else:
            assert "The rows after row" in err
        assert not list(Path().glob(".*"))


def test_flags_that_are_all_numbers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = fit_column("member", people())
    people().with_columns(member=pl.lit("1")).write_csv("t.csv")
    assert "(row 0: '1')" in check_the_same([model, "t.csv"], capsys, status=3)
    set_cell("member", 80, "true", "1").write_csv("t.csv")  # one word is enough: 1 is a new level
    assert "has '1'" in check_the_same([model, "t.csv"], capsys)


def test_text_that_is_no_table_in_its_midst(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Path("points.csv").read_text().splitlines()
    for row, line in ((50, "1,2,3,4,5"), (55, '1,2,3,"4')):
        Path("t.csv").write_text("\n".join([*lines[:row], line, *lines[row:]]) + "\n")
        message = check_the_same(["model.json", "t.csv"], capsys, status=3)
        assert f"line {row + 1}" in message
    Path("t.csv").write_bytes("\n".join(lines).encode() + b"\xff\n")
    check_the_same(["model.json", "t.csv"], capsys, status=4)


# ---- every model --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_every_model(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pl.DataFrame(blobs(), schema=["a", "b", "c"])
    save(make(name).fit(frame), "m.json")
    for table in ("t.csv", "t.parquet"):
        frame.write_csv(table) if table == "t.csv" else frame.write_parquet(table)
        for out in (".csv", ".parquet"):
            assert check_the_same(["m.json", table], capsys, out) == ""


# ---- files and errors ---------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["out.csv", "out.csv.gz", "out.parquet"])
def test_an_error_or_an_interrupt_leaves_the_old_file(
    out: str, model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(out).write_text("old")
    labelled = predicting._Labelling._labelled
    for error, status in ((KeyboardInterrupt(), 130), (MemoryError("full"), 4), (ValueError(), 3)):
        calls = []

        def fails(self, batch, count, error=error, calls=calls):
            calls.append(batch)
            if len(calls) == 4:
                raise error
            return labelled(self, batch, count)

        monkeypatch.setattr(predicting._Labelling, "_labelled", fails)
        assert main(["predict", "model.json", "points.csv", "--stream", "-o", out]) == status
        assert len(calls) == 4
        assert Path(out).read_text() == "old"
        assert not list(Path().glob(".*"))


@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
def test_ctrl_c_ends_a_long_stream(out: str, model: Path) -> None:
    Path("parts").mkdir()
    for part in range(20):
        points().write_parquet(f"parts/{part}.parquet")
    code = f"""
import sys, time
from treeclust_rs.cli import main, predicting
from treeclust_rs.parts import batches
batches._BATCH = 7
labelled = predicting._Labelling._labelled
def slow(self, batch, count):
    print("batch", file=sys.stderr, flush=True)
    time.sleep(0.3)
    return labelled(self, batch, count)
predicting._Labelling._labelled = slow
sys.exit(main(["predict", "model.json", "parts", "--stream", "-o", {out!r}]))
"""
    with start(code) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "batch\n"
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, err = process.communicate(timeout=100)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "treeclust: interrupted."
    assert time.monotonic() - began < 20
    assert not Path(out).exists()
    assert not list(Path().glob(".*"))


def test_a_file_may_be_replaced_by_its_own_labels(model: Path) -> None:
    for options in ([], ["--stream"]):
        points().write_csv("t.csv")
        assert main(["predict", "model.json", "t.csv", *options, "-o", "t.csv"]) == 2
        assert main(["predict", "model.json", "t.csv", *options, "-o", "t.csv", "--force"]) == 0
        frame = pl.read_csv("t.csv")
        assert frame.columns == ["id", "x", "y", "segment", "cluster"]
        assert frame.height == 60


# ---- fit ----------------------------------------------------------------------------------------

FIT = ["--method", "exkmc", "--base-tree", "none", "-k", "3", "-q"]


@pytest.mark.parametrize(
    "options",
    [
        ["--drop", "id,segment"],
        ["--columns", "y,x", "--leaves", "7", "--scale", "standard"],
        ["--columns", "x,y", "--leaves", "inf", "--max-depth", "4", "--unit", "x=3"],
        ["--columns", "x,y", "--cuts", "interval", "--leaves", "8"],
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_fits_are_those_of_the_whole_table(suffix: str, options: list[str], folder: Path) -> None:
    # Whole numbers in the first batches alone; the columns of the files in two orders.
    number = pl.int_range(pl.len())
    frame = points().with_columns(pl.when(number < 15).then(pl.col("x").round()).otherwise("x"))
    Path("parts").mkdir()
    for part, rows in enumerate([frame[:23], frame[23:].select("y", "segment", "id", "x")]):
        path = Path(f"parts/{part}{suffix}")
        if suffix == ".parquet":
            rows.write_parquet(path)
        else:
            text = rows.write_csv().replace(".0,", ",").encode()
            path.write_bytes(gzip.compress(text) if suffix == ".csv.gz" else text)
    fit = ["fit", "parts", *FIT, *options]
    for name, stream in (("whole", []), ("stream", ["--stream"])):
        labels = ["--labels-out", f"{name}.csv", "--plot", f"{name}.dot"]
        assert main([*fit, *stream, "-o", f"{name}.json", *labels]) == 0
    for end in ("json", "csv", "dot"):
        assert Path(f"stream.{end}").read_bytes() == Path(f"whole.{end}").read_bytes()
    assert tc.load("stream.json").predict(frame).tolist() == (
        pl.read_csv("stream.csv")["cluster"].to_list()
    )
    assert main([*fit, "--stream", "--labels-out", "stream.parquet"]) == 0
    assert pl.read_parquet("stream.parquet").equals(pl.read_csv("whole.csv"))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("names", [["a", "b", "c"], [7, -1, 30]])
def test_a_fit_explains_a_column(
    suffix: str,
    names: list[object],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    frame = points().with_columns(pl.Series("group", [names[i // 7 % 3] for i in range(60)]))
    path = f"t{suffix}"
    if suffix == ".csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path)
    fit = ["fit", path, "--drop", "id,segment", *FIT[:4], "-q", "--reference", "group"]
    for name, stream in (("whole", []), ("stream", ["--stream"])):
        labels = ["--labels-out", f"{name}.csv"]
        assert main([*fit, *stream, "--leaves", "5", "-o", f"{name}.json", *labels]) == 0
    assert Path("stream.json").read_bytes() == Path("whole.json").read_bytes()
    assert Path("stream.csv").read_bytes() == Path("whole.csv").read_bytes()
    for options in (["-k", "5"], ["--leaves", "1"], ["--columns", "x"]):
        assert outcome([*fit, *options, "--stream"], capsys) == outcome([*fit, *options], capsys)
    missing = [*fit[:-1], "none"]
    assert outcome([*missing, "--stream"], capsys) == outcome(missing, capsys)


@pytest.mark.parametrize(
    "options", [["exkmc", "--leaves", "5"], ["imm"], ["imm", "--cut-score", "emn"]]
)
def test_fits_with_a_base_are_those_of_the_whole_table(options: list[str], folder: Path) -> None:
    fit = ["fit", "points.csv", "--columns", "x,y", "-k", "3", "-q", "--method", *options]
    for name, stream in (("whole", []), ("stream", ["--stream"])):
        assert main([*fit, *stream, "-o", f"{name}.json", "--labels-out", f"{name}.csv"]) == 0
    for end in ("json", "csv"):
        assert Path(f"stream.{end}").read_bytes() == Path(f"whole.{end}").read_bytes()


def test_a_fit_tells_the_size_of_the_table(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = ["fit", "points.csv", "--columns", "x,y", *FIT[:-1], "-o", "model.json"]
    assert outcome([*fit, "--stream"], capsys) == outcome(fit, capsys)
    assert outcome([*fit[:-2], "--stream"], capsys)[2].splitlines()[0] == (
        "treeclust: points.csv: 60 rows, 2 columns."
    )


@pytest.mark.parametrize(
    ("name", "readings"),
    [
        ("points.csv", ["text read", "gaps counted", "written to --cache"]),
        ("points.parquet", ["gaps counted", "written to --cache"]),
    ],
)
def test_readings_in_advance_tell_their_rows(
    name: str,
    readings: list[str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points().write_parquet("points.parquet")
    monkeypatch.setattr(ReadingProgress, "_every", 0.0)
    fit = ["fit", name, "--columns", "x,y", *FIT[:-1], "--stream", "--cache", "."]
    told = outcome([*fit, "-v"], capsys)[2].splitlines()
    lines = [re.sub(r", \d+\.\d s$", "", line) for line in told]
    for reading in readings:
        of_it = [line for line in lines if line.endswith(reading)]
        assert len(of_it) > 3
        assert all(re.fullmatch(rf"\[ExKMC\] \d+ rows so far, {reading}", x) for x in of_it[:-1])
        assert of_it[-1] == f"[ExKMC] 60 rows, {reading}"
    assert any("round 1 of questions" in line for line in lines)
    assert "[ExKMC]" not in outcome(fit, capsys)[2]


def test_a_fit_to_a_reference_warns_of_identifiers(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = ["fit", "points.csv", "--method", "exkmc", "--reference", "segment"]
    assert outcome([*fit, "--stream"], capsys) == outcome(fit, capsys)
    message = "warning: Column 'id' looks like an identifier"
    assert message in outcome([*fit, "--stream"], capsys)[2]
    assert message not in outcome([*fit, "--stream", "-q"], capsys)[2]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_fits_of_mixed_tables_are_those_of_the_whole_table(suffix: str, folder: Path) -> None:
    frame = points().with_columns(
        x=pl.when(pl.int_range(60) % 9 == 4).then(None).otherwise("x"),
        size=pl.Series([["s", "m", "l"][i // 20] if i % 7 else None for i in range(60)]),
        since=pl.date(2024, 1, 1) + pl.duration(days=pl.int_range(60) * 3),
        member=pl.int_range(60) % 5 > 2,
    )
    columns = "x,y,size,since,member"
    write = pl.DataFrame.write_csv if suffix == ".csv" else pl.DataFrame.write_parquet
    Path("parts").mkdir()
    for part, rows in enumerate([frame[:23], frame[23:]]):
        write(rows, f"parts/{part}{suffix}")
    fit = ["fit", "parts", "--columns", columns, *FIT, "--scale", "standard", "--leaves", "6"]
    for name, stream in (("whole", []), ("stream", ["--stream"])):
        labels = ["--labels-out", f"{name}.csv"]
        assert main([*fit, *stream, "-o", f"{name}.json", *labels]) == 0
    for end in ("json", "csv"):
        assert Path(f"stream.{end}").read_bytes() == Path(f"whole.{end}").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--stream goes with --method exkmc or imm: add one of these."),
        (["--method", "kauri"], "--stream goes with --method exkmc or imm: add one of these."),
    ],
)
def test_what_a_fit_in_batches_does_not_take(
    options: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = outcome(["fit", "points.csv", *options, "--stream"], capsys)
    assert (status, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("reading", [6, 7, 9])
def test_a_table_that_changes_during_the_fit(
    reading: int,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = 0
    batches = text_files.TextBatches.__iter__

    def shorter(self):
        nonlocal asked
        asked += 1
        return iter(list(batches(self))[: None if asked < reading else -1])

    monkeypatch.setattr(text_files.TextBatches, "__iter__", shorter)
    status, _, err = outcome(["fit", "points.csv", "--columns", "x,y", *FIT, "--stream"], capsys)
    assert status == 3
    assert err.startswith("treeclust: points.csv has ")
    assert "rows now and had 60" in err
