"""A package of the index in an environment of its own, and a worker there that is given arrays."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from peer_process import PEERS, PeerProcess, run


class PackagePeer(PeerProcess):
    """Installs `requirement` and drives `worker`; raises PeerError if it cannot be installed."""

    def __init__(self, requirement: str, worker: str) -> None:
        self.how = build(requirement)
        self._scratch = tempfile.TemporaryDirectory()
        self._n_files = 0
        super().__init__(_home(requirement) / "env" / "bin" / "python", worker)

    def file(self, array: np.ndarray) -> str:
        """Put an array where the worker reads it; gives the path that stands for it."""
        self._n_files += 1  # the worker keeps what it read under a name
        path = self.path(f"{self._n_files}.npy")
        np.save(path, array)
        return path

    def path(self, name: str) -> str:
        """Return the path of a file in a folder that `close` removes."""
        return str(Path(self._scratch.name) / name)

    def close(self) -> None:
        super().close()
        self._scratch.cleanup()


def build(requirement: str) -> str:
    """Make the environment of a package, unless it is there; say what it holds."""
    home = _home(requirement)
    stamp = home / "built.json"
    wanted = {"requirement": requirement, "python": sys.version}
    if stamp.exists():
        built = json.loads(stamp.read_text())
        if {key: built[key] for key in wanted} == wanted:
            return str(built["how"])
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    run(sys.executable, "-m", "venv", home / "env")
    python = home / "env" / "bin" / "python"
    run(python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", requirement)
    versions = run(
        python,
        "-c",
        "import platform, numpy, sklearn; "
        "print(platform.python_version(), numpy.__version__, sklearn.__version__)",
    ).split()
    how = f"{requirement}, Python {versions[0]}, numpy {versions[1]}, scikit-learn {versions[2]}"
    stamp.write_text(json.dumps({**wanted, "how": how}))
    return how


def _home(requirement: str) -> Path:
    return PEERS / requirement.partition("==")[0]
