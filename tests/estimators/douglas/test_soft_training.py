"""Training the model of Douglas: starts, the length and the number of steps, pruning."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from douglas_models import recorded, three_blobs
from treeclust_rs.estimators.douglas import search as _search
from treeclust_rs.estimators.douglas import soft_training as _soft_training
from treeclust_rs.estimators.douglas import training_rows as _training_rows
from treeclust_rs.estimators.douglas.search import first_model, prune, search
from treeclust_rs.estimators.douglas.soft_training import Plan, evaluate, gradient_unit, train
from treeclust_rs.estimators.douglas.training_rows import TrainingRows
from treeclust_rs.gemini import make_gemini

PLAN = Plan(
    n_clusters=3,
    n_cuts=1,
    temperature=0.1,
    init="quantile",
    solver="adam",
    learning_rate=None,
    batch_size=64,
    warm_up=0,
    max_iter=5,
    tol=None,
    n_iter_no_change=10,
)


def blobs(n=90, gemini="mmd2_ova", factor=1.0):
    X, _ = three_blobs(n)
    return TrainingRows(((X - X.mean(axis=0)) / X.std(axis=0)).T, make_gemini(gemini), X * factor)


def seeded(seed=0):
    return np.random.RandomState(seed)


# ---- rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0, 1 << 22])
def test_parts_of_rows_are_these_rows(kept, monkeypatch):
    monkeypatch.setattr(_training_rows, "_MAX_KEPT", kept)
    rows = blobs()
    part = np.array([5, 80, 33, 2])
    found = rows.part(part).batch(np.array([2, 0]))
    for given, expected in zip(found, rows.batch(part[[2, 0]]), strict=True):
        np.testing.assert_array_equal(given, expected)


# ---- starts -------------------------------------------------------------------------------


def test_every_other_start_is_hard(monkeypatch):
    sizes = recorded(
        monkeypatch, Plan, "start", lambda model, plan, rows, rng, n: (n, model.weights.std())
    )
    search(blobs(), replace(PLAN, n_cuts=3, max_iter=1), 4, seeded())
    assert [number for number, _ in sizes] == [0, 1, 2, 3]
    expected = [0.1, 10.0, 0.1, 10.0]
    np.testing.assert_allclose([size for _, size in sizes], expected, rtol=0.3)


def test_a_hard_start_is_the_best_of_different_draws():
    values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0]
    drawn, coming = [], iter(values)

    def value(probabilities, affinity):
        drawn.append(probabilities)
        return next(coming)

    rows = TrainingRows(np.zeros((2, 30)), SimpleNamespace(value=value))
    model = replace(PLAN, init=np.full((2, 1), 0.01), batch_size=10).start(rows, seeded(), 1)
    assert next(coming, None) is None
    assert {p.shape for p in drawn} == {(10, 3)}
    assert len({p.tobytes() for p in drawn}) == len(values)
    np.testing.assert_array_equal(model.probabilities(rows.model)[:10], drawn[5])


@pytest.mark.parametrize(("counts", "cut"), [((45, 15, 40), 0.5), ((40, 15, 45), 1.5)])
def test_cuts_start_in_the_gap_nearest_to_the_quantile(counts, cut):
    rows = TrainingRows(np.repeat([[0.0, 1.0, 2.0]], counts, axis=1), make_gemini("kl_ova"))
    assert PLAN.start(rows, seeded()).cuts.tolist() == [[cut]]


def test_the_best_start_is_given_with_its_curve():
    def curve_and_value(result, model, *_):
        return model, result

    places = set()
    for seed in range(8):
        with pytest.MonkeyPatch.context() as patch:
            curves = recorded(patch, _search, "train", curve_and_value)
            values = recorded(patch, _search, "evaluate", lambda value, *a: (value, a[-1]))
            model, curve, objective = search(blobs(150), PLAN, 4, seeded(seed))
        # The same batches for all.
        assert len({of_batches for _, of_batches in values}) == 1
        best = int(np.argmax([value for value, _ in values]))
        assert objective == values[best][0]
        assert model is curves[best][0]
        assert curve is curves[best][1]
        places.add(best)
    assert len(places) > 1


def test_the_best_start_goes_on_with_all_rows(monkeypatch):
    monkeypatch.setattr(_search, "_MAX_START_ROWS", 100)
    seen = recorded(
        monkeypatch, _soft_training, "train_epoch", lambda _, model, rows, *a: len(rows)
    )
    search(blobs(300), PLAN, 2, seeded())
    assert seen == [100] * 10 + [300] * 5


def test_a_single_start_warms_up_with_some_rows_and_trains_with_all(monkeypatch):
    monkeypatch.setattr(_search, "_MAX_START_ROWS", 100)
    seen = recorded(
        monkeypatch,
        _soft_training,
        "train_epoch",
        lambda _, model, rows, *a: (rows.gemini.name, len(rows)),
    )
    search(blobs(300, "wasserstein_ova"), replace(PLAN, warm_up=3), 1, seeded())
    assert seen == [("energy_ova", 100)] * 3 + [("wasserstein_ova", 300)] * 5


@pytest.mark.parametrize(
    ("n", "batch_size", "n_seen"), [(300, 64, 300), (3000, 50, 1024), (3000, 100, 1600)]
)
def test_rows_that_come_in_parts_begin_with_starts_on_some(n, batch_size, n_seen, monkeypatch):
    seen = recorded(
        monkeypatch,
        _search,
        "search",
        lambda found, rows, plan, n_init, rng: (found[0], len(rows), n_init),
    )
    model = first_model(blobs(n), replace(PLAN, batch_size=batch_size, max_iter=1), 3, seeded())
    assert seen == [(model, n_seen, 3)]


# ---- steps --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("solver", "rate", "step"),
    [("adam", None, 0.05), ("adam", 0.002, 0.002), ("sgd", None, 1.0), ("sgd", 0.002, 0.002)],
)
def test_first_steps_are_as_long_as_the_learning_rate(solver, rate, step):
    parameters = np.zeros(1)
    replace(PLAN, solver=solver, learning_rate=rate).optimiser().step(parameters, np.ones(1))
    assert parameters[0] == pytest.approx(step, rel=1e-6)


@pytest.mark.parametrize("patience", [1, 3])
def test_training_ends_when_nothing_rises_by_the_tolerance(patience):
    rows = blobs()
    plan = replace(PLAN, max_iter=20, n_iter_no_change=patience)
    model = PLAN.start(rows, seeded())
    # The first epoch counts as a rise; none after it is elevenfold.
    curve = train(model, rows, replace(plan, tol=10.0), seeded())
    assert len(curve) == 1 + patience
    assert len(train(model, rows, plan, seeded())) == 20


@pytest.mark.parametrize(
    ("gemini", "power"), [("wasserstein_ova", 1), ("mmd_ovo", 1), ("mmd2_ova", 2)]
)
def test_the_unit_of_gradients_is_that_of_the_affinity(gemini, power):
    rows = blobs(gemini=gemini)
    unit = gradient_unit(rows, 64)
    assert unit > 0
    assert gradient_unit(blobs(gemini=gemini, factor=1e3), 64) == pytest.approx(unit * 1e3**power)


def test_the_unit_of_gradients_is_0_only_if_all_rows_are_alike():
    rows = blobs(gemini="wasserstein_ova")
    equal = np.zeros(64, dtype=int)
    assert gradient_unit(rows.part(equal), 8) == 0.0
    for place in (0, 7, 8, 30, 64):
        assert gradient_unit(rows.part(np.insert(equal, place, 89)), 8) > 0
    most = rows.part(np.concatenate([equal, np.arange(90)]))
    assert gradient_unit(most, 64) > 0.5 * gradient_unit(rows, 64)


def test_objectives_that_do_not_look_at_rows_have_no_unit():
    assert gradient_unit(blobs(gemini="kl_ova"), 64) == 1.0


# ---- pruning ------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3])
def test_pruning_gives_up_a_share_of_the_objective(factor):
    rows = blobs(150, factor=factor)
    model, _, _ = search(rows, replace(PLAN, max_iter=30), 2, seeded())
    assert prune(model, rows, PLAN, 0.05, 0)[0] == [0, 1]


def test_training_that_harms_a_pruned_model_is_dropped():
    rows = blobs(150)
    model, _, before = search(rows, replace(PLAN, max_iter=30), 2, seeded())
    harm = replace(PLAN, solver="sgd", learning_rate=1e6)
    _, fewer, small, curve, value = prune(model, rows, harm, 0.05, 0)
    assert curve is None
    assert value == evaluate(small, fewer, PLAN.batch_size, 0) > 0.9 * before
