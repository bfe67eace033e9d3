"""Side by side with the packages people would use instead: times, costs, memory, imports.

    python benches/peers.py --data ../shared/data

Every table is measured in one run, the competitors in turn, round after round. Peers: the published
ExKMC (`peer_exkmc.py`) and scikit-learn's DecisionTreeClassifier on the k-means labels, each set
against ours on the same float64 array in C order; other inputs of ours are rows of their own. All
of it is on one thread: `threads.py` has two. What is missing (a data file, ExKMC) is left out by
name. Nothing here fails because something was slow.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.tree import DecisionTreeClassifier

import common
import treeclust_rs as tc
from common import CASES, QUICK, Case, Data, seconds, table
from figures import Cell, ratio, runs, value
from memory import can_measure
from peer_exkmc import ExkmcPeer
from peer_process import peer_or_none

REPEATS = 5
SLOW_REPEATS = 3
OURS = "ours, float64, C order"
CART = "DecisionTree"
EXKMC = "ExKMC"


def main() -> None:
    parser = common.parser(
        __doc__,
        data=True,
        only="only the cases whose name holds this",
        quick=f"only fits, of the cases {'; '.join(QUICK)}",
    )
    parser.add_argument(
        "--inits",
        type=int,
        default=10,
        help="k-means restarts that are run; the time is scaled to 10",
    )
    arguments = common.parse(parser)
    common.one_thread()

    missing = common.Missing()
    asked = [case for case in CASES if not arguments.quick or case.name.startswith(QUICK)]
    cases = list(common.chosen(asked, arguments, missing))
    inits = 1 if arguments.quick else arguments.inits
    exkmc = peer_or_none(ExkmcPeer, "ExKMC", missing.add)

    times: list[list[Cell]] = []
    shares: list[list[Cell]] = []
    quality: list[list[Cell]] = []
    memory: list[list[Cell]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for case in cases:
            print(f"... {case.name}", file=sys.stderr, flush=True)
            bench = CaseBench(case, case.load(arguments.data), Path(scratch), exkmc, inits)
            bench.run(2 if arguments.quick else SLOW_REPEATS)
            times += bench.time_rows()
            shares += bench.share_rows()
            quality += bench.quality_rows()
            if can_measure() and not arguments.quick:
                memory += bench.memory_rows()
    if not can_measure():
        missing.add("memory: this system has no /proc/self/clear_refs.")
    blocks = [
        "Seconds of fitting the tree, the reference centers given, on 1 thread. *Times slower* is "
        f"against {OURS}, round by round.",
        table(("work", "who", "seconds", "times slower than ours"), times),
        "Cost of explaining: tree (1 thread) against k-means (1 thread). The time of k-means is "
        f"scaled from n_init={inits}.",
        table(("work", "KMeans(n_init=10), seconds", "tree / k-means"), shares),
        "What the trees cost, over the cost of the reference (1 is the clusters themselves).",
        table(("work", "who", "leaves", "surrogate cost", "true cost"), quality),
    ]
    if not arguments.quick:
        print("... predict, import", file=sys.stderr, flush=True)
        blocks += [
            "Peak memory of the fit above the input, one fit in a fresh process.",
            table(("work", "who", "input MB", "peak above MB"), memory),
            "Predict, 1M x 20, 20 leaves, 1 thread.",
            predict_table(),
            "Import, fresh processes, the bare interpreter's median taken off.",
            import_table(),
        ]
    if exkmc is not None:
        blocks.append(f"ExKMC: {exkmc.how}; one thread.")
        exkmc.close()
    common.publish("Peers", blocks, missing, arguments)


class CaseBench:
    """One data set: the reference, the rounds, and the rows of the tables."""

    def __init__(
        self, case: Case, data: Data, scratch: Path, exkmc: ExkmcPeer | None, inits: int
    ) -> None:
        self.case = case
        self.data = data
        self.exkmc = exkmc
        self.inits = inits
        self.data_file = scratch / "data.npy"
        self.centers_file = scratch / "centers.npy"
        self.labels_file = scratch / "labels.npy"
        self.trees: dict[str, tuple[int | None, np.ndarray]] = {}

    def run(self, slow_repeats: int) -> None:
        case, X = self.case, self.data.array
        kmeans = KMeans(case.n_clusters, n_init=self.inits, random_state=0)
        self.kmeans_seconds = seconds(lambda: kmeans.fit(X)) * 10 / self.inits
        self.centers = kmeans.cluster_centers_
        labels = kmeans.predict(X)
        np.save(self.data_file, X)
        np.save(self.centers_file, self.centers)

        def cart() -> float:
            tree = DecisionTreeClassifier(max_leaf_nodes=case.max_leaves, random_state=0)
            elapsed = seconds(lambda: tree.fit(X, labels))
            self.trees[CART] = (tree.get_n_leaves(), tree.predict(X))
            return elapsed

        works: dict[str, Callable[[], float]] = {
            name: self._ours(name, held) for name, held in self._inputs().items()
        }
        works[CART] = cart
        if self.exkmc is not None:
            exkmc = self.exkmc
            exkmc.ask("load", data=str(self.data_file), centers=str(self.centers_file))
            works[EXKMC] = lambda: float(exkmc.ask("fit", **self._exkmc_parameters())["seconds"])
        self.times = common.interleaved(works, REPEATS, slow_repeats)
        if self.exkmc is not None:
            self.exkmc.ask("labels", out=str(self.labels_file))
            self.trees[EXKMC] = (None, np.load(self.labels_file))

    def _inputs(self) -> dict[str, object]:
        """Return the table in the forms that a user could hold it in."""
        X = self.data.array
        return {
            OURS: X,
            "ours, float64, F order": np.asfortranarray(X),
            "ours, float32, C order": X.astype(np.float32),
            "ours, polars Float64": common.as_frame(X),
            f"ours, {self.data.stored_as}": self.data.stored,
        }

    def _exkmc_parameters(self) -> dict[str, Any]:
        return {"max_leaves": self.case.max_leaves, "empty": self.case.base_tree is None}

    def _ours(self, name: str, X: object) -> Callable[[], float]:
        def run() -> float:
            case = self.case
            model = tc.ExKMC(
                max_leaves=case.max_leaves,
                base_tree=case.base_tree,
                reference=self.centers,
                n_jobs=1,
            )
            elapsed = seconds(lambda: model.fit(X))
            self.trees[name] = (model.n_leaves_, model.labels_)
            return elapsed

        return run

    def time_rows(self) -> list[list[Cell]]:
        rows: list[list[Cell]] = []
        targets = {EXKMC: self.case.target_exkmc, CART: self.case.target_tree}
        for name, times in self.times.items():
            slower: Cell = ""
            if name in targets:
                target = f">= {targets[name]:g}" if targets[name] > 1 else None
                slower = ratio(times, self.times[OURS], target, format=".1f")
            rows.append([self.case.name, name, runs(times), slower])
        return rows

    def share_rows(self) -> list[list[Cell]]:
        ours = self.times[OURS]
        share = ratio(ours, [self.kmeans_seconds] * len(ours), "<= 0.2", format=".3f")
        return [[self.case.name, runs([self.kmeans_seconds]), share]]

    def quality_rows(self) -> list[list[Cell]]:
        X = self.data.array
        labels = common.nearest(X, self.centers)
        reference = common.costs(X, labels, self.centers)[0]
        rows: list[list[Cell]] = []
        for name, (leaves, labels) in self.trees.items():
            costs = common.costs(X, labels, self.centers)
            shares = (value(cost / reference, format=".5f") for cost in costs)
            rows.append([self.case.name, name, leaves, *shares])
        return rows

    def memory_rows(self) -> list[list[Cell]]:
        """Measured in fresh processes, each with one copy of the data."""
        rows = []
        n, d = self.data.array.shape
        stored = self.data.stored
        forms = [("array", "float64, C order", self.data.array.nbytes, True)]
        if isinstance(stored, np.ndarray):
            forms.append(("stored", self.data.stored_as, stored.nbytes, False))
            np.save(self.data_file.with_name("stored.npy"), stored)
        else:
            size = int(stored.estimated_size())
            forms.append(("frame", self.data.stored_as, size, "Float" in self.data.stored_as))
            stored.write_parquet(self.data_file.with_name("stored.parquet"))
        for form, shown, size, is_float in forms:
            done = subprocess.run(
                [
                    sys.executable,
                    common.HERE / "fit_memory.py",
                    form,
                    str(self.data_file.parent),
                    str(self.case.max_leaves),
                    self.case.base_tree or "none",
                ],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            extra = 3 * n * self.case.n_clusters * 8 + 64 * 2**20
            allowed = extra + (size // 2 if is_float else 2 * n * d)
            target = f"<= {_megabytes(allowed):,.0f}"
            rows.append(self._memory_row(f"ours, {shown}", size, int(done.stdout), target))
        if self.exkmc is not None:
            answer = self.exkmc.ask("memory", **self._exkmc_parameters())
            rows.append(self._memory_row(EXKMC, self.data.array.nbytes, answer["bytes"]))
        return rows

    def _memory_row(self, name: str, size: int, peak: int, target: str | None = None) -> list[Cell]:
        numbers = (
            value(_megabytes(size), format=",.0f"),
            value(_megabytes(peak), target, format=",.0f"),
        )
        return [self.case.name, name, *numbers]


def _megabytes(size: int) -> float:
    return size / 2**20


def predict_table() -> dict[str, Any]:
    X, centers = common.blobs(1_000_000, 20, 10)
    X32, frame, fortran = X.astype(np.float32), common.as_frame(X), np.asfortranarray(X)
    sample = X[:50_000]
    model = tc.ExKMC(max_leaves=20, reference=centers, n_jobs=1).fit(sample)
    by_name = tc.ExKMC(max_leaves=20, reference=centers, n_jobs=1).fit(frame.head(len(sample)))
    cart = DecisionTreeClassifier(max_leaf_nodes=20, random_state=0)
    cart.fit(sample, common.nearest(sample, centers))
    works = {
        "DecisionTree, float64": lambda: seconds(lambda: cart.predict(X)),
        "DecisionTree, float32": lambda: seconds(lambda: cart.predict(X32)),
        "ours, float64, C order": lambda: seconds(lambda: model.predict(X)),
        "ours, float64, F order": lambda: seconds(lambda: model.predict(fortran)),
        "ours, float32, C order": lambda: seconds(lambda: model.predict(X32)),
        "ours, polars": lambda: seconds(lambda: by_name.predict(frame)),
    }
    times = common.interleaved(works, 7, 3)
    rows: list[list[Cell]] = []
    for name, done in times.items():
        faster: Cell = ""
        if name.startswith("ours"):
            peer = "DecisionTree, float32" if "float32" in name else "DecisionTree, float64"
            faster = ratio(times[peer], done, ">= 2")
        rows.append([name, runs([1e3 * one for one in done]), faster])
    return table(("who", "ms", "times faster"), rows)


def import_table() -> dict[str, Any]:
    def fresh(code: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-P", "-c", code], check=True))

    works = {
        "nothing": lambda: fresh("pass"),
        "import sklearn.cluster, polars": lambda: fresh("import sklearn.cluster, polars"),
        "import treeclust_rs": lambda: fresh("import treeclust_rs"),
    }
    times = common.interleaved(works, 9, 9)
    base = statistics.median(times.pop("nothing"))
    above = {name: [1e3 * (one - base) for one in done] for name, done in times.items()}
    peer, ours = above
    rows: list[list[Cell]] = [
        [peer, runs(above[peer]), ""],
        [ours, runs(above[ours]), ratio(above[ours], above[peer], "<= 1.3")],
    ]
    return table(("what", "ms", "ratio"), rows)


if __name__ == "__main__":
    main()
