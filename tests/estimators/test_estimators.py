"""IMM and ExKMC as a user meets them: inputs, references, messages, files and limits."""

import json
import os
import pickle
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans, MiniBatchKMeans
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import treeclust_rs as tc
from oracles import threshold as oracle
from processes import interrupt, output_of, start
from sizes import repeats
from treeclust_rs import _engine

ARRAYS = (
    *("children_left", "children_right", "feature", "threshold", "lower", "upper", "kind"),
    *("impurity", "n_node_samples", "weighted_n_node_samples", "value", "cluster"),
    *("base_cluster", "mistakes"),
)
MODELS = {
    "IMM": lambda **options: tc.IMM(**options),
    "ExKMC": lambda **options: tc.ExKMC(**({"max_leaves": 12} | options)),
    "ExKMC-interval": lambda **options: tc.ExKMC(
        **({"max_leaves": 9, "base_tree": None, "cuts": "interval"} | options)
    ),
    "IMM-emn": lambda **options: tc.IMM(**({"cut_score": "emn"} | options)),
}
all_models = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
both_criteria = pytest.mark.parametrize("criterion", ["kmeans", "kmedians"])


def blobs(n=600, d=4, k=5, seed=0, std=2.0):
    X, labels = make_blobs(n, centers=k, n_features=d, cluster_std=std, random_state=seed)
    return X, labels


def bits(model):
    """Everything a fit gives, as bytes."""
    parts = [np.ascontiguousarray(getattr(model.tree_, name)).tobytes() for name in ARRAYS]
    parts += [model.labels_.tobytes(), model.cluster_centers_.tobytes()]
    parts += [np.float64(model.inertia_).tobytes(), np.float64(model.reference_inertia_).tobytes()]
    parts += [model.cost_path_["cost"].to_numpy().tobytes(), model.scale_.tobytes()]
    return parts


# ---- the same labels from every container -------------------------------------------------


CONTAINERS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "polars": lambda X: pl.DataFrame(X, schema=list("abcd")),
    "polars chunks": lambda X: pl.concat(
        [pl.DataFrame(X[:100], schema=list("abcd")), pl.DataFrame(X[100:], schema=list("abcd"))],
        rechunk=False,
    ),
    "lazy": lambda X: pl.LazyFrame(X, schema=list("abcd")),
    "pandas": lambda X: pd.DataFrame(X, columns=list("abcd")),
    "pyarrow": lambda X: pa.table({name: X[:, f] for f, name in enumerate("abcd")}),
}


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


@all_models
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_training_labels_are_predicted_bit_for_bit(make, dtype):
    X = blobs()[0].astype(dtype)
    reference = X[[0, 100, 200, 300, 400]].astype(float)
    first = None
    for container in (*CONTAINERS.values(), read_only):
        given = container(X)
        model = make(reference=reference).fit(given)
        assert model.predict(given).tolist() == model.labels_.tolist()
        assert (model.fit_predict(given) == model.labels_).all()
        assert len(np.unique(model.labels_)) > 1
        leaves = model.apply(given)
        assert set(leaves.tolist()) <= set(model.tree_.leaves.tolist())
        first = first or bits(model)
        assert bits(model) == first


@all_models
@pytest.mark.parametrize(
    "dtype", [np.float16, np.int8, np.int32, np.uint8, np.uint64, np.bool_, np.longdouble]
)
def test_other_numbers_count_as_float64(make, dtype):
    X = np.abs(np.round(blobs(std=1)[0]))
    X = (X > 5).astype(dtype) if dtype == np.bool_ else X.astype(dtype)
    reference = np.unique(X.astype(float), axis=0)[[0, -1, 5]]
    model = make(reference=reference).fit(X)
    same = make(reference=reference).fit(X.astype(np.float64))
    assert bits(model) == bits(same)
    assert model.predict(X).tolist() == model.labels_.tolist()


def test_float32_columns_are_compared_as_float64():
    """Neighbours in float32 with a threshold between them that float32 has not."""
    low = np.float32(0.1)
    high = np.nextafter(low, np.float32(1))
    X = np.array([[low], [high]] * 4, dtype=np.float32)
    model = tc.IMM(reference=np.array([0, 1] * 4)).fit(X)
    threshold = model.tree_.threshold[0]
    assert float(low) < threshold < float(high)
    assert np.float32(threshold) in (low, high)
    assert model.labels_.tolist() == [0, 1] * 4
    assert model.predict(X).tolist() == [0, 1] * 4
    assert model.predict(pl.DataFrame({"x0": X[:, 0]}).to_numpy()).tolist() == [0, 1] * 4
    frame = pl.DataFrame({"x0": X[:, 0]})
    assert frame.select(model.to_polars())["cluster"].to_list() == [0, 1] * 4


def test_neighbouring_doubles_are_told_apart():
    for a in (1.0, -1.0, 1e8, 1e-100, 1e150, -1e150):
        b = np.nextafter(a, np.inf)
        X = np.array([[a], [b], [a], [b]])
        model = tc.IMM(reference=np.array([0, 1, 0, 1])).fit(X)
        assert model.labels_.tolist() == model.predict(X).tolist() == [0, 1, 0, 1], a


# ---- the same bits ------------------------------------------------------------------------


@all_models
@both_criteria
@pytest.mark.parametrize("scale", [None, "standard"])
def test_same_bits_for_every_number_of_threads(make, criterion, scale):
    X, _ = blobs(3000, 7, 6)
    X[:, 3] = np.round(X[:, 3])
    X[7, 2] = 1e8
    labels = KMeans(6, n_init=1, random_state=0).fit_predict(np.delete(X, 2, axis=1))
    w = np.random.default_rng(0).uniform(0.1, 3, 3000)
    options = {"criterion": criterion, "scale": scale}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "[0-9]+% of the rows are nearer", UserWarning)
        fits = [
            bits(make(reference=labels, n_jobs=n_jobs, **options).fit(X, sample_weight=w))
            for n_jobs in (1, 2, 3, 1, -1)
        ]
        assert all(fit == fits[0] for fit in fits)


@all_models
def test_same_labels_for_every_random_state_that_is_the_same(make):
    X, _ = blobs()
    first = make(n_clusters=4, random_state=3, n_jobs=1).fit(X)
    again = make(n_clusters=4, random_state=3, n_jobs=2).fit(X)
    assert bits(first) == bits(again)
    assert bits(first) == bits(clone(first).fit(X))
    assert bits(first) == bits(first.fit(X))


# ---- reference= ---------------------------------------------------------------------------


@all_models
@both_criteria
def test_reference_none_makes_its_own_clusters(make, criterion):
    X, labels = blobs(std=0.5)
    model = make(n_clusters=5, criterion=criterion, random_state=0).fit(X)
    assert model.classes_.tolist() == [0, 1, 2, 3, 4]
    pairs = set(zip(labels.tolist(), model.labels_.tolist(), strict=True))
    assert len(pairs) == 5  # far clusters are found again
    assert model.cost_ratio_ == pytest.approx(1, abs=1e-9)
    assert model.tree_.mistakes[model.tree_.leaves].sum() == 0


def test_reference_none_means_eight_clusters():
    X, _ = blobs()
    assert len(tc.IMM(random_state=0).fit(X).classes_) == 8
    assert tc.ExKMC(random_state=0, max_leaves=9).fit(X).n_leaves_ == 9


@all_models
def test_fitted_and_unfitted_estimators(make):
    X, _ = blobs()
    solver = KMeans(5, n_init=1, random_state=0)
    labels = solver.fit_predict(X)
    fitted = make(reference=solver).fit(X)
    by_labels = make(reference=labels).fit(X)
    assert fitted.classes_.tolist() == [0, 1, 2, 3, 4]
    assert oracle.first_difference(fitted.tree_, by_labels.tree_) is None
    centers = solver.cluster_centers_.copy()
    assert fitted.reference_inertia_ == pytest.approx(solver.inertia_, rel=1e-9)

    unfitted = KMeans(5, n_init=1, random_state=0)
    model = make(reference=unfitted).fit(X)
    assert oracle.first_difference(model.tree_, fitted.tree_) is None
    with pytest.raises(NotFittedError):
        unfitted.predict(X)  # a clone was fitted
    assert (solver.cluster_centers_ == centers).all()

    batches = MiniBatchKMeans(5, n_init=1, random_state=0).fit(X)
    model = make(reference=batches).fit(X)
    assert model.n_leaves_ >= 2 and len(model.classes_) == 5


def test_fitted_estimator_of_other_rows_predicts():
    X, _ = blobs()
    solver = KMeans(5, n_init=1, random_state=0).fit(X[:400])
    model = tc.IMM(reference=solver).fit(X)
    labels = tc.IMM(reference=solver.predict(X)).fit(X)
    assert len(model.labels_) == 600
    assert model.classes_.tolist() == labels.classes_.tolist()
    # The solver's centers, not the means of all rows.
    D = oracle.squared_costs(X, solver.cluster_centers_)
    assert model.reference_inertia_ == pytest.approx(D.min(axis=1).sum(), rel=1e-9)


@pytest.mark.parametrize("fitted", [True, False])
@pytest.mark.parametrize("container", ["polars", "lazy", "pandas"])
def test_estimators_as_reference_of_frames(container, fitted):
    X, _ = blobs()
    frame = CONTAINERS[container](X)
    solver = KMeans(4, n_init=1, random_state=0)
    named = pl.DataFrame(X, schema=list("abcd"))
    expected = tc.IMM(reference=clone(solver).fit(named[:300] if fitted else named)).fit(named)
    model = tc.IMM(reference=solver.fit(named[:300]) if fitted else solver).fit(frame)
    assert model.tree_ == expected.tree_


def test_estimator_without_centers_gives_its_labels():
    X, _ = blobs(std=0.5)
    solver = AgglomerativeClustering(5).fit(X)
    model = tc.IMM(reference=solver).fit(X)
    assert model.labels_.tolist() == solver.labels_.tolist()
    with pytest.raises(ValueError, match=r"Clustering has 600 labels_ for the 50 rows"):
        tc.IMM(reference=solver).fit(X[:50])


def test_cluster_in_an_embedding_explain_in_the_columns():
    X, _ = blobs(std=0.5)
    embedding = X[:, :2] * 10
    solver = KMeans(5, n_init=3, random_state=0).fit(embedding)
    model = tc.IMM(reference=solver).fit(X)  # centers of another width: the means count
    assert model.cluster_centers_.shape == (5, 4)
    assert model.labels_.tolist() == solver.labels_.tolist()


@all_models
def test_labels_of_any_integers_and_strings(make):
    X, codes = blobs(std=0.5)
    plain = make(reference=codes).fit(X)
    names = np.array(["pear", "apple", "fig", "Éclair", "z z"])
    for reference, classes in (
        (codes * 7 - 5000, [-5000, -4993, -4986, -4979, -4972]),
        ((codes * 7 - 5000).astype(float), [-5000, -4993, -4986, -4979, -4972]),
        (codes.tolist(), [0, 1, 2, 3, 4]),
        (pl.Series(codes), [0, 1, 2, 3, 4]),
        (pd.Series(codes, index=np.arange(600) + 9), [0, 1, 2, 3, 4]),
        (codes.astype(np.uint8), [0, 1, 2, 3, 4]),
    ):
        model = make(reference=reference).fit(X)
        assert model.classes_.tolist() == classes
        assert model.labels_.tolist() == [classes[c] for c in plain.labels_]
        assert model.predict(X).tolist() == model.labels_.tolist()
        assert oracle.first_difference(model.tree_, plain.tree_) is None
    for reference in (names[codes], names[codes].astype(object), names[codes].tolist()):
        model = make(reference=reference).fit(X)
        assert model.classes_.tolist() == sorted(names.tolist())
        assert model.labels_.tolist() == names[codes].tolist()
        assert model.tree_.classes == tuple(sorted(names.tolist()))
    two = make(reference=codes > 2).fit(X)
    assert two.labels_.tolist() == (codes > 2).astype(int).tolist()


@all_models
def test_noise_is_left_out_of_the_fit(make):
    X, codes = blobs(std=0.7)
    noise = np.arange(600) % 4 == 0
    X[noise] += 1000 * np.random.default_rng(0).normal(size=(150, 4))
    labels = np.where(noise, -1, codes)
    model = make(reference=labels).fit(X)
    without = make(reference=codes[~noise]).fit(X[~noise])
    assert model.tree_ == without.tree_
    assert model.inertia_ == without.inertia_
    assert model.classes_.tolist() == [0, 1, 2, 3, 4]
    assert model.tree_.n_node_samples[0] == 450
    assert len(model.labels_) == 600 and -1 not in model.labels_
    assert model.labels_.tolist() == model.predict(X).tolist()
    assert (model.labels_ == labels)[~noise].mean() > 0.97


def test_hdbscan_labels_with_noise():
    X, _ = blobs(std=0.7)
    X[::50] += np.random.default_rng(1).uniform(-30, 30, (12, 4))
    labels = HDBSCAN(min_cluster_size=20, copy=True).fit_predict(X)
    assert -1 in labels
    model = tc.ExKMC(reference=labels, max_leaves=10).fit(X)
    assert model.classes_.tolist() == sorted(set(labels.tolist()) - {-1})
    own = labels >= 0
    assert (model.labels_ == labels)[own].mean() > 0.95


def test_labels_that_distances_cannot_follow_are_warned_of():
    X, _ = blobs()
    parity = np.arange(600) % 2
    with pytest.warns(UserWarning, match=r"^[0-9]+% of the rows are nearer .* KernelExpand"):
        model = tc.ExKMC(reference=parity, max_leaves=6).fit(X)
    assert model.n_leaves_ == 6


def test_warnings_point_at_the_line_that_called_fit():
    X, _ = blobs()
    with pytest.warns(UserWarning, match="KernelExpand") as caught:
        tc.ExKMC(reference=np.arange(600) % 2, max_leaves=6).fit(X)
    assert caught[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match="distinct") as caught:
        tc.IMM(n_clusters=2).fit(np.zeros((5, 2)))
    assert caught[0].filename == __file__


CENTERS = np.arange(12.0).reshape(3, 4)
X_SMALL = np.vstack([CENTERS, CENTERS + 0.25, CENTERS - 0.25])


@all_models
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"reference": CENTERS, "n_clusters": 4}, ValueError, r"n_clusters=4.*has 3 clusters"),
        (
            {"reference": np.arange(9) % 3, "n_clusters": 2},
            ValueError,
            r"n_clusters=2.*has 3 clusters",
        ),
        ({"reference": CENTERS[:, :3]}, ValueError, r"3 columns.*X has 4"),
        ({"reference": CENTERS[:0]}, ValueError, r"0 rows.*at least 1"),
        ({"reference": np.zeros(8, int)}, ValueError, r"8 labels.*X has 9 rows"),
        ({"reference": np.zeros((2, 3, 4))}, ValueError, r"3 dimensions"),
        ({"reference": 5}, ValueError, r"0 dimensions"),
        ({"reference": np.full(9, -1)}, ValueError, r"marks 9 of 9 rows as noise"),
        ({"reference": np.full((3, 4), np.nan)}, ValueError, r"NaN"),
        ({"reference": np.array([0.5] * 9)}, ValueError, r"Row 0 holds .*0\.5"),
        ({"reference": np.array([0, np.nan] + [1] * 7)}, ValueError, r"Row 1 holds .*nan"),
        ({"reference": ["a"] * 8 + [None]}, TypeError, r"has no label in row 8"),
        ({"reference": np.array([["a"] * 4])}, TypeError, r"must hold numbers"),
        ({"reference": CENTERS[[0, 1, 2, 1]]}, ValueError, r"clusters 1 and 3 are equal"),
        ({"n_clusters": 10, "criterion": "kmeans"}, ValueError, r"9 .*n_clusters=10"),
        ({"n_clusters": 0}, ValueError, r"n_clusters.*\[1, \d+\].*Got 0"),
        ({"n_clusters": -3}, ValueError, r"Got -3"),
        ({"n_clusters": 2.5}, ValueError, r"Got 2\.5"),
        ({"criterion": "ward"}, ValueError, r"criterion.*'ward'"),
        ({"scale": "median"}, ValueError, r"scale.*'median'"),
        ({"n_clusters": 3, "n_jobs": 0}, ValueError, r"n_jobs.*Got 0"),
        ({"random_state": "x"}, ValueError, r"random_state.*'x'"),
    ],
)
def test_refused_parameters(make, options, error, message):
    with pytest.raises(error, match=message):
        make(**options).fit(X_SMALL)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 5, "max_leaves": 4}, r"max_leaves=4 .*n_clusters=5"),
        ({"reference": CENTERS, "max_leaves": 2}, r"max_leaves=2 .*n_clusters=3"),
        ({"max_leaves": 7}, r"max_leaves=7 .*n_clusters=8"),
        ({"max_leaves": 0}, r"max_leaves.*Got 0"),
        ({"n_clusters": 10}, r"n_samples=9 .*n_clusters=10"),
        ({"max_depth": 0}, r"max_depth.*Got 0"),
        ({"min_samples_leaf": 0}, r"min_samples_leaf.*Got 0"),
        ({"base_tree": "cart"}, r"base_tree.*'cart'"),
        ({"cuts": "oblique"}, r"cuts.*'oblique'"),
    ],
)
def test_refused_limits(options, message):
    with pytest.raises(ValueError, match=message):
        tc.ExKMC(**options).fit(X_SMALL)


def test_labels_with_equal_means_are_named():
    X = np.array([[0.0], [2.0], [1.0], [1.0]])
    with pytest.raises(ValueError, match=r"clusters 'a' and 'b' are equal"):
        tc.IMM(reference=["a", "a", "b", "b"]).fit(X)


# ---- scale, medians -----------------------------------------------------------------------


def reached(tree, leaves):
    """Which node each row passes, from the leaves the rows end in."""
    passed = np.zeros((len(leaves), tree.n_nodes), dtype=bool)
    passed[np.arange(len(leaves)), leaves] = True
    for node in range(tree.n_nodes - 1, 0, -1):
        passed[:, tree.parent[node]] |= passed[:, node]
    return passed


@all_models
@both_criteria
def test_standard_scale_equals_standardised_data(make, criterion):
    X, _ = blobs()
    X = X * [1, 1000, 0.001, 1] + [0, 5e4, 0, 1]
    mean, std = X.mean(axis=0), X.std(axis=0)
    Z = (X - mean) / std
    centers = X[[0, 100, 200, 300, 400]]
    scaled = make(reference=centers, scale="standard", criterion=criterion).fit(X)
    plain = make(reference=(centers - mean) / std, criterion=criterion).fit(Z)
    mine, theirs = scaled.tree_, plain.tree_
    for name in ("children_left", "children_right", "feature", "kind", "cluster"):
        assert getattr(mine, name).tolist() == getattr(theirs, name).tolist()
    assert scaled.labels_.tolist() == plain.labels_.tolist()
    assert scaled.apply(X).tolist() == plain.apply(Z).tolist()
    assert scaled.inertia_ == pytest.approx(plain.inertia_, rel=1e-9)
    np.testing.assert_allclose(scaled.scale_, std, rtol=1e-12)
    np.testing.assert_allclose(scaled.cluster_centers_, plain.cluster_centers_ * std + mean, 1e-9)
    # Thresholds are in the columns' own units: mapped, they cut the scaled rows alike.
    inner = np.flatnonzero(mine.kind == 1)
    scaled_reach = reached(mine, scaled.apply(X))
    for node in inner:
        f = mine.feature[node]
        mapped = (mine.threshold[node] - mean[f]) / std[f]
        here = np.flatnonzero(scaled_reach[:, node])
        assert ((Z[here, f] <= mapped) == (Z[here, f] <= theirs.threshold[node])).all()
    assert scaled.score(X) == pytest.approx(-scaled.inertia_, rel=1e-9)


def test_scale_changes_what_matters():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 200)
    X = np.column_stack([rng.normal(0, 1e5, 400), codes * 10 + rng.normal(0, 0.1, 400)])
    scaled = tc.IMM(n_clusters=2, scale="standard", random_state=0).fit(X)
    assert scaled.tree_.feature[0] == 1 and 1 < scaled.tree_.threshold[0] < 9
    assert tc.IMM(n_clusters=2, random_state=0).fit(X).tree_.feature[0] == 0


@all_models
def test_medians_are_the_centers(make):
    X, codes = blobs()
    model = make(reference=codes, criterion="kmedians").fit(X)
    for label in np.unique(model.labels_):
        own = np.sort(X[model.labels_ == label], axis=0)
        lower = own[(len(own) - 1) // 2]
        np.testing.assert_allclose(model.cluster_centers_[label], lower)
    cost = np.abs(X - model.cluster_centers_[model.labels_]).sum()
    assert model.inertia_ == pytest.approx(cost, rel=1e-9)
    assert model.score(X) == pytest.approx(-cost, rel=1e-9)


# ---- NaN, strings, shapes: the behaviour table ---------------------------------------------


def with_cell(value):
    X = blobs()[0]
    X[17, 2] = value
    X[30, 2] = value
    return X


BAD_FITS = {
    "inf": (with_cell(np.inf), None, {}),
    "strings": (pl.DataFrame({"a": ["x"]}), None, {}),
    "weights": (blobs()[0], np.full(600, -1.0), {}),
    "few weights": (blobs()[0], np.ones(7), {}),
    "no weight": (blobs()[0], np.zeros(600), {}),
    "k": (blobs()[0][:2], None, {"reference": None}),
    "reference": (blobs()[0], None, {"reference": np.zeros(3, int)}),
    "twins": (blobs()[0], None, {"reference": np.zeros((3, 4))}),
    "criterion": (blobs()[0], None, {"criterion": "x"}),
}


@all_models
@pytest.mark.parametrize("bad", BAD_FITS.values(), ids=BAD_FITS)
def test_a_failed_fit_leaves_the_estimator_as_it_was(make, bad):
    X, weight, params = bad
    names = pl.DataFrame(blobs()[0], schema=list("abcd"))
    model = make(n_clusters=3, reference=blobs()[0][[0, 100, 200]]).fit(names)
    before, held = bits(model), set(vars(model))
    model.set_params(**params)
    with pytest.raises((ValueError, TypeError)):
        model.fit(X, sample_weight=weight)
    assert bits(model) == before and set(vars(model)) == held
    assert model.feature_names_in_.tolist() == list("abcd")
    fresh = make(n_clusters=3, **params)
    with pytest.raises((ValueError, TypeError)):
        fresh.fit(X, sample_weight=weight)
    assert not [name for name in vars(fresh) if name.endswith("_")]


# ---- small and degenerate data ------------------------------------------------------------


@all_models
@both_criteria
@pytest.mark.parametrize("scale", [None, "standard"])
@pytest.mark.parametrize(
    ("X", "found"),
    [
        (np.zeros((10, 3)), 1),
        (np.repeat([[0.0, 1.0], [5.0, 1.0]], 10, axis=0), 2),
        (np.full((10, 2), 1e8), 1),
        (np.repeat([[1e8, 1.0], [1e8 + 1, 1.0]], 10, axis=0), 2),
    ],
    ids=["equal", "two rows", "equal far", "two rows far"],
)
def test_as_many_clusters_as_exist(make, criterion, scale, X, found):
    model = make(n_clusters=4, criterion=criterion, scale=scale, random_state=0)
    with pytest.warns(ConvergenceWarning, match=rf"{found} .*n_clusters=4") as caught:
        model.fit(X)
    assert len(caught) == 1
    assert model.n_leaves_ == found and len(model.classes_) == found
    assert len(np.unique(model.labels_)) == found
    assert model.inertia_ == 0 and model.cost_ratio_ == 1
    np.testing.assert_allclose(np.unique(model.cluster_centers_, axis=0), np.unique(X, axis=0))
    assert model.predict(X).tolist() == model.labels_.tolist()
    assert np.isfinite(model.feature_importances_).all()
    assert str(model.tree_) and model.explain(X[:1])[0].startswith("cluster ")


@all_models
@both_criteria
def test_one_row_and_one_cluster(make, criterion):
    model = make(n_clusters=1, criterion=criterion, random_state=0).fit([[3.0, 4.0]])
    assert model.n_leaves_ == 1 and model.labels_.tolist() == [0]
    assert model.cluster_centers_.tolist() == [[3, 4]]
    assert model.inertia_ == 0 and model.cost_ratio_ == 1
    assert model.cost_path_.rows() == [(1, 0.0, 0.0)]
    assert model.tree_.max_depth == 0
    X, _ = blobs()
    model = make(n_clusters=1, criterion=criterion, random_state=0).fit(X)
    assert model.n_leaves_ == 1 and set(model.labels_) == {0}
    assert model.feature_importances_.tolist() == [0, 0, 0, 0]
    assert model.predict(X + 1000).tolist() == [0] * 600


@all_models
@pytest.mark.parametrize("scale", [None, "standard"])
def test_constant_columns_change_nothing(make, scale):
    X, _ = blobs()
    centers = X[[0, 100, 200, 300]]
    more = np.column_stack([np.full(600, 7.0), X, np.full(600, 1e8), np.zeros(600)])
    wide = np.column_stack([np.full(4, 7.0), centers, np.full(4, 1e8), np.zeros(4)])
    plain = make(reference=centers, scale=scale).fit(X)
    model = make(reference=wide, scale=scale).fit(more)
    assert model.labels_.tolist() == plain.labels_.tolist()
    inner = plain.tree_.kind != 0
    assert (model.tree_.feature[inner] == plain.tree_.feature[inner] + 1).all()
    np.testing.assert_array_equal(model.tree_.threshold, plain.tree_.threshold)
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=1e-9)


@all_models
@pytest.mark.filterwarnings("ignore:Only 2 of the 3 clusters have rows in the tree")
def test_limits_are_kept(make):
    X, _ = blobs()
    if isinstance(make(), tc.IMM):
        for name in ("max_depth", "min_samples_leaf", "max_leaves"):
            with pytest.raises(TypeError, match=name):
                tc.IMM(**{name: 3})
        return
    options = {"reference": X[[0, 100, 200]], "base_tree": None, "max_leaves": 30}
    whole = make(**options).fit(X)
    for depth in (1, 2, 3):
        model = make(max_depth=depth, **options).fit(X)
        assert model.tree_.max_depth == min(depth, whole.tree_.max_depth)
    for least in (2, 10, 100):
        model = make(min_samples_leaf=least, **options).fit(X)
        assert model.tree_.n_node_samples.min() >= least
        assert model.n_leaves_ >= 2


# ---- Ctrl-C, progress ---------------------------------------------------------------------

INTERRUPTED = """
import numpy as np
import treeclust_rs as tc

X = np.random.default_rng(0).normal(size=(20_000, 10))
centers = X[:60].copy()
model = tc.ExKMC(max_leaves=15_000, cuts="interval", reference=centers, n_jobs=1, verbose=1)
if FITTED_BEFORE:
    model.set_params(max_leaves=60, verbose=0).fit(X)
    model.set_params(max_leaves=15_000, verbose=1)
before = dict(vars(model))
try:
    model.fit(X)
except KeyboardInterrupt:
    assert vars(model).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(model).items())
    assert hasattr(model, "tree_") == FITTED_BEFORE
    again = model.set_params(max_leaves=5, reference=X[:3], verbose=0).fit(X)
    assert again.n_leaves_ == 5
    print("interrupted and well")
else:
    print("finished")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to another process")
@pytest.mark.parametrize("fitted_before", [False, True])
def test_ctrl_c_ends_a_long_fit_and_leaves_the_estimator_as_it_was(fitted_before):
    line, out, err = interrupt(INTERRUPTED.replace("FITTED_BEFORE", str(fitted_before)))
    assert line.startswith("[ExKMC] 20,000 rows, "), line + err
    assert out == "interrupted and well", err


@all_models
def test_verbose_tells_rows_leaves_cost_and_time(make, capfd):
    X, _ = blobs()
    model = make(reference=X[[0, 100, 200]], verbose=1).fit(X)
    told = capfd.readouterr()
    assert told.out == ""
    last = told.err.strip().splitlines()[-1]
    name = type(model).__name__
    cost = f"{model.cost_path_['cost'][-1]:.6g}"
    assert last.startswith(f"[{name}] 600 rows, {model.n_leaves_} leaves, surrogate cost {cost}, ")
    assert last.endswith(" s")
    assert "gain -" not in told.err
    make(reference=X[[0, 100, 200]]).fit(X)
    told = capfd.readouterr()
    assert told.out == told.err == ""


# ---- scikit-learn's company ---------------------------------------------------------------


@all_models
def test_pipeline_clone_and_grid_search(make):
    X, _ = blobs()
    pipeline = make_pipeline(StandardScaler(), make(n_clusters=4, random_state=0, n_jobs=1))
    labels = pipeline.fit_predict(X)
    assert labels.tolist() == pipeline.predict(X).tolist()
    direct = make(n_clusters=4, random_state=0).fit(StandardScaler().fit_transform(X))
    assert direct.labels_.tolist() == labels.tolist()
    copied = clone(pipeline[-1])
    assert not hasattr(copied, "tree_")
    assert copied.get_params() == pipeline[-1].get_params()
    search = GridSearchCV(make(random_state=0, n_jobs=1), {"n_clusters": [2, 3, 5]}, cv=2).fit(X)
    assert search.best_params_ == {"n_clusters": 5}  # the score is minus the cost
    assert (np.diff(search.cv_results_["mean_test_score"]) > 0).all()
    assert search.predict(X).tolist() == search.best_estimator_.labels_.tolist()


def test_grid_search_over_leaves_in_a_pipeline_with_frames():
    frame = pl.DataFrame(load_iris().data, schema=["sl", "sw", "pl", "pw"])
    pipeline = make_pipeline(tc.ExKMC(n_clusters=3, random_state=0, n_jobs=1))
    search = GridSearchCV(pipeline, {"exkmc__max_leaves": [3, 5, 8]}, cv=3)
    search.fit(frame.to_pandas())
    assert search.best_estimator_[-1].feature_names_in_.tolist() == ["sl", "sw", "pl", "pw"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: tc.ExKMC(3, max_leaves=4, reference=KMeans(3, random_state=0)),
        lambda: tc.KernelExpand(3, gamma=0.1, reference=KMeans(3, random_state=0)),
        lambda: tc.Kauri(3),
        lambda: tc.KernelKMeans(3, random_state=0),
        lambda: tc.ObliqueTree(3, init=tc.IMM(3, random_state=0), random_state=0),
    ],
)
def test_fit_collects_a_lazy_frame_once(make):
    X, _ = blobs()
    frame, collections = pl.DataFrame(X), []

    def count(batch):
        collections.append(len(batch))
        return batch

    model = make().fit(frame.lazy().map_batches(count))
    assert collections == [len(X)]
    assert (model.labels_ == make().fit(frame).labels_).all()


# In a process of its own: loky keeps its workers, and tests of minutes in between end them.
IN_WORKERS = """
import sys
import joblib
import numpy as np
import treeclust_rs as tc
from treeclust_rs._base.clusterer import effective_n_jobs

X = np.random.default_rng(0).normal(size=(300, 4))

def fit(X):
    model = tc.ExKMC(max_leaves=8, reference=X[[0, 100, 200]]).fit(X)
    tree = tc.export.tree_to_dict(model.tree_)
    return effective_n_jobs(None), effective_n_jobs(2), tree, model.labels_.tolist()

own = fit(X)
assert own[0] == joblib.cpu_count()
parallel = joblib.Parallel(n_jobs=2, backend=sys.argv[1])
for others in parallel(joblib.delayed(fit)(X) for _ in range(3)):
    assert others == (1, 2, *own[2:])
print("all are alike")
"""


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_one_thread_inside_joblib_workers(backend, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert output_of(IN_WORKERS, backend).strip() == "all are alike"


FORKED = """
import os
import numpy as np
import treeclust_rs as tc

X = np.random.default_rng(0).normal(size=(20_000, 6))
model = tc.ExKMC(max_leaves=30, reference=X[:5], n_jobs=2)
labels = model.fit(X).labels_
child = os.fork()
same = np.array_equal(model.fit(X).labels_, labels)
if child == 0:
    os._exit(0 if same else 1)
assert same and os.waitpid(child, 0)[1] == 0
print("both are well")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_fits_with_threads_of_its_own():
    with start(FORKED) as process:
        out, err = process.communicate(timeout=120)
    assert out.strip() == "both are well", err


def test_fits_at_the_same_time_from_several_threads():
    X = np.random.default_rng(0).normal(size=(20_000, 6))
    model = tc.ExKMC(max_leaves=30, reference=X[:5], n_jobs=2)
    alone = bits(clone(model).fit(X))
    together = joblib.Parallel(n_jobs=4, backend="threading")(
        joblib.delayed(lambda: bits(clone(model).fit(X)))() for _ in range(12)
    )
    assert all(others == alone for others in together)


def test_calls_may_share_threads_also_at_the_same_time():
    data = np.random.default_rng(0).normal(size=(30_000, 6))
    own = _engine.column_units(data, None, True, 2)
    threads = _engine.Threads(2)
    assert threads.n_jobs == 2
    shared = joblib.Parallel(n_jobs=4, backend="threading")(
        joblib.delayed(_engine.column_units)(data, None, True, threads) for _ in range(50)
    )
    assert all(np.array_equal(units, own) for units in shared)


# ---- model files --------------------------------------------------------------------------

NAMES = ["größe in m²", 'with "quotes" \\ and {braces}', "line\nbreak\ttab", "^x.*$ 💧"]


@all_models
@both_criteria
@pytest.mark.parametrize("labels", ["integers", "strings"])
def test_saved_models_load_alike(make, criterion, labels, tmp_path):
    X, codes = blobs()
    frame = pl.DataFrame(X, schema=NAMES)
    words = np.array(["b", "a", "Ünïcode 💧", 'q"\\', " "])
    reference = words[codes] if labels == "strings" else codes - 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = make(reference=reference, criterion=criterion, scale="standard").fit(frame)
    path = tmp_path / "model.json"
    path.write_text("old")
    model.save(path)
    assert os.listdir(tmp_path) == ["model.json"]
    other = tc.load(path)
    assert type(other) is type(model)
    assert other.tree_ == model.tree_
    assert other.classes_.tolist() == model.classes_.tolist()
    assert other.feature_names_in_.tolist() == NAMES
    for name in ("cluster_centers_", "scale_", "feature_importances_"):
        assert getattr(other, name).tobytes() == getattr(model, name).tobytes()
    for name in ("inertia_", "reference_inertia_", "cost_ratio_", "n_leaves_", "n_features_in_"):
        assert getattr(other, name) == getattr(model, name)
    assert other.cost_path_.equals(model.cost_path_)
    assert other.predict(frame).tolist() == model.labels_.tolist()
    assert other.explain(frame[:5]) == model.explain(frame[:5])
    assert other.score(frame) == model.score(frame)
    assert str(other.tree_) == str(model.tree_)
    assert other.tree_.rules().equals(model.tree_.rules())
    given, kept = model.get_params(), other.get_params()
    assert kept == given | {"reference": None, "n_clusters": model.n_clusters_}
    least = max(model.tree_.n_base_leaves, 2)
    assert other.truncate(least).tree_ == model.truncate(least).tree_
    again = tmp_path / "again.json"
    other.save(again)
    assert again.read_text("utf-8") == path.read_text("utf-8")
    assert tc.load(str(path)).tree_ == model.tree_
    # What is loaded can be fitted again, without the reference that no file holds.
    other.set_params(n_clusters=3, random_state=0)
    with pytest.warns(UserWarning, match="which does not hold its reference"):
        assert other.fit(X).labels_.shape == (600,)


def test_files_hold_plain_parameters_only(tmp_path):
    X, codes = blobs()
    model = tc.ExKMC(reference=codes, max_leaves=8, random_state=np.random.RandomState(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X)
    model.save(tmp_path / "model.json")
    other = tc.load(tmp_path / "model.json")
    assert other.max_leaves == 8 and other.reference is None and other.random_state is None
    assert not hasattr(other, "labels_")


def test_numpy_numbers_are_plain_parameters(tmp_path):
    X, _ = blobs()
    numpy_params = tc.ExKMC(n_clusters=np.int64(3), max_leaves=np.int64(5), random_state=0).fit(X)
    numpy_params.save(tmp_path / "model.json")
    other = tc.load(tmp_path / "model.json")
    assert other.n_clusters == 3 and other.max_leaves == 5


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path):
    X, _ = blobs()
    model = tc.IMM(n_clusters=3, random_state=0).fit(X)
    with pytest.raises(FileNotFoundError):
        model.save(tmp_path / "missing" / "model.json")
    assert os.listdir(tmp_path) == []
    with pytest.raises(FileNotFoundError):
        tc.load(tmp_path / "model.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"bytes\.json.*UTF-8"):
        tc.load(tmp_path / "bytes.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model: model.update(model="os.system"), "os.system"),
        (lambda model: model["params"].update(n_clusters=0), "n_clusters"),
        (lambda model: model["params"].update(nonsense=1), "nonsense"),
        (lambda model: model["params"].update(criterion=[]), "criterion"),
        (lambda model: model["fitted"].update(inertia_="x"), "inertia_"),
        (lambda model: model["fitted"].update(inertia_=[1.0]), "inertia_"),
        (lambda model: model["fitted"].update(__class__=1), "__class__"),
        (lambda model: model["fitted"].update(cluster_centers_=[[0.0]]), "cluster_centers_"),
        (lambda model: model["fitted"].update(scale_=[0.0] * 4), "scale_"),
        (lambda model: model["fitted"].update(scale_=[-1.0] * 4), "scale_"),
        (lambda model: model["fitted"].clear(), "fitted|inertia_|cluster_centers_"),
        (lambda model: model["fitted"].update(_cost_path=[]), "_cost_path"),
        (lambda model: model["fitted"].update(_cost_path=[1.0] * 9), "_cost_path"),
        (lambda model: model["fitted"]["_cost_path"].reverse(), "a _cost_path that rises or is"),
        (lambda model: model["fitted"].update(inertia_=-1.0), "has a negative inertia"),
        (lambda model: model["fitted"].pop("reference_inertia_"), "lacks reference_inertia_"),
        (lambda model: model.update(params=3), "params"),
        (lambda model: model.pop("tree"), "tree"),
    ],
)
def test_bad_model_files_are_refused(change, message, tmp_path):
    X, _ = blobs()
    path = tmp_path / "model.json"
    tc.ExKMC(max_leaves=5, reference=X[[0, 100, 200]]).fit(X).save(path)
    model = json.loads(path.read_text())
    change(model)
    path.write_text(json.dumps(model))
    with pytest.raises(ValueError, match=message):
        tc.load(path)


@pytest.mark.parametrize(
    "name",
    [
        "CenterModel",
        "CentersTree",
        "CostTree",
        "GrownClusterer",
        "GrownKernelTree",
        "KernelModel",
        "KernelTree",
        "LabelsTree",
        "SavedEstimator",
        "TreeClusterer",
    ],
)
def test_abstract_bases_are_unknown_models(name, tmp_path):
    X, _ = blobs()
    path = tmp_path / "model.json"
    tc.ExKMC(max_leaves=5, reference=X[[0, 100, 200]]).fit(X).save(path)
    model = json.loads(path.read_text())
    path.write_text(json.dumps(model | {"model": name}))
    with pytest.raises(ValueError, match=f"holds a '{name}'; known are ") as raised:
        tc.load(path)
    # Other tests of the same process may have classes of their own, which are known, too.
    known = set(str(raised.value).partition("known are ")[2].rstrip(".").split(", "))
    assert known >= {each for each in tc.__all__ if isinstance(getattr(tc, each), type)} - {
        "ClusterTree"
    }
    assert name not in known


# ---- reading the tree ---------------------------------------------------------------------


@all_models
@pytest.mark.parametrize("engine", ["eager", "in-memory", "streaming"])
@pytest.mark.parametrize(
    "dtype", [pl.Float64, pl.Float32, pl.Int16, pl.UInt8], ids=["f64", "f32", "i16", "u8"]
)
def test_polars_expression_equals_predict(make, engine, dtype):
    X, codes = blobs()
    X = X - X.min() + 1
    frame = pl.DataFrame(X, schema=["a", "b", "größe", "^d$"]).cast(dtype)
    names = np.array(["one", "two", "three", "four", "five"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        models = [make(reference=codes).fit(frame), make(reference=names[codes]).fit(frame)]
    for model in models:
        expression = model.to_polars().alias("cluster")
        if engine == "eager":
            out = frame.with_columns(expression)
        else:
            out = frame.lazy().with_columns(expression).collect(engine=engine)
        assert out["cluster"].to_list() == model.predict(frame).tolist() == model.labels_.tolist()


@all_models
def test_explanations_are_true_and_short(make):
    frame = pl.DataFrame(load_iris().data, schema=["sl", "sw", "pl", "pw"])
    model = make(n_clusters=3, random_state=0).fit(frame)
    lines = model.explain(frame)
    assert len(lines) == 150
    for line, label, row in zip(lines, model.labels_, frame.iter_rows(named=True), strict=True):
        head, conditions = line.split(": ", 1)
        assert head == f"cluster {label}"
        for condition in conditions.split(" and "):
            assert eval(condition.replace(" = ", " == "), {}, row), line
    assert model.explain(frame[:1]) == lines[:1]


@all_models
@both_criteria
@pytest.mark.parametrize("weighted", [False, True])
def test_score_is_minus_the_inertia_on_the_fitted_rows(make, criterion, weighted):
    X, _ = blobs()
    w = np.random.default_rng(0).integers(0, 4, 600).astype(float) if weighted else None
    for scale in (None, "standard"):
        options = {"criterion": criterion, "scale": scale}
        model = make(reference=X[[0, 100, 200]], **options).fit(X, sample_weight=w)
        assert model.score(X, sample_weight=w) == pytest.approx(-model.inertia_, rel=1e-9)
        far = make(reference=X[[0, 100, 200]] + 1e8, **options).fit(X + 1e8, sample_weight=w)
        assert far.score(X + 1e8, sample_weight=w) == pytest.approx(-far.inertia_, rel=1e-6)


def test_importances_are_shares():
    X, _ = blobs()
    X[:, 2] = 3
    model = tc.ExKMC(n_clusters=4, max_leaves=9, random_state=0).fit(X)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_[2] == 0
    unused = sorted({0, 1, 2, 3} - set(model.tree_.feature[model.tree_.kind != 0].tolist()))
    assert (model.feature_importances_[unused] == 0).all()


# ---- thousands of leaves ------------------------------------------------------------------------


N_LEAVES = repeats(5_000, 20_000)


@pytest.fixture(scope="module")
def large():
    """Rows along a diagonal that belong to eight clusters in random turns."""
    n, k = N_LEAVES * 33 // 20, 8
    rng = np.random.default_rng(0)
    angle = np.arange(k) * 2 * np.pi / k
    # A circle about the diagonal: no cut across the diagonal tells its points apart.
    third = 2 * np.pi / 3
    corners = np.column_stack([np.cos(angle + turn * third) for turn in range(3)])
    X = np.arange(n)[:, None] + 0.01 * corners[rng.integers(0, k, n)]
    centers = n / 2 + 5 * corners
    model = tc.ExKMC(max_leaves=N_LEAVES, cuts="interval", reference=centers).fit(X)
    return X, model


def test_thousands_of_leaves_grow_and_predict(large):
    X, model = large
    assert model.n_leaves_ == N_LEAVES and model.tree_.max_depth > 100
    assert model.predict(X).tolist() == model.labels_.tolist()
    filled = model.tree_.n_node_samples[model.tree_.leaves] > 0
    assert filled.sum() > N_LEAVES - 10  # a base leaf may be empty
    assert len(np.unique(model.apply(X))) == filled.sum()
    cost = model.cost_path_["cost"].to_numpy()
    assert len(cost) == N_LEAVES - 8 + 1 and (np.diff(cost) <= 0).all()
    small = model.truncate(N_LEAVES // 4)
    assert small.n_leaves_ == N_LEAVES // 4
    assert small.predict(X).tolist() == small.labels_.tolist()
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-9)


def test_thousands_of_leaves_are_read_and_moved(large, tmp_path):
    X, model = large
    path = tmp_path / "large.json"
    model.save(path)
    other = tc.load(path)
    assert other.tree_ == model.tree_
    assert (other.predict(X) == model.labels_).all()
    assert pickle.loads(pickle.dumps(model)).tree_ == model.tree_
    text = str(model.tree_)
    assert text.startswith(f"ClusterTree: {N_LEAVES:,} leaves, 8 clusters")
    assert len(text.splitlines()) > 2 * N_LEAVES - 1
    rules = model.tree_.rules()
    assert rules.height == N_LEAVES
    assert rules["n"].sum() == len(X)
    assert len(model.tree_._repr_html_()) > 0
    assert len(model.explain(X[:50])) == 50
    with pytest.raises(ValueError, match="polars"):
        model.to_polars()
