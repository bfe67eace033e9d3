"""The rows of a report: their clusters, what sets these apart, and the most typical rows."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.sparse import issparse

from .._base import TreeClusterer
from .._data import column_of
from .._util import FloatArray, IntArray, column_name, format_number, format_short
from .._util.words import printable, real_name
from ..export.contrasts import strongest, time_text
from ..metrics.profiles import profile_clusters, profiled_rows
from ..tree import MAX_TERMS, ClusterTree, are_of_fit, format_share, rule_text, walk_leaves
from ..tree.columns import Column


class Contrast(NamedTuple):
    """What a cluster has more of, or less, than all others."""

    feature: int
    level: str | None
    """Of text, the level; of booleans ``true``."""
    amount: float
    """In units of the column."""
    here: str
    elsewhere: str


class ReportRows:
    """The rows, read as `predict` reads them, with all columns of the fit.

    Everything here is counted from them, each row once; `are_of_fit` says whether that makes it a
    figure of the fit.
    """

    def __init__(self, model: Any, X: Any) -> None:
        if issparse(X):
            raise TypeError(
                "report takes dense rows: give X.toarray(), or fit the model to fewer columns. "
                "profile(X) takes sparse rows."
            )
        self.model = model
        self.tree: ClusterTree | None = None
        if isinstance(model, TreeClusterer):
            self.tree = model.tree_
            table, self.leaves = model._route(X, all_columns=True)
            self.codes: IntArray = self.tree.leaf_clusters[self.leaves]
            self.are_of_fit = are_of_fit(self.tree, self.leaves, vars(model).get("labels_"))
        else:
            table = model._read(X, all_columns=True)
            labels = model.predict(X)
            self.codes = np.searchsorted(model.classes_, labels).astype(np.int64)
            self.are_of_fit = np.array_equal(vars(model).get("labels_", ()), labels)
        self.table = table
        self.classes = model.classes_.tolist()
        self.weighted = profiled_rows(model, table, None)
        self.units = self.weighted.units.scale
        self.sizes = np.bincount(self.codes, minlength=len(self.classes))
        self.profile = profile_clusters(self.weighted, self.codes, self.classes).table
        self.names = [column_name(table.feature_names, f) for f in range(table.n_features)]
        self._place = {real_name(table.feature_names, f): f for f in range(table.n_features)}
        self.contrasts = [self._contrasts_of(code) for code in range(len(self.classes))]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.table.n_samples)

    @property
    def n_filled(self) -> int:
        """Number of clusters that have rows."""
        return int(np.count_nonzero(self.sizes))

    def rules(self, n_most: int) -> list[tuple[list[str], int]]:
        """Return by cluster the rules of most rows, at most so many, and the number of all.

        The weights of sums have three digits.
        """
        if self.tree is None:
            frame = self.model.rules().frame.sort("n", descending=True, maintain_order=True)
            texts = [frame.filter(pl.col("cluster") == label)["rule"] for label in self.classes]
            return [(own.head(n_most).to_list(), len(own)) for own in texts]
        tree, counts = self.tree, np.bincount(self.leaves, minlength=self.tree.n_nodes)
        of_cluster = tree.leaf_clusters[tree.leaves]
        leaves = [tree.leaves[of_cluster == code] for code in range(len(self.classes))]
        shown = [own[np.argsort(-counts[own], kind="stable")[:n_most]].tolist() for own in leaves]
        wanted, scores = {leaf for own in shown for leaf in own}, dict[int, str]()
        rules = {
            leaf: rule_text(tree.feature_name, path.conditions(), MAX_TERMS, scores, short=True)
            for leaf, _, path in walk_leaves(tree)
            if leaf in wanted
        }
        return [
            ([rules[leaf] for leaf in some], len(own))
            for some, own in zip(shown, leaves, strict=True)
        ]

    def column(self, feature: int) -> Column:
        """Return what a column holds."""
        return Column() if self.tree is None else self.tree.column(feature)

    def values(self, feature: int) -> FloatArray:
        """Return a column: codes of levels, NaN where missing."""
        return column_of(self.table, feature).astype(np.float64)

    def _lines_of(self, code: int) -> Any:
        """Return the part of the profile that is of one cluster."""
        n_lines = self.profile.height // len(self.classes)
        return self.profile[code * n_lines : (code + 1) * n_lines].iter_rows(named=True)

    def _contrasts_of(self, code: int) -> list[Contrast]:
        """Return what sets a cluster apart, the strongest first; a line for each column."""
        lines = (
            (line["contrast"], self._place[line["column"]], line)
            for line in self._lines_of(code)
            if line["contrast"] is not None
        )
        found = []
        for amount, feature, line in strongest(lines):
            here = line["mean"] if line["level"] is None else line["share"]
            texts = [self._typical(feature, line["level"], value) for value in (here, line["rest"])]
            found.append(Contrast(feature, line["level"], amount, *texts))
        return found

    def _typical(self, feature: int, level: str | None, value: float) -> str:
        if level is not None:
            return format_share(value)
        column = self.column(feature)
        if column.is_time:
            return time_text(column, value, float(self.units[feature]))
        return format_short(value)

    def usual(self, code: int, feature: int) -> str:
        """Return the mean of a column in a cluster, or its most frequent level with the share."""
        lines = [line for line in self._lines_of(code) if self._place[line["column"]] == feature]
        if lines[0]["level"] is None:
            mean = lines[0]["mean"]
            return "missing" if mean is None else self._typical(feature, None, mean)
        line = max(lines, key=lambda line: line["share"] or 0.0)
        if line["share"] is None:
            return "missing"
        level, share = printable(line["level"]), line["share"]
        if self.column(feature).kind == "flag":
            level, share = ("yes", share) if share >= 0.5 else ("no", 1.0 - share)
        return f"{level} ({format_share(share)})"

    def cell_text(self, feature: int, row: int) -> str:
        """Return a cell as people write it."""
        value, column = (
            float(column_of(self.table, feature)[row : row + 1][0]),
            self.column(feature),
        )
        if math.isnan(value):
            return "missing"
        if column.has_levels:
            text = column.level_text(int(value))
            return {"true": "yes", "false": "no"}[text] if column.kind == "flag" else text
        if column.is_time:
            return time_text(column, value, 0.0)
        return format_number(value) if value == round(value) else f"{value:.6g}"

    def shown_features(self, n_most: int) -> list[int]:
        """Return the columns to show of single rows: those tested, then those that differ most."""
        chosen = dict.fromkeys(self.model._needed_features.tolist())
        others = sorted(
            (c for contrasts in self.contrasts for c in contrasts), key=lambda c: -abs(c.amount)
        )
        chosen |= dict.fromkeys(contrast.feature for contrast in others)
        if not chosen:  # of a single cluster
            chosen = dict.fromkeys(range(self.table.n_features))
        return sorted(list(chosen)[:n_most])

    def exemplars(self, n: int) -> list[list[int]]:
        """Return by cluster the places of the rows nearest to its mean, the nearest first.

        Squared distances are in units of the columns; a missing cell counts as the mean of the
        cluster's others. Rows with more gaps than half of the cluster's are left out.
        """
        distance, n_gaps = self._distances()
        found = []
        for code in range(len(self.classes)):
            own = np.flatnonzero(self.codes == code)
            if len(own):
                own = own[n_gaps[own] <= np.median(n_gaps[own])]
            found.append(own[np.argsort(distance[own], kind="stable")[:n]].tolist())
        return found

    def _distances(self) -> tuple[FloatArray, IntArray]:
        """Return the squared distance of each row to the mean of its cluster, and its gaps."""
        k, codes = len(self.classes), self.codes
        distance, n_gaps = np.zeros(self.n_rows), np.zeros(self.n_rows, dtype=np.int64)
        for feature in range(self.table.n_features):
            values, column = self.values(feature), self.column(feature)
            seen = ~np.isnan(values)
            own, cells = codes[seen], values[seen]
            n_seen = np.maximum(np.bincount(own, minlength=k), 1)
            if column.has_levels:
                # About the shares p of the levels: 1 - 2 p(level) + the sum of p².
                level, n_levels = cells.astype(np.int64), len(column.levels)
                counts = np.bincount(own * n_levels + level, minlength=k * n_levels)
                shares = counts.reshape(k, n_levels) / n_seen[:, np.newaxis]
                squares = 1.0 - 2.0 * shares[own, level] + np.square(shares).sum(axis=1)[own]
                squares /= 2.0
            else:
                cells = cells - self.weighted.units.shift[feature]
                squares = np.square(cells - (np.bincount(own, cells, k) / n_seen)[own])
            squares /= self.units[feature] ** 2
            n_gaps += ~seen
            distance[seen] += squares
            distance[~seen] += (np.bincount(own, squares, k) / n_seen)[codes[~seen]]
        return distance, n_gaps
