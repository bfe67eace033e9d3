"""A LazyFrame is read in batches: as the collected frame is, to the bit, whatever the batches."""

import datetime as dt
import json
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from sizes import repeats
from treeclust_rs._data import FittedColumns, align_table
from treeclust_rs._data.table import Table, collected, read_table, shown_columns
from treeclust_rs._engine import LevelColumn

SEEDS = range(repeats(4, 100))


@pytest.fixture
def cut(monkeypatch):
    """Make every LazyFrame come in the batches of a function; of polars 1 too."""

    def set_batches(batches):
        collect = pl.LazyFrame.collect
        monkeypatch.setattr(pl, "__version__", "2.0.0")
        monkeypatch.setattr(pl.LazyFrame, "collect_batches", lambda X: batches(collect(X)))

    return set_batches


def random_batches(rng: np.random.Generator):
    """Cut a frame anywhere: batches of all sizes, some empty, some in several chunks."""

    def batches(frame: pl.DataFrame):
        edges = np.sort(rng.integers(0, len(frame) + 1, rng.integers(0, 12))).tolist()
        for start, end in zip([0, *edges], [*edges, len(frame)], strict=True):
            batch = frame[start:end]
            yield pl.concat([batch[:1], batch[1:]], rechunk=False) if rng.random() < 0.3 else batch

    return batches


def numbers(rng: np.random.Generator, n: int) -> pl.DataFrame:
    """Return columns of every type of number, and booleans."""
    types = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt32, pl.UInt64, pl.Int128]
    types += [pl.Float32, pl.Float64, pl.Decimal(20, 2), pl.Boolean]
    whole = {str(t): pl.Series(rng.integers(0, 100, n)).cast(t) for t in types}
    real = {"normal": rng.normal(size=n), "large": rng.integers(-(2**62), 2**62, n)}
    return pl.DataFrame(whole | real)


def with_gaps(frame: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Make cells null: in each column those of some rows in a row, or none."""
    row = pl.row_index()
    holes = {name: np.sort(rng.integers(0, len(frame) + 1, 2)) for name in frame.columns}
    return frame.with_columns(
        pl.when((row >= start) & (row < end)).then(None).otherwise(pl.col(name)).alias(name)
        for name, (start, end) in holes.items()
    )


def mixed(rng: np.random.Generator, n: int) -> pl.DataFrame:
    """Return columns of every kind, with gaps: of many levels, and of some that begin late."""
    place = np.arange(n)
    late = np.where(place < n * 0.9, "early", "late")
    many = [f"level {v}" for v in rng.permutation(place % 200)]
    days = pl.Series(rng.integers(-9_000, 20_000, n), dtype=pl.Int32)
    times = pl.Series(rng.integers(-(2**50), 2**50, n))
    columns = {
        "text": rng.choice(["north", "", "South", "ost"], n),
        "late": late,
        "many": many,
        "category": pl.Series(many, dtype=pl.Categorical),
        "declared": pl.Series(late, dtype=pl.Enum(["late", "never", "early"])),
        "day": days.cast(pl.Date),
        **{f"time_{u}": times.cast(pl.Datetime(u, "Europe/Berlin")) for u in ("us", "ns")},
        "time_ms": (times // 1_000).cast(pl.Datetime("ms")),
        "stay": times.cast(pl.Duration("us")),
        "nothing": pl.Series([None] * n, dtype=pl.Null),
    }
    return with_gaps(numbers(rng, n).hstack(pl.DataFrame(columns)), rng)


def assert_same(found: Table, expected: Table) -> None:
    assert (found.n_samples, found.feature_names) == (expected.n_samples, expected.feature_names)
    assert (found.kinds, found.levels) == (expected.kinds, expected.levels)
    for column, other in zip(found.data, expected.data, strict=True):
        assert isinstance(column, LevelColumn) == isinstance(other, LevelColumn)
        if isinstance(column, LevelColumn):
            assert column.n_levels == other.n_levels
            column, other = column.codes, other.codes
        assert column.dtype == other.dtype and column.shape == other.shape
        assert column.tobytes() == other.tobytes()


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_are_read_as_those_of_the_collected_frame(cut, seed):
    rng = np.random.default_rng(seed)
    frame = numbers(rng, int(rng.integers(1, 400)))
    cut(random_batches(rng))
    found = read_table(frame.lazy(), estimator_name="ExKMC")
    assert_same(found, read_table(frame, estimator_name="ExKMC"))


@pytest.mark.parametrize("seed", SEEDS)
def test_all_kinds_are_read_as_those_of_the_collected_frame(cut, seed):
    rng = np.random.default_rng(seed)
    frame = mixed(rng, int(rng.integers(1, 400)))
    cut(random_batches(rng))
    expected = read_table(frame, estimator_name="IMM", mixed=True)
    assert_same(read_table(frame.lazy(), estimator_name="IMM", mixed=True), expected)


@pytest.mark.filterwarnings("ignore:X has levels:UserWarning")
def test_later_rows_are_read_by_the_levels_of_the_fit(cut):
    rng = np.random.default_rng(0)
    fitted = read_table(mixed(rng, 50), estimator_name="IMM", mixed=True)
    new = mixed(rng, 400).sample(400, shuffle=True, seed=1)
    needed = [0, 12, 13, 14, 16, 17, 19]
    options = {
        "estimator_name": "IMM",
        "needed": np.array([fitted.feature_names.index(new.columns[f]) for f in needed]),
        "fitted": FittedColumns(fitted.kinds, fitted.levels),
    }
    expected = align_table(new, fitted.feature_names, fitted.n_features, **options)
    asked = []

    def batches(frame):
        asked.append(frame.columns)
        return random_batches(rng)(frame)

    cut(batches)
    found = align_table(new.lazy(), fitted.feature_names, fitted.n_features, **options)
    assert asked == [[new.columns[f] for f in needed]]
    assert_same(found, expected)
    assert expected.unknown
    for column, other in zip(shown_columns(found), shown_columns(expected), strict=True):
        np.testing.assert_array_equal(column, other)


@pytest.mark.parametrize("seed", SEEDS)
def test_nulls_are_counted_over_all_batches(cut, seed):
    rng = np.random.default_rng(seed)
    frame = with_gaps(numbers(rng, 60), rng)
    with pytest.raises(ValueError, match="contains null") as expected:
        read_table(frame, estimator_name="ExKMC")
    cut(random_batches(rng))
    with pytest.raises(ValueError, match=f"^{re.escape(str(expected.value))}$"):
        read_table(frame.lazy(), estimator_name="ExKMC")


FAR = dt.timedelta(days=365 * 400)
TOO_FAR = pl.Series([dt.timedelta(0)] * 5 + [FAR, None, FAR, dt.timedelta(1)] * 2)


@pytest.mark.parametrize(
    "column",
    [TOO_FAR, pl.Series([f"name {i}" for i in range(300)])],
    ids=["times too far", "too many levels"],
)
def test_columns_are_refused_as_those_of_the_collected_frame(cut, column):
    frame = pl.DataFrame({"a": range(len(column)), "b": column})
    with pytest.raises(ValueError, match="'b'") as expected:
        read_table(frame, estimator_name="IMM", mixed=True)
    cut(random_batches(np.random.default_rng(0)))
    with pytest.raises(ValueError, match=f"^{re.escape(str(expected.value))}$"):
        read_table(frame.lazy(), estimator_name="IMM", mixed=True)


@pytest.mark.parametrize("batches", [lambda frame: [], lambda frame: [frame, frame]])
def test_no_batches_and_empty_ones_are_no_rows(cut, batches):
    frame = mixed(np.random.default_rng(0), 5).clear()
    cut(batches)
    for columns, is_mixed in ((frame, True), (frame.select(pl.first()), False)):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            read_table(columns.lazy(), estimator_name="IMM", mixed=is_mixed)


def test_one_batch_of_numbers_is_not_copied(cut):
    frame = numbers(np.random.default_rng(0), 100).select("normal")
    empty = frame.clear()
    cut(lambda collected: [empty, frame, empty])
    (column,) = read_table(frame.lazy(), estimator_name="ExKMC").data
    assert np.shares_memory(column, frame["normal"].to_numpy())


def test_a_frame_that_is_handed_on_has_whole_columns():
    halves = mixed(np.random.default_rng(0), 20), mixed(np.random.default_rng(1), 20)
    frame = pl.concat(halves, rechunk=False)
    found = collected(frame.lazy(), "IMM", mixed=True)
    assert found.equals(frame) and found.schema == frame.schema
    assert frame.n_chunks() == 2 and found.n_chunks("all") == [1] * frame.width


def test_an_error_of_the_query_is_raised(cut):
    def fails(frame):
        yield frame
        raise pl.exceptions.ComputeError("the disk is gone")

    cut(fails)
    model = tc.IMM(reference=[[0.0], [5.0]]).fit([[0.0], [5.0]])
    with pytest.raises(pl.exceptions.ComputeError, match="the disk is gone"):
        model.fit(pl.LazyFrame({"a": [1.0, 2.0]}))
    assert model.labels_.tolist() == [0, 1]


@pytest.mark.parametrize("version", ["1.41.0", "2.0.0"])
def test_without_batches_the_rows_are_collected(monkeypatch, version):
    # polars 1 collects in another engine than it makes batches in, which may order rows otherwise.
    if version == "2.0.0":
        monkeypatch.delattr(pl.LazyFrame, "collect_batches")
    else:
        monkeypatch.setattr(pl.LazyFrame, "collect_batches", None)
    monkeypatch.setattr(pl, "__version__", version)
    frame = mixed(np.random.default_rng(0), 30)
    expected = read_table(frame, estimator_name="IMM", mixed=True)
    assert_same(read_table(frame.lazy(), estimator_name="IMM", mixed=True), expected)


@pytest.mark.filterwarnings("ignore:.*of the rows are nearer:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "make",
    [
        lambda labels: tc.ExKMC(max_leaves=9, reference=labels),
        lambda labels: tc.BestTree(4, effort="quick", random_state=0),
        lambda labels: tc.Kauri(4, max_leaves=9),
    ],
)
def test_fits_of_files_are_those_of_their_frames(tmp_path, make):
    rng = np.random.default_rng(0)
    frame = mixed(rng, 500).drop("nothing", "large", "many")
    labels = rng.integers(0, 4, len(frame))
    frame.write_parquet(tmp_path / "rows.parquet", row_group_size=60)
    found = make(labels).fit(pl.scan_parquet(tmp_path / "rows.parquet"))
    expected = make(labels).fit(frame)
    found.save(tmp_path / "found.json")
    expected.save(tmp_path / "expected.json")
    assert (tmp_path / "found.json").read_bytes() == (tmp_path / "expected.json").read_bytes()
    assert (found.labels_ == expected.labels_).all()


# In a process of its own: memory that others freed would hide what is taken.
PEAK = """
import json, sys
from pathlib import Path
import polars as pl
from treeclust_rs._data import read_table

def kilobytes(key):
    return int(Path("/proc/self/status").read_text().partition(key + ":")[2].split()[0])

rows = pl.scan_parquet(sys.argv[1])
read_table(rows.head(1000), estimator_name="ExKMC")
before = kilobytes("VmRSS")
table = read_table(rows, estimator_name="ExKMC")
taken = kilobytes("VmHWM") - before
print(json.dumps([taken * 1024, sum(column.nbytes for column in table.data)]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted by Linux")
@pytest.mark.skipif(pl.__version__.startswith("1."), reason="polars 1 collects all rows at once")
def test_batches_and_columns_are_not_held_at_once(tmp_path):
    path, n = tmp_path / "rows.parquet", 2_000_000
    column = pl.int_range(n, eager=True) % 1000
    rows = pl.DataFrame({f"x{f}": column + f for f in range(20)})
    rows.write_parquet(path, row_group_size=20_000)
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(path)], check=True, capture_output=True, text=True
    )
    taken, size = json.loads(done.stdout)
    assert size == n * 20 * 8
    assert taken < 1.6 * size
