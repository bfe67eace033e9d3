"""Fit an estimator once in a fresh process and print what it took, as JSON.

estimator_fit.py ESTIMATOR DATA.npy PARAMETERS
"""

import json
import sys

import numpy as np

import treeclust_rs as tc
from common import one_thread, seconds
from memory import peak, peak_above


def main() -> None:
    X = np.load(sys.argv[2])
    model = getattr(tc, sys.argv[1])(**json.loads(sys.argv[3]))
    one_thread()
    model.fit(X[:500])  # what is loaded once is not the fit's
    took = 0.0

    def fit() -> None:
        nonlocal took
        took = seconds(lambda: model.fit(X))

    above = peak_above(fit)
    print(json.dumps({"above": above, "peak": peak(), "seconds": took}))


if __name__ == "__main__":
    main()
