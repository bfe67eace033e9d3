"""The regression tree of the columns on themselves, which XRegressionTree and CUBT grow."""

from __future__ import annotations

import numpy as np

from .. import _engine
from .._base import FitRows, Limits, most_leaves
from .._data import Table
from .._engine import TestArrays
from .._util import FloatArray
from ..tree import tests_of


def cells_by_power(fit_rows: FitRows[Table]) -> tuple[FloatArray, int]:
    """Return the rows in units over a power of 2, and the exponent.

    So divided no digit changes, and squares of cells neither overflow nor vanish. The array is
    of shape (n_samples, n_features), its largest entry in size between 1/2 and 1.
    """
    cells = fit_rows.units.matrix(fit_rows.rows)
    exponent = int(np.frexp(np.abs(cells).max())[1])
    return np.ldexp(cells, -exponent, out=cells), exponent


def regression_tree(
    fit_rows: FitRows[Table],
    cells: FloatArray,
    limits: Limits,
    n_clusters: int,
    *,
    min_gain: float = 0.0,
    verbose: int,
) -> TestArrays:
    """Grow the tree whose leaves have the least squared distances of the rows to their means.

    Parameters
    ----------
    fit_rows : FitRows
        The rows, n of them.
    cells : ndarray of shape (n_samples, n_features)
        Cells in units, from `cells_by_power`.
    limits : Limits
        Limits of growth.
    n_clusters : int
        Number of clusters, and of leaves if `limits` says no other.
    min_gain : float, default=0.0
        Least gain of a cut, as a share of the squared distances of all rows to their mean.
    verbose : int
        Whether lines of progress are printed.

    Returns
    -------
    TestArrays
        Its tests, by node.
    """
    rows, weight = fit_rows.rows, fit_rows.weight
    return tests_of(
        _engine.fit_regression(
            rows.data,
            cells,
            sample_weight=None if weight is None else weight / weight.mean(),
            min_gain=min_gain,
            max_leaves=most_leaves(limits.max_leaves, n_clusters, rows.n_samples),
            max_depth=limits.max_depth,
            min_samples_leaf=limits.min_samples_leaf,
            n_jobs=fit_rows.threads,
            progress=fit_rows.progress(verbose),
        )
    )
