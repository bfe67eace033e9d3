"""A threshold tree while Python makes it, split by split."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .. import _engine
from .._engine import TestArrays
from .nodes import LEAF, THRESHOLD


@dataclass
class TreeSketch:
    """The splits of a threshold tree so far; at first a single leaf, node 0."""

    feature: list[int] = field(default_factory=lambda: [-2])
    below: list[float] = field(default_factory=lambda: [0.0])
    """The largest value that goes left; 0 at leaves."""
    above: list[float] = field(default_factory=lambda: [0.0])
    """The least value that goes right; 0 at leaves."""
    left: list[int] = field(default_factory=lambda: [-1])
    """The left child, which the right one follows; -1 at leaves."""

    def split(self, node: int, feature: int, below: float, above: float) -> int:
        """Split a leaf between two neighbouring values of a column; return the left child."""
        left = len(self.left)
        self.feature[node], self.left[node] = feature, left
        self.below[node], self.above[node] = below, above
        self.feature += [-2, -2]
        self.below += [0.0, 0.0]
        self.above += [0.0, 0.0]
        self.left += [-1, -1]
        return left

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.left) // 2 + 1

    def tests(self) -> TestArrays:
        """Return the arrays of the tree, with thresholds of few digits."""
        left = np.array(self.left, dtype=np.int64)
        split = left >= 0
        threshold = np.full(len(left), -2.0)
        below, above = np.array(self.below)[split], np.array(self.above)[split]
        threshold[split] = _engine.thresholds(below, above)
        return threshold_tests(np.array(self.feature, dtype=np.int64), threshold, left)


def threshold_tests(
    feature: np.ndarray, threshold: np.ndarray, children_left: np.ndarray
) -> TestArrays:
    """Return the arrays of a tree of thresholds whose right children follow the left ones."""
    split = children_left >= 0
    not_a_number = np.full(len(split), np.nan)
    return TestArrays(
        kind=np.where(split, THRESHOLD, LEAF).astype(np.int8),
        feature=feature,
        threshold=threshold,
        lower=not_a_number,
        upper=not_a_number,
        children_left=children_left,
        children_right=np.where(split, children_left + 1, -1),
    )
