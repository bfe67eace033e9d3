"""Runs in the environment that `peer_gemclus.py` makes: a JSON command per line in, an answer out.

Only gemclus' documented interface is used, and no traceback is printed: it would quote its source.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from gemclus.tree import Douglas, Kauri

from memory import peak_above
from worker_loop import answer_requests


class Worker:
    """Answers each command with a mapping; keeps the arrays it read last."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}
        # What is loaded late is not the fit's.
        Kauri(max_leaves=2).fit(np.arange(8.0)[:, None])
        Douglas(n_clusters=2, max_iter=1).fit(np.arange(8.0)[:, None])

    def fit(
        self,
        data: str,
        parameters: dict[str, Any],
        gram: str | None = None,
        labels: str | None = None,
    ) -> dict[str, Any]:
        self._keep(data, gram)
        model = Kauri(**parameters)
        start = time.perf_counter()
        model.fit(self._arrays[data], self._arrays[gram] if gram else None)
        seconds = time.perf_counter() - start
        if labels is not None:
            np.save(labels, np.asarray(model.labels_, dtype=np.int64))
        return {"seconds": seconds, "n_leaves": (model.tree_.n_nodes + 1) // 2}

    def douglas(
        self, data: str, parameters: dict[str, Any], labels: str | None = None
    ) -> dict[str, Any]:
        self._keep(data)
        model = Douglas(**parameters)
        start = time.perf_counter()
        model.fit(self._arrays[data])
        seconds = time.perf_counter() - start
        if labels is not None:
            np.save(labels, np.asarray(model.labels_, dtype=np.int64))
        return {"seconds": seconds, "n_epochs": int(model.n_iter_)}

    def memory(self, data: str, parameters: dict[str, Any]) -> dict[str, int]:
        self._keep(data)
        return {"bytes": peak_above(lambda: self.fit(data, parameters))}

    def _keep(self, *names: str | None) -> None:
        kept = [name for name in names if name]
        self._arrays = {
            name: self._arrays[name] if name in self._arrays else np.load(name) for name in kept
        }


if __name__ == "__main__":
    answer_requests(Worker())
