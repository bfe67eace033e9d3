"""The Kauri oracle itself: cases worked out by hand, the closed formulas, its own rules."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from oracles import kauri
from oracles import threshold as oracle
from oracles.kauri import Growth, Stocks, mask_of
from sizes import repeats


def line(n):
    return np.arange(n, dtype=float)[:, None]


def random_problem(rng, n=None, kind=None):
    """Columns, and the stocks of a kernel of any kind, related to the columns or not."""
    X, _, _, w = oracle.random_case(rng, n=n, n_max=12, d_max=3, kind=kind, outlier=False)
    return X, Stocks(**kauri.random_kernel(rng, X, rng.choice(kauri.KERNEL_KINDS)), w=w)


def random_growth(rng, **options):
    """A growth some rounds on: any legal candidates, so that clusters have several leaves."""
    X, stocks = random_problem(rng, int(rng.integers(3, 11)), rng.choice(["normal", None]))
    growth = Growth(X, stocks, max_clusters=int(rng.integers(1, 9)), **options)
    for _ in range(int(rng.integers(0, 6))):
        candidates = growth.candidates()
        if not candidates:
            break
        # kind first: there are far more switches than anything else
        kind = rng.choice(sorted({c.move for c in candidates}))
        of_kind = [c for c in candidates if c.move == kind]
        growth.take(of_kind[rng.integers(len(of_kind))])
    return growth


# ---- stocks ------------------------------------------------------------------------------


def test_stocks_by_hand():
    gram = [[1, 2, 0], [2, 5, -1], [0, -1, 3]]
    stocks = Stocks(gram=gram, w=[1.0, 2.0, 0.5])
    assert stocks.stock(mask_of([0, 1]), mask_of([0, 1])) == 1 + 2 * 2 * 2 + 4 * 5
    assert stocks.stock(mask_of([0]), mask_of([1, 2])) == 4
    assert stocks.weight(mask_of([0, 2])) == Fraction(3, 2)
    assert stocks.share(mask_of([0, 1])) == Fraction(29, 3)
    assert stocks.cost(mask_of([0, 1])) == 1 + 2 * 5 - Fraction(29, 3)
    assert stocks.objective([mask_of([0, 1]), mask_of([2]), 0]) == Fraction(29, 3) + Fraction(3, 2)
    assert stocks.total == 1 + 10 + Fraction(3, 2)


def test_stocks_are_exact_for_any_floats():
    rng = np.random.default_rng(0)
    for _ in range(20):
        n = int(rng.integers(1, 7))
        Z = rng.normal(size=(n, 2)) * 10.0 ** rng.integers(-30, 30, (n, 2))
        w = rng.uniform(0.1, 3, n)
        exact = [[Fraction(v) for v in row] for row in Z.tolist()]
        gram = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in exact] for x in exact]
        weights = [Fraction(v) for v in w.tolist()]
        for stocks in (Stocks(features=Z, w=w), Stocks(gram=gram, w=w)):
            for rows in ([0], list(range(n))):
                own = sum(weights[i] * weights[j] * gram[i][j] for i in rows for j in rows)
                assert stocks.share(mask_of(rows)) == own / sum(weights[i] for i in rows)
            trace = [weights[i] * gram[i][i] for i in range(n)]
            assert stocks.total == sum(trace)
            assert stocks.size == stocks.total  # positive semidefinite


def test_centering_changes_no_gain():
    rng = np.random.default_rng(1)
    for _ in range(20):
        X, _, _, w = oracle.random_case(rng, n_max=8, outlier=False)
        given, centered = Stocks(features=X, w=w), Stocks(features=X, w=w, center=True)
        everything = mask_of(given.rows)
        assert centered.share(everything) == 0
        half = mask_of(given.rows[::2])
        parts = [half, everything & ~half]
        assert centered.objective(parts) == given.objective(parts) - given.share(everything)
        assert centered.total <= given.total


# ---- trees by hand -----------------------------------------------------------------------


def test_two_pairs_on_a_line():
    X = np.array([[0.0], [1.0], [10.0], [11.0]])
    stocks = Stocks(features=X)
    tree = kauri.kauri(X, stocks, max_clusters=2)
    # 22^2 / 4 before, 1^2 / 2 + 21^2 / 2 after
    assert (tree.start, tree.gains, tree.objective) == (121, [100], 221)
    assert tree.gap[0] == (1.0, 10.0)
    assert tree.threshold[0] == 5.0
    # left new and right new gain the same: left new comes first
    assert (tree.cluster, tree.moves) == ([0, 1, 0], ["star"])
    assert tree.predict(X).tolist() == [1, 1, 0, 0]
    assert stocks.cost(mask_of([0, 1])) == Fraction(1, 2)


def test_a_switch():
    # z = 0, 10, 0 along x: two clusters need three leaves
    stocks = Stocks(features=[[0], [10], [0]])
    tree = kauri.kauri(line(3), stocks, max_clusters=2)
    assert tree.start == Fraction(100, 3)
    # both cuts reach 100 / 2: the lower threshold; then row 2 joins row 0
    assert tree.moves == ["star", "switch"]
    assert tree.gains == [50 - Fraction(100, 3), 50]
    assert tree.cluster == [0, 1, 0, 0, 1]
    assert (tree.feature, tree.threshold) == ([0, -2, 0, -2, -2], [0.5, -2.0, 1.5, -2.0, -2.0])
    assert kauri.clusters_of(tree) == [mask_of([1]), mask_of([0, 2])]


def test_a_reallocation():
    z = np.array([1, 4, 0, 3, 0])
    tree = kauri.kauri(line(5), Stocks(features=z[:, None]), max_clusters=3)
    assert tree.start == Fraction(64, 5)
    assert tree.moves == ["star", "star", "switch", "reallocation"]
    assert tree.gains == [Fraction(16, 5), Fraction(4, 3), 4, Fraction(25, 6)]
    last = tree.move.index(kauri.MOVES.index("reallocation"))
    left, right = tree.children_left[last], tree.children_right[last]
    assert len({tree.cluster[last], tree.cluster[left], tree.cluster[right]}) == 3
    # 0, 0 | 1 | 4, 3 is the best that three clusters can do
    assert sorted(kauri.clusters_of(tree)) == sorted(map(mask_of, ([2, 4], [0], [1, 3])))
    assert tree.objective == 0 + 1 + Fraction(49, 2)


# Rows 2 and 3 join row 0 (switch), then leave it for a cluster each (double star).
DOUBLE_STAR = np.array([[1, -4, 1, -2], [-4, 4, -1, -3], [1, -1, 2, -4], [-2, -3, -4, -4]])
# Needs moves="all".
MIXED = np.array([[1, -1, 0, 0], [-1, 2, -2, 2], [0, -2, 1, -2], [0, 2, -2, -2]])


def test_a_double_star():
    tree = kauri.kauri(line(4), Stocks(gram=DOUBLE_STAR), max_clusters=4)
    assert tree.moves == ["star", "switch", "double_star"]
    # all together; {0} {1, 2, 3}: 1 - 14/3; {1} {0, 2, 3}: 4 - 11/3; all apart: the trace
    reached = [Fraction(-23, 4), Fraction(-11, 3), Fraction(1, 3), Fraction(3)]
    assert tree.start == reached[0]
    assert tree.gains == [b - a for a, b in itertools.pairwise(reached)]
    assert tree.cluster == [0, 1, 0, 0, 1, 2, 3]
    assert sorted(kauri.clusters_of(tree)) == [1, 2, 4, 8]
    # with room for one only, row 2 founds it: 4 + 2 - 7/2
    tree = kauri.kauri(line(4), Stocks(gram=DOUBLE_STAR), max_clusters=3)
    assert tree.moves == ["star", "switch", "star"]
    assert tree.objective == Fraction(5, 2)


def test_a_mixed_move():
    stocks = Stocks(gram=MIXED)
    tree = kauri.kauri(line(4), stocks, max_clusters=3, moves="all")
    assert tree.moves == ["star", "switch", "mixed"]
    assert tree.gains == [1, Fraction(2, 3), Fraction(10, 3)]
    paper = kauri.kauri(line(4), stocks, max_clusters=3)
    assert "mixed" not in paper.moves
    assert paper.gains[:2] == tree.gains[:2]
    assert paper.gains[2] < tree.gains[2]


def test_weights_are_copies():
    rng = np.random.default_rng(2)
    for _ in range(40):
        X, _, _, w = oracle.random_case(rng, n_max=7, weights="integer", outlier=False)
        copies = np.repeat(np.arange(len(X)), w.astype(int))
        options = {"max_clusters": int(rng.integers(1, 5)), "max_leaves": int(rng.integers(1, 7))}
        weighted = kauri.kauri(X, Stocks(features=X, w=w), **options)
        copied = kauri.kauri(X[copies], Stocks(features=X[copies]), **options)
        assert oracle.first_difference(weighted, copied) is None
        assert weighted.gains == copied.gains
        assert weighted.start == copied.start


def test_rows_of_weight_zero_are_not_there():
    rng = np.random.default_rng(3)
    for _ in range(40):
        X, _, _, w = oracle.random_case(rng, n_max=9, zero_weights=True, outlier=False)
        with_zeros = kauri.kauri(X, Stocks(features=X, w=w), max_clusters=3)
        without = kauri.kauri(X[w > 0], Stocks(features=X[w > 0], w=w[w > 0]), max_clusters=3)
        assert oracle.first_difference(with_zeros, without) is None
        assert with_zeros.gains == without.gains


def test_limits():
    X = line(8)
    stocks = Stocks(features=X)

    def grow(**limits):
        return kauri.kauri(X, stocks, max_clusters=8, **limits)

    assert grow().n_leaves == 8
    assert grow(max_leaves=3).n_leaves == 3
    assert grow(max_depth=2).depth() == 2
    assert grow(max_depth=0).n_leaves == 1
    assert grow(min_samples_leaf=4).n_leaves == 2
    assert grow(min_samples_leaf=5).n_leaves == 1
    assert sorted(len(grow(min_samples_split=4).rows[p]) for p in (0, 1, 2)) == [4, 4, 8]
    assert grow(min_samples_split=5).n_leaves == 2
    assert kauri.kauri(X, stocks, max_clusters=1).n_leaves == 1
    for m in range(1, 8):
        assert oracle.first_difference(grow(max_leaves=m), grow().truncate(m)) is None


def test_nothing_to_cut():
    for X in (np.zeros((1, 2)), np.zeros((5, 2)), np.full((4, 1), 3.0)):
        tree = kauri.kauri(X, Stocks(features=X), max_clusters=3)
        assert (tree.n_leaves, tree.cluster, tree.gains) == (1, [0], [])


# ---- candidates --------------------------------------------------------------------------


def test_moves_at_one_cut_by_hand():
    def moves(*args, **flags):
        flags = {"has_others": True, "max_clusters": 9, "mixed": False, **flags}
        return list(kauri.moves_at(*args, **flags))

    assert moves(0, 1, has_others=False) == [("star", 1, 0), ("star", 0, 1)]
    assert moves(0, 1, max_clusters=1) == []
    switches = [("switch", 0, 1), ("switch", 2, 1), ("switch", 1, 0), ("switch", 1, 2)]
    assert moves(1, 3, max_clusters=3, has_others=False) == switches
    swaps = [("reallocation", 0, 2), ("reallocation", 2, 0)]
    assert moves(1, 3, max_clusters=3) == switches + swaps
    stars = [("star", 3, 1), ("star", 1, 3)]
    mixed = [("mixed", 3, 0), ("mixed", 3, 2), ("mixed", 0, 3), ("mixed", 2, 3)]
    assert moves(1, 3, max_clusters=4, mixed=True) == stars + switches + swaps + mixed
    double = [("double_star", 3, 4)]
    assert moves(1, 3, max_clusters=5) == stars + double + switches + swaps
    assert moves(1, 3, max_clusters=5, has_others=False, mixed=True) == stars + switches


def every_assignment(growth):
    """All that may become of the sides of every cut, from the clusters after it alone.

    Gives (cut, cluster of the left side, of the right side): objective. Of two new clusters the
    left side's comes first. A leaf is split to tell its sides apart, so they go to different
    clusters; no cluster may be left without rows.
    """
    n_clusters = len(growth.clusters)
    found = {}
    for node, feature, a, b, left, right in growth.cuts():
        k = growth.tree.cluster[node]
        for left_to, right_to in itertools.product(range(n_clusters + 2), repeat=2):
            label_of = {}
            for c, mask in enumerate(growth.clusters):
                label_of |= dict.fromkeys(kauri.rows_of(mask), c)
            label_of |= dict.fromkeys(kauri.rows_of(left), left_to)
            label_of |= dict.fromkeys(kauri.rows_of(right), right_to)
            labels = sorted(set(label_of.values()))
            if left_to == right_to or labels != list(range(len(labels))):
                continue  # not told apart; or a cluster empty, or a number left out
            if {left_to, right_to} == {n_clusters, n_clusters + 1} and left_to > right_to:
                continue
            if len(labels) < n_clusters or len(labels) > max(growth.max_clusters, n_clusters):
                continue
            sets = [mask_of([i for i, c in label_of.items() if c == label]) for label in labels]
            assert k in labels
            found[node, feature, a, b, left_to, right_to] = growth.stocks.objective(sets)
    return found


@pytest.mark.parametrize("moves", ["all", "paper"])
def test_no_assignment_is_missed(moves):
    rng = np.random.default_rng(4)
    seen = set()
    for _ in range(repeats(40, 120)):
        growth = random_growth(rng, moves=moves)
        before = growth.stocks.objective(growth.clusters)
        expected = every_assignment(growth)
        found = {}
        for c in growth.candidates():
            key = (c.node, c.feature, c.a, c.b, c.left_cluster, c.right_cluster)
            assert key not in found
            found[key] = before + c.gain
            seen.add(c.move)
        if moves == "paper":  # all but one side new, the other to another cluster
            n = len(growth.clusters)
            for key in list(expected):
                k = growth.tree.cluster[key[0]]
                if n in key[4:] and k not in key[4:] and n + 1 not in key[4:]:
                    del expected[key]
        assert found == expected
        # the greedy choice is as good as any of them
        chosen = growth.choose(growth.candidates())
        best = max(expected.values(), default=before) - before
        if chosen is None:
            assert best <= growth.margin
        else:
            assert best - growth.margin <= chosen.gain <= best
    assert seen == set(kauri.MOVES if moves == "all" else kauri.MOVES[:4])


def closed_gain(growth, candidate):
    """The gain by the source and target terms of the notes on the paper's equations 25 to 36."""
    stocks, clusters = growth.stocks, growth.clusters
    k, L, R = growth.tree.cluster[candidate.node], candidate.left, candidate.right
    K = clusters[k]

    def f(stock, weight):
        return stock / weight if weight else Fraction(0)

    size = stocks.weight
    S_k, n_k = stocks.stock(K, K), size(K)
    A, B, between = stocks.stock(L, L), stocks.stock(R, R), stocks.stock(L, R)
    u, v = ([stocks.stock(side, c) for c in clusters] for side in (L, R))
    goes_left, goes_right = candidate.left_cluster != k, candidate.right_cluster != k
    if goes_left and goes_right:
        left_over = S_k - 2 * (u[k] + v[k]) + (A + 2 * between + B)
        gain = f(left_over, n_k - size(L) - size(R))
    elif goes_left:
        gain = f(S_k - 2 * u[k] + A, n_k - size(L))
    else:
        gain = f(S_k - 2 * v[k] + B, n_k - size(R))
    gain -= f(S_k, n_k)
    for moved, side, own, to, goes in (
        (u, L, A, candidate.left_cluster, goes_left),
        (v, R, B, candidate.right_cluster, goes_right),
    ):
        if goes and to >= len(clusters):
            gain += f(own, size(side))
        elif goes:
            S_c, n_c = stocks.stock(clusters[to], clusters[to]), size(clusters[to])
            gain += f(S_c + 2 * moved[to] + own, n_c + size(side)) - f(S_c, n_c)
    return gain


def test_closed_formulas():
    rng = np.random.default_rng(5)
    n_of = dict.fromkeys(kauri.MOVES, 0)
    for _ in range(repeats(70, 200)):
        growth = random_growth(rng, moves="all")
        candidates = growth.candidates()
        for move in kauri.MOVES:
            of_kind = [c for c in candidates if c.move == move]
            for i in rng.permutation(len(of_kind))[:15]:
                assert closed_gain(growth, of_kind[i]) == of_kind[i].gain
                n_of[move] += 1
    assert min(n_of.values()) > repeats(10, 40)


def test_gains_add_up_to_the_objective():
    rng = np.random.default_rng(6)
    for _ in range(60):
        X, stocks = random_problem(rng)
        tree = kauri.kauri(X, stocks, max_clusters=int(rng.integers(1, 6)), moves="all")
        assert tree.objective == stocks.objective(kauri.clusters_of(tree))
        assert all(gain > 0 for gain in tree.gains)


def test_kernels_with_features_take_new_clusters_first():
    # S / n is convex in the sum and the size, so for a positive semidefinite kernel a side is worth
    # as much alone as in any cluster: until max_clusters is reached every split is a star, and
    # clusters of several leaves, which a double star or a mixed move needs, come only after that.
    rng = np.random.default_rng(7)
    for _ in range(60):
        X, _, _, w = oracle.random_case(rng, n_max=14, d_max=2)
        stocks = Stocks(features=rng.integers(-3, 4, (len(X), 2)), w=w)
        max_clusters = int(rng.integers(2, 7))
        tree = kauri.kauri(X, stocks, max_clusters=max_clusters, moves="all")
        assert set(tree.moves[: max_clusters - 1]) <= {"star"}
        assert set(tree.moves[max_clusters - 1 :]) <= {"switch", "reallocation"}


# ---- replay ------------------------------------------------------------------------------


def test_replay_accepts_the_tree_and_no_other():
    rng = np.random.default_rng(8)
    n_changed = 0
    for _ in range(40):
        X, stocks = random_problem(rng)
        options = {"max_clusters": int(rng.integers(2, 5)), "moves": "all"}
        tree = kauri.kauri(X, stocks, **options)
        again, problem = kauri.replay(tree, X, stocks, **options)
        assert problem is None
        assert again.gains == tree.gains
        if tree.n_leaves == 1:
            continue
        changed = tree.truncate(tree.n_leaves - 1)
        assert "stops before" in kauri.replay(changed, X, stocks, **options)[1]
        changed = tree.truncate(tree.n_leaves)
        changed.threshold[0] = np.nextafter(changed.threshold[0], np.inf)
        assert "threshold" in kauri.replay(changed, X, stocks, **options)[1]
        changed = tree.truncate(tree.n_leaves)
        changed.cluster[1], changed.cluster[2] = changed.cluster[2], changed.cluster[1]
        # the root's mirror image gains the same and comes later
        assert "before it comes" in kauri.replay(changed, X, stocks, **options)[1]
        n_changed += 1
        # the best candidate of another leaf, feature or cut
        growth = Growth(X, stocks, **options)
        candidates = growth.candidates()
        worse = [c for c in candidates if c.gain < max(candidates, key=lambda c: c.gain).gain / 2]
        if worse:
            growth.take(worse[0])
            problem = kauri.replay(growth.tree, X, stocks, **options)[1]
            assert problem is not None and "the best is" in problem
    assert n_changed > 20


def test_replay_wants_a_reason_to_split():
    X = line(3)
    growth = Growth(X, Stocks(gram=np.zeros((3, 3))), max_clusters=3)
    growth.take(growth.candidates()[0])
    problem = kauri.replay(growth.tree, X, growth.stocks, max_clusters=3)[1]
    assert problem is not None and "nothing gains" in problem


# ---- sweeps ------------------------------------------------------------------------------


def test_sweeps_equal_enumeration():
    rng = np.random.default_rng(9)
    seen = set()
    cases = [
        (line(4), {"gram": DOUBLE_STAR}, None, {"max_clusters": 4}),
        (line(4), {"gram": MIXED}, None, {"max_clusters": 3, "moves": "all"}),
        (line(5), {"features": [[1], [4], [0], [3], [0]]}, None, {"max_clusters": 3}),
    ]
    for kind in kauri.KERNEL_KINDS * 25:
        X, _, _, w = oracle.random_case(rng, n_max=12, d_max=2, outlier=False)
        cases.append((X, kauri.random_kernel(rng, X, kind), w, kauri.random_limits(rng)))
    for X, kernel, w, options in cases:
        swept = kauri.sweep_kauri(X, **kernel, w=w, **options)
        tree, problem = kauri.replay(swept, X, Stocks(**kernel, w=w), slack=1e-15, **options)
        assert problem is None
        seen |= set(tree.moves)
        for gain, exact in zip(swept.gains, tree.gains, strict=True):
            assert float(gain) == pytest.approx(float(exact), rel=1e-9)
    assert seen == set(kauri.MOVES)
