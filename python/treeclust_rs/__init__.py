"""Interpretable clustering: trees whose leaves are clusters, and whose rules people can read."""

from importlib import import_module
from typing import Any

from ._base import load
from ._data import text_to_numbers
from .estimators.best_tree import BestTree
from .estimators.cltree import CLTree
from .estimators.cubt import CUBT
from .estimators.douglas.estimator import Douglas
from .estimators.ex_greedy import ExGreedy
from .estimators.ex_shallow import ExShallow
from .estimators.exkmc import ExKMC
from .estimators.imm import IMM
from .estimators.kauri import Kauri
from .estimators.kd_tree_clusters import KDTreeClusters
from .estimators.kernel_exkmc import KernelExKMC
from .estimators.kernel_expand import KernelExpand
from .estimators.kernel_imm import KernelIMM
from .estimators.kernel_kmeans import KernelKMeans
from .estimators.kmeans_tree import KMeansTree
from .estimators.oblique_tree import ObliqueTree
from .estimators.random_cuts import RandomCuts
from .estimators.spex_tree import SpExTree
from .estimators.voronoi_tree import VoronoiTree
from .estimators.x_regression_tree import XRegressionTree
from .tree import ClusterTree

__version__ = "0.1.0"

__all__ = [
    "CUBT",
    "IMM",
    "BestTree",
    "CLTree",
    "ClusterTree",
    "Douglas",
    "ExGreedy",
    "ExKMC",
    "ExShallow",
    "KDTreeClusters",
    "KMeansTree",
    "Kauri",
    "KernelExKMC",
    "KernelExpand",
    "KernelIMM",
    "KernelKMeans",
    "ObliqueTree",
    "RandomCuts",
    "SpExTree",
    "VoronoiTree",
    "XRegressionTree",
    "compare",
    "load",
    "report",
    "text_to_numbers",
]


def __getattr__(name: str) -> Any:
    """Import what the estimators do not need on first use."""
    if name in ("parts", "selection"):
        return import_module(f".{name}", __name__)
    if name in ("dask", "ray", "spark"):
        return import_module(f".parts.on_{name}", __name__)
    if name == "compare":
        return import_module(".selection", __name__).compare
    if name == "report":
        return import_module(".reports", __name__).report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, those of the first use too."""
    hidden = {"Any", "import_module"}
    return sorted({*globals(), *__all__, "dask", "parts", "ray", "selection", "spark"} - hidden)
