//! What the search minimises, in four questions that every objective answers.
//!
//! The search never looks at the rows of leaves that a candidate leaves alone: an objective adds up each leaf's rows
//! once ([`Objective::leaf`]), and from these sums follow the best labels of all leaves and the value of the tree
//! ([`Objective::settle`]). New cuts are proposed by the costs of single rows under each label
//! ([`Objective::update_costs`]), which may lag behind: what counts is the value. They are
//! left as they are once the monitor was asked to stop.

use crate::parallel::Monitor;

/// An objective of threshold trees whose leaves have labels in `[0, k)`.
pub trait Objective: Sync {
    /// Number of labels, k.
    fn n_labels(&self) -> usize;

    /// Number of rows, n.
    fn n_samples(&self) -> usize;

    /// What the rows of a leaf add up to.
    fn leaf(&self, rows: &[u32]) -> Vec<f64>;

    /// Improves the labels of leaves, given by their sums, until no change of one label lowers the value; returns the
    /// value of the tree. It never exceeds that of the labels given.
    fn settle(&self, leaves: &[&[f64]], labels: &mut [u32]) -> f64;

    /// Brings the costs of rows up to date with leaves and their labels. With labels that [`Objective::settle`]
    /// returned, the costs of all rows under the labels of their leaves add up to the value.
    fn update_costs(
        &self,
        leaves: &[&[f64]],
        labels: &[u32],
        costs: &mut RowCosts,
        monitor: &Monitor,
    );

    /// The costs of rows if cluster l consisted of the row `seeds[l]` alone, k of them.
    fn seed_costs(&self, seeds: &[u32], monitor: &Monitor) -> RowCosts;
}

/// What every row costs under every label, weights included.
#[derive(Debug, Clone, Default)]
pub struct RowCosts {
    /// n x k, row-major; empty before the first update.
    pub costs: Vec<f64>,
    /// What the costs were made from, for updates of what has changed.
    pub centers: Vec<f64>,
}
