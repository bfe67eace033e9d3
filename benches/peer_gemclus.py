"""The published Kauri, of the package gemclus, in an environment of its own.

The package is GPL: it is installed from the package index as it is and called as its documentation
says. Nothing of it is read, linked or shipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from peer_package import PackagePeer, build

REQUIREMENT = "gemclus==1.1.1"


class GemclusPeer(PackagePeer):
    """A process that fits gemclus' Kauri; raises PeerError if it cannot be installed."""

    def __init__(self) -> None:
        super().__init__(REQUIREMENT, "gemclus_worker.py")

    def forget(self, *paths: str) -> None:
        """Remove files that are not needed any more."""
        for path in paths:
            Path(path).unlink()

    def fit(
        self, data: str, *, gram: str | None = None, limit: float | None = None, **parameters: Any
    ) -> tuple[float, int, np.ndarray]:
        """Fit to the files `data` and `gram`; give the seconds, the leaves and the labels."""
        labels = self.path("labels.npy")
        answer = self.ask(
            "fit", limit=limit, data=data, gram=gram, labels=labels, parameters=parameters
        )
        return answer["seconds"], answer["n_leaves"], np.load(labels)

    def memory(self, data: str, **parameters: Any) -> int:
        """Peak bytes of a fit above its input."""
        return int(self.ask("memory", data=data, parameters=parameters)["bytes"])


if __name__ == "__main__":
    print(build(REQUIREMENT))
