"""The version of this package that its interpreter imports, at work for `versions.py`."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import common
import treeclust_rs as tc
from common import CASES, Case, seconds
from worker_loop import answer_requests


class Worker:
    """Holds the data of one group of works between commands."""

    def load(self, group: str, data: str) -> dict[str, list[str]]:
        """Make the works of a group ready, and do each once: what is loaded once is not timed."""
        case = next((case for case in CASES if case.name == group), None)
        self.works = _small_works() if case is None else _fits(case, Path(data))
        for work in self.works.values():
            work()
        return {"works": list(self.works)}

    def run(self, work: str) -> dict[str, float]:
        return {"seconds": self.works[work]()}


def _fits(case: Case, data: Path) -> dict[str, Callable[[], float]]:
    loaded = case.load(data)
    rows = np.linspace(0, len(loaded.array) - 1, case.n_clusters).astype(int)
    centers = common.nearest(loaded.array, loaded.array[rows])
    centers = np.array([loaded.array[centers == c].mean(axis=0) for c in range(len(rows))])
    works: dict[str, Callable[[], float]] = {}
    for X, form, n_jobs in (
        (loaded.array, "1 thread", 1),
        (loaded.array, "2 threads", 2),
        (loaded.stored, f"2 threads, {loaded.stored_as}", 2),
    ):
        model = tc.ExKMC(max_leaves=case.max_leaves, reference=centers, n_jobs=n_jobs)
        works[f"ExKMC, {case.name}, {form}"] = partial(seconds, partial(model.fit, X))
    return works


def _small_works() -> dict[str, Callable[[], float]]:
    X, _ = common.blobs(1_000_000, 10, 8)
    model = tc.ExKMC(8, max_leaves=16, random_state=0, n_jobs=2).fit(X[:20_000])
    frame, columns = common.as_frame(X), np.asfortranarray(X)
    by_name = tc.ExKMC(8, max_leaves=16, random_state=0, n_jobs=2).fit(frame[:20_000])
    row, few = X[:1].copy(), X[:100_000]
    kauri = tc.Kauri(8, max_leaves=16, n_jobs=2)
    oblique = tc.ObliqueTree(8, max_depth=4, reference=model, max_iter=5, n_jobs=2)
    kernel = tc.KernelExpand(8, max_leaves=16, reference=model.predict(few), base_tree=None)
    return {
        "predict, 1,000,000 x 10, rows": _median(5, lambda: model.predict(X)),
        "predict, 1,000,000 x 10, columns": _median(5, lambda: model.predict(columns)),
        "predict, 1,000,000 x 10, polars": _median(5, lambda: by_name.predict(frame)),
        "predict, one row": _median(300, lambda: model.predict(row)),
        "predict, one row of polars": _median(300, lambda: by_name.predict(frame[:1])),
        "route one row": _median(1000, lambda: model.tree_.apply(row)),
        "Kauri, 100,000 x 10": _median(1, lambda: kauri.fit(few)),
        "ObliqueTree, 20,000 x 10, 5 rounds": _median(1, lambda: oblique.fit(X[:20_000])),
        "KernelExpand on labels, 100,000 x 10": _median(3, lambda: kernel.fit(few)),
    }


def _median(n_runs: int, work: Callable[[], object]) -> Callable[[], float]:
    """Return what does a short piece of work several times and gives the median of the seconds."""
    return lambda: statistics.median(seconds(work) for _ in range(n_runs))


if __name__ == "__main__":
    common.one_thread()
    answer_requests(Worker())
