"""ObliqueTree: clustering and tree fitted together, against the definitions."""

import copy
import json
import pickle
import sys
import warnings

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

import treeclust_rs as tc
from oblique_models import bits, documents, fit, turned_blobs
from oracles import oblique as oracle
from processes import interrupt
from sizes import repeats
from treeclust_rs._base import LeafMeans
from treeclust_rs.tree.nodes import LEAF
from trees import route_all

SOLVERS = {
    "direct": {},
    "path": {"solver": "path", "mu_factor": 1.3},
    "histogram": {"solver": "path", "leaves": "histogram", "mu_factor": 1.3},
}
all_solvers = pytest.mark.parametrize("options", SOLVERS.values(), ids=SOLVERS)

# ---- what is minimised --------------------------------------------------------------------


@pytest.mark.parametrize("scale", [None, "standard"])
@pytest.mark.parametrize("splits", ["oblique", "axis"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_is_that_of_the_definition_and_never_rises(scale, splits, weighted):
    X, _ = turned_blobs(240, spread=2.0)
    X *= [1.0, 10.0, 0.2]
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(X)) if weighted else None
    w = np.ones(len(X)) if weight is None else weight
    alpha = 2.0
    model = tc.ObliqueTree(
        4, max_depth=3, alpha=alpha, scale=scale, splits=splits, random_state=0
    ).fit(X, sample_weight=weight)
    path = model.objective_path_
    objective = path["objective"].to_numpy()
    assert len(path) == model.n_iter_ > 1
    assert (np.diff(objective) <= 1e-12 * objective[0]).all()
    Z = X / model.scale_
    D = oracle.distances(Z, model.cluster_centers_ / model.scale_)
    np.testing.assert_allclose(oracle.loss(model.tree_, X, D, w), model.inertia_, rtol=1e-10)
    assert -model.score(X, sample_weight=weight) == pytest.approx(model.inertia_, rel=1e-10)
    np.testing.assert_allclose(
        oracle.means(X, model.labels_, 4, w), model.cluster_centers_, rtol=1e-9, atol=1e-9
    )
    last = path.row(-1, named=True)
    penalty = oracle.phi(model.tree_, model.scale_ if splits == "oblique" else None)
    assert last["penalty"] == pytest.approx(penalty)
    assert last["objective"] == pytest.approx(last["cost"] * w.sum() + alpha * penalty)
    # The centers move once more after the last round.
    assert model.cost_ratio_ <= last["cost"] * (1 + 1e-12)
    assert model.cost_ratio_ == pytest.approx(last["cost"], rel=1e-3)
    assert last["n_leaves"] == model.n_leaves_
    assert last["n_parameters"] == model.n_parameters_


def test_reference_inertia_is_the_cost_of_the_free_clustering():
    X, _ = turned_blobs()
    free = KMeans(4, n_init=3, random_state=0).fit(X)
    by_estimator = tc.ObliqueTree(reference=free).fit(X)
    assert by_estimator.reference_inertia_ == pytest.approx(free.inertia_, rel=1e-6)
    assert by_estimator.cost_ratio_ == by_estimator.inertia_ / by_estimator.reference_inertia_
    own = tc.ObliqueTree(4, random_state=0, n_init=20).fit(X)
    assert own.reference_inertia_ <= free.inertia_ * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_at_the_end_no_label_and_no_threshold_is_better(seed):
    X, _ = turned_blobs(150, spread=2.5, seed=seed)
    alpha = 0.5
    model = tc.ObliqueTree(
        4, max_depth=3, alpha=alpha, splits="axis", random_state=0, max_iter=200
    ).fit(X)
    tree, D = model.tree_, oracle.distances(X, model.cluster_centers_)
    D /= model.reference_inertia_ / len(X)
    slack = 2e-4 * (oracle.loss(tree, X, D) + alpha * oracle.phi(tree))
    for leaf in np.flatnonzero(tree.kind == 0):
        sums = D[oracle.rows_of(tree, leaf, X)].sum(axis=0)
        assert sums[tree.leaf_clusters[leaf]] <= sums.min() + slack
    assert tree.n_leaves > 3
    for node in np.flatnonzero(tree.kind != 0):
        rows, costs = oracle.sides(tree, node, X, D)
        own = [oracle.goes_right(tree, node, X[i]) for i in rows]
        now = costs[np.arange(len(rows)), np.array(own, dtype=int)].sum()
        assert now <= oracle.least_by_threshold(X, rows, costs) + slack
        # Nor is it better to drop the test, with all that is below the side that goes.
        assert now <= costs.sum(axis=0).min() + slack


def test_oblique_tests_are_worth_their_weights():
    X, _ = turned_blobs(300, spread=2.5)
    alpha = 3.0
    model = tc.ObliqueTree(4, max_depth=4, alpha=alpha, random_state=0, max_iter=200).fit(X)
    tree, D = model.tree_, oracle.distances(X, model.cluster_centers_)
    D /= model.reference_inertia_ / len(X)
    before = oracle.loss(tree, X, D)
    slack = 2e-4 * (before + alpha * oracle.phi(tree))
    inner = np.flatnonzero(tree.kind != 0)
    assert len(inner) > 2
    for node in inner:
        rows, costs = oracle.sides(tree, node, X, D)
        own = [oracle.goes_right(tree, node, X[i]) for i in rows]
        now = costs[np.arange(len(rows)), np.array(own, dtype=int)].sum()
        _, weights, _ = tree.oblique_test(node)
        price = alpha * np.abs(weights).sum()
        assert now + price <= costs.sum(axis=0).min() + slack


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("splits", ["oblique", "axis"])
def test_a_high_price_leaves_one_leaf(metric, splits):
    X, _ = turned_blobs()
    model = tc.ObliqueTree(4, alpha=1e6, metric=metric, splits=splits, random_state=0)
    with pytest.warns(ConvergenceWarning, match="Only 1 of the 4 clusters has rows in the tree"):
        model.fit(X)
    assert model.n_leaves_ == model.n_parameters_ == 1
    assert model.tree_.oblique_indptr is None
    if metric == "euclidean":
        assert model.inertia_ == pytest.approx(((X - X.mean(axis=0)) ** 2).sum())
    assert len(np.unique(model.labels_)) == 1
    assert (model.feature_importances_ == 0).all()


@all_solvers
def test_without_a_price_the_tree_reaches_the_free_clustering(options):
    X, _ = turned_blobs(500, d=2, spread=1.5)
    model = fit(tc.ObliqueTree(4, alpha=0.0, max_depth=6, random_state=0, **options), X)
    assert model.cost_ratio_ < 1.002
    shallow = fit(tc.ObliqueTree(4, alpha=30.0, max_depth=2, random_state=0, **options), X)
    assert shallow.cost_ratio_ > model.cost_ratio_
    assert shallow.n_parameters_ < model.n_parameters_


def test_joint_optimisation_beats_the_direct_fit():
    X, _ = turned_blobs(600, k=8, d=4, spread=2.5)
    path = tc.ObliqueTree(8, max_depth=3, alpha=5.0, solver="path", random_state=0)
    by_mu = fit(path, X).mu_path_
    assert by_mu["cost"][-1] < by_mu["cost"][0]
    joint = fit(tc.ObliqueTree(8, max_depth=3, alpha=5.0, random_state=0), X)
    assert joint.cost_ratio_ < by_mu["cost"][0]


# ---- the path -----------------------------------------------------------------------------


@pytest.mark.parametrize("leaves", ["label", "histogram"])
def test_the_path_brings_labels_and_tree_together(leaves):
    X, _ = turned_blobs(500, k=6, d=3, spread=2.0)
    model = tc.ObliqueTree(
        6, max_depth=3, alpha=2.0, solver="path", leaves=leaves, mu_steps=150, random_state=0
    ).fit(X)
    path = model.mu_path_
    assert path.columns == ["mu", "cost", "mismatch", "penalty", "n_parameters", "n_leaves"]
    mu = path["mu"].to_numpy()
    assert mu[0] == 0.0 and len(mu) == model.n_iter_
    end = int(np.flatnonzero(mu == mu[-1])[0])
    np.testing.assert_allclose(mu[2 : end + 1] / mu[1:end], 1.1)
    assert path["mismatch"][0] > 0
    assert path["mismatch"][end] < 0.1 * path["mismatch"][0]
    # The rounds after the path are about the cost itself.
    assert path["cost"][-1] < path["cost"][end]
    assert path["mismatch"][-1] < 0.1 * path["mismatch"][0]
    assert path["cost"][-1] == pytest.approx(model.cost_ratio_)
    assert path["n_parameters"][-1] == model.n_parameters_
    assert tc.ObliqueTree(3).fit(X).mu_path_ is None


def test_a_path_that_ends_early_says_so():
    X, _ = turned_blobs(400, k=6, spread=2.5)
    model = tc.ObliqueTree(6, max_depth=2, alpha=5.0, solver="path", mu_steps=2, random_state=0)
    with (
        pytest.warns(ConvergenceWarning, match="of the 6 clusters have rows in the tree"),
        pytest.warns(ConvergenceWarning, match="stopped after mu_steps=2 or max_iter=100 before"),
    ):
        model.fit(X)
    assert model.mu_path_["mu"].n_unique() == 3
    with pytest.warns(ConvergenceWarning, match="ObliqueTree stopped after max_iter=1 before"):
        tc.ObliqueTree(6, max_iter=1, random_state=0).fit(X)


# ---- prediction ---------------------------------------------------------------------------


@all_solvers
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_labels_are_the_trees_predictions(options, dtype, order):
    X = np.asarray(turned_blobs(500, d=5, spread=2.0)[0], dtype=dtype, order=order)
    model = fit(tc.ObliqueTree(4, max_depth=3, random_state=0, **options), X)
    assert (model.labels_ == model.predict(X)).all()
    assert (model.labels_ == model.predict(np.asarray(X, dtype=np.float64))).all()
    leaves = route_all(model.tree_, X.astype(np.float64))
    assert (model.apply(X) == leaves).all()
    names = [f"c{j}" for j in range(5)]
    frame = pl.DataFrame(dict(zip(names, X.T, strict=True)))
    by_name = fit(tc.ObliqueTree(4, max_depth=3, random_state=0, **options), frame)
    assert list(by_name.feature_names_in_) == names
    assert (by_name.labels_ == model.labels_).all()
    shuffled = frame.select(names[::-1])
    assert (by_name.predict(shuffled) == model.labels_).all()
    column = shuffled.select(by_name.to_polars())["cluster"].to_numpy()
    assert (column == model.labels_).all()


def test_memory_order_and_threads_change_no_bit():
    X, _ = turned_blobs(5000, k=6, d=4, spread=2.5)
    rounds = repeats(2, 5)
    for options in ({}, {"splits": "axis"}, {"solver": "path", "mu_steps": rounds}):
        model = tc.ObliqueTree(6, max_depth=3, random_state=0, max_iter=rounds, n_jobs=1, **options)
        one = bits(fit(model, X))
        assert bits(fit(clone(model).set_params(n_jobs=2), np.asfortranarray(X))) == one


def test_sparse_rows_are_the_same_as_dense_ones():
    X = documents()
    model = tc.ObliqueTree(4, metric="cosine", alpha=0.3, random_state=0)
    by_rows = clone(model).fit(X)
    assert by_rows.n_leaves_ > 3
    for other in (X.toarray(), sparse.csc_array(X), sparse.coo_matrix(X)):
        dense = clone(model).fit(other)
        assert (dense.labels_ == by_rows.labels_).all()
        assert bits(dense)[:4] == bits(by_rows)[:4]
        assert dense.inertia_ == pytest.approx(by_rows.inertia_, rel=1e-12)
    assert (by_rows.predict(X) == by_rows.labels_).all()
    assert (by_rows.predict(X.toarray()) == by_rows.labels_).all()
    assert (by_rows.apply(X) == route_all(by_rows.tree_, X.toarray())).all()
    assert by_rows.explain(X[:5]) == by_rows.explain(X[:5].toarray())


def test_spherical_costs():
    X = documents(zeros=5)
    full = X.toarray()
    model = tc.ObliqueTree(4, metric="cosine", alpha=0.3, random_state=0).fit(X)
    np.testing.assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1.0)
    D = oracle.distances(full, model.cluster_centers_, "cosine")
    assert (D[:5] == 1.0).all()
    assert oracle.loss(model.tree_, full, D) == pytest.approx(model.inertia_, rel=1e-10)
    assert -model.score(X) == pytest.approx(model.inertia_, rel=1e-10)
    lengths = np.linalg.norm(full, axis=1, keepdims=True)
    unit = full / np.where(lengths > 0, lengths, 1.0)
    sums = np.array([unit[model.labels_ == label].sum(axis=0) for label in range(4)])
    np.testing.assert_allclose(
        sums / np.linalg.norm(sums, axis=1, keepdims=True), model.cluster_centers_, atol=1e-12
    )
    # The length of a row does not matter.
    longer = np.random.default_rng(0).uniform(0.5, 3.0, len(full))[:, None]
    for reference in (model.labels_, model.cluster_centers_ * 7.0):
        again = tc.ObliqueTree(metric="cosine", reference=reference, alpha=0.3).fit(full * longer)
        given = tc.ObliqueTree(metric="cosine", reference=reference, alpha=0.3).fit(full)
        assert again.reference_inertia_ == pytest.approx(given.reference_inertia_, rel=1e-9)


# ---- refining given trees -----------------------------------------------------------------


def given_trees():
    iris, wine = load_iris().data, load_wine().data / load_wine().data.std(axis=0)
    blobs, _ = turned_blobs(300, k=5, spread=2.0)
    for name, X, k in (("iris", iris, 3), ("wine", wine, 4), ("blobs", blobs, 5)):
        free = KMeans(k, n_init=3, random_state=0).fit(X)
        for model in (
            tc.IMM(reference=free),
            tc.ExKMC(max_leaves=2 * k, reference=free),
            tc.ExKMC(max_leaves=2 * k, reference=free, base_tree=None, cuts="interval"),
            tc.Kauri(k, max_leaves=2 * k),
        ):
            yield pytest.param(X, model.fit(X), id=f"{name}-{type(model).__name__}")


@pytest.mark.parametrize("solver", ["direct", "path"])
@pytest.mark.parametrize("splits", ["axis", "oblique"])
@pytest.mark.parametrize(("X", "given"), list(given_trees()))
def test_refining_never_raises_the_cost_of_a_tree(X, given, splits, solver):
    tree = given.tree_.to_threshold()
    unfitted = tc.ObliqueTree(splits=splits, solver=solver, alpha=0.0, random_state=0)
    unfitted.set_params(mu_steps=300)
    model = fit(clone(unfitted).set_params(init=given), X)
    k = len(tree.classes)
    codes = np.searchsorted(tree.classes, given.labels_)
    before = sum(
        ((X[codes == label] - X[codes == label].mean(axis=0)) ** 2).sum()
        for label in range(k)
        if (codes == label).any()
    )
    assert model.inertia_ <= before * (1 + 1e-12)
    assert model.n_leaves_ <= tree.n_leaves
    assert model.tree_.max_depth <= tree.max_depth
    assert set(model.tree_.kind) <= {0, 1 if splits == "axis" else 3}
    by_tree = fit(unfitted.set_params(init=tree), X)
    assert bits(by_tree) == bits(model)


def test_refining_helps():
    X, _ = turned_blobs(800, k=6, spread=2.0)
    free = KMeans(6, n_init=3, random_state=0).fit(X)
    given = tc.ExKMC(max_leaves=14, reference=free).fit(X)
    axis = tc.ObliqueTree(init=given, splits="axis", alpha=0.0, reference=free).fit(X)
    oblique = tc.ObliqueTree(init=given, alpha=0.0, reference=free).fit(X)
    assert axis.inertia_ < 0.996 * given.inertia_
    assert oblique.inertia_ < 0.99 * axis.inertia_
    again = tc.ObliqueTree(init=oblique, alpha=0.0, reference=free).fit(X)
    assert again.inertia_ <= oblique.inertia_
    # Labels are matched by name.
    names = np.array(["f", "e", "d", "c", "b", "a"])[free.labels_]
    named = tc.ExKMC(max_leaves=14, reference=names).fit(X)
    assert named.inertia_ == pytest.approx(given.inertia_)
    refined = tc.ObliqueTree(init=named, splits="axis", alpha=0.0, reference=names).fit(X)
    assert refined.inertia_ == pytest.approx(axis.inertia_)
    assert set(refined.labels_) <= set("abcdef")
    # A clone's init is not fitted: it is fitted to the rows.
    cloned = clone(tc.ObliqueTree(init=given, splits="axis", alpha=0.0, reference=free)).fit(X)
    assert cloned.n_leaves_ <= 14
    assert not hasattr(cloned.init, "tree_")


# ---- relaxed weights ----------------------------------------------------------------------


def relaxed_pairs():
    blobs = turned_blobs(900, k=7, d=6, spread=2.2)[0]
    shared = {"max_depth": 4, "alpha": 10.0, "random_state": 0}
    for name, options in SOLVERS.items():
        options = {**shared, **options, "mu_steps": 300}
        dear = {**options, "alpha": 50.0} if name == "histogram" else options
        yield pytest.param(blobs, 7, dear, id=name)
        options = {**options, "scale": "standard"}
        yield pytest.param(blobs * [1, 9, 1, 0.1, 1, 1], 7, options, id=f"{name}-scaled")
    options = {**shared, "metric": "cosine"}
    yield pytest.param(documents(900, k=7), 7, options, id="sparse")


def columns_of_tests(tree):
    inner = np.flatnonzero(tree.children_left >= 0)
    return [set(tree.oblique_test(node)[0].tolist()) for node in inner]


@pytest.mark.parametrize(("X", "k", "options"), list(relaxed_pairs()))
def test_relaxing_lowers_the_cost_on_columns_that_the_tests_have(X, k, options):
    plain = fit(tc.ObliqueTree(k, **options), X)
    relaxed = fit(tc.ObliqueTree(k, relax=True, **options), X)
    assert relaxed.reference_inertia_ == plain.reference_inertia_
    assert relaxed.inertia_ < plain.inertia_ * (1 - 1e-4)
    assert relaxed.n_parameters_ <= plain.n_parameters_
    before = columns_of_tests(plain.tree_)
    assert min(len(columns) for columns in before) < X.shape[1]  # something to keep to
    for columns in columns_of_tests(relaxed.tree_):
        assert any(columns <= old for old in before)
    # The rounds are those without, and more.
    n = plain.n_iter_
    assert relaxed.objective_path_[:n].equals(plain.objective_path_)
    costs = relaxed.objective_path_["cost"].to_numpy()[n:]
    assert len(costs) and (np.diff(costs) <= 1e-12).all()
    assert relaxed.inertia_ <= costs[-1] * relaxed.reference_inertia_ * (1 + 1e-9)
    penalties = relaxed.objective_path_["penalty"].to_numpy()
    assert penalties[-1] < 2 * penalties[n - 1]  # weights are free, but not their size
    assert (relaxed.labels_ == relaxed.predict(X)).all()
    again = tc.ObliqueTree(k, relax=True, n_jobs=2, **options)
    assert bits(fit(again, X)) == bits(relaxed)


# ---- the path of alpha --------------------------------------------------------------------


def test_alpha_path_goes_from_detailed_to_simple():
    X, _ = turned_blobs(500, k=5, d=4, spread=2.0)
    model = tc.ObliqueTree(5, max_depth=3, random_state=0)
    before = copy.copy(vars(model))
    alphas = [100.0, 0.1, 3.0, 1e6]
    with pytest.warns(ConvergenceWarning, match="Only 1 of the 5 clusters has rows in the tree"):
        models = model.alpha_path(X, alphas)
    assert vars(model) == before
    assert [each.alpha for each in models] == sorted(alphas)
    sizes = [each.n_parameters_ for each in models]
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] == 1 < sizes[0]
    costs = [each.inertia_ for each in models]
    assert costs[0] < costs[-1]
    assert len({each.reference_inertia_ for each in models}) == 1
    assert bits(models[0]) == bits(clone(model).set_params(alpha=0.1).fit(X))
    for each in models:
        assert (each.labels_ == each.predict(X)).all()
    for bad, message in (
        ([], "alphas is empty: give at least one value of alpha"),
        ([1.0, -1.0], "The 'alpha' parameter of ObliqueTree must be"),
    ):
        with pytest.raises(ValueError, match=message):
            model.alpha_path(X, bad)


# ---- what is out of the ordinary ----------------------------------------------------------

BLOBS = turned_blobs(60, spread=2.0)[0]
ODD = {
    "duplicated columns": np.hstack([BLOBS, BLOBS, BLOBS[:, :1]]),
    "more columns than rows": np.random.default_rng(0).normal(size=(12, 40)),
    "a column of zeros": np.hstack([BLOBS, np.zeros((60, 1))]),
    "constant columns": np.hstack([BLOBS, np.full((60, 2), 7.0)]),
    "far from the origin": BLOBS + 1e8,
    "repeated rows": BLOBS[np.arange(60) % 9],
    "few values": np.round(BLOBS),
    "tiny": BLOBS * 1e-150,
    "huge": BLOBS * 1e140,
}


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("options", [*SOLVERS.values(), {"splits": "axis"}], ids=[*SOLVERS, "axis"])
@pytest.mark.parametrize("X", ODD.values(), ids=ODD)
def test_odd_data_give_trees_without_nan(X, options, metric):
    model = fit(tc.ObliqueTree(4, max_depth=3, metric=metric, random_state=0, **options), X)
    assert np.isfinite(model.cluster_centers_).all()
    assert np.isfinite([model.inertia_, model.reference_inertia_]).all()
    assert np.isfinite(model.objective_path_.to_numpy()).all()
    if model.tree_.oblique_indptr is not None:
        assert np.isfinite(model.tree_.oblique_weights).all()
        assert (model.tree_.oblique_weights != 0).all()
    assert (model.predict(X) == model.labels_).all()
    counts = np.bincount(model.apply(X), minlength=model.tree_.n_nodes)
    is_leaf = model.tree_.kind == 0
    assert (counts[is_leaf] == model.tree_.n_node_samples[is_leaf]).all()
    assert (counts[is_leaf] > 0).all()


def test_the_distance_from_the_origin_changes_little():
    near = tc.ObliqueTree(4, random_state=0).fit(np.round(BLOBS, 3))
    far = tc.ObliqueTree(4, random_state=0).fit(np.round(BLOBS, 3) + 1e8)
    assert far.cost_ratio_ == pytest.approx(near.cost_ratio_, rel=0.05)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("X", [np.ones((1, 3)), np.ones((7, 3)), np.zeros((5, 2))])
def test_rows_that_are_all_equal_make_one_leaf(X, metric):
    model = tc.ObliqueTree(1, metric=metric).fit(X)
    assert model.n_leaves_ == 1
    assert model.cost_ratio_ == 1.0
    if len(X) > 2:
        with pytest.warns(ConvergenceWarning, match="Only 1 distinct cluster was found"):
            assert tc.ObliqueTree(2, metric=metric).fit(X).n_leaves_ == 1


def test_empty_clusters_keep_their_center():
    X, _ = turned_blobs(200, k=3)
    away = np.full((1, 3), 1e3)
    centers = np.vstack([KMeans(3, n_init=3, random_state=0).fit(X).cluster_centers_, away])
    model = tc.ObliqueTree(reference=centers, alpha=0.1).fit(X)
    assert (model.cluster_centers_[3] == away).all()
    assert set(model.labels_) == {0, 1, 2}
    assert list(model.classes_) == [0, 1, 2, 3]


@pytest.mark.parametrize("options", [{}, {"solver": "path", "mu_factor": 2.0}])
def test_clusters_that_the_tree_leaves_without_rows_are_counted(options):
    X = np.random.default_rng(3).normal(size=(60, 300))
    model = tc.ObliqueTree(3, alpha=10.0, random_state=0, **options)
    words = r"^Only [12] of the 3 clusters (has|have) rows in the tree\. A smaller alpha or a "
    with pytest.warns(ConvergenceWarning, match=words) as record:
        model.fit(X)
    assert len(record) == 1 and record[0].filename == __file__
    n_found = len(np.unique(model.labels_))
    assert str(record[0].message).startswith(f"Only {n_found} of the 3 clusters ha")


@pytest.mark.parametrize("splits", ["oblique", "axis"])
def test_weights_are_repetitions(splits):
    X, _ = turned_blobs(150, spread=2.0)
    times = np.random.default_rng(0).integers(0, 4, len(X))
    centers = KMeans(4, n_init=3, random_state=0).fit(X).cluster_centers_
    model = tc.ObliqueTree(reference=centers, alpha=0.5, splits=splits, init="random")
    if splits == "oblique":  # a start that no drawing of rows decides
        model.set_params(init=tc.VoronoiTree(reference=centers).fit(X))
    weighted = clone(model).fit(X, sample_weight=times)
    repeated = clone(model).fit(np.repeat(X, times, axis=0))
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-9)
    assert (weighted.predict(X) == repeated.predict(X)).all()
    # Rows of weight 0 have a label too.
    assert (weighted.labels_ == weighted.predict(X)).all()


def test_noise_is_left_out_and_labelled():
    X, _ = turned_blobs(300)
    labels = KMeans(4, n_init=3, random_state=0).fit(X).labels_
    noise = np.random.default_rng(1).random(300) < 0.1
    given = np.where(noise, -1, labels)
    model = tc.ObliqueTree(reference=given, alpha=0.3, random_state=0).fit(X)
    rest = {"reference": labels[~noise], "alpha": 0.3, "random_state": 0}
    without = tc.ObliqueTree(**rest).fit(X[~noise])
    assert bits(model)[:6] == bits(without)[:6]
    assert model.tree_.n_node_samples[0] == (~noise).sum()
    assert (model.labels_ == model.predict(X)).all()
    assert (model.labels_[~noise] == without.labels_).all()


def test_units_of_columns_do_not_matter_with_a_scale():
    X, labels = turned_blobs(300, spread=2.0)
    units = np.array([2.0**10, 2.0**-7, 1.0])
    options = {"reference": labels, "scale": "standard", "alpha": 2.0, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of labels that are not the nearest center
        one = tc.ObliqueTree(**options).fit(X)
        other = tc.ObliqueTree(**options).fit(X * units)
    assert (one.labels_ == other.labels_).all()
    assert one.inertia_ == pytest.approx(other.inertia_, rel=1e-9)
    assert (one.tree_.oblique_indices == other.tree_.oblique_indices).all()
    np.testing.assert_allclose(
        other.tree_.oblique_weights * units[other.tree_.oblique_indices],
        one.tree_.oblique_weights,
        rtol=1e-6,
    )
    np.testing.assert_allclose(one.feature_importances_, other.feature_importances_, rtol=1e-6)


def test_feature_importances():
    X, _ = turned_blobs(300)
    X = np.hstack([X, np.random.default_rng(0).normal(size=(300, 2))])
    for splits in ("oblique", "axis"):
        shares = tc.ObliqueTree(4, splits=splits, alpha=1.0, random_state=0).fit(X)
        shares = shares.feature_importances_
        assert shares.shape == (5,)
        assert (shares >= 0).all()
        assert shares.sum() == pytest.approx(1.0)
        assert shares[3:].max() < shares[:3].max() / 5


# ---- files, copies and threads ------------------------------------------------------------


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@all_solvers
def test_files_and_copies(options, metric, tmp_path):
    X, _ = turned_blobs(200)
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    model = fit(tc.ObliqueTree(4, metric=metric, alpha=0.5, random_state=0, **options), frame)
    model.save(tmp_path / "model.json")
    back = tc.load(tmp_path / "model.json")
    for other in (back, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert isinstance(other, tc.ObliqueTree)
        assert (other.predict(frame) == model.labels_).all()
        assert other.tree_ == model.tree_
        assert other.get_params() == model.get_params()
        assert other.score(frame) == model.score(frame)
        assert other.objective_path_.equals(model.objective_path_)
        assert other.explain(frame[:3]) == model.explain(frame[:3])
        assert other.inertia_ == model.inertia_
        assert (other.feature_importances_ == model.feature_importances_).all()
        if model.mu_path_ is not None:
            assert other.mu_path_.equals(model.mu_path_)
    assert not hasattr(back, "labels_")
    again = fit(clone(back), frame)
    assert bits(again) == bits(model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p["fitted"].pop("scale_"), "fitted of the model file lacks scale_"),
        (lambda p: p["fitted"].update(scale_=[1.0, 0.0, 1.0]), "a scale_ that is not positive"),
        (lambda p: p["fitted"].update(inertia_=-1.0), "a negative inertia"),
        (lambda p: p["fitted"].update(_weight=0.0), "a _weight that is not positive"),
        (lambda p: p["fitted"].update(_path=[]), "a _path that is empty"),
        (lambda p: p["params"].update(alpha=-1.0), "'alpha' parameter of ObliqueTree must be"),
    ],
)
def test_bad_files_are_refused(change, message, tmp_path):
    X, _ = turned_blobs(100)
    tc.ObliqueTree(3, random_state=0).fit(X).save(tmp_path / "model.json")
    payload = json.loads((tmp_path / "model.json").read_text())
    change(payload)
    (tmp_path / "model.json").write_text(json.dumps(payload))
    with pytest.raises(ValueError, match=message):
        tc.load(tmp_path / "model.json")


INTERRUPTED = """
import numpy as np, treeclust_rs as tc
rng = np.random.default_rng(0)
X = rng.normal(size=(40_000, 40)).cumsum(axis=1)
model = tc.ObliqueTree(8, reference=X[:8], max_depth=8, alpha=0.01, n_jobs=1, verbose=1)
before = dict(vars(model))
try:
    model.fit(X)
except KeyboardInterrupt:
    assert vars(model) == before
    print("interrupted and well")
else:
    print("finished")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to another process")
def test_ctrl_c_ends_a_long_fit_and_leaves_the_estimator_as_it_was():
    line, out, err = interrupt(INTERRUPTED)
    assert line.startswith("[ObliqueTree] 40,000 rows, "), line + err
    assert out == "interrupted and well", err


def test_verbose_tells_what_was_reached(capfd):
    X, _ = turned_blobs()
    model = tc.ObliqueTree(4, random_state=0, verbose=1).fit(X)
    told = capfd.readouterr()
    assert told.out == ""
    last = told.err.strip().splitlines()[-1]
    assert last.startswith(
        f"[ObliqueTree] 400 rows, {model.n_leaves_} leaves, cost {model.inertia_:.6g}, "
    )
    first, second = told.err.splitlines()[:2]
    assert first.startswith("[ObliqueTree] 400 rows, k-means of 4 clusters, 10 starts, ")
    assert second.startswith("[ObliqueTree] 400 rows, k-means done, cost ")
    assert "nan" not in told.err and "gain -" not in told.err
    tc.ObliqueTree(4, random_state=0).fit(X)
    told = capfd.readouterr()
    assert told.out == told.err == ""


# ---- what is refused ----------------------------------------------------------------------

X3 = turned_blobs(100)[0]
TREE = tc.ExKMC(5, random_state=0).fit(X3)
OBLIQUE = tc.ObliqueTree(3, random_state=0).fit(X3)
BAD = {
    "alpha": ({"alpha": -0.5}, X3, "The 'alpha' parameter of ObliqueTree must be a float in"),
    "infinite": ({"alpha": np.inf}, X3, "The 'alpha' parameter of ObliqueTree must be"),
    "depth": ({"max_depth": 0}, X3, "The 'max_depth' parameter of ObliqueTree must be an int in"),
    "splits": ({"splits": "x"}, X3, "The 'splits' parameter of ObliqueTree must be a str among"),
    "factor": ({"mu_factor": 1.0}, X3, "The 'mu_factor' parameter of ObliqueTree must be"),
    "histogram": ({"leaves": "histogram"}, X3, 'leaves="histogram" goes with solver="path"'),
    "scale": ({"metric": "cosine", "scale": "standard"}, X3, "does not go with metric"),
    "relax": ({"relax": True, "splits": "axis"}, X3, 'relax=True goes with splits="oblique"'),
    "init": ({"init": "kmeans"}, X3, "must be 'bisecting', 'random', a fitted estimator"),
    "not a tree": ({"init": KMeans()}, X3, "must be 'bisecting', 'random', a fitted estimator"),
    "axis": ({"init": OBLIQUE, "splits": "axis"}, X3, "cannot start from a tree with oblique"),
    "columns": ({"init": TREE}, X3[:, :2], "as init has 3 features, but X has 2"),
    "clusters": ({"init": TREE, "n_clusters": 4}, X3, "as init has 5 clusters, more than n_clus"),
    "reference": ({"n_clusters": 4, "reference": X3[:3]}, X3, "but the reference has 3 clusters"),
    "rows": ({"n_clusters": 200}, X3, "n_samples=100 must be at least n_clusters=200: Obl"),
    "cosine rows": ({"n_clusters": 200, "metric": "cosine"}, X3, "must be at least n_clusters=200"),
    "nan": ({}, np.where(X3[7, 1] == X3, np.nan, X3), "Input X contains NaN"),
    "width": ({"reference": X3[:3, :2]}, X3, "reference has 2 columns, but X has 3"),
}


@pytest.mark.parametrize(("options", "X", "message"), BAD.values(), ids=BAD)
def test_bad_fits_are_refused_and_change_nothing(options, X, message):
    model = tc.ObliqueTree(**options)
    before = copy.copy(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(X)
    assert vars(model) == before


def test_bad_sparse_input_is_refused():
    X = documents()
    for options in ({}, {"metric": "cosine", "splits": "axis"}):
        with pytest.raises(TypeError) as caught:
            tc.ObliqueTree(3, **options).fit(X)
        message = str(caught.value)
        assert message.startswith("ObliqueTree takes no sparse input, but got a ")
        assert 'ObliqueTree(metric="cosine", splits="oblique")' in message
        assert "take sparse rows" in message
    model = tc.ObliqueTree(3, metric="cosine", random_state=0).fit(X)
    with pytest.raises(ValueError, match="X has 119 features, but ObliqueTree is expecting 120"):
        model.predict(X[:, :119])
    bad = X.copy()
    bad.data[5] = np.nan
    with pytest.raises(ValueError, match=r"Input X contains NaN: 1 stored cells, the first in row"):
        model.fit(bad)
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        model.fit(X[:0])
    with pytest.raises(ValueError, match="Complex data not supported: X has dtype complex128"):
        model.fit(X.astype(complex))


def test_a_tree_with_more_clusters_than_the_reference_finds_is_refused():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0], [5.0, 0.0]], 10, axis=0)
    given = tc.ExKMC(3, random_state=0).fit(X)
    with (
        pytest.warns(ConvergenceWarning, match="Only 2 distinct"),
        pytest.raises(ValueError, match="has 3 clusters, but the reference found only 2 in X"),
    ):
        tc.ObliqueTree(init=given).fit(X[:20])


@pytest.mark.parametrize("alphas", [1, [None, 1], ["a", 1]])
def test_alphas_that_are_no_numbers(alphas):
    with pytest.raises(TypeError, match="alphas must be numbers, at least 0"):
        tc.ObliqueTree(2).alpha_path(np.eye(4), alphas)


# ---- fewer leaves -------------------------------------------------------------------------


def cost_of_clusters(X, labels):
    """The cost of clusters about their own means, as sklearn-like code has it."""
    parts = [X[labels == label] for label in np.unique(labels)]
    return sum(float(((part - part.mean(axis=0)) ** 2).sum()) for part in parts)


@pytest.mark.parametrize("splits", ["oblique", "axis"])
def test_fewer_leaves_are_pruned_and_fitted_further(splits):
    X = load_digits().data[:400]
    options = {"splits": splits, "alpha": 0.1, "random_state": 0, "n_init": 2}
    whole = tc.ObliqueTree(6, **options).fit(X)
    for m in (6, 7):
        assert m < whole.n_leaves_
        fewer, pruned = tc.ObliqueTree(6, max_leaves=m, **options).fit(X), whole.truncate(m)
        assert fewer.n_leaves_ <= m == pruned.n_leaves_ == pruned.max_leaves
        assert fewer.inertia_ <= pruned.inertia_ * (1 + 1e-9)
        assert fewer.objective_path_["n_leaves"][-1] == fewer.n_leaves_
    assert tc.ObliqueTree(6, max_leaves=None, **options).fit(X).n_leaves_ <= 6
    same = tc.ObliqueTree(6, max_leaves=whole.n_leaves_, **options).fit(X)
    assert same.tree_ == whole.tree_ and same.inertia_ == whole.inertia_


def test_truncated_models_have_the_labels_and_costs_of_their_trees(tmp_path):
    X, _ = turned_blobs(k=5)
    w = np.random.default_rng(0).choice([0.0, 1.0, 2.0], len(X))
    whole = tc.ObliqueTree(5, alpha=0.05, random_state=0).fit(np.repeat(X, w.astype(int), axis=0))
    weighted = tc.ObliqueTree(reference=whole.predict(X), alpha=0.05, random_state=0)
    weighted = weighted.fit(X, sample_weight=w)
    for model, rows in ((whole, np.repeat(X, w.astype(int), axis=0)), (weighted, X)):
        before = model.tree_
        for m in range(1, model.n_leaves_ + 1):
            small = model.truncate(m)
            assert small.n_leaves_ == m and model.tree_ is before
            np.testing.assert_array_equal(small.labels_, small.predict(rows))
            kept = rows if model is whole else np.repeat(X, w.astype(int), axis=0)
            expected = cost_of_clusters(kept, small.predict(kept))
            assert small.inertia_ == pytest.approx(expected, rel=1e-9)
            assert small.truncate(m).tree_ == small.tree_
            small.save(tmp_path / "m.json")
            assert tc.load(tmp_path / "m.json").tree_ == small.tree_
    whole.save(tmp_path / "m.json")
    loaded = tc.load(tmp_path / "m.json").truncate(2)
    assert loaded.tree_ == whole.truncate(2).tree_
    assert loaded.inertia_ == pytest.approx(whole.truncate(2).inertia_, rel=1e-9)
    with pytest.raises(AttributeError, match="no cluster_centers_"):
        _ = loaded.cluster_centers_
    loaded.save(tmp_path / "small.json")
    assert tc.load(tmp_path / "small.json").tree_ == loaded.tree_


def test_truncated_cosine_trees_have_the_costs_of_their_clusters(tmp_path):
    X = documents()
    X = sparse.vstack([X, sparse.csr_array((2, X.shape[1]))]).tocsr()  # two empty texts
    weight = np.random.default_rng(0).choice([0.0, 1.0, 2.0], X.shape[0])
    lengths = np.linalg.norm(X.toarray(), axis=1, keepdims=True)
    directions = X.toarray() / np.where(lengths > 0, lengths, 1.0)
    for rows in (X, X.toarray()):
        model = tc.ObliqueTree(4, metric="cosine", alpha=0.01, random_state=0)
        model.fit(rows, sample_weight=weight)
        assert model.n_leaves_ > 3
        for m in range(1, model.n_leaves_):
            small = model.truncate(m)
            np.testing.assert_array_equal(small.labels_, small.predict(rows))
            cost = 0.0
            for c in np.unique(small.labels_):
                own = weight * (small.labels_ == c)
                mean = own @ directions / np.linalg.norm(own @ directions)
                cost += own @ (1 - directions @ mean)
                np.testing.assert_allclose(small.cluster_centers_[c], mean, atol=1e-12)
            assert small.inertia_ == pytest.approx(cost, rel=1e-9)
            assert small.cost_ratio_ == pytest.approx(cost / model.reference_inertia_, rel=1e-9)
            assert small.score(rows, sample_weight=weight) == pytest.approx(-cost, rel=1e-9)
    model.save(tmp_path / "m.json")
    with pytest.raises(
        AttributeError, match="This ObliqueTree has no cost_ratio_: it takes the ro"
    ):
        _ = tc.load(tmp_path / "m.json").truncate(2).cost_ratio_


def test_every_truncation_undoes_the_split_that_costs_least():
    X, _ = turned_blobs(k=6, spread=2.0)
    tree = tc.ObliqueTree(6, alpha=0.01, random_state=0).fit(X)
    model, cost = tree, tree.tree_.impurity * tree.tree_.weighted_n_node_samples
    for m in range(model.n_leaves_ - 1, 0, -1):
        now, cost = model.tree_, model.tree_.impurity * model.tree_.weighted_n_node_samples
        leaf = now.kind == LEAF
        prices = [
            cost[node] - cost[now.children_left[node]] - cost[now.children_right[node]]
            for node in np.flatnonzero(~leaf)
            if leaf[now.children_left[node]] and leaf[now.children_right[node]]
        ]
        model = model.truncate(m)
        after = model.tree_.impurity * model.tree_.weighted_n_node_samples
        risen = after[model.tree_.leaves].sum() - cost[now.leaves].sum()
        assert risen == pytest.approx(min(prices), rel=1e-9, abs=1e-9 * cost[0])


def test_cosine_models_of_many_numbers_are_pruned_without_centers(monkeypatch):
    matrix = documents()
    monkeypatch.setattr(LeafMeans, "MAX_NUMBERS", 100)
    model = tc.ObliqueTree(4, metric="cosine", alpha=0.05, random_state=0).fit(matrix)
    small = model.truncate(2)
    np.testing.assert_array_equal(small.labels_, small.predict(matrix))
    with pytest.raises(AttributeError, match="no cluster_centers_"):
        _ = small.cluster_centers_


def test_fewer_leaves_than_clusters_are_refused():
    X, _ = turned_blobs()
    with pytest.raises(ValueError, match="max_leaves=3 must be at least n_clusters=4"):
        tc.ObliqueTree(4, max_leaves=3).fit(X)
    with pytest.raises(ValueError, match=r"max_leaves=3 must be at least n_clusters=8 \(the def"):
        tc.ObliqueTree(max_leaves=3).fit(X)
