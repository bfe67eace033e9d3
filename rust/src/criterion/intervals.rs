//! Surrogate cost: a node costs what its best single label costs (ExKMC; Frost, Moshkovitz and Rashtchian 2020,
//! section 3), and a cut is worth c(node) - c(left) - c(right).
//!
//! | paper | here |
//! |---|---|
//! | cost of giving sample x the center l, less its cheapest | a row of `regrets` |
//! | c(p) = min over l of the sum over p | `LabelCostNode::cost` |
//!
//! A threshold sweep is O(k) per group with sums from the left and from the right (subtracting the left from the
//! total would cancel). An interval sweep keeps, for each pair of labels, a running extreme: O(k^2) per group.

use super::{Criterion, Cut, Gap, Groups, NodeScale};
use crate::error::{Error, Result};

/// The form of a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutKind {
    /// `x <= threshold`.
    Threshold,
    /// `lower <= x <= upper`, open ends included.
    Interval,
}

/// Ties: scores closer than this share of the node's cost are equal.
const TIE: f64 = 1e-12;
/// Trust in histogram sums, as a share of the node's cost.
const SLACK: f64 = 1e-9;
/// Sums may be had by subtraction where the node's cost is at least this share of the largest total subtracted
/// from: rounding of about 1e-15 of that total is then below a tenth of [`SLACK`].
const SUBTRACT: f64 = 1e-5;

/// The surrogate cost over given regrets.
#[derive(Debug)]
pub struct LabelCost<'a> {
    regrets: &'a [f64],
    k: usize,
    kind: CutKind,
    min_samples_leaf: usize,
}

/// A node's totals.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelCostNode {
    /// Regret of every label over the node's rows.
    pub totals: Vec<f64>,
    /// The smallest of them.
    pub cost: f64,
    n_rows: usize,
}

impl<'a> LabelCost<'a> {
    /// `regrets`: n x k, row-major, non-negative.
    ///
    /// # Errors
    /// [`crate::error::Error::Shape`] if `regrets` does not hold n x k numbers.
    pub fn new(
        regrets: &'a [f64],
        n_samples: usize,
        k: usize,
        kind: CutKind,
        min_samples_leaf: usize,
    ) -> Result<Self> {
        Error::check_len("regrets", regrets.len(), n_samples * k, "entries")?;
        Ok(LabelCost { regrets, k, kind, min_samples_leaf: min_samples_leaf.max(1) })
    }

    /// The node of `n_rows` rows whose regrets sum to `totals`.
    pub fn node(&self, totals: &[f64], n_rows: usize) -> LabelCostNode {
        let (cost, _) = best_label(totals);
        LabelCostNode { totals: totals.to_vec(), cost, n_rows }
    }

    /// A cut with `left` of `n_rows` rows on the left is allowed.
    fn allowed(&self, left: usize, n_rows: usize) -> bool {
        left >= self.min_samples_leaf && n_rows - left >= self.min_samples_leaf
    }

    fn fill_fixed<const K: usize>(
        &self,
        rows: &[u32],
        codes: &[u8],
        skip: Option<u8>,
        count: &mut [u32],
        sums: &mut [f64],
    ) {
        let regrets = self.regrets.as_chunks::<K>().0;
        let sums = sums.as_chunks_mut::<K>().0;
        // A code that no bin has: then nothing is skipped.
        let skip = skip.map_or(usize::MAX, usize::from);
        for &row in rows {
            let bin = usize::from(codes[row as usize]);
            if bin == skip {
                continue;
            }
            count[bin] += 1;
            let (sum, regret) = (&mut sums[bin], &regrets[row as usize]);
            for l in 0..K {
                sum[l] += regret[l];
            }
        }
    }

    fn fill_any(
        &self,
        rows: &[u32],
        codes: &[u8],
        skip: Option<u8>,
        count: &mut [u32],
        sums: &mut [f64],
    ) {
        let k = self.k;
        for &row in rows {
            let code = codes[row as usize];
            if Some(code) == skip {
                continue;
            }
            let bin = usize::from(code);
            count[bin] += 1;
            self.add(row, &mut sums[bin * k..][..k]);
        }
    }

    /// Calls `visit(group, rows up to and including it, cost)` for the cut after each non-empty group but the
    /// last, `cost` being the cheapest label of the left plus that of the right.
    fn sweep(&self, groups: Groups<'_>, mut visit: impl FnMut(usize, usize, f64)) {
        let (k, n) = (self.k, groups.len());
        let mut right = vec![0.0; n + 1];
        let mut sums = vec![0.0; k];
        for group in (0..n).rev() {
            if groups.count[group] > 0 {
                add(&mut sums, groups.row(group, k));
                right[group] = min(&sums);
            } else {
                right[group] = right[group + 1];
            }
        }
        sums.fill(0.0);
        let mut left_rows = 0;
        let n_rows: usize = groups.count.iter().map(|&c| c as usize).sum();
        for group in 0..n {
            if groups.count[group] == 0 {
                continue;
            }
            left_rows += groups.count[group] as usize;
            if left_rows == n_rows {
                break;
            }
            add(&mut sums, groups.row(group, k));
            visit(group, left_rows, min(&sums) + right[group + 1]);
        }
    }

    fn threshold_bounds(
        &self,
        node: &LabelCostNode,
        groups: Groups<'_>,
        inside: &mut [f64],
    ) -> f64 {
        let (k, n) = (self.k, groups.len());
        // right[g]: cheapest label over the groups from g on.
        let mut right = vec![0.0; n + 1];
        let mut sums = vec![0.0; k];
        for group in (0..n).rev() {
            if groups.count[group] > 0 {
                add(&mut sums, groups.row(group, k));
                right[group] = min(&sums);
            } else {
                right[group] = right[group + 1];
            }
        }
        sums.fill(0.0);
        let (mut best, mut left_cost, mut left_rows) = (f64::NEG_INFINITY, 0.0, 0);
        for group in 0..n {
            inside[group] = f64::NEG_INFINITY;
            let count = groups.count[group] as usize;
            if count == 0 {
                continue;
            }
            let (before, after) = (left_rows, left_rows + count);
            // Inside the group, at most all but one of its rows lie on either side.
            let fits = after > self.min_samples_leaf
                && node.n_rows - before > self.min_samples_leaf
                && groups.low[group] < groups.high[group];
            if fits && count > 1 {
                inside[group] = node.cost - (left_cost + right[group + 1]);
            }
            add(&mut sums, groups.row(group, k));
            left_cost = min(&sums);
            left_rows = after;
            if left_rows < node.n_rows && self.allowed(left_rows, node.n_rows) {
                best = f64::max(best, node.cost - (left_cost + right[group + 1]));
            }
        }
        best
    }
}

impl Criterion for LabelCost<'_> {
    type Node = LabelCostNode;

    fn width(&self) -> usize {
        self.k
    }

    fn add(&self, row: u32, sums: &mut [f64]) {
        add(sums, &self.regrets[row as usize * self.k..][..self.k]);
    }

    fn fill(
        &self,
        rows: &[u32],
        codes: &[u8],
        skip: Option<u8>,
        count: &mut [u32],
        sums: &mut [f64],
    ) {
        macro_rules! by_width {
            ($($k:literal)*) => {
                match self.k {
                    $($k => self.fill_fixed::<$k>(rows, codes, skip, count, sums),)*
                    _ => self.fill_any(rows, codes, skip, count, sums),
                }
            };
        }
        by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 20 26)
    }

    fn totals<'a>(&self, node: &'a LabelCostNode) -> &'a [f64] {
        &node.totals
    }

    fn may_subtract(&self, node: &LabelCostNode, minuend: &[f64]) -> bool {
        let largest = minuend.iter().copied().fold(0.0, f64::max);
        node.cost >= SUBTRACT * largest
            && node.totals.iter().zip(minuend).all(|(total, from)| *total >= 1e-3 * from)
    }

    fn scale(&self, node: &LabelCostNode) -> NodeScale {
        let cost = node.cost;
        NodeScale { margin: TIE * cost, slack: SLACK * cost, floor: TIE * cost, cost }
    }

    fn bounds(
        &self,
        node: &LabelCostNode,
        _: usize,
        groups: Groups<'_>,
        inside: &mut [f64],
    ) -> f64 {
        match self.kind {
            CutKind::Threshold => self.threshold_bounds(node, groups, inside),
            CutKind::Interval => Intervals::new(self, node, groups).bounds(inside),
        }
    }

    fn best_score(&self, node: &LabelCostNode, _: usize, groups: Groups<'_>) -> f64 {
        match self.kind {
            CutKind::Threshold => {
                let mut best = f64::NEG_INFINITY;
                self.sweep(groups, |_, left_rows, cost| {
                    if self.allowed(left_rows, node.n_rows) {
                        best = f64::max(best, node.cost - cost);
                    }
                });
                best
            }
            CutKind::Interval => Intervals::new(self, node, groups).best(),
        }
    }

    fn mark_ends(
        &self,
        node: &LabelCostNode,
        _: usize,
        groups: Groups<'_>,
        floor: f64,
        marks: &mut [bool],
    ) {
        match self.kind {
            CutKind::Threshold => self.sweep(groups, |group, left_rows, cost| {
                if self.allowed(left_rows, node.n_rows) && node.cost - cost >= floor {
                    marks[group] = true;
                    if let Some(next) = groups.after(group) {
                        marks[next] = true;
                    }
                }
            }),
            CutKind::Interval => Intervals::new(self, node, groups).mark_ends(floor, marks),
        }
    }

    fn first_cut(
        &self,
        node: &LabelCostNode,
        _: usize,
        groups: Groups<'_>,
        floor: f64,
        _: f64,
    ) -> Option<Cut> {
        match self.kind {
            CutKind::Threshold => {
                let mut found = None;
                self.sweep(groups, |group, left_rows, cost| {
                    let good = self.allowed(left_rows, node.n_rows) && node.cost - cost >= floor;
                    if found.is_none() && good {
                        found = Some(group);
                    }
                });
                let group = found?;
                let next = groups.after(group)?;
                let upper = Gap { below: groups.high[group], above: groups.low[next] };
                Some(Cut { lower: None, upper, n_left: 0 })
            }
            CutKind::Interval => Intervals::new(self, node, groups).first(floor),
        }
    }
}

/// The interval search over the non-empty groups 0..n: an interval is the groups `[start, stop)`, `stop < n`, since
/// `[start, n)` is the complement of the threshold `[0, start)`.
struct Intervals<'a> {
    criterion: &'a LabelCost<'a>,
    node: &'a LabelCostNode,
    groups: Groups<'a>,
    /// The non-empty groups.
    filled: Vec<usize>,
    /// prefix[l][g]: regret of label l over the first g groups, capped (see [`Intervals::new`]).
    prefix: Vec<Vec<f64>>,
    /// Rows in the first g groups.
    rows: Vec<usize>,
}

impl<'a> Intervals<'a> {
    /// Sums over an interval are differences of prefix sums, which would drown small costs in one huge regret.
    /// A group on a side whose label costs it more than the whole node does now makes the cut worthless, so group
    /// sums are capped just above the node's cost: worthless stays worthless, all else is unchanged.
    fn new(criterion: &'a LabelCost<'a>, node: &'a LabelCostNode, groups: Groups<'a>) -> Self {
        let filled: Vec<usize> = (0..groups.len()).filter(|&g| groups.count[g] > 0).collect();
        let cap = node.cost * (1.0 + SLACK);
        let prefix = (0..criterion.k)
            .map(|l| {
                let mut sums = Vec::with_capacity(filled.len() + 1);
                sums.push(0.0);
                let mut sum = 0.0;
                for &group in &filled {
                    sum += groups.row(group, criterion.k)[l].min(cap);
                    sums.push(sum);
                }
                sums
            })
            .collect();
        let mut rows = vec![0];
        for (i, &group) in filled.iter().enumerate() {
            rows.push(rows[i] + groups.count[group] as usize);
        }
        Intervals { criterion, node, groups, filled, prefix, rows }
    }

    fn n(&self) -> usize {
        self.filled.len()
    }

    /// The range of starts allowed for `stop`; both ends grow with `stop`.
    fn starts(&self, stop: usize) -> std::ops::Range<usize> {
        let m = self.criterion.min_samples_leaf;
        let outside_right = self.rows[self.n()] - self.rows[stop];
        let first = self.rows.partition_point(|&r| r + outside_right < m);
        let past = self.rows.partition_point(|&r| r + m <= self.rows[stop]);
        first..past
    }

    /// The range of stops allowed for `start`; both ends grow with `start`.
    fn stops(&self, start: usize) -> std::ops::Range<usize> {
        let m = self.criterion.min_samples_leaf;
        let total = self.rows[self.n()];
        let first = self.rows.partition_point(|&r| r < self.rows[start] + m);
        let past = self.rows.partition_point(|&r| r + m <= total + self.rows[start]);
        first..past.min(self.n())
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let k = self.criterion.k;
        (0..k).flat_map(move |l| (0..k).filter(move |&j| j != l).map(move |j| (l, j)))
    }

    fn total(&self, label: usize) -> f64 {
        self.prefix[label][self.n()]
    }

    /// The cost of the best interval with each stop; infinity where none is allowed.
    fn best_by_stop(&self) -> Vec<f64> {
        let windows: Vec<_> =
            (0..self.n()).map(|stop| if stop == 0 { 0..0 } else { self.starts(stop) }).collect();
        let mut best = vec![f64::INFINITY; self.n()];
        let mut gain = vec![0.0; self.n()];
        for (l, j) in self.pairs() {
            let (inside, outside) = (&self.prefix[l], &self.prefix[j]);
            for (g, gain) in gain.iter_mut().enumerate() {
                *gain = inside[g] - outside[g];
            }
            let total = self.total(j);
            sliding_max(&gain, &windows, |stop, largest| {
                best[stop] = best[stop].min(total + (inside[stop] - outside[stop]) - largest);
            });
        }
        best
    }

    /// The cost of the best interval with each start; infinity where none is allowed.
    fn best_by_start(&self) -> Vec<f64> {
        let windows: Vec<_> = (0..self.n()).map(|start| self.stops(start)).collect();
        let mut best = vec![f64::INFINITY; self.n()];
        let mut gain = vec![0.0; self.n()];
        for (l, j) in self.pairs() {
            let (inside, outside) = (&self.prefix[l], &self.prefix[j]);
            for (g, gain) in gain.iter_mut().enumerate() {
                *gain = outside[g] - inside[g];
            }
            let total = self.total(j);
            sliding_max(&gain, &windows, |start, largest| {
                best[start] = best[start].min(total - (inside[start] - outside[start]) - largest);
            });
        }
        best
    }

    fn best(&self) -> f64 {
        self.node.cost - min(&self.best_by_stop())
    }

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

    /// How far the scores of one interval may differ between the two passes and the direct evaluation.
    fn rounding(&self) -> f64 {
        let largest = (0..self.criterion.k).map(|l| self.total(l)).fold(0.0, f64::max);
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
            let stop = self.stops(start).find(good)?;
            let below = |g: usize| self.groups.high[self.filled[g]];
            let above = |g: usize| self.groups.low[self.filled[g]];
            let lower = (start > 0).then(|| Gap { below: below(start - 1), above: above(start) });
            let upper = Gap { below: below(stop - 1), above: above(stop) };
            Some(Cut { lower, upper, n_left: 0 })
        })
    }

    fn score(&self, start: usize, stop: usize) -> f64 {
        let inside = |l: usize| self.prefix[l][stop] - self.prefix[l][start];
        let labels = 0..self.criterion.k;
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
        let m = self.criterion.min_samples_leaf;
        for (p, &group) in self.filled.iter().enumerate() {
            for j in 0..self.criterion.k {
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

/// The maximum of `values` over each window; windows are ranges whose ends never fall. Empty windows are skipped.
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

/// The least of a node's totals, and the lowest label that costs no more than that up to a tie.
pub fn best_label(totals: &[f64]) -> (f64, usize) {
    let cost = min(totals);
    (cost, totals.iter().position(|&t| t <= cost + TIE * cost).unwrap_or(0))
}

fn add(sums: &mut [f64], row: &[f64]) {
    for (sum, x) in sums.iter_mut().zip(row) {
        *sum += x;
    }
}

fn min(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}
