"""What is written for readers holds: the README's examples, docstrings of the public names."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import polars as pl
import pytest
from sklearn.base import BaseEstimator

import treeclust_rs as tc
from pages import run_page

README = Path(__file__).resolve().parents[2] / "README.md"

ESTIMATORS = [
    name
    for name in tc.__all__
    if inspect.isclass(getattr(tc, name)) and issubclass(getattr(tc, name), BaseEstimator)
]
TREE_METHODS = ("fit", "predict", "apply", "explain", "save", "score", "truncate")
METHODS = {
    "KernelKMeans": ("fit", "predict", "save", "score"),  # a clustering, and no tree
    "CUBT": TREE_METHODS[:-1],  # joined leaves are not cut down
    "CLTree": TREE_METHODS[:-1],
    "ObliqueTree": (*TREE_METHODS[:-1], "alpha_path"),
    "Douglas": ("fit", "partial_fit", "predict", "predict_proba", *TREE_METHODS[2:-1]),
}
SECTIONS = ("Parameters", "Attributes", "Raises", "References", "Examples")


# ---- README -------------------------------------------------------------------------------


def test_examples_print_what_the_readme_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    assert run_page(README) >= 8
    for name in ("wines.json", "wines.png", "labelled.csv", "small.svg"):
        assert (tmp_path / name).stat().st_size > 0


def test_files_that_the_readme_names_exist():
    text = README.read_text(encoding="utf-8")
    linked = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
    assert "docs/tree.png" in linked
    for name in [*linked, "LICENSE"]:
        assert (README.parent / name).is_file(), name


def test_make_has_the_commands_of_the_readme():
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(r"^make (\w+)", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert commands == ["demo", "test"]
    for command in commands:
        assert re.search(rf"^{command}:", makefile, re.MULTILINE), command


def test_bounds_in_the_readme_are_those_of_the_code():
    text = README.read_text(encoding="utf-8")
    assert "at most 200 deep with at most 10,000 leaves" in text.replace("\n  ", " ")
    documented = inspect.getdoc(tc.export.to_polars_expr)
    assert "deeper than 200 or has more than 10,000 leaves" in documented


# ---- docstrings ---------------------------------------------------------------------------


def sections_of(docstring: str) -> dict[str, str]:
    """Split a numpydoc docstring by its underlined titles; the part before them is ''."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", docstring, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def entries_of(section: str) -> list[tuple[str, str, str]]:
    """Return name, type and description of the entries "name, name : type" of a section."""
    found = []
    entry = re.compile(r"^(\w[\w, ]*?) : (.+)\n((?:^[ \t]+.*\n?|^\n)*)", re.MULTILINE)
    for names, kind, description in entry.findall(section + "\n"):
        found += [(name, kind, description.strip()) for name in names.split(", ")]
    return found


def doc_of(thing: object) -> str:
    docstring = inspect.getdoc(thing)
    assert docstring, f"{thing} has no docstring"
    return docstring


def assert_documents_its_parameters(function: object, docstring: str) -> None:
    wanted = inspect.signature(function).parameters  # type: ignore[arg-type]
    given = entries_of(sections_of(docstring).get("Parameters", ""))
    names = [name for name in wanted if name not in ("self", "kwargs")]
    assert [name for name, _, _ in given] == names
    for name, kind, description in given:
        assert description, f"{name} has no description"
        if "default=" in kind:
            default = wanted[name].default
            assert kind.split("default=")[1] in (repr(default), f'"{default}"'), name
        elif kind != "ignored":
            is_required = wanted[name].default is inspect.Parameter.empty
            assert is_required, f"the default of {name} is not documented"


@pytest.mark.parametrize("name", tc.__all__)
def test_public_names_say_what_they_are(name):
    summary = doc_of(getattr(tc, name)).splitlines()[0]
    assert summary.endswith(".")
    assert len(summary) <= 100


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_have_all_sections(name):
    sections = sections_of(doc_of(getattr(tc, name)))
    missing = [title for title in SECTIONS if not sections.get(title, "").strip()]
    assert not missing
    order = [title for title in sections if title in SECTIONS]
    assert order == list(SECTIONS)


@pytest.mark.parametrize("name", [*ESTIMATORS, "ClusterTree", "load", "report", "text_to_numbers"])
def test_documented_parameters_are_those_of_the_signature(name):
    thing = getattr(tc, name)
    assert_documents_its_parameters(thing, doc_of(thing))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_documented_attributes_exist_after_fit(name):
    estimator = getattr(tc, name)
    frame = pl.DataFrame({"a": [0.0, 1.0, 8.0, 9.0], "b": [0, 1, 0, 1]})
    model = estimator(2, random_state=0).fit(frame)
    documented = {entry[0] for entry in entries_of(sections_of(doc_of(estimator))["Attributes"])}
    fitted = {key for key in vars(model) if key.endswith("_") and not key.startswith("_")}
    fitted |= {
        key
        for key, _ in inspect.getmembers_static(estimator, lambda item: type(item) is property)
        if key.endswith("_") and not key.startswith("_")
    }
    assert documented == fitted


@pytest.mark.parametrize(
    ("name", "method"),
    [(name, method) for name in ESTIMATORS for method in METHODS.get(name, TREE_METHODS)],
)
def test_methods_document_their_parameters(name, method):
    function = getattr(getattr(tc, name), method)
    assert_documents_its_parameters(function, doc_of(function))
