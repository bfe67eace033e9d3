"""The spherical k-means reference: labels and centers of length 1 under 1 - cosine."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import _engine
from .._data.sparse import SparseTable
from .._data.table import Table
from .._data.units import Units
from .._util.arrays import Codes, FloatArray
from .checks import DEFAULT_N_CLUSTERS, check_enough_rows, warn_too_few
from .read import ReferenceInput


class Clustering(NamedTuple):
    """A clustering of the fitted rows."""

    classes: list[int] | list[str]
    labels: Codes
    centers: FloatArray
    """In units; of length 1 for cosine."""


def spherical_reference(
    given: ReferenceInput,
    rows: Table | SparseTable,
    weight: FloatArray | None,
    *,
    n_clusters: int | None,
    n_init: int,
    max_iter: int,
    random_state: Any,
    threads: _engine.Threads,
    estimator_name: str,
) -> Clustering:
    """Determine classes, labels and centers on the fitted rows; `given`: theirs, without noise."""
    if given.centers is None and given.labels is None:
        k = n_clusters or DEFAULT_N_CLUSTERS
        check_enough_rows(k, n_clusters, rows.n_samples, estimator_name)
        found, centers = _engine.spherical_kmeans(
            rows.data,
            k,
            sample_weight=weight,
            n_init=n_init,
            max_iter=max_iter,
            seed=int(random_state.randint(np.iinfo(np.int32).max)),
            n_jobs=threads,
        )
        used, codes = np.unique(found, return_inverse=True)
        if len(used) < k:
            warn_too_few(len(used), k, stacklevel=5)
        classes = list(range(len(used)))
        return Clustering(classes, codes.astype(np.uint32), np.ascontiguousarray(centers[used]))
    measure = _engine.Measure(Units.own(rows.n_features), True, weight, threads)
    labels = None if given.labels is None else given.labels.astype(np.uint32)
    if given.centers is not None:
        lengths = np.linalg.norm(given.centers, axis=1, keepdims=True)
        centers = np.ascontiguousarray(given.centers / np.where(lengths > 0, lengths, 1.0))
    else:
        assert labels is not None and given.classes is not None
        centers = np.zeros((len(given.classes), rows.n_features))
        centers = _engine.mean_centers(rows.data, measure, labels=labels, centers=centers)
    if labels is None:
        labels, _ = _engine.assign_rows(rows.data, measure, labels=None, centers=centers)
    return Clustering(given.classes or list(range(len(centers))), labels, centers)
