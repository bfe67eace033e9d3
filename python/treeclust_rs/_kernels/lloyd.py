"""Kernel k-means: clusters whose rows are near their mean in a kernel's feature space.

The cost is sum_i w_i k(i, i) - sum_l S(C_l, C_l) / |C_l|, S(A, B) = sum of w_i w_j k(i, j) over
i in A, j in B and |C| the weight of C. With features of the rows this is k-means, by scikit-learn;
with a kernel matrix see `gram_lloyd`.

References
----------
M. Fleissner, L. C. Vankadara, D. Ghoshdastidar, "Explaining kernel clustering via decision trees",
2024: Algorithm 4 and Lemma 1.
P. S. Bradley, U. M. Fayyad, "Refining initial points for k-means clustering", 1998: starts from
runs on samples.
"""

import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from threadpoolctl import ThreadpoolController

from .._data import sparse_deviations
from .._reference.checks import warn_too_few
from .._util import (
    FloatArray,
    IntArray,
    copied,
    format_count,
    map_in_order,
    one_blas_thread,
)
from .._util.threads import check_room
from .gram import is_indefinite, tells_all_apart, warn_arbitrary, warn_indefinite
from .gram_lloyd import GramRows, Run, draw, run_lloyd, seed_groups
from .kernel_data import OVERFLOW, KernelData
from .means import Clustering, Means, compact, first_least
from .sparse_rows import Matrix, table_of

Tell = Callable[[int, int, float], None]
"""Progress callback: the number of a start, from 1 on, its rounds and its cost."""


def tell_starts(show: Callable[[str], None] | None, n_init: int) -> Tell | None:
    """Return the callback that shows a text for each of `n_init` starts; None without `show`."""
    if show is None:
        return None
    return lambda number, n_iter, cost: show(
        f"start {number} of {n_init}, {format_count(n_iter, 'round')}, cost {cost:.6g}"
    )


# With at least four times this many rows, and 128 for each cluster, a start begins with short runs
# ("trials") on a sample of an eighth of the rows.
_MIN_TRIAL_ROWS = 384
_MAX_TRIAL_ROWS = 1024
_MAX_TRIALS = 8
_MIN_ROWS_PER_TRIAL = 512  # of 2,000 rows the kernel matrix costs no more than three runs

_VARIANCE_BLOCK = 1 << 20  # numbers


def cluster(
    data: KernelData,
    k: int,
    *,
    n_init: int = 10,
    max_iter: int = 300,
    tol: float = 1e-6,
    random_state: Any = None,
    n_jobs: int = 1,
    tell: Tell | None = None,
) -> Clustering:
    """Partition the rows so that the kernel k-means cost is small.

    Parameters
    ----------
    data : KernelData
        The rows, with features or a kernel matrix.
    k : int
        Number of clusters, from 1 to the number of rows.
    n_init : int, default=10
        Starts, each from other k-means++ seeds; the first one of least cost is returned.
    max_iter : int, default=300
        Most rounds of a start.
    tol : float, default=1e-6
        A start ends when no row moves, or a round lowers the cost by at most this share of it (with
        features: when the means move, in squares and summed up, by at most this share of the rows'
        total variance).
    random_state : int, RandomState instance or None, default=None
        Source of the seeds.
    n_jobs : int, default=1
        Threads, at least 1. The result does not depend on it.
    tell : callable, default=None
        Called after every start with its number, from 1 on, its rounds and its cost.

    Returns
    -------
    Clustering

    Raises
    ------
    ValueError
        If kernel values overflow.

    Warns
    -----
    UserWarning
        If the kernel is not positive semidefinite: epsilon, or another on a sample of the rows.
    ConvergenceWarning
        If fewer than k clusters were found, because the kernel tells fewer rows apart.

    Notes
    -----
    With a kernel matrix a start begins with greedy k-means++ seeds in the feature space; from 1,536
    rows (128 k) on with the best of 8 short runs on a sample, from such seeds. The first sums cost
    O(n^2), a round O(n (k + moved rows)); memory is O(n k) beside the matrix for each thread. A
    cluster that falls empty gets the row of greatest weight times distance. At the end single rows
    are moved while that lowers the cost, O(n k) each, by up to 0.8 % in trials.

    The cost never rises from round to round if the kernel is positive semidefinite, at least on
    differences of rows. If it is not, the best partition seen is kept, and rounds end when a
    partition recurs.
    """
    if data.features is None and data.gram is None:
        raise ValueError("Kernel k-means needs features of the rows or their kernel matrix.")
    rng = check_random_state(random_state)
    seeds = rng.randint(np.iinfo(np.int32).max, size=n_init).tolist()
    solver = _by_gram if data.features is None else _by_features
    best = solver(data, _Starts(k, seeds, max_iter, tol, n_jobs, tell))
    n_found = int(best.labels.max()) + 1
    if n_found < k:
        warn_too_few(n_found, k, "the kernel tells too few rows apart", stacklevel=4)
    elif 1 < k < len(best.labels) and tells_all_apart(data):
        warn_arbitrary(data.kernel)
    return best


class _Starts(NamedTuple):
    """The starts of `cluster`."""

    k: int
    seeds: list[int]
    max_iter: int
    tol: float
    n_jobs: int
    tell: Tell | None


def _by_features(data: KernelData, starts: _Starts) -> Clustering:
    from sklearn.cluster import KMeans  # a tenth of the package's import time

    k, seeds, max_iter, tol, n_jobs, tell = starts
    features = data.features
    assert features is not None
    threads = ThreadpoolController()
    least_move = tol * _total_variance(features)

    class Solver(KMeans):
        """scikit-learn's, told when means have moved enough.

        It would take a share of the mean variance of a column, by a call for all features at once,
        which Ctrl-C has to wait for, and that in every start.
        """

        def _check_params_vs_input(self, X: Any) -> None:
            super()._check_params_vs_input(X)
            self._tol = least_move

    # Every start has a copy of the features.
    is_dense = not issparse(features)
    check_room(1, min(n_jobs, len(seeds)) * (features.nbytes if is_dense else features.data.nbytes))

    def start(seed: int) -> KMeans:
        # On one thread: on several the bits of the centers depend on their number.
        # With copy_x=True it would copy the features in one call, which Ctrl-C has to wait for.
        solver = Solver(k, n_init=1, max_iter=max_iter, tol=0, random_state=seed, copy_x=False)
        with threads.limit(limits=1, user_api="openmp"):
            rows = copied(features) if is_dense else features
            return solver.fit(rows, sample_weight=data.weight)

    best: KMeans | None = None
    with warnings.catch_warnings(), threads.limit(limits=1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # `cluster` warns
        for number, solver in enumerate(map_in_order(start, seeds, n_jobs), 1):
            if tell is not None:
                tell(number, solver.n_iter_, solver.inertia_)
            if best is None or solver.inertia_ < best.inertia_:
                best = solver
    assert best is not None, "n_init is at least 1"
    means = Means.of_centers(best.cluster_centers_)
    labels = first_least(*means.feature_distances(features))
    labels, means = compact(labels, means)
    return Clustering(labels, data.inertia(labels), int(best.n_iter_), means)


def _total_variance(features: Matrix) -> float:
    """Return the sum of the columns' variances, in blocks of rows."""
    if issparse(features):
        return float(np.square(sparse_deviations(table_of(features), None)).sum())
    mean = features.mean(axis=0)
    blocks = np.array_split(features, -(-features.size // _VARIANCE_BLOCK))
    return sum(float(np.square(block - mean).sum()) for block in blocks) / len(features)


def _by_gram(data: KernelData, starts: _Starts) -> Clustering:
    k, seeds, max_iter, tol, n_jobs, tell = starts
    assert data.gram is not None
    weight = data.weights
    with np.errstate(over="ignore"):
        largest = weight.sum() ** 2 * np.abs(data.diagonal).max()
    if not np.isfinite(largest):
        raise ValueError(OVERFLOW)
    definite = not is_indefinite(data, seeds[0])
    if not definite:
        warn_indefinite(data.kernel)
    rows = GramRows(data, data.gram, weight, definite, n_jobs)
    alone = replace(rows, n_jobs=1) if min(n_jobs, len(seeds)) > 1 else rows
    cancelled = threading.Event()

    @np.errstate(over="ignore", invalid="ignore")  # in each thread; the cost is checked
    def start(seed: int) -> Run:
        groups, sums = _first_groups(alone, k, np.random.RandomState(seed), cancelled)
        return run_lloyd(alone, groups, sums, max_iter, tol, cancelled, refine=definite)

    best: Run | None = None
    with one_blas_thread():
        for number, run in enumerate(map_in_order(start, seeds, n_jobs, cancelled.set), 1):
            if tell is not None:
                tell(number, run.n_iter, run.cost)
            if best is None or run.cost < best.cost:
                best = run
        assert best is not None, "n_init is at least 1"
        return _recomputed(rows, best)


def _first_groups(
    rows: GramRows, k: int, rng: np.random.RandomState, cancelled: threading.Event
) -> tuple[IntArray, FloatArray]:
    """Return the groups that a start begins with, and the sums over them.

    For few rows they are seeds. For many rows they are the clusters of the best of some short runs,
    from seeds, on one sample of the rows: if rows lie nearly as far from their mean as from each
    other, many seeds end in poor clusterings. The rounds that this saves cost more than the runs.
    """
    n = len(rows.weight)
    size = max(_MIN_TRIAL_ROWS, 32 * k, min(n // 8, _MAX_TRIAL_ROWS))
    if n >= 4 * size:
        sample, counts = np.unique(draw(rows.weight, rng.uniform(size=size)), return_counts=True)
        values = rows.values[np.ix_(sample, sample)]
        data = KernelData.of_gram(values, counts.astype(np.float64))
        few = GramRows(data, values, data.weights, rows.definite, 1)
        trials = []
        for _ in range(min(_MAX_TRIALS, n // _MIN_ROWS_PER_TRIAL)):
            groups, sums = seed_groups(few, k, rng)
            trials.append(run_lloyd(few, groups, sums, 100, 1e-4, cancelled, refine=False))
        best = min(trials, key=lambda trial: trial.cost)
        if best.k == k:
            groups = np.full(n, -1)
            groups[sample] = best.labels
            return groups, rows.sums(groups, k)
    return seed_groups(rows, k, rng)


def _recomputed(rows: GramRows, run: Run) -> Clustering:
    """Return the clustering of a run with sums computed again, free of its accumulated rounding."""
    data, k = rows.data, run.k
    sums = rows.sums(run.groups, k)
    means = rows.means(run.groups, k, sums)
    labels = means.nearest(sums)
    own = rows.means(labels, k, rows.moved_sums(sums, run.groups, labels))
    cost = data.cost(own.weight, own.stocks)
    labels, means = compact(labels, means)
    return Clustering(labels, cost, run.n_iter, means)
