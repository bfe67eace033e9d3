"""Tables with text, flags, dates, gaps and numbers in text on the command line."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.utils import get_tags

import treeclust_rs as tc
from treeclust_rs.cli import main
from treeclust_rs.cli.methods import METHODS, MIXED_METHODS
from treeclust_rs.datasets import make_customers

FIT = ["-k", "3", "--scale", "standard", "--effort", "quick", "-o", "m.json"]


def customers() -> pl.DataFrame:
    return make_customers(300).drop("customer_id")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    """The customers, in customers.csv and customers.parquet of this folder."""
    monkeypatch.chdir(tmp_path)
    customers().write_csv("customers.csv")
    customers().write_parquet("customers.parquet")
    return customers()


def players(n: int = 300) -> pl.DataFrame:
    """Names, money, ratings, codes and cities as they come: the text of FIFA 19."""
    rows = np.arange(n)
    group = rows % 3
    return pl.DataFrame(
        {
            "name": [f"player {row}" for row in rows],
            "value": [f"€{row + 400 * g}.5K" for row, g in zip(rows, group, strict=True)],
            "rating": [f"{50 + 10 * g + row % 5}+2" for row, g in zip(rows, group, strict=True)],
            "shirt": 1 + rows % 4,
            "city": np.array(["Rome", "Oslo", "Bern"])[group],
        }
    )


def write_players(name: str = "players.csv") -> None:
    frame = players()
    frame.write_csv(name) if name.endswith("csv") else frame.write_parquet(name)


# ---- fit and predict ----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_of_a_database_fits_without_options(table, suffix, capsys):
    assert main(["fit", f"customers.{suffix}", *FIT]) == 0
    assert capsys.readouterr().err.startswith(
        f"treeclust: customers.{suffix}: 300 rows, 11 columns: 4 of numbers, 1 of true and false "
        "(newsletter), 1 of dates (signup), 1 of times (last_order), 4 of text (region, channel, "
        "occupation, plan); missing cells in 10 columns.\n"
    )
    expected = tc.BestTree(3, scale="standard", effort="quick", random_state=0)
    # The levels of text files are sorted; a Parquet file keeps the order of an Enum.
    frame = table if suffix == "parquet" else table.with_columns(pl.col("plan").cast(pl.String))
    assert tc.load("m.json").tree_ == expected.fit(frame).tree_


def test_new_rows_with_an_unknown_level_and_a_gap(table, capsys):
    labels = [0 if region == "north" else 1 for region in table["region"].fill_null("east")]
    model = tc.KMeansTree(reference=labels).fit(table.select("region", "age"))
    model.save("m.json")
    new = table.select("region", "age", "income")[:3]
    new = new.with_columns(region=pl.Series(["Atlantis", None, "north"]))
    new.write_csv("new.csv")
    assert main(["predict", "m.json", "new.csv", "-o", "out.csv"]) == 0
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning == (
        "treeclust: warning: The table has levels that the fit did not have: column 'region' has "
        "'Atlantis'. They count as missing."
    )
    with pytest.warns(UserWarning, match="Atlantis"):
        assert pl.read_csv("out.csv")["cluster"].to_list() == model.predict(new).tolist()
    assert main(["explain", "m.json", "new.csv", "--rows", "0-1"]) == 0
    unknown, missing = capsys.readouterr().out.splitlines()
    assert "region = Atlantis (unknown level)" in unknown
    assert "region is missing" in missing


def test_text_files_and_parquet_are_predicted_alike(table):
    assert main(["fit", "customers.csv", *FIT, "-q", "--leaves", "8"]) == 0
    labels = []
    for name in ("customers.csv", "customers.parquet"):
        assert main(["predict", "m.json", name, "-o", "out.csv", "--force"]) == 0
        labels.append(pl.read_csv("out.csv")["cluster"].to_list())
    assert labels[0] == labels[1]
    expression = tc.load("m.json").to_polars()
    assert table.select(expression).to_series().to_list() == labels[0]


def test_times_of_a_fit_are_read_as_times(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    days = [date(2020, 1, 1) + timedelta(days=day * 10) for day in range(60)]
    frame = pl.DataFrame({"signup": days})
    frame.write_csv("t.csv")
    assert main(["fit", "t.csv", *FIT[:2], "-o", "m.json", "-q"]) == 0
    assert main(["info", "m.json", "--rules"]) == 0
    assert "signup <= 2020-" in capsys.readouterr().out
    Path("new.csv").write_text("signup\n2021-01-01\n\nsoon\n")
    assert main(["predict", "m.json", "new.csv"]) == 3
    assert (
        "new.csv: no date or time as 2024-12-31 or 2024-12-31 23:59: 'signup' (row 2: 'soon')"
        in capsys.readouterr().err
    )
    Path("new.csv").write_text("signup\n2021-01-01 12:00\n\n")
    assert main(["predict", "m.json", "new.csv"]) == 0


def test_flags_of_a_text_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [("TRUE", 1), ("False", 2), ("", 3)] * 10
    pl.DataFrame(rows, schema=["flag", "x"], orient="row").write_csv("t.csv")
    labels = [0, 1, 1] * 10
    model = tc.KMeansTree(reference=labels)
    frame = pl.DataFrame({"flag": [True, False, None] * 10, "x": [1, 2, 3] * 10})
    model.fit(frame.select("flag")).save("m.json")
    assert main(["predict", "m.json", "t.csv", "-o", "out.csv"]) == 0
    assert pl.read_csv("out.csv")["cluster"].to_list() == labels
    Path("t.csv").write_text("flag\ntrue\nperhaps\n")
    capsys.readouterr()
    assert main(["predict", "m.json", "t.csv", "--drift"]) == 0
    assert "perhaps (1)" in capsys.readouterr().out


# ---- --numbers and --levels ---------------------------------------------------------------------


def test_text_that_cannot_be_levels_is_refused_with_the_options_that_get_on(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    write_players()
    assert main(["fit", "players.csv", *FIT]) == 3
    assert capsys.readouterr().err == (
        "treeclust: players.csv: text of more than 255 levels: 'name' (300 levels, such as "
        "'player 0'); numbers that are written as text: 'value' (row 0: '€0.5K') (rows count from "
        "0). To go on, add --numbers value --drop name.\n"
    )
    assert main(["fit", "players.csv", *FIT, "--numbers", "value", "--drop", "name"]) == 0
    said = capsys.readouterr().err
    assert "players.csv: 300 rows, 4 columns: 2 of numbers, 2 of text (rating, city)." in said
    assert "treeclust: numbers in text: value without €.\n" in said
    assert "text that looks like numbers is text; for numbers add --numbers rating\n" in said
    assert "treeclust_rs" not in said and "every text is a level" not in said
    assert main(["fit", "players.csv", *FIT, "--columns", "name,value"]) == 3
    assert "add --numbers value. Take name out of --columns." in capsys.readouterr().err


def test_text_that_looks_like_numbers_is_told_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    n = np.arange(90)
    many = pl.DataFrame({"worth": [f"€{i}.5K" for i in n], "x": n % 3})
    comma = many.with_columns(length=pl.Series([f"{i},25" for i in n]))
    slips = many.with_columns(worth=pl.Series(["?!", *many["worth"][1:]]))
    for frame in (many, slips, comma):
        frame.write_parquet("t.parquet")
        assert main(["fit", "t.parquet", *FIT]) == 0
        said = capsys.readouterr().err
        assert said.count("looks like numbers") == 1 + ("length" in frame.columns)
        assert "for numbers add --numbers worth\n" in said
        assert "text_to_numbers" not in said
    words = "text that looks like numbers with decimal commas is text: length; for numbers"
    assert f"{words} write points\n" in said
    comma.with_columns(pl.col("length") + "lbs").write_csv("t.csv")
    assert main(["fit", "t.csv", *FIT]) == 0
    way = "add --decimal-comma, or write all columns alike"
    assert f"{words} {way}\n" in capsys.readouterr().err
    assert main(["compare", "t.parquet", "-k", "3", "--methods", "imm"]) == 0
    assert "text_to_numbers" not in capsys.readouterr().err


def test_rows_of_gaps_alone_are_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = pl.DataFrame({"a": [1.0, float("nan"), None, 5.0] * 9, "b": ["x", None, None, "y"] * 9})
    rows.write_parquet("t.parquet")
    assert main(["fit", "t.parquet", *FIT[2:], "-k", "2"]) == 0
    told = capsys.readouterr()
    assert "missing cells in 2 columns; 18 rows of gaps alone are left out of the fit." in told.err
    assert "18 rows" in told.out
    rows[3:6].vstack(rows[7:8]).write_csv("t.csv")
    assert main(["fit", "t.csv", *FIT[2:], "-k", "2"]) == 0
    assert "; 1 row of gaps alone is left out of the fit." in capsys.readouterr().err
    pl.DataFrame({"a": [1.0, float("nan"), 2.0], "b": [1, 2, 3]}).write_parquet("t.parquet")
    assert main(["fit", "t.parquet", *FIT[2:], "-k", "2"]) == 0
    assert "missing cells in 1 column." in capsys.readouterr().err


def test_the_way_out_of_labels_that_follow_no_distances_is_an_option(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    n = np.arange(90)
    pl.DataFrame({"x": n, "of": n % 2, "z": ["a", "b", "c"] * 30}).write_csv("t.csv")
    assert main(["fit", "t.csv", *FIT[2:], "--reference", "of"]) == 0
    assert "--objective labels and --method kernel-expand follow" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["players.csv", "players.parquet"])
def test_what_was_chosen_is_in_the_model(tmp_path, monkeypatch, name, capsys):
    monkeypatch.chdir(tmp_path)
    write_players(name)
    options = ["--numbers", "value, rating", "--levels", "shirt", "--drop", "name"]
    assert main(["fit", name, *FIT, *options, "--leaves", "6"]) == 0
    content = json.loads(Path("m.json").read_text())
    assert content["read_as"] == {"numbers": {"value": "€", "rating": ""}, "levels": ["shirt"]}
    frame = players().with_columns(
        value=pl.col("value").str.extract(r"([\d.]+)").cast(pl.Float64) * 1000,
        rating=pl.col("rating").str.extract(r"^(\d+)").cast(pl.Float64) + 2,
        shirt=pl.col("shirt").cast(pl.String),
    )
    expected = tc.BestTree(3, max_leaves=6, scale="standard", effort="quick", random_state=0)
    expected.fit(frame.drop("name"))
    model = tc.load("m.json")
    assert model.tree_ == expected.tree_
    for source in ("players.csv", "players.parquet"):
        write_players(source)
        assert main(["predict", "m.json", source, "-o", "out.csv", "--force"]) == 0
        assert pl.read_csv("out.csv")["cluster"].to_list() == expected.labels_.tolist()
    capsys.readouterr()
    assert main(["info", "m.json"]) == 0
    printed = capsys.readouterr().out
    assert "  read as numbers   value without €; rating\n  as levels         shirt\n" in printed
    # Models that are made of the model read tables the same way.
    assert main(["rename", "m.json", "0=first", "-o", "named.json"]) == 0
    model.truncate(4).save("small.json")
    for name in ("named.json", "small.json"):
        assert json.loads(Path(name).read_text())["read_as"] == content["read_as"]
    assert main(["explain", "named.json", "players.csv", "--rows", "0"]) == 0
    capsys.readouterr()
    assert main(["compare", "players.csv", "-k", "3", "--drop", "name", "--model", "m.json"]) == 0
    assert "m.json" in capsys.readouterr().out


def test_numbers_that_cannot_be_read(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cells = ["€1.5K"] * 8 + ["x", "$3", "", "?"]
    pl.DataFrame({"v": cells, "w": range(12)}).write_csv("t.csv")
    assert main(["fit", "t.csv", *FIT, "--numbers", "v"]) == 3
    assert capsys.readouterr().err == (
        "treeclust: t.csv: 2 cells of 'v' cannot be read as numbers: 'x' in row 8, '$3' in row 9 "
        "(rows count from 0); other cells are in €. Mend or empty these cells, or take v out of "
        "--numbers.\n"
    )
    pl.DataFrame({"v": [*cells[:8], "€4"], "w": range(9)}).write_csv("t.csv")
    assert main(["fit", "t.csv", *FIT[:2], "-o", "m.json", "--columns", "v", "--numbers", "v"]) == 0
    capsys.readouterr()
    pl.DataFrame({"v": ["$4"]}).write_csv("t.csv")
    assert main(["predict", "m.json", "t.csv"]) == 3
    assert capsys.readouterr().err.endswith("Mend or empty these cells.\n")


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--numbers", "name,shirt", "--drop", "shirt"], 3, "--numbers: 'shirt' is not among the"),
        (["--levels", "nobody"], 3, "players.csv has no column 'nobody'"),
        (["--levels", "shirt", "--numbers", "shirt"], 2, "by --numbers and by --levels: give one"),
        (["--levels", "shirt", "--method", "cubt"], 2, "--method cubt takes numbers alone. Text,"),
        (["--levels", "name,value"], 3, "(300 levels). Take name,value out of --levels."),
        (
            ["--method", "cubt", "--columns", "shirt,city"],
            3,
            f"'city' (row 0: 'Rome'); rows count from 0. Take city out of --columns. "
            f"{MIXED_METHODS}",
        ),
    ],
)
def test_options_that_do_not_go_together(tmp_path, monkeypatch, options, status, message, capsys):
    monkeypatch.chdir(tmp_path)
    write_players()
    assert main(["fit", "players.csv", *FIT[:4], *options]) == status
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            [*map(str, range(300)), "?"],
            "numbers that are written as text: 'v' (row 300: '?') (rows count from 0). To go on, "
            "add --numbers v.",
        ),
        (
            [*map(str, range(99)), "high"],
            "numbers or times but for some cells: 'v' (row 99: 'high') (rows count from 0). Mend "
            "or empty these cells, or leave columns out: add --drop v. To take them as text, add "
            "--levels v.",
        ),
        (
            [*(str(date(2024, 1, 1) + timedelta(days=day)) for day in range(300)), "0000-00-00"],
            "numbers or times but for some cells: 'v' (row 300: '0000-00-00')",
        ),
        (
            [f"{1 + day % 28:02}.{1 + day // 28:02}.2024" for day in range(300)],
            "dates in another form than 2024-12-31: 'v' (row 0: '01.01.2024') (rows count from 0). "
            "Write dates as 2024-12-31, or leave columns out: add --drop v.",
        ),
        (
            [f'"1,{n:03}"' for n in range(300)],
            "To go on, add --numbers v, or --decimal-comma if that is what their commas are.",
        ),
        ([f'"{n},5"' for n in range(300)], "numbers with decimal commas: 'v' (row 0: '0,5')"),
    ],
)
def test_columns_that_are_hardly_meant_as_text(tmp_path, monkeypatch, cells, message, capsys):
    monkeypatch.chdir(tmp_path)
    lines = ["v,w", *(f"{cell},{row}" for row, cell in enumerate(cells))]
    Path("t.csv").write_text("\n".join(lines) + "\n")
    assert main(["fit", "t.csv", *FIT]) == 3
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("form", "first"), [("%Y-%m-%d", "2024-01-01"), ("%Y-%m-%d %H:%M", "2024-01-01 00:00")]
)
def test_dates_that_parquet_holds_as_text(tmp_path, monkeypatch, capsys, form, first):
    monkeypatch.chdir(tmp_path)
    days = [(datetime(2024, 1, 1) + timedelta(days=day)).strftime(form) for day in range(300)]
    pl.DataFrame({"v": days, "w": range(300)}).write_parquet("t.parquet")
    assert main(["fit", "t.parquet", *FIT]) == 3
    message = (
        f"dates or times that the file holds as text: 'v' (row 0: '{first}') (rows count from 0). "
        "Write them with a type of dates or times, or leave columns out: add --drop v."
    )
    assert message in capsys.readouterr().err


def test_dates_of_few_days_in_another_form_are_text_and_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"{1 + row % 9}/12/2024,{row}" for row in range(90)]
    Path("t.csv").write_text("\n".join(["day,x", *rows]) + "\n")
    assert main(["fit", "t.csv", *FIT]) == 0
    said = capsys.readouterr().err
    assert "treeclust: dates that are not written as 2024-12-31 are text: day.\n" in said


def test_names_with_commas_in_the_advice_can_be_copied(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = players().rename({"value": "value, in euro", "name": "full name"})
    frame.write_csv("players.csv")
    assert main(["fit", "players.csv", *FIT]) == 3
    options = ["--numbers", "value, in euro", "--drop", "full name"]
    assert "add --numbers 'value, in euro' --drop 'full name'." in capsys.readouterr().err
    assert main(["fit", "players.csv", *FIT, *options]) == 0


# ---- other methods and commands -----------------------------------------------------------------


def test_the_methods_that_take_mixed_tables_are_named():
    taking = [name for name, method in METHODS.items() if _takes_mixed(method.estimator())]
    assert {"best", "exkmc", "imm", "kmeans-tree", "spex", "kauri"} == set(taking)
    assert all(f"{name}" in MIXED_METHODS for name in taking)
    expand = METHODS["kernel-expand"].estimator(reference=[0, 1], base_tree=None)
    assert _takes_mixed(expand)


def _takes_mixed(model) -> bool:
    return bool(get_tags(model).input_tags.allow_nan)


def test_methods_on_numbers_take_numbers_in_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_players()
    options = ["--method", "ex-greedy", "--columns", "value,rating", "--numbers", "value,rating"]
    assert main(["fit", "players.csv", *FIT[:4], *options, "-q", "-o", "m.json"]) == 0
    assert main(["predict", "m.json", "players.csv", "-o", "out.csv"]) == 0
    assert pl.read_csv("out.csv")["cluster"].n_unique() == 3


@pytest.mark.parametrize("method", ["exkmc", "imm", "kauri", "kmeans-tree", "spex"])
def test_methods_fit_mixed_tables(table, method):
    assert main(["fit", "customers.csv", *FIT[:4], "--method", method, "-q", "-o", "m.json"]) == 0
    assert main(["predict", "m.json", "customers.csv", "-o", "out.csv"]) == 0


def test_kernel_expand_explains_labels_by_a_mixed_table(table):
    frame = table.with_columns(segment=pl.col("region").fill_null("none"))
    frame.write_csv("t.csv")
    options = ["--method", "kernel-expand", "--reference", "segment", "--base-tree", "none"]
    assert main(["fit", "t.csv", *options, "-q", "-o", "m.json"]) == 0


def test_compare_leaves_out_methods_on_numbers(table, capsys):
    assert main(["compare", "customers.csv", "-k", "3", "--leaves", "3", "-o", "found.csv"]) == 0
    said = capsys.readouterr().err
    assert "left out, for they take complete numbers alone: ex-greedy, ex-shallow," in said
    methods = pl.read_csv("found.csv")["method"].to_list()
    assert methods == [
        *("best", "imm", "exkmc", "exkmc --base-tree none", "kauri", "kmeans-tree", "spex")
    ]


def test_drift_is_printed_by_column(table, capsys):
    labels = [0 if region == "north" else 1 for region in table["region"].fill_null("east")]
    tc.KMeansTree(reference=labels).fit(table.select("region")).save("m.json")
    cells = ["north", None, *["Atlantis"] * 2, "Mars", "Venus", "Pluto", "Io", "Europa", "Titan"]
    pl.DataFrame({"region": cells}).write_csv("new.csv")
    assert main(["predict", "m.json", "new.csv", "--drift"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert " region ┆       1 ┆ true           ┆       8 ┆ Atlantis (2), Europa (1), Io (1)" in (
        printed.out
    )
    assert "Mars (1), Pluto (1) and 2 more" in printed.out
    assert "cluster" not in printed.out
    assert main(["predict", "m.json", "new.csv", "--drift", "-o", "out.csv"]) == 0
    printed = capsys.readouterr()
    assert "Atlantis (2)" in printed.out and printed.err == ""
    assert pl.read_csv("out.csv").height == len(cells)


@pytest.mark.parametrize("cells", [["1", "0", ""], ["yes", "", "true?"]])
def test_other_cells_alone_where_true_and_false_were_fitted_are_refused(
    cells, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    flags = [True, False, None, True, False, True]
    frame = pl.DataFrame({"vip": flags, "x": [1.0, 2, 1, 9, 8, 9]})
    model = tc.BestTree(reference=[0, 1, 1, 0, 1, 0], effort="quick").fit(frame.select("vip"))
    model.save("m.json")
    pl.DataFrame({"vip": cells}).write_csv("codes.csv")
    frame.with_columns(pl.col("vip").cast(pl.Int8)).write_parquet("codes.parquet")
    frame.write_csv("words.csv")
    assert main(["predict", "m.json", "words.csv", "-o", "out.csv"]) == 0
    assert pl.read_csv("out.csv")["cluster"].to_list() == model.predict(frame).tolist()
    capsys.readouterr()
    for options in ([], ["--stream"]):
        assert main(["predict", "m.json", "codes.csv", *options, "-o", "wrong.csv"]) == 3
        assert capsys.readouterr().err == (
            "treeclust: codes.csv: the model was fitted to true and false, and no cell is either "
            f"here: 'vip' (row 0: '{cells[0]}'); rows count from 0. Write true and false.\n"
        )
    assert main(["predict", "m.json", "codes.parquet", "-o", "wrong.csv"]) == 3
    assert "'vip' held booleans" in capsys.readouterr().err
    assert not Path("wrong.csv").exists()
    pl.DataFrame({"vip": [None, "NA"]}).write_csv("gaps.csv")
    assert main(["predict", "m.json", "gaps.csv", "-o", "out.csv"]) == 0


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_offsets_that_the_fit_did_not_have_are_told(stream, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    days = [date(2024, 1, 1), date(2025, 1, 1)]
    tc.IMM(reference=[0, 1]).fit(pl.DataFrame({"seen": days})).save("days.json")
    zoned = pl.Series("seen", days).cast(pl.Datetime("us", "UTC"))
    tc.IMM(reference=[0, 1]).fit(zoned.to_frame()).save("zoned.json")
    for model, cell, words in (
        ("days", "2024-06-01T10:00Z", "has an offset from UTC, and the times of the fit had none"),
        ("zoned", "2024-06-01T10:00", "has no offset from UTC, and the times of the fit had one"),
        ("zoned", "2024-06-01", "has no offset from UTC, and the times of the fit had one"),
    ):
        capsys.readouterr()
        Path("t.csv").write_text(f"seen\nNA\n{cell}\n")
        assert main(["predict", f"{model}.json", "t.csv", *stream]) == 3
        said = capsys.readouterr().err
        assert said.startswith(f"treeclust: t.csv: 'seen' (row 1: '{cell}') {words}; rows count")
        right = cell.removesuffix("Z") if model == "days" else f"{cell[:10]}T10:00Z"
        Path("t.csv").write_text(f"seen\nNA\n{right}\n")
        assert main(["predict", f"{model}.json", "t.csv", *stream]) == 0


def test_text_where_numbers_were_fitted_is_told_with_the_way_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tc.IMM(reference=[0, 1]).fit(pl.DataFrame({"wage": [1.5, 3]})).save("m.json")
    for cell, options, words in (
        ("$2174", [], "Write wage as numbers alone; in Python treeclust_rs.text_to_numbers does."),
        ('"1,5"', [], "If these are numbers with decimal commas, add --decimal-comma."),
        ('"€1,5M"', [], "If these are numbers with decimal commas, add --decimal-comma."),
        ("2.5", ["--decimal-comma"], "with decimal points, leave --decimal-comma out."),
        ("high", [], "rows count from 0."),
    ):
        Path("t.csv").write_text(f"wage\n2\n{cell}\n", encoding="utf-8")
        for more in ([], ["--stream"]):
            assert main(["predict", "m.json", "t.csv", *options, *more]) == 3
            said = capsys.readouterr().err
            assert "'wage' (row 1: '" in said and said.endswith(f"{words}\n")


@pytest.mark.parametrize("stream", [[], ["--stream", "--method", "exkmc"]])
def test_the_other_mark_of_decimals_is_told(stream, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    n = range(300)
    points = pl.DataFrame({"a": [f"{i}.5e-1" for i in n], "b": [f"€{i}.25M" for i in n]})
    points.write_csv("points.csv")
    points.with_columns(pl.all().str.replace(r"\.", ",")).write_csv("commas.csv")
    for name, mark, options, way in (
        ("points.csv", "points", ["--decimal-comma"], "Leave --decimal-comma out"),
        ("commas.csv", "commas", [], "Add --decimal-comma"),
    ):
        fit = ["fit", name, "-k", "3", "--scale", "standard", "-o", "m.json", *stream]
        assert main([*fit, *options]) == 3
        told = f"{name}: numbers with decimal {mark}: 'a' (row 0: '"
        said = capsys.readouterr().err
        assert told in said and "'b' (row 0: '€0" in said
        assert said.endswith(f"{way} if all numbers are written so; else write them alike first.\n")
        assert main([*fit, *options, "--numbers", "b"]) == 3
        words = f"If these are numbers with decimal {mark}, {way[0].lower()}{way[1:]}."
        assert words in capsys.readouterr().err
        right = [] if options else ["--decimal-comma"]
        assert main([*fit, *right, "--numbers", "b"]) == 0
        assert "2 columns" in capsys.readouterr().err


def test_leaves_whose_cluster_is_not_that_of_most_rows_are_explained(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    x = pl.DataFrame({"x": [7.0, 5, 4, 2, 2, 0, 0, 0, 1, 7, 5, 8]})
    nearer = tc.ExKMC(reference=[1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0], max_leaves=3)
    with pytest.warns(UserWarning, match="nearer to the center of another cluster"):
        nearer.fit(x)
    apart = tc.ExKMC(reference=[1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1], max_leaves=3).fit(x)
    note = (
        "cluster: chosen by the centers, not by counting: in some leaves more rows are of another."
    )
    for model, is_told in ((nearer, True), (apart, False)):
        model.save("m.json")
        for options in ([], ["--rules"]):
            assert main(["info", "m.json", *options]) == 0
            assert (note in capsys.readouterr().out.splitlines()) is is_told
        assert (note in str(model.tree_)) is is_told


def test_a_fit_whose_reader_stops_has_saved_its_model(table, monkeypatch):
    class Closed:
        def write(self, text: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None: ...

    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", Closed())
        assert main(["fit", "customers.csv", *FIT]) == 1
    assert tc.load("m.json").n_clusters_ == 3


@pytest.mark.parametrize("form", ["sql", "polars"])
def test_export_says_which_columns_of_text_its_query_expects_as_numbers(
    tmp_path, monkeypatch, capsys, form
):
    monkeypatch.chdir(tmp_path)
    write_players()
    options = ["--numbers", "value,rating", "--columns", "rating,city,value"]
    assert main(["fit", "players.csv", *FIT, *options, "-q"]) == 0
    model = tc.load("m.json")
    tested = {column for column in ("value", "rating") if column in str(model.rules())}
    capsys.readouterr()
    assert tested
    assert main(["export", "m.json", "--to", form]) == 0
    query, said = capsys.readouterr()
    assert said.count("\n") == 1
    assert all(f"'{column}'" in said for column in tested)
    # The query says it too, for those who only see that.
    comment = query.splitlines()[0]
    assert comment[:2] == {"sql": "--", "polars": "# "}[form]
    assert comment.endswith(said.removeprefix("treeclust: the ").removesuffix("\n"))
    read = tc.text_to_numbers(players(), ["value", "rating"])
    if form == "polars":
        names = {}
        exec(query, names)
        assert read.select(names["cluster"])["cluster"].to_list() == model.predict(read).tolist()
    assert main(["predict", "m.json", "players.csv", "-o", "out.csv"]) == 0
    assert pl.read_csv("out.csv")["cluster"].to_list() == model.predict(read).tolist()
