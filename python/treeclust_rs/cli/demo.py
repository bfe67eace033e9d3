"""The command `demo`: a tour with a data set of real wines."""

import argparse
import shlex
from pathlib import Path

import polars as pl
from sklearn.datasets import load_wine

from ..estimators.best_tree import BestTree
from ..metrics import agreement
from ..tree import format_share
from .messages import FileError
from .output import can_draw, draw, print_fact, print_fit, save, write_table
from .parser import program_name


def demo(arguments: argparse.Namespace) -> None:
    """Fit the wines, print the tree, and write table, model and picture."""
    folder = Path(arguments.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise FileError(
            f"{folder} is a file or lies in one: -o takes a folder, which may be new."
        ) from error
    wine = load_wine()
    frame = pl.DataFrame(wine.data, schema=list(wine.feature_names))
    table, picture, saved = folder / "wine.csv", folder / "wine.png", folder / "wine.json"
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
    for line in model.explain(frame.head(3)):
        print(f"  {line}")
    save(model, saved)
    print(f"\nThe data are in {table}, the model in {saved}", end="")
    if can_draw():
        draw(model, picture)
        print(f", a picture in {picture}.")
    else:
        print(".\nFor a picture as well: pip install treeclust_rs[plot].")
    program = program_name()
    options = "-k 3 --leaves 4 --scale standard"
    print("The same by hand, and what comes next:")
    print(f"  {program} fit {_quoted(table)} {options} -o {_quoted(saved)}")
    print(f"  {program} predict {_quoted(saved)} {_quoted(table)} -o {_quoted(folder / 'out.csv')}")
    print(f"  {program} explain {_quoted(saved)} {_quoted(table)} --rows 0-4")


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
