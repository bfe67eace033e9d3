//! IMM: one leaf per center, with the fewest mistakes at every cut (Dasgupta, Frost, Moshkovitz and Rashtchian
//! 2020, Algorithm 1), and the trees of surrogate cost that grow from it (ExKMC).

use crate::criterion::Criterion;
use crate::criterion::label_cost::{CutKind, LabelCost, best_label};
use crate::criterion::mistakes::{Centers, Mistakes, MistakesNode, TableCenters};
use crate::error::{Error, Result};
use crate::grow::{Grown, Limits, Splitter, best_first, split_all};
use crate::index::Index;
use crate::kernel;
use crate::kernel::features::{Spec, Surrogate};
use crate::parallel::{self, Monitor};
use crate::search::{BestCut, Engine, SearchOptions};
use crate::table::Table;
use crate::tree::Test;

/// The base tree: k leaves that keep their centers.
struct Imm<'a, 't, 'm> {
    criterion: &'m Mistakes<'a, TableCenters<'a, 't>>,
    /// Alive centers by node.
    alive: Vec<Vec<bool>>,
}

impl<'a, 't> Splitter for Imm<'a, 't, '_> {
    type Criterion = Mistakes<'a, TableCenters<'a, 't>>;

    fn node(&self, id: usize, rows: &[u32]) -> Option<MistakesNode> {
        let alive = &self.alive[id];
        let n_alive = alive.iter().filter(|&&a| a).count();
        (n_alive > 1).then(|| self.criterion.node(rows, alive.clone()))
    }

    fn keep(&self, id: usize, best: &BestCut) -> impl Fn(u32, bool) -> bool + Sync {
        let (left, _) = self.criterion.split_centers(&self.alive[id], best.feature, best.cut);
        move |row, goes_left| left[self.criterion.label(row)] == goes_left
    }

    fn split(&mut self, id: usize, left: usize, best: &BestCut) {
        debug_assert_eq!(left, self.alive.len());
        let (l, r) = self.criterion.split_centers(&self.alive[id], best.feature, best.cut);
        self.alive.extend([l, r]);
    }
}

/// The tree that growth starts from.
#[derive(Debug, Clone, Copy)]
pub enum Base<'a> {
    /// One leaf.
    Leaf,
    /// IMM's, one leaf per center.
    Imm(Centers<'a>),
    /// Kernel IMM's, one leaf per cluster.
    KernelImm(Spec<'a>),
}

/// What a threshold tree is fitted to.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// n x k regrets, row-major.
    pub regrets: &'a [f64],
    /// Number of labels.
    pub k: usize,
    /// A reference label per row.
    pub labels: &'a [u32],
    /// What the tree grows from.
    pub base: Base<'a>,
    /// Row weights.
    pub weights: Option<&'a [f64]>,
    /// Form of the cuts after the base.
    pub cuts: CutKind,
    /// Limits of growth after the base.
    pub limits: Limits,
    /// How nodes are searched.
    pub search: SearchOptions,
}

/// A fitted tree with all that is known of its nodes; entries by node id.
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
    /// n_nodes x k weights of the reference labels.
    pub label_weight: Vec<f64>,
    /// Regret of the node under its best label.
    pub cost: Vec<f64>,
    /// Best label.
    pub cluster: Vec<usize>,
    /// Label as a leaf of the base tree.
    pub base_cluster: Vec<Option<usize>>,
    /// Regret of a base leaf's rows under the base's label; 0 elsewhere.
    pub base_cost: Vec<f64>,
    /// Weight separated from their centers by the cut of a base node; NaN elsewhere.
    pub mistakes: Vec<f64>,
    /// Node id of the leaf of each row.
    pub leaf_of_row: Vec<u32>,
    /// Number of leaves of the base tree, 0 without one.
    pub n_base_leaves: usize,
    /// Of Kernel IMM: by column, the features without any cut although the column has some.
    pub skipped_features: Vec<usize>,
}

/// Fits a tree: the base, then best-first growth on the surrogate cost.
///
/// # Errors
/// [`Error::Shape`] if sizes disagree, [`Error::Interrupted`] if the monitor was asked to stop.
pub fn fit(table: &Table<'_>, problem: &Problem<'_>, monitor: &Monitor) -> Result<Fitted> {
    let n = table.n_samples();
    Error::check_len("labels", problem.labels.len(), n, "rows")?;
    if let Some(weights) = problem.weights {
        Error::check_len("weights", weights.len(), n, "rows")?;
    }
    if let Some(label) = problem.labels.iter().find(|&&l| l as usize >= problem.k) {
        return Err(Error::Value(format!("Label {label} is not in the range [0, {}).", problem.k)));
    }
    let Limits { min_samples_leaf, .. } = problem.limits;
    let costs = LabelCost::new(problem.regrets, n, problem.k, problem.cuts, min_samples_leaf)?;
    let index = Index::new(table, problem.search.max_bins);
    monitor.check()?;
    let k = problem.k;
    let mut grown = Grown::new(n, |rows| {
        parallel::sum_rows(rows, 2 * k, |row, sums| {
            costs.add(row, &mut sums[..k]);
            let weight = problem.weights.map_or(1.0, |w| w[row as usize]);
            sums[k + problem.labels[row as usize] as usize] += weight;
        })
    });
    let mut skipped_features = vec![];
    let alive = match problem.base {
        Base::Leaf => None,
        Base::Imm(centers) => {
            let centers = TableCenters::new(table, &index, problem.labels, centers, k)?;
            let mistakes = Mistakes::new(problem.labels, k, centers, problem.weights)?;
            let mut imm = Imm { criterion: &mistakes, alive: vec![vec![true; k]] };
            let engine = Engine::new(table, &index, &mistakes, problem.search, monitor);
            split_all(&engine, &mut grown, &mut imm)?;
            Some(imm.alive)
        }
        Base::KernelImm(spec) => {
            let surrogate = Surrogate::new(table, &spec)?;
            let (labels, weights) = (problem.labels, problem.weights);
            let base = kernel::imm::Base::new(&surrogate, labels, k, weights, monitor)?;
            skipped_features = base.skipped();
            Some(base.grow(&mut grown, monitor)?)
        }
    };
    let mut base_cluster = vec![None; grown.nodes.len()];
    let mut n_base_leaves = 0;
    if let Some(alive) = alive {
        for id in grown.leaves().collect::<Vec<_>>() {
            base_cluster[id] = alive[id].iter().position(|&alive| alive);
            let segment = grown.nodes[id].segment;
            grown.nodes[id].segment = grown.partition.restore(segment);
            n_base_leaves += 1;
        }
    }
    let engine = Engine::new(table, &index, &costs, problem.search, monitor);
    best_first(&engine, &mut grown, problem.limits, |node| {
        costs.node(&node.sums[..k], node.segment.len())
    })?;
    base_cluster.resize(grown.nodes.len(), None);
    let fitted = describe(&grown, problem, base_cluster, n_base_leaves);
    Ok(Fitted { skipped_features, ..fitted })
}

/// Everything that is known of the nodes.
fn describe(
    grown: &Grown<'_>,
    problem: &Problem<'_>,
    base_cluster: Vec<Option<usize>>,
    n_base_leaves: usize,
) -> Fitted {
    let (k, n_nodes) = (problem.k, grown.nodes.len());
    let totals: Vec<&[f64]> = grown.nodes.iter().map(|node| &node.sums[..k]).collect();
    let label_weight: Vec<f64> =
        grown.nodes.iter().flat_map(|node| node.sums[k..].iter().copied()).collect();
    let best: Vec<(f64, usize)> = totals.iter().map(|t| best_label(t)).collect();
    let is_base = |id: usize| n_base_leaves > 0 && id < 2 * n_base_leaves - 1;
    let base_cost =
        (0..n_nodes).map(|id| base_cluster[id].map_or(0.0, |label| totals[id][label])).collect();
    let mistakes = (0..n_nodes)
        .map(|id| match base_cluster[id] {
            None if is_base(id) => -grown.nodes[id].score,
            _ => f64::NAN,
        })
        .collect();
    // An empty leaf of the base keeps its center's label.
    let cluster = (0..n_nodes)
        .map(|id| match base_cluster[id] {
            Some(label) if grown.nodes[id].segment.is_empty() => label,
            _ => best[id].1,
        })
        .collect();
    Fitted {
        tests: grown.nodes.iter().map(|node| node.test.clone()).collect(),
        left: grown.nodes.iter().map(|node| node.left).collect(),
        n_samples: grown.nodes.iter().map(|node| node.segment.len()).collect(),
        weight: label_weight.chunks(k).map(|w| w.iter().sum()).collect(),
        label_weight,
        cost: best.iter().map(|b| b.0).collect(),
        cluster,
        base_cost,
        base_cluster,
        mistakes,
        leaf_of_row: grown.leaf_of_row(),
        n_base_leaves,
        skipped_features: vec![],
    }
}
