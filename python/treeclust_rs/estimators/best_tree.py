"""BestTree: the best threshold tree of at most so many leaves."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
from scipy.optimize import linear_sum_assignment
from sklearn.utils import check_random_state

from .. import _engine
from .._base import (
    EXPLAINING,
    LIMITS,
    Constraints,
    FitRows,
    Growth,
    Limits,
    most_leaves,
)
from .._data import SparseTable, Table, sums_by_group
from .._reference.centers import Centers, Criterion, mismatch_costs
from .._reference.kmeans import Reference
from .._util import FloatArray, IntArray, Interval, StrOptions, estimator, format_count
from ..tree import GrownTree, add_up, order_by_gain, reordered_tests, tests_of
from .centers_tree import CentersTree, routed
from .given_tree import is_tree
from .starts import Start, Starts

MOVES = ("start", "refine", "recreate", "sample", "shake", "transfer", "swap", "perturb", "cross")
"""What made a tree better, by the codes of the core."""

RESTARTS = (*("random rows",) * 3, "sampled columns")
"""What the core's own starts are, in turn."""


@dataclass(frozen=True)
class _Effort:
    """How long and how widely the search goes."""

    n_restarts: int
    n_survivors: int
    patience: int
    drift: float
    work_per_cell: float
    """Cells that may be looked at, over rows x columns x clusters of the table."""
    least_work: float
    """So many cells may be looked at in any case."""

    def work(self, n_cells: int, n_clusters: int, *, has_levels: bool) -> int:
        """Return how many cells the search may look at in a table of `n_cells`."""
        work = self.work_per_cell * n_cells * n_clusters
        if has_levels:
            work *= max(1.0, n_clusters / _MANY_CLUSTERS)
        return int(max(self.least_work, work))

    def survivors(self, n_cells: int, n_clusters: int, *, has_levels: bool) -> int:
        """Return how many starts may go on: fewer where the work is not enough for many."""
        looks = _LOOKS_AT_LEVELS_PER_SURVIVOR if has_levels else _LOOKS_PER_SURVIVOR
        most = self.work(n_cells, n_clusters, has_levels=has_levels) // (looks * n_cells)
        return max(1, min(self.n_survivors, most))


_EFFORTS = {
    "quick": _Effort(0, 1, 16, 0.0, 20, 3e7),
    "normal": _Effort(8, 16, 300, 3e-3, 220, 5.5e8),
    "thorough": _Effort(48, 32, 400, 3e-3, 2_000, 1.2e10),
}
"""Each begins with what those before it have found."""
_N_REFERENCES = 4
"""Other runs of k-means that effort="thorough" grows trees for."""
_BATCH = 4
_LOOKS_PER_SURVIVOR = 500
"""A start goes on if there is work to look at the whole table so many times, for each of them."""
_LOOKS_AT_LEVELS_PER_SURVIVOR = 2_000
"""The same of tables with levels: few columns of many cuts, of which screening leaves out less."""
_REACH, _REACH_OF_LEVELS = math.inf, 8.0
"""A change moves the thresholds of the nodes above it that have at most so many times its rows: of
tables with levels, for which that is a larger part of the work, not of all."""
_ROUNDS_TO_REFINE, _ROUNDS_TO_REFINE_LEVELS = 16, 40
"""After so many rounds in vain all thresholds are moved; of tables with levels less often."""
_MANY_CLUSTERS = 10
"""Tables with levels and more clusters are given more work, by the square of the clusters: with
that of numbers a single start would go on, from which every seed may end in the same dear tree."""


@estimator
class BestTree(CentersTree):
    """Find the best threshold tree of at most `max_leaves` leaves.

    Other trees are grown from the root down and never look back. Here they are starts: thresholds
    are moved, subtrees taken out and grown anew, as long as that lowers the cost of the tree's
    clusters about their own means. The tree is never worse than the best of its starts.

    Parameters
    ----------
    %(n_clusters)s
    max_leaves : int, inf or None, default=None
        Most leaves, at least `n_clusters`; None means `n_clusters`, ``math.inf`` no limit.
    objective : {"kmeans", "kmedians", "labels"}, default="kmeans"
        What the tree makes small: the squared distances of the rows to the means of their
        clusters, the l1 distances to their medians, or the weight of the rows that are not in their
        cluster of the reference.
    effort : {"quick", "normal", "thorough"}, default="normal"
        How many starts there are, and after how many attempts in vain the search ends.
    max_time : float or None, default=None
        Seconds after which the search ends; starts and the reference do not count. With a limit two
        runs may find different trees.
    init : ClusterTree, estimator with such a tree or None, default=None
        One more start: a tree of thresholds, of ours or scikit-learn's, on the same columns.
    max_depth : int or None, default=None
        Deepest level of leaves.
    min_samples_leaf : int, default=1
        Fewest rows in a leaf.
    %(explaining_attributes)s
    search_path_ : polars.DataFrame
        Every step that made the tree better: `round`, `move`, `objective`, `n_leaves`. The moves
        are under Notes.
    start_ : str
        The start that the tree comes from.
    starts_ : polars.DataFrame
        The starts: `start`, its `objective` within the limits, and `refined`, with its thresholds
        moved.
    cost_path_ : polars.DataFrame
        By number of leaves `cost`, the surrogate about the whole tree's means, which never rises,
        and `inertia`, that about the smaller trees' own.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each column in the decrease of the surrogate cost.
    %(columns_in_and_value_error)s

    See Also
    --------
    ExKMC : The quickest start.
    ObliqueTree : ``splits="axis"`` moves the thresholds of a tree, and no more.

    References
    ----------
    Carreira-Perpinan, Tavallali (2018). Alternating Optimization of Decision Trees, with
    Application to Learning Sparse Oblique Trees. (Moving the tests of a tree.)

    Schrimpf, Schneider, Stamm-Wilbrandt, Dueck (2000). Record Breaking Optimization Results Using
    the Ruin and Recreate Principle. (Taking out subtrees and growing them anew.)

    Notes
    -----
    Starts are trees of KMeansTree and ExKMC, with IMM's tree below it and without; from
    ``effort="normal"`` on of KernelExpand, ExGreedy, ExShallow, RandomCuts, KDTreeClusters, Kauri,
    CUBT (without its pruning) and XRegressionTree too, trees grown about random rows, and what
    ``effort="quick"`` finds; with ``effort="thorough"`` KMeansTree and ExKMC for four other runs of
    k-means or k-medians besides, and what ``effort="normal"`` finds: more effort never costs more.
    CUBT, Kauri and XRegressionTree take n d^2 log2(max_leaves) steps: they are left out where these
    are more than the search may look at cells, the larger of 550 million and 220 n d k
    (``effort="normal"``; of tables with levels and more than 10 clusters 22 n d k^2). For
    ``objective="labels"`` starts are those of KMeansTree and KernelExpand. Where cells are missing,
    or columns hold levels, trees whose growth takes no such table are grown on the table with gaps
    at the means and a column of 0 and 1 for each level; not where these are more than 8 for each
    column. Tables with levels have no start of ExShallow.

    Missing cells are not filled: what is made small counts the observed ones. Where rows with a
    missing cell reach a node, every cut is tried with them on either side, and missing cells
    against all others. Sets of levels are exact.

    Each start is refined ("refine"): test by test, from the leaves up, the best threshold is taken,
    with the clusters' means in between. The best go on, in stages of equal work that half of them
    leave: a subtree is taken out and grown anew, by all columns ("recreate"), by some, in half of
    the cases with one level against the rest ("sample"), or after a random cut ("shake"), or with
    one leaf less, which is added elsewhere ("transfer"); a test is drawn anew ("perturb"), a split
    and the one below it exchange their tests ("swap"), or a subtree comes from another of these
    trees ("cross").
    Changes are drawn in batches, by seeds of their own: the tree is the same for every number of
    threads. Memory beside the table: 10 n d bytes and 8 n k a thread; for k-medians up to 24 n d a
    thread more. With gaps or levels starts take 17 n d more, a column of levels counting as one a
    level.

    Sparse rows are never made dense: the search looks at their stored cells, which is also what its
    work is counted in. All of its moves are the same; starts are those of KMeansTree, ExKMC and
    KernelExpand, of random rows and of sampled columns, as the other methods compare the cells of a
    table. With ``effort="quick"`` the starts are those
    of the same rows dense, and mostly the tree is too; rounding may part the ways of the two
    searches.
    Memory beside the rows: about 40 bytes a stored cell, 8 n k a thread and 8 d for every leaf of
    a tree, for k-medians 40 d and 24 a stored cell.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import treeclust_rs as tc
    >>> model = tc.BestTree(n_clusters=3, max_leaves=4, random_state=0).fit(load_iris().data)
    >>> model.n_leaves_, model.cost_ratio_ < 1.02
    (4, True)
    """

    _takes_missing: ClassVar[bool] = True
    _takes_sparse: ClassVar[bool] = True
    _from_rows: ClassVar[tuple[str, ...]] = (
        *CentersTree._from_rows,
        "start_",
        "starts_",
        "search_path_",
    )
    _parameter_constraints: ClassVar[Constraints] = {
        **EXPLAINING,
        **LIMITS,
        "objective": [StrOptions({"kmeans", "kmedians", "labels"})],
        "effort": [StrOptions(set(_EFFORTS))],
        "max_time": [Interval(Real, 0, None, closed="left"), None],
        "init": "no_validation",  # type: ignore[dict-item]
    }

    n_clusters: int | None = None
    _: KW_ONLY
    max_leaves: int | float | None = None
    objective: Literal["kmeans", "kmedians", "labels"] = "kmeans"
    effort: Literal["quick", "normal", "thorough"] = "normal"
    max_time: float | None = None
    max_depth: int | None = None
    min_samples_leaf: int = 1
    reference: Any = None
    init: Any = None

    @property
    def criterion(self) -> Criterion:  # type: ignore[override]
        """What measures the tree's clusters: l1 distances, or squared Euclidean ones."""
        return "kmedians" if self.objective == "kmedians" else "kmeans"

    @property
    def _by_labels(self) -> bool:
        return self.objective == "labels"

    def _growth(self, n_clusters: int) -> Growth:
        limits = Limits.of(self)
        limits.check(n_clusters, self.n_clusters is None and self.reference is None)
        if self.init is not None and not is_tree(self.init):
            raise ValueError(
                "The 'init' parameter of BestTree must be a fitted estimator of this package, a "
                f"ClusterTree or a tree of scikit-learn. Got {self.init!r} instead."
            )
        if self.objective == "labels":
            return Growth(None, criterion="gini", limits=limits)
        return Growth("imm", limits=limits)

    def _grow(self, fit_rows: FitRows[Any], reference: Reference, growth: Growth) -> GrownTree:
        k, by_labels = reference.n_clusters, self.objective == "labels"
        points = None if by_labels else _points(fit_rows)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        begin = Starts(fit_rows, reference, growth.limits, points, self.criterion, seed)
        starts = [] if self.init is None else [begin.given(self.init)]
        rows = fit_rows.rows
        n_cells, work, spent = _n_cells(rows), 0, 0.0
        has_levels = rows.levels is not None
        for name, effort in _EFFORTS.items():
            before, work = work, effort.work(n_cells, k, has_levels=has_levels)
            if name == "quick":
                starts += begin.quick()
            elif not by_labels:
                starts += (
                    begin.others(work)
                    if name == "normal"
                    else begin.of_other_references(_N_REFERENCES)
                )
            began = time.perf_counter()
            found = _engine.search_tree(
                rows.data,
                objective=self.objective,
                z=points,
                scale=fit_rows.units.scale,
                labels=reference.labels if by_labels else None,
                sample_weight=fit_rows.weight,
                n_clusters=k,
                starts=[
                    (_engine.Router(start.tests, rows.n_features), start.cluster)
                    for start in starts
                ],
                max_leaves=most_leaves(growth.limits.max_leaves, k, rows.n_samples),
                max_depth=growth.limits.max_depth,
                min_samples_leaf=growth.limits.min_samples_leaf,
                n_restarts=effort.n_restarts,
                n_survivors=effort.survivors(n_cells, k, has_levels=has_levels),
                batch=_BATCH,
                drift=effort.drift,
                aim=None if rows.is_plain or by_labels else reference.inertia,
                reach=_REACH_OF_LEVELS if has_levels else _REACH,
                rounds_to_refine=_ROUNDS_TO_REFINE_LEVELS if has_levels else _ROUNDS_TO_REFINE,
                patience=effort.patience,
                max_work=work - before,
                max_time=None if self.max_time is None else max(self.max_time - spent, 0.0),
                seed=seed,
                n_jobs=fit_rows.threads,
                progress=self._progress(fit_rows, reference, name),
            )
            if name == self.effort:
                break
            spent += time.perf_counter() - began
            starts.append(Start(f'effort="{name}"', tests_of(found), found.cluster))
        names = [start.name for start in starts]
        restarts = range(len(found.start_objectives) - len(names))
        names += [RESTARTS[restart % len(RESTARTS)] for restart in restarts]
        return _searched(fit_rows, reference, found, names, None if by_labels else self.criterion)

    def _progress(
        self, fit_rows: FitRows[Any], reference: Reference, effort: str
    ) -> Callable[[int, float], None] | None:
        """Return what prints rounds and the lowest cost so far; None without `verbose`."""
        tell = fit_rows.tell(self.verbose)
        if tell is None:
            return None

        def show(n_rounds: int, lowest: float) -> None:
            rounds = format_count(n_rounds, "round")
            if n_rounds == 0:
                tell(f"starts grown, {effort} search begins")
            elif self.objective == "labels":
                tell(f"{rounds}, {lowest:.6g} of another label")
            elif reference.inertia > 0:
                tell(f"{rounds}, {lowest / reference.inertia:.4f} of the cost of the reference")

        return show

    def _warn_of_y(self, y: Any) -> None:
        if y is not None and self.reference is None and self.objective == "labels":
            warnings.warn(
                'fit does not look at y: objective="labels" explains the labels given as '
                "reference=, or those of k-means.",
                UserWarning,
                stacklevel=3,
            )

    def _keep(self, grown: GrownTree) -> None:
        assert isinstance(grown, _SearchedTree)
        self.search_path_, self.starts_ = grown.search_path, grown.starts
        self.start_ = grown.start


@dataclass(frozen=True)
class _SearchedTree(GrownTree):
    """A tree with what happened on the way to it."""

    search_path: pl.DataFrame = field(default_factory=pl.DataFrame)
    starts: pl.DataFrame = field(default_factory=pl.DataFrame)
    start: str = ""


def _n_cells(rows: Table | SparseTable) -> int:
    """Return how many cells a look at all rows takes: of sparse rows one more than they store."""
    if isinstance(rows, SparseTable):
        return len(rows.values) + rows.n_samples
    return rows.n_samples * rows.n_features


def _points(fit_rows: FitRows[Table] | FitRows[SparseTable]) -> Any:
    """Return the rows in units as the core takes them."""
    rows = fit_rows.rows
    if isinstance(rows, Table):
        return fit_rows.units.matrix(rows)
    matrix = fit_rows.units.sparse_matrix(rows)
    return rows.indptr, rows.indices, matrix.data, rows.n_features


def _searched(
    fit_rows: FitRows[Any],
    reference: Reference,
    found: _engine.SearchedTree,
    names: list[str],
    criterion: Criterion | None,
) -> _SearchedTree:
    """Count the rows of a fit in the tree that was found, its splits in the order of their gains.

    `criterion`: what measures the clusters that the search has made; they get the names of the
    reference's clusters with which they share most weight. None: the clusters are the reference's.
    """
    tests, k = tests_of(found), reference.n_clusters
    leaf_of_row = routed(fit_rows, tests)
    cluster = found.cluster
    if criterion is not None:
        cluster = _named(cluster, leaf_of_row, reference, fit_rows.weight)
    labels = cluster[leaf_of_row]
    if criterion is None:
        label_costs = mismatch_costs(reference.labels.astype(np.int64), k, fit_rows.weight)
    else:
        space = fit_rows.units if fit_rows.rows.levels is None else fit_rows.encoding
        if criterion == "kmeans":
            means = fit_rows.encoded_means(labels.astype(np.uint32), reference.centers.high)
            label_costs = fit_rows.label_costs(space.of_points(means.means) + means.rest)
        else:
            medians = Centers.of_labels(fit_rows, labels, k, criterion).high
            medians = np.where(np.isnan(medians), reference.centers.high, medians)
            label_costs = fit_rows.label_costs(space.of_points(medians), manhattan=True)
    costs = sums_by_group(label_costs.regrets, leaf_of_row, len(cluster), fit_rows.threads)
    if criterion is not None:
        costs[:, np.bincount(labels, minlength=k) == 0] = np.inf  # no mean, no rows
    add_up(tests.children_left, costs)
    best = np.where(cluster >= 0, cluster, costs.argmin(axis=1))
    cost = costs[np.arange(len(best)), best]
    old, number = order_by_gain(tests.children_left, cost)
    tests = reordered_tests(tests, old, number)
    path = pl.DataFrame(
        {
            "round": found.path_round,
            "move": [MOVES[code] for code in found.path_move],
            "objective": found.path_objective,
            "n_leaves": found.path_n_leaves,
        }
    )
    starts = {"objective": found.start_objectives, "refined": found.refined_objectives}
    return _SearchedTree.of_rows(
        tests,
        None,
        number[leaf_of_row],
        reference.labels,
        k,
        fit_rows.weight,
        feature_scale=None,
        cost=cost[old],
        cluster=best[old],
        minimum=label_costs.minimum,
        search_path=path,
        starts=pl.DataFrame({"start": names, **starts}),
        start=names[found.start],
    )


def _named(
    cluster: IntArray, leaf_of_row: IntArray, reference: Reference, weight: FloatArray | None
) -> IntArray:
    """Return the leaves' clusters by the numbers of the reference's that they share most with."""
    k = reference.n_clusters
    cells = cluster[leaf_of_row] * k + reference.labels
    shared = np.bincount(cells, weights=weight, minlength=k * k).reshape(k, k)
    _, number = linear_sum_assignment(shared, maximize=True)
    return np.where(cluster >= 0, number[cluster], -1)
