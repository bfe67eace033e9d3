"""Estimators as text and in notebooks."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.cluster import KMeans

import treeclust_rs as tc

LABELS = np.arange(60) % 3
X = np.array([[0, 0], [9, 0], [0, 9]])[LABELS] + np.random.default_rng(0).normal(size=(60, 2))
CENTERS = X[:3]


@pytest.mark.parametrize(
    ("estimator", "text"),
    [
        (tc.ExKMC(reference=LABELS), "ExKMC(reference=<int64 array of shape (60,)>)"),
        (tc.IMM(reference=CENTERS), "IMM(reference=<float64 array of shape (3, 2)>)"),
        (tc.IMM(reference=LABELS.tolist()), "IMM(reference=<list of 60>)"),
        (tc.SpExTree(reference=pl.Series(LABELS)), "SpExTree(reference=<Series of shape (60,)>)"),
        (tc.IMM(reference=pd.DataFrame(X)), "IMM(reference=<DataFrame of shape (60, 2)>)"),
        (tc.IMM(reference=KMeans(3)), "IMM(reference=KMeans(n_clusters=3))"),
        (
            tc.ObliqueTree(init=tc.IMM(reference=LABELS)),
            "ObliqueTree(init=IMM(reference=<int64 array of shape (60,)>))",
        ),
        (
            tc.Douglas(feature_mask=[True, False], init=np.zeros((2, 1))),
            "Douglas(feature_mask=[True, False], init=<float64 array of shape (2, 1)>)",
        ),
        (tc.ExKMC(3, max_leaves=6), "ExKMC(max_leaves=6, n_clusters=3)"),
    ],
)
def test_text_has_no_data(estimator, text):
    assert " ".join(repr(estimator).split()) == str(text)


def test_text_is_that_of_scikit_learn_where_there_is_no_data():
    many = tc.Douglas(3, gemini="mmd2_ova", n_cuts=2, max_iter=7, learning_rate=0.5, solver="sgd")
    lines = repr(many).splitlines()
    assert len(lines) > 1
    assert all(len(line) <= 80 for line in lines)
    assert lines[1].startswith("        ")
    with config_context(print_changed_only=False):
        assert "scale=None" in repr(tc.IMM(2))


def test_printing_changes_nothing():
    model = tc.IMM(reference=LABELS).fit(X)
    before = dict(vars(model))
    repr(model), model._repr_html_()
    assert vars(model) == before
    assert model.reference is LABELS


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        (tc.ExKMC(reference=LABELS, max_leaves=5), "ClusterTree: "),
        (tc.ObliqueTree(reference=LABELS), "ClusterTree: "),
        (tc.Douglas(3, max_iter=20, random_state=0), "CellTable: "),
    ],
)
def test_notebooks_show_parameters_and_what_was_fitted(model, shown):
    for html in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert type(model).__name__ in html and "Not fitted" in html
        assert shown not in html
    model.fit(X)
    for html in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "<span>Fitted</span>" in html
        assert shown in html
    assert "array([" not in html
    with config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
