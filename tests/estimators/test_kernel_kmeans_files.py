"""Model files of kernel k-means: the same bits after loading, refusals, damage."""

from __future__ import annotations

import json
import pickle

import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import kernel_names
import treeclust_rs as tc
from treeclust_rs._kernels import model_file
from treeclust_rs.cli import main

NAMES = ["income", "visits a month", "größe"]
RNG = np.random.default_rng(0)
CODES = np.repeat([0, 1, 2, 3], 40)
X = np.array([[0.0, 0, 0], [6, 0, 2], [0, 7, 0], [4, 4, 4]])[CODES] + RNG.random((160, 3))
OTHERS = 9.0 * RNG.random((500, 3))
KERNELS = kernel_names.DEFINITE | {
    "gaussian": {"gamma": "scale"},
    "poly": {"degree": 2, "coef0": 0.5},
    "histogram_intersection": {"kernel_params": {"beta": 2}},
    "epsilon": {"kernel_params": {"epsilon": 1.5}},
}
FORMS = [
    (kernel, approximation)
    for kernel in KERNELS
    for approximation in (None, "nystroem", "rpcholesky", "rff")
    if approximation != "rff" or kernel in ("rbf", "gaussian")
]
QUIET = pytest.mark.filterwarnings("ignore:The kernel:UserWarning")
# Models whose predict needs rows of the fit.
WITH_ROWS = [{}, {"approximation": "nystroem"}, {"kernel": "linear", "approximation": "rpcholesky"}]


def made(**options):
    return tc.KernelKMeans(4, **({"n_components": 20, "n_init": 2, "random_state": 0} | options))


def reloaded(model, path, **saving):
    model.save(path, **({"rows": True} | saving))
    return tc.load(path)


# ---- the same model -----------------------------------------------------------------------


@QUIET
@pytest.mark.parametrize(("kernel", "approximation"), FORMS)
@pytest.mark.parametrize("scale", [None, "standard", {"income": 3}])
def test_a_loaded_model_has_the_bits_of_the_fit(kernel, approximation, scale, tmp_path):
    frame, others = (pl.DataFrame(rows, schema=NAMES) for rows in (X, OTHERS))
    options = KERNELS[kernel] | {"approximation": approximation, "scale": scale}
    weight = np.linspace(0.0, 2.0, len(X))
    model = made(kernel=kernel, **options).fit(frame, sample_weight=weight)
    loaded = reloaded(model, tmp_path / "model.json")
    for other in (loaded, pickle.loads(pickle.dumps(loaded))):
        assert other.predict(frame).tolist() == model.labels_.tolist()
        assert other.predict(others[:, ::-1]).tolist() == model.predict(others).tolist()
        assert other.score(others) == model.score(others)
        assert other.score(frame, sample_weight=weight) == model.score(frame, sample_weight=weight)
        for name in ("kernel_cost_", "inertia_", "n_iter_", "gamma_", "n_clusters_"):
            assert getattr(other, name) == getattr(model, name)
        assert other.scale_.tolist() == model.scale_.tolist()
        assert other.feature_names_in_.tolist() == NAMES
        assert other.get_params() == model.get_params()
    loaded.save(tmp_path / "again.json", rows=True)
    assert (tmp_path / "again.json").read_text() == (tmp_path / "model.json").read_text()
    # It can be fitted again, with the parameters of its kernel.
    again = loaded.fit(frame, sample_weight=weight)
    assert again.labels_.tolist() == model.labels_.tolist()


@QUIET
@pytest.mark.parametrize("options", [*WITH_ROWS, {"kernel": "linear"}])
def test_arrays_and_their_names(options, tmp_path):
    model = made(**options).fit(X, feature_names=NAMES)
    for fitted in (made(**options).fit(X), model):
        loaded = reloaded(fitted, tmp_path / "model.json")
        assert not hasattr(loaded, "feature_names_in_") and loaded.n_features_in_ == 3
        assert loaded.predict(OTHERS).tolist() == model.predict(OTHERS).tolist()
    # Frames are still matched by the names.
    frame = pl.DataFrame(OTHERS, schema=NAMES)[:, ::-1]
    assert loaded.predict(frame).tolist() == model.predict(OTHERS).tolist()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("options", [*WITH_ROWS, {"kernel": "linear"}, {"approximation": "rff"}])
def test_fewer_clusters_than_asked_for(options, tmp_path):
    rows = np.repeat([[0.0, 1.0], [5.0, 1.0]], 10, axis=0)
    model = made(**options).fit(rows)
    loaded = reloaded(model, tmp_path / "model.json")
    assert loaded.n_clusters_ == 2
    assert loaded.predict(rows).tolist() == model.labels_.tolist()
    assert loaded.score(rows) == model.score(rows)


def test_rows_that_the_kernel_cannot_see_have_no_landmarks(tmp_path):
    with pytest.warns(ConvergenceWarning, match="Only 1 distinct"):
        model = made(kernel="linear", approximation="rpcholesky").fit(np.zeros((20, 2)))
    loaded = reloaded(model, tmp_path / "model.json")
    assert loaded.predict(OTHERS[:, :2]).tolist() == [0] * len(OTHERS)


def test_a_loaded_model_is_a_reference_for_trees(tmp_path):
    model = made().fit(X)
    loaded = reloaded(model, tmp_path / "model.json")
    tree = tc.KernelExpand(reference=loaded, max_leaves=6).fit(X)
    assert tree.reference_labels_.tolist() == model.labels_.tolist()


def test_what_takes_the_rows_of_the_fit_is_not_there(tmp_path):
    loaded = reloaded(made().fit(X), tmp_path / "model.json")
    with pytest.raises(AttributeError, match=r"no labels_: it takes the rows.*Fit it anew"):
        _ = loaded.labels_


def test_unfitted_models_say_so(tmp_path):
    with pytest.raises(NotFittedError):
        made().save(tmp_path / "model.json", rows=True)
    with pytest.raises(AttributeError, match="no n_clusters_ yet: call fit first"):
        _ = made().n_clusters_


# ---- rows of the fit ----------------------------------------------------------------------


@pytest.mark.parametrize("options", WITH_ROWS)
def test_rows_of_the_fit_are_written_on_request_only(options, tmp_path):
    path = tmp_path / "model.json"
    model = made(**options).fit(X)
    with pytest.raises(ValueError, match=r"predict needs \d+ rows of .* save\(path, rows=True\)"):
        model.save(path)
    assert not path.exists()
    with pytest.raises(ValueError, match=r"on request.*approximation=\"rff\".*linear.*pickle"):
        reloaded(model, path).save(path, rows=False)


@pytest.mark.parametrize(
    "options",
    [{"kernel": name} for name in ("linear", "cosine", "hellinger")] + [{"approximation": "rff"}],
)
def test_models_without_rows_of_the_fit(options, tmp_path):
    model = made(**options).fit(X)
    loaded = reloaded(model, tmp_path / "model.json", rows=False)
    assert loaded.predict(OTHERS).tolist() == model.predict(OTHERS).tolist()
    assert '"rows"' not in (tmp_path / "model.json").read_text()


@pytest.mark.parametrize("options", WITH_ROWS)
def test_large_models_are_refused_with_their_size(options, tmp_path, monkeypatch):
    model, path = made(**options).fit(X), tmp_path / "model.json"
    size = 160 * (3 + 4)
    if options:
        size = sum(array.size for array in model._predictor.feature_map.arrays.values())
    monkeypatch.setattr(model_file, "MAX_ROW_NUMBERS", size)
    model.save(path, rows=True)
    monkeypatch.setattr(model_file, "MAX_ROW_NUMBERS", size - 1)
    said = rf"predict needs {size:,} numbers.*may have {size - 1:,}. approximation=.*pickle"
    with pytest.raises(ValueError, match=said):
        model.save(path, rows=True)
    if not options:
        with pytest.raises(ValueError, match=rf"model.json: predict needs {size:,} numbers"):
            tc.load(path)


def test_kernels_that_a_file_cannot_hold(tmp_path):
    def my_kernel(x, y):
        return float(x @ y)

    gram = X @ X.T
    model = made(kernel="precomputed").fit(X, gram=gram)
    with pytest.raises(ValueError, match=r'cannot hold a fit with kernel="precomputed".*pickle'):
        model.save(tmp_path / "model.json", rows=True)
    for approximation in (None, "nystroem"):
        model = made(kernel=my_kernel, approximation=approximation).fit(X)
        with pytest.raises(ValueError, match=r"cannot hold the kernel 'my_kernel'.*pickle"):
            model.save(tmp_path / "model.json", rows=True)
    assert not list(tmp_path.iterdir())


# ---- damage -------------------------------------------------------------------------------

EXACT, RFF, NYSTROEM, CHOLESKY, LINEAR = (
    {},
    {"approximation": "rff"},
    {"approximation": "nystroem"},
    {"approximation": "rpcholesky"},
    {"kernel": "linear"},
)
CHI2 = {"kernel": "chi2"}


@pytest.mark.parametrize(
    ("options", "place", "value", "message"),
    [
        (EXACT, ["fitted", "inertia_"], -1.0, "a negative inertia"),
        (EXACT, ["fitted", "kernel_cost_"], None, "fitted in the model file holds null"),
        (EXACT, ["fitted", "n_iter_"], 0, "n_iter_ in the model file must be at least 1, not 0"),
        (EXACT, ["fitted", "extra"], 0, "unknown key 'extra'"),
        (EXACT, ["means"], [], "means of the model file must be an object"),
        (EXACT, ["means", "extra"], 0, "unknown key 'extra'"),
        (EXACT, ["means", "scale"], [], "scale in the model file is empty"),
        (EXACT, ["means", "scale"], [1, 0, 1], "a scale that is not positive"),
        (EXACT, ["means", "shift"], [0.0], "shift in the model file has 1 entries; 3 were"),
        (EXACT, ["means", "feature_names"], ["a", "a", "b"], "'a' is repeated"),
        (EXACT, ["means", "feature_names"], ["a", 1, "b"], "feature_names .* holds an integer"),
        (EXACT, ["means", "kernel", "name"], "gaussian", "'gaussian', which is not known"),
        (EXACT, ["means", "kernel", "gamma"], None, "the gamma None for the kernel 'rbf'"),
        (EXACT, ["means", "kernel", "gamma"], -1.0, "gamma must be > 0"),
        (EXACT, ["means", "kernel", "degree"], "3", "degree in the model file holds a string"),
        (EXACT, ["means", "kernel", "params"], {"beta": 1}, "Unknown kernel_params 'beta'"),
        (EXACT, ["means", "kernel", "params"], [], "params of the kernel"),
        (EXACT, ["means", "kernel", "name"], "laplacian", None),
        (EXACT, ["means", "weight"], [], "weight in the model file is empty"),
        (EXACT, ["means", "weight"], [40.0] * 3, "stocks in the model file has 4 entries; 3"),
        (EXACT, ["means", "weight"], [40.0] * 3 + [39.0], "is not the sum of the weights"),
        (EXACT, ["means", "stocks"], [1e308, 1.0, 1.0, 1.0], None),
        (EXACT, ["means", "groups"], [4] * 160, "groups in the model file must be from 0 to 3"),
        (EXACT, ["means", "groups"], [0.5] * 160, "groups in the model file holds a number"),
        (EXACT, ["means", "row_weights"], [0.0] * 160, "zero in all 160 rows"),
        (EXACT, ["means", "row_weights"], [-1.0] * 160, "negative"),
        (EXACT, ["means", "rows"], [[0.0, 0.0]] * 160, "rows .* has a row of 2 entries; 3 were"),
        (EXACT, ["means", "rows"], [], "groups in the model file has 160 entries; 0 were"),
        (EXACT, ["means", "origin"], [0.0] * 3, "unknown key 'origin'"),
        (CHI2, ["means", "rows"], [[0.0, -1.0, 0.0]] * 160, "needs values >= 0"),
        (LINEAR, ["means", "centers"], [], "centers in the model file is empty"),
        (LINEAR, ["means", "column_rest"], [[0.0] * 3], "column_rest .* has 1 entries; 4 were"),
        (LINEAR, ["means", "kernel", "name"], "cosine", "unknown key 'column_means'"),
        (LINEAR, ["means", "kernel", "name"], "rbf", "the gamma None for"),
        (RFF, ["means", "map", "method"], "svd", "no known method"),
        (RFF, ["means", "map", "method"], "nystroem", "map of the model file lacks 'mixing', 'row"),
        (RFF, ["means", "map", "offset"], [], "makes no features"),
        (RFF, ["means", "map", "weights"], [[0.0] * 20], "weights .* has 1 entries; 3 were"),
        (RFF, ["means", "origin"], [0.0], "origin in the model file has 1 entries; 20 were"),
        (RFF, ["means", "kernel", "name"], "laplacian", "of the kernel rbf, not laplacian"),
        (RFF, ["means", "map"], None, "map of the model file has no known method"),
        (NYSTROEM, ["means", "map", "mixing"], [], "makes no features"),
        (NYSTROEM, ["means", "map", "mixing"], [1.0] * 20, "makes no features"),
        (NYSTROEM, ["means", "map", "rows"], [[0.0] * 3], "mixing .* has 20 entries; 1 were"),
        (CHOLESKY, ["means", "map", "factor"], [[0.0] * 20] * 20, "diagonal that is not positive"),
    ],
)
def test_damage_is_named(options, place, value, message, tmp_path):
    path = tmp_path / "model.json"
    made(**options).fit(X).save(path, rows=True)
    payload = json.loads(path.read_text())
    part = payload
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    path.write_text(json.dumps(payload))
    if message is None:  # another model, but a model
        assert tc.load(path).predict(OTHERS).max() < 4
        return
    with pytest.raises(ValueError, match=rf"model\.json: .*{message}"):
        tc.load(path)


@pytest.mark.parametrize("options", [EXACT, RFF, LINEAR, {"kernel": "polynomial"}, CHI2])
def test_rows_at_the_end_of_the_floats_are_told_apart_or_refused(options):
    model = made(**options).fit(X)
    for row in ([1.7e308] * 3, [1e308, 0.0, 1.0]):
        for call in (model.predict, model.score):
            try:
                assert np.isfinite(call([row]))
            except ValueError as error:
                if "overflow float64" not in str(error):
                    raise


@pytest.mark.parametrize("options", [LINEAR, RFF])
def test_rows_as_far_from_all_means_are_refused(options):
    model = made(**options).fit(X)
    with pytest.raises(ValueError, match=r"overflow float64\. Use scale="):
        model.predict([[1.7e308, 0.0, 0.0]])


# ---- the command line ---------------------------------------------------------------------


def test_the_command_predicts_with_it_and_says_that_there_is_no_tree(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame(X, schema=NAMES)
    frame.write_csv("rows.csv")
    model = made(scale="standard").fit(frame)
    model.save("model.json", rows=True)
    assert main(["predict", "model.json", "rows.csv", "-o", "out.csv"]) == 0
    assert pl.read_csv("out.csv")["cluster"].to_list() == model.labels_.tolist()
    for command in (
        ["info", "model.json"],
        ["info", "model.json", "--leaves", "2"],
        ["plot", "model.json", "-o", "tree.dot"],
        ["explain", "model.json", "rows.csv"],
    ):
        assert main(command) == 2
        assert (
            "the model is a KernelKMeans, which has no tree: only predict"
            in capsys.readouterr().err
        )
