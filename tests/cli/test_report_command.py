"""The command `report`."""

import pytest

import treeclust_rs as tc
from cli_tables import points
from treeclust_rs.cli import main


def test_it_writes_a_page(folder, model):
    assert main(["report", "model.json", "points.csv", "-o", "r.html", "--title", "Points"]) == 0
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "<h1>Points</h1>" in page
    assert page.count('<section class="card') == 3
    assert "Most typical rows" in page
    assert "What changed" not in page


def test_it_compares_with_an_older_model(folder, model):
    tc.IMM(3, random_state=0).fit(points().select("x", "y")).save("old.json")
    command = ["report", "model.json", "points.csv", "-o", "r.html", "--previous", "old.json"]
    assert main([*command, "--exemplars", "0", "--leaves", "3"]) == 0
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "What changed against the older model" in page
    assert "Most typical rows" not in page


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        (["-o", "r.pdf"], 2, "must end in .html"),
        (["-o", "r.html", "--exemplars", "-1"], 2, "--exemplars"),
        (["-o", "r.html", "--previous", "none.json"], 4, "no such file"),
    ],
)
def test_it_refuses_in_words(model, capsys, options, status, text):
    assert main(["report", "model.json", "points.csv", *options]) == status
    assert text in capsys.readouterr().err
