"""IMM with the score of Esfandiari, Mirrokni and Narayanan, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

import treeclust_rs as tc


def scores(X, labels, centers, alive, rows):
    """Return the score of every cut that has an alive center on either side."""
    found = []
    for f in range(X.shape[1]):
        values = np.unique(np.concatenate([X[rows, f], centers[alive, f]]))
        for value in values[:-1]:
            left = centers[:, f] <= value
            n_left = int(left[alive].sum())
            if 0 < n_left < len(alive):
                mistakes = int(((X[rows, f] <= value) != left[labels[rows]]).sum())
                found.append(mistakes / min(n_left, len(alive) - n_left))
    return found


def check_every_cut(model, X, labels, centers):
    """Walk down the base: each cut has the least score there is at its node."""
    tree, n_checked = model.tree_, 0
    stack = [(0, np.arange(len(centers)), np.arange(len(X)))]
    while stack:
        node, alive, rows = stack.pop()
        if tree.children_left[node] < 0:
            assert len(alive) == 1
            continue
        f, threshold = tree.feature[node], tree.threshold[node]
        left = centers[:, f] <= threshold
        goes_left = X[rows, f] <= threshold
        wrong = goes_left != left[labels[rows]]
        n_left = int(left[alive].sum())
        score = wrong.sum() / min(n_left, len(alive) - n_left)
        assert score == pytest.approx(min(scores(X, labels, centers, alive, rows)), abs=1e-9)
        assert tree.mistakes[node] == pytest.approx(wrong.sum(), abs=1e-9)
        n_checked += 1
        correct = rows[~wrong]
        for child, side in ((tree.children_left[node], True), (tree.children_right[node], False)):
            of_side = (X[correct, f] <= threshold) == side
            stack.append((child, alive[left[alive] == side], correct[of_side]))
    assert n_checked == len(centers) - 1


def test_every_cut_has_the_least_score():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        k, n = int(rng.integers(2, 8)), int(rng.integers(20, 60))
        centers = rng.normal(scale=2.0, size=(k, 3))
        X = rng.normal(size=(n, 3)) + centers[rng.integers(0, k, n)]
        labels = ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        model = tc.IMM(reference=centers, cut_score="emn").fit(X)
        check_every_cut(model, X, labels, centers)


def test_bins_of_many_values_are_opened():
    """More rows than bins, so that bounds decide which bins are looked into."""
    rng = np.random.default_rng(7)
    centers = rng.normal(scale=3.0, size=(6, 2))
    X = rng.normal(size=(3000, 2)) + centers[rng.integers(0, 6, 3000)]
    labels = ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    check_every_cut(tc.IMM(reference=centers, cut_score="emn").fit(X), X, labels, centers)


def test_its_trees_are_no_deeper():
    X = load_digits().data
    plain, emn = (
        tc.IMM(10, cut_score=score, random_state=0).fit(X) for score in ("mistakes", "emn")
    )
    assert plain.n_leaves_ == emn.n_leaves_ == 10
    assert emn.tree_.max_depth <= plain.tree_.max_depth
    assert (plain.tree_.feature != emn.tree_.feature).any()


def test_an_unknown_score_is_refused():
    with pytest.raises(ValueError, match="'cut_score' parameter of IMM must be a str among"):
        tc.IMM(2, cut_score="least").fit(np.eye(3))
