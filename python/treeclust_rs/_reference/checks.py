"""What is checked of clusterings, and what is warned of: sizes, equal centers, empty clusters."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from .._data import WeightedRows
from .._util import BoolArray, Codes, FloatArray, format_count, weighted_sum
from .centers import Centers, cost_about
from .read import ReferenceInput

DEFAULT_N_CLUSTERS = 8

# Largest share of rows nearer to another cluster's center that passes without a warning.
_MAX_MISFIT = 0.05

# Centers this near to the means, as a share of the cost between clusters, differ by rounding.
_ROUNDING = 1e-9


def check_enough_rows(k: int, n_clusters: int | None, n_samples: int, estimator_name: str) -> None:
    """Raise ValueError if there are more clusters than rows; `n_clusters`: the user's parameter."""
    if k > n_samples:
        default = " (the default)" if n_clusters is None else ""
        raise ValueError(
            f"n_samples={n_samples} must be at least n_clusters={k}{default}: "
            f"{estimator_name} cannot make more clusters than there are rows."
        )


def check_distinct(centers: FloatArray, classes: list[int] | list[str]) -> None:
    """Raise ValueError if two centers are equal."""
    seen: dict[bytes, int] = {}
    for b, center in enumerate(centers + 0.0):  # -0.0 becomes 0.0
        a = seen.setdefault(center.tobytes(), b)
        if a != b:
            raise ValueError(
                f"The centers of the clusters {classes[a]!r} and {classes[b]!r} are equal; no cut "
                "can tell them apart. Give distinct centers."
            )


def warn_misfit(
    nearer_elsewhere: BoolArray, sample_weight: FloatArray | None, stacklevel: int
) -> None:
    """Warn if many rows are nearer to another cluster's center than to their own's."""
    warn_of_misfit(float(np.average(nearer_elsewhere, weights=sample_weight)), stacklevel + 1)


def warn_of_misfit(misfit: float, stacklevel: int) -> None:
    """Warn if a large share of the rows is nearer to another cluster's center than their own's."""
    if misfit > _MAX_MISFIT:
        warnings.warn(
            f"{misfit:.0%} of the rows are nearer to the center of another cluster than their "
            "own, so the tree follows distances to centers more than these labels. "
            'BestTree(objective="labels") and KernelExpand follow the labels alone.',
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def warn_of_far_centers(
    data: WeightedRows[Any], given: ReferenceInput, labels: Codes, stacklevel: int
) -> None:
    """Warn if the centers of an estimator lie far from the means of their clusters' rows.

    Farther, in squares, than the rows themselves: medians, exemplars and centers of similar rows do
    not, centers in other units do. Centers given as an array may lie anywhere.
    """
    centers = given.centers
    if centers is None or given.labels is None:
        return
    if data.rows.is_plain:
        weight, means, _, spread, _ = data.group_means(labels, centers)
        filled = weight > 0
        weight, means = weight[filled], means[filled]
        scale, own = data.units.scale, float(spread.sum())
        moved = weighted_sum(np.square((means - centers[filled]) / scale).sum(axis=1), weight)
        overall = np.average(means, axis=0, weights=weight)
        between = weighted_sum(np.square((means - overall) / scale).sum(axis=1), weight)
    else:
        one = np.zeros_like(labels)
        own = cost_about(data, Centers.of_labels(data, labels, len(centers)).high, labels)
        moved = cost_about(data, centers, labels) - own
        between = cost_about(data, Centers.of_labels(data, one, 1).high, one) - own
    if moved > own + _ROUNDING * between:
        warnings.warn(
            "The centers of the reference are far from the means of the rows they stand for: the "
            f"cost about them is {(own + moved) / own if own else np.inf:.3g} times that about the "
            "means, and cost_ratio_ is so much too small. Were they fitted to scaled columns? Then "
            "give the clusterer together with its scaler, "
            "reference=make_pipeline(StandardScaler(), KMeans(3)), or its labels_ as an array.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def warn_of_empty(
    n_found: int, n_clusters: int, advice: str, *, where: str = "", stacklevel: int
) -> None:
    """Warn that clusters have no rows."""
    have = "has" if n_found == 1 else "have"
    warnings.warn(
        f"Only {n_found} of the {n_clusters} clusters {have} rows{where}. {advice}",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )


def warn_of_lost(
    n_clusters: int,
    found: npt.NDArray[Any],
    reference: npt.NDArray[Any],
    advice: str,
    *,
    stacklevel: int,
) -> None:
    """Warn that clusters of the reference have no rows in the tree.

    `found`: numbers of the clusters that have rows in the tree. `reference`: number of each row's
    cluster by the reference. Centers that were given may have no rows in the reference either: of
    these there is no warning.
    """
    n_found = len(np.unique(found))
    if n_found < n_clusters and n_found < np.count_nonzero(np.bincount(reference)):
        where = " in the tree"
        warn_of_empty(n_found, n_clusters, advice, where=where, stacklevel=stacklevel + 1)


def warn_too_few(
    n_found: int, n_clusters: int, reason: str = "X has too few distinct rows", *, stacklevel: int
) -> None:
    """Warn that there are fewer clusters than asked for."""
    found = f"{format_count(n_found, 'distinct cluster')} {'was' if n_found == 1 else 'were'} found"
    warnings.warn(
        f"Only {found}, fewer than n_clusters={n_clusters}: {reason}.",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )
