"""Messages of the package in the words of the command.

Errors and warnings of estimators name parameters and classes of Python: ``n_clusters=3``,
``scale="standard"``, ``KernelExpand``. The command shows them as ``-k 3``, ``--scale standard``,
``--method kernel-expand``.
"""

from __future__ import annotations

import re

from .methods import METHODS, parameter_of, shared_options

# Options of `fit` by parameter, beside those that only some methods take.
_OPTIONS = {
    "n_clusters": "-k",
    "scale": "--scale",
    "n_jobs": "--jobs",
    "random_state": "--seed",
    "feature_mask": "--columns or --drop",
} | {parameter_of(option): option for option in shared_options()}
_METHODS = {method.estimator.__name__: f"--method {method.name}" for method in METHODS.values()}
# Values that the command spells in another way; other parameters are left out to be None.
_NONE = {"base_tree": "--base-tree none", "scale": "--scale none"}
# Elsewhere only what is no word of the language is the name of a parameter.
_NAMES = "|".join(_OPTIONS)
_WORDS = "|".join([*(name for name in _OPTIONS if "_" in name), "gamma", "alpha", *_METHODS])
_PARTS = re.compile(
    rf"The '(?P<checked>{_NAMES})' parameter of \w+"
    # A unit of a column, whose name is written as Python writes it.
    r"|\bscale=\{(?P<column>'(?:[^'\\]|\\.)*'|\"[^\"]*\"): (?P<unit>[^}]+)\}"
    rf"|(?P<fitted>when (?:{'|'.join(_METHODS)}) was fitted)"
    rf"|(?P<unseen>that (?:{'|'.join(_METHODS)}) did not see in the fit)"
    r'|\bBestTree\(objective="(?P<objective>\w+)"\)'
    r"|(?P<leave>leave (?:it|them) out) of X\b"
    rf"|\b(?P<name>{_NAMES})=(?P<value>\"[^\"]*\"|'[^']*'|[^\s,;:.)]+(?:\.\d+)?)"
    # Names of columns and labels in quotes stay as they are; an apostrophe opens no quotes.
    r"|(?<!\w)'(?:[^'\\]|\\.)*'(?!\w)|\"[^\"]*\""
    r"|(?P<table>(?:\bInput )?\bX\b)(?![=.(\[]\S)"
    # Kernel IMM in two words is the method's name, no class.
    rf"|(?<!Kernel )\b(?P<word>{_WORDS})\b(?![=.(]\S)"
)


def in_words_of_the_command(message: str) -> str:
    """Return a message of the package with options in place of parameters and classes."""
    text = _PARTS.sub(_replace, message)
    return text[:1].upper() + text[1:] if message[:1].isupper() else text


def _replace(part: re.Match[str]) -> str:
    name = part["name"]
    if part["checked"]:
        return _OPTIONS[part["checked"]]
    if part["column"]:
        return f"--unit {part['column']}={part['unit']}"
    if part["fitted"]:
        return "in the fit"
    if part["unseen"]:
        return "that the fit did not have"
    if part["objective"]:
        return f"--objective {part['objective']}"
    if part["leave"]:
        return f"{part['leave']} with --drop"
    if name and part["value"] == "None":
        return _NONE.get(name, f"no {_OPTIONS[name]}")
    if name:
        value = part["value"].strip("\"'")
        return f"{_OPTIONS[name]} {value}"
    if part["table"]:
        return "the table"
    return (_OPTIONS | _METHODS).get(part["word"] or "", part[0])
