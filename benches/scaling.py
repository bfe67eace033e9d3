"""How time grows with rows, columns and threads; what many leaves, gaps, levels and files take.

python benches/scaling.py
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
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

GAPPY_CLUSTERS = 8
GAPPY_COLUMNS = 20
GAP_SHARE = 0.1
LEVELS = (8, 255)


@dataclass(frozen=True)
class Method:
    """A row of the table of gaps and levels."""

    name: str
    make: Callable[[np.ndarray], Any]
    n_rows: int = 100_000
    levels: tuple[int, ...] = LEVELS
    """Numbers of levels to measure."""
    is_target: bool = True


METHODS = (
    Method("IMM", lambda labels: tc.IMM(reference=labels, n_jobs=1)),
    Method("ExKMC", lambda labels: tc.ExKMC(max_leaves=20, reference=labels, n_jobs=1)),
    Method("KMeansTree", lambda labels: tc.KMeansTree(max_leaves=20, reference=labels, n_jobs=1)),
    Method("SpExTree", lambda labels: tc.SpExTree(max_leaves=20, reference=labels, n_jobs=1)),
    Method(
        "KernelExpand",
        lambda labels: tc.KernelExpand(max_leaves=20, base_tree=None, reference=labels, n_jobs=1),
    ),
    Method(
        "BestTree",
        lambda labels: tc.BestTree(max_leaves=8, reference=labels, n_jobs=1),
        n_rows=10_000,
    ),
    Method(
        "Kauri",
        lambda _: tc.Kauri(GAPPY_CLUSTERS, max_leaves=20, n_jobs=1),
        n_rows=30_000,
    ),
    Method(
        "IMM with its own k-means",
        lambda _: tc.IMM(GAPPY_CLUSTERS, random_state=0, n_jobs=1),
        n_rows=30_000,
        levels=(),
        is_target=False,
    ),
)


def gaps(arguments: argparse.Namespace) -> list[Any]:
    """Fits of tables with missing cells, and of levels, beside those of complete numbers."""
    rows = []
    for method in METHODS:
        if arguments.only in method.name:
            print(f"... {method.name}", file=sys.stderr, flush=True)
            rows.append(beside_numbers(method))
    return [
        f"Blobs with {GAPPY_COLUMNS} columns, k={GAPPY_CLUSTERS}, their labels given where a "
        "method takes them; 1 thread, interleaved fits. *Gaps*: the time with "
        f"{GAP_SHARE:.0%} of the cells missing through that of the complete float64 array. "
        "*Levels*: the time of frames of categories, each a range of as many values of a column, "
        "through that of the numbers as a frame.",
        table(("method", "rows", "seconds", "gaps", *(f"{v} levels" for v in LEVELS)), rows),
    ]


def beside_numbers(method: Method) -> list[Cell]:
    X = blobs(method.n_rows, GAPPY_COLUMNS, GAPPY_CLUSTERS)[0]
    labels = KMeans(GAPPY_CLUSTERS, n_init=1, random_state=0).fit(X).labels_
    numbers = common.as_frame(X)
    missing = np.random.default_rng(1).random(X.shape) < GAP_SHARE
    tables = {"numbers": X, "gaps": np.where(missing, np.nan, X), "frame": numbers}
    tables |= {str(n_levels): as_levels(numbers, n_levels) for n_levels in method.levels}

    def run(X: Any) -> Callable[[], float]:
        return lambda: seconds(lambda: method.make(labels).fit(X))

    # Single runs differ by a third on some machines: so many that their medians do not.
    times = common.interleaved({name: run(X) for name, X in tables.items()}, 100, 15, 1.0)
    target = "<= 1.5" if method.is_target else None
    of_levels = [
        ratio(times[str(v)], times["frame"], "<= 1") if v in method.levels else None for v in LEVELS
    ]
    plain = times["numbers"]
    return [
        method.name,
        method.n_rows,
        runs(plain),
        ratio(times["gaps"], plain, target),
        *of_levels,
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


# ---- files ----------------------------------------------------------------------------------


def files(arguments: argparse.Namespace) -> list[Any]:
    """Peak memory of fits of a Parquet file, each in a process of its own."""
    rows = []
    for n_rows in (500_000,) if arguments.quick else (2_000_000, 4_000_000):
        print(f"... {n_rows:,} rows in a file", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            X, centers = blobs(n_rows, 20, N_CLUSTERS)
            common.as_frame(X).write_parquet(Path(scratch) / "stored.parquet")
            np.save(Path(scratch) / "centers.npy", centers)
            np.save(Path(scratch) / "data.npy", X)
            data = X.nbytes
            del X
            above = {form: peak_of_fit(form, Path(scratch)) for form in ("array", "lazy")}
        peaks = (data, above["array"] + data, above["lazy"])
        rows.append([n_rows, *(value(peak / n_rows, format=".0f") for peak in peaks)])
    return [
        f"Bytes a row at the peak of a fit, above those of the process before: blobs with 20 "
        f"columns, k={N_CLUSTERS}, {MAX_LEAVES} leaves, the centers given, 1 thread. The "
        "array lies in memory before, and is counted; the LazyFrame scans the file.",
        table(("rows", "of data", "array", "LazyFrame"), rows),
    ]


def peak_of_fit(form: str, folder: Path) -> int:
    """Bytes above the input, of a LazyFrame all."""
    command = [sys.executable, common.HERE / "fit_memory.py", form, folder, str(MAX_LEAVES), "none"]
    return int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


PARTS = {
    "sizes": ("Scaling", sizes),
    "gaps": ("Gaps and levels", gaps),
    "files": ("Memory of files", files),
}


if __name__ == "__main__":
    main()
