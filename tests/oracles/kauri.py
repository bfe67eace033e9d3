"""Brute-force Kauri: the paper's objective, from scratch, for every candidate of every round.

Ohl et al., "End-to-end training of unsupervised trees: Kauri and Douglas", section 3. The gain of
a candidate is the objective (eq. 6) of the clusters after it minus that of the clusters before it;
none of the paper's gain formulas is used. Every number is exact: floats are binary fractions, so
kernel entries, weights and their products are whole numbers of one unit, and only the division by
the size of a cluster needs a rational. Sets of rows are whole numbers too, bit i for row i.

Where a definition can be read in two ways, a comment ``Reading:`` states which one was taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from oracles import threshold as oracle

MOVES = ("star", "double_star", "switch", "reallocation", "mixed")
MARGIN = Fraction(1, 10**12)


# --------------------------------------------------------------------------------------------------
# Kernel stocks
# --------------------------------------------------------------------------------------------------


def _whole(values: Any) -> tuple[np.ndarray, Fraction]:
    """Whole numbers (as Python ints) and the unit they are multiples of, for exact values."""
    exact = [Fraction(value) for value in np.asarray(values).ravel().tolist()]
    denominator = math.lcm(1, *(value.denominator for value in exact))
    whole = np.empty(len(exact), dtype=object)
    whole[:] = [value.numerator * (denominator // value.denominator) for value in exact]
    return whole.reshape(np.shape(values)), Fraction(1, denominator)


def mask_of(rows: Sequence[int] | np.ndarray) -> int:
    """The set of these rows: bit i stands for row i."""
    return sum(1 << int(i) for i in rows)


def rows_of(mask: int) -> list[int]:
    """The rows of a set, ascending."""
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


class Stocks:
    """The kernel stocks of sets of rows, exact.

    Parameters
    ----------
    gram : array (n, n), optional
        The kernel, of ints, floats or Fractions.
    features : array (n, r), optional
        Instead of ``gram``: ``k_ij = <z_i, z_j>``, the products exact.
    w : array (n,), optional
        Weights; rows of weight 0 belong to no set.
    center : bool
        Take the weighted mean off the features first, exactly.

    Attributes
    ----------
    rows : list of int
        The rows of positive weight.
    total : Fraction
        ``T = sum_i w_i |k_ii|``, what the margin of the tie rule is a share of.
    size : Fraction
        The larger of T and ``sum_ij w_i w_j |k_ij| / sum_i w_i``, the scale of rounding errors: T
        for a positive semidefinite kernel, possibly more for others.
    """

    def __init__(
        self, *, gram: Any = None, features: Any = None, w: Any = None, center: bool = False
    ) -> None:
        assert (gram is None) != (features is None)
        n = len(gram if features is None else features)
        self._weight, weight_unit = _whole(np.ones(n) if w is None else w)
        self.rows = np.flatnonzero(self._weight > 0).tolist()
        if features is not None:
            whole, feature_unit = _whole(features)
            if center:
                total = sum(self._weight)
                whole = whole * total - self._weight @ whole
                feature_unit /= total
            kernel, kernel_unit = whole @ whole.T, feature_unit**2
        else:
            kernel, kernel_unit = _whole(gram)
        # |C| in units of weight_unit, S(A, A) of weight_unit^2 kernel_unit, so S / |C| of this:
        self._unit = weight_unit * kernel_unit
        self._kernel = self._weight[:, None] * kernel * self._weight[None, :]
        self._trace = self._weight * kernel.diagonal()
        self.weight_unit = weight_unit
        absolute = np.abs(self._kernel).sum()
        self.total = np.abs(self._trace).sum() * self._unit
        self.size = max(self.total, Fraction(absolute, sum(self._weight)) * self._unit)
        if absolute < 2**62:
            self._kernel = self._kernel.astype(np.int64)  # the same numbers, summed faster
        self._share: dict[int, Fraction] = {0: Fraction(0)}

    def weight(self, mask: int) -> Fraction:
        """``|A| = sum_{i in A} w_i``."""
        return sum(self._weight[i] for i in rows_of(mask)) * self.weight_unit

    def stock(self, mask: int, other: int) -> Fraction:
        """``S(A, B) = sum_{i in A, j in B} w_i w_j k_ij``."""
        between = self._kernel[np.ix_(rows_of(mask), rows_of(other))]
        return int(between.sum()) * self._unit * self.weight_unit

    def share(self, mask: int) -> Fraction:
        """``S(C, C) / |C|``, and 0 of no rows: what a cluster adds to the objective."""
        found = self._share.get(mask)
        if found is None:
            rows = rows_of(mask)
            own = int(self._kernel[np.ix_(rows, rows)].sum())
            found = Fraction(own, sum(self._weight[rows])) * self._unit
            self._share[mask] = found
        return found

    def objective(self, clusters: Sequence[int]) -> Fraction:
        """``L = sum_c S(C_c, C_c) / |C_c|``, eq. 6."""
        return sum((self.share(mask) for mask in clusters), Fraction(0))

    def cost(self, mask: int) -> Fraction:
        """``sum_{i in A} w_i k_ii - S(A, A) / |A|``, the kernel k-means cost of a set."""
        return sum(self._trace[i] for i in rows_of(mask)) * self._unit - self.share(mask)


# --------------------------------------------------------------------------------------------------
# The candidates of a round
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """One split of one leaf: a cut between ``a`` and ``b``, and the clusters of the two sides."""

    node: int
    feature: int
    a: float
    b: float
    move: str
    left_cluster: int
    right_cluster: int
    left: int
    right: int
    gain: Fraction

    @property
    def threshold(self) -> float:
        """The shortest decimal in the middle half of the gap."""
        return oracle.shortest_threshold(self.a, self.b)

    def __str__(self) -> str:
        return (
            f"{self.move} of node {self.node}, x{self.feature} in ({self.a!r}, {self.b!r}), "
            f"to clusters ({self.left_cluster}, {self.right_cluster}), gain {float(self.gain)!r}"
        )


def moves_at(
    cluster: int, n_clusters: int, *, has_others: bool, max_clusters: int, mixed: bool
) -> Iterator[tuple[str, int, int]]:
    """The moves at one cut in their order: (kind, cluster of the left side, of the right side).

    Parameters
    ----------
    cluster : int
        The cluster of the leaf.
    n_clusters : int
        Clusters so far; a new one gets this number.
    has_others : bool
        Whether the leaf's cluster has rows outside the leaf, so that it may leave altogether.
    max_clusters : int
    mixed : bool
        Whether one side may found a cluster while the other joins another one.
    """
    new, room = n_clusters, max_clusters - n_clusters
    others = [c for c in range(n_clusters) if c != cluster]
    if room >= 1:
        yield "star", new, cluster
        yield "star", cluster, new
    if room >= 2 and has_others:
        yield "double_star", new, new + 1
    for c in others:
        yield "switch", c, cluster
    for c in others:
        yield "switch", cluster, c
    if has_others:
        for c in others:
            for other in others:
                if c != other:
                    yield "reallocation", c, other
    if mixed and has_others and room >= 1:
        for c in others:
            yield "mixed", new, c
        for c in others:
            yield "mixed", c, new


# --------------------------------------------------------------------------------------------------
# The tree
# --------------------------------------------------------------------------------------------------


@dataclass
class KauriTree(oracle.OracleTree):
    """An OracleTree whose nodes know the split that was made of them.

    Attributes
    ----------
    move : list of int
        Index into ``MOVES`` of each inner node; -1 at leaves.
    gain : list of Fraction or None
        Exact gain of each inner node; None at leaves.
    start : Fraction
        The objective of the root alone.
    """

    move: list[int] = field(default_factory=list)
    gain: list[Fraction | None] = field(default_factory=list)
    start: Fraction = Fraction(0)

    def add_leaf(self, rows: np.ndarray, level: int) -> int:
        """Append a leaf and return its node id."""
        self.move.append(-1)
        self.gain.append(None)
        return super().add_leaf(rows, level)

    def truncate(self, m: int) -> KauriTree:
        """The tree at m leaves."""
        tree = super().truncate(m)
        assert isinstance(tree, KauriTree)
        for leaf in tree.leaves:
            tree.move[leaf], tree.gain[leaf] = -1, None
        return tree

    @property
    def gains(self) -> list[Fraction]:
        """The gains in order of the splits."""
        made = sorted((self.children_left[p], g) for p, g in enumerate(self.gain) if g is not None)
        return [gain for _, gain in made]

    @property
    def objective(self) -> Fraction:
        """The objective of the leaves' clusters, as the sum of the gains has it."""
        return self.start + sum(self.gains, Fraction(0))

    @property
    def moves(self) -> list[str]:
        """The kinds of the moves in order of the splits."""
        made = sorted((self.children_left[p], m) for p, m in enumerate(self.move) if m >= 0)
        return [MOVES[move] for _, move in made]


class Growth:
    """A tree as it grows, with the clusters of its leaves.

    Parameters
    ----------
    X : ndarray (n, d)
    stocks : Stocks
        Of the same rows.
    max_clusters : int
    max_leaves, max_depth : int, optional
    min_samples_split, min_samples_leaf : int
        In rows of positive weight.
    moves : {"paper", "all"}
    """

    def __init__(
        self,
        X: np.ndarray,
        stocks: Stocks,
        *,
        max_clusters: int,
        max_leaves: int | None = None,
        max_depth: int | None = None,
        min_samples_split: int = 2,
        min_samples_leaf: int = 1,
        moves: str = "paper",
    ) -> None:
        self.X, self.stocks = np.asarray(X, dtype=float), stocks
        self.max_clusters = max_clusters
        self.max_leaves = math.inf if max_leaves is None else max_leaves
        self.max_depth = math.inf if max_depth is None else max_depth
        self.min_samples_split, self.min_samples_leaf = min_samples_split, min_samples_leaf
        self.mixed = {"paper": False, "all": True}[moves]
        self.margin = MARGIN * stocks.size
        self.tree = KauriTree()
        self.tree.add_leaf(np.array(stocks.rows), 0)
        self.tree.cluster[0] = 0
        self.clusters = [mask_of(stocks.rows)]
        self.tree.start = stocks.objective(self.clusters)

    def cuts(self) -> Iterator[tuple[int, int, float, float, int, int]]:
        """Every cut the limits allow: node, feature, neighbours, rows of the two sides."""
        tree = self.tree
        if tree.n_leaves >= self.max_leaves:
            return
        for node in tree.leaves:
            rows = tree.rows[node]
            if len(rows) < self.min_samples_split or tree.level[node] >= self.max_depth:
                continue
            for feature in range(self.X.shape[1]):
                values, groups = oracle._groups(self.X, rows, feature)
                for cut in range(1, len(values)):
                    left = [i for group in groups[:cut] for i in group]
                    if min(len(left), len(rows) - len(left)) < self.min_samples_leaf:
                        continue
                    side = mask_of(left)
                    other = mask_of(rows) & ~side
                    yield node, feature, values[cut - 1], values[cut], side, other

    def after(self, cluster: int, left: int, right: int, left_to: int, right_to: int) -> list[int]:
        """The clusters once two sides of a leaf have gone where they go."""
        clusters = [*self.clusters, 0, 0]
        clusters[cluster] &= ~(left | right)
        clusters[left_to] |= left
        clusters[right_to] |= right
        while clusters[-1] == 0:
            clusters.pop()
        return clusters

    def candidates(self) -> list[Candidate]:
        """Every candidate of the round, in the order of the tie rule."""
        found = []
        before = self.stocks.objective(self.clusters)
        for node, feature, a, b, left, right in self.cuts():
            k = self.tree.cluster[node]
            # Reading: n_k > |N| in rows; with the weightless rows gone it is the same in weight.
            options = moves_at(
                k,
                len(self.clusters),
                has_others=self.clusters[k] != left | right,
                max_clusters=self.max_clusters,
                mixed=self.mixed,
            )
            for move, left_to, right_to in options:
                clusters = self.after(k, left, right, left_to, right_to)
                gain = self.stocks.objective(clusters) - before
                found.append(
                    Candidate(node, feature, a, b, move, left_to, right_to, left, right, gain)
                )
        return found

    def choose(self, candidates: Sequence[Candidate]) -> Candidate | None:
        """The tie rule: the first candidate within the margin of the best; None to stop."""
        best = max((candidate.gain for candidate in candidates), default=Fraction(0))
        if best <= self.margin:
            return None
        return next(c for c in candidates if c.gain >= best - self.margin)

    def take(self, candidate: Candidate) -> None:
        """Make the split."""
        tree, node = self.tree, candidate.node
        k = tree.cluster[node]
        left_to, right_to = candidate.left_cluster, candidate.right_cluster
        self.clusters = self.after(k, candidate.left, candidate.right, left_to, right_to)
        left, right = tree.split(node, self.X, candidate.feature, threshold=candidate.threshold)
        assert mask_of(tree.rows[left]) == candidate.left
        tree.cluster[left], tree.cluster[right] = left_to, right_to
        tree.gap[node] = (candidate.a, candidate.b)
        tree.move[node] = MOVES.index(candidate.move)
        tree.gain[node], tree.cut_gain[node] = candidate.gain, float(candidate.gain)


def kauri(X: np.ndarray, stocks: Stocks, **options: Any) -> KauriTree:
    """Grow the tree; options as of :class:`Growth`."""
    growth = Growth(X, stocks, **options)
    while (candidate := growth.choose(growth.candidates())) is not None:
        growth.take(candidate)
    return growth.tree


def replay(
    fitted: Any, X: np.ndarray, stocks: Stocks, *, slack: float = 0.0, **options: Any
) -> tuple[KauriTree, str | None]:
    """Follow a tree split by split, and say where it first leaves the rules.

    Parameters
    ----------
    fitted : object
        ``kind``, ``feature``, ``threshold``, ``children_left``, ``children_right``, ``cluster``
        and ``move`` per node.
    X, stocks, options
        As of :class:`Growth`.
    slack : float
        What rounding may do to a gain, as a share of ``stocks.size``. With 0 there is one tree.

    Returns
    -------
    tree : KauriTree
        As far as the splits follow the rules.
    problem : str or None
    """
    growth = Growth(X, stocks, **options)
    tree, margin = growth.tree, growth.margin
    room = Fraction(slack) * stocks.size
    parent_of = {int(left): p for p, left in enumerate(fitted.children_left) if left >= 0}
    if int(fitted.cluster[0]) != 0:
        return tree, f"the root has cluster {fitted.cluster[0]}"
    while True:
        candidates = growth.candidates()
        best = max(candidates, key=lambda c: c.gain, default=None)
        left, at = tree.n_nodes, f"with {tree.n_leaves} leaves"
        if left >= len(fitted.kind):
            if best is not None and best.gain > margin + room:
                return tree, f"{at} it stops before {best}"
            return tree, None
        node = parent_of.get(left)
        if node is None or int(fitted.children_right[node]) != left + 1:
            return tree, f"{at} nodes {left} and {left + 1} are not the children of one node"
        wanted = (
            node,
            int(fitted.feature[node]),
            float(fitted.threshold[node]),
            MOVES[int(fitted.move[node])],
            int(fitted.cluster[left]),
            int(fitted.cluster[left + 1]),
        )
        taken = None
        for candidate in candidates:
            plain = (candidate.move, candidate.left_cluster, candidate.right_cluster)
            if (candidate.node, candidate.feature) != wanted[:2] or plain != wanted[3:]:
                continue
            if candidate.a <= wanted[2] < candidate.b:
                taken = candidate
        if taken is None or best is None:
            return tree, f"{at} it takes {wanted}, which is no candidate; the best is {best}"
        if taken.threshold != wanted[2]:
            return tree, f"{at} the threshold of {taken} is {wanted[2]!r}, not {taken.threshold!r}"
        if best.gain <= margin - room:
            return tree, f"{at} it takes {taken}, though nothing gains: the best is {best}"
        if taken.gain < best.gain - margin - room:
            return tree, f"{at} it takes {taken}; the best is {best}"
        for candidate in candidates:
            if candidate is taken:
                break
            if candidate.gain >= best.gain - margin + room:
                return tree, f"{at} it takes {taken}; before it comes {candidate}"
        growth.take(taken)


def clusters_of(tree: oracle.OracleTree) -> list[int]:
    """The sets of rows of the clusters of a tree's leaves, from the leaves alone."""
    clusters: dict[int, int] = {}
    for leaf in tree.leaves:
        label = tree.cluster[leaf]
        clusters[label] = clusters.get(label, 0) | mask_of(tree.rows[leaf])
    return [clusters[label] for label in sorted(clusters)]


# --------------------------------------------------------------------------------------------------
# The same by sorted sweeps, for data of some hundred rows
# --------------------------------------------------------------------------------------------------


class _Sweep:
    """Growth in extended precision by the closed gains; the argument is that of Growth."""

    def __init__(self, X: np.ndarray, gram: Any, features: Any, w: Any, options: Any) -> None:
        long = np.longdouble
        self.X = np.asarray(X, dtype=float)
        self.w = np.ones(len(X), dtype=long) if w is None else np.asarray(w, dtype=long)
        assert np.all(self.w > 0)
        if gram is None:
            self.z = self.w[:, None] * np.asarray(features, dtype=long)
            self.trace = (self.z * np.asarray(features, dtype=long)).sum(axis=1)
        else:
            self.z = None
            self.kernel = self.w[:, None] * np.asarray(gram, dtype=long) * self.w
            self.trace = self.w * np.asarray(gram, dtype=long).diagonal()
        self.growth = Growth(self.X, Stocks(features=[[0]] * len(X)), **options)
        self.growth.margin = long(1e-12) * np.abs(self.trace).sum()
        self.label = np.zeros(len(X), dtype=int)
        self.n_clusters = 1
        self.orders: dict[tuple[int, int], Any] = {}

    def prefix_stocks(self, order: np.ndarray) -> np.ndarray:
        """``S(A, A)`` of the first 1, 2, ... rows of an order."""
        if self.z is not None:
            return (np.cumsum(self.z[order], axis=0) ** 2).sum(axis=1)
        within = self.kernel[np.ix_(order, order)]
        return np.cumsum(2 * np.tril(within, -1).sum(axis=1) + within.diagonal())

    def row_stocks(self) -> np.ndarray:
        """``S({i}, C_c)`` of every row and cluster."""
        member = (self.label[:, None] == np.arange(self.n_clusters)).astype(np.longdouble)
        if self.z is not None:
            return self.z @ (self.z.T @ member)
        return self.kernel @ member

    def sweep(self, node: int, feature: int) -> tuple[Any, ...] | None:
        """What the sweep of a feature needs and no round changes."""
        if (node, feature) not in self.orders:
            rows = self.growth.tree.rows[node]
            order = rows[np.argsort(self.X[rows, feature], kind="stable")]
            values = self.X[order, feature]
            n_left = np.arange(1, len(rows))
            at = (values[:-1] < values[1:]) & (
                np.minimum(n_left, len(rows) - n_left) >= self.growth.min_samples_leaf
            )
            at = np.flatnonzero(at)
            A = self.prefix_stocks(order)[at]
            B = self.prefix_stocks(order[::-1])[::-1][at + 1]
            left = np.cumsum(self.w[order])[at]
            right = np.cumsum(self.w[order][::-1])[::-1][at + 1]
            self.orders[node, feature] = order, values, at, A, B, left, right
        found = self.orders[node, feature]
        return found if len(found[2]) else None

    def gains(self, node: int, feature: int, omega: np.ndarray) -> Any:
        """The moves of a feature of a leaf, and their gains: a row per cut, a column per move."""
        found = self.sweep(node, feature)
        if found is None:
            return [], np.empty((0, 0))
        order, _, at, A, B, left, right = found
        k = self.growth.tree.cluster[node]
        size = np.array([self.w[self.label == c].sum() for c in range(self.n_clusters)])
        own = np.array([omega[self.label == c, c].sum() for c in range(self.n_clusters)])
        options = list(
            moves_at(
                k,
                self.n_clusters,
                has_others=bool(np.count_nonzero(self.label == k) > len(order)),
                max_clusters=self.growth.max_clusters,
                mixed=self.growth.mixed,
            )
        )
        u = np.cumsum(omega[order], axis=0)[at]
        v = np.cumsum(omega[order][::-1], axis=0)[::-1][at + 1]
        whole = self.prefix_stocks(order)[-1]
        gains = np.empty((len(at), len(options)), dtype=np.longdouble)
        for column, (_, left_to, right_to) in enumerate(options):
            if left_to == k:
                gain = (own[k] - 2 * v[:, k] + B) / (size[k] - right)
            elif right_to == k:
                gain = (own[k] - 2 * u[:, k] + A) / (size[k] - left)
            else:
                rest = self.label == k
                rest[order] = False
                stock = own[k] - 2 * (u[:, k] + v[:, k]) + whole
                gain = stock / self.w[rest].sum()
            gain = gain - own[k] / size[k]
            for to, stock, cross, weight in ((left_to, A, u, left), (right_to, B, v, right)):
                if to >= self.n_clusters:
                    gain = gain + stock / weight
                elif to != k:
                    joined = (own[to] + 2 * cross[:, to] + stock) / (size[to] + weight)
                    gain = gain + joined - own[to] / size[to]
            gains[:, column] = gain
        return options, gains

    def step(self) -> bool:
        """One round; False where nothing is left to gain."""
        tree, margin = self.growth.tree, self.growth.margin
        if tree.n_leaves >= self.growth.max_leaves:
            return False
        omega = self.row_stocks()
        found = []
        for node in tree.leaves:
            if len(tree.rows[node]) < self.growth.min_samples_split:
                continue
            if tree.level[node] >= self.growth.max_depth:
                continue
            for feature in range(self.X.shape[1]):
                options, gains = self.gains(node, feature, omega)
                if gains.size:
                    found.append((node, feature, options, gains))
        best = max((gains.max() for *_, gains in found), default=-np.inf)
        if not best > margin:
            return False
        node, feature, options, gains = next(f for f in found if f[3].max() >= best - margin)
        cut, column = divmod(int(np.argmax(gains.ravel() >= best - margin)), gains.shape[1])
        _, values, at, *_ = self.orders[node, feature]
        move, left_to, right_to = options[column]
        gap = (float(values[at[cut]]), float(values[at[cut] + 1]))
        left, right = tree.split(node, self.X, feature, threshold=oracle.shortest_threshold(*gap))
        tree.gap[node], tree.move[node] = gap, MOVES.index(move)
        tree.cut_gain[node] = float(gains[cut, column])
        tree.gain[node] = Fraction(tree.cut_gain[node])
        for child, to in ((left, left_to), (right, right_to)):
            tree.cluster[child] = to
            self.label[tree.rows[child]] = to
        self.n_clusters = max(self.n_clusters, left_to + 1, right_to + 1)
        return True


def sweep_kauri(
    X: np.ndarray, *, gram: Any = None, features: Any = None, w: Any = None, **options: Any
) -> KauriTree:
    """:func:`kauri` by the closed gains and sorted sweeps, in extended precision.

    Not the definition, but quick enough for data of some hundred rows. Weights must be positive;
    the ``gain`` of a node is its ``cut_gain``, ``start`` is not set.
    """
    sweep = _Sweep(X, gram, features, w, options)
    while sweep.step():
        pass
    return sweep.growth.tree


# --------------------------------------------------------------------------------------------------
# Random problems
# --------------------------------------------------------------------------------------------------

KERNEL_KINDS = ("linear", "rank", "psd", "rbf", "signed", "any")


def random_kernel(rng: np.random.Generator, X: np.ndarray, kind: str) -> dict[str, np.ndarray]:
    """A kernel of the rows, as ``features`` or as ``gram``, of whole numbers or of reals.

    ``"linear"``, ``"rank"`` (features that have nothing to do with X) and ``"psd"``, ``"rbf"``
    (Grams) are positive semidefinite. ``"signed"`` (two coordinates count as negative) and
    ``"any"`` (any symmetric matrix) are not; only they have use for double stars and mixed moves.
    """
    n = len(X)
    if kind == "linear":
        return {"features": np.ascontiguousarray(X)}
    if kind == "rbf":
        distance = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        scale = distance.mean() or 1.0
        return {"gram": np.exp(-distance / scale)}
    rank = {"rank": int(rng.integers(1, 6)), "psd": int(rng.integers(1, n + 1)), "signed": 4}
    shape = (n, rank.get(kind, n))
    whole = rng.random() < 0.5
    Z = rng.integers(-3, 4, shape).astype(float) if whole else rng.normal(size=shape)
    if kind == "rank":
        return {"features": Z}
    if kind == "psd":
        return {"gram": Z @ Z.T}
    if kind == "signed":
        return {"gram": (Z * [1.0, 1.0, -1.0, -1.0]) @ Z.T}
    return {"gram": Z + Z.T}


def random_limits(rng: np.random.Generator) -> dict[str, Any]:
    """Options of :class:`Growth`, each limit set in about one case in four."""

    def some(low: int, high: int, otherwise: int | None) -> int | None:
        return int(rng.integers(low, high)) if rng.random() < 0.25 else otherwise

    return {
        "max_clusters": int(rng.integers(1, 6)),
        "max_leaves": some(1, 9, None),
        "max_depth": some(0, 5, None),
        "min_samples_split": some(2, 7, 2),
        "min_samples_leaf": some(1, 4, 1),
        "moves": "all" if rng.random() < 0.5 else "paper",
    }
