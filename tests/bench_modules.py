"""Scripts of `benches/` as modules of a test."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

BENCHES = Path(__file__).resolve().parents[1] / "benches"


def bench(name: str, monkeypatch: Any) -> Any:
    """Import a script by its name; afterwards neither it nor what it imports is known."""
    for folder in (BENCHES, BENCHES / "papers"):
        monkeypatch.syspath_prepend(str(folder))
    before, path = set(sys.modules), list(sys.path)
    try:
        return importlib.import_module(name)
    finally:
        sys.path[:] = path
        for module in set(sys.modules) - before:
            if str(BENCHES) in str(getattr(sys.modules[module], "__file__", "")):
                sys.modules.pop(module)
