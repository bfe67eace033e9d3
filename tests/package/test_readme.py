"""What is written for readers holds: the README's examples, and the docstrings of the public names.

In the README a ``python`` block is executed, all in one namespace and one folder. Lines of a ``sh``
block that call ``treeclust`` are executed in the same folder. A ``text`` block right after either
is what the block before it prints (of a ``sh`` block: its last command).
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
from sklearn.base import BaseEstimator

import treeclust_rs as tc

README = Path(__file__).resolve().parents[2] / "README.md"
# Where the package under test lies, for the processes that are started in another folder.
PACKAGES = str(Path(tc.__file__).resolve().parents[1])

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


class Block(NamedTuple):
    language: str
    code: str
    line: int
    """Number of the first line of the code."""


def blocks_of(text: str) -> list[Block]:
    fence = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [
        Block(match[1], match[2], text.count("\n", 0, match.start(2)) + 1)
        for match in fence.finditer(text)
    ]


def run_python(block: Block, namespace: dict[str, object]) -> str:
    printed = io.StringIO()
    # Empty lines in front, so that a traceback names the line of the README.
    code = compile("\n" * (block.line - 1) + block.code, str(README), "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def run_shell(block: Block) -> str:
    """Run the calls of treeclust in a block; give what the last of them prints."""
    printed = ""
    for line in block.code.splitlines():
        name, *arguments = shlex.split(line, comments=True) or [""]
        if name != "treeclust":
            assert name == "make", f"{line!r} is no command this test knows"
            continue
        result = subprocess.run(
            [sys.executable, "-P", "-m", "treeclust_rs", *arguments],
            env=os.environ | {"PYTHONPATH": PACKAGES, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        assert result.returncode == 0, f"{line}\n{result.stderr}"
        printed = result.stdout
    return printed


def comparable(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


# ---- README -------------------------------------------------------------------------------


def test_examples_print_what_the_readme_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    namespace: dict[str, object] = {"__name__": "__readme__"}
    printed, n_compared = None, 0
    for block in blocks_of(README.read_text(encoding="utf-8")):
        if block.language == "text":
            assert printed is not None, f"line {block.line}: output without code before it"
            assert comparable(printed) == comparable(block.code), f"README.md, line {block.line}"
            printed, n_compared = None, n_compared + 1
            continue
        assert not printed, f"the README does not show what the block before line {block.line} says"
        if block.language == "python":
            printed = run_python(block, namespace)
        else:
            assert block.language == "sh", f"line {block.line}: a block of {block.language!r}"
            printed = run_shell(block)
    assert not printed, "the README does not show what its last block says"
    assert n_compared >= 8
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
    """Give name, type and description of the entries "name, name : type" of a section."""
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


@pytest.mark.parametrize("name", [*ESTIMATORS, "ClusterTree", "load", "report"])
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
