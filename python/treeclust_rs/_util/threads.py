"""How many threads a call may use."""

from __future__ import annotations

import joblib
from joblib.parallel import get_active_backend

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
