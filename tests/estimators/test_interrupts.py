"""Ctrl-C within a second, whatever a fit is doing."""

import sys

import pytest

from processes import output_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to another process")

# MODEL and SHAPE: of a fit of many seconds.
LONG = """
import os, signal, threading, time
import numpy as np, treeclust_rs as tc

X = np.random.default_rng(0).random(SHAPE)
model = tc.MODEL
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


def wait_after_a_second(model, shape):
    """Seconds from Ctrl-C to the end of a fit."""
    return float(output_of(LONG.replace("MODEL", model).replace("SHAPE", shape)))


def test_starts_of_kernel_kmeans_are_broken_off():
    model = 'KernelKMeans(300, kernel="linear", n_init=2, tol=0.0, n_jobs=2)'
    assert wait_after_a_second(model, "(100_000, 10)") < 6  # 0.5 where nothing else runs


def test_the_regression_tree_is_broken_off():
    model = "XRegressionTree(max_leaves=50_000, reference=X[:3])"
    assert wait_after_a_second(model, "(100_000, 60)") < 6


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
