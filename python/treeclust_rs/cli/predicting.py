"""The command `predict`."""

import argparse
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from .._base import SavedEstimator, TreeClusterer
from .._data.checks import gap_words, gaps_message
from .._data.mixed import unknown_message, unknown_words
from .._util import warn_user
from .._util.words import MAX_LISTED, printable
from .messages import DataError, UserError
from .methods import method_of
from .output import print_table, table_path, write_batches, write_table
from .reading import TABLE_SUFFIXES, Source, read_source, suffix_of
from .streaming import Batch, Stream, open_stream
from .using import features_of, load_for

# How the warnings begin whose counts are those of `TreeClusterer.drift`.
_COUNTED = ("X has gaps where the fit had none", "X has levels that")


def predict(arguments: argparse.Namespace) -> None:
    """Write a table with the cluster of every row."""
    if not arguments.column:
        raise UserError("--column: the new column needs a name.")
    output = table_path(arguments.output, arguments)
    model = load_for(arguments)
    if arguments.drift and not isinstance(model, TreeClusterer):
        raise UserError(f"--drift: {method_of(model).no_tree}.")
    if arguments.stream:
        _predict_stream(arguments, model, output)
        return
    source = read_source(arguments, may_be_empty=True)
    _check_column(source, arguments)
    rows = features_of(source, model, arguments.column)
    if not source.frame.height:
        _warn_of_no_rows(source.name)
        if output is not None or not arguments.drift:
            labelled = _without_rows(source, model, arguments.column)
            write_table(labelled, output, **_form(source.files[0][0], output, arguments))
        return
    if arguments.drift and isinstance(model, TreeClusterer):
        _print_drift(model.drift(rows))
        if output is None:
            return
        warnings.simplefilter("ignore", UserWarning)  # it is in the table
    labels = model.predict(rows)
    labelled = source.frame.with_columns(pl.Series(arguments.column, labels))
    write_table(labelled, output, **_form(source.files[0][0], output, arguments))


def _predict_stream(
    arguments: argparse.Namespace, model: SavedEstimator, output: Path | None
) -> None:
    """Write the table batch by batch: the same output in the memory of some batches."""
    stream = open_stream(arguments, may_be_empty=True)
    head = stream.head()
    _check_column(head, arguments)
    features_of(head, model, arguments.column)  # raises where columns are missing
    stream.look_at_codes(model._read_as.levels)
    labelling = _Labelling(model, arguments.column, drift_alone=arguments.drift and output is None)
    batches = labelling.batches(stream, count_all=arguments.drift)
    first = next(batches, None)
    if first is None:
        _warn_of_no_rows(stream.name)
        first = _without_rows(head, model, arguments.column)
    batches = chain([first], batches)
    if labelling.drift_alone:
        for _ in batches:
            pass
    else:
        write_batches(batches, output, **_form(stream.names[0], output, arguments))
    if arguments.drift and stream.n_rows:
        _print_drift(labelling.drift())
    else:
        labelling.warn()


def _warn_of_no_rows(name: str) -> None:
    warn_user(f"{name}: no rows to label.")


def _without_rows(head: Source, model: SavedEstimator, column: str) -> pl.DataFrame:
    """Return a table without rows, with a column of clusters."""
    labels = model.classes_.tolist() if hasattr(model, "classes_") else [0]
    return head.frame.with_columns(pl.Series(column, labels).clear())


def _check_column(source: Source, arguments: argparse.Namespace) -> None:
    if arguments.column in source.frame.columns and not arguments.overwrite:
        raise DataError(
            f"{source.has} a column {arguments.column!r} already: name the new one with "
            "--column, or replace it with --overwrite."
        )


def _form(first: str, output: Path | None, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return how the table is written, if it is text; `first`: the first file that is read."""
    # A table of the same kind is written in the format of the one that was read.
    alike = output is None or _separator_of(output) == _separator_of(first)
    return {
        "separator": arguments.separator if alike else None,
        "header": not arguments.no_header,
        "escape_formulas": arguments.escape_formulas,
    }


def _separator_of(name: str | Path) -> str:
    return TABLE_SUFFIXES[suffix_of(name) or ""]


class _Labelling:
    """Batches with the clusters of their rows, and what there is to warn of in all of them."""

    def __init__(self, model: SavedEstimator, column: str, *, drift_alone: bool) -> None:
        self._model, self._column, self.drift_alone = model, column, drift_alone
        self._drift: list[dict[str, Any]] = []
        self._levels: list[Counter[str]] = []
        self._schema: pl.Schema | None = None
        self._warnings: dict[str, None] = {}

    def batches(self, stream: Stream, *, count_all: bool) -> Iterator[pl.DataFrame]:
        """Yield the batches with a column of clusters; `count_all`: drift is asked for."""
        return stream.map(lambda batch: self._labelled(batch, count_all))

    def _labelled(self, batch: Batch, count: bool) -> pl.DataFrame:
        model = self._model
        rows = features_of(batch, model, self._column)
        labelled = batch.frame
        with warnings.catch_warnings(record=True) as caught:
            if not self.drift_alone:
                labels = pl.Series(self._column, model.predict(rows))
                labelled = batch.frame.with_columns(labels)
        for text in (str(warning.message) for warning in caught):
            if isinstance(model, TreeClusterer) and text.startswith(_COUNTED):
                count = True
            else:
                self._warnings[text] = None
        if count and isinstance(model, TreeClusterer):
            self._count(model.drift(rows))
        return labelled

    def _count(self, drift: pl.DataFrame) -> None:
        rows = drift.to_dicts()
        if self._schema is None:
            self._schema, self._drift = drift.schema, rows
            self._levels = [Counter() for _ in rows]
        else:
            for total, row in zip(self._drift, rows, strict=True):
                total["missing"] += row["missing"]
                total["unknown"] += row["unknown"]
        for levels, row in zip(self._levels, rows, strict=True):
            levels.update({level["level"]: level["rows"] for level in row["unknown_levels"]})

    def drift(self) -> pl.DataFrame:
        """Return the table of `TreeClusterer.drift` for the rows of all batches."""
        for total, levels in zip(self._drift, self._levels, strict=True):
            total["unknown_levels"] = [
                {"level": level, "rows": rows}
                for level, rows in sorted(levels.items(), key=lambda item: (-item[1], item[0]))
            ]
        return pl.DataFrame(self._drift, schema=self._schema)

    def warn(self) -> None:
        """Warn once of all batches, as `predict` of all rows would."""
        for text in self._warnings:
            warn_user(text)
        if not self._drift or not isinstance(self._model, TreeClusterer):
            return
        columns = self._model._needed_features.tolist()
        unknown, gaps = [], []
        for column, total, levels in zip(columns, self._drift, self._levels, strict=True):
            if levels:
                kind = self._model.tree_.column(column).kind
                unknown.append(unknown_words(total["column"], sorted(levels), kind))
            if total["missing"] and not total["missing_in_fit"]:
                names = self._model.tree_.feature_names
                gaps.append(gap_words(names, column, total["missing"]))
        if unknown:
            warn_user(unknown_message(unknown, type(self._model).__name__))
        if gaps:
            warn_user(gaps_message(gaps))


def _print_drift(drift: pl.DataFrame) -> None:
    """Print missing cells and unknown levels by column."""
    unknown = pl.col("unknown_levels").list.eval(
        pl.format("{} ({})", pl.element().struct.field("level"), pl.element().struct.field("rows"))
    )
    more = pl.col("unknown_levels").list.len().cast(pl.Int64) - MAX_LISTED
    shown = drift.with_columns(
        pl.Series("column", map(printable, drift["column"]), dtype=pl.String),
        unknown.list.head(MAX_LISTED).list.join(", ")
        + pl.when(more > 0).then(pl.format(" and {} more", more)).otherwise(pl.lit("")),
    )
    names = [name.replace("_", " ") for name in drift.columns]
    print_table(shown.rename(dict(zip(drift.columns, names, strict=True))))
