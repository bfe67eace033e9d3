"""Every public estimator: what the suites that hold for all of them go through."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import treeclust_rs as tc


@dataclass(frozen=True)
class Case:
    """An estimator with options that keep fits on a few rows quick, and what it can do."""

    estimator: type
    options: dict[str, Any]
    explains: bool = True  # takes `reference=`
    kernel: bool = False  # its cost is that of a kernel
    has_tree: bool = True  # ends in a ClusterTree
    has_path: bool = True  # its smaller trees are known: `truncate`
    has_rules: bool = True  # `explain`, `rules`, `to_polars`: all but a clustering alone
    weighted: bool = True  # takes sample_weight
    at_most: bool = False  # n_clusters is an upper limit
    has_empty_leaves: bool = False  # space without rows is a leaf
    saving: dict[str, Any] = field(default_factory=dict)  # of `save`

    def make(self, n_clusters: int | None = 3, **options: Any) -> Any:
        """Return an estimator; the number of clusters is by position, as users write it."""
        return self.estimator(n_clusters, **({"random_state": 0} | self.options | options))


# A new estimator is one line here.
ESTIMATORS = {
    "BestTree": Case(tc.BestTree, {"max_leaves": 5, "effort": "quick"}),
    "IMM": Case(tc.IMM, {}),
    "IMM-emn": Case(tc.IMM, {"cut_score": "emn"}),
    "ExGreedy": Case(tc.ExGreedy, {}),
    "ExShallow": Case(tc.ExShallow, {}),
    "RandomCuts": Case(tc.RandomCuts, {"n_trials": 3}),
    "ExKMC": Case(tc.ExKMC, {"max_leaves": 5}),
    "ExKMC-interval": Case(tc.ExKMC, {"max_leaves": 5, "base_tree": None, "cuts": "interval"}),
    "KMeansTree": Case(tc.KMeansTree, {"max_leaves": 5}),
    "SpExTree": Case(tc.SpExTree, {"max_leaves": 5}),
    "KDTreeClusters": Case(tc.KDTreeClusters, {"max_leaves": math.inf}),
    "XRegressionTree": Case(tc.XRegressionTree, {"max_leaves": 5}),
    "VoronoiTree": Case(tc.VoronoiTree, {}, has_path=False),
    "VoronoiTree-small": Case(tc.VoronoiTree, {"exact": False}),
    "ObliqueTree": Case(tc.ObliqueTree, {}, has_path=False),
    "ObliqueTree-axis": Case(tc.ObliqueTree, {"splits": "axis"}, has_path=False),
    "CUBT": Case(tc.CUBT, {}, explains=False, has_path=False, at_most=True),
    "CLTree": Case(
        tc.CLTree, {}, explains=False, has_path=False, at_most=True, has_empty_leaves=True
    ),
    "Kauri": Case(tc.Kauri, {}, explains=False, at_most=True),
    "Kauri-rbf": Case(tc.Kauri, {"kernel": "rbf"}, explains=False, kernel=True, at_most=True),
    "KernelKMeans": Case(
        tc.KernelKMeans, {}, explains=False, kernel=True, has_tree=False, has_path=False,
        has_rules=False, saving={"rows": True},
    ),
    "KernelIMM": Case(tc.KernelIMM, {}, kernel=True),
    "KernelExKMC": Case(tc.KernelExKMC, {"max_leaves": 5}, kernel=True),
    "KernelExpand": Case(tc.KernelExpand, {"max_leaves": 5}, kernel=True),
    "Douglas": Case(
        tc.Douglas, {"n_init": 2, "max_iter": 20}, explains=False, has_tree=False, has_path=False,
        weighted=False,
    ),
}  # fmt: skip
