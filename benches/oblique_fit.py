"""Fit trees in a fresh process and print a line of JSON for each: oblique_fit.py FOLDER TASK.

FOLDER holds X.npy (or X.npz, sparse), centers.npy and labels.npy of the free clustering; TASK is
JSON: method ("ObliqueTree", "refined ExKMC", "ExKMC", "ExGreedy", "IMM" or "CART") and its
parameters. With several alphas every tree starts from the one before, as with
`ObliqueTree.alpha_path`. Costs are reckoned here from the labels alone.
"""

import json
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse, load_npz
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeClassifier

import treeclust_rs as tc
from memory import peak


def kmeans_cost(X: Any, labels: np.ndarray) -> float:
    """Squared distances to the means of the clusters, in float64."""
    total = 0.0
    for label in np.unique(labels):
        rows = X[labels == label].astype(np.float64)
        total += float(np.square(rows - rows.mean(axis=0)).sum())
    return total


def spherical_cost(X: Any, labels: np.ndarray) -> float:
    """1 - cosine of rows of length 1 (or 0) to the directions of their clusters' means."""
    return X.shape[0] - sum(
        float(np.linalg.norm(np.asarray(X[labels == label].sum(axis=0))))
        for label in np.unique(labels)
    )


def cost(X: Any, labels: np.ndarray) -> float:
    return spherical_cost(X, labels) if issparse(X) else kmeans_cost(X, labels)


def _size(model: Any) -> dict[str, float]:
    tree = model.tree_
    tests = tree.n_node_features[tree.children_left >= 0]
    return {
        "parameters": tc.metrics.n_parameters(tree),
        "features": float(tests.mean()) if len(tests) else 0.0,
        "depth": int(tree.max_depth),
        "leaves": int(tree.n_leaves),
    }


def _cart(X: Any, labels: np.ndarray, task: dict[str, Any]) -> dict[str, Any]:
    model = DecisionTreeClassifier(max_leaf_nodes=task["max_leaves"], random_state=0)
    model.fit(X, labels)
    leaves = int(model.get_n_leaves())
    size = {"parameters": 3 * leaves - 2, "features": 1.0, "depth": int(model.get_depth())}
    return {**size, "leaves": leaves, "cost": cost(X, model.predict(X))}


def _models(X: Any, centers: np.ndarray, task: dict[str, Any]) -> Iterator[tuple[float, Any]]:
    method, options = task["method"], task.get("options", {})
    if method in ("IMM", "ExGreedy"):
        yield 0.0, getattr(tc, method)(reference=centers, n_jobs=task["threads"]).fit(X)
        return
    if method in ("ExKMC", "refined ExKMC"):
        grown = tc.ExKMC(
            max_leaves=task["max_leaves"], reference=centers, n_jobs=task["threads"]
        ).fit(X)
        if method == "ExKMC":
            yield 0.0, grown
            return
        options = {**options, "init": grown, "splits": "axis"}
    for alpha in task["alphas"]:
        model = tc.ObliqueTree(
            alpha=alpha, reference=centers, random_state=0, n_jobs=task["threads"], **options
        ).fit(X)
        yield alpha, model
        options = {**options, "init": model}


def main() -> None:
    folder, task = Path(sys.argv[1]), json.loads(sys.argv[2])
    sparse = folder / "X.npz"
    X = load_npz(sparse) if sparse.exists() else np.load(folder / "X.npy")
    centers, labels = np.load(folder / "centers.npy"), np.load(folder / "labels.npy")
    warnings.simplefilter("ignore", ConvergenceWarning)
    wall, cpu = time.perf_counter(), time.process_time()
    if task["method"] == "CART":
        row = {"alpha": 0.0, **_cart(X, labels, task)}
        row |= {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        print(json.dumps({**row, "peak": peak()}), flush=True)
        return
    for alpha, model in _models(X, centers, task):
        row = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        row |= {"alpha": alpha, "peak": peak(), **_size(model)}
        row["cost"] = cost(X, model.labels_)
        if (model.predict(X) != model.labels_).any():
            raise RuntimeError("labels_ are not what the tree predicts.")
        path = getattr(model, "mu_path_", None)
        if path is not None:
            row["steps"] = len(path)
            last_mu = int((path["mu"] == path["mu"][-1]).arg_max() or 0)
            for name, at in (("direct_fit", 0), ("last_mu", last_mu)):
                row[name] = [float(path["cost"][at]), int(path["n_parameters"][at])]
        elif hasattr(model, "n_iter_"):
            row["steps"] = model.n_iter_
        print(json.dumps(row), flush=True)
        wall, cpu = time.perf_counter(), time.process_time()


if __name__ == "__main__":
    main()
