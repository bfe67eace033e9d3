"""Ctrl-C within a second, whatever a fit is doing."""

import sys

import pytest

from processes import output_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to another process")

# Two starts of scikit-learn's k-means, of 20 seconds or more each.
STARTS = """
import os, signal, threading, time
import numpy as np, treeclust_rs as tc

X = np.random.default_rng(0).random((100_000, 10))
model = tc.KernelKMeans(300, kernel="linear", n_init=2, tol=0.0, n_jobs=2)
sent = []

def interrupt():
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)

threading.Timer(1.0, interrupt).start()
try:
    model.fit(X)
except KeyboardInterrupt:
    print(time.monotonic() - sent[0])
assert not hasattr(model, "labels_")
"""


def test_starts_of_kernel_kmeans_are_broken_off():
    assert float(output_of(STARTS)) < 6  # 0.5 where nothing else runs


# The signal comes with the fifth block of rows of the matrix.
MATRIX = """
import os, signal
import numpy as np, treeclust_rs as tc
from treeclust_rs._kernels.kernels import Kernel

made, block = [], Kernel.block

def counted(self, *args):
    made.append(1)
    if len(made) == 5:
        os.kill(os.getpid(), signal.SIGINT)
    return block(self, *args)

Kernel.block = counted
model = tc.ESTIMATOR(3, kernel="rbf", n_jobs=2)
try:
    model.fit(np.random.default_rng(0).random((8_000, 10)))
except KeyboardInterrupt:
    print(len(made))
assert not hasattr(model, "labels_")
"""


@pytest.mark.parametrize("estimator", ["Kauri", "KernelKMeans", "KernelIMM"])
def test_a_kernel_matrix_is_broken_off(estimator):
    assert int(output_of(MATRIX.replace("ESTIMATOR", estimator))) < 30  # of 62
