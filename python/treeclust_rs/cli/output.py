"""What the command writes: pictures and tables in files, models on stdout."""

from __future__ import annotations

import argparse
import gzip
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

import polars as pl
from polars.io.plugins import register_io_source

from .._base import SavedEstimator, TreeClusterer
from .._util.files import replacing
from .facts import kernel_costs, rows_by_cluster
from .messages import FileError, UserError, either, one_line
from .methods import method_of
from .reading import TABLE_SUFFIXES, is_text, suffix_of, table_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DRAWN_SUFFIXES = (".png", ".svg", ".pdf")
# Most lines of the table of costs by number of leaves.
_MAX_PATH_ROWS = 12
# Rows that are made one text.
_ROWS_AT_ONCE = 50_000
# How cells begin that spreadsheets take for formulas.
_FORMULA = r"^[=+\-@\t\r\n]"


def output_path(
    name: str | None, suffixes: tuple[str, ...], arguments: argparse.Namespace
) -> Path | None:
    """Return the path to write to; raise UserError, before the work, if that cannot be.

    A file that the command reads is written to with ``--force`` only.
    """
    if name is None:
        return None
    path = Path(name)
    if not name.lower().endswith(suffixes):
        raise UserError(f"{name}: the name must end in {either(suffixes)}.")
    if not path.parent.is_dir():
        raise FileError(f"{name}: there is no folder {path.parent}.")
    if path.is_dir():
        raise FileError(f"{name} is a folder.")
    if not os.access(Path(os.path.realpath(path)).parent, os.W_OK):  # a link leads elsewhere
        raise FileError(f"{name} cannot be written: the folder {path.parent} is read-only.")
    if path.exists() and not arguments.force:
        for read in _files_read(arguments):
            if os.path.exists(read) and path.samefile(read):
                which = "is" if name == read else f"is the file {read}, which is"
                raise UserError(
                    f"{name} {which} read too: write to another file, or replace it with --force."
                )
    return path


def _files_read(arguments: argparse.Namespace) -> list[str]:
    """Return the names of the files that the command reads."""
    models = [arguments.model] if hasattr(arguments, "model") else getattr(arguments, "models", [])
    return models + table_names(getattr(arguments, "data", []))


def table_path(name: str | None, arguments: argparse.Namespace) -> Path | None:
    """Return the path of a table; raise UserError, before the work, if it cannot be written."""
    path = output_path(name, tuple(TABLE_SUFFIXES), arguments)
    if path is not None and arguments.escape_formulas and not is_text(path):
        raise UserError(f"{path}: --escape-formulas is for tables in text files.")
    return path


@overload
def picture_path(name: str, arguments: argparse.Namespace, *, of_tree: bool = True) -> Path: ...
@overload
def picture_path(name: None, arguments: argparse.Namespace, *, of_tree: bool = True) -> None: ...
def picture_path(
    name: str | None, arguments: argparse.Namespace, *, of_tree: bool = True
) -> Path | None:
    """Return the path of a picture; raise UserError, before the work, if it cannot be drawn.

    Trees can be written as .dot as well, without matplotlib.
    """
    path = output_path(name, _DRAWN_SUFFIXES + (".dot",) * of_tree, arguments)
    if path is not None and path.suffix.lower() != ".dot" and not can_draw():
        but = " (.dot does not)" if of_tree else ""
        raise UserError(f"{name} needs matplotlib: pip install treeclust_rs[plot]{but}.")
    return path


def can_draw() -> bool:
    """Whether matplotlib is there."""
    return find_spec("matplotlib") is not None


@contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which replaces `path` only if no error occurs."""
    try:
        with replacing(path) as temporary:
            yield temporary
    except (OSError, pl.exceptions.PolarsError) as error:
        raise FileError(f"{path} cannot be written: {one_line(error)}") from error


def save(model: SavedEstimator, path: Path) -> None:
    """Write the model file."""
    try:
        model.save(path)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {one_line(error)}") from error


def draw(model: SavedEstimator, path: Path, *, details: bool = True) -> None:
    """Write the picture, or for .dot the Graphviz text, of a fitted model."""
    if not isinstance(model, TreeClusterer):
        raise UserError(f"{path}: {method_of(model).no_tree}.")
    if path.suffix.lower() == ".dot":
        with replacing_file(path) as temporary:
            temporary.write_text(model.to_graphviz(), encoding="utf-8")
        return
    save_picture(lambda: model.plot(details=details), path)


def save_picture(plot: Callable[[], Axes], path: Path) -> None:
    """Write the figure of what `plot` draws."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure = cast(Figure, plot().figure)
    try:
        with replacing_file(path) as temporary:
            figure.savefig(temporary, dpi=150, bbox_inches="tight", facecolor="white")
    finally:
        pyplot.close(figure)


def write_table(
    frame: pl.DataFrame,
    path: Path | None,
    separator: str | None = None,
    *,
    header: bool = True,
    escape_formulas: bool = False,
) -> None:
    """Write a table; the ending of the name sets the format, None is CSV on stdout.

    Besides those of tables that are read it may be .json: a list of one object a row.
    """
    if path is not None and path.suffix.lower() == ".json":
        with replacing_file(path) as temporary:
            frame.write_json(temporary)
    elif path is not None and not is_text(path):
        with replacing_file(path) as temporary:
            frame.write_parquet(temporary)
    else:
        write_batches([frame], path, separator, header=header, escape_formulas=escape_formulas)


def write_batches(
    batches: Iterable[pl.DataFrame],
    path: Path | None,
    separator: str | None = None,
    *,
    header: bool = True,
    escape_formulas: bool = False,
) -> None:
    """Write the rows of batches, one batch after the other, as `write_table` writes them all."""
    parts = map(_without_formulas, batches) if escape_formulas else iter(batches)
    if path is None:
        for text in _texts(parts, separator or ",", header=header):
            sys.stdout.write(text)
        return
    usual = TABLE_SUFFIXES[suffix_of(path) or ""]
    with replacing_file(path) as temporary, ExitStack() as files:
        if not usual:
            _sink_parquet(parts, temporary)
            return
        target = files.enter_context(open(temporary, "xb"))
        if path.suffix.lower() == ".gz":
            # Neither name nor time, so that the same table makes the same file; nor does polars
            # write to it, which makes a mark wherever it ends.
            compressed = files.enter_context(gzip.GzipFile("", "wb", fileobj=target, mtime=0))
            for text in _texts(parts, separator or usual, header=header):
                compressed.write(text.encode())
            return
        for part in parts:
            part.write_csv(target, separator=separator or usual, include_header=header)
            header = False


def _texts(parts: Iterable[pl.DataFrame], separator: str, *, header: bool) -> Iterator[str]:
    """Yield the text of tables, some rows at a time."""
    for part in parts:
        for start in range(0, max(part.height, 1), _ROWS_AT_ONCE):
            rows = part[start : start + _ROWS_AT_ONCE]
            yield rows.write_csv(separator=separator, include_header=header)
            header = False


def _sink_parquet(parts: Iterator[pl.DataFrame], path: Path) -> None:
    """Write batches to a Parquet file; their errors are raised as they are."""
    first = next(parts)
    errors: list[BaseException] = []

    def rows(*_: object) -> Iterator[pl.DataFrame]:
        yield first
        try:
            yield from parts
        except BaseException as error:
            errors.append(error)
            raise

    try:
        register_io_source(rows, schema=first.schema).sink_parquet(path)
    except BaseException:
        if errors:  # polars makes its own of some
            raise errors[0] from None
        raise


def _without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table in which no text, nor a column's name, is a formula to a spreadsheet.

    Text that begins as formulas do, and is not a number, gets an apostrophe in front.
    """

    def escaped(column: pl.Series) -> pl.Series:
        is_text = column.dtype in (pl.String, pl.Categorical, pl.Enum)
        return _escaped(column.cast(pl.String)) if is_text else column

    names = _escaped(pl.Series(frame.columns, dtype=pl.String)).to_list()
    return pl.DataFrame([escaped(frame[:, j]).alias(names[j]) for j in range(frame.width)])


def _escaped(texts: pl.Series) -> pl.Series:
    # The point may be a comma, which is no part of a formula either.
    numbers = texts.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    formulas = texts.str.contains(_FORMULA) & numbers.is_null()
    return texts.zip_with(~formulas.fill_null(False), "'" + texts)


# ---- stdout -----------------------------------------------------------------------------------


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
        if tree.n_leaves > len(tree.classes):
            print_fact("rows by cluster", rows_by_cluster(tree))
    for facts in method.facts:
        if with_costs or facts is not kernel_costs:
            for name, text in facts(model):
                print_fact(name, text)


def print_path(model: Any) -> None:
    """Print cost and ratio by number of leaves, if the model has trees of several sizes."""
    path = method_of(model).path(model)
    if path is None or path.height < 2:
        return
    last = path.height - 1
    shown_rows = {round(last * step / (_MAX_PATH_ROWS - 1)) for step in range(_MAX_PATH_ROWS)}
    rows = path[sorted(shown_rows)]
    what = path.columns[1]
    about = ", about the reference's centers," if what == "surrogate cost" else ""
    print(f"\n  {what}{about} by number of leaves")
    names = [name.removeprefix("n_").removeprefix("surrogate ") for name in path.columns]
    print("  " + "".join(f"{name:>14}" for name in names))
    for n_leaves, cost, *ratio in rows.iter_rows():
        cells = [f"{n_leaves:,}", f"{cost:,.6g}", *(f"{value:.4f}" for value in ratio)]
        print("  " + "".join(f"{cell:>14}" for cell in cells))


def print_table(table: pl.DataFrame) -> None:
    """Print all rows and columns of a table."""
    with pl.Config(
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=10_000,
        fmt_str_lengths=200,
        float_precision=4,
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        set_tbl_cell_numeric_alignment="RIGHT",
    ):
        print(table)


def print_fact(name: str, text: str) -> None:
    """Print one fact."""
    print(f"  {name:<17} {text}")


def shown(model: Any) -> Any:
    """Return what of a model is printed: its tree, or the table of its cells."""
    return model.tree_ if method_of(model).has_tree else model.table_
