"""Warnings about the rows to predict name the user's line, whichever method was called."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import treeclust_rs as tc

FRAME = pl.DataFrame({"age": [40.0] * 60, "region": ["north", "south", "west"] * 20})
NEW = {
    "levels that .* did not see": FRAME[:6].with_columns(region=pl.lit("mars")),
    "gaps where the fit had none": FRAME[:6].with_columns(region=pl.lit(None, dtype=pl.String)),
}
MODELS = {
    "IMM": tc.IMM(reference=[0, 1, 2] * 20, scale="standard"),
    "Kauri": tc.Kauri(3, scale="standard"),
    "KernelExpand": tc.KernelExpand(
        kernel="linear", reference=[0, 1, 2] * 20, base_tree=None, scale="standard"
    ),
}


def place_of(call: Callable[[], Any], message: str) -> str:
    """Return the file that the one warning names."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    found = [item for item in caught if pl.Series([str(item.message)]).str.contains(message)[0]]
    assert len(found) == 1, [str(item.message) for item in caught]
    return found[0].filename


@pytest.mark.parametrize("message", NEW)
@pytest.mark.parametrize("method", ["predict", "apply", "explain", "score"])
@pytest.mark.parametrize("name", MODELS)
def test_methods_name_the_users_line(name, method, message):
    model = MODELS[name].fit(FRAME)
    new = NEW[message]
    assert place_of(lambda: getattr(model, method)(new), message) == __file__
    assert place_of(lambda: getattr(model, method)(new.lazy()), message) == __file__


@pytest.mark.parametrize("message", NEW)
def test_calls_through_others_name_the_users_line(message):
    model, new = MODELS["IMM"].fit(FRAME), NEW[message]
    assert place_of(lambda: make_pipeline(model).predict(new), message) == __file__
    labels = np.arange(len(new)) % 3
    calls = [
        lambda: tc.compare(new, {"model": model}, reference=labels),
        lambda: tc.compare(new, {"tree": model.tree_}, reference=labels),
        lambda: MODELS["Kauri"].fit(FRAME).objective(new),
    ]
    for call in calls:
        assert place_of(call, message) == __file__


def test_the_line_is_that_of_the_call():
    model = MODELS["IMM"].fit(FRAME)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(NEW["levels that .* did not see"])
        line = inspect.currentframe().f_lineno - 1
    assert [item.lineno for item in caught] == [line]


def test_names_that_the_fit_had_and_the_rows_have_not():
    X = np.random.default_rng(0).normal(size=(40, 2))
    named = tc.IMM(2, random_state=0).fit(pl.DataFrame(X, schema=["a", "b"]))
    for method in ("predict", "explain", "score"):
        call = getattr(named, method)
        assert place_of(lambda call=call: call(X), "does not have valid feature") == __file__
    unnamed = tc.IMM(2, random_state=0).fit(X)
    frame = pl.DataFrame(X, schema=["a", "b"])
    for method in ("predict", "explain", "score"):
        call = getattr(unnamed, method)
        assert place_of(lambda call=call: call(frame), "X has feature names, but") == __file__


def test_scikit_learns_loops_name_the_users_line():
    X = np.random.default_rng(0).normal(size=(40, 2))
    gaps = X.copy()
    gaps[0, :] = np.nan  # in the rows of one test fold alone
    model = tc.KMeansTree(2, reference=(X[:, 0] > 0).astype(int), random_state=0).fit(X)

    class Fitted(type(model)):
        def fit(self, X, y=None):
            self.__dict__.update(model.__dict__)
            return self

    found = lambda: cross_val_score(Fitted(), gaps, cv=2)  # noqa: E731
    assert place_of(found, "gaps where the fit had none") == __file__
