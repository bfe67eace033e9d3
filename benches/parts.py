"""Fits of Parquet files that are larger than memory, batch by batch.

    python benches/parts.py --folder /some/folder [--rows 5000000 100000000]

Twenty columns of normal rows around ten centers, in files of a million rows, are written to the
folder unless they are there already. `tc.parts.fit_batches` grows a tree of 40 leaves from them, in
a process of its own, on all cores: seconds, questions, bytes of all answers, and the peak of memory
above what the process holds when it begins to fit. Up to ten million rows the bytes of the answers
are counted in a process of their own, and the tree is compared with that of `ExKMC.fit`, which must
be the same to the bit. A second table tells how questions, bytes and time grow with the number of
parts that answer, and of centers. Nothing here fails because something was slow.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import common
import treeclust_rs as tc
from common import table
from figures import Cell, runs
from memory import peak_above
from treeclust_rs.parts.batches import source_of
from treeclust_rs.parts.protocol import Fit, Gathering

COLUMNS, CENTERS, LEAVES, PER_FILE = 20, 10, 40, 1_000_000
MOST_IN_MEMORY = 10_000_000
# Rows, and numbers of parts and of centers, of the second table.
GROWTH_ROWS, PARTS, MORE_CENTERS = 400_000, (1, 4, 16), (5, 10, 20)


def main() -> None:
    if len(sys.argv) > 1 and sys.argv[1] == "--worker":
        return print(json.dumps(_worker(*sys.argv[2:])))
    parser = common.parser(__doc__, quick="a million rows")
    parser.add_argument("--folder", type=Path, required=True, help="where the rows are written")
    parser.add_argument("--rows", type=int, nargs="+", default=[500_000, 5_000_000, 100_000_000])
    arguments = common.parse(parser)
    common.one_thread()
    missing = common.Missing()
    lines: list[list[Cell]] = []
    for n in [1_000_000] if arguments.quick else arguments.rows:
        print(f"... {n:,} rows", file=sys.stderr, flush=True)
        lines.append(_measured(n, arguments.folder / f"rows-{n}"))
    head = (
        "rows",
        "file, GB",
        "depth",
        "questions",
        "answers, MB",
        "seconds",
        "peak of memory, MB",
        "as in memory",
    )
    text = f"{COLUMNS} columns, {CENTERS} centers, {LEAVES} leaves, float64, all cores."
    growth_text = (
        f"{GROWTH_ROWS:,} rows in parts of equal size, which answer one after the other: bytes of "
        "the answers of one part to all questions, and seconds for all parts. The trees are those "
        "of one part."
    )
    growth_head = ("centers", "parts", "questions", "MB of a part", "seconds", "as one part")
    growth = table(growth_head, _growth(GROWTH_ROWS // 10 if arguments.quick else GROWTH_ROWS))
    tables = [text, table(head, lines), growth_text, growth]
    common.publish("Parts", tables, missing, arguments)
    return None


def _rows(n: int, folder: Path) -> None:
    """Write the rows and the centers, unless they are there."""
    if (folder / "centers.npy").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    centers = 3.0 * rng.normal(size=(CENTERS, COLUMNS))
    for start in range(0, n, PER_FILE):
        size = min(PER_FILE, n - start)
        X = centers[rng.integers(CENTERS, size=size)] + rng.normal(size=(size, COLUMNS))
        frame = pl.DataFrame(X.astype(np.float32).astype(np.float64), schema=_names())
        path = folder / f"{start // PER_FILE:05d}.parquet"
        frame.write_parquet(path, compression="zstd", compression_level=1)
    np.save(folder / "centers.npy", centers)


def _names() -> list[str]:
    return [f"x{column}" for column in range(COLUMNS)]


def _measured(n: int, folder: Path) -> list[Cell]:
    _rows(n, folder)
    size = sum(file.stat().st_size for file in folder.glob("*.parquet"))
    found = _in_process("fit", folder)
    same: Cell = None
    n_bytes: Cell = None
    if n <= MOST_IN_MEMORY:
        n_bytes = f"{_in_process('count', folder)['bytes'] / 1e6:.0f}"
        same = "yes" if _in_process("memory", folder)["json"] == found["json"] else "NO"
    return [
        f"{n:,}",
        f"{size / 1e9:.2f}",
        str(found["depth"]),
        str(found["questions"]),
        n_bytes,
        runs([found["seconds"]]),
        f"{found['peak'] / 1e6:.0f}",
        same,
    ]


def _growth(n: int) -> list[list[Cell]]:
    """Return the lines of the table of parts and centers."""
    lines: list[list[Cell]] = []
    for k in MORE_CENTERS:
        rng = np.random.default_rng(k)
        centers = 3.0 * rng.normal(size=(k, COLUMNS))
        X = centers[rng.integers(k, size=n)] + rng.normal(size=(n, COLUMNS))
        one = ""
        for n_parts in PARTS:
            print(f"... {k} centers, {n_parts} parts", file=sys.stderr, flush=True)
            model = tc.ExKMC(reference=centers, base_tree=None, max_leaves=LEAVES)
            fit, parts, n_bytes = Fit(model), np.array_split(X, n_parts), 0
            start = time.perf_counter()
            while (question := fit.question()) is not None:
                answers = [question.answer(part, part_id=i) for i, part in enumerate(parts)]
                n_bytes += len(answers[0].to_bytes())
                fit.tell(reduce(add, answers))
            seconds = time.perf_counter() - start
            json_of_tree = fit.result().to_json()
            one = one or json_of_tree
            same = "yes" if json_of_tree == one else "NO"
            line = [str(k), str(n_parts), str(fit.n_rounds), f"{n_bytes / 1e6:.0f}"]
            lines.append([*line, runs([seconds]), same])
    return lines


def _in_process(what: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--worker", what, str(folder)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, Any] = json.loads(out)
    return found


def _worker(what: str, folder: str) -> dict[str, Any]:
    model = tc.ExKMC(
        reference=np.load(Path(folder) / "centers.npy"), base_tree=None, max_leaves=LEAVES
    )
    if what == "memory":
        model.fit(pl.read_parquet(sorted(Path(folder).glob("*.parquet"))))
        return {"json": model.to_json()}
    fit, n_bytes = None, 0

    def ask() -> None:
        """Do what `fit_batches` does, and count the bytes of the answers if these are asked for."""
        nonlocal fit, n_bytes
        source = source_of(f"{folder}/*.parquet")
        fit = Fit(model, feature_names=source.names)
        while (question := fit.question()) is not None:
            gathering = Gathering(question, fit.threads)
            for batch in source.batches():
                gathering.add(batch, 0)
            if what == "count":
                answer = gathering.finish()
                n_bytes += len(answer.to_bytes())
                fit.tell(answer)
            else:
                fit.tell_gathered(gathering)
        fit.result()

    start = time.perf_counter()
    peak = peak_above(ask)
    return {
        "seconds": time.perf_counter() - start,
        "peak": peak,
        "questions": fit.n_rounds if fit else 0,
        "depth": model.tree_.max_depth,
        "json": model.to_json(),
        "bytes": n_bytes,
    }


if __name__ == "__main__":
    main()
