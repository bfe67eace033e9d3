"""Kauri beside the published one, and where that cannot run: times, objectives, memory.

    python benches/kauri_peers.py

The peer is the package gemclus (`peer_gemclus.py`): same data, same limits, one thread, both in
turn, round after round. Objectives are computed here, from the labels. What is missing is left out
by name. Nothing here fails because something was slow.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.preprocessing import StandardScaler

import common
import treeclust_rs as tc
from common import blobs, seconds, table
from figures import Cell, growth_rows, ratio, runs, value
from memory import can_measure
from peer_gemclus import GemclusPeer
from peer_process import PeerError, peer_or_none

REPEATS = 5
SLOW_REPEATS = 3

# ---- beside the peer ------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """One row of the table of peers."""

    name: str
    load: Callable[[], np.ndarray]
    kernel: str
    n_clusters: int
    max_leaves: int | None
    target: float
    gram_given: bool = False


def _overlapping() -> np.ndarray:
    return blobs(8_000, 10, 5)[0]


def _standard_blobs(n: int, k: int) -> np.ndarray:
    return np.ascontiguousarray(StandardScaler().fit_transform(blobs(n, 10, k)[0]))


def _digits() -> np.ndarray:
    return np.ascontiguousarray(StandardScaler().fit_transform(load_digits().data))


WORKS = (
    Work("linear, blobs 8k x 10, k=5, 20 leaves", _overlapping, "linear", 5, 20, 300),
    Work("linear, digits, k=10, no limit", _digits, "linear", 10, None, 20),
    Work("rbf, digits, k=10, no limit", _digits, "rbf", 10, None, 20),
    Work(
        "rbf Gram given, blobs 8k x 10, k=5, 20 leaves",
        lambda: _standard_blobs(8_000, 5),
        "rbf",
        5,
        20,
        20,
        gram_given=True,
    ),
)


def peers(arguments: argparse.Namespace, missing: common.Missing) -> list[Any]:
    """Measure the works that were asked for, and how the peer grows."""
    peer = peer_or_none(GemclusPeer, "gemclus", missing.add)
    rows: list[list[Cell]] = []
    for work in WORKS:
        if arguments.only in work.name and (not arguments.quick or "digits" in work.name):
            print(f"... {work.name}", file=sys.stderr, flush=True)
            rows += _beside(work, peer, missing)
    header = ("work", "who", "seconds", "times slower than ours", "leaves", "objective")
    blocks: list[Any] = ["Whole fits, 1 thread.", table(header, rows)]
    if peer is not None:
        if not arguments.quick:
            blocks.append(_peer_growth(peer))
        blocks.append(f"gemclus: {peer.how}; one thread.")
        peer.close()
    return blocks


def _beside(work: Work, peer: GemclusPeer | None, missing: common.Missing) -> list[list[Cell]]:
    X = work.load()
    gram = rbf_kernel(X) if work.kernel == "rbf" else linear_kernel(X - X.mean(axis=0))
    kernel = "precomputed" if work.gram_given else work.kernel
    found: dict[str, tuple[int, np.ndarray]] = {}

    def ours() -> float:
        model = tc.Kauri(
            work.n_clusters, max_leaves=work.max_leaves or math.inf, kernel=kernel, n_jobs=1
        )
        elapsed = seconds(lambda: model.fit(X, gram=gram if work.gram_given else None))
        found["ours"] = (model.n_leaves_, model.labels_)
        return elapsed

    works: dict[str, Callable[[], float]] = {"ours": ours}
    if peer is not None:
        data = peer.file(X)
        given = peer.file(gram) if work.gram_given else None

        def theirs() -> float:
            elapsed, n_leaves, labels = peer.fit(
                data,
                gram=given,
                kernel=kernel,
                max_clusters=work.n_clusters,
                max_leaves=work.max_leaves,
            )
            found["gemclus"] = (n_leaves, labels)
            return elapsed

        works["gemclus"] = theirs
    try:
        times = common.interleaved(works, REPEATS, SLOW_REPEATS)
    except PeerError as error:
        missing.add(f"gemclus on {work.name}: {error}.")
        times = common.interleaved({"ours": ours}, REPEATS, SLOW_REPEATS)
    rows: list[list[Cell]] = []
    for name, done in times.items():
        leaves, labels = found[name]
        slower = (
            ""
            if name == "ours"
            else ratio(done, times["ours"], f">= {work.target:g}", format=".1f")
        )
        reached = value(objective(gram, labels), format=".8g")
        rows.append([work.name, name, runs(done, format=".4g"), slower, leaves, reached])
    if peer is not None:
        peer.forget(data, *filter(None, [given]))
    return rows


def objective(gram: np.ndarray, labels: np.ndarray) -> float:
    """Kauri's objective, from its definition (eq. 6)."""
    total = 0.0
    for label in np.unique(labels):
        member = (labels == label).astype(np.float64)
        total += float(member @ (gram @ member)) / float(member.sum())
    return total


def _peer_growth(peer: GemclusPeer) -> dict[str, Any]:
    """How the peer's time and memory grow with the rows."""
    print("... how gemclus grows", file=sys.stderr, flush=True)
    sizes = (1_000, 2_000, 4_000)
    times, memory = [], []
    for n in sizes:
        data = peer.file(blobs(n, 10, 5)[0])
        limits = {"max_clusters": 5, "max_leaves": 20}
        times.append([peer.fit(data, **limits)[0] for _ in range(SLOW_REPEATS)])
        size = peer.memory(data, **limits) if can_measure() else None
        memory.append(["", ""] if size is None else [size / 2**20, size / n**2])
        peer.forget(data)
    rows = growth_rows([f"{n:,}" for n in sizes], sizes, times)
    header = (
        "rows (gemclus, linear, blobs, 10 columns, 20 leaves)",
        "seconds",
        "exponent of the step",
        "peak above MB",
        "bytes/n²",
    )
    return table(
        header, [[*row, *more] for row, more in zip(rows, [*memory, ["", ""]], strict=True)]
    )


# ---- where the peer cannot run --------------------------------------------------------------

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
GROWTH: dict[str, Any] = {"n_clusters": 10, "max_leaves": 40}
MOST_SECONDS = 30.0
MOST_BYTES = 1_500_000_000


def growth(arguments: argparse.Namespace, _missing: common.Missing) -> list[Any]:
    """Linear kernel, n up to a million."""
    print("... growth in rows", file=sys.stderr, flush=True)
    sizes = ROWS[:3] if arguments.quick else ROWS
    problems = {n: blobs(n, 10, 10)[0] for n in sizes}
    works = {
        f"{n} {n_jobs}": _fit(X, n_jobs=n_jobs, **GROWTH)
        for n, X in problems.items()
        for n_jobs in (1, 2)
    }
    times = common.interleaved(works, REPEATS, SLOW_REPEATS)
    ones, twos = ([times[f"{n} {n_jobs}"] for n in sizes] for n_jobs in (1, 2))
    rows = growth_rows([f"{n:,}" for n in sizes], sizes, ones, "<= 1.15")
    for n, row, one, two in zip(sizes, rows, ones, twos, strict=False):
        full = n == ROWS[-1]
        row += [runs(two, f"< {MOST_SECONDS:g}" if full else None), ratio(one, two)]
        if can_measure():
            took = common.fresh_fit("Kauri", problems[n], n_jobs=2, **GROWTH)
            target = f"< {MOST_BYTES / 1e6:g}" if full else None
            row += [
                value(took["above"] / 1e6, format=",.0f"),
                value(took["peak"] / 1e6, target, format=",.0f"),
            ]
    header = [
        "rows",
        "seconds, 1 thread",
        "exponent of the step",
        "seconds, 2 threads",
        "times faster",
        "peak above MB, 2 threads",
        "whole process MB",
    ][: len(rows[0])]
    rows[-1] += [""] * (len(header) - 3)
    return [
        f"Linear kernel, blobs that overlap, 10 columns, k={GROWTH['n_clusters']}, "
        f"{GROWTH['max_leaves']} leaves; whole fits. The last row is the exponent of all sizes.",
        table(header, rows),
    ]


def _fit(X: np.ndarray, **parameters: Any) -> Callable[[], float]:
    return lambda: seconds(lambda: tc.Kauri(**parameters).fit(X))


RANK = 200
FEATURE_ROWS = (50_000, 100_000, 200_000)
FEATURES: dict[str, Any] = {
    "n_clusters": 10,
    "max_leaves": 40,
    "kernel": "rbf",
    "n_components": RANK,
    "random_state": 0,
}


def features(arguments: argparse.Namespace, _missing: common.Missing) -> list[Any]:
    """Rbf through features of rank 200: against exact at 8,000 rows, and up to 200,000."""
    X = _standard_blobs(8_000, 10)
    gram = rbf_kernel(X)
    exact: dict[str, Any] = {"n_clusters": 10, "max_leaves": 40, "n_jobs": 1}
    repeats = range(1 if arguments.quick else SLOW_REPEATS)

    def fits(**parameters: Any) -> tuple[list[float], float]:
        model = tc.Kauri(**parameters)
        times = [seconds(lambda: model.fit(X)) for _ in repeats]
        return times, objective(gram, model.labels_)

    took, best = fits(kernel="rbf", **exact)
    start = objective(gram, np.zeros(len(X)))
    near: list[list[Cell]] = [["exact", runs(took), value(best), "", ""]]
    large: list[list[Cell]] = []
    for method in ("rpcholesky", "nystroem", "rff"):
        print(f"... rbf by {method}", file=sys.stderr, flush=True)
        parameters = {**FEATURES, "approximation": method}
        took, reached = fits(n_jobs=1, **parameters)
        share = value(reached / best, ">= 0.99", format=".5f")
        gained = value((reached - start) / (best - start), format=".5f")
        near.append([method, runs(took), value(reached), share, gained])
        for n in FEATURE_ROWS[:1] if arguments.quick else FEATURE_ROWS:
            rows = _standard_blobs(n, 10)
            ones, twos = (
                [common.fresh_fit("Kauri", rows, n_jobs=n_jobs, **parameters) for _ in repeats]
                for n_jobs in (1, 2)
            )
            above = [one["above"] for one in ones]
            large.append(
                [
                    f"{method}, {n:,}",
                    *(runs([one["seconds"] for one in done]) for done in (ones, twos)),
                    runs([one / 1e6 for one in above], format=",.0f"),
                    runs([one / (8 * n * RANK) for one in above]),
                ]
            )
    header = (
        f"rbf, blobs 8k x 10, rank {RANK}",
        "seconds",
        "objective",
        "of exact",
        "gain over one cluster, of exact",
    )
    return [
        f"Rbf, standardised blobs that overlap, k={FEATURES['n_clusters']}, "
        f"{FEATURES['max_leaves']} leaves; 1 thread unless said.",
        table(header, near),
        "Objectives are those of the exact kernel.",
        table(
            (
                f"rbf, blobs x 10, rank {RANK}, rows",
                "seconds, 1 thread",
                "2 threads",
                "peak above MB",
                "of 8 n r bytes",
            ),
            large,
        ),
    ]


PARTS = {"peers": peers, "growth": growth, "features": features}


def main() -> None:
    arguments = common.parse(
        common.parser(
            __doc__,
            parts=PARTS,
            only="beside the peer: only works that hold this",
            quick="beside the peer only digits; up to 100,000 rows; few repeats",
        )
    )
    common.one_thread()
    for part, section in PARTS.items():
        if part in arguments.parts:
            missing = common.Missing()
            if not can_measure():
                missing.add("memory: this system has no /proc/self/clear_refs.")
            blocks = section(arguments, missing)
            common.publish(f"Kauri: {part}", blocks, missing, arguments)


if __name__ == "__main__":
    main()
