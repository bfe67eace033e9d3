"""The pages of the documentation site: their examples run, and name what exists."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import treeclust_rs as tc
from pages import run_page

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "docs" / "site"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.md"))
METHODS = [page for page in PAGES if re.fullmatch(r"methods/(?!index).*", page)]
TITLES = ["Idea", "Formula", "Parameters", "Example", "Limits", "Paper"]


def text_of(page: str) -> str:
    return (SITE / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_examples_print_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    n_compared = run_page(SITE / page, shown_only=frozenset({"cron"}))
    assert n_compared > 0 or "```python" not in text_of(page)


def test_every_estimator_has_a_page():
    titles = {text_of(page).splitlines()[0].removeprefix("# ") for page in METHODS}
    others = {"ClusterTree", "compare", "load", "report", "text_to_numbers"}
    assert titles == set(tc.__all__) - others


@pytest.mark.parametrize("page", METHODS)
def test_pages_of_methods_have_all_parts_and_real_parameters(page):
    text = text_of(page)
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == TITLES
    estimator = getattr(tc, text.splitlines()[0].removeprefix("# "))
    section = text.split("## Parameters")[1].split("## Example")[0]
    rows = re.findall(r"^\| (`[^|]*`) \|", section, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert named
    assert not set(named) - set(inspect.signature(estimator).parameters)


def test_all_public_functions_are_on_a_page_of_the_reference():
    shown = set(
        re.findall(
            r"^::: treeclust_rs\.(?:\w+\.)?(\w+)(?:: .*)?$",
            "\n".join(text_of(page) for page in PAGES if page.startswith("api/")),
            re.MULTILINE,
        )
    )
    assert set(tc.__all__) - {"compare"} <= shown
    assert set(tc.metrics.__all__) <= shown
    assert set(tc.selection.__all__) <= shown
    assert {*tc.export.__all__, "Counterfactual"} - {"SCHEMA_VERSION"} <= shown


def test_every_page_is_in_the_menu():
    menu = set(re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert set(PAGES) <= menu
