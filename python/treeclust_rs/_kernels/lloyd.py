"""Kernel k-means: clusters whose rows are near to their mean in a kernel's feature space.

The cost is sum_i w_i k(i, i) - sum_l S(C_l, C_l) / |C_l|, S(A, B) = sum of w_i w_j k(i, j) over
i in A, j in B and |C| the weight of C. With a kernel matrix, Lloyd's algorithm keeps the sums
S[l, i] of the kernel of row i over each cluster l. They cost O(n^2) once; afterwards a round costs
O(n k), and O(n) for each row that changed its cluster. With features of the rows it is k-means.

References
----------
M. Fleissner, L. C. Vankadara, D. Ghoshdastidar, "Explaining kernel clustering via decision trees",
2024: Algorithm 4 and Lemma 1.
D. Arthur, S. Vassilvitskii, "k-means++: the advantages of careful seeding", 2007; the greedy form
with 2 + log k trials is scikit-learn's.
P. S. Bradley, U. M. Fayyad, "Refining initial points for k-means clustering", 1998: starts from
runs on samples.
J. A. Hartigan, "Clustering algorithms", 1975: moves of single rows.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from threadpoolctl import ThreadpoolController

from .._reference.reference import warn_too_few
from .._util.arrays import FloatArray
from .._util.threads import map_in_order, one_blas_thread
from .kernels import Kernel
from .stocks import ROUNDING, Stocks, gram_sums

__all__ = ["Clustering", "Means", "cluster", "first_least"]

Labels = npt.NDArray[np.int64]
Tell = Callable[[int, int, float], None]
"""Takes the number of a start, from 1 on, its rounds and its cost."""

# Kernels that are positive semidefinite whatever their parameters.
_DEFINITE = frozenset(
    {"additive_chi2", "chi2", "cosine", "hellinger", "histogram_intersection"}
    | {"laplacian", "linear", "rbf"}
)
# Others are tested on a sample of so many rows: an eigenvalue below 0 counts from this share of the
# largest on.
_SAMPLE = 256
_INDEFINITE = 1e-8
# Where there are four times as many rows as this, and 128 for each cluster, a start begins with so
# many short runs on a sample of them: an eighth of the rows, but not more than the last number.
_TRIALS = 8
_ROWS_PER_TRIAL = 512  # of 2,000 rows the kernel matrix costs no more than three runs
_TRIAL_ROWS = 384
_MOST_TRIAL_ROWS = 1024
# So many kernel values, 2 MiB, are taken by indexing.
_FEW = 1 << 18

_OVERFLOW = 'The kernel values overflow float64. Use scale="standard" or rescale the columns.'


@dataclass(frozen=True, eq=False)
class Means:
    """Means of k clusters in the feature space.

    They are the `centers` of the features, if there are features; else each is the mean of the rows
    of its group.
    """

    groups: Labels | None
    """Group of each row of the fit, -1 for none; without features."""
    weight: FloatArray
    """Weight of each group, of shape (k,)."""
    stocks: FloatArray
    """S(G, G) of each group G, of shape (k,); with features, squared norms of the centers."""
    centers: FloatArray | None = None

    def nearest(self, sums: FloatArray) -> Labels:
        """Give the nearest mean of rows, the first among equally near ones.

        Parameters
        ----------
        sums : ndarray of shape (k, n)
            Sums of each row's kernel over the groups.
        """
        return first_least(*self.partial_distances(sums))

    def partial_distances(self, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Give squared distances to the means less k(x, x) (Lemma 1), and how exact they are.

        Returns
        -------
        partial : ndarray of shape (k, n)
            inf for groups without rows.
        margin : ndarray of shape (n,)
            Differences up to this may be rounding.
        """
        empty = self.weight <= 0
        weight = np.where(empty, 1.0, self.weight)
        norms = self.stocks / (weight * weight)
        partial = sums * (-2.0 / weight)[:, None]
        margin = np.maximum(partial.max(axis=0), -partial.min(axis=0))
        margin += np.abs(norms).max()
        margin *= ROUNDING
        partial += norms[:, None]
        partial[empty] = np.inf
        return partial, margin

    def feature_distances(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Give squared distances of rows of features to the centers, as `partial_distances`."""
        assert self.centers is not None
        found = np.asarray(cdist(self.centers, features, "sqeuclidean"))
        margin = np.einsum("ij,ij->i", features, features) + self.stocks.max()
        margin *= ROUNDING
        return found, margin


@dataclass(frozen=True, eq=False)
class Clustering:
    """What kernel k-means found.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,), int64
        0, ..., n_clusters - 1; all of them occur.
    inertia : float
        Cost about the clusters' own means.
    n_iter : int
        Rounds of the best start.
    means : Means
        Each row has the label of the nearest of them: the clusters' own means, or, if the rounds
        ended before no row moved, those of the round before.
    """

    labels: Labels
    inertia: float
    n_iter: int
    means: Means


def cluster(
    stocks: Stocks,
    k: int,
    *,
    n_init: int = 10,
    max_iter: int = 300,
    tol: float = 1e-6,
    random_state: Any = None,
    n_jobs: int = 1,
    tell: Tell | None = None,
) -> Clustering:
    """Make the kernel k-means cost of a partition of the rows small.

    Parameters
    ----------
    stocks : Stocks
        The rows: their features, or their kernel matrix.
    k : int
        Number of clusters, from 1 to the number of rows.
    n_init : int, default=10
        Starts, each from other k-means++ seeds; the one of least cost is taken, the first among
        equals.
    max_iter : int, default=300
        Most rounds of a start.
    tol : float, default=1e-6
        A start ends when no row moves, or a round lowers the cost by at most this share of it (with
        features: when the means move, in squares and summed up, by at most this share of the rows'
        total variance).
    random_state : int, RandomState instance or None, default=None
        Where the seeds come from.
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
        If the kernel is not positive semidefinite: epsilon, or if a sample of rows shows it.
    ConvergenceWarning
        If fewer than k clusters were found, because the kernel tells fewer rows apart.

    Notes
    -----
    With a kernel matrix a start begins with greedy k-means++ seeds in the feature space; from 1,536
    rows (128 k) on with the best of 8 short runs on a sample, from such seeds. The first sums cost
    O(n^2), a round O(n (k + moved rows)); memory is O(n k) beside the matrix for each thread. A
    cluster that falls empty gets the row that is served worst. At the end single rows are moved
    while that lowers the cost, O(n k) each, which took up to 0.8 % off in trials.

    The cost never rises from round to round if the kernel is positive semidefinite, at least on
    differences of rows. If it is not, the best partition seen is kept, and rounds end when one
    comes back.
    """
    if stocks.features is None and stocks.gram is None:
        raise ValueError("Kernel k-means needs features of the rows or their kernel matrix.")
    rng = check_random_state(random_state)
    seeds = rng.randint(np.iinfo(np.int32).max, size=n_init).tolist()
    solver = _by_gram if stocks.features is None else _by_features
    found = solver(stocks, k, seeds, max_iter, tol, n_jobs, tell)
    n_found = int(found.labels.max()) + 1
    if n_found < k:
        warn_too_few(n_found, k, "the kernel tells too few rows apart", stacklevel=4)
    elif 1 < k < len(found.labels) and _tells_all_apart(stocks):
        _warn_arbitrary(stocks.kernel)
    return found


def first_least(values: FloatArray, margin: FloatArray) -> Labels:
    """Give the first row, in each column, that is within the margin of the least."""
    limit = values.min(axis=0) + margin
    return np.asarray((values <= limit).argmax(axis=0), dtype=np.int64)


def _compact(labels: Labels, means: Means) -> tuple[Labels, Means]:
    """Drop the clusters without rows and their means, and number the others from 0 on."""
    used, codes = np.unique(labels, return_inverse=True)
    if len(used) == len(means.weight):
        return labels, means
    code_of = np.full(len(means.weight) + 1, -1)  # the last is of no group
    code_of[used] = np.arange(len(used))
    return codes.astype(np.int64), Means(
        None if means.groups is None else code_of[means.groups],
        means.weight[used],
        means.stocks[used],
        None if means.centers is None else means.centers[used],
    )


# ---- features -----------------------------------------------------------------------------


def _by_features(
    stocks: Stocks,
    k: int,
    seeds: list[int],
    max_iter: int,
    tol: float,
    n_jobs: int,
    tell: Tell | None,
) -> Clustering:
    features = stocks.features
    assert features is not None
    threads = ThreadpoolController()
    # scikit-learn measures the means' moves against the mean variance of a column.
    tol *= features.shape[1]

    def start(seed: int) -> KMeans:
        # On one thread, because on several the bits of its centers depend on their number.
        solver = KMeans(k, n_init=1, max_iter=max_iter, tol=tol, random_state=seed)
        with threads.limit(limits=1, user_api="openmp"):
            return solver.fit(features, sample_weight=stocks.weight)

    best: KMeans | None = None
    with warnings.catch_warnings(), threads.limit(limits=1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the caller says it in our words
        for number, found in enumerate(map_in_order(start, seeds, n_jobs), 1):
            if tell is not None:
                tell(number, found.n_iter_, found.inertia_)
            if best is None or found.inertia_ < best.inertia_:
                best = found
    assert best is not None, "n_init is at least 1"
    centers = best.cluster_centers_
    norms = np.einsum("ij,ij->i", centers, centers)
    means = Means(None, np.ones(len(centers)), norms, centers)
    labels = first_least(*means.feature_distances(features))
    labels, means = _compact(labels, means)
    return Clustering(labels, stocks.inertia(labels), int(best.n_iter_), means)


# ---- a kernel matrix ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Gram:
    """The rows of a start: their kernel matrix and weights."""

    stocks: Stocks
    values: FloatArray
    weight: FloatArray
    definite: bool
    n_jobs: int

    def means(self, groups: Labels, k: int, sums: FloatArray) -> Means:
        return Means(
            groups, self.stocks.cluster_weights(groups, k), self.stocks.self_stocks(groups, sums.T)
        )

    def sums(self, groups: Labels, k: int) -> FloatArray:
        """Give the sums over the groups, of shape (k, n), anew."""
        return gram_sums(self.values, groups, self.weight, k, self.n_jobs)

    def moved_sums(self, sums: FloatArray, before: Labels, after: Labels) -> FloatArray:
        """Give the sums over the groups after some rows moved; overwrites `sums`."""
        k, n = sums.shape
        moved = np.flatnonzero(before != after)
        left = moved[before[moved] >= 0]
        if len(moved) + len(left) >= n:
            return self.sums(after, k)
        if len(moved) * n <= _FEW:  # building a sparse matrix would take longer
            dense = np.zeros((k, n))
            dense[after[moved], moved] = self.weight[moved]
            dense[before[left], left] = -self.weight[left]
            sums += dense[:, moved] @ self.values[moved]
            return sums
        changes = csr_matrix(
            (
                np.concatenate((self.weight[moved], -self.weight[left])),
                (np.concatenate((after[moved], before[left])), np.concatenate((moved, left))),
            ),
            shape=(k, n),
        )
        sums += changes @ self.values
        return sums

    def squared_from(self, row: Any) -> FloatArray:
        """Give the squared distances of all rows to some, of shape (..., n); rounding is 0."""
        diagonal = self.stocks.diagonal
        found: FloatArray = self.values[row] * -2.0
        norms = np.asarray(diagonal[row])[..., None]
        found += diagonal
        found += norms
        found[found <= ROUNDING * (np.abs(diagonal) + np.abs(norms))] = 0.0
        return found


@dataclass(frozen=True, eq=False)
class _Start:
    """What one start found: labels, and the groups whose means they are the nearest of."""

    groups: Labels
    labels: Labels
    k: int
    cost: float
    n_iter: int


def _by_gram(
    stocks: Stocks,
    k: int,
    seeds: list[int],
    max_iter: int,
    tol: float,
    n_jobs: int,
    tell: Tell | None,
) -> Clustering:
    assert stocks.gram is not None
    weight = stocks.weights
    with np.errstate(over="ignore"):
        largest = weight.sum() ** 2 * np.abs(stocks.diagonal).max()
    if not np.isfinite(largest):
        raise ValueError(_OVERFLOW)
    definite = not _is_indefinite(stocks, seeds[0])
    if not definite:
        _warn_indefinite(stocks.kernel)
    rows = _Gram(stocks, stocks.gram, weight, definite, n_jobs)
    alone = replace(rows, n_jobs=1) if min(n_jobs, len(seeds)) > 1 else rows
    broken_off = threading.Event()

    @np.errstate(over="ignore", invalid="ignore")  # of each thread; the cost is looked at
    def start(seed: int) -> _Start:
        groups, sums = _first_groups(alone, k, np.random.RandomState(seed), broken_off)
        return _lloyd(alone, groups, sums, max_iter, tol, broken_off, refine=definite)

    best: _Start | None = None
    with one_blas_thread():
        for number, found in enumerate(map_in_order(start, seeds, n_jobs, broken_off.set), 1):
            if tell is not None:
                tell(number, found.n_iter, found.cost)
            if best is None or found.cost < best.cost:
                best = found
        assert best is not None, "n_init is at least 1"
        return _settled(rows, best)


def _first_groups(
    rows: _Gram, k: int, rng: np.random.RandomState, broken_off: threading.Event
) -> tuple[Labels, FloatArray]:
    """Give the groups a start begins with, and the sums over them.

    Of few rows they are seeds. Of many they are the clusters of the best of some short runs, from
    seeds, on one sample of the rows: where rows lie nearly as far from their mean as from each
    other, single rows say little, and many seeds end in poor clusterings. The rounds that this
    saves cost more than the runs.
    """
    n = len(rows.weight)
    size = max(_TRIAL_ROWS, 32 * k, min(n // 8, _MOST_TRIAL_ROWS))
    if n >= 4 * size:
        sample, counts = np.unique(_draw(rows.weight, rng.uniform(size=size)), return_counts=True)
        values = rows.values[np.ix_(sample, sample)]
        stocks = Stocks.of_gram(values, counts.astype(np.float64))
        few = _Gram(stocks, values, stocks.weights, rows.definite, 1)
        trials = []
        for _ in range(min(_TRIALS, n // _ROWS_PER_TRIAL)):
            groups, sums = _seed_groups(few, k, rng)
            trials.append(_lloyd(few, groups, sums, 100, 1e-4, broken_off, refine=False))
        best = min(trials, key=lambda trial: trial.cost)
        if best.k == k:
            groups = np.full(n, -1)
            groups[sample] = best.labels
            return groups, rows.sums(groups, k)
    return _seed_groups(rows, k, rng)


def _seed_groups(rows: _Gram, k: int, rng: np.random.RandomState) -> tuple[Labels, FloatArray]:
    chosen = _seeds(rows, k, rng)
    groups = np.full(len(rows.weight), -1)
    groups[chosen] = np.arange(len(chosen))
    return groups, rows.weight[chosen, None] * rows.values[chosen]


def _lloyd(
    rows: _Gram,
    groups: Labels,
    sums: FloatArray,
    max_iter: int,
    tol: float,
    broken_off: threading.Event,
    *,
    refine: bool,
) -> _Start:
    """Send rows to their nearest means and move the means, until nothing moves.

    `groups` say what the means are of, `sums` (k x n) are over them and are overwritten. `refine`:
    if there are rounds left, go on with single moves.
    """
    stocks, k = rows.stocks, len(sums)
    best: _Start | None = None
    cost = np.inf
    seen: set[int] = set()
    means = rows.means(groups, k, sums)
    for n_iter in range(1, max_iter + 1):
        labels = means.nearest(sums)
        labels, reseeded = _fill_empty(rows, means, sums, labels)
        still = not reseeded and np.array_equal(labels, groups)
        if not still:
            sums = rows.moved_sums(sums, groups, labels)
        means = rows.means(labels, k, sums)
        before, cost = cost, stocks.cost(means.weight, means.stocks)
        if not np.isfinite(cost):
            raise ValueError(_OVERFLOW)
        found = _Start(groups, labels, k, cost, n_iter)
        groups = labels
        if reseeded:
            continue
        if best is None or cost < best.cost or (still and cost <= best.cost):
            best = found
        if still or broken_off.is_set():
            break
        if rows.definite:
            if before - cost <= tol * abs(cost):
                break
        elif (mark := hash(labels.tobytes())) in seen:
            break
        else:
            seen.add(mark)
    if best is None:  # every round gave a row to an empty cluster
        labels = means.nearest(sums)
        means = rows.means(labels, k, rows.moved_sums(sums, groups, labels))
        best = _Start(groups, labels, k, stocks.cost(means.weight, means.stocks), n_iter)
    elif refine and n_iter < max_iter:
        labels, cost = _single_moves(rows, groups, sums, means, broken_off)
        if cost < best.cost:
            best = _Start(labels, labels, k, cost, n_iter)
    return replace(best, n_iter=n_iter)


def _single_moves(
    rows: _Gram, labels: Labels, sums: FloatArray, means: Means, broken_off: threading.Event
) -> tuple[Labels, float]:
    """Move single rows, the best first, while that lowers the cost (Hartigan's rule).

    A row of weight w at squared distance D_a from the mean of its cluster a, of weight W_a, changes
    the cost by w D_b W_b / (W_b + w) - w D_a W_a / (W_a - w) when it moves to b. So rows also move
    that are a little nearer to the mean of a than to b's; where none does, each row is nearest to
    its own. The moved rows are few, a move costs O(n k), and `sums` (k x n) are overwritten.
    """
    stocks, weight, (k, n) = rows.stocks, rows.weight, sums.shape
    labels, total, own_stocks = labels.copy(), means.weight.copy(), means.stocks.copy()
    into, adds = np.full((k, n), np.inf), np.empty(n)

    def measure(label: int) -> None:
        """Fill in what rows would add to the cost of the cluster, or add as rows of it."""
        size = total[label]
        apart = sums[label] * (-2.0 / size)
        apart += own_stocks[label] / (size * size)
        apart += stocks.diagonal
        into[label] = weight * apart * size / (size + weight)
        inside = np.flatnonzero(labels == label)
        rest = size - weight[inside]
        alone = rest <= ROUNDING * size
        saved = weight[inside] * apart[inside] * size / np.where(alone, 1.0, rest)
        adds[inside] = np.where(alone, -np.inf, saved)
        into[label, inside] = np.inf

    for label in np.flatnonzero(total > 0).tolist():
        measure(label)
    least = ROUNDING * max(abs(stocks.trace), abs(stocks.cost(total, own_stocks)))
    for _ in range(n):
        change = into.min(axis=0) - adds
        row = int(change.argmin())
        if not change[row] < -least or broken_off.is_set():
            break
        before, after = int(labels[row]), int(into[:, row].argmin())
        labels[row] = after
        for label, sign in ((before, -1.0), (after, 1.0)):
            w = sign * weight[row]
            own_stocks[label] += 2.0 * w * sums[label, row] + w * w * stocks.diagonal[row]
            sums[label] += w * rows.values[row]
            total[label] += w
        measure(before)
        measure(after)
    own = rows.means(labels, k, sums)
    return labels, stocks.cost(own.weight, own.stocks)


def _settled(rows: _Gram, start: _Start) -> Clustering:
    """Compute the sums of the winning start anew, so that what rounding moved does not show."""
    stocks, k = rows.stocks, start.k
    sums = rows.sums(start.groups, k)
    means = rows.means(start.groups, k, sums)
    labels = means.nearest(sums)
    own = rows.means(labels, k, rows.moved_sums(sums, start.groups, labels))
    cost = stocks.cost(own.weight, own.stocks)
    labels, means = _compact(labels, means)
    return Clustering(labels, cost, start.n_iter, means)


def _fill_empty(rows: _Gram, means: Means, sums: FloatArray, labels: Labels) -> tuple[Labels, bool]:
    """Give each cluster without rows the row that is served worst, weight times distance."""
    k, n = sums.shape
    counts = np.bincount(labels, minlength=k)
    empty = np.flatnonzero(counts == 0)
    if not len(empty):
        return labels, False
    weight = means.weight[labels]
    norms = means.stocks[labels] / (weight * weight)
    apart = sums[labels, np.arange(n)] * (-2.0 / weight)
    apart += norms
    apart += rows.stocks.diagonal
    served = rows.weight * apart
    served[apart <= ROUNDING * (np.abs(norms) + np.abs(rows.stocks.diagonal))] = 0.0
    reseeded = False
    order = np.argsort(-served, kind="stable")
    place = 0
    for label in empty:
        while place < n and counts[labels[order[place]]] == 1:
            place += 1
        if place == n or served[order[place]] <= 0:
            break
        row = order[place]
        counts[labels[row]] -= 1
        counts[label] = 1
        labels[row] = label
        reseeded = True
        place += 1
    return labels, reseeded


def _seeds(rows: _Gram, k: int, rng: np.random.RandomState) -> npt.NDArray[np.int64]:
    """Draw the rows to start from by greedy k-means++ in the feature space.

    Fewer than k if the kernel tells no more rows apart.
    """
    weight, n = rows.weight, len(rows.weight)
    n_trials = 2 + int(np.log(k))
    chosen = [int(_draw(weight, rng.uniform(size=1))[0])]
    closest = rows.squared_from(chosen[0])
    while len(chosen) < k:
        mass = weight * closest
        if not mass.any():
            if rows.definite:
                break
            # Rows at no distance may still be of different clusters.
            mass = weight.copy()
            mass[chosen] = 0.0
        trials = _draw(mass, rng.uniform(size=n_trials))
        distances = np.minimum(closest, rows.squared_from(trials))
        best = int((distances @ weight).argmin())
        chosen.append(int(trials[best]))
        closest = distances[best]
        closest[chosen] = 0.0
    assert len(chosen) <= n
    return np.array(chosen)


def _draw(mass: FloatArray, shares: FloatArray) -> npt.NDArray[np.int64]:
    """Give the rows at some shares, in [0, 1), of the mass; none has mass 0."""
    cumulative = np.cumsum(mass)
    last = int(np.flatnonzero(mass)[-1])
    found = np.searchsorted(cumulative, shares * cumulative[-1], side="right")
    return np.asarray(np.minimum(found, last), dtype=np.int64)


def _is_indefinite(stocks: Stocks, seed: int) -> bool:
    """Whether the kernel is seen not to be positive semidefinite on differences of rows."""
    kernel = stocks.kernel
    if kernel is not None:
        if kernel.name == "epsilon":
            return True
        if kernel.name in _DEFINITE:
            return False
        if kernel.name == "polynomial" and kernel.coef0 >= 0 and kernel.degree.is_integer():
            return False
    gram = stocks.gram
    assert gram is not None
    n = len(gram)
    chosen = np.arange(n)
    if n > _SAMPLE:
        chosen = np.sort(np.random.RandomState(seed).choice(n, _SAMPLE, replace=False))
    sample = gram[np.ix_(chosen, chosen)]
    # Only distances count: k(x, y) + f(x) + f(y) gives the same ones for every f.
    rounding = len(sample) * np.finfo(np.float64).eps * np.abs(sample).max()
    sample -= sample.mean(axis=0)
    sample -= sample.mean(axis=1)[:, None]
    values = np.linalg.eigvalsh(sample)
    return bool(values[0] < -max(_INDEFINITE * np.abs(values).max(), rounding))


def _tells_all_apart(stocks: Stocks) -> bool:
    """Whether the kernel of any two rows is 0; mostly the first row of its matrix says no."""
    return stocks.gram is not None and all(
        np.count_nonzero(row) == np.count_nonzero(row[i]) for i, row in enumerate(stocks.gram)
    )


def _warn_arbitrary(kernel: Kernel | None) -> None:
    what, advice = "The kernel matrix", ""
    if kernel is not None:
        what = f"The kernel {kernel.label!r}"
        if kernel.gamma is not None:
            advice = f' Try a smaller gamma (it is {kernel.gamma:.3g}) or scale="standard".'
    warnings.warn(
        f"{what} is 0 for any two rows: it sees no two that are alike, and the clusters are "
        f"arbitrary.{advice}",
        UserWarning,
        stacklevel=4,
    )


def _warn_indefinite(kernel: Kernel | None) -> None:
    what = "The kernel matrix" if kernel is None else f"The kernel {kernel.label!r}"
    warnings.warn(
        f"{what} is not positive semidefinite: the cost may rise between rounds of kernel k-means, "
        "and the best partition seen is taken.",
        UserWarning,
        stacklevel=5,
    )
