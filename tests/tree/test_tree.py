"""ClusterTree: its checks, its reading aids, and the trees made from it."""

import copy
import itertools
import math
import pickle

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from sizes import repeats
from treeclust_rs._util.words import format_number
from treeclust_rs.tree import ClusterTree
from treeclust_rs.tree.nodes import MOVES
from treeclust_rs.tree.paths import Span, walk_leaves
from trees import (
    NAN,
    Builder,
    MovesBuilder,
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

N_HUGE = repeats(5_000, 20_000)


def small_builder():
    """Three splits on ages and incomes: two of a base, then an interval."""
    X = np.array([[20, 1], [25, 2], [30, 9], [35, 8], [50, 3], [55, 9], [60, 4], [65, 8.0]])
    builder = Builder(X, [0, 0, 1, 1, 2, 2, 2, 2])
    left = builder.split(0, 0, 40)
    builder.split(left, 1, 5.5)
    builder.end_base()
    builder.split(2, 1, interval=(3.5, 8))
    return builder


def small_tree(**changes):
    return small_builder().tree(
        **({"feature_names": ["age", "income"], "classes": ["a", "b", "c"]} | changes)
    )


# ---- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"children_left": [1, -1, -1]}, "children_right has 7 entries; children_left has 3"),
        ({"children_left": [1, 3, 7, -1, -1, -1, -1]}, "Node 2 .* a left child that is not one of"),
        ({"children_left": [1, 3, -1, -1, -1, -1, -1]}, "Node 2 .* has one child"),
        ({"children_left": [1, 1, 5, -1, -1, -1, -1]}, "Node 1 .* a left child that is not one of"),
        (
            {
                "children_left": [1, 5, 5, -1, -1, -1, -1],
                "children_right": [2, 6, 6, -1, -1, -1, -1],
            },
            "child of exactly one node",
        ),
        ({"children_right": [2, 4, 4, -1, -1, -1, -1]}, "id does not follow the left's"),
        ({"children_left": [[1]]}, "children_left must have one dimension. Got 2"),
        ({"children_left": []}, "children_left is empty"),
        ({"children_left": [1.0, 3.0, 5.0, -1, -1, -1, -1]}, "children_left must hold integers"),
        ({"kind": [1, 1, 1, 0, 0, 0, 0]}, "Node 2 .* threshold that is not finite"),
        ({"kind": [1, 1, 9, 0, 0, 0, 0]}, "Node 2 .* unknown kind"),
        ({"kind": [1, 0, 2, 0, 0, 0, 0]}, "Node 1 .* leaf by its kind or its children"),
        ({"kind": [True] * 7}, "kind must hold integers. Got dtype bool"),
        ({"feature": [0, 2, 1, -2, -2, -2, -2]}, r"Node 1 .* feature outside of 0\.\.1"),
        ({"feature": [0, 1, 1, 0, -2, -2, -2]}, "Node 3 .* feature -2"),
        ({"feature": [2**64 - 1] * 7}, "beyond 64-bit"),
        ({"threshold": [math.inf, 1, NAN, -2, -2, -2, -2]}, "Node 0 .* not finite"),
        ({"threshold": [1, 1, NAN, 0, -2, -2, -2]}, "Node 3 .* leaf with a threshold"),
        ({"threshold": [1, 1, 5, -2, -2, -2, -2]}, "Node 2 .* must have the threshold NaN"),
        ({"lower": [NAN, NAN, 9, NAN, NAN, NAN, NAN]}, "Node 2 .* lower above upper"),
        ({"lower": [NAN] * 7}, "Node 2 .* an end that is not finite"),
        ({"upper": [1, NAN, 9, NAN, NAN, NAN, NAN]}, "Node 0 .* not an interval node"),
        ({"impurity": [-1.0] + [0] * 6}, "Node 0 .* a impurity"),
        ({"impurity": [1e308] + [0] * 6}, "Node 0 .* overflows times its weight"),
        ({"n_node_samples": [8, 4, 4, 2, -2, 2, 2]}, "Node 4 .* negative n_node_samples"),
        ({"weighted_n_node_samples": [8, 4, 4, 2, 2, NAN, 2]}, "Node 5 .* weighted_n_node_samples"),
        ({"mistakes": [math.inf] + [0] * 6}, "Node 0 .* mistakes"),
        ({"value": np.full((7, 1, 3), 0.5)}, "shares do not sum to 1"),
        ({"value": np.full((7, 1, 3), [2.0, -1.0, 0.0])}, r"value outside of \[0, 1\]"),
        ({"value": np.full((7, 1, 3), NAN)}, r"value outside of \[0, 1\]"),
        ({"value": np.full((7, 3), 1 / 3)}, r"shape .* \(7, 1, 3\). Got \(7, 3\)"),
        ({"value": np.full((7, 1, 3), "1")}, "value must hold numbers"),
        ({"cluster": [0, 0, 0, 0, 1, 2, 3]}, r"Node 6 .* cluster code outside of 0\.\.2"),
        ({"base_cluster": [-1, -1, 2, -1, 1, -1, -1]}, "Node 3 .* base_cluster"),
        ({"base_cluster": [-1, -1, 2, 0, 1, 2, -1]}, "Node 5 .* base_cluster"),
        ({"n_base_leaves": 5}, "n_base_leaves=5 leaves in a tree of 4"),
        ({"n_base_leaves": -1}, "n_base_leaves must be at least 0. Got -1"),
        ({"n_features": 0}, "n_features must be at least 1"),
        ({"n_features": True}, "not a bool"),
        ({"n_features": 2.0}, "n_features must be an int, not float"),
        ({"n_features": 10**30}, "n_features"),
        ({"feature_names": ["age"]}, "1 feature_names for 2 features"),
        ({"feature_names": ["age", 3]}, "must be strings"),
        ({"feature_names": ["age", "age"]}, "must differ"),
        ({"feature_names": ["age", "\ud800"]}, "not valid Unicode"),
        ({"classes": []}, "at least one class"),
        ({"classes": [0, 1, 1]}, "must differ"),
        ({"classes": [0, 1, "2"]}, "all int or all str"),
        ({"classes": [False, True, 2]}, "all int or all str"),
        ({"classes": [0, 1, 2**63]}, "64-bit"),
    ],
)
def test_bad_arrays_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        small_tree(**changes)


def test_even_number_of_nodes():
    arrays = Builder(np.zeros((2, 1)), [0, 0]).arrays()
    doubled = {
        name: content * 2 if isinstance(content, list) and name != "classes" else content
        for name, content in arrays.items()
    }
    with pytest.raises(ValueError, match="odd number of nodes, not 2"):
        ClusterTree(**doubled)


# ---- structure ----------------------------------------------------------------------------


def test_sizes_and_structure():
    tree = small_tree()
    assert (tree.n_nodes, tree.n_leaves, tree.max_depth, tree.n_features) == (7, 4, 2, 2)
    assert tree.parent.tolist() == [-1, 0, 0, 1, 1, 2, 2]
    assert tree.node_depth.tolist() == [0, 1, 1, 2, 2, 2, 2]
    assert tree.leaves.tolist() == [3, 4, 5, 6]
    assert tree.leaf_clusters.tolist() == [-1, -1, -1, 0, 1, 2, 2]
    assert tree.kind.dtype == np.int8
    assert tree.value.shape == (7, 1, 3)
    assert repr(tree) == "ClusterTree(n_leaves=4, max_depth=2, n_features=2, n_clusters=3)"


def test_arrays_are_copied_and_read_only():
    arrays = small_builder().arrays()
    arrays["impurity"] = np.array(arrays["impurity"])
    tree = ClusterTree(**arrays)
    arrays["impurity"][0] = 77
    assert tree.impurity[0] != 77
    for name in ("threshold", "value", "leaf_clusters", "node_depth"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(tree, name)[0] = 0


def test_leaf_labels_of_the_base_and_beyond():
    builder = Builder(np.array([[0.0], [1], [2], [3]]), [0, 1, 1, 1])
    builder.split(0, 0, 1.5)
    builder.end_base({1: 0, 2: 1})
    base = builder.tree()
    builder.split(2, 0, 2.5)
    grown = builder.tree(cluster=[1, 1, 1, 1, 1])
    # Two leaves are exactly the base, which keeps its labels; one more, and all are relabelled.
    assert base.leaf_clusters.tolist() == [-1, 0, 1]
    assert grown.leaf_clusters.tolist() == [-1, 1, -1, 1, 1]
    cut = grown.truncate(2)
    assert cut.leaf_clusters.tolist() == [-1, 0, 1]
    assert cut.mistakes.tolist() == [0.0, 1.0, 0.0]


def test_feature_and_cluster_names():
    assert small_tree(feature_names=None).feature_name(1) == "x1"
    tree = small_tree(feature_names=['a "b" c', "line\nbreak"], classes=["x\ty", "ä", "日本"])
    assert tree.feature_name(0) == 'a "b" c'
    assert tree.feature_name(1) == "line\\nbreak"
    assert [tree.cluster_name(code) for code in range(3)] == ["x\\ty", "ä", "日本"]


def test_apply_and_predict_use_the_core():
    tree, X = random_tree(0, 12, intervals=True, classes=["u", "v", "w"])
    leaves = route_all(tree, X)
    assert tree.apply(X, 1).tolist() == leaves.tolist()
    assert (
        tree.apply([np.ascontiguousarray(column) for column in X.T], 2).tolist() == leaves.tolist()
    )
    assert tree.predict(X).tolist() == ["uvw"[code] for code in tree.leaf_clusters[leaves]]
    with pytest.raises(ValueError, match="3 features; the data have 2"):
        tree.apply(X[:, :2])
    with pytest.raises(ValueError, match="The data have 1 dimension, not 2"):
        tree.apply(X[0])


def test_many_rows_take_the_same_leaves_on_more_threads():
    tree, X = random_tree(1, 12, intervals=True)
    rows = np.resize(X, (5000, X.shape[1]))
    expected = np.resize(tree.apply(X), 5000).tolist()
    for data in (rows, list(np.ascontiguousarray(rows.T))):
        for n_jobs in (1, 2, 3):
            assert tree.apply(data, n_jobs).tolist() == expected


def test_a_tree_prepares_its_tests_for_the_core_once():
    tree, X = random_tree(2, 8)
    leaves = tree.apply(X).tolist()
    router = tree.router
    assert tree.apply(csr_array(X)).tolist() == leaves
    assert tree.router is router
    for other in (pickle.loads(pickle.dumps(tree)), copy.deepcopy(tree), copy.copy(tree)):
        assert "router" not in other.__dict__
        assert other.apply(X).tolist() == leaves
        assert all(not getattr(other, name).flags.writeable for name in other.array_names)
    other, _ = random_tree(3, 5)
    tree.__setstate__(other.__getstate__())
    assert tree.apply(X).tolist() == other.apply(X).tolist()


# ---- rules --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (5.0, "5"),
        (-0.0, "0"),
        (41.5, "41.5"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e-300, "1e-300"),
        (1e16, "1e+16"),
        (123456789012345.0, "123456789012345"),
        (math.nan, "nan"),
    ],
)
def test_numbers_are_written_exactly(number, text):
    assert format_number(number) == text


def test_rules_of_a_small_tree():
    rules = small_tree().rules()
    assert rules.schema == {
        "cluster": pl.String,
        "rule": pl.String,
        "n": pl.Int64,
        "share": pl.Float64,
        "purity": pl.Float64,
        "depth": pl.Int64,
    }
    assert rules.rows() == [
        ("a", "age <= 40 and income <= 5.5", 2, 0.25, 1.0, 2),
        ("b", "age <= 40 and income > 5.5", 2, 0.25, 1.0, 2),
        ("c", "age > 40 and 3.5 <= income <= 8", 2, 0.25, 1.0, 2),
        ("c", "age > 40 and (income < 3.5 or income > 8)", 2, 0.25, 1.0, 2),
    ]
    assert small_tree(classes=[5, -7, 9]).rules()["cluster"].to_list() == [5, -7, 9, 9]


def test_rules_of_a_single_and_of_an_empty_leaf():
    builder = Builder(np.array([[1.0], [2.0]]), [0, 1])
    assert builder.tree().rules().rows() == [(0, "always", 2, 1.0, 0.5, 0)]
    builder.split(0, 0, 7)
    assert builder.tree().rules().rows() == [
        (0, "x0 <= 7", 2, 1.0, 0.5, 1),
        (0, "x0 > 7", 0, 0.0, None, 1),
    ]


def one_feature_tree(*steps):
    """Build a tree whose last leaf is reached by these steps: threshold or interval, and side."""
    builder = Builder(np.array([[0.0]]), [0])
    node = 0
    for test, side in steps:
        is_interval = isinstance(test, tuple)
        left = builder.split(node, 0, **{"interval" if is_interval else "threshold": test})
        node = left if side == "yes" else left + 1
    return builder.tree(), node


@pytest.mark.parametrize(
    ("steps", "rule", "size"),
    [
        ([(9, "yes"), (5, "yes")], "x <= 5", 1),
        ([(5, "yes"), (9, "yes")], "x <= 5", 1),
        ([(9, "yes"), (2, "no"), (5, "yes")], "2 < x <= 5", 2),
        ([(2, "no"), (3, "no")], "x > 3", 1),
        ([((2, 7), "yes")], "2 <= x <= 7", 2),
        ([((3, 3), "yes")], "x = 3", 2),
        ([(5, "yes"), ((2, 7), "yes")], "2 <= x <= 5", 2),
        ([(2, "no"), ((2, 7), "yes")], "2 < x <= 7", 2),
        ([((2, 7), "no")], "x < 2 or x > 7", 2),
        ([((2, 7), "no"), (9, "yes")], "x < 2 or 7 < x <= 9", 3),
        ([((2, 7), "no"), (5, "yes")], "x < 2", 1),
        ([((2, 7), "no"), (7, "yes")], "x < 2", 1),
        ([((2, 7), "no"), (2, "yes")], "x < 2", 1),
        ([((2, 7), "no"), (2, "no")], "x > 7", 1),
        ([((2, 7), "no"), (1, "yes")], "x <= 1", 1),
        ([((2, 7), "no"), (8, "no")], "x > 8", 1),
        ([((2, 7), "no"), (1, "no")], "1 < x < 2 or x > 7", 3),
        ([(5, "yes"), ((2, 7), "no")], "x < 2", 1),
        ([(5, "no"), ((2, 7), "no")], "x > 7", 1),
        ([(7, "no"), ((2, 7), "no")], "x > 7", 1),
        ([(1, "yes"), ((2, 7), "no")], "x <= 1", 1),
        ([((2, 7), "no"), ((10, 12), "no")], "x < 2 or 7 < x < 10 or x > 12", 4),
        ([((10, 12), "no"), ((2, 7), "no")], "x < 2 or 7 < x < 10 or x > 12", 4),
        ([((2, 7), "no"), ((5, 12), "no")], "x < 2 or x > 12", 2),
        ([((2, 3), "no"), ((5, 6), "no"), ((1, 9), "no")], "x < 1 or x > 9", 2),
        ([((2, 3), "no"), ((5, 6), "no"), ((0, 5.5), "yes")], "0 <= x < 2 or 3 < x < 5", 4),
        ([((2, 7), "no"), ((1, 9), "yes")], "1 <= x < 2 or 7 < x <= 9", 4),
        ([((2, 7), "no"), ((7, 9), "yes")], "7 < x <= 9", 2),
        ([(5, "yes"), (7, "no")], "7 < x <= 5", 2),
    ],
)
def test_conditions_on_one_feature_are_merged(steps, rule, size):
    tree, leaf = one_feature_tree(*steps)
    (condition,) = tree.path_conditions(leaf)
    assert condition.text("x") == rule
    assert condition.size == size
    assert {node: path.size for node, _, path in walk_leaves(tree)}[leaf] == size


@pytest.mark.parametrize("seed", range(60))
def test_rules_say_what_the_tree_does(seed):
    """Read as Python, a leaf's rule holds for the rows that reach it and for no others."""
    tree, X = random_tree(seed, 2 + seed % 14, intervals=seed % 3 > 0, grid=[0, 6, 9][seed % 3])
    # Whole numbers in between, where many rows lie exactly on an end.
    rows = np.vstack([X, np.random.default_rng(seed).integers(-1, 10, (200, 3))])
    leaves = route_all(tree, rows)
    for leaf, rule in zip(tree.leaves.tolist(), tree.rules()["rule"].to_list(), strict=True):
        code = compile(rule.replace(" = ", " == "), "rule", "eval")
        held = [
            eval(code, {"x0": row[0], "x1": row[1], "x2": row[2], "always": True}) for row in rows
        ]
        assert held == (leaves == leaf).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_walk_and_single_path_agree(seed):
    tree, _ = random_tree(seed, 30, intervals=True, grid=7, n_features=2)
    for leaf, depth, path in walk_leaves(tree):
        conditions = path.conditions()
        assert conditions == tree.path_conditions(leaf)
        assert path.size == sum(condition.size for condition in conditions)
        assert depth == tree.node_depth[leaf]
    with pytest.raises(ValueError, match="no node 59"):
        tree.path_conditions(59)


def test_spans_contain_their_closed_ends_only():
    span = Span(1.0, True, 2.0, False)
    assert [span.contains(value) for value in (1.0, 1.5, 2.0, 2.5)] == [False, True, True, False]


# ---- truncation ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_truncate_undoes_the_last_splits(seed):
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(120, 3)), rng.integers(0, 3, 120)
    n_base = int(rng.integers(0, 4))
    splits = []
    full = Builder(X, labels)
    for m in range(1, 9):
        if m == n_base:
            full.end_base()
        splits.append((int(rng.choice(full.leaves())), int(rng.integers(3)), rng.normal()))
        if seed % 2 and m >= n_base:
            splits[-1] = (*splits[-1][:2], None, tuple(np.sort(rng.normal(size=2))))
        full.split(*splits[-1])
    whole = full.tree()
    for m in range(max(n_base, 1), 10):
        part = Builder(X, labels)
        if n_base == 1:
            part.end_base()
        for n_leaves, split in enumerate(splits[: m - 1], start=2):
            part.split(*split)
            if n_leaves == n_base:
                part.end_base()
        assert whole.truncate(m) == part.tree(), m
    assert whole.truncate(99) == whole


def test_truncate_refuses():
    tree = small_tree()
    with pytest.raises(ValueError, match="max_leaves=2 is less than the 3 leaves of the base tree"):
        tree.truncate(2)
    for bad in (0, -1, 2.5, True, "3"):
        with pytest.raises(ValueError, match="max_leaves must be"):
            tree.truncate(bad)


def test_truncated_weights_keep_their_fractions():
    weights = np.array([0.5, 0.25, 1.0, 0.3])
    builder = Builder(np.arange(4.0)[:, None], [0, 1, 0, 0], weights=weights)
    builder.split(0, 0, 0.5)
    (mistakes,) = builder.tree().truncate(1).mistakes
    assert mistakes == pytest.approx(0.25)


# ---- intervals as thresholds --------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_to_threshold_routes_alike(seed):
    tree, X = random_tree(seed, 2 + seed % 12, intervals=True, grid=[0, 8][seed % 2])
    rng = np.random.default_rng(seed)
    ends = np.concatenate([tree.lower, tree.upper, tree.threshold])
    ends = ends[np.isfinite(ends)]
    near = np.concatenate([ends, np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf)])
    rows = np.vstack([X, rng.choice(near, (400, 3))])
    plain = tree.to_threshold()
    assert not (plain.kind == 2).any()
    expected = tree.leaf_clusters[route_all(tree, rows)]
    assert plain.leaf_clusters[route_all(plain, rows)].tolist() == expected.tolist()


def test_to_threshold_of_small_cases():
    tree = small_tree()
    plain = tree.to_threshold()
    assert plain.rules()["rule"].to_list() == [
        "age <= 40 and income <= 5.5",
        "age <= 40 and income > 5.5",
        "age > 40 and income <= 3.4999999999999996",
        "age > 40 and 3.4999999999999996 < income <= 8",
        "age > 40 and income > 8",
    ]
    assert plain.n_base_leaves == 0
    assert plain.to_threshold() is plain
    # Nothing lies below the lowest float: no test for it.
    lowest = -np.finfo(float).max
    tree, _ = one_feature_tree(((lowest, 3.0), "yes"))
    assert tree.to_threshold().threshold.tolist() == [3.0, -2.0, -2.0]


def test_to_threshold_on_one_feature_stays_small():
    tree, _ = one_feature_tree(*(((2.0 * i, 2.0 * i + 1), "no") for i in range(300)))
    assert tree.to_threshold().n_leaves == 601


def test_to_threshold_refuses_to_explode():
    builder = Builder(np.zeros((1, 40)), [0])
    node = 0
    for feature in range(40):
        node = builder.split(node, feature, interval=(0.0, 1.0)) + 1
    with pytest.raises(ValueError, match="more than 200,000 nodes"):
        builder.tree().to_threshold()


# ---- moves --------------------------------------------------------------------------------


def changed(name, node, value):
    """The arrays of `all_moves` with one entry replaced."""
    array = np.array(all_moves_builder().arrays()[name])
    array[node] = value
    return {name: array}


INNER = (0, 1, 2, 4, 5, 8)
LEAVES = (3, 6, 7, 9, 10, 11, 12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"move": None}, "both move and gain, or neither"),
        ({"gain": None}, "both move and gain, or neither"),
        ({"move": None, "gain": None}, "A tree without moves needs its value"),
        ({"move": [0]}, "move has 1 entries; children_left has 13"),
        ({"move": np.zeros(13)}, "move must hold integers"),
        ({"gain": ["1"] * 13}, "gain must hold numbers"),
        (changed("move", 0, 5), r"Node 0 .* needs a move in 0\.\.4"),
        (changed("move", 5, -1), r"Node 5 .* needs a move in 0\.\.4"),
        (changed("move", 3, 0), "Node 3 .* needs a move .* and -1 if it is a leaf"),
        (changed("gain", 1, 0.0), "Node 1 .* needs a finite gain above 0"),
        (changed("gain", 1, math.inf), "Node 1 .* needs a finite gain above 0"),
        (changed("gain", 1, NAN), "Node 1 .* needs a finite gain above 0"),
        (changed("gain", 12, 1.0), "Node 12 .* NaN if it is a leaf"),
        (changed("mistakes", 3, 0.0), "Node 3 .* has mistakes"),
        (changed("impurity", 3, NAN), "Node 3 .* has a impurity that is not finite"),
        (changed("n_node_samples", 12, 9), "Node 5 .* has other n_node_samples than its children"),
        (changed("n_node_samples", 12, 2**63 - 1), "Node 5 .* has other n_node_samples"),
        (changed("n_node_samples", 3, 0), "Node 3 .* is empty"),
        (changed("weighted_n_node_samples", 3, 0.0), "Node 3 .* is empty"),
        (changed("weighted_n_node_samples", 9, 12.1), "Node 8 .* another weighted_n_node_samples"),
        (changed("weighted_n_node_samples", [9, 10], 1e308), "Node 8 .* another weighted"),
        (changed("threshold", 8, 1.5), "Node 8 .* threshold that all rows reaching it"),
        (changed("threshold", 5, 3.5), "Node 5 .* threshold that all rows reaching it"),
        (changed("cluster", 0, 1), "root .* must have the cluster code 0"),
        (changed("cluster", 2, 1), "Node 0 .* into the clusters 1 and 1 when there are 1"),
        (changed("cluster", 1, 2), "Node 0 .* into the clusters 2 and 0 when there are 1"),
        (changed("cluster", [5, 6], [3, 2]), "Node 2 .* into the clusters 3 and 2"),
        (
            changed("move", 1, 0)
            | {"cluster": [0, 1, 0, 2, 1, 3, 4, 1, 0, 2, 3, 5, 0], "classes": list(range(6))},
            "Node 2 .* is all of cluster 0, and both",
        ),
        (changed("move", 1, 0), "Node 1 .* has the move 'star'; its clusters make it 'switch'"),
        (changed("move", 8, 4), "has the move 'mixed'; its clusters make it 'reallocation'"),
        ({"classes": list(range(6))}, "make 5 clusters; there are 6 classes"),
        ({"classes": list(range(4))}, r"Node 11 .* cluster code outside of 0\.\.3"),
        ({"n_base_leaves": 1, "base_cluster": [0] + 12 * [-1]}, "no base tree"),
        ({"value": np.full((13, 1, 5), 0.2)}, "Node 0 .* not the shares of its leaves' clusters"),
    ],
)
def test_bad_moves_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        all_moves(**changes)


def test_moves_take_thresholds_only():
    arrays = all_moves_builder().arrays(kind=[2, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0])
    arrays["threshold"][0], arrays["lower"][0], arrays["upper"][0] = NAN, 0.0, 3.5
    with pytest.raises(ValueError, match=r"Node 0 .* a move and an interval test"):
        ClusterTree(**arrays)


@pytest.mark.parametrize("second", [1, 2])
def test_only_legal_moves_are_accepted(second):
    """All clusters of two splits and all names of their moves, against the list of moves."""
    builder = MovesBuilder(np.arange(4.0)[:, None])
    builder.move(0, 0, 1.5, (1, 0), "star")
    builder.move(second, 0, 2 * second - 1.5, (2, 0), "star")
    arrays = builder.arrays()
    n_accepted = 0
    for codes in itertools.product(range(4), repeat=4):
        first_legal = {
            name for name, *clusters in legal_moves(1, 0, False) if tuple(clusters) == codes[:2]
        }
        own, sibling = codes[second - 1], codes[2 - second]
        n_first = max(codes[:2]) + 1
        second_legal = {
            name
            for name, *clusters in legal_moves(n_first, own, own == sibling)
            if tuple(clusters) == codes[2:]
        }
        arrays |= {"cluster": [0, *codes], "classes": list(range(max(codes) + 1))}
        for one, two in itertools.product(MOVES, MOVES):
            move = [MOVES.index(one), -1, -1, -1, -1]
            move[second] = MOVES.index(two)
            try:
                ClusterTree(**(arrays | {"move": move}))
            except ValueError:
                assert not (one in first_legal and two in second_legal), (codes, one, two)
                continue
            assert one in first_legal and two in second_legal, (codes, one, two)
            n_accepted += 1
    # Two stars at the root; then two stars, two switches.
    assert n_accepted == 8


@pytest.mark.parametrize("seed", range(20))
def test_random_moves_hold_together(seed):
    tree, X = random_moves(seed, 2 + seed % 15, weighted=seed % 2 == 1, grid=[0, 6][seed % 3 == 0])
    assert tree.move.dtype == np.int8
    assert not tree.gain.flags.writeable
    leaves = route_all(tree, X)
    labels = tree.leaf_clusters[leaves]
    assert tree.predict(X).tolist() == labels.tolist()
    assert set(labels) == set(range(len(tree.classes)))
    assert tree.to_threshold() is tree
    # The value of a node: the weights of its rows by the cluster that they end in.
    builder, _ = random_moves(
        seed,
        2 + seed % 15,
        weighted=seed % 2 == 1,
        grid=[0, 6][seed % 3 == 0],
        builder_only=True,
    )
    for node, content in enumerate(builder.nodes):
        rows = content["rows"]
        sums = np.bincount(labels[rows], builder.weights[rows], len(tree.classes))
        assert tree.value[node, 0] == pytest.approx(sums / sums.sum(), abs=1e-12)


def test_random_moves_use_every_move():
    used = [random_moves(seed, 12)[0].move for seed in range(20)]
    assert set(np.concatenate(used).tolist()) == {-1, 0, 1, 2, 3, 4}


def test_value_of_moves_can_be_given():
    tree = all_moves()
    assert tree.value[1, 0].tolist() == [8 / 32, 6 / 32, 12 / 32, 6 / 32, 0]
    assert all_moves(value=tree.value) == tree
    # Rounded otherwise, it is kept as it is given.
    rounded = all_moves(value=tree.value * (1 - 1e-12))
    assert rounded.value[3, 0, 0] == 1 - 1e-12
    assert rounded != tree


def test_kernel_costs_may_be_negative():
    assert all_moves(**changed("impurity", 3, -1e-17)).impurity[3] == -1e-17


def test_rules_of_a_tree_with_moves():
    rules = all_moves(classes=["a", "b", "c", "d", "e"]).rules()
    assert rules.schema == {
        "cluster": pl.String,
        "rule": pl.String,
        "n": pl.Int64,
        "share": pl.Float64,
        "depth": pl.Int64,
        "move": pl.String,
        "from_cluster": pl.String,
    }
    assert rules.rows() == [
        ("a", "aid <= 3.5 and arms <= 1.5", 8, 0.125, 2, "switch", "b"),
        ("b", "aid <= 0.5 and arms > 1.5", 6, 6 / 64, 3, "switch", "b"),
        ("c", "0.5 < aid <= 3.5 and 1.5 < arms <= 5.5", 12, 12 / 64, 4, "reallocation", "a"),
        ("d", "0.5 < aid <= 3.5 and arms > 5.5", 6, 6 / 64, 4, "reallocation", "a"),
        ("e", "3.5 < aid <= 5.5 and arms <= 4.5", 10, 10 / 64, 3, "mixed", "c"),
        ("a", "aid > 5.5 and arms <= 4.5", 10, 10 / 64, 3, "mixed", "c"),
        ("d", "aid > 3.5 and arms > 4.5", 12, 12 / 64, 2, "double_star", "a"),
    ]
    single = all_moves().truncate(1).rules()
    assert single.rows() == [(0, "always", 64, 1.0, 0, None, None)]
    assert single.schema == all_moves().rules().schema


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_truncate_undoes_the_last_moves(seed, weighted):
    whole, _ = random_moves(seed, 14, weighted=weighted)
    builder, X = random_moves(seed, 14, weighted=weighted, builder_only=True)
    part = MovesBuilder(X, builder.weights)
    sizes = []
    for left in range(1, whole.n_nodes + 2, 2):
        assert whole.truncate((left + 1) // 2) == part.tree()
        sizes.append(len(part.tree().classes))
        if left < whole.n_nodes:
            node = int(whole.parent[left])
            content = builder.nodes[node]
            codes = builder.nodes[left]["cluster"], builder.nodes[left + 1]["cluster"]
            name = MOVES[content["move"]]
            part.move(node, content["feature"], content["threshold"], codes, name)
    assert sizes == sorted(sizes)
    assert sizes[0] == 1
    assert sizes[-1] == len(whole.classes)


def test_truncate_keeps_the_names_of_the_clusters_it_has():
    tree = all_moves(classes=[7, -1, 5, 9, 3])
    cut = tree.truncate(3)
    assert cut.classes == (7, -1)
    assert cut.leaf_clusters.tolist() == [-1, -1, 0, 0, 1]
    assert cut.value[0, 0].tolist() == [40 / 64, 24 / 64]
    assert cut.gain.tolist()[:2] == [100.0, 50.0]
    assert tree.truncate(1).classes == (7,)
    assert tree.truncate(7) is tree


def test_equality_of_trees_with_moves():
    tree = all_moves()
    assert tree == all_moves()
    assert tree != all_moves(**changed("gain", 0, 99.0))
    plain = all_moves(
        move=None, gain=None, value=tree.value, mistakes=np.where(tree.kind == 0, 0.0, NAN)
    )
    assert plain.move is None
    assert plain.gain is None
    assert plain != tree
    assert tree != plain


# ---- equality, pickling, size -------------------------------------------------------------


def test_equality():
    tree = small_tree()
    assert tree == small_tree()
    assert tree != small_tree(classes=["a", "b", "d"])
    assert tree != small_tree(feature_names=None)
    assert tree != small_tree(threshold=[40.5, 5.5, NAN, -2, -2, -2, -2])
    assert tree != tree.truncate(3)
    assert tree != "tree"
    with pytest.raises(TypeError):
        hash(tree)


@pytest.mark.parametrize("tree", [small_tree(), all_moves()], ids=["plain", "moves"])
def test_pickle_and_copy(tree):
    assert tree.max_depth in (2, 4)
    for other in (pickle.loads(pickle.dumps(tree)), copy.deepcopy(tree), copy.copy(tree)):
        assert other == tree
        assert str(other) == str(tree)
        assert not other.threshold.flags.writeable
        assert other.leaf_clusters.tolist() == tree.leaf_clusters.tolist()


def test_old_pickles_have_no_moves():
    state = small_tree().__getstate__()
    assert "move" not in state
    assert "gain" not in state
    tree = ClusterTree.__new__(ClusterTree)
    tree.__setstate__(state)
    assert tree == small_tree()


@pytest.mark.parametrize("shape", [chain, balanced, chain_of_moves])
def test_nothing_depends_on_depth(shape):
    tree = shape(N_HUGE)
    assert tree.n_leaves == N_HUGE
    assert tree.max_depth == (math.ceil(math.log2(N_HUGE)) if shape is balanced else N_HUGE - 1)
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert tree.truncate(N_HUGE - 1).n_leaves == N_HUGE - 1
    rules = tree.rules()
    assert rules.height == N_HUGE
    assert rules["depth"].max() == tree.max_depth
    assert rules["rule"].str.len_chars().max() < 400
    text = str(tree)
    n_notes = 1 if tree.move is None else 4
    assert text.count("\n") < 2 * N_HUGE + 4 + n_notes
    assert len(text) < 10_000_000
    assert len(tree._repr_html_()) < 200_000
    assert tree.to_threshold() is tree
    row = np.full(5, 0.7)
    assert tree.leaf_clusters[route(tree, row)] >= 0
