"""Fits in parts with IMM's base of tables with gaps, levels and times."""

from functools import partial

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from parts_cases import damaged, same
from parts_frames import (
    COLUMNS,
    answers,
    both,
    centers_for,
    converse,
    ends_of,
    in_memory,
    mixed_frame,
    parts_of,
    with_gaps,
)
from treeclust_rs.parts import Answer, Fit, Question, fit_batches

pytestmark = [
    pytest.mark.filterwarnings("ignore:Only .* clusters:UserWarning"),
    pytest.mark.filterwarnings("ignore:Only .* distinct cluster:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*nearer to the center of another:UserWarning"),
]


def model_of(rng, k, reference=None, **options):
    """Return a maker of ExKMC or IMM, with a reference or k clusters of its own."""
    own = {"reference": reference} if reference is not None else {"n_clusters": k}
    options |= own | {"random_state": 3, "n_jobs": 1}
    if rng.random() < 0.4:
        score = ["mistakes", "emn"][int(rng.integers(2))]
        return partial(tc.IMM, cut_score=score, **options)
    options["min_samples_leaf"] = int(rng.integers(1, 8))
    return partial(tc.ExKMC, max_leaves=k + int(rng.integers(0, 8)), **options)


@pytest.mark.parametrize("bins", [None, (2, 1), (5, 20)])
def test_gaps_give_the_tree_of_memory(bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(0)
    n_trees = 0
    for trial in range(30):
        n = int(rng.integers(8, 300))
        X = with_gaps(rng, n, 3, rng.choice([0.05, 0.3, 0.7]), ties=trial % 3 == 0)
        if trial % 4 == 1:
            X[:, 2] = np.nan
        if trial % 4 == 3:
            X[:, 1] = np.where(np.isnan(X[:, 1]), np.nan, 2.5)  # one value, and centers around it
        if trial % 5 == 4:
            X += 1e8
        weight = rng.choice([0.0, 0.1, 1.0, 3.7], size=n) if trial % 2 else None
        k = int(rng.integers(2, 7))
        scale = [None, "standard", "robust", [1.0, 2.0, 0.5]][trial % 4]
        centers = np.nanmean(X) + 2.0 * rng.normal(size=(k, 3))
        for reference in (centers, None):
            make = model_of(rng, k, reference, scale=scale)
            n_trees += both(make, X, weight, ends_of(rng, n, 4), rng)
        labels = rng.integers(-1, 3, size=n)
        if trial % 3 == 1:
            X[labels == 1, 0] = np.nan
        X[:3, 0] = 1.0
        if weight is not None:
            weight[:3] = 1.0
        labels[:3] = [0, 1, 2]
        make = partial(tc.ExKMC, max_leaves=6, scale=scale, n_jobs=1)
        n_trees += both(make, X, weight, ends_of(rng, n, 4), rng, labels=labels)
    assert n_trees > 70


@pytest.mark.parametrize("bins", [None, (3, 2)])
@pytest.mark.parametrize("columns", COLUMNS)
def test_mixed_tables_give_the_tree_of_memory(columns, bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(list(COLUMNS).index(columns))
    n_trees = 0
    for trial in range(10):
        n = int(rng.integers(8, 300))
        frame = mixed_frame(rng, n, gaps=[0, 0.15, 0.6][trial % 3], n_levels=2 + trial % 9)
        frame = frame.select(COLUMNS[columns])
        weight = rng.choice([0.0, 0.5, 1.0, 2.3], size=n) if trial % 2 else None
        scale = [None, "standard"][trial // 2 % 2]
        k = int(rng.integers(2, 6))
        for reference in (centers_for(rng, frame, k), None):
            make = model_of(rng, k, reference, scale=scale)
            n_trees += both(make, frame, weight, ends_of(rng, n, 4), rng)
        labels = np.arange(n) % 3
        make = partial(tc.ExKMC, max_leaves=6, scale=scale, n_jobs=1)
        if weight is None:
            n_trees += both(make, frame, weight, ends_of(rng, n, 4), rng, labels=labels)
    assert n_trees > 15


def test_many_centers_of_rare_flags():
    """More centers than can be divided in all ways; many nodes have no row of their own."""
    rng = np.random.default_rng(1)
    flags = rng.random((400, 6)) < 0.15
    frame = pl.DataFrame({f"f{i}": flags[:, i] for i in range(6)}).with_columns(
        word=pl.Series(np.array(["a", "b", "c", "d", "e"])[rng.integers(5, size=400)])
    )
    gappy = frame.with_columns(
        pl.when(pl.Series(rng.random(400) < 0.2)).then(None).otherwise(pl.col(name)).alias(name)
        for name in frame.columns
    )
    for rows in (frame, gappy):
        for k in (9, 14):
            for score in ("mistakes", "emn"):
                make = partial(tc.IMM, k, cut_score=score, random_state=0, n_jobs=1)
                assert both(make, rows, None, [0, 90, 91, 400], rng)
                centers = centers_for(rng, rows, k)
                assert both(partial(make, reference=centers), rows, None, [0, 300, 400], rng)


def test_a_level_of_rows_without_weight_may_tell_centers_apart():
    # Rows that count have one value in each column; the centers differ in what others have.
    frame = pl.DataFrame({"word": ["a", None, "a", "b", "c"], "x": [1.0, None, 1.0, 1.0, 2.0]})
    weight = np.array([1.0, 1.0, 1.0, 0.0, 0.0])
    frame = frame.with_columns(y=pl.Series([0.0, 0.0, 1.0, 0.0, 0.0]))
    rng = np.random.default_rng(2)
    for _ in range(20):
        centers = rng.random((4, 5))
        for make in (tc.IMM, partial(tc.ExKMC, max_leaves=5)):
            assert both(partial(make, reference=centers), frame, weight, [0, 2, 5], rng)


def test_sides_that_no_searched_row_has_follow_all_rows_of_the_node():
    """Rows that a cut above has separated from their centers are counted, too."""
    rng = np.random.default_rng(3)
    n = 900
    group = rng.integers(0, 4, size=n)
    x = group + rng.normal(size=n) * 0.8
    word = np.array(["a", "b", "c", "d"], dtype=object)[(group + (rng.random(n) < 0.3)) % 4]
    late = rng.random(n) < 0.05  # rare levels and gaps, of rows far from where their center is
    word[late] = np.array(["e", "f", None], dtype=object)[rng.integers(3, size=late.sum())]
    x[rng.random(n) < 0.1] = np.nan
    frame = pl.DataFrame({"x": x, "word": word.tolist(), "y": rng.normal(size=n) + group % 2})
    frame = frame.with_columns(pl.col("x").fill_nan(None))
    for bins in (None, (2, 1)):
        Fit._bins, before = bins, Fit._bins
        try:
            for k in (3, 5, 8):
                for weight in (None, rng.choice([0.5, 1.0, 4.0], size=n)):
                    make = partial(tc.IMM, k, random_state=0, n_jobs=1)
                    assert both(make, frame, weight, [0, 200, 640, n], rng)
                    make = partial(make, reference=centers_for(rng, frame, k))
                    assert both(make, frame, weight, [0, 200, 640, n], rng)
        finally:
            Fit._bins = before


def test_checkpoints_and_bytes_in_every_round():
    rng = np.random.default_rng(4)
    frame = mixed_frame(rng, 300)
    labels = np.arange(300) % 4
    ends = [0, 90, 90, 300]
    for make, of_rows in (
        (partial(tc.IMM, reference=centers_for(rng, frame, 6)), None),
        (partial(tc.ExKMC, 4, random_state=0, max_leaves=8, scale="standard"), None),
        (partial(tc.ExKMC, max_leaves=8), labels),
    ):
        Fit._bins = (5, 20)
        try:
            with_labels = of_rows is not None
            fit = Fit(make(), feature_names=frame.columns, labels=with_labels)
            of_parts = parts_of(of_rows, ends) if with_labels else None
            while (question := fit.question()) is not None:
                data = fit.to_bytes()
                fit = Fit.from_bytes(data, make())
                assert fit.to_bytes() == data
                assert fit.question().to_bytes() == question.to_bytes()
                a, b, c = answers(question, parts_of(frame, ends), None, of_parts)
                whole = ((a + b) + c).to_bytes()
                assert (c + (b + a)).to_bytes() == whole
                for read, of in (
                    (Question.from_bytes, question.to_bytes()),
                    (Answer.from_bytes, whole),
                    (lambda data, make=make: Fit.from_bytes(data, make()), data),
                ):
                    list(damaged(rng, of, read, 5, 15))
                fit.tell(Answer.from_bytes(whole))
            full = partial(make, reference=labels) if with_labels else make
            same(fit.result(), full().fit(frame))
        finally:
            Fit._bins = None


def test_many_rows_take_few_rounds():
    rng = np.random.default_rng(5)
    frame = mixed_frame(rng, 30_000, n_levels=8)
    for make in (
        partial(tc.IMM, 8, random_state=0),
        partial(tc.ExKMC, 8, random_state=0, max_leaves=20),
    ):
        fit = Fit(make(), feature_names=frame.columns)
        found = converse(fit, [frame[:14_000], frame[14_000:]])
        same(found, make().fit(frame))
        assert fit.n_rounds <= 2 * found.tree_.max_depth + 12


def test_centers_without_a_difference_are_refused_as_in_memory():
    frame = pl.DataFrame({"word": ["a", "b", "a", "b"], "x": [None, 1.0, None, 1.0]})
    labels = np.array([0, 0, 1, 1])  # the clusters have the same shares and means
    told = []
    for fit in (
        lambda: tc.ExKMC(reference=labels).fit(frame),
        lambda: fit_batches(
            tc.ExKMC(), frame.with_columns(group=pl.Series(labels)), reference="group"
        ),
    ):
        with pytest.raises(ValueError, match="equal") as caught:
            fit()
        told.append(str(caught.value))
    assert told[0] == told[1]


def test_files_of_mixed_tables(tmp_path):
    rng = np.random.default_rng(6)
    frame = mixed_frame(rng, 400)
    for i in range(3):
        frame[150 * i : 150 * (i + 1)].write_parquet(tmp_path / f"{i}.parquet")
    for make in (partial(tc.IMM, 4, random_state=0), partial(tc.ExKMC, 4, random_state=0)):
        found = fit_batches(make(), tmp_path)
        same(found, in_memory(make, frame, None))
        assert found.predict(frame).tolist() == make().fit(frame).predict(frame).tolist()
