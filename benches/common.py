"""What the benches share: the data they run on, timing, and the page they write."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import polars as pl
import sklearn.cluster  # noqa: F401  (loads the libraries that `one_thread` limits)
from threadpoolctl import threadpool_limits

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "RESULTS.md"

# ---- data -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """One table in two forms: what every peer takes, and what a user would hold."""

    array: np.ndarray  # float64, C order
    stored: pl.DataFrame | np.ndarray
    stored_as: str


@dataclass(frozen=True)
class Case:
    """A row of the table of peers, with how many times faster than each peer we mean to be."""

    name: str
    n_clusters: int
    max_leaves: int
    load: Callable[[Path], Data]
    file: str | None = None
    target_exkmc: float = 1.0
    target_tree: float = 1.0
    target_threads: float = 1.0


def blobs(n: int, d: int, k: int, std: float = 6.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Round normal clusters that overlap in every single column; the rows and the true centers."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-10.0, 10.0, size=(k, d))
    X = rng.normal(scale=std, size=(n, d))
    X += centers[rng.integers(k, size=n)]
    return X, centers


def correlated(n: int, d: int, k: int, seed: int = 0) -> np.ndarray:
    """Continuous columns that depend on one another: mixed normals around k close centers."""
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(d, d)) / np.sqrt(d) * np.linspace(2.0, 0.5, d)[:, None]
    centers = rng.normal(scale=0.8, size=(k, d))
    X = rng.normal(size=(n, d)) @ mixing
    X += centers[rng.integers(k, size=n)]
    return X


def as_frame(array: np.ndarray) -> pl.DataFrame:
    """Hold the columns in polars, each in one piece."""
    return pl.DataFrame({f"x{j}": np.ascontiguousarray(column) for j, column in enumerate(array.T)})


def _blobs_case(_: Path) -> Data:
    array, _centers = blobs(100_000, 20, 10)
    return Data(array, as_frame(array), "polars Float64")


def _continuous_case(_: Path) -> Data:
    array = correlated(500_000, 54, 7)
    return Data(array, as_frame(array), "polars Float64")


def _covtype_case(folder: Path) -> Data:
    frame = pl.read_parquet(folder / "covtype_sample_92962.parquet").drop("label")
    kinds = "/".join(sorted({str(dtype) for dtype in frame.dtypes}))
    return Data(np.ascontiguousarray(frame.to_numpy(), np.float64), frame, f"polars {kinds}")


def _mnist_case(folder: Path) -> Data:
    with np.load(folder / "mnist_train.npz") as archive:
        pixels = archive["X"][:50_000]
    return Data(pixels.astype(np.float64), pixels, "numpy uint8")


CASES = (
    Case("blobs 100k x 20, k=10, 40 leaves", 10, 40, _blobs_case, target_exkmc=4),
    Case(
        "continuous 500k x 54, k=7, 14 leaves",
        7,
        14,
        _continuous_case,
        target_exkmc=10,
        target_threads=1.7,
    ),
    Case(
        "covtype 93k x 54, k=7, 14 leaves",
        7,
        14,
        _covtype_case,
        "covtype_sample_92962.parquet",
        target_exkmc=5,
        target_tree=2,
        target_threads=1.7,
    ),
    Case(
        "MNIST 50k x 784, k=10, 20 leaves",
        10,
        20,
        _mnist_case,
        "mnist_train.npz",
        target_exkmc=10,
        target_tree=3,
        target_threads=1.7,
    ),
)


# ---- measuring ------------------------------------------------------------------------------

SLOW_SECONDS = 3.0


def one_thread() -> None:
    """Keep numerical libraries, scikit-learn's k-means among them, to one thread from now on."""
    threadpool_limits(limits=1)


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def interleaved(
    runs: Mapping[str, Callable[[], float]], repeats: int, slow_repeats: int
) -> dict[str, list[float]]:
    """Time several things in turn, round after round, so that a busy machine hurts them alike.

    Each callable does its work and gives its seconds; one that takes more than `SLOW_SECONDS` is
    run in the first `slow_repeats` rounds only.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(repeats):
        for name, run in runs.items():
            done = times[name]
            if turn < slow_repeats or statistics.median(done) <= SLOW_SECONDS:
                done.append(run())
    return times


def nearest(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Give each row the index of its nearest center."""
    distances = [np.square(X - center).sum(axis=1) for center in centers]
    return np.argmin(distances, axis=0)


def costs(X: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> tuple[float, float]:
    """Squared distances to the given centers, and to the means of the clusters themselves."""
    surrogate = true = 0.0
    for label in np.unique(labels):
        rows = X[labels == label]
        mean = rows.mean(axis=0)
        within = float(np.square(rows - mean).sum())
        true += within
        surrogate += within + len(rows) * float(np.square(mean - centers[label]).sum())
    return surrogate, true


def fresh_fit(
    estimator: str, X: np.ndarray, rows_at_a_time: int | None = None, **parameters: Any
) -> dict[str, float]:
    """Fit in a process of its own; give its seconds, its peak memory, and that above the input.

    With `rows_at_a_time` by `partial_fit`, from a file; nothing is then held as input.
    """
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch) / "data.npy"
        np.save(data, X)
        command = [
            sys.executable,
            HERE / "estimator_fit.py",
            estimator,
            data,
            json.dumps(parameters),
            *([] if rows_at_a_time is None else [str(rows_at_a_time)]),
        ]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    took: dict[str, float] = json.loads(done.stdout)
    return took


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """Slope of log time over log size."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


# ---- reporting ------------------------------------------------------------------------------


class Missing:
    """What could not be measured, said at once and again at the end."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, line: str) -> None:
        self.lines.append(line)
        print(f"!!! NOT MEASURED: {line}", file=sys.stderr, flush=True)

    def unless_there(self, name: str, path: Path) -> bool:
        """Note that the file of a data set is not there, if so."""
        there = path.exists()
        if not there:
            self.add(f"{name}: there is no {path}.")
        return not there


def machine() -> str:
    """Cores and versions, in one line."""
    names = ("treeclust_rs", "numpy", "scikit-learn", "polars")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    commit = revision()
    return (
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, {versions}" + (f", commit {commit}" if commit else "")
    )


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or "unknown processor"
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1) if found else "unknown processor"


def revision() -> str:
    """Give the commit, or nothing outside a repository."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=HERE, capture_output=True, text=True
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Give a Markdown table."""
    lines = [list(header), ["---"] * len(header), *map(list, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def verdict(met: bool) -> str:
    return "yes" if met else "**no**"


def parser(
    doc: str, *, data: bool = False, only: str | None = None, parts: Iterable[str] = ()
) -> argparse.ArgumentParser:
    """Return a parser of the arguments that benches share; `only` is the help of ``--only``."""
    shared = argparse.ArgumentParser(description=doc.splitlines()[0])
    if data:
        shared.add_argument("--data", type=Path, default=Path("../shared/data"), help="data folder")
    names = list(parts)
    if names:
        shared.add_argument(
            "--parts", nargs="+", choices=names, default=names, help="what to measure"
        )
    if only is not None:
        shared.add_argument("--only", default="", help=only)
    shared.add_argument("--dry", action="store_true", help="print, but leave RESULTS.md alone")
    return shared


class Named(Protocol):
    """A work on a data set: its name, and the file of the data if they are in one."""

    @property
    def name(self) -> str: ...
    @property
    def file(self) -> str | None: ...


N = TypeVar("N", bound=Named)


def chosen(works: Iterable[N], arguments: argparse.Namespace, missing: Missing) -> Iterator[N]:
    """Yield the works that hold ``--only`` in their name and whose file is there."""
    for work in works:
        if arguments.only in work.name and not (
            work.file and missing.unless_there(work.name, arguments.data / work.file)
        ):
            yield work


def publish(section: str, parts: Iterable[str], missing: Missing, dry: bool) -> None:
    """Print a section, what could not be measured last; unless dry put it in RESULTS.md too."""
    lines = [*parts, *(f"Not measured: {line}" for line in missing.lines)]
    body = "\n\n".join(line.strip() for line in lines if line)
    if dry:
        print(body)
    else:
        script = Path(sys.argv[0]).resolve().relative_to(HERE.parent).as_posix()
        record(section, "python " + shlex.join([script, *sys.argv[1:]]), body)


def record(section: str, command: str, body: str) -> None:
    """Print a section and put it in RESULTS.md in the place of its last version."""
    begin, end = f"<!-- {section} -->", f"<!-- end of {section} -->"
    text = f"{begin}\n## {section}\n\n`{command}`\n\n{machine()}\n\n{body.strip()}\n{end}"
    print(text)
    page = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else "# Measured\n"
    before, found, rest = page.partition(begin)
    after = rest.partition(end)[2] if found else "\n"
    before = before if found else before.rstrip("\n") + "\n\n"
    RESULTS.write_text(before + text + after, encoding="utf-8")
