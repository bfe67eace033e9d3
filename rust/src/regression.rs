//! Regression trees of the columns on themselves, grown best first (Breiman, Friedman, Olshen and Stone 1984,
//! *Classification and Regression Trees*, section 8.3): `XRegressionTree`, and the maximal tree of CUBT (Fraiman,
//! Ghattas and Svarc 2013, *Interpretable clustering using unsupervised binary trees*, section 2.1).
//!
//! The leaf is split whose best cut takes most from the squared distances of the rows to the means of their leaves. A
//! cut of the node N into L and R takes
//!
//! w_L w_R / w_N |mean of L - mean of R|^2 = |s|^2 w_N / (w_S (w_N - w_S)),
//!
//! | formula | here |
//! |---|---|
//! | w, the weight of rows | the first of a node's sums, `weight` |
//! | z_i, the row in units | a row of `targets` |
//! | S, the side of less weight | `Side` |
//! | s = sum over S of w_i (z_i - mean of N) | `Side::sum`, and what `Side` knows of the rest |
//! | b, the common value of a column in N | `NodeColumn::Common` |
//! | u = sum over S of w_i (z_i - b), of columns with a common value | `Side::off_common` |
//! | mindev n R(S) of CUBT, S all rows | [`RegressionProblem::min_gain`] times the spread of all rows |
//!
//! Nothing large is subtracted from anything: targets are taken about the mean of the node, and either side is added
//! up from its own end of the column, up to half of the weight.
//!
//! **Common values.** Of counts and pixels most are zero. Where at least 0.7 of a node's rows have the same value of a
//! column, only the others are swept, and only theirs are added up: with o = mean of N - b, and for these columns
//!
//! |s|^2 = |u|^2 - 2 w_S <u, o> + w_S^2 |o|^2,
//!
//! where a row changes as many entries of u as it has other values. As the others are few, |o|^2 is less than the
//! variance, and no digits are lost that count.
//!
//! **Ties.** Gains closer than `TIE` as a share of the largest (and what rounding may add with common values) are tied:
//! of leaves the lowest id is split, of cuts the first column's lowest is taken.
//!
//! **Cost.** One sort of every column, then per node O(rows x columns), and for every row and column without the common
//! value as much as the row has other values: O(rows x columns^2) for rows without common values.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::grow::{FittedNodes, GrowingTree, LeafQueue, Limits};
use crate::kauri::kernel::{Weights, add_row, norm};
use crate::memory;
use crate::orders::{OrderCut, Orders, columns_per_task};
use crate::parallel::{self, Monitor};
use crate::table::Table;

/// Gains closer than this share of the larger are tied.
const TIE: f64 = 1e-12;
/// What a gain may be off by, as a share of w_N |o|^2.
const ROUNDING: f64 = 1e-13;
/// Numbers of a block of rows that are gathered before they are added: they come from memory side by side.
const NUMBERS_PER_BLOCK: usize = 2048;
/// Either side of a cut is swept up to this share of the node's weight. More than a half, or rounding of weights could
/// pass over a cut into halves.
const SWEPT_SHARE: f64 = 0.5 + 1e-6;
/// A value is a column's common one if at most this share of a node's rows, and of their weight, have another.
const MAX_OTHERS: f64 = 0.3;
/// Columns whose common value one task finds.
const COLUMNS_PER_TASK: usize = 32;
/// Rows of a node that one task reads.
const ROWS_PER_TASK: usize = 512;

/// What a regression tree is fitted to.
#[derive(Debug, Clone, Copy)]
pub struct RegressionProblem<'a> {
    /// The table in units, n x d, row-major, finite: where a column has equal values, so has its target. Sums of
    /// squares must not overflow.
    pub targets: &'a [f64],
    /// Row weights, positive; none: 1 each.
    pub weights: Option<&'a [f64]>,
    /// Least gain of a cut, as a share of the squared distances of all rows to their mean.
    pub min_gain: f64,
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
    let RegressionProblem { targets, weights, min_gain, limits } = *problem;
    let (n, d) = (table.n_samples(), table.n_features());
    Error::check_len("The targets", targets.len(), n * d, "entries")?;
    if let Some(weights) = weights {
        Error::check_len("weights", weights.len(), n, "rows")?;
    }
    let weights = Weights(weights);
    let grown = GrowingTree::new(n, move |rows| {
        parallel::sum_rows(rows, 1 + d, |row, sums| {
            let weight = weights.of(row);
            sums[0] += weight;
            add_row(&mut sums[1..], &targets[row as usize * d..][..d], weight);
        })
    });
    let place = memory::zeros(n, "the places of the rows");
    let (queue, cuts) = (LeafQueue::default(), vec![]);
    let orders = Orders::new(table, monitor)?;
    let mut growth =
        Growth { table, problem, weights, monitor, grown, orders, place, least: 0.0, queue, cuts };
    growth.least = if min_gain > 0.0 { min_gain * growth.spread() } else { 0.0 };
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
    /// By row: its place among those of the node that is searched.
    place: Vec<u32>,
    /// Least gain of a cut.
    least: f64,
    /// Leaves that have a cut.
    queue: LeafQueue,
    /// Their best cuts, by node id.
    cuts: Vec<Option<OrderCut>>,
}

impl Growth<'_, '_> {
    /// The target row of a row.
    fn target(&self, row: u32) -> &[f64] {
        let d = self.table.n_features();
        &self.problem.targets[row as usize * d..][..d]
    }

    /// Means of a node's targets.
    fn mean(&self, id: usize) -> Vec<f64> {
        let sums = &self.grown.nodes[id].sums;
        sums[1..].iter().map(|sum| sum / sums[0]).collect()
    }

    /// Squared distances of all rows to their mean.
    fn spread(&self) -> f64 {
        let mean = self.mean(0);
        let rows = self.grown.partition.all(self.grown.nodes[0].segment);
        parallel::sum_rows(rows, 1, |row, sums| {
            let cells = self.target(row).iter().zip(&mean);
            let square: f64 = cells.map(|(z, mean)| (z - mean) * (z - mean)).sum();
            sums[0] += self.weights.of(row) * square;
        })[0]
    }

    /// A column in a node: O(log rows), and O(rows without the common value) if rows have weights.
    fn node_column(&self, id: usize, feature: usize) -> NodeColumn {
        let node = &self.grown.nodes[id];
        let order = self.orders.of(feature, node.segment);
        let column = self.table.column(feature);
        let common = column.get(order[order.len() / 2] as usize);
        let first = |is_before: &dyn Fn(f64) -> bool| {
            order.partition_point(|&row| is_before(column.get(row as usize)))
        };
        let run = first(&|x| x < common)..first(&|x| x <= common);
        let others = order[..run.start].iter().chain(&order[run.end..]);
        let weight_of_others = || others.map(|&row| self.weights.of(row)).sum::<f64>();
        let has_most = (order.len() - run.len()) as f64 <= MAX_OTHERS * order.len() as f64
            && weight_of_others() <= MAX_OTHERS * node.sums[0];
        if has_most { NodeColumn::Common(run) } else { NodeColumn::Dense }
    }

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

    /// The cut of largest gain; none if none gains enough.
    fn best_cut(&mut self, id: usize) -> Result<Option<OrderCut>> {
        for (place, &row) in
            self.grown.partition.all(self.grown.nodes[id].segment).iter().enumerate()
        {
            self.place[row as usize] = place as u32;
        }
        let sweep = Sweep::new(self, id)?;
        let at_a_time = columns_per_task(self.grown.nodes[id].segment.len());
        let gains = parallel::try_map_some(0..self.table.n_features(), at_a_time, |feature| {
            let mut best = 0.0f64;
            sweep.column(feature, |_, gain| best = best.max(gain))?;
            Ok(best)
        })?;
        let rounding = ROUNDING * sweep.total * sweep.offsets_norm;
        let score = gains.iter().copied().fold(0.0, f64::max);
        let floor = score - (TIE * score).max(rounding);
        if score <= rounding.max(self.least) {
            return Ok(None);
        }
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

/// A column in a node.
#[derive(Debug, Clone)]
enum NodeColumn {
    /// Its rows have many values.
    Dense,
    /// The rows at these places in the order of the column have the same value, most of all.
    Common(Range<usize>),
}

/// The cuts of a node, and its rows as they are added up.
struct Sweep<'g, 'a, 't> {
    growth: &'g Growth<'a, 't>,
    id: usize,
    /// Weight of its rows.
    total: f64,
    columns: Vec<NodeColumn>,
    /// Number of dense columns.
    n_dense: usize,
    /// By place of a row, the dense targets about their means: `n_dense` numbers each.
    dense: Vec<f64>,
    /// By place of a row, its other values than the common ones.
    sparse: Vec<SparseRow>,
    /// |o|^2, o the means of the columns with a common value about that.
    offsets_norm: f64,
}

/// A row in the columns with a common value.
#[derive(Debug, Clone, Default)]
struct SparseRow {
    /// Columns, counted among those with a common value, and z - b.
    entries: Vec<(u32, f64)>,
    /// |z - b|^2.
    square: f64,
    /// <z - b, o>.
    along: f64,
}

impl<'g, 'a, 't> Sweep<'g, 'a, 't> {
    fn new(growth: &'g Growth<'a, 't>, id: usize) -> Result<Self> {
        let node = &growth.grown.nodes[id];
        let total = node.sums[0];
        let mean = growth.mean(id);
        let columns = parallel::map_some(0..mean.len(), COLUMNS_PER_TASK, |feature| {
            growth.node_column(id, feature)
        });
        // What is subtracted: the mean of a dense column, else the common value.
        let mut base = mean.clone();
        for (feature, column) in columns.iter().enumerate() {
            if let NodeColumn::Common(run) = column {
                let row = growth.orders.of(feature, node.segment)[run.start];
                base[feature] = growth.target(row)[feature];
            }
        }
        let (dense_columns, sparse_columns): (Vec<usize>, Vec<usize>) =
            (0..columns.len()).partition(|&f| matches!(columns[f], NodeColumn::Dense));
        let offsets: Vec<f64> = sparse_columns.iter().map(|&f| mean[f] - base[f]).collect();
        let (rows, n_dense) = (growth.grown.partition.all(node.segment), dense_columns.len());
        let mut dense: Vec<f64> = memory::zeros(rows.len() * n_dense, "the rows of a node");
        let parts = dense.chunks_mut((ROWS_PER_TASK * n_dense).max(1));
        parallel::map(parts.zip(rows.chunks(ROWS_PER_TASK)), |(dense, rows)| {
            for (row, dense) in rows.iter().zip(dense.chunks_mut(n_dense)) {
                let target = growth.target(*row);
                for (place, &f) in dense.iter_mut().zip(&dense_columns) {
                    *place = target[f] - base[f];
                }
            }
        });
        let sparse = if sparse_columns.is_empty() {
            vec![]
        } else {
            parallel::collect(rows.len(), ROWS_PER_TASK, "the rows of a node", |place| {
                let target = growth.target(rows[place]);
                SparseRow::new(sparse_columns.iter().map(|&f| target[f] - base[f]), &offsets)
            })
        };
        growth.monitor.check()?;
        let offsets_norm = norm(&offsets);
        Ok(Sweep { growth, id, total, columns, n_dense, dense, sparse, offsets_norm })
    }

    /// Calls `visit(n_left, gain)` for every cut of a column between different values that leaves enough rows on both
    /// sides; for a cut into halves it may do so twice.
    fn column(&self, feature: usize, mut visit: impl FnMut(usize, f64)) -> Result<()> {
        let order = self.growth.orders.of(feature, self.growth.grown.nodes[self.id].segment);
        let n = order.len();
        // Rows on either side of those that are not swept: none, or those with the common value.
        let (n_below, n_above) = match &self.columns[feature] {
            NodeColumn::Dense => (n - 1, n - 1),
            NodeColumn::Common(run) => (run.start, n - run.end),
        };
        let least = self.growth.problem.limits.min_samples_leaf.max(1);
        let is_allowed = |n_left: usize| n_left >= least && n - n_left >= least;
        let column = self.growth.table.column(feature);
        // With one row beyond the last cut.
        let mut cells = Vec::new();
        column.gather(&order[..(n_below + 1).min(n)], &mut cells);
        self.side(
            order[..n_below].iter(),
            |n_left| is_allowed(n_left) && cells[n_left - 1] < cells[n_left],
            &mut visit,
        )?;
        let first = n - (n_above + 1).min(n);
        if first > 0 {
            column.gather(&order[first..], &mut cells);
        }
        let above = order[n - n_above..].iter().rev();
        let is_cut = |n_right: usize| {
            let place = n - first - n_right;
            is_allowed(n - n_right) && cells[place - 1] < cells[place]
        };
        self.side(above, is_cut, |n_right, gain| visit(n - n_right, gain))
    }

    /// Calls `visit(n_rows, gain)` for the sides of the first `n_rows` rows that are cuts, up to about half of the
    /// weight.
    fn side<'r>(
        &self,
        rows: impl ExactSizeIterator<Item = &'r u32>,
        is_cut: impl Fn(usize) -> bool,
        mut visit: impl FnMut(usize, f64),
    ) -> Result<()> {
        let n_dense = self.n_dense;
        let mut side = Side::new(self);
        let (mut block, mut gathered) = (vec![], vec![]);
        let (mut rows, mut n_rows) = (rows, 0);
        while rows.len() > 0 {
            self.growth.monitor.check()?;
            block.clear();
            gathered.clear();
            block.extend(rows.by_ref().take((NUMBERS_PER_BLOCK / n_dense.max(16)).max(1)));
            for &&row in &block {
                let place = self.growth.place[row as usize] as usize;
                gathered.extend_from_slice(&self.dense[place * n_dense..][..n_dense]);
            }
            for (i, &&row) in block.iter().enumerate() {
                let square = side.add(self, row, &gathered[i * n_dense..][..n_dense]);
                if side.weight > SWEPT_SHARE * self.total {
                    return Ok(());
                }
                n_rows += 1;
                if is_cut(n_rows) {
                    visit(
                        n_rows,
                        square * (self.total / (side.weight * (self.total - side.weight))),
                    );
                }
            }
        }
        Ok(())
    }
}

impl SparseRow {
    /// `cells`: z - b of the columns with a common value; `offsets`: their o.
    fn new(cells: impl Iterator<Item = f64>, offsets: &[f64]) -> Self {
        let mut row = SparseRow::default();
        for ((column, x), offset) in (0..).zip(cells).zip(offsets) {
            if x != 0.0 {
                row.entries.push((column, x));
                row.square += x * x;
                row.along += x * offset;
            }
        }
        row
    }
}

/// One side of a cut: what its rows add up to.
struct Side {
    weight: f64,
    /// s of the dense columns.
    sum: Vec<f64>,
    /// u, of the columns with a common value.
    off_common: Vec<f64>,
    /// |u|^2.
    square: f64,
    /// <u, o>.
    along: f64,
}

impl Side {
    fn new(sweep: &Sweep<'_, '_, '_>) -> Self {
        let (sum, off_common) =
            (vec![0.0; sweep.n_dense], vec![0.0; sweep.columns.len() - sweep.n_dense]);
        Side { weight: 0.0, sum, off_common, square: 0.0, along: 0.0 }
    }

    /// Adds a row; returns |s|^2. `dense`: its dense targets about their means.
    #[inline]
    fn add(&mut self, sweep: &Sweep<'_, '_, '_>, row: u32, dense: &[f64]) -> f64 {
        let Sweep { growth, sparse, offsets_norm, .. } = sweep;
        let weight = growth.weights.of(row);
        self.weight += weight;
        let square = add_squared(&mut self.sum, dense, weight);
        if self.off_common.is_empty() {
            return square;
        }
        let row = &sparse[growth.place[row as usize] as usize];
        let mut product = 0.0;
        for &(column, x) in &row.entries {
            let u = &mut self.off_common[column as usize];
            product += *u * x;
            *u += weight * x;
        }
        self.square += weight * (2.0 * product + weight * row.square);
        self.along += weight * row.along;
        let rest = self.square - self.weight * (2.0 * self.along - self.weight * offsets_norm);
        square + rest.max(0.0)
    }
}

/// Adds `weight * row` to `sum`; returns the square of the sum's norm.
#[inline]
fn add_squared(sum: &mut [f64], row: &[f64], weight: f64) -> f64 {
    let mut squares = [0.0; 4];
    let ((s4, s1), (t4, t1)) = (sum.as_chunks_mut::<4>(), row.as_chunks::<4>());
    for (s, t) in s4.iter_mut().zip(t4) {
        for lane in 0..4 {
            s[lane] += weight * t[lane];
            squares[lane] += s[lane] * s[lane];
        }
    }
    let mut rest = 0.0;
    for (s, t) in s1.iter_mut().zip(t1) {
        *s += weight * t;
        rest += *s * *s;
    }
    (squares[0] + squares[1]) + (squares[2] + squares[3]) + rest
}
