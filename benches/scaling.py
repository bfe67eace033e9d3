"""How time grows with rows, columns and threads; what many leaves, gaps and levels take.

python benches/scaling.py
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.cluster import KMeans

import common
import treeclust_rs as tc
from common import blobs, seconds, table
from figures import Cell, growth_rows, ratio, runs, value

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
COLUMNS = (10, 20, 40, 80, 160)
N_CLUSTERS = 10
MAX_LEAVES = 40


def main() -> None:
    arguments = common.parse(
        common.parser(
            __doc__,
            parts=PARTS,
            only="of gaps and levels: only methods that hold this",
            quick="up to 100,000 rows and 40 columns",
        )
    )
    common.one_thread()
    for part, (section, blocks) in PARTS.items():
        if part in arguments.parts:
            common.publish(section, blocks(arguments), common.Missing(), arguments)


def sizes(arguments: argparse.Namespace) -> list[Any]:
    rows, columns = (ROWS[:3], COLUMNS[:3]) if arguments.quick else (ROWS, COLUMNS)
    blocks = [
        f"Blobs that overlap, k={N_CLUSTERS}, {MAX_LEAVES} leaves, the centers given, float64 in C "
        "order; interleaved fits, 1 thread unless said. The last row is the exponent of all.",
        growth("rows", [(n, 20) for n in rows], rows, "<= 1.15"),
        growth("columns", [(100_000, d) for d in columns], columns, "<= 1.1"),
    ]
    return blocks if arguments.quick else [*blocks, threads(), many_leaves()]


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


# ---- gaps and levels ------------------------------------------------------------------------

GAPPY_SHAPE = (100_000, 20)
GAPPY_CLUSTERS = 8
GAP_SHARE = 0.1
METHODS: dict[str, Callable[[np.ndarray], Any]] = {
    "IMM": lambda labels: tc.IMM(reference=labels, n_jobs=1),
    "ExKMC": lambda labels: tc.ExKMC(max_leaves=20, reference=labels, n_jobs=1),
    "BestTree": lambda labels: tc.BestTree(max_leaves=8, reference=labels, n_jobs=1),
    "KMeansTree": lambda labels: tc.KMeansTree(max_leaves=20, reference=labels, n_jobs=1),
    "SpExTree": lambda labels: tc.SpExTree(max_leaves=20, reference=labels, n_jobs=1),
    "KernelExpand": lambda labels: tc.KernelExpand(
        max_leaves=20, base_tree=None, reference=labels, n_jobs=1
    ),
    "Kauri": lambda _: tc.Kauri(GAPPY_CLUSTERS, max_leaves=20, n_jobs=1),
    "IMM, k-means its own": lambda _: tc.IMM(GAPPY_CLUSTERS, random_state=0, n_jobs=1),
}


def gaps(arguments: argparse.Namespace) -> list[Any]:
    """Fits of tables with missing cells, and of levels, beside those of complete numbers."""
    (n, d), k = GAPPY_SHAPE, GAPPY_CLUSTERS
    X = blobs(n, d, k)[0]
    labels = KMeans(k, n_init=1, random_state=0).fit(X).labels_
    gappy = np.where(np.random.default_rng(1).random(X.shape) < GAP_SHARE, np.nan, X)
    numbers = common.as_frame(X)
    tables = {"numbers": X, "gaps": gappy, "numbers of a frame": numbers}
    tables |= {f"{n_levels} levels": as_levels(numbers, n_levels) for n_levels in (8, 255)}
    rows: list[list[Cell]] = []
    for name, make in METHODS.items():
        if arguments.only not in name:
            continue
        print(f"... {name}", file=sys.stderr, flush=True)

        def run(make: Callable[[np.ndarray], Any], X: Any) -> Callable[[], float]:
            return lambda: seconds(lambda: make(labels).fit(X))

        works = {shown: run(make, X) for shown, X in tables.items()}
        times = common.interleaved(works, 5, 3)
        plain, framed = times["numbers"], times["numbers of a frame"]
        own = "own" in name
        rows.append(
            [
                name,
                runs(plain),
                ratio(times["gaps"], plain, None if own else "<= 1.5"),
                *(
                    ratio(times[f"{n_levels} levels"], framed, None if own else "<= 1")
                    for n_levels in (8, 255)
                ),
            ]
        )
    return [
        f"Blobs of {n:,} x {d}, k={k}, their labels given; 1 thread, interleaved fits. *Gaps*: the "
        f"time with {GAP_SHARE:.0%} of the cells missing through that of the complete float64 "
        "array. *Levels*: the time of frames of categories, each a range of as many rows of a "
        "column, through that of the numbers as a frame.",
        table(("method", "seconds", "gaps", "8 levels", "255 levels"), rows),
    ]


def as_levels(numbers: pl.DataFrame, n_levels: int) -> pl.DataFrame:
    """Cut every column into ranges of as many rows, named as levels."""
    names = np.array([f"{level:03}" for level in range(n_levels)])
    ranks = {column.name: column.rank("ordinal").to_numpy() - 1 for column in numbers}
    return pl.DataFrame(
        {
            name: pl.Series(
                names[rank.astype(np.int64) * n_levels // len(numbers)], dtype=pl.String
            )
            for name, rank in ranks.items()
        }
    ).cast(pl.Categorical)


PARTS = {"sizes": ("Scaling", sizes), "gaps": ("Gaps and levels", gaps)}


if __name__ == "__main__":
    main()
