//! The clusters of a growing tree: their rows, and the stocks of all rows with them.
//!
//! Every split moves rows between clusters. With features a cluster's stocks are computed from the sum of its rows'
//! features, which is added up from its leaves each time: rounding does not accumulate. With a Gram matrix the stocks of rows
//! S({i}, C) are updated by the rows that move, or by those that stay if they are fewer: O(n moved).
//!
//! Cost of a split: O(n rank) per cluster that changed with features, O(n min(moved, staying)) with a Gram matrix.
//! Memory: 8 n bytes per cluster.

use crate::memory;
use crate::parallel;

use super::gains::ClusterSums;
use super::growth::Growth;
use super::kernel::{Kernel, add_row, norm};

/// Rows whose stocks with a cluster are computed by one task.
pub(super) const ROWS_PER_TASK: usize = 2048;

/// Place in the sums of a node: the weight |N| of its rows.
pub(super) const WEIGHT: usize = 0;
/// Place in the sums of a node: the sum of w_i k(i, i), its share of the kernel's trace.
pub(super) const DIAGONAL: usize = 1;
/// First place in the sums of a node of the sum of w_i z_i, the features of its rows; no entries with a Gram matrix.
pub(super) const FEATURES: usize = 2;

/// A cluster: its sums, its leaves, and the stocks of all rows with it.
pub(super) struct ClusterState {
    /// Stock, weight and number of rows.
    pub(super) sums: ClusterSums,
    /// Node ids.
    pub(super) leaves: Vec<usize>,
    /// w_i S({i}, C), by row of the table. Empty for a new cluster.
    pub(super) stocks: Vec<f64>,
}

impl ClusterState {
    /// Returns a cluster without rows.
    fn empty() -> Self {
        ClusterState { sums: ClusterSums::EMPTY, leaves: vec![], stocks: vec![] }
    }
}

impl Growth<'_, '_> {
    /// Moves the rows of the two children of a split leaf to their clusters, and updates the clusters that changed.
    /// These are added to `changed`, which is then ascending and without repetitions.
    ///
    /// `id`: the split node; `clusters`: those of the children, the number of clusters so far, or
    /// one more, for new ones.
    pub(super) fn move_rows(&mut self, id: usize, children: [usize; 2], clusters: [usize; 2]) {
        let source = self.cluster_of[id];
        self.clusters[source].leaves.retain(|&leaf| leaf != id);
        self.clusters[source].leaves.extend(children);
        for (child, target) in children.into_iter().zip(clusters) {
            if target == source {
                continue;
            }
            if target == self.clusters.len() {
                self.clusters.push(ClusterState::empty());
            }
            self.clusters[source].leaves.retain(|&leaf| leaf != child);
            self.clusters[target].leaves.push(child);
            if matches!(self.problem.kernel, Kernel::Gram { .. }) {
                self.move_stocks(source, target, child);
            }
            self.changed.push(target);
        }
        self.changed.push(source);
        self.changed.sort_unstable();
        self.changed.dedup();
        for cluster in self.changed.clone() {
            if self.problem.kernel.has_features() {
                let leaves = self.clusters[cluster].leaves.clone();
                self.clusters[cluster].stocks = self.stocks_with(&[], &leaves);
            }
            self.update_sums(cluster);
        }
    }

    /// Computes a cluster's sums from its leaves and the stocks of rows with it: S(C, C) is the squared norm of the sum
    /// of features, O(rank) per leaf, or with a Gram matrix the sum of its rows' stocks, O(rows).
    pub(super) fn update_sums(&mut self, cluster: usize) {
        let cluster_state = &self.clusters[cluster];
        let node = |&id: &usize| &self.grown.nodes[id];
        let n_rows = cluster_state.leaves.iter().map(|id| node(id).segment.len()).sum();
        let weight = cluster_state.leaves.iter().map(|id| node(id).sums[WEIGHT]).sum();
        let stock = match self.problem.kernel {
            Kernel::Features { .. } | Kernel::Sparse(_) => {
                norm(&self.features_of(&cluster_state.leaves))
            }
            Kernel::Gram { .. } => cluster_state
                .leaves
                .iter()
                .map(|id| {
                    let rows = self.grown.partition.all(node(id).segment);
                    rows.iter().map(|&row| cluster_state.stocks[row as usize]).sum::<f64>()
                })
                .sum(),
        };
        self.clusters[cluster].sums = ClusterSums { stock, weight, n_rows };
    }

    /// Returns the weighted sum of the features of the rows of some leaves. Added up from the sums of
    /// the leaves, which are added up from their rows.
    pub(super) fn features_of(&self, leaves: &[usize]) -> Vec<f64> {
        let mut sum = self.features.nothing();
        for &id in leaves {
            add_row(&mut sum, &self.grown.nodes[id].sums[FEATURES..], 1.0);
        }
        sum
    }

    /// Returns S(M, M) of the rows M of some leaves, from the Gram matrix; O(rows^2).
    pub(super) fn stock_among(&self, leaves: &[usize]) -> f64 {
        let Kernel::Gram { k, n } = self.problem.kernel else { return f64::NAN };
        let rows = self.rows_of(leaves);
        let of_row = |&row: &u32| {
            let values = &k[row as usize * n..][..n];
            let terms = rows.iter().map(|&other| self.weights.of(other) * values[other as usize]);
            self.weights.of(row) * terms.sum::<f64>()
        };
        rows.iter().map(of_row).sum()
    }

    /// Returns the rows of some leaves.
    fn rows_of(&self, leaves: &[usize]) -> Vec<u32> {
        let segments = leaves.iter().map(|&id| self.grown.nodes[id].segment);
        let mut rows =
            memory::reserved(segments.clone().map(|s| s.len()).sum(), "the rows of leaves");
        segments.for_each(|segment| rows.extend(self.grown.partition.all(segment)));
        rows
    }

    /// Returns w_i S({i}, C) of every row i of the table, of shape (n), with C the rows of `leaves` (features) or the
    /// rows `rows` (Gram matrix); the other argument is not read. O(n rank), or O(n |C|) with a Gram matrix: whole rows
    /// of the matrix are added up, which lie in memory one after the other.
    pub(super) fn stocks_with(&self, rows: &[u32], leaves: &[usize]) -> Vec<f64> {
        let mut stocks: Vec<f64> = memory::zeros(self.rows.n_samples(), "the stocks of a cluster");
        let product = self.features.product(&self.features_of(leaves));
        parallel::map(stocks.chunks_mut(ROWS_PER_TASK).enumerate(), |(block, stocks)| {
            let start = block * ROWS_PER_TASK;
            if self.monitor.check().is_err() {
                return; // the next split checks again and ends the fit
            }
            match self.problem.kernel {
                Kernel::Features { .. } | Kernel::Sparse(_) => {
                    for (stock, row) in stocks.iter_mut().zip(start as u32..) {
                        *stock = self.weights.of(row) * product(row);
                    }
                }
                Kernel::Gram { k, n } => {
                    for &row in rows {
                        let values = &k[row as usize * n + start..][..stocks.len()];
                        add_row(stocks, values, self.weights.of(row));
                    }
                    for (i, stock) in stocks.iter_mut().enumerate() {
                        *stock *= self.weights.of((start + i) as u32);
                    }
                }
            }
        });
        stocks
    }

    /// Moves the rows of a leaf from one cluster to another in the stocks of rows. Adds up the rows that move or those
    /// that stay, whichever are fewer: O(n min(moved, staying)).
    ///
    /// `source` and `target`: clusters, the leaves of `source` without `moved`; `moved`: node id of the leaf.
    fn move_stocks(&mut self, source: usize, target: usize, moved: usize) {
        let n_moved = self.grown.nodes[moved].segment.len();
        let (moved_only, staying) = ([moved], &self.clusters[source].leaves[..]);
        let n_staying: usize = staying.iter().map(|&id| self.grown.nodes[id].segment.len()).sum();
        let few = self.rows_of(if n_moved <= n_staying { &moved_only } else { staying });
        let mut of_few = self.stocks_with(&few, &[]);
        let of_source = &mut self.clusters[source].stocks;
        for (stock, few) in of_source.iter_mut().zip(&mut of_few) {
            *stock -= *few;
        }
        if n_moved > n_staying {
            std::mem::swap(of_source, &mut of_few);
        }
        let of_target = &mut self.clusters[target].stocks;
        if of_target.is_empty() {
            *of_target = of_few;
        } else {
            of_target.iter_mut().zip(of_few).for_each(|(stock, moved)| *stock += moved);
        }
    }
}
