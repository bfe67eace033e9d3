"""Brute-force kernel trees: surrogate features, implicit distances and Kernel IMM, by definition.

Fleissner, Vankadara, Ghoshdastidar, "Explaining kernel clustering via decision trees". Features and
kernels are computed with 50 decimal digits and rounded once, sums of a kernel matrix are exact
rationals. A tree is an :class:`oracles.threshold.OracleTree` over the input columns.

Where a definition can be read in two ways, a comment ``Reading:`` states which one was taken.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np

from oracles import threshold as oracle
from oracles.threshold import INTERVAL, LEAF, OracleTree

# ``K(x, y) = prod_f kappa(x_f, y_f)`` and ``K(x, y) = sum_f kappa(x_f, y_f)``.
PRODUCT_KERNELS = ("rbf", "laplacian")
ADDITIVE_KERNELS = ("linear", "hellinger", "histogram_intersection", "additive_chi2")
NOT_NEGATIVE = ("hellinger", "histogram_intersection", "additive_chi2")

# Costs below this share of sum_i w_i k_ii count as 0.
NO_COST = Fraction(1, 10**12)

_CONTEXT = Context(prec=50, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


# --------------------------------------------------------------------------------------------------
# Arithmetic with 50 digits
# --------------------------------------------------------------------------------------------------


def _exact(value: float) -> Decimal:
    return Decimal(float(value))


def _times(*factors: Decimal) -> Decimal:
    total = Decimal(1)
    for factor in factors:
        total = _CONTEXT.multiply(total, factor)
    return total


def _minus(x: Decimal, y: Decimal) -> Decimal:
    return _CONTEXT.subtract(x, y)


def _exp_of_minus(x: Decimal) -> Decimal:
    return _CONTEXT.exp(-x)


def _power(base: Decimal, exponent: Decimal) -> Decimal:
    if base == 0:
        return Decimal(int(exponent == 0))
    return _CONTEXT.power(base, exponent)


# --------------------------------------------------------------------------------------------------
# Kernels
# --------------------------------------------------------------------------------------------------


def _kappa(name: str, x: float, y: float, gamma: float, beta: float) -> Decimal:
    a, b = _exact(x), _exact(y)
    match name:
        case "rbf":
            return _exp_of_minus(_times(_exact(gamma), _minus(a, b), _minus(a, b)))
        case "laplacian":
            return _exp_of_minus(_times(_exact(gamma), abs(_minus(a, b))))
        case "linear":
            return _times(a, b)
        case "hellinger":
            return _CONTEXT.sqrt(_times(a, b))
        case "histogram_intersection":
            return _power(min(a, b), _exact(beta))
        case "additive_chi2":
            if a + b == 0:
                return Decimal(0)
            return _CONTEXT.divide(_times(Decimal(2), a, b), _CONTEXT.add(a, b))
        case _:
            raise ValueError(name)


def kappa(name: str, x: float, y: float, *, gamma: float = 1.0, beta: float = 1.0) -> float:
    """The kernel of two numbers: a factor of a product kernel or a term of an additive one."""
    return float(_kappa(name, x, y, gamma, beta))


def kernel(
    name: str,
    x: Sequence[float] | np.ndarray,
    y: Sequence[float] | np.ndarray,
    *,
    gamma: float = 1.0,
    beta: float = 1.0,
    degree: int = 2,
    coef0: float = 0.0,
    epsilon: float = 1.0,
) -> float:
    """The kernel of two rows.

    ``name``: a product or additive kernel, "polynomial" (``(gamma <x, y> + coef0)^degree``) or
    "epsilon" (1 where ``||x - y|| <= epsilon (1 + 1e-12)``, else 0).
    """
    pairs = list(zip(np.asarray(x, float).tolist(), np.asarray(y, float).tolist(), strict=True))
    if name in PRODUCT_KERNELS:
        return float(_times(*(_kappa(name, a, b, gamma, beta) for a, b in pairs)))
    if name in ADDITIVE_KERNELS:
        terms = [_kappa(name, a, b, gamma, beta) for a, b in pairs]
        return float(sum((Fraction(term) for term in terms), Fraction(0)))
    if name == "polynomial":
        inner = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
        return float((Fraction(gamma) * inner + Fraction(coef0)) ** degree)
    if name == "epsilon":
        squared = sum(((Fraction(a) - Fraction(b)) ** 2 for a, b in pairs), Fraction(0))
        return float(squared <= (Fraction(epsilon) * (1 + Fraction(1, 10**12))) ** 2)
    raise ValueError(name)


def gram(X: np.ndarray, name: str, **params: Any) -> np.ndarray:
    """The kernel matrix of the rows, entry by entry."""
    X = np.asarray(X, dtype=float)
    K = np.zeros((len(X), len(X)))
    for i in range(len(X)):
        for j in range(i, len(X)):
            K[i, j] = K[j, i] = kernel(name, X[i], X[j], **params)
    return K


# --------------------------------------------------------------------------------------------------
# Surrogate features of one column
# --------------------------------------------------------------------------------------------------


def taylor_features(z: Sequence[float] | np.ndarray, gamma: float, order: int) -> np.ndarray:
    """Definition 3 for the Gaussian kernel: ``z^j e^(-gamma z^2) sqrt((2 gamma)^j / j!)``.

    With ``f(z) = e^(-gamma z^2)`` and ``g(u) = e^(2 gamma u)``: the paper prints ``e^(2 u)``.

    Parameters
    ----------
    z : array (n,)
        Values >= 0, already shifted.
    order : int
        The columns are ``j = 0..order``.
    """
    out = np.empty((len(z), order + 1))
    twice = _times(Decimal(2), _exact(gamma))
    for i, value in enumerate(np.asarray(z, dtype=float).tolist()):
        assert value >= 0
        x = _exact(value)
        decay = _exp_of_minus(_times(_exact(gamma), x, x))
        for j in range(order + 1):
            share = _CONTEXT.divide(_times(*[twice] * j), Decimal(math.factorial(j)))
            out[i, j] = float(_times(decay, _CONTEXT.sqrt(share), *[x] * j))
    return out


def distance_features(
    t: Sequence[float] | np.ndarray, anchors: Sequence[float] | np.ndarray, name: str, gamma: float
) -> np.ndarray:
    """Equation (4): the one-dimensional kernel of every value with every anchor."""
    return np.array([[kappa(name, x, a, gamma=gamma) for a in anchors] for x in t])


def hellinger_features(t: Sequence[float] | np.ndarray) -> np.ndarray:
    """Appendix H: ``sqrt(x)``, one column."""
    return np.array([[math.sqrt(x)] for x in t])


def intersection_features(
    t: Sequence[float] | np.ndarray, data: Sequence[float] | np.ndarray, beta: float = 1.0
) -> np.ndarray:
    """Equation (13): a step at each distinct power ``z_1 < ... < z_m`` of the data.

    ``sqrt(z_1)`` for every value, then ``sqrt(z_j - z_(j-1))`` where ``x^beta >= z_j``, else 0.
    """
    powers = sorted({_power(_exact(x), _exact(beta)) for x in data})
    heights = [_CONTEXT.sqrt(powers[0])]
    heights += [_CONTEXT.sqrt(_minus(above, below)) for below, above in pairwise(powers)]
    out = np.zeros((len(t), len(powers)))
    for i, x in enumerate(np.asarray(t, dtype=float).tolist()):
        power = _power(_exact(x), _exact(beta))
        for j, (z, height) in enumerate(zip(powers, heights, strict=True)):
            if j == 0 or power >= z:
                out[i, j] = float(height)
    return out


def chi2_features(t: Sequence[float] | np.ndarray, order: int) -> np.ndarray:
    """Appendix H: ``sqrt(2 / j) x (j / M)^x`` for ``j = 1..M``, M the order."""
    out = np.empty((len(t), order))
    for i, value in enumerate(np.asarray(t, dtype=float).tolist()):
        x = _exact(value)
        for j in range(1, order + 1):
            root = _CONTEXT.sqrt(_CONTEXT.divide(Decimal(2), Decimal(j)))
            share = _CONTEXT.divide(Decimal(j), Decimal(order))
            out[i, j - 1] = float(_times(root, x, _power(share, x)))
    return out


def taylor_shift(column: np.ndarray) -> float:
    """Where the Gaussian's expansion starts unless told: the minimum less 1 % of the range."""
    return float(column.min()) - 0.01 * float(np.ptp(column))


def unimodal(phi: Sequence[float] | np.ndarray) -> np.ndarray:
    """The values made unimodal: running maxima from both ends towards the (first) largest."""
    phi = np.asarray(phi, dtype=float)
    peak = int(np.argmax(phi))
    rising = np.maximum.accumulate(phi[: peak + 1])
    falling = np.maximum.accumulate(phi[peak:][::-1])[::-1]
    return np.concatenate([rising, falling[1:]])


def is_unimodal(phi: Sequence[float] | np.ndarray) -> bool:
    """Whether the values rise, then fall; equal neighbours are allowed anywhere."""
    phi = np.asarray(phi, dtype=float)
    return bool(np.array_equal(phi, unimodal(phi)))


def unimodal_features(values: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Features of one column made unimodal over its distinct values.

    Parameters
    ----------
    values : array (n,)
    phi : array (n, m)
        Features of the values; equal values have equal features.
    """
    _, first, back = np.unique(values, return_index=True, return_inverse=True)
    out = np.empty_like(phi)
    for j in range(phi.shape[1]):
        out[:, j] = unimodal(phi[first, j])[back.ravel()]
    return out


# --------------------------------------------------------------------------------------------------
# Costs in the feature space of a kernel
# --------------------------------------------------------------------------------------------------


def _weights(w: Any, n: int) -> list[Fraction]:
    return [Fraction(value) for value in (np.ones(n) if w is None else np.asarray(w)).tolist()]


def fitted_rows(labels: np.ndarray, w: np.ndarray | None = None) -> np.ndarray:
    """The rows that take part: not noise (a negative label), not of weight 0."""
    labels = np.asarray(labels)
    weightless = np.zeros(len(labels), dtype=bool) if w is None else np.asarray(w) == 0
    return np.flatnonzero((labels >= 0) & ~weightless)


def exact_distances(
    K: np.ndarray, labels: np.ndarray, w: np.ndarray | None = None
) -> list[list[Fraction | None]]:
    """Equation (5) in rationals; None for clusters without rows. See :func:`distances`."""
    labels = np.asarray(labels, dtype=int)
    weight = _weights(w, len(labels))
    entry = [[Fraction(value) for value in row] for row in np.asarray(K, float).tolist()]
    fitted = fitted_rows(labels, w)
    columns: list[list[Fraction | None]] = []
    for label in range(int(labels.max(initial=-1)) + 1):
        own = [int(i) for i in fitted if labels[i] == label]
        if not own:
            columns.append([None] * len(labels))
            continue
        total = sum((weight[j] for j in own), Fraction(0))
        towards = [
            sum((weight[j] * entry[i][j] for j in own), Fraction(0)) for i in range(len(labels))
        ]
        within = sum((weight[i] * towards[i] for i in own), Fraction(0))
        columns.append(
            [entry[i][i] + within / total**2 - 2 * towards[i] / total for i in range(len(labels))]
        )
    return [list(row) for row in zip(*columns, strict=True)]


def distances(K: np.ndarray, labels: np.ndarray, w: np.ndarray | None = None) -> np.ndarray:
    """``||psi(x_i) - c_l||^2``, equation (5), of every row and cluster, rounded once.

    Parameters
    ----------
    K : ndarray (n, n)
        The kernel matrix.
    labels : ndarray (n,)
        Codes; rows with a negative label belong to no cluster but have distances too.
    w : ndarray (n,), optional
        Weights of the rows in the clusters' means.

    Returns
    -------
    ndarray (n, k)
        inf for a cluster without rows.
    """
    exact = exact_distances(K, labels, w)
    return np.array(
        [[math.inf if value is None else float(value) for value in row] for row in exact]
    )


def exact_cost(K: np.ndarray, labels: np.ndarray, w: np.ndarray | None = None) -> Fraction:
    """Equation (2) in rationals: weighted squared distances to the clusters' own means.

    Costs below ``1e-12 sum_i w_i k_ii`` count as 0.
    """
    labels = np.asarray(labels, dtype=int)
    weight, fitted = _weights(w, len(labels)), fitted_rows(labels, w)
    exact = exact_distances(K, labels, w)
    cost, trace = Fraction(0), Fraction(0)
    for i in fitted.tolist():
        own = exact[i][labels[i]]
        assert own is not None
        cost += weight[i] * own
        trace += weight[i] * Fraction(float(K[i, i]))
    return Fraction(0) if cost < NO_COST * trace else cost


def kernel_cost(K: np.ndarray, labels: np.ndarray, w: np.ndarray | None = None) -> float:
    """The kernel k-means cost of a partition, equation (2); labels < 0 are left out."""
    return float(exact_cost(K, labels, w))


def price(
    K: np.ndarray,
    labels: np.ndarray,
    reference: np.ndarray,
    w: np.ndarray | None = None,
) -> float:
    """Cost of a partition / cost of the reference, definition 4; 0/0 = 1, x/0 = inf.

    Rows that the reference calls noise (a negative label) are left out of both.
    """
    reference = np.asarray(reference, dtype=int)
    labels = np.where(reference < 0, -1, np.asarray(labels, dtype=int))
    found, best = exact_cost(K, labels, w), exact_cost(K, reference, w)
    if best == 0:
        return 1.0 if found == 0 else math.inf
    return float(found / best)


def partitions(n: int, k: int):
    """Every way to give n rows labels 0..k-1, clusters numbered by their first rows."""
    for tail in product(range(k), repeat=n - 1):
        labels, seen = (0, *tail), 0
        for label in labels:
            if label > seen:
                break
            seen = max(seen, label + 1)
        else:
            yield np.array(labels)


def best_partition(K: np.ndarray, k: int) -> tuple[np.ndarray, Fraction]:
    """The partition into at most k clusters of least cost, by enumeration, and that cost."""
    costs = [(exact_cost(K, labels), labels) for labels in partitions(len(K), k)]
    cost, labels = min(costs, key=lambda pair: pair[0])
    return labels, cost


# --------------------------------------------------------------------------------------------------
# Kernel IMM
# --------------------------------------------------------------------------------------------------


def feature_means(Phi: np.ndarray, labels: np.ndarray, w: np.ndarray | None = None) -> np.ndarray:
    """Weighted means of the features over the rows of each cluster."""
    labels = np.asarray(labels, dtype=int)
    w = np.ones(len(labels)) if w is None else np.asarray(w, dtype=float)
    fitted = fitted_rows(labels, w)
    means = np.empty((labels.max() + 1, Phi.shape[1]))
    for label in range(len(means)):
        own = fitted[labels[fitted] == label]
        total = math.fsum(w[own])
        for j in range(Phi.shape[1]):
            # from differences to one row: a feature that is constant has its value as mean
            start = Phi[own[0], j]
            means[label, j] = start + math.fsum(w[own] * (Phi[own, j] - start)) / total
    return means


End = tuple[float, float]


def interval_ends(
    values: np.ndarray, inside: np.ndarray, own: np.ndarray
) -> tuple[End | None, End | None]:
    """Between which values the ends of a cut of a surrogate feature lie in its input column.

    Parameters
    ----------
    values : array
        Distinct values of the column over all fitted rows, ascending.
    inside : array of bool
        Which of them have a feature above the threshold: one run.
    own : array
        Distinct values of the node's rows, ascending.

    Returns
    -------
    lower, upper : pairs (a, b) with a < b, or None
        None is an open end; not both are open.
    """
    places = np.flatnonzero(inside)
    assert 0 < len(places) < len(values), "some value lies on each side"
    assert len(places) == places[-1] - places[0] + 1, "the feature is unimodal"
    run = values[places]
    within = own[(own >= run[0]) & (own <= run[-1])]
    below, above = own[own < run[0]], own[own > run[-1]]
    # Reading: "min (max) of S" stands in where no row of the node lies in S.
    lowest, highest = (within[0], within[-1]) if len(within) else (run[0], run[-1])
    lower = (float(below[-1]), float(lowest)) if len(below) else None
    upper = (float(highest), float(above[0])) if len(above) else None
    if lower is None and upper is None:
        if places[-1] + 1 < len(values):
            upper = (float(highest), float(values[places[-1] + 1]))
        else:
            lower = (float(values[places[0] - 1]), float(lowest))
    return lower, upper


def kernel_imm(
    X: np.ndarray,
    Phi: np.ndarray,
    column: Sequence[int] | np.ndarray,
    labels: np.ndarray,
    w: np.ndarray | None = None,
    *,
    search: Callable[..., OracleTree] = oracle.imm,
) -> OracleTree:
    """Algorithm 1: IMM on surrogate features, every cut translated to a column of X.

    Parameters
    ----------
    X : ndarray (n, d)
        The input, in its own units.
    Phi : ndarray (n, n_features)
        Surrogate features of the rows, each unimodal in its column.
    column : sequence (n_features,)
        The column of X that each feature depends on.
    labels : ndarray (n,)
        Codes of the reference; rows with a negative label or weight 0 are left out.
    w : ndarray (n,), optional
    search : callable
        ``oracle.imm``, or ``oracle.sweep_imm``, which is quicker.
    """
    X, Phi = np.asarray(X, dtype=float), np.asarray(Phi, dtype=float)
    means = feature_means(Phi, labels, w)
    source = search(Phi, labels, means, w, oracle.surrogate_margin)
    fitted = source.rows[0]
    tree = OracleTree()
    tree.add_leaf(fitted, 0)
    waiting = deque([(0, 0)])
    while waiting:  # in order of node id, which is the order of creation
        node, origin = waiting.popleft()
        tree.correct[node], tree.alive[node] = source.correct[origin], source.alive[origin]
        if source.kind[origin] == LEAF:
            tree.cluster[node] = tree.base_cluster[node] = source.base_cluster[origin]
            continue
        j = source.feature[origin]
        f, above = int(column[j]), Phi[:, j] > source.threshold[origin]
        values, first = np.unique(X[fitted, f], return_index=True)
        own = np.unique(X[tree.rows[node], f])
        lower, upper = interval_ends(values, above[fitted][first], own)
        outside_child, inside_child = source.children_left[origin], source.children_right[origin]
        origins = (inside_child, outside_child)
        if lower is None:
            assert upper is not None
            children = tree.split(node, X, f, threshold=oracle.shortest_threshold(*upper))
            tree.gap[node] = upper
        elif upper is None:
            children = tree.split(node, X, f, threshold=oracle.shortest_threshold(*lower))
            tree.gap[node] = lower
            origins = (outside_child, inside_child)
        else:
            ends = (oracle.interval_lower(*lower), oracle.shortest_threshold(*upper))
            children = tree.split(node, X, f, interval=ends)
            tree.gap[node] = (*lower, *upper)
        tree.mistakes[node] = source.mistakes[origin]
        for child, its_origin in zip(children, origins, strict=True):
            # the cut of the feature and the test of the column part the rows alike
            assert np.array_equal(tree.rows[child], source.rows[its_origin])
            waiting.append((child, its_origin))
    tree.n_base_leaves = tree.n_leaves
    return tree


def mismatches(labels: np.ndarray, k: int | None = None) -> np.ndarray:
    """The costs of Kernel Expand, equation (7): 1 for every label but the row's own.

    Rows of noise cost nothing; they take no part.
    """
    labels = np.asarray(labels, dtype=int)
    k = int(labels.max()) + 1 if k is None else k
    return ((labels[:, None] != np.arange(k)) & (labels[:, None] >= 0)).astype(float)


def grow(
    X: np.ndarray,
    D: np.ndarray,
    labels: np.ndarray,
    w: np.ndarray | None = None,
    *,
    search: Callable[..., OracleTree] = oracle.grow_label_cost,
    **options: Any,
) -> OracleTree:
    """Algorithms 2 and 3: growth on label costs D, every cut of every open leaf enumerated.

    Parameters
    ----------
    D : ndarray (n, k)
        :func:`distances` (Kernel ExKMC) or :func:`mismatches` (Kernel Expand).
    labels : ndarray (n,)
        Only tells which rows are noise.
    search : callable
        ``oracle.grow_label_cost``, or ``oracle.sweep_grow_label_cost``, which is quicker.
    **options
        ``max_leaves``, ``cuts``, ``base``, ``max_depth``, ``min_samples_leaf``.
    """
    weight = np.ones(len(X)) if w is None else np.asarray(w, dtype=float)
    weight = np.where(np.asarray(labels) < 0, 0.0, weight)
    Dp, _ = oracle.regrets(D, weight)
    return search(X, Dp, w=weight, **options)


def has_intervals(tree: Any) -> bool:
    """Whether any test of the tree is an interval."""
    return INTERVAL in list(tree.kind)


# --------------------------------------------------------------------------------------------------
# The examples of the paper
# --------------------------------------------------------------------------------------------------


def theorem_6(epsilon: float, n_each: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Appendix J: clusters at -1, 0 and 1, half of each at ``-epsilon``, half at ``+epsilon``.

    Parameters
    ----------
    epsilon : float
        A power of two below 1/2 keeps every number exact.
    n_each : int
        Rows of a cluster, even.
    """
    assert n_each % 2 == 0
    half = n_each // 2
    X = [c + side * epsilon for c in (-1.0, 0.0, 1.0) for side in (-1, 1) for _ in range(half)]
    return np.array(X)[:, None], np.repeat([0, 1, 2], n_each)


def theorem_7_quadratic() -> tuple[np.ndarray, np.ndarray]:
    """Appendix K, proposition 1: the four unit points on the axes, opposite ones together.

    No *threshold* cut parts the clusters, but the interval ``-1/2 <= x_0 <= 1/2`` of definition 2
    does, so the price over interpretable trees is 1, not inf as the paper has it. Turned by an
    eighth (:func:`theorem_7_turned`) the example holds for intervals too.
    """
    return np.array([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0]]), np.array([0, 0, 1, 1])


def theorem_7_turned() -> tuple[np.ndarray, np.ndarray]:
    """The corners of a square, opposite ones together: both columns hold only -1 and 1."""
    return np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]]), np.array([0, 0, 1, 1])


def theorem_7_neighbourhood() -> tuple[np.ndarray, np.ndarray, float]:
    """Appendix K, proposition 2: rows, clusters and epsilon of the neighbourhood kernel.

    Four rows of 0 and 1 and four of 0 and -1; the 36 columns are all pairs of a way to give two of
    the first four a 1 and a way to give two of the others a -1.
    """
    halves = [ones for ones in product((0.0, 1.0), repeat=4) if sum(ones) == 2]
    X = np.array([[*ones, *(-x for x in others)] for ones in halves for others in halves]).T
    return np.ascontiguousarray(X) + 0.0, np.repeat([0, 1], 4), math.sqrt(24.0)


def half_moons(
    n: int, noise: float = 0.0, rng: np.random.Generator | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Two interleaved half circles of n rows each."""
    angle = np.linspace(0.0, math.pi, n)
    upper = np.column_stack([np.cos(angle), np.sin(angle)])
    lower = np.column_stack([1.0 - np.cos(angle), 0.5 - np.sin(angle)])
    X = np.vstack([upper, lower])
    if rng is not None:
        X += noise * rng.normal(size=X.shape)
    return X, np.repeat([0, 1], n)


def circles(
    n: int, ratio: float = 0.4, noise: float = 0.0, rng: np.random.Generator | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """A circle of n rows inside another; ``ratio`` is the smaller radius, the other is 1."""
    angle = np.linspace(0.0, 2.0 * math.pi, n, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.vstack([ring, ratio * ring])
    if rng is not None:
        X += noise * rng.normal(size=X.shape)
    return X, np.repeat([0, 1], n)


# --------------------------------------------------------------------------------------------------
# Random problems
# --------------------------------------------------------------------------------------------------

# (kernel, features)
FAMILIES = (
    ("rbf", "taylor"),
    ("rbf", "distance"),
    ("laplacian", "distance"),
    ("linear", "additive"),
    ("hellinger", "additive"),
    ("histogram_intersection", "additive"),
    ("additive_chi2", "additive"),
)
LABEL_KINDS = ("nearest", "band", "rings", "random", "cells")
# Not "near": on data that differ in their last bits those of a mean decide.
KINDS = tuple(kind for kind in oracle.DATA_KINDS if kind != "near")


@dataclass
class Case:
    """A small problem: rows, reference labels (-1 is noise), weights, and a kernel."""

    X: np.ndarray
    labels: np.ndarray
    w: np.ndarray
    kernel: str
    features: str
    gamma: float
    beta: float
    order: int
    far: float

    @property
    def k(self) -> int:
        """Number of clusters."""
        return int(self.labels.max()) + 1


def _random_labels(rng: np.random.Generator, X: np.ndarray, kind: str, given: np.ndarray):
    n, d = X.shape
    x = X[:, rng.integers(d)]
    if kind == "band":  # inside an interval of a column, and outside
        low, high = np.sort(rng.choice(x, 2))
        return ((low <= x) & (x <= high)).astype(int)
    if kind == "rings":
        scale = np.where(np.ptp(X, axis=0) > 0, np.ptp(X, axis=0), 1.0)
        radius = (((X - np.median(X, axis=0)) / scale) ** 2).sum(axis=1)
        return np.digitize(radius, np.quantile(radius, [0.4, 0.75]))
    if kind == "random":
        return rng.integers(0, rng.integers(1, 5), n)
    if kind == "cells":
        y = X[:, rng.integers(d)]
        return 2 * (x > np.median(x)) + (y > np.quantile(y, 0.6))
    return given


def random_kernel_case(
    rng: np.random.Generator,
    *,
    family: tuple[str, str] | None = None,
    label_kind: str | None = None,
    noise: bool | None = None,
    zero_weights: bool | None = None,
    far: float | None = None,
    gamma: float | None = None,
    **options: Any,
) -> Case:
    """A small problem of the awkward sort: ties, duplicates, weights, constant and far columns.

    Parameters
    ----------
    rng : numpy Generator
    family : pair, optional
        One of ``FAMILIES``; drawn where not given.
    label_kind : str, optional
        One of ``LABEL_KINDS``: nearest centers, an interval of a column, rings, any, cells.
    noise, zero_weights : bool, optional
        Whether some rows (never all) are noise or have weight 0; drawn where not given.
    far : float, optional
        Added to a column of origin-free kernels; drawn (0, or some 1e6) where not given.
    gamma : float, optional
        Drawn over many orders of magnitude where not given, upwards more than downwards: where a
        feature is constant but for a share of 1e-8, last bits decide which of two cuts is wider.
    **options
        Of :func:`oracle.random_case`; ``kind`` is one of ``KINDS`` unless given.

    Returns
    -------
    Case
        Labels are codes 0..k-1 of which the fitted rows have every one.
    """
    kernel_name, features = FAMILIES[rng.integers(len(FAMILIES))] if family is None else family
    kind = str(rng.choice(KINDS))
    options = {"outlier": False, "n_max": 30, "d_max": 3, "kind": kind, **options}
    X, _, given, w = oracle.random_case(rng, **options)
    n, d = X.shape
    if kernel_name in NOT_NEGATIVE:
        X = np.abs(X)
    kind = str(rng.choice(LABEL_KINDS)) if label_kind is None else label_kind
    labels = np.asarray(_random_labels(rng, X, kind, given), dtype=int)
    if rng.random() < 0.3:
        labels = np.where(rng.random(n) < 0.1, rng.integers(0, labels.max() + 1, n), labels)
    keep = int(rng.integers(n))
    others = np.arange(n) != keep
    if rng.random() < 0.2 if noise is None else noise:
        labels = np.where((rng.random(n) < 0.2) & others, -1, labels)
    if rng.random() < 0.2 if zero_weights is None else zero_weights:
        w = np.where((rng.random(n) < 0.2) & others, 0.0, w)
    fitted = fitted_rows(labels, w)
    codes = np.full(n, -1)
    classes = np.unique(labels[fitted])
    codes[fitted] = np.searchsorted(classes, labels[fitted])
    # a row of weight 0 keeps a label that the others have
    weightless = (labels >= 0) & (w == 0)
    codes[weightless] = rng.integers(0, len(classes), int(weightless.sum()))
    if far is None:
        far = 2.0**20 if kernel_name in (*PRODUCT_KERNELS, "linear") and rng.random() < 0.1 else 0.0
    X = X.copy()
    X[:, rng.integers(d)] += far
    if gamma is None:
        gamma = float(2.0 ** rng.integers(-6, 5) * rng.choice([1.0, 1.0, 1.0, 0.7, 1e3, 1e8]))
    return Case(
        X=X,
        labels=codes,
        w=w,
        kernel=kernel_name,
        features=features,
        gamma=gamma,
        beta=float(rng.choice([1.0, 1.0, 0.5, 2.0])),
        order=int(rng.integers(1, 8)),
        far=far,
    )


def surrogate_features(case: Case, T: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Surrogate features of a case, and the column of each, made unimodal over distinct values.

    Parameters
    ----------
    case : Case
    T : ndarray (n, d), optional
        The rows in the units the kernel sees; X itself where not given. Steps, anchors and the
        Taylor shift are those of the fitted rows; a Taylor feature of a row below the shift, which
        no fitted row is, is that of the shift.
    """
    T = case.X if T is None else T
    fitted = fitted_rows(case.labels, case.w)
    blocks = []
    for f in range(T.shape[1]):
        t, data = T[:, f], T[fitted, f]
        match (case.features, case.kernel):
            case ("taylor", _):
                z = np.maximum(t - taylor_shift(data), 0.0)
                block = taylor_features(z, case.gamma, case.order)
            case ("distance", name):
                block = distance_features(t, np.unique(data), name, case.gamma)
            case (_, "linear"):
                block = t[:, None].copy()
            case (_, "hellinger"):
                block = hellinger_features(t)
            case (_, "histogram_intersection"):
                block = intersection_features(t, data, case.beta)
            case _:
                block = chi2_features(t, case.order)
        blocks.append(unimodal_features(t, block))
    column = np.repeat(np.arange(T.shape[1]), [block.shape[1] for block in blocks])
    return np.hstack(blocks), column


def separable(Phi: np.ndarray, labels: np.ndarray, w: np.ndarray | None = None) -> bool:
    """Whether any two clusters' means are clearly apart in some feature.

    Clearly: by 1e-6 of the feature's range and 1e-11 of its size, so that rounding is no matter.
    """
    rows = fitted_rows(labels, w)
    means, ranges = feature_means(Phi, labels, w), oracle.column_ranges(Phi[rows])
    least = np.maximum(1e-6 * ranges, 1e-11 * np.abs(Phi[rows]).max(axis=0))
    for a in range(len(means)):
        for b in range(a):
            if not np.any(np.abs(means[a] - means[b]) > least):
                return False
    return True
