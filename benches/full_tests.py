"""The full samples of the tests (`make test-all`) and the small ones, counted and timed.

    python benches/full_tests.py

Runs the Rust tests and then the Python tests of the installed package, with FULL_TESTS=1, on as
many processes as there are cores, and without; builds are not timed.
"""

import os
import re
import subprocess
import sys

import common
import records
from common import Missing, seconds, table
from figures import value

RUST = ("cargo", "test", "--locked")
PYTHON = (
    *(sys.executable, "-P", "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal"),
    *("--doctest-modules", "--pyargs", "treeclust_rs", "tests"),
)
KINDS = ("passed", "failed", "error", "skipped", "xfailed")


def main() -> None:
    """Run all tests twice and print what they said."""
    arguments = common.parse(common.parser(__doc__))
    subprocess.run((*RUST, "--no-run"), cwd=records.ROOT, check=True, capture_output=True)
    rows = []
    for name, full in (("small samples (`make test`)", ""), ("all (`make test-all`)", "1")):
        for language, command in (("Rust", RUST), ("Python", PYTHON)):
            print(f"... {language}, {name}", file=sys.stderr, flush=True)
            environment = {**os.environ, "FULL_TESTS": full}
            environment.setdefault("PYO3_PYTHON", sys.executable)
            outputs: list[str] = []

            def run(
                command: tuple[str, ...] = command,
                environment: dict[str, str] = environment,
                outputs: list[str] = outputs,
            ) -> None:
                done = subprocess.run(
                    command, cwd=records.ROOT, env=environment, capture_output=True, text=True
                )
                outputs.append(done.stdout)

            took = seconds(run)
            counts = summary(outputs[0])
            failed = counts["failed"] + counts["error"]
            rows.append(
                [
                    f"{language}, {name}",
                    counts["passed"],
                    value(failed, "<= 0", format=".0f"),
                    counts["skipped"],
                    counts["xfailed"],
                    value(took, "<= 300" if not full else None, format=".0f"),
                ]
            )
    about = (
        "Rust tests run without Python in one process a file; skipped and xfailed tests say why in "
        "their output (`-rsx`). Target of the small samples: five minutes on two cores."
    )
    header = ("tests", "passed", "failed", "skipped", "xfailed", "seconds")
    common.publish("Tests", [about, table(header, rows)], Missing(), arguments)


def summary(output: str) -> dict[str, int]:
    """Return how many tests ended how, by the summary lines of cargo or pytest."""
    lines = [line for line in output.splitlines() if line.startswith("test result: ")]
    lines = lines or output.strip().splitlines()[-1:]
    return {
        kind: sum(int(number) for line in lines for number in re.findall(rf"(\d+) {kind}", line))
        for kind in KINDS
    }


if __name__ == "__main__":
    main()
