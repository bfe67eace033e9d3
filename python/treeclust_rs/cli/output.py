"""Files that the command writes: pictures, tables, and how they get their place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import cast, overload

import polars as pl

from .._base.clusterer import TreeClusterer
from .._base.saving import SavedEstimator
from .messages import UserError, one_line
from .methods import method_of
from .reading import TABLE_SUFFIXES

__all__ = ["can_draw", "draw", "output_path", "picture_path", "write_table"]

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
    """Write a table in the form that the name's ending tells."""
    with _replacing(path) as temporary:
        usual = TABLE_SUFFIXES[path.suffix.lower()]
        if usual:
            frame.write_csv(temporary, separator=separator or usual, include_header=header)
        else:
            frame.write_parquet(temporary)
