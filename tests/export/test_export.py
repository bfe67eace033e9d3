"""Text, polars, Graphviz, pictures and JSON."""

import json
import math
import re
import sys
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from mutations import Mutants, load, move_entries, mutate, save
from pictures import boxes_of, node_texts
from polars_engines import ENGINES, evaluate
from processes import IN_A_SMALL_STACK, output_of
from sizes import repeats
from treeclust_rs._util.model_json import dumps, float_array, loads
from treeclust_rs.export import (
    SCHEMA_VERSION,
    explain_rows,
    export_text,
    plot_tree,
    to_graphviz,
    to_polars_expr,
    tree_from_dict,
    tree_to_dict,
)
from treeclust_rs.tree import ClusterTree
from treeclust_rs.tree.html import cluster_colors
from treeclust_rs.tree.nodes import MOVES
from treeclust_rs.tree.words import format_gain, format_share, format_weight
from trees import (
    NAN,
    Builder,
    all_moves,
    all_moves_builder,
    balanced,
    chain,
    chain_of_moves,
    legal_moves,
    random_moves,
    random_tree,
    route,
    route_all,
)


def customers(**changes):
    """A base of three leaves, one of them impure, and an interval below it."""
    row = np.arange(1500)
    X = np.column_stack([row % 100, row % 19]).astype(float)
    labels = np.select([X[:, 0] <= 41, X[:, 1] <= 4], [0, 1], 2)
    labels[::47] = 0
    builder = Builder(X, labels, 4)
    left = builder.split(0, 0, 41.5)
    builder.split(left + 1, 1, 4.5)
    builder.end_base()
    builder.split(4, 0, interval=(60, 79.5))
    names = ["income", "tenure (years)"]
    return builder.tree(**({"feature_names": names, "classes": [3, 1, 7, 9]} | changes))


# ---- text ---------------------------------------------------------------------------------


def test_printed_tree():
    assert str(customers()) == (
        """\
ClusterTree: 4 leaves, 4 clusters, depth 3, 1,500 rows

                                         rows    share  mistakes  cluster  rows by reference cluster
all rows                                1,500    100 %         0
├─ income <= 41.5                         630   42.0 %         0  3
└─ income > 41.5                          870   58.0 %         0
   ├─ tenure (years) <= 4.5               229   15.3 %         2  1        1: 99.1 %, 3: 0.9 %
   └─ tenure (years) > 4.5                641   42.7 %
      ├─ 60 <= income <= 79.5             221   14.7 %         6  7        7: 97.3 %, 3: 2.7 %
      └─ income < 60 or income > 79.5     420   28.0 %        10  7        7: 97.6 %, 3: 2.4 %

mistakes: at a leaf, rows whose reference cluster is another one; at a split of the base
tree, rows that the cut separates from their center."""
    )


def test_printed_tree_with_moves():
    assert str(all_moves(classes=[0, 1, 2, 3, 10])) == (
        """\
ClusterTree: 7 leaves, 5 clusters, depth 4, 64 rows

                           rows    share   cluster  split         gain
all rows                     64    100 %  (0)       star           100
├─ aid <= 3.5                32   50.0 %  (1)       switch          50
│  ├─ arms <= 1.5             8   12.5 %   0
│  └─ arms > 1.5             24   37.5 %  (1)       switch          25
│     ├─ aid <= 0.5           6    9.4 %   1
│     └─ aid > 0.5           18   28.1 %  (0)       reallocation    20
│        ├─ arms <= 5.5      12   18.8 %   2
│        └─ arms > 5.5        6    9.4 %   3
└─ aid > 3.5                 32   50.0 %  (0)       double star   33.3
   ├─ arms <= 4.5            20   31.2 %  (2)       mixed         16.7
   │  ├─ aid <= 5.5          10   15.6 %   10
   │  └─ aid > 5.5           10   15.6 %   0
   └─ arms > 4.5             12   18.8 %   3

(cluster): the one a node had before its split. gain: what the split adds to the objective.
star: one side becomes a new cluster.
double star: both sides become new clusters.
switch: one side joins another cluster.
reallocation: both sides join other clusters.
mixed: one side becomes a new cluster, the other joins another one."""
    )


def test_printed_tree_with_moves_of_one_and_two_leaves():
    assert str(all_moves().truncate(1)) == (
        """\
ClusterTree: 1 leaf, 1 cluster, depth 0, 64 rows

            rows    share   cluster
all rows      64    100 %   0"""
    )
    # Only the moves that occur are explained.
    two = str(all_moves(classes=["left-wing voters of 1985", *"bcde"]).truncate(2))
    assert two == (
        """\
ClusterTree: 2 leaves, 2 clusters, depth 1, 64 rows

                 rows    share   cluster                  split  gain
all rows           64    100 %  (left-wing voters of 1985)  star    100
├─ aid <= 3.5      32   50.0 %   b
└─ aid > 3.5       32   50.0 %   left-wing voters of 1985

(cluster): the one a node had before its split. gain: what the split adds to the objective.
star: one side becomes a new cluster."""
    )


@pytest.mark.parametrize(
    ("gain", "text"),
    [
        *((529.123, "529"), (65.91, "65.9"), (0.16449, "0.164"), (12345.6, "12,346")),
        *((999.4, "999"), (999.9, "1,000"), (1.2e-5, "1.2e-05"), (5e-324, "4.94e-324")),
        *((123456789.0, "123,456,789"), (1e12, "1e+12"), (1.7e308, "1.7e+308")),
    ],
)
def test_gains_are_short(gain, text):
    assert format_gain(gain) == text


def test_printed_tree_of_one_leaf_and_of_an_empty_one():
    builder = Builder(np.array([[1.0], [2.0], [3.0]]), [0, 1, 1])
    assert str(builder.tree()) == (
        """\
ClusterTree: 1 leaf, 2 clusters, depth 0, 3 rows

            rows    share  mistakes  cluster  rows by reference cluster
all rows       3    100 %         1  1        1: 66.7 %, 0: 33.3 %"""
    )
    builder.split(0, 0, 9.0)
    assert str(builder.tree()).splitlines()[-1] == "└─ x0 > 9        0      0 %         0  0"


def test_printed_tree_shows_at_most_a_few_shares():
    builder = Builder(np.zeros((10, 1)), [0, 0, 0, 0, 1, 1, 2, 3, 4, 5])
    assert str(builder.tree()).endswith("0: 40.0 %, 1: 20.0 %, 2: 10.0 %, 3 others")
    builder = Builder(np.zeros((4, 1)), [0, 1, 2, 3])
    assert str(builder.tree()).endswith("0: 25.0 %, 1: 25.0 %, 2: 25.0 %, 3: 25.0 %")


def test_printed_tree_where_the_label_is_not_the_majority():
    tree = Builder(np.zeros((2, 1)), [1, 1], 2).tree(cluster=[0], mistakes=[2.0])
    lines = str(tree).splitlines()
    assert lines[-2] == "" and lines[-1].startswith("cluster: chosen by the centers")
    assert lines[-3].split() == [
        "all",
        "rows",
        "2",
        "100",
        "%",
        "2",
        "0",
        "1:",
        "100",
        "%",
    ]


def test_deep_levels_are_numbered_and_not_indented():
    lines = export_text(chain(6), max_indent=2).splitlines()
    assert [line[:22].rstrip() for line in lines[3:14]] == [
        "all rows",
        "├─ x0 <= 0.5",
        "└─ x0 > 0.5",
        "   ├─ x1 <= 0.5",
        "   └─ x1 > 0.5",
        "      [3] x2 <= 0.5",
        "      [3] x2 > 0.5",
        "      [4] x3 <= 0.5",
        "      [4] x3 > 0.5",
        "      [5] x4 <= 0.5",
        "      [5] x4 > 0.5",
    ]
    assert lines[-1] == "[d]: depth of the node, where the indentation stops at depth 2."
    assert max(map(len, str(chain(3000)).splitlines())) < 160


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (1, "100 %"), (0.0004, "<0.1 %"), (0.9996, ">99.9 %"), (0.5, "50.0 %")],
)
def test_shares_are_0_or_100_only_when_they_are(share, text):
    assert format_share(share) == text


def test_weights_are_short():
    texts = [format_weight(w) for w in (0.0, 12345.0, 0.123456, 12345.678, NAN)]
    assert texts == ["0", "12,345", "0.123", "12,346", ""]


def test_html_is_static_escaped_and_bounded():
    page = customers(feature_names=["<script>alert(1)</script>", 'a & "b"'])._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "a &amp; &quot;b&quot; &lt;= 4.5" in page
    assert page.count("<tr>") == 8
    assert "nodes" not in page
    large = balanced(2000)._repr_html_()
    assert large.count("<tr>") == 201
    assert "The first 200 of 3,999 nodes" in large


def test_html_of_a_tree_with_moves():
    page = all_moves(classes=["<b>", *"bcde"])._repr_html_()
    assert page.count("<tr>") == 14
    assert "mistakes" not in page
    assert "reference" not in page
    # An empty square and parentheses where the node was split, a full one at leaves.
    assert '<span style="color:#1f77b4">&#9633;</span> (&lt;b&gt;)</td>' in page
    assert '<span style="color:#1f77b4">&#9632;</span> &lt;b&gt;</td>' in page
    assert page.count("&#9633;") == 6
    assert page.count("&#9632;") == 7
    assert ">double star</td>" in page
    assert ">33.3</td>" in page
    assert "double star: both sides become new clusters." in page


# ---- explanations -------------------------------------------------------------------------


def test_explain_rows():
    tree = customers()
    X = np.array([[38.2, 7], [50, 3], [70, 5], [41.6, 5], [90, 5]])
    lines = [
        "cluster 3: income = 38.2 <= 41.5",
        "cluster 1: income = 50 > 41.5 and tenure (years) = 3 <= 4.5",
        "cluster 7: 60 <= income = 70 <= 79.5 and tenure (years) = 5 > 4.5",
        "cluster 7: 41.5 < income = 41.6 < 60 and tenure (years) = 5 > 4.5",
        "cluster 7: income = 90 > 79.5 and tenure (years) = 5 > 4.5",
    ]
    leaves = route_all(tree, X)
    assert explain_rows(tree, leaves, X) == lines
    columns = [X[:, 0], X[:, 1].astype(np.int8)]
    assert explain_rows(tree, leaves, columns) == lines
    assert explain_rows(tree, leaves, lambda row, feature: X[row, feature]) == lines
    assert explain_rows(tree, [], X) == []


def test_explain_rows_without_conditions_and_with_one_value():
    builder = Builder(np.array([[1.0], [3.0]]), [0, 1])
    assert explain_rows(builder.tree(), [0], np.ones((1, 1))) == ["cluster 0: always"]
    builder.split(0, 0, interval=(3, 3))
    assert explain_rows(builder.tree(), [1], np.array([[3.0]])) == ["cluster 1: x0 = 3"]


def test_explain_writes_short_floats_only_where_they_say_the_truth():
    builder = Builder(np.array([[1.0], [50.0]]), [0, 1])
    builder.split(0, 0, 38.2)
    tree = builder.tree()
    X = np.array([[7.1], [38.2]], dtype=np.float32)
    # 38.2 in 32 bits is a little more than 38.2 in 64, and went right.
    assert explain_rows(tree, route_all(tree, X), X) == [
        "cluster 0: x0 = 7.1 <= 38.2",
        "cluster 1: x0 = 38.20000076293945 > 38.2",
    ]
    flags = [np.array([True, False])]
    assert explain_rows(tree, [1, 1], flags) == [
        "cluster 0: x0 = 1 <= 38.2",
        "cluster 0: x0 = 0 <= 38.2",
    ]


def test_explain_refuses_what_does_not_fit():
    tree = customers()
    with pytest.raises(ValueError, match="Row 1 does not belong to leaf 1: the value 50 of income"):
        explain_rows(tree, [1, 1], np.array([[3.0, 3], [50, 3]]))
    with pytest.raises(ValueError, match="leaf_ids holds 2, which is not a leaf"):
        explain_rows(tree, [1, 2], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="one dimension"):
        explain_rows(tree, [[1]], np.zeros((1, 2)))


# ---- polars -------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(12))
def test_polars_routes_alike(seed, engine):
    tree, X = random_tree(seed, 1 + 3 * seed, intervals=seed % 2 == 1, grid=[0, 7][seed % 3 == 0])
    frame = pl.DataFrame(X, schema=["x0", "x1", "x2"])
    found = evaluate(frame, to_polars_expr(tree), engine)
    assert found.name == "cluster"
    assert found.dtype == pl.Int64
    assert found.to_list() == tree.leaf_clusters[route_all(tree, X)].tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_polars_and_explanations_of_a_tree_with_moves(engine):
    tree, X = random_moves(1, 12)
    frame = pl.DataFrame(X, schema=["x0", "x1", "x2"])
    leaves = route_all(tree, X)
    labels = tree.leaf_clusters[leaves].tolist()
    assert evaluate(frame, to_polars_expr(tree), engine).to_list() == labels
    lines = explain_rows(tree, leaves, X)
    assert [line.split(":")[0] for line in lines] == [f"cluster {label}" for label in labels]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "dtype",
    [pl.Float32, pl.Int8, pl.UInt64, pl.Int64, pl.Decimal(10, 2), pl.Boolean, pl.Float64],
)
def test_polars_compares_as_float64(dtype, engine):
    values = [Decimal("0.5"), Decimal("1.25"), Decimal(3), Decimal("38.2"), Decimal(100)]
    if dtype == pl.Boolean:
        column = pl.Series([False, True, True])
    elif dtype.is_integer():
        column = pl.Series([0, 1, 3, 38, 100]).cast(dtype)
    else:
        column = pl.Series(values).cast(dtype)
    # Thresholds at the values themselves: rounded to 32 bits, some would change sides.
    builder = Builder(np.arange(60.0)[:, None], np.arange(60) % 4)
    left = builder.split(0, 0, 38.2)
    builder.split(left, 0, interval=(0.5, 1.25))
    tree = builder.tree(classes=["a", "b", "c", "d"])
    as_floats = [[float(value)] for value in column.to_list()]
    expected = ["abcd"[code] for code in tree.leaf_clusters[route_all(tree, as_floats)]]
    found = evaluate(pl.DataFrame({"x0": column}), to_polars_expr(tree), engine)
    assert found.to_list() == expected
    assert found.dtype == pl.String


@pytest.mark.parametrize("engine", ENGINES)
def test_polars_gives_null_for_missing_values_of_used_columns(engine):
    frame = pl.DataFrame(
        {
            "income": [10.0, None, 50.0, 50.0, 50.0],
            "unused": [None, None, None, 1.0, NAN],
            # Not on the first row's way, and null all the same.
            "tenure": [NAN, 1.0, None, 3.0, 9.0],
        }
    )
    builder = Builder(np.array([[10, 0, 1], [50, 0, 3], [50, 0, 9.0]]), [0, 1, 2])
    left = builder.split(0, 0, 41.5)
    builder.split(left + 1, 2, 5)
    tree = builder.tree(feature_names=["income", "unused", "tenure"])
    found = evaluate(frame, to_polars_expr(tree), engine)
    assert found.to_list() == [None, None, None, 1, 2]


@pytest.mark.parametrize("engine", ENGINES)
def test_polars_with_awkward_names_and_one_leaf(engine):
    names = ["*", "^x.*$", 'a "b"']
    tree, X = random_tree(5, 9, feature_names=names)
    frame = pl.DataFrame(X, schema=names).with_columns(x1=0.0)
    expected = tree.leaf_clusters[route_all(tree, X)].tolist()
    assert evaluate(frame, to_polars_expr(tree), engine).to_list() == expected
    single = tree.truncate(1)
    (code,) = single.leaf_clusters
    assert evaluate(frame.head(3), to_polars_expr(single), engine).to_list() == [code] * 3
    assert evaluate(frame.head(0), to_polars_expr(single), engine).to_list() == []


def test_polars_in_with_columns_filter_and_group_by():
    tree, X = random_tree(2, 6)
    frame = pl.DataFrame(X, schema=["x0", "x1", "x2"])
    labels = tree.leaf_clusters[route_all(tree, X)]
    lazy = frame.lazy().with_columns(to_polars_expr(tree).alias("segment"))
    counts = lazy.group_by("segment").len().sort("segment").collect(engine="streaming")
    assert counts["len"].to_list() == np.unique(labels, return_counts=True)[1].tolist()
    assert frame.filter(to_polars_expr(tree) == labels[0]).height == (labels == labels[0]).sum()


def test_polars_at_the_bounds():
    """The largest trees allowed run, even in a thread with a small stack, as on some systems."""
    script = """
import sys
import numpy as np, polars as pl
from trees import balanced, chain, route_all
from treeclust_rs.export import to_polars_expr
X = np.random.default_rng(0).uniform(0, 1, (50, 5)) * np.arange(1, 11)[:, None].repeat(5, 0)
frame = pl.DataFrame(X, schema=[f"x{i}" for i in range(5)])
def work():
    for tree in (chain(201), balanced(int(sys.argv[1]))):
        expected = tree.leaf_clusters[route_all(tree, X)].tolist()
        for engine in ("in-memory", "streaming"):
            lazy = frame.lazy().select(to_polars_expr(tree))
            assert lazy.collect(engine=engine).to_series().to_list() == expected
    print("right")
"""
    assert output_of(script + IN_A_SMALL_STACK, "10000") == "right"


@pytest.mark.parametrize("tree", [chain(202), balanced(10_001)], ids=["deep", "wide"])
def test_polars_refuses_what_it_cannot_carry(tree):
    with pytest.raises(ValueError, match=r"too large for a polars expression .*model.predict"):
        to_polars_expr(tree)


# ---- Graphviz -----------------------------------------------------------------------------


def test_graphviz_text():
    assert to_graphviz(customers().truncate(3)) == (
        """\
digraph ClusterTree {
  graph [ordering=out];
  node [shape=box, style="rounded,filled", fillcolor="#ffffff", color="#555555"];
  node [fontname="Helvetica"];
  edge [color="#555555", fontname="Helvetica", fontsize=10];
  0 [label="income <= 41.5\\n1,500 rows (100 %)\\nmistakes of the cut: 0"];
  1 [label="cluster 3\\n630 rows (42.0 %)", fillcolor="#c7ddec", color="#1f77b4"];
  2 [label="tenure (years) <= 4.5\\n870 rows (58.0 %)\\nmistakes of the cut: 0"];
  3 [label="cluster 1\\n229 rows (15.3 %)\\n1: 99.1 %, 3: 0.9 %", \
fillcolor="#ffdfc3", color="#ff7f0e"];
  4 [label="cluster 7\\n641 rows (42.7 %)\\n7: 97.5 %, 3: 2.5 %", \
fillcolor="#cae7ca", color="#2ca02c"];
  0 -> 1 [label="yes"];
  0 -> 2 [label="no"];
  2 -> 3 [label="yes"];
  2 -> 4 [label="no"];
}
"""
    )


def test_graphviz_of_a_tree_with_moves():
    lines = to_graphviz(all_moves(classes=['a "b"', *"bcde"])).splitlines()
    assert lines[5:8] == [
        '  0 [label="aid <= 3.5\\n64 rows (100 %)\\ncluster a \\"b\\"\\nsplit: star, gain 100", '
        'color="#1f77b4"];',
        '  1 [label="arms <= 1.5\\n32 rows (50.0 %)\\ncluster b\\nsplit: switch, gain 50", '
        'color="#ff7f0e"];',
        '  2 [label="arms <= 4.5\\n32 rows (50.0 %)\\ncluster a \\"b\\"\\n'
        'split: double star, gain 33.3", color="#1f77b4"];',
    ]
    assert lines[8].endswith('fillcolor="#c7ddec", color="#1f77b4"];')


def test_graphviz_escapes_names():
    text = to_graphviz(customers(feature_names=['a"b\\N', "c\nd"]))
    assert 'label="a\\"b\\\\N <= 41.5\\n' in text
    assert 'label="c\\\\nd <= 4.5\\n' in text
    # Outside of its escapes no label has a quote.
    for label in re.findall(r'label="((?:[^"\\]|\\.)*)"', text):
        assert '"' not in label.replace('\\"', "")
    assert to_graphviz(chain(20_000)).count("->") == 39_998


# ---- pictures -----------------------------------------------------------------------------


@pytest.mark.parametrize("orientation", ["auto", "down", "right"])
@pytest.mark.parametrize(
    "tree",
    [
        customers(),
        random_tree(1, 8, intervals=True)[0],
        random_tree(2, 20, n_clusters=12, feature_names=["a", "b" * 60, "$c^2_$"])[0],
        chain(20),
        customers().truncate(3),
        Builder(np.zeros((3, 1)), [0, 0, 1]).tree(),
        all_moves(),
        random_moves(3, 20, max_clusters=12, feature_names=["a", "b" * 60, "$c^2_$"])[0],
    ],
    ids=["small", "eight", "twenty", "skewed", "base", "leaf", "moves", "twenty moves"],
)
def test_picture_is_legible(pyplot, tree, orientation):
    ax = plot_tree(tree, orientation=orientation)
    boxes = boxes_of(ax)
    assert len(boxes) == tree.n_nodes
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[number + 1 :])
    # Every text lies in a box, and everything in the figure.
    for text in node_texts(ax):
        extent = text.get_window_extent()
        assert any(
            box.x0 <= extent.x0 and extent.x1 <= box.x1 and box.y0 <= extent.y0 <= box.y1
            for box in boxes
        ), text.get_text()
    figure = ax.figure.bbox
    assert all(
        figure.x0 <= box.x0 and box.x1 <= figure.x1 and figure.y0 <= box.y0 and box.y1 <= figure.y1
        for box in boxes
    )
    assert sum(text.get_text() == "yes" for text in ax.texts) == tree.n_leaves - 1


def test_picture_shows_names_rows_and_colors(pyplot):
    from matplotlib.colors import to_hex
    from matplotlib.patches import FancyBboxPatch

    names = ["income before tax and transfers in 2024", "tenure $ (years)"]
    tree = customers(feature_names=names)
    colors = ["#112233", "#445566", "#778899", "#aabbcc"]
    ax = plot_tree(tree, colors=colors, title="Customers $5 to $9", max_name_length=20)
    texts = [text.get_text() for text in ax.texts]
    assert "income before…n 2024 ≤ 41.5" in texts
    assert "tenure $ (years) ≤ 4.5" in texts
    assert "60 ≤ income before…n 2024 ≤ 79.5" in texts
    assert "1,500 rows · 100 %" in texts
    assert "cluster 7" in texts
    assert "99.1 % pure" in texts
    assert ax.get_title() == "Customers $5 to $9"
    frames = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    assert to_hex(frames[1].get_edgecolor()) == "#112233"
    ax.figure.canvas.draw()


def test_picture_shows_moves_and_clusters_of_all_nodes(pyplot):
    from matplotlib.colors import to_hex
    from matplotlib.patches import FancyBboxPatch

    tree = all_moves(classes=["conservative house members", *"bcde"])
    ax = plot_tree(tree, max_name_length=12)
    texts = [text.get_text() for text in node_texts(ax)]
    assert texts[:4] == ["aid ≤ 3.5", "64 rows · 100 %", "cluster conserva…ers", "star, gain 100"]
    assert "double star, gain 33.3" in texts
    assert not any("pure" in text for text in texts)
    frames = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    colors = cluster_colors(5)
    for node, frame in enumerate(frames):
        assert to_hex(frame.get_edgecolor()) == colors[tree.cluster[node]]
        assert (to_hex(frame.get_facecolor()) == "#ffffff") == (tree.kind[node] != 0)


def legend_of(ax):
    """Title and texts of the legend of the bars, and its place, in pixels."""
    legend = ax.get_legend()
    texts = [text.get_text() for text in legend.get_texts()]
    ax.figure.canvas.draw()
    return legend.get_title().get_text(), texts, legend.get_window_extent()


@pytest.mark.parametrize("orientation", ["down", "right"])
@pytest.mark.parametrize("fontsize", [6.0, 9.0, 20.0])
@pytest.mark.parametrize(
    "classes", ["0123456789", [f"a long name, of {number}" for number in range(10)]]
)
def test_legend_of_the_bars_lies_below_the_tree(pyplot, classes, fontsize, orientation):
    from matplotlib.colors import to_hex

    tree, _ = random_tree(2, 12, n_clusters=10, classes=list(classes))
    ax = plot_tree(tree, fontsize=fontsize, orientation=orientation)
    title, texts, place = legend_of(ax)
    assert title == "bars: rows by reference cluster"
    assert texts == [f"cluster {name}" for name in classes]
    assert not any(place.overlaps(box) for box in boxes_of(ax))
    figure = ax.figure.bbox
    assert figure.x0 <= place.x0 and place.x1 <= figure.x1 and figure.y0 <= place.y0
    faces = [patch.get_facecolor() for patch in ax.get_legend().get_patches()]
    assert [to_hex(face) for face in faces] == cluster_colors(10)


def test_legend_of_the_bars_in_given_axes_and_of_moves(pyplot):
    _, axes = pyplot.subplots(figsize=(6, 3))
    title, texts, place = legend_of(plot_tree(all_moves(), axes))
    assert title == "bars: rows by final cluster"
    assert len(texts) == 5
    assert not any(place.overlaps(box) for box in boxes_of(axes))
    assert axes.bbox.y0 <= place.y0
    assert plot_tree(all_moves(), legend=False).get_legend() is None
    assert plot_tree(all_moves().truncate(1)).get_legend() is None
    many = random_tree(2, 40, n_clusters=31)[0]
    assert plot_tree(many).get_legend() is None
    assert len(plot_tree(many, legend=True).get_legend().get_texts()) == 31


@pytest.mark.parametrize("tree", [customers(), all_moves()], ids=["customers", "moves"])
def test_picture_without_details(pyplot, tree):
    ax = plot_tree(tree, details=False)
    texts = [text.get_text() for text in node_texts(ax)]
    assert not any(word in text for text in texts for word in ("row", "pure", "gain"))
    assert ax.get_legend() is None
    assert not [patch for patch in ax.patches if type(patch).__name__ == "Rectangle"]
    leaves = tree.leaves.tolist()
    shares = tree.n_node_samples[leaves] / tree.n_node_samples[0]
    assert [text for text in texts if "%" in text] == [
        format_share(share) for _, share in sorted(zip(leaves, shares, strict=True))
    ]
    full = plot_tree(tree).figure.get_size_inches()
    assert (ax.figure.get_size_inches() < full).all()


def test_colors_are_those_of_matplotlib(pyplot):
    from matplotlib.colors import to_hex
    from matplotlib.patches import FancyBboxPatch

    ax = plot_tree(customers(), colors=["C0", *["red"] * 3])
    frames = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    assert {to_hex(frame.get_edgecolor()) for frame in frames} == {"#6b7280", "#ff0000", "#1f77b4"}


def test_long_names_are_shortened_in_texts_and_stay_different(pyplot):
    question = "How satisfied are you with the {} of our service in the last quarter of this year?"
    names = [question.format("speed"), question.format("price")]
    alike = ["a" * 80, "a" * 45 + "b" * 15 + "a" * 20]
    tree = customers(feature_names=names, classes=[*alike, "c", "d"])
    for text in (export_text(tree), tree._repr_html_(), to_graphviz(tree)):
        assert "How satisfied are you with the speed of …arter of this year?" in text
        assert "a" * 37 + "…" + "a" * 18 + " [0]" in text
        assert not any(name in text for name in (*names, *alike))
    texts = [text.get_text() for text in node_texts(plot_tree(tree))]
    assert "How satisfied… year? [0] ≤ 41.5" in texts
    assert "How satisfied… year? [1] ≤ 4.5" in texts
    assert f"cluster {'a' * 13}…{'a' * 6} [1]" in texts
    # Files, rules and expressions keep them whole.
    assert tree_from_dict(tree_to_dict(tree)) == tree
    assert names[0] in tree.rules()["rule"][0]
    assert names[0] in str(to_polars_expr(tree))


HIDDEN = "".join(map(chr, [0x202E, 0x2066, 0x200F, 0x061C, 0x200B, 0x85, 0x7]))


def test_characters_that_reorder_text_are_escaped(pyplot):
    tree = customers(feature_names=[f"in{HIDDEN}come", "tenure"], classes=[HIDDEN, *"bcd"])
    texts = [
        export_text(tree),
        tree._repr_html_(),
        to_graphviz(tree),
        *[text.get_text() for text in plot_tree(tree).texts],
        *explain_rows(tree, [1], np.zeros((1, 2))),
        str(tree.rules()),
        tree.rules()._repr_html_(),
    ]
    assert not any(character in text for text in texts for character in HIDDEN)
    assert all(r"\u202e" in text for text in (*texts[:3], *texts[-3:]))
    # Joiners are part of words and of pictures.
    family = "a\u200db"
    assert f"{family} <= " in export_text(customers(feature_names=[family, "b"]))


def test_picture_in_given_axes(pyplot):
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8, 4))
    with pytest.warns(UserWarning, match=r"too small for a tree of 9 leaves: .* 3\.\d points"):
        assert plot_tree(chain(9), ax=left) is left
    assert plot_tree(customers(), right, title="right") is right
    for ax in (left, right):
        for box in boxes_of(ax):
            assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1
    # The text shrinks with the tree.
    assert left.texts[-1].get_fontsize() < 9.0
    assert len(pyplot.get_fignums()) == 1


def test_picture_refuses(pyplot, monkeypatch):
    with pytest.raises(ValueError, match=r"each of the 4 clusters, in the order .* Got 2 colors"):
        plot_tree(customers(), colors=["#000000", "#ffffff"])
    with pytest.raises(ValueError, match=r"must be a list .* Got 'red'"):
        plot_tree(customers(), colors="red")
    with pytest.raises(ValueError, match="colors holds 'rde', which is not a colour"):
        plot_tree(customers(), colors=["red", "rde", "red", "red"])
    with pytest.raises(ValueError, match="orientation must be"):
        plot_tree(customers(), orientation="up")
    with pytest.raises(ValueError, match=r"301 leaves is too large .*truncate"):
        plot_tree(balanced(301))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install treeclust_rs\[plot\]"):
        plot_tree(customers())


def test_drawing_is_not_needed_for_anything_else():
    script = (
        "import sys, treeclust_rs.export; "
        "assert not any(name.split('.')[0] == 'matplotlib' for name in sys.modules)"
    )
    assert output_of(script) == ""


def test_cluster_colors_differ():
    colors = cluster_colors(60)
    assert len(set(colors)) == 60
    assert all(re.fullmatch("#[0-9a-f]{6}", color) for color in colors)
    assert cluster_colors(3) == colors[:3]


# ---- JSON ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tree",
    [
        customers(),
        customers(feature_names=None, classes=["a", 'b"', "ü\n", ""]),
        random_tree(4, 40, intervals=True)[0],
        Builder(np.zeros((3, 1)), [0, 0, 1]).tree(),
        chain(20_000),
        balanced(20_000),
        all_moves(),
        all_moves(feature_names=None, classes=["a", 'b"', "ü\n", "", "x"]).truncate(3),
        random_moves(5, 40, weighted=True)[0],
        all_moves().truncate(1),
        chain_of_moves(20_000),
    ],
    ids=[
        *("ints", "texts", "random", "leaf", "deep", "wide"),
        *("moves", "moves texts", "moves random", "moves leaf", "moves deep"),
    ],
)
def test_json_round_trip(tree):
    text = save(tree)
    assert load(text) == tree
    assert "NaN" not in text
    content = json.loads(text)
    assert content["schema_version"] == SCHEMA_VERSION == 2
    # Other trees have none of what Kauri's have.
    has_moves = tree.move is not None
    assert (content["tree"].keys() >= {"move", "gain"}) == has_moves
    assert bool(content["tree"].keys() & {"move", "gain"}) == has_moves


def test_json_is_one_key_per_line():
    lines = save(customers()).splitlines()
    assert lines[1:3] == [' "format": "treeclust_rs",', ' "schema_version": 2,']
    assert '  "threshold": [41.5, -2.0, 4.5, -2.0, null, -2.0, -2.0],' in lines
    assert len(lines) == 5 + len(tree_to_dict(customers())) + 1
    assert dumps({"a": {}, "b": {"c": {"d": 1}}, "e": None}).splitlines()[3:] == [
        ' "a": {},',
        ' "b": {',
        '  "c": {"d": 1}',
        " },",
        ' "e": null',
        "}",
    ]


def test_json_keeps_every_bit():
    numbers = [0.1, -0.0, 5e-324, 1.7976931348623157e308, 1 / 3, 1e22]
    (restored,) = loads(dumps({"numbers": numbers})).values()
    assert [number.hex() for number in restored] == [number.hex() for number in numbers]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("[" * 200_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("[1, 2]", "must hold an object, not a list"),
        ("null", "must hold an object, not null"),
        ("{}", 'lacks "format"'),
        ('{"format": "other", "schema_version": 1}', 'lacks "format"'),
        ('{"format": "treeclust_rs"}', "no integer schema_version"),
        ('{"format": "treeclust_rs", "schema_version": true}', "no integer schema_version"),
        ('{"format": "treeclust_rs", "schema_version": 3}', "schema_version 3; .* reads 1 to 2"),
        ('{"format": "treeclust_rs", "schema_version": 0}', "schema_version 0; .* reads 1 to 2"),
        ('{"format": "treeclust_rs", "schema_version": 1, "x": NaN}', "holds NaN"),
        ('{"format": "treeclust_rs", "schema_version": 1, "x": -Infinity}', "holds -Infinity"),
        ('{"format": "treeclust_rs", "schema_version": 1, "x": 1e999}', "1e999, too large"),
        ('{"x": ' + "9" * 5000 + "}", "integer of 5000 digits"),
        ('{"x": 1, "x": 2}', "key 'x' twice"),
    ],
)
def test_bad_files_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        loads(text)


def test_dumps_refuses_what_json_has_not():
    for number in (NAN, math.inf):
        with pytest.raises(ValueError, match="not JSON compliant"):
            dumps({"x": number})
    with pytest.raises(ValueError, match="schema_version"):
        dumps({"schema_version": 3})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"extra": 1}, "unknown key 'extra'"),
        ({"kind": ...}, "lacks 'kind'"),
        ({"n_features": True}, "n_features .* integer, not true or false"),
        ({"n_features": 2.0}, "n_features .* integer, not a number"),
        ({"n_features": 10**40}, "n_features"),
        ({"n_base_leaves": None}, "n_base_leaves .* not null"),
        ({"feature_names": "ab"}, "feature_names .* must be a list, not a string"),
        ({"feature_names": [1, 2]}, "feature_names .* holds an integer"),
        ({"classes": [0, 1, 2, None]}, "classes .* holds null"),
        ({"classes": [0, 1, 2, 3.0]}, "classes .* holds a number"),
        ({"classes": [0, 1, 2]}, "row of 4 entries; 3 were expected"),
        ({"classes": []}, "row of 4 entries; 0 were expected"),
        ({"children_left": {}}, "children_left .* must be a list, not an object"),
        ({"children_left": [1]}, "children_right .* has 7 entries; 1 were expected"),
        ({"feature": [True] * 7}, "feature .* holds true or false"),
        ({"feature": [0.0] * 7}, "feature .* holds a number"),
        ({"feature": [2**63] * 7}, "feature .* integer that is too large"),
        ({"kind": [9, 0, 1, 0, 2, 0, 0]}, "Node 0 .* unknown kind"),
        ({"threshold": ["1"] * 7}, "threshold .* holds a string"),
        ({"threshold": [False] * 7}, "threshold .* holds true or false"),
        ({"threshold": [10**400] * 7}, "threshold .* too large"),
        ({"threshold": [NAN] * 7}, "threshold .* not finite"),
        ({"impurity": [math.inf] * 7}, "impurity .* not finite"),
        ({"impurity": [None] * 7}, "impurity that is negative or not finite"),
        ({"value": [[1.0, 0, 0, None]] * 7}, "value .* holds null"),
        ({"value": [1.0] * 7}, "value .* holds a number"),
        ({"value": [[[1.0]]] * 7}, "value .* row of 1 entries"),
    ],
)
def test_bad_trees_are_refused(changes, message):
    content = tree_to_dict(customers()) | changes
    content = {key: value for key, value in content.items() if value is not ...}
    with pytest.raises(ValueError, match=message):
        tree_from_dict(content)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"move": ...}, "both move and gain, or neither"),
        ({"gain": ...}, "both move and gain, or neither"),
        ({"move": None}, "move .* must be a list, not null"),
        ({"move": [0]}, "move .* has 1 entries; 13 were expected"),
        ({"move": [0.0] * 13}, "move .* holds a number"),
        ({"move": [None] * 13}, "move .* holds null"),
        ({"move": [0] * 13}, "Node 3 .* needs a move in .* -1 if it is a leaf"),
        ({"gain": [1.0]}, "gain .* has 1 entries; 13 were expected"),
        ({"gain": [True] * 13}, "gain .* holds true or false"),
        ({"gain": [None] * 13}, "Node 0 .* needs a finite gain"),
        ({"gain": [1.0] * 13}, "Node 3 .* NaN if it is a leaf"),
        ({"value": None}, "value .* must be a list, not null"),
        ({"value": [[1.0, 0, 0, 0, 0]] * 13}, "not the shares of its leaves' clusters"),
        ({"classes": [0, 1]}, "row of 5 entries; 2 were expected"),
        ({"gains": []}, "unknown key 'gains'"),
    ],
)
def test_bad_trees_with_moves_are_refused(changes, message):
    content = tree_to_dict(all_moves()) | changes
    content = {key: value for key, value in content.items() if value is not ...}
    with pytest.raises(ValueError, match=message):
        tree_from_dict(content)


@pytest.mark.parametrize("content", [None, 1, "tree", [], [["kind", 1]]])
def test_what_is_no_object_is_refused(content):
    with pytest.raises(ValueError, match="must be an object"):
        tree_from_dict(content)


def test_float_array():
    assert float_array([[1, 2.5], [0, 3]], "centers", (2, 2)).tolist() == [[1, 2.5], [0, 3]]
    assert np.isnan(float_array([None, 1], "x", (2,), null=True)).tolist() == [True, False]
    with pytest.raises(ValueError, match=r"centers .* 1 entries; 2 were expected"):
        float_array([[1.0]], "centers", (2, 1))


def test_ten_thousand_mutated_files():
    """Each loads a tree that works or raises ValueError: no other error, no hang."""
    n_files = repeats(1_500, 10_000)
    builder = Builder(np.arange(12.0).reshape(6, 2), [0, 0, 1, 1, 2, 2])
    left = builder.split(0, 0, 3.5)
    builder.end_base()
    builder.split(left + 1, 1, interval=(5.5, 9))
    sources = [
        save(builder.tree(feature_names=["a", "b"])),
        save(builder.tree(classes=["p", "q", "r"])),
        save(Builder(np.zeros((2, 1)), [0, 1]).tree()),
    ]
    mutants = Mutants(sources, seed=0)
    for number, _, tree in mutants.first(n_files):
        assert isinstance(tree, ClusterTree)
        row = [6.0] * int(min(tree.n_features, 1000))
        assert route(tree, row) in tree.leaves
        assert load(save(tree)) == tree
        if number % 10 == 0:
            assert str(tree)
            assert tree.rules().height == tree.n_leaves
            to_graphviz(tree)
    # Most mutations break a file; those of statistics, names and thresholds do not.
    assert 0.03 < mutants.n_loaded / n_files < 0.5
    assert mutants.longest_message < 500


def test_mutated_files_of_trees_with_moves():
    """What loads is a tree that Kauri could have grown, whatever was done to the file."""
    n_files = repeats(1_000, 4_000)
    sources = [
        save(all_moves_builder(n_splits).tree(feature_names=["a", "b"])) for n_splits in (1, 3, 6)
    ]
    n_changed = 0
    mutants = Mutants(sources, changes=(move_entries, mutate))
    for _, source, tree in mutants.first(n_files):
        n_changed += tree != load(source)
        assert load(save(tree)) == tree
        if tree.move is None:
            # Both keys were renamed or deleted at once.
            continue
        assert_grown_by_kauri(tree)
        assert tree.truncate(max(tree.n_leaves - 1, 1)).n_leaves == max(tree.n_leaves - 1, 1)
        assert str(tree)
        assert tree._repr_html_()
        assert tree.rules().height == tree.n_leaves
        to_graphviz(tree)
    # Most changes to such a tree contradict something else in it.
    assert 0.025 * n_files < n_changed < mutants.n_loaded < 0.5 * n_files


def assert_grown_by_kauri(tree):
    """Grow the tree anew: one split after the other, each of them a legal move."""
    leaves = {0: 0}
    n_clusters = 1
    for left in range(1, tree.n_nodes, 2):
        node = int(tree.parent[left])
        own = leaves.pop(node)
        pair = int(tree.cluster[left]), int(tree.cluster[left + 1])
        legal = legal_moves(n_clusters, own, own in leaves.values())
        assert (MOVES[tree.move[node]], *pair) in legal
        leaves |= {left: pair[0], left + 1: pair[1]}
        n_clusters = max(n_clusters, 1 + max(pair))
        assert tree.gain[node] > 0
        assert tree.n_node_samples[[left, left + 1]].sum() == tree.n_node_samples[node]
    assert set(leaves.values()) == set(range(len(tree.classes)))
    assert tree.cluster[list(leaves)].tolist() == list(leaves.values())
    assert (tree.n_node_samples > 0).all()
    assert np.isnan(tree.mistakes).all()
    assert tree.value.sum(axis=2) == pytest.approx(1.0)
    for node in range(tree.n_nodes):
        assert all(part.span.lower < part.span.upper for part in tree.path_conditions(node))
