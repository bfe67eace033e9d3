"""Tables as people have them against tables with gaps filled and levels one-hot encoded.

    python benches/tables.py --data ../shared/data

Every table is fitted as it comes (columns of labels and of row numbers left out), with
``scale="standard"``, and encoded as is usual: missing numbers at the mean, missing text the most
frequent one, a column for each level, in the same units, so that rows of complete tables are as far
apart. All trees of a table explain the same clustering, that of the table as it comes, and are
measured alike: the cost of the rows, over observed cells, about the means of the tree's clusters,
over that of the clustering. What is left out is named.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.tree import DecisionTreeClassifier

import common
import report
import treeclust_rs as tc
from common import table
from figures import Cell, runs, value
from treeclust_rs.datasets import make_customers
from treeclust_rs.metrics import kmeans_cost

BEST, EXKMC, CART = "BestTree", "ExKMC", "DecisionTree"
ON_LABELS = "KMeansTree"
"""What is compared with scikit-learn's tree: of the same criterion."""
METHODS = (BEST, EXKMC, ON_LABELS)
SIZES = (1, 2, 4)
STEPS = (1.25, 1.5, 2, 3, 4)
TIE = 1.0 + 1e-9
"""Costs that differ by less are equal."""
LEAST = 1e-4
"""An excess below it counts as it."""
MOST_LEAVES = 8
"""Leaves per cluster that a tree of the encoded table may need at most."""
SMALL, SEEDS = 5_000, 9
"""Tables of at most so many rows are searched so many times."""
FEW_SEEDS = 3
"""Larger ones so many times."""
WIDE = 500
"""Tables with more columns encoded are searched once, with effort="quick"."""
LEVELS = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)


@dataclass(frozen=True)
class Work:
    """A table with text, flags, dates or missing cells."""

    name: str
    n_clusters: int
    read: Callable[[Path], pl.DataFrame]
    file: str | None = None

    @property
    def is_quick(self) -> bool:
        return self.n_clusters == QUICK and self.name != WIDEST


def _parquet(file: str, folder: Path) -> pl.DataFrame:
    return pl.read_parquet(folder / file).drop("label", strict=False)


def _of_file(name: str, n_clusters: int) -> Work:
    return Work(name, n_clusters, partial(_parquet, f"{name}.parquet"), f"{name}.parquet")


WIDEST = "fifa19_players"
WORKS = (
    *(_of_file("adult_census", k) for k in (4, 8, 16)),
    *(_of_file("car_evaluation", k) for k in (4, 8, 16)),
    *(_of_file("mice_protein", k) for k in (4, 8, 16)),
    _of_file(WIDEST, 8),
    *(Work("customers", k, lambda _: make_customers().drop("customer_id")) for k in (4, 8, 16)),
)
QUICK = 8
"""Number of clusters of a quick run."""


def encoded(frame: pl.DataFrame, scale: np.ndarray) -> np.ndarray:
    """Fill gaps and one-hot encode; two levels of a column are one over its unit apart."""
    columns = []
    for column, unit in zip(frame, scale, strict=True):
        if isinstance(column.dtype, LEVELS):
            texts = column.cast(pl.String)
            texts = texts.fill_null(texts.drop_nulls().mode().sort()[0])
            for level in texts.unique().sort():
                columns.append((texts == level).to_numpy() / (unit * math.sqrt(2.0)))
            continue
        if column.dtype == pl.Date:
            column = column.cast(pl.Datetime("us"))
        numbers = column.to_physical().cast(pl.Float64)
        mean = numbers.mean()
        columns.append((numbers.fill_null(mean) - mean).to_numpy() / unit)
    return np.column_stack(columns)


@dataclass(frozen=True)
class Fit:
    """A tree's labels, its leaves and the seconds of the processor that its fit took."""

    labels: np.ndarray
    n_leaves: int
    seconds: float
    leaf: np.ndarray
    """The leaf of each row."""
    costs: tuple[float, ...] = ()
    """What the trees of all searches cost, over the reference's; empty if it is no search."""


def timed(model: Any, X: Any) -> Fit:
    seconds = _seconds_of(lambda: model.fit(X))
    return Fit(model.labels_, model.n_leaves_, seconds, model.apply(X))


@dataclass(frozen=True)
class Row:
    """What a method's trees of equally many leaves cost, over the reference's."""

    name: str
    method: str
    cost: float
    encoded: float
    beside: str = ""
    """Of a lost row: what else tells the two trees apart."""

    @property
    def is_met(self) -> bool:
        return self.cost <= self.encoded * TIE

    @property
    def lost(self) -> str:
        by = f"{self.cost / self.encoded - 1.0:.3%}"
        return f"{self.name}: {self.method} costs {by} more than on the encoded table{self.beside}."

    @staticmethod
    def excess(cost: float) -> float:
        return max(cost - 1.0, LEAST)


@dataclass
class TableBench:
    """One table with one number of clusters: what all trees explain, and the rows of the page."""

    work: Work
    frame: pl.DataFrame
    lines: list[list[Cell]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        model = tc.IMM(self.work.n_clusters, scale="standard", random_state=0, n_jobs=1)
        self.seconds = _seconds_of(lambda: model.fit(self.frame))
        self.labels, self.scale = model.reference_labels_, model.scale_
        self.reference = self._cost(self.labels)
        self.encoded = encoded(self.frame, self.scale)
        self.is_wide = self.encoded.shape[1] > WIDE

    def facts(self) -> list[Cell]:
        frame = self.frame
        n_gaps = sum(frame.null_count().row(0))
        n_levels = sum(isinstance(dtype, LEVELS) for dtype in frame.dtypes)
        gaps = value(100.0 * n_gaps / (frame.height * frame.width), format=".1f")
        seconds = value(self.seconds, format=".2f")
        shape = (frame.height, frame.width, n_levels, gaps, self.encoded.shape[1])
        return [self.work.name, self.work.n_clusters, *shape, seconds]

    def run(self) -> None:
        for n_leaves in (size * self.work.n_clusters for size in SIZES):
            for name in METHODS:
                ours = self._fitted(name, n_leaves, self.frame, scale="standard")
                self._add(name, n_leaves, ours, self._peer(name, n_leaves))

    def _fitted(self, name: str, n_leaves: int, X: Any, **options: Any) -> Fit:
        """Fit a method; of several searches that of the median cost counts."""
        seeds = range(self._n_searches() if name == BEST else 1)
        fits = [timed(self._model(name, n_leaves, seed, **options), X) for seed in seeds]
        fits.sort(key=self._ratio)
        costs = tuple(map(self._ratio, fits)) if len(fits) > 1 else ()
        return replace(fits[len(fits) // 2], costs=costs)

    def _n_searches(self) -> int:
        if self.is_wide:
            return 1
        return SEEDS if self.frame.height <= SMALL else FEW_SEEDS

    def _model(self, name: str, n_leaves: int, seed: int = 0, **options: Any) -> Any:
        if name == BEST:
            effort = "quick" if self.is_wide else "normal"
            options = {"random_state": seed, "effort": effort} | options
        options |= {"max_leaves": n_leaves, "reference": self.labels, "n_jobs": 1}
        return getattr(tc, name)(**options)

    def _peer(self, name: str, n_leaves: int) -> Fit:
        """Fit the same method to the encoded table; in place of KMeansTree scikit-learn's tree."""
        if name != ON_LABELS:
            return self._fitted(name, n_leaves, self.encoded)
        tree = DecisionTreeClassifier(max_leaf_nodes=n_leaves, random_state=0)
        seconds = _seconds_of(lambda: tree.fit(self.encoded, self.labels))
        leaf = tree.apply(self.encoded)
        return Fit(tree.predict(self.encoded), int(tree.get_n_leaves()), seconds, leaf)

    def _add(self, name: str, n_leaves: int, ours: Fit, peer: Fit) -> None:
        cost, other, work = self._ratio(ours), self._ratio(peer), self.work
        row = Row(f"{work.name}, {work.n_clusters} clusters, {n_leaves} leaves", name, cost, other)
        if not row.is_met:
            row = replace(row, beside=self._beside(name, n_leaves, ours, peer))
        self.rows.append(row)
        if not row.is_met:
            print(f"!!! {row.lost}", file=sys.stderr)
        self.lines.append(
            [
                row.name,
                name,
                ours.n_leaves,
                self._shown(ours),
                self._shown(peer),
                report.verdict(row.is_met),
                self._needed(name, cost, n_leaves, peer),
                value(ours.seconds, format=".2f"),
                value(peer.seconds, format=".2f"),
            ]
        )

    def _beside(self, name: str, n_leaves: int, ours: Fit, peer: Fit) -> str:
        """Return what tells the trees of a lost row apart.

        A search of the table is done in less time, so one with more effort is tried. KMeansTree
        lowers the impurity of the clustering's labels, not the cost.
        """
        if name == ON_LABELS:
            return (
                f"; its Gini impurity, which it lowers, is {self._impurity(ours):.4f} against "
                f"{self._impurity(peer):.4f}"
            )
        if name != BEST or self.is_wide:
            return ""
        more = self._fitted(name, n_leaves, self.frame, scale="standard", effort="thorough")
        searched, of_encoded = (
            f"{min(fit.costs):.5f} to {max(fit.costs):.5f}" for fit in (ours, peer)
        )
        return (
            f": {searched} in {len(ours.costs)} searches of {ours.seconds:.1f} s, encoded "
            f"{of_encoded} in as many of {peer.seconds:.1f} s; with "
            f'effort="thorough" {self._ratio(more) / self._ratio(peer) - 1.0:+.3%} in '
            f"{more.seconds:.1f} s"
        )

    def _impurity(self, fit: Fit) -> float:
        """Return the mean Gini impurity of the reference's labels in the leaves."""
        counts = np.zeros((fit.leaf.max() + 1, self.labels.max() + 1))
        np.add.at(counts, (fit.leaf, self.labels), 1.0)
        sizes = counts.sum(axis=1)
        sizes[sizes == 0.0] = 1.0
        return 1.0 - float((np.square(counts).sum(axis=1) / sizes).sum() / counts.sum())

    def _shown(self, fit: Fit) -> Cell:
        """Return what a tree costs; of several searches the median, the least and the most."""
        if fit.costs:
            return runs(fit.costs, format=".5f")
        return value(self._ratio(fit), format=".5f")

    def _needed(self, name: str, cost: float, n_leaves: int, peer: Fit) -> Cell:
        """Return the fewest leaves with which a tree of the encoded table costs no more.

        Those of BestTree are looked for in steps, since each is a search of its own.
        """
        if self._ratio(peer) <= cost * TIE:
            return peer.n_leaves
        most = MOST_LEAVES * self.work.n_clusters
        if name == BEST:
            if self.is_wide:
                return "not looked for"
            sizes = sorted({min(math.ceil(n_leaves * step), most) for step in STEPS})
            found = (self._peer(name, size) for size in sizes)
        elif name == EXKMC:
            X = self.encoded
            model = self._model(name, most).fit(X)
            smaller = (model.truncate(m) for m in range(n_leaves + 1, model.n_leaves_ + 1))
            found = (Fit(tree.predict(X), tree.n_leaves_, 0.0, tree.apply(X)) for tree in smaller)
        else:
            found = (self._peer(name, size) for size in range(n_leaves + 1, most + 1))
        enough = (fit.n_leaves for fit in found if self._ratio(fit) <= cost * TIE)
        return next(enough, f"over {most}")

    def _ratio(self, fit: Fit) -> float:
        return self._cost(fit.labels) / self.reference

    def _cost(self, labels: np.ndarray) -> float:
        return kmeans_cost(self.frame, labels, scale="standard")


def _seconds_of(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    parser = common.parser(
        __doc__,
        data=True,
        only="only the tables whose name holds this",
        quick=f"only {QUICK} clusters, and without the widest table",
    )
    arguments = common.parse(parser)
    common.one_thread()
    missing = common.Missing()
    works = [work for work in WORKS if not arguments.quick or work.is_quick]
    facts: list[list[Cell]] = []
    lines: list[list[Cell]] = []
    rows: list[Row] = []
    for work in common.chosen(works, arguments, missing):
        print(f"... {work.name}, {work.n_clusters} clusters", file=sys.stderr, flush=True)
        bench = TableBench(work, work.read(arguments.data))
        bench.run()
        facts.append(bench.facts())
        lines += bench.lines
        rows += bench.rows
    blocks: list[Any] = [
        *_summary(rows),
        "The tables; *reference*: seconds of the clustering that is explained, with IMM's tree.",
        table(
            (
                "table",
                "clusters",
                "rows",
                "columns",
                "of levels",
                "gaps, %",
                "encoded",
                "reference",
            ),
            facts,
        ),
        f"Costs over the reference's. *Encoded*: the same method on the encoded table; in place of "
        f"{ON_LABELS} scikit-learn's {CART}. *Needed*: the leaves with which that costs no more, "
        f"at most {MOST_LEAVES} per cluster (of {BEST} in steps of "
        f"{', '.join(map(str, STEPS))} times the leaves). Of encoded tables of more than {WIDE} "
        f'columns {BEST} is the one of effort="quick", on both sides; of others that of the median '
        f"cost of {FEW_SEEDS} searches, of tables of at most {SMALL:,} rows of {SEEDS}.",
        table(
            (
                *("table", "method", "leaves", "cost", "encoded", "no more", "leaves needed"),
                *("seconds", "seconds encoded"),
            ),
            lines,
        ),
    ]
    common.publish("Tables", blocks, missing, arguments)


def _summary(rows: list[Row]) -> list[Any]:
    lines: list[list[Cell]] = []
    for name in METHODS:
        of_method = [row for row in rows if row.method == name]
        if not of_method:
            continue
        shares = [row.excess(row.cost) / row.excess(row.encoded) for row in of_method]
        lines.append(
            [
                name,
                len(of_method),
                value(sum(not row.is_met for row in of_method), "<= 0"),
                value(math.exp(math.fsum(map(math.log, shares)) / len(shares)), format=".3f"),
            ]
        )
    lost = [f"**{row.lost}**" for row in rows if not row.is_met]
    return [
        "*Lost* are the rows where the encoded table has the cheaper tree. *Excess* is what a cost "
        f"ratio has above 1, at least {LEAST:g}: that of the table over that of the encoded one, "
        "geometric mean.",
        table(("method", "rows", "lost", "excess / encoded"), lines),
        "\n".join(lost) or "No row is lost.",
    ]


if __name__ == "__main__":
    main()
