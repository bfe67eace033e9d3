"""The command `export`: the tree of a model in another form."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from .messages import UserError, write_message
from .methods import method_of
from .output import draw, output_path, picture_path, replacing_file, save, write_table
from .reading import TABLE_SUFFIXES, read_source
from .text_files import quoted
from .using import features_of, load_model, truncated


class _Form(NamedTuple):
    """What a tree is written as."""

    method: str
    """Of the models that can."""
    suffixes: tuple[str, ...]
    write: Callable[[Any, Path, argparse.Namespace], None]
    text: Callable[[Any, argparse.Namespace], str] | None = None
    """For stdout; None: the form needs a file."""


def _write_html(model: Any, path: Path, arguments: argparse.Namespace) -> None:
    rows = None
    if arguments.data:
        rows = features_of(read_source(arguments), model, None, all_columns=True)
    with replacing_file(path) as temporary:
        model.to_html(temporary, rows, title=arguments.title or type(model).__name__)


def _write_onnx(model: Any, path: Path, _: argparse.Namespace) -> None:
    content = model.to_onnx().SerializeToString()
    with replacing_file(path) as temporary:
        temporary.write_bytes(content)


def _write_text(model: Any, path: Path, arguments: argparse.Namespace) -> None:
    text = FORMS[arguments.to].text
    assert text is not None, "a form that is text"
    content = text(model, arguments)
    with replacing_file(path) as temporary:
        temporary.write_text(content, encoding="utf-8")


def _write_json(model: Any, path: Path, _: argparse.Namespace) -> None:
    save(model, path)


def _sql(model: Any, arguments: argparse.Namespace) -> str:
    named = {"name": arguments.name} if arguments.name else {}
    text: str = model.to_sql(arguments.dialect, arguments.table, **named)
    return _comment(model, "--") + text + "\n"


def _polars(model: Any, _: argparse.Namespace) -> str:
    return _comment(model, "#") + str(model.to_polars_code())


def _comment(model: Any, mark: str) -> str:
    """Return what a query expects as a comment of it, for those who see nothing else."""
    expected = _what_is_expected(model, "query")
    return f"{mark} {expected[0].upper()}{expected[1:]}\n" if expected else ""


FORMS = {
    "html": _Form("to_html", (".html", ".htm"), _write_html),
    "sql": _Form("to_sql", (".sql",), _write_text, _sql),
    "polars": _Form("to_polars_code", (".py",), _write_text, _polars),
    "json": _Form("to_json", (".json",), _write_json, lambda model, _: model.to_json()),
    "onnx": _Form("to_onnx", (".onnx",), _write_onnx),
    "dot": _Form("to_graphviz", (".dot", ".gv"), _write_text, lambda model, _: model.to_graphviz()),
    "png": _Form("plot", (".png",), lambda model, path, _: draw(model, path)),
    "svg": _Form("plot", (".svg",), lambda model, path, _: draw(model, path)),
    "rules": _Form(
        "rules",
        tuple(TABLE_SUFFIXES),
        lambda model, path, _: write_table(model.rules().frame, path),
    ),
}


def _what_is_expected(model: Any, what: str) -> str:
    """Return words on columns that ``--numbers`` read, text elsewhere; empty if there are none."""
    needed = model._needed_features
    names = model.feature_names_in_ if model._read_as.numbers else ()
    tested = names if needed is None or not len(names) else names[needed]
    columns = [column for column in model._read_as.numbers if column in tested]
    if not columns:
        return ""
    return (
        f"the {what} expects numbers, as --numbers read them, in {quoted(columns)}: text such as "
        "€110.5M is to be converted first, in Python by treeclust_rs.text_to_numbers."
    )


def export(arguments: argparse.Namespace) -> None:
    """Write the tree of a model in another form."""
    form = FORMS[arguments.to]
    for option, owner in (("data", "html"), ("title", "html"), ("table", "sql"), ("name", "sql")):
        if getattr(arguments, option) and arguments.to != owner:
            name = "DATA" if option == "data" else f"--{option}"
            raise UserError(f"{name} is for --to {owner}.")
    path = output_path(arguments.output, form.suffixes, arguments)
    if arguments.to in ("png", "svg"):
        path = picture_path(arguments.output, arguments)
    if path is None and form.text is None:
        raise UserError(f"--to {arguments.to} needs a file: -o tree{form.suffixes[0]}.")
    model = truncated(load_model(arguments.model), arguments)
    if not hasattr(model, form.method):
        raise UserError(f"--to {arguments.to}: {method_of(model).no_tree}.")
    if arguments.to in ("sql", "polars", "onnx"):
        expected = _what_is_expected(model, "ONNX model" if arguments.to == "onnx" else "query")
        if expected:
            write_message(expected)
    if path is not None:
        form.write(model, path, arguments)
    elif form.text is not None:
        sys.stdout.write(form.text(model, arguments))
