"""Predicting reads only the columns that the tree tests."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import treeclust_rs as tc

NAMES = ["age", "noise", "income", "city"]


def two_tested_columns() -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose clusters lie in columns 0 and 2, and the centers, equal in the others."""
    rng = np.random.default_rng(0)
    centers = np.zeros((3, 4))
    centers[:, [0, 2]] = [[0, 0], [10, 0], [0, 10]]
    return centers[np.arange(60) % 3] + rng.normal(0, 0.1, (60, 4)), centers


@pytest.fixture(scope="module")
def fitted() -> tuple[tc.IMM, np.ndarray]:
    X, centers = two_tested_columns()
    model = tc.IMM(reference=centers).fit(pl.DataFrame(X, schema=NAMES))
    assert model.tree_.tested_features.tolist() == [0, 2]
    return model, X


def frames(columns: dict) -> dict:
    frame = pl.DataFrame(columns)
    return {
        "polars": frame,
        "lazy": frame.lazy(),
        "pandas": pd.DataFrame({name: frame[name].to_list() for name in frame.columns}),
        "arrow": pa.table({name: frame[name].to_list() for name in frame.columns}),
    }


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "arrow"])
def test_other_columns_may_be_absent_null_or_text(fitted, kind):
    model, X = fitted
    used = {"income": X[:, 2], "age": X[:, 0]}
    others = {"noise": [None] * 60, "city": ["Łódź"] * 60}
    wide, narrow = frames(used | others)[kind], frames(used)[kind]
    for frame in (wide, narrow):
        np.testing.assert_array_equal(model.predict(frame), model.labels_)
        np.testing.assert_array_equal(
            model.apply(frame), model.apply(pl.DataFrame(X, schema=NAMES))
        )
        assert model.explain(frame)[0].startswith("cluster 0: age = ")


def test_a_missing_column_that_is_tested_is_named(fitted):
    model, X = fitted
    with pytest.raises(ValueError, match=r"lacks 1 of the 2 columns that are needed.*'income'"):
        model.predict(pl.DataFrame({"age": X[:, 0], "noise": X[:, 1], "city": X[:, 3]}))
    with pytest.raises(TypeError, match="'income'"):
        model.predict(pl.DataFrame({"age": X[:, 0], "income": ["high"] * 60}))
    with pytest.raises(ValueError, match="column 'income' has 59 inf, the first in row 0"):
        model.predict(pl.DataFrame({"age": X[:, 0], "income": [np.inf] * 59 + [1.0]}))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, object])
@pytest.mark.parametrize("n", [60, 6000])
def test_cells_of_other_columns_of_an_array_are_not_read(order, dtype, n):
    X, centers = two_tested_columns()
    model = tc.IMM(reference=centers).fit(X)
    X = np.tile(X, (n // 60, 1))
    wanted = model.predict(X.astype(dtype))
    bad = X.astype(dtype, order=order)
    bad[3, 1], bad[n - 1, 3] = np.nan, np.inf
    if dtype is object:
        bad[5, 1] = "text"
    np.testing.assert_array_equal(model.predict(bad), wanted)
    bad[n - 2, 2] = np.nan
    with pytest.warns(UserWarning, match=r"had none: column x2 has 1 missing cell\. Such"):
        assert (model.predict(bad) == wanted)[: n - 2].all()
    bad[n - 2, 2] = np.inf
    message = rf"column x2 has 1 inf, the first in row {n - 2} \(rows"
    with pytest.raises(ValueError, match=message) as caught:
        model.predict(bad)
    assert "x1" not in str(caught.value), "only tested columns are named"


def test_score_reads_all_columns(fitted):
    model, X = fitted
    frame = pl.DataFrame(X, schema=NAMES)
    with pytest.raises(ValueError, match="'noise'"):
        model.score(frame.drop("noise"))
    with pytest.raises(ValueError, match=r"column 'noise' has 60 inf"):
        model.score(frame.with_columns(noise=np.inf))


def test_a_tree_without_tests_needs_no_column():
    model = tc.IMM(1).fit(pl.DataFrame({"a": [1.0, 1.0]}))
    other = pl.DataFrame({"b": ["x", "y", "z"]})
    assert model.predict(other).tolist() == [0, 0, 0]
    assert model.predict(other.lazy()).tolist() == [0, 0, 0]
    assert model.predict(pd.DataFrame({"b": ["x", "y"]})).tolist() == [0, 0]


def test_sparse_cells_of_other_columns_are_not_read():
    X, _ = two_tested_columns()
    X = np.abs(X) + 0.1
    model = tc.ObliqueTree(3, metric="cosine", alpha=1.0, random_state=0).fit(sp.csr_array(X))
    unused = np.setdiff1d(np.arange(4), model.tree_.tested_features)
    assert len(unused), "a penalty this high leaves columns out"
    bad = X.copy()
    bad[7, unused[0]] = np.nan
    np.testing.assert_array_equal(model.predict(sp.csr_array(bad)), model.predict(X))
    with pytest.raises(ValueError, match="NaN"):
        model.score(sp.csr_array(bad))
    bad[8, model.tree_.tested_features[0]] = np.inf
    with pytest.raises(ValueError, match="row 8"):
        model.predict(sp.csr_array(bad))


@pytest.fixture(scope="module")
def douglas() -> tuple[tc.Douglas, pl.DataFrame]:
    X, _ = two_tested_columns()
    frame = pl.DataFrame(X, schema=NAMES)
    mask = [True, False, True, False]
    return tc.Douglas(3, feature_mask=mask, max_iter=20, random_state=0).fit(frame), frame


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "arrow"])
def test_douglas_reads_the_columns_that_it_cuts(douglas, kind):
    model, frame = douglas
    used = {"income": frame["income"].to_numpy(), "age": frame["age"].to_numpy()}
    others = {"noise": [None] * 60, "city": ["Łódź"] * 60}
    for given in (frames(used | others)[kind], frames(used)[kind]):
        np.testing.assert_array_equal(model.predict_proba(given), model.predict_proba(frame))
        np.testing.assert_array_equal(model.predict(given), model.labels_)
        np.testing.assert_array_equal(model.apply(given), model.apply(frame))
        assert model.explain(given) == model.explain(frame)
    with pytest.raises(ValueError, match=r"lacks 1 of the 2 columns that are needed.*'income'"):
        model.predict(frames({"age": used["age"]})[kind])


def test_douglas_checks_the_cells_that_it_reads(douglas):
    model, frame = douglas
    bad = frame.with_columns(noise=np.nan, city=np.inf)
    np.testing.assert_array_equal(model.predict(bad), model.labels_)
    with pytest.raises(ValueError, match="column 'age' has 60 NaN"):
        model.predict(frame.with_columns(age=np.nan))
    # The objective and further training take all columns.
    for call in (model.score, model.partial_fit):
        with pytest.raises(ValueError, match="'noise' has 60 NaN"):
            call(bad)
