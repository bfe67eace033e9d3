"""Interpretable clustering: trees whose leaves are clusters, and whose rules people can read."""

from ._model_file import load
from .douglas import Douglas
from .kauri import Kauri
from .kernel import KernelExKMC, KernelExpand, KernelIMM
from .kernel_kmeans import KernelKMeans
from .oblique import ObliqueTree
from .threshold import IMM, ExKMC
from .tree import ClusterTree
from .voronoi import VoronoiTree

__version__ = "0.1.0"

__all__ = [
    "IMM",
    "ClusterTree",
    "Douglas",
    "ExKMC",
    "Kauri",
    "KernelExKMC",
    "KernelExpand",
    "KernelIMM",
    "KernelKMeans",
    "ObliqueTree",
    "VoronoiTree",
    "load",
]
