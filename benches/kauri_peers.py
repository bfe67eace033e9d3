"""Kauri beside the published one, and where that cannot run: times, objectives, memory.

    python benches/kauri_peers.py

The peer is the package gemclus (`peer_gemclus.py`): same data, same limits, one thread, both in
turn, round after round. Objectives are computed here, from the labels. What is missing is left out
by name. Nothing here fails because something was slow.
"""

from __future__ import annotations

import statistics
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
from common import blobs, exponent, seconds, table, verdict
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
    max_clusters: int
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


def peers(only: str, missing: common.Missing) -> str:
    """Measure the works whose name holds `only`, and how the peer grows."""
    peer = peer_or_none(GemclusPeer, "gemclus", missing.add)
    rows: list[list[str]] = []
    for work in WORKS:
        if only in work.name:
            print(f"... {work.name}", file=sys.stderr, flush=True)
            rows += _beside(work, peer, missing)
    header = ("work", "who", "seconds", "times faster", "target", "met", "leaves", "objective")
    sections = ["Medians of whole fits, 1 thread.", table(header, rows)]
    if peer is not None:
        sections += [_peer_growth(peer), f"gemclus: {peer.how}; one thread."]
        peer.close()
    return "\n\n".join(sections)


def _beside(work: Work, peer: GemclusPeer | None, missing: common.Missing) -> list[list[str]]:
    X = work.load()
    gram = rbf_kernel(X) if work.kernel == "rbf" else linear_kernel(X - X.mean(axis=0))
    limits: dict[str, Any] = {"max_clusters": work.max_clusters, "max_leaves": work.max_leaves}
    kernel = "precomputed" if work.gram_given else work.kernel
    found: dict[str, tuple[int, np.ndarray]] = {}

    def ours() -> float:
        model = tc.Kauri(kernel=kernel, n_jobs=1, **limits)
        elapsed = seconds(lambda: model.fit(X, gram=gram if work.gram_given else None))
        found["ours"] = (model.n_leaves_, model.labels_)
        return elapsed

    runs: dict[str, Callable[[], float]] = {"ours": ours}
    if peer is not None:
        data = peer.file(X)
        given = peer.file(gram) if work.gram_given else None

        def theirs() -> float:
            elapsed, n_leaves, labels = peer.fit(data, gram=given, kernel=kernel, **limits)
            found["gemclus"] = (n_leaves, labels)
            return elapsed

        runs["gemclus"] = theirs
    try:
        times = common.interleaved(runs, REPEATS, SLOW_REPEATS)
    except PeerError as error:
        missing.add(f"gemclus on {work.name}: {error}.")
        times = common.interleaved({"ours": ours}, REPEATS, SLOW_REPEATS)
    medians = {name: statistics.median(done) for name, done in times.items()}
    rows = []
    for name, median in medians.items():
        leaves, labels = found[name]
        row = [work.name, name, f"{median:.4g}", "", "", "", str(leaves)]
        if name == "ours" and "gemclus" in medians:
            ratio = medians["gemclus"] / median
            row[3:6] = [f"{ratio:.1f}", f">= {work.target:g}", verdict(ratio >= work.target)]
        rows.append([*row, f"{objective(gram, labels):.8g}"])
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


def _peer_growth(peer: GemclusPeer) -> str:
    """How the peer's time and memory grow with the rows."""
    print("... how gemclus grows", file=sys.stderr, flush=True)
    sizes = (1_000, 2_000, 4_000)
    times, rows = [], []
    for n in sizes:
        data = peer.file(blobs(n, 10, 5)[0])
        times.append(peer.fit(data, max_clusters=5, max_leaves=20)[0])
        row = [f"{n:,}", f"{times[-1]:.3g}"]
        if can_measure():
            size = peer.memory(data, max_clusters=5, max_leaves=20)
            row += [f"{size / 2**20:,.0f}", f"{size / n**2:.1f}"]
        rows.append(row)
        peer.forget(data)
    header = ("rows (linear, blobs, 10 columns, 20 leaves)", "seconds", "peak above MB", "bytes/n²")
    return (
        table(header[: len(rows[0])], rows)
        + f"\ngemclus: exponent in rows {exponent(sizes, times):.2f}."
    )


# ---- where the peer cannot run --------------------------------------------------------------

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
GROWTH: dict[str, Any] = {"max_clusters": 10, "max_leaves": 40}
MOST_SECONDS = 30.0
MOST_BYTES = 1_500_000_000


def growth(_only: str, _missing: common.Missing) -> str:
    """Linear kernel, n up to a million."""
    print("... growth in rows", file=sys.stderr, flush=True)
    problems = {n: blobs(n, 10, 10)[0] for n in ROWS}
    runs = {
        f"{n} {n_jobs}": _fit(X, n_jobs=n_jobs, **GROWTH)
        for n, X in problems.items()
        for n_jobs in (1, 2)
    }
    times = {
        name: statistics.median(done)
        for name, done in common.interleaved(runs, REPEATS, SLOW_REPEATS).items()
    }
    ones = [times[f"{n} 1"] for n in ROWS]
    rows = []
    for i, n in enumerate(ROWS):
        one, two = times[f"{n} 1"], times[f"{n} 2"]
        step = f"{exponent(ROWS[i - 1 : i + 1], ones[i - 1 : i + 1]):.2f}" if i else ""
        row = [f"{n:,}", f"{one:.4g}", step, f"{two:.4g}", f"{one / two:.2f}"]
        if can_measure():
            took = common.fresh_fit("Kauri", problems[n], n_jobs=2, **GROWTH)
            row += [f"{took[key] / 1e6:,.0f}" for key in ("above", "peak")]
        rows.append(row)
    header = (
        "rows",
        "seconds, 1 thread",
        "exponent of the step",
        "2 threads",
        "times faster",
        "peak above MB, 2 threads",
        "whole process MB",
    )
    slope = exponent(ROWS, ones)
    said = [f"Exponent in rows, 1 thread: {slope:.2f} (target <= 1.15: {verdict(slope <= 1.15)})."]
    last = times[f"{ROWS[-1]} 2"]
    said.append(
        f"A million rows on 2 threads: {last:.3g} s (target < {MOST_SECONDS:g} s: "
        f"{verdict(last < MOST_SECONDS)})"
    )
    if can_measure():
        said[-1] += (
            f", {took['peak'] / 1e9:.2f} GB with data and interpreter (target < "
            f"{MOST_BYTES / 1e9:g} GB: {verdict(took['peak'] < MOST_BYTES)})"
        )
    about = (
        f"Linear kernel, blobs that overlap, 10 columns, k={GROWTH['max_clusters']}, "
        f"{GROWTH['max_leaves']} leaves; medians of whole fits.\n\n"
    )
    return about + table(header[: len(rows[0])], rows) + "\n" + " ".join(said) + "."


def _fit(X: np.ndarray, **parameters: Any) -> Callable[[], float]:
    return lambda: seconds(lambda: tc.Kauri(**parameters).fit(X))


RANK = 200
FEATURE_ROWS = (50_000, 100_000, 200_000)
FEATURES: dict[str, Any] = {
    "max_clusters": 10,
    "max_leaves": 40,
    "kernel": "rbf",
    "n_components": RANK,
    "random_state": 0,
}


def features(_only: str, _missing: common.Missing) -> str:
    """Rbf through features of rank 200: against exact at 8,000 rows, and up to 200,000."""
    X = _standard_blobs(8_000, 10)
    gram = rbf_kernel(X)
    exact: dict[str, Any] = {"max_clusters": 10, "max_leaves": 40, "n_jobs": 1}
    model = tc.Kauri(kernel="rbf", **exact)
    took = seconds(lambda: model.fit(X))
    start, best = objective(gram, np.zeros(len(X))), objective(gram, model.labels_)
    near = [["exact", f"{took:.3g}", f"{best:.6g}", "", "", ""]]
    large = []
    for method in ("rpcholesky", "nystroem", "rff"):
        print(f"... rbf by {method}", file=sys.stderr, flush=True)
        parameters = {**FEATURES, "approximation": method}
        model = tc.Kauri(n_jobs=1, **parameters)
        took = seconds(lambda: model.fit(X))  # noqa: B023  (called at once)
        reached = objective(gram, model.labels_)
        share, gained = reached / best, (reached - start) / (best - start)
        near.append(
            [
                method,
                f"{took:.3g}",
                f"{reached:.6g}",
                f"{share:.5f}",
                verdict(share >= 0.99),
                f"{gained:.5f}",
            ]
        )
        for n in FEATURE_ROWS:
            rows = _standard_blobs(n, 10)
            row = [f"{method}, {n:,}"]
            for n_jobs in (1, 2):
                done = common.fresh_fit("Kauri", rows, n_jobs=n_jobs, **parameters)
                row += [f"{done['seconds']:.3g}"]
            row += [f"{done['above'] / 1e6:,.0f}", f"{done['above'] / (8 * n * RANK):.2f}"]
            large.append(row)
    header = (
        f"rbf, blobs 8k x 10, rank {RANK}",
        "seconds",
        "objective",
        "of exact",
        ">= 0.99",
        "gain over one cluster, of exact",
    )
    return (
        f"Rbf, standardised blobs that overlap, k={FEATURES['max_clusters']}, "
        f"{FEATURES['max_leaves']} leaves; single fits, 1 thread unless said.\n\n"
        + table(header, near)
        + "\nObjectives are those of the exact kernel.\n\n"
        + table(
            (
                f"rbf, blobs x 10, rank {RANK}, rows",
                "seconds, 1 thread",
                "2 threads",
                "peak above MB",
                "of 8 n r bytes",
            ),
            large,
        )
    )


PARTS = {"peers": peers, "growth": growth, "features": features}


def main() -> None:
    arguments = common.parser(
        __doc__, parts=PARTS, only="beside the peer: only works that hold this"
    ).parse_args()
    common.one_thread()
    for part, section in PARTS.items():
        if part in arguments.parts:
            missing = common.Missing()
            if not can_measure():
                missing.add("memory: this system has no /proc/self/clear_refs.")
            body = section(arguments.only, missing)
            common.publish(f"Kauri: {part}", [body], missing, arguments.dry)


if __name__ == "__main__":
    main()
