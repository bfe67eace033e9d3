"""Runs in the environment that `peer_exkmc.py` makes: a JSON command per line in, an answer out."""

import json
import sys
import time

import numpy as np
from ExKMC.Tree import Tree
from sklearn.cluster import KMeans

from memory import peak_above


def _k_means(centers: np.ndarray) -> KMeans:
    """Return a fitted KMeans with these very centers: they are the means of themselves."""
    return KMeans(n_clusters=len(centers), init=centers, n_init=1, max_iter=1).fit(centers)


class Worker:
    """Holds the data between commands; each command answers with a mapping."""

    def load(self, data: str, centers: str) -> dict[str, float]:
        self.X = np.load(data)
        self.centers = np.load(centers)
        return {}

    def fit(self, max_leaves: int, empty: bool) -> dict[str, float]:
        reference = _k_means(self.centers)
        k = len(self.centers)
        base_tree = "NONE" if empty else "IMM"
        self.tree = Tree(k, max_leaves=max_leaves, base_tree=base_tree, n_jobs=1, random_state=0)
        start = time.perf_counter()
        self.tree.fit(self.X, kmeans=reference)
        return {"seconds": time.perf_counter() - start}

    def memory(self, max_leaves: int, empty: bool) -> dict[str, float]:
        return {"bytes": peak_above(lambda: self.fit(max_leaves, empty))}

    def labels(self, out: str) -> dict[str, float]:
        np.save(out, np.asarray(self.tree.predict(self.X), dtype=np.int64))
        return {}


def main() -> None:
    worker = Worker()
    for line in sys.stdin:
        request = json.loads(line)
        answer = getattr(worker, request.pop("command"))(**request)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
