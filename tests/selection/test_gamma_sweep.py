"""The sweep over gamma: its numbers are those of the fits, its bar one line."""

from __future__ import annotations

import io
import math
import sys
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from treeclust_rs import IMM, Kauri, KernelExKMC, KernelExpand, KernelIMM
from treeclust_rs.estimators.kernel_kmeans import KernelKMeans
from treeclust_rs.metrics import agreement
from treeclust_rs.selection import gamma_sweep


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Many small fits: threads would only wait for each other."""
    with threadpool_limits(1):
        yield


def moons(n=90):
    return make_moons(n, noise=0.05, random_state=0)


class Told(ClusterMixin, BaseEstimator):
    """A clusterer that refuses small gammas and draws its labels."""

    def __init__(self, gamma=None, least=0.0, random_state=None):
        self.gamma = gamma
        self.least = least
        self.random_state = random_state

    def fit(self, X, y=None, sample_weight=None):
        self.gamma_ = 1.0 if self.gamma == "scale" else self.gamma
        if self.gamma_ < self.least:
            raise ValueError(f"gamma {self.gamma_} is too small for me")
        rng = np.random.RandomState(self.random_state)
        self.labels_ = rng.randint(2, size=len(X))
        self.inertia_ = float(self.random_state)
        return self


TREES = [
    KernelIMM(2, random_state=3),
    KernelExKMC(2, max_leaves=4, random_state=3),
    KernelExpand(2, max_leaves=5, cuts="interval", base_tree=None, random_state=3),
    KernelExpand(2, max_leaves=5, kernel="laplacian", scale="standard", random_state=3),
]


# ---- the numbers --------------------------------------------------------------------------


@pytest.mark.parametrize("which", range(len(TREES)))
def test_rows_are_those_of_the_fits(which):
    X, y = moons()
    weight = np.random.default_rng(1).uniform(0.2, 2.0, len(X))
    gammas = [8.0, 0.5, 2]
    table = gamma_sweep(TREES[which], X, gammas, y=y, sample_weight=weight).table
    assert table.columns == [
        *("gamma", "reference_kernel_cost", "kernel_cost", "price", "agreement"),
        *("reference_ari", "ari", "n_clusters", "n_leaves"),
    ]
    assert table["gamma"].to_list() == [0.5, 2.0, 8.0]
    for row in table.iter_rows(named=True):
        model = clone(TREES[which]).set_params(gamma=row["gamma"]).fit(X, sample_weight=weight)
        assert row == {
            "gamma": row["gamma"],
            "reference_kernel_cost": model.reference_kernel_cost_,
            "kernel_cost": model.kernel_cost_,
            "price": model.price_of_explainability_,
            "agreement": agreement(model.labels_, model.reference_labels_, weight),
            "reference_ari": pytest.approx(adjusted_rand_score(y, model.reference_labels_)),
            "ari": pytest.approx(adjusted_rand_score(y, model.labels_)),
            "n_clusters": 2,
            "n_leaves": model.n_leaves_,
        }


def test_without_a_reference_or_a_tree_their_columns_are_left_out():
    X, y = moons()
    table = gamma_sweep(KernelKMeans(2, random_state=0), X, [1.0, 4.0], y=y).table
    assert table.columns == ["gamma", "kernel_cost", "ari", "n_clusters"]
    for gamma, inertia, ari, _ in table.iter_rows():
        model = KernelKMeans(2, gamma=gamma, random_state=0).fit(X)
        assert (inertia, ari) == (model.kernel_cost_, adjusted_rand_score(y, model.labels_))
    table = gamma_sweep(Kauri(3, max_leaves=6, kernel="rbf"), X, [1.0, 4.0]).table
    assert table.columns == ["gamma", "kernel_cost", "n_clusters", "n_leaves"]
    assert table["kernel_cost"].to_list() == [
        Kauri(3, max_leaves=6, kernel="rbf", gamma=gamma).fit(X).kernel_cost_
        for gamma in (1.0, 4.0)
    ]


@pytest.mark.parametrize("scale", [None, "standard"])
def test_gammas_are_taken_around_scale(scale):
    X, _ = moons()
    X = X * [1.0, 20.0]
    weight = np.r_[np.full(50, 2.0), np.full(40, 0.5)]
    model = KernelKMeans(2, scale=scale, n_init=1, random_state=0)
    found = gamma_sweep(model, X, sample_weight=weight).table["gamma"].to_numpy()
    center = clone(model).set_params(gamma="scale").fit(X, sample_weight=weight).gamma_
    np.testing.assert_array_equal(found, center * 2.0 ** np.arange(-6, 7))
    assert found[0] == center / 4**3
    assert found[-1] == center * 4**3


def test_the_price_tends_to_1_for_a_partition_that_is_no_good():
    X, _ = moons()
    drawn = np.random.default_rng(0).integers(2, size=len(X))
    model = KernelExpand(reference=drawn, max_leaves=2, base_tree=None)
    table = gamma_sweep(model, X, [1.0, 1e6]).table
    # The tree is wrong on a third of the rows, and nothing of that is in its price.
    assert (table["agreement"] < 0.7).all()
    assert table["price"][-1] == pytest.approx(1.0, abs=1e-6)
    assert table["kernel_cost"][-1] == pytest.approx(len(X) - 2, rel=1e-6)


def test_noise_is_left_out():
    X, y = moons()
    names = np.array(["upper", "lower"])[y].astype(object)
    names[::10] = -1
    kept = np.arange(len(X)) % 10 > 0
    labels = np.where(kept, y, -1)
    truth = y.copy()
    truth[:30] = -1
    model = KernelExpand(reference=labels, max_leaves=3)
    row = gamma_sweep(model, X, [2.0], y=truth).best("ari")
    fitted = clone(model).set_params(gamma=2.0).fit(X)
    assert row["agreement"] == np.mean(fitted.labels_[kept] == y[kept])
    assert row["reference_ari"] == 1.0
    assert row["ari"] == pytest.approx(adjusted_rand_score(y[30:], fitted.labels_[30:]))


def test_frames_and_names_of_clusters():
    X, y = moons()
    frame = pl.DataFrame(X, schema=["a", "b"])
    names = np.array(["upper", "lower"])[y]
    table = gamma_sweep(KernelIMM(reference=names), frame, [1.0], y=pl.Series(names)).table
    assert table["reference_ari"].to_list() == [1.0]
    assert 0.5 < table["agreement"][0] < 1.0


def test_one_seed_for_all_gammas():
    X, _ = moons()
    gammas = [1.0, 2.0, 3.0]
    seeds = gamma_sweep(Told(), X, gammas, random_state=5).table["kernel_cost"].to_list()
    assert len(set(seeds)) == 1
    assert seeds == gamma_sweep(Told(), X, gammas, random_state=5).table["kernel_cost"].to_list()
    assert seeds != gamma_sweep(Told(), X, gammas, random_state=6).table["kernel_cost"].to_list()
    # An estimator's own seed stays.
    own = gamma_sweep(Told(random_state=9), X, gammas, random_state=5).table["kernel_cost"]
    assert own.to_list() == [9.0] * 3


def test_the_estimator_is_left_alone():
    X, _ = moons()
    model = KernelIMM(2, gamma=0.25)
    gamma_sweep(model, X, [1.0], random_state=0)
    assert model.gamma == 0.25
    assert model.random_state is None
    assert not hasattr(model, "tree_")


# ---- the best -----------------------------------------------------------------------------


def test_best():
    X, y = make_circles(120, factor=0.3, noise=0.05, random_state=0)
    sweep = gamma_sweep(KernelIMM(2, random_state=0), X, [0.01, 4.0, 8.0, 300.0], y=y)
    table = sweep.table
    assert table["reference_ari"].to_list()[1:3] == [1.0, 1.0]
    # Of equals the smallest gamma; the truth before the tree.
    assert sweep.best() == sweep.best("reference_ari") == table.row(1, named=True)
    assert sweep.best("ari")["ari"] == table["ari"].max()
    assert sweep.best("agreement")["agreement"] == table["agreement"].max()
    for name in ("price", "kernel_cost", "reference_kernel_cost"):
        with pytest.raises(
            ValueError, match=f"by='{name}' would take the largest gamma: the price"
        ):
            sweep.best(name)
    with pytest.raises(
        ValueError, match=r"'n_leaves' is not one.*Take 'reference_ari' or 'ari' or"
    ):
        sweep.best("n_leaves")
    without = gamma_sweep(KernelIMM(2, random_state=0), X, [1.0])
    assert without.best()["gamma"] == 1.0
    with pytest.raises(ValueError, match=r"'ari' is not one.*Take 'agreement'"):
        without.best("ari")
    with pytest.raises(ValueError, match="nothing to choose a gamma by: give y"):
        gamma_sweep(KernelKMeans(2, random_state=0), X, [1.0]).best()


# ---- refusals -----------------------------------------------------------------------------


def test_a_refused_gamma_does_not_end_the_sweep():
    X, y = moons()
    with pytest.warns(
        UserWarning, match=r"Told refused 2 of 4 gammas \(0.5, 1\).*0.5 is too small"
    ):
        sweep = gamma_sweep(Told(least=2.0), X, [4, 1, 2, 0.5], y=y, random_state=0)
    assert sweep.table["gamma"].to_list() == [0.5, 1.0, 2.0, 4.0]
    assert sweep.table["ari"].is_null().to_list() == [True, True, False, False]
    assert sweep.best()["gamma"] == 2.0
    with pytest.raises(ValueError, match=r"gamma 1\.0 is too small for me"):
        gamma_sweep(Told(least=2.0), X, [1.0, 1.5], random_state=0)
    with pytest.raises(ValueError, match=r"gamma 1\.0 is too small for me"):
        gamma_sweep(Told(least=2.0), X, random_state=0)


def test_wrong_arguments():
    X, _ = moons()
    model = KernelKMeans(2, random_state=0)
    for gammas in ([0.0], [-1.0, 2.0], [math.inf], [math.nan]):
        with pytest.raises(ValueError, match="gammas must be > 0 and finite"):
            gamma_sweep(model, X, gammas)
    with pytest.raises(TypeError, match=r"gammas must hold numbers\. Got 'scale'"):
        gamma_sweep(model, X, ["scale"])
    with pytest.raises(ValueError, match="gammas is empty"):
        gamma_sweep(model, X, [])
    with pytest.raises(ValueError, match=r"y must have one label for each of the 90 rows.*\(2,\)"):
        gamma_sweep(model, X, [1.0], y=[0, 1])
    with pytest.raises(ValueError, match=r"verbose must be an int >= 0\. Got True"):
        gamma_sweep(model, X, [1.0], verbose=True)
    for other in (IMM(2), KMeans(2)):
        with pytest.raises(TypeError, match="has no parameter gamma"):
            gamma_sweep(other, X)
    with pytest.raises(TypeError, match="An estimator is needed"):
        gamma_sweep(KernelKMeans, X)
    for kernel in ("linear", "hellinger", "epsilon"):
        with pytest.raises(ValueError, match=f"kernel '{kernel}' has no gamma; chi2, .* have one"):
            gamma_sweep(Kauri(2, kernel=kernel), X)
    for kernel, what in (("precomputed", "precomputed"), (np.dot, "a function")):
        with pytest.raises(ValueError, match=f"this KernelIMM is {what}, and has no gamma"):
            gamma_sweep(KernelIMM(2, kernel=kernel), X)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="column x1 has 1 NaN"):
        gamma_sweep(model, X, [1.0])


# ---- the bar ------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def told(monkeypatch, stream, verbose, **changes):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "100")
    X, y = moons(30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of refusals
        gamma_sweep(Told(**changes), X, [1.0, 2.0, 3.0], y=y, random_state=0, verbose=verbose)
    return stream.getvalue()


def test_the_bar_is_one_line_on_a_terminal(monkeypatch):
    shown = told(monkeypatch, Terminal(), 1, least=3.0)
    assert shown.endswith("\n")
    assert shown.count("\n") == 1
    start, first, second, last = shown.removesuffix("\n").removeprefix("\r").split("\r")
    assert start.startswith("[gamma_sweep] .................... 0/3, 0.0 s")
    assert first.startswith("[gamma_sweep] ######.............. 1/3, ")
    assert "gamma 1: refused" in first
    assert "2/3" in second
    assert last.startswith("[gamma_sweep] #################### 3/3, ")
    assert "gamma 3: kernel_cost " in last
    assert ", ari " in last
    # What was written over is gone: no line is shorter than what it stands on.
    widths = [len(start), len(first), len(second), len(last)]
    texts = [len(line.rstrip()) for line in (start, first, second)]
    assert all(after >= before for before, after in zip(texts, widths[1:], strict=True))
    assert texts[1] > texts[0]


def test_the_bar_fits_a_narrow_terminal_and_ends_its_line_after_an_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    monkeypatch.setenv("COLUMNS", "30")
    X, _ = moons(30)
    with pytest.raises(ValueError, match="too small"):
        gamma_sweep(Told(least=9.0), X, random_state=0, verbose=1)
    with pytest.raises(TypeError):
        gamma_sweep(Told(least="x"), X, [1.0], random_state=0, verbose=1)
    shown = stream.getvalue()
    assert max(len(part) for part in shown.replace("\n", "\r").split("\r")) == 29
    assert shown.count("\n") == 2
    assert shown.endswith("\n")


def test_elsewhere_it_is_lines_and_only_if_asked(monkeypatch):
    assert told(monkeypatch, Terminal(), 0) == ""
    assert told(monkeypatch, io.StringIO(), 1) == ""
    lines = told(monkeypatch, io.StringIO(), 2).splitlines()
    assert [line.split(" s  ")[1].split(":")[0] for line in lines] == [
        "gamma 1",
        "gamma 2",
        "gamma 3",
    ]
    assert "1/3" in lines[0]


def test_print_and_notebook_show_all_gammas():
    X = np.random.default_rng(0).normal(size=(30, 2))
    gammas = np.geomspace(0.01, 10, 15)
    sweep = gamma_sweep(KernelKMeans(2, n_init=1), X, gammas, y=X[:, 0] > 0, random_state=0)
    text, html = repr(sweep), sweep._repr_html_()
    assert text.startswith("GammaSweep: 15 gammas\n")
    assert sum(line.startswith("│ ") for line in text.splitlines()) == 3 + 15
    assert f"<b>{sweep.best()['gamma']:.4g}</b>" in html
    tree = gamma_sweep(KernelExpand(2, n_init=1), X, gammas, y=X[:, 0] > 0, random_state=0)
    assert all(name in repr(tree) for name in tree.table.columns)  # none is broken into lines
    without = gamma_sweep(KernelKMeans(2, n_init=1), X, [0.1], random_state=0)
    assert "There is nothing to choose a gamma by" in without._repr_html_()
