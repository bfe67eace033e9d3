"""What `reference=` takes for tables with levels and gaps: labels, centers, estimators."""

import numpy as np
import polars as pl
import pytest
from sklearn.cluster import AgglomerativeClustering, KMeans

from treeclust_rs._data import Units, WeightedRows, count_gaps
from treeclust_rs._data.table import read_table
from treeclust_rs._engine import Threads
from treeclust_rs._reference.checks import warn_of_far_centers
from treeclust_rs._reference.kmeans import make_reference
from treeclust_rs._reference.read import read_reference


def table_of(n: int = 60, gaps: bool = False):
    rng = np.random.default_rng(0)
    age = rng.normal(50, 7, n)
    if gaps:
        age[:5] = np.nan
    return pl.DataFrame({"age": age, "region": rng.choice(["n", "e", "s"], n)})


def read(frame):
    return count_gaps(read_table(frame, estimator_name="IMM", mixed=True), 1)


def make(frame, reference, scale="standard"):
    table, threads = read(frame), Threads(1)
    data = WeightedRows(table, None, Units.of(table, None, scale, threads), threads)
    given = read_reference(reference, frame, table, None)
    found = make_reference(
        data,
        given,
        n_clusters=None,
        random_state=0,
        estimator_name="IMM",
        needs_distinct=False,
        follows_centers=False,
    )
    return data, given, found


def test_an_estimator_that_is_not_fitted_gets_the_encoded_table():
    frame = table_of()
    _, given, found = make(frame, KMeans(3, n_init=2, random_state=0), scale=None)
    codes = frame["region"].cast(pl.Enum(["e", "n", "s"])).to_physical().to_numpy()
    encoded = np.column_stack([frame["age"].to_numpy(), np.eye(3)[codes] * np.sqrt(0.5)])
    solver = KMeans(3, n_init=2, random_state=0).fit(encoded)
    np.testing.assert_array_equal(given.labels, solver.labels_)
    np.testing.assert_array_equal(found.labels, solver.labels_)
    assert found.inertia == pytest.approx(solver.inertia_)
    # In the columns' own units: shares of levels.
    np.testing.assert_allclose(found.centers.high[:, 1:].sum(axis=1), 1.0)
    _, given, _ = make(frame, AgglomerativeClustering(3))
    assert given.centers is None


def test_with_gaps_it_is_refused():
    with pytest.raises(ValueError, match="KMeans is not fitted, and X has missing cells in 1 col"):
        make(table_of(gaps=True), KMeans(3))


def test_gaps_alone_keep_a_fitted_estimator():
    numbers = np.random.default_rng(1).normal(size=(40, 2))
    solver = KMeans(2, n_init=1, random_state=0).fit(numbers)
    numbers[0, 0] = np.nan
    _, given, _ = make(numbers, solver)
    np.testing.assert_array_equal(given.centers, solver.cluster_centers_)


def test_labels_and_centers():
    frame = table_of(gaps=True)
    labels = np.arange(60) % 3
    data, _, found = make(frame, labels)
    np.testing.assert_array_equal(found.labels, labels)
    regions = frame["region"].to_numpy()
    shares = [[(regions[labels == c] == v).mean() for v in "ens"] for c in range(3)]
    np.testing.assert_allclose(found.centers.high[:, 1:], shares)
    ages = [np.nanmean(frame["age"].to_numpy()[labels == c]) for c in range(3)]
    np.testing.assert_allclose(found.centers.high[:, 0], ages)
    np.testing.assert_allclose(
        found.centers.in_units, data.encoding.of_points(found.centers.high), atol=1e-12
    )
    _, _, again = make(frame, found.centers.high)
    np.testing.assert_allclose(again.minimum, found.minimum)
    with pytest.raises(
        ValueError, match=r"reference has 2 columns, but X has 4, .* each level: 'age', 'region=e'"
    ):
        make(frame, np.zeros((3, 2)))


def test_centers_of_others_count_where_their_coordinates_have_the_same_names():
    frame = table_of()

    class Clusterer(KMeans):
        pass

    solver = Clusterer(2, n_init=1, random_state=0).fit(np.zeros((60, 4)) + np.arange(60)[:, None])
    assert make(frame, solver)[1].centers is None
    solver.encoded_names_ = ["age", "region=e", "region=n", "region=s"]
    _, given, _ = make(frame, solver)
    np.testing.assert_array_equal(given.centers, solver.cluster_centers_)


def test_far_centers_are_warned_of():
    frame = table_of(gaps=True)
    data, _, found = make(frame, np.arange(60) % 3)
    solver = KMeans(3).fit(np.random.default_rng(0).normal(size=(60, 4)))
    solver.encoded_names_ = ["age", "region=e", "region=n", "region=s"]
    table = read(frame)
    given = read_reference(solver, frame, table, None)
    with pytest.warns(UserWarning, match="centers of the reference are far"):
        warn_of_far_centers(data, given, found.labels, stacklevel=1)
    solver.cluster_centers_ = found.centers.high
    solver.labels_ = found.labels.astype(np.int32)
    given = read_reference(solver, frame, table, None)
    warn_of_far_centers(data, given, found.labels, stacklevel=1)


def test_centers_of_another_width_name_the_coordinates_shortened_and_in_quotes():
    frame = table_of().with_columns(region=pl.Series(["a\n" * 60, "b"] * 30))
    with pytest.raises(ValueError, match="X has 3, of which columns of text") as caught:
        make(frame, np.zeros((3, 2)))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250
