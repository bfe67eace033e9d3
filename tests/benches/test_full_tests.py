"""The counts of tests, as cargo and pytest print them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench_modules import bench


@pytest.fixture
def full_tests(monkeypatch: pytest.MonkeyPatch) -> Any:
    return bench("full_tests", monkeypatch)


def test_summary(full_tests: Any) -> None:
    summary = full_tests.summary
    cargo = (
        "running 2 tests\n"
        "test result: ok. 145 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out\n"
        "\n"
        "test result: FAILED. 20 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n"
    )
    found = summary(cargo)
    assert (found["passed"], found["failed"], found["error"]) == (165, 2, 0)
    quiet = "....\n2 failed, 5177 passed, 22 skipped, 17 xfailed, 1 error in 300.43s (0:05:00)\n"
    assert summary(quiet) == {
        "passed": 5177,
        "failed": 2,
        "error": 1,
        "skipped": 22,
        "xfailed": 17,
    }
    assert summary("") == dict.fromkeys(summary(quiet), 0)


FAILING = """
import pytest

def test_first():
    print("captured")
    assert 1 == 2

@pytest.fixture
def broken():
    raise OSError("/some/place/on/disk/file.csv")

def test_second(broken):
    pass

def test_third():
    pass
"""


def test_failed_tests_of_pytest_are_kept(full_tests: Any, tmp_path: Path) -> None:
    (tmp_path / "test_failing.py").write_text(FAILING)
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_failing.py")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    second, first = full_tests.failures(done.returncode, done.stdout, done.stderr)
    assert first.startswith("`test_first`:\n\n```text\n") and first.endswith("\n```")
    assert "E       assert 1 == 2" in first and "test_failing.py:6: AssertionError" in first
    assert "captured" not in first.splitlines()
    assert second.startswith("`ERROR at setup of test_second`:")
    assert "OSError: .../file.csv" in second and "/some/" not in second


CARGO = """
running 2 tests
test good ... ok
test sizes::bad ... FAILED

failures:

---- sizes::bad stdout ----

thread 'sizes::bad' panicked at tests/sizes.rs:5:9:
assertion `left == right` failed

failures:
    sizes::bad

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
"""


def test_failed_tests_of_cargo_are_kept(full_tests: Any) -> None:
    assert full_tests.failures(101, CARGO, "error: test failed") == [
        "`sizes::bad`:\n\n```text\nthread 'sizes::bad' panicked at tests/sizes.rs:5:9:\n"
        "assertion `left == right` failed\n```"
    ]


def test_a_run_that_ends_without_naming_a_test_has_failed(full_tests: Any) -> None:
    assert full_tests.failures(0, "5 passed in 1s", "") == []
    assert full_tests.failures(101, "", "error: could not compile\n") == [
        "`status 101`:\n\n```text\nerror: could not compile\n```"
    ]
