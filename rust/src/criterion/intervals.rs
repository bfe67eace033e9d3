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
//! Memory: 8 k bytes per group. Scores are in the unit of the costs, as those of thresholds.

use super::label_cost::{CheapestLabel, LabelCost, Regrets};
use super::sums::{AdditiveNode, SLACK, SideCost};
use super::{Candidate, Criterion, Cut, Gap, Groups, NodeScale, RowSums};
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
}

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
        Intervals::new(self.0, node, groups).bounds(inside)
    }

    /// O(k n^2): the definition, for tests. The search takes the methods below, O(k^2 n) each.
    fn sweep(&self, node: &AdditiveNode, groups: Groups<'_>, mut visit: impl FnMut(Candidate)) {
        let intervals = Intervals::new(self.0, node, groups);
        for start in 0..intervals.n() {
            intervals.stops(start).for_each(|stop| visit(intervals.candidate(start, stop)));
        }
    }

    fn best_score(&self, node: &AdditiveNode, groups: Groups<'_>) -> f64 {
        Intervals::new(self.0, node, groups).best()
    }

    fn best_key(&self, _: &AdditiveNode, _: Groups<'_>, _: f64) -> f64 {
        0.0 // no second key
    }

    fn mark_ends(&self, node: &AdditiveNode, groups: Groups<'_>, floor: f64, marks: &mut [bool]) {
        Intervals::new(self.0, node, groups).mark_ends(floor, marks);
    }

    fn first_cut(
        &self,
        node: &AdditiveNode,
        groups: Groups<'_>,
        floor: f64,
        _: f64,
    ) -> Option<Cut> {
        Intervals::new(self.0, node, groups).first(floor)
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
}

impl<'c, 'a> Intervals<'c, 'a> {
    /// Sums over an interval are differences of prefix sums, which would drown small costs in one huge regret.
    /// A group on a side whose label costs it more than the whole node does now makes the cut worthless, so group
    /// sums are capped just above the node's cost: worthless stays worthless, all else is unchanged.
    fn new(criterion: &'c LabelCost<'a>, node: &'c AdditiveNode, groups: Groups<'c>) -> Self {
        let mut filled: Vec<usize> =
            memory::reserved(groups.len(), "the costs of a column's intervals");
        filled.extend(groups.filled());
        let cap = node.cost * (1.0 + SLACK);
        let prefix = (0..criterion.rows().width())
            .map(|l| {
                let mut sums =
                    memory::reserved(filled.len() + 1, "the costs of a column's intervals");
                sums.push(0.0);
                let mut sum = 0.0;
                for &group in &filled {
                    sum += groups.row(group, criterion.rows().width())[l].min(cap);
                    sums.push(sum);
                }
                sums
            })
            .collect();
        let mut rows = memory::reserved(filled.len() + 1, "the costs of a column's intervals");
        rows.push(0);
        for (i, &group) in filled.iter().enumerate() {
            rows.push(rows[i] + groups.count[group] as usize);
        }
        Intervals { criterion, node, groups, filled, prefix, rows }
    }

    /// Number of non-empty groups.
    fn n(&self) -> usize {
        self.filled.len()
    }

    /// The range of starts allowed for `stop`; both ends grow with `stop`.
    fn starts(&self, stop: usize) -> std::ops::Range<usize> {
        let m = self.criterion.min_samples_leaf();
        let outside_right = self.rows[self.n()] - self.rows[stop];
        let first = self.rows.partition_point(|&r| r + outside_right < m);
        let past = self.rows.partition_point(|&r| r + m <= self.rows[stop]);
        first..past
    }

    /// The range of stops allowed for `start`; both ends grow with `start`.
    fn stops(&self, start: usize) -> std::ops::Range<usize> {
        let m = self.criterion.min_samples_leaf();
        let total = self.rows[self.n()];
        let first = self.rows.partition_point(|&r| r < self.rows[start] + m);
        let past = self.rows.partition_point(|&r| r + m <= total + self.rows[start]);
        first..past.min(self.n())
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
            let total = self.total(j);
            sliding_max(&change, windows, |end, largest| {
                best[end] = best[end].min(total + change[end] - largest);
            });
        }
        best
    }

    /// As [`Criterion::best_score`].
    fn best(&self) -> f64 {
        self.node.cost - CheapestLabel.cost(&self.best_by_stop())
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
        let largest = (0..self.criterion.rows().width()).map(|l| self.total(l)).fold(0.0, f64::max);
        8.0 * f64::EPSILON * largest
    }

    /// The first start with an interval that scores at least `floor`, and its first stop.
    fn first(&self, floor: f64) -> Option<Cut> {
        let rounding = self.rounding();
        let best = self.best_by_start();
        let good_starts =
            (0..self.n()).filter(|&start| self.node.cost - best[start] >= floor - rounding);
        good_starts.into_iter().find_map(|start| {
            let good = |stop: &usize| self.score(start, *stop) >= floor - 2.0 * rounding;
            self.stops(start).find(good).map(|stop| self.candidate(start, stop).cut)
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
        let cut = Cut { lower, upper: gap(stop), centers: None };
        Candidate { score: self.score(start, stop), key: 0.0, cut, beside }
    }

    /// What the interval `[start, stop)` is worth.
    fn score(&self, start: usize, stop: usize) -> f64 {
        let inside = |l: usize| self.prefix[l][stop] - self.prefix[l][start];
        let labels = 0..self.criterion.rows().width();
        let cost_in = labels.clone().map(inside).fold(f64::INFINITY, f64::min);
        let cost_out = labels.map(|l| self.total(l) - inside(l)).fold(f64::INFINITY, f64::min);
        self.node.cost - (cost_in + cost_out)
    }

    /// As [`Criterion::bounds`]. The pair of groups (p, q) stands for all intervals with one end inside or beside
    /// p and the other inside or beside q: they cost at least what lies strictly between and strictly outside.
    fn bounds(&self, inside: &mut [f64]) -> f64 {
        let n = self.n();
        let mut least = vec![f64::INFINITY; n];
        for (l, j) in self.pairs() {
            let (pl, pj) = (&self.prefix[l], &self.prefix[j]);
            let left = |p: usize| pj[p] - pl[p + 1];
            let right = |q: usize| pl[q] + (self.total(j) - pj[q + 1]);
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
        inside.fill(f64::NEG_INFINITY);
        let m = self.criterion.min_samples_leaf();
        for (p, &group) in self.filled.iter().enumerate() {
            for j in 0..self.criterion.rows().width() {
                // Both ends inside p, or one of them and the other open.
                let outside = self.prefix[j][p] + (self.total(j) - self.prefix[j][p + 1]);
                least[p] = least[p].min(outside);
            }
            if self.groups.low[group] < self.groups.high[group] && self.rows[n] >= 2 * m {
                inside[group] = self.node.cost - least[p];
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

    /// Whole numbers, so that scores differ by nothing or by 1 (up to the cap of sums).
    #[test]
    fn the_fast_methods_agree_with_the_sweep_over_all_intervals() {
        for seed in 0..200u64 {
            let mut state = seed;
            let mut below = |n: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) % n
            };
            let (n, k) = (2 + below(9) as usize, 2 + below(3) as usize);
            let regrets: Vec<f64> = (0..n * k).map(|_| below(4) as f64).collect();
            let count: Vec<u32> = (0..n).map(|_| u32::from(below(4) > 0)).collect();
            let x: Vec<f64> = (0..n).map(|i| i as f64).collect();
            let min_samples_leaf = 1 + below(2) as usize;
            let costs = LabelCost::new(&regrets, n, k, min_samples_leaf).unwrap();
            let costs = IntervalCost::new(&costs);
            let groups = Groups { feature: 0, count: &count, sums: &regrets, low: &x, high: &x };
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
}
