"""Records of measurements: files of `benches/results/`, from which `report.py` prints RESULTS.md.

A record says what was run (`command`), of what (`commit`; `dirty`: with changes that are in no
commit; `engine`: a hash of the sources' content), when, on which machine, how busy that was before
(`load`, the averages over 1, 5 and 15 minutes), and has the raw figures of every run in the cells
of its tables (`figures.py`). A record of kind "imported" was parsed from a page of before there
were records: its cells are texts as printed then, its raw runs are lost.

`engine` hashes the content of Cargo.lock, rust/src and python/treeclust_rs (without the command
line and the reports, which no bench runs), so that a record can be compared with the sources beside
it in a shallow clone or an unpacked archive as well as with the whole history at hand.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import subprocess
import tarfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "results"

ENGINE = ("Cargo.lock", "python/treeclust_rs", "rust/src")
"""What a figure depends on."""
NO_ENGINE = ("python/treeclust_rs/cli/", "python/treeclust_rs/reports/")
"""What no bench runs, and importing the package does not load."""
MEASURED = (*ENGINE, "Cargo.toml", "pyproject.toml", "benches")
_NOT_MEASURED = (":(exclude)benches/results", ":(exclude)benches/RESULTS.md")
PACKAGES = ("treeclust_rs", "numpy", "scipy", "scikit-learn", "polars", "POT")
COMMIT_VARIABLE = "BENCH_COMMIT"
"""Names the commit where there is no repository; `report.py --check` compares its content."""


@dataclass(frozen=True)
class Start:
    """The state of sources and machine before a bench runs."""

    commit: str | None
    dirty: bool
    engine: str
    date: str
    load: list[float] | None


@dataclass(frozen=True)
class Record:
    """One measurement; the fields are those of its file."""

    section: str
    command: str
    commit: str | None
    dirty: bool
    engine: str | None
    """None where the sources are not known: imported from a tree with uncommitted changes."""
    date: str | None
    machine: dict[str, Any]
    load: list[float] | None
    blocks: list[Any]
    """Paragraphs (texts) and tables: `columns`, and `rows` of cells."""
    missing: list[str] = field(default_factory=list)
    """What could not be measured, and why."""
    kind: str = "measured"
    file: str = field(default="", compare=False)
    """Name of its file; not in the file."""

    def write(self, folder: Path) -> Path:
        """Write a file of its own; one for the second record of a second ends with -2."""
        moment = re.sub(r"[-:]|[.+].*", "", self.date or "imported")
        folder.mkdir(parents=True, exist_ok=True)
        stem, number = f"{slug(self.section)}.{moment}", 1
        while (path := folder / f"{stem}{f'-{number}' if number > 1 else ''}.json").exists():
            number += 1
        content = {name: part for name, part in asdict(self).items() if name != "file"}
        path.write_text(_compact_rows(content), encoding="utf-8")
        return path


def slug(section: str) -> str:
    """Return a section's name for files."""
    return re.sub(r"\W+", "-", section.lower()).strip("-")


def _compact_rows(content: dict[str, Any]) -> str:
    """Return JSON with a line for each field, paragraph and row."""
    blocks = []
    for block in content["blocks"]:
        if isinstance(block, str):
            blocks.append(json.dumps(block, ensure_ascii=False))
        else:
            rows = ",\n   ".join(json.dumps(row, ensure_ascii=False) for row in block["rows"])
            columns = json.dumps(block["columns"], ensure_ascii=False)
            blocks.append(f'{{"columns": {columns}, "rows": [\n   {rows}]}}')
    head = [
        f' "{name}": {json.dumps(part, ensure_ascii=False)}'
        for name, part in content.items()
        if name != "blocks"
    ]
    body = ",\n  ".join(blocks)
    return "{\n" + ",\n".join(head) + f',\n "blocks": [\n  {body}]\n}}\n'


def read_record(path: Path) -> Record:
    """Read and check a file.

    Raises
    ------
    ValueError
        If a field is unknown, missing or of another type; the message names file and field.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    known = {one.name: one for one in fields(Record) if one.name != "file"}
    for name in content:
        if name not in known:
            raise ValueError(f"{path.name}: unknown field {name!r}; known: {', '.join(known)}.")
    types = {"section": str, "command": str, "dirty": bool, "machine": dict, "blocks": list}
    for name in known:
        if name not in content:
            raise ValueError(f"{path.name}: the field {name!r} is missing.")
        if not isinstance(content[name], types.get(name, object)):
            raise ValueError(f"{path.name}: {name!r} must be of type {types[name].__name__}.")
    if content["kind"] not in ("measured", "imported"):
        raise ValueError(f"{path.name}: 'kind' must be measured or imported.")
    for block in content["blocks"]:
        if isinstance(block, str):
            continue
        if set(block) != {"columns", "rows"}:
            raise ValueError(f"{path.name}: a table has columns and rows, not {sorted(block)}.")
        if any(len(row) != len(block["columns"]) for row in block["rows"]):
            raise ValueError(f"{path.name}: rows of other lengths than {block['columns']}.")
    return Record(**content, file=path.name)


def read_records(folder: Path) -> list[Record]:
    """Read all records, the oldest first; those without a date come before."""
    found = [read_record(path) for path in sorted(folder.glob("*.json"))]
    return sorted(found, key=lambda record: (record.date or "", record.file))


# ---- sources --------------------------------------------------------------------------------


def digest(files: Iterable[tuple[str, bytes]]) -> str:
    """Hash names and contents; compiled files do not count, nor do line endings."""
    total = hashlib.sha256()
    for name, content in sorted(files):
        is_compiled = "__pycache__" in name or name.endswith((".so", ".pyd", ".pyc"))
        if not is_compiled and not name.startswith(NO_ENGINE):
            content = content.replace(b"\r\n", b"\n")
            total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()[:12]


def engine(root: Path = ROOT) -> str:
    """Hash the sources that lie under `root`."""
    paths = [root / name for name in ENGINE]
    found = [path for top in paths for path in (top.rglob("*") if top.is_dir() else [top])]
    return digest(
        (path.relative_to(root).as_posix(), path.read_bytes()) for path in found if path.is_file()
    )


def engine_of(commit: str, root: Path = ROOT) -> str | None:
    """Hash the sources of a commit; None where git or the commit is not there."""
    packed = _git(root, "archive", commit, "--", *ENGINE)
    if packed is None:
        return None
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = [member for member in archive if member.isfile()]
        return digest((one.name, archive.extractfile(one).read()) for one in members)  # type: ignore[union-attr]


def uncommitted(root: Path = ROOT) -> list[str] | None:
    """Return changed and new files that a figure could depend on; None without a repository."""
    said = _git(
        root, "status", "--porcelain", "--untracked-files=all", "--", *MEASURED, *_NOT_MEASURED
    )
    return None if said is None else [line[3:] for line in said.decode().splitlines()]


def start(package: Path, root: Path = ROOT) -> Start:
    """Note the state of sources and machine; `package` is the folder that treeclust_rs is run from.

    A package whose Python files are not those beside the benches counts as uncommitted changes.
    """
    changes = uncommitted(root)
    said = _git(root, "rev-parse", "HEAD")
    commit = os.environ.get(COMMIT_VARIABLE) if said is None else said.decode().strip()
    beside = python_files(package) != python_files(root / "python" / "treeclust_rs")
    return Start(
        commit,
        bool(changes) or beside or commit is None,
        engine(root),
        datetime.now(UTC).isoformat(timespec="seconds"),
        [round(one, 2) for one in os.getloadavg()] if hasattr(os, "getloadavg") else None,
    )


def python_files(package: Path) -> str:
    """Hash the Python files of an installed package."""
    return digest(
        (path.relative_to(package).as_posix(), path.read_bytes()) for path in package.rglob("*.py")
    )


def _git(root: Path, *command: str) -> bytes | None:
    try:
        done = subprocess.run(["git", *command], cwd=root, capture_output=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


# ---- the machine ----------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """Describe processor, memory and the versions that matter, without names of the host."""
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or "unknown processor"
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1) if found else "unknown processor"


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (AttributeError, ValueError, OSError):
        return None
