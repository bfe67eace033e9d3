"""Fit an estimator once in a fresh process and print what it took, as JSON.

estimator_fit.py ESTIMATOR DATA.npy PARAMETERS [ROWS]

With ROWS, so many rows at a time are read from the file and given to `partial_fit`.
"""

import json
import sys
from collections.abc import Iterator

import numpy as np

import treeclust_rs as tc
from common import one_thread, seconds
from memory import peak, peak_above


def parts(path: str, n_rows: int) -> Iterator[np.ndarray]:
    """Read a C-ordered array part by part, never holding more than one."""
    with open(path, "rb") as file:
        np.lib.format.read_magic(file)
        (n, d), _, dtype = np.lib.format.read_array_header_1_0(file)
        for start in range(0, n, n_rows):
            m = min(n_rows, n - start)
            yield np.fromfile(file, dtype, m * d).reshape(m, d)


def main() -> None:
    name, path, parameters = sys.argv[1:4]
    model = getattr(tc, name)(**json.loads(parameters))
    one_thread()
    if len(sys.argv) > 4:
        n_rows = int(sys.argv[4])

        def work() -> None:
            for part in parts(path, n_rows):
                model.partial_fit(part)

        model.fit(next(parts(path, 500)))  # what is loaded once is not the fit's
        model = getattr(tc, name)(**json.loads(parameters))
    else:
        X = np.load(path)
        model.fit(X[:500])

        def work() -> None:
            model.fit(X)

    took = 0.0

    def fit() -> None:
        nonlocal took
        took = seconds(work)

    above = peak_above(fit)
    print(json.dumps({"above": above, "peak": peak(), "seconds": took}))


if __name__ == "__main__":
    main()
