//! The cuts of a leaf along each column, with the stocks of their two sides.
//!
//! A leaf N with m rows has at most m - 1 cuts along a column of numbers: between any two neighbouring rows of different
//! values that leave `min_samples_leaf` rows on both sides. Along a column of levels each level present is cut from the
//! others. Where rows of the leaf have a missing cell there are all cuts with these rows on the right, all with them on
//! the left, and missing cells against the others: see [`CutSet`]. With L and R the sides of a cut, the self stocks
//! S(L, L) and S(R, R) depend on the leaf alone, not on the clusters: they are computed once, with the leaf, and kept.
//!
//! | paper | here |
//! |---|---|
//! | sigma(S_L^2), sigma(S_R^2) | [`ColumnCuts::self_stock`] |
//! | \|S_L\|, \|S_R\| | [`ColumnCuts::weight`] |
//!
//! With a Gram matrix either side is added up from its own rows, in ascending or in descending order: S(R, R) as a
//! difference of larger stocks would lose digits. With features the sum of R's rows is that of N's less that of L's.
//!
//! Cost per column: O(m rank) with features, O(m^2) with a Gram matrix, whose rows are read once for all columns. Only
//! features go with levels and missing cells.

use std::ops::Range;

use rayon::prelude::*;

use super::clusters::ROWS_PER_TASK;
use super::features::RowFeatures;
use super::kernel::{Kernel, Weights, add_row, dot, lanes, norm};
use super::level_stocks::LevelStocks;
use crate::criterion::{Cut, CutForm, Gap};
use crate::error::Result;
use crate::memory;
use crate::parallel::{self, Monitor};
use crate::partition::others_go_left;
use crate::table::Column;
use crate::tree::LevelSet;

/// Rows of a Gram matrix between two checks for an interrupt.
const ROWS_PER_CHECK: usize = 64;

/// Rows whose features are copied and added together.
const ROWS_PER_BLOCK: usize = 32;

/// What cuts of a column tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum SetForm {
    /// Lower from higher numbers.
    #[default]
    Thresholds,
    /// One level from the others.
    Levels,
    /// Missing cells from the others.
    Missing,
}

/// Cuts of one form along a column, with the missing cells on one side. The leaf's rows lie in the order of the column,
/// missing cells last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CutSet {
    /// The form.
    pub form: SetForm,
    /// Number of rows with a missing cell, if these go left; else 0.
    pub n_missing_left: usize,
}

/// One cut: the rows that it sends left, in the order of its tie rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutRows {
    /// What it tells apart.
    pub form: SetForm,
    /// Those with a value, as places among the leaf's rows with one, in the order of the column.
    pub places: Range<usize>,
    /// Whether those with a missing cell go left.
    pub missing_left: bool,
}

impl CutRows {
    /// Returns the cut of sparse rows. `values`: the stored cells of the leaf's `n` rows, ascending.
    pub(super) fn sparse_cut(&self, values: &[f64], n: usize) -> Cut {
        let n_negative = values.partition_point(|&x| x < 0.0);
        let n_zeros = n - values.len();
        let cell = |place: usize| match place {
            place if place < n_negative => values[place],
            place if place < n_negative + n_zeros => 0.0,
            place => values[place - n_zeros],
        };
        let end = self.places.end;
        Cut::range(None, Gap { below: cell(end - 1), above: cell(end) }, None)
    }

    /// Returns the cut. `order`: the leaf's rows in the order of the column, missing cells last.
    pub(super) fn cut(&self, column: &Column<'_>, order: &[u32]) -> Cut {
        let cell = |place: usize| column.get(order[place] as usize);
        let (n_seen, end) = (n_seen(column, order), self.places.end);
        let n_missing = order.len() - n_seen;
        let missing_left = (n_missing > 0).then_some(self.missing_left);
        match self.form {
            SetForm::Thresholds => {
                Cut::range(None, Gap { below: cell(end - 1), above: cell(end) }, missing_left)
            }
            SetForm::Missing => Cut::missing(),
            SetForm::Levels => {
                let mut left: LevelSet = [cell(self.places.start) as u8].into_iter().collect();
                let n_left = self.places.len() + if self.missing_left { n_missing } else { 0 };
                if others_go_left(n_left, order.len() - n_left) {
                    let present: LevelSet = (0..n_seen).map(|place| cell(place) as u8).collect();
                    let all = 0..column.n_levels().unwrap_or(0) as u8;
                    all.filter(|&code| !present.contains(code)).for_each(|code| left.insert(code));
                }
                Cut { form: CutForm::Levels(left), missing_left, centers: None }
            }
        }
    }

    /// Of tied cuts of a column the one with the least key is taken: missing cells against the others last, missing
    /// cells on the right before those on the left.
    pub fn tie_key(&self) -> (bool, usize, bool) {
        (self.form == SetForm::Missing, self.places.end, self.missing_left)
    }
}

/// The cuts of one leaf along one column, ascending, with all that does not depend on the clusters. Entries by cut.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnCuts {
    /// The column.
    pub feature: usize,
    /// What the cuts are.
    pub set: CutSet,
    /// Number of rows to the left.
    pub n_left: Vec<u32>,
    /// Of levels: the first row of the level, as a place in the order. Without entries the rows to the left that have a
    /// value are the first ones of the order.
    pub starts: Vec<u32>,
    /// Weight of the left and of the right sides.
    pub weight: [Vec<f64>; 2],
    /// S(L, L) and S(R, R).
    pub self_stock: [Vec<f64>; 2],
}

impl ColumnCuts {
    /// Returns the cuts without weights and stocks. `cells`: the cells of the leaf's rows in the order of the column;
    /// `min_samples_leaf` >= 1.
    fn positions(feature: usize, set: CutSet, cells: &[f64], min_samples_leaf: usize) -> Self {
        let (n, n_missing) = (cells.len(), set.n_missing_left);
        let cuts = ColumnCuts { feature, set, ..ColumnCuts::default() };
        if set.form == SetForm::Levels {
            return cuts.of_levels(cells, min_samples_leaf);
        }
        // `i` of the rows with a value go left. No number is less or more than a missing cell.
        let most = (n + 1).saturating_sub(min_samples_leaf + n_missing);
        let least = min_samples_leaf.saturating_sub(n_missing);
        let places = match set.form {
            SetForm::Missing => least..most.min(1),
            _ => least.max(1)..most.min(n),
        };
        // Where all numbers differ, every place is a cut.
        let is_cut = |&i: &usize| cells[i - 1] < cells[i];
        let n_cuts = match set.form {
            SetForm::Thresholds if !places.is_empty() => {
                let beside = cells[places.start - 1..places.end].windows(2);
                beside.map(|pair| usize::from(pair[0] < pair[1])).sum()
            }
            _ => places.len(),
        };
        let n_left_of = |i: usize| (n_missing + i) as u32;
        let mut n_left = memory::reserved(n_cuts, "the cuts of a column");
        match n_cuts == places.len() {
            true => n_left.extend(places.map(n_left_of)),
            false => n_left.extend(places.filter(is_cut).map(n_left_of)),
        }
        ColumnCuts { n_left, ..cuts }
    }

    /// [`ColumnCuts::positions`] of levels: those present, unless there is only one.
    fn of_levels(mut self, cells: &[f64], min_samples_leaf: usize) -> Self {
        let mut start = 0;
        let groups = cells.chunk_by(|a, b| a == b).filter(|group| !group[0].is_nan());
        if groups.clone().nth(1).is_none() {
            return self;
        }
        for group in groups {
            let n_left = self.set.n_missing_left + group.len();
            if n_left >= min_samples_leaf && cells.len() - n_left >= min_samples_leaf {
                self.n_left.push(n_left as u32);
                self.starts.push(start as u32);
            }
            start += group.len();
        }
        self
    }

    /// Returns the rows that a cut sends left.
    pub fn rows(&self, cut: usize) -> CutRows {
        let CutSet { form, n_missing_left } = self.set;
        let start = self.starts.get(cut).map_or(0, |&start| start as usize);
        let n_own = self.n_left[cut] as usize - n_missing_left;
        CutRows { form, places: start..start + n_own, missing_left: n_missing_left > 0 }
    }

    /// Returns the rows that a cut sends left, missing cells first. `order`: the leaf's rows in the order of the column.
    pub fn left_of<'o>(&self, cut: usize, order: &'o [u32]) -> impl Iterator<Item = u32> + use<'o> {
        let (seen, missing) = self.split_missing(order);
        missing.iter().chain(&seen[self.rows(cut).places]).copied()
    }

    /// Splits the order of the column before the missing cells that go left.
    fn split_missing<'o>(&self, order: &'o [u32]) -> (&'o [u32], &'o [u32]) {
        order.split_at(order.len() - self.set.n_missing_left)
    }

    /// Whether the column has no cut.
    pub fn is_empty(&self) -> bool {
        self.n_left.is_empty()
    }

    /// Adds the self stocks of the next cut.
    #[inline(always)]
    pub(super) fn push_stocks(&mut self, of_sides: [f64; 2]) {
        self.self_stock.iter_mut().zip(of_sides).for_each(|(side, stock)| side.push(stock));
    }

    /// Adds the weights of both sides. `order`: the leaf's rows in the order of the column.
    pub(super) fn with_weights(self, order: &[u32], weights: Weights<'_>) -> Self {
        let n = order.len() as u32;
        let weight = match weights.0 {
            None => {
                let left = self.n_left.iter().map(|&left| f64::from(left));
                let right = self.n_left.iter().map(|&left| f64::from(n - left));
                [
                    memory::collected(left, "the cuts of a column"),
                    memory::collected(right, "the cuts of a column"),
                ]
            }
            Some(_) => {
                let left = self.prefix(order, |row| weights.of(row));
                let right = if self.set.form == SetForm::Levels {
                    let total: f64 = order.iter().map(|&row| weights.of(row)).sum();
                    left.iter().map(|left| (total - left).max(0.0)).collect()
                } else {
                    self.suffix(order, |row| weights.of(row))
                };
                [left, right]
            }
        };
        ColumnCuts { weight, ..self }
    }

    /// Returns the sums of `value(row)` over the rows left of each cut. `order`: the leaf's rows in the order of the
    /// column.
    pub fn prefix(&self, order: &[u32], value: impl Fn(u32) -> f64) -> Vec<f64> {
        let mut sums = Vec::new();
        let mut left = LeftSums::default();
        left.read([&self.set].into_iter(), order, &value).write(self, order, value, &mut sums);
        sums
    }

    /// Returns the sums of `value(row)` over the rows right of each cut, added from the last row on; not of levels.
    fn suffix(&self, order: &[u32], value: impl Fn(u32) -> f64) -> Vec<f64> {
        let mut sums = memory::zeros(self.n_left.len(), "the cuts of a column");
        let (order, missing) = self.split_missing(order);
        let (mut sum, mut end) = (0.0, order.len());
        for (&n_left, place) in self.n_left.iter().zip(&mut sums).rev() {
            let start = n_left as usize - missing.len();
            for &row in order[start..end].iter().rev() {
                sum += value(row);
            }
            end = start;
            *place = sum;
        }
        sums
    }
}

/// The sums of a number per row over the rows left of the cuts of a column, whose rows are read once for all its sets.
#[derive(Debug, Default)]
pub struct LeftSums {
    /// Over the first 0, 1, ... rows with a value in the order of the column; none of levels.
    of_places: Vec<f64>,
    /// Over the rows with a missing cell, if these go left in some set.
    missing: f64,
    /// The places of rows that are not listed; [`LeftSums::of_places`] then has one entry more, for the sums after them.
    apart: Range<usize>,
}

impl LeftSums {
    /// Adds up `value(row)`. `sets`: all of one column; `order`: the leaf's rows in its order.
    pub fn read<'s>(
        &mut self,
        sets: impl Iterator<Item = &'s CutSet>,
        order: &[u32],
        value: impl Fn(u32) -> f64,
    ) -> &Self {
        let (mut n_missing, mut has_levels) = (0, false);
        for set in sets {
            n_missing = n_missing.max(set.n_missing_left);
            has_levels |= set.form == SetForm::Levels;
        }
        let (seen, missing) = order.split_at(order.len() - n_missing);
        self.missing = missing.iter().fold(0.0, |sum, &row| sum + value(row));
        self.apart = 0..0;
        self.of_places.clear();
        if !has_levels {
            memory::reserve(&mut self.of_places, seen.len() + 1, "the sums of a column");
            let mut sum = 0.0;
            self.of_places.push(sum);
            self.of_places.extend(seen.iter().map(|&row| {
                sum += value(row);
                sum
            }));
        }
        self
    }

    /// [`LeftSums::read`] of thresholds in an order that leaves out the rows at the places `apart`. `whole`: the sum over
    /// all rows. Beyond those rows it is what the listed rows to the right leave of the whole.
    pub fn read_around(
        &mut self,
        order: &[u32],
        apart: &Range<usize>,
        whole: f64,
        value: impl Fn(u32) -> f64,
    ) -> &Self {
        self.missing = 0.0;
        self.apart = apart.clone();
        self.of_places.clear();
        memory::reserve(&mut self.of_places, order.len() + 2, "the sums of a column");
        let (before, after) = order.split_at(apart.start);
        let mut sum = 0.0;
        self.of_places.push(sum);
        self.of_places.extend(before.iter().map(|&row| {
            sum += value(row);
            sum
        }));
        let first = self.of_places.len();
        self.of_places.resize(first + after.len() + 1, whole);
        let mut rest = 0.0;
        for (place, &row) in self.of_places[first..].iter_mut().zip(after).rev() {
            rest += value(row);
            *place = whole - rest;
        }
        self
    }

    /// Writes the sums of the cuts of a set over the contents of `sums`; those of levels are added up now. `order` and
    /// `value`: what was read.
    pub fn write(
        &self,
        cuts: &ColumnCuts,
        order: &[u32],
        value: impl Fn(u32) -> f64,
        sums: &mut Vec<f64>,
    ) {
        let n_missing = cuts.set.n_missing_left;
        let start = if n_missing > 0 { self.missing } else { 0.0 };
        sums.clear();
        memory::reserve(sums, cuts.n_left.len(), "the cuts of a column");
        match cuts.set.form {
            SetForm::Missing => sums.extend(cuts.n_left.iter().map(|_| start)),
            SetForm::Thresholds if !self.apart.is_empty() => {
                let place = |&n_left: &u32| match n_left as usize {
                    end if end <= self.apart.start => end,
                    end => end - self.apart.len() + 1,
                };
                sums.extend(cuts.n_left.iter().map(|n_left| self.of_places[place(n_left)]));
            }
            SetForm::Thresholds => {
                let of_places = &self.of_places[..];
                let end = |&n_left: &u32| n_left as usize - n_missing;
                match (cuts.n_left.first().map(end), cuts.n_left.last().map(end)) {
                    // Every place is a cut: no place needs to be looked up.
                    (Some(first), Some(last)) if last - first + 1 == cuts.n_left.len() => {
                        sums.extend(of_places[first..=last].iter().map(|sum| start + sum));
                    }
                    _ => sums.extend(cuts.n_left.iter().map(|n| start + of_places[end(n)])),
                }
            }
            SetForm::Levels => {
                let places = (0..cuts.n_left.len()).map(|cut| cuts.rows(cut).places);
                let own = |places: Range<usize>| {
                    order[places].iter().fold(start, |sum, &row| sum + value(row))
                };
                sums.extend(places.map(own));
            }
        }
    }
}

/// Returns the number of rows with a value. `order`: rows in the order of the column, missing cells last.
pub(super) fn n_seen(column: &Column<'_>, order: &[u32]) -> usize {
    order.partition_point(|&row| !column.get(row as usize).is_nan())
}

/// The rows of a leaf in the order of a column, missing cells last.
#[derive(Debug, Clone, Copy)]
pub struct LeafColumn<'a, 't> {
    /// The column's number.
    pub feature: usize,
    /// The column.
    pub column: &'a Column<'t>,
    /// The leaf's rows.
    pub order: &'a [u32],
    /// The rows of the other child of the leaf's parent, in the order of the column; none of the root.
    pub sibling: &'a [u32],
}

impl LeafColumn<'_, '_> {
    /// Returns all sets of cuts.
    fn sets(&self) -> Vec<CutSet> {
        let form = self.column.n_levels().map_or(SetForm::Thresholds, |_| SetForm::Levels);
        let n_missing = self.order.len() - n_seen(self.column, self.order);
        let mut sets = vec![CutSet { form, n_missing_left: 0 }];
        if n_missing > 0 {
            sets.extend(
                [form, SetForm::Missing].map(|form| CutSet { form, n_missing_left: n_missing }),
            );
        }
        sets
    }
}

/// Returns the stocks of the rows that add up to `sum`, and of the others of those that add up to `total`.
#[inline]
pub(super) fn stocks(sum: &[f64], total: &[f64]) -> [f64; 2] {
    [norm(sum), lanes(total, sum, |t, s| (t - s) * (t - s))]
}

/// Adds the self stocks of thresholds: of those with the missing cells on the right, and of those with them on the left if
/// there are any.
///
/// With L and R the rows with a value on either side and M those without, S(L, L) and S(R, R) serve both directions:
/// S(L + M, L + M) = S(L, L) + 2 S(L, M) + S(M, M), and S(L, M) grows by one product a row. All are sums of sides that are
/// no larger, so that no digits are lost.
///
/// - `order`: the rows with a value, ascending;
/// - `missing`, `total`: the weighted sums of the features of M, empty if there are none, and of the leaf;
/// - `row_of`: returns the features and the weight of a row.
fn sweep<'z>(
    sets: &mut [ColumnCuts],
    order: &[u32],
    missing: &[f64],
    total: &[f64],
    row_of: impl Fn(u32) -> (&'z [f64], f64),
) {
    let rank = total.len();
    let mut seen = total.to_vec();
    seen.iter_mut().zip(missing).for_each(|(total, missing)| *total -= missing);
    let (of_missing, of_seen) = (norm(missing), dot(&seen, missing));
    let (mut sum, mut with_missing) = (vec![0.0; rank], 0.0);
    let mut features = Vec::with_capacity(ROWS_PER_BLOCK * rank);
    for (block, rows) in order.chunks(ROWS_PER_BLOCK).enumerate() {
        // Rows lie apart in memory: copied some at a time, they come side by side.
        features.clear();
        rows.iter().for_each(|&row| features.extend_from_slice(row_of(row).0));
        // The place in the block of the last row with a value on the left.
        let place = |set: CutSet| {
            let n_before = set.n_missing_left + block * ROWS_PER_BLOCK + 1;
            move |&n_left: &u32| n_left as usize - n_before
        };
        let mut is_cut = [false; ROWS_PER_BLOCK];
        let mut n_cuts = [0; 2];
        for (cuts, n_cuts) in sets.iter().zip(&mut n_cuts) {
            let places = cuts.n_left[cuts.self_stock[0].len()..].iter().map(place(cuts.set));
            for place in places.take_while(|&place| place < rows.len()) {
                is_cut[place] = true;
                *n_cuts += 1;
            }
        }
        // Of the rows up to each place: S(L, L), S(R, R) and S(L, M).
        let mut stocks = [[0.0; 3]; ROWS_PER_BLOCK];
        for (i, &row) in rows.iter().enumerate() {
            let (weight, row) = (row_of(row).1, &features[i * rank..][..rank]);
            with_missing += weight * dot(row, missing);
            if is_cut[i] {
                let [own, other] = add_with_stocks(&mut sum, row, weight, &seen);
                stocks[i] = [own, other, with_missing];
            } else {
                add_row(&mut sum, row, weight);
            }
        }
        for (cuts, n_cuts) in sets.iter_mut().zip(n_cuts) {
            let ColumnCuts { set, n_left, self_stock: [left, right], .. } = cuts;
            let n_left = &n_left[left.len()..][..n_cuts];
            let at = n_left.iter().map(place(*set)).map(|place| stocks[place]);
            if set.n_missing_left > 0 {
                left.extend(at.clone().map(|[own, _, with]| own + 2.0 * with + of_missing));
                right.extend(at.map(|[_, other, _]| other));
            } else {
                left.extend(at.clone().map(|[own, ..]| own));
                right
                    .extend(at.map(|[_, other, with]| other + 2.0 * (of_seen - with) + of_missing));
            }
        }
    }
}

/// Adds a row to a sum and returns its [`stocks`], in one pass with the same bits. A function of its own, which knows that
/// its slices lie apart: the compiler turns it into vector instructions.
#[inline(never)]
fn add_with_stocks(sum: &mut [f64], row: &[f64], weight: f64, total: &[f64]) -> [f64; 2] {
    let ((row4, row1), (total4, total1)) = (row.as_chunks::<4>(), total.as_chunks::<4>());
    let (sum4, sum1) = sum.as_chunks_mut::<4>();
    let mut of_lanes = [[0.0; 4]; 2];
    let [own, other] = &mut of_lanes;
    for ((sum, x), t) in sum4.iter_mut().zip(row4).zip(total4) {
        for lane in 0..4 {
            sum[lane] += weight * x[lane];
            own[lane] += sum[lane] * sum[lane];
            let rest = t[lane] - sum[lane];
            other[lane] += rest * rest;
        }
    }
    let mut of_rest = [0.0; 2];
    for ((sum, x), t) in sum1.iter_mut().zip(row1).zip(total1) {
        *sum += weight * x;
        of_rest[0] += *sum * *sum;
        of_rest[1] += (t - *sum) * (t - *sum);
    }
    let added = |lanes: [f64; 4], rest: f64| (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + rest;
    [0, 1].map(|side| added(of_lanes[side], of_rest[side]))
}

/// What the stocks of a leaf's cuts are made of, beside the features of its rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeafSums<'a> {
    /// The weighted sum of the features of its rows.
    pub(super) total: &'a [f64],
    /// By row of the table: the place of a row among those of the leaf.
    position: &'a [u32],
    /// What the features of levels make of the stock of each row with the leaf, by place.
    with_levels: &'a [f64],
    /// And of S(N, N).
    pub(super) stock_of_levels: f64,
}

impl LeafSums<'_> {
    /// Returns what the features of levels make of the stock of some rows with the leaf. On its own the loop keeps its sum
    /// in a register.
    #[inline(never)]
    pub(super) fn sum_with_levels(&self, rows: &[u32]) -> f64 {
        let at = |row: u32| self.position[row as usize] as usize;
        rows.iter().map(|&row| self.with_levels[at(row)]).sum()
    }
}

/// What [`CutBuilder::cuts`] finds.
pub struct LeafCuts {
    /// The sets of cuts along each of the columns, in their order.
    pub of_columns: Vec<Vec<ColumnCuts>>,
    /// With a Gram matrix, the stocks S({i}, N) of the rows with the leaf, in the order of the rows.
    pub stocks: Vec<f64>,
    /// Of columns of levels, the stocks that the leaf's children need not compute again.
    pub(super) of_levels: Vec<LevelStocks>,
}

/// Builds the cuts of a leaf.
#[derive(Debug, Clone, Copy)]
pub struct CutBuilder<'a> {
    /// Kernel values.
    pub kernel: Kernel<'a>,
    /// Features of the rows.
    pub features: &'a RowFeatures<'a>,
    /// Weights of the rows.
    pub weights: Weights<'a>,
    /// Fewest rows on either side.
    pub min_samples_leaf: usize,
    /// Interrupts the work.
    pub monitor: &'a Monitor,
    /// Stocks of the levels of the leaf's parent.
    pub(super) of_parent: &'a [LevelStocks],
}

impl CutBuilder<'_> {
    /// Returns the cuts of the leaf with the given `rows` along `columns`.
    ///
    /// - `position`: the position of each of these rows among them, by row of the table;
    /// - `total`: the weighted sum of the rows' features, `rank` entries.
    ///
    /// # Errors
    /// [`crate::error::Error::Interrupted`] if the monitor was stopped.
    pub fn cuts(
        &self,
        rows: &[u32],
        position: &[u32],
        columns: &[LeafColumn<'_, '_>],
        total: &[f64],
    ) -> Result<LeafCuts> {
        match self.kernel {
            Kernel::Features { .. } => {
                let with_levels = self.stocks_with_levels(rows, columns, total);
                let stock_of_levels = self.features.product_of_levels(total, total);
                let leaf = LeafSums { total, position, with_levels: &with_levels, stock_of_levels };
                let of_column = |column: &LeafColumn<'_, '_>| {
                    self.monitor.check()?;
                    let mut sets = self.positions(column);
                    let of_levels = self.add_stocks(&mut sets, column, leaf);
                    Ok((sets, of_levels))
                };
                let found = parallel::try_map(columns, of_column)?;
                let (of_columns, of_levels): (Vec<_>, Vec<_>) = found.into_iter().unzip();
                let of_levels = of_levels.into_iter().flatten().collect();
                Ok(LeafCuts { of_columns, stocks: vec![], of_levels })
            }
            Kernel::Gram { k, n } => self.gram_cuts(k, n, rows, position, columns),
            Kernel::Sparse(_) => Err(super::fit::not_both_sparse()),
        }
    }

    /// Returns what the features of levels make of the stock of each row with the leaf, in the order of the rows; none
    /// if no column needs them.
    fn stocks_with_levels(
        &self,
        rows: &[u32],
        columns: &[LeafColumn<'_, '_>],
        total: &[f64],
    ) -> Vec<f64> {
        if columns.iter().all(|column| column.column.n_levels().is_none()) {
            return vec![];
        }
        let product = self.features.product_with_levels(total);
        let stock = |i: usize| self.weights.of(rows[i]) * product(rows[i]);
        parallel::collect(rows.len(), ROWS_PER_TASK, "the stocks of a leaf", stock)
    }

    /// Returns the sets of cuts along a column with their weights.
    fn positions(&self, column: &LeafColumn<'_, '_>) -> Vec<ColumnCuts> {
        let mut cells = Vec::new();
        column.column.gather(column.order, &mut cells);
        let of_set = |set: CutSet| {
            let cuts = ColumnCuts::positions(column.feature, set, &cells, self.min_samples_leaf);
            cuts.with_weights(column.order, self.weights)
        };
        column.sets().into_iter().map(of_set).collect()
    }

    /// Adds self stocks to the sets of a column, from the sums of the features of either side. Returns those of its levels.
    fn add_stocks(
        &self,
        sets: &mut [ColumnCuts],
        column: &LeafColumn<'_, '_>,
        leaf: LeafSums<'_>,
    ) -> Option<LevelStocks> {
        let (order, total, mut of_levels) = (column.order, leaf.total, None);
        for cuts in &mut *sets {
            let n_cuts = cuts.n_left.len();
            cuts.self_stock = [0, 1].map(|_| memory::reserved(n_cuts, "the cuts of a column"));
        }
        let features = self.features;
        let row_of = |row: u32| (features.numbers(row), self.weights.of(row));
        let n_numbers = features.n_numbers();
        let sum_of = |rows: &[u32]| {
            let mut sum = features.nothing();
            rows.iter().for_each(|&row| features.add(&mut sum, row, self.weights.of(row)));
            sum
        };
        match sets {
            [one] if one.set.form == SetForm::Thresholds => {
                sweep(sets, order, &[], &total[..n_numbers], row_of);
            }
            // A row's features are read once for both directions.
            [right, left, missing] if right.set.form == SetForm::Thresholds => {
                let (seen, without_value) = left.split_missing(order);
                let mut of_missing = sum_of(without_value);
                let numbers = of_missing[..n_numbers].to_vec();
                if !missing.is_empty() {
                    features.finish(&mut of_missing);
                    missing.push_stocks(stocks(&of_missing, total));
                }
                sweep(&mut sets[..2], seen, &numbers, &total[..n_numbers], row_of);
            }
            _ => of_levels = Some(self.add_stocks_of_groups(sets, column, leaf)),
        }
        let of_thresholds = sets.iter_mut().filter(|cuts| cuts.set.form == SetForm::Thresholds);
        if features.has_levels() {
            of_thresholds.for_each(|cuts| self.add_stocks_of_levels(cuts, order, total));
        }
        of_levels
    }

    /// Adds to the self stocks of thresholds what the features of levels make of them.
    fn add_stocks_of_levels(&self, cuts: &mut ColumnCuts, order: &[u32], total: &[f64]) {
        let (seen, missing) = cuts.split_missing(order);
        let rows: Vec<u32> = missing.iter().chain(seen).copied().collect();
        let [mut before, mut after] = self.features.stock_steps(&rows, total, self.weights);
        before.iter_mut().fold(0.0, |sum, step| {
            *step += sum;
            *step
        });
        after.iter_mut().rev().fold(0.0, |sum, step| {
            *step += sum;
            *step
        });
        let [own, other] = &mut cuts.self_stock;
        for ((own, other), &n_left) in own.iter_mut().zip(other).zip(&cuts.n_left) {
            *own += before[n_left as usize - 1];
            *other += after[n_left as usize];
        }
    }

    /// With a Gram matrix, S(L, L) grows at row t by its stock with itself and twice that with the rows before it in
    /// the order of the column, and S(R, R) likewise with those after it. Each row of the matrix is read once for all
    /// columns.
    fn gram_cuts(
        &self,
        k: &[f64],
        n: usize,
        rows: &[u32],
        position: &[u32],
        columns: &[LeafColumn<'_, '_>],
    ) -> Result<LeafCuts> {
        let m = rows.len();
        // By column: the place of each row in its order, as f64: the type of the kernel's values makes the loop below
        // fast.
        let places: Vec<Vec<f64>> = parallel::map(columns, |column| {
            let mut places = memory::zeros(m, "the orders of a leaf");
            for (at, &row) in column.order.iter().enumerate() {
                places[position[row as usize] as usize] = at as f64;
            }
            places
        });
        let width = columns.len() + 1;
        // Per row: its stock with the leaf, then how S(L, L) grows along each column.
        let mut grows: Vec<f64> = memory::zeros(m * width, "the stocks of a leaf's cuts");
        grows.par_chunks_mut(width).zip(rows).enumerate().try_for_each_init(
            Vec::new,
            |gathered, (i, (grows, &t))| -> Result<()> {
                if i % ROWS_PER_CHECK == 0 {
                    self.monitor.check()?;
                }
                let row = &k[t as usize * n..][..n];
                let values = if m == n && self.weights.0.is_none() {
                    row // the root's rows are in the order of the matrix
                } else {
                    gathered.clear();
                    memory::reserve(gathered, m, "a row of the Gram matrix");
                    gathered.extend(rows.iter().map(|&s| self.weights.of(s) * row[s as usize]));
                    &gathered[..]
                };
                let weight = self.weights.of(t);
                grows[0] = weight * lanes(values, values, |value, _| value);
                for (grow, places) in grows[1..].iter_mut().zip(&places) {
                    let at = places[i];
                    let before =
                        lanes(values, places, |value, place| if place < at { value } else { 0.0 });
                    *grow = weight * (2.0 * before + values[i]);
                }
                Ok(())
            },
        )?;
        let of_column = |(f, column): (usize, &LeafColumn<'_, '_>)| {
            let order = column.order;
            let at = |row: u32| position[row as usize] as usize * width;
            let grow = |row: u32| grows[at(row) + f + 1];
            // Twice the stock with the leaf is that with the rows before, itself twice, and the rows after.
            let shrink = |row: u32| 2.0 * grows[at(row)] - grow(row);
            let mut sets = self.positions(column);
            for cuts in &mut sets {
                cuts.self_stock = [cuts.prefix(order, grow), cuts.suffix(order, shrink)];
            }
            sets
        };
        let of_columns = parallel::map(columns.iter().enumerate(), of_column);
        let stocks = grows.chunks(width).map(|of_row| of_row[0]);
        let stocks = memory::collected(stocks, "the stocks of a leaf");
        Ok(LeafCuts { of_columns, stocks, of_levels: vec![] })
    }
}
