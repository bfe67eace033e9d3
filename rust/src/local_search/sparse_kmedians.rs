//! The k-medians objective of sparse rows: [`super::kmedians`], by the stored cells.
//!
//! A leaf keeps what it keeps of a table, each column's distinct values in order: those of its stored cells, and 0 for the
//! weight of its other rows. What a row costs about a center c is |c|, without |c| where the row has cells and with the
//! differences there: rounded at the scale of |c|, which proposals can do with. Values come from the sums of leaves.
//!
//! Cost: O(cells log cells + columns) a leaf. Memory: 24 bytes a stored cell, and 40 a column for every leaf.

use super::kmedians::{Space, no_columns, push_column};
use super::objective::{Objective, RowCosts};
use super::points::{PointCosts, ROWS_PER_TASK};
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::{self, Monitor};
use crate::rows::CsrRows;

/// Sparse rows whose l1 distances count.
#[derive(Debug, Clone)]
pub struct SparseKMedians<'a> {
    rows: &'a CsrRows<'a>,
    /// Number of clusters.
    k: usize,
    weights: Option<&'a [f64]>,
}

impl<'a> SparseKMedians<'a> {
    /// `k`: the number of clusters. `weights`: positive; none: 1 each.
    ///
    /// # Errors
    /// [`Error::Shape`] if sizes disagree; [`Error::Value`] if the columns of a row do not ascend.
    pub fn new(rows: &'a CsrRows<'a>, k: usize, weights: Option<&'a [f64]>) -> Result<Self> {
        rows.check_ascending()?;
        let n = rows.n_rows();
        Error::check_len("weights", weights.map_or(n, <[f64]>::len), n, "rows")?;
        Ok(SparseKMedians { rows, k, weights })
    }

    /// The weight of a row.
    fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row])
    }

    /// Columns and values of the cells of a row that are not 0.
    fn cells(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        let (columns, values) = self.rows.row(row);
        let cells = columns.iter().map(|&column| column as usize).zip(values.iter().copied());
        cells.filter(|(_, x)| *x != 0.0)
    }

    fn space(&self) -> Space<'_, '_> {
        Space { d: self.rows.n_columns(), k: self.k, levels: &[] }
    }
}

/// A cell of a leaf: column, value and weight.
type Cell = (usize, f64, f64);

impl Objective for SparseKMedians<'_> {
    fn n_labels(&self) -> usize {
        self.k
    }

    fn n_samples(&self) -> usize {
        self.rows.n_rows()
    }

    fn leaf(&self, rows: &[u32]) -> Vec<f64> {
        let d = self.rows.n_columns();
        let n_cells = rows.iter().map(|&row| self.rows.n_cells(row as usize)).sum();
        let mut cells: Vec<Cell> = memory::reserved(n_cells, "the cells of a leaf");
        let mut total = 0.0;
        for &row in rows {
            let weight = self.weight(row as usize);
            total += weight;
            cells.extend(self.cells(row as usize).map(|(column, x)| (column, x, weight)));
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
        (self.rows.n_rows(), self.rows.n_columns(), self.k)
    }

    fn as_center(&self, row: u32) -> Vec<f64> {
        let mut center = vec![0.0; self.rows.n_columns()];
        self.cells(row as usize).for_each(|(column, x)| center[column] = x);
        center
    }

    fn update_columns(&self, labels: &[usize], costs: &mut RowCosts, monitor: &Monitor) {
        let (d, k, m) = (self.rows.n_columns(), self.k, labels.len());
        // Coordinate by coordinate: a row reads those of its cells.
        let mut centers = vec![0.0; d * m];
        let mut sizes = vec![0.0; m];
        for (i, &label) in labels.iter().enumerate() {
            for (j, &c) in costs.centers[label * d..][..d].iter().enumerate() {
                centers[j * m + i] = c;
                sizes[i] += c.abs();
            }
        }
        let tasks = costs.costs.chunks_mut(ROWS_PER_TASK * k).enumerate();
        parallel::map(tasks.filter(|_| m > 0), |(task, costs)| {
            if monitor.check().is_err() {
                return; // nobody looks at them any more
            }
            let mut found = vec![0.0; m];
            for (row, costs) in (task * ROWS_PER_TASK..).zip(costs.chunks_mut(k)) {
                found.copy_from_slice(&sizes);
                for (column, x) in self.cells(row) {
                    for (found, c) in found.iter_mut().zip(&centers[column * m..][..m]) {
                        *found += (x - c).abs() - c.abs();
                    }
                }
                let weight = self.weight(row);
                labels.iter().zip(&found).for_each(|(&l, x)| costs[l] = weight * x.max(0.0));
            }
        });
    }
}
