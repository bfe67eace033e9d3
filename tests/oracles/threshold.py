"""Brute-force oracles: the definitions of the method, written down once more and slowly.

Everything here is enumeration straight from the definitions, with sums rounded once
(:func:`math.fsum`) and thresholds in exact rationals, so that the fast engine has something to
agree with. The ``sweep_*`` functions are the plain sorted sweep of the same rules, quick enough
for real data. Where a definition can be read in two ways, a comment ``Reading:`` states which one
was taken.
"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

LEAF, THRESHOLD, INTERVAL = 0, 1, 2
NO_CHILD = -1
UNDEFINED = -2

# A cut as the searches hand it over: see best_threshold_cut and best_interval_cut for its keys.
Cut = dict[str, Any]


# --------------------------------------------------------------------------------------------------
# Where a threshold is placed
# --------------------------------------------------------------------------------------------------


def _decimals_around(value: Fraction, n_digits: int) -> list[Fraction]:
    """Decimals of at most ``n_digits`` significant digits next below and above a nonzero value."""
    size = abs(value)
    exponent = len(str(size.numerator)) - len(str(size.denominator))
    while Fraction(10) ** exponent > size:
        exponent -= 1
    while Fraction(10) ** (exponent + 1) <= size:
        exponent += 1
    # 10**exponent <= size < 10**(exponent + 1), so n-digit decimals are multiples of this unit;
    # the multiple next above may be the power of ten itself, which has one digit.
    unit = Fraction(10) ** (exponent - n_digits + 1)
    below = value // unit
    if below * unit == value:
        return [value]
    return [below * unit, (below + 1) * unit]


def _shortest_between(a: float, b: float) -> float | None:
    """Shortest decimal in the middle half of (a, b), or None where no double lies between."""
    low, high = Fraction(float(a)), Fraction(float(b))
    if not low < high:
        raise ValueError(f"a < b is needed. Got a={a!r}, b={b!r}.")
    q1, mid, q3 = (3 * low + high) / 4, (low + high) / 2, (low + 3 * high) / 4
    if q1 <= 0 <= q3:
        return 0.0
    for n_digits in range(1, 18):
        found = []
        for decimal in _decimals_around(mid, n_digits):
            nearest = float(decimal) if q1 <= decimal <= q3 else math.nan
            if a < nearest < b:
                found.append((abs(decimal - mid), decimal, nearest))
        if found:
            return min(found)[2] + 0.0  # nearest to mid, then the lower
    return None


def shortest_threshold(a: float, b: float) -> float:
    """Threshold between neighbouring values ``a < b``: ``a <= threshold < b``.

    The shortest decimal in the middle half of the gap; ``a`` where a and b are adjacent doubles.
    """
    found = _shortest_between(a, b)
    # Reading: "never -0" holds for the fallback too, so a = -0.0 gives 0.0.
    return float(a) + 0.0 if found is None else found


def interval_lower(a: float, b: float) -> float:
    """Lower end of an interval between ``a`` (outside) and ``b`` (inside): ``a < lower <= b``.

    Placed like a threshold; ``b`` where a and b are adjacent doubles.
    """
    # Reading: "likewise" keeps the condition a < double < b for the decimals; only the fallback
    # changes from a to b.
    found = _shortest_between(a, b)
    return float(b) + 0.0 if found is None else found


# --------------------------------------------------------------------------------------------------
# Costs
# --------------------------------------------------------------------------------------------------


def squared_costs(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """``D[i, l] = ||x_i - center_l||^2``, from the differences (never by expanding the square)."""
    X, centers = np.asarray(X, dtype=float), np.asarray(centers, dtype=float)
    return ((X[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)


def l1_costs(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """``D[i, l] = ||x_i - center_l||_1``."""
    X, centers = np.asarray(X, dtype=float), np.asarray(centers, dtype=float)
    return np.abs(X[:, None, :] - centers[None, :, :]).sum(axis=2)


def regrets(D: np.ndarray, w: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Label costs reduced to weighted regrets, and the row minima that were taken out.

    Returns
    -------
    Dp : ndarray (n, k)
        ``w_i (D[i, l] - m_i)``, and 0 where ``D[i, l] - m_i <= 1e-13 D[i, l]``.
    m : ndarray (n,)
        ``min_l D[i, l]``; ``sum_i w_i m_i`` is the constant to add to reported costs.
    """
    D = np.asarray(D, dtype=float)
    weights = np.ones(len(D)) if w is None else np.asarray(w, dtype=float)
    m = D.min(axis=1)
    regret = D - m[:, None]
    regret[regret <= 1e-13 * D] = 0.0
    return weights[:, None] * regret, m


def nearest_labels(D: np.ndarray) -> np.ndarray:
    """The cheapest label of every row, the lowest one on ties."""
    return np.argmin(D, axis=1)


def _label_sums(Dp: np.ndarray, rows: Sequence[int] | np.ndarray) -> list[float]:
    """``sum_{i in rows} Dp[i, l]`` for every label l, each rounded once."""
    return [math.fsum(column) for column in np.asarray(Dp)[np.asarray(rows, dtype=int)].T.tolist()]


def node_cost(Dp: np.ndarray, rows: Sequence[int] | np.ndarray) -> float:
    """Regret cost of a node: ``c'(p) = min_l sum_{i in p} Dp[i, l]``."""
    return min(_label_sums(Dp, rows))


def node_label(Dp: np.ndarray, rows: Sequence[int] | np.ndarray) -> int:
    """Label of a node: the lowest l whose sum is within ``1e-12 c'(p)`` of the smallest."""
    sums = _label_sums(Dp, rows)
    lowest = min(sums)
    return next(label for label, total in enumerate(sums) if total <= lowest + 1e-12 * lowest)


# --------------------------------------------------------------------------------------------------
# The best cut of one node, by enumeration
# --------------------------------------------------------------------------------------------------


def _pick(candidates: list[Cut], cost: float) -> Cut | None:
    """The tie rule among the cuts of one node, given in order (feature, lo, hi)."""
    if not candidates:
        return None
    best = max(cut["gain"] for cut in candidates)
    if not best > 1e-12 * cost:
        return None
    chosen = next(cut for cut in candidates if cut["gain"] >= best - 1e-12 * cost)
    return {**chosen, "best_gain": best}


def _threshold_cut(feature: int, a: float, b: float, gain: float) -> Cut:
    return {
        "kind": "threshold",
        "feature": feature,
        "a": float(a),
        "b": float(b),
        "lo_a": -math.inf,
        "lo_b": -math.inf,
        "hi_a": float(a),
        "hi_b": float(b),
        "gain": float(gain),
    }


def _interval_cut(
    feature: int, lo: tuple[float, float], hi: tuple[float, float], gain: float
) -> Cut:
    return {
        "kind": "interval",
        "feature": feature,
        "a": None,
        "b": None,
        "lo_a": float(lo[0]),
        "lo_b": float(lo[1]),
        "hi_a": float(hi[0]),
        "hi_b": float(hi[1]),
        "gain": float(gain),
    }


def _split_cost(columns: list[list[float]], inside: list[int], outside: list[int]) -> float:
    """``c'(inside) + c'(outside)``, summed from the rows."""
    return min(math.fsum([column[i] for i in inside]) for column in columns) + min(
        math.fsum([column[i] for i in outside]) for column in columns
    )


def _groups(X: np.ndarray, rows: Sequence[int] | np.ndarray, feature: int):
    """Distinct values of a feature among the rows, ascending, and the rows of each."""
    rows_of: dict[float, list[int]] = {}
    for i in np.asarray(rows, dtype=int).tolist():
        rows_of.setdefault(float(X[i, feature]), []).append(i)
    values = sorted(rows_of)
    return values, [rows_of[value] for value in values]


def best_threshold_cut(
    X: np.ndarray,
    Dp: np.ndarray,
    rows: Sequence[int] | np.ndarray,
    min_samples_leaf: int = 1,
) -> Cut | None:
    """Best threshold cut of a node, over every feature and every two neighbouring values.

    Returns
    -------
    dict or None
        ``kind`` ("threshold"), ``feature``, the neighbours ``a`` and ``b`` (also as ``hi_a`` and
        ``hi_b``, with ``lo_a = lo_b = -inf``), ``gain`` of the cut taken and ``best_gain``, the
        largest gain of the search. None where no gain exceeds ``1e-12 c'(p)``.
    """
    cost = node_cost(Dp, rows)
    if cost == 0:
        return None
    columns = np.asarray(Dp).T.tolist()
    candidates = []
    for feature in range(X.shape[1]):
        values, groups = _groups(X, rows, feature)
        for cut in range(1, len(values)):
            left = [i for group in groups[:cut] for i in group]
            right = [i for group in groups[cut:] for i in group]
            if min(len(left), len(right)) < min_samples_leaf:
                continue
            gain = cost - _split_cost(columns, left, right)
            candidates.append(_threshold_cut(feature, values[cut - 1], values[cut], gain))
    return _pick(candidates, cost)


def best_interval_cut(
    X: np.ndarray,
    Dp: np.ndarray,
    rows: Sequence[int] | np.ndarray,
    min_samples_leaf: int = 1,
) -> Cut | None:
    """Best interval cut of a node, over every feature and every pair of ends.

    Returns
    -------
    dict or None
        As :func:`best_threshold_cut`; for ``kind`` "interval" the lower end lies between ``lo_a``
        (outside) and ``lo_b`` (inside), the upper one between ``hi_a`` (inside) and ``hi_b``.
    """
    cost = node_cost(Dp, rows)
    if cost == 0:
        return None
    columns = np.asarray(Dp).T.tolist()
    candidates = []
    for feature in range(X.shape[1]):
        values, groups = _groups(X, rows, feature)
        last = len(values) - 1
        # Reading: an interval open at +inf (first > 0, end = last) has the very gain of the
        # one-sided cut whose inside is its complement, and that one, with lo = -inf, comes first.
        # It is therefore never taken and is left out here, and so is the interval of all values.
        for first in range(last):
            for end in range(first, last):
                inside = [i for group in groups[first : end + 1] for i in group]
                outside = [i for group in groups[:first] + groups[end + 1 :] for i in group]
                if min(len(inside), len(outside)) < min_samples_leaf:
                    continue
                gain = cost - _split_cost(columns, inside, outside)
                upper = (values[end], values[end + 1])
                if first == 0:
                    candidates.append(_threshold_cut(feature, *upper, gain))
                else:
                    lower = (values[first - 1], values[first])
                    candidates.append(_interval_cut(feature, lower, upper, gain))
    return _pick(candidates, cost)


# --------------------------------------------------------------------------------------------------
# The tree
# --------------------------------------------------------------------------------------------------


@dataclass
class OracleTree:
    """A tree in plain lists, one entry per node, in order of creation.

    Attributes
    ----------
    children_left, children_right, feature, threshold, lower, upper, kind, cluster, base_cluster :
        As in the package's ``ClusterTree``. ``cluster`` of an inner node of a plain IMM tree is -1.
    rows : list of ndarray
        The rows of the data that reach each node.
    correct : list of ndarray
        IMM: the rows still on their center's side. Nodes made by later growth: empty.
    alive : list of ndarray
        IMM: the centers alive at each node. Nodes made by later growth: empty.
    mistakes : list of float
        Weight of the rows an IMM cut separates from their center; NaN where there is no such cut.
    cost : list of float
        Regret cost ``c'`` of each node under its own best label; NaN in a plain IMM tree.
    gap : list of tuple
        Neighbours the test was placed between: (a, b), or (lo_a, lo_b, hi_a, hi_b), or ().
    cut_gain : list of float
        Gain of each cut of label-cost growth, else NaN.
    cost_path : list of (n_leaves, regret cost)
        From the base's size on; that first entry is the cost under the base's own labels.
    """

    children_left: list[int] = field(default_factory=list)
    children_right: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    cluster: list[int] = field(default_factory=list)
    base_cluster: list[int] = field(default_factory=list)
    rows: list[np.ndarray] = field(default_factory=list)
    correct: list[np.ndarray] = field(default_factory=list)
    alive: list[np.ndarray] = field(default_factory=list)
    mistakes: list[float] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    gap: list[tuple[float, ...]] = field(default_factory=list)
    cut_gain: list[float] = field(default_factory=list)
    level: list[int] = field(default_factory=list)
    n_base_leaves: int = 0
    cost_path: list[tuple[int, float]] = field(default_factory=list)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.kind)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return sum(kind == LEAF for kind in self.kind)

    @property
    def leaves(self) -> list[int]:
        """Node ids of the leaves, ascending."""
        return [node for node in range(self.n_nodes) if self.kind[node] == LEAF]

    def depth(self) -> int:
        """Largest number of tests on a path."""
        return max(self.level)

    def add_leaf(self, rows: np.ndarray, level: int) -> int:
        """Append a leaf and return its node id."""
        self.children_left.append(NO_CHILD)
        self.children_right.append(NO_CHILD)
        self.kind.append(LEAF)
        self.feature.append(UNDEFINED)
        self.threshold.append(float(UNDEFINED))
        self.lower.append(math.nan)
        self.upper.append(math.nan)
        self.cluster.append(-1)
        self.base_cluster.append(-1)
        self.rows.append(np.asarray(rows, dtype=int))
        self.correct.append(np.empty(0, dtype=int))
        self.alive.append(np.empty(0, dtype=int))
        self.mistakes.append(math.nan)
        self.cost.append(math.nan)
        self.gap.append(())
        self.cut_gain.append(math.nan)
        self.level.append(level)
        return self.n_nodes - 1

    def split(
        self,
        node: int,
        X: np.ndarray,
        feature: int,
        *,
        threshold: float | None = None,
        interval: tuple[float, float] | None = None,
    ) -> tuple[int, int]:
        """Split a leaf by a test; return the ids of its new leaves, left then right."""
        column = X[self.rows[node], feature]
        self.feature[node] = feature
        if interval is None:
            assert threshold is not None
            self.kind[node], self.threshold[node] = THRESHOLD, threshold
            inside = column <= threshold
        else:
            self.kind[node], self.threshold[node] = INTERVAL, math.nan
            self.lower[node], self.upper[node] = interval
            inside = (interval[0] <= column) & (column <= interval[1])
        left = self.add_leaf(self.rows[node][inside], self.level[node] + 1)
        right = self.add_leaf(self.rows[node][~inside], self.level[node] + 1)
        self.children_left[node], self.children_right[node] = left, right
        return left, right

    def apply(self, X: np.ndarray) -> np.ndarray:
        """The leaf each row ends in."""
        X = np.asarray(X, dtype=float)
        leaf = np.zeros(len(X), dtype=int)
        for node in range(self.n_nodes):  # children come after their parent
            if self.kind[node] == LEAF:
                continue
            here = np.flatnonzero(leaf == node)
            column = X[here, self.feature[node]]
            if self.kind[node] == THRESHOLD:
                inside = column <= self.threshold[node]
            else:
                inside = (self.lower[node] <= column) & (column <= self.upper[node])
            leaf[here] = np.where(inside, self.children_left[node], self.children_right[node])
        return leaf

    def leaf_label(self, leaf: int) -> int:
        """Label of a leaf: the base's where the tree is just the base, else its own."""
        if self.n_leaves == self.n_base_leaves:
            return self.base_cluster[leaf]
        return self.cluster[leaf]

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The label of the leaf each row ends in."""
        label_of = np.full(self.n_nodes, -1)
        for leaf in self.leaves:
            label_of[leaf] = self.leaf_label(leaf)
        return label_of[self.apply(X)]

    def truncate(self, m: int) -> OracleTree:
        """The tree at m leaves: later splits undone in reverse order of their creation."""
        if m < max(1, self.n_base_leaves):
            raise ValueError(f"m={m} is less than the {max(1, self.n_base_leaves)} leaves allowed.")
        tree = copy.deepcopy(self)
        if m >= self.n_leaves:
            return tree
        keep = 2 * m - 1
        for name, value in vars(tree).items():
            if isinstance(value, list) and name != "cost_path":
                del value[keep:]
        for node in range(keep):
            if tree.children_left[node] >= keep:
                tree.children_left[node] = tree.children_right[node] = NO_CHILD
                tree.kind[node] = LEAF
                tree.feature[node], tree.threshold[node] = UNDEFINED, float(UNDEFINED)
                tree.lower[node] = tree.upper[node] = math.nan
                tree.gap[node], tree.cut_gain[node] = (), math.nan
        tree.cost_path = [entry for entry in tree.cost_path if entry[0] <= m]
        return tree


def first_difference(tree: Any, other: Any, *, clusters: bool = True) -> str | None:
    """Where two trees differ in structure, tests or labels, bit for bit; None where they agree.

    Either tree may be an OracleTree or anything with the same per-node attributes.
    """
    names = ["children_left", "children_right", "kind", "feature", "threshold", "lower", "upper"]
    names += ["cluster", "base_cluster"] if clusters else []
    if len(tree.kind) != len(other.kind):
        return f"{len(tree.kind)} nodes against {len(other.kind)}"
    for node in range(len(tree.kind)):
        for name in names:
            mine, theirs = float(getattr(tree, name)[node]), float(getattr(other, name)[node])
            if not (mine == theirs or (math.isnan(mine) and math.isnan(theirs))):
                return f"node {node}: {name} is {mine!r} against {theirs!r}"
    return None


# --------------------------------------------------------------------------------------------------
# Growth by label cost
# --------------------------------------------------------------------------------------------------


def _grow(
    search: Callable[[np.ndarray, np.ndarray, np.ndarray, int], Cut | None],
    X: np.ndarray,
    Dp: np.ndarray,
    *,
    max_leaves: int,
    base: OracleTree | None,
    max_depth: int | None,
    min_samples_leaf: int,
    w: np.ndarray | None,
) -> OracleTree:
    """Best-first growth that searches every open leaf in full, whichever search is used."""
    X, Dp = np.asarray(X, dtype=float), np.asarray(Dp, dtype=float)
    if base is None:
        tree = OracleTree()
        weightless = np.zeros(len(X), dtype=bool) if w is None else np.asarray(w) == 0
        tree.add_leaf(np.flatnonzero(~weightless), 0)
    else:
        tree = copy.deepcopy(base)
    found: dict[int, Cut | None] = {}

    def evaluate(node: int) -> None:
        rows = tree.rows[node]
        tree.cost[node] = node_cost(Dp, rows)
        if len(rows) > 0:
            tree.cluster[node] = node_label(Dp, rows)
        else:
            # Reading: an empty leaf of the base keeps its center; an inner node without rows, which
            # never is a leaf, gets what the label rule says of sums that are all 0.
            tree.cluster[node] = max(tree.base_cluster[node], 0)

    def look_for_cut(node: int) -> None:
        # Reading: depth counts from the root, through the base; only its splits are exempt.
        if max_depth is not None and tree.level[node] >= max_depth:
            found[node] = None
        else:
            found[node] = search(X, Dp, tree.rows[node], min_samples_leaf)

    for node in range(tree.n_nodes):
        evaluate(node)
    for leaf in tree.leaves:
        look_for_cut(leaf)
    if base is None:
        start = tree.cost[0]
    else:
        start = math.fsum(
            _label_sums(Dp, tree.rows[leaf])[tree.base_cluster[leaf]] for leaf in tree.leaves
        )
    tree.cost_path = [(tree.n_leaves, start)]

    while tree.n_leaves < max_leaves:
        # Reading: the gain of a leaf is the largest one of its search, although the tie rule may
        # have taken a cut that is smaller by the margin.
        gains = {node: cut["best_gain"] for node, cut in found.items() if cut is not None}
        if not gains:
            break
        current = math.fsum(tree.cost[leaf] for leaf in tree.leaves)
        best = max(gains.values())
        node = min(node for node, gain in gains.items() if gain >= best - 1e-12 * current)
        cut = found.pop(node)
        assert cut is not None
        upper = shortest_threshold(cut["hi_a"], cut["hi_b"])
        if cut["kind"] == "threshold":
            children = tree.split(node, X, cut["feature"], threshold=upper)
            tree.gap[node] = (cut["hi_a"], cut["hi_b"])
        else:
            ends = (interval_lower(cut["lo_a"], cut["lo_b"]), upper)
            children = tree.split(node, X, cut["feature"], interval=ends)
            tree.gap[node] = (cut["lo_a"], cut["lo_b"], cut["hi_a"], cut["hi_b"])
        tree.cut_gain[node] = cut["gain"]
        for child in children:
            evaluate(child)
            look_for_cut(child)
        # Reading: the path holds the sum of c' (the label rule may pick a label that costs more by
        # 1e-12 of it).
        cost = math.fsum(tree.cost[leaf] for leaf in tree.leaves)
        tree.cost_path.append((tree.n_leaves, cost))
    return tree


def grow_label_cost(
    X: np.ndarray,
    Dp: np.ndarray,
    *,
    max_leaves: int,
    cuts: str = "threshold",
    base: OracleTree | None = None,
    max_depth: int | None = None,
    min_samples_leaf: int = 1,
    w: np.ndarray | None = None,
) -> OracleTree:
    """Best-first growth on regrets, every cut of every open leaf enumerated.

    Parameters
    ----------
    X : ndarray (n, d)
    Dp : ndarray (n, k)
        Regrets, the weights already in them: see :func:`regrets`.
    max_leaves : int
    cuts : {"threshold", "interval"}
    base : OracleTree, optional
        An IMM tree of the same rows: its leaves, with all rows that reach them, are the open
        leaves. ``max_depth`` and ``min_samples_leaf`` limit only the splits after it.
    w : ndarray (n,), optional
        Only tells which rows have weight 0 and are dropped (a base has dropped them already).
    """
    search = {"threshold": best_threshold_cut, "interval": best_interval_cut}[cuts]
    return _grow(
        search,
        X,
        Dp,
        max_leaves=max_leaves,
        base=base,
        max_depth=max_depth,
        min_samples_leaf=min_samples_leaf,
        w=w,
    )


# --------------------------------------------------------------------------------------------------
# IMM
# --------------------------------------------------------------------------------------------------


def center_margin(own: np.ndarray, center: float) -> float:
    """Return what a center in a column may be off by.

    (rows + 8) eps, at most 1e-9, of the range of its own rows there, plus 2 eps of its size, as it
    is one double here.
    """
    eps = np.finfo(float).eps
    spread = min(1e-9, (len(own) + 8) * eps) * np.ptp(own) if len(own) else 0.0
    return 2 * eps * abs(center) + spread


def surrogate_margin(own: np.ndarray, center: float) -> float:
    """As `center_margin` for features, which are computed themselves: 1e-9 and 1e-12."""
    return 1e-12 * abs(center) + (1e-9 * np.ptp(own) if len(own) else 0.0)


def snap_centers(
    X: np.ndarray,
    centers: np.ndarray,
    labels: np.ndarray,
    margin_of: Callable[[np.ndarray, float], float] = center_margin,
) -> np.ndarray:
    """Centers that rounding has moved off a data value, or off each other, put in one place.

    A center's margin in a column goes by the range of *its own rows* there. (A share of the range
    of all rows would let one far row merge every other center.)

    Parameters
    ----------
    X : ndarray (n, d)
        The fitted rows.
    centers : ndarray (k, d)
    labels : ndarray (n,)
        The cluster of each row.
    margin_of : callable
        Of the center's own rows in a column and the center there.
    """
    snapped = np.array(centers, dtype=float)
    for f in range(X.shape[1]):
        values = np.unique(X[:, f])
        margins = [margin_of(X[labels == c, f], snapped[c, f]) for c in range(len(snapped))]
        for c in range(len(snapped)):
            margin = margins[c]
            # Reading: the nearest data value, the lower of two as near.
            nearest = values[np.argmin(np.abs(values - snapped[c, f]))]
            if abs(nearest - snapped[c, f]) <= margin:
                snapped[c, f] = nearest
        # Reading: in ascending order, a center within the margin of the last value kept takes that
        # value (the lowest of its group), so that a chain of small steps does not run away. This
        # goes for centers put on data values too.
        order = np.argsort(snapped[:, f], kind="stable")
        kept = order[0]
        for c in order[1:]:
            if snapped[c, f] - snapped[kept, f] <= min(margins[c], margins[kept]):
                snapped[c, f] = snapped[kept, f]
            else:
                kept = c
    if len(np.unique(snapped, axis=0)) < len(snapped):
        return np.array(centers, dtype=float)
    return snapped


def column_ranges(X: np.ndarray) -> np.ndarray:
    """Largest minus smallest value of every column."""
    return X.max(axis=0) - X.min(axis=0)


def _width_ratio(a: float, b: float, column_range: float) -> float:
    return (b - a) / float(column_range) if column_range > 0 else 1.0


def _mistakes_by_enumeration(X, labels, centers, w, alive, correct):
    """Every cut (feature, a, b, mistakes) between alive centers, in order (feature, threshold)."""
    found = []
    for f in range(X.shape[1]):
        places = [float(centers[c, f]) for c in alive]
        values = sorted({float(X[i, f]) for i in correct} | set(places))
        for a, b in pairwise(values):
            # min mu_f <= threshold < max mu_f, with a <= threshold < b and both means among values
            if not (min(places) <= a and b <= max(places)):
                continue
            wrong = [w[i] for i in correct if (X[i, f] <= a) != (centers[labels[i], f] <= a)]
            found.append((f, a, b, math.fsum(wrong)))
    return found


def _mistakes_by_sweep(X, labels, centers, w, alive, correct):
    """As :func:`_mistakes_by_enumeration`, by one sweep over the merged values of a feature."""
    found = []
    for f in range(X.shape[1]):
        places = centers[alive, f]
        own, mean = X[correct, f], centers[labels[correct], f]
        values = np.unique(np.concatenate([own, places]))
        # A row is a mistake from the lower of (itself, its center) up to just before the higher.
        change = np.zeros(len(values), dtype=np.longdouble)
        np.add.at(change, np.searchsorted(values, np.minimum(own, mean)), w[correct])
        np.add.at(change, np.searchsorted(values, np.maximum(own, mean)), -w[correct])
        wrong = np.cumsum(change)
        first = np.searchsorted(values, places.min())
        last = np.searchsorted(values, places.max())
        for j in range(first, last):
            found.append((f, float(values[j]), float(values[j + 1]), float(wrong[j])))
    return found


def _imm(enumerate_cuts: Callable, X, labels, centers, w, margin_of=center_margin) -> OracleTree:
    X = np.asarray(X, dtype=float)
    labels = np.asarray(labels, dtype=int)
    centers = np.asarray(centers, dtype=float)
    w = np.ones(len(X)) if w is None else np.asarray(w, dtype=float)
    fitted = np.flatnonzero((w > 0) & (labels >= 0))
    centers = snap_centers(X[fitted], centers, labels[fitted], margin_of)
    ranges = column_ranges(X[fitted])
    # Reading: the total weight is that of all fitted rows, not of the node's.
    total_weight = math.fsum(w[fitted])

    tree = OracleTree()
    tree.add_leaf(fitted, 0)
    tree.correct[0] = fitted
    tree.alive[0] = np.arange(len(centers))
    waiting = deque([0])
    while waiting:  # in order of node id, which is the order of creation
        node = waiting.popleft()
        alive, correct = tree.alive[node], tree.correct[node]
        if len(alive) == 1:
            tree.cluster[node] = tree.base_cluster[node] = int(alive[0])
            continue
        cuts = enumerate_cuts(X, labels, centers, w, alive, correct)
        fewest = min(cut[3] for cut in cuts)
        cuts = [cut for cut in cuts if cut[3] <= fewest + 1e-12 * total_weight]
        ratios = [_width_ratio(a, b, ranges[f]) for f, a, b, _ in cuts]
        widest = max(ratios)
        f, a, b, mistakes = next(
            cut for cut, ratio in zip(cuts, ratios, strict=True) if ratio >= widest - 1e-9
        )
        # Rows dropped on the way here may lie between a and b: keep clear of them.
        column = X[tree.rows[node], f]
        stops = np.unique(np.concatenate([[a, b], column[(a < column) & (column < b)]]))
        # Reading: the lowest of those within 1e-9 of the column's range of the widest, or rounding
        # of a center would decide between equal gaps.
        widths = np.diff(stops)
        gap = int(np.argmax(widths >= widths.max() - 1e-9 * ranges[f]))
        narrow = (float(stops[gap]), float(stops[gap + 1]))
        theta = shortest_threshold(*narrow)
        left, right = tree.split(node, X, f, threshold=theta)
        tree.gap[node], tree.mistakes[node] = narrow, mistakes
        center_left = centers[:, f] <= theta
        row_left = X[correct, f] <= theta
        own_left = center_left[labels[correct]]
        tree.alive[left], tree.alive[right] = alive[center_left[alive]], alive[~center_left[alive]]
        tree.correct[left] = correct[row_left & own_left]
        tree.correct[right] = correct[~row_left & ~own_left]
        waiting.extend((left, right))
    tree.n_base_leaves = tree.n_leaves
    return tree


def imm(
    X: np.ndarray,
    labels: np.ndarray,
    centers: np.ndarray,
    w: np.ndarray | None = None,
    margin_of: Callable[[np.ndarray, float], float] = center_margin,
) -> OracleTree:
    """IMM by enumeration: at every node the cut that separates fewest rows from their center.

    Parameters
    ----------
    X : ndarray (n, d)
    labels : ndarray (n,)
        Codes 0..k-1; rows with a negative label (noise) or weight 0 are left out.
    centers : ndarray (k, d)
        Distinct rows, in the units of X.
    w : ndarray (n,), optional
    """
    return _imm(_mistakes_by_enumeration, X, labels, centers, w, margin_of)


# --------------------------------------------------------------------------------------------------
# The plain sorted sweep: the same rules, quick enough for real data
# --------------------------------------------------------------------------------------------------


def _sweep_threshold_cut(X, Dp, rows, min_samples_leaf=1) -> Cut | None:
    """:func:`best_threshold_cut` by sorting each feature; no sum is formed by subtraction."""
    cost = node_cost(Dp, rows)
    if cost == 0:
        return None
    n = len(rows)
    costs = Dp[rows]
    n_left = np.arange(1, n)
    allowed = (n_left >= min_samples_leaf) & (n - n_left >= min_samples_leaf)
    best = -math.inf
    per_feature = []
    for f in range(X.shape[1]):
        column = X[rows, f]
        order = np.argsort(column, kind="stable")
        values = column[order]
        at = np.flatnonzero(allowed & (values[:-1] < values[1:]))
        if len(at) == 0:
            continue
        sorted_costs = costs[order]
        left = np.cumsum(sorted_costs, axis=0, dtype=np.longdouble)[at].min(axis=1)
        right = np.cumsum(sorted_costs[::-1], axis=0, dtype=np.longdouble)[::-1][at + 1].min(axis=1)
        gains = (np.longdouble(cost) - (left + right)).astype(float)
        best = max(best, gains.max())
        per_feature.append((f, values, at, gains))
    if not best > 1e-12 * cost:
        return None
    for f, values, at, gains in per_feature:
        good = np.flatnonzero(gains >= best - 1e-12 * cost)
        if len(good):
            i = at[good[0]]
            cut = _threshold_cut(f, values[i], values[i + 1], gains[good[0]])
            return {**cut, "best_gain": float(best)}
    raise AssertionError("the best gain belongs to some feature")


def _sweep_interval_cut(X, Dp, rows, min_samples_leaf=1) -> Cut | None:
    """:func:`best_interval_cut` with running sums: O(m^2 k) per feature for m distinct values."""
    cost = node_cost(Dp, rows)
    if cost == 0:
        return None
    n = len(rows)
    best = -math.inf
    per_feature = []
    for f in range(X.shape[1]):
        values, group, counts = np.unique(X[rows, f], return_inverse=True, return_counts=True)
        m = len(values)
        sums = np.zeros((m, Dp.shape[1]), dtype=np.longdouble)
        np.add.at(sums, group.ravel(), Dp[rows])
        before = np.zeros((m + 1, Dp.shape[1]), dtype=np.longdouble)
        before[1:] = np.cumsum(sums, axis=0)
        after = np.zeros((m + 1, Dp.shape[1]), dtype=np.longdouble)
        after[:m] = np.cumsum(sums[::-1], axis=0)[::-1]
        for first in range(m - 1):
            inside = np.cumsum(sums[first : m - 1], axis=0)
            outside = before[first] + after[first + 1 : m]
            n_inside = np.cumsum(counts[first : m - 1])
            gains = np.longdouble(cost) - (inside.min(axis=1) + outside.min(axis=1))
            allowed = (n_inside >= min_samples_leaf) & (n - n_inside >= min_samples_leaf)
            gains = np.where(allowed, gains.astype(float), -math.inf)
            best = max(best, gains.max())
            per_feature.append((f, values, first, gains))
    if not best > 1e-12 * cost:
        return None
    for f, values, first, gains in per_feature:
        good = np.flatnonzero(gains >= best - 1e-12 * cost)
        if len(good):
            end = first + good[0]
            upper = (values[end], values[end + 1])
            if first == 0:
                cut = _threshold_cut(f, *upper, gains[good[0]])
            else:
                lower = (values[first - 1], values[first])
                cut = _interval_cut(f, lower, upper, gains[good[0]])
            return {**cut, "best_gain": float(best)}
    raise AssertionError("the best gain belongs to some feature")


def sweep_grow_label_cost(
    X: np.ndarray,
    Dp: np.ndarray,
    *,
    max_leaves: int,
    cuts: str = "threshold",
    base: OracleTree | None = None,
    max_depth: int | None = None,
    min_samples_leaf: int = 1,
    w: np.ndarray | None = None,
) -> OracleTree:
    """:func:`grow_label_cost` with sorted sweeps, for data of real size (intervals: small n)."""
    search = {"threshold": _sweep_threshold_cut, "interval": _sweep_interval_cut}[cuts]
    return _grow(
        search,
        X,
        Dp,
        max_leaves=max_leaves,
        base=base,
        max_depth=max_depth,
        min_samples_leaf=min_samples_leaf,
        w=w,
    )


def sweep_imm(
    X: np.ndarray,
    labels: np.ndarray,
    centers: np.ndarray,
    w: np.ndarray | None = None,
    margin_of: Callable[[np.ndarray, float], float] = center_margin,
) -> OracleTree:
    """:func:`imm` with one sweep per feature and node, for data of real size."""
    return _imm(_mistakes_by_sweep, X, labels, centers, w, margin_of)


# --------------------------------------------------------------------------------------------------
# Measures
# --------------------------------------------------------------------------------------------------


def kmeans_cost(X: np.ndarray, labels: np.ndarray, w: np.ndarray | None = None) -> float:
    """Weighted squared distances of the rows to the means of their own clusters."""
    X = np.asarray(X, dtype=float)
    w = np.ones(len(X)) if w is None else np.asarray(w, dtype=float)
    terms: list[float] = []
    for label in np.unique(labels):
        own = np.flatnonzero((np.asarray(labels) == label) & (w > 0))
        if len(own) == 0:
            continue
        weight = math.fsum(w[own])
        for f in range(X.shape[1]):
            # the mean, from differences to one row so that data far from the origin is no harder
            shifted = X[own, f] - X[own[0], f]
            mean = math.fsum(w[own] * shifted) / weight
            terms.extend(w[own] * (shifted - mean) ** 2)
    return math.fsum(terms)


def surrogate_cost(D: np.ndarray, labels: np.ndarray, w: np.ndarray | None = None) -> float:
    """``sum_i w_i D[i, labels_i]`` for label costs D as they are, not reduced to regrets."""
    D = np.asarray(D, dtype=float)
    w = np.ones(len(D)) if w is None else np.asarray(w, dtype=float)
    return math.fsum(w * D[np.arange(len(D)), np.asarray(labels, dtype=int)])


def _per_leaf(tree: OracleTree, n_leaf: Any) -> dict[int, float]:
    """Counts by leaf id from a mapping, one entry per node, one per leaf, or the tree's rows."""
    leaves = tree.leaves
    if n_leaf is None:
        return {leaf: float(len(tree.rows[leaf])) for leaf in leaves}
    if isinstance(n_leaf, Mapping):
        return {leaf: float(n_leaf[leaf]) for leaf in leaves}
    if len(n_leaf) == tree.n_nodes:
        return {leaf: float(n_leaf[leaf]) for leaf in leaves}
    return {leaf: float(n) for leaf, n in zip(leaves, n_leaf, strict=True)}


def _paths(tree: OracleTree) -> dict[int, list[tuple[int, bool]]]:
    """For every leaf the (node, went left) pairs from the root."""
    path_of: dict[int, list[tuple[int, bool]]] = {0: []}
    for node in range(tree.n_nodes):
        if tree.kind[node] != LEAF:
            path = path_of.pop(node)
            path_of[tree.children_left[node]] = [*path, (node, True)]
            path_of[tree.children_right[node]] = [*path, (node, False)]
    return path_of


def wad(tree: OracleTree, n_leaf: Any = None) -> float:
    """Weighted average depth: ``sum_leaf n_leaf depth / n``.

    ``n_leaf``: counts (or weights) as a mapping by leaf id, a sequence over all nodes or over the
    leaves in order of id; by default the tree's own rows.
    """
    counts = _per_leaf(tree, n_leaf)
    total = sum(counts.values())
    return sum(n * len(_paths(tree)[leaf]) for leaf, n in counts.items()) / total


def waes(tree: OracleTree, n_leaf: Any = None) -> float:
    """Weighted average explanation size: as :func:`wad`, redundant conditions left out."""
    counts = _per_leaf(tree, n_leaf)
    total = sum(counts.values())
    size = 0.0
    for leaf, path in _paths(tree).items():
        bounds: set[tuple[int, str]] = set()  # the tightest bound per feature and direction
        n_complement = 0
        for node, left in path:
            f = tree.feature[node]
            if tree.kind[node] == THRESHOLD:
                bounds.add((f, "upper" if left else "lower"))
            elif left:
                bounds |= {(f, "lower"), (f, "upper")}
            else:
                # Reading: x < lo or x > hi is no bound in one direction, so it merges with
                # nothing and every complement on the path counts both of its ends.
                n_complement += 2
        size += counts[leaf] * (len(bounds) + n_complement)
    return size / total


def node_statistics(
    tree: OracleTree,
    labels: np.ndarray,
    D: np.ndarray,
    w: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Samples, weights, cluster shares, impurity and mistakes of every node, from its rows.

    Returns
    -------
    dict
        ``n_node_samples``, ``weighted_n_node_samples``, ``value`` (n_nodes, 1, k), ``impurity``
        (label cost of the node under its best label per unit weight; 0 for an empty node) and
        ``mistakes`` (of an IMM cut; for a leaf the weight of rows whose label is not the leaf's).
    """
    w = np.ones(len(D)) if w is None else np.asarray(w, dtype=float)
    labels = np.asarray(labels, dtype=int)
    k = D.shape[1]
    weight = np.array([math.fsum(w[rows]) for rows in tree.rows])
    value = np.zeros((tree.n_nodes, 1, k))
    impurity = np.zeros(tree.n_nodes)
    mistakes = np.array(tree.mistakes)
    for node, rows in enumerate(tree.rows):
        if len(rows):
            for label in range(k):
                value[node, 0, label] = math.fsum(w[rows[labels[rows] == label]]) / weight[node]
            impurity[node] = node_cost(w[:, None] * D, rows) / weight[node]
        if tree.kind[node] == LEAF:
            mistakes[node] = math.fsum(w[rows[labels[rows] != tree.leaf_label(node)]])
    return {
        "n_node_samples": np.array([len(rows) for rows in tree.rows]),
        "weighted_n_node_samples": weight,
        "value": value,
        "impurity": impurity,
        "mistakes": mistakes,
    }


# --------------------------------------------------------------------------------------------------
# Random problems
# --------------------------------------------------------------------------------------------------

DATA_KINDS = ("grid", "quarters", "normal", "binary", "duplicates", "near", "mixed")
CENTER_KINDS = ("rows", "means", "lloyd", "integer", "shared", "outside")
WEIGHT_KINDS = ("ones", "integer", "real", "near")


def _random_column(rng: np.random.Generator, n: int, kind: str) -> np.ndarray:
    if kind == "grid":
        return rng.integers(0, rng.integers(2, 9), n).astype(float)
    if kind == "quarters":
        return rng.integers(-12, 13, n) / 4
    if kind == "binary":
        return rng.integers(0, 2, n).astype(float)
    if kind == "constant":
        return np.full(n, float(rng.integers(-2, 3)))
    if kind == "near":  # whole numbers and their next doubles
        column = rng.integers(-3, 4, n).astype(float)
        for _ in range(2):
            column = np.where(rng.random(n) < 0.3, np.nextafter(column, np.inf), column)
        return column
    return rng.normal(size=n) * rng.choice([0.01, 1.0, 50.0]) + rng.choice([0.0, 0.0, 7.5])


def _random_centers(rng: np.random.Generator, X: np.ndarray, k: int, kind: str) -> np.ndarray:
    n, d = X.shape
    if kind == "rows":
        return X[rng.integers(0, n, k)]
    if kind in ("means", "lloyd"):
        labels = np.asarray(rng.integers(0, k, n))
        centers = X[rng.integers(0, n, k)].copy()
        for _ in range(1 if kind == "means" else 4):
            if kind == "lloyd":
                labels = nearest_labels(squared_costs(X, centers))
            for c in range(k):
                if np.any(labels == c):
                    centers[c] = X[labels == c].mean(axis=0)
        return centers
    if kind == "integer":
        return np.round(X[rng.integers(0, n, k)]) + rng.integers(-1, 2, (k, d))
    if kind == "shared":
        centers = X[rng.integers(0, n, k)] + rng.choice([0.0, 0.5], (k, d))
        for f in np.flatnonzero(rng.random(d) < 0.6):
            take = rng.random(k) < 0.7
            centers[take, f] = rng.choice(centers[:, f])
        return centers
    low, high = X.min(axis=0), X.max(axis=0)
    return low + (high - low + 1) * rng.uniform(-0.3, 1.3, (k, d))


def random_case(
    rng: np.random.Generator,
    *,
    n: int | None = None,
    d: int | None = None,
    k: int | None = None,
    n_max: int = 40,
    d_max: int = 4,
    k_max: int = 5,
    kind: str | None = None,
    center_kind: str | None = None,
    weights: str | None = None,
    outlier: bool | None = None,
    zero_weights: bool = False,
    arbitrary_labels: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A small problem of the awkward sort.

    Parameters
    ----------
    rng : numpy Generator
    n, d, k : int, optional
        Rows, columns, clusters; drawn up to ``n_max``, ``d_max``, ``k_max`` where not given. k may
        come out smaller where so many distinct centers are not found.
    kind, center_kind, weights : str, optional
        One of ``DATA_KINDS``, ``CENTER_KINDS``, ``WEIGHT_KINDS``; drawn where not given.
    outlier : bool, optional
        Whether one row lies some 1e8 away; drawn (one case in eight) where not given.
    zero_weights : bool
        Whether some rows (never all) get weight 0.
    arbitrary_labels : bool
        Whether some labels are not the nearest center's.

    Returns
    -------
    X, centers, labels, w : ndarrays
        Centers are distinct rows; labels are the nearest center, the lowest on ties.
    """
    n = int(rng.integers(1, n_max + 1)) if n is None else n
    d = int(rng.integers(1, d_max + 1)) if d is None else d
    k = int(rng.integers(1, k_max + 1)) if k is None else k
    kind = str(rng.choice(DATA_KINDS)) if kind is None else kind
    if kind == "mixed":
        column_kinds = rng.choice(["grid", "quarters", "normal", "binary", "constant"], d)
    else:
        column_kinds = np.full(d, "normal" if kind == "duplicates" else kind)
    X = np.column_stack([_random_column(rng, n, str(name)) for name in column_kinds])
    if kind == "duplicates":
        X = X[rng.integers(0, max(1, n // 3), n)]
    if rng.random() < 0.15:
        X[:, rng.integers(d)] = float(rng.integers(-2, 3))
    if rng.random() < 0.125 if outlier is None else outlier:
        # not exactly 1e8, so that 1e-9 of the range is no round number that data could hit
        far = rng.choice([-1.0, 1.0]) * (1e8 + rng.integers(1000, 9000) + 0.5)
        X[rng.integers(n), rng.integers(d)] = far

    centers = np.empty((0, d))
    for _ in range(30):
        drawn = str(rng.choice(CENTER_KINDS)) if center_kind is None else center_kind
        more = np.vstack([centers, _random_centers(rng, X, k, drawn)])
        _, first = np.unique(more, axis=0, return_index=True)
        centers = more[np.sort(first)][:k]
        if len(centers) == k:
            break
    labels = nearest_labels(squared_costs(X, centers))
    if arbitrary_labels:
        labels = np.where(rng.random(n) < 0.3, rng.integers(0, len(centers), n), labels)

    weights = str(rng.choice(WEIGHT_KINDS)) if weights is None else weights
    if weights == "integer":
        w = rng.integers(1, 5, n).astype(float)
    elif weights == "real":
        w = rng.uniform(0.1, 3.0, n)
    elif weights == "near":  # equal but for some last bits
        w = 1.0 + rng.integers(0, 4, n) * 2.0**-52
    else:
        w = np.ones(n)
    if zero_weights:
        w[(rng.random(n) < 0.3) & (np.arange(n) != rng.integers(n))] = 0.0
    return X, centers, labels, w
