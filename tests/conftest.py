"""What all tests share: a single thread for numerical libraries below xdist; unseen pictures.

It is read before any test imports numpy: later the number of threads would be fixed.
"""

import os
from pathlib import Path

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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the command line to work in, with points.csv: columns id, x, y, segment."""
    from cli_tables import write_points

    monkeypatch.chdir(tmp_path)
    write_points()
    return tmp_path


@pytest.fixture
def model(folder: Path) -> Path:
    """The file of the model that FIT of `cli_tables` writes."""
    from cli_tables import FIT
    from treeclust_rs.cli import main

    assert main([*FIT, "-q"]) == 0
    return folder / "model.json"
