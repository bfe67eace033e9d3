"""The command `demo`: a tour with real wines, and with customers as a database has them."""

import argparse
import shlex
from collections.abc import Iterable
from pathlib import Path

import polars as pl
from sklearn.datasets import load_wine

from ..datasets import make_customers
from ..estimators.best_tree import BestTree
from ..metrics import agreement
from ..tree import format_share
from .messages import FileError
from .output import can_draw, draw, print_fact, print_fit, save, write_table
from .parser import program_name


def demo(arguments: argparse.Namespace) -> None:
    """Fit wines and customers, print the trees, and write tables, models and pictures."""
    folder = Path(arguments.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise FileError(
            f"{folder} is a file or lies in one: -o takes a folder, which may be new."
        ) from error
    table, saved = _cluster_wines(folder)
    _cluster_customers(folder)
    if not can_draw():
        print("For pictures as well: pip install treeclust_rs[plot].")
    program = program_name()
    options = "-k 3 --leaves 4 --scale standard"
    print("\nThe wines by hand, and what comes next:")
    print(f"  {program} fit {_quoted(table)} {options} -o {_quoted(saved)}")
    print(f"  {program} predict {_quoted(saved)} {_quoted(table)} -o {_quoted(folder / 'out.csv')}")
    print(f"  {program} explain {_quoted(saved)} {_quoted(table)} --rows 0-4")


def _cluster_wines(folder: Path) -> tuple[Path, Path]:
    """Cluster a table of numbers; return the paths of table and model."""
    wine = load_wine()
    frame = pl.DataFrame(wine.data, schema=list(wine.feature_names))
    table = folder / "wine.csv"
    write_table(frame, table)
    print("178 Italian wines of three cultivars, described by 13 numbers of a chemical analysis.")
    print(
        "Nobody says which is which: k-means finds 3 clusters, a tree of 4 leaves explains them.\n"
    )
    model = BestTree(3, max_leaves=4, scale="standard", random_state=0).fit(frame)
    print_fit(model, n_clusters=3)
    found = agreement(model.labels_, wine.target)
    print_fact("cultivars", f"{format_share(found)} of the wines are with their own")
    print("\nWhy the first three wines are where they are:")
    _print_lines(model.explain(frame.head(3)))
    return table, _write(model, table)


def _cluster_customers(folder: Path) -> None:
    """Cluster a table of text, booleans, dates, numbers and gaps."""
    customers = make_customers(2_000)
    table = folder / "customers.parquet"
    write_table(customers, table)
    columns = customers.drop("customer_id")
    print("\n\n2,000 customers as a database gives them: text, booleans, dates, money, and 15 % of")
    print("the cells missing. Nothing is encoded or filled in: gaps count in no distance.\n")
    model = BestTree(5, max_leaves=5, scale="standard", effort="quick", random_state=0)
    print_fit(model.fit(columns), n_clusters=5)
    print("\nAs rules:")
    rules = model.rules().select("cluster", "rule").iter_rows()
    _print_lines(f"cluster {cluster}: {rule}" for cluster, rule in rules)
    print("\nWhy the first three customers are where they are:")
    _print_lines(model.explain(columns.head(3)))
    _write(model, table)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(f"  {line}")


def _write(model: BestTree, table: Path) -> Path:
    """Write model and picture beside a table, and say so; return the path of the model."""
    saved, picture = table.with_suffix(".json"), table.with_suffix(".png")
    save(model, saved)
    where = f"\nThe data are in {table}, the model in {saved}"
    if can_draw():
        draw(model, picture)
        where += f", a picture in {picture}"
    print(f"{where}.")
    return saved


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
