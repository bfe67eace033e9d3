"""Fits that stay the same to the last bit: digests in `data/digests.json`.

Every reference is given and no BLAS takes part, so that the bits are those of the package alone.
The file holds the digests of structure, labels, costs and model files apart. A change that means to
alter one of these parts renews it, and that part alone:

    PYTHONPATH=tests python tests/package/test_digests.py --renew costs files

prints which parts of which models changed; the change's message lists them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

import treeclust_rs as tc
from digests import digest, given_reference_digests

FILE = Path(__file__).parents[1] / "data" / "digests.json"
KEPT_PARTS = ("structure", "labels", "costs", "files")

GRID = np.random.default_rng(0).integers(-6, 7, (400, 4)).astype(float)
WIDE = np.random.default_rng(1).integers(0, 50, (150, 12)).astype(float)
FAR = GRID + np.array([0.0, 2.0**30, -(2.0**40), 0.5])
DIGITS = load_digits().data[:300]
IRIS = load_iris().data
TABLES = {"grid": GRID, "wide": WIDE, "far": FAR, "digits": DIGITS, "iris": IRIS}
WEIGHTS = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 2.0, 3.0], 400)


def centers(X: np.ndarray, k: int = 5) -> np.ndarray:
    """Distinct rows of X."""
    return np.unique(X, axis=0)[:: max(len(np.unique(X, axis=0)) // k, 1)][:k]


def labels(X: np.ndarray, k: int = 4) -> np.ndarray:
    """Labels by the first two columns, every ninth row noise."""
    found = (X[:, 0] > np.median(X[:, 0])) * 2 + (X[:, -1] > np.median(X[:, -1]))
    found = np.minimum(found, k - 1).astype(int)
    found[::9] = -1
    return found


def cases() -> dict[str, Callable[[], tuple[Any, np.ndarray]]]:
    """Return by its name what fits each model: the model and the rows of its fit."""
    found: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {}

    def add(name: str, make: Any, X: np.ndarray, **options: Any) -> None:
        def fit(weight: np.ndarray | None) -> tuple[Any, np.ndarray]:
            given = {"centers": centers, "labels": labels}.get(options.get("reference", ""))
            reference = {} if given is None else {"reference": given(X)}
            return make(**options | reference).fit(X, sample_weight=weight), X

        title = ", ".join([name, *(f"{key}={value}" for key, value in options.items())])
        assert title not in found
        found[title] = partial(fit, None)
        if X is GRID:
            found[f"{title}, weights"] = partial(fit, WEIGHTS)

    for name, X in TABLES.items():
        for reference in ("centers", "labels"):
            add(f"IMM {name}", tc.IMM, X, reference=reference)
            add(f"IMM {name}", tc.IMM, X, reference=reference, criterion="kmedians")
            grown = {"reference": reference, "max_leaves": 9}
            add(f"ExKMC {name}", tc.ExKMC, X, **grown)
            add(f"ExKMC {name}", tc.ExKMC, X, **grown, cuts="interval", base_tree=None)
            best = {"reference": reference, "max_leaves": 9, "random_state": 0}
            for objective in ("kmeans", "kmedians", "labels"):
                by = best | {"objective": objective, "effort": "quick"}
                if reference == "labels" or objective != "labels":
                    add(f"BestTree {name}", tc.BestTree, X, **by)
        if name != "iris":  # whole numbers: the dot products of the bisectors are exact
            add(f"VoronoiTree {name}", tc.VoronoiTree, X, reference="centers")
            add(f"VoronoiTree {name}", tc.VoronoiTree, X, reference="centers", exact=False)
        # Of other kernels the costs go through BLAS; the trees are these.
        by_labels = {"kernel": "linear", "reference": "labels", "max_leaves": 8, "base_tree": None}
        for cuts in ("threshold", "interval"):
            add(f"KernelExpand {name}", tc.KernelExpand, X, **by_labels, cuts=cuts)
        for moves in ("paper", "all"):
            add(f"Kauri {name}", tc.Kauri, X, n_clusters=4, max_leaves=8, moves=moves)
        oblique = {"reference": "centers", "random_state": 0, "max_iter": 10}
        add(f"ObliqueTree {name}", tc.ObliqueTree, X, **oblique, splits="axis")
        if name in ("grid", "iris"):
            add(f"ObliqueTree {name}", tc.ObliqueTree, X, **oblique)
            add(f"ObliqueTree {name}", tc.ObliqueTree, X, **oblique, solver="path", mu_steps=12)
    add("ExKMC grid", tc.ExKMC, GRID, reference="labels", max_leaves=9, criterion="kmedians")
    add("ExKMC grid", tc.ExKMC, GRID, reference="centers", max_leaves=20, max_depth=4)
    add("ExKMC grid", tc.ExKMC, GRID, reference="labels", max_leaves=20, min_samples_leaf=9)
    add("ExKMC wide", tc.ExKMC, WIDE, reference="labels", max_leaves=9, scale="standard")
    wide = {"n_clusters": 6, "max_leaves": math.inf, "max_features": 3, "random_state": 0}
    add("Kauri wide", tc.Kauri, WIDE, **wide)
    grid = {"n_clusters": 3, "max_leaves": math.inf, "min_samples_leaf": 20}
    add("Kauri grid", tc.Kauri, GRID, **grid, min_samples_split=60)
    add("Kauri grid", tc.Kauri, GRID, n_clusters=12, max_leaves=30, max_depth=6, moves="all")
    return found


CASES = cases()


def fitted_digests(name: str) -> dict[str, str]:
    """Fit one case and return a digest of each part."""
    model, X = CASES[name]()
    new = np.vstack([X[::3], (X[1:] + X[:-1])[::4] / 2])
    return {part: digest(items) for part, items in given_reference_digests(model, X, new).items()}


def differences(name: str) -> list[str]:
    """Fit one case and return the parts that are not as in the file."""
    expected = json.loads(FILE.read_text(encoding="utf-8"))[name]
    found = fitted_digests(name)
    return [part for part in KEPT_PARTS if found[part] != expected[part]]


@pytest.mark.filterwarnings("ignore:.*of the rows are nearer:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CASES)
def test_the_bits_stay(name: str) -> None:
    assert not differences(name)


PRODUCTS = "import numpy; a = numpy.ones((64, 64)); a @ a; a @ a[0]; a[0] @ a[0]"
"""Work of OpenBLAS."""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="processors of x86 only")
@pytest.mark.parametrize("processor", ["Prescott", "Haswell", "SkylakeX"])
def test_the_bits_do_not_depend_on_the_processor(processor: str) -> None:
    """OpenBLAS sums in another order on each: whatever goes through it differs in the last bit."""
    environment = {**os.environ, "OPENBLAS_CORETYPE": processor}
    folders = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    probe = [sys.executable, "-P", "-c", PRODUCTS]
    if subprocess.run(probe, env=environment, check=False).returncode == -signal.SIGILL:
        pytest.skip(f"this processor lacks instructions of {processor}")
    command = [sys.executable, "-P", "-W", "ignore", __file__, "--compare"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_no_digest_is_left_over() -> None:
    assert json.loads(FILE.read_text(encoding="utf-8")).keys() == CASES.keys()


def renew(parts: list[str]) -> None:
    """Write the digests of some parts, and of new cases all; print what changed."""
    old = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    new = {}
    for name in CASES:
        found = fitted_digests(name)
        before = old.get(name, {})
        new[name] = {p: found[p] if p in parts or not before else before[p] for p in KEPT_PARTS}
        changed = [part for part in KEPT_PARTS if before.get(part) != new[name][part]]
        if changed:
            print(f"{name}: {', '.join(changed)}" if before else f"{name}: new")
    for name in old.keys() - new.keys():
        print(f"{name}: gone")
    FILE.write_text(json.dumps(new, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compare digests, or renew them on purpose.")
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--compare", action="store_true", help="print what is not as in the file")
    task.add_argument("--renew", nargs="+", choices=KEPT_PARTS)
    arguments = parser.parse_args()
    if arguments.compare:
        for case in CASES:
            for part in differences(case):
                print(f"{case}: {part}")
    else:
        renew(arguments.renew)
