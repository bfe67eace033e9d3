//! The k-means objective of sparse rows: [`super::kmeans`], by the stored cells.
//!
//! A leaf's sum of squares about its mean m is, column by column, that of its stored cells and m^2 for the weight of its
//! other rows: all terms positive, O(cells + columns) a leaf. What a row costs about a center c is |c|^2, without the
//! squares of c where the row has cells and with those of the differences there: rounded at the scale of |c|^2, which
//! proposals can do with. Values come from the sums of leaves, and have the digits that they have for a table.

use super::kmeans::{MEAN, SQUARES, WEIGHT, clusters, settle};
use super::objective::{Objective, RowCosts};
use super::points::PointCosts;
use super::sparse_points::SparsePoints;
use crate::error::Result;
use crate::parallel::Monitor;
use crate::rows::CsrRows;

/// Sparse rows whose squared distances count.
#[derive(Debug, Clone)]
pub struct SparseKMeans<'a> {
    points: SparsePoints<'a>,
}

impl<'a> SparseKMeans<'a> {
    /// `k`: the number of clusters. `weights`: positive; none: 1 each.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::error::Error::Shape) if sizes disagree; [`Error::Value`](crate::error::Error::Value) if the
    /// columns of a row do not ascend.
    pub fn new(rows: &'a CsrRows<'a>, k: usize, weights: Option<&'a [f64]>) -> Result<Self> {
        Ok(SparseKMeans { points: SparsePoints::new(rows, k, weights)? })
    }
}

impl Objective for SparseKMeans<'_> {
    fn n_labels(&self) -> usize {
        self.points.k
    }

    fn n_samples(&self) -> usize {
        self.points.rows.n_rows()
    }

    fn leaf(&self, rows: &[u32]) -> Vec<f64> {
        let d = self.points.rows.n_columns();
        let mut sums = vec![0.0; MEAN + d];
        let (head, mean) = sums.split_at_mut(MEAN);
        let mut stored = vec![0.0; d];
        for &row in rows {
            let weight = self.points.weight(row as usize);
            head[WEIGHT] += weight;
            for (column, x) in self.points.cells(row as usize) {
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
            let squares: f64 = self.points.cells(row as usize).map(of_cell).sum();
            head[SQUARES] += self.points.weight(row as usize) * squares;
        }
        sums
    }

    fn settle(&self, leaves: &[&[f64]], labels: &mut [u32]) -> f64 {
        settle(leaves, labels, (self.points.k, self.points.rows.n_columns()))
    }

    fn update_costs(
        &self,
        leaves: &[&[f64]],
        labels: &[u32],
        costs: &mut RowCosts,
        monitor: &Monitor,
    ) {
        let (weights, means) =
            clusters(leaves, labels, (self.points.k, self.points.rows.n_columns()));
        self.update(&means, |l| weights[l] > 0.0, costs, monitor);
    }

    fn seed_costs(&self, seeds: &[u32], monitor: &Monitor) -> RowCosts {
        PointCosts::seed_costs(self, seeds, monitor)
    }
}

impl PointCosts for SparseKMeans<'_> {
    fn shape(&self) -> (usize, usize, usize) {
        self.points.shape()
    }

    fn as_center(&self, row: u32) -> Vec<f64> {
        self.points.as_center(row)
    }

    fn update_columns(&self, labels: &[usize], costs: &mut RowCosts, monitor: &Monitor) {
        self.points.update_columns(labels, costs, monitor, |c| c * c, |x, c| x * (x - 2.0 * c));
    }
}
