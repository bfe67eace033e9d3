"""How long after Ctrl-C a fit ends, of every estimator.

    python benches/interrupts.py

Each fit runs in a process of its own, on data that it needs several seconds for: once to its end,
or to a limit, and then once for each of some shares of that time, after which the process gets
SIGINT. Counted are the seconds until KeyboardInterrupt arrives in Python. Afterwards the estimator
must be as before the fit, without fitted attributes.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import common
import treeclust_rs as tc
from common import table
from figures import Cell, runs, value
from peer_process import PeerError
from report import verdict

TARGET = "<= 1"
LIMIT = 12.0
"""Longer fits are interrupted within so many seconds."""
PATIENCE = 120.0
"""How many seconds after the signal a fit is given up."""
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Of the time of the fit, or of the limit."""


@dataclass(frozen=True)
class Work:
    """A long fit: of blobs of so many rows, columns and clusters, to as many clusters."""

    estimator: str
    shape: tuple[int, int, int]
    parameters: dict[str, Any] = field(default_factory=dict)
    reference: str | None = None
    """What the tree is given: the true centers, the labels of the nearest, or nothing."""

    @property
    def name(self) -> str:
        """What tells works of one estimator apart."""
        options = ("kernel", "approximation", "features", "solver", "splits", "base_tree")
        said = [f"{key}={self.parameters[key]}" for key in options if key in self.parameters]
        if self.reference is not None:
            said.append(f"{self.reference} given")
        return ", ".join((self.estimator, *said))


LARGE = (1_000_000, 40, 30)
MANY: dict[str, Any] = {"max_leaves": 20_000}
FEATURES: dict[str, Any] = {"approximation": "nystroem", "n_components": 300}
WORKS = (
    Work("BestTree", (200_000, 20, 20), {"max_leaves": 40}, "centers"),
    Work("BestTree", LARGE, {"max_leaves": 60, "effort": "quick"}, "centers"),
    Work("IMM", (2_000_000, 40, 30), reference="centers"),
    Work("ExGreedy", (200_000, 20, 20), reference="centers"),
    Work("ExShallow", (200_000, 20, 20), reference="centers"),
    Work("RandomCuts", LARGE, {"n_trials": 100}, "centers"),
    Work("ExKMC", LARGE),
    Work("ExKMC", LARGE, MANY, "centers"),
    Work("ExKMC", LARGE, {**MANY, "base_tree": None}, "centers"),
    Work("SpExTree", LARGE, MANY, "labels"),
    Work("KMeansTree", LARGE, MANY, "labels"),
    Work("KDTreeClusters", LARGE, MANY, "centers"),
    Work("XRegressionTree", (100_000, 20, 20), {"max_leaves": 400}, "centers"),
    Work("KernelKMeans", (12_000, 20, 20)),
    Work("KernelKMeans", (400_000, 20, 20), FEATURES),
    Work("KernelIMM", (12_000, 20, 20)),
    Work("KernelIMM", (6_000, 10, 20), {"features": "distance", "n_anchors": "all"}, "labels"),
    Work("KernelExKMC", (12_000, 20, 20), {"max_leaves": 400}, "labels"),
    Work("KernelExKMC", (200_000, 20, 20), {**FEATURES, "max_leaves": 400}),
    Work("KernelExpand", (100_000, 20, 30), {"max_leaves": 400, "base_tree": None}, "labels"),
    Work("CUBT", (1_000_000, 20, 20), {"min_deviance": 0.0, "max_leaves": 2_000}),
    Work("CLTree", (200_000, 20, 20)),
    Work("Kauri", (1_000_000, 20, 20), {"max_leaves": 200}),
    Work("Kauri", (12_000, 20, 20), {"kernel": "rbf"}),
    Work("Kauri", (200_000, 20, 20), {**FEATURES, "kernel": "rbf", "max_leaves": 100}),
    Work("ObliqueTree", (200_000, 40, 20), {"max_depth": 6}, "centers"),
    Work("ObliqueTree", (200_000, 40, 20), {"max_depth": 6, "solver": "path"}, "centers"),
    Work("ObliqueTree", LARGE, {"max_depth": 6, "splits": "axis"}, "centers"),
    Work("VoronoiTree", (1_000_000, 40, 14), reference="centers"),
    Work("Douglas", (100_000, 6, 4), {"max_iter": 1_000}),
)

CHILD = """
import json, signal, sys, time
import treeclust_rs as tc
from common import blobs, nearest

estimator, shape, parameters, reference = json.loads(sys.argv[1])
X, centers = blobs(*shape)
if reference is not None:
    parameters["reference"] = centers if reference == "centers" else nearest(X, centers)
model = getattr(tc, estimator)(shape[2], **parameters)
before = set(vars(model))
print("ready", flush=True)
start, ended = time.time(), "finished"
try:
    model.fit(X)
except KeyboardInterrupt:
    ended = "interrupted"
end = time.time()
signal.signal(signal.SIGINT, signal.SIG_IGN)
print(json.dumps([ended, start, end, sorted(set(vars(model)) - before)]), flush=True)
"""


def main() -> None:
    parser = common.parser(
        __doc__,
        only="only the works that hold one of these, A,B,...",
        quick="one moment, a tenth of the rows",
    )
    arguments = common.parse(parser)
    missing = common.Missing()
    untried = {
        name
        for name in tc.__all__
        if isinstance(getattr(tc, name), type) and hasattr(getattr(tc, name), "fit")
    } - {work.estimator for work in WORKS}
    for name in sorted(untried):
        missing.add(f"{name}: no work for it in this bench.")
    shares = SHARES[2:3] if arguments.quick else SHARES
    rows: list[list[Cell]] = []
    for work in WORKS:
        if not any(part in work.name for part in arguments.only.split(",")):
            continue
        n, d, k = work.shape
        shape = (n // 10, d, k) if arguments.quick else work.shape
        try:
            whole = fit(work, shape, LIMIT)
            took = LIMIT if whole.interrupted else whole.seconds
            ends = [whole, *(fit(work, shape, share * took) for share in shares)]
        except PeerError as error:
            missing.add(f"{work.name}: {str(error).rstrip('.')}.")
            continue
        waits = [end.seconds for end in ends if end.interrupted]
        if not waits:
            missing.add(f"{work.name}: ended before it was interrupted.")
            continue
        unchanged = verdict(not any(end.fitted for end in ends if end.interrupted))
        wait, longest = runs(waits, every=True), value(max(waits), TARGET, format=".2f")
        rows.append([work.name, f"{shape[0]:,} x {d}, k={k}", wait, longest, unchanged])
    blocks: list[Any] = [
        "Seconds from SIGINT to KeyboardInterrupt, fits on all threads, interrupted after "
        f"{', '.join(f'{share:.0%}' for share in shares)} of their time, at most {LIMIT:g} s, "
        "and after those: the median, and all.",
        table(("fit", "data", "seconds", "longest", "as before the fit"), rows),
    ]
    common.publish("Interrupts", blocks, missing, arguments)


@dataclass(frozen=True)
class End:
    """How a fit ended; its seconds, since the signal if it was interrupted."""

    interrupted: bool
    seconds: float
    fitted: list[str]
    """Attributes that the fit has set."""


def fit(work: Work, shape: tuple[int, int, int], limit: float) -> End:
    """Fit in a fresh process and interrupt it after `limit` seconds; PeerError if it fails."""
    print(f"... {work.name}, for {limit:.1f} s", file=sys.stderr, flush=True)
    task = json.dumps([work.estimator, shape, work.parameters, work.reference])
    command = [sys.executable, "-W", "ignore", "-c", CHILD, task]
    with subprocess.Popen(
        command, cwd=common.HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        sent = float("inf")
        if process.stdout.readline():
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                sent = time.time()
                process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise PeerError(f"not interrupted within {PATIENCE:g} s") from None
    if process.returncode:
        raise PeerError((err.strip().splitlines() or ["no answer"])[-1])
    how, start, end, fitted = json.loads(out)
    interrupted = how == "interrupted"
    return End(interrupted, end - sent if interrupted else end - start, fitted)


if __name__ == "__main__":
    main()
