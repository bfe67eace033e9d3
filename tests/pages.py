"""Runs the examples of pages for readers: the README, and the pages of the site.

A ``python`` block is executed, all of a page in one namespace and one folder. Lines of a ``sh``
block that call ``treeclust`` are executed in the same folder. A ``text`` block right after either
is what the block before it prints (of a ``sh`` block: its last command).
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import treeclust_rs as tc

# Where the package under test lies, for the processes that are started in another folder.
PACKAGES = str(Path(tc.__file__).resolve().parents[1])


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


def run_python(block: Block, page: Path, namespace: dict[str, object]) -> str:
    printed = io.StringIO()
    # Empty lines in front, so that a traceback names the line of the page.
    code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
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


def run_page(page: Path, shown_only: frozenset[str] = frozenset()) -> int:
    """Run the blocks of a page, but those in `shown_only`; return how many outputs it compared."""
    namespace: dict[str, object] = {"__name__": "__page__"}
    printed, n_compared = None, 0
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.language in shown_only:
            continue
        place = f"{page.name}, line {block.line}"
        if block.language == "text":
            assert printed is not None, f"{place}: output without code before it"
            assert comparable(printed) == comparable(block.code), place
            printed, n_compared = None, n_compared + 1
            continue
        assert not printed, f"the page does not show what the block before {place} says"
        if block.language == "python":
            printed = run_python(block, page, namespace)
        else:
            assert block.language == "sh", f"{place}: a block of {block.language!r}"
            printed = run_shell(block)
    assert not printed, f"{page.name} does not show what its last block says"
    return n_compared
