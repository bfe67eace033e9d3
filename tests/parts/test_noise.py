"""Fits in parts of labels that the columns tell nothing of: cuts that part few rows from many."""

from functools import partial

import numpy as np
import pytest

import treeclust_rs as tc
from parts_cases import same
from parts_frames import converse, ends_of, in_memory, mixed_frame, parts_of
from treeclust_rs.parts import Fit

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*nearer to the center of another:UserWarning"),
    pytest.mark.filterwarnings("ignore:Only .* clusters:UserWarning"),
]

CUTS = ["threshold", "interval"]


@pytest.mark.parametrize("bins", [None, (16, 8), (8, 3)])
@pytest.mark.parametrize("cuts", CUTS)
def test_the_tree_is_that_of_memory(cuts, bins, monkeypatch):
    # A checkpoint goes on in every round: children that open what their parents did are in them.
    monkeypatch.setattr(Fit, "_bins", bins)
    for trial in range(12):
        rng = np.random.default_rng(trial)
        n, k = int(rng.integers(60, 500)), int(rng.integers(2, 7))
        frame = mixed_frame(rng, n, gaps=[0, 0.2][trial % 2])
        if trial % 3:
            frame = frame.select("amount", "count", "stay", "region")
        labels, ends = rng.integers(k, size=n), ends_of(rng, n, 3)
        criterion = "kmedians" if trial % 4 == 3 else "kmeans"
        make = partial(
            tc.ExKMC, base_tree=None, max_leaves=12, cuts=cuts, criterion=criterion, n_jobs=1
        )
        fit = Fit(make(), feature_names=frame.columns, labels=True)
        found = converse(fit, parts_of(frame, ends), None, rng, make, labels=parts_of(labels, ends))
        same(found, in_memory(partial(make, reference=labels), frame, None))


@pytest.mark.parametrize("gaps", [0, 0.2])
@pytest.mark.parametrize("cuts", CUTS)
def test_they_take_few_rounds(cuts, gaps):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n, k = [3000, 20_000][seed % 2], int(rng.integers(2, 6))
        frame = mixed_frame(rng, n, gaps=gaps)
        labels = rng.integers(k, size=n)
        model = tc.ExKMC(
            criterion=["kmeans", "kmedians"][seed // 2 % 2],
            base_tree=None,
            max_leaves=20,
            scale="standard",
            cuts=cuts,
            n_jobs=2,
        )
        fit = Fit(model, feature_names=frame.columns, labels=True)
        while (question := fit.question()) is not None:
            fit.tell(question.answer(frame, part_id=0, labels=labels, n_jobs=2))
        assert fit.n_rounds <= 2 * fit.result().tree_.max_depth + 10
