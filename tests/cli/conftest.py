"""A folder to work in, and a model in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_tables import FIT, write_points
from treeclust_rs.cli import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, holding points.csv: columns id, x, y, segment."""
    monkeypatch.chdir(tmp_path)
    write_points()
    return tmp_path


@pytest.fixture
def model(folder: Path) -> Path:
    """The file of the model that FIT writes."""
    assert main([*FIT, "-q"]) == 0
    return folder / "model.json"
