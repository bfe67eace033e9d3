"""Fits in parts of rows that bring their labels, in tables with gaps, levels and times."""

from functools import partial

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from parts_cases import damaged, same
from parts_frames import COLUMNS, answers, both, converse, ends_of, mixed_frame, parts_of, with_gaps
from treeclust_rs.parts import Answer, Fit, Question, fit_batches

pytestmark = [
    pytest.mark.filterwarnings("ignore:Only .* clusters:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*nearer to the center of another:UserWarning"),
]


def labelled(**options):
    return tc.ExKMC(base_tree=None, n_jobs=1, **{"max_leaves": 10, **options})


def labels_of(rng, n):
    """Return labels, some of them noise, each with a row."""
    labels = rng.choice([-1, 0, 1, 5], size=n, p=[0.1, 0.3, 0.4, 0.2])
    labels[:3] = [0, 1, 5]
    return np.where(labels < 0, "-1", np.array([f"L{i}" for i in labels]))


@pytest.mark.parametrize("bins", [None, (2, 1), (5, 20)])
def test_gaps_give_the_tree_of_memory(bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(0)
    n_trees = 0
    for trial in range(15):
        n = int(rng.integers(12, 300))
        X = with_gaps(rng, n, 4, rng.choice([0.05, 0.3, 0.8]), ties=trial % 3 == 0)
        labels = labels_of(rng, n)
        if trial % 3 == 1:
            X[labels == "L1", 2] = np.nan  # a label without a value: the mean of all rows
        if trial % 5 == 2:
            X[:, 1] = np.nan
        if trial % 4 == 3:
            X += 1e8
        X[:3, 0] = [1.5, 2.5, 3.5]
        weight = rng.choice([0.0, 0.1, 1.0, 3.7], size=n) if trial % 2 else None
        if weight is not None:
            weight[:3] = 1.0
        options = {"scale": [None, "standard", [1.0, 2.0, 0.5, 3.0]][trial % 3]}
        make = partial(labelled, min_samples_leaf=int(rng.integers(1, 6)), **options)
        n_trees += both(make, X, weight, ends_of(rng, n, 4), rng, labels=labels)
    assert n_trees == 15


@pytest.mark.parametrize("bins", [None, (3, 2)])
@pytest.mark.parametrize("columns", COLUMNS)
def test_mixed_tables_give_the_tree_of_memory(columns, bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(list(COLUMNS).index(columns))
    n_trees = 0
    for trial in range(8):
        n = int(rng.integers(12, 300))
        frame = mixed_frame(rng, n, gaps=[0, 0.15, 0.4][trial % 3], n_levels=2 + trial % 9)
        frame = frame.select(COLUMNS[columns])
        labels = labels_of(rng, n)
        if trial % 4 == 1:  # a label without a level
            first = frame.columns[0]
            frame = frame.with_columns(
                pl.when(pl.Series(labels == "L5")).then(None).otherwise(pl.col(first)).alias(first)
            )
        weight = rng.choice([0.5, 1.0, 2.3], size=n) if trial % 2 else None
        options = {"scale": [None, "standard"][trial // 2 % 2]}
        make = partial(labelled, min_samples_leaf=int(rng.integers(1, 9)), **options)
        n_trees += both(make, frame, weight, ends_of(rng, n, 4), rng, labels=labels)
    assert n_trees > 5


def test_the_mean_of_all_rows_is_that_of_memory_far_from_the_origin():
    # The origin is a median of rows, whatever they weigh: nearly all of the weight is far from it.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2)) * 1e-3
    X[200:, 0] += 1e7
    labels = np.where(np.arange(300) % 3 == 0, 0, 1)
    X[labels == 0, 0] = np.nan
    weight = np.where(np.arange(300) < 200, 1e-9, rng.uniform(1, 2, size=300))
    frame = pl.DataFrame(X, schema=["a", "b"], nan_to_null=True)
    frame = frame.with_columns(kind=pl.Series(np.array(["x", "y", "z"])[np.arange(300) % 3]))
    for rows in (X, frame):
        ends = [0, 90, 90, 250, 300]
        assert both(labelled, rows, weight, ends, rng, labels=labels)


def test_checkpoints_and_bytes_in_every_round():
    rng = np.random.default_rng(2)
    frame = mixed_frame(rng, 240)
    frame = frame.with_columns(pl.col("amount") + pl.Series(np.where(np.arange(240) < 80, 1e9, 0)))
    labels = labels_of(rng, 240)
    ends = [0, 90, 90, 240]
    make = partial(labelled, scale="standard")
    fit = Fit(make(), feature_names=frame.columns, labels=True)
    while (question := fit.question()) is not None:
        data = fit.to_bytes()
        fit = Fit.from_bytes(data, make())
        assert fit.to_bytes() == data
        assert fit.question().to_bytes() == question.to_bytes()
        a, b, c = answers(question, parts_of(frame, ends), None, parts_of(labels, ends))
        whole = ((a + b) + c).to_bytes()
        assert (c + (b + a)).to_bytes() == whole
        for read, of in (
            (Question.from_bytes, question.to_bytes()),
            (Answer.from_bytes, whole),
            (lambda data: Fit.from_bytes(data, make()), data),
        ):
            for found in damaged(rng, of, read, 5, 20):
                try:
                    if fit.n_rounds > 7:  # sums of the tree: other tests
                        continue
                    if isinstance(found, Answer):
                        Fit.from_bytes(data, make()).tell(found)
                    elif isinstance(found, Fit) and found.question() is not None:
                        found.tell(Answer.from_bytes(whole))
                except (ValueError, TypeError, MemoryError):
                    continue
        fit.tell(Answer.from_bytes(whole))
    same(fit.result(), make(reference=labels).fit(frame))


def test_columns_of_files_and_engines_are_labels(tmp_path):
    rng = np.random.default_rng(3)
    frame = mixed_frame(rng, 300)
    labels = labels_of(rng, 300)
    weight = rng.choice([0.5, 1.0, 2.0], size=300)
    whole = frame.with_columns(segment=pl.Series(labels), w=pl.Series(weight))
    for i in range(3):
        whole[100 * i : 100 * (i + 1)].write_parquet(tmp_path / f"{i}.parquet")
    expected = labelled(reference=labels).fit(frame, sample_weight=weight)
    found = fit_batches(labelled(), tmp_path, sample_weight="w", reference="segment")
    same(found, expected)
    assert found.classes_.tolist() == expected.classes_.tolist()
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    rows = dd.from_pandas(whole.to_pandas(use_pyarrow_extension_array=True), npartitions=4)
    with dask.config.set(scheduler="threads"):
        same(tc.dask.fit(labelled(), rows, sample_weight="w", reference="segment"), expected)


def test_a_model_goes_on_without_its_rows():
    rng = np.random.default_rng(4)
    frame, labels = mixed_frame(rng, 200, gaps=0), labels_of(rng, 200)
    fit = Fit(labelled(), feature_names=frame.columns, labels=True)
    found = converse(fit, [frame[:50], frame[50:]], labels=[labels[:50], labels[50:]])
    expected = labelled(reference=labels).fit(frame)
    assert found.predict(frame).tolist() == expected.predict(frame).tolist()
    assert found.rules().frame.equals(expected.rules().frame)
