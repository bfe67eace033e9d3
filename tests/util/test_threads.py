"""How many threads a call uses: cores, affinity, OMP_NUM_THREADS, and what is asked for."""

import os

import joblib
import pytest

from processes import output_of
from treeclust_rs._util import effective_n_jobs

COUNT = """
import os, sys
if len(sys.argv) > 2:
    os.sched_setaffinity(0, {int(sys.argv[2])})
import joblib
joblib.cpu_count = lambda: int(sys.argv[1]) or CPU_COUNT()
from treeclust_rs._util import effective_n_jobs
print(effective_n_jobs(None), effective_n_jobs(-1), effective_n_jobs(-2), effective_n_jobs(5))
""".replace("joblib.cpu_count = ", "CPU_COUNT = joblib.cpu_count; joblib.cpu_count = ")


@pytest.mark.parametrize(
    ("setting", "n_threads"),
    [
        ("1", 1),
        ("3", 3),
        ("100", 8),
        (" 2 ", 2),
        ("3,2", 3),
        ("3, 2, 1", 3),
        # As OpenMP does, an invalid list is ignored as a whole.
        ("", 8),
        ("abc", 8),
        ("2.5", 8),
        ("0", 8),
        ("-1", 8),
        ("3,", 8),
        ("3,abc", 8),
        ("3,0", 8),
    ],
)
def test_omp_num_threads(setting, n_threads, monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    monkeypatch.setenv("OMP_NUM_THREADS", setting)
    assert effective_n_jobs(None) == n_threads
    # What is asked for is not limited; negative numbers are joblib's.
    asked = (-1, -2, -8, -9, 5, 10_000)
    assert [effective_n_jobs(n_jobs) for n_jobs in asked] == [8, 7, 1, 1, 5, 1024]


def test_omp_num_threads_of_a_process(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert output_of(COUNT, "4") == "1 4 3 5"
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert output_of(COUNT, "4") == "4 4 3 5"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_the_affinity_of_a_process(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    core = min(os.sched_getaffinity(0))
    assert output_of(COUNT, "0", str(core)) == "1 1 1 5"


FIT = """
import sys, threading
import numpy as np, sklearn.cluster, threadpoolctl, treeclust_rs as tc
from treeclust_rs import _engine

seen = []
whole = sklearn.cluster.KMeans.fit
def fit(self, *arguments, **options):
    seen.extend(pool["num_threads"] for pool in threadpoolctl.threadpool_info())
    return whole(self, *arguments, **options)
sklearn.cluster.KMeans.fit = fit
of_ours = []
threads = _engine.Threads
_engine.Threads = lambda n_jobs: of_ours.append(n_jobs) or threads(n_jobs)
X = np.random.default_rng(0).normal(size=(300, 3))
n_jobs = int(sys.argv[1]) or None
tc.ExKMC(3, random_state=0, n_jobs=n_jobs).fit(X)
assert seen and of_ours
print(max(seen), max(of_ours))
"""


def test_k_means_of_the_reference_uses_as_many_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert output_of(FIT, "0") == "1 1"
    # Asked for, more are used, in k-means too.
    assert output_of(FIT, "2") == "2 2"
    monkeypatch.setenv("OMP_NUM_THREADS", "abc")
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert output_of(FIT, "0") == "1 1"


def test_a_number_of_threads_is_not_looked_up(monkeypatch):
    # Reading the limits of the container takes longer than a small fit.
    monkeypatch.setattr(joblib, "cpu_count", None)
    assert effective_n_jobs(2) == 2
