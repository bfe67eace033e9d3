"""Lines of progress on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from .words import format_count


def progress_line(
    verbose: int, name: str, n_rows: int, started: float
) -> Callable[[int, float], None] | None:
    """Return a function that prints a line of progress; None without `verbose`."""
    if not verbose:
        return None

    def tell(n_leaves: int, gain: float) -> None:
        elapsed = time.perf_counter() - started
        print(
            f"[{name}] {format_count(n_rows, 'row')}, {format_count(n_leaves, 'leaf', 'leaves')}, "
            f"last gain {gain:.4g}, {elapsed:.1f} s",
            file=sys.stderr,
            flush=True,
        )

    return tell
