//! Additive criteria: a cut is worth cost(node) - cost(left) - cost(right), and a side's cost depends on nothing but
//! what the side's rows add up to.
//!
//! | in formulas | here |
//! |---|---|
//! | what row i adds up to | [`RowSums`] |
//! | s(S), the sum over the rows S | `sums` |
//! | c(s), the cost of a side | [`SideCost::cost`] |
//! | least c(s) over B <= s <= B + b, by component | [`SideCost::least`] |
//! | m, rows that each side must have | `min_samples_leaf` |
//!
//! A [`SideCost`] defines such a criterion. [`Additive`] does the rest, the same for all of them: the
//! sweep, the bounds for cuts inside a group, the tie rule and `min_samples_leaf`.
//!
//! **Cost.** A sweep is O(width) per group and side cost. Both sides are summed from their own end: subtracting the
//! left from the total would cancel.
//!
//! **Bounds.** A cut inside a group leaves on its left all rows before the group and some of the group's, and on its
//! right the others. So it scores at most cost(node) - least(left) - least(right).

use super::{Candidate, Criterion, Cut, Gap, Groups, NodeScale, RowSums};
use crate::memory;

/// Ties: scores closer than this share of the node's cost are equal.
pub(crate) const TIE: f64 = 1e-12;
/// What histogram sums may be off by, as a share of the node's cost.
pub(crate) const SLACK: f64 = 1e-9;
/// Sums may be computed by subtraction where the node's cost is at least this share of the largest total subtracted
/// from: rounding of about 1e-15 of that total is then below a tenth of [`SLACK`].
const MIN_COST_SHARE: f64 = 1e-5;
/// And where every total is at least this share of the one subtracted from.
const MIN_TOTAL_SHARE: f64 = 1e-3;

/// What a set of rows costs, by its sums. An empty set costs 0.
pub trait SideCost: Sync {
    /// Whether cuts that gain nothing are taken too, as by criteria that cut on until a node is pure.
    const TAKES_ANY_CUT: bool = false;

    /// The cost of rows that add up to `sums`.
    fn cost(&self, sums: &[f64]) -> f64;

    /// A lower bound on the cost of every set that holds the rows that add up to `before`, which cost `cost`, and
    /// some of those that add up to `inside`.
    ///
    /// The default is right for costs that never fall when rows are added.
    fn least(&self, before: &[f64], cost: f64, inside: &[f64]) -> f64 {
        let _ = (before, inside);
        cost
    }

    /// Margins of a node that costs `cost`. The default: shares of this cost.
    fn scale(&self, totals: &[f64], cost: f64) -> NodeScale {
        let _ = totals;
        let floor = if Self::TAKES_ANY_CUT { f64::NEG_INFINITY } else { TIE * cost };
        NodeScale { margin: TIE * cost, slack: SLACK * cost, floor, cost }
    }

    /// Whether inexact sums of a node with these `totals` may be computed as `minuend` minus other sums.
    fn may_subtract(&self, totals: &[f64], cost: f64, minuend: &[f64]) -> bool {
        let largest = minuend.iter().copied().fold(0.0, f64::max);
        cost >= MIN_COST_SHARE * largest
            && totals.iter().zip(minuend).all(|(total, from)| *total >= MIN_TOTAL_SHARE * from)
    }
}

/// The criterion of a side cost on what rows add up to.
#[derive(Debug)]
pub struct Additive<R, S> {
    rows: R,
    side: S,
    min_samples_leaf: usize,
}

/// A node of an additive criterion.
#[derive(Debug, Clone, PartialEq)]
pub struct AdditiveNode {
    /// What the node's rows add up to.
    pub totals: Vec<f64>,
    /// What they cost.
    pub cost: f64,
    /// Number of rows.
    pub n_rows: usize,
}

impl<R: RowSums, S: SideCost> Additive<R, S> {
    /// Cuts leave at least `min_samples_leaf` rows (and one) on either side.
    pub fn on(rows: R, side: S, min_samples_leaf: usize) -> Self {
        Additive { rows, side, min_samples_leaf: min_samples_leaf.max(1) }
    }

    /// Fewest rows on either side of a cut, at least 1.
    pub fn min_samples_leaf(&self) -> usize {
        self.min_samples_leaf
    }

    /// The node of `n_rows` rows that add up to `totals`.
    pub fn node(&self, totals: &[f64], n_rows: usize) -> AdditiveNode {
        AdditiveNode { totals: totals.to_vec(), cost: self.side.cost(totals), n_rows }
    }

    /// Whether a cut may leave `left` of `n_rows` rows on the left.
    fn is_allowed(&self, left: usize, n_rows: usize) -> bool {
        left >= self.min_samples_leaf && n_rows - left >= self.min_samples_leaf
    }

    /// The cost of all groups from each group on; the last entry, after all groups, is 0. Calls
    /// `visit(group, sums, cost)` with the sums and the cost of all groups after each.
    fn right_costs(
        &self,
        groups: Groups<'_>,
        mut visit: impl FnMut(usize, &[f64], f64),
    ) -> Vec<f64> {
        let (width, n) = (self.rows.width(), groups.len());
        let mut right: Vec<f64> = memory::zeros(n + 1, "the costs of a column's cuts");
        let mut sums = vec![0.0; width];
        for group in (0..n).rev() {
            right[group] = right[group + 1];
            if groups.count[group] > 0 {
                visit(group, &sums, right[group]);
                add(&mut sums, groups.row(group, width));
                right[group] = self.side.cost(&sums);
            }
        }
        right
    }
}

impl<R: RowSums, S: SideCost> Criterion for Additive<R, S> {
    type Rows = R;
    type Node = AdditiveNode;

    fn rows(&self) -> &R {
        &self.rows
    }

    fn totals<'a>(&self, node: &'a AdditiveNode) -> &'a [f64] {
        &node.totals
    }

    fn may_subtract(&self, node: &AdditiveNode, minuend: &[f64]) -> bool {
        self.rows.is_exact() || self.side.may_subtract(&node.totals, node.cost, minuend)
    }

    fn scale(&self, node: &AdditiveNode) -> NodeScale {
        self.side.scale(&node.totals, node.cost)
    }

    fn bounds(&self, node: &AdditiveNode, groups: Groups<'_>, inside: &mut [f64]) -> f64 {
        let width = self.rows.width();
        // Only groups with a cut inside need a bound.
        let has_cuts =
            |group: usize| groups.count[group] > 1 && groups.low[group] < groups.high[group];
        // `inside` holds the bound on the right side's cost until the left side's is known.
        let right = self.right_costs(groups, |group, after, cost| {
            if has_cuts(group) {
                inside[group] = self.side.least(after, cost, groups.row(group, width));
            }
        });
        let mut sums = vec![0.0; width];
        let (mut best, mut left_cost, mut left_rows) = (f64::NEG_INFINITY, 0.0, 0);
        for group in 0..groups.len() {
            let right_least = std::mem::replace(&mut inside[group], f64::NEG_INFINITY);
            let count = groups.count[group] as usize;
            if count == 0 {
                continue;
            }
            let row = groups.row(group, width);
            let (before, after) = (left_rows, left_rows + count);
            // Inside the group, at most all but one of its rows lie on either side.
            let fits =
                after > self.min_samples_leaf && node.n_rows - before > self.min_samples_leaf;
            if fits && has_cuts(group) {
                let left_least = self.side.least(&sums, left_cost, row);
                inside[group] = node.cost - (left_least + right_least);
            }
            add(&mut sums, row);
            left_cost = self.side.cost(&sums);
            left_rows = after;
            if left_rows < node.n_rows && self.is_allowed(left_rows, node.n_rows) {
                best = f64::max(best, node.cost - (left_cost + right[group + 1]));
            }
        }
        best
    }

    fn sweep(&self, node: &AdditiveNode, groups: Groups<'_>, mut visit: impl FnMut(Candidate)) {
        let width = self.rows.width();
        let right = self.right_costs(groups, |_, _, _| {});
        let mut sums = vec![0.0; width];
        let (mut left_rows, mut last) = (0, None);
        for group in groups.filled() {
            if let Some(before) = last
                && self.is_allowed(left_rows, node.n_rows)
            {
                let score = node.cost - (self.side.cost(&sums) + right[group]);
                let gap = Gap { below: groups.high[before], above: groups.low[group] };
                let beside = [last, Some(group), None, None];
                visit(Candidate { score, key: 0.0, cut: Cut::threshold(gap), beside });
            }
            left_rows += groups.count[group] as usize;
            add(&mut sums, groups.row(group, width));
            last = Some(group);
        }
    }

    fn best_key(&self, _: &AdditiveNode, _: Groups<'_>, _: f64) -> f64 {
        0.0 // no second key
    }
}

/// Adds a row of sums to others.
#[inline]
pub(crate) fn add(sums: &mut [f64], row: &[f64]) {
    for (sum, x) in sums.iter_mut().zip(row) {
        *sum += x;
    }
}
