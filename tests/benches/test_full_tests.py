"""The counts of tests, as cargo and pytest print them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

BENCHES = Path(__file__).resolve().parents[2] / "benches"


def test_summary(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHES))
    try:
        summary = importlib.import_module("full_tests").summary
    finally:
        for name in ("full_tests", "common", "records", "report", "figures"):
            sys.modules.pop(name, None)
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
