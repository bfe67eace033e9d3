"""Kernel trees against the oracle: surrogate features, Kernel IMM, growth, extremes, threads."""

from __future__ import annotations

import math
import warnings
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import treeclust_rs as tc
from oracles import kernel as ok
from oracles import threshold as oracle
from oracles.threshold import LEAF, THRESHOLD
from sizes import repeats
from treeclust_rs import _core, _engine
from treeclust_rs._data.table import read_table
from treeclust_rs._data.units import Units, WeightedRows
from treeclust_rs._kernels.kernel_data import kernel_rows, make_kernel_data
from treeclust_rs._kernels.parameters import make_kernel
from treeclust_rs._kernels.surrogate import SurrogateFeatures

# Those with surrogate features of their own; the linear kernel's are the columns.
FAMILIES = [family for family in ok.FAMILIES if family[0] != "linear"]
all_families = pytest.mark.parametrize("family", FAMILIES, ids="-".join)

# Cases are drawn at random: clusters may lose their rows.
pytestmark = pytest.mark.filterwarnings("ignore:Only .* in the tree")


def seed_of(*parts):
    return sum(repr(parts).encode())


def kernel_params(case):
    return {"beta": case.beta} if case.kernel == "histogram_intersection" else None


def settle(case, *, scale=None, n_anchors=None, shift=None):
    """The fitted rows of a case, and the product's surrogate features of them."""
    rows = ok.fitted_rows(case.labels, case.w)
    fitted = SimpleNamespace(
        X=np.ascontiguousarray(case.X[rows]),
        labels=case.labels[rows],
        w=np.ascontiguousarray(case.w[rows]),
        k=case.k,
    )
    fitted.table = read_table(fitted.X, estimator_name="test")
    standardise = scale == "standard"
    fitted.units = Units(*_core.column_units(fitted.table.data, fitted.w, standardise, 1))
    kernel = make_kernel(
        case.kernel,
        gamma=case.gamma,
        kernel_params=kernel_params(case),
        X=kernel_rows(case.kernel, fitted.table, fitted.units),
    )
    fitted.surrogate = SurrogateFeatures.of(
        kernel,
        fitted.table,
        fitted.units,
        features=case.features,
        order=case.order,
        n_anchors=n_anchors,
        shift=shift,
    )
    fitted.Phi, fitted.column = core_features(fitted.surrogate, fitted.X)
    return fitted


def core_features(surrogate, X):
    """The features of all rows and the input column of each, with the core's roundings.

    ``tests/kernel.rs`` compares the core's features with their definitions.
    """
    blocks = []
    for f, column in enumerate(X.T):
        values, back = np.unique(column, return_inverse=True)
        t = ((values - surrogate.shift[f]) / surrogate.scale[f]).tolist()
        block = [ok.unimodal(phi) for phi in core_features_of_column(surrogate, f, t)]
        blocks.append(np.array(block).reshape(-1, len(t)).T[back])
    column = np.repeat(np.arange(len(blocks)), [block.shape[1] for block in blocks])
    return np.hstack(blocks), column


def core_features_of_column(surrogate, f, t):
    """The features of one column at its distinct values t, by feature."""
    gamma = beta = surrogate.parameter
    match surrogate.family:
        case "taylor":
            logs = [math.log(x) if x > 0 else -math.inf for x in t]
            for j in range(surrogate.order + 1):
                log_factorial = sum(math.log(i) for i in range(1, j + 1))
                log_scale = 0.5 * (j * math.log(2.0 * gamma) - log_factorial)
                if j == 0:
                    yield [math.exp(-gamma * x * x) for x in t]
                else:
                    terms = zip(t, logs, strict=True)
                    yield [math.exp(j * log - gamma * x * x + log_scale) for x, log in terms]
        case "laplace":
            for a in surrogate.anchors[f].tolist():
                yield [math.exp(-gamma * abs(x - a)) for x in t]
        case "gauss":
            for a in surrogate.anchors[f].tolist():
                yield [math.exp(-gamma * (x - a) * (x - a)) for x in t]
        case "root":
            yield [math.sqrt(x) for x in t]
        case "intersection":
            powers = [x if beta == 1.0 else math.pow(x, beta) for x in t]
            for below, z in pairwise([0.0, *sorted(set(powers))]):
                height = math.sqrt(z - below)
                yield [height if power >= z else 0.0 for power in powers]
        case "chi2":
            for j in range(1, surrogate.order + 1):
                size, log_base = math.sqrt(2.0 / j), math.log(j / surrogate.order)
                yield [size * x * math.exp(x * log_base) for x in t]


def fit(
    fitted, D, *, base=True, cuts="threshold", max_leaves=None, n_jobs=1, search=None, **limits
):
    """Fit with the core on label costs D."""
    regrets, _ = oracle.regrets(D, fitted.w)
    return _core.fit_tree(
        fitted.X,
        fitted.labels.astype(np.uint32),
        n_labels=regrets.shape[1],
        base=fitted.surrogate if base else None,
        criterion=(np.ascontiguousarray(regrets), cuts == "interval"),
        sample_weight=fitted.w,
        max_leaves=fitted.k if max_leaves is None else max_leaves,
        max_depth=limits.get("max_depth"),
        min_samples_leaf=limits.get("min_samples_leaf", 1),
        n_jobs=n_jobs,
        progress=None,
        search=search,
    )


def base_of(fitted):
    """The oracle's Kernel IMM of a fitted case."""
    return ok.kernel_imm(
        fitted.X, fitted.Phi, fitted.column, fitted.labels, fitted.w, search=oracle.sweep_imm
    )


def bits(tree):
    """Everything the core gives, as bytes."""
    names = [name for name in dir(tree) if not name.startswith("_")]
    return {name: np.asarray(getattr(tree, name)).tobytes() for name in names}


def check_tree(tree, expected, fitted):
    """Structure, tests, labels, rows and mistakes against the oracle's tree."""
    assert oracle.first_difference(tree, expected) is None
    assert tree.n_base_leaves == expected.n_base_leaves
    assert tree.n_node_samples.tolist() == [len(rows) for rows in expected.rows]
    for leaf in expected.leaves:
        assert_array_equal(np.flatnonzero(tree.leaf_of_row == leaf), expected.rows[leaf])
    assert_array_equal(tree.leaf_of_row, expected.apply(fitted.X))
    total = fitted.w.sum()
    for node, mistakes in enumerate(expected.mistakes):
        if not math.isnan(mistakes):
            assert tree.mistakes[node] == pytest.approx(mistakes, abs=1e-12 * total)


def random_fitted(rng, family, n_cases, **options):
    """Cases whose clusters the features can tell apart; units, anchors and origins vary."""
    seen = 0
    while seen < n_cases:
        case = ok.random_kernel_case(rng, family=family, **options)
        fitted = settle(
            case,
            scale="standard" if rng.random() < 0.4 else None,
            n_anchors=(None, "all", 2, 5)[rng.integers(4)],
            shift=case.X.min(axis=0) - rng.uniform(0.1, 3) if rng.random() < 0.3 else None,
        )
        if ok.separable(fitted.Phi, fitted.labels, fitted.w):
            seen += 1
            yield case, fitted


# ---- features -----------------------------------------------------------------------------


def expected_features(case, surrogate, table):
    """The oracle's features of the product's column units."""
    blocks = []
    for f in range(table.n_features):
        t = (np.asarray(table.data)[:, f] - surrogate.shift[f]) / surrogate.scale[f]
        match surrogate.family:
            case "taylor":
                block = ok.taylor_features(t, case.gamma, case.order)
            case "laplace" | "gauss":
                block = ok.distance_features(t, surrogate.anchors[f], case.kernel, case.gamma)
            case "root":
                block = ok.hellinger_features(t)
            case "intersection":
                block = ok.intersection_features(t, t, case.beta)
            case "chi2":
                block = ok.chi2_features(t, case.order)
        blocks.append(ok.unimodal_features(t, block))
    column = np.repeat(np.arange(len(blocks)), [block.shape[1] for block in blocks])
    return np.hstack(blocks), column


@all_families
@pytest.mark.parametrize("scale", [None, "standard"])
def test_features_equal_the_definitions(family, scale):
    """Rounded numbers to 1e-12, whatever underflows or lies beyond the peak; unimodal exactly."""
    rng = np.random.default_rng(seed_of(family, scale))
    for _ in range(15):
        case = ok.random_kernel_case(rng, family=family, n_max=15)
        fitted = settle(case, scale=scale)
        expected, column = expected_features(case, fitted.surrogate, fitted.table)
        assert_array_equal(fitted.column, column)
        if case.kernel == "histogram_intersection":  # steps are roots of differences of powers
            largest = (expected**2).sum(axis=1).max()
            assert_allclose(fitted.Phi**2, expected**2, rtol=1e-12, atol=1e-15 * largest)
        else:
            assert_allclose(fitted.Phi, expected, rtol=1e-12, atol=1e-300)
        for j, f in enumerate(column):
            _, first = np.unique(fitted.X[:, f], return_index=True)
            assert ok.is_unimodal(fitted.Phi[first, j])


@pytest.mark.parametrize("gamma", [1e-12, 1e-3, 1.0, 1e3, 1e12])
@pytest.mark.parametrize("family", FAMILIES[:3], ids="-".join)
def test_features_of_any_gamma(family, gamma):
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.normal(size=30), 1e6 + rng.integers(0, 9, 30), rng.normal(size=30) / 1e4]
    )
    case = ok.Case(X, np.zeros(30, dtype=int), np.ones(30), *family, gamma, 1.0, 6, 0.0)
    fitted = settle(case)
    expected, _ = expected_features(case, fitted.surrogate, fitted.table)
    assert_allclose(fitted.Phi, expected, rtol=1e-12, atol=1e-300)
    for j, f in enumerate(fitted.column):
        assert ok.is_unimodal(fitted.Phi[np.unique(X[:, f], return_index=True)[1], j])


def test_units_of_the_features():
    """Taylor's origin is 1 % below a column or as told; anchors and steps are the fitted rows'."""
    X = np.array([[3.0, 10.0], [5.0, 10.0], [4.0, 30.0], [99.0, 99.0]])
    labels = np.array([0, 1, 0, -1])

    def settled(kernel, features, **options):
        case = ok.Case(X, labels, np.ones(4), kernel, features, 1.0, 1.0, 2, 0.0)
        return settle(case, **options).surrogate

    taylor = settled("rbf", "taylor")
    assert_allclose(taylor.shift, [3 - 0.02, 10 - 0.2], rtol=1e-15)
    assert [ok.taylor_shift(column) for column in X[:3].T] == taylor.shift.tolist()
    assert settled("rbf", "taylor", shift=-1).shift.tolist() == [-1, -1]
    assert settled("rbf", "taylor", shift=[0, 9.5]).shift.tolist() == [0, 9.5]
    scaled = settled("rbf", "taylor", scale="standard")
    assert_array_equal(scaled.shift, taylor.shift)
    assert_allclose(scaled.scale, X[:3].std(axis=0), rtol=1e-15)
    for kernel in ("rbf", "laplacian"):
        surrogate = settled(kernel, "distance", scale="standard")
        for f, anchors in enumerate(surrogate.anchors):
            values = np.unique(X[:3, f])
            assert_array_equal(anchors, (values - surrogate.shift[f]) / surrogate.scale[f])
    case = ok.Case(X, labels, np.ones(4), "histogram_intersection", "additive", 1.0, 1.0, 2, 0.0)
    assert settle(case).Phi.shape == (3, 5)  # steps at 3, 4, 5 and at 10, 30


@pytest.mark.parametrize("features", [("rbf", "distance"), ("laplacian", "distance")], ids="-".join)
def test_anchors(features):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=700), rng.integers(0, 40, 700)])
    case = ok.Case(X, np.zeros(700, dtype=int), np.ones(700), *features, 1.0, 1.0, 2, 0.0)

    def anchors_of(n_anchors):
        fitted = settle(case, n_anchors=n_anchors)
        assert_array_equal(
            fitted.column, np.repeat([0, 1], [len(a) for a in fitted.surrogate.anchors])
        )
        return [a + fitted.units.shift[f] for f, a in enumerate(fitted.surrogate.anchors)]

    for n_anchors, counts in ((None, (256, 40)), ("all", (700, 40)), (300, (300, 40))):
        found = anchors_of(n_anchors)
        assert tuple(map(len, found)) == counts
        for f, anchors in enumerate(found):
            assert (np.diff(anchors) > 0).all()
            assert_allclose(
                anchors, [X[np.abs(X[:, f] - a).argmin(), f] for a in anchors], rtol=1e-12
            )
    few, repeated = anchors_of(16)
    # even quantiles: as many rows below each anchor as between any two
    below = np.searchsorted(np.sort(X[:, 0]), few - 1e-9)
    assert len(few) == 16 and set(np.diff(below)) <= {43, 44}
    assert len(repeated) <= 16 and np.isin(np.round(repeated, 9), X[:, 1]).all()


@pytest.mark.parametrize("kernel", ok.PRODUCT_KERNELS)
def test_anchors_are_the_middle_rows_of_equal_parts(kernel):
    """Of m parts of the sorted rows, with repeated values, each gives the value in its middle."""
    repeated = np.r_[np.zeros(60), np.arange(1.0, 41.0)]
    X = np.column_stack([np.arange(100.0), repeated, np.arange(100.0) // 50])
    X = X[np.random.default_rng(2).permutation(100)]
    case = ok.Case(X, np.zeros(100, dtype=int), np.ones(100), kernel, "distance", 1.0, 1.0, 2, 0.0)
    fitted = settle(case, n_anchors=5)
    found = [a + fitted.units.shift[f] for f, a in enumerate(fitted.surrogate.anchors)]
    assert_allclose(found[0], [10, 30, 50, 70, 90], rtol=1e-12)
    assert_allclose(found[1], [0, 11, 31], rtol=1e-12, atol=1e-12)
    assert_allclose(found[2], [0, 1], atol=1e-12)  # all distinct values: not more than 5


@pytest.mark.parametrize("kernel", ok.PRODUCT_KERNELS)
def test_cuts_are_centered_on_the_quantile_of_the_rows(kernel):
    """With one anchor a cut without mistakes shows where it lies."""
    options = {"kernel": kernel, "features": "distance", "gamma": 0.1, "n_anchors": 1}
    x = np.arange(11.0)
    band = ((x >= 4) & (x <= 6)).astype(int)
    model = tc.KernelIMM(reference=band, **options).fit(x[:, None])
    assert model.tree_.rules()["rule"].to_list() == ["3.5 <= x0 <= 6.5", "x0 < 3.5 or x0 > 6.5"]
    # The middle row has the value 9, the middle value is 5: |x - 9| <= 1 is x >= 8.
    x = np.r_[x, np.full(8, 10.0)]
    model = tc.KernelIMM(reference=(x >= 8).astype(int), **options).fit(x[:, None])
    assert model.cost_path_["cost"].to_list() == [0.0]
    assert model.tree_.rules()["rule"].to_list() == ["x0 <= 7.5", "x0 > 7.5"]


# ---- Kernel IMM and growth against enumeration --------------------------------------------


@all_families
def test_kernel_imm_equals_the_oracle(family):
    rng = np.random.default_rng(seed_of(family, 1))
    intervals, mistakes, quick = 0, 0, True
    for number, (_, fitted) in enumerate(random_fitted(rng, family, 120)):
        search = oracle.sweep_imm if quick else oracle.imm
        quick = number % 8 != 0
        base = ok.kernel_imm(
            fitted.X, fitted.Phi, fitted.column, fitted.labels, fitted.w, search=search
        )
        D = ok.mismatches(fitted.labels)
        expected = ok.grow(fitted.X, D, fitted.labels, fitted.w, base=base, max_leaves=fitted.k)
        tree = fit(fitted, D, n_jobs=1 + number % 3)
        check_tree(tree, expected, fitted)
        check_level_sets(tree, fitted)
        intervals += ok.has_intervals(tree)
        mistakes += np.nansum(tree.mistakes) > 0
    assert mistakes > 20
    rising = family[0] in ("hellinger", "histogram_intersection")
    assert (intervals == 0) if rising else (intervals > 5)


@pytest.mark.parametrize("cuts", ["threshold", "interval"])
@pytest.mark.parametrize("base", [True, False], ids=["kernel_imm", "empty"])
@pytest.mark.parametrize("costs", ["distances", "mismatches"])
def test_growth_equals_the_oracle(cuts, base, costs):
    """Kernel ExKMC and Kernel Expand, the core being given the oracle's label costs."""
    rng = np.random.default_rng(seed_of(cuts, base, costs))
    grown = 0
    for number in range(repeats(35, 70)):
        family = FAMILIES[number % len(FAMILIES)]
        case, fitted = next(random_fitted(rng, family, 1, n_max=22))
        K = ok.gram(fitted.X, case.kernel, gamma=case.gamma, beta=case.beta)
        exact = ok.distances(K, fitted.labels, fitted.w)
        options = {
            "cuts": cuts,
            "max_leaves": int(fitted.k + rng.integers(0, 7)),
            "max_depth": None if rng.random() < 0.6 else int(rng.integers(1, 5)),
            "min_samples_leaf": int(rng.integers(1, 4)) if rng.random() < 0.5 else 1,
        }
        D = exact if costs == "distances" else ok.mismatches(fitted.labels)
        tree = fit(fitted, D, base=base, n_jobs=1 + number % 3, **options)
        start = None
        if base:
            start = base_of(fitted)
        quick = number % 4 != 0
        search = oracle.sweep_grow_label_cost if quick else oracle.grow_label_cost
        expected = ok.grow(
            fitted.X, D, fitted.labels, fitted.w, base=start, search=search, **options
        )
        check_tree(tree, expected, fitted)
        # sums of c' over the leaves never rise with their number
        costs_of = [cost for _, cost in expected.cost_path]
        assert all(b <= a for a, b in pairwise(costs_of[1:]))
        grown += expected.n_leaves > max(expected.n_base_leaves, 1)
    assert grown > repeats(2, 8)


@pytest.mark.parametrize("tiny", [(2, 0), (5, 3)], ids=str)
def test_bins_do_not_change_the_tree(tiny):
    rng = np.random.default_rng(5)
    for number in range(repeats(15, 30)):
        _, fitted = next(random_fitted(rng, FAMILIES[number % len(FAMILIES)], 1))
        D = ok.mismatches(fitted.labels)
        options = {"max_leaves": fitted.k + 3, "cuts": ("threshold", "interval")[number % 2]}
        plain, binned = fit(fitted, D, **options), fit(fitted, D, search=tiny, **options)
        assert bits(plain) == bits(binned)


@all_families
def test_larger_cases_equal_the_oracle(family):
    """Some hundred rows and more anchors."""
    rng = np.random.default_rng(seed_of(family, 2))
    for case, fitted in random_fitted(rng, family, 3, n=150, d=2, kind="normal"):
        base = base_of(fitted)
        D = ok.mismatches(fitted.labels)
        expected = ok.grow(
            fitted.X, D, fitted.labels, fitted.w, base=base, max_leaves=case.k + 4,
            search=oracle.sweep_grow_label_cost,
        )  # fmt: skip
        check_tree(fit(fitted, D, max_leaves=case.k + 4, n_jobs=2), expected, fitted)


# ---- every cut is a level set of a feature -------------------------------------------------


def is_level_set(inside, outside):
    """Whether some feature (a column of both) is larger in every row inside than outside."""
    low, high = inside.min(axis=0, initial=math.inf), outside.max(axis=0, initial=-math.inf)
    return (low > high).any()


def check_level_sets(tree, fitted):
    """In a base tree the rows inside each test are those of a feature above some threshold."""
    waiting = {0: np.arange(len(fitted.X))}
    while waiting:
        node, rows = waiting.popitem()
        if tree.kind[node] == LEAF:
            assert_array_equal(np.flatnonzero(tree.leaf_of_row == node), rows)
            continue
        f = tree.feature[node]
        x, phi = fitted.X[rows, f], fitted.Phi[np.ix_(rows, fitted.column == f)]
        if tree.kind[node] == THRESHOLD:
            left = x <= tree.threshold[node]
        else:
            left = (tree.lower[node] <= x) & (x <= tree.upper[node])
        # the rows inside go left, but for a threshold whose inside has no upper end
        turned = tree.kind[node] == THRESHOLD and is_level_set(phi[~left], phi[left])
        assert turned or is_level_set(phi[left], phi[~left])
        waiting[tree.children_left[node]] = rows[left]
        waiting[tree.children_right[node]] = rows[~left]


@pytest.mark.parametrize("family", FAMILIES[:3], ids="-".join)
@pytest.mark.parametrize("gamma", [1e-9, 1e-2, 1e2, 1e5, 1e9])
@pytest.mark.parametrize("far", [0.0, 1e9], ids=["near", "far"])
def test_partitions_of_extreme_features(family, gamma, far):
    """Thresholds beyond the peak, underflow on both flanks, plateaus of rounded numbers."""
    rng = np.random.default_rng(seed_of(family, gamma, far))
    n_trees = 0
    for _ in range(12):
        case = ok.random_kernel_case(rng, family=family, gamma=gamma, far=far, n_max=25)
        fitted = settle(case)
        D = ok.mismatches(fitted.labels)
        if not ok.separable(fitted.Phi, fitted.labels, fitted.w):
            continue  # nothing is left of the features where gamma is too large, or too small
        tree = fit(fitted, D)
        n_trees += case.k > 1
        check_level_sets(tree, fitted)
        assert sorted(tree.base_cluster[tree.kind == LEAF]) == list(range(fitted.k))
    assert n_trees > 0


def test_flat_tops():
    """With an origin far below the data whole columns lie on the flat top of a feature."""
    rng = np.random.default_rng(7)
    for number in range(repeats(25, 60)):
        far, j = 10.0 ** rng.integers(4, 9), int(rng.integers(1, 5))
        X = np.round(rng.uniform(0, 10, (15, 1 + number % 2)), 2)
        labels = np.digitize(X[:, 0], [3, 6]) if number % 3 else rng.integers(0, 3, 15)
        labels = np.unique(labels, return_inverse=True)[1]
        gamma = j / (2 * (far + 5) ** 2)
        case = ok.Case(X, labels, np.ones(15), "rbf", "taylor", gamma, 1.0, 4, 0.0)
        fitted = settle(case, shift=-far)
        tree = fit(fitted, ok.mismatches(labels))
        check_level_sets(tree, fitted)
        base = ok.kernel_imm(X, fitted.Phi, fitted.column, labels)
        assert oracle.first_difference(tree, base, clusters=False) is None


def test_an_end_beyond_the_node_s_rows():
    """All rows of the second node lie inside: the end is placed beside the next fitted row.

    Worked out by hand. Centers of sqrt(x0): 1.110 of cluster 2 and 1.228 of cluster 1; at the node
    with x0 = 2 and 2.25 the cut between them has one mistake, as any has. It lies at 1.17, and
    of the fitted rows only x0 = 2 and 2.25 have larger roots: sqrt(1.25) = 1.118 has not. The end
    is then placed between 1.25 and 2.
    """
    X = np.array([[0.75, 0.5], [1.25, 1], [0.25, 0.25], [2, 2.75], [2.25, 2], [2.25, 0.5]])
    labels, w = np.array([1, 0, 2, 2, 1, 0]), np.array([3.0, 3, 1, 2, 4, 2])
    case = ok.Case(X, labels, w, "hellinger", "additive", 1.0, 1.0, 2, 0.0)
    tree = fit(settle(case), ok.mismatches(labels))
    assert tree.feature.tolist() == [1, -2, 0, -2, -2]
    assert tree.threshold[[0, 2]].tolist() == [1.5, 1.6]
    assert tree.base_cluster.tolist() == [-1, 0, -1, 2, 1]
    assert tree.n_node_samples.tolist() == [6, 4, 2, 0, 2]


@pytest.mark.parametrize("name", ok.PRODUCT_KERNELS)
def test_adjacent_doubles(name):
    """No double lies between the rows: both ends of the interval are the row inside."""
    x = 1.0 + np.arange(3) * 2.0**-52
    gamma = 2.0**52 if name == "laplacian" else 2.0**104
    case = ok.Case(
        np.repeat(x, 2)[:, None], np.array([0, 0, 1, 1, 0, 0]), np.ones(6), name, "distance",
        gamma, 1.0, 2, 0.0,
    )  # fmt: skip
    tree = fit(settle(case), ok.mismatches(case.labels))
    assert (tree.lower[0], tree.upper[0]) == (x[1], x[1])
    assert tree.leaf_of_row.tolist() == [2, 2, 1, 1, 2, 2]


def test_clusters_that_features_cannot_tell_apart():
    X = np.array([[1.0], [2.0], [1.0], [2.0]])
    case = ok.Case(X, np.array([0, 0, 1, 1]), np.ones(4), "laplacian", "distance", 1.0, 1.0, 2, 0.0)
    with pytest.raises(ValueError, match="apart"):
        fit(settle(case), ok.mismatches(case.labels))


# ---- the estimators -----------------------------------------------------------------------


def options_of(case, **more):
    return {
        "kernel": case.kernel,
        "gamma": case.gamma,
        "kernel_params": kernel_params(case),
        "features": case.features,
        "order": case.order,
        "reference": case.labels,
        "n_jobs": 1,
        **more,
    }


def fitted_model(model, case):
    """Fit, the warnings about labels and underflow aside."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*(nearer to the center|underflow)")
        return model.fit(case.X, sample_weight=case.w)


MODELS = {
    "KernelIMM": (tc.KernelIMM, {}),
    "KernelExKMC": (tc.KernelExKMC, {"cuts": "threshold"}),
    "KernelExKMC-interval": (tc.KernelExKMC, {"cuts": "interval"}),
    "KernelExKMC-empty": (tc.KernelExKMC, {"cuts": "interval", "base_tree": None}),
    "KernelExpand": (tc.KernelExpand, {"cuts": "threshold"}),
    "KernelExpand-interval": (tc.KernelExpand, {"cuts": "interval"}),
    "KernelExpand-empty": (tc.KernelExpand, {"cuts": "threshold", "base_tree": None}),
}
all_models = pytest.mark.parametrize("name", MODELS)


@all_models
def test_models_equal_the_oracle(name):
    """Trees, labels, costs, inertias and prices; noise and rows of weight 0 included."""
    make, more = MODELS[name]
    rng = np.random.default_rng(seed_of(name))
    for number in range(repeats(18, 36)):
        family = FAMILIES[number % len(FAMILIES)]
        scale = "standard" if number % 3 == 1 else None
        while True:
            case = ok.random_kernel_case(rng, family=family, n_max=20, gamma=None)
            fitted = settle(case, scale=scale)
            if ok.separable(fitted.Phi, fitted.labels, fitted.w):
                break
        limits = {} if make is tc.KernelIMM else {"max_leaves": case.k + int(rng.integers(0, 6))}
        model = fitted_model(make(**options_of(case, scale=scale, **more, **limits)), case)
        by_mismatch = make is not tc.KernelExKMC

        # label costs: the model's own, which are the oracle's but for rounding
        data = WeightedRows(fitted.table, fitted.w, fitted.units, _engine.Threads(1))
        stocks = make_kernel_data(model, data, None, None, hold_gram=False)
        T = kernel_rows(case.kernel, fitted.table, fitted.units)
        K = ok.gram(T, case.kernel, gamma=case.gamma, beta=case.beta)
        exact = ok.distances(K, fitted.labels, fitted.w)
        D = stocks.distances(fitted.labels, case.k)
        assert_allclose(D, exact, rtol=1e-9, atol=1e-12 * np.abs(K).max())
        D = ok.mismatches(fitted.labels) if by_mismatch else D

        base = None
        if more.get("base_tree", "kernel_imm") is not None:
            base = base_of(fitted)
        expected = ok.grow(
            fitted.X, D, fitted.labels, fitted.w, base=base, search=oracle.sweep_grow_label_cost,
            cuts=more.get("cuts", "threshold"), max_leaves=limits.get("max_leaves", case.k),
        )  # fmt: skip
        assert oracle.first_difference(model.tree_, expected) is None
        assert model.classes_.tolist() == list(range(case.k))
        assert_array_equal(model.labels_, expected.predict(case.X))
        assert_array_equal(model.labels_, model.predict(case.X))
        taking_part = np.zeros(len(case.X), dtype=bool)
        taking_part[ok.fitted_rows(case.labels, case.w)] = True
        assert_array_equal(model.reference_labels_, np.where(taking_part, case.labels, -1))

        # costs about the reference's means, and about the tree's own
        constant = math.fsum(fitted.w * D.min(axis=1))
        n_leaves, costs = zip(*expected.cost_path, strict=True)
        assert model.cost_path_["n_leaves"].to_list() == list(n_leaves)
        found = model.cost_path_["cost"].to_numpy()
        assert (np.diff(found) <= 0).all()
        assert_allclose(
            found, np.array(costs) + constant, rtol=1e-9, atol=1e-11 * (costs[0] + constant)
        )
        trace = math.fsum(fitted.w * K.diagonal())
        leaves = expected.predict(fitted.X)
        inertia = ok.kernel_cost(K, leaves, fitted.w)
        reference = ok.kernel_cost(K, fitted.labels, fitted.w)
        assert model.kernel_cost_ == pytest.approx(inertia, rel=1e-9, abs=1e-11 * trace)
        assert model.reference_kernel_cost_ == pytest.approx(reference, rel=1e-9, abs=1e-11 * trace)
        if reference > 1e-9 * trace:
            price = ok.price(K, leaves, fitted.labels, fitted.w)
            assert model.price_of_explainability_ == pytest.approx(price, rel=1e-6, abs=1e-9)
        for c in np.unique(leaves):
            own = leaves == c
            mean = np.average(fitted.X[own], axis=0, weights=fitted.w[own])
            assert_allclose(model.cluster_centers_[c], mean, rtol=1e-12, atol=1e-12)


@all_models
def test_threads_do_not_change_a_bit(name):
    make, more = MODELS[name]
    rng = np.random.default_rng(11)
    for number in range(6):
        case, _ = next(random_fitted(rng, FAMILIES[number], 1, n=200, d=3, kind="normal"))
        limits = {} if make is tc.KernelIMM else {"max_leaves": case.k + 5}
        found = set()
        for n_jobs in (1, 2, 3):
            options = options_of(case, **more, **limits, n_jobs=n_jobs)
            model = fitted_model(make(**options), case)
            tree = model.tree_
            arrays = [tree.children_left, tree.feature, tree.threshold, tree.lower, tree.upper]
            arrays += [
                tree.impurity,
                tree.value,
                tree.cluster,
                model.labels_,
                model.cluster_centers_,
            ]
            arrays += [
                model.cost_path_["cost"].to_numpy(),
                model.kernel_cost_,
                model.reference_kernel_cost_,
            ]
            found.add(b"".join(np.asarray(array).tobytes() for array in arrays))
        assert len(found) == 1


@all_models
def test_rows_left_out_do_not_count(name):
    make, more = MODELS[name]
    rng = np.random.default_rng(13)
    for number in range(12):
        family = FAMILIES[number % len(FAMILIES)]
        case, fitted = next(random_fitted(rng, family, 1, noise=True, zero_weights=True, n=25))
        limits = {} if make is tc.KernelIMM else {"max_leaves": case.k + 3}
        model = fitted_model(make(**options_of(case, **more, **limits)), case)
        options = options_of(
            case,
            **more,
            **limits,
        ) | {"reference": fitted.labels}
        alone = fitted_model(make(**options), SimpleNamespace(X=fitted.X, w=fitted.w))
        assert len(fitted.X) < len(case.X)
        assert oracle.first_difference(model.tree_, alone.tree_) is None
        assert_array_equal(model.tree_.value, alone.tree_.value)
        assert model.cost_path_.equals(alone.cost_path_)
        assert model.kernel_cost_ == alone.kernel_cost_
        assert_array_equal(model.labels_, alone.predict(case.X))


def test_the_linear_kernel_is_imm_and_exkmc():
    rng = np.random.default_rng(17)
    checked = 0
    for number in range(35):
        case = ok.random_kernel_case(rng, family=("linear", "additive"))
        scale = "standard" if number % 3 == 0 else None
        rows = ok.fitted_rows(case.labels, case.w)
        if not ok.separable(case.X[rows], case.labels[rows], case.w[rows]):
            continue
        shared = {"reference": case.labels, "scale": scale, "n_jobs": 1}
        max_leaves = case.k + int(rng.integers(0, 6))
        growth = {"max_leaves": max_leaves, "min_samples_leaf": int(rng.integers(1, 3))}
        pairs = [(tc.KernelIMM(kernel="linear", **shared), tc.IMM(**shared))]
        for cuts in ("threshold", "interval"):
            for base, plain_base in (("kernel_imm", "imm"), (None, None)):
                kernel = tc.KernelExKMC(
                    kernel="linear", cuts=cuts, base_tree=base, **shared, **growth
                )
                plain = tc.ExKMC(cuts=cuts, base_tree=plain_base, **shared, **growth)
                pairs.append((kernel, plain))
        for kernel, plain in pairs:
            fitted_model(kernel, case)
            fitted_model(plain, case)
            # KernelIMM's costs, and so the clusters of its inner nodes, are mismatches'
            grown = isinstance(kernel, tc.KernelExKMC)
            assert oracle.first_difference(kernel.tree_, plain.tree_, clusters=grown) is None
            assert_array_equal(kernel.labels_, plain.labels_)
            if grown:
                assert kernel.cost_path_.equals(plain.cost_path_)
            # k-means sees (X - mean) / scale; kernel costs are about means of labels
            scaled = (case.X[rows] - case.X[rows].mean(axis=0)) / kernel.scale_
            cost = oracle.kmeans_cost(scaled, kernel.labels_[rows], case.w[rows])
            assert kernel.kernel_cost_ == pytest.approx(cost, rel=1e-9, abs=1e-9 * len(rows))
            checked += 1
    assert checked > 100


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "hellinger", "histogram_intersection"])
def test_automatic_cuts(kernel):
    """Intervals where the base tree has some, thresholds with rising features or without base."""
    rng = np.random.default_rng(19)
    x = np.sort(rng.uniform(0, 4, 60))
    X = np.column_stack([x, rng.uniform(0, 1, 60)])
    labels = ((x > 1.2) & (x < 2.5) | (x > 3.2) & (x < 3.6)).astype(int)
    options = {"kernel": kernel, "gamma": 2.0, "reference": labels, "max_leaves": 8, "n_jobs": 1}
    for base in ("kernel_imm", None):
        trees = {
            cuts: tc.KernelExpand(cuts=cuts, base_tree=base, **options).fit(X).tree_
            for cuts in ("auto", "threshold", "interval")
        }
        assert oracle.first_difference(trees["threshold"], trees["interval"]) is not None
        has_intervals = base is not None and ok.has_intervals(trees["auto"].truncate(2))
        assert has_intervals == (base is not None and kernel in ok.PRODUCT_KERNELS)
        expected = "interval" if has_intervals else "threshold"
        assert oracle.first_difference(trees["auto"], trees[expected]) is None


# ---- the paper's examples -----------------------------------------------------------------


@pytest.mark.parametrize("cuts", ["threshold", "interval"])
def test_theorem_6(cuts):
    for exponent in (3, 6, 9):
        epsilon = 2.0**-exponent
        X, labels = ok.theorem_6(epsilon, 4)
        options = {"kernel": "linear", "reference": labels, "n_jobs": 1}
        imm = tc.KernelIMM(**options).fit(X)
        assert imm.price_of_explainability_ == 1
        bad = tc.KernelExKMC(base_tree=None, max_leaves=3, cuts=cuts, **options).fit(X)
        exact = 1 / 3 + (1 - 2 * epsilon + 4 * epsilon**2) / (9 * epsilon**2)
        assert bad.tree_.threshold[0] == 0
        assert bad.price_of_explainability_ == pytest.approx(exact, rel=1e-9)
        good = tc.KernelExKMC(max_leaves=3, cuts=cuts, **options).fit(X)
        assert good.price_of_explainability_ == 1 and (good.labels_ == labels).all()


@pytest.mark.parametrize("make", [tc.KernelExKMC, tc.KernelExpand])
@pytest.mark.parametrize("cuts", ["threshold", "interval"])
def test_theorem_7(make, cuts):
    """Prices without a bound, and no warning but the kernel's own."""
    shared = {"base_tree": None, "max_leaves": 2, "cuts": cuts, "n_jobs": 1}
    quadratic = {"kernel": "polynomial", "degree": 2, "gamma": 1.0, "coef0": 0.0, **shared}
    X, labels = ok.theorem_7_turned()
    model = make(reference=labels, **quadratic).fit(X)
    assert model.reference_kernel_cost_ == 0 and model.price_of_explainability_ == math.inf
    X, labels = ok.theorem_7_quadratic()
    model = make(reference=labels, **quadratic).fit(X)
    # one interval parts the paper's own four points
    assert model.price_of_explainability_ == (1.0 if cuts == "interval" else math.inf)

    X, labels, epsilon = ok.theorem_7_neighbourhood()
    neighbourhood = {"kernel": "epsilon", "kernel_params": {"epsilon": epsilon}, **shared}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*semidefinite")
        model = make(reference=labels, **neighbourhood).fit(X)
        assert model.reference_kernel_cost_ == 0 and model.price_of_explainability_ == math.inf
        model = make(reference=labels, **(neighbourhood | {"max_leaves": 5})).fit(X)
    assert model.price_of_explainability_ == 1 and (model.labels_ == labels).all()


@pytest.mark.parametrize("make", [ok.half_moons, ok.circles])
def test_kernel_expand_recovers_shapes(make):
    X, labels = make(60, noise=0.03, rng=np.random.default_rng(3))
    model = tc.KernelExpand(reference=labels, gamma=4.0, max_leaves=8, n_jobs=1).fit(X)
    assert (model.labels_ == labels).mean() > 0.97
    imm = tc.KernelIMM(reference=labels, gamma=4.0, features="distance", n_jobs=1).fit(X)
    expected = (imm.labels_ != labels).sum()
    assert model.cost_path_["cost"][-1] == (model.labels_ != labels).sum() < expected
