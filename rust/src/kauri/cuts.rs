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

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use super::kernel::{Kernel, Weights, add_row, lanes, norm};
use crate::criterion::{Cut, CutForm, Gap};
use crate::error::Result;
use crate::memory;
use crate::parallel::{self, Monitor};
use crate::partition::others_go_left;
use crate::table::Column;
use crate::tree::LevelSet;

/// Rows of a Gram matrix between two checks for an interrupt.
const ROWS_PER_CHECK: usize = 64;

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

/// Cuts of one form along a column, with the missing cells on one side. Their order of the leaf's rows has the missing
/// ones first if they go left, and last if not.
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
    /// Of levels: the first row of the level, as a place in the order. Without entries the rows to the left are the first
    /// ones of the order.
    pub starts: Vec<u32>,
    /// Weight of the left and of the right sides.
    pub weight: [Vec<f64>; 2],
    /// S(L, L) and S(R, R).
    pub self_stock: [Vec<f64>; 2],
}

impl ColumnCuts {
    /// Returns the cuts without weights and stocks. `cells`: the cells of the leaf's rows in the order of the set;
    /// `min_samples_leaf` >= 1.
    fn positions(feature: usize, set: CutSet, cells: &[f64], min_samples_leaf: usize) -> Self {
        let (n, n_missing) = (cells.len(), set.n_missing_left);
        let cuts = ColumnCuts { feature, set, ..ColumnCuts::default() };
        if set.form == SetForm::Levels {
            return cuts.of_levels(cells, min_samples_leaf);
        }
        // No number is less or more than a missing cell.
        let is_cut = |&i: &usize| match set.form {
            SetForm::Missing => i == n_missing,
            _ => i < n && cells[i - 1] < cells[i],
        };
        let places = || min_samples_leaf..(n + 1).saturating_sub(min_samples_leaf);
        let n_cuts = places().filter(is_cut).count();
        let mut n_left = memory::reserved(n_cuts, "the cuts of a column");
        n_left.extend(places().filter(is_cut).map(|i| i as u32));
        ColumnCuts { n_left, ..cuts }
    }

    /// [`ColumnCuts::positions`] of levels: those present, unless there is only one.
    fn of_levels(mut self, cells: &[f64], min_samples_leaf: usize) -> Self {
        let mut start = self.set.n_missing_left;
        let groups = cells[start..].chunk_by(|a, b| a == b).filter(|group| !group[0].is_nan());
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
        let start = self.starts.get(cut).map_or(0, |&start| start as usize - n_missing_left);
        let n_own = self.n_left[cut] as usize - n_missing_left;
        CutRows { form, places: start..start + n_own, missing_left: n_missing_left > 0 }
    }

    /// Returns the rows that a cut sends left, in the order of the set.
    pub fn left_of<'o>(&self, cut: usize, order: &'o [u32]) -> impl Iterator<Item = u32> + use<'o> {
        let n_missing = self.set.n_missing_left;
        let CutRows { places, .. } = self.rows(cut);
        let own = &order[n_missing + places.start..n_missing + places.end];
        order[..n_missing].iter().chain(own).copied()
    }

    /// Adds up the rows to the left of each cut and calls `visit` with their sums. `add` adds a row to sums.
    #[inline(always)]
    fn sum_left<S: Clone>(
        &self,
        order: &[u32],
        mut sums: S,
        add: impl Fn(&mut S, u32),
        mut visit: impl FnMut(&S),
    ) {
        let mut start = self.set.n_missing_left;
        order[..start].iter().for_each(|&row| add(&mut sums, row));
        if self.set.form != SetForm::Levels {
            for &end in &self.n_left {
                order[start..end as usize].iter().for_each(|&row| add(&mut sums, row));
                start = end as usize;
                visit(&sums);
            }
            return;
        }
        for (&first, &n_left) in self.starts.iter().zip(&self.n_left) {
            let (mut sums, n_own) = (sums.clone(), n_left as usize - start);
            order[first as usize..][..n_own].iter().for_each(|&row| add(&mut sums, row));
            visit(&sums);
        }
    }

    /// Whether the column has no cut.
    pub fn is_empty(&self) -> bool {
        self.n_left.is_empty()
    }

    /// Adds the weights of both sides. `order`: the leaf's rows in the order of the column.
    fn with_weights(self, order: &[u32], weights: Weights<'_>) -> Self {
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
        self.prefix_into(order, value, &mut sums);
        sums
    }

    /// Writes the sums of [`ColumnCuts::prefix`] over the contents of `sums`.
    pub fn prefix_into(&self, order: &[u32], value: impl Fn(u32) -> f64, sums: &mut Vec<f64>) {
        sums.clear();
        memory::reserve(sums, self.n_left.len(), "the cuts of a column");
        self.sum_left(order, 0.0, |sum, row| *sum += value(row), |&sum| sums.push(sum));
    }

    /// Returns the sums of `value(row)` over the rows right of each cut, added from the last row on; not of levels.
    fn suffix(&self, order: &[u32], value: impl Fn(u32) -> f64) -> Vec<f64> {
        let mut sums = memory::zeros(self.n_left.len(), "the cuts of a column");
        let (mut sum, mut end) = (0.0, order.len());
        for (&start, place) in self.n_left.iter().zip(&mut sums).rev() {
            for &row in order[start as usize..end].iter().rev() {
                sum += value(row);
            }
            end = start as usize;
            *place = sum;
        }
        sums
    }
}

/// Returns the number of rows with a value. `order`: rows in the order of the column, missing cells last.
pub(super) fn n_seen(column: &Column<'_>, order: &[u32]) -> usize {
    order.partition_point(|&row| !column.get(row as usize).is_nan())
}

/// The rows of a leaf in the order of one set of cuts along a column.
#[derive(Debug, Clone)]
pub struct LeafColumn<'a, 't> {
    /// The column's number.
    pub feature: usize,
    /// The column.
    pub column: &'a Column<'t>,
    /// The cuts.
    pub set: CutSet,
    /// The leaf's rows in the order of the set.
    pub order: Cow<'a, [u32]>,
}

impl<'a, 't> LeafColumn<'a, 't> {
    /// Returns all sets of cuts along a column. `order`: the leaf's rows in the order of the column, missing cells last.
    pub fn all(feature: usize, column: &'a Column<'t>, order: &'a [u32]) -> Vec<Self> {
        let form = column.n_levels().map_or(SetForm::Thresholds, |_| SetForm::Levels);
        let n_missing = order.len() - n_seen(column, order);
        let set = |form: SetForm, n_missing_left: usize, order: Cow<'a, [u32]>| LeafColumn {
            feature,
            column,
            set: CutSet { form, n_missing_left },
            order,
        };
        let mut sets = vec![set(form, 0, Cow::Borrowed(order))];
        if n_missing > 0 {
            let mut missing_first = order.to_vec();
            missing_first.rotate_right(n_missing);
            let missing_first: Cow<'a, [u32]> = Cow::Owned(missing_first);
            sets.push(set(form, n_missing, missing_first.clone()));
            sets.push(set(SetForm::Missing, n_missing, missing_first));
        }
        sets
    }
}

/// Builds the cuts of a leaf.
#[derive(Debug, Clone, Copy)]
pub struct CutBuilder<'a> {
    /// Kernel values.
    pub kernel: Kernel<'a>,
    /// Weights of the rows.
    pub weights: Weights<'a>,
    /// Fewest rows on either side.
    pub min_samples_leaf: usize,
    /// Interrupts the work.
    pub monitor: &'a Monitor,
}

impl CutBuilder<'_> {
    /// Returns the cuts of the leaf with the given `rows` of each of `columns`, in their order; with a Gram matrix also the
    /// stocks S({i}, N) of the rows with the leaf, in the order of the rows.
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
    ) -> Result<(Vec<ColumnCuts>, Vec<f64>)> {
        match self.kernel {
            Kernel::Features { z, rank } => {
                let of_column = |column: &LeafColumn<'_, '_>| {
                    self.monitor.check()?;
                    let cuts = self.positions(column);
                    Ok(self.feature_cuts(z, rank, cuts, &column.order, total))
                };
                Ok((parallel::try_map(columns, of_column)?, vec![]))
            }
            Kernel::Gram { k, n } => self.gram_cuts(k, n, rows, position, columns),
        }
    }

    fn positions(&self, column: &LeafColumn<'_, '_>) -> ColumnCuts {
        let mut cells = Vec::new();
        column.column.gather(&column.order, &mut cells);
        ColumnCuts::positions(column.feature, column.set, &cells, self.min_samples_leaf)
    }

    /// Adds weights and self stocks to cuts, from the sums of the features of either side.
    fn feature_cuts(
        &self,
        z: &[f64],
        rank: usize,
        cuts: ColumnCuts,
        order: &[u32],
        total: &[f64],
    ) -> ColumnCuts {
        let mut cuts = cuts.with_weights(order, self.weights);
        let n_cuts = cuts.n_left.len();
        let (mut left, mut right) = (
            memory::reserved(n_cuts, "the cuts of a column"),
            memory::reserved(n_cuts, "the cuts of a column"),
        );
        let add = |sum: &mut Vec<f64>, row: u32| {
            add_row(sum, &z[row as usize * rank..][..rank], self.weights.of(row));
        };
        cuts.sum_left(order, vec![0.0; rank], add, |sum| {
            left.push(norm(sum));
            right.push(lanes(total, sum, |t, s| (t - s) * (t - s)));
        });
        cuts.self_stock = [left, right];
        cuts
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
    ) -> Result<(Vec<ColumnCuts>, Vec<f64>)> {
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
            let order = &column.order;
            let mut cuts = self.positions(column).with_weights(order, self.weights);
            let at = |row: u32| position[row as usize] as usize * width;
            let grow = |row: u32| grows[at(row) + f + 1];
            // Twice the stock with the leaf is that with the rows before, itself twice, and the rows after.
            let shrink = |row: u32| 2.0 * grows[at(row)] - grow(row);
            cuts.self_stock = [cuts.prefix(order, grow), cuts.suffix(order, shrink)];
            cuts
        };
        let cuts = parallel::map(columns.iter().enumerate(), of_column);
        let stocks = grows.chunks(width).map(|of_row| of_row[0]);
        Ok((cuts, memory::collected(stocks, "the stocks of a leaf")))
    }
}
