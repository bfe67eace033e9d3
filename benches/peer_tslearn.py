"""The kernel k-means of the package tslearn, in an environment of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from peer_package import PackagePeer, build

REQUIREMENT = "tslearn==0.10.0"


class TslearnPeer(PackagePeer):
    """A process that fits tslearn's KernelKMeans; raises PeerError if it cannot be installed."""

    def __init__(self) -> None:
        super().__init__(REQUIREMENT, "tslearn_worker.py")

    def fit(
        self, data: str, *, limit: float | None = None, **parameters: Any
    ) -> tuple[float, np.ndarray]:
        """Fit to the file `data`; give the seconds and the labels."""
        labels = self.path("labels.npy")
        answer = self.ask("fit", limit=limit, data=data, labels=labels, parameters=parameters)
        return answer["seconds"], np.load(labels)


if __name__ == "__main__":
    print(build(REQUIREMENT))
