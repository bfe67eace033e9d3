"""Numbers in text, times in text, and levels of cells."""

from __future__ import annotations

from datetime import UTC, date, datetime

import polars as pl
import pytest

from treeclust_rs._data.number_text import FEET, read_number, read_numbers
from treeclust_rs.cli.cells import as_codes, as_typed, odd_times


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("42", 42, ""),
        (" -1.5e3 ", -1500, ""),
        ("+.5", 0.5, ""),
        ("−7", -7, ""),
        ("1,234", 1234, ""),
        ("1'234'567.5", 1234567.5, ""),
        ("1 234", 1234, ""),
        ("1\u00a0234", 1234, ""),
        ("€110.5M", 110_500_000, "€"),
        ("€1.1M", 1_100_000, "€"),
        ("-€5", -5, "€"),
        ("€-5", -5, "€"),
        ("12M €", 12_000_000, "€"),
        ("565K", 565_000, ""),
        ("12.5k", 12_500, ""),
        ("2B", 2_000_000_000, ""),
        ("12 %", 12, "%"),
        ("159lbs", 159, "lbs"),
        ("12 km", 12, "km"),
        ("7m", 7, "m"),
        ("88+2", 90, ""),
        ("5'7", 67, FEET),
        ("6'", 72, FEET),
        ("5'7.5\"", 67.5, FEET),
    ],
)
def test_what_a_text_is_as_a_number(text, number, unit):
    assert read_number(text) == (number, unit)


@pytest.mark.parametrize(
    "text",
    [
        *("", "abc", "M", "n1", "inf", "1,23", "1,5", "12,34,567", "1.2.3", "1e9999", "0x10"),
        *("10-20", "88-2", "1/2", "2024-12-31", "5'12", "$5€", "-€-5"),
    ],
)
def test_texts_that_are_no_numbers(text):
    assert read_number(text) is None


def test_a_column_has_one_unit():
    read = read_numbers(pl.Series("x", ["€1K", "$5", None, "?", "7", "x", "€2", "-", " NA "]))
    assert read.unit == "€"
    assert read.numbers.to_list() == [1000, None, None, None, 7, None, 2, None, None]
    assert read.is_odd.arg_true().to_list() == [1, 5]
    read = read_numbers(pl.Series("x", ["€1", "$5", "$6"]), "€")
    assert read.numbers.to_list() == [1, None, None] and read.is_odd.sum() == 2
    assert read_numbers(pl.Series("x", [None, ""], dtype=pl.String)).numbers.null_count() == 2


@pytest.mark.parametrize(
    ("cells", "dtype", "values"),
    [
        (["1", " 2 ", "NA"], pl.Int64, [1, 2, None]),
        (["1.5", "nan"], pl.Float64, [1.5, None]),
        (["True", "false", ""], pl.Boolean, [True, False, None]),
        (["2024-02-29", None, "NA"], pl.Date, [date(2024, 2, 29), None, None]),
        (
            ["2024-01-31 10:00", "2024-01-31T10:00:05.25"],
            pl.Datetime("us"),
            [datetime(2024, 1, 31, 10), datetime(2024, 1, 31, 10, 0, 5, 250_000)],
        ),
        (
            ["2024-01-31T10:00Z", "2024-06-30 10:00:00+02:00", "2024-06-30 10:00:00.5+0200"],
            pl.Datetime("us", "UTC"),
            [
                datetime(2024, 1, 31, 10, tzinfo=UTC),
                datetime(2024, 6, 30, 8, tzinfo=UTC),
                datetime(2024, 6, 30, 8, 0, 0, 500_000, tzinfo=UTC),
            ],
        ),
        (["2024-02-30", "2024-01-01"], pl.String, ["2024-02-30", "2024-01-01"]),
        (["31.12.2024"], pl.String, ["31.12.2024"]),
        (["2024-01-01", "2024-01-01 10:00"], pl.String, ["2024-01-01", "2024-01-01 10:00"]),
        ([" a", "a ", "A", " ", "NA"], pl.String, ["a", "a", "A", None, "NA"]),
    ],
)
def test_what_the_cells_of_a_text_file_are(cells, dtype, values):
    typed = as_typed(pl.Series("x", cells), decimal_comma=False)
    assert typed.dtype == dtype and typed.to_list() == values


def test_odd_cells_are_those_of_another_form_than_most():
    cells = pl.Series("x", ["2024-01-01", "soon", "2024-01-02", "2024-01-01 10:00", ""])
    assert odd_times(cells).arg_true().to_list() == [1, 3]


def test_numbers_as_levels():
    assert as_codes(pl.Series(["007", "7.0", "NA", " "]), False).to_list() == [
        "007",
        "7",
        None,
        None,
    ]
    assert as_codes(pl.Series([1.0, 2.5, None, float("nan")]), False).to_list() == [
        *("1", "2.5"),
        *(None, None),
    ]
    assert as_codes(pl.Series([7, None]), False).to_list() == ["7", None]
    assert as_codes(pl.Series(["1.0", "beta", "NA"]), False).to_list() == ["1", "beta", "NA"]
