"""The columns that Douglas cuts: ranges, active cuts, far rows, and the rounding of cuts."""

import numpy as np
import pytest

from douglas_models import quick, three_blobs
from treeclust_rs.estimators.douglas.column_bins import ColumnBins
from treeclust_rs.estimators.douglas.soft_bins import SoftBins


def one_column(lower=0.0, upper=9.0, scale=1.0):
    lower, upper, scale = np.array([[lower], [upper], [scale]])
    return ColumnBins(1, None, np.array([0]), np.zeros(1), scale, lower, upper, scale)


@pytest.mark.parametrize(
    ("cuts", "features", "clusters"),
    [
        ([-1.0, 0.0], [], [2]),
        ([0.0, 9.0], [], [1]),
        ([9.0, 10.0], [], [0]),
        ([np.nextafter(0.0, 1), np.nextafter(9.0, 0)], [0], [0, 1, 2]),
        ([0.0, 5.0], [0], [1, 2]),
        ([5.0, 9.0], [0], [0, 1]),
    ],
)
def test_cuts_at_the_least_or_greatest_value_take_no_part(cuts, features, clusters):
    table = one_column().cell_table(np.eye(3), np.array([cuts]))
    assert table.features.tolist() == features
    assert table.clusters.tolist() == clusters


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("side", [-1, 1])
def test_cuts_become_active_when_rows_lie_beyond_them(side):
    near, far = (side * np.linspace(0, to, 20)[:, np.newaxis] for to in (1, 10))
    model = quick(2, init=[[side * 5.0]], max_iter=1, learning_rate=1e-9).partial_fit(near)
    assert model.active_cut_points_.tolist() == []
    assert model.partial_fit(far).active_cut_points_.tolist() == [0]
    assert model.partial_fit(near).active_cut_points_.tolist() == [0]


def test_rows_far_beyond_those_of_the_fit():
    X, _ = three_blobs()
    model = quick(n_cuts=3, max_iter=2, n_init=1).fit(X * 1e-9)
    p = model.predict_proba([[1e308, -1e308, 0.0]])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("temperature", "rounded"), [(0.01, 0.1235), (0.1, 0.123), (1.0, 0.12), (50.0, 0.12)]
)
def test_cuts_are_rounded_by_temperature_but_never_by_more_than_a_hundredth(temperature, rounded):
    model = SoftBins(np.array([[0.12345]]), np.zeros((2, 2)), temperature)
    for scale in (1e-3, 1.0, 1e3):
        found = one_column(scale=scale).readable_cuts(model)
        assert found[0, 0] == pytest.approx(rounded * scale, rel=1e-15)
