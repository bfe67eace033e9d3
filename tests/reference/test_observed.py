"""The reference of tables with gaps and levels: its two steps, starts, ties, empty clusters."""

import itertools
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from treeclust_rs._data import Units, WeightedRows, count_gaps, observed_rows, take_rows
from treeclust_rs._data.table import Table, read_table
from treeclust_rs._engine import Threads
from treeclust_rs._reference import observed
from treeclust_rs._reference.centers import Centers, cost_about, row_costs
from treeclust_rs._reference.kmeans import make_reference
from treeclust_rs._reference.read import ReferenceInput

CRITERIA = ["kmeans", "kmedians"]


def rows_of(frame, scale="standard", weight=None) -> WeightedRows[Table]:
    table = count_gaps(read_table(frame, estimator_name="IMM", mixed=True), 1)
    kept = observed_rows(table)
    if kept is not None:
        table = take_rows(table, kept)
        weight = None if weight is None else weight[kept]
    threads = Threads(1)
    return WeightedRows(table, weight, Units.of(table, weight, scale, threads), threads)


def random_problem(seed: int) -> tuple[WeightedRows[Table], int]:
    """Return few rows of numbers and levels, with ties and gaps, and a number of clusters."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 14))
    columns = {}
    for column in range(rng.integers(1, 4)):
        cells = rng.integers(0, 4, n).astype(float) if rng.random() < 0.5 else rng.normal(size=n)
        columns[f"x{column}"] = np.where(rng.random(n) < 0.25, np.nan, cells)
    for column in range(rng.integers(0, 2)):
        levels = [None if rng.random() < 0.2 else "abcd"[rng.integers(4)] for _ in range(n)]
        columns[f"v{column}"] = pl.Series(levels, dtype=pl.String)
    columns["v"] = rng.choice(["a", "b"], n)  # complete tables of numbers go another way
    weight = rng.uniform(0.1, 3, n) if rng.random() < 0.5 else None
    scale = ["standard", None, "robust"][seed % 3]
    data = rows_of(pl.DataFrame(columns), scale, weight)
    return data, min(int(rng.integers(1, 5)), data.rows.n_samples)


def own_centers(data: WeightedRows[Table], labels: np.ndarray, k: int, criterion) -> list[list]:
    """Return by column and cluster the mean, median, shares or most frequent level."""
    rows, weight = data.rows, data.weight
    weight = np.ones(rows.n_samples) if weight is None else weight
    found = []
    for f in range(rows.n_features):
        column = rows.data[f] if isinstance(rows.data, list) else rows.data[:, f]
        is_level = rows.n_levels(f) > 0
        cells = np.where(column.codes == 255, -1, column.codes.astype(int)) if is_level else column
        seen = cells >= 0 if is_level else ~np.isnan(cells)
        of_clusters = []
        for cluster in range(k):
            mine = seen & (labels == cluster)
            mine = mine if mine.any() else seen
            x, w = cells[mine], weight[mine]
            if is_level:
                shares = np.bincount(x.astype(int), w, minlength=rows.n_levels(f)) / w.sum()
                top = int(np.flatnonzero(shares >= shares.max() * (1 - 1e-12))[0])
                center = shares if criterion == "kmeans" else np.eye(len(shares))[top]
            elif not len(x):
                center = np.nan
            elif criterion == "kmeans":
                center = np.average(x, weights=w)
            else:
                order = np.argsort(x, kind="stable")
                reached = np.cumsum(w[order])
                center = x[order][reached >= reached[-1] * (0.5 - 1e-12)][0]
            of_clusters.append(center)
        found.append((cells, seen, is_level, of_clusters))
    return found


def costs_by_hand(data: WeightedRows[Table], labels: np.ndarray, k: int, criterion) -> np.ndarray:
    """Return the costs of all rows about the centers of all clusters, without weights."""
    costs = np.zeros((data.rows.n_samples, k))
    for f, (cells, seen, is_level, centers) in enumerate(own_centers(data, labels, k, criterion)):
        unit = data.units.scale[f]
        for row, cluster in itertools.product(np.flatnonzero(seen), range(k)):
            center = centers[cluster]
            if is_level and criterion == "kmedians":
                cost = float(center[int(cells[row])] == 0) / unit
            elif is_level:
                one_hot = np.eye(len(center))[int(cells[row])]
                cost = np.square((one_hot - center) / unit).sum() / 2
            elif criterion == "kmedians":
                cost = abs(cells[row] - center) / unit
            else:
                cost = ((cells[row] - center) / unit) ** 2
            costs[row, cluster] += cost
    return costs


def objective(data, labels, k, criterion) -> float:
    costs = costs_by_hand(data, labels, k, criterion)[np.arange(len(labels)), labels]
    return float(costs.sum() if data.weight is None else data.weight @ costs)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("part", range(5))
def test_both_steps_are_those_of_the_definition_and_never_raise_the_objective(part, criterion):
    for seed in range(100 * part, 100 * part + 100):
        data, k = random_problem(seed)
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, k, data.rows.n_samples)
        before = objective(data, labels, k, criterion)
        # One round: empty clusters, centers, labels.
        observed.fill_empty(data, labels, k, criterion)
        filled = objective(data, labels, k, criterion)
        assert filled <= before * (1 + 1e-12) + 1e-12
        by_hand = costs_by_hand(data, labels, k, criterion)
        centers = Centers.of_labels(data, labels, k, criterion)
        about = row_costs(data, centers.high, labels, criterion)
        assert about.sum() == pytest.approx(filled, rel=1e-9, abs=1e-9)
        assert cost_about(data, centers.high, labels, criterion) == pytest.approx(
            filled, rel=1e-9, abs=1e-9
        )
        moved, cost = observed.descend(data, labels, k, criterion, max_iter=1)
        by_labels = objective(data, moved, k, criterion)
        assert cost == pytest.approx(by_labels, rel=1e-9, abs=1e-9)
        chosen = by_hand[np.arange(len(moved)), moved]
        np.testing.assert_allclose(chosen, by_hand.min(axis=1), rtol=1e-9, atol=1e-9)
        stays = by_hand[np.arange(len(labels)), labels] - by_hand.min(axis=1)
        tied = stays <= 1e-14 * np.maximum(by_hand.max(axis=1), 1e-300)
        np.testing.assert_array_equal(moved[tied], labels[tied])
        assert by_labels <= filled * (1 + 1e-12) + 1e-12
        # To the end: nothing improves.
        final, cost = observed.descend(data, labels, k, criterion, max_iter=100)
        assert cost == pytest.approx(objective(data, final, k, criterion), rel=1e-9, abs=1e-9)
        last = costs_by_hand(data, final, k, criterion)
        own = last[np.arange(len(final)), final]
        np.testing.assert_allclose(own, last.min(axis=1), rtol=1e-9, atol=1e-9)


def larger_problem(seed: int) -> tuple[WeightedRows[Table], np.ndarray]:
    """Return 400 rows about six points, with gaps and levels, and labels to start from."""
    rng = np.random.default_rng(seed)
    points = rng.normal(scale=4.0, size=(6, 3))
    numbers = points[rng.integers(0, 6, 400)] + rng.normal(size=(400, 3)) + 1e4 * (seed % 2)
    numbers[rng.random(numbers.shape) < 0.1] = np.nan
    columns = {f"x{f}": column for f, column in enumerate(numbers.T)}
    if seed % 3:
        columns["v"] = rng.choice(["a", "b", "c"], 400)
    weight = rng.uniform(0.1, 3, 400) if seed % 4 == 1 else None
    data = rows_of(pl.DataFrame(columns), None, weight)
    return data, rng.integers(0, 6, data.rows.n_samples)


def test_rows_passed_over_have_the_label_that_they_would_get(monkeypatch):
    for seed in range(100):
        data, k = random_problem(seed)
        labels = np.random.default_rng(seed).integers(0, k, data.rows.n_samples)
        slow, cost = observed.descend(data, labels, k, "kmeans", 100)
        lengths = observed.row_lengths(data)
        fast, same = observed.descend(data, labels, k, "kmeans", 100, lengths)
        np.testing.assert_array_equal(fast, slow)
        assert same == cost
    counts, n_rows = [], np.zeros(2)
    whole = WeightedRows.label_costs

    def counted(self, *arguments, **options):
        counts.append(self.rows.n_samples)
        return whole(self, *arguments, **options)

    monkeypatch.setattr(WeightedRows, "label_costs", counted)
    for seed in range(20):
        data, labels = larger_problem(seed)
        slow, cost = observed.descend(data, labels, 6, "kmeans", 100)
        n_slow = sum(counts)
        lengths = observed.row_lengths(data)
        fast, same = observed.descend(data, labels, 6, "kmeans", 100, lengths)
        n_rows += [n_slow, sum(counts) - n_slow]
        counts.clear()
        np.testing.assert_array_equal(fast, slow)
        assert same == cost
    assert n_rows[1] < 0.9 * n_rows[0]


def test_no_cluster_is_empty_while_rows_differ():
    for seed in range(200):
        data, k = random_problem(seed)
        final, cost = observed.descend(
            data, np.zeros(data.rows.n_samples, dtype=int), k, "kmeans", max_iter=100
        )
        assert len(np.unique(final)) == k or cost == pytest.approx(0, abs=1e-12)


def reference(data, k, **options):
    options = {"criterion": "kmeans", "random_state": 0, "needs_distinct": False} | options
    return make_reference(data, ReferenceInput(), n_clusters=k, estimator_name="IMM", **options)


def test_a_complete_table_is_clustered_by_kmeans():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(80, 3))
    plain = reference(rows_of(numbers), 4)
    data = rows_of(numbers)
    solver = KMeans(4, n_init=10, random_state=0).fit(data.units.matrix(data.rows))
    np.testing.assert_array_equal(plain.labels, solver.labels_)
    frame = pl.DataFrame({"a": numbers[:, 0], "v": rng.choice(["x", "y", "z"], 80)})
    data = rows_of(frame)
    of_levels = reference(data, 4)
    solver = KMeans(4, n_init=10, random_state=0).fit(data.encoding.matrix(data.rows))
    np.testing.assert_array_equal(of_levels.labels, solver.labels_)
    assert of_levels.inertia == pytest.approx(solver.inertia_)
    assert of_levels.centers.in_units.shape == (4, 4)
    np.testing.assert_allclose(of_levels.centers.in_units, solver.cluster_centers_, atol=1e-12)


def test_the_descent_of_a_complete_table_is_that_of_kmeans():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        frame = pl.DataFrame({"a": rng.normal(size=30), "v": rng.choice(["x", "y", "z"], 30)})
        data = rows_of(frame)
        labels, cost = observed.descend(data, rng.integers(0, 3, 30), 3, "kmeans", max_iter=100)
        matrix = data.encoding.matrix(data.rows)
        means = np.stack([matrix[labels == label].mean(axis=0) for label in range(3)])
        assert cost == pytest.approx(np.square(matrix - means[labels]).sum())
        again = KMeans(3, init=means, n_init=1).fit(matrix)
        assert again.inertia_ == pytest.approx(cost)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_best_of_all_labels_is_found(criterion):
    found = tried = 0
    for seed in range(60):
        data, _ = random_problem(seed)
        n = data.rows.n_samples
        if n > 8:
            continue
        tried += 1
        best = min(
            objective(data, np.array((0, *labels)), 2, criterion)
            for labels in itertools.product((0, 1), repeat=n - 1)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            cost = reference(data, 2, criterion=criterion).inertia
        assert cost >= best - 1e-9
        found += cost <= best + 1e-9
    assert found >= 0.8 * tried, (found, tried)


def test_missing_cells_cost_nothing_and_are_not_filled():
    frame = pl.DataFrame(
        {"a": [0.0, 1.0, None, 10.0, 11.0, 10.0], "v": ["x", "x", "x", "y", None, "y"]}
    )
    found = reference(rows_of(frame, None), 2)
    assert len(set(found.labels[:3])) == len(set(found.labels[3:])) == 1
    # 2 (1/2)^2 among 0 and 1, 2/3 among 10, 11 and 10, nothing for levels.
    assert found.inertia == pytest.approx(0.5 + 2 / 3)
    low = found.labels[0]
    np.testing.assert_allclose(found.centers.high[low], [0.5, 1, 0])


def test_rows_at_their_centers_cost_nothing():
    rng = np.random.default_rng(3)
    for _ in range(20):
        frame = pl.DataFrame({"a": rng.normal(size=4), "v": ["x", "x", "y", None]})
        assert reference(rows_of(frame, "standard", rng.random(4)), 4).inertia == 0.0


def test_fewer_distinct_rows_than_clusters():
    data = rows_of(pl.DataFrame({"a": [1.0, None, 1.0, 2.0], "v": ["x", "x", "x", None]}))
    with pytest.warns(ConvergenceWarning, match="fewer than n_clusters=4"):
        found = reference(data, 4)
    assert found.inertia == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_column_of_text_without_a_value_changes_nothing(criterion):
    frame = pl.DataFrame({"a": [0.0, 1.0, 5.0, 6.0], "v": ["x", "x", "y", None]})
    empty = pl.Series("t", [None] * 4, dtype=pl.String)
    found = reference(rows_of(frame.with_columns(empty)), 2, criterion=criterion)
    without = reference(rows_of(frame), 2, criterion=criterion)
    assert found.inertia == pytest.approx(without.inertia)
    np.testing.assert_array_equal(found.centers.high, without.centers.high)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_weights_count_as_rows(criterion):
    rng = np.random.default_rng(1)
    a = np.where(rng.random(12) < 0.3, np.nan, rng.integers(0, 5, 12))
    frame = pl.DataFrame({"a": a, "v": rng.choice(["x", "y", "z"], 12)})
    weight = rng.integers(1, 4, 12).astype(float)
    places = np.repeat(np.arange(12), weight.astype(int))
    start = rng.integers(0, 3, 12)
    labels, cost = observed.descend(rows_of(frame, None, weight), start, 3, criterion, 100)
    repeated = rows_of(frame[places], None)
    again, same = observed.descend(repeated, start[places], 3, criterion, 100)
    np.testing.assert_array_equal(again, labels[places])
    assert same == pytest.approx(cost)


def test_labels_do_not_depend_on_the_threads():
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {f"x{i}": np.where(rng.random(600) < 0.1, np.nan, rng.normal(size=600)) for i in range(4)}
        | {"v": rng.choice(list("abcdef"), 600)}
    )
    data = rows_of(frame)
    many = WeightedRows(data.rows, None, data.units, Threads(3))
    one, three = reference(data, 5, n_init=3), reference(many, 5, n_init=3)
    np.testing.assert_array_equal(one.labels, three.labels)
    assert one.inertia == three.inertia


@pytest.mark.parametrize("n_levels", [2, 40])
def test_tables_with_gaps_start_from_seeds_where_levels_are_many(monkeypatch, n_levels):
    calls = []
    fit = KMeans.fit
    monkeypatch.setattr(KMeans, "fit", lambda *args, **rest: calls.append(1) or fit(*args, **rest))
    rng = np.random.default_rng(0)
    levels = rng.permutation(np.arange(80) % n_levels)
    data = rows_of(
        pl.DataFrame(
            {"x": [None, *np.repeat([0.0, 9.0], 40)[1:]], "v": [f"v{v:02}" for v in levels]}
        )
    )
    found = make_reference(
        data,
        ReferenceInput(),
        criterion="kmeans",
        n_clusters=2,
        random_state=0,
        estimator_name="IMM",
        needs_distinct=True,
    )
    assert bool(calls) == (n_levels == 2)
    matrix = observed.filled_matrix(data)
    starts = observed.seeded_labels if n_levels == 40 else labels_of_kmeans
    _, cost = observed.best_descent(
        data, 2, lambda seed: starts(data, matrix, 2, seed), "kmeans", 0, 10, 300
    )
    assert found.inertia == pytest.approx(cost, rel=1e-12)


def labels_of_kmeans(data, matrix, k, seed):
    del data
    return KMeans(k, n_init=1, random_state=seed).fit(matrix).labels_
