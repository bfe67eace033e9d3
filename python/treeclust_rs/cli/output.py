"""What the command writes: pictures and tables in files, models on stdout."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast, overload

import polars as pl

from .._base import SavedEstimator, TreeClusterer
from .facts import kernel_costs
from .messages import UserError, one_line
from .methods import method_of
from .reading import TABLE_SUFFIXES

_PICTURE_SUFFIXES = (".png", ".svg", ".pdf", ".dot")


def output_path(name: str | None, suffixes: tuple[str, ...]) -> Path | None:
    """Return the path to write to; raise UserError, before the work, if that cannot be."""
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
def picture_path(name: str) -> Path: ...
@overload
def picture_path(name: None) -> None: ...
def picture_path(name: str | None) -> Path | None:
    """Return the path of a picture; raise UserError, before the work, if it cannot be drawn."""
    path = output_path(name, _PICTURE_SUFFIXES)
    if path is not None and path.suffix.lower() != ".dot" and not can_draw():
        raise UserError(f"{name} needs matplotlib: pip install treeclust_rs[plot] (.dot does not).")
    return path


def can_draw() -> bool:
    """Whether matplotlib is there."""
    return find_spec("matplotlib") is not None


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which replaces `path` only if no error occurs."""
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        reason = one_line(error).replace(str(temporary), str(path))
        raise UserError(f"{path} cannot be written: {reason}") from error
    finally:
        temporary.unlink(missing_ok=True)


def draw(model: SavedEstimator, path: Path) -> None:
    """Write the picture, or for .dot the Graphviz text, of a fitted model."""
    if not isinstance(model, TreeClusterer):
        raise UserError(f"{path}: {method_of(model).no_tree}.")
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


def write_table(
    frame: pl.DataFrame, path: Path, separator: str | None = None, *, header: bool = True
) -> None:
    """Write a table; the name's ending sets the format."""
    with _replacing(path) as temporary:
        usual = TABLE_SUFFIXES[path.suffix.lower()]
        if usual:
            frame.write_csv(temporary, separator=separator or usual, include_header=header)
        else:
            frame.write_parquet(temporary)


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
    for facts in method.facts:
        if with_costs or facts is not kernel_costs:
            for name, text in facts(model):
                print_fact(name, text)


def print_fact(name: str, text: str) -> None:
    """Print one fact."""
    print(f"  {name:<17} {text}")


def shown(model: Any) -> Any:
    """Return what of a model is printed: its tree, or the table of its cells."""
    return model.tree_ if method_of(model).has_tree else model.table_
