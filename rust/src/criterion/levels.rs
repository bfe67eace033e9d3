//! The best sets of levels of a column.
//!
//! | formula | here |
//! |---|---|
//! | S_v, what the node's rows of level v add up to | `sums` |
//! | V, the levels present at the node, missing cells as one more code, the last | `codes` |
//! | m, rows that each side must have | `min_rows` |
//!
//! **Label costs** (`by_pairs`). If the left side gets the label l and the right side j, every level goes where
//! it costs less: the best set is {v : S_v[j] - S_v[l] > margin}. So the best of all 2^V sets is the best of k (k - 1),
//! in O(V k^2). Where the best set of a pair leaves fewer than m rows on a side, a dynamic programme over row counts
//! finds the best one that does not, in O(V m) a pair; above `MOST_EXACT` rows, the best set of a sweep over the levels
//! in order of (S_v[l] - S_v[j]) per row is taken instead.
//!
//! **Label counts** (`by_shares`) have no such formula: the sets are those of one level, and those of the
//! sweeps over the levels in order of each label's share, O(V k) sets. With two labels these hold the best set of Gini
//! and entropy (Breiman, Friedman, Olshen and Stone 1984, section 4.2).
//!
//! **Ties.** Of sets within the margin of the best, the one of fewest levels comes first, then the one of the first
//! codes. A set and its complement are one cut; only where a pair's ties leave a set no complement is it taken as it
//! is.

use std::cmp::Ordering;

use super::Groups;
use super::sums::{TILE, add};
use crate::table::MISSING_LEVEL;
use crate::tree::LevelSet;

/// Most rows per side that a set is chosen for exactly.
pub(super) const MOST_EXACT: usize = 64;

/// A set of levels that go left and what its two sides cost; [`MISSING_LEVEL`] stands for missing cells.
pub(crate) type CostedSet = (f64, LevelSet);

/// The levels present at a node.
pub(crate) struct Levels<'a> {
    /// Ascending; [`MISSING_LEVEL`] for missing cells.
    pub(super) codes: Vec<u8>,
    /// Rows of each.
    rows: Vec<usize>,
    /// What these rows add up to.
    pub(super) sums: Vec<&'a [f64]>,
    n_rows: usize,
    /// Fewest rows on either side, at least 1.
    min_rows: usize,
    /// Sets that cost at most so much more than the best are tied.
    margin: f64,
}

/// The sets within the margin of the best so far.
struct Best {
    margin: f64,
    least: f64,
    sets: Vec<CostedSet>,
}

impl Best {
    fn offer(&mut self, cost: f64, set: impl FnOnce() -> LevelSet) {
        if cost <= self.least + self.margin {
            self.least = self.least.min(cost);
            self.sets.push((cost, set()));
        }
    }

    /// In the order of ties, each set once.
    fn sorted(mut self) -> Vec<CostedSet> {
        let most = self.least + self.margin;
        self.sets.retain(|(cost, _)| *cost <= most);
        self.sets.sort_by(|a, b| in_order(&a.1, &b.1).then(a.0.total_cmp(&b.0)));
        self.sets.dedup_by_key(|(_, set)| *set);
        self.sets
    }
}

/// What both sides of sets of levels cost, infinity for those that are not allowed.
struct SharesCosts {
    /// By the place of the level that is the left side.
    of_one: Vec<f64>,
    /// By label: places in an order, and the costs with the first 1, 2, ... of them on the left.
    sweeps: Vec<(Vec<u8>, Vec<f64>)>,
}

/// The least of the costs of sets of one level and of sweeps.
fn least_of(of_one: &[f64], sweeps: &[(Vec<u8>, Vec<f64>)]) -> f64 {
    let costs = sweeps.iter().flat_map(|(_, costs)| costs).chain(of_one);
    costs.copied().fold(f64::INFINITY, f64::min)
}

/// The sum of `of(a, b)` over pairs of entries, in four sums side by side.
pub(super) fn sum_of(a: &[f64], b: &[f64], of: impl Fn(f64, f64) -> f64) -> f64 {
    let ((a4, a), (b4, b)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    let mut lanes = [0.0; 4];
    for (a, b) in a4.iter().zip(b4) {
        for i in 0..4 {
            lanes[i] += of(a[i], b[i]);
        }
    }
    let rest: f64 = a.iter().zip(b).map(|(a, b)| of(*a, *b)).sum();
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + rest
}

/// Fewer levels first, then the first codes.
pub(super) fn in_order(a: &LevelSet, b: &LevelSet) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.codes().cmp(b.codes()))
}

impl<'a> Levels<'a> {
    /// The levels among `groups` that hold rows, which add up to `width` numbers.
    pub(crate) fn new(groups: Groups<'a>, width: usize, min_rows: usize, margin: f64) -> Self {
        let mut levels =
            Levels { codes: vec![], rows: vec![], sums: vec![], n_rows: 0, min_rows, margin };
        for group in (0..groups.len()).filter(|&group| groups.count[group] > 0) {
            let code = groups.low[group];
            levels.codes.push(if code.is_nan() { MISSING_LEVEL } else { code as u8 });
            levels.rows.push(groups.count[group] as usize);
            levels.sums.push(&groups.sums[group * width..][..width]);
            levels.n_rows += groups.count[group] as usize;
        }
        levels
    }

    fn best(&self) -> Best {
        Best { margin: self.margin, least: f64::INFINITY, sets: vec![] }
    }

    fn is_allowed(&self, n_left: usize) -> bool {
        n_left >= self.min_rows && self.n_rows - n_left >= self.min_rows
    }

    /// The set of the levels at the places where `goes_left` is true.
    pub(super) fn set(&self, goes_left: &[bool]) -> LevelSet {
        let left = self.codes.iter().zip(goes_left).filter(|(_, left)| **left);
        left.map(|(&code, _)| code).collect()
    }

    /// The best sets of label costs: a side costs what its label costs on it. A set that puts no row on a side saves
    /// nothing and is none of them.
    pub(crate) fn by_pairs(&self) -> Vec<CostedSet> {
        self.best_by_pairs(f64::INFINITY).sorted()
    }

    /// [`Levels::by_pairs`] if these cost less than `below`; else none, or sets that do not.
    pub(crate) fn by_pairs_below(&self, below: f64) -> Vec<CostedSet> {
        self.best_by_pairs(below).sorted()
    }

    /// What the best set of [`Levels::by_pairs`] costs; infinity if there is none.
    pub(super) fn least_by_pairs(&self) -> f64 {
        self.best_by_pairs(f64::INFINITY).least
    }

    fn best_by_pairs(&self, below: f64) -> Best {
        let k = self.sums.first().map_or(0, |sums| sums.len());
        let by_label = |l: usize| self.sums.iter().map(|sums| sums[l]).collect::<Vec<f64>>();
        let by_label: Vec<Vec<f64>> = (0..k).map(by_label).collect();
        // No set of a pair costs less than if every level cost the less of the two.
        let least = |l: usize, j: usize| sum_of(&by_label[l], &by_label[j], f64::min);
        let pairs = (0..k).flat_map(|l| (0..l).map(move |j| (l, j)));
        let mut pairs: Vec<_> = pairs.map(|(l, j)| (least(l, j), l, j)).collect();
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut best, mut forbidden) = (Best { least: below, ..self.best() }, vec![]);
        let mut goes_left = vec![false; self.codes.len()];
        for (least, l, j) in pairs.into_iter().flat_map(|(x, l, j)| [(x, l, j), (x, j, l)]) {
            // Twice the margin: the sums are rounded in another order.
            if least > best.least + 2.0 * self.margin {
                break;
            }
            let (mut cost, mut n_left) = (0.0, 0);
            for ((left, sums), rows) in goes_left.iter_mut().zip(&self.sums).zip(&self.rows) {
                *left = sums[j] - sums[l] > self.margin;
                cost += if *left { sums[l] } else { sums[j] };
                n_left += if *left { *rows } else { 0 };
            }
            if self.is_allowed(n_left) {
                best.offer(cost, || self.set(&goes_left));
            } else if 0 < n_left && n_left < self.n_rows {
                forbidden.push((cost, l, j));
            }
        }
        // The cheapest first: a pair whose forbidden set costs more than an allowed one is not looked at.
        forbidden.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (cost, l, j) in forbidden {
            if cost > best.least + self.margin {
                break;
            }
            let found = if self.min_rows <= MOST_EXACT {
                self.exact_set(l, j)
            } else {
                self.swept_set(l, j)
            };
            if let Some((cost, set)) = found {
                best.offer(cost, || set);
            }
        }
        best
    }

    /// The cheapest allowed set if the left side has the label l and the right side j; of equal ones the first. The
    /// programme holds, of the levels so far, the best set for every number of rows below `min_rows` on the left or on
    /// the right, and the best with enough rows on both sides.
    fn exact_set(&self, l: usize, j: usize) -> Option<CostedSet> {
        let m = self.min_rows;
        // States: a < m rows on the left; m + b, b < m rows on the right and enough on the left; 2 m, enough on both.
        let state = |left: usize, right: usize| match (left < m, right < m) {
            (true, _) => left,
            (_, true) => m + right,
            _ => 2 * m,
        };
        let none = || vec![(f64::INFINITY, LevelSet::default()); 2 * m + 1];
        let mut best = none();
        best[0].0 = 0.0;
        let mut passed = 0;
        for ((sums, &rows), &code) in self.sums.iter().zip(&self.rows).zip(&self.codes) {
            let mut next = none();
            for (i, &(cost, set)) in best.iter().enumerate().filter(|(_, s)| s.0.is_finite()) {
                // Of "enough", m rows are as good as more.
                let (left, right) = match i {
                    i if i < m => (i, passed - i),
                    i if i < 2 * m => (passed - (i - m), i - m),
                    _ => (m, m),
                };
                let mut longer = set;
                longer.insert(code);
                for (to, here) in [
                    (state(left, right + rows), (cost + sums[j], set)),
                    (state(left + rows, right), (cost + sums[l], longer)),
                ] {
                    let order = here.0.total_cmp(&next[to].0);
                    if order.then_with(|| in_order(&here.1, &next[to].1)).is_lt() {
                        next[to] = here;
                    }
                }
            }
            passed += rows;
            best = next;
        }
        Some(best[2 * m]).filter(|(cost, _)| cost.is_finite())
    }

    /// The cheapest allowed set of the sweep over the levels in order of what a row costs more with the label l, on the
    /// left, than with j.
    fn swept_set(&self, l: usize, j: usize) -> Option<CostedSet> {
        let per_row =
            |place: usize| (self.sums[place][l] - self.sums[place][j]) / self.rows[place] as f64;
        let order = self.order_by(per_row);
        let mut cost: f64 = self.sums.iter().map(|sums| sums[j]).sum();
        let (mut n_left, mut found) = (0, None);
        let mut goes_left = vec![false; self.codes.len()];
        for place in order {
            goes_left[place] = true;
            n_left += self.rows[place];
            cost += self.sums[place][l] - self.sums[place][j];
            if self.is_allowed(n_left) && found.as_ref().is_none_or(|(least, _)| cost < *least) {
                found = Some((cost, goes_left.clone()));
            }
        }
        let (_, goes_left) = found?;
        let sides = self.sums.iter().zip(&goes_left);
        let cost = sides.map(|(sums, &left)| if left { sums[l] } else { sums[j] }).sum();
        Some((cost, self.set(&goes_left)))
    }

    /// The places in ascending order of a key, equal ones by code.
    fn order_by(&self, key: impl Fn(usize) -> f64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.codes.len()).collect();
        order.sort_by(|&a, &b| key(a).total_cmp(&key(b)));
        order
    }

    /// The best sets of one level, and of the levels where a label's share is largest. `is_exact`: whether sums
    /// are; `costs_of`: see [`SideCost::costs`](super::sums::SideCost::costs).
    pub(super) fn by_shares(
        &self,
        is_exact: bool,
        costs_of: impl Fn(&[f64], &mut [f64]),
    ) -> Vec<CostedSet> {
        let n = self.codes.len();
        let SharesCosts { of_one, sweeps } = self.costs_by_shares(is_exact, costs_of);
        let mut best = self.best();
        best.least = least_of(&of_one, &sweeps);
        let most = best.least + self.margin;
        let is_best = |cost: f64| cost < f64::INFINITY && cost <= most;
        let mut goes_left = vec![false; n];
        for (place, &cost) in of_one.iter().enumerate().filter(|(_, cost)| is_best(**cost)) {
            goes_left.fill(false);
            goes_left[place] = true;
            best.offer(cost, || self.smaller_side(&goes_left));
        }
        for (order, costs) in &sweeps {
            for (i, &cost) in costs.iter().enumerate().filter(|(_, cost)| is_best(**cost)) {
                goes_left.fill(false);
                order[..=i].iter().for_each(|&place| goes_left[usize::from(place)] = true);
                best.offer(cost, || self.smaller_side(&goes_left));
            }
        }
        best.sorted()
    }

    /// What the best set of [`Levels::by_shares`] costs; infinity if there is none.
    pub(super) fn least_by_shares(
        &self,
        is_exact: bool,
        costs_of: impl Fn(&[f64], &mut [f64]),
    ) -> f64 {
        let SharesCosts { of_one, sweeps } = self.costs_by_shares(is_exact, costs_of);
        least_of(&of_one, &sweeps)
    }

    /// What both sides of the sets of [`Levels::by_shares`] cost. Both are summed from their own end, unless sums are exact:
    /// then the right side is what the left one leaves.
    fn costs_by_shares(
        &self,
        is_exact: bool,
        costs_of: impl Fn(&[f64], &mut [f64]),
    ) -> SharesCosts {
        let k = self.sums.first().map_or(0, |sums| sums.len());
        let n = self.codes.len();
        // An odd number of tiles: the labels of a place do not compete for the same places of the cache.
        let stride = TILE * (n.div_ceil(TILE) | 1);
        let [mut own, mut left, mut right] = [0, 1, 2].map(|_| vec![0.0; k * stride]);
        let [mut left_costs, mut right_costs] = [0, 1].map(|_| vec![0.0; stride]);
        for (place, sums) in self.sums.iter().enumerate() {
            (0..k).for_each(|label| own[label * stride + place] = sums[label]);
        }
        let by_label = |label: usize| &own[label * stride..][..n];
        let totals: Vec<f64> = (0..k).map(|label| by_label(label).iter().sum()).collect();
        let subtract = |left: &[f64], right: &mut [f64]| {
            let of_labels = left.chunks(stride).zip(right.chunks_mut(stride));
            for ((left, right), total) in of_labels.zip(&totals) {
                left.iter().zip(right).for_each(|(left, right)| *right = total - left);
            }
        };
        // The levels before each one and those after it, against itself.
        let mut sums = vec![0.0; k];
        if is_exact {
            subtract(&own, &mut right);
        } else {
            self.write_sums(0..n, &mut sums, |place, before, _| {
                (0..k).for_each(|label| right[label * stride + place] = before[label]);
            });
            self.write_sums((0..n).rev(), &mut sums, |place, after, _| {
                (0..k).for_each(|label| right[label * stride + place] += after[label]);
            });
        }
        costs_of(&own, &mut left_costs);
        costs_of(&right, &mut right_costs);
        let cost = |n_left: usize, left: f64, right: f64| {
            if self.is_allowed(n_left) { left + right } else { f64::INFINITY }
        };
        let sides = self.rows.iter().zip(left_costs.iter().zip(&right_costs));
        let of_one = sides.map(|(&rows, (left, right))| cost(rows, *left, *right)).collect();
        let weights: Vec<f64> = self.sums.iter().map(|sums| sums.iter().sum()).collect();
        let (mut sweeps, mut keys, mut has_empty) = (vec![], vec![], false);
        for label in 0..k {
            // Labels without rows have the same order, that of the codes.
            let is_empty = by_label(label).iter().all(|&sum| sum == 0.0);
            if is_empty && std::mem::replace(&mut has_empty, true) {
                continue;
            }
            let order = order_by_shares(by_label(label), &weights, &mut keys);
            let places = || order.iter().map(|&place| usize::from(place));
            let mut i = 0;
            self.write_sums(places(), &mut sums, |_, before, own| {
                (0..k).for_each(|label| left[label * stride + i] = before[label] + own[label]);
                i += 1;
            });
            if is_exact {
                subtract(&left, &mut right);
            } else {
                self.write_sums(places().rev(), &mut sums, |_, after, _| {
                    i -= 1;
                    (0..k).for_each(|label| right[label * stride + i] = after[label]);
                });
            }
            costs_of(&left, &mut left_costs);
            costs_of(&right, &mut right_costs);
            let mut n_left = 0;
            let sides = places().zip(left_costs.iter().zip(&right_costs));
            let costs = sides.map(|(place, (left, right))| {
                n_left += self.rows[place];
                cost(n_left, *left, *right)
            });
            let costs = costs.collect();
            sweeps.push((order, costs));
        }
        SharesCosts { of_one, sweeps }
    }

    /// Calls `visit(place, sums of the places before it, its sums)` for some places in turn. `sums`: a buffer.
    fn write_sums(
        &self,
        places: impl Iterator<Item = usize>,
        sums: &mut [f64],
        mut visit: impl FnMut(usize, &[f64], &[f64]),
    ) {
        sums.fill(0.0);
        for place in places {
            visit(place, sums, self.sums[place]);
            add(sums, self.sums[place]);
        }
    }

    /// The set or its complement, whichever comes first.
    pub(super) fn smaller_side(&self, goes_left: &[bool]) -> LevelSet {
        let others: Vec<bool> = goes_left.iter().map(|left| !left).collect();
        let (set, other) = (self.set(goes_left), self.set(&others));
        if in_order(&other, &set).is_lt() { other } else { set }
    }
}

/// The places in descending order of a label's share, equal ones by code. `of_label`: what the rows of each level add up
/// to for the label; `weights`: in all; `keys`: a buffer.
fn order_by_shares(of_label: &[f64], weights: &[f64], keys: &mut Vec<u64>) -> Vec<u8> {
    const PLACE: u64 = u8::MAX as u64;
    // Larger shares have smaller keys.
    let key_of = |sum: f64, weight: f64| !(sum / weight.max(f64::MIN_POSITIVE)).abs().to_bits();
    let key = |place: u8| key_of(of_label[usize::from(place)], weights[usize::from(place)]);
    keys.clear();
    keys.extend(of_label.iter().zip(weights).map(|(&sum, &weight)| key_of(sum, weight)));
    keys.iter_mut().zip(0..).for_each(|(key, place)| *key = *key & !PLACE | place);
    keys.sort_unstable();
    let mut order: Vec<u8> = keys.iter().map(|key| (key & PLACE) as u8).collect();
    // Of shares that differ in their last bits alone the order is left to mend: nearly none.
    for start in 1..keys.len() {
        let mut i = start;
        while i > 0
            && keys[i - 1] & !PLACE == keys[start] & !PLACE
            && key(order[i]) < key(order[i - 1])
        {
            order.swap(i, i - 1);
            i -= 1;
        }
    }
    order
}
