"""What `fit` and `info` print of a model."""

from __future__ import annotations

from typing import Any

from .facts import costs
from .methods import method_of

__all__ = ["print_fact", "print_facts", "print_fit", "shown"]


def print_fit(
    model: Any, n_clusters: int | None, max_leaves: int | None = None, *, with_costs: bool = True
) -> None:
    """Print a model that was just fitted, and whether it has fewer clusters than asked for."""
    print(shown(model))
    print()
    if n_clusters is not None and len(model.classes_) < n_clusters:
        most = "at most " if method_of(model).is_maximum else ""
        print_fact("asked for", f"{most}{n_clusters:,} clusters")
    print_facts(model, max_leaves, with_costs=with_costs)


def print_facts(model: Any, max_leaves: int | None = None, *, with_costs: bool = True) -> None:
    """Print the facts about a model; without costs where they would have to be computed."""
    method = method_of(model)
    if method.has_tree:
        tree = model.tree_
        print_fact("clusters", f"{len(tree.classes):,}")
        leaves = f"{tree.n_leaves:,}"
        if max_leaves is not None and tree.n_leaves < max_leaves:
            leaves += f" ({max_leaves:,} asked for: {method.enough_leaves})"
        print_fact("leaves", f"{leaves}, at most {tree.max_depth:,} deep")
    for facts in method.facts:
        if with_costs or facts is not costs:
            for name, text in facts(model):
                print_fact(name, text)


def print_fact(name: str, text: str) -> None:
    """Print one fact."""
    print(f"  {name:<17} {text}")


def shown(model: Any) -> Any:
    """Return what of a model is printed: its tree, or the table of its cells."""
    return model.tree_ if method_of(model).has_tree else model.table_
