"""One thread against two, on the data sets of `peers.py`, with nothing else in between.

    python benches/threads.py --data ../shared/data

Five runs; in each, every table in turn has some seconds of fits, on one thread and on two by turns.
The ratio of a run is that of its medians; the page prints all five and their median. Then five runs
of a fit on one thread and two such fits at the same time. They say what the machine itself allows:
on shared machines two busy cores may give less than twice the work of one, and they are apart from
the rest so as not to disturb it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from sklearn.cluster import KMeans

import common
import treeclust_rs as tc
from common import CASES, QUICK, Case, seconds, table
from figures import Cell, ratio, runs

# Tables are measured in turns, so that a busy minute of a shared machine hurts them alike.
RUNS = 5
RUN_SECONDS = 3.0
MIN_ROUNDS = 3
TARGET = ">= 1.7"
ONE, TWO, ALONE, BOTH = "1", "2", "alone", "both"


@dataclass
class Work:
    """Fits of one table, and what they took: of each run, the times of its fits."""

    case: Case
    form: str
    X: object
    centers: np.ndarray
    times: dict[str, list[list[float]]] = field(default_factory=dict)

    def fit(self, n_jobs: int) -> float:
        case = self.case
        model = tc.ExKMC(
            max_leaves=case.max_leaves,
            base_tree=case.base_tree,
            reference=self.centers,
            n_jobs=n_jobs,
        )
        return seconds(lambda: model.fit(self.X))

    def two_at_once(self) -> float:
        with ThreadPoolExecutor(2) as pool:
            return seconds(lambda: list(pool.map(self.fit, (1, 1))))

    def row(self) -> list[Cell]:
        times = self.times
        return [
            self.case.name,
            self.form,
            runs(times[ONE], format=".4f"),
            runs(times[TWO], format=".4f"),
            ratio(times[ONE], times[TWO], TARGET, every=True),
            ratio(times[ALONE], times[BOTH], factor=2),
        ]


def main() -> None:
    arguments = common.parse(
        common.parser(
            __doc__,
            data=True,
            only="only the cases whose name holds this",
            quick=f"only the cases {'; '.join(QUICK[:2])}",
        )
    )
    common.one_thread()
    missing = common.Missing()
    works = []
    asked = [case for case in CASES if not arguments.quick or case.name.startswith(QUICK[:2])]
    for case in common.chosen(asked, arguments, missing):
        print(f"... {case.name}", file=sys.stderr, flush=True)
        data = case.load(arguments.data)
        centers = KMeans(case.n_clusters, n_init=1, random_state=0).fit(data.array).cluster_centers_
        for X, form in ((data.array, "float64, C order"), (data.stored, data.stored_as)):
            works.append(Work(case, form, X, centers))
    measure(works, lambda work: {ONE: lambda: work.fit(1), TWO: lambda: work.fit(2)})
    measure(works, lambda work: {ALONE: lambda: work.fit(1), BOTH: work.two_at_once})
    head = ("work", "table", "1 thread, s", "2 threads, s", "faster", "two fits at once")
    blocks = [
        f"The reference centers given; {RUNS} runs, whose ratios are all printed behind their "
        "median. *Two fits at once*: how much more two threads do that have nothing to do with "
        "each other.",
        table(head, [work.row() for work in works]),
    ]
    common.publish("Threads", blocks, missing, arguments)


def measure(works: list[Work], runs_of: Callable[[Work], dict[str, Callable[[], float]]]) -> None:
    for turn in range(RUNS):
        print(f"... run {turn + 1} of {RUNS}", file=sys.stderr, flush=True)
        for work in works:
            fits = runs_of(work)
            spent = sum(fit() for fit in fits.values())  # not kept: caches hold another table
            rounds = max(MIN_ROUNDS, round(RUN_SECONDS / spent))
            for name, times in common.interleaved(fits, rounds, rounds).items():
                work.times.setdefault(name, []).append(times)


if __name__ == "__main__":
    main()
