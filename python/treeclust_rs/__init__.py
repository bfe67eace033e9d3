"""Interpretable clustering: trees whose leaves are clusters, and whose rules people can read."""

from ._base import load
from .kauri import Kauri
from .kernel import KernelExKMC, KernelExpand, KernelIMM
from .kernel_kmeans import KernelKMeans
from .threshold import IMM, ExKMC
from .tree import ClusterTree
from .voronoi import VoronoiTree

__version__ = "0.1.0"

__all__ = [
    "IMM",
    "ClusterTree",
    "ExKMC",
    "Kauri",
    "KernelExKMC",
    "KernelExpand",
    "KernelIMM",
    "KernelKMeans",
    "VoronoiTree",
    "load",
]
