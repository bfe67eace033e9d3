"""The trees that BestTree's search begins with, one of every method that keeps to its leaves."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .. import _engine
from .._base import FitRows, Growth, Limits, grow_tree, most_leaves
from .._data import Encoding, SparseTable, Table, Units
from .._reference.centers import Centers, Criterion
from .._reference.kmeans import Reference, make_reference
from .._reference.read import ReferenceInput
from .._util import FloatArray, IntArray, quoted_column
from ..tree import ClusterTree, GrownTree, tests_of, with_directions
from ..tree.nodes import LEVELS, THRESHOLD
from .centers_tree import labelled_tree
from .cubt import CUBT
from .ex_shallow import ExShallow
from .given_tree import check_columns, given_tree
from .joined_tree import joined, route
from .kd_tree_clusters import KDTreeClusters
from .random_cuts import RandomCuts
from .x_regression_tree import XRegressionTree


def decoded_tests(
    tests: _engine.TestArrays, encoding: Encoding, means: FloatArray
) -> _engine.TestArrays:
    """Return thresholds on the coordinates of a filled table as tests of the columns themselves.

    Rows go the ways that they went: `means` are what the gaps of the coordinates were filled with.
    """
    inner = np.flatnonzero(tests.kind == THRESHOLD)
    kind, feature, threshold = tests.kind.copy(), tests.feature.copy(), tests.threshold.copy()
    missing_left = np.zeros(len(kind), dtype=bool)
    left: list[list[int]] = [[] for _ in kind]
    for node in inner.tolist():
        place, at = int(tests.feature[node]), float(tests.threshold[node])
        missing_left[node] = means[place] <= at
        column = int(np.searchsorted(encoding.first, place, side="right")) - 1
        feature[node], known = column, encoding.levels[column]
        if known is not None:
            kind[node], threshold[node] = LEVELS, np.nan
            level = place - int(encoding.first[column])
            left[node] = [v for v in range(len(known)) if (v == level) <= at]
    return tests._replace(
        kind=kind,
        feature=feature,
        threshold=threshold,
        levels_indptr=np.concatenate([[0], np.cumsum([len(codes) for codes in left])]),
        levels_codes=np.array([code for codes in left for code in codes], dtype=np.int64),
        missing_go_to_left=missing_left,
    )


def _square(points: FloatArray) -> float:
    """Return the sum of the squares of the observed coordinates."""
    square = float(np.vdot(points, points))
    return float(np.nansum(np.square(points))) if math.isnan(square) else square


def _check_levels(tree: ClusterTree, table: Table | SparseTable) -> None:
    """Raise ValueError if a given tree tests a column that had other levels in its fit."""
    for column in tree.tested_features.tolist():
        own = tree.levels[column] if tree.levels else None
        known = table.levels[column] if table.levels else None
        if own != known:
            held = "numbers" if own is None else f"the levels {', '.join(own):.60}"
            raise ValueError(
                f"Column {quoted_column(table.feature_names, column)} held {held} when the tree "
                "given as init was fitted, and X holds others. Give a tree of the same levels."
            )


@dataclass(frozen=True)
class Start:
    """A tree that the search may begin with."""

    name: str
    tests: _engine.TestArrays
    cluster: IntArray
    """By node; only the leaves' count."""

    @classmethod
    def of(cls, name: str, grown: GrownTree) -> Self:
        """Return a tree that was grown."""
        is_base = len(grown.cluster) == 2 * grown.n_base_leaves - 1
        return cls(name, grown.tests, grown.base_cluster if is_base else grown.cluster)


@dataclass(frozen=True)
class Starts:
    """What starts are grown from."""

    fit_rows: FitRows[Any]
    reference: Reference
    limits: Limits
    points: Any
    """The rows' numbers in units, as the core takes them; None: the labels are all that counts."""
    criterion: Criterion
    seed: int

    def quick(self) -> Iterator[Start]:
        """Grow trees by the labels and the costs of the reference."""
        by_gini = Growth(None, criterion="gini", limits=self.limits)
        yield self._grown("KMeansTree", by_gini)
        if self.points is None:
            yield self._by_mistakes()
            return
        yield self._grown("ExKMC", Growth("imm", limits=self.limits))
        yield self._grown("ExKMC from one leaf", Growth(None, limits=self.limits))

    def others(self, max_work: int) -> Iterator[Start]:
        """Grow trees by everything else.

        Those that compare all columns with all columns, O(n d^2) a level, are left out where that
        is more than `max_work`. Of tables with missing cells or levels all that compare cells are
        grown on the filled table, a column for each level; their tests become those of the table
        itself. Where that is more than 8 columns for one they are left out, and of tables with
        levels ExShallow: it takes an eighth of a fit there, and without it trees cost as little.
        Of sparse rows there is none of them.
        """
        yield self._by_mistakes()
        if isinstance(self.fit_rows.rows, SparseTable):
            return
        if self.fit_rows.rows.is_plain:
            yield from self._of_cells(max_work)
            return
        encoding = self.fit_rows.encoding
        if encoding.is_wide:
            return
        everyone = np.zeros(self.fit_rows.rows.n_samples, dtype=np.uint32)
        means = Centers.of_labels(self.fit_rows, everyone, 1).high[0]
        has_levels = self.fit_rows.rows.levels is not None
        for start in self._filled(means)._of_cells(max_work, ex_shallow=not has_levels):
            yield replace(start, tests=decoded_tests(start.tests, encoding, means))

    def _filled(self, means: FloatArray) -> Starts:
        """Return the same for a table of numbers: gaps filled, a column for each level, 0 or 1."""
        encoding = self.fit_rows.encoding
        zero_one = replace(encoding, shift=np.zeros_like(means), scale=np.ones_like(means))
        cells = zero_one.matrix(self.fit_rows.rows)
        np.copyto(cells, means, where=np.isnan(cells))
        table = Table(cells, len(cells), len(means), None)
        units = Units(encoding.shift, encoding.scale)
        fit_rows = replace(self.fit_rows, rows=table, units=units, table=table, kept=None)
        return replace(self, fit_rows=fit_rows, points=units.matrix(table))

    def _of_cells(self, max_work: int, *, ex_shallow: bool = True) -> Iterator[Start]:
        """Grow the trees that compare cells, of a table of complete numbers.

        `ex_shallow`: whether ExShallow's too.
        """
        rows, k, limits = self.fit_rows.rows, self.reference.n_clusters, self.limits
        of_all = asdict(limits)
        explaining: list[Any] = [
            RandomCuts(k, criterion=self.criterion, random_state=self.seed),
            KDTreeClusters(k, **of_all),
        ]
        yield self._grown("ExGreedy", Growth("imm", cut_score="cost", limits=limits))
        if ex_shallow:
            explaining.insert(0, ExShallow(k, criterion=self.criterion))
        most = most_leaves(limits.max_leaves, k, rows.n_samples)
        n_levels = math.ceil(math.log2(max(most, 2)))
        if rows.n_samples * rows.n_features**2 * n_levels <= max_work:
            explaining.append(XRegressionTree(k, **of_all))
            yield self._cubt(of_all)
            yield self._kauri(most)
        for other in explaining:
            grown = other._grow(self.fit_rows, self.reference, other._growth(k))
            yield Start.of(type(other).__name__, grown)

    def of_other_references(self, n: int) -> Iterator[Start]:
        """Grow trees that explain other runs of k-means, one from each of `n` seeds."""
        assert self.points is not None
        cells = self.points[2] if isinstance(self.points, tuple) else self.points
        if not np.isfinite(_square(cells)):
            return
        for run in range(1, n + 1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # fewer clusters will do
                other = make_reference(
                    self.fit_rows,
                    ReferenceInput(),
                    criterion=self.criterion,
                    n_clusters=self.reference.n_clusters,
                    random_state=(self.seed + run) % np.iinfo(np.int32).max,
                    estimator_name=self.fit_rows.estimator_name,
                    needs_distinct=False,
                    n_init=1,
                )
            begin = Starts(
                self.fit_rows, other, self.limits, self.points, self.criterion, self.seed
            )
            for start in begin.quick():
                yield replace(start, name=f"{start.name}, other reference {run}")

    def given(self, init: Any) -> Start:
        """Return the tree given as `init`."""
        fit_rows, rows = self.fit_rows, self.fit_rows.rows

        def fit(model: Any) -> Any:
            if rows.levels is not None:
                raise ValueError(
                    f"init is a {type(model).__name__} that is not fitted, and X has columns of "
                    "levels: give its tree, init=model.tree_."
                )
            is_sparse = isinstance(rows, SparseTable)
            matrix = rows.matrix() if is_sparse else Units.own(rows.n_features).matrix(rows)
            weight, names = fit_rows.weight, rows.feature_names
            return model.fit(matrix, sample_weight=weight, feature_names=names)

        tree = given_tree(init, fit)
        if tree.oblique_indptr is not None:
            raise ValueError("init has oblique tests: BestTree searches among trees of thresholds.")
        check_columns(tree, fit_rows.table)
        _check_levels(tree, fit_rows.table)
        arrays = {name: getattr(tree, name) for name in _engine.TestArrays._fields}
        tests = _engine.TestArrays(**arrays)
        if not rows.is_plain:
            tests = with_directions(tests, tree.n_node_samples)
        if len(tree.classes) <= self.reference.n_clusters:
            return Start("init", tests, np.asarray(tree.leaf_clusters, dtype=np.int64))
        return Start("init", tests, labelled_tree(fit_rows, self.reference, tests).cluster)

    def _grown(self, name: str, growth: Growth, *, by_mistakes: bool = False) -> Start:
        """Grow a tree; `by_mistakes`: by rows outside their cluster, not the reference's costs."""
        reference = self.reference
        fitted = grow_tree(
            self.fit_rows,
            None if by_mistakes else reference.regrets,
            reference.labels,
            reference.n_clusters,
            growth,
            base_centers=reference.centers if growth.base else None,
            progress=None,
        )
        return Start.of(name, GrownTree.of(fitted))

    def _by_mistakes(self) -> Start:
        """Grow a tree by the fewest rows outside the cluster of their leaf."""
        return self._grown("KernelExpand", Growth(None, limits=self.limits), by_mistakes=True)

    def _cubt(self, of_all: dict[str, Any]) -> Start:
        """Grow CUBT's tree without its pruning, whose time grows with the square of the rows."""
        least = max(self.limits.min_samples_leaf, CUBT.min_samples_leaf)
        of_all = of_all | {"min_samples_leaf": least, "min_dist": 0.0}
        fit_rows = self.fit_rows
        whole = fit_rows.group_means(np.zeros(fit_rows.rows.n_samples, dtype=np.uint32), 1)
        leaves = CUBT(self.reference.n_clusters, **of_all)._grow(fit_rows, whole)
        grown, _ = joined(fit_rows, leaves, route(fit_rows, leaves.tests))
        return Start("CUBT", grown.tests, grown.cluster)

    def _kauri(self, most: int) -> Start:
        assert self.points is not None
        rows, limits = self.fit_rows.rows, self.limits
        kauri = _engine.fit_kauri(
            rows.data,
            kernel=self.points,
            is_gram=False,
            sample_weight=self.fit_rows.weight,
            max_clusters=self.reference.n_clusters,
            max_leaves=most,
            max_depth=limits.max_depth,
            min_samples_split=2,
            min_samples_leaf=limits.min_samples_leaf,
            max_features=rows.n_features,
            seed=self.seed,
            all_moves=False,
            n_jobs=self.fit_rows.threads,
            progress=None,
        )
        return Start("Kauri", tests_of(kauri), kauri.cluster)
