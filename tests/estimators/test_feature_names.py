"""`fit(X, feature_names=...)`: names of the columns of arrays and sparse matrices."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

import treeclust_rs as tc
from small_models import MODELS, blobs, make, save

NAMES = ["income", "tenure", "age"]
TREES = [name for name in MODELS if name not in ("Douglas", "KernelKMeans")]


def rules_of(model):
    return (model if hasattr(model, "table_") else model.tree_).rules()["rule"].to_list()


@pytest.mark.parametrize("name", MODELS)
def test_given_names_are_written_and_arrays_stay_positional(name, tmp_path):
    X = blobs()
    frame = pl.DataFrame(X, schema=NAMES)
    model, bare = make(name).fit(X, feature_names=NAMES), make(name).fit(X)
    of_frame = make(name).fit(frame)
    np.testing.assert_array_equal(model.labels_, bare.labels_)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 3
    save(model, tmp_path / "model.json")
    for fitted in (model, tc.load(tmp_path / "model.json")):
        assert not hasattr(fitted, "feature_names_in_")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            expected = bare.predict(X)
            np.testing.assert_array_equal(fitted.predict(X), expected)
            # Frames are matched by name, as a polars expression would be.
            np.testing.assert_array_equal(fitted.predict(frame.select(NAMES[::-1])), expected)
        if name == "KernelKMeans":
            continue
        assert rules_of(fitted) == rules_of(of_frame)
        assert fitted.explain(X[:3]) == of_frame.explain(frame[:3])
        assert set(fitted.to_polars().meta.root_names()) <= set(NAMES)
    # A new fit without names forgets them.
    again = model.fit(X)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        again.predict(frame)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (["a", "b"], ValueError, "There are 2 feature_names for 3 features"),
        (["a", "b", "a"], ValueError, "must differ from each other. 'a' is repeated"),
        (["a", 5, "c"], ValueError, "must be strings. Entry 1 is 5"),
        (["a", "b\ud800", "c"], ValueError, "not valid Unicode"),
        ("abc", TypeError, "must be a list of strings"),
        ({"a", "b", "c"}, TypeError, "must be a list of strings"),
        (5, TypeError, "must be a list of strings"),
    ],
)
def test_wrong_names_are_refused(name, names, error, message):
    model = make(name)
    with pytest.raises(error, match=message):
        model.fit(blobs(), feature_names=names)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("name", MODELS)
def test_names_beside_a_frame_must_be_its_own(name):
    frame = pd.DataFrame(blobs(), columns=NAMES)
    model = make(name).fit(frame, feature_names=NAMES)
    assert model.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match=r"'old' for column 2 .* X names it 'age'"):
        make(name).fit(frame, feature_names=["income", "tenure", "old"])


def test_a_frame_with_numbers_for_names_takes_them():
    frame = pd.DataFrame(blobs())
    model = make("IMM").fit(frame, feature_names=NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.predict(frame), model.labels_)


def test_sparse_columns_have_names_where_rows_are_left_out_too():
    X = np.abs(blobs())
    model = tc.ObliqueTree(3, metric="cosine", alpha=0.01, random_state=0)
    weight = np.ones(60)
    weight[:3] = 0.0
    model.fit(csr_array(X), sample_weight=weight, feature_names=NAMES)
    assert model.tree_.feature_names == tuple(NAMES)
    assert any(name in str(model.tree_) for name in NAMES)
    paths = model.alpha_path(csr_array(X), [0.01, 0.1], feature_names=NAMES)
    assert [path.tree_.feature_names for path in paths] == [tuple(NAMES)] * 2


@pytest.mark.parametrize("name", TREES)
def test_names_stay_in_smaller_and_renamed_models(name):
    model = make(name).fit(blobs(), feature_names=NAMES)
    smaller = [model.rename_clusters({0: "Loyal"})]
    if hasattr(model, "truncate"):
        smaller.append(model.truncate(max(model.tree_.n_base_leaves, 1)))
    for fitted in smaller:
        assert fitted.tree_.feature_names == tuple(NAMES)
        assert not hasattr(fitted, "feature_names_in_")


def test_partial_fit_keeps_the_names_of_its_first_rows():
    X = blobs()
    model = make("Douglas").partial_fit(X, feature_names=NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X, feature_names=NAMES).partial_fit(X)
    assert model.table_.feature_names == tuple(NAMES)
    assert not hasattr(model, "feature_names_in_")
    with pytest.raises(ValueError, match="'x' for column 0"):
        model.partial_fit(X, feature_names=["x", *NAMES[1:]])


def test_a_file_that_says_otherwise_is_refused(tmp_path):
    path = tmp_path / "model.json"
    make("IMM").fit(blobs(), feature_names=NAMES).save(path)
    text = path.read_text()
    assert '"names_given": true' in text
    path.write_text(text.replace('"names_given": true', '"names_given": "yes"'))
    with pytest.raises(ValueError, match=r"names_given .* must be true or false, not a string"):
        tc.load(path)


@pytest.mark.parametrize("name", ["feature_names", "classes", "threshold", "n_features"])
def test_a_tree_cannot_be_changed_by_hand(name):
    tree = make("IMM").fit(blobs(), feature_names=NAMES).tree_
    with pytest.raises(AttributeError, match=f"cannot be changed: its {name} are fixed"):
        setattr(tree, name, ["a", "b", "c"])
    assert isinstance(tree.classes, tuple)
    assert isinstance(tree.feature_names, tuple)
