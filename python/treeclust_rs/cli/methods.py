"""The methods of `fit`: one row of a table each.

A new method is a row: the parser, the checks of options, `fit`, `info` and the messages read what
they need from the table.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from .._base import SavedEstimator, TreeClusterer
from .._kernels import has_features
from ..estimators.best_tree import BestTree
from ..estimators.cltree import CLTree
from ..estimators.cubt import CUBT
from ..estimators.douglas.estimator import Douglas
from ..estimators.ex_greedy import ExGreedy
from ..estimators.ex_shallow import ExShallow
from ..estimators.exkmc import ExKMC
from ..estimators.imm import IMM
from ..estimators.kauri import Kauri
from ..estimators.kd_tree_clusters import KDTreeClusters
from ..estimators.kernel_exkmc import KernelExKMC
from ..estimators.kernel_expand import KernelExpand
from ..estimators.kernel_imm import KernelIMM
from ..estimators.kmeans_tree import KMeansTree
from ..estimators.oblique_tree import ObliqueTree
from ..estimators.random_cuts import RandomCuts
from ..estimators.spex_tree import SpExTree
from ..estimators.voronoi_tree import MAX_EXACT_CLUSTERS, VoronoiTree
from ..estimators.x_regression_tree import XRegressionTree
from . import facts
from .messages import UserError, either

KERNELS = (
    "linear",
    "rbf",
    "laplacian",
    "polynomial",
    "chi2",
    "additive_chi2",
    "cosine",
    "histogram_intersection",
    "hellinger",
)
"""Kernels that need no parameter of their own."""


@dataclass(frozen=True)
class Method:
    """A method: its estimator, its options, and what is printed of its models."""

    name: str
    estimator: type[SavedEstimator]
    summary: str
    """For the help of ``--method``."""
    nature: str
    """Why it does not take the options of other methods."""
    options: tuple[str, ...]
    """Options that not all methods take; each sets the parameter of its name."""
    facts: tuple[Callable[[Any], Iterator[tuple[str, str]]], ...]
    """What is printed below the tree, beside the numbers of clusters and leaves."""
    path: Callable[[Any], pl.DataFrame | None] = lambda _: None
    """The costs of its trees by number of leaves, if the models have them."""
    settings: Callable[[int], dict[str, Any]] = lambda _: {}
    """Parameters that follow from the number of clusters, where no option sets them."""
    check: Callable[[argparse.Namespace], None] = lambda _: None
    """Raises UserError for values of its options that do not go together."""
    is_maximum: bool = False
    """Whether ``-k`` is only an upper bound."""
    whole_tree: str = ""
    """What its trees are, if they cannot be cut down."""
    instead_of: Mapping[str, str] = field(default_factory=dict)
    """What to say to those who give an option of other methods that has another name here."""
    enough_leaves: str = "no further cut lowers the cost"
    """Why there may be fewer leaves than ``--leaves``."""

    @property
    def has_tree(self) -> bool:
        """Whether its models have a tree."""
        return issubclass(self.estimator, TreeClusterer)

    @property
    def no_tree(self) -> str:
        """Why its models cannot be drawn or cut down, if they have no tree."""
        return f"a model of {self.name} has no tree; info shows its bins and cells"

    @property
    def takes_reference(self) -> bool:
        """Whether it can explain clusters from outside."""
        return "--reference" in self.options

    @property
    def computes_costs_later(self) -> bool:
        """Whether its models compute their costs, of kernels, when they are asked for."""
        return self.takes_reference and "--kernel" in self.options

    def default(self, parameter: str) -> Any:
        """Return the estimator's default of a parameter."""
        return self.estimator().get_params(deep=False)[parameter]


def _check_surrogate_features(arguments: argparse.Namespace) -> None:
    if not has_features(arguments.kernel or "rbf"):
        possible = [name for name in KERNELS if has_features(name)]
        raise UserError(
            f"--method kernel-imm goes with --kernel {either(possible)}; kernel-exkmc and "
            "kernel-expand take every kernel."
        )


_KERNEL = ("--kernel", "--gamma", "--approximation", "--n-components")
_LIMITS = ("--leaves", "--max-depth", "--min-samples-leaf")
_GROWTH = (*_LIMITS, "--cuts", "--base-tree")
_EXPLAINED = (facts.parameters, facts.costs, facts.agreement)
_SURROGATE = ("--n-init", *_KERNEL)
_KERNEL_EXPLAINED = (facts.kernel, facts.kernel_costs, facts.costs, facts.agreement)

_ROWS = (
    Method(
        "best",
        BestTree,
        summary="best (default) searches for the best tree of --leaves",
        nature="a best tree has threshold cuts, found by search from other trees",
        options=("--reference", *_LIMITS, "--objective", "--effort", "--max-time"),
        instead_of={"--criterion": "; it takes --objective kmedians"},
        facts=(facts.search, *_EXPLAINED),
        path=facts.searched_path,
    ),
    Method(
        "exkmc",
        ExKMC,
        summary="exkmc explains k-means and grows up to --leaves",
        nature="an exkmc tree explains the clusters of k-means, or of --reference",
        options=("--reference", "--criterion", *_GROWTH),
        facts=_EXPLAINED,
        path=facts.cost_path,
    ),
    Method(
        "imm",
        IMM,
        summary="imm has one leaf per cluster",
        nature="an imm tree has threshold cuts and one leaf per cluster",
        options=("--reference", "--criterion", "--cut-score"),
        facts=_EXPLAINED,
    ),
    Method(
        "ex-greedy",
        ExGreedy,
        summary="ex-greedy has one leaf per cluster and takes the cheapest cuts",
        nature="an ex-greedy tree has threshold cuts and one leaf per cluster",
        options=("--reference", "--criterion"),
        facts=_EXPLAINED,
    ),
    Method(
        "ex-shallow",
        ExShallow,
        summary="ex-shallow has one leaf per cluster and cuts of little cost and depth",
        nature="an ex-shallow tree has threshold cuts and one leaf per cluster",
        options=("--reference", "--criterion", "--depth-factor"),
        facts=_EXPLAINED,
    ),
    Method(
        "random-cuts",
        RandomCuts,
        summary="random-cuts has one leaf per cluster and the best of --n-trials random trees",
        nature="a random-cuts tree has threshold cuts and one leaf per cluster",
        options=("--reference", "--criterion", "--n-trials", "--include-greedy"),
        facts=_EXPLAINED,
    ),
    Method(
        "kauri",
        Kauri,
        summary="kauri makes clusters and tree at once",
        nature="a kauri tree has threshold cuts and makes its clusters itself",
        options=(*_LIMITS, *_KERNEL, "--moves"),
        facts=(facts.moves, facts.kernel, facts.objective),
        is_maximum=True,
        enough_leaves="no further split gains",
    ),
    Method(
        "cubt",
        CUBT,
        summary="cubt grows a tree on the columns, prunes it and joins its leaves to clusters",
        nature="a cubt tree has threshold cuts and makes its clusters itself",
        options=(*_LIMITS, "--min-dist"),
        facts=(facts.own_cost,),
        whole_tree="leaves that were joined to clusters",
        is_maximum=True,
        enough_leaves="no further cut gains enough, or leaves lie close",
    ),
    Method(
        "cltree",
        CLTree,
        summary="cltree makes clusters of dense regions",
        nature="a cltree makes its clusters and leaves itself, of dense and sparse regions",
        options=("--min-y", "--min-rd"),
        facts=(facts.own_cost, facts.sparse_rows),
        whole_tree="leaves that were joined to clusters",
        is_maximum=True,
    ),
    Method(
        "douglas",
        Douglas,
        summary="douglas makes clusters by soft bins of few columns, and has no tree",
        nature="douglas makes its clusters itself, and has soft bins in place of a tree",
        options=("--gemini", "--n-cuts", "--prune", "--n-init", "--max-iter"),
        facts=(facts.bins,),
    ),
    Method(
        "oblique",
        ObliqueTree,
        summary="oblique fits clusters and a tree of weighted sums together",
        nature="an oblique tree has weighted sums of columns as tests, fitted with the clusters",
        options=(
            *("--reference", "--leaves", "--alpha", "--max-depth", "--relax"),
            *("--n-init", "--max-iter"),
        ),
        facts=_EXPLAINED,
        enough_leaves="no further test is worth its price",
    ),
    Method(
        "voronoi",
        VoronoiTree,
        summary="voronoi has the bisectors of the centers "
        f"(exact up to {MAX_EXACT_CLUSTERS} clusters)",
        nature="a voronoi tree has bisectors of centers, those of k-means or --reference, as tests",
        options=("--reference",),
        facts=_EXPLAINED,
        settings=lambda n_clusters: {"exact": n_clusters <= MAX_EXACT_CLUSTERS},
        whole_tree="a tree of bisectors",
    ),
    Method(
        "kernel-imm",
        KernelIMM,
        summary="kernel-imm explains kernel k-means by one leaf per cluster",
        nature="a kernel-imm tree has one leaf per cluster of kernel k-means, or of --reference",
        options=("--reference", *_SURROGATE),
        facts=_KERNEL_EXPLAINED,
        check=_check_surrogate_features,
    ),
    Method(
        "kernel-exkmc",
        KernelExKMC,
        summary="kernel-exkmc explains kernel k-means and grows up to --leaves",
        nature="a kernel-exkmc tree explains the clusters of kernel k-means, or of --reference",
        options=("--reference", *_GROWTH, *_SURROGATE),
        facts=(facts.kernel, facts.costs, facts.agreement),
        path=facts.cost_path,
    ),
    Method(
        "kernel-expand",
        KernelExpand,
        summary="kernel-expand explains any labels, by fewest mistakes",
        nature="a kernel-expand tree explains the clusters of kernel k-means, or of --reference",
        options=("--reference", *_GROWTH, *_SURROGATE),
        facts=_KERNEL_EXPLAINED,
        path=facts.mistakes_path,
    ),
    Method(
        "kmeans-tree",
        KMeansTree,
        summary="kmeans-tree is a classification tree on the labels",
        nature="a kmeans-tree has threshold cuts that follow labels, not distances",
        options=("--reference", *_LIMITS, "--impurity"),
        facts=_EXPLAINED,
        path=facts.cost_path,
        enough_leaves="every leaf has one label",
    ),
    Method(
        "spex",
        SpExTree,
        summary="spex explains any labels, and keeps each together",
        nature="a spex tree has threshold cuts that follow labels, not distances",
        options=("--reference", *_LIMITS),
        facts=_EXPLAINED,
        path=facts.cost_path,
        enough_leaves="every leaf has one label",
    ),
    Method(
        "kd-tree",
        KDTreeClusters,
        summary="kd-tree halves the rows along the column that varies most",
        nature="a kd-tree has threshold cuts that do not look at the clusters",
        options=("--reference", *_LIMITS),
        facts=_EXPLAINED,
        path=facts.cost_path,
        enough_leaves="the rows of every leaf are equal",
    ),
    Method(
        "x-regression",
        XRegressionTree,
        summary="x-regression is a regression tree of the columns on themselves",
        nature="an x-regression tree has threshold cuts that do not look at the clusters",
        options=("--reference", *_LIMITS),
        facts=_EXPLAINED,
        path=facts.cost_path,
        enough_leaves="the rows of every leaf are equal",
    ),
)
METHODS = {method.name: method for method in _ROWS}
"""All methods by name; the first is the default."""

MIXED_METHODS = (
    "Text, times and missing cells are for --method best (the default), exkmc, imm, kmeans-tree, "
    "spex, kauri with --kernel linear and no --approximation, and kernel-expand with --reference "
    "and --base-tree none."
)
"""Which methods take tables as people have them: what refusals end with."""


def method_of(model: SavedEstimator) -> Method:
    """Return the row of a model's class."""
    for method in _ROWS:
        if type(model) is method.estimator:
            return method
    raise UserError(
        f"the model is a {type(model).__name__}, which has no tree: only predict takes such a file."
    )


def attribute_of(option: str) -> str:
    """Return the attribute of the parsed arguments: that of ``--n-cuts`` is ``n_cuts``."""
    return option.removeprefix("--").replace("-", "_")


def parameter_of(option: str) -> str:
    """Return the parameter of estimators that an option sets."""
    return "max_leaves" if option == "--leaves" else attribute_of(option)


def takers_of(option: str) -> Sequence[str]:
    """Return the names of the methods that take an option."""
    return [method.name for method in _ROWS if option in method.options]


def shared_options() -> Sequence[str]:
    """Return the options that some methods take and others do not, each once."""
    return list(dict.fromkeys(option for method in _ROWS for option in method.options))
