"""Rows, conversations and comparisons for tests of fits in parts."""

import json
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest

import treeclust_rs as tc
from treeclust_rs.parts import Answer, Fit, Question

# Most bins and most rows that are opened to values: so few that every kind of question is asked.
BINS = [None, (2, 1), (5, 20)]


def rows(rng, n=400, d=4, k=4, kind="plain"):
    """Return rows and centers; many ties unless the rows are plain."""
    X = rng.normal(size=(n, d)) + rng.integers(0, k, size=(n, 1)) * rng.normal(size=(1, d))
    if kind == "ties":
        X = rng.integers(0, 4, size=(n, d)).astype(float)
    elif kind == "duplicates":
        X = X[rng.integers(0, max(n // 8, 1), size=n)]
    elif kind == "far":
        X += 1e8
    elif kind == "far row":
        X[n // 3] = [1e8, -1e8, *X[n // 3, 2:]]
    elif kind == "huge row":
        X[n // 3, 0] = 1e150
    elif kind == "zeros":
        X = np.where(rng.random(X.shape) < 0.7, rng.choice([0.0, -0.0], size=X.shape), X)
    elif kind == "tiny":
        X *= 1e-300
    centers = np.unique(X[rng.choice(n, min(k, n), replace=False)], axis=0)
    return X, centers


KINDS = ["plain", "ties", "duplicates", "far", "far row", "huge row", "zeros", "tiny"]


def parts_of(rng, n, n_parts):
    """Return the ends of uneven parts, some of them empty or of one row."""
    cuts = np.sort(rng.integers(0, n + 1, size=n_parts - 1))
    if n_parts > 3:
        cuts[1] = cuts[0]
        cuts[-1] = min(cuts[-2] + 1, n)
    return [0, *np.sort(cuts).tolist(), n]


def answers(question, X, ends, weight=None, labels=None):
    """Return the answers of parts that end at some rows."""

    def part_of(column, a, b):
        return None if column is None else column[a:b]

    return [
        question.answer(
            X[a:b],
            part_id=part,
            sample_weight=part_of(weight, a, b),
            labels=part_of(labels, a, b),
            n_jobs=1,
        )
        for part, (a, b) in enumerate(pairwise(ends))
    ]


def converse(fit, X, ends, weight=None, rng=None, labels=None):
    """Lead a fit to its end; answers cross as bytes and are added up in any order."""
    while (question := fit.question()) is not None:
        question = Question.from_bytes(question.to_bytes())
        found = answers(question, X, ends, weight, labels)
        if rng is not None:
            rng.shuffle(found)
        fit.tell(Answer.from_bytes(reduce(add, found).to_bytes()))
    return fit.result()


def same(found, expected):
    """Compare two models to the bit."""
    assert json.loads(found.to_json()) == json.loads(expected.to_json())
    assert found.cost_path_.equals(expected.cost_path_)
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
    np.testing.assert_array_equal(found.scale_, expected.scale_)
    assert found.inertia_ == expected.inertia_
    assert found.reference_inertia_ == expected.reference_inertia_
    assert found.cost_ratio_ == expected.cost_ratio_
    first = max(expected.n_leaves_ // 2, expected.tree_.n_base_leaves)
    if first:
        small, of_memory = found.truncate(first), expected.truncate(first)
        assert small.rules().frame.equals(of_memory.rules().frame)
        if expected.criterion == "kmedians" and first < expected.n_leaves_:
            assert not hasattr(small, "inertia_")
            assert not hasattr(of_memory, "inertia_")
            return
        assert small.inertia_ == of_memory.inertia_
        np.testing.assert_array_equal(small.cluster_centers_, of_memory.cluster_centers_)


def damaged(rng, data, read, n_cut, n_changed):
    """Assert that cut bytes are refused by `read`, and yield what some changed ones are read as.

    Changes may be refused; those that are not may be harmless.
    """
    for end in rng.integers(0, len(data), size=n_cut).tolist():
        with pytest.raises(ValueError, match=r"^These bytes are not a"):
            read(data[:end])
    for place in rng.integers(0, len(data), size=n_changed).tolist():
        changed = bytearray(data)
        changed[place] ^= int(rng.integers(1, 256))
        try:
            found = read(bytes(changed))
        except (ValueError, MemoryError):
            continue
        yield found


def told_or_refused(rng, fit, make, X, answer=None):
    """Answer the fit's question; damaged bytes of the round are refused, or told without harm.

    Returns the answer: `answer`, or that of the rows as one part.
    """
    question = fit.question()
    if answer is None:
        answer = question.answer(X, part_id=0)
    for read, data in (
        (Question.from_bytes, question.to_bytes()),
        (Answer.from_bytes, answer.to_bytes()),
        (lambda data: Fit.from_bytes(data, make()), fit.to_bytes()),
    ):
        for found in damaged(rng, data, read, 8, 40):
            try:
                if isinstance(found, Question):
                    found.answer(X, part_id=0)
                elif isinstance(found, Answer):
                    Fit.from_bytes(fit.to_bytes(), make()).tell(found)
                elif (asked := found.question()) is not None:
                    found.tell(asked.answer(X, part_id=0))
            except (ValueError, TypeError, MemoryError):
                continue
    return answer


def model_of(centers, **options):
    return tc.ExKMC(reference=centers, base_tree=None, **{"max_leaves": 12, **options})
