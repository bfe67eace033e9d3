"""How far two clusterings agree."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from .._util.arrays import is_noise
from .checks import check_labels, check_weights

# Matching the clusters of two clusterings takes a table of their sizes' product.
_MAX_CONTINGENCY = 50_000_000


def agreement(
    labels: npt.ArrayLike,
    reference_labels: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Share of the rows on which two clusterings agree, the clusters being matched at best.

    Parameters
    ----------
    labels, reference_labels : array-like of shape (n_samples,)
        The two clusterings, integers or strings; rows labelled -1 in either are left out.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, not negative; None is 1 for each.

    Returns
    -------
    float
        Between 0 and 1: every cluster of one is matched with at most one of the other, so that the
        matched pairs share the most rows.

    Raises
    ------
    ValueError
        If no row of positive weight is left, or there are so many clusters that the table of
        their pairs would have more than 50 million entries.

    Examples
    --------
    >>> agreement([0, 0, 1, 1], ["b", "b", "a", "b"])
    0.75
    """
    reference = check_labels(reference_labels, None, "reference_labels")
    marks = check_labels(labels, len(reference), "labels")
    weights = check_weights(sample_weight, len(reference))
    kept = ~(is_noise(marks) | is_noise(reference))
    weights = weights[kept]
    names, codes = np.unique(marks[kept], return_inverse=True)
    reference_names, reference_codes = np.unique(reference[kept], return_inverse=True)
    total = float(weights.sum())
    if total == 0:
        raise ValueError("There is no row of positive weight to compare.")
    size = len(names) * len(reference_names)
    if size > _MAX_CONTINGENCY:
        raise ValueError(
            f"Matching {len(names):,} with {len(reference_names):,} clusters takes a table of "
            f"{size:,} entries; adjusted_rand_index has no such limit."
        )
    pairs = codes * len(reference_names) + reference_codes
    table = np.bincount(pairs, weights=weights, minlength=size)
    table = table.reshape(len(names), len(reference_names))
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum()) / total
