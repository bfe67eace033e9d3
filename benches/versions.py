"""Two versions of this package against each other, in turns, on the data sets of `peers.py`.

    python benches/versions.py OLD_PYTHON [NEW_PYTHON] --data ../shared/data

OLD_PYTHON and NEW_PYTHON are interpreters of environments that have a version each (the new one by
default the interpreter that runs this), and else the same packages: scikit-learn imports pandas
where it is installed, which is a fifth of an import. A process of each holds the same data and
waits; every piece of work is done by the old and the new one by turns, so that a machine that
slows down for a while slows down both. After some turns two fresh processes take their places.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import common
import records
from common import CASES, QUICK, interleaved, table
from figures import Cell, ratio, runs
from peer_process import PeerProcess

PROCESSES = 3
"""Of each version, one after the other."""
TURNS = 9
"""For each pair of processes and piece of work."""
OTHERS = "others"
TARGET = "<= 1.05"
"""The new version may take so many times as long as the old one."""


def main() -> None:
    parser = common.parser(__doc__, data=True, quick="two cases, one pair of processes")
    parser.add_argument("old", help="interpreter with the old version")
    parser.add_argument("new", nargs="?", default=sys.executable, help="and with the new one")
    parser.add_argument("--name", default="", help="what the old version is, for the page")
    arguments = common.parse(parser)
    old, new = packages_of(arguments.old), packages_of(arguments.new)
    if apart := sorted(name for name in old | new if old.get(name) != new.get(name)):
        parser.error(f"the two environments differ in {', '.join(apart)}: give them the same")
    missing = common.Missing()
    groups = [] if arguments.quick else [OTHERS]
    for case in CASES:
        if case.base_tree is None or (arguments.quick and not case.name.startswith(QUICK[:2])):
            continue
        if not case.file or not missing.unless_there(case.name, arguments.data / case.file):
            groups.append(case.name)
    pythons = {"old": arguments.old, "new": arguments.new}
    times: dict[str, dict[str, list[float]]] = {}
    n_processes = 1 if arguments.quick else PROCESSES
    for pair in range(n_processes):
        for group in groups:
            print(f"... pair {pair + 1} of {n_processes}, {group}", file=sys.stderr, flush=True)
            measure(pythons, group, arguments.data, times)
        if not arguments.quick:
            note(
                times, "import (CPU)", {side: imported(python) for side, python in pythons.items()}
            )
    rows: list[list[Cell]] = [
        [
            what,
            *(runs(took[side], format=".4g") for side in pythons),
            ratio(took["new"], took["old"], TARGET),
        ]
        for what, took in times.items()
    ]
    blocks = [
        f"{n_processes} processes a side, {TURNS} turns each. Old: "
        f"{arguments.name or version_of(arguments.old)}.",
        table(("work", "old, ms", "new, ms", "new / old"), rows),
    ]
    common.publish("Versions", blocks, missing, arguments)


def measure(
    pythons: dict[str, str], group: str, data: Path, times: dict[str, dict[str, list[float]]]
) -> None:
    """Time the works of a group by a fresh process of each version."""
    sides = {
        side: PeerProcess(Path(python), "versions_worker.py") for side, python in pythons.items()
    }
    try:
        loaded = [side.ask("load", group=group, data=str(data)) for side in sides.values()]
        for work in loaded[0]["works"]:
            note(times, work, {side: asked(process, work) for side, process in sides.items()})
    finally:
        for process in sides.values():
            process.close()


def asked(process: PeerProcess, work: str) -> Callable[[], float]:
    return lambda: process.ask("run", work=work)["seconds"]


def note(
    times: dict[str, dict[str, list[float]]], work: str, sides: dict[str, Callable[[], float]]
) -> None:
    """Let both versions do a piece of work by turns."""
    for side, took in interleaved(sides, TURNS, TURNS).items():
        times.setdefault(work, {}).setdefault(side, []).extend(1e3 * one for one in took)


def imported(python: str) -> Callable[[], float]:
    """Return what gives the CPU seconds of an interpreter that imports the package and ends."""

    def run() -> float:
        before = os.times()
        subprocess.run([python, "-P", "-c", "import treeclust_rs"], check=True)
        after = os.times()
        return sum(after[2:4]) - sum(before[2:4])

    return run


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
