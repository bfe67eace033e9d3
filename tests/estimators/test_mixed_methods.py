"""Tables with text, flags, dates and gaps: trees on labels, Kauri, and who refuses them."""

from __future__ import annotations

import pickle
import re
import warnings
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

import treeclust_rs as tc
from every_estimator import ESTIMATORS
from treeclust_rs._data import Encoding
from treeclust_rs._data.kinds import MIXED_TABLES
from treeclust_rs.metrics import kmeans_cost

N = 150
GROUP = np.arange(N) % 3


def table(*, gaps: float = 0.1, seed: int = 0) -> pl.DataFrame:
    """Three groups that every column tells something of."""
    rng = np.random.default_rng(seed)
    regions = np.array(["north", "east", "South", "west "])
    likely = np.array([[0.8, 0.1, 0.05, 0.05], [0.1, 0.7, 0.1, 0.1], [0.05, 0.05, 0.5, 0.4]])
    frame = pl.DataFrame(
        {
            "age": rng.normal(np.array([20.0, 45.0, 70.0])[GROUP], 14.0),
            "visits": rng.poisson(np.array([2.0, 9.0, 5.0])[GROUP]),
            "region": [regions[rng.choice(4, p=likely[g])] for g in GROUP],
            "newsletter": rng.random(N) < np.array([0.9, 0.2, 0.5])[GROUP],
            "signup": [
                date(2020, 1, 1) + timedelta(int(400 * g + rng.integers(700))) for g in GROUP
            ],
        }
    )
    holes = {name: rng.random(N) < gaps for name in frame.columns}
    return frame.with_columns(
        pl.when(~pl.Series(mask)).then(pl.col(name)).alias(name) for name, mask in holes.items()
    )


def encoded(frame: pl.DataFrame, weight: np.ndarray | None = None) -> np.ndarray:
    """Return the standardised coordinates, NaN for gaps: from the words of the specification."""
    weight = np.ones(len(frame)) if weight is None else weight
    parts = []
    for column in frame.get_columns():
        seen = ~column.is_null().to_numpy()
        if column.dtype in (pl.String, pl.Boolean):
            cells = column.cast(pl.String)
            levels = sorted(cells.drop_nulls().unique().to_list())
            ones = np.array([[text == level for level in levels] for text in cells], dtype=float)
            ones[~seen] = np.nan
            shares = np.average(ones[seen], axis=0, weights=weight[seen])
            parts.append(ones / np.sqrt(1.0 - (shares**2).sum()))
            continue
        cells = column.to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy().copy()
        mean = np.average(cells[seen], weights=weight[seen])
        spread = np.sqrt(np.average((cells[seen] - mean) ** 2, weights=weight[seen]))
        parts.append(((cells - mean) / spread)[:, None])
    return np.hstack(parts)


def observed_cost(rows: np.ndarray, labels: np.ndarray, weight: np.ndarray) -> float:
    """Return the squared distances of the observed cells to the means of the labels' rows."""
    cost = 0.0
    for label in np.unique(labels):
        of = labels == label
        seen = ~np.isnan(rows[of])
        w = weight[of][:, None] * seen
        sums = (w * np.nan_to_num(rows[of])).sum(axis=0)
        means = sums / np.where(w.sum(axis=0) > 0, w.sum(axis=0), 1.0)
        cost += float((w * np.nan_to_num(rows[of] - means) ** 2).sum())
    return cost


def filled(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    means = [np.average(x[~np.isnan(x)], weights=weight[~np.isnan(x)]) for x in rows.T]
    return np.where(np.isnan(rows), means, rows)


METHODS = {
    "KMeansTree": tc.KMeansTree(reference=GROUP, max_leaves=7, scale="standard"),
    "KMeansTree-entropy": tc.KMeansTree(
        reference=GROUP, max_leaves=7, impurity="entropy", scale="standard"
    ),
    "KMeansTree-own": tc.KMeansTree(3, max_leaves=7, scale="standard", random_state=0),
    "SpExTree": tc.SpExTree(reference=GROUP, max_leaves=7, scale="standard"),
    "KernelExpand": tc.KernelExpand(
        reference=GROUP, base_tree=None, max_leaves=7, scale="standard"
    ),
    "KernelExpand-interval": tc.KernelExpand(
        reference=GROUP, base_tree=None, cuts="interval", max_leaves=7, scale="standard"
    ),
    "KernelExpand-linear": tc.KernelExpand(
        reference=GROUP, kernel="linear", max_leaves=7, scale="standard"
    ),
    "Kauri": tc.Kauri(3, max_leaves=7, scale="standard"),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("gaps", [0.0, 0.15], ids=["complete", "gaps"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_what_a_fit_says_of_its_rows(name, gaps, weighted):
    frame = table(gaps=gaps)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, N) if weighted else np.ones(N)
    model = clone(METHODS[name]).fit(frame, sample_weight=weight if weighted else None)
    tree = model.tree_
    assert tree.n_leaves > 3
    assert tree.column_kinds == ("number", "number", "levels", "flag", "date")
    with warnings.catch_warnings(action="error"):
        np.testing.assert_array_equal(model.predict(frame), model.labels_)
        np.testing.assert_array_equal(model.predict(frame.to_pandas()), model.labels_)
        np.testing.assert_array_equal(model.predict(frame.to_arrow()), model.labels_)
    polars = frame.select(model.to_polars()).to_series().to_numpy()
    np.testing.assert_array_equal(polars, model.labels_)
    assert len(model.explain(frame)) == N
    rows = encoded(frame, weight)
    cost = observed_cost(rows, model.labels_, weight)
    assert model.inertia_ == pytest.approx(cost, rel=1e-9)
    sample_weight = weight if weighted else None
    if name not in ("KernelExpand", "KernelExpand-interval"):  # their cost is that of a kernel
        assert -model.score(frame, sample_weight=sample_weight) == pytest.approx(cost, rel=1e-9)
    assert kmeans_cost(frame, model.labels_, sample_weight, scale=model) == pytest.approx(cost)
    assert model.cluster_centers_.shape == (3, rows.shape[1])
    assert model.scale_.shape == (5,)  # of the source's columns
    assert len(model.encoded_names_) == rows.shape[1]
    small = model.truncate(4)
    small_cost = observed_cost(rows, small.labels_, weight)
    assert small.inertia_ == pytest.approx(small_cost, rel=1e-9)
    assert small.cluster_centers_.shape == (3, rows.shape[1])


def test_label_trees_find_levels():
    frame = pl.DataFrame({"x": [0.0, 1.0] * 30, "town": [f"t{i % 6}" for i in range(60)]})
    labels = np.isin(np.arange(60) % 6, [1, 2, 4]).astype(int)
    for model in (
        tc.KMeansTree(reference=labels),
        tc.SpExTree(reference=labels),
        tc.KernelExpand(reference=labels, base_tree=None),
    ):
        model.fit(frame)
        np.testing.assert_array_equal(model.labels_, labels)
        assert model.n_leaves_ == 2, model
        assert set(model.rules()["rule"]) <= {
            "town in {t0, t3, t5}",
            "town in {t1, t2, t4}",
            "town not in {t0, t3, t5}",
            "town not in {t1, t2, t4}",
        }


def test_kernel_expand_counts_mismatches():
    frame = table()
    model = clone(METHODS["KernelExpand"]).fit(frame)
    wrong = (model.labels_ != GROUP).sum()
    assert model.cost_path_["cost"][-1] == wrong
    rows = filled(encoded(frame), np.ones(N))
    gram = np.exp(-np.square(rows[:, None] - rows).sum(axis=2) / rows.shape[1])
    cost = N - sum(
        gram[np.ix_(model.labels_ == c, model.labels_ == c)].sum() / (model.labels_ == c).sum()
        for c in range(3)
    )
    assert model.kernel_cost_ == pytest.approx(cost, rel=1e-9)
    assert -model.score(frame) == pytest.approx(cost, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("kernel", ["rbf", "polynomial", "cosine", "hellinger"])
def test_growth_of_kernel_expand_builds_no_coordinates_of_levels(kernel, weighted, monkeypatch):
    calls = []
    matrix = Encoding.matrix
    monkeypatch.setattr(Encoding, "matrix", lambda *given: (calls.append(1), matrix(*given))[1])
    frame = table(gaps=0.15).with_columns(pl.col("age").abs())
    weight = np.random.default_rng(1).uniform(0.5, 2.0, N) if weighted else None
    model = clone(METHODS["KernelExpand"]).set_params(kernel=kernel, gamma="scale")
    pandas = frame.to_pandas()
    model.fit(pandas, sample_weight=weight)
    assert not calls
    pandas["age"] = 0.0
    pandas.loc[:, "visits"] *= 2.0
    expected = -model.score(frame, sample_weight=weight)
    assert model.kernel_cost_ == pytest.approx(expected, rel=1e-9)
    assert 0 < model.reference_kernel_cost_ != model.kernel_cost_
    assert model.price_of_explainability_ == model.kernel_cost_ / model.reference_kernel_cost_
    assert len(calls) == 3  # of score and of both costs
    small = pickle.loads(pickle.dumps(model)).truncate(4)
    expected = -small.score(frame, sample_weight=weight)
    assert small.kernel_cost_ == pytest.approx(expected, rel=1e-9)
    if kernel == "rbf":
        rows = filled(encoded(frame, weight), np.ones(N) if weight is None else weight)
        variance = np.average((rows - np.average(rows, axis=0, weights=weight)) ** 2, axis=0,
                              weights=weight)  # fmt: skip
        assert model.gamma_ == pytest.approx(1.0 / variance.sum(), rel=1e-9)


def test_kernel_expand_refuses_negative_numbers_beside_levels():
    frame = table().with_columns(pl.col("age").abs(), -pl.col("visits"))
    model = tc.KernelExpand(reference=GROUP, base_tree=None, kernel="chi2")
    with pytest.raises(ValueError, match="'chi2' needs values >= 0, but column 'visits' holds -"):
        model.fit(frame)


def test_centers_and_estimators_as_reference_of_kernel_expand():
    frame = table(gaps=0.0)
    km = tc.IMM(3, scale="standard", random_state=0).fit(frame)
    given = km.cluster_centers_
    model = tc.KernelExpand(reference=given, base_tree=None, scale="standard").fit(frame)
    rows = encoded(frame)
    means = [rows[km.labels_ == c].mean(axis=0) for c in range(3)]
    nearest = np.argmin([np.square(rows - mean).sum(axis=1) for mean in means], axis=0)
    np.testing.assert_array_equal(model.reference_labels_, nearest)
    model = tc.KernelExpand(reference=km, base_tree=None, scale="standard").fit(frame)
    np.testing.assert_array_equal(model.reference_labels_, km.labels_)


# ---- Kauri --------------------------------------------------------------------------------


def levels_alone(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(
        "region",
        pl.col("newsletter").cast(pl.String),
        age=(pl.col("age") // 10).cast(pl.String),
        signup=pl.col("signup").dt.year().cast(pl.String),
    )


@pytest.mark.parametrize("columns", [pl.DataFrame.clone, levels_alone], ids=["all", "levels"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_kauri_clusters_the_filled_table(weighted, columns):
    frame = columns(table(gaps=0.15))
    weight = np.random.default_rng(1).uniform(0.5, 2.0, N) if weighted else np.ones(N)
    sample_weight = weight if weighted else None
    model = clone(METHODS["Kauri"]).fit(frame, sample_weight=sample_weight)
    rows = filled(encoded(frame, weight), weight)
    cost = observed_cost(rows, model.labels_, weight)
    assert model.kernel_cost_ == pytest.approx(cost, rel=1e-9)
    assert model.kernel_cost_ > model.inertia_
    rose = model.gains_["gain"].sum()
    whole = observed_cost(rows, np.zeros(N), weight)
    assert rose == pytest.approx(whole - cost, rel=1e-9)
    assert model.objective(frame, sample_weight=sample_weight) == pytest.approx(
        model.objective_, rel=1e-9
    )
    complete = clone(METHODS["Kauri"]).fit(columns(table(gaps=0.0)))
    assert complete.kernel_cost_ == complete.inertia_


def first_cuts(frame: pl.DataFrame, least: int):
    """Yield the left sides of all cuts of all rows, in the order of ties."""
    for column in frame.get_columns():
        missing = column.is_null().to_numpy()
        is_text = column.dtype in (pl.String, pl.Boolean)
        values = sorted(column.drop_nulls().unique().to_list())
        cells = column.to_list()
        sides = []
        for value in values if is_text and len(values) > 1 else values[:-1]:
            left = [x is not None and (x == value if is_text else x <= value) for x in cells]
            sides += [np.array(left)] + [np.array(left) | missing] * bool(missing.any())
        if missing.any() and not missing.all():
            sides.append(missing)
        for side in sides:
            if least <= side.sum() <= len(frame) - least:
                yield side


@pytest.mark.parametrize("least", [1, 3])
def test_the_first_cut_of_kauri_is_the_best_of_all(least):
    rng = np.random.default_rng(least)
    kinds = set()
    for _ in range(150):
        n = int(rng.integers(7, 14))
        frame = pl.DataFrame(
            {
                "x": rng.integers(0, 5, n).astype(float),
                "level": rng.choice(["a", "b", "c"], n),
                "flag": rng.random(n) < 0.5,
            }
        )
        frame = frame.with_columns(
            pl.when(pl.Series(rng.random(n) > 0.2)).then(pl.col(name)).alias(name)
            for name in frame.columns
        )
        seen = ~np.array(frame.select(pl.all_horizontal(pl.all().is_null())).to_series())
        frame = frame.filter(seen)
        if min(frame[name].drop_nulls().n_unique() for name in frame.columns) < 2:
            continue
        model = tc.Kauri(2, scale="standard", min_samples_leaf=least).fit(frame)
        ones = np.ones(len(frame))
        rows = filled(encoded(frame), ones)
        whole = observed_cost(rows, np.zeros(len(frame)), ones)
        sides = list(first_cuts(frame, least))
        gains = [whole - observed_cost(rows, side, ones) for side in sides]
        if not gains or max(gains) <= 1e-9:
            assert model.n_leaves_ == 1
            continue
        first = next(i for i, gain in enumerate(gains) if gain >= max(gains) - 1e-9)
        assert model.gains_["gain"][0] == pytest.approx(gains[first], rel=1e-9)
        left = model.apply(frame) == model.tree_.children_left[0]
        np.testing.assert_array_equal(left, sides[first])
        kinds.add(int(model.tree_.kind[0]))
    assert kinds >= {1, 4}


def test_rows_without_a_cell_are_left_out_and_routed():
    frame = table(gaps=0.0)
    empty = pl.DataFrame({name: [None] for name in frame.columns}, schema=frame.schema)
    for name in ("Kauri", "KMeansTree-own"):
        model = clone(METHODS[name]).fit(pl.concat([frame, empty]))
        alone = clone(METHODS[name]).fit(frame)
        np.testing.assert_array_equal(model.labels_[:-1], alone.labels_)
        assert model.inertia_ == alone.inertia_
        assert model.tree_.n_node_samples[0] == N
    # None is kept in a column that is all missing, and no test is made of it.
    model = clone(METHODS["Kauri"]).fit(frame.with_columns(none=pl.lit(None, dtype=pl.String)))
    np.testing.assert_array_equal(model.labels_, clone(METHODS["Kauri"]).fit(frame).labels_)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tc.KMeansTree(reference=GROUP, max_leaves=9),
        lambda: tc.KernelExpand(reference=GROUP, base_tree=None, max_leaves=9),
        lambda: tc.IMM(reference=GROUP, scale="standard"),
        lambda: tc.ExKMC(reference=GROUP, max_leaves=9, cuts="interval", scale="standard"),
        lambda: tc.Kauri(3, max_leaves=9, scale="standard"),
        lambda: tc.BestTree(3, max_leaves=9, effort="quick", random_state=0),
    ],
    ids=["KMeansTree", "KernelExpand", "IMM", "ExKMC", "Kauri", "BestTree"],
)
@pytest.mark.parametrize("n_times", [1, 4])
@pytest.mark.filterwarnings("ignore:.* of the rows are nearer")
def test_constant_columns_with_gaps_are_never_cut(make, n_times):
    frame = table().select("age").with_columns(table(gaps=0.0)["visits"])
    # Where they are missing tells a group from the others.
    seen = pl.Series(GROUP > 0)
    constant = frame.with_columns(
        pl.when(seen).then(7.5).alias("number"),
        pl.when(seen).then(pl.lit("one")).alias("level"),
        pl.when(seen).then(pl.lit(value=True)).alias("flag"),
        pl.when(seen).then(pl.lit(date(2024, 1, 1))).alias("day"),
    )
    model, without = make(), make()
    if n_times > 1:  # nodes are searched by bins
        frame, constant = (pl.concat([x] * n_times) for x in (frame, constant))
        for one in (model, without):
            if getattr(one, "reference", None) is not None:
                one.set_params(reference=np.tile(GROUP, n_times))
    model.fit(constant)
    np.testing.assert_array_equal(model.labels_, without.fit(frame).labels_)
    assert model.tree_.feature.max() <= 1
    np.testing.assert_array_equal(model.predict(constant), model.labels_)


# ---- refusals -----------------------------------------------------------------------------

SAID = "BestTree, IMM, ExKMC, KMeansTree, SpExTree, KernelExpand with a reference and base_tree="
REFUSE = {
    name: case
    for name, case in ESTIMATORS.items()
    if not get_tags(case.make()).input_tags.allow_nan
}


def test_who_takes_missing_cells():
    takes = {type(ESTIMATORS[name].make()).__name__ for name in ESTIMATORS.keys() - REFUSE.keys()}
    assert {"IMM", "ExKMC", "KMeansTree", "SpExTree", "Kauri"} <= takes <= {
        "BestTree", "IMM", "ExKMC", "KMeansTree", "SpExTree", "Kauri",
    }  # fmt: skip
    for model, expected in (
        (tc.Kauri(kernel="rbf"), False),
        (tc.Kauri(approximation="nystroem"), False),
        (tc.KernelExpand(base_tree=None), False),
        (tc.KernelExpand(reference=GROUP), False),
        (tc.KernelExpand(reference=GROUP, kernel="linear"), True),
        (tc.KernelExpand(reference=GROUP, base_tree=None), True),
    ):
        assert get_tags(model).input_tags.allow_nan == expected, model


def test_no_estimator_says_that_it_takes_arrays_of_text():
    for name, case in ESTIMATORS.items():
        tags = get_tags(case.make()).input_tags
        assert not tags.string and not tags.categorical, name


def test_every_estimator_refuses_or_takes_such_tables():
    public = {getattr(tc, name) for name in tc.__all__}
    assert {case.estimator for case in ESTIMATORS.values()} == {
        item for item in public if isinstance(item, type) and issubclass(item, BaseEstimator)
    }
    # Docstrings and messages name the same methods.
    words = " ".join(tc.ExGreedy.fit.__doc__.replace("`", "").split())
    for name in re.findall(r"[A-Z]\w*[a-z][A-Z]\w*|IMM|Kauri", MIXED_TABLES):
        assert name in words.split("Missing cells and, in frames,")[1].split(" y : ")[0]


@pytest.mark.parametrize("name", REFUSE)
def test_refusals_say_who_takes_such_tables(name):
    model = REFUSE[name].make()
    numbers = table(gaps=0.0).select("age", "visits")
    hole = numbers.with_columns(pl.col("age").replace({numbers["age"][3]: None}))
    for frame in (hole, hole.fill_null(float("nan")), hole.to_pandas()):
        with pytest.raises(ValueError, match=f"'age' has 1 (null|NaN), the first in row 3.*{SAID}"):
            model.fit(frame)
    with pytest.raises(ValueError, match=f"column x0 has 1 NaN.*{SAID}"):
        model.fit(hole.to_numpy())
    for column in ("region", "signup"):
        frame = table(gaps=0.0).select("age", column)
        for given in (frame, frame.lazy(), frame.to_pandas(), frame.to_arrow()):
            with pytest.raises(TypeError, match=f"not numbers: '{column}'.*{SAID}"):
                model.fit(given)
    with pytest.raises(ValueError, match=f"no arrays of bytes/strings.*{SAID}"):
        model.fit(np.array([["a"], ["b"]]))
    with pytest.raises(ValueError, match=f"column x0 holds 'a'.*{SAID}"):
        model.fit(np.array([["a", 1.0], ["b", 2.0]], dtype=object))


@pytest.mark.parametrize("name", ["VoronoiTree", "ObliqueTree", "KernelKMeans", "Douglas"])
def test_refusals_after_the_fit_say_who_takes_such_tables(name):
    numbers = table(gaps=0.0).select("age", "visits")
    model = ESTIMATORS[name].make(2).fit(numbers)
    calls = [model.predict, model.score]
    if name == "Douglas":
        calls += [model.predict_proba, model.partial_fit]
    for call in calls:
        with pytest.raises(ValueError, match=f"has 1 null, the first in row 0.*{SAID}"):
            call(numbers.with_columns(age=pl.Series([None, *numbers["age"][1:]])))
        with pytest.raises(TypeError, match=f"not numbers: 'age' .String.*{SAID}"):
            call(numbers.with_columns(pl.col("age").cast(pl.String)))


@pytest.mark.parametrize("name", sorted(ESTIMATORS.keys() - REFUSE.keys()))
@pytest.mark.parametrize("cell", [np.inf, -np.inf], ids=str)
def test_infinite_cells_are_refused_everywhere(name, cell):
    model = ESTIMATORS[name].make()
    rows = np.column_stack([np.arange(30.0) % 7, np.arange(30.0) % 3])
    rows[4, 0] = np.nan
    bad = rows.copy()
    bad[5:7, 0] = cell
    said = r"contains inf: column x0 has 2 inf, the first in row 5 \(rows count from 0\)"
    for given in (bad, bad.astype(np.float32), pl.DataFrame(bad, schema=["x0", "y"])):
        with pytest.raises(ValueError, match=said.replace("x0", "('x0'|x0)")):
            model.fit(given)
    model.fit(rows)
    with pytest.raises(ValueError, match="inf"):
        model.score(bad)
    tested = np.full((3, 2), cell)
    for call in (model.predict, model.apply, model.explain):
        with pytest.raises(ValueError, match="contains inf"):
            call(tested)


# ---- gaps at predict ----------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, case in ESTIMATORS.items() if case.has_tree])
def test_a_gap_never_stops_a_batch(name):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3)) + 5.0 * (np.arange(60) % 3)[:, None] * [1.0, 0.0, 0.5]
    frame = pl.DataFrame(rows, schema=["a", "b", "c"])
    model = ESTIMATORS[name].make().fit(frame)
    tree = model.tree_
    holes = frame.with_columns(
        pl.when(pl.Series(rng.random(60) > 0.4)).then(pl.col(column)).alias(column)
        for column in frame.columns
    )
    cells = holes.to_numpy()
    if tree.missing_go_to_left is None:  # oblique tests
        with pytest.raises(ValueError, match=r"contains (NaN|null)"):
            model.predict(holes)
        return
    expected = []
    for row in cells:
        node = 0
        while tree.kind[node]:
            x = row[tree.feature[node]]
            inside = tree.lower[node] <= x if tree.kind[node] == 2 else True
            upper = tree.upper[node] if tree.kind[node] == 2 else tree.threshold[node]
            left = tree.missing_go_to_left[node] if np.isnan(x) else inside and x <= upper
            node = (tree.children_left if left else tree.children_right)[node]
        expected.append(node)
    for given in (holes, holes.lazy(), holes.to_pandas(), holes.to_arrow()):
        with pytest.warns(UserWarning, match="X has gaps where the fit had none: column '") as told:
            np.testing.assert_array_equal(model.apply(given), expected)
        assert len(told) == 1
    with warnings.catch_warnings(action="ignore"):
        np.testing.assert_array_equal(model.apply(cells), expected)
        predicted = model.predict(holes)
        assert any("missing" in line for line in model.explain(holes))
    np.testing.assert_array_equal(holes.select(model.to_polars()).to_series().to_numpy(), predicted)
    with warnings.catch_warnings(action="error"):
        np.testing.assert_array_equal(model.predict(frame), model.labels_)
    with pytest.raises(TypeError, match="held numbers when"):
        model.predict(frame.with_columns(pl.all().cast(pl.String)))


def test_scores_of_gaps():
    """K-means costs count observed cells; kernels of rows with gaps are not known."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2)) + 6.0 * (np.arange(60) % 2)[:, None]
    holes = np.where(rng.random(rows.shape) < 0.2, np.nan, rows)
    holes = holes[~np.isnan(holes).all(axis=1)]
    for model in (tc.ExGreedy(2, random_state=0), tc.CUBT(2), tc.KDTreeClusters(2)):
        model.fit(rows)
        with warnings.catch_warnings(action="ignore"):
            labels = model.predict(holes)
            centers = model.cluster_centers_[labels]
            assert -model.score(holes) == pytest.approx(np.nansum((holes - centers) ** 2))
    model = tc.Kauri(2).fit(rows)
    with warnings.catch_warnings(action="ignore"):
        cost = observed_cost(holes, model.predict(holes), np.ones(len(holes)))
        assert -model.score(holes) == pytest.approx(cost)
    with pytest.raises(ValueError, match="contains NaN"):
        tc.Kauri(2, kernel="rbf").fit(rows).score(holes)
