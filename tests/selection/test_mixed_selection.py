"""Choosing clusters and leaves on tables with text, times and gaps."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

import treeclust_rs as tc
from treeclust_rs.datasets import make_customers
from treeclust_rs.selection import choose_leaves, gap_statistic, silhouette, stability

GAPS = make_customers(300, random_state=0).select("region", "plan", "age", "newsletter", "signup")
WHOLE = GAPS.drop_nulls()


def distances(frame: pl.DataFrame, *, manhattan: bool = False) -> np.ndarray:
    """Return the distances of rows with unit 1: two levels are 1 apart, days in microseconds."""
    total = np.zeros((len(frame), len(frame)))
    for column in frame.get_columns():
        if column.dtype in (pl.String, pl.Enum, pl.Boolean):
            cells = column.cast(pl.String).to_numpy()
            total += cells[:, None] != cells
            continue
        cells = column.to_physical().to_numpy().astype(float)
        cells = cells * (86_400_000_000 if column.dtype == pl.Date else 1)
        apart = np.abs(cells[:, None] - cells)
        total += apart if manhattan else apart**2
    return total if manhattan else np.sqrt(total)


@pytest.mark.parametrize("criterion", ["kmeans", "kmedians"])
def test_silhouettes_are_those_of_the_distances_of_the_costs(criterion):
    frame = WHOLE.drop("signup").with_columns(pl.col("age") / 20)  # no column outweighs the others
    model = tc.ExKMC(criterion=criterion, random_state=0)
    found = silhouette(model, frame, [2, 3])
    apart = distances(frame, manhattan=criterion == "kmedians")
    for k, score in found.table.select("k", "silhouette").rows():
        labels = tc.ExKMC(k, criterion=criterion, random_state=0).fit(frame).labels_
        expected = silhouette_score(apart, labels, metric="precomputed")
        assert score == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore:Column 'signup'")
def test_silhouettes_of_kauri_are_those_of_its_kernel():
    found = silhouette(tc.Kauri(random_state=0), WHOLE, [3])
    labels = tc.Kauri(3, random_state=0).fit(WHOLE).labels_
    expected = silhouette_score(distances(WHOLE), labels, metric="precomputed")
    assert found.table["silhouette"][0] == pytest.approx(expected)


def test_gaps_are_refused_by_the_silhouette_before_any_fit():
    class Unfit(tc.ExKMC):
        def fit(self, *_):
            raise AssertionError

    with pytest.raises(ValueError, match=r"whole rows, .* 'region' has .* stability\(\) takes"):
        silhouette(Unfit(scale="standard"), GAPS, [2, 3])
    with pytest.raises(TypeError, match="silhouette needs numbers"):
        silhouette(KMeans(), WHOLE, [2, 3])


@pytest.mark.filterwarnings("ignore:The gap still rises")
def test_the_gap_statistic_draws_numbers_and_times():
    with pytest.raises(TypeError, match="ranges of the columns, and column 'region' holds text"):
        gap_statistic(tc.IMM(scale="standard"), WHOLE, [2, 3])
    holes = GAPS.select("age", "signup")
    with pytest.raises(ValueError, match=r"column 'age' has .* missing cells"):
        gap_statistic(tc.IMM(scale="standard"), holes, [2, 3])
    found = gap_statistic(
        tc.IMM(scale="standard"), holes.drop_nulls(), [1, 2, 3], n_references=3, random_state=0
    )
    assert np.isfinite(found.table["gap"].to_numpy()).all()


def test_stability_and_leaves_take_gaps_and_text():
    model = tc.ExKMC(scale="standard", random_state=0)
    found = stability(model, GAPS, [2, 3], n_repeats=2, random_state=0)
    assert found.table["stability"].is_between(0, 1, closed="right").all()
    tree = tc.ExKMC(3, base_tree=None, scale="standard")
    found = choose_leaves(tree, GAPS.lazy(), leaves=[3, 4, 5], random_state=0)
    assert found.best_estimator.n_leaves_ == found.best_value


@pytest.mark.filterwarnings("ignore:The cost has no knee")
def test_leaves_of_kauri_are_compared_by_the_cost_of_the_observed_cells():
    found = choose_leaves(tc.Kauri(3, scale="standard"), GAPS, leaves=[3, 4, 5], random_state=0)
    costs = [
        tc.Kauri(3, max_leaves=m, scale="standard", random_state=0).fit(GAPS).inertia_
        for m in found.table["n_leaves"]
    ]
    assert found.table["cost"].to_list() == pytest.approx(costs)
    assert found.best_estimator.kernel_cost_ > found.best_estimator.inertia_
