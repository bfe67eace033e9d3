//! Regression trees of several targets, grown best first (Breiman, Friedman, Olshen and Stone 1984, *Classification
//! and Regression Trees*, section 8.3). With the columns themselves as targets: `XRegressionTree`.
//!
//! The leaf is split whose best cut takes most from the squared distances of the rows to the means of their leaves. A
//! cut of the node N into L and R takes
//!
//! w_L w_R / w_N |mean of L - mean of R|^2 = |s|^2 w_N / (w_S (w_N - w_S)),
//!
//! | formula | here |
//! |---|---|
//! | w, the weight of rows | the first of a node's sums, `weight` |
//! | S, the side of less weight | `Sweep::side` |
//! | s = sum over S of w_i (z_i - mean of N) | `sum` |
//!
//! Nothing large is subtracted from anything: targets are taken about the mean of the node, and either side is added
//! up from its own end of the column, up to half of the weight.
//!
//! **Ties.** Gains closer than `TIE` as a share of the largest are tied: of leaves the lowest id is split, of cuts the
//! first column's lowest is taken.
//!
//! **Cost.** O(rows x columns x targets) per node, after one sort of every column.

use crate::error::{Error, Result};
use crate::grow::{FittedNodes, GrowingTree, LeafQueue, Limits};
use crate::kauri::kernel::{Weights, add_row};
use crate::orders::{OrderCut, Orders, columns_per_task};
use crate::parallel::{self, Monitor};
use crate::table::Table;

/// Gains closer than this share of the larger are tied.
const TIE: f64 = 1e-12;
/// Rows whose targets are gathered before they are added: their cells come from memory side by side.
const ROWS_PER_BLOCK: usize = 64;
/// Either side of a cut is swept up to this share of the node's weight. More than a half, or rounding of weights could
/// pass over a cut into halves.
const SWEPT_SHARE: f64 = 0.5 + 1e-6;

/// What a regression tree is fitted to.
#[derive(Debug, Clone, Copy)]
pub struct RegressionProblem<'a> {
    /// n x width, row-major, finite. Sums of their squares must not overflow.
    pub targets: &'a [f64],
    /// Targets of a row.
    pub width: usize,
    /// Row weights, positive; none: 1 each.
    pub weights: Option<&'a [f64]>,
    /// Limits of growth.
    pub limits: Limits,
}

/// Fits a regression tree to the rows of a table.
///
/// # Errors
/// [`Error::Shape`] if sizes disagree, [`Error::Interrupted`] if the monitor was asked to stop.
pub fn fit(
    table: &Table<'_>,
    problem: &RegressionProblem<'_>,
    monitor: &Monitor,
) -> Result<FittedNodes> {
    let RegressionProblem { targets, width, weights, limits } = *problem;
    let n = table.n_samples();
    Error::check_len("The targets", targets.len(), n * width, "entries")?;
    if let Some(weights) = weights {
        Error::check_len("weights", weights.len(), n, "rows")?;
    }
    let weights = Weights(weights);
    let grown = GrowingTree::new(n, move |rows| {
        parallel::sum_rows(rows, 1 + width, |row, sums| {
            let weight = weights.of(row);
            sums[0] += weight;
            add_row(&mut sums[1..], &targets[row as usize * width..][..width], weight);
        })
    });
    let (queue, cuts) = (LeafQueue::default(), vec![]);
    let orders = Orders::new(table, monitor)?;
    let mut growth = Growth { table, problem, weights, monitor, grown, orders, queue, cuts };
    growth.open(0)?;
    let mut n_leaves = 1;
    while n_leaves < limits.max_leaves {
        let Some(id) = growth.queue.pop(TIE * growth.queue.best()) else { break };
        let Some(cut) = growth.cuts[id].take() else { break };
        let segment = growth.grown.nodes[id].segment;
        let left = growth.orders.split_leaf(table, &mut growth.grown, id, cut);
        n_leaves += 1;
        monitor.report(n_leaves, cut.score);
        if n_leaves < limits.max_leaves {
            growth.orders.split(segment);
            growth.open(left)?;
            growth.open(left + 1)?;
        }
    }
    Ok(growth.grown.fitted_nodes(|node| node.sums[0]))
}

/// A growing tree.
struct Growth<'a, 't> {
    table: &'a Table<'t>,
    problem: &'a RegressionProblem<'a>,
    weights: Weights<'a>,
    monitor: &'a Monitor,
    /// The sums of a node: its weight, then those of its targets.
    grown: GrowingTree<'a>,
    orders: Orders,
    /// Leaves that have a cut.
    queue: LeafQueue,
    /// Their best cuts, by node id.
    cuts: Vec<Option<OrderCut>>,
}

impl Growth<'_, '_> {
    /// Finds the best cut of the next node and adds the node to the queue if it has one.
    fn open(&mut self, id: usize) -> Result<()> {
        let (node, limits) = (&self.grown.nodes[id], self.problem.limits);
        let may_split = limits.max_depth.is_none_or(|most| node.depth < most)
            && node.segment.len() >= 2 * limits.min_samples_leaf.max(1);
        let cut = if may_split { self.best_cut(id)? } else { None };
        if let Some(cut) = cut {
            self.queue.push(cut.score, id);
        }
        self.cuts.push(cut);
        Ok(())
    }

    /// The cut of largest gain; none if none gains anything.
    fn best_cut(&self, id: usize) -> Result<Option<OrderCut>> {
        let node = &self.grown.nodes[id];
        let total = node.sums[0];
        let mean: Vec<f64> = node.sums[1..].iter().map(|sum| sum / total).collect();
        let sweep = Sweep { growth: self, id, total, mean };
        let at_a_time = columns_per_task(node.segment.len());
        let gains = parallel::try_map_some(0..self.table.n_features(), at_a_time, |feature| {
            let mut best = 0.0f64;
            sweep.column(feature, |_, gain| best = best.max(gain))?;
            Ok(best)
        })?;
        let score = gains.iter().copied().fold(0.0, f64::max);
        let floor = score - TIE * score;
        let Some(feature) = gains.iter().position(|&gain| gain >= floor && gain > 0.0) else {
            return Ok(None);
        };
        let mut n_left = usize::MAX;
        sweep.column(feature, |left, gain| {
            if gain >= floor {
                n_left = n_left.min(left);
            }
        })?;
        Ok(Some(OrderCut { feature, n_left, score }))
    }
}

/// The cuts of a node.
struct Sweep<'g, 'a, 't> {
    growth: &'g Growth<'a, 't>,
    id: usize,
    /// Weight of its rows.
    total: f64,
    /// Means of its targets.
    mean: Vec<f64>,
}

impl Sweep<'_, '_, '_> {
    /// Calls `visit(n_left, gain)` for every cut of a column between different values that leaves enough rows on both
    /// sides; for a cut into halves it may do so twice.
    fn column(&self, feature: usize, mut visit: impl FnMut(usize, f64)) -> Result<()> {
        let segment = self.growth.grown.nodes[self.id].segment;
        let order = self.growth.orders.of(feature, segment);
        let mut cells = Vec::new();
        self.growth.table.column(feature).gather(order, &mut cells);
        let n = order.len();
        let least = self.growth.problem.limits.min_samples_leaf.max(1);
        let is_cut = |n_left: usize| {
            n_left >= least && n - n_left >= least && cells[n_left - 1] < cells[n_left]
        };
        self.side(order.iter(), is_cut, &mut visit)?;
        self.side(
            order.iter().rev(),
            |n_rows| is_cut(n - n_rows),
            |n_rows, gain| visit(n - n_rows, gain),
        )
    }

    /// Calls `visit(n_rows, gain)` for the sides of the first `n_rows` rows that are cuts, up to about half of the
    /// weight.
    fn side<'r>(
        &self,
        rows: impl ExactSizeIterator<Item = &'r u32>,
        is_cut: impl Fn(usize) -> bool,
        mut visit: impl FnMut(usize, f64),
    ) -> Result<()> {
        let RegressionProblem { targets, width, .. } = *self.growth.problem;
        let (mut weight, mut sum) = (0.0, vec![0.0; width]);
        let (mut block, mut gathered) = ([0u32; ROWS_PER_BLOCK], vec![]);
        let (n, mut rows) = (rows.len(), rows);
        for start in (0..n - 1).step_by(ROWS_PER_BLOCK) {
            self.growth.monitor.check()?;
            let block = &mut block[..ROWS_PER_BLOCK.min(n - 1 - start)];
            block.iter_mut().zip(&mut rows).for_each(|(place, &row)| *place = row);
            gathered.clear();
            for &row in &*block {
                gathered.extend_from_slice(&targets[row as usize * width..][..width]);
            }
            for (i, (&row, targets)) in block.iter().zip(gathered.chunks(width.max(1))).enumerate()
            {
                let of_row = self.growth.weights.of(row);
                weight += of_row;
                if weight > SWEPT_SHARE * self.total {
                    return Ok(());
                }
                let square = add_centered(&mut sum, targets, &self.mean, of_row);
                let n_rows = start + i + 1;
                if is_cut(n_rows) {
                    visit(n_rows, square * (self.total / (weight * (self.total - weight))));
                }
            }
        }
        Ok(())
    }
}

/// Adds `weight * (targets - mean)` to `sum`; returns the square of the sum's norm.
#[inline]
fn add_centered(sum: &mut [f64], targets: &[f64], mean: &[f64], weight: f64) -> f64 {
    let mut squares = [0.0; 4];
    let ((s4, s1), (t4, t1), (m4, m1)) =
        (sum.as_chunks_mut::<4>(), targets.as_chunks::<4>(), mean.as_chunks::<4>());
    for ((s, t), m) in s4.iter_mut().zip(t4).zip(m4) {
        for lane in 0..4 {
            s[lane] += weight * (t[lane] - m[lane]);
            squares[lane] += s[lane] * s[lane];
        }
    }
    let mut rest = 0.0;
    for ((s, t), m) in s1.iter_mut().zip(t1).zip(m1) {
        *s += weight * (t - m);
        rest += *s * *s;
    }
    (squares[0] + squares[1]) + (squares[2] + squares[3]) + rest
}
