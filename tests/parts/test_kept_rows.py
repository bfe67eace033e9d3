"""What fit_batches keeps of the rows between its readings."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import treeclust_rs as tc
from parts_cases import model_of, rows, same
from parts_frames import centers_for, mixed_frame
from treeclust_rs.parts import fit_batches
from treeclust_rs.parts.batches import source_of
from treeclust_rs.parts.kept import size_of

N, SIZE = 1000, 100
BYTES = 3 * 8 * SIZE  # of a batch


def pa_table(X):
    return pa.table({f"x{i}": column for i, column in enumerate(X.T)})


@pytest.fixture
def counted():
    """Rows, and a function that gives them in batches and counts those that it gave."""
    X, centers = rows(np.random.default_rng(3), N, d=3)
    given = []

    def batches():
        for start in range(0, N, SIZE):
            given.append(start)
            yield X[start : start + SIZE]

    return X, centers, batches, given


@pytest.mark.parametrize(
    "memory_limit", [None, 0, BYTES - 1, BYTES, 3 * BYTES, 10 * BYTES, 1 << 40]
)
def test_as_many_rows_are_held_as_fit(counted, memory_limit):
    X, _, batches, given = counted
    kept = source_of(batches).kept(memory_limit or 0)
    given.clear()
    for reading in range(3):
        found = list(kept.batches())
        np.testing.assert_array_equal(np.concatenate(found), X)
        held = min((memory_limit or 0) // BYTES, 10)
        # A function gives all of its batches again, those that are held are passed over.
        assert len(given) == 10 * (reading + 1 if held < 10 else 1)
        assert all(np.shares_memory(batch, X) for batch in found)
    assert len(kept._held) == held


@pytest.mark.parametrize(
    ("frame", "limit", "n_readings"),
    [
        (pl.DataFrame, 10 * BYTES, 1),
        (pl.DataFrame, 10 * BYTES - 1, 3),
        (pa_table, 1 << 26, 1),
        (pd.DataFrame, 1 << 26, 3),  # may change
        (np.array, 1 << 26, 3),
    ],
)
def test_small_rows_that_do_not_change_are_held_by_default(
    counted, frame, limit, n_readings, monkeypatch
):
    _, _, batches, given = counted
    monkeypatch.setattr("treeclust_rs.parts.kept.SMALL", limit)
    kept = source_of(lambda: map(frame, batches())).kept(None)
    given.clear()
    for _ in range(3):
        assert sum(map(len, kept.batches())) == N
    assert len(given) == 10 * n_readings
    assert len(kept._held) == (10 if n_readings == 1 else 0)


def test_a_query_is_read_from_the_first_row_that_is_not_held():
    X, _ = rows(np.random.default_rng(4), 200_000, d=3)
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    kept = source_of(frame.lazy()).kept(2_000_000)
    for _ in range(3):
        assert pl.concat(kept.batches()).equals(frame)
    n_held = sum(map(len, kept._held))
    assert 0 < n_held <= 2_000_000 // 24
    seen = []
    kept._after = lambda batches, n_rows: seen.append((batches, n_rows)) or []
    assert list(kept.batches()) == kept._held
    assert seen == [(len(kept._held), n_held)]


def test_a_reading_that_breaks_off_is_begun_again(counted):
    X, _, batches, _ = counted
    kept = source_of(batches).kept(3 * BYTES)
    next(kept.batches())
    for _ in range(2):
        np.testing.assert_array_equal(np.concatenate(list(kept.batches())), X)
    assert len(kept._held) == 3


@pytest.mark.parametrize("memory_limit", [None, 0, 3 * BYTES, 1 << 40])
def test_the_tree_is_that_of_memory(counted, memory_limit, tmp_path):
    X, centers, batches, _ = counted
    expected = model_of(centers).fit(X)
    same(fit_batches(model_of(centers), batches, memory_limit=memory_limit), expected)
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    frame.write_csv(tmp_path / "rows.csv")
    expected = model_of(centers).fit(frame)
    for source in (frame.lazy(), tmp_path / "rows.csv"):
        for cache in (None, "auto", tmp_path):
            found = fit_batches(model_of(centers), source, memory_limit=memory_limit, cache=cache)
            same(found, expected)
            assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


@pytest.mark.filterwarnings("ignore:.*nearer to the center of another:UserWarning")
@pytest.mark.parametrize("seed", range(3))
def test_a_folder_keeps_columns_of_all_kinds(seed, tmp_path):
    rng = np.random.default_rng(seed)
    frame = mixed_frame(rng, 300).with_columns(
        region=pl.col("region").cast(pl.Categorical),
        count=pl.col("count").cast(pl.Decimal(10, 2)),
        amount=pl.col("amount").cast(pl.Float32),
        none=pl.lit(None),
    )
    centers = centers_for(rng, frame, 3)
    expected = model_of(centers, max_leaves=6).fit(frame)
    same(fit_batches(model_of(centers, max_leaves=6), frame.lazy(), cache=tmp_path), expected)
    labelled = frame.with_columns(group=pl.Series(expected.labels_), w=pl.lit(2.0))
    labelled = labelled.with_columns(pl.col("group").cast(pl.String))
    options = {"reference": "group", "sample_weight": "w"}
    model, plain = (tc.ExKMC(max_leaves=5, base_tree=None) for _ in range(2))
    fit_batches(model, labelled.lazy(), cache=tmp_path, memory_limit=5000, **options)
    same(model, fit_batches(plain, labelled, **options))
    assert not list(tmp_path.iterdir())


def test_a_query_runs_once_where_a_folder_keeps_its_rows(tmp_path):
    X, centers = rows(np.random.default_rng(5), 500, d=2)
    frame, runs = pl.DataFrame(X, schema=["a", "b"]), []

    def counting(batch):
        runs.append(1)
        return batch

    query = frame.lazy().map_batches(counting, schema=frame.schema)
    for cache in (tmp_path, "auto"):
        fit_batches(model_of(centers), query, cache=cache)
        assert len(runs) == 1, cache
        runs.clear()
    fit_batches(model_of(centers), query, cache=None)
    assert len(runs) > 2


def test_a_fit_that_fails_leaves_no_file(tmp_path):
    frame = pl.DataFrame({"a": [0.0, 1.0, float("inf")], "b": [0.0, 1.0, 2.0]})
    model = model_of(np.array([[0.0, 0.0], [1.0, 1.0]]))
    with pytest.raises(ValueError, match="'a'"):
        fit_batches(model, frame.lazy(), cache=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("limit", [-1, 1.5, True, "1 GB"])
def test_limits_that_are_no_bytes_are_refused(limit):
    with pytest.raises(ValueError, match=r"memory_limit must be a number of bytes.* Got "):
        fit_batches(tc.ExKMC(2, base_tree=None), np.zeros((4, 2)), memory_limit=limit)


def test_folders_that_cannot_keep_rows_are_refused(tmp_path):
    X, centers = rows(np.random.default_rng(6), 50, d=2)
    with pytest.raises(FileNotFoundError, match="none is no folder"):
        fit_batches(model_of(centers), pl.DataFrame(X).lazy(), cache=tmp_path / "none")
    for batches in (X, [X], lambda: [X], pl.DataFrame(X)):
        with pytest.raises(TypeError, match="memory_limit holds rows in memory"):
            fit_batches(model_of(centers), batches, cache=tmp_path)


def test_sizes_of_batches():
    X = np.zeros((10, 3))
    for batch in (X, pl.DataFrame(X), pd.DataFrame(X), pa.table({"a": X[:, 0], "b": X[:, 1]})):
        assert 160 <= size_of(batch) <= 400, type(batch)
    assert size_of(X.tolist()) is None
