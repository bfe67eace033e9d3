"""Kernel clusterings beside published ones: times and costs.

    python benches/kernel_peers.py

The peer of kernel k-means is the package tslearn (`peer_tslearn.py`): same data, same kernel, one
start, one thread, both in turn, round after round, each round from other seeds. Costs are computed
here, from the labels. What is missing is left out by name. Nothing here fails because something was
slow.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

import common
import treeclust_rs as tc
from common import blobs, seconds, table
from figures import Cell, mean, ratio, runs
from peer_process import PeerError, peer_or_none
from peer_tslearn import TslearnPeer
from report import verdict

SEEDS = 9
TARGET = ">= 5"
OURS, OURS_TWO, THEIRS = "ours", "ours, 2 threads", "tslearn"


@dataclass(frozen=True)
class Work:
    """One row of the table."""

    name: str
    load: Callable[[], np.ndarray]
    n_clusters: int
    gamma: float


def _blobs(n: int, d: int, k: int) -> np.ndarray:
    return np.ascontiguousarray(StandardScaler().fit_transform(blobs(n, d, k)[0]))


def _moons(n: int) -> np.ndarray:
    return np.ascontiguousarray(make_moons(n, noise=0.08, random_state=0)[0])


WORKS = (
    Work("blobs 2k x 10, k=5", lambda: _blobs(2_000, 10, 5), 5, 0.1),
    Work("blobs 4k x 10, k=5", lambda: _blobs(4_000, 10, 5), 5, 0.1),
    Work("blobs 8k x 10, k=5", lambda: _blobs(8_000, 10, 5), 5, 0.1),
    Work("blobs 4k x 20, k=10", lambda: _blobs(4_000, 20, 10), 10, 0.05),
    Work("moons 4k x 2, k=3", lambda: _moons(4_000), 3, 5.0),
)


def kmeans(arguments: argparse.Namespace, missing: common.Missing) -> list[Any]:
    """Measure the works whose name holds ``--only``, from ``--seeds`` seeds each."""
    peer = peer_or_none(TslearnPeer, "tslearn", missing.add)
    n_seeds = 3 if arguments.quick else arguments.seeds
    rows: list[list[Cell]] = []
    for work in WORKS[:2] if arguments.quick else WORKS:
        if arguments.only in work.name:
            print(f"... {work.name}", file=sys.stderr, flush=True)
            rows += _beside(work, peer, n_seeds, missing)
    header = ("work", "who", "seconds", "times faster", "mean cost", "costs no more")
    blocks: list[Any] = [
        f"Kernel rbf, one start; whole fits, over {n_seeds} seeds, and their mean cost with its "
        "standard deviation. 1 thread unless said.",
        table(header, rows),
    ]
    if peer is not None:
        blocks.append(f"tslearn: {peer.how}; one thread.")
        peer.close()
    return blocks


def _beside(
    work: Work, peer: TslearnPeer | None, n_seeds: int, missing: common.Missing
) -> list[list[Cell]]:
    X = work.load()
    gram = rbf_kernel(X, gamma=work.gamma)
    found: dict[str, list[float]] = {}

    def ours(name: str, n_jobs: int) -> Callable[[], float]:
        def fit() -> float:
            costs = found.setdefault(name, [])
            model = tc.KernelKMeans(
                work.n_clusters,
                gamma=work.gamma,
                n_init=1,
                random_state=len(costs),
                n_jobs=n_jobs,
            )
            elapsed = seconds(lambda: model.fit(X))
            costs.append(cost(gram, model.labels_))
            return elapsed

        return fit

    works = {OURS: ours(OURS, 1), OURS_TWO: ours(OURS_TWO, 2)}
    if peer is not None:
        data = peer.file(X)

        def theirs() -> float:
            costs = found.setdefault(THEIRS, [])
            elapsed, labels = peer.fit(
                data,
                n_clusters=work.n_clusters,
                kernel="rbf",
                kernel_params={"gamma": work.gamma},
                n_init=1,
                random_state=len(costs),
            )
            costs.append(cost(gram, labels))
            return elapsed

        try:
            peer.fit(data, n_clusters=2, kernel="rbf", n_init=1, max_iter=1, random_state=0)
            works[THEIRS] = theirs
        except PeerError as error:
            missing.add(f"tslearn on {work.name}: {error}.")
    times = common.interleaved(works, n_seeds, n_seeds)
    rows: list[list[Cell]] = []
    for name, done in times.items():
        costs = found[name]
        faster, no_more = "", ""
        if name != THEIRS and THEIRS in times:
            faster = ratio(times[THEIRS], done, TARGET, format=".1f")
            least = statistics.fmean(found[THEIRS]) * (1 + 1e-9)
            no_more = verdict(statistics.fmean(costs) <= least)
        cost_shown = mean(costs, format=".6g")
        rows.append([work.name, name, runs(done, format=".4g"), faster, cost_shown, no_more])
    return rows


def cost(gram: np.ndarray, labels: np.ndarray) -> float:
    """Kernel k-means cost, from its definition."""
    total = float(gram.trace())
    for label in np.unique(labels):
        member = (labels == label).astype(np.float64)
        total -= float(member @ (gram @ member)) / float(member.sum())
    return total


PARTS = {"kmeans": kmeans}


def main() -> None:
    parser = common.parser(
        __doc__, parts=PARTS, only="only works that hold this", quick="two works, three seeds"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds, which are rounds too")
    arguments = common.parse(parser)
    common.one_thread()
    for part, section in PARTS.items():
        if part in arguments.parts:
            missing = common.Missing()
            blocks = section(arguments, missing)
            common.publish(f"Kernels: {part}", blocks, missing, arguments)


if __name__ == "__main__":
    main()
