"""Threads of a call: how many it may use, and results that do not depend on their number."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any, TypeVar

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from .words import format_count

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_MAX_JOBS = 1024
# Bytes of a thread's buffers in BLAS, 32 MiB, and of its stack.
_BLAS_BYTES = 48 << 20
# Seconds that an interrupted call waits for its threads.
_MAX_WAIT = 0.5


def effective_n_jobs(n_jobs: int | None) -> int:
    """Return the threads for `n_jobs`, negative numbers as in joblib.

    None: the cores that the process may use, fewer if ``OMP_NUM_THREADS`` says so, and 1 inside a
    joblib worker.
    """
    if n_jobs is not None and n_jobs > 0:
        return min(n_jobs, _MAX_JOBS)
    if n_jobs == 0:
        raise ValueError(
            "n_jobs must be None, a positive number of threads, or -1 for all cores. Got 0."
        )
    n_cores = int(joblib.cpu_count())  # the process's affinity and container limits considered
    if n_jobs is None:
        backend, _ = get_active_backend()
        return 1 if getattr(backend, "nesting_level", 0) else min(_openmp_limit(), n_cores)
    return max(n_cores + 1 + n_jobs, 1)


def _openmp_limit() -> int:
    """Return the first number of ``OMP_NUM_THREADS``; as OpenMP does, ignore an invalid list."""
    try:
        numbers = [int(number) for number in os.environ.get("OMP_NUM_THREADS", "").split(",")]
    except ValueError:
        return _MAX_JOBS
    return numbers[0] if min(numbers) > 0 else _MAX_JOBS


def check_room(n_threads: int, n_bytes: int = 0) -> None:
    """Raise MemoryError unless some threads can use BLAS and allocate `n_bytes` beside it.

    Without memory for its buffers OpenBLAS ends the process, or asks for them forever.
    """
    n_bytes += n_threads * _BLAS_BYTES
    try:
        np.empty(n_bytes, np.uint8)
    except MemoryError:
        raise MemoryError(
            f"Not enough memory: {n_bytes / 2**20:.1f} MiB for the buffers of "
            f"{format_count(n_threads, 'thread')} cannot be allocated."
        ) from None


def one_blas_thread() -> Any:
    """Return a context in which BLAS uses one thread, so that its sums have one order.

    Raises
    ------
    MemoryError
        If there is no room for the buffers of BLAS.
    """
    check_room(1)
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

    The calling thread is one of them. If it only waited, Ctrl-C would wait too: threads that take
    the interpreter's lock in turns leave it out for seconds.

    After an error or Ctrl-C, work that has not begun is dropped, `cancel` is called, and the
    threads are stopped: between two steps of Python code, so that C code they are in ends first.
    They are waited for, but not for longer than half a second.

    Raises
    ------
    MemoryError
        If there is no room for the threads, or one cannot be started.
    """
    n_jobs = min(n_jobs, len(items))
    if n_jobs <= 1:
        yield from map(work, items)
        return
    check_room(n_jobs)
    pool, running = ThreadPoolExecutor(n_jobs - 1), set[int]()

    def run(item: _Item) -> _Result:
        running.add(threading.get_ident())
        try:
            return work(item)
        finally:
            running.discard(threading.get_ident())

    tasks: list[Future[_Result]] = []
    try:
        tasks.extend(_submit(pool, run, item) for item in items)
        later = iter(range(len(items)))
        for at in range(len(items)):
            while not tasks[at].done():
                # What no thread has begun; without any, there is nothing to do but wait.
                mine = next((place for place in later if tasks[place].cancel()), None)
                if mine is None:
                    break
                tasks[mine] = _done(work, items[mine])
            yield tasks[at].result()
    except BaseException:
        cancel()
        pool.shutdown(wait=False, cancel_futures=True)
        for thread in tuple(running):
            _stop(thread)
        wait([task for task in tasks if task.running()], timeout=_MAX_WAIT)
        raise
    pool.shutdown()


def _submit(
    pool: ThreadPoolExecutor, work: Callable[[_Item], _Result], item: _Item
) -> Future[_Result]:
    try:
        return pool.submit(work, item)
    except RuntimeError as error:  # "can't start new thread"
        raise MemoryError(
            f"A thread cannot be started: {error}. There is no memory for its stack, or there are "
            "too many threads; n_jobs=1 needs one."
        ) from error


def _done(work: Callable[[_Item], _Result], item: _Item) -> Future[_Result]:
    """Return the ended task of an item, with its result or its error."""
    task: Future[_Result] = Future()
    try:
        task.set_result(work(item))
    except Exception as error:  # noqa: BLE001 - raised when its turn comes
        task.set_exception(error)
    return task


def _stop(thread: int) -> None:
    """Make a thread leave its work at its next step of Python code."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(SystemExit))
