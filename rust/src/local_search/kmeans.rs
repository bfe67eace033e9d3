//! The k-means objective of a tree: E = sum_i w_i |x_i - mean of the tree's cluster of i|^2.
//!
//! A leaf adds up to its weight W, its sum of squares about its own mean S and that mean m. For clusters of leaves with
//! means mu,
//!
//! E = sum over the leaves of S + W |m - mu(label)|^2,
//!
//! all terms positive: nothing cancels, wherever the origin lies. The best labels are a k-means problem of L weighted
//! points, improved by Hartigan's rule: moving a leaf from its cluster a to b changes E by exactly
//! W W_b / (W_b + W) |m - mu_b|^2 - W W_a / (W_a - W) |m - mu_a|^2. O(L k d) per sweep, without looking at rows.

use super::objective::{Objective, RowCosts};
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel;

/// Rows whose costs are one task.
const ROWS_PER_TASK: usize = 1024;
/// Most sweeps over the leaves.
const MAX_SWEEPS: usize = 50;
/// A change of E by less than this share of it is none.
const TIE: f64 = 1e-12;
/// Of a leaf's sums: the weight, the sum of squares, and where the mean begins.
const WEIGHT: usize = 0;
const SQUARES: usize = 1;
const MEAN: usize = 2;

/// The rows as points.
#[derive(Debug, Clone, Copy)]
pub struct KMeans<'a> {
    z: &'a [f64],
    d: usize,
    k: usize,
    weights: Option<&'a [f64]>,
}

impl<'a> KMeans<'a> {
    /// `z`: n x d, row-major, the points whose squared distances count, about any origin near them. `weights`:
    /// positive; none: 1 each.
    ///
    /// # Errors
    /// [`Error::Shape`] if sizes disagree.
    pub fn new(z: &'a [f64], d: usize, k: usize, weights: Option<&'a [f64]>) -> Result<Self> {
        let n = z.len() / d.max(1);
        Error::check_len("z", z.len(), n * d, "entries")?;
        Error::check_len("weights", weights.map_or(n, <[f64]>::len), n, "rows")?;
        Ok(KMeans { z, d, k, weights })
    }

    fn row(&self, row: u32) -> &[f64] {
        &self.z[row as usize * self.d..][..self.d]
    }

    fn weight(&self, row: u32) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row as usize])
    }

    /// The weight of each cluster and its mean, d numbers a cluster; 0 for empty ones.
    fn clusters(&self, leaves: &[&[f64]], labels: &[u32]) -> (Vec<f64>, Vec<f64>) {
        let (mut weights, mut means) = (vec![0.0; self.k], vec![0.0; self.k * self.d]);
        for (sums, &label) in leaves.iter().zip(labels) {
            let label = label as usize;
            weights[label] += sums[WEIGHT];
            let share = sums[WEIGHT] / weights[label];
            shift(&mut means[label * self.d..][..self.d], &sums[MEAN..], share);
        }
        (weights, means)
    }
}

impl KMeans<'_> {
    /// Computes the costs under some labels from their centers.
    fn update_columns(&self, labels: &[usize], costs: &mut RowCosts) {
        let (d, k, centers) = (self.d, self.k, &costs.centers);
        parallel::map(costs.costs.chunks_mut(ROWS_PER_TASK * k).enumerate(), |(task, costs)| {
            for (i, costs) in costs.chunks_mut(k).enumerate() {
                let row = (task * ROWS_PER_TASK + i) as u32;
                let (x, weight) = (self.row(row), self.weight(row));
                for &l in labels {
                    costs[l] = weight * squared_distance(x, &centers[l * d..][..d]);
                }
            }
        });
    }
}

/// Moves a point by a share of the way to another.
fn shift(point: &mut [f64], to: &[f64], share: f64) {
    for (x, y) in point.iter_mut().zip(to) {
        *x += share * (y - *x);
    }
}

/// The squared distance of two points; four sums side by side.
fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    let ((a4, a), (b4, b)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    let mut lanes = [0.0; 4];
    for (a, b) in a4.iter().zip(b4) {
        for i in 0..4 {
            lanes[i] += (a[i] - b[i]) * (a[i] - b[i]);
        }
    }
    let rest: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + rest
}

impl Objective for KMeans<'_> {
    fn n_labels(&self) -> usize {
        self.k
    }

    fn n_samples(&self) -> usize {
        self.z.len() / self.d.max(1)
    }

    fn leaf(&self, rows: &[u32]) -> Vec<f64> {
        let mut sums = vec![0.0; MEAN + self.d];
        // About the first row, so that far leaves lose nothing; then once more about the mean.
        let Some(&first) = rows.first() else { return sums };
        let origin = self.row(first);
        let (head, mean) = sums.split_at_mut(MEAN);
        for &row in rows {
            let weight = self.weight(row);
            head[WEIGHT] += weight;
            for ((sum, x), o) in mean.iter_mut().zip(self.row(row)).zip(origin) {
                *sum += weight * (x - o);
            }
        }
        for (sum, o) in mean.iter_mut().zip(origin) {
            *sum = o + *sum / head[WEIGHT];
        }
        for &row in rows {
            head[SQUARES] += self.weight(row) * squared_distance(self.row(row), mean);
        }
        sums
    }

    fn settle(&self, leaves: &[&[f64]], labels: &mut [u32]) -> f64 {
        let d = self.d;
        let squares: f64 = leaves.iter().map(|sums| sums[SQUARES]).sum();
        let (mut weights, mut means) = self.clusters(leaves, labels);
        let mut members = vec![0usize; self.k];
        labels.iter().for_each(|&label| members[label as usize] += 1);
        for _ in 0..MAX_SWEEPS {
            let mut moved = false;
            for (sums, label) in leaves.iter().zip(labels.iter_mut()) {
                let (from, weight) = (*label as usize, sums[WEIGHT]);
                if members[from] == 1 {
                    continue;
                }
                let distance = |l: usize| squared_distance(&sums[MEAN..], &means[l * d..][..d]);
                let rest = weights[from] - weight;
                let gain = weight * weights[from] / rest * distance(from);
                let (mut best, mut to) = (gain - TIE * (squares + gain), from);
                for other in (0..self.k).filter(|&other| other != from) {
                    let factor = weight * weights[other] / (weights[other] + weight);
                    let cost = if members[other] == 0 { 0.0 } else { factor * distance(other) };
                    if cost < best {
                        (best, to) = (cost, other);
                    }
                }
                if to != from {
                    shift(&mut means[from * d..][..d], &sums[MEAN..], -weight / rest);
                    weights[from] = rest;
                    weights[to] = if members[to] == 0 { weight } else { weights[to] + weight };
                    shift(&mut means[to * d..][..d], &sums[MEAN..], weight / weights[to]);
                    members[from] -= 1;
                    members[to] += 1;
                    *label = to as u32;
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        let (_, means) = self.clusters(leaves, labels);
        let spread = leaves.iter().zip(labels).map(|(sums, &mut label)| {
            sums[WEIGHT] * squared_distance(&sums[MEAN..], &means[label as usize * d..][..d])
        });
        squares + spread.sum::<f64>()
    }

    fn update_costs(&self, leaves: &[&[f64]], labels: &[u32], costs: &mut RowCosts) {
        let (d, k) = (self.d, self.k);
        let (weights, means) = self.clusters(leaves, labels);
        let is_first = costs.costs.is_empty();
        if is_first {
            costs.costs = memory::zeros(self.n_samples() * k, "the costs of rows");
            costs.centers = means.clone();
        }
        let (used, empty): (Vec<usize>, Vec<usize>) = (0..k).partition(|&l| weights[l] > 0.0);
        let has_moved = |l: usize| costs.centers[l * d..][..d] != means[l * d..][..d];
        let changed: Vec<usize> = used.into_iter().filter(|&l| is_first || has_moved(l)).collect();
        for &l in &changed {
            costs.centers[l * d..][..d].copy_from_slice(&means[l * d..][..d]);
        }
        self.update_columns(&changed, costs);
        // An empty cluster is offered to the row that costs most, so that a cut around it is worth something.
        for (i, &l) in empty.iter().enumerate() {
            let least = |row: usize| {
                let costs = &costs.costs[row * k..][..k];
                let others = (0..k).filter(|other| !empty[i..].contains(other));
                others.map(|other| costs[other]).fold(f64::INFINITY, f64::min)
            };
            let dearest = (0..self.n_samples()).max_by(|&a, &b| least(a).total_cmp(&least(b)));
            let row = self.row(dearest.unwrap_or(0) as u32);
            costs.centers[l * d..][..d].copy_from_slice(row);
            self.update_columns(&[l], costs);
        }
    }

    fn seed_costs(&self, seeds: &[u32]) -> RowCosts {
        let costs = memory::zeros(self.n_samples() * self.k, "the costs of rows");
        let centers = seeds.iter().flat_map(|&row| self.row(row)).copied().collect();
        let mut costs = RowCosts { costs, centers };
        self.update_columns(&(0..self.k).collect::<Vec<_>>(), &mut costs);
        costs
    }
}
