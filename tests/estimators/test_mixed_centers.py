"""Centers of tables with levels that no cut tells apart."""

import numpy as np
import polars as pl
import pytest

import treeclust_rs as tc


def test_centers_without_rows_that_differ_in_levels_alone():
    frame = pl.DataFrame({"age": [0.0, 0.0, 0.0, 1.0], "news": [False, False, True, False]})
    centers = np.array([[0, 1, 0], [5, 0.4, 0.6], [5, 0.6, 0.4]])
    with pytest.raises(ValueError, match=r"No cut can tell .* numbers 1, 2: .* Give distinct"):
        tc.IMM(reference=centers).fit(frame)
