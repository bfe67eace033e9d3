"""What all benches share: their command line, and the records they write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHES = Path(__file__).resolve().parents[2] / "benches"

SETUP = """
import sys
sys.path[:0] = [{benches!r}, {papers!r}]
import common, records
from pathlib import Path
from dataclasses import replace

state = records.start(common.PACKAGE)
records.start = lambda package: replace(state, dirty={dirty}, commit="0" * 40)
sys.argv = [str(common.HERE / "scaling.py"), "--results", {results!r}, *{arguments!r}]
arguments = common.parse(common.parser("A bench.", data=True, quick="few rows"))
table = common.table(("work", "seconds"), [("fit", "fast")])
missing = common.Missing()
missing.add("ExKMC: no pip.")
common.publish("Scaling", ["One.", ["Two.", table]], missing, arguments)
"""


def _run(results: Path, *arguments: str, dirty: bool = False) -> subprocess.CompletedProcess[str]:
    code = SETUP.format(
        benches=str(BENCHES),
        papers=str(BENCHES / "papers"),
        results=str(results),
        arguments=arguments,
        dirty=dirty,
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_bench_writes_a_record(tmp_path: Path) -> None:
    done = _run(tmp_path, "--quick", "--data", "/some/where")
    assert done.returncode == 0, done.stderr
    assert "| fit | fast |" in done.stdout
    assert "!!! NOT MEASURED: ExKMC: no pip." in done.stderr
    (path,) = tmp_path.iterdir()
    text = path.read_text()
    assert '"command": "python benches/scaling.py --quick"' in text
    assert '"missing": ["ExKMC: no pip."]' in text
    assert '"dirty": false' in text and "/some/where" not in text


def test_a_bench_refuses_uncommitted_changes(tmp_path: Path) -> None:
    done = _run(tmp_path, dirty=True)
    assert done.returncode == 2
    assert "uncommitted changes" in done.stderr and "--allow-dirty" in done.stderr
    assert not list(tmp_path.iterdir())


def test_uncommitted_changes_are_recorded_as_such(tmp_path: Path) -> None:
    assert _run(tmp_path, "--allow-dirty", dirty=True).returncode == 0
    (path,) = tmp_path.iterdir()
    assert '"dirty": true' in path.read_text()
    assert '"command": "python benches/scaling.py"' in path.read_text()


def test_nothing_is_written_by_a_dry_run(tmp_path: Path) -> None:
    assert _run(tmp_path, "--dry", dirty=True).returncode == 0
    assert not list(tmp_path.iterdir())


def test_every_bench_can_be_imported() -> None:
    names = [path.stem for path in (*BENCHES.glob("*.py"), *BENCHES.glob("papers/*.py"))]
    workers = [name for name in names if name.endswith("_worker")]  # of other packages
    tried = [name for name in names if name not in workers]
    code = f"import sys\nsys.path[:0] = {[str(BENCHES), str(BENCHES / 'papers')]}\n" + "\n".join(
        f"import {name}" for name in tried
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
