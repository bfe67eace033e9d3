"""IMM and ExKMC against the definitions, and the theorems about them."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs

import treeclust_rs as tc
from oracles import threshold as oracle
from sizes import repeats
from treeclust_rs import _engine
from treeclust_rs.tree.build import GrownTree

# Columns here have their own units on purpose; tests/input/test_scale.py tests the warning.
pytestmark = pytest.mark.filterwarnings("ignore:Only .* in the tree")

UNIT = 2.0**-20

# ---- the engine against enumeration -------------------------------------------------------


def grow(X, labels, centers, w=None, *, base, interval=False, max_leaves=1, search=None, **limits):
    """Grow a tree with the core; gives it, and the regrets and minima it grew on.

    `base`: whether from IMM's tree; "cost" for ExGreedy's.
    `search` is (most bins of a column, rows of a node below which it is sorted): small numbers send
    small data through the bins.
    """
    X = np.asarray(X, dtype=float)
    kept = np.ones(len(X), dtype=bool) if w is None else w > 0
    centers = np.ascontiguousarray(centers)
    regrets, minima = oracle.regrets(oracle.squared_costs(X, centers), w)
    score = base if isinstance(base, str) else "mistakes"
    fitted = _engine.fit_tree(
        np.ascontiguousarray(X[kept]),
        labels[kept].astype(np.uint32),
        n_labels=len(centers),
        base=_engine.CentersBase(centers, np.zeros_like(centers), score) if base else None,
        criterion=_engine.LabelCost(np.ascontiguousarray(regrets[kept]), interval),
        sample_weight=None if w is None else np.ascontiguousarray(w[kept]),
        max_leaves=max_leaves,
        max_depth=limits.get("max_depth"),
        min_samples_leaf=limits.get("min_samples_leaf", 1),
        n_jobs=2,
        progress=None,
        search=search,
    )
    return fitted, regrets, minima


def assert_equal_trees(fitted, expected, labels, w, minima):
    """Compare structure, tests, labels, samples, mistakes and the cost path."""
    assert oracle.first_difference(fitted, expected) is None
    assert fitted.n_base_leaves == expected.n_base_leaves
    weights = np.ones(len(labels)) if w is None else w
    assert fitted.n_node_samples.tolist() == [len(rows) for rows in expected.rows]
    for node, rows in enumerate(expected.rows):
        share = np.bincount(labels[rows], weights[rows], minlength=fitted.label_weight.shape[1])
        np.testing.assert_allclose(fitted.label_weight[node], share, rtol=1e-12)
        mistakes = expected.mistakes[node]
        if not math.isnan(mistakes):
            total = weights.sum()
            assert fitted.mistakes[node] == pytest.approx(mistakes, abs=1e-12 * total)
    constant = math.fsum(weights * minima)
    n_leaves, costs = zip(*expected.cost_path, strict=True)
    path = GrownTree.of(fitted).cost_path(constant)
    assert len(path) == n_leaves[-1] - n_leaves[0] + 1
    scale = costs[0] + constant
    np.testing.assert_allclose(path, np.array(costs) + constant, rtol=1e-9, atol=1e-11 * scale)


def agree_on_random_cases(seed, n_cases, *, base, cuts, tiny, limits=True, **options):
    rng = np.random.default_rng(seed)
    for _ in range(n_cases):
        X, centers, labels, w = oracle.random_case(rng, **options)
        bounds = {}
        if limits:
            bounds["min_samples_leaf"] = int(rng.integers(1, 4))
            bounds["max_depth"] = None if rng.random() < 0.6 else int(rng.integers(1, 5))
        search = (int(rng.integers(2, 9)), int(rng.integers(0, 5))) if tiny else None
        max_leaves = int(rng.integers(1, 12))
        fitted, regrets, minima = grow(
            X,
            labels,
            centers,
            w,
            base=base,
            interval=cuts == "interval",
            max_leaves=max_leaves,
            search=search,
            **bounds,
        )
        expected = oracle.grow_label_cost(
            X,
            regrets,
            max_leaves=max_leaves,
            cuts=cuts,
            base=oracle.imm(X, labels, centers, w) if base else None,
            w=w,
            **bounds,
        )
        assert_equal_trees(fitted, expected, labels, w, minima)


@pytest.mark.parametrize("tiny", [False, True], ids=["sorted", "binned"])
@pytest.mark.parametrize("base", [True, False], ids=["imm", "empty"])
@pytest.mark.parametrize("cuts", ["threshold", "interval"])
def test_trees_equal_enumeration(cuts, base, tiny):
    seed = 100 + 4 * (cuts == "interval") + 2 * base + tiny
    agree_on_random_cases(seed, repeats(100, 300), base=base, cuts=cuts, tiny=tiny, n_max=25)


@pytest.mark.parametrize("cuts", ["threshold", "interval"])
@pytest.mark.parametrize(
    "options",
    [
        {"outlier": True},
        {"zero_weights": True},
        {"arbitrary_labels": True},
        {"weights": "near"},
        {"kind": "near"},
        {"kind": "duplicates", "weights": "real"},
        {"kind": "grid", "center_kind": "integer", "weights": "integer"},
        {"kind": "mixed", "center_kind": "shared"},
        {"kind": "binary", "center_kind": "rows"},
    ],
    ids=lambda options: "-".join(str(value) for value in options.values()),
)
def test_awkward_cases_equal_enumeration(options, cuts):
    name = repr(sorted(options.items()))
    seed = sum(name.encode())
    for base in (True, False):
        agree_on_random_cases(
            seed, repeats(25, 50), base=base, cuts=cuts, tiny=True, n_max=25, **options
        )


@pytest.mark.parametrize("tiny", [False, True], ids=["sorted", "binned"])
def test_larger_nodes_equal_the_sweep(tiny):
    """Some hundred rows: several levels of histograms, and their differences."""
    rng = np.random.default_rng(7 + tiny)
    for number in range(repeats(30, 60)):
        X, centers, labels, w = oracle.random_case(rng, n=int(rng.integers(150, 600)), k_max=6)
        search = (int(rng.integers(3, 40)), int(rng.integers(0, 40))) if tiny else None
        base = number % 2 == 0
        max_leaves = int(rng.integers(2, 25))
        fitted, regrets, minima = grow(
            X, labels, centers, w, base=base, max_leaves=max_leaves, search=search
        )
        expected = oracle.sweep_grow_label_cost(
            X,
            regrets,
            max_leaves=max_leaves,
            base=oracle.sweep_imm(X, labels, centers, w) if base else None,
            w=w,
        )
        assert_equal_trees(fitted, expected, labels, w, minima)


# ---- the engine against the sorted sweep, on data of real size ----------------------------


def continuous(rng, n=5000, d=6):
    return rng.normal(size=(n, d)) * [1, 10, 0.1, 1, 3, 1][:d]


def one_row_far(rng):
    X = continuous(rng)
    X[1234, 2] = 1e8
    return X


def tied(rng):
    X = np.round(continuous(rng), 1)
    X[:, 1] = rng.integers(0, 3, len(X))
    X[:, 4] = np.where(rng.random(len(X)) < 0.9, 0.0, X[:, 4])
    return X


DATA = {
    "iris": (lambda rng: load_iris().data, 3, 12),
    "wine": (lambda rng: load_wine().data, 4, 12),
    "breast cancer": (lambda rng: load_breast_cancer().data, 5, 15),
    "digits": (lambda rng: load_digits().data, 10, 20),
    "continuous": (continuous, 6, 20),
    "one row far": (one_row_far, 5, 15),
    "ties": (tied, 6, 20),
}


def problem(name):
    rng = np.random.default_rng(3)
    make, k, max_leaves = DATA[name]
    X = make(rng)
    # Lloyd by hand: the same bits on every machine, and no warnings about far rows.
    centers = X[rng.choice(len(X), k, replace=False)]
    for _ in range(5):
        labels = oracle.nearest_labels(oracle.squared_costs(X, centers))
        centers = np.array(
            [X[labels == c].mean(axis=0) if np.any(labels == c) else centers[c] for c in range(k)]
        )
    labels = oracle.nearest_labels(oracle.squared_costs(X, centers))
    return X, labels, centers, max_leaves


@pytest.mark.parametrize("base", [True, False], ids=["imm", "empty"])
@pytest.mark.parametrize("name", DATA)
def test_real_data_equal_the_sorted_sweep(name, base):
    X, labels, centers, max_leaves = problem(name)
    fitted, regrets, minima = grow(X, labels, centers, base=base, max_leaves=max_leaves)
    expected = oracle.sweep_grow_label_cost(
        X,
        regrets,
        max_leaves=max_leaves,
        base=oracle.sweep_imm(X, labels, centers) if base else None,
    )
    # Growth may end early, where no single cut lowers the cost.
    assert expected.n_leaves >= len(centers)
    assert_equal_trees(fitted, expected, labels, None, minima)
    model = tc.ExKMC(
        max_leaves=max_leaves, base_tree="imm" if base else None, reference=centers
    ).fit(X)
    assert oracle.first_difference(model.tree_, expected) is None
    assert model.labels_.tolist() == expected.predict(X).tolist()


@pytest.mark.parametrize("name", ["iris", "wine", "breast cancer"])
def test_real_interval_cuts_equal_the_sorted_sweep(name):
    X, labels, centers, _ = problem(name)
    if name == "breast cancer":  # the sweep takes time with the square of the rows
        step = repeats(3, 1)
        X, labels = X[::step], labels[::step]
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X))
    for w, search in ((None, None), (weights, (16, 8))):
        fitted, regrets, minima = grow(
            X, labels, centers, w, base=False, interval=True, max_leaves=7, search=search
        )
        expected = oracle.sweep_grow_label_cost(X, regrets, max_leaves=7, cuts="interval", w=w)
        assert_equal_trees(fitted, expected, labels, w, minima)


# ---- theorems -----------------------------------------------------------------------------


def some_problems(seed, n_cases, **options):
    rng = np.random.default_rng(seed)
    for _ in range(n_cases):
        X, centers, labels, w = oracle.random_case(rng, n_max=60, **options)
        yield X, centers, labels, w


@pytest.mark.parametrize("cuts", ["threshold", "interval"])
@pytest.mark.parametrize("base_tree", ["imm", None])
def test_surrogate_cost_never_rises_and_bounds_the_true_cost(base_tree, cuts):
    for X, centers, _, w in some_problems(11, repeats(25, 60), outlier=False):
        k = len(centers)
        model = tc.ExKMC(
            max_leaves=k + 8, base_tree=base_tree, cuts=cuts, reference=centers, n_jobs=1
        ).fit(X, sample_weight=w)
        path = model.cost_path_
        n_first = k if base_tree else 1
        assert path["n_leaves"].to_list() == list(range(n_first, model.n_leaves_ + 1))
        cost = path["cost"].to_numpy()
        assert (np.diff(cost) <= 0).all()

        D = oracle.squared_costs(X, centers)
        scale = 1e-9 * cost[0] + 1e-12
        surrogate = oracle.surrogate_cost(D, model.labels_, w)
        assert cost[-1] == pytest.approx(surrogate, rel=1e-9, abs=scale)
        true = oracle.kmeans_cost(X, model.labels_, w)
        assert model.inertia_ == pytest.approx(true, rel=1e-7, abs=scale)
        assert model.inertia_ <= surrogate + scale
        nearest = oracle.surrogate_cost(D, oracle.nearest_labels(D), w)
        assert model.reference_inertia_ == pytest.approx(nearest, rel=1e-9, abs=scale)
        assert cost[-1] >= nearest - scale
        if nearest > scale:
            assert model.cost_ratio_ == pytest.approx(true / nearest, rel=1e-6, abs=1e-6)


def test_enough_leaves_give_back_the_reference():
    """A greedy tree may stop early, but where its path reaches the reference its labels do too."""
    n_reached = 0
    for X, centers, labels, _ in some_problems(12, 80, outlier=False, weights="ones"):
        model = tc.ExKMC(max_leaves=200, reference=centers, n_jobs=1).fit(X)
        D = oracle.squared_costs(X, centers)
        least = D.min(axis=1).sum()
        reached = model.cost_path_["cost"][-1] <= least + 1e-9 * (1 + least)
        if reached:
            n_reached += 1
            assert model.cost_ratio_ <= 1 + 1e-6
            # Rows between two centers may go to either.
            own = D[np.arange(len(X)), model.labels_]
            np.testing.assert_allclose(own, D.min(axis=1), rtol=1e-9, atol=1e-9)
        single = np.sort(D, axis=1)
        clear = np.ones(len(X), bool) if D.shape[1] == 1 else single[:, 1] - single[:, 0] > 1e-6
        if reached:
            assert (model.labels_ == labels)[clear].all()
    assert n_reached >= 60


@pytest.mark.parametrize("name", ["wine", "breast cancer"])
def test_real_reference_is_reproduced(name):
    X, labels, centers, _ = problem(name)
    model = tc.ExKMC(max_leaves=len(X), cuts="interval", reference=centers).fit(X)
    assert model.labels_.tolist() == labels.tolist()
    assert model.cost_path_["cost"][-1] == pytest.approx(model.reference_inertia_, rel=1e-9)
    assert (model.tree_.mistakes[model.tree_.kind == 0] == 0).all()


def total_mistakes(tree):
    inner = np.asarray(tree.kind) != 0
    return float(np.sum(np.asarray(tree.mistakes)[inner]))


@pytest.mark.parametrize(
    "options",
    [
        {"center_kind": "rows", "kind": "grid"},
        {"center_kind": "integer", "kind": "grid"},
        {"center_kind": "integer", "kind": "quarters"},
        {"center_kind": "shared", "kind": "mixed"},
        {"center_kind": "lloyd", "kind": "duplicates"},
        {"center_kind": "lloyd", "outlier": True},
        {"center_kind": "outside"},
    ],
    ids=lambda options: "-".join(str(value) for value in options.values()),
)
def test_imm_makes_fewest_mistakes_in_exactly_k_leaves(options):
    for X, centers, _, w in some_problems(13, repeats(25, 60), k_max=7, **options):
        model = tc.IMM(reference=centers, n_jobs=1).fit(X, sample_weight=w)
        k = len(centers)
        tree = model.tree_
        assert tree.n_leaves == tree.n_base_leaves == k
        assert tree.max_depth <= max(k - 1, 0)
        assert sorted(tree.leaf_clusters[tree.leaves].tolist()) == list(range(k))
        labels = oracle.nearest_labels(oracle.squared_costs(X, centers))
        best = oracle.imm(X, labels, centers, w)
        assert oracle.first_difference(tree, best, clusters=False) is None
        assert tree.base_cluster.tolist() == best.base_cluster
        assert total_mistakes(tree) == pytest.approx(total_mistakes(best), abs=1e-12 * w.sum())


@pytest.mark.parametrize("seed", range(10))
def test_imm_finds_an_error_free_tree(seed):
    """Boxes cut out by a random tree, each with a center inside."""
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(1, 5)), int(rng.integers(2, 12))
    boxes = [(np.zeros(d), np.full(d, 1000.0))]
    while len(boxes) < k:
        low, high = boxes.pop(int(np.argmax([(high - low).max() for low, high in boxes])))
        f = int(np.argmax(high - low))
        cut = rng.uniform(low[f] + 0.4 * (high - low)[f], low[f] + 0.6 * (high - low)[f])
        left_high, right_low = high.copy(), low.copy()
        left_high[f], right_low[f] = cut - 1, cut + 1
        boxes += [(low, left_high), (right_low, high)]
    labels = rng.permutation(np.repeat(np.arange(k), 30))
    X = np.array([rng.uniform(*boxes[label]) for label in labels])
    model = tc.IMM(reference=labels) if seed % 2 else tc.ExKMC(reference=labels)
    centers = np.array([X[labels == c].mean(axis=0) for c in range(k)])
    nearest = oracle.nearest_labels(oracle.squared_costs(X, centers))
    if (nearest != labels).mean() > 0.05:
        with pytest.warns(UserWarning, match="KernelExpand"):
            model.fit(X)
    else:
        model.fit(X)
    assert model.n_leaves_ == k
    assert total_mistakes(model.tree_) == 0
    assert model.labels_.tolist() == labels.tolist()


# ---- truncate -----------------------------------------------------------------------------


def truncate_problem(weighted):
    rng = np.random.default_rng(21)
    X = np.round(rng.normal(size=(400, 4)) * 3, 1)
    w = rng.integers(1, 4, 400).astype(float) if weighted else None
    return X, w, X[[3, 50, 111, 200]]


@pytest.mark.parametrize("criterion", ["kmeans", "kmedians"])
@pytest.mark.parametrize("cuts", ["threshold", "interval"])
@pytest.mark.parametrize("base_tree", ["imm", None])
def test_truncate_equals_a_smaller_fit(base_tree, cuts, criterion):
    X, w, centers = truncate_problem(weighted=criterion == "kmeans")
    options = {
        "base_tree": base_tree,
        "cuts": cuts,
        "criterion": criterion,
        "reference": centers,
        "scale": "standard",
    }
    whole = tc.ExKMC(max_leaves=14, **options).fit(X, sample_weight=w)
    assert whole.n_leaves_ == 14
    for m in range(4, 14):
        small = tc.ExKMC(max_leaves=m, **options).fit(X, sample_weight=w)
        cut = whole.truncate(m)
        assert oracle.first_difference(cut.tree_, small.tree_) is None
        assert cut.n_leaves_ == m and cut.max_leaves == m
        for name in ("impurity", "mistakes", "weighted_n_node_samples", "value"):
            mine, theirs = getattr(cut.tree_, name), getattr(small.tree_, name)
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
        assert cut.labels_.tolist() == small.labels_.tolist()
        assert cut.predict(X).tolist() == cut.labels_.tolist()
        assert cut.cost_path_["n_leaves"].equals(small.cost_path_["n_leaves"])
        np.testing.assert_allclose(cut.cost_path_["cost"], small.cost_path_["cost"], rtol=1e-12)
        if criterion == "kmeans":
            assert cut.inertia_ == pytest.approx(small.inertia_, rel=1e-9)
            assert cut.cost_ratio_ == pytest.approx(small.cost_ratio_, rel=1e-9)
            np.testing.assert_allclose(cut.cluster_centers_, small.cluster_centers_, rtol=1e-9)
        else:  # medians take the rows: nothing stale is left behind
            assert not hasattr(cut, "inertia_") and not hasattr(cut, "cluster_centers_")
        np.testing.assert_allclose(cut.feature_importances_, small.feature_importances_, atol=1e-12)
        again = whole.truncate(m + 1).truncate(m)
        assert oracle.first_difference(again.tree_, small.tree_) is None
        assert again.labels_.tolist() == small.labels_.tolist()
    assert whole.n_leaves_ == 14 and whole.max_leaves == 14
    if base_tree is None:
        assert [whole.truncate(m).n_leaves_ for m in (1, 2, 3)] == [1, 2, 3]
        assert len(set(whole.truncate(1).labels_)) == 1


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("base_tree", ["imm", None])
def test_truncate_equals_a_smaller_fit_bit_for_bit(base_tree, weighted):
    X, w, centers = truncate_problem(weighted)
    whole = tc.ExKMC(max_leaves=14, base_tree=base_tree, reference=centers)
    whole.fit(X, sample_weight=w)
    for m in range(4, 14):
        small = tc.ExKMC(max_leaves=m, base_tree=base_tree, reference=centers)
        small.fit(X, sample_weight=w)
        cut, path = whole.truncate(m), small.cost_path_
        assert cut.cost_path_.drop("inertia").equals(path.drop("inertia"))
        np.testing.assert_allclose(cut.cost_path_["inertia"], path["inertia"], rtol=1e-12)
        assert cut.tree_ == small.tree_


def test_truncate_refuses_and_keeps():
    X = load_iris().data
    model = tc.ExKMC(n_clusters=5, max_leaves=9, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"=3 is less than the 5 leaves of the base tree"):
        model.truncate(3)
    for wrong in (0, -2):
        with pytest.raises(ValueError, match=str(wrong)):
            model.truncate(wrong)
    for far in (9, 10, 10**9):
        same = model.truncate(far)
        assert same is not model and same.tree_ == model.tree_
        assert same.labels_.tolist() == model.labels_.tolist()
    empty = tc.ExKMC(n_clusters=3, max_leaves=6, base_tree=None, random_state=0).fit(X)
    with pytest.raises(ValueError, match="0"):
        empty.truncate(0)
    with pytest.raises(ValueError, match=r"=2 is less than the 3 leaves of the base tree"):
        tc.IMM(n_clusters=3, random_state=0).fit(X).truncate(2)


# ---- weights ------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["kmeans", "kmedians"])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (tc.IMM, {}),
        (tc.ExKMC, {"max_leaves": 9}),
        (tc.ExKMC, {"max_leaves": 9, "base_tree": None, "cuts": "interval", "scale": "standard"}),
    ],
)
def test_weights_equal_repetition_for_given_centers(kind, options, criterion):
    rng = np.random.default_rng(31)
    for _ in range(10):
        n = int(rng.integers(20, 200))
        X = rng.integers(-50, 50, (n, 3)) / 4
        times = rng.integers(0, 4, n)
        times[:5] = 1
        centers = np.unique(X[:5], axis=0)
        model = kind(reference=centers, criterion=criterion, **options)
        weighted = model.fit(X, sample_weight=times.astype(float))
        repeated = kind(reference=centers, criterion=criterion, **options)
        repeated.fit(np.repeat(X, times, axis=0))
        assert oracle.first_difference(weighted.tree_, repeated.tree_) is None
        assert np.repeat(weighted.labels_, times).tolist() == repeated.labels_.tolist()
        assert weighted.predict(X).tolist() == weighted.labels_.tolist()
        np.testing.assert_allclose(
            weighted.tree_.weighted_n_node_samples, repeated.tree_.n_node_samples
        )
        np.testing.assert_allclose(weighted.tree_.mistakes, repeated.tree_.mistakes, atol=1e-9)
        assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-9)
        np.testing.assert_allclose(
            weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(
            weighted.cost_path_["cost"], repeated.cost_path_["cost"], rtol=1e-9
        )


def test_rows_of_weight_0_leave_no_trace():
    rng = np.random.default_rng(32)
    X = rng.normal(size=(300, 3))
    w = rng.uniform(0.5, 2, 300)
    w[::3] = 0
    X[::3] *= 1e6
    centers = X[[1, 2, 4, 5]]
    model = tc.ExKMC(max_leaves=8, reference=centers, scale="standard").fit(X, sample_weight=w)
    without = tc.ExKMC(max_leaves=8, reference=centers, scale="standard")
    without.fit(X[w > 0], sample_weight=w[w > 0])
    assert model.tree_ == without.tree_
    assert model.inertia_ == without.inertia_
    assert model.labels_[w > 0].tolist() == without.labels_.tolist()
    assert len(model.labels_) == 300
    assert model.labels_.tolist() == model.predict(X).tolist()


# ---- far from the origin ------------------------------------------------------------------


def moved_pair(seed):
    """Rows that stay exact when 1e8 is added, in four clusters that overlap."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-4, 4, (4, 3))
    X = centers[rng.integers(0, 4, 500)] + rng.normal(size=(500, 3))
    X = np.round(X / UNIT) * UNIT
    X[:, 2] = np.round(X[:, 2] * 4) / 4
    assert (X + 1e8 - 1e8 == X).all()
    return X, X + 1e8


@pytest.mark.parametrize("reference", ["none", "centers", "labels"])
@pytest.mark.parametrize("scale", [None, "standard"])
@pytest.mark.parametrize("criterion", ["kmeans", "kmedians"])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (tc.IMM, {}),
        (tc.ExKMC, {"max_leaves": 10}),
        (tc.ExKMC, {"max_leaves": 10, "base_tree": None, "cuts": "interval"}),
    ],
    ids=["IMM", "ExKMC", "ExKMC-interval"],
)
def test_origin_does_not_matter(kind, options, criterion, scale, reference):
    X, far = moved_pair(41)
    near_reference = far_reference = None
    if reference == "centers":
        near_reference = X[[1, 20, 300, 44]]
        far_reference = far[[1, 20, 300, 44]]
    elif reference == "labels":
        # Clusters of the columns that costs are taken on, or the misfit would be warned of.
        columns = X / X.std(axis=0) if scale else X
        solver = KMeans(4, n_init=2, random_state=0).fit(columns)
        near_reference = far_reference = solver.labels_
    options = options | {
        "n_clusters": 4,
        "criterion": criterion,
        "scale": scale,
        "random_state": 0,
        "n_jobs": 1,
    }
    here = kind(reference=near_reference, **options).fit(X)
    there = kind(reference=far_reference, **options).fit(far)
    mine, theirs = here.tree_, there.tree_
    for name in ("children_left", "children_right", "feature", "kind", "n_node_samples"):
        assert getattr(mine, name).tolist() == getattr(theirs, name).tolist(), name
    assert mine.cluster.tolist() == theirs.cluster.tolist()
    assert here.apply(X).tolist() == there.apply(far).tolist()
    assert here.labels_.tolist() == there.labels_.tolist()
    assert there.inertia_ == pytest.approx(here.inertia_, rel=1e-6)
    assert there.cost_ratio_ == pytest.approx(here.cost_ratio_, rel=1e-6)
    np.testing.assert_allclose(there.cluster_centers_ - 1e8, here.cluster_centers_, atol=1e-6)


@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("far", [1e8, -1e8])
def test_one_far_row_spoils_nothing(far, column):
    rng = np.random.default_rng(51)
    X, labels = make_blobs(3000, centers=5, n_features=4, cluster_std=1.5, random_state=2)
    X[:, 3] = rng.integers(0, 4, 3000)
    centers = np.array([X[labels == c].mean(axis=0) for c in range(5)])
    with_far = np.vstack([X, X[:1]])
    with_far[-1, column] = far
    alone = tc.IMM(reference=centers).fit(X)
    model = tc.IMM(reference=centers).fit(with_far)
    codes = oracle.nearest_labels(oracle.squared_costs(with_far, centers))
    best = oracle.sweep_imm(with_far, codes, centers)
    assert total_mistakes(model.tree_) == total_mistakes(best)
    assert oracle.first_difference(model.tree_, best, clusters=False) is None
    # The others fall as they would without it, but for the one mistake that it may cost.
    assert total_mistakes(model.tree_) <= total_mistakes(alone.tree_) + 1
    grown = tc.ExKMC(max_leaves=15, reference=centers).fit(with_far)
    regrets, _ = oracle.regrets(oracle.squared_costs(with_far, centers))
    expected = oracle.sweep_grow_label_cost(with_far, regrets, max_leaves=15, base=best)
    assert oracle.first_difference(grown.tree_, expected) is None
    others = tc.ExKMC(max_leaves=15, reference=centers).fit(X)
    agree = np.mean(grown.labels_[:-1] == others.labels_)
    assert agree > 0.97


def exact_mistakes(X, labels, tree):
    """Return, per node of IMM's tree, the mistakes of its cut and the fewest that a cut makes.

    In fractions, by enumeration of the places of a threshold: at every row and every center.
    """
    d, k = X.shape[1], labels.max() + 1
    cells = [[Fraction(x) for x in column] for column in X.T.tolist()]
    centers = [
        [sum(cells[f][i] for i in np.flatnonzero(labels == c)) / int((labels == c).sum())
         for c in range(k)]
        for f in range(d)
    ]  # fmt: skip
    parts = {0: (list(range(len(X))), list(range(k)))}
    for node in np.flatnonzero(tree.kind == 1).tolist():
        rows, alive = parts[node]

        def mistakes(f, threshold, rows=rows):
            is_left = [center <= threshold for center in centers[f]]
            return [i for i in rows if (cells[f][i] <= threshold) != is_left[labels[i]]]

        def candidates(rows=rows, alive=alive):
            for f in range(d):
                places = {cells[f][i] for i in rows} | {centers[f][c] for c in alive}
                last = max(centers[f][c] for c in alive)
                first = min(centers[f][c] for c in alive)
                yield from ((f, place) for place in places if first <= place < last)

        f, threshold = int(tree.feature[node]), Fraction(float(tree.threshold[node]))
        wrong = set(mistakes(f, threshold))
        yield len(wrong), min(len(mistakes(*cut)) for cut in candidates())
        stay = [i for i in rows if i not in wrong]
        for child, side in ((tree.children_left, True), (tree.children_right, False)):
            parts[int(child[node])] = (
                [i for i in stay if (cells[f][i] <= threshold) == side],
                [c for c in alive if (centers[f][c] <= threshold) == side],
            )


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e8, 1e12])
def test_imm_makes_the_fewest_mistakes_wherever_the_columns_lie(offset, far):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(2, 5))
        X = rng.integers(0, 40, (int(rng.integers(12, 40)), 2)) / 8
        if far:
            X[0, 0] = 1e8
        seeds = X[rng.choice(len(X), k, replace=False)]
        labels = oracle.squared_costs(X, seeds).argmin(axis=1)
        labels = np.unique(labels, return_inverse=True)[1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # labels that miss their centers
            tree = tc.IMM(reference=labels, scale={"x0": 1}, n_jobs=1).fit(X + offset).tree_
        for own, fewest in exact_mistakes(X + offset, labels, tree):
            assert own == fewest, seed


def test_equal_centers_stay_in_one_leaf_and_the_others_are_parted():
    centers = np.array([[0.0], [0.0], [7.0], [9.0]])
    labels = np.array([0, 1, 2, 2, 3, 3])
    fitted, *_ = grow(
        np.array([[0.0], [0.0], [7.0], [7.0], [9.0], [9.0]]), labels, centers, base="cost"
    )
    assert (fitted.kind == 0).sum() == 3
    np.testing.assert_array_equal(fitted.threshold[fitted.kind != 0], [3.0, 8.0])
