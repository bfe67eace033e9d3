"""Douglas beside the published one: time per epoch, where it goes, and a million rows.

    python benches/douglas_peers.py --data ../shared/data

The peer is the package gemclus (`peer_gemclus.py`): same data, clusters, batches and cuts, the
Wasserstein objective one-vs-all, Adam, one thread, both in turn, round after round. The time of an
epoch is the difference of a long and a short fit by the epochs between them, so that what a fit
does once does not count; whole fits are there too. What is missing is left out by name. Nothing
here fails because something was slow.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import common
import treeclust_rs as tc
from common import blobs, seconds, table
from figures import Cell, ratio, runs, value
from memory import can_measure
from peer_gemclus import GemclusPeer
from peer_process import peer_or_none
from treeclust_rs.estimators.douglas.soft_bins import SoftBins
from treeclust_rs.estimators.douglas.soft_training import Adam
from treeclust_rs.estimators.douglas.training_rows import TrainingRows
from treeclust_rs.gemini import Wasserstein

REPEATS = 5
SLOW_REPEATS = 3

# ---- beside the peer ------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """One row of the table of peers."""

    name: str
    load: Callable[[Path], np.ndarray]
    n_clusters: int
    batch_size: int
    epochs: tuple[int, int]
    """Of the short and of the long fit."""
    target: float
    file: str | None = None


def _cancer(folder: Path) -> np.ndarray:
    return pl.read_parquet(folder / CANCER).drop("label").to_numpy()


CANCER = "breast_cancer_wisconsin_original.parquet"
WORKS = (
    Work("iris, 150 x 4", lambda _: load_iris().data, 3, 32, (10, 110), 1.5),
    Work("breast cancer original, 683 x 9", _cancer, 2, 64, (2, 22), 3, CANCER),
    Work("wine, 178 x 13", lambda _: load_wine().data, 3, 64, (2, 22), 3),
    Work("blobs, 5,000 x 4", lambda _: blobs(5_000, 4, 4)[0], 4, 64, (1, 6), 1.5),
)


def model_of(work: Work, epochs: int) -> tc.Douglas:
    """Do what the peer does: every epoch, one start, one cut per column."""
    return tc.Douglas(
        work.n_clusters,
        gemini="wasserstein_ova",
        n_cuts=1,
        init="random",
        n_init=1,
        learning_rate=0.01,
        batch_size=work.batch_size,
        warm_up=0,
        max_iter=epochs,
        tol=None,
        random_state=0,
        n_jobs=1,
    )


def peers(arguments: argparse.Namespace, missing: common.Missing) -> list[Any]:
    """Measure the works whose name holds ``--only``."""
    peer = peer_or_none(GemclusPeer, "gemclus", missing.add)
    rows: list[list[Cell]] = []
    parts: list[list[Cell]] = []
    works = WORKS[:1] if arguments.quick else WORKS
    for work in common.chosen(works, arguments, missing):
        print(f"... {work.name}", file=sys.stderr, flush=True)
        X = standardised(work.load(arguments.data))
        rows += _beside(work, X, peer, missing)
        parts.append(_parts(work, X))
    blocks: list[Any] = [
        "Standardised columns, one cut each, Wasserstein one-vs-all, Adam, 1 thread.",
        table(
            ("data", "k", "batch", "who", "ms an epoch", "times faster", "s a fit", "epochs"), rows
        ),
        "Where the time of ours goes, of the steps of one long fit:",
        table(("data", "ms an epoch", *PARTS_OF_A_STEP, "the rest"), parts),
    ]
    if peer is not None:
        blocks.append(f"gemclus: {peer.how}; one thread.")
        peer.close()
    return blocks


def standardised(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(StandardScaler().fit_transform(X))


def _beside(
    work: Work, X: np.ndarray, peer: GemclusPeer | None, missing: common.Missing
) -> list[list[Cell]]:
    epochs: dict[str, list[int]] = {}

    def ours(max_iter: int) -> float:
        model = model_of(work, max_iter)
        took = seconds(lambda: fit(model, X))
        epochs[f"ours {max_iter}"] = [len(model.loss_curve_)]
        return took

    works = {f"ours {n}": lambda n=n: ours(n) for n in work.epochs}
    names = ["ours"]
    if peer is not None:
        names.append("gemclus")
        data = peer.file(X)

        def theirs(max_iter: int) -> float:
            took, n_epochs, _ = peer.douglas(
                data,
                n_clusters=work.n_clusters,
                gemini="wasserstein_ova",
                n_cuts=1,
                batch_size=work.batch_size,
                max_iter=max_iter,
                random_state=0,
            )
            epochs[f"gemclus {max_iter}"] = [n_epochs]
            return took

        works |= {f"gemclus {n}": lambda n=n: theirs(n) for n in work.epochs}
    times = common.interleaved(works, REPEATS, SLOW_REPEATS)
    short, long = work.epochs
    per_epoch: dict[str, list[float]] = {}
    for name in names:
        done = [epochs[f"{name} {n}"][0] for n in work.epochs]
        if done != list(work.epochs):
            missing.add(f"{name} on {work.name}: {done} epochs, not {work.epochs}.")
        per_epoch[name] = [
            1e3 * (slow - quick) / (done[1] - done[0])
            for quick, slow in zip(times[f"{name} {short}"], times[f"{name} {long}"], strict=False)
        ]
    rows: list[list[Cell]] = []
    for name in names:
        faster: Cell = ""
        if name == "ours" and peer is not None:
            target = f">= {work.target:g}"
            faster = ratio(per_epoch["gemclus"], per_epoch["ours"], target, format=".1f")
        row = [runs(per_epoch[name]), faster, runs(times[f"{name} {long}"]), long]
        rows.append([work.name, str(work.n_clusters), str(work.batch_size), name, *row])
    if peer is not None:
        peer.forget(data)
    return rows


def fit(model: tc.Douglas, X: np.ndarray) -> None:
    """Fit; that some cluster stays empty after few epochs is no matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)


PARTS_OF_A_STEP = {
    "optimal transport and gradient": (Wasserstein, "value_and_gradient"),
    "bins, leaves, probabilities": (SoftBins, "forward"),
    "back to cuts and weights": (SoftBins, "backward"),
    "rows and distances of a batch": (TrainingRows, "batch"),
    "Adam": (Adam, "step"),
}


def _parts(work: Work, X: np.ndarray) -> list[Cell]:
    """Time the parts of a step; clocks around them make the whole a little slower."""
    took: dict[str, float] = defaultdict(float)

    def clocked(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                took[part] += time.perf_counter() - start

        return run

    epochs = work.epochs[1]
    with ExitStack() as patched:
        for part, (kind, name) in PARTS_OF_A_STEP.items():
            clock = clocked(part, getattr(kind, name))
            patched.enter_context(mock.patch.object(kind, name, clock))
        total = seconds(lambda: fit(model_of(work, epochs), X))
    took["the rest"] = total - sum(took.values())
    shares = [value(took[part] / total, format=".0%") for part in (*PARTS_OF_A_STEP, "the rest")]
    return [work.name, runs([1e3 * total / epochs]), *shares]


# ---- a million rows ---------------------------------------------------------------------------

ROWS = (100_000, 300_000, 1_000_000)
PART = 10_000
GROWTH: dict[str, Any] = {
    "n_clusters": 4,
    "n_init": 1,
    "warm_up": 0,
    "max_iter": 1,
    "tol": None,
    "random_state": 0,
    "n_jobs": 1,
}


def growth(arguments: argparse.Namespace, missing: common.Missing) -> list[Any]:
    """One epoch of ever more rows by minibatches, in processes of their own."""
    if not can_measure():
        missing.add("memory: this system has no /proc/self/clear_refs.")
        return []
    rows: list[list[Cell]] = []
    for n in ROWS[:1] if arguments.quick else ROWS:
        print(f"... {n:,} rows", file=sys.stderr, flush=True)
        X = blobs(n, 4, 4)[0]
        works = {
            "whole": lambda X=X: common.fresh_fit("Douglas", X, **GROWTH),
            "parts": lambda X=X: common.fresh_fit("Douglas", X, PART, **GROWTH),
        }
        done = {name: [work() for _ in range(SLOW_REPEATS)] for name, work in works.items()}
        row: list[Cell] = [f"{n:,}"]
        for name, fits in done.items():
            row.append(runs([fit["seconds"] for fit in fits]))
            if name == "whole":
                row.append(runs([1e6 * fit["seconds"] / n for fit in fits]))
            row += [
                runs([fit[key] / 1e6 for fit in fits], format=",.0f") for key in ("above", "peak")
            ]
        rows.append(row)
    header = (
        "rows (blobs, 4 columns)",
        "fit, s",
        "microseconds a row",
        "peak above the input, MB",
        "whole process, MB",
        "partial_fit, s",
        "peak above, MB",
        "whole process, MB",
    )
    return [
        "k = 4, one epoch, batches of the default size, 1 thread. `partial_fit` reads "
        f"{PART:,} rows at a time from a file.",
        table(header, rows),
    ]


PARTS = {"peers": peers, "growth": growth}


def main() -> None:
    arguments = common.parse(
        common.parser(
            __doc__,
            data=True,
            parts=PARTS,
            only="beside the peer: only works that hold this",
            quick="the smallest work of each part",
        )
    )
    common.one_thread()
    for part, section in PARTS.items():
        if part in arguments.parts:
            missing = common.Missing()
            blocks = section(arguments, missing)
            common.publish(f"Douglas: {part}", blocks, missing, arguments)


if __name__ == "__main__":
    main()
