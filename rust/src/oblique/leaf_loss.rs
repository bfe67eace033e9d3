//! What rows cost in the leaves of a tree, and the leaf that costs them least (the paper's eq. 10).
//!
//! Three losses: a cost for every row and label (the direct solver), the 0/1 loss of labels and the squared distance of
//! one-hot labels to the leaf's shares (the path, whose P they are).
//!
//! A leaf always predicts one label, the one that costs its rows least: the old one among equals, else the lowest. With
//! the squared loss it holds besides the shares of the labels in its rows, which is what minimises the loss there.
//! Sums over rows are taken in blocks of fixed size ([`parallel::sum_rows`]): the same bits for any number of threads.

use super::draft::Leaf;
use crate::parallel;

/// What a row in a leaf costs.
#[derive(Debug, Clone, Copy)]
pub enum Loss<'a> {
    /// A cost for every row and label.
    Costs {
        /// n x k, row-major, not negative.
        costs: &'a [f64],
        /// Number of labels.
        k: usize,
    },
    /// The row's weight where its label is not the leaf's: the 0/1 loss.
    Labels(Labels<'a>),
    /// The row's weight times the squared distance of its one-hot label to the leaf's shares.
    Squared(Labels<'a>),
}

/// Labels to be reproduced.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    /// A label per row.
    pub labels: &'a [u32],
    /// Row weights.
    pub weights: Option<&'a [f64]>,
    /// Number of labels.
    pub k: usize,
}

impl Labels<'_> {
    /// The weight of a row; 1 without weights.
    pub(super) fn weight(&self, row: u32) -> f64 {
        self.weights.map_or(1.0, |w| w[row as usize])
    }
}

impl Loss<'_> {
    /// Number of labels.
    pub fn k(&self) -> usize {
        match self {
            Loss::Costs { k, .. } => *k,
            Loss::Labels(labels) | Loss::Squared(labels) => labels.k,
        }
    }

    /// The loss of a row in a leaf.
    pub fn of(&self, row: u32, leaf: &Leaf) -> f64 {
        match self {
            Loss::Costs { costs, k } => costs[row as usize * k + leaf.label as usize],
            Loss::Labels(labels) => {
                let same = labels.labels[row as usize] == leaf.label;
                if same { 0.0 } else { labels.weight(row) }
            }
            Loss::Squared(labels) => {
                let own = labels.labels[row as usize] as usize;
                labels.weight(row) * squared_distance(own, &leaf.shares)
            }
        }
    }

    /// Adds what every label costs the row to `sums` (k of them).
    pub(super) fn add(&self, row: u32, sums: &mut [f64]) {
        match self {
            Loss::Costs { costs, k } => {
                for (sum, x) in sums.iter_mut().zip(&costs[row as usize * k..][..*k]) {
                    *sum += x;
                }
            }
            Loss::Labels(labels) | Loss::Squared(labels) => {
                let (own, weight) = (labels.labels[row as usize] as usize, labels.weight(row));
                for (label, sum) in sums.iter_mut().enumerate() {
                    *sum += if label == own { 0.0 } else { weight };
                }
            }
        }
    }

    /// The leaf that costs the rows least (eq. 10): the lowest label among equals, or the old one. A leaf without rows
    /// stays as it was.
    pub(super) fn leaf(&self, rows: &[u32], old: &Leaf) -> Leaf {
        if rows.is_empty() {
            return old.clone();
        }
        let k = self.k();
        let sums = parallel::sum_rows(rows, k, |row, sums| self.add(row, sums));
        let mut label = if (old.label as usize) < k { old.label as usize } else { 0 };
        for (other, sum) in sums.iter().enumerate() {
            if *sum < sums[label] {
                label = other;
            }
        }
        let shares = match self {
            Loss::Squared(labels) => {
                let weight: f64 = rows.iter().map(|&row| labels.weight(row)).sum();
                sums.iter().map(|missed| ((weight - missed) / weight).clamp(0.0, 1.0)).collect()
            }
            _ => vec![],
        };
        Leaf { label: label as u32, shares }
    }

    /// A leaf of one label.
    pub(super) fn pure(&self, label: usize) -> Leaf {
        let shares = match self {
            Loss::Squared(labels) => {
                (0..labels.k).map(|other| if other == label { 1.0 } else { 0.0 }).collect()
            }
            _ => vec![],
        };
        Leaf { label: label as u32, shares }
    }
}

/// |e_label - shares|^2; no shares: those of no label.
pub fn squared_distance(label: usize, shares: &[f64]) -> f64 {
    let squares: f64 = shares.iter().map(|p| p * p).sum();
    (1.0 - 2.0 * shares.get(label).unwrap_or(&0.0) + squares).max(0.0)
}
