"""Builders: the `ClusterTree` of a fit from the arrays of its nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .._data import (
    SparseTable,
    Table,
    WeightedRows,
    is_time,
    next_time,
    start_in_gap,
    threshold_in_gap,
)
from .._engine import FittedTests, FittedTree, ObliqueArrays, Router, TestArrays
from .._util import FloatArray, IntArray
from .cluster_tree import ClusterTree
from .nodes import BESIDE_ARRAYS, INTERVAL, LEAF, MISSING, OBLIQUE, THRESHOLD, leaf_mistakes

Classes = list[int] | list[str]


@dataclass(frozen=True)
class GrownTree:
    """The tests of a tree with counts, costs and labels of its nodes; entries by node."""

    tests: TestArrays
    oblique: ObliqueArrays | None
    n_node_samples: IntArray
    weighted_n_node_samples: FloatArray
    label_weight: FloatArray
    """n_nodes x k: weight of each reference label."""
    cost: FloatArray
    """Cost of the node under its best label, less what its rows cost at least."""
    cluster: IntArray
    """The best label."""
    leaf_of_row: npt.NDArray[Any]
    """Leaf of each fitted row."""
    base_cluster: IntArray
    """Label as a leaf of the base tree, -1 elsewhere."""
    base_cost: FloatArray
    """Regret of a base leaf's rows under the base's label, 0 elsewhere."""
    mistakes: FloatArray
    """Weight that the cut of a base node separates from its centers, NaN elsewhere."""
    n_base_leaves: int = 0
    """Leaves of the base tree, 0 without one."""
    feature_scale: FloatArray | None = None
    """Standard deviations of the columns, for a tree with oblique tests."""
    minimum: float | None = None
    """What the rows cost at least, which `cost` leaves out; None: as under the reference."""
    beside: Sequence[FloatArray] | None = None
    """The values beside cuts (`BESIDE_ARRAYS`), where the fit has found them."""

    @classmethod
    def of(cls, fitted: FittedTree) -> GrownTree:
        """Return the tree that the core grew."""
        others = {"tests", "oblique", "feature_scale", "minimum"}
        names = [field.name for field in fields(GrownTree) if field.name not in others]
        return cls(tests_of(fitted), None, **{name: getattr(fitted, name) for name in names})

    @classmethod
    def of_rows(
        cls,
        tests: TestArrays,
        oblique: ObliqueArrays | None,
        leaf_of_row: npt.NDArray[Any],
        labels: npt.NDArray[Any],
        n_clusters: int,
        sample_weight: FloatArray | None,
        *,
        feature_scale: FloatArray | None,
        cost: FloatArray,
        cluster: IntArray,
        base_cluster: IntArray | None = None,
        base_cost: FloatArray | None = None,
        **others: Any,
    ) -> Self:
        """Count the rows of a fit in the nodes of a tree.

        `labels`: a reference label per row. `base_cluster`: where given, all leaves are the base's.
        `others`: further fields.
        """
        n_nodes, left = len(tests.kind), tests.children_left
        rows = np.bincount(leaf_of_row, minlength=n_nodes)
        cells = leaf_of_row.astype(np.int64) * n_clusters + labels
        weight = np.bincount(cells, weights=sample_weight, minlength=n_nodes * n_clusters)
        label_weight = weight.astype(np.float64).reshape(n_nodes, n_clusters)
        add_up(left, rows, label_weight)
        is_base = base_cluster is not None
        return cls(
            tests,
            oblique,
            rows,
            label_weight.sum(axis=1),
            label_weight,
            cost,
            cluster,
            leaf_of_row,
            np.full(n_nodes, -1) if base_cluster is None else base_cluster,
            np.zeros(n_nodes) if base_cost is None else base_cost,
            np.full(n_nodes, np.nan),
            int((tests.kind == LEAF).sum()) if is_base else 0,
            feature_scale,
            **others,
        )

    def build(
        self,
        classes: Classes,
        table: Table | SparseTable,
        fitted: WeightedRows[Any] | None = None,
        base_centers: FloatArray | None = None,
    ) -> ClusterTree:
        """Return the tree, with what is reported of its nodes.

        Parameters
        ----------
        classes : list of int or list of str
            The labels, by code.
        table : Table or SparseTable
            What the columns of all rows hold.
        fitted : WeightedRows, default=None
            The rows of `leaf_of_row`, which have the values beside cuts if the fit has not.
        base_centers : ndarray of shape (n_clusters, n_features), default=None
            Centers of the base tree, which keep their leaves where cuts of times are moved.

        Returns
        -------
        ClusterTree
        """
        weight = self.weighted_n_node_samples
        divisor = np.where(weight > 0, weight, 1.0)
        value = np.minimum(self.label_weight / divisor[:, None], 1.0)
        is_base = len(weight) == 2 * self.n_base_leaves - 1
        labels = self.base_cluster if is_base else self.cluster
        leaves = np.flatnonzero(self.tests.kind == LEAF)
        mistakes = np.maximum(self.mistakes, 0.0)  # weights may sum to a hair below
        mistakes[self._without_mistakes()] = 0.0  # or above
        mistakes[leaves] = leaf_mistakes(
            weight[leaves], self.n_node_samples[leaves], value[leaves, labels[leaves]]
        )
        oblique = {} if self.oblique is None else self.oblique._asdict()
        sides = None if base_centers is None else self._sides_of_centers(base_centers)
        beside = self.beside
        if beside is None and fitted is not None:
            beside = values_beside(self.tests, self.oblique, self.leaf_of_row, fitted)
        known = node_arguments(self.tests, self.n_node_samples, beside, table, sides)
        return ClusterTree(
            **known,
            **{f"oblique_{name}": array for name, array in oblique.items()},
            n_node_samples=self.n_node_samples,
            weighted_n_node_samples=weight,
            cluster=self.cluster,
            base_cluster=self.base_cluster,
            n_base_leaves=self.n_base_leaves,
            impurity=self.cost / divisor,
            value=value[:, None, :],
            mistakes=mistakes,
            **column_arguments(table),
            classes=classes,
            feature_scale=self.feature_scale,
        )

    def _sides_of_centers(self, centers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return each node's greatest center on the left and least one on the right of its cut.

        Infinite below the base tree. `centers`: k x n_features.
        """
        left, feature = self.tests.children_left, np.maximum(self.tests.feature, 0)
        leaves = np.flatnonzero(self.base_cluster >= 0)
        least = np.full((len(left), centers.shape[1]), np.inf)
        most = -least
        least[leaves] = most[leaves] = centers[self.base_cluster[leaves]]
        n_base = max(2 * self.n_base_leaves - 1, 0)
        low, high = np.full(len(left), -np.inf), np.full(len(left), np.inf)
        for node in range(n_base - 1, -1, -1):  # children come after their parents
            if 0 <= left[node] < n_base:
                children = slice(left[node], left[node] + 2)
                least[node], most[node] = least[children].min(axis=0), most[children].max(axis=0)
                low[node] = most[left[node], feature[node]]
                high[node] = least[left[node] + 1, feature[node]]
        return low, high

    def _without_mistakes(self) -> IntArray:
        """Return the splits of the base tree that separate no row from its center.

        Rows that a split above separated have centers that are no leaf's below it.
        """
        left = self.tests.children_left[: max(2 * self.n_base_leaves - 1, 0)]
        leaves = np.flatnonzero(self.base_cluster >= 0)
        alive = np.zeros((len(left), self.label_weight.shape[1]))
        alive[leaves, self.base_cluster[leaves]] = 1.0
        base_left = np.where(left < len(left), left, -1)
        add_up(base_left, alive)
        inner = np.flatnonzero(base_left >= 0)
        left = base_left[inner]
        crossing = alive[left] * self.label_weight[left + 1]
        crossing += alive[left + 1] * self.label_weight[left]
        return inner[~crossing.any(axis=1) & ~np.isnan(self.mistakes[inner])]

    def cost_path(self, minimum: float, never_rises: bool = True) -> FloatArray:
        """Return the surrogate cost from the base's number of leaves (or 1) to the last.

        `minimum`: what the reference's regrets leave out, the sum of the rows' cheapest costs.
        `never_rises`: whether growth lowers this cost, so that only rounding can raise it.
        """
        cost, left, n_base = (
            self.cost.tolist(),
            self.tests.children_left.tolist(),
            self.n_base_leaves,
        )
        minimum = minimum if self.minimum is None else self.minimum
        n_first = max(2 * n_base - 1, 1)
        parent = {child: node for node, child in enumerate(left) if child >= 0}
        total = ExactSum(minimum)
        for node in range(n_first):
            if not 0 <= left[node] < n_first:
                total.add(cost[node])
        path = [total.rounded()]
        for child in range(n_first, len(cost), 2):  # left children of the splits after the base
            total.add(-cost[parent[child]])
            total.add(cost[child])
            total.add(cost[child + 1])
            path.append(total.rounded())
        if n_base:
            path[0] = minimum + float(self.base_cost.sum())
        return np.minimum.accumulate(path) if never_rises else np.array(path)


class ExactSum:
    """A sum of doubles without rounding: what is taken off leaves no trace."""

    _UNIT = 1 << 1074  # all doubles are integers in units of 2 ** -1074

    def __init__(self, start: float = 0.0) -> None:
        self._units = 0
        self.add(start)

    def add(self, number: float) -> None:
        """Add a finite number."""
        numerator, denominator = number.as_integer_ratio()
        self._units += numerator * (self._UNIT // denominator)

    def rounded(self) -> float:
        """Return the double nearest to the sum."""
        return self._units / self._UNIT


def tests_of(fitted: FittedTests) -> TestArrays:
    """Return the tests of a tree that the core fitted."""
    return TestArrays(*(getattr(fitted, name) for name in TestArrays._fields))


def column_arguments(rows: Table | SparseTable) -> dict[str, Any]:
    """Return the arguments of `ClusterTree` that say what the columns of a fit hold."""
    arguments = {"n_features": rows.n_features, "feature_names": rows.feature_names}
    if isinstance(rows, SparseTable):
        return arguments
    has_missing = None if rows.gaps is None else [n_missing > 0 for n_missing in rows.gaps]
    known = {"column_kinds": rows.kinds, "levels": rows.levels, "has_missing": has_missing}
    return arguments | known


def with_directions(tests: TestArrays, n_node_samples: IntArray) -> TestArrays:
    """Return the tests with the directions of missing cells that the fit had none of.

    Missing cells go to the side with more rows, ties left. Directions that were learned stay, and
    trees with oblique tests have none.
    """
    if tests.missing_go_to_left is not None or (tests.kind == OBLIQUE).any():
        return tests
    left = np.maximum(tests.children_left, 0)
    right = np.maximum(tests.children_right, 0)
    more_left = n_node_samples[left] >= n_node_samples[right]
    goes_left = (tests.kind != LEAF) & (more_left | (tests.kind == MISSING))
    return tests._replace(missing_go_to_left=goes_left)


def values_beside(
    tests: TestArrays,
    oblique: ObliqueArrays | None,
    leaf_of_row: npt.NDArray[Any],
    fitted: WeightedRows[Any],
) -> Sequence[FloatArray] | None:
    """Return the values beside cuts (`BESIDE_ARRAYS`) among the rows of a fit; None: no cuts.

    `leaf_of_row`: the leaf of each row of `fitted`.
    """
    if not _have_cuts(tests):
        return None
    router = Router(tests, fitted.rows.n_features, oblique)
    leaves = leaf_of_row.astype(np.uint32, copy=False)
    return router.values_beside(fitted.rows.data, leaves, fitted.threads)


def _have_cuts(tests: TestArrays) -> bool:
    """Return whether any node tests a number."""
    return bool(np.isin(tests.kind, (THRESHOLD, INTERVAL)).any())


def node_arguments(
    tests: TestArrays,
    n_node_samples: IntArray,
    beside: Sequence[FloatArray] | None,
    table: Table | SparseTable,
    sides: tuple[FloatArray, FloatArray] | None = None,
) -> dict[str, Any]:
    """Return the arguments of `ClusterTree` that say what the nodes of a fit test.

    All directions are known then, except of trees with oblique tests. Thresholds of times, and the
    ends of their intervals, lie where people would put them: see `threshold_in_gap`.

    Parameters
    ----------
    tests : TestArrays
        The tests as they were grown.
    n_node_samples : ndarray of shape (n_nodes,)
        Rows of the fit that reach each node.
    beside : sequence of ndarray of shape (n_nodes,) or None
        The values beside cuts, `BESIDE_ARRAYS`; None: they are not kept.
    table : Table or SparseTable
        What the columns hold.
    sides : tuple of ndarray of shape (n_nodes,), default=None
        What cuts of times leave on their left and on their right besides rows.

    Returns
    -------
    dict
    """
    tests = with_directions(tests, n_node_samples)
    if beside is None or not _have_cuts(tests):
        return tests._asdict()
    if table.kinds is not None:
        tests = _with_calendar_cuts(tests, beside, table.kinds, sides)
    return tests._asdict() | dict(zip(BESIDE_ARRAYS, beside, strict=True))


def _with_calendar_cuts(
    tests: TestArrays,
    beside: Sequence[FloatArray],
    kinds: Sequence[str],
    sides: tuple[FloatArray, FloatArray] | None,
) -> TestArrays:
    """Return the tests with the cuts of times at boundaries of calendar and clock."""
    below, above, below_lower, above_lower = beside
    threshold, lower, upper = tests.threshold.copy(), tests.lower.copy(), tests.upper.copy()
    for node in np.flatnonzero(np.isin(tests.kind, (THRESHOLD, INTERVAL))).tolist():
        kind = kinds[tests.feature[node]]
        if not is_time(kind):
            continue
        end = threshold if tests.kind[node] == THRESHOLD else upper
        if not math.isnan(below[node] + above[node]):
            low, high = below[node], above[node]
            if sides is not None:  # centers may lie within a day or a microsecond
                low = next_time(max(low, sides[0][node]), kind)
                high = next_time(min(high, sides[1][node]), kind)
            if low < high:
                end[node] = threshold_in_gap(low, high, kind)
        if not math.isnan(below_lower[node] + above_lower[node]):
            lower[node] = start_in_gap(below_lower[node], above_lower[node], kind)
    return tests._replace(threshold=threshold, lower=lower, upper=upper)


def add_up(left: IntArray, *of_nodes: npt.NDArray[Any]) -> None:
    """Set the inner nodes of arrays to the sums of their children; the leaves are set.

    `left`: left children, each followed by its sibling.
    """
    for node in range(len(left) - 1, -1, -1):  # children come after their parents
        if left[node] >= 0:
            for array in of_nodes:
                array[node] = array[left[node] : left[node] + 2].sum(axis=0)
