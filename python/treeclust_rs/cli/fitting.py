"""The command `fit`."""

import argparse
import sys
import warnings
from typing import Any

import numpy as np
import polars as pl

from .._data import ColumnWarning, Scale
from .._reference.checks import DEFAULT_N_CLUSTERS
from .._util import format_count
from .._util.arrays import NOISE
from .fit_options import check_fit_options, value_of
from .messages import DataError, UserError, write_remark
from .methods import METHODS, parameter_of
from .output import draw, output_path, picture_path, print_fit, save, table_path, write_table
from .reading import Source, read_source

# Costs of kernel trees take O(n^2): up to so many rows they are computed, printed and saved.
_MAX_COST_ROWS = 10_000


def fit(arguments: argparse.Namespace) -> None:
    """Fit a model to a table, print it, and write what is asked for."""
    check_fit_options(arguments)
    method = METHODS[arguments.method]
    if not method.has_tree and arguments.plot is not None:
        raise UserError(f"--plot: {method.no_tree}.")
    model_path = output_path(arguments.output, (".json",), arguments)
    labels_path = table_path(arguments.labels_out, arguments)
    picture = picture_path(arguments.plot, arguments)
    source = read_source(arguments, rechunk=True)
    columns = chosen_columns(source, arguments)
    reference = None if arguments.reference is None else source.labels(arguments.reference)
    check_sizes(arguments, source, reference, arguments.leaves, most=method.is_maximum)
    frame = features(source, columns, arguments)
    if arguments.quiet:
        warnings.simplefilter("ignore", ColumnWarning)
    model = _estimator(arguments, columns, reference).fit(frame)
    with_costs = True
    if method.computes_costs_later:
        # A fit that finds the clusters itself has their costs. The file holds those computed.
        with_costs = frame.height <= _MAX_COST_ROWS or reference is None
        if with_costs:
            _ = model.kernel_cost_, model.reference_kernel_cost_
    if not arguments.quiet:
        print_fit(model, arguments.clusters, arguments.leaves, with_costs=with_costs)
    if model_path is not None:
        save(model, model_path)
        write_remark(f"model written to {model_path}", arguments)
    if picture is not None:
        draw(model, picture)
        write_remark(f"picture written to {picture}", arguments)
    if labels_path is not None:
        labels = pl.DataFrame({"cluster": model.labels_})
        write_table(labels, labels_path, escape_formulas=arguments.escape_formulas)
        write_remark(f"labels written to {labels_path}", arguments)
    if model_path is None:
        what = "nothing" if picture is None and labels_path is None else "the model is not"
        write_remark(f"{what} saved; add -o model.json", arguments)


def check_sizes(
    arguments: argparse.Namespace,
    source: Source,
    reference: np.ndarray | None,
    leaves: float | None,
    *,
    most: bool = False,
) -> None:
    """Raise UserError for numbers of clusters and leaves that the table cannot have.

    `most`: whether ``-k`` is only an upper bound.
    """
    if reference is None:
        n_rows, n_clusters = source.frame.height, number_of_clusters(arguments, None)
        if n_clusters > n_rows and not most:
            default = "" if arguments.clusters else ", the default,"
            rows = format_count(n_rows, "row")
            raise DataError(f"-k {n_clusters}{default} is more than the {rows} of {source.name}.")
        return
    n_clusters = number_of_clusters(arguments, reference)
    column = arguments.reference
    if arguments.clusters not in (None, n_clusters):
        raise DataError(
            f"-k {arguments.clusters}, but the column {column!r} has {n_clusters} clusters."
        )
    if leaves is not None and leaves < n_clusters:
        raise DataError(
            f"--leaves {leaves} is less than the {n_clusters} clusters of the column "
            f"{column!r}: every cluster needs a leaf."
        )


def number_of_clusters(arguments: argparse.Namespace, reference: np.ndarray | None) -> int:
    """Return the number of clusters of a reference; without one, that to seek."""
    if reference is None:
        return int(arguments.clusters or DEFAULT_N_CLUSTERS)
    return len(set(reference.tolist()) - {NOISE})


def scale_of(arguments: argparse.Namespace, columns: list[str]) -> Scale:
    """Return the parameter `scale`; --scale none gives every column the unit 1, as it is meant."""
    units = dict(arguments.unit)
    missing = [name for name in units if name not in columns]
    if missing:
        raise DataError(f"--unit: {missing[0]!r} is not among the columns that are fitted.")
    if units or arguments.scale is None:
        return units or None
    return dict.fromkeys(columns, 1.0) if arguments.scale == "none" else str(arguments.scale)


def _estimator(
    arguments: argparse.Namespace, columns: list[str], reference: np.ndarray | None
) -> Any:
    """Return the estimator that the options describe."""
    method = METHODS[arguments.method]
    parameters: dict[str, Any] = {
        "scale": scale_of(arguments, columns),
        "random_state": arguments.seed,
        "n_jobs": arguments.jobs,
        "verbose": int(not arguments.quiet and (arguments.verbose or sys.stderr.isatty())),
    }
    for option in method.options:
        value = value_of(arguments, option)
        if value is not None:
            parameters[parameter_of(option)] = value
    # "imm" stands for the base tree of the method, which is the default.
    if parameters.pop("base_tree", None) == "none":
        parameters["base_tree"] = None
    parameters["n_clusters"] = arguments.clusters
    if method.takes_reference:  # its clusters, not the name of the column
        parameters["reference"] = reference
    settings = method.settings(number_of_clusters(arguments, reference))
    return method.estimator(**(settings | parameters))


def features(source: Source, columns: list[str], arguments: argparse.Namespace) -> pl.DataFrame:
    """Return the columns to fit as numbers, and tell of their size."""
    frame = source.numbers(columns, chosen_by="--columns" if arguments.columns else "--drop")
    size = f"{format_count(frame.height, 'row')}, {format_count(frame.width, 'column')}"
    write_remark(f"{source.name}: {size}.", arguments)
    return frame


def chosen_columns(source: Source, arguments: argparse.Namespace) -> list[str]:
    """Return the columns to fit: those of `--columns`, or all but `--drop` and labels."""
    everything = source.frame.columns
    named = _named_columns(arguments.columns or arguments.drop, source)
    chosen = named if arguments.columns else [name for name in everything if name not in named]
    # `compare` has true classes beside the reference.
    kinds = {"reference": arguments.reference, "labels": getattr(arguments, "labels", None)}
    apart = {column: kind for kind, column in kinds.items() if column is not None}
    source.require(apart)
    columns = [name for name in chosen if name not in apart]
    if not columns:
        besides = f", besides the {' and the '.join(apart.values())}," if apart else ""
        raise DataError(f"no column of {source.name}{besides} is left to fit.")
    for column, kind in apart.items():
        if column in named and arguments.columns:
            are = "is the reference" if kind == "reference" else "holds the labels"
            write_remark(f"the column {column!r} {are}, and so no feature.", arguments)
    return columns


def _named_columns(options: list[str], source: Source) -> list[str]:
    """Return the columns that `--drop` or `--columns` name, commas in names included."""
    known = source.frame.columns
    names: list[str] = []
    for option in options:
        parts = [option] if option in known else option.split(",")
        names.extend(part if part in known else part.strip() for part in parts)
    source.require(names)
    return list(dict.fromkeys(names))
