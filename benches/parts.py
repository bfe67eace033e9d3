"""Fits of Parquet files that are larger than memory, batch by batch.

    python benches/parts.py --folder /some/folder [--rows 5000000 50000000]

Twenty columns of normal rows around ten centers, in files of a million rows, are written to the
folder unless they are there already. `tc.parts.fit_batches` grows a tree of 40 leaves from them, in
a process of its own, on all cores: seconds, questions, bytes of all answers, and the peak of memory
above what the process holds when it begins to fit. Where all rows fit into half of the memory, the
tree is compared with that of `ExKMC.fit`, which must be the same to the bit. Nothing here fails
because something was slow.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import common
import treeclust_rs as tc
from common import table
from figures import Cell, runs
from memory import peak_above
from treeclust_rs.parts import fit_batches
from treeclust_rs.parts.batches import names_of, source_of
from treeclust_rs.parts.protocol import Fit, Gathering

COLUMNS, CENTERS, LEAVES, PER_FILE = 20, 10, 40, 1_000_000


def main() -> None:
    if len(sys.argv) > 1 and sys.argv[1] == "--worker":
        return print(json.dumps(_worker(*sys.argv[2:])))
    parser = common.parser(__doc__, quick="a million rows")
    parser.add_argument("--folder", type=Path, required=True, help="where the rows are written")
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000_000, 50_000_000])
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
    common.publish("Parts", [text, table(head, lines)], missing, arguments)
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
    told = _in_process("ask", folder)
    same: Cell = None
    if n * COLUMNS * 8 <= 4e9:
        same = "yes" if _in_process("memory", folder)["json"] == found["json"] else "NO"
    return [
        f"{n:,}",
        f"{size / 1e9:.2f}",
        str(found["depth"]),
        str(told["questions"]),
        f"{told['bytes'] / 1e6:.0f}",
        runs([found["seconds"]]),
        f"{found['peak'] / 1e6:.0f}",
        same,
    ]


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
    if what == "ask":
        return _asked(model, folder)
    start = time.perf_counter()
    peak = peak_above(lambda: fit_batches(model, folder_files(folder)))
    return {
        "seconds": time.perf_counter() - start,
        "peak": peak,
        "depth": model.tree_.max_depth,
        "json": model.to_json(),
    }


def folder_files(folder: str) -> str:
    return f"{folder}/*.parquet"


def _asked(model: tc.ExKMC, folder: str) -> dict[str, Any]:
    """Count questions and bytes of answers, the answers being those of one part."""
    source = source_of(folder_files(folder))
    fit = Fit(model, feature_names=names_of(source))
    n_bytes = 0
    while (question := fit.question()) is not None:
        gathering = Gathering(question, fit.threads)
        for batch in source():
            gathering.add(batch, 0)
        answer = gathering.finish()
        n_bytes += len(answer.to_bytes())
        fit.tell(answer)
    return {"questions": fit.n_rounds, "bytes": n_bytes}


if __name__ == "__main__":
    main()
