"""Floor 1: the door to the Rust core, and the only file that imports it.

Every call is typed in and typed out: arrays, numbers and the classes below cross, dicts do not.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

try:
    from . import _core
except ImportError as error:
    if "cannot import name '_core'" not in str(error):  # it is there, and cannot be loaded
        raise
    raise ImportError(
        "The Rust core of treeclust_rs is not built: run `make build` or `maturin develop`."
    ) from error
from ._core import DensityTests as DensityTests
from ._core import FittedKauri as FittedKauri
from ._core import FittedOblique as FittedOblique
from ._core import FittedTree as FittedTree
from ._core import PartsAnswer as PartsAnswer
from ._core import PartsFit as PartsFit
from ._core import PartsQuestion as PartsQuestion
from ._core import Router as Router
from ._core import SearchedTree as SearchedTree
from ._core import Threads as Threads
from ._core import assign_rows as assign_rows
from ._core import column_units as column_units
from ._core import density_tree as density_tree
from ._core import first_rows as first_rows
from ._core import fit_kauri as fit_kauri
from ._core import fit_oblique as fit_oblique
from ._core import fit_regression as fit_regression
from ._core import fit_tree as fit_tree
from ._core import group_means as group_means
from ._core import group_sums as group_sums
from ._core import label_costs as label_costs
from ._core import level_counts as level_counts
from ._core import mean_centers as mean_centers
from ._core import place_codes as place_codes
from ._core import search_tree as search_tree
from ._core import spherical_kmeans as spherical_kmeans
from ._util import BoolArray, Codes, FloatArray, IntArray

FittedTests: TypeAlias = "_core._FittedTests"
"""The tests of a fitted tree, by node: what all fitted trees have."""
Jobs = int | Threads
Progress = Callable[[int, float], None]
"""Called with the number of leaves and the last gain."""


MISSING_LEVEL = 255
"""Code of a missing level, and of a level that the fit did not have."""


class LevelColumn(NamedTuple):
    """A column of levels: texts, of which each row has one."""

    codes: npt.NDArray[np.uint8]
    """By row, in the order of the column's levels; `MISSING_LEVEL` for none of them."""
    n_levels: int
    """From 0, where all cells are missing, to 255."""


ColumnData = npt.NDArray[Any] | LevelColumn
"""The cells of a column."""
Columns = npt.NDArray[Any] | list[ColumnData]
"""A matrix whose rows are samples, or a list of columns."""


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
    """n_groups x d, in units, of the observed cells; 0 for levels."""
    observed: FloatArray | None = None
    """n_groups x d: weight of the observed cells; None if no cell is missing."""


class CentersBase(NamedTuple):
    """The base tree of IMM: centers as unevaluated sums, k x encoded columns, in their own units.

    In columns of levels a center has the shares of the levels.
    """

    high: FloatArray
    low: FloatArray
    cut_score: Literal["mistakes", "emn", "cost"]
    """What its cuts make small."""


class ShallowBase(NamedTuple):
    """The base tree of ExShallow: centers as in `CentersBase`, and the price of depth."""

    high: FloatArray
    low: FloatArray
    least_costs: FloatArray
    """Of every row about the nearest center, weights included."""
    depth_factor: float


class LabelCost(NamedTuple):
    """The criterion of ExKMC."""

    regrets: FloatArray | None
    """n x k, as in `LabelCosts`; None: a row's weight for every label but its own."""
    interval: bool
    """Whether cuts may be intervals."""


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
    observed: FloatArray | None = None
    """n_groups x d: weight of the observed cells; None if no cell is missing."""


class TestArrays(NamedTuple):
    """The tests of a tree, one entry per node."""

    kind: npt.NDArray[np.int8]
    feature: IntArray
    threshold: FloatArray
    lower: FloatArray
    upper: FloatArray
    children_left: IntArray
    children_right: IntArray
    levels_indptr: IntArray | None = None
    """Where the codes of each node start, n_nodes + 1; None: no tests on levels."""
    levels_codes: IntArray | None = None
    """The codes that go left at tests on levels."""
    missing_go_to_left: BoolArray | None = None
    """Whether a missing cell goes left; None: not known."""


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


def thresholds(below: FloatArray, above: FloatArray) -> FloatArray:
    """Return a threshold of few digits for each gap between two neighbouring values of a column."""
    return _core.thresholds(below, above)
