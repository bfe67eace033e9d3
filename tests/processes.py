"""Code in a process of its own, with the paths of this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

# What follows a script to call its `work` in a thread of a stack as small as on some systems.
IN_A_SMALL_STACK = """
import threading
threading.stack_size(256 * 1024)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


def start(code: str) -> subprocess.Popen[str]:
    """Start `code` in another interpreter, output and errors piped."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def output_of(code: str, *arguments: str, seconds: float = 120) -> str:
    """Return what `code` prints in another interpreter, which must end well."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=seconds,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def interrupt(code: str) -> tuple[str, str, str]:
    """Interrupt `code` after its first line of progress: that line, the output, other errors."""
    with start(code) as process:
        line = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    return line, out.strip(), err
