"""Random trees of levels, flags, times and numbers with gaps; their rows as frames and numbers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from treeclust_rs.tree import ClusterTree
from trees import NAN, Builder

KINDS = (
    "number",
    "number",
    "levels",
    "flag",
    "date",
    "datetime[Europe/Berlin]",
    "duration",
    "datetime[]",
)
NAMES = ("income", "age", "region", "newsletter", "signup", "seen", "stay", "made")
REGIONS = ("", " east", "10", "a, b", "north", "West")
LEVELS = (None, None, REGIONS, ("false", "true"), None, None, None, None)
HAS_MISSING = (True, False, True, True, True, False, True, True)
UNKNOWN = "atlantis"

DAY = 86_400_000_000
_START = datetime(2024, 3, 29, tzinfo=UTC)


def microseconds(time: datetime) -> int:
    """Return a time in microseconds since 1970."""
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def random_cells(rng: np.random.Generator, n: int, *, gaps: bool = True) -> np.ndarray:
    """Return rows as the core sees them: (n, 8); NaN is missing or an unknown level."""
    days = rng.integers(-3, 4, n) + (_START.date() - date(1970, 1, 1)).days
    columns = [
        rng.integers(-3, 4, n) / 2,
        rng.integers(20, 26, n).astype(float),
        rng.integers(0, len(REGIONS), n).astype(float),
        rng.integers(0, 2, n).astype(float),
        days * float(DAY),
        microseconds(_START) + rng.integers(-4, 5, n) * (DAY / 4),
        rng.integers(-3, 4, n) * 1_800_000_000.0,
        rng.integers(-3, 4, n).astype(float),  # around 1970, a microsecond apart
    ]
    cells = np.column_stack(columns)
    if gaps:
        cells[rng.random(cells.shape) < 0.15] = NAN
    return cells


def whole_milliseconds(cells: np.ndarray) -> np.ndarray:
    """Return rows of `random_cells` with whole milliseconds, some of them beside microseconds."""
    return cells * [1, 1, 1, 1, 1, 1, 1, 1000]


def frame_of(
    cells: np.ndarray,
    rng: np.random.Generator,
    *,
    unit: str = "us",
    unknown: bool = True,
) -> pl.DataFrame:
    """Return the rows as a person has them; some missing levels are `unknown` ones instead.

    `unit`: of times; nanoseconds are between microseconds, for ms cells must be whole ones.
    """
    income, age, region, flag, *times = cells.T

    def counts(column: np.ndarray, unit: int = 1) -> pl.Series:
        whole = [None if np.isnan(x) else int(x) // unit for x in column]
        return pl.Series(whole, dtype=pl.Int64)

    def fine(column: np.ndarray) -> pl.Series:
        if unit != "ns":
            return counts(column, {"us": 1, "ms": 1000}[unit])
        return counts(column) * 1000 + pl.Series(rng.integers(0, 1000, len(column)))

    regions = [
        REGIONS[int(code)]
        if not np.isnan(code)
        else rng.choice([None, UNKNOWN])
        if unknown
        else None
        for code in region
    ]
    return pl.DataFrame(
        {
            "income": pl.Series(income, nan_to_null=bool(rng.integers(2))),
            "age": pl.Series(age, nan_to_null=True),
            "region": pl.Series(regions, dtype=pl.String),
            "newsletter": pl.Series([None if np.isnan(x) else bool(x) for x in flag]),
            "signup": counts(times[0], DAY).cast(pl.Int32).cast(pl.Date),
            "seen": fine(times[1])
            .cast(pl.Datetime(unit, "UTC"))
            .dt.convert_time_zone("Europe/Berlin"),
            "stay": fine(times[2]).cast(pl.Duration(unit)),
            "made": fine(times[3]).cast(pl.Datetime(unit)),
        }
    )


class MixedBuilder(Builder):
    """Grow a tree with tests of all kinds but sums; cells may be NaN."""

    def __init__(self, cells: np.ndarray, labels: np.ndarray, n_clusters: int = 3) -> None:
        super().__init__(cells, labels.tolist(), n_clusters)

    def _add(self, rows: np.ndarray) -> None:
        super()._add(rows)
        self.nodes[-1] |= {"missing_go_to_left": False, "codes": []}

    def test(
        self,
        node: int,
        feature: int,
        *,
        at_most: float | None = None,
        between: tuple[float, float] | None = None,
        codes: Iterable[int] = (),
        missing_left: bool = False,
    ) -> int:
        """Split a leaf; without further arguments by whether the cell is missing."""
        parent = self.nodes[node]
        x = self.X[parent["rows"], feature]
        chosen = sorted(codes)
        parent |= {"feature": feature, "threshold": NAN, "missing_go_to_left": missing_left}
        if at_most is not None:
            parent |= {"kind": 1, "threshold": float(at_most)}
            goes_left = x <= at_most
        elif between is not None:
            parent |= {"kind": 2, "lower": float(between[0]), "upper": float(between[1])}
            goes_left = (between[0] <= x) & (x <= between[1])
        elif chosen:
            parent |= {"kind": 4, "codes": chosen}
            goes_left = np.isin(x, chosen)
        else:
            parent |= {"kind": 5, "missing_go_to_left": True}
            goes_left = np.isnan(x)
        return self._divide(node, goes_left | (np.isnan(x) & parent["missing_go_to_left"]))

    def arrays(self, **changes: Any) -> dict[str, Any]:
        """Return the arguments of ClusterTree."""
        arguments = super().arrays()
        codes = arguments.pop("codes")
        if any(codes):
            arguments["levels_indptr"] = np.cumsum([0, *map(len, codes)])
            arguments["levels_codes"] = np.array([code for own in codes for code in own])
        arguments |= {"column_kinds": KINDS, "levels": LEVELS, "has_missing": HAS_MISSING}
        return arguments | {"feature_names": NAMES} | changes

    def leaf_of(self, row: np.ndarray) -> int:
        """Return the leaf of a row, by the definition of each test."""
        node = 0
        while self.nodes[node]["kind"]:
            content, x = self.nodes[node], row[self.nodes[node]["feature"]]
            if np.isnan(x):
                left = content["missing_go_to_left"]
            else:
                left = {
                    1: x <= content["threshold"],
                    2: content["lower"] <= x <= content["upper"],
                    4: x in content["codes"],
                    5: False,
                }[content["kind"]]
            node = content["children_left"] + (not left)
        return node


def random_builder(seed: int, n_rows: int = 60, kinds: str = "tilm") -> MixedBuilder:
    """Grow a random tree; `kinds`: thresholds, intervals, levels, tests for missing cells."""
    rng = np.random.default_rng(seed)
    cells = random_cells(rng, n_rows)
    cells[:, [feature for feature, gaps in enumerate(HAS_MISSING) if not gaps]] = random_cells(
        rng, n_rows, gaps=False
    )[:, [feature for feature, gaps in enumerate(HAS_MISSING) if not gaps]]
    builder = MixedBuilder(cells, rng.integers(0, 3, n_rows))
    for _ in range(int(rng.integers(1, 14))):
        node = int(rng.choice(builder.leaves()))
        kind = rng.choice(list(kinds))
        missing_left = bool(rng.integers(2))
        if kind == "m":
            builder.test(node, int(rng.integers(len(KINDS))))
        elif kind == "l":
            feature = int(rng.choice([2, 3]))
            n_levels = len(LEVELS[feature] or ())
            size = int(rng.integers(1, n_levels + 1))
            codes = rng.choice(n_levels, size, replace=False).tolist()
            builder.test(node, feature, codes=codes, missing_left=missing_left)
        else:
            feature = int(rng.choice([0, 1, 4, 5, 6, 7]))
            known = random_cells(rng, 2, gaps=False)[:, feature]
            if kind == "t":
                builder.test(node, feature, at_most=known[0], missing_left=missing_left)
            else:
                ends = (known.min(), known.max())
                builder.test(node, feature, between=ends, missing_left=missing_left)
    return builder


def moved_a_little(tree: ClusterTree, seed: int) -> ClusterTree:
    """Return the tree with half of its bounds on times up to two microseconds or a half off."""
    rng = np.random.default_rng(seed)
    off = rng.choice([0, 0, 0, -2, -1, -0.5, 1, 2], tree.n_nodes)
    off[[node for node, f in enumerate(tree.feature) if f < 4]] = 0
    bounds = {name: getattr(tree, name) + off for name in ("threshold", "lower", "upper")}
    return ClusterTree(**tree.arguments() | bounds)


def random_tree(seed: int, kinds: str = "tilm") -> ClusterTree:
    """Return a random tree."""
    return random_builder(seed, kinds=kinds).tree()
