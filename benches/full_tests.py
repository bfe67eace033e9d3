"""The full samples of the tests (`make test-all`) and the small ones, counted and timed.

    python benches/full_tests.py

Runs the Rust tests and then the Python tests of the installed package, with FULL_TESTS=1, on as
many processes as there are cores, and without; builds are not timed.
"""

import os
import re
import subprocess
import sys
import time

import common
import records
from common import Missing, table
from figures import value

RUST = ("cargo", "test", "--locked", "--no-fail-fast")
PYTHON = (
    *(sys.executable, "-P", "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal"),
    *("--doctest-modules", "--pyargs", "treeclust_rs", "tests"),
)
LAST_LINES = 12
# A heading of a failed test, or the end of its output: other headings, what was captured.
_HEADING = re.compile(
    r"_{3,} (?P<python>\S.*\S) _{3,}$|---- (?P<rust>\S+) stdout ----$"
    r"|=+ .* =+$|-{3,} Captured .* -{3,}$|failures:$|test result: "
)
_FOLDERS = re.compile(r"(?<!\w)/(?:[^\s/]+/)+")
KINDS = ("passed", "failed", "error", "skipped", "xfailed")


def main() -> None:
    """Run all tests twice and print what they said."""
    arguments = common.parse(common.parser(__doc__))
    subprocess.run((*RUST, "--no-run"), cwd=records.ROOT, check=True, capture_output=True)
    rows = []
    paragraphs: list[str] = []
    for name, full in (("small samples (`make test`)", ""), ("all (`make test-all`)", "1")):
        for language, command in (("Rust", RUST), ("Python", PYTHON)):
            print(f"... {language}, {name}", file=sys.stderr, flush=True)
            environment = {**os.environ, "FULL_TESTS": full}
            environment.setdefault("PYO3_PYTHON", sys.executable)
            began = time.perf_counter()
            done = subprocess.run(
                command, cwd=records.ROOT, env=environment, capture_output=True, text=True
            )
            took = time.perf_counter() - began
            counts = summary(done.stdout)
            said = failures(done.returncode, done.stdout, done.stderr)
            failed = max(counts["failed"] + counts["error"], len(said))
            paragraphs += [f"Failed, {language}, {name}: {one}" for one in said]
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
    common.publish("Tests", [about, table(header, rows), paragraphs], Missing(), arguments)


def failures(status: int, output: str, errors: str) -> list[str]:
    """Return a paragraph for every failed test, or one for a run that ended without naming any."""
    found = failed_tests(output)
    if status and not found:
        return [as_paragraph(f"status {status}", [*output.splitlines(), *errors.splitlines()])]
    return found


def failed_tests(output: str) -> list[str]:
    """Return for every failed test of cargo or pytest its name and the last lines it printed.

    Folders of absolute paths are left out.
    """
    lines = output.splitlines()
    headings = [(i, found) for i, line in enumerate(lines) if (found := _HEADING.match(line))]
    ends = [i for i, _ in headings[1:]] + [len(lines)]
    return [
        as_paragraph(name, lines[i + 1 : end])
        for (i, found), end in zip(headings, ends, strict=False)
        if (name := found["python"] or found["rust"])
    ]


def as_paragraph(name: str, lines: list[str]) -> str:
    """Return a name and the last of the lines, in a block of their own."""
    last = [_FOLDERS.sub(".../", line) for line in lines if line.strip()][-LAST_LINES:]
    return "\n".join([f"`{name}`:", "", "```text", *last, "```"])


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
