//! The search of the open leaves for the move of largest gain.
//!
//! A leaf's gains without existing clusters are exact after every update. The gains of moves to existing clusters
//! cost O(rows) per cluster and column, so that they are bounded: when the rows of some clusters changed, only the
//! target terms of these clusters are computed, and the bounds over all clusters are raised to them. A cluster that
//! has become less attractive leaves its old, larger bound behind: the bounds stay upper bounds but are no longer
//! exact. Only leaves whose bound reaches the best gain get exact ones.
//!
//! | symbol | here |
//! |---|---|
//! | N, a leaf; M, the rest of its cluster | [`OpenLeaf`]; `rest` in its [`LeafState`] |
//! | L, R, the sides of a cut | prefix and suffix of [`OpenColumn::order`] |
//! | S(N, M), S(L, M) | `cross_rest` of the leaf, of the column |
//! | S(N, C), S(L, C) for another cluster C | [`CrossStocks`] of a target |
//!
//! Cost of an update: O(rows) per column for a stale leaf, and as much per changed cluster; an exact gain takes O(rows)
//! per column and cluster. Gains are in units of the objective.

use std::ops::Range;

use rayon::prelude::*;

use super::clusters::{ROWS_PER_TASK, WEIGHT};
use super::cuts::{ColumnCuts, LeftSums};
use super::gains::{
    ClusterSums, CrossStocks, CutGains, JoinBounds, LeafState, MoveBounds, NewClusterGains, largest,
};
use super::growth::{Growth, NextSplit};
use super::kernel::{Kernel, norm};
use super::level_stocks::LevelStocks;
use super::moves::AllowedMoves;
use crate::error::{Error, Result};
use crate::memory;
use crate::orders::columns_per_task;
use crate::parallel;
use crate::partition::Segment;
use crate::sparse::columns::SparseColumns;

/// With a Gram matrix: up to this quotient of the weights of cluster and rest the stock of the rest is a difference,
/// above it the sum of its entries, O(rest^2): the difference would lose too many digits.
const MAX_CLUSTER_TO_REST: f64 = 64.0;

/// A set of cuts of an open leaf along a column.
struct OpenSet {
    /// The cuts, ascending.
    cuts: ColumnCuts,
    /// S(L, M) of the cuts with the rest M of the leaf's own cluster.
    cross_rest: Vec<f64>,
    /// See [`OpenLeaf::bound_state`].
    join_bounds: JoinBounds,
    /// Largest gains of moves without existing clusters, as [`OpenLeaf::new_cluster`] has them.
    new_cluster: NewClusterGains,
    /// Upper bounds on the gains of moves to existing clusters, from the join bounds.
    move_bounds: MoveBounds,
}

impl OpenSet {
    fn new(cuts: ColumnCuts) -> Self {
        OpenSet {
            cuts,
            cross_rest: vec![],
            join_bounds: JoinBounds::default(),
            new_cluster: NewClusterGains::NONE,
            move_bounds: MoveBounds::NONE,
        }
    }

    /// Returns the gains of the cuts. `cross_rest`: S(N, M) of the leaf.
    fn gains(&self, state: LeafState, cross_rest: f64) -> CutGains<'_> {
        let cross = CrossStocks { leaf: cross_rest, left: &self.cross_rest };
        CutGains::new(&self.cuts, state, cross)
    }
}

/// What the bounds of a column are computed in.
type Buffers = (LeftSums, Vec<f64>, Vec<bool>);

/// The cuts of an open leaf along a column.
pub(super) struct OpenColumn {
    /// Sets that are not empty.
    sets: Vec<OpenSet>,
    /// The leaf's rows in the order of the column, as positions in the leaf.
    order: Vec<u32>,
    /// The places in the column of rows that the order leaves out, zeros of sparse rows; an empty range if there are none.
    zeros: Range<usize>,
}

impl OpenColumn {
    /// `order`: the leaf's rows in the order of the column, as positions in the leaf, but for those at the places `zeros`.
    pub(super) fn new(
        sets: impl Iterator<Item = ColumnCuts>,
        order: Vec<u32>,
        zeros: Range<usize>,
    ) -> Self {
        OpenColumn { sets: sets.map(OpenSet::new).collect(), order, zeros }
    }

    /// Whether it has no cut.
    pub(super) fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Adds up the stocks of the leaf's rows over the left sides of the cuts. `whole`: over all rows. O(listed rows).
    fn left_sums<'s>(&self, stocks: &[f64], whole: f64, sums: &'s mut LeftSums) -> &'s LeftSums {
        let value = |position: u32| stocks[position as usize];
        if !self.zeros.is_empty() {
            return sums.read_around(&self.order, &self.zeros, whole, value);
        }
        let sets = self.sets.iter().map(|set| &set.cuts.set);
        sums.read(sets, &self.order, value)
    }

    /// Returns the sum of the stocks over the left side of one cut, as [`OpenColumn::left_sums`] has it.
    fn left_sum(&self, cuts: &ColumnCuts, cut: usize, stocks: &[f64], whole: f64) -> f64 {
        let value = |&position: &u32| stocks[position as usize];
        let n_left = cuts.n_left[cut] as usize;
        if self.zeros.is_empty() {
            cuts.left_of(cut, &self.order).map(|position| value(&position)).sum()
        } else if n_left <= self.zeros.start {
            self.order[..n_left].iter().map(value).sum()
        } else {
            let right = &self.order[n_left - self.zeros.len()..];
            whole - right.iter().rev().map(value).sum::<f64>()
        }
    }
}

/// Writes the sums over the left sides of the cuts of a set. `sums`: [`OpenColumn::left_sums`] of the same stocks; `order`:
/// of the column. A function of its own: inlined, it takes a twentieth of a fit of many levels more.
#[inline(never)]
fn write_left(
    sums: &LeftSums,
    cuts: &ColumnCuts,
    order: &[u32],
    stocks: &[f64],
    left: &mut Vec<f64>,
) {
    sums.write(cuts, order, |position| stocks[position as usize], left);
}

/// What the join bounds of a leaf are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BoundState {
    /// Not computed.
    Missing,
    /// Upper bounds: some cluster changed since they were exact.
    Upper,
    /// The largest target terms of all existing clusters.
    Exact,
}

/// A leaf that may be split.
pub(super) struct OpenLeaf {
    /// Node id.
    pub(super) id: usize,
    /// The leaf's rows.
    pub(super) segment: Segment,
    /// Its cluster.
    state: LeafState,
    /// Columns with cuts, ascending.
    columns: Vec<OpenColumn>,
    /// Of sparse rows: their cells.
    pub(super) cells: SparseColumns,
    /// Stocks of its levels.
    pub(super) of_levels: Vec<LevelStocks>,
    /// Fewest columns of a task.
    at_a_time: usize,
    /// With a Gram matrix, the stocks S({i}, N) of its rows with the leaf itself.
    stocks: Vec<f64>,
    /// S(N, M) with the rest M of its own cluster.
    cross_rest: f64,
    /// Largest gains of moves without existing clusters; exact unless the leaf is stale.
    new_cluster: NewClusterGains,
    /// Upper bounds on the gains of moves to existing clusters.
    move_bounds: MoveBounds,
    /// What the join bounds of its columns are.
    bound_state: BoundState,
    /// Whether its cluster changed, or it is new.
    is_stale: bool,
}

impl OpenLeaf {
    /// Returns a leaf that was not searched yet. `cells`: of sparse rows, those of the leaf; `stocks`: with a Gram matrix those of its rows with the leaf itself.
    pub(super) fn new(
        id: usize,
        segment: Segment,
        cluster: usize,
        columns: Vec<OpenColumn>,
        cells: SparseColumns,
        stocks: Vec<f64>,
    ) -> Self {
        let n_listed: usize = columns.iter().map(|column| column.order.len()).sum();
        let at_a_time = columns_per_task(n_listed / columns.len().max(1));
        OpenLeaf {
            id,
            segment,
            state: LeafState { cluster, value: 0.0, rest: ClusterSums::EMPTY },
            columns,
            cells,
            of_levels: vec![],
            at_a_time,
            stocks,
            cross_rest: 0.0,
            new_cluster: NewClusterGains::NONE,
            move_bounds: MoveBounds::NONE,
            bound_state: BoundState::Missing,
            is_stale: true,
        }
    }

    /// Whether the join bounds, and with them the gains of switches, are exact.
    fn is_exact(&self) -> bool {
        self.bound_state == BoundState::Exact
    }

    /// Returns an upper bound on the gains of moves to existing clusters.
    pub(super) fn upper_bound(&self) -> f64 {
        self.state.upper_bound(self.move_bounds)
    }

    /// Returns the gains of a set of its cuts.
    fn gains<'c>(&self, set: &'c OpenSet) -> CutGains<'c> {
        set.gains(self.state, self.cross_rest)
    }
}

/// The search of leaves, shared by all threads.
pub(super) struct LeafSearch<'g, 'a, 't> {
    pub(super) growth: &'g Growth<'a, 't>,
    /// Moves that the next split may make.
    pub(super) allowed: AllowedMoves,
}

impl LeafSearch<'_, '_, '_> {
    /// Updates the gains and bounds of a leaf after some clusters changed. `needs_existing`: whether moves to existing
    /// clusters count; if not, their bounds are left as they are and marked as missing once a cluster has changed.
    pub(super) fn update(&self, leaf: &mut OpenLeaf, needs_existing: bool) {
        let growth = self.growth;
        leaf.is_stale |= growth.changed.contains(&leaf.state.cluster);
        if leaf.is_stale {
            let (rest, stocks) = self.rest_of(leaf);
            let whole = stocks.iter().sum();
            leaf.cross_rest = whole;
            leaf.state.rest = rest;
            leaf.state.value = growth.clusters[leaf.state.cluster].sums.value();
            let state = leaf.state;
            leaf.new_cluster = leaf
                .columns
                .par_iter_mut()
                .with_min_len(leaf.at_a_time)
                .map_init(Default::default, |sums: &mut LeftSums, column| {
                    column.left_sums(&stocks, whole, sums);
                    let OpenColumn { sets, order, .. } = column;
                    let of_set = |set: &mut OpenSet| {
                        write_left(sums, &set.cuts, order, &stocks, &mut set.cross_rest);
                        // Once there are all clusters, nothing reads these gains.
                        if self.allowed.n_free > 0 {
                            set.new_cluster = set.gains(state, whole).new_cluster_gains();
                        }
                        set.new_cluster
                    };
                    let of_sets = sets.iter_mut().map(of_set);
                    of_sets.fold(NewClusterGains::NONE, NewClusterGains::max)
                })
                .reduce(|| NewClusterGains::NONE, NewClusterGains::max);
        }
        if !needs_existing {
            if !growth.changed.is_empty() {
                leaf.bound_state = BoundState::Missing;
            }
        } else if leaf.bound_state == BoundState::Missing {
            self.compute_join_bounds(leaf);
        } else {
            let own = leaf.state.cluster;
            let changed: Vec<usize> =
                growth.changed.iter().copied().filter(|&cluster| cluster != own).collect();
            if !changed.is_empty() {
                leaf.bound_state = BoundState::Upper;
            }
            if leaf.is_stale || !changed.is_empty() {
                self.raise_join_bounds(leaf, &changed, false);
            }
        }
        leaf.is_stale = false;
    }

    /// Returns the sums of the rest of the leaf's cluster, and the stocks of the leaf's rows with it, in their order.
    ///
    /// With features both are computed from the sum of the rest's features. With a Gram matrix the stocks are those
    /// with the cluster less those with the leaf; see [`MAX_CLUSTER_TO_REST`] for the stock of the rest.
    fn rest_of(&self, leaf: &OpenLeaf) -> (ClusterSums, Vec<f64>) {
        let growth = self.growth;
        let cluster = &growth.clusters[leaf.state.cluster];
        let others: Vec<usize> =
            cluster.leaves.iter().copied().filter(|&id| id != leaf.id).collect();
        let nodes = || others.iter().map(|&id| &growth.grown.nodes[id]);
        let weight: f64 = nodes().map(|node| node.sums[WEIGHT]).sum();
        let n_rows = nodes().map(|node| node.segment.len()).sum();
        let rows = growth.grown.partition.all(leaf.segment);
        let (stock, stocks) = match growth.problem.kernel {
            _ if others.is_empty() => (0.0, memory::zeros(rows.len(), "the stocks of a leaf")),
            Kernel::Features { .. } | Kernel::Sparse(_) => {
                let sum = growth.features_of(&others);
                let product = growth.features.product(&sum);
                let stock = |i: usize| growth.weights.of(rows[i]) * product(rows[i]);
                let stocks =
                    parallel::collect(rows.len(), ROWS_PER_TASK, "the stocks of a leaf", stock);
                (norm(&sum), stocks)
            }
            Kernel::Gram { .. } => {
                let with_all = rows.iter().map(|&row| cluster.stocks[row as usize]);
                let stocks = with_all.zip(&leaf.stocks).map(|(all, own)| all - own);
                let stocks: Vec<f64> = memory::collected(stocks, "the stocks of a leaf");
                let stock = if weight * MAX_CLUSTER_TO_REST >= cluster.sums.weight {
                    let cross_rest: f64 = stocks.iter().sum();
                    cluster.sums.stock - 2.0 * cross_rest - growth.stock_of[leaf.id]
                } else {
                    growth.stock_among(&others)
                };
                (stock, stocks)
            }
        };
        (ClusterSums { stock, weight, n_rows }, stocks)
    }

    /// Returns the stocks of a leaf's rows with a cluster, in the order of the rows, and their sum.
    fn cross_stocks(&self, leaf: &OpenLeaf, cluster: usize) -> (Vec<f64>, f64) {
        let stocks = &self.growth.clusters[cluster].stocks;
        let rows = self.growth.grown.partition.all(leaf.segment);
        let stocks = rows.iter().map(|&row| stocks[row as usize]);
        let stocks: Vec<f64> = memory::collected(stocks, "the stocks of a leaf");
        let sum = stocks.iter().sum();
        (stocks, sum)
    }

    /// Computes the join bounds of a leaf exactly.
    fn compute_join_bounds(&self, leaf: &mut OpenLeaf) {
        let own = leaf.state.cluster;
        let others: Vec<usize> = (0..self.growth.clusters.len()).filter(|&c| c != own).collect();
        self.raise_join_bounds(leaf, &others, true);
        leaf.bound_state = BoundState::Exact;
    }

    /// Raises the join bounds of a leaf to the target terms of some clusters, and computes its move bounds, which those of
    /// a set that no term raises remain, unless the leaf's own cluster changed.
    /// `from_scratch`: whether the bounds are reset first, so that they are exact if `clusters` are all others.
    fn raise_join_bounds(&self, leaf: &mut OpenLeaf, clusters: &[usize], from_scratch: bool) {
        let stocks: Vec<_> =
            clusters.iter().map(|&cluster| (cluster, self.cross_stocks(leaf, cluster))).collect();
        let (state, cross_rest) = (leaf.state, leaf.cross_rest);
        let all_sets = from_scratch || leaf.is_stale;
        leaf.move_bounds = leaf
            .columns
            .par_iter_mut()
            .with_min_len(leaf.at_a_time)
            .map_init(Default::default, |(sums, left, is_raised): &mut Buffers, column| {
                is_raised.clear();
                is_raised.resize(column.sets.len(), all_sets);
                if from_scratch {
                    for set in &mut column.sets {
                        set.join_bounds.clear(set.cuts.n_left.len());
                    }
                }
                for (cluster, (stocks, whole)) in &stocks {
                    column.left_sums(stocks, *whole, sums);
                    let target = &self.growth.clusters[*cluster].sums;
                    for (set, is_raised) in column.sets.iter_mut().zip(&mut *is_raised) {
                        write_left(sums, &set.cuts, &column.order, stocks, left);
                        let mut bounds = std::mem::take(&mut set.join_bounds);
                        let cross = CrossStocks { leaf: *whole, left };
                        let gains = set.gains(state, cross_rest);
                        *is_raised |= gains.add_target(target, cross, &mut bounds);
                        set.join_bounds = bounds;
                    }
                }
                let sets = column.sets.iter_mut().zip(is_raised);
                sets.fold(MoveBounds::NONE, |bounds, (set, is_raised)| {
                    if *is_raised {
                        let gains = set.gains(state, cross_rest);
                        set.move_bounds = gains.move_bounds(&set.join_bounds, self.allowed);
                    }
                    bounds.max(set.move_bounds)
                })
            })
            .reduce(|| MoveBounds::NONE, MoveBounds::max);
    }

    /// Returns the largest gain of the leaf that is exact already.
    pub(super) fn known_gain(&self, leaf: &OpenLeaf) -> f64 {
        let best = self.new_cluster_gain(leaf.state, leaf.new_cluster);
        if leaf.is_exact() { best.max(leaf.move_bounds.switch) } else { best }
    }

    /// Returns the largest gain of allowed moves without existing clusters.
    fn new_cluster_gain(&self, state: LeafState, gains: NewClusterGains) -> f64 {
        let mut best = f64::NEG_INFINITY;
        if self.allowed.n_free > 0 {
            best = best.max(gains.star);
        }
        if self.allowed.n_free > 1 && state.has_rest() {
            best = best.max(state.leaving() + gains.both_new);
        }
        best
    }

    /// Returns the largest gain of a move to existing clusters if it is at least `floor`, else a smaller number.
    pub(super) fn exact_gain(&self, leaf: &mut OpenLeaf, floor: f64) -> f64 {
        if !leaf.is_exact() {
            self.compute_join_bounds(leaf);
        }
        if leaf.state.has_rest() && leaf.move_bounds.pair >= floor {
            leaf.move_bounds.switch.max(self.best_pair(leaf, floor))
        } else {
            leaf.move_bounds.switch
        }
    }

    /// Returns the largest gain of a move of both sides with at least one to an existing cluster, if it is at least
    /// `floor`, else a smaller number.
    fn best_pair(&self, leaf: &OpenLeaf, floor: f64) -> f64 {
        let others: Vec<_> = (0..self.growth.clusters.len())
            .filter(|&cluster| cluster != leaf.state.cluster)
            .map(|cluster| (cluster, self.cross_stocks(leaf, cluster)))
            .collect();
        let of_column = |column: &OpenColumn| {
            if column.sets.iter().all(|set| set.move_bounds.pair < floor) {
                return f64::NEG_INFINITY;
            }
            let mut left_sums: Vec<LeftSums> = others.iter().map(|_| LeftSums::default()).collect();
            for ((_, (stocks, whole)), sums) in others.iter().zip(&mut left_sums) {
                column.left_sums(stocks, *whole, sums);
            }
            let of_set = |set: &OpenSet| {
                if set.move_bounds.pair < floor {
                    return f64::NEG_INFINITY;
                }
                let mut left = vec![vec![]; others.len()];
                for (((_, (stocks, _)), sums), left) in others.iter().zip(&left_sums).zip(&mut left)
                {
                    write_left(sums, &set.cuts, &column.order, stocks, left);
                }
                let targets: Vec<(usize, ClusterSums, CrossStocks<'_>)> = others
                    .iter()
                    .zip(&left)
                    .map(|(&(cluster, (_, whole)), left)| {
                        let cross = CrossStocks { leaf: whole, left };
                        (cluster, self.growth.clusters[cluster].sums, cross)
                    })
                    .collect();
                leaf.gains(set).best_pair(&targets, self.allowed, &set.join_bounds, floor)
            };
            column.sets.iter().map(of_set).fold(f64::NEG_INFINITY, f64::max)
        };
        largest(&parallel::map_some(&leaf.columns, leaf.at_a_time, of_column))
    }

    /// Returns the first split of the leaf, by column, cut and move, that gains at least `floor`. `at`: the leaf's
    /// position among the open leaves.
    pub(super) fn first_split(
        &self,
        leaf: &OpenLeaf,
        at: usize,
        floor: f64,
        needs_existing: bool,
    ) -> Result<NextSplit> {
        let others: Vec<_> = (0..self.growth.clusters.len())
            .filter(|&cluster| needs_existing && cluster != leaf.state.cluster)
            .map(|cluster| (cluster, self.cross_stocks(leaf, cluster)))
            .collect();
        let in_set = |set: &OpenSet, column: &OpenColumn| {
            let existing = match needs_existing {
                true => leaf.state.upper_bound(set.move_bounds),
                false => f64::NEG_INFINITY,
            };
            if existing.max(self.new_cluster_gain(leaf.state, set.new_cluster)) < floor {
                return None;
            }
            let (cuts, gains) = (&set.cuts, leaf.gains(set));
            let join_bounds = needs_existing.then_some(&set.join_bounds);
            (0..cuts.n_left.len()).find_map(|cut| {
                if gains.bound_at(cut, join_bounds, self.allowed) < floor {
                    return None;
                }
                let target = |(cluster, (stocks, whole)): &(usize, (Vec<f64>, f64))| {
                    let cross_left = column.left_sum(cuts, cut, stocks, *whole);
                    (*cluster, self.growth.clusters[*cluster].sums, [cross_left, *whole])
                };
                let joins = gains.joins(cut, &others.iter().map(target).collect::<Vec<_>>());
                let (movement, gain) = gains.first_move(cut, &joins, self.allowed, floor)?;
                Some(NextSplit {
                    leaf: at,
                    feature: cuts.feature,
                    cut: cuts.rows(cut),
                    movement,
                    gain,
                    self_stocks: cuts.self_stock.each_ref().map(|stocks| stocks[cut]),
                })
            })
        };
        let in_column = |column: &OpenColumn| {
            let splits = column.sets.iter().filter_map(|set| in_set(set, column));
            splits.min_by_key(|split| split.cut.tie_key())
        };
        leaf.columns
            .par_iter()
            .find_map_first(in_column)
            .ok_or_else(|| Error::Internal("the best move was lost.".into()))
    }
}
