"""Threads of a call: how many it may use, and results that do not depend on their number."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import joblib
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_MAX_JOBS = 1024


def effective_n_jobs(n_jobs: int | None) -> int:
    """Return the threads for `n_jobs`: None means all cores, but 1 inside a joblib worker."""
    if n_jobs is None:
        backend, _ = get_active_backend()
        return 1 if getattr(backend, "nesting_level", 0) else int(joblib.cpu_count())
    if n_jobs == 0:
        raise ValueError(
            "n_jobs must be None, a positive number of threads, or -1 for all cores. Got 0."
        )
    return min(n_jobs, _MAX_JOBS) if n_jobs > 0 else max(int(joblib.cpu_count()) + 1 + n_jobs, 1)


def one_blas_thread() -> Any:
    """Return a context in which BLAS uses one thread, so that its sums have one order."""
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    # Looking the libraries up takes milliseconds; numpy's and scipy's are loaded by now.
    return ThreadpoolController()


def map_in_order(
    work: Callable[[_Item], _Result],
    items: Sequence[_Item],
    n_jobs: int,
    cancel: Callable[[], None] = lambda: None,
) -> Iterator[_Result]:
    """Yield ``work(item)`` for each item in order, computed by at most `n_jobs` threads.

    After an error or Ctrl-C, work that has not begun is dropped, and `cancel` is called before
    the running work is waited for.
    """
    n_jobs = min(n_jobs, len(items))
    if n_jobs <= 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(n_jobs) as pool:
        try:
            yield from pool.map(work, items)
        except BaseException:
            cancel()
            raise
