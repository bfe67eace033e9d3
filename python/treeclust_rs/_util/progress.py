"""Progress: lines about a fit, and a bar of counted steps.

They go to standard error, or to the logger ``treeclust_rs`` if that has a handler and takes INFO.
"""

import logging
import math
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import ClassVar, Self, TypeVar

from .words import format_count

_T = TypeVar("_T")

_BAR_WIDTH = 20
_LOGGER = logging.getLogger("treeclust_rs")


def progress_text(
    verbose: int, name: str, n_rows: int, started: float, every: float = 0.0
) -> Callable[[str], None] | None:
    """Return a function that prints a text between rows and time; None without `verbose`.

    Calls within `every` seconds after a printed line print nothing.
    """
    if not verbose:
        return None
    last = -math.inf

    def show(text: str) -> None:
        nonlocal last
        now = time.perf_counter()
        if now - last >= every:
            last = now
            rows = format_count(n_rows, "row")
            _print_line(f"[{name}] {rows}, {text}, {now - started:.1f} s")

    return show


def progress_line(
    verbose: int, name: str, n_rows: int, started: float
) -> Callable[[int, float], None] | None:
    """Return a function that prints leaves and last gain of a tree; None without `verbose`.

    A step that gains nothing (another cost than the criterion's may rise) shows leaves alone.
    """
    show = progress_text(verbose, name, n_rows, started)
    if show is None:
        return None

    def show_leaves(n_leaves: int, gain: float) -> None:
        leaves = format_count(n_leaves, "leaf", "leaves")
        show(f"{leaves}, last gain {gain:.4g}" if gain > 0 else leaves)

    return show_leaves


class ReadingProgress:
    """Lines about readings of a table: the rows so far, every few seconds, and all in the end.

    Parameters
    ----------
    name : str
        What the lines begin with.
    verbose : int
        0: nothing.
    """

    # Seconds between two lines of one reading.
    _every: ClassVar[float] = 5.0

    def __init__(self, name: str, verbose: int) -> None:
        self._name, self._is_on, self._started = name, bool(verbose), time.perf_counter()

    def follow(
        self, batches: Iterable[_T], what: str, n_rows_of: Callable[[_T], int]
    ) -> Iterator[_T]:
        """Yield batches; `what` is done with the rows, as in "text read"."""
        n_rows, last = 0, time.perf_counter()
        for batch in batches:
            n_rows += n_rows_of(batch)
            yield batch
            if (now := time.perf_counter()) - last >= self._every:
                last = now
                self._show(f"{format_count(n_rows, 'row')} so far, {what}")
        self._show(f"{format_count(n_rows, 'row')}, {what}")

    def _show(self, text: str) -> None:
        if self._is_on:
            elapsed = time.perf_counter() - self._started
            _print_line(f"[{self._name}] {text}, {elapsed:.1f} s")


class ProgressBar:
    """A bar of counted steps: one line written over on a terminal, elsewhere a line a step.

    Parameters
    ----------
    name : str
        What the line begins with.
    total : int
        Number of steps.
    verbose : int
        0: nothing; 1: only on a terminal or to the logger; 2: always.
    """

    def __init__(self, name: str, total: int, verbose: int) -> None:
        self._name, self._total, self._done = name, total, 0
        is_logged = _is_logged()
        self._is_terminal = sys.stderr.isatty() and not is_logged
        self._is_on = verbose > 1 or (verbose == 1 and (self._is_terminal or is_logged))
        self._started = time.perf_counter()
        self._width = 0

    def __enter__(self) -> Self:
        if self._is_terminal:
            self._show("")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_on and self._is_terminal:
            _print("\n")

    def step(self, text: str) -> None:
        """Count one step, and show its text."""
        self._done += 1
        self._show(text)

    def _show(self, text: str) -> None:
        if not self._is_on:
            return
        elapsed = time.perf_counter() - self._started
        filled = _BAR_WIDTH * self._done // self._total
        bar = "#" * filled + "." * (_BAR_WIDTH - filled)
        line = f"[{self._name}] {bar} {self._done}/{self._total}, {elapsed:.1f} s  {text}".rstrip()
        if not self._is_terminal:
            _print_line(line)
            return
        # A line that wraps cannot be written over.
        line = line[: shutil.get_terminal_size().columns - 1]
        _print(f"\r{line}{' ' * (self._width - len(line))}")
        self._width = len(line)


def _is_logged() -> bool:
    return _LOGGER.hasHandlers() and _LOGGER.isEnabledFor(logging.INFO)


def _print_line(line: str) -> None:
    if _is_logged():
        _LOGGER.info("%s", line)
    else:
        _print(f"{line}\n")


def _print(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)
