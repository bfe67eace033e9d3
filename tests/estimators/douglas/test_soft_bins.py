"""The model of Douglas: bins, cells, their gradients, and the optimisers."""

import itertools

import numpy as np
import pytest

from treeclust_rs.estimators.douglas.soft_bins import SoftBins, hard_cells
from treeclust_rs.estimators.douglas.soft_training import SGD, Adam
from treeclust_rs.gemini import GEMINIS, make_gemini

SHAPES = [(0, 1, 2), (1, 1, 2), (1, 3, 2), (2, 1, 1), (3, 2, 3), (4, 1, 3), (5, 1, 2)]


def random_model(m, n_cuts, k, seed=0, temperature=0.5):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=((n_cuts + 1) ** m, k))
    return SoftBins(rng.normal(size=(m, n_cuts)), weights, temperature)


def probabilities_by_definition(model, rows):
    """Equations 9 and 10, one row, one feature and one cell at a time."""
    m, n_cuts = model.cuts.shape
    found = []
    for x in rows.T:
        bins = []
        for f in range(m):
            starts = np.concatenate(([0.0], np.cumsum(np.sort(model.cuts[f]))))
            logits = (np.arange(n_cuts + 1) * x[f] - starts) / model.temperature
            powers = np.exp(logits - logits.max())
            bins.append(powers / powers.sum())
        logits = np.zeros(model.weights.shape[1])
        for number, cell in enumerate(itertools.product(range(n_cuts + 1), repeat=m)):
            share = np.prod([bins[f][t] for f, t in enumerate(cell)])
            logits += share * model.weights[number]
        powers = np.exp(logits - logits.max())
        found.append(powers / powers.sum())
    return np.array(found)


@pytest.mark.parametrize(("m", "n_cuts", "k"), SHAPES)
def test_probabilities_are_those_of_the_definition(m, n_cuts, k):
    model = random_model(m, n_cuts, k)
    rows = np.random.default_rng(1).normal(size=(m, 6))
    expected = probabilities_by_definition(model, rows)
    np.testing.assert_allclose(model.forward(rows).probabilities.T, expected, rtol=1e-12)
    np.testing.assert_allclose(model.probabilities(rows), expected, rtol=1e-12)


def test_blocks_of_rows_change_nothing(monkeypatch):
    model = random_model(3, 2, 3)
    rows = np.random.default_rng(1).normal(size=(3, 1000))
    whole = model.probabilities(rows)
    monkeypatch.setattr("treeclust_rs.estimators.douglas.soft_bins._MAX_BLOCK", 1)
    np.testing.assert_allclose(model.probabilities(rows), whole, rtol=1e-12)


@pytest.mark.parametrize(("m", "n_cuts", "k"), SHAPES)
@pytest.mark.parametrize("gemini", GEMINIS)
def test_gradient_of_the_whole_model(m, n_cuts, k, gemini):
    """By central differences of the objective, in all parameters at once."""
    model = random_model(m, n_cuts, k, seed=m)
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(m, 12))
    objective = make_gemini(gemini)
    affinity = objective.affinity(rng.normal(size=(12, 3)))

    def value():
        return objective.value(model.forward(rows).probabilities.T, affinity)

    tape = model.forward(rows)
    _, gradient = objective.value_and_gradient(tape.probabilities.T, affinity)
    given = model.backward(tape, gradient.T)
    step = 1e-6
    found = np.empty_like(given)
    for place, start in enumerate(model.vector.tolist()):
        model.vector[place] = start + step
        above = value()
        model.vector[place] = start - step
        found[place] = (above - value()) / (2 * step)
        model.vector[place] = start
    assert np.abs(found - given).max() <= 1e-5 * np.abs(given).max() + 1e-9
    if k > 1 and m:
        assert np.abs(given).max() > 1e-4


def test_cuts_may_come_in_any_order():
    model = random_model(2, 3, 2)
    mixed = SoftBins(model.cuts[:, [2, 0, 1]], model.weights, model.temperature)
    rows = np.random.default_rng(1).normal(size=(2, 5))
    tape, other = model.forward(rows), mixed.forward(rows)
    np.testing.assert_array_equal(tape.probabilities, other.probabilities)
    gradient = np.random.default_rng(2).normal(size=(2, 5))
    given = model.backward(tape, gradient)[:6].reshape(2, 3)
    np.testing.assert_allclose(
        mixed.backward(other, gradient)[:6].reshape(2, 3), given[:, [2, 0, 1]], rtol=1e-12
    )


@pytest.mark.parametrize(("m", "n_cuts", "k"), [(3, 1, 2), (2, 2, 3), (1, 1, 2), (4, 2, 2)])
def test_without_a_feature_its_cells_are_averaged_by_their_rows(m, n_cuts, k):
    model = random_model(m, n_cuts, k)
    rows = np.random.default_rng(1).normal(size=(m, 200))
    cells = list(itertools.product(range(n_cuts + 1), repeat=m))
    of_rows = [
        tuple(int(np.sum(c < x)) for c, x in zip(model.cuts, row, strict=True)) for row in rows.T
    ]
    counts = model.cell_counts(rows)
    assert counts.tolist() == [of_rows.count(cell) for cell in cells]
    for feature in range(m):
        fewer = model.without(feature, counts)
        assert fewer.cuts.tolist() == np.delete(model.cuts, feature, axis=0).tolist()
        left = list(itertools.product(range(n_cuts + 1), repeat=m - 1))
        for weights, cell in zip(fewer.weights, left, strict=True):
            same = [i for i, c in enumerate(cells) if c[:feature] + c[feature + 1 :] == cell]
            share = counts[same] + 1e-3
            expected = (model.weights[same].T * share).sum(axis=1) / share.sum()
            np.testing.assert_allclose(weights, expected, rtol=1e-12, atol=1e-12)


def test_a_feature_without_say_may_go():
    """Weights that do not depend on a feature: the probabilities are the same without it."""
    model, rows = random_model(3, 2, 2), np.random.default_rng(1).normal(size=(3, 50))
    model.weights.reshape(3, 3, 3, 2)[:] = model.weights.reshape(3, 3, 3, 2)[:, :1].copy()
    fewer = model.without(1, model.cell_counts(rows))
    np.testing.assert_allclose(
        fewer.probabilities(rows[[0, 2]]), model.probabilities(rows), rtol=1e-12
    )


@pytest.mark.parametrize("n_cuts", [1, 3])
@pytest.mark.parametrize("temperature", [1e-6, 0.1, 1e6])
def test_extremes_give_no_nan(n_cuts, temperature):
    """Low temperatures and far rows; warnings are errors here."""
    model = random_model(3, n_cuts, 3, temperature=temperature)
    rows = np.array([[-1e6, 0.0, 1e6], [0.0, -1e-9, 1e-9], [-1.0, 1.0, 1e6]])
    tape = model.forward(rows)
    gradient = model.backward(tape, np.ones((3, 3)))
    assert np.isfinite(tape.probabilities).all()
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(tape.probabilities.sum(axis=0), 1.0)


def test_no_array_of_all_cells_and_rows_is_made():
    """2^16 cells x 2,000 rows would take a gigabyte."""
    import tracemalloc

    model = random_model(16, 1, 2)
    rows = np.random.default_rng(1).normal(size=(16, 2000))
    tracemalloc.start()
    tape = model.forward(rows)
    model.backward(tape, np.ones((2, 2000)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**16 * 2000 * 8 / 20


def test_rows_at_a_cut_are_in_the_cell_below_it():
    cuts = [np.array([0.0]), np.array([-1.0, 2.0])]
    rows = np.array([[0.0, 1e-300, -1.0, 5.0], [-1.0, 2.0, np.nextafter(2.0, 3), -2.0]])
    assert hard_cells(rows, cuts, 4).tolist() == [0, 4, 2, 3]


# ---- optimisers ---------------------------------------------------------------------------


def test_adam_is_as_published():
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(7, 5))
    given, expected = np.zeros(5), np.zeros(5)
    adam = Adam(0.01, beta1=0.8, beta2=0.95, epsilon=1e-3)
    m = v = np.zeros(5)
    for t, gradient in enumerate(gradients, start=1):
        adam.step(given, gradient.copy())
        m = 0.8 * m + 0.2 * gradient
        v = 0.95 * v + 0.05 * gradient**2
        expected += 0.01 * (m / (1 - 0.8**t)) / (np.sqrt(v / (1 - 0.95**t)) + 1e-3)
        np.testing.assert_allclose(given, expected, rtol=1e-12)


def test_adam_by_default_moves_by_the_learning_rate_first():
    parameters = np.zeros(3)
    Adam(0.5).step(parameters, np.array([2.0, -1e-3, 0.0]))
    np.testing.assert_allclose(parameters, [0.5, -0.5, 0.0], rtol=1e-4)


def test_sgd_goes_along_the_gradient():
    parameters = np.array([1.0, 2.0])
    SGD(0.1).step(parameters, np.array([10.0, -5.0]))
    np.testing.assert_allclose(parameters, [2.0, 1.5])
