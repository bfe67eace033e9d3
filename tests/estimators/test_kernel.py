"""KernelIMM, KernelExKMC, KernelExpand as a user meets them; their trees: test_kernel_core.py."""

import pickle

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.datasets import make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

import treeclust_rs as tc
from treeclust_rs._kernels import kernel_data as _kernel_data
from treeclust_rs._kernels import kernels as _kernels
from treeclust_rs.metrics import agreement, kernel_cost, kmeans_cost

TREES = [tc.KernelIMM, tc.KernelExKMC, tc.KernelExpand]
GROWN = [tc.KernelExKMC, tc.KernelExpand]


@pytest.fixture(scope="module")
def rings():
    return make_circles(200, factor=0.4, noise=0.05, random_state=0)


@pytest.fixture(scope="module")
def frame(rings):
    return pl.DataFrame(rings[0], schema=["east", "north"])


@pytest.fixture
def no_gram(monkeypatch):
    """Make every kernel matrix of all rows an error."""

    def refuse(*args, **kwargs):
        raise AssertionError("a kernel matrix was formed")

    monkeypatch.setattr(_kernels.Kernel, "matrix", refuse)


# ---- costs --------------------------------------------------------------------------------


@pytest.mark.parametrize("Tree", TREES)
def test_costs_are_those_of_the_definition(Tree, rings):
    X, _ = rings
    weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    model = Tree(2, gamma=3.0, random_state=0).fit(X, sample_weight=weight)
    by_hand = kernel_cost(X, model.labels_, weight, gamma=3.0)
    reference = kernel_cost(X, model.reference_labels_, weight, gamma=3.0)
    assert model.kernel_cost_ == pytest.approx(by_hand, rel=1e-10)
    assert model.reference_kernel_cost_ == pytest.approx(reference, rel=1e-10)
    assert model.price_of_explainability_ == model.kernel_cost_ / model.reference_kernel_cost_
    in_columns = kmeans_cost(X, model.labels_, weight)
    reference = kmeans_cost(X, model.reference_labels_, weight)
    assert model.inertia_ == pytest.approx(in_columns, rel=1e-12)
    assert model.reference_inertia_ == pytest.approx(reference, rel=1e-12)
    assert model.cost_ratio_ == model.inertia_ / model.reference_inertia_
    assert model.score(X, sample_weight=weight) == pytest.approx(-by_hand, rel=1e-10)


def test_a_price_of_nothing_over_nothing_is_one():
    X = np.repeat([[0.0, 1.0], [5.0, 6.0]], 5, axis=0)
    model = tc.KernelIMM(2, random_state=0).fit(X)
    assert model.kernel_cost_ == model.reference_kernel_cost_ == 0
    assert model.price_of_explainability_ == 1


def test_kernel_expand_forms_no_kernel_matrix_it_does_not_need(rings, no_gram):
    X, truth = rings
    model = tc.KernelExpand(reference=truth, max_leaves=6).fit(X)
    exact = kernel_cost(X, model.labels_, gamma=0.5)  # gamma=None is 1 / n_features
    assert model.kernel_cost_ == pytest.approx(exact, rel=1e-10)


def test_kernel_exkmc_of_given_labels_works_beyond_the_largest_kernel_matrix(rings, monkeypatch):
    X, truth = rings
    small = tc.KernelExKMC(reference=truth, gamma=3.0, max_leaves=6, base_tree=None)
    expected = small.fit(X)
    monkeypatch.setattr("treeclust_rs._util.arrays.MAX_ARRAY_BYTES", 1000)
    monkeypatch.setattr(_kernel_data, "TILE", 7)
    found = clone(small).fit(X)
    assert (found.labels_ == expected.labels_).all()
    assert found.kernel_cost_ == pytest.approx(expected.kernel_cost_, rel=1e-10)
    with pytest.raises(ValueError, match=r"200 x 200 rows would take .*approximation="):
        tc.KernelExKMC(2).fit(X)


def test_approximation_of_full_rank_gives_the_exact_tree(rings):
    X, truth = rings
    exact = tc.KernelExKMC(reference=truth, gamma=3.0, max_leaves=6).fit(X)
    near = tc.KernelExKMC(
        reference=truth, gamma=3.0, max_leaves=6, approximation="nystroem", n_components=200
    ).fit(X)
    assert (near.labels_ == exact.labels_).all()
    assert near.kernel_cost_ == pytest.approx(exact.kernel_cost_, rel=1e-6)
    assert near.score(X) == pytest.approx(-near.kernel_cost_, rel=1e-6)


# ---- references ---------------------------------------------------------------------------


@pytest.mark.parametrize("Tree", TREES)
def test_strings_noise_and_weights_of_zero_are_left_out(Tree, rings):
    X, truth = rings
    named = np.array(["inner", "outer"])[1 - truth]
    noisy = np.where(np.arange(len(X)) % 10 == 0, -1, truth)
    weight = np.where(np.arange(len(X)) % 7 == 0, 0.0, 1.0)
    kept = (noisy >= 0) & (weight > 0)
    options = {"gamma": 2.0, "features": "distance"}
    with_zeros = Tree(reference=noisy, **options).fit(X, sample_weight=weight)
    without = Tree(reference=noisy[kept], **options).fit(X[kept])
    assert str(with_zeros.tree_) == str(without.tree_)
    assert (with_zeros.labels_ == without.predict(X)).all()
    assert (with_zeros.reference_labels_[kept] == truth[kept]).all()
    assert (with_zeros.reference_labels_[~kept] == -1).all()
    assert with_zeros.kernel_cost_ == pytest.approx(without.kernel_cost_)
    by_name = Tree(reference=named, **options).fit(X)
    assert set(by_name.labels_) == {"inner", "outer"}
    assert (by_name.reference_labels_ == named).all()


def test_kernel_expand_explains_hdbscan(rings):
    X, _ = make_moons(300, noise=0.05, random_state=0)
    labels = HDBSCAN(min_cluster_size=15, copy=True).fit_predict(X)
    model = tc.KernelExpand(reference=labels, max_leaves=12).fit(X)
    kept = labels >= 0
    assert agreement(model.labels_[kept], labels[kept]) > 0.97
    assert set(model.labels_) <= set(labels[kept])  # noise gets a cluster too


def test_references_may_be_estimators_and_centers(rings):
    X, _ = rings
    kmeans = KMeans(3, n_init=1, random_state=0).fit(X)
    of_estimator = tc.KernelExpand(reference=kmeans).fit(X)
    of_labels = tc.KernelExpand(reference=kmeans.labels_).fit(X)
    of_centers = tc.KernelExpand(reference=kmeans.cluster_centers_).fit(X)
    assert str(of_estimator.tree_) == str(of_labels.tree_) == str(of_centers.tree_)
    fitted = tc.KernelKMeans(2, gamma=3.0, random_state=0).fit(X)
    unfitted = tc.KernelKMeans(2, gamma=3.0, random_state=0)
    assert (
        tc.KernelExpand(reference=fitted, gamma=3.0).fit(X).labels_
        == tc.KernelExpand(reference=unfitted, gamma=3.0).fit(X).labels_
    ).all()


def test_without_a_reference_the_tree_explains_kernel_kmeans(rings):
    X, _ = rings
    clustering = tc.KernelKMeans(2, gamma=3.0, random_state=0).fit(X)
    model = tc.KernelExpand(2, gamma=3.0, random_state=0).fit(X)
    assert agreement(model.reference_labels_, clustering.labels_) == 1
    assert model.reference_kernel_cost_ == pytest.approx(clustering.kernel_cost_)


def test_only_kernel_exkmc_warns_of_labels_that_distances_do_not_give(rings):
    X, _ = rings
    labels = (np.arange(len(X)) // 3) % 2
    with pytest.warns(UserWarning, match=r"% of the rows are nearer .* KernelExpand"):
        tc.KernelExKMC(reference=labels, gamma=2.0).fit(X)
    tc.KernelIMM(reference=labels, gamma=2.0).fit(X)
    tc.KernelExpand(reference=labels, gamma=2.0).fit(X)


# ---- reading, saving, truncating ----------------------------------------------------------


def test_intervals_show_in_text_rules_explanations_and_polars(frame, rings):
    _, truth = rings
    model = tc.KernelExpand(reference=truth, max_leaves=3, gamma=2.0).fit(frame)
    root = model.tree_
    assert root.kind[0] == 2
    lower, upper = float(root.lower[0]), float(root.upper[0])
    condition = f"{lower:g} <= {root.feature_name(int(root.feature[0]))} <= {upper:g}"
    assert condition in str(root)
    inside = model.explain(frame.filter(pl.col("east").is_between(-0.1, 0.1)).head(1))[0]
    assert "north = " in inside or "east = " in inside
    found = frame.with_columns(model.to_polars())["cluster"].to_numpy()
    assert (found == model.labels_).all()
    assert model.tree_.rules().height == model.n_leaves_
    assert "<=" in model.to_graphviz()


@pytest.mark.parametrize("Tree", TREES)
def test_model_files_and_pickles(Tree, frame, tmp_path):
    model = Tree(2, gamma=3.0, random_state=0).fit(frame)
    model.save(tmp_path / "model.json")
    again = tc.load(tmp_path / "model.json")
    assert type(again) is Tree
    assert (again.predict(frame) == model.labels_).all()
    assert again.price_of_explainability_ == model.price_of_explainability_  # known at save
    assert again.cost_path_.equals(model.cost_path_)
    assert again.score(frame) == pytest.approx(model.score(frame))
    copy = pickle.loads(pickle.dumps(model))
    assert copy.kernel_cost_ == model.kernel_cost_
    assert (copy.labels_ == model.labels_).all()


def test_a_file_does_not_hold_what_was_never_computed(frame, rings, tmp_path):
    model = tc.KernelExpand(reference=rings[1]).fit(frame)
    model.save(tmp_path / "model.json")
    again = tc.load(tmp_path / "model.json")
    for name in ("kernel_cost_", "reference_kernel_cost_", "price_of_explainability_", "labels_"):
        with pytest.raises(AttributeError, match=rf"has no {name}: it takes the rows of the fit"):
            getattr(again, name)
    with pytest.raises(AttributeError, match="call fit first"):
        tc.KernelExpand().kernel_cost_  # noqa: B018


@pytest.mark.parametrize("Tree", GROWN)
def test_truncate_is_the_fit_with_fewer_leaves(Tree, rings):
    X, truth = rings
    large = Tree(reference=truth, gamma=3.0, max_leaves=6).fit(X)
    for n_leaves in range(2, large.n_leaves_ + 1):
        small = Tree(reference=truth, gamma=3.0, max_leaves=n_leaves).fit(X)
        cut = large.truncate(n_leaves)
        assert str(cut.tree_) == str(small.tree_)
        assert (cut.labels_ == small.labels_).all()
        assert cut.kernel_cost_ == pytest.approx(small.kernel_cost_, rel=1e-12)
        path = small.cost_path_
        assert cut.cost_path_.drop("inertia").equals(path.drop("inertia"))
        np.testing.assert_allclose(cut.cost_path_["inertia"], path["inertia"], rtol=1e-12)
        assert cut.inertia_ == pytest.approx(kmeans_cost(X, cut.labels_), rel=1e-12)
        np.testing.assert_allclose(cut.cluster_centers_, small.cluster_centers_, rtol=1e-12)
    with pytest.raises(ValueError, match="base tree"):
        large.truncate(1)


# ---- kernels and features -----------------------------------------------------------------


def test_a_precomputed_kernel_grows_from_a_single_leaf(rings):
    X, _ = rings
    gram = rbf_kernel(X, gamma=3.0)
    named = tc.KernelExKMC(2, max_leaves=5, gamma=3.0, base_tree=None, random_state=0).fit(X)
    given = tc.KernelExKMC(2, max_leaves=5, kernel="precomputed", random_state=0).fit(X, gram=gram)
    assert (given.labels_ == named.labels_).all()
    assert given.kernel_cost_ == pytest.approx(named.kernel_cost_)
    assert given.gamma_ is None
    assert given.score(X, gram=gram) == pytest.approx(-given.kernel_cost_)
    with pytest.raises(ValueError, match="needs the kernel matrix"):
        tc.KernelExKMC(2, kernel="precomputed").fit(X)
    with pytest.raises(ValueError, match="no surrogate features"):
        tc.KernelIMM(2, kernel="precomputed").fit(X, gram=gram)


@pytest.mark.parametrize("kernel", ["cosine", "polynomial", "chi2", lambda x, y: float(x @ y)])
def test_kernels_without_features(kernel, rings):
    X = np.abs(rings[0][:60])
    with pytest.raises(ValueError, match=r"has no surrogate features; .*base_tree=None"):
        tc.KernelIMM(2, kernel=kernel).fit(X)
    model = tc.KernelExpand(2, kernel=kernel, max_leaves=4, random_state=0).fit(X)
    assert model.tree_.n_base_leaves == 0


def test_a_kernel_that_is_not_definite_warns_and_works():
    X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0.0], [9.0]], 30, axis=0)
    options = {"kernel": "epsilon", "kernel_params": {"epsilon": 3.0}, "random_state": 0}
    with pytest.warns(UserWarning, match="positive semidefinite"):
        model = tc.KernelExKMC(2, max_leaves=4, **options).fit(X)
    assert agreement(model.labels_, np.repeat([0, 1], 30)) == 1


@pytest.mark.parametrize("Tree", GROWN)
def test_cuts_follow_the_base(Tree, rings):
    X, truth = rings
    options = {"reference": truth, "max_leaves": 6}
    assert (Tree(gamma=2.0, **options).fit(X).tree_.kind == 2).any()
    assert not (Tree(gamma=2.0, base_tree=None, **options).fit(X).tree_.kind == 2).any()
    assert not (
        Tree(gamma=2.0, base_tree=None, cuts="threshold", **options).fit(X).tree_.kind == 2
    ).any()
    assert (Tree(base_tree=None, cuts="interval", **options).fit(X).tree_.kind == 2).any()
    # Features of Hellinger's kernel are monotone.
    monotone = Tree(kernel="hellinger", reference=X[:, 0] > 0, max_leaves=6)
    assert not (monotone.fit(X - X.min(axis=0)).tree_.kind == 2).any()


def test_limits_bind_growth_not_the_base(rings):
    X, truth = rings
    model = tc.KernelExpand(reference=truth, max_leaves=12, max_depth=2, gamma=2.0).fit(X)
    assert model.tree_.max_depth <= 2
    model = tc.KernelExpand(reference=truth, max_leaves=12, min_samples_leaf=20, gamma=2.0).fit(X)
    leaves = model.tree_.kind == 0
    assert model.tree_.n_node_samples[leaves].min() >= 20


# ---- bad input ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 0.0}, r"'gamma' .* Got 0.0 instead"),
        ({"gamma": -2.5}, r"'gamma' .* Got -2.5 instead"),
        ({"order": 0}, r"'order' .* Got 0 instead"),
        ({"n_anchors": 0}, r"'n_anchors' .* Got 0 instead"),
        ({"features": "fourier"}, r"'features' .* Got 'fourier' instead"),
        ({"features": "additive"}, r"do not exist for the kernel 'rbf'; it has 'taylor' and"),
        ({"kernel": "laplacian", "features": "taylor"}, r"do not exist for the kernel 'laplacian'"),
        ({"shift": 0.0}, r"it is 0.0, but column x0 starts at -"),
        ({"shift": [0.0, 0.0, 0.0]}, r"shape \(2,\), one entry per column. Got the shape \(3,\)"),
        ({"kernel": "hellinger"}, r"needs values >= 0, but column x0 holds -"),
        ({"kernel": "additive_chi2"}, r"needs values >= 0, but column x0 holds -"),
        ({"kernel": "histogram_intersection"}, r"needs values >= 0, but column x0 holds -"),
        ({"n_clusters": 201}, r"n_samples=200 must be at least n_clusters=201"),
        ({"reference": np.arange(200) % 3}, r"n_clusters=2, but the reference has 3 clusters"),
        ({"reference": np.arange(5)}, r"has 5 labels, but X has 200 rows"),
    ],
)
def test_bad_parameters_are_named(options, message, rings):
    model = tc.KernelIMM(**{"n_clusters": 2, **options})
    with pytest.raises(ValueError, match=message):
        model.fit(rings[0])
    assert not hasattr(model, "tree_")


def test_max_leaves_below_the_clusters(rings):
    with pytest.raises(ValueError, match="max_leaves=2 must be at least n_clusters=3"):
        tc.KernelExKMC(3, max_leaves=2).fit(rings[0])


def test_clusters_that_features_cannot_tell_apart():
    X = np.tile([[0.0], [1.0]], (6, 1))
    labels = np.repeat([0, 1], 6)
    with pytest.raises(ValueError, match=r"cannot tell the clusters number 0 and 1 .* apart"):
        tc.KernelIMM(reference=labels).fit(X)
    with pytest.warns(ConvergenceWarning, match="Only 1 of the 2 clusters has rows in the tree"):
        assert tc.KernelExpand(reference=labels, base_tree=None).fit(X).n_leaves_ == 1


def test_features_that_underflow_are_skipped_and_named(frame):
    large = frame.with_columns(pl.col("north") * 1e4)
    with (
        pytest.warns(UserWarning, match="The kernel 'rbf' is 0 for any two rows: ") as record,
        pytest.warns(UserWarning, match=r"surrogate features .* underflow.*columns 'north'"),
    ):
        tc.KernelIMM(2, gamma=2000.0, random_state=0).fit(large)
    assert record[0].filename == __file__


def test_a_failed_fit_leaves_the_model_as_it_was(rings):
    X, truth = rings
    model = tc.KernelExpand(reference=truth).fit(X)
    before = pickle.dumps(model.__dict__)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 1, np.nan, X))
    assert pickle.dumps(model.__dict__) == before


def test_data_without_differences(recwarn):
    model = tc.KernelIMM(3).fit(np.zeros((10, 2)))
    assert model.n_leaves_ == 1
    assert any("fewer than n_clusters=3" in str(w.message) for w in recwarn.list)
    assert tc.KernelExpand(1).fit(np.ones((1, 1))).labels_.tolist() == [0]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_gaps_are_filled_with_the_columns_means_for_costs(kernel):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 4)) + 5.0 * rng.integers(2, size=(200, 1))
    X[rng.random(X.shape) < 0.1] = np.nan
    labels = (np.nan_to_num(X[:, 0]) > 2).astype(int)
    parameters = {"kernel": kernel, "max_leaves": 5, "base_tree": None}
    if kernel == "rbf":
        parameters["gamma"] = "scale"
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    model = tc.KernelExpand(reference=labels, **parameters).fit(X)
    X[:] = 7.0  # costs that are computed later are those of the rows of the fit
    expected = tc.KernelExpand(reference=labels, **parameters).fit(filled)
    if kernel == "rbf":
        assert model.gamma_ == pytest.approx(expected.gamma_, rel=1e-12)
        cost = expected.reference_kernel_cost_
        assert model.reference_kernel_cost_ == pytest.approx(cost, rel=1e-9)
    assert model.kernel_cost_ > 0.0
