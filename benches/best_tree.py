"""BestTree beside every other tree of thresholds: costs and seconds at k, 2k and 4k leaves.

    python benches/best_tree.py --data ../shared/data

All trees of a set explain the same reference, one `KMeans(n_init=10)` with as many clusters as the
set has labels, and are measured by the cost of their own clusters over that of the reference. The
regression tree of X on X is scikit-learn's; with k leaves each of them is a cluster of its own
where that costs less. Seconds are the processor's, on one thread, of the tree alone. What is
missing or left out is named: CLTree where it has more leaves, whose number it takes no limit for,
and CUBT where pruning would compare too many rows. Nothing here fails because something was slow or
lost.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import common
import treeclust_rs as tc
from common import table
from figures import Cell, ratio, runs, value

EFFORTS = ("quick", "normal", "thorough")
PEERS = ("ExKMC", "ExKMC from one leaf", "CART on the labels", "regression tree of X on X")
"""What others would use; the excess is over the best of them."""
LEAST = 1e-3
"""An excess below it counts as it."""
LEAST_SECONDS = 2.0
LARGE = 50_000
"""Sets of more rows are measured with k leaves only, without effort="thorough" and without CUBT,
whose time grows with the square of the rows."""
SKLEARN = "scikit-learn's CART on the labels"


@dataclass(frozen=True)
class Work:
    """A complete numeric set with labels."""

    name: str
    read: Callable[[Path], tuple[np.ndarray, int]]
    file: str | None = None


def _parquet(file: str, folder: Path) -> tuple[np.ndarray, int]:
    frame = pl.read_parquet(folder / file)
    X = frame.drop("label").to_numpy().astype(np.float64)
    return np.ascontiguousarray(X), frame["label"].n_unique()


def _bundled(load: Callable[[], Any], _: Path) -> tuple[np.ndarray, int]:
    bunch = load()
    return np.ascontiguousarray(bunch.data, np.float64), len(bunch.target_names)


def _works() -> list[Work]:
    files = (
        "vowel",
        "anuran_mfcc",
        "avila",
        "letter_recognition",
        "haberman",
        "breast_cancer_wisconsin_original",
        "congressional_votes_1984",
        *(f"shape_{name}" for name in ("aggregation", "compound", "d31", "flame", "jain")),
        *(f"shape_{name}" for name in ("pathbased", "r15", "spiral")),
        "covtype_sample_92962",
        "poker_hand_partial_125008",
    )
    works = [
        Work(name, partial(_bundled, getattr(datasets, f"load_{name}")))
        for name in ("iris", "wine", "breast_cancer", "digits")
    ]
    for name in files:
        works.append(Work(name, partial(_parquet, f"{name}.parquet"), f"{name}.parquet"))
    return works


QUICK = ("digits", "vowel", "anuran", "shape_")
"""How the names of the sets of a quick run begin."""


@dataclass
class Row:
    """The trees of one set with one number of leaves."""

    name: str
    n_leaves: int
    cost: dict[str, float]
    seconds: dict[str, float]
    kmeans_seconds: float
    left_out: dict[str, str] = field(default_factory=dict)
    """Why methods have no cost."""

    def excess(self, method: str) -> float:
        return max(self.cost[method] - 1.0, LEAST)

    def best(self, methods: Any) -> str:
        return min(methods, key=self.cost.__getitem__)

    @property
    def others(self) -> list[str]:
        """The methods beside BestTree."""
        return [name for name in self.cost if name not in EFFORTS]

    def lost(self, effort: str) -> list[str]:
        """Name the methods below BestTree."""
        ours = self.cost[effort] * (1.0 - 1e-9)
        return [name for name in self.others if self.cost[name] < ours]


def main() -> None:
    parser = common.parser(
        __doc__,
        data=True,
        only="only the sets whose name holds this",
        quick=f'only the sets {", ".join(QUICK)}…, and without effort="thorough"',
    )
    arguments = common.parse(parser)
    common.one_thread()
    missing = common.Missing()
    works = [w for w in _works() if not arguments.quick or w.name.startswith(QUICK)]
    rows: list[Row] = []
    for work in common.chosen(works, arguments, missing):
        print(f"... {work.name}", file=sys.stderr, flush=True)
        X, k = work.read(arguments.data)
        rows += set_rows(work.name, X, k, arguments.quick, missing)
    blocks: list[Any] = [_summary(rows), _costs(rows), _others(rows), _seconds(rows)]
    mnist = Work("MNIST", lambda _: (np.empty(0), 10), "mnist_train.npz")
    for work in common.chosen([mnist], arguments, missing):
        print(f"... {work.name}", file=sys.stderr, flush=True)
        blocks.append(_mnist(arguments.data / "mnist_train.npz"))
    common.publish("BestTree", blocks, missing, arguments)


def set_rows(name: str, X: np.ndarray, k: int, quick: bool, missing: common.Missing) -> list[Row]:
    """Fit every method to a set, for each number of leaves."""
    kmeans = KMeans(k, n_init=10, random_state=0)
    kmeans_seconds = _seconds_of(lambda: kmeans.fit(X))
    labels = kmeans.labels_
    reference = true_cost(X, labels)
    sizes, efforts = (1, 2, 4), EFFORTS[: 2 if quick else 3]
    if len(X) > LARGE:
        sizes, efforts = (1,), EFFORTS[:2]
        missing.add(f'{name}, {len(X):,} rows: 2k and 4k leaves, and effort="thorough".')
    rows = []
    for n_leaves in (size * k for size in sizes):
        row = Row(name, n_leaves, {}, {}, kmeans_seconds)
        for method, model in _models(k, n_leaves, labels, efforts, len(X) <= LARGE).items():
            row.seconds[method] = _seconds_of(partial(model.fit, X))
            if model.n_leaves_ > n_leaves:
                row.left_out[method] = f"{model.n_leaves_} leaves"
            else:
                row.cost[method] = true_cost(X, model.labels_) / reference
        if len(X) > LARGE:
            row.left_out["CUBT"] = "too slow"
        for method, why in row.left_out.items():
            missing.add(f"{name}, {n_leaves} leaves: {method} is left out: {why}.")
        row.seconds[SKLEARN] = _seconds_of(partial(_classification, X, labels, row))
        row.cost[SKLEARN] /= reference
        row.seconds[PEERS[3]] = _seconds_of(partial(_regression, X, k, labels, row))
        row.cost[PEERS[3]] /= reference
        for effort in efforts:
            for other in row.lost(effort):
                print(f"!!! {name}, {n_leaves} leaves: {other} is below {effort}", file=sys.stderr)
        rows.append(row)
    return rows


def _models(
    k: int, n_leaves: int, labels: np.ndarray, efforts: tuple[str, ...], has_cubt: bool
) -> dict[str, Any]:
    given = {"reference": labels, "n_jobs": 1}
    models: dict[str, Any] = {
        PEERS[0]: tc.ExKMC(max_leaves=n_leaves, **given),
        PEERS[1]: tc.ExKMC(max_leaves=n_leaves, base_tree=None, **given),
        PEERS[2]: tc.KMeansTree(max_leaves=n_leaves, **given),
        "KMeansTree by entropy": tc.KMeansTree(max_leaves=n_leaves, impurity="entropy", **given),
        "SpExTree": tc.SpExTree(max_leaves=n_leaves, **given),
        "KDTreeClusters": tc.KDTreeClusters(max_leaves=n_leaves, **given),
        "XRegressionTree": tc.XRegressionTree(max_leaves=n_leaves, **given),
        "IMM": tc.IMM(**given),
        "ExGreedy": tc.ExGreedy(**given),
        "ExShallow": tc.ExShallow(**given),
        "RandomCuts": tc.RandomCuts(random_state=0, **given),
        "Kauri": tc.Kauri(k, max_leaves=n_leaves, n_jobs=1),
        "CLTree": tc.CLTree(k, n_jobs=1),
    }
    if has_cubt:
        models["CUBT"] = tc.CUBT(k, max_leaves=n_leaves, n_jobs=1)
    for effort in efforts:
        models[effort] = tc.BestTree(max_leaves=n_leaves, effort=effort, random_state=0, **given)
    return models


def _classification(X: np.ndarray, labels: np.ndarray, row: Row) -> None:
    """Fit scikit-learn's classification tree."""
    tree = DecisionTreeClassifier(max_leaf_nodes=row.n_leaves, random_state=0).fit(X, labels)
    row.cost[SKLEARN] = true_cost(X, tree.predict(X))


def _regression(X: np.ndarray, k: int, labels: np.ndarray, row: Row) -> None:
    """Fit scikit-learn's regression tree; each leaf's cluster is that of most of its rows."""
    leaf = DecisionTreeRegressor(max_leaf_nodes=row.n_leaves, random_state=0).fit(X, X).apply(X)
    leaves = np.unique(leaf, return_inverse=True)[1]
    shares = np.zeros((leaves.max() + 1, k))
    np.add.at(shares, (leaves, labels), 1)
    ways = [shares.argmax(axis=1)[leaves], *([leaves] if row.n_leaves == k else [])]
    row.cost[PEERS[3]] = min(true_cost(X, labels) for labels in ways)


def true_cost(X: np.ndarray, labels: np.ndarray) -> float:
    """Return the sum of the squared distances of rows to the means of their clusters."""
    groups = (X[labels == label] for label in np.unique(labels))
    return float(sum(np.square(rows - rows.mean(axis=0)).sum() for rows in groups))


def _seconds_of(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _mean(values: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _with(rows: list[Row], effort: str) -> list[Row]:
    return [row for row in rows if effort in row.cost]


def _summary(rows: list[Row]) -> list[Any]:
    lines: list[list[Cell]] = []
    targets = {"normal": "<= 0.7", "thorough": "<= 0.62"}
    for effort in EFFORTS:
        measured = _with(rows, effort)
        if not measured:
            continue
        excess = [
            [row.excess(effort) / row.excess(row.best(methods(row))) for row in measured]
            for methods in (lambda _: PEERS, lambda row: row.others)
        ]
        open_rows = [row.excess(row.best(PEERS)) > LEAST for row in measured]
        gained = [share for share, is_open in zip(excess[0], open_rows, strict=True) if is_open]
        slow = max(row.seconds[effort] / _allowed(row) for row in measured)
        lines.append(
            [
                effort,
                len(measured),
                value(_mean(excess[0]), targets.get(effort), format=".3f"),
                value(_mean(gained), format=".3f") if gained else "",
                value(_mean(excess[1]), format=".3f"),
                value(sum(bool(row.lost(effort)) for row in measured), "<= 0"),
                value(slow, "<= 1" if effort == "normal" else None, format=".2f"),
            ]
        )
    lost = [
        f"**{row.name}, {row.n_leaves} leaves: {' and '.join(row.lost(effort))} below {effort}.**"
        for row in rows
        for effort in EFFORTS
        if effort in row.cost and row.lost(effort)
    ]
    return [
        "*Excess* is what the cost ratio has above 1, at least 0.001; over that of the best peer "
        f"({', '.join(PEERS)}) and over that of the best of all other methods, geometric means. "
        "*Open* are the rows where the best peer's is above 0.001; the others cannot gain. "
        "*Lost* are the rows where another method is below BestTree. *Slowest* is the largest "
        f"share of what is allowed: 10 times KMeans(n_init=10), or {LEAST_SECONDS:g} s.",
        table(
            (
                *("effort", "rows", "excess / best peer's", "in open rows"),
                *("/ best of all", "lost", "slowest"),
            ),
            lines,
        ),
        "\n".join(lost) or "No row is lost.",
    ]


def _allowed(row: Row) -> float:
    return max(LEAST_SECONDS, 10.0 * row.kmeans_seconds)


def _costs(rows: list[Row]) -> list[Any]:
    lines: list[list[Cell]] = []
    for row in rows:
        peer = row.best(PEERS)
        efforts = [effort for effort in EFFORTS if effort in row.cost]
        lines.append(
            [
                f"{row.name}, {row.n_leaves} leaves",
                peer,
                value(row.cost[peer], format=".4f"),
                *(_cell(row, effort) for effort in EFFORTS),
                *(
                    value(row.excess(effort) / row.excess(peer), format=".2f")
                    for effort in efforts[1:]
                ),
                *[""] * (3 - len(efforts)),
            ]
        )
    head = ("set", "best peer", "its cost", *EFFORTS, "excess, normal", "excess, thorough")
    return ["Costs over the reference's.", table(head, lines)]


def _cell(row: Row, method: str) -> Cell:
    if method not in row.cost:
        return row.left_out.get(method, "")
    return value(row.cost[method], format=".4f")


def _others(rows: list[Row]) -> list[Any]:
    names = list(dict.fromkeys(name for row in rows for name in (*row.others, *row.left_out)))
    lines: list[list[Cell]] = [
        [f"{row.name}, {row.n_leaves} leaves", *(_cell(row, name) for name in names)]
        for row in rows
    ]
    return [
        "Every method's cost. IMM, ExGreedy, ExShallow and RandomCuts have k leaves in every row. "
        "CLTree takes no limit: where it has more leaves, their number stands in place of a cost.",
        table(("set", *names), lines),
    ]


def _seconds(rows: list[Row]) -> list[Any]:
    names = list(dict.fromkeys(name for row in rows for name in row.seconds))
    names = [*EFFORTS, *(name for name in names if name not in EFFORTS)]
    lines: list[list[Cell]] = []
    for row in rows:
        cells: list[Cell] = [
            value(row.seconds[name], format=".2f") if name in row.seconds else "" for name in names
        ]
        allowed = value(_allowed(row), format=".1f")
        lines.append([f"{row.name}, {row.n_leaves} leaves", allowed, *cells])
    return ["Seconds.", table(("set", "allowed", *names), lines)]


def _mnist(file: Path) -> list[Any]:
    with np.load(file) as archive:
        X = archive["X"].astype(np.float64)
    kmeans = KMeans(10, n_init=10, random_state=0)
    of_kmeans = _seconds_of(lambda: kmeans.fit(X))
    reference = true_cost(X, kmeans.labels_)
    given: dict[str, Any] = {"max_leaves": 20, "reference": kmeans.labels_, "n_jobs": 1}
    best, exkmc = tc.BestTree(effort="quick", random_state=0, **given), tc.ExKMC(**given)
    lines: list[list[Cell]] = []
    for name, model in (("BestTree, quick", best), ("ExKMC", exkmc)):
        took = _seconds_of(partial(model.fit, X))
        cost = value(true_cost(X, model.labels_) / reference, format=".4f")
        lines.append([name, runs([took]), ratio([took], [of_kmeans], "<= 1"), cost])
    return [
        f"MNIST, 60,000 x 784, k=10, 20 leaves, the reference given: beside KMeans(n_init=10), "
        f"{of_kmeans:.3g} s.",
        table(("who", "seconds", "over KMeans", "cost"), lines),
    ]


if __name__ == "__main__":
    main()
