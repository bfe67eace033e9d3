"""Selection.plot: the numbers of the table, as drawn."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine

import treeclust_rs as tc
from treeclust_rs.selection import Selection, choose_leaves, gap_statistic, silhouette, stability

X = load_wine().data
SCALED = (X - X.mean(axis=0)) / X.std(axis=0)
TREE = tc.ExKMC(3, base_tree=None, random_state=0, n_jobs=1)


def ring_of(ax):
    """Place and words of the mark."""
    (line,) = [line for line in ax.lines if line.get_markerfacecolor() == "none"]
    return (*line.get_xdata(), *line.get_ydata()), line.get_label()


@pytest.mark.parametrize(
    ("search", "estimator", "values", "words"),
    [
        (silhouette, KMeans(n_init=1), [2, 3, 4], "clusters: 3"),
        (gap_statistic, KMeans(n_init=1), [1, 2, 3, 4, 5], "clusters: 3"),
        (stability, KMeans(n_init=1), [2, 3, 4], "clusters: 3"),
        (choose_leaves, TREE, None, "leaves: 4"),
    ],
)
@pytest.mark.filterwarnings("ignore:The gap still rises")
def test_the_choice_is_marked(pyplot, search, estimator, values, words):
    options = {"n_references": 3} if search is gap_statistic else {}
    found = search(estimator, SCALED, values, random_state=0, **options)
    ax = found.plot()
    x, y = found.table.to_series().to_list(), found.table[found.by].to_list()
    curve = ax.lines[0]
    np.testing.assert_allclose(curve.get_xdata(), x)
    np.testing.assert_allclose(curve.get_ydata(), y)
    place = x.index(found.best_value)
    assert ring_of(ax) == ((x[place], y[place]), words)
    if "error" in found.table:
        (bars,) = ax.collections
        low, high = np.array([segment[:, 1] for segment in bars.get_segments()]).T
        np.testing.assert_allclose((high - low) / 2, found.table["error"])
    assert found.plot(ax) is ax


def test_gaps_of_the_table_are_gaps_of_the_line(pyplot):
    table = pl.DataFrame({"k": [2, 3, 4], "silhouette": [0.5, None, 0.4]})
    ax = Selection(2, KMeans(2), table, "silhouette").plot()
    np.testing.assert_equal(ax.lines[0].get_ydata(), [0.5, np.nan, 0.4])
    table = pl.DataFrame({"k": [1, 2], "gap": [0.5, np.inf], "error": [0.1, 0.0]})
    Selection(2, KMeans(2), table, "gap").plot().figure.canvas.draw()


def test_values_that_are_no_whole_numbers(pyplot):
    table = pl.DataFrame({"gamma": [0.01, 0.1, 10.0], "stability": [0.1, 0.9, 0.3]})
    ax = Selection(0.1, tc.Kauri(), table, "stability").plot()
    assert ax.get_xscale() == "log"
    assert ring_of(ax) == ((0.1, 0.9), "gamma: 0.1")
    narrow = pl.DataFrame({"alpha": [0.25, 0.5], "stability": [0.1, 0.9]})
    ax = Selection(0.5, tc.ObliqueTree(), narrow, "stability").plot()
    assert ax.get_xscale() == "linear"
    assert any(0.25 < tick < 0.5 for tick in ax.get_xticks())


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    table = pl.DataFrame({"k": [2], "silhouette": [0.5]})
    with pytest.raises(ImportError, match=r"Drawing a selection needs matplotlib: pip install"):
        Selection(2, KMeans(2), table, "silhouette").plot()


def test_the_values_as_text():
    found = choose_leaves(TREE, SCALED)
    assert repr(found).startswith("Selection: best n_leaves 4, of 5 tried with ExKMC\n")
    assert "<b>4</b>" in found._repr_html_()
