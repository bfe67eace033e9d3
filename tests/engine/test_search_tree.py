"""The binding of BestTree's search: the objectives, starts as trees, what comes back."""

import numpy as np
import pytest

from treeclust_rs import ExKMC, _engine
from treeclust_rs.tree import build

LIMITS = {"max_leaves": 8, "max_depth": None, "min_samples_leaf": 1}
SEARCH = {
    "n_restarts": 2,
    "n_survivors": 2,
    "batch": 4,
    "drift": 0.003,
    "aim": None,
    "reach": np.inf,
    "rounds_to_refine": 16,
    "patience": 20,
}
REST = {"max_work": 10_000_000, "max_time": None, "seed": 0, "n_jobs": 1, "progress": None}


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(0)
    return generator.normal(size=(300, 4)) + 3 * generator.integers(0, 3, size=(300, 1))


def searched(rows, **changes):
    start = ExKMC(4, max_leaves=8, random_state=0).fit(rows).tree_
    arguments = {
        "objective": "kmeans",
        "z": rows - rows.mean(axis=0),
        "scale": None,
        "labels": None,
        "sample_weight": None,
        "n_clusters": 4,
        "starts": [(start.router, np.asarray(start.cluster, dtype=np.int64))],
    }
    return _engine.search_tree(rows, **{**arguments, **LIMITS, **SEARCH, **REST, **changes})


def labels_of(found, rows):
    router = _engine.Router(build.tests_of(found), rows.shape[1])
    return found.cluster[router.apply(rows, 1)]


def test_kmeans_is_the_cost_of_the_clusters(rows):
    found = searched(rows)
    labels = labels_of(found, rows)
    parts = [rows[labels == label] for label in np.unique(labels)]
    cost = sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts)
    assert found.objective == pytest.approx(cost, rel=1e-12)
    assert found.objective <= found.start_objectives.min()
    assert (np.diff(found.path_objective) <= 0).all()
    assert (found.kind == 0).sum() <= 8
    assert len(found.path_round) == len(found.path_move) == len(found.path_n_leaves)


def test_kmedians_is_the_l1_cost_of_the_clusters(rows):
    found = searched(rows, objective="kmedians")
    labels = labels_of(found, rows)
    parts = [rows[labels == label] for label in np.unique(labels)]
    cost = sum(np.abs(part - np.median(part, axis=0)).sum() for part in parts)
    assert found.objective == pytest.approx(cost, rel=1e-12)
    assert found.objective <= found.start_objectives.min()


def test_no_round_begins_when_the_work_is_done(rows):
    rounds = [searched(rows, max_work=work).n_rounds for work in (0, 300_000, 1_000_000)]
    assert rounds[0] == 0
    assert 0 < rounds[1] < rounds[2]


def test_labels_are_reproduced(rows):
    labels = (rows[:, 0] > 3).astype(np.uint32) + 2 * (rows[:, 2] > 1).astype(np.uint32)
    found = searched(rows, objective="labels", z=None, labels=labels)
    assert found.objective == 0
    assert (labels_of(found, rows) == labels).all()


def test_bad_arguments_are_refused(rows):
    with pytest.raises(ValueError, match="No points or labels"):
        searched(rows, z=None)
    with pytest.raises(ValueError, match="needs a start"):
        searched(rows, starts=[])
    with pytest.raises(ValueError, match="max_time"):
        searched(rows, max_time=-1.0)
