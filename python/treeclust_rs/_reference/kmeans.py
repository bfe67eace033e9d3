"""The clustering of the fitted rows that a tree explains, with its costs.

By k-means, k-medians or, under 1 - cosine, spherical k-means.

It is made here (scikit-learn's KMeans, or k-medians) where the user gave no reference.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from .. import _engine
from .._data import SparseTable, Units, WeightedRows
from .._util import Codes, FloatArray, distinct, format_count
from .._util.threads import check_room
from .centers import Centers, Criterion, own_regret
from .checks import DEFAULT_N_CLUSTERS, check_distinct, check_enough_rows, warn_misfit, warn_too_few
from .kmedians import kmedians
from .observed import best_descent, filled_matrix, seeded_labels
from .read import ReferenceInput

# Numbers of a row in KMeans beside the matrix: distances to some seeds, weights, labels.
_NUMBERS_OF_ROW = 12
N_INIT = 10
ROWS_OVERFLOW = (
    'The distances between rows overflow float64. Use scale="standard" or rescale the columns.'
)
MAX_ITER = 300

TellText = Callable[[str], None]
"""Progress callback: prints a text."""


@dataclass(frozen=True)
class Reference:
    """A clustering of the fitted rows: the clusters' names, a code per row, and their centers."""

    classes: list[int] | list[str]
    labels: Codes
    centers: Centers
    regrets: FloatArray
    """n x k: weight times (cost of the label - cost of the row's cheapest)."""
    minimum: float
    """Weighted sum of the rows' cheapest costs: what the regrets leave out."""
    inertia: float
    """Weighted cost of the rows about the centers of their own clusters."""

    @property
    def n_clusters(self) -> int:
        return len(self.classes)


def make_reference(
    data: WeightedRows[Any],
    given: ReferenceInput,
    *,
    criterion: Criterion = "kmeans",
    n_clusters: int | None,
    random_state: Any,
    estimator_name: str,
    needs_distinct: bool,
    follows_centers: bool = True,
    n_init: int = N_INIT,
    max_iter: int = MAX_ITER,
    tell: TellText | None = None,
) -> Reference:
    """Determine labels, centers and costs on the fitted rows.

    `data`, `given`: of the fitted rows, without noise. `needs_distinct`: whether equal centers are
    refused where they come from labels; centers that were given must always be distinct.
    `follows_centers`: whether to warn of labels that do not lie about their centers. `tell`: prints
    when k-means begins and ends.
    """
    labels, classes, centers = given.labels, given.classes, None
    space = data.units if data.rows.levels is None else data.encoding
    if given.centers is not None:
        centers = Centers.from_own(given.centers, space)
    elif labels is None:
        k = n_clusters or DEFAULT_N_CLUSTERS
        check_enough_rows(k, n_clusters, data.rows.n_samples, estimator_name)
        labels = _cluster(data, criterion, k, random_state, n_init, max_iter, tell)
        found, labels = distinct(labels)
        if len(found) < k:
            warn_too_few(len(found), k, stacklevel=4)
        classes = list(range(len(found)))
    from_labels = labels is not None and given.labels is not None and centers is None
    if centers is None:
        assert labels is not None and classes is not None
        centers = Centers.of_labels(data, labels, len(classes), criterion)
    if classes is None:
        classes = list(range(len(centers.high)))
    if needs_distinct or given.centers is not None:
        check_distinct(centers.high + centers.low, classes)
    regrets, nearest, minimum = data.label_costs(
        centers.in_units, manhattan=criterion == "kmedians"
    )
    codes = nearest
    if given.labels is not None:
        codes = given.labels.astype(np.uint32)
        if from_labels and follows_centers:
            warn_misfit(codes != nearest, data.weight, stacklevel=3)
    is_same = labels is not None and np.array_equal(codes, np.asarray(labels))
    if not is_same:
        centers = replace(centers, level_weights=None)  # they were those of other clusters
    if is_same and criterion == "kmeans" and given.centers is None:
        # Added up as the costs of trees about their own means: the same for the same clusters.
        means = (
            data.group_means(codes, len(classes))
            if data.rows.levels is None
            else data.encoded_means(codes, centers.high, centers.level_weights)
        )
        inertia = float(means.spread.sum())
    elif given.labels is not None:
        inertia = minimum + own_regret(regrets, codes, data.threads)
    else:
        inertia = minimum
    return Reference(classes, codes, centers, regrets, minimum, inertia)


def _cluster(
    data: WeightedRows[Any],
    criterion: Criterion,
    k: int,
    random_state: Any,
    n_init: int,
    max_iter: int,
    tell: TellText | None,
) -> npt.NDArray[Any]:
    by_medians = criterion == "kmedians"
    matrix, cells = _matrix(data)
    if not np.isfinite(np.vdot(cells, cells)):
        raise ValueError(ROWS_OVERFLOW)
    name = "k-medians" if by_medians else "k-means"
    _tell_begin(tell, name, k, n_init)

    def cluster(n_init: int, random_state: Any) -> tuple[npt.NDArray[Any], float]:
        return _cluster_matrix(data, matrix, criterion, k, random_state, n_init, max_iter)

    if data.rows.is_plain or not (by_medians or data.rows.gaps):
        labels, cost = cluster(n_init, random_state)
    else:

        def start(seed: int) -> npt.NDArray[Any]:
            # Rounds of KMeans work on all coordinates, where the descent looks levels up.
            if by_medians or data.rows.levels is None or not data.encoding.is_wide:
                return cluster(1, seed)[0]
            return seeded_labels(data, matrix, k, seed)

        labels, cost = best_descent(data, k, start, criterion, random_state, n_init, max_iter)
    _tell_end(tell, name, cost)
    return labels


def _matrix(data: WeightedRows[Any]) -> tuple[Any, FloatArray]:
    """Return the rows in units as k-means takes them, sparse ones sparse, and all their cells."""
    if isinstance(data.rows, SparseTable):
        matrix = data.units.sparse_matrix(data.rows)
        return matrix, matrix.data
    rows = data.units.matrix(data.rows) if data.rows.is_plain else filled_matrix(data)
    return rows, rows


def _cluster_matrix(
    data: WeightedRows[Any],
    matrix: Any,
    criterion: Criterion,
    k: int,
    random_state: Any,
    n_init: int,
    max_iter: int,
) -> tuple[npt.NDArray[Any], float]:
    """Return labels and cost of the rows of a matrix, which may be written to if it is dense."""
    if criterion == "kmedians":
        _, labels, inertia, _ = kmedians(
            matrix, k, sample_weight=data.weight, n_init=n_init, random_state=random_state
        )
        return labels, inertia
    from sklearn.cluster import KMeans  # a tenth of the package's import time

    # KMeans takes some numbers for each row.
    check_room(data.threads.n_jobs, 8 * _NUMBERS_OF_ROW * data.rows.n_samples)
    solver = KMeans(k, n_init=n_init, max_iter=max_iter, random_state=random_state, copy_x=False)
    with warnings.catch_warnings(), threadpool_limits(data.threads.n_jobs):
        warnings.simplefilter("ignore", ConvergenceWarning)  # warn_too_few replaces it
        solver.fit(matrix, sample_weight=data.weight)
    return np.asarray(solver.labels_), float(solver.inertia_)


def _tell_begin(tell: TellText | None, name: str, k: int, n_init: int) -> None:
    if tell is not None:
        tell(f"{name} of {format_count(k, 'cluster')}, {format_count(n_init, 'start')}")


def _tell_end(tell: TellText | None, name: str, cost: float | None = None) -> None:
    if tell is not None:
        tell(f"{name} done" + ("" if cost is None else f", cost {cost:.6g}"))


class Clustering(NamedTuple):
    """A clustering of the fitted rows."""

    classes: list[int] | list[str]
    labels: Codes
    centers: FloatArray
    """In units; of length 1 for cosine."""


def spherical_reference(
    data: WeightedRows[Any],
    given: ReferenceInput,
    *,
    n_clusters: int | None,
    random_state: Any,
    estimator_name: str,
    n_init: int,
    max_iter: int,
    tell: TellText | None = None,
) -> Clustering:
    """Determine classes, labels and centers on the fitted rows; as `make_reference`.

    `data`: dense or sparse.
    """
    rows, threads = data.rows, data.threads
    if given.centers is None and given.labels is None:
        k = n_clusters or DEFAULT_N_CLUSTERS
        check_enough_rows(k, n_clusters, rows.n_samples, estimator_name)
        _tell_begin(tell, "spherical k-means", k, n_init)
        found, centers = _engine.spherical_kmeans(
            rows.data,
            k,
            sample_weight=data.weight,
            n_init=n_init,
            max_iter=max_iter,
            seed=int(random_state.randint(np.iinfo(np.int32).max)),
            n_jobs=threads,
        )
        _tell_end(tell, "spherical k-means")
        used, codes = np.unique(found, return_inverse=True)
        if len(used) < k:
            warn_too_few(len(used), k, stacklevel=5)
        classes = list(range(len(used)))
        return Clustering(classes, codes.astype(np.uint32), np.ascontiguousarray(centers[used]))
    measure = _engine.Measure(Units.own(rows.n_features), True, data.weight, threads)
    labels = None if given.labels is None else given.labels.astype(np.uint32)
    if given.centers is not None:
        lengths = np.linalg.norm(given.centers, axis=1, keepdims=True)
        centers = np.ascontiguousarray(given.centers / np.where(lengths > 0, lengths, 1.0))
    else:
        assert labels is not None and given.classes is not None
        centers = np.zeros((len(given.classes), rows.n_features))
        centers = _engine.mean_centers(rows.data, measure, labels=labels, centers=centers)
    if labels is None:
        labels, _ = _engine.assign_rows(rows.data, measure, labels=None, centers=centers)
    return Clustering(given.classes or list(range(len(centers))), labels, centers)
