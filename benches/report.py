"""Print RESULTS.md from the records in `benches/results/`, and from nothing else.

    python benches/report.py            write benches/RESULTS.md
    python benches/report.py --check    list old records; fail if the page is not what is printed

Of every section and command the newest record is printed, earlier ones are listed below it. Where
several records have the same row, a column gives the range of a ratio over all of them, whatever
their machine and commit, and says how many they are, how many of them are imported, and on how many
machines (as they describe them) the others were measured. A ratio of an imported record is what it
prints in the same column of the same row, or is taken from its seconds (`FROM_SECONDS`).

A record is *old* when the sources it measured are not those beside this script: the contents of
rust/src, python/treeclust_rs (but cli and reports) and Cargo.lock are hashed, so that it takes no
git to print the page, and a commit that changes them makes every record before it old. The page
then has to be printed again (`make results`), once: old records stay as they are printed until they
are measured anew. A record made with uncommitted changes is named and its figures are not printed.
Whether a record's hash is that of its commit is checked by `--check` where the commit is at hand.

What there is to say about a section before its tables lies in `benches/pages/SECTION.md`, in
lower case with hyphens. To take a record off the page, delete its file.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import records
from figures import Cell, met, read, shown
from records import HERE, Record

PAGE = HERE / "RESULTS.md"
PAGES = HERE / "pages"
SECTIONS = (
    "Peers",
    "BestTree",
    "Text",
    "Tables",
    "Threads",
    "Scaling",
    "Gaps and levels",
    "Memory of files",
    "Parts",
    "Dask: peers",
    "Interrupts",
    "Versions",
    "ExKMC: the papers' figures",
    "Kauri: peers",
    "Kauri: growth",
    "Kauri: features",
    "Kauri: the paper's tables",
    "Kernels: kmeans",
    "Kernel trees: growth",
    "Kernel trees: clusters",
    "Kernel trees: anchors",
    "Kernel trees: the paper's tables",
    "Douglas: peers",
    "Douglas: growth",
    "Douglas: the paper's tables",
    "Oblique trees: the paper's tables",
    "Logistic",
    "Tests",
)
"""Their order; others follow by name."""

HEAD = """\
# Measured

Printed by `make results` from the records in `benches/results/`. A figure is the median of its
runs, with the least and the largest in brackets (a mean has its standard deviation there). *Old*:
the package has changed since the commit named.
"""

FROM_SECONDS = {("Peers", "times slower than ours"): ("who", "seconds", "ours, 1 thread")}
"""Ratios that imported records do not have: by section and column, the columns with the names and
the seconds of their rows, and the row whose seconds are the divisor. The imported ratios of *Peers*
were against the faster of two inputs of ours; this row is the float64 array in C order."""

Ranges = dict[tuple[Any, ...], list[tuple[float, Record]]]


def page(folder: Path, engine: str, prose: Path = PAGES) -> str:
    """Return the page of the records in `folder`, beside sources of the hash `engine`."""
    by_section: dict[str, list[Record]] = defaultdict(list)
    for record in records.read_records(folder):
        by_section[record.section].append(record)
    order = {name: place for place, name in enumerate(SECTIONS)}
    names = sorted(by_section, key=lambda name: (order.get(name, len(order)), name))
    parts = [HEAD.strip()]
    for name in names:
        about = prose / f"{records.slug(name)}.md"
        parts.append(f"## {name}")
        if about.exists():
            parts.append(about.read_text(encoding="utf-8").strip())
        parts += section(by_section[name], engine)
    return "\n\n".join(parts) + "\n"


def section(found: Sequence[Record], engine: str) -> list[str]:
    """Return the paragraphs of a section: the newest record of each command, then the others."""
    clean = [record for record in found if not record.dirty]
    newest = {record.command: record for record in clean}
    ranges = all_ranges(clean)
    parts = []
    for command, record in newest.items():
        parts += body(record, engine, ranges)
        earlier = [one for one in clean if one.command == command and one is not record]
        if earlier:
            parts.append("Earlier records: " + "; ".join(map(described, earlier)) + ".")
    parts += [
        f"Not printed: `{record.file}`, measured with uncommitted changes ({described(record)})."
        for record in found
        if record.dirty
    ]
    return parts


def body(record: Record, engine: str, ranges: Ranges) -> list[str]:
    """Return the paragraphs of one record."""
    old = mark(record, engine)
    lines = [f"`{record.command}`", described(record) + (f". **{old}**" if old else "")]
    if record.kind == "imported":
        lines.append("From a page of before there were records: without the runs behind figures.")
    for block in record.blocks:
        lines.append(block if isinstance(block, str) else table(block, old, ranges))
    return [*lines, *(f"Not measured: {line}" for line in record.missing)]


def mark(record: Record, engine: str) -> str:
    """Return "old (commit ...)" where the record's sources are not those of the hash `engine`."""
    return "" if record.engine == engine else f"old (commit {_short(record)})"


def _short(record: Record) -> str:
    return (record.commit or "unknown")[:7]


def described(record: Record) -> str:
    """Say on what machine, when and of which commit a record is."""
    facts = dict(record.machine)
    versions = facts.pop("versions", {})
    memory, cores, python = (facts.pop(name, None) for name in ("memory_gb", "cores", "python"))
    parts = [
        facts.pop("cpu", None),
        cores and f"{cores} cores",
        memory and f"{memory:g} GB",
        facts.pop("system", None),
        python and f"Python {python}",
        *(f"{name} {number}" for name, number in versions.items()),
        *(f"{name} {fact}" for name, fact in facts.items()),
        f"commit {_short(record)}",
        record.date and record.date.partition("T")[0],
        record.load and f"load before {record.load[0]:g}",
    ]
    return ", ".join(str(part) for part in parts if part)


def table(block: dict[str, Any], old: str = "", ranges: Ranges | None = None) -> str:
    """Return a Markdown table, with columns for targets and for ranges over all records.

    Rows that were measured with uncommitted changes (a column "commit" says so) are left out.
    """
    columns, rows = list(block["columns"]), block["rows"]
    if "commit" in columns:
        place = columns.index("commit")
        clean = [row for row in rows if not str(row[place]).endswith("-dirty")]
    else:
        clean = rows
    lines: list[list[str]] = [[] for _ in clean]
    header: list[str] = []
    for place, name in enumerate(columns):
        cells = [row[place] for row in clean]
        header.append(name)
        for line, cell in zip(lines, cells, strict=True):
            line.append(shown(cell))
        if any(_has_target(cell) for cell in cells):
            header += ["target", "met"]
            for line, cell in zip(lines, cells, strict=True):
                line += [cell["target"], verdict(met(cell))] if _has_target(cell) else ["", ""]
        spans = [_span((ranges or {}).get(_key(columns, row, place), [])) for row in clean]
        if any(spans):
            header.append("all records")
            for line, span in zip(lines, spans, strict=True):
                line.append(span)
    if old:
        header[0] = ", ".join(filter(None, (header[0], old)))
    text = "\n".join(
        "| " + " | ".join(line) + " |" for line in [header, ["---"] * len(header), *lines]
    )
    left_out = len(rows) - len(clean)
    return text + (f"\n\nLeft out: {left_out} rows of uncommitted changes." if left_out else "")


def verdict(good: bool) -> str:
    return "yes" if good else "**no**"


def _has_target(cell: Cell) -> bool:
    return isinstance(cell, dict) and "target" in cell


def _key(columns: Sequence[str], row: Sequence[Cell], place: int) -> tuple[Any, ...]:
    """Name a ratio by its column and the texts of its row."""
    return (columns[place], *(cell for cell in row if isinstance(cell, str)))


def all_ranges(found: Sequence[Record]) -> Ranges:
    """Collect every ratio of the records, by its row and column, and who has it.

    Raises
    ------
    ValueError
        If an imported record has something else than a number there; the message says where.
    """
    ranges: Ranges = defaultdict(list)
    for record in found:
        for block in _tables(record):
            for row in block["rows"]:
                for place, cell in enumerate(row):
                    if isinstance(cell, dict) and cell["kind"] == "ratio":
                        key = _key(block["columns"], row, place)
                        ranges[key].append((read(cell).center, record))
    for record in found:
        if record.kind == "imported":
            for key, points in ranges.items():
                ratio = _imported_ratio(record, *key)
                points += [] if ratio is None else [(ratio, record)]
    return ranges


def _tables(record: Record) -> list[dict[str, Any]]:
    return [block for block in record.blocks if not isinstance(block, str)]


def _imported_ratio(record: Record, column: str, *names: str) -> float | None:
    """Return the ratio of the row that begins with `names`; None where there is none."""
    who, seconds, divisor = FROM_SECONDS.get((record.section, column), ("", "", ""))
    for block in _tables(record):
        columns = block["columns"]
        ratio = _printed(record, block, column, names)
        if ratio is not None:
            return ratio
        over = _printed(record, block, seconds, names)
        if over is not None:
            place = columns.index(who)
            against = (*names[:place], divisor, *names[place + 1 :])
            under = _printed(record, block, seconds, against)
            if under is None:
                raise ValueError(f"{record.file}: {seconds!r} has no row {', '.join(against)!r}.")
            return over / under
    return None


def _printed(
    record: Record, block: dict[str, Any], column: str, names: tuple[str, ...]
) -> float | None:
    """Return the number in a column of the row that begins with `names`; None without one."""
    if column not in block["columns"] or not names:
        return None
    place = block["columns"].index(column)
    cells = [row[place] for row in block["rows"] if tuple(row[: len(names)]) == names]
    if cells in ([], [""]):
        return None
    if len(cells) > 1 or not re.fullmatch(r"\d+(\.\d+)?", str(cells[0])):
        said = f"{column!r} of {', '.join(names)!r} must be one number. Got {cells}."
        raise ValueError(f"{record.file}: {said}")
    return float(cells[0])


def _span(points: Sequence[tuple[float, Record]]) -> str:
    """Say between what a ratio lies, in how many records, and how many machines."""
    if len(points) < 2:
        return ""
    ratios = [ratio for ratio, _ in points]
    imported = sum(record.kind == "imported" for _, record in points)
    machines = {
        tuple(record.machine.get(fact) for fact in ("cpu", "cores", "memory_gb", "system"))
        for _, record in points
        if record.kind != "imported"
    }
    text = f"{min(ratios):.3g} to {max(ratios):.3g} in {len(points)} records"
    text += f", {imported} imported" if imported else ""
    return text + (f", {len(machines)} machines" if len(machines) > 1 else "")


def contradictions(found: Iterable[Record]) -> list[str]:
    """Name clean records of other sources than those of their commit, where that is at hand."""
    wrong = []
    for record in found:
        if record.dirty or record.commit is None:
            continue
        there = records.engine_of(record.commit)
        if there is not None and there != record.engine:
            wrong.append(f"{record.file}: not measured on commit {_short(record)}, as it says.")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, say what is wrong")
    parser.add_argument("--results", type=Path, default=records.RESULTS, help="folder of records")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write")
    arguments = parser.parse_args()
    engine = records.engine()
    text = page(arguments.results, engine)
    found = records.read_records(arguments.results)
    wrong = contradictions(found)
    if arguments.check:
        for record in found:
            state = "uncommitted changes" if record.dirty else mark(record, engine) or "current"
            print(f"{record.file}: {state}")
        if not arguments.page.exists() or arguments.page.read_text(encoding="utf-8") != text:
            wrong.append(f"{arguments.page.name} is not what the records say: run `make results`.")
    else:
        arguments.page.write_text(text, encoding="utf-8")
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
