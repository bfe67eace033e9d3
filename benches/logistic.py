"""The node solver of oblique trees beside scikit-learn's liblinear, from nothing and warm-started.

    python benches/logistic.py --data ../shared/data

The problem is MNIST, digits from 5 on against the others, pixels / 255, with an l1 penalty and a
bias that is free. liblinear has no free bias: its intercept is penalised like a column of the size
`intercept_scaling`. Of some settings the fastest that comes within 1e-3 of the optimum is timed, on
sparse or dense rows, whichever is faster for it; our solver always runs with `tol=1e-3`, on sparse
rows. Objectives are computed here, with a free bias on both sides. liblinear has no warm start, so
it solves each problem from nothing. Ours goes on from what the solve before kept; for comparison
also from its weights alone. One thread, all in turn, round after round; seconds of the processor,
so that a busy machine says little. Nothing here fails because something was slow.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import common
from common import table, verdict
from treeclust_rs import _core

REPEATS = 5
SLOW_REPEATS = 3
FILE = "mnist_train.npz"
PENALTIES = (0.01, 0.1, 1.0)
CLOSE = 1e-3
OURS, FROM_WEIGHTS, PEER = "ours", "ours, from the weights alone", "liblinear"
# intercept_scaling and tol of liblinear.
SETTINGS = ((10.0, 0.01), (30.0, 0.02), (30.0, 0.01), (100.0, 0.03), (100.0, 0.01))


Matrix = csr_matrix | np.ndarray


@dataclass(frozen=True)
class Problem:
    """Labels and C; `optimum` is the least objective."""

    y: np.ndarray
    c: float
    optimum: float

    def gap(self, X: Matrix, w: np.ndarray, bias: float) -> float:
        """Give how far the objective is above the least one, as a share."""
        margins = np.where(self.y, 1.0, -1.0) * (X @ w + bias)
        objective = np.logaddexp(0.0, -margins).sum() + np.abs(w).sum() / self.c
        return float(objective / self.optimum - 1.0)


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def design(X: csr_matrix) -> Any:
    return _core.Design.from_csr(X.indptr, X.indices, X.data, X.shape[1], 1)


def solve(made: Any, y: np.ndarray, c: float, *, tol: float = CLOSE, start: Any = None) -> Any:
    found = _core.l1_logistic(
        made,
        np.arange(len(y), dtype=np.uint32),
        y,
        np.ones(len(y)),
        strength=1.0 / c,
        penalty=None,
        start=start,
        tol=tol,
        max_iter=1000,
        n_jobs=1,
    )
    assert found["gap"] <= tol
    return found


def weights_of(found: Any) -> Any:
    return found["columns"], found["weights"], found["bias"]


def liblinear(
    X: Matrix, problem: Problem, scaling: float, tol: float
) -> tuple[float, np.ndarray, float]:
    """Give the seconds of a fit, the weights and the bias."""
    model = LogisticRegression(
        l1_ratio=1,
        solver="liblinear",
        C=problem.c,
        intercept_scaling=scaling,
        tol=tol,
        max_iter=1000,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        elapsed = seconds(lambda: model.fit(X, problem.y))
    return elapsed, model.coef_[0], float(model.intercept_[0])


@dataclass(frozen=True)
class Setting:
    """How liblinear is run."""

    form: str
    scaling: float
    tol: float


def fastest_setting(forms: dict[str, Matrix], problem: Problem) -> Setting | None:
    """Try all settings on sparse rows and the best on dense ones; give the fastest close one."""
    done: list[tuple[float, Setting]] = []

    def attempt(setting: Setting) -> None:
        X = forms[setting.form]
        elapsed, w, bias = liblinear(X, problem, setting.scaling, setting.tol)
        if problem.gap(X, w, bias) <= CLOSE:
            done.append((elapsed, setting))

    def fastest() -> Setting:
        return min(done, key=lambda pair: pair[0])[1]

    for scaling, tol in SETTINGS:
        attempt(Setting("sparse", scaling, tol))
    if not done:
        return None
    attempt(replace(fastest(), form="dense"))
    return fastest()


def measure(folder: Path, missing: common.Missing) -> str:
    with np.load(folder / FILE) as archive:
        dense = archive["X"] / 255.0
        X = csr_matrix(dense)
        y = archive["label"] >= 5
    flipped = y.copy()
    flipped[np.random.default_rng(0).choice(len(y), len(y) // 100, replace=False)] ^= True
    made = design(X)
    making, making_dense = (
        statistics.median(seconds(make) for _ in range(REPEATS))
        for make in (lambda: design(X), lambda: _core.Design.from_table(dense, 1))
    )
    forms: dict[str, Matrix] = {"sparse": X, "dense": dense}
    rows: list[list[str]] = []

    def beside(
        name: str,
        reach: float,
        labels: np.ndarray,
        c: float,
        before: Any = None,
        given: Setting | None = None,
    ) -> Setting | None:
        print(f"... {name}", file=sys.stderr, flush=True)
        optimum = solve(made, labels, c, tol=1e-9)["objective"]
        problem = Problem(labels, c, optimum)
        setting = fastest_setting(forms, problem) if given is None else given
        gaps: dict[str, float] = {}

        def ours(who: str, start: Any) -> float:
            found: dict[str, Any] = {}
            elapsed = seconds(
                lambda: found.update(
                    solve(design(X) if before is None else made, labels, c, start=start)
                )
            )
            w = np.zeros(X.shape[1])
            w[found["columns"]] = found["weights"]
            gaps[who] = problem.gap(X, w, found["bias"])
            return elapsed

        def theirs(setting: Setting) -> float:
            on = forms[setting.form]
            elapsed, w, bias = liblinear(on, problem, setting.scaling, setting.tol)
            gaps[PEER] = problem.gap(X, w, bias)
            return elapsed

        runs: dict[str, Callable[[], float]] = {
            OURS: lambda: ours(OURS, None if before is None else before["kept"])
        }
        if before is not None:
            runs[FROM_WEIGHTS] = lambda: ours(FROM_WEIGHTS, weights_of(before))
        if setting is None:
            missing.add(f"{PEER}, {name}: no setting came within {CLOSE:g} of the optimum.")
        else:
            runs[PEER] = lambda: theirs(setting)
        times = common.interleaved(runs, REPEATS, SLOW_REPEATS)
        medians = {who: statistics.median(done) for who, done in times.items()}
        for who, median in medians.items():
            how = ""
            if who == PEER and setting is not None:
                how = f"{setting.form}, {setting.scaling:g}, {setting.tol:g}"
            row = [name, who, f"{median:.3g}", "", "", "", f"{gaps[who]:.1e}", how]
            if who != PEER and PEER in medians:
                ratio = medians[PEER] / median
                row[3] = f"{ratio:.1f}"
                if who == OURS:
                    row[4:6] = [f">= {reach:g}", verdict(ratio >= reach and gaps[who] <= CLOSE)]
            rows.append(row)
        return setting

    for c in PENALTIES:
        base = solve(made, y, c)
        setting = beside(f"C={c:g}, from nothing", 3, y, c)
        beside(f"C={c:g}, from C={c / 10:g}", 2, y, c, solve(made, y, c / 10), setting)
        beside(f"C={c * 1.1:g}, from C={c:g}", 20, y, c * 1.1, base, setting)
        beside(f"C={c / 1.1:.3g}, from C={c:g}", 20, y, c / 1.1, base, setting)
        beside(f"C={c:g}, from 1 % of the labels changed", 20, flipped, c, base)
    header = (
        "MNIST 60k x 784, >= 5 against < 5",
        "who",
        "seconds",
        "times faster",
        "reach",
        "holds",
        "above the optimum",
        "rows, intercept_scaling, tol",
    )
    return (
        f"Medians of processor time, 1 thread. From nothing includes {making:.2g} s in which our "
        f"solver makes its copy of the sparse matrix ({making_dense:.2g} s from a dense one); the "
        "others have it, as the nodes of a tree do.\n\n" + table(header, rows)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="data folder")
    parser.add_argument("--dry", action="store_true", help="print, but leave RESULTS.md alone")
    arguments = parser.parse_args()
    common.one_thread()
    missing = common.Missing()
    body = ""
    if (arguments.data / FILE).exists():
        body = measure(arguments.data, missing)
    else:
        missing.add(f"MNIST: there is no {arguments.data / FILE}.")
    body = "\n\n".join([body.strip(), *(f"Not measured: {line}" for line in missing.lines)])
    if arguments.dry:
        print(body.strip())
    else:
        common.record(
            "Logistic", "python " + shlex.join(["benches/logistic.py", *sys.argv[1:]]), body
        )


if __name__ == "__main__":
    main()
