"""How threshold trees are grown: from which base, by which criterion, within which limits."""

from dataclasses import dataclass
from typing import Any, Literal, Self

from .. import _engine
from .._kernels import SurrogateFeatures
from .._reference.centers import Centers
from .._util import Codes, FloatArray
from .fit_rows import FitRows


@dataclass(frozen=True)
class Limits:
    """Limits of growth; they do not limit the base tree."""

    max_leaves: int | float | None = None
    """None: one per cluster; inf: no limit."""
    max_depth: int | None = None
    min_samples_leaf: int = 1

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Return an estimator's parameters of these names."""
        return cls(estimator.max_leaves, estimator.max_depth, estimator.min_samples_leaf)

    def check(self, n_clusters: int, is_default: bool) -> None:
        """Raise ValueError if there are fewer leaves than clusters."""
        check_max_leaves(self.max_leaves, n_clusters, is_default)


def check_max_leaves(max_leaves: float | None, n_clusters: int, is_default: bool) -> None:
    """Raise ValueError if there are fewer leaves than clusters."""
    if max_leaves is not None and max_leaves < n_clusters:
        default = " (the default)" if is_default else ""
        raise ValueError(
            f"max_leaves={max_leaves} must be at least n_clusters={n_clusters}{default}."
        )


def most_leaves(max_leaves: float | None, n_clusters: int, n_rows: int) -> int:
    """Return the parameter `max_leaves` as a number that no tree exceeds.

    A leaf has a row, but of a base tree, which has one for each cluster, with rows or without.
    """
    if max_leaves is None:
        return n_clusters
    return int(min(max_leaves, n_clusters + n_rows))


@dataclass(frozen=True)
class Growth:
    """How a tree is grown."""

    base: Literal["imm", "kernel_imm"] | None
    """The tree that growth starts from; None: a single leaf."""
    cut_score: Literal["mistakes", "emn", "cost"] = "mistakes"
    """What the cuts of a base between centers make small: IMM's scores, or ExGreedy's cost."""
    depth_factor: float = 0.0
    """ExShallow's price of depth."""
    criterion: Literal["label_cost", "gini", "entropy", "clique"] = "label_cost"
    """What the cuts after the base make small."""
    interval: bool = False
    """Whether cuts after the base may be intervals."""
    limits: Limits = Limits()


def grow_tree(
    fit_rows: FitRows[Any],
    regrets: FloatArray | None,
    labels: Codes,
    n_clusters: int,
    growth: Growth,
    *,
    base_centers: Centers | None,
    least_costs: FloatArray | None = None,
    surrogate: SurrogateFeatures | None = None,
    progress: _engine.Progress | None,
) -> _engine.FittedTree:
    """Grow a tree in the core.

    `regrets`: n x k, weight times (cost of the label - cost of the row's cheapest); None: the row's
    weight for every label but its own.
    `least_costs`: n, weight times the latter, for a base with a price of depth.
    """
    limits = growth.limits
    base: _engine.CentersBase | _engine.ShallowBase | SurrogateFeatures | None = surrogate
    if base_centers is not None and least_costs is not None:
        base = _engine.ShallowBase(
            base_centers.high, base_centers.low, least_costs, growth.depth_factor
        )
    elif base_centers is not None:
        high = base_centers.high
        have_shares = base_centers.level_weights is not None or fit_rows.rows.levels is None
        if fit_rows.reference.centers is None and not have_shares:
            # Of the levels, medians have the most frequent ones alone, which many may share.
            high = fit_rows.with_shares(high, labels)
        base = _engine.CentersBase(high, base_centers.low, growth.cut_score)
    criterion: _engine.LabelCost | str = growth.criterion
    if criterion == "label_cost":
        criterion = _engine.LabelCost(regrets, growth.interval)
    return _engine.fit_tree(
        fit_rows.rows.data,
        labels,
        n_labels=n_clusters,
        base=base,
        criterion=criterion,
        sample_weight=fit_rows.weight,
        max_leaves=most_leaves(limits.max_leaves, n_clusters, fit_rows.rows.n_samples),
        max_depth=limits.max_depth,
        min_samples_leaf=limits.min_samples_leaf,
        n_jobs=fit_rows.threads,
        progress=progress,
    )
