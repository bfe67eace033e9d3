//! The k-medians objective of sparse rows: [`super::kmedians`], by the stored cells.
//!
//! A leaf keeps what it keeps of a table, each column's distinct values in order: those of its stored cells, and 0 for the
//! weight of its other rows. What a row costs about a center c is |c|, without |c| where the row has cells and with the
//! differences there: rounded at the scale of |c|, which proposals can do with. Values come from the sums of leaves.
//!
//! Cost: O(cells log cells + columns) a leaf. Memory: 24 bytes a stored cell, and 40 a column for every leaf.

use super::kmedians::{Space, no_columns, push_column};
use super::objective::{Objective, RowCosts};
use super::points::PointCosts;
use super::sparse_points::SparsePoints;
use crate::error::Result;
use crate::memory;
use crate::parallel::Monitor;
use crate::rows::CsrRows;

/// Sparse rows whose l1 distances count.
#[derive(Debug, Clone)]
pub struct SparseKMedians<'a> {
    points: SparsePoints<'a>,
}

impl<'a> SparseKMedians<'a> {
    /// `k`: the number of clusters. `weights`: positive; none: 1 each.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::error::Error::Shape) if sizes disagree; [`Error::Value`](crate::error::Error::Value) if the
    /// columns of a row do not ascend.
    pub fn new(rows: &'a CsrRows<'a>, k: usize, weights: Option<&'a [f64]>) -> Result<Self> {
        Ok(SparseKMedians { points: SparsePoints::new(rows, k, weights)? })
    }

    fn space(&self) -> Space<'_, '_> {
        Space { d: self.points.rows.n_columns(), k: self.points.k, levels: &[] }
    }
}

/// A cell of a leaf: column, value and weight.
type Cell = (usize, f64, f64);

impl Objective for SparseKMedians<'_> {
    fn n_labels(&self) -> usize {
        self.points.k
    }

    fn n_samples(&self) -> usize {
        self.points.rows.n_rows()
    }

    fn leaf(&self, rows: &[u32]) -> Vec<f64> {
        let d = self.points.rows.n_columns();
        let n_cells = rows.iter().map(|&row| self.points.rows.n_cells(row as usize)).sum();
        let mut cells: Vec<Cell> = memory::reserved(n_cells, "the cells of a leaf");
        let mut total = 0.0;
        for &row in rows {
            let weight = self.points.weight(row as usize);
            total += weight;
            let own = self.points.cells(row as usize).filter(|(_, x)| *x != 0.0);
            cells.extend(own.map(|(column, x)| (column, x, weight)));
        }
        cells.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut sums = no_columns(d);
        if rows.is_empty() {
            return sums;
        }
        let mut rest = &cells[..];
        for column in 0..d {
            let own;
            (own, rest) = rest.split_at(rest.partition_point(|cell| cell.0 == column));
            let stored: f64 = own.iter().map(|cell| cell.2).sum();
            let has_zeros = own.len() < rows.len();
            let zeros = has_zeros.then(|| (0.0, (total - stored).max(0.0)));
            let (negative, positive) = own.split_at(own.partition_point(|cell| cell.1 < 0.0));
            let of_values = negative.chunk_by(|a, b| a.1 == b.1).map(of_equal);
            let others = positive.chunk_by(|a, b| a.1 == b.1).map(of_equal);
            push_column(&mut sums, d, column, of_values.chain(zeros).chain(others));
        }
        sums
    }

    fn settle(&self, leaves: &[&[f64]], labels: &mut [u32]) -> f64 {
        self.space().settle(leaves, labels)
    }

    fn update_costs(
        &self,
        leaves: &[&[f64]],
        labels: &[u32],
        costs: &mut RowCosts,
        monitor: &Monitor,
    ) {
        let centers = self.space().centers(leaves, labels);
        self.update(&centers, |l| labels.contains(&(l as u32)), costs, monitor);
    }

    fn seed_costs(&self, seeds: &[u32], monitor: &Monitor) -> RowCosts {
        PointCosts::seed_costs(self, seeds, monitor)
    }
}

/// The value of equal cells of a column, and their weight.
fn of_equal(cells: &[Cell]) -> (f64, f64) {
    (cells[0].1, cells.iter().map(|cell| cell.2).sum())
}

impl PointCosts for SparseKMedians<'_> {
    fn shape(&self) -> (usize, usize, usize) {
        self.points.shape()
    }

    fn as_center(&self, row: u32) -> Vec<f64> {
        self.points.as_center(row)
    }

    fn update_columns(&self, labels: &[usize], costs: &mut RowCosts, monitor: &Monitor) {
        self.points
            .update_columns(labels, costs, monitor, f64::abs, |x, c| (x - c).abs() - c.abs());
    }
}
