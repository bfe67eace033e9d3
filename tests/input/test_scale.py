"""Units of the columns: robust ones, those that the user gives, and the warning of columns."""

import re
import warnings

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.preprocessing import RobustScaler

import treeclust_rs as tc
from small_models import save
from treeclust_rs._data import ColumnWarning, Units, read_table
from treeclust_rs._data.scale import deviations
from treeclust_rs._data.sparse import read_sparse

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(60, 3)), RNG.normal(6, 1, size=(60, 3))]) * [1.0, 20.0, 3.0]
ESTIMATORS = [
    tc.IMM(2),
    tc.ExKMC(2, max_leaves=3),
    tc.KMeansTree(2),
    tc.VoronoiTree(2),
    tc.ObliqueTree(2, max_depth=2, n_init=1),
    tc.Kauri(2),
    tc.KernelIMM(2),
    tc.KernelExKMC(2),
    tc.KernelExpand(2),
    tc.KernelKMeans(2),
    tc.Douglas(2, gemini="mmd_ova", max_iter=2),
]


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_every_estimator_takes_units(model, tmp_path):
    units = [2.0, 40.0, 0.5]
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    for scale, expected in (
        ("robust", Units.of(read_table(X, estimator_name=""), None, "robust", 1).scale),
        (units, units),
        (np.array(units), units),
        ({"b": 40.0}, [1.0, 40.0, 1.0]),
    ):
        fitted = clone(model).set_params(scale=scale, random_state=0).fit(frame)
        assert_allclose(fitted.scale_, expected, rtol=1e-15)
        save(fitted, tmp_path / "model.json")
        loaded = tc.load(tmp_path / "model.json")
        assert_array_equal(loaded.scale_, fitted.scale_)
        assert_array_equal(loaded.predict(frame), fitted.predict(frame))
        assert "scale" not in loaded.unsaved_params
        refitted = loaded.set_params(random_state=0)
        if not loaded.unsaved_params & {"kernel", "kernel_params", "gemini"}:
            assert_array_equal(refitted.fit(frame).labels_, fitted.labels_)


@pytest.mark.parametrize("factor", [0.01, 100.0])
def test_units_are_those_of_the_rescaled_table(factor):
    other = X * [1.0, factor, 1.0]
    here = tc.ExKMC(3, scale=[1.0, 20.0, 3.0], random_state=0).fit(X)
    there = tc.ExKMC(3, scale={"x0": 1.0, "x1": 20.0 * factor, "x2": 3.0}, random_state=0)
    assert_array_equal(there.fit(other).labels_, here.labels_)
    assert there.inertia_ == pytest.approx(here.inertia_)


def robust(values, weight=None):
    table = read_table(np.asarray(values, dtype=float).reshape(len(values), -1), estimator_name="")
    return Units.of(table, weight, "robust", 1).scale


def test_robust_units_are_interquartile_ranges():
    many = np.random.default_rng(1).normal(size=(20_001, 2)) * [3.0, 0.1]
    theirs = RobustScaler(unit_variance=True).fit(many).scale_
    assert_allclose(robust(many), theirs, rtol=1e-3)
    far = many.copy()
    far[:50] = 1e9
    assert_allclose(robust(far), theirs, rtol=2e-2)
    # Values 0, 1, ..., 8: the quartiles are 2 and 6.
    assert_allclose(robust(np.arange(9.0)), 4 / 1.3489795003921634)


def test_a_weight_of_robust_units_is_so_many_rows():
    values = RNG.normal(size=(50, 2))
    weight = RNG.integers(1, 4, 50)
    repeated = robust(np.repeat(values, weight, axis=0))
    assert_allclose(robust(values, weight * 0.1), repeated, rtol=1e-12)
    assert_array_equal(robust(values, np.full(50, 0.3)), robust(values))


def test_robust_units_fall_back():
    mostly_equal = np.zeros(40)
    mostly_equal[:3] = [1.0, 2.0, 9.0]
    columns = np.column_stack([mostly_equal, np.full(40, 7.0)])
    assert_allclose(robust(columns), [mostly_equal.std(), 1.0])


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ([1.0, 2.0], "scale has 2 units, but X has 3 columns"),
        ([1.0, 0.0, 1.0], "the unit 0.0 for column 'b'"),
        ([1.0, np.nan, 1.0], "the unit nan for column 'b'"),
        ([1.0, "2", 1.0], "the unit '1.0' for column 'a'"),
        (np.ones((1, 3)), r"shape \(1, 3\)"),
        ({"b": -1}, "the unit -1 for column 'b'"),
        ({"b": True}, "the unit True for column 'b'"),
        ({"b": 10**400}, "the unit 1000"),
        ({"d": 2.0}, "does not have: 'd'. The columns are 'a', 'b', 'c'"),
        ("median", "scale"),
        (3.0, "scale"),
    ],
)
def test_units_that_are_none(scale, message):
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    with pytest.raises(ValueError, match=message):
        tc.ExKMC(2, scale=scale).fit(frame)


@pytest.mark.parametrize("unit", ["0", "-1", "null", '"2"', "1e999"])
def test_units_of_a_file_are_checked(unit, tmp_path):
    path = tmp_path / "model.json"
    tc.ExKMC(2, scale={"x0": 7.5}, random_state=0).fit(X).save(path)
    path.write_text(re.sub(r"\b7\.5\b", unit, path.read_text(), count=1))
    with pytest.raises(ValueError, match=r"model\.json"):
        tc.load(path)


# ---- deviations ---------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_deviations_of_dense_and_sparse_rows(weighted):
    weight = RNG.uniform(0.5, 2, 80) if weighted else None
    rows = RNG.normal(5, 2, (80, 6)) * (RNG.random((80, 6)) < 0.4) * [1, 1e6, 1e-6, 1e200, 1, 0]
    rows[:, 4] = 3.0
    with np.errstate(over="ignore"):
        apart = rows / 1e200 - np.average(rows / 1e200, axis=0, weights=weight)
        expected = np.sqrt(np.average((apart * 1e100) ** 2, axis=0, weights=weight)) * 1e100
    dense = deviations(read_table(rows, estimator_name=""), weight, 1)
    sparse = deviations(read_sparse(sp.csr_array(rows), estimator_name=""), weight, 1)
    assert_allclose(dense[[0, 1, 2, 3, 5]], expected[[0, 1, 2, 3, 5]], rtol=1e-7)
    assert_allclose(sparse, dense, rtol=1e-9, atol=1e-14)
    assert dense[4] == dense[5] == sparse[5] == 0.0


# ---- the warning --------------------------------------------------------------------------


def warnings_of(model, frame):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(frame)
    assert all(item.filename == __file__ for item in caught), [str(item) for item in caught]
    return [str(item.message) for item in caught if issubclass(item.category, ColumnWarning)]


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_one_warning_of_a_dominant_column(model):
    frame = pl.DataFrame(X * [1.0, 1.0, 1e4], schema=["a", "b", "c"])
    (message,) = warnings_of(clone(model), frame)
    assert "Column 'c' has 99.9 % of the variance" in message
    assert 'scale="standard"' in message
    for scale in ("standard", {"c": 1}, [1, 1, 1]):
        assert not warnings_of(clone(model).set_params(scale=scale), frame)
    assert warnings_of(clone(model).set_params(scale={"a": 1}), frame)


def test_trees_that_count_given_labels_do_not_warn_of_a_dominant_column():
    frame = pl.DataFrame(X * [1.0, 1.0, 1e4], schema=["a", "b", "c"])
    labels = (X[:, 0] > np.median(X[:, 0])).astype(int)
    by_labels = [tc.BestTree(objective="labels", effort="quick"), tc.KMeansTree(), tc.SpExTree()]
    for model in by_labels:
        assert not warnings_of(clone(model).set_params(reference=labels), frame)
        # Clusters of k-means, and labels of the nearest center, follow from distances.
        assert warnings_of(clone(model).set_params(n_clusters=2), frame)
        assert warnings_of(clone(model).set_params(reference=frame.to_numpy()[:2]), frame)
    assert warnings_of(tc.BestTree(reference=labels, effort="quick"), frame)


def test_the_variance_is_that_of_the_rows_in_units():
    values = X[:, :2] * [1.0, 1e-9]
    assert warnings_of(tc.ExKMC(2), values)
    assert not warnings_of(tc.ExKMC(2, scale="robust"), values)
    assert not warnings_of(tc.ExKMC(2), values[:, :1])
    weight = np.where(values[:, 0] > 3, 1.0, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ColumnWarning, match="x0"):
            tc.ExKMC(2).fit(values, sample_weight=weight)
        moved = X[:, :1] * [1.0, 9.0]  # 98.8 %
        tc.ExKMC(2).fit(moved + 1e8)
        gram = X @ X.T
        tc.Kauri(2, kernel="precomputed").fit(values, gram=gram)
        tc.ObliqueTree(2, metric="cosine", n_init=1, max_depth=1).fit(np.add(values, [1.0, 0.0]))


@pytest.mark.parametrize(
    ("name", "warns"),
    [
        *(
            (name, True)
            for name in ("id", "ID", "Id", "row_id", "customer ID", "userId", "orderID")
        ),
        *((name, False) for name in ("humid", "malic_acid", "ACID", "idle", "grid", "paid")),
    ],
)
def test_identifiers_by_name(name, warns):
    frame = pl.DataFrame({name: np.arange(120), "x": X[:, 0] * 100})
    assert ["identifier" in message for message in warnings_of(tc.ExKMC(2), frame)] == [
        True
    ] * warns


def test_identifiers_are_different_integers():
    for ids, warns in (
        (np.arange(120.0), True),
        (np.arange(120) // 2, False),
        (np.arange(120) + 0.5, False),
    ):
        frame = pl.DataFrame({"id": ids, "x": X[:, 0], "other_id": np.arange(120)})
        (message,) = warnings_of(tc.ExKMC(2, scale="standard"), frame)
        assert ("Columns 'id', 'other_id' look like identifiers" in message) == warns
        assert "out of X" in message
