//! Growth of a Kauri tree.

use rayon::prelude::*;

use super::gains::{
    Adverse, Allowed, Best, Cluster, Column, Kind, LeafState, Move, Offers, Reach, Scratch, largest,
};
use super::stocks::{Cuts, Kernel, LeafColumn, Maker, Weights, add_row, dot, norm};
use crate::criterion::{Cut, Gap};
use crate::error::{Error, Result};
use crate::grow::{Grown, GrownNode, Limits, test_of};
use crate::parallel::{self, Monitor};
use crate::partition::{Partition, Segment};
use crate::table::Table;
use crate::tree::Test;

/// Gains closer than this share of the kernel's size are tied, and smaller ones are not worth a split.
const TIE: f64 = 1e-12;
/// Rows whose stocks with a cluster are made by one thread in one go.
const BLOCK: usize = 2048;
/// With a Gram matrix: where a leaf leaves less than one part in so many of its cluster, the stock of the rest is added
/// up, O(rest^2), not had as a difference.
const FEW: f64 = 64.0;
/// Rows times columns that are worth a thread.
const WORTH_A_THREAD: usize = 16_384;

/// What a Kauri tree is fitted to.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// Kernel values.
    pub kernel: Kernel<'a>,
    /// Row weights, positive.
    pub weights: Option<&'a [f64]>,
    /// Most clusters.
    pub max_clusters: usize,
    /// Limits of growth.
    pub limits: Limits,
    /// Fewest rows of a leaf that is split.
    pub min_samples_split: usize,
    /// Columns that a leaf looks at, drawn when it is made; those that are constant there do not count.
    pub max_features: usize,
    /// Seed of these draws.
    pub seed: u64,
    /// Whether one side may become a new cluster while the other goes to an old one.
    pub all_moves: bool,
}

/// A fitted tree; entries by node id.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// Tests.
    pub tests: Vec<Test>,
    /// Left child, the right one follows; 0 at leaves.
    pub left: Vec<usize>,
    /// Rows.
    pub n_samples: Vec<usize>,
    /// Weight of the rows.
    pub weight: Vec<f64>,
    /// Kernel k-means cost of the node as one cluster.
    pub cost: Vec<f64>,
    /// The cluster the node was given when it was made.
    pub cluster: Vec<usize>,
    /// How the node was split.
    pub kinds: Vec<Option<Kind>>,
    /// What that gained; NaN at leaves.
    pub gain: Vec<f64>,
    /// The objective at first and after every split, from the clusters' stocks.
    pub objective: Vec<f64>,
    /// Node id of the leaf of each row.
    pub leaf_of_row: Vec<u32>,
}

/// Fits a tree (paper: algorithm 2), always by the move of largest gain over all leaves, columns, cuts and moves.
///
/// A round costs O(n d) per cluster that changed, and O(n rank) to bring the stocks of rows and clusters up to date
/// (O(n moved) with a Gram matrix).
///
/// # Errors
/// [`Error::Shape`] if sizes disagree, [`Error::Value`] if stocks overflow, [`Error::Interrupted`] if the monitor was
/// asked to stop.
pub fn fit(table: &Table<'_>, problem: &Problem<'_>, monitor: &Monitor) -> Result<Fitted> {
    let n = table.n_samples();
    problem.kernel.check(n)?;
    if let Some(weights) = problem.weights {
        Error::check_len("weights", weights.len(), n, "rows")?;
    }
    let mut growth = Growth::new(table, problem, monitor)?;
    let mut objective = vec![growth.objective()];
    while let Some(choice) = growth.choose()? {
        growth.split(&choice)?;
        objective.push(growth.objective());
        monitor.report(objective.len(), choice.gain);
    }
    Ok(growth.finish(objective))
}

/// Sums kept per node: weight, weighted k(i, i), and with features the weighted sum of their rows.
const WEIGHT: usize = 0;
const DIAGONAL: usize = 1;
const FEATURES: usize = 2;

/// A column of an open leaf.
struct OpenColumn {
    cuts: Cuts,
    /// The leaf's rows in the order of the column, as positions in the leaf.
    order: Vec<u32>,
    /// S(L, M) of the cuts with the rest M of the leaf's own cluster.
    with_rest: Vec<f64>,
    offers: Offers,
}

impl OpenColumn {
    /// The stocks of the left sides of the cuts, from those of the leaf's rows.
    fn prefix(&self, stocks: &[f64]) -> Vec<f64> {
        self.cuts.prefix(&self.order, |position| stocks[position as usize])
    }
}

/// How far the offers of old clusters for the sides of a leaf's cuts can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// Never made.
    Missing,
    /// No offer is lower than the best.
    Bound,
    /// They are the best.
    Exact,
}

/// A leaf that may be split.
struct OpenLeaf {
    id: usize,
    segment: Segment,
    state: LeafState,
    columns: Vec<OpenColumn>,
    /// With a Gram matrix, the stocks S({i}, N) of its rows with the leaf itself.
    stocks: Vec<f64>,
    /// S(N, M) with the rest M of its own cluster.
    with_rest: f64,
    best: Best,
    reach: Reach,
    trust: Trust,
    /// Its cluster changed, or it is new.
    is_stale: bool,
}

impl OpenLeaf {
    /// No move to old clusters gains more.
    fn bound(&self) -> f64 {
        let pair = if self.state.may_empty() { self.reach.pair } else { f64::NEG_INFINITY };
        self.reach.switch.max(pair)
    }

    fn gains<'c>(&self, column: &'c OpenColumn) -> Column<'c> {
        let adverse = Adverse { leaf: self.with_rest, left: &column.with_rest };
        Column::new(&column.cuts, self.state, adverse)
    }
}

/// The next split.
struct Choice {
    leaf: usize,
    feature: usize,
    n_left: usize,
    movement: Move,
    gain: f64,
    /// S(L, L) and S(R, R).
    stocks: [f64; 2],
}

/// A cluster's members.
struct Members {
    cluster: Cluster,
    leaves: Vec<usize>,
    /// Weight of row i times S({i}, C), by row.
    stocks: Vec<f64>,
}

struct Growth<'a, 't> {
    table: &'a Table<'t>,
    problem: &'a Problem<'a>,
    monitor: &'a Monitor,
    weights: Weights<'a>,
    grown: Grown<'a>,
    /// The rows of every node in the order of each column.
    orders: Vec<Partition>,
    clusters: Vec<Members>,
    changed: Vec<usize>,
    leaves: Vec<OpenLeaf>,
    /// By node: cluster, S(N, N), how it was split.
    cluster_of: Vec<usize>,
    stock_of: Vec<f64>,
    kinds: Vec<Option<Kind>>,
    n_leaves: usize,
    margin: f64,
    /// Scratch, by row: the side of a split; the position in a leaf.
    goes_left: Vec<bool>,
    position: Vec<u32>,
}

impl<'a, 't> Growth<'a, 't> {
    fn new(table: &'a Table<'t>, problem: &'a Problem<'a>, monitor: &'a Monitor) -> Result<Self> {
        let n = table.n_samples();
        let weights = Weights(problem.weights);
        let (kernel, width) = (problem.kernel, FEATURES + problem.kernel.rank());
        let grown = Grown::new(n, move |rows| {
            parallel::sum_rows(rows, width, |row, sums| {
                let weight = weights.of(row);
                sums[WEIGHT] += weight;
                sums[DIAGONAL] += weight * kernel.diagonal(row as usize);
                if let Kernel::Features { z, rank } = kernel {
                    add_row(&mut sums[FEATURES..], &z[row as usize * rank..][..rank], weight);
                }
            })
        });
        let total = grown.nodes[0].sums[WEIGHT];
        let size = kernel.size(n, weights, total);
        if !(size * total).is_finite() {
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
            grown,
            orders: vec![],
            clusters: vec![],
            changed: vec![],
            leaves: vec![],
            cluster_of: vec![0],
            stock_of: vec![],
            kinds: vec![None],
            n_leaves: 1,
            margin: TIE * size,
            goes_left: vec![false; n],
            position: vec![0; n],
        };
        let root = growth.grown.nodes[0].segment;
        let stocks = growth.stocks_with(growth.grown.partition.all(root), &[0]);
        growth.stock_of.push(match kernel {
            Kernel::Features { .. } => norm(&growth.grown.nodes[0].sums[FEATURES..]),
            Kernel::Gram { .. } => stocks.iter().sum(),
        });
        let cluster = Cluster { stock: 0.0, weight: 0.0, n_rows: 0 };
        growth.clusters.push(Members { cluster, leaves: vec![0], stocks });
        growth.settle(0);
        if growth.may_split(0) && growth.problem.limits.max_leaves > 1 {
            growth.orders = (0..table.n_features())
                .into_par_iter()
                .map(|feature| {
                    monitor.check()?;
                    let sorted = table.column(feature).sort(growth.grown.partition.all(root));
                    Ok(Partition::in_order(sorted.into_iter().map(|(_, row)| row).collect()).0)
                })
                .collect::<Result<_>>()?;
            growth.open(0)?;
        }
        Ok(growth)
    }

    /// Sum over the clusters of S(C, C) / |C|.
    fn objective(&self) -> f64 {
        self.clusters.iter().map(|members| members.cluster.value()).sum()
    }

    fn may_split(&self, id: usize) -> bool {
        let node = &self.grown.nodes[id];
        let Limits { max_depth, min_samples_leaf, .. } = self.problem.limits;
        max_depth.is_none_or(|most| node.depth < most)
            && node.segment.len() >= self.problem.min_samples_split.max(2)
            && node.segment.len() >= 2 * min_samples_leaf
    }

    /// Makes the cuts of a leaf and adds it to the open ones, unless it has none.
    fn open(&mut self, id: usize) -> Result<()> {
        let node = &self.grown.nodes[id];
        let rows = self.grown.partition.all(node.segment);
        let columns: Vec<LeafColumn<'_, '_>> = self
            .drawn_features(id)
            .into_iter()
            .map(|feature| LeafColumn {
                feature,
                column: self.table.column(feature),
                order: self.orders[feature].all(node.segment),
            })
            .collect();
        let maker = Maker {
            kernel: self.problem.kernel,
            weights: self.weights,
            min_samples_leaf: self.problem.limits.min_samples_leaf.max(1),
            monitor: self.monitor,
        };
        for (&row, position) in rows.iter().zip(0..) {
            self.position[row as usize] = position;
        }
        let (cuts, stocks) = maker.cuts(rows, &self.position, &columns, &node.sums[FEATURES..])?;
        let columns: Vec<OpenColumn> = cuts
            .into_par_iter()
            .with_min_len(columns_per_thread(rows.len()))
            .filter(|cuts| !cuts.is_empty())
            .map(|cuts| OpenColumn {
                order: self.orders[cuts.feature]
                    .all(node.segment)
                    .iter()
                    .map(|&row| self.position[row as usize])
                    .collect(),
                cuts,
                with_rest: vec![],
                offers: Offers::default(),
            })
            .collect();
        if columns.is_empty() {
            return Ok(());
        }
        let rest = Cluster { stock: 0.0, weight: 0.0, n_rows: 0 };
        let state = LeafState { cluster: self.cluster_of[id], value: 0.0, rest };
        self.leaves.push(OpenLeaf {
            id,
            segment: node.segment,
            state,
            columns,
            stocks,
            with_rest: 0.0,
            best: Best::NONE,
            reach: Reach::NONE,
            trust: Trust::Missing,
            is_stale: true,
        });
        Ok(())
    }

    /// The columns that a leaf looks at, in ascending order.
    fn drawn_features(&self, id: usize) -> Vec<usize> {
        let segment = self.grown.nodes[id].segment;
        let varies = |&feature: &usize| {
            let order = self.orders[feature].all(segment);
            let column = self.table.column(feature);
            column.get(order[0] as usize) < column.get(order[order.len() - 1] as usize)
        };
        let mut features: Vec<usize> = (0..self.table.n_features()).filter(varies).collect();
        if self.problem.max_features < features.len() {
            // A stream of its own for every node: what it draws does not depend on the others.
            let mut random = fastrand::Rng::with_seed(self.problem.seed);
            let mut random = fastrand::Rng::with_seed(random.u64(..).wrapping_add(id as u64));
            random.shuffle(&mut features);
            features.truncate(self.problem.max_features);
            features.sort_unstable();
        }
        features
    }

    fn allowed(&self) -> Allowed {
        let n_clusters = self.clusters.len();
        let n_free = self.problem.max_clusters.saturating_sub(n_clusters);
        Allowed { n_clusters, n_free, all_moves: self.problem.all_moves }
    }

    /// The move to make next; none if growth is over.
    fn choose(&mut self) -> Result<Option<Choice>> {
        self.monitor.check()?;
        if self.n_leaves >= self.problem.limits.max_leaves || self.leaves.is_empty() {
            return Ok(None);
        }
        let allowed = self.allowed();
        // With features the kernel is positive semidefinite. Then a new cluster is worth no less to a side than an old
        // one, so that, while new ones may be made, every cluster is one leaf and no old one needs a look.
        let is_psd = matches!(self.problem.kernel, Kernel::Features { .. });
        let needs_targets = !(is_psd && allowed.n_free > 0);
        let mut leaves = std::mem::take(&mut self.leaves);
        let view = View { growth: self, allowed };
        let mut best: Vec<f64> = leaves
            .par_iter_mut()
            .map(|leaf| {
                view.refresh(leaf, needs_targets);
                view.sure(leaf)
            })
            .collect();
        let mut most = largest(&best);
        if needs_targets {
            // From the largest bound down, until no bound reaches the best gain.
            let mut bounded: Vec<(f64, &mut OpenLeaf, &mut f64)> = leaves
                .iter_mut()
                .zip(&mut best)
                .map(|(leaf, best)| (leaf.bound(), leaf, best))
                .collect();
            bounded.sort_by(|a, b| b.0.total_cmp(&a.0));
            for batch in bounded.chunks_mut(parallel::n_threads()) {
                let floor = most - self.margin;
                if batch[0].0 < floor {
                    break;
                }
                batch.par_iter_mut().for_each(|(bound, leaf, best)| {
                    if *bound >= floor {
                        **best = best.max(view.look_closer(leaf, floor));
                    }
                });
                most = batch.iter().fold(most, |most, (.., best)| most.max(**best));
            }
        }
        let choice = if most > self.margin {
            let floor = most - self.margin;
            let leaf = best.iter().position(|&gain| gain >= floor);
            leaf.map(|leaf| view.first(&leaves[leaf], leaf, floor, needs_targets)).transpose()?
        } else {
            None
        };
        self.leaves = leaves;
        self.changed.clear();
        Ok(choice)
    }

    /// Makes a move.
    fn split(&mut self, choice: &Choice) -> Result<()> {
        let leaf = self.leaves.remove(choice.leaf);
        let (id, parent) = (leaf.id, leaf.segment);
        drop(leaf);
        let order = self.orders[choice.feature].all(parent);
        let at = |i: usize| self.table.column(choice.feature).get(order[i] as usize);
        let upper = Gap { below: at(choice.n_left - 1), above: at(choice.n_left) };
        let test = test_of(choice.feature, Cut { lower: None, upper, n_left: 0 });
        for (i, &row) in order.iter().enumerate() {
            self.goes_left[row as usize] = i < choice.n_left;
        }
        let go_left = sides_of(&self.goes_left);
        let (left, _) = self.grown.split_by(id, test, choice.gain, go_left, |_, _| true);
        self.kinds[id] = Some(choice.movement.kind);
        self.kinds.extend([None, None]);
        self.n_leaves += 1;
        let children = [left, left + 1];
        let clusters = [choice.movement.left, choice.movement.right];
        for (side, child) in children.into_iter().enumerate() {
            self.cluster_of.push(clusters[side]);
            self.stock_of.push(match self.problem.kernel {
                Kernel::Features { .. } => norm(&self.grown.nodes[child].sums[FEATURES..]),
                Kernel::Gram { .. } => choice.stocks[side],
            });
        }
        self.move_rows(id, children, clusters);
        if self.n_leaves >= self.problem.limits.max_leaves {
            self.leaves.clear();
            return Ok(());
        }
        let to_open: Vec<usize> = children.into_iter().filter(|&c| self.may_split(c)).collect();
        if !to_open.is_empty() {
            let goes_left = &self.goes_left;
            self.orders.par_iter_mut().with_max_len(1).for_each(|order| {
                order.split(parent, sides_of(goes_left), |_, _| true);
            });
            for child in to_open {
                self.open(child)?;
            }
        }
        Ok(())
    }

    /// Takes the rows of the two children of a split leaf to their clusters.
    fn move_rows(&mut self, id: usize, children: [usize; 2], clusters: [usize; 2]) {
        let source = self.cluster_of[id];
        self.clusters[source].leaves.retain(|&leaf| leaf != id);
        self.clusters[source].leaves.extend(children);
        for (child, target) in children.into_iter().zip(clusters) {
            if target == source {
                continue;
            }
            if target == self.clusters.len() {
                let cluster = Cluster { stock: 0.0, weight: 0.0, n_rows: 0 };
                self.clusters.push(Members { cluster, leaves: vec![], stocks: vec![] });
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
            if matches!(self.problem.kernel, Kernel::Features { .. }) {
                let leaves = self.clusters[cluster].leaves.clone();
                self.clusters[cluster].stocks = self.stocks_with(&[], &leaves);
            }
            self.settle(cluster);
        }
    }

    /// Brings a cluster's sums up to date, from its leaves and the stocks of rows with it.
    fn settle(&mut self, cluster: usize) {
        let members = &self.clusters[cluster];
        let node = |&id: &usize| &self.grown.nodes[id];
        let n_rows = members.leaves.iter().map(|id| node(id).segment.len()).sum();
        let weight = members.leaves.iter().map(|id| node(id).sums[WEIGHT]).sum();
        let stock = match self.problem.kernel {
            Kernel::Features { .. } => norm(&self.features_of(&members.leaves)),
            Kernel::Gram { .. } => members
                .leaves
                .iter()
                .map(|id| {
                    let rows = self.grown.partition.all(node(id).segment);
                    rows.iter().map(|&row| members.stocks[row as usize]).sum::<f64>()
                })
                .sum(),
        };
        self.clusters[cluster].cluster = Cluster { stock, weight, n_rows };
    }

    /// The sum of the features of the rows of some leaves, added from scratch so that nothing drifts.
    fn features_of(&self, leaves: &[usize]) -> Vec<f64> {
        let mut sum = vec![0.0; self.problem.kernel.rank()];
        for &id in leaves {
            add_row(&mut sum, &self.grown.nodes[id].sums[FEATURES..], 1.0);
        }
        sum
    }

    /// S(M, M) of the rows of some leaves, from the Gram matrix.
    fn stock_among(&self, leaves: &[usize]) -> f64 {
        let Kernel::Gram { k, n } = self.problem.kernel else { return f64::NAN };
        let rows = self.rows_of(leaves);
        let of_row = |&row: &u32| {
            let values = &k[row as usize * n..][..n];
            let terms = rows.iter().map(|&other| self.weights.of(other) * values[other as usize]);
            self.weights.of(row) * terms.sum::<f64>()
        };
        rows.iter().map(of_row).sum()
    }

    fn rows_of(&self, leaves: &[usize]) -> Vec<u32> {
        let segments = leaves.iter().map(|&id| self.grown.nodes[id].segment);
        segments.flat_map(|segment| self.grown.partition.all(segment)).copied().collect()
    }

    /// Every row's weight times its stock with the given leaves (features) or rows (Gram).
    fn stocks_with(&self, rows: &[u32], leaves: &[usize]) -> Vec<f64> {
        let mut stocks = vec![0.0; self.table.n_samples()];
        let sum = self.features_of(leaves);
        stocks.par_chunks_mut(BLOCK).enumerate().for_each(|(block, stocks)| {
            let start = block * BLOCK;
            if self.monitor.check().is_err() {
                return; // the caller checks too
            }
            match self.problem.kernel {
                Kernel::Features { z, rank } => {
                    for (i, stock) in stocks.iter_mut().enumerate() {
                        let row = start + i;
                        *stock = self.weights.of(row as u32) * dot(&sum, &z[row * rank..][..rank]);
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

    /// Moves the rows of a leaf from cluster to cluster in the stocks of rows, by way of the rows that move or of those
    /// that stay, whichever are fewer.
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

    fn finish(self, objective: Vec<f64>) -> Fitted {
        let nodes = &self.grown.nodes;
        let cost =
            |(node, stock): (&GrownNode, &f64)| node.sums[DIAGONAL] - stock / node.sums[WEIGHT];
        Fitted {
            tests: nodes.iter().map(|node| node.test.clone()).collect(),
            left: nodes.iter().map(|node| node.left).collect(),
            n_samples: nodes.iter().map(|node| node.segment.len()).collect(),
            weight: nodes.iter().map(|node| node.sums[WEIGHT]).collect(),
            cost: nodes.iter().zip(&self.stock_of).map(cost).collect(),
            gain: nodes.iter().map(|node| node.score).collect(),
            cluster: self.cluster_of,
            kinds: self.kinds,
            objective,
            leaf_of_row: self.grown.leaf_of_row(),
        }
    }
}

/// What judging leaves reads of the growth, from all threads.
struct View<'g, 'a, 't> {
    growth: &'g Growth<'a, 't>,
    allowed: Allowed,
}

impl View<'_, '_, '_> {
    /// Brings up to date what is known of a leaf after some clusters changed.
    fn refresh(&self, leaf: &mut OpenLeaf, needs_targets: bool) {
        let growth = self.growth;
        leaf.is_stale |= growth.changed.contains(&leaf.state.cluster);
        if leaf.is_stale {
            let (rest, stocks) = self.rest_of(leaf);
            let whole = stocks.iter().sum();
            leaf.with_rest = whole;
            leaf.state.rest = rest;
            leaf.state.value = growth.clusters[leaf.state.cluster].cluster.value();
            let state = leaf.state;
            leaf.best = leaf
                .columns
                .par_iter_mut()
                .with_min_len(columns_per_thread(leaf.segment.len()))
                .map_init(Scratch::default, |scratch, column| {
                    column.with_rest = column.prefix(&stocks);
                    let adverse = Adverse { leaf: whole, left: &column.with_rest };
                    Column::new(&column.cuts, state, adverse).best(scratch)
                })
                .reduce(|| Best::NONE, Best::max);
        }
        if !needs_targets {
            if !growth.changed.is_empty() {
                leaf.trust = Trust::Missing;
            }
        } else if leaf.trust == Trust::Missing {
            self.ask_all(leaf);
        } else {
            let own = leaf.state.cluster;
            let changed: Vec<usize> =
                growth.changed.iter().copied().filter(|&cluster| cluster != own).collect();
            if !changed.is_empty() {
                leaf.trust = Trust::Bound;
            }
            if leaf.is_stale || !changed.is_empty() {
                self.ask(leaf, &changed, false);
            }
        }
        leaf.is_stale = false;
    }

    /// The rest of the leaf's cluster, and the stocks of the leaf's rows with it, in the order of the rows.
    fn rest_of(&self, leaf: &OpenLeaf) -> (Cluster, Vec<f64>) {
        let growth = self.growth;
        let members = &growth.clusters[leaf.state.cluster];
        let others: Vec<usize> =
            members.leaves.iter().copied().filter(|&id| id != leaf.id).collect();
        let nodes = || others.iter().map(|&id| &growth.grown.nodes[id]);
        let weight: f64 = nodes().map(|node| node.sums[WEIGHT]).sum();
        let n_rows = nodes().map(|node| node.segment.len()).sum();
        let rows = growth.grown.partition.all(leaf.segment);
        let (stock, stocks) = match growth.problem.kernel {
            _ if others.is_empty() => (0.0, vec![0.0; rows.len()]),
            Kernel::Features { z, rank } => {
                let sum = growth.features_of(&others);
                let stock = |&row: &u32| {
                    growth.weights.of(row) * dot(&sum, &z[row as usize * rank..][..rank])
                };
                (norm(&sum), rows.par_iter().with_min_len(BLOCK).map(stock).collect())
            }
            Kernel::Gram { .. } => {
                let with_all = rows.iter().map(|&row| members.stocks[row as usize]);
                let stocks: Vec<f64> =
                    with_all.zip(&leaf.stocks).map(|(all, own)| all - own).collect();
                let stock = if weight * FEW >= members.cluster.weight {
                    let with_rest: f64 = stocks.iter().sum();
                    members.cluster.stock - 2.0 * with_rest - growth.stock_of[leaf.id]
                } else {
                    growth.stock_among(&others)
                };
                (stock, stocks)
            }
        };
        (Cluster { stock, weight, n_rows }, stocks)
    }

    /// The stocks of a leaf's rows with a cluster, in the order of the rows, and their sum.
    fn stocks_in(&self, leaf: &OpenLeaf, cluster: usize) -> (Vec<f64>, f64) {
        let stocks = &self.growth.clusters[cluster].stocks;
        let rows = self.growth.grown.partition.all(leaf.segment);
        let stocks: Vec<f64> = rows.iter().map(|&row| stocks[row as usize]).collect();
        let sum = stocks.iter().sum();
        (stocks, sum)
    }

    /// Asks all other clusters for offers, from nothing.
    fn ask_all(&self, leaf: &mut OpenLeaf) {
        let own = leaf.state.cluster;
        let others: Vec<usize> = (0..self.growth.clusters.len()).filter(|&c| c != own).collect();
        self.ask(leaf, &others, true);
        leaf.trust = Trust::Exact;
    }

    /// Asks some clusters for offers, and sees what the best offers come to.
    fn ask(&self, leaf: &mut OpenLeaf, clusters: &[usize], from_nothing: bool) {
        let asked: Vec<_> =
            clusters.iter().map(|&cluster| (cluster, self.stocks_in(leaf, cluster))).collect();
        let (state, with_rest) = (leaf.state, leaf.with_rest);
        leaf.reach = leaf
            .columns
            .par_iter_mut()
            .with_min_len(columns_per_thread(leaf.segment.len()))
            .map_init(Default::default, |(scratch, left): &mut (Scratch, Vec<f64>), column| {
                let mut offers = std::mem::take(&mut column.offers);
                if from_nothing {
                    offers.clear(column.cuts.n_left.len());
                }
                let adverse = Adverse { leaf: with_rest, left: &column.with_rest };
                let gains = Column::new(&column.cuts, state, adverse);
                for (cluster, (stocks, whole)) in &asked {
                    column.cuts.prefix_into(&column.order, |i| stocks[i as usize], left);
                    let target = &self.growth.clusters[*cluster].cluster;
                    gains.offer(target, Adverse { leaf: *whole, left }, &mut offers);
                }
                let reach = gains.reach(&offers, self.allowed, scratch);
                column.offers = offers;
                reach
            })
            .reduce(|| Reach::NONE, Reach::max);
    }

    /// The largest gain of the leaf that is known without a closer look.
    fn sure(&self, leaf: &OpenLeaf) -> f64 {
        let mut best = f64::NEG_INFINITY;
        if self.allowed.n_free > 0 {
            best = best.max(leaf.best.star);
        }
        if self.allowed.n_free > 1 && leaf.state.may_empty() {
            best = best.max(leaf.state.leaving() + leaf.best.alone);
        }
        if leaf.trust == Trust::Exact { best.max(leaf.reach.switch) } else { best }
    }

    /// The largest gain of a move to old clusters, if it is at least `floor`.
    fn look_closer(&self, leaf: &mut OpenLeaf, floor: f64) -> f64 {
        if leaf.trust != Trust::Exact {
            self.ask_all(leaf);
        }
        if leaf.state.may_empty() && leaf.reach.pair >= floor {
            leaf.reach.switch.max(self.best_pair(leaf, floor))
        } else {
            leaf.reach.switch
        }
    }

    /// Calls `judge` for every column with the stocks of its cuts with all other clusters.
    fn with_targets<T: Send>(
        &self,
        leaf: &OpenLeaf,
        judge: impl Fn(&OpenColumn, &[(usize, Cluster, Adverse<'_>)]) -> T + Sync,
    ) -> Vec<T> {
        let others: Vec<_> = (0..self.growth.clusters.len())
            .filter(|&cluster| cluster != leaf.state.cluster)
            .map(|cluster| (cluster, self.stocks_in(leaf, cluster)))
            .collect();
        leaf.columns
            .par_iter()
            .with_min_len(columns_per_thread(leaf.segment.len()))
            .map(|column| {
                let left: Vec<Vec<f64>> =
                    others.iter().map(|(_, (stocks, _))| column.prefix(stocks)).collect();
                let targets: Vec<(usize, Cluster, Adverse<'_>)> = others
                    .iter()
                    .zip(&left)
                    .map(|(&(cluster, (_, whole)), left)| {
                        let adverse = Adverse { leaf: whole, left };
                        (cluster, self.growth.clusters[cluster].cluster, adverse)
                    })
                    .collect();
                judge(column, &targets)
            })
            .collect()
    }

    fn best_pair(&self, leaf: &OpenLeaf, floor: f64) -> f64 {
        let best = self.with_targets(leaf, |column, targets| {
            leaf.gains(column).best_pair(targets, self.allowed, &column.offers, floor)
        });
        largest(&best)
    }

    /// The first move of the leaf that gains at least `floor`.
    fn first(&self, leaf: &OpenLeaf, at: usize, floor: f64, needs_targets: bool) -> Result<Choice> {
        let others: Vec<_> = (0..self.growth.clusters.len())
            .filter(|&cluster| needs_targets && cluster != leaf.state.cluster)
            .map(|cluster| (cluster, self.stocks_in(leaf, cluster)))
            .collect();
        let in_column = |column: &OpenColumn| {
            let gains = leaf.gains(column);
            let offers = needs_targets.then_some(&column.offers);
            (0..column.cuts.n_left.len()).find_map(|cut| {
                if gains.bound_at(cut, offers, self.allowed) < floor {
                    return None;
                }
                let left = &column.order[..column.cuts.n_left[cut] as usize];
                let target = |(cluster, (stocks, whole)): &(usize, (Vec<f64>, f64))| {
                    let with_left = left.iter().map(|&i| stocks[i as usize]).sum();
                    (*cluster, self.growth.clusters[*cluster].cluster, [with_left, *whole])
                };
                let joins = gains.joins(cut, &others.iter().map(target).collect::<Vec<_>>());
                let (movement, gain) = gains.first_move(cut, &joins, self.allowed, floor)?;
                Some(Choice {
                    leaf: at,
                    feature: column.cuts.feature,
                    n_left: left.len(),
                    movement,
                    gain,
                    stocks: [column.cuts.own[0][cut], column.cuts.own[1][cut]],
                })
            })
        };
        leaf.columns
            .par_iter()
            .find_map_first(in_column)
            .ok_or_else(|| Error::Internal("the best move was lost.".into()))
    }
}

/// How many columns of a leaf of `n_rows` rows one thread should take at least.
fn columns_per_thread(n_rows: usize) -> usize {
    (WORTH_A_THREAD / n_rows.max(1)).max(1)
}

/// The sides of rows, as a [`Partition`] asks for them.
fn sides_of(goes_left: &[bool]) -> impl Fn(&[u32], &mut Vec<bool>) + Sync {
    |rows, sides| sides.extend(rows.iter().map(|&row| goes_left[row as usize]))
}
