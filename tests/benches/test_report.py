"""Records of benches, the figures in them, and the page that is printed from them."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHES = ROOT / "benches"
NOW, BEFORE = "engine of now", "engine of before"


def _module(name: str) -> Any:
    sys.path.insert(0, str(BENCHES))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(BENCHES))


figures, records, report = map(_module, ("figures", "records", "report"))


def _record(**changes: Any) -> Any:
    rows = [["MNIST", figures.ratio([40.0, 44.0, 42.0], [1.0, 1.0, 1.0], ">= 10")]]
    made = records.Record(
        section="Peers",
        command="python benches/peers.py",
        commit="0123456789abcdef0123456789abcdef01234567",
        dirty=False,
        engine=NOW,
        date="2026-11-23T02:00:00+00:00",
        machine={"cpu": "Some CPU", "cores": 2, "versions": {"numpy": "2.4.6"}},
        load=[0.25, 0.5, 0.5],
        blocks=["Medians.", {"columns": ["work", "times faster"], "rows": rows}],
    )
    return replace(made, **changes)


def _page(folder: Path, *made: Any) -> str:
    for record in made:
        record.write(folder)
    return report.page(folder, NOW, prose=folder)


# ---- the page of this repository ------------------------------------------------------------


def test_the_page_is_what_the_records_say() -> None:
    printed = report.page(records.RESULTS, records.engine())
    committed = report.PAGE.read_text(encoding="utf-8")
    assert committed == printed, (
        "benches/RESULTS.md is not what benches/report.py prints from the records. After a change "
        "of a record, or of the package (which makes records old), run `make results`."
    )


def test_records_measured_the_commit_that_they_name() -> None:
    assert report.contradictions(records.read_records(records.RESULTS)) == []


def test_records_name_no_place_on_a_disk() -> None:
    for path in records.RESULTS.glob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert not any(place in text for place in ("/home/", "/tmp/", "/work/", "/root/")), path


# ---- marks ----------------------------------------------------------------------------------


def test_a_record_of_these_sources_has_no_mark(tmp_path: Path) -> None:
    page = _page(tmp_path, _record())
    assert "| MNIST | 42.00 (40.00 to 44.00) | >= 10 | yes |" in page
    assert "| work | times faster | target | met |" in page
    assert "old (" not in page
    assert "Some CPU, 2 cores, numpy 2.4.6, commit 0123456, 2026-11-23, load before 0.25" in page


def test_a_record_of_other_sources_is_old_in_its_table(tmp_path: Path) -> None:
    page = _page(tmp_path, _record(engine=BEFORE))
    assert "| work, old (commit 0123456) | times faster | target | met |" in page


def test_figures_of_uncommitted_changes_are_not_printed(tmp_path: Path) -> None:
    page = _page(tmp_path, _record(dirty=True))
    assert "Not printed: `peers.20261123T020000.json`, measured with uncommitted changes" in page
    assert "MNIST" not in page and "42" not in page.replace("peers.20261123", "")


def test_a_dirty_record_replaces_no_clean_one(tmp_path: Path) -> None:
    later = _record(dirty=True, date="2026-11-24T02:00:00+00:00")
    page = _page(tmp_path, _record(), later)
    assert page.count("| MNIST |") == 1
    assert "in 2 records" not in page  # nor does it count in a range


def test_rows_of_uncommitted_changes_are_left_out(tmp_path: Path) -> None:
    rows = [["one", "abc1234"], ["two", "abc1234-dirty"]]
    page = _page(tmp_path, _record(blocks=[{"columns": ["tree", "commit"], "rows": rows}]))
    assert "| one | abc1234 |" in page and "| two |" not in page
    assert "Left out: 1 rows of uncommitted changes." in page


# ---- several records ------------------------------------------------------------------------


def test_the_newest_of_a_command_is_printed_and_ratios_have_their_range(tmp_path: Path) -> None:
    slow = figures.ratio([20.0], [1.0], ">= 10")
    before = _record(
        engine=BEFORE,
        date="2026-11-22T02:00:00+00:00",
        machine={"cpu": "Another CPU"},
        blocks=[{"columns": ["work", "times faster"], "rows": [["MNIST", slow]]}],
    )
    page = _page(tmp_path, _record(), before)
    assert (
        "| MNIST | 42.00 (40.00 to 44.00) | >= 10 | yes | 20 to 42 in 2 records, 2 machines |"
        in page
    )
    assert "| work | times faster | target | met | all records |" in page
    assert page.count("| MNIST |") == 1
    assert "Earlier records: Another CPU, commit 0123456, 2026-11-22, load before 0.25." in page


def _imported(*rows: list[str], columns: tuple[str, ...] = ("work", "times faster")) -> Any:
    blocks = [{"columns": list(columns), "rows": [list(row) for row in rows]}]
    return _record(kind="imported", date=None, engine=BEFORE, blocks=blocks)


def test_ratios_that_an_imported_record_prints_count(tmp_path: Path) -> None:
    page = _page(tmp_path, _record(), _imported(["MNIST", "54.2"], ["covtype", "a text"]))
    assert "| >= 10 | yes | 42 to 54.2 in 2 records, 1 imported |" in page
    assert page.count("| MNIST |") == 1 and "covtype" not in page


@pytest.mark.parametrize(
    "rows",
    [[["another", "54.2"]], [["MNIST", ""]]],
)
def test_imported_rows_without_the_ratio_count_nothing(
    tmp_path: Path, rows: list[list[str]]
) -> None:
    assert "all records" not in _page(tmp_path, _record(), _imported(*rows))


@pytest.mark.parametrize(
    ("rows", "got"),
    [
        ([["MNIST", "1.84 than 1"]], "['1.84 than 1']"),
        ([["MNIST", "nan"]], "['nan']"),
        ([["MNIST", "54.2"], ["MNIST", "20"]], "['54.2', '20']"),
    ],
)
def test_an_imported_ratio_that_is_no_number_is_an_error(
    tmp_path: Path, rows: list[list[str]], got: str
) -> None:
    said = f"peers.imported.json: 'times faster' of 'MNIST' must be one number. Got {got}."
    with pytest.raises(ValueError, match=re.escape(said)):
        _page(tmp_path, _record(), _imported(*rows))


SECONDS = ("work", "who", "seconds", "times faster")


def _slower() -> Any:
    ratio = figures.ratio([30.0], [2.0], format=".1f")
    rows = [["MNIST", "ExKMC", figures.runs([30.0]), ratio]]
    columns = ["work", "who", "seconds", "times slower than ours"]
    return _record(blocks=[{"columns": columns, "rows": rows}])


def test_ratios_to_ours_in_c_order_are_taken_from_imported_seconds(tmp_path: Path) -> None:
    before = _imported(
        ["MNIST", "ExKMC", "44.6", "54.2"],  # which was against numpy uint8
        ["MNIST", "ours, 1 thread", "1.1", ""],
        ["MNIST", "ours, 1 thread, numpy uint8", "0.823", ""],
        columns=SECONDS,
    )
    assert "| 15.0 (one run) | 15 to 40.5 in 2 records, 1 imported |" in _page(
        tmp_path, _slower(), before
    )


def test_imported_seconds_without_ours_are_an_error(tmp_path: Path) -> None:
    before = _imported(["MNIST", "ExKMC", "44.6", "54.2"], columns=SECONDS)
    with pytest.raises(ValueError, match=r"'seconds' has no row 'MNIST, ours, 1 thread'\."):
        _page(tmp_path, _slower(), before)


def test_another_command_is_printed_besides(tmp_path: Path) -> None:
    quick = _record(command="python benches/peers.py --quick", date="2026-11-24T02:00:00+00:00")
    page = _page(tmp_path, _record(), quick)
    assert page.count("## Peers") == 1
    assert page.count("| MNIST |") == 2


def test_sections_have_their_order_and_prose(tmp_path: Path) -> None:
    (tmp_path / "peers.md").write_text("What peers are.\n")
    page = _page(tmp_path, _record(section="Another"), _record(section="Threads"), _record())
    places = [page.index(f"## {name}") for name in ("Peers", "Threads", "Another")]
    assert places == sorted(places)
    assert "## Peers\n\nWhat peers are.\n\n`python" in page


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    assert "Not measured: ExKMC: no pip." in _page(tmp_path, _record(missing=["ExKMC: no pip."]))


# ---- files ----------------------------------------------------------------------------------


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = _record(missing=["a"], kind="imported", date=None, load=None)
    assert records.read_record(record.write(tmp_path)) == record


def test_a_record_of_the_same_second_replaces_none(tmp_path: Path) -> None:
    made = [_record(command=command) for command in ("python a.py", "python b.py", "python c.py")]
    paths = [record.write(tmp_path) for record in made]
    assert [records.read_record(path) for path in paths] == made
    assert len(records.read_records(tmp_path)) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"loda": [1.0]}, "peers.json: unknown field 'loda'; known: section, command,"),
        ({"commit": ...}, "peers.json: the field 'commit' is missing."),
        ({"dirty": "no"}, "peers.json: 'dirty' must be of type bool."),
        ({"kind": "guessed"}, "peers.json: 'kind' must be measured or imported."),
        ({"blocks": [{"columns": ["a"], "cells": []}]}, "a table has columns and rows"),
        ({"blocks": [{"columns": ["a"], "rows": [["b", "c"]]}]}, "rows of other lengths"),
    ],
)
def test_a_file_that_is_no_record_is_refused(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    content = json.loads(_record().write(tmp_path).read_text())
    content = {name: part for name, part in {**content, **change}.items() if part is not ...}
    path = tmp_path / "peers.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=said.replace(".", r"\.")):
        records.read_record(path)


# ---- figures --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("as it is", "as it is"),
        (None, ""),
        (12345, "12,345"),
        (figures.runs([3.0, 1.0, 2.0]), "2 (1 to 3)"),
        (figures.runs([2.0]), "2 (one run)"),
        (figures.runs([[1.0, 2.0, 9.0], [4.0]]), "3 (2 to 4)"),
        (figures.ratio([2.0, 3.0, 4.0], [1.0, 1.0, 1.0], every=True), "3.00 (2.00, 3.00, 4.00)"),
        (figures.ratio([2.0, 3.0, 4.0], [1.0]), "2.00 (one run)"),
        (figures.ratio([1.0], [2.0], factor=2), "1.00 (one run)"),
        (figures.growth([10, 100], [[1.0, 2.0], [10.0, 200.0]]), "1.50 (1.00 to 2.00)"),
        (figures.mean([1.0, 3.0]), "2.00 (1.00)"),
        (figures.value(1234567.0, format=",.0f"), "1,234,567"),
    ],
)
def test_what_is_printed_of_a_figure(cell: Any, text: str) -> None:
    assert figures.shown(cell) == text


@pytest.mark.parametrize(
    ("target", "holds"), [(">= 2", True), ("> 2", False), ("<= 1,000", True), ("< 2", False)]
)
def test_targets(target: str, holds: bool) -> None:
    assert figures.met(figures.runs([1.0, 2.0, 5.0], target)) is holds


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        ({"kind": "best"}, "kind must be one of runs, ratio"),
        ({"kind": "runs", "runs": [1.0], "note": ""}, "has no field 'note'"),
        ({"kind": "ratio", "over": [1.0]}, "needs the field 'under'"),
        ({"kind": "runs", "runs": []}, "has no runs"),
        ({"kind": "runs", "runs": [1.0], "target": "fast"}, "A target is like"),
    ],
)
def test_a_wrong_figure_is_refused(figure: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        figures.read(figure)


def test_exponents_of_steps_and_of_all() -> None:
    rows = figures.growth_rows(["10", "100"], (10, 100), [[1.0], [100.0]], "<= 1.15")
    assert [[figures.shown(cell) for cell in row] for row in rows] == [
        ["10", "1 (one run)", ""],
        ["100", "100 (one run)", "2.00 (one run)"],
        ["all", "", "2.00 (one run)"],
    ]
    assert not figures.met(rows[-1][-1])


# ---- sources --------------------------------------------------------------------------------


def _git(folder: Path, *command: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", *identity, *command], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    for name in ("rust/src/lib.rs", "python/treeclust_rs/__init__.py", "Cargo.lock", "README.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("rust/src/lib.rs", True),
        ("python/treeclust_rs/new.py", True),
        ("Cargo.lock", True),
        ("README.md", False),
        ("python/treeclust_rs/cli/fitting.py", False),
        ("python/treeclust_rs/reports/page.py", False),
        ("python/treeclust_rs/reporting.py", True),
        ("python/treeclust_rs/_core.abi3.so", False),
        ("python/treeclust_rs/__pycache__/a.py", False),
    ],
)
def test_what_the_hash_of_the_engine_depends_on(repository: Path, name: str, changes: bool) -> None:
    before = records.engine(repository)
    (repository / name).parent.mkdir(exist_ok=True)
    (repository / name).write_text("something else")
    assert (records.engine(repository) != before) is changes


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_state_of_the_sources(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = repository / "python" / "treeclust_rs"
    _git(repository, "init", "--quiet")
    _git(repository, "add", ".")
    _git(repository, "commit", "--quiet", "-m", "one")
    clean = records.start(package, repository)
    assert (clean.commit, clean.dirty) == (_git(repository, "rev-parse", "HEAD"), False)
    assert records.engine_of(clean.commit, repository) == clean.engine

    (repository / "benches" / "results").mkdir(parents=True)
    (repository / "benches" / "results" / "new.json").write_text("{}")
    assert not records.start(package, repository).dirty  # records of the benches before it

    (repository / "rust" / "src" / "new.rs").write_text("")
    assert records.start(package, repository).dirty
    assert records.engine_of("0" * 40, repository) is None


def test_without_a_repository_the_commit_is_named_by_hand(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = repository / "python" / "treeclust_rs"
    monkeypatch.setattr(records, "_git", lambda *_: None)
    monkeypatch.delenv(records.COMMIT_VARIABLE, raising=False)
    assert records.start(package, repository).dirty
    monkeypatch.setenv(records.COMMIT_VARIABLE, "abc")
    named = records.start(package, repository)
    assert (named.commit, named.dirty) == ("abc", False)


def test_another_package_than_the_sources_is_dirty(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "_git", lambda *_: None)
    monkeypatch.setenv(records.COMMIT_VARIABLE, "abc")
    installed = tmp_path / "installed"
    installed.mkdir()
    (installed / "__init__.py").write_text("an older version")
    assert records.start(installed, repository).dirty


def test_a_record_that_measured_something_else_than_its_commit_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records, "engine_of", lambda _: BEFORE)
    right, wrong = _record(engine=BEFORE), replace(_record(), file="peers.json")
    assert report.contradictions([right, wrong]) == [
        "peers.json: not measured on commit 0123456, as it says."
    ]
