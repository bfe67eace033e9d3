"""Tables with levels and gaps in the core: costs, sums, and trees that route as fitted."""

import numpy as np
import pytest

from treeclust_rs import _engine
from treeclust_rs._engine import MISSING_LEVEL, LevelColumn

UNITS = type("Units", (), {})


def mixed(rng, n=400):
    """Return a table of two columns of numbers and two of levels, all with gaps but the first."""
    numbers = rng.integers(0, 30, (n, 2)).astype(float)
    numbers[rng.random(n) < 0.2, 1] = np.nan
    few = rng.integers(0, 3, n).astype(np.uint8)
    few[rng.random(n) < 0.1] = MISSING_LEVEL
    many = rng.integers(0, 255, n).astype(np.uint8)
    many[rng.random(n) < 0.1] = MISSING_LEVEL
    return [*numbers.T.copy(), LevelColumn(few, 3), LevelColumn(many, 255)]


def units(shift, scale):
    """Return the units of a table's columns."""
    found = UNITS()
    found.shift, found.scale = np.array(shift, dtype=float), np.array(scale, dtype=float)
    return found


@pytest.mark.parametrize("manhattan", [False, True])
def test_a_missing_cell_costs_nothing_and_a_level_what_its_table_says(manhattan):
    rng = np.random.default_rng(0)
    table, k = mixed(rng), 3
    n = len(table[0])
    centers = rng.normal(size=(k, 4))
    levels = [None, None, rng.random((k, 3)), rng.random((k, 255))]
    regrets, nearest, minimum = _engine.label_costs(
        table, units([3, 4, 0, 0], [2, 5, 1, 1]), centers, manhattan, None, 2, levels
    )
    costs = np.zeros((n, k))
    for column, shift, scale, own in zip(table[:2], [3, 4], [2, 5], centers.T[:2], strict=True):
        apart = np.abs((column[:, None] - shift) / scale - own)
        costs += np.nan_to_num(apart if manhattan else apart**2)
    for column, of_labels in zip(table[2:], levels[2:], strict=True):
        is_observed = column.codes != MISSING_LEVEL
        costs[is_observed] += of_labels.T[column.codes[is_observed]]
    np.testing.assert_array_equal(nearest, costs.argmin(axis=1))
    np.testing.assert_allclose(regrets, costs - costs.min(axis=1, keepdims=True), atol=1e-10)
    assert minimum == pytest.approx(costs.min(axis=1).sum())
    with pytest.raises(ValueError, match="Column 2 holds levels"):
        _engine.label_costs(table, units([0] * 4, [1] * 4), centers, manhattan, None, 1)


def test_sums_and_means_are_those_of_observed_cells():
    rng = np.random.default_rng(1)
    table = mixed(rng)
    n = len(table[0])
    groups, weight = rng.integers(0, 3, n).astype(np.uint32), rng.choice([0.5, 1.0, 4.0], n)
    own = units([1, 2, 0, 0], [1, 2, 1, 1])
    total, sums, observed = _engine.group_sums(table, own, groups, 3, weight, 2)
    means = _engine.group_means(table, own, groups, np.zeros((3, 4)), weight, 2)
    for group in range(3):
        here = groups == group
        assert total[group] == weight[here].sum()
        spread = 0.0
        for f, column in enumerate(table):
            is_level = isinstance(column, LevelColumn)
            gaps = column.codes == MISSING_LEVEL if is_level else np.isnan(column)
            kept = here & ~gaps
            assert observed[group, f] == weight[kept].sum() == means[4][group, f]
            if is_level:
                assert sums[group, f] == means[1][group, f] == 0.0
                continue
            mean = np.average(column[kept], weights=weight[kept])
            assert means[1][group, f] == pytest.approx(mean)
            cells = (column[kept] - own.shift[f]) / own.scale[f]
            assert sums[group, f] == pytest.approx(weight[kept] @ cells)
            spread += weight[kept] @ ((column[kept] - mean) / own.scale[f]) ** 2
        assert means[3][group] == pytest.approx(spread)
    shift, scale = _engine.column_units(table, weight, True, 2)
    kept = ~np.isnan(table[1])
    mean = np.average(table[1][kept], weights=weight[kept])
    variance = np.average((table[1][kept] - mean) ** 2, weights=weight[kept])
    assert scale[1] == pytest.approx(np.sqrt(variance))
    assert (scale[2], shift[3]) == (1.0, 0.0)


def test_sums_without_weights_are_those_of_weights_of_one():
    rng = np.random.default_rng(4)
    table = mixed(rng)
    n = len(table[0])
    groups, ones = rng.integers(0, 3, n).astype(np.uint32), np.ones(n)
    for own in (units([1, 2, 0, 0], [1, 2, 1, 1]), units([0] * 4, [1] * 4)):
        plain, weighted = (_engine.group_sums(table, own, groups, 3, w, 1) for w in (None, ones))
        for a, b in zip(plain, weighted, strict=True):
            np.testing.assert_array_equal(a, b)
        near = np.zeros((3, 4))
        means = [_engine.group_means(table, own, groups, near, w, 1) for w in (None, ones)]
        for a, b in zip(*means, strict=True):
            np.testing.assert_array_equal(a, b)


def test_levels_are_counted_by_group():
    rng = np.random.default_rng(3)
    codes = rng.choice([0, 1, 2, 254, MISSING_LEVEL], 500).astype(np.uint8)
    groups = rng.integers(0, 3, 500).astype(np.uint32)
    counts = _engine.level_counts(codes, 255, groups, 4)
    expected = [[np.sum((groups == g) & (codes == v)) for v in range(255)] for g in range(4)]
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_array_equal(_engine.level_counts(codes, 2, groups, 4), counts[:, :2])
    of_all = _engine.level_counts(codes, 255, None, 1)
    np.testing.assert_array_equal(of_all, counts.sum(axis=0, keepdims=True))
    assert _engine.level_counts(codes, 0, groups, 4).shape == (4, 0)
    with pytest.raises(ValueError, match="At most 255 levels"):
        _engine.level_counts(codes, 256, groups, 4)
    with pytest.raises(ValueError, match=r"Group 2 is not in the range \[0, 2\)"):
        _engine.level_counts(codes, 255, groups, 2)
    with pytest.raises(ValueError, match="groups"):
        _engine.level_counts(codes, 255, groups[1:], 3)


def test_tables_without_gaps_say_so():
    X = np.arange(12.0).reshape(6, 2)
    own, groups = units([0, 0], [1, 1]), np.zeros(6, dtype=np.uint32)
    assert _engine.group_sums(X, own, groups, 1, None, 1)[2] is None
    assert _engine.group_means(X, own, groups, np.zeros((1, 2)), None, 1)[4] is None


@pytest.mark.parametrize("interval", [False, True])
@pytest.mark.parametrize("base", [None, "mistakes", "emn"])
@pytest.mark.parametrize("min_samples_leaf", [1, 7])
def test_trees_route_their_rows_as_they_were_fitted(base, interval, min_samples_leaf):
    rng = np.random.default_rng(2)
    for _ in range(5):
        table, k = mixed(rng, n=900), 4
        n = len(table[0])
        labels = (np.nan_to_num(table[1], nan=31.0) > 15) * 2 + (table[2].codes % 2)
        regrets = (labels[:, None] != np.arange(k)).astype(float) * rng.random((n, 1))
        # Two numbers, and the shares of 3 and of 255 levels.
        centers = np.hstack([rng.random((k, 2)) * 30, rng.random((k, 3 + 255))])
        fitted = _engine.fit_tree(
            table,
            labels.astype(np.uint32),
            n_labels=k,
            base=base and _engine.CentersBase(centers, np.zeros_like(centers), base),
            criterion=_engine.LabelCost(regrets, interval),
            sample_weight=None,
            max_leaves=12,
            max_depth=None,
            min_samples_leaf=min_samples_leaf,
            n_jobs=2,
            progress=None,
        )
        assert {4, 1 + interval} & set(fitted.kind.tolist())
        leaves = fitted.kind == 0
        assert not fitted.missing_go_to_left[leaves].any()
        assert fitted.missing_go_to_left[fitted.kind == 5].all()
        tests = _engine.TestArrays(*(getattr(fitted, name) for name in _engine.TestArrays._fields))
        router = _engine.Router(tests, 4)
        np.testing.assert_array_equal(router.apply(table, 2), fitted.leaf_of_row)


def test_bases_that_know_no_levels_refuse_them():
    table = mixed(np.random.default_rng(3))
    n = len(table[0])
    centers = np.arange(8.0).reshape(2, 4)
    with pytest.raises(ValueError, match="Column 1 holds levels or missing cells"):
        _engine.fit_tree(
            table,
            np.zeros(n, dtype=np.uint32),
            n_labels=2,
            base=_engine.CentersBase(centers, np.zeros_like(centers), "cost"),
            criterion=_engine.LabelCost(np.zeros((n, 2)), False),
            sample_weight=None,
            max_leaves=2,
            max_depth=None,
            min_samples_leaf=1,
            n_jobs=1,
            progress=None,
        )


@pytest.mark.parametrize(
    ("column", "error", "message"),
    [
        (LevelColumn(np.array([0, 1, 3], dtype=np.uint8), 3), ValueError, "Code 3 is out of range"),
        (LevelColumn(np.zeros(3, dtype=np.uint8), 256), ValueError, "at most 255"),
        (LevelColumn(np.zeros(3), 1), TypeError, "uint8|u8|cast|array"),
        (LevelColumn(np.zeros(2, dtype=np.uint8), 1), ValueError, "has 2 rows"),
    ],
)
def test_columns_of_levels_are_checked(column, error, message):
    with pytest.raises(error, match=message):
        _engine.find_non_finite([np.zeros(3), column], 1)


@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
def test_places_of_texts_are_found_and_become_codes(dtype):
    rng = np.random.default_rng(4)
    places = rng.choice([0, 3, 7, 300], 200).astype(dtype)
    if dtype is np.int64:
        places[::9] = -1
    found, rows = _engine.first_rows(places)
    expected, first = np.unique(places, return_index=True)
    known = expected >= 0
    np.testing.assert_array_equal(found, expected[known])
    np.testing.assert_array_equal(rows, first[known])
    codes = rng.integers(0, 255, 301).astype(np.uint8)
    by_row = _engine.place_codes(places, codes)
    assert by_row.dtype == np.uint8
    np.testing.assert_array_equal(
        by_row, [MISSING_LEVEL if place < 0 else codes[place] for place in places]
    )
    with pytest.raises(ValueError, match=r"Place 300 is not in the range \[0, 300\)"):
        _engine.place_codes(places, codes[:300])
    nothing = _engine.first_rows(places[:0])
    assert [len(entries) for entries in nothing] == [0, 0]
