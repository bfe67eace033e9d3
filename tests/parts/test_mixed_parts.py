"""Fits in parts of tables as people have them: gaps, levels, flags and times."""

import datetime as dt
import json
from functools import partial, reduce
from itertools import pairwise
from operator import add

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc
from treeclust_rs.parts import Answer, Fit, Question

pytestmark = pytest.mark.filterwarnings("ignore:Only .* clusters:UserWarning")


def ends_of(rng, n, n_parts):
    """Return the ends of uneven parts, some of them empty."""
    return [0, *np.sort(rng.integers(0, n + 1, size=n_parts - 1)).tolist(), n]


def parts_of(X, ends):
    return [X[a:b] for a, b in pairwise(ends)]


def answers(question, parts, weights):
    return [
        question.answer(part, part_id=i, sample_weight=weight, n_jobs=1)
        for i, (part, weight) in enumerate(zip(parts, weights, strict=True))
    ]


def converse(fit, parts, weights=None, rng=None, make=None):
    """Lead a fit to its end; everything crosses as bytes, answers in any order."""
    weights = weights or [None] * len(parts)
    while (question := fit.question()) is not None:
        if make is not None:
            data = fit.to_bytes()
            fit = Fit.from_bytes(data, make())
            assert fit.to_bytes() == data
            assert fit.question().to_bytes() == question.to_bytes()
        question = Question.from_bytes(question.to_bytes())
        found = answers(question, parts, weights)
        if rng is not None:
            rng.shuffle(found)
        fit.tell(Answer.from_bytes(reduce(add, found).to_bytes()))
    return fit.result()


def same(found, expected):
    assert json.loads(found.to_json()) == json.loads(expected.to_json())
    assert found.cost_path_.equals(expected.cost_path_)
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
    np.testing.assert_array_equal(found.scale_, expected.scale_)
    for name in ("inertia_", "reference_inertia_", "cost_ratio_"):
        assert getattr(found, name) == getattr(expected, name), name
    if first := expected.n_leaves_ // 2:
        small, of_memory = found.truncate(first), expected.truncate(first)
        assert small.inertia_ == of_memory.inertia_
        np.testing.assert_array_equal(small.cluster_centers_, of_memory.cluster_centers_)


def in_memory(make, X, weight):
    """Return the model fitted in memory; None if there are too few rows for its clusters."""
    try:
        return make().fit(X, sample_weight=weight)
    except ValueError as error:
        if "must be at least n_clusters" not in str(error):
            raise
    return None


def with_gaps(rng, n, d, share, *, ties=False):
    X = rng.normal(size=(n, d)) + rng.integers(0, 3, size=(n, 1)) * rng.normal(size=(1, d))
    if ties:
        X = rng.integers(0, 4, size=(n, d)).astype(float)
    return np.where(rng.random((n, d)) < share, np.nan, X)


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

WORDS = ["", "a", "A", "a ", "b", "é", "z\x00", "north", "south", "ünder"]


def mixed_frame(rng, n, *, gaps=0.15, n_levels=5):
    """Return a frame of all kinds of columns."""
    group = rng.integers(0, 3, size=n)
    words = np.array(WORDS[:n_levels], dtype=object)
    text = words[np.minimum((group + rng.integers(0, n_levels, size=n)) % n_levels, n_levels - 1)]
    start = dt.datetime(2023, 1, 1)
    days = (group * 100 + rng.integers(0, 300, size=n)).tolist()
    frame = pl.DataFrame(
        {
            "amount": (group + rng.normal(size=n)).round(2),
            "region": pl.Series(text.tolist(), dtype=pl.String),
            "member": pl.Series((group > rng.integers(0, 3, size=n)).tolist()),
            "count": rng.integers(0, 5, size=n) + group,
            "size": pl.Series(
                np.array(["s", "m", "l"])[(group + (rng.random(n) < 0.2)) % 3].tolist(),
                dtype=pl.Enum(["s", "m", "l", "xl"]),
            ),
            "since": [(start + dt.timedelta(days=day)).date() for day in days],
            "seen": pl.Series(
                [start + dt.timedelta(days=day, hours=day % 7, seconds=day % 50) for day in days],
                dtype=pl.Datetime("us"),
            )
            .dt.replace_time_zone("UTC")
            .dt.convert_time_zone("Europe/Berlin"),
            "stay": pl.Series([dt.timedelta(hours=day % 40) for day in days]),
        }
    )
    if gaps:
        frame = frame.with_columns(
            pl.when(pl.Series(rng.random(n) < gaps)).then(None).otherwise(pl.col(name)).alias(name)
            for name in frame.columns
        )
    return frame


COLUMNS = {
    "levels": ["region", "member", "size"],
    "one level column": ["region"],
    "times": ["since", "seen", "stay"],
    "mixed": ["amount", "region", "member", "count", "size", "since"],
    "all": ["amount", "region", "member", "count", "size", "since", "seen", "stay"],
}


def centers_for(rng, frame, k):
    """Return centers in the coordinates of a frame: some of its rows, encoded."""
    model = tc.ExKMC(min(k, 2), base_tree=None, random_state=0, max_leaves=2).fit(frame)
    width = model.cluster_centers_.shape[1]
    spread = np.abs(model.cluster_centers_).max(axis=0) / 10 + 0.3
    return model.cluster_centers_[rng.integers(0, len(model.cluster_centers_), size=k)] + (
        rng.normal(size=(k, width)) * spread
    )


def both(make, frame, weight, ends, rng, **fit_options):
    """Fit in memory and in parts, and compare; return whether there was a tree."""
    if (expected := in_memory(make, frame, weight)) is None:
        return False
    weights = None if weight is None else [weight[a:b] for a, b in pairwise(ends)]
    fit = Fit(make(), feature_names=frame.columns, **fit_options)
    same(converse(fit, parts_of(frame, ends), weights, rng), expected)
    return True


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
