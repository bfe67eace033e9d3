"""Numbers, dates and times that came as text: they are told, with a line that reads them."""

import datetime as dt
import re
import warnings

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import treeclust_rs as tc
from mixed_reading import align, read
from treeclust_rs._data.scale import ColumnWarning, warn_of_columns
from treeclust_rs._data.table import column_of
from treeclust_rs.cli.reading import read_tables
from treeclust_rs.cli.text_files import TextFormat


def mended_as_told(message: str, frame):
    """Return the frame that the line in a message makes of it."""
    line = re.search(r"X = (treeclust_rs\..*?)(?: \(in the command|, in the units of)", message)
    names = {"treeclust_rs": tc, "X": frame}
    exec(f"X = {line[1]}", names)
    return names["X"]


def warnings_of(frame) -> list[str]:
    table = read(frame)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_columns(table, None, np.ones(table.n_features), "standard")
    assert all(issubclass(warning.category, ColumnWarning) for warning in caught)
    return [str(warning.message) for warning in caught]


def read_refused(frame) -> str:
    with pytest.raises(ValueError, match="levels") as caught:
        read(frame)
    return str(caught.value)


def test_all_columns_with_too_many_levels_are_named_with_the_lines_that_help():
    n = 300
    frame = pl.DataFrame(
        {
            "name": [f"Player {i}" for i in range(n)],
            "few": ["a", "b"] * (n // 2),
            "value": [f"€{i}.5{'KM'[i % 2]}" for i in range(n)],
            "x": np.arange(n),
        }
    )
    text = read_refused(frame)
    for part in ("2 columns", "'name' (300, as 'Player 0')", "'value' (300, as '€0.5K')"):
        assert part in text
    assert 'Drop them (X.drop(["name", "value"]) in polars, X.drop(columns=["name", ' in text
    expected = [(i + 0.5) * (1e6 if i % 2 else 1e3) for i in range(n)]
    assert mended_as_told(text, frame)["value"].to_list() == expected
    assert "text_to_numbers" not in read_refused(frame.select("name"))


@pytest.mark.parametrize(
    ("texts", "are_numbers"),
    [
        ([f"€{i}.5M" for i in range(30)], True),
        ([f"{i}+2" for i in range(30)], True),
        ([f"{i // 12}'{i % 12}" for i in range(30)], True),
        ([f"{i}lbs" for i in range(30)], True),
        ([f"{i},000" for i in range(30)], True),
        ([f"{10115 + i}" for i in range(30)], False),
        ([f"{i}-{i + 9}" for i in range(30)], False),
        ([f"2024-01-{i}" for i in range(30)], False),
        ([f"A{i}" for i in range(30)], False),
        ([f"1.{i}.3" for i in range(30)], False),
        ([f"{i},85" for i in range(30)], True),
        (["2", "3", "4", "5more"], False),
    ],
)
def test_numbers_as_text_are_told(texts, are_numbers):
    told = warnings_of(pl.DataFrame({"value": texts, "x": range(len(texts))}))
    assert len(told) == are_numbers
    assert all("'value' holds text that looks like numbers" in text for text in told)


@pytest.mark.parametrize("n", [30, 300])
@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("{},85", lambda i: i + 0.85),
        ("1.{:03},5", lambda i: 1000.5 + i),
        ("{}.001", lambda i: i + 0.001),
        ("€1.{}B", lambda i: float(f"1.{i}e9")),
        ("{}.0k", lambda i: i * 1e3),
        ("{}.0 M", lambda i: i * 1e6),
        ("−{}.5", lambda i: -i - 0.5),
        ("88+{}", lambda i: 88 + i),
    ],
)
@pytest.mark.parametrize("library", ["polars", "lazy", "pandas", "category", "arrow"])
def test_the_line_that_is_told_reads_text_as_the_command_does(cell, number, n, library, tmp_path):
    cells = [cell.format(i) for i in range(n)]
    frame = pl.DataFrame({"a b": cells, "x": range(n)})
    pandas = pd.DataFrame({"a b": cells, "x": range(n)})
    X = {
        "polars": frame,
        "lazy": frame.lazy(),
        "pandas": pandas,
        "category": pandas.astype({"a b": "category"}),
        "arrow": frame.to_arrow(),
    }[library]
    message = read_refused(X) if n == 300 else warnings_of(X)[0]
    mended = mended_as_told(message, X)
    assert type(mended) is type(X)
    table = read(mended)
    assert table.kinds is None and table.feature_names == ["a b", "x"]
    expected = [number(i) for i in range(n)]
    assert column_of(table, 0).tolist() == expected
    frame.write_csv(tmp_path / "t.csv")
    comma = "decimal_comma" in message
    source = read_tables([str(tmp_path / "t.csv")], TextFormat(decimal_comma=comma), rechunk=False)
    assert source.read_numbers("a b")[0].to_list() == expected
    assert ("--decimal-comma" in message) == comma


@pytest.mark.parametrize("cell", ["31,85", "1.2.3", "01.03.2020", "abc", "2024-01-01", "$3"])
@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame, pa.table])
def test_what_is_no_number_is_refused_by_name_and_row(cell, make):
    X = make({"money": ["€1.5K", "NA", None, cell], "x": [1, 2, 3, 4]})
    with pytest.raises(ValueError, match=r"^1 cell of 'money' cannot be read as numbers: ") as told:
        tc.text_to_numbers(X, "money")
    assert f"{cell!r} in row 3 (rows count from 0); other cells are in €." in str(told.value)
    assert ("decimal_comma=True" in str(told.value)) == (cell == "31,85")


def test_columns_of_text_to_numbers():
    X = pl.DataFrame({"a": ["$1", "$2"], "b": [1, 2], "d": [dt.date(2020, 1, 1)] * 2})
    assert tc.text_to_numbers(X, {"a": "$", "b": ""})["a"].to_list() == [1, 2]
    assert X["a"].dtype == pl.String
    with pytest.raises(ValueError, match="'a' cannot be read as numbers: '\\$1' in row 0"):
        tc.text_to_numbers(X, {"a": "€"})
    with pytest.raises(ValueError, match="X has no column 'c'"):
        tc.text_to_numbers(X, ["c"])
    with pytest.raises(TypeError, match="'d' is not text but Date"):
        tc.text_to_numbers(X, ["a", "d"])
    with pytest.raises(TypeError, match=r"takes a frame\. Got ndarray"):
        tc.text_to_numbers(np.ones((2, 2)), [0])
    with_index = pd.DataFrame({"a": ["1,000", None]}, index=[7, 7])
    mended = tc.text_to_numbers(with_index, "a")
    assert mended["a"].iloc[0] == 1000 and mended["a"].isna().tolist() == [False, True]
    assert with_index["a"].iloc[0] == "1,000" and mended.index.tolist() == [7, 7]
    numbered = pd.DataFrame([[f"{i}K", i] for i in range(300)])
    assert mended_as_told(read_refused(numbered), numbered)[0].iloc[2] == 2000
    narwhal = tc.text_to_numbers(nw.from_native(X), ["a"])
    assert isinstance(narwhal, nw.DataFrame) and narwhal["a"].to_list() == [1, 2]


def test_all_columns_of_another_kind_are_named_with_the_line_that_helps():
    numbers = pl.DataFrame({"value": [1.0, 2.0], "wage": [1.0, 2.0], "age": [30, 40]})
    fitted = read(numbers.with_columns(region=pl.Series(["n", "e"])))
    cells = {"value": ["€1.5M", "€2K"], "wage": ["€3K", None], "age": ["old", "young"]}
    frame = pl.DataFrame(cells | {"region": [1, 2]})
    with pytest.raises(TypeError) as caught:
        align(frame, fitted)
    text = str(caught.value)
    assert text.startswith(
        "Column 'value' held numbers when IMM was fitted, and now holds text (String); so do "
        "others: 'wage' numbers, now text (String), 'age' numbers, now text (String), 'region' "
        "text, now numbers (Int64). Convert them to the type that they had."
    )
    assert text.endswith('In polars: X = X.with_columns(pl.col("region").cast(pl.String)).')
    mended = mended_as_told(text, frame)
    assert mended["value"].to_list() == [1.5e6, 2e3]
    assert mended["wage"].to_list() == [3e3, None]
    with pytest.raises(TypeError, match=r"it had\.$"):
        align(mended.with_columns(value=pl.lit("old")), fitted, needed=[0])
    # Where numbers were, digits alone are no codes, and NaN is no word.
    for cell, number in (("12", 12.0), ("NaN", None)):
        frame = mended.with_columns(value=pl.lit(cell))
        with pytest.raises(TypeError) as caught:
            align(frame, fitted, needed=[0])
        assert mended_as_told(str(caught.value), frame)["value"].to_list() == [number] * 2


DAYS = pl.Series([dt.date(2023, 5, 1), dt.date(2024, 2, 29), None])
NAIVE = pl.Series([dt.datetime(2023, 5, 1, 10), dt.datetime(2024, 2, 29, 10), None])
BERLIN = NAIVE.dt.replace_time_zone("Europe/Berlin")
OFFSETS = pl.Series(["2023-05-01T08:00:00+0000", "2024-02-29T11:00:00+01:00", None])
BOTH = pl.Series([True, False, None])


@pytest.mark.parametrize(
    ("was", "now", "then"),
    [
        (DAYS, BERLIN, DAYS),
        (NAIVE, BERLIN, NAIVE),
        (BERLIN, NAIVE, BERLIN),
        (BERLIN, DAYS, DAYS.cast(pl.Datetime("us")).dt.replace_time_zone("Europe/Berlin")),
        (DAYS, OFFSETS, DAYS),
        (NAIVE, OFFSETS, NAIVE - pl.Series([dt.timedelta(hours=2), dt.timedelta(0), None])),
        (BOTH, pl.Series([1, 0, None]), BOTH),
        (pl.Series(["1", "2", None]), pl.Series([1, 2, None]), pl.Series(["1", "2", None])),
    ],
)
def test_columns_of_another_type_are_told_with_the_line_that_converts_them(was, now, then):
    fitted = read(pl.DataFrame({"a": was}))
    frame = pl.DataFrame({"a": now})
    with pytest.raises(TypeError, match=r"Column 'a' held .*, and now holds") as caught:
        align(frame, fitted)
    line = re.search(
        r"(?:In polars|times): X = (X\..*?)(?:\.$|, in pandas (.*)\.$)", str(caught.value)
    )
    mended = eval(line[1], {"X": frame, "pl": pl})
    assert mended["a"].to_list() == then.to_list()
    align(mended, fitted)
    if line[2]:
        X = frame.to_pandas()
        X["a"] = eval(line[2], {"X": X, "pandas": pd})
        assert X["a"].dt.floor("D").tolist()[:2] == [pd.Timestamp(day) for day in DAYS[:2]]
        align(X, read(pl.DataFrame({"a": NAIVE})))


def test_times_are_not_told_to_have_a_zone_of_an_offset():
    offset = pd.DataFrame({"a": pd.to_datetime(["2023-05-01T10:00:00+05:00"])})
    with pytest.raises(TypeError, match=r"Convert it to the type that it had\.$"):
        align(pl.DataFrame({"a": NAIVE}), read(offset))


def test_words_for_true_and_false_are_told_with_the_line_that_makes_booleans():
    fitted = read(pl.DataFrame({"news": BOTH}))
    words = pl.DataFrame({"news": ["yes", "no", None]})
    told = (
        r'has \'no\', \'yes\' \(if these should be booleans: (pl\.col\("news"\) == "yes")\)\. They'
    )
    with pytest.warns(UserWarning, match=told) as caught:
        align(words, fitted)
    line = re.search(told, str(caught[0].message))[1]
    mended = words.with_columns(eval(line, {"pl": pl}))
    assert mended["news"].to_list() == BOTH.to_list()
    # Beside true and false such a line would make booleans of all words at once.
    with pytest.warns(UserWarning, match=r"has \'yes\'\. They count as missing"):
        align(pl.DataFrame({"news": ["yes", "true"]}), fitted)


def test_numbers_without_the_unit_of_the_fit_are_told():
    frame = pl.DataFrame({"height": ["170", None], "wage": ["$3", "€2"]})
    with pytest.warns(UserWarning, match="no cell of 'height' is written in feet and inches, as"):
        read = tc.text_to_numbers(frame, {"height": "feet and inches"})
    assert read["height"].to_list() == [170, None]
    with pytest.warns(UserWarning, match="no cell of 'height' has the unit cm of the fit: its"):
        tc.text_to_numbers(frame, {"height": "cm"})
    with pytest.raises(ValueError, match=r"'\$3' in row 0 .* other cells are in €"):
        tc.text_to_numbers(frame, {"wage": "€"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tc.text_to_numbers(frame, ["height"])
        tc.text_to_numbers(frame, {"height": ""})
        tc.text_to_numbers(frame[1:], {"height": "cm", "wage": "€"})


@pytest.mark.parametrize("time", ["T10:30:00", " 10:30", "T10:30:00.5+0000", "T10:30Z"])
@pytest.mark.parametrize("n", [30, 300])
def test_dates_and_times_as_text_are_told_with_the_line_that_reads_them(n, time, tmp_path):
    days = [str(dt.date(2023, 1, 1) + dt.timedelta(i)) for i in range(n)]
    frame = pl.DataFrame({"day": days, "at": [day + time for day in days], "x": range(n)})
    if n > 255:
        told = read_refused(frame)
    else:
        (told,) = warnings_of(frame)
        assert told.startswith("Columns 'day', 'at' hold dates or times as text; every text")
    assert "If these columns should be dates or times: polars.read_csv(..., try_parse" in told
    assert 'in pandas pandas.to_datetime(X["day"]).' in told
    # The lines do what they say.
    frame.write_csv(tmp_path / "t.csv")
    line = re.search(r"else X = (X\.with_columns\(.*\)), in pandas", told)
    mended = (
        pl.read_csv(tmp_path / "t.csv", try_parse_dates=True),
        eval(line[1], {"pl": pl, "X": frame}),
    )
    for again in mended:
        table = read(again)
        assert table.kinds[0] == "date" and table.kinds[1].startswith("datetime[")
    pandas = frame.to_pandas()
    assert read(pd.to_datetime(pandas["day"]).to_frame()).kinds == ("datetime[]",)
    # So does predict where the fit had times.
    with pytest.raises(TypeError, match=r"'day' held dates .* others: 'at' times .* should be da"):
        align(frame, read(mended[0]))


@pytest.mark.parametrize(
    "form",
    ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%d-%b-%y", "%d %b %Y"],
)
@pytest.mark.parametrize("n", [40, 400])
def test_dates_in_other_forms_are_told_with_the_line_that_reads_them(n, form):
    days = [dt.date(2023, 1, 1) + dt.timedelta(i) for i in range(n)]
    frame = pl.DataFrame({"day": [day.strftime(form) for day in days], "x": range(n)})
    told = read_refused(frame) if n > 255 else warnings_of(frame)[0]
    assert "read_csv" not in told
    line = re.search(r"X = (X\.with_columns\(.*\)), in pandas (.*\))\.$", told)
    assert eval(line[1], {"pl": pl, "X": frame})["day"].to_list() == days
    pandas = eval(line[2], {"pandas": pd, "X": frame.to_pandas()})
    assert pandas.dt.date.tolist() == days


def test_columns_of_few_numbers_are_told_with_those_of_many():
    frame = pl.DataFrame(
        {
            "value": [f"€{i}K" for i in range(30)],
            "height": [f"5'{i % 12}" for i in range(30)],
            "code": [str(i % 5) for i in range(30)],
            "x": range(30),
        }
    )
    (told,) = warnings_of(frame)
    assert 'text_to_numbers(X, ["value", "height"])' in told
    assert not warnings_of(frame.drop("value"))


def test_what_is_no_date_is_not_told_to_be_one():
    codes = [f"2024-{i:03}" for i in range(30)]
    assert not warnings_of(pl.DataFrame({"code": codes, "x": range(30)}))
    for form in ("{}-00-2024", "1.{}.3", "{} 7 9", "{}/2024", "{} May"):
        cells = [form.format(i) for i in range(30)]
        assert not any("dates" in told for told in warnings_of(pl.DataFrame({"code": cells})))
    few = [f"2024-01-{i:02}" for i in range(1, 6)] * 6
    assert not warnings_of(pl.DataFrame({"day": few, "x": range(30)}))
    assert "dates" not in read_refused(pl.DataFrame({"name": [f"p {i}" for i in range(300)]}))
