"""Distinct values of arrays."""

import numpy as np
import pytest

from treeclust_rs._util import distinct

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
