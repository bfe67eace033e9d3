"""The distances a fitted model clusters by: of its kernel, its metric or its criterion."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _engine
from .._data.table import Table
from .._data.units import Units
from .._kernels.kernel_data import kernel_rows
from .._kernels.parameters import kernel_of
from .._util.arrays import FloatArray, IntArray, check_size
from .._util.threads import effective_n_jobs
from .fits import parameter


def geometry_of(
    model: Any,
    table: Table,
    rows: IntArray | None,
    metric: Any,
    gram: FloatArray | None,
) -> tuple[FloatArray, Any]:
    """Return points, or distances, and scikit-learn's name of the metric.

    Parameters
    ----------
    model : estimator
        Fitted to the rows of `table`.
    table : Table
        Those rows.
    rows : ndarray of int or None
        Row numbers of a sample; None: all rows.
    metric : str, callable or None
        The metric that is asked for; None: the model's.
    gram : ndarray of shape (n_samples, n_samples) or None
        The kernel matrix, if the fit was given one.

    Returns
    -------
    points : ndarray
        Of the sample: rows in the model's units, features of its kernel, or a matrix of distances.
    metric : str or callable
        "precomputed" for a matrix.

    Raises
    ------
    ValueError
        If the distances do not fit in memory.
    """
    if metric is None and gram is not None:
        return _kernel_distances(gram if rows is None else gram[np.ix_(rows, rows)]), "precomputed"
    standard = parameter(model, "scale") == "standard"
    shift, scale = _engine.column_units(table.data, None, standard, effective_n_jobs(None))
    # A fitted model with a kernel has the kernel's gamma and the units of the columns.
    if metric is None and parameter(model, "kernel") is not None and hasattr(model, "gamma_"):
        return _kernel_geometry(model, table, rows, Units(shift, model.scale_))
    if metric is None:
        metric = parameter(model, "metric")
    if metric is None:
        metric = "manhattan" if parameter(model, "criterion") == "kmedians" else "euclidean"
    if metric not in ("euclidean", "l2", "sqeuclidean", "manhattan", "l1", "cityblock"):
        shift = np.zeros_like(shift)  # others may see the origin
    points = Units(shift, scale).matrix(table)
    if rows is None:
        return points, metric
    return points[np.ix_(rows, rows)] if metric == "precomputed" else points[rows], metric


def _kernel_geometry(
    model: Any, table: Table, rows: IntArray | None, units: Units
) -> tuple[FloatArray, str]:
    """Return the kernel's features of the rows where it has some, else its distances."""
    points = kernel_rows(model.kernel, table, units)
    kernel = kernel_of(model, points, gamma=model.gamma_, feature_names=table.feature_names)
    if rows is not None:
        points = points[rows]
    features = kernel.explicit_features(points)
    if features is not None:
        return features, "euclidean"
    _check_distances(len(points))
    n_jobs = effective_n_jobs(model.n_jobs)
    return _kernel_distances(kernel.matrix(points, n_jobs=n_jobs)), "precomputed"


def _check_distances(n: int) -> None:
    check_size(n * n, f"The distances of {n:,} rows", "Use sample_size.")


def _kernel_distances(gram: FloatArray) -> FloatArray:
    """Return sqrt(k(x, x) + k(y, y) - 2 k(x, y)) for all pairs of rows."""
    _check_distances(len(gram))
    diagonal = gram.diagonal()
    squared = gram * -2.0
    squared += diagonal[:, None]
    squared += diagonal
    np.maximum(squared, 0.0, out=squared)
    np.fill_diagonal(squared, 0.0)
    return np.sqrt(squared, out=squared)
