"""Some 600 models and messages, to the last bit: one version of the package against another.

    python benches/snapshot.py OUT.jsonl                  fits them with the installed package
    python benches/snapshot.py --compare OLD.jsonl NEW.jsonl

Only public names are used, so that older versions can be run too. Two files are comparable if they
come from the same machine and the same versions of numpy, scipy and scikit-learn; BLAS runs on one
thread. Every line of a file holds one model: digests by part (structure, labels, costs, files,
text) and item. `--compare` prints each difference and exits with 1 if there is any.
"""

# ruff: noqa: E402, I001  (threads are limited, and the path is set, before the imports)

from __future__ import annotations

import os

for _library in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import argparse
import contextlib
import io
import itertools
import json
import math
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from digests import PARTS, digest, saved_text, tree_digests

import treeclust_rs as tc
from treeclust_rs import export, gemini, metrics, selection
from treeclust_rs.cli import main as command

Digests = dict[str, dict[str, str]]
Case = tuple[str, Callable[[], Digests]]

# ---- data -----------------------------------------------------------------------------------

IRIS = load_iris().data
WINE = load_wine().data
CANCER = load_breast_cancer().data[:300, :12]
DIGITS = load_digits().data[:400]
VOTES = pl.read_parquet(ROOT / "tests" / "data" / "congressional_votes_1984.parquet").drop("label")


def _blobs(n: int, d: int, k: int, std: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (
        rng.normal(scale=std, size=(n, d)) + rng.uniform(-10, 10, (k, d))[rng.integers(k, size=n)]
    )


BLOBS = _blobs(400, 3, 5, 2.5, 0)
MANY = _blobs(3000, 5, 6, 4.0, 1)
GRID = np.random.default_rng(2).integers(-4, 5, (300, 4)).astype(float)
MOONS = make_moons(240, noise=0.08, random_state=0)[0]
POSITIVE = np.abs(BLOBS)
ODD = np.column_stack([BLOBS, np.full(400, 7.0), BLOBS[:, 0].round(), BLOBS[:, 1] * 1e-3 + 1e8])
TEXTS = sparse.random_array(
    (250, 60), density=0.1, rng=np.random.default_rng(3), data_sampler=lambda size: np.ones(size)
).tocsr() * np.random.default_rng(4).uniform(0.5, 2.0, 60)
TEXTS = sparse.csr_array(TEXTS)
TEXTS = TEXTS[TEXTS.sum(axis=1) > 0]
NAMES = ["income", "age (years)", "größe"]
FRAME = pl.DataFrame(BLOBS, schema=NAMES)
TABLES = {
    "iris": IRIS,
    "wine": WINE,
    "cancer": CANCER,
    "digits": DIGITS,
    "blobs": BLOBS,
    "many": MANY,
    "grid": GRID,
    "moons": MOONS,
    "odd": ODD,
    "votes": VOTES,
}


def weights(X: Any) -> np.ndarray:
    """Whole, broken and zero weights."""
    return np.random.default_rng(5).choice([0.0, 0.5, 1.0, 1.0, 2.0, 3.25], len(X))


def labels_of(X: Any, k: int = 4) -> np.ndarray:
    """Labels that no centers have: of connected neighbours."""
    return AgglomerativeClustering(k, linkage="single").fit_predict(np.asarray(X))


def noisy_labels(X: Any, k: int = 4) -> np.ndarray:
    """Labels with every seventh row as noise."""
    labels = KMeans(k, n_init=2, random_state=0).fit_predict(np.asarray(X))
    labels[::7] = -1
    return labels


def new_rows(X: Any) -> Any:
    """Rows like those of the fit, and between them."""
    if sparse.issparse(X):
        return X[::3]
    array = np.asarray(X, dtype=float)
    rng = np.random.default_rng(6)
    mixed = (
        array[rng.integers(len(array), size=60)] + array[rng.integers(len(array), size=60)]
    ) / 2
    rows = np.vstack([array[::5], mixed])
    if isinstance(X, pl.DataFrame):
        return pl.DataFrame(rows, schema=X.columns)
    if isinstance(X, pd.DataFrame):
        return pd.DataFrame(rows, columns=X.columns)
    return rows


# ---- the digests of a model -----------------------------------------------------------------


def merge(parts: Digests, more: Digests, prefix: str = "") -> None:
    """Add digests under a prefix."""
    for part, items in more.items():
        parts.setdefault(part, {}).update({prefix + name: text for name, text in items.items()})


def text_of_tree(tree: tc.ClusterTree) -> dict[str, str]:
    """Return the digests of all that is written of a tree."""
    found = {
        "str": digest(str(tree)),
        "repr": digest(repr(tree)),
        "html": digest(tree._repr_html_()),
        "rules": digest(tree.rules()),
        "graphviz": digest(export.to_graphviz(tree)),
        "polars": digest(str(export.to_polars_expr(tree))),
    }
    for name in ("weighted_average_depth", "weighted_average_explanation_size", "n_parameters"):
        found[name] = digest(getattr(metrics, name)(tree))
    found["features_per_node"] = digest(metrics.features_per_node(tree))
    return found


def model_digests(model: Any, X: Any, **given: Any) -> Digests:
    """Return the digests of a fitted estimator: all public attributes, files, texts, new rows."""
    parts: Digests = {part: {} for part in PARTS}
    new = new_rows(X)
    can_predict = getattr(model, "kernel", None) != "precomputed" or hasattr(model, "tree_")
    if hasattr(model, "save"):
        text = attempt(lambda: saved_text(model))
        parts["files"]["save"] = digest(text)
        if text.startswith("{"):
            parts["files"]["load and save"] = digest(saved_again(text))
    if hasattr(model, "tree_"):
        merge(parts, tree_digests(model.tree_))
        parts["text"] |= text_of_tree(model.tree_)
    for name in sorted(dir(model)):
        if not name.endswith("_") or name.startswith("_") or name == "tree_":
            continue
        value = attempt(lambda name=name: getattr(model, name))
        part = "labels" if name.endswith("labels_") or name == "classes_" else "costs"
        if name == "table_":
            parts["structure"][name] = digest(value)
            parts["text"]["table"] = digest(str(value))
        else:
            parts[part][name] = digest(value)
    if can_predict:
        parts["labels"]["predict"] = digest(attempt(lambda: model.predict(new)))
    parts["costs"]["score"] = digest(attempt(lambda: model.score(X, **given)))
    for name in ("apply", "predict_proba"):
        if hasattr(model, name):
            part = "labels" if name == "apply" else "costs"
            parts[part][name] = digest(attempt(lambda name=name: getattr(model, name)(new)))
    if hasattr(model, "explain"):
        parts["text"]["explain"] = digest(attempt(lambda: model.explain(new)))
    if hasattr(model, "to_polars"):
        parts["text"]["to_polars"] = digest(attempt(lambda: str(model.to_polars())))
    if hasattr(model, "rules"):
        parts["text"]["rules"] = digest(model.rules())
    if hasattr(model, "save"):
        parts["files"]["save after use"] = digest(attempt(lambda: saved_text(model)))
    parts["text"]["params"] = digest(re.sub(r"0x[0-9a-f]+", "", str(model)))
    return parts


def saved_again(text: str) -> str:
    """Return what a loaded model saves."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        path.write_text(text, encoding="utf-8")
        return saved_text(tc.load(path))


def attempt(compute: Callable[[], Any]) -> Any:
    """Return what a call returns, or its error in words, without the names of folders."""
    try:
        return compute()
    except Exception as error:  # noqa: BLE001
        text = re.sub(r"/[^ ]*/", "", str(error))
        # scikit-learn prints sets of words in no fixed order.
        text = re.sub(r"\{([^}]*)\}", lambda found: str(sorted(found[1].split(", "))), text)
        return f"{type(error).__name__}: {text}"


# ---- cases ----------------------------------------------------------------------------------


def fit(make: Any, X: Any, truncate: tuple[int, ...] = (), **given: Any) -> Callable[[], Digests]:
    """Return a function that fits a model and returns its digests, and those of smaller trees."""

    def run() -> Digests:
        model = make()
        if "sample_weight" in given and given["sample_weight"] is True:
            given["sample_weight"] = weights(X)
        model.fit(X, **given)
        parts = model_digests(model, X, **given)
        for size in truncate:
            small = attempt(lambda size=size: model.truncate(size))
            if isinstance(small, str):
                parts["text"][f"truncate({size})"] = digest(small)
            else:
                merge(parts, model_digests(small, X, **given), f"truncate({size}).")
        return parts

    return run


def threshold_cases() -> Iterator[Case]:
    """IMM and ExKMC."""
    for name, criterion, scale in itertools.product(
        TABLES, ("kmeans", "kmedians"), (None, "standard")
    ):
        X = TABLES[name]
        options = {"criterion": criterion, "scale": scale, "random_state": 0}
        if criterion == "kmedians" and name in ("digits", "many", "votes"):
            continue
        yield f"IMM {name} {criterion} {scale}", fit(lambda o=options: tc.IMM(4, **o), X)
        for base, cuts in itertools.product(("imm", None), ("threshold", "interval")):
            if (cuts, scale) == ("interval", "standard") or (base, criterion) == (None, "kmedians"):
                continue
            yield (
                f"ExKMC {name} {criterion} {scale} {base} {cuts}",
                fit(
                    lambda o=options, b=base, c=cuts: tc.ExKMC(
                        4, max_leaves=9, base_tree=b, cuts=c, **o
                    ),
                    X,
                    truncate=(6, 4),
                ),
            )
    centers = BLOBS[[0, 50, 100, 150, 200]]
    wanted = {
        "centers": (BLOBS, {"reference": centers}),
        "labels": (BLOBS, {"reference": labels_of(BLOBS)}),
        "noise": (BLOBS, {"reference": noisy_labels(BLOBS)}),
        "strings": (BLOBS, {"reference": np.array(list("abcd"))[labels_of(BLOBS)]}),
        "fitted": (BLOBS, {"reference": KMeans(4, n_init=1, random_state=1).fit(BLOBS)}),
        "unfitted": (BLOBS, {"reference": KMeans(4, n_init=1, random_state=1)}),
        "DBSCAN": (MOONS, {"reference": DBSCAN(eps=0.2).fit(MOONS)}),
        "limits": (BLOBS, {"n_clusters": 4, "random_state": 0}),
        "k of the default": (BLOBS, {"random_state": 0}),
        "one cluster": (BLOBS, {"n_clusters": 1}),
        "few rows": (GRID[:6], {"n_clusters": 6, "random_state": 0}),
        "equal rows": (np.zeros((10, 2)), {"n_clusters": 3, "random_state": 0}),
        "float32": (BLOBS.astype(np.float32), {"n_clusters": 4, "random_state": 0}),
        "int": (GRID.astype(np.int64), {"n_clusters": 4, "random_state": 0}),
        "bool": (GRID > 0, {"n_clusters": 3, "random_state": 0}),
        "F order": (np.asfortranarray(BLOBS), {"n_clusters": 4, "random_state": 0}),
        "strided": (ODD[::2, ::-1], {"n_clusters": 4, "random_state": 0}),
        "list": (BLOBS[:40].tolist(), {"n_clusters": 4, "random_state": 0}),
        "polars": (FRAME, {"n_clusters": 4, "random_state": 0}),
        "chunked": (
            pl.concat([FRAME[:150], FRAME[150:]], rechunk=False),
            {"n_clusters": 4, "random_state": 0},
        ),
        "mixed types": (
            FRAME.with_columns(pl.col("income").cast(pl.Float32), pl.col("größe").cast(pl.Int16)),
            {"n_clusters": 4, "random_state": 0},
        ),
        "lazy": (FRAME, {"n_clusters": 4, "random_state": 0}),
        "pandas": (pd.DataFrame(BLOBS, columns=NAMES), {"n_clusters": 4, "random_state": 0}),
        "threads": (MANY, {"n_clusters": 6, "random_state": 0, "n_jobs": 2}),
    }
    for name, (X, options) in wanted.items():
        for criterion in ("kmeans", "kmedians"):
            o = options | {"criterion": criterion}
            if name in ("centers", "labels", "noise", "one cluster", "few rows", "polars"):
                yield f"IMM {name} {criterion}", fit(lambda o=o: tc.IMM(**o), X)
            if name in ("centers", "labels", "noise", "one cluster", "polars"):
                yield (
                    f"IMM {name} {criterion} weights",
                    fit(lambda o=o: tc.IMM(**o), X, sample_weight=True),
                )
            if criterion == "kmedians" and name not in ("centers", "labels", "noise"):
                continue
            limits = {"max_depth": 3, "min_samples_leaf": 20} if name == "limits" else {}
            o = o | limits | {"max_leaves": 8 + (name == "k of the default")}
            yield f"ExKMC {name} {criterion}", fit(lambda o=o: tc.ExKMC(**o), X, (5,))
            if name in ("centers", "labels", "noise", "limits", "pandas"):
                o = o | {"base_tree": None, "cuts": "interval", "scale": "standard"}
                yield (
                    f"ExKMC {name} {criterion} weights",
                    fit(lambda o=o: tc.ExKMC(**o), X, (5,), sample_weight=True),
                )


def kernel_cases() -> Iterator[Case]:
    """KernelKMeans and the trees that explain it."""
    named = {
        "rbf": {"gamma": 0.05},
        "laplacian": {"gamma": "scale"},
        "linear": {},
        "polynomial": {"degree": 2, "coef0": 0.5, "gamma": 0.01},
        "chi2": {"gamma": 0.1},
        "additive_chi2": {},
        "cosine": {},
        "histogram_intersection": {"kernel_params": {"beta": 0.7}},
        "hellinger": {},
        "epsilon": {"kernel_params": {"epsilon": 3.0}},
    }
    trees = {
        "KernelIMM": tc.KernelIMM,
        "KernelExKMC": tc.KernelExKMC,
        "KernelExpand": tc.KernelExpand,
    }
    for kernel, options in named.items():
        X = POSITIVE[:200]
        o = {"kernel": kernel, "random_state": 0, "n_init": 2, **options}
        yield f"KernelKMeans {kernel}", fit(lambda o=o: tc.KernelKMeans(3, **o), X)
        if kernel not in ("cosine", "epsilon"):
            yield (
                f"KernelKMeans {kernel} weights scale",
                fit(lambda o=o: tc.KernelKMeans(4, scale="standard", **o), X, sample_weight=True),
            )
        for name, make in trees.items():
            if name == "KernelIMM" and kernel in ("polynomial", "chi2", "cosine", "epsilon"):
                continue
            more = {} if name == "KernelIMM" else {"max_leaves": 7}
            if kernel == "cosine":
                more["base_tree"] = None
            o2 = o | more
            yield f"{name} {kernel}", fit(lambda m=make, o=o2: m(3, **o), X, (5,))
    rbf = {"gamma": 0.1, "random_state": 0, "n_init": 2}
    for approximation in ("nystroem", "rpcholesky", "rff"):
        o = rbf | {"approximation": approximation, "n_components": 20}
        yield f"KernelKMeans {approximation}", fit(lambda o=o: tc.KernelKMeans(3, **o), BLOBS)
        yield (
            f"KernelKMeans {approximation} weights",
            fit(lambda o=o: tc.KernelKMeans(3, scale="standard", **o), BLOBS, sample_weight=True),
        )
        for name, make in trees.items():
            yield f"{name} {approximation}", fit(lambda m=make, o=o: m(3, **o), BLOBS)
    surrogate = {
        "taylor order 2": {"order": 2},
        "taylor shift": {"shift": -30.0},
        "taylor shifts": {"shift": [-30.0, -40.0, -50.0]},
        "distance": {"features": "distance"},
        "distance 5 anchors": {"features": "distance", "n_anchors": 5},
        "distance all": {"features": "distance", "n_anchors": "all"},
        "laplacian 7 anchors": {"kernel": "laplacian", "n_anchors": 7},
        "additive order 3": {"kernel": "additive_chi2", "order": 3},
        "scale": {"scale": "standard"},
    }
    for name, options in surrogate.items():
        for estimator, make in trees.items():
            o = rbf | options
            X = POSITIVE if "additive" in name else BLOBS
            yield f"{estimator} {name}", fit(lambda m=make, o=o: m(4, **o), X[:250])
    wanted = {
        "labels": (MOONS, {"reference": labels_of(MOONS, 3)}),
        "noise": (BLOBS, {"reference": noisy_labels(BLOBS)}),
        "centers": (BLOBS, {"reference": BLOBS[[0, 50, 100]]}),
        "strings": (FRAME, {"reference": np.array(list("abcd"))[labels_of(BLOBS)]}),
        "fitted": (BLOBS, {"reference": tc.KernelKMeans(3, random_state=1, n_init=1).fit(BLOBS)}),
        "unfitted": (BLOBS, {"reference": KMeans(3, n_init=1, random_state=0)}),
    }
    for name, (X, options) in wanted.items():
        for estimator, make in trees.items():
            o = {"gamma": 0.2, **options}
            if estimator != "KernelIMM":
                o |= {"max_leaves": 8}
            yield f"{estimator} {name}", fit(lambda m=make, o=o: m(**o), X, (5,))
            yield (
                f"{estimator} {name} weights",
                fit(lambda m=make, o=o: m(scale="standard", **o), X, sample_weight=True),
            )
    for estimator, cuts, base in itertools.product(
        ("KernelExKMC", "KernelExpand"), ("threshold", "interval"), ("kernel_imm", None)
    ):
        o = rbf | {"cuts": cuts, "base_tree": base, "max_leaves": 9}
        yield (
            f"{estimator} {cuts} {base}",
            fit(lambda m=trees[estimator], o=o: m(3, **o), MOONS, (6, 4)),
        )
        o = o | {"max_depth": 3, "min_samples_leaf": 15, "scale": "standard"}
        yield (
            f"{estimator} {cuts} {base} limits weights",
            fit(lambda m=trees[estimator], o=o: m(3, **o), IRIS, (4,), sample_weight=True),
        )
    gram = BLOBS[:150] @ BLOBS[:150].T
    yield (
        "KernelKMeans precomputed",
        fit(
            lambda: tc.KernelKMeans(3, kernel="precomputed", random_state=0), BLOBS[:150], gram=gram
        ),
    )
    for estimator in ("KernelExKMC", "KernelExpand"):
        yield (
            f"{estimator} precomputed",
            fit(
                lambda m=trees[estimator]: m(
                    3, kernel="precomputed", max_leaves=6, random_state=0, base_tree=None
                ),
                BLOBS[:150],
                gram=gram,
            ),
        )
    yield (
        "KernelKMeans callable",
        fit(lambda: tc.KernelKMeans(3, kernel=_a_kernel, random_state=0, n_init=2), BLOBS[:60]),
    )
    yield (
        "KernelKMeans many",
        fit(lambda: tc.KernelKMeans(3, random_state=0, n_init=2), MANY[:1700]),
    )
    yield "KernelKMeans polars", fit(lambda: tc.KernelKMeans(3, random_state=0, n_init=2), FRAME)
    yield (
        "KernelKMeans tol max_iter",
        fit(lambda: tc.KernelKMeans(5, tol=0.01, max_iter=3, n_init=3, random_state=0), WINE),
    )


def _a_kernel(x: Any, y: Any) -> float:
    return float(1.0 / (1.0 + np.abs(x - y).sum()))


def kauri_cases() -> Iterator[Case]:
    """Kauri."""
    for name, X in TABLES.items():
        o = {"max_leaves": 9, "scale": "standard" if name in ("wine", "odd", "cancer") else None}
        for moves in ("paper", "all"):
            yield (
                f"Kauri {name} {moves}",
                fit(lambda o=o, m=moves: tc.Kauri(4, moves=m, **o), X, (5,)),
            )
        if name != "many":
            yield (
                f"Kauri {name} weights",
                fit(lambda o=o: tc.Kauri(5, **o), X, sample_weight=True),
            )
    kernels = {
        "rbf": {"gamma": 0.05},
        "laplacian": {"gamma": "scale"},
        "polynomial": {"degree": 2, "gamma": 0.01},
        "chi2": {},
        "additive_chi2": {},
        "cosine": {},
        "histogram_intersection": {},
        "hellinger": {},
        "epsilon": {"kernel_params": {"epsilon": 3.0}},
    }
    for kernel, options in kernels.items():
        for moves in ("paper", "all"):
            yield (
                f"Kauri {kernel} {moves}",
                fit(
                    lambda k=kernel, o=options, m=moves: tc.Kauri(
                        4, kernel=k, moves=m, max_leaves=8, **o
                    ),
                    POSITIVE[:200],
                    sample_weight=True if moves == "all" else None,
                ),
            )
    for approximation in ("nystroem", "rpcholesky", "rff"):
        yield (
            f"Kauri {approximation}",
            fit(
                lambda a=approximation: tc.Kauri(
                    4, kernel="rbf", approximation=a, n_components=15, max_leaves=8, random_state=0
                ),
                BLOBS,
            ),
        )
    unlimited = {"n_clusters": 3, "max_leaves": math.inf, "random_state": 0}
    for options in (
        {"max_depth": 3},
        {"min_samples_split": 40},
        {"min_samples_leaf": 25},
        {"max_features": 2},
        {"max_features": 0.5},
        {"max_features": "sqrt"},
        {"max_features": "log2", "kernel": "rbf"},
        {"n_clusters": 1},
        {"n_clusters": 12, "max_leaves": 12, "moves": "all"},
        {"n_clusters": 2, "max_leaves": 20},
        {"n_jobs": 2},
    ):
        yield f"Kauri {options}", fit(lambda o=options: tc.Kauri(**{**unlimited, **o}), WINE)
    gram = np.exp(-0.05 * ((BLOBS[:120, None] - BLOBS[None, :120]) ** 2).sum(axis=2))
    yield (
        "Kauri precomputed",
        fit(lambda: tc.Kauri(4, kernel="precomputed", max_leaves=7), BLOBS[:120], gram=gram),
    )
    yield "Kauri callable", fit(lambda: tc.Kauri(3, kernel=_a_kernel, max_leaves=6), BLOBS[:80])
    yield "Kauri polars", fit(lambda: tc.Kauri(3, max_leaves=6), FRAME, (4, 2))
    yield "Kauri pandas", fit(lambda: tc.Kauri(3, max_leaves=6), pd.DataFrame(BLOBS, columns=NAMES))
    yield "Kauri float32", fit(lambda: tc.Kauri(3, max_leaves=6), BLOBS.astype(np.float32))


def douglas_cases() -> Iterator[Case]:
    """Douglas."""
    base = {"n_init": 2, "warm_up": 3, "max_iter": 6, "random_state": 0}
    for name in gemini.GEMINIS:
        yield f"Douglas {name}", fit(lambda n=name: tc.Douglas(3, gemini=n, **base), BLOBS)
    mask = [True, False, True]
    for options in (
        {"n_cuts": 2},
        {"n_cuts": 3, "init": "random"},
        {"temperature": 0.5},
        {"feature_mask": mask},
        {"solver": "sgd"},
        {"learning_rate": 0.2},
        {"batch_size": 50},
        {"tol": None},
        {"n_iter_no_change": 2, "max_iter": 20},
        {"prune": 0.2},
        {"scale": "standard"},
        {"init": [[0.0], [1.0], [2.0]]},
        {"n_clusters": 5, "n_jobs": 2},
        {"gemini": gemini.MMD(kernel="rbf")},
        {"gemini": gemini.Wasserstein(metric="cityblock")},
    ):
        o = {"n_clusters": 3} | base | options
        title = re.sub(r" object at 0x\w+", "", str(options))
        yield f"Douglas {title}", fit(lambda o=o: tc.Douglas(**o), BLOBS)
    yield "Douglas polars", fit(lambda: tc.Douglas(3, **base), FRAME)
    yield "Douglas votes", fit(lambda: tc.Douglas(2, prune=0.1, **base), VOTES[:, :6])

    def affinity() -> Digests:
        distances = np.abs(BLOBS[:80, None] - BLOBS[None, :80]).sum(axis=2)
        return model_digests(tc.Douglas(3, **base).fit(BLOBS[:80], affinity=distances), BLOBS[:80])

    def partial() -> Digests:
        model = tc.Douglas(3, **base)
        for start in range(0, 400, 100):
            model.partial_fit(FRAME[start : start + 100])
        return model_digests(model, FRAME)

    yield "Douglas affinity", affinity
    yield "Douglas partial_fit", partial


def oblique_cases() -> Iterator[Case]:
    """ObliqueTree and VoronoiTree."""
    for name, X in TABLES.items():
        standard = name in ("wine", "odd", "cancer")
        o = {"random_state": 0, "scale": "standard" if standard else None, "max_iter": 20}
        yield f"ObliqueTree {name}", fit(lambda o=o: tc.ObliqueTree(4, alpha=2.0, **o), X)
        yield (
            f"ObliqueTree {name} axis",
            fit(lambda o=o: tc.ObliqueTree(4, splits="axis", alpha=2.0, **o), X),
        )
        if name in ("iris", "wine", "blobs", "grid"):
            yield (
                f"ObliqueTree {name} path",
                fit(lambda o=o: tc.ObliqueTree(3, solver="path", mu_steps=25, **o), X),
            )
        for exact in (True, False):
            if name == "votes" and exact:
                continue
            v = {"random_state": 0, "scale": o["scale"], "exact": exact}
            yield f"VoronoiTree {name} {exact}", fit(lambda v=v: tc.VoronoiTree(5, **v), X)
    wanted: dict[str, dict[str, Any]] = {
        "max_depth 2": {"max_depth": 2},
        "alpha 0": {"alpha": 0.0},
        "alpha 30": {"alpha": 30.0},
        "random": {"init": "random"},
        "random relax": {"init": "random", "relax": True},
        "from ExKMC": {"init": tc.ExKMC(3, max_leaves=5, random_state=0)},
        "axis from IMM": {
            "init": tc.IMM(3, random_state=0).fit(WINE),
            "splits": "axis",
            "alpha": 0.0,
        },
        "from a tree": {"init": tc.IMM(3, random_state=0).fit(WINE).tree_},
        "from VoronoiTree": {"init": tc.VoronoiTree(3, random_state=0).fit(WINE)},
        "relax": {"relax": True, "alpha": 10.0},
        "path histogram": {"solver": "path", "mu_steps": 20, "leaves": "histogram"},
        "path relax": {"solver": "path", "mu_steps": 20, "relax": True},
        "path axis": {"solver": "path", "mu_factor": 1.5, "mu_steps": 12, "splits": "axis"},
        "path axis histogram": {
            "solver": "path",
            "mu_steps": 20,
            "leaves": "histogram",
            "splits": "axis",
        },
        "path from IMM": {
            "init": tc.IMM(3, random_state=0).fit(WINE),
            "solver": "path",
            "mu_steps": 12,
        },
        "few rounds": {"n_init": 1, "max_iter": 3},
        "centers": {"reference": WINE[[0, 60, 140]]},
        "noise": {"reference": noisy_labels(WINE, 3)},
        "strings": {"reference": np.array(list("abc"))[np.arange(len(WINE)) // 60]},
        "cosine": {"metric": "cosine", "scale": None},
        "threads": {"n_jobs": 2},
    }
    for title, options in wanted.items():
        o = {"n_clusters": 3, "random_state": 0, "scale": "standard", "max_iter": 20} | options
        yield f"ObliqueTree {title}", fit(lambda o=o: tc.ObliqueTree(**o), WINE)
        yield (
            f"ObliqueTree {title} weights",
            fit(lambda o=o: tc.ObliqueTree(**o), WINE, sample_weight=True),
        )
    text = {"metric": "cosine", "alpha": 0.1, "random_state": 0, "n_init": 2, "max_iter": 15}
    for relax in (False, True):
        yield (
            f"ObliqueTree texts relax={relax}",
            fit(lambda r=relax: tc.ObliqueTree(3, relax=r, **text), TEXTS),
        )
    yield (
        "ObliqueTree texts path weights",
        fit(
            lambda: tc.ObliqueTree(3, solver="path", mu_steps=12, **text),
            sparse.csc_array(TEXTS),
            sample_weight=np.linspace(0.0, 2.0, TEXTS.shape[0]),
        ),
    )
    yield "ObliqueTree texts dense", fit(lambda: tc.ObliqueTree(3, **text), TEXTS.toarray())
    yield "ObliqueTree polars", fit(lambda: tc.ObliqueTree(3, random_state=0), FRAME)
    yield (
        "ObliqueTree float32",
        fit(lambda: tc.ObliqueTree(3, random_state=0), BLOBS.astype(np.float32)),
    )
    for solver, weight in itertools.product(("direct", "path"), (None, True)):

        def path(solver: str = solver, weight: Any = weight) -> Digests:
            model = tc.ObliqueTree(
                3, solver=solver, mu_steps=15, scale="standard", random_state=0, max_iter=15
            )
            parts: Digests = {}
            sample_weight = weights(WINE) if weight else None
            for number, one in enumerate(
                model.alpha_path(WINE, [1.0, 10.0, 100.0], sample_weight=sample_weight)
            ):
                merge(parts, model_digests(one, WINE), f"{number}.")
            return parts

        yield f"ObliqueTree alpha_path {solver} {weight}", path
    for exact in (True, False):
        for name, options in {
            "centers": {"reference": GRID[:6] * 2 + np.arange(6)[:, None]},
            "labels": {"reference": labels_of(GRID)},
            "noise": {"reference": noisy_labels(GRID), "scale": "standard"},
        }.items():
            o = options | {"exact": exact}
            yield f"VoronoiTree {name} {exact}", fit(lambda o=o: tc.VoronoiTree(**o), GRID)
            yield (
                f"VoronoiTree {name} {exact} weights",
                fit(lambda o=o: tc.VoronoiTree(**o), GRID, sample_weight=True),
            )
    yield "VoronoiTree polars", fit(lambda: tc.VoronoiTree(4, random_state=0), FRAME)


def helper_cases() -> Iterator[Case]:
    """Cases of selection, metrics, exports, pictures and the command line."""

    def chosen(found: Any) -> Digests:
        return {
            "costs": {"frame": digest(found.table), "best_k": digest(int(found.best_k))},
            "labels": {"best": digest(found.best_estimator.labels_)},
        }

    numbers = range(1, 5)
    estimators = {
        "Kauri": tc.Kauri(scale="standard", max_leaves=6),
        "Kauri rbf": tc.Kauri(kernel="rbf", max_leaves=6),
        "KMeans": KMeans(n_init=2, random_state=0),
        "ExKMC": tc.ExKMC(random_state=0),
        "ObliqueTree": tc.ObliqueTree(random_state=0, max_iter=5, n_init=2),
    }
    for name, estimator in estimators.items():
        yield (
            f"gap {name}",
            lambda e=estimator: chosen(
                selection.gap_statistic(e, IRIS, numbers, n_references=3, random_state=0, n_jobs=1)
            ),
        )
        yield (
            f"silhouette {name}",
            lambda e=estimator: chosen(selection.silhouette(e, IRIS, range(2, 5), random_state=0)),
        )
    yield (
        "gap weights",
        lambda: chosen(
            selection.gap_statistic(
                estimators["KMeans"],
                IRIS,
                numbers,
                n_references=3,
                sample_weight=weights(IRIS),
                random_state=0,
                n_jobs=1,
            )
        ),
    )
    yield (
        "silhouette sample",
        lambda: chosen(
            selection.silhouette(
                tc.IMM(random_state=0),
                FRAME,
                [2, 4],
                metric="manhattan",
                sample_size=90,
                random_state=0,
            )
        ),
    )
    sweeps = {
        "KernelKMeans": tc.KernelKMeans(2, n_init=2, random_state=0),
        "KernelExpand": tc.KernelExpand(2, n_init=2, max_leaves=4, random_state=0),
        "Kauri": tc.Kauri(2, kernel="rbf", max_leaves=4),
    }
    for name, estimator in sweeps.items():

        def sweep(estimator: Any = estimator) -> Digests:
            found = selection.gamma_sweep(
                estimator, MOONS[:120], [0.5, 2.0], y=labels_of(MOONS[:120], 2), random_state=0
            )
            return {"costs": {"table": digest(found.table), "best": digest(found.best())}}

        yield f"gamma_sweep {name}", sweep

    def numbers_of_metrics() -> Digests:
        labels, other = labels_of(BLOBS), KMeans(4, n_init=1, random_state=0).fit_predict(BLOBS)
        centers, w = BLOBS[:4], weights(BLOBS)
        found = {
            "kmeans_cost": metrics.kmeans_cost(BLOBS, labels),
            "kmeans_cost weights": metrics.kmeans_cost(BLOBS, labels, w),
            "surrogate_cost": metrics.surrogate_cost(BLOBS, labels, centers),
            "surrogate_cost l1": metrics.surrogate_cost(BLOBS, labels, centers, w, "kmedians"),
            "cost_ratio": metrics.cost_ratio(BLOBS, labels, other),
            "agreement": metrics.agreement(labels, other),
            "agreement weights": metrics.agreement(labels, other, w),
        }
        for kernel in ("rbf", "linear", "laplacian", "cosine"):
            found[kernel] = metrics.kernel_cost(BLOBS, labels, kernel=kernel)
            found[f"{kernel} weights"] = metrics.kernel_cost(BLOBS, labels, w, kernel=kernel)
        found["gram"] = metrics.kernel_cost(
            BLOBS, labels, kernel="precomputed", gram=BLOBS @ BLOBS.T
        )
        return {"costs": {name: digest(float(value)) for name, value in found.items()}}

    yield "metrics", numbers_of_metrics

    def of_a_tree() -> Digests:
        parts: Digests = {part: {} for part in PARTS}
        tree = (
            tc.ExKMC(4, max_leaves=9, base_tree=None, cuts="interval", random_state=0)
            .fit(FRAME)
            .tree_
        )
        for name, one in {
            "to_threshold": tree.to_threshold(),
            "truncate": tree.truncate(5),
            "read again": export.tree_from_dict(export.tree_to_dict(tree)),
            "no names": tc.ExKMC(3, random_state=0).fit(BLOBS).tree_,
        }.items():
            merge(parts, tree_digests(one), f"{name}.")
            merge(parts, {"text": text_of_tree(one)}, f"{name}.")
        parts["text"]["short"] = digest(export.export_text(tree, max_indent=5))
        parts["text"]["terms"] = digest(tree.rules(max_terms=1))
        parts["files"]["dict"] = digest(export.tree_to_dict(tree))
        for name in ("parent", "node_depth", "leaves", "leaf_clusters", "n_node_features"):
            parts["structure"][name] = digest(getattr(tree, name))
        return parts

    yield "tree", of_a_tree
    yield from _pictures()
    yield from _commands()


def _pictures() -> Iterator[Case]:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "snapshot"

    def drawn(draw: Callable[[], Any]) -> Callable[[], Digests]:
        def run() -> Digests:
            figure = draw().figure
            stream = io.StringIO()
            figure.savefig(stream, format="svg", metadata={"Date": None})
            plt.close(figure)
            return {"text": {"svg": digest(stream.getvalue())}}

        return run

    exkmc = tc.ExKMC(4, max_leaves=7, random_state=0).fit(FRAME)
    pairs = pl.DataFrame(MOONS, schema=["x", "y"])
    expand = tc.KernelExpand(2, gamma=5.0, max_leaves=6, base_tree=None, random_state=0).fit(pairs)
    oblique = tc.ObliqueTree(3, random_state=0).fit(pairs)
    kauri = tc.Kauri(3, max_leaves=5).fit(pairs)
    yield "plot ExKMC", drawn(exkmc.plot)
    yield "plot horizontal", drawn(lambda: exkmc.plot(orientation="right", title="A title"))
    yield "plot ObliqueTree", drawn(oblique.plot)
    yield "plot Kauri", drawn(kauri.plot)
    yield (
        "plot image",
        drawn(
            lambda: (
                tc.ObliqueTree(3, random_state=0, max_iter=5).fit(DIGITS).plot(image_shape=(8, 8))
            )
        ),
    )
    yield "plot_partition KernelExpand", drawn(lambda: expand.plot_partition(pairs))
    yield "plot_partition ObliqueTree", drawn(lambda: oblique.plot_partition(pairs, annotate=True))
    yield "plot_partition Kauri", drawn(lambda: kauri.plot_partition(limits=((-1, 2), (-1, 1))))


def _commands() -> Iterator[Case]:
    def run(*arguments: str) -> Callable[[], Digests]:
        def run_it() -> Digests:
            parts: Digests = {part: {} for part in PARTS}
            before = Path.cwd()
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                try:
                    FRAME[:120].rename(dict(zip(NAMES, "abc", strict=True))).with_columns(
                        pl.Series("id", [f"r{i}" for i in range(120)]),
                        pl.Series("group", labels_of(BLOBS[:120], 3)),
                    ).write_csv("points.csv")
                    _one_command(parts, "fit", *_FIT, *arguments)
                    files = ("model.json", "labels.csv", "tree.dot")
                    for name in files:
                        if Path(name).exists():
                            parts["files"][name] = digest(Path(name).read_text())
                    if Path("model.json").exists():
                        for name in ("info", "explain", "predict"):
                            data = [] if name == "info" else ["points.csv"]
                            _one_command(parts, name, "model.json", *data)
                finally:
                    os.chdir(before)
            return parts

        return run_it

    for method in ("exkmc", "imm", "kauri", "kernel-imm", "kernel-exkmc", "kernel-expand"):
        yield f"command {method}", run("--method", method, "-k", "3", "--plot", "tree.dot")
    for method in ("oblique", "voronoi", "douglas"):
        yield f"command {method}", run("--method", method, "-k", "2")
    yield "command reference", run("--reference", "group", "--leaves", "5")
    yield "command kmedians", run("--criterion", "kmedians", "-k", "3", "--scale", "standard")
    yield "command wrong", run("--method", "imm", "--leaves", "9")
    yield "command unknown", run("--method", "nothing")


_FIT = ("points.csv", "--columns", "a,b,c", "-q", "-o", "model.json", "--labels-out", "labels.csv")


def _one_command(parts: Digests, *arguments: str) -> None:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = command(list(arguments))
        except SystemExit as error:
            code = error.code
    parts["text"][arguments[0]] = digest(
        [code, re.sub(r"\d+\.\d+ s\b", "", out.getvalue()), err.getvalue()]
    )


def error_cases() -> Iterator[Case]:
    """Messages of what is refused."""
    X = BLOBS[:30]
    holed = X.copy()
    holed[3, 1] = np.nan
    endless = X.copy()
    endless[7, 2] = np.inf
    wrong: dict[str, Callable[[], Any]] = {
        "unknown criterion": lambda: tc.IMM(3, criterion="ward").fit(X),
        "k 0": lambda: tc.IMM(0).fit(X),
        "too many clusters": lambda: tc.ExKMC(31).fit(X),
        "few leaves": lambda: tc.ExKMC(5, max_leaves=3).fit(X),
        "wrong k": lambda: tc.IMM(4, reference=X[:3]).fit(X),
        "wrong centers": lambda: tc.IMM(reference=X[:3, :2]).fit(X),
        "equal centers": lambda: tc.VoronoiTree(reference=np.zeros((2, 3))).fit(X),
        "wrong labels": lambda: tc.ExKMC(reference=np.zeros(3, int)).fit(X),
        "all noise": lambda: tc.ExKMC(reference=np.full(30, -1)).fit(X),
        "NaN": lambda: tc.IMM(3).fit(holed),
        "inf": lambda: tc.Kauri(3).fit(endless),
        "null": lambda: tc.IMM(2).fit(pl.DataFrame({"a": [1.0, None, 2.0]})),
        "strings": lambda: tc.IMM(2).fit(pl.DataFrame({"a": ["x", "y"], "b": [1, 2]})),
        "one dimension": lambda: tc.ObliqueTree(2).fit(X[:, 0]),
        "no rows": lambda: tc.Kauri(2).fit(X[:0]),
        "weights": lambda: tc.ExKMC(2).fit(X, sample_weight=np.ones(4)),
        "negative weights": lambda: tc.Kauri(2).fit(X, sample_weight=-np.ones(30)),
        "no weight": lambda: tc.KernelIMM(2).fit(X, sample_weight=np.zeros(30)),
        "not fitted": lambda: tc.ObliqueTree(2).predict(X),
        "other columns": lambda: tc.IMM(2, random_state=0).fit(FRAME).predict(FRAME.drop("income")),
        "fewer columns": lambda: tc.IMM(2, random_state=0).fit(X).predict(X[:, :2]),
        "many leaves": lambda: tc.VoronoiTree(17).fit(X),
        "truncate": lambda: tc.ExKMC(3, random_state=0).fit(X).truncate(2),
        "gamma": lambda: tc.KernelKMeans(2, gamma=0.0).fit(X),
        "kernel": lambda: tc.KernelExKMC(2, kernel="sigmoid").fit(X),
        "no gram": lambda: tc.Kauri(2, kernel="precomputed").fit(X),
        "gram": lambda: tc.KernelKMeans(2, kernel="precomputed").fit(X, gram=np.eye(4)),
        "additive": lambda: tc.KernelIMM(2, kernel="polynomial").fit(X),
        "negative cells": lambda: tc.KernelExpand(2, kernel="chi2").fit(X),
        "shift": lambda: tc.KernelIMM(2, shift=100.0).fit(X),
        "n_anchors": lambda: tc.KernelIMM(2, features="distance", n_anchors=0).fit(X),
        "rff": lambda: tc.Kauri(2, kernel="laplacian", approximation="rff").fit(X),
        "max_features": lambda: tc.Kauri(2, max_features=9).fit(X),
        "moves": lambda: tc.Kauri(2, moves="some").fit(X),
        "alpha": lambda: tc.ObliqueTree(2, alpha=-1.0).fit(X),
        "init": lambda: tc.ObliqueTree(2, init="best").fit(X),
        "axis and relax": lambda: tc.ObliqueTree(2, splits="axis", relax=True).fit(X),
        "cosine and scale": lambda: tc.ObliqueTree(2, metric="cosine", scale="standard").fit(X),
        "sparse": lambda: tc.IMM(2).fit(TEXTS),
        "sparse euclidean": lambda: tc.ObliqueTree(2).fit(TEXTS),
        "Douglas cells": lambda: tc.Douglas(2, n_cuts=9).fit(
            np.random.default_rng(0).random((40, 9))
        ),
        "Douglas gemini": lambda: tc.Douglas(2, gemini="nothing").fit(X),
        "Douglas mask": lambda: tc.Douglas(2, feature_mask=[True]).fit(X),
        "Douglas affinity": lambda: tc.Douglas(2).fit(X, affinity=np.eye(3)),
        "no file": lambda: tc.load("nowhere.json"),
        "gap": lambda: selection.gap_statistic(tc.IMM(), X, []),
        "silhouette": lambda: selection.silhouette(tc.Kauri(), X, [1, 40]),
        "cost": lambda: metrics.kmeans_cost(X, np.zeros(3, int)),
    }

    def run(call: Callable[[], Any]) -> Digests:
        found = attempt(call)
        text = found if isinstance(found, str) else f"no error, {type(found).__name__}"
        return {"text": {"message": text}}

    for name, call in wrong.items():
        yield f"refused: {name}", lambda c=call: run(c)


def all_cases() -> Iterator[Case]:
    """Return every case; names occur once."""
    yield from threshold_cases()
    yield from kernel_cases()
    yield from kauri_cases()
    yield from douglas_cases()
    yield from oblique_cases()
    yield from helper_cases()
    yield from error_cases()


# ---- the two commands -----------------------------------------------------------------------


def write(path: Path, only: str, *, verbose: bool) -> None:
    """Fit all models and write one line each."""
    started = time.perf_counter()
    seen: set[str] = set()
    with path.open("w", encoding="utf-8") as file:
        for name, run in all_cases():
            if only not in name:
                continue
            assert name not in seen, f"two cases are called {name!r}"
            seen.add(name)
            begun = time.perf_counter()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                parts = attempt(run)
            if isinstance(parts, str):
                parts = {"text": {"error": parts}}
                print(f"{name}: {parts['text']['error']}")
            told = sorted({f"{w.category.__name__}: {w.message}" for w in caught})
            parts.setdefault("text", {})["warnings"] = digest(told)
            file.write(json.dumps({"name": name, **parts}, sort_keys=True) + "\n")
            if verbose:
                print(f"{time.perf_counter() - begun:6.2f} s  {name}")
    print(f"{len(seen)} models in {time.perf_counter() - started:.0f} s: {path}")


def compare(old: Path, new: Path) -> int:
    """Print all differences of two files, part by part; return how many there are."""
    models = [
        {line["name"]: line for line in map(json.loads, path.read_text("utf-8").splitlines())}
        for path in (old, new)
    ]
    n_differences = 0
    counts = dict.fromkeys(PARTS, 0)
    for name in [*models[0], *(name for name in models[1] if name not in models[0])]:
        if name not in models[0] or name not in models[1]:
            print(f"{name}: only in {new if name in models[1] else old}")
            n_differences += 1
            continue
        for part in PARTS:
            before, after = (found[name].get(part, {}) for found in models)
            items = [i for i in {**before, **after} if before.get(i) != after.get(i)]
            n_differences += len(items)
            counts[part] += bool(items)
            if items:
                shown = (f"{i} {before.get(i, 'none')} -> {after.get(i, 'none')}" for i in items)
                print(f"{name}: {part}: {'; '.join(shown)}")
    told = ", ".join(f"{part} {count}" for part, count in counts.items())
    print(f"{len(models[0])} and {len(models[1])} models; models that differ: {told}")
    return n_differences


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"))
    parser.add_argument("--only", default="", help="only models whose name holds this text")
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_args()
    if arguments.compare:
        return int(compare(*arguments.compare) > 0)
    if arguments.out is None:
        parser.error("name the file to write")
    print(f"treeclust_rs from {Path(tc.__file__).parent}")
    write(arguments.out.resolve(), arguments.only, verbose=arguments.verbose)
    return 0


if __name__ == "__main__":
    sys.exit(main())
