"""The hard rules of Douglas as a tree of thresholds, for what takes trees alone."""

from __future__ import annotations

import numpy as np

from ...tree import ClusterTree, threshold_tests
from .cell_table import CellTable

_MAX_NODES = 200_000


def cell_tree(cells: CellTable, n_features: int) -> ClusterTree:
    """Return a tree that puts every row in the cluster of its cell.

    Boxes of cells are halved along the column with the most bins of those along which clusters
    differ, until a box is of one cluster.

    Parameters
    ----------
    cells : CellTable
        The rules.
    n_features : int
        Number of columns of the table.

    Returns
    -------
    ClusterTree
        The shares in its nodes are those of the rules' clusters, and nothing is a mistake.

    Raises
    ------
    ValueError
        If the tree would have more than 200,000 nodes.
    """
    clusters = cells.clusters.reshape(cells.n_bins)
    n_rows = np.zeros(cells.n_cells, dtype=np.int64)
    n_rows[cells.occupied] = cells.n_rows
    n_rows = n_rows.reshape(cells.n_bins)
    boxes = [tuple(slice(0, n) for n in cells.n_bins)]
    feature, threshold, left = [-2], [-2.0], [-1]
    for node, box in enumerate(boxes):  # grows while it is walked
        block = clusters[box]
        widths = [
            n_bins if (block != block.take([0], axis)).any() else 0
            for axis, n_bins in enumerate(block.shape)
        ]
        if not any(widths):
            continue
        if len(boxes) + 2 > _MAX_NODES:
            raise ValueError(
                f"A table of {cells.n_cells:,} cells takes a tree of more than {_MAX_NODES:,} "
                "nodes. Use model.predict(X) instead, or fit with fewer features (feature_mask)."
            )
        axis = int(np.argmax(widths))
        start, stop = box[axis].start, box[axis].stop
        middle = (start + stop) // 2
        left[node], feature[node] = len(boxes), int(cells.features[axis])
        threshold[node] = float(cells.cuts[axis][middle - 1])
        for half in (slice(start, middle), slice(middle, stop)):
            boxes.append((*box[:axis], half, *box[axis + 1 :]))
            feature.append(-2)
            threshold.append(-2.0)
            left.append(-1)
    rows = np.array([n_rows[box].sum() for box in boxes])
    value = np.zeros((len(boxes), cells.n_clusters))
    for node, box in enumerate(boxes):
        np.add.at(value[node], clusters[box].ravel(), n_rows[box].ravel())
    shares = value / np.maximum(rows, 1)[:, np.newaxis]
    first = np.array([clusters[box].flat[0] for box in boxes])
    children = np.array(left, dtype=np.int64)
    return ClusterTree(
        **threshold_tests(np.array(feature), np.array(threshold), children)._asdict(),
        n_node_samples=rows,
        weighted_n_node_samples=rows,
        cluster=np.where(children < 0, first, value.argmax(axis=1)),
        base_cluster=np.full(len(boxes), -1),
        impurity=np.where(rows > 0, 1.0 - np.square(shares).sum(axis=1), 0.0),
        value=shares[:, np.newaxis, :],
        mistakes=np.where(children < 0, 0.0, np.nan),
        n_features=n_features,
        feature_names=cells.feature_names,
        classes=cells.classes,
    )
