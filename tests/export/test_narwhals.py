"""Expressions of narwhals in the libraries that are installed."""

from __future__ import annotations

import builtins
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from export_cases import random_case
from mixed_trees import (
    MixedBuilder,
    frame_of,
    moved_a_little,
    random_cells,
    random_tree,
    whole_milliseconds,
)
from sizes import repeats
from treeclust_rs.export import to_narwhals_expr
from treeclust_rs.tree import ClusterTree
from trees import NAN, Builder, balanced, chain

nw = pytest.importorskip("narwhals")

# narwhals says that its support of Dask will be a package of its own.
pytestmark = pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")

NUMBER = "row number"


def polars(frame):
    return frame


def polars_lazy(frame):
    return frame.lazy()


def pandas(frame):
    pytest.importorskip("pandas")
    return frame.to_pandas()


def pandas_arrow(frame):
    pytest.importorskip("pandas")
    return frame.to_pandas(use_pyarrow_extension_array=True)


def pandas_nullable(frame):
    pytest.importorskip("pandas")
    return frame.to_pandas().convert_dtypes(dtype_backend="numpy_nullable")


def pyarrow(frame):
    pytest.importorskip("pyarrow")
    return frame.to_arrow()


def duckdb(frame):
    return pytest.importorskip("duckdb").from_arrow(frame.to_arrow())


def dask(frame):
    frames = pytest.importorskip("dask.dataframe")
    return frames.from_pandas(frame.to_pandas(use_pyarrow_extension_array=True), npartitions=2)


def dask_numpy(frame):
    return pytest.importorskip("dask.dataframe").from_pandas(frame.to_pandas(), npartitions=2)


def ibis(frame):
    return pytest.importorskip("ibis").memtable(frame.to_arrow())


LIBRARIES = (
    polars,
    polars_lazy,
    pandas,
    pandas_arrow,
    pandas_nullable,
    pyarrow,
    duckdb,
    dask,
    dask_numpy,
    ibis,
)
every_library = pytest.mark.parametrize("library", LIBRARIES, ids=lambda make: make.__name__)


def clusters(expression: nw.Expr, frame: pl.DataFrame, library) -> list:
    rows = nw.from_native(library(frame.with_row_index(NUMBER))).select(NUMBER, expression)
    if isinstance(rows, nw.LazyFrame):
        rows = rows.collect()
    labels = rows.sort(NUMBER)["cluster"].to_list()
    # pandas has NaN for null, and then floats for integers.
    return [None if x is None or x != x else x if isinstance(x, str) else int(x) for x in labels]


def is_run(tree: ClusterTree, frame: pl.DataFrame, library) -> bool:
    """Whether the library has what the tree compares."""
    tested = [tree.feature_names[feature] for feature in tree.tested_features]
    if library is ibis:
        return not any(dtype == pl.Duration for dtype in frame[tested].dtypes)
    if library in (pyarrow, pandas_arrow, dask):  # refuse to make floats of larger integers
        whole = frame[tested].select(pl.col(pl.Int64))
        return all(column.abs().max() <= 2**53 for column in whole)
    return True


@every_library
def test_random_models_agree_with_predict(library):
    for seed in range(repeats(50, 1000)):
        tree, frame, labels = random_case(seed, 60)
        if is_run(tree, frame, library):
            found = clusters(to_narwhals_expr(tree), frame, library)
            assert found == labels, f"seed {seed}"


@every_library
def test_100_000_rows_agree_with_predict(library):
    for seed in (2, 5, 15, 19):
        tree, frame, labels = random_case(seed, 100_000)
        if is_run(tree, frame, library):
            assert clusters(to_narwhals_expr(tree), frame, library) == labels


@pytest.mark.parametrize("library", [polars, polars_lazy, pandas, pandas_arrow, pyarrow])
def test_nanoseconds_belong_to_the_microsecond_before_them(library):
    for seed in range(repeats(12, 200)):
        tree = moved_a_little(random_tree(seed), seed)
        cells = random_cells(np.random.default_rng(seed), 60)
        frame = frame_of(cells, np.random.default_rng(seed), unit="ns")
        labels = tree.predict(cells).tolist()
        assert clusters(to_narwhals_expr(tree), frame, library) == labels


@every_library
def test_bounds_between_the_milliseconds_of_a_column(library):
    for seed in range(repeats(12, 200)):
        tree = moved_a_little(random_tree(seed), seed)
        cells = whole_milliseconds(random_cells(np.random.default_rng(seed), 60))
        frame = frame_of(cells, np.random.default_rng(seed), unit="ms")
        if is_run(tree, frame, library):
            labels = tree.predict(cells).tolist()
            assert clusters(to_narwhals_expr(tree), frame, library) == labels, f"seed {seed}"


# Ibis takes a time that clocks show twice for the first of both.
@pytest.mark.parametrize("library", LIBRARIES[:-1])
def test_times_that_occur_twice_are_told_apart(library):
    # In Berlin clocks went from 3:00 back to 2:00 at 1:00 UTC.
    turn = 1_729_990_800_000_000
    cells = np.full((5, 8), NAN)
    cells[:, 5] = turn + np.array([-3600, -1, 0, 1, 3600]) * 1_000_000
    frame = frame_of(cells, np.random.default_rng(0))
    for threshold in cells[:, 5]:
        builder = MixedBuilder(random_cells(np.random.default_rng(1), 60), np.arange(60) % 3)
        builder.test(0, 5, at_most=threshold)
        tree = ClusterTree(**builder.tree().arguments() | {"cluster": np.array([0, 0, 1])})
        labels = tree.predict(cells).tolist()
        assert clusters(to_narwhals_expr(tree), frame, library) == labels


@every_library
def test_the_largest_trees_run(library):
    X = np.random.default_rng(0).integers(0, 40, (100, 5)).astype(float)
    for tree in (chain(120), balanced(128)):
        frame = pl.DataFrame(
            X[:, : tree.n_features], schema=[f"x{j}" for j in range(tree.n_features)]
        )
        labels = tree.predict(frame.to_numpy()).tolist()
        assert clusters(to_narwhals_expr(tree), frame, library) == labels


@every_library
def test_the_largest_sums_run_below_the_deepest_tests(library):
    X = np.random.default_rng(0).normal(size=(100, 60))
    builder = Builder(X, np.arange(100) % 3)
    node = 0
    for depth in range(60):
        node = builder.split(node, depth, float(X[:, depth].max()))
    builder.oblique(node, dict(enumerate(X[0])), 0.1)
    tree = builder.tree()
    assert (tree.node_depth + tree.n_node_features).max() == 120
    frame = pl.DataFrame(X, schema=[f"x{j}" for j in range(60)])
    assert clusters(to_narwhals_expr(tree), frame, library) == tree.predict(X).tolist()


@pytest.mark.parametrize("dtype", [object, "category", "boolean", bool, "bool[pyarrow]"])
def test_flags_in_all_columns_of_pandas(dtype):
    pd = pytest.importorskip("pandas")
    cells = [True, True, False, False]
    frame = pd.DataFrame({"f": pd.Series(cells, dtype=object).astype(dtype)})
    model = tc.ExKMC(reference=[0, 0, 1, 1]).fit(frame)
    assert model.predict(frame).tolist() == [0, 0, 1, 1]
    for native in (frame, pl.from_pandas(frame)):
        found = nw.from_native(native).with_columns(model.to_narwhals())["cluster"].to_list()
        assert found == [0, 0, 1, 1]
    assert pl.from_pandas(frame).select(model.to_polars()).to_series().to_list() == [0, 0, 1, 1]


@pytest.mark.parametrize("library", [polars, pandas, duckdb, ibis, pyarrow])
def test_decimals_on_thresholds(library):
    cells = [Decimal(x) / 100 for x in range(0, 1000, 7)]
    frame = pl.DataFrame({"x0": cells}, schema={"x0": pl.Decimal(12, 2)})
    X = frame.cast(pl.Float64).to_numpy()
    wrong = 0
    for threshold in X[:, 0].tolist():
        builder = Builder(X, [0] * len(X), 2)
        builder.split(0, 0, threshold)
        tree = ClusterTree(**builder.tree().arguments() | {"cluster": np.array([0, 0, 1])})
        labels = tree.predict(X).tolist()
        wrong += clusters(to_narwhals_expr(tree), frame, library) != labels
    # Its floats of decimals are not the nearest: so says the docstring.
    assert (wrong > 0) == (library is pyarrow)


def test_pyarrow_refuses_integers_that_are_no_floats():
    frame = pl.DataFrame({f"x{j}": [2**53 + 1] for j in range(5)})
    with pytest.raises(pytest.importorskip("pyarrow").ArrowInvalid, match="not in range"):
        clusters(to_narwhals_expr(chain(3)), frame, pyarrow)


def test_models_too_large_are_refused_with_the_number():
    with pytest.raises(ValueError, match=r"nested 121 deep .* nested 120 deep"):
        to_narwhals_expr(chain(122))
    with pytest.raises(ValueError, match=r"4,096 leaves or cells, .*at most 4,000"):
        to_narwhals_expr(balanced(4096))


@pytest.mark.parametrize("name", ["*", "^b$"])
def test_names_that_are_patterns_of_polars_are_refused(name):
    tree = ClusterTree(**chain(3).arguments() | {"feature_names": ["a", name, "c", "d", "e"]})
    with pytest.raises(ValueError, match=r"takes the name .* for a pattern"):
        to_narwhals_expr(tree)


def test_models_write_their_tree():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(rng.normal(size=(300, 3)), schema=["a", "b", "c d"])
    for model in (tc.ExKMC(3, max_leaves=6), tc.Kauri(3, max_leaves=5)):
        model.fit(frame)
        assert clusters(model.to_narwhals(), frame, pandas) == model.predict(frame).tolist()
        rows = nw.from_native(frame).with_columns(model.to_narwhals()).to_native()
        assert rows.columns == [*frame.columns, "cluster"]
        assert rows["cluster"].dtype == pl.Int64


@every_library
def test_the_cells_of_douglas(library):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(rng.normal(size=(300, 3)), schema=["a", "b", "c d"])
    model = tc.Douglas(3, n_cuts=2, random_state=0, max_iter=20).fit(frame)
    b = pl.col("b")
    rows = frame.with_columns(pl.when(b > 1).then(None).otherwise(b))
    labels = rows.select(model.to_polars()).to_series().to_list()
    assert clusters(model.to_narwhals(), rows, library) == labels


def test_without_narwhals_the_error_says_what_to_install(monkeypatch):
    def refused(name, *arguments, **keywords):
        if name == "narwhals":
            raise ImportError(name)
        return imported(name, *arguments, **keywords)

    imported = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", refused)
    with pytest.raises(ImportError, match="pip install narwhals"):
        to_narwhals_expr(chain(3))
