"""The published Kauri, of the package gemclus, in an environment of its own.

The package is GPL: it is installed from the package index as it is and called as its documentation
says. Nothing of it is read, linked or shipped.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from peer_process import PEERS, PeerProcess, run

HOME = PEERS / "gemclus"
REQUIREMENT = "gemclus==1.1.1"


class GemclusPeer(PeerProcess):
    """A process that fits gemclus' Kauri; raises PeerError if it cannot be installed."""

    def __init__(self) -> None:
        self.how = build()
        self._scratch = tempfile.TemporaryDirectory()
        self._n_files = 0
        super().__init__(HOME / "env" / "bin" / "python", "gemclus_worker.py")

    def file(self, array: np.ndarray) -> str:
        """Put an array where the worker reads it; gives the path that stands for it."""
        self._n_files += 1  # the worker keeps what it read under a name
        path = Path(self._scratch.name) / f"{self._n_files}.npy"
        np.save(path, array)
        return str(path)

    def forget(self, *paths: str) -> None:
        """Remove files that are not needed any more."""
        for path in paths:
            Path(path).unlink()

    def fit(
        self, data: str, *, gram: str | None = None, limit: float | None = None, **parameters: Any
    ) -> tuple[float, int, np.ndarray]:
        """Fit to the files `data` and `gram`; give the seconds, the leaves and the labels."""
        labels = str(Path(self._scratch.name) / "labels.npy")
        answer = self.ask(
            "fit", limit=limit, data=data, gram=gram, labels=labels, parameters=parameters
        )
        return answer["seconds"], answer["n_leaves"], np.load(labels)

    def memory(self, data: str, **parameters: Any) -> int:
        """Peak bytes of a fit above its input."""
        return int(self.ask("memory", data=data, parameters=parameters)["bytes"])

    def close(self) -> None:
        super().close()
        self._scratch.cleanup()


def build() -> str:
    """Make the environment, unless it is there; say what it holds."""
    stamp = HOME / "built.json"
    wanted = {"requirement": REQUIREMENT, "python": sys.version}
    if stamp.exists():
        built = json.loads(stamp.read_text())
        if {key: built[key] for key in wanted} == wanted:
            return str(built["how"])
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    run(sys.executable, "-m", "venv", HOME / "env")
    python = HOME / "env" / "bin" / "python"
    run(python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", REQUIREMENT)
    versions = run(
        python,
        "-c",
        "import platform, numpy, sklearn; "
        "print(platform.python_version(), numpy.__version__, sklearn.__version__)",
    ).split()
    how = f"{REQUIREMENT}, Python {versions[0]}, numpy {versions[1]}, scikit-learn {versions[2]}"
    stamp.write_text(json.dumps({**wanted, "how": how}))
    return how


if __name__ == "__main__":
    print(build())
