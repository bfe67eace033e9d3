"""Units and coordinates of tables with levels and gaps, against their definitions."""

import numpy as np
import polars as pl
import pytest

from treeclust_rs._data import Units, WeightedRows, count_gaps
from treeclust_rs._data.table import Table, read_table
from treeclust_rs._engine import Threads


def read(frame) -> Table:
    return count_gaps(read_table(frame, estimator_name="IMM", mixed=True), 1)


def rows_of(table: Table, scale=None, weight=None) -> WeightedRows[Table]:
    threads = Threads(1)
    return WeightedRows(table, weight, Units.of(table, weight, scale, threads), threads)


def mixed(n: int = 60, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    return read(
        pl.DataFrame(
            {
                "age": np.where(rng.random(n) < 0.2, np.nan, rng.normal(50, 7, n)),
                "region": rng.choice(["n", "e", "s", None], n).tolist(),
                "all": ["same"] * n,
                "nothing": pl.Series([None] * n, dtype=pl.String),
                "news": rng.random(n) < 0.3,
                "income": rng.lognormal(5, 2, n),
                "no number": pl.Series([None] * n, dtype=pl.Float64),
            }
        )
    )


def test_the_names_of_coordinates():
    table = mixed()
    names = rows_of(table).encoding.names(table.feature_names)
    assert names == [
        "age",
        *("region=e", "region=n", "region=s"),
        "all=same",
        *("news=false", "news=true"),
        "income",
        "no number",
    ]
    assert rows_of(table).encoding.names(None)[:2] == ["x0", "x1=e"]


def test_two_levels_are_1_apart_in_units():
    table = mixed()
    for scale, unit in ((None, 1.0), ({"region": 4.0}, 4.0), ([1, 0.5, 1, 1, 1, 1, 1], 0.5)):
        data = rows_of(table, scale)
        matrix = data.encoding.matrix(table)[:, 1:4]
        seen = matrix[~np.isnan(matrix).any(axis=1)]
        apart = np.square(seen[:, None] - seen[None]).sum(axis=2)
        differ = (seen[:, None] != seen[None]).any(axis=2)
        np.testing.assert_allclose(apart[differ], 1 / unit**2, rtol=1e-14)
        assert (apart[~differ] == 0).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_every_column_has_variance_1_when_standardised(weighted):
    table = mixed(200)
    weight = np.random.default_rng(1).uniform(0.1, 3, 200) if weighted else None
    data = rows_of(table, "standard", weight)
    matrix, first = data.encoding.matrix(table), data.encoding.first
    for f, name in enumerate(table.feature_names):
        part = matrix[:, first[f] : first[f + 1]]
        seen = ~np.isnan(part).any(axis=1)
        if name in ("nothing", "no number"):
            assert data.units.scale[f] == 1.0
            continue
        weights = None if weight is None else weight[seen]
        mean = np.average(part[seen], axis=0, weights=weights)
        spread = np.average(np.square(part[seen] - mean), axis=0, weights=weights).sum()
        if name == "all":
            assert data.units.scale[f] == 1.0
            assert spread < 1e-30
        else:
            assert spread == pytest.approx(1.0, rel=1e-12)


def test_robust_units_are_those_of_the_observed_cells():
    table = mixed(200)
    robust, standard = rows_of(table, "robust"), rows_of(table, "standard")
    age = table.data[0]
    seen = age[~np.isnan(age)]
    alone = rows_of(read(seen[:, None]), "robust")
    assert robust.units.scale[0] == alone.units.scale[0]
    np.testing.assert_array_equal(robust.units.scale[[1, 4]], standard.units.scale[[1, 4]])
    # Given as units they are the same again.
    again = rows_of(table, robust.units.scale)
    np.testing.assert_array_equal(again.units.scale, robust.units.scale)


def test_rows_are_nan_where_they_are_missing():
    table = mixed()
    data = rows_of(table, "standard")
    matrix = data.encoding.matrix(table)
    missing = np.column_stack([np.isnan(matrix[:, place]) for place in (0, 1, 4, 5, 8)])
    counts = (table.gaps[0], table.gaps[1], 0, 0, table.n_samples)
    assert missing.sum(axis=0).tolist() == list(counts)
    assert (matrix[:, 1] * matrix[:, 2])[~missing[:, 1]].tolist() == [0.0] * (60 - counts[1])


def test_a_table_of_numbers_has_its_own_coordinates():
    numbers = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    data = rows_of(read(numbers), "standard")
    np.testing.assert_array_equal(
        data.encoding.matrix(data.rows), data.units.matrix(data.rows), strict=True
    )


@pytest.mark.parametrize("scale", [None, "standard", {"region": 3.0}])
@pytest.mark.parametrize("manhattan", [False, True])
def test_costs_of_the_core_are_the_distances_of_observed_coordinates(scale, manhattan):
    table, k = mixed(), 4
    weight = np.random.default_rng(2).uniform(0.5, 2, table.n_samples)
    data = rows_of(table, scale, weight)
    encoding, matrix = data.encoding, data.encoding.matrix(table)
    centers = np.random.default_rng(3).normal(size=(k, encoding.n_coordinates))
    costs = np.zeros((table.n_samples, k))
    for f, known in enumerate(encoding.levels):
        part = slice(encoding.first[f], encoding.first[f + 1])
        cells = matrix[:, None, part]
        if not manhattan:
            terms = np.square(cells - centers[None, :, part]).sum(axis=2)
        elif known is None:
            terms = np.abs(cells - centers[None, :, part]).sum(axis=2)
        elif known:
            level = cells.argmax(axis=2)
            terms = (level != centers[:, part].argmax(axis=1)) / data.units.scale[f]
            terms[np.isnan(matrix[:, part]).any(axis=1)] = 0
        else:
            continue
        costs += np.nan_to_num(terms)
    found = data.label_costs(centers, manhattan=manhattan)
    least = costs.min(axis=1)
    np.testing.assert_array_equal(found.nearest, costs.argmin(axis=1))
    np.testing.assert_allclose(found.minimum, (weight * least).sum(), rtol=1e-12)
    expected = weight[:, None] * (costs - least[:, None])
    np.testing.assert_allclose(found.regrets, expected, atol=1e-9)


def test_shares_of_levels_are_those_of_observed_cells():
    table = read(pl.DataFrame({"x": ["a", "b", None, "b", None]}))
    weight = np.array([1.0, 3.0, 9.0, 2.0, 9.0])
    data = rows_of(table, None, weight)
    shares = data.level_shares(0, np.array([0, 0, 0, 1, 2]), 4)
    np.testing.assert_allclose(shares, [[0.25, 0.75], [0, 1], [1 / 6, 5 / 6], [1 / 6, 5 / 6]])
