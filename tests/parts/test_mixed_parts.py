"""Fits in parts of tables as people have them: gaps, levels, flags and times."""

import datetime as dt
from functools import partial
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from parts_cases import same, told_or_refused
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
from treeclust_rs.parts import Answer, Fit, fit_batches
from treeclust_rs.parts.protocol import Gathering

pytestmark = [
    pytest.mark.filterwarnings("ignore:Only .* clusters:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*nearer to the center of another:UserWarning"),
]


def model_of(centers, **options):
    return tc.ExKMC(reference=centers, base_tree=None, **{"max_leaves": 12, **options})


def own_model(k=3, **options):
    return tc.ExKMC(k, base_tree=None, random_state=3, n_jobs=1, **{"max_leaves": 8, **options})


@pytest.mark.parametrize("bins", [None, (2, 1), (5, 20)])
@pytest.mark.parametrize("scale", [None, "standard", [1.0, 2.0, 0.5, 3.0]])
def test_gaps_give_the_tree_of_memory(bins, scale, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(0 if scale is None else len(scale))
    for trial in range(12):
        n = int(rng.integers(6, 400))
        X = with_gaps(rng, n, 4, rng.choice([0.05, 0.3, 0.8]), ties=trial % 3 == 0)
        if trial % 4 == 1:
            X[:, 2] = np.nan
        if trial % 4 == 2:
            X[rng.random(n) < 0.2] = np.nan
        if trial % 4 == 3:
            X[:, 1] = np.where(np.isnan(X[:, 1]), np.nan, 2.5)  # constant
        if np.isnan(X).all():
            continue
        if trial % 5 == 4:
            X += 1e8
        weight = rng.choice([0.0, 0.1, 1.0, 3.7], size=n) if n % 2 else None
        if weight is not None and not (weight[~np.isnan(X).all(axis=1)] > 0).any():
            continue
        centers = np.nanmean(X) + rng.normal(size=(3, 4))
        options = {"min_samples_leaf": int(rng.integers(1, 6)), "scale": scale}
        if trial % 3:
            options["max_depth"] = 3
        for make in (partial(model_of, centers, **options), partial(own_model, 2, **options)):
            if (expected := in_memory(make, X, weight)) is None:
                continue
            ends = ends_of(rng, n, int(rng.integers(1, 7)))
            weights = None if weight is None else [weight[a:b] for a, b in pairwise(ends)]
            fit = Fit(make(), n_features=4)
            same(converse(fit, parts_of(X, ends), weights, rng), expected)


# ---- levels, flags and times ---------------------------------------------------------------------


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
        if trial % 4 == 3:
            frame = pl.concat([frame] * 2)  # duplicates
        n = frame.height
        weight = rng.choice([0.0, 0.5, 1.0, 2.3], size=n) if trial % 2 else None
        options = {
            "scale": [None, "standard"][trial // 2 % 2],
            "min_samples_leaf": int(rng.integers(1, 12)),
        }
        centers = centers_for(rng, frame, 4)
        ends = ends_of(rng, n, int(rng.integers(1, 6)))
        n_trees += both(partial(model_of, centers, **options), frame, weight, ends, rng)
        n_trees += both(partial(own_model, 3, **options), frame, weight, ends, rng)
    assert n_trees > 15


@pytest.mark.parametrize("bins", [None, (3, 2)])
def test_robust_units_are_those_of_memory(bins, monkeypatch):
    monkeypatch.setattr(Fit, "_bins", bins)
    rng = np.random.default_rng(20)
    n_trees = 0
    for trial in range(10):
        n = int(rng.integers(20, 300))
        frame = mixed_frame(rng, n, gaps=[0, 0.15, 0.6][trial % 3])
        frame = frame.select(COLUMNS[list(COLUMNS)[trial % len(COLUMNS)]])
        if "amount" in frame.columns and trial % 2:
            frame = frame.with_columns(pl.lit(None, dtype=pl.Float64).alias("amount"))
        if "count" in frame.columns and trial % 3:  # no range between the quartiles
            frame = frame.with_columns(pl.when(pl.int_range(n) % 9 == 0).then("count").otherwise(1))
        weight = rng.choice([0.0, 0.5, 1.0, 2.3], size=n) if trial % 2 else None
        ends = ends_of(rng, n, 4)
        make = partial(model_of, centers_for(rng, frame, 3), scale="robust")
        n_trees += both(make, frame, weight, ends, rng)
        n_trees += both(partial(own_model, 3, scale="robust"), frame, weight, ends, rng)
        labels = np.arange(n) % 3
        n_trees += both(
            partial(tc.ExKMC, base_tree=None, scale="robust"),
            frame,
            weight,
            ends,
            rng,
            labels=labels,
        )
    assert n_trees > 25


def test_a_checkpoint_goes_on_in_every_round():
    rng = np.random.default_rng(30)
    frame = mixed_frame(rng, 250)
    centers = centers_for(rng, frame, 4)
    parts = parts_of(frame, [0, 90, 90, 250])
    for make in (
        partial(model_of, centers, scale="standard"),
        partial(model_of, centers, scale="robust"),
        partial(own_model, 3),
    ):
        fit = Fit(make(), feature_names=frame.columns)
        same(converse(fit, parts, make=make), make().fit(frame))


def test_answers_add_up_in_any_order_to_the_same_bytes():
    rng = np.random.default_rng(31)
    frame = mixed_frame(rng, 200)
    fit = Fit(model_of(centers_for(rng, frame, 4), scale="standard"), feature_names=frame.columns)
    while (question := fit.question()) is not None:
        a, b, c = answers(question, parts_of(frame, [0, 60, 60, 200]))
        whole = ((a + b) + c).to_bytes()
        assert (a + (b + c)).to_bytes() == whole
        assert ((c + a) + b).to_bytes() == whole
        assert Answer.from_bytes(whole).to_bytes() == whole
        # Batches of a part give what the part gives.
        gathering = Gathering(question, fit.threads)
        for start in (60, 61, 130):
            gathering.add(frame[start : {60: 61, 61: 130, 130: 200}[start]], 2)
        assert gathering.finish().to_bytes() == c.to_bytes()
        fit.tell(Answer.from_bytes(whole))


@pytest.mark.filterwarnings("ignore:X has levels that ExKMC did not see:UserWarning")
def test_bytes_that_are_cut_or_changed_are_refused_or_harmless():
    rng = np.random.default_rng(32)
    frame = mixed_frame(rng, 60)
    make = partial(model_of, centers_for(rng, frame, 3), scale="standard")
    fit = Fit(make(), feature_names=frame.columns)
    while fit.question() is not None:
        fit.tell(told_or_refused(rng, fit, make, frame))


@pytest.mark.parametrize("n_levels", [1, 2, 254, 255])
def test_few_and_many_levels(n_levels):
    rng = np.random.default_rng(33)
    codes = rng.permutation(np.arange(600) % n_levels)
    frame = pl.DataFrame(
        {"x": codes % 7 + rng.normal(size=600), "level": [f"v{code:03}" for code in codes]}
    )
    for weight in (None, np.where(codes % 5 == 1, 0.0, 1.5)):
        make = partial(own_model, 3, max_leaves=12, min_samples_leaf=3)
        assert both(make, frame, weight, [0, 37, 300, 600], rng)
        assert both(partial(make, min_samples_leaf=70), frame, weight, [0, 300, 600], rng)


def test_more_than_255_levels_are_refused_as_in_memory():
    frame = pl.DataFrame({"x": np.arange(512.0), "who": [f"v{i % 256}" for i in range(512)]})
    with pytest.raises(ValueError, match="Column 'who' has 256 levels; at most 255") as told:
        own_model(3).fit(frame)
    for parts in ([frame], [frame[:200], frame[200:]], [frame[:1], frame[1:300], frame[300:]]):
        with pytest.raises(ValueError, match="at most 255 are taken") as caught:
            fit_batches(own_model(3), parts)
        assert str(caught.value) == str(told.value)


def test_levels_of_one_part_and_of_rows_without_weight_count():
    rng = np.random.default_rng(34)
    frame = mixed_frame(rng, 90, gaps=0).select("amount", "region", "size")
    frame = frame.with_columns(
        region=pl.when(pl.int_range(pl.len()) == 70).then(pl.lit("only here")).otherwise("region")
    )
    weight = np.ones(90)
    weight[[70, 3]] = 0
    assert both(partial(own_model, 3), frame, weight, [0, 30, 60, 90], rng)
    weight[60:] = 0  # the whole part
    assert both(partial(own_model, 3), frame, weight, [0, 30, 60, 90], rng)
    # A missing cell of such a row is one of the fit's.
    gappy = frame.with_columns(
        amount=pl.when(pl.int_range(pl.len()) == 70).then(None).otherwise("amount")
    )
    assert both(partial(own_model, 3), gappy, weight, [0, 30, 60, 90], rng)


def test_a_column_may_have_another_physical_type_in_each_part():
    rng = np.random.default_rng(35)
    frame = mixed_frame(rng, 160).select("amount", "region", "member", "since", "count")
    expected = own_model(3).fit(frame)
    first, second, third, fourth = parts_of(frame, [0, 40, 80, 120, 160])
    pandas = pytest.importorskip("pandas")
    parts = [
        first.with_columns(pl.col("region").cast(pl.Categorical)),
        second.to_arrow(),
        third.to_pandas().assign(since=lambda rows: rows["since"]),
        fourth.with_columns(pl.col("count").cast(pl.Int16), pl.col("amount").cast(pl.Float64)),
    ]
    parts[2]["since"] = pandas.Series(
        third.to_arrow()["since"].to_pandas().array, dtype="date32[pyarrow]"
    )
    parts[2]["region"] = parts[2]["region"].astype("category")
    fit = Fit(own_model(3), feature_names=frame.columns)
    same(converse(fit, parts, rng=rng), expected)
    # All cells of a part are missing: its type says nothing.
    empty = pl.DataFrame({"amount": [1.5], "region": [None], "member": [None], "since": [None]})
    empty = empty.with_columns(count=pl.lit(2))
    with_empty = pl.concat([frame, empty.cast(frame.schema)])
    fit = Fit(own_model(3), feature_names=frame.columns)
    same(converse(fit, [frame, empty], rng=rng), own_model(3).fit(with_empty))


def test_parts_that_do_not_go_together_are_named():
    numbers = pl.DataFrame({"x": [1.0, 2.0], "when": [dt.date(2024, 1, 1), dt.date(2024, 2, 1)]})
    for other, message in (
        (numbers.with_columns(x=pl.lit("a")), "'x' does not hold the same in all parts: text in"),
        (numbers.with_columns(x=pl.lit(value=True)), "'x'.*booleans in part 1, numbers in part 0"),
        (numbers.with_columns(pl.col("when").cast(pl.Datetime)), "'when'.*times without a zone"),
    ):
        question = Fit(own_model(2), feature_names=numbers.columns).question()
        answer = question.answer(numbers, part_id=0) + question.answer(other, part_id=1)
        with pytest.raises(TypeError, match=message):
            Fit(own_model(2), feature_names=numbers.columns).tell(answer)
        with pytest.raises(TypeError, match=r"the same in all parts.*in some rows"):
            fit_batches(own_model(2), [numbers, other])
    sizes = pl.DataFrame({"size": ["s", "m"]})
    enums = [sizes.cast(pl.Enum(order)) for order in (["s", "m"], ["m", "s"])]
    for parts in (enums, [sizes, enums[0]]):
        with pytest.raises(TypeError, match="'size' declares an order of its levels"):
            fit_batches(own_model(2), parts)
    long = pl.DataFrame({"x": [1.0], "when": [dt.timedelta(days=200_000)]})
    with pytest.raises(ValueError, match="Column 'when' has 1 cell beyond 285 years"):
        fit_batches(own_model(2), [long])


def test_rows_that_change_are_refused():
    rng = np.random.default_rng(36)
    frame = mixed_frame(rng, 50)
    others = (
        frame.with_columns(
            region=pl.when(pl.int_range(50) == 7).then(pl.lit("b")).otherwise("region")
        ),
        frame.with_columns(amount=pl.when(pl.int_range(50) == 8).then(None).otherwise("amount")),
        frame.reverse().with_columns(pl.lit(4.0).alias("amount")),
    )
    for other in others:
        if other.equals(frame):
            continue
        fit = Fit(own_model(3), feature_names=frame.columns)
        fit.tell(fit.question().answer(frame, part_id=0))
        with pytest.raises(ValueError, match="Part 0 has other rows than the first time"):
            fit.tell(fit.question().answer(other, part_id=0))


@pytest.mark.filterwarnings("ignore:X has levels that ExKMC did not see:UserWarning")
def test_a_level_that_is_new_in_a_later_round_is_refused():
    frame = mixed_frame(np.random.default_rng(37), 50, gaps=0)
    fit = Fit(own_model(3), feature_names=frame.columns)
    fit.tell(fit.question().answer(frame, part_id=0))
    with pytest.raises(ValueError, match="Part 0 has other rows than the first time"):
        fit.tell(fit.question().answer(frame.with_columns(region=pl.lit("new")), part_id=0))


def test_centers_must_have_a_coordinate_for_each_level():
    frame = pl.DataFrame({"x": [0.0, 1.0, 2.0], "kind": ["a", "b", "a"]})
    with pytest.raises(ValueError, match=r"reference has 2 columns, but X has 3.*kind=a.*kind=b"):
        fit_batches(model_of(np.array([[0.0, 1.0], [2.0, 0.0]])), frame)
    with pytest.raises(ValueError, match="reference has 1 column, but X has 3"):
        fit_batches(model_of(np.array([[0.0], [2.0]])), frame)
    # Text without a value has no coordinate.
    empty = frame.with_columns(kind=pl.lit(None, dtype=pl.String))
    same(
        fit_batches(model_of(np.array([[0.0], [2.0]])), empty),
        model_of(np.array([[0.0], [2.0]])).fit(empty),
    )


def test_more_rows_than_are_drawn_move_the_centers_of_mixed_tables():
    rng = np.random.default_rng(39)
    group = rng.integers(0, 3, size=120_000)
    frame = pl.DataFrame(
        {
            "x": np.where(rng.random(120_000) < 0.1, np.nan, group * 5 + rng.normal(size=120_000)),
            "kind": np.array(["a", "b", "c", "d"])[(group + (rng.random(120_000) < 0.1)) % 4],
        }
    )
    make = partial(own_model, 3, scale="standard")
    fit = Fit(make(), feature_names=frame.columns)
    found = converse(fit, parts_of(frame, [0, 50_000, 120_000]), make=make)
    expected = make().fit(frame)
    # The clusters are clear: k-means of all rows finds the same.
    assert found.reference_inertia_ == pytest.approx(expected.reference_inertia_, rel=1e-3)
    centers = found._training.reference_centers
    again = fit_batches(model_of(centers, max_leaves=8, scale="standard"), frame)
    assert again.rules().frame.equals(found.rules().frame)
    same(again, model_of(centers, max_leaves=8, scale="standard").fit(frame))


def test_files_of_mixed_tables(tmp_path):
    rng = np.random.default_rng(40)
    frame = mixed_frame(rng, 400)
    weighted = frame.with_columns(w=pl.Series(rng.choice([0.0, 1.0, 2.5], size=400)))
    for i in range(3):
        weighted[150 * i : 150 * (i + 1)].write_parquet(tmp_path / f"{i}.parquet")
    expected = own_model(3).fit(frame, sample_weight=weighted["w"])
    scan = pl.scan_parquet(tmp_path / "*.parquet")
    same(fit_batches(own_model(3), scan, sample_weight="w"), expected)
    same(fit_batches(own_model(3), tmp_path, sample_weight="w"), expected)
    found = fit_batches(own_model(3), scan.drop("w"))
    same(found, own_model(3).fit(frame))
    labels = scan.drop("w").with_columns(found.to_polars()).collect().to_series(-1)
    np.testing.assert_array_equal(labels.to_numpy(), found.predict(frame))
