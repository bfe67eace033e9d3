"""How good the clusters are beside the reference, and what changed against an older model."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from .._reference.kmeans import make_reference
from .._reference.read import ReferenceInput
from .._util import FloatArray, IntArray
from ..export.pictures.cost_path import true_costs
from ..metrics import cost_ratio, kmeans_cost
from ..metrics.costs import ratio_of_costs
from ..metrics.matching import contingency
from .rows import ReportRows


class ComparedWith(NamedTuple):
    """What costs are compared with, in words."""

    name: str
    label: str
    """A short name, for pictures."""
    is_one: bool = True
    """Whether it is one thing, in grammar."""
    note: str = ""
    """What the name leaves open."""


_GIVEN = {
    1: ComparedWith("the given labels", "given labels", is_one=False),
    2: ComparedWith("the given centers", "given centers", is_one=False),
}
UNKNOWN_REFERENCE = ComparedWith(
    "the reference", "reference", note=", which the model file does not hold"
)
_METHODS = {"kmeans": "k-means", "kmedians": "k-medians", "cosine": "spherical k-means"}


def compared_with(model: Any) -> ComparedWith:
    """Return what the costs of a fitted model are compared with: its reference."""
    reference = getattr(model, "reference", None)
    if hasattr(reference, "fit"):
        return ComparedWith(f"the reference ({type(reference).__name__})", "reference")
    if reference is not None:
        return _GIVEN[min(np.ndim(reference), 2)]
    # A model read from a file has labels of the reference again once it is fitted anew.
    was_read = "_not_saved" in vars(model) and "reference_labels_" not in vars(model)
    if was_read and "reference" in model.get_params(deep=False):
        return UNKNOWN_REFERENCE
    if hasattr(type(model), "kernel_cost_"):
        return _free("kernel k-means")
    return _free(_METHODS[getattr(model, "_cost", "kmeans")])


def _free(method: str) -> ComparedWith:
    name, note = "free clusters", f" ({method}), which need no rules"
    return ComparedWith(name, name, is_one=False, note=note)


class Quality(NamedTuple):
    """Costs of the clusters of a tree, over those of the reference."""

    ratio: float | None
    """None: not known."""
    word: str
    """What the cost is called."""
    beside: ComparedWith
    of_fit: bool
    """Whether it is of the rows of the fit; else of those of the report."""
    leaves: IntArray
    ratios: FloatArray
    """By number of leaves; both are empty if the smaller trees are not known."""
    explained: float | None
    """The share of the cost of one single cluster that the clusters do away with."""
    agreement: float | None
    """The share of the rows, by weight, that are in their reference cluster."""
    is_weighted: bool
    """Whether the rows of the fit had weights."""


def quality_of(model: Any, rows: ReportRows) -> Quality:
    """Return how good the clusters are beside the reference."""
    leaves, ratios = np.zeros(0, dtype=np.int64), np.zeros(0)
    ratio, explained, agreement, word = None, None, None, "cost"
    beside, is_weighted = compared_with(model), rows.tree is not None and rows.tree.is_weighted
    if hasattr(type(model), "cost_path_"):
        word, costs, reference = true_costs(model)
        path = model.cost_path_["n_leaves"].to_numpy()
        if np.isfinite(costs).all() and reference:
            leaves, ratios = path, costs / reference
            ratio = float(ratios[-1])
        if path[0] == 1 < path[-1] and np.isfinite(costs[[0, -1]]).all() and costs[0] > 0:
            explained = 1.0 - float(costs[-1] / costs[0])
    if ratio is None and hasattr(model, "reference_inertia_") and hasattr(model, "inertia_"):
        ratio = ratio_of_costs(model.inertia_, model.reference_inertia_)
    of_fit = ratio is not None
    if of_fit and rows.tree is not None and rows.tree.move is None:
        tree = rows.tree
        wrong = float(tree.mistakes[tree.leaves].sum() / tree.weighted_n_node_samples[0])
        agreement = 1.0 - wrong if np.isfinite(wrong) else None
    if ratio is None and rows.n_rows >= len(rows.classes):
        ratio, beside = _beside_kmeans(rows), _free("k-means")
    return Quality(ratio, word, beside, of_fit, leaves, ratios, explained, agreement, is_weighted)


def _beside_kmeans(rows: ReportRows) -> float:
    """Return the cost of the clusters over that of k-means on the rows of the report."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        free = make_reference(
            rows.weighted,
            ReferenceInput(),
            n_clusters=len(rows.classes),
            random_state=0,
            estimator_name="report",
            needs_distinct=False,
        )
    return cost_ratio(rows.table, rows.codes, free.labels, scale=rows.units)


class Move(NamedTuple):
    """What became of one cluster."""

    code: int
    old: Any
    """The label of the older cluster that it shares most rows with; None: it is new."""
    n_before: int
    sources: list[tuple[Any, int]]
    """The older clusters of its rows, and how many come from each, the most first."""


class Changes(NamedTuple):
    """What changed against an older model, on the rows of the report."""

    stayed: float
    """Share of the rows in the cluster that continues theirs."""
    moves: list[Move]
    gone: list[Any]
    """Labels of older clusters that none continues."""
    costs: tuple[float, float]
    """Of the older clusters and of these, each about their means."""


def changes_of(rows: ReportRows, previous: Any, X: Any) -> Changes:
    """Compare the clusters with those of an older model."""
    before = np.asarray(previous.predict(X))
    weights = np.ones(rows.n_rows)
    names, old_names, table = contingency(rows.codes, before, weights)
    pairs = dict(
        zip(*(side.tolist() for side in linear_sum_assignment(table, maximize=True)), strict=True)
    )
    counts = table.astype(np.int64)
    moves = []
    for place, code in enumerate(names.tolist()):
        own, old = counts[place], pairs.get(place)
        if old is not None and not own[old]:
            old = None
        order = [j for j in np.argsort(-own, kind="stable").tolist() if own[j]]
        moves.append(
            Move(
                code,
                None if old is None else old_names[old].item(),
                0 if old is None else int(counts[:, old].sum()),
                [(old_names[j].item(), int(own[j])) for j in order],
            )
        )
    continued = [move.old for move in moves]
    stayed = sum(int(counts[place, old]) for place, old in pairs.items())
    return Changes(
        stayed / max(rows.n_rows, 1),
        moves,
        [label for label in old_names.tolist() if label not in continued],
        (
            kmeans_cost(rows.table, before, scale=rows.units),
            kmeans_cost(rows.table, rows.codes, scale=rows.units),
        ),
    )
