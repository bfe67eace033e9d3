"""Base of the trees that explain k-means or k-medians: IMM, ExKMC, Voronoi trees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from .._base import EXPLAINING, CenterModel, Constraints, FitRows, Growth, grow_tree
from .._base.saving import NO_NEGATIVE_INERTIA, POSITIVE, Fields, SavedField
from .._base.truncation import COST_PATH, CostTree, LeafSums, TrainingState
from .._data import Table
from .._reference.centers import Criterion, cost_of_labels, own_medians
from .._reference.checks import DEFAULT_N_CLUSTERS
from .._reference.kmeans import Reference, make_reference
from .._util import Codes, FloatArray, IntArray, StrOptions
from ..tree import ClusterTree, GrownTree

# A cost computed as a difference of two sums is accepted down to this share of the first of them.
_MIN_SHARE = 1e-6


class CentersTree(CostTree, CenterModel, abstract=True):
    """A tree fitted to the distances of rows to centers."""

    _parameter_constraints: ClassVar[Constraints] = {
        **EXPLAINING,
        "criterion": [StrOptions({"kmeans", "kmedians"})],
    }
    _saved: ClassVar[Fields] = {
        "cluster_centers_": SavedField("k d"),
        "scale_": SavedField("d", required=True, check=POSITIVE),
        "inertia_": SavedField(check=NO_NEGATIVE_INERTIA),
        "reference_inertia_": SavedField(required=True, check=NO_NEGATIVE_INERTIA),
        "_cost_path": COST_PATH,
    }

    n_clusters: int | None
    criterion: Criterion
    reference: Any

    @property
    def _cost(self) -> Literal["kmeans", "kmedians"]:
        return self.criterion

    def _growth(self, n_clusters: int) -> Growth:
        """Return how to grow; raises ValueError if that does not suit the number of clusters."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: ARG002
        """Fit the tree.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            numpy array, polars DataFrame or LazyFrame, pandas DataFrame or pyarrow Table of
            numbers. Do not modify X during the fit: columns are not copied.
        %(weight_fitted)s

        Raises
        ------
        ValueError
            If X holds NaN, inf or null, or sizes do not fit: n_clusters and the rows, the
            reference, max_leaves.
        TypeError
            If a column is not numbers.
        """
        self._validate_params()
        fit_rows = FitRows.read(
            self, X, sample_weight, reference=self.reference, n_clusters=self.n_clusters
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
        )
        grown = self._grow(fit_rows, reference, growth)
        tree = grown.build(reference.classes, fit_rows.table)
        path = grown.cost_path(reference.minimum, growth.criterion == "label_cost")
        leaf_of_row = grown.leaf_of_row
        by_means = self.criterion == "kmeans"
        training = _Training(
            fit_rows.leaves_of_all(leaf_of_row, tree),
            LeafSums.of(fit_rows, leaf_of_row, tree) if by_means else None,
            fit_rows.units,
            reference.centers.in_units,
        )
        centers, inertia = _centers_and_inertia(
            training, tree, float(path[-1]), fit_rows, leaf_of_row, reference
        )
        # Nothing is set before everything is known: a fit that fails leaves the estimator as it
        # was.
        self._set_tree(tree)
        self.scale_ = fit_rows.units.scale
        self.reference_inertia_ = reference.inertia
        self._cost_path = path
        self._set_training(training)
        self.cluster_centers_, self.inertia_ = centers, inertia
        progress = fit_rows.progress(self.verbose)
        if progress is not None:
            progress(tree.n_leaves, self._last_gain())
        return self

    def _grow(self, fit_rows: FitRows[Table], reference: Reference, growth: Growth) -> GrownTree:
        """Grow the tree."""
        fitted = grow_tree(
            fit_rows,
            reference.regrets,
            reference.labels,
            growth,
            base_centers=reference.centers if growth.base else None,
            progress=fit_rows.progress(self.verbose),
        )
        return GrownTree.of(fitted)

    def _set_centers(self, training: TrainingState) -> None:
        self.cluster_centers_, self.inertia_ = _of_sums(
            training, self.tree_, float(self._cost_path[-1])
        )


@dataclass(frozen=True, eq=False)
class _Training(TrainingState):
    """Of a centers tree: its sums have one entry per leaf."""

    def truncate(self, kept: IntArray) -> Self:
        training = super().truncate(kept)
        sums = training.leaf_sums
        return training if sums is None else replace(training, leaf_sums=sums.merged())


def _of_sums(
    training: TrainingState, tree: ClusterTree, surrogate: float
) -> tuple[FloatArray, float]:
    """Return the means of the clusters in the columns' own units, and the cost about them.

    The cost about the means is that about the reference's centers, `surrogate`, less what moving
    the centers saves.
    """
    assert training.reference_centers is not None
    weight, means = training.means(tree)
    moved = ((means - training.reference_centers) ** 2).sum(axis=1)
    return training.own(means), max(surrogate - float(weight @ moved), 0.0)


def _centers_and_inertia(
    training: TrainingState,
    tree: ClusterTree,
    surrogate: float,
    fit_rows: FitRows[Table],
    leaf_of_row: Codes,
    reference: Reference,
) -> tuple[FloatArray, float]:
    """Return the centers of the clusters in the columns' own units, and the cost about them."""
    clusters = tree.leaf_clusters[leaf_of_row]
    criterion: Criterion = "kmedians" if training.leaf_sums is None else "kmeans"
    inertia = 0.0
    if criterion == "kmeans":
        centers, inertia = _of_sums(training, tree, surrogate)
    else:
        centers = own_medians(fit_rows, clusters, reference.n_clusters)
        empty = np.isnan(centers).any(axis=1)
        centers[empty] = reference.centers.high[empty]
    # The two sums cancel where the reference's centers lie far from their rows.
    if criterion == "kmedians" or inertia < _MIN_SHARE * surrogate:
        inertia = cost_of_labels(fit_rows, fit_rows.units.of_points(centers), clusters, criterion)
    return centers, inertia
