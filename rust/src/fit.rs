//! A threshold tree from any base and any criterion.
//!
//! The base is a tree that reproduces a clustering roughly, one leaf per cluster ([`Base`]: IMM, Kernel IMM), or a
//! single leaf. From its leaves the tree grows best first on a criterion ([`GrowthCriterion`]) until a limit is met.
//! The methods of the package are choices of the two:
//!
//! | method | base | criterion |
//! |---|---|---|
//! | IMM | IMM | none: as many leaves as clusters |
//! | ExGreedy, ExShallow | cuts between centers by cost, or cost and depth | none |
//! | ExKMC | IMM or one leaf | label cost, regrets of squared distances (k-medians: of Manhattan distances) |
//! | Kernel IMM | Kernel IMM | none |
//! | Kernel ExKMC, Kernel Expand | Kernel IMM or one leaf | label cost, regrets of kernel distances or of labels |
//! | classification tree on labels | one leaf | Gini, entropy |
//! | SpEx-Clique | one leaf | clique |
//!
//! Rows are those of a table or of a sparse matrix; the latter is taken by threshold cuts after IMM's base or none.
//!
//! Every node's statistics are exact sums over its own rows, rounded once ([`crate::exact`]): they depend neither on
//! what grows below it nor on the order of the rows.

use std::borrow::Cow;

use crate::beside_cuts::values_beside;
use crate::center_cuts::{self, CenterCutProblem};
use crate::criterion::centers::Centers;
use crate::criterion::clique::Clique;
use crate::criterion::cut_score::CutScore;
use crate::criterion::intervals::IntervalCost;
use crate::criterion::label_cost::{CheapestLabel, CutKind, RegretMatrix, Regrets, best_label};
use crate::criterion::label_counts::{Entropy, Gini, OneHot, most_frequent};
use crate::criterion::sums::{Additive, AdditiveNode, SideCost};
use crate::criterion::{ColumnForm, Criterion, RowSums};
use crate::error::{Error, Result};
use crate::grow::{FittedNodes, GrowingTree, GrownNode, Limits, best_first};
use crate::imm::{BaseNodes, ImmProblem, grow_imm, grow_imm_sparse};
use crate::index::Index;
use crate::kernel;
use crate::kernel::features::{Spec, Surrogate};
use crate::parallel::Monitor;
use crate::rows::{CsrRows, Rows};
use crate::search::{Engine, SearchOptions};
use crate::shallow::DepthPrice;
use crate::sparse::columns::SparseColumns;
use crate::sparse::search::SparseEngine;
use crate::table::Table;
use crate::tree::Beside;

/// The tree that growth starts from.
#[derive(Debug, Clone, Copy)]
pub enum Base<'a> {
    /// One leaf.
    Leaf,
    /// IMM's tree, one leaf per center.
    Imm {
        /// The clusters' centers.
        centers: Centers<'a>,
        /// What a cut between centers is worth.
        score: CutScore,
    },
    /// ExGreedy's or ExShallow's tree, one leaf per center, by the regrets of [`GrowthCriterion::LabelCost`].
    Greedy {
        /// The clusters' centers.
        centers: Centers<'a>,
        /// ExShallow's price of depth; none: ExGreedy.
        depth: Option<DepthPrice<'a>>,
    },
    /// Kernel IMM's tree, one leaf per cluster.
    KernelImm(Spec<'a>),
}

/// What cuts after the base are worth.
#[derive(Debug, Clone, Copy)]
pub enum GrowthCriterion<'a> {
    /// What they save if every side gets its cheapest label.
    LabelCost {
        /// n x k, row-major, non-negative, weights included: cost of each label less the row's cheapest; none: the row's
        /// weight for every label but its own.
        regrets: Option<&'a [f64]>,
        /// The form of the cuts.
        cuts: CutKind,
    },
    /// What they take from the Gini impurity of the reference labels.
    Gini,
    /// What they take from the entropy of the reference labels.
    Entropy,
    /// The clique score of SpEx on the reference labels.
    Clique,
}

/// What a threshold tree is fitted to.
#[derive(Debug, Clone, Copy)]
pub struct ThresholdProblem<'a> {
    /// A reference label in `[0, k)` per row.
    pub labels: &'a [u32],
    /// Number of labels.
    pub k: usize,
    /// Row weights, positive; none: 1 each.
    pub weights: Option<&'a [f64]>,
    /// The tree that growth starts from.
    pub base: Base<'a>,
    /// What cuts after the base are worth.
    pub criterion: GrowthCriterion<'a>,
    /// Limits of growth after the base.
    pub limits: Limits,
    /// How nodes are searched.
    pub search: SearchOptions,
}

/// A fitted tree and the statistics of its nodes. Entries are by node id, the root first, children after their
/// parents: `n_nodes` of them where nothing else is said.
#[derive(Debug, Clone, PartialEq)]
pub struct ThresholdFit {
    /// Tests, children and rows.
    pub nodes: FittedNodes,
    /// n_nodes x k, row-major: weight of the rows of each reference label.
    pub label_weight: Vec<f64>,
    /// What the node costs as a leaf, in the criterion's unit: regret under its best label, weight times impurity,
    /// or phi.
    pub cost: Vec<f64>,
    /// Label as a leaf: the cheapest, or the most frequent; of an empty leaf of the base its center's.
    pub cluster: Vec<usize>,
    /// Label as a leaf of the base tree; none at other nodes.
    pub base_cluster: Vec<Option<usize>>,
    /// What a leaf of the base costs under the base's label (`cost` for criteria without regrets); 0 elsewhere.
    pub base_cost: Vec<f64>,
    /// Weight that the cut of a base node separates from its centers; NaN elsewhere.
    pub mistakes: Vec<f64>,
    /// Number of leaves of the base tree, 0 without one.
    pub n_base_leaves: usize,
    /// Of Kernel IMM, by column: the features without any cut although the column has some. Empty for other bases.
    pub skipped_features: Vec<usize>,
    /// The values beside the cuts; none for sparse rows.
    pub beside: Option<Beside>,
}

/// Fits a tree: the base, then best-first growth.
///
/// # Errors
/// [`Error::Shape`] if sizes disagree, [`Error::Value`] if a label is out of range, two clusters cannot be told apart
/// by Kernel IMM's features, or the base takes neither levels nor missing cells, [`Error::Interrupted`] if the monitor
/// was asked to stop.
pub fn fit<'a, 't: 'a>(
    rows: impl Into<Rows<'a, 't>>,
    problem: &ThresholdProblem<'_>,
    monitor: &Monitor,
) -> Result<ThresholdFit> {
    let ThresholdProblem { labels, k, weights, .. } = *problem;
    let rows = rows.into();
    let n = rows.n_samples();
    Error::check_len("labels", labels.len(), n, "rows")?;
    if let Some(weights) = weights {
        Error::check_len("weights", weights.len(), n, "rows")?;
    }
    let label_rows = OneHot::new(labels, k, weights)?;
    let regrets = match problem.criterion {
        GrowthCriterion::LabelCost { regrets: Some(regrets), .. } => {
            Some(Regrets::Given(RegretMatrix::new(regrets, n, k)?))
        }
        GrowthCriterion::LabelCost { regrets: None, .. } => Some(Regrets::OfLabels(label_rows)),
        _ => None,
    };
    let cells = Cells::of(rows, problem, monitor)?;
    monitor.check()?;
    // Rows with wrong labels need not be counted beside those with each label.
    let added = regrets.filter(|regrets| !regrets.is_exact());
    let n_regrets = added.map_or(0, |_| k);
    let mut grown = GrowingTree::with_exact_sums(n, n_regrets + k, |row, group, sums| {
        if let Some(regrets) = added {
            regrets.add_exactly(row, sums, group);
        }
        label_rows.add_exactly_from(row, sums, group, n_regrets);
    });
    let mut fit = Fit { cells: &cells, problem, monitor, n_regrets, grown: &mut grown };
    let (base, skipped_features) = fit.grow_base()?;
    fit.grown.end_base();
    let base_cluster = fit.base_clusters(base.as_ref());
    let m = problem.limits.min_samples_leaf;
    let cost = match (problem.criterion, regrets) {
        (GrowthCriterion::LabelCost { cuts, .. }, Some(regrets)) => {
            let costs = Additive::on(regrets, CheapestLabel, m);
            let node = |node: &GrownNode| {
                costs.node(&regrets_of(&node.sums, n_regrets), node.segment.len())
            };
            match cuts {
                CutKind::Threshold => fit.grow(&costs, node)?,
                CutKind::Interval => fit.grow(&IntervalCost::new(&costs), node)?,
            }
        }
        (GrowthCriterion::Entropy, _) => fit.grow_on_counts(label_rows, Entropy, m)?,
        (GrowthCriterion::Clique, _) => {
            fit.grow_on_counts(label_rows, Clique::new(&label_rows, n), m)?
        }
        _ => fit.grow_on_counts(label_rows, Gini, m)?,
    };
    Ok(fit.describe(base, base_cluster, cost, skipped_features))
}

/// The rows of a fit, and how their columns are searched.
enum Cells<'f, 't> {
    /// Columns side by side, by bins.
    Table(&'f Table<'t>, Index),
    /// Sparse rows, by their stored cells.
    Sparse(&'f CsrRows<'t>, SparseColumns),
}

impl<'f, 't> Cells<'f, 't> {
    /// Bins or sorts the columns.
    ///
    /// # Errors
    /// [`Error::Value`] if the base or the criterion does not take such columns.
    fn of(rows: Rows<'f, 't>, problem: &ThresholdProblem<'_>, monitor: &Monitor) -> Result<Self> {
        let of_numbers = matches!(problem.base, Base::Greedy { .. } | Base::KernelImm(_));
        let table = match rows {
            Rows::Table(table) => table,
            Rows::Sparse(matrix) => {
                if of_numbers {
                    return Err(Error::Value(
                        "Sparse rows are taken by trees with IMM's base or none.".into(),
                    ));
                }
                return Ok(Cells::Sparse(matrix, SparseColumns::new(matrix, monitor)?));
            }
        };
        let index = Index::new(table, problem.search.max_bins);
        let is_other = |&f: &usize| index.column(f).form != ColumnForm::default();
        match (0..index.n_features()).find(is_other) {
            Some(feature) if of_numbers => Err(Error::Value(format!(
                "Column {feature} holds levels or missing cells: trees of this base take complete numbers only."
            ))),
            _ => Ok(Cells::Table(table, index)),
        }
    }

    /// The table and its index.
    ///
    /// # Errors
    /// [`Error::Internal`] for sparse rows, which [`Cells::of`] refuses where a table is needed.
    fn table(&self) -> Result<(&'f Table<'t>, &Index)> {
        match self {
            Cells::Table(table, index) => Ok((table, index)),
            Cells::Sparse(..) => {
                Err(Error::Internal("sparse rows came to a base of tables.".into()))
            }
        }
    }
}

/// The regrets of a node: the first `n_regrets` of its sums, the weights of the labels being the others. None there: the
/// rows with other labels, as many as all that are left.
fn regrets_of(sums: &[f64], n_regrets: usize) -> Cow<'_, [f64]> {
    let (regrets, counts) = sums.split_at(n_regrets);
    if n_regrets > 0 {
        return Cow::Borrowed(regrets);
    }
    let n_rows: f64 = counts.iter().sum();
    Cow::Owned(counts.iter().map(|count| n_rows - count).collect())
}

/// A fit on its way.
struct Fit<'f, 'a, 't, 's> {
    cells: &'f Cells<'f, 't>,
    problem: &'f ThresholdProblem<'a>,
    monitor: &'f Monitor,
    /// Of every node's sums, the first so many are regrets, see [`regrets_of`]; k label weights follow.
    n_regrets: usize,
    grown: &'f mut GrowingTree<'s>,
}

impl Fit<'_, '_, '_, '_> {
    /// Grows the base; returns the record of its nodes, none without a base, and the skipped features.
    fn grow_base(&mut self) -> Result<(Option<BaseNodes>, Vec<usize>)> {
        let ThresholdProblem { labels, k, weights, search, .. } = *self.problem;
        match self.problem.base {
            Base::Leaf => Ok((None, vec![])),
            Base::Imm { centers, score } => {
                let rows = OneHot::new(labels, k, weights)?;
                let problem = ImmProblem { rows, centers, score, search };
                let (grown, monitor) = (&mut *self.grown, self.monitor);
                let nodes = match self.cells {
                    Cells::Table(table, index) => grow_imm(table, index, &problem, grown, monitor)?,
                    Cells::Sparse(matrix, columns) => {
                        grow_imm_sparse(matrix, columns, &problem, grown, monitor)?
                    }
                };
                Ok((Some(nodes), vec![]))
            }
            Base::Greedy { centers, depth } => {
                let GrowthCriterion::LabelCost { regrets: Some(regrets), .. } =
                    self.problem.criterion
                else {
                    return Err(Error::Value("ExGreedy's base needs label costs.".into()));
                };
                let (table, index) = self.cells.table()?;
                let n = table.n_samples();
                let regrets = RegretMatrix::new(regrets, n, k)?;
                if let Some(depth) = depth {
                    Error::check_len("least costs", depth.least_costs.len(), n, "rows")?;
                }
                let problem = CenterCutProblem { labels, regrets, centers, depth };
                let (grown, monitor) = (&mut *self.grown, self.monitor);
                let nodes = center_cuts::grow(table, index, &problem, grown, monitor)?;
                Ok((Some(nodes), vec![]))
            }
            Base::KernelImm(spec) => {
                let surrogate = Surrogate::new(self.cells.table()?.0, &spec)?;
                let base =
                    kernel::imm::KernelImm::new(&surrogate, labels, k, weights, self.monitor)?;
                Ok((Some(base.grow(self.grown, self.monitor)?), base.skipped()))
            }
        }
    }

    /// The labels of the base's leaves, by node id.
    fn base_clusters(&self, base: Option<&BaseNodes>) -> Vec<Option<usize>> {
        let Some(base) = base else { return vec![None] };
        (0..self.grown.nodes.len()).map(|id| base.center(id)).collect()
    }

    /// Best-first growth on a criterion; returns what each node costs as a leaf.
    fn grow<C: Criterion<Node = AdditiveNode>>(
        &mut self,
        criterion: &C,
        node: impl Fn(&GrownNode) -> AdditiveNode,
    ) -> Result<Vec<f64>> {
        let ThresholdProblem { limits, search, .. } = *self.problem;
        match self.cells {
            Cells::Table(table, index) => {
                let engine = Engine::new(table, index, criterion, search, self.monitor);
                best_first(&engine, self.grown, limits, &node)?;
            }
            Cells::Sparse(matrix, columns) => {
                let engine = SparseEngine::new(matrix, columns, criterion, self.monitor);
                best_first(&engine, self.grown, limits, &node)?;
            }
        }
        Ok(self.grown.nodes.iter().map(|grown| node(grown).cost).collect())
    }

    /// As [`Fit::grow`], on the counts of labels.
    fn grow_on_counts<S: SideCost>(
        &mut self,
        rows: OneHot<'_>,
        side: S,
        min_samples_leaf: usize,
    ) -> Result<Vec<f64>> {
        let criterion = Additive::on(rows, side, min_samples_leaf);
        let first = self.n_regrets;
        self.grow(&criterion, |node| criterion.node(&node.sums[first..], node.segment.len()))
    }

    /// The fitted tree and the statistics of its nodes.
    fn describe(
        &self,
        base: Option<BaseNodes>,
        mut base_cluster: Vec<Option<usize>>,
        cost: Vec<f64>,
        skipped_features: Vec<usize>,
    ) -> ThresholdFit {
        let nodes = &self.grown.nodes;
        let has_regrets = matches!(self.problem.criterion, GrowthCriterion::LabelCost { .. });
        let regrets = |id: usize| regrets_of(&nodes[id].sums, self.n_regrets);
        let counts = |id: usize| &nodes[id].sums[self.n_regrets..];
        let n_base_leaves = base_cluster.iter().flatten().count();
        base_cluster.resize(nodes.len(), None);
        let mut mistakes = base.map_or(vec![], |base| base.mistakes);
        mistakes.resize(nodes.len(), f64::NAN);
        let cluster = |id: usize| match base_cluster[id] {
            Some(label) if nodes[id].segment.is_empty() => label,
            _ if has_regrets => best_label(&regrets(id)),
            _ => most_frequent(counts(id)),
        };
        let base_cost = |id: usize| match base_cluster[id] {
            None => 0.0,
            Some(label) if has_regrets => regrets(id)[label],
            Some(_) => cost[id],
        };
        let ids = || 0..nodes.len();
        let label_weight: Vec<f64> = ids().flat_map(|id| counts(id).iter().copied()).collect();
        ThresholdFit {
            nodes: self.grown.fitted_nodes(|node| node.sums[self.n_regrets..].iter().sum()),
            label_weight,
            cluster: ids().map(cluster).collect(),
            base_cost: ids().map(base_cost).collect(),
            cost,
            base_cluster,
            mistakes,
            n_base_leaves,
            skipped_features,
            beside: match self.cells {
                Cells::Table(table, index) => Some(values_beside(self.grown, table, index)),
                Cells::Sparse(..) => None,
            },
        }
    }
}
