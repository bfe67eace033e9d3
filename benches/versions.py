"""Two versions of this package against each other, in turns, on the data sets of `peers.py`.

    python benches/versions.py OLD_PYTHON [NEW_PYTHON] --data ../shared/data

OLD_PYTHON and NEW_PYTHON are interpreters of environments that have a version each (the new one by
default the interpreter that runs this), and else the same packages: scikit-learn imports pandas
where it is installed, which is a fifth of an import. Every figure is a median over fresh processes,
old and new by turns; within a process a piece of work is timed several times and the median is
handed on.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import common
import records
from common import CASES, QUICK, seconds, table
from figures import ratio, runs

ROUNDS = 9
TARGET = "<= 1.05"
"""The new version may take so many times as long as the old one."""


def median_of(n_runs: int, work: Callable[[], object]) -> float:
    work()  # not timed: what is loaded once
    return statistics.median(seconds(work) for _ in range(n_runs))


def measure(data: Path, quick: bool) -> dict[str, float]:
    """Time the work of one process; the version is the one that it imports."""
    import treeclust_rs as tc

    common.one_thread()
    took = {}
    for case in CASES:
        if quick and not case.name.startswith(QUICK[:2]):
            continue
        if case.base_tree is None or (case.file and not (data / case.file).exists()):
            continue
        loaded = case.load(data)
        rows = np.linspace(0, len(loaded.array) - 1, case.n_clusters).astype(int)
        centers = common.nearest(loaded.array, loaded.array[rows])
        centers = np.array([loaded.array[centers == c].mean(axis=0) for c in range(len(rows))])
        for X, form, n_jobs in (
            (loaded.array, "1 thread", 1),
            (loaded.array, "2 threads", 2),
            (loaded.stored, f"2 threads, {loaded.stored_as}", 2),
        ):
            model = tc.ExKMC(max_leaves=case.max_leaves, reference=centers, n_jobs=n_jobs)
            took[f"ExKMC, {case.name}, {form}"] = median_of(5, partial(model.fit, X))
    if quick:
        return took
    X, _ = common.blobs(1_000_000, 10, 8)
    model = tc.ExKMC(8, max_leaves=16, random_state=0, n_jobs=2).fit(X[:20_000])
    frame, columns = common.as_frame(X), np.asfortranarray(X)
    took["predict, 1,000,000 x 10, rows"] = median_of(15, lambda: model.predict(X))
    took["predict, 1,000,000 x 10, columns"] = median_of(15, lambda: model.predict(columns))
    by_name = tc.ExKMC(8, max_leaves=16, random_state=0, n_jobs=2).fit(frame[:20_000])
    took["predict, 1,000,000 x 10, polars"] = median_of(15, lambda: by_name.predict(frame))
    row = X[:1].copy()
    took["predict, one row"] = median_of(300, lambda: model.predict(row))
    took["predict, one row of polars"] = median_of(300, lambda: by_name.predict(frame[:1]))
    took["route one row"] = median_of(1000, lambda: model.tree_.apply(row))
    kauri = tc.Kauri(8, max_leaves=16, n_jobs=2)
    took["Kauri, 100,000 x 10"] = median_of(5, lambda: kauri.fit(X[:100_000]))
    oblique = tc.ObliqueTree(8, max_depth=4, reference=model, max_iter=5, n_jobs=2)
    took["ObliqueTree, 20,000 x 10, 5 rounds"] = median_of(2, lambda: oblique.fit(X[:20_000]))
    kernel = tc.KernelExpand(8, max_leaves=16, reference=model.predict(X[:100_000]), base_tree=None)
    took["KernelExpand on labels, 100,000 x 10"] = median_of(15, lambda: kernel.fit(X[:100_000]))
    return took


def import_time(python: str) -> float:
    """CPU seconds of an interpreter that imports the package and ends."""
    before = os.times()
    subprocess.run([python, "-P", "-c", "import treeclust_rs"], check=True)
    after = os.times()
    return (
        after.children_user
        + after.children_system
        - (before.children_user + before.children_system)
    )


def median_import(python: str) -> float:
    return statistics.median(import_time(python) for _ in range(3))


def main() -> None:
    parser = common.parser(__doc__, data=True, quick="two cases, two rounds")
    parser.add_argument("old", nargs="?", help="interpreter with the old version")
    parser.add_argument("new", nargs="?", default=sys.executable, help="and with the new one")
    parser.add_argument("--name", default="", help="what the old version is, for the page")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    if "--worker" in sys.argv:  # of an old version there is nothing to note
        arguments = parser.parse_args()
        print(json.dumps(measure(arguments.data, arguments.quick)))
        return
    arguments = common.parse(parser)
    if arguments.old is None:
        parser.error("the interpreter of the old version is missing")
    old, new = packages_of(arguments.old), packages_of(arguments.new)
    if apart := sorted(name for name in old | new if old.get(name) != new.get(name)):
        parser.error(f"the two environments differ in {', '.join(apart)}: give them the same")
    missing = common.Missing()
    for case in CASES:
        if case.file and case.base_tree:
            missing.unless_there(case.name, arguments.data / case.file)
    times: dict[str, tuple[list[float], list[float]]] = {}
    rounds = 2 if arguments.quick else ROUNDS
    for turn in range(rounds):
        for place, python in enumerate((arguments.old, arguments.new)):
            side = ("old", "new")[place]
            print(f"... round {turn + 1} of {rounds}, {side}", file=sys.stderr, flush=True)
            command = [python, "-P", __file__, "--worker", "--data", str(arguments.data)]
            command += ["--quick"] if arguments.quick else []
            environment = os.environ | {"PYTHONPATH": str(common.HERE)}
            done = subprocess.run(
                command, stdout=subprocess.PIPE, text=True, check=True, env=environment
            )
            took = {**json.loads(done.stdout), "import (CPU)": median_import(python)}
            for what, figure in took.items():
                times.setdefault(what, ([], []))[place].append(1e3 * figure)
    rows = [
        [what, *(runs(side, format=".4g") for side in (old, new)), ratio(new, old, TARGET)]
        for what, (old, new) in times.items()
    ]
    blocks = [
        f"{rounds} processes a side, by turns. Old: {arguments.name or version_of(arguments.old)}.",
        table(("work", "old, ms", "new, ms", "new / old"), rows),
    ]
    common.publish("Versions", blocks, missing, arguments)


def packages_of(python: str) -> dict[str, str]:
    """Return the versions of the packages beside this one, less those that install packages."""
    code = (
        "import importlib.metadata as m, json; "
        "print(json.dumps({d.name.lower(): d.version for d in m.distributions()}))"
    )
    said = subprocess.run([python, "-P", "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    packages: dict[str, str] = json.loads(said.stdout)
    return {
        name: version
        for name, version in packages.items()
        if name.replace("-", "_") not in ("treeclust_rs", "pip", "setuptools", "wheel")
    }


def version_of(python: str) -> str:
    """Return number and sources' hash of the version that an interpreter imports."""
    code = "import treeclust_rs as tc; print(tc.__file__, tc.__version__)"
    said = subprocess.run([python, "-P", "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    file, _, number = said.stdout.strip().rpartition(" ")
    return f"treeclust_rs {number}, Python files {records.python_files(Path(file).parent)}"


if __name__ == "__main__":
    main()
