from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, Self, final, type_check_only

import numpy as np
import numpy.typing as npt

__all__ = [
    "DensityTests",
    "FittedKauri",
    "FittedOblique",
    "FittedTree",
    "PartsAnswer",
    "PartsFit",
    "PartsGathering",
    "PartsQuestion",
    "PartsTree",
    "Router",
    "SearchedTree",
    "Threads",
    "assign_rows",
    "column_units",
    "density_tree",
    "find_non_finite",
    "first_rows",
    "fit_kauri",
    "fit_oblique",
    "fit_regression",
    "fit_tree",
    "group_means",
    "group_sums",
    "label_costs",
    "level_counts",
    "mean_centers",
    "place_codes",
    "search_tree",
    "spherical_kmeans",
    "thresholds",
]

# A column is an array, or codes of levels and their number (LevelColumn of _engine.py).
_Table = npt.NDArray[Any] | Sequence[npt.NDArray[Any] | tuple[npt.NDArray[np.uint8], int]]
_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]
_Codes = npt.NDArray[np.uint32]
_Tests = tuple[
    npt.NDArray[np.int8],
    _Ints,
    _Floats,
    _Floats,
    _Floats,
    _Ints,
    _Ints,
    _Ints | None,
    _Ints | None,
    npt.NDArray[np.bool_] | None,
]

_Oblique = tuple[_Ints, _Ints, _Floats, _Floats]
_Sparse = tuple[_Ints, _Ints, _Floats, int]
_Rows = _Table | _Sparse

@final
class Threads:
    """Threads that the calls of one fit share; gone with the object."""

    def __new__(cls, n_jobs: int) -> Self: ...
    @property
    def n_jobs(self) -> int: ...

_Jobs = int | Threads

@type_check_only
class _Surrogate(Protocol):
    """Surrogate features: name and parameters of their functions."""

    @property
    def family(self) -> str: ...
    @property
    def parameter(self) -> float: ...
    @property
    def order(self) -> int: ...
    @property
    def shift(self) -> _Floats: ...
    @property
    def scale(self) -> _Floats: ...
    @property
    def anchors(self) -> list[_Floats]: ...

@type_check_only
class _Units(Protocol):
    """Origin and unit of every column."""

    @property
    def shift(self) -> _Floats: ...
    @property
    def scale(self) -> _Floats: ...

@type_check_only
class _Measure(Protocol):
    """How the cost of a row about a center is measured, and by how many threads."""

    @property
    def units(self) -> _Units: ...
    @property
    def cosine(self) -> bool: ...
    @property
    def sample_weight(self) -> _Floats | None: ...
    @property
    def n_jobs(self) -> _Jobs: ...

def find_non_finite(table: _Table, n_jobs: _Jobs) -> list[tuple[int, int, int, int]]: ...
def column_units(
    table: _Table, sample_weight: _Floats | None, standardise: bool, n_jobs: _Jobs
) -> tuple[_Floats, _Floats]: ...
def label_costs(
    rows: _Rows,
    units: _Units,
    centers: _Floats,
    manhattan: bool,
    sample_weight: _Floats | None,
    n_jobs: _Jobs,
    levels: list[_Floats | None] | None = None,
) -> tuple[_Floats, _Codes, float]: ...
def group_sums(
    table: _Table,
    units: _Units,
    groups: _Codes,
    n_groups: int,
    sample_weight: _Floats | None,
    n_jobs: _Jobs,
) -> tuple[_Floats, _Floats, _Floats | None]: ...
def group_means(
    rows: _Rows,
    units: _Units,
    groups: _Codes,
    near: _Floats,
    sample_weight: _Floats | None,
    n_jobs: _Jobs,
) -> tuple[_Floats, _Floats, _Floats, _Floats, _Floats | None]: ...
def level_counts(
    codes: npt.NDArray[np.uint8], n_levels: int, groups: _Codes | None, n_groups: int
) -> _Floats: ...
def first_rows(places: _Codes | _Ints) -> tuple[_Ints, _Ints]: ...
def place_codes(places: _Codes | _Ints, codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]: ...

@type_check_only
class _FittedTests:
    """Tests by node, children after their parents."""

    @property
    def kind(self) -> npt.NDArray[np.int8]: ...
    @property
    def feature(self) -> _Ints: ...
    @property
    def threshold(self) -> _Floats: ...
    @property
    def lower(self) -> _Floats: ...
    @property
    def upper(self) -> _Floats: ...
    @property
    def children_left(self) -> _Ints: ...
    @property
    def children_right(self) -> _Ints: ...
    @property
    def levels_indptr(self) -> _Ints: ...
    @property
    def levels_codes(self) -> _Ints: ...
    @property
    def missing_go_to_left(self) -> npt.NDArray[np.bool_] | None: ...

@type_check_only
class _FittedNodes(_FittedTests):
    """Arrays by node; `leaf_of_row` by row."""

    @property
    def cost(self) -> _Floats: ...
    @property
    def cluster(self) -> _Ints: ...
    @property
    def leaf_of_row(self) -> _Codes: ...

@final
class FittedTree(_FittedNodes):
    """A fitted threshold tree: arrays by node, children after their parents."""

    @property
    def n_node_samples(self) -> _Ints: ...
    @property
    def weighted_n_node_samples(self) -> _Floats: ...
    @property
    def label_weight(self) -> _Floats: ...
    @property
    def base_cluster(self) -> _Ints: ...
    @property
    def base_cost(self) -> _Floats: ...
    @property
    def mistakes(self) -> _Floats: ...
    @property
    def n_base_leaves(self) -> int: ...
    @property
    def skipped_features(self) -> list[int]: ...
    @property
    def beside(self) -> tuple[_Floats, _Floats, _Floats, _Floats] | None: ...

def fit_tree(
    rows: _Rows,
    labels: _Codes,
    *,
    n_labels: int,
    base: tuple[_Floats, _Floats, str]
    | tuple[_Floats, _Floats, _Floats, float]
    | _Surrogate
    | None,
    criterion: tuple[_Floats | None, bool] | str,
    sample_weight: _Floats | None,
    max_leaves: int,
    max_depth: int | None,
    min_samples_leaf: int,
    n_jobs: _Jobs,
    progress: Callable[[int, float], None] | None,
    search: tuple[int, int] | None = None,
) -> FittedTree: ...

@final
class DensityTests(_FittedTests):
    """The tests of a tree of CLTree, and what is known of its nodes."""

    @property
    def weight(self) -> _Floats: ...
    @property
    def points(self) -> _Floats: ...

def density_tree(
    table: _Table,
    *,
    sample_weight: _Floats | None,
    min_weight_share: float,
    n_jobs: _Jobs,
    progress: Callable[[int, float], None] | None,
) -> DensityTests: ...

@final
class FittedKauri(_FittedNodes):
    @property
    def n_node_samples(self) -> _Ints: ...
    @property
    def weighted_n_node_samples(self) -> _Floats: ...
    @property
    def move(self) -> _Ints: ...
    @property
    def gain(self) -> _Floats: ...
    @property
    def objective(self) -> _Floats: ...

def fit_kauri(
    rows: _Rows,
    *,
    kernel: _Floats | _Sparse,
    levels: list[tuple[int, float, _Floats]] = ...,
    is_gram: bool,
    sample_weight: _Floats | None,
    max_clusters: int,
    max_leaves: int,
    max_depth: int | None,
    min_samples_split: int,
    min_samples_leaf: int,
    max_features: int,
    seed: int,
    all_moves: bool,
    n_jobs: _Jobs,
    progress: Callable[[int, float], None] | None,
) -> FittedKauri: ...
def fit_regression(
    table: _Table,
    targets: _Floats,
    *,
    sample_weight: _Floats | None,
    min_gain: float,
    max_leaves: int,
    max_depth: int | None,
    min_samples_leaf: int,
    n_jobs: _Jobs,
    progress: Callable[[int, float], None] | None,
) -> _FittedTests: ...

@final
class Router:
    """A checked tree that routes rows; None stands for rows with cells it does not take."""

    def __new__(cls, tests: _Tests, n_features: int, oblique: _Oblique | None = None) -> Self: ...
    @property
    def n_features(self) -> int: ...
    def of_complete_rows(self) -> Self: ...
    def apply(self, table: _Table, n_jobs: _Jobs) -> _Ints | None: ...
    def apply_sparse(self, rows: _Sparse, n_jobs: _Jobs) -> _Ints | None: ...
    def values_beside(
        self, rows: _Rows, leaf_of_row: _Codes, n_jobs: _Jobs
    ) -> tuple[_Floats, _Floats, _Floats, _Floats]: ...

@final
class FittedOblique(_FittedNodes):
    """The arrays, centers and rounds of a fitted oblique tree."""

    @property
    def oblique_indptr(self) -> _Ints: ...
    @property
    def oblique_indices(self) -> _Ints: ...
    @property
    def oblique_weights(self) -> _Floats: ...
    @property
    def oblique_bias(self) -> _Floats: ...
    @property
    def regrets(self) -> _Floats: ...
    @property
    def centers(self) -> _Floats: ...
    @property
    def inertia(self) -> float: ...
    @property
    def free_inertia(self) -> float: ...
    @property
    def converged(self) -> bool: ...
    @property
    def mu(self) -> _Floats: ...
    @property
    def penalty(self) -> _Floats: ...
    @property
    def mismatch(self) -> _Floats: ...
    @property
    def n_weights(self) -> _Ints: ...
    @property
    def n_leaves(self) -> _Ints: ...

def fit_oblique(
    rows: _Rows,
    measure: _Measure,
    *,
    centers: _Floats,
    labels: _Codes,
    init: str,
    tree: tuple[Router, _Ints] | None,
    axis: bool,
    alpha: float,
    max_depth: int,
    max_iter: int,
    schedule: tuple[float, int, bool] | None,
    relax: bool,
    seed: int,
    progress: Callable[[int, float], None] | None,
) -> FittedOblique: ...

@final
class SearchedTree(_FittedTests):
    """The tree that a search found, and what happened on the way."""

    @property
    def cluster(self) -> _Ints: ...
    @property
    def objective(self) -> float: ...
    @property
    def start(self) -> int: ...
    @property
    def start_objectives(self) -> _Floats: ...
    @property
    def refined_objectives(self) -> _Floats: ...
    @property
    def n_rounds(self) -> int: ...
    @property
    def path_round(self) -> _Ints: ...
    @property
    def path_move(self) -> _Ints: ...
    @property
    def path_objective(self) -> _Floats: ...
    @property
    def path_n_leaves(self) -> _Ints: ...

@final
class PartsQuestion:
    """What a fit asks of every part of the rows."""

    @staticmethod
    def from_bytes(data: bytes) -> PartsQuestion: ...
    def to_bytes(self) -> bytes: ...
    @property
    def n_features(self) -> int: ...
    @property
    def is_first(self) -> bool: ...
    @property
    def is_about_ranks(self) -> bool: ...
    @property
    def wants_labels(self) -> bool: ...
    @property
    def names(self) -> bytes: ...
    @property
    def columns(self) -> list[tuple[str, list[str] | None, bool]]: ...
    def gather(self) -> PartsGathering: ...

@final
class PartsGathering:
    """An answer on its way."""

    def add_part(self, part: int) -> None: ...
    def add_columns(
        self,
        part: int,
        found: Sequence[tuple[str, int, bool, Sequence[str] | None, Sequence[str] | None]],
    ) -> None: ...
    def add(
        self,
        table: _Table,
        sample_weight: _Floats | None,
        labels: tuple[list[int] | list[str], _Codes] | None,
        part: int,
        n_jobs: _Jobs,
    ) -> None: ...
    def finish(self) -> PartsAnswer: ...

@final
class PartsAnswer:
    """What parts of the rows answer; answers to the same question add up."""

    @staticmethod
    def from_bytes(data: bytes) -> PartsAnswer: ...
    def to_bytes(self) -> bytes: ...
    def plus(self, other: PartsAnswer) -> PartsAnswer: ...

@final
class PartsFit:
    """A fit that asks."""

    def __new__(
        cls,
        names: bytes,
        n_features: int,
        n_clusters: int,
        centers: _Floats | None,
        scale: _Floats | str,
        *,
        manhattan: bool,
        with_labels: bool,
        cut_score: str | None,
        interval: bool,
        max_leaves: int,
        max_depth: int | None,
        min_samples_leaf: int,
        bins: tuple[int, int] | None = None,
    ) -> Self: ...
    @staticmethod
    def from_bytes(data: bytes) -> PartsFit: ...
    def to_bytes(self) -> bytes: ...
    def question(self) -> PartsQuestion | None: ...
    @property
    def id(self) -> int: ...
    @property
    def names(self) -> bytes: ...
    @property
    def n_features(self) -> int: ...
    @property
    def with_labels(self) -> bool: ...
    @property
    def classes(self) -> list[int] | list[str] | None: ...
    @property
    def columns(self) -> list[tuple[str, list[str] | None, bool]]: ...
    def found_columns(
        self,
    ) -> (
        list[tuple[list[tuple[str, int]], list[str], list[str], list[list[str]], bool, int]] | None
    ): ...
    def set_columns(self, columns: Sequence[tuple[str, Sequence[str] | None]]) -> None: ...
    def wanted_rows(
        self,
    ) -> tuple[_Floats, _Floats, list[_Floats | None], _Floats, bool] | None: ...
    def label_centers(
        self,
    ) -> (
        tuple[_Floats, _Floats, _Floats, _Floats, list[_Floats | None], list[list[int] | None]]
        | None
    ): ...
    def set_reference(
        self,
        scale: _Floats,
        in_units: _Floats,
        levels: Sequence[_Floats | None],
        own: _Floats,
        low: _Floats,
        shares: _Floats | None,
        inertia: float | None,
    ) -> None: ...
    def moved_centers(self) -> tuple[_Floats, _Floats, _Floats] | None: ...
    def set_costs(self, in_units: _Floats, levels: Sequence[_Floats | None]) -> None: ...
    def base_centers(self) -> tuple[_Floats, _Floats] | None: ...
    def tell(self, answer: PartsAnswer, n_jobs: _Jobs) -> None: ...
    def tell_gathered(self, gathering: PartsGathering, n_jobs: _Jobs) -> None: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_rounds(self) -> int: ...
    def result(self) -> PartsTree | None: ...

@final
class PartsTree(_FittedNodes):
    """A tree fitted in parts: arrays by node, children after their parents."""

    @property
    def base_cluster(self) -> _Ints: ...
    @property
    def base_cost(self) -> _Floats: ...
    @property
    def mistakes(self) -> _Floats: ...
    @property
    def below(self) -> _Floats: ...
    @property
    def above(self) -> _Floats: ...
    @property
    def below_lower(self) -> _Floats: ...
    @property
    def above_lower(self) -> _Floats: ...
    @property
    def n_node_samples(self) -> _Ints: ...
    @property
    def weighted_n_node_samples(self) -> _Floats: ...
    @property
    def label_weight(self) -> _Floats: ...
    @property
    def label_rows(self) -> _Ints: ...
    @property
    def minimum(self) -> float: ...
    @property
    def reference_inertia(self) -> float: ...
    @property
    def reference_spread(self) -> _Floats: ...
    @property
    def misfit(self) -> float: ...
    @property
    def cost_of_sample(self) -> float | None: ...
    @property
    def centers(self) -> _Floats: ...
    @property
    def scale(self) -> _Floats: ...
    @property
    def leaves(self) -> _Ints: ...
    @property
    def means(self) -> tuple[_Floats, _Floats, _Floats, _Floats, _Floats | None] | None: ...
    @property
    def medians(self) -> tuple[_Floats, _Floats] | None: ...
    @property
    def levels(self) -> list[_Floats | None]: ...

def search_tree(
    rows: _Rows,
    *,
    objective: Literal["kmeans", "kmedians", "labels"],
    z: _Floats | _Sparse | None,
    scale: _Floats | None,
    labels: _Codes | None,
    sample_weight: _Floats | None,
    n_clusters: int,
    starts: list[tuple[Router, _Ints]],
    max_leaves: int,
    max_depth: int | None,
    min_samples_leaf: int,
    n_restarts: int,
    n_survivors: int,
    batch: int,
    drift: float,
    aim: float | None,
    reach: float,
    rounds_to_refine: int,
    patience: int,
    max_work: int,
    max_time: float | None,
    seed: int,
    n_jobs: _Jobs,
    progress: Callable[[int, float], None] | None,
) -> SearchedTree: ...
def spherical_kmeans(
    rows: _Rows,
    n_clusters: int,
    *,
    sample_weight: _Floats | None,
    n_init: int,
    max_iter: int,
    seed: int,
    n_jobs: _Jobs,
) -> tuple[_Codes, _Floats]: ...
def assign_rows(
    rows: _Rows,
    measure: _Measure,
    *,
    centers: _Floats,
    labels: _Codes | None,
) -> tuple[_Codes, float]: ...
def mean_centers(
    rows: _Rows,
    measure: _Measure,
    *,
    centers: _Floats,
    labels: _Codes,
) -> _Floats: ...
def thresholds(below: _Floats, above: _Floats) -> _Floats: ...
