//! The cuts of a leaf along each column, with the stocks of their two sides.
//!
//! A leaf N with m rows has at most m - 1 cuts along a column: between any two neighbouring rows of different values
//! that leave `min_samples_leaf` rows on both sides. With L and R the sides of a cut, the self stocks S(L, L) and
//! S(R, R) depend on the leaf alone, not on the clusters: they are computed once, with the leaf, and kept.
//!
//! | paper | here |
//! |---|---|
//! | sigma(S_L^2), sigma(S_R^2) | [`ColumnCuts::self_stock`] |
//! | \|S_L\|, \|S_R\| | [`ColumnCuts::weight`] |
//!
//! With a Gram matrix either side is added up from its own rows, in ascending or in descending order: S(R, R) as a
//! difference of larger stocks would lose digits. With features the sum of R's rows is that of N's less that of L's.
//!
//! Cost per column: O(m rank) with features, O(m^2) with a Gram matrix, whose rows are read once for all columns.

use rayon::prelude::*;

use super::kernel::{Kernel, Weights, add_row, lanes, norm};
use crate::error::Result;
use crate::memory;
use crate::parallel::{self, Monitor};
use crate::table::Column;

/// Rows of a Gram matrix between two checks for an interrupt.
const ROWS_PER_CHECK: usize = 64;

/// The cuts of one leaf along one column, ascending, with all that does not depend on the clusters. Entries by cut.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnCuts {
    /// The column.
    pub feature: usize,
    /// Number of rows to the left.
    pub n_left: Vec<u32>,
    /// Weight of the left and of the right sides.
    pub weight: [Vec<f64>; 2],
    /// S(L, L) and S(R, R).
    pub self_stock: [Vec<f64>; 2],
}

impl ColumnCuts {
    /// Returns the cuts without weights and stocks. `cells`: the values of the leaf's rows, ascending;
    /// `min_samples_leaf` >= 1.
    fn positions(feature: usize, cells: &[f64], min_samples_leaf: usize) -> Self {
        let n = cells.len();
        let is_cut = |&i: &usize| i < n && cells[i - 1] < cells[i];
        let places = || min_samples_leaf..(n + 1).saturating_sub(min_samples_leaf);
        let n_cuts = places().filter(is_cut).count();
        let mut n_left = memory::reserved(n_cuts, "the cuts of a column");
        n_left.extend(places().filter(is_cut).map(|i| i as u32));
        ColumnCuts { feature, n_left, ..ColumnCuts::default() }
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
            Some(_) => [
                self.prefix(order, |row| weights.of(row)),
                self.suffix(order, |row| weights.of(row)),
            ],
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
        let (mut sum, mut start) = (0.0, 0);
        for &end in &self.n_left {
            for &row in &order[start..end as usize] {
                sum += value(row);
            }
            start = end as usize;
            sums.push(sum);
        }
    }

    /// Returns the sums of `value(row)` over the rows right of each cut, added from the last row on.
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

/// The rows of a leaf and its order along one column.
#[derive(Debug, Clone, Copy)]
pub struct LeafColumn<'a, 't> {
    /// The column's number.
    pub feature: usize,
    /// The column.
    pub column: &'a Column<'t>,
    /// The leaf's rows in the order of the column.
    pub order: &'a [u32],
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
    /// Returns the cuts of the leaf with the given `rows` along each of `columns`, in their order; with a Gram matrix
    /// also the stocks S({i}, N) of the rows with the leaf, in the order of the rows.
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
                    Ok(self.feature_cuts(z, rank, cuts, column.order, total))
                };
                Ok((parallel::try_map(columns, of_column)?, vec![]))
            }
            Kernel::Gram { k, n } => self.gram_cuts(k, n, rows, position, columns),
        }
    }

    fn positions(&self, column: &LeafColumn<'_, '_>) -> ColumnCuts {
        let mut cells = Vec::new();
        column.column.gather(column.order, &mut cells);
        ColumnCuts::positions(column.feature, &cells, self.min_samples_leaf)
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
        let mut sum = vec![0.0; rank];
        let mut start = 0;
        for &end in &cuts.n_left {
            for &row in &order[start..end as usize] {
                add_row(&mut sum, &z[row as usize * rank..][..rank], self.weights.of(row));
            }
            start = end as usize;
            left.push(norm(&sum));
            right.push(lanes(total, &sum, |t, s| (t - s) * (t - s)));
        }
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
            let mut cuts = self.positions(column).with_weights(column.order, self.weights);
            let at = |row: u32| position[row as usize] as usize * width;
            let grow = |row: u32| grows[at(row) + f + 1];
            // Twice the stock with the leaf is that with the rows before, itself twice, and the rows after.
            let shrink = |row: u32| 2.0 * grows[at(row)] - grow(row);
            cuts.self_stock = [cuts.prefix(column.order, grow), cuts.suffix(column.order, shrink)];
            cuts
        };
        let cuts = parallel::map(columns.iter().enumerate(), of_column);
        let stocks = grows.chunks(width).map(|of_row| of_row[0]);
        Ok((cuts, memory::collected(stocks, "the stocks of a leaf")))
    }
}
