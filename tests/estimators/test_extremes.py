"""Weights and cells at the ends of float64, and parameters that no fit takes."""

import json
import re
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

import treeclust_rs as tc
from small_models import MODELS, blobs, make, save

WEIGHTED = [name for name in MODELS if name != "Douglas"]


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1e300])
def test_weights_whose_products_float64_cannot_hold_are_refused(name, weight):
    weights = np.full(60, weight)
    with pytest.raises(ValueError, match=r"60 entries outside of 1e-150 to 1e\+150, the first"):
        make(name).fit(blobs(), sample_weight=weights)
    mixed = np.where(np.arange(60) == 7, weight, 1.0)
    with pytest.raises(ValueError, match=r"1 entry outside .* in row 7 \(counting from 0\)"):
        make(name).fit(blobs(), sample_weight=mixed)


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("weight", [2.0**-450, 2.0**450])
def test_equal_weights_of_any_size_make_the_same_clusters(name, weight):
    X, model = blobs(), make(name)
    if name == "ObliqueTree":
        model.set_params(alpha=0.0)  # a price, which is set against the weights
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = model.fit(X, sample_weight=np.full(60, weight)).labels_
    np.testing.assert_array_equal(labels, model.fit(X).labels_)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["IMM", "ExKMC", "KernelIMM", "KMeansTree", "VoronoiTree"])
def test_no_mistakes_are_zero_whatever_the_weights(name, seed):
    weights = np.random.default_rng(seed).random(60)
    tree = make(name).fit(blobs(), sample_weight=weights).tree_
    # The blobs are far apart: no cut separates a row from its center.
    counted = tree.mistakes[~np.isnan(tree.mistakes)]
    np.testing.assert_array_equal(counted, np.zeros(len(counted)))
    assert name == "VoronoiTree" or np.isfinite(tree.mistakes[tree.kind == 0]).all()


def test_mistakes_that_there_are_stay():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(80, 2)), rng.random(80)
    tree = tc.IMM(4, random_state=0).fit(X, sample_weight=weights).tree_
    counted = tree.mistakes[tree.kind == 1]
    assert (counted > 0.01).any()
    assert ((counted == 0) | (counted > 1e-9)).all()


def outcome_of(call, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = call(rows)
        except ValueError as error:
            return str(error)
    return "fine" if isinstance(found, list) or np.isfinite(found) else f"returned {found}"


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("scale", [None, "standard"])
def test_rows_at_the_ends_of_float64_get_a_number_or_a_message(name, scale):
    model = make(name).set_params(scale=scale).fit(blobs())
    rows = np.full((4, 3), 1.7e308)
    rows[1] *= -1
    rows[2, 1] *= -1
    rows[3, 0] *= -1
    for method in ("explain", "score"):
        if not hasattr(model, method):
            continue
        assert re.search("overflow|is inf|^fine$", outcome_of(getattr(model, method), rows))


def test_scores_of_oblique_tests_that_overflow_are_named():
    X = blobs()
    for model in (make("VoronoiTree").fit(X), make("ObliqueTree").fit(X)):
        with pytest.raises(
            ValueError, match=r"weighted sum of a test overflows .* row \d+ \(count"
        ):
            model.explain(np.array([[1.7e308] * 3, [-1.7e308] * 3]))


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_lengths_that_overflow_are_an_error(kind):
    model = tc.ObliqueTree(2, metric="cosine", alpha=0.01, random_state=0)
    rows = np.abs(blobs())
    model.fit(kind(rows))
    rows[3] = 1.7e308
    for call in (model.fit, model.score):
        with pytest.raises(ValueError, match=r"length of row 3 \(counting from 0\) overflows"):
            call(kind(rows))


@pytest.mark.parametrize("name", MODELS)
def test_no_threads_are_refused_by_name(name):
    with pytest.raises(ValueError, match=r"The 'n_jobs' parameter of \w+ must be .* Got 0 instead"):
        make(name).set_params(n_jobs=0).fit(blobs())


@pytest.mark.parametrize("name", MODELS)
def test_a_file_without_threads_is_refused(name, tmp_path):
    path = tmp_path / "model.json"
    save(make(name).fit(blobs()), path)
    payload = json.loads(path.read_text())
    payload["params"]["n_jobs"] = 0
    path.write_text(json.dumps(payload))
    with pytest.raises(ValueError, match="'n_jobs' parameter"):
        tc.load(path)
