"""The command `profile`."""

import polars as pl
import pytest

from cli_tables import FIT, write_points
from treeclust_rs.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_points()
    assert main([*FIT, "-q"]) == 0


def test_it_prints_and_writes_the_figures(capsys):
    capsys.readouterr()
    assert main(["profile", "model.json", "points.csv", "-o", "profile.csv"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Profile of 3 clusters, 2 columns")
    table = pl.read_csv("profile.csv")
    assert table.height == 6
    assert table["rows"].sum() == 2 * 60


def test_it_draws(tmp_path):
    pytest.importorskip("matplotlib")
    assert main(["profile", "model.json", "points.csv", "--plot", "profile.png"]) == 0
    assert (tmp_path / "profile.png").read_bytes().startswith(b"\x89PNG")


def test_it_needs_all_columns_of_the_fit(capsys):
    pl.read_csv("points.csv").drop("y").write_csv("less.csv")
    assert main(["profile", "model.json", "less.csv"]) == 3
    assert "has no column 'y'" in capsys.readouterr().err
    assert main(["profile", "model.json", "points.csv", "--plot", "profile.dot"]) == 2


def test_it_tells_the_option_that_writes_all_columns(capsys):
    wide = {f"c{i}": [i * row % 7 for row in range(60)] for i in range(50)}
    pl.DataFrame(wide).write_csv("wide.csv")
    assert main(["fit", "wide.csv", "-k", "2", "--effort", "quick", "-q", "-o", "wide.json"]) == 0
    capsys.readouterr()
    assert main(["profile", "wide.json", "wide.csv"]) == 0
    end = "and 20 more lines of smaller contrasts: -o TABLE writes all\n"
    assert capsys.readouterr().out.endswith(end)
