"""Options of the command ``treeclust``: the parser, and which options go together."""

from __future__ import annotations

import argparse
import math
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .. import __version__
from .._kernels.low_rank import APPROXIMATIONS
from .._kernels.parameters import make_kernel
from .._kernels.surrogate import has_features
from .._reference.reference import DEFAULT_N_CLUSTERS
from ..estimators.kauri import Kauri
from ..gemini import GEMINIS
from .reading import UserError

__all__ = [
    "DEFAULT_CLUSTERS",
    "KERNEL_OPTIONS",
    "KERNEL_TREES",
    "NO_TREE",
    "check_fit_options",
    "make_parser",
    "program_name",
]

KERNEL_TREES = ("kernel-imm", "kernel-exkmc", "kernel-expand")
"""Methods that explain kernel k-means."""
KERNEL_OPTIONS = ("kernel", "gamma", "approximation", "n_components")
"""Options that these methods and kauri have, as parameters are named."""

DEFAULT_CLUSTERS = {
    "exkmc": DEFAULT_N_CLUSTERS,
    "imm": DEFAULT_N_CLUSTERS,
    "kauri": Kauri().max_clusters,
    "douglas": DEFAULT_N_CLUSTERS,
    "oblique": DEFAULT_N_CLUSTERS,
    "voronoi": DEFAULT_N_CLUSTERS,
    **dict.fromkeys(KERNEL_TREES, DEFAULT_N_CLUSTERS),
}
"""Clusters that each method seeks where -k is not given."""

NO_TREE = "a model of douglas has no tree; info shows its bins and cells"
"""Why it cannot be drawn or cut down."""

# Kernels that need no parameter of their own.
_KERNELS = (
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
# The options of `fit` that not all methods have.
_GROWN = ("kernel-exkmc", "kernel-expand")
_WITH_KERNEL = ("kauri", *KERNEL_TREES)
_METHODS_OF = {
    "--reference": ("exkmc", "imm", "oblique", "voronoi", *KERNEL_TREES),
    "--criterion": ("exkmc", "imm"),
    "--leaves": ("exkmc", "kauri", *_GROWN),
    "--cuts": ("exkmc", *_GROWN),
    "--base-tree": ("exkmc", *_GROWN),
    "--kernel": _WITH_KERNEL,
    "--gamma": _WITH_KERNEL,
    "--approximation": _WITH_KERNEL,
    "--n-components": _WITH_KERNEL,
    "--moves": ("kauri",),
    "--alpha": ("oblique",),
    "--max-depth": ("oblique",),
    "--relax": ("oblique",),
    "--gemini": ("douglas",),
    "--n-cuts": ("douglas",),
    "--prune": ("douglas",),
}
_NATURE = {
    "exkmc": "an exkmc tree explains the clusters of k-means, or of --reference",
    "imm": "an imm tree has threshold cuts and one leaf per cluster",
    "kauri": "a kauri tree has threshold cuts and makes its clusters itself",
    "douglas": "douglas makes its clusters itself, and has soft bins in place of a tree",
    "oblique": "an oblique tree has weighted sums of columns as tests, fitted with the clusters",
    "voronoi": "a voronoi tree has bisectors of centers, those of k-means or --reference, as tests",
    "kernel-imm": "a kernel-imm tree has one leaf per cluster of kernel k-means, or of --reference",
    "kernel-exkmc": "a kernel-exkmc tree explains the clusters of kernel k-means, or of "
    "--reference",
    "kernel-expand": "a kernel-expand tree explains the clusters of kernel k-means, or of "
    "--reference",
}
# The scikit-learn way of drawing numbers takes seeds up to this one.
_MAX_SEED = 2**32 - 1


# ---- which go together --------------------------------------------------------------------


def check_fit_options(arguments: argparse.Namespace) -> None:
    """Raise UserError for options of `fit` that do not go together, before the table is read."""
    method = arguments.method
    for option, methods in _METHODS_OF.items():
        if _value(arguments, option) is not None and method not in methods:
            raise UserError(f"{option} goes with --method {_either(methods)}; {_NATURE[method]}.")
    _check_kernel_options(arguments)
    if arguments.leaves is None:
        return
    if arguments.clusters is not None and arguments.leaves < arguments.clusters:
        raise UserError(
            f"--leaves {arguments.leaves} is less than -k {arguments.clusters}: every cluster "
            "needs a leaf."
        )
    is_default = arguments.clusters is None and arguments.reference is None
    if is_default and arguments.leaves < DEFAULT_CLUSTERS[method]:
        raise UserError(
            f"--leaves {arguments.leaves} is less than the {DEFAULT_CLUSTERS[method]} clusters "
            "that are sought without -k: give -k too."
        )


def _check_kernel_options(arguments: argparse.Namespace) -> None:
    kernel = arguments.kernel or ("linear" if arguments.method == "kauri" else "rbf")
    if arguments.gamma is not None and not _has_gamma(kernel):
        with_gamma = [name for name in _KERNELS if _has_gamma(name)]
        raise UserError(
            f"--gamma goes with --kernel {_either(with_gamma)}; the kernel {kernel} has none."
        )
    if arguments.method == "kernel-imm" and not has_features(kernel):
        possible = [name for name in _KERNELS if has_features(name)]
        raise UserError(
            f"--method kernel-imm goes with --kernel {_either(possible)}; kernel-exkmc and "
            "kernel-expand take every kernel."
        )
    if arguments.approximation == "rff" and kernel != "rbf":
        raise UserError(
            "--approximation rff goes with --kernel rbf; nystroem and rpcholesky take every kernel."
        )
    if arguments.n_components is not None and arguments.approximation is None:
        raise UserError("--n-components goes with --approximation; without it the kernel is exact.")


def _has_gamma(kernel: str) -> bool:
    return make_kernel(kernel, X=np.zeros((1, 1))).gamma is not None


def _either(words: Sequence[str]) -> str:
    """Write "a, b or c"."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _value(arguments: argparse.Namespace, option: str) -> Any:
    return getattr(arguments, option.removeprefix("--").replace("-", "_"))


# ---- the parser ---------------------------------------------------------------------------


class _Layout(argparse.RawDescriptionHelpFormatter):
    """Help as it was written, with room for the names of the options."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)


class _Parser(argparse.ArgumentParser):
    """Argument errors as one line, like all others."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see {self.prog} --help)")


def program_name() -> str:
    """Give the words that start this command again as it was started."""
    started = Path(sys.argv[0])
    if started.parts[-2:] == ("treeclust_rs", "__main__.py"):
        return f"{Path(sys.executable).name.removesuffix('.exe')} -m treeclust_rs"
    if started.stem != "treeclust":
        return "treeclust"
    found = shutil.which("treeclust")
    is_found = found is not None and Path(found).parent.resolve() == started.parent.resolve()
    return "treeclust" if is_found else shlex.quote(str(started))


def _whole_number(minimum: int, maximum: int | None = None) -> Callable[[str], int]:
    """Make the reader of an option that takes whole numbers of some range."""
    range_ = f"at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = minimum - 1
        if number < minimum or (maximum is not None and number > maximum):
            raise argparse.ArgumentTypeError(f"must be a whole number, {range_}. Got {text!r}")
        return min(number, sys.maxsize)

    return read


def _number(text: str) -> float:
    """Read a number; NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _gamma(text: str) -> float | str:
    if text == "scale":
        return text
    number = _number(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, or scale. Got {text!r}")
    return number


def _price(text: str) -> float:
    number = _number(text)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number, at least 0. Got {text!r}")
    return number


def _share(text: str) -> float:
    number = _number(text)
    if not 0 <= number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 0 and below 1. Got {text!r}")
    return number


def _separator(text: str) -> str:
    separator = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n':
        raise argparse.ArgumentTypeError(f"must be one character, or tab. Got {text!r}")
    return separator


def _encoding(text: str) -> str:
    try:
        "".encode(text)
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError(f"there is no encoding {text!r}") from None
    return text


def make_parser() -> argparse.ArgumentParser:
    """Make the parser; what it gives names the command in `command`."""
    program = program_name()
    parser = _Parser(
        prog=program,
        description="Cluster a table and explain the clusters by a small decision tree.",
        epilog="For example:\n"
        f"  {program} demo\n"
        f"  {program} fit customers.parquet -k 6 --leaves 12 -o customers.json --plot tree.png\n"
        f"  {program} predict customers.json new.csv -o labelled.csv\n"
        f"\nThe options of a command: {program} COMMAND --help",
        formatter_class=_Layout,
    )
    parser.add_argument("--version", action="version", version=f"treeclust {__version__}")
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True
    )
    _add_demo(commands)
    _add_fit(commands)
    _add_predict(commands)
    _add_explain(commands)
    _add_plot(commands)
    _add_info(commands)
    return parser


def _add_command(commands: Any, name: str, summary: str, examples: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="For example:\n" + examples.replace("  treeclust ", f"  {program_name()} "),
        formatter_class=_Layout,
    )
    return parser


def _add_demo(commands: Any) -> None:
    parser = _add_command(
        commands,
        "demo",
        "cluster a data set of real wines: a tour in ten seconds",
        "  treeclust demo\n  treeclust demo -o somewhere",
    )
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", default="demo", help="where to write (default: demo)"
    )


def _add_fit(commands: Any) -> None:
    parser = _add_command(
        commands,
        "fit",
        "find clusters in a table and the tree that explains them",
        "  treeclust fit customers.csv -k 6 -o customers.json\n"
        "  treeclust fit customers.csv -k 6 --leaves 12 --drop id,name --plot tree.png\n"
        "  treeclust fit points.parquet --reference segment --leaves 20 -o segments.json\n"
        "  treeclust fit points.parquet --method kauri -k 5 --leaves 8 --kernel rbf\n"
        "  treeclust fit rings.csv --method kernel-expand -k 2 --leaves 6 --gamma scale\n"
        "  treeclust fit customers.csv --method oblique -k 6 --scale standard --alpha 3",
    )
    _add_data(parser)
    columns = parser.add_argument_group("what to cluster").add_mutually_exclusive_group()
    columns.add_argument(
        "--columns",
        action="append",
        default=[],
        metavar="A,B,...",
        help="use these columns only (default: all; they must be numbers)",
    )
    columns.add_argument(
        "--drop", action="append", default=[], metavar="A,B,...", help="leave these columns out"
    )

    clusters = parser.add_argument_group("the clusters")
    clusters.add_argument(
        "-k",
        "--clusters",
        type=_whole_number(1),
        metavar="N",
        help=f"how many, with kauri at most (default: {DEFAULT_CLUSTERS['exkmc']}, kauri "
        f"{DEFAULT_CLUSTERS['kauri']}, or as many as --reference has)",
    )
    clusters.add_argument(
        "--reference",
        metavar="COLUMN",
        help="explain the clusters in this column, -1 for noise, instead of those of (kernel) "
        "k-means",
    )
    clusters.add_argument(
        "--scale",
        choices=("none", "standard"),
        help="standard: measure each column in its standard deviations, so that all count alike",
    )
    clusters.add_argument(
        "--criterion",
        choices=("kmeans", "kmedians"),
        help="squared or absolute distances (default: kmeans)",
    )
    clusters.add_argument(
        "--seed", type=_whole_number(0, _MAX_SEED), default=0, metavar="N", help="default: 0"
    )

    tree = parser.add_argument_group("the tree")
    tree.add_argument(
        "--method",
        choices=tuple(DEFAULT_CLUSTERS),
        default="exkmc",
        metavar="NAME",
        help="exkmc (default) explains k-means and grows up to --leaves, imm has one leaf per "
        "cluster; kernel-exkmc and kernel-imm explain kernel k-means, kernel-expand any labels, by "
        "fewest mistakes; kauri makes clusters and tree at once; oblique fits clusters and a tree "
        "of weighted sums together, voronoi has the bisectors of the centers (exact up to 16 "
        "clusters); douglas makes clusters by soft bins of few columns, and has no tree",
    )
    tree.add_argument(
        "--leaves",
        type=_whole_number(1),
        metavar="N",
        help="at most so many; more come closer to the clusters, or make better ones with kauri "
        "(default: one per cluster)",
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
        "--moves",
        choices=("paper", "all"),
        help="all: kauri may split into a new and another old cluster too (default: paper)",
    )

    tree.add_argument(
        "--alpha",
        type=_price,
        metavar="NUMBER",
        help="the price of a weight in an oblique tree: larger means fewer weights and leaves "
        "(default: 1)",
    )
    tree.add_argument(
        "--max-depth",
        type=_whole_number(1, 30),
        metavar="N",
        help="of an oblique tree (default: 4)",
    )
    tree.add_argument(
        "--relax",
        action="store_true",
        default=None,
        help="free the weights of an oblique tree from their price in the end: a lower cost on the "
        "columns that its tests have",
    )

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
        type=_whole_number(1),
        metavar="N",
        help="cuts of each column (default: 1); m columns make (N + 1)^m cells",
    )
    bins.add_argument(
        "--prune",
        type=_share,
        metavar="SHARE",
        help="leave out, in the end, the columns that can go for this share of the objective, 0.01 "
        "say (default: 0, none)",
    )

    kernel = parser.add_argument_group("the kernel that compares rows (kauri, kernel-...)")
    kernel.add_argument(
        "--kernel",
        choices=_KERNELS,
        metavar="NAME",
        help=f"{', '.join(_KERNELS[:-1])} or {_KERNELS[-1]} (default: rbf; kauri "
        "linear, as k-means does)",
    )
    kernel.add_argument(
        "--gamma",
        type=_gamma,
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
        type=_whole_number(1),
        metavar="N",
        help="at most so many features (default: 100)",
    )

    output = parser.add_argument_group("what to write")
    output.add_argument("-o", "--output", metavar="MODEL", help="the model (.json)")
    output.add_argument("--plot", metavar="PICTURE", help="the tree (.png, .svg, .pdf, .dot)")
    output.add_argument(
        "--labels-out", metavar="TABLE", help="the cluster of every row, in order (.csv, .parquet)"
    )

    work = parser.add_argument_group("the work")
    work.add_argument(
        "--jobs",
        type=_whole_number(1),
        metavar="N",
        help="number of threads (default: one per core)",
    )
    talk = work.add_mutually_exclusive_group()
    talk.add_argument(
        "-v", "--verbose", action="store_true", help="tell progress even if stderr is no terminal"
    )
    talk.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")


def _add_predict(commands: Any) -> None:
    parser = _add_command(
        commands,
        "predict",
        "add the cluster of every row to a table",
        "  treeclust predict customers.json new.csv -o labelled.csv\n"
        "  treeclust predict customers.json new.parquet --column segment -o labelled.parquet\n"
        "  treeclust predict customers.json new.csv | head",
    )
    _add_model_and_data(parser)
    parser.add_argument(
        "-o", "--output", metavar="TABLE", help="write here (default: to stdout, as CSV)"
    )
    parser.add_argument(
        "--column", metavar="NAME", default="cluster", help="name it so (default: cluster)"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a column of that name in the table"
    )


def _add_explain(commands: Any) -> None:
    parser = _add_command(
        commands,
        "explain",
        "say in one line per row why it is in its cluster",
        "  treeclust explain customers.json new.csv --rows 0-9\n"
        "  treeclust explain customers.json new.csv --rows 17,42",
    )
    _add_model_and_data(parser)
    parser.add_argument(
        "--rows", metavar="ROWS", help="which, counted from 0: 0,3,10-19 (default: all)"
    )


def _add_plot(commands: Any) -> None:
    parser = _add_command(
        commands,
        "plot",
        "draw the tree of a model",
        "  treeclust plot customers.json -o tree.png\n"
        "  treeclust plot customers.json --leaves 6 -o small.svg\n"
        "  treeclust plot customers.json -o tree.dot",
    )
    _add_model(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="PICTURE",
        required=True,
        help="write here: .png, .svg, .pdf, or .dot (Graphviz text)",
    )
    _add_truncation(parser)


def _add_info(commands: Any) -> None:
    parser = _add_command(
        commands,
        "info",
        "print the tree of a model and what it costs",
        "  treeclust info customers.json\n  treeclust info customers.json --rules",
    )
    _add_model(parser)
    parser.add_argument("--rules", action="store_true", help="one rule per leaf, as a table")
    _add_truncation(parser)


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL", help="a model file, as treeclust fit -o writes it"
    )


def _add_model_and_data(parser: argparse.ArgumentParser) -> None:
    _add_model(parser)
    _add_data(parser)


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", help="a table: .csv, .tsv, .txt (tabs), .parquet")
    text = parser.add_argument_group("how DATA is written, if it is text")
    text.add_argument(
        "--separator",
        type=_separator,
        metavar="CHARACTER",
        help="between the cells (default: ',' for .csv, tab for .tsv and .txt)",
    )
    text.add_argument("--decimal-comma", action="store_true", help="numbers are written as in 3,14")
    text.add_argument(
        "--encoding", type=_encoding, metavar="NAME", help="such as latin-1 (default: utf-8)"
    )
    text.add_argument(
        "--no-header", action="store_true", help="there are no names; call the columns x0, x1, ..."
    )


def _add_truncation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--leaves",
        type=_whole_number(1),
        metavar="N",
        help="the smaller tree of this many leaves",
    )
