"""Side by side with the packages people would use instead: times, costs, memory, imports.

    python benches/peers.py --data ../shared/data

Every table is measured in one run, the competitors in turn, round after round. Peers: the published
ExKMC (`peer_exkmc.py`) and scikit-learn's DecisionTreeClassifier on the k-means labels. What is
missing (a data file, ExKMC) is left out by name. Nothing here fails because something was slow.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.tree import DecisionTreeClassifier

import common
import treeclust_rs as tc
from common import CASES, Case, Data, seconds, table, verdict
from memory import can_measure
from peer_exkmc import ExkmcPeer
from peer_process import peer_or_none

REPEATS = 5
SLOW_REPEATS = 3
OURS = "ours, 1 thread"
OURS_STORED = "ours, 1 thread, as stored"
OURS_TWO = "ours, 2 threads, as stored"
OURS_TWO_ARRAY = "ours, 2 threads"
CART = "DecisionTree"
EXKMC = "ExKMC"


def main() -> None:
    parser = common.parser(__doc__, data=True, only="only the cases whose name holds this")
    parser.add_argument(
        "--inits",
        type=int,
        default=10,
        help="k-means restarts that are run; the time is scaled to 10",
    )
    arguments = parser.parse_args()
    common.one_thread()

    missing = common.Missing()
    cases = list(common.chosen(CASES, arguments, missing))
    exkmc = peer_or_none(ExkmcPeer, "ExKMC", missing.add)

    times: list[list[str]] = []
    shares: list[list[str]] = []
    quality: list[list[str]] = []
    memory: list[list[str]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for case in cases:
            print(f"... {case.name}", file=sys.stderr, flush=True)
            bench = CaseBench(
                case, case.load(arguments.data), Path(scratch), exkmc, arguments.inits
            )
            bench.run()
            times += bench.time_rows()
            shares += bench.share_rows()
            quality += bench.quality_rows()
            if can_measure():
                memory += bench.memory_rows()
    if not can_measure():
        missing.add("memory: this system has no /proc/self/clear_refs.")
    print("... predict, import", file=sys.stderr, flush=True)
    sections = [
        "Medians in seconds of fitting the tree, the reference centers given.",
        table(
            ("work", "who", "seconds", "times faster", "target", "met"),
            times,
        ),
        "Cost of explaining: tree (1 thread) against k-means (1 thread).",
        table(("work", "KMeans(n_init=10)", "tree / k-means", "target", "met"), shares),
        "What the trees cost, over the cost of the reference (1 is the clusters themselves).",
        table(("work", "who", "leaves", "surrogate cost", "true cost"), quality),
        "Peak memory of the fit above the input.",
        table(("work", "who", "input MB", "peak above MB", "allowed MB", "met"), memory),
        "Predict, 1M x 20, 20 leaves, 1 thread, medians.",
        predict_table(),
        "Import, fresh processes, medians, the bare interpreter taken off.",
        import_table(),
    ]
    if exkmc is not None:
        sections.append(f"ExKMC: {exkmc.how}; one thread.")
        exkmc.close()
    common.publish("Peers", sections, missing, arguments.dry)


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

    def run(self) -> None:
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

        runs: dict[str, Callable[[], float]] = {
            OURS: self._ours(OURS, X, 1),
            OURS_TWO_ARRAY: self._ours(OURS_TWO_ARRAY, X, 2),
            OURS_STORED: self._ours(OURS_STORED, self.data.stored, 1),
            OURS_TWO: self._ours(OURS_TWO, self.data.stored, 2),
            CART: cart,
        }
        if self.exkmc is not None:
            exkmc = self.exkmc
            exkmc.ask("load", data=str(self.data_file), centers=str(self.centers_file))
            runs[EXKMC] = lambda: float(exkmc.ask("fit", max_leaves=case.max_leaves)["seconds"])
        self.times = common.interleaved(runs, REPEATS, SLOW_REPEATS)
        if self.exkmc is not None:
            self.exkmc.ask("labels", out=str(self.labels_file))
            self.trees[EXKMC] = (None, np.load(self.labels_file))

    def _ours(self, name: str, X: object, n_jobs: int) -> Callable[[], float]:
        def run() -> float:
            model = tc.ExKMC(max_leaves=self.case.max_leaves, reference=self.centers, n_jobs=n_jobs)
            elapsed = seconds(lambda: model.fit(X))
            self.trees[name] = (model.n_leaves_, model.labels_)
            return elapsed

        return run

    def _median(self, name: str) -> float:
        return statistics.median(self.times[name])

    def time_rows(self) -> list[list[str]]:
        ours = min(self._median(OURS), self._median(OURS_STORED))
        rows = []
        for name in (EXKMC, CART):
            if name in self.times:
                target = self.case.target_exkmc if name == EXKMC else self.case.target_tree
                ratio = self._median(name) / ours
                aim = [f">= {target:g}", verdict(ratio >= target)] if target > 1 else ["", ""]
                rows.append([name, f"{self._median(name):.3g}", f"{ratio:.1f}", *aim])
        for name, of in (
            (OURS, None),
            (OURS_STORED, None),
            (OURS_TWO_ARRAY, OURS),
            (OURS_TWO, OURS_STORED),
        ):
            shown = name.replace("as stored", self.data.stored_as)
            row = [shown, f"{self._median(name):.3g}", "", "", ""]
            if of is not None:
                gain = self._median(of) / self._median(name)
                target = self.case.target_threads
                row[2] = f"{gain:.2f} than 1"
                if target > 1:
                    row[3:] = [f">= {target:g}", verdict(gain >= target)]
            rows.append(row)
        return [[self.case.name, *row] for row in rows]

    def share_rows(self) -> list[list[str]]:
        share = self._median(OURS) / self.kmeans_seconds
        note = "" if self.inits == 10 else f" ({self.inits} restarts, scaled)"
        return [
            [
                self.case.name,
                f"{self.kmeans_seconds:.3g} s{note}",
                f"{share:.3f}",
                "<= 0.2",
                verdict(share <= 0.2),
            ]
        ]

    def quality_rows(self) -> list[list[str]]:
        X = self.data.array
        labels = common.nearest(X, self.centers)
        reference = common.costs(X, labels, self.centers)[0]
        rows = []
        for name in (EXKMC, CART, OURS, OURS_STORED):
            if name in self.trees:
                leaves, labels = self.trees[name]
                surrogate, true = common.costs(X, labels, self.centers)
                rows.append(
                    [
                        self.case.name,
                        name,
                        "" if leaves is None else str(leaves),
                        f"{surrogate / reference:.5f}",
                        f"{true / reference:.5f}",
                    ]
                )
        return rows

    def memory_rows(self) -> list[list[str]]:
        """Measured in fresh processes, each with one copy of the data."""
        rows = []
        n, d = self.data.array.shape
        stored = self.data.stored
        forms = [("array", "float64 array", self.data.array.nbytes, True)]
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
                ],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            extra = 3 * n * self.case.n_clusters * 8 + 64 * 2**20
            allowed = extra + (size // 2 if is_float else 2 * n * d)
            rows.append(self._memory_row(f"ours, {shown}", size, int(done.stdout), allowed))
        if self.exkmc is not None:
            answer = self.exkmc.ask("memory", max_leaves=self.case.max_leaves)
            rows.append(self._memory_row(EXKMC, self.data.array.nbytes, answer["bytes"], None))
        return rows

    def _memory_row(self, name: str, size: int, peak: int, allowed: int | None) -> list[str]:
        aim = ["", ""] if allowed is None else [_megabytes(allowed), verdict(peak <= allowed)]
        return [self.case.name, name, _megabytes(size), _megabytes(peak), *aim]


def _megabytes(size: int) -> str:
    return f"{size / 2**20:,.0f}"


def predict_table() -> str:
    X, centers = common.blobs(1_000_000, 20, 10)
    X32, frame, fortran = X.astype(np.float32), common.as_frame(X), np.asfortranarray(X)
    sample = X[:50_000]
    model = tc.ExKMC(max_leaves=20, reference=centers, n_jobs=1).fit(sample)
    by_name = tc.ExKMC(max_leaves=20, reference=centers, n_jobs=1).fit(frame.head(len(sample)))
    cart = DecisionTreeClassifier(max_leaf_nodes=20, random_state=0)
    cart.fit(sample, common.nearest(sample, centers))
    runs = {
        "DecisionTree, float64": lambda: seconds(lambda: cart.predict(X)),
        "DecisionTree, float32": lambda: seconds(lambda: cart.predict(X32)),
        "ours, float64, C order": lambda: seconds(lambda: model.predict(X)),
        "ours, float64, F order": lambda: seconds(lambda: model.predict(fortran)),
        "ours, float32, C order": lambda: seconds(lambda: model.predict(X32)),
        "ours, polars": lambda: seconds(lambda: by_name.predict(frame)),
    }
    medians = {
        name: statistics.median(done) for name, done in common.interleaved(runs, 7, 3).items()
    }
    rows = []
    for name, median in medians.items():
        row = [name, f"{median * 1e3:.1f} ms", "", "", ""]
        if name.startswith("ours"):
            peer = "DecisionTree, float32" if "float32" in name else "DecisionTree, float64"
            ratio = medians[peer] / median
            row[2:] = [f"{ratio:.2f}", ">= 2", verdict(ratio >= 2)]
        rows.append(row)
    return table(("who", "time", "times faster", "target", "met"), rows)


def import_table() -> str:
    def fresh(code: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-P", "-c", code], check=True))

    runs = {
        "nothing": lambda: fresh("pass"),
        "import sklearn.cluster, polars": lambda: fresh("import sklearn.cluster, polars"),
        "import treeclust_rs": lambda: fresh("import treeclust_rs"),
    }
    medians = {name: statistics.median(t) for name, t in common.interleaved(runs, 9, 9).items()}
    base = medians.pop("nothing")
    peer = medians["import sklearn.cluster, polars"] - base
    rows = []
    for name, median in medians.items():
        ratio = (median - base) / peer
        aim = ["<= 1.3", verdict(ratio <= 1.3)] if "treeclust" in name else ["", ""]
        rows.append([name, f"{(median - base) * 1e3:.0f} ms", f"{ratio:.2f}", *aim])
    return table(("what", "time", "ratio", "target", "met"), rows)


if __name__ == "__main__":
    main()
