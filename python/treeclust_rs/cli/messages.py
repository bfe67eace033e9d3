"""What the command writes to stderr: errors, warnings and remarks, each in one line."""

import argparse
import sys
from collections.abc import Sequence

# Parameters that messages of estimators advise to change, as options of the command.
_OPTIONS = {"(feature_mask)": "(--columns or --drop)", "(n_cuts=": "(--n-cuts "}


class UserError(Exception):
    """An error that the user can put right, in one line."""


def one_line(error: BaseException) -> str:
    """Return the message of an error without its line breaks."""
    text = " ".join(str(error).split())
    return text or type(error).__name__


def either(words: Sequence[str]) -> str:
    """Return "a, b or c"."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def write_message(message: str) -> None:
    """Write a message, with options in place of parameters."""
    for parameter, option in _OPTIONS.items():
        message = message.replace(parameter, option)
    print(f"treeclust: {message}", file=sys.stderr)


def write_remark(message: str, arguments: argparse.Namespace) -> None:
    """Write a message unless the command is quiet."""
    if not arguments.quiet:
        write_message(message)


def show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Write a warning; stands in for `warnings.showwarning`."""
    write_message("warning: " + " ".join(str(message).split()))
