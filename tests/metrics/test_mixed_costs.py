"""Costs of clusterings of tables with text and gaps."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from treeclust_rs.metrics import cost_ratio, kernel_cost, kmeans_cost, kmeans_scorer, surrogate_cost

FRAME = pl.DataFrame(
    {
        "x": [1.0, 3.0, None, 10.0, 14.0, 12.0],
        "town": ["a", "b", "a", None, "c", "c"],
        "flag": [True, True, False, False, None, False],
    }
)
LABELS = np.array([0, 0, 0, 1, 1, 1])


def test_a_missing_cell_costs_nothing_and_two_levels_are_one_apart():
    # x: means 2 and 12. Rows of n levels with shares p are 1/2 (1 - sum of p^2) of n apart.
    town = 3 * (1 - 5 / 9) / 2 + 2 * 0.0
    flag = 3 * (1 - 5 / 9) / 2 + 2 * 0.0
    x = 1.0 + 1.0 + 4.0 + 4.0 + 0.0
    expected = x + town + flag
    assert kmeans_cost(FRAME, LABELS) == pytest.approx(expected)
    assert kmeans_cost(FRAME.to_pandas(), LABELS) == pytest.approx(expected)
    assert kmeans_cost(FRAME.to_arrow(), LABELS) == pytest.approx(expected)
    assert kernel_cost(FRAME, LABELS, kernel="linear") == pytest.approx(expected)
    halves = kmeans_cost(FRAME, LABELS, scale=[2.0, 1.0, 1.0])
    assert halves == pytest.approx(x / 4 + town + flag)
    # Rows counted twice, and rows of noise.
    twice = pl.concat([FRAME, FRAME])
    assert kmeans_cost(twice, np.tile(LABELS, 2)) == pytest.approx(2 * expected)
    assert kmeans_cost(FRAME, LABELS, np.full(6, 2.0)) == pytest.approx(2 * expected)
    noise = np.where(np.arange(6) == 2, -1, LABELS)
    assert kmeans_cost(FRAME, noise) == pytest.approx(x + 2 * (1 - 2 / 4) / 2)


def test_arrays_with_nan():
    rows = np.array([[1.0, np.nan], [3.0, 5.0], [np.nan, 9.0]])
    assert kmeans_cost(rows, [0, 0, 0]) == pytest.approx(2.0 + 8.0)
    assert surrogate_cost(rows, [0, 0, 1], [[0.0, 0.0], [1.0, 1.0]]) == 1 + 9 + 25 + 64
    for bad in (np.inf, -np.inf):
        rows[1, 1] = bad
        with pytest.raises(ValueError, match="contains inf: column x1 has 1 inf, the first in row"):
            kmeans_cost(rows, [0, 0, 0])


@pytest.mark.parametrize("criterion", ["kmeans", "kmedians"])
def test_costs_are_those_of_models(criterion):
    model = tc.ExKMC(2, max_leaves=3, criterion=criterion, random_state=0).fit(FRAME)
    cost = surrogate_cost(FRAME, model.labels_, model.cluster_centers_, criterion=criterion)
    assert cost == pytest.approx(model.inertia_)
    with pytest.raises(ValueError, match="centers have 3 columns; the data have 6"):
        surrogate_cost(FRAME, LABELS, np.zeros((2, 3)))


def test_ratio_and_scorer():
    model = tc.IMM(2, scale="standard", random_state=0).fit(FRAME)
    ratio = cost_ratio(FRAME, model.labels_, model.reference_labels_, scale=model)
    assert ratio == pytest.approx(model.cost_ratio_)
    assert kmeans_scorer(scale=model)(model, FRAME) == pytest.approx(-model.inertia_)


def test_columns_of_no_kind_are_refused():
    with pytest.raises(TypeError, match="'list'"):
        kmeans_cost(pl.DataFrame({"list": [[1], [2]]}), [0, 1])
