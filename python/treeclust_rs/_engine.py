"""Floor 1: the door to the Rust core, and the only file that imports it.

Every call is typed in and typed out: arrays, numbers and the classes below cross, dicts do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from . import _core
from ._core import Threads
from ._util.arrays import Codes, FloatArray, IntArray

__all__ = [
    "FittedKauri",
    "FittedOblique",
    "FittedTree",
    "GroupSums",
    "InitTree",
    "Jobs",
    "LabelCosts",
    "Measure",
    "NonFinite",
    "ObliqueArrays",
    "Progress",
    "Router",
    "TestArrays",
    "Threads",
    "apply",
    "apply_sparse",
    "assign_rows",
    "column_units",
    "find_non_finite",
    "fit_kauri",
    "fit_oblique",
    "fit_tree",
    "group_sums",
    "label_costs",
    "mean_centers",
    "spherical_kmeans",
]

Jobs = int | Threads
Columns = npt.NDArray[Any] | list[npt.NDArray[Any]]
"""A matrix whose rows are samples, or a list of columns."""
SparseRows = tuple[IntArray, IntArray, FloatArray, int]
"""indptr, indices and values of a matrix in compressed sparse rows, and its number of columns."""
Progress = Callable[[int, float], None]
"""Called with the number of leaves and the last gain."""


class HasUnits(Protocol):
    """Origin and unit of every column."""

    @property
    def shift(self) -> FloatArray:
        """Origins, of shape (n_features,)."""

    @property
    def scale(self) -> FloatArray:
        """Units, of shape (n_features,)."""


class NonFinite(NamedTuple):
    """A column with NaN or infinite cells."""

    column: int
    n_nan: int
    n_inf: int
    first_row: int


class LabelCosts(NamedTuple):
    """Costs of giving rows to centers."""

    regrets: FloatArray
    """n x k: weight times (cost of the label - cost of the row's cheapest)."""
    nearest: Codes
    """The cheapest label of each row."""
    minimum: float
    """Weighted sum of the rows' cheapest costs: what the regrets leave out."""


class GroupSums(NamedTuple):
    """Sums over groups of rows."""

    weight: FloatArray
    """Of shape (n_groups,)."""
    sums: FloatArray
    """n_groups x d, in units."""


class TestArrays(NamedTuple):
    """The tests of a tree, one entry per node."""

    kind: npt.NDArray[np.int8]
    feature: IntArray
    threshold: FloatArray
    lower: FloatArray
    upper: FloatArray
    children_left: IntArray
    children_right: IntArray


class ObliqueArrays(NamedTuple):
    """The weights of a tree's oblique tests, by node as in compressed sparse rows."""

    indptr: IntArray
    indices: IntArray
    weights: FloatArray
    bias: FloatArray


class InitTree(NamedTuple):
    """A tree that a fit starts from."""

    tests: TestArrays
    clusters: IntArray
    """Of the leaves."""
    oblique: ObliqueArrays | None


class Measure(NamedTuple):
    """How the cost of a row about a center is measured."""

    units: HasUnits
    cosine: bool
    sample_weight: FloatArray | None
    n_jobs: Jobs


@dataclass(frozen=True)
class FittedTree:
    """A threshold tree with all that growth knows of its nodes; entries by node."""

    kind: npt.NDArray[np.int8]
    feature: IntArray
    threshold: FloatArray
    lower: FloatArray
    upper: FloatArray
    children_left: IntArray
    children_right: IntArray
    n_node_samples: IntArray
    weighted_n_node_samples: FloatArray
    label_weight: FloatArray
    """n_nodes x k: weight of each reference label."""
    cost: FloatArray
    """Regret of the node under its best label."""
    cluster: IntArray
    base_cluster: IntArray
    base_cost: FloatArray
    mistakes: FloatArray
    leaf_of_row: Codes
    n_base_leaves: int
    skipped_features: list[int]


@dataclass(frozen=True)
class FittedKauri:
    """A Kauri tree; entries by node."""

    kind: npt.NDArray[np.int8]
    feature: IntArray
    threshold: FloatArray
    lower: FloatArray
    upper: FloatArray
    children_left: IntArray
    children_right: IntArray
    n_node_samples: IntArray
    weighted_n_node_samples: FloatArray
    cluster: IntArray
    cost: FloatArray
    move: IntArray
    gain: FloatArray
    objective: FloatArray
    """By number of leaves, from 1 on."""
    leaf_of_row: Codes


@dataclass(frozen=True)
class FittedOblique:
    """A tree of oblique or axis-aligned tests, its centers and its rounds."""

    kind: npt.NDArray[np.int8]
    feature: IntArray
    threshold: FloatArray
    children_left: IntArray
    children_right: IntArray
    oblique_indptr: IntArray
    oblique_indices: IntArray
    oblique_weights: FloatArray
    oblique_bias: FloatArray
    cluster: IntArray
    """Of leaves; -1 at inner nodes."""
    regrets: FloatArray
    """n_nodes x k."""
    leaf_of_row: Codes
    centers: FloatArray
    """k x d, in units."""
    inertia: float
    free_inertia: float
    converged: bool
    mu: FloatArray
    cost: FloatArray
    penalty: FloatArray
    mismatch: FloatArray
    n_weights: IntArray
    n_leaves: IntArray


def find_non_finite(table: Columns, n_jobs: Jobs) -> list[NonFinite]:
    """Return the columns with NaN or infinite cells, in their order."""
    return [NonFinite(*found) for found in _core.find_non_finite(table, n_jobs)]


def column_units(
    table: Columns, sample_weight: FloatArray | None, standardise: bool, n_jobs: Jobs
) -> tuple[FloatArray, FloatArray]:
    """Return origin and unit of every column."""
    return _core.column_units(table, sample_weight, standardise, n_jobs)


def label_costs(
    table: Columns,
    units: HasUnits,
    centers: FloatArray,
    manhattan: bool,
    sample_weight: FloatArray | None,
    n_jobs: Jobs,
) -> LabelCosts:
    """Return the costs of giving every row to each of the `centers` (k x d, in units)."""
    return LabelCosts(
        *_core.label_costs(
            table, units.shift, units.scale, centers, manhattan, sample_weight, n_jobs
        )
    )


def group_sums(
    table: Columns,
    units: HasUnits,
    groups: Codes,
    n_groups: int,
    sample_weight: FloatArray | None,
    n_jobs: Jobs,
) -> GroupSums:
    """Return weight and column sums (in units) of each group of rows."""
    return GroupSums(
        *_core.group_sums(table, units.shift, units.scale, groups, n_groups, sample_weight, n_jobs)
    )


def fit_tree(
    table: Columns,
    regrets: FloatArray,
    labels: Codes,
    *,
    base_centers: tuple[FloatArray, FloatArray] | None = None,
    surrogate: dict[str, Any] | None = None,
    sample_weight: FloatArray | None,
    interval: bool,
    max_leaves: int,
    max_depth: int | None,
    min_samples_leaf: int,
    n_jobs: Jobs,
    progress: Progress | None,
    search: tuple[int, int] | None = None,
) -> FittedTree:
    """Grow a threshold tree by label cost, from one leaf or from a base tree.

    `base_centers`: the centers of IMM's base (k x d) as unevaluated sums of two arrays.
    `surrogate`: the features of Kernel IMM's base. `search`: most bins of a column, and rows of a
    node below which it is sorted; for tests, since they change the speed and never the tree.
    """
    high, low = (None, None) if base_centers is None else base_centers
    return FittedTree(
        **_core.fit_tree(
            table,
            regrets,
            labels,
            base_centers=high,
            base_centers_low=low,
            surrogate=surrogate,
            sample_weight=sample_weight,
            interval=interval,
            max_leaves=max_leaves,
            max_depth=max_depth,
            min_samples_leaf=min_samples_leaf,
            n_jobs=n_jobs,
            progress=progress,
            search=search,
        )
    )


def fit_kauri(
    table: Columns,
    *,
    features: FloatArray | None,
    gram: FloatArray | None,
    sample_weight: FloatArray | None,
    max_clusters: int,
    max_leaves: int,
    max_depth: int | None,
    min_samples_split: int,
    min_samples_leaf: int,
    max_features: int,
    seed: int,
    all_moves: bool,
    n_jobs: Jobs,
    progress: Progress | None,
) -> FittedKauri:
    """Grow a Kauri tree, on features of the kernel or on its matrix."""
    return FittedKauri(
        **_core.fit_kauri(
            table,
            features=features,
            gram=gram,
            sample_weight=sample_weight,
            max_clusters=max_clusters,
            max_leaves=max_leaves,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            max_features=max_features,
            seed=seed,
            all_moves=all_moves,
            n_jobs=n_jobs,
            progress=progress,
        )
    )


def fit_oblique(
    rows: Columns | SparseRows,
    measure: Measure,
    *,
    centers: FloatArray,
    labels: Codes,
    init: str,
    tree: InitTree | None,
    axis: bool,
    alpha: float,
    max_depth: int,
    max_iter: int,
    schedule: tuple[float, int, bool] | None,
    relax: bool,
    seed: int,
    progress: Progress | None,
) -> FittedOblique:
    """Fit an oblique or axis-aligned tree together with its clusters.

    `tree`: what the fit starts from instead of `init`.
    `schedule`: factor and number of values of mu, and whether leaves hold histograms; None for the
    direct solver.
    """
    return FittedOblique(
        **_core.fit_oblique(
            rows,
            shift=measure.units.shift,
            scale=measure.units.scale,
            cosine=measure.cosine,
            centers=centers,
            labels=labels,
            sample_weight=measure.sample_weight,
            init=init,
            tree=tree,
            axis=axis,
            alpha=alpha,
            max_depth=max_depth,
            max_iter=max_iter,
            schedule=schedule,
            relax=relax,
            seed=seed,
            n_jobs=measure.n_jobs,
            progress=progress,
        )
    )


def apply(
    tree: TestArrays, table: Columns, n_jobs: Jobs, oblique: ObliqueArrays | None = None
) -> IntArray | None:
    """Return the leaf of each row; None if a cell is NaN or infinite."""
    return _core.apply(tree, table, n_jobs, oblique)


def apply_sparse(
    tree: TestArrays, rows: SparseRows, n_jobs: Jobs, oblique: ObliqueArrays | None = None
) -> IntArray | None:
    """Return the leaf of each row of a sparse matrix; None if a cell is NaN or infinite."""
    return _core.apply_sparse(tree, rows, n_jobs, oblique)


@dataclass(frozen=True, slots=True)
class Router:
    """The tests of a tree, ready for routing many tables."""

    tests: TestArrays
    oblique: ObliqueArrays | None

    def apply(self, table: Columns, n_jobs: Jobs) -> IntArray | None:
        """Return the leaf of each row; None if a cell is NaN or infinite."""
        return apply(self.tests, table, n_jobs, self.oblique)

    def apply_sparse(self, rows: SparseRows, n_jobs: Jobs) -> IntArray | None:
        """Return the leaf of each row of a sparse matrix; None if a cell is NaN or infinite."""
        return apply_sparse(self.tests, rows, n_jobs, self.oblique)


def spherical_kmeans(
    rows: Columns | SparseRows,
    n_clusters: int,
    *,
    sample_weight: FloatArray | None,
    n_init: int,
    max_iter: int,
    seed: int,
    n_jobs: Jobs,
) -> tuple[Codes, FloatArray]:
    """Return labels and centers (of length 1) of the best of `n_init` starts."""
    return _core.spherical_kmeans(
        rows,
        n_clusters,
        sample_weight=sample_weight,
        n_init=n_init,
        max_iter=max_iter,
        seed=seed,
        n_jobs=n_jobs,
    )


def assign_rows(
    rows: Columns | SparseRows, measure: Measure, *, centers: FloatArray, labels: Codes | None
) -> tuple[Codes, float]:
    """Return the nearest center of every row, and the cost about the centers of `labels`.

    Without `labels` the cost is that about the nearest centers.
    """
    return _core.assign_rows(
        rows,
        shift=measure.units.shift,
        scale=measure.units.scale,
        cosine=measure.cosine,
        centers=centers,
        labels=labels,
        sample_weight=measure.sample_weight,
        n_jobs=measure.n_jobs,
    )


def mean_centers(
    rows: Columns | SparseRows, measure: Measure, *, centers: FloatArray, labels: Codes
) -> FloatArray:
    """Return the centers (in units) of the clusters of `labels`.

    Clusters without rows keep the ones of `centers`.
    """
    return _core.mean_centers(
        rows,
        shift=measure.units.shift,
        scale=measure.units.scale,
        cosine=measure.cosine,
        centers=centers,
        labels=labels,
        sample_weight=measure.sample_weight,
        n_jobs=measure.n_jobs,
    )


def surrogate_features(
    table: Columns, surrogate: dict[str, Any], n_jobs: Jobs
) -> tuple[FloatArray, list[int]]:
    """Return the surrogate features of every row."""
    return _core.surrogate_features(table, surrogate, n_jobs)
