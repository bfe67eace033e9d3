"""plot_cost_path: the costs as drawn, and the knee."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine, make_circles
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

import treeclust_rs as tc
from treeclust_rs.export import plot_cost_path

X = load_wine().data
SCALED = (X - X.mean(axis=0)) / X.std(axis=0)


def drawn(ax):
    """Lines of an axes by their words, places and values."""
    lines = {str(line.get_label()): line.get_xydata() for line in ax.lines}
    return {name: xy for name, xy in lines.items() if len(xy)}


@pytest.mark.parametrize(
    ("estimator", "knee"),
    [
        (tc.ExKMC(3, max_leaves=12, base_tree=None, random_state=0), 4),
        (tc.KMeansTree(3, max_leaves=8, random_state=0), 4),
        (tc.XRegressionTree(3, max_leaves=8, random_state=0), 4),
        (tc.IMM(3, random_state=0), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_costs_surrogate_reference_and_knee(pyplot, estimator, knee):
    model = estimator.fit(SCALED)
    ax = plot_cost_path(model)
    lines = drawn(ax)
    path = model.cost_path_
    np.testing.assert_allclose(lines["cost"], path.select("n_leaves", "inertia").to_numpy())
    surrogate = [line for line in ax.lines if len(line.get_xdata()) == path.height][1]
    np.testing.assert_allclose(surrogate.get_ydata(), path["cost"])
    np.testing.assert_allclose(lines["reference"][:, 1], model.reference_inertia_)
    rings = [name for name in lines if name.startswith("knee")]
    assert rings == ([] if knee is None else [f"knee: {knee} leaves"])
    if knee is not None:
        assert lines[rings[0]][0] == pytest.approx([knee, model.truncate(knee).inertia_])
    assert model.plot_cost_path(ax) is ax


def test_mistakes_have_an_axis_of_their_own(pyplot):
    labels = load_wine().target
    model = tc.BestTree(3, max_leaves=6, objective="labels", reference=labels, effort="quick")
    ax = plot_cost_path(model.fit(SCALED))
    (right,) = [axes for axes in ax.figure.axes if axes is not ax]
    assert right.get_ylabel() == "mistakes"
    np.testing.assert_array_equal(right.lines[0].get_ydata(), model.cost_path_["cost"])
    assert "mistakes (right)" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_knee_is_among_trees_with_all_clusters(pyplot):
    """From one leaf on it would be that of three leaves."""
    model = tc.ExKMC(3, max_leaves=12, base_tree=None, random_state=0).fit(SCALED)
    costs = model.cost_path_["inertia"].to_numpy()
    below = np.linspace(costs[0], costs[-1], len(costs)) - costs
    assert int(np.argmax(below)) + 1 == 3
    assert "knee: 4 leaves" in drawn(plot_cost_path(model))


@pytest.mark.parametrize("estimator", [tc.KernelExKMC, tc.KernelExpand])
def test_kernel_models_are_drawn_by_their_kernel(pyplot, estimator, tmp_path):
    rings, _ = make_circles(80, factor=0.4, noise=0.05, random_state=0)
    model = estimator(2, max_leaves=7, gamma=4.0, n_init=2, random_state=0).fit(rings)
    ax = model.plot_cost_path()
    costs = [model.truncate(n).kernel_cost_ for n in model.cost_path_["n_leaves"]]
    lines = drawn(ax)
    np.testing.assert_allclose(lines["kernel cost"][:, 1], costs)
    np.testing.assert_allclose(lines["reference"][:, 1], model.reference_kernel_cost_)
    (right,) = [other for other in ax.figure.axes if other is not ax]
    np.testing.assert_allclose(right.lines[0].get_ydata(), model.cost_path_["cost"])
    assert right.get_ylabel() == "surrogate"
    model.save(tmp_path / "m.json")
    again = drawn(tc.load(tmp_path / "m.json").plot_cost_path())
    np.testing.assert_allclose(again["cost"][:, 1], model.cost_path_["inertia"])


def test_where_only_the_surrogate_is_known(pyplot):
    model = tc.ExKMC(3, max_leaves=9, base_tree=None, criterion="kmedians", random_state=0)
    ax = plot_cost_path(model.fit(SCALED))
    ((at, cost),) = drawn(ax)["knee: 4 leaves"].tolist()
    assert cost == model.cost_path_["cost"][int(at) - 1]


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (tc.Kauri(3).fit(SCALED), "Kauri"),
        (tc.IMM(3).fit(SCALED).tree_, "ClusterTree"),
        (DecisionTreeClassifier(max_depth=2).fit(SCALED, load_wine().target), "DecisionTreeCl"),
        (KMeans(3), "KMeans"),
        (tc.ExKMC, "ExKMC"),
        (None, "NoneType"),
    ],
)
def test_what_has_no_path(model, name):
    with pytest.raises(TypeError, match=rf"{name}\w* has no cost_path_.* fitted model that has"):
        plot_cost_path(model)


def test_what_is_not_fitted():
    with pytest.raises(NotFittedError, match="ExKMC"):
        plot_cost_path(tc.ExKMC())


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="Drawing a cost path needs matplotlib"):
        tc.IMM(3).fit(SCALED).plot_cost_path()


def test_a_file_is_no_axes():
    model = tc.IMM(3, random_state=0).fit(X)
    with pytest.raises(TypeError, match=r"model\.plot\(\)\.figure\.savefig\('tree\.png'\)"):
        model.plot("tree.png")
