"""Fits in parts with cuts="interval": the tree of memory, to the bit."""

from functools import partial, reduce
from itertools import pairwise
from operator import add

import numpy as np
import polars as pl
import pytest

import parts_frames as frames
import treeclust_rs as tc
from parts_cases import BINS, KINDS, answers, converse, parts_of, rows, same, told_or_refused
from treeclust_rs.parts import Fit, fit_batches

pytestmark = pytest.mark.filterwarnings("ignore:Only .* clusters:UserWarning")


def model_of(centers, **options):
    given = {"base_tree": None, "max_leaves": 12, "cuts": "interval", **options}
    return tc.ExKMC(reference=centers, **given)


def n_intervals(model):
    return int((model.tree_.kind == 2).sum())


@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_tree_is_that_of_memory(kind, bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng([KINDS.index(kind), 1])
    n_found = 0
    for n in (7, 60, 301, 900):
        X, centers = rows(rng, n, d=int(rng.integers(2, 5)), k=int(rng.integers(3, 7)), kind=kind)
        weight = rng.choice([0.0, 0.1, 1.0, 3.7], size=n) if n % 2 else None
        for m in (1, int(rng.integers(2, 6)), n // 8):
            options = {"max_leaves": 4 * len(centers), "min_samples_leaf": max(m, 1)}
            expected = model_of(centers, **options).fit(X, sample_weight=weight)
            n_found += n_intervals(expected)
            fit = Fit(model_of(centers, **options))
            ends = parts_of(rng, n, int(rng.integers(1, 7)))
            same(converse(fit, X, ends, weight, rng), expected)
    # Squares of tiny cells are 0; the ties are alike in all columns, which thresholds suit best.
    assert (n_found > 0) == (kind not in ("tiny", "ties"))


@pytest.mark.parametrize(
    "options",
    [
        {"base_tree": "imm", "max_leaves": 20},
        {"base_tree": "imm", "max_leaves": 20, "scale": "robust", "min_samples_leaf": 3},
        {"criterion": "kmedians"},
        {"criterion": "kmedians", "scale": "standard", "min_samples_leaf": 2},
        {"max_leaves": float("inf"), "max_depth": 3},
    ],
)
@pytest.mark.parametrize("bins", BINS)
def test_all_parameters_count(options, bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(2)
    n_found = 0
    for kind in ("plain", "ties", "duplicates", "far"):
        X, centers = rows(rng, 300, k=5, kind=kind)
        weight = rng.choice([0.0, 0.3, 2.0], size=300) if kind == "ties" else None
        expected = model_of(centers, **options).fit(X, sample_weight=weight)
        n_found += n_intervals(expected)
        fit = Fit(model_of(centers, **options))
        same(converse(fit, X, [0, 123, 124, 300], weight, rng), expected)
    assert n_found > 0


def test_the_first_of_equal_intervals_is_taken(monkeypatch):
    """Mirrored and repeated columns have cuts that are worth the same."""
    monkeypatch.setattr(Fit, "_bins", (3, 2))
    rng = np.random.default_rng(3)
    for _ in range(20):
        x = rng.integers(-6, 7, size=300).astype(float)
        # By most of the other columns, rows in the middle are near one center, the rest the other.
        near = (rng.random((300, 5)) < np.where(np.abs(x) <= 2, 0.9, 0.1)[:, None]).astype(float)
        order = rng.permutation(8)
        X = np.column_stack([-x, x, x + 1e6, near])[:, order]
        centers = np.array([[0.0, 0.0, 1e6] + [y] * 5 for y in (0.0, 1.0)])[:, order]
        expected = model_of(centers).fit(X)
        assert expected.tree_.kind[0] == 2
        assert expected.tree_.feature[0] == np.flatnonzero(order < 3)[0]
        same(converse(Fit(model_of(centers)), X, [0, 50, 300], None, rng), expected)


@pytest.mark.parametrize("bins", BINS)
def test_missing_rows_lie_inside_or_outside(bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(4)
    sides = set()
    for trial in range(30):
        n = int(rng.integers(20, 300))
        X = frames.with_gaps(rng, n, 3, rng.choice([0.05, 0.3, 0.7]), ties=trial % 3 == 0)
        centers = np.nanmean(X, axis=0) + 1.5 * rng.normal(size=(4, 3))
        make = partial(model_of, centers, min_samples_leaf=1 + trial % 4)
        weight = rng.choice([0.1, 1.0, 3.7], size=n) if trial % 2 else None
        ends = frames.ends_of(rng, n, int(rng.integers(1, 6)))
        assert frames.both(make, X, weight, ends, rng)
        tree = make().fit(X, sample_weight=weight).tree_
        gappy = np.isnan(X).any(axis=0)
        sides |= {
            bool(tree.missing_go_to_left[node])
            for node in np.flatnonzero(tree.kind == 2)
            if gappy[tree.feature[node]]
        }
    assert sides == {False, True}


@pytest.mark.parametrize("bins", [None, (3, 2)])
@pytest.mark.parametrize("columns", ["levels", "times", "mixed", "all"])
def test_levels_lie_beside_intervals(columns, bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(list(frames.COLUMNS).index(columns))
    kinds = []
    for trial in range(9):
        frame = frames.mixed_frame(rng, int(rng.integers(40, 300)), gaps=[0, 0.15, 0.6][trial % 3])
        frame = frame.select(frames.COLUMNS[columns])
        weight = rng.choice([0.5, 1.0, 2.3], size=frame.height) if trial % 2 else None
        make = partial(model_of, frames.centers_for(rng, frame, 6), min_samples_leaf=1 + trial % 3)
        ends = frames.ends_of(rng, frame.height, 4)
        assert frames.both(make, frame, weight, ends, rng)
        kinds += make().fit(frame, sample_weight=weight).tree_.kind.tolist()
    assert (2 in kinds) == (columns != "levels")
    assert (4 in kinds) == (columns != "times")


@pytest.mark.parametrize("options", [{}, {"base_tree": "imm"}, {"criterion": "kmedians"}])
def test_a_checkpoint_goes_on_in_every_round(options):
    rng = np.random.default_rng(5)
    X, centers = rows(rng, 600, kind="ties")
    X[:300] += rng.normal(size=(300, 4))
    expected = model_of(centers, **options).fit(X)
    assert n_intervals(expected) > 0
    fit = Fit(model_of(centers, **options))
    while (question := fit.question()) is not None:
        data = fit.to_bytes()
        fit = Fit.from_bytes(data, model_of(centers, **options))
        assert fit.to_bytes() == data
        assert fit.question().to_bytes() == question.to_bytes()
        fit.tell(reduce(add, answers(fit.question(), X, [0, 200, 600])))
    same(fit.result(), expected)
    with pytest.raises(ValueError, match="fit with other parameters, centers or columns"):
        Fit.from_bytes(data, model_of(centers, **options, cuts="threshold"))


def test_bytes_that_are_cut_or_changed_are_refused_or_harmless():
    rng = np.random.default_rng(6)
    X, centers = rows(rng, 80, kind="ties")
    X[:40] += rng.normal(size=(40, 4))
    make = partial(model_of, centers)
    fit = Fit(make())
    while fit.question() is not None:
        fit.tell(told_or_refused(rng, fit, make, X))
    assert n_intervals(fit.result()) > 0


def test_files_and_labels(tmp_path):
    rng = np.random.default_rng(7)
    X, _ = rows(rng, 500, kind="ties")
    X += rng.normal(size=X.shape).round(1)
    frame = pl.DataFrame(X, schema=list("abcd"))
    for part, (a, b) in enumerate(pairwise([0, 77, 500])):
        frame[a:b].write_parquet(tmp_path / f"part-{part}.parquet")

    def make(**options):
        options = {"max_leaves": 9, "cuts": "interval", "random_state": 0, **options}
        return tc.ExKMC(5, base_tree=None, **options)

    expected = make().fit(frame)
    assert n_intervals(expected) > 0
    same(fit_batches(make(), str(tmp_path / "part-*.parquet")), expected)
    labels = (X[:, 0].round() % 3).astype(int)
    labelled = frame.with_columns(group=pl.Series(labels))
    options = {"base_tree": None, "cuts": "interval", "max_leaves": 9}
    with pytest.warns(UserWarning, match="nearer to the center of another"):
        expected = tc.ExKMC(reference=labels, **options).fit(frame)
    with pytest.warns(UserWarning, match="nearer to the center of another"):
        found = fit_batches(tc.ExKMC(**options), labelled.lazy(), reference="group")
    same(found, expected)


@pytest.mark.parametrize("kind", ["plain", "close"])
def test_many_rows_take_few_rounds(kind):
    rng = np.random.default_rng(8)
    centers = rng.normal(size=(6, 5)) * (2.0 if kind == "plain" else 0.7)
    for n in (4_000, 100_000):
        X = centers[rng.integers(0, 6, size=n)] + rng.normal(size=(n, 5))
        model = model_of(centers, max_leaves=20, min_samples_leaf=20)
        fit = Fit(model)
        while (question := fit.question()) is not None:
            fit.tell(question.answer(X, part_id=0))
        found = fit.result()
        expected = model_of(centers, max_leaves=20, min_samples_leaf=20).fit(X)
        same(found, expected)
        assert fit.n_rounds <= 2 * found.tree_.max_depth + 10


def test_intervals_follow_the_base_of_mixed_tables():
    rng = np.random.default_rng(9)
    kinds = []
    for trial in range(8):
        frame = frames.mixed_frame(rng, 200, gaps=[0, 0.15][trial % 2])
        make = partial(
            model_of,
            frames.centers_for(rng, frame, 4),
            base_tree="imm",
            max_leaves=16,
            scale="standard",
        )
        assert frames.both(make, frame, None, [0, 30, 200], rng)
        kinds += make().fit(frame).tree_.kind.tolist()
    assert 2 in kinds
