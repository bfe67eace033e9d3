"""Peak memory of a call above what the process held before it, from Linux' own accounting."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def can_measure() -> bool:
    """Tell whether this system counts what is needed (Linux does)."""
    return _STATUS.exists() and _CLEAR.exists()


def peak_above(work: Callable[[], object]) -> int:
    """Run `work`; give the bytes by which resident memory went up at its peak."""
    gc.collect()
    # What was freed before goes back to the system, or `work` would use it without being seen to.
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
    before = _status("VmRSS")
    _CLEAR.write_text("5")  # sets VmHWM, the peak, to the present
    work()
    return _status("VmHWM") - before


def peak() -> int:
    """Bytes of resident memory of this process at its peak since `peak_above`, or its start."""
    return _status("VmHWM")


def _status(key: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{_STATUS} has no {key}")
