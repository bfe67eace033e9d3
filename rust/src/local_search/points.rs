//! Rows as points, and what they cost under labels whose clusters have centers.

use super::objective::RowCosts;
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::{self, Monitor};

/// Rows whose costs are one task.
const ROWS_PER_TASK: usize = 1024;

/// The rows as points. A missing coordinate is NaN.
#[derive(Debug, Clone)]
pub(super) struct Points<'a> {
    /// n x d, row-major.
    z: &'a [f64],
    /// Number of columns.
    pub d: usize,
    /// Number of clusters.
    pub k: usize,
    weights: Option<&'a [f64]>,
    /// Where centers lie in coordinates that their rows lack; empty if no coordinate is missing.
    pub overall: Vec<f64>,
    /// What a row of weight 1 costs at a distance from its center.
    distance: fn(&[f64], &[f64]) -> f64,
}

impl<'a> Points<'a> {
    /// `z`: n x d. `weights`: positive; none: 1 each.
    ///
    /// # Errors
    /// [`Error::Shape`] if sizes disagree.
    pub fn new(
        z: &'a [f64],
        d: usize,
        k: usize,
        weights: Option<&'a [f64]>,
        distance: fn(&[f64], &[f64]) -> f64,
    ) -> Result<Self> {
        let n = z.len() / d.max(1);
        Error::check_len("z", z.len(), n * d, "entries")?;
        Error::check_len("weights", weights.map_or(n, <[f64]>::len), n, "rows")?;
        Ok(Points { z, d, k, weights, overall: vec![], distance })
    }

    /// Number of rows.
    pub fn n_samples(&self) -> usize {
        self.z.len() / self.d.max(1)
    }

    /// One row.
    pub fn row(&self, row: u32) -> &'a [f64] {
        &self.z[row as usize * self.d..][..self.d]
    }

    /// Its weight.
    pub fn weight(&self, row: u32) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row as usize])
    }

    /// The costs of rows about centers (k x d) of the clusters that have rows. An empty cluster is offered to the row
    /// that costs most, so that a cut around it is worth something. Only what has moved is computed.
    pub fn update(
        &self,
        centers: &[f64],
        has_rows: impl Fn(usize) -> bool,
        costs: &mut RowCosts,
        monitor: &Monitor,
    ) {
        let (d, k) = (self.d, self.k);
        let is_first = costs.costs.is_empty();
        if is_first {
            costs.costs = memory::zeros(self.n_samples() * k, "the costs of rows");
            costs.centers = centers.to_vec();
        }
        let (used, empty): (Vec<usize>, Vec<usize>) = (0..k).partition(|&l| has_rows(l));
        let has_moved = |l: usize| costs.centers[l * d..][..d] != centers[l * d..][..d];
        let changed: Vec<usize> = used.into_iter().filter(|&l| is_first || has_moved(l)).collect();
        for &l in &changed {
            costs.centers[l * d..][..d].copy_from_slice(&centers[l * d..][..d]);
        }
        self.update_columns(&changed, costs, monitor);
        for (i, &l) in empty.iter().enumerate() {
            let least = |row: usize| {
                let costs = &costs.costs[row * k..][..k];
                let others = (0..k).filter(|other| !empty[i..].contains(other));
                others.map(|other| costs[other]).fold(f64::INFINITY, f64::min)
            };
            let dearest = (0..self.n_samples()).max_by(|&a, &b| least(a).total_cmp(&least(b)));
            let center = self.as_center(dearest.unwrap_or(0) as u32);
            costs.centers[l * d..][..d].iter_mut().zip(center).for_each(|(at, x)| *at = x);
            self.update_columns(&[l], costs, monitor);
        }
    }

    /// A row as a center.
    pub fn as_center(&self, row: u32) -> impl Iterator<Item = f64> {
        let seen = |(j, &x): (usize, &f64)| if x.is_nan() { self.overall[j] } else { x };
        self.row(row).iter().enumerate().map(seen)
    }

    /// The costs of rows about the rows `seeds[l]`, k of them.
    pub fn seed_costs(&self, seeds: &[u32], monitor: &Monitor) -> RowCosts {
        let centers: Vec<f64> = seeds.iter().flat_map(|&row| self.as_center(row)).collect();
        let mut costs = RowCosts::default();
        self.update(&centers, |_| true, &mut costs, monitor);
        costs
    }

    /// Computes the costs under some labels from their centers.
    fn update_columns(&self, labels: &[usize], costs: &mut RowCosts, monitor: &Monitor) {
        let (d, k, centers) = (self.d, self.k, &costs.centers);
        parallel::map(costs.costs.chunks_mut(ROWS_PER_TASK * k).enumerate(), |(task, costs)| {
            if monitor.check().is_err() {
                return; // nobody looks at them any more
            }
            for (i, costs) in costs.chunks_mut(k).enumerate() {
                let row = (task * ROWS_PER_TASK + i) as u32;
                let (x, weight) = (self.row(row), self.weight(row));
                for &l in labels {
                    costs[l] = weight * (self.distance)(x, &centers[l * d..][..d]);
                }
            }
        });
    }
}

/// The sum of what the entries of two points are apart by `of(a - b)`; four sums side by side.
#[inline(always)]
pub(super) fn sum_over(a: &[f64], b: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    let ((a4, a), (b4, b)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    let mut lanes = [0.0; 4];
    for (a, b) in a4.iter().zip(b4) {
        for i in 0..4 {
            lanes[i] += of(a[i] - b[i]);
        }
    }
    let rest: f64 = a.iter().zip(b).map(|(a, b)| of(a - b)).sum();
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + rest
}
