"""Databases to ask for the clusters of rows: DuckDB, SQLite, and a PostgreSQL server of our own."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

NUMBER = "row number"  # of a row, among its columns
TABLE = ("main", 'rows "of" x')


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def ordered(query: str) -> str:
    return f"SELECT cluster FROM ({query}) AS q ORDER BY {quoted(NUMBER)}"


class DuckDB:
    dialect = "duckdb"

    def __init__(self) -> None:
        import duckdb

        self.connection = duckdb.connect()

    def load(self, frame: pl.DataFrame) -> None:
        arrow = frame.with_row_index(NUMBER).to_arrow()
        self.connection.register("arrow", arrow)
        self.run(f"CREATE OR REPLACE TABLE {'.'.join(map(quoted, TABLE))} AS FROM arrow")

    def run(self, query: str) -> list[object]:
        return [row[0] for row in self.connection.execute(query).fetchall()]


class SQLite:
    dialect = "sqlite"

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:")

    def load(self, frame: pl.DataFrame) -> None:
        frame = frame.with_row_index(NUMBER)
        columns = []
        for column in frame:
            if column.dtype == pl.Duration:
                column = column.dt.total_microseconds()
            cells = column.to_list()
            if column.dtype in (pl.Datetime, pl.Date):
                cells = [None if time is None else str(time) for time in cells]
            columns.append(cells)
        path = ".".join(map(quoted, TABLE))
        self.connection.execute(f"DROP TABLE IF EXISTS {path}")
        self.connection.execute(f"CREATE TABLE {path} ({', '.join(map(quoted, frame.columns))})")
        marks = ", ".join("?" * frame.width)
        self.connection.executemany(
            f"INSERT INTO {path} VALUES ({marks})", zip(*columns, strict=True)
        )

    def run(self, query: str) -> list[object]:
        return [row[0] for row in self.connection.execute(query).fetchall()]


_POSTGRES_TYPES = {
    pl.String: "TEXT",
    pl.Boolean: "BOOLEAN",
    pl.Date: "DATE",
    pl.Float64: "DOUBLE PRECISION",
    pl.Float32: "REAL",
    pl.Int64: "BIGINT",
    pl.UInt32: "BIGINT",
    pl.Duration: "INTERVAL",
}


class Postgres:
    """A cluster in a folder of its own, which listens on a socket there alone."""

    dialect = "postgres"

    def __init__(self, folder: Path, programs: Path, user: str | None) -> None:
        self.folder, self.programs, self.user = folder, programs, user
        self._program("initdb", "-D", f"{folder}/data", "-E", "UTF8", "--locale=C", "-A", "trust")
        settings = f"-c listen_addresses='' -k {folder} -c fsync=off"
        log = f"{folder}/log"
        self._program("pg_ctl", "start", "-w", "-D", f"{folder}/data", "-o", settings, "-l", log)
        self.run("CREATE SCHEMA main")

    def _program(self, name: str, *arguments: str, given: str | None = None) -> str:
        done = subprocess.run(
            [self.programs / name, *arguments],
            input=given,
            capture_output=True,
            encoding="utf-8",
            user=self.user,
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "PGOPTIONS": "-c client_min_messages=warning"},
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout

    def stop(self) -> None:
        self._program("pg_ctl", "stop", "-w", "-m", "immediate", "-D", f"{self.folder}/data")

    def _psql(self, script: str) -> str:
        how = ("-X", "-q", "--csv", "-t", "-v", "ON_ERROR_STOP=1", "-P", "null=NULL")
        # From a file, so that nothing but the query is read from it.
        return self._program(
            "psql", *how, "-h", str(self.folder), "-d", "postgres", "-f", "-", given=script
        )

    def load(self, frame: pl.DataFrame) -> None:
        frame = frame.with_row_index(NUMBER)
        path, columns, written = ".".join(map(quoted, TABLE)), [], []
        for column in frame:
            dtype = column.dtype
            kind = _POSTGRES_TYPES.get(dtype.base_type())
            if isinstance(dtype, pl.Datetime):
                kind = "TIMESTAMP" if dtype.time_zone is None else "TIMESTAMPTZ"
            columns.append(f"{quoted(column.name)} {kind}")
            if dtype == pl.Duration:
                column = column.dt.total_microseconds().cast(pl.String) + " microseconds"
            elif isinstance(dtype, pl.Datetime):
                column = column.dt.to_string("iso:strict")
            elif dtype == pl.Boolean:
                column = column.cast(pl.String)
            elif dtype.is_float():
                column = pl.Series(column.name, [None if x is None else repr(x) for x in column])
            written.append(column.cast(pl.String).to_list())
        rows = io.StringIO()
        for row in zip(*written, strict=True):
            # Quoted, so that an empty text is none that is NULL.
            cells = ("" if x is None else '"' + x.replace('"', '""') + '"' for x in row)
            rows.write(",".join(cells) + "\n")
        self._psql(
            f"DROP TABLE IF EXISTS {path};\nCREATE TABLE {path} ({', '.join(columns)});\n"
            f"COPY {path} FROM STDIN (FORMAT csv);\n{rows.getvalue()}\\.\n"
        )

    def run(self, query: str) -> list[object]:
        """Return the first column; numbers as integers."""
        printed = csv.reader(io.StringIO(self._psql(query + ";\n")))
        cells = [row[0] for row in printed]
        try:
            return [None if cell == "NULL" else int(cell) for cell in cells]
        except ValueError:
            return [None if cell == "NULL" else cell for cell in cells]


def postgres_programs() -> Path | None:
    """Return the folder of PostgreSQL's programs, None where there is no server."""
    # Debian keeps them off the path.
    folders = [path.parent for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))]
    found = shutil.which("postgres")
    folders += [] if found is None else [Path(found).resolve().parent]
    whole = [folder for folder in folders if (folder / "psql").exists()]
    return whole[-1] if whole else None


@contextlib.contextmanager
def postgres_server() -> Iterator[Postgres]:
    """Start a server of our own; skips the test, by name, where there is none."""
    programs = postgres_programs()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: apt install postgresql)")
    user = None
    if os.geteuid() == 0:  # as whom the server refuses to run
        import pwd

        user = "postgres"
        try:
            pwd.getpwnam(user)
        except KeyError:
            pytest.skip("PostgreSQL's server does not run as root, and there is no user postgres")
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # short: a socket's path has 107 characters
    if user is not None:
        shutil.chown(folder, user)
    try:
        server = Postgres(folder, programs, user)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
