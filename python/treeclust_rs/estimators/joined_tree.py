"""Base of the trees that make their own clusters, by joining leaves: CUBT, CLTree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from .. import _engine
from .._base import (
    AT_LEAST_1,
    COMMON,
    NO_NEGATIVE_INERTIA,
    POSITIVE,
    CenterModel,
    Constraints,
    Fields,
    FitRows,
    SavedField,
    feature_importances,
)
from .._data import Table, column_of
from .._engine import GroupMeans, TestArrays
from .._reference.kmeans import ROWS_OVERFLOW
from .._util import BoolArray, Codes, FloatArray, IntArray
from ..tree import GrownTree, add_up, threshold_tests


@dataclass(frozen=True)
class Leaves:
    """A tree with the leaves that clusters are made of; entries by node."""

    tests: TestArrays
    core: BoolArray
    """Whether a leaf is one; each has rows."""
    n_clusters: int
    """Most clusters."""
    fitted: dict[str, FloatArray] = field(default_factory=dict)
    """Attributes that the model keeps besides."""


class JoinedTree(CenterModel, abstract=True):
    """A tree grown without clusters, whose leaves are joined to some."""

    _parameter_constraints: ClassVar[Constraints] = {"n_clusters": [AT_LEAST_1, None], **COMMON}
    _saved: ClassVar[Fields] = {
        "cluster_centers_": SavedField("k d", required=True),
        "scale_": SavedField("d", required=True, check=POSITIVE),
        "inertia_": SavedField(required=True, check=NO_NEGATIVE_INERTIA),
    }

    n_clusters: int | None

    def _grow(self, fit_rows: FitRows[Table], whole: GroupMeans) -> Leaves:
        """Grow the tree; `whole`: mean and spread of all rows, as the only group."""
        raise NotImplementedError

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002
        sample_weight: Any = None,
        *,
        feature_names: Any = None,
    ) -> Self:
        """Fit the tree.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            numpy array, polars DataFrame or LazyFrame, pandas DataFrame or pyarrow Table of
            numbers. Do not modify X during the fit: columns are not copied.
            %(who_takes_mixed)s
        y : ignored
            For the API.
        %(sample_weight)s
        %(feature_names)s

        %(fitted)s

        Raises
        ------
        ValueError
            If X holds NaN, inf or null, or distances between rows overflow.
        TypeError
            If a column is not numbers.
        """
        self._validate_params()
        fit_rows = FitRows.read(self, X, sample_weight, feature_names=feature_names)
        rows = fit_rows.rows
        whole = fit_rows.group_means(np.zeros(rows.n_samples, dtype=np.uint32), 1)
        columns = (column_of(rows, feature) for feature in range(rows.n_features))
        with np.errstate(over="ignore"):
            ranges = np.array([np.ptp(column.astype(np.float64)) for column in columns])
            widest = np.square(ranges / fit_rows.units.scale).sum() * whole.weight[0]
        if not np.isfinite(widest):
            raise ValueError(ROWS_OVERFLOW)
        leaves = self._grow(fit_rows, whole)
        leaf_of_row = route(fit_rows, leaves.tests)
        grown, means = joined(fit_rows, leaves, leaf_of_row)
        tree = grown.build(list(range(len(means.weight))), fit_rows.table, fit_rows)
        labels = fit_rows.leaves_of_all(leaf_of_row, tree)
        # Nothing is set before everything is known: a fit that fails leaves the estimator as it
        # was.
        self._set_tree(tree, fit_rows.names_given)
        self.scale_ = fit_rows.units.scale
        self.labels_ = self.classes_[tree.leaf_clusters][labels]
        self.__dict__.update(leaves.fitted)
        self.cluster_centers_, self.inertia_ = means.means, float(means.spread.sum())
        fit_rows.tell_result(self.verbose, tree.n_leaves, "inertia", self.inertia_)
        return self

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each column in the decrease of the spread, of shape (n_features,)."""
        return feature_importances(self.tree_, self.scale_)


def route(fit_rows: FitRows[Table], tests: TestArrays) -> Codes:
    """Return the leaf of each fitted row."""
    router = _engine.Router(tests, fit_rows.rows.n_features, None)
    leaf_of_row = router.apply(fit_rows.rows.data, fit_rows.threads)
    assert leaf_of_row is not None, "the rows are finite"
    return leaf_of_row.astype(np.uint32)


def cut_back(tests: TestArrays, becomes_leaf: BoolArray) -> tuple[TestArrays, IntArray]:
    """Return the tree without what is below some of its nodes, and the nodes that are left."""
    left = np.where(becomes_leaf, -1, tests.children_left)
    kept = np.zeros(len(left), dtype=bool)
    kept[0] = True
    for node in np.flatnonzero(left >= 0):  # children come after their parents
        kept[left[node] : left[node] + 2] = kept[node]
    number = np.cumsum(kept) - 1
    is_split = (left >= 0)[kept]
    return threshold_tests(
        np.where(is_split, tests.feature[kept], -2),
        np.where(is_split, tests.threshold[kept], -2.0),
        np.where(is_split, number[left[kept]], -1),
    ), np.flatnonzero(kept)


def join_nearest(weight: FloatArray, means: FloatArray, n_clusters: int) -> IntArray:
    """Join groups of rows to at most so many, each time two whose spread rises least.

    Joining rows of weights a and b raises the spread by a b / (a + b) times the squared distance
    of their means (Ward). Groups that are each other's nearest are joined as they are found, and
    the joins of least rise are kept: the same as to search for the least rise each time, in
    O(groups^2 d).

    Parameters
    ----------
    weight : ndarray of shape (n_groups,)
        Weights, positive.
    means : ndarray of shape (n_groups, d)
        Means of the rows.
    n_clusters : int
        Most groups that are left.

    Returns
    -------
    ndarray of shape (n_groups,)
        Number of each group's cluster, in the order in which clusters appear.
    """
    n = len(weight)
    weight, means, gone = weight.copy(), means.copy(), np.zeros(n, dtype=bool)
    joins: list[tuple[float, int, int]] = []
    chain: list[int] = []
    while len(joins) < n - 1 and n > n_clusters:
        if not chain:
            chain.append(int(gone.argmin()))
        last = chain[-1]
        rise = weight * (weight[last] / (weight + weight[last]))
        rise *= np.square(means - means[last]).sum(axis=1)
        rise[gone] = np.inf
        rise[last] = np.inf
        nearest = int(rise.argmin())
        if len(chain) < 2 or rise[nearest] < rise[chain[-2]]:
            chain.append(nearest)
            continue
        least = float(rise[chain[-2]])
        one, other = sorted((chain.pop(), chain.pop()))
        joins.append((least, one, other))
        both = weight[one] + weight[other]
        means[one] += (weight[other] / both) * (means[other] - means[one])
        weight[one], gone[other] = both, True
    joins.sort(key=lambda join: join[0])
    cluster = np.arange(n)
    for _, one, other in joins[: max(n - n_clusters, 0)]:
        cluster[cluster == cluster[other]] = cluster[one]
    _, first, number = np.unique(cluster, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]


def joined(
    fit_rows: FitRows[Table], leaves: Leaves, leaf_of_row: Codes
) -> tuple[GrownTree, GroupMeans]:
    """Join the core leaves to clusters, which the others join; return means of the clusters."""
    tests = leaves.tests
    left = tests.children_left
    ids, place = np.unique(leaf_of_row, return_inverse=True)  # the leaves with rows
    found = fit_rows.group_means(place.astype(np.uint32), len(ids))
    units = fit_rows.units
    means = (found.means - units.shift) / units.scale + found.rest
    core = leaves.core[ids]
    cluster = np.full(len(ids), -1)
    cluster[core] = join_nearest(found.weight[core], means[core], leaves.n_clusters)
    k = int(cluster.max()) + 1
    weight, centers = np.zeros(k), np.zeros((k, means.shape[1]))
    np.add.at(weight, cluster[core], found.weight[core])
    np.add.at(centers, cluster[core], found.weight[core, None] * means[core])
    centers /= weight[:, None]
    for leaf in np.flatnonzero(~core):
        cluster[leaf] = np.square(centers - means[leaf]).sum(axis=1).argmin()

    # By node: weight by cluster, and spread of the rows.
    label_weight, total, spread = np.zeros((len(left), k)), np.zeros(len(left)), np.zeros(len(left))
    label_weight[ids, cluster] = found.weight
    total[ids], spread[ids] = found.weight, found.spread
    add_up(left, label_weight)
    # Means of the nodes with rows whose parent has none yet: the tree may have many more nodes.
    node_means = dict(zip(ids.tolist(), means, strict=True))
    for node in np.flatnonzero(left >= 0)[::-1].tolist():
        one, other = int(left[node]), int(left[node]) + 1
        total[node] = total[one] + total[other]
        spread[node] = spread[one] + spread[other]
        pair = [node_means.pop(child) for child in (one, other) if child in node_means]
        if len(pair) == 2:
            share, apart = total[other] / total[node], pair[1] - pair[0]
            node_means[node] = pair[0] + share * apart
            spread[node] += share * total[one] * float(np.square(apart).sum())
        elif pair:
            node_means[node] = pair[0]
    of_node = label_weight.argmax(axis=1)
    for node in np.flatnonzero(left >= 0):  # a leaf without rows has the cluster of its parent
        for child in (left[node], left[node] + 1):
            if total[child] == 0:
                of_node[child] = of_node[node]
    codes = of_node[leaf_of_row]
    grown = GrownTree.of_rows(
        tests,
        None,
        leaf_of_row,
        codes,
        k,
        fit_rows.weight,
        feature_scale=None,
        cost=spread,
        cluster=of_node,
    )
    near = centers * units.scale + units.shift
    return grown, fit_rows.group_means(codes.astype(np.uint32), near)
