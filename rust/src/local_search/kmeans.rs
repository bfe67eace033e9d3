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

use std::f64::consts::FRAC_1_SQRT_2;

use super::objective::{Objective, RowCosts};
use super::points::{PointCosts, Points, sum_over};
use crate::parallel::Monitor;

/// Most sweeps over the leaves.
const MAX_SWEEPS: usize = 50;
/// A change of E by less than this share of it is none.
const TIE: f64 = 1e-12;
/// Of a leaf's sums: the weight, the sum of squares, and where the mean begins.
pub(super) const WEIGHT: usize = 0;
pub(super) const SQUARES: usize = 1;
pub(super) const MEAN: usize = 2;

/// The rows as points.
#[derive(Debug, Clone)]
pub struct KMeans<'a>(Points<'a>);

impl<'a> KMeans<'a> {
    /// The points whose squared distances count, about any origin near them; none of their coordinates is missing.
    pub fn new(points: Points<'a>) -> Self {
        KMeans(points.with(squared_distance, FRAC_1_SQRT_2))
    }
}

/// The weight of each of k clusters of leaves and its mean, d numbers a cluster; 0 for empty ones.
pub(super) fn clusters(
    leaves: &[&[f64]],
    labels: &[u32],
    (k, d): (usize, usize),
) -> (Vec<f64>, Vec<f64>) {
    let (mut weights, mut means) = (vec![0.0; k], vec![0.0; k * d]);
    for (sums, &label) in leaves.iter().zip(labels) {
        let label = label as usize;
        weights[label] += sums[WEIGHT];
        let share = sums[WEIGHT] / weights[label];
        shift(&mut means[label * d..][..d], &sums[MEAN..], share);
    }
    (weights, means)
}

/// Moves a point by a share of the way to another.
fn shift(point: &mut [f64], to: &[f64], share: f64) {
    for (x, y) in point.iter_mut().zip(to) {
        *x += share * (y - *x);
    }
}

/// The squared distance of two points.
fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    sum_over(a, b, |x| x * x)
}

/// [`Objective::settle`] of leaves with sums as those of [`KMeans`], for k clusters of d numbers.
pub(super) fn settle(leaves: &[&[f64]], labels: &mut [u32], (k, d): (usize, usize)) -> f64 {
    let squares: f64 = leaves.iter().map(|sums| sums[SQUARES]).sum();
    let (mut weights, mut means) = clusters(leaves, labels, (k, d));
    let mut members = vec![0usize; k];
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
            for other in (0..k).filter(|&other| other != from) {
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
    let (_, means) = clusters(leaves, labels, (k, d));
    let spread = leaves.iter().zip(labels).map(|(sums, &mut label)| {
        sums[WEIGHT] * squared_distance(&sums[MEAN..], &means[label as usize * d..][..d])
    });
    squares + spread.sum::<f64>()
}

impl Objective for KMeans<'_> {
    fn n_labels(&self) -> usize {
        self.0.k
    }

    fn n_samples(&self) -> usize {
        self.0.n_samples()
    }

    fn leaf(&self, rows: &[u32]) -> Vec<f64> {
        let mut sums = vec![0.0; MEAN + self.0.d];
        // About the first row, so that far leaves lose nothing; then once more about the mean.
        let Some(&first) = rows.first() else { return sums };
        let origin = self.0.numbers(first);
        let (head, mean) = sums.split_at_mut(MEAN);
        for &row in rows {
            let weight = self.0.weight(row);
            head[WEIGHT] += weight;
            for ((sum, x), o) in mean.iter_mut().zip(self.0.numbers(row)).zip(origin) {
                *sum += weight * (x - o);
            }
        }
        for (sum, o) in mean.iter_mut().zip(origin) {
            *sum = o + *sum / head[WEIGHT];
        }
        let of_numbers = &mean[..origin.len()];
        for &row in rows {
            head[SQUARES] += self.0.weight(row) * squared_distance(self.0.numbers(row), of_numbers);
        }
        head[SQUARES] += self.0.level_means(rows, mean, |_, _| {});
        sums
    }

    fn settle(&self, leaves: &[&[f64]], labels: &mut [u32]) -> f64 {
        settle(leaves, labels, (self.0.k, self.0.d))
    }

    fn update_costs(
        &self,
        leaves: &[&[f64]],
        labels: &[u32],
        costs: &mut RowCosts,
        monitor: &Monitor,
    ) {
        let (weights, means) = clusters(leaves, labels, (self.0.k, self.0.d));
        self.0.update(&means, |l| weights[l] > 0.0, costs, monitor);
    }

    fn seed_costs(&self, seeds: &[u32], monitor: &Monitor) -> RowCosts {
        self.0.seed_costs(seeds, monitor)
    }
}
