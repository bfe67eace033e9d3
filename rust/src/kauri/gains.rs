//! The gains of sending the two sides of a cut to clusters, and bounds on them.
//!
//! With f(S, n) = S / n, a gain is a sum of *source* terms, what the leaf's cluster loses by the rows that leave it,
//! and of *target* terms, what clusters gain by the rows that join them (sections 3.3 and appendix C):
//!
//! | term | value |
//! |---|---|
//! | source, only L leaves | f(S_M + 2 S(R, M) + S(R, R), n_M + \|R\|) - f(S_k, n_k) |
//! | source, both leave | f(S_M, n_M) - f(S_k, n_k) |
//! | target, new cluster | f(S(L, L), \|L\|) |
//! | target, existing cluster c | f(S_c + 2 S(L, C_c) + S(L, L), n_c + \|L\|) - f(S_c, n_c) |
//!
//! | symbol | here |
//! |---|---|
//! | C_k, the leaf's cluster; f(S_k, n_k) | [`LeafState::cluster`]; [`LeafState::value`] |
//! | M, the *rest* of C_k outside the leaf N | [`LeafState::rest`] |
//! | S(L, M), S(N, M); S(L, C_c), S(N, C_c) | [`CrossStocks::left`], [`CrossStocks::leaf`] |
//! | S(L, L), \|L\| | [`Side`] |
//!
//! What remains of the source is added up, from the rest and the side that stays. Subtracting the rows that leave from
//! the cluster's stock gives the same but for rounding: the difference of two stocks of n rows, divided by the weight
//! of the few that remain, may be off by far more than the margin of ties.
//!
//! Cost: O(1) per cut and cluster for bounds and switches. The best pair of different clusters takes the two best
//! targets of either side, O(clusters) per cut, and is computed only where its upper bound reaches the best gain.

use std::ops::Range;

use super::cuts::ColumnCuts;
use super::moves::{AllowedMoves, JoinGains, TopTwo};
use crate::memory;

/// The sums of a cluster that its gains need.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusterSums {
    /// S(C, C).
    pub stock: f64,
    /// |C|, its weight.
    pub weight: f64,
    /// Number of rows.
    pub n_rows: usize,
}

/// Returns stock / weight; 0 for an empty set, whose stock is 0.
#[inline(always)]
fn share(stock: f64, weight: f64) -> f64 {
    // A division in any case: a branch around it would keep the compiler from vectorising the loops.
    stock / if weight > 0.0 { weight } else { f64::INFINITY }
}

impl ClusterSums {
    /// No rows.
    pub const EMPTY: ClusterSums = ClusterSums { stock: 0.0, weight: 0.0, n_rows: 0 };

    /// Returns the cluster's term of the objective.
    #[inline(always)]
    pub fn value(&self) -> f64 {
        share(self.stock, self.weight)
    }

    /// Returns the term with more rows: `cross` is their stock with the cluster.
    #[inline(always)]
    fn joined(&self, cross: f64, self_stock: f64, weight: f64) -> f64 {
        share(self.stock + 2.0 * cross + self_stock, self.weight + weight)
    }

    /// Returns the target term of rows that join.
    #[inline(always)]
    fn join(&self, cross: f64, self_stock: f64, weight: f64) -> f64 {
        self.joined(cross, self_stock, weight) - self.value()
    }

    /// Returns the target terms of the left and of the right side of a cut. `cross`: the stock of the left side with
    /// the cluster; `leaf`: that of the whole leaf.
    #[inline(always)]
    fn joins(&self, [left, right]: [Side; 2], cross: f64, leaf: f64) -> [f64; 2] {
        [
            self.join(cross, left.self_stock, left.weight),
            self.join(leaf - cross, right.self_stock, right.weight),
        ]
    }
}

/// Returns the larger of two numbers.
#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// One side of a cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// S(L, L).
    pub self_stock: f64,
    /// |L|.
    pub weight: f64,
}

impl Side {
    /// Returns the target term of a new cluster.
    #[inline(always)]
    pub(super) fn alone(&self) -> f64 {
        share(self.self_stock, self.weight)
    }
}

/// What the gains of all cuts of a leaf read of its cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeafState {
    /// Number of the leaf's cluster.
    pub cluster: usize,
    /// The cluster's term of the objective.
    pub value: f64,
    /// The rest of the cluster: its other leaves.
    pub rest: ClusterSums,
}

impl LeafState {
    /// Whether both sides may leave: the cluster does not become empty.
    pub fn has_rest(&self) -> bool {
        self.rest.n_rows > 0
    }

    /// Returns the source term of the whole leaf.
    pub fn leaving(&self) -> f64 {
        self.rest.value() - self.value
    }

    /// Returns an upper bound on the gains of moves to existing clusters.
    pub(super) fn upper_bound(&self, bounds: MoveBounds) -> f64 {
        let pair = if self.has_rest() { bounds.pair } else { f64::NEG_INFINITY };
        bounds.switch.max(pair)
    }
}

/// The stocks of a leaf, and of the left sides of its cuts along one column, with a set of rows outside the leaf.
#[derive(Debug, Clone, Copy)]
pub struct CrossStocks<'a> {
    /// S(N, C) of the whole leaf.
    pub leaf: f64,
    /// S(L, C) of each cut.
    pub left: &'a [f64],
}

/// Largest values over the cuts of a leaf along one column, of moves without existing clusters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewClusterGains {
    /// The star gain.
    pub star: f64,
    /// f(L) + f(R): the double star gain without its source term.
    pub both_new: f64,
}

impl NewClusterGains {
    /// No cut.
    pub const NONE: NewClusterGains =
        NewClusterGains { star: f64::NEG_INFINITY, both_new: f64::NEG_INFINITY };

    /// Returns the larger of either.
    pub fn max(self, other: NewClusterGains) -> NewClusterGains {
        NewClusterGains {
            star: self.star.max(other.star),
            both_new: self.both_new.max(other.both_new),
        }
    }
}

/// Upper bounds on the gains, over the cuts of a leaf, of moves to existing clusters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoveBounds {
    /// Of switches; exact if the [`JoinBounds`] are.
    pub switch: f64,
    /// Of moves of both sides with at least one to an existing cluster. Never exact: the best cluster of both sides may
    /// be the same.
    pub pair: f64,
}

impl MoveBounds {
    /// No cut.
    pub const NONE: MoveBounds = MoveBounds { switch: f64::NEG_INFINITY, pair: f64::NEG_INFINITY };

    /// Returns the larger of either.
    pub fn max(self, other: MoveBounds) -> MoveBounds {
        MoveBounds { switch: self.switch.max(other.switch), pair: self.pair.max(other.pair) }
    }
}

/// For every cut, upper bounds on the target terms of the left and of the right side over the existing clusters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JoinBounds {
    left: Vec<f64>,
    right: Vec<f64>,
}

impl JoinBounds {
    /// Resets the bounds of `n` cuts to those of no cluster.
    pub fn clear(&mut self, n: usize) {
        for bounds in [&mut self.left, &mut self.right] {
            bounds.clear();
            memory::reserve(bounds, n, "the bounds of a column's cuts");
            bounds.resize(n, f64::NEG_INFINITY);
        }
    }
}

/// Returns the largest number, -inf without any, in lanes that the compiler turns into vector instructions.
pub(super) fn largest(values: &[f64]) -> f64 {
    let mut lanes = [f64::NEG_INFINITY; 8];
    let (eights, rest) = values.as_chunks::<8>();
    for eight in eights {
        for (lane, &value) in lanes.iter_mut().zip(eight) {
            *lane = larger(value, *lane);
        }
    }
    rest.iter().copied().chain(lanes).fold(f64::NEG_INFINITY, f64::max)
}

/// Cuts whose numbers are computed at a time: what is computed of them stays in the first cache.
const CUTS_AT_A_TIME: usize = 512;

/// Returns the largest of either of two numbers per cut, of `n` cuts. `compute`: writes them, in plain loops that the
/// compiler turns into vector instructions.
#[inline(always)]
fn largest_of_both(n: usize, compute: impl Fn(Range<usize>, &mut [f64], &mut [f64])) -> [f64; 2] {
    let [mut a, mut b] = [[0.0; CUTS_AT_A_TIME]; 2];
    let mut best = [f64::NEG_INFINITY; 2];
    for start in (0..n).step_by(CUTS_AT_A_TIME) {
        let cuts = start..n.min(start + CUTS_AT_A_TIME);
        let (a, b) = (&mut a[..cuts.len()], &mut b[..cuts.len()]);
        compute(cuts, a, b);
        best = [best[0].max(largest(a)), best[1].max(largest(b))];
    }
    best
}

/// The gains of the cuts of a leaf along one column.
pub struct CutGains<'a> {
    pub(super) cuts: &'a ColumnCuts,
    pub(super) leaf: LeafState,
    /// Stocks with the rest of the leaf's own cluster.
    pub(super) cross: CrossStocks<'a>,
}

impl<'a> CutGains<'a> {
    /// `cross`: the stocks with the rest of the leaf's own cluster.
    pub fn new(cuts: &'a ColumnCuts, leaf: LeafState, cross: CrossStocks<'a>) -> Self {
        debug_assert_eq!(cross.left.len(), cuts.n_left.len());
        CutGains { cuts, leaf, cross }
    }

    /// Returns self stocks and weights of both sides of some cuts as slices of one length, which spares the loops all bounds
    /// checks.
    fn slices(&self, cuts: &Range<usize>) -> [[&[f64]; 2]; 2] {
        let ColumnCuts { weight, self_stock, .. } = self.cuts;
        [self_stock, weight].map(|numbers| numbers.each_ref().map(|numbers| &numbers[cuts.clone()]))
    }

    pub(super) fn sides(&self, cut: usize) -> [Side; 2] {
        let ColumnCuts { weight, self_stock, .. } = self.cuts;
        [0, 1].map(|side| Side { self_stock: self_stock[side][cut], weight: weight[side][cut] })
    }

    /// Returns the source terms if only the left side leaves, and if only the right side does. `cross`: the stock of
    /// the left side with the rest.
    #[inline(always)]
    pub(super) fn sources(&self, [left, right]: [Side; 2], cross: f64) -> [f64; 2] {
        let LeafState { rest, value, .. } = self.leaf;
        [
            rest.joined(self.cross.leaf - cross, right.self_stock, right.weight) - value,
            rest.joined(cross, left.self_stock, left.weight) - value,
        ]
    }

    /// Returns the largest gains of moves without existing clusters.
    pub fn new_cluster_gains(&self) -> NewClusterGains {
        let [star, both_new] = largest_of_both(self.cuts.n_left.len(), |cuts, star, both_new| {
            let [self_stock, weight] = self.slices(&cuts);
            let cross = &self.cross.left[cuts];
            for (i, (star, both_new)) in star.iter_mut().zip(both_new).enumerate() {
                let sides =
                    [0, 1].map(|s| Side { self_stock: self_stock[s][i], weight: weight[s][i] });
                let [leave_left, leave_right] = self.sources(sides, cross[i]);
                let [left, right] = sides.map(|side| side.alone());
                *star = larger(leave_left + left, leave_right + right);
                *both_new = left + right;
            }
        });
        NewClusterGains { star, both_new }
    }

    /// Raises the bounds to the target terms of one more existing cluster, and returns whether any was raised. `cross`: the
    /// stocks with it.
    pub fn add_target(
        &self,
        target: &ClusterSums,
        cross: CrossStocks<'_>,
        bounds: &mut JoinBounds,
    ) -> bool {
        let n = self.cuts.n_left.len();
        let [self_stock, weight] = self.slices(&(0..n));
        let with = &cross.left[..n];
        let (left, right) = (&mut bounds.left[..n], &mut bounds.right[..n]);
        let mut is_raised = false;
        for i in 0..n {
            let sides = [0, 1].map(|s| Side { self_stock: self_stock[s][i], weight: weight[s][i] });
            let [join_left, join_right] = target.joins(sides, with[i], cross.leaf);
            is_raised |= (join_left > left[i]) | (join_right > right[i]);
            left[i] = larger(join_left, left[i]);
            right[i] = larger(join_right, right[i]);
        }
        is_raised
    }

    /// Returns the bounds on the gains of moves to existing clusters, from those on their target terms.
    pub fn move_bounds(&self, bounds: &JoinBounds, allowed: AllowedMoves) -> MoveBounds {
        let [switch, pair] = largest_of_both(self.cuts.n_left.len(), |cuts, switch, pair| {
            let [self_stock, weight] = self.slices(&cuts);
            let cross = &self.cross.left[cuts.clone()];
            let (left, right) = (&bounds.left[cuts.clone()], &bounds.right[cuts.clone()]);
            for (i, (switch, pair)) in switch.iter_mut().zip(pair.iter_mut()).enumerate() {
                let sides =
                    [0, 1].map(|s| Side { self_stock: self_stock[s][i], weight: weight[s][i] });
                let [leave_left, leave_right] = self.sources(sides, cross[i]);
                *switch = larger(leave_left + left[i], leave_right + right[i]);
                *pair = left[i] + right[i];
            }
            if allowed.mixed() {
                for (i, pair) in pair.iter_mut().enumerate() {
                    let [l, r] = self.sides(cuts.start + i).map(|side| side.alone());
                    *pair = larger(*pair, larger(l + right[i], left[i] + r));
                }
            }
        });
        MoveBounds { switch, pair: self.leaf.leaving() + pair }
    }

    /// Returns the largest gain of a move of both sides with at least one to an existing cluster, if it is at least
    /// `floor`; else a smaller number. `targets`: number, sums and cross stocks of the existing clusters.
    pub fn best_pair(
        &self,
        targets: &[(usize, ClusterSums, CrossStocks<'_>)],
        allowed: AllowedMoves,
        bounds: &JoinBounds,
        floor: f64,
    ) -> f64 {
        let leaving = self.leaf.leaving();
        let mut best = f64::NEG_INFINITY;
        for cut in 0..self.cuts.n_left.len() {
            let (mut left, mut right) = (bounds.left[cut], bounds.right[cut]);
            if allowed.mixed() {
                let alone = self.sides(cut).map(|side| side.alone());
                (left, right) = (larger(left, alone[0]), larger(right, alone[1]));
            }
            if leaving + (left + right) >= floor {
                best = best.max(leaving + self.pair_at(cut, targets, allowed.mixed()));
            }
        }
        best
    }

    /// Returns the largest sum of target terms of both sides at a cut, of two different clusters.
    fn pair_at(
        &self,
        cut: usize,
        targets: &[(usize, ClusterSums, CrossStocks<'_>)],
        mixed: bool,
    ) -> f64 {
        let sides = self.sides(cut);
        let [mut left, mut right] = [TopTwo::default(), TopTwo::default()];
        for (cluster, target, cross) in targets {
            let [join_left, join_right] = target.joins(sides, cross.left[cut], cross.leaf);
            left.take(join_left, *cluster);
            right.take(join_right, *cluster);
        }
        let pair = left.best_with(&right);
        if !mixed {
            return pair;
        }
        let [alone_left, alone_right] = sides.map(|side| side.alone());
        pair.max(alone_left + right.first.0).max(left.first.0 + alone_right)
    }

    /// Returns an upper bound on the gain of every move at a cut. `bounds`: none if moves to existing clusters do not
    /// count.
    pub fn bound_at(&self, cut: usize, bounds: Option<&JoinBounds>, allowed: AllowedMoves) -> f64 {
        let sides = self.sides(cut);
        let [leave_left, leave_right] = self.sources(sides, self.cross.left[cut]);
        let [alone_left, alone_right] = sides.map(|side| side.alone());
        let (mut left, mut right) = match bounds {
            Some(bounds) => (bounds.left[cut], bounds.right[cut]),
            None => (f64::NEG_INFINITY, f64::NEG_INFINITY),
        };
        if allowed.n_free > 0 {
            (left, right) = (larger(left, alone_left), larger(right, alone_right));
        }
        let one = larger(leave_left + left, leave_right + right);
        if self.leaf.has_rest() { larger(one, self.leaf.leaving() + (left + right)) } else { one }
    }

    /// Returns the target terms of the existing clusters at a cut. `targets`: number, sums, and stocks with the left
    /// side and with the leaf.
    pub fn joins(&self, cut: usize, targets: &[(usize, ClusterSums, [f64; 2])]) -> Vec<JoinGains> {
        let sides = self.sides(cut);
        let join = |&(cluster, target, [left, leaf]): &(usize, ClusterSums, [f64; 2])| {
            (cluster, target.joins(sides, left, leaf))
        };
        targets.iter().map(join).collect()
    }
}
