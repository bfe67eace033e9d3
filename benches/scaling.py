"""How time grows with rows, columns and threads, and what very many leaves take.

python benches/scaling.py
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import common
import treeclust_rs as tc
from common import blobs, seconds, table
from figures import Cell, growth_rows, ratio, runs, value

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
COLUMNS = (10, 20, 40, 80, 160)
N_CLUSTERS = 10
MAX_LEAVES = 40


def main() -> None:
    arguments = common.parse(common.parser(__doc__, quick="up to 100,000 rows and 40 columns"))
    common.one_thread()
    rows, columns = (ROWS[:3], COLUMNS[:3]) if arguments.quick else (ROWS, COLUMNS)
    blocks = [
        f"Blobs that overlap, k={N_CLUSTERS}, {MAX_LEAVES} leaves, the centers given, float64 in C "
        "order; interleaved fits, 1 thread unless said. The last row is the exponent of all.",
        growth("rows", [(n, 20) for n in rows], rows, "<= 1.15"),
        growth("columns", [(100_000, d) for d in columns], columns, "<= 1.1"),
    ]
    if not arguments.quick:
        blocks += [threads(), many_leaves()]
    common.publish("Scaling", blocks, common.Missing(), arguments)


def fit(X: np.ndarray, centers: np.ndarray, n_jobs: int) -> float:
    model = tc.ExKMC(max_leaves=MAX_LEAVES, reference=centers, n_jobs=n_jobs)
    return seconds(lambda: model.fit(X))


def growth(
    what: str, shapes: list[tuple[int, int]], sizes: tuple[int, ...], target: str
) -> dict[str, Any]:
    print(f"... growth in {what}", file=sys.stderr, flush=True)
    problems = [blobs(n, d, N_CLUSTERS) for n, d in shapes]

    def run(problem: tuple[np.ndarray, np.ndarray]) -> Callable[[], float]:
        return lambda: fit(*problem, n_jobs=1)

    works = {str(size): run(problem) for size, problem in zip(sizes, problems, strict=True)}
    times = list(common.interleaved(works, 5, 3).values())
    names = [f"{n:,} x {d}" for n, d in shapes]
    rows = growth_rows(names, sizes, times, target)
    return table((what, "seconds", "exponent of the step"), rows)


def threads() -> dict[str, Any]:
    print("... threads", file=sys.stderr, flush=True)
    X, centers = blobs(1_000_000, 20, N_CLUSTERS)
    counts = sorted({1, 2, os.cpu_count() or 1})

    def run(n_jobs: int) -> Callable[[], float]:
        return lambda: fit(X, centers, n_jobs)

    times = common.interleaved({str(count): run(count) for count in counts}, 5, 3)
    rows = [[count, runs(done), ratio(times["1"], done)] for count, done in times.items()]
    return table(("threads (1M x 20)", "seconds", "times faster"), rows)


def many_leaves() -> dict[str, Any]:
    """20,000 leaves: grow, print, save, load, predict."""
    print("... 20,000 leaves", file=sys.stderr, flush=True)
    X, centers = blobs(200_000, 10, 50, std=8.0)
    model = tc.ExKMC(max_leaves=20_000, reference=centers, n_jobs=1)

    def timed(work: Callable[[], object]) -> Cell:
        return runs([seconds(work) for _ in range(3)])

    rows: list[list[Cell]] = [["fit, s", runs([seconds(lambda: model.fit(X))])]]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "model.json"
        rows.append(["save, s", timed(lambda: model.save(path))])
        size = path.stat().st_size
        rows.append(["load, s", timed(lambda: tc.load(path))])
    rows += [
        ["predict 200k rows, s", timed(lambda: model.predict(X))],
        ["print, s", timed(lambda: str(model.tree_))],
        ["rules, s", timed(model.tree_.rules)],
        ["leaves", model.n_leaves_],
        ["depth", int(model.tree_.max_depth)],
        ["model file, MB", value(size / 2**20, format=".1f")],
        ["lines of text", len(str(model.tree_).splitlines())],
    ]
    return table(("20,000 leaves, 200k x 10, k=50", ""), rows)


if __name__ == "__main__":
    main()
