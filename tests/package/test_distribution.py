"""The source distribution has what a build needs, and not the results and tables beside it."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_source_distribution_has_what_a_build_needs_and_no_more(tmp_path):
    pytest.importorskip("maturin", reason="make wheels builds the distributions")
    command = [sys.executable, "-m", "maturin", "sdist", "--out", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (archive,) = tmp_path.glob("treeclust_rs-*.tar.gz")
    with tarfile.open(archive) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    top = {"Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md", "LICENSE", "PKG-INFO"}
    assert {name for name in names if "/" not in name} == top
    assert {name.partition("/")[0] for name in names} == {*top, "rust", "python", "benches"}
    assert {name for name in names if name.startswith("benches")} == {
        f"benches/{path.name}" for path in (ROOT / "benches").glob("*.rs")
    }
    sources = [*(ROOT / "rust").rglob("*.rs"), *(ROOT / "python").rglob("*.py")]
    for suffix in ("html", "css", "js", "pyi", "typed"):
        sources += (ROOT / "python").rglob(f"*.{suffix}")
    assert {path.relative_to(ROOT).as_posix() for path in sources} <= names
