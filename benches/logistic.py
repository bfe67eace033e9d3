"""The node solver of oblique trees: from nothing, from weights, from what another solve left.

    python benches/logistic.py

Runs `benches/logistic.rs`, which has the problem, and reads the samples that criterion leaves.
"""

from __future__ import annotations

import json
import subprocess

import common
import records
from common import Missing, table
from figures import Cell, ratio, runs

NOTHING, WEIGHTS = "from nothing", ", weights alone"


def main() -> None:
    arguments = common.parse(common.parser(__doc__))
    command = ("cargo", "bench", "--locked", "--bench", "logistic")
    subprocess.run(command, cwd=records.ROOT, check=True)
    size, samples = "", dict[str, list[float]]()
    for path in sorted((records.ROOT / "target" / "criterion").glob("*/new/sample.json")):
        name = json.loads((path.parent / "benchmark.json").read_text())["full_id"]
        if " n=" not in name:
            continue  # of another bench
        name, size = name.split(" n=")
        sample = json.loads(path.read_text())
        samples[name] = [
            time / count / 1e9 for time, count in zip(sample["times"], sample["iters"], strict=True)
        ]
    rows: list[list[Cell]] = []
    for name, seconds in samples.items():
        c, _, start = name.partition(" ")
        base = samples.get(f"{c} {NOTHING}")
        if base is None or start == NOTHING:
            rows.append([name, runs(seconds), ""])
        elif not name.endswith(WEIGHTS):
            for kind in (name, name + WEIGHTS):
                rows.append([kind, runs(samples[kind]), ratio(base, samples[kind])])
    about = f"Ten samples each; n={size}. The last column is against the solve from nothing."
    blocks = [about, table(("solve", "seconds", "times faster"), rows)]
    common.publish("Logistic", blocks, Missing(), arguments)


if __name__ == "__main__":
    main()
