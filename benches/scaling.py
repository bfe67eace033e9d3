"""How time grows with rows, columns and threads, and what very many leaves take.

python benches/scaling.py
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import common
import treeclust_rs as tc
from common import blobs, exponent, seconds, table, verdict

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
COLUMNS = (10, 20, 40, 80, 160)
N_CLUSTERS = 10
MAX_LEAVES = 40


def main() -> None:
    arguments = common.parser(__doc__).parse_args()
    common.one_thread()
    sections = [
        f"Blobs that overlap, k={N_CLUSTERS}, {MAX_LEAVES} leaves, the centers given, float64 in C "
        "order; medians of 5 interleaved runs, 1 thread unless said.",
        growth("rows", [(n, 20) for n in ROWS], ROWS, 1.15),
        growth("columns", [(100_000, d) for d in COLUMNS], COLUMNS, 1.1),
        threads(),
        many_leaves(),
    ]
    common.publish("Scaling", sections, common.Missing(), arguments.dry)


def fit(X: np.ndarray, centers: np.ndarray, n_jobs: int) -> float:
    model = tc.ExKMC(max_leaves=MAX_LEAVES, reference=centers, n_jobs=n_jobs)
    return seconds(lambda: model.fit(X))


def growth(what: str, shapes: list[tuple[int, int]], sizes: tuple[int, ...], target: float) -> str:
    print(f"... growth in {what}", file=sys.stderr, flush=True)
    problems = [blobs(n, d, N_CLUSTERS) for n, d in shapes]

    def run(problem: tuple[np.ndarray, np.ndarray]) -> Callable[[], float]:
        return lambda: fit(*problem, n_jobs=1)

    runs = {str(size): run(problem) for size, problem in zip(sizes, problems, strict=True)}
    times = [statistics.median(done) for done in common.interleaved(runs, 5, 3).values()]
    slope = exponent(sizes, times)
    steps = [
        "",
        *(
            f"{exponent(sizes[i - 1 : i + 1], times[i - 1 : i + 1]):.2f}"
            for i in range(1, len(sizes))
        ),
    ]
    rows = [
        [f"{n:,} x {d}", f"{time:.4f}", step]
        for (n, d), time, step in zip(shapes, times, steps, strict=True)
    ]
    return (
        table((what, "seconds", "exponent of the step"), rows)
        + f"\nExponent in {what}: {slope:.2f} (target <= {target}: {verdict(slope <= target)})."
    )


def threads() -> str:
    print("... threads", file=sys.stderr, flush=True)
    X, centers = blobs(1_000_000, 20, N_CLUSTERS)
    counts = sorted({1, 2, os.cpu_count() or 1})

    def run(n_jobs: int) -> Callable[[], float]:
        return lambda: fit(X, centers, n_jobs)

    times = common.interleaved({str(count): run(count) for count in counts}, 5, 3)
    medians = [statistics.median(times[str(count)]) for count in counts]
    rows = [
        [str(count), f"{median:.3f}", f"{medians[0] / median:.2f}"]
        for count, median in zip(counts, medians, strict=True)
    ]
    return table(("threads (1M x 20)", "seconds", "times faster"), rows)


def many_leaves() -> str:
    """20,000 leaves: grow, print, save, load, predict."""
    print("... 20,000 leaves", file=sys.stderr, flush=True)
    X, centers = blobs(200_000, 10, 50, std=8.0)
    model = tc.ExKMC(max_leaves=20_000, reference=centers, n_jobs=1)
    text = ""

    def show() -> None:
        nonlocal text
        text = str(model.tree_)

    rows = [["fit", f"{seconds(lambda: model.fit(X)):.2f} s"]]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "model.json"
        rows.append(["save", f"{seconds(lambda: model.save(path)):.2f} s"])
        size = path.stat().st_size
        loaded: list[object] = []
        rows.append(["load", f"{seconds(lambda: loaded.append(tc.load(path))):.2f} s"])
    rows += [
        ["predict 200k rows", f"{seconds(lambda: model.predict(X)):.3f} s"],
        ["print", f"{seconds(show):.2f} s"],
        ["rules", f"{seconds(model.tree_.rules):.2f} s"],
        ["leaves, depth", f"{model.n_leaves_:,}, {model.tree_.max_depth}"],
        ["model file", f"{size / 2**20:.1f} MB"],
        ["lines of text", f"{len(text.splitlines()):,}"],
    ]
    return table(("20,000 leaves, 200k x 10, k=50", ""), rows)


if __name__ == "__main__":
    main()
