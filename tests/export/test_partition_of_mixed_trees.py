"""Pictures of the partition of planes with levels, times and missing cells."""

from __future__ import annotations

import math
import warnings
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot
from matplotlib.dates import date2num
from numpy.testing import assert_allclose, assert_array_equal
from test_plot_partition import points, rectangles

import treeclust_rs as tc
from mixed_trees import MixedBuilder
from treeclust_rs.datasets import make_customers
from treeclust_rs.tree.html import cluster_colors, lighten

CUSTOMERS = make_customers(600).with_columns(
    wait=pl.col("visits").cast(pl.Float64).mul(3.6e9 * 5).cast(pl.Int64).cast(pl.Duration("us"))
)
PAIRS = [
    ("age", "newsletter"),
    ("plan", "signup"),
    ("last_order", "income"),
    ("occupation", "region"),
    ("wait", "signup"),
]
DAY = 86_400_000_000


@pytest.fixture(autouse=True)
def _no_window():
    mpl.use("agg")
    yield
    pyplot.close("all")


@cache
def fitted(pair, *, gaps=True):
    frame = CUSTOMERS.select(pair)
    if not gaps:
        frame = frame.drop_nulls()
    model = tc.ExKMC(3, max_leaves=9, base_tree=None, scale="standard", random_state=0, n_jobs=1)
    return model.fit(frame), frame


def minor(axis):
    """Return the places and the texts of the ticks of missing cells."""
    found = [tick for tick in axis.get_minor_ticks() if tick.label1.get_text()]
    return [tick.get_loc() for tick in found], [tick.label1.get_text() for tick in found]


def cell_at(axis, column, place, ends):
    """Return the value of a place on an axis, by the words of the documentation."""
    missing, _ = minor(axis)
    if missing and place > 2 * missing[0] - ends[1]:
        return None
    if column.dtype in (pl.String, pl.Boolean) or isinstance(column.dtype, pl.Enum):
        levels = [text.get_text() for text in axis.get_majorticklabels()]
        text = levels[round(place)]
        return text == "true" if column.dtype == pl.Boolean else text
    if column.dtype == pl.Date:
        return date(1970, 1, 1) + timedelta(math.floor(place + 0.5))
    if isinstance(column.dtype, pl.Datetime):
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=round(place * DAY))
    if isinstance(column.dtype, pl.Duration):
        return timedelta(days=place)
    return place


@pytest.mark.parametrize("gaps", [True, False], ids=["gaps", "complete"])
@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_every_place_has_the_colour_of_its_cluster_and_one_only(pair, gaps):
    model, frame = fitted(pair, gaps=gaps)
    ax = model.plot_partition(frame)
    ax.figure.draw_without_rendering()
    drawn, ends = rectangles(ax), (ax.get_xlim(), ax.get_ylim())
    area = sum((right - left) * (high - low) for _, left, right, low, high in drawn)
    assert area == pytest.approx(np.prod(np.ptp(ends, axis=1)))
    places = np.random.default_rng(0).uniform(*np.array(ends).T, (150, 2))
    axes = (ax.xaxis, ax.yaxis)
    rows = pl.DataFrame(
        {
            name: pl.Series(
                [cell_at(axis, frame[name], place, own) for place in values.tolist()],
                dtype=pl.Float64 if frame[name].dtype.is_numeric() else frame[name].dtype,
            )
            for name, axis, values, own in zip(pair, axes, places.T, ends, strict=True)
        }
    )
    assert all(column.null_count() > 0 for column in rows) == (gaps and "plan" not in pair)
    colors = [lighten(color, 0.72) for color in cluster_colors(3)]
    with warnings.catch_warnings(action="ignore"):
        expected = [colors[label] for label in model.predict(rows)]
    for (x, y), color in zip(places, expected, strict=True):
        assert [f for f, x0, x1, y0, y1 in drawn if x0 < x < x1 and y0 < y < y1] == [color]


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_points_lie_in_the_cells_of_their_leaves(pair):
    model, frame = fitted(pair)
    ax = model.plot_partition(frame)
    places, colors = points(ax)
    assert colors == [cluster_colors(3)[label] for label in model.labels_]
    drawn = rectangles(ax)
    for (x, y), color in zip(places, colors, strict=True):
        fills = {f for f, x0, x1, y0, y1 in drawn if x0 <= x <= x1 and y0 <= y <= y1}
        assert lighten(color, 0.72) in fills
    for axis, name, values in zip((ax.xaxis, ax.yaxis), pair, places.T, strict=True):
        missing, texts = minor(axis)
        gaps = frame[name].is_null().to_numpy()
        assert texts == ["missing"] * bool(gaps.any())
        if not gaps.any():
            continue
        end = axis.get_view_interval()[1]
        assert_array_equal(gaps, values > 2 * missing[0] - end)
        assert len(set(values[gaps].tolist())) == gaps.sum()


def test_levels_are_ticks_in_their_order_and_times_dates():
    model, frame = fitted(("plan", "signup"))
    ax = model.plot_partition(frame)
    assert [text.get_text() for text in ax.get_xticklabels()] == [
        "free",
        "basic",
        "plus",
        "premium",
    ]
    assert ax.get_xticks().tolist() == [0, 1, 2, 3]
    assert ax.get_xlim() == (-0.5, 3.5)  # none is missing
    places, _ = points(ax)
    codes = frame["plan"].to_physical().to_numpy()
    assert (np.abs(places[:, 0] - codes) < 0.35).all()
    known = frame["signup"].is_not_null().to_numpy()
    assert_allclose(places[known, 1], date2num(frame["signup"].drop_nulls().to_list()))
    ax.figure.draw_without_rendering()
    years = [text.get_text() for text in ax.get_yticklabels() if text.get_text()]
    assert len(years) > 2 and all(year.isdigit() for year in years)
    model, frame = fitted(("wait", "signup"))
    assert model.plot_partition(frame).get_xlabel() == "wait (days)"
    hours = frame.with_columns(pl.col("wait") / 1000)
    model = tc.IMM(3, random_state=0, n_jobs=1).fit(hours)
    assert model.plot_partition(hours).get_xlabel() == "wait (minutes)"


def test_tests_beside_the_axes_are_written_as_in_the_tree():
    for pair in PAIRS:
        model, frame = fitted(pair)
        ax = model.plot_partition(frame, annotate=True)
        written = {text.get_text() for text in ax.texts}
        assert all(any(text in rule for rule in model.rules()["rule"]) for text in written)
        levels = ["newsletter", "region", "plan", "occupation"]
        assert bool(written) == any(
            model.tree_.feature_names[f] not in levels
            for f in model.tree_.feature[model.tree_.kind == 1]
        )


def test_without_points_gaps_of_the_fit_have_a_band():
    model, _ = fitted(("age", "newsletter"))
    ax = model.plot_partition()
    assert minor(ax.xaxis)[1] == minor(ax.yaxis)[1] == ["missing"]
    model, frame = fitted(("age", "newsletter"), gaps=False)
    for ax in (model.plot_partition(), model.plot_partition(frame)):
        assert minor(ax.xaxis)[1] == minor(ax.yaxis)[1] == []
    new = frame[:3].with_columns(age=pl.lit(None, dtype=pl.Int64))
    assert minor(model.plot_partition(new).xaxis)[1] == ["missing"]


def test_levels_that_the_fit_did_not_have_are_missing():
    model, frame = fitted(("occupation", "region"))
    new = frame[:2].with_columns(region=pl.lit("moon"))
    with pytest.warns(UserWarning, match="region.*moon"):
        ax = model.plot_partition(new)
    assert_allclose(points(ax)[0][:, 1], minor(ax.yaxis)[0] * 2, atol=0.35)


def test_limits_of_times_and_what_lies_beyond():
    model, frame = fitted(("signup", "age"))
    first, last = date(2020, 1, 1), datetime(2021, 3, 1, 12)
    ax = model.plot_partition(frame, limits=((first, last), (30, 40)))
    assert ax.get_xlim()[0] == date2num(first)
    high = date2num(last)
    assert ax.get_xlim()[1] == pytest.approx(high + 0.08 * (high - date2num(first)))
    places = points(ax)[0].astype(float)  # NaN: not drawn
    gaps = frame["signup"].is_null().to_numpy()
    young = frame["age"].is_between(30, 40).fill_null(value=False).to_numpy()
    shown = (places[:, 0] > high) & (places[:, 1] <= 40) & (places[:, 1] >= 30)
    assert_array_equal(shown, gaps & young)  # and no later customers in the band of gaps
    for wrong in ((timedelta(3), timedelta(4)), (last, first), ("a", "b"), (None, 3)):
        with pytest.raises(ValueError, match=r"limits must be .* of times they may be dates"):
            model.plot_partition(frame, limits=(wrong, (30, 40)))
    model, frame = fitted(("wait", "signup"))
    ax = model.plot_partition(frame.drop_nulls(), limits=((timedelta(1), timedelta(2)), (0, 9)))
    assert ax.get_xlim() == (1, 2)


def test_many_and_strange_levels_keep_their_room():
    names = tuple(f"level $_{i}$ of many" for i in range(120))
    builder = MixedBuilder(np.zeros((3, 8)), np.arange(3))
    builder.test(0, 2, codes=range(40))
    tree = builder.tree(levels=(None, None, names, ("false", "true"), *[None] * 4))
    for columns in ((2, 0), (0, 2)):
        ax = tc.export.plot_partition(tree, columns=columns)
        figure = ax.figure
        figure.draw_without_rendering()
        axis = (ax.xaxis, ax.yaxis)[columns.index(2)]
        labels = axis.get_majorticklabels()
        assert 10 < len(labels) < 120
        assert labels[1].get_text().count("$") == 2
        if columns == (0, 2):
            boxes = [text.get_window_extent() for text in labels]
            assert not any(a.overlaps(b) for a, b in pairwise(boxes))


@pytest.mark.parametrize("pair", PAIRS[:3], ids=" ".join)
def test_words_below_an_axis_do_not_meet(pair):
    model, frame = fitted(pair)
    ax = model.plot_partition(frame)
    ax.figure.draw_without_rendering()
    for axis in (ax.xaxis, ax.yaxis):
        texts = [text for text in axis.get_majorticklabels() if text.get_text()]
        texts += [text for text in axis.get_minorticklabels() if text.get_text()]
        boxes = [text.get_window_extent() for text in texts]
        for place, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[:place]), texts[place]
