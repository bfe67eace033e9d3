"""`rename_clusters`: other labels in everything that a model writes."""

import pickle

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from small_models import MODELS, blobs, make
from treeclust_rs.export import to_graphviz

RENAMED = [name for name in MODELS if name != "KernelKMeans"]
NEW = {0: "Loyal", 1: "New", 2: "Gone & back"}


def rules_of(model):
    return (model if hasattr(model, "table_") else model.tree_).rules()


@pytest.mark.parametrize("name", RENAMED)
def test_everything_has_the_new_labels(name, tmp_path):
    X = blobs()
    frame = pl.DataFrame(X, schema=["x0", "x1", "x2"])
    old = make(name).fit(frame)
    new = old.rename_clusters(NEW)
    assert old.classes_.tolist() == [0, 1, 2]  # the model itself stays
    assert new.classes_.tolist() == list(NEW.values())
    labels = np.array(list(NEW.values()))[old.labels_]
    np.testing.assert_array_equal(new.labels_, labels)
    new.save(tmp_path / "model.json")
    for model in (new, tc.load(tmp_path / "model.json"), pickle.loads(pickle.dumps(new))):
        np.testing.assert_array_equal(
            model.predict(frame), np.array(list(NEW.values()))[old.predict(frame)]
        )
        of_rules = pl.Series(rules_of(old)["cluster"]).replace_strict(NEW).to_list()
        assert rules_of(model)["cluster"].to_list() == of_rules
        found = frame.select(model.to_polars()).to_series()
        was = frame.select(old.to_polars()).to_series()
        assert found.to_list() == was.replace_strict(NEW).to_list()
        assert model.explain(frame[:1])[0].startswith(f"cluster {model.predict(frame[:1])[0]}")
        result = model.table_ if name == "Douglas" else model.tree_
        text, page = str(result), result._repr_html_()
        for label in set(of_rules):
            assert label in text
            assert label.replace("&", "&amp;") in page
    if name != "Douglas":
        assert "Loyal" in to_graphviz(new)
        assert new.score(frame) == old.score(frame)


def test_the_reference_follows():
    X, labels = blobs(), np.repeat([0, 1, 2], 20)
    labels[:2] = -1
    model = tc.KernelIMM(reference=labels, random_state=0).fit(X)
    renamed = model.rename_clusters({1: "b"})
    assert renamed.reference_labels_[:3].tolist() == [-1, -1, "0"]
    assert renamed.reference_labels_[20] == "b"
    assert renamed.rename_clusters({"0": 5, "b": 6, "2": 7}).reference_labels_[[0, 2]].tolist() == [
        -1,
        5,
    ]
    # Labels with noise among strings are a reference again.
    again = tc.KernelIMM(reference=renamed.reference_labels_, random_state=0).fit(X)
    assert again.classes_.tolist() == ["0", "2", "b"]
    np.testing.assert_array_equal(again.reference_labels_, renamed.reference_labels_)


def test_a_mapping_may_name_some_clusters():
    model = make("IMM").fit(blobs())
    assert model.rename_clusters({}).classes_.tolist() == [0, 1, 2]
    assert model.rename_clusters({np.int64(1): "b"}).classes_.tolist() == ["0", "b", "2"]
    assert model.rename_clusters({0: 10}).classes_.tolist() == [10, 1, 2]
    swapped = model.rename_clusters({0: 1, 1: 0})
    np.testing.assert_array_equal(swapped.labels_, np.array([1, 0, 2])[model.labels_])


@pytest.mark.parametrize("name", ["IMM", "Kauri", "Douglas"])
@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ({7: "a", 0: "b"}, ValueError, "no cluster 7: the tree's 3 clusters are 0, 1, 2"),
        ({"0": "a"}, ValueError, "no cluster '0'"),
        ({True: "a"}, ValueError, "no cluster True"),
        ({0: "a", 2: "a"}, ValueError, "clusters 0 and 2 would both be called 'a'"),
        ({0: 2}, ValueError, "clusters 0 and 2 would both be called 2"),
        ({0: "1"}, ValueError, "clusters 0 and 1 would both be called '1'"),
        ({0: "a", 1: 5}, TypeError, "all strings or all integers, but would be 'a', 5, '2'"),
        ({0: 1.5}, TypeError, "a string or an integer. Got 1.5"),
        ({0: None}, TypeError, "a string or an integer. Got None"),
        ({0: True}, TypeError, "a string or an integer. Got True"),
        ({0: -1}, ValueError, "cannot be called -1, which marks noise"),
        ({0: "-1"}, ValueError, "cannot be called -1, which marks noise"),
        ({0: "\ud800"}, ValueError, "not valid Unicode"),
        (["a", "b", "c"], TypeError, "given as a mapping"),
    ],
)
def test_wrong_labels_are_refused(name, names, error, message):
    model = make(name).fit(blobs())
    with pytest.raises(error, match=message):
        model.rename_clusters(names)


def test_labels_stay_in_smaller_models_and_in_partial_fit():
    X = blobs()
    kauri = make("Kauri").fit(X).rename_clusters({0: "Loyal"})
    assert kauri.truncate(2).classes_.tolist() == ["Loyal", "1"]
    assert set(kauri.truncate(2).labels_) <= {"Loyal", "1"}
    douglas = make("Douglas").fit(X).rename_clusters({0: "Loyal"})
    douglas.partial_fit(X)
    assert douglas.classes_.tolist() == ["Loyal", "1", "2"]
    assert set(douglas.labels_) <= {"Loyal", "1", "2"}
    assert make("IMM").fit(X).rename_clusters(NEW).fit(X).classes_.tolist() == [0, 1, 2]


def test_a_douglas_file_with_wrong_labels_is_refused(tmp_path):
    path = tmp_path / "model.json"
    make("Douglas").fit(blobs()).rename_clusters(NEW).save(path)
    text = path.read_text()
    for wrong, message in (
        ('["Loyal", "New"]', "classes in the model file has 2 entries; 3"),
        ('["Loyal", "New", "New"]', "must differ"),
        ('["Loyal", "New", 3]', "all int or all str"),
    ):
        path.write_text(text.replace('["Loyal", "New", "Gone & back"]', wrong))
        with pytest.raises(ValueError, match=message):
            tc.load(path)
