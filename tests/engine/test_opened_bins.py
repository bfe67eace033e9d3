"""Opened bins: what is held of them, and that dropping them changes nothing."""

import sys

import numpy as np
import pytest

import treeclust_rs as tc
from processes import output_of

# Labels without any relation to the columns: every bin of every column may hide the best cut.
NOISE = """
import sys
import numpy as np, treeclust_rs as tc

n, d, k = 100_000, 20, 10
rng = np.random.default_rng(0)
X, labels = np.asfortranarray(rng.normal(size=(n, d))), rng.integers(0, k, n)
model = tc.KMeansTree(k, reference=labels, n_jobs=2)

def peak():
    with open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("VmHWM")).split()[1]) << 10

with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak is what is used now
before = peak()
model.fit(X)
print(peak() - before)
"""

# Cases are drawn at random: clusters may lose their rows.
pytestmark = pytest.mark.filterwarnings("ignore:Only .* in the tree")


@pytest.mark.skipif(sys.platform != "linux", reason="counts the pages of the process")
def test_opened_bins_take_a_bounded_part_of_the_memory():
    n, d, k = 100_000, 20, 10
    one_column = n * (36 + 8 * k)
    all_columns = d * n * (20 + 8 * k)
    used = int(output_of(NOISE))
    assert used < n * d + 3 * 8 * n * k + 2 * (32 << 20) + one_column < 0.6 * all_columns


def test_groups_that_are_not_held_are_made_again():
    rng = np.random.default_rng(1)
    n, d, k = 60_000, 12, 6
    column, labels = rng.normal(size=n), rng.integers(0, k, n)
    # All columns are tied, and opened they take more than is held.
    assert d * n * (20 + 8 * k) > 32 << 20
    one = tc.KMeansTree(k, reference=labels, n_jobs=2).fit(column[:, None])
    all_equal = np.asfortranarray(np.tile(column[:, None], (1, d)))
    many = tc.KMeansTree(k, reference=labels, n_jobs=2).fit(all_equal)
    assert set(many.tree_.feature.tolist()) == {0, -2}
    np.testing.assert_array_equal(many.tree_.threshold, one.tree_.threshold)
    np.testing.assert_array_equal(many.labels_, one.labels_)
