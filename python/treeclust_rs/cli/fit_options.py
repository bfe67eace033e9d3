"""Options of `fit`: what they are, and which go together."""

import argparse
from pathlib import Path
from typing import Any

from .._kernels import APPROXIMATIONS, has_gamma
from .._reference.checks import DEFAULT_N_CLUSTERS
from ..gemini import GEMINIS
from . import arguments as read
from .messages import FileError, UserError, either
from .methods import KERNELS, METHODS, Method, attribute_of, shared_options, takers_of

# The scikit-learn way of drawing numbers takes seeds up to this one.
_MAX_SEED = 2**32 - 1


# ---- which go together --------------------------------------------------------------------


def check_fit_options(arguments: argparse.Namespace) -> None:
    """Raise UserError for options of `fit` that do not go together, before the table is read."""
    method = METHODS[arguments.method]
    for option in shared_options():
        if value_of(arguments, option) is not None and option not in method.options:
            takers = either(takers_of(option))
            other = method.instead_of.get(option, "")
            raise UserError(f"{option} goes with --method {takers}; {method.nature}{other}.")
    if arguments.unit and arguments.scale is not None:
        raise UserError(f"--unit does not go with --scale {arguments.scale}: give one of them.")
    if "--kernel" in method.options:
        _check_kernel_options(arguments, method)
    if arguments.stream:
        _check_stream(arguments)
    elif arguments.cache is not None:
        raise UserError("--cache goes with --stream: without it the table is read once.")
    check_leaves(arguments, arguments.leaves)


def check_leaves(arguments: argparse.Namespace, leaves: float | None) -> None:
    """Raise UserError for fewer leaves than clusters, before the table is read."""
    if leaves is None:
        return
    if arguments.clusters is not None and leaves < arguments.clusters:
        raise UserError(
            f"--leaves {leaves} is less than -k {arguments.clusters}: every cluster needs a leaf."
        )
    is_default = arguments.clusters is None and arguments.reference is None
    if is_default and leaves < DEFAULT_N_CLUSTERS:
        raise UserError(
            f"--leaves {leaves} is less than the {DEFAULT_N_CLUSTERS} clusters "
            "that are sought without -k: give -k too."
        )


def _check_stream(arguments: argparse.Namespace) -> None:
    """Raise UserError for options that a fit batch by batch does not take."""
    if arguments.method not in ("exkmc", "imm"):
        raise UserError("--stream goes with --method exkmc or imm: add one of these.")
    if arguments.cache is not None and not Path(arguments.cache).is_dir():
        raise FileError(f"--cache: {arguments.cache} is no folder.")


def _check_kernel_options(arguments: argparse.Namespace, method: Method) -> None:
    kernel = arguments.kernel or method.default("kernel")
    if arguments.gamma is not None and not has_gamma(kernel):
        with_gamma = [name for name in KERNELS if has_gamma(name)]
        raise UserError(
            f"--gamma goes with --kernel {either(with_gamma)}; the kernel {kernel} has none."
        )
    method.check(arguments)
    if arguments.approximation == "rff" and kernel != "rbf":
        raise UserError(
            "--approximation rff goes with --kernel rbf; nystroem and rpcholesky take every kernel."
        )
    if arguments.n_components is not None and arguments.approximation is None:
        raise UserError("--n-components goes with --approximation; without it the kernel is exact.")


def value_of(arguments: argparse.Namespace, option: str) -> Any:
    """Return the value of an option, None if the user did not set it."""
    return getattr(arguments, attribute_of(option))


# ---- what they are ------------------------------------------------------------------------


def add_fit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `fit`, but those on how the table is written."""
    add_columns(parser)
    add_clusters(parser).add_argument(
        "--criterion",
        choices=("kmeans", "kmedians"),
        help="squared or absolute distances to centers (default: kmeans); best has --objective",
    )
    for add in (_add_tree, _add_bins, _add_kernel, _add_output):
        add(parser)


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose columns, and how they are read."""
    group = parser.add_argument_group(
        "what to cluster",
        "In text files numbers, true and false, dates as 2024-12-31 and times as 2024-12-31 23:59 "
        "are read as such,\nother columns as text, whose different cells are levels. Empty cells "
        "are missing; except in text also NA,\nN/A, NaN and null. Spaces around cells do not "
        "count. Columns of Parquet files are\nwhat their types say.",
    )
    columns = group.add_mutually_exclusive_group()

    def add(to: argparse._ActionsContainer, option: str, text: str) -> None:
        to.add_argument(option, action="append", default=[], metavar="A,B,...", help=text)

    add(columns, "--columns", "use these columns only (default: all)")
    add(columns, "--drop", "leave these columns out")
    add(
        group,
        "--numbers",
        "read text in these columns as numbers: €110.5M as 110500000 (K, M, B: thousand, million, "
        "billion), 1,234 as 1234, 159lbs as 159 (one unit in a column), 12%% as 12, 88+2 as 90, "
        "5'7 as 67 inches; -, ? and none are missing",
    )
    add(group, "--levels", "take the numbers in these columns as levels: codes, not amounts")


def add_clusters(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options on the clusters, and return their group."""
    maxima = either([method.name for method in METHODS.values() if method.is_maximum])
    clusters = parser.add_argument_group("the clusters")
    clusters.add_argument(
        "-k",
        "--clusters",
        type=read.clusters,
        metavar="N",
        help=f"how many, with {maxima} at most (default: {DEFAULT_N_CLUSTERS}, "
        "or as many as --reference has); silhouette and stability of treeclust_rs.selection, in "
        "Python, help to choose",
    )
    clusters.add_argument(
        "--reference",
        metavar="COLUMN",
        help="explain the clusters in this column, -1 for noise, instead of those of (kernel) "
        "k-means",
    )
    clusters.add_argument(
        "--scale",
        choices=("none", "standard", "robust"),
        help="standard: measure each column in its standard deviations, so that all count alike; "
        "robust: in its interquartile range / 1.349, which far values hardly move",
    )
    clusters.add_argument(
        "--unit",
        action="append",
        type=read.unit,
        default=[],
        metavar="COLUMN=VALUE",
        help="measure this column in units of a value above 0, the others in their own; may be "
        "repeated",
    )
    clusters.add_argument(
        "--seed", type=read.whole_number(0, _MAX_SEED), default=0, metavar="N", help="default: 0"
    )
    return clusters


def _add_tree(parser: argparse.ArgumentParser) -> None:
    tree = parser.add_argument_group("the tree")
    tree.add_argument(
        "--method",
        choices=tuple(METHODS),
        default=next(iter(METHODS)),
        metavar="NAME",
        help="; ".join(method.summary for method in METHODS.values()),
    )
    tree.add_argument(
        "--leaves",
        type=read.leaves,
        metavar="N",
        help="at most so many; more come closer to the clusters, or make better ones with kauri "
        "(default: one per cluster, with oblique and cubt no limit; inf: no limit)",
    )
    tree.add_argument(
        "--cuts",
        choices=("threshold", "interval"),
        help="tests such as x <= 3, or 1 <= x <= 3 as well (default: threshold; with "
        "kernel-exkmc and kernel-expand as the kernel-imm tree has them)",
    )
    tree.add_argument(
        "--base-tree",
        choices=("imm", "none"),
        help="exkmc grows on from the imm tree, kernel-exkmc and kernel-expand from the "
        "kernel-imm tree (default), or from nothing",
    )
    tree.add_argument(
        "--cut-score",
        choices=("mistakes", "emn"),
        help="what imm makes small: mistakes, or mistakes by the smaller side's number of centers "
        "(default: mistakes)",
    )
    tree.add_argument(
        "--effort",
        choices=("quick", "normal", "thorough"),
        help="how long best searches (default: normal)",
    )
    tree.add_argument(
        "--objective",
        choices=("kmeans", "kmedians", "labels"),
        help="what best makes small: the cost of its clusters about their means or medians, or the "
        "rows that are not in their cluster of the reference (default: kmeans)",
    )
    tree.add_argument(
        "--max-time",
        type=read.at_least_0,
        metavar="SECONDS",
        help="after which best ends its search (default: no limit)",
    )
    tree.add_argument(
        "--depth-factor",
        type=read.at_least_0,
        metavar="NUMBER",
        help="the price of depth in an ex-shallow tree (default: 0.03)",
    )
    tree.add_argument(
        "--min-dist",
        type=read.at_least_0,
        metavar="SHARE",
        help="cubt makes one leaf of two that lie closer, as a share of the rows' standard "
        "deviation (default: 0.05)",
    )
    tree.add_argument(
        "--min-y",
        type=read.share,
        metavar="SHARE",
        help="cltree neither cuts nor counts regions with a smaller share of the rows (default: "
        "0.01)",
    )
    tree.add_argument(
        "--min-rd",
        type=read.at_least_0,
        metavar="NUMBER",
        help="cltree joins sparse regions of a larger relative density to dense ones (default: "
        "0.1)",
    )
    tree.add_argument(
        "--n-trials",
        type=read.whole_number(1),
        metavar="N",
        help="how many random-cuts trees to draw (default: 10)",
    )
    add_include_greedy(tree)
    tree.add_argument(
        "--impurity",
        choices=("gini", "entropy"),
        help="of the labels in a kmeans-tree (default: gini)",
    )
    tree.add_argument(
        "--moves",
        choices=("paper", "all"),
        help="all: kauri may split into a new and another old cluster too (default: paper)",
    )
    tree.add_argument(
        "--alpha",
        type=read.at_least_0,
        metavar="NUMBER",
        help="the price of a weight in an oblique tree: larger means fewer weights and leaves "
        "(default: 1)",
    )
    tree.add_argument(
        "--max-depth",
        type=read.whole_number(1),
        metavar="N",
        help="deepest level of leaves (default: no limit; oblique 4, at most 30)",
    )
    tree.add_argument(
        "--min-samples-leaf",
        type=read.whole_number(1),
        metavar="N",
        help="fewest rows in a leaf (default: 1)",
    )
    tree.add_argument(
        "--n-init",
        type=read.whole_number(1),
        metavar="N",
        help="starts of kernel k-means, douglas and an oblique tree's k-means, of which the best "
        "counts (default: 10; douglas 5)",
    )
    tree.add_argument(
        "--max-iter",
        type=read.whole_number(1),
        metavar="N",
        help="most rounds of an oblique tree, or epochs of douglas (default: 100; douglas 200)",
    )
    tree.add_argument(
        "--relax",
        action="store_true",
        default=None,
        help="free the weights of an oblique tree from their price in the end: a lower cost on the "
        "columns that its tests have",
    )


def _add_bins(parser: argparse.ArgumentParser) -> None:
    bins = parser.add_argument_group("the bins (douglas)")
    bins.add_argument(
        "--gemini",
        choices=GEMINIS,
        metavar="NAME",
        help=f"what is made as large as possible: {', '.join(GEMINIS[:-1])} or {GEMINIS[-1]} "
        "(default: wasserstein_ova)",
    )
    bins.add_argument(
        "--n-cuts",
        type=read.whole_number(1),
        metavar="N",
        help="cuts of each column (default: 1); m columns make (N + 1)^m cells",
    )
    bins.add_argument(
        "--prune",
        type=read.share,
        metavar="SHARE",
        help="leave out, in the end, the columns that can go for this share of the objective, 0.01 "
        "say (default: 0, none)",
    )


def _add_kernel(parser: argparse.ArgumentParser) -> None:
    kernel = parser.add_argument_group("the kernel that compares rows (kauri, kernel-...)")
    kernel.add_argument(
        "--kernel",
        choices=KERNELS,
        metavar="NAME",
        help=f"{', '.join(KERNELS[:-1])} or {KERNELS[-1]} (default: rbf; kauri "
        "linear, as k-means does)",
    )
    kernel.add_argument(
        "--gamma",
        type=read.gamma,
        metavar="NUMBER",
        help="of the kernels rbf, laplacian, polynomial and chi2: a number, or scale, which goes "
        "by the variance (default: 1 / number of columns; chi2: 1)",
    )
    kernel.add_argument(
        "--approximation",
        choices=APPROXIMATIONS,
        help="for many rows: features in place of the rows x rows kernel matrix (rff: rbf only)",
    )
    kernel.add_argument(
        "--n-components",
        type=read.whole_number(1),
        metavar="N",
        help="at most so many features (default: 100)",
    )


def add_stream(parser: argparse._ActionsContainer, text: str) -> None:
    """Add the option that reads tables batch by batch; `text` is its help."""
    parser.add_argument("--stream", action="store_true", help=text)


def add_include_greedy(parser: argparse._ActionsContainer) -> None:
    """Add the option of random cuts that lets another tree compete."""
    parser.add_argument(
        "--include-greedy",
        action="store_true",
        default=None,
        help="let the ex-greedy tree compete with those of random-cuts, which then cost no more",
    )


def add_escape_formulas(parser: argparse._ActionsContainer) -> None:
    """Add the option that makes written tables harmless to spreadsheets."""
    parser.add_argument(
        "--escape-formulas",
        action="store_true",
        help="for spreadsheets: write an apostrophe before text that begins with = + - @",
    )


def add_force(parser: argparse._ActionsContainer) -> None:
    """Add the option that allows to write to a file that is read."""
    parser.add_argument("--force", action="store_true", help="write even to a file that is read")


def _add_output(parser: argparse.ArgumentParser) -> None:
    output = parser.add_argument_group("what to write")
    output.add_argument("-o", "--output", metavar="MODEL", help="the model (.json)")
    output.add_argument("--plot", metavar="PICTURE", help="the tree (.png, .svg, .pdf, .dot)")
    output.add_argument(
        "--labels-out", metavar="TABLE", help="the cluster of every row, in order (.csv, .parquet)"
    )
    add_escape_formulas(output)
    add_force(output)
    work = add_work(
        parser, "number of threads (default: one per core, fewer if OMP_NUM_THREADS says so)"
    )
    add_stream(
        work,
        "for tables larger than memory, with --method exkmc or imm: read them batch by batch, some "
        "dozens of times; up to 100,000 rows, or with --reference, the model is the same, of more "
        "rows k-means sees a sample",
    )
    work.add_argument(
        "--cache",
        metavar="FOLDER",
        help="with --stream: write the columns to fit to a Parquet file in this folder, and read "
        "this in place of the table, which is read four times then; it is removed in the end",
    )


def add_work(parser: argparse.ArgumentParser, jobs: str) -> argparse._ArgumentGroup:
    """Add the options on cores and on what is told, and return their group.

    `jobs` is the help of ``--jobs``.
    """
    work = parser.add_argument_group("the work")
    work.add_argument("--jobs", type=read.whole_number(1), metavar="N", help=jobs)
    talk = work.add_mutually_exclusive_group()
    talk.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="tell progress even if stderr is not a terminal",
    )
    talk.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
    return work
