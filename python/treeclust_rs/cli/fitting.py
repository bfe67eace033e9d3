"""The command `fit`."""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.utils import get_tags

from .._data import ColumnWarning, Scale, TextNumbersWarning
from .._reference.checks import DEFAULT_N_CLUSTERS
from .._util import ReadingProgress, format_count, is_noise
from ..parts import fit_batches
from ..parts.kept import written
from .features import (
    chosen_by_option,
    chosen_columns,
    chosen_reading,
    features,
    read_by_options,
    tell_features,
)
from .fit_options import check_fit_options, value_of
from .messages import DataError, UserError, write_remark
from .methods import METHODS, MIXED_METHODS, parameter_of
from .output import (
    draw,
    output_path,
    picture_path,
    print_fit,
    save,
    table_path,
    write_batches,
    write_table,
)
from .reading import Source, read_source
from .streaming import Batch, open_stream
from .survey import Survey
from .text_columns import check_text

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
    fitted = _fit_batches(arguments) if arguments.stream else _fit_table(arguments)
    model, with_costs = fitted.model, fitted.with_costs
    if model_path is not None:  # first: whoever reads the tree may stop before its end
        save(model, model_path)
    if not arguments.quiet:
        print_fit(model, arguments.clusters, arguments.leaves, with_costs=with_costs)
    if model_path is not None:
        write_remark(f"model written to {model_path}", arguments)
    if picture is not None:
        draw(model, picture)
        write_remark(f"picture written to {picture}", arguments)
    if labels_path is not None:
        fitted.write_labels(labels_path, arguments.escape_formulas)
        write_remark(f"labels written to {labels_path}", arguments)
    if model_path is None:
        what = "nothing" if picture is None and labels_path is None else "the model is not"
        write_remark(f"{what} saved; add -o model.json", arguments)


@dataclass(frozen=True)
class _Fitted:
    """A model, and what is left to do with it."""

    model: Any
    with_costs: bool
    """Whether its costs of kernels are printed."""
    write_labels: Callable[[Path, bool], None]
    """Writes the cluster of every row to a path; whether formulas are escaped."""


def _fit_table(arguments: argparse.Namespace) -> _Fitted:
    """Fit a model to a table in memory."""
    method = METHODS[arguments.method]
    source = read_source(arguments, rechunk=True)
    columns = chosen_columns(source, arguments)
    reference = None if arguments.reference is None else source.labels(arguments.reference)
    check_sizes(arguments, source, reference, arguments.leaves, most=method.is_maximum)
    model = _estimator(arguments, columns, reference)
    mixed = get_tags(model).input_tags.allow_nan
    if arguments.levels and not mixed:
        raise UserError(f"--levels: --method {method.name} takes numbers alone. {MIXED_METHODS}")
    read_as = chosen_reading(source, columns, arguments)
    frame = features(source, columns, arguments, read_as, mixed=mixed)
    ignore_what_was_said(arguments)
    model.fit(frame)
    model._read_as = read_as
    with_costs = True
    if method.computes_costs_later:
        # A fit that finds the clusters itself has their costs. The file holds those computed.
        with_costs = frame.height <= _MAX_COST_ROWS or reference is None
        if with_costs:
            _ = model.kernel_cost_, model.reference_kernel_cost_

    def write_labels(path: Path, escape_formulas: bool) -> None:
        labels = pl.DataFrame({"cluster": model.labels_})
        write_table(labels, path, escape_formulas=escape_formulas)

    return _Fitted(model, with_costs, write_labels)


def _fit_batches(arguments: argparse.Namespace) -> _Fitted:
    """Fit a model to a table that is read again and again, batch by batch."""
    stream, reference = open_stream(arguments), arguments.reference
    head = stream.head()
    columns = chosen_columns(head, arguments)
    numbers, levels = read_by_options(head, columns, arguments)
    model = _estimator(arguments, columns, None)
    progress = ReadingProgress(type(model).__name__, model.verbose)
    survey = Survey(stream, columns, numbers, levels, reference, progress)
    survey.look()
    if survey.labels is None:
        _check_rows(arguments, stream.name, stream.n_rows)
    else:
        survey.labels.check()
        if (n_clusters := survey.labels.n_clusters()) is not None:
            _check_clusters(arguments, n_clusters, arguments.leaves)
    read_as = survey.read_as()
    gaps = survey.gaps(read_as, chosen_by_option(arguments))
    found = check_text(head, survey.text_facts(), read_as, arguments)
    found.sums = survey.sums
    tell_features(stream.name, head.read(columns, read_as), gaps, read_as, found, arguments)

    def rows() -> Iterator[pl.DataFrame]:
        return stream.map(lambda batch: batch.read(columns, read_as), columns)

    def with_labels(batch: Batch) -> pl.DataFrame:
        labels = pl.Series(reference, batch.labels(reference))
        return batch.read(columns, read_as).with_columns(labels)

    def labelled() -> Iterator[pl.DataFrame]:
        return stream.map(with_labels, [*columns, reference])

    ignore_what_was_said(arguments)
    try:
        _fit_rows(model, rows if reference is None else labelled, arguments, progress)
    except ValueError as error:
        raise ValueError(str(error).replace("batches has", head.has, 1)) from error
    model._read_as = read_as

    def write_labels(path: Path, escape_formulas: bool) -> None:
        labels = (pl.DataFrame({"cluster": model.predict(batch)}) for batch in rows())
        write_batches(labels, path, escape_formulas=escape_formulas)

    return _Fitted(model, True, write_labels)


def _fit_rows(
    model: Any,
    rows: Callable[[], Iterator[pl.DataFrame]],
    arguments: argparse.Namespace,
    progress: ReadingProgress,
) -> None:
    """Fit a model to rows, read anew for each question, or once and kept in a folder."""
    reference, cache = arguments.reference, arguments.cache
    if cache is None:
        # Nothing is held: a table that changes during the fit is told, however small.
        fit_batches(model, rows, reference=reference, cache=None)
        return

    def write(path: Path) -> None:
        write_batches(progress.follow(rows(), "written to --cache", len), path)

    with written(write, cache) as query:
        fit_batches(model, query, reference=reference, cache=None)


def ignore_what_was_said(arguments: argparse.Namespace) -> None:
    """Ignore warnings of columns that `tell_features` has given in the words of the command."""
    warnings.simplefilter("ignore", ColumnWarning if arguments.quiet else TextNumbersWarning)


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
    if reference is not None:
        _check_clusters(arguments, number_of_clusters(arguments, reference), leaves)
    elif not most:
        _check_rows(arguments, source.name, source.frame.height)


def _check_rows(arguments: argparse.Namespace, name: str, n_rows: int) -> None:
    """Raise DataError for more clusters than rows; `name`: of the table."""
    n_clusters = number_of_clusters(arguments, None)
    if n_clusters > n_rows:
        default = "" if arguments.clusters else ", the default,"
        rows = format_count(n_rows, "row")
        raise DataError(f"-k {n_clusters}{default} is more than the {rows} of {name}.")


def _check_clusters(arguments: argparse.Namespace, n_clusters: int, leaves: float | None) -> None:
    """Raise DataError for options that do not suit the clusters of the reference."""
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
    return len(set(reference[~is_noise(reference)].tolist()))


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
