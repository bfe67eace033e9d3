"""Threads of a call: how many it may use, and results that do not depend on their number."""

import os
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
    """Return the threads for `n_jobs`, negative numbers as in joblib.

    None: the cores that the process may use, fewer if ``OMP_NUM_THREADS`` says so, and 1 inside a
    joblib worker.
    """
    n_cores = int(joblib.cpu_count())  # the process's affinity and container limits considered
    if n_jobs is None:
        backend, _ = get_active_backend()
        return 1 if getattr(backend, "nesting_level", 0) else min(_openmp_limit(), n_cores)
    if n_jobs == 0:
        raise ValueError(
            "n_jobs must be None, a positive number of threads, or -1 for all cores. Got 0."
        )
    return min(n_jobs, _MAX_JOBS) if n_jobs > 0 else max(n_cores + 1 + n_jobs, 1)


def _openmp_limit() -> int:
    """Return the first number of ``OMP_NUM_THREADS``; as OpenMP does, ignore an invalid list."""
    try:
        numbers = [int(number) for number in os.environ.get("OMP_NUM_THREADS", "").split(",")]
    except ValueError:
        return _MAX_JOBS
    return numbers[0] if min(numbers) > 0 else _MAX_JOBS


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
