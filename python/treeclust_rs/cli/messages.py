"""What the command writes to stderr: errors, warnings and remarks, each in one line."""

import argparse
import sys
from collections.abc import Sequence
from typing import ClassVar

EXIT_STATUSES = (
    "exit status: 0 done; 2 the command line is wrong; 3 a table is not what the command or the "
    "model\nneeds; 4 a file cannot be read or written, is not a model file, or disk or memory is "
    "full;\n130 interrupted"
)
"""For the help of every command."""


class UserError(Exception):
    """An error that the user can put right, in one line: the command line is wrong."""

    status: ClassVar[int] = 2


class DataError(UserError):
    """A table is not what the command or the model needs."""

    status = 3


class FileError(UserError):
    """A file cannot be read or written, or is not of its kind."""

    status = 4


def one_line(error: BaseException) -> str:
    """Return the message of an error without its line breaks; of the system's, its reason."""
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
    return text or type(error).__name__


def either(words: Sequence[str]) -> str:
    """Return "a, b or c"."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def write_message(message: str) -> None:
    """Write a message."""
    print(f"treeclust: {message}", file=sys.stderr)


def write_remark(message: str, arguments: argparse.Namespace) -> None:
    """Write a message unless the command is quiet."""
    if not arguments.quiet:
        write_message(message)
