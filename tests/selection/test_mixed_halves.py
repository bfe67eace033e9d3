"""Stability on tables with text and gaps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from test_mixed_comparison import frame_of

import treeclust_rs as tc
from treeclust_rs.selection import stability


@pytest.mark.parametrize("method", [tc.ExKMC, tc.Kauri])
def test_halves_without_some_levels_or_gaps_are_compared_in_silence(method):
    rare = np.where(np.arange(90) == 7, "rare", "usual")
    frame = frame_of().with_columns(rare=rare)
    estimator = make_pipeline(method(3, scale="standard", n_jobs=1))
    with warnings.catch_warnings(action="error", category=UserWarning):
        found = stability(estimator, frame, [2, 3], n_repeats=3, random_state=0)
    assert found.table["n_clusters"].to_list() == [2, 3]
    assert found.table["stability"].is_between(0.2, 1).all()
