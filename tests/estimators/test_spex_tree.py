"""SpExTree against enumeration of the clique score."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import treeclust_rs as tc


def phi(labels, rows, counts):
    """cut(S) / deg(S) of the clique graph of the labels, in fractions."""
    inside = {c: int((labels[rows] == c).sum()) for c in counts}
    cut = sum(n * (counts[c] - n) for c, n in inside.items())
    degree = sum(n * (counts[c] - 1) for c, n in inside.items())
    return Fraction(cut, degree) if degree else Fraction(0)


def phi_by_pairs(labels, rows):
    """The same by counting the pairs."""
    inside = np.zeros(len(labels), dtype=bool)
    inside[rows] = True
    pairs = [(i, j) for i in rows for j in range(len(labels)) if i != j and labels[i] == labels[j]]
    crossing = sum(not inside[j] for _, j in pairs)
    return Fraction(crossing, len(pairs)) if pairs else Fraction(0)


def least_added(X, labels, leaves, counts):
    """Return the least that a cut of a leaf with two labels adds, over all cuts."""
    found = []
    for rows in leaves:
        if len(set(labels[rows].tolist())) < 2:
            continue
        for f in range(X.shape[1]):
            for value in np.unique(X[rows, f])[:-1]:
                sides = rows[X[rows, f] <= value], rows[X[rows, f] > value]
                added = sum(phi(labels, side, counts) for side in sides)
                found.append(added - phi(labels, rows, counts))
    return min(found, default=None)


def leaves_of(model, X):
    """Return the rows of each leaf."""
    leaves = model.apply(X)
    return [np.flatnonzero(leaves == leaf) for leaf in sorted(set(leaves.tolist()))]


def test_phi_counts_pairs():
    rng = np.random.default_rng(0)
    for _ in range(50):
        labels = rng.integers(0, 3, 9)
        rows = np.flatnonzero(rng.random(9) < 0.5)
        counts = {c: int((labels == c).sum()) for c in set(labels.tolist())}
        assert phi(labels, rows, counts) == phi_by_pairs(labels, rows)


def test_every_split_adds_the_least():
    """Split by split against all cuts of all leaves, in fractions, so that ties do not matter."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(8, 22))
        X = rng.normal(size=(n, 3))
        labels = np.concatenate([[0, 1, 2], rng.integers(0, 3, n - 3)])
        X[:, 0] += labels
        counts = {c: int((labels == c).sum()) for c in set(labels.tolist())}
        model = tc.SpExTree(reference=labels, max_leaves=5).fit(X)
        cost, leaves = phi(labels, np.arange(n), counts), [np.arange(n)]
        for n_leaves in range(2, model.n_leaves_ + 1):
            least = least_added(X, labels, leaves, counts)
            leaves = leaves_of(model.truncate(n_leaves), X)
            after = sum(phi(labels, rows, counts) for rows in leaves)
            assert after - cost == least, (seed, n_leaves)
            cost = after
        assert model.n_leaves_ == 5 or least_added(X, labels, leaves, counts) is None


def test_weights_are_repeated_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    labels = (X[:, 0] > 0) + (X[:, 1] > 0.5)
    weight = rng.integers(1, 4, 40)
    weighted = tc.SpExTree(reference=labels, max_leaves=6).fit(X, sample_weight=weight)
    repeated = tc.SpExTree(reference=np.repeat(labels, weight), max_leaves=6)
    repeated.fit(np.repeat(X, weight, axis=0))
    assert (weighted.tree_.feature == repeated.tree_.feature).all()
    assert (weighted.predict(X) == repeated.predict(X)).all()


def test_any_labels_are_explained():
    """Rings have no centers; each label stays together."""
    angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    X, labels = np.concatenate([ring, 4 * ring]), np.repeat(["inner", "outer"], 60)
    model = tc.SpExTree(reference=labels, max_leaves=5).fit(X)
    assert (model.labels_ == labels).mean() > 0.95
    assert model.n_leaves_ == 5
    small = model.truncate(3)
    again = tc.SpExTree(reference=labels, max_leaves=3).fit(X)
    assert (small.labels_ == again.labels_).all()
    assert small.tree_.threshold.tolist() == pytest.approx(again.tree_.threshold, nan_ok=True)


def test_fewer_leaves_than_clusters_are_refused():
    X = np.arange(12.0)[:, None]
    with pytest.raises(ValueError, match="max_leaves=2 must be at least n_clusters=3"):
        tc.SpExTree(n_clusters=3, max_leaves=2).fit(X)
