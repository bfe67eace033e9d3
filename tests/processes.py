"""Code in a process of its own, with the paths of this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys


def start(code: str) -> subprocess.Popen[str]:
    """Start `code` in another interpreter, output and errors piped."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def interrupt(code: str) -> tuple[str, str, str]:
    """Interrupt `code` after its first line of progress: that line, the output, other errors."""
    with start(code) as process:
        line = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    return line, out.strip(), err
