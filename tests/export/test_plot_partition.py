"""Pictures of the partition of a plane."""

import math
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.text import Text
from numpy.testing import assert_array_equal
from sklearn.datasets import make_circles

import treeclust_rs as tc
from treeclust_rs.export import plot_partition
from treeclust_rs.export.pictures.cells import borders_of, cells_of, clip
from treeclust_rs.export.pictures.partition_drawing import spread
from treeclust_rs.tree.html import cluster_colors, lighten
from trees import Builder, chain, random_tree, route, route_all

NOISE = "#6b7280"


@pytest.fixture(autouse=True)
def _no_window():
    mpl.use("agg")
    yield
    pyplot.close("all")


def blobs(n=120, seed=0):
    rng = np.random.default_rng(seed)
    centers = np.array([[0.0, 0.0], [6.0, 1.0], [3.0, 7.0]])
    return centers[np.arange(n) % 3] + rng.normal(size=(n, 2))


def rectangles(ax):
    """Return (fill, left, right, low, high) of every rectangle drawn."""
    found = []
    for collection in ax.collections:
        if isinstance(collection, PolyCollection):
            (fill,) = {to_hex(color) for color in collection.get_facecolors()} or {None}
            for path in collection.get_paths():
                (left, low), (right, high) = path.vertices.min(axis=0), path.vertices.max(axis=0)
                found.append((fill, left, right, low, high))
    return found


def points(ax):
    """Return the places and colours of all points."""
    places, colors = [], []
    for collection in ax.collections:
        if isinstance(collection, PathCollection):
            offsets = collection.get_offsets()
            faces = collection.get_facecolors()
            if len(faces) == 0:  # crosses
                faces = collection.get_edgecolors()
            places += offsets.tolist()
            colors += [to_hex(color) for color in np.broadcast_to(faces, (len(offsets), 4))]
    return np.array(places), colors


def lines(ax):
    """Return the number of segments and the width of the borders of leaves and of clusters."""
    found = [c for c in ax.collections if isinstance(c, LineCollection)]
    return {c.get_linewidth()[0]: c.get_segments() for c in found}


def legend_texts(ax):
    legend = ax.get_legend() or (ax.figure.legends or [None])[0]
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


# ---- cells --------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [0, 6])
@pytest.mark.parametrize("seed", range(8))
def test_cells_partition_the_plane_ends_included(seed, grid):
    # On a grid many tests are redundant, contradict each other, or hold a single value.
    tree, X = random_tree(seed, 2 + 3 * seed, n_features=2, intervals=seed % 4 > 0, grid=grid)
    ends = np.unique(np.concatenate([tree.threshold, tree.lower, tree.upper, X.ravel()]))
    ends = ends[np.isfinite(ends)]
    ends = np.unique([*ends, *np.nextafter(ends, -math.inf), *np.nextafter(ends, math.inf)])
    rng = np.random.default_rng(seed)
    rows = np.vstack([rng.choice(ends, (300, 2)), rng.normal(scale=5.0, size=(100, 2))])
    cells = cells_of(tree)
    for row in rows:
        inside = [
            cell.leaf for cell in cells if cell.x.contains(row[0]) and cell.y.contains(row[1])
        ]
        assert inside == [route(tree, row)]


def test_cells_of_two_columns_of_many():
    tree = chain(6, n_features=5).truncate(2)  # tests x0 alone
    (first, second) = cells_of(tree, (3, 0))
    assert (first.leaf, first.y.upper, first.x.upper) == (1, 0.5, math.inf)
    assert (second.leaf, second.y.lower, second.y.lower_strict) == (2, 0.5, True)


@pytest.mark.parametrize("seed", range(6))
def test_borders_lie_where_the_leaf_changes(seed):
    tree, _ = random_tree(seed, 4 + 2 * seed, n_features=2, intervals=True, grid=9)
    window = ((-0.5, 9.5), (-0.5, 9.5))
    drawn = [r for r in (clip(cell, window) for cell in cells_of(tree)) if r is not None]
    borders = borders_of(tree, drawn, window)
    # Two points beside every place where a border could be, and whether one is drawn there.
    for axis in range(2):
        for place in range(10):
            for along in np.arange(0.25, 9.0, 0.5):
                pair = np.full((2, 2), along)
                pair[:, axis] = place - 0.01, place + 0.01
                below, above = route_all(tree, pair)
                here = (borders.axis == axis) & (borders.place == place)
                here &= (borders.start <= along) & (along <= borders.end)
                kinds = borders.strong[here].tolist()
                clusters = tree.leaf_clusters[[below, above]]
                assert kinds == ([] if below == above else [clusters[0] != clusters[1]])


# ---- pictures -----------------------------------------------------------------------------


def pictures():
    X = blobs()
    rings, circle = make_circles(200, factor=0.4, noise=0.05, random_state=0)
    expand = tc.KernelExpand(reference=circle, max_leaves=6)
    random, rows = random_tree(8, 20, n_features=2, n_clusters=4, intervals=True, grid=9)
    return [
        (tc.IMM(3, random_state=0).fit(X).tree_, X),
        (tc.ExKMC(3, max_leaves=7, random_state=0).fit(X).tree_, X),
        (tc.ExKMC(4, max_leaves=12, cuts="interval", random_state=0).fit(X).tree_, X),
        (tc.Kauri(3, max_leaves=9, kernel="rbf").fit(X).tree_, X),
        (random, rows),
        (expand.fit(rings).tree_, rings),
    ]


@pytest.mark.parametrize("which", range(6))
def test_every_place_has_the_colour_of_its_cluster_and_one_only(which):
    tree, X = pictures()[which]
    assert (2 in tree.kind) == (which in (2, 4, 5))  # an interval
    ax = plot_partition(tree, X)
    drawn = rectangles(ax)
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    area = sum((r - x) * (t - y) for _, x, r, y, t in drawn)
    assert area == pytest.approx((right - left) * (high - low))
    rng = np.random.default_rng(which)
    places = rng.uniform((left, low), (right, high), (2000, 2))
    colors = [lighten(color, 0.72) for color in cluster_colors(len(tree.classes))]
    predicted = [colors[tree.classes.index(label)] for label in tree.predict(places)]
    for (x, y), color in zip(places, predicted, strict=True):
        fills = [fill for fill, x0, x1, y0, y1 in drawn if x0 < x < x1 and y0 < y < y1]
        assert fills == [color]


def test_an_interval_leaves_the_rest_of_the_plane_to_one_leaf():
    X = np.array([[0.0, 0.0], [5.0, 5.0], [9.0, 9.0], [5.0, 0.0]])
    builder = Builder(X, [0, 1, 0, 2])
    left = builder.split(0, 0, interval=(4.0, 6.0))
    builder.split(left, 1, interval=(3.0, 6.0))
    ax = plot_partition(builder.tree(), X, limits=((-1, 10), (-1, 10)))
    blue, orange, green = (lighten(color, 0.72) for color in cluster_colors(3))
    assert sorted(rectangles(ax)) == sorted(
        [
            (blue, -1, 4, -1, 10),
            (blue, 6, 10, -1, 10),
            (orange, 4, 6, 3, 6),
            (green, 4, 6, -1, 3),
            (green, 4, 6, 6, 10),
        ]
    )
    widths = lines(ax)
    assert len(widths[min(widths)]) == 0
    # Both sides of the strip, unbroken, and both ends of the middle one.
    assert sorted(np.asarray(s).tolist() for s in widths[max(widths)]) == [
        [[4, -1], [4, 10]],
        [[4, 3], [6, 3]],
        [[4, 6], [6, 6]],
        [[6, -1], [6, 10]],
    ]


def test_borders_within_a_cluster_are_thin():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    builder = Builder(X, [0, 0, 1, 1])
    left = builder.split(0, 0, 1.5)
    builder.split(left, 0, 0.5)
    thin, thick = (
        segments for _, segments in sorted(lines(plot_partition(builder.tree())).items())
    )
    assert [segment[0][0] for segment in thin] == [0.5]
    assert [segment[0][0] for segment in thick] == [1.5]


def test_an_interval_of_one_value_is_a_line():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 3.0]])
    builder = Builder(X, [0, 1, 0])
    builder.split(0, 0, interval=(1.0, 1.0))
    ax = plot_partition(builder.tree(), X)
    flat = [c for c in ax.collections if isinstance(c, LineCollection) and len(c.get_segments())]
    (line,) = flat
    assert to_hex(line.get_colors()[0]) == cluster_colors(2)[1]
    assert line.get_segments()[0][:, 0].tolist() == [1, 1]


def test_points_and_names():
    X = blobs()
    frame = pl.DataFrame({"other": ["a"] * len(X), "y $5": X[:, 1], "x_1": X[:, 0]})
    model = tc.IMM(3, random_state=0).fit(frame[["x_1", "y $5"]])
    ax = model.plot_partition(frame, title="t_1 $")
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("x_1", "y $5", "t_1 $")
    places, colors = points(ax)
    assert_array_equal(places, X)
    assert colors == [cluster_colors(3)[code] for code in model.labels_]
    assert legend_texts(ax) == ["cluster 0", "cluster 1", "cluster 2"]
    ax.figure.draw_without_rendering()  # no mathematics in names
    low, high = X.min(axis=0), X.max(axis=0)
    assert (ax.get_xlim()[0], ax.get_ylim()[0]) < tuple(low)
    assert (ax.get_xlim()[1], ax.get_ylim()[1]) > tuple(high)


def test_without_points_the_thresholds_give_the_limits():
    model = tc.IMM(3, random_state=0).fit(blobs())
    ax = model.plot_partition()
    assert len(points(ax)[0]) == 0
    tree = model.tree_
    for feature, (low, high) in enumerate([ax.get_xlim(), ax.get_ylim()]):
        own = tree.threshold[tree.feature == feature]
        assert low < own.min() <= own.max() < high
    # A column that is not tested, and a tree of one leaf.
    single = plot_partition(Builder(np.zeros((3, 2)), [0, 0, 0]).tree())
    assert (single.get_xlim(), single.get_ylim()) == ((-0.25, 1.25), (-0.25, 1.25))
    assert len(rectangles(single)) == 1
    assert legend_texts(single) == []


def test_labels_take_the_colours_of_the_clusters_they_share_points_with():
    X = blobs(90)
    model = tc.IMM(3, random_state=0).fit(X)
    own = model.labels_
    names = np.array(["pear", "fig", "lime"])[own]
    palette = np.array(cluster_colors(5))
    ax = model.plot_partition(X, labels=names)
    assert points(ax)[1] == palette[own].tolist()
    assert legend_texts(ax) == [*(f"cluster {code}" for code in range(3)), "fig", "lime", "pear"]
    # The same numbers for other clusters: matched by the points, not by the numbers.
    ax = model.plot_partition(X, labels=2 - own)
    assert points(ax)[1] == palette[own].tolist()
    assert legend_texts(ax)[3:] == ["label 0", "label 1", "label 2"]
    # The same names: one legend for both, and a row of the wrong cluster is seen.
    labels = own.copy()
    labels[7] = (own[7] + 1) % 3
    ax = model.plot_partition(X, labels=labels.astype(float))
    assert points(ax)[1] == palette[labels].tolist()
    assert legend_texts(ax) == ["cluster 0", "cluster 1", "cluster 2"]
    # More labels than clusters; noise.
    labels = np.where(np.arange(90) % 9 == 0, 30, own)
    labels[:5] = -1
    ax = model.plot_partition(X, labels=pl.Series(labels))
    places, colors = points(ax)
    expected = np.where(labels == 30, palette[3], palette[np.minimum(labels, 2)])
    expected[:5] = NOISE
    assert dict(zip(map(tuple, places.tolist()), colors, strict=True)) == dict(
        zip(map(tuple, X.tolist()), expected.tolist(), strict=True)
    )
    assert legend_texts(ax)[3:] == ["label 0", "label 1", "label 2", "label 30", "noise"]


def test_labels_of_noise_alone():
    X = blobs(9)
    ax = tc.IMM(3, random_state=0).fit(X).plot_partition(X, labels=[-1] * 9)
    assert points(ax)[1] == [NOISE] * 9


def test_two_columns_of_more():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=60), blobs(60), rng.normal(size=60)])
    frame = pl.DataFrame(X, schema=["a", "b", "c", "d"])
    model = tc.IMM(3, random_state=0).fit(frame)
    assert set(model.tree_.feature.tolist()) == {1, 2, -2}
    ax = model.plot_partition(frame, columns=["c", 1])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("c", "b")
    assert_array_equal(points(ax)[0], X[:, [2, 1]])
    with pytest.raises(ValueError, match=r"this one has 4\. Name two in columns=.*it tests b, c"):
        model.plot_partition(frame)
    with pytest.raises(ValueError, match="tests b too, besides the columns to be drawn"):
        model.plot_partition(frame, columns=["a", "c"])
    for wrong in (["a", "x0"], [0, 4], [0, 1.5], [None, 1]):
        with pytest.raises(ValueError, match="which is not a column of this tree"):
            model.plot_partition(frame, columns=wrong)
    with pytest.raises(ValueError, match="two different ones"):
        model.plot_partition(frame, columns=["b", 1])
    with pytest.raises(ValueError, match="two numbers or names"):
        model.plot_partition(frame, columns="bc")
    nameless = tc.IMM(3, random_state=0).fit(X)
    assert nameless.plot_partition(X, columns=["x1", "x2"]).get_xlabel() == "x1"
    one = tc.IMM(2, random_state=0).fit(X[:, 1:2])
    with pytest.raises(ValueError, match=r"this one has 1\. There is no plane to draw"):
        one.plot_partition(X[:, 1:2])


def test_in_given_axes_and_legend():
    X = blobs()
    model = tc.ExKMC(3, max_leaves=5, random_state=0).fit(X)
    _, (first, second) = pyplot.subplots(1, 2)
    assert model.plot_partition(X, first) is first
    assert model.plot_partition(X, ax=second, legend=False) is second
    assert legend_texts(first) == ["cluster 0", "cluster 1", "cluster 2"]
    assert second.get_legend() is None
    assert len(pyplot.get_fignums()) == 1
    many = tc.IMM(11, random_state=0).fit(X)
    assert legend_texts(many.plot_partition(X)) == []
    assert len(legend_texts(many.plot_partition(X, legend=True))) == 11


def test_colors_and_limits():
    X = blobs()
    model = tc.IMM(3, random_state=0).fit(X)
    colors = ["#112233", "#445566", "#778899"]
    ax = model.plot_partition(X, colors=colors, limits=((0, 2), (-1, 1)))
    assert set(points(ax)[1]) == set(colors)
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 2), (-1, 1))
    for _, left, right, low, high in rectangles(ax):
        assert 0 <= left < right <= 2
        assert -1 <= low < high <= 1
    # Only what is in the picture is in the legend, and points there or not.
    assert len({fill for fill, *_ in rectangles(ax)} - {None}) < 3


@pytest.mark.parametrize("size", [(4, 3), (9, 2)])
def test_numbers_beside_the_axes_do_not_meet(size):
    tree, X = random_tree(4, 16, n_features=2, intervals=True, grid=40)
    figure, ax = pyplot.subplots(figsize=size, layout="constrained")
    plot_partition(tree, X, ax, annotate=True)
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    numbers = [text for text in ax.texts if text.get_text()]
    places = np.concatenate([tree.threshold, tree.lower, tree.upper])
    assert len(numbers) > 4
    assert {float(text.get_text()) for text in numbers} <= set(places[np.isfinite(places)].tolist())
    # Of the text alone, without the line to its place.
    boxes = [Text.get_window_extent(text, renderer) for text in numbers]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])


def test_numbers_are_those_of_the_borders():
    X = np.array([[0.0, 0.0], [5.0, 5.0], [9.0, 9.0], [5.0, 0.0]])
    builder = Builder(X, [0, 1, 0, 2])
    left = builder.split(0, 0, interval=(4.25, 6.0))
    builder.split(left, 1, 3.0)
    ax = plot_partition(builder.tree(), X, annotate=True, title="above")
    assert [text.get_text() for text in ax.texts] == ["4.25", "6", "3"]
    figure = ax.figure
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    title = ax.title.get_window_extent(renderer)
    assert all(not title.overlaps(text.get_window_extent(renderer)) for text in ax.texts)


@pytest.mark.parametrize("seed", range(5))
def test_moving_apart(seed):
    rng = np.random.default_rng(seed)
    wanted = np.sort(rng.choice([0, 3, 3.5, 4, 50, 51, 97, 100.0], 8))
    found = spread(wanted, 7.0, 100.0)
    assert (np.diff(found) >= 7.0 - 1e-9).all()
    assert found[0] >= 0
    assert found[-1] <= 100 + 1e-9
    # Nothing moves that need not.
    assert_array_equal(spread(np.array([10.0, 20.0]), 7.0, 100.0), [10.0, 20.0])
    assert spread(np.array([10.0, 11.0]), 7.0, 100.0).tolist() == [7.0, 14.0]


def test_refusals(monkeypatch):
    X = blobs()
    model = tc.IMM(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match="give X too"):
        model.plot_partition(labels=model.labels_)
    with pytest.raises(ValueError, match=r"one entry for each of the 120 points.*\(3,\)"):
        model.plot_partition(X, labels=[0, 1, 2])
    for wrong in (np.full(120, 0.5), np.full(120, np.nan), [None, *"a" * 119]):
        with pytest.raises(ValueError, match="labels must hold integers or strings"):
            model.plot_partition(X, labels=wrong)
    with pytest.raises(ValueError, match=r"each of the 3 clusters, .* Got 2 colors"):
        model.plot_partition(X, colors=["#000000", "#ffffff"])
    for wrong in (5, ((0, 1),), ((1, 0), (0, 1)), ((0, math.inf), (0, 1)), "ab"):
        with pytest.raises(ValueError, match="limits must be"):
            model.plot_partition(X, limits=wrong)
    bad = [[0.0, 1.0], [0.0, 1.0], [0.0, math.nan]]
    with pytest.raises(ValueError, match="column x1 has 1 NaN, the first in row 2"):
        tc.VoronoiTree(3, random_state=0).fit(X).plot_partition(bad)
    with pytest.raises(ValueError, match="column x1 has 1 inf, the first in row 2"):
        model.plot_partition([*bad[:2], [0.0, math.inf]])
    with pytest.raises(ValueError, match="X has 3 features"):
        model.plot_partition(np.zeros((3, 3)))
    with pytest.raises(ValueError, match=r"tree of 1,001 leaves.*truncate"):
        plot_partition(chain(1001, n_features=2))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install treeclust_rs\[plot\]"):
        model.plot_partition(X)


def test_matplotlib_is_not_imported_before():
    code = (
        "import sys, treeclust_rs, treeclust_rs.export; "
        "sys.exit(any(name.split('.')[0] == 'matplotlib' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_only_touches_the_edge_is_not_drawn():
    builder = Builder(np.array([[0.0, 0.0], [3.0, 0.0]]), [0, 1])
    builder.split(0, 0, 1.5)
    ax = plot_partition(builder.tree(), limits=((1.5, 4), (0, 1)), legend=True)
    assert [edges for _, *edges in rectangles(ax)] == [[1.5, 4, 0, 1]]
    assert sum(len(segments) for segments in lines(ax).values()) == 0
    assert legend_texts(ax) == ["cluster 1"]


def names_in_cells(ax):
    return [text for text in ax.texts if text.get_text().isdigit()]


@pytest.mark.parametrize("oblique", [False, True])
def test_many_clusters_have_their_names_in_their_cells(oblique):
    centers = np.stack(np.divmod(np.arange(12.0), 4), axis=1) * 10
    X = np.repeat(centers, 10, axis=0) + np.random.default_rng(0).normal(size=(120, 2))
    model = tc.VoronoiTree if oblique else tc.ExKMC
    tree = model(12, reference=centers).fit(X).tree_
    ax = plot_partition(tree, X)
    assert legend_texts(ax) == []
    names = names_in_cells(ax)
    assert {text.get_text() for text in names} == set(map(str, range(12)))
    places = [text.get_position() for text in names]
    assert tree.predict(np.array(places)).tolist() == [int(text.get_text()) for text in names]
    assert names_in_cells(plot_partition(tree, X, names=False)) == []
    assert names_in_cells(plot_partition(tree, X, legend=True)) == []
    few = tc.IMM(3, random_state=0).fit(blobs())
    assert names_in_cells(few.plot_partition()) == []
    assert len(names_in_cells(few.plot_partition(names=True))) == 3


def test_colors_are_those_of_matplotlib():
    model = tc.IMM(3, random_state=0).fit(blobs())
    fills = {fill for fill, *_ in rectangles(model.plot_partition(colors=["red", "C0", (0, 0, 0)]))}
    assert fills == {lighten(color, 0.72) for color in ("#ff0000", "#1f77b4", "#000000")}
