"""How kernel trees grow with rows, clusters and anchors: times, and memory of whole fits.

    python benches/kernel_scaling.py

Every fit is made in a process of its own (`kernel_fit.py`), the sizes in turn, round after round.
Data are round normal clusters that overlap, standardised. Nothing here fails because something was
slow.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

import common
from common import blobs, exponent, table, verdict
from memory import can_measure

MEGABYTE = 1e6

Took = dict[str, float]


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

    def medians(self, runs: Sequence[tuple[str, Path, dict[str, Any]]]) -> list[Took]:
        """Fit all in turn, round after round: estimator, problem, parameters."""
        done: list[list[Took]] = [[] for _ in runs]
        for turn in range(self._rounds):
            for i, run in enumerate(runs):
                if turn and done[i][0]["seconds"] > common.SLOW_SECONDS:
                    continue
                print(f"... {run[0]}, {run[1].name}", file=sys.stderr, flush=True)
                done[i].append(_fit(*run))
        return [
            {key: statistics.median(took[key] for took in one) for key in one[0]} for one in done
        ]


def _fit(estimator: str, folder: Path, parameters: dict[str, Any]) -> Took:
    command = [sys.executable, common.HERE / "kernel_fit.py", estimator, folder]
    command.append(json.dumps(parameters))
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    took: Took = json.loads(done.stdout)
    return took


def _memory(took: Took, n: int) -> list[str]:
    if "above" not in took:
        return ["", ""]
    return [f"{took['above'] / MEGABYTE:,.0f}", f"{took['above'] / n:,.0f}"]


def _step(sizes: Sequence[float], times: Sequence[float], i: int) -> str:
    return f"{exponent(sizes[i - 1 : i + 1], times[i - 1 : i + 1]):.2f}" if i else ""


# ---- interval growth ------------------------------------------------------------------------

GROWTH_ROWS = (12_500, 25_000, 50_000, 100_000, 200_000)
GROWTH_COLUMNS, GROWTH_CLUSTERS, GROWTH_LEAVES = 10, 10, 40
CLUSTERS = (5, 10, 20, 40)
RANK = 100
GROWTH_TARGET = 1.15
NYSTROEM: dict[str, Any] = {
    "approximation": "nystroem",
    "n_components": RANK,
    "n_init": 1,
    "random_state": 0,
}


def growth(fits: Fits) -> str:
    """Interval growth by rows, kernel and clustering approximated; and by clusters."""
    parameters = {
        **NYSTROEM,
        "n_clusters": GROWTH_CLUSTERS,
        "max_leaves": GROWTH_LEAVES,
        "base_tree": None,
        "cuts": "interval",
        "n_jobs": 1,
    }
    names = ("KernelExKMC", "KernelExpand")
    problems = {
        n: fits.problem(n, GROWTH_COLUMNS, GROWTH_CLUSTERS, labelled=False) for n in GROWTH_ROWS
    }
    runs = [(name, problems[n], parameters) for name in names for n in GROWTH_ROWS]
    runs += [(name, problems[GROWTH_ROWS[-1]], {**parameters, "n_jobs": 2}) for name in names]
    took = fits.medians(runs)
    rows, said = [], []
    for j, name in enumerate(names):
        mine = took[j * len(GROWTH_ROWS) : (j + 1) * len(GROWTH_ROWS)]
        core, whole, cpu = ([one[key] for one in mine] for key in ("core", "seconds", "cpu"))
        for i, n in enumerate(GROWTH_ROWS):
            row = [name, f"{n:,}", "1", f"{core[i]:.3g}", _step(GROWTH_ROWS, core, i)]
            row += [f"{whole[i]:.3g}", _step(GROWTH_ROWS, whole, i), f"{cpu[i]:.3g}"]
            rows.append([*row, *_memory(mine[i], n)])
        two = took[len(names) * len(GROWTH_ROWS) + j]
        row = [name, f"{GROWTH_ROWS[-1]:,}", "2", f"{two['core']:.3g}", ""]
        row += [f"{two['seconds']:.3g}", "", f"{two['cpu']:.3g}"]
        rows.append([*row, *_memory(two, GROWTH_ROWS[-1])])
        slope, of_whole = exponent(GROWTH_ROWS, core), exponent(GROWTH_ROWS, whole)
        said.append(
            f"{name}: exponent of the growth in rows {slope:.2f} (target <= {GROWTH_TARGET}: "
            f"{verdict(slope <= GROWTH_TARGET)}), of the whole fit {of_whole:.2f}."
        )
    header = (
        "tree",
        "rows",
        "threads",
        "growth, s",
        "exponent of the step",
        "whole fit, s",
        "exponent of the step",
        "CPU, s",
        "peak above MB",
        "bytes a row",
    )
    return (
        f"From an empty tree, interval cuts, {GROWTH_COLUMNS} columns, k={GROWTH_CLUSTERS}, "
        f"{GROWTH_LEAVES} leaves, rbf through Nystroem features of rank {RANK}, kernel k-means of "
        "one start. *Growth* is the time in the core; the whole fit has the features, the "
        "clustering and the label costs too. The table itself is not in the memory.\n\n"
        + table(header, rows)
        + "\n"
        + " ".join(said)
        + "\n\n"
        + _by_clusters(fits)
    )


def _by_clusters(fits: Fits) -> str:
    n, d = 50_000, GROWTH_COLUMNS
    took = fits.medians(
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
            for k in CLUSTERS
        ]
    )
    core = [one["core"] for one in took]
    whole, split = core[: len(CLUSTERS)], core[len(CLUSTERS) :]
    rows = [
        [
            str(k),
            f"{whole[i]:.3g}",
            f"{split[i]:.3g}",
            _step(CLUSTERS, split, i),
            f"{split[i] / (n * d * k**2) * 1e9:.2g}",
        ]
        for i, k in enumerate(CLUSTERS)
    ]
    header = (
        "k",
        "growth of 2 k leaves, s",
        "first split, s",
        "exponent of the step in k",
        "ns per row, column and k²",
    )
    return (
        f"By clusters: Kernel Expand of {n:,} rows, {d} columns, labels given. Of many clusters "
        "the bounds tell fewer bins apart, until all are swept\n\n" + table(header, rows)
    )


# ---- anchors --------------------------------------------------------------------------------

ANCHOR_COLUMNS, ANCHOR_CLUSTERS = 4, 10
ALL_ROWS = (1_250, 2_500, 5_000)
FEW_ROWS = (12_500, 25_000, 50_000, 100_000, 200_000)
FEW = 64
ALL_REACH, ALL_SECONDS, FEW_REACH = 2.1, 20.0, 1.15


def anchors(fits: Fits) -> str:
    """Kernel IMM on distance features: all anchors, and few."""
    features: dict[str, Any] = {"features": "distance", "gamma": 1.0}
    parts: tuple[tuple[dict[str, Any], tuple[int, ...], float], ...] = (
        ({"n_anchors": "all"}, ALL_ROWS, ALL_REACH),
        ({"n_anchors": FEW, **NYSTROEM}, FEW_ROWS, FEW_REACH),
    )
    sections, said = [], []
    for given, sizes, target in parts:
        name = f"{given['n_anchors']} anchors"
        problems = [_labelled(fits, n) for n in sizes]
        cases = [
            {**features, **given, "kernel": kernel, "n_jobs": n_jobs}
            for kernel in ("laplacian", "rbf")
            for n_jobs in (1, 2)
        ]
        took = fits.medians(
            [("KernelIMM", problem, case) for case in cases for problem in problems]
        )
        rows = []
        for i, case in enumerate(cases):
            mine = took[i * len(sizes) : (i + 1) * len(sizes)]
            core, whole, cpu = ([one[key] for one in mine] for key in ("core", "seconds", "cpu"))
            for j, n in enumerate(sizes):
                row = [case["kernel"], str(case["n_jobs"]), f"{n:,}", f"{core[j]:.3g}"]
                row += [f"{whole[j]:.3g}", _step(sizes, whole, j)]
                row += [f"{cpu[j]:.3g}", _step(sizes, cpu, j), *_memory(mine[j], n)]
                rows.append(row)
            slope = exponent(sizes, whole)
            line = (
                f"- {case['kernel']}, {name}, {case['n_jobs']} threads: exponent of the whole fit "
                f"in rows {slope:.2f} (target <= {target}: {verdict(slope <= target)}), of its "
                f"processor time {exponent(sizes, cpu):.2f}"
            )
            if given["n_anchors"] == "all" and case["n_jobs"] == 2:
                line += (
                    f"; {sizes[-1]:,} rows in {whole[-1]:.3g} s (target < {ALL_SECONDS:g} s: "
                    f"{verdict(whole[-1] < ALL_SECONDS)})"
                )
            said.append(f"{line}.")
        header = (
            f"kernel, {name}",
            "threads",
            "rows",
            "Kernel IMM, s",
            "whole fit, s",
            "exponent of the step",
            "CPU, s",
            "exponent of the step",
            "peak above MB",
            "bytes a row",
        )
        sections.append(table(header, rows))
    said += _besides(fits, features)
    about = (
        f"Kernel IMM on distance features, {ANCHOR_COLUMNS} columns of distinct values, "
        f"k={ANCHOR_CLUSTERS}, labels given (those of the nearest true center). *Kernel IMM* is "
        "the time in the core."
    )
    return "\n\n".join([about, *sections, "\n".join(said)])


def _labelled(fits: Fits, n: int) -> Path:
    return fits.problem(n, ANCHOR_COLUMNS, ANCHOR_CLUSTERS, labelled=True)


def _besides(fits: Fits, features: dict[str, Any]) -> list[str]:
    """Measure a fit that clusters too."""
    options = {**features, "kernel": "laplacian", "n_jobs": 2}
    n = ALL_ROWS[-1]
    clustered = fits.problem(n, ANCHOR_COLUMNS, ANCHOR_CLUSTERS, labelled=False)
    start = {"n_clusters": ANCHOR_CLUSTERS, "n_init": 1, "random_state": 0}
    (whole,) = fits.medians([("KernelIMM", clustered, {**options, **start, "n_anchors": "all"})])
    return [
        f"- With kernel k-means of one start: {n:,} rows, all anchors, laplacian, 2 threads, in "
        f"{whole['seconds']:.3g} s, {whole['core']:.3g} s of them Kernel IMM's"
        + (f"; peak above {_memory(whole, n)[0]} MB." if "above" in whole else "."),
    ]


PARTS: dict[str, Callable[[Fits], str]] = {"growth": growth, "anchors": anchors}


def main() -> None:
    parser = common.parser(__doc__, parts=PARTS)
    parser.add_argument("--rounds", type=int, default=3, help="of fits that are not slow")
    arguments = parser.parse_args()
    for part, section in PARTS.items():
        if part not in arguments.parts:
            continue
        missing = common.Missing()
        if not can_measure():
            missing.add("memory: this system has no /proc/self/clear_refs.")
        with tempfile.TemporaryDirectory() as scratch:
            body = section(Fits(Path(scratch), arguments.rounds))
        common.publish(f"Kernel trees: {part}", [body], missing, arguments.dry)


if __name__ == "__main__":
    main()
