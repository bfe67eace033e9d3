"""What a fit keeps of tables with gaps and levels."""

import types

import numpy as np
import polars as pl
import pytest

from treeclust_rs._base.fit_rows import FitRows

ESTIMATOR = types.SimpleNamespace(n_jobs=1, scale="standard")


def read(X, sample_weight=None, **options):
    return FitRows.read(ESTIMATOR, X, sample_weight, mixed=True, **options)


def frame() -> pl.DataFrame:
    return pl.DataFrame(
        {"a": [None, 1.0, 2.0, None, None, 7.0], "v": [None, "x", "y", "x", None, "z"]}
    )


def test_rows_without_an_observed_cell_are_left_out():
    rows = read(frame())
    assert rows.kept.tolist() == [False, True, True, True, False, True]
    assert rows.rows.gaps == (1, 0)
    assert rows.table.gaps == (3, 2)
    # Its level is one of all rows given, also where the only row that has it is not fitted.
    labels = np.array([0, 0, 1, 1, -1, -1])
    rows = read(frame(), [1, 1, 1, 1, 1, 1], reference=labels)
    assert rows.kept.tolist() == [False, True, True, True, False, False]
    assert rows.rows.levels == (None, ("x", "y", "z"))
    assert rows.reference.labels.tolist() == [0, 1, 1]
    assert rows.units.scale[1] == pytest.approx(np.sqrt((1 - 5 / 9) / 2))


def test_labels_of_rows_without_an_observed_cell_are_no_clusters():
    rows = read(frame(), reference=["lost", "b", "a", "b", "lost", "a"])
    assert rows.reference.classes == ["a", "b"]
    assert rows.reference.labels.tolist() == [1, 0, 1, 0]


def test_a_table_without_any_cell_is_refused():
    with pytest.raises(ValueError, match="All cells of the rows to fit are missing"):
        read(np.full((3, 2), np.nan))
    with pytest.raises(ValueError, match=r"Of the 6 rows, 4 have a value .* zero in all of these"):
        read(frame(), [1, 0, 0, 0, 1, 0])
    with pytest.raises(ValueError, match="All cells of the rows to fit are missing"):
        read(np.full((3, 2), np.nan), reference=[0, 1, 1])


def test_a_clustering_that_leaves_no_row_is_refused():
    said = r"marks 4 of 6 rows as noise \(-1\); the other 2 have weight 0 or no value in any column"
    for labels in ([0, -1, -1, -1, 0, -1], ["a", -1, -1, -1, "b", -1]):
        with pytest.raises(ValueError, match=said):
            read(frame(), reference=labels)
    with pytest.raises(ValueError, match=r"marks 6 of 6 rows as noise \(-1\). No row is left"):
        read(frame(), reference=[-1] * 6)


def test_a_complete_table_is_read_as_before():
    numbers = np.random.default_rng(0).normal(size=(20, 3))
    mixed, plain = read(numbers), FitRows.read(ESTIMATOR, numbers, None)
    assert mixed.kept is plain.kept is None
    assert mixed.rows.is_plain
    assert mixed.rows.data is plain.rows.data
    np.testing.assert_array_equal(mixed.units.scale, plain.units.scale)


def test_columns_of_other_names_are_refused():
    with pytest.raises(ValueError, match="feature_names has 'b'"):
        read(frame(), feature_names=["b", "v"])
