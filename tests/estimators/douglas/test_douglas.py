"""Douglas: fits, hard rules, partial fits, model files, and what it refuses."""

import json
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV

import treeclust_rs as tc
from douglas_models import IRIS, quick, recorded, state, three_blobs
from polars_engines import ENGINES
from treeclust_rs._data.table import read_table
from treeclust_rs.estimators.douglas import search as _search
from treeclust_rs.estimators.douglas.cell_table import CellTable
from treeclust_rs.estimators.douglas.column_bins import _check_n_cells
from treeclust_rs.estimators.douglas.training_rows import TrainingRows, batches
from treeclust_rs.gemini import GEMINIS, MMD, Wasserstein, make_gemini
from treeclust_rs.metrics import kmeans_cost
from treeclust_rs.tree.words import format_share

# ---- fit ----------------------------------------------------------------------------------


@pytest.mark.parametrize("gemini", [name for name in GEMINIS if name != "kl_ovo"])
def test_blobs_are_found_by_the_objectives_that_look_at_rows(gemini):
    X, codes = three_blobs()
    model = quick(gemini=gemini, n_init=3, scale="standard").fit(X)
    assert model.labels_.tolist() == model.predict(X).tolist()
    if make_gemini(gemini).uses_rows:
        assert adjusted_rand_score(model.labels_, codes) > 0.95
        assert {0, 1} <= set(model.active_cut_points_.tolist())
    start = quick(gemini=gemini, scale="standard", max_iter=1, warm_up=0, n_init=1).fit(X)
    assert model.objective_ > start.objective_
    assert np.isfinite(model.weights_).all()


@pytest.mark.parametrize("options", [{"n_cuts": 1}, {"n_cuts": 2, "batch_size": 20}])
def test_training_raises_the_objective(options):
    X, _ = three_blobs(120)
    model = quick(2, warm_up=0, tol=None, max_iter=80, n_init=1, **options).fit(X)
    assert model.loss_curve_[-5:].mean() > 1.5 * model.loss_curve_[0]


def test_attributes_agree():
    X, _ = three_blobs()
    model = quick().fit(X)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (model.predict(X) == p.argmax(axis=1)).all()
    gemini = make_gemini("wasserstein_ova")
    assert model.objective(X) == pytest.approx(gemini.value(p, gemini.affinity(X)))
    assert model.weights_.shape == (8, 3)
    assert model.cut_points_.shape == (3, 1)
    assert model.n_iter_ == len(model.loss_curve_) <= 60
    assert model.classes_.tolist() == [0, 1, 2]
    hard = model.table_.clusters[model.apply(X)]
    assert model.rule_agreement_ == np.mean(hard == model.labels_)


@pytest.mark.parametrize("factor", [1e-9, 1e-3, 100.0, 1000.0, 1e9])
@pytest.mark.parametrize("gemini", ["wasserstein_ova", "mmd_ovo", "mmd2_ova"])
def test_units_of_the_columns_change_nothing(factor, gemini):
    X, codes = three_blobs()
    model = quick(gemini=gemini).fit(X)
    scaled = quick(gemini=gemini).fit(X * factor)
    assert adjusted_rand_score(scaled.labels_, codes) > 0.9
    assert (scaled.labels_ == model.labels_).mean() > 0.98
    np.testing.assert_allclose(scaled.weights_, model.weights_, rtol=1e-3, atol=1e-3)
    assert np.abs(scaled.cut_points_ / factor - model.cut_points_).max() < 0.05


def test_columns_far_from_the_origin():
    X, codes = three_blobs()
    model = quick().fit(X + 1e8)
    assert adjusted_rand_score(model.labels_, codes) > 0.95


@pytest.mark.parametrize("temperature", [1e-6, 1e-3])
@pytest.mark.parametrize("n_cuts", [1, 3])
def test_low_temperatures_cut_inside_the_data(temperature, n_cuts):
    """Cuts hardly move then: they stay at quantiles, which are inside."""
    X, codes = three_blobs()
    model = quick(temperature=temperature, n_cuts=n_cuts, n_init=5).fit(X * 1000)
    assert set(model.labels_.tolist()) == {0, 1, 2}
    assert adjusted_rand_score(model.labels_, codes) > (0.2 if n_cuts == 1 else 0.8)
    assert model.active_cut_points_.tolist() == [0, 1, 2]
    assert np.isfinite(model.weights_).all()
    assert model.rule_agreement_ > 0.98


def test_same_model_for_the_same_seed_and_any_number_of_threads():
    X, _ = three_blobs(150)
    model = quick(n_jobs=1).fit(X)
    assert state(quick(n_jobs=2).fit(X)) == state(model)
    assert state(quick(n_jobs=1).fit(pl.DataFrame(X, schema=["a", "b", "c"]))) == state(model)
    assert state(quick(random_state=np.random.RandomState(0)).fit(X)) == state(model)
    assert state(quick(random_state=1).fit(X)) != state(model)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_best_start_is_kept():
    X, _ = make_blobs(120, 3, centers=5, random_state=3)
    objectives = [quick(5, n_init=n).fit(X).objective_ for n in (1, 2, 4)]
    # The first starts are the same: their seeds are drawn in order.
    assert objectives == sorted(objectives)
    assert objectives[0] < objectives[-1]


def test_starts_of_many_rows_see_some_of_them(monkeypatch):
    monkeypatch.setattr("treeclust_rs.estimators.douglas.search._MAX_START_ROWS", 100)
    X, codes = three_blobs(600)
    model = quick().fit(X)
    assert adjusted_rand_score(model.labels_, codes) > 0.95
    assert model.loss_curve_[0] > 0.9 * model.loss_curve_[-1]  # it goes on from a good start


def test_training_ends_on_a_plateau():
    X, _ = three_blobs()
    early = quick(n_init=1, max_iter=500).fit(X)
    assert early.n_iter_ < 200
    assert early.loss_curve_[-11] * 1.001 >= early.loss_curve_[-10:].max()
    assert quick(n_init=1, max_iter=37, tol=None).fit(X).n_iter_ == 37


@pytest.mark.parametrize("n_cuts", [1, 2, 3])
def test_cuts_start_at_quantiles(n_cuts):
    X = np.random.default_rng(0).exponential(size=(400, 2))
    model = quick(2, n_cuts=n_cuts, n_init=1, max_iter=1, learning_rate=1e-9).fit(X)
    shares = np.arange(1, n_cuts + 1) / (n_cuts + 1)
    below = (X[:, :, np.newaxis] <= model.cut_points_).mean(axis=0)
    np.testing.assert_allclose(below, np.tile(shares, (2, 1)), atol=0.005)


def test_cuts_start_between_values():
    votes = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], p=[0.6, 0.1, 0.3], size=(200, 4))
    model = quick(2, n_init=1, max_iter=1, learning_rate=1e-9).fit(votes)
    np.testing.assert_allclose(model.cut_points_[:, 0], -0.5, atol=1e-3)
    assert model.active_cut_points_.tolist() == [0, 1, 2, 3]


def test_random_cuts_are_normal_in_standard_deviations():
    X = 50.0 + 7.0 * np.random.default_rng(0).normal(size=(100, 12))
    options = {"init": "random", "n_init": 1, "max_iter": 1, "learning_rate": 1e-9}
    cuts = np.concatenate(
        [
            ((quick(2, random_state=seed, **options).fit(X).cut_points_[:, 0] - 50) / 7)
            for seed in range(5)
        ]
    )
    assert abs(cuts.mean()) < 0.5
    assert 0.7 < cuts.std() < 1.3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_cuts", [1, 2])
def test_cuts_to_start_from_may_be_given(n_cuts):
    """In the columns' own units, in any order, and of the columns that are cut only."""
    X = three_blobs()[0] * 100
    given = np.array([[410.0, 620.0], [np.nan, np.inf], [30.0, -170.0]])[:, :n_cuts]
    options = {"n_cuts": n_cuts, "feature_mask": [True, False, True]}
    still = {"max_iter": 1, "warm_up": 0, "learning_rate": 1e-9}
    for begun in (
        quick(init=given, **options, **still).fit(X),
        quick(init=given.tolist(), **options, **still).partial_fit(X),
    ):
        cuts = begun.cut_points_
        assert np.isnan(cuts[1]).all()
        np.testing.assert_allclose(cuts[[0, 2]], np.sort(given[[0, 2]], axis=1), atol=1)
    # Warm: the cuts of one model are where another begins.
    model = quick(n_cuts=n_cuts).fit(X)
    again = quick(n_cuts=n_cuts, init=model.cut_points_, **still).fit(X)
    np.testing.assert_allclose(again.cut_points_, model.cut_points_, atol=1)


def test_given_cuts_are_for_the_first_rows_only():
    X, _ = three_blobs()
    model = quick(init=np.zeros((3, 1))).partial_fit(X)
    model.set_params(init=np.zeros((1, 1))).partial_fit(X)
    assert len(model.loss_curve_) == 2


def test_sgd_learns_too():
    X, codes = three_blobs()
    model = quick(solver="sgd", n_init=5, max_iter=200).fit(X)
    assert adjusted_rand_score(model.labels_, codes) > 0.9


def test_standard_scale_is_that_of_standardised_columns():
    X, _ = three_blobs()
    X = X * [1.0, 100.0, 0.01]
    model = quick(scale="standard").fit(X)
    direct = quick().fit(X / X.std(axis=0))
    assert model.labels_.tolist() == direct.labels_.tolist()
    assert model.objective_ == pytest.approx(direct.objective_, rel=1e-6)
    assert model.objective(X) == pytest.approx(direct.objective(X / X.std(axis=0)), rel=1e-6)
    assert model.score(X) == pytest.approx(direct.score(X / X.std(axis=0)), rel=1e-6)
    np.testing.assert_allclose(model.scale_, X.std(axis=0))


def test_costs_are_those_of_k_means():
    X, _ = three_blobs()
    with pytest.warns(ConvergenceWarning, match="of the 5 clusters"):
        model = quick(5).fit(X)
    found = np.unique(model.labels_)
    assert model.n_clusters_ == len(found) < 5
    for label in found:
        rows = X[model.labels_ == label]
        np.testing.assert_allclose(model.cluster_centers_[label], rows.mean(axis=0))
    assert np.isnan(model.cluster_centers_[len(found) :]).all()
    assert model.inertia_ == pytest.approx(kmeans_cost(X, model.labels_), rel=1e-12)
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-12)
    new, weight = X[::2] + 0.5, np.arange(45.0)
    apart = new - model.cluster_centers_[model.predict(new)]
    expected = -float(weight @ (apart**2).sum(axis=1))
    assert model.score(new, sample_weight=weight) == pytest.approx(expected, rel=1e-12)


def test_rows_in_clusters_that_had_none_count_about_their_own_mean():
    X, _ = three_blobs()
    model = quick().fit(X)
    expected = model.score(X)
    model.cluster_centers_[1] = np.nan
    assert model.n_clusters_ == 2
    assert model.score(X) == pytest.approx(expected, rel=1e-12)


def test_old_files_have_no_costs():
    old = tc.load(Path(__file__).parents[2] / "data" / "models" / "douglas.json")
    for ask in (lambda: old.inertia_, lambda: old.n_clusters_, lambda: old.score(IRIS.to_numpy())):
        with pytest.raises(AttributeError, match=r"read from a file.*Fit it anew"):
            ask()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inertia_": -1.0}, "a negative inertia"),
        ({"inertia_": None}, "inertia_ in the model file"),
        ({"cluster_centers_": [[1.0] * 4] * 2}, "cluster_centers_"),
        ({"cluster_centers_": [[1.0, None, 1.0, 1.0]] * 3}, "a center with gaps"),
        ({"cluster_centers_": [["1", 1.0, 1.0, 1.0]] * 3}, "cluster_centers_"),
    ],
)
def test_costs_of_files_are_checked(iris, tmp_path, change, message):
    path = tmp_path / "model.json"
    iris.save(path)
    content = json.loads(path.read_text())
    content["fitted"] |= change
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        tc.load(path)
    del content["fitted"]["cluster_centers_"]
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="lacks 'cluster_centers_'"):
        tc.load(path)


def test_given_affinity_is_used():
    X, _ = three_blobs()
    gemini = Wasserstein()
    distances = gemini.affinity(X)
    model = quick().fit(X)
    given = quick().fit(X, affinity=distances)
    assert (given.labels_ == model.labels_).mean() > 0.98
    assert given.objective(X, affinity=distances) == pytest.approx(given.objective(X))
    # Squares of distances do not keep the triangle inequality.
    squares = distances**2
    expected = Wasserstein(metric="precomputed").value(model.predict_proba(X), squares)
    assert model.objective(X, affinity=squares) == pytest.approx(expected)
    # Columns of noise, and an affinity that knows the clusters.
    rng = np.random.default_rng(1)
    halves = rng.normal(size=(100, 2))
    known = (halves[:, 0] > 0) * 10.0
    found = quick(2).fit(halves, affinity=np.abs(known[:, np.newaxis] - known))
    assert adjusted_rand_score(found.labels_, known) > 0.85


def test_objectives_with_parameters():
    X, codes = three_blobs()
    for gemini in (MMD(kernel="rbf", gamma=0.05), Wasserstein(metric="cityblock", one_vs_one=True)):
        model = quick(gemini=gemini).fit(X)
        assert adjusted_rand_score(model.labels_, codes) > 0.95
        assert model.get_params()["gemini"] is gemini


def test_affinities_are_those_of_batches(monkeypatch):
    monkeypatch.setattr("treeclust_rs.estimators.douglas.training_rows._MAX_KEPT", 0)
    asked = []
    whole = Wasserstein.affinity

    def affinity(self, X):
        asked.append(len(X))
        return whole(self, X)

    monkeypatch.setattr(Wasserstein, "affinity", affinity)
    X, _ = three_blobs(300)
    kept = quick(n_init=1, max_iter=3).fit(X)
    assert max(asked) <= 64
    monkeypatch.undo()
    assert state(kept) == state(quick(n_init=1, max_iter=3).fit(X))


def test_affinities_of_batches_are_parts_of_that_of_all_rows(monkeypatch):
    X, _ = three_blobs(300)
    kept, asked = (
        quick(gemini=MMD(kernel="rbf", gamma="scale"), n_init=1, max_iter=3) for _ in range(2)
    )
    kept.fit(X)
    monkeypatch.setattr("treeclust_rs.estimators.douglas.training_rows._MAX_KEPT", 0)
    np.testing.assert_allclose(asked.fit(X).weights_, kept.weights_, rtol=1e-9)


@pytest.mark.parametrize(
    ("k", "batch_size", "largest"), [(3, 7, 7), (3, None, 60), (9, None, 75), (9, 20, 20)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_batches_are_as_large_as_asked_for(k, batch_size, largest, monkeypatch):
    sizes = recorded(monkeypatch, TrainingRows, "batch", lambda _, rows, index: len(index))
    quick(k, batch_size=batch_size, n_init=1, max_iter=1).fit(three_blobs(300)[0])
    assert max(sizes) == largest  # 300 rows in 43, 5, 4 and 15 batches


def test_batches_are_of_like_size_and_hold_every_row_once():
    for n, size in ((1, 5), (5, 5), (6, 5), (101, 10), (7, 2)):
        parts = list(batches(n, size, np.random.RandomState(0)))
        assert sorted(np.concatenate(parts).tolist()) == list(range(n))
        assert len(parts) == -(-n // size)
        assert max(map(len, parts)) <= size
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_grid_search_and_frames():
    search = GridSearchCV(quick(n_init=1), {"n_clusters": [2, 3]}, cv=2).fit(IRIS.to_pandas())
    assert search.best_estimator_.feature_names_in_.tolist() == IRIS.columns
    model = quick().fit(IRIS)
    mixed = IRIS.select("pw", "sl", pl.lit("x").alias("other"), "pl", "sw")
    for frame in (mixed, mixed.lazy(), mixed.to_pandas()):
        assert model.predict(frame).tolist() == model.labels_.tolist()


# ---- hard rules ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def iris():
    return quick(n_cuts=2, scale="standard").fit(IRIS)


def cells_by_hand(model, rows):
    """Cluster of each row: the argmax of the weights of its cell, inactive cuts left out."""
    table = rows.to_numpy()
    cells = np.zeros(len(table), dtype=int)
    for feature, cuts in enumerate(model.cut_points_):
        fitted = IRIS.to_numpy()[:, feature]
        column = np.zeros(len(table), dtype=int)
        for cut in cuts:
            if cut <= fitted.min():
                column += 1
            elif cut < fitted.max():
                column += table[:, feature] > cut
        cells = cells * (len(cuts) + 1) + column
    return model.weights_[cells].argmax(axis=1)


def test_rules_are_the_weights_of_cells(iris):
    hard = iris.table_.clusters[iris.apply(IRIS)]
    assert hard.tolist() == cells_by_hand(iris, IRIS).tolist()
    far = IRIS + pl.Series([100.0] * 150)
    assert iris.table_.clusters[iris.apply(far)].tolist() == cells_by_hand(iris, far).tolist()
    assert iris.rule_agreement_ == np.mean(hard == iris.labels_) > 0.9


def test_the_rules_are_the_model_without_temperature():
    model = quick(temperature=1e-6, n_cuts=2).fit(IRIS)
    hard = model.table_.clusters[model.apply(IRIS)]
    assert hard.tolist() == model.labels_.tolist()
    assert model.rule_agreement_ == 1.0


def test_rules_frame(iris):
    rules = iris.rules()
    cells = iris.apply(IRIS)
    assert rules.columns == ["cluster", "rule", "n", "share", "purity"]
    assert rules["n"].sum() == 150
    assert rules["share"].sum() == pytest.approx(1.0)
    assert rules.height == len(set(cells.tolist()))
    assert rules.sort("cluster", -pl.col("n"), maintain_order=True)["n"].equals(rules["n"])
    assert (rules["purity"] * rules["n"]).sum() / 150 == pytest.approx(iris.rule_agreement_)
    # Every rule, run as it is written, finds its rows.
    frame = IRIS.with_columns(pl.Series("cell", cells))
    for cluster, rule, n, _, _ in rules.iter_rows():
        parts = [part.split(" ") for part in rule.split(" and ")]
        condition = pl.lit(True)
        for part in parts:
            if len(part) == 5:
                low, _, name, _, high = part
                condition &= (pl.col(name) > float(low)) & (pl.col(name) <= float(high))
            else:
                name, sign, cut = part
                test = pl.col(name) > float(cut) if sign == ">" else pl.col(name) <= float(cut)
                condition &= test
        chosen = frame.filter(condition)
        assert chosen.height == n
        assert chosen["cell"].n_unique() == 1
        assert iris.table_.clusters[chosen["cell"][0]] == cluster


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
def test_polars_expression_equals_the_rules(iris, engine, dtype):
    frame = IRIS.cast(dtype).with_columns(pl.lit("x").alias("other"))
    expression = iris.to_polars()
    if engine == "eager":
        got = frame.select(expression)
    else:
        got = frame.lazy().select(expression).collect(engine=engine)
    assert got.schema == {"cluster": pl.Int64}
    assert got["cluster"].to_list() == iris.table_.clusters[iris.apply(frame)].tolist()


def test_a_value_equal_to_a_cut_is_below_it():
    table = small_table(clusters=np.arange(6), n_clusters=6)
    age = [1.5, np.nextafter(1.5, 2), 1.5, np.nextafter(1.5, 2)]
    debt = [-2.0, np.nextafter(-2.0, 0), 3.25, np.nextafter(3.25, 4)]
    frame = pl.DataFrame({"age": age, "b": 0.0, "debt": debt})
    cells = table.apply(read_table(frame, estimator_name="Douglas"))
    assert cells.tolist() == [0, 4, 1, 5]
    assert frame.select(table.to_polars())["cluster"].to_list() == [0, 4, 1, 5]


def test_polars_expression_of_missing_values_and_patterns():
    X, _ = three_blobs()
    names = ["*", "^a.*$", "b"]
    model = quick().fit(pl.DataFrame(X, schema=names))
    used = [names[feature] for feature in model.active_cut_points_]
    rows = pl.DataFrame({name: [0.0, None, float("nan"), 1.0] for name in names})
    assert model.to_polars().meta.output_name() == "cluster"
    got = rows.select(model.to_polars())["cluster"].to_list()
    assert got[1] is got[2] is None
    assert got[0] is not None
    assert {"*", "^a.*$"} <= set(used)


def test_polars_expression_without_cuts():
    model = quick(1, max_iter=1, feature_mask=[False, True]).fit(np.arange(10.0).reshape(5, 2) * 0)
    frame = pl.DataFrame({"x0": [1.0, 2.0], "x1": [0.0, 0.0]})
    assert frame.select(model.to_polars())["cluster"].to_list() == [0, 0]
    assert str(model.table_) == (
        "CellTable: 1 of 1 cell with rows, 1 cluster, 5 rows\n\n"
        "rows    share   purity  cluster\n   5    100 %    100 %  0"
    )
    assert model.rules()["rule"].to_list() == ["always"]
    assert model.explain([[0.0, 0.0]]) == ["cluster 0: always"]


def test_polars_expression_that_is_too_large():
    X = np.random.default_rng(0).normal(size=(60, 14))
    model = quick(2, max_iter=1, n_init=1).fit(X)
    with pytest.raises(ValueError, match=r"16,384 cells is too large .*10,000.*feature_mask"):
        model.to_polars()


def small_table(**changes):
    content = {
        "features": np.array([0, 2]),
        "cuts": (np.array([1.5]), np.array([-2.0, 3.25])),
        "clusters": np.array([0, 1, 1, 0, 2, 2]),
        "occupied": np.array([0, 1, 4]),
        "n_rows": np.array([5, 20, 15]),
        "n_agreeing": np.array([5, 19, 15]),
        "n_clusters": 3,
        "feature_names": ("age", "b", "debt"),
    }
    return CellTable(**(content | changes))


def test_the_printed_table():
    assert str(small_table()) == (
        "CellTable: 3 of 6 cells with rows, 3 clusters, 40 rows\n"
        "\n"
        "age     debt        rows    share   purity  cluster\n"
        "<= 1.5  <= -2          5   12.5 %    100 %  0\n"
        "<= 1.5  -2 to 3.25    20   50.0 %   95.0 %  1\n"
        "> 1.5   -2 to 3.25    15   37.5 %    100 %  2\n"
        "\n"
        "purity: share of the cell's rows that the model, whose bins are soft, predicts to be of\n"
        "the cell's cluster."
    )


def test_html_of_the_table():
    page = small_table(feature_names=("<b>", "b", "debt & co"))._repr_html_()
    assert page.count("<tr>") == 4
    assert "&lt;b&gt;</th>" in page and "debt &amp; co</th>" in page and "<b></th>" not in page
    second = page.split("<tr>")[3]
    assert re.findall(">([^<>]+)</td>", second) == [
        *("&lt;= 1.5", "-2 to 3.25", "20", "50.0 %", "95.0 %", " 1")
    ]
    assert "purity: share of the cell" in page
    assert "<script" not in page
    many = small_table(
        features=np.array([0]),
        cuts=(np.arange(299.0),),
        clusters=np.zeros(300, dtype=np.int64),
        occupied=np.arange(300),
        n_rows=np.ones(300, dtype=np.int64),
        n_agreeing=np.ones(300, dtype=np.int64),
    )._repr_html_()
    assert many.count("<tr>") == 201
    assert "and 100 more cells" in many


def test_wide_tables_are_printed_with_letters():
    name = "a name that is much too long for a column of its own, and then some more"
    age = "the age of a customer at the time"
    table = small_table(feature_names=(age, "b", name), n_agreeing=np.array([5, 20, 15]))
    short = f"{name[:40]}…{name[-19:]}"
    assert str(table) == (
        "CellTable: 3 of 6 cells with rows, 3 clusters, 40 rows\n"
        "\n"
        f"{age:{len(short)}}  a: <= 1.5  b: > 1.5\n"
        f"{short}  a: <= -2   b: -2 to 3.25  c: > 3.25\n"
        "\n"
        "cell  rows    share   purity  cluster\n"
        "a a      5   12.5 %    100 %  0\n"
        "a b     20   50.0 %    100 %  1\n"
        "b b     15   37.5 %    100 %  2"
    )
    assert short in table._repr_html_() and name not in table._repr_html_()
    assert name in table.rules()["rule"][0]


def test_tables_are_short_where_they_are_shown():
    table = small_table(clusters=np.arange(6), n_clusters=6)
    n_occupied = len(table.occupied)
    assert (
        repr(table) == f"CellTable(n_cells=6, n_occupied={n_occupied}, n_features=2, n_clusters=6)"
    )


def test_long_tables_are_cut_short():
    n = 1000
    one = np.ones(n, dtype=int)
    table = CellTable(
        features=np.array([0]),
        cuts=(np.arange(n - 1.0),),
        clusters=np.zeros(n, dtype=int),
        occupied=np.arange(n),
        n_rows=one,
        n_agreeing=one,
        n_clusters=1,
        feature_names=None,
    )
    assert str(table).endswith("... and 800 more cells: rules() has them all")
    assert table.rules().height == n


def test_explain_says_where_rules_and_model_differ(iris):
    lines = iris.explain(IRIS)
    hard = iris.table_.clusters[iris.apply(IRIS)]
    sure = iris.predict_proba(IRIS).max(axis=1)
    for line, row, cluster, own, share in zip(
        lines, IRIS.iter_rows(named=True), iris.labels_, hard, sure, strict=True
    ):
        assert line.startswith(f"cluster {cluster}")
        assert ("its cell is of cluster" in line) == (cluster != own)
        if cluster != own:
            assert f" ({format_share(share)}; its cell is of cluster {own})" in line
        name = IRIS.columns[iris.active_cut_points_[0]]
        assert f"{name} = {row[name]:g}" in line
    assert (iris.labels_ != hard).any()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_active_cut_points_lie_strictly_inside(iris):
    data = IRIS.to_numpy()
    inside = (iris.cut_points_ > data.min(axis=0)[:, None]) & (
        iris.cut_points_ < data.max(axis=0)[:, None]
    )
    assert iris.active_cut_points_.tolist() == np.flatnonzero(inside.any(axis=1)).tolist()
    X, _ = three_blobs()
    options = {"init": "random", "n_init": 1, "max_iter": 1, "learning_rate": 1e-9}
    found = [quick(random_state=seed, **options).fit(X[:9]) for seed in range(8)]
    assert {len(model.active_cut_points_) for model in found} > {3}  # some start outside


def test_cuts_have_few_digits():
    X, _ = three_blobs(300)
    model = quick().fit(X)
    # A hundredth of the temperature of 0.1 standard deviations is some 0.004 here.
    assert np.round(model.cut_points_, 3).tolist() == model.cut_points_.tolist()
    assert {0, 1} <= set(model.active_cut_points_.tolist())


# ---- columns ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_feature_mask_says_what_is_cut():
    X, _ = three_blobs()
    model = quick(feature_mask=[True, False, True]).fit(X)
    assert np.isnan(model.cut_points_[1]).all()
    assert np.isfinite(model.cut_points_[[0, 2]]).all()
    assert model.weights_.shape == (4, 3)
    assert 1 not in model.active_cut_points_
    # The objective sees the column that is not cut.
    assert len(set(model.labels_.tolist())) >= 2


@pytest.mark.parametrize("n_cuts", [1, 2])
def test_pruning_leaves_out_columns_that_hardly_matter(n_cuts):
    X, codes = three_blobs(150)
    X = np.column_stack([X[:, 2], X[:, 0], X[:, 0] * 2 + 1, X[:, 1]])  # noise; one column twice
    full = quick(n_cuts=n_cuts).fit(X)
    model = quick(n_cuts=n_cuts, prune=0.02).fit(X)
    assert full.weights_.shape == ((n_cuts + 1) ** 4, 3)
    assert model.weights_.shape == ((n_cuts + 1) ** 2, 3)
    assert np.isnan(model.cut_points_).all(axis=1).tolist() in (
        [True, True, False, False],
        [True, False, True, False],
    )
    assert model.objective_ > 0.97 * full.objective_
    assert adjusted_rand_score(model.labels_, codes) > 0.95
    assert model.labels_.tolist() == model.predict(X).tolist()
    assert set(model.table_.features) <= set(np.flatnonzero(np.isfinite(model.cut_points_[:, 0])))


def test_pruning_far_leaves_one_column_and_none_leaves_all():
    X, _ = three_blobs()
    one = quick(2, prune=0.999).fit(X)
    assert np.isfinite(one.cut_points_[:, 0]).sum() == 1
    assert state(quick(2, prune=0.0).fit(X)) == state(quick(2).fit(X))
    # A single column, or none that varies, has nothing to spare.
    assert quick(2, prune=0.5).fit(X[:, :1]).weights_.shape == (2, 2)
    with pytest.warns(ConvergenceWarning, match="No column to cut varies"):
        assert quick(2, prune=0.5).fit(X * 0).weights_.shape == (1, 2)


def test_pruned_models_are_as_good_as_others(tmp_path):
    X, _ = three_blobs(150)
    model = quick(prune=0.05, n_jobs=1).fit(X)
    assert model.weights_.shape == (4, 3)
    assert state(quick(prune=0.05, n_jobs=2).fit(pl.DataFrame(X))) == state(model)
    model.save(tmp_path / "model.json")
    again = tc.load(tmp_path / "model.json")
    assert again.prune == 0.05
    assert again.predict(X).tolist() == model.labels_.tolist()
    assert again.score(X) == model.score(X)
    assert again.objective(X) == pytest.approx(model.objective(X))
    assert np.isnan(model.partial_fit(X[::-1]).cut_points_[2]).all()
    assert len(model.loss_curve_) > 1


def test_pruning_of_many_rows_looks_at_some(monkeypatch):
    monkeypatch.setattr("treeclust_rs.estimators.douglas.search._MAX_START_ROWS", 100)
    X, codes = three_blobs(600)
    model = quick(prune=0.05).fit(X)
    assert model.weights_.shape == (4, 3)
    assert adjusted_rand_score(model.labels_, codes) > 0.95


def test_the_curve_of_a_pruned_model_is_that_of_its_last_training(monkeypatch):
    X, _ = three_blobs(150)
    curves = recorded(monkeypatch, _search, "train", lambda curve, *_: curve)
    options = {"prune": 0.05, "gemini": "mmd2_ova", "n_init": 1}
    assert quick(**options).fit(X).loss_curve_.tolist() == curves[1] != curves[0]
    # As if that training had brought nothing.
    prune = _search.prune
    monkeypatch.setattr(
        "treeclust_rs.estimators.douglas.estimator.prune", lambda *a: (*prune(*a)[:3], None, 0.0)
    )
    assert quick(**options).fit(X).loss_curve_.tolist() == curves[2] == curves[0]


def test_constant_columns_are_not_cut():
    X, _ = three_blobs()
    wide = np.column_stack([np.full(90, 7.0), X[:, 0], np.zeros(90), X[:, 1:]])
    model = quick().fit(wide)
    plain = quick().fit(X)
    assert model.weights_.tobytes() == plain.weights_.tobytes()
    assert np.isnan(model.cut_points_[[0, 2]]).all()
    assert model.labels_.tolist() == plain.labels_.tolist()


@pytest.mark.parametrize(
    ("d", "n_cuts", "shown", "fits"),
    [(60, 1, r"1,152,921,504,606,846,976 cells|about 1e18 cells", 24),
     (26, 3, "about 1e15 cells", 12), (2000, 1, "about 1e602 cells", 24),
     (26, 1, "67,108,864 cells", 24)],
)  # fmt: skip
def test_too_many_cells_are_refused_before_they_are_made(d, n_cuts, shown, fits):
    X = np.random.default_rng(0).normal(size=(20, d))
    with pytest.raises(ValueError, match=rf"({shown}).*GiB.*") as error:
        quick(n_cuts=n_cuts).fit(X)
    assert str(error.value).endswith(f"Cut at most {fits} columns (feature_mask).")
    mask = np.arange(d) < 3
    assert quick(n_cuts=n_cuts, feature_mask=mask, max_iter=1).fit(X).n_features_in_ == d


@pytest.mark.parametrize(
    ("d", "n_cuts", "advice"),
    [
        # With one cut in each column there are no fewer, and of one column none to leave out.
        (25, 1, "Cut at most 24 columns (feature_mask)."),
        (13, 3, "Cut at most 12 columns (feature_mask), or each at most 2 times (n_cuts)."),
        (1, 1 << 23, "Cut each at most 5,315,551 times (n_cuts)."),
    ],
)
def test_advice_on_cells_fits_and_is_not_what_is_set_already(d, n_cuts, advice):
    X = np.random.default_rng(0).normal(size=(20, d))
    with pytest.raises(ValueError, match="GiB") as error:
        quick(n_cuts=n_cuts).fit(X)
    assert str(error.value).endswith(advice)
    numbers = [int(number.replace(",", "")) for number in re.findall(r"most ([\d,]+)", advice)]
    ways = [(numbers[0], n_cuts), (d, numbers[-1])] if len(numbers) > 1 else []
    ways = ways or [(numbers[0], n_cuts) if "feature_mask" in advice else (d, numbers[0])]
    for columns, cuts in ways:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _check_n_cells(cuts, columns, 3, 20)
        over = (columns + 1, cuts) if columns < d else (columns, cuts + 1)
        with pytest.raises(ValueError, match="GiB"):
            _check_n_cells(over[1], over[0], 3, 20)


def test_too_many_bins_for_a_batch_are_refused_before_they_are_made():
    X = np.random.default_rng(0).normal(size=(20, 1))
    # The weights alone would be allowed.
    with pytest.raises(ValueError, match=r"1 column in 8388609 bins each make 8,388,609 .*GiB"):
        quick(n_cuts=1 << 23).fit(X)


def test_many_cells_are_announced():
    X = np.random.default_rng(0).normal(size=(20, 10))
    with pytest.warns(
        UserWarning, match=r"10 columns in 4 bins each make 1,048,576 cells, .*long"
    ) as said:
        quick(n_cuts=3, max_iter=1).fit(X)
    advice = "Cut at most 9 columns (feature_mask), or each at most 2 times (n_cuts)."
    assert str(said[0].message).endswith(advice)


# ---- small and odd data -------------------------------------------------------------------


def test_one_row_and_one_cluster():
    model = quick(1).fit([[3.0, 4.0]])
    assert model.labels_.tolist() == [0]
    assert model.predict_proba([[1.0, 2.0]]).tolist() == [[1.0]]
    model = quick(1).fit(three_blobs()[0])
    assert set(model.labels_.tolist()) == {0}
    assert model.objective(three_blobs()[0]) == 0.0


def test_equal_rows_make_one_cluster():
    message = "Only 1 of the 3 clusters has rows. No column to cut varies"
    with pytest.warns(ConvergenceWarning, match=message):
        model = quick().fit(np.ones((10, 2)))
    assert model.labels_.tolist() == [0] * 10
    assert model.active_cut_points_.tolist() == []
    assert model.predict([[5.0, -5.0]]).tolist() == [0]


def test_clusters_without_rows_come_last():
    X = np.repeat([[0.0, 0.0], [1.0, 0.0]], 20, axis=0)
    for seed in range(5):
        with pytest.warns(ConvergenceWarning, match="Only 2 of the 5 clusters"):
            model = quick(5, random_state=seed).fit(X)
        assert set(model.labels_.tolist()) == {0, 1}
        assert model.predict(X).tolist() == model.labels_.tolist()
        assert model.predict_proba(X).shape == (40, 5)


@pytest.mark.parametrize("batch_size", [2, 3, 7, 89, 90, 91, 10_000])
def test_any_batch_size(batch_size):
    X, _ = three_blobs()
    model = quick(batch_size=batch_size, max_iter=3, n_init=1)
    try:
        model.fit(X)
    except ConvergenceWarning:
        model.set_params(n_clusters=2).fit(X)
    assert np.isfinite(model.loss_curve_).all()
    assert np.isfinite(model.weights_).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.uint8, np.bool_])
def test_other_numbers_count_as_float64(dtype):
    X = (np.random.default_rng(0).random((60, 2)) * 10).astype(dtype)
    assert state(quick(2).fit(X)) == state(quick(2).fit(X.astype(np.float64)))


@pytest.mark.parametrize(
    ("options", "X", "message"),
    [
        ({"k": 0}, None, "n_clusters"),
        ({"k": 91}, None, "n_samples=90 must be at least n_clusters=91"),
        ({"gemini": "nonsense"}, None, "gemini"),
        ({"n_cuts": 0}, None, "n_cuts"),
        ({"temperature": 0.0}, None, "temperature"),
        ({"init": "kmeans"}, None, "init"),
        ({"init": [[1.0]]}, None, r"init have the shape \(1, 1\); .* it must be \(3, 1\)"),
        ({"init": [[0.0]] * 3, "n_cuts": 2}, None, r"n_cuts=2 it must be \(3, 2\)"),
        ({"init": [[0.0], [np.nan], [0.0]]}, None, r"\[nan\] in column x1, which is cut"),
        ({"n_init": 0}, None, "n_init"),
        ({"solver": "lbfgs"}, None, "solver"),
        ({"learning_rate": 0.0}, None, "learning_rate"),
        ({"batch_size": 1}, None, "batch_size"),
        ({"max_iter": 0}, None, "max_iter"),
        ({"tol": -1.0}, None, "tol"),
        ({"n_iter_no_change": 0}, None, "n_iter_no_change"),
        ({"scale": "median"}, None, "scale"),
        ({"prune": -0.1}, None, "prune"),
        ({"prune": 1.0}, None, "prune"),
        ({"feature_mask": [True]}, None, r"shape \(1,\); X has 3 columns"),
        ({"feature_mask": [False] * 3}, None, "no column is left"),
        ({}, np.zeros((0, 2)), r"0 sample\(s\)"),
        ({}, [1.0, 2.0], "Expected 2D array"),
        ({}, [[1.0, np.nan], [0.0, 1.0]], "NaN.*column x1"),
        ({}, [[1.0, 2.0], [np.inf, 1.0]], "inf.*column x0"),
    ],
)
def test_refused(options, X, message):
    with pytest.raises(ValueError, match=message):
        quick(**options).fit(three_blobs()[0] if X is None else X)


def test_masks_of_other_types_are_refused():
    with pytest.raises(TypeError, match="True and False"):
        quick(feature_mask=[0, 1, 1]).fit(three_blobs()[0])


def test_given_cuts_of_other_types_are_refused():
    with pytest.raises(TypeError, match=r"init must be numbers. Got dtype <U1"):
        quick(init=[["a"], ["b"], ["c"]]).fit(three_blobs()[0])


def test_affinities_are_checked():
    X, _ = three_blobs(30)
    good = Wasserstein().affinity(X)
    with pytest.raises(ValueError, match=r"affinity has the shape \(3, 3\)"):
        quick().fit(X, affinity=good[:3, :3])
    skew = good.copy()
    skew[0, 1] += 1
    with pytest.raises(ValueError, match="symmetric"):
        quick().fit(X, affinity=skew)
    with pytest.raises(ValueError, match="kl_ova' does not look at rows"):
        quick(gemini="kl_ova").fit(X, affinity=good)
    kernel = MMD(kernel="rbf").affinity(X)
    message = r"affinity\[0, 0\] is 1.0, but the distance of a row from itself is 0. Kernel values"
    with pytest.raises(ValueError, match=message):
        quick().fit(X, affinity=kernel)
    quick(gemini="mmd2_ova").fit(X, affinity=kernel)
    negative = good.copy()
    negative[2, 5] = negative[5, 2] = -1
    message = r"affinity\[2, 5\] is -1.0, but distances are not negative"
    with pytest.raises(ValueError, match=message):
        quick().fit(X, affinity=negative)


def test_nothing_works_before_fit():
    model = quick()
    for name in ("predict", "predict_proba", "apply", "explain", "score"):
        with pytest.raises(NotFittedError):
            getattr(model, name)([[1.0]])
    for name in ("rules", "to_polars"):
        with pytest.raises(NotFittedError):
            getattr(model, name)()
    with pytest.raises(NotFittedError):
        model.save("model.json")
    for name in ("cut_points_", "active_cut_points_", "weights_", "classes_", "n_iter_"):
        with pytest.raises(AttributeError, match=f"This Douglas has no {name} yet: call fit first"):
            getattr(model, name)
    for name in ("labels_", "cut_points_", "active_cut_points_", "weights_", "n_iter_"):
        with pytest.raises(AttributeError, match=f"This Douglas has no {name} yet: call fit first"):
            getattr(model, name)


def test_verbose_tells_start_epoch_and_objective(capfd):
    X, _ = three_blobs()
    quick(verbose=1).fit(X)
    told = capfd.readouterr()
    assert told.out == ""
    start = "[Douglas] 90 rows, start 1 of 2, warm-up, epoch 1 of at most 50, GEMINI "
    assert told.err.startswith(start)
    quick().fit(X)
    assert capfd.readouterr().err == ""


def test_verbose_tells_every_stage(capfd, monkeypatch):
    monkeypatch.setattr("treeclust_rs.estimators.douglas.estimator._SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr(_search, "_MAX_START_ROWS", 100)
    quick(verbose=1, prune=0.1, max_iter=2, warm_up=2).fit(three_blobs(150)[0])
    stages = [line.split(", ")[1] for line in capfd.readouterr().err.splitlines()]
    starts = ["start 1 of 2"] * 4 + ["start 2 of 2"] * 4
    assert stages[:12] == [*starts, "the best start", "the best start", "pruning", "pruning"]
    assert {stage[:10] for stage in stages[12:]} == {"pruned to "}


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("fitted", [False, True])
def test_ctrl_c_leaves_the_estimator_as_it_was(method, fitted, monkeypatch):
    X, _ = three_blobs(300)
    model = quick(max_iter=3)
    if fitted:
        model.partial_fit(X)
    before, probabilities = dict(vars(model)), fitted and model.predict_proba(X).tobytes()
    other = pickle.loads(pickle.dumps(model))
    calls = 0
    whole = TrainingRows.batch

    def batch(self, index):
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return whole(self, index)

    monkeypatch.setattr(TrainingRows, "batch", batch)
    with pytest.raises(KeyboardInterrupt):
        getattr(model, method)(X)
    assert vars(model).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(model).items())
    monkeypatch.undo()
    assert not fitted or model.predict_proba(X).tobytes() == probabilities
    assert state(getattr(model, method)(X)) == state(getattr(other, method)(X))


# ---- partial_fit --------------------------------------------------------------------------


def test_partial_fit_learns_from_batches():
    X, codes = three_blobs(600)
    order = np.random.default_rng(0).permutation(600)
    model = quick(learning_rate=0.1)
    for _ in range(2):
        for part in np.array_split(order, 6):
            model.partial_fit(X[part])
    assert adjusted_rand_score(model.predict(X), codes) > 0.9
    assert model.loss_curve_.shape == (12,)
    assert model.objective_ == model.loss_curve_[-1]
    assert len(model.labels_) == 100
    assert model.rules()["n"].sum() == 100


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_partial_fit_looks_for_a_start(seed):
    """One pass from a random start has a Rand index below 0.8 here."""
    X, codes = make_blobs(3000, 3, centers=4, random_state=3)
    model = quick(4, gemini="mmd2_ova", n_init=5, max_iter=20, random_state=seed)
    for part in np.array_split(X, 3):
        model.partial_fit(part)
    assert adjusted_rand_score(model.predict(X), codes) > 0.95


def test_first_parts_without_rows_of_all_clusters():
    X = np.repeat([[0.0, 0.0], [1.0, 0.0]], 20, axis=0)
    model = quick(5)
    with pytest.warns(ConvergenceWarning, match="Only 2 of the 5 clusters have rows. Begin with"):
        model.partial_fit(X)
    model.partial_fit(X)  # once is enough
    with pytest.raises(ValueError, match="n_samples=2 must be at least n_clusters=5"):
        quick(5).partial_fit(X[19:21])


def test_partial_fit_shuffles_anew(monkeypatch):
    X, _ = three_blobs(300)
    model = quick().partial_fit(X)
    asked = recorded(monkeypatch, TrainingRows, "batch", lambda _, rows, index: index.tolist())
    model.partial_fit(X)
    n_batches = len(asked)
    model.partial_fit(X)
    assert n_batches == 5
    assert asked[:5] != asked[5:]


def test_steps_shorter_than_the_rounding_of_cuts_add_up():
    X, _ = three_blobs(120)
    model = quick(2, learning_rate=1e-4, batch_size=1000, n_init=1).partial_fit(X)
    begun = model.cut_points_
    for _ in range(50):
        model.partial_fit(X)
    moved = np.abs(model.cut_points_ - begun)[:, 0] / X.std(axis=0)
    assert moved.max() > 0.003


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_partial_fit_knows_no_units_of_columns_and_objectives(factor):
    X, _ = three_blobs()
    model, scaled = quick(solver="sgd"), quick(solver="sgd")
    for gemini in ("wasserstein_ova", "wasserstein_ova", "mmd2_ova"):
        model.set_params(gemini=gemini).partial_fit(X)
        scaled.set_params(gemini=gemini).partial_fit(X * factor)
    np.testing.assert_allclose(scaled.weights_, model.weights_, rtol=1e-3, atol=1e-3)


def test_a_single_row_does_not_fix_the_length_of_steps():
    X, _ = three_blobs()
    model, scaled = quick(solver="sgd").fit(X), quick(solver="sgd").fit(X * 1e6)
    for n in (1, 90):
        model.partial_fit(X[:n])
        scaled.partial_fit(X[:n] * 1e6)
    np.testing.assert_allclose(scaled.weights_, model.weights_, rtol=1e-3, atol=1e-3)


def test_equal_rows_at_the_top_do_not_fix_the_length_of_steps():
    X, codes = three_blobs()
    X = np.concatenate([np.repeat(X[:1], 64, axis=0), X]) * 1000
    model = quick(solver="sgd", n_init=5).fit(X)
    assert adjusted_rand_score(model.labels_[64:], codes) > 0.9


def test_the_first_rows_fix_scale_and_the_ranges_grow():
    X, _ = three_blobs(300)
    model = quick().partial_fit(X[:200])
    one = model.cut_points_.copy()
    again = quick().partial_fit(X[:200])
    assert state(model) == state(again)
    model.partial_fit(X[200:] * 3)
    assert model.predict(X).shape == (300,)
    assert np.abs(model.cut_points_ - one).max() < 1.0
    assert model.partial_fit(X[:1]).labels_.shape == (1,)  # a single row changes little
    assert np.isfinite(model.weights_).all()


def test_partial_fit_goes_on_after_a_fit_and_a_copy(tmp_path):
    X, codes = three_blobs(300)
    model = quick().fit(X)
    other = pickle.loads(pickle.dumps(model))
    assert state(model.partial_fit(X)) == state(other.partial_fit(X))
    other = pickle.loads(pickle.dumps(model))
    assert state(model.partial_fit(X)) == state(other.partial_fit(X))
    assert adjusted_rand_score(model.predict(X), codes) > 0.9
    model.save(tmp_path / "model.json")
    loaded = tc.load(tmp_path / "model.json")
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    loaded.partial_fit(X)
    model.partial_fit(X)
    assert (loaded.predict(X) == model.predict(X)).mean() > 0.95


def test_partial_fit_reads_columns_by_name():
    model = quick().partial_fit(IRIS)
    model.partial_fit(IRIS.select(reversed(IRIS.columns)))
    same = quick().partial_fit(IRIS).partial_fit(IRIS)
    assert state(model) == state(same)
    with pytest.raises(ValueError, match="lacks 1 of the 4 columns"):
        model.partial_fit(IRIS.drop("pw"))


def test_partial_fit_needs_rows_that_vary_first():
    with pytest.raises(ValueError, match="n_samples=3 no column varies"):
        quick().partial_fit([[1.0, 2.0]] * 3)


# ---- copies and files ---------------------------------------------------------------------


def test_saved_models_load_alike(iris, tmp_path):
    path = tmp_path / "model.json"
    iris.save(path)
    again = tc.load(path)
    assert type(again) is tc.Douglas
    assert again.predict_proba(IRIS).tobytes() == iris.predict_proba(IRIS).tobytes()
    assert str(again.table_) == str(iris.table_)
    assert again.rules().equals(iris.rules())
    assert again.score(IRIS) == iris.score(IRIS)
    assert again.objective(IRIS) == iris.objective(IRIS)
    costs = ("objective_", "inertia_", "cluster_centers_", "n_clusters_", "scale_")
    for name in ("cut_points_", "active_cut_points_", "weights_", "loss_curve_", *costs):
        np.testing.assert_array_equal(getattr(again, name), getattr(iris, name))
    assert again.get_params() == iris.get_params()
    with pytest.raises(AttributeError, match="has no labels_: it takes the rows of the fit"):
        _ = again.labels_
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == path.read_text()


def dot(a, b):
    return float(a @ b)


@pytest.mark.parametrize(
    ("model", "lost"),
    [(quick(gemini=MMD(kernel="rbf")), "gemini"), (tc.Kauri(3, kernel=dot), "kernel")],
    ids=["Douglas", "Kauri"],
)
def test_parameters_that_files_do_not_hold_have_to_be_set(model, lost, tmp_path):
    X, _ = three_blobs()
    model.fit(X).save(tmp_path / "model.json")
    again = tc.load(tmp_path / "model.json")
    twin = clone(again)
    assert (again.predict(X) == model.labels_).all()
    message = rf"does not hold its {lost}\..* set_params\({lost}=\.\.\.\)"
    calls = [again.fit, again.objective, twin.fit]
    if lost == "gemini":
        calls.append(again.partial_fit)
        assert again.score(X) == model.score(X)  # a k-means cost takes no objective
    else:
        calls.append(again.score)
        assert again.kernel_cost_ == model.kernel_cost_
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call(X)
    for loaded in (again, twin):
        loaded.set_params(**{lost: getattr(model, lost)})
    assert again.score(X) == pytest.approx(model.score(X), rel=1e-12)
    assert again.objective(X) == pytest.approx(model.objective(X), rel=1e-12)
    if lost == "gemini":
        assert len(again.partial_fit(X).labels_) == 90
    assert (twin.fit(X).labels_ == model.labels_).all()
    assert (again.fit(X).labels_ == model.labels_).all()


def test_files_hold_the_number_of_cuts_where_nothing_is_cut(tmp_path):
    model = quick(1, n_cuts=2).fit(np.ones((3, 2)))
    model.save(tmp_path / "model.json")
    again = tc.load(tmp_path / "model.json")
    assert again.cut_points_.shape == model.cut_points_.shape == (2, 2)


def test_files_with_names_that_are_not_unicode_are_refused(iris, tmp_path):
    path = tmp_path / "model.json"
    iris.save(path)
    path.write_text(path.read_text().replace(IRIS.columns[0], "\\ud800"))
    with pytest.raises(ValueError, match=r"model file has a column named '\\ud800', which is not"):
        tc.load(path)


@pytest.mark.parametrize("given", [list, tuple, np.array], ids=lambda given: given.__name__)
def test_files_hold_masks(given, tmp_path):
    path = tmp_path / "model.json"
    mask = [True, False, True]
    quick(2, feature_mask=given(mask), max_iter=1).fit(three_blobs()[0]).save(path)
    assert tc.load(path).feature_mask == mask
    content = json.loads(path.read_text())
    for other in ([1, 0, 1], [True, None], ["a"], [[True]], {}):
        content["params"]["feature_mask"] = other
        path.write_text(json.dumps(content))
        with pytest.raises(ValueError, match="'feature_mask' of the model file is not a plain"):
            tc.load(path)


@pytest.mark.parametrize("text", [b"\xff", b"no JSON", b"{}", b'{"model": "Nobody"}'])
def test_load_names_the_file_it_cannot_read(text, tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=re.escape(f"{path}: ")):
        tc.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_features": 0}, "n_features"),
        ({"n_clusters": True}, "n_clusters"),
        ({"n_clusters": 4}, "weights"),
        ({"feature_names": ["a", "a", "b", "c"]}, "feature_names"),
        ({"feature_names": ["a"]}, "feature_names"),
        ({"features": [0, 1, 2, 4]}, "features"),
        ({"features": [1, 0, 2, 3]}, "features"),
        ({"features": [0, 1]}, "cut_points"),
        ({"scale": [0.0] * 4}, "scale"),
        ({"lower": [1e9] * 4}, "range"),
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": None}, "temperature"),
        ({"cut_points": [[2.0, 1.0]] * 4}, "ascending"),
        ({"cut_points": [[]] * 4}, "without cuts"),
        ({"cut_points": [[1.0]] * 4}, "weights"),
        ({"occupied": []}, "occupied"),
        ({"occupied": [0, 10**6]}, "differ in length"),
        ({"n_rows": [0]}, "differ in length"),
        ({"more": 1}, "more"),
    ],
)
def test_bad_model_files_are_refused(iris, change, message, tmp_path):
    path = tmp_path / "model.json"
    iris.save(path)
    content = json.loads(path.read_text())
    content["bins"] |= change
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: .*{message}"):
        tc.load(path)
    content["bins"] = 3
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="bins"):
        tc.load(path)
