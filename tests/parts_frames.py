"""Tables as people have them for tests of fits in parts: gaps, levels, flags and times."""

import datetime as dt
from functools import partial, reduce
from itertools import pairwise
from operator import add

import numpy as np
import polars as pl

import treeclust_rs as tc
from parts_cases import same
from treeclust_rs.parts import Answer, Fit, Question


def ends_of(rng, n, n_parts):
    """Return the ends of uneven parts, some of them empty."""
    return [0, *np.sort(rng.integers(0, n + 1, size=n_parts - 1)).tolist(), n]


def parts_of(X, ends):
    return [X[a:b] for a, b in pairwise(ends)]


def answers(question, parts, weights=None, labels=None):
    """Return the answers of parts; `weights`, `labels`: by part."""
    weights, labels = weights or [None] * len(parts), labels or [None] * len(parts)
    return [
        question.answer(part, part_id=i, sample_weight=weight, labels=of_rows, n_jobs=1)
        for i, (part, weight, of_rows) in enumerate(zip(parts, weights, labels, strict=True))
    ]


def converse(fit, parts, weights=None, rng=None, make=None, labels=None):
    """Lead a fit to its end; everything crosses as bytes, answers in any order."""
    while (question := fit.question()) is not None:
        if make is not None:
            data = fit.to_bytes()
            fit = Fit.from_bytes(data, make())
            assert fit.to_bytes() == data
            assert fit.question().to_bytes() == question.to_bytes()
        question = Question.from_bytes(question.to_bytes())
        found = answers(question, parts, weights, labels)
        if rng is not None:
            rng.shuffle(found)
        fit.tell(Answer.from_bytes(reduce(add, found).to_bytes()))
    return fit.result()


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


def both(make, frame, weight, ends, rng, *, labels=None):
    """Fit in memory and in parts, and compare; return whether there was a tree."""
    in_full = make if labels is None else partial(make, reference=labels)
    if (expected := in_memory(in_full, frame, weight)) is None:
        return False
    weights = None if weight is None else parts_of(weight, ends)
    of_parts = None if labels is None else parts_of(labels, ends)
    is_frame = isinstance(frame, pl.DataFrame)
    fit = Fit(
        make(),
        feature_names=frame.columns if is_frame else None,
        n_features=None if is_frame else frame.shape[1],
        labels=labels is not None,
    )
    same(converse(fit, parts_of(frame, ends), weights, rng, labels=of_parts), expected)
    return True
