//! What sending the two sides of a cut to clusters gains.
//!
//! With f(S, n) = S / n, a gain is the sum of what the leaf's cluster loses by the rows that leave it (*source*) and of
//! what their new clusters win (*target*): for an old cluster f(S_c + 2 S(L, C_c) + S(L, L), n_c + |L|) - f(S_c, n_c),
//! for a new one f(S(L, L), |L|). The four moves of the paper (section 3.3, appendix C) are four choices of sources
//! and targets.
//!
//! What remains of the source is added up, from the *rest* of the cluster outside the leaf and the side that stays.
//! Taking the rows that leave off the cluster's stock would be the same but for rounding: the difference of two
//! stocks of n rows, divided by the weight of the few that remain, may be off by far more than the ties allow.

use super::stocks::Cuts;

/// What happened to the two sides of a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One side became a new cluster, the other stayed.
    Star,
    /// Both became new clusters.
    DoubleStar,
    /// One side went to another cluster, the other stayed.
    Switch,
    /// Both went to different other clusters.
    Reallocation,
    /// One side became a new cluster, the other went to another one.
    Mixed,
}

/// Where the two sides go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// What it is called.
    pub kind: Kind,
    /// Cluster of the left side.
    pub left: usize,
    /// Cluster of the right side.
    pub right: usize,
}

/// A cluster as its gains see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cluster {
    /// S(C, C).
    pub stock: f64,
    /// |C|: its weight.
    pub weight: f64,
    /// Its rows.
    pub n_rows: usize,
}

/// Stock over weight; nothing weighs nothing.
#[inline(always)]
fn share(stock: f64, weight: f64) -> f64 {
    // Divided in any case: a branch around it would keep loops from being made of vector instructions.
    stock / if weight > 0.0 { weight } else { f64::INFINITY }
}

impl Cluster {
    /// The cluster's part in the objective.
    #[inline(always)]
    pub fn value(&self) -> f64 {
        share(self.stock, self.weight)
    }

    /// Its part once rows have joined: their stock with the cluster, their own, their weight.
    #[inline(always)]
    fn joined(&self, with: f64, own: f64, weight: f64) -> f64 {
        share(self.stock + 2.0 * with + own, self.weight + weight)
    }

    /// What that adds.
    #[inline(always)]
    fn join(&self, with: f64, own: f64, weight: f64) -> f64 {
        self.joined(with, own, weight) - self.value()
    }

    /// What its part wins by the left side, and by the right side of a cut; `with`: the stock of the left side with it,
    /// `leaf`: that of the whole leaf.
    #[inline(always)]
    fn joins(&self, [left, right]: [Side; 2], with: f64, leaf: f64) -> [f64; 2] {
        [self.join(with, left.own, left.weight), self.join(leaf - with, right.own, right.weight)]
    }
}

/// The larger of two numbers.
#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// One side of a cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// S(L, L).
    pub own: f64,
    /// |L|.
    pub weight: f64,
}

impl Side {
    #[inline(always)]
    fn alone(&self) -> f64 {
        share(self.own, self.weight)
    }
}

/// What a leaf is, beside its cuts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeafState {
    /// Its cluster.
    pub cluster: usize,
    /// The cluster's part in the objective.
    pub value: f64,
    /// The rest of the cluster: its other leaves.
    pub rest: Cluster,
}

impl LeafState {
    /// Both sides may leave only if that does not empty the cluster.
    pub fn may_empty(&self) -> bool {
        self.rest.n_rows > 0
    }

    /// What the cluster loses by the whole leaf.
    pub fn leaving(&self) -> f64 {
        self.rest.value() - self.value
    }
}

/// Which moves are open this round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    /// Clusters so far.
    pub n_clusters: usize,
    /// New clusters that may still be made.
    pub n_free: usize,
    /// Whether one side may become a new cluster and the other go to an old one, which the paper leaves out.
    pub all_moves: bool,
}

impl Allowed {
    fn mixed(&self) -> bool {
        self.all_moves && self.n_free > 0
    }
}

/// The stocks of a leaf, or of the left sides of its cuts along one column, with the clusters.
#[derive(Debug, Clone, Copy)]
pub struct Adverse<'a> {
    /// S(N, C_c) of the whole leaf.
    pub leaf: f64,
    /// S(L, C_c) of each cut.
    pub left: &'a [f64],
}

/// Largest values over the cuts of a leaf along one column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Best {
    /// Of the star gain.
    pub star: f64,
    /// Of f(L) + f(R): the double star gain without its source.
    pub alone: f64,
}

impl Best {
    /// Nothing found.
    pub const NONE: Best = Best { star: f64::NEG_INFINITY, alone: f64::NEG_INFINITY };

    /// The larger of both.
    pub fn max(self, other: Best) -> Best {
        Best { star: self.star.max(other.star), alone: self.alone.max(other.alone) }
    }
}

/// Largest gains over the cuts of a leaf of moves to old clusters, or bounds on them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reach {
    /// Of switches.
    pub switch: f64,
    /// Of moves of both sides with at least one to an old cluster; a bound, because both may want the same one.
    pub pair: f64,
}

impl Reach {
    /// Nothing found.
    pub const NONE: Reach = Reach { switch: f64::NEG_INFINITY, pair: f64::NEG_INFINITY };

    /// The larger of both.
    pub fn max(self, other: Reach) -> Reach {
        Reach { switch: self.switch.max(other.switch), pair: self.pair.max(other.pair) }
    }
}

/// For every cut, at least the most that any old cluster wins by the left side, and by the right side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offers {
    left: Vec<f64>,
    right: Vec<f64>,
}

impl Offers {
    /// No offers yet for `n` cuts.
    pub fn clear(&mut self, n: usize) {
        for offers in [&mut self.left, &mut self.right] {
            offers.clear();
            offers.resize(n, f64::NEG_INFINITY);
        }
    }
}

/// The largest number, in lanes of their own, which the compiler turns into vector instructions.
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

/// Numbers per cut, written in plain loops that the compiler turns into vector instructions.
#[derive(Debug, Default)]
pub struct Scratch([Vec<f64>; 2]);

impl Scratch {
    fn of_length(&mut self, n: usize) -> [&mut [f64]; 2] {
        self.0.each_mut().map(|numbers| {
            numbers.resize(n, 0.0);
            &mut numbers[..n]
        })
    }
}

/// An old cluster, and what it wins by the left side, and by the right side of a cut.
pub type Join = (usize, [f64; 2]);

/// The gains along one column of a leaf.
pub struct Column<'a> {
    cuts: &'a Cuts,
    leaf: LeafState,
    adverse: Adverse<'a>,
}

impl<'a> Column<'a> {
    /// `adverse`: the stocks with the rest of the leaf's own cluster.
    pub fn new(cuts: &'a Cuts, leaf: LeafState, adverse: Adverse<'a>) -> Self {
        debug_assert_eq!(adverse.left.len(), cuts.n_left.len());
        Column { cuts, leaf, adverse }
    }

    /// The cuts' sides as slices of one length, which spares the loops over them all checks.
    fn slices(&self) -> [[&[f64]; 2]; 2] {
        let n = self.cuts.n_left.len();
        let Cuts { weight, own, .. } = self.cuts;
        [own, weight].map(|numbers| numbers.each_ref().map(|numbers| &numbers[..n]))
    }

    fn sides(&self, cut: usize) -> [Side; 2] {
        let Cuts { weight, own, .. } = self.cuts;
        [0, 1].map(|side| Side { own: own[side][cut], weight: weight[side][cut] })
    }

    /// What the source loses by the left side, and by the right side; `with`: the stock of the left side with the rest.
    #[inline(always)]
    fn sources(&self, [left, right]: [Side; 2], with: f64) -> [f64; 2] {
        let LeafState { rest, value, .. } = self.leaf;
        [
            rest.joined(self.adverse.leaf - with, right.own, right.weight) - value,
            rest.joined(with, left.own, left.weight) - value,
        ]
    }

    /// The best moves that need no other cluster.
    pub fn best(&self, scratch: &mut Scratch) -> Best {
        let n = self.cuts.n_left.len();
        let [own, weight] = self.slices();
        let with_rest = &self.adverse.left[..n];
        let [star, alone] = scratch.of_length(n);
        for i in 0..n {
            let sides = [0, 1].map(|s| Side { own: own[s][i], weight: weight[s][i] });
            let [leave_left, leave_right] = self.sources(sides, with_rest[i]);
            let [left, right] = sides.map(|side| side.alone());
            star[i] = larger(leave_left + left, leave_right + right);
            alone[i] = left + right;
        }
        Best { star: largest(star), alone: largest(alone) }
    }

    /// Lets an old cluster bid for the sides of the cuts.
    pub fn offer(&self, target: &Cluster, adverse: Adverse<'_>, offers: &mut Offers) {
        let n = self.cuts.n_left.len();
        let [own, weight] = self.slices();
        let with = &adverse.left[..n];
        let (left, right) = (&mut offers.left[..n], &mut offers.right[..n]);
        for i in 0..n {
            let sides = [0, 1].map(|s| Side { own: own[s][i], weight: weight[s][i] });
            let [join_left, join_right] = target.joins(sides, with[i], adverse.leaf);
            left[i] = larger(join_left, left[i]);
            right[i] = larger(join_right, right[i]);
        }
    }

    /// What the best offers come to.
    pub fn reach(&self, offers: &Offers, allowed: Allowed, scratch: &mut Scratch) -> Reach {
        let n = self.cuts.n_left.len();
        let [own, weight] = self.slices();
        let with_rest = &self.adverse.left[..n];
        let (left, right) = (&offers.left[..n], &offers.right[..n]);
        let [switch, pair] = scratch.of_length(n);
        for i in 0..n {
            let sides = [0, 1].map(|s| Side { own: own[s][i], weight: weight[s][i] });
            let [leave_left, leave_right] = self.sources(sides, with_rest[i]);
            switch[i] = larger(leave_left + left[i], leave_right + right[i]);
            pair[i] = left[i] + right[i];
        }
        if allowed.mixed() {
            for i in 0..n {
                let [l, r] = self.sides(i).map(|side| side.alone());
                pair[i] = larger(pair[i], larger(l + right[i], left[i] + r));
            }
        }
        Reach { switch: largest(switch), pair: self.leaf.leaving() + largest(pair) }
    }

    /// The best move of both sides out of the cluster with at least one to an old cluster, if it gains at least
    /// `floor`.
    pub fn best_pair(
        &self,
        targets: &[(usize, Cluster, Adverse<'_>)],
        allowed: Allowed,
        offers: &Offers,
        floor: f64,
    ) -> f64 {
        let leaving = self.leaf.leaving();
        let mut best = f64::NEG_INFINITY;
        for cut in 0..self.cuts.n_left.len() {
            let (mut left, mut right) = (offers.left[cut], offers.right[cut]);
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

    fn pair_at(&self, cut: usize, targets: &[(usize, Cluster, Adverse<'_>)], mixed: bool) -> f64 {
        let sides = self.sides(cut);
        let [mut left, mut right] = [TopTwo::default(), TopTwo::default()];
        for (cluster, target, adverse) in targets {
            let [join_left, join_right] = target.joins(sides, adverse.left[cut], adverse.leaf);
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

    /// No move at the cut gains more. `offers`: none if no old cluster is worth a look.
    pub fn bound_at(&self, cut: usize, offers: Option<&Offers>, allowed: Allowed) -> f64 {
        let sides = self.sides(cut);
        let [leave_left, leave_right] = self.sources(sides, self.adverse.left[cut]);
        let [alone_left, alone_right] = sides.map(|side| side.alone());
        let (mut left, mut right) = match offers {
            Some(offers) => (offers.left[cut], offers.right[cut]),
            None => (f64::NEG_INFINITY, f64::NEG_INFINITY),
        };
        if allowed.n_free > 0 {
            (left, right) = (larger(left, alone_left), larger(right, alone_right));
        }
        let one = larger(leave_left + left, leave_right + right);
        if self.leaf.may_empty() { larger(one, self.leaf.leaving() + (left + right)) } else { one }
    }

    /// What the old clusters win by the sides of a cut; `with`: their stocks with the left side, and with the leaf.
    pub fn joins(&self, cut: usize, targets: &[(usize, Cluster, [f64; 2])]) -> Vec<Join> {
        let sides = self.sides(cut);
        let join = |&(cluster, target, [left, leaf]): &(usize, Cluster, [f64; 2])| {
            (cluster, target.joins(sides, left, leaf))
        };
        targets.iter().map(join).collect()
    }

    /// The first move at a cut, in the order of moves, that gains at least `floor`, and its gain.
    pub fn first_move(
        &self,
        cut: usize,
        joins: &[Join],
        allowed: Allowed,
        floor: f64,
    ) -> Option<(Move, f64)> {
        let (stays, may_empty) = (self.leaf.cluster, self.leaf.may_empty());
        let Allowed { n_clusters: new, n_free, .. } = allowed;
        let leave_both = self.leaf.leaving();
        let sides = self.sides(cut);
        let [leave_left, leave_right] = self.sources(sides, self.adverse.left[cut]);
        let [alone_left, alone_right] = sides.map(|side| side.alone());

        let stars = [
            (Kind::Star, new, stays, leave_left + alone_left),
            (Kind::Star, stays, new, leave_right + alone_right),
        ];
        let double = (Kind::DoubleStar, new, new + 1, leave_both + (alone_left + alone_right));
        let left_switches =
            joins.iter().map(|&(c, [join, _])| (Kind::Switch, c, stays, leave_left + join));
        let right_switches =
            joins.iter().map(|&(c, [_, join])| (Kind::Switch, stays, c, leave_right + join));
        let reallocations = joins.iter().flat_map(|&(l, [left, _])| {
            let others = joins.iter().filter(move |&&(r, _)| r != l);
            others.map(move |&(r, [_, right])| {
                (Kind::Reallocation, l, r, leave_both + (left + right))
            })
        });
        let right_old = joins
            .iter()
            .map(|&(c, [_, join])| (Kind::Mixed, new, c, leave_both + (alone_left + join)));
        let left_old = joins
            .iter()
            .map(|&(c, [join, _])| (Kind::Mixed, c, new, leave_both + (join + alone_right)));

        let if_may = |holds: bool| usize::from(holds) * usize::MAX;
        stars
            .into_iter()
            .take(if_may(n_free > 0))
            .chain((n_free > 1 && may_empty).then_some(double))
            .chain(left_switches)
            .chain(right_switches)
            .chain(reallocations.take(if_may(may_empty)))
            .chain(right_old.chain(left_old).take(if_may(allowed.mixed() && may_empty)))
            .find(|&(.., gain)| gain >= floor)
            .map(|(kind, left, right, gain)| (Move { kind, left, right }, gain))
    }
}

/// The two largest values, of different clusters.
struct TopTwo {
    first: (f64, usize),
    second: (f64, usize),
}

impl Default for TopTwo {
    fn default() -> Self {
        TopTwo { first: (f64::NEG_INFINITY, usize::MAX), second: (f64::NEG_INFINITY, usize::MAX) }
    }
}

impl TopTwo {
    fn take(&mut self, value: f64, cluster: usize) {
        if value > self.first.0 {
            self.second = self.first;
            self.first = (value, cluster);
        } else if value > self.second.0 {
            self.second = (value, cluster);
        }
    }

    /// The largest sum of values of different clusters.
    fn best_with(&self, other: &TopTwo) -> f64 {
        if self.first.1 != other.first.1 {
            self.first.0 + other.first.0
        } else {
            (self.first.0 + other.second.0).max(self.second.0 + other.first.0)
        }
    }
}
