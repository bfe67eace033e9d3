"""Base of the trees that explain k-means or k-medians: IMM, ExKMC, Voronoi trees."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np

from .. import _engine
from .._base import (
    COST_PATH,
    EXPLAINING,
    INERTIA_PATH,
    NO_NEGATIVE_INERTIA,
    POSITIVE,
    Constraints,
    CostTree,
    Fields,
    FitRows,
    Growth,
    LeafMeans,
    ReferenceModel,
    SavedField,
    TrainingState,
    grow_tree,
)
from .._data import SparseTable, Table
from .._reference.centers import Centers, Criterion, cost_about
from .._reference.checks import DEFAULT_N_CLUSTERS, warn_of_far_centers, warn_of_lost
from .._reference.kmeans import Reference, make_reference
from .._util import IntArray, StrOptions, row_blocks
from ..tree import GrownTree, add_up


class CentersTree(CostTree, ReferenceModel, abstract=True):
    """A tree fitted to the distances of rows to centers."""

    _parameter_constraints: ClassVar[Constraints] = {
        **EXPLAINING,
        "criterion": [StrOptions({"kmeans", "kmedians"})],
    }
    _saved: ClassVar[Fields] = {
        "cluster_centers_": SavedField("k c"),
        "scale_": SavedField("d", required=True, check=POSITIVE),
        "inertia_": SavedField(check=NO_NEGATIVE_INERTIA),
        "reference_inertia_": SavedField(required=True, check=NO_NEGATIVE_INERTIA),
        "_cost_path": COST_PATH,
        "_inertia_path": INERTIA_PATH,
    }

    n_clusters: int | None
    criterion: Criterion
    reference: Any

    @property
    def _cost(self) -> Literal["kmeans", "kmedians"]:
        return self.criterion

    @property
    def _by_labels(self) -> bool:
        """Whether growth counts the rows of each label, and compares none with centers."""
        return False

    def _growth(self, n_clusters: int) -> Growth:
        """Return how to grow; raises ValueError if that does not suit the number of clusters."""
        raise NotImplementedError

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        feature_names: Any = None,
    ) -> Self:
        """Fit the tree.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_samples, n_features)
            numpy array, polars DataFrame or LazyFrame, pandas DataFrame or pyarrow Table of
            numbers. Do not modify X during the fit: columns are not copied.
            %(who_takes_sparse)s
            %(who_takes_mixed)s
        %(weight_fitted)s

        Raises
        ------
        ValueError
            If X holds inf, or NaN or null (but see X); a column of text has more than 255 levels;
            a time lies more than 285 years from 1970; or sizes do not fit: n_clusters and the rows,
            the reference, max_leaves.
        TypeError
            If a column is not numbers (but see X), or of a type that no method takes: times of day,
            lists, structs, objects.

        Warns
        -----
        ConvergenceWarning
            If clusters of the reference have no rows in the tree.
        UserWarning
            If the centers of a fitted estimator are far from its rows, as those of scaled
            columns are.
        """
        self._validate_params()
        self._warn_of_y(y)
        fit_rows = FitRows.read(
            self,
            X,
            sample_weight,
            feature_names=feature_names,
            reference=self.reference,
            n_clusters=self.n_clusters,
            by_labels=self._by_labels,
            mixed=self._takes_missing,
            sparse=self._takes_sparse,
        )
        given = fit_rows.reference
        growth = self._growth(self.n_clusters or given.n_clusters or DEFAULT_N_CLUSTERS)
        reference = make_reference(
            fit_rows,
            given,
            criterion=self.criterion,
            n_clusters=self.n_clusters,
            random_state=self.random_state,
            estimator_name=fit_rows.estimator_name,
            needs_distinct=growth.base is not None,
            follows_centers=growth.criterion == "label_cost",
            tell=fit_rows.tell(self.verbose),
        )
        warn_of_far_centers(fit_rows, given, reference.labels, stacklevel=2)
        grown = self._grow(fit_rows, reference, growth)
        base_centers = None
        if growth.base and isinstance(fit_rows.rows, Table):
            base_centers = fit_rows.encoding.numbers(reference.centers.high)
        tree = grown.build(reference.classes, fit_rows.table, fit_rows, base_centers)
        path = grown.cost_path(reference.minimum, growth.criterion == "label_cost")
        leaf_of_row = grown.leaf_of_row
        warn_of_lost(
            reference.n_clusters,
            tree.filled_clusters,
            reference.labels,
            self._lost_advice,
            stacklevel=3,
        )
        by_means = self.criterion == "kmeans"
        training = TrainingState(
            fit_rows.leaves_of_all(leaf_of_row, tree),
            LeafMeans.of(fit_rows, leaf_of_row, tree, reference.centers.high) if by_means else None,
            reference.centers.high,
        )
        if not by_means:
            clusters = tree.leaf_clusters[leaf_of_row]
            medians = Centers.of_labels(
                fit_rows, clusters, reference.n_clusters, self.criterion
            ).high
            medians = np.where(np.isnan(medians), reference.centers.high, medians)
            inertia = cost_about(fit_rows, medians, clusters, self.criterion)
        # Nothing is set before everything is known: a fit that fails leaves the estimator as it
        # was.
        self._set_tree(tree, fit_rows.names_given)
        self.scale_ = fit_rows.units.scale
        self.reference_labels_ = fit_rows.labels_of_all(self.classes_, reference.labels)
        self.reference_inertia_ = reference.inertia
        self._cost_path = path
        self._set_training(training)
        self._keep(grown)
        if not by_means:
            self.cluster_centers_, self.inertia_ = medians, inertia
        fit_rows.tell_result(self.verbose, tree.n_leaves, "surrogate cost", path[-1])
        return self

    def _warn_of_y(self, y: Any) -> None:
        """Warn where a user may expect that `y` is looked at."""

    def _keep(self, grown: GrownTree) -> None:
        """Keep what growth has found besides the tree."""

    def _grow(self, fit_rows: FitRows[Any], reference: Reference, growth: Growth) -> GrownTree:
        """Grow the tree."""
        fitted = grow_tree(
            fit_rows,
            reference.regrets,
            reference.labels,
            reference.n_clusters,
            growth,
            base_centers=reference.centers if growth.base else None,
            progress=fit_rows.progress(self.verbose),
        )
        return GrownTree.of(fitted)


def routed(
    fit_rows: FitRows[Any], tests: _engine.TestArrays, oblique: _engine.ObliqueArrays | None = None
) -> IntArray:
    """Return the leaf of every row of a fit."""
    rows, threads = fit_rows.rows, fit_rows.threads
    router = _engine.Router(tests, rows.n_features, oblique)
    is_sparse = isinstance(rows, SparseTable)
    leaves = (router.apply_sparse if is_sparse else router.apply)(rows.data, threads)
    assert leaves is not None, "the rows are finite, or the tree has directions"
    return leaves


def labelled_tree(
    fit_rows: FitRows[Any],
    reference: Reference,
    tests: _engine.TestArrays,
    oblique: _engine.ObliqueArrays | None = None,
    own: IntArray | None = None,
) -> GrownTree:
    """Route the rows of a fit through a tree and give each node the label that costs them least.

    `own`: by node id the cluster that each leaf was made for, -1 at inner nodes; None: leaves have
    the cheapest.
    """
    leaf_of_row = routed(fit_rows, tests, oblique)
    costs = np.zeros((len(tests.kind), reference.n_clusters))
    for block in row_blocks(*reference.regrets.shape):
        np.add.at(costs, leaf_of_row[block], reference.regrets[block])
    add_up(tests.children_left, costs)
    base_cost = None
    if own is not None:
        leaves = np.flatnonzero(own >= 0)
        base_cost = np.zeros(len(costs))
        base_cost[leaves] = costs[leaves, own[leaves]]
    return GrownTree.of_rows(
        tests,
        oblique,
        leaf_of_row,
        reference.labels,
        reference.n_clusters,
        fit_rows.weight,
        feature_scale=None if oblique is None else fit_rows.deviations(),
        cost=costs.min(axis=1),
        cluster=costs.argmin(axis=1),
        base_cluster=own,
        base_cost=base_cost,
    )
