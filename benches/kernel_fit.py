"""Fit one kernel tree in a fresh process and print what it took, as JSON.

kernel_fit.py ESTIMATOR FOLDER PARAMETERS

FOLDER holds data.npy and, for a tree of given labels, labels.npy. `core` is the time spent in the
core's growth (and its surrogate features), without clustering and label costs; `cpu` is the whole
fit's processor time, of all threads.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import treeclust_rs as tc
from common import one_thread, seconds
from memory import can_measure, peak, peak_above
from treeclust_rs import _engine

WARM = 500


def main() -> None:
    folder, parameters = Path(sys.argv[2]), json.loads(sys.argv[3])
    X = np.load(folder / "data.npy")
    labels = np.load(folder / "labels.npy") if (folder / "labels.npy").exists() else None
    estimator = getattr(tc, sys.argv[1])

    def model(n: int) -> Any:
        given = {} if labels is None else {"reference": labels[:n]}
        return estimator(**given, **parameters)

    core = 0.0
    grow = _engine.fit_tree

    def timed(*arguments: Any, **options: Any) -> Any:
        nonlocal core
        grown = []
        core += seconds(lambda: grown.append(grow(*arguments, **options)))
        return grown[0]

    one_thread()
    model(WARM).fit(X[:WARM])  # what is loaded once is not the fit's
    _engine.fit_tree = timed
    fitted = model(len(X))
    took = cpu = 0.0

    def fit() -> None:
        nonlocal took, cpu
        start = time.process_time()
        took = seconds(lambda: fitted.fit(X))
        cpu = time.process_time() - start

    result: dict[str, float] = {}
    if can_measure():
        result["above"] = peak_above(fit)
        result["peak"] = peak()
    else:
        fit()
    print(json.dumps({**result, "seconds": took, "cpu": cpu, "core": core}))


if __name__ == "__main__":
    main()
