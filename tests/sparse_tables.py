"""Random sparse tables, and the comparison of their trees with those of dense ones."""

from __future__ import annotations

import numpy as np
from scipy import sparse

FORMATS = [
    sparse.csr_array,
    sparse.csc_array,
    sparse.coo_array,
    sparse.csr_matrix,
    sparse.lil_array,
]
TREE_ARRAYS = (
    "kind",
    "feature",
    "threshold",
    "lower",
    "upper",
    "children_left",
    "cluster",
    "base_cluster",
    "n_node_samples",
    "missing_go_to_left",
    "below",
    "above",
)


def same_trees(a, b, *, rounded=False):
    """Compare two trees; `rounded`: their centers are means, whose last digits may differ.

    A cut between a center and a value may then have another number of few digits in the same gap.
    """
    for name in TREE_ARRAYS:
        if name not in ("threshold", "lower", "upper") or not rounded:
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    if a.below is None:  # one leaf
        assert b.below is None
        return
    low, high = np.nan_to_num(a.below, nan=-np.inf), np.nan_to_num(a.above, nan=np.inf)
    end = np.where(np.isnan(b.upper), b.threshold, b.upper)
    assert ((low <= end) & (end < high)).all()


def words(rng, n=60, d=8, k=4):
    """Return counts of few words, with copies, empty rows and an empty column, and k centers."""
    X = rng.poisson(1.0, (n, d)) * (rng.random((n, d)) < rng.random(d)).astype(float)
    X[:, 2] = 0.0
    X[rng.integers(0, n, 5)] = 0.0
    X[rng.integers(0, n, 10)] = X[rng.integers(0, n, 10)]
    X[:, 3] = -X[:, 3]
    X[:, 5] -= 2.0 * (X[:, 5] == 3.0) * X[:, 5]  # both signs
    return X, np.unique(X[rng.choice(n, k, replace=False)], axis=0)
