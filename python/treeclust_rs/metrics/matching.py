"""How far two clusterings agree, and checks of data, labels and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from scipy.sparse import issparse
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import column_or_1d

from .._data import SparseTable, Table, count_gaps, read_sparse, read_table
from .._util import FloatArray, is_noise
from .._util.arrays import NOISE

# Matching the clusters of two clusterings takes a table of their sizes' product.
_MAX_CONTINGENCY = 50_000_000


def agreement(
    labels: npt.ArrayLike,
    reference_labels: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Share of the rows on which two clusterings agree, the clusters being matched at best.

    Parameters
    ----------
    labels, reference_labels : array-like of shape (n_samples,)
        The two clusterings, integers or strings; rows labelled -1 in either are left out.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, not negative; None is 1 for each.

    Returns
    -------
    float
        Between 0 and 1: every cluster of one is matched with at most one of the other, so that the
        matched pairs share the most rows.

    Raises
    ------
    ValueError
        If no row of positive weight is left, or there are so many clusters that the table of
        their pairs would have more than 50 million entries.

    Examples
    --------
    >>> agreement([0, 0, 1, 1], ["b", "b", "a", "b"])
    0.75
    """
    reference = check_labels(reference_labels, None, "reference_labels")
    marks = check_labels(labels, len(reference), "labels")
    weights = check_weights(sample_weight, len(reference))
    kept = ~(is_noise(marks) | is_noise(reference))
    weights = weights[kept]
    total = float(weights.sum())
    if total == 0:
        raise ValueError("There is no row of positive weight to compare.")
    _, _, table = contingency(marks[kept], reference[kept], weights)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum()) / total


def adjusted_rand_index(labels: npt.ArrayLike, reference_labels: npt.ArrayLike) -> float:
    """How far two clusterings agree on pairs of rows, 0 what chance gives: scikit-learn's.

    Parameters
    ----------
    labels, reference_labels : array-like of shape (n_samples,)
        The two clusterings, integers or strings; rows labelled -1 are a cluster of their own.

    Returns
    -------
    float
        1 for equal clusterings, about 0 for independent ones; at least -0.5.

    Raises
    ------
    ValueError
        If there are not as many of both, or labels are neither integers nor strings.

    References
    ----------
    Hubert, Arabie (1985). Comparing partitions.

    Examples
    --------
    >>> adjusted_rand_index([0, 0, 1, 1], ["b", "b", "a", "a"])
    1.0
    """
    reference = check_labels(reference_labels, None, "reference_labels")
    marks = check_labels(labels, len(reference), "labels")
    return float(adjusted_rand_score(reference, marks))


def contingency(
    labels: npt.NDArray[Any], reference: npt.NDArray[Any], weights: FloatArray
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], FloatArray]:
    """Return the distinct labels of two clusterings and the weight of each pair, a row a label."""
    names, codes = np.unique(labels, return_inverse=True)
    reference_names, reference_codes = np.unique(reference, return_inverse=True)
    size = len(names) * len(reference_names)
    if size > _MAX_CONTINGENCY:
        raise ValueError(
            f"Matching {len(names):,} with {len(reference_names):,} clusters takes a table of "
            f"{size:,} entries; adjusted_rand_index has no such limit."
        )
    pairs = codes * len(reference_names) + reference_codes
    table = np.bincount(pairs, weights=weights, minlength=size).astype(np.float64)
    return names, reference_names, table.reshape(len(names), len(reference_names))


def check_data(X: Any, *, sparse: bool = False) -> Any:
    """Return X as a table, in which cells may be missing; a table as it is.

    `sparse`: whether a scipy.sparse matrix is read as it is, as a `SparseTable`.
    """
    if isinstance(X, (Table, SparseTable)):
        return X
    if sparse and issparse(X):
        return read_sparse(X, estimator_name="metrics")
    return count_gaps(read_table(X, estimator_name="metrics", mixed=True), n_jobs=1)


def check_clustering(
    X: Any, labels: npt.ArrayLike, sample_weight: npt.ArrayLike | None, *, sparse: bool = False
) -> tuple[Any, npt.NDArray[Any], FloatArray]:
    """Return the data, a label and a weight for each row; `sparse` as in `check_data`."""
    data = check_data(X, sparse=sparse)
    marks = check_labels(labels, data.n_samples, "labels")
    return data, marks, check_weights(sample_weight, data.n_samples)


def check_labels(labels: npt.ArrayLike, n_rows: int | None, name: str) -> npt.NDArray[Any]:
    """Return labels as an array of integers or strings, one for each of the rows."""
    if hasattr(labels, "get_params"):
        raise TypeError(f"{name} is the model {type(labels).__name__}: give its labels_.")
    marks: npt.NDArray[Any] = column_or_1d(labels)
    if n_rows is not None and len(marks) != n_rows:
        raise ValueError(f"There are {len(marks)} {name} for {n_rows} rows.")
    if marks.dtype.kind == "O":
        # Integers or strings held as Python objects; a mixture becomes strings, but for the -1 of
        # rows that `reference_labels_` leaves out.
        values = marks.tolist()
        noise = is_noise(marks)
        if noise.any() and any(isinstance(value, str) for value in values):
            marks = np.unique([str(value) for value in values], return_inverse=True)[1]
            marks[noise] = NOISE
        else:
            marks = np.array(values)
    if marks.dtype.kind == "f" and np.array_equal(marks, np.rint(marks)):
        marks = marks.astype(np.int64)
    if marks.dtype.kind not in "biuUT":
        raise ValueError(f"The {name} must be integers or strings.")
    return marks


def check_weights(sample_weight: npt.ArrayLike | None, n_rows: int) -> FloatArray:
    """Return the weights of the rows, 1 where there are none."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one entry for each of the {n_rows} rows. "
            f"Got the shape {weights.shape} instead."
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("sample_weight must be finite and not negative.")
    return weights
