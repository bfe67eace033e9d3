"""The order of the rows does not matter: the same tree, costs and centers, bit for bit.

The reference is given. The origin of a column is the median of at most 1,001 rows at fixed places,
so longer tables keep these rows where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from digests import digest
from treeclust_rs import _engine

K = 5
SAMPLE = 1001

Fit = Callable[[np.ndarray, np.ndarray, np.ndarray, Any], Any]


def of_centers(estimator: type, **parameters: Any) -> Fit:
    def fit(X: np.ndarray, centers: np.ndarray, labels: np.ndarray, weight: Any) -> Any:
        return estimator(reference=centers, n_jobs=1, **parameters).fit(X, sample_weight=weight)

    return fit


def of_labels(estimator: type, **parameters: Any) -> Fit:
    def fit(X: np.ndarray, centers: np.ndarray, labels: np.ndarray, weight: Any) -> Any:
        return estimator(reference=labels, n_jobs=1, **parameters).fit(X, sample_weight=weight)

    return fit


FITS: dict[str, Fit] = {
    "IMM": of_centers(tc.IMM),
    "ExKMC": of_centers(tc.ExKMC, max_leaves=25),
    "ExKMC from one leaf": of_centers(tc.ExKMC, max_leaves=25, base_tree=None),
    "small leaves forbidden": of_centers(tc.ExKMC, max_leaves=25, min_samples_leaf=20),
    "intervals": of_centers(tc.ExKMC, max_leaves=9, base_tree=None, cuts="interval"),
    "standard": of_centers(tc.ExKMC, max_leaves=25, scale="standard"),
    "SpEx": of_labels(tc.SpExTree, max_leaves=25),
    "KernelExpand": of_labels(tc.KernelExpand, max_leaves=12, base_tree=None),
}
TAKES_GAPS = ("IMM", "ExKMC from one leaf", "intervals", "SpEx")


def table(kind: str, n: int = 900) -> tuple[np.ndarray, np.ndarray]:
    """Rows and centers."""
    random = np.random.default_rng(n)
    centers = random.normal(size=(K, 6)) * 3
    X = centers[random.integers(0, K, n)] + random.normal(size=(n, 6)) * 2
    X[:, 2] = np.round(X[:, 2])  # ties
    X[:, 3] = X[:, 1]  # of the same worth
    X[:, 5] = np.where(random.random(n) < 0.7, 0.0, X[:, 5])
    if kind == "gaps":
        X[random.random(X.shape) < 0.1] = np.nan
    elif kind == "moved":
        X, centers = X + 1e8, centers + 1e8
    elif kind != "plain":
        X[n // 2, 1] = float(kind)
    return X, centers


def order(n: int, seed: int) -> np.ndarray:
    """Another order of n rows that leaves those at fixed places where they are."""
    fixed = np.arange(SAMPLE) * n // SAMPLE if n > SAMPLE else np.empty(0, dtype=int)
    free = np.setdiff1d(np.arange(n), fixed)
    places = np.arange(n)
    places[free] = np.random.default_rng(seed).permutation(free)
    return places


def bits(model: Any) -> dict[str, str]:
    """Digests of what must not depend on the order of the rows."""
    tree = model.tree_
    names = ("children_left", "kind", "feature", "threshold", "lower", "upper", "cluster")
    found = {name: digest(getattr(tree, name)) for name in (*names, "n_node_samples", "impurity")}
    for name in ("cost_path_", "inertia_", "reference_inertia_", "cluster_centers_"):
        if hasattr(model, name):
            found[name] = digest(getattr(model, name))
    return found


def check(fit: Fit, X: np.ndarray, centers: np.ndarray, weight: np.ndarray | None) -> None:
    n = len(X)
    away = np.nan_to_num(X[:, None] - centers, nan=0.0)
    labels = np.argmin((np.clip(away, -1e100, 1e100) ** 2).sum(axis=2), axis=1)
    model = fit(X, centers, labels, weight)
    assert model.n_leaves_ > 2
    for seed in range(3):
        rows = order(n, seed)
        other = fit(X[rows], centers, labels[rows], None if weight is None else weight[rows])
        assert bits(other) == bits(model)
        assert np.array_equal(other.labels_, model.labels_[rows])


def weights(n: int) -> np.ndarray:
    return np.random.default_rng(7).random(n) + 0.1


COMPLETE = ["plain", "moved", "1e8", "1e16", "1e150"]
CASES = [(kind, name) for kind in COMPLETE for name in FITS] + [("gaps", n) for n in TAKES_GAPS]


@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_order_of_the_rows_does_not_matter(kind: str, name: str, weighted: bool) -> None:
    X, centers = table(kind)
    check(FITS[name], X, centers, weights(len(X)) if weighted else None)


LEVEL_FITS: dict[str, Any] = {
    "IMM": partial(tc.IMM),
    "ExKMC": partial(tc.ExKMC, max_leaves=25),
    "ExKMC from one leaf": partial(tc.ExKMC, max_leaves=25, base_tree=None),
    "standard": partial(tc.ExKMC, max_leaves=25, scale="standard"),
    "SpEx": partial(tc.SpExTree, max_leaves=20),
    "KMeansTree": partial(tc.KMeansTree, max_leaves=12),
}


def frame(gaps: bool, n: int = 900) -> tuple[pl.DataFrame, np.ndarray]:
    """Numbers and levels, eight and forty of them, and labels."""
    random = np.random.default_rng(n)
    labels = random.integers(0, K, n)
    columns: dict[str, Any] = {
        "a": random.normal(size=n) + labels * 20,
        "b": random.normal(size=n) * 2 - labels * 20,
        "few": np.array(list("abcdefgh"))[(labels + random.integers(0, 4, n)) % 8],
        "many": [f"level {code}" for code in (labels * 3 + random.integers(0, 20, n)) % 40],
    }
    table = pl.DataFrame(columns)
    if gaps:
        seen = [pl.Series(random.random(n) > 0.1) for _ in table.columns]
        cells = zip(seen, table.columns, strict=True)
        table = table.with_columns(pl.when(is_seen).then(pl.col(name)) for is_seen, name in cells)
    return table, labels


@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", LEVEL_FITS)
def test_nor_does_it_with_levels(name: str, gaps: bool, weighted: bool) -> None:
    table, labels = frame(gaps)
    weight = weights(len(table))

    def fit(rows: np.ndarray) -> Any:
        model = LEVEL_FITS[name](reference=labels[rows], n_jobs=1)
        return model.fit(table[rows], sample_weight=weight[rows] if weighted else None)

    model = fit(np.arange(len(table)))
    assert model.n_leaves_ >= K
    for seed in range(3):
        rows = order(len(table), seed)
        other = fit(rows)
        assert bits(other) == bits(model)
        assert np.array_equal(other.labels_, model.labels_[rows])


@pytest.mark.parametrize("name", [name for name in FITS if name != "KernelExpand"])
def test_nor_does_it_in_longer_tables(name: str) -> None:
    X, centers = table("1e8", 6000)
    check(FITS[name], X, centers, weights(len(X)))


@pytest.mark.parametrize("kind", ["plain", "1e16", "gaps"])
@pytest.mark.parametrize("name", TAKES_GAPS)
def test_nor_do_the_bins(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, centers = table(kind, 3000)
    labels = np.arange(len(X)) % K
    weight = weights(len(X))
    model = FITS[name](X, centers, labels, weight)
    fit_tree = _engine.fit_tree
    for search in [(256, 2), (17, 2), (256, 5000)]:
        monkeypatch.setattr(_engine, "fit_tree", partial(fit_tree, search=search))
        assert bits(FITS[name](X, centers, labels, weight)) == bits(model), search
