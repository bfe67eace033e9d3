"""The command ``treeclust``: from a table on disk to an explained clustering and back.

What a user can get wrong ends in one line on stderr and exit status 2, Ctrl-C in 130; results go to
stdout, remarks and progress to stderr. Files appear whole or not at all: they are written beside
their place and then moved.
"""

import os
import sys
import warnings
from collections.abc import Sequence

import polars as pl

from .demo import demo
from .fitting import fit
from .messages import UserError, one_line, show_warning, write_message
from .parser import make_parser
from .using import explain, info, plot, predict

_COMMANDS = {
    "demo": demo,
    "fit": fit,
    "predict": predict,
    "explain": explain,
    "plot": plot,
    "info": info,
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
        0, or 2 after an error that the user can put right, or 130 after Ctrl-C.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show_warning
            arguments = make_parser().parse_args(argv)
            _COMMANDS[arguments.command](arguments)
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has stopped: nothing is written to it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        write_message("interrupted.")
        return 130
    except (
        UserError,
        ValueError,
        TypeError,
        ImportError,
        MemoryError,
        OSError,
        pl.exceptions.PolarsError,
    ) as error:
        write_message(one_line(error))
        return 2
    return 0
