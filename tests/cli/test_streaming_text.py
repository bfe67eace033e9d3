"""`fit --stream` of text files: columns are what they are in the whole table."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from treeclust_rs.cli import main, text_facts, text_files
from treeclust_rs.cli.text_facts import Different, LevelFacts, most_different
from treeclust_rs.datasets import make_customers
from treeclust_rs.parts import batches as parts_batches

FIT = ["--method", "exkmc", "-k", "3", "--leaves", "6", "--scale", "standard"]


@pytest.fixture(autouse=True)
def small_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Batches of a few rows, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(text_files, "_BATCH", 200)
    monkeypatch.setattr(parts_batches, "_BATCH", 7)

    def both(arguments: Sequence[str], status: int = 0) -> tuple[int, str]:
        """Fit with and without --stream, compare all, and return status and messages."""
        found = []
        for options in ([], ["--stream"]):
            for path in (Path("m.json"), Path("labels.csv")):
                path.unlink(missing_ok=True)
            capsys.readouterr()
            files = ["-o", "m.json", "--labels-out", "labels.csv"]
            code = main(["fit", *arguments, *options, *files])
            written = [
                path.read_bytes() if path.exists() else None
                for path in (Path("m.json"), Path("labels.csv"))
            ]
            found.append((code, *capsys.readouterr(), *written))
        assert found[0] == found[1]
        assert found[0][0] == status, found[0]
        return found[0][0], found[0][2]

    return both


Both = Callable[..., tuple[int, str]]


def write(columns: dict[str, Sequence[object]], name: str = "t.csv") -> None:
    """Write columns of text as they are."""
    frame = pl.DataFrame({name: list(map(_text, cells)) for name, cells in columns.items()})
    frame.write_csv(name)


def _text(cell: object) -> str | None:
    return None if cell is None else str(cell)


@pytest.mark.parametrize("method", ["exkmc", "imm"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_customers_in_three_files(
    method: str, suffix: str, small_batches: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "_BATCH", 5_000)
    monkeypatch.setattr(parts_batches, "_BATCH", 50)
    customers = make_customers(300)
    Path("parts").mkdir()
    for part in range(3):
        rows, path = customers[part * 90 : part * 90 + 90 + 30 * (part == 2)], f"parts/{part}"
        if suffix == ".parquet":
            rows.write_parquet(path + suffix)
        else:
            text = rows.write_csv().encode()
            Path(path + suffix).write_bytes(gzip.compress(text) if suffix == ".csv.gz" else text)
    options = ["-k", "3", "--scale", "standard", "--drop", "customer_id"]
    _, said = small_batches(["parts", "--method", method, *options])
    assert "parts/0" in said.replace("\\", "/")
    assert "1 of true and false (newsletter), 1 of dates (signup), 1 of times (last_order)" in said
    _, said = small_batches(["parts", "--method", method, *options[:-2]])
    assert "'customer_id' looks like an identifier" in said


def test_a_column_of_numbers_in_one_file_and_text_in_another(small_batches: Both) -> None:
    for name, codes in (("a.csv", "1234"), ("b.csv", "12cd")):
        write({"x": range(40), "code": [codes[row % 4] for row in range(40)]}, name)
    small_batches(["a.csv", "b.csv", *FIT])
    assert tc.load("m.json").tree_.levels[1] == ("1", "2", "3", "4", "c", "d")
    write({"x": range(40)}, "b.csv")
    _, said = small_batches(["a.csv", "b.csv", *FIT], 3)
    assert said == "treeclust: b.csv lacks the column 'code', which a.csv has.\n"


def times(form: str, n: int = 80) -> list[str]:
    start = datetime(2024, 1, 1)
    return [(start + timedelta(days=7 * row, minutes=row)).strftime(form) for row in range(n)]


COLUMNS: dict[str, list[object]] = {
    "integers": [*range(79), None],
    "numbers": [*range(60), *(row + 0.5 for row in range(20))],
    "numbers of spaces": [f" {row} " for row in range(80)],
    "large numbers": [2**53 + row for row in range(80)],
    "gaps": [[None, "NA", "", "nan", 7][row % 5] for row in range(80)],
    "a gap of words": [*["NA"] * 70, *"abcdefghij"],
    "flags": ["true", "FALSE", "", "NA"] * 20,
    "flags after gaps": [*[None] * 70, *["true", "false"] * 5],
    "dates": times("%Y-%m-%d"),
    "times": times("%Y-%m-%d %H:%M"),
    "times of seconds": [*times("%Y-%m-%dT%H:%M:%S.25", 79), "NA"],
    "offsets": [f"{time}+01:00" for time in times("%Y-%m-%d %H:%M:%S")],
    "levels": ["a", " a", "b ", None, " "] * 16,
    "dates of days": ["31/12/2024", "1/2/2024"] * 40,
    "amounts": [f"€{row % 7}.5K" for row in range(80)],
    "many amounts": [f"{row}kg" for row in range(80)],
    "commas": [f"{row},5kg" for row in range(80)],
    "empty": [None] * 80,
    "far": [1e150 * (1 + row) for row in range(80)],
    "shifted": [1e8 + row / 4 for row in range(80)],
}


@pytest.mark.parametrize("column", COLUMNS)
def test_every_kind_of_column(column: str, small_batches: Both) -> None:
    write({"v": COLUMNS[column], "w": [row % 5 for row in range(80)]})
    small_batches(["t.csv", *FIT, "--levels", "v"])
    write({"v": [None, *COLUMNS[column]], "w": ["NA", *range(80)]})
    _, said = small_batches(["t.csv", *FIT])
    assert "1 row of gaps alone is left out" in said


@pytest.mark.parametrize(
    ("cells", "options", "message"),
    [
        ([*map(str, range(300)), "?"], [], "To go on, add --numbers v."),
        ([*range(99), "high"], [], "numbers or times but for some cells: 'v' (row 99: 'high')"),
        (["high", *range(99)], [], "numbers or times but for some cells: 'v' (row 0: 'high')"),
        ([*times("%Y-%m-%d"), "0000-00-00"], [], "for some cells: 'v' (row 80: '0000-00-00')"),
        ([*times("%Y-%m-%d"), "2024-01-01 10:00"], [], "'v' (row 80: '2024-01-01 10:00')"),
        (times("%d.%m.%Y", 300), [], "dates in another form than 2024-12-31: 'v' (row 0: '01.01"),
        ([f"{n // 1000},{n % 1000:03}" for n in range(300)], [], "or --decimal-comma if that is"),
        ([f"{n},5" for n in range(300)], [], "numbers with decimal commas: 'v' (row 0: '0,5')"),
        ([f"id {n}" for n in range(300)], [], "'v' (300 levels, such as 'id 0')"),
        ([f"id {n}" for n in range(300)], ["--levels", "v"], "'v' (300 levels). Take v out of"),
        (range(300), ["--levels", "v"], "'v' (300 levels). Take v out of --levels."),
        ([*range(99), "inf"], [], "t.csv has infinite cells: 'v' 1, the first in row 99 (rows"),
        (["inf", *range(99), "-inf"], [], "infinite cells: 'v' 2, the first in row 0 (rows count"),
        (
            ["€1", "$2", "€3", "x", "$1"] + ["$7"] * 9,
            ["--numbers", "v"],
            "3 cells of 'v' cannot be read as numbers: '€1' in row 0, '€3' in row 2, 'x' in row 3 "
            "(rows count from 0); other cells are in $. Mend or empty these cells, or take v out",
        ),
        (
            [*range(90), *["odd"] * 7],
            ["--numbers", "v"],
            "7 cells of 'v' cannot be read as numbers: 'odd' in row 90",
        ),
        (["1e999", *range(80)], ["--numbers", "v"], "infinite cells: 'v' 1, the first in row 0"),
        (range(80), ["--numbers", "u"], "has no column 'u'"),
        (range(80), ["--drop", "v", "--levels", "v"], "--levels: 'v' is not among the columns"),
        (range(80), ["-k", "90"], "-k 90 is more than the 80 rows of t.csv."),
    ],
)
def test_errors_are_those_of_the_whole_table(
    cells: Sequence[object], options: list[str], message: str, small_batches: Both
) -> None:
    write({"v": cells, "w": [row % 7 for row in range(len(cells))]})
    fit = [option for option in FIT if "-k" not in options or option not in ("-k", "3")]
    fit = [*fit, "--leaves", "inf"] if "-k" in options else fit
    assert message in small_batches(["t.csv", *fit, *options], 3)[1]
    if "row" in message and "-k" not in options:
        write({"v": [5, 6], "w": [7, 8]}, "first.csv")
        assert " of " in small_batches(["first.csv", "t.csv", *fit, *options], 3)[1]


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (["1"] * 40 + ["2", "a"] * 20, [], ""),
        (["1", "2.0"] * 40, [], ""),
        (["1", "-1"] * 40, [], ""),
        (["a", "b", "-1", "b"] * 20, ["-k", "2"], ""),
        ([" a", "b "] * 40, [], ""),
        (["NA", "b"] * 40, [], ""),
        (["1", "2.5"] * 40, [], "the column 'of' names no clusters"),
        (["1", "NA", None, "2"] * 20, [], "the column 'of' has 40 empty cells, the first in row 1"),
        (["a", "NA", None, "b"] * 20, [], "the column 'of' has 20 empty cells, the first in row 2"),
        (["1", "2"] * 40, ["-k", "3"], "-k 3, but the column 'of' has 2 clusters."),
        (["1", "2", "1.0", "-1"] * 20, ["-k", "3"], "but the column 'of' has 2 clusters."),
        (["a", "b"] * 40, ["--leaves", "1"], "--leaves 1 is less than the 2 clusters of the"),
    ],
)
def test_labels_are_those_of_the_whole_table(
    labels: Sequence[object], options: list[str], message: str, small_batches: Both
) -> None:
    write({"v": [row % 11 for row in range(80)], "w": ["x", "y"] * 40, "of": labels})
    fit = ["t.csv", "--method", "exkmc", "--reference", "of", *options]
    assert message in small_batches(fit, 3 if message else 0)[1]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 2], ""),
        ([1.0, -1.0], ""),
        ([1.0, 2.5], "names no clusters"),
        (["a", None], "has 40 empty cells, the first in row 1"),
        ([1, None], "has 40 empty cells, the first in row 1"),
    ],
)
def test_labels_of_parquet(labels: list[object], message: str, small_batches: Both) -> None:
    frame = pl.DataFrame({"v": range(80), "of": labels * 40})
    frame.write_parquet("t.parquet")
    fit = ["t.parquet", "--method", "exkmc", "--reference", "of"]
    assert message in small_batches(fit, 3 if message else 0)[1]


@pytest.mark.parametrize(
    ("cells", "options", "message"),
    [
        ([f"id {n}" for n in range(300)], [], "'v' (300 levels, such as 'id 0')"),
        ([f"€{n}K" for n in range(300)], [], "To go on, add --numbers v."),
        ([f"€{n}K" for n in range(300)], ["--numbers", "v"], ""),
        (times("%Y-%m-%d", 300), [], "dates or times that the file holds as text: 'v' (row 0: "),
        ([f"€{n % 30}K" for n in range(90)], [], ""),
        ([n % 3 for n in range(90)], ["--levels", "v"], ""),
        ([7.0, None, 2.5] * 30, ["--levels", "v"], ""),
        ([1.0, float("inf"), 3.0] * 30, [], "infinite cells: 'v' 30, the first in row 1"),
        ([True, False, None] * 30, ["--numbers", "v"], ""),
        ([date(2024, 1, 1)] * 90, ["--numbers", "v"], "--numbers is for text, and 'v' is Date"),
        ([float("nan"), 1.0, None] * 30, [], ""),
    ],
)
def test_columns_of_parquet(
    cells: list[object], options: list[str], message: str, small_batches: Both
) -> None:
    frame = pl.DataFrame({"v": cells, "w": [row % 7 for row in range(len(cells))], "*": "x"})
    frame.write_parquet("t.parquet")
    for fit in (["--drop", "*"], ["--columns", "w,v"]):
        said = small_batches(["t.parquet", *FIT, *fit, *options], 3 if message else 0)[1]
        assert message in said


def test_what_was_chosen_is_in_the_model(small_batches: Both) -> None:
    write(
        {
            "wage": [f"€{row % 9}.5K" for row in range(90)],
            "rating": [f"{60 + row % 13}+2" for row in range(90)],
            "shirt": [["7", "7.0", "NA"][row % 3] for row in range(90)],
        }
    )
    options = ["--numbers", "wage,rating", "--levels", "shirt"]
    _, said = small_batches(["t.csv", *FIT, *options])
    assert "numbers in text: wage without €; rating.\n" in said
    assert "sums were added up, such as 88+2 to 90: rating.\n" in said
    content = json.loads(Path("m.json").read_text())
    assert content["read_as"] == {"numbers": {"wage": "€", "rating": ""}, "levels": ["shirt"]}
    assert main(["predict", "m.json", "t.csv", "--stream", "-o", "out.csv"]) == 0
    assert (
        pl.read_csv("out.csv")["cluster"].to_list()
        == pl.read_csv("labels.csv")["cluster"].to_list()
    )


@pytest.mark.parametrize("options", [["--decimal-comma", "--separator", ";"], ["--no-header"]])
def test_text_in_other_forms(options: list[str], small_batches: Both) -> None:
    rows = [(f"{row}.5", f"€{row}.5M", "a b"[:: 1 + row % 2], f"x{row % 3}") for row in range(90)]
    frame = pl.DataFrame(rows, schema=["a", "b", "c", "d"], orient="row")
    text = frame.write_csv(include_header="--no-header" not in options)
    if "--decimal-comma" in options:
        text = text.replace(",", ";").replace(".", ",")
    Path("t.csv").write_text(text)
    name = "b" if "--decimal-comma" in options else "x1"
    small_batches(["t.csv", *FIT, *options, "--numbers", name])


def test_a_file_in_a_folder_is_read_in_place_of_the_table(
    small_batches: Both, capsys: pytest.CaptureFixture[str]
) -> None:
    write({"v": COLUMNS["levels"], "w": range(80), "of": ["a", "b"] * 40})
    Path("kept").mkdir()
    for options in (["--drop", "of", *FIT[2:]], ["--reference", "of"]):
        fit = ["fit", "t.csv", "--method", "exkmc", *options, "-q"]
        assert main([*fit, "-o", "whole.json"]) == 0
        assert main([*fit, "--stream", "--cache", "kept", "-o", "stream.json"]) == 0
        assert Path("stream.json").read_bytes() == Path("whole.json").read_bytes()
        assert not list(Path("kept").iterdir())
    capsys.readouterr()
    assert main([*fit, "--stream", "--cache", "none"]) == 4
    assert main([*fit, "--cache", "kept"]) == 2
    assert capsys.readouterr().err == (
        "treeclust: --cache: none is no folder.\n"
        "treeclust: --cache goes with --stream: without it the table is read once.\n"
    )


# ---- bounds of memory ---------------------------------------------------------------------------


def test_more_different_texts_than_are_counted(
    small_batches: Both, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(text_facts, "_MOST_DIFFERENT", 2_000)
    write({"id": [f"id {n}" for n in range(1_500)], "w": [n % 7 for n in range(1_500)]})
    assert main(["fit", "t.csv", *FIT, "--stream"]) == 3
    assert capsys.readouterr().err == (
        "treeclust: t.csv: text of more than 255 levels: 'id' (more than 1,000 levels, such as "
        "'id 0'). To go on, add --drop id.\n"
    )
    small_batches(["t.csv", *FIT, "--drop", "id"])


def test_different_texts_are_counted_up_to_a_bound() -> None:
    different = Different(most=1_000)
    for start in range(0, 5_000, 100):
        different.add(pl.Series([f"t{n}" for n in range(start, start + 150)]))
        if start == 100:
            assert different.words() == "250 levels"
            assert different.texts == [f"t{n}" for n in range(250)]
            assert not different.is_wide
    assert different.texts is None
    assert different.is_wide
    assert different.words() == "more than 1,000 levels"
    assert len(different) < 1_200
    assert [most_different(n) for n in (0, 8, 9, 81, 5_000)] == [
        *(1_000_000, 1_000_000, 100_000),
        *(10_000, 1_000),
    ]


def test_codes_are_counted_as_they_are_read() -> None:
    facts = LevelFacts("x", decimal_comma=False)
    facts.add(pl.Series(["7", "7.0", "NA", None]))
    assert facts.are_numbers
    assert facts.levels.texts == ["7"]
    facts.add(pl.Series(["beta", "na"]))
    assert not facts.are_numbers
    assert set(facts.levels.texts or ()) == {"7", "beta", "NA", "na"}


@pytest.mark.parametrize("cell", ["old", "2024-01-01", "7"])
def test_a_cell_that_was_not_there_before(
    cell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write({"v": [*times("%Y-%m-%d")] if cell == "7" else range(80), "w": range(80)})
    asked, batches = 0, text_files.TextBatches.__iter__

    def other(self):
        nonlocal asked
        asked += 1
        for frame in batches(self):
            row = pl.int_range(pl.len())
            v = pl.when(row == 1).then(pl.lit(cell)).otherwise("v")
            yield frame.with_columns(v=v) if asked > 5 else frame

    monkeypatch.setattr(text_files.TextBatches, "__iter__", other)
    assert main(["fit", "t.csv", *FIT, "--stream"]) == 3
    said = capsys.readouterr().err
    assert f"t.csv has changed while it was read: 'v' (row 1: '{cell}') was not there" in said


def test_numbers_in_text_are_found_fast_and_slow_alike() -> None:
    rng = np.random.default_rng(0)
    marks = np.array(list("0123456789.,+-eEK€ '"))
    texts = ["".join(rng.choice(marks, rng.integers(1, 6))) for _ in range(300)]
    for comma in (False, True):
        for text in [*texts, "1.5", "2", ".5", "-3.", "1,5", "1.000"]:
            facts = text_facts.TextFacts("x", in_text_file=False, decimal_comma=comma)
            every = text_facts.NumbersSoFar("x", comma)
            different = text_facts.different_texts(pl.Series("x", [text]))
            every.add(different)
            facts._add_numbers(facts.numbers, different, comma)
            assert facts.numbers.are_numbers == every.are_numbers, text
            assert facts.numbers.are_uniform == every.are_uniform, text
