"""One thread against two, on the data sets of `peers.py`, with nothing else in between.

    python benches/threads.py --data ../shared/data

Rounds of a fit on one thread and a fit on two; then rounds of a fit on one thread and two such fits
at the same time. The latter say what the machine itself allows: on shared machines two busy cores
may give less than twice the work of one, and are apart from the rest so as not to disturb it.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

import common
import treeclust_rs as tc
from common import CASES, Case, seconds, table, verdict

ROUNDS = 25
# Quick fits are repeated for as long: a neighbour may keep a shared machine busy for seconds.
LEAST_SECONDS = 20.0
SLOW_ROUNDS = 9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="data folder")
    parser.add_argument("--only", default="", help="only the cases whose name holds this")
    parser.add_argument("--dry", action="store_true", help="print, but leave RESULTS.md alone")
    arguments = parser.parse_args()
    common.one_thread()
    missing = common.Missing()
    rows = []
    for case in [c for c in CASES if c.reach_threads > 1 and arguments.only in c.name]:
        if case.file is not None and not (arguments.data / case.file).exists():
            missing.add(f"{case.name}: there is no {arguments.data / case.file}.")
            continue
        print(f"... {case.name}", file=sys.stderr, flush=True)
        data = case.load(arguments.data)
        centers = KMeans(case.n_clusters, n_init=1, random_state=0).fit(data.array).cluster_centers_
        for X, form in ((data.array, "float64 array"), (data.stored, data.stored_as)):
            rows.append([case.name, form, *measure(case, X, centers)])
    head = ("work", "table", "1 thread, s", "2 threads, s", "faster", "two fits at once", "holds")
    reach = max(case.reach_threads for case in CASES)
    sections = [
        "Medians of interleaved fits, the reference centers given. *Two fits at once*: how much "
        "more two threads do that have nothing to do with each other.",
        table(head, rows),
        f"Reach: {reach:g} times faster.",
        *(f"Not measured: {line}" for line in missing.lines),
    ]
    body = "\n\n".join(sections)
    if arguments.dry:
        print(body)
    else:
        command = "python " + shlex.join(["benches/threads.py", *sys.argv[1:]])
        common.record("Threads", command, body)


def measure(case: Case, X: object, centers: np.ndarray) -> list[str]:
    def fit(n_jobs: int) -> float:
        model = tc.ExKMC(max_leaves=case.max_leaves, reference=centers, n_jobs=n_jobs)
        return seconds(lambda: model.fit(X))

    def both() -> float:
        with ThreadPoolExecutor(2) as pool:
            return seconds(lambda: list(pool.map(fit, (1, 1))))

    one, two = medians({"1": lambda: fit(1), "2": lambda: fit(2)})
    alone, pair = medians({"1": lambda: fit(1), "both": both})
    holds = verdict(one / two >= case.reach_threads)
    return [f"{one:.4f}", f"{two:.4f}", f"{one / two:.2f}", f"{2 * alone / pair:.2f}", holds]


def medians(runs: dict[str, Callable[[], float]]) -> list[float]:
    round_seconds = sum(run() for run in runs.values())
    rounds = max(ROUNDS, round(LEAST_SECONDS / round_seconds))
    times = common.interleaved(runs, rounds, SLOW_ROUNDS)
    return [statistics.median(times[name]) for name in runs]


if __name__ == "__main__":
    main()
