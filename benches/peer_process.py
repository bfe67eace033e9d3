"""A published package in an environment of its own, driven by JSON lines through pipes."""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

P = TypeVar("P")

HERE = Path(__file__).resolve().parent
PEERS = HERE / ".peers"
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class PeerError(Exception):
    """Why a peer cannot be measured here."""


class PeerProcess:
    """A worker on one thread that answers each command with a mapping.

    A worker that was ended because it took too long is started again by the next command.
    """

    def __init__(self, python: Path, worker: str, **environment: str) -> None:
        self._command = [python, "-W", "ignore", HERE / worker]
        self._environment = {**os.environ, **_ONE_THREAD, **environment}
        self._process: subprocess.Popen[str] | None = None

    def ask(self, command: str, *, limit: float | None = None, **arguments: Any) -> dict[str, Any]:
        """Send one command to the worker and wait for what it answers, `limit` seconds at most."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=self._environment,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        print(json.dumps({"command": command, **arguments}), file=process.stdin, flush=True)
        # One line is asked for at a time, so that none waits in the stream's buffer.
        if limit is not None and not select.select([process.stdout], [], [], limit)[0]:
            process.kill()
            self._end()
            raise PeerError(f"not done after {limit:g} s")
        line = process.stdout.readline()
        if not line:
            self._process = None
            raise PeerError(f"its process ended with status {process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process and drop what it was given."""
        self._end()

    def _end(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            self._process = None


def peer_or_none(make: Callable[[], P], name: str, missing: Callable[[str], None]) -> P | None:
    """Return a peer, or note that it is missing and why."""
    try:
        return make()
    except PeerError as error:
        missing(f"{name}: {error}.")
        return None


def run(
    *command: str | Path, cwd: Path | None = None, environment: dict[str, str] | None = None
) -> str:
    """Run a command to its end and give its output; its last line of error as PeerError."""
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **(environment or {})}, capture_output=True, text=True
    )
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise PeerError(f"{' '.join(map(str, command[:4]))} ... failed: {' '.join(last)}")
    return done.stdout
