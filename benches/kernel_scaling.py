"""How kernel trees grow with rows, clusters and anchors: times, and memory of whole fits.

    python benches/kernel_scaling.py

Every fit is made in a process of its own (`kernel_fit.py`), the sizes in turn, round after round.
Data are round normal clusters that overlap, standardised. Nothing here fails because something was
slow.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

import common
from common import blobs, table
from figures import Cell, runs, steps
from figures import growth as exponent
from memory import can_measure

MEGABYTE = 1e6

Took = dict[str, list[float]]
"""What the fits of a problem took: every measure, run by run."""


class Fits:
    """Problems on disk, and fits to them."""

    def __init__(self, scratch: Path, rounds: int) -> None:
        self._scratch, self._rounds = scratch, rounds

    def problem(self, n: int, d: int, k: int, *, labelled: bool) -> Path:
        """Write a problem; its labels are those of the nearest true center."""
        folder = self._scratch / f"{n} {d} {k} {labelled}"
        if not folder.exists():
            folder.mkdir()
            X, centers = blobs(n, d, k)
            if labelled:
                np.save(folder / "labels.npy", common.nearest(X, centers))
            np.save(folder / "data.npy", StandardScaler().fit_transform(X))
        return folder

    def measured(self, fits: Sequence[tuple[str, Path, dict[str, Any]]]) -> list[Took]:
        """Fit all in turn, round after round: estimator, problem, parameters."""
        took: list[Took] = [{} for _ in fits]
        for _ in range(self._rounds):
            for one, fit in zip(took, fits, strict=True):
                print(f"... {fit[0]}, {fit[1].name}", file=sys.stderr, flush=True)
                for name, figure in _fit(*fit).items():
                    one.setdefault(name, []).append(figure)
        return took


def _fit(estimator: str, folder: Path, parameters: dict[str, Any]) -> dict[str, float]:
    command = [sys.executable, common.HERE / "kernel_fit.py", estimator, folder]
    command.append(json.dumps(parameters))
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    took: dict[str, float] = json.loads(done.stdout)
    return took


def _memory(took: Took, n: int) -> list[Cell]:
    above = took.get("above")
    if above is None:
        return ["", ""]
    return [runs([one / by for one in above], format=",.0f") for by in (MEGABYTE, n)]


def _columns(took: Sequence[Took], *names: str) -> list[list[list[float]]]:
    return [[one[name] for one in took] for name in names]


# ---- interval growth ------------------------------------------------------------------------

GROWTH_ROWS = (12_500, 25_000, 50_000, 100_000, 200_000)
GROWTH_COLUMNS, GROWTH_CLUSTERS, GROWTH_LEAVES = 10, 10, 40
CLUSTERS = (5, 10, 20, 40)
RANK = 100
GROWTH_TARGET = "<= 1.15"
NYSTROEM: dict[str, Any] = {
    "approximation": "nystroem",
    "n_components": RANK,
    "n_init": 1,
    "random_state": 0,
}


def growth(fits: Fits, quick: bool) -> list[Any]:
    """Interval growth by rows, kernel and clustering approximated."""
    parameters = {
        **NYSTROEM,
        "n_clusters": GROWTH_CLUSTERS,
        "max_leaves": GROWTH_LEAVES,
        "base_tree": None,
        "cuts": "interval",
        "n_jobs": 1,
    }
    names = ("KernelExKMC", "KernelExpand")
    sizes = GROWTH_ROWS[:2] if quick else GROWTH_ROWS
    problems = [fits.problem(n, GROWTH_COLUMNS, GROWTH_CLUSTERS, labelled=False) for n in sizes]
    works = [(name, problem, parameters) for name in names for problem in problems]
    works += [(name, problems[-1], {**parameters, "n_jobs": 2}) for name in names]
    took = fits.measured(works)
    rows: list[list[Cell]] = []
    for j, name in enumerate(names):
        mine = took[j * len(sizes) : (j + 1) * len(sizes)]
        core, whole = _columns(mine, "core", "seconds")
        for one, n, core_step, step in zip(
            mine, sizes, steps(sizes, core), steps(sizes, whole), strict=True
        ):
            rows.append([name, f"{n:,}", "1", *_row(one, core_step, step), *_memory(one, n)])
        two = took[len(names) * len(sizes) + j]
        rows.append([name, f"{sizes[-1]:,}", "2", *_row(two, "", ""), *_memory(two, sizes[-1])])
        slopes = (exponent(sizes, core, GROWTH_TARGET), exponent(sizes, whole))
        rows.append([name, "all", "1", "", slopes[0], "", slopes[1], "", "", ""])
    header = (
        "tree",
        "rows",
        "threads",
        "growth, s",
        "exponent of growth",
        "whole fit, s",
        "exponent of the whole fit",
        "CPU, s",
        "peak above MB",
        "bytes a row",
    )
    return [
        f"From an empty tree, interval cuts, {GROWTH_COLUMNS} columns, k={GROWTH_CLUSTERS}, "
        f"{GROWTH_LEAVES} leaves, rbf through Nystroem features of rank {RANK}, kernel k-means of "
        "one start. *Growth* is the time in the core; the whole fit has the features, the "
        "clustering and the label costs too. Exponents in rows are of the step from the row above. "
        "The table itself is not in the memory.",
        table(header, rows),
    ]


def _row(took: Took, core_step: Cell, step: Cell) -> list[Cell]:
    return [runs(took["core"]), core_step, runs(took["seconds"]), step, runs(took["cpu"])]


def clusters(fits: Fits, quick: bool) -> list[Any]:
    """Interval growth by clusters, labels given."""
    n, d = (10_000 if quick else 50_000), GROWTH_COLUMNS
    sizes = CLUSTERS[:3] if quick else CLUSTERS
    took = fits.measured(
        [
            (
                "KernelExpand",
                fits.problem(n, d, k, labelled=True),
                {
                    "base_tree": None,
                    "cuts": "interval",
                    "n_jobs": 1,
                    "max_leaves": leaves * k,
                    "max_depth": depth,
                },
            )
            for leaves, depth in ((2, None), (1, 1))
            for k in sizes
        ]
    )
    (core,) = _columns(took, "core")
    whole, split = core[: len(sizes)], core[len(sizes) :]
    rows: list[list[Cell]] = [
        [
            str(k),
            runs(grown),
            grown_step,
            runs(first),
            step,
            runs([one / (n * d * k**2) * 1e9 for one in first], format=".2g"),
        ]
        for k, grown, grown_step, first, step in zip(
            sizes, whole, steps(sizes, whole), split, steps(sizes, split), strict=True
        )
    ]
    rows.append(["all", "", exponent(sizes, whole), "", exponent(sizes, split), ""])
    header = (
        "k",
        "growth of 2 k leaves, s",
        "exponent in k",
        "first split, s",
        "exponent in k",
        "first split: ns per row, column and k²",
    )
    return [
        f"Kernel Expand of {n:,} rows, {d} columns, labels given, 1 thread, time in the core. Of "
        "many clusters the bounds tell fewer bins apart, until all are swept. Exponents in k are "
        "of the step from the row above.",
        table(header, rows),
    ]


# ---- anchors --------------------------------------------------------------------------------

ANCHOR_COLUMNS, ANCHOR_CLUSTERS = 4, 10
ALL_ROWS = (1_250, 2_500, 5_000)
FEW_ROWS = (12_500, 25_000, 50_000, 100_000, 200_000)
FEW = 64
ALL_TARGET, ALL_SECONDS, FEW_TARGET = "<= 2.1", "< 20", "<= 1.15"


def anchors(fits: Fits, quick: bool) -> list[Any]:
    """Kernel IMM on distance features: all anchors, and few."""
    features: dict[str, Any] = {"features": "distance", "gamma": 1.0}
    parts: tuple[tuple[dict[str, Any], tuple[int, ...], str], ...] = (
        ({"n_anchors": "all"}, ALL_ROWS, ALL_TARGET),
        ({"n_anchors": FEW, **NYSTROEM}, FEW_ROWS, FEW_TARGET),
    )
    blocks: list[Any] = [
        f"Kernel IMM on distance features, {ANCHOR_COLUMNS} columns of distinct values, "
        f"k={ANCHOR_CLUSTERS}, labels given (those of the nearest true center). *Kernel IMM* is "
        "the time in the core. Exponents in rows are of the step from the row above."
    ]
    for given, all_sizes, target in parts:
        sizes = all_sizes[:2] if quick else all_sizes
        problems = [_labelled(fits, n) for n in sizes]
        cases = [
            {**features, **given, "kernel": kernel, "n_jobs": n_jobs}
            for kernel in ("laplacian", "rbf")
            for n_jobs in (1, 2)
        ]
        took = fits.measured(
            [("KernelIMM", problem, case) for case in cases for problem in problems]
        )
        rows: list[list[Cell]] = []
        for i, case in enumerate(cases):
            mine = took[i * len(sizes) : (i + 1) * len(sizes)]
            whole, cpu = _columns(mine, "seconds", "cpu")
            name = [case["kernel"], str(case["n_jobs"])]
            for one, n, step, cpu_step in zip(
                mine, sizes, steps(sizes, whole), steps(sizes, cpu), strict=True
            ):
                bounded = given["n_anchors"] == "all" and case["n_jobs"] == 2 and n == ALL_ROWS[-1]
                row = [runs(one["core"]), runs(one["seconds"], ALL_SECONDS if bounded else None)]
                row += [step, runs(one["cpu"]), cpu_step, *_memory(one, n)]
                rows.append([*name, f"{n:,}", *row])
            slopes = (exponent(sizes, whole, target), exponent(sizes, cpu))
            rows.append([*name, "all", "", "", slopes[0], "", slopes[1], "", ""])
        header = (
            f"kernel, {given['n_anchors']} anchors",
            "threads",
            "rows",
            "Kernel IMM, s",
            "whole fit, s",
            "exponent of the whole fit",
            "CPU, s",
            "exponent of CPU",
            "peak above MB",
            "bytes a row",
        )
        blocks.append(table(header, rows))
    return [*blocks, *_besides(fits, features, quick)]


def _labelled(fits: Fits, n: int) -> Path:
    return fits.problem(n, ANCHOR_COLUMNS, ANCHOR_CLUSTERS, labelled=True)


def _besides(fits: Fits, features: dict[str, Any], quick: bool) -> list[Any]:
    """Measure a fit that clusters too."""
    options = {**features, "kernel": "laplacian", "n_jobs": 2}
    n = ALL_ROWS[0 if quick else -1]
    clustered = fits.problem(n, ANCHOR_COLUMNS, ANCHOR_CLUSTERS, labelled=False)
    start = {"n_clusters": ANCHOR_CLUSTERS, "n_init": 1, "random_state": 0}
    (whole,) = fits.measured([("KernelIMM", clustered, {**options, **start, "n_anchors": "all"})])
    header = ("rows", "whole fit, s", "Kernel IMM, s", "peak above MB", "bytes a row")
    row = [f"{n:,}", runs(whole["seconds"]), runs(whole["core"]), *_memory(whole, n)]
    return [
        "With kernel k-means of one start: all anchors, laplacian, 2 threads.",
        table(header, [row]),
    ]


PARTS: dict[str, Callable[[Fits, bool], list[Any]]] = {
    "growth": growth,
    "clusters": clusters,
    "anchors": anchors,
}


def main() -> None:
    parser = common.parser(__doc__, parts=PARTS, quick="the smallest sizes")
    parser.add_argument("--rounds", type=int, default=3, help="fits of each kind")
    arguments = common.parse(parser)
    for part, section in PARTS.items():
        if part not in arguments.parts:
            continue
        missing = common.Missing()
        if not can_measure():
            missing.add("memory: this system has no /proc/self/clear_refs.")
        with tempfile.TemporaryDirectory() as scratch:
            blocks = section(Fits(Path(scratch), arguments.rounds), arguments.quick)
        common.publish(f"Kernel trees: {part}", blocks, missing, arguments)


if __name__ == "__main__":
    main()
