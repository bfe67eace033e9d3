"""Trees of bisectors: the Voronoi cells of given centers as oblique trees."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.linalg import svd
from scipy.optimize import linprog

from .._base import EXPLAINING, Constraints, FitRows, Growth
from .._data import Table, Units
from .._engine import ObliqueArrays, TestArrays
from .._reference.centers import Criterion
from .._reference.kmeans import Reference
from .._util import FloatArray, IntArray, estimator
from ..tree import LEAF, OBLIQUE, GrownTree
from .centers_tree import CentersTree, labelled_tree

MAX_EXACT_CLUSTERS = 16
"""Largest number of clusters of an exact tree, which may have 2^(k - 1) leaves."""

# A part of the space counts as empty if no ball of this radius fits in it, as a share of the
# distance of the centers farthest apart.
_MIN_RADIUS = 1e-9


@dataclass
class _Node:
    """A node under construction: its candidate centers and the tests on the path to it."""

    alive: list[int]
    rows: IntArray
    path: list[tuple[int, int, bool]]
    """(i, j, is_left): is_left where i is nearer than j."""
    test: tuple[int, int] | None = None
    left: int = -1


@estimator
class VoronoiTree(CentersTree):
    """Explain a k-means clustering by bisectors of its centers.

    A test ``d_i < d_j`` tells which of two centers is nearer. It is linear in the columns, so a
    tree of such tests is an oblique tree. The exact tree gives every point of the space its nearest
    center; the small tree has one leaf per center.

    Parameters
    ----------
    %(n_clusters)s
    exact : bool, default=True
        True: the tree compares the centers one by one and leaves out tests whose outcome is known;
        at most 16 clusters. False: one leaf per cluster; at each node the bisector is taken that
        separates the fewest rows from their center.
    reference : None, estimator or array, default=None
        What the tree explains. None: scikit-learn's KMeans (best of 10 starts). A fitted estimator:
        its `labels_` (or `predict`) and `cluster_centers_`; an unfitted one is cloned and fitted to
        X, without `scale`. A 2-D array: centers in the columns of X. A 1-D array: a label per row,
        integers or strings, whose means are the centers; -1 marks noise, which is left out of the
        fit.
    %(scale)s
    %(reference_seed)s
    verbose : int, default=0
        Whether to print a line at the end.

    Attributes
    ----------
    %(mean_attributes)s
    cost_path_ : polars.DataFrame
        `cost`, the surrogate about the reference's centers, and `inertia`, that about the tree's
        own: one line, there is one tree.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the surrogate cost: of a test, by the squares of its
        weights in units of the columns' scale.
    %(columns_in)s

    Raises
    ------
    ValueError
        By `fit`: see there; and for an exact tree of more than 16 clusters.

    See Also
    --------
    ExKMC : Thresholds on single columns: coarser, easier to read.

    Notes
    -----
    The exact tree has depth k - 1 and at most 2^(k - 1) leaves. Whether a test can go both ways
    within a part of the space is decided by linear programs in the subspace of the centers; none is
    needed where the centers are affinely independent, since then all tests can. Where two centers
    are equally near, rounding decides. Far from the origin of a column its weighted sums lose
    digits.

    References
    ----------
    Gabidolla, Carreira-Perpiñán (2022). Optimal Interpretable Clustering Using Oblique Decision
    Trees. Section 4, equation (1).

    Examples
    --------
    >>> import numpy as np, treeclust_rs as tc
    >>> centers = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    >>> X = np.array([[1.0, 0.5], [3.0, 1.0], [0.5, 3.0], [3.0, 3.5]])
    >>> model = tc.VoronoiTree(reference=centers).fit(X)
    >>> model.labels_, model.n_leaves_
    (array([0, 1, 2, 2]), 4)
    """

    _parameter_constraints: ClassVar[Constraints] = {**EXPLAINING, "exact": ["boolean"]}
    _takes_oblique = True
    _lost_advice = "ExKMC with more leaves may give them rows."

    n_clusters: int | None = None
    _: KW_ONLY
    exact: bool = True
    reference: Any = None

    @property
    def criterion(self) -> Criterion:  # type: ignore[override]
        """Squared Euclidean distances, whose bisectors are planes."""
        return "kmeans"

    def _growth(self, n_clusters: int) -> Growth:
        if self.exact and n_clusters > MAX_EXACT_CLUSTERS:
            raise ValueError(
                f"An exact tree of n_clusters={n_clusters} may have 2^{n_clusters - 1} leaves; the "
                f"limit is {MAX_EXACT_CLUSTERS} clusters. exact=False has one leaf per cluster."
            )
        return Growth(base="imm")  # as for IMM, equal centers are refused

    def _grow(
        self,
        fit_rows: FitRows[Table],
        reference: Reference,
        growth: Growth,  # noqa: ARG002
    ) -> GrownTree:
        centers = reference.centers.in_units
        if self.exact:
            nodes = _exact_tree(centers)
        else:
            nodes = _small_tree(centers, reference.regrets, reference.labels, fit_rows.weight)
        tests, oblique = _tests(nodes, centers, fit_rows.units)
        own = np.array([node.alive[0] if node.test is None else -1 for node in nodes])
        return labelled_tree(fit_rows, reference, tests, oblique, own)


# ---- the trees ----------------------------------------------------------------------------


def _children(nodes: list[_Node], node: _Node, i: int, j: int, left: Any, right: Any) -> None:
    """Split a node by whether i is nearer than j; `left`, `right`: (alive, rows)."""
    node.test, node.left = (i, j), len(nodes)
    for (alive, rows), is_left in ((left, True), (right, False)):
        nodes.append(_Node(alive, rows, [*node.path, (i, j, is_left)]))


def _exact_tree(centers: FloatArray) -> list[_Node]:
    """Return the tree that compares the nearest center so far with each of the others in turn."""
    k = len(centers)
    nothing = np.empty(0, dtype=np.int64)
    nodes = [_Node(list(range(k)), nothing, [])]
    # Only the part of a point in the span of the centers' differences matters.
    moved = centers - centers.mean(axis=0)
    _, sizes, basis = svd(moved, full_matrices=False)
    rank = int((sizes > 1e-12 * max(sizes[0], np.finfo(float).tiny)).sum()) if k > 1 else 0
    points = moved @ basis[:rank].T
    for node in nodes:  # grows while it is walked
        # The first candidate is the nearest so far.
        while len(node.alive) > 1:
            i, j = node.alive[:2]
            possible = [True, True]
            if rank < k - 1:  # else every outcome is possible
                paths = [[*node.path, (i, j, is_left)] for is_left in (True, False)]
                possible = [_is_possible(points, path) for path in paths]
            rest = node.alive[2:]
            if all(possible):
                _children(nodes, node, i, j, ([i, *rest], nothing), ([j, *rest], nothing))
                break
            node.alive = [i if possible[0] else j, *rest]
    return nodes


def _is_possible(points: FloatArray, path: list[tuple[int, int, bool]]) -> bool:
    """Whether a ball fits into the part of the space that a path leads to."""
    normals, offsets = [], []
    for i, j, is_left in path:
        normal = 2.0 * (points[j] - points[i])
        offset = points[i] @ points[i] - points[j] @ points[j]
        sign = 1.0 if is_left else -1.0
        length = np.sqrt(normal @ normal)
        normals.append(sign * normal / length)
        offsets.append(sign * offset / length)
    reach = float(np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2)).max())
    d = points.shape[1]
    # Largest radius r with normal.x + offset <= -r.
    found = linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.column_stack([np.array(normals), np.ones(len(normals))]),
        b_ub=-np.array(offsets),
        bounds=[(None, None)] * d + [(None, reach)],
        method="highs",
    )
    return bool(found.status == 0 and found.x[-1] > _MIN_RADIUS * reach)


def _small_tree(
    centers: FloatArray, regrets: FloatArray, labels: npt.NDArray[Any], weight: FloatArray | None
) -> list[_Node]:
    """Split the centers by the bisector with the fewest mistakes until each is alone."""
    n, k = regrets.shape
    weights = np.ones(n) if weight is None else weight
    apart = ((centers[:, None] - centers[None]) ** 2).sum(axis=2)
    nodes = [_Node(list(range(k)), np.arange(n), [])]
    for node in nodes:  # grows while it is walked
        if len(node.alive) == 1:
            continue
        alive = np.array(node.alive)
        # Only rows whose center is among the candidates count.
        own = node.rows[np.isin(labels[node.rows], alive)]
        candidates = []
        for place, i in enumerate(alive):
            for j in alive[place + 1 :]:
                center_left = apart[:, i] < apart[:, j]
                row_left = regrets[own, i] < regrets[own, j]
                mistakes = weights[own][row_left != center_left[labels[own]]].sum()
                unequal = abs(2 * int(center_left[alive].sum()) - len(alive))
                candidates.append((float(mistakes), unequal, int(i), int(j)))
        _, _, i, j = min(candidates)
        center_left = apart[alive, i] < apart[alive, j]
        row_left = regrets[node.rows, i] < regrets[node.rows, j]
        left = (alive[center_left].tolist(), node.rows[row_left])
        right = (alive[~center_left].tolist(), node.rows[~row_left])
        _children(nodes, node, i, j, left, right)
    return nodes


# ---- arrays -------------------------------------------------------------------------------


def _tests(
    nodes: list[_Node], centers: FloatArray, units: Units
) -> tuple[TestArrays, ObliqueArrays | None]:
    """Return the arrays of the tests, which are of the columns in their own units."""
    n = len(nodes)
    split = np.array([node.test is not None for node in nodes])
    left = np.array([node.left for node in nodes], dtype=np.int64)
    not_a_number = np.full(n, np.nan)
    indptr = np.zeros(n + 1, dtype=np.int64)
    bias = np.full(n, np.nan)
    indices, weights = [], []
    for number, node in enumerate(nodes):
        if node.test is not None:
            i, j = node.test
            # (2 x - c_i - c_j) . (c_j - c_i) is below 0 where i is nearer: equation (1).
            normal = centers[j] - centers[i]
            middle = (centers[i] + centers[j]) / 2.0 * units.scale + units.shift
            normal = normal / units.scale
            used = np.flatnonzero(normal)
            indices.append(used)
            weights.append(normal[used])
            bias[number] = -float(normal @ middle)
        indptr[number + 1] = indptr[number] + (len(indices[-1]) if node.test is not None else 0)
    oblique = ObliqueArrays(
        indptr,
        np.concatenate([*indices, np.empty(0, dtype=np.int64)]),
        np.concatenate([*weights, np.empty(0)]),
        bias,
    )
    tests = TestArrays(
        kind=np.where(split, OBLIQUE, LEAF).astype(np.int8),
        feature=np.full(n, -2, dtype=np.int64),
        threshold=np.where(split, np.nan, -2.0),
        lower=not_a_number,
        upper=not_a_number,
        children_left=left,
        children_right=np.where(split, left + 1, -1),
    )
    return tests, oblique if split.any() else None
