"""The knee of a curve: hand-worked, and against distances to a line in the plane."""

import numpy as np
import pytest

from treeclust_rs._util import below_chord, knee


@pytest.mark.parametrize(
    ("x", "y", "place"),
    [
        ([3, 4, 5], [10, 2, 2], 1),  # the fall ends
        ([3, 4, 5], [10, 2, 2 - 1e-12], 1),
        ([3, 4, 5, 6], [10, 9, 0, 1], 2),
        ([3, 4, 5], [10, 2, 1], 1),
        ([3, 4, 6], [12, 9, 0], None),  # straight
        ([3, 4, 5], [10, 9, 0], None),  # above the line
        ([3, 4, 5], [4, 4, 4], 0),  # no leaf pays
        ([3, 4, 5], [4, 5, 6], 0),
        ([3], [4], 0),
        ([3, 4], [4, 1], None),
        ([1, 2, 3, 4], [9, 4, 1, 0], 1),  # 2/3 - 4/9, twice: the first of equal ones
        ([1, 2, 3, 4, 400], [9, 2, 1, 0, 0], 1),  # what gains nothing has no part in it
        ([1, 2, 3, 9], [9, 2, 0, 5], 1),
        ([1, 2, 4], [8, 3, 2], 1),
    ],
)
def test_by_hand(x, y, place):
    assert knee(x, y) == place


def test_it_is_the_point_farthest_from_the_line_whatever_the_units():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(3, 12))
        x = np.sort(rng.choice(60, n, replace=False)) + 1.0
        y = np.sort(rng.random(n))[::-1] ** 2
        ends = np.array([x[-1] - x[0], y[-1] - y[0]])
        off = (y - y[0]) * ends[0] - (x - x[0]) * ends[1]
        distance = -off / np.hypot(*ends)  # below the line
        expected = int(np.argmax(distance)) if distance.max() > 1e-9 else None
        assert knee(x, y) == expected == knee(3 * x + 7, 1e6 * y + 5)
        share = distance * np.hypot(*ends) / (ends[0] * -ends[1])
        np.testing.assert_allclose(below_chord(x, y), share, atol=1e-12)
