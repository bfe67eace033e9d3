"""Trees of bisectors: the nearest center exactly, or nearly with one leaf per center."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from . import _core
from ._base import effective_n_jobs, leaves_of_all
from ._input import Table, check_finite, check_sample_weight, read_table, take_rows
from ._reference import Units, fitted_rows, make_reference, read_reference
from .oblique import KMEANS_STEPS, ClusteringTree, Prepared, make_tree

__all__ = ["VoronoiTree"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# More centers than this may need more than 2 ** 15 leaves.
_MOST_EXACT = 16
# A cell with no room for a ball of this share of the centers' spread is none.
_ROOM = 1e-9
# Rows that show, without a linear programme, that both sides of a test can be reached.
_WITNESSES = 20_000
# Numbers compared at one node in the search for the best bisector; beyond that some rows stand for
# all.
_MOST_COMPARED = 200_000_000


class VoronoiTree(ClusteringTree):
    """Give each row its nearest center by a tree of bisectors.

    k-means assigns rows to the nearest center, and "nearer to a than to b" is a weighted sum of the
    columns against a bias. The exact tree scans the centers one after the other and keeps the
    nearest so far, with the tests left out that the path to them has settled. The other tree has
    one leaf per center, and tells rows apart less exactly.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters; None means the reference's, or 8 without a reference.
    exact : bool, default=True
        Whether the tree gives every point its nearest center: for up to 16 centers, with up to
        2 ** (n_clusters - 1) leaves. Else each node splits the centers left by the bisector of two
        of them, the pair that costs the rows least.
    n_init : int, default=10
        Starts of the reference's k-means.
    reference : None, estimator or array, default=None
        The centers: scikit-learn's KMeans; those of an estimator, which is fitted to X if it is
        not; an array of centers; or the means of an array of labels, -1 marking noise.
    scale : {None, "standard"}, default=None
        "standard": distances on columns divided by their standard deviation; weights stay in the
        columns' own units.
    random_state : int, RandomState or None, default=None
        Seed of the reference.
    n_jobs : int or None, default=None
        Threads. None: all cores, and 1 inside joblib workers. The result does not depend on it.
    verbose : int, default=0
        For the API.

    Attributes
    ----------
    tree_ : ClusterTree
        The tree; print it.
    labels_ : ndarray of shape (n_samples,)
        Cluster of every row, noise included, as the tree predicts it.
    n_leaves_, n_parameters_ : int
        Leaves; weights, biases and leaves.
    classes_ : ndarray of shape (n_clusters,)
        The clusters' labels.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the tree's clusters, in the columns' own units; an empty cluster keeps the
        reference's.
    inertia_ : float
        Cost of the tree's clusters about their own means.
    reference_inertia_ : float
        Cost of the reference's clusters about the reference's centers.
    cost_ratio_ : float
        `inertia_` / `reference_inertia_`.
    scale_ : ndarray of shape (n_features,)
        Units of the columns in costs: their standard deviations, or ones.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X had names.

    Raises
    ------
    ValueError
        By `fit`: see there.

    See Also
    --------
    ObliqueTree : Small trees of sparse tests, fitted together with the clustering.

    Notes
    -----
    Whether a test is settled is found by a linear programme in at most n_clusters - 1 variables,
    unless rows are found on both sides of it. With centers in general position and at least
    n_clusters - 1 columns no test is, and the tree has 2 ** (n_clusters - 1) leaves.

    References
    ----------
    Gabidolla, Carreira-Perpiñán (2022). Optimal Interpretable Clustering Using Oblique Decision
    Trees. KDD. Section 4.

    Examples
    --------
    >>> import numpy as np, treeclust_rs as tc
    >>> centers = np.array([[0.0], [4.0], [10.0]])
    >>> model = tc.VoronoiTree(reference=centers).fit([[0.5], [3.0], [6.5], [9.0]])
    >>> model.labels_, model.n_leaves_
    (array([0, 1, 1, 2]), 3)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "exact": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "reference": "no_validation",  # type: ignore[dict-item]
        "scale": [StrOptions({"standard"}), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    _saved: ClassVar[dict[str, str]] = {
        "cluster_centers_": "k d",
        "scale_": "d",
        "inertia_": "",
        "reference_inertia_": "",
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        exact: bool = True,
        n_init: int = 10,
        reference: Any = None,
        scale: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.exact = exact
        self.n_init = n_init
        self.reference = reference
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: ARG002
        """Settle the centers and build the tree.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            numpy array, polars DataFrame or LazyFrame, pandas DataFrame or pyarrow Table of
            numbers.
        y : ignored
            For the API.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, not negative. Rows of weight 0 are left out.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If X holds NaN, inf or null, n_clusters does not suit the rows or the reference, two
            centers are equal, or an exact tree would have more than 16 centers.
        TypeError
            If a column is not numbers.
        """
        started = time.perf_counter()
        self._validate_params()
        n_jobs = effective_n_jobs(self.n_jobs)
        name = type(self).__name__
        table = read_table(X, estimator_name=name)
        weight = check_sample_weight(sample_weight, table.n_samples)
        check_finite(table, n_jobs)
        given = read_reference(self.reference, X, table, weight)
        if None not in (self.n_clusters, given.n_clusters) and self.n_clusters != given.n_clusters:
            raise ValueError(
                f"n_clusters={self.n_clusters}, but the reference has {given.n_clusters} clusters."
            )
        kept, given, rows, weight = fitted_rows(given, table, weight)
        units = Units(*_core.column_units(rows.data, weight, self.scale == "standard", n_jobs))
        rng = check_random_state(self.random_state)
        reference = make_reference(
            given,
            rows,
            units,
            weight,
            criterion="kmeans",
            n_clusters=self.n_clusters,
            random_state=rng,
            n_jobs=n_jobs,
            estimator_name=name,
            needs_distinct=True,
            n_init=self.n_init,
            max_iter=KMEANS_STEPS,
        )
        centers, k = reference.centers.in_units, reference.n_clusters
        if self.exact and k > _MOST_EXACT:
            raise ValueError(
                f"An exact tree of {k} centers may have 2 ** {k - 1} leaves; at most {_MOST_EXACT} "
                "centers are supported. Use exact=False, or ObliqueTree."
            )
        if self.exact:
            built = _exact_tree(centers, units.matrix(_some(rows, _WITNESSES)))
        else:
            built = _bisector_tree(centers, reference.regrets)
        arrays = built.arrays(centers, units)
        tests: Any = tuple(arrays[name] for name in _TESTS)
        oblique: Any = None
        if len(built.pairs) > 1:
            oblique = tuple(arrays[name] for name in _OBLIQUE)
        leaf_of_row = _core.apply(tests, rows.data, n_jobs, oblique)
        assert leaf_of_row is not None, "the cells were checked"
        labels = arrays["cluster"][leaf_of_row].astype(np.uint32)
        measure: dict[str, Any] = {
            "shift": units.shift,
            "scale": units.scale,
            "cosine": False,
            "labels": labels,
            "sample_weight": weight,
            "n_jobs": n_jobs,
        }
        means = _core.mean_centers(rows.data, None, centers=centers, **measure)
        _, inertia = _core.assign_rows(rows.data, None, centers=means, **measure)
        prepared = Prepared(
            table, kept, rows, weight, units, reference.classes, reference.labels, centers,
            0, n_jobs, started,
        )  # fmt: skip
        sums = _sums_of_nodes(arrays, leaf_of_row, reference.regrets)
        tree = make_tree(arrays | {"leaf_of_row": leaf_of_row, "regrets": sums}, prepared)
        leaves = leaves_of_all(leaf_of_row.astype(np.uint32), kept, tree, table, n_jobs)
        # Nothing is set before everything is known: a fit that fails leaves the estimator as it
        # was.
        self._set_tree(tree)
        self.scale_ = units.scale
        self.inertia_, self.reference_inertia_ = float(inertia), float(reference.inertia)
        self.cluster_centers_ = means * units.scale + units.shift
        self.labels_ = self.classes_[tree.leaf_clusters[leaves]]
        return self


# The arrays of a tree as the core takes them.
_TESTS = (
    "kind", "feature", "threshold", "lower", "upper", "children_left", "children_right",
)  # fmt: skip
_OBLIQUE = ("oblique_indptr", "oblique_indices", "oblique_weights", "oblique_bias")


def _some(rows: Table, most: int) -> Table:
    """Give about as many rows as asked for, at even distances."""
    if rows.n_samples <= most:
        return rows
    mask = np.zeros(rows.n_samples, dtype=bool)
    mask[:: -(-rows.n_samples // most)] = True
    return take_rows(rows, mask)


@dataclass
class _Built:
    """A tree of bisectors, its nodes level by level.

    A test (a, b) sends to the left what is nearer to center a than to center b.
    """

    pairs: list[tuple[int, int] | None] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    """-1 at leaves; the right child follows."""
    center: list[int] = field(default_factory=list)
    """Of leaves; -1 at tests."""

    def add(self) -> int:
        self.pairs.append(None)
        self.left.append(-1)
        self.center.append(-1)
        return len(self.pairs) - 1

    def split(self, node: int, pair: tuple[int, int]) -> tuple[int, int]:
        self.pairs[node] = pair
        self.left[node] = self.add()
        return self.left[node], self.add()

    def arrays(self, centers: FloatArray, units: Units) -> dict[str, npt.NDArray[Any]]:
        """Give the tree's arrays, its tests in the columns' own units."""
        n = len(self.pairs)
        left = np.array(self.left, dtype=np.int64)
        is_leaf = left < 0
        indptr = np.zeros(n + 1, dtype=np.int64)
        bias = np.full(n, np.nan)
        indices, weights = [], []
        for node, pair in enumerate(self.pairs):
            indptr[node + 1] = indptr[node]
            if pair is None:
                continue
            a, b = centers[pair[0]], centers[pair[1]]
            own = (b - a) / units.scale
            used = np.flatnonzero(own)
            indices.append(used)
            weights.append(own[used])
            indptr[node + 1] += len(used)
            bias[node] = -((b - a) @ (a + b)) / 2 - own @ units.shift
        nan = np.full(n, np.nan)
        return {
            "kind": np.where(is_leaf, 0, 3).astype(np.int8),
            "feature": np.full(n, -2, dtype=np.int64),
            "threshold": np.where(is_leaf, -2.0, np.nan),
            "lower": nan,
            "upper": nan,
            "children_left": left,
            "children_right": np.where(is_leaf, -1, left + 1),
            "oblique_indptr": indptr,
            "oblique_indices": np.concatenate([*indices, np.empty(0, dtype=np.int64)]),
            "oblique_weights": np.concatenate([*weights, np.empty(0)]),
            "oblique_bias": bias,
            "cluster": np.array(self.center, dtype=np.int64),
        }


def _exact_tree(centers: FloatArray, rows: FloatArray) -> _Built:
    """Scan the centers in order, leaving out the tests that are settled (section 4, figure 1)."""
    k = len(centers)
    # Only the directions in which centers differ matter.
    middle = centers.mean(axis=0)
    _, spreads, directions = np.linalg.svd(centers - middle, full_matrices=False)
    unit = spreads[0] if k > 1 else 1.0
    directions = directions[spreads > 1e-12 * unit]
    places = (centers - middle) @ directions.T / unit
    points = (rows - middle) @ directions.T / unit
    # Distances to centers in general position can come in any order.
    all_reached = len(directions) == k - 1
    built = _Built()
    # Node, nearest center so far, the center to look at next, bounds of the cell, points in it.
    queue: deque[tuple[int, int, int, list[FloatArray], FloatArray]] = deque()
    queue.append((built.add(), 0, 1, [], points))
    while queue:
        node, best, other, bounds, inside = queue.popleft()
        while other < k:
            halves = [_nearer(places, best, other), _nearer(places, other, best)]
            # Points nearer to the best so far by a margin, and those nearer to the other.
            gaps = inside @ halves[0][:-1] - halves[0][-1]
            sides = [inside[gaps < -_ROOM], inside[gaps > _ROOM]]
            for i, half in enumerate(halves):
                if not all_reached and len(sides[i]) == 0:
                    sides[i] = _point_in([*bounds, half])
            if all_reached or (len(sides[0]) and len(sides[1])):
                children = built.split(node, (best, other))
                for child, nearest, half, side in zip(
                    children, (best, other), halves, sides, strict=True
                ):
                    queue.append((child, nearest, other + 1, [*bounds, half], side))
                break
            if len(sides[1]):
                best = other
            other += 1
        else:
            built.center[node] = best
    return built


def _nearer(places: FloatArray, a: int, b: int) -> FloatArray:
    """Give the half-space of what is nearer to a than to b, as (w, c): w·x <= c, w of length 1."""
    normal = places[b] - places[a]
    length = np.linalg.norm(normal)
    bound = (places[b] @ places[b] - places[a] @ places[a]) / 2
    return np.asarray(np.append(normal, bound) / length)


def _point_in(bounds: list[FloatArray]) -> FloatArray:
    """Give a point with some room in all half-spaces, by a linear programme; none if there is none.

    It is the middle of the largest ball, up to a radius of 1.
    """
    halves = np.array(bounds)
    n = halves.shape[1] - 1
    found = linprog(
        np.append(np.zeros(n), -1.0),
        A_ub=np.column_stack([halves[:, :n], np.ones(len(halves))]),
        b_ub=halves[:, n],
        bounds=[(None, None)] * n + [(None, 1.0)],
        method="highs",
    )
    has_room = found.status == 0 and -found.fun > _ROOM
    return np.asarray(found.x[None, :n]) if has_room else np.empty((0, n))


def _bisector_tree(centers: FloatArray, regrets: FloatArray) -> _Built:
    """Split the centers left by the bisector of two of them until one is left (figure 1, 4-5)."""
    squares = np.stack([((centers - center) ** 2).sum(axis=1) for center in centers])
    built = _Built()
    queue: deque[tuple[int, IntArray, IntArray]] = deque()
    queue.append((built.add(), np.arange(len(centers)), np.arange(len(regrets))))
    while queue:
        node, alive, rows = queue.popleft()
        if len(alive) == 1:
            built.center[node] = int(alive[0])
            continue
        n_pairs = len(alive) * (len(alive) - 1) // 2
        step = max(-(-n_pairs * len(alive) * len(rows) // _MOST_COMPARED), 1)
        seen = regrets[rows[::step]]
        least, chosen = np.inf, (0, 0)
        for i, a in enumerate(alive):
            for b in alive[i + 1 :]:
                nearer = squares[a, alive] < squares[b, alive]
                cost = np.where(
                    seen[:, a] < seen[:, b],
                    seen[:, alive[nearer]].min(axis=1),
                    seen[:, alive[~nearer]].min(axis=1),
                ).sum()
                if cost < least:
                    least, chosen = cost, (int(a), int(b))
        a, b = chosen
        nearer = squares[a, alive] < squares[b, alive]
        goes_left = regrets[rows, a] < regrets[rows, b]
        left, right = built.split(node, chosen)
        queue.append((left, alive[nearer], rows[goes_left]))
        queue.append((right, alive[~nearer], rows[~goes_left]))
    return built


def _sums_of_nodes(
    arrays: dict[str, npt.NDArray[Any]], leaf_of_row: IntArray, regrets: FloatArray
) -> FloatArray:
    """Sum the rows of `regrets` under every node."""
    left = arrays["children_left"]
    n, k = len(left), regrets.shape[1]
    columns = [
        np.bincount(leaf_of_row, weights=regrets[:, label], minlength=n) for label in range(k)
    ]
    sums = np.stack(columns, axis=1).astype(np.float64)
    for node in range(n - 1, -1, -1):  # children come after their parent
        if left[node] >= 0:
            sums[node] += sums[left[node]] + sums[left[node] + 1]
    return sums
