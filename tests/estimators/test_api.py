"""What the design promises of every estimator: its API and its behaviour, one test a line of both.

A new estimator is a line in `every_estimator.ESTIMATORS`.
"""

from __future__ import annotations

import copy
import datetime
import inspect
import pickle
import re
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import get_tags
from sklearn.utils._param_validation import StrOptions

import treeclust_rs as tc
from every_estimator import ESTIMATORS
from treeclust_rs.metrics import adjusted_rand_index


def those(**flags):
    """Return the mark of a test for the estimators whose flags are these."""
    names = [
        name
        for name, case in ESTIMATORS.items()
        if all(getattr(case, flag) == value for flag, value in flags.items())
    ]
    return pytest.mark.parametrize("case", [ESTIMATORS[name] for name in names], ids=names)


every = those()
NAMES = ["age", "income", "visits"]
CODES = np.repeat([0, 1, 2], 20)
rng = np.random.default_rng(0)
# Multiples of 1/64: exact also at an offset of 1e8, and in float32.
NOISE = np.round(64 * rng.normal(size=(60, 3))) / 64
X = np.array([[0.0, 0, 0], [16, 0, 4], [0, 24, 0]])[CODES] + NOISE
FRAME = pl.DataFrame(X, schema=NAMES)


def same(model, other):
    """Whether two models are equal, bit for bit."""
    if not np.array_equal(model.labels_, other.labels_):
        return False
    if hasattr(model, "tree_"):
        return model.tree_ == other.tree_
    if hasattr(model, "weights_"):
        return np.array_equal(model.weights_, other.weights_)
    return model.inertia_ == other.inertia_ if hasattr(model, "inertia_") else True


# ---- the API ------------------------------------------------------------------------------


def test_every_public_estimator_is_in_the_list():
    public = {name for name in tc.__all__ if hasattr(getattr(tc, name), "fit")}
    assert {case.estimator.__name__ for case in ESTIMATORS.values()} == public


@every
def test_it_is_an_estimator_of_scikit_learn(case):
    assert issubclass(case.estimator, (ClusterMixin, BaseEstimator))
    assert not issubclass(case.estimator, TransformerMixin)
    clusters, *others = inspect.signature(case.estimator).parameters.values()
    assert clusters.kind == inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert {other.kind for other in others} == {inspect.Parameter.KEYWORD_ONLY}
    names = {other.name for other in others}
    assert {"scale", "random_state", "n_jobs", "verbose"} < names
    assert ("reference" in names) == case.explains


# A distance between rows is a `metric`, a cost of clusters a `criterion`, wherever one can choose.
# What BestTree makes small may also be the rows without their label: its `objective`.
WORDS = {
    ("IMM", "criterion"): {"kmeans", "kmedians"},
    ("ExGreedy", "criterion"): {"kmeans", "kmedians"},
    ("ExShallow", "criterion"): {"kmeans", "kmedians"},
    ("ExKMC", "criterion"): {"kmeans", "kmedians"},
    ("RandomCuts", "criterion"): {"kmeans", "kmedians"},
    ("ObliqueTree", "metric"): {"euclidean", "cosine"},
}
COSTS = {"kmeans", "kmedians", "kmedoids", "label_cost", "l1_cost", "l2_cost"}
DISTANCES = {*tc.gemini.METRICS, "spherical"}
OTHER_WORDS = {"distance", "dissimilarity", "affinity", "norm", "cost", "loss", "objective"}


def words_of(estimator):
    """Return the values of parameters called metric or criterion, by estimator and parameter.

    Fails where a parameter of another name takes a distance or a cost: all but the kernel, which
    is called "cosine" too.
    """
    found = {}
    for name in inspect.signature(estimator).parameters:
        values = set()
        for one in estimator._parameter_constraints[name]:
            values |= set(one.options) if isinstance(one, StrOptions) else set()
        wrong = f"{estimator.__name__}({name}=...) takes {sorted(values)}"
        if (estimator.__name__, name) == ("BestTree", "objective"):
            continue
        assert name not in OTHER_WORDS, wrong
        assert name == "criterion" or not values & COSTS, wrong
        assert name in ("metric", "kernel") or not values & DISTANCES, wrong
        if name in ("metric", "criterion"):
            found[estimator.__name__, name] = values
    return found


@every
def test_a_distance_is_a_metric_and_a_cost_a_criterion(case):
    name = case.estimator.__name__
    found = words_of(case.estimator)
    assert found == {key: values for key, values in WORDS.items() if key[0] == name}
    for (_, parameter), values in found.items():
        (line,) = re.findall(rf"^ +{parameter} : {{(.*?)}}", case.estimator.__doc__, re.MULTILINE)
        assert set(re.findall(r'"(.*?)"', line)) == values
        for value in values:
            assert case.make(**{parameter: value}).fit(X).n_leaves_ >= 3
        with pytest.raises(ValueError, match=f"The '{parameter}' parameter"):
            case.make(**{parameter: "manhattan"}).fit(X)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("distance", {"near"}),
        ("assign_by", {"cosine"}),
        ("criterion", {"l1"}),
        ("by", {"kmedians"}),
    ],
)
def test_another_word_for_a_metric_or_a_criterion_is_found(name, values):
    signature = inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)])
    constraints = {name: [StrOptions(values), None]}
    body = {"__signature__": signature, "_parameter_constraints": constraints}
    with pytest.raises(AssertionError, match=name):
        words_of(type("Another", (), body))


@every
def test_methods_take_the_same_arguments_in_the_same_order(case):
    def arguments(method):
        return list(inspect.signature(getattr(case.estimator, method)).parameters)

    assert arguments("fit")[:3] == ["self", "X", "y"]
    assert arguments("predict")[:2] == ["self", "X"]
    assert arguments("score")[:3] == ["self", "X", "y"]
    assert arguments("fit_predict")[:3] == ["self", "X", "y"]
    if case.weighted:
        assert arguments("fit")[3] == arguments("score")[3] == "sample_weight"


@every
def test_parameters_are_stored_cloned_and_set(case):
    model = case.make()
    params = model.get_params()
    assert clone(model).get_params() == params
    assert case.estimator(**params).get_params() == params
    assert all(getattr(model, name) is value for name, value in params.items())
    assert model.set_params(n_jobs=2, verbose=1) is model
    assert model.get_params() == params | {"n_jobs": 2, "verbose": 1}
    with pytest.raises(ValueError, match="nonsense"):
        model.set_params(nonsense=1)
    with pytest.raises(TypeError, match="nonsense"):
        case.estimator(nonsense=1)
    fitted = clone(model.fit(X))
    assert fitted.get_params() == model.get_params() and not hasattr(fitted, "labels_")


@every
def test_plain_use_brings_no_warning(case, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = case.make()
        assert model.fit(FRAME) is model
        labels = model.labels_
        assert labels.shape == (60,) and set(labels) <= set(range(3))
        assert adjusted_rand_index(CODES, labels) == 1
        assert model.predict(FRAME).tolist() == labels.tolist()
        assert case.make().fit_predict(FRAME).tolist() == labels.tolist()
        assert isinstance(model.score(FRAME), float)
        assert repr(model) and model._repr_html_()
    told = capfd.readouterr()
    assert told.out == told.err == ""


@every
def test_a_fit_sets_what_every_fit_sets(case):
    model = case.make().fit(FRAME)
    assert model.n_features_in_ == 3 and model.feature_names_in_.tolist() == NAMES
    assert model.fit(X).n_features_in_ == 3 and not hasattr(model, "feature_names_in_")
    assert model.labels_.dtype.kind == "i"
    if case.has_tree:
        assert isinstance(model.inertia_, float)
        assert isinstance(model.tree_, tc.ClusterTree)
        assert model.n_leaves_ == model.tree_.n_leaves == len(model.tree_.leaves)
        assert model.classes_.tolist() == list(model.tree_.classes) == [0, 1, 2]
        assert model.cluster_centers_.shape == (3, 3)
        assert model.feature_importances_.sum() == pytest.approx(1)
        means = np.array([X[model.labels_ == c].mean(axis=0) for c in range(3)])
        np.testing.assert_allclose(model.cluster_centers_, means)
        assert model.inertia_ == pytest.approx(((X - means[model.labels_]) ** 2).sum())
        assert model.score(X) == pytest.approx(
            -model._kernel_cost if case.kernel else -model.inertia_
        )
    if case.has_tree and case.explains:
        assert model.cost_ratio_ == pytest.approx(model.inertia_ / model.reference_inertia_)
    if case.kernel and case.has_tree:
        assert model.kernel_cost_ > 0
    if case.kernel and case.explains:
        ratio = model.kernel_cost_ / model.reference_kernel_cost_
        assert model.price_of_explainability_ == pytest.approx(ratio)


@every
def test_all_is_refused_before_a_fit(case, tmp_path):
    model = case.make()
    calls = ["predict", "score", *(["explain", "apply"] if case.has_rules else [])]
    for name in calls:
        with pytest.raises(NotFittedError):
            getattr(model, name)(X)
    for name in ("labels_", "inertia_", "tree_", "classes_"):
        assert not hasattr(model, name)
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "never.json")
    if case.has_rules:
        for name in ("to_polars", "to_narwhals", "to_sql"):
            with pytest.raises(NotFittedError):
                getattr(model, name)()
    if case.has_tree:
        with pytest.raises(NotFittedError):
            model.to_graphviz()
    if case.has_path:
        with pytest.raises(NotFittedError):
            model.truncate(3)
    assert not list(tmp_path.iterdir())


@every
def test_copies_are_the_model(case, tmp_path):
    model = case.make().fit(FRAME)
    joblib.dump(model, tmp_path / "model.joblib")
    for other in (
        pickle.loads(pickle.dumps(model)),
        joblib.load(tmp_path / "model.joblib"),
        copy.deepcopy(model),
    ):
        assert same(model, other) and other.get_params() == model.get_params()
        assert other.predict(FRAME).tolist() == model.labels_.tolist()
        assert other.score(FRAME) == model.score(FRAME)


@every
def test_files_are_the_model(case, tmp_path):
    model = case.make().fit(FRAME)
    model.save(tmp_path / "model.json", **case.saving)
    other = tc.load(tmp_path / "model.json")
    assert type(other) is type(model)
    assert other.predict(FRAME).tolist() == model.labels_.tolist()
    if case.has_rules:
        assert other.explain(FRAME[:5]) == model.explain(FRAME[:5])
    assert other.get_params() == model.get_params()
    assert other.feature_names_in_.tolist() == NAMES
    if case.has_tree:
        assert other.tree_ == model.tree_
        assert other.score(FRAME) == pytest.approx(model.score(FRAME), rel=1e-9)
    assert not hasattr(other, "labels_")
    other.save(tmp_path / "again.json", **case.saving)
    assert (tmp_path / "again.json").read_text() == (tmp_path / "model.json").read_text()


@those(has_rules=True)
def test_explanations_and_expressions_are_predictions(case):
    model = case.make().fit(FRAME)
    lines = model.explain(FRAME)
    assert [line.split(":")[0] for line in lines] == [f"cluster {c}" for c in model.labels_]
    assert model.apply(FRAME).shape == (60,)
    for frame in (FRAME, FRAME.lazy(), FRAME.with_columns(pl.all().cast(pl.Float32))):
        found = frame.lazy().select(model.to_polars()).collect()["cluster"]
        assert found.to_list() == model.labels_.tolist()


@those(has_path=True)
def test_truncated_models_are_smaller_fits(case):
    model = case.make().fit(X)
    small = model.truncate(3)
    assert small.n_leaves_ == 3 and small.labels_.shape == (60,)
    assert small.predict(X).tolist() == small.labels_.tolist()
    if hasattr(model, "cost_path_"):
        assert model.cost_path_["n_leaves"].to_list()[-1] == model.n_leaves_
        assert model.cost_path_["inertia"].to_list()[-1] == model.inertia_


# ---- bits: seeds and threads --------------------------------------------------------------


@every
def test_one_seed_is_one_result_for_any_number_of_threads(case):
    first = case.make(n_jobs=1).fit(X)
    for n_jobs in (1, 3):
        assert same(first, case.make(n_jobs=n_jobs).fit(X))
    assert same(first, first.fit(X))


@every
@pytest.mark.parametrize(
    ("n_jobs", "message"), [(0, "n_jobs.*Got 0"), (1.5, "n_jobs.*Got 1.5")], ids=str
)
def test_numbers_of_threads_that_are_none(case, n_jobs, message):
    with pytest.raises(ValueError, match=message):
        case.make(n_jobs=n_jobs).fit(X)


# ---- containers ---------------------------------------------------------------------------


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


WHOLE = np.round(X) + 30  # whole numbers from 0 to 255
CONTAINERS = {
    "F": np.asfortranarray,
    "strided": lambda array: np.repeat(np.repeat(array, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda array: array[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
    "lists": lambda array: array.tolist(),
    "f32": lambda array: array.astype(np.float32),
    "f16": lambda array: array.astype(np.float16),
    "i64": lambda array: array.astype(np.int64),
    "u8": lambda array: array.astype(np.uint8),
    "objects": lambda array: array.astype(object),
}


@every
def test_arrays_of_every_kind_are_the_same_rows(case):
    known = {"reference": CODES} if case.explains else {}
    expected = case.make(**known).fit(WHOLE)
    for name, container in CONTAINERS.items():
        given = container(WHOLE)
        model = case.make(**known).fit(given)
        assert same(model, expected), name
        assert model.predict(given).tolist() == expected.labels_.tolist(), name


@every
def test_booleans_count_as_numbers(case):
    flags = np.column_stack([CODES == 0, CODES == 1, CODES == 2])
    model = case.make().fit(flags)
    assert same(model, case.make().fit(flags.astype(float)))
    assert model.predict(pd.DataFrame(flags).to_numpy()).tolist() == model.labels_.tolist()


@every
def test_frames_of_every_kind_are_the_same_rows(case):
    chunks = pl.concat([FRAME[:7], FRAME[7:]], rechunk=False)
    assert chunks["age"].n_chunks() == 2
    expected = case.make().fit(FRAME)
    for given in (chunks, FRAME.lazy(), FRAME.to_pandas(), FRAME.to_arrow()):
        model = case.make().fit(given)
        assert same(model, expected) and model.feature_names_in_.tolist() == NAMES
        assert model.predict(given).tolist() == expected.labels_.tolist()


# ---- columns at predict -------------------------------------------------------------------


@every
def test_columns_are_matched_by_name(case):
    model = case.make().fit(FRAME)
    labels, score = model.labels_.tolist(), model.score(FRAME)
    shuffled = FRAME.select("visits", pl.lit("text").alias("town"), "age", "income")
    for given in (shuffled, shuffled.lazy(), shuffled.to_pandas(), shuffled.to_arrow()):
        assert model.predict(given).tolist() == labels
        assert model.score(given) == score
    for call in (model.predict, model.score):
        with pytest.raises(ValueError, match=r"X lacks .* of the . columns that are needed: '"):
            call(shuffled.select("town"))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        assert model.predict(X).tolist() == labels
    for call in (model.predict, model.score):
        with (
            warnings.catch_warnings(action="ignore"),
            pytest.raises(ValueError, match=r"X has 2 features, but \w+ is expecting 3"),
        ):
            call(X[:, :2])


# ---- cells that are no numbers ------------------------------------------------------------


def takes_gaps(model):
    return get_tags(model).input_tags.allow_nan


@every
@pytest.mark.parametrize("cell", [np.nan, np.inf, -np.inf], ids=str)
def test_cells_that_are_not_finite_are_named(case, cell):
    bad = X.copy()
    bad[[17, 30], 1] = cell
    word = "NaN" if np.isnan(cell) else "inf"
    said = rf"contains {word}: column (x1|'income') has 2 {word}, the first in row 17 "
    said += ".*Fill these cells, or drop" * (word == "NaN")
    model = case.make()
    if not (np.isnan(cell) and takes_gaps(model)):
        for given in (bad, pl.DataFrame(bad, schema=NAMES), pd.DataFrame(bad, columns=NAMES)):
            for call in (model.fit, model.fit_predict):
                with pytest.raises(ValueError, match=said):
                    call(given)
        assert not hasattr(model, "labels_")
    model.fit(X)
    directions = getattr(getattr(model, "tree_", None), "missing_go_to_left", None)
    if np.isnan(cell) and directions is not None:
        return  # see test_mixed_methods.py
    with pytest.raises(ValueError, match=said):
        model.score(bad)
    said = rf"column x\d has 60 {word}, the first in row 0"
    for name in ("predict", *(["apply", "explain"] if case.has_rules else [])):
        with pytest.raises(ValueError, match=said):
            getattr(model, name)(np.full((60, 3), cell))


@every
def test_nulls_are_named(case):
    if takes_gaps(case.make()):
        return
    holes = FRAME.with_columns(
        pl.when(pl.col("age") < 1e9, pl.int_range(pl.len()) != 4).then("income")
    )
    for given in (holes, holes.lazy(), holes.to_arrow()):
        with pytest.raises(
            ValueError, match=r"NaN.*'income' has 1 null, the first in row 4 .*Fill"
        ):
            case.make().fit(given)


@every
@pytest.mark.parametrize(
    "values",
    [
        pl.Series(["x", "y", "z"] * 20),
        pl.Series(["x", "y", "z"] * 20, dtype=pl.Categorical),
        pl.Series([datetime.date(2024, 1, 1)] * 60),
        pl.Series([datetime.datetime(2024, 1, 1)] * 60),
    ],
    ids=["strings", "categories", "dates", "times"],
)
def test_columns_that_are_not_numbers_are_named(case, values):
    frame = FRAME.with_columns(values.alias("segment"))
    for given in (frame, frame.lazy(), frame.to_pandas(), frame.to_arrow()):
        if takes_gaps(case.make()):
            break
        with pytest.raises(
            TypeError, match=r"'segment' \(.*\). \w+ needs numbers: encode it .* drop"
        ):
            case.make().fit(given)
    model = case.make().fit(frame.drop("segment"))
    assert model.predict(frame).tolist() == model.labels_.tolist()


# ---- sizes and shapes ---------------------------------------------------------------------


@every
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\)"),
        (np.zeros((5, 0)), r"0 feature\(s\) \(shape=\(5, 0\)\)"),
        (np.zeros(5), "Expected 2D array, got 1D array"),
        (np.zeros((2, 2, 2)), "dim 3"),
        (FRAME[:0], r"0 sample\(s\)"),
        (pl.DataFrame(), r"0 (feature|sample)\(s\)"),
        (FRAME.to_pandas()[:0], r"0 sample\(s\)"),
    ],
    ids=["no rows", "no columns", "1d", "3d", "empty frame", "no frame", "empty pandas"],
)
def test_wrong_shapes_are_refused(case, given, message):
    with pytest.raises(ValueError, match=message):
        case.make(2).fit(given)


@every
@pytest.mark.parametrize("k", [0, -3, 2.5, "3"], ids=str)
def test_numbers_of_clusters_that_are_none(case, k):
    parameter = next(iter(inspect.signature(case.estimator).parameters))
    with pytest.raises(
        ValueError, match=rf"'{parameter}' parameter of \w+ must be .*range \[1, .*Got .?{k}"
    ):
        case.make(k).fit(X)


@those(at_most=False)
def test_more_clusters_than_rows_are_refused(case):
    with pytest.raises(ValueError, match=r"n_samples=4 .*=5"):
        case.make(5).fit(X[::15])


@those(explains=True)
def test_another_number_of_clusters_than_the_reference_has_is_refused(case):
    for reference in (CODES, X[[0, 20, 40]]):
        with pytest.raises(ValueError, match=r"n_clusters=4.*has 3 clusters"):
            case.make(4, reference=reference).fit(X)
        model = case.make(None, reference=reference).fit(X)
        assert adjusted_rand_index(CODES, model.labels_) == 1
    with pytest.raises(ValueError, match=r"59 labels.*X has 60 rows"):
        case.make(None, reference=CODES[1:]).fit(X)


@every
def test_fewer_leaves_than_clusters_are_refused(case):
    if "max_leaves" in case.make().get_params() and case.explains:
        with pytest.raises(ValueError, match=r"max_leaves=2 .*n_clusters=3"):
            case.make(max_leaves=2).fit(X)


@every
def test_a_failed_fit_leaves_the_estimator_as_it_was(case):
    model = case.make().fit(FRAME)
    before = dict(vars(model))
    weights = [{"sample_weight": np.ones(7)}, {"sample_weight": -np.ones(60)}]
    for table, arguments in (
        (np.full((9, 2), np.nan), {}),
        (X[0], {}),
        *((X, weight) for weight in weights if case.weighted),
    ):
        with pytest.raises(ValueError, match=r"NaN|Expected 2D array|sample_weight"):
            model.fit(table, **arguments)
        assert vars(model).keys() == before.keys()
        assert all(value is before[name] for name, value in vars(model).items())
    assert model.predict(FRAME).tolist() == model.labels_.tolist()


# ---- data with little in them -------------------------------------------------------------


@every
def test_constant_columns_do_no_harm(case):
    wide = np.column_stack([np.full(60, 7.0), X, np.zeros(60)])
    for scale in (None, "standard"):
        model = case.make(scale=scale).fit(wide)
        assert adjusted_rand_index(CODES, model.labels_) == 1
        assert model.predict(wide).tolist() == model.labels_.tolist()
    if case.has_tree:
        assert not {0, 4} & set(model.tree_.tested_features)


@every
def test_duplicate_rows_do_no_harm(case):
    model = case.make().fit(np.repeat(X, 3, axis=0))
    assert adjusted_rand_index(np.repeat(CODES, 3), model.labels_) == 1


@every
@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (np.repeat([[0.0, 1.0], [5.0, 1.0]], 10, axis=0), 2),
        (np.full((20, 2), 3.0), 1),
        (np.zeros((20, 2)), 1),
        (np.full((20, 2), 1e8), 1),
    ],
    ids=["two rows", "equal", "zeros", "equal far"],
)
def test_as_many_clusters_as_exist(case, rows, found):
    with warnings.catch_warnings(record=True, action="always") as caught:
        model = case.make().fit(rows)
    # Who asks for at most so many clusters gets what was asked for.
    assert [warning.category for warning in caught] == [ConvergenceWarning] * (not case.at_most)
    assert all(re.search(rf"\b{found} .*\b3\b", str(w.message)) for w in caught)
    assert len(np.unique(model.labels_)) == found
    assert model.predict(rows).tolist() == model.labels_.tolist()
    if case.has_tree:
        filled = model.tree_.n_node_samples[model.tree_.leaves] > 0
        assert filled.sum() == found
        assert model.n_leaves_ == found or case.has_empty_leaves
        assert model.inertia_ == 0


@every
def test_one_row_is_one_cluster(case):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = case.make(1).fit([[3.0, 4.0]])
    assert model.labels_.tolist() == model.predict([[5.0, 6.0]]).tolist() == [0]
    if case.has_tree:
        assert model.n_leaves_ == 1 and model.inertia_ == 0
        assert model.feature_importances_.tolist() == [0, 0]


@every
@pytest.mark.parametrize("scale", [None, "standard"])
def test_columns_far_from_the_origin_give_the_same_tree(case, scale):
    near, far = case.make(scale=scale).fit(X), case.make(scale=scale).fit(X + 1e8)
    assert far.labels_.tolist() == near.labels_.tolist()
    assert far.predict(X + 1e8).tolist() == near.labels_.tolist()
    if case.has_rules:
        assert far.apply(X + 1e8).tolist() == near.apply(X).tolist()
    if case.has_tree:
        for name in ("children_left", "kind", "feature", "cluster", "n_node_samples"):
            assert getattr(far.tree_, name).tolist() == getattr(near.tree_, name).tolist()
        assert far.inertia_ == pytest.approx(near.inertia_, rel=1e-6)


@every
def test_rows_at_the_end_of_the_floats_are_told_apart_or_refused(case):
    model = case.make().fit(X)
    rows = 1.7e308 * np.array([[1, 1, 1], [-1, -1, -1], [1, -1, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = model.predict(rows).tolist()
        assert len(labels) == 3
        if case.has_rules:
            frame = pl.DataFrame(rows, schema=["x0", "x1", "x2"])
            assert frame.select(model.to_polars())["cluster"].to_list() == labels
            try:
                lines = model.explain(rows)
                assert [line.split(":")[0] for line in lines] == [f"cluster {c}" for c in labels]
            except ValueError as error:
                if "overflows float64" not in str(error):  # the sums of an oblique test
                    raise
        try:
            assert np.isfinite(model.score(rows))
        except ValueError as error:
            if not re.search(r"overflow float64|is inf; it must be finite", str(error)):
                raise


# ---- sizes that memory has not, progress --------------------------------------------------


@those(kernel=True)
def test_kernel_matrices_beyond_memory_are_refused(case):
    n = 25_000
    rows = np.random.default_rng(0).normal(size=(n, 2))
    with pytest.raises(ValueError, match=rf"{n:,} rows.* GiB.*approximation=.nystroem"):
        case.make().fit(rows)


def test_cells_beyond_memory_are_refused():
    with pytest.raises(ValueError, match=r"GiB"):
        ESTIMATORS["Douglas"].make().fit(np.tile(X, 20))


@every
def test_verbose_prints_progress(case, capfd):
    case.make(verbose=1).fit(X)
    told = capfd.readouterr()
    assert told.out == ""
    lines = told.err.strip().splitlines()
    assert lines[-1].startswith(f"[{case.estimator.__name__}] 60 rows, ")
    assert lines[-1].endswith(" s") and "nan" not in told.err


# ---- words of one meaning (issue 21, items 2 and 3) -----------------------------------------


@every
def test_one_word_is_one_thing(case):
    model = case.make().fit(FRAME)
    assert case.estimator(n_clusters=3).n_clusters == 3
    assert model.n_clusters_ == 3
    if case.has_rules:
        assert isinstance(model.n_leaves_, int) and model.n_leaves_ >= 3
        assert isinstance(model.n_parameters_, int) and model.n_parameters_ > 0
        assert model.rules().height == model.n_leaves_
    if case.explains:
        assert adjusted_rand_index(model.reference_labels_, CODES) == 1


@those(has_rules=True)
def test_arrays_may_have_names(case):
    model = case.make().fit(X, feature_names=NAMES)
    assert not hasattr(model, "feature_names_in_")
    named = case.make().fit(FRAME)
    assert model.explain(X) == named.explain(FRAME)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.predict(X).tolist() == named.labels_.tolist()
    with pytest.raises(ValueError, match=r"2 feature_names for 3 features"):
        case.make().fit(X, feature_names=NAMES[:2])


@those(has_rules=True)
def test_clusters_may_be_renamed(case, tmp_path):
    model = case.make().fit(FRAME)
    other = model.rename_clusters({0: "zero", 1: "one", 2: "two"})
    words = np.array(["zero", "one", "two"])[model.labels_]
    assert other.labels_.tolist() == other.predict(FRAME).tolist() == words.tolist()
    assert FRAME.select(other.to_polars())["cluster"].to_list() == words.tolist()
    other.save(tmp_path / "model.json")
    assert tc.load(tmp_path / "model.json").predict(FRAME).tolist() == words.tolist()
    assert model.predict(FRAME).tolist() == model.labels_.tolist()
    with pytest.raises(ValueError, match="7"):
        model.rename_clusters({7: "seven"})
