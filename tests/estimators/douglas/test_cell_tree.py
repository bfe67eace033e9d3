"""The hard rules of Douglas as trees: for scikit-learn and ONNX."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import treeclust_rs as tc
from sizes import repeats
from treeclust_rs.estimators.douglas import cell_tree as module
from treeclust_rs.estimators.douglas.cell_table import CellTable
from treeclust_rs.estimators.douglas.cell_tree import cell_tree


def random_cells(seed: int) -> tuple[CellTable, int]:
    rng = np.random.default_rng(seed)
    features = np.sort(rng.choice(5, int(rng.integers(0, 4)), replace=False))
    cuts = tuple(
        np.sort(rng.choice(12, int(rng.integers(1, 4)), replace=False) / 4) for _ in features
    )
    n_cells = int(np.prod([len(own) + 1 for own in cuts]))
    occupied = np.flatnonzero(rng.random(n_cells) < 0.7)
    occupied = occupied if len(occupied) else np.array([0])
    n_rows = rng.integers(1, 9, len(occupied))
    clusters = rng.integers(0, 3, n_cells)
    return CellTable(features, cuts, clusters, occupied, n_rows, n_rows, 3, None), 5


@pytest.mark.parametrize("seed", range(repeats(50, 1000)))
def test_every_row_gets_the_cluster_of_its_cell(seed: int) -> None:
    cells, n_features = random_cells(seed)
    tree = cell_tree(cells, n_features)
    places = [[-1.0, *own, *(own + 0.125)] for own in cells.cuts]
    rows = np.zeros((int(np.prod([len(place) for place in places])), n_features))
    for row, values in enumerate(itertools.product(*places)):
        rows[row, cells.features] = values
    numbers = np.zeros(len(rows), dtype=int)
    for feature, own in zip(cells.features, cells.cuts, strict=True):
        numbers = numbers * (len(own) + 1) + (rows[:, [feature]] > own).sum(axis=1)
    assert tree.predict(rows).tolist() == cells.labels[numbers].tolist()
    assert tree.n_node_samples[0] == cells.n_rows.sum()
    assert tree.n_leaves <= cells.n_cells
    counts = np.bincount(cells.clusters[cells.occupied], cells.n_rows, minlength=3)
    np.testing.assert_allclose(tree.value[0, 0], counts / counts.sum())


def test_boxes_of_one_cluster_are_leaves() -> None:
    cuts = (np.array([1.0, 2.0, 3.0]), np.array([5.0]))
    clusters = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    cells = CellTable(
        np.array([0, 1]), cuts, clusters, np.arange(8), np.ones(8, int), np.ones(8, int), 2, None
    )
    tree = cell_tree(cells, 2)
    assert tree.n_leaves == 2 and tree.threshold[0] == 2.0


def test_too_many_nodes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_NODES", 5)
    cells, n_features = random_cells(2)
    with pytest.raises(ValueError, match="takes a tree of more than 5 nodes"):
        cell_tree(cells, n_features)


@pytest.fixture(scope="module", params=[False, True])
def model(request: Any) -> Any:
    rows = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    rows[:150] += 4
    if request.param:
        pd = pytest.importorskip("pandas")
        rows = pd.DataFrame(rows, columns=["a", "b", "c"])
    return tc.Douglas(3, n_cuts=2, max_iter=20, random_state=0).fit(rows), rows


def test_douglas_becomes_a_classifier(model: Any) -> None:
    model, rows = model
    expected = model.table_.labels[model.apply(rows)]
    assert model.to_sklearn().predict(rows).tolist() == expected.tolist()


def test_douglas_becomes_an_onnx_model(model: Any) -> None:
    pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    from onnx_runs import run_onnx

    model, rows = model
    named = model.rename_clusters({0: "zero", 1: "one", 2: "two"})
    expected = named.table_.labels[named.apply(rows)]
    for dtype in ("float32", "float64"):
        assert run_onnx(named.to_onnx(dtype=dtype), rows).tolist() == expected.tolist()
