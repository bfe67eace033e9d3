"""Kernel clusterings beside published ones: times and costs.

    python benches/kernel_peers.py

The peer of kernel k-means is the package tslearn (`peer_tslearn.py`): same data, same kernel, one
start, one thread, both in turn, round after round, each round from other seeds. Costs are computed
here, from the labels. What is missing is left out by name. Nothing here fails because something was
slow.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

import common
import treeclust_rs as tc
from common import blobs, seconds, table, verdict
from peer_process import PeerError, peer_or_none
from peer_tslearn import TslearnPeer

SEEDS = 9
REACH = 5.0
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


def kmeans(only: str, n_seeds: int, missing: common.Missing) -> str:
    """Measure the works whose name holds `only`, from `n_seeds` seeds each."""
    peer = peer_or_none(TslearnPeer, "tslearn", missing.add)
    rows: list[list[str]] = []
    for work in WORKS:
        if only in work.name:
            print(f"... {work.name}", file=sys.stderr, flush=True)
            rows += _beside(work, peer, n_seeds, missing)
    header = (
        "work",
        "who",
        "seconds",
        "times faster",
        "target",
        "met",
        "mean cost",
        "least",
        "largest",
        "costs no more",
    )
    sections = [
        f"Kernel rbf, one start; medians of whole fits, and costs, over {n_seeds} seeds. "
        "1 thread unless said.",
        table(header, rows),
    ]
    if peer is not None:
        sections.append(f"tslearn: {peer.how}; one thread.")
        peer.close()
    return "\n\n".join(sections)


def _beside(
    work: Work, peer: TslearnPeer | None, n_seeds: int, missing: common.Missing
) -> list[list[str]]:
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

    runs = {OURS: ours(OURS, 1), OURS_TWO: ours(OURS_TWO, 2)}
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
            runs[THEIRS] = theirs
        except PeerError as error:
            missing.add(f"tslearn on {work.name}: {error}.")
    times = common.interleaved(runs, n_seeds, n_seeds)
    medians = {name: statistics.median(done) for name, done in times.items()}
    rows = []
    for name, median in medians.items():
        costs = found[name]
        mean = statistics.fmean(costs)
        row = [work.name, name, f"{median:.4g}", "", "", ""]
        row += [f"{value:.8g}" for value in (mean, min(costs), max(costs))]
        no_more = ""
        if name != THEIRS and THEIRS in medians:
            ratio = medians[THEIRS] / median
            row[3:6] = [f"{ratio:.1f}", f">= {REACH:g}", verdict(ratio >= REACH)]
            no_more = verdict(mean <= statistics.fmean(found[THEIRS]) * (1 + 1e-9))
        rows.append([*row, no_more])
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
    parser = common.parser(__doc__, parts=PARTS, only="only works that hold this")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="seeds, which are rounds too")
    arguments = parser.parse_args()
    common.one_thread()
    for part, section in PARTS.items():
        if part in arguments.parts:
            missing = common.Missing()
            body = section(arguments.only, arguments.seeds, missing)
            common.publish(f"Kernels: {part}", [body], missing, arguments.dry)


if __name__ == "__main__":
    main()
