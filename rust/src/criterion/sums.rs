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
//! | M, the rows whose cell is missing | [`MissingRows`] |
//!
//! A [`SideCost`] defines such a criterion. [`Additive`] does the rest, the same for all of them: the
//! sweep, the bounds for cuts inside a group, the tie rule and `min_samples_leaf`.
//!
//! **Cost.** A sweep is O(width) per group and side cost. Both sides are summed from their own end: subtracting the
//! left from the total would cancel. Where exact sums are known ([`Groups::exact`]), both sides are their differences,
//! rounded once.
//!
//! **Bounds.** A cut inside a group leaves on its left all rows before the group and some of the group's, and on its
//! right the others. So it scores at most cost(node) - least(left) - least(right).
//!
//! **Missing cells.** Where the node has any, M is added to the right side of every cut and then to the left one: the
//! same sums, started from M instead of 0. Cuts of levels are in `levels.rs`.

use super::levels::{CostedSet, Levels};
use super::{Candidate, Criterion, Cut, Gap, Groups, MissingRows, NodeScale, RowSums};
use crate::memory;

/// Ties: scores closer than this share of the node's cost are equal.
pub(crate) const TIE: f64 = 1e-12;
/// What histogram sums may be off by, as a share of the node's cost.
pub(crate) const SLACK: f64 = 1e-9;
/// What a row or a group adds, by rounding, to the error of scores from sums of a node's own rows, as a share of its cost:
/// a few roundings.
const ROUNDING: f64 = 1e-15;
/// Groups that are added up after the rows, about.
const MOST_GROUPS: usize = 1024;
/// Sums may be computed by subtraction where the node's cost is at least this share of the largest total subtracted
/// from: rounding of about 1e-15 of that total is then below a tenth of [`SLACK`].
const MIN_COST_SHARE: f64 = 1e-5;
/// And where every total is at least this share of the one subtracted from.
const MIN_TOTAL_SHARE: f64 = 1e-3;

/// Sets of rows whose costs are computed side by side.
pub const TILE: usize = 8;

/// [`SideCost::costs`] of costs that `cost` makes of two numbers, to which `add` adds the next sum, the i-th of a set.
pub(crate) fn costs_in_tiles(
    sums: &[f64],
    costs: &mut [f64],
    add: impl Fn([f64; 2], f64, usize) -> [f64; 2],
    cost: impl Fn([f64; 2]) -> f64,
) {
    let n = costs.len();
    for (tile, costs) in costs.as_chunks_mut::<TILE>().0.iter_mut().enumerate() {
        let [mut first, mut second] = [[0.0; TILE]; 2];
        for (i, of_all) in sums.chunks_exact(n).enumerate() {
            let sums = &of_all.as_chunks::<TILE>().0[tile];
            for at in 0..TILE {
                [first[at], second[at]] = add([first[at], second[at]], sums[at], i);
            }
        }
        for at in 0..TILE {
            costs[at] = cost([first[at], second[at]]);
        }
    }
}

/// What a set of rows costs, by its sums. An empty set costs 0.
pub trait SideCost: Sync {
    /// Whether cuts that gain nothing are taken too, as by criteria that cut on until a node is pure.
    const TAKES_ANY_CUT: bool = false;

    /// Whether sums are costs of labels and a side costs the least of them. The best set of levels is then known by
    /// pairs of labels.
    const IS_OF_LABELS: bool = false;

    /// The cost of rows that add up to `sums`.
    fn cost(&self, sums: &[f64]) -> f64;

    /// The costs of many sets of rows, a multiple of [`TILE`], the same bits as [`SideCost::cost`]. `sums`: those of all
    /// sets side by side, number after number.
    fn costs(&self, sums: &[f64], costs: &mut [f64]) {
        let n = costs.len();
        let mut of_set = vec![0.0; sums.len() / n.max(1)];
        for (i, cost) in costs.iter_mut().enumerate() {
            of_set.iter_mut().zip(sums.chunks(n)).for_each(|(x, of_all)| *x = of_all[i]);
            *cost = self.cost(&of_set);
        }
    }

    /// A lower bound on the cost of every set that holds the rows that add up to `before`, which cost `cost`, and
    /// some of those that add up to `inside`.
    ///
    /// The default is right for costs that never fall when rows are added.
    fn least(&self, before: &[f64], cost: f64, inside: &[f64]) -> f64 {
        let _ = (before, inside);
        cost
    }

    /// As [`SideCost::least`], in fewer steps: perhaps a lower number.
    fn rough_least(&self, before: &[f64], cost: f64, inside: &[f64]) -> f64 {
        self.least(before, cost, inside)
    }

    /// No two sides of some sets of rows save more, against the cost of all; infinity where no bound is known that takes
    /// far fewer steps than to find the best sides. `sets`: the sums of each, which add up to `totals`.
    fn most_saved<'s>(&self, sets: impl Iterator<Item = &'s [f64]>, totals: &[f64]) -> f64 {
        let _ = (sets, totals);
        f64::INFINITY
    }

    /// Margins of a node that costs `cost`. The default: shares of this cost.
    fn scale(&self, totals: &[f64], cost: f64) -> NodeScale {
        let _ = totals;
        let floor = if Self::TAKES_ANY_CUT { f64::NEG_INFINITY } else { TIE * cost };
        let slack = SLACK * cost;
        NodeScale { margin: TIE * cost, slack, own_slack: slack, floor, cost }
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

    /// The sums, cost and number of the rows that a side starts from.
    fn start(&self, missing: Option<MissingRows<'_>>) -> (Vec<f64>, f64, usize) {
        match missing {
            None => (vec![0.0; self.rows.width()], 0.0, 0),
            Some(rows) => (rows.sums.to_vec(), self.side.cost(rows.sums), rows.count),
        }
    }

    /// The cost of all groups from each group on, and of the missing rows on their side; the last entry is that after
    /// all groups. Calls `visit(group, sums, cost)` with the sums and the cost of what lies after each group.
    fn right_costs(
        &self,
        groups: Groups<'_>,
        missing: Option<MissingRows<'_>>,
        mut visit: impl FnMut(usize, &[f64], f64),
    ) -> Vec<f64> {
        let n = groups.len();
        let mut right: Vec<f64> = memory::zeros(n + 1, "the costs of a column's cuts");
        let mut sums;
        (sums, right[n], _) = self.start(missing);
        for group in (0..n).rev() {
            right[group] = right[group + 1];
            if groups.count[group] > 0 {
                visit(group, &sums, right[group]);
                groups.extend(&mut sums, group, group..n, missing);
                right[group] = self.side.cost(&sums);
            }
        }
        right
    }

    /// [`Criterion::bounds`] of the cuts of values with the missing rows on the given sides. `least`: a lower bound, as
    /// [`SideCost::least`].
    fn bounds_of_values(
        &self,
        node: &AdditiveNode,
        groups: Groups<'_>,
        [on_left, on_right]: [Option<MissingRows<'_>>; 2],
        inside: &mut [f64],
        least: impl Fn(&S, &[f64], f64, &[f64]) -> f64,
    ) -> f64 {
        let width = self.rows.width();
        // Only groups with a cut inside need a bound.
        let has_cuts =
            |group: usize| groups.count[group] > 1 && groups.low[group] < groups.high[group];
        // `inside` holds the bound on the right side's cost until the left side's is known.
        let right = self.right_costs(groups, on_right, |group, after, cost| {
            if has_cuts(group) {
                inside[group] = least(&self.side, after, cost, groups.row(group, width));
            }
        });
        let (mut sums, mut left_cost, mut left_rows) = self.start(on_left);
        let mut best = f64::NEG_INFINITY;
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
                let left_least = least(&self.side, &sums, left_cost, row);
                inside[group] = node.cost - (left_least + right_least);
            }
            groups.extend(&mut sums, group, 0..group + 1, on_left);
            left_cost = self.side.cost(&sums);
            left_rows = after;
            if left_rows < node.n_rows && self.is_allowed(left_rows, node.n_rows) {
                best = f64::max(best, node.cost - (left_cost + right[group + 1]));
            }
        }
        best
    }

    /// [`Criterion::sweep`] over the cuts of values, each with the missing rows on every one of the given sides: where
    /// they lie on the left, and where on the right. Returns for each what all values and the missing rows on the right cost.
    fn sweep_values<const N: usize>(
        &self,
        node: &AdditiveNode,
        groups: Groups<'_>,
        directions: [[Option<MissingRows<'_>>; 2]; N],
        mut visit: impl FnMut(Candidate),
    ) -> [f64; N] {
        let right =
            directions.map(|[_, on_right]| self.right_costs(groups, on_right, |_, _, _| {}));
        let mut left = directions.map(|[on_left, _]| self.start(on_left));
        let mut last = None;
        for group in groups.filled() {
            for ((direction, (sums, _, left_rows)), right) in
                directions.iter().zip(&mut left).zip(&right)
            {
                if let Some(before) = last
                    && self.is_allowed(*left_rows, node.n_rows)
                {
                    let score = node.cost - (self.side.cost(sums) + right[group]);
                    let gap = Gap { below: groups.high[before], above: groups.low[group] };
                    let missing_left = (N > 1).then(|| direction[0].is_some());
                    let cut = Cut::range(None, gap, missing_left);
                    visit(Candidate {
                        score,
                        key: 0.0,
                        cut,
                        beside: [last, Some(group), None, None],
                    });
                }
                *left_rows += groups.count[group] as usize;
                groups.extend(sums, group, 0..group + 1, direction[0]);
            }
            last = Some(group);
        }
        right.map(|right| right[0])
    }

    /// What rows without a missing cell cost.
    pub(super) fn cost_of_values(&self, values: Groups<'_>) -> f64 {
        self.right_costs(values, None, |_, _, _| {})[0]
    }

    /// The cut of missing cells against all others, which cost `others`, if it is allowed.
    pub(super) fn missing_cut(
        &self,
        node: &AdditiveNode,
        others: f64,
        missing: MissingRows<'_>,
    ) -> Option<Candidate> {
        let score = node.cost - (self.side.cost(missing.sums) + others);
        let cut = Candidate { score, key: 0.0, cut: Cut::missing(), beside: [None; 4] };
        self.is_allowed(missing.count, node.n_rows).then_some(cut)
    }

    /// The levels of a column at a node.
    fn levels<'g>(&self, node: &AdditiveNode, groups: Groups<'g>) -> Levels<'g> {
        let margin = self.scale(node).margin;
        Levels::new(groups, self.rows.width(), self.min_samples_leaf, margin)
    }

    /// The cuts of a column of levels that may be the best, in the order of the tie rule.
    fn level_cuts(
        &self,
        node: &AdditiveNode,
        groups: Groups<'_>,
    ) -> impl Iterator<Item = Candidate> + use<R, S> {
        let levels = self.levels(node, groups);
        let sets = if S::IS_OF_LABELS {
            levels.by_pairs()
        } else {
            levels.by_shares(self.rows.is_exact(), |sums, costs| self.side.costs(sums, costs))
        };
        let has_missing = groups.split_missing(self.rows.width()).1.is_some();
        let cost_of_node = node.cost;
        sets.into_iter().map(move |(cost, set): CostedSet| {
            let cut = Cut::of_levels(set, has_missing);
            Candidate { score: cost_of_node - cost, key: 0.0, cut, beside: [None; 4] }
        })
    }

    /// The best score of the cuts of a column of levels, the sets of which are not needed.
    fn best_of_levels(&self, node: &AdditiveNode, groups: Groups<'_>) -> f64 {
        let levels = self.levels(node, groups);
        let least = if S::IS_OF_LABELS {
            levels.least_by_pairs()
        } else {
            levels.least_by_shares(self.rows.is_exact(), |sums, costs| self.side.costs(sums, costs))
        };
        node.cost - least
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
        let mut scale = self.side.scale(&node.totals, node.cost);
        let most = (node.n_rows + MOST_GROUPS) as f64 * ROUNDING * scale.cost;
        scale.own_slack = if self.rows.is_exact() { 0.0 } else { scale.own_slack.min(most) };
        scale
    }

    fn bounds(&self, node: &AdditiveNode, groups: Groups<'_>, inside: &mut [f64]) -> f64 {
        if groups.form.is_levels {
            inside.fill(f64::NEG_INFINITY);
            return self.best_of_levels(node, groups);
        }
        let (values, missing) = groups.split_missing(self.rows.width());
        let (inside, of_missing) = inside.split_at_mut(values.len());
        of_missing.fill(f64::NEG_INFINITY);
        // With the missing rows on the right, the cut behind all values is that of missing cells against all others.
        let best = self.bounds_of_values(node, values, [None, missing], inside, S::least);
        if missing.is_none() {
            return best;
        }
        let mut with_left = vec![0.0; inside.len()];
        // Rough bounds on top of exact ones: few groups are opened in vain.
        let sides = [missing, None];
        let of_left = self.bounds_of_values(node, values, sides, &mut with_left, S::rough_least);
        let best = best.max(of_left);
        inside.iter_mut().zip(with_left).for_each(|(a, b)| *a = a.max(b));
        best
    }

    fn most_of_levels(&self, node: &AdditiveNode, groups: Groups<'_>) -> f64 {
        let sets = groups.filled().map(|group| groups.row(group, self.rows.width()));
        self.side.most_saved(sets, &node.totals)
    }

    fn sweep(&self, node: &AdditiveNode, groups: Groups<'_>, mut visit: impl FnMut(Candidate)) {
        if groups.form.is_levels {
            return self.level_cuts(node, groups).for_each(visit);
        }
        match groups.split_missing(self.rows.width()) {
            (values, None) => {
                self.sweep_values(node, values, [[None, None]], visit);
            }
            (values, missing @ Some(rows)) => {
                let directions = [[None, missing], [missing, None]];
                let [_, others] = self.sweep_values(node, values, directions, &mut visit);
                self.missing_cut(node, others, rows).into_iter().for_each(visit);
            }
        }
    }

    fn known_best(&self, node: &AdditiveNode, groups: Groups<'_>) -> Option<(f64, f64)> {
        groups.form.is_levels.then(|| (self.best_of_levels(node, groups), 0.0))
    }

    fn best_key(&self, _: &AdditiveNode, _: Groups<'_>, _: f64) -> f64 {
        0.0 // no second key
    }

    /// Costs of labels are not negative: a cut saves at most what the node costs.
    fn most(&self, node: &AdditiveNode) -> f64 {
        if S::IS_OF_LABELS { node.cost } else { f64::INFINITY }
    }

    /// Nor what it costs beyond the zeros, which cost their side at least as much as alone.
    fn most_beside_zeros(&self, node: &AdditiveNode, _: usize, zeros: &[f64]) -> f64 {
        if S::IS_OF_LABELS { node.cost - self.side.cost(zeros) } else { f64::INFINITY }
    }
}

/// Adds a row of sums to others.
#[inline]
pub(crate) fn add(sums: &mut [f64], row: &[f64]) {
    for (sum, x) in sums.iter_mut().zip(row) {
        *sum += x;
    }
}
