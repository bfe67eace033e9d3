"""A picture of what the trees of a model cost by their number of leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._util import FloatArray, format_count, knee
from .drawing import FONTSIZE, INK, LINE, QUIET, line_axes, mark_point

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_cost_path(model: Any, ax: Axes | None = None) -> Axes:
    """Draw cost and surrogate of a model's trees against their number of leaves, and the knee.

    The knee is where more leaves begin to pay little: the number of leaves, of those from one per
    cluster on, whose cost lies farthest below the straight line from the first to the least. So
    it depends on how far the tree was grown. Where no cost lies below that line, the mark is where
    the cost ceases to fall, and there is none if it falls up to the last.

    Parameters
    ----------
    model : estimator
        Fitted, with a `cost_path_`: `ExKMC`, `BestTree`, `KMeansTree`, `KernelExKMC` and so on.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes
        The cost is `inertia` of the path; of kernel models the `kernel_cost_`, computed anew for
        each number of leaves (those read from a file have the former only), and their surrogate has
        an axis of its own on the right, as have the mistakes of a `BestTree` with
        ``objective="labels"``. The smaller trees of a `BestTree` are pruned from the whole one: a
        fit with fewer leaves finds better ones (`treeclust_rs.selection.choose_leaves`).
        Where the costs of smaller trees are not known, as with
        ``criterion="kmedians"``, the knee is that of the surrogate.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError
        If the model has no `cost_path_`, as a `ClusterTree`, `Kauri` and trees of scikit-learn.
    NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> plot_cost_path(model).figure.savefig("costs.png")  # doctest: +SKIP
    """
    if isinstance(model, type) or not hasattr(type(model), "cost_path_"):
        name = model.__name__ if isinstance(model, type) else type(model).__name__
        raise TypeError(
            f"{name} has no cost_path_, the costs by number of leaves: give a fitted model that "
            "has one, such as ExKMC or BestTree."
        )
    check_is_fitted(model)
    path = model.cost_path_
    leaves, surrogate = path["n_leaves"].to_numpy(), path["cost"].to_numpy()
    word, cost, reference = true_costs(model)
    ax = line_axes("cost path", ax, "leaves", word)
    dashes: dict[str, Any] = {"color": QUIET, "linewidth": 1.2, "linestyle": "--"}
    marks: dict[str, Any] = {"marker": "o", "markersize": 4}
    ax.plot(leaves, cost, color=LINE, linewidth=1.4, label=word, zorder=3, **marks)
    right = ax
    counts_rows = getattr(model, "objective", None) == "labels"
    what = "mistakes" if counts_rows else "surrogate"
    if counts_rows or hasattr(type(model), "kernel_cost_"):
        right = ax.twinx()
        right.set_ylabel(what, fontsize=FONTSIZE, color=INK)
        right.tick_params(labelsize=FONTSIZE, colors=INK)
        right.spines["top"].set_visible(False)
    right.plot(leaves, surrogate, **dashes, **marks)
    ax.plot([], [], label=what if right is ax else f"{what} (right)", **dashes, **marks)
    if reference is not None:
        ax.axhline(reference, color=QUIET, linewidth=0.8, zorder=0, label="reference")
    is_known = bool(np.isfinite(cost).all())
    curve = cost if is_known else surrogate
    first = int(np.searchsorted(leaves, min(model.n_clusters_, leaves[-1])))
    place = knee(leaves[first:], curve[first:])
    if place is not None and len(leaves) - first > 1:
        at = first + place
        label = f"knee: {format_count(int(leaves[at]), 'leaf', 'leaves')}"
        mark_point(ax if is_known else right, float(leaves[at]), float(curve[at]), label)
    ax.legend(fontsize=FONTSIZE, frameon=False)
    return ax


def true_costs(model: Any) -> tuple[str, FloatArray, float | None]:
    """Return what the costs are called, one for each number of leaves, and the reference's.

    NaN where a cost is not known.
    """
    leaves = model.cost_path_["n_leaves"].to_list()
    if hasattr(type(model), "kernel_cost_"):
        trees = [model.truncate(number) for number in leaves]
        if hasattr(trees[0], "kernel_cost_"):
            costs = np.array([tree.kernel_cost_ for tree in trees])
            return "kernel cost", costs, model.reference_kernel_cost_
    costs = model.cost_path_["inertia"].fill_null(float("nan")).to_numpy()
    return "cost", costs, getattr(model, "reference_inertia_", None)
