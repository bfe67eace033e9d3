"""One thread against two, on the data sets of `peers.py`, with nothing else in between.

    python benches/threads.py --data ../shared/data

Rounds of a fit on one thread and a fit on two; then rounds of a fit on one thread and two such fits
at the same time. The latter say what the machine itself allows: on shared machines two busy cores
may give less than twice the work of one, and are apart from the rest so as not to disturb it.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from sklearn.cluster import KMeans

import common
import treeclust_rs as tc
from common import CASES, Case, seconds, table, verdict

# Tables are measured in turns, so that a busy minute of a shared machine hurts them alike.
TURNS = 15
TURN_SECONDS = 2.0


@dataclass
class Work:
    """Fits of one table: what is asked of them, and what they took."""

    case: Case
    form: str
    X: object
    centers: np.ndarray
    times: dict[str, list[float]] = field(default_factory=dict)

    def fit(self, n_jobs: int) -> float:
        model = tc.ExKMC(max_leaves=self.case.max_leaves, reference=self.centers, n_jobs=n_jobs)
        return seconds(lambda: model.fit(self.X))

    def two_at_once(self) -> float:
        with ThreadPoolExecutor(2) as pool:
            return seconds(lambda: list(pool.map(self.fit, (1, 1))))

    def row(self) -> list[str]:
        one, two, alone, pair = (statistics.median(times) for times in self.times.values())
        numbers = f"{one:.4f}", f"{two:.4f}", f"{one / two:.2f}", f"{2 * alone / pair:.2f}"
        return [self.case.name, self.form, *numbers, verdict(one / two >= self.case.target_threads)]


def main() -> None:
    arguments = common.parser(
        __doc__, data=True, only="only the cases whose name holds this"
    ).parse_args()
    common.one_thread()
    missing = common.Missing()
    works = []
    for case in [c for c in CASES if c.target_threads > 1 and arguments.only in c.name]:
        if case.file and missing.unless_there(case.name, arguments.data / case.file):
            continue
        print(f"... {case.name}", file=sys.stderr, flush=True)
        data = case.load(arguments.data)
        centers = KMeans(case.n_clusters, n_init=1, random_state=0).fit(data.array).cluster_centers_
        for X, form in ((data.array, "float64 array"), (data.stored, data.stored_as)):
            works.append(Work(case, form, X, centers))
    measure(works, lambda work: {"1": lambda: work.fit(1), "2": lambda: work.fit(2)})
    measure(works, lambda work: {"alone": lambda: work.fit(1), "both": work.two_at_once})
    head = ("work", "table", "1 thread, s", "2 threads, s", "faster", "two fits at once", "met")
    target = max(case.target_threads for case in CASES)
    sections = [
        f"Medians of interleaved fits, the reference centers given, the tables in {TURNS} turns. "
        "*Two fits at once*: how much more two threads do that have nothing to do with each other.",
        table(head, [work.row() for work in works]),
        f"Target: {target:g} times faster.",
    ]
    common.publish("Threads", sections, missing, arguments.dry)


def measure(works: list[Work], runs_of: Callable[[Work], dict[str, Callable[[], float]]]) -> None:
    for turn in range(TURNS):
        print(f"... turn {turn + 1} of {TURNS}", file=sys.stderr, flush=True)
        for work in works:
            runs = runs_of(work)
            spent = sum(run() for run in runs.values())  # not kept: caches hold another table
            rounds = max(1, round(TURN_SECONDS / spent))
            for name, times in common.interleaved(runs, rounds, rounds).items():
                work.times.setdefault(name, []).extend(times)


if __name__ == "__main__":
    main()
