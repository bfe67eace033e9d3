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
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn, cast, overload

import numpy as np
import polars as pl
from sklearn.datasets import load_wine

from . import __version__
from ._base import TreeClusterer, load
from ._cli_input import (
    TABLE_SUFFIXES,
    Source,
    TextFormat,
    UserError,
    one_line,
    read_table,
)
from ._reference import DEFAULT_N_CLUSTERS
from .metrics import agreement
from .threshold import IMM, ExKMC
from .tree import ClusterTree

__all__ = ["main"]

_PICTURE_SUFFIXES = (".png", ".svg", ".pdf", ".dot")
# The scikit-learn way of drawing numbers takes seeds up to this one.
_MAX_SEED = 2**32 - 1
# A column with more than this share of the variance decides the clusters almost alone.
_DOMINANT = 0.95


class _Layout(argparse.RawDescriptionHelpFormatter):
    """Help as it was written, with room for the names of the options."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)


class _Parser(argparse.ArgumentParser):
    """Argument errors as one line, like all others."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see {self.prog} --help)")


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
            arguments = _parser().parse_args(argv)
            run: Callable[[argparse.Namespace], None] = arguments.run
            run(arguments)
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
    program = _program()
    options = "-k 3 --leaves 4 --base-tree none --scale standard"
    print("The same by hand, and what comes next:")
    print(f"  {program} fit {_quoted(table)} {options} -o {_quoted(saved)}")
    print(f"  {program} predict {_quoted(saved)} {_quoted(table)} -o {_quoted(folder / 'out.csv')}")
    print(f"  {program} explain {_quoted(saved)} {_quoted(table)} --rows 0-4")


def _fit(arguments: argparse.Namespace) -> None:
    _check_fit_options(arguments)
    model_path = _output_path(arguments.output, (".json",))
    labels_path = _output_path(arguments.labels_out, tuple(TABLE_SUFFIXES))
    picture = _picture_path(arguments.plot)
    source = _read(arguments)
    columns = _chosen_columns(source, arguments)
    reference = None if arguments.reference is None else source.labels(arguments.reference)
    _check_sizes(arguments, source, reference)
    frame = source.numbers(columns, advice=True)
    _note(f"{arguments.data}: {frame.height:,} rows, {frame.width:,} columns.", arguments)

    model = _estimator(arguments, reference).fit(frame)
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
    if arguments.rules:
        with pl.Config(tbl_rows=-1, tbl_cols=-1, fmt_str_lengths=10_000, tbl_width_chars=10_000):
            print(model.tree_.rules())
        return
    print(model.tree_)
    print()
    _print_numbers(model)


# ---- fitting and printing -----------------------------------------------------------------


def _check_fit_options(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go together, before the table is read."""
    if arguments.method == "imm":
        for option, value in (
            ("--leaves", arguments.leaves),
            ("--cuts", arguments.cuts),
            ("--base-tree", arguments.base_tree),
        ):
            if value is not None:
                raise UserError(
                    f"{option} goes with --method exkmc; an imm tree has threshold cuts and one "
                    "leaf per cluster."
                )
    if arguments.leaves is None:
        return
    if arguments.clusters is not None and arguments.leaves < arguments.clusters:
        raise UserError(
            f"--leaves {arguments.leaves} is less than -k {arguments.clusters}: every cluster "
            "needs a leaf."
        )
    is_default = arguments.clusters is None and arguments.reference is None
    if is_default and arguments.leaves < DEFAULT_N_CLUSTERS:
        raise UserError(
            f"--leaves {arguments.leaves} is less than the {DEFAULT_N_CLUSTERS} clusters that are "
            "sought without -k: give -k too."
        )


def _check_sizes(
    arguments: argparse.Namespace, source: Source, reference: np.ndarray | None
) -> None:
    """Refuse numbers of clusters and leaves that the table cannot have."""
    if reference is None:
        n_rows, n_clusters = source.frame.height, arguments.clusters or DEFAULT_N_CLUSTERS
        if n_clusters > n_rows:
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


def _estimator(arguments: argparse.Namespace, reference: np.ndarray | None) -> IMM | ExKMC:
    """Make the estimator that the options describe."""
    common: dict[str, Any] = {
        "n_clusters": arguments.clusters,
        "criterion": arguments.criterion,
        "reference": reference,
        "scale": "standard" if arguments.scale == "standard" else None,
        "random_state": arguments.seed,
        "n_jobs": arguments.jobs,
        "verbose": int(not arguments.quiet and (arguments.verbose or sys.stderr.isatty())),
    }
    if arguments.method == "exkmc":
        return ExKMC(
            max_leaves=arguments.leaves,
            cuts=arguments.cuts or "threshold",
            base_tree=None if arguments.base_tree == "none" else "imm",
            **common,
        )
    return IMM(**common)


def _print_fit(model: IMM | ExKMC, n_clusters: int | None, max_leaves: int | None = None) -> None:
    print(model.tree_)
    print()
    if n_clusters is not None and len(model.classes_) < n_clusters:
        _print_number("asked for", f"{n_clusters} clusters")
    _print_numbers(model, max_leaves)


def _print_numbers(model: Any, max_leaves: int | None = None) -> None:
    tree = model.tree_
    _print_number("clusters", f"{len(tree.classes):,}")
    leaves = f"{tree.n_leaves:,}"
    if max_leaves is not None and tree.n_leaves < max_leaves:
        leaves += f" ({max_leaves:,} asked for: no further cut lowers the cost)"
    _print_number("leaves", f"{leaves}, at most {tree.max_depth:,} deep")
    # A model cut down after it was read from a file has no costs: its rows are not there.
    if hasattr(model, "inertia_"):
        _print_number("cost", f"{model.inertia_:,.6g}")
        _print_number("of the reference", f"{model.reference_inertia_:,.6g}")
        _print_number("ratio", f"{model.cost_ratio_:.4f}")
    _print_number(
        "agreement", f"{_share_kept(tree):.1%} of the rows are in their reference cluster"
    )


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
    n_base = model.tree_.n_base_leaves
    if arguments.leaves < n_base:
        raise UserError(
            f"--leaves {arguments.leaves}: {arguments.model} has trees from {n_base} leaves, those "
            "of the base tree, on."
        )
    return model.truncate(arguments.leaves)


def _draw(model: TreeClusterer, path: Path) -> None:
    """Write the picture, or for .dot the Graphviz text, of a fitted model."""
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
    source: Source, model: TreeClusterer, column: str | None
) -> pl.DataFrame | np.ndarray:
    """Give what the model reads: by name, or, where it knows no names, all columns in order."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        source.require(names.tolist())
        return source.numbers(names.tolist())
    columns = [name for name in source.frame.columns if name != column]
    n_wanted = model.tree_.n_features
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


def _load_for(arguments: argparse.Namespace) -> TreeClusterer:
    """Load the model of a command that reads a table too."""
    kinds = Path(arguments.model).suffix.lower(), Path(arguments.data).suffix.lower()
    if kinds[0] in TABLE_SUFFIXES and kinds[1] == ".json":
        raise UserError(
            f"{arguments.model} is named as a table, {arguments.data} as a model: is the order "
            "MODEL DATA?"
        )
    return _load(arguments.model)


def _load(name: str) -> TreeClusterer:
    if not Path(name).is_file():
        raise UserError(f"{name}: no such file.")
    try:
        return load(name)
    except ValueError as error:
        raise UserError(f"{name}: {one_line(error)}") from error


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
    print(f"treeclust: {message}", file=sys.stderr)


def _note(message: str, arguments: argparse.Namespace) -> None:
    if not arguments.quiet:
        _say(message)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    _say("warning: " + " ".join(str(message).split()))


# ---- arguments ----------------------------------------------------------------------------


def _program() -> str:
    """Give the words that start this command again as it was started."""
    started = Path(sys.argv[0])
    if started.parts[-2:] == ("treeclust_rs", "__main__.py"):
        return f"{Path(sys.executable).name.removesuffix('.exe')} -m treeclust_rs"
    if started.stem != "treeclust":
        return "treeclust"
    found = shutil.which("treeclust")
    is_found = found is not None and Path(found).parent.resolve() == started.parent.resolve()
    return "treeclust" if is_found else _quoted(started)


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
        return number

    return read


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


def _parser() -> argparse.ArgumentParser:
    program = _program()
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
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_demo(commands)
    _add_fit(commands)
    _add_predict(commands)
    _add_explain(commands)
    _add_plot(commands)
    _add_info(commands)
    return parser


def _add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], None], summary: str, examples: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="For example:\n" + examples.replace("  treeclust ", f"  {_program()} "),
        formatter_class=_Layout,
    )
    parser.set_defaults(run=run)
    return parser


def _add_demo(commands: Any) -> None:
    parser = _add_command(
        commands,
        "demo",
        _demo,
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
        _fit,
        "find clusters in a table and the tree that explains them",
        "  treeclust fit customers.csv -k 6 -o customers.json\n"
        "  treeclust fit customers.csv -k 6 --leaves 12 --drop id,name --plot tree.png\n"
        "  treeclust fit points.parquet --reference segment --leaves 20 -o segments.json",
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
        help="how many (default: 8, or as many as --reference has)",
    )
    clusters.add_argument(
        "--reference",
        metavar="COLUMN",
        help="explain the clusters in this column, -1 for noise, instead of those of k-means",
    )
    clusters.add_argument(
        "--scale",
        choices=("none", "standard"),
        help="standard: measure each column in its standard deviations, so that all count alike",
    )
    clusters.add_argument(
        "--criterion",
        choices=("kmeans", "kmedians"),
        default="kmeans",
        help="squared or absolute distances (default: kmeans)",
    )
    clusters.add_argument(
        "--seed", type=_whole_number(0, _MAX_SEED), default=0, metavar="N", help="default: 0"
    )

    tree = parser.add_argument_group("the tree")
    tree.add_argument(
        "--leaves",
        type=_whole_number(1),
        metavar="N",
        help="at most so many; more come closer to the clusters (default: one per cluster)",
    )
    tree.add_argument(
        "--method",
        choices=("exkmc", "imm"),
        default="exkmc",
        help="exkmc (default) grows up to --leaves, imm has one leaf per cluster",
    )
    tree.add_argument(
        "--cuts",
        choices=("threshold", "interval"),
        help="tests such as x <= 3 (default), or 1 <= x <= 3 as well",
    )
    tree.add_argument(
        "--base-tree",
        choices=("imm", "none"),
        help="exkmc grows on from the imm tree (default) or from nothing",
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
        _predict,
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
        _explain,
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
        _plot,
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
        _info,
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
