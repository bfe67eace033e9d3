"""Trees with oblique tests: their checks, routing, reading aids, files and pictures."""

import copy
import dataclasses
import json
import math
import pickle
import re

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

import treeclust_rs as tc
from mutations import Mutants, load, move_entries, mutate, save
from pictures import boxes_of, node_texts
from polars_engines import ENGINES, evaluate
from processes import IN_A_SMALL_STACK, output_of
from sizes import repeats
from treeclust_rs._data.table import align_table
from treeclust_rs._util.words import format_share, format_short
from treeclust_rs.export import (
    explain_rows,
    export_text,
    plot_tree,
    to_graphviz,
    to_html,
    to_polars_expr,
    tree_from_dict,
    tree_to_dict,
)
from treeclust_rs.metrics import (
    features_per_node,
    n_parameters,
    weighted_average_depth,
    weighted_average_explanation_size,
)
from treeclust_rs.tree.cluster_tree import ClusterTree, NonFiniteError
from treeclust_rs.tree.paths import ObliqueCondition, branch_condition, walk_leaves
from trees import (
    NAN,
    Builder,
    all_moves_builder,
    balanced,
    node_score,
    random_mixed,
    random_tree,
    route,
    route_all,
)

NAMES = ["income", "age", "tenure", "visits", "calls", "mails", "debt"]


def small_builder():
    """An oblique root of two terms; an interval on its left, a wide oblique test on its right."""
    rows = np.arange(60.0)
    X = np.stack([rows % 7, rows % 11, rows % 5, rows % 3, rows % 2, -rows, rows**2], axis=1)
    builder = Builder(X, np.digitize(0.8 * X[:, 0] - 1.2 * X[:, 1], [-5.0, -1.0]))
    left = builder.oblique(0, {0: 0.8, 1: -1.2}, 0.3)
    builder.split(left, 2, interval=(1, 3.5))
    builder.oblique(left + 1, {0: -1, 1: 1.23456, 2: 2.5, 3: -0.001, 4: 12345.6, 6: 0.5}, -1 / 3)
    return builder


def small_tree(**changes):
    return small_builder().tree(
        **({"feature_names": NAMES, "classes": ["low", "mid", "high"]} | changes)
    )


def changed(name, place, value):
    """The array of `small_tree` with one entry replaced."""
    array = np.array(small_builder().arrays()[name])
    array[place] = value
    return {name: array}


# ---- what is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"oblique_bias": None}, "all of oblique_indptr, .* or none; oblique_bias is missing"),
        ({"oblique_indptr": [0, 8]}, "oblique_indptr has 2 entries; it needs 8, one per node and"),
        ({"oblique_weights": [1.0]}, "oblique_weights has 1 entries; it needs 8, as many as"),
        ({"oblique_bias": [1.0]}, "oblique_bias has 1 entries; it needs 7, one per node"),
        ({"oblique_indices": [[1]]}, "oblique_indices must have one dimension. Got 2"),
        ({"oblique_indices": np.zeros(8)}, "oblique_indices must hold integers. Got dtype float64"),
        ({"oblique_weights": ["1"] * 8}, "oblique_weights must hold numbers"),
        ({"oblique_indptr": [True] * 8}, "oblique_indptr must hold integers. Got dtype bool"),
        ({"oblique_indices": [2**64 - 1] * 8}, "beyond 64-bit"),
        (changed("oblique_indptr", 0, 1), "oblique_indptr .* does not rise from 0 to 8"),
        (changed("oblique_indptr", 7, 7), "oblique_indptr .* does not rise from 0 to 8"),
        (changed("oblique_indptr", 1, 9), "oblique_indptr .* does not rise from 0 to 8"),
        (changed("oblique_indptr", 1, -(2**63)), "oblique_indptr .* does not rise from 0 to 8"),
        (changed("oblique_indptr", 1, 1), "Node 1 .* has weights though it is not oblique"),
        (changed("oblique_indptr", [1, 2], 0), "Node 0 .* is oblique and has no weights"),
        (changed("oblique_indices", 0, -1), r"Node 0 .* has oblique_indices outside of 0\.\.6"),
        (changed("oblique_indices", 7, 7), r"Node 2 .* has oblique_indices outside of 0\.\.6"),
        (changed("oblique_indices", 1, 0), "Node 0 .* has oblique_indices that do not ascend"),
        (changed("oblique_indices", 2, 6), "Node 2 .* has oblique_indices that do not ascend"),
        (changed("oblique_weights", 1, 0.0), "Node 0 .* an oblique weight that is 0 or no number"),
        (changed("oblique_weights", 1, -0.0), "Node 0 .* an oblique weight that is 0 or no"),
        (changed("oblique_weights", 7, NAN), "Node 2 .* an oblique weight that is 0 or no number"),
        (changed("oblique_weights", 7, math.inf), "Node 2 .* an oblique weight that is 0 or no"),
        (changed("oblique_bias", 0, NAN), "Node 0 .* an oblique_bias that is not finite"),
        (changed("oblique_bias", 2, -math.inf), "Node 2 .* an oblique_bias that is not finite"),
        (changed("oblique_bias", 1, 0.0), "Node 1 .* must have the oblique_bias NaN"),
        (changed("feature", 0, 0), "Node 0 .* feature -2 .* or tests none"),
        (changed("feature", 1, -2), "Node 1 .* feature -2"),
        (changed("threshold", 0, 1.0), "Node 0 .* oblique node and must have the threshold NaN"),
        (changed("lower", 0, 1.0), "Node 0 .* is not an interval node"),
        (changed("kind", 2, 1) | changed("feature", 2, 0), "Node 2 .* threshold that is not fin"),
        (changed("kind", 1, 3), "Node 1 .* feature -2"),
        (changed("kind", 0, 9), "Node 0 .* unknown kind; .* 3 .oblique"),
        (
            dict.fromkeys(["oblique_indptr", "oblique_indices", "oblique_weights", "oblique_bias"]),
            "Node 0 .* is oblique, and the tree has no weights",
        ),
    ],
)
def test_bad_arrays_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        small_tree(**changes)


def test_trees_with_moves_have_no_oblique_tests():
    arrays = all_moves_builder().arrays(kind=[3, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0])
    arrays["feature"][0], arrays["threshold"][0] = -2, NAN
    arrays |= {
        "oblique_indptr": [0] + 13 * [1],
        "oblique_indices": [1],
        "oblique_weights": [1.0],
        "oblique_bias": [0.0] + 12 * [NAN],
    }
    with pytest.raises(ValueError, match=r"Node 0 .* a move and an oblique test"):
        ClusterTree(**arrays)


@pytest.mark.parametrize("name", ["ExKMC", "IMM"])
def test_models_of_thresholds_refuse_oblique_trees(name, tmp_path):
    path = tmp_path / "model.json"
    rng = np.random.default_rng(0)
    getattr(tc, name)(n_clusters=3, random_state=0).fit(rng.normal(size=(60, 7))).save(path)
    content = json.loads(path.read_text())
    content["tree"] = tree_to_dict(small_tree(feature_names=None, classes=[0, 1, 2]))
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=f"holds an {name} whose tree has oblique tests"):
        tc.load(path)


# ---- structure ----------------------------------------------------------------------------


def test_arrays_and_tests():
    tree = small_tree()
    assert tree.kind.tolist() == [3, 2, 3, 0, 0, 0, 0]
    assert tree.feature.tolist() == [-2, 2, -2, -2, -2, -2, -2]
    assert np.isnan(tree.threshold[[0, 1, 2]]).all()
    assert tree.n_node_features.tolist() == [2, 1, 6, 0, 0, 0, 0]
    features, weights, bias = tree.oblique_test(0)
    assert (features.tolist(), weights.tolist(), bias) == ([0, 1], [0.8, -1.2], 0.3)
    assert tree.oblique_test(2)[0].tolist() == [0, 1, 2, 3, 4, 6]
    for node in (1, 3):
        with pytest.raises(ValueError, match=f"Node {node} of the tree is not oblique"):
            tree.oblique_test(node)
    with pytest.raises(ValueError, match="no node 7"):
        tree.oblique_test(7)
    for name in ("oblique_indptr", "oblique_indices", "oblique_weights", "oblique_bias"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(tree, name)[0] = 0
    assert repr(tree) == "ClusterTree(n_leaves=4, max_depth=2, n_features=7, n_clusters=3)"


def test_a_tree_without_oblique_tests_has_no_such_arrays():
    tree, _ = random_tree(0, 4)
    assert tree.oblique_indptr is None
    assert tree.n_node_features.tolist() == [int(kind != 0) for kind in tree.kind]
    given = ClusterTree(
        **tree.__getstate__(),
        oblique_indptr=np.zeros(8, dtype=int),
        oblique_indices=[],
        oblique_weights=[],
        oblique_bias=[NAN] * 7,
    )
    assert given == tree
    assert given.oblique_bias is None
    with pytest.raises(ValueError, match="is not oblique"):
        tree.oblique_test(0)


def test_arrays_are_copied():
    arrays = small_builder().arrays()
    arrays["oblique_weights"] = np.array(arrays["oblique_weights"])
    tree = ClusterTree(**arrays)
    arrays["oblique_weights"][0] = 77
    assert tree.oblique_weights[0] == 0.8


# ---- routing ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_apply_is_the_plain_router(seed):
    tree, X = random_mixed(seed, 2 + seed % 12, grid=[0, 5][seed % 3 == 0])
    leaves = route_all(tree, X)
    columns = [np.ascontiguousarray(column) for column in X.T]
    frame = pl.DataFrame(X, schema=[f"x{i}" for i in range(6)])
    table = align_table(frame, frame.columns, 6, estimator_name="X")
    wide = np.zeros((len(X), 12))
    wide[:, ::2] = X
    for data in (X, np.asfortranarray(X), columns, table.data, wide[:, ::2]):
        for n_jobs in (1, 2, 3):
            assert tree.apply(data, n_jobs).tolist() == leaves.tolist()
    assert tree.predict(X).tolist() == tree.leaf_clusters[leaves].tolist()
    # Whole numbers as integers; numbers rounded to 32 bits as these.
    small = X.astype(np.float32)
    leaves = route_all(tree, small)
    for data in (small, np.asfortranarray(small), list(small.T)):
        assert tree.apply(data, 2).tolist() == leaves.tolist()
    whole = np.clip(np.rint(X), -100, 100).astype(np.int16)
    assert tree.apply(whole).tolist() == route_all(tree, whole).tolist()


def test_scores_of_zero_go_right():
    builder = Builder(np.zeros((1, 2)), [0])
    builder.oblique(0, {0: 1.0, 1: -1.0}, 0.0)
    tree = builder.tree()
    tiny = 5e-324
    rows = np.array([[3, 3], [0, 0], [-0.0, 0], [0, tiny], [tiny, 0], [1, 1 + 2**-52], [-1, 0.0]])
    assert tree.apply(rows).tolist() == [2, 2, 2, 1, 2, 1, 1]


def test_scores_are_added_up_in_the_order_of_the_features():
    builder = Builder(np.zeros((1, 3)), [0])
    builder.oblique(0, {0: 1.0, 1: 1.0, 2: 1.0}, 0.0)
    tree = builder.tree()
    # (1e17 + 1) - 1e17 is 0, (1e17 - 1e17) - 1 is less.
    rows = np.array([[1e17, -1, -1e17], [1e17, -1e17, -1], [-1, 1e17, -1e17]])
    assert tree.apply(rows).tolist() == [2, 1, 2]
    assert tree.apply(np.asfortranarray(rows)).tolist() == [2, 1, 2]
    # A product is rounded before it is added: fused, this would be 2^-60 or its negative.
    x = 1 + 2.0**-30
    for sign, leaf in ((1.0, 2), (-1.0, 2)):
        builder = Builder(np.zeros((1, 1)), [0])
        builder.oblique(0, {0: sign * x}, -sign * (1 + 2.0**-29))
        assert builder.tree().apply(np.array([[x]])).tolist() == [leaf]


def test_scores_beyond_the_largest_float():
    builder = Builder(np.zeros((1, 2)), [0])
    builder.oblique(0, {0: 1e300, 1: 1e300}, 0.0)
    tree = builder.tree()
    # Infinity, its negative, and infinity minus infinity, which is not below 0.
    rows = np.array([[1e300, 0], [-1e300, 1], [1e300, -1e300], [-1e300, 1e300]])
    assert tree.apply(rows).tolist() == [2, 1, 2, 2]
    frame = pl.DataFrame(rows, schema=["x0", "x1"])
    tree = builder.tree(cluster=[0, 0, 1], classes=[0, 1], value=np.full((3, 1, 2), 0.5))
    for engine in ENGINES:
        assert evaluate(frame, to_polars_expr(tree), engine).to_list() == [1, 0, 1, 1]


def test_apply_refuses_what_is_not_finite():
    tree = small_tree()
    X = np.zeros((20, 7))
    leaves = tree.apply(X).tolist()
    unused = np.setdiff1d(np.arange(7), tree.tested_features).tolist()
    assert unused == [5], 'the column "mails" has no weight anywhere'
    for value in (NAN, math.inf):
        for column in (0, 5):
            broken = X.copy()
            broken[17, column] = value
            layouts = (broken, np.asfortranarray(broken), list(broken.T), sparse.csr_array(broken))
            for data in layouts:
                if column in unused:
                    assert tree.apply(data).tolist() == leaves
                else:
                    with pytest.raises(NonFiniteError):
                        tree.apply(data)
    with pytest.raises(ValueError, match="7 features; the data have 6"):
        tree.apply(X[:, :6])


@pytest.mark.parametrize("seed", range(8))
def test_sparse_rows_take_the_way_of_full_ones(seed):
    tree, X = random_mixed(seed, 12, grid=5 if seed % 2 else 0)
    X = np.where(np.random.default_rng(seed).random(X.shape) < 0.6, 0.0, X)
    leaves = tree.apply(X).tolist()
    assert leaves == route_all(tree, X).tolist()
    for n_jobs in (1, 2, 3):
        assert tree.apply(sparse.csr_matrix(X), n_jobs).tolist() == leaves
    assert tree.apply(sparse.csc_array(X)).tolist() == leaves
    assert tree.predict(sparse.coo_array(X)).tolist() == tree.predict(X).tolist()
    small = X.astype(np.float32)
    assert tree.apply(sparse.csr_array(small)).tolist() == tree.apply(small).tolist()
    assert tree.apply(sparse.csr_array((0, 6))).tolist() == []
    # Parts of a cell are added up, in rows that are not in order.
    halves = sparse.csr_array(
        (np.tile(X / 2, 2).ravel(), np.tile(np.arange(6), 2 * len(X)), np.arange(len(X) + 1) * 12),
        shape=X.shape,
    )
    assert tree.apply(halves).tolist() == leaves
    plain, _ = random_tree(seed, 9, n_features=6, intervals=True)
    assert plain.apply(sparse.csr_array(X)).tolist() == plain.apply(X).tolist()
    broken = sparse.csr_array(X)
    broken.data[-1] = NAN
    with pytest.raises(NonFiniteError):
        tree.apply(broken)
    with pytest.raises(ValueError, match="6 features; the data have 5"):
        tree.apply(sparse.csr_array(X[:, :5]))


@pytest.mark.parametrize("shape", [(3000, 3), (70, 900)])
def test_many_rows_and_many_features(shape):
    rng = np.random.default_rng(1)
    X = rng.normal(size=shape)
    builder = Builder(X, rng.integers(0, 2, len(X)))
    queue = [0]
    for _ in range(7):
        used = rng.choice(shape[1], max(shape[1] // 2, 1), replace=False).tolist()
        left = builder.oblique(
            queue.pop(0), dict(zip(used, rng.normal(size=len(used)), strict=True))
        )
        queue += [left, left + 1]
    builder.split(queue[0], 1, 0.2)
    tree = builder.tree()
    leaves = route_all(tree, X).tolist()
    for data in (X, np.asfortranarray(X)):
        for n_jobs in (1, 3):
            assert tree.apply(data, n_jobs).tolist() == leaves
    assert len(set(leaves)) > 5


# ---- text ---------------------------------------------------------------------------------


def test_printed_tree():
    assert str(small_tree()) == (
        """\
ClusterTree: 4 leaves, 3 clusters, depth 2, 60 rows

                                                                       rows    share  mistakes  \
cluster  rows by reference cluster
all rows                                                                 60    100 %
├─ −1.2·age + 0.8·income + 0.3 < 0                                       45   75.0 %
│  ├─ 1 <= tenure <= 3.5                                                 27   45.0 %        15  \
low      low: 44.4 %, mid: 44.4 %, high: 11.1 %
│  └─ tenure < 1 or tenure > 3.5                                         18   30.0 %         9  \
low      low: 50.0 %, mid: 44.4 %, high: 5.6 %
└─ −1.2·age + 0.8·income + 0.3 >= 0                                      15   25.0 %
   ├─ 12346·calls + 2.5·tenure + 1.23·age … and 3 more − 0.333 < 0        1    1.7 %         0  \
high
   └─ 12346·calls + 2.5·tenure + 1.23·age … and 3 more − 0.333 >= 0      14   23.3 %         0  \
high

Sums: the largest weights first, to three digits; tree.rules() has them all, exactly."""
    )


def first_lines(tree, **options):
    """The lines of the root's children, up to the number of rows."""
    lines = export_text(tree, **options).splitlines()
    found = [re.split("  +", line[3:])[0] for line in lines if line[:1] in ("├", "└")]
    return found, lines[-1]


@pytest.mark.parametrize(
    ("weights", "bias", "max_terms", "text", "is_exact"),
    [
        ({0: 1}, 0, 3, "x0", True),
        ({0: -1}, -0.0, 3, "−x0", True),
        ({0: 2.5}, -41, 3, "2.5·x0 − 41", True),
        ({0: 0.8, 1: -1.2}, 0.3, 3, "−1.2·x1 + 0.8·x0 + 0.3", True),
        ({0: 1, 1: -1, 2: 1}, 1e-9, 3, "x0 − x1 + x2 + 1e-09", True),
        ({0: 1, 1: 2, 2: 3, 3: 4}, 0, 3, "4·x3 + 3·x2 + 2·x1 + x0", True),
        ({0: 1, 1: 2, 2: 3, 3: 4, 4: 5}, 0, 3, "5·x4 + 4·x3 + 3·x2 … and 2 more", False),
        ({0: 1, 1: 2, 2: 3, 3: 4, 4: 5}, 7, 1, "5·x4 … and 4 more + 7", False),
        ({0: 1, 1: 2, 2: 3, 3: 4, 4: 5}, 7, 4, "5·x4 + 4·x3 + 3·x2 + 2·x1 + x0 + 7", True),
        ({0: 0.12345}, 0, 3, "0.123·x0", False),
        ({0: 1 + 1e-9}, 0, 3, "1·x0", False),
        ({0: 12345.0, 1: 1e9, 2: 0.0625}, 99999.5, 3, "1e+09·x1 + 12345·x0 + 0.0625·x2 + 1e+05", 0),
    ],
)
def test_sums_as_text(weights, bias, max_terms, text, is_exact):
    builder = Builder(np.zeros((1, 5)), [0])
    builder.oblique(0, weights, bias)
    text = text.replace("1e+05", "100000")
    found, last = first_lines(builder.tree(), max_terms=max_terms)
    assert found == [f"{text} < 0", f"{text} >= 0"]
    assert last.startswith("Sums:") == (not is_exact)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        *((0.8137, "0.814"), (-1.2, "-1.2"), (999.6, "1000"), (1234.5, "1234"), (1e9, "1e+09")),
        *((0.0001234, "0.000123"), (1e-17, "1e-17"), (5e-324, "4.94e-324"), (-0.0, "-0")),
        *((np.inf, "inf"), (-np.inf, "-inf"), (999_999_999.4, "999999999")),
    ],
)
def test_short_numbers(number, text):
    assert format_short(number) == text


def test_html_shows_both_sides():
    page = small_tree(feature_names=["<b>", *NAMES[1:]])._repr_html_()
    assert "├─ −1.2·age + 0.8·&lt;b&gt; + 0.3 &lt; 0" in page
    assert "└─ −1.2·age + 0.8·&lt;b&gt; + 0.3 &gt;= 0" in page
    assert "… and 3 more − 0.333 &lt; 0" in page
    assert "Sums: the largest weights first" in page
    assert "<b></td>" not in page


def test_graphviz_breaks_long_sums():
    lines = to_graphviz(small_tree(feature_names=['a"b', *NAMES[1:]])).splitlines()
    assert lines[5:8] == [
        '  0 [label="−1.2·age + 0.8·a\\"b + 0.3 < 0\\n60 rows (100 %)"];',
        '  1 [label="1 <= tenure <= 3.5\\n45 rows (75.0 %)"];',
        '  2 [label="12346·calls + 2.5·tenure + 1.23·age\\n… and 3 more − 0.333 < 0\\n'
        '15 rows (25.0 %)"];',
    ]
    assert lines.count('  0 -> 1 [label="yes"];') == 1


# ---- rules --------------------------------------------------------------------------------


def test_rules_are_exact_and_complete():
    wide = (
        "12345.6·calls + 2.5·tenure + 1.23456·age − income + 0.5·debt − 0.001·visits "
        "− 0.3333333333333333"
    )
    assert small_tree().rules().rows() == [
        ("low", "−1.2·age + 0.8·income + 0.3 < 0 and 1 <= tenure <= 3.5", 27, 0.45, 12 / 27, 2),
        (
            "low",
            "−1.2·age + 0.8·income + 0.3 < 0 and (tenure < 1 or tenure > 3.5)",
            18,
            0.3,
            0.5,
            2,
        ),
        ("high", f"−1.2·age + 0.8·income + 0.3 >= 0 and {wide} < 0", 1, 1 / 60, 1.0, 2),
        ("high", f"−1.2·age + 0.8·income + 0.3 >= 0 and {wide} >= 0", 14, 14 / 60, 1.0, 2),
    ]
    short = small_tree().rules(max_terms=2)["rule"].to_list()
    assert short[3] == (
        "−1.2·age + 0.8·income + 0.3 >= 0 and "
        "12345.6·calls + 2.5·tenure … and 4 more − 0.3333333333333333 >= 0"
    )
    for bad in (0, 1.5, True):
        with pytest.raises(ValueError, match="max_terms must be"):
            small_tree().rules(max_terms=bad)


@pytest.mark.parametrize("seed", range(20))
def test_rules_say_what_the_tree_does(seed):
    """Read as Python, a leaf's rule holds for the rows that reach it and for no others."""
    tree, X = random_mixed(seed, 2 + seed % 14, grid=7)
    # On whole numbers sums are exact, in whatever order they are taken.
    rows = np.vstack([X, np.random.default_rng(seed).integers(-9, 10, (300, 6))])
    leaves = route_all(tree, rows)
    for leaf, rule in zip(tree.leaves.tolist(), tree.rules()["rule"].to_list(), strict=True):
        python = rule.replace(" = ", " == ").replace("·", "*").replace("−", "-")
        code = compile(python, "rule", "eval")
        held = [eval(code, {f"x{i}": row[i] for i in range(6)} | {"always": True}) for row in rows]
        assert held == (leaves == leaf).tolist()


@pytest.mark.parametrize("seed", range(10))
def test_walk_and_single_path_agree(seed):
    tree, X = random_mixed(seed, 30, grid=7, n_features=4)
    for leaf, depth, path in walk_leaves(tree):
        conditions = path.conditions()
        assert conditions == tree.path_conditions(leaf)
        assert path.size == sum(condition.size for condition in conditions)
        assert depth == tree.node_depth[leaf]
        # One per oblique test on the way, in its place.
        oblique = [part.node for part in conditions if isinstance(part, ObliqueCondition)]
        way, node = [], leaf
        while node:
            node = int(tree.parent[node])
            way.append(node)
        assert oblique == [node for node in reversed(way) if tree.kind[node] == 3]
    row = X[0]
    for condition in tree.path_conditions(route(tree, row)):
        if isinstance(condition, ObliqueCondition):
            found = condition.score(lambda feature: row[feature])
            assert found == node_score(tree, condition.node, row)
            assert condition.holds(found)


def test_conditions_stand_in_the_order_of_the_path():
    builder = Builder(np.zeros((1, 3)), [0])
    node = builder.oblique(0, {0: 1, 1: 1}, 0) + 1
    node = builder.split(node, 2, 5)
    node = builder.oblique(node, {1: 1, 2: 1}, -1)
    node = builder.split(node, 0, 4)
    node = builder.split(node, 2, 1)
    tree = builder.tree()
    (rule,) = (
        rule for rule in tree.rules()["rule"] if rule.count("and") == 3 and "x2 <= 1" in rule
    )
    assert rule == "x0 + x1 >= 0 and x2 <= 1 and x1 + x2 − 1 < 0 and x0 <= 4"


def oblique_chain(n_leaves, n_terms=1):
    """Return a tree that splits off one leaf per level by oblique tests."""
    nodes = np.arange(2 * n_leaves - 1)
    is_inner = (nodes % 2 == 0) & (nodes < len(nodes) - 1)
    n_rows = np.where(nodes % 2 == 0, n_leaves - nodes // 2, 1)
    nan = np.full(len(nodes), NAN)
    value = np.zeros((len(nodes), 1, 2))
    value[:, 0, 0] = 1.0
    return ClusterTree(
        children_left=np.where(is_inner, nodes + 1, -1),
        children_right=np.where(is_inner, nodes + 2, -1),
        feature=np.full(len(nodes), -2),
        threshold=np.where(is_inner, NAN, -2.0),
        lower=nan,
        upper=nan,
        kind=np.where(is_inner, 3, 0),
        impurity=np.zeros(len(nodes)),
        n_node_samples=n_rows,
        weighted_n_node_samples=n_rows,
        value=value,
        cluster=nodes % 2,
        base_cluster=np.full(len(nodes), -1),
        mistakes=nan,
        n_features=n_terms,
        classes=[0, 1],
        oblique_indptr=np.concatenate([[0], np.cumsum(is_inner * n_terms)]),
        oblique_indices=np.tile(np.arange(n_terms), n_leaves - 1),
        oblique_weights=np.ones(n_terms * (n_leaves - 1)),
        oblique_bias=np.where(is_inner, -0.5 - nodes / 2, NAN),
    )


def test_nothing_depends_on_depth():
    n = repeats(5_000, 20_000)
    tree = oblique_chain(n)
    assert tree.max_depth == n - 1
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert tree.truncate(n - 1).n_leaves == n - 1
    assert len(str(tree)) < 10_000_000
    assert len(tree._repr_html_()) < 200_000
    assert weighted_average_explanation_size(tree) == weighted_average_depth(tree)
    assert load(save(tree)) == tree
    assert tree.apply(np.array([[0.0], [7.25], [1e9]])).tolist() == [1, 15, 2 * n - 2]
    # Written out, the rules of 20,000 leaves would have 200 million terms.
    with pytest.raises(ValueError, match=f"would have {n * (n + 1) // 2 - 1:,} weights.*max_terms"):
        tree.rules()
    wide = oblique_chain(300, 100)
    with pytest.raises(ValueError, match="would have 4,514,900 weights"):
        wide.rules()
    assert wide.rules(max_terms=5).height == 300


# ---- explanations -------------------------------------------------------------------------


def test_explain_shows_the_rows_own_score():
    tree, X = small_tree(), small_builder().X
    leaves = tree.apply(X)
    lines = explain_rows(tree, leaves, X)
    assert lines[0] == (
        "cluster high: −1.2·age + 0.8·income + 0.3 = 0.3 >= 0 and 12346·calls + 2.5·tenure "
        "+ 1.23·age … and 3 more − 0.333 = −0.333 < 0"
    )
    assert lines[5] == "cluster low: −1.2·age + 0.8·income + 0.3 = −1.7 < 0 and tenure = 0 < 1"
    columns = [np.ascontiguousarray(column) for column in X.T]
    assert explain_rows(tree, leaves, columns) == lines
    assert explain_rows(tree, leaves, lambda row, feature: X[row, feature]) == lines
    whole = X.astype(np.int32)
    assert explain_rows(tree, leaves, whole) == lines
    assert explain_rows(tree, leaves[40:], X[40:]) == lines[40:]
    assert explain_rows(tree, [], X) == []


@pytest.mark.parametrize("seed", range(10))
def test_every_row_has_an_explanation(seed):
    tree, X = random_mixed(seed, 12, grid=[0, 5][seed % 2])
    for data in (X, X.astype(np.float32)):
        leaves = tree.apply(data)
        lines = explain_rows(tree, leaves, data)
        for line, leaf in zip(lines, leaves.tolist(), strict=True):
            assert line.startswith(f"cluster {tree.leaf_clusters[leaf]}: ")


def test_explain_refuses_what_does_not_fit():
    tree = small_tree()
    with pytest.raises(ValueError, match=r"Row 1 does not belong to leaf 3: the score .*node 0"):
        explain_rows(tree, [3, 3], np.array([[0, 9, 2, 0, 0, 0, 0.0], [9, 0, 2, 0, 0, 0, 0.0]]))


# ---- polars -------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(16))
def test_polars_routes_alike(seed, engine):
    tree, X = random_mixed(seed, 2 + seed, n_rows=500, grid=[0, 7][seed % 4 == 0])
    # Of these rows many have scores that are 0 but for rounding.
    frame = pl.DataFrame(X, schema=[f"x{i}" for i in range(6)])
    found = evaluate(frame, to_polars_expr(tree), engine)
    assert found.to_list() == tree.leaf_clusters[tree.apply(X)].tolist()
    narrow = frame.cast(pl.Float32)
    found = evaluate(narrow, to_polars_expr(tree), engine)
    assert found.to_list() == tree.leaf_clusters[tree.apply(X.astype(np.float32))].tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_polars_adds_in_order(engine):
    """Sums that are nothing but rounding errors: another order would take other sides."""
    rng = np.random.default_rng(0)
    half = rng.normal(size=(4000, 20)) * 10.0 ** rng.integers(-8, 9, (4000, 20))
    X = np.concatenate([half, -half], axis=1)[:, rng.permutation(40)]
    builder = Builder(X[:1], [0], 2)
    builder.oblique(0, dict.fromkeys(range(40), 1.1), 1e-12)
    tree = builder.tree(cluster=[0, 0, 1], value=np.full((3, 1, 2), 0.5))
    labels = tree.predict(X)
    exact = [math.fsum([1e-12, *(1.1 * row)]) >= 0 for row in X]
    assert (labels != exact).sum() > 500
    frame = pl.DataFrame(X, schema=[f"x{i}" for i in range(40)])
    assert evaluate(frame, to_polars_expr(tree), engine).to_list() == labels.tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_polars_gives_null_for_missing_values_of_used_columns(engine):
    tree = small_tree()
    frame = pl.DataFrame(np.zeros((12, 7)), schema=NAMES)
    expected = []
    for row, name in enumerate(NAMES):
        for offset, missing in ((0, None), (5, NAN)):
            if row + offset < 12:
                is_row = pl.int_range(pl.len()) == row + offset
                frame = frame.with_columns(
                    pl.when(is_row).then(pl.lit(missing, pl.Float64)).otherwise(name).alias(name)
                )
    for row in range(12):
        cells = frame.row(row)
        used = [cell for cell, name in zip(cells, NAMES, strict=True) if name != "mails"]
        lacks = any(cell is None or math.isnan(cell) for cell in used)
        expected.append(None if lacks else "high")
    assert expected.count("high") >= 1
    assert evaluate(frame, to_polars_expr(tree), engine).to_list() == expected


def test_polars_at_the_bounds():
    """The widest tests allowed run below the deepest chain, even with a small stack."""
    script = """
import sys
import numpy as np, polars as pl
from trees import Builder
from treeclust_rs.export import to_polars_expr
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 500))
builder = Builder(X, rng.integers(0, 2, 40))
node = 0
for _ in range(199):
    node = builder.split(node, 0, 9.0)
builder.oblique(node, dict(enumerate(rng.normal(size=500))))
tree = builder.tree(cluster=[i % 2 for i in range(401)])
frame = pl.DataFrame(X, schema=[f"x{i}" for i in range(500)])
def work():
    for engine in sys.argv[1:]:
        found = frame.lazy().select(to_polars_expr(tree)).collect(engine=engine).to_series()
        assert found.to_list() == tree.predict(X).tolist()
        assert found.n_unique() == 2
    print("right")
"""
    assert output_of(script + IN_A_SMALL_STACK, *ENGINES[1 : repeats(2, 3)]) == "right"


@pytest.mark.parametrize(("n_leaves", "n_terms"), [(2, 501), (42, 500)])
def test_polars_refuses_what_it_cannot_carry(n_leaves, n_terms):
    with pytest.raises(ValueError, match=r"too large for a polars expression .*model.predict"):
        to_polars_expr(oblique_chain(n_leaves, n_terms))


# ---- files, pickles, truncation -----------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_json_round_trip(seed):
    tree, X = random_mixed(seed, 2 + 3 * seed)
    text = save(tree)
    loaded = load(text)
    assert loaded == tree
    assert str(loaded) == str(tree)
    assert loaded.apply(X).tolist() == tree.apply(X).tolist()
    assert "NaN" not in text


def test_files_of_other_trees_are_as_before():
    keys = {"oblique_indptr", "oblique_indices", "oblique_weights", "oblique_bias"}
    tree, _ = random_tree(3, 9, intervals=True)
    assert not tree_to_dict(tree).keys() & keys
    assert not tree.__getstate__().keys() & keys
    content = json.loads(save(small_tree()))
    assert content["schema_version"] == 2
    assert content["tree"].keys() >= keys
    assert content["tree"]["oblique_bias"] == [0.3, None, -1 / 3, None, None, None, None]
    assert content["tree"]["oblique_indptr"] == [0, 2, 2, 8, 8, 8, 8, 8]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"oblique_indptr": ...}, "lacks 'oblique_indptr', but has other oblique arrays"),
        ({"oblique_indices": ...}, "lacks 'oblique_indices', but has"),
        ({"oblique_weights": ...}, "lacks 'oblique_weights', but has"),
        ({"oblique_bias": ...}, "lacks 'oblique_bias', but has"),
        ({"oblique": []}, "unknown key 'oblique'"),
        ({"oblique_indptr": None}, "oblique_indptr .* must be a list, not null"),
        ({"oblique_indptr": [0]}, "oblique_indptr .* has 1 entries; 8 were expected"),
        ({"oblique_indptr": [0.0] * 8}, "oblique_indptr .* holds a number"),
        ({"oblique_indptr": [0] * 8}, "does not rise from 0 to 8"),
        ({"oblique_indptr": [0, 2, 2, 8, 7, 8, 8, 8]}, "does not rise from 0 to 8"),
        ({"oblique_indptr": [2**63] * 8}, "oblique_indptr .* integer that is too large"),
        ({"oblique_indices": {}}, "oblique_indices .* must be a list, not an object"),
        ({"oblique_indices": [0]}, "oblique_weights .* has 8 entries; 1 were expected"),
        ({"oblique_indices": [True] * 8}, "oblique_indices .* holds true or false"),
        ({"oblique_indices": [7] * 8}, r"oblique_indices outside of 0\.\.6"),
        ({"oblique_weights": [1.0]}, "oblique_weights .* has 1 entries; 8 were expected"),
        ({"oblique_weights": [None] * 8}, "oblique_weights .* holds null"),
        ({"oblique_weights": ["1"] * 8}, "oblique_weights .* holds a string"),
        ({"oblique_weights": [0] * 8}, "Node 0 .* an oblique weight that is 0"),
        ({"oblique_weights": [math.inf] * 8}, "oblique_weights .* not finite"),
        ({"oblique_bias": [1.0] * 7}, "Node 1 .* must have the oblique_bias NaN"),
        ({"oblique_bias": [None] * 7}, "Node 0 .* oblique_bias that is not finite"),
        ({"oblique_bias": [None]}, "oblique_bias .* has 1 entries; 7 were expected"),
        ({"kind": [3, 2, 1, 0, 0, 0, 0]}, "Node 2"),
    ],
)
def test_bad_files_are_refused(changes, message):
    content = tree_to_dict(small_tree()) | changes
    content = {key: value for key, value in content.items() if value is not ...}
    with pytest.raises(ValueError, match=message):
        tree_from_dict(content)


def test_mutated_files():
    """Each loads a tree that works or raises ValueError: no other error, no hang."""
    n_files = repeats(1_000, 3_000)
    builder = Builder(np.arange(12.0).reshape(6, 2), [0, 0, 1, 1, 2, 2])
    left = builder.oblique(0, {0: 0.5, 1: -0.25}, -1.5)
    builder.oblique(left + 1, {1: 1.0}, -9.0)
    builder.split(left, 1, 0.5)
    sources = [
        save(builder.tree(feature_names=["a", "b"])),
        save(small_tree()),
        save(random_mixed(1, 5, n_features=2)[0]),
    ]
    n_changed = 0
    mutants = Mutants(sources, seed=2, changes=(move_entries, mutate))
    for number, source, tree in mutants.first(n_files):
        n_changed += tree != load(source)
        assert load(save(tree)) == tree
        n_features = min(tree.n_features, 1000)
        row = np.full((1, n_features), 6.0)
        if tree.n_features == n_features:
            assert tree.apply(row).tolist() == [route(tree, row[0])]
        if tree.oblique_weights is not None:
            assert np.isfinite(tree.oblique_weights).all()
            assert (tree.oblique_weights != 0).all()
            assert tree.oblique_indices.max() < tree.n_features
        if number % 5 == 0:
            assert str(tree)
            assert tree._repr_html_()
            assert tree.rules().height == tree.n_leaves
            assert tree.truncate(max(tree.n_leaves - 1, 1)).n_leaves == max(tree.n_leaves - 1, 1)
            to_graphviz(tree)
            to_polars_expr(tree)
    assert 0.05 * n_files < n_changed < mutants.n_loaded < 2 / 3 * n_files


@pytest.mark.parametrize("seed", range(10))
def test_truncate_undoes_the_last_splits(seed):
    builder, X = random_mixed(seed, 9, builder_only=True)
    whole = builder.tree()
    part = Builder(X, builder.labels, builder.k)
    for left in range(1, whole.n_nodes + 2, 2):
        cut = whole.truncate((left + 1) // 2)
        assert cut == part.tree()
        assert (cut.oblique_bias is None) == (3 not in cut.kind)
        if left < whole.n_nodes:
            content = builder.nodes[int(whole.parent[left])]
            node = int(whole.parent[left])
            if content["kind"] == 3:
                part.oblique(node, content["terms"], content["bias"])
            elif content["kind"] == 2:
                interval = content["lower"], content["upper"]
                part.split(node, content["feature"], interval=interval)
            else:
                part.split(node, content["feature"], content["threshold"])
    assert whole.truncate(1).oblique_indptr is None


def test_no_thresholds_stand_for_oblique_tests():
    with pytest.raises(ValueError, match="Node 0 of the tree is oblique: thresholds cannot"):
        small_tree().to_threshold()
    tree, _ = random_tree(1, 5, intervals=True)
    assert tree.to_threshold().oblique_indptr is None


def test_equality_and_copies():
    tree = small_tree()
    assert tree == small_tree()
    for name, place, value in (
        ("oblique_weights", 7, 0.25),
        ("oblique_bias", 0, 0.25),
        ("oblique_indices", 7, 5),
    ):
        assert tree != small_tree(**changed(name, place, value))
    for other in (pickle.loads(pickle.dumps(tree)), copy.deepcopy(tree), copy.copy(tree)):
        assert other == tree
        assert str(other) == str(tree)
        assert not other.oblique_weights.flags.writeable


# ---- measures -----------------------------------------------------------------------------


def test_measures_by_hand():
    tree = small_tree()
    # (2 + 1) and (6 + 1) of the oblique nodes, 3 of the interval, 4 leaves.
    assert n_parameters(tree) == 17
    assert features_per_node(tree) == (2 + 1 + 6) / 3
    # Oblique and interval, both with two ends; or both oblique.
    assert weighted_average_explanation_size(tree) == (45 * (2 + 2) + 15 * (2 + 6)) / 60
    single = tree.truncate(1)
    assert (n_parameters(single), features_per_node(single)) == (1, 0.0)
    assert weighted_average_explanation_size(single) == 0.0
    assert features_per_node(random_tree(0, 7, intervals=True)[0]) == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_parameters_are_weights_biases_and_leaves(seed):
    tree, _ = random_mixed(seed, 20)
    kinds = tree.kind.tolist()
    expected = tree.n_leaves + 2 * kinds.count(1) + 3 * kinds.count(2) + kinds.count(3)
    assert n_parameters(tree) == expected + len(tree.oblique_weights)


# ---- pictures -----------------------------------------------------------------------------


def image_tree(shape=(4, 5)):
    """Oblique, threshold and interval tests of the pixels of small images."""
    n_pixels = shape[0] * shape[1]
    X = np.random.default_rng(3).integers(0, 256, (80, n_pixels)).astype(float)
    builder = Builder(X, np.arange(80) % 3)
    left = builder.oblique(0, {0: 2.0, 3: -1.0, n_pixels - 1: 0.5}, -100)
    builder.split(left, 1, 100.5)
    builder.split(left + 1, 7, interval=(30, 120))
    return builder.tree()


@pytest.mark.parametrize("orientation", ["down", "right"])
@pytest.mark.parametrize(
    ("tree", "options"),
    [
        (small_tree(), {}),
        (small_tree(), {"max_terms": 6}),
        (random_mixed(2, 16, feature_names=["a", "b" * 60, "$c^2_$", "d", "e", "f g"])[0], {}),
        (image_tree(), {"image_shape": (4, 5)}),
        (image_tree(), {"image_shape": (4, 5), "centers": np.eye(3, 20)}),
        (image_tree((1, 20)), {"image_shape": (1, 20)}),
    ],
    ids=["small", "whole sums", "sixteen", "images", "centers", "strip"],
)
def test_picture_is_legible(pyplot, tree, options, orientation):
    ax = plot_tree(tree, orientation=orientation, **options)
    boxes = boxes_of(ax)
    assert len(boxes) == tree.n_nodes
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[number + 1 :])

    def is_inside(extent):
        return any(
            box.x0 <= extent.x0
            and extent.x1 <= box.x1
            and box.y0 <= extent.y0
            and extent.y1 <= box.y1
            for box in boxes
        )

    texts = [text.get_window_extent() for text in node_texts(ax)]
    images = [image.get_window_extent() for image in ax.images]
    for extent in (*texts, *images):
        assert is_inside(extent)
    # No text lies on an image.
    assert not any(text.overlaps(image) for text in texts for image in images)
    figure = ax.figure.bbox
    assert all(figure.x0 <= box.x0 and box.y1 <= figure.y1 for box in boxes)


def test_picture_writes_the_largest_weights(pyplot):
    texts = [text.get_text() for text in node_texts(plot_tree(small_tree()))]
    assert texts[:2] == ["−1.2·age + 0.8·income", "+ 0.3 < 0"]
    assert "12346·calls + 2.5·tenure" in texts
    assert "+ 1.23·age … and 3 more" in texts
    assert "− 0.333 < 0" in texts
    assert "1 ≤ tenure ≤ 3.5" in texts
    ax = plot_tree(small_tree(feature_names=["n" * 50, *NAMES[1:]]), max_terms=6)
    texts = [text.get_text() for text in node_texts(ax)]
    assert "+ 0.8·nnnnnnnnnnnnnnnn…nnnnnnn" in texts
    assert not any("more" in text for text in texts)


def test_picture_shows_weights_as_images(pyplot):
    from matplotlib.colors import to_hex

    tree = image_tree()
    centers = np.stack([np.zeros(20), np.full(20, 100.0), np.arange(20.0)])
    ax = plot_tree(tree, image_shape=(4, 5), centers=centers)
    assert len(ax.images) == tree.n_nodes
    weights, pixel, interval = (image.get_array() for image in ax.images[:3])
    # The darkest is the largest weight; the others are between it and white by their share.
    assert weights.shape == (4, 5)
    tints = [1.0, -(0.15 + 0.85 / 2), 0.15 + 0.85 / 4]
    assert weights[[0, 0, 3], [0, 3, 4]].tolist() == pytest.approx(tints)
    assert np.count_nonzero(weights) == 3
    assert np.flatnonzero(pixel).tolist() == [1]
    assert pixel.max() == 1.0
    assert np.flatnonzero(np.ma.getmaskarray(interval)).tolist() == [7]

    def color(image, value):
        return np.array(image.to_rgba(np.array([[value]]))[0, 0, :3])

    red, white, blue = (color(ax.images[0], value) for value in (0.6, 0.0, -0.6))
    assert red[0] > red[2] + 0.3
    assert blue[2] > blue[0] + 0.3
    assert white.min() > 0.97
    for leaf in tree.leaves.tolist():
        shown = ax.images[leaf]
        assert shown.get_array().ravel().tolist() == centers[tree.leaf_clusters[leaf]].tolist()
        assert (shown.norm.vmin, shown.norm.vmax) == (0.0, 100.0)
    texts = [text.get_text() for text in ax.texts]
    assert "w·x − 100 < 0" in texts
    assert "3 weights" in texts
    assert "x1 ≤ 100.5" in texts
    # The branches have the colours of the side of 0 they lead to.
    colors = {(text.get_text(), to_hex(text.get_color())) for text in ax.texts}
    assert {("yes", "#2166ac"), ("no", "#b2182b")} <= colors
    plain = plot_tree(tree, image_shape=(4, 5))
    assert len(plain.images) == tree.n_leaves - 1


def test_picture_of_an_image_stays_in_given_axes(pyplot):
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8, 4))
    right.plot([0, 1])
    limits = right.get_xlim(), right.get_ylim()
    plot_tree(image_tree(), left, image_shape=(4, 5), centers=np.eye(3, 20))
    for box in boxes_of(left):
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1
    assert (right.get_xlim(), right.get_ylim()) == limits
    assert left.yaxis_inverted()
    # One scale for both axes: pixels are square.
    image = left.images[0].get_window_extent()
    assert image.width / 5 == pytest.approx(image.height / 4, rel=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image_shape": (4, 4)}, r"image_shape=\(4, 4\) does not fit to 20 features"),
        ({"image_shape": (-4, -5)}, r"image_shape=\(-4, -5\) does not fit"),
        ({"centers": np.zeros((3, 20))}, "image_shape is needed"),
        (
            {"image_shape": (4, 5), "centers": np.zeros((2, 20))},
            r"centers must have the shape .*\(3, 20\). Got \(2, 20\)",
        ),
        ({"max_terms": 0}, "max_terms must be at least 1"),
    ],
)
def test_picture_refuses(pyplot, options, message):
    with pytest.raises(ValueError, match=message):
        plot_tree(image_tree(), **options)


def test_models_give_their_centers_to_pictures(pyplot):
    X = np.random.default_rng(0).normal(size=(60, 6))
    model = tc.ExKMC(n_clusters=3, random_state=0).fit(X)
    ax = model.plot(image_shape=(2, 3))
    assert len(ax.images) == model.tree_.n_nodes
    for leaf in model.tree_.leaves.tolist():
        center = model.cluster_centers_[model.tree_.leaf_clusters[leaf]]
        assert ax.images[leaf].get_array().ravel().tolist() == center.tolist()
    assert len(model.plot().images) == 0


def test_terms_are_written_by_share():
    """|weight| x standard deviation decides, whatever the units of the columns."""
    rng = np.random.default_rng(0)
    units = np.array([1e-3, 1.0, 1e3, 1.0, 1.0, 1.0])
    X = np.repeat(rng.normal(0, 4, (3, 6)), 40, axis=0) + rng.normal(size=(120, 6))
    weight = rng.uniform(0.5, 2, 120)
    for model in (
        tc.VoronoiTree(3, scale="standard", random_state=0),
        tc.ObliqueTree(3, alpha=0.01, max_depth=2, scale="standard", random_state=0),
    ):
        near = clone(model).fit(X, sample_weight=weight).tree_
        tree = clone(model).fit(X * units, sample_weight=weight).tree_
        mean = np.average(X, axis=0, weights=weight)
        spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
        np.testing.assert_allclose(tree.feature_scale, spread * units, rtol=1e-12)
        features, weights, _ = tree.oblique_test(0)
        assert (np.diff(features) > 0).all()
        expected = features[np.argsort(-np.abs(weights) * (spread * units)[features])]

        def names(text):
            return [int(name) for name in re.findall(r"x(\d)", text)]

        assert names(branch_condition(tree, 0, True).text(tree.feature_name)) == expected.tolist()
        assert names(tree.rules()["rule"][0])[: len(expected)] == expected.tolist()
        first = str(tree).splitlines()[4]
        assert names(first) == names(str(near).splitlines()[4])
        assert names(first)[:3] == expected[:3].tolist()
        assert "largest shares (|weight| x standard deviation of the column) first" in str(tree)
        assert tree_from_dict(tree_to_dict(tree)) == tree
        assert pickle.loads(pickle.dumps(tree)) == tree
        if not tree.n_base_leaves:
            assert tree.truncate(2).feature_scale is not None
            assert tree.truncate(1).feature_scale is None
        old = tree_to_dict(tree)
        del old["feature_scale"]
        older = tree_from_dict(old)
        by_weight = features[np.argsort(-np.abs(weights))].tolist()
        assert names(branch_condition(older, 0, True).text(older.feature_name)) == by_weight
        assert "Sums: the largest weights first" in str(older)


def test_sparse_rows_have_deviations_too():
    X = sparse.random_array((60, 8), density=0.5, rng=np.random.default_rng(1), format="csr")
    model = tc.ObliqueTree(2, metric="cosine", alpha=1e-3, max_depth=1, random_state=0)
    rows = model.fit(X).tree_
    dense = clone(model).fit(X.toarray()).tree_
    np.testing.assert_allclose(rows.feature_scale, X.toarray().std(axis=0), rtol=1e-12)
    np.testing.assert_allclose(dense.feature_scale, X.toarray().std(axis=0), rtol=1e-12)


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ([1.0], "1 entries for"),
        ([1.0, -1.0], "feature_scale of feature 1 is -1"),
        ([1.0, float("nan")], "feature_scale of feature 1 is nan"),
    ],
)
def test_feature_scales_that_are_none(scale, message):
    X = np.array([[0.0, 0.0], [1.0, 3.0], [5.0, 4.0], [6.0, 7.0]])
    arguments = tc.VoronoiTree(2, random_state=0).fit(X).tree_.arguments()
    with pytest.raises(ValueError, match=message):
        tc.tree.ClusterTree(**arguments | {"feature_scale": scale})


# ---- shares of the terms ------------------------------------------------------------------


def test_shares_are_of_the_sum_of_weights_times_deviations(pyplot, tmp_path):
    features, weights, _ = small_tree().oblique_test(0)
    scale = np.arange(1.0, small_tree().n_features + 1)
    tree = small_tree(feature_scale=scale)
    spread = np.abs(weights) * scale[features]
    shares = sorted((spread / spread.sum()).tolist(), reverse=True)
    condition = tree.path_conditions(1)[0]
    np.testing.assert_allclose(sorted(condition.shares(), reverse=True), shares, rtol=1e-15)
    written = [f"({format_share(share)})" for share in shares]
    parts = condition.parts(str, shares=True)
    assert [part.split(" (")[1] for part in parts[: len(shares)]] == [w[1:] for w in written]
    page = tmp_path / "tree.html"
    to_html(tree, page, shares=True)
    drawn = " ".join(text.get_text() for text in plot_tree(tree, shares=True).texts)
    for text in (
        export_text(tree, shares=True),
        to_graphviz(tree, shares=True),
        drawn,
        page.read_text("utf-8"),
    ):
        assert all(share in text for share in written)
    assert not any(share in export_text(tree) for share in written)


def test_shares_of_terms_that_are_not_written_and_of_extremes():
    scale = np.array([1e300, 1e-300, 0.0, 1e300])
    condition = ObliqueCondition(
        0, True, np.arange(4), np.array([1e300, 1.0, 1.0, -1e300]), 0.0, scale
    )
    assert condition.shares().tolist() == [0.5, 0.0, 0.0, 0.5]
    assert condition.parts("x{}".format, 1, short=True, shares=True)[1] == "… and 3 more (50.0 %)"
    constant = dataclasses.replace(condition, scale=np.zeros(4))
    assert constant.shares().tolist() == [0.0] * 4


def test_shares_need_the_deviations():
    tree = small_tree()
    for write in (export_text, to_graphviz, plot_tree):
        with pytest.raises(ValueError, match=r"does not know the standard deviations .* of node 0"):
            write(tree, shares=True)
    plain = balanced(4)
    assert export_text(plain, shares=True) == export_text(plain)
