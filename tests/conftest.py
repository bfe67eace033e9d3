"""What all tests share: a single thread for numerical libraries below xdist; unseen pictures.

It is read before any test imports numpy: later the number of threads would be fixed.
"""

import os

if "PYTEST_XDIST_WORKER" in os.environ:
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import pytest


@pytest.fixture
def pyplot():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")
