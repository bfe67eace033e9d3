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
//! Memory: 4 n bytes per column for the orders, or 12 a stored cell of sparse rows, and the cuts of the open leaves.

use rayon::prelude::*;

use super::clusters::{ClusterState, DIAGONAL, FEATURES, ROWS_PER_TASK, WEIGHT};
use super::cuts::{CutBuilder, CutRows, LeafColumn, LeafCuts, n_seen};
use super::features::RowFeatures;
use super::fit::{FittedKauri, KauriProblem};
use super::gains::{ClusterSums, largest};
use super::kernel::{Kernel, Weights, norm};
use super::leaf_search::{LeafSearch, OpenColumn, OpenLeaf};
use super::level_stocks::{Inherited, LevelStocks};
use super::moves::{AllowedMoves, Move, MoveKind};
use super::sparse_cuts::{Buffers, SparseColumn, SparseLeaf};
use crate::error::{Error, Result};
use crate::grow::{GrowingTree, GrownNode, Limits, test_of};
use crate::memory;
use crate::orders::{Orders, columns_per_task};
use crate::parallel::{self, Monitor};
use crate::rows::{CsrRows, Rows};
use crate::sparse::columns::SparseColumns;
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

/// A growing tree. `'a`: the problem and its kernel; `'t`: the rows.
pub(super) struct Growth<'a, 't> {
    pub(super) rows: Rows<'a, 't>,
    pub(super) problem: &'a KauriProblem<'a>,
    pub(super) monitor: &'a Monitor,
    pub(super) weights: Weights<'a>,
    /// Of the rows; none with a Gram matrix.
    pub(super) features: &'a RowFeatures<'a>,
    /// Nodes and their rows; the sums of a node are at [`WEIGHT`], [`DIAGONAL`] and from [`FEATURES`] on.
    pub(super) grown: GrowingTree<'a>,
    /// Of a table: the rows of every node in the order of each column, empty if the root is not split.
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
    /// Buffer of sparse rows, by row: whether it is in a node; all false between uses.
    is_in_node: Vec<bool>,
    /// Of a table, by column: whether all observed cells are equal; it is then never cut.
    is_constant: Vec<bool>,
}

impl<'a, 't> Growth<'a, 't> {
    /// Returns a tree of one leaf and one cluster, its columns sorted and its root open. O(n d log n), and O(n^2) for
    /// the stocks with a Gram matrix.
    ///
    /// # Errors
    /// [`Error::Value`] if stocks overflow, [`Error::Interrupted`].
    pub(super) fn new(
        rows: Rows<'a, 't>,
        problem: &'a KauriProblem<'a>,
        features: &'a RowFeatures<'a>,
        monitor: &'a Monitor,
    ) -> Result<Self> {
        let n = rows.n_samples();
        let weights = Weights(problem.weights);
        let (kernel, width) = (problem.kernel, FEATURES + features.rank());
        let grown = GrowingTree::new(n, move |rows| {
            let add = |row: u32, sums: &mut [f64]| {
                let weight = weights.of(row);
                sums[WEIGHT] += weight;
                sums[DIAGONAL] += weight * (kernel.diagonal(row as usize) + features.own(row));
                features.add(&mut sums[FEATURES..], row, weight);
            };
            let mut sums = if matches!(kernel, Kernel::Sparse(_)) {
                // One vector of sums: a block of sparse rows has fewer cells than that.
                let mut sums = memory::zeros(width, "the sums of a node");
                rows.iter().for_each(|&row| add(row, &mut sums));
                sums
            } else {
                parallel::sum_rows(rows, width, add)
            };
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
            rows,
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
            is_in_node: match rows {
                Rows::Table(_) => vec![],
                Rows::Sparse(_) => memory::zeros(n, "the sides of the rows"),
            },
            is_constant: match rows {
                Rows::Table(table) => {
                    parallel::map(0..table.n_features(), |f| table.column(f).is_constant())
                }
                Rows::Sparse(_) => vec![],
            },
        };
        let root = growth.grown.nodes[0].segment;
        let stocks = growth.stocks_with(growth.grown.partition.all(root), &[0]);
        growth.stock_of.push(if kernel.has_features() {
            norm(&growth.grown.nodes[0].sums[FEATURES..])
        } else {
            stocks.iter().sum()
        });
        growth.clusters.push(ClusterState { sums: ClusterSums::EMPTY, leaves: vec![0], stocks });
        growth.update_sums(0);
        if growth.may_split(0) && growth.problem.limits.max_leaves > 1 {
            let cells = match rows {
                Rows::Table(table) => {
                    growth.orders = Orders::new(table, monitor)?;
                    SparseColumns::default()
                }
                Rows::Sparse(matrix) => SparseColumns::new(matrix, monitor)?,
            };
            growth.open(0, cells, None)?;
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
    /// features, O(rows^2) with a Gram matrix. `cells`: of sparse rows, those of the leaf.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    fn open(
        &mut self,
        id: usize,
        cells: SparseColumns,
        of_parent: Option<Inherited<'_>>,
    ) -> Result<()> {
        let segment = self.grown.nodes[id].segment;
        for (&row, position) in self.grown.partition.all(segment).iter().zip(0..) {
            self.position[row as usize] = position;
        }
        let (columns, stocks, of_levels) = match (self.rows, self.problem.kernel) {
            (Rows::Table(table), _) => self.columns_of_table(id, table, of_parent)?,
            (Rows::Sparse(_), Kernel::Sparse(z)) => {
                (self.columns_of_cells(id, &cells, z)?, vec![], vec![])
            }
            (Rows::Sparse(_), _) => return Err(super::fit::not_both_sparse()),
        };
        if !columns.is_empty() {
            let cluster = self.cluster_of[id];
            let mut leaf = OpenLeaf::new(id, segment, cluster, columns, cells, stocks);
            leaf.of_levels = of_levels;
            self.leaves.push(leaf);
        }
        Ok(())
    }

    /// Returns the columns of a leaf of sparse rows that have cuts.
    fn columns_of_cells(
        &self,
        id: usize,
        cells: &SparseColumns,
        z: &CsrRows<'_>,
    ) -> Result<Vec<OpenColumn>> {
        let node = &self.grown.nodes[id];
        let rows = self.grown.partition.all(node.segment);
        let product = self.features.product(&node.sums[FEATURES..]);
        let with_leaf: Vec<f64> =
            parallel::collect(rows.len(), ROWS_PER_TASK, "the stocks of a leaf", |i: usize| {
                self.weights.of(rows[i]) * product(rows[i])
            });
        let leaf = SparseLeaf {
            features: z,
            weights: self.weights,
            min_samples_leaf: self.problem.limits.min_samples_leaf.max(1),
            rows,
            position: &self.position,
            with_leaf: &with_leaf,
            weight: node.sums[WEIGHT],
            stock: self.stock_of[id],
        };
        let varies = |&place: &usize| {
            let (values, _) = cells.at(place);
            values.len() < rows.len() || values[0] < values[values.len() - 1]
        };
        let places = self.drawn(id, (0..cells.n_columns()).filter(varies).collect());
        let found: Result<Vec<Option<OpenColumn>>> = places
            .par_iter()
            .map_init(
                || Buffers::new(rows.len(), z.n_columns()),
                |buffers, &place| {
                    self.monitor.check()?;
                    let feature = cells.features()[place] as usize;
                    let column = leaf.cuts(feature, cells.at(place), buffers);
                    Ok(column.map(|SparseColumn { cuts, order, zeros }| {
                        OpenColumn::new([cuts].into_iter(), order, zeros)
                    }))
                },
            )
            .collect();
        Ok(found?.into_iter().flatten().collect())
    }

    /// Returns the columns of a leaf of a table that have cuts, with a Gram matrix the stocks of its rows with it, and the
    /// stocks of its levels.
    fn columns_of_table(
        &self,
        id: usize,
        table: &'a Table<'t>,
        of_parent: Option<Inherited<'_>>,
    ) -> Result<(Vec<OpenColumn>, Vec<f64>, Vec<LevelStocks>)> {
        let node = &self.grown.nodes[id];
        let rows = self.grown.partition.all(node.segment);
        let columns: Vec<LeafColumn<'_, '_>> = self
            .drawn(id, self.varying_features(id, table))
            .into_iter()
            .map(|feature| {
                let order = self.orders.of(feature, node.segment);
                let sibling = of_parent.map(|parent| self.orders.of(feature, parent.sibling));
                let sibling = sibling.unwrap_or_default();
                LeafColumn { feature, column: table.column(feature), order, sibling }
            })
            .collect();
        let builder = CutBuilder {
            kernel: self.problem.kernel,
            features: self.features,
            weights: self.weights,
            min_samples_leaf: self.problem.limits.min_samples_leaf.max(1),
            monitor: self.monitor,
            of_parent: of_parent.map_or(&[], |parent| parent.of_levels),
        };
        let LeafCuts { of_columns, stocks, of_levels } =
            builder.cuts(rows, &self.position, &columns, &node.sums[FEATURES..])?;
        let cuts = of_columns.into_iter().zip(&columns);
        let columns = parallel::map_some(cuts, columns_per_task(rows.len()), |(sets, column)| {
            let order = column.order.iter().map(|&row| self.position[row as usize]);
            let order: Vec<u32> = memory::collected(order, "the orders of a leaf");
            OpenColumn::new(sets.into_iter().filter(|cuts| !cuts.is_empty()), order, 0..0)
        });
        let columns = columns.into_iter().filter(|column| !column.is_empty()).collect();
        Ok((columns, stocks, of_levels))
    }

    /// Returns the columns of a table that vary in a leaf, ascending.
    fn varying_features(&self, id: usize, table: &Table<'_>) -> Vec<usize> {
        let segment = self.grown.nodes[id].segment;
        let varies = |&feature: &usize| {
            let order = self.orders.of(feature, segment);
            let column = table.column(feature);
            let ends = [order[0], order[order.len() - 1]].map(|row| column.get(row as usize));
            let has_gaps = ends[1].is_nan() && !ends[0].is_nan();
            ends[0] < ends[1] || (has_gaps && !self.is_constant[feature])
        };
        (0..table.n_features()).filter(varies).collect()
    }

    /// Returns those of the columns of a leaf that are searched, ascending: all of them, or `max_features`.
    fn drawn(&self, id: usize, mut features: Vec<usize>) -> Vec<usize> {
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
        let is_psd = self.problem.kernel.has_features();
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
        let (id, parent, cells, of_levels) = (leaf.id, leaf.segment, leaf.cells, leaf.of_levels);
        let NextSplit { feature, gain: score, .. } = *split;
        let left = match self.rows {
            Rows::Table(table) => {
                let CutRows { ref places, missing_left, .. } = split.cut;
                let (column, order) = (table.column(feature), self.orders.of(feature, parent));
                let (cut, n_seen) = (split.cut.cut(column, order), n_seen(column, order));
                let is_left =
                    |place: usize| places.contains(&place) || (missing_left && place >= n_seen);
                self.orders.split_by(&mut self.grown, id, feature, cut, score, is_left)
            }
            Rows::Sparse(matrix) => {
                let cut = split.cut.sparse_cut(cells.of(feature).0, parent.len());
                let go_left = |rows: &[u32], sides: &mut Vec<bool>| {
                    let cell = |&row: &u32| matrix.cell(row as usize, feature as u32);
                    sides.extend(rows.iter().map(|row| cut.goes_left(cell(row))));
                };
                self.grown.split_by(id, test_of(feature, cut), score, go_left, |_, _| true).0
            }
        };
        // Of inner nodes weight and diagonal alone are read: d numbers a node would add up.
        self.grown.nodes[id].sums.truncate(FEATURES);
        self.grown.nodes[id].sums.shrink_to_fit();
        self.kinds[id] = Some(split.movement.kind);
        self.kinds.extend([None, None]);
        self.n_leaves += 1;
        let children = [left, left + 1];
        let clusters = [split.movement.left, split.movement.right];
        for (side, child) in children.into_iter().enumerate() {
            self.cluster_of.push(clusters[side]);
            self.stock_of.push(if self.problem.kernel.has_features() {
                norm(&self.grown.nodes[child].sums[FEATURES..])
            } else {
                split.self_stocks[side]
            });
        }
        self.move_rows(id, children, clusters);
        if self.n_leaves >= self.problem.limits.max_leaves {
            self.leaves.clear();
            return Ok(());
        }
        let to_open: Vec<usize> = children.into_iter().filter(|&c| self.may_split(c)).collect();
        if to_open.is_empty() {
            return Ok(());
        }
        if matches!(self.rows, Rows::Table(_)) {
            self.orders.split(parent);
        }
        let cells: Vec<SparseColumns> =
            to_open.iter().map(|&child| self.cells_of(child, &cells)).collect();
        for (child, cells) in to_open.into_iter().zip(cells) {
            let sibling = self.grown.nodes[left + (left + 1 - child)].segment;
            self.open(child, cells, Some(Inherited { of_levels: &of_levels, sibling }))?;
        }
        Ok(())
    }

    /// Returns the cells of a node of sparse rows, from those of its parent; none of a table.
    fn cells_of(&mut self, id: usize, parent: &SparseColumns) -> SparseColumns {
        if matches!(self.rows, Rows::Table(_)) {
            return SparseColumns::default();
        }
        let rows = self.grown.partition.all(self.grown.nodes[id].segment);
        rows.iter().for_each(|&row| self.is_in_node[row as usize] = true);
        let cells = parent.select(|row| self.is_in_node[row as usize]);
        rows.iter().for_each(|&row| self.is_in_node[row as usize] = false);
        cells
    }

    /// Returns the arrays of the tree. The kernel k-means cost of a node as one cluster is its share of the trace less
    /// S(N, N) / |N|. `objective`: by number of leaves.
    pub(super) fn finish(self, objective: Vec<f64>) -> FittedKauri {
        let nodes = &self.grown.nodes;
        // Features that are not centered leave rounding where all rows of a node are equal.
        let is_sparse = matches!(self.rows, Rows::Sparse(_));
        let cost = |(node, stock): (&GrownNode, &f64)| {
            let cost = node.sums[DIAGONAL] - stock / node.sums[WEIGHT];
            let is_rounding = is_sparse && cost <= 16.0 * f64::EPSILON * node.sums[DIAGONAL];
            if is_rounding { 0.0 } else { cost }
        };
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
