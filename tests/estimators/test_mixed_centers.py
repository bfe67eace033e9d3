"""Centers given for tables with levels and times: each ends in a leaf of its own."""

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc

DAY = 86_400_000_000


def leaf_of(tree, point) -> int:
    """Return the leaf of a point with one number in each column."""
    node = 0
    while tree.children_left[node] >= 0:
        goes_left = point[tree.feature[node]] <= tree.threshold[node]
        node = (tree.children_left if goes_left else tree.children_right)[node]
    return int(node)


def test_given_centers_lie_at_their_own_shares_of_levels():
    # The last two have no rows, and differ in the levels alone.
    frame = pl.DataFrame({"age": [0.0, 0.0, 0.0, 1.0], "news": [False, False, True, False]})
    centers = np.array([[0, 1, 0], [5, 0.4, 0.6], [5, 0.6, 0.4]])
    for model in (tc.IMM(reference=centers), tc.ExKMC(reference=centers)):
        tree = model.fit(frame).tree_
        assert tree.n_leaves == 3
        new = pl.DataFrame({"age": [5.0, 5.0, 0.0], "news": [True, False, False]})
        np.testing.assert_array_equal(model.predict(new), [1, 2, 0])


def test_centers_that_no_cut_tells_apart_are_refused():
    frame = pl.DataFrame({"age": [0.0, 0.0, 0.0, 1.0], "news": [False, False, True, False]})
    centers = np.array([[0, 1, 0], [5, 0.4, 0.6], [5, 0.4 + 1e-12, 0.6]])
    with pytest.raises(ValueError, match=r"No cut can tell .* numbers 1, 2: .* Give distinct"):
        tc.IMM(reference=centers).fit(frame)


@pytest.mark.parametrize("criterion", ["kmeans", "kmedians"])
def test_more_clusters_than_a_byte_counts_are_told_apart_by_levels(criterion):
    place = np.arange(600) % 300
    frame = pl.DataFrame({"x": (place // 2).astype(float), "flag": place % 2 == 1})
    model = tc.IMM(criterion=criterion, reference=place).fit(frame)
    assert model.n_leaves_ == 300
    np.testing.assert_array_equal(model.labels_, place)


@pytest.mark.filterwarnings("ignore:Only . of the 3 clusters ha")
@pytest.mark.parametrize("kind", [pl.Datetime("us"), pl.Datetime("us", "Europe/Berlin"), pl.Date])
def test_thresholds_at_boundaries_of_the_calendar_leave_each_center_its_leaf(kind):
    rng = np.random.default_rng(0)
    n_moved = 0
    for _ in range(80):
        whole = rng.integers(0, 400, (12, 2)) * DAY
        cells = pl.DataFrame(whole, schema=["a", "b"])
        if kind == pl.Date:
            frame = cells.select(pl.all() // DAY).select(pl.all().cast(pl.Int32).cast(kind))
        else:
            frame = cells.cast(kind)
        centers = rng.uniform(0, 400 * DAY, (3, 2))
        tree = tc.IMM(reference=centers).fit(frame).tree_
        assert tree.n_leaves == 3
        leaves = [leaf_of(tree, center) for center in centers]
        np.testing.assert_array_equal(tree.leaf_clusters[leaves], [0, 1, 2])
        n_moved += (tree.threshold[tree.kind == 1] % (DAY // 24) == 0).sum()
    assert n_moved > 100


def test_leaves_without_rows_do_not_stop_growth():
    """More leaves than rows: three of the base are empty, and the fourth is worth a cut."""
    X = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 2.0], [1.0, 1.0]])
    centers = np.array([[0.04, 0.84], [0.5, 0.44], [0.48, 0.14], [0.07, 0.74]])
    model = tc.ExKMC(reference=centers, max_leaves=5).fit(X)
    assert model.n_leaves_ == 5
    assert model.labels_.tolist() == model.reference_labels_.tolist() == [1, 1, 0, 1]
