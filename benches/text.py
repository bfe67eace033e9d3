"""Trees of single words beside the k-means that they explain, on sparse rows.

    python benches/text.py --data ../shared/data

The tf-idf of 20 newsgroups, as scikit-learn makes it of the counts of the data folder, is clustered
by its k-means with 20 clusters, from ten starts and from one; IMM, ExKMC and BestTree explain the
clusters from ten starts, with 40 leaves but for IMM. Costs are those of the trees' own clusters
over that of the reference. Seconds are the processor's, on one thread, of the tree alone; all are
measured in turn, round after round. Nothing here fails because something was slow.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfTransformer

import common
import treeclust_rs as tc
from common import table
from figures import Cell, ratio, runs

CLUSTERS, LEAVES = 20, 40
REPEATS, SLOW_REPEATS = 5, 3
TEN, ONE = "KMeans, 10 starts", "KMeans, 1 start"
TARGETS = {"ExKMC": "<= 1"}
"""Seconds over those of k-means from ten starts."""


@dataclass(frozen=True)
class Work:
    """Counts of words in a file."""

    name: str
    file: str


WORKS = (Work("20 newsgroups", "newsgroups20_counts.npz"),)


def main() -> None:
    parser = common.parser(
        __doc__,
        data=True,
        only="only the sets whose name holds this",
        quick='two runs of each, and no BestTree(effort="normal")',
    )
    arguments = common.parse(parser)
    common.one_thread()
    missing = common.Missing()
    blocks: list[Any] = []
    for work in common.chosen(WORKS, arguments, missing):
        print(f"... {work.name}", file=sys.stderr, flush=True)
        blocks += measured(work.name, tfidf(arguments.data / work.file), arguments.quick)
    common.publish("Text", blocks, missing, arguments)


def tfidf(path: Path) -> sparse.csr_matrix:
    counts = sparse.csr_matrix(sparse.load_npz(path), dtype=np.float64)
    return TfidfTransformer().fit_transform(counts)


def trees(labels: np.ndarray, quick: bool) -> dict[str, Any]:
    given = {"reference": labels, "n_jobs": 1}
    found = {
        "IMM": tc.IMM(**given),
        "ExKMC": tc.ExKMC(max_leaves=LEAVES, **given),
        'BestTree(effort="quick")': tc.BestTree(max_leaves=LEAVES, effort="quick", **given),
    }
    if not quick:
        found["BestTree"] = tc.BestTree(max_leaves=LEAVES, random_state=0, **given)
    return found


def measured(name: str, X: sparse.csr_matrix, quick: bool) -> list[Any]:
    """Return the paragraphs and the table of a set."""
    kmeans = {
        TEN: KMeans(CLUSTERS, n_init=10, random_state=0),
        ONE: KMeans(CLUSTERS, n_init=1, random_state=0),
    }
    reference = kmeans[TEN].fit(X).labels_
    models = {**kmeans, **trees(reference, quick)}
    fits = {shown: partial(_seconds_of, partial(model.fit, X)) for shown, model in models.items()}
    repeats = (2, 2) if quick else (REPEATS, SLOW_REPEATS)
    times = common.interleaved(fits, *repeats)
    least = tc.metrics.kmeans_cost(X, reference)
    lines: list[list[Cell]] = []
    for shown, model in models.items():
        cost = tc.metrics.kmeans_cost(X, model.labels_) / least
        line: list[Cell] = [shown, getattr(model, "n_leaves_", None), f"{cost:.4f}"]
        over = [ratio(times[shown], times[to], _target(shown, to)) for to in (TEN, ONE)]
        lines.append([*line, runs(times[shown]), *over])
    head = ("who", "leaves", "cost", "seconds", f"over {TEN}", f"over {ONE}")
    size = f"{X.shape[0]:,} rows x {X.shape[1]:,} words, {X.nnz:,} stored cells"
    return [f"{name}: {size}, {CLUSTERS} clusters.", table(head, lines)]


def _target(shown: str, to: str) -> str | None:
    return TARGETS.get(shown) if to == TEN else None


def _seconds_of(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
