//! The weight of the rows whose label is not the reference's: the best explanation of anybody's labels.
//!
//! A leaf adds up to the weight of each reference label, and its best label is the heaviest.

use super::objective::{Objective, RowCosts};
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::Monitor;

/// Reference labels to reproduce.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    labels: &'a [u32],
    k: usize,
    weights: Option<&'a [f64]>,
}

impl<'a> Labels<'a> {
    /// `labels`: in `[0, k)`, one per row. `weights`: positive; none: 1 each.
    ///
    /// # Errors
    /// [`Error::Shape`] if sizes disagree, [`Error::Value`] if a label is out of range.
    pub fn new(labels: &'a [u32], k: usize, weights: Option<&'a [f64]>) -> Result<Self> {
        Error::check_labels(labels, labels.len(), k)?;
        let n_weights = weights.map_or(labels.len(), <[f64]>::len);
        Error::check_len("weights", n_weights, labels.len(), "rows")?;
        Ok(Labels { labels, k, weights })
    }

    fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row])
    }
}

impl Objective for Labels<'_> {
    fn n_labels(&self) -> usize {
        self.k
    }

    fn n_samples(&self) -> usize {
        self.labels.len()
    }

    fn leaf(&self, rows: &[u32]) -> Vec<f64> {
        let mut sums = vec![0.0; self.k];
        for &row in rows {
            sums[self.labels[row as usize] as usize] += self.weight(row as usize);
        }
        sums
    }

    fn settle(&self, leaves: &[&[f64]], labels: &mut [u32]) -> f64 {
        let mut mistakes = 0.0;
        for (sums, label) in leaves.iter().zip(labels) {
            for other in 0..self.k {
                if sums[other] > sums[*label as usize] {
                    *label = other as u32;
                }
            }
            let others = sums.iter().enumerate().filter(|(l, _)| *l != *label as usize);
            mistakes += others.map(|(_, weight)| weight).sum::<f64>();
        }
        mistakes
    }

    fn update_costs(&self, _: &[&[f64]], _: &[u32], costs: &mut RowCosts, _: &Monitor) {
        if costs.costs.is_empty() {
            costs.costs = memory::zeros(self.labels.len() * self.k, "the costs of rows");
            for (row, costs) in costs.costs.chunks_mut(self.k).enumerate() {
                costs.fill(self.weight(row));
                costs[self.labels[row] as usize] = 0.0;
            }
        }
    }

    fn seed_costs(&self, _: &[u32], monitor: &Monitor) -> RowCosts {
        let mut costs = RowCosts::default();
        self.update_costs(&[], &[], &mut costs, monitor);
        costs
    }
}
