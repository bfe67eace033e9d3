"""How much code there is: lines by file, files that are too long, documentation, first words.

    python benches/count_code.py [ROOT]

A line of Python code holds a name, a number or a text outside comments, docstrings and attribute
docstrings; lines of brackets and commas alone do not count. A line of Rust code is neither blank
nor a comment; lines from `#[cfg(test)]` on do not count.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
from pathlib import Path

MAX_LINES = 800
FIRST_WORDS = ("Give", "Tell", "Ask", "Say")


def docstrings(tree: ast.Module) -> list[ast.Constant]:
    """Return all texts that stand as statements."""
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]


def python_code_lines(source: str) -> int:
    """Return the number of lines of code."""
    documentation = {
        number
        for node in docstrings(ast.parse(source))
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return sum(
        bool(re.search(r"\w", line)) and not line.lstrip().startswith("#")
        for number, line in enumerate(source.splitlines(), 1)
        if number not in documentation
    )


def rust_lines(source: str) -> tuple[int, int]:
    """Return the numbers of lines of rustdoc and of code."""
    lines = [line.strip() for line in source.split("#[cfg(test)]")[0].splitlines()]
    rustdoc = sum(line.startswith(("///", "//!")) for line in lines)
    return rustdoc, sum(bool(line) and not line.startswith("//") for line in lines)


def main() -> None:
    """Print all counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    root = parser.parse_args().root
    python = sorted((root / "python" / "treeclust_rs").rglob("*.py"))
    rust = sorted((root / "rust" / "src").rglob("*.rs"))
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in [*python, *rust]}

    print("Python: code, lines, file")
    code = {path: python_code_lines(path.read_text("utf-8")) for path in python}
    for path, count in code.items():
        print(f"{count:6} {lengths[path]:6}  {path.relative_to(root)}")
    print(f"{sum(code.values()):6} {sum(lengths[path] for path in python):6}  all")

    print("Rust: rustdoc, code, rustdoc by code, lines, file")
    total = [0, 0]
    for path in rust:
        counts = rust_lines(path.read_text("utf-8"))
        total = [a + b for a, b in zip(total, counts, strict=True)]
        ratio = counts[0] / max(counts[1], 1)
        name = path.relative_to(root)
        print(f"{counts[0]:6} {counts[1]:6} {ratio:6.2f} {lengths[path]:6}  {name}")
    n_lines = sum(lengths[path] for path in rust)
    print(f"{total[0]:6} {total[1]:6} {total[0] / max(total[1], 1):6.2f} {n_lines:6}  all")

    for language, paths in (("Python", python), ("Rust", rust)):
        print(f"Median lines of a {language} file: {statistics.median(map(lengths.get, paths)):g}")
    long = [f"{p.relative_to(root)} ({n})" for p, n in lengths.items() if n > MAX_LINES]
    print(f"Files above {MAX_LINES} lines: {len(long)}: {', '.join(long)}")
    texts = [t for path in python for t in docstrings(ast.parse(path.read_text("utf-8")))]
    for word in FIRST_WORDS:
        begun = sum(bool(re.match(rf"\s*{word}s?\b", str(text.value))) for text in texts)
        print(f'Docstrings that begin with "{word}": {begun}')


if __name__ == "__main__":
    main()
