//! The cuts of a leaf along a column of sparse rows, with the stocks of their two sides.
//!
//! Along a column the leaf's rows are those with a negative cell, the *zeros*, most of them not stored, and those with a
//! positive cell. The zeros are on one side of every cut, so that the other side A is added up row by row, and with N the
//! leaf and B the side with the zeros S(B, B) = S(N, N) - 2 S(N, A) + S(A, A). Zeros that are no more than the stored
//! cells are listed as other rows are, and the lighter side of every cut is added up: what is had by subtraction is never
//! the smaller part, so that no digits are lost.
//!
//! | symbol | here |
//! |---|---|
//! | N, the leaf; S(N, N), \|N\| | [`SparseLeaf`]; `stock`, `weight` |
//! | A, the side that is added up; S(A, A), S(N, A) | [`AddedSide`] |
//! | S({i}, N) of a row | `with_leaf` |
//!
//! Cost per column: the stored features of the rows that have a cell in it. Over all columns of a leaf these are the
//! squares of the numbers of cells of its rows, added up; no row is read for a column in which it has no cell. Memory: a
//! number per column for each thread, and what the cuts take.

use std::ops::Range;

use super::cuts::{ColumnCuts, CutSet};
use super::kernel::Weights;
use crate::memory;
use crate::rows::CsrRows;

/// What memory is for.
const WHAT: &str = "the cuts of a column";

/// A leaf whose columns are cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct SparseLeaf<'a> {
    /// Features of all rows.
    pub(super) features: &'a CsrRows<'a>,
    /// Weights of all rows.
    pub(super) weights: Weights<'a>,
    /// Fewest rows on either side.
    pub(super) min_samples_leaf: usize,
    /// The leaf's rows.
    pub(super) rows: &'a [u32],
    /// By row: its place among them.
    pub(super) position: &'a [u32],
    /// w_i S({i}, N), in the order of the rows.
    pub(super) with_leaf: &'a [f64],
    /// |N|.
    pub(super) weight: f64,
    /// S(N, N).
    pub(super) stock: f64,
}

/// The cuts along a column and the leaf's rows in its order.
pub(super) struct SparseColumn {
    pub(super) cuts: ColumnCuts,
    /// Places in the leaf of the rows that are listed.
    pub(super) order: Vec<u32>,
    /// The places in the order of the column of the zeros that are not listed: an empty range if all rows are.
    pub(super) zeros: Range<usize>,
}

/// Buffers of a thread, empty between columns.
pub(super) struct Buffers {
    /// By feature: the sum over a side.
    sum: Vec<f64>,
    /// By place in the leaf: whether the row has a cell.
    is_stored: Vec<bool>,
}

impl Buffers {
    /// For leaves of at most `n_rows` rows with `rank` features.
    pub(super) fn new(n_rows: usize, rank: usize) -> Self {
        let is_stored = memory::zeros(n_rows, "the rows of a leaf");
        Buffers { sum: memory::zeros(rank, "the sums of features"), is_stored }
    }
}

/// Returns how many rows each cut leaves to its left, ascending. `values`: the stored cells, ascending; `n`: the number of
/// rows.
fn cut_places(values: &[f64], n_negative: usize, n: usize, min_samples_leaf: usize) -> Vec<u32> {
    let n_zeros = n - values.len();
    let between =
        |range: Range<usize>| range.filter(|&i| i > 0 && i < n && values[i - 1] < values[i]);
    let positive = n_negative + 1..values.len();
    let is_allowed = |n_left: &usize| *n_left >= min_samples_leaf && n - n_left >= min_samples_leaf;
    let before = (n_negative > 0 && n > n_negative).then_some(n_negative);
    let after = (n_zeros > 0 && n_negative < values.len()).then_some(n_negative + n_zeros);
    let places = between(0..n_negative)
        .chain(before)
        .chain(after)
        .chain(between(positive).map(|i| i + n_zeros))
        .filter(is_allowed);
    let mut found = Vec::new();
    places.for_each(|n_left| memory::push(&mut found, n_left as u32, WHAT));
    found
}

impl SparseLeaf<'_> {
    /// Returns the cuts along a column, none if it has no cut. `values`, `rows`: the stored cells in the leaf, ascending,
    /// and their rows.
    pub(super) fn cuts(
        &self,
        feature: usize,
        (values, rows): (&[f64], &[u32]),
        buffers: &mut Buffers,
    ) -> Option<SparseColumn> {
        let n = self.rows.len();
        let n_negative = values.partition_point(|&x| x < 0.0);
        let n_zeros = n - values.len();
        let n_left = cut_places(values, n_negative, n, self.min_samples_leaf);
        if n_left.is_empty() {
            return None;
        }
        let are_apart = n_zeros > values.len();
        let zeros = if are_apart { n_negative..n_negative + n_zeros } else { 0..0 };
        let with_zeros;
        let order = if are_apart || n_zeros == 0 {
            rows
        } else {
            with_zeros = self.list_zeros(rows, n_negative, &mut buffers.is_stored);
            &with_zeros
        };
        let n_cuts = n_left.len();
        let empty = || [0, 1].map(|_| memory::zeros(n_cuts, WHAT));
        let cuts = ColumnCuts { feature, set: CutSet::default(), n_left, ..ColumnCuts::default() };
        let mut cuts = if are_apart {
            ColumnCuts { weight: empty(), ..cuts }
        } else {
            cuts.with_weights(order, self.weights)
        };
        cuts.self_stock = empty();
        let n_from_left = if are_apart {
            cuts.n_left.partition_point(|&n_left| n_left as usize <= n_negative)
        } else {
            let [left, right] = &cuts.weight;
            left.iter().zip(right).position(|(left, right)| left > right).unwrap_or(n_cuts)
        };
        let mut side = AddedSide::new(self, &mut buffers.sum);
        let mut end = 0;
        for cut in 0..n_from_left {
            let start = std::mem::replace(&mut end, cuts.n_left[cut] as usize);
            order[start..end].iter().for_each(|&row| side.add(row));
            side.write(&mut cuts, cut, 0, are_apart);
        }
        side.clear(&order[..end]);
        let mut start = order.len();
        for cut in (n_from_left..n_cuts).rev() {
            let end = std::mem::replace(&mut start, cuts.n_left[cut] as usize - zeros.len());
            order[start..end].iter().rev().for_each(|&row| side.add(row));
            side.write(&mut cuts, cut, 1, are_apart);
        }
        side.clear(&order[start..]);
        let order = order.iter().map(|&row| self.position[row as usize]);
        let order = memory::collected(order, "the orders of a leaf");
        Some(SparseColumn { cuts, order, zeros })
    }

    /// Returns the rows of all cells, those of the zeros between the negative and the positive ones.
    fn list_zeros(&self, rows: &[u32], n_negative: usize, is_stored: &mut [bool]) -> Vec<u32> {
        let place = |row: u32| self.position[row as usize] as usize;
        rows.iter().for_each(|&row| is_stored[place(row)] = true);
        let mut order = memory::reserved(self.rows.len(), "the orders of a leaf");
        order.extend_from_slice(&rows[..n_negative]);
        order
            .extend(self.rows.iter().zip(&*is_stored).filter(|(_, stored)| !**stored).map(|x| x.0));
        order.extend_from_slice(&rows[n_negative..]);
        rows.iter().for_each(|&row| is_stored[place(row)] = false);
        order
    }
}

/// The side of a cut that is added up.
struct AddedSide<'l, 'b> {
    leaf: &'l SparseLeaf<'l>,
    /// The weighted sum of its rows' features.
    sum: &'b mut [f64],
    weight: f64,
    /// S(A, A).
    stock: f64,
    /// S(N, A).
    with_leaf: f64,
}

impl<'l, 'b> AddedSide<'l, 'b> {
    /// No rows. `sum`: zeros.
    fn new(leaf: &'l SparseLeaf<'l>, sum: &'b mut [f64]) -> Self {
        AddedSide { leaf, sum, weight: 0.0, stock: 0.0, with_leaf: 0.0 }
    }

    /// Adds a row: S(A, A) grows by twice its stock with A, and by its stock with itself.
    #[inline]
    fn add(&mut self, row: u32) {
        let weight = self.leaf.weights.of(row);
        let (columns, cells) = self.leaf.features.row(row as usize);
        let (mut with_side, mut own) = (0.0, 0.0);
        for (&column, &x) in columns.iter().zip(cells) {
            let sum = &mut self.sum[column as usize];
            with_side += x * *sum;
            own += x * x;
            *sum += weight * x;
        }
        self.weight += weight;
        self.stock += weight * (2.0 * with_side + weight * own);
        self.with_leaf += self.leaf.with_leaf[self.leaf.position[row as usize] as usize];
    }

    /// Writes the stocks of a cut, and the weights if the zeros are not listed. `side`: 0 if this is the left one.
    fn write(&self, cuts: &mut ColumnCuts, cut: usize, side: usize, with_weights: bool) {
        let other = self.leaf.stock - 2.0 * self.with_leaf + self.stock;
        cuts.self_stock[side][cut] = self.stock;
        cuts.self_stock[1 - side][cut] = other.max(0.0);
        if with_weights {
            cuts.weight[side][cut] = self.weight;
            cuts.weight[1 - side][cut] = (self.leaf.weight - self.weight).max(0.0);
        }
    }

    /// Removes all rows, which are given.
    fn clear(&mut self, rows: &[u32]) {
        for &row in rows {
            for &column in self.leaf.features.row(row as usize).0 {
                self.sum[column as usize] = 0.0;
            }
        }
        (self.weight, self.stock, self.with_leaf) = (0.0, 0.0, 0.0);
    }
}
