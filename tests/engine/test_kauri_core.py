"""Kauri against the brute-force oracle: trees, gains, ties, limits, threads, extremes."""

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import pairwise_kernels

from oracles import kauri
from oracles import threshold as oracle
from oracles.kauri import Growth, Stocks, mask_of
from sizes import repeats
from treeclust_rs import _core
from treeclust_rs.estimators.kauri import Kauri

# What rounding may do to a gain, as a share of the kernel's size; the margin of ties is 1e-12.
SLACK = 1e-14
NAMES = ("kind", "feature", "threshold", "children_left", "children_right", "cluster", "move")


def fit(
    X,
    *,
    features=None,
    gram=None,
    w=None,
    max_clusters=3,
    max_leaves=None,
    max_depth=None,
    min_samples_split=2,
    min_samples_leaf=1,
    max_features=None,
    seed=0,
    moves="paper",
    n_jobs=1,
):
    """Fit with the core, options as the oracle's."""
    X = np.ascontiguousarray(X, dtype=float)

    def matrix(values):
        return None if values is None else np.ascontiguousarray(values, dtype=float)

    fitted = _core.fit_kauri(
        X,
        kernel=matrix(features if gram is None else gram),
        is_gram=gram is not None,
        sample_weight=matrix(w),
        max_clusters=max_clusters,
        max_leaves=len(X) if max_leaves is None else max_leaves,
        max_depth=max_depth,
        min_samples_split=min_samples_split,
        min_samples_leaf=min_samples_leaf,
        max_features=X.shape[1] if max_features is None else max_features,
        seed=seed,
        all_moves=moves == "all",
        n_jobs=n_jobs,
        progress=None,
    )
    names = [name for name in dir(fitted) if not name.startswith("_")]
    return SimpleNamespace(**{name: getattr(fitted, name) for name in names})


def same(fitted, other, names=None):
    """Where two fits differ in any bit; None where they agree."""
    for name in vars(fitted) if names is None else names:
        one, two = np.asarray(getattr(fitted, name)), np.asarray(getattr(other, name))
        if one.shape != two.shape or one.tobytes() != two.tobytes():
            return f"{name}: {one} against {two}"
    return None


def line(n):
    return np.arange(n, dtype=float)[:, None]


def splits(fitted):
    """Inner nodes in the order of their splits."""
    inner = [p for p, left in enumerate(fitted.children_left) if left >= 0]
    return sorted(inner, key=lambda p: fitted.children_left[p])


def check(fitted, X, *, features=None, gram=None, w=None, stocks=None, slack=SLACK, **options):
    """Everything the core returns against the oracle, which follows it split by split."""
    options = {"max_clusters": 3, **options}
    if stocks is None:
        stocks = Stocks(features=features, gram=gram, w=w)
    tree, problem = kauri.replay(fitted, X, stocks, slack=slack, **options)
    assert problem is None, problem
    weights = np.ones(len(X)) if w is None else np.asarray(w)
    size = float(stocks.size)
    assert fitted.n_node_samples.tolist() == [len(rows) for rows in tree.rows]
    assert fitted.leaf_of_row.tolist() == tree.apply(X).tolist()
    for node, rows in enumerate(tree.rows):
        total = math.fsum(weights[rows])
        assert fitted.weighted_n_node_samples[node] == pytest.approx(total, rel=1e-12)
        cost = float(stocks.cost(mask_of(rows)))
        if cost > 0 or fitted.cost[node] != 0:  # a negative one, of an indefinite kernel, may be 0
            assert fitted.cost[node] == pytest.approx(cost, rel=1e-9, abs=1e-13 * size)
        assert (fitted.move[node] == -1) == (tree.gain[node] is None)
        if tree.gain[node] is None:
            assert math.isnan(fitted.gain[node])
        else:
            gain = float(tree.gain[node])
            assert fitted.gain[node] == pytest.approx(gain, rel=1e-9, abs=2 * slack * size)
    final = stocks.objective(kauri.clusters_of(tree))
    assert final == tree.objective
    rise = float(final - tree.start)
    total = math.fsum(fitted.gain[splits(fitted)])
    assert total == pytest.approx(rise, rel=1e-9, abs=1e-13 * size)
    return tree


# ---- random cases ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", kauri.KERNEL_KINDS)
@pytest.mark.parametrize("limits", [False, True], ids=["unlimited", "limits"])
def test_trees_equal_enumeration(kind, limits):
    seed = 10 * kauri.KERNEL_KINDS.index(kind) + limits
    rng = np.random.default_rng(seed)
    for number in range(repeats(50, 150)):
        X, _, _, w = oracle.random_case(rng, n_max=18, d_max=3, outlier=False)
        kernel = kauri.random_kernel(rng, X, kind)
        options = kauri.random_limits(rng)
        if not limits:
            options = {"max_clusters": int(rng.integers(1, 6)), "moves": options["moves"]}
        fitted = fit(X, **kernel, w=w, n_jobs=1 + number % 3, **options)
        check(fitted, X, **kernel, w=w, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "duplicates", "weights": "real"},
        {"kind": "binary", "weights": "near"},
        {"kind": "near", "weights": "ones"},
        {"kind": "grid", "weights": "integer"},
        {"kind": "mixed", "weights": "ones"},
        {"kind": "normal", "outlier": True},
    ],
    ids=lambda options: "-".join(str(value) for value in options.values()),
)
def test_awkward_cases_equal_enumeration(options):
    rng = np.random.default_rng(sum(repr(sorted(options.items())).encode()))
    for number in range(repeats(30, 60)):
        X, _, _, w = oracle.random_case(rng, n_max=20, d_max=4, **options)
        kernel = kauri.random_kernel(rng, X, "linear" if number % 2 else "rank")
        limits = kauri.random_limits(rng)
        check(fit(X, **kernel, w=w, **limits), X, **kernel, w=w, **limits)


def test_every_move_is_met():
    rng = np.random.default_rng(50)
    seen = set()
    for number in range(150):
        X = rng.normal(size=(int(rng.integers(8, 14)), 2))
        kernel = kauri.random_kernel(rng, X, "signed")
        options = {"max_clusters": 7, "moves": "all" if number % 2 else "paper"}
        tree = check(fit(X, **kernel, **options), X, **kernel, **options)
        seen |= set(tree.moves)
    assert seen == set(kauri.MOVES)


def test_features_and_their_gram_give_one_tree():
    rng = np.random.default_rng(51)
    for number in range(repeats(60, 200)):
        X, _, _, w = oracle.random_case(rng, n_max=40, d_max=4, outlier=False)
        Z = X if number % 2 else kauri.random_kernel(rng, X, "rank")["features"]
        Z = Z - np.average(Z, axis=0, weights=w)
        options = kauri.random_limits(rng)
        by_features = fit(X, features=Z, w=w, **options)
        by_gram = fit(X, gram=Z @ Z.T, w=w, **options)
        assert same(by_features, by_gram, NAMES) is None
        rounding = SLACK * float((w @ Z**2).sum())
        np.testing.assert_allclose(by_features.gain, by_gram.gain, rtol=1e-9, atol=rounding)


def test_all_moves_change_nothing_for_features():
    # a side is worth as much alone as in any cluster, so double stars and mixed moves never come up
    rng = np.random.default_rng(52)
    for _ in range(repeats(40, 100)):
        X, _, _, w = oracle.random_case(rng, n_max=30, outlier=False)
        Z = kauri.random_kernel(rng, X, "rank")["features"]
        max_clusters = int(rng.integers(1, 7))
        for kernel in ({"features": Z}, {"gram": Z @ Z.T}):
            paper = fit(X, **kernel, w=w, max_clusters=max_clusters)
            assert (
                same(paper, fit(X, **kernel, w=w, max_clusters=max_clusters, moves="all")) is None
            )
            assert set(paper.move) <= {-1, 0, 2, 3}


# ---- against sweeps, on some hundred rows ------------------------------------------------


def test_larger_problems_equal_the_sweep():
    rng = np.random.default_rng(53)
    for number in range(repeats(8, 24)):
        n = int(rng.integers(100, 400))
        X, _, _, w = oracle.random_case(rng, n=n, d=3, outlier=False)
        Z = X - X.mean(axis=0) if number % 2 else rng.normal(size=(n, int(rng.integers(1, 6))))
        kernel = {"features": Z} if number % 4 < 2 else {"gram": Z @ Z.T}
        options = {
            "max_clusters": int(rng.integers(2, 8)),
            "max_leaves": int(rng.integers(2, 25)),
            "min_samples_leaf": int(rng.choice([1, 1, 5])),
        }
        fitted = fit(X, **kernel, w=w, n_jobs=2, **options)
        swept = kauri.sweep_kauri(X, **kernel, w=w, **options)
        assert same_tree(fitted, swept) is None
        gains = [float(gain) for gain in swept.gains]
        rounding = SLACK * float((w @ Z**2).sum())
        np.testing.assert_allclose(fitted.gain[splits(fitted)], gains, rtol=1e-9, atol=rounding)


def same_tree(fitted, tree):
    for node in range(max(len(fitted.kind), tree.n_nodes)):
        if node >= min(len(fitted.kind), tree.n_nodes):
            return f"{len(fitted.kind)} nodes against {tree.n_nodes}"
        for name in NAMES:
            one, two = float(getattr(fitted, name)[node]), float(getattr(tree, name)[node])
            if one != two:
                return f"node {node}: {name} is {one!r} against {two!r}"
    return None


DATA = {"iris": load_iris, "wine": load_wine, "digits": load_digits}


@pytest.mark.parametrize("name", DATA)
def test_real_data_equal_the_sweep(name):
    X = DATA[name]().data[:600]
    if name == "digits":
        X = X[:, 20:44]
    Z = X - X.mean(axis=0)
    options = {"max_clusters": 5, "max_leaves": 16}
    swept = kauri.sweep_kauri(X, features=Z, **options)
    assert same_tree(fit(X, features=Z, n_jobs=2, **options), swept) is None
    assert same_tree(fit(X, gram=Z @ Z.T, n_jobs=2, **options), swept) is None


# ---- the same bits -----------------------------------------------------------------------


@pytest.mark.parametrize("route", ["features", "gram"])
def test_threads_do_not_change_a_bit(route):
    rng = np.random.default_rng(54)
    sizes = [(5, 2), (40, 3), (1000, 4)] + ([(9000, 5)] if route == "features" else [])
    for n, d in sizes:
        X = np.round(rng.normal(size=(n, d)), 1 if n == 1000 else 9)
        Z = np.column_stack([X, rng.normal(size=n)])
        kernel = {"features": Z} if route == "features" else {"gram": np.tanh(Z @ Z.T)}
        options = {"w": rng.uniform(0.5, 2, n), "max_clusters": 4, "max_leaves": 20}
        options |= {"moves": "all", "max_features": d - 1, "seed": 3}
        first = fit(X, **kernel, **options, n_jobs=1)
        assert len(first.kind) > 3
        for n_jobs in (1, 2, 3):
            assert same(first, fit(X, **kernel, **options, n_jobs=n_jobs)) is None


def test_powers_of_two_change_no_tree():
    rng = np.random.default_rng(55)
    for _ in range(40):
        X, _, _, w = oracle.random_case(rng, n_max=30, outlier=False)
        Z = rng.normal(size=(len(X), 3))
        options = kauri.random_limits(rng)
        fitted = fit(X, features=Z, w=w, **options)
        for power in (-300, -3, 200):
            scaled = fit(X, features=Z * 2.0**power, w=w, **options)
            assert same(fitted, scaled, NAMES) is None
            assert scaled.gain.tolist() == pytest.approx(
                (fitted.gain * 2.0 ** (2 * power)).tolist(), rel=0, abs=0, nan_ok=True
            )
        assert same(fitted, fit(X, features=Z, w=w * 4, **options), NAMES) is None


def test_fewer_leaves_are_the_tree_at_that_size():
    rng = np.random.default_rng(56)
    for _ in range(30):
        X, _, _, w = oracle.random_case(rng, n_max=30, d_max=3, outlier=False)
        kernel = kauri.random_kernel(rng, X, rng.choice(["rank", "signed", "any"]))
        options = {"max_clusters": 4, "moves": "all", "max_features": 2, "seed": 7, "w": w}
        fitted = fit(X, **kernel, **options)
        n_leaves = (len(fitted.kind) + 1) // 2
        for m in range(1, n_leaves):
            small = fit(X, **kernel, **options, max_leaves=m)
            assert len(small.kind) == 2 * m - 1
            assert small.cluster.tolist() == fitted.cluster[: 2 * m - 1].tolist()
            for node in splits(small):
                assert all(getattr(small, n)[node] == getattr(fitted, n)[node] for n in NAMES)


# ---- by hand -----------------------------------------------------------------------------


def objective(gram, labels):
    """Straight from the definition."""
    sets = [np.flatnonzero(labels == c) for c in np.unique(labels)]
    return sum(gram[np.ix_(rows, rows)].sum() / len(rows) for rows in sets)


def test_far_points_are_cut_off_along_y_first():
    # Moshkovitz et al. 2020, figure 2b; appendix F of the Kauri paper
    rng = np.random.default_rng(57)
    for v in (30.0, 1000.0):
        left, right = rng.normal([-2, 0], 0.1, (100, 2)), rng.normal([2, 0], 0.1, (100, 2))
        X = np.vstack([left, right, [[-2, v], [2, v]]])
        fitted = fit(X, features=X - X.mean(axis=0), max_clusters=3, max_leaves=3)
        assert fitted.feature[0] == 1
        assert 0.3 < fitted.threshold[0] < v
        below = fitted.children_left[0]
        assert fitted.feature[below] == 0
        labels = fitted.cluster[fitted.leaf_of_row]
        assert len(set(labels[:100])) == len(set(labels[100:200])) == len(set(labels[200:])) == 1
        assert len(set(labels)) == 3


def test_a_double_star():
    # rows 2 and 3 join row 0, then leave it for a cluster each; a star gains less
    gram = np.array([[1, -4, 1, -2], [-4, 4, -1, -3], [1, -1, 2, -4], [-2, -3, -4, -4]], float)
    fitted = fit(line(4), gram=gram, max_clusters=4)
    assert [kauri.MOVES[fitted.move[p]] for p in splits(fitted)] == [
        "star",
        "switch",
        "double_star",
    ]
    reached = [objective(gram, np.array(labels)) for labels in ([0, 0, 0, 0], [1, 0, 0, 0])]
    reached += [objective(gram, np.array(labels)) for labels in ([1, 0, 1, 1], [1, 0, 2, 3])]
    np.testing.assert_allclose(fitted.gain[splits(fitted)], np.diff(reached), rtol=1e-12)
    assert reached[-1] == gram.trace()
    assert reached[-1] > max(objective(gram, np.array(one)) for one in ([1, 0, 2, 1], [1, 0, 1, 2]))
    labels = fitted.cluster[fitted.leaf_of_row]
    assert labels.tolist() == [1, 0, 2, 3]
    # one cluster short, the star is what is left
    fitted = fit(line(4), gram=gram, max_clusters=3)
    assert [kauri.MOVES[fitted.move[p]] for p in splits(fitted)] == ["star", "switch", "star"]
    check(fitted, line(4), gram=gram, max_clusters=3)


def test_a_mixed_move():
    gram = np.array([[1, -1, 0, 0], [-1, 2, -2, 2], [0, -2, 1, -2], [0, 2, -2, -2]], float)
    fitted = fit(line(4), gram=gram, max_clusters=3, moves="all")
    assert [kauri.MOVES[fitted.move[p]] for p in splits(fitted)] == ["star", "switch", "mixed"]
    np.testing.assert_allclose(fitted.gain[splits(fitted)], [1, 2 / 3, 10 / 3], rtol=1e-12)
    check(fitted, line(4), gram=gram, max_clusters=3, moves="all")
    assert 4 not in fit(line(4), gram=gram, max_clusters=3).move


def test_a_reallocation():
    Z = np.array([[1.0], [4.0], [0.0], [3.0], [0.0]])
    fitted = fit(line(5), features=Z, max_clusters=3)
    expected = ["star", "star", "switch", "reallocation"]
    assert [kauri.MOVES[fitted.move[p]] for p in splits(fitted)] == expected
    np.testing.assert_allclose(fitted.gain[splits(fitted)], [16 / 5, 4 / 3, 4, 25 / 6])


def test_ties_take_the_first_leaf_feature_threshold_and_move():
    # a square of four points: both columns and, then, both leaves gain the same
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    fitted = fit(X, features=X - 0.5, max_clusters=4)
    assert fitted.feature[:3].tolist() == [0, 1, 1]
    assert fitted.children_left[:3].tolist() == [1, 3, 5]
    assert fitted.cluster.tolist() == [0, 1, 0, 2, 1, 3, 0]
    # copies of a column are never looked at
    rng = np.random.default_rng(58)
    X = np.repeat(rng.integers(0, 6, (30, 2)).astype(float), 3, axis=1)
    fitted = fit(X, features=X - X.mean(axis=0), max_clusters=3)
    assert set(fitted.feature) <= {-2, 0, 3}


# ---- one side outweighs the other --------------------------------------------------------

# A light side must not be had as what is left of a heavy one: the rounding of S(C, C), divided by
# the light weight, is many times the margin of ties.


@pytest.mark.parametrize("route", ["features", "gram"])
def test_rows_that_are_the_same_to_the_kernel_are_not_split(route):
    rng = np.random.default_rng(67)
    n = 50_000 if route == "features" else 1500
    group = rng.integers(0, 2, n)
    X = np.column_stack([group, rng.normal(size=n)])
    for values in ((0.3, -0.3), (0.1, 1.7)):
        Z = np.array(values)[group][:, None]
        kernel = {"features": Z} if route == "features" else {"gram": Z @ Z.T}
        fitted = fit(X, **kernel, max_clusters=5, max_leaves=6)
        assert len(fitted.kind) == 3
        assert fitted.gain[0] == pytest.approx(n * np.var(Z), rel=1e-2)


def test_of_two_equal_stars_the_left_side_is_the_new_cluster():
    rng = np.random.default_rng(68)
    for _ in range(200):
        n = int(rng.integers(2, 7))
        w = rng.choice([1.0, 1e-3, 1e-5, 1e-8], n)
        Z = rng.integers(0, 10, (n, 1)).astype(float)
        fitted = fit(line(n), features=Z - np.average(Z, axis=0, weights=w), w=w, max_clusters=n)
        for p in splits(fitted):
            left = fitted.children_left[p]
            assert fitted.cluster[left + 1] == fitted.cluster[p] < fitted.cluster[left]


@pytest.mark.parametrize("kind", kauri.KERNEL_KINDS)
def test_weights_of_all_sizes(kind):
    rng = np.random.default_rng(69)
    # the diagonal of an indefinite kernel says little of the stocks of its heaviest rows
    slack = 1e-12 if kind in ("signed", "any") else SLACK
    for _ in range(80):
        X, _, _, _ = oracle.random_case(rng, n_max=14, d_max=3, outlier=False)
        kernel = kauri.random_kernel(rng, X, kind)
        options = kauri.random_limits(rng)
        w = 10.0 ** (rng.uniform(-1, 1, len(X)) * rng.choice([2, 4, 8]))
        check(fit(X, **kernel, w=w, **options), X, **kernel, w=w, slack=slack, **options)


# ---- the ends of the range ---------------------------------------------------------------


def assert_one_leaf(fitted):
    assert len(fitted.kind) == 1
    assert fitted.cluster.tolist() == [0]
    assert (fitted.children_left[0], fitted.feature[0], fitted.move[0]) == (-1, -2, -1)
    assert math.isnan(fitted.gain[0])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_nothing_to_cut(n_jobs):
    for X in (np.zeros((1, 1)), np.full((1, 3), -7.5), np.zeros((5, 2)), np.full((4, 2), 3.0)):
        for kernel in ({"features": X}, {"gram": X @ X.T}, {"gram": -np.eye(len(X))}):
            assert_one_leaf(fit(X, **kernel, max_clusters=5, n_jobs=n_jobs))
    X = line(6)
    assert_one_leaf(fit(X, features=X, max_clusters=1, n_jobs=n_jobs))
    assert_one_leaf(fit(X, features=X, max_leaves=1, n_jobs=n_jobs))
    assert_one_leaf(fit(X, features=X, max_depth=0, n_jobs=n_jobs))
    assert_one_leaf(fit(X, features=X, min_samples_leaf=4, n_jobs=n_jobs))
    assert_one_leaf(fit(X, features=X, min_samples_split=7, n_jobs=n_jobs))
    assert_one_leaf(fit(X, features=np.ones((6, 1)), n_jobs=n_jobs))
    assert_one_leaf(fit(X, features=np.zeros((6, 1)), n_jobs=n_jobs))
    assert_one_leaf(fit(X, gram=np.zeros((6, 6)), n_jobs=n_jobs))
    assert_one_leaf(fit(X, gram=np.ones((6, 6)), n_jobs=n_jobs))


def test_constant_columns_are_passed_over():
    rng = np.random.default_rng(59)
    X = np.full((20, 5), 4.0)
    X[:, 3] = rng.normal(size=20)
    fitted = fit(X, features=X - X.mean(axis=0), max_clusters=4)
    assert set(fitted.feature) == {-2, 3}
    alone = fit(X[:, [3]], features=X - X.mean(axis=0), max_clusters=4)
    assert same(fitted, alone, ("threshold", "children_left", "cluster", "move", "gain")) is None


def test_as_many_clusters_as_rows():
    X = np.array([[3.0], [1.0], [2.0], [10.0]])
    fitted = fit(X, features=X, max_clusters=100)
    assert sorted(fitted.cluster[fitted.leaf_of_row]) == [0, 1, 2, 3]
    assert set(fitted.move) == {-1, 0}


def test_more_columns_than_rows():
    rng = np.random.default_rng(60)
    for _ in range(10):
        n = int(rng.integers(3, 9))
        X = rng.normal(size=(n, 25))
        Z = X - X.mean(axis=0)
        options = {"max_clusters": int(rng.integers(2, 5))}
        by_features, by_gram = fit(X, features=Z, **options), fit(X, gram=Z @ Z.T, **options)
        assert same(by_features, by_gram, NAMES) is None
        check(by_features, X, features=Z, **options)


def test_columns_far_from_the_origin():
    rng = np.random.default_rng(61)
    X = rng.integers(-50, 50, (60, 3)) / 4
    near = fit(X, features=X, max_clusters=4, max_leaves=12)
    far = fit(X + 1e8, features=X, max_clusters=4, max_leaves=12)
    names = [name for name in vars(near) if name != "threshold"]
    assert same(near, far, names) is None
    # features that are far themselves: the oracle is exact, rounding grows with them
    Z = X[:14] + 1e8
    options = {"max_clusters": 3, "max_leaves": 4}
    check(fit(Z, features=Z, **options), Z, features=Z, **options)


@pytest.mark.parametrize("size", [1e150, 1e-150, 1e100])
def test_huge_and_tiny_values(size):
    rng = np.random.default_rng(62)
    X = rng.integers(-9, 10, (12, 2)) * size
    for kernel in ({"features": X}, {"gram": X @ X.T}):
        fitted = fit(X, **kernel, max_clusters=3)
        assert len(fitted.kind) > 3
        check(fitted, X, **kernel)
    # huge thresholds alone need no room at all
    wide = np.array([[-1.7e308], [-1.0], [1e-300], [1.7e308]])
    fitted = fit(wide, features=line(4), max_clusters=4)
    assert len(fitted.kind) == 7
    check(fitted, wide, features=line(4), max_clusters=4)


def test_values_that_overflow_are_an_error():
    X = line(4) * 1e200
    for kernel in ({"features": X}, {"gram": np.full((4, 4), 1.7e308) * np.eye(4)}):
        with pytest.raises(ValueError, match="overflow"):
            fit(X, **kernel)


def test_kernels_without_a_diagonal():
    # T = 0, so the margin of ties is 0 and rounding decides: any split must still be a fair one
    rng = np.random.default_rng(63)
    for number in range(repeats(25, 60)):
        X, _, _, w = oracle.random_case(rng, n_max=14, d_max=2, outlier=False)
        entries = kauri.random_kernel(rng, X, "any")["gram"]
        np.fill_diagonal(entries, 0.0)
        options = {"max_clusters": 4, "moves": "all" if number % 2 else "paper"}
        check(fit(X, gram=entries, w=w, **options), X, gram=entries, w=w, **options)


# ---- max_features ------------------------------------------------------------------------


def test_max_features_of_all_columns_is_no_limit():
    rng = np.random.default_rng(64)
    X = rng.normal(size=(40, 4))
    X[:, 1] = 2.0
    options = {"features": X, "max_clusters": 4, "max_leaves": 10}
    full = fit(X, **options)
    for seed in (0, 1, 2**64 - 1):
        # a constant column does not count, so three are all there are
        assert same(full, fit(X, **options, max_features=3, seed=seed)) is None
        assert same(full, fit(X, **options, max_features=4, seed=seed)) is None
    columns = np.full((40, 4), 1.0)
    columns[:, 2] = X[:, 2]
    full = fit(columns, **options)
    assert set(full.feature) == {-2, 2}
    assert same(full, fit(columns, **options, max_features=1, seed=5)) is None


def test_the_seed_decides_which_columns_are_looked_at():
    rng = np.random.default_rng(65)
    X = rng.normal(size=(60, 5))
    options = {"features": X, "max_clusters": 3, "max_leaves": 6}
    trees = [fit(X, **options, max_features=1, seed=seed) for seed in range(100)]
    for seed in range(10):
        again = fit(X, **options, max_features=1, seed=seed, n_jobs=2)
        assert same(trees[seed], again) is None
    counts = np.bincount([tree.feature[0] for tree in trees], minlength=5)
    assert counts.min() >= 8  # 20 expected
    # a node's draw says nothing of the next node's
    pairs = {(tree.feature[0], tree.feature[tree.children_left == 3][0]) for tree in trees}
    assert len(pairs) >= 15
    # two of five columns: the better of the two wins, so a column's share is not even
    roots = [fit(X, **options, max_features=2, seed=seed).feature[0] for seed in range(100)]
    assert set(roots) <= set(range(5)) and len(set(roots)) == 4


@pytest.mark.parametrize("max_features", [1, 2])
def test_a_drawn_column_is_searched_in_full(max_features):
    rng = np.random.default_rng(66)
    for seed in range(40):
        X, _, _, w = oracle.random_case(rng, n=int(rng.integers(4, 15)), d=4, outlier=False)
        Z = kauri.random_kernel(rng, X, "rank")["features"]
        fitted = fit(X, features=Z, w=w, max_features=max_features, seed=seed)
        growth = Growth(X, Stocks(features=Z, w=w), max_clusters=3)
        for node in splits(fitted):
            left = int(fitted.children_left[node])
            f, clusters = int(fitted.feature[node]), fitted.cluster[left : left + 2].tolist()
            candidates = growth.candidates()
            same_column = [c for c in candidates if (c.node, c.feature) == (node, f)]
            taken = next(
                c
                for c in same_column
                if c.threshold == fitted.threshold[node]
                and [c.left_cluster, c.right_cluster] == clusters
            )
            assert taken.gain >= max(c.gain for c in same_column) - growth.margin
            assert taken.gain > growth.margin
            growth.take(taken)
        if len(fitted.kind) == 1:  # then some column that the root may have drawn gains nothing
            best = {c.feature: -math.inf for c in growth.candidates()}
            for c in growth.candidates():
                best[c.feature] = max(best[c.feature], c.gain)
            assert min(best.values(), default=0) <= growth.margin


# ---- what is refused ---------------------------------------------------------------------


def test_kernels_of_a_wrong_shape():
    X = line(4)
    with pytest.raises(ValueError, match="kernel"):
        fit(X, gram=np.eye(3))
    with pytest.raises(ValueError, match="kernel"):
        fit(X, features=np.ones((5, 2)))
    with pytest.raises(ValueError, match="kernel has 3 columns, but 4"):
        fit(X, gram=np.ones((4, 3)))
    with pytest.raises(ValueError, match="weights"):
        fit(X, features=X, w=np.ones(3))


# ---- the estimator -----------------------------------------------------------------------


def unlimited(max_clusters=3, max_leaves=None, **options):
    """The estimator with the parameters of the core, where no `max_leaves` is no limit."""
    return Kauri(max_clusters, max_leaves=max_leaves or math.inf, **options)


def check_model(model, X, stocks, slack=SLACK, **options):
    """A fitted model against the oracle, whose tree it gives."""
    options = {"max_clusters": 3, **options}
    tree, problem = kauri.replay(model.tree_, X, stocks, slack=slack, **options)
    assert problem is None, problem
    assert (model.n_leaves_, model.n_clusters_) == (tree.n_leaves, len(set(model.labels_)))
    assert model.classes_.tolist() == list(range(model.n_clusters_))
    np.testing.assert_array_equal(model.labels_, tree.predict(X))  # rows of weight 0 too
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.n_clusters_ == len(kauri.clusters_of(tree))
    gains, rows = model.gains_, model.gains_.rows(named=True)
    rounding = 2 * slack * float(stocks.size)
    expected = [float(gain) for gain in tree.gains]
    np.testing.assert_allclose(gains["gain"].to_list(), expected, rtol=1e-9, atol=rounding)
    assert gains["n_leaves"].to_list() == list(range(2, tree.n_leaves + 1))
    assert gains["move"].to_list() == tree.moves
    for row, node in zip(rows, splits(tree), strict=True):
        left = tree.children_left[node]
        assert (row["node"], row["threshold"]) == (node, tree.threshold[node])
        assert row["feature"] == f"x{tree.feature[node]}"
        assert [row["left_cluster"], row["right_cluster"]] == tree.cluster[left : left + 2]
    share = np.zeros(X.shape[1])
    np.add.at(share, [tree.feature[node] for node in splits(tree)], expected)
    if share.sum() > 100 * rounding:
        importances = model.feature_importances_
        np.testing.assert_allclose(importances, share / share.sum(), rtol=1e-6, atol=1e-9)
    return tree


def check_objective(model, tree, stocks):
    """Objective and cost of the data as given: `stocks` not centered."""
    clusters = kauri.clusters_of(tree)
    size = float(stocks.size)
    objective = float(stocks.objective(clusters))
    assert model.objective_ == pytest.approx(objective, rel=1e-9, abs=1e-13 * size)
    path = model.gains_["objective"].to_list()
    assert path[-1:] == [model.objective_] * bool(path)
    cost = float(sum(stocks.cost(mask) for mask in clusters))
    assert model.kernel_cost_ == pytest.approx(cost, rel=1e-9, abs=1e-13 * size)


def estimator_limits(rng):
    options = kauri.random_limits(rng)
    return {**options, "max_depth": options["max_depth"] or None}  # the estimator takes no 0


def test_linear_models_equal_enumeration():
    rng = np.random.default_rng(80)
    for number in range(repeats(50, 150)):
        X, _, _, w = oracle.random_case(
            rng, n_max=18, d_max=3, outlier=False, zero_weights=number % 3 == 0
        )
        options = estimator_limits(rng)
        model = unlimited(**options, n_jobs=1).fit(X, sample_weight=w)
        tree = check_model(model, X, Stocks(features=X, w=w, center=True), **options)
        given = Stocks(features=X, w=w)
        check_objective(model, tree, given)
        objective = model.objective(X, sample_weight=w)
        assert objective == pytest.approx(model.objective_, rel=1e-9)
        assert model.score(X, sample_weight=w) == pytest.approx(-model.inertia_, rel=1e-12)
        for c, mask in enumerate(kauri.clusters_of(tree)):
            rows = kauri.rows_of(mask)
            mean = np.average(X[rows], axis=0, weights=w[rows])
            np.testing.assert_allclose(model.cluster_centers_[c], mean, rtol=1e-9, atol=1e-9)


def test_precomputed_models_equal_enumeration():
    rng = np.random.default_rng(81)
    for number in range(repeats(50, 150)):
        X, _, _, w = oracle.random_case(
            rng, n_max=14, d_max=3, outlier=False, zero_weights=number % 3 == 0
        )
        gram = kauri.random_kernel(rng, X, ["psd", "signed", "any"][number % 3])["gram"]
        options = estimator_limits(rng)
        model = unlimited(**options, kernel="precomputed", n_jobs=1).fit(
            X, sample_weight=w, gram=gram
        )
        stocks = Stocks(gram=gram, w=w)
        tree = check_model(model, X, stocks, **options)
        check_objective(model, tree, stocks)
        rounding = 1e-13 * float(stocks.size)
        objective = model.objective(X, sample_weight=w, gram=gram)
        assert objective == pytest.approx(model.objective_, rel=1e-9, abs=rounding)
        score = model.score(X, sample_weight=w, gram=gram)
        assert score == pytest.approx(-model.kernel_cost_, rel=1e-9, abs=rounding)


@pytest.mark.parametrize(
    "kernel",
    ["rbf", "laplacian", "polynomial", "cosine", "chi2", "additive_chi2", "histogram_intersection"],
)
def test_kernels_equal_their_matrix(kernel):
    rng = np.random.default_rng(82)
    for _ in range(repeats(10, 25)):
        X, _, _, w = oracle.random_case(rng, n_max=16, d_max=3, kind="normal", outlier=False)
        X = np.abs(X) + 0.1  # for the kernels that want it
        parameters = {"gamma": 0.3} if kernel in ("rbf", "laplacian", "polynomial", "chi2") else {}
        one, two = X[:, None], X[None]
        if kernel == "histogram_intersection":
            gram = np.minimum(one, two).sum(axis=2)
        elif kernel == "additive_chi2":  # scikit-learn's is minus the distance
            gram = (2 * one * two / (one + two)).sum(axis=2)
        else:
            more = {"degree": 2, "coef0": 1.0} if kernel == "polynomial" else {}
            gram = pairwise_kernels(X, metric=kernel, **parameters, **more)
        options = {"max_clusters": int(rng.integers(1, 5)), "moves": "all"}
        model = unlimited(**options, **parameters, kernel=kernel, degree=2, n_jobs=1)
        model.fit(X, sample_weight=w)
        # scikit-learn's entries are rounded otherwise, in the last few bits
        stocks = Stocks(gram=(gram + gram.T) / 2, w=w)
        tree = check_model(model, X, stocks, slack=1e-13, **options)
        check_objective(model, tree, stocks)


def test_scaled_models_equal_enumeration():
    rng = np.random.default_rng(83)
    for _ in range(repeats(25, 60)):
        X, _, _, w = oracle.random_case(rng, n_max=18, d_max=3, outlier=False)
        mean = np.average(X, axis=0, weights=w)
        unit = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=w))
        unit[np.ptp(X, axis=0) == 0] = 1.0
        options = estimator_limits(rng)
        model = unlimited(**options, scale="standard", n_jobs=1).fit(X * 1000, sample_weight=w)
        stocks = Stocks(features=(X - mean) / unit, w=w)
        check_model(model, X * 1000, stocks, **options)
        np.testing.assert_allclose(model.scale_, unit * np.where(unit == 1.0, model.scale_, 1000))


def test_models_far_from_the_origin():
    rng = np.random.default_rng(84)
    for number in range(repeats(12, 40)):
        X = rng.integers(-40, 40, (20, 3)) / 8
        w = rng.integers(1, 4, 20).astype(float) if number % 2 else None
        options = {"max_clusters": 4}
        near = unlimited(**options, n_jobs=1).fit(X, sample_weight=w)
        far = unlimited(**options, n_jobs=1).fit(X + 1e8, sample_weight=w)
        check_model(far, X + 1e8, Stocks(features=X, w=w, center=True), **options)
        names = ("children_left", "children_right", "feature", "cluster", "move")
        for name in names:
            assert getattr(near.tree_, name).tolist() == getattr(far.tree_, name).tolist()
        assert near.kernel_cost_ == pytest.approx(far.kernel_cost_, rel=1e-9)
        given = Stocks(features=X + 1e8, w=w)
        clusters = [mask_of(np.flatnonzero(far.labels_ == c)) for c in range(far.n_clusters_)]
        assert far.objective_ == pytest.approx(float(given.objective(clusters)), rel=1e-12)


@pytest.mark.parametrize("size", [1e-150, 1e-30, 1e30, 1e150])
def test_models_of_huge_and_tiny_values(size):
    X = np.random.default_rng(85).integers(-9, 10, (14, 2)).astype(float)
    plain, model = unlimited(n_jobs=1).fit(X), unlimited(n_jobs=1).fit(X * size)
    for name in ("children_left", "feature", "cluster", "move"):
        assert getattr(plain.tree_, name).tolist() == getattr(model.tree_, name).tolist()
    assert np.isfinite(model.kernel_cost_) and np.isfinite(model.objective_)
    assert model.labels_.tolist() == model.predict(X * size).tolist()


def test_truncated_models_are_models_of_fewer_leaves():
    rng = np.random.default_rng(86)
    for number in range(20):
        X, _, _, w = oracle.random_case(rng, n_max=30, d_max=3, outlier=False)
        gram = kauri.random_kernel(rng, X, "signed" if number % 2 else "psd")["gram"]
        options = {"max_clusters": 5, "moves": "all", "n_jobs": 1}
        if number % 3:
            options |= {"kernel": "precomputed"}
        data = {"sample_weight": w} | ({"gram": gram} if number % 3 else {})
        model = unlimited(**options).fit(X, **data)
        for m in range(1, model.n_leaves_ + 1):
            small, cut = unlimited(**options, max_leaves=m).fit(X, **data), model.truncate(m)
            assert cut.labels_.tolist() == small.labels_.tolist()
            assert cut.tree_.cluster.tolist() == small.tree_.cluster.tolist()
            assert cut.tree_.move.tolist() == small.tree_.move.tolist()
            assert (cut.n_leaves_, cut.n_clusters_) == (small.n_leaves_, small.n_clusters_)
            assert cut.objective_ == small.objective_
            size = np.abs(w @ np.abs(gram) @ w) / w.sum() + np.abs(w @ X**2).sum()
            assert cut.kernel_cost_ == pytest.approx(small.kernel_cost_, rel=1e-9, abs=1e-13 * size)
            assert cut.gains_.equals(small.gains_)
            np.testing.assert_allclose(
                cut.cluster_centers_, small.cluster_centers_, rtol=1e-9, atol=1e-9
            )


def test_models_do_not_depend_on_threads():
    rng = np.random.default_rng(87)
    X = np.round(rng.normal(size=(3000, 4)), 2)
    for options in ({}, {"approximation": "nystroem", "kernel": "rbf", "n_components": 20}):
        options |= {"max_clusters": 4, "max_leaves": 12, "max_features": 2, "random_state": 1}
        models = [unlimited(**options, n_jobs=n_jobs).fit(X) for n_jobs in (1, 2, 3)]
        for other in models[1:]:
            assert models[0].gains_.equals(other.gains_)
            assert models[0].objective_ == other.objective_
            assert models[0].cluster_centers_.tobytes() == other.cluster_centers_.tobytes()
            assert models[0].labels_.tobytes() == other.labels_.tobytes()


def test_models_of_nothing_much():
    for X in (np.zeros((1, 1)), np.ones((5, 2)), np.full((2, 3), -1e150)):
        for options in ({}, {"kernel": "rbf"}, {"kernel": "cosine"}, {"scale": "standard"}):
            model = unlimited(max_clusters=4, **options).fit(X)
            assert (model.n_leaves_, model.n_clusters_) == (1, 1)
            assert model.labels_.tolist() == [0] * len(X)
            assert model.gains_.height == 0
            assert model.kernel_cost_ == 0
    X = np.array([[0.0], [1.0], [5.0]])
    assert unlimited(max_clusters=1).fit(X).n_leaves_ == 1
    model = unlimited(max_clusters=50).fit(X)
    assert (model.n_leaves_, model.n_clusters_, model.kernel_cost_) == (3, 3, 0)


def test_max_features_of_a_model():
    X = np.random.default_rng(88).normal(size=(40, 5))

    def feature_sets(max_features):
        models = [
            unlimited(max_features=max_features, max_leaves=2, random_state=seed, n_jobs=1).fit(X)
            for seed in range(30)
        ]
        return {int(model.tree_.feature[0]) for model in models}

    full = unlimited(max_leaves=2, n_jobs=1).fit(X).tree_.feature[0]
    assert feature_sets(None) == feature_sets(1.0) == feature_sets(5) == feature_sets(99) == {full}
    assert feature_sets(1) == feature_sets(0.01) == feature_sets(0.2) == set(range(5))
    # the best of the two, or more, that were drawn: never the worst column
    for two in (2, 0.4, "sqrt", "log2"):
        assert len(feature_sets(two)) == 4
    with pytest.raises(ValueError, match="max_features"):
        unlimited(max_features=0).fit(X)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial", "chi2"])
def test_nystroem_of_full_rank_grows_the_tree_of_the_kernel_matrix(kernel):
    rng = np.random.default_rng(91)
    for _ in range(5):
        X = rng.uniform(0, 3, (40, 3))
        options = {"max_clusters": 4, "max_leaves": 9, "kernel": kernel, "random_state": 0}
        exact = unlimited(**options).fit(X)
        full = unlimited(**options, approximation="nystroem", n_components=40).fit(X)
        for name in ("feature", "threshold", "cluster", "move"):
            assert getattr(full.tree_, name).tolist() == getattr(exact.tree_, name).tolist()
        assert full.objective_ == pytest.approx(exact.objective_, rel=1e-8)


def test_the_votes_tree_of_the_paper():
    # Figure 3: El Salvador aid, aid to the contras, MX missile. The third test ties with three
    # others, which part the same six rows in the same way: the first column of them is taken.
    votes = pl.read_parquet(Path(__file__).parents[1] / "data" / "congressional_votes_1984.parquet")
    party, votes = votes["label"], votes.drop("label")
    model = unlimited(max_clusters=2).fit(votes)
    assert adjusted_rand_score(party, model.labels_) == pytest.approx(0.47, abs=0.005)
    names = ["el_salvador_aid", "aid_to_nicaraguan_contras"]
    assert model.gains_["feature"].to_list() == [*names, "el_salvador_aid"]
    assert model.gains_["move"].to_list() == ["star", "switch", "switch"]
    first = unlimited(max_clusters=2).fit(votes.select("mx_missile", pl.exclude("mx_missile")))
    assert first.gains_["feature"].to_list() == [*names, "mx_missile"]
    assert first.labels_.tolist() == model.labels_.tolist()
    assert first.gains_["gain"].to_list() == pytest.approx(model.gains_["gain"].to_list())
