"""Sums over groups of rows that do not depend on the order of the rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _engine
from .._util import FloatArray


class _OwnUnits(NamedTuple):
    """Origin 0 and unit 1."""

    shift: FloatArray
    scale: FloatArray


def sums_by_group(
    values: FloatArray, groups: npt.NDArray[Any], n_groups: int, n_jobs: _engine.Jobs
) -> FloatArray:
    """Return the sums of the rows of `values` (n x k) of each group, n_groups x k.

    They are exact and rounded once, so that the order of the rows does not matter. `groups`: one
    per row, in ``[0, n_groups)``.
    """
    k = values.shape[1]
    units = _OwnUnits(np.zeros(k), np.ones(k))
    groups = np.asarray(groups, dtype=np.uint32)
    return _engine.GroupSums(
        *_engine.group_sums(values, units, groups, n_groups, None, n_jobs)
    ).sums


def weights_of_codes(
    codes: npt.NDArray[Any], n_codes: int, weight: FloatArray | None, n_jobs: _engine.Jobs
) -> FloatArray:
    """Return the weight of the rows with each code of ``[0, n_codes)``, their number without."""
    if weight is None:
        return np.bincount(codes, minlength=n_codes).astype(np.float64)
    return sums_by_group(weight[:, None], codes, n_codes, n_jobs)[:, 0]
