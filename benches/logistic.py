"""The node solver of oblique trees: from nothing, from weights, from what another solve left.

    python benches/logistic.py --data ../shared/data

Runs `benches/logistic.rs` on MNIST, digits from 5 on against the others, pixels / 255, and reads
the samples that criterion leaves; without the data it has rows of its own. After 1 % of the labels
have changed, the solves stand beside scikit-learn's liblinear, which has no warm start. It has no
free bias either: its intercept is penalised like a column of the size `intercept_scaling`. Of some
settings the fastest that comes within 1e-3 of the least objective is timed, on sparse or dense
rows, whichever is faster for it; ours is on sparse rows and ends at the same `tol`. One thread.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import common
import records
from common import Missing, seconds, table
from figures import Cell, ratio, runs

FILE, ROWS = "mnist_train.npz", "LOGISTIC_ROWS"
NOTHING, CHANGED, WEIGHTS = "from nothing", "from 1 % of the labels changed", ", weights alone"
CLOSE = 1e-3
SETTINGS = ((10.0, 0.01), (30.0, 0.02), (30.0, 0.01), (100.0, 0.03), (100.0, 0.01))
"""intercept_scaling and tol of liblinear."""
REPEATS = 5

Rows = csr_matrix | np.ndarray


def main() -> None:
    parser = common.parser(__doc__, data=True)
    parser.add_argument("--limit", type=int, help="so many rows of the data (all)")
    arguments = common.parse(parser)
    common.one_thread()
    missing = Missing()
    peer: dict[str, Peer] = {}
    with tempfile.TemporaryDirectory() as scratch:
        if missing.unless_there("MNIST, liblinear", arguments.data / FILE):
            size, samples, _ = solver()
        else:
            X, y = images(arguments.data / FILE, arguments.limit)
            written = write(Path(scratch) / "rows", X, y)
            size, samples, least = solver({ROWS: str(written)})
            y[::100] ^= True  # as in logistic.rs
            for c, objective in least.items():
                print(f"... liblinear, C={c}", file=sys.stderr, flush=True)
                fastest = Peer.fastest(X, y, float(c), objective)
                if fastest is None:
                    missing.add(f"liblinear, C={c}: no setting came within {CLOSE:g}.")
                else:
                    peer[f"C={c}"] = fastest
    blocks = [
        f"{size}. *Times faster* is against the solve from nothing, and against liblinear on the "
        f"changed labels: {REPEATS} fits, after all of ours.",
        table(
            ("solve", "seconds", "times faster", "times faster than liblinear"),
            table_rows(samples, peer),
        ),
        *(f"liblinear, {c}: {one.how}." for c, one in peer.items()),
    ]
    common.publish("Logistic", blocks, missing, arguments)


def table_rows(samples: dict[str, list[float]], peer: dict[str, Peer]) -> list[list[Cell]]:
    """Return a row for every solve, those from weights alone beside those from all that is kept."""
    rows: list[list[Cell]] = []
    for name, took in samples.items():
        c, _, start = name.partition(" ")
        base = samples.get(f"{c} {NOTHING}")
        if base is None or start == NOTHING:
            rows.append([name, runs(took), "", ""])
        elif not name.endswith(WEIGHTS):
            theirs = peer[c].seconds if start == CHANGED and c in peer else None
            for kind in (name, name + WEIGHTS):
                ours = samples[kind]
                beside: Cell = "" if theirs is None else ratio(theirs, ours, format=".1f")
                rows.append([kind, runs(ours), ratio(base, ours), beside])
            if theirs is not None:
                rows.append([f"{c} liblinear, changed labels", runs(theirs), "", ""])
    return rows


def images(file: Path, limit: int | None) -> tuple[csr_matrix, np.ndarray]:
    """Return sparse rows, and whether the digit is 5 or more."""
    with np.load(file) as archive:
        return csr_matrix(archive["X"][:limit] / 255.0), archive["label"][:limit] >= 5


def write(path: Path, X: csr_matrix, y: np.ndarray) -> Path:
    """Write rows for `logistic.rs`: numbers of rows and cells, then the arrays."""
    sizes = np.array([X.shape[0], X.nnz])
    with path.open("wb") as file:
        for array in (sizes, X.indptr, X.indices):
            file.write(array.astype("<i8").tobytes())
        file.write(X.data.astype("<f8").tobytes())
        file.write(y.astype(np.uint8).tobytes())
    return path


def solver(
    environment: dict[str, str] | None = None,
) -> tuple[str, dict[str, list[float]], dict[str, float]]:
    """Run the Rust bench; return its size, seconds of every solve, least objectives by C."""
    began = time.time()
    done = subprocess.run(
        ("cargo", "bench", "--locked", "--bench", "logistic"),
        cwd=records.ROOT,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    print(done.stdout, file=sys.stderr)
    target = Path(os.environ.get("CARGO_TARGET_DIR", records.ROOT / "target"))
    size, samples = "", dict[str, list[float]]()
    for path in sorted((target / "criterion").glob("*/new/sample.json")):
        name = json.loads((path.parent / "benchmark.json").read_text())["full_id"]
        if " n=" not in name or path.stat().st_mtime < began:
            continue  # of another bench, or an earlier run
        name, size = name.split(" n=")
        sample = json.loads(path.read_text())
        samples[name] = [
            took / count / 1e9 for took, count in zip(sample["times"], sample["iters"], strict=True)
        ]
    least = re.findall(r"^least objective C=(\S+): (\S+)$", done.stdout, re.MULTILINE)
    return f"Ten samples each; n={size}", samples, {c: float(value) for c, value in least}


@dataclass(frozen=True)
class Peer:
    """liblinear at one C: the seconds of its fits, and how it was run."""

    seconds: list[float]
    how: str

    @classmethod
    def fastest(cls, X: csr_matrix, y: np.ndarray, c: float, least: float) -> Peer | None:
        """Time the fastest setting that comes close to the least objective; None if none does."""
        found: list[tuple[float, Rows, str, float, float]] = []

        def attempt(on: Rows, form: str, scaling: float, tol: float) -> None:
            took, gap = liblinear(on, y, c, scaling, tol, least)
            if gap <= CLOSE:
                found.append((took, on, form, scaling, tol))

        for scaling, tol in SETTINGS:
            attempt(X, "sparse", scaling, tol)
        if not found:
            return None
        *_, scaling, tol = min(found, key=lambda one: one[0])
        attempt(X.toarray(), "dense", scaling, tol)
        _, on, form, scaling, tol = min(found, key=lambda one: one[0])
        times, gaps = zip(
            *(liblinear(on, y, c, scaling, tol, least) for _ in range(REPEATS)), strict=True
        )
        how = f"{form} rows, intercept_scaling {scaling:g}, tol {tol:g}, objective "
        return cls(list(times), f"{how}{max(gaps):.1e} above the least")


def liblinear(
    X: Rows, y: np.ndarray, c: float, scaling: float, tol: float, least: float
) -> tuple[float, float]:
    """Return the seconds of a fit, and its objective's share above the least one."""
    model = LogisticRegression(
        l1_ratio=1,
        solver="liblinear",
        C=c,
        intercept_scaling=scaling,
        tol=tol,
        max_iter=1000,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        took = seconds(lambda: model.fit(X, y))
    margins = np.where(y, 1.0, -1.0) * model.decision_function(X)
    objective = np.logaddexp(0.0, -margins).sum() + np.abs(model.coef_).sum() / c
    return took, float(objective / least - 1.0)


if __name__ == "__main__":
    main()
