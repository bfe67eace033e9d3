"""The command `compare`."""

import argparse
from typing import Any

import polars as pl
from sklearn.utils import get_tags

from .._base import ReadAs
from ..selection import compare as compare_methods
from ..selection.comparison import default_methods
from .features import chosen_columns, chosen_reading, features, is_mixed
from .fit_options import check_leaves
from .fitting import check_sizes, ignore_what_was_said, number_of_clusters, scale_of
from .messages import DataError, UserError, either, write_remark
from .methods import METHODS, method_of
from .output import output_path, picture_path, print_table, save_picture, write_table
from .reading import TABLE_SUFFIXES, Source, read_source
from .text_files import quoted
from .using import load_model


def compare(arguments: argparse.Namespace) -> None:
    """Fit several methods to a table, print what each costs, and write what is asked for."""
    least = min(arguments.leaves) if arguments.leaves else None
    check_leaves(arguments, least)
    methods = _methods(arguments)
    output = output_path(arguments.output, (*TABLE_SUFFIXES, ".json"), arguments)
    picture = picture_path(arguments.plot, arguments, of_tree=False)
    models = {name: load_model(name) for name in arguments.models}
    source = read_source(arguments, rechunk=True)
    columns = chosen_columns(source, arguments)
    reference, labels = (
        None if column is None else source.labels(column)
        for column in (arguments.reference, arguments.labels)
    )
    check_sizes(arguments, source, reference, least)
    read_as = chosen_reading(
        source, columns, arguments, [model._read_as for model in models.values()]
    )
    frame = features(source, columns, arguments, read_as, mixed=True)
    if is_mixed(frame):
        methods = _that_take_mixed(methods, source, columns, arguments, read_as)
    ignore_what_was_said(arguments)
    for name, model in models.items():
        _check_columns(name, model, frame)
    k = number_of_clusters(arguments, reference)
    for method in methods.values():
        method.set_params(**method_of(method).settings(k))
    found = compare_methods(
        frame,
        methods | models,
        arguments.clusters,
        arguments.leaves,
        labels=labels,
        reference=reference,
        scale=scale_of(arguments, columns),
        random_state=arguments.seed,
        n_jobs=arguments.jobs,
        verbose=0 if arguments.quiet else 1 + arguments.verbose,
    )
    if not arguments.quiet:
        print_table(found.table)
    if output is not None:
        write_table(found.table, output)
        write_remark(f"table written to {output}", arguments)
    if picture is not None:
        save_picture(found.plot, picture)
        write_remark(f"picture written to {picture}", arguments)


def _methods(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the estimators to compare by the words that `fit` has for them."""
    if arguments.methods is None:
        estimators = {_name(model): model for model in default_methods()}
    else:
        names = [name.strip() for name in arguments.methods.split(",")]
        for name in names:
            if name not in METHODS:
                raise UserError(f"--methods: there is no {name!r}; {either(list(METHODS))}.")
        estimators = {name: METHODS[name].estimator() for name in names}
    if arguments.include_greedy:
        if "random-cuts" not in estimators:
            raise UserError("--include-greedy goes with random-cuts, which is not in --methods.")
        estimators["random-cuts"].set_params(include_greedy=True)
    return estimators


def _that_take_mixed(
    methods: dict[str, Any],
    source: Source,
    columns: list[str],
    arguments: argparse.Namespace,
    read_as: ReadAs,
) -> dict[str, Any]:
    """Return the methods that take text, times and missing cells; refuse others in ``--methods``.

    Kernel-expand takes them with other options than `compare` has.
    """
    taken, others = {}, []
    for name, method in methods.items():
        if get_tags(method).input_tags.allow_nan:
            taken[name] = method
        else:
            others.append(name)
    if others and arguments.methods is not None:
        instead = f"Or take {','.join(others)} out of --methods."
        features(source, columns, arguments, read_as, mixed=False, instead=instead)
    if others:
        write_remark(
            f"left out, for they take complete numbers alone: {', '.join(others)}.", arguments
        )
    return taken


def _check_columns(name: str, model: Any, frame: pl.DataFrame) -> None:
    """Raise DataError if a model looks at columns that are not compared."""
    names, needed = getattr(model, "feature_names_in_", None), model._needed_features
    if names is None:
        return
    read = names if needed is None else names[needed]
    if missing := [column for column in read.tolist() if column not in frame.columns]:
        raise DataError(
            f"{name} looks at {quoted(missing)}, which is not among the columns that are compared."
        )


def _name(model: Any) -> str:
    """Return the name of a method, with the option of `fit` that tells two of one class apart."""
    has_base = model.get_params().get("base_tree", "imm")
    return method_of(model).name + ("" if has_base else " --base-tree none")
