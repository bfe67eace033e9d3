//! Surrogate cost of cuts with two ends: rows with lower <= x <= upper go left, the others right (Fleissner, Vankadara
//! and Ghoshdastidar 2024, *Explaining Kernel Clustering via Decision Trees*, definition 2 and equation 6, there for
//! Kernel ExKMC; here for any label costs).
//!
//! | formula | here |
//! |---|---|
//! | `P_t[l]`, regret of label l over the first t groups | `Intervals::prefix` |
//! | (a, b], the groups inside | `[start, stop)` |
//! | inside gets the label l, outside j | `Intervals::pairs` |
//!
//! The cost of "inside has label l, outside j" is `T[j] + (P_b[l] - P_b[j]) - (P_a[l] - P_a[j])`, T being the totals.
//! So for each pair of labels a running maximum over a gives the best interval that ends at b: O(k^2) per group in
//! place of the O(k n) of enumeration. With `min_samples_leaf` the maximum runs over a window, kept in a monotone
//! queue.
//!
//! Where the node has rows with a missing cell, they lie outside or inside, and `M[j]` or `M[l]`, what they cost the label
//! there, is added. Which side is better does not depend on the interval, so that one search, with the less of the two,
//! serves both as long as `min_samples_leaf` is 1. Columns of levels have the cuts of [`super::sums`].
//!
//! Where exact sums are known ([`Groups::exact`]), the search names the intervals that may be the best, and these are
//! compared on exact differences.
//!
//! Memory: 8 k bytes per group. Scores are in the unit of the costs, as those of thresholds.

use super::label_cost::{CheapestLabel, LabelCost, Regrets};
use super::sums::{AdditiveNode, SLACK, SideCost};
use super::{Candidate, Criterion, Cut, Gap, Groups, MissingRows, NodeScale, RowSums, range_of};
use crate::memory;

/// The surrogate cost with interval cuts.
#[derive(Debug)]
pub struct IntervalCost<'c, 'a>(&'c LabelCost<'a>);

impl<'c, 'a> IntervalCost<'c, 'a> {
    /// The same regrets and `min_samples_leaf` as `threshold`.
    pub fn new(threshold: &'c LabelCost<'a>) -> Self {
        IntervalCost(threshold)
    }

    /// The node of `n_rows` rows whose regrets add up to `totals`.
    pub fn node(&self, totals: &[f64], n_rows: usize) -> AdditiveNode {
        self.0.node(totals, n_rows)
    }

    /// The searches that together find the best scores.
    fn searches<'n>(
        &'n self,
        node: &'n AdditiveNode,
        groups: Groups<'n>,
    ) -> impl Iterator<Item = Intervals<'n, 'a>> {
        let one = self.0.min_samples_leaf() == 1 && groups.exact.is_none();
        self.on_sides(node, groups, if one { &[MissingSide::Cheaper] } else { &BOTH })
    }

    /// The search with the missing rows outside and, if there are any, that with them inside.
    fn directions<'n>(
        &'n self,
        node: &'n AdditiveNode,
        groups: Groups<'n>,
    ) -> impl Iterator<Item = Intervals<'n, 'a>> {
        self.on_sides(node, groups, &BOTH)
    }

    /// A search for each of the `sides` of missing rows; one if there are none.
    fn on_sides<'n>(
        &'n self,
        node: &'n AdditiveNode,
        groups: Groups<'n>,
        sides: &'static [MissingSide],
    ) -> impl Iterator<Item = Intervals<'n, 'a>> {
        let (values, missing) = groups.split_missing(self.rows().width());
        let sides = if missing.is_some() { sides } else { &sides[..1] };
        sides.iter().map(move |&side| Intervals::new(self.0, node, values, missing, side))
    }

    /// The cut of missing cells against all others.
    fn missing_cut(&self, node: &AdditiveNode, groups: Groups<'_>) -> Option<Candidate> {
        let (values, missing) = groups.split_missing(self.rows().width());
        missing.and_then(|rows| self.0.missing_cut(node, self.0.cost_of_values(values), rows))
    }
}

/// Where the missing rows of a node lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MissingSide {
    Outside,
    Inside,
    /// Where they cost less. Only scores have a meaning then.
    Cheaper,
}

/// In the order of ties.
const BOTH: [MissingSide; 2] = [MissingSide::Outside, MissingSide::Inside];

impl<'a> Criterion for IntervalCost<'_, 'a> {
    type Rows = Regrets<'a>;
    type Node = AdditiveNode;

    fn rows(&self) -> &Regrets<'a> {
        self.0.rows()
    }

    fn totals<'n>(&self, node: &'n AdditiveNode) -> &'n [f64] {
        self.0.totals(node)
    }

    fn may_subtract(&self, node: &AdditiveNode, minuend: &[f64]) -> bool {
        self.0.may_subtract(node, minuend)
    }

    fn scale(&self, node: &AdditiveNode) -> NodeScale {
        self.0.scale(node)
    }

    fn bounds(&self, node: &AdditiveNode, groups: Groups<'_>, inside: &mut [f64]) -> f64 {
        if groups.form.is_levels {
            return self.0.bounds(node, groups, inside);
        }
        inside.fill(f64::NEG_INFINITY);
        let best = self.searches(node, groups).map(|search| search.bounds(inside));
        best.chain(self.missing_cut(node, groups).map(|cut| cut.score))
            .fold(f64::NEG_INFINITY, f64::max)
    }

    /// O(k n^2): the definition, for tests. The search takes the methods below, O(k^2 n) each.
    fn sweep(&self, node: &AdditiveNode, groups: Groups<'_>, mut visit: impl FnMut(Candidate)) {
        if groups.form.is_levels {
            return self.0.sweep(node, groups, visit);
        }
        let searches: Vec<Intervals<'_, '_>> = self.directions(node, groups).collect();
        let n = searches[0].n();
        for (start, stop) in (0..n).flat_map(|start| (start..n).map(move |stop| (start, stop))) {
            for search in searches.iter().filter(|search| search.stops(start).contains(&stop)) {
                visit(search.candidate(start, stop));
            }
        }
        self.missing_cut(node, groups).into_iter().for_each(visit);
    }

    fn best_score(&self, node: &AdditiveNode, groups: Groups<'_>) -> f64 {
        if groups.form.is_levels {
            return self.0.best_score(node, groups);
        }
        let best = self.searches(node, groups).map(|search| search.best());
        best.chain(self.missing_cut(node, groups).map(|cut| cut.score))
            .fold(f64::NEG_INFINITY, f64::max)
    }

    fn best_key(&self, _: &AdditiveNode, _: Groups<'_>, _: f64) -> f64 {
        0.0 // no second key
    }

    fn mark_ends(&self, node: &AdditiveNode, groups: Groups<'_>, floor: f64, marks: &mut [bool]) {
        if !groups.form.is_levels {
            self.searches(node, groups).for_each(|search| search.mark_ends(floor, marks));
        }
    }

    /// As for thresholds: a cut saves at most what the node costs.
    fn most(&self, node: &AdditiveNode) -> f64 {
        self.0.most(node)
    }

    /// Zeros are on one side of an interval, too: all of them inside, or all outside.
    fn most_beside_zeros(&self, node: &AdditiveNode, feature: usize, zeros: &[f64]) -> f64 {
        self.0.most_beside_zeros(node, feature, zeros)
    }

    fn first_cut(
        &self,
        node: &AdditiveNode,
        groups: Groups<'_>,
        floor: f64,
        key_floor: f64,
    ) -> Option<Cut> {
        if groups.form.is_levels {
            return self.0.first_cut(node, groups, floor, key_floor);
        }
        let first = |search: Intervals<'_, '_>| {
            search.first(floor).map(|(ends, cut)| (ends, search.side, cut))
        };
        let found = self.directions(node, groups).filter_map(first);
        let first = found.min_by_key(|&(ends, side, _)| (ends, side));
        let missing = || self.missing_cut(node, groups).filter(|cut| cut.score >= floor);
        first.map(|(_, _, cut)| cut).or_else(|| missing().map(|cut| cut.cut))
    }
}

/// The interval search over the non-empty groups 0..n: an interval is the groups `[start, stop)`, `stop < n`, since
/// `[start, n)` is the complement of the threshold `[0, start)`.
struct Intervals<'c, 'a> {
    criterion: &'c LabelCost<'a>,
    node: &'c AdditiveNode,
    groups: Groups<'c>,
    /// The non-empty groups.
    filled: Vec<usize>,
    /// prefix[l][g]: regret of label l over the first g groups, capped (see [`Intervals::new`]).
    prefix: Vec<Vec<f64>>,
    /// Rows in the first g groups.
    rows: Vec<usize>,
    /// Number of missing rows, by label what they cost, capped, and where they lie.
    n_missing: usize,
    missing: Vec<f64>,
    missing_rows: Option<MissingRows<'c>>,
    side: MissingSide,
}

impl<'c, 'a> Intervals<'c, 'a> {
    /// Sums over an interval are differences of prefix sums, which would drown small costs in one huge regret.
    /// A group on a side whose label costs it more than the whole node does now makes the cut worthless, so group
    /// sums are capped just above the node's cost: worthless stays worthless, all else is unchanged.
    fn new(
        criterion: &'c LabelCost<'a>,
        node: &'c AdditiveNode,
        groups: Groups<'c>,
        missing: Option<MissingRows<'c>>,
        side: MissingSide,
    ) -> Self {
        let mut filled: Vec<usize> =
            memory::reserved(groups.len(), "the costs of a column's intervals");
        filled.extend(groups.filled());
        let cap = node.cost * (1.0 + SLACK);
        let prefix = (0..criterion.rows().width())
            .map(|l| {
                let mut sums =
                    memory::reserved(filled.len() + 1, "the costs of a column's intervals");
                sums.push(0.0);
                // A sum and what rounding has left of it.
                let (mut sum, mut rest) = (0.0, 0.0);
                for &group in &filled {
                    let next = groups.row(group, criterion.rows().width())[l].min(cap);
                    let before = sum;
                    sum += next;
                    let added = sum - before;
                    rest += (before - (sum - added)) + (next - added);
                    sums.push(if rest.is_finite() { sum + rest } else { sum });
                }
                sums
            })
            .collect();
        let mut rows = memory::reserved(filled.len() + 1, "the costs of a column's intervals");
        rows.push(0);
        for (i, &group) in filled.iter().enumerate() {
            rows.push(rows[i] + groups.count[group] as usize);
        }
        let (n_missing, missing_rows) = (missing.map_or(0, |rows| rows.count), missing);
        let capped = |rows: MissingRows<'c>| rows.sums.iter().map(|sum| sum.min(cap)).collect();
        let missing = missing.map_or_else(|| vec![0.0; criterion.rows().width()], capped);
        Intervals {
            criterion,
            node,
            groups,
            filled,
            prefix,
            rows,
            n_missing,
            missing,
            missing_rows,
            side,
        }
    }

    /// Number of non-empty groups.
    fn n(&self) -> usize {
        self.filled.len()
    }

    /// The range of starts allowed for `stop`; both ends grow with `stop`.
    fn starts(&self, stop: usize) -> std::ops::Range<usize> {
        let m = self.criterion.min_samples_leaf();
        let [inside, outside] = self.n_fixed();
        let outside_right = self.rows[self.n()] - self.rows[stop] + outside;
        let first = self.rows.partition_point(|&r| r + outside_right < m);
        // At least one group lies inside.
        let past = self.rows[..=stop].partition_point(|&r| r + m <= self.rows[stop] + inside);
        let past = past.min(stop);
        first..past
    }

    /// The range of stops allowed for `start`; both ends grow with `start`.
    fn stops(&self, start: usize) -> std::ops::Range<usize> {
        let m = self.criterion.min_samples_leaf();
        let [inside, outside] = self.n_fixed();
        let total = self.rows[self.n()] + outside;
        let first = self.rows.partition_point(|&r| r + inside < self.rows[start] + m);
        let past = self.rows.partition_point(|&r| r + m <= total + self.rows[start]);
        first.max(start + 1)..past.min(self.n())
    }

    /// The number of missing rows inside and outside.
    fn n_fixed(&self) -> [usize; 2] {
        match self.side {
            MissingSide::Outside => [0, self.n_missing],
            MissingSide::Inside => [self.n_missing, 0],
            MissingSide::Cheaper => [0, 0], // any number is enough
        }
    }

    /// What the missing rows cost if the inside has the label l and the outside j.
    fn of_missing(&self, l: usize, j: usize) -> f64 {
        match self.side {
            MissingSide::Outside => self.missing[j],
            MissingSide::Inside => self.missing[l],
            MissingSide::Cheaper => self.missing[l].min(self.missing[j]),
        }
    }

    /// The ordered pairs of two labels: of the inside, and of the outside.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let k = self.criterion.rows().width();
        (0..k).flat_map(move |l| (0..k).filter(move |&j| j != l).map(move |j| (l, j)))
    }

    /// The regret of a label over all groups.
    fn total(&self, label: usize) -> f64 {
        self.prefix[label][self.n()]
    }

    /// The cost of the best interval with each stop; infinity where none is allowed.
    fn best_by_stop(&self) -> Vec<f64> {
        let window = |stop| if stop == 0 { 0..0 } else { self.starts(stop) };
        let windows =
            memory::collected((0..self.n()).map(window), "the costs of a column's intervals");
        self.best_by_end(&windows, |inside, outside| inside - outside)
    }

    /// The cost of the best interval with each start; infinity where none is allowed.
    fn best_by_start(&self) -> Vec<f64> {
        let windows = memory::collected(
            (0..self.n()).map(|start| self.stops(start)),
            "the costs of a column's intervals",
        );
        self.best_by_end(&windows, |inside, outside| outside - inside)
    }

    /// The cost of the best interval with each end whose other end lies in its window; infinity where that is empty.
    ///
    /// `added(inside, outside)` is what the groups before an end add to the cost of an interval that ends there, where
    /// the labels inside and outside have these prefix sums. With its sign changed it is what they add at the other
    /// end, so the best other end is the one where it is largest. O(k^2 n).
    fn best_by_end(
        &self,
        windows: &[std::ops::Range<usize>],
        added: impl Fn(f64, f64) -> f64,
    ) -> Vec<f64> {
        let mut best = memory::filled(f64::INFINITY, self.n(), "the costs of a column's intervals");
        let mut change: Vec<f64> = memory::zeros(self.n(), "the costs of a column's intervals");
        for (l, j) in self.pairs() {
            let (inside, outside) = (&self.prefix[l], &self.prefix[j]);
            for (g, change) in change.iter_mut().enumerate() {
                *change = added(inside[g], outside[g]);
            }
            let total = self.total(j) + self.of_missing(l, j);
            sliding_max(&change, windows, |end, largest| {
                best[end] = best[end].min(total + change[end] - largest);
            });
        }
        best
    }

    /// As [`Criterion::best_score`].
    fn best(&self) -> f64 {
        if self.groups.exact.is_none() {
            return self.node.cost - CheapestLabel.cost(&self.best_by_stop());
        }
        let by_start = self.best_by_start();
        let scores = self.near(&by_start, self.rough_floor(&by_start));
        scores.map(|[start, stop]| self.score(start, stop)).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The intervals that may be the best score at least this on capped sums.
    fn rough_floor(&self, by_start: &[f64]) -> f64 {
        self.node.cost - CheapestLabel.cost(by_start) - 2.0 * self.slack()
    }

    /// What scores from capped sums, added as doubles, may be off by.
    fn slack(&self) -> f64 {
        self.criterion.scale(self.node).own_slack + self.rounding()
    }

    /// The intervals that score at least `floor` on capped sums, in the order of ties. `by_start`: the least cost of the
    /// intervals with each start.
    fn near(&self, by_start: &[f64], floor: f64) -> impl Iterator<Item = [usize; 2]> {
        let is_good = move |start: &usize| self.node.cost - by_start[*start] >= floor;
        (0..self.n()).filter(is_good).flat_map(move |start| {
            let stops = self.stops(start).filter(move |&stop| self.rough(start, stop) >= floor);
            stops.map(move |stop| [start, stop])
        })
    }

    /// As [`Criterion::mark_ends`]: an end is marked if some interval with it is good enough.
    fn mark_ends(&self, floor: f64, marks: &mut [bool]) {
        let mut mark = |end: usize, cost: f64| {
            if self.node.cost - cost >= floor - self.rounding() {
                for g in [end.wrapping_sub(1), end] {
                    if let Some(&group) = self.filled.get(g) {
                        marks[group] = true;
                    }
                }
            }
        };
        self.best_by_stop().into_iter().enumerate().for_each(|(stop, cost)| mark(stop, cost));
        self.best_by_start().into_iter().enumerate().for_each(|(start, cost)| mark(start, cost));
    }

    /// How far the scores of one interval may differ between the two passes and the direct evaluation, in the unit of
    /// the costs: a few roundings of the largest prefix sum.
    fn rounding(&self) -> f64 {
        let totals = (0..self.criterion.rows().width()).map(|l| self.total(l) + self.missing[l]);
        let largest = totals.fold(0.0, f64::max);
        8.0 * f64::EPSILON * largest
    }

    /// The first start with an interval that scores at least `floor`, and its first stop; with the cut.
    fn first(&self, floor: f64) -> Option<([usize; 2], Cut)> {
        let best = self.best_by_start();
        if self.groups.exact.is_some() {
            let rough_floor = self.rough_floor(&best).min(floor - self.slack());
            let mut near = self.near(&best, rough_floor);
            return near
                .find(|&[start, stop]| self.score(start, stop) >= floor)
                .map(|ends| (ends, self.candidate(ends[0], ends[1]).cut));
        }
        let rounding = self.rounding();
        let good_starts =
            (0..self.n()).filter(|&start| self.node.cost - best[start] >= floor - rounding);
        good_starts.into_iter().find_map(|start| {
            let good = |stop: &usize| self.score(start, *stop) >= floor - 2.0 * rounding;
            let stop = self.stops(start).find(good)?;
            Some(([start, stop], self.candidate(start, stop).cut))
        })
    }

    /// The interval `[start, stop)` of groups.
    fn candidate(&self, start: usize, stop: usize) -> Candidate {
        let gap = |end: usize| {
            let (below, above) = (self.filled[end - 1], self.filled[end]);
            Gap { below: self.groups.high[below], above: self.groups.low[above] }
        };
        let lower = (start > 0).then(|| gap(start));
        let group = |g: usize| self.filled.get(g).copied();
        let below_start = start.checked_sub(1).and_then(group);
        let beside = [below_start, group(start), group(stop - 1), group(stop)];
        let missing_left = (self.n_missing > 0).then_some(self.side == MissingSide::Inside);
        let cut = Cut::range(lower, gap(stop), missing_left);
        Candidate { score: self.score(start, stop), key: 0.0, cut, beside }
    }

    /// What the interval `[start, stop)` is worth.
    fn score(&self, start: usize, stop: usize) -> f64 {
        if self.groups.exact.is_none() {
            return self.rough(start, stop);
        }
        let group = |g: usize| self.filled.get(g).copied().unwrap_or(self.groups.len());
        let (first, last) = (group(start), group(stop));
        let (all, missing) = (self.groups.len(), range_of(self.missing_rows));
        let is_inside = self.side == MissingSide::Inside;
        let [with_inside, with_outside] = if is_inside { [missing, 0..0] } else { [0..0, missing] };
        let mut sums = vec![0.0; self.criterion.rows().width()];
        self.groups.sum_exactly(&mut sums, &[first..last, with_inside]);
        let cost_in = CheapestLabel.cost(&sums);
        self.groups.sum_exactly(&mut sums, &[0..first, last..all, with_outside]);
        self.node.cost - (cost_in + CheapestLabel.cost(&sums))
    }

    /// [`Intervals::score`] on capped sums, added as doubles.
    fn rough(&self, start: usize, stop: usize) -> f64 {
        let inside = |l: usize| self.prefix[l][stop] - self.prefix[l][start];
        let missing = |l: usize, side| if self.side == side { self.missing[l] } else { 0.0 };
        let labels = 0..self.criterion.rows().width();
        let all_inside = |l: usize| inside(l) + missing(l, MissingSide::Inside);
        let outside = |l: usize| (self.total(l) + missing(l, MissingSide::Outside)) - inside(l);
        let cost_in = labels.clone().map(all_inside).fold(f64::INFINITY, f64::min);
        let cost_out = labels.map(outside).fold(f64::INFINITY, f64::min);
        self.node.cost - (cost_in + cost_out)
    }

    /// As [`Criterion::bounds`], raising bounds that are too low. The pair of groups (p, q) stands for all intervals
    /// with one end inside or beside p and the other inside or beside q: they cost at least what lies strictly between
    /// and strictly outside. Where exact sums are known, no bound is below an exact score.
    fn bounds(&self, inside: &mut [f64]) -> f64 {
        let n = self.n();
        let slack = if self.groups.exact.is_some() { self.slack() } else { 0.0 };
        let mut least = vec![f64::INFINITY; n];
        for (l, j) in self.pairs() {
            let (pl, pj) = (&self.prefix[l], &self.prefix[j]);
            let left = |p: usize| pj[p] - pl[p + 1];
            let total = self.total(j) + self.of_missing(l, j);
            let right = |q: usize| pl[q] + (total - pj[q + 1]);
            let mut smallest = f64::INFINITY;
            for p in (0..n).rev() {
                least[p] = least[p].min(left(p) + smallest);
                smallest = smallest.min(right(p));
            }
            smallest = f64::INFINITY;
            for (q, least) in least.iter_mut().enumerate() {
                *least = least.min(right(q) + smallest);
                smallest = smallest.min(left(q));
            }
        }
        let m = self.criterion.min_samples_leaf();
        let n_rows = self.rows[n] + self.n_missing;
        let labels = 0..self.criterion.rows().width();
        let least_missing =
            |j: usize| labels.clone().map(|l| self.of_missing(l, j)).fold(f64::INFINITY, f64::min);
        let least_missing: Vec<f64> = labels.clone().map(least_missing).collect();
        for (p, &group) in self.filled.iter().enumerate() {
            for (j, missing) in least_missing.iter().enumerate() {
                // Both ends inside p, or one of them and the other open.
                let outside = self.prefix[j][p] + (self.total(j) - self.prefix[j][p + 1]);
                least[p] = least[p].min(outside + missing);
            }
            if self.groups.low[group] < self.groups.high[group] && n_rows >= 2 * m {
                inside[group] = inside[group].max(self.node.cost - least[p] + slack);
            }
        }
        self.best()
    }
}

/// Calls `visit(i, maximum of values over windows[i])` for every window that is not empty, in their order. Both ends of
/// the windows never fall from one to the next. O(values + windows): every place enters and leaves the queue once.
fn sliding_max(
    values: &[f64],
    windows: &[std::ops::Range<usize>],
    mut visit: impl FnMut(usize, f64),
) {
    let mut queue: Vec<usize> = Vec::with_capacity(values.len());
    let (mut head, mut next) = (0, 0);
    for (i, window) in windows.iter().enumerate() {
        while next < window.end {
            while queue.len() > head && values[queue[queue.len() - 1]] <= values[next] {
                queue.pop();
            }
            queue.push(next);
            next += 1;
        }
        while head < queue.len() && queue[head] < window.start {
            head += 1;
        }
        if head < queue.len() && !window.is_empty() {
            visit(i, values[queue[head]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criterion::{ColumnForm, OwnGroups};
    use crate::exact::ExactSums;

    /// Whole numbers, so that scores differ by nothing or by 1 (up to the cap of sums).
    #[test]
    fn the_fast_methods_agree_with_the_sweep_over_all_intervals() {
        for seed in 0..400u64 {
            let mut state = seed;
            let mut below = |n: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) % n
            };
            let (n, k) = (2 + below(9) as usize, 2 + below(3) as usize);
            let regrets: Vec<f64> = (0..n * k).map(|_| below(4) as f64).collect();
            let count: Vec<u32> = (0..n).map(|_| u32::from(below(4) > 0)).collect();
            let mut x: Vec<f64> = (0..n).map(|i| i as f64).collect();
            let has_missing = below(2) > 0;
            if has_missing {
                x[n - 1] = f64::NAN;
            }
            let min_samples_leaf = 1 + below(2) as usize;
            let costs = LabelCost::new(&regrets, n, k, min_samples_leaf).unwrap();
            let costs = IntervalCost::new(&costs);
            let groups = Groups {
                feature: 0,
                count: &count,
                sums: &regrets,
                low: &x,
                high: &x,
                form: ColumnForm { is_levels: false, has_missing },
                exact: None,
            };
            let mut totals = vec![0.0; k];
            groups.filled().for_each(|g| costs.rows().add(g as u32, &mut totals));
            let node = costs.node(&totals, groups.filled().count());
            let mut all = vec![];
            costs.sweep(&node, groups, |candidate| all.push(candidate));
            let best = all.iter().map(|c| c.score).fold(f64::NEG_INFINITY, f64::max);
            if all.is_empty() || best < 0.5 {
                assert!(costs.best_score(&node, groups) < 0.5, "{seed}");
                continue;
            }
            assert!((costs.best_score(&node, groups) - best).abs() < 1e-6, "{seed}");
            let floor = best - 0.5;
            let first = all.iter().find(|c| c.score >= floor).map(|c| c.cut);
            assert_eq!(costs.first_cut(&node, groups, floor, 0.0), first, "{seed}");
            let (mut marks, mut expected) = (vec![false; n], vec![false; n]);
            costs.mark_ends(&node, groups, floor, &mut marks);
            let good = all.iter().filter(|c| c.score >= floor);
            good.flat_map(|c| c.beside).flatten().for_each(|g| expected[g] = true);
            assert_eq!(marks, expected, "{seed}");
        }
    }

    /// Groups of values with exact sums up to each, or of bins: the values of a bin follow each other.
    fn groups(x: &[f64], regrets: &[f64], bin: &[usize], has_missing: bool) -> OwnGroups {
        let (n_bins, k) = (bin[bin.len() - 1] + 1, regrets.len() / x.len());
        let mut exact = ExactSums::new((1 + n_bins) * k);
        let mut groups = OwnGroups::default();
        for group in 0..n_bins {
            let rows: Vec<usize> = (0..x.len()).filter(|&row| bin[row] == group).collect();
            for place in rows.iter().flat_map(|&row| (0..k).map(move |l| (row, l))) {
                exact.add((1 + group) * k + place.1, regrets[place.0 * k + place.1]);
            }
            let sums: Vec<f64> = (0..k).map(|l| exact.rounded((1 + group) * k + l)).collect();
            groups.push(rows.len() as u32, x[rows[0]], x[rows[rows.len() - 1]], &sums);
        }
        exact.accumulate(k);
        let form = ColumnForm { is_levels: false, has_missing };
        OwnGroups { form, exact: Some(exact), ..groups }
    }

    /// Of costs of any size, so that bounds round otherwise than scores.
    #[test]
    fn no_interval_scores_more_than_the_bound_of_a_bin_that_an_end_lies_in() {
        let mut n_checked = 0;
        for seed in 0..300u64 {
            let mut state = seed;
            let mut below = |n: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) % n
            };
            let (n, k) = (3 + below(20) as usize, 2 + below(3) as usize);
            let sizes = [1.0, 1e-9, 1e9, 1e150];
            let n_sizes = 1 + below(4);
            let regrets: Vec<f64> = (0..n * k)
                .map(|_| below(1000) as f64 / 7.0 * sizes[below(n_sizes) as usize])
                .collect();
            let mut x: Vec<f64> = (0..n).map(|i| i as f64).collect();
            let has_missing = below(2) > 0;
            let mut bin = vec![0];
            (1..n).for_each(|row| bin.push(bin[row - 1] + usize::from(below(3) == 0)));
            if has_missing {
                x[n - 1] = f64::NAN;
                bin[n - 1] = bin[n - 2] + 1;
            }
            let costs = LabelCost::new(&regrets, n, k, 1 + below(3) as usize).unwrap();
            let costs = IntervalCost::new(&costs);
            let mut totals = ExactSums::new(k);
            regrets.iter().enumerate().for_each(|(i, &regret)| totals.add(i % k, regret));
            let node = costs.node(&totals.all_rounded(), n);
            let of_bins = groups(&x, &regrets, &bin, has_missing);
            let mut inside = vec![0.0; of_bins.count.len()];
            let best = costs.bounds(&node, of_bins.view(0), &mut inside);
            let floor = costs.scale(&node).floor; // lower scores are of no use
            let mut best_between = f64::NEG_INFINITY;
            let all: Vec<usize> = (0..n).collect();
            costs.sweep(&node, groups(&x, &regrets, &all, has_missing).view(0), |candidate| {
                let ends = candidate.beside.as_chunks::<2>().0.iter();
                let hidden: Vec<usize> = ends
                    .filter_map(|&[below, above]| Some([bin[below?], bin[above?]]))
                    .filter(|[below, above]| below == above)
                    .map(|[bin, _]| bin)
                    .collect();
                if hidden.is_empty() {
                    best_between = best_between.max(candidate.score);
                }
                for bin in hidden {
                    assert!(
                        candidate.score <= inside[bin].max(floor),
                        "{seed} {bin} {candidate:?}"
                    );
                    n_checked += 1;
                }
            });
            assert_eq!(best.max(floor), best_between.max(floor), "{seed}");
        }
        assert!(n_checked > 10_000);
    }
}
