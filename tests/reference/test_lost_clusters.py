"""Clusters of the reference that have no rows in the tree; errors about their number."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import treeclust_rs as tc

RNG = np.random.default_rng(0)
# A large square, and a cluster of few rows that no single cut of it tells apart.
X = np.vstack([RNG.uniform(-1, 1, size=(300, 2)), RNG.normal(0, 0.01, size=(3, 2))])
X = np.vstack([X, X + np.array([10, 0])])
LABELS = np.repeat([0, 1, 2], [300, 3, 303])

LOSING = {
    "ExKMC": tc.ExKMC(reference=LABELS, base_tree=None, max_leaves=3, max_depth=1),
    "KMeansTree": tc.KMeansTree(reference=LABELS, max_depth=1),
    "SpExTree": tc.SpExTree(reference=LABELS, max_depth=1),
    "KernelExKMC": tc.KernelExKMC(reference=LABELS, base_tree=None, max_depth=1),
    "KernelExpand": tc.KernelExpand(reference=LABELS, base_tree=None, max_depth=1),
    "ObliqueTree": tc.ObliqueTree(reference=LABELS, max_depth=1),
}


@pytest.mark.parametrize("name", LOSING)
def test_clusters_without_rows_are_warned_of(name):
    model = LOSING[name].set_params(random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    found = [warning for warning in caught if "have rows in the tree" in str(warning.message)]
    (lost,) = found
    assert lost.category is ConvergenceWarning
    assert str(lost.message).startswith("Only 2 of the 3 clusters have rows in the tree. ")
    assert lost.filename == __file__
    assert len(np.unique(model.labels_)) == 2
    assert model.__class__.__name__ == name


@pytest.mark.parametrize("model", [tc.IMM(), tc.VoronoiTree(), tc.KernelIMM()])
def test_trees_of_one_leaf_per_cluster_warn_too(model):
    rng = np.random.default_rng(1)
    for _ in range(200):
        rows = rng.normal(size=(8, 1))
        labels = rng.permutation([0, 0, 0, 1, 1, 2, 2, 2])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                model.set_params(reference=labels).fit(rows)
            except ValueError:
                continue  # surrogate features cannot tell the clusters apart
        n_found = len(np.unique(model.labels_))
        lost = [str(w.message) for w in caught if "rows in the tree" in str(w.message)]
        assert len(lost) == (n_found < 3)
        if lost:
            kind = "KernelExpand" if isinstance(model, tc.KernelIMM) else "ExKMC"
            assert lost[0].endswith(f". {kind} with more leaves may give them rows.")
            return
    raise AssertionError("no clustering of the 200 lost a cluster")


def test_centers_that_never_had_rows_are_not_warned_of():
    centers = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 1e6]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = tc.IMM(reference=centers).fit(X)
    assert len(np.unique(model.labels_)) == 2


def test_another_number_of_clusters_names_reference():
    for model in (tc.IMM(4), tc.ObliqueTree(4), tc.KernelExpand(4)):
        with pytest.raises(ValueError, match=r"n_clusters=4, but the reference has 3.*reference="):
            model.set_params(reference=LABELS).fit(X)


@pytest.mark.parametrize("model", [tc.IMM, tc.ExKMC, tc.KernelIMM, tc.ObliqueTree, tc.VoronoiTree])
def test_the_docs_of_y_say_where_labels_go(model):
    text = model.fit.__doc__.partition("Returns")[0]
    assert "Labels to be explained are" in text and "parameter `reference`" in text
