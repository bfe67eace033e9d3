//! The k-means objective of a tree on rows of which some coordinates are missing, that of k-POD (Chi, Chi and Baraniuk
//! 2016): E = sum_i w_i sum over the observed coordinates j of (x_ij - mean of the observed x_j of the tree's cluster)^2.
//!
//! As in `kmeans.rs`, but every coordinate of a leaf has a weight of its own, W_j. Joining two sets of rows adds
//! sum_j W_j V_j / (W_j + V_j) (m_j - n_j)^2 to their costs, without a coordinate that one of them lacks. So moving a
//! leaf from its cluster to another changes E by what joining it there adds, less what joining it to the rest of its own
//! does. The rest is added up from its leaves: nothing cancels. O(L (L + k) d) per sweep.

use std::f64::consts::FRAC_1_SQRT_2;

use super::objective::{Objective, RowCosts};
use super::points::{PointCosts, Points, sum_over};
use crate::parallel::Monitor;

/// Most sweeps over the leaves.
const MAX_SWEEPS: usize = 50;
/// A change of E by less than this share of it is none.
const TIE: f64 = 1e-12;

/// The rows as points whose missing coordinates are NaN.
#[derive(Debug, Clone)]
pub struct ObservedKMeans<'a>(Points<'a>);

/// By coordinate the weight of the observed ones, and their mean.
#[derive(Clone, Copy)]
struct Part<'s> {
    weights: &'s [f64],
    means: &'s [f64],
}

/// A [`Part`] that grows.
#[derive(Clone)]
struct Cluster {
    weights: Vec<f64>,
    means: Vec<f64>,
}

impl Cluster {
    fn part(&self) -> Part<'_> {
        Part { weights: &self.weights, means: &self.means }
    }

    fn add(&mut self, part: Part<'_>) {
        let own = self.weights.iter_mut().zip(&mut self.means);
        for ((weight, mean), (more, to)) in own.zip(part.weights.iter().zip(part.means)) {
            if *more > 0.0 {
                *weight += more;
                *mean += more / *weight * (to - *mean);
            }
        }
    }
}

impl Part<'_> {
    /// What it adds to the costs of both to join them.
    fn apart(self, other: Part<'_>) -> f64 {
        let weights = self.weights.iter().zip(other.weights);
        let means = self.means.iter().zip(other.means);
        let of_coordinate = |((v, w), (m, n)): ((&f64, &f64), (&f64, &f64))| {
            let both = (v + w).max(f64::MIN_POSITIVE);
            v * w / both * (m - n) * (m - n)
        };
        weights.zip(means).map(of_coordinate).sum()
    }
}

/// The squared distance of two points, over the coordinates that both have.
fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    sum_over(a, b, |x| if x.is_nan() { 0.0 } else { x * x })
}

impl<'a> ObservedKMeans<'a> {
    /// The points whose squared distances count.
    pub fn new(points: Points<'a>) -> Self {
        let mut objective = ObservedKMeans(points.with(squared_distance, FRAC_1_SQRT_2));
        objective.0.overall = vec![0.0; objective.0.d];
        let all: Vec<u32> = (0..objective.0.n_samples() as u32).collect();
        objective.0.overall = objective.part(&objective.leaf(&all)).means.to_vec();
        objective
    }

    fn part<'s>(&self, sums: &'s [f64]) -> Part<'s> {
        let (weights, means) = sums[1..].split_at(self.0.d);
        Part { weights, means }
    }

    /// Some parts together.
    fn joined<'s>(&self, parts: impl Iterator<Item = Part<'s>>) -> Cluster {
        let d = self.0.d;
        let mut cluster = Cluster { weights: vec![0.0; d], means: vec![0.0; d] };
        parts.for_each(|part| cluster.add(part));
        cluster
    }

    /// The leaves of each label together.
    fn clusters(&self, leaves: &[Part<'_>], labels: &[u32]) -> Vec<Cluster> {
        let mut clusters = vec![self.joined([].into_iter()); self.0.k];
        for (&leaf, &label) in leaves.iter().zip(labels) {
            clusters[label as usize].add(leaf);
        }
        clusters
    }
}

impl Objective for ObservedKMeans<'_> {
    fn n_labels(&self) -> usize {
        self.0.k
    }

    fn n_samples(&self) -> usize {
        self.0.n_samples()
    }

    fn leaf(&self, rows: &[u32]) -> Vec<f64> {
        let d = self.0.d;
        let mut sums = vec![0.0; 1 + 2 * d];
        let (squares, rest) = sums.split_at_mut(1);
        let (weights, means) = rest.split_at_mut(d);
        // About the first row, so that far leaves lose nothing; then once more about the mean.
        let Some(&first) = rows.first() else { return sums };
        let origin = &self.0.as_center(first)[..self.0.numbers(first).len()];
        for &row in rows {
            let weight = self.0.weight(row);
            let cells = self.0.numbers(row).iter().zip(origin);
            for ((total, sum), (x, o)) in weights.iter_mut().zip(&mut *means).zip(cells) {
                let is_seen = !x.is_nan();
                *total += if is_seen { weight } else { 0.0 };
                *sum += if is_seen { weight * (x - o) } else { 0.0 };
            }
        }
        for ((mean, weight), o) in means.iter_mut().zip(&*weights).zip(origin) {
            *mean = if *weight > 0.0 { o + *mean / *weight } else { 0.0 };
        }
        let of_numbers = &means[..origin.len()];
        let of_row =
            |&row: &u32| self.0.weight(row) * squared_distance(self.0.numbers(row), of_numbers);
        squares[0] = rows.iter().map(of_row).sum();
        squares[0] += self.0.level_means(rows, means, |places, seen| weights[places].fill(seen));
        sums
    }

    fn settle(&self, leaves: &[&[f64]], labels: &mut [u32]) -> f64 {
        let squares: f64 = leaves.iter().map(|sums| sums[0]).sum();
        let leaves: Vec<Part<'_>> = leaves.iter().map(|sums| self.part(sums)).collect();
        let mut clusters = self.clusters(&leaves, labels);
        let mut members = vec![0usize; self.0.k];
        labels.iter().for_each(|&label| members[label as usize] += 1);
        for _ in 0..MAX_SWEEPS {
            let mut moved = false;
            for (at, &leaf) in leaves.iter().enumerate() {
                let from = labels[at] as usize;
                if members[from] == 1 {
                    continue;
                }
                let others = (0..leaves.len()).filter(|&i| i != at && labels[i] as usize == from);
                let rest = self.joined(others.map(|i| leaves[i]));
                let gain = rest.part().apart(leaf);
                let (mut best, mut to) = (gain - TIE * (squares + gain), from);
                for (other, cluster) in clusters.iter().enumerate().filter(|(l, _)| *l != from) {
                    let cost = cluster.part().apart(leaf);
                    if cost < best {
                        (best, to) = (cost, other);
                    }
                }
                if to != from {
                    clusters[from] = rest;
                    clusters[to].add(leaf);
                    members[from] -= 1;
                    members[to] += 1;
                    labels[at] = to as u32;
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        let clusters = self.clusters(&leaves, labels);
        let spread = |(leaf, &mut label): (&Part<'_>, &mut u32)| {
            let means = &clusters[label as usize].means;
            let apart = leaf.means.iter().zip(means).map(|(m, n)| (m - n) * (m - n));
            leaf.weights.iter().zip(apart).map(|(w, square)| w * square).sum::<f64>()
        };
        squares + leaves.iter().zip(labels).map(spread).sum::<f64>()
    }

    fn update_costs(
        &self,
        leaves: &[&[f64]],
        labels: &[u32],
        costs: &mut RowCosts,
        monitor: &Monitor,
    ) {
        let leaves: Vec<Part<'_>> = leaves.iter().map(|sums| self.part(sums)).collect();
        let clusters = self.clusters(&leaves, labels);
        let centers = clusters.iter().flat_map(|Cluster { weights, means }| {
            let seen = weights.iter().zip(means).zip(&self.0.overall);
            seen.map(|((&weight, &mean), &overall)| if weight > 0.0 { mean } else { overall })
        });
        let is_used = |l: usize| labels.contains(&(l as u32));
        self.0.update(&centers.collect::<Vec<_>>(), is_used, costs, monitor);
    }

    fn seed_costs(&self, seeds: &[u32], monitor: &Monitor) -> RowCosts {
        self.0.seed_costs(seeds, monitor)
    }
}
