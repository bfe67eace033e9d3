//! Growth of a Kauri tree: the open leaves, the choice of the next split, the split itself.
//!
//! Every split moves rows between clusters, so that the gains of all open leaves may change: there is no queue. What
//! does not depend on the clusters ([`super::cuts`]) is computed once, with the leaf. The rest is bounded first and
//! computed only where it may decide ([`super::leaf_search`]). Loop invariant: `changed` holds the clusters whose rows
//! changed since the leaves were last searched.
//!
//! With features the kernel is positive semidefinite. A new cluster then gains a side no less than an existing one, so
//! that existing clusters need no search while new ones may be made.
//!
//! | paper | here |
//! |---|---|
//! | N, an open leaf | [`OpenLeaf`] |
//! | C, a cluster | [`ClusterState`] |
//! | S(C, C) / \|C\|, its share of the objective | [`ClusterSums::value`] |
//! | a split and its move, Delta L | [`NextSplit`], `gain` |
//!
//! Memory: 4 n bytes per column for the orders, and the cuts of the open leaves.

use super::clusters::{ClusterState, DIAGONAL, FEATURES, WEIGHT};
use super::cuts::{CutBuilder, CutRows, LeafColumn, n_seen};
use super::features::RowFeatures;
use super::fit::{FittedKauri, KauriProblem};
use super::gains::{ClusterSums, largest};
use super::kernel::{Kernel, Weights, norm};
use super::leaf_search::{LeafSearch, OpenColumn, OpenLeaf};
use super::moves::{AllowedMoves, Move, MoveKind};
use crate::error::{Error, Result};
use crate::grow::{GrowingTree, GrownNode, Limits};
use crate::memory;
use crate::orders::{Orders, columns_per_task};
use crate::parallel::{self, Monitor};
use crate::table::Table;

/// Gains closer than this share of the largest possible objective are tied; smaller gains are not worth a split.
const TIE_MARGIN: f64 = 1e-12;

/// The next split of the tree.
pub(super) struct NextSplit {
    /// Position among the open leaves.
    pub(super) leaf: usize,
    /// Column of the cut.
    pub(super) feature: usize,
    /// The rows to the left.
    pub(super) cut: CutRows,
    /// Where its sides go.
    pub(super) movement: Move,
    /// What it adds to the objective.
    pub(super) gain: f64,
    /// S(L, L) and S(R, R).
    pub(super) self_stocks: [f64; 2],
}

/// A growing tree. `'a`: the problem and its kernel; `'t`: the table.
pub(super) struct Growth<'a, 't> {
    pub(super) table: &'a Table<'t>,
    pub(super) problem: &'a KauriProblem<'a>,
    pub(super) monitor: &'a Monitor,
    pub(super) weights: Weights<'a>,
    /// Of the rows; none with a Gram matrix.
    pub(super) features: &'a RowFeatures<'a>,
    /// Nodes and their rows; the sums of a node are at [`WEIGHT`], [`DIAGONAL`] and from [`FEATURES`] on.
    pub(super) grown: GrowingTree<'a>,
    /// The rows of every node in the order of each column, empty if the root is not split.
    orders: Orders,
    /// By number; none is empty.
    pub(super) clusters: Vec<ClusterState>,
    /// Clusters whose rows changed in the last split, ascending.
    pub(super) changed: Vec<usize>,
    /// The open leaves, by ascending id.
    leaves: Vec<OpenLeaf>,
    /// The cluster of each node when it was made.
    pub(super) cluster_of: Vec<usize>,
    /// S(N, N) by node.
    pub(super) stock_of: Vec<f64>,
    /// The move of the node's split; none at leaves.
    kinds: Vec<Option<MoveKind>>,
    /// Leaves of the tree, open or not.
    n_leaves: usize,
    /// Gains closer than this are tied.
    margin: f64,
    /// Buffer, by row of the table: the position in a leaf.
    position: Vec<u32>,
    /// By column: whether all observed cells are equal; it is then never cut.
    is_constant: Vec<bool>,
}

impl<'a, 't> Growth<'a, 't> {
    /// Returns a tree of one leaf and one cluster, its columns sorted and its root open. O(n d log n), and O(n^2) for
    /// the stocks with a Gram matrix.
    ///
    /// # Errors
    /// [`Error::Value`] if stocks overflow, [`Error::Interrupted`].
    pub(super) fn new(
        table: &'a Table<'t>,
        problem: &'a KauriProblem<'a>,
        features: &'a RowFeatures<'a>,
        monitor: &'a Monitor,
    ) -> Result<Self> {
        let n = table.n_samples();
        let weights = Weights(problem.weights);
        let (kernel, width) = (problem.kernel, FEATURES + features.rank());
        let grown = GrowingTree::new(n, move |rows| {
            let mut sums = parallel::sum_rows(rows, width, |row, sums| {
                let weight = weights.of(row);
                sums[WEIGHT] += weight;
                sums[DIAGONAL] += weight * (kernel.diagonal(row as usize) + features.own(row));
                features.add(&mut sums[FEATURES..], row, weight);
            });
            features.finish(&mut sums[FEATURES..]);
            sums
        });
        let total = grown.nodes[0].sums[WEIGHT];
        let largest_objective = kernel.objective_bound(n, weights, total, |row| features.own(row));
        if !(largest_objective * total).is_finite() {
            return Err(Error::Value(
                "The kernel values overflow float64. Use scale=\"standard\" or rescale the columns."
                    .into(),
            ));
        }
        let mut growth = Growth {
            table,
            problem,
            monitor,
            weights,
            features,
            grown,
            orders: Orders::default(),
            clusters: vec![],
            changed: vec![],
            leaves: vec![],
            cluster_of: vec![0],
            stock_of: vec![],
            kinds: vec![None],
            n_leaves: 1,
            margin: TIE_MARGIN * largest_objective,
            position: memory::zeros(n, "the places of the rows"),
            is_constant: parallel::map(0..table.n_features(), |f| table.column(f).is_constant()),
        };
        let root = growth.grown.nodes[0].segment;
        let stocks = growth.stocks_with(growth.grown.partition.all(root), &[0]);
        growth.stock_of.push(match kernel {
            Kernel::Features { .. } => norm(&growth.grown.nodes[0].sums[FEATURES..]),
            Kernel::Gram { .. } => stocks.iter().sum(),
        });
        growth.clusters.push(ClusterState { sums: ClusterSums::EMPTY, leaves: vec![0], stocks });
        growth.update_sums(0);
        if growth.may_split(0) && growth.problem.limits.max_leaves > 1 {
            growth.orders = Orders::new(table, monitor)?;
            growth.open(0)?;
        }
        Ok(growth)
    }

    /// Returns the sum over the clusters of S(C, C) / |C|.
    pub(super) fn objective(&self) -> f64 {
        self.clusters.iter().map(|cluster| cluster.sums.value()).sum()
    }

    /// Whether depth and number of rows of a node allow a split; the limit on leaves is checked before each split.
    fn may_split(&self, id: usize) -> bool {
        let node = &self.grown.nodes[id];
        let Limits { max_depth, min_samples_leaf, .. } = self.problem.limits;
        max_depth.is_none_or(|most| node.depth < most)
            && node.segment.len() >= self.problem.min_samples_split.max(2)
            && node.segment.len() >= 2 * min_samples_leaf
    }

    /// Builds the cuts of a leaf and adds it to the open leaves, unless it has no cut. O(rows rank) per column with
    /// features, O(rows^2) with a Gram matrix.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    fn open(&mut self, id: usize) -> Result<()> {
        let node = &self.grown.nodes[id];
        let rows = self.grown.partition.all(node.segment);
        let columns: Vec<LeafColumn<'_, '_>> = self
            .drawn_features(id)
            .into_iter()
            .map(|feature| {
                let order = self.orders.of(feature, node.segment);
                LeafColumn { feature, column: self.table.column(feature), order }
            })
            .collect();
        let builder = CutBuilder {
            kernel: self.problem.kernel,
            features: self.features,
            weights: self.weights,
            min_samples_leaf: self.problem.limits.min_samples_leaf.max(1),
            monitor: self.monitor,
        };
        for (&row, position) in rows.iter().zip(0..) {
            self.position[row as usize] = position;
        }
        let (cuts, stocks) =
            builder.cuts(rows, &self.position, &columns, &node.sums[FEATURES..])?;
        let cuts = cuts.into_iter().zip(&columns);
        let columns = parallel::map_some(cuts, columns_per_task(rows.len()), |(sets, column)| {
            let order = column.order.iter().map(|&row| self.position[row as usize]);
            let order: Vec<u32> = memory::collected(order, "the orders of a leaf");
            OpenColumn::new(sets.into_iter().filter(|cuts| !cuts.is_empty()), order)
        });
        let columns: Vec<OpenColumn> =
            columns.into_iter().filter(|column| !column.is_empty()).collect();
        if !columns.is_empty() {
            let cluster = self.cluster_of[id];
            self.leaves.push(OpenLeaf::new(id, node.segment, cluster, columns, stocks));
        }
        Ok(())
    }

    /// Returns the columns that are searched at a leaf, ascending: all that vary there, or `max_features` of them.
    fn drawn_features(&self, id: usize) -> Vec<usize> {
        let segment = self.grown.nodes[id].segment;
        let varies = |&feature: &usize| {
            let order = self.orders.of(feature, segment);
            let column = self.table.column(feature);
            let ends = [order[0], order[order.len() - 1]].map(|row| column.get(row as usize));
            let has_gaps = ends[1].is_nan() && !ends[0].is_nan();
            ends[0] < ends[1] || (has_gaps && !self.is_constant[feature])
        };
        let mut features: Vec<usize> = (0..self.table.n_features()).filter(varies).collect();
        if self.problem.max_features < features.len() {
            // One stream per node: its draw does not depend on those of other nodes.
            let mut random = fastrand::Rng::with_seed(self.problem.seed);
            let mut random = fastrand::Rng::with_seed(random.u64(..).wrapping_add(id as u64));
            random.shuffle(&mut features);
            features.truncate(self.problem.max_features);
            features.sort_unstable();
        }
        features
    }

    /// Returns the moves that the next split may make.
    fn allowed(&self) -> AllowedMoves {
        let n_clusters = self.clusters.len();
        let n_free = self.problem.max_clusters.saturating_sub(n_clusters);
        AllowedMoves { n_clusters, n_free, all_moves: self.problem.all_moves }
    }

    /// Returns the split of largest gain; none if no split gains or the limits are reached.
    ///
    /// Of splits within the margin of the largest gain the first is taken: by leaf id, column, cut and move. Upper
    /// bounds decide which leaves need exact gains: those whose bound is within the margin of the largest gain so
    /// far.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(super) fn next_split(&mut self) -> Result<Option<NextSplit>> {
        self.monitor.check()?;
        if self.n_leaves >= self.problem.limits.max_leaves || self.leaves.is_empty() {
            return Ok(None);
        }
        let allowed = self.allowed();
        let is_psd = matches!(self.problem.kernel, Kernel::Features { .. });
        let needs_existing = !(is_psd && allowed.n_free > 0);
        let mut leaves = std::mem::take(&mut self.leaves);
        let search = LeafSearch { growth: self, allowed };
        let mut best = parallel::map(&mut leaves, |leaf| {
            search.update(leaf, needs_existing);
            search.known_gain(leaf)
        });
        let mut most = largest(&best);
        if needs_existing {
            // In descending order of the bounds, until no bound reaches the best gain.
            let mut bounded: Vec<(f64, &mut OpenLeaf, &mut f64)> = leaves
                .iter_mut()
                .zip(&mut best)
                .map(|(leaf, best)| (leaf.upper_bound(), leaf, best))
                .collect();
            bounded.sort_by(|a, b| b.0.total_cmp(&a.0));
            for batch in bounded.chunks_mut(parallel::n_threads()) {
                let floor = most - self.margin;
                if batch[0].0 < floor {
                    break;
                }
                parallel::map(&mut *batch, |(bound, leaf, best)| {
                    if *bound >= floor {
                        **best = best.max(search.exact_gain(leaf, floor));
                    }
                });
                most = batch.iter().fold(most, |most, (.., best)| most.max(**best));
            }
        }
        let split = if most > self.margin {
            let floor = most - self.margin;
            let leaf = best.iter().position(|&gain| gain >= floor);
            leaf.map(|leaf| search.first_split(&leaves[leaf], leaf, floor, needs_existing))
                .transpose()?
        } else {
            None
        };
        self.leaves = leaves;
        self.changed.clear();
        Ok(split)
    }

    /// Splits a leaf, moves its sides to their clusters and opens its children, which get the next two node ids.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(super) fn split(&mut self, split: &NextSplit) -> Result<()> {
        let leaf = self.leaves.remove(split.leaf);
        let (id, parent) = (leaf.id, leaf.segment);
        drop(leaf);
        let NextSplit {
            feature, gain: score, cut: CutRows { ref places, missing_left, .. }, ..
        } = *split;
        let (column, order) = (self.table.column(feature), self.orders.of(feature, parent));
        let (cut, n_seen) = (split.cut.cut(column, order), n_seen(column, order));
        let is_left = |place: usize| places.contains(&place) || (missing_left && place >= n_seen);
        let left = self.orders.split_by(&mut self.grown, id, feature, cut, score, is_left);
        self.kinds[id] = Some(split.movement.kind);
        self.kinds.extend([None, None]);
        self.n_leaves += 1;
        let children = [left, left + 1];
        let clusters = [split.movement.left, split.movement.right];
        for (side, child) in children.into_iter().enumerate() {
            self.cluster_of.push(clusters[side]);
            self.stock_of.push(match self.problem.kernel {
                Kernel::Features { .. } => norm(&self.grown.nodes[child].sums[FEATURES..]),
                Kernel::Gram { .. } => split.self_stocks[side],
            });
        }
        self.move_rows(id, children, clusters);
        if self.n_leaves >= self.problem.limits.max_leaves {
            self.leaves.clear();
            return Ok(());
        }
        let to_open: Vec<usize> = children.into_iter().filter(|&c| self.may_split(c)).collect();
        if !to_open.is_empty() {
            self.orders.split(parent);
            for child in to_open {
                self.open(child)?;
            }
        }
        Ok(())
    }

    /// Returns the arrays of the tree. The kernel k-means cost of a node as one cluster is its share of the trace less
    /// S(N, N) / |N|. `objective`: by number of leaves.
    pub(super) fn finish(self, objective: Vec<f64>) -> FittedKauri {
        let nodes = &self.grown.nodes;
        let cost =
            |(node, stock): (&GrownNode, &f64)| node.sums[DIAGONAL] - stock / node.sums[WEIGHT];
        FittedKauri {
            nodes: self.grown.fitted_nodes(|node| node.sums[WEIGHT]),
            cost: nodes.iter().zip(&self.stock_of).map(cost).collect(),
            gain: nodes.iter().map(|node| node.score).collect(),
            cluster: self.cluster_of,
            kinds: self.kinds,
            objective,
        }
    }
}
