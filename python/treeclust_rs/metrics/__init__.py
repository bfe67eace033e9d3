"""How good a clustering is, how much its explanation cost, and how long the explanation is."""

from .._util import documented
from .costs import (
    cost_ratio,
    kernel_cost,
    kmeans_cost,
    kmeans_scorer,
    ratio_of_costs,
    surrogate_cost,
)
from .explanations import (
    features_per_node,
    n_conditions,
    n_parameters,
    weighted_average_depth,
    weighted_average_explanation_size,
)
from .matching import adjusted_rand_index, agreement
from .profiles import Profile

__all__ = [
    "Profile",
    "adjusted_rand_index",
    "agreement",
    "cost_ratio",
    "features_per_node",
    "kernel_cost",
    "kmeans_cost",
    "kmeans_scorer",
    "n_conditions",
    "n_parameters",
    "ratio_of_costs",
    "surrogate_cost",
    "weighted_average_depth",
    "weighted_average_explanation_size",
]

for _name in __all__:
    documented(globals()[_name])
