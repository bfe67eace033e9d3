"""VoronoiTree: the exact tree of the centers' cells, and the tree of one leaf per center."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
from matplotlib.path import Path
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris

import treeclust_rs as tc
from treeclust_rs.export.pictures.polygons import polygon_borders, polygons_of

mpl.use("agg")


def distances(X, centers):
    return ((X[:, None] - centers[None]) ** 2).sum(axis=2)


@pytest.mark.parametrize(("k", "d"), [(2, 1), (3, 2), (4, 2), (5, 3), (6, 2), (7, 10), (8, 3)])
def test_the_exact_tree_finds_the_nearest_center(k, d):
    rng = np.random.default_rng(10 * k + d)
    centers = rng.normal(size=(k, d))
    model = tc.VoronoiTree(reference=centers).fit(rng.normal(size=(200, d)) * 2)
    points = rng.normal(size=(100_000, d)) * 3
    apart = np.sort(distances(points, centers), axis=1)
    no_tie = apart[:, 1] - apart[:, 0] > 1e-9
    assert no_tie.mean() > 0.999
    nearest = distances(points, centers).argmin(axis=1)
    assert (model.predict(points) == nearest)[no_tie].all()
    assert model.tree_.max_depth <= k - 1
    assert model.n_leaves_ <= 2 ** (k - 1)
    assert set(model.tree_.kind) == {0, 3}


def test_tests_whose_outcome_is_known_are_left_out():
    # On a line only k - 1 bisectors matter, and in a plane few of the 2^7 parts are there.
    line = np.arange(8.0)[:, None]
    assert tc.VoronoiTree(reference=line).fit(line).n_leaves_ == 8
    plane = np.random.default_rng(0).normal(size=(8, 2))
    in_plane = tc.VoronoiTree(reference=plane).fit(plane).n_leaves_
    assert 8 <= in_plane < 128
    # Centers in a plane of a larger space have the same cells.
    rng = np.random.default_rng(1)
    lifted = plane @ np.linalg.qr(rng.normal(size=(6, 2)))[0].T + 5.0
    assert tc.VoronoiTree(reference=lifted).fit(lifted).n_leaves_ == in_plane
    # Affinely independent centers leave nothing out.
    assert tc.VoronoiTree(reference=np.eye(5)).fit(np.eye(5)).n_leaves_ == 16


def test_no_leaf_of_the_exact_tree_is_out_of_reach():
    rng = np.random.default_rng(3)
    centers = rng.normal(size=(6, 2))
    model = tc.VoronoiTree(reference=centers).fit(centers)
    side = np.linspace(-60, 60, 900)
    far = np.column_stack([side.repeat(900), np.tile(side, 900)])
    near = rng.normal(size=(400_000, 2)) * 2
    reached = set(model.apply(np.vstack([far, near])))
    leaves = set(np.flatnonzero(model.tree_.kind == 0).tolist())
    # Slivers may slip through such a net, but not many.
    assert reached <= leaves
    assert len(reached) >= 0.9 * len(leaves)


@pytest.mark.parametrize("k", [2, 3, 7, 12])
def test_the_small_tree_has_a_leaf_for_each_center(k):
    X = np.random.default_rng(k).normal(size=(300, 4))
    model = tc.VoronoiTree(k, exact=False, random_state=0).fit(X)
    assert model.n_leaves_ == k
    assert sorted(model.tree_.leaf_clusters[model.tree_.kind == 0]) == list(range(k))
    assert (model.labels_ == model.predict(X)).all()
    assert int(np.ceil(np.log2(k))) <= model.tree_.max_depth <= k - 1


@pytest.mark.filterwarnings("ignore:Only . of the . clusters have rows in the tree")
def test_the_small_tree_takes_the_bisector_with_the_fewest_mistakes():
    rng = np.random.default_rng(5)
    for _ in range(20):
        k = int(rng.integers(3, 6))
        X, centers = rng.normal(size=(40, 2)), rng.normal(size=(k, 2))
        weight = rng.integers(1, 4, 40).astype(float)
        apart, between = distances(X, centers), distances(centers, centers)
        labels = apart.argmin(axis=1)
        fewest = min(
            weight[(apart[:, i] < apart[:, j]) != (between[i] < between[j])[labels]].sum()
            for i in range(k)
            for j in range(i + 1, k)
        )
        model = tc.VoronoiTree(reference=centers, exact=False).fit(X, sample_weight=weight)
        tree = model.tree_
        root_left = np.isin(model.apply(X), _below(tree, int(tree.children_left[0])))
        on_left = {int(c) for c in tree.leaf_clusters[_below(tree, int(tree.children_left[0]))]}
        wrong = root_left != np.isin(labels, list(on_left))
        assert weight[wrong].sum() == fewest


def _below(tree, node):
    found, open_nodes = [], [node]
    while open_nodes:
        node = open_nodes.pop()
        if tree.kind[node] == 0:
            found.append(node)
        else:
            open_nodes += [int(tree.children_left[node]), int(tree.children_right[node])]
    return found


def test_costs_and_reading(tmp_path):
    iris = load_iris()
    frame = pl.DataFrame(iris.data, schema=["sl", "sw", "pl", "pw"])
    kmeans = KMeans(3, n_init=3, random_state=0).fit(iris.data)
    model = tc.VoronoiTree(reference=kmeans).fit(frame)
    assert (model.labels_ == kmeans.labels_).all()
    assert model.cost_ratio_ == pytest.approx(1.0)
    assert model.inertia_ == pytest.approx(kmeans.inertia_)
    np.testing.assert_allclose(model.cluster_centers_, kmeans.cluster_centers_)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_.argmax() == 2  # petal length
    assert "·pl" in str(model.tree_)
    assert (frame.with_columns(model.to_polars())["cluster"].to_numpy() == model.labels_).all()
    model.save(tmp_path / "model.json")
    again = tc.load(tmp_path / "model.json")
    assert isinstance(again, tc.VoronoiTree)
    assert (again.predict(frame) == model.labels_).all()
    with pytest.raises(ValueError, match="base tree"):
        model.truncate(2)


def test_the_partition_is_drawn_as_it_is_predicted():
    rng = np.random.default_rng(0)
    window = ((-2.0, 3.0), (-1.0, 4.0))
    points = rng.uniform([-2.0, -1.0], [3.0, 4.0], (4000, 2))
    for exact in (True, False):
        model = tc.VoronoiTree(6, exact=exact, random_state=0).fit(rng.uniform(-1, 3, (300, 2)))
        tree = model.tree_
        polygons = polygons_of(tree, (0, 1), window)
        inside = np.array([Path(p.corners).contains_points(points) for p in polygons])
        assert (inside.sum(axis=0) == 1).mean() > 0.999  # but for points on edges
        alone = inside.sum(axis=0) == 1
        found = np.array([p.leaf for p in polygons])[inside.argmax(axis=0)]
        assert (found == tree.apply(points))[alone].all()
        segments, strong = polygon_borders(tree, polygons, (0, 1), window)
        assert len(segments) and strong.any()
        # Halfway along a border two leaves, or clusters, are equally near.
        across = np.diff(segments, axis=1)[:, 0] @ [[0.0, 1.0], [-1.0, 0.0]] * 1e-5
        sides = [tree.apply(segments.mean(axis=1) + sign * across) for sign in (-1, 1)]
        assert (sides[0] != sides[1]).all()
        clusters = [tree.leaf_clusters[side] for side in sides]
        assert ((clusters[0] != clusters[1]) == strong).all()
        axes = model.plot_partition(points[:200], limits=window)
        assert axes.get_xlim() == window[0]
        plt.close(axes.figure)
    with pytest.raises(ValueError, match="give X or limits"):
        model.plot_partition()


# ---- ties ---------------------------------------------------------------------------------


def plane_of(model, node=0):
    """Weights and bias of the root's test, or another node's, which say whose bisector it is."""
    indices, weights, bias = model.tree_.oblique_test(node)
    normal = np.zeros(model.n_features_in_)
    normal[indices] = weights
    return normal.tolist(), bias


def bisector(near, far):
    """Normal and bias of the test that sends rows nearer to `near` to the left."""
    near, far = np.array(near, dtype=float), np.array(far, dtype=float)
    return (far - near).tolist(), -float((far - near) @ (near + far) / 2)


@pytest.mark.parametrize("exact", [True, False])
def test_rows_equally_near_two_centers_go_right_to_the_later_one(exact):
    centers = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 40.0]])
    model = tc.VoronoiTree(reference=centers, exact=exact).fit(np.vstack([centers, [[2.0, 3.0]]]))
    assert model.predict([[2.0, 3.0], [2.0, -7.0], [1.5, 0.0]]).tolist() == [1, 1, 0]
    turned = tc.VoronoiTree(reference=centers[[1, 0, 2]], exact=exact).fit(centers)
    assert turned.predict([[2.0, 3.0], [2.0, -7.0], [1.5, 0.0]]).tolist() == [1, 1, 1]
    assert turned.predict([[2.5, 0.0]]).tolist() == [0]


def test_of_bisectors_with_equally_few_mistakes_the_first_even_one_is_taken():
    # 0|1 and 2|3 part {0, 2} from {1, 3}, 0|2 and 1|3 part {0, 1} from {2, 3}: no mistakes.
    corners = np.array([[0.0, 0.0], [10.0, 0.0], [1.0, 8.0], [12.0, 9.0]])
    model = tc.VoronoiTree(reference=corners, exact=False).fit(corners)
    assert plane_of(model) == bisector(corners[0], corners[1])
    # A row equally near 0 and 1 is of 0, but goes to the right: a mistake of their bisector.
    rows = np.vstack([corners, [[5.0, 0.0]]])
    model = tc.VoronoiTree(reference=corners, exact=False).fit(rows)
    assert plane_of(model) == bisector(corners[0], corners[2])
    # On a line 0|1 parts one center from three; 0|3 and 1|2 are even, and 0|3 comes first.
    line = np.array([[0.0], [10.0], [20.0], [30.0]])
    model = tc.VoronoiTree(reference=line, exact=False).fit(line)
    assert plane_of(model) == bisector(line[0], line[3])


@pytest.mark.filterwarnings("ignore:.*of the rows are nearer:UserWarning")
def test_a_center_on_a_bisector_goes_right():
    # Centers 0, 10, 20. Rows 6 and 14 are mistakes of 0|1 and 1|2. Center and rows of cluster 1 lie
    # on 0|2, to its right side by the rule.
    X = np.array([[-6.0], [6.0], [10.0], [10.0], [14.0], [26.0]])
    model = tc.VoronoiTree(reference=[0, 0, 1, 1, 2, 2], exact=False).fit(X)
    assert plane_of(model) == bisector([0.0], [20.0])
    assert model.labels_.tolist() == [0, 0, 1, 1, 1, 2]
    assert model.tree_.leaf_clusters[model.tree_.leaves].tolist() == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:.*of the rows are nearer:UserWarning")
def test_a_row_on_a_bisector_counts_on_the_right_below_it():
    # The row 50 of cluster 2 lies on the bisector of 0 and 100, the root's. On the right side it is
    # a mistake of 100|110 and 100|120, not of 110|120.
    X = np.array([[0.0], [50.0], [100.0], [110.0], [120.0]])
    reference = KMeans(4)
    reference.cluster_centers_, reference.labels_ = X[[0, 2, 3, 4]], np.array([0, 2, 1, 2, 3])
    model = tc.VoronoiTree(reference=reference, exact=False).fit(X)
    assert plane_of(model) == bisector(X[0], X[2])
    below = model.tree_.children_right[0]
    assert plane_of(model, below) == bisector(X[3], X[4])


def test_scale_is_of_the_distances_and_weights_are_of_the_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1.0, 1000.0, 0.01] + [5.0, -3e4, 0.0]
    plain = tc.VoronoiTree(4, scale="standard", random_state=0).fit(X)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    other = tc.VoronoiTree(4, random_state=0).fit(scaled)
    assert (plain.labels_ == other.labels_).all()
    assert plain.inertia_ == pytest.approx(other.inertia_)
    assert (plain.predict(X) == plain.labels_).all()


def test_noise_weights_and_labels_without_centers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + np.repeat([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]], 20, axis=0)
    named = np.repeat(["a", "b", "c"], 20)
    assert (tc.VoronoiTree(reference=named).fit(X).labels_ == named).all()
    noisy = np.where(np.arange(60) % 10 == 0, -1, np.repeat([0, 1, 2], 20))
    kept = noisy >= 0
    whole = tc.VoronoiTree(reference=noisy).fit(X)
    part = tc.VoronoiTree(reference=noisy[kept]).fit(X[kept])
    assert (whole.labels_ == part.predict(X)).all()
    one = tc.VoronoiTree(1).fit(X)
    assert one.n_leaves_ == 1
    assert (one.labels_ == 0).all()


def test_too_many_clusters_for_an_exact_tree():
    X = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(ValueError, match=r"n_clusters=17 may have 2\^16 leaves; .*exact=False"):
        tc.VoronoiTree(17).fit(X)
    assert tc.VoronoiTree(17, exact=False, random_state=0).fit(X).n_leaves_ == 17
    with pytest.raises(ValueError, match="are equal"):
        tc.VoronoiTree(reference=np.zeros((2, 3))).fit(X)
