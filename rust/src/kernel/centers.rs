//! The centers of Kernel IMM: the clusters' means in the space of the surrogate features.
//!
//! A mean that differs from a value of its feature by rounding alone is set to that value, as in IMM on
//! columns: rounding opens no gaps between a center and a row. Cost: O(n) per feature; memory: 8 k bytes per feature.
//!
//! Symbols: mu_c(phi) = sum of w_i phi(x_i) / sum of w_i over the rows i of cluster c is
//! `coordinates[feature * k + c]`. Means are formed feature by feature from the values of the column, so that the
//! n x (number of features) matrix never exists.

use std::borrow::Cow;

use rayon::prelude::*;

use super::features::{Surrogate, ascending};
use super::imm::MIN_FEATURES_PER_TASK;
use crate::criterion::centers::{CenterColumns, Coordinate, in_order, snap};
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::Monitor;

/// A mean and a value this share of the cluster's range apart are the same.
const CLOSE: f64 = 1e-9;
/// What a mean may be off by rounding, as a share of its size: values are computed too.
const ROUNDING: f64 = 1e-12;

/// The clusters' means in every feature, of shape (features, k).
#[derive(Debug)]
pub struct FeatureCenters {
    k: usize,
    /// By feature, then cluster.
    coordinates: Vec<f64>,
    /// Half the range of every feature.
    half_range: Vec<f64>,
}

impl FeatureCenters {
    /// Computes the weighted means of the clusters' rows, snapped to values of the features where only rounding keeps
    /// them apart. `labels`: of shape (n), each in `[0, k)`; `weights`: of shape (n), positive; none: all 1.
    ///
    /// # Errors
    /// [`Error::Value`] if two clusters have the same center in every feature; [`Error::Interrupted`] if the
    /// monitor was stopped.
    pub fn new(
        surrogate: &Surrogate,
        labels: &[u32],
        k: usize,
        weights: Option<&[f64]>,
        monitor: &Monitor,
    ) -> Result<Self> {
        let mut weight = vec![0.0; k];
        for (row, &label) in labels.iter().enumerate() {
            weight[label as usize] += weights.map_or(1.0, |w| w[row]);
        }
        let all: Vec<Vec<u32>> = surrogate.columns().iter().map(|c| c.ranks()).collect();
        let of_feature = |phi: &mut Vec<f64>, feature: usize| -> Result<(Vec<f64>, f64)> {
            monitor.check()?;
            let column = surrogate.place(feature).0;
            surrogate.evaluate(feature, &all[column], phi);
            let rank = &surrogate.columns()[column].rank;
            let mut sums = vec![0.0; k];
            let mut ends = vec![(f64::INFINITY, f64::NEG_INFINITY); k];
            for (row, (&rank, &label)) in rank.iter().zip(labels).enumerate() {
                let x = phi[rank as usize];
                sums[label as usize] += weights.map_or(x, |w| w[row] * x);
                let (low, high) = &mut ends[label as usize];
                (*low, *high) = (low.min(x), high.max(x));
            }
            let mut distinct = memory::reserved(phi.len(), "the values of a feature");
            ascending(phi, |x, _| distinct.push(x));
            let mut centers = vec![Coordinate::exact(0.0); k];
            let (mut margins, mut near) = (vec![0.0; k], vec![vec![]; k]);
            for c in 0..k {
                let (low, high) = ends[c];
                // A mean lies among its rows; rounding may push it out.
                let mean = (sums[c] / weight[c]).max(low).min(high);
                centers[c] = Coordinate::exact(mean);
                margins[c] =
                    ROUNDING * mean.abs() + if low < high { CLOSE * (high - low) } else { 0.0 };
                let above = distinct.partition_point(|&x| x < mean);
                if distinct.get(above) != Some(&mean) {
                    near[c] =
                        distinct[above.saturating_sub(1)..distinct.len().min(above + 1)].to_vec();
                }
            }
            snap(&mut centers, &margins, &near);
            let centers = centers.iter().map(Coordinate::nearest).collect();
            let (low, high) = (distinct.first(), distinct.last());
            Ok((centers, low.zip(high).map_or(0.0, |(low, high)| high / 2.0 - low / 2.0)))
        };
        let found: Vec<(Vec<f64>, f64)> = (0..surrogate.len())
            .into_par_iter()
            .with_min_len(MIN_FEATURES_PER_TASK)
            .map_init(Vec::new, of_feature)
            .collect::<Result<_>>()?;
        let (coordinates, half_range): (Vec<Vec<f64>>, Vec<f64>) = found.into_iter().unzip();
        let coordinates = coordinates.concat();
        let centers = FeatureCenters { k, coordinates, half_range };
        centers.check_distinct()?;
        Ok(centers)
    }

    /// Returns the centers' coordinates in a feature, by cluster: k numbers in the feature's own unit.
    pub(super) fn of(&self, feature: usize) -> &[f64] {
        &self.coordinates[feature * self.k..][..self.k]
    }

    /// Checks that every two centers differ in some feature: else no tree separates their clusters. O(k^2) times the
    /// features that agree.
    ///
    /// # Errors
    /// [`Error::Value`] with the numbers of the first two that do not.
    fn check_distinct(&self) -> Result<()> {
        let equal =
            |a: usize, b: usize| (0..self.half_range.len()).all(|f| self.of(f)[a] == self.of(f)[b]);
        match (0..self.k).flat_map(|b| (0..b).map(move |a| (a, b))).find(|&(a, b)| equal(a, b)) {
            None => Ok(()),
            Some((a, b)) => Err(Error::Value(format!(
                "The surrogate features cannot tell the clusters number {a} and {b} (counting from 0) apart: their \
                 centers are equal. Use other features, a higher order or more anchors, or grow without Kernel IMM \
                 (base_tree=None)."
            ))),
        }
    }
}

impl CenterColumns for FeatureCenters {
    fn sorted(&self, feature: usize) -> Cow<'_, [(Coordinate, u32)]> {
        Cow::Owned(in_order(self.of(feature).iter().map(|&x| Coordinate::exact(x))))
    }

    fn half_range(&self, feature: usize) -> f64 {
        self.half_range[feature]
    }
}
