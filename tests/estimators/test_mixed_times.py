"""Times in fits of every method: cuts lie at boundaries of the calendar, in the column's zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from treeclust_rs._data.times import start_in_gap, threshold_in_gap

N = 240
GROUP = np.arange(N) % 3
BERLIN = ZoneInfo("Europe/Berlin")
TYPES = {
    "date": pl.Date(),
    "datetime[]": pl.Datetime("us"),
    "datetime[Europe/Berlin]": pl.Datetime("us", "Europe/Berlin"),
    "duration": pl.Duration("us"),
}
GIVEN = {"reference": GROUP, "max_leaves": 9}
METHODS = {
    "BestTree": tc.BestTree(**GIVEN, objective="labels"),
    "BestTree-kmeans": tc.BestTree(
        3, max_leaves=7, scale="standard", effort="quick", random_state=0
    ),
    "ExKMC": tc.ExKMC(**GIVEN, base_tree=None, scale="standard"),
    "ExKMC-interval": tc.ExKMC(**GIVEN, base_tree=None, cuts="interval", scale="standard"),
    "KMeansTree": tc.KMeansTree(**GIVEN),
    "SpExTree": tc.SpExTree(**GIVEN),
    "KernelExpand": tc.KernelExpand(**GIVEN, base_tree=None),
    "KernelExpand-interval": tc.KernelExpand(**GIVEN, base_tree=None, cuts="interval"),
    "Kauri": tc.Kauri(3, max_leaves=9, scale="standard"),
}


def rows_around(start: datetime, kind: str) -> pl.DataFrame:
    """Return times in the days around one, of three groups, some missing."""
    rng = np.random.default_rng(1)
    hours = np.array([0, 40, 90])[GROUP] + rng.integers(0, 60, N)
    times = pl.Series([start + timedelta(hours=int(h), minutes=17 * int(h % 3)) for h in hours])
    if kind == "duration":
        times = times - start
    elif kind == "date":
        times = times.dt.date()
    else:
        times = times.cast(pl.Datetime("us"))
        if kind != "datetime[]":
            times = times.dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Berlin")
    gaps = pl.Series(rng.random(N) < 0.1)
    frame = pl.DataFrame({"when": times, "x": rng.integers(0, 9, N)})
    return frame.with_columns(pl.when(~gaps).then("when").alias("when"))


@pytest.mark.filterwarnings("ignore:.* of the rows are nearer", "ignore:Column 'when' has")
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("start", ["2024-03-28", "2024-10-24", "2023-12-29"])
def test_cuts_of_all_methods_lie_at_the_calendar(name, kind, start):
    frame = rows_around(datetime.fromisoformat(start), kind)
    assert frame["when"].dtype == TYPES[kind]
    model = METHODS[name].fit(frame)
    tree = model.tree_
    assert tree.column_kinds == (kind, "number")
    when = frame["when"].to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy()
    if kind == "date":
        when = when * 86_400_000_000
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    np.testing.assert_array_equal(frame.select(model.to_polars()).to_series(), model.labels_)
    of_node: dict[int, np.ndarray] = {}
    places, n_cuts = model.apply(frame), 0
    for node in range(tree.n_nodes - 1, -1, -1):
        left = int(tree.children_left[node])
        of_node[node] = places == node if left < 0 else of_node[left] | of_node[left + 1]
        if left < 0 or tree.feature[node] != 0 or tree.kind[node] not in (1, 2):
            continue
        x = when[of_node[node]]
        end = float((tree.threshold if tree.kind[node] == 1 else tree.upper)[node])
        if (x > end).any():
            low, high = x[x <= end].max(), x[x > end].min()
            assert end == threshold_in_gap(low, high, kind)
            assert (tree.below[node], tree.above[node]) == (low, high)
            n_cuts += 1
        begin = float(tree.lower[node])
        if tree.kind[node] == 2 and (x < begin).any():
            low, high = x[x < begin].max(), x[x >= begin].min()
            assert begin == start_in_gap(low, high, kind)
            n_cuts += 1
    assert n_cuts > 0


def test_texts_of_dates_and_times():
    midnight = datetime(2024, 3, 1)
    days = [*range(-40, 0), *range(3, 43)]
    labels = np.arange(80) // 40
    texts = {}
    for name, kind in (("day", "date"), ("time", "datetime[]"), ("zoned", "zoned")):
        times = pl.Series(name, [midnight + timedelta(days=d) for d in days])
        if kind == "date":
            times = times.dt.date()
        if kind == "zoned":
            times = times.dt.replace_time_zone("Europe/Berlin")
        model = tc.KMeansTree(reference=labels).fit(pl.DataFrame({name: times}))
        texts[name] = model.rules()["rule"].to_list()
    assert texts["day"] == ["day <= 2024-02-29", "day > 2024-02-29"]
    assert texts["time"] == ["time <= 2024-03-01 00:00", "time > 2024-03-01 00:00"]
    assert texts["zoned"] == [
        "zoned <= 2024-03-01 00:00+01:00",
        "zoned > 2024-03-01 00:00+01:00",
    ]


def test_no_cut_lies_in_an_hour_that_the_clocks_show_twice():
    # Berlin, 27 October 2024: 2:00 to 3:00 is shown twice, from 0:00 to 2:00 UTC.
    first = datetime(2024, 10, 27, 0, 0, tzinfo=UTC)
    times = [first + timedelta(minutes=m) for m in (0, 10, 110, 119, 400, 500)]
    frame = pl.DataFrame({"t": pl.Series(times).dt.convert_time_zone("Europe/Berlin")})
    model = tc.KMeansTree(reference=np.arange(6), max_leaves=6).fit(frame)
    cuts = sorted(model.tree_.threshold[model.tree_.kind == 1])
    shown = [datetime.fromtimestamp(cut / 1e6, UTC).astimezone(BERLIN) for cut in cuts]
    assert [t.strftime("%H:%M") for t in shown[3:]] == ["05:00", "08:30"]
    # Without a boundary that is shown once a cut lies at the lower value.
    values = [time.timestamp() * 1e6 for time in times]
    assert cuts[:3] == values[:3]


def test_nanoseconds_are_floored_in_the_fit_and_in_exports():
    nano = pl.Series("t", [999, 1000, 1999, 2000, 2999, 3500]).cast(pl.Datetime("ns"))
    frame = nano.to_frame()
    model = tc.KMeansTree(reference=[0, 1, 1, 2, 2, 3], max_leaves=4).fit(frame)
    np.testing.assert_array_equal(model.labels_, [0, 1, 1, 2, 2, 3])
    for rows in (frame, frame.to_pandas(), frame.to_arrow()):
        np.testing.assert_array_equal(model.predict(rows), model.labels_)
    np.testing.assert_array_equal(frame.select(model.to_polars()).to_series(), model.labels_)
    np.testing.assert_array_equal(model.to_sklearn().predict(frame), model.labels_)
    duckdb = pytest.importorskip("duckdb")
    query = model.to_sql("duckdb", table="frame")
    found = duckdb.sql(query).fetchnumpy()["cluster"]
    np.testing.assert_array_equal(found, model.labels_)
