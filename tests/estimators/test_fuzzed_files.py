"""Damaged model files of every estimator: each loads a model that works or raises ValueError."""

from __future__ import annotations

import json
import sys

import pytest

from every_estimator import ESTIMATORS
from processes import output_of
from sizes import repeats


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited by RLIMIT_AS and /proc")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_damaged_files_load_or_raise_value_errors(name):
    n_files = repeats(500, 10_000)
    code = f"import fuzzing; fuzzing.fuzz({name!r}, {n_files})"
    n_loaded, longest_message = json.loads(output_of(code, seconds=120 + n_files / 10))
    assert 0.03 < n_loaded / n_files < 0.6
    assert 0 < longest_message < 700
