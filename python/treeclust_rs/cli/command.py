"""The command ``treeclust``: from a table on disk to an explained clustering and back.

What a user can get wrong ends in one line on stderr and an exit status that says what it is (see
`messages.EXIT_STATUSES`), Ctrl-C in 130; results go to stdout, remarks and progress to stderr.
Files appear whole or not at all: they are written beside their place and then moved.
"""

import os
import sys
import warnings
from collections.abc import Sequence

import polars as pl

from .comparing import compare
from .demo import demo
from .exporting import export
from .fitting import fit
from .messages import DataError, FileError, UserError, one_line, write_message
from .parser import make_parser
from .predicting import predict
from .reporting import report
from .using import explain, info, plot, profile, rename
from .wording import in_words_of_the_command

_COMMANDS = {
    "demo": demo,
    "fit": fit,
    "compare": compare,
    "predict": predict,
    "explain": explain,
    "profile": profile,
    "plot": plot,
    "export": export,
    "report": report,
    "info": info,
    "rename": rename,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, default=None
        The arguments; None takes those of the process.

    Returns
    -------
    int
        0; 2 if the command line is wrong, 3 if a table does not suit it, 4 for a file, disk or
        memory; 130 after Ctrl-C; 1 if the reader of stdout has stopped.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _show_warning
            arguments = make_parser().parse_args(argv)
            _COMMANDS[arguments.command](arguments)
            sys.stdout.flush()
    except BrokenPipeError:  # head or less has stopped
        _discard_stdout()
        return 1
    except KeyboardInterrupt:
        write_message("interrupted.")
        return 130
    except UserError as error:
        write_message(one_line(error))
        return error.status
    except MemoryError as error:
        write_message(f"not enough memory: {in_words_of_the_command(one_line(error))}")
        return FileError.status
    except OSError as error:
        name = "" if error.filename is None else f"{error.filename}: "
        write_message(f"{name}{one_line(error)}")
        _discard_stdout()
        return FileError.status
    except UnicodeEncodeError as error:  # of stdout: files are written in UTF-8
        write_message(f"the output is not {error.encoding} text: set PYTHONIOENCODING=utf-8.")
        return FileError.status
    except (ValueError, TypeError, ImportError, pl.exceptions.PolarsError) as error:
        write_message(in_words_of_the_command(one_line(error)))
        return DataError.status
    return 0


def _discard_stdout() -> None:
    """Drop what stdout holds if it cannot be written, so that nothing is written at exit either."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Write a warning; stands in for `warnings.showwarning`."""
    text = " ".join(str(message).split())
    write_message(f"warning: {in_words_of_the_command(text)}")
