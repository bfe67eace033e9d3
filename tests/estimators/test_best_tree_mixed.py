"""BestTree on tables as people have them: missing cells, levels, flags."""

import numpy as np
import polars as pl
import pytest
from sklearn.tree import DecisionTreeClassifier

import treeclust_rs as tc
from treeclust_rs import _engine
from treeclust_rs._data import Encoding, count_gaps, read_table
from treeclust_rs.estimators.starts import Starts, decoded_tests

BRIEF = {"effort": "quick", "random_state": 0}
STARTS = {"KMeansTree", "ExKMC", "ExKMC from one leaf"}
OTHER_STARTS = {
    *("KernelExpand", "ExGreedy", "RandomCuts", "KDTreeClusters", "CUBT", "Kauri"),
    *("XRegressionTree", 'effort="quick"'),
}


def people(n=400, seed=0):
    """Return three groups of rows, in numbers, text and flags, with gaps in all columns but one."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    regions = np.array(["north", "east", "south", "west", "islands"])
    shares = np.array([[6, 3, 1, 0, 0], [0, 1, 6, 3, 0], [1, 0, 0, 2, 4]])
    region = [rng.choice(regions, p=shares[g] / shares[g].sum()) for g in group]
    income = np.array([0.1, 0.3, 0.6])[group] + rng.normal(size=n) / 6
    frame = pl.DataFrame(
        {
            "income": income,
            "age": (rng.integers(0, 4, n) + group) / 4,
            "region": region,
            "newsletter": rng.random(n) < np.array([0.1, 0.5, 0.9])[group],
        }
    )
    gap = rng.random((n, 3)) < 0.15
    gaps = dict(zip(("income", "region", "newsletter"), gap.T, strict=True))
    return frame.with_columns(
        pl.when(pl.Series(mask)).then(None).otherwise(pl.col(name)).alias(name)
        for name, mask in gaps.items()
    )


def cost_of(frame, labels, weight=None, *, medians=False):
    """Return the cost of clusters by the definition, over observed cells, in the columns' units."""
    weight = np.ones(len(frame)) if weight is None else np.asarray(weight, dtype=float)
    total = 0.0
    for label in np.unique(labels):
        for column in frame:
            kept = (labels == label) & ~column.is_null().to_numpy()
            w, cells = weight[kept], column.to_numpy()[kept]
            if not w.sum():
                continue
            if column.dtype.is_numeric():
                cells = cells.astype(float)
                if medians:
                    total += min((w * np.abs(cells - m)).sum() for m in np.unique(cells))
                else:
                    total += (w * (cells - np.average(cells, weights=w)) ** 2).sum()
                continue
            of_level = np.array([w[cells == level].sum() for level in np.unique(cells)])
            share = of_level / w.sum()
            total += w.sum() - of_level.max() if medians else of_level @ (1 - share) / 2
    return total


@pytest.mark.parametrize(
    ("objective", "effort"),
    [("kmeans", "quick"), ("kmeans", "normal"), ("kmedians", "quick"), ("kmedians", "normal")],
)
def test_the_objective_is_the_cost_of_the_observed_cells(objective, effort):
    frame = people()
    model = tc.BestTree(3, max_leaves=6, objective=objective, effort=effort, random_state=0)
    model.fit(frame)
    cost = cost_of(frame, model.labels_, medians=objective == "kmedians")
    assert model.inertia_ == pytest.approx(cost, rel=1e-9)
    assert model.search_path_["objective"][-1] == pytest.approx(cost, rel=1e-9)
    assert (model.predict(frame) == model.labels_).all()
    assert (frame.select(model.to_polars()).to_series().to_numpy() == model.labels_).all()
    assert model.n_leaves_ <= 6
    assert set(model.starts_["start"]) - {"random rows", "sampled columns"} == STARTS | (
        OTHER_STARTS if effort == "normal" else set()
    )
    assert model.search_path_["objective"][0] == model.starts_["objective"].min()
    assert (np.diff(model.search_path_["objective"]) < 0).all()
    assert 4 in model.tree_.kind  # a test on levels


def test_tables_with_gaps_but_no_levels_begin_at_a_tree_of_ex_shallow_too():
    numbers = people().select("income", pl.col("newsletter").cast(pl.Float64), "age")
    model = tc.BestTree(3, max_leaves=6, random_state=0).fit(numbers)
    drawn = {"random rows", "sampled columns"}
    assert set(model.starts_["start"]) - drawn == STARTS | OTHER_STARTS | {"ExShallow"}


@pytest.fixture
def options_seen(monkeypatch):
    """Return what searches are asked for."""
    search, seen = _engine.search_tree, []

    def noted(*args, **options):
        seen.append(options)
        return search(*args, **options)

    monkeypatch.setattr(_engine, "search_tree", noted)
    return seen


@pytest.mark.parametrize(
    ("n_clusters", "n_survivors", "share"),
    # Those of effort="quick" and "normal"; beyond 10 clusters levels are given more work.
    [(2, [[1, 3], [1, 1]], 1.0), (20, [[1, 8], [1, 4]], 2.0)],
)
def test_tables_with_levels_keep_their_work_for_fewer_starts(
    options_seen, n_clusters, n_survivors, share
):
    labels = np.arange(12_000) % n_clusters
    bits = labels[:, np.newaxis] >> np.arange(30) % 5 & 1
    cells = bits ^ (np.random.default_rng(0).random(bits.shape) < 0.1)
    numbers = pl.DataFrame(cells.astype(float))
    texts = numbers.select(pl.all().cast(pl.Int64).cast(pl.String))
    for table in (numbers, texts):
        tc.BestTree(reference=labels, max_time=0, random_state=0).fit(table)
    of_numbers, of_levels = options_seen[:2], options_seen[2:]
    assert [
        [options["n_survivors"] for options in each] for each in (of_numbers, of_levels)
    ] == n_survivors
    work = [sum(options["max_work"] for options in each) for each in (of_numbers, of_levels)]
    assert work[0] == max(5.5e8, 220 * 12_000 * 30 * n_clusters)
    assert work[1] == share * work[0]


@pytest.mark.parametrize("objective", ["kmeans", "kmedians"])
def test_tables_with_gaps_or_levels_aim_at_what_the_reference_costs(options_seen, objective):
    frame = people()
    gaps = frame.select("income", "age")
    for table in (frame, gaps):
        model = tc.BestTree(3, objective=objective, **BRIEF).fit(table)
        cost = cost_of(table, model.reference_labels_, medians=objective == "kmedians")
        assert options_seen[-1]["aim"] == pytest.approx(cost, rel=1e-12)
    tc.BestTree(3, objective=objective, **BRIEF).fit(gaps.drop_nulls())
    assert options_seen[-1]["aim"] is None
    tc.BestTree(objective="labels", reference=np.arange(len(frame)) % 3, **BRIEF).fit(frame)
    assert options_seen[-1]["aim"] is None


@pytest.mark.parametrize("objective", ["kmeans", "kmedians", "labels"])
def test_thresholds_of_tables_with_levels_are_moved_less_often(options_seen, objective):
    frame = people()
    for table, often in ((frame, (8.0, 40)), (frame.select("income", "age"), (np.inf, 16))):
        tc.BestTree(3, objective=objective, **BRIEF).fit(table)
        options = options_seen[-1]
        assert (options["reach"], options["rounds_to_refine"]) == often


def test_trees_of_the_filled_table_take_every_row_the_same_way():
    frame = people()
    model = tc.IMM(3, random_state=0).fit(frame)
    table = count_gaps(read_table(frame, estimator_name="BestTree", mixed=True), 1)
    encoding = Encoding.of(table, np.zeros(4), np.array([1, 1, 0.5**0.5, 0.5**0.5]))
    cells = encoding.matrix(table)
    means = np.nanmean(cells, axis=0)
    filled = np.where(np.isnan(cells), means, cells)
    assert filled.shape == (400, 9)
    for depth in (2, None):
        other = DecisionTreeClassifier(max_depth=depth, random_state=0)
        tree = tc.tree.from_sklearn(other.fit(filled, model.labels_))
        tests = _engine.TestArrays(**{f: getattr(tree, f) for f in _engine.TestArrays._fields})
        decoded = decoded_tests(tests, encoding, means)
        assert {0, 4} <= set(decoded.kind) <= {0, 1, 4}
        leaves = _engine.Router(decoded, 4).apply(table.data, 1)
        np.testing.assert_array_equal(leaves, tree.apply(filled))


def test_it_is_never_worse_than_other_trees():
    frame = people(600, seed=1)
    reference = tc.IMM(3, random_state=0).fit(frame).reference_labels_
    best = tc.BestTree(max_leaves=6, reference=reference, **BRIEF).fit(frame)
    for base in ("imm", None):
        other = tc.ExKMC(max_leaves=6, base_tree=base, reference=reference).fit(frame)
        assert best.inertia_ <= other.inertia_ * (1 + 1e-12)
    for smaller in (3, 4):
        tree = best.truncate(smaller)
        assert tree.inertia_ == pytest.approx(cost_of(frame, tree.predict(frame)), rel=1e-9)


def test_labels_are_reproduced_by_levels_and_missing_cells():
    frame = people()
    away = frame["region"].is_in(["north", "islands"]).fill_null(False)
    labels = (away | frame["income"].is_null()).cast(pl.Int64).to_numpy()
    model = tc.BestTree(reference=labels, objective="labels", max_leaves=4, **BRIEF).fit(frame)
    assert (model.labels_ == labels).all()
    assert model.n_leaves_ == 3
    assert {4, 5} <= set(model.tree_.kind)


def test_arrays_with_gaps_weights_and_empty_rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 4)) + rng.integers(0, 3, 300)[:, None]
    X[rng.random(X.shape) < 0.2] = np.nan
    X[7] = np.nan
    weight = rng.integers(0, 4, 300).astype(float)
    model = tc.BestTree(3, max_leaves=7, **BRIEF).fit(X, sample_weight=weight)
    used = (weight > 0) & ~np.isnan(X).all(axis=1)
    with_rows = pl.DataFrame(X, schema=list("abcd")).fill_nan(None).filter(used)
    cost = cost_of(with_rows, model.labels_[used], weight[used])
    assert model.inertia_ == pytest.approx(cost, rel=1e-9)
    assert (model.predict(X) == model.labels_).all()
    assert (model.tree_.missing_go_to_left[model.tree_.kind == 0] == 0).all()


def test_threads_change_nothing():
    frame = people(500, seed=4)
    one, two = (
        tc.BestTree(3, max_leaves=6, n_jobs=n_jobs, **BRIEF).fit(frame) for n_jobs in (1, 2)
    )
    assert str(one.tree_) == str(two.tree_)
    assert one.inertia_ == two.inertia_


def test_a_given_tree_is_a_start_if_its_levels_are_those_of_the_table():
    frame = people()
    init = tc.ExKMC(3, max_leaves=6, random_state=0).fit(frame)
    model = tc.BestTree(3, max_leaves=6, init=init, max_time=0, **BRIEF).fit(frame)
    starts = dict(zip(model.starts_["start"], model.starts_["objective"], strict=True))
    assert starts["init"] <= init.inertia_ * (1 + 1e-9)
    assert model.inertia_ <= starts["init"]
    assert 2 in init.tree_.tested_features
    others = frame.with_columns(pl.col("region").str.replace("north", "far north"))
    with pytest.raises(ValueError, match=r"Column 'region' held the levels east, .* when the"):
        tc.BestTree(3, max_leaves=6, init=init, **BRIEF).fit(others)


def test_min_samples_leaf_and_depth_hold():
    frame = people(300, seed=5)
    limits = {"min_samples_leaf": 30, "max_depth": 3}
    model = tc.BestTree(3, max_leaves=8, **limits, **BRIEF).fit(frame)
    tree = model.tree_
    assert tree.n_node_samples[tree.kind == 0].min() >= 30
    assert tree.max_depth <= 3


def test_tables_without_gaps_or_levels_have_the_same_tree_as_frame_and_array():
    X = np.random.default_rng(6).normal(size=(200, 3)).round(1)
    frame = pl.DataFrame(X, schema=list("abc"))
    by_array = tc.BestTree(3, max_leaves=5, **BRIEF).fit(X)
    by_frame = tc.BestTree(3, max_leaves=5, **BRIEF).fit(frame)
    np.testing.assert_array_equal(by_array.tree_.threshold, by_frame.tree_.threshold)
    assert by_array.inertia_ == by_frame.inertia_


@pytest.mark.parametrize("objective", ["kmeans", "kmedians", "labels"])
def test_columns_without_a_value_and_with_many_levels(objective):
    n = 510
    rng = np.random.default_rng(7)
    many = pl.Series([f"l{i % 255}" for i in range(n)])
    frame = pl.DataFrame(
        {
            "empty": pl.Series([None] * n, dtype=pl.Float64),
            "no text": pl.Series([None] * n, dtype=pl.String),
            "one": ["a"] * n,
            "many": many.set(pl.Series(rng.random(n) < 0.2), None),
            "case": rng.choice(["a", "A", " a", "", "\0"], n),
            "x": rng.normal(size=n),
        }
    )
    model = tc.BestTree(4, max_leaves=6, objective=objective, scale="standard", **BRIEF).fit(frame)
    assert not {0, 1, 2} & set(model.tree_.tested_features)
    assert (model.predict(frame) == model.labels_).all()
    assert np.isfinite(model.cluster_centers_).all()


@pytest.mark.parametrize(("n_levels", "is_filled"), [(6, True), (60, False)])
def test_starts_on_a_column_a_level_are_left_out_where_levels_are_many(
    monkeypatch, n_levels, is_filled
):
    calls = []
    filled = Starts._filled
    monkeypatch.setattr(Starts, "_filled", lambda *args: calls.append(1) or filled(*args))
    rng = np.random.default_rng(0)
    X = pl.DataFrame({"x": rng.normal(size=300), "v": [f"{i % n_levels}" for i in range(300)]})
    tc.BestTree(3, max_leaves=4, scale="standard", random_state=0).fit(X)
    assert bool(calls) == is_filled
