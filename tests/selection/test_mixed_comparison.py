"""compare on tables with text and gaps."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.utils import get_tags

import treeclust_rs as tc
from treeclust_rs.metrics import agreement, kmeans_cost
from treeclust_rs.selection.comparison import default_methods


def frame_of(n: int = 90, *, gaps: bool = True) -> pl.DataFrame:
    rng, group = np.random.default_rng(0), np.arange(n) % 3
    frame = pl.DataFrame(
        {
            "age": rng.normal(20.0 + 25.0 * group, 5.0),
            "town": [("n", "e", "s", "w")[(g + (rng.random() < 0.2)) % 4] for g in group],
        }
    )
    if not gaps:
        return frame
    return frame.with_columns(
        pl.when(pl.Series(rng.random(n) > 0.1)).then(pl.col(name)).alias(name)
        for name in frame.columns
    )


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_what_takes_such_a_table_is_compared(gaps):
    frame = frame_of(gaps=gaps)
    found = tc.compare(frame, None, 3, scale="standard", random_state=0)
    takes = {
        type(method).__name__
        for method in default_methods()
        if get_tags(method).input_tags.allow_nan
    }
    assert {name.partition("(")[0] for name in found.table["method"]} == takes
    assert {"IMM", "ExKMC", "Kauri", "KMeansTree", "SpExTree"} <= takes
    units = found.models[0].scale_
    free = kmeans_cost(frame, found.reference_labels, scale=units)
    for row, model in zip(found.table.iter_rows(named=True), found.models, strict=True):
        cost = kmeans_cost(frame, model.labels_, scale=units)
        assert row["cost_ratio"] == pytest.approx(cost / free, rel=1e-9)
        assert row["agreement"] == agreement(model.labels_, found.reference_labels)


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_other_packages_get_the_encoded_table_and_the_row_says_so(gaps):
    frame = frame_of(gaps=gaps)
    methods = [tc.IMM(), KMeans(3, n_init=1), AgglomerativeClustering(3), np.arange(90) % 3]
    found = tc.compare(frame, methods, 3, scale="standard", random_state=0)
    how = "encoded, gaps filled" if gaps else "encoded"
    names = found.table["method"].to_list()
    assert names[0] == "IMM" and names[3] == "labels"
    assert all(name.endswith(f" ({how})") for name in names[1:3]), names
    # Age, and a coordinate for each of four towns.
    assert found.models[1].cluster_centers_.shape == (3, 5)
    assert found.table["cost_ratio"][1] == pytest.approx(1.0, abs=0.2)


def test_a_method_that_refuses_the_table_is_named_in_the_error():
    with pytest.raises(TypeError, match=r"ExGreedy needs numbers.*BestTree, IMM, ExKMC"):
        tc.compare(frame_of(), [tc.ExGreedy()], 3)
    gaps = np.where(np.arange(60).reshape(30, 2) == 7, np.nan, np.arange(60.0).reshape(30, 2))
    with pytest.raises(ValueError, match=r"^ObliqueTree\S*: Input X contains NaN.*BestTree, IMM"):
        tc.compare(gaps, [tc.IMM(), tc.ObliqueTree()], 3)
    with pytest.raises(ValueError, match="contains inf"):
        tc.compare(frame_of().with_columns(age=np.inf), [tc.IMM()], 3)


def test_trees_and_models_are_measured_as_they_are():
    frame = frame_of()
    model = tc.ExKMC(3, max_leaves=4, random_state=0).fit(frame)
    found = tc.compare(frame, {"model": model, "tree": model.tree_}, 3, random_state=0)
    assert found.table["agreement"][0] == found.table["agreement"][1]
    assert found.table["leaves"].to_list() == [model.n_leaves_] * 2


def test_booleans_alone_are_numbers_to_all():
    frame = frame_of(gaps=False).select("age", flag=pl.col("town") == "n")
    found = tc.compare(frame, [tc.ExGreedy(), KMeans(3, n_init=1)], 3, random_state=0)
    assert "encoded" not in "".join(found.table["method"])
