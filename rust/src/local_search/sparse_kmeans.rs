//! The k-means objective of sparse rows: [`super::kmeans`], by the stored cells.
//!
//! A leaf's sum of squares about its mean m is, column by column, that of its stored cells and m^2 for the weight of its
//! other rows: all terms positive, O(cells + columns) a leaf. What a row costs about a center c is |c|^2, without the
//! squares of c where the row has cells and with those of the differences there: rounded at the scale of |c|^2, which
//! proposals can do with. Values come from the sums of leaves, and have the digits that they have for a table.

use super::kmeans::{MEAN, SQUARES, WEIGHT, clusters, settle};
use super::objective::{Objective, RowCosts};
use super::points::{PointCosts, ROWS_PER_TASK};
use crate::error::{Error, Result};
use crate::parallel::{self, Monitor};
use crate::rows::CsrRows;

/// Sparse rows whose squared distances count.
#[derive(Debug, Clone)]
pub struct SparseKMeans<'a> {
    rows: &'a CsrRows<'a>,
    /// Number of clusters.
    k: usize,
    weights: Option<&'a [f64]>,
}

impl<'a> SparseKMeans<'a> {
    /// `k`: the number of clusters. `weights`: positive; none: 1 each.
    ///
    /// # Errors
    /// [`Error::Shape`] if sizes disagree; [`Error::Value`] if the columns of a row do not ascend.
    pub fn new(rows: &'a CsrRows<'a>, k: usize, weights: Option<&'a [f64]>) -> Result<Self> {
        rows.check_ascending()?;
        let n = rows.n_rows();
        Error::check_len("weights", weights.map_or(n, <[f64]>::len), n, "rows")?;
        Ok(SparseKMeans { rows, k, weights })
    }

    /// The weight of a row.
    fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row])
    }

    /// Columns and values of the stored cells of a row.
    fn cells(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        let (columns, values) = self.rows.row(row);
        columns.iter().map(|&column| column as usize).zip(values.iter().copied())
    }
}

impl Objective for SparseKMeans<'_> {
    fn n_labels(&self) -> usize {
        self.k
    }

    fn n_samples(&self) -> usize {
        self.rows.n_rows()
    }

    fn leaf(&self, rows: &[u32]) -> Vec<f64> {
        let d = self.rows.n_columns();
        let mut sums = vec![0.0; MEAN + d];
        let (head, mean) = sums.split_at_mut(MEAN);
        let mut stored = vec![0.0; d];
        for &row in rows {
            let weight = self.weight(row as usize);
            head[WEIGHT] += weight;
            for (column, x) in self.cells(row as usize) {
                stored[column] += weight;
                mean[column] += weight * x;
            }
        }
        if rows.is_empty() {
            return sums;
        }
        for (mean, stored) in mean.iter_mut().zip(&stored) {
            *mean /= head[WEIGHT];
            head[SQUARES] += (head[WEIGHT] - stored).max(0.0) * *mean * *mean;
        }
        for &row in rows {
            let of_cell = |(column, x): (usize, f64)| (x - mean[column]).powi(2);
            let squares: f64 = self.cells(row as usize).map(of_cell).sum();
            head[SQUARES] += self.weight(row as usize) * squares;
        }
        sums
    }

    fn settle(&self, leaves: &[&[f64]], labels: &mut [u32]) -> f64 {
        settle(leaves, labels, (self.k, self.rows.n_columns()))
    }

    fn update_costs(
        &self,
        leaves: &[&[f64]],
        labels: &[u32],
        costs: &mut RowCosts,
        monitor: &Monitor,
    ) {
        let (weights, means) = clusters(leaves, labels, (self.k, self.rows.n_columns()));
        self.update(&means, |l| weights[l] > 0.0, costs, monitor);
    }

    fn seed_costs(&self, seeds: &[u32], monitor: &Monitor) -> RowCosts {
        PointCosts::seed_costs(self, seeds, monitor)
    }
}

impl PointCosts for SparseKMeans<'_> {
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
        let mut norms = vec![0.0; m];
        for (i, &label) in labels.iter().enumerate() {
            for (j, &c) in costs.centers[label * d..][..d].iter().enumerate() {
                centers[j * m + i] = c;
                norms[i] += c * c;
            }
        }
        let tasks = costs.costs.chunks_mut(ROWS_PER_TASK * k).enumerate();
        parallel::map(tasks.filter(|_| m > 0), |(task, costs)| {
            if monitor.check().is_err() {
                return; // nobody looks at them any more
            }
            let mut found = vec![0.0; m];
            for (row, costs) in (task * ROWS_PER_TASK..).zip(costs.chunks_mut(k)) {
                found.copy_from_slice(&norms);
                for (column, x) in self.cells(row) {
                    for (found, c) in found.iter_mut().zip(&centers[column * m..][..m]) {
                        *found += x * (x - 2.0 * c);
                    }
                }
                let weight = self.weight(row);
                labels.iter().zip(&found).for_each(|(&l, x)| costs[l] = weight * x.max(0.0));
            }
        });
    }
}
