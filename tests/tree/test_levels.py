"""Trees with tests on levels and on missing cells, and with directions of missing cells."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from scipy.sparse import csr_array

from mixed_trees import (
    DAY,
    HAS_MISSING,
    KINDS,
    NAMES,
    REGIONS,
    MixedBuilder,
    frame_of,
    random_builder,
    random_cells,
    random_tree,
)
from treeclust_rs import _engine, metrics
from treeclust_rs._data.checks import count_gaps
from treeclust_rs._data.table import read_table
from treeclust_rs.export import explain_rows, plot_tree, to_graphviz, to_polars_expr
from treeclust_rs.tree import LEVELS, ClusterTree, build, with_directions
from treeclust_rs.tree.cluster_tree import NonFiniteError
from treeclust_rs.tree.columns import Column
from treeclust_rs.tree.paths import branch_condition, walk_leaves, walk_nodes
from treeclust_rs.tree.reshape import splits_by_gain
from treeclust_rs.tree.words import branch_text
from trees import NAN

SEEDS = range(60)


def cells_for(seed: int, n: int = 200) -> np.ndarray:
    """Return rows with gaps in all columns."""
    return random_cells(np.random.default_rng(1000 + seed), n)


# ---- routing --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_take_the_way_of_the_definition(seed):
    builder = random_builder(seed)
    tree, cells = builder.tree(), cells_for(seed)
    expected = [builder.leaf_of(row) for row in cells]
    assert tree.apply(cells).tolist() == expected
    assert tree.apply(list(cells.T.copy()), 2).tolist() == expected
    assert tree.apply(csr_array(np.nan_to_num(cells))).tolist() == [
        builder.leaf_of(row) for row in np.nan_to_num(cells)
    ]
    assert tree.apply(builder.X).tolist() == [builder.leaf_of(row) for row in builder.X]


def test_infinite_cells_and_gaps_without_directions_are_refused():
    builder = MixedBuilder(np.zeros((4, 8)), np.zeros(4, dtype=int))
    builder.test(0, 0, at_most=0.5, missing_left=True)
    tree, row = builder.tree(), np.zeros((1, 8))
    row[0, 1] = NAN  # not tested
    assert tree.apply(row).tolist() == [1]
    row[0, 0] = np.inf
    with pytest.raises(NonFiniteError, match="contain inf"):
        tree.apply(row)
    row[0, 0] = NAN
    assert tree.apply(row).tolist() == [1]
    with pytest.raises(NonFiniteError, match="contain NaN or inf"):
        builder.tree(missing_go_to_left=None).apply(row)


def test_fits_without_gaps_send_missing_cells_to_the_larger_side():
    tests = _engine.TestArrays(
        kind=np.array([1, 5, 1, 0, 0, 0, 0], dtype=np.int8),
        feature=np.array([0, 0, 0, -2, -2, -2, -2]),
        threshold=np.array([1.0, NAN, 2.0, -2.0, -2.0, -2.0, -2.0]),
        lower=np.full(7, NAN),
        upper=np.full(7, NAN),
        children_left=np.array([1, 3, 5, -1, -1, -1, -1]),
        children_right=np.array([2, 4, 6, -1, -1, -1, -1]),
    )
    rows = np.array([7, 3, 4, 1, 2, 2, 2])
    filled = with_directions(tests, rows).missing_go_to_left
    # Fewer rows on the left; a test for missing cells; as many.
    assert filled.tolist() == [False, True, True, False, False, False, False]
    learned = tests._replace(missing_go_to_left=np.ones(7, dtype=bool))
    assert with_directions(learned, rows) is learned
    oblique = tests._replace(kind=np.array([3, 0, 0], dtype=np.int8))
    assert with_directions(oblique, rows).missing_go_to_left is None


# ---- paths and words ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_conditions_hold_for_the_rows_of_a_leaf_and_no_others(seed):
    builder = random_builder(seed)
    tree, cells = builder.tree(), cells_for(seed)
    leaves = tree.apply(cells)
    for leaf, _, path in walk_leaves(tree):
        conditions = path.conditions()
        assert conditions == tree.path_conditions(leaf)
        assert path.size == sum(condition.size for condition in conditions)
        met = np.ones(len(cells), dtype=bool)
        for condition in conditions:
            x = cells[:, condition.feature]
            if condition.codes is None:
                holds = np.array([any(s.contains(v) for s in condition.spans) for v in x])
            else:
                holds = np.isin(x, condition.codes)
            met &= np.where(np.isnan(x), condition.missing, holds)
        assert np.array_equal(met, leaves == leaf)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_walk_leaves_the_path_as_it_was(seed):
    tree = random_tree(seed)
    sizes = {}
    for node, _, path in walk_nodes(tree):
        alone = tree.path_conditions(node)
        assert path.conditions() == alone
        assert [c.missing for c in path.conditions()] == [c.missing for c in alone]
        sizes[node] = path.size
        assert path.size == sum(condition.size for condition in alone)
    leaves = tree.leaves.tolist()
    assert metrics.n_conditions(tree) == sum(sizes[leaf] for leaf in leaves)


def one_test(feature: int, **test: object) -> ClusterTree:
    """Return the tree of one test."""
    builder = MixedBuilder(random_cells(np.random.default_rng(0), 40), np.arange(40) % 3)
    builder.test(0, feature, **test)
    return builder.tree()


NOON = 19_783.5 * DAY  # of 2024-03-01


@pytest.mark.parametrize(
    ("feature", "test", "left", "right"),
    [
        (
            0,
            {"at_most": 41000, "missing_left": True},
            "income <= 41000 or missing",
            "income > 41000",
        ),
        (0, {"at_most": 0.5}, "income <= 0.5", "income > 0.5 or missing"),
        (1, {"at_most": 30, "missing_left": True}, "age <= 30", "age > 30"),
        (0, {}, "income is missing", "income is not missing"),
        (0, {"between": (1, 2)}, "1 <= income <= 2", "income < 1 or income > 2 or missing"),
        (2, {"codes": [4]}, "region in {north}", "region not in {north} or missing"),
        (
            2,
            {"codes": [0, 1, 2, 3], "missing_left": True},
            "region not in {north, West} or missing",
            "region in {north, West}",
        ),
        (
            2,
            {"codes": [0, 1, 3], "missing_left": True},
            'region in {"", " east", "a, b"} or missing',
            "region in {10, north, West}",
        ),
        (2, {"codes": range(6)}, "region is not missing", "region is missing"),
        (2, {}, "region is missing", "region is not missing"),
        (3, {"codes": [1]}, "newsletter", "newsletter is false or missing"),
        (3, {"codes": [0], "missing_left": True}, "newsletter is false or missing", "newsletter"),
        (4, {"at_most": NOON}, "signup <= 2024-03-01", "signup > 2024-03-01 or missing"),
        (
            4,
            {"at_most": 0, "missing_left": True},
            "signup <= 1970-01-01 or missing",
            "signup > 1970-01-01",
        ),
        (5, {"at_most": NOON}, "seen <= 2024-03-01 13:00+01:00", "seen > 2024-03-01 13:00+01:00"),
        (
            5,
            {"at_most": NOON + 40 * DAY + 1_000_001},
            "seen <= 2024-04-10 14:00:01.000001+02:00",
            "seen > 2024-04-10 14:00:01.000001+02:00",
        ),
        (7, {"at_most": NOON}, "made <= 2024-03-01 12:00", "made > 2024-03-01 12:00 or missing"),
        (
            7,
            {"at_most": -1e6},
            "made <= 1969-12-31 23:59:59",
            "made > 1969-12-31 23:59:59 or missing",
        ),
        (6, {"at_most": 3.5 * DAY}, "stay <= 3d 12h", "stay > 3d 12h or missing"),
        (6, {"at_most": -61_000_005}, "stay <= -1m 1s 5us", "stay > -1m 1s 5us or missing"),
        (6, {"at_most": 0}, "stay <= 0s", "stay > 0s or missing"),
        (
            4,
            {"between": (1, DAY + 1)},
            "signup = 1970-01-02",
            "signup < 1970-01-02 or signup > 1970-01-02 or missing",
        ),
    ],
)
def test_conditions_in_words(pyplot, feature, test, left, right):
    tree = one_test(feature, **test)
    rules = tree.rules()["rule"].to_list()
    assert rules == [left, right]
    text = str(tree)
    assert f"├─ {left} " in text and f"└─ {right} " in text
    no = "no or missing" if right.endswith("or missing") else "no"
    assert [line.split('"')[1] for line in to_graphviz(tree).splitlines() if "->" in line] == [
        "yes",
        no,
    ]
    drawn = [shown.get_text() for shown in plot_tree(tree).texts]
    assert [answer for answer in drawn if answer in ("yes", "no", "no or missing")] == ["yes", no]


def test_dates_between_whole_days():
    column = Column("date")
    # The last day that begins by then, and the first one that begins from then on.
    assert column.value_text(NOON) == "2024-03-01"
    assert column.value_text(NOON, up=True) == "2024-03-02"
    assert column.value_text(NOON - DAY / 2, up=True) == "2024-03-01"
    assert column.value_text(-1.0) == "1969-12-31"


def test_conditions_are_merged_along_a_path():
    builder = random_builder(0, kinds="t")
    builder = MixedBuilder(builder.X, builder.labels)
    left = builder.test(0, 2, codes=[0, 1, 4, 5], missing_left=True)
    left = builder.test(left, 2, codes=[0, 4, 5], missing_left=True)
    left = builder.test(left, 0, at_most=5, missing_left=True)
    right = builder.test(left, 0)
    inner = builder.test(right + 1, 2, codes=[0], missing_left=False)
    tree = builder.tree()
    assert tree.rules()["rule"].to_list()[:3] == [
        '(region in {"", north, West} or missing) and income is missing',
        'region in {""} and income <= 5',
        "(region in {north, West} or missing) and income <= 5",
    ]
    assert tree.path_conditions(inner)[0].codes == (0,)
    assert [condition.size for condition in tree.path_conditions(inner)] == [1, 1]


def test_a_rule_that_no_row_meets_says_so():
    builder = MixedBuilder(np.zeros((3, 8)), np.arange(3))
    left = builder.test(0, 3, codes=[0])  # no flag
    right = builder.test(left, 3, codes=[0], missing_left=True) + 1
    tree = builder.tree()
    assert tree.rules()["rule"].to_list() == ["not newsletter", "never", "newsletter or missing"]
    assert tree.leaves[1] == right
    # A gap gets there, though the fit had none.
    builder = MixedBuilder(np.zeros((3, 8)), np.arange(3))
    left = builder.test(0, 3, codes=[0], missing_left=True)
    builder.test(left, 3, codes=[0])
    rules = builder.tree(has_missing=None).rules()["rule"].to_list()
    assert rules == ["not newsletter", "newsletter is missing", "newsletter"]


def test_many_levels_are_counted_in_texts_and_written_in_rules():
    names = (*(f"level {i}" for i in range(96)), "x" * 80)
    builder = MixedBuilder(np.zeros((3, 8)), np.arange(3))
    builder.test(0, 2, codes=[*range(40), 96])
    changes = {"levels": (None, None, names, ("false", "true"), *[None] * 4)}
    tree = builder.tree(**changes)
    assert "region in {level 0, level 1, level 2, level 3, level 4 and 36 more}" in str(tree)
    rule = tree.rules()["rule"].to_list()[0]
    assert rule == f"region in {{{', '.join(names[:40])}, {'x' * 80}}}"
    for codes, shown in (([1, 2, 3, 4, 96], "level 4, x"), (range(1, 7), "level 5 and 1 more}")):
        builder = MixedBuilder(np.zeros((3, 8)), np.arange(3))
        builder.test(0, 2, codes=codes)
        text = str(builder.tree(**changes))
        assert shown in text and ("…" in text) == (96 in codes)  # long levels are shortened


@pytest.mark.parametrize(
    ("level", "text"),
    [
        ("north", "north"),
        ("New York", "New York"),
        ("", '""'),
        (" ", '" "'),
        ("a ", '"a "'),
        ("a, b", '"a, b"'),
        ("{a}", '"{a}"'),
        ('say "a"', '"say \\"a\\""'),
        ("a\\b", "a\\b"),
        ("b and 3 more", '"b and 3 more"'),
        ("Bosnia and Herzegovina", '"Bosnia and Herzegovina"'),
        ("a > 3", '"a > 3"'),
        ("1 or 2", '"1 or 2"'),
        ("Andorra", "Andorra"),
        ("a\x00b", '"a\\x00b"'),
        ("a\u202eb", '"a\\u202eb"'),
        ("x\ny", '"x\\ny"'),
        ("x\\ny", "x\\ny"),
        ("x\\\ny", '"x\\\\\\ny"'),
        ('"x\\ny"', '"\\"x\\\\ny\\""'),
        ("missing", '"missing"'),
        ("missing value", "missing value"),
    ],
)
def test_odd_levels_are_quoted(level, text):
    assert Column("levels", (level,)).set_text("x", [0]) == f"x in {{{text}}}"


@pytest.mark.parametrize(
    "name", ["not", "never", "not paid", "x in {a}", "x is missing", "x is not missing"]
)
def test_names_that_read_as_tests_are_quoted(name):
    tree = one_test(3, codes=[1])
    names = [*NAMES[:3], name, *NAMES[4:]]
    tree = ClusterTree(**tree.arguments() | {"feature_names": names})
    assert tree.rules()["rule"][0] == f'"{name}"'


# ---- new trees ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_to_threshold_sends_every_row_to_the_same_cluster(seed):
    tree, cells = random_tree(seed, "tiiilm"), cells_for(seed, 400)
    plain = tree.to_threshold()
    assert not (plain.kind == 2).any()
    assert plain.predict(cells).tolist() == tree.predict(cells).tolist()
    if plain is not tree:
        assert (plain.levels, plain.column_kinds) == (tree.levels, tree.column_kinds)
    refusing = random_builder(seed, kinds="ti").tree(missing_go_to_left=None)
    whole = random_cells(np.random.default_rng(seed), 200, gaps=False)
    assert refusing.to_threshold().missing_go_to_left is None
    assert refusing.to_threshold().predict(whole).tolist() == refusing.predict(whole).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_truncated_and_reordered_trees_keep_their_tests(seed):
    builder = random_builder(seed)
    tree, cells = builder.tree(), cells_for(seed)
    whole = tree.apply(cells)
    ordered, number = splits_by_gain(tree)
    reordered = ClusterTree(**ordered)
    assert reordered.apply(cells).tolist() == number[whole].tolist()
    for m in range(1, tree.n_leaves + 1):
        part = tree.truncate(m)
        kept = list(range(tree.n_nodes))
        for node in range(2 * m - 1, tree.n_nodes):
            kept[node] = kept[tree.parent[node]]
        assert part.apply(cells).tolist() == np.array(kept)[whole].tolist()
        assert part.has_missing == HAS_MISSING


def test_a_cut_node_keeps_nothing_of_its_test():
    builder = MixedBuilder(random_builder(3).X, random_builder(3).labels)
    builder.test(0, 0, at_most=1, missing_left=True)
    builder.test(1, 2, codes=[1, 2], missing_left=True)
    beside = {"below": [0.5, NAN, NAN, NAN, NAN], "above": [1.5, NAN, NAN, NAN, NAN]}
    tree = builder.tree(**beside)
    assert tree.levels_codes.tolist() == [1, 2]
    part = tree.truncate(2)
    assert (part.levels_indptr, part.levels_codes) == (None, None)
    assert part.missing_go_to_left.tolist() == [True, False, False]
    assert part.below.tolist()[0] == 0.5 and part.above.tolist()[0] == 1.5
    assert tree.truncate(1).below is None


@pytest.mark.parametrize("seed", range(10))
def test_equal_trees_and_pickles(seed):
    tree = random_tree(seed)
    again = pickle.loads(pickle.dumps(tree))
    assert (
        again == tree
        and again.apply(cells_for(seed)).tolist() == tree.apply(cells_for(seed)).tolist()
    )
    others = {
        "has_missing": None,
        "levels": (None, None, REGIONS[::-1], ("false", "true"), *[None] * 4),
        "missing_go_to_left": (tree.kind == 5) | ((tree.kind != 0) & ~tree.missing_go_to_left),
    }
    for name, other in others.items():
        changed = ClusterTree(**tree.arguments() | {name: other})
        assert changed != tree or (name == "missing_go_to_left" and set(tree.kind) <= {0, 5})
    with pytest.raises(AttributeError, match="its levels are fixed"):
        tree.levels = None


# ---- measures -------------------------------------------------------------------------------


def test_measures_count_levels_and_missing_cells():
    builder = MixedBuilder(random_builder(1).X, random_builder(1).labels)
    builder.test(0, 2, codes=[0, 1, 2, 3])  # two others: written in three numbers
    left = builder.test(1, 0)
    builder.test(2, 1, at_most=22)
    tree = builder.tree()
    assert metrics.n_parameters(tree) == 3 + 1 + 2 + 4
    assert metrics.features_per_node(tree) == 1
    sizes = {leaf: path.size for leaf, _, path in walk_leaves(tree)}
    assert sizes[left] == 2
    assert metrics.n_conditions(tree) == 8


# ---- checks ---------------------------------------------------------------------------------


def good() -> dict[str, object]:
    """Return the arguments of a tree with tests of all kinds."""
    builder = MixedBuilder(np.zeros((5, 8)), np.arange(5) % 3)
    builder.test(0, 2, codes=[1, 3])
    builder.test(1, 0)
    builder.test(2, 0, at_most=1, missing_left=True)
    return builder.arrays()


def changed(name: str, place: int, value: object) -> dict[str, object]:
    """Return a change of one entry."""
    array = list(good()[name])  # type: ignore[call-overload]
    array[place] = value
    return {name: array}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"missing_go_to_left": None},
            "Node 0 .* tests levels or missing cells, and the tree has no",
        ),
        ({"missing_go_to_left": [0] * 7}, "must hold 7 bools, one per node. .* dtype int64"),
        ({"missing_go_to_left": [True]}, r"Got shape \(1,\)"),
        (changed("missing_go_to_left", 5, True), "Node 5 .* is a leaf and must have .* False"),
        (changed("missing_go_to_left", 1, False), "Node 1 .* tests for missing cells and must"),
        ({"levels_indptr": None}, "both of levels_indptr and levels_codes, or neither"),
        ({"levels_indptr": None, "levels_codes": None}, "Node 0 .* has no levels_codes"),
        ({"levels_indptr": [0, 2]}, "levels_indptr has 2 entries; it needs 8"),
        ({"levels_indptr": [0, 1, 1, 1, 1, 1, 1, 1]}, "levels_indptr .* does not rise from 0 to 2"),
        ({"levels_indptr": [0, 1, 2, 2, 2, 2, 2, 2]}, "Node 1 .* has levels_codes though"),
        (
            {"levels_indptr": [0] * 8, "levels_codes": []},
            "Node 0 .* tests levels and has no levels_c",
        ),
        ({"levels_codes": [3, 1]}, "Node 0 .* levels_codes that do not ascend"),
        ({"levels_codes": [1, 6]}, "Node 0 .* levels_codes that are none of its feature's levels"),
        ({"levels_codes": [-1, 3]}, "Node 0 .* levels_codes that are none of its feature's levels"),
        (changed("feature", 0, 1), "Node 0 .* tests levels of a feature that has none"),
        (changed("feature", 2, 3), "Node 2 .* compares a feature that has levels"),
        (changed("threshold", 1, 0.5), "Node 1 .* must have the threshold NaN"),
        (changed("lower", 0, 0.5), "Node 0 .* is not an interval node"),
        ({"column_kinds": ["number"] * 7}, "column_kinds must have 8 entries, one per feature"),
        (changed("column_kinds", 1, "text"), "Feature 1 .* unknown kind 'text'"),
        (changed("column_kinds", 1, "datetime[Mars/Olympus]"), "Feature 1 .* no time zone 'Mars/"),
        (changed("column_kinds", 2, "number"), "Feature 2 .* is of kind 'number' and has levels"),
        (
            changed("column_kinds", 1, "levels"),
            "Feature 1 .* is of kind 'levels' and has no levels",
        ),
        ({"column_kinds": None}, "Feature 2 .* is of kind 'number' and has levels"),
        (changed("levels", 3, ("no", "yes")), "Feature 3 .* is a flag with other levels"),
        (changed("levels", 2, ("a", "a")), "levels of feature 2 must differ"),
        (changed("levels", 2, ("a", 1)), "levels of feature 2 must be strings"),
        (changed("levels", 2, "ab"), "levels of feature 2 must be strings"),
        (changed("levels", 2, ("a", "\ud800")), "Feature 2 has a level .* not valid Unicode"),
        (
            changed("levels", 2, tuple(map(str, range(256)))),
            "Feature 2 has 256 levels; at most 255",
        ),
        ({"has_missing": [True]}, "has_missing must have 8 entries"),
        ({"below": [0.0] * 7}, "Node 0 .* has a value below a threshold, and has none"),
        ({"below": [NAN] * 2 + [np.inf] + [NAN] * 4}, "Node 2 .* value below .* not finite"),
        (
            {"below": [NAN] * 2 + [1.5] + [NAN] * 4, "above": [NAN] * 2 + [2.0] + [NAN] * 4},
            "Node 2 .* value below its threshold that is above",
        ),
        (
            {"below": [NAN] * 2 + [0.5] + [NAN] * 4, "above": [NAN] * 2 + [1.0] + [NAN] * 4},
            "Node 2 .* value above its threshold that is not",
        ),
        (changed("feature", 2, 4) | changed("threshold", 2, 1e16), "Node 2 .* times beyond 2..53"),
    ],
)
def test_bad_arguments_are_refused(changes, message):
    ClusterTree(**good())
    with pytest.raises(ValueError, match=message):
        ClusterTree(**good() | changes)


def test_255_levels_are_taken():
    levels = changed("levels", 2, tuple(map(str, range(255))))
    tree = ClusterTree(**good() | levels | {"levels_codes": [0, 254]})
    rows = np.full((3, 8), NAN)
    rows[:, 2] = 0, 253, 254
    assert tree.apply(rows).tolist() == [3, 5, 3]


def test_memory_does_not_grow_with_the_number_of_columns():
    builder = MixedBuilder(np.zeros((4, 8)), np.zeros(4, dtype=int))
    builder.test(0, 0, at_most=0.5, missing_left=True)
    nothing = dict.fromkeys(["column_kinds", "levels", "has_missing", "feature_names"])
    tree = builder.tree(n_features=2**60, **nothing)
    assert tree.rules()["rule"].to_list() == ["x0 <= 0.5", "x0 > 0.5"]


# ---- tables ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_columns_of_levels_take_the_way_of_their_codes(seed):
    tree, cells = random_tree(seed), cells_for(seed)
    columns: list = list(cells.T.copy())
    for feature, n_levels in ((2, len(REGIONS)), (3, 2)):
        codes = np.where(np.isnan(cells[:, feature]), 255, cells[:, feature])
        columns[feature] = _engine.LevelColumn(codes.astype(np.uint8), n_levels)
    assert tree.apply(columns).tolist() == tree.apply(cells).tolist()
    assert tree.apply(columns, 2).tolist() == tree.apply(cells).tolist()


@pytest.mark.parametrize("seed", range(8))
def test_a_grown_tree_routes_the_rows_of_its_fit_as_the_fit_did(seed):
    rng = np.random.default_rng(seed)
    cells = random_cells(rng, 120)
    frame = frame_of(cells, rng, unknown=False)
    table = count_gaps(read_table(frame, estimator_name="test", mixed=True), 1)
    labels = np.where(cells[:, 0] > 0, 1, 2).astype(np.uint32)
    labels[np.nan_to_num(cells[:, 2], nan=4) >= 3] = 0
    labels[:20] = rng.integers(0, 3, 20)
    regrets = 1.0 - np.eye(3)[labels]
    fitted = _engine.fit_tree(
        table.data,
        labels,
        n_labels=3,
        base=None,
        criterion=(regrets, False),
        sample_weight=None,
        max_leaves=12,
        max_depth=None,
        min_samples_leaf=1,
        n_jobs=1,
        progress=None,
    )
    tree = build.GrownTree.of(fitted).build([0, 1, 2], table)
    assert tree.column_kinds == KINDS and tree.has_missing == (True,) * 8
    assert tree.levels == (None, None, tuple(sorted(REGIONS)), ("false", "true"), *[None] * 4)
    assert {1, 4} <= set(tree.kind.tolist())
    assert tree.apply(table.data).tolist() == fitted.leaf_of_row.tolist()
    assert tree.n_node_samples[tree.leaves].tolist() == [
        int((fitted.leaf_of_row == leaf).sum()) for leaf in tree.leaves
    ]
    found = frame.select(to_polars_expr(tree)).to_series()
    assert found.to_list() == tree.predict(table.data).tolist()
    assert len(explain_rows(tree, tree.apply(table.data), table.data)) == 120


# ---- missing cells that do not get to a node ----------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_missing_cells_arrive_where_the_path_lets_them(seed):
    tree = random_tree(seed)
    for node, _, path in walk_nodes(tree):
        allowed = {condition.feature: condition.missing for condition in path.conditions()}
        is_leaf = tree.kind[node] == 0
        assert tree.missing_arrives[node] == (is_leaf or allowed.get(tree.feature[node], True))


def test_branches_name_no_level_that_does_not_get_to_the_node():
    n_named = 0
    for tree in (random_tree(seed, "lm") for seed in range(60)):
        arriving = {node: path.conditions() for node, _, path in walk_nodes(tree)}
        for node in np.flatnonzero(tree.kind == LEVELS).tolist():
            n_named += check_branches(tree, node, arriving[node])
    assert n_named > 60


def check_branches(tree, node, arriving):
    """Check what the branches of a test on levels are called; return whether levels can get there.

    `arriving`: the conditions of the path to the node.
    """
    feature = int(tree.feature[node])
    known = tree.column(feature).levels
    codes = set(range(len(known)))
    for condition in arriving:
        if condition.feature == feature:
            codes &= set(condition.codes)
    left = set(tree.level_test(node).tolist())
    are_apart = bool(codes & left) and bool(codes - left)
    for is_left, side in ((True, codes & left), (False, codes - left)):
        named = set(branch_condition(tree, node, is_left).codes)
        if are_apart:
            assert named & codes == side  # the same of the rows there
            n_listed = min(len(named), len(known) - len(named))
            assert n_listed == min(len(side), len(codes) - len(side))
        else:
            assert named == (left if is_left else set(range(len(known))) - left)
    return are_apart


def test_branches_speak_of_missing_cells_only_where_some_arrive():
    builder = MixedBuilder(random_builder(3).X, random_builder(3).labels)
    left, right = builder.test(0, 0, at_most=0, missing_left=True), 2
    builder.test(left, 0, at_most=-1, missing_left=True)
    last = builder.test(right, 0, at_most=1, missing_left=True)
    builder.test(last, 2, codes=[1, 2], missing_left=True)
    tree = builder.tree()
    below = {node: branch_text(tree, node, True) for node in (0, left, right, last)}
    assert below == {
        0: "income <= 0 or missing",
        left: "income <= -1 or missing",
        right: "income <= 1",
        last: 'region in {" east", 10} or missing',
    }
    branches = [re.match("[│├└─ ]*.*?(?=  |$)", line)[0] for line in str(tree).splitlines()]
    assert [branch for branch in branches if "income" in branch] == [
        "├─ income <= 0 or missing",
        "│  ├─ income <= -1 or missing",
        "│  └─ income > -1",
        "└─ income > 0",
        "   ├─ income <= 1",
        "   └─ income > 1",
    ]
    assert "income <= 1 or missing" not in to_graphviz(tree)
    assert "income <= 0 or missing" in to_graphviz(tree)
