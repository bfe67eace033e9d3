"""Trees on a Dask cluster: ours beside LightGBM's, a peer for what it costs to be distributed.

    python benches/dask_peers.py

A cluster of two workers with one thread each holds normal rows around ten centers in its memory.
`tc.dask.fit` grows a tree of 40 leaves, given the centers; `DaskLGBMRegressor` trains one tree of
40 leaves on the indices of the nearest centers, which it is given. Both in turn, round after round.
LightGBM cuts at up to 255 values of a column, ours at any. What is missing is left out by name.
Nothing here fails because something was slow.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from functools import reduce
from operator import add
from typing import Any

import numpy as np

import common
import treeclust_rs as tc
from common import interleaved, nearest, seconds, table
from figures import Cell, ratio, runs

COLUMNS, CENTERS, LEAVES = 20, 10, 40
# Rows and parts of each line; the last three tell the growth with rows, then with parts.
WORKS = ((50_000, 2), (200_000, 2), (800_000, 2), (800_000, 16))
REPEATS = 5
SLOW_REPEATS = 3


def main() -> None:
    parser = common.parser(__doc__, quick="50,000 rows")
    arguments = common.parse(parser)
    missing = common.Missing()
    lines: list[list[Cell]] = []
    absent = [name for name in ("distributed", "lightgbm") if not importlib.util.find_spec(name)]
    if absent:
        missing.add(f"trees on a Dask cluster: {' and '.join(absent)} not installed.")
    else:
        warnings.simplefilter("ignore")  # Dask's and LightGBM's own
        lines = _measured(WORKS[:1] if arguments.quick else WORKS, missing)
    text = (
        f"{COLUMNS} columns, {CENTERS} centers, one tree of {LEAVES} leaves, float64, held by two "
        "workers with one thread each: seconds. *Times slower* is LightGBM's median by ours."
    )
    head = ("rows", "parts", "tc.dask.fit", "LightGBM", "times slower", "questions", "as in memory")
    common.publish("Dask: peers", [text, table(head, lines)], missing, arguments)


def _measured(works: tuple[tuple[int, int], ...], missing: common.Missing) -> list[list[Cell]]:
    import dask
    from dask.distributed import Client, LocalCluster

    quiet = {"distributed.logging.distributed": "critical"}
    with (
        dask.config.set(quiet),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        return [_line(client, n, n_parts, missing) for n, n_parts in works]


def _line(client: Any, n: int, n_parts: int, missing: common.Missing) -> list[Cell]:
    import dask.array as da
    from dask.distributed import wait
    from lightgbm import DaskLGBMRegressor

    print(f"... {n:,} rows, {n_parts} parts", file=sys.stderr, flush=True)
    X, centers = common.blobs(n, COLUMNS, CENTERS)
    labels = nearest(X, centers).astype(np.float64)
    rows = da.from_array(X, chunks=(-(-n // n_parts), COLUMNS)).persist()
    target = da.from_array(labels, chunks=-(-n // n_parts)).persist()
    wait([rows, target])
    client.rebalance([rows, target])

    def model() -> tc.ExKMC:
        return tc.ExKMC(reference=centers, base_tree=None, max_leaves=LEAVES)

    peer = DaskLGBMRegressor(n_estimators=1, num_leaves=LEAVES, client=client, verbose=-1)
    ours = model()
    times = interleaved(
        {
            "ours": lambda: seconds(lambda: tc.dask.fit(ours, rows)),
            "LightGBM": lambda: seconds(lambda: peer.fit(rows, target)),
        },
        REPEATS,
        SLOW_REPEATS,
    )
    found = int(peer.booster_.trees_to_dataframe()["split_feature"].isna().sum())
    if found != LEAVES:
        missing.add(f"LightGBM's tree of {n:,} rows has {found} leaves.")
    same = "yes" if ours.to_json() == model().fit(X).to_json() else "NO"
    questions = str(_questions(model(), X, n_parts))
    return [
        f"{n:,}",
        str(n_parts),
        runs(times["ours"]),
        runs(times["LightGBM"]),
        ratio(times["LightGBM"], times["ours"]),
        questions,
        same,
    ]


def _questions(model: tc.ExKMC, X: np.ndarray, n_parts: int) -> int:
    fit, parts = tc.parts.Fit(model, n_features=COLUMNS), np.array_split(X, n_parts)
    while (question := fit.question()) is not None:
        answers = [question.answer(part, part_id=i) for i, part in enumerate(parts)]
        fit.tell(reduce(add, answers))
    return fit.n_rounds


if __name__ == "__main__":
    main()
