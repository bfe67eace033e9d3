"""What the benches share: the data they run on, timing, and the records they write."""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import polars as pl
import sklearn.cluster  # noqa: F401  (loads the libraries that `one_thread` limits)
from threadpoolctl import threadpool_limits

import records
import report
import treeclust_rs
from figures import Cell

HERE = records.HERE
PACKAGE = Path(treeclust_rs.__file__).parent

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
    base_tree: str | None = "imm"


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


COVTYPE = "covtype_sample_92962.parquet"


def _covtype_case(folder: Path) -> Data:
    return _covtype(pl.read_parquet(folder / COVTYPE))


def _covtype_500k_case(folder: Path) -> Data:
    """Draw 500,000 rows of the sample with replacement: it has 92,962."""
    sample = pl.read_parquet(folder / COVTYPE)
    return _covtype(sample.sample(500_000, with_replacement=True, seed=0))


def _covtype(labelled: pl.DataFrame) -> Data:
    frame = labelled.drop("label").rechunk()
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
    ),
    Case(
        "covtype 93k x 54, k=7, 14 leaves",
        7,
        14,
        _covtype_case,
        COVTYPE,
        target_exkmc=5,
        target_tree=2,
    ),
    Case(
        "MNIST 50k x 784, k=10, 20 leaves",
        10,
        20,
        _mnist_case,
        "mnist_train.npz",
        target_exkmc=10,
        target_tree=3,
    ),
    Case(
        "continuous 500k x 54, k=7, 14 leaves from an empty tree",
        7,
        14,
        _continuous_case,
        base_tree=None,
    ),
    Case(
        "covtype drawn to 500k x 54, k=7, 14 leaves from an empty tree",
        7,
        14,
        _covtype_500k_case,
        COVTYPE,
        base_tree=None,
    ),
)
QUICK = ("blobs 100k x 20, k=10", "covtype 93k", "MNIST")
"""How the names of the cases of a quick run begin."""


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
    runs: Mapping[str, Callable[[], float]],
    repeats: int,
    slow_repeats: int,
    slow_seconds: float = SLOW_SECONDS,
) -> dict[str, list[float]]:
    """Time several things in turn, round after round, so that a busy machine hurts them alike.

    Each callable does its work and gives its seconds; one that takes more than `slow_seconds` is
    run in the first `slow_repeats` rounds only.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(repeats):
        for name, run in runs.items():
            done = times[name]
            if turn < slow_repeats or statistics.median(done) <= slow_seconds:
                done.append(run())
    return times


def nearest(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the index of the nearest center of each row."""
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


def revision() -> str:
    """Return the commit, with "-dirty" where something measured is in none; or nothing."""
    state = records.start(PACKAGE)
    return (state.commit or "")[:7] + ("-dirty" if state.dirty else "")


def table(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> dict[str, Any]:
    """Return a table as it goes into a record, numpy's numbers as Python's."""

    def plain(cell: Any) -> Cell:
        return cell.item() if isinstance(cell, np.generic) else cell

    return {"columns": list(header), "rows": [list(map(plain, row)) for row in rows]}


def parser(
    doc: str,
    *,
    data: bool = False,
    only: str | None = None,
    parts: Iterable[str] = (),
    quick: str | None = None,
) -> argparse.ArgumentParser:
    """Return a parser of the arguments that benches share.

    `only` and `quick` are the help of ``--only`` and ``--quick``, which are there if given.
    """
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
    if quick is not None:
        shared.add_argument("--quick", action="store_true", help=quick)
    shared.add_argument("--dry", action="store_true", help="print the page, write no record")
    shared.add_argument(
        "--results", type=Path, default=records.RESULTS, help="folder that records are written to"
    )
    shared.add_argument(
        "--allow-dirty",
        action="store_true",
        help="measure uncommitted changes; the record says so, and RESULTS.md has none of it",
    )
    return shared


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the arguments and note the state of sources and machine as `start`.

    Ends the program where there are uncommitted changes, unless the user allows them.
    """
    arguments = parser.parse_args()
    arguments.start = records.start(PACKAGE)
    if arguments.start.dirty and not (arguments.allow_dirty or arguments.dry):
        changes = records.uncommitted() or [
            "the installed treeclust_rs is not built from these sources, or there is no repository "
            f"(name the commit in {records.COMMIT_VARIABLE})"
        ]
        parser.error(
            f"uncommitted changes: {', '.join(changes[:5])}. Commit them, or measure with "
            "--allow-dirty or --dry: such figures are not printed in RESULTS.md"
        )
    return arguments


class Named(Protocol):
    """A work on a data set: its name, and the file of the data if they are in one."""

    @property
    def name(self) -> str: ...
    @property
    def file(self) -> str | None: ...


N = TypeVar("N", bound=Named)


def estimators(asked: Mapping[str, tuple[str, dict[str, Any]]], missing: Missing) -> dict[str, Any]:
    """Return an estimator for each name, given by class and parameters; note classes not there."""
    found = {}
    for shown, (name, parameters) in asked.items():
        if hasattr(treeclust_rs, name):
            found[shown] = getattr(treeclust_rs, name)(**parameters)
        else:
            missing.add(f"{shown}: treeclust_rs has no {name}.")
    return found


def chosen(works: Iterable[N], arguments: argparse.Namespace, missing: Missing) -> Iterator[N]:
    """Yield the works that hold ``--only`` in their name and whose file is there."""
    for work in works:
        if arguments.only in work.name and not (
            work.file and missing.unless_there(work.name, arguments.data / work.file)
        ):
            yield work


def publish(
    section: str, blocks: Iterable[Any], missing: Missing, arguments: argparse.Namespace
) -> None:
    """Print a section; unless ``--dry`` write its record.

    `blocks` are texts and tables, or lists of them.
    """
    before = arguments.start
    record = records.Record(
        section=section,
        command=_command(),
        commit=before.commit,
        dirty=before.dirty or records.engine() != before.engine,
        engine=before.engine,
        date=before.date,
        machine=records.machine(),
        load=before.load,
        blocks=list(_flat(blocks)),
        missing=missing.lines,
    )
    if record.dirty:
        print("!!! Uncommitted changes: RESULTS.md will have none of this.", file=sys.stderr)
    print("\n\n".join([f"## {section}", *report.body(record, before.engine, {})]), flush=True)
    if not arguments.dry:
        print(f"Record: {record.write(arguments.results)}", file=sys.stderr)


def _flat(blocks: Iterable[Any]) -> Iterator[Any]:
    for block in blocks:
        if isinstance(block, list | tuple):
            yield from _flat(block)
        elif block:
            yield block.strip() if isinstance(block, str) else block


_NOT_MEASURED = ("--data", "--results", "--keep")
"""Arguments that say where files lie; their values are in no record."""


def _command() -> str:
    """Return the command line without what has no influence on figures."""
    script = Path(sys.argv[0]).resolve().relative_to(HERE.parent).as_posix()
    shown, given = [script], iter(sys.argv[1:])
    for argument in given:
        if argument in _NOT_MEASURED:
            next(given, None)
        elif argument != "--allow-dirty" and not argument.startswith(
            tuple(f"{name}=" for name in _NOT_MEASURED)
        ):
            shown.append(Path(argument).name if Path(argument).is_absolute() else argument)
    return "python " + shlex.join(shown)
