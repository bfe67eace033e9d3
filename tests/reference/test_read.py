"""What `reference=` takes: labels with noise among strings, and what is no estimator."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans

import treeclust_rs as tc
from small_models import MODELS, blobs

WORDS = np.repeat(["a", "b", "c"], 20)
EXPLAINING = [name for name, model in MODELS.items() if hasattr(model, "reference")]


class Duck:
    """Clusters, and has no scikit-learn tags."""

    def fit(self, X):
        self.labels_ = np.repeat([0, 1, 2], 20)
        return self


@pytest.mark.parametrize("name", EXPLAINING)
@pytest.mark.parametrize("duck", [Duck(), Duck().fit(None)])
def test_what_is_no_estimator_is_named(name, duck):
    model = MODELS[name]
    model = type(model)(**(model.get_params(deep=False) | {"reference": duck}))
    with pytest.raises(
        TypeError, match="reference is a Duck, which is not a scikit-learn estimator"
    ):
        model.fit(blobs())


@pytest.mark.parametrize("name", EXPLAINING)
def test_noise_among_strings_is_left_out(name):
    X, marked = blobs(), WORDS.astype(object)
    marked[::7] = -1
    kind, kept = type(MODELS[name]), marked != -1
    as_text = marked.astype(str)  # what NumPy and files make of it
    assert "-1" in as_text.tolist()
    for reference in (
        *(marked, marked.tolist(), pl.Series(marked, dtype=pl.Object)),
        *(as_text, pl.Series(as_text)),
    ):
        model = kind(reference=reference, random_state=0).fit(X)
        plain = kind(reference=WORDS[kept], random_state=0).fit(X[kept])
        assert model.classes_.tolist() == ["a", "b", "c"]
        np.testing.assert_array_equal(model.predict(X), plain.predict(X))
        assert model.labels_.dtype.kind == model.predict(X).dtype.kind == "U"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (["a", 5, *WORDS[2:]], "and not both. Row 0 holds 'a'. Row 1 holds 5; mark noise by -1"),
        ([5, *WORDS[1:]], "and not both. Row 1 holds 'a'. Row 0 holds 5; mark"),
        (
            [None, *WORDS[1:]],
            "has no label in row 0 .counting from 0.. Mark rows",
        ),
        ([*WORDS[:4], np.nan, *WORDS[5:]], "has no label in row 4 "),
        (np.array([None] * 60), "has no label in row 0 "),
        (pd.Series([*WORDS[:5], pd.NA, *WORDS[6:]], dtype="string"), "has no label in row 5 "),
        ([1.5, *WORDS[1:]], "and not both. Row 1 holds 'a'. Row 0 holds 1.5; mark noise by -1"),
    ],
)
def test_other_mixtures_are_refused(reference, message):
    with pytest.raises(TypeError, match=message):
        tc.IMM(reference=reference).fit(blobs())


def test_the_name_of_a_column_is_no_reference():
    with pytest.raises(TypeError, match=r"Got 'town'; .* are given as frame\['town'\]\.$"):
        tc.IMM(reference="town").fit(blobs())
    with pytest.raises(TypeError, match=r"Got KMeans; an estimator is given as an instance"):
        tc.IMM(reference=KMeans).fit(blobs())


def test_a_column_of_labels_is_told_from_centers():
    labels = np.arange(6) % 2
    X = np.arange(12.0).reshape(6, 2) ** 2
    for reference, way in (
        (labels[:, None], r"reference\.ravel\(\)"),
        (pl.DataFrame({"label": labels}), "give the column itself"),
    ):
        with pytest.raises(ValueError, match=rf"shape \(6, 1\).*one dimension: {way}"):
            tc.IMM(reference=reference).fit(X)


def test_a_model_read_from_a_file_finds_as_many_clusters_as_its_lost_reference(tmp_path):
    X = np.random.default_rng(0).random((60, 3))
    model = tc.ExKMC(reference=KMeans(3, random_state=0).fit_predict(X)).fit(X)
    model.save(tmp_path / "model.json")
    again = tc.load(tmp_path / "model.json")
    assert (again.n_clusters, again.reference) == (3, None)
    assert again.unsaved_params == {"reference"} == clone(again).unsaved_params
    with pytest.warns(UserWarning, match="read from a file, which does not hold its reference"):
        assert again.fit(X).n_clusters_ == 3


@pytest.mark.parametrize(
    "reference", [["x", "y"] * 30, [True, False] * 30, KMeans(2, random_state=0), None]
)
def test_a_lost_reference_is_told_until_it_is_set(reference, tmp_path):
    X = np.random.default_rng(0).random((60, 3))
    model = tc.BestTree(
        n_clusters=2, objective="labels", reference=reference, effort="quick", random_state=0
    ).fit(X)
    model.save(tmp_path / "model.json")
    again = tc.load(tmp_path / "model.json")
    assert again.unsaved_params == (frozenset() if reference is None else {"reference"})
    again.save(tmp_path / "again.json")
    assert tc.load(tmp_path / "again.json").unsaved_params == again.unsaved_params
    assert tc.load(tmp_path / "model.json").predict(X).tolist() == model.predict(X).tolist()
    again.set_params(reference=reference)
    assert not again.unsaved_params
    assert again.fit(X).labels_.tolist() == model.labels_.tolist()
