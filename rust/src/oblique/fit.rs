//! The alternation of clustering and tree.

use super::geometry::Geometry;
use super::logistic::Options;
use super::tao::{Columns, Labels, Loss, Node, Objective, Settings, Tao, Test, Tree};
use crate::costs::LabelCosts;
use crate::error::Result;
use crate::parallel::Monitor;

/// How the tree and the clustering are brought together.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Penalty of phi.
    pub lambda: f64,
    /// Deepest leaf.
    pub max_depth: usize,
    /// TAO iterations on the labels of the free clustering.
    pub n_first: usize,
    /// Most rounds of tree and centers.
    pub max_iter: usize,
    /// TAO iterations of a round.
    pub n_passes: usize,
    /// A round that lowers the objective by a smaller share is the last.
    pub tol: f64,
    /// Whether leaves are split where that pays.
    pub grow: bool,
    /// Of the node problems.
    pub solver: Options,
    /// Exact sweeps.
    pub n_refine: usize,
    /// From this round on.
    pub refine_from: usize,
}

/// Rows, distances, and the free clustering.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a, 't> {
    /// Distances.
    pub geometry: Geometry<'a, 't>,
    /// What tests are made of.
    pub columns: Columns<'a, 't>,
    /// Number of rows.
    pub n_samples: usize,
    /// Row weights.
    pub weights: Option<&'a [f64]>,
    /// Number of clusters.
    pub k: usize,
    /// The free clustering's centers.
    pub centers: &'a [f64],
    /// Its labels.
    pub labels: &'a [u32],
}

/// The objective after a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Cost of the tree's clusters over that of the free clustering, and phi.
    pub objective: Objective,
    /// mu of the path; NaN for the direct solver.
    pub mu: f64,
    /// Non-zero weights.
    pub n_weights: usize,
    /// Leaves.
    pub n_leaves: usize,
}

/// A fitted tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The tree.
    pub tree: Tree,
    /// Its centers.
    pub centers: Vec<f64>,
    /// The objective step by step.
    pub steps: Vec<Step>,
}

/// Number of non-zero weights.
pub fn n_weights(tree: &Tree) -> usize {
    let of = |node: &Node| match node {
        Node::Split { test: Test::Oblique { weights, .. }, .. } => weights.len(),
        Node::Split { .. } => 1,
        Node::Leaf(_) => 0,
    };
    tree.nodes.iter().map(of).sum()
}

/// What rows cost with given centers, in units of the free clustering's mean cost.
struct Costs {
    regrets: Vec<f64>,
    minimum: f64,
}

impl<'t> Problem<'_, 't> {
    fn tao<'b>(&'b self, loss: Loss<'b>, settings: Settings, monitor: &'b Monitor) -> Tao<'b, 't> {
        Tao { columns: self.columns, loss, settings, n_samples: self.n_samples, monitor }
    }

    fn costs(&self, centers: &[f64], unit: f64) -> Result<Costs> {
        let LabelCosts { mut regrets, minimum, .. } = self.geometry.costs(centers, self.weights)?;
        regrets.iter_mut().for_each(|x| *x /= unit);
        Ok(Costs { regrets, minimum: minimum / unit })
    }

    fn labels_of(&self, tao: &Tao<'_, '_>, tree: &Tree) -> Vec<u32> {
        let leaf = tao.leaf_of_row(tree);
        let label = |id: u32| match &tree.nodes[id as usize] {
            Node::Leaf(leaf) => leaf.label,
            Node::Split { .. } => 0,
        };
        leaf.into_iter().map(label).collect()
    }
}

/// Descends on E + lambda phi itself: costs to centers as the loss of TAO, then centers.
///
/// # Errors
/// [`crate::error::Error::Interrupted`] if the monitor was asked to stop.
pub fn direct(
    problem: &Problem<'_, '_>,
    start: Tree,
    plan: &Plan,
    monitor: &Monitor,
) -> Result<Fitted> {
    let settings = Settings {
        lambda: plan.lambda,
        max_depth: plan.max_depth,
        solver: plan.solver,
        n_refine: 0,
    };
    let mut tree = start;
    let free = problem.geometry.costs(problem.centers, problem.weights)?;
    let weight: f64 = problem.weights.map_or(problem.n_samples as f64, |w| w.iter().sum());
    let own: f64 = problem
        .labels
        .iter()
        .enumerate()
        .map(|(row, &label)| free.regrets[row * problem.k + label as usize])
        .sum();
    let e_free = free.minimum + own;
    let unit = if e_free > 0.0 { e_free / weight } else { 1.0 };
    let labels = Labels { labels: problem.labels, weights: problem.weights, k: problem.k };
    for _ in 0..plan.n_first {
        if !problem.tao(Loss::Labels(labels), settings, monitor).pass(&mut tree)? {
            break;
        }
    }
    let mut centers = problem.centers.to_vec();
    let mut steps = vec![];
    let mut before = f64::INFINITY;
    for round in 0..plan.max_iter {
        let n_refine = if round >= plan.refine_from { plan.n_refine } else { 0 };
        let settings = Settings { n_refine, ..settings };
        let costs = problem.costs(&centers, unit)?;
        let loss = Loss::Costs { costs: &costs.regrets, k: problem.k };
        let tao = problem.tao(loss, settings, monitor);
        if plan.grow {
            tao.grow(&mut tree)?;
        }
        for _ in 0..plan.n_passes {
            if !tao.pass(&mut tree)? {
                break;
            }
        }
        let mut objective = tao.objective(&tree);
        objective.loss += costs.minimum;
        steps.push(Step {
            objective,
            mu: f64::NAN,
            n_weights: n_weights(&tree),
            n_leaves: tree.n_leaves(),
        });
        let value = objective.value(plan.lambda);
        monitor.report(tree.n_leaves(), before - value);
        let labels = problem.labels_of(&tao, &tree);
        centers = problem.geometry.centers(&labels, problem.weights, &centers)?;
        if round > plan.refine_from && value > before - plan.tol * value {
            break;
        }
        before = value;
    }
    Ok(Fitted { tree, centers, steps })
}
