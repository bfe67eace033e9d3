//! Sparse rows as points: [`super::points`], by the stored cells.
//!
//! What a row costs about a center c is what c costs about the origin, and what that changes in the columns where the row
//! has cells: rounded at the scale of c, which proposals can do with. O(stored cells) a label.

use super::objective::RowCosts;
use super::points::ROWS_PER_TASK;
use crate::error::{Error, Result};
use crate::parallel::{self, Monitor};
use crate::rows::CsrRows;

/// Sparse rows and their weights.
#[derive(Debug, Clone)]
pub(super) struct SparsePoints<'a> {
    pub rows: &'a CsrRows<'a>,
    /// Number of clusters.
    pub k: usize,
    weights: Option<&'a [f64]>,
}

impl<'a> SparsePoints<'a> {
    /// `k`: the number of clusters. `weights`: positive; none: 1 each.
    ///
    /// # Errors
    /// [`Error::Shape`] if sizes disagree; [`Error::Value`] if the columns of a row do not ascend.
    pub fn new(rows: &'a CsrRows<'a>, k: usize, weights: Option<&'a [f64]>) -> Result<Self> {
        rows.check_ascending()?;
        let n = rows.n_rows();
        Error::check_len("weights", weights.map_or(n, <[f64]>::len), n, "rows")?;
        Ok(SparsePoints { rows, k, weights })
    }

    /// Numbers of rows, columns and clusters.
    pub fn shape(&self) -> (usize, usize, usize) {
        (self.rows.n_rows(), self.rows.n_columns(), self.k)
    }

    /// The weight of a row.
    pub fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row])
    }

    /// Columns and values of the stored cells of a row.
    pub fn cells(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        let (columns, values) = self.rows.row(row);
        columns.iter().map(|&column| column as usize).zip(values.iter().copied())
    }

    /// A row as a center.
    pub fn as_center(&self, row: u32) -> Vec<f64> {
        let mut center = vec![0.0; self.rows.n_columns()];
        self.cells(row as usize).for_each(|(column, x)| center[column] = x);
        center
    }

    /// Computes the costs under some labels from their centers. `size(c)`: what a coordinate of a center costs about 0;
    /// `change(x, c)`: by how much more it costs about a cell x.
    pub fn update_columns(
        &self,
        labels: &[usize],
        costs: &mut RowCosts,
        monitor: &Monitor,
        size: impl Fn(f64) -> f64,
        change: impl Fn(f64, f64) -> f64 + Sync,
    ) {
        let (d, k, m) = (self.rows.n_columns(), self.k, labels.len());
        // Coordinate by coordinate: a row reads those of its cells.
        let mut centers = vec![0.0; d * m];
        let mut sizes = vec![0.0; m];
        for (i, &label) in labels.iter().enumerate() {
            for (j, &c) in costs.centers[label * d..][..d].iter().enumerate() {
                centers[j * m + i] = c;
                sizes[i] += size(c);
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
                    for (found, &c) in found.iter_mut().zip(&centers[column * m..][..m]) {
                        *found += change(x, c);
                    }
                }
                let weight = self.weight(row);
                labels.iter().zip(&found).for_each(|(&l, x)| costs[l] = weight * x.max(0.0));
            }
        });
    }
}
