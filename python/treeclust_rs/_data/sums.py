"""Sums over groups of rows that do not depend on the order of the rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _engine
from .._engine import MISSING_LEVEL
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


def weights_of_levels(
    codes: npt.NDArray[np.uint8],
    n_levels: int,
    weight: FloatArray | None,
    n_jobs: _engine.Jobs,
    groups: npt.NDArray[Any] | None = None,
    n_groups: int = 1,
) -> FloatArray:
    """Return the weight of the rows with each level, their number without, n_groups x n_levels.

    `groups`: one per row, in ``[0, n_groups)``; None: all rows are in one.
    """
    if weight is None:
        if groups is not None:
            groups = np.ascontiguousarray(groups, dtype=np.uint32)
        return _engine.level_counts(np.ascontiguousarray(codes), n_levels, groups, n_groups)
    width = MISSING_LEVEL + 1
    cells = codes if groups is None else groups.astype(np.intp) * width + codes
    weights = sums_by_group(weight[:, None], cells, n_groups * width, n_jobs)[:, 0]
    return weights.reshape(-1, width)[:, :n_levels].copy()
