"""Frames as people have them: kinds by type, levels, gaps, times; in the fit and afterwards."""

import datetime as dt
import decimal
import itertools
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mixed_reading import align, read
from treeclust_rs._data import count_gaps, take_rows, warn_of_gaps
from treeclust_rs._data.scale import ColumnWarning, warn_of_columns
from treeclust_rs._data.table import (
    Table,
    collected,
    column_of,
    level_codes,
    missing_cells,
    observed_rows,
    read_table,
    shown_columns,
)
from treeclust_rs._engine import MISSING_LEVEL

DAY = 86_400_000_000


def texts(table: Table, feature: int = 0) -> list[str | None]:
    """Return the cells of a level column."""
    known = table.levels[feature]
    codes = level_codes(table, feature).tolist()
    return [None if code == MISSING_LEVEL else known[code] for code in codes]


REGIONS = ["north", "south", None, "east", "north"]
BEFORE, DAYS = dt.date(1969, 12, 31), [0, 1, None, 19_000, -1]


def all_kinds() -> dict[str, list]:
    since = [None if day is None else BEFORE + dt.timedelta(days=day) for day in DAYS]
    return {
        "region": REGIONS,
        "news": [True, None, False, True, True],
        "visits": [1, 2, None, 4, 2**40],
        "income": [0.5, float("nan"), None, 2.0, -1.0],
        "signup": since,
        "seen": [None if s is None else dt.datetime.combine(s, dt.time(1, 2, 3, 4)) for s in since],
        "stay": [None if day is None else dt.timedelta(hours=day) for day in DAYS],
    }


KINDS = ("levels", "flag", "number", "number", "date", "datetime[]", "duration")


def of_every_library() -> dict[str, tuple[object, tuple[str, ...]]]:
    """Return the same table in all libraries, and its kinds: pandas has no dates."""
    frame = pl.DataFrame(all_kinds())
    without_dates = (*KINDS[:4], "datetime[]", *KINDS[5:])
    columns = all_kinds()
    columns["visits"] = pd.array(columns["visits"], dtype="Int64")
    columns["news"] = pd.array(columns["news"], dtype="boolean")
    columns["signup"] = pd.to_datetime(pd.Series(columns["signup"]))
    pandas = pd.DataFrame(columns)
    arrow = frame.to_arrow()
    backed = pd.DataFrame({n: pd.Series(pd.arrays.ArrowExtensionArray(arrow[n])) for n in KINDS_BY})
    return {
        "polars": (frame, KINDS),
        "lazy": (frame.lazy(), KINDS),
        "categorical": (frame.cast({"region": pl.Categorical}), KINDS),
        "arrow": (arrow, KINDS),
        "batch": (arrow.to_batches()[0], KINDS),
        "pandas": (pandas, without_dates),
        "object": (pandas.astype({"region": object}), without_dates),
        "category": (pandas.astype({"region": "category"}), without_dates),
        "string": (pandas.astype({"region": "string"}), without_dates),
        "arrow-backed pandas": (backed, KINDS),
    }


KINDS_BY = list(all_kinds())


@pytest.mark.parametrize("library", of_every_library())
def test_every_library_reads_alike(library):
    frame, kinds = of_every_library()[library]
    table = read(frame)
    assert table.kinds == kinds
    assert table.levels == (("east", "north", "south"), ("false", "true"), *[None] * 5)
    assert table.gaps == (1, 1, 1, 2, 1, 1, 1)
    assert texts(table) == REGIONS
    assert texts(table, 1) == ["true", None, "false", "true", "true"]
    expected = np.array([np.nan if day is None else day - 1 for day in DAYS])
    clock = DAY // 24 + 2 * 60_000_000 + 3_000_004
    for feature, wanted in (
        (2, [1, 2, np.nan, 4, 2**40]),
        (3, [0.5, np.nan, np.nan, 2, -1]),
        (4, expected * DAY),
        (5, expected * DAY + clock),
        (6, (expected + 1) * (DAY // 24)),
    ):
        np.testing.assert_array_equal(column_of(table, feature), wanted)
    assert not table.is_plain
    # The same frame at predict is the same table.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = count_gaps(align(frame, table), 1)
    assert again.gaps == table.gaps
    for feature in range(7):
        np.testing.assert_array_equal(column_of(again, feature), column_of(table, feature))


def test_complete_numbers_are_read_as_without_mixed():
    frames = [
        pl.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}),
        pd.DataFrame(np.arange(6.0).reshape(3, 2), columns=["a", "b"]),
        pd.DataFrame({"a": pd.array([1, 2], dtype="Int64"), "b": [0.5, 1.5]}),
        np.arange(6).reshape(3, 2),
        pa.table({"a": [1, 2], "b": [0.5, 1.5]}),
    ]
    for frame in frames:
        plain = read_table(frame, estimator_name="IMM")
        mixed = read(frame)
        assert mixed.is_plain
        assert mixed.kinds is None
        assert type(mixed.data) is type(plain.data)
        for feature in range(2):
            ours, theirs = column_of(mixed, feature), column_of(plain, feature)
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
        if isinstance(plain.data, np.ndarray):
            assert np.shares_memory(mixed.data, plain.data)


def test_arrays_hold_numbers_and_gaps():
    table = read(np.array([[1, np.nan], [2, 3]], dtype=np.float32))
    assert (table.kinds, table.levels, table.gaps) == (None, None, (0, 1))
    masked = np.ma.array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]])
    assert read(masked).gaps == (0, 1)
    assert read(np.array([[1, None], [2, 3]], dtype=object)).gaps == (0, 1)
    assert read(np.array([[True, False]])).kinds is None


def test_float32_stays_where_cells_are_missing():
    frame = pl.DataFrame({"a": pl.Series([1.5, None], dtype=pl.Float32)})
    assert column_of(read(frame), 0).dtype == np.float32


@pytest.mark.parametrize("library", ["polars", "pandas", "category", "arrow"])
def test_levels_are_sorted_by_code_point_and_nothing_is_trimmed(library):
    cells = ["b", "B", " b", "", "a\0c", "é", "𐐀", "\uffff", "z", "b"]
    frame = {
        "polars": pl.DataFrame({"x": cells}),
        "pandas": pd.DataFrame({"x": cells}),
        "category": pd.DataFrame({"x": pd.Categorical(cells)}),
        "arrow": pa.table({"x": pa.array(cells).dictionary_encode()}),
    }[library]
    table = read(frame)
    assert table.levels == (tuple(sorted(set(cells))),)
    assert texts(table) == cells


def test_levels_do_not_depend_on_the_order_of_rows():
    cells = ["c", "a", "b", "a"]
    for order in itertools.permutations(range(4)):
        frame = pl.DataFrame({"x": [cells[row] for row in order]})
        for column in (frame, frame.cast({"x": pl.Categorical})):
            assert read(column).levels == (("a", "b", "c"),)


def test_declared_orders_are_kept_and_absent_levels_dropped():
    order = ["low", "mid", "high", "top"]
    cells = ["high", None, "low"]
    declared = [
        pl.DataFrame({"x": pl.Series(cells, dtype=pl.Enum(order))}),
        pd.DataFrame({"x": pd.Categorical(cells, order, ordered=True)}),
        pa.table(
            {"x": pa.DictionaryArray.from_arrays(pa.array([2, None, 0]), order, ordered=True)}
        ),
    ]
    for frame in declared:
        table = read(frame)
        assert table.levels == (("low", "high"),)
        assert texts(table) == cells
    unordered = pd.DataFrame({"x": pd.Categorical(cells, order)})
    assert read(unordered).levels == (("high", "low"),)


def test_categories_that_are_no_text_are_written():
    frame = pd.DataFrame(
        {
            "number": pd.Categorical([10, 2, None]),
            "float": pd.Categorical([0.5, 2.0, 0.5]),
            "interval": pd.cut([1, 2, 3], [0, 2, 4]),
        }
    )
    assert read(frame).levels == (
        ("10", "2"),
        ("0.5", "2.0"),
        ("(0, 2]", "(2, 4]"),
    )
    table = read(pa.table({"x": pa.array([3, None, 1]).dictionary_encode()}))
    assert texts(table) == ["3", None, "1"]


def test_booleans_are_flags_in_whatever_library_and_column():
    cells = [True, None, True]
    flags = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    frames = (
        flags,
        flags.fillna(np.nan),
        flags.astype("boolean"),
        flags.astype("category"),
        flags.astype("category").iloc[::-1],
        pl.DataFrame({"x": cells}),
        pa.table({"x": cells}),
        pa.table({"x": pa.array(cells).dictionary_encode()}),
        pd.DataFrame({"x": pd.Series(pa.array(cells)).astype(pd.ArrowDtype(pa.bool_()))}),
    )
    for frame in frames:
        table = read(frame)
        assert table.kinds == ("flag",) and table.levels == (("false", "true"),)
        assert texts(table) == ["true", None, "true"] and table.gaps == (1,)
        for other in frames:
            assert texts(align(other, table)) == ["true", None, "true"]


@pytest.mark.parametrize("bits", [128, 256])
def test_decimals_of_arrow_are_the_nearest_floats(bits):
    whole = [*range(0, 1000, 3), None]
    cells = [None if x is None else decimal.Decimal(x) / 100 for x in whole]
    decimals = pa.array(cells, getattr(pa, f"decimal{bits}")(12, 2))
    expected = [np.nan if x is None else float(x) for x in cells]
    table = pa.table({"x": decimals, "f": [True] * len(cells)})
    np.testing.assert_array_equal(column_of(read(table), 0), expected)
    np.testing.assert_array_equal(column_of(read(table.to_batches()[0]), 0), expected)
    whole = table.select(["x"]).slice(0, len(cells) - 1)
    numbers = read_table(whole, estimator_name="IMM", mixed=False)
    np.testing.assert_array_equal(column_of(numbers, 0), expected[:-1])


def test_all_values_that_pandas_calls_missing_are_missing():
    cells = [None, float("nan"), pd.NA, pd.NaT, "a"]
    table = read(pd.DataFrame({"x": pd.Series(cells, dtype=object)}))
    assert texts(table) == [None] * 4 + ["a"]
    assert table.gaps == (4,)
    nulls = pa.DictionaryArray.from_arrays([0, 1, 0], pa.array(["a", None]))
    assert texts(read(pa.table({"x": nulls}))) == ["a", None, "a"]


def test_columns_without_a_value():
    frame = pl.DataFrame(
        {"a": [1, 2], "null": [None, None], "text": pl.Series([None, None], dtype=pl.String)}
    )
    table = read(frame)
    assert table.kinds == ("number", "number", "levels")
    assert table.levels == (None, None, ())
    assert table.gaps == (0, 2, 2)


@pytest.mark.parametrize("n_levels", [1, 255, 256])
def test_at_most_255_levels(n_levels):
    cells = [f"v{i}" for i in range(n_levels)]
    for frame in (pl.DataFrame({"x": cells}), pd.DataFrame({"x": cells})):
        if n_levels == 256:
            message = "Column 'x' has 256 levels; at most 255 are taken. Is it an identifier"
            with pytest.raises(ValueError, match=message):
                read(frame)
        else:
            table = read(frame)
            assert table.n_levels(0) == n_levels
            assert texts(table) == cells
    if n_levels == 256:  # declared, but 255 occur
        declared = pl.Series([*cells[1:], cells[1]], dtype=pl.Enum(cells))
        assert read(pl.DataFrame({"x": declared})).n_levels(0) == 255


def test_decimals_of_python_are_numbers():
    cells = [decimal.Decimal("1.5"), None, decimal.Decimal("0.1"), decimal.Decimal("NaN")]
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object), "y": range(4)})
    table = read(frame)
    assert table.kinds is None and table.gaps == (2, 0)
    np.testing.assert_array_equal(column_of(table, 0), [1.5, np.nan, 0.1, np.nan])
    assert frame["x"].dtype == object
    floats = read(frame.astype({"x": float}))
    np.testing.assert_array_equal(column_of(align(frame, floats), 0), column_of(floats, 0))
    complete = read_table(frame.iloc[[0, 2]], estimator_name="IMM", mixed=False)
    assert column_of(complete, 0).tolist() == [1.5, 0.1]


@pytest.mark.parametrize(
    "cells",
    [
        [3, None, 1],
        [2.5, float("nan"), 1],
        [3, 2.5, pd.NA],
        [np.int8(3), None, 2**53],
        [10**400, 1],
    ],
)
def test_numbers_of_python_are_numbers(cells):
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object), "y": range(len(cells))})
    assert frame["x"].dtype == object
    if cells[0] == 10**400:
        with pytest.raises(ValueError, match="'x' has 1 inf"):
            read(frame)
        return
    table = read(frame)
    assert table.kinds is None
    expected = [np.nan if pd.isna(cell) else float(cell) for cell in cells]
    np.testing.assert_array_equal(column_of(table, 0), expected)


def test_categories_that_are_written_alike_are_refused():
    for categories, other in ((["1", 1, 2], "1"), ([True, "True"], "True"), ([0.5, "0.5"], "0.5")):
        column = pd.Categorical(categories, categories)
        said = "Column 'x' has categories of several types that are written alike: "
        said += f"'{other}', as text and as {other}. Give them one type"
        with pytest.raises(TypeError, match=re.escape(said)):
            read(pd.DataFrame({"x": column}))
    assert read(pd.DataFrame({"x": pd.Categorical(["1", 2], ["1", 2])})).levels == (("1", "2"),)


@pytest.mark.parametrize(
    ("cells", "types"),
    [
        ([1.0, "a", None, True], r"numbers \(1.0 in row 0\), text \('a' in row 1\), booleans"),
        ([1, "1"], r"numbers \(1 in row 0\), text \('1' in row 1\)"),
        ([True, None, "true"], r"booleans \(True in row 0\), text \('true' in row 2\)"),
        ([1, True], r"numbers \(1 in row 0\), booleans \(True in row 1\)"),
    ],
)
def test_objects_of_several_types_are_refused(cells, types):
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    with pytest.raises(TypeError, match=rf"Column 'x' holds objects of several types: {types}"):
        read(frame)
    text = frame.assign(x=frame["x"].astype("string"))
    assert read(text).kinds == ("levels",)


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([[1], [2]]),
        pl.Series([{"a": 1}]),
        pl.Series([dt.time(1)]),
        pl.Series([b"a"]),
        pl.Series([object()], dtype=pl.Object),
        pd.Series(pd.period_range("2020", periods=2)),
        pd.Series(pd.arrays.IntervalArray.from_breaks([0, 1, 2])),
        pa.array([dt.time(1)]),
        pa.array([[1]]),
        pa.array([dt.date(2020, 1, 1)]).dictionary_encode(),
    ],
    ids=lambda column: str(getattr(column, "dtype", getattr(column, "type", None))),
)
def test_other_types_are_refused_by_name(column):
    frames = {"polars": pl.DataFrame, "pandas": pd.DataFrame, "pyarrow": pa.table}
    frame = frames[type(column).__module__.partition(".")[0]]({"odd one": column})
    with pytest.raises(TypeError, match=r"'odd one' \(.*\. Make numbers, text or dates of it"):
        read(frame)


@pytest.mark.parametrize("cell", [[1], {"a": 1}, dt.date(2020, 1, 1), b"a", (1, 2)])
def test_objects_of_pandas_that_are_no_text_are_refused(cell):
    frame = pd.DataFrame({"x": pd.Series(["a", cell], dtype=object)})
    with pytest.raises(TypeError, match=r"Column 'x' holds objects: .* in row 1"):
        read(frame)


def test_a_lone_surrogate_is_refused():
    frame = pd.DataFrame({"x": pd.Series(["a", "\ud800"], dtype=object)})
    with pytest.raises(ValueError, match=r"Column 'x' has a level named .* lone surrogate"):
        read(frame)


def test_inf_is_refused_by_name_and_row():
    frame = pl.DataFrame({"a": ["x"] * 4, "b": [1.0, None, np.inf, -np.inf]})
    with pytest.raises(ValueError, match=r"contains inf: column 'b' has 2 inf, the first in row 2"):
        read(frame)
    with pytest.raises(ValueError, match=r"column x1 has 1 inf, the first in row 1"):
        read(np.array([[1, np.nan], [2, np.inf]]))
    wide = read_table(frame, estimator_name="IMM", mixed=True)
    assert count_gaps(wide, 1, np.array([0])).gaps is None


def test_no_rows_and_no_columns():
    for frame in (pl.DataFrame({"x": pl.Series([], dtype=pl.String)}), pd.DataFrame({"x": []})):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            read(frame)
    for frame in (pl.DataFrame(), pd.DataFrame(index=[0, 1])):
        with pytest.raises(ValueError, match=r"0 (sample|feature)\(s\)"):
            read(frame)


def test_a_lazy_frame_is_checked_before_it_is_collected():
    collected_rows = []

    def count(frame: pl.DataFrame) -> pl.DataFrame:
        collected_rows.append(len(frame))
        return frame

    schema = {"a": pl.String, "b": pl.Time}
    bad = pl.LazyFrame({"a": ["x"], "b": [dt.time(1)]}).map_batches(count, schema=schema)
    with pytest.raises(TypeError, match="'b'"):
        collected(bad, "IMM", mixed=True)
    assert not collected_rows
    good = pl.LazyFrame({"a": ["x", None]}).map_batches(count, schema={"a": pl.String})
    table = read(good)
    assert collected_rows == [2]
    align(good, table)
    assert collected_rows == [2, 2]


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        (pl.Datetime("ms", "Europe/Berlin"), "datetime[Europe/Berlin]"),
        (pl.Datetime("ns"), "datetime[]"),
        (pl.Datetime("us", "UTC"), "datetime[UTC]"),
    ],
)
def test_zones_are_kept(dtype, kind):
    instants = pl.Series([0, None, 1], dtype=pl.Int64).cast(dtype)
    frame = pl.DataFrame({"t": instants})
    expected = {"ms": 1000.0, "us": 1.0, "ns": 0.0}[dtype.time_unit]
    for given in (frame, frame.to_arrow(), frame.to_pandas()):
        table = read(given)
        assert table.kinds == (kind,)
        np.testing.assert_array_equal(column_of(table, 0), [0.0, np.nan, expected])


def test_fixed_offsets_are_zones():
    when = pd.to_datetime(["1970-01-01T01:00+01:00", "1970-01-01T02:00+01:00"])
    table = read(pd.DataFrame({"t": when}))
    assert table.kinds == ("datetime[UTC+01:00]",)
    assert column_of(table, 0).tolist() == [0, DAY // 24]
    arrow = pa.table({"t": pa.array([0], pa.timestamp("s", "+05:30"))})
    assert read(arrow).kinds == ("datetime[+05:30]",)


def test_complete_times_are_integers_and_far_ones_are_refused():
    table = read(pl.DataFrame({"t": [dt.date(2020, 1, 1)]}))
    assert column_of(table, 0).dtype == np.int64
    assert table.is_plain
    far = pl.DataFrame({"t": [dt.date(2020, 1, 1), dt.date(9999, 12, 31)]})
    with pytest.raises(ValueError, match=r"'t' has 1 cell beyond 285 years .* row 1"):
        read(far)


# Prediction


@pytest.fixture(scope="module")
def fitted() -> Table:
    return read(pl.DataFrame(all_kinds()))


def test_unknown_levels_are_missing_with_one_warning(fitted):
    frame = pl.DataFrame({"region": ["west", "north", None, "West"]})
    table = read(pl.DataFrame({"region": REGIONS}))
    with pytest.warns(UserWarning, match="has levels that IMM did not see") as caught:
        found = align(frame, table)
    assert len(caught) == 1
    assert "column 'region' has 'West', 'west'. They count as missing." in str(caught[0].message)
    assert texts(found) == [None, "north", None, None]


def test_unknown_levels_are_no_new_gaps():
    fitted = read(pl.DataFrame({"region": ["north", "west"], "x": [1.0, 2.0]}))
    frame = pl.DataFrame({"region": ["mars", "west", "moon"], "x": [1.0, None, 3.0]})
    with pytest.warns(UserWarning, match="did not see in the fit: column 'region' has 'mars'"):
        table = count_gaps(align(frame, fitted), 1)
    assert table.gaps == (2, 1)
    with pytest.warns(UserWarning, match="had none: column 'x' has 1 missing cell. Such"):
        warn_of_gaps(table, None)
    shown = shown_columns(table)
    assert shown[0].tolist() == ["mars", "west", "moon"]
    np.testing.assert_array_equal(shown[1], [1, np.nan, 3])
    with pytest.warns(UserWarning, match="did not see in the fit"):
        table = count_gaps(align(pl.DataFrame({"region": [None, "mars"], "x": [1, 2]}), fitted), 1)
    with pytest.warns(UserWarning, match="had none: column 'region' has 1 missing cell. Such"):
        warn_of_gaps(table, None)
    assert shown_columns(table)[0].tolist() == [None, "mars"]


def test_declared_categories_of_another_order_are_matched_by_text():
    table = read(pl.DataFrame({"x": ["a", "b", "c"]}))
    cells = ["c", None, "a"]
    for frame in (
        pl.DataFrame({"x": pl.Series(cells, dtype=pl.Enum(["z", "c", "b", "a"]))}),
        pd.DataFrame({"x": pd.Categorical(cells, ["c", "b", "a", "z"])}),
        pa.table({"x": pa.array(cells).dictionary_encode()}),
    ):
        # "z" was declared, but no row has it.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert texts(align(frame, table)) == cells


def test_only_needed_columns_are_read(fitted):
    frame = pl.DataFrame({"visits": [None, 3], "region": ["north", "east"], "news": [[1], [2]]})
    table = align(frame, fitted, needed=[0, 2])
    assert texts(table) == ["north", "east"]
    np.testing.assert_array_equal(column_of(table, 2), [np.nan, 3])
    assert count_gaps(table, 1, np.array([0, 2])).gaps == (0, 0, 1, 0, 0, 0, 0)
    nothing = align(frame, fitted, needed=[])
    assert nothing.n_samples == 2


def test_a_column_without_a_value_is_of_every_type(fitted):
    nulls = {name: [None, None] for name in KINDS_BY}
    for frame in (pl.DataFrame(nulls), pd.DataFrame(nulls), pa.table(nulls)):
        table = count_gaps(align(frame, fitted), 1)
        assert table.gaps == (2,) * 7
    floats = pd.DataFrame({name: [np.nan, np.nan] for name in KINDS_BY})
    assert count_gaps(align(floats, fitted), 1).gaps == (2,) * 7


@pytest.mark.parametrize(
    ("name", "cells", "words"),
    [
        ("region", [1, 2], "held text when IMM was fitted, and now holds numbers"),
        ("visits", ["1", "2"], "held numbers when IMM was fitted, and now holds text"),
        ("signup", [1.5, 2], "held dates .* now holds numbers"),
        ("news", [0, 1], "held booleans when IMM was fitted, and now holds numbers"),
        ("seen", [dt.timedelta(1)], "held times without a zone .* now holds durations"),
        (
            "seen",
            [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)],
            "held times without a zone .* times in UTC",
        ),
    ],
)
def test_columns_of_another_kind_are_refused_by_name(fitted, name, cells, words):
    with pytest.raises(TypeError, match=f"Column '{name}' {words}"):
        align(pl.DataFrame({name: cells}), fitted, needed=[KINDS_BY.index(name)])


def test_kinds_that_mean_the_same(fitted):
    midnight = [dt.datetime(1970, 1, 2, 5)]
    found = align(pl.DataFrame({"signup": midnight}), fitted, needed=[4])
    assert column_of(found, 4).tolist() == [DAY]
    found = align(pl.DataFrame({"seen": [dt.date(1970, 1, 2)]}), fitted, needed=[5])
    assert column_of(found, 5).tolist() == [DAY]
    found = align(pl.DataFrame({"news": ["true", "false"]}), fitted, needed=[1])
    assert texts(found, 1) == ["true", "false"]
    written = pl.DataFrame({"news": ["True", "FALSE", None, "false", "yes"]})
    with pytest.warns(UserWarning, match="column 'news', true and false in the fit, has 'yes'"):
        found = align(written, fitted, needed=[1])
    assert texts(found, 1) == ["true", "false", None, "false", None]
    found = align(pl.DataFrame({"visits": [True, None]}), fitted, needed=[2])
    np.testing.assert_array_equal(column_of(found, 2), [1, np.nan])
    zoned = read(pl.DataFrame({"t": pl.Series([0]).cast(pl.Datetime("us", "UTC"))}))
    other = pl.DataFrame({"t": pl.Series([5]).cast(pl.Datetime("us", "Asia/Kolkata"))})
    assert column_of(align(other, zoned), 0).tolist() == [5]


def test_arrays_are_refused_where_the_fit_had_other_things(fitted):
    with pytest.raises(TypeError, match=r"Column 'region' held text .* Give a frame"):
        align(np.zeros((2, 7)), fitted)
    # Their width is checked, their other columns are not read.
    numbers = read(np.array([[1.0, np.nan], [2, 3]]))
    found = align(np.array([[np.nan, 2.0]]), numbers)
    assert count_gaps(found, 1).gaps == (1, 0)
    with pytest.raises(ValueError, match="X has 3 features"):
        align(np.zeros((2, 3)), numbers)


def test_new_gaps_are_warned_of():
    table = read(
        pl.DataFrame(
            {"age": [None, None, 1], "b": [1, None, 2], "c": ["x", "y", None], "d": [1] * 3}
        )
    )
    message = "column 'age' has 2 missing cells; column 'c' has 1 missing cell. Such rows"
    with pytest.warns(UserWarning, match=message) as caught:
        warn_of_gaps(table, (0, 7, 0, 0))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_gaps(table, (1, 1, 1, 0))
        warn_of_gaps(read(np.ones((2, 2))), None)


# Rows


def test_taken_rows_count_their_gaps(fitted):
    kept = np.array([True, True, False, True, True])
    few = take_rows(fitted, kept)
    assert few.gaps == (0, 1, 0, 1, 0, 0, 0)
    assert few.levels == fitted.levels
    assert texts(few) == ["north", "south", "east", "north"]
    none = take_rows(fitted, np.array([True, False, False, False, False]))
    assert none.gaps is None
    assert not none.is_plain
    assert missing_cells(few, 2) is None
    assert missing_cells(few, 1).tolist() == [False, True, False, False]


def test_rows_without_an_observed_cell():
    frame = pl.DataFrame({"a": [1.0, None, None], "b": ["x", None, "y"]})
    assert observed_rows(read(frame)).tolist() == [True, False, True]
    assert observed_rows(read(frame[[0, 2]])) is None
    assert observed_rows(read(pl.DataFrame({"a": ["x"]}))) is None


# Warnings


@pytest.mark.parametrize(
    ("columns", "warned"),
    [
        ({"user_id": ["a", "b", "c"]}, "'user_id' looks like an identifier .text, all different"),
        ({"userID": ["a", "b", None]}, "text, all different"),
        ({"Id": [3, None, 1]}, "integers, all different"),
        ({"id": ["a", "b", "c"], "ID": [1, 2, 3]}, "identifiers .integers or text, all different"),
        ({"paid": ["a", "b", "c"]}, None),
        ({"id": ["a", "b", "b"]}, None),
        ({"id": [None, "b", None]}, None),
    ],
)
def test_identifiers_are_warned_of(columns, warned):
    table = read(pl.DataFrame({"x": [1.0, 2.0, 3.5], **columns}))
    units = np.ones(table.n_features)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_columns(table, None, units, "standard")
    assert [w.category for w in caught] == [ColumnWarning] * (warned is not None)
    if warned:
        assert re.search(warned, str(caught[0].message))


def test_a_column_that_decides_alone_is_found_among_levels_and_gaps():
    rng = np.random.default_rng(0)
    table = read(
        pl.DataFrame(
            {
                "a": rng.choice(["x", "y"], 300),
                "b": np.where(rng.random(300) < 0.1, np.nan, rng.normal(0, 100, 300)),
                "c": pl.Series([None] * 300, dtype=pl.Float64),
            }
        )
    )
    with pytest.warns(ColumnWarning, match=r"Column 'b' has 99.9 % of the variance"):
        warn_of_columns(table, None, np.ones(3), None)


def test_decimals_and_wide_integers_with_gaps():
    frame = pl.DataFrame({"d": [decimal.Decimal("1.5"), None]})
    np.testing.assert_array_equal(column_of(read(frame), 0), [1.5, np.nan])
    np.testing.assert_array_equal(column_of(read(frame.to_arrow()), 0), [1.5, np.nan])
    wide = pl.DataFrame({"d": pl.Series([1, None], dtype=pl.Int128)})
    np.testing.assert_array_equal(column_of(read(wide), 0), [1, np.nan])


def test_columns_of_pandas_that_are_sparse():
    cells = pd.arrays.SparseArray([0.0, np.nan, 2.0])
    table = read(pd.DataFrame({"x": cells}))
    np.testing.assert_array_equal(column_of(table, 0), [0, np.nan, 2])


def test_categories_read_as_their_texts_read():
    rng = np.random.default_rng(0)
    known = [None, "", "a", "A", "b ", "é", *(f"level {i}" for i in range(30))]
    for n in (1, 2, 50):
        cells = [[known[i] for i in rng.integers(0, len(known), 3 * n)] for _ in range(2)]
        cells[1] = [None] * n + cells[1][n:]
        plain = pl.DataFrame(
            {"u": cells[0], "v": cells[1]}, schema={"u": pl.String, "v": pl.String}
        )
        # One pool of categories for both columns, most of which no row has.
        frame = plain.cast(pl.Categorical)
        for rows in (slice(0, n), slice(n, 3 * n)):
            found, wanted = read(frame[rows]), read(plain[rows])
            assert found.levels == wanted.levels and found.gaps == wanted.gaps
            for feature in range(2):
                codes = [level_codes(table, feature) for table in (found, wanted)]
                np.testing.assert_array_equal(*codes)
