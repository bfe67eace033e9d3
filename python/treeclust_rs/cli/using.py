"""Commands that use a model: `explain`, `profile`, `plot`, `info` and `rename`."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .._base import SavedEstimator, TreeClusterer, load
from .._util import listed
from .._util.words import printable
from ..tree.text import notes_of_clusters
from .features import numbers_words
from .messages import DataError, FileError, UserError, one_line
from .methods import method_of
from .output import (
    draw,
    output_path,
    picture_path,
    print_fact,
    print_facts,
    print_path,
    save,
    save_picture,
    shown,
    write_table,
)
from .reading import TABLE_SUFFIXES, Source, read_source, suffix_of


def explain(arguments: argparse.Namespace) -> None:
    """Print for each row why it is in its cluster."""
    model = load_for(arguments)
    method_of(model)  # refuses models that explain nothing
    features = features_of(read_source(arguments), model, None)
    rows = _row_numbers(arguments.rows, len(features))
    if rows is not None:
        features = features[rows]
    numbers = range(len(features)) if rows is None else rows
    width = len(str(max(numbers, default=0)))
    for number, line in zip(numbers, model.explain(features), strict=True):
        print(f"{number:>{width}}  {line}")


def profile(arguments: argparse.Namespace) -> None:
    """Print what the rows of each cluster are like, and write what is asked for."""
    output = output_path(arguments.output, (*TABLE_SUFFIXES, ".json"), arguments)
    picture = picture_path(arguments.plot, arguments, of_tree=False)
    model: Any = load_for(arguments)
    method_of(model)  # refuses models that explain nothing
    rows = features_of(read_source(arguments), model, None, all_columns=True)
    found = model.profile(rows, scale=None if arguments.scale == "model" else arguments.scale)
    text = str(found)
    rest = text.removesuffix(": see table")  # what is left out, in words of Python
    print(text if rest == text else f"{rest}: -o TABLE writes all")
    if output is not None:
        write_table(found.table, output)
    if picture is not None:
        save_picture(found.plot, picture)


def plot(arguments: argparse.Namespace) -> None:
    """Draw the tree of a model."""
    picture = picture_path(arguments.output, arguments)
    if arguments.no_details and picture.suffix.lower() == ".dot":
        raise UserError(f"{picture}: --no-details is for .png, .svg and .pdf.")
    draw(
        truncated(load_model(arguments.model), arguments),
        picture,
        details=not arguments.no_details,
    )


def info(arguments: argparse.Namespace) -> None:
    """Print the tree of a model and the facts about it, or its rules."""
    rules_path = output_path(arguments.rules_out, tuple(TABLE_SUFFIXES), arguments)
    model = truncated(load_model(arguments.model), arguments)
    if rules_path is not None:
        write_table(model.rules().frame, rules_path)
    if arguments.rules:
        with pl.Config(
            tbl_width_chars=10_000,
            tbl_hide_dataframe_shape=True,
            tbl_hide_column_data_types=True,
        ):
            print(shown(model).rules())
        if isinstance(model, TreeClusterer):
            for note in notes_of_clusters(model.tree_):
                print(note)
    if arguments.rules or rules_path is not None:
        return
    print(shown(model))
    print()
    print_facts(model)
    for name, text in (
        ("read as numbers", numbers_words(model._read_as, printable)),
        ("as levels", listed([printable(column) for column in model._read_as.levels])),
    ):
        if text:
            print_fact(name, text)
    print_path(model)


def rename(arguments: argparse.Namespace) -> None:
    """Write a model with other names for its clusters."""
    output = output_path(arguments.output, (".json",), arguments)
    model: Any = load_model(arguments.model)
    known = {str(label): label for label in model.classes_.tolist()}
    names = {known.get(cluster, cluster): name for cluster, name in arguments.names}
    if len(names) < len(arguments.names):
        raise UserError("a cluster is named twice.")
    assert output is not None
    save(model.rename_clusters(names), output)


def truncated(model: Any, arguments: argparse.Namespace) -> Any:
    """Return the model cut down to `--leaves`."""
    if arguments.leaves is None:
        return model
    method = method_of(model)
    if not method.has_tree:
        raise UserError(f"--leaves {arguments.leaves}: {method.no_tree}.")
    if method.whole_tree:
        raise UserError(
            f"--leaves {arguments.leaves}: {arguments.model} has {method.whole_tree}, which cannot "
            "be cut down."
        )
    n_base = model.tree_.n_base_leaves
    if arguments.leaves < n_base:
        raise UserError(
            f"--leaves {arguments.leaves}: {arguments.model} has trees from {n_base} leaves, those "
            "of the base tree, on."
        )
    return model.truncate(arguments.leaves)


def features_of(
    source: Source, model: SavedEstimator, column: str | None, *, all_columns: bool = False
) -> pl.DataFrame | np.ndarray:
    """Return the columns of the model: by name, or, if it has no names, all in order.

    They are read as in the fit. Columns that the model does not look at may be absent, or hold
    anything, unless all are asked for.
    """
    names = getattr(model, "feature_names_in_", None)
    needed = None if all_columns else model._needed_features
    wanted = range(model.n_features_in_) if needed is None else needed.tolist()
    tree = model.tree_ if isinstance(model, TreeClusterer) else None
    takes_gaps = tree is not None and tree.missing_go_to_left is not None
    if names is not None:
        read = names[wanted].tolist()
        source.require(read)
        if tree is not None and takes_gaps:
            kinds = tree.column_kinds or ["number"] * tree.n_features
            frame = source.as_fitted(
                {names[place]: kinds[place] for place in wanted}, model._read_as
            )
        else:
            frame = source.numbers(read, model._read_as)
        return source.frame.with_columns(frame.get_columns())
    columns = [name for name in source.frame.columns if name != column]
    n_wanted = model.n_features_in_
    if len(columns) != n_wanted:
        raise DataError(
            f"{source.has} {len(columns)} columns; the model, fitted without names, reads "
            f"{n_wanted}."
        )
    rows = np.zeros((source.frame.height, n_wanted))
    numbers = source.numbers([columns[place] for place in wanted], gaps=takes_gaps)
    rows[:, wanted] = numbers.cast(pl.Float64).to_numpy()
    return rows


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
            raise DataError(
                f"--rows asks for row {stop}; the last of the {n_rows:,} rows is {n_rows - 1:,}."
            )
        numbers.extend(range(start, stop + 1))
    return numbers


def load_for(arguments: argparse.Namespace) -> SavedEstimator:
    """Load the model of a command that reads a table too."""
    models = [name for name in arguments.data if name.lower().endswith(".json")]
    if models and suffix_of(arguments.model):
        raise UserError(
            f"{arguments.model} is named as a table, {models[0]} as a model: is the order "
            "MODEL DATA?"
        )
    return load_model(arguments.model)


def load_model(name: str) -> SavedEstimator:
    """Read a model file; raise FileError if it is none."""
    if suffix_of(name):
        raise UserError(
            f"{name} is named as a table: MODEL is a file that treeclust fit -o wrote (.json)."
        )
    path = Path(name)
    if not path.is_file():
        raise FileError(f"{name} is a folder." if path.is_dir() else f"{name}: no such file.")
    try:
        return load(name)
    except ValueError as error:
        raise FileError(one_line(error)) from error
    except OSError as error:
        raise FileError(f"{name} cannot be read: {one_line(error)}") from error
