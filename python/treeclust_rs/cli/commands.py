"""The command ``treeclust``: from a table on disk to an explained clustering and back.

What a user can get wrong ends in one line on stderr and exit status 2, Ctrl-C in 130; results go to
stdout, remarks and progress to stderr. Files appear whole or not at all: they are written beside
their place and then moved.
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast, overload

import numpy as np
import polars as pl
from sklearn.datasets import load_wine

from .._base.clusterer import TreeClusterer
from .._base.kernel_model import KernelModel
from .._base.saving import SavedEstimator, load
from .._util.words import format_count
from ..estimators.centers_tree import IMM, ExKMC
from ..estimators.douglas.estimator import Douglas
from ..estimators.kauri import Kauri
from ..estimators.kernel_tree import KernelExKMC, KernelExpand, KernelIMM
from ..estimators.oblique_tree import ObliqueTree
from ..estimators.voronoi_tree import MOST_EXACT, VoronoiTree
from ..gemini import make_gemini
from ..metrics import agreement, n_parameters
from ..tree.cluster_tree import ClusterTree
from ..tree.conditions import MOVES
from .options import (
    DEFAULT_CLUSTERS,
    KERNEL_OPTIONS,
    KERNEL_TREES,
    NO_TREE,
    check_fit_options,
    make_parser,
    program_name,
)
from .reading import (
    TABLE_SUFFIXES,
    Source,
    TextFormat,
    UserError,
    one_line,
    read_table,
)

__all__ = ["main"]

_PICTURE_SUFFIXES = (".png", ".svg", ".pdf", ".dot")
# Of so many rows the kernel costs, O(n^2), are computed to be printed and saved if no fit did.
_MAX_COST_ROWS = 10_000
# Parameters that messages advise to change, as options.
_OPTIONS = {"(feature_mask)": "(--columns or --drop)", "(n_cuts=": "(--n-cuts "}
# A column with more than this share of the variance decides the clusters almost alone.
_DOMINANT = 0.95


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, default=None
        The arguments; None takes those of the process.

    Returns
    -------
    int
        0, or 2 after an error that the user can put right, or 130 after Ctrl-C.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _show_warning
            arguments = make_parser().parse_args(argv)
            _COMMANDS[arguments.command](arguments)
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has gone: nothing more to say, nor to complain about at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        _say("interrupted.")
        return 130
    except (
        UserError,
        ValueError,
        TypeError,
        ImportError,
        MemoryError,
        OSError,
        pl.exceptions.PolarsError,
    ) as error:
        _say(one_line(error))
        return 2
    return 0


# ---- commands -----------------------------------------------------------------------------


def _demo(arguments: argparse.Namespace) -> None:
    folder = Path(arguments.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UserError(
            f"{folder} is a file or lies in one: -o takes a folder, which may be new."
        ) from error
    wine = load_wine()
    frame = pl.DataFrame(wine.data, schema=list(wine.feature_names))
    table, picture, saved = folder / "wine.csv", folder / "wine.png", folder / "wine.json"
    _write_table(frame, table)

    print("178 Italian wines of three cultivars, described by 13 numbers of a chemical analysis.")
    print(
        "Nobody says which is which: k-means finds 3 clusters, a tree of 4 leaves explains them.\n"
    )
    model = ExKMC(3, max_leaves=4, base_tree=None, scale="standard", random_state=0).fit(frame)
    _print_fit(model, n_clusters=3)
    found = agreement(model.labels_, wine.target)
    _print_number("cultivars", f"{found:.1%} of the wines are with their own")
    print("\nWhy the first three wines are where they are:")
    for line in model.explain(frame.head(3)):
        print(f"  {line}")
    model.save(saved)
    print(f"\nThe data are in {table}, the model in {saved}", end="")
    if _can_draw():
        _draw(model, picture)
        print(f", a picture in {picture}.")
    else:
        print(".\nFor a picture as well: pip install treeclust_rs[plot].")
    program = program_name()
    options = "-k 3 --leaves 4 --base-tree none --scale standard"
    print("The same by hand, and what comes next:")
    print(f"  {program} fit {_quoted(table)} {options} -o {_quoted(saved)}")
    print(f"  {program} predict {_quoted(saved)} {_quoted(table)} -o {_quoted(folder / 'out.csv')}")
    print(f"  {program} explain {_quoted(saved)} {_quoted(table)} --rows 0-4")


def _fit(arguments: argparse.Namespace) -> None:
    check_fit_options(arguments)
    if arguments.method == "douglas" and arguments.plot is not None:
        raise UserError(f"--plot: {NO_TREE}.")
    model_path = _output_path(arguments.output, (".json",))
    labels_path = _output_path(arguments.labels_out, tuple(TABLE_SUFFIXES))
    picture = _picture_path(arguments.plot)
    source = _read(arguments)
    columns = _chosen_columns(source, arguments)
    reference = None if arguments.reference is None else source.labels(arguments.reference)
    _check_sizes(arguments, source, reference)
    frame = source.numbers(columns, advice=True)
    size = f"{format_count(frame.height, 'row')}, {format_count(frame.width, 'column')}"
    _note(f"{arguments.data}: {size}.", arguments)

    model = _estimator(arguments, reference).fit(frame)
    if frame.height <= _MAX_COST_ROWS and not isinstance(model, Douglas):
        # A kernel tree computes them when they are asked for, and then its file holds them.
        _ = model.inertia_, getattr(model, "reference_inertia_", None)
    if not arguments.quiet:
        _print_fit(model, arguments.clusters, arguments.leaves)
    if arguments.scale is None and (dominant := _dominant_column(frame)) is not None:
        name, share = dominant
        _note(
            f"hint: column {name!r} makes up {math.floor(100 * share)}% of the variance; "
            "try --scale standard",
            arguments,
        )
    if model_path is not None:
        model.save(model_path)
        _note(f"model written to {model_path}", arguments)
    if picture is not None:
        _draw(model, picture)
        _note(f"picture written to {picture}", arguments)
    if labels_path is not None:
        _write_table(pl.DataFrame({"cluster": model.labels_}), labels_path)
        _note(f"labels written to {labels_path}", arguments)
    if model_path is None:
        what = "nothing" if picture is None and labels_path is None else "the model is not"
        _note(f"{what} saved; add -o model.json", arguments)


def _predict(arguments: argparse.Namespace) -> None:
    if not arguments.column:
        raise UserError("--column: the new column needs a name.")
    output = _output_path(arguments.output, tuple(TABLE_SUFFIXES))
    model = _load_for(arguments)
    source = _read(arguments)
    if arguments.column in source.frame.columns and not arguments.overwrite:
        raise UserError(
            f"{arguments.data} has a column {arguments.column!r} already: name the new one with "
            "--column, or replace it with --overwrite."
        )
    labels = model.predict(_features(source, model, arguments.column))
    labelled = source.frame.with_columns(pl.Series(arguments.column, labels))
    # A table of the same kind is written as the one that was read.
    alike = output is None or output.suffix.lower() == Path(arguments.data).suffix.lower()
    separator = arguments.separator if alike else None
    if output is None:
        header = not arguments.no_header
        sys.stdout.write(labelled.write_csv(separator=separator or ",", include_header=header))
    else:
        _write_table(labelled, output, separator, header=not arguments.no_header)


def _explain(arguments: argparse.Namespace) -> None:
    model = _load_for(arguments)
    features = _features(_read(arguments), model, None)
    rows = _row_numbers(arguments.rows, len(features))
    if rows is not None:
        features = features[rows]
    numbers = range(len(features)) if rows is None else rows
    width = len(str(max(numbers, default=0)))
    for number, line in zip(numbers, model.explain(features), strict=True):
        print(f"{number:>{width}}  {line}")


def _plot(arguments: argparse.Namespace) -> None:
    picture = _picture_path(arguments.output)
    _draw(_truncated(_load(arguments.model), arguments), picture)


def _info(arguments: argparse.Namespace) -> None:
    model = _truncated(_load(arguments.model), arguments)
    shown = _shown(model)
    if arguments.rules:
        with pl.Config(tbl_rows=-1, tbl_cols=-1, fmt_str_lengths=10_000, tbl_width_chars=10_000):
            print(shown.rules())
        return
    print(shown)
    print()
    _print_numbers(model)


_COMMANDS = {
    "demo": _demo,
    "fit": _fit,
    "predict": _predict,
    "explain": _explain,
    "plot": _plot,
    "info": _info,
}


# ---- fitting and printing -----------------------------------------------------------------


def _check_sizes(
    arguments: argparse.Namespace, source: Source, reference: np.ndarray | None
) -> None:
    """Refuse numbers of clusters and leaves that the table cannot have."""
    if reference is None:
        n_rows, n_clusters = source.frame.height, _n_clusters(arguments)
        # Of kauri the number is a maximum.
        if n_clusters > n_rows and arguments.method != "kauri":
            default = "" if arguments.clusters else ", the default,"
            raise UserError(
                f"-k {n_clusters}{default} is more than the {n_rows:,} rows of {arguments.data}."
            )
        return
    n_clusters = len(set(reference.tolist()) - {-1})
    column = arguments.reference
    if arguments.clusters not in (None, n_clusters):
        raise UserError(
            f"-k {arguments.clusters}, but the column {column!r} has {n_clusters} clusters."
        )
    if arguments.leaves is not None and arguments.leaves < n_clusters:
        raise UserError(
            f"--leaves {arguments.leaves} is less than the {n_clusters} clusters of the column "
            f"{column!r}: every cluster needs a leaf."
        )


def _dominant_column(frame: pl.DataFrame) -> tuple[str, float] | None:
    """Give the column, among several, that has nearly all of the variance, and its share."""
    if frame.width < 2 or frame.height < 2:
        return None
    variances = frame.select(pl.all().cast(pl.Float64).var()).row(0)
    total = sum(variances)
    largest = max(range(frame.width), key=lambda column: variances[column])
    share = variances[largest] / total if 0 < total < math.inf else 0.0
    return (frame.columns[largest], share) if share > _DOMINANT else None


def _n_clusters(arguments: argparse.Namespace) -> int:
    """Give the clusters to seek where there is no reference."""
    return int(arguments.clusters or DEFAULT_CLUSTERS[arguments.method])


def _estimator(arguments: argparse.Namespace, reference: np.ndarray | None) -> Any:
    """Make the estimator that the options describe."""
    method = arguments.method
    common: dict[str, Any] = {
        "scale": "standard" if arguments.scale == "standard" else None,
        "random_state": arguments.seed,
        "n_jobs": arguments.jobs,
        "verbose": int(not arguments.quiet and (arguments.verbose or sys.stderr.isatty())),
    }
    of_method = ("moves", "alpha", "max_depth", "relax", "gemini", "n_cuts", "prune")
    given = {name: getattr(arguments, name) for name in (*KERNEL_OPTIONS, *of_method)}
    common |= {name: value for name, value in given.items() if value is not None}
    if method == "douglas":
        return Douglas(_n_clusters(arguments), **common)
    if method == "kauri":
        n_clusters = _n_clusters(arguments)
        return Kauri(n_clusters, max_leaves=arguments.leaves or n_clusters, **common)
    common |= {"n_clusters": arguments.clusters, "reference": reference}
    if method == "voronoi":
        k = _n_clusters(arguments) if reference is None else len(set(reference.tolist()) - {-1})
        return VoronoiTree(**common, exact=k <= MOST_EXACT)
    if method == "oblique":
        return ObliqueTree(**common)
    if method not in KERNEL_TREES:
        common["criterion"] = arguments.criterion or "kmeans"
    if method in ("imm", "kernel-imm"):
        return IMM(**common) if method == "imm" else KernelIMM(**common)
    from_nothing = arguments.base_tree == "none"
    common["max_leaves"] = arguments.leaves
    if method == "exkmc":
        base = None if from_nothing else "imm"
        return ExKMC(cuts=arguments.cuts or "threshold", base_tree=base, **common)
    grown = KernelExKMC if method == "kernel-exkmc" else KernelExpand
    base = None if from_nothing else "kernel_imm"
    return grown(cuts=arguments.cuts or "auto", base_tree=base, **common)


def _print_fit(model: Any, n_clusters: int | None, max_leaves: int | None = None) -> None:
    print(_shown(model))
    print()
    if n_clusters is not None and len(model.classes_) < n_clusters:
        most = "at most " if isinstance(model, Kauri) else ""
        _print_number("asked for", f"{most}{n_clusters:,} clusters")
    _print_numbers(model, max_leaves)


def _print_numbers(model: Any, max_leaves: int | None = None) -> None:
    if isinstance(model, Douglas):
        _print_bins(model)
        return
    tree = model.tree_
    is_kauri = isinstance(model, Kauri)
    _print_number("clusters", f"{len(tree.classes):,}")
    leaves = f"{tree.n_leaves:,}"
    if max_leaves is not None and tree.n_leaves < max_leaves:
        reason = "no further split gains" if is_kauri else "no further cut lowers the cost"
        leaves += f" ({max_leaves:,} asked for: {reason})"
    _print_number("leaves", f"{leaves}, at most {tree.max_depth:,} deep")
    if is_kauri:
        _print_objective(model)
        return
    if isinstance(model, KernelModel):
        _print_kernel(model)
    if tree.oblique_indptr is not None:
        _print_number("parameters", f"{n_parameters(tree):,} (weights, biases, leaves)")
    if _knows_costs(model):
        _print_number("cost", f"{model.inertia_:,.6g}")
        _print_number("of the reference", f"{model.reference_inertia_:,.6g}")
        _print_number("ratio", f"{model.cost_ratio_:.4f}")
    _print_number(
        "agreement", f"{_share_kept(tree):.1%} of the rows are in their reference cluster"
    )


def _shown(model: Any) -> Any:
    """Give what of a model is printed."""
    return model.table_ if isinstance(model, Douglas) else model.tree_


def _print_bins(model: Douglas) -> None:
    cells = model.table_
    _print_number("clusters", f"{len(set(cells.clusters[cells.occupied].tolist())):,}")
    names = [cells.feature_name(feature) for feature in model.active_cut_points_.tolist()]
    _print_number("active columns", ", ".join(names) or "none")
    lost = "gemini" in model._not_saved
    gemini = "an object, which the file does not hold" if lost else make_gemini(model.gemini).name
    _print_number("gemini", f"{gemini}, {model.objective_:,.6g} in batches")
    _print_number("rules", f"{model.rule_agreement_:.1%} of the rows are where the model has them")


def _print_objective(model: Kauri) -> None:
    """Print what stands in place of a reference: the moves, the kernel and its objective."""
    moves = model.gains_["move"].to_list()
    counts = [f"{moves.count(move):,} {move}" for move in MOVES if move in moves]
    _print_number("moves", ", ".join(counts).replace("_", " ") or "none")
    _print_kernel(model)
    _print_number("objective", f"{model.objective_:,.6g}")
    _print_number("cost", f"{model.inertia_:,.6g}")


def _print_kernel(model: KernelModel) -> None:
    is_lost = "kernel" in model._not_saved
    kernel = "a function, which the file does not hold" if is_lost else str(model.kernel)
    if model.gamma_ is not None:
        kernel += f", gamma {model.gamma_:.6g}"
    _print_number("kernel", kernel)
    if model.approximation is not None:
        _print_number(
            "approximation", f"{model.approximation}, at most {model.n_components:,} features"
        )


def _knows_costs(model: Any) -> bool:
    """Whether the costs are there; they take the rows, which files and models cut down lack."""
    if isinstance(model, KernelModel):
        return {"_inertia", "_reference_inertia"} <= model.__dict__.keys()
    return hasattr(model, "inertia_")


def _print_number(name: str, text: str) -> None:
    print(f"  {name:<17} {text}")


def _share_kept(tree: ClusterTree) -> float:
    """Share of the fitted rows that the tree leaves in the cluster the reference had them in."""
    leaves = tree.leaves
    return 1.0 - float(tree.mistakes[leaves].sum() / tree.weighted_n_node_samples[0])


def _truncated(model: Any, arguments: argparse.Namespace) -> Any:
    """Cut a model down to `--leaves`."""
    if arguments.leaves is None:
        return model
    if isinstance(model, Douglas):
        raise UserError(f"--leaves {arguments.leaves}: {NO_TREE}.")
    if isinstance(model, (ObliqueTree, VoronoiTree)):
        raise UserError(
            f"--leaves {arguments.leaves}: {arguments.model} has a tree that was not grown leaf by "
            "leaf; only trees that were can be cut down."
        )
    n_base = model.tree_.n_base_leaves
    if arguments.leaves < n_base:
        raise UserError(
            f"--leaves {arguments.leaves}: {arguments.model} has trees from {n_base} leaves, those "
            "of the base tree, on."
        )
    return model.truncate(arguments.leaves)


def _draw(model: SavedEstimator, path: Path) -> None:
    """Write the picture, or for .dot the Graphviz text, of a fitted model."""
    if not isinstance(model, TreeClusterer):
        raise UserError(f"{path}: {NO_TREE}.")
    if path.suffix.lower() == ".dot":
        with _replacing(path) as temporary:
            temporary.write_text(model.to_graphviz(), encoding="utf-8")
        return
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure = cast(Figure, model.plot().figure)
    try:
        with _replacing(path) as temporary:
            figure.savefig(temporary, dpi=150, bbox_inches="tight", facecolor="white")
    finally:
        pyplot.close(figure)


# ---- tables -------------------------------------------------------------------------------


def _read(arguments: argparse.Namespace) -> Source:
    """Read the table that a command is given, in the format that its options tell."""
    return read_table(
        arguments.data,
        TextFormat(
            separator=arguments.separator,
            decimal_comma=arguments.decimal_comma,
            encoding=arguments.encoding,
            header=not arguments.no_header,
        ),
    )


def _chosen_columns(source: Source, arguments: argparse.Namespace) -> list[str]:
    """Give the columns to fit: those of `--columns`, or all but `--drop` and the reference."""
    everything = source.frame.columns
    named = _named_columns(arguments.columns or arguments.drop, source)
    chosen = named if arguments.columns else [name for name in everything if name not in named]
    reference = arguments.reference
    if reference is not None:
        source.require([reference])
    features = [name for name in chosen if name != reference]
    if not features:
        besides = "" if reference is None else ", besides the reference,"
        raise UserError(f"no column of {arguments.data}{besides} is left to fit.")
    if reference in named and arguments.columns:
        _note(f"the column {reference!r} is the reference, and so no feature.", arguments)
    return features


def _named_columns(options: list[str], source: Source) -> list[str]:
    """Give the columns that `--drop` or `--columns` name, commas in names included."""
    names: list[str] = []
    for option in options:
        names.extend([option] if option in source.frame.columns else option.split(","))
    source.require(names)
    return list(dict.fromkeys(names))


def _features(
    source: Source, model: SavedEstimator, column: str | None
) -> pl.DataFrame | np.ndarray:
    """Give what the model reads: by name, or, where it knows no names, all columns in order."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        source.require(names.tolist())
        return source.numbers(names.tolist())
    columns = [name for name in source.frame.columns if name != column]
    n_wanted = model.n_features_in_
    if len(columns) != n_wanted:
        raise UserError(
            f"{source.name} has {len(columns)} columns; the model, which knows no names, reads "
            f"{n_wanted}."
        )
    return source.numbers(columns).to_numpy()


def _write_table(
    frame: pl.DataFrame, path: Path, separator: str | None = None, *, header: bool = True
) -> None:
    with _replacing(path) as temporary:
        usual = TABLE_SUFFIXES[path.suffix.lower()]
        if usual:
            frame.write_csv(temporary, separator=separator or usual, include_header=header)
        else:
            frame.write_parquet(temporary)


def _row_numbers(text: str | None, n_rows: int) -> list[int] | None:
    """Read "0,3,10-19" as row numbers, counted from 0, both ends of a range included."""
    if text is None:
        return None
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise UserError(f"--rows takes row numbers and ranges, as in 0,3,10-19. Got {text!r}.")
        start, stop = int(first), int(last if dash else first)
        if stop < start:
            raise UserError(f"--rows: the range {part} runs backwards.")
        if stop >= n_rows:
            raise UserError(
                f"--rows asks for row {stop}; the last of the {n_rows:,} rows is {n_rows - 1:,}."
            )
        numbers.extend(range(start, stop + 1))
    return numbers


# ---- files and messages -------------------------------------------------------------------


def _load_for(arguments: argparse.Namespace) -> SavedEstimator:
    """Load the model of a command that reads a table too."""
    kinds = Path(arguments.model).suffix.lower(), Path(arguments.data).suffix.lower()
    if kinds[0] in TABLE_SUFFIXES and kinds[1] == ".json":
        raise UserError(
            f"{arguments.model} is named as a table, {arguments.data} as a model: is the order "
            "MODEL DATA?"
        )
    return _load(arguments.model)


def _load(name: str) -> SavedEstimator:
    if not Path(name).is_file():
        raise UserError(f"{name}: no such file.")
    try:
        return load(name)
    except ValueError as error:
        raise UserError(one_line(error)) from error


def _output_path(name: str | None, suffixes: tuple[str, ...]) -> Path | None:
    """Check before the work that a result can be written where it is wanted."""
    if name is None:
        return None
    path = Path(name)
    if path.suffix.lower() not in suffixes:
        raise UserError(f"{name}: the name must end in {' or '.join(suffixes)}.")
    if not path.parent.is_dir():
        raise UserError(f"{name}: there is no folder {path.parent}.")
    if path.is_dir():
        raise UserError(f"{name} is a folder.")
    return path


@overload
def _picture_path(name: str) -> Path: ...
@overload
def _picture_path(name: None) -> None: ...
def _picture_path(name: str | None) -> Path | None:
    path = _output_path(name, _PICTURE_SUFFIXES)
    if path is not None and path.suffix.lower() != ".dot" and not _can_draw():
        raise UserError(f"{name} needs matplotlib: pip install treeclust_rs[plot] (.dot does not).")
    return path


def _can_draw() -> bool:
    return find_spec("matplotlib") is not None


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Give a path to write to, which takes the place of `path` only when all went well."""
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        reason = one_line(error).replace(str(temporary), str(path))
        raise UserError(f"{path} cannot be written: {reason}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _say(message: str) -> None:
    for parameter, option in _OPTIONS.items():
        message = message.replace(parameter, option)
    print(f"treeclust: {message}", file=sys.stderr)


def _note(message: str, arguments: argparse.Namespace) -> None:
    if not arguments.quiet:
        _say(message)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    _say("warning: " + " ".join(str(message).split()))
