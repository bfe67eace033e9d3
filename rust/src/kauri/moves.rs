//! The moves of a split, in the order that decides between equal gains.
//!
//! | paper (section 3.3) | here | left side | right side |
//! |---|---|---|---|
//! | star | [`MoveKind::Star`] | new, or stays | stays, or new |
//! | double star | [`MoveKind::DoubleStar`] | new | new |
//! | switch | [`MoveKind::Switch`] | existing, or stays | stays, or existing |
//! | reallocation | [`MoveKind::Reallocation`] | existing | another existing |
//! | - | [`MoveKind::Mixed`] | new, or existing | existing, or new |
//!
//! *Stays*: in the leaf's own cluster. Moves of both sides need rows that remain there, else the cluster would become
//! empty. Of the moves at a cut whose gains are tied the first is taken: by the rows of this table, within a row as
//! it is written, then by ascending cluster numbers.

use super::gains::CutGains;

/// How the two sides of a split change clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveKind {
    /// One side becomes a new cluster, the other stays.
    Star,
    /// Both become new clusters.
    DoubleStar,
    /// One side goes to an existing cluster, the other stays.
    Switch,
    /// Both go to different existing clusters.
    Reallocation,
    /// One side becomes a new cluster, the other goes to an existing one; not in the paper.
    Mixed,
}

/// Where the two sides go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The paper's name.
    pub kind: MoveKind,
    /// Cluster of the left side.
    pub left: usize,
    /// Cluster of the right side.
    pub right: usize,
}

/// The moves that a round may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowedMoves {
    /// Number of clusters.
    pub n_clusters: usize,
    /// Number of clusters that may still be made.
    pub n_free: usize,
    /// Whether [`MoveKind::Mixed`] is allowed.
    pub all_moves: bool,
}

impl AllowedMoves {
    /// Whether one side may become a new cluster and the other go to an existing one.
    pub(super) fn mixed(&self) -> bool {
        self.all_moves && self.n_free > 0
    }
}

/// An existing cluster, and its target terms for the left and for the right side of a cut.
pub type JoinGains = (usize, [f64; 2]);

impl CutGains<'_> {
    /// Returns the first move at a cut, in the order of moves, that gains at least `floor`, and its gain.
    pub fn first_move(
        &self,
        cut: usize,
        joins: &[JoinGains],
        allowed: AllowedMoves,
        floor: f64,
    ) -> Option<(Move, f64)> {
        let (stays, has_rest) = (self.leaf.cluster, self.leaf.has_rest());
        let AllowedMoves { n_clusters: new, n_free, .. } = allowed;
        let leave_both = self.leaf.leaving();
        let sides = self.sides(cut);
        let [leave_left, leave_right] = self.sources(sides, self.cross.left[cut]);
        let [alone_left, alone_right] = sides.map(|side| side.alone());

        let stars = [
            (MoveKind::Star, new, stays, leave_left + alone_left),
            (MoveKind::Star, stays, new, leave_right + alone_right),
        ];
        let double_star =
            (MoveKind::DoubleStar, new, new + 1, leave_both + (alone_left + alone_right));
        let left_switches =
            joins.iter().map(|&(c, [join, _])| (MoveKind::Switch, c, stays, leave_left + join));
        let right_switches =
            joins.iter().map(|&(c, [_, join])| (MoveKind::Switch, stays, c, leave_right + join));
        let reallocations = joins.iter().flat_map(|&(l, [left, _])| {
            let others = joins.iter().filter(move |&&(r, _)| r != l);
            others.map(move |&(r, [_, right])| {
                (MoveKind::Reallocation, l, r, leave_both + (left + right))
            })
        });
        let right_existing = joins
            .iter()
            .map(|&(c, [_, join])| (MoveKind::Mixed, new, c, leave_both + (alone_left + join)));
        let left_existing = joins
            .iter()
            .map(|&(c, [join, _])| (MoveKind::Mixed, c, new, leave_both + (join + alone_right)));

        let all_if = |is_allowed: bool| usize::from(is_allowed) * usize::MAX;
        stars
            .into_iter()
            .take(all_if(n_free > 0))
            .chain((n_free > 1 && has_rest).then_some(double_star))
            .chain(left_switches)
            .chain(right_switches)
            .chain(reallocations.take(all_if(has_rest)))
            .chain(right_existing.chain(left_existing).take(all_if(allowed.mixed() && has_rest)))
            .find(|&(.., gain)| gain >= floor)
            .map(|(kind, left, right, gain)| (Move { kind, left, right }, gain))
    }
}

/// The two largest values, of different clusters.
pub(super) struct TopTwo {
    /// Value and cluster.
    pub(super) first: (f64, usize),
    second: (f64, usize),
}

impl Default for TopTwo {
    fn default() -> Self {
        TopTwo { first: (f64::NEG_INFINITY, usize::MAX), second: (f64::NEG_INFINITY, usize::MAX) }
    }
}

impl TopTwo {
    /// Takes a value of one more cluster.
    pub(super) fn take(&mut self, value: f64, cluster: usize) {
        if value > self.first.0 {
            self.second = self.first;
            self.first = (value, cluster);
        } else if value > self.second.0 {
            self.second = (value, cluster);
        }
    }

    /// Returns the largest sum of a value of either, of different clusters.
    pub(super) fn best_with(&self, other: &TopTwo) -> f64 {
        if self.first.1 != other.first.1 {
            self.first.0 + other.first.0
        } else {
            (self.first.0 + other.second.0).max(self.second.0 + other.first.0)
        }
    }
}
