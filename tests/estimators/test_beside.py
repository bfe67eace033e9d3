"""The values beside the cuts of every tree, and cuts of times where people would put them."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from every_estimator import ESTIMATORS
from small_models import blobs
from treeclust_rs.datasets import make_customers
from treeclust_rs.tree import ClusterTree
from treeclust_rs.tree.nodes import BESIDE_ARRAYS, INTERVAL, THRESHOLD

TREES = [name for name, case in ESTIMATORS.items() if case.has_tree]


def expected_beside(tree: ClusterTree, cells: np.ndarray) -> dict[str, np.ndarray]:
    """Return the arrays by their definition; `cells`: the rows of the fit."""
    leaves = tree.apply(cells)
    found = {name: np.full(tree.n_nodes, np.nan) for name in BESIDE_ARRAYS}
    below_node = [{node} for node in range(tree.n_nodes)]
    for node in range(tree.n_nodes - 1, 0, -1):
        below_node[tree.parent[node]] |= below_node[node]

    def largest(values: np.ndarray) -> float:
        return max(values, default=np.nan)

    def least(values: np.ndarray) -> float:
        return min(values, default=np.nan)

    for node in np.flatnonzero(np.isin(tree.kind, (THRESHOLD, INTERVAL))).tolist():
        x = cells[np.isin(leaves, list(below_node[node])), tree.feature[node]]
        end = tree.threshold[node] if tree.kind[node] == THRESHOLD else tree.upper[node]
        found["below"][node] = largest(x[x <= end])
        found["above"][node] = least(x[x > end])
        found["below_lower"][node] = largest(x[x < tree.lower[node]])
        found["above_lower"][node] = least(x[x >= tree.lower[node]])
    return found


def check_beside(tree: ClusterTree, cells: np.ndarray) -> None:
    for name, values in expected_beside(tree, cells).items():
        is_interval = (tree.kind == INTERVAL).any()
        is_known = is_interval or (not name.endswith("_lower") and (tree.kind == THRESHOLD).any())
        if is_known:
            np.testing.assert_array_equal(getattr(tree, name), values, err_msg=name)
        else:
            assert getattr(tree, name) is None


def fit(name: str, X: Any, **options: Any) -> Any:
    case = ESTIMATORS[name]
    weight = {"sample_weight": options.pop("weight", None)} if case.weighted else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return case.make(**options).fit(X, **weight)


@pytest.mark.parametrize("name", TREES)
def test_every_method_keeps_the_values_of_the_rows_that_reach_a_node(name):
    X = blobs()
    weight = np.where(np.arange(len(X)) % 7 == 0, 0.0, 1.5)
    model = fit(name, X, weight=weight)
    kept = weight > 0 if ESTIMATORS[name].weighted else np.ones(len(X), dtype=bool)
    check_beside(model.tree_, X[kept])


@pytest.mark.parametrize("name", ["BestTree", "IMM", "ExKMC", "ExKMC-interval", "Kauri"])
def test_files_other_labels_and_smaller_trees_keep_them(name, tmp_path):
    X = blobs()
    model = fit(name, X, **({} if name == "IMM" else {"max_leaves": 6}))
    model.save(tmp_path / "model.json")
    assert tc.load(tmp_path / "model.json").tree_ == model.tree_
    renamed = model.rename_clusters({0: 10}).tree_
    for array in BESIDE_ARRAYS:
        np.testing.assert_array_equal(getattr(renamed, array), getattr(model.tree_, array))
    if name != "IMM":
        for m in (1, 3, 4):
            if m >= max(model.tree_.n_base_leaves, 1):
                check_beside(model.tree_.truncate(m), X)


def test_intervals_written_as_thresholds_keep_them():
    X = np.random.default_rng(0).normal(size=(80, 2))
    tree = tc.KernelExpand(
        kernel="linear", reference=(np.abs(X) < 0.7).all(axis=1).astype(int), max_leaves=5,
        base_tree=None, cuts="interval",
    ).fit(X).tree_  # fmt: skip
    assert (tree.kind == INTERVAL).sum() > 1
    check_beside(tree, X)
    plain = tree.to_threshold()
    pairs = set(zip(plain.below.tolist(), plain.above.tolist(), strict=True))
    for below, above in ((tree.below_lower, tree.above_lower), (tree.below, tree.above)):
        for node in np.flatnonzero((tree.kind == INTERVAL) & ~np.isnan(below) & ~np.isnan(above)):
            assert (below[node], above[node]) in pairs
    for node in np.flatnonzero(plain.kind == THRESHOLD):
        assert not plain.below[node] > plain.threshold[node]
        assert not plain.above[node] <= plain.threshold[node]


def test_missing_cells_and_levels_are_beside_no_cut():
    frame = make_customers(600, random_state=0).drop("customer_id")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = tc.ExKMC(4, max_leaves=9, scale="standard", random_state=0).fit(frame).tree_
    cells = np.full(frame.shape, np.nan)
    for f, name in enumerate(frame.columns):
        if tree.levels[f] is None:
            column = frame[name]
            column = column.cast(pl.Datetime("us")) if column.dtype == pl.Date else column
            cells[:, f] = column.to_physical().cast(pl.Float64).fill_null(np.nan)
        else:
            known = {level: code for code, level in enumerate(tree.levels[f])}
            texts = frame[name].cast(pl.String)
            cells[:, f] = [known.get(text, np.nan) for text in texts]
    check_beside(tree, cells)


def test_trees_from_elsewhere_do_not_know_them():
    from sklearn.tree import DecisionTreeClassifier

    X = blobs()
    other = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, X[:, 0] > 2)
    assert tc.tree.as_tree(other).below is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"above_lower": [0.0, np.nan, np.nan]}, "value above its lower end that is below"),
        ({"below_lower": [1.0, np.nan, np.nan]}, "value below its lower end that is not"),
        ({"below_lower": [np.nan, 0.5, np.nan]}, "Node 1 .* value below a lower end, and has none"),
        ({"below": [2.5, np.nan, np.nan]}, "value below its threshold that is above"),
        ({"above": [2.0, np.nan, np.nan]}, "value above its threshold that is not"),
    ],
)
def test_values_on_the_wrong_side_of_an_interval_are_refused(changes, message):
    X = np.repeat([[0.0], [1.0], [2.0], [3.0]], 3, axis=0)
    labels = np.repeat([0, 1, 1, 0], 3)
    tree = tc.KernelExpand(
        kernel="linear", reference=labels, max_leaves=2, base_tree=None, cuts="interval"
    ).fit(X).tree_  # fmt: skip
    assert [getattr(tree, name)[0] for name in BESIDE_ARRAYS] == [2, 3, 0, 1]
    arguments = tree.arguments() | {"lower": [1.0, np.nan, np.nan], "upper": [2.0, np.nan, np.nan]}
    ClusterTree(**arguments)
    with pytest.raises(ValueError, match=message):
        ClusterTree(**arguments | changes)


# ---- times ------------------------------------------------------------------------------------

START = datetime(2023, 5, 3, 7, 13, tzinfo=UTC)


def times(kind: str) -> pl.DataFrame:
    """Return thirty times around new year's day of 2024, with the gap across it."""
    steps = [timedelta(minutes=7 * i) for i in range(15)]
    early = [datetime(2023, 12, 20, 7, 13, 11) + step for step in steps]
    late = [datetime(2024, 1, 9, 8, 21, 5) + step for step in steps]
    column = pl.Series("seen", early + late, dtype=pl.Datetime("us"))
    return pl.DataFrame([column.cast(pl.Date) if kind == "date" else column])


@pytest.mark.parametrize("kind", ["date", "datetime"])
@pytest.mark.parametrize("name", ["Kauri", "KernelExpand", "ExKMC", "KMeansTree", "BestTree"])
def test_thresholds_of_times_are_at_boundaries_of_the_calendar(name, kind):
    reference = {"reference": np.repeat([0, 1], 15)}
    options = {} if name == "Kauri" else reference
    if name == "KernelExpand":
        options |= {"kernel": "linear"}
    model = getattr(tc, name)(2, scale="standard", random_state=0, **options).fit(times(kind))
    rule = "seen <= 2023-12-31" if kind == "date" else "seen <= 2024-01-01 00:00"
    assert model.rules()["rule"][0] == rule


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("date", "2023-01-01 <= seen <= 2023-12-31"),
        ("datetime", "2023-01-01 00:00 <= seen <= 2024-01-01 00:00"),
    ],
)
def test_both_ends_of_intervals_of_times_are_at_boundaries(kind, rule):
    frame = times(kind)
    before = frame.head(15).with_columns(pl.col("seen").dt.offset_by("-1y"))
    frame = pl.concat([before, frame])
    model = tc.KernelExpand(
        kernel="linear", reference=np.repeat([0, 1, 0], 15), max_leaves=2, base_tree=None,
        cuts="interval",
    )  # fmt: skip
    model.fit(frame)
    # The first gap is that between 2022-12-20 and 2023-12-20: the first of July is in its middle.
    found = model.rules()["rule"][0]
    assert found == rule.replace("2023-01-01", "2023-07-01")
    assert model.labels_.tolist() == np.repeat([0, 1, 0], 15).tolist()
    assert model.predict(frame).tolist() == model.labels_.tolist()
    check_beside(
        model.tree_, frame["seen"].cast(pl.Datetime("us")).to_physical().to_numpy()[:, None] * 1.0
    )


def test_neighbouring_times_are_told_apart_at_both_ends_of_an_interval():
    first = datetime(2024, 2, 29, 23, 59, 59, 999_998)
    seen = [first + timedelta(microseconds=i) for i in range(5)]
    labels = np.array([0, 0, 1, 0, 0])
    for frame in (pl.DataFrame({"seen": seen}), pl.DataFrame({"seen": [s - first for s in seen]})):
        model = tc.KernelExpand(
            kernel="linear", reference=labels, max_leaves=2, base_tree=None, cuts="interval"
        ).fit(frame)
        assert model.labels_.tolist() == labels.tolist()
