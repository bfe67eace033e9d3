"""Floor 1: the door to the Rust core, and the only file that imports it.

Every call is typed in and typed out: arrays, numbers and the classes below cross, dicts do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from . import _core
from ._core import FittedKauri as FittedKauri
from ._core import FittedOblique as FittedOblique
from ._core import FittedTree as FittedTree
from ._core import Router as Router
from ._core import Threads as Threads
from ._core import column_units as column_units
from ._core import fit_kauri as fit_kauri
from ._core import fit_oblique as fit_oblique
from ._core import fit_tree as fit_tree
from ._core import spherical_kmeans as spherical_kmeans
from ._util.arrays import Codes, FloatArray, IntArray

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


class GroupMeans(NamedTuple):
    """Means of groups of rows, and the squared distances to them."""

    weight: FloatArray
    """Of shape (n_groups,)."""
    means: FloatArray
    """n_groups x d, in the columns' own units, rounded; any for groups without rows."""
    rest: FloatArray
    """n_groups x d, in units: the means less the rounded ones."""
    spread: FloatArray
    """Of shape (n_groups,): weighted squared distances of the rows to the mean, in units."""


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


class Measure(NamedTuple):
    """How the cost of a row about a center is measured, and by how many threads."""

    units: HasUnits
    cosine: bool
    sample_weight: FloatArray | None
    n_jobs: Jobs


def find_non_finite(table: Columns, n_jobs: Jobs) -> list[NonFinite]:
    """Return the columns with NaN or infinite cells, in their order."""
    return [NonFinite(*found) for found in _core.find_non_finite(table, n_jobs)]


def label_costs(
    table: Columns,
    units: HasUnits,
    centers: FloatArray,
    manhattan: bool,
    sample_weight: FloatArray | None,
    n_jobs: Jobs,
) -> LabelCosts:
    """Return the costs of giving every row to each of the `centers` (k x d, in units)."""
    return LabelCosts(*_core.label_costs(table, units, centers, manhattan, sample_weight, n_jobs))


def group_sums(
    table: Columns,
    units: HasUnits,
    groups: Codes,
    n_groups: int,
    sample_weight: FloatArray | None,
    n_jobs: Jobs,
) -> GroupSums:
    """Return weight and column sums (in units) of each group of rows."""
    return GroupSums(*_core.group_sums(table, units, groups, n_groups, sample_weight, n_jobs))


def group_means(
    table: Columns,
    units: HasUnits,
    groups: Codes,
    n_groups: int,
    sample_weight: FloatArray | None,
    n_jobs: Jobs,
) -> GroupMeans:
    """Return the mean of each group of rows, and the squared distances of its rows to it."""
    return GroupMeans(*_core.group_means(table, units, groups, n_groups, sample_weight, n_jobs))


def assign_rows(
    rows: Columns | SparseRows, measure: Measure, *, centers: FloatArray, labels: Codes | None
) -> tuple[Codes, float]:
    """Return the nearest center of every row, and the cost about the centers of `labels`.

    Without `labels` the cost is that about the nearest centers.
    """
    return _core.assign_rows(rows, measure, centers=centers, labels=labels)


def mean_centers(
    rows: Columns | SparseRows, measure: Measure, *, centers: FloatArray, labels: Codes
) -> FloatArray:
    """Return the centers (in units) of the clusters of `labels`.

    Clusters without rows keep the ones of `centers`.
    """
    return _core.mean_centers(rows, measure, centers=centers, labels=labels)
