"""Distinct values of arrays; copies."""

import signal
import sys

import numpy as np
import pytest

from treeclust_rs._util import copied, distinct

RNG = np.random.default_rng(0)
TOP = 2**63 - 1


@pytest.mark.parametrize(
    "values",
    [
        RNG.integers(0, 8, 1000),
        RNG.integers(-128, 128, 1000).astype(np.int8),
        RNG.integers(-1, 5, 1000).astype(np.int32),
        RNG.integers(0, 3, 50).astype(np.uint64),
        np.array([7]),
        np.array([], dtype=np.int64),
        # Spans beyond the number of values, and beyond what 64 bits hold.
        np.array([3, -1_000_000, 3, 5]),
        np.array([TOP, -TOP, TOP]),
        np.array([TOP, TOP - 1, TOP]),
        np.array([-TOP - 1, -TOP, -TOP]),
        np.array([2**64 - 1, 2**64 - 2, 2**64 - 1], dtype=np.uint64),
        np.array([True, False, True]),
        np.array([2.0, -1.0, 2.0]),
        np.array(["b", "a", "b"]),
    ],
    ids=str,
)
def test_distinct_values_are_those_of_numpy(values):
    found, places = distinct(values)
    expected, expected_places = np.unique(values, return_inverse=True)
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()
    assert places.tolist() == expected_places.tolist()
    assert places.dtype == np.int64


def test_labels_are_not_sorted(monkeypatch):
    monkeypatch.setattr(np, "unique", None)
    found, places = distinct(np.array([4, 2, 4]))
    assert (found.tolist(), places.tolist()) == ([2, 4], [1, 0, 1])


@pytest.mark.skipif(sys.platform == "win32", reason="no timers that interrupt")
def test_signals_are_handled_while_rows_are_copied():
    rows = np.random.default_rng(0).random((200_000, 100))
    handled = []
    old = signal.signal(signal.SIGALRM, lambda *_: handled.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        copy = copied(rows)
        n_handled = len(handled)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, old)
    np.testing.assert_array_equal(copy, rows)
    assert n_handled > 2  # one copy of all handles a single one, at its end
    assert copied(rows[:3, :0]).shape == (3, 0)
