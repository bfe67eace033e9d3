"""Fits of tiny tables with levels, flags, dates, gaps, weights and ties against enumeration.

Centers and costs are computed here from the words of the documentation, and every threshold,
interval and set of levels of every node is tried with the missing cells on either side. The oracles
of the core (`tests/mixed_tables.rs`) are given costs: this one begins at the frame.
"""

from __future__ import annotations

import itertools
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc

N_TABLES = 200
UNITS = {"number": 2.0, "level": 0.5, "flag": 3.0, "day": 5.0 * 86_400_000_000}


def tiny_table(rng: np.random.Generator) -> pl.DataFrame:
    """Return 5 to 16 rows with many ties; a column may be constant or without a value."""
    n = int(rng.integers(5, 17))
    n_levels, n_values = int(rng.integers(1, 6)), int(rng.integers(2, 7))
    names = ["north", "North", "north ", "", "x\0"]
    frame = pl.DataFrame(
        {
            "number": rng.integers(-2, n_values, n) / 2,
            "level": [names[code] for code in rng.integers(0, n_levels, n)],
            "flag": rng.random(n) < 0.5,
            "day": [date(2024, 1, 30) + timedelta(int(d)) for d in rng.integers(0, 4, n)],
        }
    )
    share = rng.choice([0.0, 0.2, 0.5, 1.0], 4, p=[0.35, 0.4, 0.2, 0.05])
    return frame.select(
        pl.when(pl.Series(rng.random(n) >= gaps)).then(pl.col(name)).alias(name)
        for name, gaps in zip(rng.permutation(frame.columns).tolist(), share, strict=True)
    )


def cells_of(frame: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and codes, NaN where missing, and which columns hold levels."""
    columns, are_levels = [], []
    for column in frame.get_columns():
        is_level = column.dtype in (pl.String, pl.Boolean)
        if is_level:
            text = column.cast(pl.String)
            known = sorted(text.drop_nulls().unique().to_list())
            codes = [None if cell is None else known.index(cell) for cell in text]
            cells = np.array([np.nan if code is None else code for code in codes], dtype=float)
        else:
            cells = column.to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy().copy()
            cells *= 86_400_000_000.0 if column.dtype == pl.Date else 1.0
        columns.append(cells)
        are_levels.append(is_level)
    return np.stack(columns, axis=1), np.array(are_levels)


def lower_median(x: np.ndarray, weight: np.ndarray) -> float:
    order = np.argsort(x, kind="stable")
    summed = np.cumsum(weight[order])
    return float(x[order][np.searchsorted(summed, summed[-1] / 2 * (1 - 1e-12))])


def label_costs(
    frame: pl.DataFrame, labels: np.ndarray, k: int, weight: np.ndarray, criterion: str, scale: str
) -> np.ndarray:
    """Return what each row costs at each center: (n, k), weighted, observed cells alone."""
    cells, are_levels = cells_of(frame)
    costs = np.zeros((len(frame), k))
    for f, name in enumerate(frame.columns):
        seen = ~np.isnan(cells[:, f])
        if not seen.any():
            continue
        x = cells[seen, f]
        for label in range(k):
            own = seen & (labels == label)
            of = own if own.any() else seen  # a center without cells lies at the column's
            here, w = cells[of, f], weight[of]
            if are_levels[f]:
                levels = np.unique(x)
                share = np.array([w[here == level].sum() for level in levels]) / w.sum()
                if criterion == "kmedians":
                    distance = (x != levels[share.argmax()]).astype(float)
                else:
                    ones = (x[:, None] == levels).astype(float)
                    distance = 0.5 * np.square(ones - share).sum(axis=1)
                    if scale == "standard":
                        shares = np.array([weight[seen][x == level].sum() for level in levels])
                        spread = 1.0 - np.square(shares / shares.sum()).sum()
                        distance *= 2.0 / spread if spread > 1e-9 else 2.0
            elif criterion == "kmedians":
                distance = np.abs(x - lower_median(here, w))
            else:
                distance = np.square(x - np.average(here, weights=w))
                if scale == "standard":
                    mean = np.average(x, weights=weight[seen])
                    spread = np.average(np.square(x - mean), weights=weight[seen])
                    distance /= spread if spread > 1e-9 else 1.0
            if scale == "units":
                distance /= UNITS[name] ** (1 if criterion == "kmedians" else 2)
            costs[seen, label] += weight[seen] * distance
    return costs


def cuts_of(cells: np.ndarray, is_level: bool, intervals: bool):
    """Yield the left sides of all cuts of a node by a column."""
    missing = np.isnan(cells)
    values = np.unique(cells[~missing])
    if is_level:
        chosen = [set(s) for r in range(len(values) + 1) for s in itertools.combinations(values, r)]
        sides = [np.isin(cells, list(s)) for s in chosen]
    elif intervals:
        ends = itertools.combinations_with_replacement(values, 2)
        sides = [(low <= cells) & (cells <= high) for low, high in ends]
    else:
        sides = [cells <= value for value in values]
    for side in [*sides, np.zeros(len(cells), dtype=bool)]:
        yield side
        if missing.any():
            yield side | missing


def best_saving(
    cells: np.ndarray, are_levels: np.ndarray, costs: np.ndarray, least: int, intervals: bool
) -> float:
    """Return the most that a cut of these rows saves, `costs` among them; 0 if none does."""
    whole, best = costs.sum(axis=0).min(), 0.0
    for f, is_level in enumerate(are_levels):
        for side in cuts_of(cells[:, f], is_level, intervals):
            if least <= side.sum() <= len(side) - least:
                parts = costs[side].sum(axis=0).min() + costs[~side].sum(axis=0).min()
                best = max(best, whole - parts)
    return best


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("cuts", ["threshold", "interval"])
@pytest.mark.parametrize(
    ("criterion", "scale"),
    [("kmeans", "none"), ("kmeans", "standard"), ("kmeans", "units"),
     ("kmedians", "none"), ("kmedians", "units")],
)  # fmt: skip
def test_every_cut_is_the_best_of_all(criterion, scale, cuts):
    rng = np.random.default_rng([len(criterion), len(scale), len(cuts)])
    kinds, n_left, n_fits, n_cuts = set(), 0, 0, 0
    for _ in range(N_TABLES):
        frame = tiny_table(rng)
        cells, are_levels = cells_of(frame)
        is_empty = np.isnan(cells).all(axis=1)
        labels = rng.integers(0, 3, len(frame))
        labels[is_empty] = labels[~is_empty][0] if not is_empty.all() else 0
        k = len(np.unique(labels))
        if is_empty.all() or k < 2 or (np.unique(labels) != np.arange(k)).any():
            continue
        weight = rng.choice([0.5, 1.0, 3.0], len(frame)) if rng.random() < 0.5 else None
        least = int(rng.choice([1, 1, 2, 3]))
        model = tc.ExKMC(
            reference=labels,
            max_leaves=max(k, int(rng.integers(2, 7))),
            base_tree=None,
            cuts=cuts,
            criterion=criterion,
            scale={"none": None, "standard": "standard", "units": UNITS}[scale],
            min_samples_leaf=least,
        )
        model.fit(frame, sample_weight=weight)
        tree = model.tree_
        np.testing.assert_array_equal(model.predict(frame), model.labels_)
        ones = np.ones(len(frame)) if weight is None else weight
        costs = label_costs(frame, labels, k, ones, criterion, scale)
        # Constant columns are never cut.
        varies = [len(np.unique(x[~np.isnan(x)])) > 1 for x in cells.T]
        open_cells, open_levels = cells[:, varies], are_levels[varies]
        places = model.apply(frame)
        of_node: dict[int, np.ndarray] = {}
        for node in range(tree.n_nodes - 1, -1, -1):
            left = int(tree.children_left[node])
            inside = of_node[left] | of_node[left + 1] if left >= 0 else places == node
            of_node[node] = inside
            rows = inside & ~is_empty
            assert rows.sum() == tree.n_node_samples[node]
            saving = best_saving(
                open_cells[rows], open_levels, costs[rows], least, cuts == "interval"
            )
            size = costs.sum() + 1e-300
            if left < 0:
                is_full = tree.n_leaves == model.max_leaves
                assert is_full or saving <= 1e-9 * size
                continue
            parts = [costs[of_node[child] & ~is_empty] for child in (left, left + 1)]
            assert min(map(len, parts)) >= least
            taken = costs[rows].sum(axis=0).min() - sum(p.sum(axis=0).min() for p in parts)
            assert taken == pytest.approx(saving, abs=1e-9 * size)
            kinds.add(int(tree.kind[node]))
            n_left += int(bool(tree.missing_go_to_left[node]))
            n_cuts += 1
        ends = [of_node[int(leaf)] & ~is_empty for leaf in tree.leaves]
        total = sum(costs[end].sum(axis=0).min() for end in ends)
        assert model.cost_path_["cost"][-1] == pytest.approx(total, abs=1e-9 * costs.sum())
        n_fits += 1
    assert n_fits > 0.7 * N_TABLES and n_cuts > N_TABLES and n_left > 50
    assert kinds >= {1 if cuts == "threshold" else 2, 4, 5}
