"""What the benches of the papers choose and print, without fits of any size."""

from __future__ import annotations

import numpy as np
import pytest

from bench_modules import bench


def test_joint_optimisation_alone_keeps_the_paths_fits_of_one_lambda(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    oblique = bench("oblique", monkeypatch)
    found = oblique.joint_only(oblique.DATA_SETS, 100.0)
    assert [data.name for data in found] == ["Letter", "MNIST", "Fashion-MNIST"]
    tasks = [task for data in found for task in data.tasks]
    assert {(task.solver, task.alphas) for task in tasks} == {("path", (100.0,))}
    depths = {data.name: {task.options["max_depth"] for task in data.tasks} for data in found}
    assert depths == {"Letter": {5, 6}, "MNIST": {4, 5}, "Fashion-MNIST": {4, 5}}
    assert oblique.joint_only(oblique.DATA_SETS, 3.0) == []


def test_taylor_features_of_x_plus_1_stand_beside_those_of_the_default_origin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = bench("kernel", monkeypatch)
    data = next(one for one in kernel.DATA_SETS if one.name == "Flame")
    labels, shown = np.array([0, 1]), {}
    trees = {
        kernel.IMM: (labels, 1.02, 2),
        kernel.IMM_DEFAULT: (labels, 1.03, 2),
        kernel.CART: (labels, 1.03, 2),
    }
    setting = kernel.Setting("rbf", 0.1, labels, 1.0)
    explained = kernel.Explained(setting, 1.0, trees, kernel.TAYLOR, {}, 1.0, [])
    for row in kernel.price_rows(data, explained):
        shown[row[2]] = row[4:7]
    assert shown == {
        "Kernel IMM, Taylor of x + 1": ["1.02000", "1.02256", "yes"],
        "Kernel IMM, Taylor, default origin": ["1.03000", "1.02256", "**no**"],
        "CART": ["1.03000", "1.02732", ""],
    }


def test_methods_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    common = bench("common", monkeypatch)
    missing = common.Missing()
    asked = {"IMM": ("IMM", {}), "k leaves": ("ExKMC", {"max_leaves": 7}), "None": ("NoTree", {})}
    found = common.estimators(asked, missing)
    assert list(found) == ["IMM", "k leaves"]
    assert found["k leaves"].max_leaves == 7
    assert missing.lines == ["None: treeclust_rs has no NoTree."]


def test_what_the_exkmc_paper_says_in_numbers_stands_beside_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exkmc = bench("exkmc", monkeypatch)
    ratios = {"IMM": {1: 1.2}, exkmc.EXKMC: {1: 1.2, 4: 1.05}, "CART": {4: 6.0}}
    said = {
        name: [
            (row[1], row[3]["number"], row[3]["target"]) for row in exkmc.claim_rows(name, ratios)
        ]
        for name in ("Iris", "Synthetic I", "Synthetic II")
    }
    grown = ("ExKMC (base: IMM), 4 k leaves", 1.05)
    assert said == {
        "Iris": [("IMM, k leaves", 1.2, "<= 1.3"), (*grown, "<= 1.02")],
        "Synthetic I": [("CART, 4 k leaves", 6.0, "> 5"), (*grown, "<= 1.1")],
        "Synthetic II": [(*grown, "<= 1.02")],
    }
    assert [row[2:] for row in exkmc.ratio_rows("Iris", {"IMM": {1: 1.2}})] == [
        [exkmc.value(1.2, format=".4f"), "", "", ""]
    ]


def test_data_sets_of_the_exkmc_paper_have_its_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    exkmc = bench("exkmc", monkeypatch)
    rows, labels = exkmc.synthetic_1()
    assert (rows.shape, len(np.unique(labels))) == ((5_000, 1_000), 3)
    shapes = {data.name: data.n_clusters for data in exkmc.DATA_SETS}
    assert shapes["Synthetic II"] == 30 and shapes["20 newsgroups"] == 20
    assert set(exkmc.SMALL) <= set(shapes)
