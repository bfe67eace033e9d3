"""Points over a partition: their places, and the colours of their labels."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..._data import column_of
from ..._util import FloatArray, IntArray, is_noise
from ..._util.words import printable
from ...tree import ClusterTree, cluster_colors, read_rows


@dataclass(frozen=True)
class Points:
    """The points and their colours."""

    xy: FloatArray
    """Of shape (n, 2); NaN where a cell is missing."""
    codes: IntArray
    """Index of each point's colour; -1 is noise."""
    colors: list[str]
    labels: list[tuple[int, str]]
    """Colour and text of each label; empty if the labels are the names of the clusters."""

    @classmethod
    def of(
        cls, tree: ClusterTree, X: Any, columns: tuple[int, int], labels: Any, colors: list[str]
    ) -> Points:
        """Read points, and colour them by their labels or, without, by their clusters."""
        table = read_rows(tree, X, estimator_name="plot_partition", needed=np.sort(columns))
        xy = np.column_stack([column_of(table, f) for f in columns]).astype(np.float64)
        clusters = tree.leaf_clusters[tree.apply(table.data)]
        if labels is None:
            return cls(xy, clusters, colors, [])
        names, codes = _read_labels(labels, len(xy))
        place = _match(tree, clusters, names, codes)
        n_more = max(int(place.max(initial=-1)) + 1 - len(colors), 0)
        spare = [color for color in cluster_colors(len(colors) + n_more) if color not in colors]
        texts = [
            (at, f"label {name}" if isinstance(name, int) else printable(name))
            for at, name in zip(place.tolist(), names, strict=True)
        ]
        own_names = dict(enumerate(tree.classes))
        if all(own_names.get(at) == name for at, name in zip(place.tolist(), names, strict=True)):
            texts = []
        # Noise, -1, is the last entry.
        return cls(xy, np.append(place, -1)[codes], colors + spare[:n_more], texts)


def _read_labels(labels: Any, n_samples: int) -> tuple[list[int] | list[str], IntArray]:
    """Return the distinct labels except noise, and the index of each point's label; noise is -1."""
    array = np.asarray(labels)
    if array.shape != (n_samples,):
        raise ValueError(
            f"labels must have one entry for each of the {n_samples:,} points. Got an array of the "
            f"shape {array.shape}."
        )
    noise = is_noise(array)
    kept = array[~noise]
    if array.dtype.kind == "f" and np.isfinite(kept).all() and (kept == np.rint(kept)).all():
        kept = kept.astype(np.int64)
    elif array.dtype.kind == "O":
        for kind, dtype in ((str, np.str_), (Integral, np.int64)):
            if all(isinstance(label, kind) for label in kept.tolist()):
                kept = kept.astype(dtype)
    if kept.dtype.kind not in "biuU":
        raise ValueError("labels must hold integers or strings; -1 marks noise.")
    codes = np.full(n_samples, -1, dtype=np.int64)
    names, codes[~noise] = np.unique(kept, return_inverse=True)
    return names.tolist(), codes


def _match(
    tree: ClusterTree, clusters: IntArray, names: list[int] | list[str], codes: IntArray
) -> IntArray:
    """Return the index of each label's colour: that of its cluster, or one of its own."""
    k, n_labels = len(tree.classes), len(names)
    kept = codes >= 0
    shared = np.zeros((n_labels, k))
    np.add.at(shared, (codes[kept], clusters[kept]), 1.0)
    # Equal names break ties.
    for i, name in enumerate(names):
        shared[i] += [0.5 / (k + 1) * (name == known) for known in tree.classes]
    rows, columns = linear_sum_assignment(shared, maximize=True)
    place = np.full(n_labels, -1, dtype=np.int64)
    place[rows] = columns
    place[place < 0] = k + np.arange((place < 0).sum())
    return place
