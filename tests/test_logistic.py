"""The node solver of oblique trees: optima, by duality gap and beside scikit-learn; edges."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import entr, expit
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression

from treeclust_rs import _core

TIGHT = 1e-13


def design(X, n_jobs=1):
    if sp.issparse(X):
        return _core.Design.from_csr(X.indptr, X.indices, X.data, X.shape[1], n_jobs)
    return _core.Design.from_table(X, n_jobs)


def solve(
    X,
    y,
    strength,
    *,
    weight=None,
    rows=None,
    penalty=None,
    start=None,
    tol=TIGHT,
    max_iter=1000,
    n_jobs=1,
):
    """Solve with the core; `w` holds all weights."""
    matrix = design(X, n_jobs) if not isinstance(X, _core.Design) else X
    rows = np.arange(len(y)) if rows is None else rows
    found = _core.l1_logistic(
        matrix,
        np.asarray(rows, dtype=np.uint32),
        np.asarray(y, dtype=bool),
        np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float),
        strength=float(strength),
        penalty=penalty,
        start=start,
        tol=tol,
        max_iter=max_iter,
        n_jobs=n_jobs,
    )
    assert np.isfinite(found["weights"]).all() and np.isfinite(found["bias"])
    assert not np.isnan([found["objective"], found["gap"], found["duality_gap"]]).any()
    assert (found["weights"] != 0).all() and (np.diff(found["columns"].astype(int)) > 0).all()
    if not isinstance(X, _core.Design):
        found["w"] = np.zeros(X.shape[1])
        found["w"][found["columns"]] = found["weights"]
    return found


def start_of(found):
    return found["columns"], found["weights"], found["bias"]


def objective(X, y, weight, strength, w, b, penalty=1.0):
    """Give the objective, from its definition."""
    margins = np.where(y, 1.0, -1.0) * (X @ w + b)
    return float(weight @ np.logaddexp(0.0, -margins) + strength * (np.abs(w) * penalty).sum())


def duality_gap(X, y, weight, strength, w, b):
    """Bound how far (w, b) is from the optimum, as a share: primal minus a feasible dual point."""
    sign = np.where(y, 1.0, -1.0)
    p = expit(-sign * (X @ w + b))
    # Feasible: the sides balance, and no column's gradient exceeds the penalty.
    sides = (weight * p)[y].sum(), (weight * p)[~y].sum()
    p = p * np.where(y, min(sides) / sides[0], min(sides) / sides[1])
    p *= min(1.0, strength / np.abs(X.T @ (sign * weight * p)).max())
    dual = float(weight @ (entr(p) + entr(1.0 - p)))
    primal = objective(X, y, weight, strength, w, b)
    return (primal - dual) / primal


def example(n=400, d=12, seed=0, noise=1.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)))
    y = X @ rng.normal(size=d) + noise * np.sqrt(d) * rng.normal(size=n) > 0.4
    return X, y, rng.uniform(0.1, 3.0, size=n)


def sparse_example(seed=0):
    X, y, weight = example(n=900, d=60, seed=seed)
    X[np.abs(X) < 1.5] = 0.0
    X[::9] = 0.0  # empty rows
    return sp.csr_matrix(X), y, weight


def largest_strength(X, y, weight):
    share = weight[y].sum() / weight.sum()
    return float(np.abs(np.asarray(X.T @ (weight * (y - share)))).max())


# ---- optima ---------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
@pytest.mark.parametrize("make", [example, sparse_example])
def test_the_duality_gap_closes(make, share):
    X, y, weight = make()
    strength = share * largest_strength(X, y, weight)
    found = solve(X, y, strength, weight=weight)
    assert duality_gap(X, y, weight, strength, found["w"], found["bias"]) < 1e-6
    assert found["duality_gap"] < 1e-6
    expected = objective(X, y, weight, strength, found["w"], found["bias"])
    assert found["objective"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("penalised", ["alike", "by column"])
@pytest.mark.parametrize("share", [0.3, 0.05, 0.005])
@pytest.mark.parametrize("make", [example, sparse_example])
def test_no_column_and_no_bias_can_gain(make, share, penalised):
    # The conditions of Karush, Kuhn and Tucker, from the definition of the objective.
    X, y, weight = make(seed=2)
    strength = share * largest_strength(X, y, weight)
    penalty = None if penalised == "alike" else np.geomspace(0.5, 2.0, X.shape[1])
    allowed = strength * (np.ones(X.shape[1]) if penalty is None else penalty)
    found = solve(X, y, strength, weight=weight, penalty=penalty)
    slope = weight * (expit(X @ found["w"] + found["bias"]) - y)
    assert abs(slope.sum()) < 1e-7 * weight.sum()
    of_column = (X.T @ slope) / allowed
    has_weight = found["w"] != 0
    assert has_weight.any()
    np.testing.assert_allclose(of_column[has_weight], -np.sign(found["w"][has_weight]), atol=1e-4)
    assert np.abs(of_column).max() < 1 + 1e-4


@pytest.mark.parametrize("share", [0.3, 0.01])
@pytest.mark.parametrize("make", [example, sparse_example])
def test_saga_finds_the_same_optimum(make, share):
    X, y, weight = make(seed=1)
    strength = share * largest_strength(X, y, weight)
    peer = LogisticRegression(
        l1_ratio=1, solver="saga", C=1 / strength, tol=1e-9, max_iter=20_000, random_state=0
    ).fit(X, y, sample_weight=weight)
    theirs = objective(X, y, weight, strength, peer.coef_[0], peer.intercept_[0])
    for start in (None, start_of(solve(X, ~y, strength, weight=weight, tol=1e-2))):
        ours = solve(X, y, strength, weight=weight, start=start)
        assert ours["objective"] == pytest.approx(theirs, rel=1e-6)
        np.testing.assert_allclose(ours["w"], peer.coef_[0], atol=1e-3)


@pytest.mark.parametrize("load", [load_breast_cancer, load_digits])
def test_liblinear_finds_the_same_optimum(load):
    X, label = load(return_X_y=True)
    y = label >= (5 if label.max() > 1 else 1)
    weight = np.where(y, 1.0, 2.0)
    penalty = X.std(axis=0) + (X.std(axis=0) == 0)
    standard = X / penalty
    strength = 2.0
    peer = LogisticRegression(
        l1_ratio=1,
        solver="liblinear",
        C=1 / strength,
        tol=1e-7,
        max_iter=10_000,
        intercept_scaling=1e4,
        random_state=0,
    ).fit(standard, y, sample_weight=weight)
    theirs = objective(standard, y, weight, strength, peer.coef_[0], peer.intercept_[0])
    ours = solve(X, y, strength, weight=weight, penalty=penalty)
    assert ours["objective"] == pytest.approx(theirs, rel=1e-6)
    np.testing.assert_allclose(ours["w"] * penalty, peer.coef_[0], atol=1e-2)


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-5])
def test_the_tolerance_is_about_kept(tol):
    for seed in range(10):
        X, y, weight = example(seed=seed)
        strength = 0.02 * largest_strength(X, y, weight)
        best = solve(X, y, strength, weight=weight)["objective"]
        found = solve(X, y, strength, weight=weight, tol=tol)
        assert best * (1 - 1e-12) <= found["objective"] <= best * (1 + 2 * tol)
        assert found["gap"] <= tol
        # The duality gap is a bound, not an estimate.
        assert best >= found["objective"] * (1 - found["duality_gap"]) * (1 - 1e-12)


def test_a_sample_of_rows_leads_to_the_optimum_of_all():
    # So many columns that the curvature comes from a sample first.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 40)) * (rng.random((30_000, 40)) < 0.3)
    X[:, 7] = rng.random(30_000) < 2e-4  # a column with a handful of cells
    y = X @ rng.normal(size=40) + rng.normal(size=30_000) > 0
    weight = np.ones(len(y))
    found = solve(sp.csr_matrix(X), y, 1.0)
    assert duality_gap(X, y, weight, 1.0, found["w"], found["bias"]) < 1e-6
    dense = solve(X.astype(np.float32), y, 1.0)
    assert dense["objective"] == pytest.approx(found["objective"], rel=1e-6)


# ---- forms of input -------------------------------------------------------------------------


def test_all_forms_of_a_matrix_are_alike():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 200, size=(500, 30)).astype(np.uint8)
    X[rng.random(X.shape) < 0.7] = 0
    y = X[:, 0].astype(int) + X[:, 1] + rng.integers(0, 100, 500) > 100
    forms = [X, np.asfortranarray(X), X.astype(np.float32), X.astype(float), list(X.T.copy())]
    indices = sp.csr_matrix(X.astype(np.float32))
    forms += [indices, sp.csr_matrix(X.astype(float))]
    wide = indices.copy()
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    expected = solve(X, y, 50.0)
    assert 5 < len(expected["columns"]) < 30
    for form in [*forms, wide]:
        matrix = _core.Design.from_table(form, 1) if isinstance(form, list) else design(form)
        found = solve(matrix, y, 50.0)
        assert found["objective"] == pytest.approx(expected["objective"], rel=1e-11)
        np.testing.assert_array_equal(found["columns"], expected["columns"])
        np.testing.assert_allclose(found["weights"], expected["weights"], rtol=1e-4)


def test_some_rows_are_a_problem_of_their_own():
    X, y, weight = example()
    rng = np.random.default_rng(3)
    rows = rng.permutation(len(y))[:150]
    whole = design(X)
    for matrix in (whole, design(sp.csr_matrix(X))):
        found = solve(matrix, y[rows], 2.0, weight=weight[rows], rows=rows)
        expected = solve(X[rows], y[rows], 2.0, weight=weight[rows])
        assert found["objective"] == pytest.approx(expected["objective"], rel=1e-10)
        np.testing.assert_array_equal(found["columns"], expected["columns"])
    # Rows of weight 0 take no part.
    masked = np.zeros(len(y))
    masked[rows] = weight[rows]
    found = solve(whole, y, 2.0, weight=masked)
    assert found["objective"] == pytest.approx(expected["objective"], rel=1e-10)


@pytest.mark.parametrize("factor", [1e-300, 1e-12, 1e15, 1e300])
def test_the_scale_of_weights_and_columns_does_not_matter(factor):
    X, y, weight = example()
    expected = solve(X, y, 3.0, weight=weight)
    found = solve(X, y, 3.0 * factor, weight=weight * factor)
    assert found["objective"] == pytest.approx(expected["objective"] * factor, rel=1e-9)
    np.testing.assert_allclose(found["w"], expected["w"], rtol=1e-4, atol=1e-6)
    exact = 2.0 ** np.round(np.log2(factor))
    found = solve(X * exact, y, 3.0 * exact, weight=weight)
    np.testing.assert_allclose(found["w"] * exact, expected["w"], rtol=1e-4, atol=1e-6)


def test_columns_far_from_the_origin_are_no_harder():
    X, y, weight = example(d=5)
    X = np.round(X * 2**20) / 2**20  # exact after the shift
    expected = solve(X, y, 1.0, weight=weight)
    found = solve(X + 2.0**30, y, 1.0, weight=weight)
    assert found["objective"] == pytest.approx(expected["objective"], rel=1e-10)
    np.testing.assert_allclose(found["weights"], expected["weights"], rtol=1e-5)


def test_a_penalty_by_column_is_a_column_in_other_units():
    X, y, weight = example()
    unit = np.geomspace(1e-3, 1e3, X.shape[1])
    expected = solve(X, y, 2.0, weight=weight)
    found = solve(X * unit, y, 2.0, weight=weight, penalty=unit)
    assert found["objective"] == pytest.approx(expected["objective"], rel=1e-9)
    np.testing.assert_allclose(found["w"] * unit, expected["w"], rtol=1e-4, atol=1e-6)


# ---- starts ---------------------------------------------------------------------------------


def test_a_warm_start_arrives_at_the_same_optimum_in_fewer_steps():
    X, label = load_digits(return_X_y=True)
    y = label >= 5
    matrix = design(X)
    cold = solve(matrix, y, 5.0)
    again = solve(matrix, y, 5.0, start=start_of(cold), tol=1e-9)
    assert again["n_iter"] == 0
    assert again["objective"] == pytest.approx(cold["objective"], rel=1e-9)
    flipped = y.copy()
    flipped[::100] ^= True
    for labels, strength in [(y, 5.5), (flipped, 5.0)]:
        expected = solve(matrix, labels, strength, tol=1e-6)
        found = solve(matrix, labels, strength, start=start_of(cold), tol=1e-6)
        assert found["objective"] == pytest.approx(expected["objective"], rel=2e-6)
        assert found["n_iter"] < expected["n_iter"]


@pytest.mark.parametrize("make", [example, sparse_example])
def test_what_a_solve_keeps_leads_to_the_optimum_of_the_next(make):
    X, y, weight = make()
    matrix = design(X)
    strength = 0.05 * largest_strength(X, y, weight)
    rng = np.random.default_rng(0)
    kept = solve(matrix, y, strength, weight=weight, tol=1e-3)["kept"]
    for step in range(6):
        # Labels, weights, strength and penalties all change, a little or a lot.
        y = y ^ (rng.random(len(y)) < (0.5 if step == 3 else 0.02))
        weight = weight * rng.uniform(0.9, 1.1, len(y))
        strength *= 0.9
        penalty = rng.uniform(0.8, 1.2, X.shape[1])
        given = {"weight": weight, "penalty": penalty}
        expected = solve(matrix, y, strength, **given)
        for tol in (1e-3, TIGHT):
            found = solve(matrix, y, strength, **given, start=kept, tol=tol)
            assert found["objective"] == pytest.approx(expected["objective"], rel=max(tol, 1e-9))
        kept = found["kept"]
        again = solve(matrix, y, strength, **given, start=kept, tol=1e-6)
        assert again["n_iter"] == 0
        np.testing.assert_array_equal(again["weights"], found["weights"])


@pytest.mark.parametrize("make", [example, sparse_example])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.2])
def test_slopes_that_were_kept_lead_to_the_optimum_too(make, share):
    # Weights stay as they are: only rows whose labels change need to be read again.
    X, y, weight = make()
    matrix = design(X)
    strength = 0.02 * largest_strength(X, y, weight)
    rng = np.random.default_rng(1)
    kept = solve(matrix, y, strength, weight=weight, tol=1e-3)["kept"]
    for factor in (1.1, 0.9, 1.0, 0.3):
        y = y ^ (rng.random(len(y)) < share)
        strength *= factor
        expected = solve(matrix, y, strength, weight=weight)
        for tol in (0.1, 1e-3, TIGHT):
            found = solve(matrix, y, strength, weight=weight, start=kept, tol=tol)
            assert found["gap"] <= tol
            assert found["objective"] == pytest.approx(expected["objective"], rel=max(tol, 1e-9))
        kept = found["kept"]
        again = solve(matrix, y, strength, weight=weight, start=kept, max_iter=0)
        assert again["n_iter"] == 0
        np.testing.assert_array_equal(again["weights"], found["weights"])


@pytest.mark.parametrize("make", [example, sparse_example])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.08, 0.3])
def test_what_a_solve_keeps_serves_when_rows_come_and_go(make, share):
    X, y, weight = make()
    matrix = design(X)
    strength = 0.02 * largest_strength(X, y, weight)
    rng = np.random.default_rng(2)
    rows = np.flatnonzero(rng.random(len(y)) < 0.8)
    kept = solve(matrix, y[rows], strength, rows=rows, weight=weight[rows])["kept"]
    for scale in (1.0, 1.0, 7.0):  # of weights and strength, which changes nothing
        there = np.isin(np.arange(len(y)), rows)
        rows = np.flatnonzero(there ^ (rng.random(len(y)) < share))
        weight, strength = scale * weight, scale * strength
        given = {"rows": rows, "weight": weight[rows]}
        expected = solve(matrix, y[rows], strength, **given)
        for tol in (1e-3, 1e-6, TIGHT):
            found = solve(matrix, y[rows], strength, **given, start=kept, tol=tol)
            assert found["gap"] <= tol  # an estimate: the curvature is that of other rows
            above = max(4 * tol, 1e-9)
            assert found["objective"] == pytest.approx(expected["objective"], rel=above)
        kept = found["kept"]


def test_what_a_solve_keeps_is_worth_its_weights_on_other_rows():
    X, y, weight = example()
    matrix = design(X)
    first = solve(matrix, y, 2.0, weight=weight)
    rows = np.random.default_rng(0).permutation(len(y))[:300]
    given = {"rows": rows, "weight": weight[rows], "tol": 1e-6}
    expected = solve(matrix, y[rows], 2.0, **given, start=start_of(first))
    found = solve(matrix, y[rows], 2.0, **given, start=first["kept"])
    assert found["n_iter"] == expected["n_iter"] > 0
    assert found["objective"] == pytest.approx(expected["objective"], rel=1e-12)
    # From one side only nothing is left, which is a start as good as none.
    nothing = solve(matrix, np.ones(len(y), dtype=bool), 2.0)["kept"]
    found = solve(matrix, y, 2.0, weight=weight, start=nothing)
    assert found["objective"] == pytest.approx(first["objective"], rel=1e-9)
    with pytest.raises(ValueError, match="belongs to another matrix"):
        solve(design(X), y, 2.0, start=first["kept"])


def test_a_bad_start_does_no_harm():
    X, y, weight = example()
    expected = solve(X, y, 1.0, weight=weight)
    columns = np.arange(12, dtype=np.uint32)
    for scale in (-1.0, 1e3, 1e150, 1e305):
        start = (columns, scale * np.linspace(-1, 2, 12), -scale)
        found = solve(X, y, 1.0, weight=weight, start=start)
        assert found["objective"] == pytest.approx(expected["objective"], rel=1e-9)
    # A column of the start that is constant among the rows goes.
    X[:, 3] = np.where(np.arange(len(y)) < 200, 4.0, X[:, 3])
    start = (columns[3:4], np.array([5.0]), -20.0)
    found = solve(X, y[:200], 0.01, rows=np.arange(200), start=start)
    assert 3 not in found["columns"]


# ---- edges ----------------------------------------------------------------------------------


def test_from_the_largest_strength_on_there_is_only_a_bias():
    X, y, weight = example()
    bias = np.log(weight[y].sum() / weight[~y].sum())
    largest = largest_strength(X, y, weight)
    for matrix in (X, sp.csr_matrix(X)):
        for start in (None, start_of(solve(X, y, 1.0, weight=weight))):
            found = solve(matrix, y, 1.001 * largest, weight=weight, start=start)
            assert len(found["columns"]) == 0
            assert found["bias"] == pytest.approx(bias, rel=1e-6)
        assert len(solve(matrix, y, 0.99 * largest, weight=weight)["columns"]) == 1


@pytest.mark.parametrize(("side", "bias"), [(True, 52 * np.log(2)), (False, -52 * np.log(2))])
def test_one_side_only_gives_a_large_bias(side, bias):
    X, _, weight = example()
    found = solve(X, np.full(len(X), side), 1.0, weight=weight)
    assert len(found["columns"]) == 0 and found["gap"] == found["duality_gap"] == 0.0
    assert found["bias"] == pytest.approx(bias)
    assert found["objective"] == pytest.approx(weight.sum() * 2.0**-52)


def test_no_rows_give_nothing():
    X, y, _ = example()
    for rows, weight in [(np.arange(0), np.empty(0)), (np.arange(400), np.zeros(400))]:
        found = solve(X, y[: len(rows)], 1.0, weight=weight, rows=rows)
        assert len(found["columns"]) == 0
        assert found["bias"] == found["objective"] == 0.0


@pytest.mark.parametrize("strength", [0.0, 1e-300, 1e-9])
def test_separable_rows_stay_bounded(strength):
    X, y, _ = example(noise=0.0)
    found = solve(X, y, strength, tol=1e-6)
    assert found["objective"] < 1e-3
    assert np.abs(found["w"]).max() < 1e12
    assert ((X @ found["w"] + found["bias"] > 0) == y).all()


def test_no_penalty_gives_the_unpenalised_optimum():
    X, y, weight = example()
    found = solve(X, y, 0.0, weight=weight)
    residual = weight * (y - expit(X @ found["w"] + found["bias"]))
    assert np.abs(X.T @ residual).max() < 1e-4 and abs(residual.sum()) < 1e-6


def test_empty_constant_and_equal_columns():
    X, y, weight = example(d=4)
    expected = solve(X, y, 1.0, weight=weight)
    n = len(y)
    more = np.column_stack([np.zeros(n), X, X, np.full(n, 7.0), -X[:, 0], X[:, 1] + 3.0])
    for matrix in (more, sp.csr_matrix(more)):
        found = solve(matrix, y, 1.0, weight=weight)
        assert found["objective"] == pytest.approx(expected["objective"], rel=1e-9)
        assert not {0, 9} & set(found["columns"])
    for matrix in (np.zeros((n, 3)), sp.csr_matrix((n, 3)), np.ones((n, 3))):
        assert len(solve(matrix, y, 1e-6, weight=weight)["columns"]) == 0


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3000))
    y = rng.random(60) < 0.4
    for share in (0.3, 0.01):
        strength = share * largest_strength(X, y, np.ones(60))
        found = solve(X, y, strength)
        assert duality_gap(X, y, np.ones(60), strength, found["w"], found["bias"]) < 1e-6
        assert len(found["columns"]) <= 60


def test_extreme_cells_are_no_trouble():
    X, y, _ = example(d=6)
    X[:, 1] = np.where(X[:, 1] > 0, 1.7e308, -1.7e308)
    X[:, 2] *= 1e-320
    X[:, 3] = np.where(X[:, 3] > 1, 1e300, 0.0)
    X[5:20, 3] = 1e-320  # next to nothing beside the others
    for matrix in (X, sp.csr_matrix(X)):
        penalty = np.abs(X).max(axis=0)
        found = solve(matrix, y, 1.0, penalty=penalty, tol=1e-6)
        assert {0, 4, 5} <= set(found["columns"])
        assert found["objective"] < 400 * np.log(2)


def test_the_bits_do_not_depend_on_threads():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 70)) * (rng.random((20_000, 70)) < 0.3)
    y = X[:, :9].sum(axis=1) + rng.normal(size=20_000) > 0
    for matrix in (X, sp.csr_matrix(X), np.abs(X) + 1.0):
        made = design(matrix)
        one, three = (solve(made, y, 20.0, tol=1e-6, n_jobs=n) for n in (1, 3))
        more = (solve(made, ~y, 9.0, tol=1e-6, n_jobs=n, start=one["kept"]) for n in (1, 3))
        for a, b in ((one, three), more):
            np.testing.assert_array_equal(a["weights"], b["weights"])
            assert a["bias"] == b["bias"] and a["objective"] == b["objective"]


def test_the_steps_can_be_limited():
    X, y, weight = example()
    found = [solve(X, y, 1.0, weight=weight, max_iter=k) for k in range(4)]
    assert [f["n_iter"] for f in found] == [0, 1, 2, 3]
    values = [f["objective"] for f in found]
    assert values == sorted(values, reverse=True) and values[3] < values[0]
    assert found[0]["gap"] == found[0]["duality_gap"] > 0.1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": np.array([0, 400])}, "row is out of range"),
        ({"weight": np.array([1.0, -1.0])}, "weights must be finite and not negative"),
        ({"weight": np.array([1.0, np.nan])}, "weights must be finite and not negative"),
        ({"weight": np.ones(3)}, "weight has 3 entries, but 2 are expected"),
        ({"strength": -1.0}, "lambda must be finite and not negative"),
        ({"strength": np.inf}, "lambda must be finite and not negative"),
        ({"penalty": np.zeros(12)}, "penalties must be finite and positive"),
        ({"penalty": np.ones(3)}, "penalty has 3 entries, but 12 are expected"),
        ({"start": (np.array([12], np.uint32), np.ones(1), 0.0)}, "column of the start"),
        ({"start": (np.array([1], np.uint32), np.full(1, np.inf), 0.0)}, "start must be finite"),
    ],
)
def test_what_cannot_be_is_refused(changes, message):
    X, _, _ = example()
    good = {"rows": np.array([0, 1]), "strength": 1.0}
    with pytest.raises(ValueError, match=message):
        solve(design(X), np.array([True, False]), **{**good, **changes})


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([0, 1], [2], [1.0]), "column is out of range"),
        (([0, 1], [-1], [1.0]), "column is out of range"),
        (([0, 2], [0], [1.0]), "disagree in length"),
        (([1, 1], [0], [1.0]), "must start at 0"),
        (([0, 2, 1], [0, 1], [1.0, 1.0]), "never fall"),
        (([0, 2], [1, 0], [1.0, 1.0]), "must ascend"),
        (([0, 2], [1, 1], [1.0, 1.0]), "must ascend"),
        (([0, 1], [0], [np.nan]), "NaN or infinite"),
    ],
)
def test_a_matrix_that_is_none_is_refused(parts, message):
    indptr, indices, data = parts
    with pytest.raises(ValueError, match=message):
        _core.Design.from_csr(
            np.array(indptr, dtype=np.int32),
            np.array(indices, dtype=np.int32),
            np.array(data),
            2,
            1,
        )


@pytest.mark.parametrize("cell", [np.nan, np.inf, -np.inf])
def test_a_dense_matrix_with_cells_that_are_no_numbers_is_refused(cell):
    for share in (0.0, 1.0):
        X = np.full((300, 3), share) + np.arange(900).reshape(300, 3) * share
        X[150, 1] = cell
        with pytest.raises(ValueError, match="NaN or infinite"):
            design(X)
