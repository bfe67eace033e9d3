"""Trees of levels, flags, times and gaps in other forms: polars, texts, pictures, files."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot as plt

import treeclust_rs as tc
from mixed_trees import (
    DAY,
    KINDS,
    NAMES,
    REGIONS,
    UNKNOWN,
    MixedBuilder,
    frame_of,
    microseconds,
    moved_a_little,
    random_builder,
    random_cells,
    random_tree,
    whole_milliseconds,
)
from polars_engines import ENGINES, evaluate
from treeclust_rs._engine import LevelColumn
from treeclust_rs.export import (
    explain_rows,
    plot_tree,
    to_graphviz,
    to_narwhals_expr,
    to_polars_code,
    to_polars_expr,
    tree_from_dict,
    tree_to_dict,
)
from treeclust_rs.tree import ClusterTree
from trees import NAN


def rows_for(seed: int, n: int = 300) -> np.ndarray:
    """Return rows with gaps and unknown levels."""
    return random_cells(np.random.default_rng(2000 + seed), n)


# ---- polars ---------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("seed", range(40))
def test_polars_puts_rows_where_the_tree_does(seed, unit):
    tree, cells = moved_a_little(random_tree(seed), seed), rows_for(seed)
    if unit == "ms":
        cells = whole_milliseconds(cells)
    frame = frame_of(cells, np.random.default_rng(seed), unit=unit)
    engine = ENGINES[seed % 3]
    found = evaluate(frame, to_polars_expr(tree), engine)
    assert found.to_list() == tree.predict(cells).tolist()


@pytest.mark.parametrize(
    "dtype", [pl.Categorical, pl.Enum([*REGIONS[::-1], UNKNOWN]), pl.String], ids=str
)
def test_polars_compares_levels_of_any_type_as_text(dtype):
    cells = rows_for(0)
    frame = frame_of(cells, np.random.default_rng(0)).with_columns(pl.col("region").cast(dtype))
    for seed in range(8):
        tree = random_tree(seed, "lm")
        assert frame.select(to_polars_expr(tree)).to_series().to_list() == (
            tree.predict(cells).tolist()
        )


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt64, pl.Float32, pl.String, pl.Boolean], ids=str)
def test_flags_may_come_as_numbers(dtype):
    cells = rows_for(0)
    flags = pl.col("newsletter").cast(pl.Boolean).cast(dtype)
    if dtype == pl.String:
        flags = flags.str.to_titlecase()  # as Python writes them
    frame = frame_of(cells, np.random.default_rng(0)).with_columns(flags)
    n_trees = 0
    for seed in range(40):
        tree = random_tree(seed, "lm")
        if NAMES.index("newsletter") not in tree.tested_features:
            continue
        n_trees += 1
        expected = tree.predict(cells).tolist()
        names: dict[str, pl.Expr] = {}
        exec(to_polars_code(tree), names)
        for expression in (to_polars_expr(tree), names["cluster"]):
            assert frame.select(expression).to_series().to_list() == expected
        narwhals = to_narwhals_expr(tree)
        for native in (frame, frame.to_pandas(), frame.to_arrow()):
            found = nw.from_native(native).select(narwhals)["cluster"]
            assert found.to_list() == expected
    assert n_trees > 5


def test_polars_compares_instants_in_any_zone():
    cells = rows_for(1)
    frame = frame_of(cells, np.random.default_rng(0))
    tokyo = frame.with_columns(pl.col("seen").dt.convert_time_zone("Asia/Tokyo"))
    for seed in range(8):
        expression = to_polars_expr(random_tree(seed, "t"))
        assert tokyo.select(expression).equals(frame.select(expression))


def test_polars_without_directions_makes_labels_null():
    builder = random_builder(4, kinds="ti")
    tree = builder.tree(missing_go_to_left=None)
    cells = rows_for(4)
    found = frame_of(cells, np.random.default_rng(4)).select(to_polars_expr(tree)).to_series()
    is_whole = ~np.isnan(cells[:, tree.tested_features]).any(axis=1)
    assert (found.is_null().to_numpy() == ~is_whole).all() and 0 < is_whole.sum() < len(cells)
    assert found.drop_nulls().to_list() == tree.predict(cells[is_whole]).tolist()


def test_polars_takes_infinite_cells_as_predict_takes_large_ones():
    builder = MixedBuilder(rows_for(5), np.arange(300) % 3)
    builder.test(0, 0, at_most=0, missing_left=True)
    frame = pl.DataFrame({"income": [np.inf, 1e300, -np.inf, NAN, None]})
    codes = frame.select(to_polars_expr(builder.tree())).to_series()
    assert codes[0] == codes[1] and codes[2] == codes[3] == codes[4]


# ---- explain --------------------------------------------------------------------------------


def explained() -> ClusterTree:
    """Return a tree that tests region, income and signup."""
    builder = MixedBuilder(random_cells(np.random.default_rng(0), 60), np.arange(60) % 3)
    left = builder.test(0, 2, codes=[2, 3, 4], missing_left=True)
    builder.test(left, 0, at_most=1, missing_left=True)
    builder.test(left + 1, 4, at_most=19_800 * DAY)
    return builder.tree()


def test_explain_says_missing_and_unknown_level():
    tree = explained()
    rows = np.full((5, 8), NAN)
    rows[:4, 0] = 0.5, NAN, 2, 3
    rows[:, 2] = 2, 3, NAN, 5, 0
    rows[3:, 4] = 19_790 * DAY, NAN
    leaves = tree.apply(rows)
    texts = [line.partition(": ")[2] for line in explain_rows(tree, leaves, rows)]
    listed = 'in {10, "a, b", north}'
    assert texts == [
        f"region = 10 {listed} and income = 0.5 <= 1",
        f'region = "a, b" {listed} and income is missing',
        "region is missing and income = 2 > 1",
        'region = West in {"", " east", West} and signup = 2024-03-08 <= 2024-03-18',
        'region = "" in {"", " east", West} and signup is missing',
    ]
    # Levels may be texts, and are then named where the tree does not know them.
    named = {(2, 2): UNKNOWN, (0, 2): "10"}
    values = {(row, j): named.get((row, j), rows[row, j]) for row in range(5) for j in range(8)}
    again = explain_rows(tree, leaves, lambda row, feature: values[row, feature])
    assert again[0].endswith(texts[0])
    assert again[2].endswith("region = atlantis (unknown level) and income = 2 > 1")


def test_explain_reads_columns_of_levels():
    tree = explained()
    rows = np.zeros((2, 8))
    rows[:, 2] = 3, NAN
    data: list = list(rows.T)
    data[2] = LevelColumn(np.array([3, 255], dtype=np.uint8), len(REGIONS))
    lines = explain_rows(tree, tree.apply(rows), data)
    assert lines[0].endswith('region = "a, b" in {10, "a, b", north} and income = 0 <= 1')
    assert lines[1].endswith("region is missing or an unknown level and income = 0 <= 1")


def test_levels_that_would_be_written_alike_differ_in_all_texts():
    for cells in (["x\ny", "x\\ny"], ['"x\ny"', "x\ny"], ["missing", None, "b"]):
        frame = pl.DataFrame({"r": cells * 20})
        reference = np.tile([0] + [1] * (len(cells) - 1), 20)
        model = tc.KMeansTree(reference=reference).fit(frame)
        leaves = str(model.tree_).splitlines()[-2:]
        assert len({line[3:].partition("  ")[0] for line in leaves}) == 2
        assert model.rules()["rule"].n_unique() == 2
        first, second = (line.partition(": ")[2] for line in model.explain(frame[:2]))
        assert first != second
        assert model.explain(frame[:2], as_frame=True)["value"].n_unique() == 2
        changes = model.counterfactual(frame[-1], 0).changes
        assert changes["before"].item() != changes["after"].item()


def test_explain_refuses_rows_of_other_leaves():
    tree = explained()
    leaf = int(tree.apply(np.full((1, 8), NAN))[0])
    other = int(tree.leaves[-1])
    rows = np.full((1, 8), NAN)
    with pytest.raises(ValueError, match=r"Row 0 .* region is missing, which does not meet the"):
        explain_rows(tree, [other], rows)
    rows[0, 2] = 0
    with pytest.raises(ValueError, match='the value "" of region does not meet the condition'):
        explain_rows(tree, [leaf], rows)


@pytest.mark.parametrize("seed", range(20))
def test_explain_takes_every_row_of_its_leaf(seed):
    tree, cells = random_tree(seed), rows_for(seed, 60)
    lines = explain_rows(tree, tree.apply(cells), cells)
    assert len(lines) == 60 and all(line.startswith("cluster ") for line in lines)


# ---- texts and pictures ---------------------------------------------------------------------


def test_texts_and_pictures_show_all_kinds_of_test():
    builder = MixedBuilder(random_cells(np.random.default_rng(1), 60), np.arange(60) % 3)
    left = builder.test(0, 2, codes=[1, 3, 4], missing_left=True)
    builder.test(left, 3, codes=[1])
    builder.test(left + 1, 0)
    builder.test(left + 3, 4, at_most=19_800 * DAY, missing_left=True)
    tree = builder.tree()
    text, html, dot = str(tree), tree._repr_html_(), to_graphviz(tree)
    for shown in ("newsletter", "income is missing", "or missing", "2024-03-18"):
        assert shown in text and shown in html and shown in dot
    assert 'region in {\\" east\\", \\"a, b\\", north} or missing' in dot.replace("\\n", " ")
    ax = plot_tree(tree)
    drawn = "\n".join(text.get_text() for text in ax.texts)
    for shown in ("newsletter", "income is missing", "signup ≤ 2024-03-18 or missing", "region in"):
        assert shown in drawn
    plt.close("all")


def test_long_sets_are_broken_into_lines():
    names = tuple(f"a rather long level, number {i}" for i in range(20))
    levels = (None, None, names, ("false", "true"), *[None] * 4)
    builder = MixedBuilder(np.zeros((3, 8)), np.arange(3))
    builder.test(0, 2, codes=range(9))
    tree = builder.tree(levels=levels)
    dot = to_graphviz(tree)
    label = dot.split('label="')[1].split('"];')[0]
    assert label.count("\\n") >= 4 and "and 4 more}" in label
    ax = plot_tree(tree)
    assert max(text.get_text().count("\n") for text in ax.texts) <= 12
    plt.close("all")
    names = ["longest" * 9, "b", *map(str, range(18))]
    tree = builder.tree(levels=(None, None, tuple(names), ("false", "true"), *[None] * 4))
    for length, shown in ((12, "longestl…est"), (70, names[0])):
        ax = plot_tree(tree, max_name_length=length)
        assert any(f"{{{shown}," in text.get_text() for text in ax.texts)
    plt.close("all")


# ---- files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_a_file_holds_the_whole_tree(seed):
    tree = random_tree(seed)
    content = json.loads(json.dumps(tree_to_dict(tree), allow_nan=False))
    again = tree_from_dict(content)
    assert again == tree
    assert again.predict(rows_for(seed)).tolist() == tree.predict(rows_for(seed)).tolist()
    assert content["column_kinds"] == list(KINDS) and content["levels"][2] == list(REGIONS)
    assert content["missing_go_to_left"] == tree.missing_go_to_left.tolist()
    assert content["below"] is None and content["above"] is None


def test_a_file_holds_the_values_beside_thresholds():
    builder = MixedBuilder(random_cells(np.random.default_rng(1), 60), np.arange(60) % 3)
    builder.test(0, 0, at_most=1)
    builder.test(1, 0)
    beside = {"below": [0.5, *[NAN] * 4], "above": [1.25, *[NAN] * 4]}
    content = tree_to_dict(builder.tree(**beside))
    assert content["below"] == [0.5, None, None, None, None]
    assert content["threshold"][1] is None  # of a test for missing cells
    assert tree_from_dict(content).above[0] == 1.25


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"missing_go_to_left": [1] * 5}, "missing_go_to_left .* holds an integer"),
        ({"missing_go_to_left": [True]}, "missing_go_to_left .* 1 entries; 5 were expected"),
        ({"missing_go_to_left": "yes"}, "missing_go_to_left .* must be a list, not a string"),
        ({"missing_go_to_left": None}, "tests levels or missing cells, and the tree has no"),
        ({"levels": [None] * 8}, "is of kind 'levels' and has no levels"),
        ({"levels": [None, None, ["a", 1], *[None] * 5]}, "levels .* holds an integer"),
        ({"levels": {"region": []}}, "levels .* must be a list, not an object"),
        ({"column_kinds": [None] * 8}, "column_kinds .* holds null"),
        ({"column_kinds": ["number"]}, "column_kinds .* 1 entries; 8 were expected"),
        ({"has_missing": [None] * 8}, "has_missing .* holds null"),
        ({"below": [True] * 5}, "below .* holds true or false"),
        ({"below": [0.0]}, "below .* 1 entries; 5 were expected"),
        ({"levels_codes": [0.5]}, "levels_codes .* holds a number"),
        ({"levels_indptr": [0, 1]}, "levels_indptr .* 2 entries; 6 were expected"),
        ({"levels_codes": [7]}, "levels_codes that are none of its feature's levels"),
    ],
)
def test_broken_files_are_refused(changes, message):
    builder = MixedBuilder(random_cells(np.random.default_rng(1), 60), np.arange(60) % 3)
    builder.test(0, 2, codes=[1])
    builder.test(1, 0)
    content = tree_to_dict(builder.tree())
    tree_from_dict(content)
    with pytest.raises(ValueError, match=message):
        tree_from_dict(content | changes)
    lacking = {name: value for name, value in content.items() if name != "levels_codes"}
    with pytest.raises(ValueError, match="lacks 'levels_codes'"):
        tree_from_dict(lacking)


def test_names_and_times_of_the_rows_agree_with_the_frame():
    cells = random_cells(np.random.default_rng(7), 50, gaps=False)
    frame = frame_of(cells, np.random.default_rng(7))
    assert frame.columns == list(NAMES)
    seen = frame["seen"].to_list()
    assert [microseconds(time.astimezone(UTC)) for time in seen] == cells[:, 5].tolist()
    made = [microseconds(datetime.replace(time, tzinfo=UTC)) for time in frame["made"]]
    assert made == cells[:, 7].tolist()
