//! The rows of a node along each column, by distinct value.
//!
//! A feature of a column is a function of its distinct values, so that one sort of the values is enough for all of
//! its features. A value is represented by its *rank*, its place among the distinct
//! values of the column in the whole table, so equal cells need no comparison of floats.
//!
//! Cost: O(m log m) per column for the m rows of a node; memory: O(m + k v) for k clusters and v distinct values.

use super::features::SurrogateColumn;
use super::imm::KernelImm;
use crate::error::Result;
use crate::grow::GrowingTree;
use crate::memory;
use crate::parallel::{self, Monitor};

/// One column at one node. Searched rows are those that no cut has separated from their center.
pub(super) struct NodeColumn {
    /// The distinct values of all rows of the node, as ranks, ascending.
    pub(super) ranks: Vec<u32>,
    /// Number of searched rows of each value.
    pub(super) count: Vec<u32>,
    /// Their weight by cluster, of shape (values, k).
    pub(super) sums: Vec<f64>,
    /// Cluster and weight of the searched rows, in the order of their values.
    pub(super) rows: Vec<(u32, f64)>,
    /// Where the rows of each value begin, and their number.
    pub(super) first: Vec<usize>,
    /// For features that are steps: counts and sums of all values before each, and of all.
    pub(super) before: Option<(Vec<u32>, Vec<f64>)>,
}

impl KernelImm<'_> {
    /// Returns all columns at a node, in their order. `id`: the node, whose searched rows count in the sums; rows that
    /// are mistakes already only contribute their values.
    ///
    /// # Errors
    /// [`crate::error::Error::Interrupted`] if the monitor was stopped.
    pub(super) fn node_columns(
        &self,
        grown: &GrowingTree<'_>,
        id: usize,
        monitor: &Monitor,
    ) -> Result<Vec<NodeColumn>> {
        let segment = grown.nodes[id].segment;
        let (active, dropped) = (grown.partition.active(segment), grown.partition.dropped(segment));
        let of_column = |column: &SurrogateColumn| {
            monitor.check()?;
            let rank_of = |&row: &u32| column.rank[row as usize];
            let n_rows = active.len() + dropped.len();
            let mut rows: Vec<(u32, u32)> = memory::reserved(n_rows, "the ranks of a node");
            rows.extend(active.iter().map(|row| (rank_of(row), *row)));
            rows.extend(dropped.iter().map(|row| (rank_of(row), u32::MAX)));
            rows.sort_unstable();
            let n_values = rows.chunk_by(|a, b| a.0 == b.0).count();
            let mut ranks = memory::reserved(n_values, "the ranks of a node");
            let mut count = memory::reserved(n_values, "the ranks of a node");
            let mut sums = memory::reserved(n_values * self.k, "the sums of a node's values");
            let mut searched_rows = memory::reserved(active.len(), "the rows of a node");
            let mut first = memory::reserved(n_values + 1, "the ranks of a node");
            first.push(0);
            for equal in rows.chunk_by(|a, b| a.0 == b.0) {
                ranks.push(equal[0].0);
                let start = sums.len();
                sums.resize(start + self.k, 0.0);
                let searched = equal.iter().filter(|(_, row)| *row != u32::MAX);
                count.push(searched.clone().count() as u32);
                for &(_, row) in searched {
                    let weight = self.weights.map_or(1.0, |w| w[row as usize]);
                    let label = self.labels[row as usize];
                    sums[start + label as usize] += weight;
                    searched_rows.push((label, weight));
                }
                first.push(searched_rows.len());
            }
            let before = self.surrogate.has_steps().then(|| running(&count, &sums, self.k));
            Ok(NodeColumn { ranks, count, sums, rows: searched_rows, first, before })
        };
        parallel::try_map(self.surrogate.columns(), of_column)
    }
}

/// Returns counts and sums of all entries before each, and of all. `sums`: of shape (entries, k).
fn running(count: &[u32], sums: &[f64], k: usize) -> (Vec<u32>, Vec<f64>) {
    let mut counts = memory::reserved(count.len() + 1, "the ranks of a node");
    let mut totals = memory::reserved(sums.len() + k, "the sums of a node's values");
    counts.push(0);
    totals.resize(k, 0.0);
    for (i, &count) in count.iter().enumerate() {
        counts.push(counts[i] + count);
        for c in 0..k {
            totals.push(totals[i * k + c] + sums[i * k + c]);
        }
    }
    (counts, totals)
}
