"""The oracles themselves: against cases worked out by hand, and against each other."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from oracles import threshold as oracle
from sizes import repeats


def mismatch(labels, k=None):
    """Costs of 1 for every wrong label."""
    labels = np.asarray(labels)
    k = labels.max() + 1 if k is None else k
    return (labels[:, None] != np.arange(k)).astype(float)


def column(*values):
    return np.array(values, dtype=float)[:, None]


# --------------------------------------------------------------------------------------------------
# Thresholds
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (1.0, 2.0, 1.5),
        (0.0, 1.0, 0.5),
        (1.0, 3.0, 2.0),
        (4.9, 5.1, 5.0),
        (0.1, 0.2, 0.15),
        (99.0, 1000.0, 500.0),  # mid 549.5: 500 is nearer than 600
        (1.0, 4.0, 2.0),  # 2 and 3 equally near 2.5: the lower
        (-4.0, -1.0, -3.0),
        (95.0, 104.0, 100.0),  # next above 99.5 with one digit is 100
        (-104.0, -95.0, -100.0),
        (-1.0, 1.0, 0.0),
        (-1.0, 3.0, 0.0),  # the lower quartile is 0 itself
        (-3.0, 1.0, 0.0),
        (-1.0, 3.1, 1.0),  # the lower quartile is just above 0, mid is 1.05
        (-1.7e308, 1.7e308, 0.0),
        (-0.0, 5e-324, 0.0),
        (0.0, 1e-323, 5e-324),
        (-5e-324, 0.0, -5e-324),
        (1.0, math.nextafter(1.0, 2.0), 1.0),
        (1e8, 1e8 + 1, 1e8 + 0.5),
    ],
)
def test_threshold_by_hand(a, b, expected):
    found = oracle.shortest_threshold(a, b)
    assert found == expected
    assert math.copysign(1.0, found) == 1.0 or found < 0  # never -0


def test_two_steps_apart_takes_the_double_between():
    for a in (1.0, 0.1, 1e300, -7.3, 5e-324, 2.0**53):
        middle = math.nextafter(a, math.inf)
        b = math.nextafter(middle, math.inf)
        assert oracle.shortest_threshold(a, b) == middle
        assert oracle.interval_lower(a, b) == middle
        assert oracle.shortest_threshold(a, middle) == a
        assert oracle.interval_lower(a, middle) == middle


def test_interval_lower_by_hand():
    assert oracle.interval_lower(1.0, 2.0) == 1.5
    assert oracle.interval_lower(-2.0, 3.0) == 0.0
    assert oracle.interval_lower(-5e-324, -0.0) == 0.0
    assert math.copysign(1.0, oracle.interval_lower(-5e-324, -0.0)) == 1.0


def random_gaps(rng, n):
    """Pairs a < b: any bit patterns, a few steps apart, and round numbers."""
    bits = rng.integers(0, 2**64, (n, 2), dtype=np.uint64).view(np.float64)
    bits = bits[np.isfinite(bits).all(axis=1)]
    start = rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n)
    steps = start.view(np.int64) + rng.integers(1, 6, n)
    near = np.column_stack([start, steps.view(np.float64)])
    short = np.round(rng.normal(size=(n, 2)) * 100, 1)
    f32 = rng.normal(size=(n, 2)).astype(np.float32).astype(float)
    pairs = np.sort(np.vstack([bits, near, short, f32]), axis=1)
    return pairs[(pairs[:, 0] < pairs[:, 1])].tolist()


def test_threshold_lies_in_the_middle_half_and_is_shortest():
    for a, b in random_gaps(np.random.default_rng(0), 1000):
        theta = oracle.shortest_threshold(a, b)
        lower = oracle.interval_lower(a, b)
        assert a <= theta < b
        assert a < lower <= b
        if math.nextafter(a, math.inf) == b:
            assert (theta, lower) == (a, b)
            continue
        assert a < theta == lower < b
        low, high = Fraction(a), Fraction(b)
        q1, q3 = (3 * low + high) / 4, (low + 3 * high) / 4
        decimal = Fraction(repr(theta))
        # What is printed lies there too, unless a and b are a few steps apart: then the shortest
        # repr of the double need not be the decimal it was rounded from.
        few_steps = (high - low) / 4 < Fraction(math.ulp(max(abs(a), abs(b))))
        assert few_steps or q1 <= decimal <= q3
        if theta == 0 or few_steps:
            continue
        # No decimal of fewer digits lies in the middle half.
        _, digits, exponent = Decimal(repr(theta)).normalize().as_tuple()
        unit = Fraction(10) ** (exponent + 1)
        assert len(digits) == 1 or math.floor(q3 / unit) < math.ceil(q1 / unit)


# --------------------------------------------------------------------------------------------------
# Costs
# --------------------------------------------------------------------------------------------------


def test_costs_and_regrets_by_hand():
    X, centers = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0], [3.0, 0.0]])
    assert_array_equal(oracle.squared_costs(X, centers), [[0, 9], [25, 16]])
    assert_array_equal(oracle.l1_costs(X, centers), [[0, 3], [7, 4]])
    Dp, m = oracle.regrets(np.array([[1.0, 3.0], [2.0, 2.0]]), np.array([2.0, 5.0]))
    assert_array_equal(Dp, [[0, 4], [0, 0]])
    assert_array_equal(m, [1, 2])
    # a difference of 2 in 1e16 is rounding, one of 1e4 is not
    Dp, _ = oracle.regrets(np.array([[1e16, 1e16 + 2, 1e16 + 1e4]]))
    assert_array_equal(Dp, [[0, 0, 1e4]])


def test_node_label_takes_the_lowest_within_the_margin():
    assert oracle.node_label(np.array([[1.0 + 1e-13, 1.0, 2.0]]), [0]) == 0
    assert oracle.node_label(np.array([[1.0 + 1e-11, 1.0, 2.0]]), [0]) == 1
    assert oracle.node_label(np.zeros((2, 3)), []) == 0


def test_measures_by_hand():
    X = column(0, 2, 10)
    assert oracle.kmeans_cost(X, [0, 0, 1]) == 2
    assert oracle.kmeans_cost(X + 1e15, [0, 0, 1]) == 2
    assert oracle.kmeans_cost(X, [0, 0, 0], [3.0, 1.0, 0.0]) == 3 * 0.25 + 2.25
    assert oracle.surrogate_cost(np.array([[1.0, 2.0], [3.0, 5.0]]), [0, 1], [2.0, 1.0]) == 7


# --------------------------------------------------------------------------------------------------
# One node
# --------------------------------------------------------------------------------------------------


def test_threshold_cut_by_hand():
    X, rows = column(0, 1, 2, 3), range(4)
    cut = oracle.best_threshold_cut(X, mismatch([0, 0, 1, 1]), rows)
    assert (cut["feature"], cut["a"], cut["b"], cut["gain"]) == (0, 1, 2, 2)
    # the first of equal features, skipping a constant one
    X3 = np.column_stack([np.ones(4), X, X])
    assert oracle.best_threshold_cut(X3, mismatch([0, 0, 1, 1]), rows)["feature"] == 1
    # labels 0 1 1 0: cutting off either end gains 1, the lower threshold is first
    cut = oracle.best_threshold_cut(X, mismatch([0, 1, 1, 0]), rows)
    assert (cut["a"], cut["b"], cut["gain"]) == (0, 1, 1)
    assert oracle.best_threshold_cut(X, mismatch([0, 1, 1, 0]), rows, min_samples_leaf=2) is None
    # equal values are never parted
    assert oracle.best_threshold_cut(column(1, 1), mismatch([0, 1]), [0, 1]) is None
    # pure: nothing to gain; exclusive or: no single cut gains
    assert oracle.best_threshold_cut(X, mismatch([1, 1, 1, 1]), rows) is None
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert oracle.best_threshold_cut(square, mismatch([0, 1, 1, 0]), rows) is None
    # of the rows given only: between 0 and 3
    cut = oracle.best_threshold_cut(X, mismatch([0, 0, 1, 1]), [0, 3])
    assert (cut["a"], cut["b"]) == (0, 3)


def test_near_ties_go_to_the_first_within_the_margin():
    X = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]])
    for regret, feature in ((1.0 + 1e-13, 0), (1.0 + 1e-9, 1)):
        # feature 0 can part off row 2 (gain 1), feature 1 can part off row 1 (gain a little more)
        Dp = np.array([[0.0, 9.0, 9.0], [regret, 0.0, 9.0], [1.0, 9.0, 0.0]])
        cut = oracle.best_threshold_cut(X, Dp, range(3))
        assert cut["feature"] == feature
        assert cut["best_gain"] == pytest.approx(regret, abs=1e-15)
        # with intervals, feature 0 can part off row 1 too, after the one-sided cuts
        cut = oracle.best_interval_cut(X, Dp, range(3))
        assert (cut["feature"], cut["kind"]) == (0, ["threshold", "interval"][feature])


def test_interval_cut_by_hand():
    X, rows = column(0, 1, 2, 3, 4), range(5)
    cut = oracle.best_interval_cut(X, mismatch([0, 1, 1, 0, 0]), rows)
    assert cut["kind"] == "interval"
    assert (cut["lo_a"], cut["lo_b"], cut["hi_a"], cut["hi_b"]) == (0, 1, 2, 3)
    assert cut["gain"] == 2
    # {1}, {1, 2, 3} and {3} all gain 1: lo first, then hi
    cut = oracle.best_interval_cut(X, mismatch([0, 1, 0, 1, 0]), rows)
    assert (cut["lo_a"], cut["lo_b"], cut["hi_a"], cut["hi_b"], cut["gain"]) == (0, 1, 1, 2, 1)
    # x >= 2 is taken as its complement x <= 1
    cut = oracle.best_interval_cut(X, mismatch([0, 0, 1, 1, 1]), rows)
    assert (cut["kind"], cut["a"], cut["b"], cut["lo_a"]) == ("threshold", 1, 2, -math.inf)
    # rows outside count for min_samples_leaf too: {1, 2, 3} leaves only two outside
    labels = [0, 1, 1, 1, 0]
    assert oracle.best_interval_cut(X, mismatch(labels), rows, 2)["gain"] == 2
    assert oracle.best_interval_cut(X, mismatch(labels), rows, 3) is None


# --------------------------------------------------------------------------------------------------
# Growth
# --------------------------------------------------------------------------------------------------


def chain():
    """Four labels in a row: every split peels off the lowest one."""
    X = column(*range(8))
    return X, oracle.grow_label_cost(X, mismatch([0, 0, 1, 1, 2, 2, 3, 3]), max_leaves=9)


def test_growth_by_hand():
    X, tree = chain()
    assert tree.children_left == [1, -1, 3, -1, 5, -1, -1]
    assert tree.children_right == [2, -1, 4, -1, 6, -1, -1]
    assert tree.threshold == [1.5, -2.0, 3.5, -2.0, 5.5, -2.0, -2.0]
    assert tree.cluster == [0, 0, 1, 1, 2, 2, 3]
    assert tree.cost_path == [(1, 6), (2, 4), (3, 2), (4, 0)]
    assert_array_equal(tree.predict(X), [0, 0, 1, 1, 2, 2, 3, 3])
    assert_array_equal(tree.predict(column(1.5, 1.6, 99)), [0, 1, 3])
    assert (tree.depth(), tree.n_leaves) == (3, 4)
    small = tree.truncate(2)
    assert small.threshold == [1.5, -2.0, -2.0]
    assert_array_equal(small.predict(X), [0, 0, 1, 1, 1, 1, 1, 1])
    with pytest.raises(ValueError, match="m=0"):
        tree.truncate(0)


def test_chain_measures_by_hand():
    _, tree = chain()
    assert oracle.wad(tree) == (1 + 2 + 3 + 3) / 4
    assert oracle.waes(tree) == (1 + 2 + 2 + 1) / 4  # the last: only the tightest lower bound
    assert oracle.wad(tree, [1, 0, 0, 1]) == 2
    assert oracle.wad(tree, {1: 3, 3: 0, 5: 0, 6: 1}) == 1.5


def test_interval_growth_by_hand():
    X, Dp = column(*range(5)), mismatch([0, 1, 1, 0, 0])
    tree = oracle.grow_label_cost(X, Dp, max_leaves=5, cuts="interval")
    assert tree.kind == [2, 0, 0]
    assert (tree.lower[0], tree.upper[0]) == (0.5, 2.5)
    assert math.isnan(tree.threshold[0])
    assert_array_equal(tree.predict(column(0.4, 0.5, 2.5, 2.6)), [0, 1, 1, 0])
    assert oracle.waes(tree) == 2
    assert oracle.wad(tree) == 1


def test_equal_leaves_split_in_order_of_node_id():
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    tree = oracle.grow_label_cost(square, mismatch([0, 1, 2, 3]), max_leaves=4)
    assert tree.feature == [0, 1, 1, -2, -2, -2, -2]
    three = oracle.grow_label_cost(square, mismatch([0, 1, 2, 3]), max_leaves=3)
    assert three.feature == [0, 1, -2, -2, -2]
    # a right side with more to gain (3 against 1) goes first
    heavy = oracle.regrets(mismatch([0, 1, 2, 3]), np.array([10.0, 1.0, 10.0, 3.0]))[0]
    three = oracle.grow_label_cost(square, heavy, max_leaves=3)
    assert three.feature == [0, -2, 1, -2, -2]


def test_depth_and_leaf_size_limits():
    X, Dp = column(*range(8)), mismatch([0, 0, 1, 1, 2, 2, 3, 3])
    assert oracle.grow_label_cost(X, Dp, max_leaves=9, max_depth=1).n_leaves == 2
    assert oracle.grow_label_cost(X, Dp, max_leaves=9, max_depth=0).n_leaves == 1
    tree = oracle.grow_label_cost(X, Dp, max_leaves=9, min_samples_leaf=3)
    assert tree.threshold == [2.5, -2.0, -2.0]  # 3 | 5, 4 | 4 and 5 | 3 all gain 2
    # a base is not limited, what grows from it is
    base = oracle.imm(X, np.repeat([0, 1], 4), column(0.5, 7))
    assert oracle.grow_label_cost(X, Dp, max_leaves=9, base=base, max_depth=0).n_leaves == 2
    tree = oracle.grow_label_cost(X, Dp, max_leaves=9, base=base, min_samples_leaf=3)
    assert tree.n_leaves == 2
    assert oracle.grow_label_cost(X, Dp, max_leaves=9, base=base, max_depth=2).n_leaves == 4


def test_rows_of_weight_zero_make_no_thresholds():
    X, w = column(0, 1, 2), np.array([1.0, 0.0, 1.0])
    Dp, _ = oracle.regrets(mismatch([0, 1, 1]), w)
    tree = oracle.grow_label_cost(X, Dp, max_leaves=2, w=w)
    assert tree.gap[0] == (0, 2)
    assert_array_equal(tree.rows[0], [0, 2])


# --------------------------------------------------------------------------------------------------
# IMM
# --------------------------------------------------------------------------------------------------


def test_imm_on_a_line():
    X = column(-1, 0, 1, 4, 5, 6, 9, 10, 11)
    labels = np.repeat([0, 1, 2], 3)
    tree = oracle.imm(X, labels, column(0, 5, 10))
    assert tree.threshold == [2.0, -2.0, 7.0, -2.0, -2.0]  # (1, 4) and (6, 9) are equally wide
    assert tree.base_cluster == [-1, 0, -1, 1, 2]
    assert tree.mistakes[0] == tree.mistakes[2] == 0
    assert_array_equal(tree.predict(X), labels)


def test_imm_keeps_clear_of_dropped_rows():
    X = np.array([[0.0, 0.0], [0.0, 5.0], [0.0, 10.0], [10.0, 4.0], [10.0, 0.0], [10.0, 10.0]])
    labels = np.array([0, 0, 0, 0, 1, 2])
    centers = np.array([[0.0, 5.0], [10.0, 0.0], [10.0, 10.0]])
    tree = oracle.imm(X, labels, centers)
    # the root cuts at x0 = 5 with one mistake, which then lies between the centers of 1 and 2
    assert tree.feature == [0, -2, 1, -2, -2]
    assert tree.threshold == [5.0, -2.0, 7.0, -2.0, -2.0]
    assert tree.gap[2] == (4, 10)
    assert (tree.mistakes[0], tree.mistakes[2]) == (1, 0)
    assert_array_equal(tree.rows[2], [3, 4, 5])
    assert_array_equal(tree.correct[2], [4, 5])
    assert_array_equal(tree.predict(X), [0, 0, 0, 1, 1, 2])
    # weight decides: were that row heavy, another cut would be better
    heavy = oracle.imm(X, labels, centers, np.array([1.0, 1.0, 1.0, 9.0, 1.0, 1.0]))
    assert heavy.mistakes[0] == 1
    assert heavy.feature[0] == 1


def test_imm_relabelling_starts_after_the_base():
    X = np.array([[0.0, 0.0], [0.0, 5.0], [0.0, 10.0], [10.0, 4.0], [10.0, 0.0], [10.0, 10.0]])
    labels = np.array([0, 0, 0, 0, 1, 2])
    base = oracle.imm(X, labels, np.array([[0.0, 5.0], [10.0, 0.0], [10.0, 10.0]]))
    Dp = mismatch(labels)
    Dp[4] = 0.0  # row 4 would be happy with any label: its leaf prefers label 0, IMM says 1
    tree = oracle.grow_label_cost(X, Dp, base=base, max_leaves=3)
    assert tree.cost_path == [(3, 1)]
    assert (tree.cluster[3], tree.base_cluster[3]) == (0, 1)
    assert_array_equal(tree.predict(X), [0, 0, 0, 1, 1, 2])
    with pytest.raises(ValueError, match="m=2"):
        tree.truncate(2)


def test_imm_prefers_the_wider_gap_then_the_first_feature():
    X = np.array([[0.0, 0.0], [0.4, 0.0], [0.6, 1.0], [1.0, 1.0]])
    labels, centers = np.array([0, 0, 1, 1]), np.array([[0.2, 0.0], [0.8, 1.0]])
    tree = oracle.imm(X, labels, centers)
    assert (tree.feature[0], tree.gap[0]) == (1, (0, 1))
    assert oracle.imm(X[:, ::-1], labels, centers[:, ::-1]).feature[0] == 0
    X[:, 0] = X[:, 1]
    centers[:, 0] = centers[:, 1]
    assert oracle.imm(X, labels, centers).feature[0] == 0


def test_imm_on_a_column_without_range():
    # column 0 is constant in the data, the centers differ there: its cut counts as ratio 1
    X = np.array([[0.0, 3.0], [0.0, 4.0], [0.0, 5.0]])
    tree = oracle.imm(X, np.array([0, 0, 1]), np.array([[0.0, 3.5], [2.0, 5.0]]))
    assert (tree.feature[0], tree.mistakes[0]) == (1, 0)  # cutting column 0 would cost row 2
    labels = np.zeros(2, dtype=int)
    for centers, wanted in (
        ([[0.0, 3.5], [2.0, 4.5]], (0, (0, 2))),  # ratio 0.5 in column 1
        ([[0.0, 3.5], [2.0, 5.0]], (0, (0, 2))),  # ratio 1 in both
        ([[0.0, 3.5], [2.0, 5.5]], (1, (4, 5.5))),  # ratio 1.5 in column 1
    ):
        tree = oracle.imm(X[:2], labels, np.array(centers))
        assert (tree.feature[0], tree.gap[0]) == wanted
        assert tree.cluster == [-1, 0, 1]  # an empty leaf keeps its center
        assert len(tree.rows[2]) == 0


def test_imm_splits_nodes_in_order_of_id():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    tree = oracle.imm(X, np.arange(4), X)
    assert tree.feature == [0, 1, 1, -2, -2, -2, -2]
    assert tree.base_cluster == [-1, -1, -1, 0, 1, 2, 3]


def test_imm_leaves_out_noise_and_weightless_rows():
    X = column(0, 1, 2, 10, 50)
    labels, w = np.array([0, -1, 0, 1, 1]), np.array([1.0, 1.0, 0.0, 1.0, 0.0])
    tree = oracle.imm(X, labels, column(0, 10), w)
    assert_array_equal(tree.rows[0], [0, 3])
    assert tree.gap[0] == (0, 10)


def test_snapping():
    X = column(*[0, 0.3, 1] * 4)
    labels = np.repeat(np.arange(4), 3)
    assert oracle.snap_centers(X, column(0.1 + 0.2, 0.9), labels)[0, 0] == 0.3
    close = column(0.5, 0.5 + 2e-15, 0.5 + 4.5e-15, 1.0)  # the margins are 2.7e-15
    assert_array_equal(oracle.snap_centers(X, close, labels), close)  # they would coincide
    X2 = np.column_stack([X[:, 0], np.arange(12.0)])
    centers = np.column_stack([close, [0.0, 1.0, 2.0, 3.0]])
    snapped = oracle.snap_centers(X2, centers, labels)
    assert_array_equal(snapped[:, 0], [0.5, 0.5, 0.5 + 4.5e-15, 1.0])
    # A far row of another cluster does not widen the margins.
    far = np.vstack([X2, [1e8, 0.0]])
    assert_array_equal(oracle.snap_centers(far, centers, np.append(labels, 3)), snapped)


def test_statistics_of_nodes():
    X = np.array([[0.0, 0.0], [0.0, 5.0], [0.0, 10.0], [10.0, 4.0], [10.0, 0.0], [10.0, 10.0]])
    labels = np.array([0, 0, 0, 0, 1, 2])
    tree = oracle.imm(X, labels, np.array([[0.0, 5.0], [10.0, 0.0], [10.0, 10.0]]))
    stats = oracle.node_statistics(tree, labels, mismatch(labels))
    assert_array_equal(stats["n_node_samples"], [6, 3, 3, 2, 1])
    assert_array_equal(stats["mistakes"], [1, 0, 0, 1, 0])
    assert_array_equal(stats["value"][3, 0], [0.5, 0.5, 0])
    assert_array_equal(stats["impurity"], [2 / 6, 0, 2 / 3, 1 / 2, 0])


# --------------------------------------------------------------------------------------------------
# Random problems: enumeration against the sorted sweep, and what must hold of every tree
# --------------------------------------------------------------------------------------------------


def check_tree(tree, X, w):
    """Tests part the rows as stored, and thresholds lie where they should."""
    assert_array_equal(np.flatnonzero(w > 0), tree.rows[0])
    leaf = tree.apply(X)
    for node in range(tree.n_nodes):
        if tree.kind[node] == oracle.LEAF:
            assert_array_equal(np.flatnonzero((leaf == node) & (w > 0)), tree.rows[node])
            continue
        left, right = tree.children_left[node], tree.children_right[node]
        assert right == left + 1 > node
        both = np.concatenate([tree.rows[left], tree.rows[right]])
        assert_array_equal(np.sort(both), tree.rows[node])
        gap = tree.gap[node]
        if tree.kind[node] == oracle.THRESHOLD:
            assert gap[0] <= tree.threshold[node] < gap[1]
        else:
            assert gap[0] < tree.lower[node] <= gap[1] <= gap[2] <= tree.upper[node] < gap[3]


def check_growth(X, Dp, w, rng, *, base, max_leaves, **limits):
    """Enumeration and sweep agree; the path falls; truncation is a fit with fewer leaves."""
    grow, sweep = oracle.grow_label_cost, oracle.sweep_grow_label_cost
    tree = grow(X, Dp, max_leaves=max_leaves, base=base, w=w, **limits)
    other = sweep(X, Dp, max_leaves=max_leaves, base=base, w=w, **limits)
    assert oracle.first_difference(tree, other) is None
    check_tree(tree, X, w)
    leaves, costs = zip(*tree.cost_path, strict=True)
    first = 1 if base is None else base.n_leaves
    assert list(leaves) == list(range(first, tree.n_leaves + 1))
    slack = 1e-12 * costs[0]
    assert all(b <= a + slack for a, b in pairwise(costs))
    labels = tree.predict(X)
    assert math.fsum(Dp[np.arange(len(X)), labels]) == pytest.approx(costs[-1], rel=1e-11)
    fewer = int(rng.integers(first, tree.n_leaves + 1))
    refit = sweep(X, Dp, max_leaves=fewer, base=base, w=w, **limits)
    cut_back = tree.truncate(fewer)
    assert oracle.first_difference(cut_back, refit) is None
    assert cut_back.cost_path == refit.cost_path
    return tree


def test_enumeration_and_sweep_grow_the_same_trees():
    n_intervals = n_mistaken = 0
    for seed in range(repeats(250, 800)):
        rng = np.random.default_rng(seed)
        X, centers, labels, w = oracle.random_case(
            rng,
            n_max=20 if seed % 5 else 40,
            zero_weights=seed % 7 == 0,
            arbitrary_labels=seed % 6 == 0,
        )
        base = oracle.imm(X, labels, centers, w)
        assert oracle.first_difference(base, oracle.sweep_imm(X, labels, centers, w)) is None
        check_tree(base, X, w)
        assert base.n_leaves == len(centers) > base.depth()
        assert sorted(base.base_cluster[leaf] for leaf in base.leaves) == list(range(len(centers)))
        n_mistaken += np.nansum(base.mistakes) > 0

        costs = oracle.squared_costs if seed % 2 else oracle.l1_costs
        Dp, _ = oracle.regrets(costs(X, centers), w)
        limits = {
            "max_leaves": int(rng.integers(1, 15)),
            "max_depth": None if rng.random() < 0.7 else int(rng.integers(1, 6)),
            "min_samples_leaf": int(rng.choice([1, 1, 2, 3])),
        }
        check_growth(X, Dp, w, rng, base=None if seed % 3 else base, **limits)
        tree = check_growth(
            X, Dp, w, rng, base=base if seed % 3 else None, cuts="interval", **limits
        )
        n_intervals += sum(kind == oracle.INTERVAL for kind in tree.kind)
    assert n_intervals > repeats(6, 20)
    assert n_mistaken > repeats(15, 50)


def test_enumeration_and_sweep_agree_on_costs_full_of_ties():
    n_intervals = 0
    for seed in range(repeats(60, 150)):
        rng = np.random.default_rng(10_000 + seed)
        n, k = int(rng.integers(8, 24)), int(rng.integers(2, 5))
        X, centers, labels, w = oracle.random_case(rng, n=n, k=k, arbitrary_labels=True)
        k = len(centers)
        D = [
            mismatch(labels, k),
            rng.integers(0, 3, (n, k)).astype(float),
            rng.integers(0, 4, (n, k)) * 0.1,
            rng.random((n, k)),
        ][seed % 4]
        Dp, _ = oracle.regrets(D, w)
        base = oracle.imm(X, labels, centers, w) if seed % 3 == 0 else None
        for cuts in ("threshold", "interval"):
            tree = check_growth(X, Dp, w, rng, base=base, cuts=cuts, max_leaves=n)
            n_intervals += sum(kind == oracle.INTERVAL for kind in tree.kind)
    assert n_intervals > 50


def test_sweep_agrees_with_enumeration_on_a_larger_problem():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(300, 2)), rng.integers(0, 5, 300)])
    X[17, 0] = 1e8
    centers = X[rng.choice(300, 5, replace=False)]
    centers[0] = X[17]
    D = oracle.squared_costs(X, centers)
    labels, (Dp, _) = oracle.nearest_labels(D), oracle.regrets(D)
    base = oracle.imm(X, labels, centers)
    assert oracle.first_difference(base, oracle.sweep_imm(X, labels, centers)) is None
    tree = oracle.grow_label_cost(X, Dp, max_leaves=9, base=base)
    other = oracle.sweep_grow_label_cost(X, Dp, max_leaves=9, base=base)
    assert oracle.first_difference(tree, other) is None


def test_sweep_runs_on_data_of_real_size():
    rng = np.random.default_rng(4)
    centers = rng.normal(size=(8, 10)) * 3
    X = centers[rng.integers(0, 8, 5000)] + rng.normal(size=(5000, 10))
    D = oracle.squared_costs(X, centers)
    labels, (Dp, _) = oracle.nearest_labels(D), oracle.regrets(D)
    base = oracle.sweep_imm(X, labels, centers)
    tree = oracle.sweep_grow_label_cost(X, Dp, max_leaves=16, base=base)
    assert (base.n_leaves, tree.n_leaves) == (8, 16)
    assert tree.cost_path[-1][1] < tree.cost_path[0][1]


def test_random_cases_are_what_they_say():
    seen = set()
    for seed in range(300):
        rng = np.random.default_rng(seed)
        X, centers, labels, w = oracle.random_case(rng, zero_weights=True)
        assert np.isfinite(X).all() and np.isfinite(centers).all()
        assert len(np.unique(centers, axis=0)) == len(centers) >= 1
        assert_array_equal(labels, np.argmin(oracle.squared_costs(X, centers), axis=1))
        assert w.min() >= 0 and w.max() > 0 and len(w) == len(X) == len(labels)
        seen |= {
            name
            for name, holds in {
                "constant column": (np.ptp(X, axis=0) == 0).any(),
                "duplicate rows": len(np.unique(X, axis=0)) < len(X),
                "row on its center": (oracle.squared_costs(X, centers) == 0).any(),
                "equal coordinates": any(len(np.unique(c)) < len(centers) for c in centers.T),
                "outlier": np.abs(X).max() > 1e7,
                "empty cluster": len(np.unique(labels)) < len(centers),
                "no weight": w.min() == 0,
                "one row": len(X) == 1,
            }.items()
            if holds
        }
    assert len(seen) == 8, seen
