"""Facts about a model, as (name, text): the parts of what `fit` and `info` print."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from .._util.words import printable
from ..gemini import make_gemini
from ..metrics import n_parameters
from ..metrics.costs import ratio_of_costs
from ..tree import MOVES, ClusterTree, format_share, format_weight

_Facts = Iterator[tuple[str, str]]


def rows_by_cluster(tree: ClusterTree) -> str:
    """Return the number of rows of each cluster, over all its leaves, and their share."""
    rows = np.zeros(len(tree.classes), dtype=np.int64)
    np.add.at(rows, tree.leaf_clusters[tree.leaves], tree.n_node_samples[tree.leaves])
    return ", ".join(
        f"{printable(label)}: {n:,} ({format_share(n / rows.sum())})"
        for label, n in zip(tree.classes, rows.tolist(), strict=True)
    )


def parameters(model: Any) -> _Facts:
    """Yield the number of parameters of a tree with oblique tests."""
    if model.tree_.oblique_indptr is not None:
        yield "parameters", f"{n_parameters(model):,} (weights, biases, leaves)"


def true_costs(model: Any) -> _Facts:
    """Yield the costs of tree and reference; a model from a file may lack them."""
    if hasattr(model, "inertia_") and hasattr(model, "reference_inertia_"):
        yield "cost", f"{model.inertia_:,.6g}"
        yield "of the reference", f"{model.reference_inertia_:,.6g}"
        yield "ratio", f"{model.cost_ratio_:.4f}"


def own_cost(model: Any) -> _Facts:
    """Yield the cost of clusters that the tree made itself."""
    yield "cost", f"{model.inertia_:,.6g}"


def sparse_rows(model: Any) -> _Facts:
    """Yield the share of the rows of the fit in sparse regions."""
    tree = model.tree_
    sparse = tree.leaves[model.relative_density_[tree.leaves] < 1]
    share = tree.weighted_n_node_samples[sparse].sum() / tree.weighted_n_node_samples[0]
    yield "sparse", f"{len(sparse):,} of the leaves, with {format_share(share)} of the rows"


def costs(model: Any) -> _Facts:
    """Yield the costs, or at least their bounds.

    A tree that was cut down after it was read from an old file has only its cost about the
    reference's centers, which its own cost does not exceed.
    """
    yield from true_costs(model)
    is_bounded = hasattr(model, "cost_path_") and hasattr(model, "reference_inertia_")
    if is_bounded and not hasattr(model, "inertia_"):
        last = cost_path(model).tail(1)
        yield "cost", f"at most {last.item(0, 1):,.6g}"
        yield "of the reference", f"{model.reference_inertia_:,.6g}"
        yield "ratio", f"at most {last['ratio'].item():.4f}"


def search(model: Any) -> _Facts:
    """Yield the start of a search and what the search gained; models from files lack them."""
    if hasattr(model, "start_"):
        starts, last = model.starts_["objective"], model.search_path_["objective"][-1]
        gain = 1.0 - last / starts.min() if starts.min() else 0.0
        lower = "as low as" if gain <= 0 else f"{format_share(gain)} below"
        start = re.sub(r'effort="(\w+)"', r"--effort \1", model.start_)
        start = start.replace("CUBT", "CUBT (cuts by variance)")
        yield "search", f"from the tree of {start}; {lower} the best of {len(starts)} starts"
        if model.objective == "labels":
            yield "mistakes", f"{format_weight(last)}, at the start {format_weight(starts.min())}"


def cost_path(model: Any) -> pl.DataFrame:
    """Return the costs by number of leaves, with their ratio to the reference's.

    Where the cost of smaller trees is not known, the surrogate cost about the reference's centers.
    """
    path: pl.DataFrame = model.cost_path_
    if path["inertia"].null_count():
        path = path.select("n_leaves", pl.col("cost").alias("surrogate cost"))
    else:
        path = path.select("n_leaves", cost="inertia")
    if not hasattr(model, "reference_inertia_"):
        return path
    reference = model.reference_inertia_
    ratios = [ratio_of_costs(cost, reference) for cost in path.to_series(1)]
    return path.with_columns(pl.Series("ratio", ratios, dtype=pl.Float64))


def searched_path(model: Any) -> pl.DataFrame:
    """Return the path of a best tree: the smaller trees are pruned from the whole one."""
    if model.objective == "labels":
        return mistakes_path(model)
    path = cost_path(model)
    # About the whole tree's medians: the smaller trees' own cost less.
    return path.rename({"surrogate cost": "cost at most"} if "surrogate cost" in path else {})


def mistakes_path(model: Any) -> pl.DataFrame:
    """Return the path of a model whose growth lowers the weight of the rows with other labels."""
    path: pl.DataFrame = model.cost_path_
    return path.select("n_leaves", mistakes="cost")


def kernel_costs(model: Any) -> _Facts:
    """Yield the costs under the kernel; a model from a file may lack them."""
    if hasattr(model, "kernel_cost_") and hasattr(model, "reference_kernel_cost_"):
        yield "kernel cost", f"{model.kernel_cost_:,.6g}"
        yield "of the reference", f"{model.reference_kernel_cost_:,.6g}"
        yield "price", f"{model.price_of_explainability_:.4f}"


def agreement(model: Any) -> _Facts:
    """Yield the share of the rows of the fit that the tree leaves in their reference cluster."""
    tree = model.tree_
    share = 1.0 - float(tree.mistakes[tree.leaves].sum() / tree.weighted_n_node_samples[0])
    yield "agreement", f"{format_share(share)} of the rows are in their reference cluster"


def kernel(model: Any) -> _Facts:
    """Yield kernel and approximation."""
    is_lost = "kernel" in model.unsaved_params
    text = "a function, which the file does not hold" if is_lost else str(model.kernel)
    if model.gamma_ is not None:
        text += f", gamma {model.gamma_:.6g}"
    yield "kernel", text
    if model.approximation is not None:
        yield "approximation", f"{model.approximation}, at most {model.n_components:,} features"


def moves(model: Any) -> _Facts:
    """Yield the number of splits of each kind."""
    kinds = model.gains_["move"].to_list()
    counts = [f"{kinds.count(move):,} {move}" for move in MOVES if move in kinds]
    yield "moves", ", ".join(counts).replace("_", " ") or "none"


def objective(model: Any) -> _Facts:
    """Yield objective and cost of a model that explains no reference."""
    yield "objective", f"{model.objective_:,.6g}"
    yield "kernel cost", f"{model.kernel_cost_:,.6g}"
    if hasattr(model, "inertia_"):
        yield "cost", f"{model.inertia_:,.6g}"


def bins(model: Any) -> _Facts:
    """Yield clusters, columns and objective of soft bins."""
    cells = model.table_
    yield "clusters", f"{len(set(cells.clusters[cells.occupied].tolist())):,}"
    names = [cells.feature_name(feature) for feature in model.active_cut_points_.tolist()]
    yield "active columns", ", ".join(names) or "none"
    is_lost = "gemini" in model.unsaved_params
    name = "an object, which the file does not hold" if is_lost else make_gemini(model.gemini).name
    yield "gemini", f"{name}, {model.objective_:,.6g} in batches"
    agreed = format_share(model.rule_agreement_)
    yield "rules", f"{agreed} of the rows are where the model has them"
