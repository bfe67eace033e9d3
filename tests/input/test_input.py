"""What users hand over becomes one table: dtypes, memory, names, and the text of every refusal."""

from __future__ import annotations

import datetime
import decimal
import importlib.util
import re
import subprocess
import sys
import types
import warnings

import numpy as np
import pandas
import polars as pl
import pytest
from scipy import sparse

import treeclust_rs as tc
from treeclust_rs._data.checks import check_finite, check_sample_weight
from treeclust_rs._data.kinds import MIXED_TABLES, TO_A_KIND
from treeclust_rs._data.table import Table, align_table, collected, read_table, take_rows

CORE_DTYPES = [
    *(np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)),
    np.dtype(bool),
    np.dtype(np.float32),
    np.dtype(np.float64),
]


def read(X) -> Table:
    return read_table(X, estimator_name="ExKMC")


def align(X, names, n_features=None) -> Table:
    n_features = len(names) if n_features is None else n_features
    return align_table(X, names, n_features, estimator_name="ExKMC")


def columns(table: Table) -> list[np.ndarray]:
    return table.data if isinstance(table.data, list) else list(table.data.T)


def dense(table: Table) -> np.ndarray:
    return np.column_stack(columns(table))


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def assert_readable(table: Table) -> None:
    """Check what the core relies on."""
    assert table.n_samples >= 1
    assert table.n_features == len(columns(table))
    for column in columns(table):
        assert column.shape == (table.n_samples,)
        assert column.dtype in CORE_DTYPES
        assert column.dtype.isnative
        assert column.flags.aligned


@pytest.fixture
def core(monkeypatch):
    """Stand in for the compiled module where it has not been built."""
    if importlib.util.find_spec("treeclust_rs._core") is not None:
        return

    def find_non_finite(data, n_jobs):
        found = []
        for number, column in enumerate(data if isinstance(data, list) else list(data.T)):
            bad = ~np.isfinite(column)
            if bad.any():
                nan, inf = int(np.isnan(column).sum()), int(np.isinf(column).sum())
                found.append((number, nan, inf, int(bad.argmax())))
        return found

    module = types.ModuleType("treeclust_rs._core")
    module.find_non_finite = find_non_finite
    monkeypatch.setitem(sys.modules, "treeclust_rs._core", module)


# --- arrays -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", CORE_DTYPES, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_array_of_a_core_dtype_is_not_copied(dtype, order):
    X = np.asarray(np.arange(12).reshape(4, 3) % 2, dtype=dtype, order=order)
    table = read(X)
    assert table.data is X
    assert (table.n_samples, table.n_features, table.feature_names) == (4, 3, None)
    assert_readable(table)


@pytest.mark.parametrize(
    "view",
    [
        lambda X: X[::2],
        lambda X: X[:, ::3],
        lambda X: X[::-1, ::-1],
        lambda X: X.T,
        lambda X: np.broadcast_to(X[:1], (5, X.shape[1])),
    ],
    ids=["rows", "columns", "reversed", "transposed", "broadcast"],
)
def test_strided_view_is_not_copied(view):
    X = view(np.arange(60.0).reshape(10, 6))
    table = read(X)
    assert address(table.data) == address(X)
    assert table.data.strides == X.strides
    assert_readable(table)


def test_read_only_array_and_memmap_are_not_copied(tmp_path):
    X = np.arange(6.0).reshape(3, 2)
    X.flags.writeable = False
    assert read(X).data is X
    X.tofile(tmp_path / "x.bin")
    mapped = np.memmap(tmp_path / "x.bin", dtype=np.float64, mode="r", shape=(3, 2))
    assert np.shares_memory(read(mapped).data, mapped)


@pytest.mark.parametrize(
    ("given", "expected"),
    [(np.float16, np.float32), (np.longdouble, np.float64), (">f8", "<f8"), (">i2", "<i2")],
    ids=["float16", "longdouble", "big-endian float", "big-endian int"],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_foreign_numbers_are_converted(given, expected, order):
    X = np.asarray(np.arange(6).reshape(3, 2), dtype=given, order=order)
    table = read(X)
    assert table.data.dtype == np.dtype(expected)
    assert table.data.flags[f"{order}_CONTIGUOUS"], "the memory order is kept"
    np.testing.assert_array_equal(table.data, np.arange(6).reshape(3, 2))
    assert_readable(table)


def test_unaligned_array_is_copied():
    packed = np.zeros(4, dtype=[("flag", "u1"), ("x", "f8", (2,))])
    packed["x"] = np.arange(8).reshape(4, 2)
    assert not packed["x"].flags.aligned
    table = read(packed["x"])
    np.testing.assert_array_equal(table.data, np.arange(8).reshape(4, 2))
    assert_readable(table)


def test_array_likes():
    class Holder:
        def __array__(self, dtype=None, copy=None):
            return np.eye(2)

    np.testing.assert_array_equal(read([[1, 2], [3, 4]]).data, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(read([[1, 2.5]]).data, [[1, 2.5]])
    np.testing.assert_array_equal(read(((True, False),)).data, [[True, False]])
    np.testing.assert_array_equal(read(Holder()).data, np.eye(2))
    np.testing.assert_array_equal(read([[2**70, 1]]).data, [[2.0**70, 1]])


def test_object_array_of_numbers_becomes_float64(core):
    X = np.array([[1, 2.5], [decimal.Decimal("0.5"), True]], dtype=object)
    table = read(X)
    np.testing.assert_array_equal(table.data, [[1, 2.5], [0.5, 1]])
    assert table.data.dtype == np.float64
    with_none = read(np.array([[1, 2], [None, 3]], dtype=object))
    with pytest.raises(ValueError, match="NaN: column x0 has 1 NaN, the first in row 1"):
        check_finite(with_none, 1)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (
            np.arange(3.0),
            ValueError,
            "Expected 2D array, got 1D array instead (a ndarray of shape (3,)). Reshape your data "
            "either using array.reshape(-1, 1) if your data has a single feature or "
            "array.reshape(1, -1) if it contains a single sample.",
        ),
        ([1, 2], ValueError, "Expected 2D array, got 1D array instead (a list of shape (2,))"),
        (
            np.array(["a text", "another"]),
            ValueError,
            "Expected 2D array, got 1D array instead (a ndarray of shape (2,)) of texts. Make "
            "numbers of them, for example by scikit-learn's TfidfVectorizer,",
        ),
        (["a text", None], ValueError, "(a list of shape (2,)) of texts. Make numbers of them"),
        (3.0, ValueError, "Expected 2D array, got scalar array instead (a float of shape ())"),
        ("x.csv", TypeError, "X is 'x.csv', a str: read the file first"),
        (None, TypeError, "X is None: give a table"),
        (
            {"a": np.arange(12.0)},
            TypeError,
            "X is a dict: give a table, for example polars.DataFrame(X).",
        ),
        (
            [{"a": 1.0, "b": 2.0}],
            TypeError,
            "X is a list of dicts: give a table, for example polars.DataFrame(X).",
        ),
        (
            np.zeros((2, 3, 4)),
            ValueError,
            "Found array with dim 3 (shape=(2, 3, 4)), while dim <= 2 is required by ExKMC.",
        ),
        (
            np.zeros((0, 3)),
            ValueError,
            "Found array with 0 sample(s) (shape=(0, 3)) while a minimum of 1 is required by "
            "ExKMC. X has no rows.",
        ),
        (
            np.zeros((12, 0)),
            ValueError,
            "Found array with 0 feature(s) (shape=(12, 0)) while a minimum of 1 is required by "
            "ExKMC. X has no columns.",
        ),
        ([[]], ValueError, "Found array with 0 feature(s) (shape=(1, 0))"),
        (np.zeros((2, 2), complex), ValueError, "Complex data not supported: X has dtype complex"),
        (np.zeros(2, complex), ValueError, "Complex data not supported"),
        (
            np.array([["1", "b"]]),
            ValueError,
            "ExKMC needs numbers and takes no arrays of bytes/strings, but X has dtype <U1. Encode "
            f"the strings as numbers, or drop those columns. {MIXED_TABLES}",
        ),
        (np.array([[b"1"]]), ValueError, "no arrays of bytes/strings, but X has dtype |S1"),
        (
            np.zeros((2, 1), "M8[D]"),
            TypeError,
            "ExKMC needs numbers, but X has dtype datetime64[D]. Convert dates and durations to "
            f"numbers first, such as days since some day, or drop them. {MIXED_TABLES}",
        ),
        (
            np.array([[1.0, 2], [3, {"foo": "bar"}]], dtype=object),
            TypeError,
            "X must hold numbers, but row 1 of column x1 holds {'foo': 'bar'}: float() argument "
            "must be a string or a real number, not 'dict'",
        ),
        (
            np.array([[1.0, "b"]], dtype=object),
            ValueError,
            "X must hold numbers, but row 0 of column x1 holds 'b': could not convert string to "
            "float: 'b'",
        ),
        (np.array([[10**400]], dtype=object), ValueError, "row 0 of column x0 holds 1000"),
        ([[1, 2], [3]], ValueError, "Input X cannot be read as an array of numbers: setting an"),
        (
            np.ma.masked_equal([[1, 2], [3, 9], [9, 5]], 9),
            ValueError,
            "Input X contains null (masked entries, that is NaN): 2 in all, the first in row 1 "
            f"(counting from 0). Fill or drop them first. {MIXED_TABLES}",
        ),
        (np.matrix([[1]]), TypeError, "np.matrix is not supported."),
        (
            sparse.csr_array(np.eye(3)),
            TypeError,
            "ExKMC takes no sparse input, but got a csr_array of 3 x 3. "
            'IMM, ExKMC, BestTree, Kauri (kernel="linear", "cosine" or "hellinger"), '
            'ObliqueTree(metric="cosine", splits="oblique"), KernelKMeans (kernel="linear", '
            '"cosine", "hellinger", "polynomial" or "rbf") and, with these kernels, KernelExpand '
            "and KernelExKMC (base_tree=None), all without approximation, take sparse rows. A "
            "dense copy, X.toarray(), would take 72 bytes; in a Pipeline, "
            "OneHotEncoder(sparse_output=False) "
            "returns dense rows, and TruncatedSVD makes few columns of texts.",
        ),
        (
            sparse.coo_matrix((2_000_000, 50_000), dtype=np.float32),
            TypeError,
            "a coo_matrix of 2,000,000 x 50,000.",
        ),
        (
            sparse.csr_array((2_000_000, 50_000), dtype=np.float32),
            TypeError,
            "would take 373 GiB;",
        ),
    ],
)
@pytest.mark.parametrize("entry", [read, lambda X: align(X, None, 2)], ids=["fit", "predict"])
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_refused_arrays(entry, X, error, message):
    with pytest.raises(error, match=re.escape(message)):
        entry(X)


def test_masked_array_without_masked_entries_is_read():
    np.testing.assert_array_equal(read(np.ma.masked_array([[1, 2]], mask=False)).data, [[1, 2]])


# --- NaN and inf --------------------------------------------------------------------------------


def test_nan_and_inf_name_columns_counts_and_first_row(core):
    X = np.arange(20.0).reshape(5, 4)
    check_finite(read(X), 1)
    X[[2, 4], 1] = np.nan
    message = (
        "Input X contains NaN: column x1 has 2 NaN, the first in row 2 (rows count from 0). Fill "
        f"these cells, or drop their rows or columns. {MIXED_TABLES}"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        check_finite(read(X), 1)
    X[3, 1] = X[1, 3] = -np.inf
    message = (
        "Input X contains NaN and inf: column 'b' has 2 NaN and 1 inf, the first in row 2; "
        "column 'd' has 1 inf, the first in row 1 (rows"
    )
    for frame in (pl.DataFrame(X, schema=list("abcd")), pl.LazyFrame(X, schema=list("abcd"))):
        with pytest.raises(ValueError, match=re.escape(message)):
            check_finite(read(frame), 2)
    with pytest.raises(ValueError, match=re.escape("Input X contains inf: column x1 has 1 inf")):
        check_finite(read(X[:2, 2:].astype(np.float32)), 1)


def test_many_bad_columns_are_counted_not_listed(core):
    with pytest.raises(
        ValueError, match=re.escape("column x4 has 1 NaN, the first in row 0 and 3")
    ):
        check_finite(read(np.full((1, 8), np.nan)), 1)


def test_integers_need_no_finite_check(monkeypatch):
    monkeypatch.setitem(sys.modules, "treeclust_rs._core", None)
    check_finite(read(np.ones((2, 2), dtype=np.int32)), 1)
    check_finite(read(pl.DataFrame({"a": [1, 2], "b": [True, False]})), 1)


def test_longdouble_beyond_float64_is_inf_without_a_warning(core):
    X = np.array([[np.finfo(np.longdouble).max, 1]])
    if X.dtype.itemsize == 8:
        pytest.skip("longdouble is float64 here")
    with pytest.raises(ValueError, match="inf: column x0 has 1 inf"):
        check_finite(read(X), 1)


# --- polars -------------------------------------------------------------------------------------


def test_polars_columns_are_not_copied():
    frame = pl.DataFrame(
        {
            str(dtype): pl.Series([1, 0, 1]).cast(dtype)
            for dtype in (
                *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32),
                *(pl.UInt64, pl.Float32, pl.Float64),
            )
        }
    )
    table = read(frame)
    assert table.feature_names == frame.columns
    for series, column in zip(frame, table.data, strict=True):
        assert address(column) == address(series.to_numpy(allow_copy=False))
        assert column.dtype == np.dtype(str(series.dtype).lower())
        np.testing.assert_array_equal(column, [1, 0, 1])
    assert_readable(table)
    part = frame.slice(1)
    assert address(read(part).data[3]) == address(table.data[3]) + 8


def test_polars_columns_without_a_view_are_converted():
    frame = pl.DataFrame(
        {
            "bits": [True, False, True],
            "half": pl.Series([0.5, 1.5, 2.5], dtype=pl.Float16),
            "wide": pl.Series([1, 2, 2**70], dtype=pl.Int128),
            "money": pl.Series([decimal.Decimal("1.25")] * 3),
        }
    )
    table = read(frame)
    assert [str(column.dtype) for column in table.data] == ["bool", "float32", "float64", "float64"]
    np.testing.assert_array_equal(
        dense(table), [[1, 0.5, 1, 1.25], [0, 1.5, 2, 1.25], [1, 2.5, 2.0**70, 1.25]]
    )
    assert_readable(table)


def test_polars_chunks_are_joined_column_by_column():
    whole = pl.Series("whole", [1.0, 2.0, 3.0])
    parts = pl.Series("parts", [1, 2]).append(pl.Series("parts", [3]))
    flags = pl.Series("flags", [True]).append(pl.Series("flags", [False, True]))
    frame = pl.DataFrame([whole, parts, flags])
    assert frame["parts"].n_chunks() == 2
    table = read(frame)
    assert address(table.data[0]) == address(whole.to_numpy(allow_copy=False))
    np.testing.assert_array_equal(dense(table), [[1, 1, 1], [2, 2, 0], [3, 3, 1]])
    assert_readable(table)


def test_polars_view_outlives_the_frame():
    table = read(pl.DataFrame({"a": np.arange(100_000.0)}))
    junk = [np.full(100_000, -1.0) for _ in range(5)]
    np.testing.assert_array_equal(table.data[0], np.arange(100_000.0))
    assert len(junk) == 5


def test_lazy_frame_is_collected():
    frame = pl.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5]})
    table = read(frame.lazy().filter(pl.col("a") > 1).with_columns(c=pl.col("a") * 2))
    assert table.feature_names == ["a", "b", "c"]
    np.testing.assert_array_equal(dense(table), [[2, 1.5, 4], [3, 2.5, 6]])


@pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])
def test_polars_names_that_look_like_patterns(lazy):
    frame = pl.DataFrame({"*": [1], "^a.*$": [2], "ab": [3], "": [4]})
    X = frame.lazy() if lazy else frame
    np.testing.assert_array_equal(dense(read(X)), [[1, 2, 3, 4]])
    np.testing.assert_array_equal(dense(align(X, ["", "^a.*$", "*"])), [[4, 2, 1]])


@pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])
def test_polars_null_is_an_error(lazy):
    frame = pl.DataFrame(
        {
            "a": [1.0, 2.0, 3.0],
            "b": [1, None, None],
            "c": [True, True, None],
            "d": pl.Series([None] * 3, dtype=pl.Null),
        }
    )
    X = frame.lazy() if lazy else frame
    message = (
        "Input X contains null (missing values, that is NaN): column 'b' has 2 null, the first in "
        "row 1; column 'c' has 1 null, the first in row 2; column 'd' has 3 null, the first in row "
        "0 (rows count from 0). Fill these cells, or drop their rows or columns. "
        f"{MIXED_TABLES}"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        read(X)
    with pytest.raises(ValueError, match=re.escape("column 'b' has 2 null, the first in row 1")):
        align(X, ["b", "a"])
    np.testing.assert_array_equal(dense(align(X, ["a"])), [[1], [2], [3]])


def not_numbers(dtype, hint="", *, of_no_kind):
    """Return the message of a column of a type; of those of no kind no method is named."""
    hint, others = (f"{hint}, {TO_A_KIND}", "") if of_no_kind else (hint, f" {MIXED_TABLES}")
    return (
        f"X has a column that is not numbers: 'town' ({dtype}). ExKMC needs numbers: encode it "
        f"(for instance one-hot, or a date as days since some day{hint}) or drop it.{others}"
    )


@pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])
@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["x", "y"], "String"),
        (pl.Series(["x", "y"], dtype=pl.Categorical), "Categorical"),
        (pl.Series(["x", "y"], dtype=pl.Enum(["x", "y"])), "Enum(categories=['x', 'y'])"),
        ([datetime.date(2020, 1, 1)] * 2, "Date"),
        ([datetime.datetime(2020, 1, 1)] * 2, "Datetime(time_unit='us', time_zone=None)"),
        ([datetime.timedelta(1)] * 2, "Duration(time_unit='us')"),
        ([[1.0], [2.0]], "List(Float64)"),
        ([{"k": 1}] * 2, "Struct({'k': Int64})"),
        ([b"x", b"y"], "Binary"),
        ([datetime.time(1)] * 2, "Time"),
    ],
)
def test_polars_column_that_is_not_numbers(values, dtype, lazy):
    frame = pl.DataFrame({"age": [1, 2], "town": values})
    message = not_numbers(dtype, of_no_kind=dtype.startswith(("List", "Struct", "Binary", "Time")))
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        read(frame.lazy() if lazy else frame)


def test_collected_takes_lazy_frames_only():
    nw = importlib.import_module("narwhals")
    frame = pl.DataFrame({"a": [1, 2], "b": [3.0, 4.0]})
    for X in (frame, frame.to_numpy(), [[1]], None, nw.from_native(frame)):
        assert collected(X, "ExKMC") is X
    for X in (frame.lazy(), nw.from_native(frame.lazy())):
        found = collected(X, "ExKMC")
        assert isinstance(found, pl.DataFrame) and found.equals(frame)
    with pytest.raises(TypeError, match="ExKMC needs numbers"):
        collected(frame.lazy().with_columns(s=pl.lit("x")), "ExKMC")
    with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 0\)\)"):
        collected(pl.LazyFrame(), "ExKMC")


def test_lazy_frame_with_strings_is_refused_before_it_is_collected():
    frame = pl.LazyFrame({"a": [1], "b": [2.0], "s": ["x"]})
    bomb = frame.with_columns(
        pl.col("a").map_batches(lambda series: 1 / 0, return_dtype=pl.Int64, is_elementwise=True)
    )
    with pytest.raises(TypeError, match=re.escape("not numbers: 's' (String).")):
        read(bomb)
    np.testing.assert_array_equal(dense(align(bomb, ["b"])), [[2]])


def test_several_columns_that_are_not_numbers():
    frame = pl.DataFrame({f"c{i}": ["x"] for i in range(7)})
    with pytest.raises(
        TypeError,
        match=re.escape("X has columns that are not numbers: 'c0' (String), 'c1' (String), ")
        + ".*"
        + re.escape("'c4' (String) and 2 more columns. ExKMC needs numbers: encode them (for"),
    ):
        read(frame)


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (pl.DataFrame(), "0 sample(s) (shape=(0, 0))"),
        (pl.LazyFrame(), "0 sample(s) (shape=(0, 0))"),
        (pl.DataFrame({"a": [], "b": []}), "0 sample(s) (shape=(0, 2))"),
        (pl.LazyFrame({"a": [1], "b": [2]}).filter(pl.col("a") > 1), "0 sample(s) (shape=(0, 2))"),
    ],
)
def test_empty_polars_frame(frame, text):
    message = f"Found array with {text} while a minimum of 1 is required by ExKMC."
    with pytest.raises(ValueError, match=re.escape(message)):
        read(frame)


# --- pandas -------------------------------------------------------------------------------------


def test_pandas_columns_are_not_copied():
    pd = importlib.import_module("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1, 2], "c": [True, False], "d": [0.5, 1.5]})
    frame["f"] = np.array([1, 2], dtype=np.float32)
    frame["h"] = np.array([1, 2], dtype=np.float16)
    table = read(frame)
    assert table.feature_names == list("abcdfh")
    for name, column in zip("abcdf", table.data, strict=False):
        assert np.shares_memory(column, frame[name].to_numpy())
        assert column.dtype == frame[name].dtype
    assert table.data[5].dtype == np.float32
    np.testing.assert_array_equal(dense(table), frame.to_numpy(dtype=float))
    assert_readable(table)


@pytest.mark.parametrize("order", ["C", "F"])
def test_pandas_frame_of_one_block_stays_one_array(order):
    pd = importlib.import_module("pandas")
    X = np.asarray(np.arange(12.0).reshape(4, 3), order=order)
    frame = pd.DataFrame(X, columns=list("abc"), copy=False)
    table = read(frame)
    assert isinstance(table.data, np.ndarray)
    assert np.shares_memory(table.data, X)
    assert table.data.flags[f"{order}_CONTIGUOUS"]
    assert_readable(table)
    turned = align(frame, ["c", "a"])
    assert isinstance(turned.data, list)
    assert np.shares_memory(turned.data[0], X)
    np.testing.assert_array_equal(dense(turned), X[:, [2, 0]])
    one = read(frame[["b"]])
    assert one.n_features == 1
    np.testing.assert_array_equal(dense(one), X[:, [1]])


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("Int64", "int64"),
        ("UInt8", "uint8"),
        ("Float32", "float32"),
        ("Float64", "float64"),
        ("boolean", "bool"),
        ("Sparse[float64]", "float64"),
        ("Sparse[int64]", "int64"),
    ],
)
def test_pandas_extension_columns_are_converted(dtype, expected):
    pd = importlib.import_module("pandas")
    frame = pd.DataFrame({"a": pd.Series([1, 0, 1]).astype(dtype), "b": [1.5, 2.5, 3.5]})
    table = read(frame)
    assert table.data[0].dtype == np.dtype(expected)
    np.testing.assert_array_equal(dense(table), [[1, 1.5], [0, 2.5], [1, 3.5]])
    assert_readable(table)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean"])
def test_pandas_missing_value_is_an_error(dtype):
    pd = importlib.import_module("pandas")
    frame = pd.DataFrame({"a": [1.0] * 3, "b": pd.array([1, None, None], dtype=dtype)})
    with pytest.raises(
        ValueError,
        match=re.escape(
            "Input X contains null (missing values, that is NaN): column 'b' has 2 null, the first "
            "in row 1 (rows count from 0)."
        ),
    ):
        read(frame)
    np.testing.assert_array_equal(dense(align(frame, ["a"])), np.ones((3, 1)))


def test_pandas_arrow_backed_columns():
    pd = importlib.import_module("pandas")
    pa = importlib.import_module("pyarrow")
    values = {
        "int64[pyarrow]": "int64",
        "uint16[pyarrow]": "uint16",
        "float[pyarrow]": "float32",
        "double[pyarrow]": "float64",
        "bool[pyarrow]": "bool",
        pd.ArrowDtype(pa.decimal128(30, 2)): "float64",
    }
    frame = pd.DataFrame({str(dtype): pd.Series([1, 0, 1]).astype(dtype) for dtype in values})
    frame.index = [7, 8, 9]
    table = read(frame)
    assert [str(column.dtype) for column in table.data] == list(values.values())
    np.testing.assert_array_equal(dense(table), np.outer([1, 0, 1], np.ones(len(values))))
    assert_readable(table)
    frame["gap"] = pd.array([1, 2, None], dtype="int64[pyarrow]")
    with pytest.raises(
        ValueError, match=re.escape("column 'gap' has 1 null, the first in row 2 (")
    ):
        read(frame)


def test_pandas_nan_in_a_float_column(core):
    pd = importlib.import_module("pandas")
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan]}, index=["x", "y"])
    with pytest.raises(ValueError, match="NaN: column 'b' has 1 NaN, the first in row 1"):
        check_finite(read(frame), 1)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["x", "y"], "str"),
        ([1, {"k": 1}], "object"),
        ([1, decimal.Decimal("0.5")], "object"),
        (["2020-01-01", "2020-01-02"], "datetime64[us]"),
        (["x", "y"], "category"),
        (["2020-01-01", "2020-01-02"], "period[D]"),
    ],
)
def test_pandas_column_that_is_not_numbers(values, dtype):
    pd = importlib.import_module("pandas")
    frame = pd.DataFrame({"age": [1, 2], "town": pd.Series(values, dtype=dtype)})
    hint = ", or Python numbers by astype(float)" if dtype == "object" else ""
    message = not_numbers(dtype, hint, of_no_kind=dtype == "period[D]")
    with pytest.raises(TypeError, match=re.escape(message)):
        read(frame)


def test_pandas_complex_column():
    pd = importlib.import_module("pandas")
    with pytest.raises(ValueError, match="Complex data not supported"):
        read(pd.DataFrame({"a": [1.0], "z": [1 + 2j]}))


def test_pandas_column_names():
    pd = importlib.import_module("pandas")
    X = np.eye(2)
    assert read(pd.DataFrame(X)).feature_names is None
    assert read(pd.DataFrame(X, columns=[("a", 1), ("b", 2)])).feature_names is None
    assert read(pd.DataFrame(X, columns=["a", "b"])).feature_names == ["a", "b"]
    with pytest.raises(
        TypeError,
        match=re.escape(
            "Feature names are only supported if all input features have string names, but your "
            "input has ['int', 'str'] as column name types."
        ),
    ):
        read(pd.DataFrame(X, columns=["a", 1]))
    with pytest.raises(
        ValueError,
        match=re.escape("X has duplicate column names: 'a'. Rename or drop the repeated columns."),
    ):
        read(pd.DataFrame(X, columns=["a", "a"]))


def test_empty_pandas_frame():
    pd = importlib.import_module("pandas")
    with pytest.raises(ValueError, match=re.escape("0 sample(s) (shape=(0, 0)) while a minimum")):
        read(pd.DataFrame())
    with pytest.raises(ValueError, match=re.escape("0 sample(s) (shape=(0, 1)) while a minimum")):
        read(pd.DataFrame({"a": np.zeros(0)}))
    with pytest.raises(ValueError, match=re.escape("0 feature(s) (shape=(3, 0)) while a minimum")):
        read(pd.DataFrame(index=range(3)))


def test_a_single_column_is_refused():
    pd = importlib.import_module("pandas")
    pa = importlib.import_module("pyarrow")
    for series in (pl.Series([1.0]), pd.Series([1.0]), pa.array([1.0]), pa.chunked_array([[1.0]])):
        with pytest.raises(
            ValueError,
            match=r"Expected a 2-dimensional container but got <class .*> instead. Pass a "
            r"DataFrame containing a single column \(i.e. single feature\) or a single row \(i.e. "
            r"single sample\) instead.",
        ):
            read(series)


# --- pyarrow, narwhals, other frames ------------------------------------------------------------


def test_pyarrow_columns_are_not_copied():
    pa = importlib.import_module("pyarrow")
    table = pa.table(
        {
            "a": [1.0, 2.0],
            "b": pa.array([1, 2], pa.int8()),
            "c": [True, False],
            "d": pa.array([decimal.Decimal("1.50")] * 2),
            "e": pa.array([0.5, 1.5], pa.float16()),
            "f": pa.array([decimal.Decimal("-7.5")] * 2, pa.decimal256(60, 1)),
        }
    )
    for X in (table, table.to_batches()[0]):
        read_back = read(X)
        assert read_back.feature_names == list("abcdef")
        assert address(read_back.data[0]) == table["a"].chunk(0).buffers()[1].address
        assert address(read_back.data[1]) == table["b"].chunk(0).buffers()[1].address
        np.testing.assert_array_equal(
            dense(read_back), [[1, 1, 1, 1.5, 0.5, -7.5], [2, 2, 0, 1.5, 1.5, -7.5]]
        )
        assert_readable(read_back)


def test_pyarrow_chunks_and_slices():
    pa = importlib.import_module("pyarrow")
    table = pa.table(
        {
            "a": pa.chunked_array([[1.0, 2.0], [], [3.0]], type=pa.float64()),
            "b": pa.chunked_array([[True], [False, True], []], type=pa.bool_()),
        }
    )
    np.testing.assert_array_equal(dense(read(table)), [[1, 1], [2, 0], [3, 1]])
    np.testing.assert_array_equal(dense(read(table.slice(1))), [[2, 0], [3, 1]])
    assert_readable(read(table))


def test_pyarrow_nulls_types_and_names():
    pa = importlib.import_module("pyarrow")
    with pytest.raises(
        ValueError, match=re.escape("NaN): column 'b' has 1 null, the first in row")
    ):
        read(pa.table({"a": [1, 2], "b": [None, 2.5]}))
    with pytest.raises(
        TypeError, match=re.escape("are not numbers: 's' (string), 't' (dictionary<values=string, ")
    ):
        read(pa.table({"a": [1], "s": ["x"], "t": pa.array(["x"]).dictionary_encode()}))
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=list("aab"))
    with pytest.raises(ValueError, match="X has duplicate column names: 'a'"):
        read(twice)
    np.testing.assert_array_equal(dense(align(twice, ["b"])), [[3]])
    with pytest.raises(ValueError, match="X has duplicate column names: 'a'"):
        align(twice, ["a"])
    with pytest.raises(ValueError, match=re.escape("0 sample(s) (shape=(0, 1))")):
        read(pa.table({"a": pa.array([], pa.float64())}))


def test_narwhals_and_frames_that_export_arrow():
    nw = importlib.import_module("narwhals")

    class Exporter:
        def __init__(self, frame):
            self.frame = frame

        def __arrow_c_stream__(self, requested_schema=None):
            return self.frame.__arrow_c_stream__(requested_schema)

    frame = pl.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    for X in (nw.from_native(frame), nw.from_native(frame.lazy()), Exporter(frame)):
        table = read(X)
        assert table.feature_names == ["a", "b"]
        np.testing.assert_array_equal(dense(table), [[1, 3], [2, 4]])
    assert address(read(nw.from_native(frame)).data[0]) == address(read(frame).data[0])


def test_pandas_and_pyarrow_are_not_needed():
    code = (
        "import sys\n"
        "sys.modules['pandas'] = sys.modules['pyarrow'] = None\n"  # importing them fails
        "import numpy as np, polars as pl\n"
        "from treeclust_rs._data.table import read_table, align_table\n"
        "read_table(np.eye(2), estimator_name='e')\n"
        "align_table(pl.LazyFrame({'a': [1], 's': ['x']}), ['a'], 1, estimator_name='e')\n"
        "assert sys.modules['pandas'] is sys.modules['pyarrow'] is None\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- predict ------------------------------------------------------------------------------------


def as_pandas(data):
    return importlib.import_module("pandas").DataFrame(data)


def as_pyarrow(data):
    return importlib.import_module("pyarrow").table(data)


FRAMES = [
    pytest.param(pl.DataFrame, id="polars"),
    pytest.param(pl.LazyFrame, id="lazy"),
    pytest.param(as_pandas, id="pandas"),
    pytest.param(as_pyarrow, id="pyarrow"),
]


@pytest.mark.parametrize("frame", FRAMES)
def test_frame_is_matched_by_name(frame):
    X = frame({"town": ["x", "y"], "b": [3.0, 4.0], "gap": [1.0, None], "a": [1, 2]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = align(X, ["a", "b"])
    assert table.feature_names == ["a", "b"]
    np.testing.assert_array_equal(dense(table), [[1, 3], [2, 4]])
    assert_readable(table)


@pytest.mark.parametrize("frame", FRAMES)
def test_missing_columns_are_named(frame):
    X = frame({"b": [3.0], "extra": [1]})
    message = (
        "The feature names should match those that were passed during fit. X lacks 2 of the 3 "
        "columns that are needed: 'a', 'c'."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        align(X, ["a", "b", "c"])
    renamed = frame({"b": [3.0], " Income": [1], "visit": [2], "other": [3]})
    with pytest.raises(ValueError, match=r"'towns'\. It has similar names: ' Income', 'visit'\.$"):
        align(renamed, ["income", "b", "visits", "towns"])
    with pytest.raises(ValueError, match=re.escape("'n4' and 15 more columns.")):
        align(X, [f"n{i}" for i in range(20)])


@pytest.mark.parametrize("frame", FRAMES)
def test_needed_column_of_strings_at_predict(frame):
    with pytest.raises(TypeError, match=r"X has a column that is not numbers: 'a' \(.*\)\."):
        align(frame({"a": ["x"], "b": [1]}), ["b", "a"])


def test_array_of_the_wrong_width():
    with pytest.raises(
        ValueError, match=r"^X has 3 features, but ExKMC is expecting 4 features as input\.$"
    ):
        align(np.zeros((2, 3)), None, 4)


def test_array_after_a_frame_is_matched_by_position():
    X = np.eye(2)
    message = "^X does not have valid feature names, but ExKMC was fitted with feature names$"
    with pytest.warns(UserWarning, match=message):
        table = align(X, ["a", "b"])
    assert table.data is X
    assert table.feature_names == ["a", "b"]
    pd = importlib.import_module("pandas")
    with pytest.warns(UserWarning, match=message):
        np.testing.assert_array_equal(dense(align(pd.DataFrame(X), ["a", "b"])), X)


@pytest.mark.parametrize("frame", FRAMES)
def test_frame_after_an_array_is_matched_by_position(frame):
    with pytest.warns(
        UserWarning, match="^X has feature names, but ExKMC was fitted without feature names$"
    ):
        table = align(frame({"b": [1.0], "a": [2.0]}), None, 2)
    assert table.feature_names is None
    np.testing.assert_array_equal(dense(table), [[1, 2]])
    with (
        pytest.warns(UserWarning, match="X has feature names"),
        pytest.raises(ValueError, match="X has 1 features, but ExKMC is expecting 2 features"),
    ):
        align(frame({"b": [1.0]}), None, 2)


def test_frame_without_string_names_after_an_array_gives_no_warning():
    pd = importlib.import_module("pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        align(pd.DataFrame(np.eye(2)), None, 2)
        align(np.eye(2), None, 2)


def test_pandas_names_of_mixed_types_are_matched_by_name():
    pd = importlib.import_module("pandas")
    frame = pd.DataFrame([[1.0, 2.0]], columns=["a", 0])
    np.testing.assert_array_equal(dense(align(frame, ["a"])), [[1]])


# --- weights and rows ---------------------------------------------------------------------------


def test_sample_weight_forms():
    assert check_sample_weight(None, 3) is None
    expected = np.array([1.0, 0.0, 2.0])
    for given in (
        expected,
        [1, 0, 2],
        (1.0, 0, 2),
        np.array([1, 0, 2], np.int8),
        pl.Series([1, 0, 2]),
    ):
        weight = check_sample_weight(given, 3)
        assert weight.dtype == np.float64
        assert weight.flags.c_contiguous
        np.testing.assert_array_equal(weight, expected)
    assert check_sample_weight(expected, 3) is expected
    for scalar in (2, 2.0, np.float32(2), np.array(2)):
        np.testing.assert_array_equal(check_sample_weight(scalar, 3), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(check_sample_weight([True, False], 2), [1, 0])
    np.testing.assert_array_equal(check_sample_weight(np.arange(6.0)[::2], 3), [0, 2, 4])
    pd = importlib.import_module("pandas")
    np.testing.assert_array_equal(
        check_sample_weight(pd.Series([1, 0, 2], dtype="Int64"), 3), expected
    )


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            [1.0, 2.0],
            ValueError,
            "sample_weight has 2 entries, but X has 3 rows: give one weight a row.",
        ),
        (
            np.ones((3, 1)),
            ValueError,
            "Sample weights must be 1D array or scalar, got 2D array of shape (3, 1). Expected 3 "
            "weights, one a row of X.",
        ),
        (
            [1.0, -1.0, -2.0],
            ValueError,
            "sample_weight contains negative values: 2 of 3, the first in row 1 (counting from 0). "
            "Weights must be finite and not negative.",
        ),
        ([1, 2, np.nan], ValueError, "sample_weight contains NaN (or null): 1 of 3, the first in"),
        ([1, np.inf, 2], ValueError, "sample_weight contains inf: 1 of 3, the first in row 1 ("),
        (pl.Series([1, 2, None]), ValueError, "contains NaN (or null): 1 of 3, the first in row 2"),
        (-1, ValueError, "sample_weight contains negative values: 3 of 3, the first in row 0"),
        (
            [0, 0, 0],
            ValueError,
            "sample_weight is zero in all 3 rows: at least one weight must be positive.",
        ),
        (0, ValueError, "sample_weight is zero in all 3 rows"),
        ([1, 1e308, 0], ValueError, "1 entry outside of 1e-150 to 1e+150, the first, 1e+308, in"),
        ([5e-324] * 3, ValueError, "3 entries outside of 1e-150 to 1e+150, the first, 5e-324, in"),
        (["a", "b", "c"], TypeError, "sample_weight must hold numbers: got dtype <U1."),
        ("balanced", TypeError, "sample_weight must hold numbers: got dtype <U8."),
        ([1j, 1, 1], TypeError, "sample_weight must hold numbers: got dtype complex128."),
        ([1, {}, 1], TypeError, "sample_weight must hold numbers: float() argument must be"),
    ],
)
def test_refused_sample_weight(given, error, message):
    with pytest.raises(error, match=re.escape(message)):
        check_sample_weight(given, 3)


def test_refused_pandas_sample_weight():
    pd = importlib.import_module("pandas")
    with pytest.raises(ValueError, match=re.escape("NaN (or null): 1 of 2, the first in row 1")):
        check_sample_weight(pd.Series([1, None], dtype="Int64"), 2)


@pytest.mark.parametrize("order", ["C", "F"])
def test_take_rows_copies_and_keeps_dtype_and_order(order):
    X = np.asarray(np.arange(15).reshape(5, 3), dtype=np.int16, order=order)
    mask = np.array([True, False, True, True, False])
    table = take_rows(align(X, None, 3), mask)
    assert (table.n_samples, table.n_features) == (3, 3)
    assert table.data.dtype == np.int16
    assert table.data.flags[f"{order}_CONTIGUOUS"]
    assert not np.shares_memory(table.data, X)
    np.testing.assert_array_equal(table.data, X[mask])


def test_take_rows_of_columns_and_bad_masks():
    table = read(pl.DataFrame({"a": [1.0, 2.0], "b": [True, False]}))
    part = take_rows(table, np.array([False, True]))
    assert part.feature_names == ["a", "b"]
    assert [column.dtype for column in part.data] == [np.float64, np.bool_]
    np.testing.assert_array_equal(dense(part), [[2, 0]])
    with pytest.raises(ValueError, match=r"bool array of shape \(2,\), got bool of shape \(3,\)"):
        take_rows(table, np.ones(3, dtype=bool))
    with pytest.raises(ValueError, match="bool array of shape"):
        take_rows(table, np.array([0, 1]))


ESTIMATORS = sorted(name for name in tc.__all__ if hasattr(getattr(tc, name), "fit"))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_refuses_names_that_no_file_can_hold(name):
    names = pandas.Index(["a", "b\ud800"], dtype=object)
    frame = pandas.DataFrame(np.arange(16.0).reshape(8, 2), columns=names)
    with pytest.raises(ValueError, match=r"X has a column named 'b\\ud800', .*Rename it"):
        getattr(tc, name)(2).fit(frame)


def test_names_that_no_file_can_hold_are_ignored_in_columns_that_are_not_used():
    frame = pandas.DataFrame(np.arange(16.0).reshape(8, 2), columns=["a", "b"])
    model = tc.IMM(2, random_state=0).fit(frame[["a"]])
    frame.columns = pandas.Index(["a", "b\ud800"], dtype=object)
    assert model.predict(frame).tolist() == model.labels_.tolist()
