"""Searches on tables with text and gaps: who takes them, and what the others say."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from test_mixed_comparison import frame_of

import treeclust_rs as tc
from treeclust_rs.metrics import kmeans_cost
from treeclust_rs.selection import choose_leaves, gap_statistic, silhouette, stability

FRAME = frame_of()
TAKES = [
    tc.ExKMC(3, scale="standard", n_jobs=1),
    tc.BestTree(3, scale="standard", effort="quick", n_jobs=1),
    tc.Kauri(3, scale="standard", n_jobs=1),
]


@pytest.mark.parametrize("estimator", TAKES, ids=lambda model: type(model).__name__)
def test_leaves_are_chosen_by_the_costs_of_the_model(estimator):
    found = choose_leaves(estimator, FRAME.lazy(), [3, 4, 6], random_state=0)
    assert found.table["n_leaves"][0] == 3
    model = found.best_estimator
    cost = getattr(model, "kernel_cost_", None)  # of the filled table
    if cost is None:
        cost = kmeans_cost(FRAME, model.labels_, scale=model)
    row = found.table.row(by_predicate=pl.col("n_leaves") == found.best_value, named=True)
    assert row["cost"] == pytest.approx(cost, rel=1e-9)
    alone = clone(estimator).set_params(max_leaves=3, random_state=model.random_state).fit(FRAME)
    assert found.table["cost"][0] == pytest.approx(getattr(alone, "kernel_cost_", alone.inertia_))


@pytest.mark.parametrize("estimator", TAKES, ids=lambda model: type(model).__name__)
def test_halves_without_some_levels_or_gaps_are_compared_in_silence(estimator):
    rare = np.where(np.arange(90) == 7, "rare", "usual")
    frame = FRAME.with_columns(rare=rare)
    with warnings.catch_warnings(action="error", category=UserWarning):
        found = stability(estimator, frame, [2, 3], n_repeats=3, random_state=0)
    assert found.table["n_clusters"].to_list() == [2, 3]
    assert found.table["stability"].is_between(0.2, 1).all()


@pytest.mark.parametrize("search", [gap_statistic, silhouette])
def test_searches_of_complete_numbers_say_which_take_other_tables(search):
    said = "choose_leaves and stability take what IMM takes"
    with pytest.raises(TypeError, match=f"not numbers: 'town'.*{search.__name__} needs.*{said}"):
        search(tc.IMM(), FRAME, [2, 3])
    with pytest.raises(ValueError, match=f"'age' has .* null.*{said}"):
        search(tc.IMM(), FRAME.select("age"), [2, 3])
    with pytest.raises(ValueError, match=r"'age' has .* null.*BestTree, IMM"):
        search(tc.ExGreedy(), FRAME.select("age"), [2, 3])
