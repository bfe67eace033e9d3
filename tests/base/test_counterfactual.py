"""Counterfactuals: against enumeration, for all types of columns, and what cannot be."""

import itertools
import math
from datetime import date
from decimal import Decimal

import numpy as np
import polars as pl
import polars.testing
import pytest

import mixed_trees
import treeclust_rs as tc
import trees
from oblique_models import documents, fit, turned_blobs
from sizes import repeats
from treeclust_rs.tree import INTERVAL, LEAF, THRESHOLD, ClusterTree

_DAY = mixed_trees.DAY
_MAX_POINTS = 20_000


def model_of(tree, scale=None):
    """Return a fitted model that has this tree, and no centers."""
    model = tc.IMM(len(tree.classes))
    model.scale_ = np.ones(tree.n_features) if scale is None else np.asarray(scale, dtype=float)
    model._set_tree(tree)
    return model


def beside(value, kind, dtype=np.float64):
    """Return the greatest value of a column that is not above, and the least that is."""
    if kind == "date":
        below = math.floor(value / _DAY) * _DAY
        return below, below + _DAY
    if kind not in ("number", "levels", "flag"):
        return math.floor(value), math.floor(value) + 1
    if np.dtype(dtype).kind == "i":
        return math.floor(value), math.floor(value) + 1
    below = dtype(value)
    if float(below) > value:
        below = np.nextafter(below, dtype(-np.inf))
    return float(below), float(np.nextafter(below, dtype(np.inf)))


def candidates(tree, row, dtype=np.float64):
    """Return by feature the cells that stand for all others: beside tests, and the row's own."""
    found = [{float(cell)} for cell in row]
    for node in np.flatnonzero(tree.kind != LEAF):
        feature = int(tree.feature[node])
        column = tree.column(feature)
        if column.has_levels:
            found[feature] |= set(range(len(column.levels)))
            continue
        cuts = []
        if tree.kind[node] == THRESHOLD:
            cuts = [tree.threshold[node]]
        elif tree.kind[node] == INTERVAL:
            cuts = [np.nextafter(tree.lower[node], -np.inf), tree.upper[node]]
        for cut in cuts:
            found[feature] |= {float(x) for x in beside(float(cut), column.kind, dtype)}
        if tree.kind[node] == 5:
            found[feature].add(0.0)
    return [sorted(cells) for cells in found]


def least_by_enumeration(tree, row, cluster, units, factors, fixed, dtype=np.float64):
    """Return the least cost of a point of the grid of candidates; None if the cluster has none."""
    axes = candidates(tree, row, dtype)
    for feature in fixed:
        axes[feature] = [float(row[feature])]
    points = np.array(list(itertools.product(*axes)))
    reached = tree.predict(points) == cluster
    if not reached.any():
        return None
    cost = np.zeros(len(points))
    for feature, cells in enumerate(points.T):
        has_levels = tree.column(feature).has_levels
        if math.isnan(row[feature]):
            step = np.where(np.isnan(cells), 0.0, 1.0)
        else:
            step = np.abs(cells - row[feature])
            step = (step > 0).astype(float) if has_levels else step
        per_step = 1.0 if math.isnan(row[feature]) and not has_levels else 1.0 / units[feature]
        cost += step * per_step * factors[feature]
    return cost[reached].min()


def n_points(tree, row):
    return math.prod(len(cells) for cells in candidates(tree, row))


def check(model, row, cells, cluster, rng, dtype=np.float64):
    """Compare with enumeration; return whether there is a counterfactual."""
    tree = model.tree_
    names = tree.feature_names or [f"x{f}" for f in range(tree.n_features)]
    fixed = np.flatnonzero(rng.random(tree.n_features) < 0.2).tolist()
    factors = rng.choice([0.5, 1.0, 3.0], tree.n_features)
    costs = dict(zip(names, factors.tolist(), strict=True))
    wanted = least_by_enumeration(tree, cells, cluster, model.scale_, factors, fixed, dtype)
    arguments = {"fixed": [names[f] for f in fixed], "costs": costs}
    if wanted is None:
        with pytest.raises(ValueError, match="takes the row to cluster"):
            model.counterfactual(row, cluster, **arguments)
        return False
    found = model.counterfactual(row, cluster, **arguments)
    assert found.cost == pytest.approx(wanted, rel=1e-12, abs=1e-300)
    assert found.changes["cost"].sum() == pytest.approx(found.cost, rel=1e-12)
    assert model.predict(found.row).tolist() == [cluster]
    assert not {names[f] for f in fixed} & set(found.changes["column"])
    if isinstance(row, pl.DataFrame):
        assert found.row.schema == row.schema
        same = [name for name in row.columns if name not in found.changes["column"].to_list()]
        assert found.row.select(same).equals(row.select(same))
    else:
        assert found.row.dtype == row.dtype
        changed = np.flatnonzero(found.row[0] != row[0])
        assert {names[f] for f in changed} == set(found.changes["column"])
    return True


@pytest.mark.filterwarnings("ignore:X has")
def test_of_mixed_trees_they_are_the_least_of_all_boxes():
    seen = n_reached = seed = 0
    while seen < repeats(50, 1_000):
        seed += 1
        rng = np.random.default_rng(seed)
        tree = mixed_trees.random_tree(seed)
        cells = mixed_trees.random_cells(rng, 1)
        if n_points(tree, cells[0]) > _MAX_POINTS:
            continue
        seen += 1
        units = np.where([kind in ("number", "levels", "flag") for kind in mixed_trees.KINDS],
                         rng.choice([0.5, 2.0], 8), rng.choice([1.0, _DAY], 8))  # fmt: skip
        frame = mixed_trees.frame_of(cells, rng).with_columns(pl.col("newsletter").cast(bool))
        model = model_of(tree, units)
        n_reached += check(model, frame, cells[0], int(rng.integers(3)), rng)
    assert n_reached > seen / 4


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
@pytest.mark.parametrize("grid", [0, 6])
def test_of_numbers_they_are_the_least_of_all_boxes(dtype, grid):
    seen = n_reached = seed = 0
    while seen < repeats(10, 200):
        seed += 1
        rng = np.random.default_rng(seed)
        tree, X = trees.random_tree(seed, 10, n_features=4, intervals=True, grid=grid)
        row = (3 * X[rng.integers(len(X))][np.newaxis]).astype(dtype)
        if n_points(tree, row[0].astype(float)) > _MAX_POINTS:
            continue
        seen += 1
        cluster = tree.classes[int(rng.integers(len(tree.classes)))]
        model = model_of(tree, rng.choice([0.5, 1.0, 4.0], 4))
        n_reached += check(model, row, row[0].astype(float), cluster, rng, dtype)
    assert n_reached > seen / 4


def test_of_oblique_trees_they_cost_no_more_than_a_search_finds():
    for seed in range(6):
        X, _ = turned_blobs(n=200, seed=seed)
        model = fit(tc.ObliqueTree(4, random_state=0, scale="standard"), X)
        rng = np.random.default_rng(seed)
        for row in X[:5]:
            for cluster in model.classes_:
                found = model.counterfactual(row, cluster)
                assert model.predict(found.row) == [cluster]
                others = X[model.predict(X) == cluster]
                # From each row of the cluster towards this one, as near as the cluster goes.
                steps = np.linspace(0.0, 1.0, 60)[:, np.newaxis, np.newaxis]
                on_the_way = row + steps * (others - row)
                shaken = on_the_way * (rng.random(on_the_way.shape) < 0.7)
                shaken += row * (shaken == 0)
                for points in (on_the_way, shaken):
                    points = points.reshape(-1, X.shape[1])
                    inside = points[model.predict(points) == cluster]
                    if len(inside):
                        best = (np.abs(inside - row) / model.scale_).sum(axis=1).min()
                        assert found.cost <= best * (1 + 1e-6) + 1e-9


def test_behind_one_weighted_sum_the_cheapest_column_moves():
    # x0 + 2 x1 < 4 goes left, and x1 counts half.
    tree = oblique_stump([1.0, 2.0], -4.0)
    found = model_of(tree).counterfactual([0.0, 0.0], 1)
    assert found.cost == pytest.approx(2.0, rel=1e-6)
    assert found.changes["column"].to_list() == ["x1"]
    found = model_of(tree).counterfactual([0.0, 0.0], 1, costs={"x1": 3.0})
    assert found.changes["column"].to_list() == ["x0"]
    assert found.cost == pytest.approx(4.0, rel=1e-6)
    whole = model_of(tree).counterfactual(np.array([0, 0]), 1)
    assert whole.row.dtype.kind == "i"
    assert whole.row.tolist() == [[0, 2]]
    back = model_of(tree).counterfactual(np.array([0, 2]), 0)
    assert back.cost == 1.0  # either column by one: the sum is then below 4
    with pytest.raises(ValueError, match="takes the row to cluster 1"):
        model_of(tree).counterfactual([0.0, 0.0], 1, fixed=["x0", 1])


def oblique_stump(weights, bias):
    """Return a tree whose only test is a weighted sum."""
    n = len(weights)
    nan = [math.nan] * 3
    return ClusterTree(
        children_left=[1, -1, -1], children_right=[2, -1, -1], feature=[-2, -2, -2],
        threshold=[math.nan, -2.0, -2.0], lower=nan, upper=nan, kind=[3, 0, 0],
        impurity=[0.0] * 3, n_node_samples=[2, 1, 1], weighted_n_node_samples=[2.0, 1.0, 1.0],
        value=[[[0.5, 0.5]], [[1.0, 0.0]], [[0.0, 1.0]]], cluster=[0, 0, 1],
        base_cluster=[-1, -1, -1], mistakes=[1.0, 0.0, 0.0], n_features=n, classes=[0, 1],
        oblique_indptr=[0, n, n, n], oblique_indices=list(range(n)), oblique_weights=weights,
        oblique_bias=[bias, math.nan, math.nan],
    )  # fmt: skip


def customers():
    frame = pl.DataFrame(
        {
            "age": [20, 25, 30, 60, 65, 70] * 5,
            "plan": ["free", "free", "plus", "plus", "free", "plus"] * 5,
            "since": [date(2020, 1, 1 + day) for day in range(30)],
        }
    )
    labels = ["young"] * 3 + ["old free", "old free", "old plus"]
    labels[3] = "old plus"
    units = {"age": 10.0, "plan": 1.0, "since": 365.0 * _DAY}
    model = tc.KMeansTree(3, reference=labels * 5, scale=units, random_state=0)
    return model.fit(frame), frame


def test_the_row_keeps_its_types_and_is_told_in_words():
    model, frame = customers()
    found = model.counterfactual(frame[:1], "old plus")
    assert found.row.schema == frame.schema
    assert model.predict(found.row).tolist() == ["old plus"]
    assert set(found.changes["column"]) == {"plan", "age"}
    assert repr(found).startswith("cluster young → old plus: ")
    assert "plan free → plus" in repr(found)
    assert f"age 20 → {cut_of_age(model) + 1:.0f}" in repr(found)
    assert repr(model.counterfactual(frame[:1], "young")) == "cluster young: no change"
    pandas = pytest.importorskip("pandas")
    row = pandas.DataFrame({"age": [20], "plan": ["free"], "since": [date(2020, 1, 1)]})
    row["since"] = pandas.to_datetime(row["since"])
    assert isinstance(model.counterfactual(row, "old plus").row, pl.DataFrame)


def cut_of_age(model):
    (cut,) = model.tree_.threshold[(model.tree_.feature == 0) & (model.tree_.kind == THRESHOLD)]
    assert cut == round(cut)
    return cut


@pytest.mark.parametrize(
    "dtype",
    [pl.Int8, pl.UInt64, pl.Float32, pl.Decimal(10, 2), pl.Int128],
)
def test_numbers_of_all_types_move_to_numbers_of_their_type(dtype):
    model, frame = customers()
    row = frame[:1].with_columns(pl.col("age").cast(dtype))
    found = model.counterfactual(row, "old free")
    assert found.row.schema == row.schema
    cut = cut_of_age(model)
    after = {
        pl.Float32: float(np.nextafter(np.float32(cut), np.float32(99))),
        pl.Decimal(10, 2): round(cut + 0.01, 2),
    }
    assert float(found.row["age"][0]) == after.get(dtype, math.floor(cut) + 1)


def test_a_gap_gets_the_center_of_the_cluster_and_a_value_never_goes():
    ages = [None, None, 20.0, 22.0, 60.0, 64.0] * 4
    frame = pl.DataFrame({"age": ages, "other": [9.0, 9.0, 1.0, 1.0, 1.0, 1.0] * 4})
    model = tc.ExKMC(3, reference=[2, 2, 0, 0, 1, 1] * 4, scale={"age": 5.0, "other": 1e3})
    model.fit(frame)
    row = pl.DataFrame({"age": [None], "other": [9.0]}, schema_overrides={"age": pl.Float64})
    assert model.predict(row).tolist() == [2]
    found = model.counterfactual(row, 1)
    assert model.predict(found.row).tolist() == [1]
    assert found.changes.filter(column="age")["before"].to_list() == ["missing"]
    assert found.row["age"].to_list() == [62.0]
    assert found.changes.filter(column="age")["cost"].to_list() == [1.0]


@pytest.mark.parametrize(("factor", "value"), [(1.0, 7.83), (1e4, 78333.0)])
def test_a_gap_gets_a_number_of_few_digits(factor, value):
    cells = [None, None, factor / 3, factor * 2 / 3, factor * 70 / 9, factor * 71 / 9] * 4
    frame = pl.DataFrame({"age": cells, "other": [9.0, 9.0, 1.0, 1.0, 1.0, 1.0] * 4})
    scale = {"age": 5.0 * factor, "other": 1e3}
    model = tc.ExKMC(3, reference=[2, 2, 0, 0, 1, 1] * 4, scale=scale).fit(frame)
    row = pl.DataFrame({"age": [None], "other": [9.0]}, schema_overrides={"age": pl.Float64})
    found = model.counterfactual(row, 1)
    assert model.predict(found.row).tolist() == [1]
    assert found.row["age"].to_list() == [value]


def test_a_value_never_becomes_missing():
    cells = np.array([[math.nan], [1.0], [2.0]] * 4)
    builder = mixed_trees.MixedBuilder(np.repeat(cells, 8, axis=1), np.array([0, 1, 2] * 4))
    builder.test(0, 0)
    model = model_of(builder.tree())
    row = mixed_trees.frame_of(np.ones((1, 8)), np.random.default_rng(0))
    assert model.predict(row).tolist() == [1]
    with pytest.raises(ValueError, match="No change takes the row to cluster 0: values never"):
        model.counterfactual(row, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nobody",), "There is no cluster 'nobody': the clusters are"),
        (("young", {"fixed": ["name"]}), "fixed names the column 'name'; those of the fit are age"),
        (("young", {"costs": {"name": 1.0}}), "costs names the column 'name'"),
        (("young", {"costs": {"age": -1.0}}), "numbers from 0 on. Got -1.0 for 'age'"),
        (("young", {"fixed": 7}), "fixed names the column 7"),
        ((np.array([1, 2]),), r"There is no cluster array\(\[1, 2\]\): the clusters are"),
        ((True,), "There is no cluster True"),
    ],
)
def test_what_is_wrong_is_named(arguments, message):
    model, frame = customers()
    cluster, keywords = (*arguments, {})[:2]
    with pytest.raises(ValueError, match=message):
        model.counterfactual(frame[:1], cluster, **keywords)


def test_one_row_and_a_mapping_of_costs_are_asked_for():
    model, frame = customers()
    with pytest.raises(ValueError, match=r"takes one row\. Got 2"):
        model.counterfactual(frame[:2], "young")
    with pytest.raises(TypeError, match="costs must be a mapping"):
        model.counterfactual(frame[:1], "young", costs=[1.0])
    with pytest.raises(ValueError, match="the columns that may change"):
        model.counterfactual(frame[:1], "old plus", costs={"age": math.inf})


def test_of_whole_numbers_below_weighted_sums_they_are_the_least_of_all_points():
    side = np.arange(-9, 10)
    points = np.array(list(itertools.product(side, side, side)))
    n_reached = 0
    for seed in range(repeats(40, 300)):
        rng = np.random.default_rng(seed)
        tree, X = trees.random_mixed(seed, 6, n_features=3, grid=5)
        if tree.oblique_indptr is None or np.abs(X).max() > 7:
            continue
        model = model_of(tree, rng.choice([0.5, 1.0, 4.0], 3))
        row = X[rng.integers(len(X))].astype(np.int64)
        cluster = tree.classes[int(rng.integers(3))]
        inside = points[model.predict(points) == cluster]
        if not len(inside):
            continue
        costs = (np.abs(inside - row) / model.scale_).sum(axis=1)
        found = model.counterfactual(row, cluster)
        n_reached += 1
        assert found.row.dtype == np.int64
        assert model.predict(found.row) == [cluster]
        assert found.cost == pytest.approx(
            (np.abs(found.row[0] - row) / model.scale_).sum(), rel=1e-12
        )
        if (np.abs(found.row) <= 9).all():
            assert found.cost == pytest.approx(costs.min(), rel=1e-9)
        else:
            assert found.cost <= costs.min() * (1 + 1e-9)
    assert n_reached > repeats(5, 40)


def test_a_value_beside_a_short_one_is_told_by_that_one():
    builder = trees.Builder(np.array([[1.0], [2.0]]), [0, 1])
    builder.split(0, 0, 1.9)
    model = model_of(builder.tree())
    found = model.counterfactual([1.0], 1)
    assert repr(found) == "cluster 0 → 1: x0 1 → just above 1.9 (cost 0.9)"
    assert found.changes["after"].to_list() == ["1.9000000000000001"]
    assert found.row.tolist() == [[np.nextafter(1.9, 2.0)]]


def test_rows_of_sparse_matrices_are_explained_and_profiled():
    X = documents(n=60, d=20)
    model = fit(tc.ObliqueTree(4, metric="cosine", random_state=0), X)
    assert model.explain(X[:2], as_frame=True).height >= 2
    assert len(model.explain(X[:2], X[2:4])) == 2
    pl.testing.assert_frame_equal(model.profile(X).table, model.profile(X.toarray()).table)
    change = model.counterfactual(X[:1], 0)
    assert type(change.row) is type(X[:1])
    assert model.predict(change.row) == [0]


def on_its_grid(numbers, cell_type):
    """Compare with all numbers that a column of the type holds, by what they are read as."""
    n_reached = 0
    for seed in range(repeats(15, 300)):
        rng = np.random.default_rng(seed)
        chosen = sorted(rng.choice(len(numbers), 8, replace=False).tolist())
        frame = pl.DataFrame({"x": pl.Series([numbers[i] for i in chosen], dtype=cell_type)})
        model = tc.BestTree(objective="labels", reference=rng.integers(0, 3, 8), max_leaves=6).fit(
            frame
        )
        everything = pl.DataFrame({"x": pl.Series(numbers, dtype=cell_type)})
        labels, read = model.predict(everything), everything["x"].cast(pl.Float64).to_numpy()
        row = frame[int(rng.integers(8)) :][:1]
        cell = row["x"].cast(pl.Float64)[0]
        for cluster in model.classes_.tolist():
            if cluster not in labels:
                with pytest.raises(ValueError, match="takes the row to cluster"):
                    model.counterfactual(row, cluster)
                continue
            found = model.counterfactual(row, cluster)
            assert found.row.schema == row.schema
            assert model.predict(found.row).tolist() == [cluster]
            wanted = np.abs(read[labels == cluster] - cell).min() / model.scale_[0]
            assert found.cost == pytest.approx(wanted, rel=1e-12)
            n_reached += found.cost > 0
    assert n_reached > repeats(15, 300) / 2


@pytest.mark.filterwarnings("ignore:Only")
def test_of_decimals_they_are_the_least_of_all_that_the_type_holds():
    for n_digits, scale in ((4, 2), (3, 1), (18, 17)):
        numbers = [Decimal((0, tuple(map(int, str(n))), -scale)) for n in range(100, 200)]
        on_its_grid(numbers, pl.Decimal(n_digits, scale))


@pytest.mark.filterwarnings("ignore:Only")
def test_of_64_bits_they_are_the_least_up_to_the_end_of_the_type():
    for cell_type, end in ((pl.UInt64, 2**64), (pl.Int64, 2**63)):
        on_its_grid([end - 1 - 512 * n for n in range(60)], cell_type)
    on_its_grid([-(2**63) + 512 * n for n in range(60)], pl.Int64)


def test_a_threshold_is_compared_with_the_float_of_a_decimal():
    prices = [Decimal(text) for text in ("1.50", "1.60", "1.80", "1.90")]
    frame = pl.DataFrame({"price": pl.Series(prices, dtype=pl.Decimal(6, 2))})
    found = tc.ExKMC(reference=[0, 0, 1, 1]).fit(frame).counterfactual(frame[3:], 0)
    assert found.row["price"].to_list() == [Decimal("1.70")]
    texts = ("1.60", "1.60", "1.68", "1.69", "1.72", "1.80")
    frame = pl.DataFrame({"p": pl.Series(list(map(Decimal, texts)), dtype=pl.Decimal(6, 2))})
    model = tc.BestTree(objective="labels", reference=[0, 0, 1, 1, 2, 2]).fit(frame)
    row = pl.DataFrame({"p": pl.Series([Decimal("1.8")], dtype=pl.Decimal(6, 1))})
    assert model.counterfactual(row, 1).row["p"].to_list() == [Decimal("1.7")]


def test_integers_at_the_end_of_64_bits_are_reached():
    ends = [2**64 - 8192, 2**64 - 6000, 2**64 - 1, 2**64 - 4096]
    frame = pl.DataFrame({"u": pl.Series(ends, dtype=pl.UInt64)})
    model = tc.ExKMC(reference=[0, 0, 1, 0]).fit(frame)
    assert model.counterfactual(frame[:1], 1).row["u"].to_list() == [2**64 - 1]
    row = np.array([ends[0]], dtype=np.uint64)
    model = tc.ExKMC(reference=[0, 0, 1, 0]).fit(frame.to_numpy())
    assert model.counterfactual(row, 1).row.tolist() == [[2**64 - 1]]


def test_what_is_no_row_and_what_names_no_columns_is_named():
    model, frame = customers()
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match=r"give a frame of one row, as in X.iloc\[\[0\]\]"):
        model.counterfactual(pandas.DataFrame({"age": [20]}).iloc[0], "young")
    for row, name in (({"age": 20}, "dict"), (None, "NoneType")):
        with pytest.raises(TypeError, match=f"takes a frame of one row.*Got {name}"):
            model.counterfactual(row, "young")
    with pytest.raises(TypeError, match=r"fixed must be names or places .* Got float"):
        model.counterfactual(frame[:1], "young", fixed=1.5)
    free = model.counterfactual(frame[:1], "old plus", fixed=None)
    assert free.cost == model.counterfactual(frame[:1], "old plus").cost
    fixed = model.counterfactual(frame[:1], "old plus", fixed=np.int64(2))
    assert fixed.changes["column"].to_list() == free.changes["column"].to_list()


def test_clusters_are_named_by_the_labels_of_the_model():
    model = tc.ExKMC(reference=[0, 1]).fit(np.array([[0.0], [1.0]]))
    found = model.counterfactual([0.0], np.int64(1))
    assert type(found.cluster) is int
    for cluster in (True, 1.0):
        with pytest.raises(ValueError, match=f"There is no cluster {cluster}"):
            model.counterfactual([0.0], cluster)
