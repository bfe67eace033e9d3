//! Clustering and tree brought together: min over centers Psi and tree Theta of E(T(X; Theta), Psi) + lambda phi(Theta)
//! (the paper's eq. 4).
//!
//! [`direct`] descends on that objective itself: the cost of a row in a leaf is its distance to the center of the
//! leaf's label, and tree and centers take turns. The paper's own way is in [`super::path`].
//!
//! | paper | here |
//! |---|---|
//! | Psi | `Alternation::centers`, k x d, in units |
//! | T(x; Theta) | `Alternation::tree` |
//! | E | [`Objective::loss`], in units of the free clustering's mean cost, so that lambda has no unit |
//! | phi | [`Objective::penalty`]: the l1 norm of all weights, or the number of thresholds |
//! | lambda | [`Plan::lambda`] |
//!
//! A round costs O(n d k) for the centers, O(n d) a level of the tree for the tests, and the node problems.

use super::draft::{DraftNode, DraftTree};
use super::geometry::Geometry;
use super::leaf_loss::{Labels, Loss};
use super::memory::Memory;
use super::plan::Plan;
use super::splits::Splits;
use super::tao::{Objective, Tao, TaoSettings};
use crate::costs::LabelCosts;
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::Monitor;

/// A clustering to be explained by a tree.
#[derive(Debug)]
pub struct ClusterProblem<'a, 't> {
    /// The rows, and how far they are from centers.
    pub geometry: &'a Geometry<'a, 't>,
    /// The rows that tests are evaluated on, and how new tests are found.
    pub splits: Splits<'a, 't>,
    /// Row weights, all positive.
    pub weights: Option<&'a [f64]>,
    /// The free clustering's labels.
    pub labels: &'a [u32],
    /// Its centers, k x d, row-major, in units.
    pub centers: &'a [f64],
}

/// The tree and its costs after a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// mu; 0 for the direct fit and with the direct solver. Relaxed, the last one.
    pub mu: f64,
    /// E of the tree's clusters, about the centers of the round (direct, relaxed) or their own (path); and phi.
    pub objective: Objective,
    /// Weight of the rows whose auxiliary label is not the tree's.
    pub mismatch: f64,
    /// Non-zero weights of the tree.
    pub n_weights: usize,
    /// Its leaves.
    pub n_leaves: usize,
}

/// Sums over the nodes of a fitted tree, and the costs of its clusters.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The leaf of each row, as a node id.
    pub leaf_of_row: Vec<u32>,
    /// n_nodes x k: regret of every label over the node's rows.
    pub regrets: Vec<f64>,
    /// Cost of the tree's clusters about their centers.
    pub inertia: f64,
    /// Cost of the free clustering.
    pub free_inertia: f64,
}

/// A fitted tree.
#[derive(Debug, Clone, PartialEq)]
pub struct ObliqueFit {
    /// The tree.
    pub tree: DraftTree,
    /// The centers of its clusters, in units; an empty cluster keeps its last.
    pub centers: Vec<f64>,
    /// Round by round.
    pub rounds: Vec<Round>,
    /// Whether the last round was the last for want of progress, or the last mu larger than all gaps.
    pub converged: bool,
    /// Sums over its nodes and its costs.
    pub summary: Summary,
}

/// What labels cost, in units of the free clustering's mean cost.
pub(super) struct Costs {
    /// n x k: weight times (cost - least cost of the row).
    pub(super) regrets: Vec<f64>,
    /// Weighted sum of the least costs.
    pub(super) minimum: f64,
}

/// A tree's leaves and clusters, and what they cost.
pub(super) struct TreeClusters {
    /// The leaf of each row, as a node id.
    pub(super) leaf_of_row: Vec<u32>,
    /// The label of that leaf.
    pub(super) labels: Vec<u32>,
    /// E about the clusters' own centers, and phi.
    pub(super) objective: Objective,
}

/// The state of a fit: tree and centers, which take turns, and the rounds so far.
pub(super) struct Alternation<'a, 'b, 't> {
    /// Rows, weights and the free clustering.
    pub(super) problem: &'b ClusterProblem<'a, 't>,
    /// Prices and limits.
    pub(super) plan: &'b Plan,
    /// Where requests to stop arrive and progress is reported.
    pub(super) monitor: &'b Monitor,
    /// Results of earlier passes of TAO.
    pub(super) memory: &'b Memory,
    /// Number of labels.
    pub(super) k: usize,
    /// The cost of the free clustering.
    pub(super) free_inertia: f64,
    /// The free clustering's mean cost.
    pub(super) unit: f64,
    /// The tree as it stands.
    pub(super) tree: DraftTree,
    /// The centers as they stand, k x d, in units.
    pub(super) centers: Vec<f64>,
    /// Round by round.
    pub(super) rounds: Vec<Round>,
    /// The price of phi in units of the loss: the plan's, or what that comes to at the end of a path.
    pub(super) price: f64,
    /// Whether only the cost counts and tests keep to their columns.
    pub(super) relaxed: bool,
    /// As [`TaoSettings::steady`]: along a path the labels hardly differ from one mu to the next, while the direct
    /// solver depends on what its tests are replaced by.
    pub(super) steady: bool,
}

impl<'b, 't> Alternation<'_, 'b, 't> {
    /// One pass of tree optimisation for a loss, with the plan's limits. `n_sweeps`: over the weights of a test.
    pub(super) fn tao<'c>(&self, loss: Loss<'c>, n_sweeps: usize) -> Tao<'c, 't>
    where
        'b: 'c,
    {
        let Plan { max_depth, max_leaves, solver, .. } = *self.plan;
        let (lambda, keep_columns, steady) = (self.lambda(), self.relaxed, self.steady);
        let settings =
            TaoSettings { lambda, max_depth, max_leaves, n_sweeps, keep_columns, steady, solver };
        let (monitor, memory) = (self.monitor, self.memory);
        Tao { splits: self.problem.splits, loss, settings, monitor, memory }
    }

    /// The price of phi, 0 once only the cost counts.
    pub(super) fn lambda(&self) -> f64 {
        if self.relaxed { 0.0 } else { self.price }
    }

    /// The labels of the free clustering, as a loss takes them.
    pub(super) fn free_labels(&self) -> Labels<'b> {
        Labels { labels: self.problem.labels, weights: self.problem.weights, k: self.k }
    }

    /// The direct fit: TAO on the labels of the free clustering.
    pub(super) fn first(&mut self, loss: Loss<'_>) -> Result<()> {
        let tao = self.tao(loss, 0);
        tao.rescale(&mut self.tree);
        for _ in 0..self.plan.n_first {
            let mut tree = std::mem::replace(&mut self.tree, DraftTree::leaf(0));
            let changed = tao.pass(&mut tree)?;
            self.tree = tree;
            if !changed {
                break;
            }
        }
        Ok(())
    }

    /// What every label costs every row about the current centers (n x k). O(n d k).
    pub(super) fn costs(&self) -> Result<Costs> {
        let LabelCosts { mut regrets, minimum, .. } =
            self.problem.geometry.costs(&self.centers, self.problem.weights)?;
        self.monitor.check()?;
        regrets.iter_mut().for_each(|x| *x /= self.unit);
        Ok(Costs { regrets, minimum: minimum / self.unit })
    }

    /// The label of each row by the leaf it is in.
    pub(super) fn labels(&self, leaf_of_row: &[u32]) -> Vec<u32> {
        let label = |&id: &u32| match &self.tree.nodes[id as usize] {
            DraftNode::Leaf(leaf) => leaf.label,
            DraftNode::Split { .. } => 0,
        };
        memory::collected(leaf_of_row.iter().map(label), "the labels of the rows")
    }

    /// Moves the centers to the means of the tree's clusters; returns the leaves and labels of the rows.
    pub(super) fn center(&mut self) -> Result<(Vec<u32>, Vec<u32>)> {
        let leaf_of_row = self.tao(Loss::Labels(self.free_labels()), 0).leaf_of_row(&self.tree);
        let labels = self.labels(&leaf_of_row);
        let ClusterProblem { geometry, weights, .. } = self.problem;
        self.centers = geometry.centers(&labels, *weights, &self.centers)?;
        Ok((leaf_of_row, labels))
    }

    /// As [`Alternation::center`], and returns what the clusters then cost besides.
    pub(super) fn measure(&mut self) -> Result<TreeClusters> {
        let (leaf_of_row, labels) = self.center()?;
        let tao = self.tao(Loss::Labels(self.free_labels()), 0);
        let penalty = tao.penalty(&self.tree, 0);
        let own = self.costs()?;
        let regrets = labels.iter().zip(own.regrets.chunks(self.k));
        let loss = own.minimum + regrets.map(|(&label, r)| r[label as usize]).sum::<f64>();
        Ok(TreeClusters { leaf_of_row, labels, objective: Objective { loss, penalty } })
    }

    /// Appends a round and reports its gain to the monitor.
    pub(super) fn record(&mut self, mu: f64, objective: Objective, mismatch: f64) {
        let (n_weights, n_leaves) = (self.tree.n_weights(), self.tree.n_leaves());
        let value = |objective: &Objective| objective.value(self.lambda());
        let gain =
            self.rounds.last().map_or(0.0, |round| value(&round.objective) - value(&objective));
        self.monitor.report(n_leaves, gain);
        self.rounds.push(Round { mu, objective, mismatch, n_weights, n_leaves });
    }

    /// Tree and centers in turns until E + lambda phi stays; returns whether it does. `n_passes`: TAO iterations between
    /// two updates of the centers. Relaxed: E alone, on the columns that the tests have, which undoes what the penalty
    /// took from their weights (Meinshausen: Relaxed Lasso, 2007).
    pub(super) fn descend(&mut self, n_passes: usize) -> Result<bool> {
        let (mut before, mut n_sweeps) = (f64::INFINITY, 0);
        for round in 0..self.plan.max_iter {
            let costs = self.costs()?;
            let tao = self.tao(Loss::Costs { costs: &costs.regrets, k: self.k }, n_sweeps);
            let mut tree = std::mem::replace(&mut self.tree, DraftTree::leaf(0));
            if !self.relaxed {
                if round == 0 {
                    tao.rescale(&mut tree);
                }
                tao.grow(&mut tree)?;
            }
            for _ in 0..n_passes {
                if !tao.pass(&mut tree)? {
                    break;
                }
            }
            let mut objective = tao.objective(&tree);
            objective.loss += costs.minimum;
            self.tree = tree;
            let mu = self.rounds.last().map_or(0.0, |round| round.mu);
            self.record(mu, objective, 0.0);
            self.center()?;
            let value = objective.value(self.lambda());
            if before - value <= self.plan.tol * value {
                if n_sweeps == self.plan.n_sweeps {
                    return Ok(true);
                }
                n_sweeps = self.plan.n_sweeps;
            }
            before = value;
        }
        Ok(false)
    }

    /// The last descent if there is to be one, and the sums of the nodes: leaves of the rows, regrets of every label in
    /// every node from the leaves up, and the cost about the last centers.
    pub(super) fn finish(mut self, mut converged: bool) -> Result<ObliqueFit> {
        if self.plan.relax {
            (self.relaxed, self.steady) = (true, false);
            converged &= self.descend(self.plan.n_passes)?;
        }
        let tao = self.tao(Loss::Labels(self.free_labels()), 0);
        let leaf_of_row = tao.leaf_of_row(&self.tree);
        let costs = self.problem.geometry.costs(&self.centers, self.problem.weights)?;
        let (k, n_nodes) = (self.k, self.tree.nodes.len());
        let mut regrets = vec![0.0; n_nodes * k];
        for (row, &leaf) in costs.regrets.chunks(k).zip(&leaf_of_row) {
            for (sum, x) in regrets[leaf as usize * k..][..k].iter_mut().zip(row) {
                *sum += x;
            }
        }
        let mut inertia = costs.minimum;
        for id in (0..n_nodes).rev() {
            match &self.tree.nodes[id] {
                DraftNode::Leaf(leaf) => inertia += regrets[id * k + leaf.label as usize],
                DraftNode::Split { left, right, .. } => {
                    // Children come after their parent.
                    let (above, below) = regrets.split_at_mut((id + 1) * k);
                    for child in [left, right] {
                        let child = &below[(child - id - 1) * k..][..k];
                        above[id * k..].iter_mut().zip(child).for_each(|(sum, x)| *sum += x);
                    }
                }
            }
        }
        let summary = Summary { leaf_of_row, regrets, inertia, free_inertia: self.free_inertia };
        let Alternation { tree, centers, rounds, .. } = self;
        Ok(ObliqueFit { tree, centers, rounds, converged, summary })
    }
}

impl<'a, 't> ClusterProblem<'a, 't> {
    /// The state before the first round: the cost of the free clustering, which is the unit of all costs, and checks of
    /// lengths and labels.
    pub(super) fn start<'b>(
        &'b self,
        tree: DraftTree,
        plan: &'b Plan,
        monitor: &'b Monitor,
        memory: &'b Memory,
    ) -> Result<Alternation<'a, 'b, 't>> {
        let (n, d) = (self.geometry.rows().n_samples(), self.geometry.rows().n_features());
        let k = self.centers.len() / d.max(1);
        Error::check_len("centers", self.centers.len(), k * d, "entries")?;
        let (_, free_inertia) =
            self.geometry.assign(self.centers, Some(self.labels), self.weights)?;
        let weight: f64 = self.weights.map_or(n as f64, |w| w.iter().sum());
        let unit = if free_inertia > 0.0 { free_inertia / weight } else { 1.0 };
        let (tree, centers) = (tree.compact(), self.centers.to_vec());
        Ok(Alternation {
            problem: self,
            plan,
            monitor,
            memory,
            k,
            free_inertia,
            unit,
            tree,
            centers,
            rounds: vec![],
            price: plan.lambda,
            relaxed: false,
            steady: false,
        })
    }
}

/// Descends on E + lambda phi from a given tree.
///
/// # Errors
/// [`Error::Interrupted`] if the monitor was asked to stop; [`Error::Shape`] or [`Error::Value`] if the free clustering
/// does not fit the rows, or distances overflow.
pub fn direct(
    problem: &ClusterProblem<'_, '_>,
    start: DraftTree,
    plan: &Plan,
    monitor: &Monitor,
) -> Result<ObliqueFit> {
    let memory = Memory::default();
    let mut run = problem.start(start, plan, monitor, &memory)?;
    if plan.keep_labels {
        run.center()?;
    } else {
        run.first(Loss::Labels(run.free_labels()))?;
    }
    let converged = run.descend(plan.n_passes)?;
    run.finish(converged)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::costs::Units;
    use crate::oblique::initial::{self, FirstTree};
    use crate::oblique::logistic::SolverOptions;
    use crate::oblique::logistic::design::Design;
    use crate::oblique::path::{Schedule, path};
    use crate::rows::Rows;
    use crate::table::Table;
    use ndarray::Array2;

    pub(in crate::oblique) const K: usize = 4;

    fn rows(n: usize) -> (Array2<f64>, Vec<u32>, Vec<f64>) {
        let mut rng = fastrand::Rng::with_seed(5);
        let places = [[0.0, 0.0], [4.0, 1.0], [1.0, 5.0], [5.0, 5.0]];
        let x = Array2::from_shape_fn((n, 2), |(i, j)| {
            places[i % K][j] + 3.0 * (rng.f64() + rng.f64() - 1.0)
        });
        let square = |i: usize, place: &[f64; 2]| {
            (x[[i, 0]] - place[0]).powi(2) + (x[[i, 1]] - place[1]).powi(2)
        };
        let nearest = |i: usize| {
            let squares = places.map(|place| square(i, &place));
            (0..K).min_by(|&a, &b| squares[a].total_cmp(&squares[b])).unwrap() as u32
        };
        let labels = (0..n).map(nearest).collect();
        (x, labels, places.concat())
    }

    pub(in crate::oblique) fn plan(lambda: f64) -> Plan {
        Plan {
            lambda,
            max_depth: 3,
            max_leaves: usize::MAX,
            keep_labels: false,
            n_first: 5,
            n_passes: 3,
            max_iter: 30,
            tol: 1e-6,
            n_sweeps: 1,
            relax: false,
            solver: SolverOptions { tol: 1e-3, max_iter: 100 },
        }
    }

    /// Calls `check` with a problem and a first tree.
    pub(in crate::oblique) fn with_problem(
        check: impl Fn(&ClusterProblem<'_, '_>, DraftTree, &Monitor),
    ) {
        let (x, labels, centers) = rows(300);
        let table = Table::from_matrix(x.view()).unwrap();
        let rows = Rows::Table(&table);
        let units = Units { shift: vec![0.0; 2], scale: vec![1.0; 2] };
        let geometry = Geometry::Euclidean { table: &table, units: &units };
        let design = Design::from_table(&table).unwrap();
        let monitor = Monitor::default();
        let problem = ClusterProblem {
            geometry: &geometry,
            splits: Splits::Oblique { rows, design: &design, shares: None },
            weights: None,
            labels: &labels,
            centers: &centers,
        };
        let start = initial::tree(&geometry, None, FirstTree::Bisecting, 3, 0, &monitor).unwrap();
        check(&problem, start, &monitor);
    }

    #[test]
    fn the_direct_objective_never_rises() {
        with_problem(|problem, start, monitor| {
            for lambda in [0.0, 0.3, 3.0] {
                let plan = plan(lambda);
                let fitted = direct(problem, start.clone(), &plan, monitor).unwrap();
                let values: Vec<f64> =
                    fitted.rounds.iter().map(|round| round.objective.value(lambda)).collect();
                assert!(values.windows(2).all(|v| v[1] <= v[0] * (1.0 + 1e-12)), "{values:?}");
                // Centers are moved once more after the last round.
                let last = fitted.rounds.last().unwrap().objective.loss;
                let summary = &fitted.summary;
                let ratio = summary.inertia / summary.free_inertia * 300.0;
                assert!(ratio <= last * (1.0 + 1e-12), "{ratio} {last}");
            }
        });
    }

    #[test]
    fn relaxing_never_raises_the_cost_and_adds_nothing() {
        with_problem(|problem, start, monitor| {
            let schedule = Schedule { factor: 1.3, n_steps: 200, histograms: false };
            for (lambda, by_path) in [(3.0, false), (30.0, false), (3.0, true), (30.0, true)] {
                let fit = |relax| {
                    let plan = Plan { relax, ..plan(lambda) };
                    match by_path {
                        true => path(problem, start.clone(), &plan, &schedule, monitor).unwrap(),
                        false => direct(problem, start.clone(), &plan, monitor).unwrap(),
                    }
                };
                let (plain, relaxed) = (fit(false), fit(true));
                let (before, after) = relaxed.rounds.split_at(plain.rounds.len());
                assert_eq!(before, plain.rounds);
                let losses: Vec<f64> = after.iter().map(|round| round.objective.loss).collect();
                assert!(!losses.is_empty());
                assert!(losses.windows(2).all(|v| v[1] <= v[0] * (1.0 + 1e-12)), "{losses:?}");
                assert!(relaxed.summary.inertia <= plain.summary.inertia * (1.0 + 1e-12));
                assert!(relaxed.tree.n_weights() <= plain.tree.n_weights());
                assert!(relaxed.tree.n_leaves() <= plain.tree.n_leaves());
            }
        });
    }
}
