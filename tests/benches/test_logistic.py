"""The table of the logistic solver, from the samples of its Rust bench."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from bench_modules import bench


@pytest.fixture
def logistic(monkeypatch: pytest.MonkeyPatch) -> Any:
    return bench("logistic", monkeypatch)


def test_solves_stand_beside_the_one_from_nothing_and_liblinear(logistic: Any) -> None:
    changed = "C=0.1 from 1 % of the labels changed"
    samples = {
        "C=0.1 from nothing": [4.0, 4.0],
        "C=0.1 from C / 10": [2.0, 2.0],
        "C=0.1 from C / 10, weights alone": [4.0, 4.0],
        changed: [1.0, 1.0],
        f"{changed}, weights alone": [2.0, 2.0],
        "copy of the rows": [0.1],
    }
    rows = logistic.table_rows(samples, {"C=0.1": logistic.Peer([16.0, 18.0], "dense")})
    assert [row[0] for row in rows] == [
        "C=0.1 from nothing",
        "C=0.1 from C / 10",
        "C=0.1 from C / 10, weights alone",
        changed,
        f"{changed}, weights alone",
        "C=0.1 liblinear, changed labels",
        "copy of the rows",
    ]
    assert [(row[2]["over"], row[2]["under"]) for row in rows[1:5]] == [
        ([4.0, 4.0], samples[row[0]]) for row in rows[1:5]
    ]
    assert [row[3] and (row[3]["over"], row[3]["under"]) for row in rows] == [
        *("", "", ""),
        ([16.0, 18.0], [1.0, 1.0]),
        ([16.0, 18.0], [2.0, 2.0]),
        *("", ""),
    ]


def test_the_fastest_close_setting_of_liblinear_is_timed(logistic: Any) -> None:
    rng = np.random.default_rng(0)
    X = csr_matrix(rng.normal(size=(300, 4)))
    y = X.toarray()[:, 0] + rng.normal(size=300) > 0
    least = min(
        gap
        for scaling in (100.0, 1000.0)
        for _, gap in [logistic.liblinear(X, y, 1.0, scaling, 1e-8, 1.0)]
    )
    peer = logistic.Peer.fastest(X, y, 1.0, 1.0 + least)
    assert len(peer.seconds) == logistic.REPEATS and "above the least" in peer.how
    assert logistic.Peer.fastest(X, y, 1.0, 0.9 * (1.0 + least)) is None
