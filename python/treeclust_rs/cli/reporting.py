"""The command `report`: a page about a model for those who decide."""

import argparse
from typing import Any

from .messages import UserError
from .methods import method_of
from .output import output_path, replacing_file
from .reading import read_source
from .using import features_of, load_for, load_model, truncated


def report(arguments: argparse.Namespace) -> None:
    """Write the report of a model."""
    path = output_path(arguments.output, (".html", ".htm"), arguments)
    assert path is not None
    model: Any = truncated(load_for(arguments), arguments)
    method_of(model)  # refuses models that explain nothing
    previous = None if arguments.previous is None else load_model(arguments.previous)
    source = read_source(arguments)
    rows = features_of(source, model, None, all_columns=True)
    if previous is not None and hasattr(model, "feature_names_in_") != hasattr(
        previous, "feature_names_in_"
    ):
        raise UserError("--previous: of the two models one has names of columns, the other none.")
    from ..reports import report

    with replacing_file(path) as temporary:
        report(
            model,
            rows,
            temporary,
            previous=previous,
            title=arguments.title,
            exemplars=arguments.exemplars,
        )
